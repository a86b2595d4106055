#!/bin/sh
# What the JSON reader takes and refuses, with Python's as the oracle.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"

python3 "$here/json-cases.py" cases || exit 2
for f in cases/good/*.json; do
	run json-cat "$f"
	exits 0 "$f is read"
	same "$out" "${f%.json}.out" "$f is written as Python writes it"
done
for f in cases/bad/*.json; do
	run json-cat "$f"
	exits 1 "$f is refused"
	says "^json-cat: $f: ." "$f: the file is named"
done

# reasons that a person can act on
reason() {
	run json-cat "cases/bad/$1.json"
	says "$2" "$1: says $2"
}
reason duplicate 'line 3: key "a" was on line 1 already$'
reason duplicate-escaped 'line 1: key "a" was on line 1 already$'
reason lone-high 'line 1: .*lone surrogate'
reason nul-escape 'line 1: .*NUL'
reason nul 'line 1: a NUL byte$'
reason latin1 'line 1: bytes that are not UTF-8$'
reason too-deep 'levels deep$'
reason leading-zero 'line 1: a word that is not JSON$'
run json-cat cases/bad/open-object.json
is "$(wc -l <"$err")" 1 "a reason is one line and does not quote the file"

# only some members
cat >some <<'JSON'
{"x": 1, "a": {"x": [{"a": 1}], "b": ["x", "a:", {"x": 2}], "x2": "}"},
 "y": "a", "b" : [{"x": ",", "a":"\\"}, {"a": 1 , "x": {} }, {"x": 0}], "z": []}
JSON
run json-cat -k a -k b some
exits 0 "only some members"
is "$(tr -d ' \n' <"$out")" \
    '{"a":{"b":["x","a:",{}]},"b":[{"a":"\\"},{"a":1},{}]}' \
    "... of these names, wherever they are"
run json-cat -k a cases/bad/duplicate.json
exits 1 "what is left out is checked all the same"

# every prefix of a valid file
printf '{"models": [{"id": "a\\u00e9", "n": 12, "x": null}, true]}' >whole
i=0 n=$(wc -c <whole) bad=
while [ "$i" -lt "$n" ]; do
	head -c "$i" whole >prefix
	run json-cat prefix
	[ "$status" -eq 1 ] || bad="$bad $i:$status"
	i=$((i + 1))
done
is "$bad" "" "every prefix of a file is refused with status 1"
ok "the whole is read" json-cat whole

# what is no file of ours
run json-cat missing
exits 1 "a missing file"
says '^json-cat: missing: No such file' "a missing file is named"
run json-cat .
exits 1 "a folder"
truncate -s 67108865 huge
run json-cat huge
exits 1 "a file of more than 64 MiB"
says '^json-cat: huge: longer than 67108864 bytes' "the limit is named"
finished
