#!/bin/bash
# Trains: virtio cards of Debian trixie's QEMU, joined by a wire, get packets of
# arx to split (uso.c). The other card gets trains, or the host splits them, or
# nobody sends trains. Also on VLANs, and to rdma_rxe.
# kernels: 6.12 newest
# left: 6.12
# timeout: 400
# qemu: trixie

source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/cards.sh"

# Older kernels leave the offload off at first.
splits() {
	offloads tx-udp-segmentation on
	h1 ethtool -k nic0 | finds 'tx-udp-segmentation: on'
}

# uso NAME LEAST MOST COMMAND...: COMMAND must succeed, and this many of the
# packets of node 1 must leave in trains meanwhile.
uso() {
	local name=$1 least=$2 most=$3 n
	shift 3
	n=$(counter $driver$name sent_uso_pkts h1)
	"$@"
	n=$(($(counter $driver$name sent_uso_pkts h1) - n))
	echo "packets in trains: $n"
	(( n >= least && n <= most ))
}

# A train on its way to the card is longer than any packet.
train_is_seen() {
	h2 timeout 30 tcpdump -q -n -i nic0 -c 1 -U -w - \
		"udp port 4791 and greater 9100" >"$scratch/train" &
	local tcpdump=$!
	until_true 20 test -s "$scratch/train"
	writes 500
	wait "$tcpdump"
}

# vlan N: a VLAN on the card of node N, with a device
vlan() {
	ip -n "h$1" link add link nic0 name nic0.5 type vlan id 5
	ip -n "h$1" link set nic0.5 up
	ip -n "h$1" address add 198.51.100."$1"/24 dev nic0.5
	ip -n "h$1" address add fd01::"$1"/64 dev nic0.5 nodad
	ip netns exec "h$1" rdma link add "${driver}v$1" type "$driver" \
		netdev nic0.5
}
vlans() {
	vlan 1
	vlan 2
	until_true 20 h1 ping -q -c 1 -W 1 198.51.100.2
}

# between NAME A B [CASE-OPTIONS]: verified messages of all sizes, IPv4 and IPv6
between() {
	local gid
	for gid in v4 v6; do
		verify -f 4 -a "h1:$2" -b "h2:$3" "$1-$gid: gid=$gid ${4-} op=write,read,send both=1 size=4097,65537,300000 count=12"
	done
}

# With rdma_rxe on node 2, which must accept what a card makes of trains
rxe_joined_by() {
	local netdevs n
	modprobe -a virtio_net rdma_rxe "$driver" ib_uverbs rdma_ucm
	rdma system set netns shared
	for n in 1 2; do
		ip netns add h$n
		ip -n h$n link set lo up
	done
	mapfile -t netdevs < <(cards virtio_net)
	put 1 "${netdevs[0]}"
	put 2 "${netdevs[1]}" rxe
	until_true 20 h1 ping -q -c 1 -W 1 192.0.2.2
}

# On 6.12 rdma_rxe cannot send from a network namespace.
if [[ $ARX_KERNEL == newest && $driver == arx ]]; then
	check rxe 60 rxe_joined_by
	check rxe-splits 10 splits
	check rxe-uso 120 uso 1 500 999999 \
		between rxe-uso "$dev1" rxe2 timeout=17
	check rxe-icrc 60 eval '(( $(counter $dev1 rcvd_icrc_err h1) == 0 ))'
	check rxe-down 60 arx-hosts down
fi

hosts --driver none
modprobe -a "$driver" virtio_net
h1 ip link delete eth0
check cards 60 joined_by virtio_net
check splits 10 splits
check uso 60 uso 1 1000 999999 between uso "$dev1" "$dev2"
check seen 60 train_is_seen
check vlans 60 vlans
check vlan-uso 60 uso v1 1000 999999 between vlan "${driver}v1" "${driver}v2"
check icrc 60 checked
# The host splits, and GRO joins packets that have a UDP checksum. (A message of
# one train has an ACK of its own if the receiver is faster than the sender.)
check host-splits 60 offloads rx-gro-hw off
check host-uso 60 uso 1 1000 999999 between host "$dev1" "$dev2"
check answers-once 60 answers_once
check host-icrc 60 checked
check none 60 offloads tx-udp-segmentation off
check none-uso 60 uso 1 0 0 between none "$dev1" "$dev2"
check down 60 arx-hosts down
