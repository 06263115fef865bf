#!/bin/bash
# Network cards that QEMU emulates, two of a kind joined by a wire, one for each
# node: super-packets are really segmented and ICRCs checked, and received
# packets are joined by GRO, or not.
# kernels: 6.12 newest
# left: 6.12
# timeout: 400

source "$(dirname "$0")/lib.sh"

# cards DRIVER: their netdevs, here in the first network namespace
cards() {
	local netdev
	for netdev in /sys/class/net/*; do
		[[ $(readlink "$netdev/device/driver") != */"$1" ]] ||
			basename "$netdev"
	done
}

# put N NETDEV: into node N as nic0, with an arx device on it
put() {
	ip link set "$2" netns "h$1" name nic0
	ip -n "h$1" link set nic0 up
	ip -n "h$1" address add 192.0.2."$1"/24 dev nic0
	ip -n "h$1" address add fd00::"$1"/64 dev nic0
	ip netns exec "h$1" rdma link add "$driver$1" type "$driver" netdev nic0
}

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

# The cards' qdisc keeps the order, so packets may be sent from any CPU.
stayed() {
	(( $(count tx_behind) == 0 )) ||
		{
			echo "runs left to another CPU: $(count tx_behind)"
			return 1
		}
}

# offloads ETHTOOL-ARGUMENTS...: of both cards
offloads() {
	h1 ethtool -K nic0 "$@" && h2 ethtool -K nic0 "$@"
}

# carries NAME [CASE...]
carries() {
	local name=$1
	shift
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"$name-rc: op=send,write,read size=300,65537 count=12 both=1" \
		"$name-atomics: op=cas,faa count=50 both=1" \
		"$name-uc: qp=uc op=write_imm size=9000 count=12" \
		"$name-ud: qp=ud gid=v4,v6 op=send_imm size=900 count=12" \
		"$name-v6: gid=v6 op=mix size=30000 count=12" "${@/#/$name-}" ||
		(( ++failures ))
}

# Messages that a card delivers together get one ACK: the receiver sends nothing
# else.
answers_once() {
	local before after messages=2000
	before=$(counter "$dev1" sent_pkts h1)
	pair 18515 "ib_write_bw -F -s 16384 -n $messages -d $dev1" \
		"ib_write_bw -F -s 16384 -n $messages -d $dev2 192.0.2.1"
	after=$(counter "$dev1" sent_pkts h1)
	echo "ACKs of $messages messages: $((after - before))"
	(( after - before < messages * 3 / 4 ))
}

# unbound BUS DRIVER: the card disappears with its driver; so does the device.
unbound() {
	local address
	address=$(basename "$(h1 readlink -f /sys/class/net/nic0/device)")
	echo "$address" >"/sys/bus/$1/drivers/$2/unbind"
	until_true 10 eval 'h1 rdma link show | not finds .'
}

long="long: op=write,read size=1048576 count=12 both=1"
for kind in virtio_net:virtio e1000e:pci; do
	module=${kind%:*}
	hosts --driver none
	modprobe "$driver"
	modprobe "$module" ||
		{ fail "$module" "the module does not load"; continue; }
	h1 ip link delete eth0
	check "$module" 60 joined_by "$module"
	carries "$module" "$long"
	check "$module-icrc" 60 checked
	check "$module-stayed" 60 stayed
	[[ $module != virtio_net ]] ||
		check "$module-answers-once" 60 answers_once
	check "$module-no-gro" 60 offloads gro off
	carries "$module-no-gro" "$long"
	check "$module-no-offloads" 60 offloads gro on tx off sg off
	carries "$module-no-offloads"
	check "$module-unbound" 60 unbound "${kind#*:}" "$module"
	check "$module-down" 60 arx-hosts down
done
