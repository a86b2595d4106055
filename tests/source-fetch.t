#!/bin/sh
# A model's sources out of a commit: with stand-ins for orders and failures,
# then with the real tools and a real upstream.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common source-fetch

R=0123456789abcdef0123456789abcdef01234567
export FAKE="$T/fake"
mkdir -p "$FAKE/bin" "$FAKE/blob" "$FAKE/object"
# fake TOOL <SCRIPT: says what it is asked; ends with the status in $FAKE/TOOL
# or does what the file names
fake() {
	{
		# shellcheck disable=SC2016 # for the script
		echo '#!/bin/sh
tool='"$1"'
record=none; [ ! -e results/m_source.json ] || record=there
echo "$tool $* (record $record)" >>"$FAKE/calls"
for f in "$FAKE/fail-$tool" "$FAKE/fail-$tool$3"; do
	[ ! -e "$f" ] || . "$f"
done'
		cat
	} >"$FAKE/bin/$1"
	chmod 755 "$FAKE/bin/$1"
}
fake git-blob <<'SH'
shift 2; [ "$1" != -u ] || shift 2
case $1 in
-s) cat "$FAKE/sources" ;;
-p) cat "$FAKE/blob/${3##*/}" ;;
-l) printf 'endpoint https://h/info/lfs .lfsconfig\nstore %s\n' "$FAKE/a store" ;;
esac
SH
fake lfs-fetch <<'SH'
while read -r oid size path; do
	cat "$FAKE/object/$oid" >"$path" || exit 1
done
SH
fake onnx-stage <<'SH'
while getopts d:z:o: c; do
	case $c in
	d) digest=$OPTARG ;;
	z) size=$OPTARG ;;
	o) out=$OPTARG ;;
	esac
done
cat >"$out.new" || exit 2
is=$(sha256sum <"$out.new" | cut -c1-64) n=$(wc -c <"$out.new")
[ "${digest-$is}" = "$is" ] && [ "${size-$n}" -eq "$n" ] ||
    { echo "onnx-stage: $out: wrong" >&2; rm "$out.new"; exit 1; }
mv "$out.new" "$out"
printf '{"size": %s, "sha256": "%s"}\n' "$n" "$is"
SH
# pointer NAME TEXT: the blob NAME points to an object of this text
pointer() {
	printf '%s' "$2" >"$T/text"
	oid=$(sum "$T/text")
	cp "$T/text" "$FAKE/object/$oid"
	printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' \
	    "$oid" "${#2}" >"$FAKE/blob/$1"
}
# sources COMPONENT:FILE...: what the commit has
sources() {
	for source; do
		echo "driving_${source%:*} models/${source#*:} 100644 $R 1"
	done >"$FAKE/sources"
}
# fetch [OPTION...]: the model m, stand-ins first
fetch() {
	: >"$FAKE/calls"
	run env PATH="$FAKE/bin:$PATH" source-fetch -C repo -f split -r results \
	    "$@" m "${ref:-$R}"
}
# calls: the tools that ran, in order
calls() { cut -d' ' -f1 "$FAKE/calls" | tr '\n' ' '; }
# state: every file and its digest
state() { find . -type f -exec sha256sum {} + | sort -k2; }
# record PYTHON-EXPRESSION: of the source record r
record() {
	python3 -c 'import json, sys
r = json.load(open("results/m_source.json"))
print(eval(sys.argv[1]))' "$1"
}
begin() {
	rm -rf "$T/ws" "$FAKE"/fail-* && mkdir "$T/ws" && cd "$T/ws" || exit 2
	ref=$R
	printf 'plain vision' >"$FAKE/blob/v.onnx"
	pointer p.onnx 'object policy'
	sources policy:p.onnx vision:v.onnx
}

# ---- plain blobs and pointers ----
begin
fetch -u https://h/x.git -e https://e/info/lfs -H h -H e
exits 0 "a plain blob and a pointer"
is "$(cat "$err")" "" "good input gets no noise"
is "$(calls)" "git-blob git-blob git-blob git-blob lfs-fetch onnx-stage onnx-stage " \
    "the order of the tools"
is "$(sed -n 1p "$FAKE/calls")" \
    "git-blob -C repo -u https://h/x.git -s split $R (record none)" \
    "the words of the search"
is "$(grep lfs-fetch "$FAKE/calls")" \
    "lfs-fetch -e https://h/info/lfs -S $FAKE/a store -e https://e/info/lfs -H h -H e -i (record none)" \
    "the words of the download: the commit's endpoint first"
is "$(cat onnx/m/m_driving_vision.onnx) $(cat onnx/m/m_driving_policy.onnx)" \
    "plain vision object policy" "the staged files"
is "$(find . -type f | sort | tr '\n' ' ')" "./onnx/m/m_driving_policy.onnx ./onnx/m/m_driving_vision.onnx ./results/m_source.json " \
    "nothing else is left"
is "$(record '[r["id"], r["ref"], r["input_format"], r["uses_external_gpu"]]')" \
    "['m', '$R', 'split', False]" "the record"
printf 'plain vision' >v
is "$(record '[tuple(f.items()) for f in r["files"]][1]')" \
    "(('component', 'driving_vision'), ('git_path', 'models/v.onnx'), ('path', 'onnx/m/m_driving_vision.onnx'), ('size', 12), ('sha256', '$(sum v)'))" \
    "a member of the record"
rm v
is "$(record 'r["key_lines"][1:]')" \
    "['format=split', 'gpu=0', 'commit=$R']" "the lines of its key"
is "$(record '__import__("hashlib").sha256("".join(l + "\n" for l in r["key_lines"]).encode()).hexdigest() == r["key"]')" \
    True "the key is their digest"
fetch -g
is "$(grep -c -e '-s split -g' "$FAKE/calls")" 1 "-g asks for big_ files"
is "$(record 'r["uses_external_gpu"]')" True "-g is recorded"

# ---- again ----
before=$(sum onnx/m/m_driving_policy.onnx)
ref=1${R#0}
fetch
exits 0 "another commit with the same bytes"
is "$(grep -c lfs-fetch "$FAKE/calls")" 0 "... is not downloaded again"
is "$(sum onnx/m/m_driving_policy.onnx) $(record 'r["ref"]')" "$before $ref" \
    "... but recorded"
printf 'rotten policy' >onnx/m/m_driving_policy.onnx
fetch
exits 0 "a staged file that has rotted"
is "$(cat onnx/m/m_driving_policy.onnx)" 'object policy' "... is fetched again"
is "$(grep onnx-stage "$FAKE/calls" | grep -c 'record none')" 2 \
    "the record is away before the first file is replaced"
pointer p.onnx 'newer policy'
echo x >onnx/m/m_driving_off_policy.onnx
echo x >onnx/m/.m_driving_on_policy.onnx.tmp
echo x >onnx/m/notes.txt
echo x >onnx/m/mother.onnx
echo x >onnx/m/._m_driving_vision.onnx
fetch
is "$(find onnx/m -name '*policy*') $(cat onnx/m/m_driving_policy.onnx)" \
    "onnx/m/m_driving_policy.onnx newer policy" \
    "components of an older commit are removed"
is "$(find onnx/m -type f | wc -l | tr -d ' ')" 5 "... and no other file"

# ---- chunks ----
begin
pointer c1 'one '
pointer c2 'two '
printf 'three' >"$FAKE/blob/c3"
sources policy:p.onnx vision:c1 vision:c2 vision:c3
fetch
exits 0 "a source in chunks"
is "$(cat onnx/m/m_driving_vision.onnx)" 'one two three' "... is joined in order"
is "$(record '[f["git_path"] for f in r["files"]]')" \
    "['models/p.onnx', 'models/c1']" "... is one member of the record"
is "$(grep -c 'onnx-stage -o onnx/m/m_driving_vision' "$FAKE/calls")" 1 \
    "... has no digest to be checked against"

# ---- failures, each at its step ----
# fails TOOL STATUS WANTED TEXT: nothing is written
fails() {
	begin
	echo "echo '$1: no' >&2; exit $2" >"$FAKE/fail-$1"
	fetch
	exits "$3" "$4: $1 ends with $2"
	is "$(find . -type f)" "" "$4: neither record nor file"
	is "$(find onnx .state/fetch -mindepth 1 2>/dev/null)" "" "$4: no folder"
}
for s in 1:1 2:2 111:111 3:2 99:2 255:2; do
	fails git-blob-s "${s%:*}" "${s#*:}" "the search"
	fails git-blob "${s%:*}" "${s#*:}" "all of git-blob"
	fails lfs-fetch "${s%:*}" "${s#*:}" "the download"
	fails onnx-stage "${s%:*}" "${s#*:}" "the check"
done
fails lfs-fetch 1 1 "a lost object"
says "^source-fetch: m: source lost: an object of commit $R is on no endpoint\$" \
    "... is named"
is "$(tail -n 1 "$err" | cut -c1-29)" "source-fetch: m: source lost:" \
    "... in the last line"
fails lfs-fetch 111 111 "a server that fails for now"
if grep -q 'source lost' "$err"; then fail "... is not lost"
else pass "... is not lost"; fi
fails git-blob-p 111 111 "a blob"
fails git-blob-l 1 1 "the endpoint"
begin
# shellcheck disable=SC2016
echo 'kill -9 $$' >"$FAKE/fail-lfs-fetch"
fetch
exits 2 "a tool that is killed"
says '^source-fetch: m: lfs-fetch: killed by signal 9$' "... is named"
begin
rm "$FAKE/bin/onnx-stage"
run env PATH="$FAKE/bin:/usr/bin:/bin" "$(command -v source-fetch)" -C repo \
    -f split -r results m $R
exits 2 "a tool that is missing"
says '^source-fetch: m: onnx-stage: (No such file or directory|ended with status 127)$' "... is named"
sed 's/^tool=.*/tool=onnx-stage/' "$FAKE/bin/lfs-fetch" | sed '/^while/,$d' \
    >"$FAKE/bin/onnx-stage"
cat >>"$FAKE/bin/onnx-stage" <<'SH'
while getopts d:z:o: c; do case $c in o) out=$OPTARG ;; d) digest=$OPTARG ;; esac; done
cat >"$out.new"
is=$(sha256sum <"$out.new" | cut -c1-64)
[ "${digest-$is}" = "$is" ] || { rm "$out.new"; echo "$out: wrong" >&2; exit 1; }
mv "$out.new" "$out"
printf '{"size": %s, "sha256": "%s"}\n' "$(wc -c <"$out")" "$is"
SH
chmod 755 "$FAKE/bin/onnx-stage"

# an older copy stays where a newer cannot come
begin
fetch
state >"$T/before"
pointer p.onnx 'newer policy'
ref=2${R#0}
echo 'exit 1' >"$FAKE/fail-lfs-fetch"
fetch
exits 1 "a newer commit whose object is lost"
state >"$T/after"
same "$T/before" "$T/after" "the staged copy and its record stay"
rm "$FAKE/fail-lfs-fetch"
# shellcheck disable=SC2016
echo 'case "$*" in *vision*) exit 1;; esac' >"$FAKE/fail-onnx-stage"
fetch
exits 1 "the second of two sources fails its check"
absent results/m_source.json "no record, once a file was replaced"
is "$(cat onnx/m/m_driving_vision.onnx)" "plain vision" \
    "the file that was not replaced is whole"
rm "$FAKE/fail-onnx-stage"
fetch
exits 0 "the next run ends well"
is "$(cat onnx/m/m_driving_policy.onnx) $(record 'r["ref"]')" \
    "newer policy $ref" "... with the newer bytes"

# wrong bytes for an oid
begin
printf 'object PALICY' >"$FAKE/object/$oid"
fetch
exits 1 "an object of other bytes"
absent onnx/m/m_driving_policy.onnx "... gets no final name"
# pointers that must be refused
begin
printf 'version https://git-lfs.github.com/spec/v1\next-0-x sha256:%s\noid sha256:%s\nsize 13\n' \
    "$oid" "$oid" >"$FAKE/blob/p.onnx"
fetch
exits 1 "a pointer with an extension"
says '^source-fetch: m: models/p.onnx: ' "... is named"

# what git-blob cannot have said
for line in ' ' 'driving_vision' 'driving_vision ' '../x models/x 1 2 3' \
    'driving_visio models/x' ' x y' ; do
	begin
	printf '%s\n' "$line" >"$FAKE/sources"
	fetch
	exits 2 "git-blob says \"$line\""
	is "$(find onnx results -type f 2>/dev/null)" "" "... nothing is written"
done
begin
: >"$FAKE/sources"
fetch
exits 2 "git-blob says nothing"
begin
yes "driving_vision models/v.onnx 100644 $R 1" | head -n 257 >"$FAKE/sources"
fetch
exits 1 "more chunks than can be"
# what onnx-stage cannot have said
for text in '' '{' '[]' '{}' '{"size": -1}' '{"size": 1, "sha256": "x"}'; do
	begin
	printf 'cat >/dev/null; echo "%s"; exit 0' \
	    "$(printf '%s' "$text" | sed 's/"/\\"/g')" >"$FAKE/fail-onnx-stage"
	fetch
	exits 2 "onnx-stage says $text"
	absent results/m_source.json "... no record"
done

# ---- killed ----
# killed TOOL: kill -9 of the group while the tool runs, then again
killed() {
	begin
	fetch
	state >"$T/want"
	rm -rf onnx results
	# shellcheck disable=SC2016
	echo "$2"'; : >"$FAKE/here"; exec sleep 60' >"$FAKE/fail-$1"
	rm -f "$FAKE/here"
	PATH="$FAKE/bin:$PATH" setsid sh -c \
	    'echo $$ >pid; exec source-fetch -C repo -f split -r results m '$R \
	    2>/dev/null &
	i=0
	while [ ! -e "$FAKE/here" ] && [ $i -lt 200 ]; do
		sleep 0.05
		i=$((i + 1))
	done
	kill -"${3-9}" "-$(cat pid)"
	wait
	rm pid
	absent results/m_source.json "$1 killed: no record"
	rm "$FAKE/fail-$1"
	fetch
	exits 0 "$1 killed: the next run ends well"
	state >"$T/got"
	same "$T/want" "$T/got" "$1 killed: the end is the same"
}
killed lfs-fetch ':'
# shellcheck disable=SC2016
killed onnx-stage 'case "$*" in *vision*) ;; *) return;; esac
	head -c 3 >onnx/m/.m_driving_vision.onnx.tmp'
killed lfs-fetch ': ' TERM

# ---- the real tools, a real upstream ----
cd "$T" && fixture=$here/fixtures/upstream.sh
ok "upstream.sh" sh "$fixture" up
up=$T/up/upstream.git
ref() { sed -n "s/^$1 //p" "$T/up/refs"; }
# real ID FORMAT REF: into the workspace here, from a bare store
real() {
	run source-fetch -C store.git -u "file://$up" -f "$2" -r results "$1" "$3"
}
mkdir "$T/a b" && cd "$T/a b" || exit 2
real s split "$(ref split)"
exits 0 "split, out of a bare store that is made"
real m split "$(ref multi)"
exits 0 "on and off policy"
real c supercombo "$(ref combo)"
exits 0 "supercombo"
for k in s/vision:1 s/policy:2 m/vision:1 m/on_policy:3 m/off_policy:4 \
    c/supercombo:5; do
	i=${k%%/*} kind=${k#*/}
	onnx-gen "${kind%:*}" -s "${kind#*:}" -o "$T/want.onnx"
	same "$T/want.onnx" "onnx/$i/${i}_driving_${kind%:*}.onnx" "$k: its bytes"
done
state >"$T/before"
run sh -c "trap '' XFSZ; ulimit -f 64; exec source-fetch -C store.git -u file://$up -f split \
    -r results full $(ref split)"
exits 2 "no room for an object"
state >"$T/after"
same "$T/before" "$T/after" "... nothing is left of it"
real s supercombo "$(ref split)"
exits 1 "a supercombo that the commit does not have"
real s split "$(ref combo)"
exits 1 "a commit without split sources"
real s split $R
exits 1 "a commit that the upstream does not have"
says 'source lost' "... is lost"
is "$(python3 -c 'import json; print(json.load(open("results/s_source.json"))["ref"])')" \
    "$(ref split)" "what was there stays"

# the same bytes in another commit: lfs-fetch would find nothing
export GIT_DIR="$up" HOME="$T" GIT_CONFIG_NOSYSTEM=1
tree=$(git rev-parse "$(ref split)^{tree}")
other=$(git -c user.name=x -c user.email=x@x.invalid commit-tree -m x "$tree")
git update-ref refs/heads/other "$other"
unset GIT_DIR
mv "$up/lfs" "$up/gone"
real s split "$other"
exits 0 "another commit, the same bytes, and no object to be had"
rm onnx/s/s_driving_vision.onnx
real s split "$other"
is "$((status == 1 || status == 111))" 1 "an object that is nowhere"
absent onnx/s/s_driving_vision.onnx "... no file"
mv "$up/gone" "$up/lfs"
real s split "$other"
exits 0 "... and when it is back"
ok "the digests hold" python3 - <<'PY'
import hashlib, json
for f in json.load(open("results/s_source.json"))["files"]:
    data = open(f["path"], "rb").read()
    assert len(data) == f["size"]
    assert hashlib.sha256(data).hexdigest() == f["sha256"]
PY
finished
