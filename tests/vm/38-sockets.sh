#!/bin/bash
# Sockets whose data the kernel moves by RDMA, between two machines: SMC-Rv2 and
# RDS. They go on with a device that is made anew.
# kernels: 6.12 newest
# machines: 2
# timeout: 300

source "$(dirname "$0")/lib.sh"

sockets=$(dirname "$0")/consumers/sockets.py
shared+=(sockets)

load() { modprobe -a "$@"; }
both() {
	"$@"
	on_peer "$@"
}

eid() { python3 "$sockets" eid ARX.TEST; }

# until_true needs a descriptor that the second machine does not have.
serve() {
	python3 "$sockets" "$1" server $ip2 >"/tmp/$1" 2>&1 &
	until finds ready "/tmp/$1"; do
		kill -0 $! || return
		sleep 0.1
	done
}

talk() { python3 "$sockets" "$1" client $ip2 $ip1; }

# anew N: the device of node N is removed and made again
anew() {
	rdma link delete "$driver$1"
	rdma link add "$driver$1" type "$driver" netdev eth0
}

# data KIND: SMC falls back to TCP as long as the other machine does not know
# that a connection is lost, which it learns when it sends. There is time for
# three clients, each of which waits for 30 s.
data() { until_true 90 sent 1 talk "$1"; }

# cases KIND MODULE NODE...: whose devices are made anew
cases() {
	local kind=$1 node
	check "$kind-load" 30 both load "$2"
	[[ $kind != smc ]] || check smc-eid 30 both eid
	check "$kind-serve" 30 on_peer serve "$kind"
	check "$kind-data" 60 sent 1 talk "$kind"
	for node in "${@:3}"; do
		if (( node == 1 )); then anew 1; else on_peer anew 2; fi
		check "$kind-anew-$node" 120 data "$kind"
	done
	peer cat "/tmp/$kind"
}

check join 60 join
if ! modinfo smc >/dev/null 2>&1; then
	skip smc "this kernel has no SMC"
elif full; then
	cases smc smc 1 2
else
	cases smc smc 1
fi
if full; then
	cases rds rds_rdma 1 2
elif brief; then
	cases rds rds_rdma
else
	cases rds rds_rdma 2
fi
check part 30 part
