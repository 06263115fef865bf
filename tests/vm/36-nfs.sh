#!/bin/bash
# NFS over RDMA from node to node, the kernel's server on h1 and its client on
# h2, versions 3 and 4.2: a tree is copied and compared, and fio verifies a file
# while the link flaps, packets are lost, and devices are removed and made anew.
#
# The client of version 3 must not lose the neighbour entry of the server while
# the link flaps. If an entry without a MAC address ends, the RDMA core reports
# RDMA_CM_EVENT_UNREACHABLE to all connections to that address
# (cma_netevent_callback()), also to those that work. The client's transport
# (net/sunrpc/xprtrdma) then makes no more regions (rpcrdma_mrs_refresh()), and
# does not connect anew. The next request that needs a region waits, and all
# later requests wait behind it, until the client ends a connection that was
# idle for five minutes. Version 4 connects anew earlier, because its lease
# ends. So the link of version 3 flaps at the server's end only, and the client
# keeps the server's MAC address.
#
# A request may fail with EINVAL when the client's device is removed, also one
# of a hard mount. The transport hears of the removal before the RDMA core's
# connection manager does, and begins to connect anew at once. If the manager
# removes the device between two steps of that, the next step returns EINVAL
# (rdma_resolve_route()), which call_connect_status() of sunrpc does not repeat.
# No driver takes part in that: the case repeats its load if the kernel traced
# such a status.
# kernels: 6.12 newest
# timeout: 500
# The kernel's server keeps the namespace of h1 for a while after it has ended,
# which would disturb other scripts: the script has a machine for itself.
# append: nfs.nfs4_disable_idmapping=1

source "$(dirname "$0")/lib.sh"

mount=/mnt/nfs
export=/srv/nfs
tree=/usr/lib/python3/dist-packages/pyverbs
full && seconds=40 || seconds=6

# A network namespace without a mount namespace of its own, unlike ip netns exec
server() { nsenter --net=/run/netns/h1 "$@"; }
client() { nsenter --net=/run/netns/h2 "$@"; }

# The root of the machine cannot be exported: the directory is the root of
# version 4. Without a record of earlier clients, the server refuses to open
# files for the shortest grace period, 10 s.
serve() {
	until_true 10 server rpcinfo -p
	modprobe -a nfsd rpcrdma
	mkdir -p $export $mount
	mount -t tmpfs -o size=256M tmpfs $export
	server mount -t nfsd nfsd /proc/fs/nfsd
	echo "$export *(rw,no_root_squash,fsid=0,async,no_subtree_check,insecure)" >/etc/exports
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	server exportfs -ra
	server rpc.nfsd --rdma=20049 --no-udp 4
	finds 'rdma 20049' /proc/fs/nfsd/portlist
}

# mounted 3|4.2. From 6.15 on a hard mount in a network namespace ends with
# ENETUNREACH while there is no device, unless an option says otherwise.
mounted() {
	local options=vers=$1,proto=rdma,port=20049,hard from=/
	[[ $1 != 3 ]] ||
		{
			options+=,nolock,mountproto=tcp,mountport=20048
			from=$export
		}
	[[ $ARX_KERNEL == 6.12* ]] || options+=,fatal_neterrors=none
	client mount -t nfs -o $options "$ip1:$from" $mount
	finds " $mount .*,vers=$1,.*,proto=rdma," /proc/mounts
}

copied() {
	cp -r $tree $mount/tree
	diff -r $tree $export/tree
	diff -r $tree $mount/tree
	rm -r $mount/tree
	[[ ! -e $export/tree ]]
}

# verified SECONDS: fio writes at random and verifies what it wrote, by large
# requests, which the server reads and writes by RDMA, and by short ones.
verified() {
	fio --directory=$mount --output=/dev/null --verify=crc32c \
		--verify_fatal=1 \
		--verify_backlog=32 --direct=1 --ioengine=libaio --size=4M \
		--rw=randwrite \
		--time_based --runtime="$1" --name=long --bs=256k --iodepth=4 \
		--name=short --bs=4k --iodepth=8
}

# during COMMAND...: fio, and meanwhile COMMAND
during() {
	local pid
	verified $seconds &
	pid=$!
	nap 2
	"$@" || return
	wait $pid
}

# again COMMAND...: meanwhile a QP goes back to its last acknowledged packet
again() {
	local before
	before=$(rewinds)
	"$@"
	echo "went back $(($(rewinds) - before)) times"
	(( $(rewinds) > before ))
}
rewinds() {
	local one two
	one=$(counter "$dev1" requester_rewinds h1)
	two=$(counter "$dev2" requester_rewinds h2)
	echo $((one + two))
}

# flaps N...: at the end of node N. A link whose other end is down has no
# carrier and keeps its permanent neighbours.
flaps() {
	local n end=$((SECONDS + seconds - 3)) mac
	read -r _ _ mac _ < <(ip -n h1 -br link show eth0)
	ip -n h2 neigh replace $ip1 dev eth0 nud permanent lladdr "$mac"
	while (( SECONDS < end )); do
		for n; do
			ip -n h$n link set eth0 down
			nap 0.2
			ip -n h$n link set eth0 up
			nap 0.5
		done
	done
	ip -n h2 neigh flush dev eth0 nud permanent
}

loses() {
	local n
	for n in 1 2; do
		tc -n h$n qdisc replace dev eth0 root netem loss 5%
	done
	nap $((seconds - 3))
	for n in 1 2; do tc -n h$n qdisc delete dev eth0 root; done
}

# anew N: the device of node N is removed and made again
anew() {
	h"$1" rdma link delete "$driver$1"
	nap 1
	h"$1" rdma link add "$driver$1" type "$driver" netdev eth0
}
# While COMMAND runs, record requests that got EINVAL when they connected.
refusals=/sys/kernel/tracing/instances/refusals
record() {
	local event=$refusals/events/sunrpc/rpc_connect_status status=0
	mkdir $refusals
	echo 'status == -22' >$event/filter
	echo 1 >$event/enable
	"$@" || status=$?
	grep -v '^#' $refusals/trace >"$scratch/refused" || true
	rmdir $refusals
	return $status
}

# goes_on N: the requests that were under way are done, and later ones, over the
# new device
goes_on() {
	local tries=0
	until record during anew "$1"; do
		cat "$scratch/refused"
		[[ -s $scratch/refused ]] && (( ++tries < 3 )) || return 1
		echo "again: a request got EINVAL from the core's connection manager"
	done
	by_packets 20 verified 1
}

# disturbed VERSION KIND...
disturbed() {
	local version=$1 kind
	for kind in "${@:2}"; do
		case $kind in
		flap) check "flap-$version" 90 again during flaps \
			${ends[$version]};;
		loss) check "loss-$version" 90 again during loses;;
		client-anew) check "client-anew-$version" 90 goes_on 2;;
		server-anew) check "server-anew-$version" 90 goes_on 1;;
		esac
	done
}

unserve() {
	server rpc.nfsd 0
	kill $mountd $rpcbind
	umount /proc/fs/nfsd $export
	arx-hosts down
	rmmod "$driver"
}

# the ends at which the link flaps
declare -A disturbances ends=([3]=1 [4.2]='1 2')
if full; then
	disturbances[3]='flap loss client-anew server-anew'
	disturbances[4.2]=${disturbances[3]}
elif brief; then
	disturbances=([3]=client-anew [4.2]=flap)
else
	disturbances=([3]=loss [4.2]=server-anew)
fi
hosts --mtu 9000
server rpcbind -f >/dev/null 2>&1 &
rpcbind=$!
check serve 60 serve
server rpc.mountd -F -p 20048 >/dev/null 2>&1 &
mountd=$!
for version in 3 4.2; do
	check mount-$version 60 mounted $version
	check tree-$version 90 by_packets 500 copied
	disturbed $version ${disturbances[$version]}
	check umount-$version 30 umount $mount
done
check unserve 60 unserve
