#!/bin/bash
# Network cards that QEMU emulates, two of a kind joined by a wire, one for each
# node: super-packets are really segmented and ICRCs checked, and received
# packets are joined by GRO, or not.
# kernels: 6.12 newest
# left: 6.12
# timeout: 400

source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/cards.sh"

# The cards' qdisc keeps the order, so packets may be sent from any CPU.
stayed() {
	(( $(count tx_behind) == 0 )) ||
		{
			echo "runs left to another CPU: $(count tx_behind)"
			return 1
		}
}

# carries NAME [CASE...]. A packet that a busy host delays must not look lost.
carries() {
	local name=$1
	shift
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"$name-rc: timeout=17 op=send,write,read size=300,65537 count=12 both=1" \
		"$name-atomics: timeout=17 op=cas,faa count=50 both=1" \
		"$name-uc: qp=uc op=write_imm size=9000 count=12" \
		"$name-ud: qp=ud gid=v4,v6 op=send_imm size=900 count=12" \
		"$name-v6: timeout=17 gid=v6 op=mix size=30000 count=12" "${@/#/$name-}" ||
		(( ++failures ))
}

# unbound BUS DRIVER: the card disappears with its driver; so does the device.
unbound() {
	local address
	address=$(basename "$(h1 readlink -f /sys/class/net/nic0/device)")
	echo "$address" >"/sys/bus/$1/drivers/$2/unbind"
	until_true 10 eval 'h1 rdma link show | not finds .'
}

long="long: timeout=17 op=write,read size=1048576 count=12 both=1"
for kind in virtio_net:virtio e1000e:pci; do
	module=${kind%:*}
	hosts --driver none
	modprobe "$driver"
	modprobe "$module" ||
		{ fail "$module" "the module does not load"; continue; }
	h1 ip link delete eth0
	check "$module" 60 joined_by "$module"
	carries "$module" "$long"
	check "$module-icrc" 60 checked
	check "$module-stayed" 60 stayed
	[[ $module != virtio_net ]] ||
		check "$module-answers-once" 60 answers_once
	check "$module-no-gro" 60 offloads gro off
	carries "$module-no-gro" "$long"
	check "$module-no-offloads" 60 offloads gro on tx off sg off
	carries "$module-no-offloads"
	check "$module-unbound" 60 unbound "${kind#*:}" "$module"
	check "$module-down" 60 arx-hosts down
done
