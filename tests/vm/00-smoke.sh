#!/bin/bash
# The nodes come up, and one application of each kind carries data between them.
# kernels: 6.12 newest uml
# timeout: 300

source "$(dirname "$0")/lib.sh"

link_is_active() {
	h1 rdma link show "$dev1/1" | grep 'state ACTIVE'
	h1 ibv_devinfo -d "$dev1" | grep PORT_ACTIVE
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
check down 20 arx-hosts down
