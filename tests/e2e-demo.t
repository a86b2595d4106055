#!/bin/sh
# `make demo` in a fresh clone with real tinygrad; an independent program loads
# what it made; the same model twice gives the same bytes; another release of
# tinygrad makes everything stale.
# shellcheck source=tests/lib.sh disable=SC2119
. "$(dirname "$0")/lib.sh"
unset MR_DEVICE_ROOT MR_PYTHON
py=$VENV/bin/python3

git clone -q "$root" "$T/clone" || exit 2
run make -C "$T/clone" demo VENV="$VENV" MR_PYTHON="$py" BIN= AUX=
exits 0 'make demo'
prints '3 models: 3 current, 0 to do, 0 failed' 'three models are current'
ws=$T/clone/build/demo/workspace
for id in demo-split demo-multi demo-combo; do
	# shellcheck disable=SC2046 # names without blanks
	run "$py" "$root/tests/check_artifact.py" "$ws/compiled/$id.pkl" \
	    $(ls "$ws/onnx/$id/"*.onnx)
	exits 0 "$id: loads in a fresh process, runs, agrees with its ONNX"
done

run env MR_PYTHON="$py" make -C "$ws" -j2 validate
exits 0 'all three drive on synthetic frames'
prints '^3 done$' '... and pass'
prove_of() { python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
print(r["status"], r["sha256"], r["device"].split("-")[0], *r["cameras"])' "$ws/results/$1_validation.json"; }
is "$(prove_of demo-multi)" "passed $(sum "$ws/compiled/demo-multi.pkl") local 1928x1208 1344x760" '... which is on record'

first=$(sum "$ws/compiled/demo-split.pkl")
run env MR_PYTHON="$py" PYTHONHASHSEED=7 make -C "$ws" force/demo-split
exits 0 'the same model once more'
is "$(sum "$ws/compiled/demo-split.pkl")" "$first" 'gives the same bytes'

# a device whose ./models is ours: the same rules, over SSH
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
sshd_start
mkdir -p "$D"
[ -e "$T/clone/build/venv" ] || ln -s "$VENV" "$T/clone/build/venv"
ln -s "$T/clone/build/bin/models" "$D/models"
run make -C "$ws" force/demo-split DEVICES="127.0.0.1:$port" \
    ALLOWED_DEVICES=127.0.0.1 DEVICE_ROOT="$D" SSH_CONFIG="$S/config"
exits 0 'the same model over SSH'
is "$(sum "$ws/compiled/demo-split.pkl")" "$first" 'gives the same bytes'
# and a car: what it has chosen is as it was
mkdir -p "$D/selfdrive" "$T/dev/data/params/d" "$T/dev/data/models"
printf other >"$T/dev/data/params/d/Model"
run make -C "$ws" validate/demo-split validate/demo-combo DEVICES="127.0.0.1:$port" \
    ALLOWED_DEVICES=127.0.0.1 DEVICE_ROOT="$D" SSH_CONFIG="$S/config"
exits 0 'validated over SSH'
prints '^2 done$' '... both pass'
is "$(cd "$T/dev/data" && find params models compiled -type f 2>/dev/null) $(cat "$T/dev/data/params/d/Model")" \
    'params/d/Model other' '... in a car that is as before'

run env MR_PYTHON="$py" make -C "$ws" -j2 all
exits 0 'all again'
prints '3 current, nothing to do' 'does nothing'

# another release: read, and everything is stale by that name
python3 -m venv --without-pip "$T/older"
ok 'tinygrad 0.13.0 installs' "$py" -m pip install -q \
    --disable-pip-version-check --no-deps --target "$("$T/older/bin/python3" \
    -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" tinygrad==0.13.0
PATH="$T/clone/build/bin:$PATH" MR_PYTHON="$T/older/bin/python3" \
    remote-compile -I -D local >"$ws/.state/identity.json"
run make -C "$ws" plan
prints '^0 to fetch, 3 to compile, 3 to split' 'another tinygrad: all are compiled anew'
run make -C "$ws" why/demo-combo
prints 'compile: tinygrad: was 0.14.0, is 0.13.0' 'why names the release'
finished
