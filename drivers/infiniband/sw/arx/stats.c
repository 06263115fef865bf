// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* hw_counters of the port: the sums of the per-CPU counters. */

#include "arx.h"

static const struct rdma_stat_desc arx_stat_descs[] = {
	[ARX_CNT_SENT_PKTS].name = "sent_pkts",
	[ARX_CNT_SENT_BYTES].name = "sent_bytes",
	[ARX_CNT_SENT_RUNS].name = "sent_runs",
	[ARX_CNT_RCVD_PKTS].name = "rcvd_pkts",
	[ARX_CNT_RCVD_BYTES].name = "rcvd_bytes",
	[ARX_CNT_RCVD_RUNS].name = "rcvd_runs",
	[ARX_CNT_RCVD_BATCHES].name = "rcvd_batches",
	[ARX_CNT_LOOPBACK_RUNS].name = "loopback_runs",
	[ARX_CNT_LOOPBACK_BYTES].name = "loopback_bytes",
	[ARX_CNT_KICKS].name = "kicks",
	[ARX_CNT_LOOKS].name = "looks",
	[ARX_CNT_LOOKS_AWAY].name = "looks_away",
	[ARX_CNT_CQ_EVENTS].name = "cq_events",
	[ARX_CNT_DUPLICATE_REQUEST].name = "duplicate_request",
	[ARX_CNT_OUT_OF_SEQUENCE].name = "out_of_sequence",
	[ARX_CNT_RCVD_RNR_NAK].name = "rcvd_rnr_err",
	[ARX_CNT_SENT_RNR_NAK].name = "send_rnr_err",
	[ARX_CNT_RCVD_SEQ_NAK].name = "rcvd_seq_err",
	[ARX_CNT_SENT_NAK].name = "send_nak",
	[ARX_CNT_RETRY_EXCEEDED].name = "retry_exceeded_err",
	[ARX_CNT_RNR_RETRY_EXCEEDED].name = "retry_rnr_exceeded_err",
	[ARX_CNT_TIMEOUTS].name = "ack_timeouts",
	[ARX_CNT_REWINDS].name = "requester_rewinds",
	[ARX_CNT_SEND_ERR].name = "send_err",
	[ARX_CNT_TX_BLOCKED].name = "tx_blocked",
	[ARX_CNT_TX_BEHIND].name = "tx_behind",
	[ARX_CNT_TX_DROPPED].name = "tx_dropped",
	[ARX_CNT_ICRC_COMPUTED].name = "icrc_computed",
	[ARX_CNT_ICRC_AVOIDED].name = "icrc_avoided",
	[ARX_CNT_RX_ICRC_ERR].name = "rcvd_icrc_err",
	[ARX_CNT_RX_MALFORMED].name = "rcvd_malformed",
	[ARX_CNT_RX_NO_QP].name = "rcvd_no_qp",
	[ARX_CNT_RX_WRONG_ADDR].name = "rcvd_wrong_address",
	[ARX_CNT_RX_BAD_PKEY].name = "rcvd_bad_pkey",
	[ARX_CNT_RX_BAD_QKEY].name = "rcvd_bad_qkey",
	[ARX_CNT_RX_NO_RECV].name = "rcvd_no_recv_wqe",
	[ARX_CNT_RX_DROPPED].name = "rcvd_dropped",
};

static_assert(ARRAY_SIZE(arx_stat_descs) == ARX_NUM_COUNTERS);

/**
 * arx_alloc_hw_port_stats - verb: the table of counters
 * @ib: device
 * @port: its port
 *
 * Return: table, or NULL without memory.
 */
struct rdma_hw_stats *arx_alloc_hw_port_stats(struct ib_device *ib, u32 port)
{
	return rdma_alloc_hw_stats_struct(arx_stat_descs,
					  ARRAY_SIZE(arx_stat_descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/**
 * arx_stats_sum - read one counter
 * @dev: device
 * @counter: the counter
 *
 * Return: the sum over all CPUs.
 */
u64 arx_stats_sum(const struct arx_dev *dev, enum arx_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(dev->stats, cpu)->c[counter];
	return sum;
}

/**
 * arx_get_hw_stats - verb: read all counters
 * @ib: device
 * @stats: receives the values
 * @port: its port; 0 means the device, which has no counters of its own
 * @index: the requested counter; the function reads all
 *
 * Return: number of counters, or -EINVAL.
 */
int arx_get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats,
		     u32 port, int index)
{
	enum arx_counter i;

	if (!port || !stats)
		return -EINVAL;

	for (i = 0; i < ARX_NUM_COUNTERS; i++)
		stats->value[i] = arx_stats_sum(to_arx_dev(ib), i);
	return ARX_NUM_COUNTERS;
}
