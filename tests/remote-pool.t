#!/bin/sh
# Several devices: who takes what, who is left out, and what is tried again.
# shellcheck source=tests/lib.sh disable=SC2016,SC2119,SC2154 # as they are
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
# shellcheck source=tests/pipeline.sh
. "$here/pipeline.sh"
ssh_keys
device_make

# a device has a root of its own, though all are called by one path
for d in a b; do
	cp -a "$T/dev" "$T/$d"
	echo 'eval "$(printf %s "$SSH_ORIGINAL_COMMAND" | sed "s#'"$T/dev/#$T/$d/"'#g")"' \
	    >"$S/as-$d"
	free_port >"$S/$d.port"
	hosts_entry "$(cat "$S/$d.port")"
	printf 'Host %s\n\tHostName 127.0.0.1\n\tPort %s\n' $d \
	    "$(cat "$S/$d.port")" >>"$S/hosts"
done
cat "$S/hosts" >>"$S/config"
A=$T/a/data/openpilot B=$T/b/data/openpilot
# up NAME: it answers; down NAME: it does not, and its connections end
up() {
	sshd_run "$1" -o "HostKey=$S/host" -o ForceCommand="sh $S/as-$1" \
	    -o ListenAddress="127.0.0.1:$(cat "$S/$1.port")"
}
down() {
	kids=$(ssh_children "$1")
	kill "$(cat "$S/$1.pid")"
	wait_for 100 test ! -e "$S/$1.pid"
	# shellcheck disable=SC2086 # words
	[ -z "$kids" ] || kill $kids 2>/dev/null
}

python3 "$here/fabricate.py" base 8 || exit 2
rm -r base/compiled base/results/*_artifact.json base/ready-for-resources
# begin: a workspace in which all is fetched, a new run, idle devices
begin() {
	cd "$T" && rm -rf ws && cp -a base ws && cd ws || exit 2
	mkdir -p .state/run
	MR_RUN=.state/run
	export MR_RUN
	for d in a b; do
		[ -s "$S/$d.pid" ] || up $d
		rm -rf "${T:?}/$d" && cp -a "$T/dev" "$T/$d"
	done
}
devices='a b'
# compile ID [OPTION...]
compile() {
	id=$1 format=split
	shift
	[ "$id" != m1 ] || format=supercombo
	remote-compile -c "$S/config" -a 127.0.0.1 -p "$D" -P 0 -R 1 -t $((20 * slack)) \
	    -D "$devices" -f $format -v v0 -r results "$@" "$id" </dev/null
}
# all ID...: compiled at once; their output in one file, the worst in $status
all() {
	jobs=
	for id; do
		compile "$id" >"$T/$id.log" 2>&1 &
		jobs="$jobs $!"
	done
	status=0
	for j in $jobs; do
		wait "$j" || status=$?
	done
	for id; do cat "$T/$id.log"; done >"$err"
}
ask() {
	run remote-compile -I -c "$S/config" -a 127.0.0.1 -p "$D" -t $((20 * slack)) \
	    -D "$devices"
}
starts() { grep -c ^start "$1/calls" || :; }
# counts A B TEXT: how many compiles each has seen, never two at once
counts() {
	is "$(starts "$A") $(starts "$B") $(cat "$A/calls" "$B/calls" |
	    grep -c twice)" "$1 $2 0" "$3"
}

# ---- shared ----
begin
for d in "$A" "$B"; do echo 0.5 >"$d/pause"; done
all m0 m1 m2 m3
exits 0 'four models, two devices'
counts 2 2 '... two for each, one at a time'
is "$(find compiled -name '*.pkl' | wc -l | tr -d ' ') $(grep -c . "$err")" \
    '4 4' '... and nothing is said but by the compiler'

# ---- left out ----
# one TEXT REGEX: one line of all output matches
one() {
	is "$(grep -cE -- "$2" "$err")" 1 "$1"
}
begin
echo 0 >"$T/b/data/params/d/IsOffroad"
echo 0.3 >"$A/pause"
all m0 m1 m2 m3
exits 0 'one is on the road'
counts 4 0 '... the other takes all'
one '... one line tells' ': left out: '
says '^remote-compile: b: left out: the car is onroad' '... and why'
begin
rm "$B/models"
all m0 m1 m2 m3
exits 0 'one has no ./models'
counts 4 0 '... the other takes all'
one '... one line tells' ': left out: .*/models is missing or cannot be run'
all m4 m5
is "$(grep -c 'left out' "$err")" 0 '... for the whole run'
begin
down b
all m0 m1 m2 m3
exits 0 'one is down'
counts 4 0 '... the other takes all'
one '... one line tells' ': b: left out: cannot connect to 127.0.0.1 port'
begin
rm "$A/models" "$B/models"
all m0 m1 m2 m3
exits 2 'none is fit'
is "$(for m in m0 m1 m2 m3; do grep -l ': a: .*left out: .*models' "$T/$m.log" |
    xargs grep -l ': b: .*left out: .*models'; done | wc -l | tr -d ' ')" 4 \
    '... which the log of every model tells, of every device'
one '... once as news of a' '^remote-compile: a: left out'
one '... and of b' '^remote-compile: b: left out'

# what one model alone needs
begin
for d in a b; do
	mkdir -p "$T/$d/sys/bus/usb/devices/1-1"
	echo add1 >"$T/$d/sys/bus/usb/devices/1-1/idVendor"
	echo "stock bridge" >"$T/$d/sys/bus/usb/devices/1-1/product"
done
echo "custom bridge" >"$T/b/sys/bus/usb/devices/1-1/product"
run compile m0 -g
exits 0 'a model for the external GPU'
counts 0 1 '... is compiled where that is'
says '^remote-compile: a: cannot take this model: the USB bridge' '... and said'
run compile m2
counts 1 1 'the next model has both devices'
echo "stock bridge" >"$T/b/sys/bus/usb/devices/1-1/product"
run compile m3 -g
exits 2 'no device has the bridge'
counts 1 1 '... nothing is compiled'
run compile m4
exits 0 '... other models are'
begin
mkdir -p small
if [ "$(id -u)" -eq 0 ] && mkdir -p "$A/compiledmodels" &&
    mount -t tmpfs -o size=65m small "$A/compiledmodels" 2>/dev/null; then
	head -c 2000000 /dev/zero >onnx/m0/m0_driving_vision.onnx
	python3 - "$(sum onnx/m0/m0_driving_vision.onnx)" <<-'END'
	import json, sys
	p = "results/m0_source.json"
	r = json.load(open(p))
	r["files"][0].update(size=2000000, sha256=sys.argv[1])
	json.dump(r, open(p, "w"))
	END
	all m0
	exits 0 'one has no space for a large model'
	counts 0 1 '... the other takes it'
	says 'a: cannot take this model: .* bytes are free, wanted' '... as is said'
	all m2
	counts 1 1 '... a small one goes there'
	umount "$A/compiledmodels"
fi

# ---- one toolchain ----
begin
echo 'rev = 9' >"$B/tinygrad_repo/tinygrad/__init__.py"
ask
exits 0 'another tinygrad on one device'
says '^remote-compile: b: left out: its compiler is not that of a: toolchain' \
    '... it is left out by name, with the difference'
all m0 m1 m2 m3
exits 0 '... the run goes on'
counts 4 0 '... on the other'
is "$(grep -c 'left out' "$err")" 0 '... and not a word more'
begin
down a
ask
exits 0 'the first is down at the start'
says '^remote-compile: a: left out: cannot connect' '... it is left out'
is "$(sed -n 's/^allowed.*/policy/p' "$err")" policy '... the policy is printed once'
up a
all m0 m2
counts 0 2 '... for the run, even if it comes back'
begin
cp "$S/config" "$S/saved"
printf 'Host b\n\tHostName gone.invalid\n' | cat - "$S/saved" >"$S/config"
ask
exits 0 'the name of one does not resolve'
one '... is said once' '^remote-compile: b: left out: gone.invalid: the name does not resolve'
all m0 m2
exits 0 '... the run goes on'
is "$(grep -c gone "$err")" 0 '... without a word more'
begin
(sleep 1.5; cp "$S/saved" "$S/config") &
devices=b
run compile m0 -R 2 -P 1
wait
exits 0 'a name that resolves later'
says '^remote-compile: m0: b: gone.invalid: the name does not resolve: again in 1 s' \
    '... is tried again like a link'
devices='a b'
mv "$S/saved" "$S/config"
begin
down a
down b
ask
exits 111 'all are down at the start'
is "$(cat "$out")" '' '... no identity is printed'
absent .state/run/out.a '... and none is left out yet: they may come back'
run compile m0 -R 0
exits 111 '... a compile ends so too'
says '^remote-compile: b: left out: cannot connect' '... with the reason'

# ---- in the middle of a run ----
begin
echo 'while [ ! -e go ]; do sleep 0.1; done' >"$B/on-compile"
devices='b a'
compile m0 >"$out" 2>"$err" &
job=$!
wait_for 100 grep -q start "$B/calls"
down b
wait $job
status=$?
exits 0 'one goes down in mid-compile: the other compiles'
counts 1 1 '... so it is'
says '^remote-compile: m0: b: .*: again in 0 s \(1 of 1\)$' '... after a retry'
says '^remote-compile: b: left out: cannot connect' '... which is said'
: >"$B/go"

# kill -9 leaves the job there and frees the slot here; the next run asks
# that device first
begin
devices='b'
echo 'while [ ! -e go ]; do sleep 0.1; done' >"$B/on-compile"
compile m0 >"$out" 2>"$err" &
wait_for 100 grep -q start "$B/calls"
p=$(pgrep -f "remote-compile -c $S/config .* m0" | head -n 1)
slot=/tmp/model-rebuild-$(id -u)/127.0.0.1_$(cat "$S/b.port").1
run flock -n "$slot" true
exits 1 'a compile holds a slot'
kill -9 "$p"
wait 2>/dev/null
ok '... kill -9 frees it' wait_for 10 flock -n "$slot" true
devices='a b'
compile m0 >"$out" 2>"$err" &
job=$!
wait_for 100 grep -q 'compiled on b already' "$err"
: >"$B/go"
wait $job
status=$?
exits 0 'the next run'
counts 0 1 '... takes the result that is being made'
says 'is being compiled on b already' '... and says so'
absent .state/remote/m0 '... whereupon nothing is earlier'

# a third model waits for a slot
begin
devices='a'
slot=/tmp/model-rebuild-$(id -u)/127.0.0.1_$(cat "$S/a.port")
flock "$slot.1" flock "$slot.2" sh -c "echo >'$T/held'; sleep 1; echo >>'$T/held'" &
wait_for 100 test -e "$T/held"
run compile m0
exits 0 'all slots are taken'
is "$(wc -l <"$T/held" | tr -d ' ')" 2 '... it waits'

# ---- what is tried again ----
begin
devices='a'
mkdir -p "$A/compiledmodels/jobs"
rm -f "$T/held"
flock "$A/compiledmodels/jobs/device.lock" \
    sh -c "echo >'$T/held'; sleep $((3 * slack))" &
wait_for 100 test -e "$T/held"
run compile m0 -w 1
exits 111 'a device that others keep busy'
says '^remote-compile: a: left out: another compile holds the device' '... is said'
wait
rm -f .state/run/out.a
run compile m0
exits 0 '... and is free in the next run'
is "$(cat "$err")" 'compiling m0' '... without a word of it'
begin
down a
start=$(date +%s)
run compile m0 -P 1 -R 2
exits 111 'a device that is away'
is "$(sed -n 's/.*\(again in.*\)/\1/p' "$err")" "again in 1 s (1 of 2)
again in 4 s (2 of 2)" '... is tried again after growing pauses'
is "$(($(date +%s) - start >= 5))" 1 '... and they are kept'
begin
devices='a b'
for d in "$A" "$B"; do echo 'exit 1' >"$d/on-compile"; done
run compile m0
exits 1 'a compile that fails'
is "$(cat "$A/calls" "$B/calls" | grep -c ^start)" 1 '... is not tried again'

begin
devices='b'
echo 'while [ ! -e go ]; do sleep 0.1; done' >"$B/on-compile"
compile m0 -t $((4 * slack)) -R 1 >"$out" 2>"$err" &
job=$!
wait_for 100 grep -q start "$B/calls"
for _ in 1 2; do
	sleep $((9 * slack))
	# shellcheck disable=SC2046 # words
	kill $(ssh_children b)
done
: >"$B/go"
wait $job
status=$?
exits 0 'a link that drops now and then'
is "$(($(grep -c 'again in 0 s (1 of 1)$' "$err") >= 2))" 1 \
    '... has its retries again, once it has held for a while'
counts 0 1 '... and one compile'
begin
echo 'echo rev = 7 >tinygrad_repo/tinygrad/__init__.py' >"$A/on-compile"
devices='a'
run compile m0
exits 111 'the compiler changes during the compile'
is "$(tail -n 1 "$err")" \
    'remote-compile: m0: a: the compiler changed during the compile: run make again' \
    '... is said'
absent .state/run/out.a '... and the device stays in the run'
is "$(find "$A/compiledmodels/jobs" -mindepth 1 -maxdepth 1 -type d)" '' \
    '... where nothing is left'
devices='a b'

# ---- by make ----
begin
unset MR_RUN
pipeline_up
cat >>"$W/config.mk" <<EOF
DEVICES ?= a b
ALLOWED_DEVICES ?= 127.0.0.1
DEVICE_ROOT ?= $D
SSH_CONFIG ?= $S/config
RETRY_SECONDS ?= 0
RETRIES ?= 1
EOF
for d in "$A" "$B"; do echo 0.5 >"$d/pause"; done
run mk -j4 all
exits 0 'make all with two devices'
n=$(find "$W/compiled" -name '*.pkl' | wc -l)
is "$(($(starts "$A") + $(starts "$B")))" "$n" '... one compile for each model'
is "$(($(starts "$A") > 0 && $(starts "$B") > 0))" 1 '... and each has some'
one '... the policy is printed once' '^allowed: 127.0.0.1; denied: 192.168.3.110$'
is "$(sed -n 1,3p "$err" | cut -d: -f1)" 'device a
device b
allowed' '... before anything else'
run mk device-status
exits 0 'device-status'
is "$(cut -d: -f1 "$out" | sort | uniq -c | tr -s ' \n' ' ')" ' 1 a 1 b ' \
    '... of both'

echo 'rev = 2' | tee "$A/tinygrad_repo/tinygrad/__init__.py" \
    >"$B/tinygrad_repo/tinygrad/__init__.py"
chmod -x "$A/models" "$B/models"
run mk -j4 all
exits 2 'no device can compile'
record() {
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
print(r["stage"], r["exit_status"], r["log_tail"][-1])' \
	    "$W/results/demo-split_failure.json"
}
is "$(record | sed 's/: [ab]: .*left out: .*/: left out/')" \
    'compile 2 remote-compile: left out' \
    'the record: stage, status, and on its last line the device'
chmod +x "$A/models" "$B/models"
down a
down b
run mk -j4 all
exits 2 'all are away: make fails'
says 'the device is away: going by the compiler that was last read' \
    '... and by what it went is said'
is "$(record | sed 's/: [ab]: .*left out: .*/: left out/')" \
    'compile 111 remote-compile: left out' '... the record says 111'
up a
echo 'while [ ! -e go ]; do sleep 0.1; done' | tee "$A/on-compile" \
    >"$B/on-compile"
: >"$A/calls"
run mk device-status
exits 2 'device-status with one that is away'
says '^remote-compile: b: cannot connect to ' '... says which'
prints '^a: offroad' '... tells of the other'
mk compiled/demo-split.pkl DEVICES=a >"$T/log" 2>&1 &
job=$!
wait_for 100 grep -q start "$A/calls"
up b
run mk device-status
prints 'a: demo-split: compiling for [0-9]* s, pid' 'device-status names what compiles'
run mk cancel/demo-split
exits 0 'cancel'
prints '^a: stopped demo-split' '... stops it on its device'
wait $job
is "$?" 2 '... and the run ends'
run mk cancel/demo-split
exits 0 'cancel again'
is "$(cat "$out")" 'demo-split: nothing of it is on a device' '... says so'
is "$(record)" 'compile 111 remote-compile: demo-split: a: the compile was cancelled' \
    '... with a record of it'
is "$(find "$A/compiledmodels/jobs" -mindepth 1 -maxdepth 1 -type d)" '' \
    '... nothing stays on the device'
finished
