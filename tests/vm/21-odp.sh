#!/bin/bash
# Memory paged on demand: every byte arrives while pages are reclaimed and found
# again, with a cgroup's limit, fork, KSM and huge pages; unmapped memory fails
# only the requests that use it; a page fault that nobody serves harms no other
# QP, and ends with its QP; counters; perftest.
# kernels: 6.12 newest uml
# timeout: 500

source "$(dirname "$0")/lib.sh"

# Swap on a file: without it reclaim takes no page of a process. The file has
# all of its memory, which would else be charged to the cgroup that swaps.
swap() {
	modprobe loop 2>/dev/null
	dd if=/dev/zero of="$scratch/swap" bs=1M count=96 status=none &&
		mkswap -q "$scratch/swap" &&
		swapon "$(losetup --find --show "$scratch/swap")"
}

# The counters of regions, while pages come and go. They end with the region: a
# process looks all the time, and verify runs until both were seen at work.
counted() {
	local failures=0 looker
	h1 bash -c 'while :; do rdma statistic show mr; done' >"$scratch/mr" &
	looker=$!
	until_true 60 count_seen
	kill $looker
	finds 'page_prefetch 0' "$scratch/mr"
	(( failures == 0 ))
}
count_seen() {
	verify_on 1 2 "counted: op=write,read size=100000 both=1 odp=1 upset=1 count=$((2 * count))"
	grep -oE 'page_(faults|invalidations) [0-9]+' "$scratch/mr" | sort -u |
		tail -n 3
	(( failures )) ||
		{ finds 'page_faults [1-9]' "$scratch/mr" &&
			finds 'page_invalidations [1-9]' "$scratch/mr"; }
}

# The limit is much less than the regions.
in_small_cgroup() {
	local failures=0 group=/sys/fs/cgroup/odp
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group
	echo 16M >$group/memory.max
	echo $BASHPID >$group/cgroup.procs
	verify_on 1 2 "small-cgroup: op=write,read size=1M window=4 count=$((count / 5)) odp=1 limit=60"
	(( failures == 0 ))
}

perftest() {
	pair 18515 "ib_write_bw -d $dev1 -F -x 1 --odp -D 1 -s 65536" \
		"ib_write_bw -d $dev2 -F -x 1 --odp -D 1 -s 65536 $ip1"
	pair 18515 "ib_read_lat -d $dev1 -F -x 1 --odp -n 200" \
		"ib_read_lat -d $dev2 -F -x 1 --odp -n 200 $ip1"
	pair 18515 "ib_send_bw -d $dev1 -F -x 1 --odp -n 200" \
		"ib_send_bw -d $dev2 -F -x 1 --odp -n 200 $ip1"
}

# The job that waited for an answer would keep the module.
unload() {
	arx-hosts down
	until_true 20 rmmod arx
}

ksm=/sys/kernel/mm/ksm
[[ ! -e $ksm ]] || { echo 1 >$ksm/run; echo 10 >$ksm/sleep_millisecs; }
swap || skip swap "this kernel has none"
count=40
! full || count=400

hosts --mtu 9000
for peer in 2 1; do
	verify_on 1 $peer "odp-$peer: odp=1,2 op=send_imm,write,read,faa,mix size=1,65537 count=$count" \
		"odp-$peer-sge: odp=1 op=send,write,read sge=3 rsge=3 size=40000 count=$count" \
		"odp-$peer-long: odp=1 op=send,write,read size=8M window=2 count=4" \
		"odp-$peer-srq: odp=1 srq=1 op=send_imm,mix vary=1 size=5000 qps=4 both=1 count=$count" \
		"odp-$peer-datagrams: odp=1 qp=uc,ud lossy=1 op=send_imm size=1000 count=$((4 * count))" \
		"odp-$peer-upset: odp=1,2 upset=1 op=send,write_imm,mix vary=1 size=100000 both=1 count=$count" \
		"odp-$peer-upset-atomics: odp=1 upset=1 op=faa,cas qps=4 count=$count" \
		"odp-$peer: fail=odp_unmapped,odp_own_unmapped,odp_protected,odp_truncated,odp_broken,odp_kept_secret,odp_unanswered,odp_unanswered_killed,odp_advice"
done
check counters 90 counted
if debug_kernel; then
	skip small-cgroup "the OOM killer ends its programs: more of their memory cannot be swapped out here"
else
	check small-cgroup 90 in_small_cgroup
fi
check perftest 60 by_packets 200 perftest
[[ $driver != arx ]] || check unload 60 unload
