#!/bin/sh
# graph-gen and make, nothing to do: the 73 models of the catalog, then 10,000;
# the best of several rounds each, as mk/run.sh runs them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
PATH=${BIN:-$root/build/bin}:$PATH
rounds=${ROUNDS:-7}
T=$(mktemp -d "${TMPDIR:-/tmp}/mr-bench.XXXXXX")
trap 'rm -rf "$T"' EXIT
cd "$T"
unset MAKEFLAGS MAKELEVEL
GRAPH=graph.mk MK=$root/mk GOALS=all
export GRAPH MK GOALS

graph() {
	graph-gen -r results -i .state/identity.json -l 1000 -z 400 \
	    -b names.json -m map.json -g all >graph.mk
}
both() {
	graph
	make -kf "$MK/rebuild.mk" all >/dev/null
}
# microseconds WHAT: the best round
microseconds() {
	n=0 best=
	while [ $n -lt "$rounds" ]; do
		start=$(date +%s%N)
		"$1"
		us=$((($(date +%s%N) - start) / 1000))
		[ "${best:-$us}" -lt "$us" ] || best=$us
		n=$((n + 1))
	done
	echo "$best"
}
# measure MODELS MILLISECONDS WANTED
measure() {
	g=$(microseconds graph)
	b=$(microseconds both)
	grep -q "^CURRENT := $1\$" graph.mk
	memory=$(command time -f %M graph-gen -r results \
	    -i .state/identity.json -l 1000 -z 400 -b names.json -m map.json \
	    -g all 2>&1 >/dev/null) || memory=0
	awk -v m="$1" -v g="$g" -v b="$b" -v w="$2" -v kb="$memory" 'BEGIN {
		printf "graph-gen: %5d models current: %.1f ms, with make " \
		    "%.1f ms (goal %d), %.1f MiB RSS\n", m, g / 1000, \
		    b / 1000, w, kb / 1024 }'
}

c=$root/catalog
python3 "$root/tests/fabricate.py" ws "$c/model_source_map_v22.json" \
    "$c/model_source_map_v23.json" -- "$c/model_names_v21.json" \
    "$c/model_names_extra.json"
cd ws
measure 73 30
cd ..
rm -rf ws
python3 "$root/tests/fabricate.py" ws 10000
cd ws
measure 10000 1000
