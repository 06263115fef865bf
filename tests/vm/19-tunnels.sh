#!/bin/bash
# Devices on IP tunnels: WireGuard, tun, GRE, IPIP and SIT. Their GIDs are the
# addresses, and follow them. Nodes without IPv6.
# kernels: 6.12 newest uml
# timeout: 500

source "$(dirname "$0")/lib.sh"
modprobe -a "$driver" wireguard tun ip_gre ip6_gre ipip sit ip6_tunnel \
	2>/dev/null

# gids h1|h2 DEVICE: as in sysfs, in one line
gids() {
	"$1" bash -c 'cd "/sys/class/infiniband/$0/ports/1/gids" &&
		grep -hv 0000:0000:0000:0000:0000:0000:0000:0000 * | sort -u | xargs' "$2"
}
# has_gid h1|h2 DEVICE END: a GID that ends so
has_gid() { [[ " $(gids "$1" "$2") " == *"$3 "* ]]; }

make_wg() {
	local n key=(x "$(wg genkey)" "$(wg genkey)")
	for n in 1 2; do
		ip -n h$n link add t0 mtu 4300 type wireguard
		ip netns exec h$n wg set t0 listen-port 5000 private-key \
			<(echo "${key[n]}") \
			peer "$(wg pubkey <<<"${key[3 - n]}")" endpoint \
			192.0.2.$((3 - n)):5000 \
			allowed-ips 203.0.113.0/24,fd01::/64
	done
}

# of_type PREFIX TYPE...: a tunnel between the nodes' addresses
of_type() {
	local n
	for n in 1 2; do
		ip -n h$n link add t0 mtu 4300 type "${@:2}" local "$1$n" \
			remote "$1$((3 - n))" ttl 64
	done
}
make_gre() { of_type 192.0.2. gre; }
make_ipip() { of_type 192.0.2. ipip; }
make_sit() { of_type 192.0.2. sit; }
make_ip6gre() { of_type fd00:: ip6gre; }
make_ip6tnl() { of_type fd00:: ip6tnl mode any; }

# Two tun netdevs; a program carries packets from one to the other.
make_tun() {
	python3 - <<-'END' &
	import fcntl, os, select, struct
	def tun(netns):
	    fd = os.open(f'/run/netns/{netns}', os.O_RDONLY)
	    os.setns(fd, os.CLONE_NEWNET)
	    tun = os.open('/dev/net/tun', os.O_RDWR)
	    fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH22x', b't0', 0x1001))
	    return tun
	a, b = tun('h1'), tun('h2')
	while True:
	    for fd in select.select([a, b], [], [])[0]:
	        data = os.read(fd, 65536)
	        try:
	            os.write(b if fd == a else a, data)
	        except OSError:		# a netdev that is down
	            pass
	END
	carrier=$!
	until_true 20 ip -n h2 link show t0
	local n
	for n in 1 2; do ip -n h$n link set t0 mtu 4300; done
}

# The first packets of WireGuard wait for its handshake.
opens() {
	local peer=203.0.113.2
	[[ $1 == *v4* ]] || peer=fd01::2
	until_true 20 ip netns exec h1 ping -c 1 -W 2 "$peer"
}

# up FAMILIES: addresses and devices
up() {
	local n
	for n in 1 2; do
		ip -n h$n link set t0 up
		ip netns exec h$n rdma link add ${driver}t$n type "$driver" \
			netdev t0
		if [[ $1 == *v4* ]]; then
			ip -n h$n address add 203.0.113.$n/24 dev t0
			until_true 10 has_gid h$n ${driver}t$n "ffff:cb00:710$n"
		fi
		if [[ $1 == *v6* ]]; then
			ip -n h$n address add fd01::$n/64 dev t0 nodad
			until_true 10 has_gid h$n ${driver}t$n \
				"fd01:0000:0000:0000:0000:0000:0000:000$n"
		fi
	done
}

# A program carries the packets of tun, and waits for the CPU. The default
# timeout of a QP is 67 ms, this one half a second.
carries() {
	verify -f 4 -a "h1:${driver}t1" -b "h2:${driver}t2" \
		"$1-rc: op=mix gid=$2 size=300,65537 count=12 both=1 timeout=17" \
		"$1-ud: qp=ud gid=$2 op=send_imm size=1000 count=12"
}

# The GIDs follow the addresses.
addresses_follow() {
	ip -n h1 address add fd01::9/128 dev t0
	until_true 10 has_gid h1 ${driver}t1 0000:0009
	ip -n h1 address del fd01::9/128 dev t0
	until_true 10 not has_gid h1 ${driver}t1 0000:0009
}

# goes KIND: the netdev takes its device along
goes() {
	local n
	if [[ $1 == tun ]]; then
		kill $carrier
		wait $carrier || true
	else
		ip -n h1 link del t0
		ip -n h2 link del t0
	fi
	for n in 1 2; do
		until_true 20 not eval \
			"ip netns exec h$n rdma link show | finds ${driver}t$n"
	done
}

# True if the tunnel has carried packets since the count in $scratch/sent.
by_netdev() {
	local before
	before=$(<"$scratch/sent")
	h1 cat /sys/class/net/t0/statistics/tx_packets >"$scratch/sent"
	(( $(<"$scratch/sent") - before > 100 ))
}

# works KIND FAMILIES
works() {
	local n
	for n in 1 2; do ip -n h$n link del t0 2>/dev/null || true; done
	make_"$1"
	up "$2"
	opens "$2"
	h1 cat /sys/class/net/t0/statistics/tx_packets >"$scratch/sent"
	carries "$1" "$2"
	by_netdev
	[[ $2 == v4 ]] || addresses_follow
	carries "$1-again" "$2"
	goes "$1"
}

hosts --mtu 9000
kinds='wg tun gre ipip sit ip6gre ip6tnl'
full || kinds='wg tun sit ip6gre'
! brief || kinds='wg tun'
! debug_kernel || kinds=tun
for kind in $kinds; do
	case $kind in
	ipip) family=v4;;
	sit) family=v6;;
	*) family=v4,v6;;
	esac
	check $kind 60 works $kind $family
done
check tunnels-unload 30 eval 'arx-hosts down && rmmod "$driver"'

# ---- nodes without IPv6 ----

index() {
	"$1" ibv_devinfo -v -d "$driver${1#h}" |
		sed -nE "s/.*GID\[ *([0-9]+)\]:[[:space:]]*::ffff:.*v2/\1/p" |
			head -n 1
}

# verbs, rdma_cm and pingpong by IPv4; what IPv6 is asked for is refused
ipv4_alone() {
	local n
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"$1-rc: op=mix size=20000 count=20 both=1" \
		"$1-ud: qp=ud op=send count=20 size=1000"
	verify -f 4 -a "h1:$dev1" -b "h1:$dev1" \
		"$1-one-node: op=mix size=20000 count=20"
	by_packets 5 pair cm "rping -s -a $ip1 -C 5 -v" \
		"rping -c -a $ip1 -C 5 -v"
	by_packets 5 pair 18515 \
		"ibv_rc_pingpong -e -n 200 -d $dev1 -g $(index h1)" \
		"ibv_rc_pingpong -e -n 200 -d $dev2 -g $(index h2) $ip1"
	not timeout 20 ip netns exec h2 rping -c -a fd00::1 -C 1
	# GID 0 is made from the MAC address. A program that takes it gets an
	# error in time.
	pair 18515 "! timeout 20 ibv_rc_pingpong -d $dev1 -g 0 -n 5" \
		"! timeout 20 ibv_rc_pingpong -d $dev2 -g 0 -n 5 $ip1"
}

# without_ipv6 NAME SYSCTL...: nodes whose netdevs have it set
without_ipv6() {
	local n
	modprobe "$driver"
	bare_nodes
	for n in 1 2; do
		ip netns exec h$n sysctl -qw "${@:2}"
		ip -n h$n link set lo up
		ip -n h$n link set eth0 up
		ip -n h$n address add 192.0.2.$n/24 dev eth0
		ip netns exec h$n rdma link add $driver$n type "$driver" \
			netdev eth0
		until_true 10 has_gid h$n $driver$n "ffff:c000:020$n"
		[[ ! $(ip -n h$n -6 address show dev eth0) ]]
	done
	ipv4_alone "$1"
}
without_all() {
	without_ipv6 without-ipv6 net.ipv6.conf.{all,default}.disable_ipv6=1
}
without_one() {
	without_ipv6 eth0-without-ipv6 net.ipv6.conf.eth0.disable_ipv6=1
}

brief || debug_kernel || check without-ipv6 60 without_all
arx-hosts down
check eth0-without-ipv6 60 without_one
# It comes back.
ipv6_comes() {
	ip netns exec h1 sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0
	ip netns exec h2 sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0
	ip -n h1 address add fd00::1/64 dev eth0 nodad
	ip -n h2 address add fd00::2/64 dev eth0 nodad
	until_true 10 has_gid h1 "$dev1" 0000:0001
	until_true 10 has_gid h2 "$dev2" 0000:0002
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		'ipv6-again: gid=v6 op=mix size=20000 count=20'
}
check ipv6-comes 30 ipv6_comes
arx-hosts down
