#!/bin/sh
# Jobs on a device: what a compiler may do, who waits for whom, who is
# refused, and what the next run finds.
# shellcheck source=tests/lib.sh
# shellcheck disable=SC2016,SC2119 # scripts for the stand-in
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
device_here

begin
run rc
exits 0 'a compile'
wanted=$(sum compiled/one.pkl)

# does TEXT SCRIPT [AFTER]: what the compiler does
does() {
	begin
	[ -z "$2" ] || echo "$2" >"$D/on-compile"
	[ -z "${3-}" ] || echo "$3" >"$D/after-compile"
	run rc
}

# ---- what a compiler does ----
does 'writes nothing' 'rmdir running; exit 0'
exits 1 'a compiler that writes nothing'
says 'ended well, yet wrote no one_driving_tinygrad.pkl' '... is said'
none 1
is "$(left)" '' '... nothing stays on the device'

begin
echo 'seq -f "line %g" 1 30; rmdir running; exit 1' >"$D/on-compile"
run step -l logs -r results one compile -- remote-compile -c "$S/config" \
    -a 127.0.0.1 -p "$D" -P 0 -D "127.0.0.1:$port" -f split -v v0 -r results one
exits 1 'a compiler that fails'
none 1
is "$(python3 -c 'import json
r = json.load(open("results/one_failure.json"))
t = r["log_tail"]
t = t if isinstance(t, list) else t.splitlines()
print(r["exit_status"], len(t), any("line 30" in x for x in t))')" '1 20 True' \
    '... its last 20 lines are in the record'
rm "$D/on-compile"
run rc
exits 0 '... and the next run compiles'
whole 2
does fails 'rmdir running; exit 1'
run rc -k
exits 1 'a failure, its files kept'
is "$(wc -l <"$(echo "$jobs"/*/log)")" 1 '... are there'
rm "$D/on-compile"
run rc
exits 0 '... is not taken for a result'
whole 3

split='cd "$out"; split -b 40 -d -a 2 $f $f.p; sha256sum $f >$f.sha256; rm $f'
does parts '' "f=$pkl; ($split)"
exits 0 'a compiler that splits and deletes the whole'
whole 1
does parts '' "f=$pkl; ($split; sed -i s/^....../000000/ \$f.sha256)"
exits 1 'a .sha256 that is not that of the parts'
says 'sha256: says 000000.*, yet the parts are ' '... is said'
none 1
does parts '' "f=$pkl; ($split; rm \$f.p01)"
exits 1 'a part that is missing'
none 1
for change in 'echo "# 2" >>selfdrive/modeld/compile_modeld.py' \
    'echo "rev = $$" >tinygrad_repo/tinygrad/__init__.py'; do
	does changes "$change"
	exits 111 "in mid-compile: $change"
	says 'compiler changed during the compile' '... is said'
	none 1
done
does 'leaves a daemon' "setsid sleep $((30 * slack)) &"
exits 0 'a compiler that leaves a daemon behind'
begun=$(date +%s)
run rc -F
exits 0 '... and the next compile'
is "$(($(date +%s) - begun < 15 * slack))" 1 '... does not wait for its end'
echo 'rev = 1' >"$D/tinygrad_repo/tinygrad/__init__.py"

# ---- is the device fit? ----
# unfit N REGEX TEXT: before anything is sent
unfit() {
	run rc -R 0
	exits "$1" "$3"
	says "$2" '... is said'
	none 0
	is "$(left)" '' '... nothing was sent'
}
begin
chmod 644 "$D/models"
unfit 2 'models is missing or cannot be run' './models cannot be run'
mv "$D/models" "$T/models"
unfit 2 'models is missing or cannot be run' 'no ./models'
mv "$T/models" "$D/models"
chmod 755 "$D/models"
printf 0 >"$T/dev/data/params/d/IsOffroad"
unfit 111 'the car is onroad' 'the car is onroad'
printf 1 >"$T/dev/data/params/d/IsOffroad"

usb=$T/dev/sys/bus/usb/devices/2-1
mkdir -p "$usb"
echo add1 >"$usb/idVendor"
echo 'custom v1' >"$usb/product"
run rc -g
exits 0 'an external GPU behind a bridge with custom firmware'
begin
echo 'USB 3.2 PCIe TinyEnclosure' >"$usb/product"
run env MR_RUN="$T" sh -c "exec remote-compile -c '$S/config' -a 127.0.0.1 \
    -p '$D' -P 0 -D 127.0.0.1:$port -f split -v v0 -r results -g one"
exits 2 '... with another'
says 'cannot take this model: .*"USB 3.2 PCIe TinyEnclosure", wanted one with' \
    '... is said'
none 0
run env MR_RUN="$T" sh -c "exec remote-compile -c '$S/config' -a 127.0.0.1 \
    -p '$D' -P 0 -D 127.0.0.1:$port -f split -v v0 -r results one"
exits 0 '... and the device takes other models of the run'
begin
rm -r "$usb"
run rc -g
exits 111 '... with none'
says "external GPU's link is down" '... is said'

# ---- no space ----
if [ "$(id -u)" -eq 0 ]; then
	begin
	mkdir -p "$jobs"
	mount -t tmpfs -o size=2m small "$jobs" || fail 'no tmpfs'
	run rc
	exits 2 'no space on the device'
	says 'bytes are free, wanted' '... is said'
	none 0
	mount -o remount,size=200m "$jobs"
	# the compile itself fills it, and a little room is left or none
	echo 'head -c 300m /dev/zero >"$out/fill" 2>/dev/null || :
	head -c 4096 /dev/zero >>"$out/fill" 2>/dev/null || :' >"$D/after-compile"
	run rc -t $((10 * slack))
	exits 2 '... nor for the result'
	says 'no space on the device for the result' '... is said'
	none 1
	rm "$D/after-compile"
	run rc
	exits 0 '... and when there is room again'
	is "$(compiles) $(sum compiled/one.pkl)" "2 $wanted" '... it is compiled'
	umount "$jobs"

	begin
	mkdir "$T/tight"
	mount -t tmpfs -o size=50m small "$T/tight" || fail 'no tmpfs'
	cp -a . "$T/tight" && cd "$T/tight" || exit 2
	run rc
	exits 2 'no space at home'
	says 'no space here: .*the result stays on the device' '... is said'
	none 1
	mount -o remount,size=200m "$T/tight"
	run rc
	exits 0 '... and when there is room again'
	whole 1
	cd "$T" && umount "$T/tight"
fi

# ---- others on the device ----
begin
finished
