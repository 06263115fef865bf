#!/bin/bash
# What an administrator meets: refused links and their reasons, devices taken
# over from rdma_rxe, links that systemd makes, the examples for ifupdown and
# for Prometheus, and each complaint of arx-doctor.
# kernels: newest 6.12
# left: 6.12
# timeout: 240

source "$(dirname "$0")/lib.sh"

tools=/arx/userspace/tools
arx_link=$tools/arx-link
install -m 755 $arx_link /usr/sbin/arx-link

# logged WORDS COMMAND...: it must fail, and the kernel's log tell why
logged() {
	local mark="logged $SRANDOM" since
	echo "$mark" >/dev/kmsg
	not "${@:2}"
	since=$(dmesg | sed "1,/$mark/d")
	finds -F "$1" <<<"$since" || { echo "$since"; return 1; }
}

# somebody has the UDP port
occupy() {
	python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 4791)); time.sleep(600)' &
	occupant=$!
	until_true 10 finds :12B7 /proc/net/udp
}

release() {
	kill $occupant
	wait $occupant || true
}

veth() {
	ip link add eth0 mtu "${1:-1500}" type veth peer name peer0 mtu \
		"${1:-1500}"
	ip link set peer0 up
	ip link set eth0 up
	ip address add $ip1/24 dev eth0
}

wrong_type() {
	modprobe vcan
	ip link add can0 type vcan
	logged 'arx: neither Ethernet nor an IP tunnel' rdma link add arx0 \
		type arx netdev can0
	refuses 'is neither Ethernet nor an IP tunnel' arx-link add can0
	ip link del can0
}

small_mtu() {
	ip link add dummy0 mtu 351 type dummy
	logged 'arx: MTU 351 is too small, RoCE takes 352' rdma link add arx0 \
		type arx netdev dummy0
	refuses 'MTU of 351' arx-link add dummy0
	ip link set dummy0 mtu 352
	arx-link add dummy0
	arx-link del dummy0
	ip link del dummy0
}

port_taken() {
	ip link add dummy0 type dummy
	occupy
	logged 'arx: UDP port 4791 is in use' rdma link add arx0 type arx \
		netdev dummy0
	refuses 'UDP port 4791 is in use' arx-link add dummy0
	release
	arx-link add dummy0
	arx-link del dummy0
	ip link del dummy0
}

twice() {
	ip link add dummy0 type dummy
	arx-link add dummy0 first
	logged 'arx: there is a device already, first' rdma link add second \
		type arx netdev dummy0
	refuses 'dummy0 has an arx device already: first' arx-link add dummy0 \
		second
	ip link add dummy1 type dummy
	refuses 'there is an RDMA device first already' arx-link add dummy1 \
		first
	refuses 'there is no network interface gone0' arx-link add gone0
	ip link set dummy0 name other0
	arx-link del dummy0
	[[ ! $(arx-link show) ]]
	arx-link del dummy0
	ip link del other0
	ip link del dummy1
}

rxe_busy() { [[ $(rdma resource show qp link soft0/1) == *pong* ]]; }
from_rxe() {
	veth
	refuses 'rdma_rxe has no device' arx-link from-rxe
	modprobe rdma_rxe
	rdma link add soft0 type rxe netdev eth0
	refuses 'UDP port 4791 is in use' arx-link add eth0
	ibv_rc_pingpong -d soft0 -g 1 &
	pong=$!
	until_true 20 rxe_busy
	refuses 'soft0 is in use by ibv_rc_pingpong' arx-link from-rxe
	kill $pong
	wait $pong || true
	arx-link from-rxe
	[[ $(arx-link show) == 'soft0 eth0 arx' ]]
	ibv_devinfo -d soft0 | finds PORT_ACTIVE
	arx-link del eth0
	ip link del eth0
	modprobe -r rdma_rxe || true
}

# systemd in a PID namespace: what it needs for devices, and the unit. It takes
# no commands from other PID namespaces.
in_systemd() { nsenter -t "$init" -p -m systemctl -q "$@"; }
start_systemd() {
	mkdir -p /run/systemd/system
	cp $tools/arx-link@.service /run/systemd/system/
	cat >/run/systemd/system/small.target <<-END
		[Unit]
		DefaultDependencies=no
		Wants=systemd-udevd.service small.service
	END
	# Network interfaces alone: the rest would load modules of all that this
	# machine has.
	cat >/run/systemd/system/small.service <<-END
		[Unit]
		DefaultDependencies=no
		After=systemd-udevd.service
		[Service]
		Type=oneshot
		RemainAfterExit=yes
		ExecStart=udevadm trigger --subsystem-match=net --action=add
	END
	# Nor the rest of a boot. A device has services of rdma-core started,
	# and they the first part of a boot: it would load all those modules.
	ln -sf /dev/null /run/systemd/system/systemd-udev-trigger.service
	mkdir -p /run/systemd/system/arx-link@.service.d
	printf '[Unit]\nDefaultDependencies=no\n' \
		>/run/systemd/system/arx-link@.service.d/small.conf
	rm -f /run/systemd/private
	unshare --pid --fork --kill-child --mount --mount-proc \
		--propagation private -- \
		/usr/lib/systemd/systemd --unit=small.target --log-target=kmsg \
		--show-status=no &
	manager=$!
	until_true 30 test -S /run/systemd/private
	init=$(pgrep -P $manager)
	until_true 30 in_systemd is-active small.service
}

stop_systemd() {
	kill -KILL $manager
	wait $manager || true
}

has() { [[ $(arx-link show) == "$1" ]]; }

units() {
	ip link add eth5 type dummy
	start_systemd
	mkdir -p /etc/systemd/system/arx-link@eth5.service.d
	printf '[Service]\nEnvironment=NAME=arx5\n' \
		>/etc/systemd/system/arx-link@eth5.service.d/name.conf
	in_systemd enable --now arx-link@eth5
	has 'arx5 eth5 arx'
	echo "the interface is unplugged, and plugged in again"
	ip link del eth5
	until_true 20 has ''
	until_true 20 not in_systemd is-active arx-link@eth5
	ip link add eth5 type dummy
	until_true 20 has 'arx5 eth5 arx'
	echo "the machine boots again"
	stop_systemd
	rdma link delete arx5
	rm -rf /run/arx
	start_systemd
	until_true 20 has 'arx5 eth5 arx'
	echo "the interface gets another name"
	ip link set eth5 name eth6
	until_true 20 has ''
	ip link set eth6 name eth5
	until_true 20 has 'arx5 eth5 arx'
	in_systemd disable --now arx-link@eth5
	has ''
	stop_systemd
	ip link del eth5
	rm -rf /etc/systemd/system/arx-link@eth5.service.d \
		/run/systemd/system/{small.*,arx-link@*,systemd-udev-trigger*}
}

# The dashboard's metrics come from node_exporter's own collector and from
# arx-metrics.
exporter() {
	local exporter metric
	veth
	arx-link add eth0
	$tools/examples/arx-metrics "$scratch/arx.prom"
	prometheus-node-exporter --collector.disable-defaults \
		--collector.infiniband \
		--collector.textfile --collector.textfile.directory="$scratch" \
		--web.listen-address=127.0.0.1:9100 &
	exporter=$!
	until_true 20 scraped
	kill $exporter
	wait $exporter || true
	finds -x 'node_scrape_collector_success{collector="infiniband"} 1' \
		"$scratch/metrics"
	finds -x 'node_textfile_scrape_error 0' "$scratch/metrics"
	finds 'node_infiniband_info{.*device="arx_eth0"' "$scratch/metrics"
	for metric in \
		$(grep -oE '\<(node_infiniband|arx)_[a-z_]+_total\>' \
		$tools/examples/grafana.json | sort -u); do
		finds "^$metric{device=\"arx_eth0\",port=\"1\"} " \
			"$scratch/metrics" || { echo "no $metric"; return 1; }
	done
	arx-link del eth0
	ip link del eth0
}
scraped() {
	python3 -c 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:9100/metrics").read().decode())' >"$scratch/metrics"
}

# The example for ifupdown, run by ifupdown.
ifupdown() {
	ip link add eth0 type veth peer name peer0
	ip link set peer0 up
	sed "s|inet dhcp|inet static\n\taddress $ip1/24|" \
		$tools/examples/interfaces >/etc/network/interfaces
	ifup eth0
	has 'arx_eth0 eth0 arx'
	ibv_devinfo -d arx_eth0 | finds PORT_ACTIVE
	ifdown eth0
	has ''
	ip link del eth0
}

# The examples for systemd-networkd and NetworkManager, called as
# networkd-dispatcher and NetworkManager call them for each interface and event.
dispatchers() {
	local networkd=$tools/examples/50-arx.sh manager=$tools/examples/90-arx
	veth
	IFACE=peer0 STATE=routable $networkd
	has ''
	IFACE=eth0 STATE=degraded $networkd
	has 'arx_eth0 eth0 arx'
	IFACE=eth0 STATE=routable $networkd
	ibv_devinfo -d arx_eth0 | finds PORT_ACTIVE
	$manager peer0 down
	has 'arx_eth0 eth0 arx'
	$manager eth0 down
	has ''
	$manager peer0 up
	$manager eth0 pre-up
	has ''
	$manager eth0 up
	$manager eth0 up
	has 'arx_eth0 eth0 arx'
	ip link del eth0
	has ''
}

# doctor COMPLAINT... [-- COMMAND...]: arx-doctor, run by COMMAND, finds these
# failures, warnings and notes, each with a remedy, and no other failure
doctor() {
	local wanted=()
	while (( $# )) && [[ $1 != -- ]]; do wanted+=("$1"); shift; done
	shift || true
	"$@" $tools/arx-doctor --json "${peer[@]}" >$scratch/doctor || true
	python3 -c 'if True:
		import json, sys
		found = [e for e in json.load(open(sys.argv[1])) if e["level"] != "ok"]
		wanted = set(sys.argv[2:])
		names = {e["check"] for e in found}
		failures = {e["check"] for e in found if e["level"] == "failure"}
		if wanted - names or failures - wanted or not all(e["remedy"] for e in found):
			sys.exit(f"wanted {wanted}: {found}")
	' "$scratch/doctor" "${wanted[@]}"
}
peer=()

verbs_dir=$(echo /usr/lib/*/libibverbs)
verbs_lib=$(echo /usr/lib/*/libibverbs.so.1)
provider=$(echo "$verbs_dir"/libarx-rdmav*.so)
updates=/lib/modules/$(uname -r)/updates

# What a case that failed has left elsewhere.
put_back() {
	{
		umount "$updates" /sys/module/module/parameters/sig_enforce
		mv "/tmp/${provider##*/}" "$provider"
		mv "$verbs_dir/libarx-rdmav99.so" "$provider"
		mv /tmp/arx.driver /etc/libibverbs.d/
		mv /tmp/verbs "$verbs_lib"
		nft flush ruleset
	} 2>/dev/null
}

doctor_nothing_there() {
	mount -t tmpfs tmpfs "$updates"
	mv "$provider" /tmp
	doctor module provider link memlock -- bash -c 'ulimit -l 64; exec setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock "$@"' bash
	umount "$updates"
	mv "/tmp/${provider##*/}" "$provider"
}

doctor_signature() {
	echo Y >/tmp/enforce
	mount --bind /tmp/enforce /sys/module/module/parameters/sig_enforce
	mv "$provider" "$verbs_dir/libarx-rdmav99.so"
	nft -f - <<-END
		table inet filter {
			chain input {
				type filter hook input priority 0; policy drop;
			}
		}
	END
	doctor signature provider-abi firewall link
	nft add rule inet filter input udp dport 4791 accept
	said=$($tools/arx-doctor) || true
	[[ $said == *'rule for UDP port 4791'* ]]
	nft flush ruleset
	mv "$verbs_dir/libarx-rdmav99.so" "$provider"
	umount /sys/module/module/parameters/sig_enforce
}

doctor_port() {
	mv /etc/libibverbs.d/arx.driver /tmp
	occupy
	doctor module provider-config port
	release
	mv /tmp/arx.driver /etc/libibverbs.d/
}

doctor_no_library() {
	mv "$verbs_lib" /tmp/verbs
	doctor libibverbs module link
	mv /tmp/verbs "$verbs_lib"
}

doctor_link() {
	modprobe -a arx ib_uverbs
	ip link add eth0 type veth peer name peer0
	arx-link add eth0
	doctor down
	ip link set eth0 mtu 300 up
	tc qdisc replace dev eth0 root fq_codel
	ethtool -K eth0 generic-segmentation-offload off
	mv "$provider" /tmp
	peer=(--peer 198.51.100.7)
	doctor provider library carrier address mtu-small offloads qdisc route
	mv "/tmp/${provider##*/}" "$provider"
	arx-link del eth0
	ip link del eth0
}

# A libarx whose ARX_ABI_VERSION is the next one leaves the device alone, and
# libibverbs says why.
doctor_abi() {
	local next=$scratch/next said
	mkdir -p "$next/rdma"
	sed 's/^\(#define ARX_ABI_VERSION\s*\)1$/\12/' \
		/arx/include/uapi/rdma/arx-abi.h >"$next/rdma/arx-abi.h"
	gcc -shared -fPIC -O1 -D_GNU_SOURCE -I"$next" \
		-I"$(echo /arx/build/rdma-core-*/build-arx/include)" \
		-include config.h -o "$next/provider" \
		/arx/userspace/provider/*.c -libverbs
	modprobe -a arx ib_uverbs
	veth
	arx-link add eth0
	ibv_devices | finds arx_eth0
	mv "$provider" /tmp
	cp "$next/provider" "$provider"
	said=$(ibv_devices 2>&1 >"$scratch/devices")
	echo "$said"
	[[ $said == *'Driver arx does not support the kernel ABI of 1 (supports 2 to 2)'* ]]
	not finds arx_eth0 "$scratch/devices"
	doctor library
	mv "/tmp/${provider##*/}" "$provider"
	ibv_devices | finds arx_eth0
	arx-link del eth0
	ip link del eth0
}

doctor_peer() {
	hosts --mtu 9000
	peer=(--peer $ip2 --peer 192.0.2.9)
	ip -n h2 link set eth0 mtu 1500
	doctor peer-mtu peer -- ip netns exec h1
	ip -n h2 link set eth0 mtu 9000
	peer=(--peer $ip2 --peer $ip62)
	doctor -- ip netns exec h1
	said=$(h1 $tools/arx-doctor --peer $ip2)
	[[ $said == *"$ip2: packets for path MTU 4096"* ]]
	ip -n h1 link set eth0 netns h2 name eth7
	peer=()
	doctor namespace -- ip netns exec h1
	arx-hosts down
}

check wrong-type 30 wrong_type
check small-mtu 30 small_mtu
check port-taken 30 port_taken
check twice 30 twice
check from-rxe 60 from_rxe
check exporter 30 exporter
check ifupdown 30 ifupdown
check dispatchers 30 dispatchers
cases=(nothing_there signature port no_library link peer)
if full; then
	check units 120 units
	cases+=(abi)
else
	skip units "systemd takes its time: left to make test-full"
	skip doctor-abi "a compiler takes its time: left to make test-full"
fi
rmmod arx 2>/dev/null
for case in "${cases[@]}"; do
	check doctor-$case 60 doctor_$case
	put_back
done
