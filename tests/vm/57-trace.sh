#!/bin/bash
# The tracepoints of architecture.rst's arrows: trace-cmd decodes the events of
# messages, losses and failures; those that are off record nothing. The example
# of troubleshooting.rst with perf and bpftrace.
# kernels: 6.12 newest uml
# timeout: 200

source "$(dirname "$0")/lib.sh"

tracing=/sys/kernel/tracing

# traced CASE...: what verify causes, in $scratch/report
traced() {
	cd "$scratch"
	trace-cmd record -q -e arx -o trace.dat verify -f 4 -a "h1:$dev1" \
		-b "h2:$dev2" "$@"
	trace-cmd report -i trace.dat >report
	rm trace.dat
	wc -l <report
	not grep -m 5 -iE 'failed to parse|\[unknown|: *$' report
}

# seen PATTERN...: each has its line, in any order
seen() {
	local pattern
	for pattern; do
		finds -E ": +$pattern" "$scratch/report" ||
			{ echo "no $pattern"; return 1; }
	done
}

# in_order PATTERN...: the first lines of the patterns are in this order
in_order() {
	local pattern line last=0
	for pattern; do
		line=$(grep -nE -m 1 ": +$pattern" "$scratch/report" |
			cut -d: -f1)
		echo "line ${line:-none}: $pattern"
		(( line > last ))
		last=$line
	done
}

message() {
	traced 'message: op=write size=100000 count=1 window=1'
	in_order 'arx_state: .*to=RTS' 'arx_post: .*op=write len=100000 ' \
		'arx_run_out: .*op=write .*flags=first.* to=wire' \
		'arx_run_out: .*op=write .*ack-req.reports to=wire' \
		'arx_run_in: .*op=write .*flags=first' \
		'arx_ack_sent: .*kind=ack' 'arx_acked: ' \
		'arx_complete: .*queue=send .*status=SUCCESS'
	seen 'arx_stop: .*reason=(wait|idle)' 'arx_key_revoked: .*length=[1-9]'
	# A QP that got 100000 bytes has seen the PSN that it expected.
	awk '/arx_run_in: .*op=write/ { split($0, w, /psn=|expected=/); if (w[2] + 0 != w[3] + 0) exit 1 }' \
		"$scratch/report"
}

kinds() {
	traced 'kinds: op=send,read,cas,faa size=8 count=4' \
		'events: op=send events=1 count=8 window=1'
	seen 'arx_post: .*op=(swap|add)' 'arx_run_out: .*op=response' \
		'arx_run_in: .*op=atomic-ack' \
		'arx_complete: .*queue=receive .*status=SUCCESS' \
		'arx_cq_event: .*cqn='
}

# Events come on the CPU of the CQ's completion vector, although the completions
# are written on another.
vector() {
	cd "$scratch"
	h1 trace-cmd record -q -e arx:arx_cq_event -o trace.dat doorbell \
		vector "$dev1" 1
	trace-cmd report -i trace.dat >report
	rm trace.dat
	grep -c 'arx_cq_event:' report
	(( $(grep -c 'arx_cq_event:' report) > 20 ))
	not finds -E '\[000\].* arx_cq_event:' report
}

loss() {
	h1 tc qdisc add dev eth0 root netem loss 20%
	traced 'loss: op=send size=8000 count=300 timeout=15'
	h1 tc qdisc del dev eth0 root
	seen 'arx_rewind: .*from=[0-9]+ to=[0-9]+' \
		'arx_nak: .*kind=nak value=0 ' \
		'arx_nak_rcvd: .*kind=nak value=0 '
}

failures() {
	traced 'refused: fail=refuse_write' 'wait: fail=rnr_wait' \
		'own: fail=send_bad_lkey' 'silence: fail=retry_exceeded'
	seen 'arx_fault: .*by=responder status=(LOC|REM)_ACCESS_ERR|arx_nak: .*kind=nak value=2 ' \
		'arx_fault: .*by=requester status=LOC_PROT_ERR' \
		'arx_event: .*event=QP_ACCESS_ERR' 'arx_nak_rcvd: .*kind=rnr' \
		'arx_timer: .*timer=rnr' \
		'arx_timer: .*timer=retransmit' 'arx_state: .*from=RTS to=ERR' \
		'arx_complete: .*status=RETRY_EXC_ERR' \
		'arx_complete: .*status=WR_FLUSH_ERR'
}

# perf records and decodes events of all CPUs: few kinds, because each takes
# time to turn on.
watched() {
	cd "$scratch"
	perf record -q -a -B -N --synth=no -e arx:arx_post -e arx:arx_rewind \
		-e arx:arx_stop -o perf.data \
		verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		'watched: op=write size=100000 count=30 timeout=12'
	perf script -i perf.data >report
	rm perf.data
	wc -l <report
	not grep -m 5 -iE 'failed to parse|\[unknown|: *$' report
}

lossy() {
	h1 tc qdisc add dev eth0 root netem loss 10%
	"$@"
	h1 tc qdisc del dev eth0 root
}

perf_decodes() {
	lossy watched
	seen 'arx:arx_post: .*op=write len=100000 ' \
		'arx:arx_rewind: .*from=[0-9]+ to=[0-9]+' \
		'arx:arx_stop: .*reason=[a-z]'
}

# The program in troubleshooting.rst. It sees the events that perf sees.
program() {
	awk '/^ +bpftrace -e/ { on = 1; next } on && /^ +\047$/ { exit } on' \
		/arx/Documentation/troubleshooting.rst
}
bpftrace_sums() {
	local tracer rewinds sum
	cd "$scratch"
	program >waits.bt
	echo 'BEGIN { printf("ready\n"); }' >>waits.bt
	bpftrace -B none waits.bt >waits &
	tracer=$!
	until_true 60 finds ready waits
	lossy watched
	kill $tracer
	wait $tracer
	cat waits
	finds -E '^@us_for_peer: [1-9]' waits
	rewinds=$(grep -c 'arx:arx_rewind:' report)
	sum=$(awk '/^@rewinds/ { n += $2 } END { print n }' waits)
	echo "perf saw $rewinds rewinds, bpftrace $sum"
	(( rewinds && rewinds == sum ))
}

# Nothing is recorded by tracepoints that are off, and the module takes them
# along.
off() {
	[[ $(<$tracing/events/arx/enable) == 0 ]]
	echo >$tracing/trace
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		'off: op=mix size=20000 count=20'
	not finds arx_ $tracing/trace
	# on while the module is removed
	echo 1 >$tracing/events/arx/enable
	arx-hosts down
	rmmod "$driver"
	[[ ! -e $tracing/events/arx ]]
}

hosts --mtu 9000
mountpoint -q $tracing || mount -t tracefs tracefs $tracing
check message 40 message
check kinds 40 kinds
if debug_kernel; then skip vector "one CPU"; else check vector 40 vector; fi
check loss 60 loss
check failures 90 failures
if full && ! debug_kernel; then
	check perf 60 perf_decodes
	check bpftrace 60 bpftrace_sums
else
	skip perf-bpftrace "they take 10 s each: left to make test-full"
fi
check off 60 off
