#!/bin/bash
# Consumers of verbs beyond 10-apps.sh: the rest of perftest's options,
# rsockets, rdma_cm's programs, programs with little locked memory, and the
# calls that NCCL and other middlewares make when they start
# (tests/vm/consumers).
# kernels: 6.12 newest
# timeout: 600

source "$(dirname "$0")/lib.sh"

# perf TOOL OPTION...: between the nodes, over IPv4
perf() {
	local tool=$1 port=18515
	shift
	[[ " $* " != *" -R "* ]] || port=cm
	pair $port "$tool -F -d $dev1 -x $gid1 $*" \
		"$tool -F -d $dev2 -x $gid2 $* $ip1"
}

# perftest_calls: a line for each case, the smallest number of packets first
perftest_calls() {
	local min call
	while read -r min call; do
		check "$call" 90 by_packets "$min" perf $call
	done
}

# A multicast group of IPv6 needs a GID of IPv6.
perf_multicast() {
	pair 18515 "ib_send_bw -F --ipv6-addr -d $dev1 -x $gid61 $*" \
		"ib_send_bw -F --ipv6-addr -d $dev2 -x $gid62 $* $ip61"
}

# cm SERVER CLIENT: programs that connect by rdma_cm; the server ends with its
# client
cm() {
	pair cm "$1" "$2"
}

# rcopy's server serves client after client.
rcopy_file() {
	local server
	head -c "$1" /dev/urandom >"$scratch/from"
	h1 rcopy &
	server=$!
	until_true 20 listening h1 cm
	h2 rcopy "$scratch/from" "$ip1:$scratch/to"
	kill $server
	cmp "$scratch/from" "$scratch/to"
}

# lives_on SERVER CLIENT NEXT: the first client is killed under traffic, and its
# device is made anew; the server serves the next one.
lives_on() {
	local server client before
	h1 bash -c "exec $1" &
	server=$!
	until_true 20 listening h1 cm
	before=$(counter "$dev1" rcvd_pkts h1)
	ip netns exec h2 bash -c "exec $2" >/dev/null 2>&1 &
	client=$!
	until_true 20 eval '(( $(counter "$dev1" rcvd_pkts h1) > before + 20 ))'
	kill -KILL $client
	h2 rdma link delete "$dev2"
	h2 rdma link add "$dev2" type "$driver" netdev eth0
	kill -0 $server
	until_true 20 by_packets 10 h2 bash -c "$3"
	kill $server
}

# ibacm resolves addresses for InfiniBand ports only, and ends without one.
ibacm_wants_infiniband() {
	printf '%s\n' 'log_file stdout' 'log_level 1' >"$scratch/opts"
	not h1 ibacm -P -O "$scratch/opts" >"$scratch/out"
	cat "$scratch/out"
	finds "$dev1 port 1 is not an InfiniBand port" "$scratch/out"
}

# rsockets' datagrams are addressed by LID.
udpong_wants_lids() {
	local server
	h1 udpong -b $ip1 &
	server=$!
	nap 0.5
	not h2 udpong -s $ip1 >"$scratch/out" 2>&1
	cat "$scratch/out"
	finds 'No such file or directory' "$scratch/out"
	kill $server
}

# as_nobody h1|h2 COMMAND...: a user without capabilities who may lock 64 KiB
as_nobody() {
	(ulimit -l 64; exec ip netns exec "$1" setpriv --reuid nobody \
		--regid nogroup \
		--clear-groups --inh-caps=-all --bounding-set=-all "${@:2}")
}

# nobody_pair PORT|cm SERVER CLIENT
nobody_pair() {
	local server
	as_nobody h1 bash -c "$2" &
	server=$!
	until_true 20 listening h1 "$1"
	as_nobody h2 bash -c "$3"
	wait $server
}

hosts
gid1=$(gid_index h1 "::ffff:$ip1") gid2=$(gid_index h2 "::ffff:$ip2")
gid61=$(gid_index h1 "$ip61") gid62=$(gid_index h2 "$ip62")
[[ $gid1 && $gid2 && $gid61 && $gid62 ]] ||
	fail gids "v4 $gid1 $gid2, v6 $gid61 $gid62"

check probe 60 h1 probe "$dev1"
check nccl 120 by_packets 500 pair 18600 "nccl $dev1" "nccl $dev2 $ip1"

# rstream's client takes POLLHUP (16) for an error, even together with POLLIN:
# it may find the server gone before it has read the last data. The server's
# status is that of the whole exchange.
check rstream-async 60 by_packets 20 \
	cm "rstream -b $ip1 -S 4096 -C 100 -T a" \
	'rstream -s '$ip1' -S 4096 -C 100 -T a || (($? == 16))'
check riostream 60 by_packets 20 \
	cm "riostream -b $ip1 -S 16384 -C 50 -T v" \
	"riostream -s $ip1 -S 16384 -C 50 -T v"
check rcopy 60 by_packets 20 rcopy_file 5000000
check rdma_server 60 by_packets 4 cm rdma_server "rdma_client -s $ip1"
check rping-lives-on 60 lives_on "rping -s -P -a $ip1" \
	"rping -c -a $ip1 -C 1000000" "rping -c -a $ip1 -C 10 -V"

# Programs that do without RoCE, as applications.rst tells
brief || check ibacm 20 ibacm_wants_infiniband
brief || check udpong 20 udpong_wants_lids

check nobody-ud 60 by_packets 20 nobody_pair 18515 \
	"ibv_ud_pingpong -d $dev1 -g $gid1 -n 40 -e" \
	"ibv_ud_pingpong -d $dev2 -g $gid2 -n 40 -e $ip1"
check nobody-rping 60 by_packets 20 nobody_pair cm \
	"rping -s -a $ip1 -C 10 -V" "rping -c -a $ip1 -C 10 -V"

# The default group is of interface-local scope, ff01::/16.
check "ib_send_bw -c UD -g" 60 by_packets 0 perf_multicast -c UD -g -n 100 \
	-s 1000
check "ib_send_bw -c UD -g -M" 60 by_packets 0 \
	perf_multicast -c UD -g -n 100 -s 1000 \
	-M 255:14:0:0:0:2:201:133:0:0:0:0:0:0:0:1

perftest_calls <<-END
	5 ib_write_bw -n 64 -l 16
	5 ib_send_bw -n 104 -l 8 --recv_post_list 8
	5 ib_write_bw -n 2048 -s 200 -t 2048 -l 1024
	5 ib_write_bw -n 50 -R -T 46
	100 ib_write_lat -n 5 -s 67108864
END
# (Of perftest, only the latency of WRITE does not fill its buffers byte by byte
# with random(), which takes minutes.)
! full || perftest_calls <<<'100 ib_write_lat -n 5 -s 1073741824'
if ! brief; then
	perftest_calls <<-END
		5 ib_write_bw -n 50 --flow_label 5
		5 ib_write_bw -n 50 --tclass 104
		5 ib_write_bw -n 50 -S 3
		5 ib_write_bw -n 50 -Q 5
		5 ib_write_bw -n 50 -q 4 --mr_per_qp
		5 ib_write_bw -n 50 --write_with_imm
		5 ib_read_bw -D 1
	END
fi
