#!/bin/sh
# models --validate on real artifacts: good ones of every type pass; each check
# has a model that fails it, made by a compiler that checks nothing
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
py=$VENV/bin/python3
MR_PYTHON=$py MR_ONNX_META=$BIN/onnx-meta
export MR_PYTHON MR_ONNX_META
unset MR_DEVICE_ROOT MR_DEVICE_DIR
# careless FOLDER TYPE OPTION COMPONENT-FILE...
careless() { "$py" "$here/careless.py" "$@" >"$1.log" 2>&1 || cat "$1.log" >&2; }
for k in vision policy on_policy off_policy; do onnx-gen $k -t -o $k.onnx; done
onnx-gen supercombo -t -f 16 -o supercombo.onnx
onnx-gen policy -t -x nan-weights -o nan-weights.onnx
careless multi vision_multi_policy --vision-onnx vision.onnx --on-policy-onnx on_policy.onnx \
    --off-policy-onnx off_policy.onnx --keep-expected known.npz
careless nan vision_policy --vision-onnx vision.onnx --policy-onnx nan-weights.onnx
careless drift vision_policy --drifting --vision-onnx vision.onnx --policy-onnx policy.onnx
careless combo supercombo --supercombo-onnx supercombo.onnx --out-of-band --image-history-pipeline warp \
    --behavior-version v15

validate() { run models --validate "$1" --model "$2" --output-dir out ${3:+--version "$3"}; }
# field NAME of the last result, as JSON
field() { python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))[sys.argv[2]]))' "out/$id.json" "$1"; }

# ---- good ones ----
id=multi_validation
validate multi/good.pkl multi v12; exits 0 "a model of vision and two policies"
is "$(field id) $(field status) $(field version) $(field model_type) $(field policy_order)" \
    '"multi" "passed" "v12" "vision_multi_policy" ["on_policy", "off_policy"]' "the result says what it is"
is "$(field missing) $(field non_finite) $(field has_control_output) $(field cameras)" \
    '[] [] true ["1928x1208", "1344x760"]' "and what was found, on both cameras"
is "$(field output_sizes)" '{"vision": 1576, "on_policy": 1000, "off_policy": 1947}' "widths as they are"
is "$(field parsed_inputs | cut -c1-78)" '{"vision": {"img": [1, 12, 128, 256], "big_img": [1, 12, 128, 256]}, "on_polic' "inputs"
python3 -c 'import json; s = json.load(open("out/multi_validation.json"))["output_shapes"]
want = {"plan": 990, "lane_lines": 528, "lane_lines_prob": 8, "road_edges": 264, "lead": 144, "lead_prob": 3, "pose": 12}
assert {k: s[k] for k in want} == {k: [1, v] for k, v in want.items()}, s' >got 2>&1
is "$(cat got)" "" "the seven outputs that are required, with their shapes"
is "$(field sha256)" "\"$(sum multi/good.pkl)\"" "which artifact it was"
is "$(tail -c 3 out/$id.json | od -An -tx1)" " 0a 7d 0a" "the file ends with a newline"
id=combo_validation
validate combo/good.pkl combo; exits 0 "a supercombo, half precision, weights out of band, history in the warps"
is "$(field version) $(field policy_order)" '"v15" []' "its own version"
validate multi/older.pkl multi; exits 0 "an artifact that does not know where its history lies"

# ---- one for each check ----
id=bad_validation
# fails NAME REGEX: status 1, a record that says why
fails() {
	rm -f out/bad_validation.json
	validate "$1.pkl" bad "${3-}"; exits 1 "$1"; says "^validate_modeld: bad: $2" "$1: in one line"
	is "$(field status) $(field error | grep -Ec "^\"$2")" '"failed" 1' "$1: the record says so"
	is "$(grep -c Traceback "$err")" 0 "$1: without a traceback"
}
fails multi/no-camera 'has no warp for the camera 1344x760'
is "$(field cameras)" '["1928x1208"]' "the other camera was tried"
fails multi/no-policy-metadata 'metadata of on_policy are missing'
fails multi/no-metadata 'metadata of vision are missing'
fails multi/no-slices 'metadata of vision have no output_slices'
fails multi/slices-beyond 'vision: output_slices: hidden_state is 1064:2576:None, the output has width 1576'
fails multi/negative-beyond 'vision: output_slices: pose is -2000:None:None, the output has width 1576'
fails multi/other-shape 'off_policy: its input shapes differ from those of on_policy'
fails multi/no-plan 'outputs are missing: plan'
is "$(field missing) $(field has_control_output)" '["plan"] false' "so there is no control output"
fails multi/no-pose 'outputs are missing: pose'
fails multi/version "the artifact's version is v7, wanted v12" v12
fails multi/no-order 'policy_order is empty'
fails multi/format 'format_version is 2, wanted 1'
fails nan/good 'outputs are not finite: desire_state, pad, plan'
is "$(field non_finite) $(field missing)" '["desire_state", "pad", "plan"] []' "they are listed"
fails drift/good '1928x1208: a second drive over the same frames gives other values'
head -c 100000 multi/good.pkl >short.pkl; fails short 'the artifact: '
"$py" -c 'import pickle; pickle.dump([1, 2], open("list.pkl", "wb"), 4)'; fails list 'the artifact is no dict'

# ---- the compiler's own check of what it saved knows the cameras, too ----
check() {
	run "$py" "$root/tools/device/compile_modeld.py" --check known.npz --output "multi/$1.pkl" \
	    --model-type vision_multi_policy --model-size 512x256 --camera-resolutions 1928x1208 1344x760
}
check good; exits 0 "what was saved is what was captured"
check no-camera; exits 1 "a warp that is missing"; says '^compile_modeld: .*has no warp 1344x760' "is named"

# ---- in a car: what its parameters choose is what is tried ----
D=$T/car/data
mkdir -p "$D/openpilot/selfdrive" "$D/params/d"; printf other >"$D/params/d/Model"
MR_DEVICE_ROOT=$D/openpilot validate multi/good.pkl multi v12; exits 0 "in a car"
is "$(find "$D" -type f | sort | xargs -n1 basename | tr '\n' ' ')$(cat "$D/params/d/Model")" "lock Model other" \
    "whose choice is back"
printf v1 >"$D/params/d/DrivingModelVersion"
run "$py" "$root/tools/device/validate_modeld.py" multi/good.pkl --id other --result o.json --params "$D/params/d"
exits 1 "a car that would load another model"; says "^validate_modeld: other: the parameter DrivingModel is None, wanted 'other'" "is named"
finished
