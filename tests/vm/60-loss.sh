#!/bin/bash
# A bad link: reliable messages arrive exactly once and intact; unreliable ones
# arrive intact or not at all; a link that is cut leads to the right status.
#
# Netem drops, duplicates, delays and corrupts packets that h1 and h2 send
# (there a run of packets is still one skb). The filter at the receiver sees
# single packets, since the sender's device segments runs; the filter corrupts
# payload, too.
# kernels: 6.12 newest uml
# left: 6.12
# timeout: 700

source "$(dirname "$0")/lib.sh"

on_both() {
	local n
	for n in 1 2; do "h$n" "$@" || return; done
}

# A missing qdisc cannot be deleted, and on_both ends at the first node.
clear_link() {
	local n
	for n in 1 2; do
		"h$n" tc qdisc del dev eth0 root || :
		"h$n" tc qdisc del dev eth0 clsact || :
		"h$n" ethtool -K eth0 tx-gso-list on || :
		"h$n" ip link del ifb0 || :
	done
} 2>/dev/null

# single ACTION...: for every single packet that arrives, by a filter
single() {
	on_both ethtool -K eth0 tx-gso-list off
	on_both tc qdisc add dev eth0 clsact
	on_both tc filter add dev eth0 ingress matchall "$@"
}

# both COUNTER: the sum of both nodes
both() { echo $(($(counter "$dev1" "$1" h1) + $(counter "$dev2" "$1" h2))); }

# was_bad COUNTER BEFORE: the link lost or changed packets as configured. (A
# rare event need not happen in the sample.)
was_bad() {
	local rose=$(($(both "$1") - $2))
	echo "$1 rose by $rose"
	(( rose > 0 )) || ! full
}

# bad NAME COUNTER COMMAND...: transfers while COMMAND applies to the links of
# both nodes, at which COUNTER rises. The retry budget: 7 retries, 134 ms apart.
bad() {
	local name=$1 counter=$2 reliable="timeout=15 retry=7 both=1 limit=30" \
		before
	shift 2
	clear_link
	before=$(both "$counter")
	"$@" || { fail "$name" "$*"; return; }
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"$name-send: op=send_imm size=64K count=$messages $reliable" \
		"$name-write: op=write size=64K count=$messages $reliable" \
		"$name-read: op=read size=64K count=$messages $reliable" \
		"$name-atomics: op=faa,cas count=$atomics $reliable" \
		"$name-one-word: op=faa qps=4 count=$((atomics / 4)) $reliable" \
		"$name-mix: op=mix size=20000 vary=1 qps=4 psn=0xffff00 count=$((messages * 2)) $reliable" \
		"$name-lists: op=write,mix size=8,9000 vary=1 list=16 psn=0xffff00 count=$((messages * 4)) $reliable" \
		"$name-uc-ud: qp=uc,ud op=send_imm size=1000 lossy=1 both=1 count=$messages" || (( ++failures ))
	check "$name-seen" 20 was_bad "$counter" "$before"
}

# control NAME ECN: congestion control and ECN of both devices
control() {
	local n
	for n in 1 2; do
		"h$n" bash -c "cd /sys/class/infiniband/$driver$n && echo $1 >cc && echo $2 >ecn" || return
	done
}

# controlled NAME COMMAND...: with this congestion control, and ECN
controlled() {
	control "$1" 1
	"${@:2}"
	control auto 1
}

# marking_link NAME QDISC...: a link of 200 Mbit/s whose queue marks packets
# instead of dropping them: CNPs keep the queue so short that no data is
# dropped. The queue drops some ACKs and CNPs, which are not ECN capable.
red=(red limit 4m min 30000 max 90000 avpkt 4200 burst 10 bandwidth 200mbit
	probability 1 ecn)
marking_link() {
	local counter before=()
	clear_link
	on_both ethtool -K eth0 tx-gso-list off
	on_both tc qdisc add dev eth0 root handle 1: tbf rate 200mbit burst \
		20000 limit 4m
	on_both tc qdisc add dev eth0 parent 1:1 "${@:2}"
	for counter in np_cnp_sent rp_cnp_handled out_of_seq_request \
		tx_dropped; do
		before+=("$(both "$counter")")
	done
	# On one CPU no packet overtakes another, which looks like a loss.
	(
		taskset -cp 0 "$BASHPID" >/dev/null
		verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "marking-$1: op=write,read size=64K list=8 count=$((messages * 8)) limit=30"
	)
	h1 tc -s qdisc show dev eth0
	for counter in np_cnp_sent rp_cnp_handled out_of_seq_request \
		tx_dropped; do
		echo "$counter rose by $(($(both "$counter") - before[0]))"
		case $counter in
		*cnp*) (( $(both "$counter") > before[0] ));;
		*) (( $(both "$counter") == before[0] ));;
		esac
		before=("${before[@]:1}")
	done
}

# narrow_link OPERATION: links of 50 Mbit/s whose queues of 20 packets only
# drop, behind the hosts' own queues. QPs that do not react lose half of what
# they send.
narrow_link() {
	local n sent dropped
	clear_link
	on_both ethtool -K eth0 tx-gso-list off
	on_both ip link add ifb0 type ifb
	on_both ip link set ifb0 up
	on_both tc qdisc add dev eth0 clsact
	on_both tc filter add dev eth0 ingress matchall \
		action mirred egress redirect dev ifb0
	on_both tc qdisc add dev ifb0 root tbf rate 50mbit burst 10000 \
		limit 84000
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "narrow-$1: op=$1 size=64K list=16 window=64 count=$((messages * 16)) limit=60" || return
	n=2
	[[ $1 != read ]] || n=1
	read -r sent dropped < <("h$n" tc -s qdisc show dev ifb0 |
		sed -nE 's/.* ([0-9]+) pkt \(dropped ([0-9]+),.*/\1 \2/p')
	echo "of $sent packets $dropped were dropped"
	(( sent > messages * 16 * 16 && dropped * 4 < sent ))
}

# marked COMMAND...: while h2 receives all packets as if routers had marked them
marked() {
	h2 nft "table ip marks { chain in { type filter hook prerouting priority 0; udp dport 4791 ip ecn set ce; }; }"
	"$@"
	h2 nft delete table ip marks
}

# CNPs that controllers got, and those for QPs without one
cnps() {
	echo "$(counter "$dev1" rp_cnp_handled h1)" \
		"$(counter "$dev1" rp_cnp_ignored h1)"
}

# of_class TCLASS: messages from h1 to h2 with a traffic class
of_class() {
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"class-$1: op=write size=4K window=4 tclass=$1"
}

# flow TCLASS: such messages in the background, until flows_end
flow() {
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "class-$1: op=write size=4K window=4 count=1000000 limit=60 tclass=$1" >/dev/null 2>&1 &
	flows+=($!)
}
flows_end() {
	local flow
	for flow in "${flows[@]}"; do
		pkill -KILL -P "$flow"
		wait "$flow" || true
	done
	flows=()
}

# controllers KIND...: each is what controls a QP of h1, and no other kind does
controllers() {
	local kinds
	kinds=$(h1 rdma resource show qp -dd | tr -d '\n' |
		sed 's/link /\nlink /g' |
		sed -n 's/.*comm verify.*drv_cc \([0-9]*\).*/\1/p' | sort)
	[[ ${kinds//$'\n'/ } == "$*" ]]
}

# capable: packets to h2 that are ECN capable, with DSCP 0 and 26
capable() {
	h2 nft list table ip capable |
		sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'
}

# CNPs slow down the QP whose traffic class chose a controller, and no other QP.
# Packets of other QPs are not ECN capable.
classes() {
	local before after flows=()
	clear_link
	control fixed 1
	h2 nft "table ip capable { chain in { type filter hook prerouting priority -1; udp dport 4791 ip ecn ect0 ip dscp 0 counter; udp dport 4791 ip ecn ect0 ip dscp 26 counter; }; }"
	h1 sh -c "echo 26 dcqcn >/sys/class/infiniband/$dev1/cc_dscp"
	read -ra before < <(cnps)
	of_class 104
	read -ra after < <(cnps)
	(( after[0] > before[0] && after[1] == before[1] ))
	of_class 0
	read -ra before < <(cnps)
	(( before[0] == after[0] && before[1] > after[1] ))
	readarray -t after < <(capable)
	h2 nft delete table ip capable
	echo "${after[*]} packets are ECN capable"
	(( after[0] == 0 && after[1] > 0 ))
	flow 104
	flow 0
	until_true 20 controllers 0 2
	flows_end
	read -ra after < <(cnps)
	(( after[0] > before[0] && after[1] > before[1] ))
	control auto 1
}

# rate MIN MAX: h1 sends at such a rate in kbit/s
rate() {
	local bytes kbps start=${EPOCHREALTIME/./}
	bytes=$(counter "$dev1" sent_bytes h1)
	nap 2
	bytes=$(($(counter "$dev1" sent_bytes h1) - bytes))
	kbps=$((bytes * 8000 / (${EPOCHREALTIME/./} - start)))
	echo "$kbps kbit/s"
	(( kbps >= $1 && kbps <= $2 ))
}

# set_dcqcn NAME VALUE: a parameter of h1
set_dcqcn() {
	h1 sh -c "echo $2 >/sys/class/infiniband/$dev1/cc_dcqcn_$1"
}

# CNPs do not reduce the rate below the least one, not even that of a QP that
# sent more slowly before. No timer raises the rate meanwhile. (Timers of a
# software CPU are late by milliseconds, which costs half of a rate.)
parameters() {
	local flows=()
	clear_link
	h1 sh -c "echo 26 dcqcn >/sys/class/infiniband/$dev1/cc_dscp"
	set_dcqcn rp_time_reset_usecs 1000000
	flow 104
	until_true 20 controllers 2
	until_true 60 rate 0 1200
	not set_dcqcn rp_min_rate_mbps 0
	set_dcqcn rp_min_rate_mbps 8
	until_true 60 rate 2400 9000
	set_dcqcn rp_min_rate_mbps 1
	until_true 60 rate 0 1200
	flows_end
}

# unless_overtaken COMMAND...: a busy host may delay one CPU of this machine, so
# that packets of another overtake its packets, which looks like a loss. If that
# was counted, try again, up to three times.
unless_overtaken() {
	local before n status
	for n in 1 2 3; do
		before=$(overtaken)
		set +e
		(set -e; "$@")
		status=$?
		set -e
		(( status && $(overtaken) > before )) || break
	done
	return $status
}
overtaken() { echo $(($(both rcvd_seq_err) + $(both implied_nak_seq_err))); }

netem() { on_both tc qdisc add dev eth0 root netem "$@"; }

# The sender notices the cut by its retries only.
cut_off() {
	clear_link
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"cut: fail=cut_off timeout=12 retry=3" >"$scratch/cut" &
	until_true 20 grep -q 'cut now' "$scratch/cut"
	sleep 0.3
	on_both tc qdisc add dev eth0 root netem loss 100%
	wait $!
}

# Packets that wait in this machine's queue for longer than the timeout (400 ms
# at this rate, and 34 to 67) are not lost.
slow_link() {
	local before
	clear_link
	h1 tc qdisc add dev eth0 root tbf rate 10mbit burst 70000 limit 4m
	before=$(counter "$dev1" requester_rewinds h1)
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"slow: op=write size=1M timeout=13 count=2"
	again=$(($(counter "$dev1" requester_rewinds h1) - before))
	echo "sent again: $again times"
	(( again == 0 ))
}

# Packets that do not fit into this machine's queue are sent when they fit:
# neither the peer nor a timer of 1 s has to notice their loss. One QP sends in
# one direction: where two CPUs meet at a queue, newer kernels let one CPU
# enqueue for both and do not report drops.
full_queue() {
	local counter before=()
	clear_link
	on_both tc qdisc add dev eth0 root tbf rate 400mbit burst 70000 \
		limit 80000
	for counter in tx_dropped ack_timeouts requester_rewinds; do
		before+=("$(both "$counter")")
	done
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"full: op=write,read,send size=256K timeout=18 retry=0 count=$messages limit=30"
	for counter in tx_dropped ack_timeouts requester_rewinds; do
		echo "$counter rose by $(($(both "$counter") - before[0]))"
		[[ $counter != tx_dropped ]] ||
			(( $(both "$counter") > before[0] ))
		[[ $counter == tx_dropped ]] ||
			(( $(both "$counter") == before[0] ))
		before=("${before[@]:1}")
	done
}

# throttled: packets that fq has delayed at both nodes until their time
throttled() {
	on_both tc -s qdisc show dev eth0 |
		awk '{ for (i = 1; i < NF; i++)
			if ($i == "throttled") sum += $(i + 1) }
		     END { print sum + 0 }'
}

# Where fq is the qdisc, it keeps the rate of a QP, and the QP's timer need not
# run for each burst. verify judges the rate.
paced() {
	clear_link
	on_both tc qdisc add dev eth0 root fq
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "paced: fail=static_rate"
	on_both tc -s qdisc show dev eth0
	echo "fq has delayed $(throttled) packets"
	(( $(throttled) > 20 ))
}

# What a QP queues in front of a slow link leaves within milliseconds, so CoDel,
# the qdisc of most distributions, drops nothing.
slow_codel() {
	clear_link
	on_both tc qdisc add dev eth0 root handle 1: tbf rate 400mbit burst \
		70000 limit 4m
	on_both tc qdisc add dev eth0 parent 1:1 fq_codel
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"codel: op=write,read size=256K timeout=18 count=80 limit=30"
	on_both tc -s qdisc show dev eth0 | tee "$scratch/codel"
	(( $(grep -c '(dropped 0,' "$scratch/codel") == 4 ))
}

# Queued packets hold their pages, whatever happens to the memory region.
memory_back() {
	clear_link
	h1 tc qdisc add dev eth0 root netem delay 300ms limit 10000
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"memory-uc: fail=memory_back qp=uc" \
		"memory-ud: fail=memory_back qp=ud" \
		"memory-rc: fail=memory_back qp=rc"
}

# Queued packets do not hold pages of a dma-buf, whose exporter takes them back.
buffer_back() {
	local cases=buffer_sent_back,buffer_sent_last_back,buffer_read_back
	local status=0
	clear_link
	h1 tc qdisc add dev eth0 root netem delay 300ms limit 10000
	insmod "/arx/build/$(uname -r)/arx_exporter.ko"
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"buffer: fail=$cases timeout=17" || status=1
	rmmod arx_exporter
	return $status
}

if full; then
	messages=1600 atomics=10000	# 100 MB
elif debug_kernel; then
	messages=10 atomics=40
else
	messages=30 atomics=200
fi

hosts --mtu 4200
modprobe -a sch_netem sch_tbf sch_red sch_fq_codel sch_fq act_gact act_mirred \
	act_pedit cls_matchall
modprobe ifb numifbs=0
if debug_kernel && ! full; then
	controlled delay bad loss-1 requester_rewinds netem loss 1%
	bad duplicate duplicate_request netem duplicate 5%
	check slow-link 60 unless_overtaken slow_link
	check full-queue 60 unless_overtaken full_queue
	check paced 60 paced
	check memory-back 60 memory_back
	check buffer-back 60 buffer_back
	check cut-off 60 cut_off
	check classes 60 marked classes
	check parameters 200 marked parameters
	clear_link
	exit
fi
# QPs of a new device react to marks, and to losses for lack of room.
check marking-link 60 unless_overtaken marking_link as-it-is "${red[@]}"
check narrow-link 60 narrow_link write
check narrow-link-read 60 narrow_link read
bad loss-0.1 requester_rewinds netem loss 0.1%
controlled delay bad loss-1 requester_rewinds netem loss 1%
controlled dcqcn bad loss-5 requester_rewinds netem loss 5%
bad reorder out_of_seq_kept netem delay 1ms reorder 25% 50%
bad duplicate duplicate_request netem duplicate 5%
bad corrupt rcvd_icrc_err netem corrupt 2%
bad single-loss-1 selective_retrans_pkts single action gact ok random netrand \
	drop 100
bad single-payload rcvd_icrc_err single action gact ok random netrand pipe 50 \
	action pedit munge offset 100 u8 invert
check slow-link 60 unless_overtaken slow_link
check full-queue 60 unless_overtaken full_queue
check paced 60 paced
check slow-codel 60 unless_overtaken slow_codel
if full; then
	for cc in delay dcqcn; do
		controlled $cc check marking-link-$cc 60 unless_overtaken \
			marking_link $cc "${red[@]}"
	done
	# the qdisc of most distributions
	controlled delay check codel-link 60 unless_overtaken \
		marking_link codel fq_codel
fi
check memory-back 60 memory_back
check buffer-back 60 buffer_back
check cut-off 60 cut_off
check classes 60 marked classes
check parameters 200 marked parameters
clear_link
