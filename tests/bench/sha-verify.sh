#!/bin/sh
# sha-verify against sha256sum and openssl dgst on one core each, as they are:
# the best of several rounds each, in turn.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PATH=${BIN:-$here/../../build/bin}:$PATH
rounds=${ROUNDS:-11}
T=$(mktemp -d "${TMPDIR:-/tmp}/mr-bench.XXXXXX")
trap 'rm -rf "$T"' EXIT
cd "$T"

ours() { sha-verify -q list; }
gnu() { sha256sum --quiet -c list; }
openssl_dgst() { openssl dgst -sha256 -r f? >/dev/null; }
one() { sha-verify -q list1; }
openssl_one() { openssl dgst -sha256 -r f0 >/dev/null; }

# best WHAT: keeps the shortest time of WHAT in $WHAT_us
best() {
	start=$(date +%s%N)
	"$1"
	us=$((($(date +%s%N) - start) / 1000))
	eval "old=\${${1}_us:-$us}"
	[ "$us" -lt "${old:?}" ] || us=$old
	eval "${1}_us=$us"
}

for i in 0 1 2 3 4 5; do head -c 32M /dev/urandom >f$i; done
sha256sum f? >list
head -n 1 list >list1
n=0
while [ $n -lt "$rounds" ]; do
	best ours; best gnu; best openssl_dgst; best one; best openssl_one
	n=$((n + 1))
done
awk -v o="${ours_us:?}" -v g="${gnu_us:?}" -v s="${openssl_dgst_us:?}" \
    -v a="${one_us:?}" -v b="${openssl_one_us:?}" 'BEGIN { printf \
    "sha-verify: %.1fx sha256sum (goal 6), %.1fx openssl dgst (goal 1.1): " \
    "6 files of 32 MiB in %.3f s; one file: %.1fx openssl dgst\n", \
    g / o, s / o, o / 1e6, b / a }'
