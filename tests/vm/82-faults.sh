#!/bin/bash
# Memory runs out, and copies from and to user space fail, anywhere: every verb
# succeeds or refuses with a clear error, traffic continues or ends with a
# status, nothing is left behind. The debug kernel injects the faults and looks
# for leaks.
# kernels: uml
# timeout: 800

source "$(dirname "$0")/lib.sh"

faults=/sys/kernel/debug
for kind in failslab fail_page_alloc fail_usercopy; do
	echo 0 >$faults/$kind/verbose	# no stack for each fault
done
echo 0 >$faults/fail_page_alloc/min-order

# sleeping_fail Y|N: with N, only allocations fail that may not sleep: those of
# softirqs and of posting.
sleeping_fail() {
	local skip=N
	[[ $1 == Y ]] || skip=Y
	echo $skip >$faults/failslab/ignore-gfp-wait
	echo $skip >$faults/fail_page_alloc/ignore-gfp-wait
	echo $skip >$faults/fail_page_alloc/ignore-gfp-highmem
}

# fail_some PERCENT: of the allocations of all programs
many=1000000
fail_some() {
	local kind
	for kind in failslab fail_page_alloc; do
		echo $many >$faults/$kind/times
		echo "$1" >$faults/$kind/probability
	done
}

# The number of failed allocations
failed_so_far() {
	local slab page
	slab=$(<$faults/failslab/times) page=$(<$faults/fail_page_alloc/times)
	echo $((2 * many - slab - page))
}

# failing FROM TO PERCENT CASE: traffic while PERCENT of all allocations that
# may not sleep fail
failing() {
	local from=$1 to=$2 percent=$3 case=$4 some
	sleeping_fail N
	verify -f 8 -a "h$from:$driver$from" -b "h$to:$driver$to" "$case" \
		>"$scratch/failing" &
	until_true 20 verify_under_way
	fail_some "$percent"
	wait $! || (( ++failures ))
	some=$(failed_so_far)
	fail_some 0
	cat "$scratch/failing"
	echo "# $some allocations failed"
	(( some >= 10 )) ||
		fail "${case%%:*}-injected" "only $some allocations failed"
}

pinned() {
	awk '/^nr_foll_pin_acquired/ { n += $2 } /^nr_foll_pin_released/ { n -= $2 } END { print n + 0 }' /proc/vmstat
}

nothing_left() {
	(( $(pinned) == 0 )) || { echo "$(pinned) pages pinned"; return 1; }
	h1 rdma resource show "$dev1" | finds 'qp [01] cm_id 0 mr 0 ' ||
		{ h1 rdma resource show; return 1; }
}

# Memory is there, but no 16 pages of it in a row: what long-running machines
# have.
fragmented() {
	local status=0
	sleeping_fail Y
	echo 4 >$faults/fail_page_alloc/min-order
	echo $many >$faults/fail_page_alloc/times
	echo 100 >$faults/fail_page_alloc/probability
	h1 limits longest "$dev1" || status=$?
	echo 0 >$faults/fail_page_alloc/probability
	echo 0 >$faults/fail_page_alloc/min-order
	echo "$((many - $(<$faults/fail_page_alloc/times))) allocations failed"
	return $status
}

# A link's creation has some thousand allocations, half of which may fail.
links() {
	h1 ip link add extra type veth peer name extra-peer
	h1 ip link set extra up
	h1 hostile links extra "$stride"
	h1 ip link del extra
}

full && count=20000 stride=37 || count=2000 stride=499
hosts
sleeping_fail Y
check fragmented 60 fragmented
check verbs 100 h1 hostile faults "$dev1"
check links 300 links
for percent in 5 50; do
	failing 1 2 $percent "hosts-$percent-percent: op=mix size=20000 vary=1 qps=4 both=1 count=$count timeout=12 limit=60"
	failing 1 1 $percent "host-$percent-percent: op=mix size=20000 vary=1 qps=4 both=1 count=$count timeout=12 limit=60"
	failing 1 2 $percent "hosts-uc-$percent-percent: qp=uc op=send_imm size=20000 lossy=1 both=1 count=$count"
	failing 1 2 $percent "hosts-ud-$percent-percent: qp=ud op=send_imm size=1000 lossy=1 both=1 count=$count"
done
check works-again 60 verify -f 8 -a "h1:$dev1" -b "h2:$dev2" \
	"after: op=mix size=20000 count=$count"
check nothing-left 20 until_true 10 nothing_left
check unload 30 eval 'arx-hosts down && rmmod arx'
