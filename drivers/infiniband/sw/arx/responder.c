// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder: checks each run, places its payload, completes the receive WQE
 * and prepares a response. It does not know whether a run came over the wire or
 * from a QP of this machine. It changes nothing before a run has passed all
 * checks.
 */

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include "ack.h"
#include "completer.h"
#include "cq.h"
#include "loss.h"
#include "paging.h"
#include "rdatomic.h"
#include "responder.h"
#include "schedule.h"
#include "send.h"
#include "state.h"
#include "trace.h"

/*
 * XRC: find the SRQ @srqn, its PD and its CQ, for the rest of the section.
 * False if there is no such SRQ in the QP's domain.
 */
static bool arx_responder_find_target(struct arx_qp *qp, u32 srqn)
{
	struct arx_srq *srq = arx_srq_find(arx_qp_dev(qp), qp->ib.xrcd, srqn);

	if (!srq)
		return false;
	qp->resp.srqn = srqn;
	qp->resp.target = (struct arx_target) {
		.q = &srq->q,
		.srq = srq,
		.cq = to_arx_cq(srq->ib.ext.cq),
		.pd = srq->ib.pd,
		.rkey_pd = srq->ib.pd,
	};
	return true;
}

/* XRC: the section ends, and the SRQ may end then. */
static void arx_responder_drop_target(struct arx_qp *qp)
{
	qp->resp.target = (struct arx_target) {};
}

static int arx_responder_access(const struct arx_qp *qp, int access)
{
	return qp->attr.qp_access_flags & access;
}

/* Complete the receive WQE of the message. */
static void arx_responder_complete(struct arx_qp *qp, struct arx_cqe *cqe,
				   bool solicited)
{
	cqe->wr_id = qp->resp.rwqe.wr_id;
	cqe->qpn = qp->id.nr;
	cqe->sq_index = qp->resp.srqn;
	cqe->vlan_id = cqe->vlan_id ? : 0xffff;
	qp->resp.have_rwqe = false;
	if (likely(cqe->status == IB_WC_SUCCESS))
		arx_count(qp, RDMA_RECVS);
	else if (cqe->status == IB_WC_WR_FLUSH_ERR)
		arx_count(qp, RESP_FLUSHED);
	else
		arx_count(qp, RESP_ERROR);
	if (!arx_cq_add(qp->resp.target.cq, cqe, solicited))
		arx_qp_error(qp, IB_EVENT_QP_FATAL);
}

/*
 * Complete the message's receive WQE with an error. False if there is none:
 * then nothing reports the error yet (C9-222.1).
 */
static bool arx_responder_complete_error(struct arx_qp *qp,
					 enum ib_wc_status status)
{
	struct arx_cqe cqe = {
		.opcode = IB_WC_RECV,
		.status = status,
	};

	if (!qp->resp.have_rwqe)
		return false;
	arx_responder_complete(qp, &cqe, true);
	return true;
}

/*
 * Complete the message's receive WQE with an error, then end the QP by a NAK.
 */
static __cold void arx_responder_fail(struct arx_qp *qp,
				      enum ib_wc_status status,
				      enum arx_nak_code code,
				      enum arx_nak_end end)
{
	trace_arx_fault(qp, false, status);
	if (arx_responder_complete_error(qp, status))
		end = ARX_END_COMPLETED;
	arx_ack_nak(qp, ARX_NAK(code), end);
}

/*
 * A peer has no right to the memory that its request names. The first packet
 * shows that. Only a WRITE of one packet has a receive WQE by then, which can
 * report the error.
 */
static __cold void arx_responder_no_access(struct arx_qp *qp,
					   const struct arx_run *run)
{
	if (run->h.op == ARX_OP_WRITE && run->npkts == 1)
		arx_responder_fail(qp, IB_WC_LOC_ACCESS_ERR,
				   ARX_NAK_REM_ACCESS, ARX_END_ACCESS);
	else
		arx_ack_refuse(qp, ARX_NO_ACCESS);
}

/*
 * Take a receive WQE for this message, unless it has one. Returns 0, -ENOENT,
 * or the error of arx_recvq_take() for malformed ones. A malformed WQE has been
 * completed, and the QP fails, except for RC, which sends a NAK first.
 */
static int arx_responder_take(struct arx_qp *qp)
{
	struct arx_resp *resp = &qp->resp;
	const struct arx_target *target = &resp->target;
	enum arx_recvq_news news;
	int err;

	if (resp->have_rwqe)
		return 0;
	err = arx_recvq_take(target->q, &resp->rwqe, &news);
	if (news == ARX_RECVQ_LIMIT_REACHED)
		arx_srq_event(target->srq, IB_EVENT_SRQ_LIMIT_REACHED);
	if (news == ARX_RECVQ_FAILED && target->srq)
		arx_srq_event(target->srq, IB_EVENT_SRQ_ERR);
	resp->have_rwqe = !err || err == -EINVAL;
	if (err == -EINVAL)
		arx_responder_complete_error(qp, IB_WC_LOC_QP_OP_ERR);
	if (err && err != -ENOENT && !arx_qp_is_acked(qp))
		arx_qp_error(qp, err == -EINVAL ? ARX_NO_EVENT :
						  IB_EVENT_QP_FATAL);
	return err;
}

/* Complete the message that @run ends. */
static void arx_responder_complete_run(struct arx_qp *qp,
				       const struct arx_run *run)
{
	const struct arx_headers *h = &run->h;
	struct arx_cqe cqe = {
		.byte_len = qp->resp.received,
		.opcode = h->op == ARX_OP_WRITE ? IB_WC_RECV_RDMA_WITH_IMM :
						  IB_WC_RECV,
		.status = IB_WC_SUCCESS,
		.src_qp = qp->attr.dest_qp_num,
		.ex = h->ex,
	};

	if (h->flags & ARX_IMM)
		cqe.wc_flags |= IB_WC_WITH_IMM;
	if (h->flags & ARX_INV)
		cqe.wc_flags |= IB_WC_WITH_INVALIDATE;
	arx_responder_complete(qp, &cqe, h->flags & ARX_SOLICITED);
}

/* Result of placing payload. */
enum arx_placed {
	ARX_PLACED,
	ARX_PLACED_TOO_LONG,
	ARX_PLACED_BAD_DEST,
	ARX_PLACED_BAD_SOURCE,
	ARX_PLACED_NO_PAGES,	/* the same run can be placed later */
};

/* The destination is paged on demand and not there: have it found. */
static __cold enum arx_placed
arx_responder_wait_pages(struct arx_qp *qp, const struct arx_pages *want)
{
	return arx_paging_wait(qp, &qp->resp.paging, want) ?
	       ARX_PLACED_NO_PAGES : ARX_PLACED_BAD_DEST;
}

/* Iterate over the receive WQE's buffer. */
static void arx_responder_iter(struct arx_qp *qp, struct arx_iter *it)
{
	const struct arx_rwqe *rwqe = &qp->resp.rwqe;

	arx_iter_sge(it, arx_qp_dev(qp), qp->resp.target.pd, rwqe->sge,
		     rwqe->num_sge, IB_ACCESS_LOCAL_WRITE);
}

static enum arx_placed arx_responder_not_copied(enum arx_copy_error err)
{
	return err == ARX_COPY_BAD_SOURCE ? ARX_PLACED_BAD_SOURCE :
					    ARX_PLACED_BAD_DEST;
}

/* Append the payload to the receive WQE's buffer. */
static enum arx_placed arx_responder_place_send(struct arx_qp *qp,
						struct arx_run *run)
{
	struct arx_resp *resp = &qp->resp;
	struct arx_iter to __uninitialized;
	u32 room = resp->rwqe.length - resp->received;
	struct arx_pages want __uninitialized;
	enum arx_copy_error err;

	if (run->len > room)
		return ARX_PLACED_TOO_LONG;
	if (!run->len)
		return ARX_PLACED;

	arx_responder_iter(qp, &to);
	if (arx_iter_skip(&to, resp->received))
		return ARX_PLACED_BAD_DEST;
	/* Only the last packet says how long the message is. */
	if (arx_iter_absent(&to, run->len,
			    run->h.flags & ARX_LAST ? run->len : room, &want)) {
		arx_iter_end(&to);
		return arx_responder_wait_pages(qp, &want);
	}
	err = arx_iter_copy(&to, &run->payload, run->len);
	arx_iter_end(&to);
	if (unlikely(err != ARX_COPY_OK))
		return arx_responder_not_copied(err);
	resp->received += run->len;
	return ARX_PLACED;
}

/* Write the payload to the address in the message's RETH. */
static enum arx_placed arx_responder_place_write(struct arx_qp *qp,
						 struct arx_run *run)
{
	struct arx_resp *resp = &qp->resp;
	struct arx_key_use use =
		arx_qp_key_use(qp, resp->target.rkey_pd, resp->rkey,
			       IB_ACCESS_REMOTE_WRITE, resp->va, run->len);
	struct arx_iter to __uninitialized;
	enum arx_key_answer answer;
	enum arx_copy_error err;
	struct arx_pages want __uninitialized;

	if (run->len > resp->left)
		return ARX_PLACED_TOO_LONG;
	if (!run->len)
		return ARX_PLACED;

	/* Looked up for each run, because the key may have been invalidated. */
	answer = arx_iter_key(&to, &use, &want);
	if (unlikely(answer == ARX_KEY_ABSENT)) {
		want.len += resp->left - run->len;
		return arx_responder_wait_pages(qp, &want);
	}
	if (answer != ARX_KEY_GRANTED)
		return ARX_PLACED_BAD_DEST;
	if (run->h.flags & ARX_LAST)
		err = arx_iter_copy_to_end(&to, &run->payload, run->len);
	else
		err = arx_iter_copy(&to, &run->payload, run->len);
	if (likely(err == ARX_COPY_OK))
		arx_mr_persist(to.key, resp->va, run->len);
	arx_iter_end(&to);
	if (unlikely(err != ARX_COPY_OK))
		return arx_responder_not_copied(err);
	resp->va += run->len;
	resp->left -= run->len;
	resp->received += run->len;
	return ARX_PLACED;
}

/*
 * Begin a message: store its operation, and for a WRITE its address. The whole
 * range is checked first, so that a WRITE that does not fit writes nothing.
 */
static enum arx_verdict arx_responder_begin(struct arx_qp *qp,
					    const struct arx_run *run)
{
	struct arx_resp *resp = &qp->resp;
	struct arx_key_use use =
		arx_qp_key_use(qp, resp->target.rkey_pd, run->h.rkey,
			       IB_ACCESS_REMOTE_WRITE, run->h.va,
			       run->h.dma_len);

	if (run->h.op == ARX_OP_WRITE) {
		if (!arx_responder_access(qp, IB_ACCESS_REMOTE_WRITE))
			return ARX_INVALID;
		/* If the whole message is there, placing it is the check. */
		if (use.length &&
		    !(run->h.flags & ARX_LAST && use.length == run->len) &&
		    arx_key_check(&use) != ARX_KEY_GRANTED)
			return ARX_NO_ACCESS;
		resp->va = run->h.va;
		resp->left = run->h.dma_len;
		resp->rkey = run->h.rkey;
	}
	resp->op = run->h.op;
	resp->received = 0;
	resp->polled = false;
	return ARX_GRANTED;
}

/* True if @run continues the message, or begins one, as expected. 9.8.2.1 */
static bool arx_responder_in_order(const struct arx_qp *qp,
				   const struct arx_run *run)
{
	const struct arx_resp *resp = &qp->resp;

	if (run->h.flags & ARX_FIRST)
		return !resp->in_message && run->h.dma_len <= ARX_MAX_MSG;
	return resp->in_message && resp->op == run->h.op;
}

static bool arx_responder_needs_rwqe(const struct arx_run *run)
{
	if (run->h.op == ARX_OP_SEND)
		return run->h.flags & ARX_FIRST;
	return run->h.flags & ARX_LAST && run->h.flags & ARX_IMM;
}

static enum arx_placed arx_responder_place(struct arx_qp *qp,
					   struct arx_run *run)
{
	return run->h.op == ARX_OP_SEND ? arx_responder_place_send(qp, run) :
					  arx_responder_place_write(qp, run);
}

/* RC: refuse a run that could not be placed, at all or for now. */
static void arx_responder_not_placed(struct arx_qp *qp,
				     const struct arx_run *run,
				     enum arx_placed why)
{
	if (why == ARX_PLACED_NO_PAGES)
		arx_ack_refuse(qp, ARX_NO_PAGES);
	else if (why == ARX_PLACED_TOO_LONG)
		arx_responder_fail(qp, IB_WC_LOC_LEN_ERR, ARX_NAK_INV_REQ,
				   ARX_END_INVALID);
	else if (run->h.op == ARX_OP_WRITE)
		arx_responder_no_access(qp, run);
	else
		arx_responder_fail(qp, IB_WC_LOC_PROT_ERR, ARX_NAK_REM_OP,
				   ARX_END_FATAL);
}

/*
 * Count the message that @run, which is placed, begins. Not earlier: a peer
 * sends a run that could not be placed again.
 */
static void arx_responder_count(const struct arx_qp *qp,
				const struct arx_run *run)
{
	if (run->h.op == ARX_OP_WRITE && run->h.flags & ARX_FIRST)
		arx_count(qp, RX_WRITES);
}

/* A run is placed: expect the next PSN, complete, acknowledge. */
static void arx_responder_advance(struct arx_qp *qp, struct arx_run *run)
{
	struct arx_resp *resp = &qp->resp;
	bool last = run->h.flags & ARX_LAST;

	arx_responder_count(qp, run);
	resp->epsn = arx_psn_add(resp->epsn, run->npkts);
	resp->unacked += run->npkts;
	resp->polled |= run->polled;
	resp->in_message = !last;
	if (last) {
		WRITE_ONCE(resp->msn, arx_psn_add(resp->msn, 1));
		if (run->h.op == ARX_OP_SEND || run->h.flags & ARX_IMM)
			arx_responder_complete_run(qp, run);
	}
	/*
	 * A NAK that is still due refused this PSN. The requester would repeat,
	 * or give up, a request that has been accepted now.
	 */
	if (arx_ack_nak_is_due(resp)) {
		resp->ack_due = false;
		arx_ack_due(qp);
	} else if (run->h.flags & ARX_ACK_REQ) {
		resp->reports = run->h.flags & ARX_REPORTS;
		arx_ack_due(qp);
	}
}

/*
 * Take back the key that @run, which is placed, names. False if the run is
 * refused, perhaps only because a request uses the memory now: then the peer
 * sends the run again soon.
 */
static bool arx_responder_invalidate(struct arx_qp *qp, struct arx_run *run)
{
	struct arx_key_use use = arx_qp_key_use(qp, qp->resp.target.rkey_pd,
						run->h.ex, 0, 0, 0);
	int err;

	/* On one machine, the payload may hold the same key. */
	arx_iter_end(&run->payload);
	err = arx_key_invalidate(&use);
	if (err == -EBUSY) {
		qp->resp.received -= run->len;
		arx_ack_rnr(qp, ARX_ACK_SHORT_TIMER);
	} else if (err) {
		arx_responder_no_access(qp, run);
	}
	return !err;
}

/* Place a run that has passed all checks, and advance. */
static int arx_responder_accept(struct arx_qp *qp, struct arx_run *run)
{
	enum arx_placed placed;

	/* The length in the RETH is that of the message, 9.4.3 */
	if (run->h.flags & ARX_LAST && run->h.op == ARX_OP_WRITE &&
	    run->len != qp->resp.left) {
		arx_ack_refuse(qp, ARX_INVALID);
		return 0;
	}
	placed = arx_responder_place(qp, run);
	if (placed == ARX_PLACED_BAD_SOURCE)
		return -EFAULT;
	if (placed != ARX_PLACED) {
		arx_responder_not_placed(qp, run, placed);
		return 0;
	}

	if (!(run->h.flags & ARX_INV) || arx_responder_invalidate(qp, run))
		arx_responder_advance(qp, run);
	return 0;
}

/* RC SEND or WRITE with the expected PSN. */
static int arx_responder_message(struct arx_qp *qp, struct arx_run *run)
{
	enum arx_verdict verdict = ARX_GRANTED;
	bool rnr = false;
	int err = 0;

	if (!arx_responder_in_order(qp, run) ||
	    !arx_run_well_formed(run, qp->mtu)) {
		arx_ack_refuse(qp, ARX_INVALID);
		return 0;
	}
	if (arx_responder_needs_rwqe(run)) {
		err = arx_responder_take(qp);
		if (err && err != -ENOENT) {
			arx_ack_nak(qp, ARX_NAK(ARX_NAK_REM_OP),
				    err == -EINVAL ? ARX_END_COMPLETED :
						     ARX_END_FATAL);
			return 0;
		}
		rnr = err;
	}
	/*
	 * A WRITE needs the receive WQE only for its last packet: place the
	 * others.
	 */
	if (rnr && (run->h.op == ARX_OP_SEND ||
		    !arx_run_trim_last(run, qp->mtu))) {
		arx_ack_rnr(qp, qp->attr.min_rnr_timer);
		return 0;
	}
	if (run->h.flags & ARX_FIRST)
		verdict = arx_responder_begin(qp, run);
	if (verdict == ARX_INVALID)
		arx_ack_refuse(qp, verdict);
	else if (verdict == ARX_NO_ACCESS)
		arx_responder_no_access(qp, run);
	if (verdict != ARX_GRANTED)
		return 0;
	err = arx_responder_accept(qp, run);
	if (rnr && !err && !qp->resp.dead)
		arx_ack_rnr(qp, qp->attr.min_rnr_timer);
	return err;
}

/* A request that was received before: its response may be lost. 9.7.5.1.4 */
static __cold void arx_responder_duplicate(struct arx_qp *qp,
					   struct arx_run *run)
{
	arx_count(qp, DUPLICATE_REQUEST);
	/* A response may have been in a train, or the ACK after it. */
	arx_trial_again(&qp->resp.out.trial, run->h.psn);
	switch (run->h.op) {
	case ARX_OP_SEND:
	case ARX_OP_WRITE:
		arx_ack_due(qp);
		break;
	case ARX_OP_RESERVED:
		break;
	default:
		arx_rdatomic_replay(qp, run);
	}
}

/* Requests before the next one are missing: ask for them, once. */
static void arx_responder_gap(struct arx_qp *qp)
{
	if (!qp->resp.nak_sent) {
		arx_ack_nak(qp, ARX_NAK(ARX_NAK_SEQ_ERR), ARX_END_NOTHING);
		qp->resp.gap = true;
	}
	qp->resp.nak_sent = true;
}

/*
 * A request behind a gap. It is checked and served when the gap closes; if it
 * cannot be kept, the peer sends it again.
 */
static __cold void arx_responder_ahead(struct arx_qp *qp, struct arx_run *run,
				       s32 ahead)
{
	struct arx_resp *resp = &qp->resp;

	arx_count(qp, OUT_OF_SEQUENCE);
	resp->reports |= !!(run->h.flags & ARX_REPORTS);
	if (ahead <= ARX_KEEP_AHEAD &&
	    arx_keep_add(&resp->kept, run))
		arx_count(qp, SEQUENCE_KEPT);
	else
		arx_count(qp, SEQUENCE_DROPPED);
	/*
	 * A peer that understands it gets a new report when it asks. A NAK
	 * without a report would say nothing new, and cost the peer one more
	 * retry.
	 */
	if (resp->gap && run->h.flags & ARX_ACK_REQ && resp->reports &&
	    arx_keep_reports(&resp->kept, resp->epsn, ARX_REPORT_SPAN))
		resp->nak_sent = false;
	arx_responder_gap(qp);
}

/*
 * True if @run has the expected PSN, perhaps without its first packets, which
 * were received before. 9.7.5.1.3, 9.7.5.1.4
 */
static bool arx_responder_expects(struct arx_qp *qp, struct arx_run *run)
{
	struct arx_resp *resp = &qp->resp;
	s32 ahead = arx_psn_diff(run->h.psn, resp->epsn);

	if (resp->dead)
		return false;
	if (ahead > 0) {
		arx_responder_ahead(qp, run, ahead);
		return false;
	}
	if (ahead < 0) {
		bool message = run->h.op == ARX_OP_SEND ||
			       run->h.op == ARX_OP_WRITE;

		if (!message || !arx_run_trim_first(run, -ahead, qp->mtu)) {
			arx_responder_duplicate(qp, run);
			return false;
		}
	}
	resp->nak_sent = false;
	return true;
}

/* A request with the expected PSN. */
static int arx_responder_serve(struct arx_qp *qp, struct arx_run *run)
{
	if (run->h.op == ARX_OP_SEND || run->h.op == ARX_OP_WRITE)
		return arx_responder_message(qp, run);
	if (!qp->resp.in_message && run->h.op != ARX_OP_RESERVED)
		return arx_rdatomic_request(qp, run);
	arx_ack_refuse(qp, ARX_INVALID);
	return 0;
}

/*
 * XRC: find where @run is received. False if it is refused. The request names
 * the SRQ that it is for, and so does each of its packets. The SRQ may have
 * been destroyed since the packet before. A number is quarantined after that,
 * so no other SRQ continues the message. A receive WQE outlives the message
 * that took it if a sender on this machine could not read its payload; it must
 * not serve a message for another SRQ.
 */
static bool arx_responder_begin_xrc(struct arx_qp *qp,
				    const struct arx_run *run)
{
	struct arx_resp *resp = &qp->resp;

	if (run->h.op == ARX_OP_RESERVED) {
		arx_ack_refuse(qp, ARX_INVALID);
		return false;
	}
	if (((resp->in_message || resp->have_rwqe) &&
	     run->h.srqn != resp->srqn) ||
	    !arx_responder_find_target(qp, run->h.srqn)) {
		arx_ack_refuse(qp, ARX_NO_TARGET);
		return false;
	}
	return true;
}

/*
 * An RNR NAK has refused @run, which had @npkts packets before that. Keep the
 * run if nothing of it was placed: then the peer needs to send only the first
 * packet again. A run that lost its last packet (arx_run_trim_last()) is not
 * kept, because the run no longer covers its packets. Nor is one that is to
 * take back a key: arx_responder_invalidate() refuses it when it is placed.
 */
static __cold void arx_responder_refused(struct arx_qp *qp, struct arx_run *run,
					 u32 npkts)
{
	struct arx_resp *resp = &qp->resp;

	resp->reports |= !!(run->h.flags & ARX_REPORTS);
	if ((run->h.op == ARX_OP_SEND || run->h.op == ARX_OP_WRITE) &&
	    !(run->h.flags & ARX_INV) && npkts > 1 && run->npkts == npkts &&
	    run->h.psn == resp->epsn)
		arx_keep_add(&resp->kept, run);
}

/* RC and XRC: a request, which may have any PSN. */
static int arx_responder_request(struct arx_qp *qp, struct arx_run *run)
{
	bool xrc = qp->service == ARX_SERVICE_XRC;
	u32 npkts;
	int err;

	if (!arx_responder_expects(qp, run) ||
	    (unlikely(xrc) && !arx_responder_begin_xrc(qp, run)))
		return 0;
	npkts = run->npkts;
	err = arx_responder_serve(qp, run);
	if (unlikely(xrc))
		arx_responder_drop_target(qp);
	if (unlikely(qp->resp.nak_sent))
		arx_responder_refused(qp, run, npkts);
	return err;
}

/*
 * A gap may have closed: serve the requests that were kept behind it, one share
 * at a time. While more of them are due, no gap is reported. If another gap
 * follows, the NAK for it acknowledges all requests before.
 */
static __cold void arx_responder_close(struct arx_qp *qp)
{
	struct arx_resp *resp = &qp->resp;
	s32 share = ARX_POLL_BYTES;
	bool closed = resp->closing;
	struct arx_kept *kept;

	/* The share before held back the NAK for the next gap, and the ACK. */
	if (resp->closing)
		resp->nak_sent = false;
	/* After a NAK nothing is due until the peer sends again. */
	if (resp->nak_sent)
		return;
	if (!resp->closing)
		resp->hold = !resp->gap;
	resp->closing = false;
	while ((kept = arx_keep_take(&resp->kept, resp->epsn))) {
		share -= max(kept->run.len, ARX_KEEP_LEAST);
		arx_responder_request(qp, &kept->run);
		arx_keep_free(kept);
		closed = true;
		if (share <= 0 || resp->nak_sent)
			break;
	}
	/* An RNR NAK has refused the last run, which is kept again. */
	if (resp->nak_sent)
		return;
	if (arx_keep_is_due(&resp->kept, resp->epsn)) {
		resp->closing = true;
		resp->nak_sent = true;
		resp->gap = false;
		arx_qp_schedule(qp);
		return;
	}
	if (!closed || resp->dead)
		return;
	if (resp->kept.bytes)
		arx_responder_gap(qp);
	else
		arx_ack_due(qp);
}

/*
 * True if responses wait for kept requests; the QP is scheduled then. One ACK
 * covers several shares of them.
 */
static bool arx_responder_holds(const struct arx_resp *resp)
{
	return resp->closing && !resp->dead &&
	       (resp->hold || arx_ack_may_cover(resp));
}

/* RC and XRC: a request, and those that were kept behind it. */
static int arx_responder_rc(struct arx_qp *qp, struct arx_run *run)
{
	int err = arx_responder_request(qp, run);

	if (unlikely(qp->resp.kept.bytes))
		arx_responder_close(qp);
	return err;
}

/*
 * UC: there are no responses. A gap or a refused packet drops its message; the
 * receive WQE serves the next message. 9.8.2.2
 */
static int arx_responder_uc(struct arx_qp *qp, struct arx_run *run)
{
	struct arx_resp *resp = &qp->resp;
	bool first = run->h.flags & ARX_FIRST;
	bool last = run->h.flags & ARX_LAST;
	enum arx_placed placed;

	if (run->h.op != ARX_OP_SEND && run->h.op != ARX_OP_WRITE)
		return 0;
	if (run->h.psn != resp->epsn)
		resp->in_message = false;
	resp->epsn = arx_psn_add(run->h.psn, run->npkts);
	if (first)
		resp->in_message = false;
	if (!arx_responder_in_order(qp, run) ||
	    !arx_run_well_formed(run, qp->mtu) ||
	    (arx_responder_needs_rwqe(run) && arx_responder_take(qp)) ||
	    (first && arx_responder_begin(qp, run) != ARX_GRANTED))
		goto drop;

	placed = arx_responder_place(qp, run);
	if (placed == ARX_PLACED_BAD_SOURCE)
		return -EFAULT;
	if (run->h.op == ARX_OP_SEND && placed == ARX_PLACED_BAD_DEST) {
		arx_responder_complete_error(qp, IB_WC_LOC_PROT_ERR);
		arx_qp_error(qp, ARX_NO_EVENT);
		return 0;
	}
	/* An SRQ's WQE of the message is used up, 9.9.3 */
	if (run->h.op == ARX_OP_SEND && placed == ARX_PLACED_TOO_LONG &&
	    resp->target.srq)
		arx_responder_complete_error(qp, IB_WC_LOC_LEN_ERR);
	if (placed != ARX_PLACED ||
	    (last && run->h.op == ARX_OP_WRITE && resp->left))
		goto drop;

	arx_responder_count(qp, run);
	resp->in_message = !last;
	if (last && (run->h.op == ARX_OP_SEND || run->h.flags & ARX_IMM))
		arx_responder_complete_run(qp, run);
	return 0;
drop:
	resp->in_message = false;
	arx_count(qp, RX_DROPPED);
	return 0;
}

static u32 arx_responder_qkey(const struct arx_qp *qp)
{
	return qp->ib.qp_type == IB_QPT_GSI ? ARX_GSI_QKEY : qp->attr.qkey;
}

/*
 * Set fields for kernel consumers only: applications give these bits another
 * meaning.
 */
static void arx_responder_link_info(const struct arx_run *run,
				    struct arx_cqe *cqe)
{
	cqe->network_hdr_type = run->network;
	cqe->wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
	if (run->smac) {
		ether_addr_copy(cqe->smac, run->smac);
		cqe->wc_flags |= IB_WC_WITH_SMAC;
	}
	if (run->vlan < VLAN_N_VID) {
		cqe->vlan_id = run->vlan;
		cqe->wc_flags |= IB_WC_WITH_VLAN;
	}
}

/*
 * SL of a datagram's completion for applications. ConnectX reports the kind of
 * the packet there: 8 for RoCEv2, and 1 for IPv6 or 2 for IPv4. UCX drops
 * datagrams without it.
 */
static u8 arx_responder_packet_type(const struct arx_run *run)
{
	return 8 | (run->network == RDMA_NETWORK_IPV4 ? 2 : 1);
}

/* Place the GRH, then the datagram. */
static enum arx_copy_error arx_responder_place_datagram(struct arx_qp *qp,
							struct arx_run *run)
{
	struct arx_iter grh __uninitialized;
	struct arx_iter to __uninitialized;
	u32 len = ARX_GRH_LEN + run->len;
	enum arx_copy_error err;
	struct arx_pages want __uninitialized;

	arx_iter_buf(&grh, (void *)run->grh);
	arx_responder_iter(qp, &to);
	if (arx_iter_absent(&to, len, len, &want)) {
		arx_iter_end(&to);
		return arx_paging_wait(qp, &qp->resp.paging, &want) ?
		       ARX_COPY_NO_PAGES : ARX_COPY_BAD_DEST;
	}
	err = arx_iter_copy(&to, &grh, ARX_GRH_LEN);
	if (err == ARX_COPY_OK)
		err = arx_iter_copy(&to, &run->payload, run->len);
	arx_iter_end(&to);
	return err;
}

/*
 * A datagram is longer than its receive WQE. The WQE completes with an error,
 * as with network cards: if the WQE stayed, a program whose receives are all
 * too short would wait for ever. The QP continues, because anybody may send a
 * datagram. The MAD layer takes an error for the end of its QP, and its
 * receives hold any MAD.
 */
static void arx_responder_ud_too_long(struct arx_qp *qp)
{
	arx_count(qp, RX_DROPPED);
	if (qp->ib.qp_type != IB_QPT_GSI)
		arx_responder_complete_error(qp, IB_WC_LOC_LEN_ERR);
}

static void arx_responder_complete_datagram(struct arx_qp *qp,
					    const struct arx_run *run)
{
	struct arx_cqe cqe = {
		.byte_len = ARX_GRH_LEN + run->len,
		.opcode = IB_WC_RECV,
		.status = IB_WC_SUCCESS,
		.src_qp = run->h.src_qpn,
		.ex = run->h.ex,
		.wc_flags = IB_WC_GRH,
	};

	if (run->h.flags & ARX_IMM)
		cqe.wc_flags |= IB_WC_WITH_IMM;
	if (qp->ib.uobject)
		cqe.sl = arx_responder_packet_type(run);
	else
		arx_responder_link_info(run, &cqe);
	arx_responder_complete(qp, &cqe, run->h.flags & ARX_SOLICITED);
}

/* UD: a datagram that is refused harms no QP. */
static int arx_responder_ud(struct arx_qp *qp, struct arx_run *run)
{
	struct arx_resp *resp = &qp->resp;

	if (run->h.op != ARX_OP_SEND)
		return 0;
	if (run->h.qkey != arx_responder_qkey(qp)) {
		arx_count(qp, RX_BAD_QKEY);
		return 0;
	}
	if (arx_responder_take(qp)) {
		arx_count(qp, RX_NO_RECV);
		return 0;
	}
	if (run->len > resp->rwqe.length ||
	    resp->rwqe.length - run->len < ARX_GRH_LEN) {
		arx_responder_ud_too_long(qp);
		return 0;
	}

	switch (arx_responder_place_datagram(qp, run)) {
	case ARX_COPY_OK:
		arx_responder_complete_datagram(qp, run);
		return 0;
	case ARX_COPY_NO_PAGES:	/* no peer sends it again; the WQE stays */
		arx_count(qp, RX_DROPPED);
		return 0;
	case ARX_COPY_BAD_SOURCE:
		return -EFAULT;		/* the WQE stays, too */
	default:
		arx_responder_complete_error(qp, IB_WC_LOC_PROT_ERR);
		arx_qp_error(qp, ARX_NO_EVENT);
		return 0;
	}
}

/* Report once that the peer has sent, if the QP is not in RTS yet. */
static void arx_responder_establish(struct arx_qp *qp)
{
	if (qp->resp.established || arx_qp_state(qp) != IB_QPS_RTR ||
	    !arx_qp_is_connected(qp))
		return;
	qp->resp.established = true;
	arx_qp_event(qp, IB_EVENT_COMM_EST);
}

/*
 * The softirq of BH work runs after those of the NICs. It also sends responses
 * longer than a run: a request of a few bytes may ask for 2 GiB.
 */
static void arx_responder_respond(struct arx_qp *qp)
{
	u32 bytes = ARX_POLL_BYTES;

	if (unlikely(arx_responder_holds(&qp->resp)))
		return;
	if (arx_ack_may_wait(&qp->resp)) {
		arx_count(qp, ACK_DEFERRED);
		arx_qp_schedule(qp);
	} else if (arx_rdatomic_reply(qp, &bytes)) {
		arx_send_later(qp);
	}
}

/**
 * arx_responder_rx - serve a request
 * @qp: its destination
 * @run: the request; source and destination address have been checked
 *
 * Context: softirq or bottom halves off, RCU read side; on one machine the
 * requester's lock of the peer is held.
 * Return: 0 whatever the result, or -EFAULT if the payload could not be read at
 * its source, which only the sender on this machine can handle.
 */
int arx_responder_rx(struct arx_qp *qp, struct arx_run *run)
{
	int err = 0;

	spin_lock(&qp->resp.lock);
	trace_arx_run_in(qp, run, qp->resp.epsn);
	if (!arx_qp_may(qp, ARX_QP_RECEIVE))
		goto out;
	arx_responder_establish(qp);
	switch (qp->service) {
	case ARX_SERVICE_XRC:
	case ARX_SERVICE_RC:
		err = arx_responder_rc(qp, run);
		/* 9.7.5.1.2: one response may cover many requests. */
		if (!run->more)
			arx_responder_respond(qp);
		break;
	case ARX_SERVICE_UC:
		err = arx_responder_uc(qp, run);
		break;
	default:
		err = arx_responder_ud(qp, run);
	}
out:
	spin_unlock(&qp->resp.lock);
	return err;
}

/* XRC: flush the WQE in use, unless its SRQ was destroyed. */
static void arx_responder_flush_xrc(struct arx_qp *qp)
{
	if (qp->resp.have_rwqe &&
	    arx_responder_find_target(qp, qp->resp.srqn)) {
		arx_responder_complete_error(qp, IB_WC_WR_FLUSH_ERR);
		arx_responder_drop_target(qp);
	}
	qp->resp.have_rwqe = false;
}

/* 10.3.1 ERR: every receive WQE is flushed, in order, also later ones. */
static void arx_responder_flush(struct arx_qp *qp)
{
	struct arx_resp *resp = &qp->resp;
	u32 most;

	resp->in_message = false;
	if (arx_keep_shrink(&resp->kept))
		arx_qp_schedule(qp);
	if (qp->service == ARX_SERVICE_XRC) {
		arx_responder_flush_xrc(qp);
		return;
	}
	arx_responder_complete_error(qp, IB_WC_WR_FLUSH_ERR);
	if (resp->target.srq) {
		if (!resp->flushed)
			arx_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
		resp->flushed = true;
		return;
	}

	/*
	 * From now on libarx kicks for new WQEs: it stores prod, then reads the
	 * flag; the kernel stores the flag, then reads prod (pair E).
	 */
	WRITE_ONCE(qp->rq.ring.hdr->flags, ARX_RING_KICK_RECV);
	smp_mb();	/* flags before prod */
	for (most = ARX_FLUSH_WQES; most; most--) {
		int err = arx_responder_take(qp);

		if (err && err != -EINVAL)
			return;
		arx_responder_complete_error(qp, IB_WC_WR_FLUSH_ERR);
	}
	/* The program may store prod as fast as this flushes. */
	if (!arx_qp_go_on_charged(qp))
		arx_qp_schedule(qp);
}

/*
 * Requests that wait for their ACK arrived before the error. No later request
 * is accepted, so this is the last ACK.
 */
static void arx_responder_error(struct arx_qp *qp, u32 *bytes)
{
	if (arx_ack_is_next(&qp->resp))
		arx_rdatomic_reply(qp, bytes);
	arx_responder_flush(qp);
}

/*
 * UC and UD: there is no memory for a message that was dropped. Its receive WQE
 * fails now, unless a shorter message has used the WQE up meanwhile. The next
 * message would come too late for that: the process may have mapped the memory
 * by then.
 */
static __cold void arx_responder_no_memory(struct arx_qp *qp)
{
	struct arx_resp *resp = &qp->resp;

	WRITE_ONCE(resp->paging.job, NULL);
	if (!resp->have_rwqe || resp->rwqe.nr != resp->paging.request ||
	    !arx_qp_may(qp, ARX_QP_RECEIVE))
		return;
	arx_responder_complete_error(qp, IB_WC_LOC_PROT_ERR);
	arx_qp_error(qp, ARX_NO_EVENT);
}

/*
 * The pages are found, or there are none. A peer on this machine sends its
 * request again now: nothing tells a peer elsewhere, whose timer must expire.
 */
static __cold void arx_responder_ready(struct arx_qp *qp)
{
	struct arx_qp *peer = arx_send_other(qp);

	qp->resp.refused = false;
	if (peer && arx_completer_end_rnr_wait(peer))
		arx_qp_schedule(peer);
}

/* Serve requests that arx_responder_close() left, then send responses. */
static bool arx_responder_continue(struct arx_qp *qp, u32 *bytes)
{
	struct arx_resp *resp = &qp->resp;
	bool more;

	if (unlikely(resp->kept.bytes) && arx_qp_may(qp, ARX_QP_RECEIVE)) {
		arx_responder_close(qp);
		if (arx_responder_holds(resp))
			return false;
	}
	more = arx_rdatomic_reply(qp, bytes);
	if (unlikely(resp->refused) && !arx_ack_nak_is_due(resp) &&
	    !arx_paging_is_busy(&resp->paging))
		arx_responder_ready(qp);
	return more;
}

/**
 * arx_responder_run - send responses that are due
 * @qp: any QP
 * @bytes: as for arx_rdatomic_reply()
 *
 * Context: softirq or bottom halves off.
 * Return: as arx_rdatomic_reply().
 */
bool arx_responder_run(struct arx_qp *qp, u32 *bytes)
{
	bool more = false;

	arx_section_enter();
	spin_lock(&qp->resp.lock);
	if (arx_qp_may(qp, ARX_QP_FLUSH_RECV))
		arx_responder_error(qp, bytes);
	else if (arx_qp_is_acked(qp))
		more = arx_responder_continue(qp, bytes);
	else if (READ_ONCE(qp->resp.paging.job) == ARX_PAGING_FAILED)
		arx_responder_no_memory(qp);
	spin_unlock(&qp->resp.lock);
	arx_section_leave();
	return more;
}

/**
 * arx_responder_go_on - send a share of the responses that are due
 * @qp: any QP
 *
 * READ responses on one machine are left to the QP that reads.
 *
 * Context: as arx_responder_run(); no requester's lock held.
 */
void arx_responder_go_on(struct arx_qp *qp)
{
	u32 bytes;

	arx_section_enter();
	bytes = arx_send_reader(qp) ? 0 : ARX_SHARE_BYTES;
	if (arx_responder_run(qp, &bytes))
		arx_send_later(qp);
	arx_section_leave();
}

/**
 * arx_responder_kick - arx_responder_go_on() in the time of a process
 * @qp: QP with a responder
 *
 * Context: any with interrupts on; none of the QP locks held; @qp stays.
 * Return: true if it flushed receives: there may be more of them.
 */
bool arx_responder_kick(struct arx_qp *qp)
{
	u32 cons = READ_ONCE(qp->rq.cons);

	local_bh_disable();
	arx_responder_go_on(qp);
	local_bh_enable();
	return arx_qp_may(qp, ARX_QP_FLUSH_RECV) &&
	       READ_ONCE(qp->rq.cons) != cons;
}

/**
 * arx_responder_end_hold - send the responses that are due before the QP ends
 * @qp: QP with a responder
 *
 * The consumer may end the QP because of a message whose ACK is held back. No
 * other CPU can hold back this ACK again: an ACK that must hurry waits for no
 * other request, and a new hold begins only after another RNR NAK, which
 * acknowledges the message.
 *
 * Context: as arx_responder_kick().
 */
void arx_responder_end_hold(struct arx_qp *qp)
{
	spin_lock_bh(&qp->resp.lock);
	qp->resp.hold = false;
	if (qp->resp.closing)
		arx_ack_hurry(&qp->resp);
	spin_unlock_bh(&qp->resp.lock);
	arx_responder_kick(qp);
}
