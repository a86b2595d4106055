"""The rival of manifest-gen and ns-rename: the same work in Python, as one
would write it. usage: manifest.py gen BASE MAP RESULTS | rename SUFFIX IDMAP
"""
import json
import os
import sys

DROPPED = ("artifact_format", "artifact_size", "artifact_sha256",
           "artifact_urls")


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def once(models):
    seen = {}
    for m in models:
        if seen.setdefault(m["id"].lower(), m) != m:
            sys.exit(f"{m['id']}: twice, and differs")
    return list(seen.values())


def write(f, value):
    f.write((json.dumps(value, ensure_ascii=False, indent=2) +
             "\n").encode())


def gen(base, source_map, results):
    root, sources, made = load(base), load(source_map), []
    for m in once(root["models"]):
        path = f"{results}/{m['id']}_artifact.json"
        if not os.path.exists(path):
            print(f"{m['id']}: not built", file=sys.stderr)
            continue
        record = load(path)
        for key in DROPPED:
            m.pop(key, None)
        if not record["multipart"]:
            m.pop("artifact_url", None)
        gpu = sources.get(m["id"], {}).get("uses_external_gpu")
        if gpu is not None:
            m["uses_external_gpu"] = gpu
        made.append(m)
    root["models"] = made
    write(sys.stdout.buffer, root)


def rename(suffix, idmap):
    root = json.load(sys.stdin)
    root["models"] = once(root["models"])
    ids = {m["id"]: m["id"] + suffix for m in root["models"]}
    if len({i.lower() for i in ids.values()}) != len(ids):
        sys.exit("two ids would be one")
    for m in root["models"]:
        m["id"] = ids[m["id"]]
        m.pop("artifact_url", None)
    with open(idmap, "wb") as f:
        write(f, ids)
    write(sys.stdout.buffer, root)


if __name__ == "__main__":
    {"gen": gen, "rename": rename}[sys.argv[1]](*sys.argv[2:])
