#!/bin/bash
# A kernel that takes signed modules only, as under Secure Boot: arx, which
# nobody signed, is refused, and each tool says why.
# kernels: newest 6.12
# left: newest 6.12
# append: module.sig_enforce=1
# timeout: 60

source "$(dirname "$0")/lib.sh"

tools=/arx/userspace/tools

# A module of Debian's is signed and loads.
enforced() {
	[[ $(</sys/module/module/parameters/sig_enforce) == Y ]]
	modprobe dummy
}

# refused WORDS COMMAND...: and nothing is loaded
refused() { refuses "$@" && [[ ! -e /sys/module/arx ]]; }

doctor() {
	refused 'takes signed modules only, and arx is not signed' \
		$tools/arx-doctor
}

link() {
	ip link add dummy0 type dummy
	refused 'the module arx does not load: see arx-doctor' \
		$tools/arx-link add dummy0
}

check enforced 20 enforced
check refused 20 refused 'Key was rejected by service' modprobe arx
check doctor 20 doctor
check link 20 link
