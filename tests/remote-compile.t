#!/bin/sh
# One compile on this machine, with a stand-in for the compiler: what is
# current, what is collected, and what is left after every failure.
# shellcheck source=tests/lib.sh
# shellcheck disable=SC2016 # scripts for the stand-in
. "$(dirname "$0")/lib.sh"
common remote-compile

export FAKE="$T/fake"
mkdir -p "$FAKE/bin"
# models: what the test wants first ($FAKE/identity, $FAKE/compile), then a
# deterministic file of inputs and words
cat >"$FAKE/bin/models" <<'SH'
#!/bin/sh
echo "$*" >>"$FAKE/calls"
if [ "$1" = --identity ]; then
	[ ! -e "$FAKE/on-identity" ] || . "$FAKE/on-identity"
	cat "$FAKE/identity.json"
	exit
fi
words="$*"
while [ $# -gt 0 ]; do
	case $1 in
	--model) id=$2 ;;
	--input-dir) in=$2 ;;
	--output-dir) out=$2 ;;
	esac
	shift
done
ls -A "$out" >"$FAKE/found"
[ ! -e "$FAKE/on-compile" ] || . "$FAKE/on-compile"
{ echo "pickle $words" | sed 's/--output-dir [^ ]*//'; cat "$in"/*.onnx; } \
    >"$out/${id}_driving_tinygrad.pkl"
echo "compiler says hello"
SH
chmod 755 "$FAKE/bin/models"
PATH=$FAKE/bin:$PATH

# a workspace in which `one` is fetched
python3 "$here/fabricate.py" base 4 || exit 2
rm -r base/compiled base/results/*_artifact.json base/ready-for-resources
cp base/.state/identity.json identity.json
begin() {
	rm -rf "$T/ws" "$FAKE"/on-* && cp -a "$T/base" "$T/ws" && cd "$T/ws" ||
	    exit 2
	cp "$T/identity.json" "$FAKE/identity.json"
	: >"$FAKE/calls"
}
compile() {
	run remote-compile -D local -f split -v "${version:-v0}" -r results \
	    "$@" "${id:-one}"
}
record() {
	python3 -c 'import json, sys
r = json.load(open("results/one_artifact.json"))
print(eval(sys.argv[1]))' "$1"
}
# nothing TEXT: no artifact, no record, no job
nothing() {
	is "$(find compiled results/one_artifact.json .state/jobs -mindepth 1 \
	    2>/dev/null)" "" "$1: nothing is left"
}

# ---- a compile ----
begin
compile
exits 0 "a compile"
is "$(cat "$err")" "compiler says hello" "the compiler's output goes to the log"
is "$(cat "$out")" "" "nothing on standard output"
is "$(sed -n 1p "$FAKE/calls")" --identity "the compiler is asked who it is"
is "$(sed 's#jobs/[0-9a-f]\{64\}#jobs/KEY#' "$FAKE/calls" | sed -n 2p)" \
    "--model one --input-dir onnx/one --output-dir .state/jobs/KEY --input-format split --no-split --version v0" \
    "the words of the compile"
is "$(sed -n 3p "$FAKE/calls")" --identity "... and asked again"
is "$(cat "$FAKE/found")" "" "the folder of the output is empty at the start"
is "$(record 'list(r)')" "['id', 'status', 'path', 'size', 'sha256', 'multipart', 'toolchain', 'tinygrad', 'backend', 'device', 'driver', 'key', 'key_lines']" \
    "the members of the record"
is "$(record '[r["id"], r["status"], r["path"], r["size"], r["sha256"], r["multipart"]]')" \
    "['one', 'compiled', 'compiled/one.pkl', $(wc -c <compiled/one.pkl | tr -d ' '), '$(sum compiled/one.pkl)', False]" \
    "the record of the artifact"
is "$(find .state/jobs -mindepth 1)" "" "the job's folder is gone"
# fabricate.py computes keys by itself: graph-gen must find this one current
run graph-gen -b names.json -m map.json -r results -i .state/identity.json \
    compiled/one.pkl
prints '^CURRENT := 1$' "graph-gen finds it current"

: >"$FAKE/calls"
compile
exits 0 "again"
is "$(cat "$out")" current "... it is current"
is "$(cat "$FAKE/calls")" --identity "... and nothing is compiled"
compile -F
exits 0 "-F compiles all the same"
is "$(grep -c -e --model "$FAKE/calls")" 1 "... once"
version=v1
compile
is "$(cat "$out") $(record '[l for l in r["key_lines"] if "version" in l]')" \
    " ['version=v1']" "another version is another artifact"
version=v0
run remote-compile -D local -f split -r results one
exits 0 "an empty version"
is "$(grep -c -e --version "$FAKE/calls")" 2 "... is left out of the command"
sed -i s/0.14.0/0.15.0/ "$FAKE/identity.json"
compile
is "$(cat "$out") $(record 'r["tinygrad"]')" " 0.15.0" \
    "another tinygrad is another artifact"
truncate -s -1 compiled/one.pkl
compile
is "$(cat "$out")" "" "an artifact of the wrong size is not current"
echo '{' >results/one_artifact.json
compile
exits 0 "a record that is no JSON"
is "$(record 'r["size"]')" "$(wc -c <compiled/one.pkl | tr -d ' ')" \
    "... is written again"
: >"$FAKE/calls"
compile -g
is "$(grep -c -e '--version v0 --external-gpu$' "$FAKE/calls")" 1 \
    "-g compiles for the external GPU"

# ---- how a compile can fail ----
# fails WANTED TEXT SCRIPT [REGEX]
fails() {
	begin
	echo "$3" >"$FAKE/on-compile"
	compile
	exits "$1" "$2"
	nothing "$2"
	[ -z "${4-}" ] || says "$4" "$2: is said"
}
fails 1 "models says no" 'exit 1'
fails 2 "models is unfit" 'exit 2'
fails 111 "models fails for now" 'exit 111'
fails 2 "models ends with another status" 'exit 3' \
    '^remote-compile: one: models: ended with status 3$'
fails 2 "models is killed" 'kill -9 $$' \
    '^remote-compile: one: models: killed by signal 9 \(out of memory\?\)$'
fails 2 "models crashes" 'kill -SEGV $$' 'killed by signal 11$'
fails 1 "no output" 'exit 0' \
    '^remote-compile: one: models ended well, yet wrote no '
fails 1 "an empty output" ': >"$out/${id}_driving_tinygrad.pkl"; exit' \
    '^remote-compile: one: the artifact is empty$'
fails 1 "the output of another model" \
    'echo x >"$out/two_driving_tinygrad.pkl"; exit' 'wrote no '
fails 2 "a folder for an output" \
    'mkdir -p "$out/${id}_driving_tinygrad.pkl/x"; exit' 'Is a directory'
fails 111 "the toolchain changes" 'sed -i s/tttt/xxxx/ "$FAKE/identity.json"' \
    '^remote-compile: one: the compiler changed during the compile: run make'
fails 111 "the driver changes" 'sed -i s/driver-1/driver-2/ "$FAKE/identity.json"'
fails 111 "the environment changes" \
    'sed -i s/FLOAT16/FLOAT32/ "$FAKE/identity.json"'
fails 2 "the compiler is gone afterwards" 'echo exit 2 >"$FAKE/on-identity"'
fails 2 "no identity afterwards" 'echo "{}" >"$FAKE/identity.json"'

# an artifact that is there outlives a compile that fails
begin
compile
before=$(sum compiled/one.pkl; cat results/one_artifact.json)
echo 'exit 1' >"$FAKE/on-compile"
compile -F
exits 1 "a forced compile that fails"
is "$(sum compiled/one.pkl; cat results/one_artifact.json)" "$before" \
    "the artifact and its record stay"

# ---- the identity ----
begin
run remote-compile -I -D local
exits 0 "-I"
is "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1])) == json.load(open(sys.argv[2])))' "$out" "$T/identity.json") $(wc -l <"$out" | tr -d ' ')" \
    "True 1" "-I prints the identity on one line"
for bad in '' '{' '[]' '{}' '{"toolchain": ""}' '{"toolchain": 1}' 'null' \
    '{"toolchain": "a", "toolchain": "b"}'; do
	echo "$bad" >"$FAKE/identity.json"
	run remote-compile -I -D local
	exits 2 "-I: models prints \"$bad\""
	says '^remote-compile: models --identity: ' "... is named"
	compile
	exits 2 "a compile by that"
	nothing "... "
done
begin
for s in 1:2 2:2 111:111 9:2; do
	echo "exit ${s%:*}" >"$FAKE/on-identity"
	run remote-compile -I -D local
	exits "${s#*:}" "-I: models ends with ${s%:*}"
	is "$(cat "$out")" "" "... nothing is printed"
done
mv "$FAKE/bin/models" "$FAKE/models"
run env PATH=/usr/bin:/bin "$(command -v remote-compile)" -I -D local
exits 2 "no compiler at all"
says '^remote-compile: models --identity: (No such file.*|ended with status 127)' "... is named"
mv "$FAKE/models" "$FAKE/bin/models"

# ---- the sources ----
# rotten TEXT REGEX: refused with 1, the record is gone, nothing was compiled
rotten() {
	compile
	exits 1 "$1"
	says "$2" "$1: is said"
	absent results/one_source.json "$1: the next run fetches"
	is "$(grep -c -e --model "$FAKE/calls")" 0 "$1: nothing is compiled"
	nothing "$1"
}
begin
printf 'one driving_visiox' >onnx/one/one_driving_vision.onnx
rotten "a source that has rotted" \
    '^remote-compile: onnx/one/one_driving_vision.onnx: sha256 is [0-9a-f]{64}, its record says [0-9a-f]{64}$'
begin
rm onnx/one/one_driving_policy.onnx
rotten "a source that is missing" \
    'onnx/one/one_driving_policy.onnx: No such file'
for files in '[]' '{}' '1' '[1]' '[{}]' '[{"component": "../../x"}]' \
    '[{"component": "driving_vision", "sha256": 1}]' \
    '[{"component": "driving_vision", "sha256": "../x"}]' \
    '[{"component": "driving_vision\u000a", "sha256": "x"}]'; do
	begin
	echo "{\"files\": $files}" >results/one_source.json
	rotten "files $(printf '%s' "$files" | tr '\134' '|')" '^remote-compile: '
done
begin
rm results/one_source.json
rotten "no source record" 'one_source.json: No such file.*make onnx/one'
begin
echo '{' >results/one_source.json
compile
exits 1 "a source record that is no JSON"
says 'one_source.json: line 2: not JSON.*make onnx/one' "... is named"
nothing "... "
begin
echo x >onnx/one/one_driving_off_policy.onnx
compile
exits 1 "a source that no record has"
says '^remote-compile: onnx/one/one_driving_off_policy.onnx: is not in the record of the sources: remove it$' \
    "... is named"
nothing "... "
mv onnx/one/one_driving_off_policy.onnx onnx/one/._one_driving_vision.onnx
echo x >onnx/one/notes.txt
compile
exits 0 "litter beside the sources"

# ---- what was left by others ----
begin
compile
key=$(record 'r["key"]')
rm -r compiled results/one_artifact.json
mkdir -p ".state/jobs/$key"
echo old >".state/jobs/$key/one_driving_tinygrad.pkl"
echo 'exit 0' >"$FAKE/on-compile"
compile
exits 1 "an old output in the job's folder"
nothing "... is never collected"
begin
echo x >compiled
compile
exits 2 "a file where compiled/ should be"
is "$(ls results/one_artifact.json 2>/dev/null)" "" "... no record"

begin
compile
rm compiled/one.pkl
mkdir -p compiled/one.pkl/x
compile
exits 2 "a folder where the artifact should be"
absent results/one_artifact.json "... the record went before the artifact"

# ---- killed ----
# killed SIGNAL TARGET TEXT: while models runs; then again, to the same end
killed() {
	begin
	compile
	sum compiled/one.pkl >"$T/want"
	rm -r compiled results/one_artifact.json
	echo 'echo $$ >"$FAKE/pid"; : >"$FAKE/here"; exec sleep 60' \
	    >"$FAKE/on-compile"
	rm -f "$FAKE/here"
	unignored setsid sh -c 'echo $$ >"$FAKE/leader"
	    exec remote-compile -D local -f split -v v0 -r results one' \
	    2>/dev/null &
	i=0
	while [ ! -e "$FAKE/here" ] && [ $i -lt 400 ]; do
		sleep 0.05
		i=$((i + 1))
	done
	kill "-$1" "$2$(cat "$FAKE/leader")"
	wait $! 2>/dev/null
	is "$?" $((128 + $4)) "$3: the status is the signal's"
	i=0	# until init has seen to it
	while kill -0 "$(cat "$FAKE/pid")" 2>/dev/null && [ $i -lt 100 ]; do
		sleep 0.05
		i=$((i + 1))
	done
	if kill -0 "$(cat "$FAKE/pid")" 2>/dev/null; then
		fail "$3: models is gone too"
		kill -9 "$(cat "$FAKE/pid")"
	else pass "$3: models is gone too"; fi
	is "$(find compiled results/one_artifact.json 2>/dev/null)" "" \
	    "$3: no artifact, no record"
	rm "$FAKE/on-compile"
	compile
	exits 0 "$3: the next run ends well"
	is "$(sum compiled/one.pkl)" "$(cat "$T/want")" "$3: the same bytes"
	is "$(find .state/jobs -mindepth 1)" "" "$3: the folder is gone"
}
killed TERM - "SIGTERM of the group" 15
killed HUP - "SIGHUP of the group" 1
killed KILL - "SIGKILL of the group" 9
killed TERM '' "SIGTERM of remote-compile alone" 15

# ---- no space ----
begin
echo 'head -c 100000 /dev/zero >"$out/${id}_driving_tinygrad.pkl" || exit 2' \
    >"$FAKE/on-compile"
run sh -c "trap '' XFSZ; ulimit -f 64; exec remote-compile -D local -f split \
    -v v0 -r results one"
exits 2 "the compiler has no room"
nothing "... "
if [ "$(id -u)" -eq 0 ] && mkdir -p "$T/small" &&
    mount -t tmpfs -o size=300k small "$T/small" 2>/dev/null; then
	begin
	cp -a . "$T/small" && cd "$T/small" || exit 2
	# a record of a page has no room left beside the artifact
	echo 'head -c 300000 /dev/zero >"$out/fill"; exit 2' >"$FAKE/on-compile"
	compile
	exits 2 "a small disk: the compiler fails"
	nothing "... "
	echo 'cat /dev/zero >fill 2>/dev/null; echo x >"$out/${id}_driving_tinygrad.pkl"; exit 0' \
	    >"$FAKE/on-compile"
	compile
	is "$((status == 1 || status == 2))" 1 "a full disk: no artifact"
	absent results/one_artifact.json "... no record"
	rm -f fill "$FAKE/on-compile"
	compile
	exits 0 "... and when there is room again"
	cd "$T" && umount "$T/small"
fi

# ---- called wrongly ----
begin
for args in '' '-D local' '-D local -f split -r results' \
    '-D local -f split one' '-D local -r results one' \
    '-f split -r results one' '-D local -f split -r results one two' \
    '-I -D local one' '-I'; do
	# shellcheck disable=SC2086 # words
	run remote-compile $args
	exits 2 "called with \"$args\""
	says '^usage: ' "... prints the usage"
done
run remote-compile -D 127.0.0.1 -f split -r results one
exits 2 "a device that is not allowed"
says '^remote-compile: 127.0.0.1: is 127.0.0.1, which ALLOWED_DEVICES' "... is named"
run remote-compile -D local -f split -N -r results one
exits 2 "-N: no manifest has its version"
says '^remote-compile: one: no manifest has its version' "... is named"
is "$(cat "$FAKE/calls")" "" "the compiler is never asked"
finished
