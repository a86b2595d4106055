#!/bin/sh
# pkl-scan against Python's pickletools.genops: on weights in band, through a
# pipe as well, where nothing can be sought over; on opcodes alone. The best of
# several rounds, in turn.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PATH=${BIN:-$here/../../build/bin}:$PATH
rounds=${ROUNDS:-5} mib=${MIB:-256}
T=$(mktemp -d "${TMPDIR:-/tmp}/mr-bench.XXXXXX")
trap 'rm -rf "$T"' EXIT
cd "$T"

cat >make.py <<'EOP'
import os, pickle, sys
mib = int(sys.argv[1])
with open("big.pkl", "wb") as f:
    pickle.dump([{"weights": os.urandom(1 << 20), "shape": (1, i), "name": f"w{i}"} for i in range(mib)], f, 4)
with open("ops.pkl", "wb") as f:
    pickle.dump([(slice(i, i + 1), f"name{i % 999}", [i, 1.5, None]) for i in range(200000)], f, 4)
EOP
cat >genops.py <<'EOP'
import pickletools, sys
with open(sys.argv[1], "rb") as f:
    for op, arg, pos in pickletools.genops(f):
        pass
EOP
python3 make.py "$mib"

ours() { pkl-scan -q big.pkl; }
# shellcheck disable=SC2002 # a pipe on purpose
pipe() { cat big.pkl | pkl-scan -q; }
python() { python3 genops.py big.pkl; }
ops() { pkl-scan -q ops.pkl; }
python_ops() { python3 genops.py ops.pkl; }

# best WHAT: keeps the shortest time of WHAT, in microseconds, in $WHAT_us
best() {
	start=$(date +%s%N)
	"$1"
	us=$((($(date +%s%N) - start) / 1000))
	eval "old=\${${1}_us:-$us}"
	[ "$us" -lt "${old:?}" ] || us=$old
	eval "${1}_us=$us"
}

n=0
while [ $n -lt "$rounds" ]; do
	best ours; best pipe; best python; best ops
	[ $n -gt 1 ] || best python_ops
	n=$((n + 1))
done
awk -v m="$mib" -v o="${ours_us:?}" -v i="${pipe_us:?}" -v p="${python_us:?}" \
    -v s="${ops_us:?}" -v t="${python_ops_us:?}" -v b="$(wc -c <ops.pkl)" '
BEGIN { printf "pkl-scan: %.0fx pickletools (goal 20): %d MiB of weights at " \
    "%.0f MB/s (goal 500), through a pipe %.0f MB/s; opcodes alone %.0fx, " \
    "%.0f MB/s\n", p / o, m, m * 1.048576e6 / o, m * 1.048576e6 / i, t / s, b / s }'
