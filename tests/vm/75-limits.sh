#!/bin/bash
# Limits of a user: memory of rings, groups, objects; many connections at once;
# and how fast a process with many objects ends.
# kernels: 6.12 newest uml
# timeout: 900

source "$(dirname "$0")/lib.sh"

debug_kernel && slow=10 || slow=1
now() { echo $((${EPOCHREALTIME/./} / 1000)); }	# milliseconds

# as_nobody KIB h1|h2 COMMAND...: as a user without capabilities, who may lock
# KIB of memory
as_nobody() {
	local kib=$1 host=$2
	shift 2
	(ulimit -l "$kib"; exec ip netns exec "$host" setpriv --reuid nobody \
		--regid nogroup --clear-groups --inh-caps=-all \
		--bounding-set=-all "$@")
}

limits() { h1 limits "$@"; }
nobody_limits() { as_nobody 64 h1 limits "$@"; }

# ---- memory of rings ----

# Debian's examples without changes need no more than the allowance.
small_programs() {
	as_nobody 64 h1 ibv_devinfo -d "$dev1" >/dev/null
	as_nobody 64 h1 ibv_rc_pingpong -d "$dev1" -g "$(gid_index h1 ::ffff:192)" -n 20 &
	until_true 20 listening h1 18515
	as_nobody 64 h2 ibv_rc_pingpong -d "$dev2" -g "$(gid_index h2 ::ffff:192)" -n 20 $ip1
	wait $!
}

# holds NAME COMMAND...: start it; its first line is in $line, its input is the
# descriptor $hold
holds() {
	local name=$1
	shift
	rm -f "$scratch/$name"
	mkfifo "$scratch/$name"
	: >"$scratch/$name.out"
	"$@" <"$scratch/$name" >"$scratch/$name.out" 2>&1 &
	holder=$!
	exec {hold}>"$scratch/$name"
	until_true $((60 * slow)) grep -q . "$scratch/$name.out"
	line=$(<"$scratch/$name.out")
}

# 31 rings fit into the allowance besides the other queues of the process. The
# memory of a ring that ends can be used again, also by another process of the
# same user, as long as no other uses it.
allowance() {
	local first
	holds a nobody_limits rings "$dev1" 64
	echo "$line"
	[[ $line =~ ^31\ rings,\ error\ ENOMEM$ ]]
	first=$hold
	holds b nobody_limits rings "$dev1" 64
	[[ $line == '0 rings, error ENOMEM' ]]
	exec {hold}>&-
	wait $holder
	echo >&"$first"
	until_true 60 eval '(( $(wc -l <"$scratch/a.out") == 2 ))'
	[[ $(tail -n 1 "$scratch/a.out") == '31 rings, error ENOMEM' ]]
	exec {first}>&-
	holds c nobody_limits rings "$dev1" 64
	[[ $line == '31 rings, error ENOMEM' ]]
	exec {hold}>&-
}

# Device memory has the same allowance.
device_memory() {
	local line
	line=$(nobody_limits dm "$dev1")
	echo "$line"
	[[ $line == '16 MiB of device memory, error ENOMEM' ]]
}

# Rings beyond the allowance count against RLIMIT_MEMLOCK: 4 MiB allow 8 rings
# more. A process that may lock memory has no limit.
beyond_allowance() {
	local line
	line=$(as_nobody 4096 h1 limits rings "$dev1" 64 </dev/null | sed -n 1p)
	echo "$line"
	[[ $line == '39 rings, error ENOMEM' ]]
	line=$(ulimit -l 64; limits rings "$dev1" 80 </dev/null | sed -n 1p)
	[[ $line == '80 rings, error none' ]]
}

# A memory cgroup has no more rings than its limit, whichever user is in it.
cgroup() {
	local group=/sys/fs/cgroup/limits most
	finds -w memory </sys/fs/cgroup/cgroup.controllers ||
		{ echo "no memory controller"; return 0; }
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir $group
	echo $((32 << 20)) >$group/memory.max
	(echo $BASHPID >$group/cgroup.procs; limits rings "$dev1" 200) </dev/null >"$scratch/cgroup" 2>&1 || true
	most=$(<$group/memory.peak)
	cat "$scratch/cgroup" $group/memory.events
	(( most > 24 << 20 && most <= 32 << 20 ))
	until_true 20 eval '[[ ! $(<'$group'/cgroup.procs) ]]'
	until_true 20 rmdir $group
}

# ---- objects ----

most() {
	local line
	line=$(limits most "$dev1" "$1")
	echo "$line"
	[[ $line =~ ^([0-9]+)\ of\ 1048576,\ error\ ENOMEM$ ]]
	# All except those that the kernel has made for itself.
	(( BASH_REMATCH[1] <= 1048576 && BASH_REMATCH[1] > 1048576 - 8 ))
}

# ended NAME REGIONS QPS SIGNAL: it takes $took milliseconds. The signal must
# reach the program, not a shell that waits for it.
ended() {
	local before start
	before=$(h1 rdma resource show "$dev1")
	holds "$1" ip netns exec h1 limits exit "$dev1" "$2" "$3"
	[[ $line == ready ]]
	start=$(now)
	if [[ $4 == exit ]]; then exec {hold}>&-; else kill -"$4" $holder; fi
	wait $holder || true
	took=$(($(now) - start))
	echo "ended in $took ms"
	[[ $(h1 rdma resource show "$dev1") == "$before" ]]
}

# ends TRIES MILLISECONDS NAME REGIONS QPS SIGNAL: in that time. A busy host may
# delay a try.
ends() {
	local tries=$1 limit=$(($2 * slow)) took=$(($2 * slow))
	shift 2
	while (( took >= limit )); do
		(( tries-- > 0 ))
		ended "$@"
	done
}

# ---- many at once ----

cm() {
	h1 bash -c "$1" &
	until_true 20 listening h1 cm
	h2 bash -c "$2"
	wait $!
}

rpings() {
	local n=$1 i clients=() failed=0
	h1 rping -s -P -a $ip1 >/dev/null 2>&1 &
	local server=$!
	until_true 20 listening h1 cm
	for ((i = 0; i < n; i++)); do
		h2 timeout 120 rping -c -a $ip1 -C 2 >"$scratch/rping-$i" 2>&1 &
		clients+=($!)
	done
	for i in "${!clients[@]}"; do
		wait "${clients[i]}" || { failed=$((failed + 1)); cat "$scratch/rping-$i"; }
	done
	kill $server
	echo "$failed of $n failed"
	(( ! failed ))
}

hosts
check small-programs 60 small_programs
check allowance 120 allowance
check beyond-allowance 120 beyond_allowance
check device-memory 60 device_memory
check cgroup 60 cgroup
check groups 60 eval '[[ $(nobody_limits groups "$dev1") == "64 groups, error ENOBUFS" ]]'
check groups-of-root 60 eval '[[ $(limits groups "$dev1") == "100 groups, error none" ]]'
if full || ! debug_kernel; then
	check exit 120 ends 3 2000 exit 10000 2000 exit
else
	check exit 120 ends 3 2000 exit 1000 200 exit
fi
full && connections=2000 clients=500 || connections=300 clients=40
debug_kernel && connections=100 clients=10
check "cmtime -c $connections" 200 cm "timeout 180 cmtime -b $ip1 -c $connections" "cmtime -s $ip1 -c $connections"
check "rping-at-once $clients" 200 rpings $clients
if full && ! debug_kernel; then
	for kind in pd ah mr; do
		check "most-$kind" 200 most $kind
	done
	# Each CQ has a ring, which its process maps.
	echo $((1 << 21)) >/proc/sys/vm/max_map_count
	check most-cq 400 most cq
	check killed 240 ends 1 60000 killed 1000000 0 KILL
fi
