#!/bin/bash
# rdma-core's own Python tests, as Debian ships them: each is a case here. A
# skip has the test's own reason, and is a failure unless testing.rst names the
# test. Tests of vendors' devices are left out.
# kernels: 6.12 newest uml
# timeout: 900

source "$(dirname "$0")/lib.sh"

hosts
tests=$scratch/tests
cp -r /usr/share/doc/rdma-core/tests "$tests"
gunzip -qr "$tests"
rm "$tests"/test_{mlx5,efa,cuda}*.py
seconds=800
! full || seconds=4000
if brief; then
	# Tests that create and destroy objects, and some traffic.
	for file in "$tests"/test_*.py; do
		case $(basename "$file" .py) in
		test_pd|test_mr|test_cq|test_cq_events|test_qp|test_srq) ;;
		test_atomic|test_rdmacm|test_fork) ;;
		*) skip "$(basename "$file" .py)" \
			"left to make test-full, and to the newest kernel"; rm "$file";;
		esac
	done
fi
# Flow steering and RSS, with their raw packets; tag matching; memory of a GPU
skips='test_flow\.|test_rss_traffic\.|test_qp\.QPTest\.test_(create|query)_raw_qp|test_tag_matching\.|test_mr\.DmaBuf'
# A test runs between two QPs of one device.
h1 timeout -k 5 $seconds "$(dirname "$0")/unittest-cases" 90 "$skips" "$tests" \
	--dev "$dev1"
status=$?
(( status < 2 )) || fail end "the tests ended with status $status"
failures=$((failures + status))
