#!/bin/sh
# lfs-fetch against git-lfs, the same pointer from the same server: the best
# of several rounds each, in turn, nobody syncs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PATH=${BIN:-$here/../../build/bin}:$PATH
rounds=${ROUNDS:-5} bytes=200000000
T=$(mktemp -d "${TMPDIR:-/tmp}/mr-bench.XXXXXX")
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$T"' EXIT
cd "$T"
HOME=$T GIT_CONFIG_NOSYSTEM=1
export HOME GIT_CONFIG_NOSYSTEM

mkdir srv
head -c "$bytes" /dev/urandom >srv/new
oid=$(sha256sum <srv/new | cut -c1-64)
mv srv/new "srv/$oid"
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' \
    "$oid" "$bytes" >pointer
python3 "$here/../lfs-server.py" srv &
server=$!
while [ ! -e srv/port ]; do sleep 0.1; done
url=http://127.0.0.1:$(cat srv/port)/ok
git init -q work
cp pointer work/model.onnx
cd work
git config user.name bench && git config user.email bench@localhost
git config lfs.url "$url"
git remote add origin "$url"
echo '*.onnx filter=lfs' >.gitattributes
git update-index --add --cacheinfo \
    "100644,$(git hash-object -w --no-filters model.onnx),model.onnx"
git commit -q -m model
cd ..

ours() { lfs-fetch -q -S store -H 127.0.0.1 -e "$url" <pointer >object; }
smudge() { (cd work && git lfs smudge <../pointer >../object 2>/dev/null); }
# without the way out of the store
fetch() { (cd work && git lfs fetch origin HEAD >/dev/null 2>&1); }

# took WHAT: microseconds, with nothing in any store
took() {
	rm -rf store work/.git/lfs object
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

MR_SYNC=0
export MR_SYNC
sync
n=0
while [ $n -lt "$rounds" ]; do
	best fetch; best smudge
	cmp object "srv/$oid"
	best ours
	cmp object "srv/$oid"
	n=$((n + 1))
done
rm -rf store
kb=$(command time -f %M lfs-fetch -q -S store -H 127.0.0.1 -e "$url" \
    <pointer 2>&1 >object)
MR_SYNC=1
synced_us=$(took ours)
awk -v o="${ours_us:?}" -v s="${smudge_us:?}" -v f="${fetch_us:?}" \
    -v y="$synced_us" -v kb="$kb" 'BEGIN { printf "lfs-fetch: %.1fx faster " \
    "than git-lfs (smudge; goal 2.5), %.1fx git lfs fetch: 200 MB in %.3f s, " \
    "%.1f MiB RSS (goal 12); synced %.3f s\n", s / o, f / o, o / 1e6, \
    kb / 1024, y / 1e6 }'
