#!/bin/bash
# NVMe over RDMA: the kernel's own target and host, both on one device, with a
# RAM disk behind. Consumers in the kernel register memory by work requests, and
# must end when the device is removed.
# kernels: 6.12 newest
# left: 6.12
# timeout: 400

source "$(dirname "$0")/lib.sh"

address=192.0.2.9
target=/sys/kernel/config/nvmet
megabytes=24
full && rounds=20 || rounds=2

export_disk() {
	mkdir $target/subsystems/arx $target/subsystems/arx/namespaces/1 \
		$target/ports/1
	echo 1 >$target/subsystems/arx/attr_allow_any_host
	echo /dev/ram0 >$target/subsystems/arx/namespaces/1/device_path
	echo 1 >$target/subsystems/arx/namespaces/1/enable
	echo rdma >$target/ports/1/addr_trtype
	echo ipv4 >$target/ports/1/addr_adrfam
	echo $address >$target/ports/1/addr_traddr
	echo 4420 >$target/ports/1/addr_trsvcid
	ln -s $target/subsystems/arx $target/ports/1/subsystems/arx
}

remote_disk() { ls /dev/nvme*n1 2>/dev/null | head -n 1; }

connect() {
	nvme connect -t rdma -a $address -s 4420 -n arx -i 2 --ctrl-loss-tmo=0
	until_true 20 eval '[[ -b $(remote_disk) ]]'
}

# same FILE DEVICE
same() {
	dd if="$2" bs=1M count=$megabytes iflag=direct status=none | cmp "$1" -
}

# Data that the host writes, in requests of one size, is on the disk, and the
# host reads the data of the disk.
moves() {
	local size=$1 disk data round
	disk=$(remote_disk)
	data=$scratch/data-$size
	for (( round = 0; round < rounds; round++ )); do
		head -c ${megabytes}M /dev/urandom >"$data"
		dd if="$data" of="$disk" bs="$size" oflag=direct status=none
		same "$data" /dev/ram0
		dd if="$disk" bs="$size" iflag=direct status=none \
			count=$megabytes"M" iflag=count_bytes,direct |
			cmp "$data" -
	done
}

# Four at a time, each in a part of its own
many() {
	local disk part pids=()
	disk=$(remote_disk)
	head -c ${megabytes}M /dev/urandom >"$scratch/many"
	for part in 0 1 2 3; do
		dd if="$scratch/many" of="$disk" bs=16k \
			oflag=direct,seek_bytes iflag=skip_bytes,count_bytes \
			status=none conv=notrunc \
			skip=$((part * (megabytes << 18))) \
			seek=$((part * (megabytes << 18))) \
			count=$((megabytes << 18)) &
		pids+=($!)
	done
	for part in "${pids[@]}"; do wait "$part"; done
	same "$scratch/many" /dev/ram0
}

moved_by_arx() {
	(( $(counter arx9 loopback_bytes) > rounds * megabytes << 20 ))
}

# The device is removed while requests are in flight: they fail, and no process
# waits for ever.
removed() {
	local disk pid
	disk=$(remote_disk)
	(while dd if=/dev/zero of="$disk" bs=64k count=256 oflag=direct status=none 2>/dev/null; do :; done) &
	pid=$!
	sleep 1
	timeout 60 rdma link delete arx9
	until_true 30 not kill -0 $pid
	until_true 30 eval '[[ ! $(remote_disk) ]]'
}

# counted: the events of the consumers' CQs for many messages
counted() {
	local before
	before=$(counter arx9 cq_events)
	many
	echo $(($(counter arx9 cq_events) - before))
}

# On a new device, whose CQs are new: with dynamic interrupt moderation the core
# chooses the moderation of a CQ by its completions. (How many events that saves
# depends on how busy the CPUs are that handle them.)
moderated() { rdma -dd resource show cq dev arx9 | finds 'moderation_usecs [1-9]'; }
adaptive() {
	local load found='' end=$((SECONDS + 90))
	rdma link add arx9 type arx netdev eth9
	rdma dev set arx9 adaptive-moderation on
	rm $target/ports/1/subsystems/arx
	ln -s $target/subsystems/arx $target/ports/1/subsystems/arx
	connect
	rdma -d resource show cq dev arx9 | grep 'SOFTIRQ adaptive-moderation on'
	not moderated
	# Look while there is load: a CQ that pauses may lose its moderation.
	# (Not $(counted), in which set -e does not work.)
	until [[ $found ]]; do
		(( SECONDS < end ))
		counted >"$scratch/adaptive" &
		load=$!
		while kill -0 $load 2>/dev/null; do
			! moderated || found=yes
			nap 0.1
		done
		wait $load
		echo "$(<"$scratch/adaptive") events, without moderation $(<"$scratch/events")"
	done
	rdma -dd resource show cq dev arx9
	nvme disconnect -n arx
	rdma link delete arx9
}

unload() {
	rm $target/ports/1/subsystems/arx
	rmdir $target/ports/1 $target/subsystems/arx/namespaces/1 \
		$target/subsystems/arx
	rmmod arx
}

arx-hosts down
modprobe brd rd_nr=1 rd_size=$((megabytes << 10))
modprobe -a dummy nvme-rdma nvmet-rdma arx
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
ip link add eth9 mtu 9000 type dummy
ip link set eth9 up
ip address add $address/24 dev eth9
rdma link add arx9 type arx netdev eth9

check export 20 export_disk
check connect 60 connect
check small 100 moves 4k
check large 100 moves 1M
check many 100 eval 'counted >"$scratch/events"'
check moved-by-arx 60 moved_by_arx
check removed 120 removed
check adaptive 120 adaptive
check unload 30 unload
