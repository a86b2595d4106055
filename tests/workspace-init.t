#!/bin/sh
# A folder becomes a workspace; what a Python pipeline left is adopted.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common workspace-init

# ---- a fresh folder ----
mkdir "$T/a b & (c)" && cd "$T/a b & (c)" || exit 2
run workspace-init "$root"
exits 0 "a fresh folder"
is "$(cat "$err")" "" "good input gets no noise"
is "$(find . | sort | tr '\n' ' ')" ". ./.model-rebuild ./.state ./Makefile ./compiled ./config.mk ./driver-monitoring ./logs ./manifests ./onnx ./ready-for-resources ./results ./source-maps " \
    "what is made"
is "$(grep -c '^[^#]' config.mk)" 0 "config.mk holds remarks alone"
for name in OPENPILOT REMOTE_URL SOURCE_MAPS BASE_MANIFEST EXTRA_MANIFEST \
    DEVICES SPLIT_LIMIT PART_SIZE LFS_ENDPOINTS LFS_HOSTS GPU NOTIFY; do
	is "$(grep -c "^#$name ?=" config.mk)" 1 "config.mk: $name"
done
# a remark that is made a setting must be one, with the default of the rules
sed 's/^#\([A-Z_]* ?=\)/\1/' config.mk >"$T/on.mk"
for name in OPENPILOT REMOTE_URL DEVICES SPLIT_LIMIT PART_SIZE LFS_HOSTS \
    LFS_ENDPOINTS BASE_MANIFEST EXTRA_MANIFEST; do
	# shellcheck disable=SC2016 # for make
	for f in "$T/on.mk" "$root/mk/settings.mk"; do
		# shellcheck disable=SC2086
		printf 'include %s\nshow: ; @echo $(%s)\n' "$f" $name |
		    env -u MAKEFLAGS -u MAKELEVEL make -s -f - show ROOT=/r
	done >"$T/values"
	is "$(sed -n 1p "$T/values")" "$(sed -n 2p "$T/values")" \
	    "config.mk has the default of $name"
done
find . -type f -exec sha256sum {} + | sort >"$T/before"
run workspace-init "$root"
exits 0 "twice"
is "$(cat "$out")" "" "... writes nothing"
find . -type f -exec sha256sum {} + | sort >"$T/after"
same "$T/before" "$T/after" "... changes nothing"
echo 'GPU = 1' >config.mk
echo 'mine:' >Makefile
run workspace-init "$root"
is "$(cat config.mk Makefile)" "GPU = 1
mine:" "neither config.mk nor a Makefile of the user is overwritten"

# ---- its Makefile ----
rm Makefile
echo >config.mk
run workspace-init "$root"
run env -u MAKEFLAGS -u MAKELEVEL make status
exits 0 "make status in the workspace"
prints '^73 models: 0 current, 73 to do, 0 failed$' "... of the whole catalog"
# what the project would be asked: a project of one rule stands for it
mkdir "$T/pro ject"
cat >"$T/pro ject/Makefile" <<'MK'
%: ; @echo '$@ in $(WORKSPACE) $(X)' >>'$(WORKSPACE)/asked'
MK
rm Makefile && run workspace-init "$T/pro ject"
exits 0 "a project in a folder with a blank"
mk() { run env -u MAKEFLAGS -u MAKELEVEL make "$@"; rm -f "$T/asked"; mv asked "$T/asked" 2>/dev/null; }
mk
is "$(cat "$T/asked")" "status in $PWD " "make alone is make status"
is "$(cat "$out")" "" "... without a word of folders"
mk -j4 compiled/x.pkl why/y X='a b'
is "$(sort "$T/asked")" "compiled/x.pkl in $PWD a b
why/y in $PWD a b" "goals and settings are handed on"
mk status all
is "$(sort "$T/asked")" "all in $PWD 
status in $PWD " "status beside others"
# shellcheck disable=SC2016
for g in 'why/a;touch canary' 'why/$(shell touch canary)' 'why/`touch canary`' \
    'why/a|touch canary' "why/';touch canary;'" 'why/$(touch canary)'; do
	mk "$g"
	absent canary "make $g runs nothing"
	absent "$T/pro ject/canary" "... nor there"
done
mk "why/a'b"
is "$(cat "$T/asked" 2>/dev/null)" "" "a quote in a goal ends in an error there"
mv "$T/pro ject" "$T/moved"
run workspace-init "$T/moved"
mk
is "$(cat "$T/asked")" "status in $PWD " "made again when the project has moved"
cd "$T/moved" && run workspace-init .
exits 0 "the project's root itself"
is "$(wc -l <Makefile | tr -d ' ')" 1 "... keeps its Makefile"
# shellcheck disable=SC2016
for bad in "it's" 'a$b' 'a#b' 'a\b'; do
	mkdir "$T/$bad" && cd "$T/$bad" || exit 2
	run workspace-init "$root"
	exits 2 "a workspace named $(printf %s "$bad" | tr '\134' '|')"
	is "$(ls -A)" "" "... nothing is made"
done
cd "$T" && mkdir ro && cd ro || exit 2
run workspace-init "$T/nowhere"
exits 2 "a project that is not there"
run workspace-init "$T/it's"
exits 2 "a project that a Makefile cannot name"
run workspace-init
exits 2 "no project"
run workspace-init a b
exits 2 "two projects"
run workspace-init -m nowhere.json "$root"
exits 2 "a map that is not there"
is "$(ls -A)" "" "... nothing is made"

# ---- adoption ----
# The workspace of a Python pipeline: paths are absolute, component names end
# in .onnx, records have no key. old.py DIR
cat >"$T/old.py" <<'PY'
import hashlib, json, os, sys
os.makedirs(sys.argv[1])
os.chdir(sys.argv[1])
here = os.getcwd()
for d in ("onnx", "compiled", "results", "logs"):
    os.mkdir(d)
def put(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    open(path, "wb").write(data)
    return {"path": f"{here}/{path}", "size": len(data),
            "sha256": hashlib.sha256(data).hexdigest()}
def save(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=2)
        f.write("\n")
models = {}
for name, kinds in {"one": ["vision", "policy"], "two": ["supercombo"],
                    "src": ["vision", "policy"]}.items():
    ref = hashlib.sha1(name.encode()).hexdigest()
    fmt = "supercombo" if kinds == ["supercombo"] else "split"
    models[name] = {"ref": ref, "input_format": fmt}
    files = [{"component": f"driving_{k}.onnx",
              "git_path": f"selfdrive/modeld/models/driving_{k}.onnx"}
             | put(f"onnx/{name}/{name}_driving_{k}.onnx",
                   f"{name} {k}".encode()) for k in kinds]
    save(f"results/{name}_source.json", {
        "id": name, "ref": ref, "input_format": fmt,
        "uses_external_gpu": False, "files": files})
    if name != "src":
        made = put(f"compiled/{name}_driving_tinygrad.pkl", name.encode() * 3)
        save(f"results/{name}_artifact.json", {
            "id": name, "status": "compiled"} | made | {"multipart": None})
save("map.json", models)
save("names.json", {"models": [{"id": "one", "version": "v8"},
                               {"id": "two", "version": "v9"},
                               {"id": "src", "version": "v9"}]})
PY
python3 "$here/fabricate.py" cur 4 || exit 2
cp cur/.state/identity.json "$T/identity.json"
# old: such a workspace; init ARGUMENT...
old() { cd "$T" && rm -rf ws && python3 old.py "ws" && cd ws || exit 2; }
init() {
	run workspace-init -b names.json -m map.json -i "$T/identity.json" \
	    "$@" "$root"
}
graph() {
	run graph-gen -b names.json -m map.json -r results \
	    -i "$T/identity.json" all
	sed -n '1,3s/ *$//p' "$out"
}
old
init
exits 0 "a workspace of the Python pipeline"
prints '^compiled/one.pkl: adopted$' "... says what it adopts"
prints '^onnx/src: adopted$' "... sources without artifact too"
is "$(cd compiled && echo *)" "one.pkl two.pkl" "artifacts have their names"
is "$(cat compiled/one.pkl)" oneoneone "... and bytes"
is "$(graph)" "FETCH :=
COMPILE := one two src
READY := one two src" "sources are current, artifacts of an unknown compiler stale"
run graph-gen -b names.json -m map.json -r results -i "$T/identity.json" \
    -t why why/one
prints '^one: compile: compiler unknown$' "... says make why"
ok "the records" python3 - <<'PY'
import json
r = json.load(open("results/one_source.json"))
assert [f["component"] for f in r["files"]] == ["driving_vision",
                                                "driving_policy"]
assert [f["path"] for f in r["files"]] == [
    "onnx/one/one_driving_vision.onnx", "onnx/one/one_driving_policy.onnx"]
assert all(f["git_path"].endswith(".onnx") for f in r["files"])
assert r["key_lines"][-1] == "commit=" + r["ref"]
a = json.load(open("results/one_artifact.json"))
assert a["path"] == "compiled/one.pkl" and a["size"] == 9
assert a["status"] == "compiled" and "key" not in a
PY
find . -type f -exec sha256sum {} + | sort >"$T/before"
init
exits 0 "again"
is "$(cat "$out")" "" "... there is nothing to be adopted"
find . -type f -exec sha256sum {} + | sort >"$T/after"
same "$T/before" "$T/after" "... changes nothing"

# trusted, at once or later
init -t
exits 0 "-t afterwards"
prints "^compiled/one.pkl: trusted as made by today's compiler\$" "... says so"
is "$(graph)" "FETCH :=
COMPILE := src
READY := one two src" "trusted artifacts are current"
old
init -t
exits 0 "-t at once"
is "$(graph)" "FETCH :=
COMPILE := src
READY := one two src" "... the same"
old
init
printf 'one polixy' >onnx/one/one_driving_policy.onnx
printf two2two >compiled/two.pkl
init -t
prints '^compiled/one.pkl: not trusted: its sources are not staged as recorded$' \
    "-t: a source that has rotted since"
prints '^compiled/two.pkl: not trusted: its digest is not the recorded one$' \
    "-t: an artifact that has rotted since"
old
sed -i '/"one"/s/"one"/"onx"/' names.json
rm onnx/two/*
init -t
prints '^compiled/one.pkl: not trusted: no manifest has its version$' \
    "-t: no version"
prints '^compiled/two.pkl: not trusted: its sources are not staged as recorded$' \
    "-t: no sources"
old
init -t -i nowhere.json
exits 2 "-t without an identity"
is "$(cd compiled && echo *)" "one_driving_tinygrad.pkl two_driving_tinygrad.pkl" \
    "... nothing is renamed"
echo '{}' >"$T/none.json"
init -t -i "$T/none.json"
exits 2 "-t with an identity of nobody"
run workspace-init -t -b names.json -m map.json "$root"
exits 2 "-t without -i"

# what is not adopted
old
printf x >>compiled/one_driving_tinygrad.pkl
init
exits 1 "an artifact of another digest"
says '^workspace-init: compiled/one_driving_tinygrad.pkl: sha256 is [0-9a-f]{64}, its record says "[0-9a-f]{64}": left as it is$' \
    "... both digests are named"
is "$(cd compiled && echo *)" "one_driving_tinygrad.pkl two.pkl" \
    "... it keeps its name, the other is adopted"
ok "the folder is a workspace all the same" test -e .model-rebuild
old
rm results/one_artifact.json
init
exits 1 "an artifact without a record"
says '^workspace-init: compiled/one_driving_tinygrad.pkl: no record' "... is named"
old
cp compiled/one_driving_tinygrad.pkl compiled/one.pkl
init
exits 1 "an artifact under both names"
says 'compiled/one.pkl is there already: remove one$' "... is named"
old
for name in ._one_driving_tinygrad.pkl .DS_Store; do echo x >"compiled/$name"; done
cp compiled/one_driving_tinygrad.pkl "compiled/a b_driving_tinygrad.pkl"
cp compiled/one_driving_tinygrad.pkl compiled/_driving_tinygrad.pkl
cp compiled/one_driving_tinygrad.pkl "compiled/-x_driving_tinygrad.pkl"
init
exits 1 "names without an id"
is "$(grep -c 'its name holds no model id: left as it is' "$err")" 2 \
    "... are named; litter is not looked at"
old
printf rot >onnx/one/one_driving_policy.onnx
init
exits 0 "a staged file of another digest"
is "$(graph)" "FETCH := one
COMPILE := one two src
READY := one two src" "... is fetched again"

# records of strangers
h=$(printf 'one vision' >"$T/v"; sum "$T/v")
for files in '[]' '{}' '1' '[1]' '["x"]' '[[]]' '[{}]' '[{"": {}}]' 'null' \
    '[{"component": "../../x.onnx", "sha256": "'"$h"'"}]' \
    '[{"component": ".onnx"}]' '[{"component": 1}]' \
    '[{"component": "driving_vision.onnx", "sha256": 1}]' \
    '[{"component": "driving_vision.onnx", "sha256": "'"$h"'"}, 1]'; do
	old
	printf '{"ref": "%040d", "input_format": "split", "files": %s}' 0 \
	    "$files" >results/one_source.json
	cp results/one_source.json "$T/before"
	init
	exits 0 "files $files"
	same "$T/before" results/one_source.json "... are left alone"
done
for change in 's/"ref": "[0-9a-f]*"/"ref": "master"/' 's/"split"/"onnx"/'; do
	old
	sed -i "$change" results/one_source.json
	cp results/one_source.json "$T/before"
	init
	same "$T/before" results/one_source.json "$change: left alone"
done
for text in '' '[]' '1' '{' '"x"' '{"sha256": 1}' '{"sha256": "../x"}'; do
	old
	printf '%s' "$text" >results/one_artifact.json
	printf '%s' "$text" >results/two_source.json
	init -t
	exits 1 "records $text"
	is "$(cd compiled && echo *)" "one_driving_tinygrad.pkl two.pkl" \
	    "... the artifact keeps its name"
done

# killed between rename and record: only work is lost
old
mv compiled/one_driving_tinygrad.pkl compiled/one.pkl
init
exits 0 "a run after one that was killed"
is "$(graph | sed -n 2p)" "COMPILE := one two src" "... the artifact is stale"
init -t
is "$(graph | sed -n 2p)" "COMPILE := src" "... or trusted"

# no space
mkdir "$T/full" && cd "$T/full" || exit 2
run sh -c "trap '' XFSZ; ulimit -f 1; exec workspace-init '$root'"
exits 2 "a full disk"
absent .model-rebuild "... no mark"
absent config.mk "... no half file"
finished
