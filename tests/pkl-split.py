"""The oracle of pkl-split: the set as the Python pipeline writes it.

  set FILE NAME DIR LIMIT PART [force]   writes the set into DIR
  kill                                   kills pkl-split at each of its changes
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time


def write_set(data, name, folder, limit, part, force=False):
    """Two passes, the first for the digest, as the Python pipeline has it."""
    os.makedirs(folder, exist_ok=True)
    if len(data) <= limit and not force:
        with open(f"{folder}/{name}", "wb") as f:
            f.write(data)
        return
    for i, at in enumerate(range(0, len(data), part)):
        with open(f"{folder}/{name}.p{i:02d}", "wb") as f:
            f.write(data[at:at + part])
    with open(f"{folder}/{name}.sha256", "w", encoding="ascii") as f:
        f.write(f"{hashlib.sha256(data).hexdigest()}  {name}\n")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def listing(folder):
    return {n: read(f"{folder}/{n}") for n in sorted(os.listdir(folder))}


def downloaded(folder, name):
    """What a device gets: the whole file, else the joined parts."""
    if os.path.exists(f"{folder}/{name}"):
        return read(f"{folder}/{name}")
    if not os.path.exists(f"{folder}/{name}.sha256"):
        return None
    want = read(f"{folder}/{name}.sha256").split()[0].decode()
    data, i = b"", 0
    while os.path.exists(f"{folder}/{name}.p{i:02d}"):
        data += read(f"{folder}/{name}.p{i:02d}")
        i += 1
    assert hashlib.sha256(data).hexdigest() == want, "the marker lies"
    return data


LIMIT, PART = 1000, 600
ID = "pop22"
NAME = f"{ID}_driving_tinygrad.pkl"


def begin(old, new, recorded):
    """A folder with the set of OLD, the artifact NEW, and its record."""
    shutil.rmtree("k", ignore_errors=True)
    os.makedirs("k/results")
    write_set(old, NAME, "k/d", LIMIT, PART)
    with open("k/in", "wb") as f:
        f.write(new)
    command = ["pkl-split", "-l", str(LIMIT), "-z", str(PART), "-o", "k/d"]
    if not recorded:
        return command + ["-n", NAME, "k/in"]
    with open(f"k/results/{ID}_artifact.json", "w", encoding="utf-8") as f:
        json.dump({"id": ID, "sha256": hashlib.sha256(new).hexdigest(),
                   "size": len(new), "ready": {"key": "old"}}, f)
    return command + ["-r", "k/results", "-i", ID, "k/in"]


def check(old, new, recorded):
    got = downloaded("k/d", NAME)
    assert got in (None, old, new), "neither the old nor the new artifact"
    if not recorded:
        return
    with open(f"k/results/{ID}_artifact.json", encoding="utf-8") as f:
        ready = json.load(f).get("ready")
    if ready is not None and ready["key"] == "old":
        assert got == old, "the record still tells of the old set"
    elif ready is not None:
        assert got == new, "the record says ready before the set is"


def final(new, recorded):
    write_set(new, NAME, "k/want", LIMIT, PART)
    got, want = listing("k/d"), listing("k/want")
    text = got.pop("multipart.json", b"[]")
    assert got == want, f"{sorted(got)}, wanted {sorted(want)}"
    names = [e["parts"] for e in json.loads(text)]
    parts = [n for n in want if n.startswith(NAME + ".p")]
    assert not recorded or names == ([parts] if parts else []), names


def kill():
    """Each case again and again, killed one change later each time."""
    a, b, c = os.urandom(2500), os.urandom(1300), os.urandom(700)
    cases = [(a, b), (b, a), (c, a), (a, c), (c, c[::-1])]
    stride = 1
    # under valgrind a run takes a second: there, every ninth change of two
    if "valgrind" in os.environ["BIN"]:
        stride, cases = 9, cases[1:3]
    for old, new in cases:
        recorded = (old, new) != (a, b)
        n = 1 - stride
        while True:
            n += stride
            command = begin(old, new, recorded)
            rc = subprocess.run(["killat", str(n)] + command,
                                stdout=subprocess.DEVNULL).returncode
            if rc == 0:
                break
            assert rc == 137, f"status {rc}"
            try:
                check(old, new, recorded)
                subprocess.run(command, check=True,
                               stdout=subprocess.DEVNULL)
                final(new, recorded)
            except AssertionError as e:
                raise SystemExit(f"{len(old)} to {len(new)} bytes, killed at "
                                 f"change {n}: {e}: {os.listdir('k/d')}")
        final(new, recorded)
        assert n > 5, f"only {n} changes were seen"


if __name__ == "__main__":
    if sys.argv[1] == "set":
        write_set(read(sys.argv[2]), sys.argv[3], sys.argv[4],
                  int(sys.argv[5]), int(sys.argv[6]), len(sys.argv) > 7)
    else:
        kill()
