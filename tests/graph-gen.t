#!/bin/sh
# Which models are stale and why: content decides, dates never.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common graph-gen

python3 "$here/fabricate.py" base 4 || exit 2
# gg ARGUMENT...: with the settings that the products were made with
gg() {
	run graph-gen -b names.json -m map.json -r results \
	    -i .state/identity.json -l "${limit:-1000}" -z "${part:-400}" "$@"
}
# fresh: a workspace in which all is current
fresh() { cd "$T" && rm -rf ws && cp -a base ws && cd ws || exit 2; }
# stale TEXT FETCH COMPILE READY: exactly these are to be done, of all four
stale() {
	gg -g all
	is "$(sed -n '1,3s/ *$//p' "$out")" "FETCH :=${2:+ $2}
COMPILE :=${3:+ $3}
READY :=${4:+ $4}" "$1"
}
# why TEXT ID LINE: make why/ID says this
why() {
	gg -t why "why/$2"
	prints "^$2: $3" "$1: why/$2"
}
# rekey FILE NAME VALUE: the record of a product made with another value
rekey() {
	python3 - "$@" <<-'PY'
	import hashlib, json, sys
	path, name, value = sys.argv[1:]
	rec = json.load(open(path))
	at = rec["ready"] if name.startswith("ready.") else rec
	name = name.removeprefix("ready.")
	at["key_lines"] = [f"{name}={value}" if l.startswith(name + "=") else l
	                   for l in at["key_lines"]]
	text = "".join(l + "\n" for l in at["key_lines"])
	at["key"] = hashlib.sha256(text.encode()).hexdigest()
	json.dump(rec, open(path, "w"))
	PY
}

# ---- all is current ----
fresh
gg -g all
exits 0 "a current workspace"
is "$(cat "$out")" "FETCH :=
COMPILE :=
READY :=
GOALS := all
TOTAL := 0
CURRENT := 4" "nothing is to be done, and no model is listed"
gg all
prints '^CURRENT := 3$' "external-GPU models are left out of all"
gg compiled/gpu.pkl
prints '^CURRENT := 1$' "... but not where a goal names them"

# ---- the lines of the keys, each changed alone ----
# field FIELD FILE SED IDS: compile and ready of IDS are stale
field() {
	fresh
	sed -i "$3" "$2"
	stale "$1: exactly these are stale" "" "$4" "$4"
	why "$1" "${4##* }" "compile: $1: was .*, is "
}
all='one two big gpu' id=.state/identity.json
field version names.json '/"one"/,/version/s/v0/v9/' one
field image_history_pipeline $id 's/"policy"/"warp"/' "$all"
field backend $id 's/"tinygrad",/"other",/' "$all"
field device $id 's/"device": "CPU"/"device": "QCOM"/' "$all"
field driver $id 's/driver-1/driver-2/' "$all"
field tinygrad $id 's/0.14.0/0.13.0/' "$all"
field toolchain $id 's/tttt/xtttt/' "$all"
field python $id 's/3.11.2/3.12.0/' "$all"
field compiler $id 's/clang 14/clang 15/' "$all"
field cameras $id 's/1208/1209/' "$all"
field environment $id 's/"FLOAT16": "1"/"FLOAT16": "0"/' "$all"
fresh
sha=$(printf x | sum /dev/stdin)
sed -i "/driving_policy/,\$s/\"sha256\": \"[0-9a-f]*/\"sha256\": \"$sha/" \
    results/one_source.json
stale "a component of other bytes" "" one one
why "component" one "compile: driving_policy: was [0-9a-f]{64}, is $sha\$"
fresh
rekey results/big_artifact.json schema 0
stale "an older schema" "" big big
why schema big 'compile: schema: was 0, is 1$'

# fetch FIELD VALUE CHANGE...: fetch, so all, of model one is stale
fetch() {
	text=$1 line=$2
	shift 2
	fresh
	"$@"
	stale "$text: all of one is stale" one one one
	why "$text" one "fetch: $line"
	why "$text" one 'compile: its sources are to be fetched$'
	why "$text" one 'ready: its artifact is to be compiled$'
}
ref=$(sed -n 's/.*"ref": "\([^"]*\).*/\1/p' "$T/base/map.json" | head -1)
new=$(echo "$ref" | tr 0-9 1-90)
fetch commit "commit: was $ref, is $new\$" sed -i "s/$ref/$new/" map.json
fetch format 'format: was split, is supercombo$' \
    sed -i '3,5s/"split"/"supercombo"/' map.json
fetch gpu 'gpu: was 0, is 1$' \
    sed -i '4s/split",*/split", "uses_external_gpu": true/' map.json
fetch paths 'paths: was elsewhere, is openpilot/selfdrive' \
    rekey results/one_source.json paths elsewhere

fresh
limit=1001
stale "limit: all sets are to be made again" "" "" "$all"
why limit big 'ready: limit: was 1000, is 1001$'
limit=1000 part=399
stale "part: all sets are to be made again" "" "" "$all"
why part big 'ready: part: was 400, is 399$'
part=400
rekey results/one_artifact.json ready.artifact "$sha"
stale "the set of another artifact" "" "" one
why artifact one "ready: artifact: was $sha, is "
fresh
sed -i '/"key": /s/: "[0-9a-f]/: "x/' results/two_source.json
stale "a key that its lines do not give" two two two
why key two 'fetch: key: does not match its lines$'
fresh
python3 - <<'PY'
import json
rec = json.load(open("results/two_artifact.json"))
rec["key"] = "0" * 64
rec["key_lines"].append("gone=1")
json.dump(rec, open("results/two_artifact.json", "w"))
PY
why "a line that is no more" two 'compile: gone: was 1, is gone$'

# ---- the files, by size ----
# file FILE CHANGE FETCH COMPILE READY LINE: of model ID
file() {
	fresh
	case $2 in
	rm) rm "$1" ;;
	add) mkdir -p "$(dirname "$1")" && echo x >"$1" ;;
	*) truncate -s "$2" "$1" ;;
	esac
	stale "$1 ($2)" "$3" "$4" "$5"
	why "$1 ($2)" "${5}" "$6"
}
o=onnx/one/one_driving_vision.onnx c=compiled/big.pkl r=ready-for-resources
p=$r/big_driving_tinygrad.pkl w=$r/one_driving_tinygrad.pkl
file $o rm one one one "fetch: $o: missing\$"
file $o -1 one one one "fetch: $o: 17 bytes, wanted 18\$"
file $o 0 one one one "fetch: $o: 0 bytes"
file $c rm "" big big "compile: $c: missing"
file $c +1 "" big big "compile: $c: 1102 bytes, wanted 1101\$"
file $w rm "" "" one "ready: $w: missing\$"
file $w -1 "" "" one "ready: $w: 8 bytes, wanted 9\$"
file $p.p01 rm "" "" big "ready: $p.p01: missing\$"
file $p.p02 +1 "" "" big "ready: $p.p02: 302 bytes, wanted 301\$"
file $p.sha256 rm "" "" big "ready: $p.sha256: missing\$"
file $p.p03 add "" "" big "ready: $p.p03: stale\$"
file $p.p07 add "" "" big "ready: $p.p07: stale\$"
file $p add "" "" big "ready: $p: stands beside its parts\$"
file $w.sha256 add "" "" one "ready: $w.sha256: stale\$"
file $w.p02 add "" "" one "ready: $w.p02: stale\$"
file results/one_source.json rm one one one 'fetch: not fetched yet$'
file results/one_artifact.json rm "" one one 'compile: not compiled yet$'
for litter in "$r/._one_driving_tinygrad.pkl.p00" $r/.DS_Store \
    compiled/._x.pkl results/._one_source.json \
    "$r/.one_driving_tinygrad.pkl.p00.tmp" "$w.p" "$w.pxx"; do
	fresh
	echo x >"$litter"
	stale "$litter is litter" "" "" ""
done
fresh
rm $o && mkdir $o
stale "a folder is no product" one one one

# ---- multipart.json ----
# multi TEXT READY LINE SED
multi() {
	fresh
	sed -i "$4" $r/multipart.json
	stale "multipart.json: $1" "" "" "$2"
	why "multipart.json: $1" "${2##* }" "ready: multipart.json: $3"
}
multi "missing part" big 'lists 2 parts, wanted 3$' '/p00/d'
multi "entry of another artifact" big 'its entry is not of this' \
    's/"sha256": "./"sha256": "x/'
multi "entry of another size" big 'its entry is not of this' 's/1101/1102/'
multi "odd name" big 'its entry is not of this' 's/p01/p09/'
multi "no entry" big 'has no entry$' 's/"big"/"bog"/'
multi "an entry too many" "one big" 'has no entry$' 's/"big"/"one"/'
multi "two entries of one id" big 'its entry is not of this' \
    '/^  {/,/^  },*$/H;$!d;x;s/.*/[&,&]/;s/^\[\n/[/;s/,\n  {/,\n  {/'
fresh
rm $r/multipart.json
stale "multipart.json: not there" "" "" "$all"
fresh
echo '{' >$r/multipart.json
stale "multipart.json: not JSON" "" "" "$all"

# ---- dates ----
fresh
for when in '1 hour ago' '1 hour' '1980-01-02' '2099-01-01'; do
	find . -type f -exec touch -d "$when" {} +
	stale "dates of $when have no effect" "" "" ""
done
touch -d 1980-01-02 onnx/*/* && touch -d 2099-01-01 results/*
stale "nor dates out of order" "" "" ""

# ---- goals ----
fresh
rm -r onnx/one compiled/two.pkl
# goal GOAL... -> FETCH COMPILE READY TOTAL
goal() {
	want=$1
	shift
	gg "$@"
	is "$(sed -n 's/^[A-Z]* :=/:/p' "$out" | sed 4d | tr -d '\n')" "$want" \
	    "goals: $*"
}
goal ": one: one two: one two: 5: 1" all
goal ": one::: 1: 2" extract
goal ": one::: 1: 0" onnx/one
goal ": one: one:: 2: 0" compiled/one.pkl
goal ": one: one: one: 3: 0" ready/one
goal ":::: 0: 1" onnx/two
goal ": one: one two: one two: 5: 0" ready/one ready/two
goal ": one: one two big: one two big: 7: 0" force
goal ":: big: big: 2: 0" force/big
goal ":: two big: two big: 4: 0" compiled/two.pkl force/big ready/two
gg force/big
prints '^compile\.big := -f split -F -v v2 big$' "force: a compile with -F"
gg all
prints "^fetch\\.one := -f split one $ref\$" "the words of a fetch"
prints '^compile\.two := -f supercombo -v v1 two$' "the words of a compile"
sed -i '4s/split",*/split", "remote": "https:\/\/h\/x.git"/' map.json
gg all
prints '^fetch\.one := -f split -u https://h/x.git one ' "a remote of its own"

for bad in compiled/x.pkl onnx/x ready/x why/x force/x compiled/.pkl \
    'compiled/../one.pkl' compiled/ONE.pkl onnx/one/ "onnx/o n e" \
    "ready/$(printf '%065d' 1)"; do
	gg all "$bad"
	exits 2 "goal $bad"
	says "^graph-gen: $bad: no " "goal $bad is named"
	is "$(cat "$out")" "" "goal $bad: no facts are written"
done
gg compiled
exits 2 "a word that is no goal"
says '^graph-gen: compiled: no such goal$' "... is named"
echo x >compiled/x.pkl
gg compiled/x.pkl
exits 2 "a stray file is no target"
says '^graph-gen: compiled/x.pkl: no model "x" .* such a file lies there' \
    "a stray file is named"

# ---- what is not known ----
fresh
rm .state/identity.json
stale "no identity: every compile is stale" "" "$all" "$all"
why "no identity" one 'compile: compiler unknown$'
prints '^compiler: unknown' "why says that the compiler is unknown"
for bad in '{}' '[]' '{' '{"toolchain": ""}' '{"toolchain": 1}'; do
	echo "$bad" >.state/identity.json
	why "identity $bad" one 'compile: compiler unknown$'
done
fresh
python3 - <<'PY'
import json
rec = json.load(open("results/two_artifact.json"))
del rec["key"], rec["key_lines"]
json.dump(rec, open("results/two_artifact.json", "w"))
PY
stale "an adopted artifact" "" two two
why "an adopted artifact" two 'compile: compiler unknown$'
fresh
sed -i 's/"id": "two"/"id": "twoo"/' names.json
stale "a model without version" "" two two
gg all
prints '^compile\.two := -f supercombo -N two$' \
    "... is handed on as such, to be refused"
gg -t plan
exits 1 "plan: a model without version is refused"
prints '^compile  two: refused: no manifest has its version' "... by name"
fresh
sed -i '/"two"/,/version/s/"v1"/""/' names.json
gg all
prints '^compile\.two := -f supercombo two$' "an empty version is left out"

# ---- reports ----
fresh
rm compiled/two.pkl onnx/big/big_driving_vision.onnx
printf '{"stage":"fetch","error":"big: source lost: \\u001b[1m on no endpoint"}' \
    >results/big_failure.json
printf '{"stage": "compile", "error": "two: no\\nspace"}' \
    >results/two_failure.json
gg -t status
exits 0 "status"
prints '^MODEL +FORMAT +VER +SOURCE +ARTIFACT +READY +BYTES$' "status: heading"
prints '^one +split +v0 +fetched +compiled +ready +9$' "status: current"
prints '^two +supercombo +v1 +fetched +failed +stale +-$' "status: failed"
prints '^ +failed in compile: two: no\?space$' "status: why, on one line"
prints '^big +split +v2 +source lost +stale +stale +1101$' "status: lost"
prints '^4 models: 2 current, 2 to do, 2 failed$' "status: the sum"
prints '^compiler: as read [0-9]+ ' "status: the age of the identity"
if LC_ALL=C grep -q "$(printf '\033')" "$out"; then fail "no escapes"
else pass "no escapes reach the terminal"; fi
gg -t plan
exits 0 "plan"
prints '^fetch    big: onnx/big/big_driving_vision.onnx: missing$' "plan: fetch"
prints '^compile  two: compiled/two.pkl: missing$' "plan: compile"
prints '^ready    two: its artifact is to be compiled$' "plan: ready"
prints '^1 to fetch, 2 to compile, 2 to split$' "plan: the sum"
echo x >compiled/x.pkl
echo x >compiled/one_driving_tinygrad.pkl
gg -t status
exits 1 "status: strays are status 1"
says '^graph-gen: compiled/x.pkl: belongs to no model' "status: a stray"
says '^graph-gen: compiled/one_driving_tinygrad.pkl: .*make init' \
    "status: a file of an older pipeline"
fresh
gg -t verify
exits 0 "verify"
cp "$out" lines
is "$(wc -l <lines | tr -d ' ')" 15 "verify: every file that has a digest"
ok "verify: sha-verify takes all lines, parts too" sha-verify -q lines
cat $p.p0? >$p
ok "verify: sha256sum agrees with every line" sha256sum -c --quiet lines
gg -t frob
exits 2 "an unknown report"
for bad in '-l 0' '-l x' '-z -1' '-z 99999999999999999999'; do
	# shellcheck disable=SC2086 # an option and its value
	run graph-gen -b names.json -m map.json -r results $bad all
	exits 2 "$bad is refused"
done
run graph-gen -b names.json -r results all
exits 2 "no map"
run graph-gen -b names.json -m map.json all
exits 2 "no results"
run graph-gen -b names.json -m nowhere.json -r results all
exits 2 "a map that is not there"
says '^graph-gen: nowhere.json: No such file' "... is named"
graph-gen -b names.json -m map.json -r results all >/dev/full 2>"$err"
status=$?
exits 2 "a full disk is status 2"

# ---- records of strangers ----
# record KIND TEXT: counts as stale; nothing of it leaves the workspace
record() {
	text="$1 record $(printf '%s' "$2" | tr '\n\t\134' '  |')"
	cp ../base/results/one_*.json results/
	printf '%s' "$2" >"results/one_$1.json"
	gg all
	exits 0 "$text"
	prints '^COMPILE :=.* one' "$text: stale"
	gg -t verify
	if grep -Eq '\.\.|^[^0-9a-f]|  /' "$out"; then
		fail "$text: verify" "$(cat "$out")"
	else pass "$text: verify stays inside"; fi
}
fresh
for kind in source artifact; do
	for text in '' '{' '[]' '""' 'null' '1' '{}' '{"key": 1}' \
	    '{"key": "", "key_lines": {}}' '{"key_lines": [1, null, "x", ""]}'; do
		record $kind "$text"
	done
done
k=$(sed -n 's/^  "key": "\(.*\)",/\1/p' results/one_source.json)
good='"size": 18, "sha256": "'$sha'"'
for files in '1' '{}' '[]' '[1]' '[{}]' '"x"' '[[[]]]' \
    '[{"component": "../../x", '"$good"'}]' \
    '[{"component": "../x", '"$good"'}]' \
    '[{"component": "driving_vision\n", '"$good"'}]' \
    '[{"component": 1, '"$good"'}]' \
    '[{"component": "driving_vision", "size": -1, "sha256": "'"$sha"'"}]' \
    '[{"component": "driving_vision", "size": 1.5, "sha256": "'"$sha"'"}]' \
    '[{"component": "driving_vision", "size": 1e300, "sha256": "'"$sha"'"}]' \
    '[{"component": "driving_vision", "size": "18", "sha256": "'"$sha"'"}]' \
    '[{"component": "driving_vision", "size": 18, "sha256": "../../x"}]' \
    '[{"component": "driving_vision", "size": 18}]' \
    '[{"component": "driving_vision", '"$good"'},
      {"component": "driving_vision", '"$good"'}]'; do
	record source "{\"key\": \"$k\", \"files\": $files}"
	gg -t why why/one
	prints '^one: fetch: files: ' "$text: why"
done
fresh
k=$(sed -n 's/^  "key": "\(.*\)",/\1/p' results/one_artifact.json)
for rest in '"size": -9' '"size": 9' '"size": 9, "sha256": 1' \
    '"size": 9, "sha256": "../x"' '"sha256": "'"$sha"'", "size": 9e99'; do
	record artifact "{\"key\": \"$k\", $rest}"
done
# ready TEXT PARTS: only the set is stale
ready() {
	cp ../base/results/big_artifact.json results/
	python3 - "$1" <<-'PY'
	import json, sys
	rec = json.load(open("results/big_artifact.json"))
	rec["ready"]["parts"] = json.loads(sys.argv[1])
	json.dump(rec, open("results/big_artifact.json", "w"))
	PY
	stale "parts $(printf '%s' "$1" | tr '\n\t' '  ')" "" "" big
}
fresh
n=big_driving_tinygrad.pkl
for parts in '1' '{}' '[]' '[1]' '[{}]' 'null' '"x"' \
    '[{"name": "../../etc/passwd", "size": 1}]' \
    '[{"name": "a/b", "size": 1}]' '[{"name": "..", "size": 4096}]' \
    '[{"name": "'$n'.p01", "size": 400}]' \
    '[{"name": "'$n'.p00", "size": 400}, {"name": "'$n'.p02", "size": 400},
	{"name": "'$n'.p01", "size": 301}]' \
    '[{"name": "'$n'.p00", "size": "400"}]' \
    '[{"name": "'$n'.p00", "size": 400}, {"name": "'$n'.p01", "size": 400}]'; do
	ready "$parts"
done

# every prefix of both records: never a crash, always stale
for kind in source artifact; do
	fresh
	cp results/one_$kind.json "$T/whole"
	i=0 n=$(wc -c <"$T/whole") bad=
	while [ "$i" -lt $((n - 2)) ]; do
		head -c "$i" "$T/whole" >results/one_$kind.json
		gg compiled/one.pkl
		[ "$status" -eq 0 ] && grep -q '^COMPILE := one$' "$out" ||
		    bad="$bad $i:$status"
		i=$((i + 6 + stride))
	done
	is "$bad" "" "a cut-off $kind record counts as stale"
	why "a cut-off record" one '.*results/one_'$kind'.json: line [0-9]+: (not JSON|a string without end)'
done

# ---- threads ----
cd "$T" && python3 "$here/fabricate.py" many 500 && cd many || exit 2
gg all
prints '^CURRENT := 500$' "500 models, in threads"
rm compiled/m3.pkl compiled/m250.pkl compiled/m499.pkl
gg all
prints '^COMPILE := m3 m250 m499$' "in the order of the map"
finished
