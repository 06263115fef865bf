#!/bin/bash
# Names, MTUs, addresses, neighbours and namespaces change under traffic:
# between two nodes, and within the one that changes. Traffic continues, or ends
# with a status.
# kernels: 6.12 newest uml
# timeout: 400

source "$(dirname "$0")/lib.sh"

debug_kernel && patience=60 || patience=30

# True if all QPs are connected: four between the nodes and four within h1
connected() {
	local qps
	qps=$({ h1 rdma resource show qp; h2 rdma resource show qp; } |
		grep 'comm verify')
	(( $(grep -c 'state RTS' <<<"$qps") == 8 )) &&
		! finds -E 'state (RESET|INIT|RTR)' <<<"$qps"
}
ended() { ! kill -0 "$1" 2>/dev/null; }

# start NAME: messages that take some seconds, because the receivers are slow.
# Retries last 8 s. $traffic has their processes.
start() {
	local case="op=mix size=20000 vary=1 qps=2 both=1 timeout=18 count=200 slow=10000 limit=60"
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "$1-hosts: $case" \
		>"$scratch/hosts" 2>&1 &
	traffic=($!)
	verify -f 4 -a "h1:$dev1" -b "h1:$dev1" "$1-host: $case" \
		>"$scratch/host" 2>&1 &
	traffic+=($!)
	until_true 20 connected
	nap 0.5
}

# goes_on NAME COMMAND: the change costs the programs only time.
goes_on() {
	local status=0 pid
	start "$1"
	"$2"
	for pid in "${traffic[@]}"; do wait "$pid" || status=1; done
	cat "$scratch/hosts" "$scratch/host"
	return $status
}

# ends NAME COMMAND: the programs end by themselves, with success or failure.
ends() {
	local pid
	start "$1"
	"$2"
	for pid in "${traffic[@]}"; do until_true $patience ended "$pid"; done
	cat "$scratch/hosts" "$scratch/host"
	not grep -E 'killed|signal' "$scratch/hosts" "$scratch/host"
}

works() {
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		'works: op=mix size=20000 count=20'
}

# Names, and MTUs that packets of path MTU 1024 fit
harmless() {
	local mtu
	ip -n h1 link set eth0 name eth9
	nap 0.2
	ip -n h1 link set eth9 name eth0
	h1 rdma dev set "$dev1" name "${driver}9"
	nap 0.2
	h1 rdma dev set "${driver}9" name "$dev1"
	for mtu in 1300 9000 1500; do
		ip -n h1 link set eth0 mtu $mtu
		nap 0.2
	done
}

# For a while the packets do not fit.
small_mtu() {
	ip -n h1 link set eth0 mtu 800
	nap 0.5
	ip -n h1 link set eth0 mtu 1500
}

# ICMP messages, which anybody may forge, say that packets do not fit: routes
# remember that for ten minutes.
too_big() {
	h2 python3 - $ip1 $ip2 <<-'END'
		import socket, struct, sys
		def summed(data):
		    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
		    total = (total >> 16) + (total & 0xffff)
		    return struct.pack("!H", ~(total + (total >> 16)) & 0xffff)
		here, there = map(socket.inet_aton, sys.argv[1:3])
		quoted = struct.pack("!BBHHHBBH4s4sHHHH", 0x45, 0, 1100, 1,
		                     0x4000, 64, 17, 0, here, there, 4791,
		                     4791, 1080, 0)
		head, rest = struct.pack("!BB", 3, 4), struct.pack("!HH", 0, 800)
		with socket.socket(socket.AF_INET, socket.SOCK_RAW,
		                   socket.IPPROTO_ICMP) as icmp:
		    icmp.sendto(head + summed(head + b"\0\0" + rest + quoted) + rest
		                + quoted, (sys.argv[1], 0))
	END
	until_true 5 eval '[[ $(h1 ip route get $ip2) == *"mtu 800"* ]]'
}

without_address() {
	ip -n h1 address del $ip1/24 dev eth0
	nap 0.5
	ip -n h1 address add $ip1/24 dev eth0
}

move_netdev() {
	ip netns add h3
	ip -n h1 link set eth0 netns h3
}

# Nobody answers ARP, as where ARP packets are lost: acknowledgments tell that
# the peer's link layer address is right. A neighbour that nothing confirms is
# given up after 3.4 s here.
without_arp() {
	local node name=ipv4.neigh.eth0 sent
	for node in h1 h2; do
		$node sysctl -qw net.$name.base_reachable_time_ms=1000 \
			net.$name.delay_first_probe_time=1 \
			net.$name.retrans_time_ms=300
	done
	h2 ibv_rc_pingpong -d "$dev2" -g 1 -n 100000000 &
	until_true 20 listening h2 18515
	h1 ibv_rc_pingpong -d "$dev1" -g 1 -n 100000000 $ip2 &
	sent=$(counter "$dev1" sent_pkts h1)
	until_true 20 sends_after "$sent"
	for node in h1 h2; do
		$node nft 'table netdev silence { chain in { type filter hook ingress device eth0 priority 0; ether type arp drop; }; }'
	done
	nap 5
	h1 ip neigh show to $ip2
	h2 ip neigh show to $ip1
	sent=$(counter "$dev1" sent_pkts h1)
	until_true 2 sends_after "$sent"
}
sends_after() { (( $(counter "$dev1" sent_pkts h1) > $1 + 20 )); }

hosts
check without-arp 60 without_arp
hosts
check names-and-mtus 60 goes_on harmless harmless
check small-mtu 60 goes_on small-mtu small_mtu
check too-big 60 eval 'too_big; goes_on too-big true'
ip -n h1 route flush cache
check address-gone 60 goes_on address without_address
check works 60 works
check netdev-moved 90 ends moved move_netdev
check all-gone 30 until_true 20 eval \
	'[[ ! $(h1 rdma resource show qp) =~ comm\ verify ]]'
check unload 30 eval 'ip netns del h3; arx-hosts down && rmmod arx'
