#!/bin/sh
# onnx-stage: what is a model gets its name and a record, what is none does not.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
cases() { python3 "$here/onnx-cases.py" "$@"; }
# piped FILE COMMAND...: as run, from a pipe, whose size is not known
piped() {
	file=$1; shift
	# shellcheck disable=SC2002 # a pipe is the point
	cat "$file" | "$@" >"$out" 2>"$err"; status=$?
}

common onnx-stage
run onnx-stage </dev/null; exits 2 'no -o is status 2'; says '^usage: ' 'no -o: usage'
run onnx-stage -o x y </dev/null; exits 2 'an operand is status 2'
run onnx-stage -d abc -o x </dev/null; exits 2 'a bad digest is status 2'
says '^onnx-stage: abc: not a sha256, wanted 64 lower-case hex digits$' 'a bad digest is named'
for z in -1 010 1k ''; do
	run onnx-stage -z "$z" -o x </dev/null; exits 2 "-z '$z' is status 2"
done
absent x 'called wrongly, nothing is written'

# ---- a model of real shape: the same bytes, and a record ----
onnx-gen vision -o v.onnx
run onnx-stage -o 'out put.onnx' <v.onnx
exits 0 'a model is staged'
same v.onnx 'out put.onnx' 'the bytes are the same'
is "$(cat "$err")" '' 'good input gets no noise'
is "$(cat "$out")" "{\"path\": \"out put.onnx\", \"size\": $(wc -c <v.onnx), \"sha256\": \"$(sum v.onnx)\", \"inputs\": {\"img\": [1, 12, 128, 256], \"big_img\": [1, 12, 128, 256]}, \"outputs\": {\"outputs\": [1, 1576]}, \"checkpoint\": \"00000000-0000-4000-8000-000000000001/1\"}" 'the record'
cp "$out" record
ok 'the record is one line of JSON' python3 -c '
import json, sys
text = open(sys.argv[1]).read()
assert text.count("\n") == 1 and list(json.loads(text))[:3] == ["path", "size", "sha256"]' record
rm record
is "$(ls -A)" ".err
.out
out put.onnx
v.onnx" 'no temporary file is left'
size=$(wc -c <v.onnx) digest=$(sum v.onnx)
piped v.onnx onnx-stage -d "$digest" -z "$size" -o y
exits 0 'from a pipe, digest and size as wanted'
same v.onnx y 'a pipe: the same bytes'
{ printf 1234; cat v.onnx; } >later
{ dd bs=4 count=1 of=skipped 2>/dev/null; run onnx-stage -z "$size" -o y; } <later
exits 0 'input is read from where the descriptor stands'
rm -f y later skipped 'out put.onnx'

cp v.onnx object
oid=$digest
onnx-stage -d "$oid" -z "$size" -o driving_vision.onnx <object >record.json 2>"$err"; status=$?
exits 0 'digest and size as wanted'; same object driving_vision.onnx 'a file: the same bytes'

# ---- digest and size ----
wrong=$(printf %064d 0)
run onnx-stage -d "$wrong" -o x <v.onnx
exits 1 'another digest is status 1'; says "^onnx-stage: x: sha256 is $digest, wanted $wrong\$" 'both digests are said'
run onnx-stage -z $((size - 1)) -o x <v.onnx
exits 1 'a smaller size is status 1'; says "^onnx-stage: x: size is $size, wanted $((size - 1))\$" 'both sizes are said'
piped v.onnx onnx-stage -z $((size - 1)) -o x
exits 1 'a pipe that is too long'; says "size is over $((size - 1)), wanted $((size - 1))\$" 'a pipe: the wanted size is said'
piped v.onnx onnx-stage -z $((size + 1)) -o x
exits 1 'a pipe that is too short'; says "size is $size, wanted $((size + 1))\$" 'a short pipe: both sizes are said'
absent x 'nothing has the name'
echo old >keep
run onnx-stage -d "$wrong" -o keep <v.onnx
is "$(cat keep)" old 'what was there stays when the new one is refused'
absent .keep.tmp 'and no temporary file'

# ---- each refusal has its message, and leaves nothing ----
mkdir refused accepted
cases refused refused
n=0 bad=
for f in refused/*.onnx; do
	n=$((n + 1))
	run onnx-stage -o x <"$f"
	if [ "$status" -ne 1 ] || [ -s "$out" ] || [ -e x ] || [ -e .x.tmp ] ||
	    [ "$(wc -l <"$err")" -ne 1 ] ||
	    ! grep -Eq "^onnx-stage: x: .*$(cat "${f%.onnx}.says")" "$err"; then
		bad="$bad
$f: status $status: $(cat "$err")"
	fi
done
is "$bad" '' "$n refusals: status 1, one line with its own words, nothing left"
run onnx-stage -o x <refused/pointer.onnx
says 'x: is an LFS pointer for oid a{64}, size 12345: fetch it first$' 'a pointer says what to do'
run onnx-stage -d "$digest" -z "$size" -o x <refused/pointer.onnx
says 'x: is an LFS pointer' 'a pointer is not called a model of a wrong size'
head -c 2097152 /dev/zero >zeros
run onnx-stage -o x <zeros
exits 1 'zeros'; says 'x: is not an ONNX model: it begins with byte 0x00$' 'zeros: the first byte is said'
cases accepted accepted
n=0 bad=
for f in accepted/*.onnx; do
	n=$((n + 1))
	run onnx-stage -o x <"$f"
	[ "$status" -eq 0 ] && cmp -s "$f" x || bad="$bad $f: $(cat "$err")"
done
is "$bad" '' "$n odd but good models are staged"

# ---- every prefix ----
cases good small
rm -f x
ends=" $(cases bounds small) " bad='' i=0
while [ "$i" -le "$(wc -c <small)" ]; do
	head -c "$i" small >prefix
	case $ends in *" $i "*) wanted=0 ;; *) wanted=1 ;; esac
	run onnx-stage -o x <prefix
	[ "$status" -eq "$wanted" ] || bad="$bad $i: $status"
	[ "$wanted" -eq 0 ] || [ ! -e x ] || bad="$bad $i: left"
	rm -f x
	i=$((i + stride))
done
is "$bad" '' 'every prefix: status 1, unless all that must be there is'
head -c $((size - 1)) v.onnx >prefix
run onnx-stage -d "$digest" -o x <prefix
exits 1 'a truncated model'; says 'x: truncated: metadata_props needs [0-9]+ bytes, [0-9]+ are left$' 'truncated: needed and left'
head -c 100000 v.onnx >prefix
piped prefix onnx-stage -o x
exits 1 'truncated in the graph, from a pipe'
says 'x: truncated: graph needs [0-9]+ bytes, [0-9]+ are left$' 'a pipe: the graph is named'

# ---- chunks: byte by byte as whole; spoiled models; an independent reader ----
ok 'spoiled models: no chunking differs, what is accepted is read as protobuf reads it' cases mutants 20000

# ---- sizes around the buffer's ----
bad=
for n in 1048575 1048576 1048577 2097152; do
	cases sized sized.onnx "$n"
	run onnx-stage -z "$n" -o x <sized.onnx
	[ "$status" -eq 0 ] && cmp -s sized.onnx x || bad="$bad $n: $(cat "$err")"
	piped sized.onnx onnx-stage -d "$(sum sized.onnx)" -o x
	[ "$status" -eq 0 ] && cmp -s sized.onnx x || bad="$bad $n, piped: $(cat "$err")"
done
is "$bad" '' 'sizes around the buffer'
rm x
cases sized sized.onnx 3145728
printf '\0' >>sized.onnx
run onnx-stage -o x <sized.onnx
exits 1 'a fault after megabytes'; says 'x: trailing bytes: field number 0 at byte 3145728$' 'its place is said'
piped sized.onnx onnx-stage -o x
exits 1 'the same from a pipe'; says 'x: trailing bytes: field number 0 at byte 3145728$' 'a pipe: its place is said'
absent x 'nothing has the name'; absent .x.tmp 'no temporary file'

# ---- disks ----
(trap '' XFSZ; ulimit -f 8; onnx-stage -o x <v.onnx) >"$out" 2>"$err"; status=$?
exits 2 'a write that fails is status 2'; says '^onnx-stage: x: write: ' 'a failed write is said'
absent x 'a failed write leaves nothing'; absent .x.tmp 'not even a temporary file'
piped v.onnx onnx-stage -z 9000000000000000000 -o x
exits 2 'no space is status 2'; says 'x: no space: [0-9]+ bytes are free, wanted 9000000000000000000$' 'space is asked first'
onnx-stage -o x <v.onnx >/dev/full 2>"$err"; status=$?
exits 2 'a lost record is status 2'; absent x 'a model whose record is lost gets no name'
run onnx-stage -o none/x <v.onnx
exits 2 'no such folder is status 2'; says 'none/.x.tmp: No such file' 'the folder is named'
run onnx-stage -o x <.; exits 2 'a folder as input is status 2'
onnx-stage -o x <&- >"$out" 2>"$err"; status=$?
exits 2 'closed input is status 2'; absent x 'closed input leaves nothing'

# ---- killed: the old file stays, the next run is not in the way ----
mkfifo pipe
echo old >x
onnx-stage -o x <pipe >"$out" 2>"$err" & pid=$!
later $pid
exec 3>pipe
cat v.onnx >&3
while [ "$(wc -c <.x.tmp 2>/dev/null || echo 0)" -lt 1048576 ]; do sleep 0.05; done
kill -9 "$pid"; wait "$pid" 2>/dev/null
exec 3>&-
is "$(cat x)" old 'killed in the middle: the old file is there'
run onnx-stage -o x <v.onnx
exits 0 'the next run'; same v.onnx x 'the next run: the new file'; absent .x.tmp 'the next run: no temporary file'
finished
