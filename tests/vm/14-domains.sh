#!/bin/bash
# Where the addresses of a device are: on a macvlan or ipvlan in another network
# namespace, in VRFs.
# kernels: 6.12 newest
# timeout: 400

source "$(dirname "$0")/lib.sh"
modprobe -a "${driver/rxe/rdma_rxe}" macvlan ipvlan vrf rdma_ucm 2>/dev/null

on() { local netns=$1; shift; ip netns exec "$netns" "$@"; }

# gid NETNS DEVICE ADDRESS NETDEV: its index
gid() {
	on "$1" bash -c 'cd "/sys/class/infiniband/$0/ports/1" || exit
		for file in $(grep -l "$1" gids/*); do
			[[ $(<"gid_attrs/ndevs/${file#gids/}") != "$2" ]] || { echo "${file#gids/}"; exit; }
		done
		exit 1' "$2" "$(printf 'ffff:%02x%02x:%02x%02x' ${3//./ })" "$4"
}
has_gid() { [[ $(gid "$@") ]]; }
# sees_gid NETNS DEVICE ADDRESS NETDEV: or says what there is
sees_gid() {
	until_true 10 has_gid "$@" ||
		{
			on "$1" grep -H . \
				/sys/class/infiniband/"$2"/ports/1/gid_attrs/ndevs/{0,1,2,3,4,5}
			return 1
		}
}

# end NETNS DEVICE ADDRESS NETDEV: a place for pingpong
end() { echo "$1" "$2" "$(gid "$@")" "$3"; }
# pingpong rc|uc|ud SERVER CLIENT: ends, as end prints them
pingpong() {
	local program=ibv_$1_pingpong server client pid
	read -ra server <<<"$2"
	read -ra client <<<"$3"
	on "${server[0]}" timeout 20 "$program" -d "${server[1]}" \
		-g "${server[2]}" ${4-} &
	pid=$!
	until_true 10 eval \
		"[[ \$(ip netns exec ${server[0]} ss -Hltn 'sport = :18515') ]]"
	on "${client[0]}" timeout "${5-20}" "$program" -d "${client[1]}" \
		-g "${client[2]}" "${server[3]}" ${4-} ||
		{ kill $pid; return 1; }
	wait $pid
}
pingpongs() {
	local service
	for service in rc $(brief || echo uc) ud; do
		pingpong $service "$@" '-n 50 -c'
	done
}
rping_in() {
	on "$1" timeout 20 rping -s -a "$2" -C 10 -V &
	local pid=$!
	until_true 10 eval "[[ \$(ip netns exec $1 rdma resource show cm_id) == *'state LISTEN'* ]]"
	on "$3" timeout 20 rping -c -a "$2" -C 10 -V >/dev/null
	wait $pid
}

# ---- a container with a macvlan or an ipvlan uses the node's device ----

shared_hosts() {
	arx-hosts down
	rdma system set netns shared
	local n
	bare_nodes
	for n in 1 2; do
		ip -n h$n link set lo up
		ip -n h$n link set eth0 up
		ip -n h$n address add 192.0.2.$n/24 dev eth0
		on h$n rdma link add $driver$n type $driver netdev eth0
	done
}
# pod NAME ADDRESS KIND...: a container's namespace
pod() {
	local name=$1 address=$2
	shift 2
	ip netns add "$name"
	ip -n h1 link add link eth0 name pod0 mtu 9000 type "$@"
	ip -n h1 link set pod0 netns "$name"
	ip -n "$name" link set lo up
	ip -n "$name" link set pod0 up
	ip -n "$name" address add "$address/24" dev pod0
	sees_gid "$name" "${driver}1" "$address" pod0
}
pod_works() {
	local there
	there=$(end h2 "${driver}2" 192.0.2.2 eth0)
	pingpongs "$(end "$1" "${driver}1" "$2" pod0)" "$there"
	pingpong rc "$there" "$(end "$1" "${driver}1" "$2" pod0)" \
		'-n 50 -s 100000 -c'
	rping_in "$1" "$2" h2
	rping_in h2 192.0.2.2 "$1"
}
# Two containers of one node talk through the netdevs they were given, and one
# talks to itself.
pods_work() {
	local a b runs
	a=$(end p1 "${driver}1" 192.0.2.3 pod0)
	b=$(end p2 "${driver}1" 192.0.2.4 pod0)
	runs=$(counter "${driver}1" loopback_runs h1)
	pingpongs "$a" "$b"
	rping_in p1 192.0.2.3 p2
	(( $(counter "${driver}1" loopback_runs h1) == runs )) ||
		{ echo "not by packets"; return 1; }
	pingpong rc "$a" "$a" '-n 200 -c'
	(( $(counter "${driver}1" loopback_runs h1) > runs )) ||
		{ echo "to itself by packets"; return 1; }
}
# The node's own addresses work as before.
node_works() {
	pingpongs "$(end h1 "${driver}1" 192.0.2.1 eth0)" \
		"$(end h2 "${driver}2" 192.0.2.2 eth0)"
}
no_gid() { ! has_gid h1 "${driver}1" "$@"; }
# A container ends under traffic: the namespace is not kept, and neither is the
# device.
pod_ends() {
	local pid
	on p1 ibv_rc_pingpong -d "${driver}1" \
		-g "$(gid p1 "${driver}1" 192.0.2.3 pod0)" -n 10000000 &
	pid=$!
	until_true 10 eval \
		"[[ \$(ip netns exec p1 ss -Hltn 'sport = :18515') ]]"
	on h2 ibv_rc_pingpong -d "${driver}2" \
		-g "$(gid h2 "${driver}2" 192.0.2.2 eth0)" 192.0.2.3 \
		-n 10000000 &
	sleep 1
	ip -n p1 link del pod0
	until_true 10 no_gid 192.0.2.3 pod0
	kill -KILL $pid 2>/dev/null || true
	ip netns del p1
	until_true 10 not eval 'ip link show | grep -q pod0'
	node_works
}
# It moves on to another container, which has other addresses.
pod_moves() {
	ip netns add p3
	ip -n p2 link set pod0 netns p3
	ip -n p3 link set lo up
	ip -n p3 link set pod0 up
	ip -n p3 address add 192.0.2.5/24 dev pod0
	ip netns del p2
	sees_gid p3 "${driver}1" 192.0.2.5 pod0
	pod_works p3 192.0.2.5
	ip -n p3 link set pod0 netns h1
	ip netns del p3
	ip -n h1 link set pod0 up
	ip -n h1 address add 192.0.2.6/24 dev pod0
	sees_gid h1 "${driver}1" 192.0.2.6 pod0
	ip -n h1 link del pod0
	node_works
}
# Somebody has the port there: the address is not offered, and the log says so.
port_taken() {
	ip netns add p4
	on p4 python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", 4791))
time.sleep(600)' &
	until_true 10 eval "[[ \$(ip netns exec p4 ss -Hlun 'sport = :4791') ]]"
	ip -n h1 link add link eth0 name pod0 type macvlan mode bridge
	ip -n h1 link set pod0 netns p4
	ip -n p4 link set pod0 up
	ip -n p4 address add 192.0.2.7/24 dev pod0
	until_true 10 eval \
		'dmesg | grep -q "pod0: arx: UDP port 4791 is in use"'
	no_gid 192.0.2.7 pod0
	kill $!
	ip netns del p4
}
# A VLAN of the node's netdev is in a container, which has joined a group there.
# The node is a member of the group, too, but not on this VLAN.
joined() { h1 rdma resource show qp type UD | finds 'state RTS.*mckey'; }
vlan_multicast() {
	local member pid
	ip netns add p6
	ip -n h1 link add link eth0 name pod0 type vlan id 5
	ip -n h1 link set pod0 netns p6
	ip -n p6 link set pod0 up
	ip -n p6 address add 192.0.5.1/24 dev pod0
	ip -n h2 link add link eth0 name vlan5 up type vlan id 5
	ip -n h2 address add 192.0.5.2/24 dev vlan5
	sees_gid p6 "${driver}1" 192.0.5.1 pod0
	on p6 python3 -c '
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
             socket.inet_aton("239.1.2.3") + socket.inet_aton("192.0.5.1"))
time.sleep(600)' &
	member=$!
	ip netns exec h1 mckey -m 239.1.2.3 -b 192.0.2.1 -C 5 &
	pid=$!
	until_true 8 joined
	h2 timeout 20 mckey -m 239.1.2.3 -b 192.0.5.2 -C 5 -s
	# It still waits for the first one.
	nap 0.5
	kill $pid
	not wait $pid
	kill $member
	ip -n h2 link del vlan5
	ip netns del p6
}
pods_down() {
	ip netns del p5
	arx-hosts down
	until_true 10 eval '[[ ! $(ip netns list) ]]' || ip netns list
	rmmod "$driver"
	rdma system set netns exclusive
	modprobe "$driver"
}

check shared 30 shared_hosts
check macvlan 30 pod p1 192.0.2.3 macvlan mode bridge
check macvlan-works 60 by_packets 100 pod_works p1 192.0.2.3
check macvlan-second 30 pod p2 192.0.2.4 macvlan mode bridge
check macvlan-to-macvlan 60 pods_work
check macvlan-node 60 node_works
check macvlan-ends 60 pod_ends
check macvlan-moves 90 pod_moves
[[ $driver != arx ]] || check macvlan-port-taken 30 port_taken
check ipvlan 30 pod p5 192.0.2.8 ipvlan mode l2
check ipvlan-works 60 by_packets 100 pod_works p5 192.0.2.8
check vlan-multicast 60 vlan_multicast
check pods-down 30 pods_down

# ---- VRFs: sockets and addresses of their own ----

# vrf HOST NAME TABLE NETDEV ADDRESS
vrf() {
	ip -n "$1" link show "$2" >/dev/null 2>&1 ||
		ip -n "$1" link add "$2" type vrf table "$3"
	ip -n "$1" link set "$2" up
	ip -n "$1" link set "$4" master "$2"
	ip -n "$1" link set "$4" up
	ip -n "$1" address replace "$5/24" dev "$4"
}
# An RDMA device is there before its netdev is put in the VRF, or after.
vrf_hosts() {
	hosts --mtu 9000
	vrf h1 red 10 eth0 192.0.2.1
	h2 rdma link del "${driver}2"
	vrf h2 red 10 eth0 192.0.2.2
	h2 rdma link add "${driver}2" type "$driver" netdev eth0
	ip -n h1 address replace fd00::1/64 dev eth0 nodad
	ip -n h2 address replace fd00::2/64 dev eth0 nodad
	sees_gid h1 "${driver}1" 192.0.2.1 eth0
	sees_gid h2 "${driver}2" 192.0.2.2 eth0
	[[ $(h1 sysctl -n net.ipv4.udp_l3mdev_accept) == 0 ]]
}
rping_in_vrf() {
	h1 timeout 20 rping -s -a 192.0.2.1 -C 10 -V &
	local pid=$!
	until_true 10 listening h1 cm
	h2 timeout 20 rping -c -a 192.0.2.1 -I 192.0.2.2 -C 10 -V >/dev/null
	wait $pid
}
multicast_in_vrf() {
	h1 timeout 20 mckey -m 239.1.2.3 -b 192.0.2.1 -C 5 &
	local pid=$!
	until_true 20 joined
	h2 timeout 20 mckey -m 239.1.2.3 -b 192.0.2.2 -C 5 -s
	wait $pid
}
# A second pair of netdevs in another VRF, with the same addresses, and one that
# only carries what pingpong tells its peer.
second_vrf() {
	ip link add eth1 mtu 9000 netns h1 type veth peer name eth1 mtu 9000 \
		netns h2
	ip link add eth2 netns h1 type veth peer name eth2 netns h2
	local n
	for n in 1 2; do
		vrf h$n blue 20 eth1 192.0.2.$n
		ip -n h$n address add 198.51.100.$n/24 dev eth2
		ip -n h$n link set eth2 up
		on h$n rdma link add "${driver}b$n" type "$driver" netdev eth1
		sees_gid h$n "${driver}b$n" 192.0.2.$n eth1
	done
}
# place HOST red|blue ADDRESS-TO-CALL
place() {
	local n=${1#h}
	case $2 in
	red) echo "$1 $driver$n $(gid "$1" "$driver$n" 192.0.2.$n eth0) $3";;
	blue)
		echo "$1 ${driver}b$n $(gid "$1" "${driver}b$n" 192.0.2.$n eth1) $3"
		;;
	esac
}
apart() {
	local service
	pingpongs "$(place h1 red 198.51.100.1)" "$(place h2 red 198.51.100.2)"
	pingpongs "$(place h1 blue 198.51.100.1)" \
		"$(place h2 blue 198.51.100.2)"
	pingpong rc "$(place h1 red 127.0.0.1)" "$(place h1 red 127.0.0.1)" \
		'-n 50 -c'
	for service in rc $(! full || echo ud); do
		not across $service "$(place h1 red 198.51.100.1)" \
			"$(place h2 blue 198.51.100.2)"
		not across $service "$(place h1 red 127.0.0.1)" \
			"$(place h1 blue 127.0.0.1)"
	done
}
# across SERVICE SERVER CLIENT: as pingpong, in the time that a message at most
# takes
across() { pingpong "$@" "-n 10" 3; }
# Out of the VRF and back
vrf_leaves() {
	ip -n h1 link set eth0 nomaster
	ip -n h2 link set eth0 nomaster
	ip -n h1 address replace fd00::1/64 dev eth0 nodad
	ip -n h2 address replace fd00::2/64 dev eth0 nodad
	sees_gid h1 "${driver}1" 192.0.2.1 eth0
	sees_gid h2 "${driver}2" 192.0.2.2 eth0
	verify -f 4 -a "h1:${driver}1" -b "h2:${driver}2" \
		'left: op=mix size=20000 count=12'
	vrf h1 red 10 eth0 192.0.2.1
	vrf h2 red 10 eth0 192.0.2.2
	verify -f 4 -a "h1:${driver}1" -b "h2:${driver}2" \
		'back: op=mix size=20000 count=12'
	ip -n h1 link del red
	ip -n h2 link del red
	verify -f 4 -a "h1:${driver}1" -b "h2:${driver}2" \
		'gone: op=mix size=20000 count=12'
}

check vrf 40 vrf_hosts
verify -f 4 -a "h1:${driver}1" -b "h2:${driver}2" \
	'vrf-rc: op=send,write,read gid=v4,v6,ll size=300,65537 count=12 both=1' \
	'vrf-ud: qp=ud gid=v4,v6,ll op=send_imm size=1000 count=12' ||
	(( ++failures ))
verify -f 4 -a "h1:${driver}1" -b "h1:${driver}1" \
	'vrf-one-host: op=mix gid=v4,v6 size=20000 count=12' || (( ++failures ))
check vrf-rping 40 by_packets 10 rping_in_vrf
check vrf-multicast 40 multicast_in_vrf
check vrf-second 30 second_vrf
check vrf-apart 90 apart
check vrf-leaves 60 vrf_leaves
check vrf-unload 30 eval 'arx-hosts down && rmmod "$driver"'
