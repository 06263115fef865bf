#!/bin/bash
# Trains: virtio cards of Debian trixie's QEMU, joined by a wire, get packets of
# arx to split (uso.c). The other card gets trains, or the host splits them, or
# nobody sends trains. Also on VLANs, to rdma_rxe, and if a card numbers packets
# in another way than Linux (trial.c).
# kernels: 6.12 newest
# left: 6.12
# timeout: 500
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

long() {
	h1 ip link set nic0 mtu 9000
	h2 ip link set nic0 mtu 9000
}

# The same on the VLAN of the cards: tcpdump sees trains on the card.
vlan_train_is_seen() {
	dev1=${driver}v1 dev2=${driver}v2 server=198.51.100.1 train_is_seen
}

# A train on its way to the card is longer than any packet.
train_is_seen() {
	h2 timeout 30 tcpdump -q -n -i nic0 -c 1 -U -w - \
		"greater 9100 and (udp port 4791 or (vlan and udp port 4791))" \
		>"$scratch/train" &
	local tcpdump=$!
	until_true 20 test -s "$scratch/train"
	writes 500
	wait "$tcpdump"
}

# limit BYTES: of packets that the kernel gives to the cards to be split
limit() {
	h1 ip link set nic0 gso_max_size "$1"
	h2 ip link set nic0 gso_max_size "$1"
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

# between NAME A B: verified messages of all sizes, IPv4 and IPv6. A packet that
# a busy host delays must not look lost.
between() {
	local gid
	for gid in v4 v6; do
		verify -f 4 -a "h1:$2" -b "h2:$3" "$1-$gid: gid=$gid timeout=17 op=write,read,send both=1 size=4097,65537,300000 count=12"
	done
}

# Long READs, of which few are outstanding.
reads() {
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		'reads: op=read both=1 size=1M timeout=17 count=10'
}

# A train overtakes no packet that left by itself before, as the first ones of a
# stage do. Nothing is lost here, so that nothing looks lost.
in_order() {
	local before after
	before=$(($(count out_of_seq_request) + $(count implied_nak_seq_err)))
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		'order: op=write,read,send both=1 qps=4 size=300000 timeout=17 count=12'
	after=$(($(count out_of_seq_request) + $(count implied_nak_seq_err)))
	echo "packets that arrived too early: $((after - before))"
	(( after - before <= 2 ))
}

# numbers N: half of the packets that the other card made of trains reach node N
# with another IPv4 identification: those with an odd PSN. Only trains have UDP
# checksums. Packets that GRO joins would have to be numbered one by one.
numbers() {
	h"$1" ethtool -K nic0 gro off
	h"$1" nft -f - <<-EOF
		table netdev other {
			chain card {
				type filter hook ingress device nic0 priority 0
				udp dport 4791 udp checksum != 0 \
					@th,159,1 1 ip id set 0x4321
			}
		}
	EOF
}

numbers_again() {
	h"$1" nft flush ruleset
	h"$1" ethtool -K nic0 gro on
}

# lossy SUM LEAST MOST COMMAND...: COMMAND must succeed, this many trains that
# were watched are lost meanwhile, and most packets are not of trains. SUM is
# `count` for both nodes, or `of_first` for node 1.
lossy() {
	local sum=$1 least=$2 most=$3 lost sent uso
	lost=$($sum lost_uso_trains) sent=$($sum sent_pkts) \
		uso=$($sum sent_uso_pkts)
	"${@:4}"
	lost=$(($($sum lost_uso_trains) - lost)) \
		sent=$(($($sum sent_pkts) - sent)) \
		uso=$(($($sum sent_uso_pkts) - uso))
	echo "$lost trains lost, $uso packets of $sent"
	(( lost >= least && lost <= most && uso * 4 < sent ))
}
of_first() { counter "$dev1" "$1" h1; }

# other CASE: between both nodes, IPv4
other() {
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "other-$1"
}

# To a peer that goes back to the first packet it misses. Four stages of node 1
# send data, and lose eight trains each, at most: a QP may end before that.
other_rxe() {
	verify -f 4 -a "h1:$dev1" -b h2:rxe2 \
		'other-rxe: op=write,send size=65537 count=60 limit=40' \
		'other-rxe-single: op=write size=16384 window=1 count=30 limit=40' \
		'other-rxe-read: op=read both=1 size=65537 count=400 limit=40'
}

trains_leave() { (( $(of_first sent_uso_pkts) > $1 )); }

# The card begins to number otherwise while a QP sends trains.
turns_other() {
	local before sent
	h1 nft flush ruleset
	h2 nft flush ruleset
	before=$(count lost_uso_trains) sent=$(of_first sent_uso_pkts)
	other 'later: op=mix size=16384 both=1 count=6000 limit=40' &
	until_true 20 trains_leave $((sent + 1000))
	numbers 1
	numbers 2
	wait $!
	echo "$(($(count lost_uso_trains) - before)) trains lost"
	(( $(count lost_uso_trains) >= before + 8 ))
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
		between rxe-uso "$dev1" rxe2
	check rxe-numbers 20 numbers 2
	check rxe-other 120 lossy of_first 9 32 other_rxe
	check rxe-numbers-again 20 numbers_again 2
	check rxe-icrc 60 eval '(( $(counter $dev1 rcvd_icrc_err h1) == 0 ))'
	check rxe-down 60 arx-hosts down
fi

hosts --driver none
modprobe -a "$driver" virtio_net
h1 ip link delete eth0
check cards 60 joined_by virtio_net
check splits 10 splits
check uso 60 uso 1 1000 999999 between uso "$dev1" "$dev2"
check reads 60 uso 1 4000 999999 reads
check order 60 in_order
check seen 60 train_is_seen
# The kernel would split a train that is longer than the limit.
check limit 10 limit 12000
check limit-seen 60 train_is_seen
check vlans 60 vlans
if [[ $ARX_KERNEL == 6.12 ]]; then
	# Its virtio-net splits no packets that have a VLAN tag.
	check no-limit 10 limit 65536
	check vlan-uso 60 uso v1 0 0 between vlan "${driver}v1" "${driver}v2"
else
	check limit-vlan 60 vlan_train_is_seen
	check no-limit 10 limit 65536
	check vlan-uso 60 uso v1 1000 999999 between vlan "${driver}v1" "${driver}v2"
fi
check icrc 60 checked
# The host splits, and GRO joins packets that have a UDP checksum. (A message of
# one train has an ACK of its own if the receiver is faster than the sender.)
check host-splits 60 offloads rx-gro-hw off
check host-uso 60 uso 1 1000 999999 between host "$dev1" "$dev2"
check host-order 60 in_order
check answers-once 60 answers_once
check host-icrc 60 checked
# A card that numbers packets in another way than Linux. The stages of both
# nodes that send data lose eight trains each, at most, and make no more. A
# message of one train, with nothing behind it: the peer does not notice the
# loss, and the timer expires.
for n in 1 2; do check numbers-$n 20 numbers $n; done
for op in write send read; do
	check "other-$op" 60 lossy count 16 16 other \
		"$op: op=$op size=65537 both=1 count=200"
done
check other-single 60 lossy count 16 16 other \
	'single: op=write size=16384 window=1 both=1 count=60'
check other-atomics 60 other 'atomics: op=faa,cas size=8 both=1 count=500'
check other-mix 60 other 'mix: op=mix size=8192 vary=1 both=1 count=300'
check other-v6 60 uso 1 1000 999999 other 'v6: gid=v6 op=write size=65537 both=1 count=40'
check other-uc 60 uso 1 0 0 other 'uc: qp=uc gid=v6 op=write size=65537 count=20'
check other-later 90 turns_other
check other-no-retries 60 uso 1 0 0 other \
	'no-retries: gid=v6 op=write size=65537 retry=0 timeout=18 count=20'
for n in 1 2; do check numbers-again-$n 20 numbers_again $n; done
check again 60 uso 1 1000 999999 between again "$dev1" "$dev2"
# Packets of 4 KiB
check long 10 long
check long-uso 60 uso 1 1000 999999 between long "$dev1" "$dev2"
check long-order 60 in_order
check none 60 offloads tx-udp-segmentation off
check none-uso 60 uso 1 0 0 between none "$dev1" "$dev2"
check down 60 arx-hosts down
