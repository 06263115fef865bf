#!/bin/bash
# No work for QPs keeps a CPU from other programs: bottom halves are on again
# soon, whatever was posted, received or ended. The process that posts is
# charged for copies between QPs of one machine, and for WQEs that are flushed
# or need no packet.
# kernels: 6.12 newest
# left: 6.12
# timeout: 700

source "$(dirname "$0")/lib.sh"

mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
group=/sys/fs/cgroup/arx-fair

full && all=all || all=

# longest PEER THREADS GROUP [taskset ...]: no section with bottom halves off is
# longer than 2 ms. With one CPU, nobody waits for another CPU.
longest() {
	"${@:4}" fair longest "h1:$dev1" "$1" 2000 $2 $3 $all
}

one_host() { longest "h1:$dev1" "$@"; }

# The stack may process hundreds of packets before bottom halves are on again.
# With one at a time, the driver's part is what is measured.
two_hosts() {
	sysctl -qw net.core.dev_weight=1 net.core.netdev_budget=1
	longest "h2:$dev2" "$@"
}

# The device ends while its queues are full and its QPs copy.
link_ends() {
	local us
	h1 fair hog "$dev1" 10 &
	nap 1
	cat /sys/module/arx_probe/parameters/longest >/dev/null
	h1 rdma link delete "$dev1"
	us=$(</sys/module/arx_probe/parameters/longest)
	kill $!
	wait $! || true
	h1 rdma link add "$dev1" type "$driver" netdev eth0
	echo "$us us"
	(( us <= 2000 ))
}

seconds=5

# quota PERCENT: make a container with a quota of hundredths of a CPU
quota() {
	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group
	echo "${1}000 100000" >$group/cpu.max
}

# True if the container has a process.
populated() { [[ $(<$group/cgroup.procs) ]]; }

# took COMMAND...: hundredths of a CPU that COMMAND, which joins the container
# and stays there, takes from programs that want all CPUs
took() {
	local others
	"$@" >&2 &
	others=$!
	until_true 20 populated >&2 || return
	nap 1
	h1 fair share $seconds
	populated || return
	echo 1 >$group/cgroup.kill
	wait $others || true
}

in_group() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' $group "$@"; }

# charged COMMAND...: the process pays for its work. The kernel itself takes a
# part, a larger one in the machine of a busy host.
charged() {
	local percent kernel
	quota 5
	kernel=$(h1 fair share $seconds)
	percent=$(took "$@") || return
	cat $group/cpu.stat
	echo "a container of 5 % took $percent %, less the $kernel % that nobody took"
	(( percent - kernel <= 10 ))
}

# A QP of a process without quota; the thread that flushes is of another one.
process_ends() {
	quota 1
	fair orphan "h1:$dev1" $group/cgroup.procs
}

hosts --mtu 9000
insmod "/arx/build/$(uname -r)/arx_probe.ko"
check softirqs 120 one_host 1 rc taskset -c 1
check softirqs-two-threads 120 one_host 2 rc taskset -c 1
check softirqs-two-cpus 180 one_host 2 rc
check softirqs-kinds 120 one_host 1 kinds taskset -c 1
check softirqs-ends 120 one_host 1 ends taskset -c 1
check softirqs-link 120 until_true 100 link_ends
check softirqs-group 120 one_host 1 group taskset -c 1
check softirqs-packets-group 120 two_hosts 1 group taskset -c 1
# A busy host makes these long.
if full; then
	check softirqs-waits 120 one_host 1 waits taskset -c 1
	check softirqs-packets 120 two_hosts 1 packets taskset -c 1
	check softirqs-packets-waits 120 two_hosts 1 waits taskset -c 1
fi
rmmod arx_probe
check charged 60 until_true 40 charged in_group ip netns exec h1 \
	fair hog "$dev1" 20
for queue in receives sends local orphans; do
	check "charged-$queue" 60 until_true 40 charged \
		fair store "h1:$dev1" 20 "$queue" $group/cgroup.procs
done
check process-ends 60 process_ends
check process-stopped 60 fair stopped "h1:$dev1"
rmdir $group 2>/dev/null || true
