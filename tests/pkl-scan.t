#!/bin/sh
# pkl-scan: what a pickle imports is what pickletools says, and what is hostile
# is refused, each for its own reason.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common pkl-scan
cases() { python3 "$here/pkl-scan.py" "$@"; }
tab=$(printf '\t')

# ---- called wrongly ----
run pkl-scan a b; exits 2 'two files'
run pkl-scan missing; exits 2 'a missing file'
says '^pkl-scan: missing: No such file' 'is named'
run pkl-scan .; exits 2 'a folder'
says '^pkl-scan: \.: ' 'is named'

# ---- honest artifacts ----
mkdir honest hostile
cases honest honest >list
while read -r n; do
	run pkl-scan "honest/$n.pkl"
	exits 0 "honest: $n"
done <list
is "$(grep -c . list)" 10 'all of them'
is "$(pkl-scan honest/nested.pkl)" '' 'a pickle in bytes is data'
is "$(pkl-scan honest/object.pkl)" '1 builtins slice' 'an import'
is "$(pkl-scan <honest/buffers.pkl)" '' 'from standard input'
run cases generate 5000 "$stride"
exits 0 '5,000 pickles, protocols 4 and 5, in and out of band: as pickletools'
[ "$stride" -ne 1 ] || is "$(wc -w <"$out" | tr -d ' ')" 36 'all 36 opcodes were in them'

# ---- hostile ones ----
cases hostile hostile >list
while IFS=$tab read -r n why; do
	run pkl-scan "hostile/$n.pkl"
	exits 1 "hostile: $n"
	is "$(grep -Ec -- "^pkl-scan: hostile/$n\\.pkl: .*$why.*, at byte [0-9]+\$" "$err") $(wc -l <"$err" | tr -d ' ')" \
	    '1 1' "... $why"
	is "$(cat "$out")" '' '... nothing is listed'
done <list
is "$(($(grep -c . list) > 170))" 1 'all of them'
is "$(cut -f2 list | sort -u | awk 'END { print (NR > 100) }')" 1 'for a hundred reasons'

# ---- every prefix; pieces of any size; where the size is not known ----
for n in object frames buffers on-object; do
	run cases prefixes "honest/$n.pkl"
	exits 0 "every prefix of $n is refused in one line"
done
different=
for f in honest/*.pkl $(find hostile -name '*.pkl' -size -100k); do
	pickle-feed 1000000 "$f" >whole
	for n in 1 2 3 7; do
		pickle-feed $n "$f" >pieces
		cmp -s whole pieces || different="$different $f/$n"
	done
	pickle-feed 3 "$f" unknown >pieces
	case $f in
	hostile/*) grep -q ', at byte' pieces ;;
	# could be framed, if long enough
	*/looks-framed.pkl) grep -q ', at byte' pieces ;;
	*) cmp -s whole pieces ;;
	esac || different="$different $f/unknown"
done
is "$different" '' 'the pieces it comes in make no difference'

# ---- lists ----
printf '# a comment\n\nbuiltins slice\n' >own
printf 'os system\ntinygrad.dtype DType' >other
run pkl-scan -a own honest/object.pkl
exits 0 'all is on the list'
is "$(cat "$out")" '1 builtins slice' 'and printed'
run pkl-scan -q -a own honest/object.pkl
is "$(cat "$out" "$err")" '' '-q: not printed'
run pkl-scan -a other honest/object.pkl
exits 1 'not on the list'
is "$(cat "$err")" 'pkl-scan: honest/object.pkl: imports builtins slice, which no list has' 'is named'
is "$(cat "$out")" '1 builtins slice' 'and printed'
run pkl-scan -a other -a own honest/object.pkl
exits 0 'two lists are one'
python3 -c 'import os, pickle, sys
class A: __reduce__ = lambda self: (os.system, ("touch ran",))
sys.stdout.buffer.write(pickle.dumps([A(), slice(1)], 4))' >evil.pkl
run pkl-scan -a own evil.pkl
exits 1 'an import that runs code'
is "$(cat "$err")" 'pkl-scan: evil.pkl: imports posix system, which no list has' 'is named'
absent ran 'and does not run'
echo 'posix system' >posix
run pkl-scan -a own -a posix evil.pkl
exits 0 'a list is what a person makes it'
printf 'builtins getattr\n' >getattr
run pkl-scan -a getattr hostile/builtins-getattr.pkl
exits 1 '... but for builtins'
for bad in 'os' 'os system x' ' os system' 'os  system' 'os.path join.x' 'os 1' '1 os' 'os system ' 'a	b'; do
	printf 'a b\n%s\n' "$bad" >bad
	run pkl-scan -a bad honest/object.pkl
	exits 2 "a list with the line '$bad'"
	says '^pkl-scan: bad: line 2: wanted a module, a blank and a name' 'is refused'
done
printf 'a b\0\n' >bad
run pkl-scan -a bad honest/object.pkl; exits 2 'a list with a NUL'
run pkl-scan -a missing honest/object.pkl; exits 2 'a missing list'
for list in "$root"/catalog/imports-*.txt; do
	is "$(grep -v '^#' "$list")" "$(grep -v '^#' "$list" | LC_ALL=C sort -u)" "${list##*/} is sorted"
	run pkl-scan -a "$list" honest/object.pkl; exits 0 '... and well-formed'
done

# ---- memory is flat ----
cases wrap $((3 << 30)) large.pkl
run pkl-scan large.pkl; exits 0 'three GiB'
case $BIN in *asan*|*valgrind*) limit=1000000 ;; *) limit=20000 ;; esac
is "$(($(cases peak pkl-scan large.pkl) < limit))" 1 '... in a few MiB, most of them of the one that measures'
run sh -c 'head -c 300000000 large.pkl | pkl-scan'; exits 1 'cut, from a pipe'
finished
