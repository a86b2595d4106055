"""The oracle of the manifest tools: their rules over Python's json alone.
usage: manifest.py gen [digests] [unbuilt] BASE... -- MAP... -- RESULTS
       manifest.py rename SUFFIX [ID...] <manifest
       manifest.py without ID... <manifest
"""
import json
import os
import sys


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def write(value):
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    sys.stdout.buffer.write(text.encode())


def once(models):
    """Duplicates that are equal are written once."""
    kept = []
    for m in models:
        same = [k for k in kept if k["id"] == m["id"]]
        assert same in ([], [m]), m["id"]
        if not same:
            kept.append(m)
    return kept


def gen(*words):
    flags = {w for w in words if w in ("digests", "unbuilt")}
    words = [w for w in words if w not in flags]
    cut = words.index("--")
    bases, rest = words[:cut], words[cut + 1:]
    cut = rest.index("--")
    maps, results = rest[:cut], rest[cut + 1]
    sources = {}
    for path in maps:
        sources |= load(path)
    root = load(bases[0])
    root = root if isinstance(root, dict) else {"models": root}
    models = once(root["models"])
    for path in bases[1:]:
        extra = load(path)
        have = {m["id"] for m in models}
        models += [m for m in once(extra["models"] if isinstance(extra, dict)
                                   else extra)
                   if m["id"] in sources and m["id"] not in have]
    made = []
    for m in models:
        path = f"{results}/{m['id']}_artifact.json"
        record = load(path) if os.path.exists(path) else None
        if record is None and "unbuilt" not in flags:
            continue
        for key in ("artifact_format", "artifact_size", "artifact_sha256",
                    "artifact_urls"):
            m.pop(key, None)
        if not (record and record.get("multipart")):
            m.pop("artifact_url", None)
        if "uses_external_gpu" in sources.get(m["id"], {}):
            m["uses_external_gpu"] = sources[m["id"]]["uses_external_gpu"]
        if "digests" in flags and record:
            m["artifact_size"] = record["size"]
            m["artifact_sha256"] = record["sha256"]
            m["artifact_format"] = "tinygrad_single_v1"
        made.append(m)
    root["models"] = made
    write(root)


def rename(suffix, *only):
    root = json.load(sys.stdin)
    root = root if isinstance(root, dict) else {"models": root}
    root["models"] = once(root["models"])
    for m in root["models"]:
        if not only or m["id"] in only:
            m["id"] += suffix
            m.pop("artifact_url", None)
    write(root)


def without(*ids):
    root = json.load(sys.stdin)
    root["models"] = [m for m in root["models"] if m["id"] not in ids]
    write(root)


if __name__ == "__main__":
    {"gen": gen, "rename": rename, "without": without}[sys.argv[1]](
        *sys.argv[2:])
