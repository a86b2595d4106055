#!/bin/sh
# Is a device kept busy? Links of 100 Mbit/s, models of 10 MB that become
# artifacts of 10 MB in 3 s, two compiles started for each device, both sides
# syncing. Then two devices, each with a link of its own. Root on Linux only.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
root=$(dirname "$here")
PATH=${BIN:-$root/build/bin}:$PATH
models=${MODELS:-20} bytes=10000000 seconds=3
T=$(mktemp -d "${TMPDIR:-/tmp}/mr-bench.XXXXXX")
pids=
finish() {
	for p in $pids; do kill "$p" 2>/dev/null || :; done
	rm -rf "$T"
}
trap finish EXIT
cd "$T"
later() { pids="$pids $1"; }
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
# shellcheck source=tests/netns.sh
. "$here/netns.sh"
netns_can || {
	echo 'remote-pool: no network namespaces here: not measured'
	exit 0
}

ssh_keys
device_make
cat >"$D/models" <<EOF
#!/bin/sh
set -eu
while [ \$# -gt 0 ]; do
	case \$1 in
	--model) id=\$2 ;;
	--input-dir) in=\$2 ;;
	--output-dir) out=\$2 ;;
	esac
	shift
done
begun=\$(date +%s.%N)
cat "\$in"/*.onnx >"\$out/\${id}_driving_tinygrad.pkl"
sleep $seconds
echo "\$begun \$(date +%s.%N) \$id" >>times
EOF

# the devices, by address; one path stands for the root of each
for h in a:192.168.3.109:fd00:3::109 b:192.168.3.110:fd00:3::110; do
	d=${h%%:*} ip4=${h#*:}
	ip6=${ip4#*:} ip4=${ip4%%:*}
	cp -a "$T/dev" "$T/$d"
	netns_host "$d" "$ip4" "$ip6"
	for n in "$ns $ns-$d" "$ns-$d lan"; do
		tc -n "${n% *}" qdisc add dev "${n#* }" root tbf \
		    rate 100mbit burst 64kb latency 50ms
	done
	# shellcheck disable=SC2016 # words of the other sh
	echo 'eval "$(printf %s "$SSH_ORIGINAL_COMMAND" |
	    sed "s#'"$T/dev/#$T/$d/"'#g")"' >"$S/as-$d"
	in_ns="ip netns exec $ns-$d" sshd_run "$d" -o "HostKey=$S/host" \
	    -o ListenAddress="$ip4" -o ForceCommand="sh $S/as-$d"
	echo "$ip4 $(cut -d' ' -f1,2 "$S/host.pub")" >>"$S/known_hosts"
done
unset in_ns

mkdir -p ws/onnx ws/results
i=0
while [ $i -lt "$models" ]; do
	i=$((i + 1)) id=m$i
	f=onnx/$id/${id}_driving_supercombo.onnx
	mkdir "ws/onnx/$id"
	head -c $bytes /dev/urandom >"ws/$f"
	printf '{"id": "%s", "files": [{"component": "%s", "path": "%s", "size": %s, "sha256": "%s"}]}\n' \
	    $id driving_supercombo "$f" $bytes \
	    "$(sha256sum <"ws/$f" | cut -c1-64)" >"ws/results/${id}_source.json"
	echo $id >>ids
done

# compile_all DEVICES JOBS: all models, JOBS at once; seconds to the result
compile_all() {
	rm -rf ws/compiled ws/.state ws/results/*_artifact.json "$T"/[ab]"${D#"$T/dev"}"/times
	mkdir -p ws/.state/run
	start=$(date +%s.%N)
	(cd ws && MR_RUN=.state/run ip netns exec "$ns" xargs -P "$2" -n 1 \
	    remote-compile -c "$S/config" -p "$D" -d '' \
	    -a '192.168.3.109 192.168.3.110' -D "$1" -f supercombo -v v0 \
	    -r results <../ids >../log 2>&1) || { cat log >&2; exit 1; }
	echo "$start $(date +%s.%N)" | awk '{ print $2 - $1 }'
}
# idle NAME: per cent of the time from its first compile to its last
idle() {
	sort -n "$T/$1${D#"$T/dev"}/times" | awk '
	NR == 1 { first = $1 }
	{ busy += $2 - $1; end = $2 > end ? $2 : end }
	END { printf "%.1f", 100 - 100 * busy / (end - first) }'
}
# span: seconds from the first start of a compile to the last end of all
span() {
	cat "$T"/[ab]"${D#"$T/dev"}"/times | sort -n | awk '
	NR == 1 { first = $1 }
	{ end = $2 > end ? $2 : end }
	END { print end - first }'
}
one=$(compile_all 192.168.3.109 2)
one_span=$(span) one_idle=$(idle a)
two=$(compile_all '192.168.3.109 192.168.3.110' 4)
two_span=$(span)
awk -v n="$models" -v o="$one" -v t="$two" -v os="$one_span" -v ts="$two_span" \
    -v i="$one_idle" -v a="$(idle a)" -v b="$(idle b)" 'BEGIN {
	printf "remote-pool: one device is idle %s %% (goal 5): %d models in " \
	    "%.1f s; two: idle %s and %s %%, %.1f s: %.2fx, from the first " \
	    "compile to the last %.2fx (goal 1.9)\n", i, n, o, a, b, t, o / t, os / ts
}'
