#!/bin/bash
# Documentation/first.c does what the documentation says, and reports a device
# that does not exist.
# kernels: 6.12 newest uml
# timeout: 120

source "$(dirname "$0")/lib.sh"

says_hello() {
	[[ $(h1 first "$dev1" |
		tee /dev/stderr) == 'success: "hello, remote memory"' ]]
}

refuses() {
	not h1 first nosuch
}

hosts
check first 20 says_hello
check no-such-device 20 refuses
