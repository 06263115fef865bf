/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues. */
#ifndef ARX_CQ_H
#define ARX_CQ_H

#include <linux/hrtimer.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "ring.h"

#define ARX_CQ_ANY_CPU	(-1)

/**
 * struct arx_cq - completion queue
 * @ib: the core's part
 * @cpu: where the consumer's handler runs, by its completion vector; or
 *	%ARX_CQ_ANY_CPU
 * @ignore_overrun: a full CQ loses completions and does not fail
 * @lock: protects all fields below; innermost lock of the driver; bottom halves
 *	off
 * @ring: CQEs
 * @next: prepared ring that will replace @ring, or all zero
 * @prod: next CQE to write; the ring's prod is its copy
 * @cons: kernel consumers: next CQE to poll
 * @armed: the value of hdr->arm for which the last event was sent
 * @added: completions since arx_cq_begin()
 * @now: CLOCK_MONOTONIC at arx_cq_begin(), in ns
 * @overflown: a CQE was lost: no CQE is written any more
 * @overflow_reported: IB_EVENT_CQ_ERR was sent
 * @count: moderation: number of completions that delay an event; 0: off
 * @period: moderation: maximum delay in microseconds
 * @held: completions since the last event that are due for an event
 * @timer: ends @period
 * @notify: calls comp_handler from softirq context: on @cpu, and never inside
 *	a kernel consumer's own post call
 */
struct arx_cq {
	struct ib_cq ib;
	int cpu;
	bool ignore_overrun;
	spinlock_t lock;	/* protects all below */
	struct arx_ring ring;
	struct arx_ring next;
	u32 prod;
	u32 cons;
	u32 armed;
	u32 added;
	u64 now;
	bool overflown;
	bool overflow_reported;
	u16 count;
	u16 period;
	u32 held;
	struct hrtimer timer;
	struct work_struct notify;
};

static inline struct arx_cq *to_arx_cq(struct ib_cq *ib)
{
	return container_of(ib, struct arx_cq, ib);
}

u32 arx_cq_waiting(struct arx_cq *cq);
void arx_cq_begin(struct arx_cq *cq);
bool arx_cq_put(struct arx_cq *cq, const struct arx_cqe *cqe);
void arx_cq_end(struct arx_cq *cq, bool solicited, bool error);
bool arx_cq_add(struct arx_cq *cq, const struct arx_cqe *cqe, bool solicited);
void arx_cq_settle(struct ib_cq *ib);

/* verbs */
int arx_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs);
int arx_destroy_cq(struct ib_cq *ib, struct ib_udata *udata);
int arx_resize_cq(struct ib_cq *ib, unsigned int cqe, struct ib_udata *udata);
int arx_modify_cq(struct ib_cq *ib, u16 count, u16 period);
int arx_poll_cq(struct ib_cq *ib, int n, struct ib_wc *wc);
int arx_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags);

#endif /* ARX_CQ_H */
