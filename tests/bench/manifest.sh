#!/bin/sh
# manifest-gen and ns-rename against the same work in /usr/bin/python3, with
# 100 entries, in turn; then 10,000 entries and their memory. The best of
# several rounds each.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$(dirname "$here")")
PATH=${BIN:-$root/build/bin}:$PATH
python=/usr/bin/python3
[ -x "$python" ] || python=python3
rounds=${ROUNDS:-15}
MR_SYNC=0
export MR_SYNC
T=$(mktemp -d "${TMPDIR:-/tmp}/mr-bench.XXXXXX")
trap 'rm -rf "$T"' EXIT
cd "$T"

gen() { manifest-gen -b names.json -m map.json -r results; }
py_gen() { "$python" "$here/manifest.py" gen names.json map.json results; }
rename() { ns-rename -s 3 -k ids <../"$n.json"; }
py_rename() { "$python" "$here/manifest.py" rename 3 ids.py <../"$n.json"; }

# best WHAT: keeps the shortest time of WHAT in $WHAT_us
best() {
	start=$(date +%s%N)
	"$1" >/dev/null
	us=$((($(date +%s%N) - start) / 1000))
	eval "old=\${${1}_us:-$us}"
	[ "$us" -lt "${old:?}" ] || us=$old
	eval "${1}_us=$us"
}
# kilobytes COMMAND...: the most memory that it had
kilobytes() { command time -f %M "$@" 2>&1 >/dev/null | tail -n 1; }
# workspace COUNT: its products, and entries like the published ones
workspace() {
	n=$1
	cd "$T"
	python3 "$root/tests/fabricate.py" "ws$n" "$n"
	cd "ws$n"
	python3 -c 'import json
r = json.load(open("names.json"))
for m in r["models"]:
    m |= {"name": "A model of the bench 👀📡 " + m["id"], "series": "OP Series",
          "released": "2026-08-10", "community_favorite": False}
open("names.json", "w").write(json.dumps(r, ensure_ascii=False, indent=2) + "\n")'
	gen >"../$n.json"
	py_gen | cmp - "../$n.json"
	rename >"../$n.renamed"
	py_rename | cmp - "../$n.renamed"
	cmp ids ids.py
}

workspace 100
i=0
while [ $i -lt "$rounds" ]; do
	best gen; best py_gen; best rename; best py_rename
	i=$((i + 1))
done
awk -v g="${gen_us:?}" -v pg="${py_gen_us:?}" -v r="${rename_us:?}" \
    -v pr="${py_rename_us:?}" 'BEGIN { printf \
    "100 entries: manifest-gen %.1f ms, %.1fx python3 (goal 5); " \
    "ns-rename %.1f ms, %.1fx python3 (goal 5)\n", g / 1000, pg / g, \
    r / 1000, pr / r }'
gen_us='' rename_us=''
workspace 10000
for i in 1 2 3; do best gen; best rename; done
awk -v g="${gen_us:?}" -v r="${rename_us:?}" \
    -v gk="$(kilobytes manifest-gen -b names.json -m map.json -r results)" \
    -v rk="$(kilobytes ns-rename -s 3 -k ids <../10000.json)" \
    -v b="$(wc -c <../10000.json)" 'BEGIN { printf \
    "10,000 entries, %.1f MB: manifest-gen %.2f s, %.1fx the file in " \
    "memory; ns-rename %.2f s, %.1fx (goals 1 s, 10x)\n", b / 1e6, \
    g / 1e6, gk * 1024 / b, r / 1e6, rk * 1024 / b }'
