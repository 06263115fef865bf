// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: creation, states (IBA 10.3), posting by kernel consumers,
 * destruction.
 */

#include <linux/memcontrol.h>
#include <linux/overflow.h>
#include <net/sock.h>

#include "cc.h"
#include "compat.h"
#include "completer.h"
#include "congestion.h"
#include "cq.h"
#include "order.h"
#include "port.h"
#include "rdatomic.h"
#include "requester.h"
#include "responder.h"
#include "schedule.h"
#include "send.h"
#include "sendwr.h"
#include "sock.h"
#include "state.h"
#include "swqes.h"
#include "verbs.h"
#include "watch.h"
#include "worker.h"

static void arx_qp_work(struct work_struct *work)
{
	struct arx_qp *qp = container_of(work, struct arx_qp, work);

	if (arx_qp_has_requester(qp)) {
		arx_completer_continue(qp);
		arx_requester_run(qp);
	}
	if (arx_qp_has_responder(qp))
		arx_responder_go_on(qp);
}

static void arx_qp_grow(struct work_struct *grow)
{
	struct arx_qp *qp = container_of(grow, struct arx_qp, grow);

	if (!arx_swqes_grow(qp))
		return;
	local_bh_disable();
	arx_requester_run(qp);
	local_bh_enable();
}

static void arx_qp_move(struct work_struct *move)
{
	struct arx_qp *qp = container_of(move, struct arx_qp, move);

	arx_qp_work(&qp->work);
}

/* No CPU is inside requester, responder or completer until unlock. */
static void arx_qp_lock_all(struct arx_qp *qp)
	__acquires(&qp->req.lock)
	__acquires(&qp->resp.lock)
	__acquires(&qp->comp.lock)
{
	local_bh_disable();
	spin_lock(&qp->req.lock);
	spin_lock(&qp->resp.lock);
	spin_lock(&qp->comp.lock);
}

static void arx_qp_unlock_all(struct arx_qp *qp)
	__releases(&qp->comp.lock)
	__releases(&qp->resp.lock)
	__releases(&qp->req.lock)
{
	spin_unlock(&qp->comp.lock);
	spin_unlock(&qp->resp.lock);
	spin_unlock(&qp->req.lock);
	/* A doorbell that found the requester's lock taken has set a bit. */
	if (arx_qp_has_requester(qp))
		arx_requester_run(qp);
	local_bh_enable();
}

/**
 * struct arx_qp_kind - properties of a type of QPs
 * @service: enum arx_service
 * @halves: as in struct arx_qp
 * @acked: as in struct arx_qp
 * @create_flags: enum ib_qp_create_flags that it may have
 */
struct arx_qp_kind {
	u8 service;
	u8 halves;
	bool acked;
	u32 create_flags;
};

#define ARX_QP_BOTH	(ARX_QP_REQUESTER | ARX_QP_RESPONDER)

static const struct arx_qp_kind arx_qp_kinds[] = {
	[IB_QPT_RC]	= { ARX_SERVICE_RC, ARX_QP_BOTH, true },
	[IB_QPT_UC]	= { ARX_SERVICE_UC, ARX_QP_BOTH },
	[IB_QPT_UD]	= { ARX_SERVICE_UD, ARX_QP_BOTH, false,
			    IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK },
	[IB_QPT_GSI]	= { ARX_SERVICE_UD, ARX_QP_BOTH },
	[IB_QPT_XRC_INI] = { ARX_SERVICE_XRC, ARX_QP_REQUESTER, true },
	[IB_QPT_XRC_TGT] = { ARX_SERVICE_XRC, ARX_QP_RESPONDER, true },
};

/* NULL: arx has no such QPs. */
static const struct arx_qp_kind *arx_qp_kind(enum ib_qp_type type)
{
	if (type >= ARRAY_SIZE(arx_qp_kinds) || !arx_qp_kinds[type].halves)
		return NULL;
	return &arx_qp_kinds[type];
}

static int arx_qp_check_requester(const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (!init->send_cq || cap->max_send_wr > ARX_MAX_QP_WR ||
	    cap->max_send_sge > ARX_MAX_SGE ||
	    cap->max_inline_data > ARX_MAX_INLINE)
		return -EINVAL;
	return 0;
}

static int arx_qp_check_responder(const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (init->qp_type == IB_QPT_XRC_TGT)
		return init->xrcd ? 0 : -EINVAL;
	if (!init->recv_cq)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr > ARX_MAX_QP_WR ||
			   cap->max_recv_sge > ARX_MAX_SGE))
		return -EINVAL;
	return 0;
}

static int arx_qp_check_init(const struct arx_qp_kind *kind,
			     const struct ib_qp_init_attr *init)
{
	int err = 0;

	if (init->create_flags & ~kind->create_flags)
		return -EOPNOTSUPP;
	if (kind->halves & ARX_QP_REQUESTER)
		err = arx_qp_check_requester(init);
	if (!err && kind->halves & ARX_QP_RESPONDER)
		err = arx_qp_check_responder(init);
	return err;
}

static int arx_qp_create_sq(struct arx_qp *qp, struct ib_qp_cap *cap,
			    struct ib_ucontext *uctx,
			    struct arx_ring_info *info)
{
	u32 entries = roundup_pow_of_two(max(1U, cap->max_send_wr));
	u32 body = max_t(u32, cap->max_send_sge * sizeof(struct arx_sge),
			 cap->max_inline_data);
	u32 stride = ALIGN(sizeof(struct arx_send_wqe) + body, ARX_WQE_ALIGN);
	int err;

	if (!arx_qp_has_requester(qp)) {
		cap->max_send_wr = 0;
		cap->max_send_sge = 0;
		cap->max_inline_data = 0;
		return 0;
	}
	qp->max_send_sge = cap->max_send_sge;
	qp->max_inline = cap->max_inline_data ?
			 stride - sizeof(struct arx_send_wqe) : 0;
	qp->swqe_size = SMP_CACHE_ALIGN(struct_size_t(struct arx_swqe, sge,
						      qp->max_send_sge));
	err = arx_swqes_init(qp, entries);
	if (err)
		return err;
	err = arx_ring_create(&qp->sq, entries, stride, uctx, info);
	if (err) {
		kfree(qp->swqes);
		return err;
	}
	if (uctx)
		qp->memcg = get_mem_cgroup_from_mm(current->mm);
	cap->max_send_wr = entries;
	cap->max_inline_data = qp->max_inline;
	return 0;
}

/* Drop the references of sends that will never complete. */
static void arx_qp_drop_sends(struct arx_qp *qp)
{
	u32 i;

	for (i = qp->comp.done; (s32)(qp->req.fetched - i) > 0; i++)
		arx_sendwr_release(arx_qp_swqe(qp, i));

	if (qp->ib.uobject)
		return;
	/* A kernel consumer's WQE has its references since it was posted. */
	for (i = qp->req.fetched; i != qp->sq_prod; i++)
		arx_sendwr_unwrite(qp, arx_ring_entry(&qp->sq, i));
}

static void arx_qp_destroy_sq(struct arx_qp *qp)
{
	if (!arx_qp_has_requester(qp))
		return;
	arx_qp_drop_sends(qp);
	arx_ring_destroy(&qp->sq);
	kvfree(qp->swqes);
	mem_cgroup_put(qp->memcg);
}

static int arx_qp_create_rq(struct arx_qp *qp, struct ib_qp_cap *cap,
			    struct ib_ucontext *uctx,
			    struct arx_ring_info *info)
{
	int err;

	if (!arx_qp_has_rq(qp)) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
		return 0;
	}
	err = arx_recvq_init(&qp->rq, max(1U, cap->max_recv_wr),
			     max(1U, cap->max_recv_sge), uctx, info);
	if (err)
		return err;
	cap->max_recv_wr = arx_ring_entries(&qp->rq.ring);
	cap->max_recv_sge = qp->rq.max_sge;
	return 0;
}

static void arx_qp_destroy_rq(struct arx_qp *qp)
{
	if (arx_qp_has_rq(qp))
		arx_recvq_cleanup(&qp->rq);
}

/* Where all messages of the QP are received, unless it is a QP of XRC. */
static void arx_qp_init_target(struct arx_qp *qp,
			       const struct ib_qp_init_attr *init)
{
	struct arx_target *target = &qp->resp.target;

	if (init->qp_type == IB_QPT_XRC_TGT)
		return;
	target->srq = init->srq ? to_arx_srq(init->srq) : NULL;
	target->q = target->srq ? &target->srq->q : &qp->rq;
	target->cq = to_arx_cq(init->recv_cq);
	target->pd = target->srq ? target->srq->ib.pd : qp->ib.pd;
	target->rkey_pd = qp->ib.pd;
}

static void arx_qp_init(struct arx_qp *qp, const struct arx_qp_kind *kind,
			const struct ib_qp_init_attr *init)
{
	qp->service = kind->service;
	qp->halves = kind->halves;
	qp->acked = kind->acked;
	qp->state = IB_QPS_RESET;
	mutex_init(&qp->modify_lock);
	spin_lock_init(&qp->state_lock);
	spin_lock_init(&qp->post_lock);
	spin_lock_init(&qp->resp.lock);
	spin_lock_init(&qp->comp.lock);
	arx_requester_init(qp);
	arx_rdatomic_reset(&qp->resp);
	arx_watch_init(qp);
	arx_order_init(qp);
	arx_qp_schedule_init(qp);
	INIT_LIST_HEAD(&qp->pd_link);
	INIT_WORK(&qp->work, arx_qp_work);
	INIT_WORK(&qp->move, arx_qp_move);
	INIT_WORK(&qp->grow, arx_qp_grow);
	qp->mtu = arx_port_mtu(arx_qp_dev(qp));
	qp->stats = arx_qp_dev(qp)->stats;
	qp->sq_sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->block_self_mcast = init->create_flags &
			   IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	if (arx_qp_has_requester(qp))
		qp->scq = to_arx_cq(init->send_cq);
	if (arx_qp_has_responder(qp))
		arx_qp_init_target(qp, init);
}

/* Packets can find the QP from here on. QP1 is not in the table. */
static int arx_qp_publish(struct arx_qp *qp)
{
	struct arx_dev *dev = arx_qp_dev(qp);
	int err;

	if (qp->ib.qp_type != IB_QPT_GSI) {
		err = arx_ids_add(&arx_qps, &qp->id);
	} else {
		qp->id.nr = 1;
		err = cmpxchg((__force struct arx_qp **)&dev->gsi, NULL, qp) ?
		      -EBUSY : 0;
	}
	qp->ib.qp_num = qp->id.nr;
	return err;
}

static void arx_qp_withdraw(struct arx_qp *qp)
{
	if (qp->ib.qp_type == IB_QPT_GSI)
		RCU_INIT_POINTER(arx_qp_dev(qp)->gsi, NULL);
	else
		arx_ids_remove(&arx_qps, &qp->id);
}

/* From here on the ends of AHs concern the QP. */
static void arx_qp_join_pd(struct arx_qp *qp)
{
	struct arx_pd *pd = to_arx_pd(qp->ib.pd);

	mutex_lock(&pd->lock);
	list_add(&qp->pd_link, &pd->datagram_qps);
	mutex_unlock(&pd->lock);
}

static void arx_qp_leave_pd(struct arx_qp *qp)
{
	struct arx_pd *pd;

	if (list_empty(&qp->pd_link))
		return;
	pd = to_arx_pd(qp->ib.pd);
	mutex_lock(&pd->lock);
	list_del_init(&qp->pd_link);
	mutex_unlock(&pd->lock);
}

/*
 * Copy the WQEs that name AHs of a domain. WQEs for which arx_requester_take()
 * finds no room stay behind. A QP that is being destroyed waits for the mutex.
 */
static void arx_qp_take_datagrams(struct ib_pd *ib)
{
	struct arx_pd *pd = to_arx_pd(ib);
	struct arx_qp *qp;

	mutex_lock(&pd->lock);
	list_for_each_entry(qp, &pd->datagram_qps, pd_link) {
		if (arx_ring_pending(&qp->sq,
				     arx_published(&qp->req.fetched)))
			arx_requester_take(qp);
		cond_resched();
	}
	mutex_unlock(&pd->lock);
}

/**
 * arx_destroy_ah - verb
 * @ib: AH; the core frees it afterwards
 * @flags: whether it may sleep; it does for applications
 *
 * An application may destroy an AH as soon as it has posted the WQEs that name
 * the AH: they must be sent nevertheless. So they are copied first; the copies
 * hold the address vector. A kernel consumer's WQEs hold it themselves.
 *
 * Return: 0.
 */
int arx_destroy_ah(struct ib_ah *ib, u32 flags)
{
	if (ib->uobject)
		arx_qp_take_datagrams(ib->pd);
	arx_ah_destroy(ib);
	return 0;
}

static int arx_qp_create(struct arx_qp *qp, const struct arx_qp_kind *kind,
			 struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct ib_ucontext *uctx = arx_udata_to_ucontext(udata);
	struct arx_create_qp_resp resp = {};
	int err;

	err = arx_qp_check_init(kind, init);
	if (err)
		return err;

	err = arx_object_begin(qp->ib.device, ARX_KIND_QP);
	if (err)
		return err;
	arx_qp_init(qp, kind, init);
	arx_worker_add(qp, uctx ? to_arx_ucontext(uctx)->worker : NULL);
	err = arx_sock_init(qp);
	if (err)
		goto end;
	arx_keep_init(&qp->resp.kept, arx_qp_dev(qp), qp->tx_sk);
	arx_keep_init(&qp->comp.kept, arx_qp_dev(qp), qp->tx_sk);
	err = arx_qp_create_sq(qp, &init->cap, uctx, &resp.sq);
	if (err)
		goto cleanup_sock;
	err = arx_qp_create_rq(qp, &init->cap, uctx, &resp.rq);
	if (err)
		goto destroy_sq;
	if (udata) {
		err = ib_respond_udata(udata, resp);
		if (err)
			goto destroy_rq;
	}
	err = arx_qp_publish(qp);
	if (err)
		goto destroy_rq;
	if (udata && qp->service == ARX_SERVICE_UD)
		arx_qp_join_pd(qp);
	return 0;

destroy_rq:
	arx_qp_destroy_rq(qp);
destroy_sq:
	arx_qp_destroy_sq(qp);
cleanup_sock:
	arx_sock_forget(qp);
	arx_sock_cleanup(qp);
end:
	arx_object_end(qp->ib.device, ARX_KIND_QP);
	return err;
}

/**
 * arx_create_qp - verb
 * @ib: the QP, allocated by the core
 * @init: requested attributes; receives the granted ones
 * @udata: of an application, else NULL; always NULL for IB_QPT_XRC_TGT
 *
 * Return: 0, -EINVAL for values out of range, -EOPNOTSUPP for other types and
 * for an IB_QPT_XRC_INI of a kernel consumer, whose work requests could not
 * name an SRQ, -ENOMEM.
 */
int arx_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *init,
		  struct ib_udata *udata)
{
	const struct arx_qp_kind *kind = arx_qp_kind(init->qp_type);

	if (!kind || (init->qp_type == IB_QPT_XRC_INI && !udata))
		return -EOPNOTSUPP;
	return arx_qp_create(to_arx_qp(ib), kind, init, udata);
}

/* Posted sends are discarded. All locks held. */
static void arx_qp_reset_requester(struct arx_qp *qp)
{
	struct arx_req *req = &qp->req;
	struct arx_comp *comp = &qp->comp;

	arx_watch_stop(qp);
	arx_qp_drop_sends(qp);
	WRITE_ONCE(qp->full, false);
	req->fetched = READ_ONCE(qp->sq.hdr->prod);
	req->sent = req->fetched;
	req->offset = 0;
	req->unacked = 0;
	req->rd_sent = 0;
	req->rd_psns = 0;
	req->waiting = false;
	req->failed = false;
	req->flushes = false;
	req->drained = false;
	req->credit = ARX_SHARE_BYTES;
	req->out.trial = (struct arx_trial) {};
	comp->done = req->fetched;
	comp->reported = req->fetched;
	comp->rd_done = 0;
	comp->rd_psns = 0;
	comp->rnr_wait = false;
	comp->rnr_row = 0;
	comp->held = 0;
	comp->gap = false;
	req->rewinds = comp->rewinds;
	req->fills = comp->fills;
	req->filling = false;
	req->part = false;
	WRITE_ONCE(req->paging.job, NULL);
	comp->reports = false;
	comp->has_later = false;
	kfree(comp->loss);
	WRITE_ONCE(comp->loss, NULL);
	comp->there = 0;
	WRITE_ONCE(comp->rtt, 0);
	arx_watch_forget(qp);
	arx_ring_consume(&qp->sq, comp->done);
}

/* Posted receives are discarded. All locks held. */
static void arx_qp_reset_responder(struct arx_qp *qp)
{
	struct arx_resp *resp = &qp->resp;

	resp->nak_sent = false;
	resp->gap = false;
	resp->closing = false;
	resp->reports = false;
	resp->dead = false;
	resp->established = false;
	resp->flushed = false;
	resp->read_at = 0;
	resp->in_message = false;
	resp->have_rwqe = false;
	resp->msn = 0;
	arx_rdatomic_reset(resp);
	WRITE_ONCE(resp->paging.job, NULL);
	resp->refused = false;
	resp->ack_due = false;
	resp->unacked = 0;
	resp->out.trial = (struct arx_trial) {};
	if (arx_qp_has_rq(qp)) {
		WRITE_ONCE(qp->rq.ring.hdr->flags, 0);
		arx_recvq_reset(&qp->rq);
	}
}

/* Set the initial state. All locks held. */
static void arx_qp_reset(struct arx_qp *qp)
{
	if (qp->comp.cc)
		arx_sock_pace(qp, 0);
	arx_congestion_forget(qp);
	if (arx_qp_has_requester(qp))
		arx_qp_reset_requester(qp);
	if (arx_qp_has_responder(qp))
		arx_qp_reset_responder(qp);
}

/*
 * Check attributes for values that this device does not support in any state.
 */
static int arx_qp_check_attr(struct arx_qp *qp, const struct ib_qp_attr *attr,
			     int mask)
{
	if (mask & (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE))
		return -EOPNOTSUPP;
	if (mask & IB_QP_PORT && attr->port_num != ARX_PORT)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU &&
	    (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096 ||
	     ib_mtu_enum_to_int(attr->path_mtu) > arx_port_mtu(arx_qp_dev(qp))))
		return -EINVAL;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC &&
	    attr->max_rd_atomic > ARX_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC &&
	    attr->max_dest_rd_atomic > ARX_MAX_RD_ATOMIC)
		return -EINVAL;
	if ((mask & IB_QP_TIMEOUT && attr->timeout > 31) ||
	    (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31) ||
	    (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7))
		return -EINVAL;
	return 0;
}

/**
 * struct arx_qp_change - memory for modify_qp, allocated before locking;
 *	afterwards memory to be freed
 * @av: address vector
 * @cc: state of its static rate
 * @rd: responder resources
 * @replies: the responder's responses
 * @kept: what the stages kept before a reset
 */
struct arx_qp_change {
	struct arx_av *av;
	struct arx_cc *cc;
	struct arx_rd *rd;
	struct arx_reply *replies;
	struct rb_root kept[2];
};

static int arx_qp_prepare(struct arx_qp *qp, const struct ib_qp_attr *attr,
			  int mask, struct arx_qp_change *change)
{
	u32 dest = mask & IB_QP_DEST_QPN ? attr->dest_qp_num :
					   qp->attr.dest_qp_num;

	if (mask & IB_QP_AV) {
		change->av = arx_av_create(arx_qp_dev(qp), NULL, &attr->ah_attr,
					   qp->id.nr, dest, GFP_KERNEL_ACCOUNT);
		if (IS_ERR(change->av)) {
			int err = PTR_ERR(change->av);

			change->av = NULL;
			return err;
		}
	}
	if (change->av && change->av->mbps) {
		change->cc = kzalloc(sizeof(*change->cc), GFP_KERNEL_ACCOUNT);
		if (!change->cc)
			return -ENOMEM;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic) {
		u32 n = roundup_pow_of_two(attr->max_dest_rd_atomic);

		change->rd = kcalloc(n, sizeof(*change->rd),
				     GFP_KERNEL_ACCOUNT);
		change->replies = kcalloc(2 * n, sizeof(*change->replies),
					  GFP_KERNEL_ACCOUNT);
		if (!change->rd || !change->replies)
			return -ENOMEM;
	}
	return 0;
}

static void arx_qp_discard(struct arx_qp_change *change)
{
	if (change->av)
		arx_av_put(change->av);
	kfree(change->cc);
	kfree(change->rd);
	kfree(change->replies);
	arx_keep_free_all(&change->kept[0]);
	arx_keep_free_all(&change->kept[1]);
}

static void arx_qp_apply_simple(struct arx_qp *qp,
				const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *to = &qp->attr;

	/* Requested with each transition to SQD. */
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_SQD)
		to->en_sqd_async_notify = mask & IB_QP_EN_SQD_ASYNC_NOTIFY &&
					  attr->en_sqd_async_notify;
	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PORT)
		to->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		to->qkey = attr->qkey;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = attr->dest_qp_num & ARX_QPN_MASK;
	if (mask & IB_QP_PATH_MTU) {
		to->path_mtu = attr->path_mtu;
		qp->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	}
}

/* All locks held. @change gets the replaced objects. */
static void arx_qp_apply(struct arx_qp *qp, const struct ib_qp_attr *attr,
			 int mask, struct arx_qp_change *change)
{
	arx_qp_apply_simple(qp, attr, mask);
	if (mask & IB_QP_AV) {
		arx_congestion_limit(qp, change->av->mbps, &change->cc);
		change->av = rcu_replace_pointer(qp->av, change->av, true);
		/* Nothing has arrived at the new address yet. */
		WRITE_ONCE(qp->tx_sk->sk_dst_pending_confirm, 0);
		qp->attr.ah_attr = attr->ah_attr;
		qp->attr.ah_attr.grh.sgid_attr = NULL;	/* the AV holds it */
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && qp->state == IB_QPS_INIT) {
		swap(qp->resp.rd, change->rd);
		swap(qp->resp.replies, change->replies);
		qp->resp.rd_size = attr->max_dest_rd_atomic ?
			roundup_pow_of_two(attr->max_dest_rd_atomic) : 0;
		arx_rdatomic_reset(&qp->resp);
		qp->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	}
	if (mask & IB_QP_RQ_PSN) {
		qp->attr.rq_psn = attr->rq_psn & ARX_PSN_MASK;
		qp->resp.epsn = qp->attr.rq_psn;
	}
	if (mask & IB_QP_SQ_PSN) {
		qp->attr.sq_psn = attr->sq_psn & ARX_PSN_MASK;
		qp->req.psn = qp->attr.sq_psn;
		qp->req.nxt = qp->attr.sq_psn;
		qp->req.end_psn = qp->attr.sq_psn;
		qp->comp.una = qp->attr.sq_psn;
	}
	qp->comp.retries_left = qp->attr.retry_cnt;
	qp->comp.rnr_left = qp->attr.rnr_retry;
}

/*
 * While the QP is in use, due responses and those that may be replayed must
 * stay.
 */
static bool arx_qp_resizes_history(const struct arx_qp *qp,
				   const struct ib_qp_attr *attr, int mask)
{
	return mask & IB_QP_MAX_DEST_RD_ATOMIC && qp->state != IB_QPS_INIT &&
	       attr->max_dest_rd_atomic != qp->attr.max_dest_rd_atomic;
}

/*
 * A kernel consumer may be posting. After its WQE arx_post_send() sees RESET
 * and posts no more: arx_qp_reset() then drops all posted WQEs.
 */
static void arx_qp_close_sends(struct arx_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->post_lock, flags);
	arx_qp_set_state(qp, IB_QPS_RESET);
	spin_unlock_irqrestore(&qp->post_lock, flags);
}

/*
 * 10.3.1, SQE to RTS: the WQE that failed is complete, and WQEs posted up to
 * now complete as flushed, whatever the requester has flushed so far.
 */
static void arx_qp_leave_sqe(struct arx_qp *qp)
{
	struct arx_req *req = &qp->req;

	req->failed = false;
	req->flush_end = READ_ONCE(qp->sq.hdr->prod);
	req->flushes = req->flush_end != req->sent;
}

/* The kind of congestion control that the device has for the QP's DSCP. */
static enum arx_cc_kind arx_qp_choose_cc(const struct arx_qp *qp)
{
	const struct arx_av *av = rcu_dereference_protected(qp->av, true);
	const struct arx_dev *dev = arx_qp_dev(qp);
	u32 choice = READ_ONCE(dev->cc_dscp[av->tos >> 2]);

	return choice ? choice - 1 : READ_ONCE(dev->cc);
}

static void arx_qp_enter(struct arx_qp *qp, enum ib_qp_state state)
{
	if (state == IB_QPS_RESET) {
		arx_send_give_back(qp);
		arx_qp_close_sends(qp);
		arx_qp_reset(qp);
	}
	if (state == IB_QPS_RTS && qp->state == IB_QPS_SQE)
		arx_qp_leave_sqe(qp);
	if (state == IB_QPS_RTS)
		qp->req.drained = false;
	if (state == IB_QPS_RTR && !arx_qp_is_connected(qp))
		qp->mtu = arx_port_mtu(arx_qp_dev(qp));
	if (state == IB_QPS_RTR && arx_qp_is_acked(qp))
		qp->cc = arx_qp_choose_cc(qp);
	arx_qp_set_state(qp, state);
	if (state == IB_QPS_ERR)
		arx_qp_schedule(qp);
}

/*
 * Flush a deferred ACK before the state change. The consumer may end the QP
 * because of a message that it has seen, and whose ACK waits for a softirq,
 * perhaps on another CPU. Without the ACK the peer would take the message for
 * lost. No lock held: the ACK may be for a QP of this machine.
 */
static void arx_qp_send_deferred_ack(struct arx_qp *qp)
{
	if (!arx_qp_has_responder(qp))
		return;
	arx_responder_end_hold(qp);
	arx_order_settle(qp);
}

/*
 * True if the state change needs the thread of the process. A QP in INIT may
 * fail. If there can be no thread, the process learns that before its QPs are
 * in use, and not when one of them enters ERR.
 */
static bool arx_qp_needs_worker(const struct ib_qp_attr *attr, int mask)
{
	return mask & IB_QP_STATE && (attr->qp_state == IB_QPS_INIT ||
				      attr->qp_state == IB_QPS_RTS);
}

/**
 * arx_modify_qp - verb
 * @ib: QP
 * @attr: new values
 * @mask: attributes to change
 * @udata: unused
 *
 * Return: 0, -EINVAL for a transition or value that is not allowed, -EOPNOTSUPP
 * for path migration, -ENOMEM, -EAGAIN if the application may not have more
 * threads.
 */
int arx_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata)
{
	struct arx_qp_change change = {};
	struct arx_qp *qp = to_arx_qp(ib);
	enum ib_qp_state cur, new;
	int err;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	err = arx_qp_check_attr(qp, attr, mask);
	if (err)
		return err;
	err = arx_qp_prepare(qp, attr, mask, &change);
	if (!err && arx_qp_needs_worker(attr, mask))
		err = arx_worker_start(qp->worker);
	if (err)
		goto discard;

	if (mask & IB_QP_STATE)
		arx_qp_send_deferred_ack(qp);
	mutex_lock(&qp->modify_lock);
	arx_qp_lock_all(qp);
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	new = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (cur != qp->state || arx_qp_resizes_history(qp, attr, mask) ||
	    !ib_modify_qp_is_ok(cur, new, ib->qp_type, mask)) {
		err = -EINVAL;
	} else {
		arx_qp_apply(qp, attr, mask, &change);
		arx_qp_enter(qp, new);
		if (new == IB_QPS_RESET) {
			change.kept[0] = arx_keep_withdraw(&qp->resp.kept);
			change.kept[1] = arx_keep_withdraw(&qp->comp.kept);
		}
	}
	arx_qp_unlock_all(qp);

	if (!err && new == IB_QPS_RESET)
		arx_completer_stop(qp);
	mutex_unlock(&qp->modify_lock);
discard:
	arx_qp_discard(&change);
	return err;
}

/*
 * 10.3.1 SQD: true if a message that was begun is not complete yet. Locks held.
 */
static bool arx_qp_draining(const struct arx_qp *qp)
{
	if (qp->state != IB_QPS_SQD)
		return false;
	return qp->req.offset || qp->comp.done != qp->req.sent ||
	       (arx_qp_is_acked(qp) && qp->req.psn != qp->req.nxt);
}

/**
 * arx_query_qp - verb
 * @ib: QP
 * @attr: receives its attributes, all of them
 * @mask: ignored
 * @init: receives the attributes of its creation
 *
 * Return: 0.
 */
int arx_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct arx_qp *qp = to_arx_qp(ib);

	arx_qp_lock_all(qp);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->rq_psn = qp->resp.epsn;
	attr->sq_psn = qp->req.end_psn;
	attr->sq_draining = arx_qp_draining(qp);
	arx_qp_unlock_all(qp);

	attr->port_num = ARX_PORT;
	if (arx_qp_has_requester(qp)) {
		attr->cap.max_send_wr = arx_ring_entries(&qp->sq);
		attr->cap.max_send_sge = qp->max_send_sge;
		attr->cap.max_inline_data = qp->max_inline;
	}
	if (arx_qp_has_rq(qp)) {
		attr->cap.max_recv_wr = arx_ring_entries(&qp->rq.ring);
		attr->cap.max_recv_sge = qp->rq.max_sge;
	}

	init->event_handler = ib->event_handler;
	init->qp_context = ib->qp_context;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	init->srq = ib->srq;
	init->cap = attr->cap;
	init->sq_sig_type = qp->sq_sig_all ? IB_SIGNAL_ALL_WR :
					     IB_SIGNAL_REQ_WR;
	init->qp_type = ib->qp_type;
	return 0;
}

/**
 * arx_destroy_qp - verb
 * @ib: QP; the core frees it afterwards
 * @udata: unused
 *
 * Order: a deferred ACK is sent. The reset state makes every stage stop by
 * itself. The QP leaves the table, so that no new user finds it. Once all
 * sections have been left, no earlier user is still inside. Then everything
 * that could start the QP again is ended: timers, the socket's wake-up, and
 * last the works that these may have queued. A work may queue itself or the
 * other work for responses that are due, so the works are disabled and not only
 * cancelled.
 *
 * Return: 0.
 */
int arx_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct arx_qp *qp = to_arx_qp(ib);
	struct arx_av *av;

	arx_qp_leave_pd(qp);
	arx_qp_send_deferred_ack(qp);
	arx_qp_lock_all(qp);
	arx_qp_set_state(qp, IB_QPS_RESET);
	arx_watch_stop(qp);
	arx_qp_unlock_all(qp);

	arx_qp_withdraw(qp);
	arx_send_give_back(qp);
	arx_worker_forget(qp);
	arx_sock_forget(qp);
	arx_section_wait();
	arx_completer_stop(qp);
	arx_watch_cancel(qp);
	disable_work_sync(&qp->grow);
	disable_work_sync(&qp->req.drain);
	disable_work_sync(&qp->resp.drain);
	disable_work_sync(&qp->move);
	disable_work_sync(&qp->work);
	disable_work_sync(&qp->late);
	arx_cq_settle(ib->send_cq);
	arx_cq_settle(ib->recv_cq);

	arx_keep_purge(&qp->resp.kept);
	arx_keep_purge(&qp->comp.kept);
	arx_sock_cleanup(qp);
	arx_qp_schedule_cancel(qp);
	arx_qp_destroy_sq(qp);
	arx_qp_destroy_rq(qp);
	kfree(qp->comp.loss);
	arx_congestion_forget(qp);
	av = rcu_dereference_protected(qp->av, true);
	if (av)
		arx_av_put(av);
	kfree(qp->resp.rd);
	kfree(qp->resp.replies);
	arx_object_end(ib->device, ARX_KIND_QP);
	return 0;
}

/* A slot is free once its WQE has completed, as for an application. */
static bool arx_qp_sends_full(const struct arx_qp *qp)
{
	return qp->sq_prod - arx_published(&qp->comp.done) > qp->sq.mask;
}

/**
 * arx_post_send - verb, kernel consumers
 * @ib: QP with a requester
 * @wr: requests
 * @bad: receives the first request that was not posted
 *
 * An application's QP is refused: its ring is mapped, so a request written here
 * would show kernel memory to the application (inline data, the AV's address).
 * The old write commands of uverbs call the verbs of kernel consumers. The
 * core's mask of commands keeps applications from them, but a driver may change
 * that mask.
 *
 * Context: any; with interrupts off the requester runs a little later.
 * Return: 0, -EINVAL, or -ENOMEM when the queue is full.
 */
int arx_post_send(struct ib_qp *ib, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad)
{
	struct arx_qp *qp = to_arx_qp(ib);
	unsigned long flags;
	int err = 0;

	if (qp->ib.uobject || !arx_qp_has_requester(qp)) {
		*bad = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&qp->post_lock, flags);
	for (; wr; wr = wr->next) {
		if (!arx_qp_may(qp, ARX_QP_SEND | ARX_QP_FLUSH))
			err = -EINVAL;
		if (!err && arx_qp_sends_full(qp))
			err = -ENOMEM;
		if (!err)
			err = arx_sendwr_write(qp, wr,
					       arx_ring_entry(&qp->sq,
							      qp->sq_prod));
		if (err) {
			*bad = wr;
			break;
		}
		qp->sq_prod++;
	}
	arx_ring_produce(&qp->sq, qp->sq_prod);
	spin_unlock_irqrestore(&qp->post_lock, flags);

	if (irqs_disabled())
		arx_qp_schedule(qp);
	else if (arx_requester_kick(qp))
		arx_qp_go_on(qp);
	return err;
}

/**
 * arx_post_recv - verb, kernel consumers
 * @ib: QP with a receive queue of its own
 * @wr: requests
 * @bad: receives the first request that was not posted
 *
 * An application's QP is refused, see arx_post_send().
 *
 * Context: any.
 * Return: 0, -EINVAL, or -ENOMEM when the queue is full.
 */
int arx_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad)
{
	struct arx_qp *qp = to_arx_qp(ib);
	int err;

	if (!arx_qp_has_rq(qp) || qp->ib.uobject ||
	    arx_qp_state(qp) == IB_QPS_RESET) {
		*bad = wr;
		return -EINVAL;
	}
	err = arx_recvq_post(&qp->rq, wr, bad);
	smp_mb(); /* orders the WQE before the state; pairs with the flush */
	if (arx_qp_may(qp, ARX_QP_FLUSH_RECV))
		arx_qp_schedule(qp);
	return err;
}
