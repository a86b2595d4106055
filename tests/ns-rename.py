"""Folders of upload sets and what a renaming makes of them, by the published
rules alone. usage: ns-rename.py make DIR ID... | want DIR OUT SUFFIX VERSION
ID... <manifest | kill COMMAND...   (in a folder that has `before` and `want`)
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

# under valgrind a run takes a second: there, every ninth change
STRIDE = 9 if "valgrind" in os.environ.get("BIN", "") else 1
NAME = re.compile(r"(.+)(_driving_tinygrad\.pkl)(\.p\d\d|\.sha256|)")


def write(path, value):
    with open(path, "w", encoding="utf-8") as f:
        f.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def make(where, *ids):
    """Every second one in parts of 20 bytes."""
    os.makedirs(where, exist_ok=True)
    multi = []
    for i, name in enumerate(ids):
        data = f"the artifact of {name}; ".encode() * 3
        base = f"{name}_driving_tinygrad.pkl"
        parts = {base: data}
        if i % 2:
            digest = hashlib.sha256(data).hexdigest()
            parts = {f"{base}.p{n // 20:02d}": data[n:n + 20]
                     for n in range(0, len(data), 20)}
            multi.append({"id": name, "filename": base, "size": len(data),
                          "sha256": digest, "parts": list(parts)})
            with open(f"{where}/{base}.sha256", "w") as f:
                f.write(f"{digest}  {base}\n")
        for part, content in parts.items():
            with open(f"{where}/{part}", "wb") as f:
                f.write(content)
    write(f"{where}/multipart.json", sorted(multi, key=lambda m: m["id"]))


def want(where, out, suffix, version, *only):
    """As ONLY (or all) of the manifest's ids look in OUT."""
    root = json.load(sys.stdin)
    ids = {m["id"]: m["id"] + suffix if not only or m["id"] in only
           else m["id"] for m in root["models"]}
    os.makedirs(out)
    for name in os.listdir(where):
        m = NAME.fullmatch(name)
        if not m or m[1] not in ids:
            continue
        new = ids[m[1]] + m[2] + m[3]
        with open(f"{where}/{name}", "rb") as f:
            data = f.read()
        if m[3] == ".sha256":
            data = data[:66] + f"{ids[m[1]]}{m[2]}\n".encode()
        with open(f"{out}/{new}", "wb") as f:
            f.write(data)
    with open(f"{where}/multipart.json", encoding="utf-8") as f:
        multi = [m for m in json.load(f) if m["id"] in ids]
    for m in multi:
        new = ids[m["id"]]
        for key in "filename", "parts":
            text = json.dumps(m[key]).replace(f'"{m["id"]}_', f'"{new}_')
            m[key] = json.loads(text)
        m["id"] = new
    write(f"{out}/multipart.json", sorted(multi, key=lambda m: m["id"]))
    seen = []
    for m in root["models"]:
        if ids[m["id"]] != m["id"]:
            m.pop("artifact_url", None)
        m["id"] = ids[m["id"]]
        if m not in seen:
            seen.append(m)
    root["models"] = seen
    write(f"{out}/model_names_{version}.json", root)


def content(where):
    found = {}
    for name in sorted(os.listdir(where)):
        with open(f"{where}/{name}", "rb") as f:
            found[name] = f.read()
    return found


def kill(*command):
    """Kills the command at every change it makes, reruns it, and looks."""
    wanted, n = content("want"), 1 - STRIDE
    while True:
        n += STRIDE
        shutil.rmtree("now", ignore_errors=True)
        shutil.copytree("before", "now")
        with open("manifest.json", "rb") as f:
            got = subprocess.run(["killat", str(n), *command], stdin=f,
                                 capture_output=True)
        if got.returncode != 137:
            break
        # what lies there meanwhile is never a set of wrong content
        for name, data in content("now").items():
            m = NAME.fullmatch(name)
            if m and m[1][0] != "." and not m[3] and \
                    data not in (content("before").get(name),
                                 wanted.get(name)):
                sys.exit(f"killed at {n}: {name} is neither old nor new")
        for again in range(2):
            with open("manifest.json", "rb") as f:
                got = subprocess.run(command, stdin=f, capture_output=True)
            if got.returncode != 0:
                sys.exit(f"killed at {n}, rerun {again}: {got.stderr}")
            now = content("now")
            now.pop(".ns-rename.done")
            if now != wanted:
                sys.exit(f"killed at {n}, rerun {again}: "
                         f"{set(now.items()) ^ set(wanted.items())}")
    print(n)
    if n < 20:
        sys.exit(f"only {n} changes")


if __name__ == "__main__":
    {"make": make, "want": want, "kill": kill}[sys.argv[1]](*sys.argv[2:])
