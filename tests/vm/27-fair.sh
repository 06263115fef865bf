#!/bin/bash
# Copies between QPs of one machine keep no CPU from others: bottom halves are
# on again soon, and the posting process is charged.
# kernels: 6.12 newest
# timeout: 500

source "$(dirname "$0")/lib.sh"

mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
group=/sys/fs/cgroup/arx-fair

# longest US THREADS [taskset ...]: with one CPU, nobody waits for another CPU
longest() {
	"${@:3}" ip netns exec h1 fair longest "$dev1" $1 $2
}

seconds=5
! brief || seconds=3

# took COMMAND...: hundredths of a CPU that COMMAND takes from programs that
# want all CPUs
took() {
	local others
	"$@" >&2 &
	others=$!
	nap 1
	h1 fair share $seconds
	echo 1 >$group/cgroup.kill
	wait $others || true
}

# in_group QUOTA COMMAND...: in a container with a quota of QUOTA hundredths of
# a CPU
in_group() {
	mkdir -p $group
	echo "${1}000 100000" >$group/cpu.max
	shift
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' $group "$@"
}

# The kernel itself takes a part, a larger one in the machine of a busy host.
charged() {
	local percent kernel
	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
	kernel=$(h1 fair share $seconds)
	percent=$(took in_group 5 ip netns exec h1 fair hog "$dev1" 20)
	cat $group/cpu.stat
	echo "a container of 5 % took $percent %, less the $kernel % that nobody took"
	(( percent - kernel <= 10 ))
}

hosts --mtu 9000
insmod "/arx/build/$(uname -r)/arx_probe.ko"
check softirqs 120 longest 2000 1 taskset -c 1
check softirqs-two-threads 120 longest 2000 2 taskset -c 1
check softirqs-two-cpus 180 longest 2000 2
rmmod arx_probe
check charged 60 until_true 40 charged
rmdir $group 2>/dev/null || true
