#!/bin/sh
# lock-run: one run at a time, and a name for who has it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common lock-run
host=$(uname -n)

# wait_for FILE: until it exists, ten seconds at most
wait_for() {
	i=0
	until [ -e "$1" ] || [ $i -ge 200 ]; do sleep 0.05; i=$((i + 1)); done
}

run lock-run
exits 2 'no operand'
run lock-run lock
exits 2 'no command'
run lock-run -w soon lock true
exits 2 '-w that is no number'

# the command's own status, standard streams and words
run lock-run lock sh -c 'exit 7'
exits 7 "the command's status"
run sh -c 'echo in | lock-run lock cat'
is "$(cat "$out")" in 'the command has the standard input'
run lock-run lock printf '%s\n' 'a  b' -x
is "$(cat "$out")" "$(printf 'a  b\n-x')" 'words arrive unchanged, options too'
run lock-run lock sh -c 'echo $$; cat lock'
is "$(sed -n 2p "$out")" "$host $(sed -n 1p "$out") sh -c echo \$\$; cat lock" \
    'the text is: host, pid of the command, command'
run lock-run lock sh -c "printf 'a
b' >/dev/null; cat lock"
is "$(wc -l <"$out" | tr -d ' ')" 1 'the text is one line'

# held
lock-run lock sh -c 'sleep 30 & echo $! >kid; wait' &
holder=$!
later $holder
wait_for kid
sleep 0.1
later "$(cat kid)"
run lock-run lock touch ran
exits 111 'held is status 111'
says "^lock-run: lock: held by $host, pid $holder, since [0-9-]{10} [0-9:]{8}: sh -c sleep 30 & echo" \
    'who holds it'
absent ran 'the command was not run'
run lock-run -w 1 lock touch ran
exits 111 'waiting ends'
says 'held by .*; waiting$' 'it says that it waits'
is "$(grep -c waiting "$err")" 1 '... once'
absent ran 'and the command was not run'
(lock-run -w 20 lock sh -c 'echo mine >ran' 2>waited; echo $? >rc) &
waiter=$!
wait_for waited
sleep 0.3
# its sleep has inherited the lock: the whole run must be over
kill $holder
sleep 0.3
absent ran 'a process of the killed run keeps the lock'
run lock-run lock true
exits 111 'also for others'
says "pid $holder \(ended, but a child of it lives on\)" 'and they are told so'
kill "$(cat kid)"
wait $waiter
is "$(cat rc) $(cat ran)" '0 mine' 'the waiter runs when the lock is free'

# only the kernel's lock counts
printf 'otherhost 1 make all\n' >stale
run lock-run stale true
exits 0 'a stale text locks nobody out'
printf 'garbage' >stale
run lock-run stale cat stale
is "$(cut -d' ' -f1 "$out")" "$host" 'and is replaced'
: >silent
python3 -c '
import fcntl, os, sys, time
f = open("silent"); fcntl.flock(f, fcntl.LOCK_EX)
open("silent.held", "w"); time.sleep(30)' &
later $!
wait_for silent.held
run lock-run silent true
exits 111 "another program's flock holds as well"
says 'silent: held by a process that left no name' 'though it has no name'
printf '\033[31mx 12 y\n' >silent
run lock-run silent true
says 'held by \?\[31mx, pid 12,' 'no text paints the terminal'

# forty runs at once: never two together
cat >one.sh <<'EOS'
mkdir busy || { echo two >>"$0.bad"; exit 1; }
rmdir busy
EOS
n=0 fleet=
while [ $n -lt 40 ]; do
	lock-run -w 60 many sh one.sh 2>/dev/null & fleet="$fleet $!"
	n=$((n + 1))
done
good=0
for p in $fleet; do wait "$p" && good=$((good + 1)); done
is "$good" 40 'forty at once all run'
absent one.sh.bad 'never two together'

# a lock file that was removed while it was held
lock-run gone sh -c ': >gone.held; sleep 2' &
wait_for gone.held
rm gone
run lock-run gone true
exits 0 'a removed lock file is a new lock'

run lock-run nowhere/lock true
exits 2 'a missing folder'
says 'nowhere/lock: its folder does not exist' 'is named'
absent nowhere 'and not made'
run lock-run . true
exits 2 'a folder is no lock'
run lock-run lock no-such-command
exits 2 'a command that does not exist'
says 'no-such-command' 'is named'
run lock-run -w 60 lock true
exits 0 'and leaves the lock free'
: >plain
run lock-run lock ./plain
exits 2 'a command that cannot be run'
finished
