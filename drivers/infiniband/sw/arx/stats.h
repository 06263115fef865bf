/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Counters of a port: one set for each CPU, summed up when they are read. */
#ifndef ARX_STATS_H
#define ARX_STATS_H

#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <rdma/ib_verbs.h>

struct arx_dev;

/* stats.c has their names in hw_counters. */
enum arx_counter {
	ARX_CNT_SENT_PKTS,
	ARX_CNT_SENT_BYTES,
	ARX_CNT_SENT_RUNS,
	ARX_CNT_SENT_USO,
	ARX_CNT_LOST_USO,
	ARX_CNT_RCVD_PKTS,
	ARX_CNT_RCVD_BYTES,
	ARX_CNT_RCVD_RUNS,
	ARX_CNT_RCVD_BATCHES,
	ARX_CNT_LOOPBACK_RUNS,
	ARX_CNT_LOOPBACK_BYTES,
	ARX_CNT_KICKS,
	ARX_CNT_SQ_TIMER_POLLS,
	ARX_CNT_SQ_WORKER_POLLS,
	ARX_CNT_CQ_EVENTS,
	ARX_CNT_DUPLICATE_REQUEST,
	ARX_CNT_OUT_OF_SEQUENCE,
	ARX_CNT_SEQUENCE_KEPT,
	ARX_CNT_SEQUENCE_DROPPED,
	ARX_CNT_RCVD_RNR_NAK,
	ARX_CNT_SENT_RNR_NAK,
	ARX_CNT_RCVD_SEQ_NAK,
	ARX_CNT_SENT_NAK,
	ARX_CNT_RETRY_EXCEEDED,
	ARX_CNT_RNR_RETRY_EXCEEDED,
	ARX_CNT_TIMEOUTS,
	ARX_CNT_REWINDS,
	ARX_CNT_RESENT_PKTS,
	ARX_CNT_LOSS_TIMEOUTS,
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
	ARX_CNT_RDMA_SENDS,
	ARX_CNT_RDMA_WRITES,
	ARX_CNT_RDMA_READS,
	ARX_CNT_RDMA_ATOMICS,
	ARX_CNT_RDMA_FLUSHES,
	ARX_CNT_RDMA_RECVS,
	ARX_CNT_RX_WRITES,
	ARX_CNT_RX_READS,
	ARX_CNT_RX_ATOMICS,
	ARX_CNT_RX_FLUSHES,
	ARX_CNT_ACKS_SENT,
	ARX_CNT_ACKS_RCVD,
	ARX_CNT_ACK_DEFERRED,
	ARX_CNT_IMPLIED_NAK,
	ARX_CNT_RETRIES,
	ARX_CNT_RNR_WAITS,
	ARX_CNT_CNP_SENT,
	ARX_CNT_CNP_HANDLED,
	ARX_CNT_CNP_IGNORED,
	ARX_CNT_ECN_MARKED,
	ARX_CNT_LINK_DOWNED,
	ARX_CNT_REQ_ERROR,
	ARX_CNT_REQ_FLUSHED,
	ARX_CNT_RESP_ERROR,
	ARX_CNT_RESP_FLUSHED,
	ARX_CNT_REQ_INVALID,
	ARX_CNT_REQ_ACCESS,
	ARX_CNT_REQ_REMOTE_OP,
	ARX_CNT_RESP_INVALID,
	ARX_CNT_RESP_ACCESS,
	ARX_CNT_QP_EVENTS,
	/* optional: counted while "rdma statistic set" has turned them on */
	ARX_CNT_REQ_TURNS,
	ARX_CNT_REQ_WAITS,
	ARX_CNT_REQ_SPENT,
	ARX_NUM_COUNTERS,
	ARX_CNT_OPTIONAL = ARX_CNT_REQ_TURNS
};

/**
 * struct arx_stats - one CPU's counters of a device
 * @c: indexed by enum arx_counter
 */
struct arx_stats {
	u64 c[ARX_NUM_COUNTERS];
};

/**
 * struct arx_counter_mem - memory of a counter to which QPs are bound
 * @link: in arx_dev.counters; only added until the device ends
 * @id: rdma_counter.id
 * @used: a counter has the memory now
 * @stats: for each CPU
 * @base: the sums when that counter took the memory over
 */
struct arx_counter_mem {
	struct list_head link;
	u32 id;
	bool used;
	struct arx_stats __percpu *stats;
	u64 base[ARX_NUM_COUNTERS];
};

/* @who is a QP, or a device that counts what belongs to no QP. */
#define arx_count(who, counter)	\
	this_cpu_inc((who)->stats->c[ARX_CNT_##counter])
#define arx_count_add(who, counter, n)	\
	this_cpu_add((who)->stats->c[ARX_CNT_##counter], n)

/* On while any device counts optional counters */
DECLARE_STATIC_KEY_FALSE(arx_stats_optional);

u64 arx_stats_sum(const struct arx_stats __percpu *stats,
		  enum arx_counter counter);
u64 arx_stats_total(const struct arx_dev *dev, enum arx_counter counter);
void arx_stats_exit(struct arx_dev *dev);
struct rdma_hw_stats *arx_alloc_hw_port_stats(struct ib_device *ib, u32 port);
int arx_get_hw_stats(struct ib_device *ib, struct rdma_hw_stats *stats,
		     u32 port, int index);
int arx_modify_hw_stat(struct ib_device *ib, u32 port, unsigned int index,
		       bool enable);

#endif /* ARX_STATS_H */
