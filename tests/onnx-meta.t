#!/bin/sh
# onnx-meta: the same values as an independent reading by Python, as JSON and
# as a pickle; output_slices read without unpickling.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
cases() { python3 "$here/onnx-cases.py" "$@"; }
# alike TEXT FILE...: JSON and pickle are what Python reads in each FILE
alike() {
	ok_for=$1; shift
	ok "$ok_for" cases meta "$@"
}

common onnx-meta
run onnx-meta; exits 2 'no file is status 2'
run onnx-meta a b; exits 2 'two files are status 2'
run onnx-meta none.onnx; exits 2 'no such file is status 2'; says '^onnx-meta: none.onnx: No such file' 'no such file: named'
run onnx-meta .; exits 2 'a folder is status 2'; says '^onnx-meta: \.: read: ' 'a folder: named'

# ---- real shapes ----
for kind in vision policy on_policy off_policy supercombo dm; do
	onnx-gen "$kind" -o "$kind.onnx"
done
onnx-gen vision -f 16 -o half.onnx
alike 'real shapes: JSON and pickle as Python reads them' ./*.onnx
run onnx-meta vision.onnx
is "$(cat "$out")" '{"model_checkpoint": "00000000-0000-4000-8000-000000000001/1", "output_slices": {"meta": [0, 55, null], "desire_pred": [55, 87, null], "pose": [87, 99, null], "wide_from_device_euler": [99, 105, null], "road_transform": [105, 117, null], "lane_lines": [117, 645, null], "lane_lines_prob": [645, 653, null], "road_edges": [653, 917, null], "lead": [917, 1061, null], "lead_prob": [1061, 1064, null], "hidden_state": [1064, 1576, null], "pad": [0, null, null]}, "input_shapes": {"img": [1, 12, 128, 256], "big_img": [1, 12, 128, 256]}, "output_shapes": {"outputs": [1, 1576]}, "input_types": {"img": 2, "big_img": 2}, "output_types": {"outputs": 1}}' 'JSON, word for word'
cp vision.onnx driving_vision.onnx
onnx-meta -p driving_vision.onnx >driving_vision_metadata.pkl
onnx-meta -p vision.onnx >two
same driving_vision_metadata.pkl two 'the pickle is the same each time'
onnx-gen policy -x no-checkpoint -o c.onnx
alike 'no checkpoint' c.onnx
run onnx-meta -- c.onnx; exits 0 'after --'; prints '^\{"model_checkpoint": null, ' 'null is written'
onnx-gen policy -x no-slices -o n.onnx
run onnx-meta n.onnx
exits 1 'no output_slices is status 1'; says '^onnx-meta: n.onnx: no output_slices in metadata_props' 'no output_slices: said'
is "$(cat "$out")" '' 'nothing is printed for it'

# ---- odd but good, and refused ----
mkdir refused accepted
cases accepted accepted
alike 'odd but good models: as Python reads them' accepted/*.onnx
cases refused refused
n=0 bad=
for f in refused/*.onnx; do
	n=$((n + 1))
	[ "$stride" -eq 1 ] || [ $((n % 5)) -eq 0 ] || continue
	run onnx-meta "$f"
	if [ "$status" -ne 1 ] || [ -s "$out" ] || [ "$(wc -l <"$err")" -ne 1 ] ||
	    ! grep -Eq "^onnx-meta: $f: .*$(cat "${f%.onnx}.says")" "$err"; then
		bad="$bad
$f: status $status: $(cat "$err")"
	fi
done
is "$bad" '' "$n refusals: status 1, one line with its own words"

# ---- every prefix of a small model ----
cases good small
bad='' i=0
while [ "$i" -lt "$(wc -c <small)" ]; do
	head -c "$i" small >prefix
	run onnx-meta prefix
	[ "$status" -eq 1 ] && [ ! -s "$out" ] || bad="$bad $i: $status"
	i=$((i + stride))
done
is "$bad" '' 'every prefix is status 1'

# ---- output_slices ----
ok 'slices of Python, protocols 0 to 5, spoiled ones, prefixes' cases slices 1500
ok 'each refusal of a pickle has its words' cases pickles
touch canary
export canary="$PWD/canary"
evil=$(python3 -c 'import base64, os, pickle
class E:
  def __reduce__(self): return os.unlink, (os.environ["canary"],)
print(base64.b64encode(pickle.dumps({"plan": E()})).decode())')
printf '%s\n' "$evil" | onnx-probe slices >"$out"; status=$?
exits 0 'a pickle that removes a file'; prints '^no output_slices: the pickle names [a-z]+[.]unlink, which could run code' 'its callable is named'
ok 'nothing was run' test -e canary

# ---- large files are not read: 3 GB are refused, 1.9 GB take no time ----
truncate -s 3G huge
cases good small
dd if=small of=huge conv=notrunc 2>/dev/null
run onnx-meta huge
exits 1 'more than 2 GiB is status 1'; says 'huge: is larger than 2 GiB, the format.s limit$' 'more than 2 GiB: said'
ok 'a model of 1.9 GB, sparse' python3 - "$here" <<-'END'
	import importlib.util, sys
	spec = importlib.util.spec_from_file_location("c", sys.argv[1] + "/onnx-cases.py")
	c = importlib.util.module_from_spec(spec)
	spec.loader.exec_module(c)
	hole = 1900000000
	head = c.num(1, hole // 4) + c.num(2, 1) + c.sub(8, "w") + c.varint(9 << 3 | 2) + c.varint(hole)
	tensor = c.varint(5 << 3 | 2) + c.varint(len(head) + hole) + head
	body = c.INS + c.OUTS
	with open("large", "wb") as f:
	  f.write(c.IR + c.varint(7 << 3 | 2) + c.varint(len(tensor) + hole + len(body)) + tensor)
	  f.seek(hole, 1)
	  f.write(body + c.OPSET + c.PROPS)
END
start=$(date +%s)
run onnx-meta large
exits 0 'a model of 1.9 GB'; prints '"input_shapes": \{"img": \[1, 12, 128, 256\], "calib": \[0, 3\]\}' 'its inputs'
# reading it would take several seconds
ok 'weights are jumped over' test $(($(date +%s) - start)) -le 2
onnx-meta /dev/stdin <vision.onnx >from-file
# shellcheck disable=SC2002 # a pipe is the point
cat vision.onnx | onnx-meta /dev/stdin >from-pipe 2>"$err"; status=$?
exits 0 'a pipe has no size and no jumps'; same from-file from-pipe 'and reads the same'
onnx-meta vision.onnx >/dev/full 2>"$err"; status=$?
exits 2 'a lost write is status 2'
finished
