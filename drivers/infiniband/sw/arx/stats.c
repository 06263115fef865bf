// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* hw_counters of the port: the sums over all CPUs. */

#include <linux/rculist.h>

#include "arx.h"

DEFINE_STATIC_KEY_FALSE(arx_stats_optional);

static const struct rdma_stat_desc arx_stat_descs[] = {
	[ARX_CNT_SENT_PKTS].name = "sent_pkts",
	[ARX_CNT_SENT_BYTES].name = "sent_bytes",
	[ARX_CNT_SENT_RUNS].name = "sent_runs",
	[ARX_CNT_SENT_USO].name = "sent_uso_pkts",
	[ARX_CNT_LOST_USO].name = "lost_uso_trains",
	[ARX_CNT_RCVD_PKTS].name = "rcvd_pkts",
	[ARX_CNT_RCVD_BYTES].name = "rcvd_bytes",
	[ARX_CNT_RCVD_RUNS].name = "rcvd_runs",
	[ARX_CNT_RCVD_BATCHES].name = "rcvd_batches",
	[ARX_CNT_LOOPBACK_RUNS].name = "loopback_runs",
	[ARX_CNT_LOOPBACK_BYTES].name = "loopback_bytes",
	[ARX_CNT_KICKS].name = "kicks",
	[ARX_CNT_SQ_TIMER_POLLS].name = "sq_timer_polls",
	[ARX_CNT_SQ_WORKER_POLLS].name = "sq_worker_polls",
	[ARX_CNT_CQ_EVENTS].name = "cq_events",
	[ARX_CNT_DUPLICATE_REQUEST].name = "duplicate_request",
	[ARX_CNT_OUT_OF_SEQUENCE].name = "out_of_seq_request",
	[ARX_CNT_SEQUENCE_KEPT].name = "out_of_seq_kept",
	[ARX_CNT_SEQUENCE_DROPPED].name = "out_of_seq_dropped",
	[ARX_CNT_RCVD_RNR_NAK].name = "rcvd_rnr_err",
	[ARX_CNT_SENT_RNR_NAK].name = "send_rnr_err",
	[ARX_CNT_RCVD_SEQ_NAK].name = "rcvd_seq_err",
	[ARX_CNT_SENT_NAK].name = "send_nak",
	[ARX_CNT_RETRY_EXCEEDED].name = "retry_exceeded_err",
	[ARX_CNT_RNR_RETRY_EXCEEDED].name = "retry_rnr_exceeded_err",
	[ARX_CNT_TIMEOUTS].name = "ack_timeouts",
	[ARX_CNT_REWINDS].name = "requester_rewinds",
	[ARX_CNT_RESENT_PKTS].name = "selective_retrans_pkts",
	[ARX_CNT_LOSS_TIMEOUTS].name = "loss_timeouts",
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
	[ARX_CNT_RDMA_SENDS].name = "rdma_sends",
	[ARX_CNT_RDMA_WRITES].name = "rdma_writes",
	[ARX_CNT_RDMA_READS].name = "rdma_reads",
	[ARX_CNT_RDMA_ATOMICS].name = "rdma_atomics",
	[ARX_CNT_RDMA_FLUSHES].name = "rdma_flushes",
	[ARX_CNT_RDMA_RECVS].name = "rdma_recvs",
	[ARX_CNT_RX_WRITES].name = "rx_write_requests",
	[ARX_CNT_RX_READS].name = "rx_read_requests",
	[ARX_CNT_RX_ATOMICS].name = "rx_atomic_requests",
	[ARX_CNT_RX_FLUSHES].name = "rx_flush_requests",
	[ARX_CNT_ACKS_SENT].name = "acks_sent",
	[ARX_CNT_ACKS_RCVD].name = "acks_rcvd",
	[ARX_CNT_ACK_DEFERRED].name = "ack_deferred",
	[ARX_CNT_IMPLIED_NAK].name = "implied_nak_seq_err",
	[ARX_CNT_RETRIES].name = "completer_retry_err",
	[ARX_CNT_RNR_WAITS].name = "rnr_waits",
	[ARX_CNT_CNP_SENT].name = "np_cnp_sent",
	[ARX_CNT_CNP_HANDLED].name = "rp_cnp_handled",
	[ARX_CNT_CNP_IGNORED].name = "rp_cnp_ignored",
	[ARX_CNT_ECN_MARKED].name = "np_ecn_marked_roce_packets",
	[ARX_CNT_LINK_DOWNED].name = "link_downed",
	[ARX_CNT_REQ_ERROR].name = "req_cqe_error",
	[ARX_CNT_REQ_FLUSHED].name = "req_cqe_flush_error",
	[ARX_CNT_RESP_ERROR].name = "resp_cqe_error",
	[ARX_CNT_RESP_FLUSHED].name = "resp_cqe_flush_error",
	[ARX_CNT_REQ_INVALID].name = "req_remote_invalid_request",
	[ARX_CNT_REQ_ACCESS].name = "req_remote_access_errors",
	[ARX_CNT_REQ_REMOTE_OP].name = "req_remote_op_errors",
	[ARX_CNT_RESP_INVALID].name = "resp_remote_invalid_request",
	[ARX_CNT_RESP_ACCESS].name = "resp_remote_access_errors",
	[ARX_CNT_QP_EVENTS].name = "qp_events",
	[ARX_CNT_REQ_TURNS] = { .name = "req_turns", .flags = IB_STAT_FLAG_OPTIONAL },
	[ARX_CNT_REQ_WAITS] = { .name = "req_waits", .flags = IB_STAT_FLAG_OPTIONAL },
	[ARX_CNT_REQ_SPENT] = { .name = "req_spent", .flags = IB_STAT_FLAG_OPTIONAL },
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
	struct rdma_hw_stats *stats;
	enum arx_counter i;

	stats = rdma_alloc_hw_stats_struct(arx_stat_descs,
					   ARRAY_SIZE(arx_stat_descs),
					   RDMA_HW_STATS_DEFAULT_LIFESPAN);
	for (i = ARX_CNT_OPTIONAL; stats && i < ARX_NUM_COUNTERS; i++)
		set_bit(i, stats->is_disabled);
	return stats;
}

/**
 * arx_stats_sum - read one counter of a set
 * @stats: the set: of a device, or of a counter to which QPs are bound
 * @counter: the counter
 *
 * Return: the sum over all CPUs.
 */
u64 arx_stats_sum(const struct arx_stats __percpu *stats,
		  enum arx_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(stats, cpu)->c[counter];
	return sum;
}

/**
 * arx_stats_total - read one counter of a device and of all its QPs
 * @dev: device
 * @counter: the counter
 *
 * Return: the sum, with that of QPs which are or were bound to counters.
 */
u64 arx_stats_total(const struct arx_dev *dev, enum arx_counter counter)
{
	u64 sum = arx_stats_sum(dev->stats, counter);
	const struct arx_counter_mem *c;

	rcu_read_lock();
	list_for_each_entry_rcu(c, &dev->counters.list, link)
		sum += arx_stats_sum(c->stats, counter);
	rcu_read_unlock();
	return sum;
}

/**
 * arx_get_hw_stats - verb: read all counters
 * @ib: device
 * @stats: receives the values
 * @port: its port; 0 means the device, which has no counters of its own
 * @index: the requested counter; the function reads all
 *
 * The core adds the values of counters to which QPs are or were bound.
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
		stats->value[i] = arx_stats_sum(to_arx_dev(ib)->stats, i);
	return ARX_NUM_COUNTERS;
}

/**
 * arx_modify_hw_stat - verb: turn an optional counter on or off
 * @ib: device
 * @port: its port
 * @index: of the counter; the core has checked that it is optional
 * @enable: turn on, else off; the core calls this for changes only
 *
 * Context: may sleep; calls for one device do not overlap.
 * Return: 0.
 */
int arx_modify_hw_stat(struct ib_device *ib, u32 port, unsigned int index,
		       bool enable)
{
	unsigned long *optional = &to_arx_dev(ib)->optional;

	if (enable) {
		set_bit(index - ARX_CNT_OPTIONAL, optional);
		static_branch_inc(&arx_stats_optional);
	} else {
		static_branch_dec(&arx_stats_optional);
		clear_bit(index - ARX_CNT_OPTIONAL, optional);
	}
	return 0;
}

/**
 * arx_stats_exit - turn the optional counters of a device off
 * @dev: device that ends
 *
 * Context: may sleep.
 */
void arx_stats_exit(struct arx_dev *dev)
{
	unsigned int n = hweight_long(dev->optional);

	while (n--)
		static_branch_dec(&arx_stats_optional);
}
