#!/bin/bash
# Removal at any moment: processes are killed; netdevs, links and namespaces are
# removed under traffic; the module is removed unless it is in use. A removal
# takes effect at once, applications are notified and end, and nothing is left.
# kernels: 6.12 newest uml
# timeout: 700

source "$(dirname "$0")/lib.sh"

full && times=50 || times=1
# seconds for an event that must come soon
debug_kernel && patience=30 || patience=10
now() { echo $((${EPOCHREALTIME/./} / 1000)); }	# milliseconds

# Pages that arx pinned and has not released
pinned() {
	awk '/^nr_foll_pin_acquired/ { n += $2 } /^nr_foll_pin_released/ { n -= $2 } END { print n + 0 }' /proc/vmstat
}

# The number of objects of each kind
objects() { h1 rdma resource show && h2 rdma resource show; }

# No objects are left except those that the device makes for itself.
nothing_left() {
	local left
	left=$(objects) || return 1
	[[ $left == "$objects_before" ]] ||
		{ printf '%s\nnot:\n%s\n' "$left" "$objects_before"; return 1; }
	(( $(pinned) == pinned_before )) ||
		{ echo "$(pinned) pages pinned, not $pinned_before"; return 1; }
}

# at_once COMMAND...: it succeeds, and does not wait for applications, whose
# traffic would continue for another minute. (A second is enough on an idle
# machine; a shared software CPU needs many.)
at_once() {
	local start took
	start=$(now)
	timeout 60 "$@" || { echo "status $? of $*"; return 1; }
	took=$(($(now) - start))
	(( took < 20000 )) || { echo "$* took $took ms"; return 1; }
	echo "$* took $took ms"
}

# traffic FROM TO: endless messages of all kinds in the background; the process
# IDs are in $traffic
traffic() {
	verify -f 4 -a "h$1:$driver$1" -b "h$2:$driver$2" 'traffic: op=mix size=50000 vary=1 qps=4 both=1 srq=1 count=5000 seconds=100' \
		>"$scratch/traffic" 2>&1 &
	traffic=$!
	until_true 20 under_way verify
}

# under_way COMMAND: it has a connected QP in h1
under_way() {
	[[ $(h1 rdma resource show qp) =~ state\ RT[RS][^$'\n']*comm\ $1 ]]
}

ended() { ! kill -0 "$1" 2>/dev/null; }

# ---- killed ----

killed() {
	local i
	for ((i = 0; i < times; i++)); do
		traffic $1 $2
		nap 0.$((RANDOM % 4))
		# the process of one side: the other side then has no peer
		kill -KILL "$(pgrep -P $traffic | sed -n $((i % 2 + 1))p)"
		until_true $patience ended $traffic
		until_true $patience nothing_left
	done
}

# An application of its own: a server killed while its client runs, and the
# other way round, in turn
killed_perftest() {
	local i
	for ((i = 0; i < times; i++)); do
		h1 ib_write_bw -F -d "$dev1" --run_infinitely -D 1 >/dev/null \
			2>&1 &
		until_true $patience listening h1 18515
		h2 ib_write_bw -F -d "$dev2" --run_infinitely -D 1 $ip1 \
			>/dev/null 2>&1 &
		until_true $patience under_way ib_write_bw
		kill -KILL "$(pgrep $( ((i % 2)) && echo -n ||
			echo -o ) ib_write_bw | head -n 1)"
		nap 0.2
		pkill -KILL ib_write_bw || true
		until_true $patience nothing_left
	done
}

# ---- the device goes away ----

# gone FROM TO COMMAND...: under traffic of programs that ignore the event, and
# of a program that waits for it
gone() {
	local from=$1 to=$2 i watcher
	shift 2
	for ((i = 0; i < times; i++)); do
		anew
		traffic $from $to
		# before it is read instead of the previous file
		: >"$scratch/gone"
		verify -f 4 -a "h$from:$driver$from" -b "h$to:$driver$to" \
			'gone: fail=device_gone' >"$scratch/gone" 2>&1 &
		watcher=$!
		until_true 20 eval \
			'[[ $(<"$scratch/gone") == *"side A is ready"* ]]'
		nap 0.$((RANDOM % 3))
		at_once "$@"
		until_true $patience ended $watcher
		wait $watcher || { cat "$scratch/gone"; return 1; }
		grep IBV_EVENT_DEVICE_FATAL "$scratch/gone"
		until_true $patience ended $traffic
		not grep -E 'killed|signal' "$scratch/traffic"
		[[ $from != "$to" ]] ||
			(( $(grep -c FATAL "$scratch/gone") == 2 )) ||
				{
					echo "not both programs got the event"
					return 1
				}
	done
}

# Makes the nodes anew, after a case that has removed something.
anew() { arx-hosts down && arx-hosts up --driver "$driver"; }

# A namespace lives as long as its processes. The last of them takes the device
# along.
netns_deleted() {
	local i
	for ((i = 0; i < times; i++)); do
		anew
		traffic 1 2
		ip netns delete h1
		nap 0.$((RANDOM % 3))
		kill -KILL $(pgrep -P $traffic)
		until_true $patience ended $traffic
		until_true $patience eval 'h2 rdma link delete "$dev2" && rmmod "$driver" || rmmod "$driver"'
		modprobe "$driver"
	done
}

# A process that cannot run does not keep the link.
stopped() {
	local i sides
	for ((i = 0; i < times; i++)); do
		anew
		traffic 1 2
		sides=$(pgrep -P $traffic)
		kill -STOP $sides
		at_once ip netns exec h1 rdma link delete "$dev1"
		kill -CONT $sides
		until_true $patience ended $traffic
		not grep -E 'killed|signal' "$scratch/traffic"
	done
}

# ---- the module ----

module_in_use() {
	local i
	for ((i = 0; i < times; i++)); do
		anew
		traffic 1 2
		not timeout 10 rmmod "$driver" >"$scratch/rmmod" 2>&1
		grep 'in use' "$scratch/rmmod"
		kill -KILL $(pgrep -P $traffic)
		until_true $patience ended $traffic
		not timeout 10 rmmod "$driver" >"$scratch/rmmod" 2>&1
		grep 'in use' "$scratch/rmmod"
	done
}

# With links that no program uses the module is in use; without links it can be
# removed and loaded again.
module_goes() {
	local i
	for ((i = 0; i < times; i++)); do
		anew
		h1 rdma link delete "$dev1"
		not rmmod "$driver" 2>/dev/null
		h2 rdma link delete "$dev2"
		timeout 20 rmmod "$driver"
		modprobe "$driver"
	done
}

# ---- the link goes and comes back ----

# A break within the retry budget costs only time.
link_flaps() {
	# One stream (a QP cannot connect while the link is down): hundreds of
	# messages wait for a slow receiver.
	local count=1000
	! full || count=1600
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "flap: op=mix size=20000 vary=1 both=1 timeout=18 count=$count slow=10000" \
		>"$scratch/flap" 2>&1 &
	local pid=$!
	# Both sides: without its address a side cannot connect.
	until_true 20 under_way verify
	until_true 20 eval \
		'h2 rdma resource show qp | finds "state RTS.*comm verify"'
	nap 0.5
	ip -n h2 link set eth0 down
	h2 rdma link show "$dev2/1" | grep DOWN
	nap 0.5
	ip -n h2 link set eth0 up
	# the IPv6 addresses went with the link
	ip -n h2 address replace $ip62/64 dev eth0 nodad
	until_true $patience eval 'h2 rdma link show "$dev2/1" | grep ACTIVE'
	wait $pid || { cat "$scratch/flap"; return 1; }
}

hosts
pinned_before=$(pinned) objects_before=$(objects)
check killed-hosts $((times * 45)) killed 1 2
check killed-host $((times * 45)) killed 1 1
check killed-perftest $((times * 45)) killed_perftest
check link-flaps 60 link_flaps
check link-deleted-hosts $((times * 60)) gone 1 2 ip netns exec h1 rdma link \
	delete "$dev1"
check link-deleted-host $((times * 60)) gone 1 1 ip netns exec h1 rdma link \
	delete "$dev1"
check netdev-deleted $((times * 60)) gone 1 2 ip -n h1 link delete eth0
check peer-netdev-deleted $((times * 60)) gone 2 1 ip -n h2 link delete eth0
check netns-deleted $((times * 60)) netns_deleted
check link-deleted-owner-stopped $((times * 60)) stopped
check module-in-use $((times * 60)) module_in_use
check module-goes $((times * 30)) module_goes
check nothing-pinned 20 until_true $patience eval \
	'(( $(pinned) == pinned_before ))'
