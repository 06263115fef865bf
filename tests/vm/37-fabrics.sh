#!/bin/bash
# Storage of the kernel between two machines, by packets: the target is on the
# second machine, and the initiator on the first. (Most of these consumers know
# the first network namespace only, so that one kernel cannot be both nodes.)
# kernels: 6.12 newest
# machines: 2
# timeout: 500

source "$(dirname "$0")/lib.sh"

full && megabytes=64 || megabytes=12
full && resets=3 || resets=1
nvmet=/sys/kernel/config/nvmet
lio=/sys/kernel/config/target
iscsi=$lio/iscsi/iqn.2026-01.test:arx/tpgt_1
shared+=(megabytes nvmet lio iscsi)

# verified DISK [OPTION...]: fio writes all of the disk in random order, in
# requests of many sizes, and verifies it.
verified() {
	fio --name=disk --filename="$1" --output=/dev/null --verify=crc32c \
		--verify_fatal=1 --direct=1 \
		--ioengine=io_uring --iodepth=8 --rw=randwrite \
		--bsrange=4k-256k --size=${megabytes}M "${@:2}"
}

# loaded DISK SECONDS COMMAND...: COMMAND while fio writes and verifies, for so
# long at least; sets $load, its process. The case ends if fio did before.
loaded() {
	verified "$1" --time_based --runtime="$2" --verify_backlog=16 \
		--output="$scratch/load" &
	load=$!
	nap 3
	kill -0 $load || exit
	"${@:3}"
}

# End the load, in which nothing has failed until now. (After a signal the
# status of fio is 128, whatever failed before.)
load_ends() {
	local status=0
	pkill -TERM -P $load
	wait $load || status=$?
	cat "$scratch/load"
	(( status == 128 ))
	finds 'err= 0:' "$scratch/load"
}

# in_time SECONDS COMMAND...: the command takes less than SECONDS, without the
# time to start a program, which is a second where the emulator is busy. The
# case ends if the command fails.
in_time() {
	local limit=$1 start=${EPOCHREALTIME/./} idle took
	shift
	nvme version >/dev/null
	idle=$(( (${EPOCHREALTIME/./} - start) / 1000 ))
	start=${EPOCHREALTIME/./}
	"$@" || exit
	took=$(( (${EPOCHREALTIME/./} - start) / 1000 ))
	echo "$*: $took ms, of which $idle start a program"
	(( took < limit * 1000 + idle ))
}

# NVMe

# nvme_export [PARAMETER...]: of the module nvmet_rdma. A port on any address
# outlives its device; one on a single address does not.
nvme_export() {
	modprobe brd rd_nr=1 rd_size=$((megabytes << 10))
	modprobe nvmet_rdma "$@"
	mkdir $nvmet/subsystems/arx $nvmet/subsystems/arx/namespaces/1 \
		$nvmet/ports/1
	echo 1 >$nvmet/subsystems/arx/attr_allow_any_host
	echo /dev/ram0 >$nvmet/subsystems/arx/namespaces/1/device_path
	echo 1 >$nvmet/subsystems/arx/namespaces/1/enable
	echo rdma >$nvmet/ports/1/addr_trtype
	echo ipv4 >$nvmet/ports/1/addr_adrfam
	echo 0.0.0.0 >$nvmet/ports/1/addr_traddr
	echo 4420 >$nvmet/ports/1/addr_trsvcid
	ln -s $nvmet/subsystems/arx $nvmet/ports/1/subsystems/arx
}

nvme_unexport() {
	rm $nvmet/ports/1/subsystems/arx
	echo 0 >$nvmet/subsystems/arx/namespaces/1/enable
	rmdir $nvmet/ports/1 $nvmet/subsystems/arx/namespaces/1 \
		$nvmet/subsystems/arx
	rmmod nvmet_rdma
}

nvme_disk() { ls /dev/nvme*n1 2>/dev/null | head -n 1; }

# nvme_connect [OPTION...]
nvme_connect() {
	modprobe nvme_rdma
	nvme connect -t rdma -a $ip2 -s 4420 -n arx --ctrl-loss-tmo=60 --reconnect-delay=1 "$@"
	until_true 20 eval '[[ -b $(nvme_disk) ]]'
}

nvme_verified() { verified "$(nvme_disk)" "$@"; }

# The load goes on over each reset, which disconnects and connects again: its
# requests are repeated. A busy host may delay two resets.
resets() {
	local n late=0
	for (( n = 0; n < resets + late; n++ )); do
		kill -0 $load
		in_time 1 nvme reset "$1" || (( ++late <= 2 ))
		nap 1
	done
}
nvme_resets() {
	local disk
	disk=$(nvme_disk)
	loaded "$disk" 3600 resets "${disk%n1}"
	load_ends
	nvme_verified --size=2M
}

# The device of the target is removed and made anew. The initiator tries each
# second to connect again.
target_anew() {
	rdma link delete "$dev2"
	sleep 1
	rdma link add "$dev2" type "$driver" netdev eth0
}
nvme_target_anew() {
	loaded "$(nvme_disk)" 15 on_peer target_anew
	wait $load
	sent 2 nvme_verified --size=2M
}

# The load fails. A busy host may delay two disconnections.
nvme_disconnect() {
	local late=0
	until loaded "$(nvme_disk)" 3600 in_time 1 nvme disconnect -n arx; do
		(( ++late <= 2 ))
		not wait $load
		nvme_connect -i 2 -P 1
	done
	not wait $load
}

# iSER

# lio_disk: a RAM disk of the target core
lio_disk() {
	local disk=$lio/core/rd_mcp_0/disk
	[[ ! -d $disk ]] || return 0
	modprobe target_core_mod
	mkdir -p $disk
	echo rd_pages=$((megabytes << 8)) >$disk/control
	echo 1 >$disk/enable
}

iser_export() {
	lio_disk
	modprobe -a iscsi_target_mod ib_isert
	mkdir -p $iscsi/lun/lun_0 $iscsi/np/$ip2:3260
	ln -s $lio/core/rd_mcp_0/disk $iscsi/lun/lun_0/disk
	echo 1 >$iscsi/np/$ip2:3260/iser
	echo 0 >$iscsi/attrib/authentication
	echo 0 >$iscsi/attrib/demo_mode_write_protect
	echo 1 >$iscsi/attrib/generate_node_acls
	echo 1 >$iscsi/enable
}

iser_unexport() {
	echo 0 >$iscsi/enable
	rm $iscsi/lun/lun_0/disk
	rmdir $iscsi/np/* $iscsi/lun/lun_0 $iscsi ${iscsi%/*} $lio/iscsi
	rmmod ib_isert iscsi_target_mod
}

# admin OPTION...: of the node, iscsiadm's word for a target
admin() { iscsiadm -m node -T iqn.2026-01.test:arx -p $ip2:3260 "$@"; }

# The SCSI disk, if there is one
scsi_disk() {
	local disk
	for disk in /sys/block/sd*; do [[ ! -e $disk ]] || echo "/dev/${disk##*/}"; done
}

no_scsi_disk() { [[ ! $(scsi_disk) ]]; }

iser_daemon() {
	modprobe -a ib_iser sd_mod
	mkdir -p /run/lock/iscsi
	echo InitiatorName=iqn.2026-01.test:h1 >/etc/iscsi/initiatorname.iscsi
	iscsid
	admin -o new -I iser >/dev/null
	admin -o update -n node.session.timeo.replacement_timeout -v 60
}

iser_login() {
	admin --login
	until_true 20 eval '[[ -b $(scsi_disk) ]]'
}

iser_logins() {
	local n
	for (( n = 0; n < $1; n++ )); do
		iser_login
		admin --logout >/dev/null
	done
}

# The initiator's device is removed and made anew; its daemon connects again.
anew() {
	rdma link delete "$dev1"
	sleep 1
	rdma link add "$dev1" type "$driver" netdev eth0
}
# How many requests ib_iser has failed since it was loaded because their
# connection was about to end: iser_conn_terminate() changes the state, and
# stops the queue of requests after that. A request in between ends with
# DID_ABORT, which the SCSI core does not repeat.
iser_raced() {
	dmesg | grep -c 'iser_task_init: Failed to init task .* -19$' || true
}

# The load may fail for that reason only, and then goes on with another device.
iser_anew() {
	local n raced
	for (( n = 0; n < 3; n++ )); do
		raced=$(iser_raced)
		loaded "$(scsi_disk)" 6 anew
		! wait $load || break
		(( $(iser_raced) > raced ))
	done
	(( n < 3 ))
	sent 2 scsi_verified --size=2M
}

scsi_verified() { verified "$(scsi_disk)" "$@"; }

# Requests whose memory is in pieces that no list of pages can describe: the
# block layer passes them on as they are.
scsi_pieces() {
	local disk
	disk=$(scsi_disk)
	[[ $(<"/sys/block/${disk##*/}/queue/virt_boundary_mask") == 0 ]]
	python3 - "$disk" <<-END
	import mmap, os, random, sys
	disk = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
	memory, copy = (memoryview(mmap.mmap(-1, 1 << 20)) for _ in range(2))
	for _ in range(40):
	    at = random.randrange(512) * 512
	    pieces = [memory[start + 512 * random.randrange(8):]
	                    [:512 * random.randrange(1, 9)]
	              for start in random.sample(range(0, 1 << 20, 8192), 20)]
	    for piece in pieces:
	        piece[:] = os.urandom(len(piece))
	    data = b"".join(pieces)
	    assert os.pwritev(disk, pieces, at) == len(data)
	    assert os.preadv(disk, [copy[:len(data)]], at) == len(data) and copy[:len(data)] == data, "written"
	    memory[:] = bytes(1 << 20)
	    assert os.preadv(disk, pieces, at) == len(data) and b"".join(pieces) == data, "read"
	    for piece in pieces:
	        piece[:] = bytes(len(piece))
	    assert memory == bytes(1 << 20), "memory beside the pieces"
	END
}

# tgt, a target in user space, whose pool of buffers would be 1 GiB
tgt_export() {
	head -c ${megabytes}M /dev/zero >/tmp/disk
	tgtd --iser pool_sz_mb=128 >/dev/null 2>&1
	sleep 1
	tgtadm --lld iser --mode target --op new --tid 1 -T iqn.2026-01.test:arx
	tgtadm --lld iser --mode logicalunit --op new --tid 1 --lun 1 \
		-b /tmp/disk
	tgtadm --lld iser --mode target --op bind --tid 1 -I ALL
	tgtadm --lld iser --mode target --op bind --tid 1 -Q iqn.2026-01.test:h1
}

# A session may last a little longer than its log-out. Until it ends, tgtd
# refuses to delete the target without --force, with which it can call a NULL
# function.
tgt_unexport() {
	local n
	for n in {1..100}; do
		! tgtadm --lld iser --mode target --op delete --tid 1 || break
		sleep 0.1
	done
	(( n < 100 ))
	tgtadm --op delete --mode system
}

# SRP

# gid N: the first GID of node N's device, without colons
gid() { tr -d : <"/sys/class/infiniband/$driver$1/ports/1/gids/0"; }

# srp_export INITIATOR: whose name is its port's
srp_export() {
	local wwn tpg acl
	wwn=0x$(gid 2)
	tpg=$lio/srpt/$wwn/$wwn
	acl=$tpg/acls/0x0000000000000000$1
	lio_disk
	modprobe ib_srpt
	mkdir -p $lio/srpt
	echo 5555 >$lio/srpt/discovery_auth/rdma_cm_port
	mkdir -p "$tpg/lun/lun_0"
	ln -s $lio/core/rd_mcp_0/disk "$tpg/lun/lun_0/disk"
	mkdir -p "$acl/lun_0"
	ln -s "$tpg/lun/lun_0" "$acl/lun_0/lun"
	echo 1 >"$tpg/enable"
}

srp_unexport() {
	local wwn
	wwn=0x$(gid 2)
	cd "$lio/srpt/$wwn/$wwn"
	echo 0 >enable
	rm acls/*/lun_0/lun
	rmdir acls/*/lun_0 acls/*
	rm lun/lun_0/disk
	rmdir lun/lun_0
	cd /
	rmdir "$lio/srpt/$wwn/$wwn" "$lio/srpt/$wwn" $lio/srpt
	rmmod ib_srpt
}

# Log in to the target.
srp_add() {
	local guid
	guid=$(peer cat /sys/module/ib_srpt/parameters/srpt_service_guid)
	guid=${guid#0x}
	until_true 10 no_scsi_disk
	echo "id_ext=$guid,ioc_guid=$guid,dest=$ip2:5555" >"/sys/class/infiniband_srp/srp-$dev1-1/add_target"
	until_true 20 eval '[[ -b $(scsi_disk) ]]'
}

srp_login() {
	local guid
	guid=$(gid 1)
	on_peer srp_export "${guid:16}"
	modprobe -a ib_srp sd_mod
	srp_add
}

# The QPs go after the disk. While they are there, the initiator refuses another
# log-in to the target.
srp_logout() {
	echo 1 >"$(echo /sys/class/srp_remote_ports/port-*/delete)"
	until_true 20 no_scsi_disk
	until_true 20 eval '[[ $(rdma resource show qp) != *ib_srp* ]]'
}

srp_logins() {
	local n
	for (( n = 0; n < $1; n++ )); do
		srp_logout
		srp_add
	done
}

# The device of the initiator is removed under load, and its disk with it.
srp_removed() {
	loaded "$(scsi_disk)" 60 rdma link delete "$dev1"
	not wait $load
	until_true 10 no_scsi_disk
}

# The initiator logs in again with a new device.
srp_anew() {
	rdma link add "$dev1" type "$driver" netdev eth0
	srp_add
	sent 2 scsi_verified --size=2M
	srp_logout
}

# nvme_cases NAME [PARAMETER...]: of the target's module
nvme_cases() {
	check "$1-export" 30 on_peer nvme_export "${@:2}"
	check "$1-connect" 30 nvme_connect -i 2 -P 1
	# The sample: interrupts on 6.12, polls on the newest
	if brief || full; then check "$1-verify" 60 sent $megabytes nvme_verified; fi
	brief || check "$1-poll" 60 sent $megabytes nvme_verified --hipri
	brief || check "$1-resets" 60 nvme_resets
	! full || check "$1-target-anew" 60 nvme_target_anew
	check "$1-disconnect" 60 nvme_disconnect
	check "$1-unexport" 30 on_peer nvme_unexport
}

# iser_cases NAME EXPORT UNEXPORT
iser_cases() {
	check "$1-export" 30 on_peer "$2"
	! full || check "$1-logins" 90 iser_logins 30
	check "$1-login" 30 iser_login
	check "$1-verify" 60 sent $megabytes scsi_verified
	check "$1-pieces" 60 scsi_pieces
	brief || check "$1-anew" 60 iser_anew
	check "$1-logout" 30 admin --logout
	check "$1-unexport" 30 on_peer "$3"
}

check join 60 join
nvme_cases nvme use_srq=1
! full || nvme_cases nvme-rq use_srq=0
check iser-daemon 30 iser_daemon
iser_cases iser iser_export iser_unexport
! full || iser_cases tgt tgt_export tgt_unexport
check srp-login 60 srp_login
check srp-verify 60 sent $megabytes scsi_verified
check srp-pieces 60 scsi_pieces
! full || check srp-logins 90 srp_logins 30
check srp-removed 60 srp_removed
brief || check srp-anew 60 srp_anew
check srp-unexport 30 on_peer srp_unexport
check part 30 part
