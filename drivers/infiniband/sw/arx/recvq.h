/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Receive queues, of a QP or shared. */
#ifndef ARX_RECVQ_H
#define ARX_RECVQ_H

#include <rdma/ib_verbs.h>

#include "arx.h"
#include "ring.h"

/**
 * struct arx_rwqe - kernel copy of a receive WQE
 * @wr_id: returned in the completion
 * @num_sge: valid entries of @sge
 * @length: sum of the SGEs' lengths
 * @nr: its number among those of its queue, which wraps
 * @sge: memory for the message; lkeys are checked when it is written
 */
struct arx_rwqe {
	u64 wr_id;
	u32 num_sge;
	u32 length;
	u32 nr;
	struct arx_sge sge[ARX_MAX_SGE];
};

/**
 * struct arx_recvq - the receive queue of a QP or of an SRQ
 * @ring: struct arx_recv_wqe entries
 * @lock: protects @cons, @limit and @failed; taken with bottom halves off,
 *	inside the responder's lock
 * @cons: next WQE to take
 * @prod: kernel consumers: next WQE to fill, under @post_lock
 * @post_lock: serialises posting by kernel consumers
 * @max_sge: maximum number of SGEs of a WQE
 * @limit: SRQ: send IB_EVENT_SRQ_LIMIT_REACHED when fewer WQEs are left; 0 off
 * @failed: the ring had an impossible index; nothing is taken until a reset
 */
struct arx_recvq {
	struct arx_ring ring;
	spinlock_t lock;	/* for takers */
	u32 cons;
	u32 prod;
	spinlock_t post_lock;	/* for kernel posters */
	u32 max_sge;
	u32 limit;
	bool failed;
};

/* What to report to an SRQ's owner, once. */
enum arx_recvq_news {
	ARX_RECVQ_NO_NEWS,
	ARX_RECVQ_LIMIT_REACHED, /* fewer WQEs are left; the limit is off now */
	ARX_RECVQ_FAILED,
};

/**
 * struct arx_srq - shared receive queue
 * @ib: the core's part
 * @q: its queue
 * @next: prepared ring that will replace @q.ring, or all zero; under @q.lock
 * @id: its number in arx_dev.srqs
 */
struct arx_srq {
	struct ib_srq ib;
	struct arx_recvq q;
	struct arx_ring next;
	struct arx_id id;
};

static inline struct arx_srq *to_arx_srq(struct ib_srq *ib)
{
	return container_of(ib, struct arx_srq, ib);
}

struct arx_srq *arx_srq_find(struct arx_dev *dev, const struct ib_xrcd *xrcd,
			     u32 srqn);

int arx_recvq_init(struct arx_recvq *q, u32 max_wr, u32 max_sge,
		   struct ib_ucontext *uctx, struct arx_ring_info *info);
void arx_recvq_cleanup(struct arx_recvq *q);
int arx_recvq_take(struct arx_recvq *q, struct arx_rwqe *wqe,
		   enum arx_recvq_news *news);
int arx_recvq_post(struct arx_recvq *q, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad);
void arx_recvq_reset(struct arx_recvq *q);

void arx_srq_event(struct arx_srq *srq, enum ib_event_type event);

/* verbs */
int arx_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *init,
		   struct ib_udata *udata);
int arx_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata);
int arx_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr);
int arx_destroy_srq(struct ib_srq *ib, struct ib_udata *udata);
int arx_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad);

#endif /* ARX_RECVQ_H */
