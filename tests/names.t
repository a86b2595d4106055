#!/bin/sh
# Hostile ids, versions, formats, refs and files: refused with file and key
# named, and nothing was run.
# shellcheck source=tests/lib.sh
# shellcheck disable=SC2016 # what looks like commands must stay text
. "$(dirname "$0")/lib.sh"

R=0123456789abcdef0123456789abcdef01234567
mkdir ws spy && cd ws || exit 2
# every tool that would do something says so; canary is what hostile names do
for tool in source-fetch step pkl-split git-blob lfs-fetch onnx-stage models \
    canary; do
	printf '#!/bin/sh\necho "$0 $*" >>"%s"\n' "$T/ran" >"$T/spy/$tool"
done
chmod 755 "$T"/spy/*
PATH=$T/spy:$PATH
echo '{"models": []}' >names.json

# refused TEXT REGEX: by every reader of map.json and names.json, by name
refused() {
	run graph-gen -b names.json -m map.json -r results -g all
	exits 2 "$1"
	says "^graph-gen: $2" "$1: says $2"
	is "$(cat "$out")" "" "$1: no facts"
	run workspace-init -b names.json -m map.json "$root"
	exits 2 "$1: init"
	is "$(ls -A)" "map.json
names.json" "$1: init makes nothing"
}

# ---- ids ----
# id ID [AS SHOWN]
id() {
	printf '{"%s": {"ref": "%s", "input_format": "split"}}\n' "$1" $R >map.json
	refused "id $(printf '%s' "$1" | tr '\134' '|')" "map.json: model id \"${2-$1}\": wanted a letter or digit"
}
id 'a;canary' 'a;canary'
id '../v' '\.\./v'
id 'a b'
id ''
id '$(canary)' '\$\(canary\)'
id '`canary`'
id 'a|canary' 'a\|canary'
id 'a&canary'
id 'a>canary'
id "a'b"
id 'a\"b' 'a"b'
id 'a\\b' 'a\\b'
id 'a/b'
id '/etc/x'
id '.'
id '..' '\.\.'
id '.a' '\.a'
id '-rf'
id '_a'
id '._a' '\._a'
id 'a*' 'a\*'
id 'a%b'
id 'a#b'
id 'a:b'
id 'a=b'
id 'a$b' 'a\$b'
id '~a'
id 'a\nb' 'a\?b'
id 'a\u001b[1m' 'a\?\[1m'
id 'é' '\?\?'
id '\ud83d\udc40' '\?\?\?\?'
id "$(printf '%065d' 0)" '0{65}'
printf '{"%s": {"ref": "%s", "input_format": "split"}}\n' \
    "$(printf '%064d' 0)" $R >map.json
run graph-gen -m map.json -r results all
exits 0 "an id of 64 characters is one"

printf '{"A": {"ref": "%s", "input_format": "split"},
"a": {"ref": "%s", "input_format": "split"}}' $R $R >map.json
refused "A beside a" 'map.json: model . is also in map.json as .: .*case'
printf '{"a": {"ref": "%s", "input_format": "split"},
"b": {},
"a": {"ref": "%s", "input_format": "split"}}' $R $R >map.json
refused "an id twice in a map" \
    'map.json: line 3: key "a" was on line 1 already$'
printf '{"a": {"ref": "%s", "input_format": "split"}}' $R >map.json
cp map.json other.json
run graph-gen -m map.json -m other.json -r results all
exits 2 "an id in two maps"
says '^graph-gen: (map|other).json: model a is also in (map|other).json as a' \
    "... names both"
rm other.json

# ---- the members of a map's entry ----
# entry TEXT-OF-MEMBERS REGEX
entry() {
	printf '{"ok": {"ref": "%s", "input_format": "split"},\n "m": %s}' $R "$1" \
	    >map.json
	refused "entry $(printf '%.60s' "$1" | tr '\134' '|')" "map.json: m: $2"
}
entry '[]' 'wanted an object'
entry '"x"' 'wanted an object'
entry '{"input_format": "split"}' 'ref: wanted a string'
entry '{"ref": 1, "input_format": "split"}' 'ref: wanted a string'
for f in onnx '' Split 'split ' supercombo2 '$(canary)' '../split'; do
	entry "{\"ref\": \"$R\", \"input_format\": \"$f\"}" \
	    "input_format is \"$(printf %s "$f" | sed 's/[$().]/\\&/g')\", wanted"
done
for f in null 1 '["split"]' '{}'; do
	entry "{\"ref\": \"$R\", \"input_format\": $f}" 'input_format is "", wanted'
done
entry "{\"ref\": \"$R\"}" 'input_format is "", wanted split or supercombo'
for f in '"true"' 1 null '[]'; do
	entry "{\"ref\": \"$R\", \"input_format\": \"split\",
		\"uses_external_gpu\": $f}" 'uses_external_gpu: wanted true or false'
done
for f in '"../x"' '""' 1 null '"a b"'; do
	entry "{\"ref\": \"$R\", \"input_format\": \"split\", \"source_id\": $f}" \
	    'source_id: wanted a model id'
done
for f in -x --upload-pack=canary 'ext::sh -c canary' ext::canary '' \
    'https://h/$(canary)' 'https://h/a b' 'https://h/x;canary' 'https://h/*' \
    "https://h/x'" 'https://h/#x' 'https://h/x\\ny' 'http://far.example/x' \
    'git://far.example/x' 'ftp://h/x' 'https://h/`canary`' 'fd::17'; do
	entry "{\"ref\": \"$R\", \"input_format\": \"split\", \"remote\": \"$f\"}" \
	    'remote: '
done
entry "{\"ref\": \"$R\", \"input_format\": \"split\", \"remote\": 1}" 'remote: '
# refs: in init a branch may stand for one, for `make pin`
# ref REF
ref() {
	printf '{"m": {"ref": "%s", "input_format": "split"}}' "$1" >map.json
	run graph-gen -m map.json -r results all
	exits 2 "ref $1"
	says '^graph-gen: map.json: m: ref is ".*", wanted 40 hex digits: make pin/m' \
	    "ref $1 is named"
}
for r in master "${R%?}" "${R}0" 0123456789ABCDEF0123456789abcdef01234567 \
    '' -x '$(canary)' '../../x' "$R canary"; do
	ref "$r"
done

# ---- manifests ----
printf '{"m": {"ref": "%s", "input_format": "split"}}' $R >map.json
# manifest TEXT REGEX
manifest() {
	printf '%s' "$1" >names.json
	refused "manifest $(printf '%.60s' "$1" | tr '\134\n' '| ')" "names.json: $2"
}
for v in 'v8;canary' 8 v v12345 V8 'v8 ' ' v8' '$(canary)' v8.1 v-1 v٣; do
	manifest "[{\"id\": \"m\", \"version\": \"$v\"}]" \
	    'm: version is ".*", wanted v and 1 to 4 digits'
done
for v in 8 null true '["v8"]' '"v8\n"'; do
	manifest "[{\"id\": \"m\", \"version\": $v}]" 'm: version is ".*", wanted'
done
manifest '[{"id": "m"}]' 'm: version is "", wanted'
for i in 'a;canary' '../v' '' 'a b'; do
	manifest "{\"models\": [{\"id\": \"x\", \"version\": \"v1\"},
		{\"id\": \"$i\", \"version\": \"v8\"}]}" \
	    "entry 2: id is \"$i\", wanted a model id"
done
manifest '[{"version": "v1"}]' 'entry 1: id is "", wanted'
manifest '[1]' 'entry 1: id is "", wanted'
for t in '{}' '{"models": {}}' 'null' '"x"' '{"models": "x"}'; do
	manifest "$t" 'wanted \{"models"'
done
manifest '[{"id": "m", "version": "v1"}, {"id": "x", "version": "v1"},
	{"id": "m", "version": "v2"}]' 'entries 1 and 3 are m and m, and differ'
manifest '[{"id": "m", "version": "v1"}, {"id": "M", "version": "v1"}]' \
    'entries 1 and 2 are m and M, and differ'
printf '[{"id": "m", "version": "v1"}, {"version": "v1", "id": "m"}]' >names.json
run graph-gen -b names.json -m map.json -r results all
exits 0 "an entry that is there twice and equal is one"
for f in "$root"/catalog/model_source_map_*.json; do
	run graph-gen -b "$root/catalog/model_names_v21.json" \
	    -b "$root/catalog/model_names_extra.json" -m "$f" -r results all
	exits 0 "$(basename "$f") is taken"
done

# ---- files that are no JSON of ours ----
# bytes TEXT FORMAT REGEX: as a map and as a manifest
bytes() {
	# shellcheck disable=SC2059 # the format is what is tested
	printf "$2" >map.json
	echo '[]' >names.json
	refused "map: $1" "map.json: $3"
	cp map.json names.json
	printf '{"m": {"ref": "%s", "input_format": "split"}}' $R >map.json
	refused "manifest: $1" "names.json: $3"
}
bytes "a NUL" '{"a": 1,\n"b\000": 2}' 'line 2: '
bytes "a NUL as an escape" '{"m\\u0000;canary": 1}' 'line 1: '
bytes "bad UTF-8" '{"\377": 1}' 'line 1: bytes that are not UTF-8'
bytes "a lone surrogate" '{"\\ud83d": 1}' 'line 1: .*lone surrogate'
bytes "deep nesting" "$(printf '%0999d' 0 | tr 0 '[')" 'line 1: .*levels deep'
bytes "nothing" '' 'line 1: not JSON: empty'
bytes "two values" '{} {}' 'line 1: not JSON: text after the end'
bytes "duplicate keys below" '{"m": {"ref": 1,\n"ref": 2}}' \
    'line 2: key "ref" was on line 1 already'
rm map.json && mkdir map.json
refused "map: a folder" 'map.json: read: Is a directory'
rmdir map.json
: >map.json && truncate -s 67108865 map.json
refused "map: more than 64 MiB" 'map.json: longer than 67108864 bytes'
rm map.json

# ---- the tools that take such words by themselves ----
cd "$T" && rm -rf ws && mkdir ws && cd ws || exit 2
PATH=${PATH#"$T/spy:"}
for i in 'a;canary' '../v' 'a b' '' '$(canary)' "$(printf '%065d' 0)" -; do
	run source-fetch -C . -f split -r results -- "$i" $R
	exits 2 "source-fetch: id $i"
	run remote-compile -D local -f split -v v1 -r results -- "$i"
	exits 2 "remote-compile: id $i"
	run pkl-split -r results -i "$i" -o . -- x
	exits 2 "pkl-split: id $i"
	run step -r results -l logs -- "$i" fetch -- canary
	exits 2 "step: id $i"
done
for r in master '' -x '$(canary)' "${R}0"; do
	run source-fetch -C . -f split -r results -- m "$r"
	exits 2 "source-fetch: ref $r"
done
for f in '' x 'split;canary'; do
	run source-fetch -C . -f "$f" -r results m $R
	exits 2 "source-fetch: format $f"
	run remote-compile -D local -f "$f" -v v1 -r results m
	exits 2 "remote-compile: format $f"
done
for v in 8 'v8;canary' '$(canary)' v12345 'v1 '; do
	run remote-compile -D local -f split -v "$v" -r results m
	exits 2 "remote-compile: version $v"
	says '^remote-compile: m: version is ".*", wanted' "... is named"
done
is "$(ls -A)" "" "none of them made a file"

# ---- through make, from the map to the recipes ----
cd "$T" && python3 "$here/fabricate.py" "w s" 4 && cd "w s" || exit 2
rm -r onnx/one compiled/two.pkl
cat >config.mk <<-MK
SOURCE_MAPS = map.json
BASE_MANIFEST = names.json
EXTRA_MANIFEST =
SPLIT_LIMIT = 1000
PART_SIZE = 400
MK
# through GOAL [NAME=VALUE]: mk/ as the front door runs it, spies first
through() {
	goals=$1
	shift
	run env -u MAKEFLAGS -u MAKELEVEL PATH="$T/spy:$PATH" ROOT="$root" \
	    MK="$root/mk" WORKSPACE="$PWD" GOALS="$goals" DRY= \
	    make -rR -f "$root/mk/run.mk" run "$@"
}
printf '#!/bin/sh\ncat .state/identity.json\n' >"$T/spy/remote-compile"
cp "$T/spy/canary" "$T/spy/step"
chmod 755 "$T/spy/remote-compile"
through all
is "$(grep -c 'spy/step .*fetch -- source-fetch ' "$T/ran")" 1 \
    "the spies are asked where a map is good"
rm "$T/ran"
for i in 'a;canary' '../v' 'a b' '' '$(canary)' '`canary`' 'a|canary'; do
	printf '{"%s": {"ref": "%s", "input_format": "split"}}\n' "$i" $R >bad.json
	through all SOURCE_MAPS=bad.json
	exits 2 "make all: id $i"
	says '^graph-gen: bad.json: model id "' "make all: id $i is named"
done
printf '{"a": {"ref": "%s", "input_format": "split", "remote": "%s"}}\n' \
    $R 'https://h/$(canary);canary' >bad.json
through all SOURCE_MAPS=bad.json
exits 2 "make all: a hostile remote"
printf '[{"id": "one", "version": "v8;canary"}]' >bad.json
through all BASE_MANIFEST=bad.json
exits 2 "make all: a hostile version"
says '^graph-gen: bad.json: one: version is "v8;canary"' "... is named"
for g in 'compiled/a;canary.pkl' 'why/$(canary)' 'force/`canary`' \
    "onnx/'x" 'ready/*' 'onnx/-x'; do
	through "$g"
	exits 2 "make $g"
done
printf '{"b": {"ref": "%s", "input_format": "split"},
"b": {"ref": "%s", "input_format": "split"}}' $R $R >"$T/bad.json"
run env -u MAKEFLAGS -u MAKELEVEL make -C "$root" \
    all WORKSPACE="$PWD" SOURCE_MAPS="$T/bad.json" \
    PATH="$PATH:$T/spy" DEVICES=none
exits 2 "the front door: a key twice"
says '^graph-gen: .*/bad.json: line 2: key "b" was on line 1 already$' \
    "the front door: both lines are named"
absent "$T/ran" "nothing was run"
if ls "$root/canary" canary ../canary >/dev/null 2>&1; then fail "no canary"
else pass "no canary"; fi
finished
