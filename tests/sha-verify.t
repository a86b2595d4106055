#!/bin/sh
# sha-verify: sha256sum's lists, its names and its verdicts.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common sha-verify

run sha-verify a b
exits 2 'two lists'
run sha-verify nothing
exits 2 'a missing list'
says '^sha-verify: nothing: No such file' 'is named'
run sha-verify .
exits 2 'a folder for a list'
run sha-verify /dev/null
exits 0 'an empty list'
is "$(cat "$out" "$err")" '' 'says nothing'

printf a >a; printf bb >b; : >c
nl=$(printf 'new\nline') cr=$(printf 'c\rr')
echo 1 >"$nl"; echo 2 >"$cr"; echo 3 >'back\slash'; echo 4 >' lead'
echo 5 >'*star'; echo 6 >'ünï'; echo 7 >'-dash'; echo 8 >'# hash'
run sh -c 'sha256sum a b c >list && sha-verify -q list'
exits 0 'sha256sum -> sha-verify -q'
is "$(cat "$out" "$err")" '' 'prints nothing'
run sha-verify list
is "$(cat "$out")" "$(printf 'a\nb\nc')" 'paths in the order of the list'
run sh -c 'sha-verify <list'
is "$(cat "$out")" "$(printf 'a\nb\nc')" '... and from standard input'
run sh -c 'tac list | sha-verify'
is "$(cat "$out")" "$(printf 'c\nb\na')" 'whatever that is'
for mode in -t -b; do
	sha256sum $mode -- a "$nl" "$cr" 'back\slash' ' lead' '*star' 'ünï' '-dash' '# hash' >list
	run sha-verify list
	exits 0 "every odd name, sha256sum $mode"
	is "$(cat "$out")" "$(sed -E 's/^(\\?)[0-9a-f]{64} [ *]/\1/' list)" 'printed as sha256sum wrote them'
done
tr a-f A-F <list | sed 's/  .*//; s/ \*.*//' | head -n 1 | tr -d '\n' >upper
echo '  a' >>upper
run sha-verify upper
exits 0 'upper-case hex digits'
printf '# a comment\n%s  a' "$(sum a)" >list
run sha-verify list
exits 0 'a comment, and no newline at the end'

# what does not hold
sha256sum a b c >list
printf ab >a; rm b
run sha-verify list
exits 1 'a changed and a missing file'
is "$(cat "$out")" c 'the one that holds is printed'
is "$(cat "$err")" "sha-verify: a: sha256 is $(python3 -c 'import hashlib; print(hashlib.sha256(b"ab").hexdigest())'), wanted $(python3 -c 'import hashlib; print(hashlib.sha256(b"a").hexdigest())')
sha-verify: b: missing" 'the others are said, in order'
run sha-verify -q list
exits 1 '-q'
is "$(cat "$out")$(wc -l <"$err" | tr -d ' ')" 2 'is silent only of what holds'
mkfifo fifo; ln -s nowhere link; ln -s loop loop
for p in . fifo link loop a/b; do echo "$(sum c)  $p" >list; run sha-verify list; exits 1 "'$p' is no file that holds"; done
printf '%s  %s\n' "$(sum c)" "$nl" | sed 's/^/\\/; N; s/\n/\\n/' >list
run sha-verify list
exits 1 'a changed file with a newline'
says '^sha-verify: \\new\\nline: sha256 is ' 'is one line in a message'
if [ "$(id -u)" -ne 0 ]; then
	chmod 0 c; run sha-verify list; chmod 644 c
fi

# malformed lines are named; the rest is still verified
h=$(sum c)
cat >list <<EOF

$(printf ' ')
$h
$h$(printf '  ')
$h c
$h	c
${h%?}  c
${h}0  c
g${h#?}  c
\\$h  a\\tb
\\$h  a\\
SHA256 (c) = $h
d41d8cd98f00b204e9800998ecf8427e  c
EOF
# every prefix of a line that is shorter than digest, blanks and a letter
n=1
while [ $n -le 66 ]; do printf '%s  c' "$h" | head -c $n; echo; n=$((n + 1)); done >>list
run sha-verify list
exits 2 'malformed lines'
is "$(sed 's/^sha-verify: list: line \([0-9]*\): wanted 64 hex digits.*/\1/' "$err")" "$(seq 1 79)" 'are all said, with their numbers'
printf '%s  c\0d\n' "$h" >one
run sha-verify one
exits 2 'a NUL'
printf '%s  c\nbad\n%s  c\n%s  b\nworse\n' "$h" "$h" "$h" >list
run sha-verify list
exits 2 'of several the worst counts'
is "$(cat "$out")" "$(printf 'c\nc')" 'other lines are verified'
is "$(grep -c ': line [25]: ' "$err") $(grep -c 'b: missing' "$err")" '2 1' 'each is said'

# many, with sha256sum as the judge
python3 -c '
import os, random
r = random.Random(1)
os.mkdir("many")
for i in range(500):
    with open(f"many/{i}", "wb") as f: f.write(r.randbytes(r.choice([0, 1, 55, 64, 1000, 131072, 131073, 300000])))'
sha256sum many/* >list
run sha-verify list
exits 0 '500 files'
is "$(cat "$out")" "$(cut -c67- list)" 'all hold, in order'
for n in 3 77 499; do printf x >>"many/$n"; done
rm many/100
run sha-verify list
exits 1 'four spoilt'
is "$(cat "$out")" "$(LC_ALL=C sha256sum -c list 2>/dev/null | sed -n 's/: OK$//p')" 'sha256sum agrees on the rest'
head -n 1 list >one
for n in 1 63 64 65 66; do
	head -c $n one >part
	run sha-verify part
	exits 2 "a list that ends after $n bytes"
done
sha-verify one >/dev/full 2>"$err"; status=$?
exits 2 'a lost answer'

# a path that is not there stands for its parts, as pkl-split makes them
mkdir set && cd set || exit 2
head -c 2500 /dev/urandom >whole
pkl-split -f -z 1000 -o . whole
rm whole
run sha-verify whole.sha256
exits 0 'a set holds by its own .sha256'
is "$(cat "$out")" whole 'under the name of the whole'
printf X | dd of=whole.p01 bs=1 seek=7 conv=notrunc 2>/dev/null
run sha-verify -q whole.sha256
exits 1 'a byte of a part'
says 'whole: sha256 is .*, wanted' 'changes its digest'
rm whole.p00
run sha-verify whole.sha256
exits 1 'a set without its first part'
says 'whole: missing' 'is missing'
cd .. || exit 2
finished
