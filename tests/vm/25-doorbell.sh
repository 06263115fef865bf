#!/bin/bash
# The moderation of doorbells and of completion events: a stream makes no system call for each message, a request that is waited for is seen at once, and none
# is forgotten, whenever it is posted.
# kernels: 6.12 7.2 uml
# timeout: 300

source "$(dirname "$0")/lib.sh"

# At best one kick for each 16, which is what bench looks at; a machine that is held up costs some more. In the debug kernel posting is
# so slow that looks find nothing in between.
count=30000 few=3750
if debug_kernel; then count=3000 few=1500; fi
full && seconds=60 || seconds=5
attribute=/sys/class/infiniband/$dev1/doorbell_usecs

# In a shell of the host's: its sysfs shows its devices.
attribute() { h1 sh -c "${2:+echo $2 >$1 &&} cat $1"; }

# kicks MODE LEAST MOST: of count messages
kicks() {
	local before
	before=$(counter "$dev1" kicks h1)
	h1 doorbell "$1" "$dev1" $count
	echo "$1: $(($(counter "$dev1" kicks h1) - before)) kicks for $count messages"
	(( $(counter "$dev1" kicks h1) - before >= $2 && $(counter "$dev1" kicks h1) - before <= $3 ))
}

looked() { (( $(counter "$dev1" looks h1) > 0 )); }

turned_off() {
	[[ $(attribute "$attribute" 0) == 0 ]]
	kicks stream $count $count
}

set_again() {
	not attribute "$attribute" -1 2>/dev/null
	not attribute "$attribute" 1000001 2>/dev/null
	[[ $(attribute "$attribute" 100) == 100 ]]
	kicks stream 1 $few
}

hosts
check default 60 eval '[[ $(attribute "$attribute") == 50 ]]'
check single 40 kicks single $count $count
check stream 40 kicks stream 1 $few
check looked 60 looked
check events 60 kicks events 1 $((2 * few))
check turned-off 40 turned_off
check set-again 40 set_again
check moderated-events 20 h1 doorbell moderated "$dev1" 60
check races $((seconds + 30)) h1 doorbell races "$dev1" $seconds
