#!/bin/sh
# tools/device: real compiles with tinygrad, and a model for each check
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
py=$VENV/bin/python3
driver=$root/tools/device/compile_modeld.py
MR_PYTHON=$py MR_ONNX_META=$BIN/onnx-meta MR_MODELS_DIR=$T
export MR_PYTHON MR_ONNX_META MR_MODELS_DIR
unset MR_DEVICE_ROOT MR_DEVICE_DIR

common_words='--model-size 512x256 --camera-resolutions 1928x1208 1344x760'
# compile TYPE OUTPUT WORD...
compile() {
	type=$1 output=$2; shift 2
	# shellcheck disable=SC2086 # words on purpose
	"$py" "$driver" --model-type "$type" $common_words --output "$output" "$@"
}
# checked ARTIFACT ONNX...: the independent program finds nothing wrong
checked() { ok "$1: $(basename "$1") is what its sources say" "$py" "$here/check_artifact.py" "$@"; }
# refused WORDS REGEX WORD...: status 1, one line, nothing written
refused() {
	why=$1 regex=$2; shift 2
	run compile "$@"; exits 1 "$why"; says "^compile_modeld: $regex" "$why: in one line"
	is "$(grep -c Traceback "$err")" 0 "$why: without a traceback"
	is "$(find . -name '*bad*')" "" "$why: nothing is left"
}

mkdir s m c out elsewhere
onnx-gen vision -t -o s/s_driving_vision.onnx; onnx-gen policy -t -o s/s_driving_policy.onnx
v=$T/s/s_driving_vision.onnx p=$T/s/s_driving_policy.onnx

# ---- the same sources, the same bytes: other caller, names, environment ----
cp "$v" elsewhere/seen.onnx; cp "$p" elsewhere/done.onnx
(cd elsewhere && BEAM=2 DEBUG=2 TRACEMETA=1 CPU_COUNT=7 NUM_CPU_THREADS=7 PARALLEL=3 PYTHONHASHSEED=99 CC=false \
    XDG_CACHE_HOME=$T/elsewhere/cache PYTHONPATH=$T compile vision_policy "$T/direct.pkl" --vision-onnx seen.onnx \
    --policy-onnx done.onnx --behavior-version v8 --keep-expected "$T/known.npz") >direct.log 2>&1 &
direct=$!
ok "models compiles a split model" models --s --input-dir s --output-dir out --version v8
prints '^capture run_policy: [0-9.]+ s$' "it shows how far it is"
wait $direct; is $? 0 "the driver by itself"
same direct.pkl out/s_driving_tinygrad.pkl "both wrote the same bytes"
absent elsewhere/cache "no cache was made"
is "$(find . -name '.*.tmp')" "" "no temporary file is left"
checked out/s_driving_tinygrad.pkl "$v" "$p"

# ---- the check in a fresh process can fail ----
check() { run compile "$1" "$2" --check known.npz; }
check vision_policy out/s_driving_tinygrad.pkl; exits 0 "the artifact gives what was recorded"
"$py" - "$v" out/s_driving_tinygrad.pkl changed.pkl <<'END'
import sys
onnx, artifact = (open(f, "rb").read() for f in sys.argv[1:3])
at = artifact.index(onnx[80000:80064]) // 4 * 4
open(sys.argv[3], "wb").write(artifact[:at] + bytes(b ^ 0x40 for b in artifact[at:at + 64]) + artifact[at + 64:])
END
check vision_policy changed.pkl; exits 1 "changed weights"
says 'run_policy: the saved artifact gives other values' "are noticed"
head -c 100000 out/s_driving_tinygrad.pkl >short.pkl
check vision_policy short.pkl; exits 1 "a short artifact"; says '^compile_modeld: short.pkl: ' "in one line"
check supercombo out/s_driving_tinygrad.pkl; exits 1 "an artifact of another type"

# ---- the other types ----
onnx-gen supercombo -o c/driving_supercombo.onnx
ok "a supercombo, as wide as the real one" models --c --input-dir c --output-dir out
checked out/c_driving_tinygrad.pkl c/driving_supercombo.onnx
for k in vision on_policy off_policy; do onnx-gen $k -t -f 16 -s 2 -o m/driving_$k.onnx; done
ok "two policies, half precision, history in the warps, weights out of band" compile vision_multi_policy m.pkl \
    --vision-onnx m/driving_vision.onnx --on-policy-onnx m/driving_on_policy.onnx \
    --off-policy-onnx m/driving_off_policy.onnx --image-history-pipeline warp --out-of-band
checked m.pkl m/driving_vision.onnx m/driving_on_policy.onnx m/driving_off_policy.onnx

# ---- what they import is on the list of their tinygrad, and what Python says ----
list=$root/catalog/imports-$(sed -n 's/^tinygrad==//p' "$root/tools/device/requirements.txt").txt
for f in out/s_driving_tinygrad.pkl out/c_driving_tinygrad.pkl m.pkl; do
	ok "$f: no import is unlisted" pkl-scan -a "$list" "$f"
	ok "$f: the imports are those of pickletools" python3 "$here/pkl-scan.py" compare "$f"
done

# ---- models that must fail: before the capture, and by it ----
bad() { onnx-gen "$2" -t -x "$1" -o "$T/$2-$1.onnx"; }
for x in slices-beyond no-hidden-state no-slices no-wide-image; do bad $x vision; done
for x in no-desire other-width nan-weights constant-output random-output unknown-op; do bad $x policy; done
bad other-shape off_policy
split() { refused "$1" "$2" vision_policy bad.pkl --vision-onnx "$3" --policy-onnx "$4"; }
split slices-beyond 'vision.*output_slices: hidden_state is 1064:2576:None, the output has width 1576' vision-slices-beyond.onnx "$p"
split no-slices 'vision-no-slices.onnx: refused by onnx-meta' vision-no-slices.onnx "$p"
split no-hidden-state 'output_slices has no hidden_state' vision-no-hidden-state.onnx "$p"
split no-wide-image 'wanted one img input and one big img input' vision-no-wide-image.onnx "$p"
split no-desire 'no input begins with desire' "$v" policy-no-desire.onnx
refused other-shape 'off_policy: its input shapes differ' vision_multi_policy bad.pkl --vision-onnx "$v" \
    --on-policy-onnx "$p" --off-policy-onnx off_policy-other-shape.onnx
split unknown-op "run_policy: NotImplementedError: op='Frobnicate'" "$v" policy-unknown-op.onnx
split nan-weights 'run_policy: output 1 is not finite' "$v" policy-nan-weights.onnx
split constant-output 'run_policy: output 1 does not depend on the inputs' "$v" policy-constant-output.onnx
split random-output 'run_policy: the replay differs from the eager run' "$v" policy-random-output.onnx
split other-width 'policy: outputs is \[1, 1000\], its metadata say \[1, 2000\]' "$v" policy-other-width.onnx

# ---- a machine that is not fit; a signal ----
run compile vision_policy bad.pkl --vision-onnx "$v"; exits 2 "a source is not given"
run compile vision_policy none/bad.pkl --vision-onnx none.onnx --policy-onnx "$p"; exits 1 "a source that is not there"
mkdir nothing; ln -s "$(command -v env)" nothing/env
PATH=$T/nothing run compile vision_policy bad.pkl --vision-onnx "$v" --policy-onnx "$p"; exits 2 "no clang"
says '^compile_modeld: clang: not found on PATH' "is said"
compile vision_policy bad.pkl --vision-onnx "$v" --policy-onnx "$p" >log 2>&1 & pid=$!
n=0; until grep -q capture log || [ $n -ge 300 ]; do sleep 0.1; n=$((n + 1)); done
kill $pid; wait $pid; is $? 143 "a signal ends it"
is "$(find . -name '*bad*')" "" "and leaves nothing"
finished
