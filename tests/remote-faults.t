#!/bin/sh
# What can go wrong between here and a device, made for real on loopback: the
# status, how often the compiler ran, and what is left here and there.
# shellcheck source=tests/lib.sh
# shellcheck disable=SC2016,SC2119 # scripts for the stand-in
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
device_here

begin
run rc
exits 0 'a compile'
wanted=$(sum compiled/one.pkl) length=$(wc -c <compiled/one.pkl)
is "$(compiles) $(left)" '1 ' '... once, and nothing stays'

job_pid() { sed -n 's/^pid	//p' "$jobs"/*/who; }

# ---- the link is cut ----
cd "$T" || exit 2
python3 - <<'PY'
import hashlib, json, os
os.chdir("base")
p = "onnx/one/one_driving_vision.onnx"
os.makedirs("../big", exist_ok=True)
data = bytes(range(256)) * 400000
open("../big/vision", "wb").write(data)
r = json.load(open("results/one_source.json"))
for f in r["files"]:
    if f["path"] == p:
        f["size"], f["sha256"] = len(data), hashlib.sha256(data).hexdigest()
json.dump(r, open("../big/record", "w"))
PY
part() {
	find "$jobs"/*/in -name '.one*vision*.part' -size "${1:-+1c}" \
	    2>/dev/null
}
# shellcheck disable=SC2317 # by wait_for
arrives() { [ -n "$(part +4000k)" ]; }
for spoil in no yes; do
	begin
	rm -f "$T/kept"
	cp "$T/big/vision" onnx/one/one_driving_vision.onnx
	cp "$T/big/record" results/one_source.json
	echo 'stat -c %i "$in"/*vision.onnx >inode' >"$D/on-compile"
	behind -P 1
	until arrives || ! kill -0 "$bg"; do :; done
	cut_link
	inode=$(stat -c %i "$(part)")
	ln "$(part)" "$T/kept"	# so that its inode is not used again
	[ "$spoil" = no ] ||
	    printf x | dd of="$(part)" conv=notrunc status=none
	ends 0 "cut in mid-upload, what came spoiled: $spoil"
	says 'the link dropped.*again in 1 s \(1 of 3\)' '... is said'
	goes_on=no
	[ "$(cat "$D/inode")" = "$inode" ] || goes_on=anew
	case $spoil in
	no) is $goes_on no '... the file that was begun goes on' ;;
	yes) is $goes_on anew '... and its digest decides' ;;
	esac
	is "$(compiles) $(left)" '1 ' '... one compile'
	is "$(tail -c 102400018 compiled/one.pkl | sha256sum)" \
	    "$(cat onnx/one/*.onnx | tail -c 102400018 | sha256sum)" \
	    '... of the bytes that are here'
done

begin
echo 1.5 >"$D/pause"
behind
compiling
cut_link
ends 0 'cut in mid-compile'
whole 1

begin
echo 'head -c 60000000 /dev/zero >>"$out/${id}_driving_tinygrad.pkl"' \
    >"$D/after-compile"
behind
until [ "$(stat -c %s compiled/.one.pkl.tmp 2>/dev/null || echo 0)" -gt 999999 ]
do kill -0 "$bg" 2>/dev/null || break; done
cut_link
ends 0 'cut in mid-download'
says 'the link dropped' '... is said'
is "$(compiles) $(stat -c %s compiled/one.pkl) $(left)" \
    "1 $((60000000 + length)) " \
    '... one compile, all of it'

begin
echo 5 >"$D/pause"
behind -R 0 -t 2
compiling
for c in $(ssh_children); do kill -STOP "$c"; done
ends 111 'a peer that says nothing'
says 'compile: nothing was heard for 2 s' '... the phase is named'
none 1
cut_link
run rc
exits 0 '... the next run takes the result'
whole 1

# the disk fills while an upload arrives: what is left of it is no command
if [ "$(id -u)" -eq 0 ]; then
	mkdir -p "$T/path"
	printf '#!/bin/sh\necho 99999999999\n' >"$T/path/df"
	chmod 755 "$T/path/df"
	first=$port
	there="PATH=$T/path:$PATH"
	sshd_start full
	begin
	cp "$T/big/vision" onnx/one/one_driving_vision.onnx
	cp "$T/big/record" results/one_source.json
	mkdir -p "$jobs"
	mount -t tmpfs -o size=30m small "$jobs" || fail 'no tmpfs'
	run rc -t $((10 * slack))
	exits 2 'no space in mid-upload'
	says 'cannot take this model: .*cannot be written: no space' '... is said'
	is "$(grep -c again "$err")" 0 '... at once'
	none 0
	umount "$jobs"
	port=$first
	unset there
fi

# ---- the device restarts, or loses what it wrote ----
begin
echo 30 >"$D/pause"
behind -P 2
compiling
cut_link
kill -9 "-$(job_pid)"
rmdir "$D/running"
echo boot-2 >"$T/dev/proc/sys/kernel/random/boot_id"
echo 0 >"$D/pause"
ends 0 'the device restarts'
says '^one: the device has restarted' '... is said'
whole 2

begin
echo 2 >"$D/pause"
behind
compiling
kill -9 "$(job_pid)"
ends 0 'the shell of a job is killed, and its compiler is not'
says 'one: the compile was killed' '... is said'
whole 2

begin
echo 'kill -9 -$(ps -o sid= -p $$ | tr -d " ")' >"$D/on-compile"
run rc -R 2
exits 111 'a job that is killed each time'
says 'the compile was lost 3 times' '... counts among the retries'
none 3

begin
# once the digest is in rc, and nobody looks yet
echo 2 >"$D/pause"
behind
compiling
kill -9 "$bg"
wait "$bg" 2>/dev/null
wait_for 100 sh -c 'test -e "$1"/*/rc' sh "$jobs"
echo x >"$(echo "$jobs"/*/out/$pkl)"
echo 0 >"$D/pause"
run rc
exits 0 'an output that was spoiled after the compile'
says 'lost in a power cut\? compiled again' '... is said'
whole 2
finished
