#!/bin/sh
# The device's side of remote-compile(1), which describes the protocol.
#	agent.sh serve ROOT SYNC	answers lines on standard input
#	agent.sh job ROOT SYNC KEY WAIT ID FORMAT VERSION GPU
# A device has slow cores, so that what the shell can do itself starts no other
# program: results are left in variables. The lock of a job's folder is the
# truth about its life; pid, start time and boot id serve messages and
# cancelling only. Who reads a folder shares its lock `use`, so that it stays.
# shellcheck disable=SC2030,SC2031,SC2094 # of a subshell nothing is read
set -u
umask 022
LC_ALL=C
export LC_ALL
me=$0 verb=$1 root=$2 sync=$3
jobs=$root/compiledmodels/jobs
base=${root%/data/openpilot}	# "" on a device; a folder in tests
[ "$base" != "$root" ] || base=
tab='	'
boot=unknown
read -r boot 2>/dev/null <"$base/proc/sys/kernel/random/boot_id" ||
    read -r boot </proc/sys/kernel/random/boot_id || :

say() { printf '%s\n' "$*"; }

# ---- facts of the device ----

# born PID: $ticks is when it started, since boot; proc(5), field 22
born() {
	ticks=
	read -r ticks 2>/dev/null <"/proc/$1/stat" || return 0
	# shellcheck disable=SC2086 # words
	set -- ${ticks##*) }
	ticks=${20}
}
# $now: seconds since boot, which nobody sets back
clock() {
	read -r now _ </proc/uptime
	now=${now%.*}
}
# size_of FILE: $size
size_of() {
	size=0
	[ ! -e "$1" ] || size=$(stat -c %s -- "$1")
}
# digest FILE SIZE: $hex; for a large one openssl(1), which knows the cores'
# own instructions: seven times as fast
digest() {
	if [ "$2" -gt 1000000 ] && command -v openssl >/dev/null; then
		hex=$(openssl dgst -sha256 -r <"$1")
	else
		hex=$(sha256sum <"$1")
	fi
	hex=${hex%% *}
}
# flushes FILE... to the disk
flush() { [ "$sync" = 0 ] || sync "$@" 2>/dev/null || sync; }
# value NAME FILE...: $found is the first NAME = "VALUE" in them, or unknown
value() {
	name=$1
	shift
	found=$(sed -n "/^[[:blank:]]*$name *= */{s///;s/^[\"']//;s/[^0-9a-z.+-].*//p;q}" \
	    "$@" 2>/dev/null)
	found=${found:-unknown}
}

# Identity of a stock compiler as one line of JSON, from files alone: what
# models(1) --identity says where there is one.
files_identity() {
	cd "$root" || return
	tree=tinygrad_repo/tinygrad
	[ -d "$tree" ] || tree=tinygrad
	toolchain=$(find "$tree" models common/file_chunker.py \
	    scripts/models.py selfdrive/modeld/compile_modeld.py \
	    selfdrive/modeld/get_model_metadata.py selfdrive/modeld/helpers.py \
	    selfdrive/modeld/usbgpu_link.py \
	    system/camerad/cameras/nv12_info.py \
	    \( -name __pycache__ -o -name .git \) -prune -o \
	    \( -type f -o -type l \) ! -name '._*' ! -name .DS_Store \
	    ! -name '*.pyc' -print0 2>/dev/null | sort -z |
	    xargs -0r sha256sum 2>/dev/null | sha256sum)
	value version "$tree/../pyproject.toml" "$tree/../setup.py"
	tinygrad=$found
	value 'version[a-z_]*' .venv/pyvenv.cfg /usr/local/venv/pyvenv.cfg
	type=
	model=$base/sys/firmware/devicetree/base/model
	[ ! -e "$model" ] || type=$(tr -d '\000' <"$model")
	case $type in
	'comma '*) type=${type#comma } backend=QCOM ;;
	*) type=local-$(uname -m) backend=default ;;
	esac
	printf '{"schema": 1, "driver": "starpilot", "tinygrad": "%s", ' \
	    "$tinygrad"
	printf '"toolchain": "%s", "python": "%s", ' "${toolchain%% *}" "$found"
	printf '"cameras": ["1928x1208", "1344x760"], '
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
		clean ./models --identity | head -n 1
	else
		files_identity
	fi
}

# $other: a compile that some other hand started in this root, "PID COMMAND"
stranger() {
	other=
	here=$(cd "$root" && pwd -P)	# as /proc has it
	here=$(find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$here" -o \
	    -lname "$here/*" \) 2>/dev/null)
	for p in $here; do
		p=${p%/cwd}
		words=$({ tr '\000' ' ' <"$p/cmdline"; } 2>/dev/null)
		case "/$words" in
		*"$jobs/"*) ;;
		*/models\ *|*/models.py\ *|*/compile_modeld.py\ *)
			other=$(printf '%.120s' "${p#/proc/} $words")
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
# Is the car parked? A device without the parameter is no car.
offroad() {
	road=$base/data/params/d/IsOffroad parked=1
	[ ! -e "$road" ] || read -r parked <"$road" || :
	[ "$parked" = 1 ]
}
# fit NEED GPU VALIDATE: bytes wanted below the root, 1 if the external GPU
# is, 1 if ./models is to know --validate
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
	offroad || {
		say "again the car is onroad: $road is not 1"
		return 1
	}
	free=$(df -B1 --output=avail "$jobs")
	free=${free##*[!0-9]}
	[ "$free" -ge "$1" ] || {
		# a smaller model may have room
		say "pair 2 $jobs: $free bytes are free, wanted $1"
		return 1
	}
	[ "$3" = 0 ] || grep -qae --validate "$root/models" || {
		say "pair 2 $root/models cannot validate: put the one of" \
		    "model-rebuild there"
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
# over DIR: is there a compile's own result? Every other word, such as again or
# cancelled, was for those who waited then.
over() {
	read -r end _ 2>/dev/null <"$1/rc" && [ "$end" = exit ]
}
# state DIR: $state is running, done, lost (started, yet without a result), none
state() {
	if [ -e "$1/lock" ] && ! flock -sn "$1/lock" true; then state=running
	elif over "$1"; then state="done"
	elif [ -e "$1/who" ] && [ ! -e "$1/rc" ]; then state=lost
	else state=none
	fi
}
# Removes a folder that nobody reads or runs in; who has just been told that a
# job was stopped needs a moment to leave.
discard() {
	(
		exec 6>>"$1/use" && flock -w 2 6 || exit 1
		exec 5>>"$1/lock" && flock -w 1 5 || exit 1
		rm -rf "$1"
	) 2>/dev/null
}
# stop DIR: ends a running job, checked by pid, start time and boot id; who
# follows it is told
stop() {
	read_who "$1"
	[ -n "$pid" ] && [ "$bootid" = "$boot" ] || return 1
	born "$pid"
	[ "$ticks" = "$start" ] || return 1
	printf 'cancelled\nend\n' >"$1/rc"
	kill -TERM "-$pid"	# not "--": dash
	flock -w 5 "$1/lock" true || {
		kill -KILL "-$pid"
		flock -w 5 "$1/lock" true
	}
}

# job KEY ID: takes the folder, ends what this owner no longer wants
job() {
	key=$1 dir=$jobs/$1
	for d in "$jobs"/*/; do
		d=${d%/}
		[ "$d" != "$dir" ] || continue
		[ -e "$d" ] || continue
		if ! mine "$d" "$2"; then
			[ -z "$(find "$d" -maxdepth 0 -mtime +7)" ] ||
			    discard "$d"
			continue
		fi
		state "$d"
		if [ "$state" = running ]; then
			stop "$d" && say "note an older compile of $2 ran" \
			    "here: stopped, its sources or compiler changed"
		fi
		discard "$d"
	done
	# again if the folder was removed under us
	# shellcheck disable=SC3013 # dash, bash and busybox know -ef
	until [ "$dir/use" -ef /proc/self/fd/6 ]; do
		if ! mkdir -p "$dir/in" || ! (: >>"$dir/use"); then
			say "pair 2 $dir: cannot be written: no space?"
			return
		fi
		exec 6>>"$dir/use"
		flock -s 6
	done 2>/dev/null
	read_who "$dir"
	state "$dir"
	[ "$state" != lost ] || { why_lost; say "note $why"; }
	say "state $state$tab${owned:-$owner}"
}
# why_lost: $why a job ended without a result, after read_who
why_lost() {
	why="the compile was killed"
	[ "${bootid:-$boot}" = "$boot" ] || why="the device has restarted"
}
# put NAME SIZE SHA256: an input arrives; a broken upload goes on
put() {
	f=$dir/in/$1 part=$dir/in/.$1.part
	hex=
	[ ! -e "$f" ] || digest "$f" "$2"
	if [ "$hex" = "$3" ]; then
		say have
		return
	fi
	(
		exec 7>>"$part.lock"
		flock -n 7 || part=$part.$$
		size_of "$part"
		from=$size
		[ "$from" -le "$2" ] || { : >"$part"; from=0; }
		say "from $from"
		# the bytes that nobody takes would be read as lines: the end
		# head(1) reads 8 KiB at a time
		dd iflag=fullblock,count_bytes bs=256K count=$(($2 - from)) \
		    >>"$part" 2>/dev/null || {
			say "pair 2 $part: cannot be written: no space?"
			exit 1
		}
		hex=
		size_of "$part"
		[ "$size" != "$2" ] || digest "$part" "$2"
		if [ "$hex" = "$3" ] && flush "$part" && mv -f "$part" "$f"
		then
			say ok
		else
			# cut off: what came is kept, the next upload goes on
			[ "$size" -lt "$2" ] || rm -f "$part"
			say bad
		fi
	)
}
# start WAIT ID FORMAT VERSION GPU: hands the lock to a new session
start() {
	(: >>"$dir/lock") 2>/dev/null || {
		say "link $dir: is gone"
		return
	}
	(
		exec 8>>"$dir/lock"
		flock -w 1 8 || { say running; exit; }
		! over "$dir" || { say "done"; exit; }
		cd "$dir" || exit
		rm -rf who rc rc.tmp taken out log in/.*.part*
		mkdir out
		: >log
		if ! say "$want" >./want ||
		    ! printf 'id\t%s\nowner\t%s\n' "$2" "$owner" >./who; then
			say "pair 2 $dir: cannot be written: no space?"
			exit
		fi
		cd /
		setsid /bin/sh "$me" job "$root" "$sync" "$key" "$@" \
		    </dev/null >>"$dir/log" 2>&1 6>&- &
		say started
	)
}
# doing DIR: $phase of its job, and its $age in seconds
doing() {
	phase=unknown age=0
	read -r since phase 2>/dev/null <"$1/state" || return 0
	clock
	age=$((now - since))
}
# The log from byte OFFSET on until the job ends; then its result.
# follow OFFSET LIMIT
follow() {
	off=$1 ended=0 count=0
	while :; do
		size_of "$dir/log"
		n=$((size - off))
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
		[ -d "$dir" ] || break	# then flock does not wait either
		count=$((count + 1))
		[ $((count % 8)) -eq 0 ] || continue
		doing "$dir"
		say "beat $phase"
		if [ "$phase" = compiling ] && [ "$age" -gt "$2" ]; then
			read_who "$dir"
			if [ "$owned" = "$owner" ] && stop "$dir"; then
				say "late $age"
			else
				say "pair 111 a compile of $owned has run" \
				    "for $age s: not stopped"
			fi
			return
		fi
	done
	if [ -e "$dir/rc" ]; then
		cat "$dir/rc"
	else
		read_who "$dir"
		why_lost
		say "lost $why"
	fi
}
get() {
	f=$dir/out/$1
	[ -f "$f" ] || { say gone; return; }
	size_of "$f"
	say "data $size"
	cat "$f"
}
# The folder goes with its owner, or with the last reader after that; that of
# a failure with anyone, so that the next run compiles. clean_up [failed]
clean_up() {
	exec 6>&-
	read_who "$dir"
	if [ "$owned" = "$owner" ] || [ "${1-}" = failed ]; then
		: >"$dir/taken"
	fi
	[ ! -e "$dir/taken" ] || discard "$dir"
	say cleaned
}
# The same, but the files stay: only the failure is forgotten.
forget() {
	exec 6>&-
	flock -n "$dir/use" rm -f "$dir/rc" "$dir/who"
	say cleaned
}

# ---- what people ask ----

cancel() {
	for d in "$jobs"/*/; do
		d=${d%/}
		mine "$d" "$1" || mine "$d" "$1@validate" || continue
		state "$d"
		case $state in
		running)
			if stop "$d"; then
				say "tell stopped $id (pid $pid)"
			else
				say "again $id runs, but pid $pid is not its" \
				    "own any more: not stopped"
			fi ;;
		*) say "tell removed what was left of $id" ;;
		esac
		discard "$d"
	done
	say end
}
status() {
	where=offroad
	offroad || where=onroad
	say "tell $where,$(df -h --output=avail "$jobs" | tail -n 1) free"
	stranger
	[ -z "$other" ] || say "tell not ours: $other"
	for d in "$jobs"/*/; do
		d=${d%/}
		[ -e "$d/who" ] || continue
		read_who "$d"
		state "$d"
		if [ "$state" = running ]; then
			doing "$d"
			state="$phase for $age s, pid $pid"
		fi
		say "tell $id: $state; job $(printf %.12s "${d##*/}") of $owned"
	done
	say end
}

serve() {
	IFS= read -r owner || exit
	key='' dir='' want=''
	say ready
	while read -r line; do
		# words of the protocol have no blanks; "-" stands for none
		# shellcheck disable=SC2086
		set -- $line
		word=$1
		shift
		case $word in
		fit) fit "$@" && say fit ;;
		identity)
			want=$(identity)
			say "identity $want" ;;
		job) job "$@" ;;
		put) put "$@" || exit ;;
		start) start "$@" ;;
		follow) follow "$@" ;;
		get) get "$@" ;;
		drop)
			# unless another hand has started it again
			flock -n "$dir/lock" rm -f "$dir/rc" "$dir/who"
			say dropped ;;
		clean) clean_up "$@" ;;
		forget) forget ;;
		cancel) cancel "$@" ;;
		status) status ;;
		*) say "unfit the agent does not know \"$word\"" ;;
		esac
	done
}

# ---- one compile ----

# result WORD...: the first line of rc; the files of out follow
result() {
	(
		say "$@" || exit
		for f in "$dir/out"/*; do
			[ -f "$f" ] || continue
			size_of "$f"
			digest "$f" "$size"
			say "file ${f##*/} $size $hex" || exit
		done
		say end
	) >"$dir/rc.tmp" || {
		rm -rf "$dir/out"
		say "pair 2 no space on the device for the result" \
		    >"$dir/rc.tmp"
	}
	flush "$dir/rc.tmp" "$dir/out"/*
	mv -f "$dir/rc.tmp" "$dir/rc"
	flush "$dir"
	let_go
	exit 0
}
# A compile inherits the locks, so that it keeps them if this shell alone is
# killed; a daemon that it leaves behind does not.
let_go() { flock -u 9; flock -u 8; }
phase() {
	clock
	say "$now $*" >"$dir/state"
}
compile() {
	key=$1 wait=$2 id=$3 format=$4 version=$5 gpu=$6
	dir=$jobs/$key
	trap 'let_go; exit 143' TERM
	exec 9>>"$jobs/device.lock"
	born $$
	printf 'pid\t%s\nstart\t%s\nboot\t%s\n' "$$" "$ticks" "$boot" \
	    >>"$dir/who"
	phase queued
	flock -w "$wait" 9 || result "again another compile holds the device:" \
	    "$(cat "$jobs/holder" 2>/dev/null)"
	read_who "$dir"
	say "$id, pid $$, of $owned" >"$jobs/holder"
	left=$wait
	read -r want <"$dir/want"
	while stranger; [ -n "$other" ]; do
		phase "waiting for $other"
		[ "$left" -gt 0 ] ||
		    result "again another compiler is running: $other"
		left=$((left - 1))
		sleep 1
	done
	[ "$(identity)" = "$want" ] || result changed
	phase compiling
	set -- --model "${id%@validate}" --output-dir "$dir/out"
	case $id in
	*@validate)
		set -- "$@" --validate \
		    "$dir/in/${id%@validate}_driving_tinygrad.pkl" ;;
	*)
		set -- "$@" --input-dir "$dir/in" --input-format "$format" \
		    --no-split
		[ "$gpu" = 0 ] || set -- "$@" --external-gpu ;;
	esac
	[ "$version" = - ] || set -- "$@" --version "$version"
	rc=0
	clean ./models "$@" || rc=$?
	[ "$(identity)" = "$want" ] || result changed
	phase finishing
	result "exit $rc"
}

shift 3
case $verb in
serve) serve ;;
job) compile "$@" ;;
esac
