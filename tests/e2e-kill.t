#!/bin/sh
# kill -9 of the whole process group at random moments of `make -j4 all`: the
# rerun ends with the digests of an undisturbed run.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pipeline.sh
. "$here/pipeline.sh"
rounds=${ROUNDS:-30}

pipeline_up
echo 0.05 >"$device/pause"
# parts, so that sets are killed half-way too
printf 'SPLIT_LIMIT ?= 1000\nPART_SIZE ?= 1000\n' >>"$W/config.mk"
run mk -j4 all
exits 0 'the undisturbed run'
digests >"$T/want"

# a seed of its own: the moments differ, yet a failing run can be repeated
seed=${SEED:-$(date +%s)}
echo "# SEED=$seed"
bad=0
n=0
while [ $n -lt "$rounds" ]; do
	n=$((n + 1))
	rm -rf "$W/onnx" "$W/compiled" "$W/ready-for-resources" "$W/results" \
	    "$W/logs" "$W/.state" "$W/openpilot.git" "$W/openpilot.git.lock"
	seed=$(((seed * 1103515245 + 12345) % 2147483648))
	# between 0 and 1.3 s: from the first fetch to the last split
	pause=$(awk "BEGIN { printf \"%.3f\", ($seed / 2147483648) * 1.3 }")
	setsid make -C "$root" WORKSPACE="$W" -j4 all >/dev/null 2>&1 &
	p=$!
	sleep "$pause"
	kill -9 -- "-$p" 2>/dev/null
	wait $p 2>/dev/null
	# nothing half-written under a final name: what has a record holds
	mk verify >"$out" 2>"$err" || { bad=$((bad + 1)); sed 's/^/# verify: /' "$err"; }
	mk -j4 all >"$out" 2>"$err" || { bad=$((bad + 1)); sed 's/^/# rerun: /' "$err"; }
	digests >"$T/got" 2>/dev/null
	cmp -s "$T/want" "$T/got" || { bad=$((bad + 1)); echo "# round $n, killed at $pause s: other digests"; }
done
is "$bad" 0 "$rounds kills: every rerun ended with the undisturbed digests"
is "$(find "$W" -name '.*.tmp' | wc -l | tr -d ' ')" 0 'no temporary file is left'
finished
