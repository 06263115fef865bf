#!/bin/bash
# A kernel that was started with other options. Without IPv6 everything works by
# IPv4, and what needs IPv6 is refused. A part of the memory is persistent.
# kernels: newest 6.12 uml
# left: newest
# append: ipv6.disable=1 memmap=64M!1G
# timeout: 150

source "$(dirname "$0")/lib.sh"

nodes() {
	local n
	[[ ! -e /proc/net/if_inet6 ]]
	modprobe -a "$driver" ib_uverbs rdma_ucm ib_umad
	rdma system set netns exclusive
	bare_nodes
	for n in 1 2; do
		ip -n h$n link set lo up
		ip -n h$n link set eth0 up
		ip -n h$n address add 192.0.2.$n/24 dev eth0
		ip netns exec h$n rdma link add $driver$n type "$driver" \
			netdev eth0
		until_true 10 [ "$(gid h$n)" ]
	done
}
# gid h1|h2: the index of the IPv4 GID
gid() { gid_index "$1" ::ffff:; }

pingpong() {
	pair 18515 "ibv_rc_pingpong -e -n 200 -d $dev1 -g $(gid h1)" \
		"ibv_rc_pingpong -e -n 200 -d $dev2 -g $(gid h2) $ip1"
}

# rping's server listens on a wildcard address.
rping_wildcard() { pair cm "rping -s -C 5 -v" "rping -c -a $ip1 -C 5 -v"; }

joined() { h1 rdma resource show qp type UD | finds 'state RTS.*mckey'; }
multicast() {
	h1 mckey -m 239.1.2.3 -b $ip1 -C 5 &
	until_true 20 joined
	h2 mckey -m 239.1.2.3 -b $ip2 -C 5 -s
	wait $!
}

# The core makes GID 0 from the MAC address. A program may name it as source of
# datagrams to an IPv6 group; the core looks for no route to a group.
refused() {
	h1 python3 - "$dev1" <<-'END'
	import errno, sys
	from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
	from pyverbs.cq import CQ
	from pyverbs.device import Context
	from pyverbs.mr import MR
	from pyverbs.pd import PD
	from pyverbs.pyverbs_error import PyverbsRDMAError
	from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
	from pyverbs.wr import SGE, SendWR
	import pyverbs.enums as e
	context = Context(name=sys.argv[1])
	pd, cq = PD(context), CQ(context, 10)
	mr = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
	attr = QPAttr(port_num=1)
	attr.qkey = 0x11111111
	qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_UD, scq=cq, rcq=cq,
	        cap=QPCap(10, 10, 1, 1)), attr)
	group = GID('ff12:' + ':'.join(['0000'] * 6) + ':0001')
	try:
	    ah = AH(pd, attr=AHAttr(gr=GlobalRoute(dgid=group, sgid_index=0),
	            is_global=1, port_num=1))
	except PyverbsRDMAError as err:
	    sys.exit(err.error_code != errno.EAFNOSUPPORT)
	wr = SendWR(num_sge=1, sg=[SGE(mr.buf, 100, mr.lkey)])
	wr.set_wr_ud(ah, 0xffffff, attr.qkey)
	qp.post_send(wr)
	sys.exit('an AH to an IPv6 group')
	END
}

# The persistent memory becomes device DAX, as by `ndctl create-namespace`.
device_dax() {
	local nd=/sys/bus/nd
	modprobe -a nd_e820 nd_pmem dax_pmem device_dax
	until_true 10 [ -e $nd/drivers/nd_pmem/namespace0.0 ]
	echo namespace0.0 >$nd/drivers/nd_pmem/unbind
	cat /proc/sys/kernel/random/uuid >$nd/devices/dax0.0/uuid
	echo ram >$nd/devices/dax0.0/mode
	echo 2097152 >$nd/devices/dax0.0/align
	echo namespace0.0 >$nd/devices/dax0.0/namespace
	echo dax0.0 >$nd/drivers/dax_pmem/bind
	until_true 10 [ -c /dev/dax0.0 ]
}

check nodes 30 nodes
verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
	'rc: op=mix size=20000 count=20 both=1' \
	'ud: qp=ud op=send count=20 size=1000' || (( ++failures ))
verify -f 4 -a "h1:$dev1" -b "h1:$dev1" \
	'one-node: op=mix size=20000 count=20' || (( ++failures ))
if debug_kernel; then
	skip persistent "User-Mode Linux has no persistent memory"
else
	check device-dax 30 device_dax
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		'persistent: fail=persistence' || (( ++failures ))
	verify -f 4 -a "h1:$dev1" -b "h1:$dev1" \
		'persistent-one-node: fail=persistence' || (( ++failures ))
fi
check pingpong 30 by_packets 5 pingpong
check rping 30 by_packets 5 rping_wildcard
check multicast 30 multicast
check refused 30 refused
check unload 30 eval 'arx-hosts down && rmmod "$driver"'
