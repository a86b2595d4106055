"""What a release must be, by its contract alone.
usage: release-build.py look WORKSPACE RELEASE SUFFIX
       release-build.py kill COMMAND...    (in a workspace with `release.old`)
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys

# under valgrind a run takes a second: there, every ninth change
STRIDE = 9 if "valgrind" in os.environ.get("BIN", "") else 1

def sha(data):
    return hashlib.sha256(data).hexdigest()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def load(path):
    return json.loads(read(path))


def look(ws, release, suffix):
    version = os.path.basename(release)
    names = sorted(os.listdir(release))
    sums = read(f"{release}/SHA256SUMS").decode()
    assert sums == "".join(f"{sha(read(f'{release}/{n}'))}  {n}\n"
                           for n in names if n != "SHA256SUMS"), sums
    text = read(f"{release}/release.json").decode()
    j = json.loads(text)
    assert text == json.dumps(j, indent=2, ensure_ascii=False) + "\n"
    assert list(j) == ["version", "suffix", "tinygrad", "toolchain", "models"]
    assert j["version"] == version and j["suffix"] == suffix
    manifest = load(f"{release}/model_names_{version}.json")["models"]
    assert [m["id"] for m in manifest] == [m["id"] for m in j["models"]]
    ids = load(f"{ws}/source-maps/model_id_namespace_{version}.json")
    assert ids == {m["source_id"]: m["id"] for m in j["models"]}
    multi = {m["id"]: m for m in load(f"{release}/multipart.json")}
    seen = {"SHA256SUMS", "release.json", "multipart.json",
            f"model_names_{version}.json"}
    for m in j["models"]:
        assert list(m) == ["id", "source_id", "backend", "device", "size",
                           "sha256", "filename", "parts"], m
        record = load(f"{ws}/results/{m['source_id']}_artifact.json")
        for key in "size", "sha256", "backend", "device":
            assert m[key] == record[key], m
        for key in "tinygrad", "toolchain":
            assert j[key] == record[key], m
        assert m["id"] == m["source_id"] + suffix
        assert m["filename"] == f"{m['id']}_driving_tinygrad.pkl"
        files = m["parts"] or [m["filename"]]
        data = b"".join(read(f"{release}/{f}") for f in files)
        assert data == read(f"{ws}/compiled/{m['source_id']}.pkl")
        seen |= set(files)
        if m["parts"]:
            assert m["parts"] == [f"{m['filename']}.p{n:02d}"
                                  for n in range(len(m["parts"]))]
            seen.add(m["filename"] + ".sha256")
            assert read(f"{release}/{m['filename']}.sha256").decode() == \
                f"{m['sha256']}  {m['filename']}\n"
            assert multi.pop(m["id"]) == {
                "id": m["id"], "filename": m["filename"], "size": m["size"],
                "sha256": m["sha256"], "parts": m["parts"]}
    assert not multi, multi
    assert seen == set(names), seen ^ set(names)


def content(where):
    return {n: read(f"{where}/{n}") for n in os.listdir(where)}


def kill(*command):
    """Killed at every change: the old release, the new one, or none."""
    old, n = content("release.old/v23"), 1 - STRIDE
    while True:
        n += STRIDE
        shutil.rmtree("release", ignore_errors=True)
        shutil.copytree("release.old", "release")
        got = subprocess.run(["killat", str(n), *command],
                             capture_output=True)
        if got.returncode != 137:
            break
        if os.path.exists("release/v23/SHA256SUMS") and \
                content("release/v23") != old:
            look(".", "release/v23", "3")
        got = subprocess.run(command, capture_output=True)
        if got.returncode != 0:
            sys.exit(f"killed at {n}, rerun: {got.stderr}")
        look(".", "release/v23", "3")
        if os.listdir("release") != ["v23"]:
            sys.exit(f"killed at {n}, rerun: {os.listdir('release')}")
    print(n)
    if n < 20:
        sys.exit(f"only {n} changes")


if __name__ == "__main__":
    {"look": look, "kill": kill}[sys.argv[1]](*sys.argv[2:])
