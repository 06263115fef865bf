#!/bin/bash
# The KUnit suites of arx_kunit.ko, which report as KTAP.
# kernels: uml
# timeout: 300

source "$(dirname "$0")/lib.sh"

modprobe kunit
modprobe arx_kunit || { fail kunit "arx_kunit.ko does not load"; exit 1; }
for results in /sys/kernel/debug/kunit/*/results; do
	suite=$(basename "$(dirname "$results")")
	# Cases are indented by four columns, the parameters of a case by eight.
	while read -r line; do
		case $line in
		*'# SKIP'*)
			name=${line%% # SKIP*}
			echo "skip $suite/${name#ok * }: ${line##*# SKIP}";;
		'ok '*) echo "ok $suite/${line#ok * }";;
		'not ok '*)
			fail "$suite/${line#not ok * }" "see the log"
			sed 's/^/#   /' "$results";;
		esac
	done < <(sed -nE 's/^ {4}((not )?ok )/\1/p' "$results")
done
