# shellcheck shell=bash
# For scripts whose nodes h1 and h2 have cards that QEMU emulates, joined by a
# wire. Sourced after lib.sh.

# cards DRIVER: their netdevs, here in the first network namespace
cards() {
	local netdev
	for netdev in /sys/class/net/*; do
		[[ $(readlink "$netdev/device/driver") != */"$1" ]] ||
			basename "$netdev"
	done
}

# put N NETDEV [DRIVER]: into node N as nic0, with a device on it
put() {
	local driver=${3:-$driver}
	ip link set "$2" netns "h$1" name nic0
	ip -n "h$1" link set nic0 up
	ip -n "h$1" address add 192.0.2."$1"/24 dev nic0
	ip -n "h$1" address add fd00::"$1"/64 dev nic0
	ip netns exec "h$1" rdma link add "$driver$1" type "$driver" netdev nic0
}

# joined_by DRIVER: its two cards join both nodes
joined_by() {
	local netdevs
	mapfile -t netdevs < <(cards "$1")
	(( ${#netdevs[@]} == 2 ))
	put 1 "${netdevs[0]}"
	put 2 "${netdevs[1]}"
	until_true 20 h1 ping -q -c 1 -W 1 192.0.2.2
}

# count NAME: the sum of both nodes
count() {
	local n sum=0
	for n in 1 2; do
		sum=$((sum + $(counter $driver$n "$1" h$n)))
	done
	echo $sum
}

# All packets to a card have right ICRCs, and the receiver checks them. Only a
# retransmitted packet may be wrong, when the program has its memory back and
# writes to it before the card has read the packet.
checked() {
	local computed wrong again
	computed=$(count icrc_computed) wrong=$(count rcvd_icrc_err) \
		again=$(count requester_rewinds)
	echo "ICRCs computed: $computed, wrong: $wrong, sent again: $again times"
	(( computed > 1000 &&
		(wrong == 0 || again > 0 && wrong * 100 < computed) ))
}

# offloads ETHTOOL-ARGUMENTS...: of both cards
offloads() {
	h1 ethtool -K nic0 "$@" && h2 ethtool -K nic0 "$@"
}

# writes N: messages of 16 KiB from node 2 to node 1, whose address is $server
writes() {
	pair 18515 "ib_write_bw -F -s 16384 -n $1 -d $dev1" \
		"ib_write_bw -F -s 16384 -n $1 -d $dev2 ${server:-192.0.2.1}"
}

# Messages that a card delivers together get one ACK: the receiver sends nothing
# else.
answers_once() {
	local before after messages=2000
	before=$(counter "$dev1" sent_pkts h1)
	writes $messages
	after=$(counter "$dev1" sent_pkts h1)
	echo "ACKs of $messages messages: $((after - before))"
	(( after - before < messages * 3 / 4 ))
}
