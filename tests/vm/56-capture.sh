#!/bin/bash
# The device attribute "capture": tcpdump shows all traffic as plain RoCEv2
# packets with right ICRCs, between two nodes and on one.
# kernels: 6.12 newest
# left: 6.12
# timeout: 200

source "$(dirname "$0")/lib.sh"

here=$(dirname "$0")
switch() { h"$1" bash -c "echo $2 >/sys/class/infiniband/$driver$1/capture"; }

# capture HOST NETDEV ADDRESS CASE...: what a capture has of verify's traffic,
# in $scratch/capture. Packets from h1 to ADDRESS pass NETDEV.
capture() {
	local host=$1 netdev=$2 address=$3 tcpdump
	shift 3
	rm -f "$scratch/capture"
	ip netns exec "$host" tcpdump -q -B 65536 -i "$netdev" \
		--immediate-mode -U -w "$scratch/capture" \
		udp port 4791 or icmp 2>/dev/null &
	tcpdump=$!
	until_true 20 test -s "$scratch/capture"
	verify -f 4 "$@"
	captured $tcpdump "$scratch/capture" "$address"
}

# plain LEAST: the capture has at least LEAST packets. Each is one of a path
# MTU of 4096 with its own right ICRC, says scapy, and tshark finds a BTH in
# each.
plain() {
	PYTHONPATH=$here/wire python3 - "$scratch/capture" "$1" <<-'END'
	import subprocess, sys
	from scapy.utils import RawPcapReader
	from roce import Seen
	capture, least = sys.argv[1], int(sys.argv[2])
	frames = [frame for frame, _ in RawPcapReader(capture)]
	for frame in frames:
	    assert len(frame) <= 14 + 40 + 8 + 12 + 28 + 4096 + 4, f'{len(frame)} bytes'
	    Seen(frame)
	rows = subprocess.run(['tshark', '-r', capture, '-T', 'fields', '-e', 'infiniband.bth.opcode', '-e', 'infiniband.bth.destqp'],
	                      check=True, capture_output=True,
	                      text=True).stdout.splitlines()
	bad = [n for n, row in enumerate(rows, 1) if len(row.split()) != 2]
	print(len(frames), 'packets')
	assert not bad and len(rows) == len(frames), f'tshark has no BTH in packets {bad[:5]}, {len(rows)} rows'
	assert len(frames) >= least, f'{len(frames)} packets, not {least}'
	END
}

full && count=2 || count=1
messages="op=write,read,send size=65536 count=$count both=1"
# 3 cases x count x 2 directions x 16 packets
one_host() {
	local runs
	switch 1 1
	runs=$(counter "$dev1" loopback_runs h1)
	capture h1 lo $ip1 -a "h1:$dev1" -b "h1:$dev1" "one-host: $messages" \
		"one-host-ud: qp=ud op=send size=1000 count=20"
	plain $((96 * count + 20))
	(( $(counter "$dev1" loopback_runs h1) == runs ))
}
one_host_off() {
	switch 1 0
	[[ $(h1 cat "/sys/class/infiniband/$dev1/capture") == 0 ]]
	capture h1 lo $ip1 -a "h1:$dev1" -b "h1:$dev1" "one-host-off: $messages"
	not plain $((75 * count))
}
# GRO joins no packets for a device that captures. But packets from the same
# machine arrive as they were sent, so the sender has the attribute, too.
two_hosts() {
	switch 1 1
	switch 2 1
	capture "$1" eth0 $ip2 -a "h1:$dev1" -b "h2:$dev2" \
		"two-hosts: $messages" \
		"two-hosts-v6: gid=v6 $messages"
	plain $((192 * count))
}
# While traffic goes on, on one node and between two
switched() {
	local n pids=()
	switch 1 0
	switch 2 0
	verify -f 4 -a "h1:$dev1" -b "h1:$dev1" 'switched: op=mix size=100000 qps=2 both=1 count=150 slow=3000 timeout=14' &
	pids+=($!)
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" 'switched-hosts: op=mix size=100000 qps=2 both=1 count=150 slow=3000 timeout=14' &
	pids+=($!)
	for n in {1..12}; do
		nap 0.2
		switch 1 $((n % 2))
		switch 2 $((n / 2 % 2))
	done
	switch 1 0
	switch 2 0
	for n in "${pids[@]}"; do wait "$n"; done
}
refused() { not h1 bash -c "echo 7 >/sys/class/infiniband/$dev1/capture"; }

hosts --mtu 9000
check one-host 60 one_host
check one-host-off 40 one_host_off
check two-hosts-sent 40 two_hosts h1
check two-hosts-received 40 two_hosts h2
check switched 60 switched
check refused 10 refused
