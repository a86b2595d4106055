"""Makes a workspace whose products are all current, from the published rules
for keys and records alone: the oracle of graph-gen's tests, the load of its
bench. usage: fabricate.py DIR COUNT | DIR MAP.json... -- MANIFEST.json...
"""
import hashlib
import json
import os
import sys

LIMIT, PART = 1000, 400
PATHS = ("openpilot/selfdrive/modeld/models:selfdrive/modeld/models:"
         "frogpilot/tinygrad_modeld/models")
IDENTITY = {
    "image_history_pipeline": "policy", "backend": "tinygrad",
    "device": "CPU", "driver": "driver-1", "tinygrad": "0.14.0",
    "toolchain": "t" * 64, "python": "3.11.2", "compiler": "clang 14",
    "cameras": [[1928, 1208], [1344, 760]],
    "environment": {"DEV": "CPU", "FLOAT16": "1"},
}


def sha(data):
    return hashlib.sha256(data).hexdigest()


def key(lines):
    text = "".join(f"{name}={value}\n" for name, value in lines)
    return {"key": sha(text.encode()),
            "key_lines": [f"{name}={value}" for name, value in lines]}


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def save(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=2, ensure_ascii=False)
        f.write("\n")


def put(path, data):
    with open(path, "wb") as f:
        f.write(data)
    return {"size": len(data), "sha256": sha(data)}


def fetch(name, entry):
    gpu = entry.get("uses_external_gpu", False)
    kinds = ["driving_supercombo"] if entry["input_format"] == "supercombo" \
        else ["driving_vision", "driving_policy"]
    os.makedirs(f"onnx/{name}")
    files = []
    for kind in kinds:
        path = f"onnx/{name}/{name}_{kind}.onnx"
        files.append({"component": kind, "git_path": f"x/{kind}.onnx",
                      "path": path} | put(path, f"{name} {kind}".encode()))
    save(f"results/{name}_source.json", {
        "id": name, "ref": entry["ref"],
        "input_format": entry["input_format"], "uses_external_gpu": gpu,
        "files": files,
    } | key([("paths", PATHS), ("format", entry["input_format"]),
             ("gpu", int(gpu)), ("commit", entry["ref"])]))
    return files


def ready(name, data, digest):
    base = f"{name}_driving_tinygrad.pkl"
    parts = []
    if len(data) > LIMIT:
        for i in range(0, len(data), PART):
            part = f"{base}.p{i // PART:02d}"
            got = put(f"ready-for-resources/{part}", data[i:i + PART])
            parts.append({"name": part, "size": got["size"]})
        put(f"ready-for-resources/{base}.sha256",
            f"{digest}  {base}\n".encode())
    else:
        put(f"ready-for-resources/{base}", data)
    return {"name": base, "parts": parts} | key(
        [("artifact", digest), ("limit", LIMIT), ("part", PART)])


def compile_(name, entry, version, files, big):
    gpu = entry.get("uses_external_gpu", False)
    data = name.encode() * (1100 // len(name) + 1 if big else 3)
    got = put(f"compiled/{name}.pkl", data)
    lines = [("schema", 1), ("format", entry["input_format"]),
             ("version", version), ("gpu", int(gpu))]
    lines += [(f["component"], f["sha256"]) for f in files]
    lines += [(k, IDENTITY[k]) for k in (
        "tinygrad", "toolchain", "driver", "backend", "device", "python",
        "compiler", "image_history_pipeline")]
    lines += [(k, compact(IDENTITY[k])) for k in ("cameras", "environment")]
    made = ready(name, data, got["sha256"])
    save(f"results/{name}_artifact.json", {
        "id": name, "status": "compiled", "path": f"compiled/{name}.pkl",
    } | got | {
        "multipart": bool(made["parts"]),
        "toolchain": IDENTITY["toolchain"],
        "tinygrad": IDENTITY["tinygrad"], "backend": IDENTITY["backend"],
        "device": IDENTITY["device"], "driver": IDENTITY["driver"],
    } | key(lines) | {"ready": made})
    return [{"id": name, "filename": made["name"], "size": got["size"],
             "sha256": got["sha256"],
             "parts": [p["name"] for p in made["parts"]]}] \
        if made["parts"] else []


def catalog(count):
    names = [f"m{i}" for i in range(count)]
    if count == 4:
        names = ["one", "two", "big", "gpu"]
    models = {n: {"ref": hashlib.sha1(n.encode()).hexdigest(),
                  "input_format": "supercombo" if i % 7 == 1 else "split"}
              for i, n in enumerate(names)}
    if count == 4:
        models["gpu"]["uses_external_gpu"] = True
    return models, {n: f"v{i % 20}" for i, n in enumerate(names)}


def main(where, *what):
    os.makedirs(where, exist_ok=True)
    versions = {}
    if "--" in what:
        cut = what.index("--")
        models = {}
        for path in what[:cut]:
            with open(path, encoding="utf-8") as f:
                models |= json.load(f)
        for path in what[cut + 1:]:
            with open(path, encoding="utf-8") as f:
                for m in json.load(f)["models"]:
                    versions.setdefault(m["id"], m["version"])
    else:
        models, versions = catalog(int(what[0]))
    os.chdir(where)
    for d in ("onnx", "compiled", "ready-for-resources", "results", "logs",
              ".state"):
        os.makedirs(d)
    save("map.json", models)
    save("names.json", {"models": [{"id": n, "version": v}
                                   for n, v in versions.items()]})
    save(".state/identity.json", IDENTITY)
    multi = []
    for i, (name, entry) in enumerate(models.items()):
        files = fetch(name, entry)
        multi += compile_(name, entry, versions[name], files,
                          name == "big" or len(models) > 4 and i % 5 == 0)
    save("ready-for-resources/multipart.json",
         sorted(multi, key=lambda m: m["id"]))
    put(".model-rebuild", b"a workspace of model-rebuild(7)\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
