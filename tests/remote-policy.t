#!/bin/sh
# Which machines may be spoken to: a host that may not be, next to one that
# may, and a count of the packets that came to it.
# shellcheck source=tests/lib.sh disable=SC2016,SC2119 # names as they are
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
# shellcheck source=tests/netns.sh
. "$here/netns.sh"

python3 "$here/fabricate.py" ws 4 && cd ws || exit 2
rm -r compiled results/*_artifact.json ready-for-resources
ssh_keys
device_make
cp "$S/config" "$S/plain"
good=192.168.3.109 bad=192.168.3.110
client=
# compile NAME [OPTION...]: as if the setting DEVICES were NAME
compile() {
	name=$1
	shift
	# shellcheck disable=SC2086 # words
	run $client remote-compile -c "$S/config" -p "$D" -P 0 -R 0 -t $((10 * slack)) \
	    -D "$name" -f split -v v0 -r results "$@" one </dev/null
}
# refused NAME REGEX TEXT [OPTION...]: status 2, said, and nothing was sent
refused() {
	name=$1 regex=$2 text=$3
	shift 3
	compile "$name" "$@"
	exits 2 "$text: refused"
	says "$regex" "... with the reason"
	silent
}
silent() { :; }
# config LINE...: what ssh_config says first
config() {
	printf '%s\n' "$@" | cat - "$S/plain" >"$S/config"
}

# ---- what is no name of a device ----
for name in -oProxyCommand=x '-v' '' ' ' 'a;b' "a'b" 'a"b' "a\$(id)" 'a`id`' \
    '../a' 'a/b' '@a' 'a@' 'a:' 'a:0' 'a:65536' 'a:x' 'a@-b' '[::1' '[]' \
    '[::1]x' 'a\b' "a
b"; do
	refused "$name" '^remote-compile: (device "|DEVICES: )' \
	    "\"$(echo "$name" | tr '\n' ' ')\""
done
long=$(printf '%0300d' 1)
compile "$long"
exits 2 'a name without end'
for name in 'local 127.0.0.1' '127.0.0.1 local'; do
	refused "$name" 'local stands alone' "\"$name\"" -a 127.0.0.1
done

# ---- the lists ----
refused 127.0.0.1 'is 127.0.0.1, which ALLOWED_DEVICES \(192.168.3.109\) does not have' \
    'an address that is not allowed'
refused 127.0.0.1 'which ALLOWED_DEVICES \(\) does not have' \
    'an allow-list without a word' -a ''
for word in comma 127.0.0 127.0.0.1/8 127.0.0.1:22 127.0.0.1,127.0.0.2 \
    SHA256:x '*' "'127.0.0.1'"; do
	refused 127.0.0.1 '^remote-compile: ALLOWED_DEVICES: ".*": wanted an address$' \
	    "ALLOWED_DEVICES has $word" -a "127.0.0.1 $word"
done
for word in comma 192.168.3 192.168.878 0300.0250.03.0156 127.0.0.1/8 127.0.0.1,127.0.0.2 MD5:aa:bb SHA256: SHA256:x \
    "SHA256:$(printf '%043d' 0)=" "sha256:$(printf '%043d' 0)"; do
	refused 127.0.0.1 '^remote-compile: DENY_DEVICES: ".*": wanted an address or a SHA256: fingerprint$' \
	    "DENY_DEVICES has $word" -a 127.0.0.1 -d "$word"
done
refused 127.0.0.1 '127.0.0.1 is in DENY_DEVICES' 'both lists have it' \
    -a 127.0.0.1 -d '127.0.0.2 127.0.0.1'
refused 127.0.0.1 '127.0.0.1 is in DENY_DEVICES' 'the list has it in IPv6' \
    -a 127.0.0.1 -d ::ffff:127.0.0.1
refused ::ffff:127.0.0.1 '127.0.0.1 is in DENY_DEVICES' 'the name is IPv6' \
    -a 127.0.0.1 -d 127.0.0.1

# ---- what hides the address ----
for line in 'ProxyJump other' 'ProxyCommand nc %h %p' \
    'ProxyCommand ssh -W %h:%p x' 'ProxyCommand x' 'ProxyJump a,b'; do
	config 'Host dev' ' HostName 127.0.0.1' " $line"
	refused dev 'ProxyJump or ProxyCommand for it: refused, since that hides' \
	    "$line" -a 127.0.0.1
done
for line in 'ProxyCommand none' 'ProxyJump none'; do
	config 'Host dev' ' HostName 127.0.0.1' ' Port 1' " $line"
	compile dev -a 127.0.0.1
	exits 111 "$line hides nothing"
	says 'cannot connect to 127.0.0.1 port 1: ' '... it is tried'
done
config 'Host dev' ' HostName 127.0.0.1' ' Port 1' ' User driver'
run $client remote-compile -I -c "$S/config" -p "$D" -D dev -a 127.0.0.1
exits 111 'what is allowed'
is "$(sed 2q "$err")" "device dev: driver@127.0.0.1 port 1, $D
allowed: 127.0.0.1; denied: 192.168.3.110" '... is printed before anything is sent'
is "$(compiles)" 0 'nothing was compiled'

# ---- hosts of their own ----
netns_can || {
	echo "# no network namespaces here: the rest is left out"
	finished
}
netns_host good $good fd00:3::109
netns_host bad $bad fd00:3::110
for h in "good $good fd00:3::109" "bad $bad fd00:3::110"; do
	# shellcheck disable=SC2086 # words
	set -- $h
	in_ns="ip netns exec $ns-$1" sshd_run "$1" -o "HostKey=$S/host" \
	    -o ListenAddress="$2" -o ListenAddress="[$3]" || exit 2
done
unset in_ns
for h in $good comma six both forbidden ::ffff:$good; do
	printf '%s %s\n' "$h" "$(cut -d' ' -f1,2 "$S/host.pub")"
done >"$S/known_hosts"
cat >"$T/hosts" <<EOF
127.0.0.1 localhost
$good comma
$bad forbidden
$good both
$bad both
fd00:3::109 six
::ffff:$bad mapped
fd00:3::109 sixboth
::ffff:$bad sixboth
EOF
client=inside
config 'Host alias' " HostName $bad" 'Host alias2' ' HostName forbidden' \
    'Host fine' ' HostName comma' "Match host matched" " HostName $bad" \
    "Host $good" " HostName $bad" "Host pattern*" " HostName 192.168.3.%h"
sent=$(packets bad)
silent() {
	is "$(packets bad)" "$sent" '... and no packet came to it'
}
denied="$bad is in DENY_DEVICES: nothing was sent to it"
is "$sent" 0 'no packet before the first'
for name in $bad "user@$bad" "root@$bad:22" "[$bad]:22" "::ffff:$bad" \
    "[::ffff:$bad]:22" ::ffff:c0a8:36e 0:0:0:0:0:ffff:192.168.3.110 \
    3232236398 0xc0a8036e 0300.0250.03.0156 192.168.878 192.11010926 \
    forbidden FORBIDDEN user@forbidden mapped both sixboth alias alias2 \
    user@alias matched $good "comma $bad"; do
	refused "$name" "$denied" "$name"
done
refused fd00:3::110 'is fd00:3::110, which ALLOWED_DEVICES' 'its IPv6 address'
refused alias "$denied" 'an alias under an allowed address' -a "$good $bad"
for goal in -I -S -C; do
	set -- one
	[ $goal = -C ] || set --
	run inside remote-compile $goal -c "$S/config" -p "$D" -D alias "$@"
	exits 2 "$goal asks no other machine"
	says "$denied" '... and says why'
	silent
done
# a name that is not known here, nor is there a server of names
compile nowhere
exits 111 'a name that does not resolve'
says '^remote-compile: nowhere: ' '... is said'
silent

config 'Host fine' ' HostName comma'
came=$(packets good)
compile fine
exits 0 'the host that may compile'
is "$(compiles) $(($(packets good) > came))" '1 1' '... does, and its packets count'
silent
compile six -F -a "$good fd00:3::109"
exits 0 'by its IPv6 address'
compile "::ffff:$good" -F
exits 0 'by its address in IPv6'
compile both -F -d ''
exits 0 'a name of two hosts, one is allowed'
silent

# the count can move: the same host, when it may be spoken to
compile forbidden -F -a "$bad" -d ''
exits 0 'with wider lists the other compiles'
is "$(($(packets bad) > sent))" 1 '... and its packets count'
is "$(grep -c twice "$D/calls")" 0 'one at a time'
finished
