#!/bin/bash
# XRC: all operations, memory paged on demand, domains and targets that
# processes share, errors, the end of objects in any order; then perftest
# between two nodes.
# kernels: 6.12 newest uml
# left: 6.12
# timeout: 400

source "$(dirname "$0")/lib.sh"

# perf TOOL OPTION...
perf() {
	pair 18515 "$1 -F -d $dev1 -x $gid1 ${*:2}" \
		"$1 -F -d $dev2 -x $gid2 ${*:2} $ip1"
}

# on_wire COMMAND...: the QPs of one node reach each other by packets
on_wire() {
	local before
	h1 bash -c "echo 1 >/sys/class/infiniband/$dev1/capture"
	before=$(counter "$dev1" rcvd_pkts h1)
	"$@" || (( ++failures ))
	h1 bash -c "echo 0 >/sys/class/infiniband/$dev1/capture"
	(( $(counter "$dev1" rcvd_pkts h1) - before > 10000 )) ||
		fail wire "few packets"
}

# judged: each packet of the operations is well formed, says scapy, and each
# request has the XRCETH
judged() {
	local tcpdump
	h1 bash -c "echo 1 >/sys/class/infiniband/$dev1/capture"
	h1 tcpdump -q -B 65536 -i lo --immediate-mode -U -w "$scratch/capture" \
		udp port 4791 or icmp 2>/dev/null &
	tcpdump=$!
	until_true 20 test -s "$scratch/capture"
	h1 xrc "$dev1" "$scratch/domain" judged operations
	h1 bash -c "echo 0 >/sys/class/infiniband/$dev1/capture"
	captured $tcpdump "$scratch/capture" $ip1
	PYTHONPATH=$(dirname "$0")/wire python3 - "$scratch/capture" <<-'END'
	import sys
	from scapy.utils import RawPcapReader
	from roce import Seen
	packets = [Seen(frame)
	           for n, (frame, _) in enumerate(RawPcapReader(sys.argv[1]))
	           if n % (7 if len(frame) < 300 else 60) == 0]
	kinds = {packet.bth.opcode for packet in packets}
	srqns = {packet.xrceth.srqn for packet in packets if hasattr(packet, 'xrceth')}
	print(len(packets), 'packets, opcodes', sorted(map(hex, kinds)), 'SRQs', srqns)
	assert len(packets) > 50 and len(kinds) > 6 and len(srqns) == 1
	assert {kind >> 5 for kind in kinds} == {5}
	END
}

# The device ends under processes that use XRC.
use() { while h1 xrc "$dev1" "$scratch/domain" removed any-order; do :; done; }
removal() {
	local user
	use &
	user=$!
	sleep 1
	timeout 20 ip netns exec h1 rdma link del "$dev1"
	wait $user || true
	! h1 rdma link show | grep "$dev1"
}

gone() { h1 rdma resource show "$dev1" | finds 'qp [01] cm_id 0 mr 0 '; }

hosts
h1 xrc "$dev1" "$scratch/domain" near || (( ++failures ))
on_wire h1 xrc "$dev1" "$scratch/domain" wire
if debug_kernel; then
	skip judged 'left to the other kernels'
else
	check judged 100 judged
fi
check all-gone 10 gone
gid1=$(gid_index h1 "::ffff:$ip1") gid2=$(gid_index h2 "::ffff:$ip2")
n=100
! debug_kernel || n=20
check "ib_send_bw -c XRC" 60 by_packets 5 perf ib_send_bw -c XRC -n $n
check "ib_send_bw -c XRC -e" 60 by_packets 5 perf ib_send_bw -c XRC -n $n -q 4 -e
check "ib_write_bw -c XRC" 60 by_packets 5 perf ib_write_bw -c XRC -n $n -b
check "ib_read_bw -c XRC" 60 by_packets 5 perf ib_read_bw -c XRC -n $n
check "ib_atomic_bw -c XRC" 60 by_packets 5 perf ib_atomic_bw -c XRC -n $n
check "ib_send_lat -c XRC" 60 by_packets 5 perf ib_send_lat -c XRC -n $n
check removal 60 removal
