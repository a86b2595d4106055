# Sourced by the tests of lfs-fetch, after lib.sh.
# shellcheck shell=sh
HOME=$T GIT_CONFIG_NOSYSTEM=1
export HOME GIT_CONFIG_NOSYSTEM
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy

# await FILE: until it is there, 30 s at most
await() {
	n=0
	while [ ! -e "$1" ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n + 1)); done
	[ -e "$1" ] || { echo "Bail out! no $1"; exit 2; }
}
# serve DIR [CERT KEY]: the server that misbehaves; $url, and $tls with a key
serve() {
	mkdir -p "$1"
	# shellcheck disable=SC2154 # here: of lib.sh
	python3 "$here/lfs-server.py" "$@" &
	later $!
	await "$1/port"
	port=$(cat "$1/port") url=http://127.0.0.1:$(cat "$1/port")
	[ $# -eq 1 ] || tls=https://127.0.0.1:$(cat "$1/port-tls")
	export port url tls
}
# object SIZE: makes a random object on the server, prints its oid
object() {
	head -c "$1" /dev/urandom >srv/new
	oid_new=$(sum srv/new)
	mv srv/new "srv/$oid_new"
	echo "$oid_new"
}
# pointer OID: its pointer
pointer() {
	printf 'version https://git-lfs.github.com/spec/v1\n'
	printf 'oid sha256:%s\nsize %d\n' "$1" "$(wc -c <"srv/$1")"
}
# stored OID [STORE]: the name of a stored object
stored() {
	printf '%s/objects/%.2s/%s/%s\n' "${2-store}" "$1" \
	    "$(printf %.4s "$1" | tail -c 2)" "$1"
}
# gets REGEX: how many requests of the server's log match
gets() { grep -Ec -- "$1" srv/log || :; }
