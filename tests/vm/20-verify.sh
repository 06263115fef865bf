#!/bin/bash
# Every byte that verbs move arrives where it must, once and in order, between
# two nodes and within one; every failure has the right status. See
# verify/verify.h.
# kernels: 6.12 newest uml
# timeout: 700

source "$(dirname "$0")/lib.sh"

# fails NAME A B: all failures, and the status of each completion in
# $scratch/NAME
fails() {
	verify -v -f 4 -a "h$2:$driver$2" -b "h$3:$driver$3" "$1: fail=all" \
		>"$scratch/$1.all" || (( ++failures ))
	# Timing decides which request meets a region that is deregistered.
	grep '^# outcome' "$scratch/$1.all" |
		grep -vE '^# outcome ((de|re)reg_busy|rereg_all) ' |
			sort >"$scratch/$1"
	grep -v '^# outcome' "$scratch/$1.all"
}

# An application must not notice whether its peer is on the same node.
same_outcomes() {
	(( $(wc -l <"$scratch/fails") > 60 ))
	diff "$scratch/fails" "$scratch/fails-host"
}

# finds CASE WORDS: verify must find a fault that the case makes on purpose, and
# name it; otherwise no other case proves anything.
finds() {
	if verify -f 4 -a "h1:$dev1" -b "h2:$dev2" "spoil: size=100 $1" \
		>"$scratch/spoilt"; then
		echo "this was not found: $1"
		return 1
	fi
	cat "$scratch/spoilt"
	grep -q "^not ok spoil: .*$2" "$scratch/spoilt"
}

# sizes around those that change the form of a message at path MTU $1
around() {
	echo "$(($1 - 1)),$1,$(($1 + 1)),$((2 * $1)),$((5 * $1 + 3))"
}

# flows NAME: op by op, then all other keys; $mtus, $sizes and $count bound the
# number of cases
flows() {
	local mtu
	cases=("$1-rc: op=send,send_imm,write,write_imm,read size=$sizes count=$count"
		"$1-uc: qp=uc op=send,send_imm,write,write_imm size=$sizes count=$count"
		"$1-ud: qp=ud op=send,send_imm size=0,1,2,3,1023,1024 rsge=1,3 count=$count"
		"$1-atomics: op=cas,faa count=$((4 * count)) both=0,1"
		"$1-atomics-on-one-word: op=faa qps=8 count=$((4 * count)) both=1"
		"$1-mix: op=mix size=30000 vary=1 both=0,1 qps=1,8 count=$((4 * count))"
		"$1-gids: gid=v6,ll op=send,mix size=10000 count=$count"
		"$1-gids-ud: gid=v6,ll qp=ud op=send_imm size=1000 count=$count"
		"$1-sge: op=send,write,read sge=2,32 rsge=1,32 size=31,3000,40000 count=$count"
		"$1-inline: op=send,write,mix inline=64 size=1,64 sge=1,3 count=$count"
		"$1-lists: op=send,mix list=16 signal=1,16 count=$((4 * count))"
		"$1-lists-alike: op=write,write_imm,read,faa list=16 size=8 qps=1,4 both=1 count=$((4 * count))"
		"$1-lists-of-all-sizes: op=write,send_imm,mix list=16 vary=1 size=300,9000 both=1 count=$((4 * count))"
		"$1-lists-uc-ud: qp=uc,ud op=send_imm list=16 vary=1 size=0,1000 count=$((4 * count))"
		"$1-srq: srq=1 op=send_imm,write_imm,mix vary=1 size=5000 qps=1,8 both=1 count=$count"
		"$1-srq-ud: srq=1 qp=ud op=send_imm size=1000 qps=4 both=1 count=$count"
		"$1-events: events=1 op=send,write,mix both=0,1 count=$count"
		"$1-events-uc-ud: qp=uc,ud events=1 op=send size=1000 both=1 count=$count"
		"$1-receiver-not-ready: rnr=1 op=send,send_imm size=3000 slow=100 qps=1,4 count=$count"
		"$1-window-of-one: window=1 op=send,write,read,faa count=$count"
		"$1-one-fetch-at-a-time: rd_atomic=1 op=read,faa,mix size=20000 count=$count"
		"$1-psn-wraps: psn=0xfffff0 op=send,read,mix size=9000 both=1 count=$count"
		"$1-long: op=send,write,read size=1M,4000003 window=2 count=6")
	for mtu in $mtus; do
		cases+=("$1-mtu-$mtu: mtu=$mtu op=send,write,read size=$(around "$mtu") count=$count"
			"$1-mtu-$mtu-uc: mtu=$mtu qp=uc op=send_imm,write size=$(around "$mtu") count=$count")
	done
}

if full; then
	mtus="256 512 1024 2048 4096"
	sizes=0,1,2,3,4,5,7,8,63,64,65,255,256,257,1023,1024,1025
	sizes+=,4095,4096,4097,65535,65536,65537,1M
	count=200
else
	mtus="256 4096"
	sizes=0,1,3,4096,65537
	count=40
fi

hosts --mtu 9000
while IFS=: read -r spoil words; do
	check "finds-${spoil//[ =]/-}" 60 finds "$spoil" "$words"
done <<-END
	op=send spoil=1:message .* wrong from byte
	op=write spoil=2:WRITE .* wrong from byte
	op=read spoil=1:READ .* wrong from byte
	op=write_imm spoil=3:byte -1 of a region .* was written to
	op=send spoil=4:a \(message\|completion\) after the last
END
flows hosts
verify_on 1 2 "${cases[@]}"
flows host
verify_on 1 1 "${cases[@]}"
insmod "/arx/build/$(uname -r)/arx_exporter.ko"
fails fails 1 2
fails fails-host 1 1
rmmod arx_exporter
check one-host-fails-as-two 10 same_outcomes
if full && debug_kernel; then
	skip longest \
		'messages of 2 GiB take more memory than the debug kernel has'
elif full; then
	verify_on 1 2 'hosts-longest: op=send,write,read size=1G window=1 count=1 limit=120'
	verify_on 1 1 \
		'host-longest: op=write size=2G window=1 count=1 limit=120'
fi
# The default MTU of nodes, for which the path MTU is 1024
hosts
verify_on 1 2 "hosts-small-mtu: op=send,write,read,mix size=$(around 1024) count=$count"
