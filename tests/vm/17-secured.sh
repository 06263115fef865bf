#!/bin/bash
# Netdevs and routes that transform packets: MACsec, IPsec in both modes, and a
# VXLAN through IPsec or WireGuard. The ICRC must be in the packet before
# encryption, because no layer can compute it later.
# kernels: 6.12 newest
# left: 6.12
# timeout: 400

source "$(dirname "$0")/lib.sh"

# Encryption takes an emulated CPU longer than the default timeout of a QP: a
# second, not 67 ms.
patient=timeout=18
# carries NAME
carries() {
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"$1-rc: op=send,write,read size=300,65537 count=8 both=1 $patient" \
		"$1-uc: qp=uc op=write_imm size=3000 count=12" \
		"$1-ud: qp=ud op=send_imm size=900 count=12" \
		"$1-atomics: op=cas,faa count=50 $patient" || (( ++failures ))
}
link() {
	ip netns exec "h$1" rdma link add "$driver$1" type "$driver" netdev "$2"
}
addresses() {
	ip -n "h$1" link set "$2" up
	ip -n "h$1" address add 192.0.2."$1"/24 dev "$2"
}
# right [MOST]: no packet arrived with a wrong ICRC, except MOST packets that
# were sent again. Such a packet may leave after the program has what the first
# one carried, and has changed the memory (protocol.rst, "Memory").
right() {
	local n received wrong malformed again=0 most=${1-0}
	for n in 1 2; do
		again=$((again + $(counter $driver$n \
			selective_retrans_pkts h$n)))
	done
	(( again >= most )) || most=$again
	for n in 1 2; do
		received=$(counter $driver$n rcvd_pkts h$n)
		wrong=$(counter $driver$n rcvd_icrc_err h$n)
		malformed=$(counter $driver$n rcvd_malformed h$n)
		echo "h$n: $received packets received, $wrong with wrong ICRC," \
			"$malformed malformed, $again sent again by both nodes"
		(( received >= 100 && wrong <= most && malformed == 0 ))
	done
}

# ---- MACsec: each node has a key, and knows the other's ----

mac() { ip netns exec "h$1" cat /sys/class/net/eth0/address; }
macsec() {
	local n peer
	for n in 1 2; do
		peer=$((3 - n))
		ip -n h$n address flush dev eth0 scope global
		ip -n h$n link add link eth0 macsec0 type macsec encrypt on
		ip -n h$n macsec add macsec0 tx sa 0 pn 1 on key 0$n \
			0123456789abcdef0123456789abcd0$n
		ip -n h$n macsec add macsec0 rx port 1 address "$(mac $peer)"
		ip -n h$n macsec add macsec0 rx port 1 address "$(mac $peer)" \
			sa 0 pn 1 on key 0$peer \
			0123456789abcdef0123456789abcd0$peer
		addresses $n macsec0
		link $n macsec0
	done
}
encrypted() {
	ip -n h1 -s macsec show macsec0 | grep -A 1 OutPktsEncrypted |
		grep -E '[1-9][0-9]{2,}'
}

# ---- IPsec ----

# ipsec MODE A B: between the addresses A and B of h1 and h2
ipsec() {
	local mode=$1 n spi ends=("$2" "$3") from to dir
	for n in 1 2; do
		for spi in 1 2; do
			from=${ends[spi - 1]} to=${ends[2 - spi]}
			ip -n h$n xfrm state add src "$from" dst "$to" proto \
				esp spi 0x10$spi reqid 1 mode "$mode" \
				aead 'rfc4106(gcm(aes))' \
				0x0123456789abcdef0123456789abcdef0123450$spi \
				128
			(( spi == n )) && dir=out || dir=in
			ip -n h$n xfrm policy add src "$from" dst "$to" dir \
				$dir tmpl src "$from" dst "$to" proto esp \
				reqid 1 mode "$mode"
		done
	done
}
sealed() {
	ip -n h1 -s xfrm state |
		grep -E '^[[:space:]]+[0-9]+\(bytes\), [1-9][0-9]{2,}\(packets\)'
}

# outer NETWORK: eth0 has addresses of this network only
outer() {
	local n
	for n in 1 2; do
		ip -n h$n address flush dev eth0 scope global
		ip -n h$n address add "$1.$n/24" dev eth0
	done
}
# A VXLAN between the addresses of a netdev, which is protected
vxlan_over() {
	local n
	for n in 1 2; do
		ip -n h$n link add vxlan0 mtu 4500 type vxlan id 7 local \
			198.51.100.$n remote 198.51.100.$((3 - n)) dstport \
			4789 dev "$1"
		addresses $n vxlan0
		link $n vxlan0
	done
}
vxlan() {
	outer 198.51.100
	vxlan_over eth0
	ipsec transport 198.51.100.1 198.51.100.2
}

# ---- WireGuard ----

wireguard() {
	local n peer
	outer 203.0.113
	for n in 1 2; do wg genkey >"$scratch/wg$n"; done
	for n in 1 2; do
		peer=$((3 - n))
		ip -n h$n link add wg0 mtu 8000 type wireguard
		ip netns exec h$n wg set wg0 listen-port 51820 private-key \
			"$scratch/wg$n" peer \
			"$(wg pubkey <"$scratch/wg$peer")" \
			allowed-ips 198.51.100.$peer/32 endpoint \
			203.0.113.$peer:51820
		ip -n h$n link set wg0 up
		ip -n h$n address add 198.51.100.$n/24 dev wg0
	done
	vxlan_over wg0
}
tunnelled() {
	h1 wg show wg0 transfer |
		grep -E '[[:space:]][0-9]{5,}[[:space:]][0-9]{5,}$'
}

hosts --driver none --mtu 9000
modprobe -a "$driver" macsec
check macsec 90 macsec
h1 ping -q -c 1 $ip2 >/dev/null
carries macsec
check macsec-encrypted 60 encrypted
# MACsec can change the order of packets, which makes a node ask for the 17
# packets of a message again.
check macsec-icrc 60 right 17

for mode in transport tunnel; do
	hosts --mtu 9000
	check ipsec-$mode 90 ipsec $mode $ip1 $ip2
	carries ipsec-$mode
	check ipsec-$mode-sealed 60 sealed
	check ipsec-$mode-icrc 60 right
done

hosts --mtu 9000
check ipsec-v6 90 ipsec transport $ip61 $ip62
verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
	"ipsec-v6-rc: gid=v6 op=mix size=300,65537 count=8 both=1 $patient" ||
	(( ++failures ))
check ipsec-v6-sealed 60 sealed

for tunnel in vxlan:sealed wireguard:tunnelled; do
	name=${tunnel%:*}
	hosts --driver none --mtu 9000
	check "$name" 90 "$name"
	h1 ping -q -c 1 $ip2 >/dev/null
	carries "$name"
	check "$name-${tunnel#*:}" 60 "${tunnel#*:}"
	check "$name-icrc" 60 right
done
