#!/bin/sh
# step: the log, the failure record, the one line, the summary.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common step

# field EXPRESSION: of the failure record r, by Python's json
field() {
	python3 -c 'import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
print(eval(sys.argv[2]))' "${record-results/pop22_failure.json}" "$1"
}
wait_for() {
	i=0
	until [ -s "$1" ] || [ $i -ge 200 ]; do sleep 0.05; i=$((i + 1)); done
}

for words in '' 'pop22' 'pop22 fetch' 'pop22 fetch --' 'pop22 fetch true' \
    'pop22 fetch true --' '-n x pop22 fetch -- true' '-s pop22' '-k x -s'; do
	# shellcheck disable=SC2086 # words
	run step $words
	exits 2 "called wrongly: step $words"
done
for id in '../v' 'a;touch x' '' "\$(id)" 'a b' .x -- "$(printf '%065d' 0)"; do
	run step -- "$id" fetch -- touch x
	exits 2 "id '$id' is refused"
done
run step pop22 '../fetch' -- touch x
exits 2 'a stage that is no word is refused'
is "$(ls)" '' 'and nothing was run or made'

# success: a line, a log, no record
run step -c count -n 12 pop22 fetch -- sh -c 'echo one; echo two >&2'
exits 0 'a step that is done'
prints '^pop22              1/12  fetch        0\.[0-9]s  ok$' 'its line'
is "$(wc -l <"$out" | tr -d ' ')$(cat "$err")" 1 'one line and no noise'
ok 'the log has a header' grep -Eq '^== fetch 20[0-9-]{8}T[0-9:]{8}\+0000 sh -c echo one; echo two >&2$' logs/pop22.log
is "$(sed 1d logs/pop22.log | sort | tr '\n' ,)" 'one,two,' 'the log has both outputs'
absent results 'no record'
is "$(cut -d' ' -f1-3 count)" 'pop22 fetch ok' 'the count file has the step'
run step -c count -n 12 pop22 compile -- sh -c 'echo x; echo current'
exits 0 'a step that had nothing to do'
prints '^pop22              2/12  compile      0\.[0-9]s  current$' 'is current'
run step pop22 x -- sh -c 'echo current; echo done'
prints '  ok$' 'only a last line makes it current'
run step pop22 x -- sh -c 'echo current >&2'
prints '  ok$' '... on standard output'
run step a.b-c_9 x -- true
prints '^a\.b-c_9           -  x ' 'without a count file there is no number'
run sh -c 'step pop22 x -- cat </dev/zero'
exits 0 'standard input is empty'

# failure: status, line, record
run step -c count -n 12 pop22 compile -- sh -c 'echo a; echo; echo "no space" >&2; exit 2'
exits 2 'status 2 stays 2'
says '^pop22              3/12  compile      0\.[0-9]s  failed \(2\): no space$' 'the failure line'
is "$(cat "$out")" '' 'goes to standard error'
is "$(field 'list(r)')" "['id', 'status', 'error', 'stage', 'exit_status', 'log_tail']" 'the record has the members of the contract'
is "$(field 'r["id"], r["status"], r["error"], r["stage"], r["exit_status"]')" \
    "('pop22', 'failed', 'no space', 'compile', 2)" 'and their values'
is "$(field 'sorted(r["log_tail"])')" "['', 'a', 'no space']" 'and the tail'
is "$(head -n 2 results/pop22_failure.json)$(tail -c 3 results/pop22_failure.json)" '{
  "id": "pop22",
}' '2-space indent, final newline'
for s in 1 111; do
	run step pop22 x -- sh -c "exit $s"
	exits $s "status $s stays"
done
for s in 3 99 126 255; do
	run step pop22 x -- sh -c "exit $s"
	exits 1 "status $s becomes 1"
	is "$(field 'r["exit_status"], r["error"]')" \
	    "($s, 'ended with status $s and said nothing')" '... and is recorded'
done
run step pop22 x -- sh -c 'echo working; kill -9 $$'
exits 1 'a command that is killed'
says 'failed \(137\): killed by signal 9: working$' 'and the signal'
is "$(field 'r["exit_status"], r["error"]')" "(137, 'killed by signal 9: working')" 'is recorded'
run step pop22 x -- no-such-command
exits 2 'a command that does not exist'
says '^pop22 .* failed \(2\): no-such-command: (No such file or directory|cannot be run)$' 'is named'
is "$(field 'r["exit_status"], r["error"].split(":")[0]')" "(2, 'no-such-command')" 'and recorded'
run step pop22 x -- sh -c 'exit 127'
exits 2 'so is one that says nothing but 127'
run step pop22 x -- sh -c nonesuch
exits 1 'a shell that says more is believed'

# a record goes only when its own stage succeeds
run step pop22 fetch -- true
is "$(field 'r["stage"]')" x "another stage's success keeps the record"
run step pop22 x -- false
run step other x -- true
is "$(field 'r["stage"]')" x "another model's success keeps the record"
run step pop22 x -- sh -c 'echo current'
absent results/pop22_failure.json 'its own stage removes it'
echo '{' >results/pop22_failure.json
run step pop22 x -- true
exits 2 'a spoilt record is said'
says 'results/pop22_failure.json: ' 'with its name'
rm results/pop22_failure.json

# tail: 20 lines, each at most 1000 bytes, strict UTF-8
run step pop22 x -- sh -c 'seq 1 50; exit 1'
is "$(field 'r["log_tail"] == [str(i) for i in range(31, 51)], r["error"]')" "(True, '50')" 'the last 20 lines'
python3 -c '
w = open("in", "wb").write
w(b"x" * 5000 + b"\n" + b"a\xff\xc3\x28\xed\xa0\x80\xf4\x90\x80\x80 \xf0\x9f\x91\x80\n")
w(b"\xc3\xa9" * 700 + b"\n" + b"nul\0 esc\x1b[31m tab\t\n" + b" 10%\r 99%\r100%\r\n")
w(b"cut \xf0\x9f\x91\nlast, no newline")'
run step pop22 x -- sh -c 'cat in; exit 1'
is "$(field 'r["log_tail"] == ["x" * 1000,
    "a\ufffd\ufffd(" + "\ufffd" * 7 + " \U0001f440", "\u00e9" * 500,
    "nul\ufffd esc\x1b[31m tab\t", "100%", "cut \ufffd\ufffd\ufffd",
    "last, no newline"]')" True 'lines are cut and cleaned'
says 'failed \(1\): last, no newline$' 'a last line without newline counts'
is "$(sed '1,/cat in; exit 1$/d' logs/pop22.log | head -c 5000 | tr -d x)" '' 'the log has what was said'
run step pop22 x -- printf '\033[31mred\001\n'
run step pop22 x -- sh -c 'printf "\033[31mred\n"; exit 1'
says ': \?\[31mred$' 'the line has no control characters'
run step pop22 x -- sh -c 'head -c 3000000 /dev/zero | tr "\0" y; exit 1'
exits 1 'one line of 3 MB'
is "$(field 'len(r["error"])')" 1000 'is cut'
is "$(sed '1,/tr "\\0" y; exit 1$/d' logs/pop22.log | tr -d '\n' | wc -c | tr -d ' ')" 3000000 'but all of it is in the log'

# a log over 1 MiB is put aside
run step pop22 x -- echo fresh
is "$(wc -l <logs/pop22.log | tr -d ' ')" 2 'a long log starts anew'
ok 'and the old one is kept' test "$(wc -c <logs/pop22.log.old)" -gt 3000000

# other folders; verbose
run step -l elsewhere/logs -r elsewhere/results pop22 x -- false
record=elsewhere/results/pop22_failure.json
is "$(field 'r["stage"]')$(wc -l <elsewhere/logs/pop22.log | tr -d ' ')" x1 'folders are made and used'
unset record
run step -v pop22 x -- sh -c 'echo one; echo two >&2'
is "$(sort "$err" | tr '\n' ,)" 'pop22: one,pop22: two,' '-v shows the output with the id'
run env MR_VERBOSE=1 step pop22 x -- echo one
is "$(cat "$err")" 'pop22: one' 'so does MR_VERBOSE=1'

# a grandchild that keeps the pipe does not hold the step up
start=$(date +%s)
run step pop22 x -- sh -c 'sleep 20 & echo $! >kid; echo ready'
later "$(cat kid)"
exits 0 'a background process keeps its pipe'
ok 'and is not waited for' test $(($(date +%s) - start)) -lt 10

# stopped: forwarded, waited for, no record, and we end by the signal
for sig in INT TERM HUP; do
	rm -f ready got
	# shellcheck disable=SC2016
	unignored step -c count.$sig pop22 x -- sh -c '
	trap "echo $0 >got; sleep 0.2; echo to reattach: x; exit 5" INT TERM HUP
	echo >ready; n=0; while [ $n -lt 200 ]; do sleep 0.05; n=$((n + 1)); done' $sig >"$out" 2>"$err" &
	p=$!
	wait_for ready
	kill -$sig $p
	wait $p 2>/dev/null
	status=$?
	is "$(kill -l $status 2>/dev/null || kill -l $((status - 128)))" $sig "SIG$sig ends it as the signal would"
	is "$(cat got)" "$sig" 'the child got it and was waited for'
	says '^pop22 .*stopped \(signal [0-9]+\): to reattach: x$' 'its last words are shown'
	absent results/pop22_failure.json 'no failure record'
	absent count.$sig 'and it does not count'
done

# many at once: numbers are each once, lines whole
n=0 fleet=
while [ $n -lt 30 ]; do
	step -c many -n 30 "m$n" fetch -- sh -c "exit $((n % 2))" >>lines 2>>lines & fleet="$fleet $!"
	n=$((n + 1))
done
for p in $fleet; do wait "$p"; done
is "$(grep -Ec '^m[0-9]+ +[0-9]+/30  fetch +[0-9.]+s  (ok|failed \(1\): ended with status 1 and said nothing)$' lines)" 30 'thirty at once: whole lines'
is "$(awk '{ print $2 }' lines | sort -n | uniq | wc -l | tr -d ' ')" 30 '... each with its number'
is "$(wc -l <many | tr -d ' ')" 30 '... and one line in the count file'

# on a terminal: a bar, erased before the next line
python3 - >"$out" <<'EOF'
import os, pty
pid, fd = pty.fork()
if pid == 0:
    os.execlp('sh', 'sh', '-c', 'step -c tty -n 4 a x -- true; step -c tty -n 4 b x -- false; step -s -c tty -n 4')
data = b''
try:
    while chunk := os.read(fd, 4096): data += chunk
except OSError:
    pass
os.waitpid(pid, 0)
print(data.decode().replace('\r', '<').replace('\x1b[K', '>'))
EOF
prints '<>\[\.{20}\] 0/4  0%<' 'a bar on a terminal'
prints '<>a  +1/4  x ' 'is erased before a line'
prints '<>\[#{5}\.{15}\] 1/4  25%' 'and drawn after it'
if grep -q 'failed.*\[#' "$out"; then fail 'no bar after a failure'
else pass 'no bar after a failure'; fi

# what cannot be written is status 2
run step -l /dev/null/x pop22 x -- touch ran
exits 2 'no folder for logs'
absent ran 'so nothing was run'
run step -r /dev/null/x pop22 x -- false
exits 2 'no folder for the record'
run step -c nowhere/count pop22 x -- true
exits 2 'no count file'
ln -s /dev/full logs/full.log
run step full x -- echo lost
exits 2 'a full log'
step pop22 x -- true >/dev/full 2>"$err"; status=$?
exits 2 'a lost line'

# the summary
rm -rf results count
run step -s -k 73
exits 0 'nothing to do'
is "$(cat "$out")" '73 current, nothing to do' 'one line'
run step -s
is "$(cat "$out")" 'nothing to do' 'not even models'
: >count
run step -s -c count -n 0 -k 2
is "$(cat "$out")" '2 current, nothing to do' 'an empty count file'
for m in a b c; do step -c count $m fetch -- true; done >/dev/null
step -c count a compile -- true >/dev/null
step -c count c compile -- echo current >/dev/null
step -c count d fetch -- echo current >/dev/null
run step -s -c count -n 6 -k 60
exits 0 'all done'
is "$(cat "$out")" '3 done, 61 current' 'done and current models'
step -c count b compile -- sh -c 'echo car is onroad; exit 111' 2>/dev/null
step -c count c ready -- sh -c 'echo bad digest; exit 1' 2>/dev/null
run step -s -c count -n 9 -k 60
exits 111 '111 is worse than 1'
is "$(cat "$out")" "1 done, 61 current, 2 failed, 1 step not tried
b                 compile   status 111  car is onroad  (logs/b.log)
c                 ready     status 1  bad digest  (logs/c.log)" 'each failure with its reason'
step -c count e fetch -- sh -c 'echo no space; exit 2' 2>/dev/null
step -c count f fetch -- sh -c 'kill -9 $$' 2>/dev/null
rm results/f_failure.json
run step -s -c count
exits 2 '2 is the worst'
prints '^f  +fetch     status 137  no failure record  ' 'a missing record is said'
step -c count e fetch -- true >/dev/null
step -c count f fetch -- true >/dev/null
run step -s -c count
exits 111 'a second try counts'
run step -c count g fetch -- sh -c 'printf "\033[1m\302\2331m\n"; exit 1'
says '  failed \(1\): \?\[1m\?\?1m$' 'no escape reaches the terminal'
run step -s -c count
prints '  status 1  \?\[1m\?\?1m  ' 'nor by the summary'
echo 'a b' >bad
run step -s -c bad
exits 2 'a spoilt count file'
says 'bad: line 1: wanted' 'is named with its line'
step -s -k 1 >/dev/full 2>"$err"; status=$?
exits 2 'a lost summary'
finished
