#!/bin/bash
# Bad input: verbs with arguments out of range, uverbs commands of random bytes,
# rings that their owner overwrites, threads that call random verbs on the same
# objects, packets that are random or malformed. Meanwhile the traffic of other
# QPs is verified and must not suffer. Also a receiver that would write to the
# pages of packets, which are those of a file. Random input differs from run to
# run; ARX_SEED=N repeats the run that printed it.
# kernels: 6.12 newest uml
# timeout: 700

source "$(dirname "$0")/lib.sh"

full && seconds=60 packets=200000 || seconds=4 packets=20000
full || ! debug_kernel || packets=$((packets / 2))
# What is random need not be as long on each kernel.
! brief || debug_kernel || seconds=2

# unharmed NAME COMMAND...: the command succeeds while messages are exchanged
# between two nodes and within one
unharmed() {
	local name=$1 others=()
	shift
	verify -f 8 -a "h1:$dev1" -b "h2:$dev2" "$name-hosts: op=mix size=20000 vary=1 qps=2 both=1 seconds=$seconds" >"$scratch/$name-1" &
	others+=($!)
	verify -f 8 -a "h1:$dev1" -b "h1:$dev1" "$name-host: op=mix size=20000 vary=1 qps=2 both=1 seconds=$seconds" >"$scratch/$name-2" &
	others+=($!)
	"$@" || (( ++failures ))
	wait "${others[0]}" || (( ++failures ))
	wait "${others[1]}" || (( ++failures ))
	cat "$scratch/$name-1" "$scratch/$name-2"
	h1 rdma resource show qp >/dev/null ||
		fail "$name" "the device does not answer"
}

# aimed V4|V6 FROM TO: packets from h2 at QPs in h1
aimed() {
	: >"$scratch/victims"	# before it is read instead of the previous file
	h1 hostile victim "$dev1" "$2" <"$scratch/hold" >"$scratch/victims" &
	local victim=$!
	exec {hold}>"$scratch/hold"
	until_true 20 grep -q end "$scratch/victims" || return
	h2 hostile packets "$2" "$3" "$packets" <"$scratch/victims"
	local status=$?
	exec {hold}>&-
	wait $victim || status=1
	return $status
}

# Most packets had a right ICRC: otherwise little behind the check of the ICRC
# was tested.
tried() {
	local total icrc
	total=$(counter "$dev1" rcvd_pkts h1) \
		icrc=$(counter "$dev1" rcvd_icrc_err h1)
	echo "# packets received: $total, with a wrong ICRC: $icrc, dropped: $(counter "$dev1" rcvd_dropped h1), refused: $(counter "$dev1" send_nak h1)"
	(( icrc > 0 && icrc < total / 2 ))
}

all_gone() {
	h1 rdma resource show "$dev1" | finds 'qp [01] cm_id 0 mr 0 ' ||
		{ h1 rdma resource show; return 1; }
}

# GRO joins received packets, as with a card: packets come one by one, through
# NAPI.
joining() {
	local n pkts runs batches
	for n in 1 2; do
		"h$n" ethtool -K eth0 gro on rx-udp-gro-forwarding on \
			tx-gso-list off
	done
	pkts=$(counter "$dev2" rcvd_pkts h2) \
		runs=$(counter "$dev2" rcvd_runs h2)
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"joined: op=write size=65536 count=32"
	pkts=$(($(counter "$dev2" rcvd_pkts h2) - pkts)) \
		runs=$(($(counter "$dev2" rcvd_runs h2) - runs))
	echo "$pkts packets in $runs runs"
	(( pkts >= 32 * 16 && runs * 2 < pkts ))
	runs=$(counter "$dev2" rcvd_runs h2) \
		batches=$(counter "$dev2" rcvd_batches h2)
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"joined-short: op=write size=8 list=16 count=256"
	runs=$(($(counter "$dev2" rcvd_runs h2) - runs)) \
		batches=$(($(counter "$dev2" rcvd_batches h2) - batches))
	echo "$runs messages in $batches batches"
	(( runs >= 256 && batches * 2 < runs ))
}

# A firewall writes to the second of two joined packets. The stack moves the
# bytes up to there to the first packet; both remain what they were.
# changed NAME CHANGE...: `list=2` of 16 bytes are exchanged nevertheless
changed() {
	h1 nft "table ip opcodes { chain out { type filter hook output priority 0; udp dport 4791 meta length 92 counter ${*:2}; }; }"
	verify -f 2 -a "h1:$dev1" -b "h2:$dev2" \
		"$1: gid=v4 op=send size=16 list=2 count=8"
	h1 nft list table ip opcodes | grep -o 'counter packets [1-9].*'
	h1 nft delete table ip opcodes
}
second_written() {
	local refused
	refused=$(counter "$dev2" send_nak h2)
	changed written '@th,336,16 set 0xffff'
	refused=$(($(counter "$dev2" send_nak h2) - refused))
	echo "$refused NAKs"
	(( ! refused ))
}

# The second packet becomes a datagram to QP 1. Only the first packet has an IP
# header and a netdev. When the sender sends the message again, the message is
# alone.
second_datagram() {
	local malformed
	malformed=$(counter "$dev2" rcvd_malformed h2)
	changed datagram '@th,320,8 set 0x64 @th,360,24 set 1'
	malformed=$(($(counter "$dev2" rcvd_malformed h2) - malformed))
	echo "$malformed malformed packets"
	(( malformed ))
}

# A program sends pages of a file that it may only read. h2 takes the packets
# for ESP in UDP and decrypts them: the BTH's first word, opcode and P_Key, is
# the SPI. Up to 4088 bytes are a message of one packet; 6104 bytes and more are
# two packets, and the SPIs only fit the second. One message in 256 decrypts to
# a trailer whose next header is 59 (none), which ESP drops without counting the
# packet: three messages for each SPI.
esp_in_udp() {
	local spi
	for spi in 0x0440ffff 0x0240ffff; do
		ip -n h2 xfrm state add src $ip1 dst $ip2 proto esp spi $spi \
			reqid 1 mode transport enc 'rfc3686(ctr(aes))' \
			0x0123456789abcdef0123456789abcdef01234567 encap \
			espinudp 0 0 0.0.0.0
	done
	h2 python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_UDP, 100, 2)	# UDP_ENCAP, UDP_ENCAP_ESPINUDP
s.bind(("", 4791))
sys.stdin.read()' <"$scratch/hold" &
}
decrypted() {
	ip -n h2 -s xfrm state |
		grep -cE '^[[:space:]]+[0-9]+\(bytes\), [1-9][0-9]*\(packets\)'
}
file_stays() {
	local len before receiver
	hosts --peer none --mtu 9000
	head -c 8192 /dev/urandom >"$scratch/file"
	before=$(md5sum <"$scratch/file")
	esp_in_udp
	receiver=$!
	exec {hold}>"$scratch/hold"
	until_true 20 eval '[[ $(h2 ss -Hlun "sport = :4791") ]]'
	for len in 1000 2000 4088 6104 6108 6112; do
		h1 hostile pages "$dev1" $ip2 "$scratch/file" $len
		[[ $(md5sum <"$scratch/file") == "$before" ]] ||
			{
				echo "the file is another after $len bytes of it were sent"
				return 1
			}
	done
	exec {hold}>&-
	wait $receiver
	ip -n h2 -s xfrm state
	(( $(decrypted) == 2 ))
}

mkfifo "$scratch/hold"
if debug_kernel; then
	skip pages 'this kernel has no authenc(digest_null,...) for ESP'
else
	check pages 60 file_stays
fi
hosts
check verbs 60 h1 hostile verbs "$dev1"
check errors 60 h1 hostile errors "$dev1"
check srq 30 h1 hostile srq "$dev1"
check second-written 60 second_written
check second-datagram 60 second_datagram
unharmed commands h1 hostile commands "$dev1" $seconds
kicks=$(counter "$dev1" kicks h1) errors=$(counter "$dev1" send_err h1)
unharmed rings h1 hostile rings "$dev1" $seconds
# A slow machine needs more than one run until the kernel has reported that
# many.
rings_were_read() {
	local k e
	for _ in {1..6}; do
		k=$(($(counter "$dev1" kicks h1) - kicks)) \
			e=$(($(counter "$dev1" send_err h1) - errors))
		echo "$k kicks, $e send errors"
		(( k <= 1000 || e <= 10 )) || return 0
		h1 hostile rings "$dev1" 4
	done
	return 1
}
check rings-were-read 60 rings_were_read
check threads $((60 + seconds * 4)) h1 hostile threads "$dev1" $seconds
unharmed threads-rude h1 hostile threads "$dev1" $seconds rude
unharmed packets-v4 aimed v4 $ip2 $ip1
unharmed packets-v6 aimed v6 $ip62 $ip61
check joining 60 joining
unharmed packets-joined aimed v4 $ip2 $ip1
verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
	"joined-mixed: op=mix size=8,20000 vary=1 qps=8 both=1 count=64" \
	"joined-uc: qp=uc op=send_imm size=1000 vary=1 qps=4 both=1 count=64 lossy=1" || (( ++failures ))
check tried 60 tried
check cleaned-up 20 until_true 10 all_gone
check unload 30 eval 'arx-hosts down && rmmod arx'
