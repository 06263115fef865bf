#!/bin/bash
# A server that keeps running (consumers/daemon.c): its device, netdev, address
# and MTU change under traffic, once a second; the server accepts again each
# time, and gets every asynchronous event once and in order.
# kernels: 6.12 newest uml
# timeout: 400

source "$(dirname "$0")/lib.sh"

times=2
! brief || times=1
! full || times=60
debug_kernel && patience=40 || patience=20

client() { h2 daemon "$dev2" $ip1 "$1"; }
serves() { client 5 >"$scratch/client" 2>&1; }

served() { grep -c 'cm: RDMA_CM_EVENT_ESTABLISHED' "$scratch/daemon"; }

# events: those of the device, in one line, and how its file descriptor ended
events() {
	sed -n 's/^event: //p' "$scratch/daemon" | tail -n +$((seen + 1)) |
		sed 's/ /-/g' | xargs
}
# events_are PATTERN: all events since the last call
events_are() {
	until_true 10 eval "[[ \$(events) =~ ^($1)\$ ]]" ||
		{ echo "events: $(events), not $1"; return 1; }
	nap 0.3
	[[ $(events) =~ ^($1)$ ]] ||
		{ echo "later events: $(events), not $1"; return 1; }
	seen=$(grep -c '^event: ' "$scratch/daemon")
}

# lives_on CHANGE breaks|keeps EVENTS: the change breaks the stream of a client
# or not. The server goes on in any case, and serves the next client. (A client
# whose stream is broken may wait for an answer for ever: it has nothing to
# send, and the server's device was gone before it could disconnect.)
lives_on() {
	local i stream before
	for ((i = 0; i < times; i++)); do
		before=$(served)
		# not client, or a shell between would be killed alone
		ip netns exec h2 daemon "$dev2" $ip1 1000000 \
			>"$scratch/stream" 2>&1 &
		stream=$!
		until_true $patience eval '(( $(served) > before ))'
		nap 0.3
		"$1"
		until_true $patience serves ||
			{ cat "$scratch/client" "$scratch/daemon"; return 1; }
		if [[ $2 == keeps ]]; then
			kill $stream || { cat "$scratch/stream"; return 1; }
		else
			kill $stream 2>/dev/null || true
		fi
		wait $stream 2>/dev/null || true
		kill -0 $daemon
		events_are "$3" || { cat "$scratch/daemon"; return 1; }
	done
}

link_anew() {
	h1 rdma link del "$dev1"
	h1 rdma link add "$dev1" type "$driver" netdev eth0
}
flap() {
	ip -n h1 link set eth0 down
	nap 0.2
	ip -n h1 link set eth0 up
}
address_anew() {
	ip -n h1 address del $ip1/24 dev eth0
	nap 0.2
	ip -n h1 address add $ip1/24 dev eth0
}
mtu_changes() {
	ip -n h1 link set eth0 mtu 9000
	ip -n h1 link set eth0 mtu 1500
}

# under_daemon CHANGE breaks|keeps EVENTS
under_daemon() {
	local seen=0 daemon
	ip netns exec h1 daemon "$dev1" >"$scratch/daemon" 2>&1 &
	daemon=$!
	until_true $patience listening h1 cm
	until_true $patience serves
	events_are opened
	lives_on "$@"
	echo "served: $(served)"
	kill $daemon
}

# A client that forks while its messages are under way
forks() {
	local daemon
	ip netns exec h1 daemon "$dev1" >"$scratch/daemon" 2>&1 &
	daemon=$!
	until_true $patience listening h1 cm
	by_packets 600 h2 daemon "$dev2" $ip1 600 forks
	kill $daemon
}

gid=GID-table-change
hosts
check forks 60 forks
check link-anew $((30 + times * 20)) under_daemon link_anew breaks \
	"local-catastrophic-error end opened( $gid)*"
check flap $((30 + times * 20)) under_daemon flap keeps \
	"($gid )*port-error( $gid)* port-active( $gid)*"
check address $((30 + times * 20)) under_daemon address_anew keeps "$gid $gid"
check mtu $((30 + times * 20)) under_daemon mtu_changes keeps ''
check unload 30 eval 'arx-hosts down && rmmod "$driver"'
