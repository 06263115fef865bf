// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests with a response of their own (READ, atomics, FLUSH, ATOMIC WRITE) at
 * the responder, and the order of responses. A request is stored until
 * max_dest_rd_atomic newer ones have come, so that a duplicate gets the same
 * response (9.4.5, 9.7.5.1.4): an atomic its stored value, a READ the present
 * content of memory. A duplicate is never executed again. FLUSH and ATOMIC
 * WRITE are executed when they arrive, and answered as a READ of no bytes is.
 * Responses leave in the order of the requests; an ACK or NAK waits for the
 * responses before it.
 */

#include <net/sock.h>

#include "ack.h"
#include "completer.h"
#include "congestion.h"
#include "loss.h"
#include "paging.h"
#include "rdatomic.h"
#include "schedule.h"
#include "send.h"
#include "tx.h"

/* A response counts as at least this many bytes of the responder's share. */
#define ARX_REPLY_LEAST		1024U

static struct arx_rd *arx_rdatomic_slot(struct arx_resp *resp, u32 n)
{
	return &resp->rd[n & (resp->rd_size - 1)];
}

/**
 * arx_rdatomic_reset - forget requests and responses
 * @resp: of a QP that is new or reset, or that got other memory for them
 *
 * Context: responder's lock held, or nothing uses the QP yet.
 */
void arx_rdatomic_reset(struct arx_resp *resp)
{
	u32 i;

	resp->rd_next = 0;
	INIT_LIST_HEAD(&resp->due);
	INIT_LIST_HEAD(&resp->idle);
	for (i = 0; i < 2 * resp->rd_size; i++)
		list_add_tail(&resp->replies[i].link, &resp->idle);
}

static bool arx_rdatomic_full(const struct arx_resp *resp)
{
	return list_empty(&resp->idle);
}

static u32 arx_rdatomic_end(const struct arx_rd *rd)
{
	return arx_psn_add(rd->psn, rd->npkts);
}

/*
 * Queue a response for @rd before @next, which is a response in the list or the
 * head of the list; the caller has checked for room.
 */
static struct arx_reply *arx_rdatomic_queue(struct arx_resp *resp,
					    const struct arx_rd *rd,
					    struct list_head *next)
{
	struct arx_reply *reply = list_first_entry(&resp->idle,
						   struct arx_reply, link);

	reply->rd = *rd;
	reply->sent = 0;
	reply->again = rd->replay;
	list_move_tail(&reply->link, next);
	return reply;
}

static void arx_rdatomic_drop(struct arx_resp *resp, struct arx_reply *reply)
{
	list_move(&reply->link, &resp->idle);
}

/*
 * Queue a replay for @rd, in its place; the caller has checked for room. It
 * replaces the rest of an earlier response to the same request. First responses
 * that are due after @rd start again from their first packet: a requester that
 * went back expects all of their packets, and drops what it has already if the
 * network made the duplicate. Replays after @rd are dropped: a requester that
 * went back gets them anyhow, and one that asked for parts of several READs
 * asks for these parts again.
 */
static void arx_rdatomic_queue_replay(struct arx_resp *resp,
				      const struct arx_rd *rd)
{
	struct list_head *place = &resp->due;
	struct arx_reply *reply, *tmp;
	bool first = false;

	list_for_each_entry_safe(reply, tmp, &resp->due, link) {
		bool same = arx_psn_diff(reply->rd.psn,
					 arx_rdatomic_end(rd)) < 0;

		if (arx_psn_diff(rd->psn, arx_rdatomic_end(&reply->rd)) >= 0)
			continue;	/* ends before @rd */
		first |= same && !reply->rd.replay;
		if (same || reply->rd.replay) {
			arx_rdatomic_drop(resp, reply);
			continue;
		}
		reply->again |= reply->sent;
		reply->sent = 0;
		if (place == &resp->due)
			place = &reply->link;
	}
	reply = arx_rdatomic_queue(resp, rd, place);
	reply->rd.replay &= !first;
}

/*
 * Queue a replay for @rd, a part of a READ before its end: a requester that
 * asks for this has kept the rest, so other responses go on where they are. The
 * part is not replayed if it is still due.
 */
static __cold void arx_rdatomic_queue_part(struct arx_resp *resp,
					   const struct arx_rd *rd)
{
	struct list_head *place = &resp->due;
	struct arx_reply *reply;

	list_for_each_entry(reply, &resp->due, link) {
		u32 next = arx_psn_add(reply->rd.psn, reply->sent);

		if (arx_psn_diff(rd->psn, arx_rdatomic_end(&reply->rd)) >= 0)
			continue;
		if (arx_psn_diff(rd->psn, reply->rd.psn) >= 0 &&
		    arx_psn_diff(next, arx_rdatomic_end(rd)) < 0 &&
		    arx_psn_diff(arx_rdatomic_end(rd),
				 arx_rdatomic_end(&reply->rd)) <= 0)
			return;
		place = &reply->link;
		break;
	}
	arx_rdatomic_queue(resp, rd, place);
}

/* True if all that @rd asks for is due as one response that has not begun. */
static bool arx_rdatomic_waits(struct arx_resp *resp, const struct arx_rd *rd)
{
	struct arx_reply *reply;

	list_for_each_entry(reply, &resp->due, link)
		if (reply->rd.psn == rd->psn && !reply->sent &&
		    reply->rd.npkts >= rd->npkts)
			return true;
	return false;
}

/* Number of first requests that wait for their responses, without replays. */
static u32 arx_rdatomic_due(struct arx_resp *resp)
{
	struct arx_reply *reply;
	u32 due = 0;

	list_for_each_entry(reply, &resp->due, link)
		due += !reply->rd.replay;
	return due;
}

/*
 * Make room for a first request: drop a replay, for which the requester asks
 * again if it still misses it. There are twice as many places as first requests
 * may be due.
 */
static __cold void arx_rdatomic_drop_replay(struct arx_resp *resp)
{
	struct arx_reply *reply;

	list_for_each_entry(reply, &resp->due, link) {
		if (reply->rd.replay) {
			arx_rdatomic_drop(resp, reply);
			return;
		}
	}
}

static enum arx_verdict arx_rdatomic_check_read(struct arx_qp *qp,
						const struct arx_headers *h)
{
	struct arx_key_use use =
		arx_qp_key_use(qp, qp->resp.target.rkey_pd, h->rkey,
			       IB_ACCESS_REMOTE_READ, h->va, h->dma_len);

	if (h->dma_len > ARX_MAX_MSG)
		return ARX_INVALID;
	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_READ))
		return ARX_INVALID;
	if (h->dma_len && arx_key_check(&use) != ARX_KEY_GRANTED)
		return ARX_NO_ACCESS;
	return ARX_GRANTED;
}

static enum arx_verdict arx_rdatomic_do_atomic(struct arx_qp *qp,
					       const struct arx_headers *h,
					       u64 *orig)
{
	bool swap = h->op == ARX_OP_COMPARE_SWAP;
	struct arx_key_use use =
		arx_qp_key_use(qp, qp->resp.target.rkey_pd, h->rkey,
			       IB_ACCESS_REMOTE_ATOMIC, h->va, sizeof(u64));
	u32 len = sizeof(u64);
	struct arx_pages want __uninitialized;
	struct arx_key *key;
	int err = -EINVAL;
	void *at;

	if (h->va % sizeof(u64))
		return ARX_INVALID;
	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_ATOMIC))
		return ARX_INVALID;
	if (arx_key_get(&use, &key) != ARX_KEY_GRANTED)
		return ARX_NO_ACCESS;
	if (arx_mr_absent(key, h->va, len, true, &want)) {
		arx_key_put(key);
		return arx_paging_wait(qp, &qp->resp.paging, &want) ?
		       ARX_NO_PAGES : ARX_NO_ACCESS;
	}
	at = arx_mr_at(key, h->va, &len);
	/* An MR's iova and its memory may differ in their low bits. */
	if (at && len == sizeof(u64))
		err = arx_mr_atomic(at, swap, swap ? h->compare : h->swap_add,
				    h->swap_add, orig);
	if (!err)
		arx_mr_persist(key, h->va, sizeof(u64));
	arx_key_put(key);
	return err ? ARX_INVALID : ARX_GRANTED;
}

/*
 * All that a peer wrote on this QP before is visible to all CPUs, and what was
 * written to a region of persistent memory is persistent: the responder has
 * written each piece back when it placed it. So only the rights remain to be
 * checked. The whole region, or no bytes of it, needs no range.
 */
static enum arx_verdict arx_rdatomic_do_flush(struct arx_qp *qp,
					      const struct arx_headers *h)
{
	bool range = h->selectivity == IB_FLUSH_RANGE;
	struct arx_key_use use =
		arx_qp_key_use(qp, qp->resp.target.rkey_pd, h->rkey, 0, h->va,
			       range ? h->dma_len : 0);

	if (!h->placement ||
	    h->placement & ~(IB_FLUSH_GLOBAL | IB_FLUSH_PERSISTENT) ||
	    h->selectivity > IB_FLUSH_MR || use.length > ARX_MAX_MSG)
		return ARX_INVALID;
	if (h->placement & IB_FLUSH_GLOBAL)
		use.access |= IB_ACCESS_FLUSH_GLOBAL;
	if (h->placement & IB_FLUSH_PERSISTENT)
		use.access |= IB_ACCESS_FLUSH_PERSISTENT;
	if (use.access & ~qp->attr.qp_access_flags)
		return ARX_INVALID;
	if ((!range || use.length) && arx_key_check(&use) != ARX_KEY_GRANTED)
		return ARX_NO_ACCESS;
	return ARX_GRANTED;
}

/* Store eight bytes by one instruction; -EFAULT as arx_responder_rx(). */
static int arx_rdatomic_do_write(struct arx_qp *qp, struct arx_run *run,
				 enum arx_verdict *verdict)
{
	const struct arx_headers *h = &run->h;
	struct arx_key_use use =
		arx_qp_key_use(qp, qp->resp.target.rkey_pd, h->rkey,
			       IB_ACCESS_REMOTE_WRITE, h->va, sizeof(u64));
	struct arx_iter to __uninitialized;
	struct arx_pages want __uninitialized;
	struct arx_key *key;
	u64 value;

	*verdict = ARX_INVALID;
	if (h->va % sizeof(u64) || h->dma_len != sizeof(value) ||
	    run->len != sizeof(value) ||
	    !(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE))
		return 0;
	arx_iter_buf(&to, &value);
	if (arx_iter_copy(&to, &run->payload, sizeof(value)) != ARX_COPY_OK)
		return -EFAULT;

	*verdict = ARX_NO_ACCESS;
	if (arx_key_get(&use, &key) != ARX_KEY_GRANTED)
		return 0;
	if (arx_mr_absent(key, h->va, sizeof(value), true, &want)) {
		arx_key_put(key);
		if (arx_paging_wait(qp, &qp->resp.paging, &want))
			*verdict = ARX_NO_PAGES;
		return 0;
	}
	*verdict = arx_mr_write_word(key, h->va, value) ? ARX_INVALID :
							  ARX_GRANTED;
	arx_key_put(key);
	return 0;
}

/* Execute a request, or only check it if it is a READ. */
static int arx_rdatomic_execute(struct arx_qp *qp, struct arx_run *run,
				u64 *orig, enum arx_verdict *verdict)
{
	switch (run->h.op) {
	case ARX_OP_READ:
		*verdict = arx_rdatomic_check_read(qp, &run->h);
		return 0;
	case ARX_OP_FLUSH:
		*verdict = arx_rdatomic_do_flush(qp, &run->h);
		return 0;
	case ARX_OP_ATOMIC_WRITE:
		return arx_rdatomic_do_write(qp, run, verdict);
	default:
		*verdict = arx_rdatomic_do_atomic(qp, &run->h, orig);
		return 0;
	}
}

static void arx_rdatomic_count(struct arx_qp *qp, enum arx_op op)
{
	switch (op) {
	case ARX_OP_READ:
		arx_count(qp, RX_READS);
		break;
	case ARX_OP_FLUSH:
		arx_count(qp, RX_FLUSHES);
		break;
	default:
		arx_count(qp, RX_ATOMICS);
	}
}

/*
 * The peer has the responses before @psn. This ends the trial of a train that
 * is among them.
 */
static __always_inline void arx_rdatomic_arrived(struct arx_qp *qp, u32 psn)
{
	struct arx_trial *trial = &qp->resp.out.trial;

	if (unlikely(trial->state) && arx_trial_ends(trial, psn))
		arx_count(qp, LOST_USO);
}

/*
 * Store a request in place of the oldest one, whose response the peer has: it
 * does not have more requests in flight at a time than negotiated.
 */
static void arx_rdatomic_store(struct arx_qp *qp, const struct arx_rd *rd)
{
	struct arx_resp *resp = &qp->resp;
	struct arx_rd *slot = arx_rdatomic_slot(resp, resp->rd_next++);

	if (slot->npkts) {
		/* So the neighbour entry is right. */
		sk_dst_confirm(qp->tx_sk);
		arx_rdatomic_arrived(qp, arx_rdatomic_end(slot));
	}
	*slot = *rd;
}

/**
 * arx_rdatomic_request - serve a READ, an atomic or the like with the expected
 *	PSN
 * @qp: RC QP
 * @run: the request
 *
 * Context: responder's lock held.
 * Return: as arx_responder_rx().
 */
int arx_rdatomic_request(struct arx_qp *qp, struct arx_run *run)
{
	const struct arx_headers *h = &run->h;
	struct arx_resp *resp = &qp->resp;
	struct arx_rd rd = {
		.op = h->op,
		.psn = h->psn,
		.npkts = 1,
		.va = h->va,
		.rkey = h->rkey,
		.srqn = qp->resp.srqn,
	};
	enum arx_verdict verdict;
	int err;

	/* More requests at a time than negotiated: 9.7.7.1 */
	if (arx_rdatomic_due(resp) >= qp->attr.max_dest_rd_atomic) {
		arx_ack_refuse(qp, ARX_INVALID);
		return 0;
	}
	err = arx_rdatomic_execute(qp, run, &rd.orig, &verdict);
	if (err)
		return err;
	if (verdict != ARX_GRANTED) {
		arx_ack_refuse(qp, verdict);
		return 0;
	}

	if (rd.op == ARX_OP_READ) {
		rd.length = h->dma_len;
		rd.npkts = arx_run_npkts(rd.length, qp->mtu);
	}
	arx_rdatomic_count(qp, rd.op);
	resp->epsn = arx_psn_add(resp->epsn, rd.npkts);
	WRITE_ONCE(resp->msn, arx_psn_add(resp->msn, 1));
	rd.msn = resp->msn;
	resp->reports = h->flags & ARX_REPORTS;
	if (resp->reports && h->flight)
		arx_rdatomic_arrived(qp, arx_flight_una(h));
	arx_rdatomic_store(qp, &rd);
	if (unlikely(arx_rdatomic_full(resp)))
		arx_rdatomic_drop_replay(resp);
	arx_rdatomic_queue(resp, &rd, &resp->due);
	/* The response acknowledges all requests before, and voids a NAK. */
	resp->ack_due = false;
	return 0;
}

/* The stored request that contains @psn; an empty slot contains none. */
static struct arx_rd *arx_rdatomic_find(struct arx_resp *resp, u32 psn)
{
	u32 i;

	for (i = 1; i <= resp->rd_size; i++) {
		struct arx_rd *rd = arx_rdatomic_slot(resp, resp->rd_next - i);
		s32 in = arx_psn_diff(psn, rd->psn);

		if (in >= 0 && in < rd->npkts)
			return rd;
	}
	return NULL;
}

/**
 * arx_rdatomic_replay - respond to a duplicate READ, atomic or the like
 * @qp: RC QP
 * @run: the request; a READ may ask for the tail of the first request only
 *
 * A duplicate that is not a part of a stored request is dropped.
 *
 * Context: responder's lock held.
 */
void arx_rdatomic_replay(struct arx_qp *qp, const struct arx_run *run)
{
	const struct arx_headers *h = &run->h;
	struct arx_resp *resp = &qp->resp;
	struct arx_rd *stored;
	struct arx_rd rd;
	u64 off;

	stored = arx_rdatomic_find(resp, h->psn);
	if (!stored || stored->op != h->op || stored->rkey != h->rkey ||
	    (arx_has_xrceth(h) && stored->srqn != h->srqn))
		return;

	rd = *stored;
	off = (u64)arx_psn_diff(h->psn, stored->psn) * qp->mtu;
	if (h->va - stored->va != off)
		return;
	if (rd.op == ARX_OP_READ) {
		if (off > stored->length || h->dma_len > stored->length - off)
			return;
		rd.psn = h->psn;
		rd.va = h->va;
		rd.length = h->dma_len;
		rd.npkts = arx_run_npkts(rd.length, qp->mtu);
	}
	rd.replay = true;
	/* A duplicate that the network made gets its response in any case. */
	if (arx_rdatomic_waits(resp, &rd))
		return;
	/* A requester asks for fewer parts at a time than there are places. */
	if (arx_rdatomic_full(resp))
		return;
	if (arx_rdatomic_end(&rd) != arx_rdatomic_end(stored))
		arx_rdatomic_queue_part(resp, &rd);
	else
		arx_rdatomic_queue_replay(resp, &rd);
}

static void arx_rdatomic_headers(struct arx_qp *qp, struct arx_run *run,
				 enum arx_op op, u32 psn)
{
	memset(&run->h, 0, sizeof(run->h));
	run->h.op = op;
	run->h.service = qp->service;
	run->h.flags = ARX_FIRST | ARX_LAST |
		       (qp->resp.reports ? ARX_REPORTS : 0);
	run->h.pkey = ARX_PKEY;
	run->h.qpn = qp->attr.dest_qp_num;
	run->h.psn = psn;
	run->h.syndrome = ARX_ACK_UNLIMITED;
	run->mtu = qp->mtu;
	arx_run_size(run, 0);
	run->payload_stable = false;
	run->again = false;
	run->more = false;
	run->packets = NULL;
	arx_iter_none(&run->payload);
}

/*
 * True if the rest of @run's memory exists: a DMA region may have addresses
 * without memory.
 */
static bool arx_rdatomic_readable(const struct arx_run *run)
{
	struct arx_iter it __uninitialized;

	if (run->payload.room >= run->len)
		return true;
	it = run->payload;
	return !arx_iter_skip(&it, run->len);
}

/* To the wire, or to the completer of a QP of this machine. */
static int arx_rdatomic_send_run(struct arx_qp *qp, struct arx_av *av,
				 struct arx_run *run)
{
	struct arx_qp *peer;
	int err = arx_send_run(qp, av, run, &qp->resp.out, &peer);

	if (!peer)
		return err;
	/* This side's fault, which a NAK reports to the reader. */
	if (run->h.op == ARX_OP_READ_RESPONSE && !arx_rdatomic_readable(run))
		return -EFAULT;
	/* Its requester may be the caller's caller: only schedule. */
	if (arx_completer_rx(peer, run))
		arx_qp_go_on(peer);
	return 0;
}

/*
 * PD of the rkey of a READ; NULL, which no key has, if the READ named an XRC
 * SRQ that was destroyed since.
 */
static struct ib_pd *arx_rdatomic_pd(const struct arx_qp *qp,
				     const struct arx_rd *rd)
{
	struct arx_srq *srq;

	if (qp->service != ARX_SERVICE_XRC)
		return qp->resp.target.rkey_pd;
	srq = arx_srq_find(arx_qp_dev(qp), qp->ib.xrcd, rd->srqn);
	return srq ? srq->ib.pd : NULL;
}

/*
 * Iterate over @left bytes of a READ, which begin with those of @use. -EAGAIN
 * if pages must be found first: they have the response sent when they are
 * there.
 */
static int arx_rdatomic_payload(struct arx_qp *qp, struct arx_iter *it,
				const struct arx_key_use *use, u32 left)
{
	struct arx_pages want __uninitialized;

	switch (arx_iter_key(it, use, &want)) {
	case ARX_KEY_GRANTED:
		return 0;
	case ARX_KEY_ABSENT:
		want.len += left - use->length;
		if (arx_paging_wait(qp, &qp->resp.paging, &want))
			return -EAGAIN;
		fallthrough;
	default:
		return -EFAULT;
	}
}

/*
 * Begin the next run of a READ response, with about @most of the @left bytes
 * that remain: all but its payload.
 */
static void arx_rdatomic_begin_read(struct arx_qp *qp, struct arx_av *av,
				    const struct arx_reply *reply, u32 left,
				    u32 most, struct arx_run *run)
{
	u32 len;

	arx_rdatomic_headers(qp, run, ARX_OP_READ_RESPONSE,
			     arx_psn_add(reply->rd.psn, reply->sent));
	run->h.msn = reply->rd.msn;
	run->again = reply->again;
	len = min(left, arx_send_max(qp, av, run->h.qpn, &qp->resp.out.batch));
	if (len > max(most, qp->mtu))
		len = max(round_down(most, qp->mtu), qp->mtu);
	arx_run_size(run, len);
	if (reply->sent)
		run->h.flags &= ~ARX_FIRST;
	if (len != left)
		run->h.flags &= ~(ARX_LAST | ARX_REPORTS);
}

/*
 * Send the next run of a READ response, about @most bytes; no bytes for a FLUSH
 * or ATOMIC WRITE. Returns their number, or an error.
 */
static int arx_rdatomic_send_read(struct arx_qp *qp, struct arx_av *av,
				  struct arx_reply *reply, u32 most)
{
	struct arx_cc *cc = arx_congestion_of(qp);
	const struct arx_rd *rd = &reply->rd;
	u32 off = reply->sent * qp->mtu;
	struct arx_key_use use =
		arx_qp_key_use(qp, arx_rdatomic_pd(qp, rd), rd->rkey,
			       IB_ACCESS_REMOTE_READ, rd->va + off, 0);
	u32 left = rd->length - off;
	struct arx_run run;
	int err;

	if (unlikely(cc)) {
		if (arx_congestion_waits(qp, cc))
			return -EAGAIN;
		/* Without a rate nothing controls responses. */
		if (!arx_cc_rate(cc))
			cc = NULL;
		else
			most = min(most, arx_cc_burst(cc) * qp->mtu);
	}
	arx_rdatomic_begin_read(qp, av, reply, left, most, &run);
	if (run.len) {
		WRITE_ONCE(qp->resp.read_at, jiffies | 1);	/* never 0 */
		use.length = run.len;
		err = arx_rdatomic_payload(qp, &run.payload, &use, left);
		if (err)
			return err;
		/* Packets may leave after the key has been taken back. */
		run.payload_stable = !arx_key_is_revocable(run.payload.key);
	}
	err = arx_rdatomic_send_run(qp, av, &run);
	arx_iter_end(&run.payload);	/* the packets hold the pages */
	if (err == -EAGAIN || err == -EFAULT)
		return err;
	if (unlikely(cc))
		arx_congestion_charge(qp, cc, &run, &qp->resp.out);
	reply->sent += run.npkts;
	return run.len;
}

static int arx_rdatomic_send_atomic(struct arx_qp *qp, struct arx_av *av,
				    struct arx_reply *reply)
{
	struct arx_run run;

	arx_rdatomic_headers(qp, &run, ARX_OP_ATOMIC_ACK, reply->rd.psn);
	run.h.msn = reply->rd.msn;
	run.h.orig = reply->rd.orig;
	run.again = reply->again;
	if (arx_rdatomic_send_run(qp, av, &run) == -EAGAIN)
		return -EAGAIN;
	reply->sent = 1;
	return 0;
}

/* Add to a NAK for a gap which requests were kept behind the gap. */
static __cold void arx_rdatomic_add_report(struct arx_qp *qp,
					   struct arx_run *run, __be32 *words)
{
	struct arx_resp *resp = &qp->resp;
	u32 n = arx_keep_report(&resp->kept, run->h.psn, qp->mtu, words,
				ARX_REPORT_WORDS);

	arx_iter_buf(&run->payload, words);
	arx_run_size(run, n * sizeof(*words));
}

/* As arx_rdatomic_send_read(). */
static int arx_rdatomic_send(struct arx_qp *qp, struct arx_av *av,
			     struct arx_reply *reply, u32 most)
{
	switch (reply->rd.op) {
	case ARX_OP_COMPARE_SWAP:
	case ARX_OP_FETCH_ADD:
		return arx_rdatomic_send_atomic(qp, av, reply);
	default:
		return arx_rdatomic_send_read(qp, av, reply, most);
	}
}

/* Send the ACK or NAK after the responses. */
static void arx_rdatomic_send_ack(struct arx_qp *qp, struct arx_av *av)
{
	struct arx_resp *resp = &qp->resp;
	__be32 words[ARX_REPORT_WORDS] __uninitialized;
	struct arx_run run;

	arx_rdatomic_headers(qp, &run, ARX_OP_ACK, resp->ack_psn);
	run.h.syndrome = resp->ack_syndrome;
	run.h.msn = resp->msn;
	if (unlikely(resp->kept.bytes) && resp->reports &&
	    resp->ack_syndrome == ARX_NAK(ARX_NAK_SEQ_ERR))
		arx_rdatomic_add_report(qp, &run, words);
	if (arx_rdatomic_send_run(qp, av, &run) == -EAGAIN)
		return;
	arx_ack_sent(qp);
}

/*
 * The memory of a READ was deregistered before all of it was sent. For a
 * replay, the first response may have arrived meanwhile, and the consumer may
 * have seen its completion: no side made a mistake, and the replay ends. For a
 * first response a NAK ends the QP, and no later response is due. Responses
 * that will not be sent count as sent.
 */
static void arx_rdatomic_lost(struct arx_qp *qp, struct arx_reply *reply)
{
	struct arx_resp *resp = &qp->resp;

	if (reply->rd.replay) {
		reply->sent = reply->rd.npkts;
		return;
	}
	arx_ack_refuse(qp, ARX_NO_ACCESS);
	resp->ack_psn = arx_psn_add(reply->rd.psn, reply->sent);
	list_for_each_entry_from(reply, &resp->due, link)
		reply->sent = reply->rd.npkts;
}

static bool arx_rdatomic_is_sent(const struct arx_reply *reply)
{
	return reply->sent == reply->rd.npkts;
}

/*
 * Send the next part of a response, and reduce @bytes; false if it has to wait.
 */
static bool arx_rdatomic_send_part(struct arx_qp *qp, struct arx_av *av,
				   struct arx_reply *reply, u32 *bytes)
{
	u32 before = reply->sent;
	int sent = arx_rdatomic_send(qp, av, reply, *bytes);
	u32 cost = ARX_REPLY_LEAST;

	if (sent == -EAGAIN)
		return false;
	if (sent < 0)
		arx_rdatomic_lost(qp, reply);
	else
		cost = max(cost, arx_send_cost(qp, qp->resp.out.batch.peer,
					       sent, reply->sent - before));
	*bytes -= min(*bytes, cost);
	return true;
}

/*
 * Send responses of up to @bytes; false if some remain, for example because the
 * socket is full. Responses that were sent stay in the list until
 * arx_rdatomic_retire().
 */
static bool arx_rdatomic_send_replies(struct arx_qp *qp, struct arx_av *av,
				      u32 *bytes)
{
	struct arx_reply *reply;

	list_for_each_entry(reply, &qp->resp.due, link) {
		while (!arx_rdatomic_is_sent(reply)) {
			if (!*bytes ||
			    !arx_rdatomic_send_part(qp, av, reply, bytes))
				return false;
		}
	}
	return true;
}

/*
 * This machine dropped packets from a PSN on: of responses, or only the ACK
 * after them.
 */
static __cold void arx_rdatomic_take_back(struct arx_resp *resp)
{
	struct arx_reply *reply;
	bool after = false;

	resp->out.dropped = false;
	arx_trial_void(&resp->out.trial);
	list_for_each_entry(reply, &resp->due, link) {
		s32 in = arx_psn_diff(resp->out.lost, reply->rd.psn);

		if (after) {
			reply->sent = 0;
		} else if (in >= 0 && in < reply->sent) {
			reply->sent = in;
			after = true;
		}
	}
}

/* Take the responses that have left off the list. */
static void arx_rdatomic_retire(struct arx_resp *resp)
{
	struct arx_reply *reply, *tmp;

	list_for_each_entry_safe(reply, tmp, &resp->due, link) {
		if (!arx_rdatomic_is_sent(reply))
			break;
		arx_rdatomic_drop(resp, reply);
	}
}

/**
 * arx_rdatomic_reply - send due responses, then the ACK or NAK
 * @qp: RC QP
 * @bytes: limit for responses; reduced by those that were sent
 *
 * Stops when the socket is full or another CPU has to deliver first (sock.c and
 * order.c schedule the QP), or when @bytes are used up. Responses that this
 * machine drops are due again; a NAK that ended the QP is not.
 *
 * Context: responder's lock held, RCU read side.
 * Return: true if more could be sent with a larger @bytes.
 */
bool arx_rdatomic_reply(struct arx_qp *qp, u32 *bytes)
{
	struct arx_av *av = rcu_dereference(qp->av);
	struct arx_resp *resp = &qp->resp;
	bool due = resp->ack_due;
	bool all = arx_rdatomic_send_replies(qp, av, bytes);

	if (all && resp->ack_due)
		arx_rdatomic_send_ack(qp, av);
	arx_tx_flush(qp, &resp->out);
	if (unlikely(resp->out.dropped)) {
		arx_rdatomic_take_back(resp);
		arx_rdatomic_retire(resp);
		resp->ack_due |= due && !resp->dead;
		return false;
	}
	arx_rdatomic_retire(resp);
	return !all && !*bytes;
}
