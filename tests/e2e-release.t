#!/bin/sh
# make manifest and make release on a workspace whose path has a blank, with a
# stand-in for the compiler.
# shellcheck source=tests/lib.sh disable=SC2317,SC2016 # called by name
. "$(dirname "$0")/lib.sh"
W="$T/my disk/ws"
mkdir "$T/my disk"
# shellcheck source=tests/pipeline.sh
. "$here/pipeline.sh"
pipeline_up
sed -i 's|^SOURCE_MAPS.*|SOURCE_MAPS ?= ../../map.json|' "$W/config.mk"
look() { python3 "$here/release-build.py" look "$W" "$W/release/v23" 3; }
snapshot() { (cd "$W" && find . -path ./.state -prune -o -type f -print0 | sort -z | xargs -0 sha256sum); }
edit() { python3 -c 'import json, sys
p, code = sys.argv[1:]
r = json.load(open(p)); exec(code); open(p, "w").write(json.dumps(r, indent=2) + "\n")' "$1" "$2"; }

run mk manifest
exits 0 'a manifest before anything was built'
says '^manifest-gen: 3 not built, left out: demo-split demo-multi demo-combo$' 'names what is not built'
is "$(cat "$W/manifests/model_names_v22.json")" '{
  "models": []
}' 'and is empty'
run mk manifest WITH_UNBUILT=1
exits 0 'WITH_UNBUILT=1'
is "$(grep -c '"id"' "$W/manifests/model_names_v22.json")" 3 'keeps them'
run mk -n release
exits 0 'a dry run of release'
run mk manifest status
exits 2 'manifest with another goal is refused'
for v in 22 v ../v22 v12345 ''; do
	run mk manifest MANIFEST_VERSION="$v"
	exits 2 "MANIFEST_VERSION='$v'"
	says 'wanted v and 1 to 4 digits' 'is refused'
done

# from nothing to a release
run mk -j2 release SPLIT_LIMIT=4000 PART_SIZE=4000
exits 0 'release'
is "$(compiles)" 3 'builds what is stale'
prints '^release/v23: models: 3, in parts: 3, bytes: [0-9]+, tinygrad ' 'says what it is'
prints '^release/v23: for tests, not compiled for a car: all$' 'a CPU is said'
prints '^release/v23: every file holds$' 'verified'
ok 'it is what its contract says' look
same "$W/manifests/model_names_v23.json" "$W/release/v23/model_names_v23.json" 'the manifest is kept'
python3 "$here/manifest.py" rename 3 <"$W/manifests/model_names_v22.json" >want
same "$W/manifests/model_names_v23.json" want 'with the new ids'
snapshot >first
run mk -j2 release SPLIT_LIMIT=4000 PART_SIZE=4000
exits 0 'release once more'
snapshot >second
same first second 'gives the same bytes'
is "$(compiles)" 3 'and compiles nothing'
run mk status SPLIT_LIMIT=4000 PART_SIZE=4000
exits 0 'the workspace stays true'
run mk -j2 release
exits 0 'another limit'
prints 'models: 3, in parts: 0' 'cuts anew'
ok 'and it is again what its contract says' look
run mk release WITH_DIGESTS=1
exits 0 'WITH_DIGESTS=1'
is "$(python3 -c 'import json, sys
for m in json.load(open(sys.argv[1]))["models"]: print(*list(m)[3:], end=";")' "$W/manifests/model_names_v23.json")" \
    'artifact_size artifact_sha256 artifact_format;artifact_size artifact_sha256 artifact_format;artifact_size artifact_sha256 artifact_format;' \
    'writes what a device checks'
run mk -j2 release
snapshot >first

# a model that fails: the release is made of the others; not 0
edit "$T/map.json" 'r["gone"] = {"ref": "1" * 40, "input_format": "split"}'
edit "$T/names.json" 'r["models"].append({"id": "gone", "version": "v1"})'
run mk -j2 release NOTIFY='cat >"$$PWD/told"'
exits 2 'a model that fails'
prints '^manifest-gen: 1 not built, left out: gone$' 'is named'
prints '^release/v23: models: 3' 'the others are released'
is "$(grep -c 'release/v23: models: 3' "$W/told")" 1 'NOTIFY gets the summary'
rm "$W/told"
ok 'as before' look
edit "$T/map.json" 'del r["gone"]'
edit "$T/names.json" 'r["models"].pop()'
rm "$W/results/gone_failure.json"

# a model that was current and fails now is stale: no release
touch "$device/fail"
sed -i 's/"v11"/"v14"/' "$T/names.json"
run mk -j2 release
exits 2 'a model that cannot be made anew'
prints '^release: stale, make why/ID tells why: demo-split $' 'is stale, and named'
prints '^release: not made, status 1$' 'there is no new release'
ok 'the old one is whole' look
rm "$device/fail"
sed -i 's/"v14"/"v11"/' "$T/names.json"

# refused: the compiler is not read, a validation, a host's limit
mv "$device/tinygrad_repo" "$device/away"
run mk -j2 release
exits 2 'a compiler that cannot be read'
says 'last known is not enough' 'stops a release'
mv "$device/away" "$device/tinygrad_repo"
mkdir -p "$W/results"
echo '{"id": "demo-multi", "status": "failed"}' >"$W/results/demo-multi_validation.json"
run mk -j2 release
exits 2 'a failed validation'
prints '^release-build: demo-multi: its validation failed' 'is named'
rm "$W/results/demo-multi_validation.json"
run mk -j2 release HOST_LIMIT=4095
exits 2 'a file above HOST_LIMIT'
prints '^release-build: demo-combo: .*the host takes 4095' 'is named'
# two at once
flock -o "$W/.state/lock" sleep 30 & later $!
sleep 0.2
run mk manifest
exits 2 'a manifest while the workspace is held'
says 'held' 'is refused'
finished
