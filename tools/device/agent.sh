#!/bin/sh
# The device's side of remote-compile(1), which describes the protocol.
#	agent.sh serve ROOT SYNC	answers lines on standard input
#	agent.sh job ROOT SYNC KEY WAIT WANT ID FORMAT VERSION GPU
# The lock of a job's folder is the truth about its life; pid, start time and
# boot id serve messages and cancelling only.
set -u
umask 022
LC_ALL=C
export LC_ALL
me=$0 verb=$1 root=$2 sync=$3
jobs=$root/compiledmodels/jobs
base=${root%/data/openpilot}	# "" on a device; a folder in tests
[ "$base" != "$root" ] || base=
tab=$(printf '\t')

say() { printf '%s\n' "$*"; }

# ---- facts of the device ----

boot() {
	cat "$base/proc/sys/kernel/random/boot_id" 2>/dev/null ||
	    cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo unknown
}
# born PID: when it started, in clock ticks since boot; proc(5), field 22
born() {
	sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20
}
bytes() { stat -c %s -- "$1" 2>/dev/null || echo 0; }
digest() { sha256sum <"$1" | cut -c1-64; }
# flushes FILE... to the disk
flush() { [ "$sync" = 0 ] || sync "$@" 2>/dev/null || sync; }
# the sha256 of a list of the files that COMMAND names, NUL between them
list_digest() { LC_ALL=C sort -z | xargs -0r sha256sum 2>/dev/null | digest /dev/stdin; }

# the compiler as models(1) --identity describes it, from files alone
files_identity() {
	tree=$root/tinygrad_repo/tinygrad
	[ -d "$tree" ] || tree=$root/tinygrad
	hex=$(cd "$tree" && find . \( -name __pycache__ -o -name .git \) -prune \
	    -o \( -type f -o -type l \) ! -name '._*' ! -name .DS_Store \
	    ! -name '*.pyc' -printf '%P\0' | list_digest)
	scripts=$(cd "$root" && for f in common/file_chunker.py models \
	    scripts/models.py selfdrive/modeld/compile_modeld.py \
	    selfdrive/modeld/get_model_metadata.py selfdrive/modeld/helpers.py \
	    selfdrive/modeld/usbgpu_link.py \
	    system/camerad/cameras/nv12_info.py; do
		[ ! -f "$f" ] || printf '%s\0' "$f"
	done | list_digest)
	version=$(sed -n 's/^[[:blank:]]*version *= *["'\'']*\([0-9a-z.+-]*\).*/\1/p' \
	    "$tree/../pyproject.toml" "$tree/../setup.py" 2>/dev/null | head -n 1)
	python=$(sed -n 's/^version[a-z_]* *= *\([0-9.]*\).*/\1/p' \
	    "$root/.venv/pyvenv.cfg" /usr/local/venv/pyvenv.cfg 2>/dev/null |
	    head -n 1)
	type=$({ tr -d '\000' <"$base/sys/firmware/devicetree/base/model"; } \
	    2>/dev/null)
	case $type in
	'comma '*) type=${type#comma } backend=QCOM ;;
	*) type=local-$(uname -m) backend=default ;;
	esac
	toolchain=$(printf 'tinygrad_tree=%s\nscripts=%s\n' "$hex" "$scripts" |
	    digest /dev/stdin)
	printf '{"schema": 1, "driver": "starpilot", "tinygrad": "%s", ' \
	    "${version:-unknown}"
	printf '"toolchain": "%s", "tinygrad_tree": "%s", "scripts": "%s", ' \
	    "$toolchain" "$hex" "$scripts"
	printf '"python": "%s", "cameras": ["1928x1208", "1344x760"], ' \
	    "${python:-unknown}"
	printf '"device": "%s", "backend": "%s", "environment": {}}\n' \
	    "$type" "$backend"
}
# clean COMMAND...: runs it with the environment of every compile
clean() {
	(cd "$root" && exec env -i HOME="${HOME-/}" PATH="$PATH" \
	    LANG=C.UTF-8 "$@")
}
# A stock ./models would take --identity for the name of a model.
identity() {
	if grep -qae --identity "$root/models"; then
		clean ./models --identity
	else
		files_identity
	fi | head -n 1
}

# a compile that some other hand started in this root: "PID COMMAND"
stranger() {
	for p in /proc/[0-9]*; do
		case $(readlink "$p/cwd" 2>/dev/null) in
		"$root"|"$root"/*) ;;
		*) continue ;;
		esac
		words=$({ tr '\000' ' ' <"$p/cmdline"; } 2>/dev/null)
		case "/$words" in
		*"$me"*) ;;
		*/models\ *|*/models.py\ *|*/compile_modeld.py\ *)
			echo "${p#/proc/} $words" | cut -c1-120
			return ;;
		esac
	done
}

# ---- is this device fit? ----

# The bridge of the external GPU, by its USB product string.
gpu_fit() {
	i=0
	while :; do
		for f in "$base"/sys/bus/usb/devices/*/idVendor; do
			case $(cat "$f" 2>/dev/null) in
			174c|add1) ;;
			*) continue ;;
			esac
			product=$(cat "${f%/*}/product" 2>/dev/null)
			case $product in
			custom*) return 0 ;;
			esac
			say "pair 2 the USB bridge of the external GPU is" \
			    "\"$product\", wanted one with custom firmware"
			return 1
		done
		i=$((i + 1))
		[ "$i" -lt 10 ] || break
		sleep 1
	done
	say "pair 111 the external GPU's link is down: no USB bridge was seen" \
	    "in 10 s"
	return 1
}
# fit NEED GPU: bytes wanted below the root, 1 if the external GPU is
fit() {
	for f in flock setsid sha256sum; do
		command -v $f >/dev/null || {
			say "unfit the device has no $f"
			return 1
		}
	done
	[ -x "$root/models" ] || {
		say "unfit $root/models is missing or cannot be run"
		return 1
	}
	f=$base/data/params/d/IsOffroad
	[ ! -e "$f" ] || [ "$(cat "$f")" = 1 ] || {
		say "again the car is onroad: $f is not 1"
		return 1
	}
	free=$(df -Pk "$jobs" | awk 'END { printf "%.0f", $4 * 1024 }')
	[ "$free" -ge "$1" ] || {
		say "unfit $jobs: $free bytes are free, wanted $1"
		return 1
	}
	[ "$2" = 0 ] || gpu_fit
}

# ---- a job's folder ----

# read_who DIR: id, owner, pid, start, bootid of a job; all "" if unknown
read_who() {
	id='' owned='' pid='' start='' bootid=''
	while IFS=$tab read -r name value; do
		case $name in
		id) id=$value ;;
		owner) owned=$value ;;
		pid) pid=$value ;;
		start) start=$value ;;
		boot) bootid=$value ;;
		esac
	done 2>/dev/null <"$1/who" || :
}
# mine DIR ID: is it a job for ID of this owner? Reads who.
mine() {
	[ -e "$1/who" ] || return 1
	read_who "$1"
	[ "$owned" = "$owner" ] || return 1
	[ "$id" = "$2" ]
}
# state DIR: running, done, lost (started, yet without a result) or none
state() {
	if [ -e "$1/lock" ] && ! flock -sn "$1/lock" true; then echo running
	elif [ -e "$1/rc" ]; then echo "done"
	elif [ -e "$1/who" ]; then echo lost
	else echo none
	fi
}
# Removes a folder that nobody reads or runs in.
discard() {
	(
		exec 5>>"$1/lock" && flock -n 5 || exit 1
		exec 6>>"$1/use" && flock -n 6 || exit 1
		rm -rf "$1"
	) 2>/dev/null
}
# stop DIR: ends a running job, checked by pid, start time and boot id; who
# follows it is told
stop() {
	read_who "$1"
	[ -n "$pid" ] && [ "$bootid" = "$(boot)" ] &&
	    [ "$(born "$pid")" = "$start" ] || return 1
	printf 'cancelled\nend\n' >"$1/rc"
	kill -TERM -- "-$pid"
	flock -w 5 "$1/lock" true || {
		kill -KILL -- "-$pid"
		flock -w 5 "$1/lock" true
	}
}

# job KEY ID: takes the folder, ends what this owner no longer wants
job() {
	key=$1 dir=$jobs/$1
	find "$jobs" -mindepth 1 -maxdepth 1 -type d -mtime +7 | while read -r d
	do
		[ "$d" = "$dir" ] || discard "$d"
	done
	for d in "$jobs"/*/; do
		d=${d%/}
		[ "$d" != "$dir" ] || continue
		mine "$d" "$2" || continue
		if [ "$(state "$d")" = running ]; then
			stop "$d" && say "note an older compile of $2 ran" \
			    "here: stopped, its sources or compiler changed"
		fi
		discard "$d"
	done
	mkdir -p "$dir/in"
	(: >>"$dir/use") 2>/dev/null || {
		say "unfit $dir: cannot be written"
		return
	}
	exec 6>>"$dir/use"
	flock -s 6
	[ -d "$dir" ] || mkdir -p "$dir/in"
	read_who "$dir"
	id=$2
	say "state $(state "$dir")${tab}${owned:-$owner}"
}
# put NAME SIZE SHA256: an input arrives; a broken upload goes on
put() {
	f=$dir/in/$1 part=$dir/in/.$1.part
	if [ -e "$f" ] && [ "$(digest "$f")" = "$3" ]; then
		say have
		return
	fi
	(
		exec 7>>"$part.lock"
		flock -n 7 || part=$part.$$
		from=$(bytes "$part")
		[ "$from" -le "$2" ] || { : >"$part"; from=0; }
		say "from $from"
		head -c $(($2 - from)) >>"$part" || {
			say "unfit $part: cannot be written: is the disk full?"
			exit
		}
		# cut off: what came is kept, and the next upload goes on
		[ "$(bytes "$part")" = "$2" ] || exit
		if [ "$(digest "$part")" = "$3" ]; then
			flush "$part"
			mv -f "$part" "$f" && rm -f "$part.lock" && say "ok"
		else
			rm -f "$part"
			say bad
		fi
	)
}
# start WAIT WANT ID FORMAT VERSION GPU: hands the lock to a new session
start() {
	(: >>"$dir/lock") 2>/dev/null || {
		say "link $dir: is gone"
		return
	}
	(
		exec 8>>"$dir/lock"
		flock -w 1 8 || { say running; exit; }
		[ ! -e "$dir/rc" ] || { say "done"; exit; }
		rm -rf "$dir/who" "$dir/rc.tmp" "$dir/out" "$dir/log" "$dir/in/".*.part*
		mkdir -p "$dir/out"
		printf 'id\t%s\nowner\t%s\n' "$3" "$owner" >"$dir/who"
		: >"$dir/log"
		cd /
		setsid /bin/sh "$me" job "$root" "$sync" "$key" "$@" \
		    </dev/null >>"$dir/log" 2>&1 6>&- &
		say started
	)
}
# The log from byte OFFSET on until the job ends; then its result.
# follow OFFSET LIMIT
follow() {
	off=$1 ended=0 count=0
	while :; do
		n=$(($(bytes "$dir/log") - off))
		if [ "$n" -gt 0 ]; then
			[ "$n" -le 65536 ] || n=65536
			say "log $n"
			tail -c +$((off + 1)) "$dir/log" | head -c "$n"
			off=$((off + n))
			continue
		fi
		[ "$ended" = 0 ] || break
		if flock -sw 0.25 "$dir/lock" true; then
			ended=1
			continue
		fi
		count=$((count + 1))
		[ $((count % 8)) -ne 0 ] ||
		    say "beat $(cat "$dir/state" 2>/dev/null)"
		if [ $((count % 40)) -eq 0 ] &&
		    [ "$(cat "$dir/state" 2>/dev/null)" = compiling ] && age=$(($(date +%s) - \
		    $(cat "$dir/since" 2>/dev/null || date +%s))) &&
		    [ "$age" -gt "$2" ]; then
			stop "$dir"
			say "late $age"
			return
		fi
	done
	if [ -e "$dir/rc" ]; then
		cat "$dir/rc"
	else
		read_who "$dir"
		if [ "${bootid:-$(boot)}" = "$(boot)" ]; then
			say "lost the compile was killed"
		else
			say "lost the device has restarted"
		fi
	fi
}
get() {
	f=$dir/out/$1
	[ -f "$f" ] || { say gone; return; }
	say "data $(bytes "$f")"
	cat "$f"
}
# The folder goes with its owner, or with the last reader after that.
clean_up() {
	exec 6>&-
	read_who "$dir"
	[ "$owned" != "$owner" ] || : >"$dir/taken"
	[ ! -e "$dir/taken" ] || discard "$dir"
	say cleaned
}

# ---- what people ask ----

cancel() {
	for d in "$jobs"/*/; do
		d=${d%/}
		mine "$d" "$1" || continue
		case $(state "$d") in
		running)
			if stop "$d"; then
				say "tell stopped $id (pid $pid)"
			else
				say "tell $id runs, but pid $pid is not its" \
				    "own any more: not stopped"
			fi ;;
		*) say "tell removed what was left of $id" ;;
		esac
		discard "$d"
	done
	say end
}
status() {
	f=$base/data/params/d/IsOffroad
	road=offroad
	[ ! -e "$f" ] || [ "$(cat "$f")" = 1 ] || road=onroad
	say "tell $road, $(df -Pk "$jobs" | awk 'END { printf "%.1f", $4 / 1048576 }') GiB free"
	other=$(stranger)
	[ -z "$other" ] || say "tell not ours: $other"
	for d in "$jobs"/*/; do
		d=${d%/}
		[ -e "$d/who" ] || continue
		read_who "$d"
		s=$(state "$d")
		if [ "$s" = running ]; then
			s=$(cat "$d/state" 2>/dev/null)
			s="$s for $(($(date +%s) - $(cat "$d/since" 2>/dev/null || date +%s))) s, pid $pid"
		fi
		say "tell $id: $s; job $(basename "$d" | cut -c1-12) of $owned"
	done
	say end
}

serve() {
	IFS= read -r owner || exit
	key='' dir=''
	say ready
	while read -r line; do
		# words of the protocol have no blanks; "-" stands for none
		# shellcheck disable=SC2086
		set -- $line
		word=$1
		shift
		case $word in
		fit) fit "$@" && say fit ;;
		identity) say "identity $(identity)" ;;
		job) job "$@" ;;
		put) put "$@" ;;
		start) start "$@" ;;
		follow) follow "$@" ;;
		get) get "$@" ;;
		drop) rm -f "$dir/rc" "$dir/who"; say dropped ;;
		clean) clean_up ;;
		cancel) cancel "$@" ;;
		status) status ;;
		*) say "unfit the agent does not know \"$word\"" ;;
		esac
	done
}

# ---- one compile ----

# result WORD...: the first line of rc; the files of out follow
result() {
	{
		say "$@"
		for f in "$dir/out"/*; do
			[ ! -f "$f" ] || say "file $(basename "$f")" \
			    "$(bytes "$f") $(digest "$f")"
		done
		say end
	} >"$dir/rc.tmp"
	flush "$dir/rc.tmp" "$dir/out"/*
	mv -f "$dir/rc.tmp" "$dir/rc"
	flush "$dir"
	exit 0
}
phase() {
	date +%s >"$dir/since"
	say "$*" >"$dir/state"
}
compile() {
	key=$1 wait=$2 want=$3 id=$4 format=$5 version=$6 gpu=$7
	dir=$jobs/$key
	printf 'pid\t%s\nstart\t%s\nboot\t%s\n' "$$" "$(born $$)" "$(boot)" \
	    >>"$dir/who"
	phase queued
	exec 9>>"$jobs/device.lock"
	flock -w "$wait" 9 || result "again another compile holds the device:" \
	    "$(cat "$jobs/holder" 2>/dev/null)"
	read_who "$dir"
	say "$id, pid $$, of $owned" >"$jobs/holder"
	left=$wait
	while other=$(stranger); [ -n "$other" ]; do
		phase "waiting for $other"
		[ "$left" -gt 0 ] ||
		    result "again another compiler is running: $other"
		left=$((left - 1))
		sleep 1
	done
	[ "$(identity | digest /dev/stdin)" = "$want" ] || result changed
	phase compiling
	set -- --model "$id" --input-dir "$dir/in" --output-dir "$dir/out" \
	    --input-format "$format" --no-split
	[ "$version" = - ] || set -- "$@" --version "$version"
	[ "$gpu" = 0 ] || set -- "$@" --external-gpu
	rc=0
	clean ./models "$@" || rc=$?
	[ "$(identity | digest /dev/stdin)" = "$want" ] || result changed
	phase finishing
	result "exit $rc"
}

shift 3
case $verb in
serve) serve ;;
job) compile "$@" ;;
esac
