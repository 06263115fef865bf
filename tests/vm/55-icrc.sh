#!/bin/bash
# Every packet that leaves for someone else carries a right ICRC, whichever way it leaves: wire/icrc has the ways. (The newest kernel's
# sample has all of them, the others' those that differ in how packets are parted.)
# kernels: 6.12 newest uml
# timeout: 500

source "$(dirname "$0")/lib.sh"

modprobe -a ib_uverbs "$driver" tun
rdma system set netns exclusive
places=()
! brief || places=(on_vlan on_bridge flooded_to_vlan shaped forwarded)
"$(dirname "$0")/wire/icrc" "${places[@]}" || (( ++failures ))
