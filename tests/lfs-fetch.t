#!/bin/sh
# lfs-fetch: forms, stores, a real LFS server, kills, two at once, the bar.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lfs.sh
. "$here/lfs.sh"
common lfs-fetch

# usage
for bad in '-i -o x' '-t 0' '-t x' '-w 0' 'file' '-o'; do
	# shellcheck disable=SC2086
	run lfs-fetch $bad </dev/null
	exits 2 "lfs-fetch $bad: status 2"
done
says '^usage: lfs-fetch|requires an argument' 'the usage is on stderr'

serve srv
oid=$(object 3000000)
oid2=$(object 70000)
pointer "$oid" >p
pointer "$oid2" >p2
# one ARGS...: fetches the first object over the good endpoint
one() { run lfs-fetch -S store -H 127.0.0.1 -e "$url/ok" "$@" <p; }

# ---- the filter, -o, and no noise ----
one; exits 0 'a pointer gives the bytes'
same "$out" "srv/$oid" 'they are the object'
is "$(cat "$err")" '' 'no noise'
same "$(stored "$oid")" "srv/$oid" 'it is in the store'
is "$(find store/incomplete -type f)" '' 'nothing is left beside'
is "$(gets GET)" 1 'one download'
one -o got; exits 0 '-o'
same got "srv/$oid" '-o: the object'
is "$(gets GET)" 1 'from the store, no second download'
is "$(stat -c %h got)" 1 'not a hard link: the store is not exposed'
(echo first; lfs-fetch -S store <p; echo last) >several 2>"$err"
{ echo first; cat "srv/$oid"; echo last; } >wanted
same several wanted 'between other output'
run lfs-fetch -S store -o got <srv/"$oid2"; exits 0 'plain content with -o'
same got "srv/$oid2" 'passes unchanged'
: >empty
run lfs-fetch <empty; exits 0 'an empty blob is the empty object'
is "$(wc -c <"$out" | tr -d ' ')" 0 'and gives nothing'

# ---- lost writes ----
lfs-fetch -S store <p >/dev/full 2>"$err"; status=$?
exits 2 'a full output is status 2'
lfs-fetch -S store <p >&- 2>"$err"; status=$?
exits 2 'a closed output is status 2'
lfs-fetch <srv/"$oid2" >/dev/full 2>"$err"; status=$?
exits 2 'plain content: a full output is status 2'
run lfs-fetch -S store -o nowhere/x <p; exits 2 'no such folder: status 2'
mkfifo fifo
for o in fifo store store/ ''; do
	run lfs-fetch -S store -o "$o" <p
	exits 2 "-o '$o': no regular file, status 2"
done
ok 'what was there is still there' test -p fifo
run lfs-fetch -S '' <p; exits 2 'a store without a name: status 2'
run lfs-fetch -S nostore -H 127.0.0.1 -e "$url/ok" -o nowhere/x <p
exits 2 'no such folder: status 2 before a download'
absent nostore 'and nothing is stored'
rm -rf store
# bytes, in blocks of 512: about a megabyte
(ulimit -f 2000; exec lfs-fetch -S store -H 127.0.0.1 -e "$url/ok" -o got2 <p 2>"$err")
status=$?
exits 2 'a disk that fills up half-way is status 2'
says "^lfs-fetch: $oid got2: File too large" 'and says so'
absent got2 'nothing under the final name'
one -o got2; exits 0 'the next run goes on'
is "$(tail -n 1 srv/log | grep -c 'range=bytes=')" 1 'from where it was'
same got2 "srv/$oid" 'the object is whole'
sed 's/^size .*/size 8000000000000000000/' p >huge
run lfs-fetch -S huge-store -H 127.0.0.1 -e "$url/ok" -o got3 <huge
exits 2 'no space: status 2'
says 'bytes are free, wanted [0-9]{19}' 'free and wanted bytes are said'
absent huge-store 'nothing was written'

# ---- stores ----
mkdir -p "alt/$(dirname "$(stored "$oid" .)")"
cp "srv/$oid" "$(stored "$oid" alt)"
rm -rf store
: >srv/log
run lfs-fetch -S store -S alt <p; exits 0 'a second store is read'
same "$out" "srv/$oid" 'the object comes from it'
absent store 'and nothing is written'
printf x | dd of="$(stored "$oid" alt)" bs=1 seek=99 conv=notrunc 2>/dev/null
run lfs-fetch -S store -S alt -H 127.0.0.1 -e "$url/ok" <p
exits 0 'a corrupt copy in another store'
says "^lfs-fetch: $oid: the copy in the store is corrupt: alt/" 'is named'
same "$out" "srv/$oid" 'and fetched again'
ok 'it stays where it is' test -f "$(stored "$oid" alt)"
printf x | dd of="$(stored "$oid")" bs=1 seek=99 conv=notrunc 2>/dev/null
one; exits 0 'a corrupt copy in the own store'
says "is corrupt, moved to store/incomplete/$oid.bad" 'is moved aside'
same "$(stored "$oid")" "srv/$oid" 'and fetched again'
ok 'the bad one is kept' test -f "store/incomplete/$oid.bad"
head -c 99 "srv/$oid" >"$(stored "$oid")"
one; exits 0 'a truncated copy'
same "$(stored "$oid")" "srv/$oid" 'is fetched again'
run lfs-fetch -S empty-store <p; exits 1 'in no store, no endpoint: status 1'
says "^lfs-fetch: $oid: it is in no store, and no endpoint was named" 'said so'

# what an earlier run left: too long, whole, whole and wrong
rm -f "$(stored "$oid")"
cat "srv/$oid" p >"store/incomplete/$oid.part"
one -o got; exits 0 'a part that is too long'
same got "srv/$oid" 'is begun anew'
rm -f "$(stored "$oid")"
cp "srv/$oid" "store/incomplete/$oid.part"
run lfs-fetch -S store <p; exits 0 'a whole part needs no network'
same "$(stored "$oid")" "srv/$oid" 'and becomes the object'
rm -f "$(stored "$oid")"
tr '\0-\377' '\1-\377\0' <"srv/$oid" >"store/incomplete/$oid.part"
one -o got; exits 0 'a whole part with other bytes'
same got "srv/$oid" 'is begun anew'
rm -f "$(stored "$oid")"
head -c 1000000 /dev/zero >"store/incomplete/$oid.part"
one -o got; exits 0 'a part with other bytes'
same got "srv/$oid" 'is begun anew, once it is seen'

# without a store
run lfs-fetch -H 127.0.0.1 -e "$url/ok" <p; exits 0 'no store'
same "$out" "srv/$oid" 'no store: the object on stdout'
run lfs-fetch -H 127.0.0.1 -e "$url/ok" -o got4 <p; exits 0 'no store, -o'
same got4 "srv/$oid" 'no store, -o: the object'
run lfs-fetch -H 127.0.0.1 -e "$url/cut" -o got5 <p; exits 0 'no store, cut'
same got5 "srv/$oid" 'no store, cut: resumed within the run'
run lfs-fetch -H 127.0.0.1 -e "$url/wrong" -o got6 <p; exits 1 'no store, wrong bytes'
absent got6 'nothing under the final name'
ok 'the body is kept beside it' test -f got6.bad

# ---- many ----
: >list
i=0
while [ $i -lt 12 ]; do
	echo "$(object 20000) 20000 many/o $i" >>list
	i=$((i + 1))
done
mkdir many
sed 's,many/,many/again ,;3q' list >again
cat again >>list
rm -rf store; : >srv/log
run lfs-fetch -i -S store -H 127.0.0.1 -e "$url/ok" <list
exits 0 '-i: many'
is "$(gets POST)" 1 'one batch call'
is "$(gets GET)" 12 'each object once'
sed 's/ [0-9]* /  /' list | sha256sum -c --quiet >"$err" 2>&1
is "$?" 0 '-i: each is at its path'
rm -rf store many; mkdir many
run lfs-fetch -i -H 127.0.0.1 -e "$url/ok" <list
exits 0 '-i: many, no store'
sed 's/ [0-9]* /  /' list | sha256sum -c --quiet >"$err" 2>&1
is "$?" 0 '-i: each is at its path, no store'
rm -rf store many; mkdir many; : >srv/log
run lfs-fetch -i -S store -H 127.0.0.1 -e "$url/too-many" <list
exits 0 '413: fewer objects in a call'
is "$(find many -type f | wc -l | tr -d ' ')" 15 'all come'
rm -rf store many; mkdir many
lost1=$(printf a | sha256sum | cut -c1-64)
lost2=$(printf b | sha256sum | cut -c1-64)
{ echo "$lost1 1 many/lost 1"; cat list; echo "$lost2 1 many/lost 2"; } >list2
run lfs-fetch -i -S store -H 127.0.0.1 -e "$url/ok" <list2
exits 1 '-i: two of many are lost: status 1'
is "$(find many -type f | wc -l | tr -d ' ')" 15 'the others still come'
is "$(wc -l <"$err" | tr -d ' ')" 2 'the lost are listed once'
says "^lfs-fetch: $lost2 many/lost 2: lost at 127.0.0.1:$port \(404: no such object\)" \
    'with oid, path, host and status'
run lfs-fetch -i </dev/null; exits 0 'an empty list is done'

# lists that are wrong are refused before anything is asked
: >srv/log
x64=$(printf '%064d' 0)
while IFS='|' read -r line why; do
	printf '%b\n' "$line" >bad
	run lfs-fetch -i -S bad-store -H 127.0.0.1 -e "$url/ok" <bad
	exits 1 "a list with $why: status 1"
	says '^lfs-fetch: line 1: |named twice|two sizes' "a list with $why: said"
done <<EOF
|an empty line
$oid|an oid alone
$oid 5|no path
$oid 5 |an empty path
../../../../tmp/x 5 out|a path for an oid
$x64 -5 out|a negative size
$x64 05 out|a leading zero
$x64 99999999999999999999 out|a size beyond 2^63
${x64}0 5 out|an oid of 65 digits
$oid 3000000 a\\0b|a NUL
$oid 3000000 a\\n$oid2 70000 a|a path named twice
$oid 3000000 a\\n$oid 3000001 b|an oid with two sizes
EOF
is "$(cat srv/log)" '' 'and nothing was asked'
absent bad-store 'and nothing was stored'

# ---- a real LFS server, filled by git-lfs itself ----
if "$VENV/bin/python3" -c 'import giftless' 2>/dev/null; then
	mkdir real
	"$VENV/bin/python3" "$here/giftless-server.py" real 2>real/err &
	later $!
	await real/port
	end=http://127.0.0.1:$(cat real/port)/o/r.git/info/lfs
	git init -q work && cd work || exit 2
	git config user.name t && git config user.email t@localhost
	git config lfs.url "$end" && git config lfs.locksverify false
	git remote add origin ../bare && git init -q --bare ../bare
	git lfs install --local >/dev/null
	git lfs track '*.onnx' >/dev/null
	head -c 5000000 /dev/urandom >a.onnx
	head -c 100 /dev/urandom >b.onnx
	git add . && git commit -q -m models
	ok 'git-lfs pushes to the server' git lfs push origin HEAD
	cd ..
	git -C work cat-file blob HEAD:a.onnx >pa
	git -C work cat-file blob HEAD:b.onnx >pb
	run lfs-fetch -S real-store -H 127.0.0.1 -e "$end" <pa
	exits 0 'from a real server'
	same "$out" work/a.onnx 'the object'
	run lfs-fetch -S real-store -H 127.0.0.1 -e "$end" -o b <pb
	exits 0 'from a real server, -o'
	same b work/b.onnx 'the object'
	run lfs-fetch -S real-store -H 127.0.0.1 -e "$end" <p2
	exits 1 'a real server that has it not: status 1'
	says 'lost at 127\.0\.0\.1:[0-9]+ \(404' 'and says so'
	# git-lfs reads what we stored, without a network
	git clone -q --no-checkout work clone 2>/dev/null
	git -C clone config lfs.url http://127.0.0.1:1/
	mkdir -p clone/.git/lfs && cp -R real-store/objects clone/.git/lfs/
	git -C clone lfs smudge <pa >smudged 2>"$err"
	same smudged work/a.onnx 'git-lfs takes our store as its own'
else
	fail 'giftless is there' "no giftless in $VENV: make deps"
fi

# ---- killed at any time, two at once ----
big=$(object 8000000)
pointer "$big" >pbig
# grown STORE: until the part in it has bytes
grown() {
	n=0
	while [ ! -s "$1/incomplete/$big.part" ] && [ $n -lt 600 ]; do
		sleep 0.05; n=$((n + 1))
	done
}
for d in 0.02 0.4 grown; do
	rm -rf kill; rm -f kgot
	lfs-fetch -S kill -H 127.0.0.1 -e "$url/slow" -o kgot <pbig & k=$!
	if [ $d = grown ]; then grown kill; else sleep $d; fi
	kill -9 $k; wait $k 2>/dev/null
	absent kgot "killed ($d): nothing under the final name"
	: >srv/log
	run lfs-fetch -S kill -H 127.0.0.1 -e "$url/ok" -o kgot <pbig
	exits 0 "killed ($d): the next run ends well"
	same kgot "srv/$big" "killed ($d): the object"
done
is "$(gets 'GET .*range=bytes=[1-9]')" 1 'the last of them was resumed'
rm -rf two; : >srv/log
lfs-fetch -S two -H 127.0.0.1 -e "$url/slow" -o two1 <pbig 2>err1 & k=$!
lfs-fetch -S two -H 127.0.0.1 -e "$url/slow" -o two2 <pbig 2>err2; status=$?
exits 0 'two at once: the one'
wait $k; is "$?" 0 'two at once: the other'
same two1 "srv/$big" 'two at once: the object'
same two2 "srv/$big" 'two at once: the object again'
is "$(gets GET)" 1 'two at once: one download'
is "$(find two -name '*.part')" '' 'two at once: nothing is left'
# the one is killed while the other waits for it
rm -rf two; : >srv/log
lfs-fetch -S two -H 127.0.0.1 -e "$url/slow" -o two1 <pbig 2>err1 & k=$!
grown two
lfs-fetch -S two -H 127.0.0.1 -e "$url/slow" -o two2 <pbig 2>err2 & j=$!
sleep 0.3
kill -9 $k; wait $k 2>/dev/null
wait $j; is "$?" 0 'the first is killed: the second goes on'
same two2 "srv/$big" 'the first is killed: the object'
is "$(gets 'GET .*range=bytes=[1-9]')" 1 'the first is killed: resumed'

# ---- what a person sees ----
python3 "$here/on-tty.py" lfs-fetch -S tty -H 127.0.0.1 -e "$url/slow" -o tty-got \
    <pbig >tty.out; status=$?
exits 0 'on a terminal'
ok 'there is a bar with rate and time left' grep -Eq \
    'tty-got \[#+\.+\] [0-9]+% of 8\.0 MB, [0-9.]+ MB/s, 0:00:0[0-9] left' tty.out
rm -rf tty
python3 "$here/on-tty.py" lfs-fetch -q -S tty -H 127.0.0.1 -e "$url/slow" -o tty-got \
    <pbig >tty.out
is "$(cat tty.out)" '' 'nothing with -q'
finished
