#!/bin/sh
# The man pages: well-formed, complete, of one mind with the tools; and every
# example of a tool's page and of README.md is run.
# shellcheck source=tests/lib.sh disable=SC2119
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/pipeline.sh disable=SC2154 # here: of lib.sh
. "$here/pipeline.sh"

# text PAGE: as it is read, without overstrikes
bs=$(printf '\b')
text() { mandoc -T ascii -O width=200 "$1" | sed "s/.$bs//g"; }
# section NAME: of a page on standard input
section() {
	awk -v name="$1" '/^[A-Z]/ { on = $0 == name; next } on'
}
# the command lines of EXAMPLES, which stand indented; a \ at the end goes on
examples() {
	text "$1" | section EXAMPLES | awk '
	more || /^          / {
		sub(/^ +(\$ )?/, "")
		more = sub(/\\$/, "")
		printf "%s%s", $0, more ? " " : "\n"
	}'
}
# one option in a line, as -x or --word: of a usage (not --ID, which is any
# model's), of a page's lists, long ones of its text too, of getopt's string
of_usage() {
	tr -s '[]|,. \t' '[\n*]' | awk '/^--[a-z]/ { print }
	/^-[A-Za-z]+$/ { for (i = 2; i <= length; i++) print "-" substr($0, i, 1) }'
}
of_page() {
	awk '/^\.It Fl/ { for (i = 2; i < NF; i++)
		if ($i == "Fl" || ($i == "|" && i > 2)) print "-" $(i + 1) }' "$1"
}
of_text() {
	sed '/^\.Sh SYNOPSIS/,/^\.Sh/d' "$1" | grep '^\.' | tr -s ' ' '[\n*]' |
	    sed -n 's/^-[a-z]/-&/p'
}
of_source() {
	cat "$root/tools/$1".c "$root/tools/$1"/*.c 2>/dev/null |
	    sed -n 's/.*getopt(argc, argv, "+*\([^"]*\)".*/\1/p' |
	    tr -d : | sed 's/./-&\
/g' | grep .
}
# lacking LIST LIST: what the first has and the second has not
lacking() { printf '%s\n' "$1" | grep -vxF -- "$2" | sort -u; }

# shellcheck disable=SC2154 # root is of lib.sh
cd "$root" || exit 2
for page in man/*.[157]; do
	name=$(basename "${page%.*}") sec=${page##*.}
	run mandoc -T lint -W warning "$page"
	is "$(cat "$out" "$err")" '' "$page: mandoc -T lint"
	is "$(sed -n 's/^\.Dt //p' "$page")" \
	    "$(echo "$name" | tr '[:lower:]' '[:upper:]') $sec" "$page: .Dt"
	want='NAME DESCRIPTION SEE ALSO'
	[ "$sec" != 1 ] ||
	    want='NAME SYNOPSIS DESCRIPTION EXIT STATUS EXAMPLES SEE ALSO'
	got=$(text "$page" | grep '^[A-Z][A-Z ]*$' | tr '\n' ' ')
	for word in NAME SYNOPSIS DESCRIPTION 'EXIT STATUS' EXAMPLES \
	    'SEE ALSO'; do
		case $want in
		*"$word"*) ;;
		*) continue ;;
		esac
		case " $got" in
		*" $word "*) want=$(echo "$want" | sed "s/$word *//") ;;
		esac
	done
	is "$want" '' "$page: has the sections of its kind"
	# what it refers to is there
	is "$(sed -n 's/^\.Xr \([^ ]*\) \([0-9]\).*/\1.\2/p' "$page" |
	    sort -u | while read -r ref; do
		[ -e "man/$ref" ] && continue
		case $ref in
		git.1|git-lfs.1|git-[cfl][a-z]*.1|gitcredentials.7|git-lfs-*.[157]|sha256sum.1|split.1|flock.[12]|cat.1|ssh*.[15]|make.1|\
		prove.1|sh.1|sudo.8|python3.1|clang.1|curl.1|fsync.2|rename.2) ;;
		*) echo "$ref" ;;
		esac
	done)" '' "$page: no reference leads nowhere"
done
for page in man/*.1; do
	tool=$(basename "$page" .1)
	ok "$tool: -h and -V are in its page" grep -qx '\.Fl h | V' "$page"
	run "$tool" -h
	usage=$(of_usage <"$out")
	described=$(of_page "$page")
	common='-h
-V'
	is "$(lacking "$usage" "$described
$(of_text "$page")")" '' \
	    "$tool: every option of the usage is in its page"
	is "$(lacking "$described" "$usage
$common")" '' "$tool: every option of its page is in the usage"
	taken=$(of_source "$tool")
	[ -z "$taken" ] || is "$(lacking "$taken" "$common")" \
	    "$(lacking "$(echo "$described" | grep '^-[^-]')" "$common")" \
	    "$tool: the options it takes are those"
done

# where the examples run: a model of a small upstream, at every stage, and
# plain files; ~/model-rebuild is the project, $ref a commit, $oid and $size
# are of the object in its pointer, and openpilot on GitHub is a folder here
mkdir "$T/sample" "$T/home" "$T/readme" "$T/readme/build"
ln -s "$root" "$T/home/model-rebuild"
ln -s "$BIN" "$T/readme/build/bin"
sh "$root/tests/fixtures/upstream.sh" "$up" && standin 1 || exit 2
cp -R "$up" "$T/readme/build/demo"
HOME=$T/home GIT_CONFIG_NOSYSTEM=1 MR_DEVICE_ROOT=$device MR_PYTHON=$device/python3
ref=$(sed -n 's/^split //p' "$up/refs")
export HOME GIT_CONFIG_NOSYSTEM MR_DEVICE_ROOT MR_PYTHON ref
cd "$T/sample" || exit 2
sed 's/demo-split/pop22/' "$up/map.json" >map.json
sed 's/demo-split/pop22/' "$up/names.json" >names.json
sed "s/$ref/split/" map.json >own.json
mv "$up/upstream.git" openpilot.git
git config -f "$HOME/.gitconfig" \
    "url.file://$T/sample/openpilot.git.insteadOf" \
    https://github.com/commaai/openpilot.git
mkdir -p .state got compiled ready-for-resources
ok 'sources for the examples' \
    source-fetch -C openpilot.git -f split -r results pop22 "$ref"
ok 'a compiler for the examples' remote-compile -I -D local
cp "$out" identity.json
cp "$out" .state/identity.json
ok 'an artifact for the examples' \
    remote-compile -D local -f split -v v11 -r results pop22
ok 'an upload set for the examples' pkl-split -r results -i pop22 \
    -o ready-for-resources compiled/pop22.pkl
cp compiled/pop22.pkl x.pkl
cp "$root/catalog/imports-0.14.0.txt" .
for f in vision policy; do
	cp "onnx/pop22/pop22_driving_$f.onnx" "driving_$f.onnx"
done
git-blob -C openpilot.git -p "$ref" \
    selfdrive/modeld/models/driving_vision.onnx >pointer
oid=$(sed -n 's/^oid sha256://p' pointer) size=$(sed -n 's/^size //p' pointer)
export oid size
cp driving_vision.onnx object
mkdir in
for f in vision policy; do cp "driving_$f.onnx" "in/sc2_driving_$f.onnx"; done
for f in a b c; do echo "$f" >"$f"; done
# a device that ssh calls comma; $openpilot is its root
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
sshd_start
device_make
mkdir ssh
{ printf 'Host comma\n\tHostName 127.0.0.1\n\tPort %s\n' "$port"
cat "$S/config"; } >ssh/config
openpilot=$D
export openpilot

for page in "$root"/man/*.1; do
	tool=$(basename "$page" .1)
	examples "$page" >"$T/examples"
	ok "$tool: EXAMPLES show it" grep -q "\\<$tool " "$T/examples"
	rm -rf "$T/try" && cp -R "$T/sample" "$T/try" && cd "$T/try" || exit 2
	while read -r command; do
		run sh -uc "$command" </dev/null
		exits 0 "$tool: $command"
	done <"$T/examples"
done

# README.md: the pipeline by hand
cd "$T/readme" || exit 2
awk '/^## / { on = /The pipeline by hand/ } on && /^    /' \
    "$root/README.md" >by-hand.sh
run sh -eu by-hand.sh
exits 0 'README.md: the pipeline by hand'
is "$(tail -n 2 "$out" | cut -c1-64 | sort -u | wc -l | tr -d ' ')" 1 \
    'README.md: the same digest twice'
finished
