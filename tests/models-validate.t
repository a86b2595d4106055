#!/bin/sh
# models --validate: the car's choice is switched and is back afterwards,
# whatever ends the run; a stand-in looks at what the car would see
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

# a car: a root with a compile script of its own, parameters and models
D=$T/car/data R=$T/car/data/openpilot P=$T/car/data/params/d M=$T/car/data/models
mkdir -p "$R/selfdrive/modeld" "$R/tinygrad_repo/tinygrad" "$P" "$M" device
echo 'version = "0.9.9"' >"$R/tinygrad_repo/pyproject.toml"
: >"$R/selfdrive/modeld/compile_modeld.py"
cat >device/validate_modeld.py <<END
import json, os, signal, sys, time
T, D = "$T", "$D"
mode = open(f"{T}/mode").read().strip()
argv = sys.argv[1:]
after = lambda name: argv[argv.index(name) + 1] if name in argv else None
seen = {f: open(f"{D}/params/d/{f}").read() for f in sorted(os.listdir(f"{D}/params/d"))}
json.dump({"argv": argv, "seen": seen, "artifact": open(argv[-1]).read()}, open(f"{T}/called", "w"))
if mode == "sleep":
  open(f"{T}/pid", "w").write(str(os.getpid())); time.sleep(60)
if mode == "killed": os.kill(os.getpid(), signal.SIGKILL)
if mode == "busy":
  os.environ["PATH"] = f"{os.path.dirname('$BIN/models')}:" + os.environ["PATH"]
  os.environ.update(MR_DEVICE_ROOT=f"{D}/openpilot", MR_DEVICE_DIR=f"{T}/device", MR_PYTHON=sys.executable)
  code = os.system(f"models --validate {T}/a.pkl --other --output-dir {T}/o2 2>{T}/second")
  open(f"{T}/second", "a").write(f"status {os.waitstatus_to_exitcode(code)}\n")
if mode != "mute": open(after("--result"), "w").write("{}\n")
sys.exit({"fail": 1, "unfit": 2}.get(mode, 0))
END
MR_DEVICE_ROOT=$R MR_DEVICE_DIR=$T/device
MR_PYTHON=$(python3 -c 'import sys; print(sys.executable)')
export MR_DEVICE_ROOT MR_DEVICE_DIR MR_PYTHON
mode() { echo "$1" >mode; rm -f called; }
validate() { run models --validate a.pkl --model a --version v8 --output-dir out "$@"; }
# every name, kind, inode, mode and byte of the car's data, and files' dates
car() {
	(cd "$D" && find params models 2>/dev/null | sort | xargs stat -c '%n %i %f %s' &&
	    find params models -type f | sort | xargs sh -c 'stat -c "%n %Y" "$@"; sha256sum "$@"' -) 2>&1
}
echo new >a.pkl
park() {
	rm -rf "$P" "$M"; mkdir -p "$P" "$M"
	printf other >"$P/Model"; printf v3 >"$P/ModelVersion"; chmod 600 "$P/Model"
	printf 1 >"$P/IsOffroad"; printf 'a b\n' >"$P/Unrelated"
	echo old >"$M/a_driving_tinygrad.pkl"; echo '{}' >"$M/.model_versions.json"
	touch -d 2020-02-02 "$P"/* "$M"/*
}
still() { is "$(car)" "$was" "$1"; }

# ---- refused before anything is touched ----
mode pass; park; was=$(car)
run models --validate a.pkl; exits 2 "no model"; run models --validate; exits 2 "no artifact"
run models --validate a.pkl --model '../a'; exits 2 "an id that is none"
run models --validate a.pkl --a --version 8; exits 2 "a version that is none"
run models --validate none.pkl --a; exits 1 "no such artifact"; says 'none.pkl: No such file' "is named"
printf 0 >"$P/IsOffroad"; was=$(car)
validate; exits 111 "a car that is driving"; says 'a: the car is onroad' "is left alone"
printf 1 >"$P/IsOffroad"; touch -d 2020-02-02 "$P/IsOffroad"
absent called "nothing was run"

# ---- the driver sees a car that has chosen the model ----
was=$(car); validate; exits 0 "a validation"; prints "^  passed: $T/out/a_validation.json$" "says where its result is"
python3 - "$T" <<'END' >got 2>&1
import json, sys
T, c = sys.argv[1], json.load(open("called"))
assert c["argv"] == ["--id", "a", "--behavior-version", "v8", "--result", f"{T}/out/a_validation.json", "--params",
  f"{T}/car/data/params/d", "--unpinned", "--", f"{T}/car/data/models/a_driving_tinygrad.pkl"], c["argv"]
assert c["seen"] == {"Model": "a", "DrivingModel": "a", "ModelVersion": "v8", "DrivingModelVersion": "v8",
  "IsOffroad": "1", "Unrelated": "a b\n"}, c["seen"]
assert c["artifact"] == "new\n", c["artifact"]
END
is "$(cat got)" "" "parameters and artifact are the model's meanwhile"
still "and afterwards the very files that were there"
for m in fail unfit killed; do
	mode $m; validate; still "$m: all is back"
	case $m in fail) exits 1 "a model that fails" ;; unfit) exits 2 "a driver that cannot run" ;;
	killed) exits 2 "a driver that is killed"; says 'a: the validation was killed by signal 9' "is said" ;; esac
done
mode mute; echo old >out/a_validation.json; validate; exits 2 "a driver that writes no result"
absent out/a_validation.json "an older one is not taken for it"
rm -r "$M" "$P/Model"; was=$(car)
mode pass; validate; exits 0 "without any model or choice"; still "there is none afterwards"
absent "$M" "nor a folder of models"
mode busy; validate; exits 0 "one that runs"; still "is not disturbed by a second"
is "$(cat second)" "models: other: $R/compiledmodels/validation: another validation runs
status 111" "which is told of it"

# ---- signals, and a kill at every change of a file ----
park; was=$(car); mode sleep; rm -f pid
models --validate a.pkl --model a --output-dir out >"$out" 2>"$err" & pid=$!
n=0; until [ -s pid ] || [ $n -ge 100 ]; do sleep 0.1; n=$((n + 1)); done
kill "$pid"; wait "$pid" 2>/dev/null; is $? 143 "a signal ends it"; still "all is back"
mode pass; n=1 bad='' died=0
while [ $n -lt 200 ]; do
	park; was=$(car)
	killat $n models --validate a.pkl --model a --version v8 --output-dir out >"$out" 2>"$err" && break
	died=$((died + 1))
	validate
	[ "$status" -eq 0 ] || bad="$bad $n:status$status"
	[ "$(car)" = "$was" ] || bad="$bad $n"
	n=$((n + stride))
done
is "$bad" "" "killed at any change, the next run puts all back ($died kills)"
is "$((died * stride >= 20))" 1 "there were many"
park; rm "$M"/a_*; rm "$P/Model"; was=$(car); n=1 bad=''
while [ $n -lt 200 ]; do
	killat $n models --validate a.pkl --model a --version v8 --output-dir out >"$out" 2>"$err" && break
	validate; rm -rf "$R/compiledmodels"
	[ "$(car)" = "$was" ] || bad="$bad $n"
	n=$((n + stride))
done
is "$bad" "" "so where there was nothing to keep"
is "$(ls "$D/models" "$P")" "$(printf '%s:\n\n%s:\nIsOffroad\nModelVersion\nUnrelated' "$D/models" "$P")" "no litter"
killat 12 models --validate a.pkl --model a --output-dir out >"$out" 2>"$err"
printf '{"file": 3' >"$R/compiledmodels/validation/journal.json"
validate; exits 2 "a journal that cannot be read"; says 'validation/journal.json' "is named, not dropped"

# ---- no car: the artifact where it lies ----
unset MR_DEVICE_ROOT
mkdir -p venv/bin venv/lib/python3.11/site-packages/tinygrad venv/lib/python3.11/site-packages/tinygrad-0.14.0.dist-info
ln -s "$MR_PYTHON" venv/bin/python3; MR_PYTHON=$T/venv/bin/python3; : >device/compile_modeld.py
cp "$root/tools/device/environment" device
validate; exits 0 "this machine"
is "$(python3 -c 'import json; print(json.load(open("called"))["argv"][6:])')" "['--', '$T/a.pkl']" "has nothing to switch"
validate --output-dir /dev/null/x; exits 2 "no place for the result"
finished
