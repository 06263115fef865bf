// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive queues, of a QP or shared: taking of receive WQEs, SRQ verbs. */

#include <linux/uaccess.h>

#include "compat.h"
#include "recvq.h"
#include "trace.h"

static int arx_recvq_ring(struct arx_ring *ring, u32 max_wr, u32 max_sge,
			  struct ib_ucontext *uctx, struct arx_ring_info *info)
{
	return arx_ring_create(ring, max_wr, sizeof(struct arx_recv_wqe) +
			       max_sge * sizeof(struct arx_sge), uctx, info);
}

/**
 * arx_recvq_init - create an empty receive queue
 * @q: to initialise
 * @max_wr: minimum number of WQEs, not 0
 * @max_sge: maximum number of SGEs of each, at most ARX_MAX_SGE
 * @uctx: of an application, which then fills the queue, or NULL
 * @info: receives the position for the application's mapping
 *
 * Context: may sleep.
 * Return: 0, -EINVAL or -ENOMEM.
 */
int arx_recvq_init(struct arx_recvq *q, u32 max_wr, u32 max_sge,
		   struct ib_ucontext *uctx, struct arx_ring_info *info)
{
	spin_lock_init(&q->lock);
	spin_lock_init(&q->post_lock);
	q->cons = 0;
	q->prod = 0;
	q->max_sge = max_sge;
	q->limit = 0;
	q->failed = false;
	return arx_recvq_ring(&q->ring, max_wr, max_sge, uctx, info);
}

/**
 * arx_recvq_cleanup - free a receive queue
 * @q: no taker and no poster uses it any more
 *
 * Context: may sleep.
 */
void arx_recvq_cleanup(struct arx_recvq *q)
{
	arx_ring_destroy(&q->ring);
}

/* Copy a WQE that an application may be writing, and check the copy. */
static int arx_recvq_copy(const struct arx_recvq *q, struct arx_rwqe *to)
{
	const struct arx_recv_wqe *wqe = arx_ring_entry(&q->ring, q->cons);
	u64 length = 0;
	u32 i;

	to->wr_id = READ_ONCE(wqe->wr_id);
	to->num_sge = READ_ONCE(wqe->num_sge);
	to->length = 0;
	if (to->num_sge > q->max_sge)
		return -EINVAL;

	memcpy(to->sge, wqe + 1, to->num_sge * sizeof(to->sge[0]));
	barrier();	/* from here on only the copy is used, not the ring */
	for (i = 0; i < to->num_sge; i++)
		length += to->sge[i].length;
	if (length > ARX_MAX_MSG)
		return -EINVAL;
	to->length = length;
	return 0;
}

/**
 * arx_recvq_take - take the oldest receive WQE
 * @q: the queue
 * @wqe: receives the WQE
 * @news: receives what to report to an SRQ's owner
 *
 * Context: bottom halves off.
 * Return: 0; -ENOENT if the queue is empty; -EINVAL if the WQE is malformed: it
 * has been taken, and its wr_id is valid; -EIO if the ring is malformed, now or
 * since an earlier call: nothing has been taken.
 */
int arx_recvq_take(struct arx_recvq *q, struct arx_rwqe *wqe,
		   enum arx_recvq_news *news)
{
	u32 pending;
	int err;

	*news = ARX_RECVQ_NO_NEWS;
	spin_lock(&q->lock);
	pending = arx_ring_pending(&q->ring, q->cons);
	if (pending > arx_ring_entries(&q->ring) && !q->failed) {
		q->failed = true;
		*news = ARX_RECVQ_FAILED;
	}
	if (!pending || q->failed) {
		err = q->failed ? -EIO : -ENOENT;
		wqe->num_sge = 0;
		wqe->length = 0;
		goto unlock;
	}

	err = arx_recvq_copy(q, wqe);
	wqe->nr = ++q->cons;
	arx_ring_consume(&q->ring, q->cons);
	if (pending - 1 < q->limit) {
		q->limit = 0;
		*news = ARX_RECVQ_LIMIT_REACHED;
	}
unlock:
	spin_unlock(&q->lock);
	return err;
}

static void arx_recvq_write(struct arx_recvq *q, const struct ib_recv_wr *wr)
{
	struct arx_recv_wqe *wqe = arx_ring_entry(&q->ring, q->prod);
	struct arx_sge *sge = (struct arx_sge *)(wqe + 1);
	int i;

	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		sge[i].addr = wr->sg_list[i].addr;
		sge[i].length = wr->sg_list[i].length;
		sge[i].lkey = wr->sg_list[i].lkey;
	}
	arx_ring_produce(&q->ring, ++q->prod);
}

/**
 * arx_recvq_post - post receives of a kernel consumer
 * @q: the queue
 * @wr: list
 * @bad: receives the first request that was not posted
 *
 * Context: any.
 * Return: 0, -EINVAL for too many SGEs or an application's queue, -ENOMEM if
 * the queue is full.
 */
int arx_recvq_post(struct arx_recvq *q, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&q->post_lock, flags);
	for (; wr; wr = wr->next) {
		if (wr->num_sge < 0 || wr->num_sge > q->max_sge)
			err = -EINVAL;
		else if (arx_ring_full(&q->ring, q->prod))
			err = -ENOMEM;
		if (err) {
			*bad = wr;
			break;
		}
		arx_recvq_write(q, wr);
	}
	spin_unlock_irqrestore(&q->post_lock, flags);
	return err;
}

/**
 * arx_recvq_reset - discard posted WQEs
 * @q: queue
 *
 * Context: process, or bottom halves off.
 */
void arx_recvq_reset(struct arx_recvq *q)
{
	spin_lock_bh(&q->lock);
	q->cons += arx_ring_pending(&q->ring, q->cons);
	arx_ring_consume(&q->ring, q->cons);
	q->failed = false;
	spin_unlock_bh(&q->lock);
}

/**
 * arx_srq_event - report an event to an SRQ's owner
 * @srq: its SRQ
 * @type: the event
 *
 * Context: any.
 */
void arx_srq_event(struct arx_srq *srq, enum ib_event_type type)
{
	struct ib_event event = {
		.device = srq->ib.device,
		.element.srq = &srq->ib,
		.event = type,
	};

	trace_arx_event(srq->ib.device, srq->id.nr, type);
	if (srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
}

/**
 * arx_srq_find - an XRC SRQ by its number
 * @dev: device
 * @xrcd: XRC domain of the QP that received the number
 * @srqn: any value, from the wire
 *
 * Context: in a section; the SRQ, its PD and its CQ are valid to the end of it.
 * Return: the SRQ, or NULL if there is none in this domain.
 */
struct arx_srq *arx_srq_find(struct arx_dev *dev, const struct ib_xrcd *xrcd,
			     u32 srqn)
{
	struct arx_id *id = arx_ids_find(&dev->srqs, srqn);
	struct arx_srq *srq;

	if (!id)
		return NULL;
	srq = container_of(id, struct arx_srq, id);
	if (srq->ib.srq_type != IB_SRQT_XRC || srq->ib.ext.xrc.xrcd != xrcd)
		return NULL;
	return srq;
}

/*
 * No message finds the SRQ any more, and none still uses it. A look-up reads
 * the numbers of SRQs beside the one that it looks for, so the wait is not for
 * SRQs of XRC only.
 */
static void arx_srq_withdraw(struct arx_srq *srq)
{
	arx_ids_remove(&to_arx_dev(srq->ib.device)->srqs, &srq->id);
	arx_section_wait();
}

/**
 * arx_create_srq - verb
 * @ib: the SRQ, allocated by the core
 * @init: requested attributes; the limit is ignored and off at first; receives
 *	the granted attributes
 * @udata: of an application, else NULL
 *
 * Return: 0, -EINVAL for values out of range, -EOPNOTSUPP for other types,
 * -ENOMEM, -ENOSPC.
 */
int arx_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *init,
		   struct ib_udata *udata)
{
	struct arx_dev *dev = to_arx_dev(ib->device);
	struct arx_create_srq_resp resp = {};
	struct arx_srq *srq = to_arx_srq(ib);
	struct ib_srq_attr *attr = &init->attr;
	int err;

	if (init->srq_type != IB_SRQT_BASIC && init->srq_type != IB_SRQT_XRC)
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > ARX_MAX_QP_WR ||
	    attr->max_sge > ARX_MAX_SGE)
		return -EINVAL;

	err = arx_object_begin(ib->device, ARX_KIND_SRQ);
	if (err)
		return err;
	err = arx_recvq_init(&srq->q, attr->max_wr, max(1U, attr->max_sge),
			     arx_udata_to_ucontext(udata), &resp.ring);
	if (err)
		goto end;
	attr->max_wr = arx_ring_entries(&srq->q.ring);
	attr->max_sge = srq->q.max_sge;
	attr->srq_limit = 0;

	err = arx_ids_add(&dev->srqs, &srq->id);
	if (err)
		goto cleanup;
	if (init->srq_type == IB_SRQT_XRC)
		ib->ext.xrc.srq_num = srq->id.nr;
	if (udata) {
		resp.srqn = srq->id.nr;
		err = ib_respond_udata(udata, resp);
		if (err)
			goto remove;
	}
	return 0;

remove:
	arx_srq_withdraw(srq);
cleanup:
	arx_recvq_cleanup(&srq->q);
end:
	arx_object_end(ib->device, ARX_KIND_SRQ);
	return err;
}

/*
 * Make a ring for the next size, and report it to the application. It replaces
 * a prepared ring that was never used. The command has no response, so the
 * application's request has an address for it.
 */
static int arx_srq_prepare(struct arx_srq *srq, u32 max_wr,
			   struct ib_udata *udata, u64 resp_addr)
{
	struct arx_ring_info info = {};
	struct arx_ring ring;
	int err;

	err = arx_recvq_ring(&ring, max_wr, srq->q.max_sge,
			     arx_udata_to_ucontext(udata), &info);
	if (err)
		return err;

	if (copy_to_user(u64_to_user_ptr(resp_addr), &info, sizeof(info))) {
		arx_ring_destroy(&ring);
		return -EFAULT;
	}
	arx_ring_offer(&srq->next, &ring, &srq->q.lock);
	return 0;
}

/*
 * Continue in another ring with the same index. The application has written its
 * posted WQEs there, from that index on at least, so there is nothing to copy.
 */
static int arx_recvq_move(struct arx_ring *from, struct arx_ring *to)
{
	struct arx_recvq *q = container_of(from, struct arx_recvq, ring);

	lockdep_assert_held(&q->lock);
	if (arx_ring_pending(to, q->cons) > arx_ring_entries(to))
		return -EINVAL;

	to->hdr->flags = from->hdr->flags;
	arx_ring_consume(to, q->cons);
	return 0;
}

static int arx_srq_resize(struct arx_srq *srq, u32 max_wr,
			  struct ib_udata *udata)
{
	struct arx_modify_srq_req req;
	int err;

	if (!udata)
		return -EINVAL;
	err = ib_copy_validate_udata_in(udata, req, reserved_60);
	if (err)
		return err;

	switch (req.step) {
	case ARX_RESIZE_PREPARE:
		return arx_srq_prepare(srq, max_wr, udata, req.resp_addr);
	case ARX_RESIZE_COMMIT:
		return arx_ring_replace(&srq->q.ring, &srq->next, &srq->q.lock,
					arx_recvq_move);
	default:
		return -EINVAL;
	}
}

static u32 arx_srq_waiting(const struct arx_srq *srq)
{
	return arx_ring_pending(&srq->q.ring, srq->q.cons);
}

/*
 * 11.2.5.3: if the queue is below the limit when it is armed, send the event at
 * once.
 */
static void arx_srq_arm(struct arx_srq *srq, u32 limit)
{
	bool reached;

	spin_lock_bh(&srq->q.lock);
	reached = arx_srq_waiting(srq) < limit;
	srq->q.limit = reached ? 0 : limit;
	spin_unlock_bh(&srq->q.lock);

	if (reached)
		arx_srq_event(srq, IB_EVENT_SRQ_LIMIT_REACHED);
}

/**
 * arx_modify_srq - verb
 * @ib: SRQ
 * @attr: requested attributes
 * @mask: attributes to change
 * @udata: of an application, which does not post during the second step of a
 *	resize; else NULL
 *
 * Context: may sleep.
 * Return: 0, -EINVAL for values out of range, for a size that does not hold the
 * posted WQEs, or for a kernel consumer's SRQ, -ENOMEM, -EFAULT. On failure the
 * SRQ is unchanged.
 */
int arx_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct arx_srq *srq = to_arx_srq(ib);
	u32 max_wr = arx_ring_entries(&srq->q.ring);
	int err;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EOPNOTSUPP;
	if (mask & IB_SRQ_MAX_WR) {
		max_wr = attr->max_wr;
		if (!max_wr || max_wr > ARX_MAX_QP_WR)
			return -EINVAL;
	}
	if (mask & IB_SRQ_LIMIT && attr->srq_limit > max_wr)
		return -EINVAL;

	if (mask & IB_SRQ_MAX_WR) {
		err = arx_srq_resize(srq, max_wr, udata);
		if (err)
			return err;
	}
	if (mask & IB_SRQ_LIMIT)
		arx_srq_arm(srq, attr->srq_limit);
	return 0;
}

/**
 * arx_query_srq - verb
 * @ib: SRQ
 * @attr: receives its attributes
 *
 * Return: 0.
 */
int arx_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	struct arx_srq *srq = to_arx_srq(ib);

	spin_lock_bh(&srq->q.lock);
	attr->max_wr = arx_ring_entries(&srq->q.ring);
	attr->max_sge = srq->q.max_sge;
	attr->srq_limit = srq->q.limit;
	spin_unlock_bh(&srq->q.lock);
	return 0;
}

/**
 * arx_destroy_srq - verb
 * @ib: no QP was created with it
 * @udata: unused
 *
 * A message of XRC that is in progress finds no SRQ with its next packet. The
 * receive WQE that it has taken never completes, as the WQEs that are still
 * posted.
 *
 * Context: may sleep.
 * Return: 0.
 */
int arx_destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	struct arx_srq *srq = to_arx_srq(ib);

	arx_srq_withdraw(srq);
	arx_ring_destroy(&srq->next);
	arx_recvq_cleanup(&srq->q);
	arx_object_end(ib->device, ARX_KIND_SRQ);
	return 0;
}

/**
 * arx_post_srq_recv - verb of kernel consumers
 * @ib: SRQ
 * @wr: list
 * @bad: receives the first request that was not posted
 *
 * Context: any.
 * Return: as arx_recvq_post(); -EINVAL for an application's SRQ, see
 * arx_post_send().
 */
int arx_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	if (ib->uobject) {
		*bad = wr;
		return -EINVAL;
	}
	return arx_recvq_post(&to_arx_srq(ib)->q, wr, bad);
}
