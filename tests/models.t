#!/bin/sh
# models: its command line, with a stand-in for the compile script
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common models

# a device root whose compile script writes down how it was called, then does
# what the file `mode` says; python3 comes from PATH, tinygrad is a mock
mkdir -p root/selfdrive/modeld root/tinygrad_repo/tinygrad in out versions
echo 'version = "0.9.9"' >root/tinygrad_repo/pyproject.toml
echo 'print(1)' >root/tinygrad_repo/tinygrad/a.py
cat >root/selfdrive/modeld/compile_modeld.py <<END
import json, os, pickle, struct, sys, time
json.dump({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}, open("$T/called", "w"))
mode = open("$T/mode").read().strip()
out = sys.argv[sys.argv.index("--output") + 1]
good = pickle.dumps({"format_version": 1}, 4)
block = pickle.dumps(1, 5)
if mode == "fail": sys.exit(1)
if mode == "killed": os.kill(os.getpid(), 9)
if mode == "sleep":
  open("$T/pid", "w").write(str(os.getpid())); time.sleep(60)
if mode == "big":
  f = open(out, "wb"); f.write(good[:2]); f.seek(100000000); f.write(b"."); f.close()
body = {"good": good, "empty": b"", "short": good[:-1], "html": b"<html>404 not here</html>",
        "oob": struct.pack("<q", len(block)) + block + struct.pack("<q", 3) + b"abc",
        "oobshort": struct.pack("<q", len(block)) + block + struct.pack("<q", 4) + b"abc"}
if mode in body: open(out, "wb").write(body[mode])
END
MR_DEVICE_ROOT=$T/root MR_MODELS_DIR=$T/versions
MR_PYTHON=$(python3 -c 'import sys; print(sys.executable)')
export MR_DEVICE_ROOT MR_MODELS_DIR MR_PYTHON
unset MR_DEVICE_DIR MR_ONNX_META
mode() { echo "$1" >mode; rm -f called; }
build() { run models --input-dir in --output-dir out "$@"; }
# called KEY: the value of an option that the stand-in was given
called() {
	python3 -c 'import json, sys
a = json.load(open("called"))["argv"]
print(a[a.index(sys.argv[1]) + 1] if sys.argv[1] in a else "none")' "$1"
}
mode good

# ---- refused before anything runs ----
onnx-gen vision -t -o in/a_driving_vision.onnx
onnx-gen policy -t -o in/a_policy.onnx
# shellcheck disable=SC2016 # not to be expanded
for id in 'a;touch x' '../v' 'a b' '' '$(id)' .a \
    a23456789012345678901234567890123456789012345678901234567890123456; do
	build --model "$id"; exits 2 "model id '$id' is refused"
done
says 'model id ".*": wanted a letter or digit' "an id is refused by name"
build '--a;touch x'; exits 2 "a dynamic flag that is no id"
for v in 'v8;x' 8 v12345 latest; do
	build --a --version "$v"; exits 2 "version $v is refused"
done
build --a b; exits 2 "an unexpected word"; says '^models: b: unexpected' "it is named"
build --a --b; exits 2 "two dynamic flags"
build --model a --b; exits 2 "--model and another dynamic flag"
build --a --input-format onnx; exits 2 "an unknown input format"
build --a --image-history-pipeline both; exits 2 "an unknown pipeline"
build; exits 2 "no model at all"; says 'wanted a model' "it says so"
build --model; exits 2 "an option without its value"
for n in 0 100 1x ''; do
	build --a --chunk-size-mib "$n"; exits 2 "--chunk-size-mib $n"
done
run models --split-artifact in/a_policy.onnx --a; exits 2 "--split-artifact and a model"
for w in --dm '--model dm' '--model dmonitoring' --dmonitoring_model \
    '--a --gpu' '--a --external-gpu' --local-x '--model local-x'; do
	# shellcheck disable=SC2086 # words on purpose
	build $w; exits 2 "$w is refused for now"
	says 'is not part of this version$' "$w: in plain words"
done
absent called "nothing was run"
absent x "and no id was taken for a command"

# ---- the compile script's command line and environment ----
FLOAT16=0 IMAGE=yes QCOM_PRIORITY=3 BEAM=9 build --a --version v8 --no-split --force
exits 0 "a split model"
python3 - "$T" >got 2>&1 <<'END'
import json, sys
T, c = sys.argv[1], json.load(open("called"))
assert c["argv"] == ["--model-type", "vision_policy", "--model-size", "512x256", "--camera-resolutions", "1928x1208",
  "1344x760", "--output", f"{T}/out/a_driving_tinygrad.pkl", "--frame-skip", "4", "--image-history-pipeline", "policy",
  "--vision-onnx", f"{T}/in/a_driving_vision.onnx", "--policy-onnx", f"{T}/in/a_policy.onnx",
  "--behavior-version", "v8"], c["argv"]
e = {k: v for k, v in c["env"].items() if k not in ("PATH", "HOME", "TMPDIR", "LC_CTYPE")}
assert e == {"FLOAT16": "0", "IMAGE": "2", "JIT_BATCH_SIZE": "0", "NOLOCALS": "1", "OPENPILOT_HACKS": "1", "DEBUG": "0",
  "QCOM_PRIORITY": "3", "PYTHONHASHSEED": "0", "PYTHONPATH": f"{T}/root:{T}/root/tinygrad_repo"}, e
assert c["cwd"] == f"{T}/root", c["cwd"]
END
is "$(cat got)" "" "argv, working directory, and an environment of defaults and numbers"
prints '^  saved a_driving_tinygrad.pkl \([0-9]+ bytes\)$' "it says what was saved"
onnx-gen supercombo -t -o in/a_supercombo.onnx
mode good; QCOM_PRIORITY=3 build --model=a; exits 0 "a supercombo goes first"
is "$(called --model-type) $(called --behavior-version)" "supercombo v16" "auto takes it, with v16"
python3 -c 'import json; e = json.load(open("called"))["env"]
assert e["IMAGE"] == "1" and "QCOM_PRIORITY" not in e and "DEBUG" not in e' 2>got
is "$(cat got)" "" "a supercombo has its own environment"
mode good; build --a --input-format split
is "$(called --model-type) $(called --behavior-version)" "vision_policy none" "split on demand, without a version"
rm in/a_supercombo.onnx
build --a --input-format supercombo; exits 1 "no supercombo is staged"
echo '{"a": "v7"}' >versions/.model_versions.json
mode good; build --a; is "$(called --behavior-version)" v7 "the device knows the version"
mode good; build --a --version v9; is "$(called --behavior-version)" v9 "the option goes first"
echo '{"a": "v7;x"}' >versions/.model_versions.json
mode good; build --a; exits 1 "a bad version on the device"; says 'model_versions.json: a: version' "is named"
rm versions/.model_versions.json
onnx-gen off_policy -t -o in/a_offpolicy.onnx
mode good; build --a; is "$(called --model-type) $(called --on-policy-onnx)" \
    "vision_multi_policy $T/in/a_policy.onnx" "off_policy makes it a multi policy"
mv in/a_policy.onnx in/a_on_policy.onnx; rm in/a_offpolicy.onnx
mode good; build --a; is "$(called --model-type) $(called --policy-onnx)" \
    "vision_policy $T/in/a_on_policy.onnx" "on_policy in the policy's place"
onnx-gen policy -t -x long-history -o in/a_on_policy.onnx
mode good; build --a --image-history-pipeline warp
is "$(called --frame-skip) $(called --image-history-pipeline)" "1 warp" "a long history is not skipped"

# ---- what is staged ----
rm in/*; mkdir in/f in/my_policy
onnx-gen vision -t -o in/f/driving_vision.onnx; onnx-gen policy -t -o in/f/f_driving_policy.onnx
cp in/f/driving_vision.onnx in/my_policy/my_policy_vision.onnx
cp in/f/f_driving_policy.onnx in/my_policy_driving_policy.onnx
printf junk >in/._x_vision.onnx; printf junk >in/f/._driving_on_policy.onnx
run models --list --input-dir in; exits 0 "--list"
is "$(cat "$out")" "f
  driving_policy: in/f/f_driving_policy.onnx
  driving_vision: in/f/driving_vision.onnx
my_policy
  driving_policy: in/my_policy_driving_policy.onnx
  driving_vision: in/my_policy/my_policy_vision.onnx" "folders and flat names, an id with policy in it, no ._ files"
mkdir in/sc2; cp in/f/*.onnx in/sc2/; mv in/sc2/f_driving_policy.onnx in/sc2/policy.onnx
ok "the man page's example" models --sc2 --input-dir in --output-dir out --version v8; rm -r in/sc2
mode good; build --my_policy; is "$(called --vision-onnx)" "$T/in/my_policy/my_policy_vision.onnx" "found together"
mode good; build --other; exits 1 "no such model among several"; absent called "nothing is substituted"
cp in/f/driving_vision.onnx in/f/f_vision.onnx
build --f; exits 1 "two files of one component"; says 'are both driving_vision' "both are named"
rm -r in/f; mode good; build --other; exits 0 "a single staged model takes another name"
says 'other: nothing is staged under this name' "which is said"
is "$(called --output)" "$T/out/other_driving_tinygrad.pkl" "the flag names the output"
rm -r in/*; onnx-gen supercombo -t -o in/whatever.onnx
mode good; build --named; is "$(called --supercombo-onnx)" "$T/in/whatever.onnx" "a single file, whatever its name"
run models --list --input-dir versions; prints 'No staged models found in versions' "an empty folder"
run models --list --input-dir none; exits 0 "no folder: nothing is staged"
build --a --input-dir none; exits 1 "a folder that does not exist"

# ---- bad sources: said before anything is cleared or run ----
rm in/*; onnx-gen vision -t -o in/a_vision.onnx; onnx-gen policy -t -o in/a_policy.onnx; cp in/a_policy.onnx keep
echo old >out/a_driving_tinygrad.pkl
: >in/a_policy.onnx; mode good; build --a; exits 1 "an empty source"
head -c 100000 keep >in/a_policy.onnx; build --a; exits 1 "a truncated source"; says 'a_policy.onnx' "is named"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 9\n' 1 >in/a_policy.onnx
build --a; exits 1 "a pointer"; says 'LFS pointer' "is called so"
absent called "nothing was run"
is "$(cat out/a_driving_tinygrad.pkl)" old "the old artifact is still there"
rm in/a_policy.onnx; build --a; exits 1 "a policy is missing"; says 'no driving_policy or driving_on_policy' "is said"
cp keep in/a_policy.onnx

# ---- old outputs of this model only ----
rm -f out/*
for f in a_driving_tinygrad.pkl a_driving_tinygrad.pkl.p00 a_driving_tinygrad.pkl.p17 a_driving_tinygrad.pkl.sha256 \
    a_driving_vision_tinygrad.pkl a_driving_policy_metadata.pkl; do echo old >out/$f; done
for f in aa_driving_tinygrad.pkl b_driving_tinygrad.pkl.p00 a_notes.txt; do echo mine >out/$f; done
mode none; build --a; exits 1 "the compiler wrote nothing"; says 'wrote no artifact' "an old output is not taken for it"
is "$(cd out && echo *)" "a_notes.txt aa_driving_tinygrad.pkl b_driving_tinygrad.pkl.p00" "only this model's outputs are cleared"

# ---- what the compiler may do ----
for m in empty short html oobshort; do mode $m; build --a; exits 1 "output: $m"; done
mode oob; build --a; exits 0 "an out-of-band artifact"
mode fail; build --a; exits 1 "the compiler refuses"
mode killed; build --a; exits 2 "the compiler is killed"; says 'killed by signal 9' "by what is said"
mode big; build --a; exits 0 "over the limit"
is "$(cd out && echo a_driving*)" "a_driving_tinygrad.pkl a_driving_tinygrad.pkl.p00 a_driving_tinygrad.pkl.p01 \
a_driving_tinygrad.pkl.sha256" "the whole and its parts"
cat out/a_driving_tinygrad.pkl.p0? | cmp -s - out/a_driving_tinygrad.pkl; is $? 0 "which are the whole"
build --a --no-split; is "$(cd out && echo a_driving*)" "a_driving_tinygrad.pkl" "--no-split"
mode sleep; models --a --input-dir in --output-dir out >"$out" 2>"$err" & pid=$!
n=0; until [ -s pid ] || [ $n -ge 100 ]; do sleep 0.1; n=$((n + 1)); done
kill "$pid"; wait "$pid" 2>/dev/null; is $? 143 "a signal ends it"
sleep 0.2; kill -0 "$(cat pid)" 2>/dev/null; is $? 1 "and the compiler"
rm pid; (trap '' HUP; exec models --a --input-dir in --output-dir out) >"$out" 2>"$err" & pid=$!
n=0; until [ -s pid ] || [ $n -ge 100 ]; do sleep 0.1; n=$((n + 1)); done
kill -HUP "$pid"; sleep 0.2; kill "$pid"; wait "$pid" 2>/dev/null; is $? 143 "under nohup no hangup does"

# ---- --split-artifact ----
rm -f out/*; head -c 2500000 /dev/urandom >big.pkl
run models --split-artifact big.pkl --output-dir out --chunk-size-mib 1; exits 0 "--split-artifact"
python3 - >got 2>&1 <<'END'
import hashlib
data = open("big.pkl", "rb").read()
for i in range(3): assert open(f"out/big.pkl.p{i:02d}", "rb").read() == data[i << 20:i + 1 << 20]
assert open("out/big.pkl.sha256").read() == f"{hashlib.sha256(data).hexdigest()}  big.pkl\n"
END
is "$(cat got)" "" "parts and checksum line as Python makes them"
run models --split-artifact none.pkl --output-dir out; exits 1 "no such artifact"

# ---- --identity ----
mkdir -p venv/bin venv/lib/python3.11/site-packages/tinygrad/runtime venv/lib/python3.11/site-packages/tinygrad-0.14.0.dist-info
ln -s "$MR_PYTHON" venv/bin/python3; echo 'version = 3.11.9' >venv/pyvenv.cfg
tree=venv/lib/python3.11/site-packages/tinygrad
echo a >$tree/tensor.py; echo b >$tree/runtime/ops.py; : >$tree/runtime-x
mkdir $tree/__pycache__; echo c >$tree/__pycache__/tensor.pyc
unset MR_DEVICE_ROOT
MR_DEVICE_DIR=$root/tools/device MR_PYTHON=$T/venv/bin/python3
export MR_DEVICE_DIR MR_PYTHON
identity() { models --identity | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
run models --identity; exits 0 "--identity"
is "$(wc -l <"$out")" 1 "is one line"
python3 - "$out" "$MR_DEVICE_DIR" "$tree" >got 2>&1 <<'END'
import hashlib, json, os, pathlib, platform, sys
j, device, tree = json.load(open(sys.argv[1])), sys.argv[2], pathlib.Path(sys.argv[3])
sha = lambda b: hashlib.sha256(b).hexdigest()
def digest(root, files):
  return sha("".join(f"{sha((root / f).read_bytes())}  {f}\n" for f in sorted(files)).encode())
want = digest(tree, ["tensor.py", "runtime/ops.py", "runtime-x"])
assert j["tinygrad_tree"] == want, "tinygrad_tree"
scripts = digest(pathlib.Path(device), [f for f in os.listdir(device)
  if f.endswith(".py") and not f.startswith("validat") or f == "environment"])
assert j["scripts"] == scripts, "scripts"
assert j["toolchain"] == sha(f"tinygrad_tree={want}\nscripts={scripts}\n".encode()), "toolchain"
arch = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
assert j["schema"] == 1 and j["driver"] == "device" and j["tinygrad"] == "0.14.0" and j["python"] == "3.11.9", j
assert j["device"] == f"local-{platform.machine()}" and j["backend"].startswith(f"CPU:CLANG:{arch},"), j
assert j["cameras"] == ["1928x1208", "1344x760"] and j["image_history_pipeline"] == "policy", j
assert j["environment"]["DEV"] == j["backend"] and j["environment"]["PYTHONHASHSEED"] == "0", j
assert " sha256:" in j["compiler"], j
END
is "$(cat got)" "" "every field, the digests as hashlib has them"
was=$(identity toolchain)
touch -d 1980-01-01 $tree/tensor.py; echo d >$tree/__pycache__/x.pyc; echo e >$tree/._tensor.py
is "$(cd / && identity toolchain)" "$was" "dates, caches, ._ files and the working directory do not count"
echo A >$tree/tensor.py; [ "$(identity toolchain)" != "$was" ]; is $? 0 "a changed byte counts"
echo a >$tree/tensor.py; is "$(identity toolchain)" "$was" "and back"
mv $tree/tensor.py $tree/tensor2.py; [ "$(identity toolchain)" != "$was" ]; is $? 0 "a renamed file counts"
mv venv/lib/python3.11/site-packages/tinygrad-0.14.0.dist-info venv/lib/python3.11/site-packages/tinygrad-0.13.0.dist-info
is "$(identity backend | cut -d: -f2)" CLANGJIT "another tinygrad, another environment"
is "$(models --identity --image-history-pipeline warp | grep -c '"image_history_pipeline":"warp"')" 1 "the pipeline asked for"
run models --identity --a; exits 2 "--identity and a model"
MR_DEVICE_ROOT=$T/root; export MR_DEVICE_ROOT; unset MR_PYTHON
is "$(identity driver) $(identity tinygrad) $(identity device | cut -c1-6)" "starpilot 0.9.9 local-" "a device root has its own"
rm -r venv/lib root/tinygrad_repo; MR_PYTHON=$T/venv/bin/python3; export MR_PYTHON
run models --identity; exits 2 "no tinygrad"; says 'has no tinygrad, make deps installs it' "it says what to do"
finished
