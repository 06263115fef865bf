#!/bin/bash
# Every packet that leaves the machine has a right ICRC, on each path; wire/icrc
# has the paths. (The newest kernel's sample has all of them, that of other
# kernels those that segment packets in different ways.)
# kernels: 6.12 newest uml
# timeout: 500

source "$(dirname "$0")/lib.sh"

modprobe -a ib_uverbs "$driver" tun
rdma system set netns exclusive
places=()
! brief || places=(on_vlan on_bridge flooded_to_vlan shaped forwarded)
"$(dirname "$0")/wire/icrc" "${places[@]}" || (( ++failures ))
