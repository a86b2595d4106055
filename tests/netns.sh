# Sourced after ssh.sh: hosts of their own, in network namespaces without a
# default route. The client's is $ns; a host NAME has $ns-NAME, and the link
# between them has the same names. Root on Linux only: netns_can tells.
# shellcheck shell=sh source=tests/ssh.sh disable=SC2154
ns=mr$$
netns=

netns_can() {
	[ "$(uname)" = Linux ] && [ "$(id -u)" -eq 0 ] &&
	    ip netns add "$ns" 2>/dev/null || return
	netns=$ns
	trap 'netns_down; finish' EXIT
	ip -n "$ns" link set lo up
}
# a server is stopped before its network goes
netns_down() {
	for n in $netns; do
		ip netns pids "$n" 2>/dev/null | while read -r p; do
			kill "$p" 2>/dev/null || :
		done
		ip netns del "$n"
	done
}
# netns_host NAME IPV4 IPV6: a host, one link away from the client
netns_host() {
	ip netns add "$ns-$1" || return
	netns="$netns $ns-$1"
	ip -n "$ns" link add "$ns-$1" type veth peer name lan netns "$ns-$1"
	# nobody speaks of its own accord: no address is made, none is sought
	for n in "$ns $ns-$1" "$ns-$1 lan"; do
		ip netns exec "${n% *}" sh -c "cd /proc/sys/net/ipv6/conf/'${n#* }' &&
		    echo 1 >addr_gen_mode && echo 0 >accept_ra" 2>/dev/null
	done
	ip -n "$ns-$1" link set lo up
	ip -n "$ns-$1" addr add "$2" peer 192.168.3.1 dev lan
	ip -n "$ns-$1" addr add "$3/64" dev lan nodad
	ip -n "$ns" addr add 192.168.3.1 peer "$2" dev "$ns-$1"
	ip -n "$ns" addr add fd00:3::1/128 dev "$ns-$1" nodad
	ip -n "$ns-$1" link set lan up
	ip -n "$ns" link set "$ns-$1" up
	ip -n "$ns" route add "$3" dev "$ns-$1"
}
# inside COMMAND...: by the client, whose /etc/hosts is the file hosts
inside() {
	# shellcheck disable=SC2016 # words of the other sh
	ip netns exec "$ns" sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' \
	    "$T/hosts" "$@"
}
# packets NAME: how many of IP have come to the host, those to all hosts left
# out: neighbours find each other by them
packets() {
	ip netns exec "$ns-$1" cat /proc/net/snmp /proc/net/snmp6 | awk '
	/^Ip: [0-9]/ { n += $4 }
	$1 == "Ip6InReceives" { n += $2 }
	$1 == "Ip6InMcastPkts" { n -= $2 }
	END { print n }'
}
