#!/bin/bash
# Congestion control by programs of BPF: the example of the documentation, a
# program that sets a rate, programs that come, change and go under traffic,
# programs that ask for nonsense, and programs that the kernel must refuse.
#
# Netem loses packets of h1, which is the sign of congestion that control begins
# with. The debug kernel has no JIT compiler for BPF: tests/kunit/cc_kunit.c.
# kernels: 6.12 newest
# left: 6.12
# timeout: 600

source "$(dirname "$0")/lib.sh"

programs=/arx/build/tests
register=/arx/Documentation/bpf/register
link=/sys/fs/bpf/arx_cc

[[ $driver == arx ]] || { skip bpf "arx alone runs programs"; exit; }
[[ -e $programs/aimd.bpf.o ]] || { skip bpf "no compiler for BPF"; exit; }

# control NAME: of QPs that connect from now on
control() {
	local n
	for n in 1 2; do
		"h$n" bash -c "echo $1 >/sys/class/infiniband/$driver$n/cc" ||
			return
	done
}

load() { "$register" "$programs/$1.bpf.o"; }
unload() { rm "$link"; }

# found PROGRAM VARIABLE: value of a global variable of the program
found() {
	local map
	map=$(bpftool -j map dump name "$1.bss")
	[[ $map =~ \"$2\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# above PROGRAM VARIABLE N: the variable's value is more than N
above() { (( $(found "$1" "$2") > $3 )); }

# WRITEs from h1 to h2, until the end of the case
traffic() {
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" 'traffic: op=write size=64K list=4 count=1000000 seconds=600' &
	until_true 20 verify_under_way
}

# Print the bytes that h1 sends in a second.
speed() {
	local bytes start=${EPOCHREALTIME/./}
	bytes=$(counter "$dev1" sent_bytes h1)
	nap 1.5
	bytes=$(($(counter "$dev1" sent_bytes h1) - bytes))
	echo $((bytes * 1000000 / (${EPOCHREALTIME/./} - start)))
}

# faster N, slower N: h1 sends more, or less, than N bytes in a second
faster() {
	local speed
	speed=$(speed)
	echo "$speed bytes a second, more than $1?"
	(( speed > $1 ))
}
slower() {
	local speed
	speed=$(speed)
	echo "$speed bytes a second, less than $1?"
	(( speed < $1 ))
}

# Without a program QPs behave as with the fixed window.
no_program() {
	control bpf
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"none: op=write,read size=64K count=50 both=1"
}

# The example of the documentation: the program's window opens and closes.
example() {
	load aimd
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"aimd: op=write,read,send size=64K count=100 both=1 limit=30"
	refuses 'in use' rmmod arx
	unload
}

# QPs in full flow get a program, another program, and none: 2 and 0.25 million
# bytes a second, and all that the link carries.
under_traffic() {
	traffic
	load other
	until_true 30 above other acks 100
	above other inits 0
	until_true 30 slower 2400000
	load rate
	until_true 30 above rate acks 100
	above rate inits 0
	until_true 30 above rate losses 0
	until_true 30 slower 300000
	(( $(found rate wrong) == 0 ))
	unload
	until_true 30 faster 600000
}

# Programs replace each other, and come and go, while QPs call them.
churn() {
	traffic
	/arx/tests/vm/bpf/churn 100 "$programs"/{other,nonsense,aimd}.bpf.o
	until_true 30 faster 600000
}

# Windows and rates that cannot be slow down the QPs of the program only, and
# the QPs are as fast as others when the program is gone.
nonsense() {
	load nonsense
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "nonsense: op=write,read,send size=8K count=10 limit=60"
	traffic
	until_true 30 above nonsense acks 100
	control fixed
	verify -f 4 -a "h1:$dev1" -b "h2:$dev2" \
		"beside: op=write,read size=64K count=200 limit=30"
	control bpf
	(( $(found nonsense outside) == 0 ))
	unload
	until_true 30 faster 600000
}

# The verifier refuses programs that write where they must not, or that sleep.
refused() {
	refuses 'is read-only at offset' load readonly
	refuses 'is read-only at offset' load elsewhere
	refuses 'unsupported member' load sleeps
	not test -e "$link"
}

# There is one program, which holds the module as long as it is registered.
module() {
	load rate
	refuses busy "$register" "$programs/other.bpf.o" /sys/fs/bpf/second
	arx-hosts down
	refuses 'in use' rmmod arx
	unload
	until_true 20 rmmod arx
}

# A module that was made without BTF
no_btf() {
	objcopy -R .BTF -R .BTF.base "/arx/build/$(uname -r)/arx.ko" \
		"$scratch/arx.ko"
	insmod "$scratch/arx.ko"
	dmesg | finds 'arx: no congestion control by BPF'
	hosts --mtu 4200
	refuses 'not supported' control bpf
	control delay
	not load rate
	arx-hosts down
	rmmod arx
}

hosts --mtu 4200
modprobe sch_netem
h1 tc qdisc add dev eth0 root netem loss 1%
check no-program 60 no_program
check example 90 example
check under-traffic 150 under_traffic
check churn 120 churn
check nonsense 150 nonsense
check refused 60 refused
check module 60 module
check no-btf 60 no_btf
