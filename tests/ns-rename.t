#!/bin/sh
# ns-rename: the published release from the published names; plans that are
# proven; folders, killed at every step.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common ns-rename
v22=$here/data/model_names_v22.json v23=$here/data/model_names_v23_migrated.json
unbuilt='deeprl33 rl34 drl nopp tobyrl michael-rl michael-rl2 karnbir karnbir2'
oracle() { python3 "$here/ns-rename.py" "$@"; }
# from FILE ARGUMENT...: ns-rename with the file as its input
from() { file=$1; shift; run ns-rename "$@" <"$file"; }
# equal DIR DIR TEXT
equal() {
	if diff -r "$1" "$2" >"$out" 2>&1; then pass "$3"
	else fail "$3" "$(cat "$out")"; fi
}

for words in '' '-s 3 x' '-s' '-C d -s 3' '-o o -s 3' '-s 3 --only' '-s 3 -p x' \
    '-s 3 -v 23' '-s 3 -v v' '-s 3 -v v12345'; do
	# shellcheck disable=SC2086 # words
	from "$v22" $words
	exits 2 "called wrongly: ns-rename $words"
done
from "$v22" -s ''
exits 2 'an empty suffix'

# shellcheck disable=SC2086 # words
python3 "$here/manifest.py" without $unbuilt <"$v22" >built.json
from built.json -s 3 -v v23 -k idmap
exits 0 'the published v22 names without those that were not built'
same "$out" "$v23" 'become the published v23 file, byte for byte'
is "$(python3 -c 'import json, sys
m = json.load(open("idmap")); was = json.load(open("built.json"))["models"]
print(len(m), all(m[e["id"]] == e["id"] + "3" for e in was), open("idmap").read() == json.dumps(m, indent=2) + "\n")')" \
    '62 True True' 'the id map'
from "$v22" -s 3 -n
exits 0 'the plan of all'
is "$(grep -c '^id ' "$out") $(sed -n 's/^id .* -> //p' "$out" | tr '[:upper:]' '[:lower:]' | sort -u | wc -l | tr -d ' ') $(grep -c _ "$out")" \
    '71 71 0' '71 ids, all of them different, none with _'
is "$(grep -E '^id deeprl33? ' "$out" | tr '\n' ,)" 'id deeprl3 -> deeprl33,id deeprl33 -> deeprl333,' \
    'the chain'
cp "$out" plan
from "$v22" -p plan
exits 0 'a plan is applied'
cp "$out" by-plan
from "$v22" -s 3
same "$out" by-plan 'with the same result'
python3 "$here/manifest.py" rename 3 <"$v22" >want
same "$out" want 'and as Python does it'
from "$v22" -s 3 -n --only pop22 nn222
is "$(grep -c '^keep ' "$out"),$(grep '^id ' "$out" | tr '\n' ,)" '69,id nn222 -> nn2223,id pop22 -> pop223,' \
    '--only names what is renamed'
from "$v22" -s 3 --only pop22 nn222
python3 "$here/manifest.py" rename 3 pop22 nn222 <"$v22" >want
same "$out" want '... and nothing else changes'
ns-rename -s 3 <"$v22" >/dev/full 2>"$err"; status=$?
exits 2 'a lost write'
from "$v22" -s 3 -k /dev/full
exits 2 'an id map that cannot be written'

# refused: status 1, one line, nothing on standard output
refused() { # TEXT REGEX MANIFEST ARGUMENT...
	text=$1 regex=$2
	printf '%s' "$3" >bad.json
	shift 3
	from bad.json "$@"
	exits 1 "$text is refused"
	says "^ns-rename: $regex" 'and says why'
	is "$(wc -l <"$err" | tr -d ' ') $(wc -c <"$out" | tr -d ' ')" '1 0' 'in one line'
}
refused 'a new id that is one already' 'deeprl33: would be the id of both ' \
    '[{"id": "deeprl3", "version": ""}, {"id": "deeprl33", "version": ""}]' -s 3 --only deeprl3
refused 'a new id that differs in case' '(PoP3|pop3): would be the id of both ' \
    '[{"id": "PoP", "version": ""}, {"id": "pop3", "version": ""}]' -s 3 --only PoP
refused 'an id that grows too long' "$(printf '%064d' 0): its new id would be" \
    "[{\"id\": \"$(printf '%064d' 0)\", \"version\": \"\"}]" -s 3
refused 'a suffix that is no name' 'a: its new id would be "a/"' '[{"id": "a", "version": ""}]' -s /
refused '--only of an id that is not there' 'b: --only names it' '[{"id": "a", "version": ""}]' -s 3 --only b
refused 'a lone surrogate' 'standard input: line 1: .*surrogate' '[{"id": "a", "version": "", "n": "\ud83d"}]' -s 3
printf 'ns-rename plan 1\nid a -> a3\nend\n' >p1
refused 'a plan that lacks an id' 'p1: says nothing of b' '[{"id": "a", "version": ""}, {"id": "b", "version": ""}]' -p p1
i=0 n=$(wc -c <p1) bad=
echo '[{"id": "a", "version": ""}]' >a.json
while [ "$i" -lt "$n" ]; do
	head -c "$i" p1 >prefix
	from a.json -p prefix
	[ "$status" -eq 1 ] || bad="$bad $i:$status"
	i=$((i + stride))
done
is "$bad" '' 'every prefix of a plan is refused'
for line in 'id ../a -> b' 'id a -> ../b' 'file x -> y' 'litter x' 'litter ._/../x' \
    'file a_driving_tinygrad.pkl -> ../b_driving_tinygrad.pkl' 'id a' 'x a -> b' 'id b -> a3' ''; do
	printf 'ns-rename plan 1\nid a -> a3\n%s\nend\n' "$line" >p2
	from a.json -p p2
	exits 1 "a plan with the line '$line'"
	is "$(wc -l <"$err" | tr -d ' ')" 1 'is refused in one line'
done

# into another folder: sources stay, blocks are shared where the disk can
ids='deeprl3 deeprl33 deeprl333x one two Three'
# shellcheck disable=SC2086
python3 -c 'import json, sys
json.dump({"models": [{"id": i, "version": "v1", "name": "👀 " + i, "artifact_url": "https://x/" + i} for i in sys.argv[1:]]},
    open("manifest.json", "w"), ensure_ascii=False)' $ids
# shellcheck disable=SC2086
oracle make ready $ids stray
cp -R ready keep
rm want
: >ready/._one_driving_tinygrad.pkl; : >ready/.DS_Store
oracle want ready want 3 v23 <manifest.json
from manifest.json -s 3 -v v23 -C ready -o got -k idmap
exits 0 'into a folder'
equal got want 'as the rules have it'
is "$(stat -c %h ready/two_driving_tinygrad.pkl got/two3_driving_tinygrad.pkl | sort -u | grep -vc '[12]')" 0 'without a second copy, or with one'
rm ready/._* ready/.DS_Store
equal ready keep 'the sources stay'
# shellcheck disable=SC2016
ok 'the digests hold' sh -c 'cd got && for f in *.sha256; do sha-verify -q "$f" || exit 1; done'
from manifest.json -s 3 -v v23 -C ready -o got
exits 2 'a folder that is not empty'
says '^ns-rename: got: has .* in it, wanted an empty folder' 'is refused'
rm -rf got want
oracle want ready want 3 v23 one <manifest.json
from manifest.json -s 3 -v v23 -C ready -o got --only one
exits 0 'into a folder, --only'
equal got want 'what keeps its id comes along'
rm -rf got want
from manifest.json -s 3 -v v23 -C nowhere -o got
exits 2 'a missing folder'
absent got 'and nothing is made'
f=two_driving_tinygrad.pkl
rm ready/$f && mkdir ready/$f
from manifest.json -s 3 -v v23 -C ready -o got
exits 1 'a folder in place of a file'
says "ready/$f: not a regular file" 'is named'
rmdir ready/$f && cp keep/$f ready
for text in '' x "$(printf '%064d' 0)  x" "$(printf '%064d' 0)  deeprl3_driving_tinygrad.pkl"; do
	printf '%s\n' "$text" >ready/deeprl33_driving_tinygrad.pkl.sha256
	from manifest.json -s 3 -v v23 -C ready -o got
	exits 1 "a .sha256 that is '$text'"
	says '^ns-rename: ready/deeprl33_driving_tinygrad.pkl.sha256: wanted 64 hex' 'is named'
done
cp keep/*.sha256 ready
for text in '' '{}' '[{}]' '[{"id": "one", "filename": "two_driving_tinygrad.pkl", "parts": []}]' \
    '[{"id": "one", "filename": "one_driving_tinygrad.pkl", "parts": ["../x"]}]'; do
	printf '%s\n' "$text" >ready/multipart.json
	from manifest.json -s 3 -v v23 -C ready -o got
	exits 1 "a multipart.json that is '$text'"
	says '^ns-rename: ready/multipart.json: ' 'is named'
done
rm ready/multipart.json
from manifest.json -s 3 -v v23 -C ready -o got
exits 1 'parts without multipart.json'
absent got 'nothing was made'
cp keep/multipart.json ready

# in place
oracle want ready want 3 v23 <manifest.json
# shellcheck disable=SC2086
oracle make before $ids stray
for f in before/stray*; do cp "$f" want; done
python3 - <<'EOP'
import json
m = json.load(open("before/multipart.json")); w = json.load(open("want/multipart.json"))
w += [e for e in m if e["id"] == "stray"]; w.sort(key=lambda e: e["id"])
open("want/multipart.json", "w").write(json.dumps(w, indent=2) + "\n")
EOP
: >before/._one; : >before/.DS_Store; : >want/.DS_Store
cp -R before now
from manifest.json -s 3 -v v23 -C now -n
exits 0 'the plan of a folder'
cp "$out" plan
prints '^litter \._one$' 'names litter'
prints '^file deeprl33_driving_tinygrad.pkl.p00 -> deeprl333_driving_tinygrad.pkl.p00$' 'and files'
equal before now 'and changes nothing'
echo x >now/one_driving_tinygrad.pkl
from manifest.json -p plan -C now
exits 1 'a plan of a folder that has changed'
says '^ns-rename: plan: is not what would be done in now now' 'is refused'
rm now/one_driving_tinygrad.pkl
from manifest.json -p plan -C now -k idmap
exits 0 'a plan is applied in place'
mv now/.ns-rename.done marker
equal now want 'with the chain right'
mv marker now/.ns-rename.done
from manifest.json -s 3 -v v23 -C now
exits 0 'once more'
mv now/.ns-rename.done marker
equal now want 'changes nothing'
mv marker now/.ns-rename.done
cp before/two_driving_tinygrad.pkl now
from manifest.json -s 3 -v v23 -C now
exits 1 'an artifact that is there again'
says '^ns-rename: now/two_driving_tinygrad.pkl: was renamed before, and is there again' 'is refused'
ok 'killed at every change and run again, twice: always right' \
    oracle kill ns-rename -s 3 -v v23 -C now -k idmap
echo "# $(cat "$out") changes"
rm -rf now && cp -R before now
killat 30 ns-rename -s 3 -v v23 -C now <manifest.json
for words in '-s 4 -v v23' '-s 3 -v v24' '-s 3 -v v23 --only one'; do
	# shellcheck disable=SC2086
	from manifest.json -C now $words
	exits 1 "another renaming ($words) after a kill is refused"
	says '^ns-rename: now/.ns-rename.[12]: (another renaming was begun here|was begun for)' 'and named'
done
from manifest.json -p now/.ns-rename.1 -C now
exits 0 'the journal is a plan'
rm now/.ns-rename.done
equal now want 'which ends it'

# what is in the way: equal files are dropped, others refuse all
rm -rf now && cp -R before now
cp now/Three_driving_tinygrad.pkl.p00 now/Three3_driving_tinygrad.pkl.p00
sed 's/Three/Three3/' now/Three_driving_tinygrad.pkl.sha256 >now/Three3_driving_tinygrad.pkl.sha256
cp -R now keep2
from manifest.json -s 3 -v v23 -C now -n
prints '^equal Three_driving_tinygrad.pkl.p00 -> Three3_driving_tinygrad.pkl.p00$' 'an equal file is one'
from manifest.json -s 3 -v v23 -C now
exits 0 'equal files at the destination'
rm now/.ns-rename.done
equal now want 'are dropped'
for f in Three3_driving_tinygrad.pkl.p00 THREE3_driving_tinygrad.pkl.p01 Three3_driving_tinygrad.pkl Three3_driving_tinygrad.pkl.p09; do
	rm -rf now && cp -R keep2 now
	echo other >now/$f
	cp -R now was
	from manifest.json -s 3 -v v23 -C now
	exits 1 "another $f in the way"
	says "^ns-rename: now/$f: " 'is named'
	equal now was 'and nothing moved'
	rm -rf was
done

# reconciling: a table of ids, an entry that a release has besides
table() { cat >table.json; }
table <<'JSON'
{"rename": {"a": "ab", "ab": "abb", "two": "twox"}, "after": "Three3",
 "models": [{"id": "new3", "version": "v15", "name": "New 👀"}]}
JSON
ids() { python3 -c 'import json, sys
print(*(m["id"] for m in json.load(sys.stdin)["models"]))'; }
from manifest.json -s 3 -t table.json
exits 0 'a table beside a suffix'
is "$(ids <"$out")" 'deeprl33 deeprl333 deeprl333x3 one3 twox Three3 new3' \
    'has the last word, and its entry has its place'
from manifest.json -s 3 -v v23 -t table.json -C ready -o got
exits 0 'with a folder'
is "$(ids <got/model_names_v23.json)" 'deeprl33 deeprl333 deeprl333x3 one3 twox Three3' \
    'an entry without an artifact is not added'
from "$v22" -s 3 -t "$root/catalog/reconcile_v23.json" -n
cp "$out" with
from "$v22" -s 3 -n
same "$out" with 'the table of the catalog agrees with the suffix'
is "$(python3 -c 'import json, sys
r = json.load(open(sys.argv[1])); print(len(r["rename"]), all(v == k + "3" for k, v in r["rename"].items()), r["after"], r["models"])' \
    "$root/catalog/reconcile_v23.json")" \
    "29 True rdfv23 [{'id': 'rdf23', 'name': 'Regret Driven Framework V2 👀📡', 'version': 'v15', 'series': 'OP Series', 'released': '2026-08-10', 'community_favorite': False}]" \
    'and is the published one'
# a release that is in the namespace already, and sources that came later
oracle make late two x3 Three3 new3
python3 -c 'import json
json.dump([{"id": i, "version": "v1"} for i in ("x3", "Three3", "two")], open("late.json", "w"))'
: >late/._junk
from late.json -t table.json -v v23 -C late
exits 0 'a table alone, in place'
is "$(ids <late/model_names_v23.json)" 'x3 Three3 new3 twox' 'the manifest is brought into the namespace'
is "$(cd late && find . -name '*.pkl' -o -name '*.p00' -o -name '._*' | sort | tr '\n' ' ')" \
    './Three3_driving_tinygrad.pkl ./new3_driving_tinygrad.pkl.p00 ./twox_driving_tinygrad.pkl ./x3_driving_tinygrad.pkl.p00 ' \
    'and so are the files; litter is gone'
python3 -c 'import json
json.dump([{"id": i, "version": "v1"} for i in ("two", "Three3", "twox")], open("late.json", "w"))'
from late.json -t table.json
exits 0 'an entry under both names'
is "$(ids <"$out")" 'Three3 new3 twox' 'is one if they are equal'
echo '[{"id": "two", "version": "v1"}, {"id": "twox", "version": "v2"}]' >late.json
from late.json -t table.json
exits 1 'and refused if not'
says 'entry 1 is two and entry 2 is twox, and they differ' 'with both places'
echo '[{"id": "ab", "version": "v1"}]' >late.json
from late.json -t table.json
exits 1 'an id that may have been renamed before'
says '^ns-rename: ab: may be a, renamed already: .*--only' 'is refused'
from late.json -t table.json --only ab
is "$(ids <"$out")" 'abb new3' 'unless it is named'
for text in '[]' '{"models": []}' '{"rename": {"a": 1}, "models": []}' '{"rename": {"a": "../b"}, "models": []}' \
    '{"rename": [], "models": []}'; do
	echo "$text" | table
	from late.json -t table.json
	exits 1 "a table that is $text"
	says '^ns-rename: table.json: ' 'is named'
done
finished
