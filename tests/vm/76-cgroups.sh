#!/bin/bash
# Limits of a program: control groups limit its memory (packets kept for it and
# notes of losses count) and its RDMA objects, RLIMIT_MEMLOCK its pinned memory.
# Beyond them the program is refused, or killed alone; the machine works on and
# gets all memory back.
# kernels: 6.12 newest uml
# left: 6.12
# timeout: 300

source "$(dirname "$0")/lib.sh"

groups=/sys/fs/cgroup
group=$groups/limited

# in_group COMMAND...: in h1. (ip netns exec hides /sys/fs/cgroup.)
in_group() {
	(
		echo $BASHPID >$group/cgroup.procs
		exec ip netns exec h1 "$@"
	)
}

# hostile exhaust prints here how it ended
said=$scratch/said

memory_used() { echo $(($(<$group/memory.current) / 1048576)); }

# memory KIND: objects without end in a group of 48 MiB. Either the kernel
# refuses an object, or it kills this program.
memory() {
	local before after status=0
	before=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
	echo $((48 << 20)) >$group/memory.max
	in_group hostile exhaust "$dev1" "$1" 1000000 >"$said" 2>&1 || status=$?
	echo max >$group/memory.max
	cat "$said"
	(( status == 0 || status == 137 ))
	(( status == 137 )) || grep 'Cannot allocate memory' "$said"
	until_true 20 eval '(( $(memory_used) < 16 ))'
	after=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
	echo "status $status, $before MiB available before, $after after"
	(( after > before - 64 ))
	h1 ibv_devinfo -d "$dev1" | grep PORT_ACTIVE
}

# objects KIND MOST: 40 objects and two contexts are allowed; hostile has 15
# objects and one context before it makes MOST.
objects() {
	echo "$dev1 hca_handle=2 hca_object=40" >$group/rdma.max
	in_group hostile exhaust "$dev1" "$1" 1000 >"$said" 2>&1
	echo "$dev1 hca_handle=max hca_object=max" >$group/rdma.max
	cat "$said"
	grep "^$2 $1: Resource temporarily unavailable" "$said"
	[[ ! $(<$group/rdma.current) =~ hca_object=[1-9] ]]
}

as_nobody() { h1 setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all prlimit --memlock=$((64 << 10)) "$@"; }

# 64 KiB, which hostile itself registers, may be pinned; one more page or 128
# KiB may not.
memlock() {
	as_nobody ibv_rc_pingpong -d "$dev1" -g 1 -s 16384 -n 10 &
	local server=$!
	until_true 20 listening h1 18515
	as_nobody ibv_rc_pingpong -d "$dev1" -g 1 -s 16384 -n 10 $ip1
	wait $server
	as_nobody ibv_rc_pingpong -d "$dev1" -g 1 -s $((128 << 10)) -n 10 >"$said" 2>&1 && return 1
	cat "$said"
	grep "Couldn't register MR" "$said"
	as_nobody hostile exhaust "$dev1" small-regions 1000 >"$said" 2>&1 || :
	cat "$said"
	grep '^0 small-regions: Cannot allocate memory' "$said"
}

socket_memory() { sed -n 's/^sock //p' $group/memory.stat; }

# The first packets of messages are lost. What arrives behind them is kept, as
# socket memory of the receiver's group, until the first packets arrive, too.
kept() {
	local server client
	h1 sh -c "echo 1 >/sys/class/infiniband/$dev1/capture"
	h2 nft "table netdev holes { chain in { type filter hook ingress device eth0 priority 0;
		udp dport 4791 @th,64,8 0x06 drop; }; }"
	(
		echo $BASHPID >$group/cgroup.procs
		exec ip netns exec h2 ib_write_bw -d "$dev2" -s 16384 -m 1024 -n 500 -u 20
	) &
	server=$!
	until_true 20 listening h2 18515
	h1 ib_write_bw -d "$dev1" -s 16384 -m 1024 -n 500 -u 20 $ip2 &
	client=$!
	until_true 20 eval '(( $(socket_memory) > 0 ))'
	echo "$(socket_memory) bytes of sockets, $(counter "$dev2" out_of_seq_kept h2) packets kept"
	h2 nft delete table netdev holes
	wait $client
	wait $server
	until_true 20 eval '(( $(socket_memory) == 0 ))'
	h1 sh -c "echo 0 >/sys/class/infiniband/$dev1/capture"
}

# Bytes of kernel objects that are charged to the group
kernel_memory() { sed -n 's/^slab_unreclaimable //p' $group/memory.stat; }

# grows BYTES: so many more than $before are charged to the group
grows() {
	local more=$1
	until_true 10 eval '(( $(kernel_memory) - before > more ))' ||
		{ echo "$before bytes before, $(kernel_memory) after"; return 1; }
}

# What a QP notes once its packets were marked, or lost, is memory of its
# program: 64 QPs, which note 200 bytes and 4 KiB each.
lost() {
	local before traffic
	h1 sh -c "echo dcqcn >/sys/class/infiniband/$dev1/cc"
	(
		echo $BASHPID >$group/cgroup.procs
		exec verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "lost: op=write size=1000 window=1 qps=64 timeout=12 count=1000000 limit=60"
	) &
	traffic=$!
	until_true 20 eval '[[ $(h1 rdma resource show qp | grep -c "state RTS.*comm verify") == 64 ]]'
	nap 1
	before=$(kernel_memory)
	h2 nft "table ip marks { chain in { type filter hook prerouting priority 0; udp dport 4791 ip ecn set ce; }; }"
	grows $((64 * 150))
	h2 nft delete table ip marks
	before=$(kernel_memory)
	h1 tc qdisc add dev eth0 root netem loss 25%
	grows $((64 * 3000))
	pkill -KILL -P $traffic
	wait $traffic || true
	h1 tc qdisc change dev eth0 root netem loss 5%
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "data: op=write size=1000 window=1 qps=64 timeout=12 count=20"
	h1 tc qdisc del dev eth0 root
	h1 sh -c "echo auto >/sys/class/infiniband/$dev1/cc"
}

hosts
echo '+memory +rdma' >$groups/cgroup.subtree_control
mkdir $group
for kind in cqs srqs qps regions; do check memory-$kind 60 memory $kind; done
check objects-pds 20 objects pds 25
check objects-cqs 20 objects cqs 25
check objects-qps 20 objects qps 25
check objects-regions 20 objects regions 25
if debug_kernel; then
	# 7.3's uverbs_std_types_device.c keeps a reference to the task when it
	# cannot make the context, whichever the driver.
	skip objects-contexts 'the kernel leaks the task that is refused a context, which kmemleak finds'
else
	check objects-contexts 20 objects contexts 1
fi
check memlock 60 memlock
check kept 60 kept
check lost 60 lost
check works-again 60 verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "after: op=mix size=20000 count=100"
check unload 30 eval 'rmdir $group; arx-hosts down && rmmod arx'
