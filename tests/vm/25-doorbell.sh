#!/bin/bash
# The moderation of doorbells and of completion events: a stream makes no system
# call for each message, a request that the application waits for is sent at
# once, and none is forgotten, whenever it is posted.
# kernels: 6.12 newest uml
# timeout: 500

source "$(dirname "$0")/lib.sh"

# At best one kick for each 16 messages, which bench measures; a machine that
# the host delays needs some more. In the debug kernel posting is so slow that
# polls find nothing in between.
count=30000 few=3750
if debug_kernel; then count=3000 few=1500; fi
full && seconds=60 || seconds=3
attribute=/sys/class/infiniband/$dev1/doorbell_usecs

# In a shell of the namespace: its sysfs shows its devices.
attribute() { h1 sh -c "${2:+echo $2 >$1 &&} cat $1"; }

# kicks MODE LEAST MOST: of count messages. A pause of the host in which the
# polls end costs kicks, so MOST may take several tries.
kicks() {
	local before
	before=$(counter "$dev1" kicks h1)
	h1 doorbell "$1" "$dev1" $count
	kicks=$(($(counter "$dev1" kicks h1) - before))
	echo "$1: $kicks kicks for $count messages"
	(( kicks >= $2 && kicks <= $3 ))
}

timer_polled() { (( $(counter "$dev1" sq_timer_polls h1) > 0 )); }

turned_off() {
	[[ $(attribute "$attribute" 0) == 0 ]]
	kicks stream $count $count
}

set_again() {
	not attribute "$attribute" -1 2>/dev/null
	not attribute "$attribute" 1000001 2>/dev/null
	[[ $(attribute "$attribute" 100) == 100 ]]
	until_true 30 kicks stream 1 $few
}

# An idle CPU polls, of those that the application may use; not always, because
# the scheduler may need a while to find it.
many() {
	"$@" verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		'many: op=write,mix size=8,200 qps=16 both=1 count=300'
}
# stream QPS OPTION VALUE [taskset ...]
stream() {
	local args=(-F -d "$dev1" -s 8 -q "$1" -N "$2" "$3") server
	shift 3
	h1 ib_write_bw "${args[@]}" >/dev/null &
	server=$!
	until_true 20 listening h1 18515
	h1 "$@" ib_write_bw "${args[@]}" $ip1
	wait $server
}
# bursts QPS MESSAGES [taskset ...]: of a hundred messages each
bursts() { stream $1 -n $(($2 / $1)) "${@:3}"; }
one() { bursts 1 48000 "$@"; }
worker_polled() {
	local before
	before=$(counter "$dev1" sq_worker_polls h1)
	"$@"
	polls=$(($(counter "$dev1" sq_worker_polls h1) - before))
	echo "$polls polls by the worker"
	(( polls > 0 ))
}
stayed() {
	local before polls
	before=$(counter "$dev1" sq_worker_polls h1)
	polls=$(counter "$dev1" sq_timer_polls h1)
	"$@" taskset -c 1
	(( $(counter "$dev1" sq_timer_polls h1) > polls ))
	(( $(counter "$dev1" sq_worker_polls h1) == before ))
}

# A CPU that runs a program polls only by the timer.
mostly_here() {
	local polls all
	polls=$(counter "$dev1" sq_worker_polls h1) \
		all=$(counter "$dev1" sq_timer_polls h1)
	bursts 16 48000
	polls=$(($(counter "$dev1" sq_worker_polls h1) - polls)) \
		all=$(($(counter "$dev1" sq_timer_polls h1) - all))
	echo "$polls polls at once, $all by the timer"
	(( polls * 4 < all ))
}
left_alone() {
	taskset -c 1 sh -c 'while :; do :; done' &
	until_true 30 mostly_here
}

# An idle CPU polls again at once while it finds requests: more often than every
# 2.5 ms, where the timer polls every 20 ms. A CPU that finds no request for 50
# us stops polling, so the program posts every 20 us. It does not kick, because
# its kicks would leave nothing to find. The start of the program counts, too.
at_once() {
	local polls kicks start by_timer
	attribute "$attribute" 20000 >/dev/null
	polls=$(counter "$dev1" sq_worker_polls h1)
	kicks=$(counter "$dev1" kicks h1)
	start=${EPOCHREALTIME/./}
	h1 doorbell steady "$dev1" 3
	by_timer=$(((${EPOCHREALTIME/./} - start) / 2500 + 1))
	polls=$(($(counter "$dev1" sq_worker_polls h1) - polls))
	kicks=$(($(counter "$dev1" kicks h1) - kicks))
	attribute "$attribute" 400 >/dev/null
	echo "$polls polls by the worker, $by_timer by a timer at most, $kicks kicks"
	(( polls > by_timer ))
}

# A disturbed CPU resumes polling when the disturbance is over.
more_kicks() { (( $(counter "$dev1" kicks h1) > $1 )); }
polls_again() {
	local polls spinner
	taskset -c 1 sh -c 'while :; do :; done' &
	spinner=$!
	nap 1
	kill $spinner
	wait $spinner || true
	nap 0.5
	polls=$(counter "$dev1" sq_worker_polls h1)
	nap 1
	polls=$(($(counter "$dev1" sq_worker_polls h1) - polls))
	kill -0 $writer || exit
	echo "$polls polls by the worker, half a second after the CPU was idle again"
	(( polls > 100 ))
}
comes_back() {
	local kicks writer
	kicks=$(counter "$dev1" kicks h1)
	h1 doorbell steady "$dev1" 60 &
	writer=$!
	until_true 20 more_kicks $kicks
	until_true 50 polls_again
	pkill -KILL -P $writer
	wait $writer || true
}

# unhurried MESSAGES: polls of many rings are so rare that each finds several
# requests. They are driven by time: a pause in which the host runs other
# machines, with few messages, must not dominate the count. A poll between two
# bursts of a ring finds none, so the count also depends on the speed of the
# machine.
unhurried() {
	local polls
	polls=$(counter "$dev1" sq_timer_polls h1)
	bursts 16 $1 taskset -c 0
	polls=$(($(counter "$dev1" sq_timer_polls h1) - polls))
	echo "$polls polls for $1 messages"
	(( polls * 10 < $1 ))
}

# answers HOST DEVICE CPU CPU: the time that requests and responses take does
# not depend on how many of them are signalled. Other programs of the host
# disturb this measurement: it compares the medians of rounds, for up to 90 s.
answers() {
	rm -f "$scratch"/{to,fro}
	mkfifo "$scratch"/{to,fro}
	"$1" taskset -c "$4" doorbell pong "$2" 1000 <"$scratch/to" \
		>"$scratch/fro" &
	h1 taskset -c "$3" doorbell ping "$dev1" 1000 >"$scratch/to" \
		<"$scratch/fro"
}

# A CPU that polls, or that has deferred work, goes offline and comes back.
cpu_goes() {
	local online=/sys/devices/system/cpu/cpu1/online
	echo 0 >$online
	[[ $(nproc) == 1 ]]
	while :; do
		echo 0 >$online; sleep 0.2; echo 1 >$online; sleep 0.3
	done &
	many
}
cpu_is_back() { echo 1 >/sys/devices/system/cpu/cpu1/online; }

hosts
check default 60 eval '[[ $(attribute "$attribute") == 400 ]]'
check single 40 kicks single $count $count
check stream 40 until_true 30 kicks stream 1 $few
check timer-polls 60 timer_polled
check events 60 until_true 30 kicks events 1 $((2 * few))
if (( $(nproc) > 1 )); then
	check worker-polls 60 until_true 50 worker_polled one
	check stayed 60 stayed many
	check stayed-one 60 stayed one
	check at-once 60 until_true 50 at_once
	check left-alone 90 left_alone
	check comes-back 120 comes_back
	check cpu-goes 60 cpu_goes
	check cpu-is-back 20 until_true 10 cpu_is_back
else
	skip worker-polls 'there is one CPU'
fi
# In the debug kernel a hundred messages of each ring take about as long as the
# idle intervals after which polling of a ring ends. If another machine makes
# this one slower, most intervals are idle for some seconds.
if debug_kernel; then
	check unhurried 130 until_true 100 unhurried 160000
else
	check unhurried 130 until_true 100 unhurried 480000
fi
if debug_kernel; then
	skip answers 'the debug kernel is too slow for it: KUnit counts the requests that wait'
else
	check answers-host 100 answers h1 "$dev1" 0 1
	check answers-hosts 100 answers h2 "$dev2" 0 1
	if ! brief; then
		check answers-host-one-cpu 100 answers h1 "$dev1" 0 0
		check answers-hosts-one-cpu 100 answers h2 "$dev2" 0 0
	fi
fi
check turned-off 40 turned_off
check set-again 40 set_again
check moderated-events 20 h1 doorbell moderated "$dev1" 60
check races $((seconds + 30)) h1 doorbell races "$dev1" $seconds
