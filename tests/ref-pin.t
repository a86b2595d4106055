#!/bin/sh
# ref-pin: a branch in a source map becomes the commit it is now.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
common ref-pin
HOME=$T GIT_CONFIG_NOSYSTEM=1 XDG_CONFIG_HOME=$T
GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.invalid
GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.invalid
export HOME GIT_CONFIG_NOSYSTEM XDG_CONFIG_HOME GIT_AUTHOR_NAME \
    GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL

git init -q -b main up
git -C up commit -q --allow-empty -m one
one=$(git -C up rev-parse HEAD)
git -C up tag light
git -C up tag -a -m annotated v1.0
git -C up tag twice
git -C up commit -q --allow-empty -m two
two=$(git -C up rev-parse HEAD)
git -C up branch feature/x
git -C up branch twice
git clone -q --bare up other
git -C other update-ref refs/heads/elsewhere "$one"

# layout, order, unknown keys, escapes and a ref in another place: all stay
cat >map.json <<EOT
{ "a" :	{"input_format":"split" , "note": "{\"ref\": [ \"b\" ]}", "ref"
   :  "main"},
  "b":{"nested": {"ref": "main", "list": [1, {"ref": "x"}, "]"]}, "ref":"feature\/x","input_format":"supercombo"},
  "c\u0031": {"re\u0066": "v1.0", "input_format": "split", "name": "Ünï 👀📡"},
  "d": {"ref": "light", "input_format": "split"},
  "e": {"ref": "elsewhere", "input_format": "split", "remote": "$T/other"},
  "f": {"ref": "twice", "input_format": "split"},
  "g": {"ref": "refs/tags/twice", "input_format": "split"},
  "gone": {"ref": "vanished", "input_format": "split"},
  "done": {"ref": "$one", "input_format": "split"},
  "evil": {"ref": "--upload-pack=touch canary", "input_format": "split"},
  "evil2": {"ref": "-u", "input_format": "split"},
  "evil3": {"ref": "ma*n", "input_format": "split"},
  "evil4": {"ref": "x\u001b[2J", "input_format": "split"}}
EOT
cp map.json first.json
chmod 640 map.json
mkdir maps
mv map.json maps/real.json
ln -s maps/real.json map.json

run ref-pin -u up a; exits 2 'no map'
run ref-pin -m map.json; exits 2 'no id'
run ref-pin -m map.json -u up a b; exits 2 'two ids'
run ref-pin -m map.json -u up 'a;b'; exits 2 'an id that is none'
run ref-pin -m none.json -u up a; exits 2 'a map that is not there'
run ref-pin -m map.json a; exits 2 'no remote'
run ref-pin -m map.json -t x -u up a; exits 2 '-t that is no number'
run ref-pin -m map.json -u up nobody
exits 1 'an id in no map'; says '^ref-pin: nobody: in no source map' 'it is named'
run ref-pin -m map.json -u up gone
exits 1 'a branch that is gone'; says 'no branch or tag vanished at up' 'it is named'
run ref-pin -m map.json -u up "done"
exits 0 'a commit already'; is "$(cat "$out")" "done: is a commit already: $one" 'it says so'
for id in evil evil2 evil3 evil4; do
	run ref-pin -m map.json -u up $id; exits 1 "a hostile name: $id"
done
printf '{"a": {"ref": "main", "input_format": "split", "remote": "ext::touch canary"}}' >bad.json
run ref-pin -m bad.json -u up a; exits 1 'a hostile remote'
run ref-pin -m map.json -u --upload-pack=touch a; exits 2 'a URL like an option'
absent canary 'nothing was run'
run ref-pin -m map.json -u up f
exits 1 'a branch and a tag of one name'; says 'refs/heads/twice or refs/tags/twice' 'it says how to tell'
run ref-pin -m map.json -u "$T/nowhere" a
exits 1 'no repository there'
run ref-pin -m map.json -u http://127.0.0.1:1/x a
exits 111 'nobody listens'
python3 "$here/git-http.py" "$T" port stall 2>/dev/null &
later $!
i=0
until [ -s port ] || [ $i -ge 200 ]; do sleep 0.05; i=$((i + 1)); done
run ref-pin -t 1 -m map.json -u "http://127.0.0.1:$(cat port)/x" a
exits 111 'a server that never answers'; says 'stopped after 1 s' 'has a bound'
same maps/real.json first.json 'nothing was written so far'

# pin ID COMMIT TEXT
pin() {
	name=$(python3 -c 'import json, sys; print(json.load(open("map.json"))[sys.argv[1]]["ref"])' "$1")
	run ref-pin -u up -m map.json "$1"
	exits 0 "$3"
	is "$(cat "$out")" "$1: $name -> $2" "$3: the line"
	is "$(cat "$err")" '' "$3: no noise"
}
pin a "$two" 'a branch'
pin b "$two" 'a branch with a slash'
pin c1 "$one" 'an annotated tag, its commit'
pin d "$one" 'a light tag'
pin e "$one" 'the remote of the entry itself'
pin g "$one" 'a full name'
sed -e "2s/\"main\"/\"$two\"/" -e "3s/\"feature..x\"/\"$two\"/" -e "s/\"v1.0\"/\"$one\"/" \
    -e "s/\"light\"/\"$one\"/" -e "s/\"elsewhere\"/\"$one\"/" \
    -e "s/\"refs.tags.twice\"/\"$one\"/" first.json >wanted.json
same maps/real.json wanted.json 'all other bytes are as they were'
if [ -L map.json ]; then pass 'a link stays a link'; else fail 'a link stays a link'; fi
is "$(find maps/real.json -perm 640)" maps/real.json 'modes stay'
is "$(find maps -name '.*' -type f)" '' 'no temporary file is left'

# two maps; two of us at once
printf '{"m": {"ref": "main", "input_format": "split"}, "n": {"ref": "main", "input_format": "split"}}' >second.json
ref-pin -u up -m map.json -m second.json m >one.out 2>one.err & a=$!
ref-pin -u up -m map.json -m second.json n >two.out 2>two.err & b=$!
wait $a; status=$?; exits 0 'one of two at once'
wait $b; status=$?; exits 0 'the other'
is "$(cat second.json)" "{\"m\": {\"ref\": \"$two\", \"input_format\": \"split\"}, \"n\": {\"ref\": \"$two\", \"input_format\": \"split\"}}" \
    'both refs are in the second map, which has no final newline'
same maps/real.json wanted.json 'the first map was left alone'
printf '{"a": {"ref": "main", "input_format": "split"}, "a": {"ref": "main", "input_format": "split"}}' >bad.json
run ref-pin -u up -m bad.json a; exits 1 'a duplicate key'
printf '{"a": {"ref": "main", "input_format": "split"}}' >whole.json
i=0
bad=0
while [ $i -lt "$(wc -c <whole.json)" ]; do
	head -c $i whole.json >prefix.json
	run ref-pin -u up -m prefix.json a
	[ "$status" -eq 1 ] || bad=$((bad + 1))
	i=$((i + stride))
done
is $bad 0 'every prefix of a map is an error'
ref-pin -u up -m whole.json a >/dev/full 2>"$err"; status=$?
exits 2 'a lost line is status 2'
finished
