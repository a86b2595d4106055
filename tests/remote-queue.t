#!/bin/sh
# One device, several hands: who waits, who takes a result, who stops whom,
# and what a login shell may do meanwhile.
# shellcheck source=tests/lib.sh
# shellcheck disable=SC2016,SC2119 # scripts for the stand-in
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
device_here

begin
run rc
exits 0 'a compile'
# shellcheck disable=SC2034 # by whole
wanted=$(sum compiled/one.pkl)
# running PID...: yes or no, for each; a zombie does not
running() {
	for p; do
		ps -o stat= -p "$p" | grep -qv Z && echo yes || echo no
	done | paste -sd ' ' -
}

# ---- what the next run finds ----
# interrupted: ^C in mid-compile
interrupted() {
	begin
	echo 2 >"$D/pause"
	behind
	compiling
	kill -INT "$bg"
	wait "$bg"
	status=$?
}
interrupted
exits 130 '^C in mid-compile'
goes_on='the compile goes on at 127.0.0.1:[0-9]*: make compiled/one.pkl takes'
says "one: $goes_on its result, make cancel/one stops it" \
    '... with the commands'
none 1
run rc
exits 0 '... the job went on, and the next run takes it'
whole 1
interrupted
sleep 2.5
run rc
exits 0 'a finished result'
whole 1
interrupted
sleep 2.5
echo 0 >"$D/pause"
run rc -F
exits 0 '... but -F compiles anew'
whole 2
begin
run rc -k
exits 0 '-k'
is "$(find "$jobs"/*/in "$jobs"/*/out -type f | wc -l)" 3 '... keeps the files'
rm compiled/one.pkl
run rc
exits 0 '... and the next run'
whole 1

# an older job of this model is not wanted any more; nor is its output
interrupted
pid=$(sed -n 's/^pid	//p' "$jobs"/*/who)
rmdir "$D/running"
echo 0 >"$D/pause"
run rc -v v1
exits 0 'a job of another key runs'
says 'one: an older compile of one ran here: stopped' \
    '... is stopped, with a notice'
is "$(running "$pid")" no '... it is gone'
is "$(compiles) $(left)" '2 ' '... and its folder'
begin
run rc -k
run rc -v v1
exits 0 'an output of another key'
is "$(sum compiled/one.pkl | grep -c "$wanted") $(left)" '0 ' '... is not taken'

# ---- bounds ----
begin
echo 60 >"$D/pause"
run rc -l 2
exits 2 'a compile that goes on for longer than -l'
says 'the compile was stopped: it ran for more than 2 s' '... is stopped'
none 1
is "$(left)" '' '... nothing stays'
begin
cat >"$T/models" <<'SH'
#!/bin/sh
sleep "$1"
SH
chmod 755 "$T/models"
# shellcheck disable=SC2164 # it is there
(cd "$D"; exec "$T/models" 30) &
hand=$!
later $hand
run rc -w 2
exits 111 'a compile that was started by hand'
says "another compiler is running: $hand .*/models 30" '... is named'
none 0
kill "$hand"
run rc
exits 0 '... and when it has gone'
whole 1

# ---- two workspaces ----
begin other
begin
echo 1 >"$D/pause"
behind
first=$bg
cd "$T/other" || exit 2
err=$T/.err2
behind
second=$bg
wait "$first"
is $? 0 'two workspaces, one key: the first'
wait "$second"
is $? 0 '... the second'
whole 1
is "$(sum "$T/ws/compiled/one.pkl")" "$wanted" '... both have it'
begin other
begin
echo 1 >"$D/pause"
behind
first=$bg
cd "$T/other" || exit 2
behind -v v1
wait "$first"
is $? 0 'two workspaces, two keys: the first'
ends 0 '... the second'
is "$(compiles) $(grep -c twice "$D/calls") $(left)" '2 0 ' \
    '... one after the other'
begin other
begin
echo 3 >"$D/pause"
behind
first=$bg
compiling
cd "$T/other" || exit 2
run rc -v v1 -w 1
exits 111 'a device that is busy for longer than -w'
says 'another compile holds the device: one, pid [0-9]*, of .*/ws' '... by whom'
wait "$first"
is $? 0 '... who goes on'
run rc -v v1
exits 0 '... and is told nothing of it later'

begin other
begin
echo 6 >"$D/pause"
behind
first=$bg
compiling
cd "$T/other" || exit 2
run rc -l 2
exits 111 'the compile of another workspace takes longer than our -l'
says 'a compile of .*/ws has run for [0-9]* s: not stopped' '... is said'
wait "$first"
is $? 0 '... and it goes on'

# both send the same file at once
begin other
begin
for w in "$T/other" "$T/ws"; do
	cd "$w" || exit 2
	python3 - <<'PY'
import hashlib, json
p = "onnx/one/one_driving_vision.onnx"
data = bytes(range(256)) * 200000
open(p, "wb").write(data)
r = json.load(open("results/one_source.json"))
for f in r["files"]:
    if f["path"] == p:
        f["size"], f["sha256"] = len(data), hashlib.sha256(data).hexdigest()
json.dump(r, open("results/one_source.json", "w"))
PY
done
behind
first=$bg
cd "$T/other" || exit 2
err=$T/.err4
behind -t $((10 * slack))
second=$bg
wait "$first"
is $? 0 'two uploads of one file: the first'
wait "$second"
is $? 0 '... the second'
is "$(grep -c 'nothing was heard' "$T/.err4") $(compiles) $(left)" '0 1 ' \
    '... none is left without an answer, one compile'
same "$T/ws/compiled/one.pkl" "$T/other/compiled/one.pkl" '... both have it'

# ---- -S and -C ----
begin
err=$T/.err
echo 60 >"$D/pause"
behind
compiling
run on_device -S
exits 0 '-S'
prints "^127.0.0.1:$port: offroad, .* free" '... the device'
prints 'one: compiling for [0-9]* s, pid [0-9]*; job [0-9a-f]{12} of .*/ws' \
    '... the job'
is "$(grep -c 'not ours' "$out")" 0 '... which is not a stranger'
who=$(echo "$jobs"/*/who)
pid=$(sed -n 's/^pid	//p' "$who")
cp "$who" "$T/who"
sleep 60 &
reused=$!
later $reused
sed "s/^pid.*/pid	$reused/" "$T/who" >"$who"
run on_device -C one
exits 111 '-C of a job whose pid is another process'
says 'not stopped' '... is said'
is "$(running "$reused" "$pid")" 'yes yes' '... which is left alone'
cp "$T/who" "$who"
err=$T/.err3
run on_device -C one
exits 0 '-C'
prints 'stopped one \(pid [0-9]*\)' '... is said'
wait "$bg"
is $? 111 '... who follows it'
err=$T/.err
says 'the compile was cancelled' '... is told'
is "$(running "$pid")" no '... the job is gone'
is "$(left)" '' '... and its folder'
rmdir "$D/running"
echo 0 >"$D/pause"
run rc
exits 0 '... the next run compiles'

# ---- names that are no names ----
begin
for bad in 'a;touch canary' '$(touch canary)' '../one' 'a b' '' 'a
b'; do
	run on_device -f split -v v0 -r results "$bad"
	exits 2 "the id \"$(echo "$bad" | tr '\n' ' ')\""
	run on_device -C "$bad"
	exits 2 '... -C'
	[ -z "$bad" ] || {
		run on_device -f split -v "v$bad" -r results one
		exits 2 '... and the version'
	}
done
is "$(find "$T" -name 'canary*')$(left)" '' '... nothing ran, nothing was sent'

# ---- login shells ----
cat >"$T/shell" <<EOF
#!/bin/sh
echo x >>$T/starts
echo "note well: unfit"
echo again
printf 'no newline'
echo complaint >&2
sleep 1
exec /bin/sh -c "\$SSH_ORIGINAL_COMMAND"
EOF
chmod 755 "$T/shell"
sshd_start slow -o "ForceCommand=$T/shell"
begin
run rc
exits 0 'a login shell that talks and is slow'
whole 1
is "$(wc -l <"$T/starts") $(grep -c 'well:\|again' "$err")" '1 0' \
    '... starts once for a model, and what it says is no answer'
finished
