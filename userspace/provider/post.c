// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting of work requests. A WQE is written in place, whole, and then made
 * visible by one store of prod. At most one kick follows, after the lock is
 * released, because the kernel may do much work inside the kick.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "arx.h"

static_assert(sizeof(struct arx_ring_hdr) == ARX_RING_ENTRIES_OFFSET,
	      "a ring's head ends where its entries begin");
static_assert(sizeof(struct arx_send_wqe) == ARX_WQE_ALIGN,
	      "SGEs and inline data follow the head of a WQE at once");
static_assert(sizeof(struct arx_recv_wqe) == sizeof(struct arx_sge),
	      "SGEs follow the head of a WQE at once");
static_assert(sizeof(struct arx_sge) == sizeof(struct ibv_sge) &&
	      offsetof(struct arx_sge, addr) ==
		      offsetof(struct ibv_sge, addr) &&
	      offsetof(struct arx_sge, length) ==
		      offsetof(struct ibv_sge, length) &&
	      offsetof(struct arx_sge, lkey) == offsetof(struct ibv_sge, lkey),
	      "an SGE is copied as it is");
static_assert((int)IBV_WR_SEND_WITH_INV == IB_UVERBS_WR_SEND_WITH_INV &&
	      (int)IBV_WR_BIND_MW == IB_UVERBS_WR_BIND_MW &&
	      (int)IBV_WR_LOCAL_INV == IB_UVERBS_WR_LOCAL_INV &&
	      (int)IBV_WR_ATOMIC_WRITE == IB_UVERBS_WR_ATOMIC_WRITE,
	      "opcodes are passed as they are");
static_assert((int)IBV_FLUSH_PERSISTENT == IB_FLUSH_PERSISTENT &&
	      (int)IBV_FLUSH_MR == IB_FLUSH_MR,
	      "what a FLUSH asks for is passed as it is");

#define OP(_op)		(1u << IBV_WR_##_op)

enum {
	ARX_OPS_UD	= OP(SEND) | OP(SEND_WITH_IMM),
	ARX_OPS_UC	= ARX_OPS_UD | OP(RDMA_WRITE) |
			  OP(RDMA_WRITE_WITH_IMM) | OP(LOCAL_INV) | OP(BIND_MW),
	ARX_OPS_RC	= ARX_OPS_UC | OP(SEND_WITH_INV) | OP(RDMA_READ) |
			  OP(ATOMIC_CMP_AND_SWP) | OP(ATOMIC_FETCH_AND_ADD) |
			  OP(FLUSH) | OP(ATOMIC_WRITE),
	ARX_OPS_INLINE	= OP(SEND) | OP(SEND_WITH_IMM) | OP(SEND_WITH_INV) |
			  OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM) |
			  OP(ATOMIC_WRITE),
	ARX_OPS_NO_DATA	= OP(LOCAL_INV) | OP(BIND_MW),

	ARX_SEND_FLAGS	= IBV_SEND_FENCE | IBV_SEND_SIGNALED |
			  IBV_SEND_SOLICITED,
};

/**
 * arx_send_ops - opcodes that can be posted
 * @type: of the QP
 *
 * Return: bit n is set for opcode n; 0 if a QP of the type cannot send.
 */
uint32_t arx_send_ops(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return ARX_OPS_RC;
	case IBV_QPT_UC:
		return ARX_OPS_UC;
	case IBV_QPT_UD:
		return ARX_OPS_UD;
	default:
		return 0;
	}
}

/* ------------------------------------------------------------------------ */
/* Send */

/**
 * arx_kick - make the kernel process a QP's rings now
 * @doorbell: arx_context.doorbell
 * @qpn: the QP
 *
 * Return: 0, or EIO if the device is gone or the QP, which goes first.
 */
int arx_kick(int doorbell, uint32_t qpn)
{
	if (likely(!ioctl(doorbell, ARX_IOCTL_KICK, (unsigned long)qpn)))
		return 0;
	return EIO;
}

/*
 * Remember at a CQ that a QP was not kicked for. Returns the number of another
 * QP that it replaces, or 0.
 */
static uint32_t arx_defer(struct ibv_cq *ibcq, uint32_t place, uint32_t qpn)
{
	struct arx_deferred *deferred = &to_arx_cq(ibcq)->deferred;
	uint32_t before;

	/* Whoever takes the number later kicks after this post. */
	if (atomic_load_explicit(&deferred->qpn[place], memory_order_relaxed) ==
	    qpn)
		return 0;
	before = atomic_exchange(&deferred->qpn[place], qpn);
	atomic_fetch_or(&deferred->places, UINT64_C(1) << place);
	return before == qpn ? 0 : before;
}

/*
 * The kernel will poll the ring soon. An application that runs out of
 * completions waits for its posted requests or for a response to them: then
 * arx_cq_flush_doorbells() kicks, whichever of the QP's CQs it polls. If
 * another QP occupied the place in the send CQ, arx kicks for that QP now. This
 * is not needed for a place in a receive CQ, because the send CQ remembers the
 * QP, too.
 */
static void arx_defer_doorbell(const struct arx_qp *qp)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;
	uint32_t before;

	before = arx_defer(ibqp->send_cq, qp->place, ibqp->qp_num);
	if (before)
		arx_kick(qp->doorbell, before);
	if (ibqp->recv_cq && ibqp->recv_cq != ibqp->send_cq)
		arx_defer(ibqp->recv_cq, qp->recv_place, ibqp->qp_num);
}

/*
 * Pair E. A needless kick does no harm, so the barrier is paid only when it may
 * save a system call.
 */
static inline int arx_sq_notify(const struct arx_qp *qp)
{
	const uint32_t *flags = &qp->sq.ring.hdr->flags;

	if (arx_load_relaxed(flags) & ARX_RING_NO_KICK) {
		arx_full_barrier();
		if (likely(arx_load_relaxed(flags) & ARX_RING_NO_KICK)) {
			arx_defer_doorbell(qp);
			return 0;
		}
	}
	return arx_kick(qp->doorbell, qp->vqp.qp.qp_num);
}

static inline void arx_sq_publish(struct arx_sq *sq, uint32_t head)
{
	sq->head = head;
	arx_store_release(&sq->ring.hdr->prod, head);		/* A */
}

static inline bool arx_sq_full(struct arx_sq *sq, uint32_t head)
{
	if (likely(head - sq->seen_tail < sq->ring.count))
		return false;

	sq->seen_tail = arx_load_acquire(&sq->tail);
	return head - sq->seen_tail >= sq->ring.count;
}

static inline void arx_copy_sges(void *to, const struct ibv_sge *from, int n)
{
	struct arx_sge *sge = to;
	int i;

	for (i = 0; i < n; i++) {
		sge[i].addr = from[i].addr;
		sge[i].length = from[i].length;
		sge[i].lkey = from[i].lkey;
	}
}

static int arx_copy_inline(const struct arx_sq *sq, struct arx_send_wqe *wqe,
			   const struct ibv_sge *sge, int n)
{
	void *to = wqe + 1;
	uint32_t len = 0;
	int i;

	if (unlikely(n < 0))
		return EINVAL;
	for (i = 0; i < n; i++) {
		if (unlikely(!sge[i].length))
			continue;	/* its address may be NULL */
		if (unlikely(sge[i].length > sq->max_inline - len))
			return EINVAL;
		memcpy(to + len, (void *)(uintptr_t)sge[i].addr,
		       sge[i].length);
		len += sge[i].length;
	}

	wqe->num_sge = 0;
	wqe->inline_len = len;
	return 0;
}

static inline void arx_set_bind(struct arx_send_wqe *wqe,
				const struct ibv_mw *ibmw, uint32_t new_rkey,
				const struct ibv_mw_bind_info *info)
{
	wqe->bind.addr = info->addr;
	wqe->bind.length = info->length;
	wqe->bind.mr_lkey = info->mr ? info->mr->lkey : 0;
	wqe->bind.mw_rkey = ibmw->rkey;
	wqe->bind.new_rkey = new_rkey;
	wqe->bind.access = info->mw_access_flags;
}

/* Fill the part that depends on the opcode, which has been checked. */
static inline int arx_set_op(struct arx_send_wqe *wqe,
			     const struct ibv_send_wr *wr, bool ud)
{
	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		wqe->ex = wr->invalidate_rkey;	/* or imm_data: a union */
		SWITCH_FALLTHROUGH;
	case IBV_WR_SEND:
		if (!ud)
			break;
		if (unlikely(!wr->wr.ud.ah))
			return EINVAL;
		wqe->ud.qpn = wr->wr.ud.remote_qpn;
		wqe->ud.qkey = wr->wr.ud.remote_qkey;
		wqe->ud.ah = to_arx_ah(wr->wr.ud.ah)->id;
		wqe->ud.pkey_index = 0;
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->ex = wr->invalidate_rkey;
		SWITCH_FALLTHROUGH;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		wqe->rdma.remote_addr = wr->wr.rdma.remote_addr;
		wqe->rdma.rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->atomic.remote_addr = wr->wr.atomic.remote_addr;
		wqe->atomic.rkey = wr->wr.atomic.rkey;
		wqe->atomic.compare_add = wr->wr.atomic.compare_add;
		wqe->atomic.swap = wr->wr.atomic.swap;
		break;
	case IBV_WR_LOCAL_INV:
		wqe->ex = wr->invalidate_rkey;
		break;
	case IBV_WR_BIND_MW:
		arx_set_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
			     &wr->bind_mw.bind_info);
		break;
	default:
		/* FLUSH, for which a struct ibv_send_wr has no fields */
		return EINVAL;
	}
	return 0;
}

/* Write a WQE into the slot at @head, which is not published yet. */
static inline int arx_sq_put(struct arx_sq *sq, uint32_t head,
			     enum ibv_qp_type type,
			     const struct ibv_send_wr *wr)
{
	struct arx_send_wqe *wqe;
	uint32_t op;

	if (unlikely(arx_sq_full(sq, head)))
		return ENOMEM;
	if (unlikely((uint32_t)wr->opcode >= 32))
		return EINVAL;
	op = 1u << wr->opcode;
	if (unlikely(!(sq->ops & op)))
		return EINVAL;

	wqe = arx_ring_entry(&sq->ring, head);
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	if (unlikely(type == IBV_QPT_XRC_SEND))
		wqe->srqn = wr->qp_type.xrc.remote_srqn;

	if (wr->send_flags & IBV_SEND_INLINE) {
		if (unlikely(!(op & ARX_OPS_INLINE)))
			return EINVAL;
		if (unlikely(arx_copy_inline(sq, wqe, wr->sg_list,
					     wr->num_sge)))
			return EINVAL;
		wqe->flags = (wr->send_flags & ARX_SEND_FLAGS) | sq->signal |
			     IBV_SEND_INLINE;
	} else {
		int n = op & ARX_OPS_NO_DATA ? 0 : wr->num_sge;

		if (unlikely((uint32_t)n > sq->max_sge))
			return EINVAL;
		arx_copy_sges(wqe + 1, wr->sg_list, n);
		wqe->num_sge = n;
		wqe->inline_len = 0;
		wqe->flags = (wr->send_flags & ARX_SEND_FLAGS) | sq->signal;
	}
	return arx_set_op(wqe, wr, type == IBV_QPT_UD);
}

/**
 * arx_post_send - post a list of send work requests
 * @ibqp: the QP
 * @wr: the list
 * @bad: on error, the first request that was not posted
 *
 * Return: 0; EINVAL for an invalid work request or state; ENOMEM if the queue
 * is full; EIO if the device is gone.
 */
int arx_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		  struct ibv_send_wr **bad)
{
	enum ibv_qp_type type = ibqp->qp_type;
	struct arx_qp *qp = to_arx_qp(ibqp);
	struct ibv_send_wr *first = wr;
	struct arx_sq *sq = &qp->sq;
	uint32_t head, start;
	int kick_err;
	int err = 0;

	if (unlikely(ibqp->state < IBV_QPS_RTS || !sq->ops)) {
		*bad = wr;
		return EINVAL;
	}

	arx_lock(&sq->lock);
	start = sq->head;
	for (head = start; wr; wr = wr->next, head++) {
		err = arx_sq_put(sq, head, type, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (unlikely(head == start)) {
		arx_unlock(&sq->lock);
		return err;
	}
	arx_sq_publish(sq, head);
	arx_unlock(&sq->lock);

	kick_err = arx_sq_notify(qp);
	if (unlikely(kick_err)) {
		*bad = first;
		err = kick_err;
	}
	return err;
}

/**
 * arx_bind_mw - bind a memory window of type 1
 * @ibqp: the QP
 * @ibmw: the window; gets a new rkey
 * @bind: memory and access
 *
 * Return: 0 or errno value, as arx_post_send().
 */
int arx_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *ibmw,
		struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags & ~IBV_SEND_INLINE,
		.bind_mw = {
			.mw = ibmw,
			.rkey = ibv_inc_rkey(ibmw->rkey),
			.bind_info = bind->bind_info,
		},
	};
	struct ibv_send_wr *bad;
	int err;

	err = arx_post_send(ibqp, &wr, &bad);
	if (err)
		return err;

	ibmw->rkey = wr.bind_mw.rkey;
	return 0;
}

/* ------------------------------------------------------------------------ */
/* Send, piece by piece: ibv_wr_*() */

static void arx_wr_start(struct ibv_qp_ex *ibqpx)
{
	struct arx_qp *qp = to_arx_qp_ex(ibqpx);
	struct arx_sq *sq = &qp->sq;

	arx_lock(&sq->lock);
	sq->wr_head = sq->head;
	sq->wr_err = qp->vqp.qp.state < IBV_QPS_RTS ? EINVAL : 0;
	sq->wqe = sq->scratch;
}

static int arx_wr_complete(struct ibv_qp_ex *ibqpx)
{
	struct arx_qp *qp = to_arx_qp_ex(ibqpx);
	struct arx_sq *sq = &qp->sq;
	int err = sq->wr_err;

	if (unlikely(err || sq->wr_head == sq->head)) {
		arx_unlock(&sq->lock);
		return err;
	}
	arx_sq_publish(sq, sq->wr_head);
	arx_unlock(&sq->lock);

	return arx_sq_notify(qp);
}

static void arx_wr_abort(struct ibv_qp_ex *ibqpx)
{
	arx_unlock(&to_arx_qp_ex(ibqpx)->sq.lock);
}

/* The first error counts; later calls write to the scratch WQE. */
static void arx_wr_fail(struct arx_sq *sq, int err)
{
	if (!sq->wr_err)
		sq->wr_err = err;
	sq->wqe = sq->scratch;
}

static inline struct arx_send_wqe *arx_wr_next(struct ibv_qp_ex *ibqpx,
					       enum ibv_wr_opcode opcode)
{
	struct arx_sq *sq = &to_arx_qp_ex(ibqpx)->sq;
	struct arx_send_wqe *wqe;

	if (unlikely(sq->wr_err || arx_sq_full(sq, sq->wr_head))) {
		arx_wr_fail(sq, ENOMEM);
		return sq->wqe;
	}

	wqe = arx_ring_entry(&sq->ring, sq->wr_head++);
	wqe->wr_id = ibqpx->wr_id;
	wqe->opcode = opcode;
	wqe->num_sge = 0;
	wqe->inline_len = 0;
	wqe->flags = (ibqpx->wr_flags & ARX_SEND_FLAGS) | sq->signal;
	sq->wqe = wqe;
	return wqe;
}

static void arx_wr_send(struct ibv_qp_ex *ibqpx)
{
	arx_wr_next(ibqpx, IBV_WR_SEND);
}

static void arx_wr_send_imm(struct ibv_qp_ex *ibqpx, __be32 imm)
{
	struct arx_send_wqe *wqe = arx_wr_next(ibqpx, IBV_WR_SEND_WITH_IMM);

	wqe->ex = (__force uint32_t)imm;
}

static void arx_wr_send_inv(struct ibv_qp_ex *ibqpx, uint32_t rkey)
{
	struct arx_send_wqe *wqe = arx_wr_next(ibqpx, IBV_WR_SEND_WITH_INV);

	wqe->ex = rkey;
}

static inline struct arx_send_wqe *arx_wr_rdma(struct ibv_qp_ex *ibqpx,
					       enum ibv_wr_opcode opcode,
					       uint32_t rkey,
					       uint64_t remote_addr)
{
	struct arx_send_wqe *wqe = arx_wr_next(ibqpx, opcode);

	wqe->rdma.remote_addr = remote_addr;
	wqe->rdma.rkey = rkey;
	return wqe;
}

static void arx_wr_rdma_write(struct ibv_qp_ex *ibqpx, uint32_t rkey,
			      uint64_t remote_addr)
{
	arx_wr_rdma(ibqpx, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void arx_wr_rdma_write_imm(struct ibv_qp_ex *ibqpx, uint32_t rkey,
				  uint64_t remote_addr, __be32 imm)
{
	struct arx_send_wqe *wqe;

	wqe = arx_wr_rdma(ibqpx, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);
	wqe->ex = (__force uint32_t)imm;
}

static void arx_wr_rdma_read(struct ibv_qp_ex *ibqpx, uint32_t rkey,
			     uint64_t remote_addr)
{
	arx_wr_rdma(ibqpx, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void arx_wr_atomic_cmp_swp(struct ibv_qp_ex *ibqpx, uint32_t rkey,
				  uint64_t remote_addr, uint64_t compare,
				  uint64_t swap)
{
	struct arx_send_wqe *wqe;

	wqe = arx_wr_next(ibqpx, IBV_WR_ATOMIC_CMP_AND_SWP);
	wqe->atomic.remote_addr = remote_addr;
	wqe->atomic.rkey = rkey;
	wqe->atomic.compare_add = compare;
	wqe->atomic.swap = swap;
}

static void arx_wr_atomic_fetch_add(struct ibv_qp_ex *ibqpx, uint32_t rkey,
				    uint64_t remote_addr, uint64_t add)
{
	struct arx_send_wqe *wqe;

	wqe = arx_wr_next(ibqpx, IBV_WR_ATOMIC_FETCH_AND_ADD);
	wqe->atomic.remote_addr = remote_addr;
	wqe->atomic.rkey = rkey;
	wqe->atomic.compare_add = add;
	wqe->atomic.swap = 0;
}

static void arx_wr_flush(struct ibv_qp_ex *ibqpx, uint32_t rkey,
			 uint64_t remote_addr, size_t len, uint8_t type,
			 uint8_t level)
{
	struct arx_send_wqe *wqe = arx_wr_next(ibqpx, IBV_WR_FLUSH);

	if (unlikely(len > UINT32_MAX)) {
		arx_wr_fail(&to_arx_qp_ex(ibqpx)->sq, EINVAL);
		return;
	}
	wqe->flush.remote_addr = remote_addr;
	wqe->flush.rkey = rkey;
	wqe->flush.length = len;
	wqe->flush.placement = type;
	wqe->flush.selectivity = level;
}

/* The eight bytes are inline data, for which the QP has room. */
static void arx_wr_atomic_write(struct ibv_qp_ex *ibqpx, uint32_t rkey,
				uint64_t remote_addr, const void *value)
{
	struct arx_send_wqe *wqe;

	wqe = arx_wr_rdma(ibqpx, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);
	memcpy(wqe + 1, value, ARX_ATOMIC_WRITE_LEN);
	wqe->inline_len = ARX_ATOMIC_WRITE_LEN;
	wqe->flags |= IBV_SEND_INLINE;
}

static void arx_wr_local_inv(struct ibv_qp_ex *ibqpx, uint32_t rkey)
{
	struct arx_send_wqe *wqe = arx_wr_next(ibqpx, IBV_WR_LOCAL_INV);

	wqe->ex = rkey;
}

static void arx_wr_bind_mw(struct ibv_qp_ex *ibqpx, struct ibv_mw *ibmw,
			   uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	arx_set_bind(arx_wr_next(ibqpx, IBV_WR_BIND_MW), ibmw, rkey, info);
}

static void arx_wr_set_ud_addr(struct ibv_qp_ex *ibqpx, struct ibv_ah *ibah,
			       uint32_t qpn, uint32_t qkey)
{
	struct arx_send_wqe *wqe = to_arx_qp_ex(ibqpx)->sq.wqe;

	wqe->ud.qpn = qpn;
	wqe->ud.qkey = qkey;
	wqe->ud.ah = to_arx_ah(ibah)->id;
	wqe->ud.pkey_index = 0;
}

static void arx_wr_set_xrc_srqn(struct ibv_qp_ex *ibqpx, uint32_t remote_srqn)
{
	to_arx_qp_ex(ibqpx)->sq.wqe->srqn = remote_srqn;
}

static void arx_wr_set_sge(struct ibv_qp_ex *ibqpx, uint32_t lkey,
			   uint64_t addr, uint32_t length)
{
	struct arx_sq *sq = &to_arx_qp_ex(ibqpx)->sq;
	struct arx_sge *sge = (void *)(sq->wqe + 1);

	if (unlikely(!sq->max_sge)) {
		arx_wr_fail(sq, EINVAL);
		return;
	}
	sge->addr = addr;
	sge->length = length;
	sge->lkey = lkey;
	sq->wqe->num_sge = 1;
}

static void arx_wr_set_sge_list(struct ibv_qp_ex *ibqpx, size_t n,
				const struct ibv_sge *sg_list)
{
	struct arx_sq *sq = &to_arx_qp_ex(ibqpx)->sq;

	if (unlikely(n > sq->max_sge)) {
		arx_wr_fail(sq, EINVAL);
		return;
	}
	arx_copy_sges(sq->wqe + 1, sg_list, n);
	sq->wqe->num_sge = n;
}

static void arx_wr_set_inline_data_list(struct ibv_qp_ex *ibqpx, size_t n,
					const struct ibv_data_buf *buf)
{
	struct arx_sq *sq = &to_arx_qp_ex(ibqpx)->sq;
	struct arx_send_wqe *wqe = sq->wqe;
	void *to = wqe + 1;
	uint32_t len = 0;
	size_t i;

	if (unlikely(!(ARX_OPS_INLINE & 1u << wqe->opcode))) {
		arx_wr_fail(sq, EINVAL);
		return;
	}

	for (i = 0; i < n; i++) {
		if (unlikely(!buf[i].length))
			continue;
		if (unlikely(buf[i].length > sq->max_inline - len)) {
			arx_wr_fail(sq, EINVAL);
			return;
		}
		memcpy(to + len, buf[i].addr, buf[i].length);
		len += buf[i].length;
	}
	wqe->inline_len = len;
	wqe->flags |= IBV_SEND_INLINE;
}

static void arx_wr_set_inline_data(struct ibv_qp_ex *ibqpx, void *addr,
				   size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	arx_wr_set_inline_data_list(ibqpx, 1, &buf);
}

/* Opcodes of the flags of enum ibv_qp_create_send_ops_flags. */
static const uint8_t arx_wr_opcode[] = {
	IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_SEND,
	IBV_WR_SEND_WITH_IMM,
	IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_CMP_AND_SWP,
	IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_LOCAL_INV,
	IBV_WR_BIND_MW,
	IBV_WR_SEND_WITH_INV,
	IBV_WR_TSO,
	IBV_WR_FLUSH,
	IBV_WR_ATOMIC_WRITE,
};

static_assert(IBV_QP_EX_WITH_ATOMIC_WRITE ==
	      1 << (sizeof(arx_wr_opcode) - 1), "one opcode for each flag");

/**
 * arx_set_wr_ops - prepare a QP for ibv_wr_*()
 * @qp: the QP
 * @send_ops: enum ibv_qp_create_send_ops_flags: operations that will be posted
 *
 * Return: 0, or EOPNOTSUPP if the QP's type lacks one of the operations.
 */
int arx_set_wr_ops(struct arx_qp *qp, uint64_t send_ops)
{
	struct ibv_qp_ex *ibqpx = &qp->vqp.qp_ex;
	uint32_t ops = 0;
	size_t i;

	if (send_ops >> sizeof(arx_wr_opcode))
		return EOPNOTSUPP;
	for (i = 0; i < sizeof(arx_wr_opcode); i++)
		if (send_ops & 1ull << i)
			ops |= 1u << arx_wr_opcode[i];
	if (ops & ~qp->sq.ops)
		return EOPNOTSUPP;

	ibqpx->wr_start = arx_wr_start;
	ibqpx->wr_complete = arx_wr_complete;
	ibqpx->wr_abort = arx_wr_abort;

	if (ops & OP(SEND))
		ibqpx->wr_send = arx_wr_send;
	if (ops & OP(SEND_WITH_IMM))
		ibqpx->wr_send_imm = arx_wr_send_imm;
	if (ops & OP(SEND_WITH_INV))
		ibqpx->wr_send_inv = arx_wr_send_inv;
	if (ops & OP(RDMA_WRITE))
		ibqpx->wr_rdma_write = arx_wr_rdma_write;
	if (ops & OP(RDMA_WRITE_WITH_IMM))
		ibqpx->wr_rdma_write_imm = arx_wr_rdma_write_imm;
	if (ops & OP(RDMA_READ))
		ibqpx->wr_rdma_read = arx_wr_rdma_read;
	if (ops & OP(ATOMIC_CMP_AND_SWP))
		ibqpx->wr_atomic_cmp_swp = arx_wr_atomic_cmp_swp;
	if (ops & OP(ATOMIC_FETCH_AND_ADD))
		ibqpx->wr_atomic_fetch_add = arx_wr_atomic_fetch_add;
	if (ops & OP(FLUSH))
		ibqpx->wr_flush = arx_wr_flush;
	if (ops & OP(ATOMIC_WRITE))
		ibqpx->wr_atomic_write = arx_wr_atomic_write;
	if (ops & OP(LOCAL_INV))
		ibqpx->wr_local_inv = arx_wr_local_inv;
	if (ops & OP(BIND_MW))
		ibqpx->wr_bind_mw = arx_wr_bind_mw;

	if (qp->vqp.qp.qp_type == IBV_QPT_UD)
		ibqpx->wr_set_ud_addr = arx_wr_set_ud_addr;
	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		ibqpx->wr_set_xrc_srqn = arx_wr_set_xrc_srqn;
	ibqpx->wr_set_sge = arx_wr_set_sge;
	ibqpx->wr_set_sge_list = arx_wr_set_sge_list;
	ibqpx->wr_set_inline_data = arx_wr_set_inline_data;
	ibqpx->wr_set_inline_data_list = arx_wr_set_inline_data_list;
	return 0;
}

/* ------------------------------------------------------------------------ */
/* Receive */

static inline bool arx_rq_full(struct arx_rq *rq, uint32_t head)
{
	if (likely(head - rq->cons < rq->ring.count))
		return false;

	rq->cons = arx_load_acquire(&rq->ring.hdr->cons);	/* C */
	return head - rq->cons >= rq->ring.count;
}

static inline bool arx_rq_gone(const struct arx_rq *rq)
{
	return arx_load_relaxed(&rq->ring.hdr->flags) & ARX_RING_GONE;
}

static int arx_rq_post(struct arx_rq *rq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad)
{
	struct arx_recv_wqe *wqe;
	uint32_t head;
	int err = 0;

	arx_lock(&rq->lock);
	if (unlikely(arx_rq_gone(rq))) {
		arx_unlock(&rq->lock);
		*bad = wr;
		return EIO;
	}
	for (head = rq->head; wr; wr = wr->next, head++) {
		if (unlikely(arx_rq_full(rq, head))) {
			err = ENOMEM;
			*bad = wr;
			break;
		}
		if (unlikely((uint32_t)wr->num_sge > rq->max_sge)) {
			err = EINVAL;
			*bad = wr;
			break;
		}
		wqe = arx_ring_entry(&rq->ring, head);
		wqe->wr_id = wr->wr_id;
		wqe->num_sge = wr->num_sge;
		arx_copy_sges(wqe + 1, wr->sg_list, wr->num_sge);
	}
	if (likely(head != rq->head)) {
		rq->head = head;
		arx_store_release(&rq->ring.hdr->prod, head);	/* A */
	}
	arx_unlock(&rq->lock);
	return err;
}

/**
 * arx_post_recv - post a list of receive work requests
 * @ibqp: the QP
 * @wr: the list
 * @bad: on error, the first request that was not posted
 *
 * Return: 0; EINVAL for an invalid work request or state, or without a receive
 * queue; ENOMEM if the queue is full; EIO if the device is gone.
 */
int arx_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad)
{
	struct arx_qp *qp = to_arx_qp(ibqp);
	struct ibv_recv_wr *first = wr;
	struct arx_rq *rq = &qp->rq;
	int kick_err;
	int err;

	if (unlikely(ibqp->state == IBV_QPS_RESET || !rq->ring.count)) {
		*bad = wr;
		return EINVAL;
	}

	err = arx_rq_post(rq, wr, bad);
	arx_full_barrier();					/* E */
	if (likely(!(arx_load_relaxed(&rq->ring.hdr->flags) &
		     ARX_RING_KICK_RECV)))
		return err;

	kick_err = arx_kick(qp->doorbell, ibqp->qp_num);
	if (unlikely(kick_err)) {
		*bad = first;
		err = kick_err;
	}
	return err;
}

/**
 * arx_post_srq_recv - post a list of receive work requests to an SRQ
 * @ibsrq: the SRQ
 * @wr: the list
 * @bad: on error, the first request that was not posted
 *
 * Return: 0; EINVAL for an invalid work request; ENOMEM if the queue is full;
 * EIO if the device is gone.
 */
int arx_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad)
{
	return arx_rq_post(&to_arx_srq(ibsrq)->rq, wr, bad);
}
