#!/bin/bash
# In a machine where only the packages of arx are installed: the module, a link,
# a program, the doctor.
# tools/check-packages boots it.

source /arx/tests/vm/lib.sh

module() {
	modprobe arx
	modinfo -n arx | finds updates/dkms
	lsmod | finds '^arx '
}

link() {
	ip link add eth0 type veth peer name peer0
	ip link set peer0 up
	ip link set eth0 up
	ip address add 192.0.2.1/24 dev eth0
	modprobe -a ib_uverbs
	arx-link add eth0
	arx-link show | finds -x 'arx_eth0 eth0 arx'
	ibv_devinfo -d arx_eth0 | finds PORT_ACTIVE
}

program() { /arx/build/tests/first arx_eth0 | finds 'success'; }

doctor() {
	arx-doctor
	arx-doctor --json | python3 -c 'import json, sys; sys.exit(not json.load(sys.stdin))'
}

unit() {
	systemd-analyze verify --man=no \
		/usr/lib/systemd/system/arx-link@.service
}

away() {
	arx-link del eth0
	[[ ! $(arx-link show) ]]
	rmmod arx
}

for case in module link program doctor unit away; do check "packages-$case" 60 $case; done
