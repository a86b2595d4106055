#!/bin/sh
# manifest-gen against Python's json: the same bytes, and what is refused.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common manifest-gen
# shellcheck disable=SC2154 # here and root are of lib.sh
catalog=$root/catalog
oracle() { python3 "$here/manifest.py" "$@"; }
mkdir r

for words in '' '-b x' '-r r' '-b x -r' '-b x -r r y' '-b x -r r -U y'; do
	# shellcheck disable=SC2086 # words
	run manifest-gen $words
	exits 2 "called wrongly: manifest-gen $words"
done

# the published files, fed through: nothing was built, all is kept
for f in "$catalog/model_names_v21.json" "$catalog/model_names_extra.json" \
    "$here/data/model_names_v23_migrated.json"; do
	run manifest-gen -aq -b "$f" -r r
	exits 0 "${f##*/} fed through"
	same "$out" "$f" 'the same bytes'
	is "$(cat "$err")" '' 'quietly'
done
f=$here/data/model_names_v22.json
run manifest-gen -aq -b "$f" -r r
oracle gen unbuilt "$f" -- -- r >want
same "$out" want 'v22: the same but for the entry that is there twice'
is "$(grep -c '"id": "deeprl3"' "$f" "$out" | cut -d: -f2 | tr '\n' ' ')" '2 1 ' \
    'which is written once'
run manifest-gen -aq -b "$out" -r r
# shellcheck disable=SC2016
ok 'a bare list is read' sh -c 'python3 -c "import json, sys
json.dump(json.load(open(sys.argv[1]))[\"models\"], open(\"list\", \"w\"))" "$1" &&
    manifest-gen -aq -b list -r r >got && manifest-gen -aq -b "$1" -r r | cmp - got' sh \
    "$catalog/model_names_v21.json"

# values that a careless writer changes
cat >odd.json <<'JSON'
{"note": "kept \ud83d\udc40", "models": [
 {"version": "", "zz": {"b": [1, {"a": []}], "a": {}}, "id": "a\u0062",
  "name": "\"\\\/\b\f\n\r\t\u0001\u001f\u007f\u00e9€👀\u2028", "\u006eumbers": [0, -0, -0.0,
  1.0, 1E3, 1e16, 1e22, 0.0001, 1e-5, 123456789.25, 0.1, 5e-324, 1.7976931348623157e308,
  9007199254740992, 9007199254740993, -9007199254740992, 123456789012345678901234567890],
  "t": [true, false, null], "\ud83d\udc40": "" }], "z": 1.5}
JSON
run manifest-gen -aq -b odd.json -r r
exits 0 'odd values'
oracle gen unbuilt odd.json -- -- r >want
same "$out" want 'as Python writes them'
python3 - <<'EOP'
import json, random, struct
r = random.Random(22)
def text(): return "".join(r.choice(["a", '"', "\\", "\n", "\x7f", "\x1f", "é", "€", "👀", "\u2028", "\ud7ff", "\ue000", "\U0010ffff", "/"]) for _ in range(r.randrange(9)))
def number():
    while True:
        x = struct.unpack("d", r.randbytes(8))[0]
        if x == x and abs(x) != float("inf"): return x
def value(d):
    k = r.randrange(9 if d < 4 else 6)
    if k == 0: return r.randrange(-2**53, 2**53 + 1)
    if k == 1: return number()
    if k == 2: return round(r.random() * 10 ** r.randrange(-6, 20), r.randrange(9))
    if k == 3: return text()
    if k == 4: return r.choice([True, False, None])
    if k == 5: return r.choice([[], {}])
    if k < 8: return [value(d + 1) for _ in range(r.randrange(4))]
    return {text(): value(d + 1) for _ in range(r.randrange(4))}
models = [{"id": f"m{i}", "version": "v1", "name": text(), "x": value(0), "y": value(0), text() + "k": value(0)} for i in range(2000)]
for name, ascii_, indent in ("raw", False, None), ("escaped", True, 1):
    with open(name + ".json", "w", encoding="utf-8") as f: json.dump({"models": models}, f, ensure_ascii=ascii_, indent=indent)
with open("want", "w", encoding="utf-8") as f: f.write(json.dumps({"models": models}, ensure_ascii=False, indent=2) + "\n")
EOP
for f in raw escaped; do
	run manifest-gen -aq -b $f.json -r r
	same "$out" want "2,000 entries at random, $f: as Python writes them"
done

# refused: one line, the file first, both places
refused() {	# TEXT REGEX JSON
	printf '%s' "$3" >bad.json
	run manifest-gen -aq -b bad.json -r r
	exits 1 "$1 is refused"
	says "^manifest-gen: bad.json: $2" 'and says why'
	is "$(wc -l <"$err" | tr -d ' ') $(wc -c <"$out" | tr -d ' ')" '1 0' 'in one line'
}
refused 'a lone surrogate' 'line 1: .*lone surrogate' '[{"id": "a", "version": "", "n": "\ud83d"}]'
refused 'a low surrogate' 'line 1: .*lone surrogate' '[{"id": "a", "version": "", "n": "\udc40x"}]'
refused 'a duplicate that differs' 'entries 1 and 3 are a and a, and differ' \
    '[{"id": "a", "version": ""}, {"id": "b", "version": ""}, {"id": "a", "version": "v1"}]'
refused 'an id in two cases' 'entries 1 and 2 are Ab and aB, and differ' \
    '[{"id": "Ab", "version": ""}, {"id": "aB", "version": ""}]'
refused 'a duplicate key' 'line 1: key "id" was on line 1' '[{"id": "a", "id": "a", "version": ""}]'
refused 'an id that is a path' 'entry 1: id is "../a", wanted a model id' '[{"id": "../a", "version": ""}]'
refused 'no id' 'entry 1: id is missing' '[{"version": ""}]'
refused 'a number as id' 'entry 1: id is 7, wanted' '[{"id": 7, "version": ""}]'
refused 'no version' 'a: version is missing, wanted' '[{"id": "a"}]'
refused 'a version with a blank' 'a: version is "v1 ", wanted' '[{"id": "a", "version": "v1 "}]'
refused 'an entry that is no object' 'entry 2: wanted an object' '[{"id": "a", "version": ""}, 3]'
refused 'no list' 'wanted .*models' '{"models": {}}'
refused 'no models' 'wanted .*models' '{"model": []}'
refused 'a word' 'wanted .*models' '"models"'
refused 'nothing' 'line 1: not JSON: empty' ''
printf '[{"id": "a\\u0062", "version": "v1", "n": [1, {"x": null}]}]' >whole
i=0 n=$(wc -c <whole) bad=
while [ "$i" -lt "$n" ]; do
	head -c "$i" whole >prefix
	run manifest-gen -aq -b prefix -r r
	[ "$status" -eq 1 ] || bad="$bad $i:$status"
	i=$((i + stride))
done
is "$bad" '' 'every prefix of a manifest is refused'
run manifest-gen -a -b missing -r r
exits 1 'a missing base'
says '^manifest-gen: missing: No such file' 'is named'

# a workspace of four models: one in parts, one for the external GPU
python3 "$here/fabricate.py" ws 4
cd ws || exit 2
cat >base.json <<'JSON'
{"models": [{"id": "big", "version": "v2", "name": "👀", "artifact_url": "https://x/big.pkl", "artifact_urls": ["a"], "artifact_sha256": "old", "artifact_size": 3, "artifact_format": "f"},
 {"id": "gone", "version": "v1"},
 {"id": "one", "version": "v0", "artifact_url": "https://x/one.pkl", "k": 1}]}
JSON
cat >extra.json <<'JSON'
[{"id": "one", "version": "v9"}, {"id": "gpu", "version": "v3", "uses_external_gpu": false, "z": 0}, {"id": "other", "version": ""}, {"id": "two", "version": "v1"}]
JSON
gen() { run manifest-gen -b base.json -b extra.json -m map.json -r results "$@"; }
gen
exits 0 'a manifest of four'
says '^manifest-gen: 1 not built, left out: gone$' 'what was not built is named'
oracle gen base.json extra.json -- map.json -- results >want
same "$out" want 'is what Python makes of it'
is "$(python3 -c 'import json, sys
for m in json.load(sys.stdin)["models"]: print(m["id"], *list(m)[2:], end=";")' <"$out")" \
    'big name artifact_url;one k;gpu uses_external_gpu z;two;' 'order and members'
gen -a
says '^manifest-gen: 1 not built, kept: gone$' 'kept with -a'
oracle gen unbuilt base.json extra.json -- map.json -- results >want
same "$out" want '... as Python does'
gen -d
oracle gen digests base.json extra.json -- map.json -- results >want
same "$out" want 'with digests'
gen -M
exits 0 'multipart.json'
same "$out" ready-for-resources/multipart.json 'is that of pkl-split'
gen -o got.json
same got.json - '-o' <<EOF
$(oracle gen base.json extra.json -- map.json -- results)
EOF
gen -o /dev/full
exits 2 'what is no file cannot be replaced'
manifest-gen -b base.json -m map.json -r results >/dev/full 2>"$err"
status=$?
exits 1 'a built model without an entry'
says '^manifest-gen: (gpu|two): it is built, and no manifest has an entry' 'is refused'
manifest-gen -b base.json -b extra.json -m map.json -r results >/dev/full 2>"$err"
status=$?
exits 2 'a lost write'

# an update changes what it names, or nothing
manifest-gen -qd -b base.json -b extra.json -m map.json -r results -o old.json
gen -d -U old.json one
exits 0 'an update that changes nothing'
same "$out" old.json 'gives the same'
edit() { python3 -c 'import json, sys
p, code = sys.argv[1:]
r = json.load(open(p)); exec(code); json.dump(r, open(p, "w"), indent=2)' "$1" "$2"; }
cp results/two_artifact.json keep.json
edit results/two_artifact.json 'r["size"] += 1'
gen -d -U old.json two
exits 0 'an update of a model that changed'
gen -d -U old.json one
exits 1 'an update that would change another'
says '^manifest-gen: old.json: two: would change, and was not named$' 'names it'
is "$(cat "$out")" '' 'and writes nothing'
mv results/two_artifact.json .
gen -d -U old.json one
exits 1 'an update that would lose another'
says 'old.json: has two where nothing is made' 'names it'
cp keep.json results/two_artifact.json
edit old.json 'r["models"].reverse()'
gen -d -U old.json one
exits 1 'an update that would change the order'

# records
edit results/two_artifact.json 'r["ready"]["name"] = "ONE_driving_tinygrad.pkl"'
gen
exits 1 'two artifacts with one file name'
says '_driving_tinygrad.pkl: the file of both (one|two), sha256 .*, and (one|two), sha256 ' 'names both'
cp keep.json results/two_artifact.json
for code in 'r["id"] = "one"' 'r["sha256"] = "x"' 'r["size"] = 0' 'del r["size"]'; do
	edit results/two_artifact.json "$code"
	gen
	exits 1 "a record where $code"
	says '^manifest-gen: results/two_artifact.json: ' 'is named'
	cp keep.json results/two_artifact.json
done
echo '{' >results/two_artifact.json
gen
exits 1 'a record that is no JSON'
says '^manifest-gen: results/two_artifact.json: line' 'is named'
edit map.json 'pass' 2>/dev/null
cp keep.json results/two_artifact.json
edit results/big_artifact.json 'del r["ready"]'
gen -M
exits 1 'parts that nobody counted'
says '^manifest-gen: big: .*make ready/big$' 'say what to do'
cd .. || exit 2
finished
