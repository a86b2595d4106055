# Sourced after lib.sh: a device on loopback. Its sshd has own keys and a free
# port, its compiler is a stand-in, and its clock of boots a file.
# shellcheck shell=sh source=tests/lib.sh disable=SC2034,SC2119,SC2120,SC2154
S=$T/ssh		# keys and configuration
D=$T/dev/data/openpilot	# the device root
export MR_DEVICE_DIR="$root/tools/device"	# wherever BIN is

# free_port: one that nobody listens on
free_port() {
	python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
# ssh_keys: the user's key, the server's, and the user's configuration
ssh_keys() {
	mkdir -p "$S"
	[ -e "$S/id_ed25519" ] ||
	    ssh-keygen -q -t ed25519 -N '' -f "$S/id_ed25519"
	[ -e "$S/host" ] || ssh-keygen -q -t ed25519 -N '' -f "$S/host"
	cp "$S/id_ed25519.pub" "$S/authorized_keys"
	cat >"$S/config" <<-EOF
	Host *
		UserKnownHostsFile $S/known_hosts
		GlobalKnownHostsFile /dev/null
		IdentityFile $S/id_ed25519
		IdentityAgent none
	EOF
}
# sshd_run NAME OPTION...: a server, by these options beside what all have; its
# pid in $S/NAME.pid. $in_ns are words to run it by; $there is set for its
# login shells, which read nothing of this user's home
sshd_run() {
	[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
	mkdir -p "$T/home"
	name=$1
	shift
	# shellcheck disable=SC2086 # words
	${in_ns-} "$(command -v sshd || echo /usr/sbin/sshd)" -f /dev/null \
	    -o "PidFile=$S/$name.pid" \
	    -o "AuthorizedKeysFile=$S/authorized_keys" -o StrictModes=no \
	    -o UsePAM=no -o PasswordAuthentication=no \
	    -o "SetEnv=HOME=$T/home${there+ $there}" \
	    -o MaxStartups=100 -E "$S/$name.log" "$@" || return
	wait_for 100 test -s "$S/$name.pid"
	later "$(cat "$S/$name.pid")"
}
# sshd_start [NAME [OPTION...]]: a server; its port in $port, pid in $S/NAME.pid
sshd_start() {
	ssh_keys
	ssh_name=${1:-sshd}
	[ $# -eq 0 ] || shift
	for _ in 1 2 3 4 5; do
		port=$(free_port)
		sshd_run "$ssh_name" -o "HostKey=$S/host" \
		    -o ListenAddress="127.0.0.1:$port" "$@" && break
	done
	hosts_entry "$port"
}
# hosts_entry PORT: the host's right key becomes known
hosts_entry() {
	printf '[127.0.0.1]:%s %s\n' "$1" "$(cut -d' ' -f1,2 "$S/host.pub")" \
	    >>"$S/known_hosts"
}
# wait_for TENTHS COMMAND...: until it succeeds
wait_for() {
	left=$(($1 * slack))
	shift
	until "$@"; do
		[ "$left" -gt 0 ] || return 1
		left=$((left - 1))
		sleep 0.1
	done
}
# ssh_children NAME: the pids of the connections of a server
ssh_children() {
	pgrep -P "$(cat "$S/${1:-sshd}.pid")" || :
}

# device_make: the root of a stock device, whose ./models makes a small
# pickle of its sources and words; $D/pause holds it up, $D/calls counts
device_make() {
	mkdir -p "$D/selfdrive/modeld" "$D/tinygrad_repo/tinygrad" \
	    "$T/dev/data/params/d" "$T/dev/proc/sys/kernel/random"
	printf 1 >"$T/dev/data/params/d/IsOffroad"
	echo boot-1 >"$T/dev/proc/sys/kernel/random/boot_id"
	echo "rev = 1" >"$D/tinygrad_repo/tinygrad/__init__.py"
	echo 'version = "0.14.0"' >"$D/tinygrad_repo/pyproject.toml"
	echo "# stand-in" >"$D/selfdrive/modeld/compile_modeld.py"
	cat >"$D/models" <<-'EOF'
	#!/bin/sh
	set -eu
	id= in= out= words="$*" artifact=
	while [ $# -gt 0 ]; do
		case $1 in
		--model) id=$2 ;;
		--input-dir) in=$2 ;;
		--output-dir) out=$2 ;;
		--validate) artifact=$2 ;;
		esac
		shift
	done
	[ -z "$artifact" ] || {
		echo "validate $id $$ $words" >>calls
		echo "driving $id"
		sleep "$(cat pause 2>/dev/null || echo 0)"
		printf '{\n"id": "%s", "status": "%s", "sha256": "%s", "error": "%s"\n}\n' \
		    "$id" "$([ -e unsound ] && echo failed || echo passed)" \
		    "$(sha256sum <"$artifact" | cut -c1-64)" \
		    "$(cat unsound 2>/dev/null)" >"$out/${id}_validation.json"
		[ ! -e after-compile ] || . ./after-compile
		[ ! -e unsound ]
		exit
	}
	mkdir running 2>/dev/null || echo "twice $id" >>calls
	echo "start $id $$" >>calls
	echo "compiling $id"
	[ ! -e on-compile ] || . ./on-compile
	sleep "$(cat pause 2>/dev/null || echo 0)"
	{ echo "pickle $words" | sed 's/--[a-z]*put-dir [^ ]*//g'
	cat "$in"/*.onnx; } >"$out/${id}_driving_tinygrad.pkl"
	[ ! -e after-compile ] || . ./after-compile
	echo "end $id" >>calls
	rmdir running
	EOF
	chmod 755 "$D/models"
	: >"$D/calls"
}
# compiles [ID]: how many have started
compiles() { grep -c "^start ${1-}" "$D/calls" || :; }

# device DEVICE...: the words that name devices to remote-compile
on_device() {
	remote-compile -c "$S/config" -a 127.0.0.1 -p "$D" -P 0 \
	    -D "${devices:-127.0.0.1:$port}" "$@"
}

# ws_make: a workspace in $T/base whose model `one` is fetched, none compiled
ws_make() {
	(cd "$T" && python3 "$here/fabricate.py" base 4) || exit 2
	rm -r "$T"/base/compiled "$T"/base/results/*_artifact.json \
	    "$T"/base/ready-for-resources
}
# begin [NAME]: a fresh copy of it, $T/NAME, is the current folder; the device
# is fresh too
begin() {
	name=${1:-ws}
	rm -rf "${T:?}/$name" "$D/compiledmodels" "$D"/on-compile \
	    "$D"/after-compile "$D/pause" "$D/running" "$D/unsound"
	cp -a "$T/base" "$T/$name" && cd "$T/$name" || exit 2
	: >"$D/calls"
}
# rc [OPTION...]: compiles `one`
rc() {
	on_device -f split -v v0 -r results "$@" one
}
# behind [OPTION...]: the same in the background: $bg
behind() {
	unignored remote-compile -c "$S/config" -a 127.0.0.1 -p "$D" -P 0 \
	    -D "127.0.0.1:$port" -f split -v v0 -r results "$@" one \
	    >"$out" 2>"$err" &
	bg=$!
	later $bg
}
# cut_link: the server's side of every link is killed
cut_link() {
	for c in $(ssh_children); do kill -9 "$c" 2>/dev/null || :; done
}
# left: the folders of jobs on the device
left() {
	find "$D/compiledmodels/jobs" -mindepth 1 -maxdepth 1 -type d \
	    2>/dev/null
}
# ends N TEXT: how the run in the background ends
ends() { wait "$bg"; status=$?; exits "$1" "$2"; }
# whole N: N compiles, never two at once, the product $wanted, nothing is left
whole() {
	is "$(compiles) $(grep -c twice "$D/calls") $(left)" "$1 0 " \
	    "... $1 compile(s), nothing stays on the device"
	is "$(sum compiled/one.pkl)" "$wanted" '... the right product'
}
# none N: no product, no record, N compiles
none() {
	is "$(find compiled results/one_artifact.json -type f \
	    2>/dev/null) $(compiles)" " $1" "... no product, $1 compile(s)"
}
# compiling [N]: waits until the compiler runs for the Nth time
compiling() {
	# shellcheck disable=SC2317 # by wait_for
	has_started() { [ "$(compiles)" -ge "${1:-1}" ]; }
	wait_for 150 has_started "$@" || fail 'no compile begins'
}

# device_here: a server, a device, a workspace base; $jobs and $pkl are where
# jobs lie and what they make
device_here() {
	sshd_start
	device_make
	ws_make
	jobs=$D/compiledmodels/jobs pkl=one_driving_tinygrad.pkl
	export jobs pkl
}
