// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The completer: processes acknowledgments and read data, moves @una forward
 * and completes WQEs in order. It decides about retries: after a loss, a NAK or
 * silence it counts a rewind, and the requester then goes back to @una.
 */

#include <net/sock.h>

#include "account.h"
#include "compat.h"
#include "completer.h"
#include "congestion.h"
#include "cq.h"
#include "loss.h"
#include "schedule.h"
#include "section.h"
#include "send.h"
#include "sendwr.h"
#include "sock.h"
#include "state.h"
#include "trace.h"

/* Maximum wait in microseconds, unless the receiver asks for more. */
#define ARX_RNR_DELAY_MAX	20000U
#define ARX_RNR_ROW_MAX		11

/*
 * A wait that follows this many others, without progress between them, is not
 * cut short: memory that goes whenever it is found must not keep CPUs busy.
 */
#define ARX_RNR_ROW_CUT		6

/*
 * Expiries without progress that may cost no retry: as many as there are
 * retries at most.
 */
#define ARX_HELD_MAX		7

static u32 arx_completer_end(const struct arx_swqe *swqe)
{
	return arx_psn_add(swqe->first_psn, swqe->npkts);
}

/* The send queue advances past the oldest WQE. */
static __always_inline void arx_completer_pass(struct arx_qp *qp,
					       struct arx_swqe *swqe)
{
	struct arx_comp *comp = &qp->comp;

	if (arx_swqe_is_rd(swqe) && swqe->npkts)
		arx_publish(&comp->rd_done, comp->rd_done + 1);
	arx_sendwr_release(swqe);
	arx_publish(&comp->done, comp->done + 1);
}

/* Report the oldest WQE; between arx_cq_begin() and arx_cq_end(). */
static bool arx_completer_put_cqe(struct arx_qp *qp,
				  const struct arx_swqe *swqe,
				  enum ib_wc_status status, u32 vendor_err)
{
	struct arx_comp *comp = &qp->comp;
	struct arx_cqe cqe = {
		.wr_id = swqe->wqe.wr_id,
		.byte_len = swqe->length,
		.qpn = qp->id.nr,
		.sq_index = comp->done + 1,
		.opcode = swqe->wc_opcode,
		.status = status,
		.vendor_err = vendor_err,
		.is_send = true,
		.vlan_id = 0xffff,
	};

	if (unlikely(status != IB_WC_SUCCESS)) {
		if (status == IB_WC_WR_FLUSH_ERR)
			arx_count(qp, REQ_FLUSHED);
		else
			arx_count(qp, REQ_ERROR);
	}
	arx_publish(&comp->reported, comp->done + 1);
	return arx_cq_put(qp->scq, &cqe);
}

/* Complete the oldest WQE, which was not complete. */
static void arx_completer_finish(struct arx_qp *qp, struct arx_swqe *swqe,
				 enum ib_wc_status status, u32 vendor_err)
{
	bool reported;

	arx_cq_begin(qp->scq);
	reported = arx_completer_put_cqe(qp, swqe, status, vendor_err);
	arx_cq_end(qp->scq, false, true);
	if (!reported)
		arx_qp_error(qp, IB_EVENT_QP_FATAL);
	arx_completer_pass(qp, swqe);
}

/* Fail the oldest WQE; 10.3.1: UD and UC stop sending, RC stops altogether. */
static __cold void arx_completer_fail(struct arx_qp *qp,
				      enum ib_wc_status status, u32 vendor_err)
{
	struct arx_comp *comp = &qp->comp;

	if (comp->done == arx_published(&qp->req.fetched))
		return;
	trace_arx_fault(qp, true, status);
	arx_completer_finish(qp, arx_qp_swqe(qp, comp->done), status,
			     vendor_err);
	arx_qp_send_error(qp);
}

/*
 * True if the oldest WQE is complete: one with packets by @una, any other when
 * the requester has passed it.
 */
static bool arx_completer_retirable(const struct arx_qp *qp,
				    const struct arx_swqe *swqe)
{
	const struct arx_comp *comp = &qp->comp;

	if (swqe->npkts && swqe->status == IB_WC_SUCCESS &&
	    arx_qp_is_acked(qp))
		return arx_psn_diff(comp->una, arx_completer_end(swqe)) >= 0;
	/*
	 * Executed once, it is complete, wherever a requester that went back is
	 * now.
	 */
	if (swqe->local && smp_load_acquire(&swqe->executed))
		return true;
	return (s32)(arx_published(&qp->req.sent) - comp->done) > 0;
}

/*
 * Complete the oldest WQEs as long as they are done, and report those that ask
 * for it together, because an acknowledgment often covers many. Returns the
 * first WQE that is not done, or NULL.
 */
static struct arx_swqe *arx_completer_retire_done(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	struct arx_swqe *swqe = NULL;
	bool began = false;
	bool lost = false;

	while (comp->done != arx_published(&qp->req.fetched)) {
		swqe = arx_qp_swqe(qp, comp->done);
		/*
		 * In this order, because the status is set before the WQE is
		 * complete.
		 */
		if (!arx_completer_retirable(qp, swqe) ||
		    swqe->status != IB_WC_SUCCESS)
			break;
		if (qp->sq_sig_all || swqe->wqe.flags & IB_SEND_SIGNALED) {
			if (!began)
				arx_cq_begin(qp->scq);
			began = true;
			lost |= !arx_completer_put_cqe(qp, swqe,
						       IB_WC_SUCCESS, 0);
		}
		arx_completer_pass(qp, swqe);
		swqe = NULL;
	}
	if (began)
		arx_cq_end(qp->scq, false, false);
	if (lost)
		arx_qp_error(qp, IB_EVENT_QP_FATAL);
	return swqe;
}

/*
 * Complete a WQE that failed; the first failed WQE has the reason. A flushed
 * WQE is never the first, even if the QP is in RTS again.
 */
static void arx_completer_report(struct arx_qp *qp, struct arx_swqe *swqe)
{
	if (arx_qp_may(qp, ARX_QP_FLUSH) ||
	    swqe->status == IB_WC_WR_FLUSH_ERR)
		arx_completer_finish(qp, swqe, IB_WC_WR_FLUSH_ERR, 0);
	else
		arx_completer_fail(qp, swqe->status, 0);
}

/**
 * arx_completer_set_failed - the requester cannot send WQE @req.sent
 * @qp: any QP
 * @status: why
 *
 * The WQE may be sent again at this time, and complete by the acknowledgment of
 * an earlier transmission. Then the application may have taken away its memory,
 * and the requester fails to read it: that is no failure of the WQE.
 *
 * Context: requester's lock held, completer's lock not held.
 * Return: false if the WQE is complete.
 */
bool arx_completer_set_failed(struct arx_qp *qp, enum ib_wc_status status)
{
	struct arx_comp *comp = &qp->comp;
	u32 index = qp->req.sent;
	bool fails;

	spin_lock(&comp->lock);
	fails = (s32)(comp->done - index) <= 0;
	if (fails)
		arx_qp_swqe(qp, index)->status = status;
	spin_unlock(&comp->lock);
	return fails;
}

/**
 * arx_completer_knows - true if the peer has named a PSN from @psn on
 * @comp: of a QP
 * @psn: PSNs before it have been sent
 *
 * Context: completer's lock held.
 * Return: true if the peer has acknowledged, reported or answered one of them.
 */
bool arx_completer_knows(const struct arx_comp *comp, u32 psn)
{
	u32 last;

	return arx_psn_diff(comp->una, psn) > 0 ||
	       (comp->has_later && arx_psn_diff(comp->later, psn) > 0) ||
	       (comp->loss && arx_psn_diff(comp->loss->end, psn) > 0) ||
	       (arx_keep_last(&comp->kept, &last) &&
		arx_psn_diff(last, psn) >= 0);
}

static void arx_completer_retire_locked(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	struct arx_swqe *swqe;

	if (unlikely(comp->kept.bytes) && arx_qp_may(qp, ARX_QP_FLUSH) &&
	    arx_keep_shrink(&comp->kept))
		arx_qp_schedule(qp);

	while ((swqe = arx_completer_retire_done(qp))) {
		u32 behind = arx_published(&qp->req.sent) - comp->done;
		bool sent = (s32)behind > 0;

		if (arx_completer_retirable(qp, swqe)) {
			/* It is done now, but was not a moment ago. */
			if (swqe->status != IB_WC_SUCCESS)
				arx_completer_report(qp, swqe);
		} else if (arx_qp_may(qp, ARX_QP_FLUSH) && sent) {
			arx_completer_finish(qp, swqe, IB_WC_WR_FLUSH_ERR, 0);
		} else {
			break;
		}
	}
}

/**
 * arx_completer_retire - complete WQEs that the requester has passed
 * @qp: any QP
 *
 * For work without an acknowledgment: local, UC, UD, failed and flushed WQEs.
 *
 * Context: bottom halves off; requester's lock may be held.
 */
void arx_completer_retire(struct arx_qp *qp)
{
	spin_lock(&qp->comp.lock);
	arx_completer_retire_locked(qp);
	spin_unlock(&qp->comp.lock);
}

/* A peer whose receiver was not ready gets the oldest packet and READs only. */
static bool arx_completer_is_alone(const struct arx_qp *qp)
{
	const struct arx_comp *comp = &qp->comp;

	return comp->rnr_row && READ_ONCE(qp->req.rd_sent) == comp->rd_done;
}

static void arx_completer_start_probe(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	u64 ns = arx_loss_interval(comp->loss, arx_completer_is_alone(qp));

	hrtimer_start(&comp->probe, ns_to_ktime(ns), HRTIMER_MODE_REL_SOFT);
}

/* The peer was heard since the timer was started. */
static void arx_completer_continue_probe(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	u64 ns = arx_loss_left(comp->loss, arx_completer_is_alone(qp),
			       ktime_get_ns());

	hrtimer_start(&comp->probe, ns_to_ktime(ns), HRTIMER_MODE_REL_SOFT);
}

/*
 * Make the requester start again at @una; retransmissions get the full timeout.
 */
static void arx_completer_rewind(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;

	if (comp->loss) {
		arx_loss_forget(comp->loss, comp->una,
				comp->rnr_row ? arx_published(&qp->req.nxt) :
						comp->una);
		WRITE_ONCE(comp->there, 0);
		if (arx_qp_may(qp, ARX_QP_ACKED))
			arx_completer_start_probe(qp);
	}
	arx_congestion_rewound(qp);
	comp->timer_una = arx_psn_add(comp->una, -1);
	arx_publish(&comp->rewinds, comp->rewinds + 1);
}

/* Make the requester send again what the peer misses. */
static __cold void arx_completer_fill(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;

	comp->fills++;
	arx_publish(&comp->rewinds, comp->rewinds + 1);
}

/* Begin to note what the peer misses; false without memory. */
static __cold bool arx_completer_note(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	struct arx_loss *loss = comp->loss;

	if (loss)
		return true;
	/*
	 * May exceed the limit of the memory cgroup: page cache often fills a
	 * cgroup up to its limit.
	 */
	loss = arx_charged_zalloc(qp->memcg, sizeof(*loss), GFP_ATOMIC);
	if (!loss)
		return false;
	arx_loss_init(loss, comp->una, arx_published(&qp->req.nxt));
	WRITE_ONCE(comp->loss, loss);
	return true;
}

/* The peer has told which packets it has; some may have been only late. */
static void arx_completer_judge_late(struct arx_qp *qp)
{
	struct arx_loss *loss = qp->comp.loss;

	if (likely(!loss->mistaken))
		return;
	arx_congestion_late(qp, loss->mistaken);
	loss->mistaken = 0;
}

/* @una moved: the peer is alive, so all retry counts are reset. */
static void arx_completer_set_una(struct arx_qp *qp, u32 una)
{
	struct arx_comp *comp = &qp->comp;

	trace_arx_acked(qp, comp->una, una);
	if (unlikely(comp->loss)) {
		arx_loss_advance(comp->loss, una, ktime_get_ns());
		arx_completer_judge_late(qp);
		WRITE_ONCE(comp->there, comp->loss->has);
		WRITE_ONCE(comp->rtt, comp->loss->srtt);
	}
	if (unlikely(arx_congestion_follows(qp)))
		arx_congestion_acked(qp, una);
	arx_publish(&comp->una, una);
	/* The peer gets what the QP sends, so the neighbour entry is right. */
	sk_dst_confirm(qp->tx_sk);
	comp->retries_left = qp->attr.retry_cnt;
	comp->rnr_left = qp->attr.rnr_retry;
	WRITE_ONCE(comp->rnr_row, 0);
	comp->held = 0;
	comp->gap = false;
	if (unlikely(comp->loss) && arx_loss_hasten(comp->loss) &&
	    una != arx_published(&qp->req.nxt))
		arx_completer_start_probe(qp);
}

/*
 * Everything before @end is acknowledged, except READs and atomics whose
 * response did not come: an acknowledgment after them says that it is lost
 * (9.7.5.1.3). Returns false in that case.
 */
static bool arx_completer_advance(struct arx_qp *qp, u32 end)
{
	struct arx_comp *comp = &qp->comp;
	u32 fetched = arx_published(&qp->req.fetched);
	bool whole = true;
	u32 una = comp->una;
	u32 index;

	for (index = comp->done; index != fetched; index++) {
		struct arx_swqe *swqe = arx_qp_swqe(qp, index);

		if (arx_psn_diff(end, una) <= 0)
			break;
		if (!swqe->npkts ||
		    arx_psn_diff(una, arx_completer_end(swqe)) >= 0)
			continue;
		if (arx_psn_diff(end, swqe->first_psn) <= 0)
			break;
		if (arx_swqe_is_rd(swqe)) {
			whole = false;
			break;
		}
		una = arx_psn_diff(end, arx_completer_end(swqe)) < 0 ?
		      end : arx_completer_end(swqe);
	}
	if (arx_psn_diff(una, comp->una) > 0)
		arx_completer_set_una(qp, una);
	arx_completer_retire_locked(qp);
	return whole;
}

/* The WQE that contains @una; NULL if there is none. */
static struct arx_swqe *arx_completer_current(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	struct arx_swqe *swqe;

	if (comp->done == arx_published(&qp->req.fetched))
		return NULL;
	swqe = arx_qp_swqe(qp, comp->done);
	if (!swqe->npkts || swqe->status != IB_WC_SUCCESS ||
	    arx_psn_diff(comp->una, swqe->first_psn) < 0)
		return NULL;
	return swqe;
}

/*
 * Responses before the received packet are missing: request them again, once
 * for each gap.
 */
static __cold void arx_completer_gap(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;

	if (comp->gap)
		return;
	comp->gap = true;
	arx_count(qp, IMPLIED_NAK);
	arx_congestion_lost(qp, comp->una, 1, 1);
	arx_completer_rewind(qp);
}

/*
 * Responses before this PSN are missing, unless they are kept. On a machine of
 * several CPUs an ACK may overtake responses: without a response behind it, it
 * only tells that the READ at @una has lost some.
 */
static __cold u32 arx_completer_missing_end(struct arx_qp *qp)
{
	struct arx_swqe *swqe = arx_completer_current(qp);
	struct arx_comp *comp = &qp->comp;
	u32 end;

	if (!comp->has_later || !swqe)
		return comp->una;
	if (arx_keep_last(&comp->kept, &end))
		return end;
	end = arx_completer_end(swqe);
	return arx_psn_diff(end, comp->later) < 0 ? end : comp->later;
}

/*
 * The next part of a READ whose responses are missing and have not been asked
 * for again.
 */
static __cold bool arx_completer_next_part(struct arx_qp *qp, u32 *psn,
					   u32 *end)
{
	u32 fetched = arx_published(&qp->req.fetched);
	u32 limit = arx_completer_missing_end(qp);
	struct arx_comp *comp = &qp->comp;
	u32 at = comp->loss->ask_next;
	u32 index = comp->done;

	for (; index != fetched && arx_psn_diff(at, limit) < 0; index++) {
		struct arx_swqe *swqe = arx_qp_swqe(qp, index);
		u32 to = arx_completer_end(swqe);

		if (!swqe->npkts || arx_psn_diff(at, to) >= 0)
			continue;
		if (arx_psn_diff(to, limit) > 0)
			to = limit;
		if (arx_swqe_is_rd(swqe) &&
		    arx_keep_gap(&comp->kept, at, to, psn, end)) {
			comp->loss->ask_next = *psn;
			return arx_loss_may_ask(comp->loss, *psn, *end,
						qp->attr.max_rd_atomic);
		}
		at = to;
	}
	comp->loss->ask_next = at;
	return false;
}

/*
 * Responses from @una on are missing: have the requester ask for all such
 * parts. The timer of losses watches the first of them.
 */
static __cold void arx_completer_ask(struct arx_qp *qp)
{
	struct arx_swqe *swqe = arx_completer_current(qp);
	struct arx_comp *comp = &qp->comp;
	struct arx_loss *loss = comp->loss;
	u32 psn, end;

	if (!swqe || !arx_swqe_is_rd(swqe) ||
	    arx_keep_is_due(&comp->kept, comp->una))
		return;
	if (arx_loss_watch(loss) && !loss->holding)
		arx_completer_start_probe(qp);
	if (loss->ask || !arx_completer_next_part(qp, &psn, &end))
		return;
	loss->ask = true;
	arx_completer_fill(qp);
}

/*
 * A response or an ACK arrived behind responses that are missing. If it can be
 * kept, only the missing responses are asked for again; otherwise, everything
 * from @una on.
 */
static __cold void arx_completer_behind(struct arx_qp *qp, struct arx_run *run)
{
	struct arx_comp *comp = &qp->comp;
	u32 end = run->h.psn;

	if (run->h.op == ARX_OP_ACK &&
	    FIELD_GET(ARX_AETH_TYPE, run->h.syndrome) == ARX_AETH_ACK)
		end = arx_psn_add(end, 1);
	if (!comp->reports || !arx_completer_note(qp) ||
	    (run->h.op != ARX_OP_ACK &&
	     !arx_keep_add(&comp->kept, run))) {
		arx_completer_gap(qp);
		return;
	}
	/* One with the same first PSN may have been kept before. */
	if (run->h.op != ARX_OP_ACK && !run->packets) {
		arx_loss_arrived(comp->loss, end, run->npkts, ktime_get_ns());
		arx_congestion_arrived(qp, end, run->npkts);
	}
	if (!comp->has_later || arx_psn_diff(end, comp->later) > 0)
		comp->later = end;
	WRITE_ONCE(comp->has_later, true);
	arx_completer_ask(qp);
}

static enum ib_wc_status arx_completer_nak_status(u8 code)
{
	switch (code) {
	case ARX_NAK_INV_REQ:
		return IB_WC_REM_INV_REQ_ERR;
	case ARX_NAK_REM_ACCESS:
		return IB_WC_REM_ACCESS_ERR;
	case ARX_NAK_REM_OP:
		return IB_WC_REM_OP_ERR;
	case ARX_NAK_INV_RD_REQ:
		return IB_WC_REM_INV_RD_REQ_ERR;
	default:
		return IB_WC_BAD_RESP_ERR;
	}
}

static __cold void arx_completer_count_nak(struct arx_qp *qp, u8 code)
{
	if (code == ARX_NAK_INV_REQ || code == ARX_NAK_INV_RD_REQ)
		arx_count(qp, REQ_INVALID);
	else if (code == ARX_NAK_REM_ACCESS)
		arx_count(qp, REQ_ACCESS);
	else if (code == ARX_NAK_REM_OP)
		arx_count(qp, REQ_REMOTE_OP);
}

/* Use one retry; false if none was left, and the QP has failed. */
static bool arx_completer_retry(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;

	if (!comp->retries_left) {
		arx_count(qp, RETRY_EXCEEDED);
		arx_completer_fail(qp, IB_WC_RETRY_EXC_ERR, 0);
		return false;
	}
	arx_count(qp, RETRIES);
	comp->retries_left--;
	arx_completer_rewind(qp);
	return true;
}

static bool arx_completer_is_report(const struct arx_run *run)
{
	return run->len && !(run->len % sizeof(__be32)) &&
	       run->len <= ARX_REPORT_WORDS * sizeof(__be32);
}

/*
 * A sequence NAK with a report: the peer keeps what it reports, and only the
 * rest is sent again. False if this is no report, or without memory.
 */
static __cold bool arx_completer_learn(struct arx_qp *qp, struct arx_run *run)
{
	__be32 words[ARX_REPORT_WORDS];
	struct arx_comp *comp = &qp->comp;
	struct arx_iter to;
	bool hastens;

	if (!arx_completer_is_report(run) || !arx_completer_note(qp))
		return false;
	arx_iter_buf(&to, words);
	if (arx_iter_copy(&to, &run->payload, run->len) != ARX_COPY_OK)
		return false;
	if (arx_loss_report(comp->loss, words, run->len / sizeof(*words),
			    arx_published(&qp->req.nxt), ktime_get_ns()))
		arx_completer_fill(qp);
	WRITE_ONCE(comp->there, comp->loss->has);
	arx_completer_judge_late(qp);
	arx_congestion_reported(qp);
	hastens = comp->loss->news && arx_loss_hasten(comp->loss);
	if (arx_loss_hold(comp->loss) || hastens)
		arx_completer_start_probe(qp);
	return true;
}

static __cold void arx_completer_nak(struct arx_qp *qp, struct arx_run *run)
{
	u8 syndrome = run->h.syndrome;
	u8 code = FIELD_GET(ARX_AETH_VALUE, syndrome);

	if (!arx_completer_current(qp))
		return;
	if (code == ARX_NAK_SEQ_ERR) {
		arx_count(qp, RCVD_SEQ_NAK);
		if (arx_completer_learn(qp, run))
			return;
		/*
		 * The peer reports a gap as often as it is asked, so a report
		 * that cannot be noted costs no retry: go back once. If what is
		 * sent then is lost again, only the retransmission timer helps.
		 */
		if (arx_completer_is_report(run) && qp->attr.timeout) {
			arx_completer_gap(qp);
			return;
		}
		/* One packet at least: the peer does not report which. */
		arx_congestion_lost(qp, qp->comp.una, 1, 1);
		arx_completer_retry(qp);
		return;
	}
	arx_completer_count_nak(qp, code);
	arx_completer_fail(qp, arx_completer_nak_status(code), syndrome);
}

/*
 * Wait time: at least what the receiver asks for. Each RNR NAK without progress
 * doubles it, up to a limit: retries are work in softirq context, and at 10 us
 * intervals may leave the receiving program no time to post a WQE.
 */
static ktime_t arx_completer_rnr_delay(struct arx_qp *qp, u8 syndrome)
{
	u32 us = arx_rnr_timer_us(FIELD_GET(ARX_AETH_VALUE, syndrome));
	struct arx_comp *comp = &qp->comp;
	u32 longer = us << comp->rnr_row;

	if (comp->rnr_row < ARX_RNR_ROW_MAX)
		WRITE_ONCE(comp->rnr_row, comp->rnr_row + 1);
	us = max(us, min(longer, ARX_RNR_DELAY_MAX));
	return ns_to_ktime(us * (u64)NSEC_PER_USEC);
}

/* 9.7.5.2.8: the receiver has no WQE; try again after the time in the NAK. */
static __cold void arx_completer_rnr(struct arx_qp *qp, u8 syndrome)
{
	struct arx_comp *comp = &qp->comp;

	if (comp->rnr_wait || !arx_completer_current(qp))
		return;
	arx_count(qp, RCVD_RNR_NAK);
	if (!comp->rnr_left) {
		arx_count(qp, RNR_RETRY_EXCEEDED);
		arx_completer_fail(qp, IB_WC_RNR_RETRY_EXC_ERR, syndrome);
		return;
	}
	if (comp->rnr_left != 7)	/* 7: unlimited */
		comp->rnr_left--;
	comp->retries_left = qp->attr.retry_cnt;	/* the peer is alive */
	if (comp->loss)
		arx_loss_answered(comp->loss);
	WRITE_ONCE(comp->rnr_wait, true);
	hrtimer_start(&comp->rnr, arx_completer_rnr_delay(qp, syndrome),
		      HRTIMER_MODE_REL_SOFT);
}

static void arx_completer_ack(struct arx_qp *qp, struct arx_run *run)
{
	u8 type = FIELD_GET(ARX_AETH_TYPE, run->h.syndrome);
	u32 psn = run->h.psn;

	arx_count(qp, ACKS_RCVD);
	WRITE_ONCE(qp->comp.reports, run->h.flags & ARX_REPORTS);
	if (type == ARX_AETH_ACK) {
		if (!arx_completer_advance(qp, arx_psn_add(psn, 1)))
			arx_completer_behind(qp, run);
		return;
	}
	/* A NAK acknowledges all requests before its PSN. */
	if (!arx_completer_advance(qp, psn)) {
		if (run->len)
			arx_completer_behind(qp, run);
		else
			arx_completer_gap(qp);
		return;
	}
	if (qp->comp.una != psn)
		return;
	trace_arx_nak_rcvd(qp, run->h.syndrome, psn);
	if (type == ARX_AETH_RNR)
		arx_completer_rnr(qp, run->h.syndrome);
	else if (type == ARX_AETH_NAK)
		arx_completer_nak(qp, run);
}

/*
 * The memory for a response was there when it was requested, and has been paged
 * out since. Drop the response; the requester goes back, finds the pages and
 * requests it again. Responses that follow this one are no gap meanwhile.
 */
static __cold void arx_completer_no_pages(struct arx_qp *qp)
{
	qp->comp.gap = true;
	arx_count(qp, RX_DROPPED);
	arx_completer_rewind(qp);
}

/* Write the data of a READ or atomic at @una to the SGEs of its WQE. */
static void arx_completer_place(struct arx_qp *qp, struct arx_swqe *swqe,
				struct arx_iter *from, u32 off, u32 len,
				u32 npkts)
{
	struct arx_iter to __uninitialized;
	struct arx_pages want __uninitialized;
	bool ok;

	arx_iter_sge(&to, arx_qp_dev(qp), qp->ib.pd, swqe->sge,
		     swqe->wqe.num_sge, IB_ACCESS_LOCAL_WRITE);
	ok = !arx_iter_skip(&to, off);
	if (ok && arx_iter_absent(&to, len, len, &want)) {
		arx_iter_end(&to);
		arx_completer_no_pages(qp);
		return;
	}
	ok = ok && arx_iter_copy(&to, from, len) == ARX_COPY_OK;
	arx_iter_end(&to);
	if (!ok) {
		arx_completer_fail(qp, IB_WC_LOC_PROT_ERR, 0);
		return;
	}
	arx_publish(&qp->comp.rd_psns, qp->comp.rd_psns + npkts);
	arx_completer_set_una(qp, arx_psn_add(qp->comp.una, npkts));
	arx_completer_retire_locked(qp);
}

/* True if @run ends what was asked for again, in the middle of its READ. */
static __cold bool arx_completer_ends_part(const struct arx_qp *qp,
					   const struct arx_run *run)
{
	const struct arx_loss *loss = qp->comp.loss;

	return loss && run->len == run->npkts * qp->mtu &&
	       arx_loss_asked(loss, arx_psn_add(run->h.psn, run->npkts));
}

/* True if the length of @run fits the @left bytes of its READ. */
static bool arx_completer_fits(const struct arx_qp *qp,
			       const struct arx_run *run, u32 left)
{
	if (run->h.flags & ARX_LAST)
		return run->len == left ||
		       (run->len < left && arx_completer_ends_part(qp, run));
	return run->len < left;
}

static void arx_completer_read(struct arx_qp *qp, struct arx_swqe *swqe,
			       struct arx_run *run)
{
	u32 pkts = arx_psn_diff(qp->comp.una, swqe->first_psn);
	u32 off = pkts * qp->mtu;
	u32 left = swqe->length - off;

	if (run->npkts > swqe->npkts - pkts ||
	    !arx_completer_fits(qp, run, left) ||
	    !arx_run_well_formed(run, qp->mtu)) {
		arx_completer_fail(qp, IB_WC_BAD_RESP_ERR, 0);
		return;
	}
	arx_completer_place(qp, swqe, &run->payload, off, run->len,
			    run->npkts);
}

static void arx_completer_atomic(struct arx_qp *qp, struct arx_swqe *swqe,
				 struct arx_run *run)
{
	u64 orig = run->h.orig;
	struct arx_iter from;

	arx_iter_buf(&from, &orig);
	arx_completer_place(qp, swqe, &from, 0, sizeof(orig), 1);
}

/* FLUSH and ATOMIC WRITE are answered as a READ of no bytes is. */
static void arx_completer_done(struct arx_qp *qp, struct arx_swqe *swqe,
			       struct arx_run *run)
{
	if (run->len || run->npkts != 1 || !(run->h.flags & ARX_LAST))
		arx_completer_fail(qp, IB_WC_BAD_RESP_ERR, 0);
	else
		arx_completer_place(qp, swqe, &run->payload, 0, 0, 1);
}

/* True for requests whose response is a value. */
static bool arx_completer_is_atomic(const struct arx_swqe *swqe)
{
	return swqe->op == ARX_OP_COMPARE_SWAP || swqe->op == ARX_OP_FETCH_ADD;
}

/* A response with data: it must be the one due at @una. */
static void arx_completer_data(struct arx_qp *qp, struct arx_run *run)
{
	bool atomic = run->h.op == ARX_OP_ATOMIC_ACK;
	struct arx_swqe *swqe;

	if (run->h.flags & ARX_LAST)
		WRITE_ONCE(qp->comp.reports, run->h.flags & ARX_REPORTS);
	/* It acknowledges all requests before its own. */
	if (!arx_completer_advance(qp, run->h.psn) ||
	    qp->comp.una != run->h.psn) {
		arx_completer_behind(qp, run);
		return;
	}
	swqe = arx_completer_current(qp);
	if (!swqe)
		return;
	if (!arx_swqe_is_rd(swqe) || atomic != arx_completer_is_atomic(swqe))
		arx_completer_fail(qp, IB_WC_BAD_RESP_ERR, 0);
	else if (atomic)
		arx_completer_atomic(qp, swqe, run);
	else if (swqe->op == ARX_OP_READ)
		arx_completer_read(qp, swqe, run);
	else
		arx_completer_done(qp, swqe, run);
}

/*
 * True for PSNs in flight only: [una, nxt). A run that begins there and ends
 * later has more than was requested, which is an error like any other. Read
 * data that begins before may overlap the due data, if the responder answered a
 * request twice: the overlap is cut off.
 */
static bool arx_completer_in_window(struct arx_qp *qp, struct arx_run *run)
{
	s32 ahead = arx_psn_diff(run->h.psn, qp->comp.una);

	if (ahead < 0 && (run->h.op != ARX_OP_READ_RESPONSE ||
			  !arx_run_trim_first(run, -ahead, qp->mtu)))
		return false;
	return arx_psn_diff(run->h.psn, arx_published(&qp->req.nxt)) < 0;
}

/* The next run that was kept, if no response before it is missing. */
static struct arx_kept *arx_completer_next_kept(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	u32 first;

	if (!arx_keep_first(&comp->kept, &first))
		return NULL;
	if (arx_psn_diff(first, comp->una) > 0)
		arx_completer_advance(qp, first);
	return arx_keep_take(&comp->kept, comp->una);
}

/*
 * A gap may have closed: process what was kept behind it, one share at a time.
 * If another gap follows, ask for that one. The QP may fail meanwhile: then
 * what the peer has acknowledged completes no more. All of it is flushed, and
 * what is kept is freed, by the flush or with the QP.
 */
static __cold void arx_completer_close(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	s32 share = ARX_POLL_BYTES;
	struct arx_kept *kept;

	while (arx_qp_may(qp, ARX_QP_ACKED) &&
	       (kept = arx_completer_next_kept(qp))) {
		share -= max(kept->run.len, ARX_KEEP_LEAST);
		if (arx_completer_in_window(qp, &kept->run))
			arx_completer_data(qp, &kept->run);
		arx_keep_free(kept);
		if (share <= 0 && arx_keep_is_due(&comp->kept, comp->una))
			break;
	}
	if (!arx_qp_may(qp, ARX_QP_ACKED)) {
		WRITE_ONCE(comp->has_later, false);
		return;
	}
	if (arx_keep_is_due(&comp->kept, comp->una)) {
		arx_qp_schedule(qp);
		return;
	}
	if (comp->has_later)
		arx_completer_advance(qp, comp->later);
	if (comp->has_later && arx_psn_diff(comp->una, comp->later) >= 0)
		WRITE_ONCE(comp->has_later, false);
	if (comp->has_later && comp->loss)
		arx_completer_ask(qp);
}

/**
 * arx_completer_rx - process an acknowledgment or response data
 * @qp: RC QP
 * @run: from its peer, over the wire or on this machine
 *
 * Context: softirq or bottom halves off, RCU read side; the peer's responder
 * lock may be held.
 * Return: true if the requester should run.
 */
bool arx_completer_rx(struct arx_qp *qp, struct arx_run *run)
{
	struct arx_comp *comp = &qp->comp;
	u32 rewinds;
	bool wake;

	spin_lock(&comp->lock);
	trace_arx_run_in(qp, run, comp->una);
	rewinds = comp->rewinds;
	if (arx_qp_may(qp, ARX_QP_ACKED) && arx_completer_in_window(qp, run)) {
		if (run->h.op == ARX_OP_ACK)
			arx_completer_ack(qp, run);
		else
			arx_completer_data(qp, run);
		if (unlikely(comp->has_later))
			arx_completer_close(qp);
	}
	wake = rewinds != comp->rewinds;
	spin_unlock(&comp->lock);

	smp_mb();	/* pairs with arx_requester_locked() */
	return wake || READ_ONCE(qp->req.waiting);
}

/**
 * arx_completer_continue - process kept responses that are due
 * @qp: QP with a requester, which runs next
 *
 * Context: softirq or bottom halves off.
 */
void arx_completer_continue(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;

	if (likely(!READ_ONCE(comp->has_later)))
		return;
	arx_section_enter();
	spin_lock(&comp->lock);
	if (comp->has_later)
		arx_completer_close(qp);
	spin_unlock(&comp->lock);
	arx_section_leave();
}

static unsigned long arx_completer_timeout(const struct arx_qp *qp)
{
	/*
	 * 11.2.4.2: 4.096 us << timeout; the timer expires twice before it acts
	 */
	u64 us = (4096ULL << qp->attr.timeout) / 1000;

	return max(1UL, usecs_to_jiffies(min_t(u64, us, UINT_MAX)));
}

/* True if a request is in flight and the timer is not running. */
static bool arx_completer_unwatched(const struct arx_qp *qp)
{
	const struct arx_comp *comp = &qp->comp;

	return READ_ONCE(comp->una) != READ_ONCE(qp->req.nxt) &&
	       !timer_pending(&comp->retransmit) &&
	       arx_qp_may(qp, ARX_QP_ACKED) && qp->attr.timeout;
}

/* Measure the round trip, and notice if nothing comes back. */
static __cold void arx_completer_watch_loss(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	u32 nxt;

	spin_lock_bh(&comp->lock);
	nxt = arx_published(&qp->req.nxt);
	if (comp->loss && comp->una != nxt && arx_qp_may(qp, ARX_QP_ACKED)) {
		arx_loss_time(comp->loss, arx_psn_add(nxt, -1),
			      ktime_get_ns());
		if (!hrtimer_is_queued(&comp->probe))
			arx_completer_start_probe(qp);
	}
	spin_unlock_bh(&comp->lock);
}

/**
 * arx_completer_arm - start the retransmission timer if a request is in flight
 * @qp: any QP
 *
 * A pending timer is not changed: when it expires, it checks whether @una moved
 * since it was started, so that packets need not touch the timer. The state is
 * checked under the lock: once it has changed, arx_completer_stop() ends the
 * timer for good.
 *
 * Context: any but hard interrupts; requester's lock may be held; @qp must stay
 * valid, by an RCU read section or because its consumer may not destroy it
 * meanwhile.
 */
void arx_completer_arm(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;

	if (!arx_qp_is_acked(qp))
		return;
	/*
	 * req.nxt before the check of the timer; pairs with the lock in the
	 * handler
	 */
	smp_mb();
	if (unlikely(READ_ONCE(comp->loss)))
		arx_completer_watch_loss(qp);
	if (unlikely(arx_congestion_measures(qp)))
		arx_congestion_sent(qp);
	if (!arx_completer_unwatched(qp))
		return;

	spin_lock_bh(&comp->lock);
	if (arx_completer_unwatched(qp)) {
		comp->timer_una = comp->una;
		mod_timer(&comp->retransmit,
			  jiffies + arx_completer_timeout(qp));
	}
	spin_unlock_bh(&comp->lock);
}

/*
 * True if the peer has reported other packets since the last expiry: what is
 * missing from @una on was lost again, and is being sent again. So that a
 * packet that never arrives ends the QP, this is true only a limited number of
 * times.
 */
static bool arx_completer_recovers(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;

	if (!comp->loss || !comp->loss->heard || comp->held == ARX_HELD_MAX)
		return false;
	comp->loss->heard = false;
	comp->held++;
	return true;
}

/*
 * True if pages are being found for the oldest request. A requester that is
 * further on waits for pages of a later one: the peer may have missed the
 * packets in between.
 */
static bool arx_completer_pages(const struct arx_qp *qp)
{
	return arx_paging_is_busy(&qp->req.paging) &&
	       READ_ONCE(qp->req.psn) == qp->comp.una;
}

/*
 * True if nothing was acknowledged for another reason than the peer. No packet
 * can be sent, or pages are being found, or the packets are still on this
 * machine, in a queue or waiting for a neighbour, or this machine dropped
 * them: sending them again costs no retry. A packet may be held for ever, and
 * a machine may drop all packets. So this is true only a limited number of
 * times, unless fewer bytes are queued each time.
 */
static bool arx_completer_excused(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	u32 waits = arx_sock_waits(qp);

	if (comp->rnr_wait || READ_ONCE(qp->req.blocked) ||
	    arx_completer_pages(qp))
		return true;
	if (arx_completer_recovers(qp))
		return true;
	if (!waits && !READ_ONCE(qp->req.dropped))
		return false;
	if (comp->held && waits < comp->waited) {
		comp->waited = waits;
		return true;
	}
	if (comp->held == ARX_HELD_MAX)
		return false;
	if (!comp->held++)
		comp->waited = waits;
	return true;
}

/**
 * arx_completer_expired - nothing was acknowledged for attr.timeout
 * @qp: QP whose retransmission timer has expired
 *
 * Most often everything is acknowledged by then, and no other field is touched.
 *
 * Context: softirq; no QP lock held.
 * Return: true if the requester should run.
 */
bool arx_completer_expired(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	bool go = false;

	spin_lock(&comp->lock);
	if (comp->una == arx_published(&qp->req.nxt))
		goto out;
	/* The timeout may have been disabled since the timer was started. */
	if (!arx_qp_may(qp, ARX_QP_ACKED) || !qp->attr.timeout)
		goto out;

	if (comp->una == comp->timer_una && !arx_completer_excused(qp)) {
		arx_count(qp, TIMEOUTS);
		trace_arx_timer(qp, false, comp->retries_left);
		comp->gap = false;
		arx_congestion_timeout(qp);
		go = arx_completer_retry(qp);
		if (!go)
			goto out;
		if (comp->reports)
			arx_completer_note(qp);
	}
	comp->timer_una = comp->una;
	mod_timer(&comp->retransmit, jiffies + arx_completer_timeout(qp));
out:
	spin_unlock(&comp->lock);
	return go;
}

/**
 * arx_completer_probe - decide about packets that may be lost
 * @qp: QP whose timer of losses has expired
 *
 * This timer is much faster than the retransmission timer, and costs no retry:
 * the end of all retries does not depend on it.
 *
 * Context: softirq; no QP lock held.
 * Return: true if the requester should run.
 */
bool arx_completer_probe(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	bool heard = false;
	struct arx_loss *loss;
	bool go = false;
	u32 nxt;

	spin_lock(&comp->lock);
	loss = comp->loss;
	nxt = arx_published(&qp->req.nxt);
	if (!loss || comp->una == nxt || !arx_qp_may(qp, ARX_QP_ACKED))
		goto out;
	if (loss->holding ||
	    !(comp->rnr_wait || READ_ONCE(qp->req.blocked) ||
	      READ_ONCE(qp->req.dropped) ||
	      arx_completer_pages(qp) || arx_sock_waits(qp))) {
		go = arx_loss_expired(loss, nxt);
		heard = !go;
	}
	if (go) {
		arx_count(qp, LOSS_TIMEOUTS);
		arx_completer_fill(qp);
	}
	arx_loss_hold(loss);
	if (heard)
		arx_completer_continue_probe(qp);
	else
		arx_completer_start_probe(qp);
out:
	spin_unlock(&comp->lock);
	return go;
}

/*
 * True if packets of the present hole have not been sent yet. They no longer
 * count if the peer was silent, or if responses to what was sent after the hole
 * have arrived and others are asked for: the packets may wait for a window that
 * opens only when the first packet of the hole, which was lost again, is
 * acknowledged.
 */
static bool arx_completer_fill_left(const struct arx_comp *comp,
				    const struct arx_req *req)
{
	const struct arx_loss *loss = comp->loss;

	if (loss->probes || loss->restart ||
	    (loss->ask && !req->part && comp->has_later &&
	     arx_psn_diff(comp->later, req->fill_end) >= 0))
		return false;
	return req->filling && arx_psn_diff(req->fill_end, req->psn) > 0 &&
	       arx_psn_diff(req->fill_end, comp->una) > 0;
}

/*
 * True if the last packet is sent again after the oldest, to make the peer
 * respond. After an RNR NAK the window is too small for it. If half of the
 * window is in flight, an answer to the oldest makes room for new packets,
 * which serve as well.
 */
static __cold bool arx_completer_probes_last(const struct arx_qp *qp, u32 last)
{
	const struct arx_comp *comp = &qp->comp;
	u32 window = comp->cc ? comp->cc->window : ARX_WINDOW;

	return qp->req.rd_sent == comp->rd_done && !comp->rnr_row &&
	       ((last - comp->una) & ARX_PSN_MASK) < window / 2 &&
	       last != comp->una;
}

/*
 * The oldest packet is about to be sent again because the peer is silent. Where
 * few packets are in flight, no later one shows that it was lost (RFC 8985,
 * 7.4). But silence does not begin the control of a QP: hosts may be late.
 */
static __cold void arx_completer_probe_lost(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;

	if (arx_loss_probes(comp->loss, arx_published(&qp->req.nxt),
			    ktime_get_ns()) &&
	    comp->cc && comp->cc->ops)
		arx_congestion_lost(qp, comp->una, 1, 1);
}

/*
 * Send packets again that make the peer respond: the oldest, then the last. If
 * an RNR NAK for the oldest was lost, the peer does not respond to the last;
 * and only the last shows that packets before it are missing. While a READ or
 * atomic is the oldest, it serves alone: it would be replayed anyhow. Whether
 * the last follows is decided with the oldest, before its loss makes the window
 * smaller.
 */
static __cold void arx_completer_fill_tail(struct arx_qp *qp, u32 *psn, u32 *n)
{
	struct arx_swqe *swqe = arx_completer_current(qp);
	struct arx_comp *comp = &qp->comp;
	struct arx_loss *loss = comp->loss;
	u32 last = arx_psn_add(arx_published(&qp->req.nxt), -1);

	*n = 1;
	if (loss->probes-- < ARX_LOSS_PROBES) {
		*psn = last;
		return;
	}
	*psn = comp->una;
	if (swqe && arx_swqe_is_rd(swqe)) {
		loss->probes = 0;
		*n = (arx_completer_end(swqe) - *psn) & ARX_PSN_MASK;
		return;
	}
	if (!arx_completer_probes_last(qp, last))
		loss->probes = 0;
	arx_completer_probe_lost(qp);
}

/* Packets of the requests that PSNs [@psn, @psn + @n) are for. */
static __cold u32 arx_completer_packets(struct arx_qp *qp, u32 psn, u32 n)
{
	u32 fetched = arx_published(&qp->req.fetched);
	u32 end = arx_psn_add(psn, n);
	u32 index = qp->comp.done;
	u32 packets = n;

	for (; index != fetched; index++) {
		struct arx_swqe *swqe = arx_qp_swqe(qp, index);

		if (!swqe->npkts || arx_psn_diff(swqe->first_psn, psn) < 0)
			continue;
		if (arx_psn_diff(swqe->first_psn, end) >= 0)
			break;
		if (arx_swqe_is_rd(swqe))
			packets -= min(swqe->npkts,
				       (end - swqe->first_psn) & ARX_PSN_MASK) -
				   1;
	}
	return packets;
}

/* The next part of a READ that is to be asked for; false if there is none. */
static __cold bool arx_completer_fill_part(struct arx_qp *qp, u32 *psn, u32 *n)
{
	struct arx_loss *loss = qp->comp.loss;
	u32 end, last;

	loss->ask = loss->ask && arx_completer_next_part(qp, psn, &end);
	if (!loss->ask)
		return false;
	loss->probes = 0;
	*n = (end - *psn) & ARX_PSN_MASK;
	if (arx_loss_ask(loss, *psn, end, ktime_get_ns())) {
		arx_count(qp, IMPLIED_NAK);
		/* An ACK does not tell how many. */
		arx_congestion_lost(qp, *psn, *n,
				    arx_keep_last(&qp->comp.kept, &last) ?
					    *n : 1);
	}
	return true;
}

/**
 * arx_completer_there - packets that the peer has reported, up to one
 * @qp: RC QP that notes its losses
 * @psn: after the oldest PSN that is not acknowledged
 *
 * Context: bottom halves off; completer's lock not held.
 * Return: their number.
 */
u32 arx_completer_there(struct arx_qp *qp, u32 psn)
{
	u32 n;

	spin_lock(&qp->comp.lock);
	n = arx_loss_there(qp->comp.loss, psn);
	spin_unlock(&qp->comp.lock);
	return n;
}

/**
 * arx_completer_next_fill - what the requester should send again
 * @qp: RC QP that notes its losses
 * @psn: receives the first PSN. For ARX_FILL_NONE: all packets before this PSN
 *	have arrived or were sent again
 * @n: receives the number of PSNs
 *
 * Each packet is returned once, unless it is lost again. If nothing was heard
 * of the peer, the oldest packet and the last make it respond; or the READ that
 * is due, which would be replayed in any case.
 *
 * Context: requester's lock held.
 * Return: what to send.
 */
enum arx_fill arx_completer_next_fill(struct arx_qp *qp, u32 *psn, u32 *n)
{
	enum arx_fill fill = ARX_FILL_NONE;
	struct arx_comp *comp = &qp->comp;
	struct arx_req *req = &qp->req;
	struct arx_loss *loss;

	spin_lock(&comp->lock);
	loss = comp->loss;
	if (comp->rewinds - req->rewinds != comp->fills - req->fills) {
		loss->ask = false;
		loss->probes = 0;
		fill = ARX_FILL_BACK;
	} else if (arx_completer_fill_left(comp, req)) {
		fill = ARX_FILL_REST;
	} else if (arx_loss_next(loss, req->nxt, ktime_get_ns(), psn, n)) {
		arx_congestion_lost(qp, *psn, *n,
				    arx_completer_packets(qp, *psn, *n));
		fill = ARX_FILL_NEXT;
	} else if (arx_completer_fill_part(qp, psn, n)) {
		fill = ARX_FILL_PART;
	} else if (loss->probes && comp->una != req->nxt) {
		arx_completer_fill_tail(qp, psn, n);
		fill = ARX_FILL_NEXT;
	} else {
		*psn = loss->due;
	}
	loss->restart = false;
	req->rewinds = comp->rewinds;
	req->fills = comp->fills;
	spin_unlock(&comp->lock);
	return fill;
}

/**
 * arx_completer_rnr_ended - the wait time of an RNR NAK is over
 * @qp: QP whose requester should run
 *
 * Context: bottom halves off; no completer's lock held.
 */
void arx_completer_rnr_ended(struct arx_qp *qp)
{
	spin_lock(&qp->comp.lock);
	arx_count(qp, RNR_WAITS);
	trace_arx_timer(qp, true, qp->comp.rnr_left);
	WRITE_ONCE(qp->comp.rnr_wait, false);
	arx_completer_rewind(qp);
	spin_unlock(&qp->comp.lock);
}

/**
 * arx_completer_end_rnr_wait - end the wait time of an RNR NAK early
 * @qp: QP whose peer on this machine is ready now
 *
 * Context: in a section, bottom halves off; no completer's lock held.
 * Return: true if the requester should run; false if it does not wait.
 */
bool arx_completer_end_rnr_wait(struct arx_qp *qp)
{
	if (READ_ONCE(qp->comp.rnr_row) > ARX_RNR_ROW_CUT ||
	    hrtimer_try_to_cancel(&qp->comp.rnr) <= 0)
		return false;
	arx_completer_rnr_ended(qp);
	return true;
}

/**
 * arx_completer_stop - end the timers and wait for their handlers
 * @qp: QP that has left the states in which timers are started
 *
 * Context: may sleep; no QP lock held.
 */
void arx_completer_stop(struct arx_qp *qp)
{
	timer_delete_sync(&qp->comp.retransmit);
	hrtimer_cancel(&qp->comp.rnr);
	hrtimer_cancel(&qp->comp.probe);
}
