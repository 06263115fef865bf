#!/bin/bash
# Network namespaces that end while they hold a network card and its device:
# both go back to the first namespace, and work there. In both modes of network
# namespaces; the device is made before or after the card has moved.
# kernels: newest 6.12
# left: 6.12
# timeout: 300

source "$(dirname "$0")/lib.sh"

# card N: the netdev of the N-th virtio card, wherever it is named
card() {
	local at
	for at in /sys/class/net/*/address; do
		[[ $(<"$at") != 52:54:00:00:00:0$1 ]] ||
			basename "${at%/address}"
	done
}

# mode shared|exclusive: with the second card in h2, which has a device
mode() {
	local two
	two=$(card 2)
	rdma system set netns "$1"
	ip netns add h2
	ip link set "$two" netns h2
	ip -n h2 link set "$two" name c0 up
	ip -n h2 address replace 192.0.2.2/24 dev c0
	ip netns exec h2 rdma link add ${driver}2 type "$driver" netdev c0
}
mode_ends() {
	local two
	ip netns exec h2 rdma link del ${driver}2
	ip netns del h2
	until_true 20 back 2
	two=$(card 2)
	ip link set "$two" down
	ip link set "$two" name c2
}
back() { [[ $(card "$1") ]]; }

# address NETDEV [OPTION...]
address() {
	ip "${@:2}" link set "$1" up
	ip "${@:2}" address replace 192.0.2.1/24 dev "$1"
}

# link_first NETDEV MODE, netdev_first NETDEV MODE: the device is made before
# its netdev moves to h1, or after.
link_first() {
	rdma link add ${driver}1 type "$driver" netdev "$1"
	ip netns add h1
	ip link set "$1" netns h1
	[[ $2 == shared ]] || rdma dev set ${driver}1 netns h1
}
netdev_first() {
	ip netns add h1
	ip link set "$1" netns h1
	ip netns exec h1 rdma link add ${driver}1 type "$driver" netdev "$1"
}
works() {
	verify -f 4 -a "$1:${driver}1" -b "h2:${driver}2" \
		"$2: op=mix size=20000 count=20 both=1"
}
port_here() { [[ $(rdma link show ${driver}1/1) == *"netdev $1"* ]]; }

# goes_back ORDER MODE: the namespace ends when its last process, which has
# traffic, is killed. Its card goes back with its device.
goes_back() {
	local one traffic
	one=$(card 1)
	"$1" "$one" "$2"
	address "$one" -n h1
	until_true 20 works h1 in-it
	verify -f 4 -a "h1:${driver}1" -b "h2:${driver}2" \
		'ending: op=mix size=20000 count=2000 seconds=60 both=1' \
		>/dev/null 2>&1 &
	traffic=$!
	nap 1
	ip netns del h1
	pkill -KILL -P $traffic
	wait $traffic || true
	until_true 20 back 1
	until_true 20 port_here "$one"
	address "$one"
	until_true 20 works '' back
	rdma link del ${driver}1
	ip address flush dev "$one"
	ip link set "$one" down
}

modprobe -a "$driver" ib_uverbs rdma_ucm virtio_net
until_true 20 back 2
for mode in exclusive shared; do
	check $mode 30 mode $mode
	check $mode-netdev-first 90 goes_back netdev_first $mode
	check $mode-link-first 90 goes_back link_first $mode
	check $mode-ends 30 mode_ends
done
