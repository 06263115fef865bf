#!/bin/bash
# Applications as Debian ships them: rdma-core's examples and perftest. They
# check few of the received bytes; 20-verify.sh checks all.
# kernels: 6.12 newest uml
# timeout: 700

source "$(dirname "$0")/lib.sh"

# pingpong KIND OPTION...: over IPv4 unless -g is given
pingpong() {
	local kind=$1
	shift
	pair 18515 "ibv_${kind}_pingpong -d $dev1 -g $gid1 -n $iterations $*" \
		"ibv_${kind}_pingpong -d $dev2 -g $gid2 -n $iterations $* $ip1"
}

pingpong6() {
	local gid1=$gid61 gid2=$gid62
	pingpong "$@"
}

# perftest's server listens here first: with -R by rdma_cm.
port_of() {
	[[ " $* " == *" -R "* ]] && echo cm || echo 18515
}

# perf TOOL OPTION...
perf() {
	local tool=$1
	shift
	pair "$(port_of "$@")" "$tool -F -d $dev1 -x $gid1 $*" \
		"$tool -F -d $dev2 -x $gid2 $* $ip1"
}

perf6() {
	local tool=$1
	shift
	pair "$(port_of "$@")" "$tool -F --ipv6-addr -d $dev1 -x $gid61 $*" \
		"$tool -F --ipv6-addr -d $dev2 -x $gid62 $* $ip61"
}

# cm SERVER CLIENT: applications that connect by rdma_cm; the server ends with
# its client
cm() {
	pair cm "$1" "$2"
}

# A server that never ends by itself: two clients in turn, then it is killed.
persistent() {
	h1 bash -c "$1" &
	until_true 20 listening h1 cm
	h2 bash -c "$2"
	h2 bash -c "$2"
	h1 rdma resource show cm_id | grep 'state LISTEN'
	kill $!
}

# The receiver waits for every message of the sender, so it must join first.
multicast() {
	h1 mckey "$1" "$2" -b "$3" -C 5 &
	until_true 20 joined
	h2 mckey "$1" "$2" -b "$4" -C 5 -s
	wait $!
}

joined() { h1 rdma resource show qp type UD | finds 'state RTS.*mckey'; }

# The options of perftest that a tool has, each a case: events, sizes,
# directions, QPs and their types. (Five thousand messages of every size up to 8
# MiB would take a software CPU half an hour for all tools.)
options_of() {
	case $1 in
	ib_write_bw)	printf '%s\n' '' '-a -n 100' -b '-q 8' '-c UC' '-l 20' \
		'-R';;
	ib_write_lat)	printf '%s\n' '' '-a -n 100' '-c UC' '-I 32' '-R';;
	ib_read_bw)	printf '%s\n' '' -e '-a -n 100' -b '-q 8' '-R';;
	ib_read_lat)	printf '%s\n' '' -e '-a -n 100' '-R';;
	ib_send_bw)	printf '%s\n' '' -e '-a -n 100' -b '-q 8' '-c UC' \
		'-c UD -s 1024' '--use-srq -q 4' '-s 8 --use-srq -q 4' '-R';;
	ib_send_lat)	printf '%s\n' '' -e '-a -n 100' '-c UC' \
		'-c UD -s 1024' '--use-srq' '-R';;
	ib_atomic_bw)	printf '%s\n' '' -e -b '-q 8' '-A CMP_AND_SWAP' '-R';;
	ib_atomic_lat)	printf '%s\n' '' -e '-A CMP_AND_SWAP' '-R';;
	esac
}

perftest_full() {
	local tool options
	for tool in ib_{write,read,send,atomic}_{bw,lat}; do
		while read -r options; do
			check "${tool}_v4 $options" 120 perf "$tool" "$options"
			check "${tool}_v6 $options" 120 perf6 "$tool" "$options"
		done < <(options_of "$tool")
	done
}

# perftest_calls: prints a line for each
perftest_calls() {
	local call
	while read -r call; do
		check "${call/ /_v4 }" 60 perf $call
	done
}

# Cases that sleep (-e), with a timeout of a second (-u 18), for the debug
# kernel and for kernels with a short sample.
perftest_brief() {
	perftest_calls <<-END
		ib_write_bw -n 20 -u 18
		ib_read_lat -n 20 -e -u 18
		ib_send_bw -n 50 --use-srq -q 2 -e -u 18
		ib_send_bw -n 50 -c UD -s 1024 -e
		ib_send_lat -n 20 -c UC -e
		ib_atomic_bw -n 20 -q 2 -e -u 18
	END
	check "ib_write_bw_v6 -R" 60 perf6 ib_write_bw -n 20 -R
}

# Every tool once and every option once.
perftest_sample() {
	perftest_calls <<-END
		ib_write_bw -n 500
		ib_write_bw -n 50 -q 8 -b
		ib_write_lat -n 100 -c UC
		ib_read_bw -n 100
		ib_write_lat -n 10 -a
		ib_read_lat -n 100 -e
		ib_send_bw -n 200 --use-srq -q 4
		ib_send_bw -n 200 -s 8 --use-srq -q 4
		ib_send_bw -n 200 -c UD -s 1024 -e
		ib_send_lat -n 100 -I 32
		ib_atomic_bw -n 200 -q 8
		ib_atomic_lat -n 100
	END
	check "ib_write_bw_v6 -R" 60 perf6 ib_write_bw -n 50 -R
	check "ib_send_bw_v6 -c UC" 60 perf6 ib_send_bw -n 50 -c UC
}

examples_full() {
	local kind size
	for kind in rc uc ud srq; do
		for size in 1 1024; do
			check "${kind}_pingpong -s $size" 60 pingpong $kind \
				-s $size -c
			check "${kind}_pingpong -e -s $size" 60 pingpong $kind \
				-e -s $size -c
			check "${kind}_pingpong_v6 -s $size" 60 pingpong6 \
				$kind -s $size -c
			check "${kind}_pingpong_v6 -e -s $size" 60 pingpong6 \
				$kind -e -s $size -c
		done
	done
	for kind in rc uc srq; do
		check "${kind}_pingpong -s 1000000" 60 pingpong $kind \
			-s 1000000 -c
	done
}

# rdma-ndd does this when a device is created.
node_desc() {
	h1 bash -c \
		"echo 'some host $dev1' >/sys/class/infiniband/$dev1/node_desc"
	[[ $(h1 cat \
		"/sys/class/infiniband/$dev1/node_desc") == "some host $dev1" ]]
}

# counter_file NAME: node_exporter reads these files; a file that it cannot read
# ends all of its RDMA figures.
counter_file() { h1 cat "/sys/class/infiniband/$dev1/ports/1/counters/$1"; }

# Data counters are in words of four bytes: the messages, 16 bytes for each
# packet and 16 more for the first packet of each message.
port_counters() {
	local name data packets
	for name in $(h1 ls "/sys/class/infiniband/$dev1/ports/1/counters"); do
		counter_file "$name"
	done
	data=$(counter_file port_rcv_data) \
		packets=$(counter_file port_rcv_packets)
	perf ib_write_bw -n 20 -s 65536 -u 18
	data=$(($(counter_file port_rcv_data) - data)) \
		packets=$(($(counter_file port_rcv_packets) - packets))
	echo "$data words in $packets packets"
	(( data * 4 >= 20 * 65536 + packets * 16 + 20 * 16 &&
		data * 4 < 2 * 20 * 65536 && packets >= 20 * 64 ))
	(( $(counter_file port_rcv_data) == $(counter "$dev1" rcvd_bytes \
		h1) / 4 ))
	(( $(counter_file port_xmit_data) == $(counter "$dev1" sent_bytes \
		h1) / 4 ))
}

# All of it went from node to node by packets. (A sum over all cases takes less
# time than a sum for each.)
all_by_packets() {
	local n
	for n in 1 2; do
		echo "$(counter "$driver$n" sent_pkts h$n) packets of $driver$n"
		(( $(counter "$driver$n" sent_pkts h$n) > 2000 ))
		(( $(counter "$driver$n" loopback_runs h$n) == 0 ))
	done
}

full && iterations=1000 || iterations=100
! debug_kernel || iterations=30
hosts
gid1=$(gid_index h1 "::ffff:$ip1") gid2=$(gid_index h2 "::ffff:$ip2")
gid61=$(gid_index h1 "$ip61") gid62=$(gid_index h2 "$ip62")
[[ $gid1 && $gid2 && $gid61 && $gid62 ]] ||
	fail gids "v4 $gid1 $gid2, v6 $gid61 $gid62"

for kind in rc uc ud srq; do
	brief || debug_kernel || check ${kind}_pingpong 90 pingpong $kind -c
	check "${kind}_pingpong -e" 90 pingpong $kind -e -c
done
check rc_pingpong_v6 90 pingpong6 rc -c
! full || examples_full

check node_desc 20 node_desc
check port_counters 60 port_counters
check rping 90 cm "rping -s -a $ip1 -C 20 -V" "rping -c -a $ip1 -C 20 -V"
check rping_v6 90 cm "rping -s -a $ip61 -C 20 -V -S 4000" \
	"rping -c -a $ip61 -C 20 -V -S 4000"
check "rping -P" 90 persistent "rping -s -P -a $ip1" "rping -c -a $ip1 -C 10 -V"
check ucmatose 90 cm "ucmatose -b $ip1 -c 2" "ucmatose -s $ip1 -c 2"
check udaddy 90 cm "udaddy -b $ip1" "udaddy -s $ip1"
check mckey 40 multicast -m 239.1.2.3 $ip1 $ip2
check rstream 60 cm "rstream -b $ip1 -S 16384 -C 100 -T v" \
	"rstream -s $ip1 -S 16384 -C 100 -T v"
check cmtime 60 cm "timeout 90 cmtime -b $ip1 -c 10" "cmtime -s $ip1 -c 10"
if full; then
	check udaddy_v6 90 cm "udaddy -b $ip61 -f ipv6" \
		"udaddy -s $ip61 -f ipv6"
	check ucmatose_v6 90 cm "ucmatose -b $ip61 -f ipv6 -c 10 -C 100" \
		"ucmatose -s $ip61 -f ipv6 -c 10 -C 100"
	check "rping_v6 -P" 90 persistent "rping -s -P -a $ip61" \
		"rping -c -a $ip61 -C 10 -V"
	check rstream_v6 60 cm "rstream -b $ip61 -S 16384 -C 100 -T v" \
		"rstream -s $ip61 -S 16384 -C 100 -T v"
	skip cmtime_v6 "the sockets by which its two sides meet are of IPv4"
	skip mckey_v6 "the core's rdma_cm joins IPv6 groups for RoCEv1 only (ENOTSUPP)"
	# KASAN keeps freed memory until an allocation that may sleep; here no
	# such allocation happens for ten minutes.
	if debug_kernel; then
		skip all_of_rstream_and_perftest "both ends poll on one CPU, until KASAN's quarantine has all memory"
		perftest_brief
	else
		check rstream_all 120 cm "rstream -b $ip1" "rstream -s $ip1"
		perftest_full
	fi
elif brief; then
	perftest_brief
else
	perftest_sample
fi
check all-by-packets 20 all_by_packets
