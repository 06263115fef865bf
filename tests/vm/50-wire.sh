#!/bin/bash
# Packets on the wire, checked by independent programs. First arx talks to a
# peer that is a program: scapy makes and parses each packet (BTH, AETH and ICRC
# are scapy's own; wire/roce.py has the headers that scapy lacks). Then traffic
# between two arx devices is captured and checked by tshark and by scapy.
# kernels: 6.12 newest uml
# timeout: 700

source "$(dirname "$0")/lib.sh"
wire=$(dirname "$0")/wire

# Captures must show the packets of a run one by one.
single_packets() {
	h1 ethtool -K eth0 tx-gso-list off && h2 ethtool -K eth0 tx-gso-list off
}

# counted HOST DEVICE: each packet counts once as ICRC computed or avoided.
# Packets that no QP wants are dropped before that.
counted() {
	ip netns exec "$1" rdma statistic show link "$2/1" -j | python3 -c '
import json, sys
count = json.load(sys.stdin)[0]
packets = sum(count[name] for name in ("sent_pkts", "rcvd_pkts", "rcvd_icrc_err"))
print("computed", count["icrc_computed"], "avoided", count["icrc_avoided"], "of", packets)
sys.exit(count["icrc_computed"] + count["icrc_avoided"] != packets)'
}

hosts --peer none
check single-packets 60 single_packets
h1 ping -q -c 1 $ip2 >/dev/null
h1 ping -q -c 1 $ip62 >/dev/null
declare -A hosts_of=([v4]="$ip1 $ip2" [v6]="$ip61 $ip62")
# The debug kernel runs all of the peer's cases, all sizes and both kinds of
# addresses; the sample of other kernels has some of them.
kinds=(v4 v6) cases='' sizes=0,1,2,3,1025,3070 count=8
if ! full && ! debug_kernel; then
	cases="requests-send requests-atomic requests-flush takes-write takes-read takes-atomic-write takes-flush refused-write-key ignored marked notified ecn-capable ud-takes xrc-requests xrc-takes addressed" sizes=1,2,3,1025 count=1
	brief && kinds=(v4) || kinds=(v6)
fi
# shellcheck disable=SC2086
for kind in "${kinds[@]}"; do
	h1 timeout 300 "$wire/peer" "$dev1" ${hosts_of[$kind]} $cases ||
		(( ++failures ))
done
# Some of the peer's packets were for no QP, or from an unknown address.
check icrc-counted-peer 60 counted h1 "$dev1"

# capture NAME GID: all kinds of messages between two devices
capture() {
	local rc="gid=$2 mtu=1024 count=$count" log=$scratch/$1.pcap
	h2 tcpdump -q -i eth0 -s 0 -B 65536 --immediate-mode -U -w "$log" \
		udp port 4791 or icmp 2>/dev/null &
	local tcpdump=$!
	until_true 20 test -s "$log"
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"$1-traffic-rc: op=send,send_imm,write,write_imm,read size=$sizes $rc" \
		"$1-traffic-uc: qp=uc op=send,send_imm,write,write_imm size=1,2050,3070 $rc" \
		"$1-traffic-ud: qp=ud op=send,send_imm size=1,2,3,1000 $rc" \
		"$1-traffic-atomics: op=cas,faa $rc" \
		"$1-traffic-lists: op=write,send_imm,mix list=8 vary=1 size=8,3000 $rc" || (( ++failures ))
	captured $tcpdump "$log" $ip2 >"$scratch/captured" 2>&1 ||
		fail "$1-captured" "not all packets" "$scratch/captured"
	"$wire/judge" "$1" "$log" || (( ++failures ))
}

hosts
verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
	"joined: op=send,read size=1,30000 count=8" || (( ++failures ))
check icrc-counted-joined 60 counted h1 "$dev1"
check single-packets-2 60 single_packets
for kind in "${kinds[@]}"; do capture "$kind" "$kind"; done
check icrc-counted-single 60 counted h1 "$dev1"
check icrc-counted-single-2 60 counted h2 "$dev2"
