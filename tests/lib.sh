# Sourced by every test: TAP in plain sh. BIN is the folder of the tools.
# shellcheck shell=sh
set -u
LC_ALL=C TZ=UTC
export LC_ALL TZ
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
BIN=${BIN:-$root/build/bin}
AUX=${AUX:-$root/build/test}	# programs that only tests use
VENV=${VENV:-$root/build/venv}
PATH=$BIN:$AUX:$PATH
MR_SYNC=${MR_SYNC-0}
export BIN AUX VENV PATH MR_SYNC
# under valgrind a run takes a second: of many alike, every so many-th is done,
# and what bounds a wait is so many times as long
# shellcheck disable=SC2034 # by the tests
case $BIN in *valgrind*) stride=25 slack=8 ;; *) stride=1 slack=1 ;; esac
T=$(mktemp -d "${TMPDIR:-/tmp}/mr-test.XXXXXX") || exit 2
cd "$T" || exit 2
tests=0 failed=0 pids=
out=$T/.out err=$T/.err status=0

# stops every background process that `later` named, removes the folder
finish() {
	for p in $pids; do kill "$p" 2>/dev/null || :; done
	cd / && rm -rf "$T"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

later() { pids="$pids $1"; }

# pass TEXT; fail TEXT [DETAIL], which prove shows in every mode
pass() { tests=$((tests + 1)); echo "ok $tests - $1"; }
fail() {
	tests=$((tests + 1)) failed=$((failed + 1))
	echo "not ok $tests - $1"
	printf '%s: %s\n' "$1" "${2-}" | sed "s|^|# ${0##*/}: |" >&2
}
# run COMMAND...: keeps status, standard output and error
run() { "$@" >"$out" 2>"$err"; status=$?; }
# exits N TEXT: the exact status of the last run
exits() {
	if [ "$status" -eq "$1" ]; then pass "$2"
	else fail "$2" "status $status, wanted $1; stderr: $(head -c 2000 "$err")"; fi
}
# is GOT WANTED TEXT
is() {
	if [ "$1" = "$2" ]; then pass "$3"
	else fail "$3" "got: $1
wanted: $2"; fi
}
# says REGEX TEXT: standard error of the last run has such a line
says() {
	if grep -Eq -- "$1" "$err"; then pass "$2"
	else fail "$2" "no /$1/ in stderr: $(head -c 2000 "$err")"; fi
}
# prints REGEX TEXT: the same for standard output
prints() {
	if grep -Eq -- "$1" "$out"; then pass "$2"
	else fail "$2" "no /$1/ in stdout: $(head -c 2000 "$out")"; fi
}
# same FILE FILE TEXT
same() { if cmp -s "$1" "$2"; then pass "$3"; else fail "$3" "$1 and $2 differ"; fi; }
# ok TEXT COMMAND...: the command ends with 0
ok() {
	ok_text=$1; shift
	if "$@" >"$out" 2>"$err"; then pass "$ok_text"
	else fail "$ok_text" "$* ended with $?: $(head -c 2000 "$err")"; fi
}
# absent PATH TEXT: nothing has that name
absent() { if [ -e "$1" ] || [ -L "$1" ]; then fail "$2" "$1 exists"; else pass "$2"; fi; }
# sum FILE: its sha256
sum() { sha256sum <"$1" | cut -c1-64; }
# becomes COMMAND..., for which nothing is ignored: `&` ignores SIGINT, nohup
# SIGHUP, and sh cannot take it back. In the background, or a subshell, only
unignored() {
	exec python3 -c 'import os, signal, sys
for s in signal.SIGINT, signal.SIGHUP: signal.signal(s, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}
# what every tool must do: bad option, -h, -V, a lost write. common TOOL
common() {
	run "$1" -@; exits 2 "$1: bad option is status 2"
	run "$1" -h; exits 0 "$1: -h"; prints "usage: $1" "$1: -h prints the usage"
	run "$1" -V; exits 0 "$1: -V"; prints "^$1 [0-9]" "$1: -V prints the version"
	"$1" -V >/dev/full 2>"$err"; status=$?; exits 2 "$1: a full disk is status 2"
	"$1" -V >&- 2>"$err"; status=$?; exits 2 "$1: closed stdout is status 2"
}
# the last line of every test
finished() {
	echo "1..$tests"
	[ "$failed" -eq 0 ]
	exit
}
