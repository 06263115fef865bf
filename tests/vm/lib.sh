# shellcheck shell=bash
# Sourced by tests/vm/NN-name.sh, which run in a machine. The head of a script
# names its kernels and its time limit in seconds on a quiet host:
#
#   # kernels: 6.12 newest uml
#   # left: 6.12		kernels on which only make test-full runs it
#   # machines: 2		it needs a second machine (tools/vm --peer)
#   # timeout: 300
#   # append: ipv6.disable=1	for the kernel's command line: the script
#				has a machine for itself
#   # qemu: trixie	Debian trixie's QEMU (tools/vm --qemu); likewise
#
# A script prints a line for each case: `ok NAME`, `not ok NAME: why`, `skip
# NAME: reason`.

set -uo pipefail

driver=${ARX_DRIVER:-arx}
dev1=${driver}1 dev2=${driver}2		# the devices of the nodes h1 and h2
ip1=192.0.2.1 ip2=192.0.2.2
ip61=fd00::1 ip62=fd00::2
scratch=$(mktemp -d)
failures=0
trap 'rm -rf "$scratch"; exit $((failures > 0))' EXIT

# nap SECONDS: sleep without a process, which is expensive on a software CPU
exec {silence}<> <(:)
nap() { read -rt "$1" -u "$silence" || true; }

h1() { ip netns exec h1 "$@"; }
h2() { ip netns exec h2 "$@"; }

# All limits of time for cases and scripts, in `check` and in `# timeout:`, are
# what a quiet host needs at most. They only say that something hangs, and a
# busy host is three times as slow. (tools/test and run-tests read this line.)
slack=3

# The long matrices are for `make test-full`.
full() { [[ ${ARX_FULL-} ]]; }

# On the debug kernel all programs share one CPU, and everything takes several
# times as long: a smaller sample that sleeps, and longer timeouts.
debug_kernel() { [[ ${ARX_KERNEL-} == uml ]]; }

# Kernels other than the newest do not repeat all of the newest kernel's sample.
brief() { ! full && [[ ${ARX_KERNEL-} != newest ]]; }

# hosts [OPTIONS]: make both nodes anew; see tools/guest/arx-hosts.
hosts() {
	arx-hosts down && arx-hosts up --driver "$driver" "$@" ||
		{ echo "not ok hosts: arx-hosts up $* failed"; exit 1; }
}

# Make two nodes without addresses and devices, joined by a veth pair.
bare_nodes() {
	local n
	for n in 1 2; do ip netns add h$n; done
	ip link add eth0 mtu 9000 netns h1 type veth peer name eth0 mtu 9000 \
		netns h2
}

skip() { echo "skip $1: $2"; }

# gid_index h1|h2 PATTERN: of the first RoCEv2 GID of the node that matches
gid_index() {
	"$1" ibv_devinfo -v -d "$driver${1#h}" |
		sed -nE "s/.*GID\[ *([0-9]+)\]:[[:space:]]*($2).*v2/\1/p" |
			head -n 1
}

# counter DEVICE NAME [NODE]
counter() {
	[[ $(${3:+ip netns exec "$3"} rdma statistic show link \
		"$1") =~ \ $2\ ([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# by_packets MIN COMMAND...: COMMAND must succeed, and each of the two devices
# must send at least MIN packets to the other node while COMMAND runs.
by_packets() {
	local min=$1 one two
	shift
	one=$(counter "$dev1" sent_pkts h1) two=$(counter "$dev2" sent_pkts h2)
	"$@"
	one=$(($(counter "$dev1" sent_pkts h1) - one))
	two=$(($(counter "$dev2" sent_pkts h2) - two))
	echo "packets sent: $one, $two"
	(( one >= min && two >= min ))
}

# check NAME SECONDS COMMAND...: one case. COMMAND may be a function; it runs in
# a process group of its own, under set -e, and all processes that it started
# are killed afterwards. (check's locals hide a script's variables of these
# names from COMMAND.)
check() {
	local name=$1 limit=$2 log pid end status='' start=${EPOCHREALTIME/./} \
		took
	shift 2
	limit=$((limit * slack))
	! full || limit=$((limit * 5))
	log=$scratch/${name//[^A-Za-z0-9._-]/_}.log
	exec {end}<> <(:)
	set -m
	# An exit inside eval leaves check()'s locals first: use the value of
	# $end now.
	(trap "echo \$? >&$end" EXIT; set -e; "$@") >"$log" 2>&1 </dev/null &
	pid=$!
	set +m
	read -rt "$limit" -u "$end" status ||
		{ kill -TERM -- -$pid; nap 0.5; } 2>/dev/null
	kill -KILL -- -$pid 2>/dev/null
	wait $pid 2>/dev/null
	exec {end}>&-
	if [[ ! $status ]]; then
		fail "$name" "no end after $limit s" "$log"
	elif (( status )); then
		fail "$name" "status $status" "$log"
	else
		# in tenths
		took=$(( (${EPOCHREALTIME/./} - start) / 100000 ))
		echo "ok $name ($((took / 10)).$((took % 10)) s)"
	fi
}

# fail NAME WHY [LOG]
fail() {
	local last=''
	(( ++failures ))
	[[ ! -s ${3-} ]] ||
		last=$(grep -v '^[[:space:]]*$' "$3" | tail -n 1 | cut -c 1-160)
	echo "not ok $1: $2${last:+: $last}"
	[[ ! -s ${3-} ]] || tail -n 60 "$3" | sed 's/^/#   /'
}

# verify_on A B CASE...: the cases of `verify` between the devices of hA and hB
verify_on() {
	local a=$1 b=$2
	shift 2
	verify -f 4 -a "h$a:$driver$a" -b "h$b:$driver$b" "$@" ||
		(( ++failures ))
}

# not COMMAND...: it must fail. (`! COMMAND` does not end a function under set
# -e when COMMAND succeeds.)
not() { ! "$@"; }

# refuses WORDS COMMAND...: it must fail and say so
refuses() {
	local words=$1 said
	shift
	said=$("$@" 2>&1) && { echo "did not fail: $*"; return 1; }
	[[ $said == *"$words"* ]] || { echo "said: $said"; return 1; }
}

# True if there is such a line. Unlike grep -q it reads all lines, so the writer
# is not ended by SIGPIPE, which would count as its failure.
finds() { grep "$@" >/dev/null; }

# until_true SECONDS COMMAND...
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		(( SECONDS < end )) || { echo "never came true: $*"; return 1; }
		nap 0.1
	done
}

# True if all QPs of verify are connected. A program that is refused for lack of
# memory, such as for a route, has no traffic. Both sides make all their QPs
# before they connect the first.
verify_under_way() {
	local qps
	qps=$({ h1 rdma resource show qp; h2 rdma resource show qp; } |
		grep 'comm verify')
	finds 'state RTS' <<<"$qps" &&
		! finds -E 'state (RESET|INIT|RTR)' <<<"$qps"
}

# captured TCPDUMP FILE ADDRESS: end a capture of RoCE and ICMP once it has all
# packets until now, as a ping from h1 behind them shows. Only the RoCE packets
# stay in the file.
captured() {
	local status=0
	h1 ping -q -c 1 "$3" && until_true 20 has_ping "$2" || status=1
	kill "$1"
	wait "$1" || true
	tcpdump -r "$2" -w "$2.roce" udp port 4791 && mv "$2.roce" "$2" ||
		status=1
	return $status
}
# has_ping FILE [FILTER]: tcpdump has written the request of a ping.
has_ping() {
	tcpdump -n -r "$1" "${2-}icmp[icmptype] == icmp-echo" 2>/dev/null |
		finds .
}

# listening h1|h2 PORT|cm: true if a program listens, on a TCP port or by
# rdma_cm
listening() {
	if [[ $2 == cm ]]; then
		[[ $(ip netns exec "$1" rdma resource show \
			cm_id) == *'state LISTEN'* ]]
	else
		[[ $(ip netns exec "$1" ss -Hltn "sport = :$2") ]]
	fi
}

# pair PORT|cm SERVER CLIENT: a line for bash on h1 and, when it listens, one on
# h2; both must succeed.
pair() {
	local server
	h1 bash -c "$2" &
	server=$!
	until_true 20 listening h1 "$1"
	h2 bash -c "$3"
	wait $server
}

# With a second machine (tools/vm --peer):

# node N: this machine is node N. Its card is eth0, its device arxN.
node() {
	modprobe -a virtio_net "$driver"
	ip link set eth0 mtu 9000 up
	ip address add 192.0.2."$1"/24 dev eth0
	rdma link add "$driver$1" type "$driver" netdev eth0
}

# The variables that the second machine knows, too
shared=(driver dev1 dev2 ip1 ip2)

# on_peer FUNCTION [ARGUMENT...]: run a function of this script on the second
# machine
on_peer() {
	peer "set -e; $(declare -p "${shared[@]}"); $(declare -f); ${*@Q}"
}

join() {
	node 1
	on_peer node 2
	until_true 20 ping -q -c 1 -W 1 $ip2
}

# leave N: the end of node N; nothing may keep the driver.
leave() {
	rdma link delete "$driver$1" 2>/dev/null || :
	ip address flush dev eth0
	rmmod "$driver"
}

part() {
	on_peer leave 2
	leave 1
}

# sent MEGABYTES COMMAND...: COMMAND must succeed, and each machine must send at
# least MEGABYTES while the command runs.
sent() {
	local least=$1 one two
	shift
	one=$(counter "$dev1" sent_bytes) \
		two=$(on_peer counter "$dev2" sent_bytes)
	"$@"
	one=$(($(counter "$dev1" sent_bytes) - one))
	two=$(($(on_peer counter "$dev2" sent_bytes) - two))
	echo "bytes sent: $one, $two"
	(( one >= least << 20 && two >= least << 20 ))
}
