#!/bin/bash
# The nodes come up, and one application of each kind carries data between them.
# kernels: 6.12 newest uml
# timeout: 300

source "$(dirname "$0")/lib.sh"

link_is_active() {
	h1 rdma link show "$dev1/1" | grep 'state ACTIVE'
	h1 ibv_devinfo -d "$dev1" | grep PORT_ACTIVE
}

# What one node sends, the other one receives, to the byte.
all_arrives() {
	local from=$1 to=$2
	until_true 10 eval '(( $(counter $driver$from sent_pkts h$from) ==
		$(counter $driver$to rcvd_pkts h$to) ))'
	echo "from h$from: $(counter $driver$from sent_bytes h$from) bytes, arrived: $(counter $driver$to rcvd_bytes h$to)"
	(( $(counter $driver$from sent_bytes h$from) ==
		$(counter $driver$to rcvd_bytes h$to) ))
}
counted() {
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"$1: op=read,write,send,write_imm size=1,1025,4097,65537 count=4 both=1"
	all_arrives 1 2
	all_arrives 2 1
}
# capture 0|1: 1: packets leave one by one
capture() {
	h1 sh -c "echo $1 >/sys/class/infiniband/$dev1/capture"
	h2 sh -c "echo $1 >/sys/class/infiniband/$dev2/capture"
}

hosts
check link 60 link_is_active
check rc_pingpong 90 pair 18515 "ibv_rc_pingpong -d $dev1 -g 1 -n 100" \
	"ibv_rc_pingpong -d $dev2 -g 1 -n 100 $ip1"
check rping 90 pair cm "rping -s -a $ip1 -C 10 -v" "rping -c -a $ip1 -C 10 -v"
# -F: on a busy host perftest may not agree with the CPU's clock; without -F its
# report then fails.
check write_bw 90 pair 18515 "ib_write_bw -F -d $dev1 -n 100" \
	"ib_write_bw -F -d $dev2 -n 100 $ip1"
check counted 60 counted together
check capture 10 capture 1
check counted-alone 60 counted alone
check down 20 arx-hosts down
