#!/bin/sh
# Runs whose link is cut at random moments: each ends with the right digest,
# after one compile. CUTS is how many (40).
# shellcheck source=tests/lib.sh disable=SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
sshd_start
device_make
ws_make
begin
echo 0.15 >"$D/pause"
for f in onnx/one/*.onnx; do cp "$f" "$T/$(basename "$f")"; done

# moment N: a random moment, in ms below N
moment() {
	ms=$(od -An -N4 -tu4 /dev/urandom)
	ms=$((ms % $1))
	sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
}
# expected VERSION: the digest of what the stand-in makes
expected() {
	{ echo "pickle --model one --input-dir x --output-dir x" \
	    "--input-format split --no-split --version $1" |
	    sed 's/--[a-z]*put-dir [^ ]*//g'
	cat onnx/one/*.onnx; } | sha256sum | cut -c1-64
}

# how long a run takes that nobody disturbs
t0=$(date +%s%N)
run rc -v v9999
exits 0 'a run without a cut'
span=$((($(date +%s%N) - t0) / 1000000))
is "$(sum compiled/one.pkl)" "$(expected v9999)" '... has the digest'

cuts=${CUTS:-40} i=0 dropped=0 bad='' many=0
while [ "$i" -lt "$cuts" ]; do
	i=$((i + 1))
	: >"$D/calls"
	behind -v "v$i" -R 9 -t $((20 * slack))
	moment "$span"
	first=$ms
	cut_link
	[ $((i % 2)) -eq 0 ] || { moment "$span"; cut_link; }
	wait "$bg"
	got="$? $(sum compiled/one.pkl) $(grep -c twice "$D/calls")"
	[ "$got" = "0 $(expected "v$i") 0" ] ||
	    bad="$bad
run $i, cut at $first ms: $got: $(tr '\n' ';' <"$err")"
	[ "$(compiles)" -le 1 ] || {
		many=$((many + 1))
		bad="$bad
run $i, cut at $first ms: $(compiles) compiles: $(tr '\n' ';' <"$err")"
	}
	! grep -q dropped "$err" || dropped=$((dropped + 1))
done
is "$bad" '' "$cuts runs: the right digest, one compile, never two at once"
is "$((dropped * 4 >= cuts))" 1 "... of which $dropped were cut off"
is "$(left)" '' 'nothing stays on the device'
finished
