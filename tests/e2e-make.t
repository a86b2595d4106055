#!/bin/sh
# The rules on real parts, with a stand-in for the compiler: what is run, what
# is not, and what a person is told.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
W="$T/my disk/ws"
mkdir "$T/my disk"
# shellcheck source=tests/pipeline.sh
. "$here/pipeline.sh"

# a disk that is not there is an error, not a new folder
run make -C "$root" all WORKSPACE="$T/unplugged/ws"
exits 2 'a missing workspace is refused'
says 'no such folder' 'and says so'
absent "$T/unplugged" 'nothing was made'
mkdir "$T/plain"
run make -C "$root" all WORKSPACE="$T/plain"
exits 2 'an unmarked folder is refused'
says 'make init' 'and says what to do'
is "$(ls -A "$T/plain")" '' 'nothing was made in it'

pipeline_up
sed -i 's|^SOURCE_MAPS.*|SOURCE_MAPS ?= ../../map.json|' "$W/config.mk"

run mk plan
exits 0 'plan'
prints '3 to fetch, 3 to compile, 3 to split' 'plan counts'

run mk -n all
exits 0 'make -n'
prints 'source-fetch .* demo-split [0-9a-f]{40}' 'a dry run shows the fetch'
prints 'remote-compile .* -f split -v v11 demo-split' '... and the compile'
is "$(ls "$W/onnx")" '' 'a dry run writes nothing'

run mk -j4 all
exits 0 'all'
prints '^demo-split .*/9 .*fetch' 'a line for each stage'
is "$(compiles)" 3 'three compiles'
cat >"$T/records.py" <<'EOF'
import hashlib, json, os, sys
w, i = sys.argv[1:]
def sha(p):
    with open(os.path.join(w, p), 'rb') as f: return hashlib.sha256(f.read()).hexdigest()
s = json.load(open(f'{w}/results/{i}_source.json'))
assert list(s)[:5] == ['id', 'ref', 'input_format', 'uses_external_gpu', 'files'], list(s)
for f in s['files']:
    assert list(f) == ['component', 'git_path', 'path', 'size', 'sha256'], list(f)
    assert f['path'] == f"onnx/{i}/{i}_{f['component']}.onnx"
    assert sha(f['path']) == f['sha256']
a = json.load(open(f'{w}/results/{i}_artifact.json'))
assert list(a)[:6] == ['id', 'status', 'path', 'size', 'sha256', 'multipart'], list(a)
assert sha(a['path']) == a['sha256'] and a['multipart'] is False
for r in (s, a, a['ready']):
    assert hashlib.sha256(''.join(l + '\n' for l in r['key_lines']).encode()).hexdigest() == r['key']
text = open(f'{w}/results/{i}_artifact.json').read()
assert text.endswith('}\n') and text.startswith('{\n  "id"')
EOF
for id in demo-split demo-multi demo-combo; do
	ok "$id: records agree with hashlib" python3 "$T/records.py" "$W" $id
done
digests >"$T/first"

run mk -j4 all
exits 0 'all again'
prints '3 current, nothing to do' 'nothing is done twice'
is "$(compiles)" 3 'no compile'
is "$(wc -l <"$W/.state/done" | tr -d ' ')" 0 'no step ran'

# dates: an hour either way, 1980, tomorrow
for d in '1 hour ago' '1980-01-01' 'tomorrow'; do
	find "$W" -exec touch -d "$d" {} +
	run mk plan
	prints '^0 to fetch, 0 to compile, 0 to split' "dates of $d: no effect"
done

# a version: one compile, no fetch
sed -i 's/"v12"/"v13"/' "$T/names.json"
run mk why/demo-multi
prints 'compile: version: was v12, is v13' 'why names the version'
: >"$device/calls"
run mk all
exits 0 'a changed version'
is "$(cut -d' ' -f1,2 "$W/.state/done" | sort | tr '\n' ,)" \
    'demo-multi compile,demo-multi ready,' 'exactly that model'

# the compiler: all models, no fetch
echo 'rev = 2' >"$device/tinygrad_repo/tinygrad/__init__.py"
: >"$device/calls"
run mk -j2 all
exits 0 'a changed tinygrad'
is "$(compiles)" 3 'compiles all'
is "$(grep -c ' fetch ' "$W/.state/done")" 0 'fetches none'

# a part size: split anew, nothing recompiled
: >"$device/calls"
run mk all SPLIT_LIMIT=1000 PART_SIZE=1000
exits 0 'a smaller limit'
is "$(compiles)" 0 'recompiles nothing'
is "$(cd "$W/ready-for-resources" && cat demo-combo_driving_tinygrad.pkl.p0? | sha256sum | cut -c1-64)" \
    "$(sum "$W/compiled/demo-combo.pkl")" 'the parts join to the artifact'
is "$(cd "$W/ready-for-resources" && python3 -c 'import json; print([(e["id"], len(e["parts"])) for e in json.load(open("multipart.json"))])')" \
    "[('demo-combo', 5), ('demo-multi', 5), ('demo-split', 5)]" 'multipart.json lists them'
run mk verify
exits 0 'verify joins parts'
printf X | dd of="$W/ready-for-resources/demo-split_driving_tinygrad.pkl.p01" bs=1 seek=9 conv=notrunc 2>/dev/null
run mk verify
exits 2 'a flipped byte in a part'
says 'ready-for-resources/demo-split_driving_tinygrad.pkl: sha256 is' 'is found'
run mk all
exits 0 'the limit back'
is "$(cat "$W/ready-for-resources/multipart.json")" '[]' 'multipart.json is empty again'
is "$(ls "$W/ready-for-resources")" 'demo-combo_driving_tinygrad.pkl
demo-multi_driving_tinygrad.pkl
demo-split_driving_tinygrad.pkl
multipart.json' 'no part stays'

# a ref with the same bytes: fetched, not compiled; with other bytes: compiled
tree=$(git --git-dir="$up/upstream.git" rev-parse 'split^{tree}')
same=$(git --git-dir="$up/upstream.git" -c user.name=u \
    -c user.email=u@example.invalid commit-tree -m same "$tree")
git --git-dir="$up/upstream.git" update-ref refs/heads/same "$same"
old=$(sed -n 's/^split //p' "$up/refs")
sed -i "s/$old/$same/" "$T/map.json"
: >"$device/calls"
run mk why/demo-split
prints "fetch: commit: was $old, is $same" 'why names the commit'
run mk all
exits 0 'a ref with the same bytes'
is "$(compiles)" 0 'is not compiled'
sed -i "s/$same/$(sed -n 's/^multi //p' "$up/refs")/" "$T/map.json"
run mk all
exits 0 'a ref with other bytes'
is "$(compiles)" 1 'is compiled, and nothing else'
is "$(ls "$W/onnx/demo-split")" 'demo-split_driving_off_policy.onnx
demo-split_driving_on_policy.onnx
demo-split_driving_vision.onnx' 'components of the old ref are gone'
cp "$up/map.json" "$T/map.json"

# force
: >"$device/calls"
run mk force/demo-combo
exits 0 'force/ID'
is "$(compiles)" 1 'compiles one model though nothing changed'

# a truncated product, and verify
: >"$W/compiled/demo-combo.pkl"
run mk plan
prints 'compiled/demo-combo.pkl: 0 bytes, wanted' 'a truncated artifact is stale'
run mk all
exits 0 'made again'
run mk verify
exits 0 'verify'
printf X | dd of="$W/compiled/demo-combo.pkl" bs=1 seek=9 conv=notrunc 2>/dev/null
run mk verify
exits 2 'verify finds a flipped byte'
says 'compiled/demo-combo.pkl' 'and names the file'
run mk force/demo-combo
exits 0 'made good by force'

# names that are no models
run mk compiled/nosuch.pkl
exits 2 'an unknown id'
says 'no model "nosuch"' 'is named'
touch "$W/compiled/x.pkl"
run mk compiled/x.pkl
exits 2 'a stray file is no model'
says 'compiled/x.pkl.*remove it' 'and is named'
run mk status
says 'compiled/x.pkl: belongs to no model' 'status names it'
rm "$W/compiled/x.pkl"

# one model fails: the others go on, the end is not 0, the record says why
sed -i 's/"v11"/"v14"/; s/"v13"/"v12"/' "$T/names.json"
: >"$device/fail"
run mk -j2 all
exits 2 'a failing compile'
says 'demo-split .*failed' 'is said'
is "$(python3 -c 'import json,sys; r=json.load(open(sys.argv[1])); print(list(r), r["status"], r["stage"], r["exit_status"])' "$W/results/demo-split_failure.json")" \
    "['id', 'status', 'error', 'stage', 'exit_status', 'log_tail'] failed compile 1" 'the failure record'
run mk status
prints 'demo-split .*failed' 'status shows it'
rm "$device/fail"
run mk all
exits 0 'after the cause is gone'
absent "$W/results/demo-split_failure.json" 'the record is gone'

# two runs
flock -o "$W/.state/lock" sleep 30 & later $!
holder=$!
sleep 0.2
run mk all
exits 2 'a second run'
says 'held|lock' 'says that the workspace is held'
run mk status
exits 0 'status works meanwhile'
kill $holder
wait $holder 2>/dev/null

# goals that do not go together; a dry run of what writes
run mk why/demo-combo all
exits 2 'why with another goal'
says 'cannot be combined' 'is refused'
run mk status plan
exits 2 'two reports at once are refused'
before=$(find "$W" -newer "$W/.model-rebuild" | wc -l)
run mk -n pin/demo-combo
exits 0 'a dry run of pin'
is "$(find "$W" -newer "$W/.model-rebuild" | wc -l)" "$before" 'writes nothing'

# the summary goes to NOTIFY, also when nothing was done
run mk all NOTIFY="cat >'$T/notified'"
exits 0 'NOTIFY'
is "$(cat "$T/notified")" '3 current, nothing to do' 'gets the summary'

# the same targets inside the workspace
run make -C "$W" --no-print-directory why/demo-combo
exits 0 'make inside the workspace'
prints 'demo-combo: ready: current' 'knows its models'
finished
