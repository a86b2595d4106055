#!/bin/sh
# make validate on this machine, with stand-ins for compiler and driver
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
W="$T/my disk/ws"
mkdir "$T/my disk"
# shellcheck source=tests/pipeline.sh
. "$here/pipeline.sh"
pipeline_up
sed -i 's|^SOURCE_MAPS.*|SOURCE_MAPS ?= ../../map.json|' "$W/config.mk"
tried() { grep -c "^validate ${1-}" "$device/calls" || :; }
# of ID NAME: a member of the record of a validation
of() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$W/results/$1_validation.json" "$2"; }

run mk validate; exits 0 'nothing is built'; prints '^nothing to do$' 'nothing is done'
run mk validate/demo-split; exits 2 'a model that is not built'
prints 'demo-split .*status 1 .*make compiled/demo-split.pkl makes it' 'is told how to build it'
run mk -j2 all; exits 0 'all'
run mk -j2 validate; exits 0 'validate'
prints '^3 done$' 'all that is built'; is "$(tried)" 3 'ran'
is "$(of demo-split status) $(of demo-split id) $(of demo-split version)" 'passed demo-split v11' 'a record of each'
is "$(of demo-split sha256)" "$(sum "$W/compiled/demo-split.pkl")" 'says which artifact'
toolchain=$(sed -n 's/.*"toolchain": *"\([0-9a-f]*\)".*/\1/p' "$W/.state/identity.json")
is "$(of demo-combo toolchain)" "$toolchain" 'and which compiler'
absent "$W/results/demo-split_failure.json" 'no failure'
run mk validate; exits 0 'again'; prints '^3 current, nothing to do$' 'nothing is run twice'
is "$(tried)" 3 'indeed'
run mk validate/demo-multi; exits 0 'a name'; is "$(tried demo-multi)" 2 'forces it'
run mk validate validate/demo-multi; exits 0 'both'; prints '^1 done, 2 current$' 'all, and one that is forced'
run mk validate status; exits 2 'with another goal'; says 'cannot be combined' 'is refused'
run mk -n validate; exits 0 'a dry run'; prints 'does nothing' 'says so'

# a model that fails
echo 'outputs are missing: plan' >"$device/unsound"
run mk validate/demo-split; exits 2 'a model that fails'
prints '^demo-split .*validate .*status 1 .*the validation failed: outputs are missing: plan' 'the summary says why'
is "$(of demo-split status) $(of demo-split error)" 'failed outputs are missing: plan' 'the record, too'
run mk validate; exits 2 'a failed one'; prints '^2 current, 1 failed$' 'is tried again'
run mk release; exits 2 'a release'
prints 'demo-split: its validation failed: status is failed' 'refuses it'
rm "$device/unsound"
run mk validate; exits 0 'once it is mended'; prints '^1 done, 2 current$' 'it alone is run'
absent "$W/results/demo-split_failure.json" 'the failure is gone'
run mk release; exits 0 'a release is made'

# what makes a record old
echo bad >"$device/unsound"; run mk validate/demo-combo; rm "$device/unsound"
sed -i 's/v15/v14/' "$T/names.json"; run mk release
exits 0 'a failure of an older artifact stops no release'
run mk validate; exits 0 'another artifact'; prints '^1 done, 2 current$' 'is tried'
is "$(of demo-combo version)" v14 'with its version'
echo 'rev = 2' >"$device/tinygrad_repo/tinygrad/__init__.py"
run mk validate; exits 0 'another compiler'; prints '^3 done$' 'all are tried'
printf x | dd of="$W/compiled/demo-split.pkl" bs=1 seek=50 conv=notrunc 2>/dev/null
before=$(tried)
run mk validate/demo-split; exits 2 'an artifact that was changed'
prints 'demo-split.pkl: sha256 is .*, its record says' 'is not loaded'; is "$(tried)" "$before" 'at all'
run mk force/demo-split; exits 0 'compiled again'
cp "$device/python3" keep
sed -i 's|^echo "validate.*|exit 0|' "$device/python3"
run mk validate/demo-split; exits 2 'a driver that writes nothing'; prints 'status 2 .*_validation.json: No such file' 'is no pass'
cp keep "$device/python3"; sed -i 's/sha256": "%s"/sha256": "0%s"/' "$device/python3"
run mk validate/demo-split; exits 2 'a result of another artifact'; prints 'the result is of the artifact 0' 'is no pass'
is "$(of demo-split sha256 | cut -c1)" "$(sum "$W/compiled/demo-split.pkl" | cut -c1)" 'nor a record'
cp keep "$device/python3"
is "$(ls -A "$W/.state/jobs" 2>/dev/null)" '' 'no folder is left'
finished
