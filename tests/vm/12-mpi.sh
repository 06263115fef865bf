#!/bin/bash
# Middlewares of high-performance computing as Debian ships them: UCX,
# libfabric, and MPICH and Open MPI over UCX. The ranks of MPI are on both
# nodes; each checks all data that it receives. The packages are in the layer
# "tests" (tools/cache).
# kernels: 6.12 newest
# timeout: 600

source "$(dirname "$0")/lib.sh"

# UCX connects its RC QPs by datagrams.
rc=rc_verbs,ud_verbs:aux,self
ud=ud_verbs,self
port=18700

# ucx TRANSPORTS OPTION...: ucx_perftest between the nodes. Without -P 0 it asks
# Open MPI for its ranks.
ucx() {
	local transports=$1
	shift
	export UCX_TLS=$transports
	pair $port "ucx_perftest -P 0 -p $port" \
		"ucx_perftest -P 0 -p $port $ip1 -n $iterations $*" |
		tee "$scratch/out"
	finds '^Final:' "$scratch/out"
}

# ucx_case TRANSPORTS TEST [OPTION...]
ucx_case() {
	local name=${1%%_*}
	check "ucx-$name $2 ${*:3}" 60 by_packets 20 ucx "$1" -t "$2" "${@:3}"
}

# fi_pingpongs PROVIDER ENDPOINT DOMAIN1 DOMAIN2: fi_pingpong of libfabric, with
# sizes up to 1 MiB where the endpoint has them
fi_pingpongs() {
	local options="-I 20 -v -p '$1' -e $2"
	[[ $2 == msg || $1 == *rxm ]] || options+=" -S 1000"
	pair 47592 "fi_pingpong $options -d $3" \
		"fi_pingpong $options -d $4 $ip1"
}

# fi_case PROVIDER ENDPOINT: libfabric has a domain for each kind of endpoint.
fi_case() {
	local suffix=''
	[[ $1 == *rxm || $2 == msg ]] || suffix=-dgram
	check "fi_pingpong $1 $2" 60 by_packets 20 fi_pingpongs "$1" "$2" \
		"$dev1$suffix" "$dev2$suffix"
}

# rma_case PROVIDER [SUFFIX]: one-sided operations of libfabric, by
# consumers/rma.c
rma_case() {
	check "rma $1" 60 by_packets 500 pair 18650 \
		"rma '$1' $dev1${2-} $ip1" "rma '$1' $dev2${2-} $ip2 $ip1"
}

# Write the program that takes the place of ssh: enter [OPTION...] HOST
# COMMAND...
make_enter() {
	cat >"$scratch/enter" <<-'END'
		#!/bin/bash
		while [[ $1 == -* ]]; do shift; done
		exec ip netns exec "$1" unshare --uts bash -c "hostname $1; ${*:2}"
	END
	chmod +x "$scratch/enter"
	printf '%s\n' "127.0.0.1 localhost" "$ip1 h1" "$ip2 h2" >/etc/hosts
}

# mpi RANKS COMMAND...: start COMMAND on h1, and expect that all ranks succeed
mpi() {
	local ranks=$1
	shift
	"$scratch/enter" h1 "$@" | tee "$scratch/out"
	finds "^$ranks ranks, " "$scratch/out"
}

# mpich RANKS [ARGUMENT]: MPICH's ranks poll, and yield their CPU after each
# poll only with this variable. There are more ranks than CPUs.
mpich() {
	export MPIR_CVAR_POLLS_BEFORE_YIELD=1
	mpi "$1" mpiexec.mpich -launcher ssh -launcher-exec "$scratch/enter" \
		-localhost h1 \
		-hosts "h1:$(($1 / 2)),h2:$(($1 / 2))" -n "$1" mpi-mpich \
		"${@:2}"
}

# start_openmpi RANKS OPTION... PROGRAM [ARGUMENT]
start_openmpi() {
	local ranks=$1
	shift
	mpi "$ranks" mpiexec.openmpi --allow-run-as-root \
		--prtemca plm_ssh_agent "$scratch/enter" \
		--prtemca prte_if_include eth0 \
		--host "h1:$((ranks / 2)),h2:$((ranks / 2))" \
		--map-by "ppr:$((ranks / 2)):node:OVERSUBSCRIBE" -n "$ranks" \
		"$@"
}

# openmpi RANKS [ARGUMENT]: a strong fence of UCX needs a key that UCX makes for
# mlx5 only. With any other device UCX prints an error for each fence.
openmpi() {
	export UCX_FENCE_MODE=weak
	start_openmpi "$1" --mca pml ucx --mca osc ucx \
		--mca opal_common_ucx_tls any \
		--mca opal_common_ucx_devices any \
		-x UCX_TLS -x UCX_FENCE_MODE mpi-openmpi "${@:2}"
	not finds 'UCX  ERROR' "$scratch/out"
}

# Open MPI finds no one-sided operations in libfabric's verbs;ofi_rxm.
openmpi_ofi() {
	start_openmpi "$1" --mca pml cm --mca mtl ofi \
		--mca opal_common_ofi_provider_include verbs mpi-openmpi \
		messages
}

# mpi_case LIBRARY RANKS TRANSPORTS: more than 1 MiB goes between the nodes
mpi_case() {
	export UCX_TLS=$3
	check "$1-${3%%_*} $2" 200 by_packets 500 "$1" "$2"
}

# Wait for traffic.
busy() {
	local before
	before=$(counter "$dev1" rcvd_pkts h1)
	until_true 60 eval \
		'(( $(counter "$dev1" rcvd_pkts h1) > before + 500 ))'
}

# anew PORT SERVER CLIENT NEXT...: the client's device is removed under traffic
# and made anew, and NEXT uses it. (A program may wait for ever after it lost
# its device, or its peer.)
anew() {
	local server client
	ip netns exec h1 bash -c "exec $2" &
	server=$!
	until_true 20 listening h1 "$1"
	ip netns exec h2 bash -c "exec $3" &
	client=$!
	busy
	h2 rdma link delete "$dev2"
	kill -KILL $server $client || true
	wait $server $client || true
	h2 rdma link add "$dev2" type "$driver" netdev eth0
	by_packets 20 "${@:4}"
}

ucx_anew() {
	export UCX_TLS=$1
	anew $port "ucx_perftest -P 0 -p $port" \
		"ucx_perftest -P 0 -p $port $ip1 -t tag_lat -n 100000000" ucx "$1" -t tag_lat
}

fi_anew() {
	local options="-p verbs -e msg -S 4096 -I 100000000"
	anew 47592 "fi_pingpong $options -d $dev1" \
		"fi_pingpong $options -d $dev2 $ip1" \
		fi_pingpongs verbs msg "$dev1" "$dev2"
}

no_qps() {
	[[ $(h1 rdma resource show qp; h2 rdma resource show \
		qp) != *'comm mpi-'* ]]
}

# loses LIBRARY RANKS: a rank is killed under traffic. The job ends with all of
# its QPs, and the next job runs.
loses() {
	local job
	"$1" "$2" forever &
	job=$!
	busy
	not no_qps
	pkill -KILL -n "mpi-$1"
	not wait $job
	until_true 20 no_qps
	by_packets 500 "$1" "$2"
}

full && iterations=2000 || iterations=100
hosts
make_enter
export UCX_WARN_UNUSED_ENV_VARS=n

ucx_case $rc tag_lat
ucx_case $ud tag_lat
if ! brief; then
	ucx_case $rc tag_bw -s 100000
	ucx_case $rc ucp_put_bw -s 65536
	ucx_case $rc ucp_get -s 8192
	ucx_case $rc ucp_add
	ucx_case $rc ucp_am_bw -s 20000
	ucx_case $ud tag_bw -s 10000
fi
if full; then
	for test in ucp_put_lat ucp_fadd ucp_swap ucp_cswap ucp_am_lat \
		stream_bw stream_lat; do
		ucx_case $rc $test
	done
	for test in ucp_put_bw ucp_get ucp_am_bw; do
		ucx_case $ud $test -s 4000
	done
	ucx_case $ud ucp_add
fi

fi_case "verbs" msg
if ! brief; then
	fi_case "verbs;ofi_rxm" rdm
	fi_case "verbs" dgram
	fi_case "verbs;ofi_rxd" rdm
fi

mpi_case openmpi 4 $rc
brief || mpi_case mpich 4 $rc
if full; then
	for library in mpich openmpi; do
		for ranks in 4 8; do
			mpi_case $library $ranks $ud
		done
	done
	mpi_case mpich 8 $rc
	mpi_case openmpi 8 $rc
	check "ucx-rc anew" 60 ucx_anew $rc
	check "ucx-ud anew" 60 ucx_anew $ud
	check "fi_pingpong anew" 60 fi_anew
	export UCX_TLS=$rc
	check "openmpi-rc loses a rank" 100 loses openmpi 4
	# A node of MPICH with two ranks may forget that one was killed; see
	# Documentation/applications.rst.
	check "mpich-rc loses a rank" 100 loses mpich 2
	rma_case "verbs;ofi_rxm"
	rma_case "verbs;ofi_rxd" -dgram
	check "openmpi-ofi 4" 200 by_packets 500 openmpi_ofi 4
fi
