#!/bin/bash
# What "rdma" shows: details of QPs, CQs, SRQs and regions, also while they are
# created and destroyed; counters of the port, and counters to which QPs are
# bound.
# kernels: 6.12 newest uml
# left: 6.12
# timeout: 200

source "$(dirname "$0")/lib.sh"

# traffic [KEY=VALUE...]: messages from h1 to h2 for a while, in the background;
# sets $traffic and $qpn, a QP of h1
traffic() { traffic_to "h2:$dev2" "$@"; }
traffic_to() {
	local peer=$1
	shift
	verify -f 4 -a "h1:$dev1" -b "$peer" "traffic: op=mix both=1 size=5000 count=1000000 limit=60 srq=1 $*" >/dev/null 2>&1 &
	traffic=$!
	until_true 20 has_qp
}
has_qp() {
	[[ $(h1 rdma resource show \
		qp) =~ lqpn\ ([0-9]+)\ rqpn\ [0-9]+\ type\ RC\ state\ RTS ]] &&
		qpn=${BASH_REMATCH[1]}
}
ends() {
	pkill -KILL -P $traffic
	wait $traffic || true
}

# details KIND: of all objects of programs in h1, one line each
details() {
	h1 rdma resource show "$1" -dd | tr -d '\n' |
		sed 's/link /\nlink /g; s/dev /\ndev /g' | grep 'comm verify'
}

# has KIND NAME...: an object of this kind has these details
has() {
	local kind=$1 name
	details "$kind" >"$scratch/details" || h1 rdma resource show "$kind" -dd
	shift
	for name; do
		finds -E " drv_$name( |$)" "$scratch/details" ||
			{ cat "$scratch/details"; echo "no $name"; return 1; }
	done
}

# What the counters of h1 tell of packets that are missing
losses() {
	local name sum=0
	for name in rcvd_seq_err implied_nak_seq_err ack_timeouts \
		loss_timeouts; do
		sum=$((sum + $(counter "$dev1" $name h1)))
	done
	echo $sum
}

# Over veth a packet may be overtaken, if the host of this machine stops one of
# its CPUs. That looks like a loss, and is counted. (An overtaken response to a
# READ is not, if it arrives before the requester has asked for it again.)
shown() {
	traffic op=send
	until_true 10 eval 'details cq | finds -E "drv_written [1-9]"'
	has qp 'sq_psn_acked [0-9]+' 'sq_psns_in_flight [0-9]+' \
		'sq_entries [1-9][0-9]*' 'retries_left 7' \
		'sq_polled [01]' 'rq_psn_expected [0-9]+' 'path_mtu 4096' \
		'waits_for_socket [01]'
	has qp 'rewinds 0' 'rtt_ns 0' || (( $(losses) > 0 ))
	has cq 'entries [1-9][0-9]*' 'written [1-9][0-9]*' 'overflown 0'
	has srq 'entries [1-9][0-9]*' 'taken [1-9][0-9]*' 'failed 0'
	has mr 'iova 0x[0-9a-f]+' 'length [1-9][0-9]*' 'access 0x[0-9a-f]+' \
		'valid 1' 'blocks [1-9][0-9]*' 'block_size [1-9][0-9]*' \
		'pieces 0'
	details mr | blocks_fit
	ends
}

# Blocks are pages, or larger ones of pages that happen to follow each other. A
# region's first and last block may be parts of blocks.
blocks_fit() {
	awk '{
		for (i = 1; i < NF; i++)
			value[$i] = $(i + 1)
		size = value["drv_block_size"]
		length_ = value["drv_length"]
		bytes = value["drv_blocks"] * size
		for (power = 4096; power < size; power *= 2)
			;
		if (power != size || bytes < length_ ||
		    bytes - 2 * size >= length_) {
			print
			bad = 1
		}
	}
	END { exit bad || !NR }'
}

# In one copy on one host no packet can be lost or overtaken.
none_lost() {
	traffic_to "h1:$dev1" timeout=0
	until_true 10 eval 'details cq | finds -E "drv_written [1-9]"'
	sleep 1
	not eval 'details qp | grep -E "drv_(rewinds|rtt_ns) [1-9]"'
	has qp 'rewinds 0' 'rtt_ns 0'
	ends
}

# A QP that has lost packets knows the round trip time, which cannot be shorter
# than the delay of the link.
round_trip() {
	h1 tc qdisc add dev eth0 root netem delay 5ms loss 5%
	traffic
	until_true 20 measured
	has qp 'rewinds [1-9][0-9]*'
	ends
	h1 tc qdisc del dev eth0 root
	echo "a round trip of $rtt ns"
	(( rtt >= 5000000 ))
}
measured() {
	[[ $(details qp) =~ drv_rtt_ns\ ([1-9][0-9]*) ]] &&
		rtt=${BASH_REMATCH[1]}
}

# Numbers that help to forge packets, and addresses, are for the administrator.
secret() {
	traffic
	h1 setpriv --reuid nobody --clear-groups rdma resource show qp \
		-dd >"$scratch/qps"
	h1 setpriv --reuid nobody --clear-groups rdma resource show mr \
		-dd >"$scratch/mrs"
	ends
	finds drv_sq_entries "$scratch/qps"
	finds drv_length "$scratch/mrs"
	not grep -E 'drv_(sq_psn_|rq_psn|iova)' "$scratch/qps" "$scratch/mrs"
}

# Objects end while they are shown: as long as it takes until eight answers told
# of objects, and three programs came and went.
come_and_go() {
	local end=$((SECONDS + 4)) kind told=0
	: >"$scratch/gone"
	(while verify -f 4 -a "h1:$dev1" -b "h1:$dev1" \
		'short: op=mix size=100 qps=32 count=20 srq=1' >/dev/null; do
		echo >>"$scratch/gone"
	done) &
	while (( SECONDS < end || told < 8 || $(gone) < 3 )); do
		for kind in qp cq srq mr; do
			h1 rdma resource show $kind -dd >"$scratch/answer"
			! grep -q 'comm verify' "$scratch/answer" ||
				told=$((told + 1))
		done
	done
	kill $!
	wait $! || true
	echo "$told answers told of objects, $(gone) programs came and went"
}
gone() { wc -l <"$scratch/gone"; }

names() {
	local all
	all=$(h1 rdma statistic show link "$dev1/1" | tr ' ' '\n' |
		grep -c '^[a-z]*_' || true)
	optional=$(h1 rdma statistic mode supported link "$dev1/1")
	echo "$all names; $optional"
	(( all >= 60 ))
	for all in req_turns req_waits req_spent; do
		[[ $optional == *$all* ]]
	done
	for all in sent_pkts rcvd_pkts duplicate_request out_of_seq_request \
		rcvd_rnr_err send_rnr_err \
		rcvd_seq_err ack_deferred retry_exceeded_err \
		retry_rnr_exceeded_err completer_retry_err \
		send_err link_downed rdma_sends rdma_recvs; do
		counter "$dev1" $all h1 >/dev/null ||
			{ echo "no $all"; return 1; }
	done
}

# bound NAME: of the counter to which $qpn is bound
bound() {
	[[ $(h1 rdma statistic qp show link "$dev1/1" |
		tr -d '\n') =~ \ $1\ ([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# A QP that is bound counts there; the port's sums go on with and without it.
binds() {
	local before cntn sums
	traffic
	h1 rdma statistic qp bind link "$dev1/1" lqpn "$qpn"
	until_true 10 eval '(( $(bound rdma_sends) > 10 ))'
	[[ $(h1 rdma statistic qp show link "$dev1/1") =~ cntn\ ([0-9]+) ]]
	cntn=${BASH_REMATCH[1]}
	before=$(counter "$dev1" rdma_sends h1)
	nap 0.5
	sums=$(counter "$dev1" rdma_sends h1)
	echo "counter $cntn: $(bound rdma_sends) sends, the port $before, later $sums"
	(( sums > before && sums >= $(bound rdma_sends) / 2 ))
	h1 rdma statistic qp unbind link "$dev1/1" cntn "$cntn" lqpn "$qpn"
	until_true 5 eval '[[ ! $(bound rdma_sends) ]]'
	(( $(counter "$dev1" rdma_sends h1) >= sums ))
	# the QP ends while it is bound
	h1 rdma statistic qp bind link "$dev1/1" lqpn "$qpn"
	ends
	until_true 10 eval '[[ ! $(h1 rdma statistic qp show link "$dev1/1") ]]'
	(( $(counter "$dev1" rdma_sends h1) >= sums ))
}

# Each new QP of a program is bound to the counter of its type.
automatic() {
	h1 rdma statistic qp set link "$dev1/1" auto type on
	traffic qps=3
	until_true 10 eval '(( $(bound rdma_sends) > 10 ))'
	h1 rdma statistic qp show link "$dev1/1" | tr -d '\n' |
		finds -E 'qp-type RC .*LQPN'
	ends
	until_true 10 eval '[[ ! $(h1 rdma statistic qp show link "$dev1/1") ]]'
	h1 rdma statistic qp set link "$dev1/1" auto off
}

optional() {
	not counter "$dev1" req_turns h1
	h1 rdma statistic set link "$dev1/1" optional-counters \
		req_turns,req_waits
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		'optional: op=read size=8 count=50 rd_atomic=1'
	turns=$(counter "$dev1" req_turns h1)
	waits=$(counter "$dev1" req_waits h1)
	echo "turns: $turns, that waited: $waits"
	(( turns >= waits && waits > 0 ))
	h1 rdma statistic unset link "$dev1/1" optional-counters
	not counter "$dev1" req_turns h1
}

down() {
	ip -n h1 link set eth0 down
	ip -n h1 link set eth0 up
	(( $(counter "$dev1" link_downed h1) == 1 ))
}

hosts --mtu 9000
check shown 60 shown
check none-lost 60 none_lost
check round-trip 60 round_trip
check secret 40 secret
check come-and-go 60 come_and_go
check names 20 names
check binds 60 binds
check automatic 40 automatic
check optional 40 optional
check link-downed 10 down
check unload 30 eval 'arx-hosts down && rmmod "$driver"'
