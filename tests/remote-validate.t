#!/bin/sh
# remote-compile -T: an artifact is tried on a device; it stays as it was
# shellcheck source=tests/lib.sh disable=SC2119,SC2016,SC2317 # words of the device; by name
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
device_here
# try [OPTION...]: validates `one`
try() { run on_device -T -r results "$@" one; }
of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' results/one_validation.json "$1"; }
tried() { grep -c '^validate' "$D/calls" || :; }
# made: begin, with an artifact
made() {
	begin
	rc >"$out" 2>"$err" || fail 'no artifact' "$(cat "$err")"
	: >"$D/calls"
}

begin; try; exits 1 'no artifact'; says 'one_artifact.json: .*make compiled/one.pkl makes it' 'is no failed validation'
is "$(tried)" 0 'nothing is asked of the device'
made; try; exits 0 'a validation'
is "$(cut -d' ' -f4- "$D/calls")" "--model one --output-dir $jobs/$(basename "$(sed -n 's|.*--validate \(.*\)/in/.*|\1|p' "$D/calls")")/out \
--validate $(sed -n 's|.*--validate \([^ ]*\) .*|\1|p' "$D/calls") --version v0" 'the words'
is "$(of status) $(of sha256)" "passed $(sum compiled/one.pkl)" 'its record'
is "$(of toolchain)" "$(python3 -c 'import json; print(json.load(open("results/one_artifact.json"))["toolchain"])')" 'with the compiler'
is "$(left)" '' 'nothing stays on the device'
is "$(find .state/remote -type f)" '' 'nor here'
says 'driving one' 'its log is shown'
try; exits 0 'again'; is "$(cat "$out") $(tried)" 'current 1' 'is current'
try -F; exits 0 'by force'; is "$(tried)" 2 'is not'
echo 'rev = 2' >"$D/tinygrad_repo/tinygrad/__init__.py"
try; exits 0 'another compiler'; is "$(tried)" 3 'is asked'

made; echo 'has no warp for the camera 1344x760' >"$D/unsound"
try; exits 1 'a model that fails'
says 'one: 127.0.0.1:[0-9]+: the validation failed: has no warp for the camera 1344x760$' 'is said'
is "$(of status) $(of error)" 'failed has no warp for the camera 1344x760' 'and recorded'
is "$(left)" '' 'nothing stays on the device'
rm "$D/unsound"; try; exits 0 'once it is mended'; is "$(of status)" passed 'it passes'

# what the device may do
made; echo 'exit 0' >"$D/on-drive"
sed 's/--validate)/--other)/; s/^set -eu/set -u/' "$D/models" >keep && cp "$D/models" whole && cp keep "$D/models"
try; exits 2 'a stock device'; says "$D/models cannot validate: put the one of model-rebuild there" 'is not asked'
cp whole "$D/models"
printf x | dd of=compiled/one.pkl bs=1 seek=9 conv=notrunc 2>/dev/null
try; exits 1 'an artifact that was changed'; says 'compiled/one.pkl: sha256 is .*, its record says' 'is named'
is "$(tried)" 0 'and not run'
truncate -s 10 compiled/one.pkl; try; exits 1 'a short one'; says '10 bytes, its record says' 'is, too'
made; echo 'rm "$out"/*' >"$D/after-compile"
try; exits 2 'no result'; says 'the validation ended with status 0, yet left no result' 'is said'; absent results/one_validation.json 'no record'
made; echo 'sed -i "s/\"one\"/\"two\"/" "$out"/*' >"$D/after-compile"
try; exits 2 'a result of another model'; says 'the result has no id and status that fit' 'is refused'
absent results/one_validation.json 'no record'
printf 0 >"$T/dev/data/params/d/IsOffroad"; try; exits 111 'a car that is driving'
printf 1 >"$T/dev/data/params/d/IsOffroad"

# a link that breaks, a run that is stopped: the job goes on, its result is taken
made; echo 2 >"$D/pause"
unignored remote-compile -c "$S/config" -a 127.0.0.1 -p "$D" -P 0 -D "127.0.0.1:$port" -T -r results one >"$out" 2>"$err" &
bg=$!; later $bg
running() { [ "$(tried)" -ge 1 ]; }
wait_for 150 running; cut_link; ends 0 'the link is cut in the middle'; is "$(tried)" 1 'one validation'
made; echo 3 >"$D/pause"
unignored remote-compile -c "$S/config" -a 127.0.0.1 -p "$D" -P 0 -D "127.0.0.1:$port" -T -r results one >"$out" 2>"$err" &
bg=$!; later $bg
wait_for 150 running; kill "$bg"; ends 143 'a run is stopped'
says 'one: the validation goes on at .*: make validate/one takes its result, make cancel/one stops it' 'and says what goes on'
run on_device -S; prints 'one@validate: compiling for' 'the device shows it'
try; exits 0 'the next run'; is "$(tried) $(of status)" '1 passed' 'takes the result'
made; echo 30 >"$D/pause"
unignored remote-compile -c "$S/config" -a 127.0.0.1 -p "$D" -P 0 -D "127.0.0.1:$port" -T -r results one >"$out" 2>"$err" &
bg=$!; later $bg
wait_for 150 running; run on_device -C one; exits 0 'cancel'; ends 111 'ends it'
absent results/one_validation.json 'no record'; is "$(left)" '' 'nothing stays'
finished
