// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The details of objects in "rdma resource show -dd".
 *
 * A request for details holds the object's memory, but the object may be
 * destroyed meanwhile. So these functions read only the object's own fields,
 * and not the memory to which fields point (the header of a ring, a WQE). The
 * page table of a region is an exception: the core destroys a region only when
 * no request reads the region's details. The functions take no lock, so one
 * value may be older than another.
 */

#include <linux/capability.h>
#include <net/netlink.h>
#include <rdma/restrack.h>

#include "cq.h"
#include "details.h"
#include "mr.h"
#include "qp.h"

/**
 * struct arx_detail - one line of a table of details
 * @name: "rdma" prints "drv_" before it
 * @value: of the object
 * @hex: "rdma" prints the value in hexadecimal
 * @secret: the value helps to forge packets: only CAP_NET_ADMIN gets it, as the
 *	core does with keys
 */
struct arx_detail {
	const char *name;
	u64 value;
	bool hex;
	bool secret;
};

static int arx_detail_put(struct sk_buff *msg, const struct arx_detail *d)
{
	if (d->hex)
		return rdma_nl_put_driver_u64_hex(msg, d->name, d->value);
	if (d->value > U32_MAX)
		return rdma_nl_put_driver_u64(msg, d->name, d->value);
	return rdma_nl_put_driver_u32(msg, d->name, d->value);
}

static int arx_details_put(struct sk_buff *msg, const struct arx_detail *d,
			   size_t n)
{
	bool admin = ns_capable_noaudit(&init_user_ns, CAP_NET_ADMIN);
	struct nlattr *table;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	for (; n; n--, d++) {
		if (d->secret && !admin)
			continue;
		if (arx_detail_put(msg, d)) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

/**
 * arx_fill_res_qp_entry - verb: details of a QP
 * @msg: message to user space
 * @ib: QP
 *
 * Return: 0 or -EMSGSIZE.
 */
int arx_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ib)
{
	const struct arx_qp *qp = to_arx_qp(ib);
	const struct arx_watch *watch = &qp->watch;
	const struct arx_comp *comp = &qp->comp;
	const struct arx_resp *resp = &qp->resp;
	const struct arx_req *req = &qp->req;
	u32 una = READ_ONCE(comp->una);
	u32 done = READ_ONCE(comp->done);
	const struct arx_detail details[] = {
		/* requester and completer */
		{ "sq_psn_acked", una, .secret = true },
		{ "sq_psn_next", READ_ONCE(req->psn), .secret = true },
		{ "sq_psn_most", READ_ONCE(req->nxt), .secret = true },
		{ "sq_psns_in_flight",
		  (READ_ONCE(req->nxt) - una) & ARX_PSN_MASK },
		{ "sq_entries", qp->sq.mem ? arx_ring_entries(&qp->sq) : 0 },
		{ "sq_taken", READ_ONCE(req->fetched) - done },
		{ "sq_sent", READ_ONCE(req->sent) - done },
		{ "sq_completed", done },
		{ "sq_copies", READ_ONCE(qp->swqe_mask) + 1 },
		{ "rd_in_flight",
		  READ_ONCE(req->rd_sent) - READ_ONCE(comp->rd_done) },
		{ "sq_kept_bytes", READ_ONCE(comp->kept.bytes) },
		{ "retries_left", READ_ONCE(comp->retries_left) },
		{ "rnr_retries_left", READ_ONCE(comp->rnr_left) },
		{ "rnr_in_a_row", READ_ONCE(comp->rnr_row) },
		{ "rnr_wait", READ_ONCE(comp->rnr_wait) },
		{ "rewinds", READ_ONCE(comp->rewinds) },
		{ "rtt_ns", READ_ONCE(comp->rtt) },
		{ "waits_for_peer", READ_ONCE(req->waiting) },
		{ "waits_for_socket", READ_ONCE(req->blocked) },
		{ "waits_after_drop", READ_ONCE(req->dropped) },
		{ "same_machine", READ_ONCE(req->local) },
		/* polling of the send queue */
		{ "sq_polled", READ_ONCE(watch->on) },
		{ "sq_poll_idle", READ_ONCE(watch->idle) },
		/* responder */
		{ "rq_psn_expected", READ_ONCE(resp->epsn), .secret = true },
		{ "rq_msn", READ_ONCE(resp->msn) },
		{ "rq_ack_due", READ_ONCE(resp->ack_due) },
		{ "rq_kept_bytes", READ_ONCE(resp->kept.bytes) },
		{ "rq_unacked", READ_ONCE(resp->unacked) },
		{ "rq_entries", qp->rq.ring.mem ?
				arx_ring_entries(&qp->rq.ring) : 0 },
		{ "rq_taken", READ_ONCE(qp->rq.cons) },
		{ "rq_in_message", READ_ONCE(resp->in_message) },
		{ "path_mtu", qp->mtu },
		{ "cc", READ_ONCE(qp->cc) },
	};

	return arx_details_put(msg, details, ARRAY_SIZE(details));
}

/**
 * arx_fill_res_cq_entry - verb: details of a CQ
 * @msg: message to user space
 * @ib: CQ
 *
 * Return: 0 or -EMSGSIZE.
 */
int arx_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ib)
{
	const struct arx_cq *cq = to_arx_cq(ib);
	const struct arx_detail details[] = {
		{ "entries", arx_ring_entries(&cq->ring) },
		{ "written", READ_ONCE(cq->prod) },
		{ "event_requests", READ_ONCE(cq->armed) >> 1 },
		{ "held", READ_ONCE(cq->held) },
		{ "moderation_count", READ_ONCE(cq->count) },
		{ "moderation_usecs", READ_ONCE(cq->period) },
		{ "overflown", READ_ONCE(cq->overflown) },
	};

	return arx_details_put(msg, details, ARRAY_SIZE(details));
}

/**
 * arx_fill_res_srq_entry - verb: details of an SRQ
 * @msg: message to user space
 * @ib: SRQ
 *
 * Return: 0 or -EMSGSIZE.
 */
int arx_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ib)
{
	const struct arx_recvq *q = &to_arx_srq(ib)->q;
	const struct arx_detail details[] = {
		{ "entries", arx_ring_entries(&q->ring) },
		{ "max_sge", q->max_sge },
		{ "taken", READ_ONCE(q->cons) },
		{ "limit", READ_ONCE(q->limit) },
		{ "failed", READ_ONCE(q->failed) },
	};

	return arx_details_put(msg, details, ARRAY_SIZE(details));
}

/**
 * arx_fill_res_mr_entry - verb: details of a region
 * @msg: message to user space
 * @ib: region
 *
 * Return: 0 or -EMSGSIZE.
 */
int arx_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ib)
{
	const struct arx_mr *mr = to_arx_mr(ib);
	const struct arx_key *key = &mr->key;
	const struct arx_detail details[] = {
		{ "iova", key->iova, .hex = true, .secret = true },
		{ "length", key->length },
		{ "access", READ_ONCE(key->access) & ~ARX_KEY_LOCAL,
		  .hex = true },
		{ "valid", READ_ONCE(key->state) == ARX_KEY_VALID },
		{ "users", atomic_read(&key->users) },
		{ "windows", max(atomic_read(&key->windows), 0) },
		{ "blocks", mr->nblocks },
		{ "block_size", BIT_ULL(mr->block_shift) },
		{ "pieces", mr->npieces },
	};

	return arx_details_put(msg, details, ARRAY_SIZE(details));
}

/* Counts of pages, by the names that mlx5 gives them. */
static int arx_odp_put_counts(struct sk_buff *msg, struct arx_odp *odp)
{
	int err;

	err = rdma_nl_stat_hwcounter_entry(msg, "page_faults",
					   atomic64_read(&odp->faults));
	if (err)
		return err;
	err = rdma_nl_stat_hwcounter_entry(msg, "page_invalidations",
					   atomic64_read(&odp->invalidations));
	if (err)
		return err;
	return rdma_nl_stat_hwcounter_entry(msg, "page_prefetch",
					    atomic64_read(&odp->prefetched));
}

/**
 * arx_fill_stat_mr_entry - verb: counters of a region, if it is paged on demand
 * @msg: message to user space
 * @ib: region
 *
 * Return: 0 or -EMSGSIZE.
 */
int arx_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ib)
{
	struct arx_odp *odp = to_arx_mr(ib)->odp;
	struct nlattr *table;

	if (!odp)
		return 0;
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!table)
		return -EMSGSIZE;
	if (arx_odp_put_counts(msg, odp)) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}
