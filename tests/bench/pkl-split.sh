#!/bin/sh
# pkl-split against split(1) and sha256sum, and against Python's two passes:
# the best of several rounds each, in turn, nobody syncs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PATH=${BIN:-$here/../../build/bin}:$PATH
rounds=${ROUNDS:-9} mib=${MIB:-256}
T=$(mktemp -d "${TMPDIR:-/tmp}/mr-bench.XXXXXX")
trap 'rm -rf "$T"' EXIT
cd "$T"

ours() { pkl-split -o out big.pkl; }
unix() {
	split -b 99614720 -d big.pkl out/big.pkl.p &&
	    sha256sum big.pkl >out/big.pkl.sha256
}
# hash, then cut, as the Python pipeline does
python() { python3 two.py; }
cat >two.py <<'EOP'
import hashlib
digest = hashlib.sha256()
with open("big.pkl", "rb") as f:
    while block := f.read(1 << 20):
        digest.update(block)
with open("big.pkl", "rb") as f:
    i = 0
    while block := f.read(99614720):
        with open(f"out/big.pkl.p{i:02d}", "wb") as part:
            part.write(block)
        i += 1
with open("out/big.pkl.sha256", "w") as f:
    f.write(f"{digest.hexdigest()}  big.pkl\n")
EOP

# took WHAT: microseconds, into a folder that is empty
took() {
	rm -rf out
	mkdir out
	start=$(date +%s%N)
	"$1"
	echo $((($(date +%s%N) - start) / 1000))
}
# best WHAT: keeps the shortest time of WHAT in $WHAT_us
best() {
	us=$(took "$1")
	eval "old=\${${1}_us:-$us}"
	[ "$us" -lt "${old:?}" ] || us=$old
	eval "${1}_us=$us"
}

head -c "$((mib << 20))" /dev/urandom >big.pkl
sync
MR_SYNC=0
export MR_SYNC
n=0
while [ $n -lt "$rounds" ]; do
	best ours; best unix; best python
	n=$((n + 1))
done
MR_SYNC=1
synced_us=$(took ours)
awk -v m="$mib" -v o="${ours_us:?}" -v u="${unix_us:?}" -v p="${python_us:?}" \
    -v s="$synced_us" 'BEGIN { printf "pkl-split: %.1fx split+sha256sum " \
    "(goal 7), %.1fx Python (goal 1.8): %d MiB in %.3f s; synced %.3f s\n", \
    u / o, p / o, m, o / 1e6, s / 1e6 }'
