#!/bin/bash
# A network namespace ends while QPs hold routes in it, which they do not use
# after that, nor release: the debug kernel sees who reads freed memory.
# kernels: uml newest
# timeout: 300

source "$(dirname "$0")/lib.sh"
modprobe -a "${driver/rxe/rdma_rxe}" macvlan

# gid HOST N: index of the GID fd00::N of the host's device
gid() { gid_index "$1" "fd00::$2,"; }
has_gid() { [[ $(gid "$@") ]]; }

# The device of node 1 has an address in the namespace pod.
nodes() {
	local n
	arx-hosts down
	rdma system set netns shared
	bare_nodes
	for n in 1 2; do
		ip -n h$n link set lo up
		ip -n h$n link set eth0 up
		ip -n h$n address add 192.0.2.$n/24 dev eth0
		ip -n h$n address add fd00::$n/64 dev eth0 nodad
		ip netns exec h$n rdma link add $driver$n type "$driver" \
			netdev eth0
	done
}
pod() {
	ip netns add pod
	ip -n h1 link add link eth0 name pod0 mtu 9000 type macvlan mode bridge
	ip -n h1 link set pod0 netns pod
	ip -n pod link set lo up
	ip -n pod link set pod0 up
	ip -n pod address add fd00::3/64 dev pod0 nodad
	until_true 10 has_gid h1 3
	ip netns exec pod ping -q -c 1 -W 5 fd00::2
}

# namespace_ends rc|ud: a program outside of pod sends from the address of pod,
# and ends when the namespace is no more
namespace_ends() {
	local program=ibv_$1_pingpong server client sent n
	pod
	ip netns exec h2 "$program" -d "$dev2" -g "$(gid h2 2)" -n 100000000 &
	server=$!
	until_true 20 listening h2 18515
	ip netns exec h1 "$program" -d "$dev1" -g "$(gid h1 3)" -n 100000000 \
		$ip2 &
	client=$!
	sent=$(counter "$dev1" sent_pkts h1)
	until_true 20 eval \
		'(( $(counter "$dev1" sent_pkts h1) > sent + 100 ))'
	# Nothing is in flight then: what is cached stays.
	kill -STOP $client $server
	nap 0.5
	ip netns del pod
	until_true 20 not has_gid h1 3
	# The memory of a namespace is freed when the next one has ended.
	for n in 1 2; do
		ip netns add other
		ip netns del other
		nap 2
	done
	kill -KILL $client $server
	wait $client $server || :
}
works() {
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"$1: gid=v6 op=mix size=20000 count=12"
}
down() {
	arx-hosts down
	until_true 10 eval '[[ ! $(ip netns list) ]]'
	rmmod "$driver"
	rdma system set netns exclusive
	modprobe "$driver"
}

check nodes 30 nodes
for service in rc ud; do
	check ends-$service 90 namespace_ends $service
	check works-$service 60 works $service
done
check down 30 down
