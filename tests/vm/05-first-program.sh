#!/bin/bash
# What the documentation shows first does what it says: Documentation/first.c, and a refusal for a device that is not there.
# kernels: 6.12 newest uml
# timeout: 120

source "$(dirname "$0")/lib.sh"

says_hello() {
	[[ $(h1 first "$dev1" | tee /dev/stderr) == 'success: "hello, remote memory"' ]]
}

refuses() {
	not h1 first nosuch
}

hosts
check first 20 says_hello
check no-such-device 20 refuses
