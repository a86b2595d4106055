#!/bin/sh
# release-build: what is in a release, what is refused, and kills.
# shellcheck source=tests/lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
common release-build
oracle() { python3 "$here/release-build.py" "$@"; }
ws="$T/my disk/ws"
mkdir "$T/my disk"
python3 "$here/fabricate.py" "$ws" 4
cd "$ws" || exit 2
mkdir source-maps
args='-r results -s 3 -v v23 -k source-maps/model_id_namespace_v23.json'
# shellcheck disable=SC2086 # words
build() { run release-build $args "$@" names.json; }
edit() { python3 -c 'import json, sys
p, code = sys.argv[1:]
r = json.load(open(p)); exec(code); open(p, "w").write(json.dumps(r, indent=2) + "\n")' "$1" "$2"; }
for words in '' 'names.json' "$args" "$args a b" '-r results -s 3 -v 23 -k m names.json' \
    "$args -l x names.json"; do
	# shellcheck disable=SC2086
	run release-build $words
	exits 2 "called wrongly: release-build $words"
done

: >ready-for-resources/._one_driving_tinygrad.pkl; : >ready-for-resources/.DS_Store
cp -R ready-for-resources keep; cp -R results results.keep
build -i .state/identity.json
exits 0 'a release'
prints '^release/v23: models: 4, in parts: 1, bytes: [0-9]*, tinygrad 0.14.0, toolchain t{16}$' 'and what it is'
prints '^release/v23: for tests, not compiled for a car: all$' 'a CPU is said'
ok 'it is what its contract says' oracle look . release/v23 3
is "$(ls -A release)" v23 'and nothing else is there'
if diff -r keep ready-for-resources >"$out"; then pass 'the sources stay'; else fail 'the sources stay' "$(cat "$out")"; fi
ok 'sha256sum accepts it' sh -c 'cd release/v23 && sha256sum -c SHA256SUMS'
cp -R release release.old
build
exits 0 'once more'
if diff -r release.old release >"$out"; then pass 'gives the same bytes'; else fail 'gives the same bytes' "$(cat "$out")"; fi

# a release that is refused leaves the old one alone; all models are named
refused() { # TEXT REGEX [ARGUMENT...]
	text=$1 regex=$2; shift 2
	build "$@"
	exits 1 "$text is refused"
	says "$regex" "... $regex"
	if diff -r release.old release >"$out"; then pass '... the old release stays'
	else fail '... the old release stays' "$(cat "$out")"; fi
	rm -rf results ready-for-resources
	cp -R results.keep results; cp -R keep ready-for-resources
}
edit results/two_artifact.json 'r["toolchain"] = "u" * 64'
refused 'a second toolchain' '^release-build: tinygrad 0.14.0, toolchain uuuuuuuuuuuuuuuu: two$'
edit results/two_artifact.json 'r["toolchain"] = "u" * 64'
refused '... naming the others' 'toolchain tttttttttttttttt: one big gpu$'
for id in one two big gpu; do edit "results/${id}_artifact.json" 'r["backend"] = "x'"$id"'"'; done
edit results/two_artifact.json 'r["backend"] = "QCOM"'
build
exits 0 'backends may differ'
prints 'for tests, not compiled for a car: one big gpu$' 'what is not of a car is named'
rm -rf release.old && cp -R release release.old
edit results/two_artifact.json 'del r["toolchain"]'
refused 'an unknown compiler' '^release-build: two: made by an unknown compiler: make compiled/two.pkl$'
edit .state/identity.json 'r["toolchain"] = "w" * 64'
refused 'another compiler now' '^release-build: gpu: stale: made by toolchain t+, it is w+ now' -i .state/identity.json
refused 'a file above the host limit' '^release-build: big: ready-for-resources/big_driving_tinygrad.pkl.p00: 400 bytes, the host takes 399' -l 399
rm ready-for-resources/big_driving_tinygrad.pkl.p01
refused 'a missing part' '^release-build: big: ready-for-resources/big_driving_tinygrad.pkl.p01: missing: make ready/big$'
echo x >>ready-for-resources/big_driving_tinygrad.pkl.p02
refused 'a part of a wrong size' 'big_driving_tinygrad.pkl.p02: [0-9]* bytes, wanted [0-9]*: make ready/big$'
: >ready-for-resources/big_driving_tinygrad.pkl.p03
refused 'a stale part' '^release-build: big3_driving_tinygrad.pkl.p03: is of no upload set'
: >ready-for-resources/big_driving_tinygrad.pkl
refused 'a stale whole file' '^release-build: big3_driving_tinygrad.pkl: is of no upload set'
printf X | dd of=ready-for-resources/big_driving_tinygrad.pkl.p01 bs=1 seek=9 conv=notrunc 2>/dev/null
refused 'a flipped byte in a part' '^release-build: big: sha256 is [0-9a-f]{64}, its record says '
printf X | dd of=ready-for-resources/one_driving_tinygrad.pkl bs=1 seek=3 conv=notrunc 2>/dev/null
refused 'a flipped byte' '^release-build: one: sha256 is [0-9a-f]{64}, its record says '
printf '%064d  big_driving_tinygrad.pkl\n' 0 >ready-for-resources/big_driving_tinygrad.pkl.sha256
refused 'a wrong .sha256' '^release-build: big: big3_driving_tinygrad.pkl.sha256: says 0{64}, its record'
rm ready-for-resources/big_driving_tinygrad.pkl.sha256
refused 'no .sha256' '^release-build: big: .*big3_driving_tinygrad.pkl.sha256: No such file'
echo x >ready-for-resources/big_driving_tinygrad.pkl.sha256
refused 'a .sha256 that is none' '^ns-rename: ready-for-resources/big_driving_tinygrad.pkl.sha256: wanted'
for v in '"status": "failed"' '"missing": ["plan"]' '"non_finite": ["pose"]' '"has_control_output": false'; do
	echo "{\"id\": \"two\", $v}" >results/two_validation.json
	refused "a validation with $v" '^release-build: two: its validation failed: .*results/two_validation.json$'
done
echo '{' >results/two_validation.json
refused 'a validation that is no JSON' '^release-build: two: results/two_validation.json: line'
rm results/two_artifact.json results/one_artifact.json
refused 'an entry without an artifact' '^release-build: two: has no artifact: make compiled/two.pkl'
edit results/two_artifact.json 'r["key_lines"][2] = "version=v99"'
refused 'a key that does not hold' '^release-build: two: stale: its record has no key that holds'
edit results/two_source.json 'r["files"][0]["sha256"] = "0" * 64'
refused 'other sources' '^release-build: two: stale: its artifact was made of other sources'
edit results/two_artifact.json 'del r["ready"]'
refused 'an artifact that is not cut' '^release-build: two: is not cut for upload: make ready/two$'
edit results/two_artifact.json 'r["ready"]["key_lines"][0] = "artifact=" + "0" * 64'
refused 'a set of another artifact' '^release-build: two: is not cut for upload: make ready/two$'
edit results/big_artifact.json 'r["ready"]["parts"].pop()'
refused 'parts that do not add up' '^release-build: big: its parts have [0-9]* bytes, the artifact [0-9]*: make ready/big$'
cp names.json names.keep
edit names.json 'r["models"].append({"id": "one", "version": "v7"})'
refused 'an id with two meanings' '^release-build: names.json: entries 1 and 5 are one and one, and differ'
edit names.json 'r["models"] = []'
refused 'an empty manifest' '^release-build: names.json: names no model$'
cp names.keep names.json
echo '{"id": "two", "status": "passed", "missing": [], "non_finite": [], "has_control_output": true}' >results/two_validation.json
build
exits 0 'a validation that passed'
rm results/two_validation.json

# a smaller release replaces a larger one; killed at every change
edit names.json 'del r["models"][0]'
# shellcheck disable=SC2086
ok 'killed at every change: old, new or none; a rerun is right' \
    oracle kill release-build $args names.json
echo "# $(cat "$out") changes"
absent release/v23/one3_driving_tinygrad.pkl 'what is not in the manifest is not in the release'
mkdir release/v23/sub
build
exits 2 'a folder inside the old release'
says 'release/.v23.old/sub' 'is named'
ok 'though the new one is whole' oracle look . release/v23 3
rmdir release/.v23.old/sub 2>/dev/null
build
exits 0 'and the next run removes it'
is "$(ls -A release)" v23 'with all that was left'
cd "$T" || exit 2
finished
