#!/bin/bash
# Every kind of Ethernet netdev below a device, with verified traffic; the port
# follows its netdev: state, MTU, addresses, name, removal, network namespace;
# both modes of network namespaces.
# kernels: 6.12 newest
# timeout: 700

source "$(dirname "$0")/lib.sh"
modprobe -a "${driver/rxe/rdma_rxe}" 8021q bonding bridge macvlan dummy tun \
	2>/dev/null

on() { local host=$1; shift; ip netns exec "$host" "$@"; }
# Two nodes whose eth0 and eth1 have no address and no RDMA device
bare_hosts() {
	hosts --driver none --mtu 9000
	local n
	ip link add eth1 mtu 9000 netns h1 type veth peer name eth1 mtu 9000 \
		netns h2
	for n in 1 2; do
		ip -n h$n address flush dev eth0 scope global
	done
}

# addresses N NETDEV: those of node N
addresses() {
	ip -n "h$1" link set "$2" up
	ip -n "h$1" address add 192.0.2."$1"/24 dev "$2"
	ip -n "h$1" address add fd00::"$1"/64 dev "$2" nodad
}

# link N NETDEV [NAME]
link() { on "h$1" rdma link add "${3:-$driver$1}" type "$driver" netdev "$2"; }

# ---- attributes of a port ----

# port HOST DEVICE: state, physical state and netdev
port() {
	on "$1" rdma link show "$2/1" |
		sed -nE 's/^link [^ ]+ state ([A-Z]+) physical_state ([A-Z_]+) ?(netdev ([^ ]*))?.*/\1 \2 \4/p'
}
port_is() {
	[[ "$(port "$1" "$2")" == "$3" ]] ||
		{ echo "$2 is $(port "$1" "$2"), not $3"; return 1; }
}
mtu_of() {
	on "$1" ibv_devinfo -d "$2" |
		sed -nE 's/.*active_mtu:[[:space:]]*([0-9]+).*/\1/p'
}
mtu_is() {
	[[ "$(mtu_of "$1" "$2")" == "$3" ]] ||
		{ echo "active_mtu $(mtu_of "$1" "$2"), not $3"; return 1; }
}

# gids HOST DEVICE: GID and netdev, sorted
gids() {
	on "$1" bash -c 'cd "/sys/class/infiniband/$0/ports/1" || exit
		grep -Hv 0000:0000:0000:0000:0000:0000:0000:0000 gids/* |
		while IFS=: read -r file gid; do
			echo "$gid $(<"gid_attrs/ndevs/${file#gids/}")"
		done | sort -u' "$2"
}
# gid_of ADDRESS...: in the format of sysfs
gid_of() {
	local address head tail
	for address; do
		if [[ $address != *:* ]]; then
			printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n' ${address//./ }
			continue
		fi
		IFS=: read -ra head <<<"${address%%::*}"
		IFS=: read -ra tail <<<"${address#*::}"
		while (( ${#head[@]} + ${#tail[@]} < 8 )); do head+=(0); done
		printf '%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x\n' \
			"${head[@]/#/0x}" "${tail[@]/#/0x}"
	done
}
# link_local HOST NETDEV: the address made from the MAC
link_local() {
	local mac
	IFS=: read -ra mac <<<"$(on "$1" cat "/sys/class/net/$2/address")"
	printf 'fe80::%x:%x:%x:%x\n' $((0x${mac[0]}${mac[1]} ^ 0x200)) \
		$((0x${mac[2]}ff)) $((0xfe${mac[3]})) $((0x${mac[4]}${mac[5]}))
}
# gids_are HOST DEVICE NETDEV ADDRESS...: true if the device has exactly these
gids_are() {
	local host=$1 device=$2 netdev=$3 want have
	shift 3
	want=$(gid_of "$@" | sed "s/$/ $netdev/" | sort -u)
	have=$(gids "$host" "$device")
	[[ $want == "$have" ]] ||
		{ printf 'GIDs:\n%s\nnot:\n%s\n' "$have" "$want"; return 1; }
}
# The default GID, which is the link-local address as well, is the first,
# because programs stop at the first hole.
first_gid() {
	on "$1" bash -c 'cd "/sys/class/infiniband/$0/ports/1" && echo "$(<gids/0) $(<gid_attrs/ndevs/0) $(<gid_attrs/types/0)"' "$2"
}
first_gid_is() {
	local want
	want="$(gid_of "$(link_local "$1" "$3")") $3 RoCE v2"
	[[ "$(first_gid "$1" "$2" 2>&1)" == "$want" ]] ||
		{
			echo "GID 0: $(first_gid "$1" "$2" 2>&1), not $want"
			return 1
		}
}
becomes() { until_true 15 "$@" || { "$@"; return 1; }; }
gone() { ! on "$1" rdma link show "$2/1" 2>/dev/null | finds .; }

# ---- traffic ----

# carries NAME [A B]: all services, and all kinds of addresses
full && sizes=1,300,4096,65537 || sizes=300,65537
carries() {
	verify_on "${2:-1}" "${3:-2}" \
		"$1-rc: op=send,write,read size=$sizes count=12 both=1" \
		"$1-uc: qp=uc op=write_imm size=9000 count=12" \
		"$1-ud: qp=ud gid=v4,v6,ll op=send_imm size=1000 count=12" \
		"$1-v6: gid=v6,ll op=mix size=30000 count=12"
}
traffic_works() {
	verify -f 4 -a "h1:${1:-${driver}1}" -b "h2:${2:-${driver}2}" \
		"again: op=mix size=20000 count=${3:-12} ${4-}"
}

joined() { on h1 rdma resource show qp type UD | finds 'state RTS.*mckey'; }
multicast() {
	on h1 mckey "$1" "$2" -b "$3" -C 5 &
	until_true 20 joined
	on h2 mckey "$1" "$2" -b "$4" -C 5 -s
	wait $!
}

# ---- port events ----

# events_of FILE: the port's events that ibv_asyncwatch printed, in one line
events_of() { grep -oE 'PORT_(ERR|ACTIVE)' "$1" | xargs; }
# events_are FILE WANT: true if these events came, and no other half a second
# later
events_are() {
	until_true 10 eval \
		"[[ \$(events_of $1 | wc -w) -ge $(wc -w <<<"$2") ]]" || true
	sleep 0.5
	[[ $(events_of "$1") == "$2" ]] ||
		{ echo "events: $(events_of "$1"), not $2"; return 1; }
}
# port_events NETDEV STATE SHOWN: h1's port goes down with its netdev and comes
# back, twice. Each change is reported at once, by its own event and no other.
# STATE is the port's state while the netdev is down.
port_events() {
	local dump=$scratch/events-$1 want='' watch
	stdbuf -oL ip netns exec h1 ibv_asyncwatch -d "${driver}1" >"$dump" &
	watch=$!
	until_true 10 grep -q async "$dump"
	for _ in 1 2; do
		ip -n h1 link set "$1" down
		becomes port_is h1 "${driver}1" "$2 $3"
		want+=${want:+ }PORT_ERR
		events_are "$dump" "$want"
		ip -n h1 link set "$1" up
		becomes port_is h1 "${driver}1" "ACTIVE LINK_UP $3"
		want+=' PORT_ACTIVE'
		events_are "$dump" "$want"
	done
	kill $watch
	# a netdev that goes down loses its IPv6 addresses
	[[ $1 == eth1 ]] || ip -n h1 address replace fd00::1/64 dev "$1" nodad
}

# ---- kinds of netdevs: each makes one without an address in h$1 ----

make_vlan() { ip -n "h$1" link add link eth0 name vlan0 type vlan id 5; }
make_bridge() {
	ip -n "h$1" link add bridge0 mtu 9000 type bridge
	ip -n "h$1" link set eth0 master bridge0
}
make_macvlan() {
	ip -n "h$1" link add link eth0 name macvlan0 mtu 9000 type macvlan \
		mode bridge
}
make_bond() {
	local slave
	ip -n "h$1" link add bond0 mtu 9000 type bond mode active-backup \
		miimon 20 num_grat_arp 1
	for slave in eth0 eth1; do
		ip -n "h$1" link set $slave down
		ip -n "h$1" link set $slave master bond0
		ip -n "h$1" link set $slave up
	done
}

kind() {
	local netdev=${1}0 n
	echo "$mark $1" >/dev/kmsg
	for n in 1 2; do
		"make_$1" $n
		addresses $n "$netdev"
		link $n "$netdev"
	done
}
# The core logs each GID that a device does not take. (A device on a VLAN does
# not take the addresses of the real netdev, which the core offers, too.)
takes_all_gids() { ! dmesg | sed "1,/$mark $1/d" | grep 'GID add failed'; }
# sysfs and rdma show a device above the VLAN's real netdev
netdev_shown() { [[ $1 == vlan ]] && echo eth0 || echo "${1}0"; }
comes_up() {
	becomes port_is h1 "${driver}1" "ACTIVE LINK_UP $(netdev_shown "$1")"
	becomes port_is h2 "${driver}2" "ACTIVE LINK_UP $(netdev_shown "$1")"
	becomes gids_are h1 "${driver}1" "${1}0" 192.0.2.1 fd00::1 \
		"$(link_local h1 "${1}0")"
	becomes first_gid_is h1 "${driver}1" "${1}0"
	mtu_is h1 "${driver}1" 4096
	[[ $1 == vlan ]] || takes_all_gids "$1"
}
# A VLAN with an address of its own; the device must not get addresses of the
# real netdev.
vlan_mac() {
	ip -n h1 link set vlan0 address 02:00:00:00:00:55
	ip -n h1 address flush dev vlan0 scope link
	becomes first_gid_is h1 "${driver}1" vlan0
	ip -n h1 address add 198.51.100.1/24 dev eth0
	ip -n h1 link set eth0 down
	ip -n h1 link set eth0 up
	ip -n h1 link set vlan0 up
	ip -n h1 address replace fd00::1/64 dev vlan0 nodad
	becomes port_is h1 "${driver}1" "ACTIVE LINK_UP eth0"
	becomes gids_are h1 "${driver}1" vlan0 192.0.2.1 fd00::1 \
		"$(link_local h1 vlan0)"
	becomes first_gid_is h1 "${driver}1" vlan0
	ip -n h1 address del 198.51.100.1/24 dev eth0
	ip -n h2 neigh flush dev vlan0
}
# For each GID that a device does not take the core logs a line: here for those
# of the real netdevs only. (The log's rate limit may hide lines.)
vlan_refused() {
	local real others
	real=$(gid_of 198.51.100.1 "$(link_local h1 eth0)" \
		"$(link_local h2 eth0)" | sort)
	others=$(dmesg | sed "1,/$mark vlan/d" |
		sed -nE 's/.*unable to add gid ([0-9a-f:]+).*/\1/p' | sort -u |
		comm -23 - <(echo "$real"))
	[[ ! $others ]] || { printf 'refused:\n%s\n' "$others"; return 1; }
}
# remove the netdevs under the devices
removed() {
	ip -n h1 link del "${1}0"
	[[ $1 == dummy ]] || ip -n h2 link del "${1}0"
	becomes gone h1 "${driver}1"
	[[ $1 == dummy ]] || becomes gone h2 "${driver}2"
}

# total NAME: the sum of both devices
total() {
	local one two
	one=$(counter "${driver}1" "$1" h1) two=$(counter "${driver}2" "$1" h2)
	echo $((one + two))
}
# The VLAN has no queue, the netdev below has a slow one: waiting for that queue
# must not keep a CPU busy.
shaped() {
	local n before runs waits
	for n in 1 2; do
		ip netns exec h$n tc qdisc replace dev eth0 root "$@"
	done
	before=$(total tx_behind) runs=$(total sent_runs)
	verify -f 4 -a "h1:${driver}1" -b "h2:${driver}2" \
		"shaped: op=write,read,mix size=65537 count=60 both=1"
	waits=$(($(total tx_behind) - before)) \
		runs=$(($(total sent_runs) - runs))
	echo "runs: $runs, times one waited for those of another CPU: $waits"
	for n in 1 2; do
		ip netns exec h$n tc qdisc del dev eth0 root
	done
	(( runs > 100 && waits <= runs ))
}

mark="netdevs $SRANDOM"
bare_hosts
kinds=(vlan macvlan bridge)
! brief || kinds=(vlan)
for kind in "${kinds[@]}"; do
	check $kind 20 kind $kind
	check $kind-up 40 comes_up $kind
	brief || [[ $kind != vlan ]] ||
		check $kind-events 90 port_events vlan0 'DOWN DISABLED' \
			"$(netdev_shown vlan)"
	[[ $kind != vlan ]] || check $kind-mac-address 60 vlan_mac
	[[ $kind != vlan ]] || check $kind-refused 20 vlan_refused
	carries $kind
	[[ $kind != vlan ]] ||
		check $kind-shaped 60 shaped tbf rate 100mbit burst 64kb \
			latency 2s
	[[ $kind != macvlan ]] ||
		check $kind-delayed 60 shaped netem delay 5ms limit 10000
	brief || [[ $kind == bridge ]] ||
		check $kind-multicast 40 multicast -m 239.1.2.3 192.0.2.1 \
			192.0.2.2
	check $kind-removed 20 removed $kind
done

# ---- bond: the active slave fails ----

bond_state() {
	kind bond
	comes_up bond
	active_slave eth0
}
active_slave() {
	[[ "$(on h1 cat /sys/class/net/bond0/bonding/active_slave)" == "$1" ]]
}
# Bytes that each slave has sent
sent() { on h1 cat "/sys/class/net/$1/statistics/tx_bytes"; }
failover() {
	local before verify
	before=$(sent eth1)
	# One stream, to a slow receiver: while the slaves change, the GIDs are
	# gone, and no program can connect.
	traffic_works '' '' 1600 'slow=10000 timeout=18' &
	verify=$!
	until_true 20 verify_under_way
	ip -n h1 link set eth0 down
	becomes active_slave eth1
	wait $verify
	(( $(sent eth1) - before > 1000000 )) ||
		{
			echo "eth1 has sent only $(($(sent eth1) - before)) bytes"
			return 1
		}
	port_is h1 "${driver}1" 'ACTIVE LINK_UP bond0'
}
failed_over() {
	becomes gids_are h1 "${driver}1" bond0 192.0.2.1 fd00::1 \
		"$(link_local h1 bond0)"
	becomes first_gid_is h1 "${driver}1" bond0
	traffic_works
}
no_slave() {
	ip -n h1 link set eth1 down
	becomes port_is h1 "${driver}1" 'DOWN POLLING bond0'
	ip -n h1 link set eth0 up
	becomes port_is h1 "${driver}1" 'ACTIVE LINK_UP bond0'
}
# The port goes down with the last slave.
bond_events() {
	ip -n h1 link set eth0 down
	becomes port_is h1 "${driver}1" 'DOWN POLLING bond0'
	ip -n h1 link set eth1 up
	becomes port_is h1 "${driver}1" 'ACTIVE LINK_UP bond0'
	port_events eth1 'DOWN POLLING' bond0
}

check bond 40 bond_state
carries bond
brief || check bond-multicast 40 multicast -m 239.1.2.3 192.0.2.1 192.0.2.2
check bond-failover 60 failover
check bond-failed-over 40 failed_over
check bond-no-slave 30 no_slave
check bond-events 90 bond_events
check bond-removed 20 removed bond

# ---- one node: dummy and lo ----

one_host() {
	ip -n h1 link add dummy0 mtu 9000 type dummy
	addresses 1 dummy0
	link 1 dummy0
}
dummy_up() {
	becomes port_is h1 "${driver}1" 'ACTIVE LINK_UP dummy0'
	becomes gids_are h1 "${driver}1" dummy0 192.0.2.1 fd00::1 \
		"$(link_local h1 dummy0)"
}
lo_up() {
	ip -n h2 link set lo up
	link 2 lo
	becomes port_is h2 "${driver}2" 'ACTIVE LINK_UP lo'
	becomes gids_are h2 "${driver}2" lo 127.0.0.1 ::1 fe80::200:ff:fe00:0
	mtu_is h2 "${driver}2" 4096
}
# Packets that lo receives and sends
lo_addresses() {
	ip -n h2 address add 192.0.2.99/32 dev lo
	ip -n h2 address add fd00::99/128 dev lo
	becomes gids_are h2 "${driver}2" lo 127.0.0.1 ::1 fe80::200:ff:fe00:0 \
		192.0.2.99 fd00::99
	ip -n h2 address del 192.0.2.99/32 dev lo
	ip -n h2 address del fd00::99/128 dev lo
	becomes gids_are h2 "${driver}2" lo 127.0.0.1 ::1 fe80::200:ff:fe00:0
}
# (Not rping: rdma_cm refuses 127.0.0.1.)
lo_pingpong() {
	local index
	index=$(on h2 bash -c "grep -l $(gid_of 127.0.0.1) /sys/class/infiniband/${driver}2/ports/1/gids/*")
	on h2 ibv_rc_pingpong -d "${driver}2" -g "${index##*/}" &
	until_true 20 listening h2 18515
	on h2 ibv_rc_pingpong -d "${driver}2" -g "${index##*/}" 127.0.0.1
	wait $!
}

check dummy 20 one_host
check dummy-up 20 dummy_up
carries dummy 1 1
check lo-up 20 lo_up
verify_on 2 2 \
	"lo-rc: gid=v4,v6 op=send,write,read size=$sizes count=12 both=1" \
	'lo-uc: qp=uc op=write_imm size=9000 count=12' \
	'lo-ud: qp=ud gid=v4,v6 op=send_imm size=1000 count=12'
check lo-pingpong 40 lo_pingpong
check lo-addresses 30 lo_addresses
check dummy-removed 20 removed dummy
h2 rdma link del "${driver}2"

# ---- the VLANs of a real device ----

tagged() {
	ip netns exec h2 tcpdump -q -i eth0 --immediate-mode -U \
		-w "$scratch/vlan.pcap" udp port 4791 or vlan 2>/dev/null &
	local tcpdump=$!
	until_true 20 test -s "$scratch/vlan.pcap"
	traffic_works
	# behind all packets
	h1 ping -q -c 1 192.0.2.2
	until_true 20 has_ping "$scratch/vlan.pcap" 'vlan and '
	kill $tcpdump
	wait $tcpdump || true
	local all five
	all=$(tcpdump -r "$scratch/vlan.pcap" 2>/dev/null | wc -l)
	five=$(tcpdump -r "$scratch/vlan.pcap" vlan 5 and udp port 4791 \
		2>/dev/null | wc -l)
	(( five > 20 )) &&
		! tcpdump -r "$scratch/vlan.pcap" 2>/dev/null udp port 4791 |
			grep . ||
		{ echo "$five packets of VLAN 5 among $all"; return 1; }
}
real_device() {
	local n
	for n in 1 2; do
		ip -n h$n link set eth0 up
		link $n eth0
		make_vlan $n
		addresses $n vlan0
	done
	becomes port_is h1 "${driver}1" 'ACTIVE LINK_UP eth0'
	gids h1 "${driver}1" | grep "$(gid_of 192.0.2.1) vlan0"
	gids h1 "${driver}1" | grep "$(gid_of fd00::1) vlan0"
}
# Both on one wire, each with its own addresses
vlan_and_real_device() {
	local n
	for n in 1 2; do
		link $n vlan0 "${driver}v$n"
		ip -n h$n address add 198.51.100.$n/24 dev eth0
	done
	becomes gids_are h1 "${driver}v1" vlan0 192.0.2.1 fd00::1 \
		"$(link_local h1 vlan0)"
	gids h1 "${driver}1" | grep "$(gid_of 198.51.100.1) eth0"
	traffic_works "${driver}v1" "${driver}v2"
	ip -n h1 link set vlan0 down
	becomes port_is h1 "${driver}v1" 'DOWN DISABLED eth0'
	port_is h1 "${driver}1" 'ACTIVE LINK_UP eth0'
	ip -n h1 link set vlan0 up
	becomes port_is h1 "${driver}v1" 'ACTIVE LINK_UP eth0'
	ip -n h1 link del eth0
	becomes gone h1 "${driver}v1"
	becomes gone h1 "${driver}1"
}
# A QP is in a group: rdma_cm made the VLAN a member, arx the VLAN and its real
# netdev; all memberships end with the program.
members() {
	ip -n h1 maddress show dev "$1" |
		grep -oE '239\.1\.2\.3( users [0-9]+)?'
}
joins() {
	ip netns exec h1 mckey -m 239.1.2.3 -b 192.0.2.1 -C 5 &
	until_true 20 joined
	echo "vlan0: $(members vlan0), eth0: $(members eth0)"
	[[ $(members vlan0) == '239.1.2.3 users 2' &&
		$(members eth0) == 239.1.2.3 ]]
	kill $!
	until_true 10 no_members
}
no_members() { [[ ! $(members vlan0) && ! $(members eth0) ]]; }
check vlan-of-real-device 30 real_device
check vlan-of-real-device-tagged 40 tagged
check vlan-of-real-device-multicast 40 multicast -m 239.1.2.3 192.0.2.1 \
	192.0.2.2
check vlan-of-real-device-joins 20 joins
check vlan-and-real-device 60 vlan_and_real_device

# ---- network namespaces ----

# The netdev moves to another namespace, and its device after it.
moved() {
	ip netns add h3
	ip -n h1 link set eth0 netns h3
	ip -n h3 link set lo up
	ip -n h3 address add 192.0.2.1/24 dev eth0
	ip -n h3 address add fd00::1/64 dev eth0 nodad
	ip -n h3 link set eth0 up
	h1 rdma dev set "${driver}1" netns h3
	becomes port_is h3 "${driver}1" 'ACTIVE LINK_UP eth0'
	gone h1 "${driver}1"
	becomes port_is h2 "${driver}2" 'ACTIVE LINK_UP eth0'
	verify -f 4 -a "h3:${driver}1" -b "h2:${driver}2" \
		'moved: op=mix size=20000 count=12' \
		'moved-ud: qp=ud op=send count=12 size=1000'
	on h3 rping -s -a 192.0.2.1 -C 3 -v &
	until_true 20 listening h3 cm
	on h2 rping -c -a 192.0.2.1 -C 3 -v
	wait $!
}
moved_back() {
	on h3 rdma dev set "${driver}1" netns h1
	ip -n h3 link set eth0 netns h1
	addresses 1 eth0
	becomes port_is h1 "${driver}1" 'ACTIVE LINK_UP eth0'
	becomes port_is h2 "${driver}2" 'ACTIVE LINK_UP eth0'
	traffic_works
}
# join HOST NETDEV GROUP: a program that is a member until it is killed; its
# process ID is in $joined
join() {
	ip netns exec "$1" python3 -c '
import socket, struct, sys, time
index, group = socket.if_nametoindex(sys.argv[1]), sys.argv[2]
v6 = ":" in group
s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
if v6:
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, group) + struct.pack("@i", index))
else:
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + bytes(4) + struct.pack("@i", index))
time.sleep(600)' "$2" "$3" {hold}>&- &	# must not keep the QP's program running
	joined=$!
	until_true 20 member "$@"
}
member() { ip -n "$1" maddress show dev "$2" | finds "$3"; }
# While a QP is in a group its netdev moves; a VLAN of the netdev stays. In the
# new namespace programs join the same group: on the netdev, and on a netdev
# with the VLAN's index there. The end of the QP ends only its own membership.
# (mckey would make rdma_cm join, too.)
others_groups() {
	local index group netdev qp pids joined hold
	ip -n h1 link add link eth0 name vlan9 type vlan id 9
	ip -n h1 address add 203.0.113.1/24 dev vlan9
	ip -n h1 link set vlan9 up
	index=$(on h1 cat /sys/class/net/vlan9/ifindex)
	mkfifo "$scratch/hold"
	for group in 239.1.2.4 $(brief || echo ff0e::124); do
		ip netns exec h1 hostile member "${driver}1" $group \
			<"$scratch/hold" >"$scratch/member-$group" &
		qp=$!
		exec {hold}>"$scratch/hold"
		until_true 20 grep -q attached "$scratch/member-$group"
		member h1 eth0 $group
		member h1 vlan9 $group
		ip -n h1 link set eth0 netns h3
		ip -n h3 link add dummy9 index "$index" type dummy
		ip -n h3 link set dummy9 up
		ip -n h3 link set eth0 up
		pids=()
		for netdev in eth0 dummy9; do
			join h3 $netdev $group
			pids+=($joined)
		done
		exec {hold}>&-
		wait $qp
		for netdev in eth0 dummy9; do
			member h3 $netdev $group ||
				{
					echo "$group: the program's membership on $netdev is lost"
					return 1
				}
		done
		not member h1 vlan9 $group ||
			{ echo "vlan9 is still in $group"; return 1; }
		kill "${pids[@]}"
		ip -n h3 link del dummy9
		ip -n h3 link set eth0 netns h1
		addresses 1 eth0
		becomes port_is h1 "${driver}1" 'ACTIVE LINK_UP eth0'
		becomes port_is h2 "${driver}2" 'ACTIVE LINK_UP eth0'
	done
	ip -n h1 link del vlan9
	traffic_works
}
# A VLAN that comes later, and a netdev whose membership ended because it moved
# away and back, become members when the next QP attaches.
later_members() {
	local i netdev group=239.1.2.5 qps=() held=() hold
	for i in 1 2; do
		mkfifo "$scratch/later-$i"
		ip netns exec h1 hostile member "${driver}1" $group \
			<"$scratch/later-$i" >"$scratch/later-member-$i" &
		qps+=($!)
		exec {hold}>"$scratch/later-$i"
		held+=($hold)
		until_true 20 grep -q attached "$scratch/later-member-$i"
		member h1 eth0 $group
		if (( i == 2 )); then member h1 vlan9 $group; break; fi
		ip -n h1 link set eth0 netns h3
		ip -n h3 link set eth0 netns h1
		addresses 1 eth0
		becomes port_is h1 "${driver}1" 'ACTIVE LINK_UP eth0'
		ip -n h1 link add link eth0 name vlan9 type vlan id 9
		ip -n h1 address add 203.0.113.1/24 dev vlan9
		ip -n h1 link set vlan9 up
		not member h1 eth0 $group
		not member h1 vlan9 $group
	done
	for hold in "${held[@]}"; do exec {hold}>&-; done
	for i in "${qps[@]}"; do wait $i; done
	for netdev in eth0 vlan9; do not member h1 $netdev $group; done
	ip -n h1 link del vlan9
	traffic_works
}
# Another program has the port in the namespace to which a netdev moves, again
# and again: the log says so a few times.
taken() {
	local i lines socket start=$SECONDS
	on h3 python3 -c 'import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("", 4791)); time.sleep(600)' &
	socket=$!
	until_true 20 eval "[[ \$(on h3 ss -Hlun 'sport = :4791') ]]"
	ip -n h1 link add dummy1 type dummy
	on h1 rdma link add "${driver}3" type "$driver" netdev dummy1
	for i in {1..30}; do
		ip -n h1 link set dummy1 netns h3
		ip -n h3 link set dummy1 netns h1
	done
	lines=$(dmesg | grep -c 'no sockets in the new namespace') || :
	echo "$lines lines for 30 moves in $((SECONDS - start)) s"
	(( lines > 0 && lines <= 10 * (1 + (SECONDS - start + 1) / 5) ))
	kill $socket
	on h1 rdma link delete "${driver}3"
	ip -n h1 link del dummy1
}
# A namespace that ends takes its netdevs, and their devices, with it.
namespace_ends() {
	ip -n h1 link add dummy0 type dummy
	ip -n h1 link set dummy0 netns h3
	on h3 rdma link add "${driver}3" type "$driver" netdev dummy0
	[[ $(on h3 rdma link show "${driver}3/1") ]]
	ip netns del h3
	becomes links_are_gone "${driver}3"
}
links_are_gone() { ! ls /sys/class/infiniband | finds "$1" && gone h1 "$1"; }
hosts --mtu 9000
check netns-moved 60 moved
check netns-moved-back 60 moved_back
check netns-others-groups 90 others_groups
check netns-later-members 60 later_members
[[ $driver != arx ]] || check netns-taken 60 taken
check netns-ends 30 namespace_ends
check exclusive 60 gone h2 "${driver}1"

# ---- the port follows ----

updown() {
	ip -n h1 link set eth0 down
	becomes port_is h1 "${driver}1" 'DOWN DISABLED eth0'
	becomes port_is h2 "${driver}2" 'DOWN POLLING eth0'
	ip -n h1 link set eth0 up
	becomes port_is h1 "${driver}1" 'ACTIVE LINK_UP eth0'
	becomes port_is h2 "${driver}2" 'ACTIVE LINK_UP eth0'
	# a netdev that loses its carrier loses its IPv6 addresses
	ip -n h1 address replace fd00::1/64 dev eth0 nodad
}
mtus() {
	local mtu n
	while read -r mtu n; do
		ip -n h1 link set eth0 mtu $mtu
		mtu_is h1 "${driver}1" $n || { echo "at $mtu"; return 1; }
	done <<-END
		65535 4096
		9000 4096
		4192 4096
		4191 2048
		2144 2048
		2143 1024
		1500 1024
		1120 1024
		1119 512
		608 512
		607 256
		352 256
		300 256
	END
	ip -n h1 link set eth0 mtu 9000
	mtu_is h1 "${driver}1" 4096
	ip -n h1 address replace fd00::1/64 dev eth0 nodad
	traffic_works
}
# A server cannot accept the path MTU of a client whose MTU is larger.
mtus_differ() {
	local server
	ip -n h2 link set eth0 mtu 1500
	on h2 timeout 20 rping -s -a 192.0.2.2 -C 3 >"$scratch/accept" 2>&1 &
	server=$!
	until_true 20 listening h2 cm
	not on h1 timeout 20 rping -c -a 192.0.2.2 -C 3
	wait $server || true
	cat "$scratch/accept"
	grep 'rdma_accept: Invalid argument' "$scratch/accept"
	on h1 timeout 20 rping -s -a 192.0.2.1 -C 3 &
	server=$!
	until_true 20 listening h1 cm
	on h2 timeout 20 rping -c -a 192.0.2.1 -C 3
	wait $server
	ip -n h2 link set eth0 mtu 9000
}
follow_addresses() {
	local own
	own=$(link_local h1 eth0)
	ip -n h1 address add 192.0.2.77/24 dev eth0
	ip -n h1 address add fd00::77/64 dev eth0 nodad
	becomes gids_are h1 "${driver}1" eth0 "$own" 192.0.2.1 fd00::1 \
		192.0.2.77 fd00::77
	ip -n h1 address del 192.0.2.1/24 dev eth0
	# the second address is a secondary one and goes with the first
	becomes gids_are h1 "${driver}1" eth0 "$own" fd00::1 fd00::77
	ip -n h1 address del fd00::77/64 dev eth0
	ip -n h1 address add 192.0.2.1/24 dev eth0
	becomes gids_are h1 "${driver}1" eth0 "$own" 192.0.2.1 fd00::1
	traffic_works
}
mac() {
	local guid
	guid=$(on h1 cat "/sys/class/infiniband/${driver}1/node_guid")
	ip -n h1 link set eth0 address 02:00:00:00:00:77
	ip -n h1 address flush dev eth0 scope link
	becomes gids_are h1 "${driver}1" eth0 fe80::ff:fe00:77 192.0.2.1 fd00::1
	[[ $(on h1 cat \
		"/sys/class/infiniband/${driver}1/node_guid") == "$guid" ]]
	ip -n h2 neigh flush dev eth0
	traffic_works
}
renamed() {
	ip -n h1 link set eth0 down
	ip -n h1 link set eth0 name other0
	ip -n h1 link set other0 up
	ip -n h1 address replace fd00::1/64 dev other0 nodad
	becomes port_is h1 "${driver}1" 'ACTIVE LINK_UP other0'
	gids h1 "${driver}1" | grep "$(gid_of 192.0.2.1) other0"
	traffic_works
	h1 rdma dev set "${driver}1" name renamed1
	traffic_works renamed1
	h1 rdma dev set renamed1 name "${driver}1"
}
# A run is one packet until single packets are needed: 15 of 4096 bytes after
# one BTH and before one ICRC
one_piece() {
	local dump="$scratch/one-piece.pcap" tcpdump
	ip netns exec h2 tcpdump -q -s 128 -i eth0 --immediate-mode -U \
		-w "$dump" udp port 4791 2>/dev/null &
	tcpdump=$!
	until_true 20 test -s "$dump"
	verify -f 4 -a "h1:${driver}1" -b "h2:${driver}2" \
		"one-piece: op=write,read size=1000000 count=4"
	kill $tcpdump
	wait $tcpdump || true
	finds . \
		<(tcpdump -r "$dump" "udp[4:2] = $((8 + 12 + 15 * 4096 + 4))" \
		2>/dev/null) ||
		{ tcpdump -v -r "$dump" 2>/dev/null | tail -n 20; return 1; }
}
# The netdev is gone, its peer and both devices with it.
netdev_removed() {
	ip -n h1 link del other0
	becomes gone h1 "${driver}1"
	becomes gone h2 "${driver}2"
}
check up-down 60 updown
check events 90 port_events eth0 'DOWN DISABLED' eth0
check mtu 60 mtus
brief || check mtus-differ 60 mtus_differ
check addresses 60 follow_addresses
check mac-address 60 mac
check renamed 60 renamed
[[ $driver != arx ]] || check one-piece 40 one_piece
check netdev-removed 30 netdev_removed

# ---- the speed of a port ----

# rate: of a tap, which has the speed that ethtool sets
rate() { on h1 cat "/sys/class/infiniband/${driver}t/ports/1/rate"; }
rate_is() {
	[[ $(rate) == "$1" ]] || { echo "rate $(rate), not $1"; return 1; }
}
speeds() {
	local mbps rate
	on h1 ip tuntap add tap0 mode tap
	link 1 tap0 "${driver}t"
	while read -r mbps rate; do
		on h1 ethtool -s tap0 speed $mbps duplex full
		becomes rate_is "$rate" || { echo "at $mbps"; return 1; }
	done <<-END
		1000 2.5 Gb/sec (1X SDR)
		2500 2.5 Gb/sec (1X SDR)
		5000 5 Gb/sec (1X DDR)
		20000 20 Gb/sec (4X DDR)
		56000 56 Gb/sec (4X FDR)
		800000 800 Gb/sec (4X XDR)
	END
	on h1 ip link del tap0
	becomes gone h1 "${driver}t"
}
check speeds 60 speeds

# ---- a namespace for all ----

# All namespaces see all devices.
shared() {
	rdma link show | finds "${driver}1/1"
	h2 rdma link show | finds "${driver}1/1"
	traffic_works
	verify -f 4 -a "h1:${driver}1" -b "h2:${driver}2" \
		'shared: gid=v4,v6,ll op=mix size=20000 count=12' \
		'shared-ud: qp=ud op=send count=12 size=1000'
	pair cm "rping -s -a $ip1 -C 3 -v" "rping -c -a $ip1 -C 3 -v"
}
arx-hosts down
hosts_shared() {
	rdma system set netns shared
	local n
	bare_nodes
	for n in 1 2; do
		ip -n h$n link set lo up
		addresses $n eth0
		link $n eth0
	done
}
check shared-up 30 hosts_shared
check shared 60 shared
check shared-down 20 arx-hosts down
