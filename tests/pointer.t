#!/bin/sh
# Every pointer variant, decided by lfs-fetch; git-lfs is the oracle where we
# agree with it.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/lib.sh"
HOME=$T GIT_CONFIG_NOSYSTEM=1
export HOME GIT_CONFIG_NOSYSTEM

printf 'the bytes of the object\n' >object
oid=$(sum object) size=24
empty=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
dir=store/objects/$(printf %.2s "$oid")/$(printf %.4s "$oid" | tail -c 2)
mkdir -p "$dir" && cp object "$dir/$oid"
v1=https://git-lfs.github.com/spec/v1

# p VERSION OID SIZE: three lines
p() { printf 'version %s\noid sha256:%s\nsize %s\n' "$1" "$2" "$3"; }

# oracle NAME CHECK STRICT: git-lfs says this of file NAME
oracle() {
	git lfs pointer --check --stdin <"$1" >/dev/null 2>&1; a=$?
	git lfs pointer --check --strict --stdin <"$1" >/dev/null 2>&1; b=$?
	is "$a/$b" "$2/$3" "$1: git-lfs says $2/$3"
}
# is_object NAME [NOTICE]; is_refused NAME REASON; is_plain NAME
is_object() {
	run lfs-fetch -S store <"$1"
	exits 0 "$1: accepted"
	same "$out" object "$1: the object came"
	if [ $# -gt 1 ]; then says "$oid: pointer is not canonical: .*$2" "$1: notice"
	else is "$(cat "$err")" "" "$1: no notice"; fi
}
is_refused() {
	run lfs-fetch -S store <"$1"
	exits 1 "$1: refused"
	says "^lfs-fetch: standard input: pointer .*$2" "$1: why"
	is "$(wc -c <"$out" | tr -d ' ')" 0 "$1: nothing came"
}
is_plain() {
	run lfs-fetch -S store <"$1"
	exits 0 "$1: passes"
	same "$out" "$1" "$1: unchanged"
	is "$(cat "$err")" "" "$1: no noise"
}

p $v1 "$oid" $size >canonical
oracle canonical 0 0; is_object canonical
printf %s "$(cat canonical)" >no-newline
oracle no-newline 0 2; is_object no-newline 'no newline at the end'
sed 's/$/\r/' canonical >crlf
oracle crlf 0 2; is_object crlf CRLF
p https://hawser.github.com/spec/v1 "$oid" $size >hawser
oracle hawser 0 2; is_object hawser hawser
p http://git-media.io/v/2 "$oid" $size >git-media
oracle git-media 0 2; is_object git-media git-media
{ echo; sed 's/$/\n/' canonical; } >blank-lines
oracle blank-lines 0 2; is_object blank-lines 'blank lines'
printf '  %s \t' "$(cat canonical)" >blanks-around
oracle blanks-around 0 2; is_object blanks-around newline

# git-lfs takes these; the oid or the size is not to be believed, so we do not
p $v1 "$oid" +$size >size-plus
oracle size-plus 0 2; is_refused size-plus 'size is "\+24", wanted decimal'
p $v1 "$oid" 00$size >size-zeros
oracle size-zeros 0 2; is_refused size-zeros 'size is "0024", wanted decimal'
p $v1 "$oid" 0 >size-0
oracle size-0 0 2; is_refused size-0 "size is 0, which does not fit oid $oid"
p $v1 "$oid" $size | sed "1a ext-0-foo sha256:$oid" >ext
oracle ext 0 0; is_refused ext 'extension \(ext-0-foo\)'
p $v1 $empty 5 >empty-oid
is_refused empty-oid 'does not fit'

p $v1 "$(printf %s "$oid" | tr a-f A-F)" $size >upper
oracle upper 1 1; is_refused upper 'wanted sha256: and 64'
{ printf '\357\273\277'; cat canonical; } >bom
oracle bom 1 1; is_refused bom 'has the key'
{ cat canonical; echo 'and more'; } >trailing
oracle trailing 1 1; is_refused trailing 'text after its size: "and more"'
{ cat canonical; printf '\0\0\0'; } >nuls
oracle nuls 1 1; is_refused nuls 'after its size'
sed '1h;1d;2{p;x;}' canonical >reordered
oracle reordered 1 1; is_refused reordered 'key "oid", wanted "version"'
sed 's/^oid /oid  /' canonical >spaces
oracle spaces 1 1; is_refused spaces 'oid is " sha256'
p $v1 "$oid" -$size >negative
oracle negative 1 1; is_refused negative 'size is "-24"'
p $v1 "$oid" 99999999999999999999 >long-size
oracle long-size 1 1; is_refused long-size 'at most 19 digits'
p $v1 "$oid" 9999999999999999999 >over-int64
oracle over-int64 1 1; is_refused over-int64 'size is "9999999999999999999"'
sed 's/sha256/sha512/' canonical >sha512
oracle sha512 1 1; is_refused sha512 'oid is "sha512:'
sed 2p canonical >duplicate
oracle duplicate 1 1; is_refused duplicate 'key "oid", wanted "size"'
p https://git-lfs.github.com/spec/v2 "$oid" $size >v2
oracle v2 1 1; is_refused v2 'version is .*/v2", wanted https'
sed 3d canonical >no-size
oracle no-size 1 1; is_refused no-size 'ends where a line "size" was wanted'
sed 's/^size /size/' canonical >no-blank
oracle no-blank 1 1; is_refused no-blank 'the line "size24"'

# what is no pointer
: >nothing
oracle nothing 0 0; is_plain nothing
echo 'see https://git-lfs.github.com for large files' >prose
oracle prose 1 1; is_plain prose
{ cat canonical; head -c 1024 /dev/zero | tr '\0' '\n'; } |
    head -c 1024 >padded-1024
is_plain padded-1024
head -c 1023 padded-1024 >padded-1023
oracle padded-1023 0 2; is_object padded-1023 'blank lines'
head -c 3000000 /dev/urandom >random
is_plain random

# every prefix: plain until it names git-lfs, then refused, then (the digits
# of the size may end anywhere) a pointer
pointer-probe <canonical >prefixes
want() {
	i=0
	while [ $i -le $((125 + ${#size})) ]; do
		if [ $i -lt 23 ]; then echo "$i 0"
		elif [ $i -le 124 ]; then echo "$i -1"
		else echo "$i 1"; fi
		i=$((i + 1))
	done
}
is "$(cat prefixes)" "$(want)" "every prefix is decided as it should be"
finished
