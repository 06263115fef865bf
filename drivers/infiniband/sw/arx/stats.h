/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Counters: per CPU, summed up for hw_counters. */
#ifndef ARX_STATS_H
#define ARX_STATS_H

#include <linux/percpu.h>
#include <rdma/ib_verbs.h>

/* stats.c has their names in hw_counters. */
enum arx_counter {
	ARX_CNT_SENT_PKTS,
	ARX_CNT_SENT_BYTES,
	ARX_CNT_SENT_RUNS,
	ARX_CNT_RCVD_PKTS,
	ARX_CNT_RCVD_BYTES,
	ARX_CNT_RCVD_RUNS,
	ARX_CNT_RCVD_BATCHES,
	ARX_CNT_LOOPBACK_RUNS,
	ARX_CNT_LOOPBACK_BYTES,
	ARX_CNT_KICKS,
	ARX_CNT_LOOKS,
	ARX_CNT_LOOKS_AWAY,
	ARX_CNT_CQ_EVENTS,
	ARX_CNT_DUPLICATE_REQUEST,
	ARX_CNT_OUT_OF_SEQUENCE,
	ARX_CNT_RCVD_RNR_NAK,
	ARX_CNT_SENT_RNR_NAK,
	ARX_CNT_RCVD_SEQ_NAK,
	ARX_CNT_SENT_NAK,
	ARX_CNT_RETRY_EXCEEDED,
	ARX_CNT_RNR_RETRY_EXCEEDED,
	ARX_CNT_TIMEOUTS,
	ARX_CNT_REWINDS,
	ARX_CNT_SEND_ERR,
	ARX_CNT_TX_BLOCKED,
	ARX_CNT_TX_BEHIND,
	ARX_CNT_TX_DROPPED,
	ARX_CNT_ICRC_COMPUTED,
	ARX_CNT_ICRC_AVOIDED,
	ARX_CNT_RX_ICRC_ERR,
	ARX_CNT_RX_MALFORMED,
	ARX_CNT_RX_NO_QP,
	ARX_CNT_RX_WRONG_ADDR,
	ARX_CNT_RX_BAD_PKEY,
	ARX_CNT_RX_BAD_QKEY,
	ARX_CNT_RX_NO_RECV,
	ARX_CNT_RX_DROPPED,
	ARX_NUM_COUNTERS
};

/**
 * struct arx_stats - one CPU's counters of a device
 * @c: indexed by enum arx_counter
 */
struct arx_stats {
	u64 c[ARX_NUM_COUNTERS];
};

#define arx_count(dev, counter)	\
	this_cpu_inc((dev)->stats->c[ARX_CNT_##counter])
#define arx_count_add(dev, counter, n)	\
	this_cpu_add((dev)->stats->c[ARX_CNT_##counter], n)

struct arx_dev;

u64 arx_stats_sum(const struct arx_dev *dev, enum arx_counter counter);
struct rdma_hw_stats *arx_alloc_hw_port_stats(struct ib_device *ib, u32 port);
int arx_get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats,
		     u32 port, int index);

#endif /* ARX_STATS_H */
