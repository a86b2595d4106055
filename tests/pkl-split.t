#!/bin/sh
# pkl-split: the same set as the Python pipeline's, replaced as one unit.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common pkl-split
oracle=$here/pkl-split.py

# bytes N FILE: a file of so many pseudo-random bytes
bytes() { python3 -c 'import random, sys
open(sys.argv[2], "wb").write(random.Random(int(sys.argv[1])).randbytes(int(sys.argv[1])))' "$1" "$2"; }
# equal TEXT: folders got and want hold the same names and bytes
equal() {
	if diff -r got want >"$out" 2>&1; then pass "$1"
	else fail "$1" "$(cat "$out")"; fi
}
# names DIR: what is in it, hidden files too, on one line
names() { (cd "$1" && find . ! -name . | sed 's|^\./||' | sort | tr '\n' ' '); }
fresh() { rm -rf got want; mkdir got; }

bytes 5000 x.pkl
for words in '' 'x.pkl' '-o .' '-o . x.pkl y.pkl' '-r results -o . x.pkl' \
    '-i pop22 -o . x.pkl' '-l 0 -o . x.pkl' '-z 0 -o . x.pkl' \
    '-l -1 -o . x.pkl' '-l 1e9 -o . x.pkl' '-z 1K -o . x.pkl' \
    '-l 1000 -z 1001 -o . x.pkl'; do
	# shellcheck disable=SC2086 # words
	run pkl-split $words
	exits 2 "called wrongly: pkl-split $words"
done
for name in ../x .x ._x.pkl a/b '' x.pkl.sha256 x.pkl.p00 x.p123 'a\b' "$(printf 'a\nb')"; do
	run pkl-split -n "$name" -o . x.pkl
	exits 2 "name '$(printf %s "$name" | tr '\n' '?')' is refused"
done
for id in ../v 'a b' ''; do
	run pkl-split -r . -i "$id" -o . x.pkl
	exits 2 "id '$id' is refused"
done
run pkl-split -o . nothing.pkl
exits 2 'a missing file'
says '^pkl-split: nothing.pkl: No such file' 'is named'
run pkl-split -o nowhere x.pkl
exits 2 'a missing folder'
says '^pkl-split: nowhere: No such file' 'is named'
absent nowhere 'and not made'
run pkl-split -o x.pkl x.pkl
exits 2 'a file in place of the folder'
run pkl-split -n y -o . .
exits 2 'a folder in place of the file'
mkfifo fifo.pkl
run pkl-split -o . fifo.pkl
exits 2 'a FIFO is refused'
is "$(ls)" 'fifo.pkl
x.pkl' 'nothing was made'

# the same as Python's at every edge
for size in 1 599 600 999 1000 1001 1200 1201 1800 59999 60000; do
	fresh
	bytes $size x.pkl
	run pkl-split -l 1000 -z 600 -o got x.pkl
	exits 0 "$size bytes"
	is "$(cat "$out" "$err")" '' 'no noise'
	python3 "$oracle" set x.pkl x.pkl want 1000 600
	equal "$size bytes: as Python writes it"
done
for size in 1 600 601; do
	fresh
	bytes $size x.pkl
	run pkl-split -f -l 1000 -z 600 -n other.pkl -o got x.pkl
	python3 "$oracle" set x.pkl other.pkl want 1000 600 force
	equal "$size bytes, forced and renamed: as Python writes it"
done
ok 'sha256sum accepts the joined parts' sh -c \
    'cat got/other.pkl.p0? >other.pkl && sha256sum -c got/other.pkl.sha256'
# parts of 95 MiB, with the defaults: the file that GitHub refused
fresh
bytes 104400000 big.pkl
run pkl-split -o got big.pkl
exits 0 '104,400,000 bytes'
python3 "$oracle" set big.pkl big.pkl want 100000000 99614720
equal '104,400,000 bytes: as Python writes it'
rm -r big.pkl got want

# refused before anything is written
fresh
for size in 60001 600001; do
	bytes $size x.pkl
	run pkl-split -l 1000 -z 600 -o got x.pkl
	exits 1 "$size bytes: more than 100 parts"
	fit=$(sed -n 's/.*: -z \([0-9]*\) would fit$/\1/p' "$err")
	is "$(((size + fit - 1) / fit)) $(((size + fit - 2) / (fit - 1)))" '100 101' 'the size that would fit is the smallest'
	is "$(ls -A got)" '' 'nothing was written'
done
: >empty.pkl
run pkl-split -o got empty.pkl
exits 1 'an empty artifact'
says '^pkl-split: empty.pkl: empty' 'is named'
truncate -s $(($(df -Pk . | awk 'NR == 2 { print $4 }') * 1024 + 2000000000)) huge.pkl
run pkl-split -l 9000000000000000 -o got huge.pkl
exits 2 'no space'
says '^pkl-split: got: [0-9]+ bytes are free, wanted [0-9]+$' 'is asked first'
rm huge.pkl
bytes 200000 x.pkl
# shellcheck disable=SC3045 # dash and bash have ulimit -f
run sh -c "trap '' XFSZ; ulimit -f 100; pkl-split -l 100 -z 100 -f -o got x.pkl; pkl-split -o got x.pkl"
exits 2 'a write that fails'
says 'x.pkl to got/x.pkl: File too large' 'is named'
is "$(ls -A got)" '' 'nothing is left'

# a set is replaced as one unit
fresh
bytes 3000 old; bytes 1500 new; bytes 700 small
run pkl-split -l 1000 -z 600 -n x.pkl -o got old
: >got/x.pkl.p07; : >got/x.pkl.p99; : >got/x.pkl.p100; : >got/.x.pkl.p03.tmp; : >got/.x.pkl.tmp
: >got/x.pkl.p0; : >got/x.pkl.px1; : >got/y.pkl.p09; : >got/x.pkl.p01.bak
run pkl-split -l 1000 -z 600 -n x.pkl -o got new
python3 "$oracle" set new x.pkl want 1000 600
: >want/x.pkl.p0; : >want/x.pkl.px1; : >want/y.pkl.p09; : >want/x.pkl.p01.bak
equal 'stale higher parts go, other files stay'
run pkl-split -l 1000 -z 600 -n x.pkl -o got small
rm want/x.pkl.p0? want/x.pkl.sha256
cp small want/x.pkl
: >want/x.pkl.p01.bak; : >want/x.pkl.p0; : >want/x.pkl.px1
equal 'a whole file replaces a set'
run pkl-split -l 1000 -z 600 -n x.pkl -o got new
rm want/x.pkl
python3 "$oracle" set new x.pkl want 1000 600
equal 'and a set a whole file'
# beside the file itself, as the device compiler does
mkdir side
cp new side/x.pkl
run pkl-split -l 1000 -z 600 -o side side/x.pkl
exits 0 'a set beside its own file'
is "$(names side)" 'x.pkl x.pkl.p00 x.pkl.p01 x.pkl.p02 x.pkl.sha256 ' 'keeps the file'
same new side/x.pkl 'and its bytes'
run pkl-split -o side side/x.pkl
exits 0 'and below the limit'
is "$(names side)" 'x.pkl ' 'only the file stays'
same new side/x.pkl 'with its bytes'
ok 'killed at every change: old set, new set, or no marker; a rerun repairs' \
    python3 "$oracle" kill

# changes while it is read, each until one was seen
python3 - >"$out" 2>&1 <<'EOP'
import os, subprocess
size = 64 << 20
def append(i):
    with open("live", "ab") as f: f.write(b"x")
def rewrite(i):   # with the old date put back
    t = os.stat("live").st_mtime_ns
    with open("live", "r+b") as f: f.seek(i % size); f.write(b"y")
    os.utime("live", ns=(t, t))
def replace(i):
    with open("live.new", "wb") as f: f.truncate(size)
    os.rename("live.new", "live")
def shorten(i):
    os.truncate("live", size - 1 - i)
for change in append, rewrite, replace, shorten:
    with open("live", "wb") as f: f.truncate(size)
    p = subprocess.Popen(["pkl-split", "-n", "live.pkl", "-o", "got", "live"], stderr=subprocess.PIPE)
    i = 0
    while p.poll() is None:
        change(i); i += 1
    print(change.__name__, p.returncode, p.stderr.read().decode().strip())
EOP
for change in append rewrite replace shorten; do
	is "$(grep "^$change" "$out")" "$change 1 pkl-split: live: changed while it was read" "a file that changes ($change) is refused"
done
absent got/live.pkl 'and nothing is written'
case $(names got) in
*live*) fail 'and nothing left' "$(names got)" ;;
*) pass 'and nothing left' ;;
esac

# two at once: one set or the other
n=0
while [ $n -lt 10 ]; do
	pkl-split -l 1000 -z 600 -n r.pkl -o got old & a=$!
	pkl-split -l 1000 -z 600 -n r.pkl -o got new & b=$!
	wait $a && wait $b && cat got/r.pkl.p?? >joined
	find got -name '.r.pkl*' >>left
	sum joined | grep -qx "$(cut -c1-64 got/r.pkl.sha256)" || echo "round $n" >>bad
	n=$((n + 1))
done
absent bad 'two at once end with one whole set'
is "$(cat left)" '' '... and no temporary file'

# the pipeline's form
mkdir ready results compiled
# record ID FILE [MEMBERS]
record() {
	printf '{\n  "id": "%s",\n  "status": "compiled",\n  "path": "%s",\n  "size": %s,\n  "sha256": "%s",\n  "multipart": false,\n  "x": {"y": [1]}%s\n}\n' \
	    "$1" "$2" "$(wc -c <"$2" | tr -d ' ')" "$(sum "$2")" "${3-}" >"results/$1_artifact.json"
}
field() { python3 -c 'import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))
print(eval(sys.argv[2]))' "$1" "$2"; }
a=results/pop22_artifact.json
split() { run pkl-split -l 1000 -z 600 -r results -i "$1" -o ready "compiled/$1.pkl"; }

cp new compiled/pop22.pkl
split pop22
exits 1 'no record'
says 'pop22_artifact.json: .*: make compiled/pop22.pkl$' 'says what to make'
record pop22 compiled/pop22.pkl ', "ready": {"name": "old"}'
split pop22
exits 0 'the pipeline form'
n=pop22_driving_tinygrad.pkl
is "$(field $a 'r["ready"]["name"], r["multipart"], r["x"]')" "('$n', True, {'y': [1]})" 'the record says ready, other members stay'
is "$(field $a 'r["ready"]["parts"]')" "[{'name': '$n.p00', 'size': 600}, {'name': '$n.p01', 'size': 600}, {'name': '$n.p02', 'size': 300}]" 'with its parts'
is "$(field $a 'r["ready"]["key_lines"]')" "['artifact=$(sum new)', 'limit=1000', 'part=600']" 'and what it was made from'
is "$(field $a 'r["ready"]["key"]')" "$(printf 'artifact=%s\nlimit=1000\npart=600\n' "$(sum new)" | sha256sum | cut -c1-64)" 'the key is the digest of the lines'
is "$(field ready/multipart.json r)" "[{'id': 'pop22', 'filename': '$n', 'size': 1500, 'sha256': '$(sum new)', 'parts': ['$n.p00', '$n.p01', '$n.p02']}]" 'multipart.json'
for id in zz Ab a0; do cp old compiled/$id.pkl; record $id compiled/$id.pkl; split $id; done
is "$(field ready/multipart.json '[e["id"] for e in r]')" "['Ab', 'a0', 'pop22', 'zz']" 'in the order of ids'
before=$(cat $a ready/multipart.json; ls ready)
cp old compiled/pop22.pkl
split pop22
exits 1 'a file of another size than its record'
says '^pkl-split: compiled/pop22.pkl: 3000 bytes, its record says 1500: make force/pop22$' 'both are said'
{ head -c 1499 new; printf '!'; } >compiled/pop22.pkl
split pop22
exits 1 'a file of another digest than its record'
says "^pkl-split: compiled/pop22.pkl: sha256 is $(sum compiled/pop22.pkl), its record says $(sum new): make force/pop22$" 'both are said'
is "$(cat $a ready/multipart.json; ls ready)" "$before" 'nothing was replaced'
same ready/$n.sha256 - 'not even the marker' <<EOF
$(sum new)  $n
EOF
cp small compiled/pop22.pkl
record pop22 compiled/pop22.pkl
split pop22
exits 0 'a whole one'
is "$(field $a 'r["ready"]["parts"], r["multipart"]')" '([], False)' 'has no parts'
is "$(field ready/multipart.json '[e["id"] for e in r]')" "['Ab', 'a0', 'zz']" 'and leaves multipart.json'
for id in zz Ab a0; do cp small compiled/$id.pkl; record $id compiled/$id.pkl; split $id; done
is "$(cat ready/multipart.json)" '[]' 'an empty list is []'
is "$(names ready)" 'Ab_driving_tinygrad.pkl a0_driving_tinygrad.pkl multipart.json pop22_driving_tinygrad.pkl zz_driving_tinygrad.pkl ' 'no other file is there'
n=0 fleet=
while [ $n -lt 12 ]; do
	cp old compiled/m$n.pkl; record m$n compiled/m$n.pkl
	pkl-split -l 1000 -z 600 -r results -i m$n -o ready compiled/m$n.pkl >/dev/null & fleet="$fleet $!"
	n=$((n + 1))
done
for p in $fleet; do wait "$p"; done
is "$(field ready/multipart.json 'len(r)')" 12 'twelve at once are all listed'
for bad in '{}' '[' 'null'; do
	printf '%s' "$bad" >ready/multipart.json
	split pop22
	exits 2 "multipart.json that is $bad"
	says 'ready/multipart.json' 'is named'
	is "$(cat ready/multipart.json)" "$bad" 'and left alone'
done
rm ready/multipart.json
for bad in '' '{' '[]' '{"sha256": 1}' '{"sha256": "abc", "size": 700}' \
    "{\"sha256\": \"$(sum small)\"}"; do
	printf '%s' "$bad" >$a
	split pop22
	exits 1 "a record that is '$bad'"
	is "$(cat $a)" "$bad" 'is left alone'
done
record pop22 compiled/pop22.pkl
pkl-split -r results -i pop22 -o ready compiled/pop22.pkl >/dev/full 2>"$err"; status=$?
exits 2 'a lost message'
finished
