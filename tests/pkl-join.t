#!/bin/sh
# Joining as a device does: what is there, what is wrong with it, and servers
# that misbehave. The parts are cut by split(1), the digests are Python's.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common pkl-join

n=m1_driving_tinygrad.pkl
mkdir good && cd good || exit 2
python3 - <<'PY'
import hashlib, random
random.seed(1)
data = random.randbytes(2500)
name = "m1_driving_tinygrad.pkl"
open("../whole", "wb").write(data)
for i in range(3):
    open("%s.p%02d" % (name, i), "wb").write(data[i * 1000:i * 1000 + 1000])
digest = hashlib.sha256(data).hexdigest()
open(name + ".sha256", "w").write("%s  %s\n" % (digest, name))
open("../digest", "w").write(digest)
PY
cd "$T" || exit 2
digest=$(cat digest)

# fresh: a good set of parts in the current folder, and nothing else
fresh() { rm -rf "$T/set" && cp -R "$T/good" "$T/set" && cd "$T/set" || exit 2; }
# refused STATUS REGEX TEXT [OPTION...]: nothing is left under the final name
refused() {
	want=$1 regex=$2 text=$3
	shift 3
	run pkl-join -o out "$@" "$n"
	exits "$want" "$text"
	says "^pkl-join: $regex" '... and is named'
	is "$(find . -name '*out*')" '' '... and nothing is left'
	run pkl-join -c "$@" "$n"
	exits "$want" '... -c says the same'
}

# ---- what a device takes ----
fresh
run pkl-join -o out $n
exits 0 'parts'
same out "$T/whole" '... joined'
is "$(cat "$T/.out")" "$digest  out" '... the digest is said'
run pkl-join -c $n
exits 0 '-c: parts'
is "$(cat "$T/.out")" "$digest  $n" '... the digest is said'
run pkl-join -q -c $n
is "$(cat "$T/.out")" '' '-q: nothing'
run pkl-join -c -s "$digest" -z 2500 $n
exits 0 'what the manifest says, too'
cp "$T/whole" $n && rm $n.p*
run pkl-join -c $n
exits 0 'whole, with a digest'
rm $n.sha256
run pkl-join -o out $n
exits 0 'whole, without one'
same out "$T/whole" '... the same'
fresh
cp "$T/whole" $n
rm $n.p01
run pkl-join -c $n
exits 0 'whole and parts: the whole is taken, as a device does'
run pkl-join -c "$T/set/$n"
exits 0 'an absolute path'

# ---- what is wrong ----
fresh; rm $n.p01; refused 1 "$n.p01: missing, yet .p02 is there" 'a missing part'
fresh; rm $n.p00; refused 1 "$n.p00: missing, yet .p01 is there" 'no first part'
fresh; rm $n.p*; refused 1 "$n.p00: missing, yet .sha256 is there" 'no part'
fresh; rm $n.p02
refused 1 "$n: sha256 of the parts is [0-9a-f]{64}, its .sha256 says $digest" \
    'no last part'
fresh; cp $n.p02 $n.p03
refused 1 "$n.p02: 500 bytes, less than .p00: cut off, or .p03 is of an older set" \
    'a part too many'
fresh; head -c 999 "$T/good/$n.p01" >$n.p01
refused 1 "$n.p01: 999 bytes, less than .p00" 'a part that is cut off'
fresh; cat "$T/whole" >$n.p02
refused 1 "$n.p02: 2500 bytes, more than .p00" 'a last part that is too long'
fresh; : >$n.p02; refused 1 "$n.p02: is empty" 'an empty part'
fresh; printf x | dd of=$n.p01 bs=1 seek=7 conv=notrunc 2>/dev/null
refused 1 "$n: sha256 of the parts is" 'a byte that differs'
fresh; echo x >$n; refused 1 "$n: sha256 of the whole file is" 'a stale whole file'
fresh; rm ./*; refused 1 "$n: missing, and so is .sha256" 'nothing'
fresh
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 2500\n' \
    "$digest" >$n
refused 1 "$n: is a Git LFS pointer, not an artifact" 'a pointer'
rm $n.sha256
refused 1 "$n: is a Git LFS pointer, not an artifact" 'a pointer without digest'
fresh; mkdir $n; refused 2 "$n: not a regular file" 'a folder'
other=0000000000000000000000000000000000000000000000000000000000000000
fresh
refused 1 "$n.sha256: says $digest, wanted $other" 'another digest' -s $other
refused 1 "$n: 2500 bytes, wanted 2501" 'another size' -z 2501
cp "$T/whole" $n; rm $n.sha256
refused 1 "$n: sha256 is $digest, wanted $other" 'another digest, whole' -s $other

# ---- .sha256 files ----
sums() {
	fresh
	printf %b "$1" >$n.sha256
	refused 1 "$n.sha256: $2" "a digest line: $1"
}
sums '' '"": wanted a sha256, two blanks and '$n
sums "$digest  m2_driving_tinygrad.pkl\n" 'is of "m2_driving_tinygrad.pkl", wanted '$n
sums "$digest $n\n" 'wanted a sha256, two blanks|"[0-9a-f]*.*": wanted'
sums "$(echo "$digest" | tr a-f A-F)  $n\n" '.*wanted 64 lower-case hex digits'
sums "$digest  $n\n$digest  $n\n" 'is of '
sums "$digest  $n\000\n" 'is of '
sums '%0600d' '.*wanted a sha256, two blanks'
bad=
i=0 whole_line="$digest  $n"
while [ $i -lt ${#whole_line} ]; do
	fresh
	printf %s "$whole_line" | head -c $i >$n.sha256
	run pkl-join -c $n
	[ "$status" -eq 1 ] || bad="$bad $i:$status"
	i=$((i + 1 + stride / 5))
done
is "$bad" '' 'every prefix of a digest line is refused'
fresh
printf %s "$whole_line" >$n.sha256
run pkl-join -c $n
exits 0 'a digest line without newline'
printf '%s *%s\n' "$digest" $n >$n.sha256
run pkl-join -c $n
exits 0 'a digest line of binary mode'

# ---- the disk ----
fresh
run pkl-join -o none/out $n
exits 2 'no such folder'
run pkl-join -o . $n
exits 2 'a folder as output'
cp "$T/whole" kept && chmod 600 kept
rm $n.p01
run pkl-join -o kept $n
same kept "$T/whole" 'what was there stays when the join fails'
if [ "$(id -u)" -eq 0 ]; then
	fresh
	mkdir small
	mount -t tmpfs -o size=1m small small || fail 'no tmpfs'
	run pkl-join -o small/out $n
	exits 2 'no space'
	says 'small/out: no space: [0-9]+ bytes are free, wanted' '... is said'
	is "$(ls -A small)" '' '... and nothing is left'
	umount small
fi
fresh
for words in "-c -o out $n" "$n" "-o out" "-c -s xyz $n" "-c -z x $n" \
    "-c -t 0 $n" "-c http://192.0.2.1/x" "-c https://h/x?y" "-c http://"; do
	# shellcheck disable=SC2086 # words
	run pkl-join $words
	exits 2 "called wrongly: $words"
done

# ---- servers ----
fresh
python3 "$here/join-server.py" "$T/set" "$T/port" "$T/log" &
later $!
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -e "$T/port" ] || sleep 0.2; done
at=http://127.0.0.1:$(cat "$T/port")
# over CASE STATUS TEXT [OPTION...]: the set, from such a server
over() {
	case=$1 want=$2 text=$3
	shift 3
	: >"$T/log"
	rm -f out
	run pkl-join -t 5 -o out "$@" "$at/$case/$n"
	exits "$want" "$text"
	if [ "$want" -eq 0 ]; then same out "$T/whole" '... joined'
	else is "$(find . -name '*out*')" '' '... nothing is left'; fi
}
over ok 0 'parts over http'
is "$(head -n 2 "$T/log" | cut -d' ' -f1,2)" "HEAD /ok/$n
HEAD /ok/$n.sha256" '... the whole is asked for first, then the digest'
over drop 0 'a server that drops each part once'
is "$(grep -c 'bytes=500-' "$T/log")" 2 '... ranges go on'
over norange 0 'the same without ranges'
over unsized 0 'a server that tells no length'
over late 0 'a server that wants to be asked later'
over short 111 'bodies that end early for ever' -T 2
over gone 111 'a server that is down' -T 2
says '503$' '... is said'
over login 2 'a server that wants a login'
says '401$' '... is said'
over endless 1 'a body that does not end'
says 'sha256: goes on after 90 bytes' '... is said'
over away 2 'a redirect to http elsewhere'
rm $n.p01
over ok 1 'a missing part over http'
says "$n.p01: missing, yet .p02 is there" '... is named'
rm ./*
over ok 1 'nothing over http'
cp "$T/whole" $n
over ok 0 'whole over http'
over drop 0 'whole, dropped once'
kill "${pids##* }"
run pkl-join -T 1 -c "$at/ok/$n"
exits 111 'no server'
finished
