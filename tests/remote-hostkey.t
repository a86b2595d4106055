#!/bin/sh
# Is it the machine that it was? Host keys of every kind and age; who may log
# in; and that nobody is ever asked.
# shellcheck source=tests/lib.sh disable=SC2016,SC2119,SC2154 # as they are
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/ssh.sh
. "$here/ssh.sh"
ssh_keys
device_make
for type in ecdsa rsa; do
	ssh-keygen -q -t $type -N '' -f "$S/$type"
done
cp "$S/host" "$S/ed25519"
cp "$S/host.pub" "$S/ed25519.pub"
for other in ed25519 ecdsa; do
	ssh-keygen -q -t $other -N '' -f "$S/$other-old"
done
port=$(free_port)
# server KEY|OPTION...: the one server, with these host keys
server() {
	[ ! -s "$S/sshd.pid" ] || {
		kill "$(cat "$S/sshd.pid")"
		wait_for 100 test ! -e "$S/sshd.pid"
	}
	for key in "$@"; do
		case $key in
		-o|*=*) set -- "$@" "$key" ;;
		*) set -- "$@" -o "HostKey=$S/$key" ;;
		esac
		shift
	done
	sshd_run sshd -o ListenAddress="127.0.0.1:$port" "$@"
}
K=$S/known_hosts
# line KEY [HOST]: as it is in known_hosts
line() {
	echo "${2-[127.0.0.1]:$port} $(cut -d' ' -f1,2 "$S/$1.pub")"
}
print_of() { ssh-keygen -lf "$S/$1.pub" | cut -d' ' -f2; }
ask() {
	run remote-compile -I -c "$S/config" -a 127.0.0.1 -p "$D" -t $((10 * slack)) \
	    -D "127.0.0.1:$port" "$@" </dev/null
}
# cure: runs the command that the last message ends with
cure() {
	sed -n 's/.*: \(ssh-keyscan .*\|ssh-keygen .*\)$/\1/p' "$err" >"$T/cure"
	is "$(wc -l <"$T/cure" | tr -d ' ')" 1 '... with one command'
	sh -eu "$T/cure" >"$T/cured" 2>&1 || fail 'the command' "$(cat "$T/cured")"
	ask
	exits 0 '... after which it is known'
}
# no_cure: no command that accepts the key, nor what begins one
no_cure() {
	is "$(grep -c 'ssh-key\|>>' "$err")" 0 '... and no command accepts it'
}

# ---- unknown, changed, other type, right ----
for type in ed25519 ecdsa rsa; do
	server $type
	: >"$K"
	ask
	exits 2 "$type: unknown"
	says "the host key [a-z0-9-]* $(print_of $type | sed 's/+/[+]/g') is not known: if it is right: ssh-keyscan" \
	    '... is said'
	cure
	line $type >"$K"
	ask
	exits 0 "$type: right"
	rm "$K"
	ask
	exits 2 "$type: no known_hosts at all"
	cure
done
# changed TEXT: by the command it is right again, and other hosts stay
changed() {
	ask
	exits 2 "changed$1"
	says "the host key has changed: it is [a-z0-9-]* $(print_of "$new" | sed 's/+/[+]/g'), .* has $(print_of "$new-old" | sed 's/+/[+]/g'): if the device was reflashed: ssh-key" \
	    '... is said, with both fingerprints'
	cure
}
for new in ed25519 ecdsa; do
	server $new
	{ line $new-old; line rsa other; } >"$K"
	changed ": $new"
	is "$(grep -c ^other "$K")" 1 '... and other hosts stay'
done
new=ed25519
server ed25519
{ line ecdsa; line ed25519-old; } >"$K"
changed ', with one of another type'
line ed25519-old >"$K"
ssh-keygen -q -H -f "$K" >"$out" 2>&1
rm -f "$K.old"
changed ', host names hashed'

server rsa
line ed25519 >"$K"
ask
exits 2 'of another type'
says "the host key ssh-rsa $(print_of rsa | sed 's/+/[+]/g') is of another type than what is known for it: if it is right: ssh-keyscan" \
    '... is said'
cure
server ed25519 rsa ecdsa
for type in rsa ecdsa ed25519; do
	line $type >"$K"
	ask
	exits 0 "a server of three keys, known by $type"
done

server ed25519
: >"$K"
run remote-compile -I -c "$S/config" -a 127.0.0.1 -p "$D" -D "LocalHost:$port"
exits 2 'a name in capitals: unknown'
sed -n 's/.*: \(ssh-keyscan .*\)$/\1/p' "$err" >"$T/cure"
sh -eu "$T/cure" 2>/dev/null
run remote-compile -I -c "$S/config" -a 127.0.0.1 -p "$D" -D "LocalHost:$port"
exits 0 '... after the command it is known'

# ---- known_hosts elsewhere ----
cp "$S/config" "$S/plain"
G="$S/it's global"
config() {
	{ printf '%s\n' "$@"; cat "$S/plain"; } >"$S/config"
}
config "GlobalKnownHostsFile \"$G\""
: >"$K"
line ed25519 >"$G"
ask
exits 0 'known by the global file alone'
line ed25519-old >"$G"
changed ', in the global file'
: >"$K"
line rsa >"$G"
ask
exits 2 'of another type, in the global file'
cure
K="$S/my known' hosts"
config "UserKnownHostsFile \"$K\""
rm -f "$K"
ask
exits 2 'a path with blanks and quotes: unknown'
cure
line ed25519-old >"$K"
changed ' there'
K=$S/known_hosts

# ---- revoked ----
# revoked TEXT: 2, whatever else is known
revoked() {
	ask
	exits 2 "revoked: $1"
	says "the host key ssh-ed25519 $(print_of ed25519 | sed 's/+/[+]/g') is revoked: do not connect to this machine" \
	    '... is said'
	no_cure
}
config "GlobalKnownHostsFile \"$G\""
: >"$G"
mark="@revoked $(line ed25519)"
echo "$mark" >"$K"
revoked 'its line alone'
{ echo "$mark"; line ed25519; } >"$K"
revoked 'before a line that has it'
{ line ed25519; echo "$mark"; } >"$K"
revoked 'after a line that has it'
printf '%s' "$mark" >"$K"
revoked 'no newline at the end'
printf '  \t%s comment\r\n' "$mark" >"$K"
revoked 'blanks before, and what editors leave behind'
{ line ed25519; echo "@revoked * $(cut -d' ' -f1,2 "$S/ed25519.pub")"; } >"$K"
revoked 'for all hosts'
line ed25519 >"$K"
ssh-keygen -q -H -f "$K" >"$out" 2>&1
{ sed 's/^/@revoked /' "$K"; line ed25519; } >"$K.new"
mv "$K.new" "$K"
revoked 'host names hashed'
line ed25519 >"$K"
echo "$mark" >"$G"
revoked 'by the global file, known by the own one'
: >"$K"
revoked 'by the global file alone'
echo "$mark" >"$K"
line ed25519 >"$G"
revoked 'by the own file, known by the global one'
: >"$K"
: >"$G"
cp "$S/plain" "$S/config"
{ line ed25519; echo "@revoked $(line rsa)"; } >"$K"
ask
exits 0 'another key is revoked'
{ line ed25519; echo "#$mark"; } >"$K"
ask
exits 0 'a comment revokes nothing'

# ---- denied ----
line ed25519 >"$K"
ask -d "192.168.3.110 $(print_of ed25519)"
exits 2 'a denied key under an allowed address'
says "the host key $(print_of ed25519 | sed 's/+/[+]/g') is in DENY_DEVICES: it is another machine than its address says" \
    '... is said'
no_cure
: >"$K"
ask -d "$(print_of ed25519)	$(print_of rsa)"
exits 2 'denied, and not known'
no_cure
line ed25519 >"$K"
ask -d "$(print_of rsa)"
exits 0 'another key is denied'

# ---- in the middle of a run ----
python3 "$here/fabricate.py" ws 4 && cd ws || exit 2
rm -r compiled results/*_artifact.json ready-for-resources
ln -s "$S" ssh
: >"$S/ok"
cat >"$D/on-compile" <<EOF
: >"$S/begun"
while [ ! -e "$S/go" ]; do sleep 0.05; done
EOF
run_compile() {
	remote-compile -c "$S/config" -a 127.0.0.1 -p "$D" -P 0 -t $((20 * slack)) \
	    -D "127.0.0.1:$port" -f split -v v0 -r results one </dev/null
}
run_compile >"$out" 2>"$err" &
job=$!
wait_for 200 test -e "$S/begun"
kids=$(ssh_children)
server ed25519-old
# shellcheck disable=SC2086 # words
kill $kids
: >"$S/go"
wait "$job"
status=$?
exits 2 'the key changes in the middle of a run'
says 'the host key has changed' '... is said'
absent compiled/one.pkl '... nothing is taken from that machine'
server ed25519
run run_compile
exits 0 'the right one again'
is "$(compiles)" 1 '... its result is taken'

# ---- who may log in ----
ssh-keygen -q -t ed25519 -N '' -f "$S/stranger"
config "User $(id -un)" "IdentityFile $S/stranger"
mv "$S/id_ed25519" "$S/hidden"
ask
exits 2 'no key is accepted'
says "no key was accepted for $(id -un): ssh-copy-id -p $port $(id -un)@127.0.0.1\$" \
    '... with the command'
# locked TEXT OPTION...: a key with a passphrase, on a terminal: skipped
locked() {
	text=$1
	shift
	rm -f "$S/locked" "$S/locked.pub"
	ssh-keygen -q "$@" -N secret -f "$S/locked"
	cp "$S/locked.pub" "$S/authorized_keys"
	config "IdentityFile $S/locked"
	run python3 "$here/on-terminal.py" 20 remote-compile -I \
	    -c "$S/config" -a 127.0.0.1 -p "$D" -t $((10 * slack)) -D "127.0.0.1:$port"
	exits 2 "$text: is skipped"
	prints 'no key was accepted' '... and said'
	is "$(grep -ic 'passphrase\|password' "$out")" 0 '... without a prompt'
}
locked 'a key with a passphrase' -t ed25519
locked 'one in the older form' -t rsa -b 2048 -m PEM
mv "$S/hidden" "$S/id_ed25519"
if command -v ssh-agent >/dev/null; then
	eval "$(ssh-agent -s)" >/dev/null
	later "$SSH_AGENT_PID"
	cp "$S/stranger" "$S/for-agent"
	ssh-add -q "$S/for-agent" 2>/dev/null
	rm -f "$S/for-agent"
	cp "$S/stranger.pub" "$S/authorized_keys"
	grep -v IdentityAgent "$S/plain" >"$S/config"
	ask
	exits 0 "the agent's key"
	ssh-add -q -D 2>/dev/null
	for n in 1 2 3; do
		ssh-keygen -q -t ed25519 -N '' -f "$S/agent-$n"
		ssh-add -q "$S/agent-$n" 2>/dev/null
	done
	cp "$S/id_ed25519.pub" "$S/authorized_keys"
	server ed25519 -o MaxAuthTries=2
	ask
	exits 2 'an agent with too many keys'
	says 'it was offered more keys than it looks at: IdentityAgent none' \
	    '... is said'
	cp "$S/plain" "$S/config"
	ask
	exits 0 '... and without the agent it goes'
	server ed25519
	unset SSH_AUTH_SOCK
fi

# ---- a machine of bad manners ----
cp "$S/id_ed25519.pub" "$S/authorized_keys"
cp "$S/plain" "$S/config"
for word in unfit again note tell; do
	printf 'echo mr-have; read -r x; echo ready; printf "%s \\033]0;x\\007\\302\\233y\\n"; read -r x; echo end\n' \
	    "$word" >"$S/rude"
	server ed25519 -o "ForceCommand=sh $S/rude"
	run remote-compile -S -c "$S/config" -a 127.0.0.1 -p "$D" -t $((10 * slack)) \
	    -D "127.0.0.1:$port" </dev/null
	is "$(cat "$out" "$err" | grep -c ']0;x') $(cat "$out" "$err" |
	    tr -d '\n -~' | wc -c | tr -d ' ')" '1 0' \
	    "$word: no escape reaches the terminal"
done
server ed25519

# ---- -c stands for all of ~/.ssh ----
cp "$S/id_ed25519.pub" "$S/authorized_keys"
cp "$S/plain" "$S/config"
home=$(getent passwd "$(id -u)" | cut -d: -f6)
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
	for d in with without; do
		rm -f "$S/known_hosts"
		line ed25519 >"$S/known_hosts"
		[ $d = with ] || grep -v 'File' "$S/plain" >"$S/config"
		strace -f -e trace=%file -o "$T/trace" remote-compile -I \
		    -c "$S/config" -a 127.0.0.1 -p "$D" -D "127.0.0.1:$port" \
		    >"$out" 2>"$err" </dev/null
		status=$?
		exits 0 "followed by strace, $d paths in the configuration"
		is "$(grep -F "\"$home/.ssh" "$T/trace")" '' \
		    '... ~/.ssh is not looked at'
		is "$(grep -F '"/etc/ssh/ssh_config' "$T/trace")" '' \
		    '... nor is the configuration of all users'
	done
fi
finished
