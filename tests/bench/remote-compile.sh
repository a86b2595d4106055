#!/bin/sh
# remote-compile against a Python pipeline's way with the same server on
# loopback: for each model a preparing ssh, rsync -az up, ssh to compile,
# rsync -az down. Nobody syncs; the compiler copies its input at once.
# LARGE=0 leaves out the gigabytes.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
root=$(dirname "$here")
PATH=${BIN:-$root/build/bin}:$PATH
T=$(mktemp -d "${TMPDIR:-/tmp}/mr-bench.XXXXXX")
pids=
# shellcheck disable=SC2086 # pids are words
trap 'kill $pids 2>/dev/null || :; rm -rf "$T"' EXIT
cd "$T"
MR_SYNC=0
export MR_SYNC
later() { pids="$pids $1"; }
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"

device_make
cat >"$D/models" <<'EOF'
#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	--model) id=$2 ;;
	--input-dir) in=$2 ;;
	--output-dir) out=$2 ;;
	esac
	shift
done
cat pad "$in"/*.onnx >"$out/${id}_driving_tinygrad.pkl"
EOF
: >"$D/pad"

# models N BYTES: a workspace in which N models are fetched
models() {
	rm -rf ws && mkdir -p ws/onnx ws/results
	i=0 ids=
	while [ $i -lt "$1" ]; do
		i=$((i + 1)) id=m$i
		ids="$ids $id"
		mkdir "ws/onnx/$id"
		f=onnx/$id/${id}_driving_supercombo.onnx
		head -c "$2" /dev/urandom >"ws/$f"
		printf '{"id": "%s", "files": [{"component": "%s", "path": "%s", "size": %s, "sha256": "%s"}]}\n' \
		    "$id" driving_supercombo "$f" "$2" \
		    "$(sha256sum <"ws/$f" | cut -c1-64)" \
		    >"ws/results/${id}_source.json"
	done
}

at=127.0.0.1
# shellcheck disable=SC2086 # master is words
rsh() { ssh -F "$S/config" -p "$port" $master "$at" "$@"; }
# a Python pipeline's way, one model after the other
seed() {
	e="ssh -F $S/config -p $port $master"
	for id in $ids; do
		rsh "rm -rf '$D/up' '$D/down'; mkdir -p '$D/up' '$D/down'"
		rsync -az -e "$e" "ws/onnx/$id/" "$at:$D/up/"
		rsh "cd '$D' && ./models --model $id --input-dir '$D/up' --output-dir '$D/down'"
		rsync -az -e "$e" "$at:$D/down/" back/
	done
}
over_master() {
	master="-o ControlMaster=auto -o ControlPath=$S/cm -o ControlPersist=60"
	seed
	# shellcheck disable=SC2086 # words
	ssh -F "$S/config" -p "$port" $master -O exit "$at" 2>/dev/null
	master=
}
# two at a time, as make -j2 runs them
ours() {
	# shellcheck disable=SC2086 # ids are words
	(cd ws && printf '%s\n' $ids | xargs -P2 -I{} remote-compile \
	    -c "$S/config" -a "$at" -p "$D" -D "$at:$port" -f supercombo \
	    -r results {} 2>>"$T/log")
}
# took WHAT: milliseconds, with nothing of its own there or here
took() {
	case $1 in
	ours) rm -rf ws/compiled ws/results/*_artifact.json ;;
	*) rm -rf back && mkdir back ;;
	esac
	sync	# the disk is not busy with what came before
	start=$(date +%s%N)
	"$1"
	echo $((($(date +%s%N) - start) / 1000000))
}
# best ROUNDS WHAT...: the shortest of each, in turn, in $WHAT_ms
best() {
	rounds=$1
	shift
	for w; do eval "${w}_ms="; done
	while [ "$rounds" -gt 0 ]; do
		rounds=$((rounds - 1))
		for w; do
			ms=$(took "$w")
			eval "old=\${${w}_ms:-$ms}"
			[ "$ms" -lt "${old:?}" ] || ms=$old
			eval "${w}_ms=$ms"
		done
	done
}
# the products are those of the sources
check() {
	for id in $ids; do
		cat "$D/pad" "ws/onnx/$id"/*.onnx | cmp - "ws/compiled/$id.pkl"
		cmp "ws/compiled/$id.pkl" "back/${id}_driving_tinygrad.pkl"
	done
}
# ratio A B: A / B
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a / b }'; }

master=
kex=curve25519-sha256
sshd_start pinned -o KexAlgorithms=$kex
models 20 65536
best 3 ours over_master seed
check
echo "remote-compile: 20 models of 64 KiB, kex $kex: $(ratio "${seed_ms:?}" "${ours_ms:?}")x the seed's way (goal 5), $(ratio "${over_master_ms:?}" "$ours_ms")x over ControlMaster (goal 1.3): $ours_ms, $seed_ms, $over_master_ms ms"
pinned=$port
sshd_start usual
best 2 ours over_master seed
echo "remote-compile: 20 models of 64 KiB, usual kex: $(ratio "$seed_ms" "$ours_ms")x the seed's way (goal 10), $(ratio "$over_master_ms" "$ours_ms")x over ControlMaster: $ours_ms, $seed_ms, $over_master_ms ms"
[ "${LARGE-1}" != 0 ] || exit 0

port=$pinned
head -c 6250000 /dev/urandom >"$D/pad"
models 8 61750000
best 2 seed ours
check
echo "remote-compile: 8 models, 494 MB up and 544 MB down: $(ratio "$seed_ms" "$ours_ms")x the seed's way (goal 3): $ours_ms, $seed_ms ms, unsynced"

# one gigabyte each way, by rsync and cat as well
up_rsync() { rsync -az -e "ssh -F $S/config -p $port" ws/onnx/m1/ "$at:$D/up/"; }
up_cat() { rsh "cat >'$D/up/x'" <ws/onnx/m1/m1_driving_supercombo.onnx; }
down_rsync() { rsync -az -e "ssh -F $S/config -p $port" "$at:$D/pad" back/; }
down_cat() { rsh "cat '$D/pad'" >back/pad; }
cat >"$D/models" <<'EOF'
#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	--model) id=$2 ;;
	--output-dir) out=$2 ;;
	esac
	shift
done
ln pad "$out/${id}_driving_tinygrad.pkl"
EOF
printf x >"$D/pad"
models 1 1000000000
rm -rf "$D/up" && mkdir "$D/up"
best 3 up_cat ours
rm -rf "$D/up" && mkdir "$D/up"
best 2 up_rsync
echo "remote-compile: 1 GB up: $(ratio "${up_rsync_ms:?}" "$ours_ms")x rsync -az (goal 1.5), $(ratio "${up_cat_ms:?}" "$ours_ms")x ssh cat: $ours_ms, $up_rsync_ms, $up_cat_ms ms, hashed on both sides, unsynced"
head -c 1000000000 /dev/urandom >"$D/pad"
models 1 1
best 3 down_rsync down_cat ours
echo "remote-compile: 1 GB down: $(ratio "${down_rsync_ms:?}" "$ours_ms")x rsync -az (goal 2), $(ratio "${down_cat_ms:?}" "$ours_ms")x ssh cat: $ours_ms, $down_rsync_ms, $down_cat_ms ms, hashed on both sides, unsynced"
