#!/bin/bash
# Packets of a QP do not overtake each other when its program moves between
# CPUs: with a netdev that has one transmit queue, on a netdev with several,
# where each CPU has its own; and without any queue, where each CPU delivers its
# packets to the other node by itself. QPs of a service level stay in the queues
# of its traffic class, and so do their CNPs. VLAN tags have the priority to
# which the VLAN maps the service level. The datagrams of several QPs have
# several UDP source ports.
# kernels: 6.12 newest
# timeout: 200

source "$(dirname "$0")/lib.sh"

bridged() {
	local n
	modprobe -a "$driver" bridge
	hosts --driver none
	ip link add port mtu 1500 numtxqueues 2 numrxqueues 2 netns h1 \
		type veth peer name port mtu 1500 numtxqueues 2 numrxqueues 2 \
		netns h2
	ip -n h1 link add bridge0 type bridge
	ip -n h1 link set port master bridge0
	ip -n h1 link set port up
	for n in 1 2; do
		h1 sh -c "echo $n >/sys/class/net/port/queues/tx-$((n - 1))/xps_cpus"
	done
	h1 tc qdisc replace dev port root mq
	# Newer kernels forget a sock's queue, by default after a second. The
	# socks of QPs belong to the first namespace.
	[[ ! -e /proc/sys/net/core/txq_reselection_ms ]] ||
		sysctl -qw net.core.txq_reselection_ms=1
	ip -n h1 address add 198.51.100.1/24 dev bridge0
	ip -n h2 address add 198.51.100.2/24 dev port
	ip -n h1 link set bridge0 up
	ip -n h2 link set port up
	h1 rdma link add "$dev1" type "$driver" netdev bridge0
	h2 rdma link add "$dev2" type "$driver" netdev port
	until_true 20 h1 ping -q -c 1 -W 1 198.51.100.2
}

# sent N: packets of queue N, counted from 1
sent() {
	h1 tc -s qdisc show dev port |
		awk -v parent=":$1$" '/^qdisc/ { here = $5 ~ parent } /Sent/ && here { print $4 }'
}

one_queue() {
	local client first second server
	first=$(sent 1) second=$(sent 2)
	h2 ib_write_bw -F -d "$dev2" -s 16384 -D 3 >/dev/null &
	server=$!
	until_true 20 listening h2 18515
	h1 taskset -c 0 ib_write_bw -F -d "$dev1" -s 16384 -D 3 198.51.100.2 \
		>/dev/null &
	client=$!
	sleep 1.5
	taskset -ap 2 "$(pgrep -n ib_write_bw)"
	wait $client
	wait $server
	first=$(($(sent 1) - first)) second=$(($(sent 2) - second))
	echo "$first and $second packets"
	(( first + second > 1000 ))
	# Other packets, such as those of perftest's own connection, may use any
	# queue.
	(( first < 100 || second < 100 ))
}

# classes TYPE [BOND]: a VLAN or a macvlan on a netdev, or on a bond of it, with
# queues of two traffic classes; priority 3 has the second two
classes() {
	local n below=port type=(type vlan id 5)
	[[ $1 == vlan ]] || type=(type macvlan mode bridge)
	shift
	hosts --driver none
	ip link add port numtxqueues 4 numrxqueues 4 netns h1 type veth peer \
		name port numtxqueues 4 numrxqueues 4 netns h2
	for n in 1 2; do
		if [[ ${1-} ]]; then
			below=$1
			ip -n h$n link add "$below" numtxqueues 4 type bond \
				mode active-backup
			ip -n h$n link set port master "$below"
			ip -n h$n link set "$below" up
		fi
		ip -n h$n link set port up
		ip -n h$n link add link "$below" name port.5 "${type[@]}"
		ip -n h$n link set port.5 up
		ip -n h$n address add 198.51.100.$n/24 dev port.5
	done
	h1 rdma link add "$dev1" type "$driver" netdev port.5
	h2 rdma link add "$dev2" type "$driver" netdev port.5
	h1 tc qdisc add dev port root mqprio num_tc 2 map 0 0 0 1 0 0 0 0 0 0 \
		0 0 0 0 0 0 queues 2@0 2@2 hw 0
	until_true 20 h1 ping -q -c 1 -W 1 198.51.100.2
}

# one_class [PROGRAM COUNT]
one_class() {
	local bench=("${1-ib_write_bw}" -F -s 4096 -q 8 -n "${2-100}" --sl 3) \
		i before=() sent=() server
	for i in 1 2 3 4; do before+=("$(sent $i)"); done
	h2 "${bench[@]}" -d "$dev2" >/dev/null &
	server=$!
	until_true 20 listening h2 18515
	h1 "${bench[@]}" -d "$dev1" 198.51.100.2 >/dev/null
	wait $server
	for i in 1 2 3 4; do sent+=($(($(sent $i) - before[i - 1]))); done
	echo "${sent[*]} packets"
	# Packets of perftest's own connection are in the first class.
	(( sent[0] + sent[1] < 100 && sent[2] + sent[3] > 1000 ))
}

# The VLAN's map makes the service level the priority of the tag.
tags() {
	local count
	h1 ip link set port.5 type vlan egress-qos-map 3:6
	h2 nft \
		"table netdev tags { chain in { type filter hook ingress device port priority 0;
		vlan id 5 vlan pcp 6 counter; }; }"
	one_class
	count=$(h2 nft list table netdev tags |
		sed -n 's/.*pcp 6 counter packets \([0-9]*\) .*/\1/p')
	echo "$count packets with priority 6"
	(( count > 1000 ))
}

# READ responses arrive marked. The CNPs have a priority of the first class, but
# leave by the queues of their QPs.
cnps() {
	local count
	count=$(counter "$dev1" np_cnp_sent h1)
	h2 nft "table ip marks { chain out { type filter hook output priority 0; udp dport 4791 ip ecn set ce; }; }"
	one_class ib_read_bw 400
	h2 nft delete table ip marks
	count=$(($(counter "$dev1" np_cnp_sent h1) - count))
	echo "$count CNPs"
	(( count > 200 ))
}

udp_ports() {
	local ports
	h2 nft \
		"table inet ports { set seen { type inet_service; size 1000; flags dynamic; }
		chain in { type filter hook input priority 0; udp dport 4791 update @seen { udp sport }; }; }"
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		'ports: qp=ud op=send_imm size=100 qps=8 count=20 lossy=1'
	ports=$(h2 nft list set inet ports seen | grep -oE '[0-9]{5}' |
		sort -u | wc -l)
	echo "$ports source ports"
	(( ports >= 4 ))
}

# slowly HOOK HOST...: these nodes need long for packets, which have already
# left the socket of the sender
slowly() {
	local host rules
	rules=$(printf 'udp dport 9 counter;%.0s' {1..3000})
	for host in "${@:2}"; do
		ip netns exec "$host" nft "table inet slow { chain in { type filter hook $1 priority 0; $rules }; }"
	done
}

slow() {
	ip netns delete router
	hosts --mtu 9000
	slowly input h1 h2
}

# A slow router between the nodes: what it has taken from the socket of the
# sender waits in a second queue.
routed() {
	local n
	hosts --driver none
	ip netns add router
	for n in 1 2; do
		ip link add port mtu 9000 netns h$n type veth peer name port$n \
			mtu 9000 netns router
		ip -n h$n address add 198.51.$n.1/24 dev port
		ip -n router address add 198.51.$n.254/24 dev port$n
		ip -n h$n link set port up
		ip -n router link set port$n up
		ip -n h$n route add 198.51.0.0/16 via 198.51.$n.254
	done
	h1 rdma link add "$dev1" type "$driver" netdev port
	h2 rdma link add "$dev2" type "$driver" netdev port
	ip netns exec router sysctl -qw net.ipv4.ip_forward=1
	slowly forward router
	until_true 20 h1 ping -q -c 1 -W 1 198.51.2.1
}

# READ responses do not overtake each other while the CPU changes that sends the
# requests.
routed_read() {
	local bench=(ib_read_bw -F -s 65536 -D 3) server client cpu=1 moves=0
	local before early
	before=$(counter "$dev1" implied_nak_seq_err h1)
	h2 "${bench[@]}" -d "$dev2" >/dev/null &
	server=$!
	until_true 20 listening h2 18515
	h1 "${bench[@]}" -d "$dev1" 198.51.2.1 >/dev/null &
	client=$!
	sleep 0.5
	while taskset -ap $((cpu = 3 - cpu)) "$(pgrep -n ib_read_bw)" >/dev/null; do
		(( ++moves ))
		sleep 0.02
	done
	wait $client
	wait $server
	early=$(($(counter "$dev1" implied_nak_seq_err h1) - before))
	echo "$early responses too early, $moves moves"
	(( ! early && moves > 1 ))
}

check bridged 40 bridged
check one-queue 40 one_queue
check classes 40 classes vlan
check one-class 40 one_class
check tags 40 tags
check cnps 40 cnps
check udp-ports 40 udp_ports
check bond 40 classes vlan bond0
check bond-one-class 40 one_class
check macvlan 40 classes macvlan
check macvlan-one-class 40 one_class
check routed 40 routed
check routed-read 40 routed_read
check slow 40 slow
verify -f 4 -a "h1:$dev1" -b "h2:$dev2" 'uc: qp=uc fail=two_cpus' \
	'ud: qp=ud fail=two_cpus' 'rc: fail=two_cpus' || (( ++failures ))
