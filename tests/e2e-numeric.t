#!/bin/sh
# what the artifacts compute is what their ONNX files say: every type of model
# in float32 and float16, 20 seeds each, against an evaluation in numpy
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
py=$VENV/bin/python3
MR_ONNX_META=$BIN/onnx-meta
export MR_ONNX_META
unset MR_DEVICE_ROOT MR_DEVICE_DIR

# agrees TYPE BITS COMPONENT...: compiles thin models of BITS, compares
agrees() {
	what="$1 float$2" type=$1 bits=$2 dir=$1-$2 sources=
	shift 2
	mkdir "$dir"
	for name; do
		shift
		onnx-gen "$name" -t -f "$bits" -s 3 -o "$dir/driving_$name.onnx"
		set -- "$@" "--$(echo "$name" | tr _ -)-onnx" "$dir/driving_$name.onnx"
		sources="$sources $dir/driving_$name.onnx"
	done
	ok "$what: compiles" "$py" "$root/tools/device/compile_modeld.py" --model-type "$type" --model-size 512x256 \
	    --camera-resolutions 1928x1208 1344x760 --output "$dir/a.pkl" "$@"
	# shellcheck disable=SC2086 # words
	run "$py" "$here/check_artifact.py" "$dir/a.pkl" $sources
	exits 0 "$what: is what its sources say"
	error=$(sed -n "s/^ok - .* float$bits, 20 seeds, maximum relative error \([0-9.e-]*\), .*/\1/p" "$out")
	echo "# $what: 20 seeds, maximum relative error $error"
	case $bits in 32) most=1e-3 ;; *) most=2e-2 ;; esac
	is "$(echo "${error:-none} $most" | awk '$1 == $1 + 0 { print $1 <= $2 }')" 1 "$what: is within $most"
}
for bits in 32 16; do
	agrees vision_policy "$bits" vision policy
	agrees vision_multi_policy "$bits" vision on_policy off_policy
	agrees supercombo "$bits" supercombo
done

# ---- the comparison can fail ----
vp=vision_policy-32
onnx-gen policy -t -s 4 -o policy.onnx
run "$py" "$here/check_artifact.py" $vp/a.pkl $vp/driving_vision.onnx policy.onnx
exits 1 "other weights are noticed"; prints '^not ok - they are those of the ONNX files' "by what they compute"
"$py" - $vp/driving_policy.onnx policy.onnx <<'END'
import numpy, sys
data = bytearray(open(sys.argv[1], "rb").read())
middle = len(data) // 2     # within the largest weight, at an unknown alignment
shifted = [numpy.frombuffer(data, "<f4", 1000, middle + shift) for shift in range(4)]
weights, = (w for w in shifted if numpy.isfinite(w).all() and 1e-6 < abs(w).max() < 1)
weights *= numpy.float32(1.5)
open(sys.argv[2], "wb").write(data)
END
run "$py" "$here/check_artifact.py" $vp/a.pkl $vp/driving_vision.onnx policy.onnx
exits 1 "a thousand of half a million weights are, too"
is "$(grep -c '^not ok' "$out")" 1 "by that alone"
finished
