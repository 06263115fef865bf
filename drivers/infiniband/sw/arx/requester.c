// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester: takes WQEs from the send ring, turns them into runs and hands
 * these over. It runs in the context of the doorbell, or in softirq context
 * when the completer, a timer or a drained socket starts it again. It never
 * waits: each condition that stops it (window, fence, RNR, a full socket) has
 * code elsewhere that starts it again.
 */

#include "compat.h"
#include "completer.h"
#include "congestion.h"
#include "loopback.h"
#include "loss.h"
#include "paging.h"
#include "requester.h"
#include "schedule.h"
#include "send.h"
#include "sendwr.h"
#include "state.h"
#include "swqes.h"
#include "trace.h"
#include "tx.h"
#include "watch.h"

/* Bytes of outstanding READ responses; the last READ may have any length. */
#define ARX_READ_BYTES		(2U * 1024 * 1024)

/*
 * The same for a receiver that was not ready, until it accepts a request again.
 * Fruitless requests are work in softirq context. A whole window of them can
 * take longer than the receiver asked to wait, and on a single CPU the
 * receiving program would never run to post a WQE. A peer that reports keeps
 * the packets that the peer refuses: the first packet alone is enough. A peer
 * on this machine gets no packets, and so keeps none.
 */
#define ARX_WINDOW_RNR		4
#define ARX_WINDOW_RNR_KEPT	1

/*
 * Packets that are sent again may be this far from the oldest one, however
 * small the window is: what lies in between has arrived or was lost.
 */
#define ARX_WINDOW_FILL		8U

/*
 * Packets for which the window must have room, a run of 4 KiB packets, once the
 * peer reports. Reports come often, and each may make room for a few packets
 * only, whose run costs as much as a full one.
 */
#define ARX_WINDOW_RUN		15U

static_assert(ARX_REPORT_SPAN >= ARX_WINDOW_MOST);

/* 9.7.2: PSNs in flight can be ordered as long as they are half of all. */
#define ARX_PSN_SPAN		BIT(23)

/* An acknowledge request at least this often keeps the window moving. */
#define ARX_ACK_EVERY		(ARX_WINDOW / 4)

/* WQEs of a caller's share, see struct arx_share, and of a softirq's share. */
#define ARX_SHARE_WQES		64
#define ARX_SOFTIRQ_WQES	32

/* Shares of short WQEs that softirqs process before the worker continues. */
#define ARX_SOFTIRQ_SHARES	4

/* Copying this many bytes costs less than posting the WQE. */
#define ARX_WQE_BYTES		256

/*
 * Bytes of a READ's memory, paged on demand, that must be there before the READ
 * is sent. A response that finds its memory absent is dropped and requested
 * again.
 */
#define ARX_READ_PAGES		(32U * 1024 * 1024)

/* How often one caller takes req.lock again for other callers. */
#define ARX_HOLDS		8

/* Why a turn stopped; the comments name what makes the QP run again. */
enum arx_turn {
	ARX_TURN_GO,		/* it has not stopped */
	ARX_TURN_IDLE,		/* nothing to send, or the QP does not send */
	ARX_TURN_WAIT,		/* waits for the completer */
	ARX_TURN_BLOCKED,	/* waits until packets leave: sock.c, order.c */
	ARX_TURN_PACED,		/* waits for the QP's rate: a timer */
	ARX_TURN_DROPPED,	/* packets were dropped: sock.c, a timer */
	ARX_TURN_PAGES,		/* waits for pages: paging.c */
	ARX_TURN_SPENT,		/* its share is used up */
};

static const char *const arx_turn_names[] = {
	[ARX_TURN_GO]		= "go",
	[ARX_TURN_IDLE]		= "idle",
	[ARX_TURN_WAIT]		= "wait",
	[ARX_TURN_BLOCKED]	= "blocked",
	[ARX_TURN_PACED]	= "paced",
	[ARX_TURN_DROPPED]	= "dropped",
	[ARX_TURN_PAGES]	= "pages",
	[ARX_TURN_SPENT]	= "spent",
};

/**
 * struct arx_share - work that one caller of the requester may still do
 * @bytes: bytes to hand over, and READ responses of a peer on this machine
 * @wqes: WQEs to process; each step with a WQE counts
 * @given: @wqes at the beginning
 * @unsent: WQEs that needed no packet: those of a failed QP, binds and
 *	invalidations
 * @charged: runs in the time of a process, not of a softirq
 *
 * Bottom halves are off until a caller returns. So all turns of a caller have
 * one share, however often the requester may continue meanwhile: on one machine
 * the peer acknowledges within the turn, and other threads may post.
 */
struct arx_share {
	u32 bytes;
	u32 wqes;
	u32 given;
	u32 unsent;
	bool charged;
};

/* The requester is done with WQE @req.sent, which is now the completer's. */
static void arx_requester_next(struct arx_qp *qp)
{
	struct arx_req *req = &qp->req;

	req->offset = 0;
	arx_publish(&req->sent, req->sent + 1);
}

/*
 * No WQE after one that failed here may be executed. If the WQE is complete
 * meanwhile, the next step seeks.
 */
static __cold void arx_requester_fail(struct arx_qp *qp,
				      enum ib_wc_status status)
{
	if (!arx_completer_set_failed(qp, status))
		return;
	trace_arx_fault(qp, true, status);
	qp->req.failed = true;
	arx_requester_next(qp);
	arx_completer_retire(qp);
}

static bool arx_requester_full(const struct arx_qp *qp)
{
	return qp->req.fetched - arx_published(&qp->comp.done) > qp->swqe_mask;
}

static void arx_requester_count(struct arx_qp *qp, const struct arx_swqe *swqe)
{
	if (swqe->local)
		return;
	switch (swqe->op) {
	case ARX_OP_SEND:
		arx_count(qp, RDMA_SENDS);
		break;
	case ARX_OP_WRITE:
		arx_count(qp, RDMA_WRITES);
		break;
	case ARX_OP_READ:
		arx_count(qp, RDMA_READS);
		break;
	case ARX_OP_FLUSH:
		arx_count(qp, RDMA_FLUSHES);
		break;
	default:
		arx_count(qp, RDMA_ATOMICS);
	}
}

/*
 * Copy and check the next WQE of the ring. PSNs are assigned here, so that a
 * WQE keeps its PSNs for all retransmissions.
 */
static __always_inline enum arx_turn arx_requester_fetch(struct arx_qp *qp)
{
	struct arx_req *req = &qp->req;
	struct arx_swqe *swqe;
	u32 waiting;

	waiting = arx_ring_pending(&qp->sq, req->fetched);
	if (!waiting)
		return ARX_TURN_IDLE;
	if (waiting > arx_ring_entries(&qp->sq)) {
		/* No valid ring has such a producer index. */
		arx_qp_error(qp, IB_EVENT_QP_FATAL);
		return ARX_TURN_IDLE;
	}
	/* A copy can be used again only after its last WQE was completed. */
	if (arx_requester_full(qp)) {
		arx_completer_retire(qp);	/* packets of this turn */
		if (arx_requester_full(qp) && !arx_swqes_add(qp))
			return ARX_TURN_WAIT;
	}

	swqe = arx_qp_swqe(qp, req->fetched);
	arx_sendwr_take(qp, req->fetched, swqe);
	swqe->first_psn = req->end_psn;
	req->end_psn = arx_psn_add(req->end_psn, swqe->npkts);
	arx_requester_count(qp, swqe);
	trace_arx_post(qp, swqe);
	arx_publish(&req->fetched, req->fetched + 1);
	return ARX_TURN_GO;
}

/*
 * True if the requester need not process @swqe again, because all PSNs before
 * @una arrived.
 */
static bool arx_requester_is_acked(const struct arx_swqe *swqe, u32 una)
{
	u32 end = arx_psn_add(swqe->first_psn, swqe->npkts);

	if (swqe->status != IB_WC_SUCCESS)
		return false;
	return swqe->local ? swqe->executed : arx_psn_diff(una, end) >= 0;
}

/* PSNs that a READ or atomic takes from @una on, which is before its end. */
static u32 arx_requester_rd_left(const struct arx_swqe *swqe, u32 una)
{
	u32 end = arx_psn_add(swqe->first_psn, swqe->npkts);

	return min((end - una) & ARX_PSN_MASK, swqe->npkts);
}

/*
 * Where to go for @psn, which @swqe contains. A report may end inside a READ.
 * That is sent from its first PSN or @una on, because the peer may not have the
 * request. A part that the peer has executed is asked for by itself: PSNs
 * before the part count as asked for, because their responses will be
 * subtracted from @rd_psns.
 */
static u32 arx_requester_rd_from(struct arx_req *req,
				 const struct arx_swqe *swqe, u32 psn, u32 una)
{
	u32 first = swqe->first_psn;

	if (!arx_swqe_is_rd(swqe) || arx_psn_diff(psn, first) <= 0)
		return psn;
	if (arx_psn_diff(una, first) > 0)
		first = una;
	if (!req->part)
		return first;
	req->rd_psns += arx_psn_diff(psn, first);
	return psn;
}

/*
 * Go to @psn, which is @una or was sent since: to the WQE that contains @psn,
 * or to the next one. READs and atomics before that WQE stay handed over.
 */
static void arx_requester_go_to(struct arx_qp *qp, u32 psn)
{
	struct arx_req *req = &qp->req;
	struct arx_comp *comp = &qp->comp;
	struct arx_swqe *swqe;
	u32 index, una;
	s32 pkts;

	spin_lock(&comp->lock);
	req->rd_sent = comp->rd_done;
	req->rd_psns = comp->rd_psns;
	una = comp->una;
	index = comp->done;
	spin_unlock(&comp->lock);

	if (arx_psn_diff(una, psn) > 0)
		psn = una;
	for (; index != req->fetched; index++) {
		swqe = arx_qp_swqe(qp, index);
		if (!arx_requester_is_acked(swqe, psn))
			break;
		if (!arx_swqe_is_rd(swqe))
			continue;
		req->rd_sent++;
		if (!arx_requester_is_acked(swqe, una))
			req->rd_psns += arx_requester_rd_left(swqe, una);
	}

	if (index != req->sent)
		/* until the requester reaches the failed WQE again */
		req->failed = false;
	req->offset = 0;
	if (index != req->fetched) {
		swqe = arx_qp_swqe(qp, index);
		psn = arx_requester_rd_from(req, swqe, psn, una);
		pkts = arx_psn_diff(psn, swqe->first_psn);
		req->offset = pkts > 0 ? pkts * qp->mtu : 0;
	}
	req->psn = psn;
	req->unacked = 0;
	arx_publish(&req->sent, index);
	/* Local work that was skipped may be the oldest. */
	arx_completer_retire(qp);
}

/*
 * Go to packets that the peer misses, and after them back to where this began.
 * False if the peer may miss everything from @una on.
 */
static __cold bool arx_requester_fill(struct arx_qp *qp)
{
	u32 una = arx_published(&qp->comp.una);
	struct arx_req *req = &qp->req;
	enum arx_fill fill;
	u32 psn, n;

	fill = arx_completer_next_fill(qp, &psn, &n);
	if (fill == ARX_FILL_REST) {
		/* The first of them may be acknowledged now. */
		if (arx_psn_diff(una, req->psn) > 0)
			arx_requester_go_to(qp, una);
		return true;
	}
	if (fill == ARX_FILL_NEXT || fill == ARX_FILL_PART) {
		if (!req->filling) {
			req->resume = req->psn;
			arx_count(qp, REWINDS);
		}
		trace_arx_rewind(qp, req->psn, psn);
		arx_count_add(qp, RESENT_PKTS, n);
		req->filling = true;
		req->part = fill == ARX_FILL_PART;
		req->fill_end = arx_psn_add(psn, n);
		req->fill_there = arx_completer_there(qp, psn);
		arx_requester_go_to(qp, psn);
		return true;
	}
	req->part = false;
	if (fill == ARX_FILL_NONE && req->filling) {
		req->filling = false;
		/* After go-back-N, @resume may be before @psn. */
		if (arx_psn_diff(psn, req->resume) > 0)
			req->resume = psn;
		arx_requester_go_to(qp, req->resume);
		return true;
	}
	req->filling = false;
	return fill == ARX_FILL_NONE && arx_psn_diff(una, req->psn) <= 0;
}

/* The peer may have acknowledged the train that is watched. */
static void arx_requester_end_trial(struct arx_qp *qp, u32 una)
{
	if (arx_trial_ends(&qp->req.out.trial, una))
		arx_count(qp, LOST_USO);
}

/*
 * Packets from @una on are sent again. A peer that was not ready to receive has
 * dropped packets that arrived; rnr_row, read first, says so until @una moves.
 * A train of READs is judged by the responses, which may be lost instead.
 */
static __cold void arx_requester_doubt_trial(struct arx_qp *qp)
{
	/* rnr_row before @una */
	bool refused = smp_load_acquire(&qp->comp.rnr_row);
	struct arx_trial *trial = &qp->req.out.trial;
	u32 una = arx_published(&qp->comp.una);

	arx_requester_end_trial(qp, una);
	if (refused)
		arx_trial_void(trial);
	else
		arx_trial_again(trial, una);
}

/*
 * Go to the oldest PSN that is not acknowledged: back after a loss, forward
 * when an acknowledgment of an earlier transmission overtook a retransmission.
 * In both cases WQEs that were sent or executed before may be skipped, even
 * after @sent. The seek ends at the WQE that contains @una, or at the next one.
 */
static void arx_requester_seek(struct arx_qp *qp)
{
	/* before comp.loss: a rewind that is a fill counts as a fill, too */
	u32 rewinds = arx_published(&qp->comp.rewinds);
	u32 from = qp->req.psn;

	if (qp->req.out.trial.state)
		arx_requester_doubt_trial(qp);
	if (likely(!READ_ONCE(qp->comp.loss)))
		qp->req.rewinds = rewinds;
	else if (arx_requester_fill(qp))
		return;
	/* If @una moves after this, the next step seeks again. */
	arx_requester_go_to(qp, arx_published(&qp->comp.una));
	trace_arx_rewind(qp, from, qp->req.psn);
	arx_count(qp, REWINDS);
}

/*
 * Packets of this turn leave before a seek. False if this machine dropped some:
 * the turn goes back to them, and the next turn seeks. After the seek, to go
 * back to these packets would skip what the seek went to, and to continue with
 * the seek would skip these packets.
 */
static bool arx_requester_may_seek(struct arx_qp *qp)
{
	struct arx_tx_out *out = &qp->req.out;

	if (out->batch.n)
		arx_tx_flush(qp, out);
	return likely(!out->dropped);
}

static bool arx_requester_must_seek(const struct arx_qp *qp)
{
	const struct arx_req *req = &qp->req;

	return arx_published(&qp->comp.rewinds) != req->rewinds ||
	       arx_psn_diff(arx_published(&qp->comp.una), req->psn) > 0 ||
	       (unlikely(req->filling) &&
		arx_psn_diff(req->psn, req->fill_end) >= 0);
}

/*
 * PSNs [psn, psn + n) are about to be sent. Published first, because on one
 * machine the acknowledgment arrives before arx_loopback_rx() returns.
 */
static void arx_requester_cover(struct arx_req *req, u32 n)
{
	/* Not by arx_psn_diff(), because @n may be half of all PSNs. */
	if (((req->nxt - req->psn) & ARX_PSN_MASK) < n)
		arx_publish(&req->nxt, arx_psn_add(req->psn, n));
}

/*
 * None of the packets left, so PSNs from @nxt on have not been sent. If the
 * peer (a forger) has named some of them meanwhile, they stay covered.
 */
static void arx_requester_uncover(struct arx_qp *qp, u32 nxt)
{
	struct arx_comp *comp = &qp->comp;

	spin_lock(&comp->lock);
	if (!arx_completer_knows(comp, nxt))
		arx_publish(&qp->req.nxt, nxt);
	spin_unlock(&comp->lock);
}

/* To the wire, or to the responder of a QP of this machine. */
static __always_inline int arx_requester_send_run(struct arx_qp *qp,
						  struct arx_av *av,
						  struct arx_run *run)
{
	struct arx_qp *peer;
	int err = arx_send_run(qp, av, run, &qp->req.out, &peer);

	return peer ? arx_loopback_rx(peer, av, run) : err;
}

/* Hand @run over; @psns is its number of PSNs, @bytes its part of the WQE. */
static __always_inline enum arx_turn
arx_requester_hand_over(struct arx_qp *qp, struct arx_av *av,
			struct arx_run *run, u32 psns, u32 bytes)
{
	struct arx_req *req = &qp->req;
	bool last = run->h.flags & ARX_LAST;
	u32 nxt = req->nxt;
	int err;

	arx_requester_cover(req, psns);
	err = arx_requester_send_run(qp, av, run);
	arx_iter_end(&run->payload);
	if (err == -EAGAIN) {
		arx_requester_uncover(qp, nxt);
		req->unacked = ARX_ACK_EVERY;
		return ARX_TURN_BLOCKED;
	}
	if (err == -EFAULT) {
		arx_requester_fail(qp, IB_WC_LOC_PROT_ERR);
		return ARX_TURN_GO;
	}
	/* Any other error counts as a lost packet and is left to the timer. */
	req->psn = arx_psn_add(req->psn, psns);
	req->offset += bytes;
	if (last)
		arx_requester_next(qp);
	return ARX_TURN_GO;
}

/* Set the headers that all runs of a connected QP share. */
static __always_inline void
arx_requester_headers(struct arx_qp *qp, struct arx_swqe *swqe,
		      struct arx_run *run)
{
	memset(&run->h, 0, sizeof(run->h));
	run->h.op = swqe->op;
	run->h.service = qp->service;
	run->h.pkey = ARX_PKEY;
	run->h.qpn = qp->attr.dest_qp_num;
	run->h.psn = qp->req.psn;
	if (unlikely(qp->service == ARX_SERVICE_XRC))
		run->h.srqn = swqe->wqe.srqn & ARX_SRQN_MASK;
	run->mtu = qp->mtu;
	arx_iter_none(&run->payload);
	arx_run_size(run, 0);
	/* UC and UD complete at once, while packets may still be queued. */
	run->payload_stable = arx_qp_is_acked(qp) &&
		     !(swqe->wqe.flags & IB_SEND_INLINE);
	run->again = arx_psn_diff(qp->req.nxt, qp->req.psn) > 0;
	run->more = true;	/* answers wait for arx_requester_flush() */
	run->polled = false;
	run->packets = NULL;
}

/*
 * Iterate over the payload of WQE @req.sent. Inline data stays in the ring and
 * is read when it is sent, without a check: the application may have changed
 * the data meanwhile.
 */
static void arx_requester_iter(struct arx_qp *qp, struct arx_swqe *swqe,
			       struct arx_iter *it)
{
	if (swqe->wqe.flags & IB_SEND_INLINE)
		arx_iter_buf(it, arx_ring_entry(&qp->sq, qp->req.sent) +
				 sizeof(struct arx_send_wqe));
	else
		arx_iter_sge(it, arx_qp_dev(qp), qp->ib.pd, swqe->sge,
			     swqe->wqe.num_sge, 0);
}

/*
 * Number of PSNs in flight. If @una moved past req.psn, the result wraps to a
 * huge value; the requester then waits, sees that @una moved, and seeks.
 */
static u32 arx_requester_in_flight(const struct arx_qp *qp)
{
	return (qp->req.psn - arx_published(&qp->comp.una)) & ARX_PSN_MASK;
}

/* PSNs that READs and atomics still wait for. */
static u32 arx_requester_rd_in_flight(const struct arx_qp *qp)
{
	return qp->req.rd_psns - arx_published(&qp->comp.rd_psns);
}

/*
 * The window of a controller is closed. It may have shrunk, so that perhaps
 * none of the packets in flight asks for an acknowledgment: then one more is
 * sent, which does.
 */
static __cold u32 arx_requester_closed(const struct arx_qp *qp,
				       struct arx_cc *cc)
{
	WRITE_ONCE(cc->limited, true);
	return qp->req.unacked ? 1 : 0;
}

/*
 * True if what the peer has reported does not count as in flight. A receiver
 * that was not ready gets few packets, whatever it keeps.
 */
static bool arx_requester_heeds_reports(const struct arx_qp *qp, u32 in_flight)
{
	return unlikely(READ_ONCE(qp->comp.there)) &&
	       in_flight < ARX_REPORT_SPAN && !READ_ONCE(qp->comp.rnr_row);
}

/*
 * Of the PSNs in flight, those that are no packets on their way to the peer:
 * responses to READs, and what the peer has reported that it keeps. A report
 * names the PSNs of READs, too. While packets are sent again, only PSNs up to
 * these packets are in flight.
 */
static u32 arx_requester_not_on_way(const struct arx_qp *qp, u32 in_flight,
				    bool heeds)
{
	u32 n = arx_requester_rd_in_flight(qp);

	if (heeds)
		n = max(n, qp->req.filling ? qp->req.fill_there :
					     READ_ONCE(qp->comp.there));
	return min(n, in_flight);
}

/* For how many packets a receiver that was not ready is asked again. */
static __cold u32 arx_requester_rnr_window(const struct arx_qp *qp)
{
	return READ_ONCE(qp->comp.reports) && !READ_ONCE(qp->req.local) ?
		       ARX_WINDOW_RNR_KEPT : ARX_WINDOW_RNR;
}

/*
 * Number of packets of SENDs and WRITEs that the window allows. What is not on
 * its way is read after @una; in the other order, PSNs might be subtracted as
 * acknowledged that @una does not count as acknowledged yet. No report reaches
 * further than its span.
 */
static u32 arx_requester_window(const struct arx_qp *qp)
{
	struct arx_cc *cc = arx_congestion_of(qp);
	u32 span = ARX_PSN_SPAN;
	u32 window = ARX_WINDOW;
	u32 in_flight, least = 1;
	bool heeds;

	if (!arx_qp_is_acked(qp))
		return window;
	if (unlikely(cc))
		window = max(READ_ONCE(cc->window),
			     qp->req.filling ? ARX_WINDOW_FILL : 1);
	if (unlikely(READ_ONCE(qp->comp.rnr_row)))
		window = min(window, arx_requester_rnr_window(qp));
	in_flight = arx_requester_in_flight(qp);
	heeds = arx_requester_heeds_reports(qp, in_flight);
	if (heeds) {
		span = ARX_REPORT_SPAN;
		least = clamp(window / 4, 1, ARX_WINDOW_RUN);
	}
	if (in_flight >= span)
		return 0;
	span -= in_flight;
	in_flight -= arx_requester_not_on_way(qp, in_flight, heeds);
	if (in_flight + least <= window)
		return min(window - in_flight, span);
	if (unlikely(cc))
		return arx_requester_closed(qp, cc);
	return 0;
}

/*
 * Bytes of READ responses that a controller allows. A window that the
 * controller has changed bounds responses, too.
 */
static __cold u32 arx_requester_rd_window(const struct arx_qp *qp,
					  const struct arx_cc *cc)
{
	u32 window = READ_ONCE(cc->window);
	u32 bytes = window * qp->mtu;

	if (window < cc->most)
		return min(bytes, ARX_READ_BYTES);
	return max(bytes, ARX_READ_BYTES);
}

/* True if a READ or atomic with @n PSNs may be sent. */
static bool arx_requester_rd_fits(const struct arx_qp *qp, u32 n)
{
	struct arx_cc *cc = arx_congestion_of(qp);
	const struct arx_req *req = &qp->req;
	u32 bytes = ARX_READ_BYTES;

	if (unlikely(cc))
		bytes = arx_requester_rd_window(qp, cc);
	if ((u64)arx_requester_rd_in_flight(qp) * qp->mtu >= bytes) {
		if (unlikely(cc))
			WRITE_ONCE(cc->limited, true);
		return false;
	}
	return req->rd_sent - arx_published(&qp->comp.rd_done) <
	       qp->attr.max_rd_atomic && arx_requester_window(qp) &&
	       arx_requester_in_flight(qp) + n <= ARX_PSN_SPAN;
}

/* Memory of the WQE is paged on demand and not there: have it found. */
static __cold enum arx_turn arx_requester_pages(struct arx_qp *qp,
						const struct arx_pages *want)
{
	if (arx_paging_wait(qp, &qp->req.paging, want))
		return ARX_TURN_PAGES;
	arx_requester_fail(qp, IB_WC_LOC_PROT_ERR);
	return ARX_TURN_GO;
}

/*
 * Set the payload of a run. A message begins only if all of it may be read. If
 * the payload must not be read, the WQE has failed or waits for pages: false,
 * and @turn says which.
 */
static __always_inline bool
arx_requester_payload(struct arx_qp *qp, struct arx_swqe *swqe,
		      struct arx_run *run, enum arx_turn *turn)
{
	u32 offset = qp->req.offset;
	u32 left = swqe->length - offset;
	struct arx_pages want __uninitialized;

	arx_requester_iter(qp, swqe, &run->payload);
	if (arx_iter_skip(&run->payload, offset) ||
	    !arx_iter_check(&run->payload, offset ? run->len : left)) {
		arx_iter_end(&run->payload);
		arx_requester_fail(qp, IB_WC_LOC_PROT_ERR);
		*turn = ARX_TURN_GO;
		return false;
	}
	if (arx_iter_absent(&run->payload, run->len, left, &want)) {
		arx_iter_end(&run->payload);
		*turn = arx_requester_pages(qp, &want);
		return false;
	}
	return true;
}

/*
 * Bytes of the next run: @left, or as many whole packets as @window packets,
 * the way to the peer and @share bytes allow, at least one.
 */
static __always_inline u32
arx_requester_run_len(const struct arx_qp *qp, const struct arx_av *av,
		      u32 left, u32 window, u32 share)
{
	u32 len = min_t(u64, left, (u64)window * qp->mtu);

	if (len > qp->mtu)
		len = min(len, arx_send_max(qp, av, qp->attr.dest_qp_num,
					    &qp->req.out.batch));
	if (len > max(share, qp->mtu))
		len = max(round_down(share, qp->mtu), qp->mtu);
	return len;
}

/* Set what a run says if it begins or ends its message. */
static __always_inline void
arx_requester_message_headers(const struct arx_swqe *swqe, bool first,
			      bool last, struct arx_headers *h)
{
	if (first) {
		h->flags |= ARX_FIRST;
		if (swqe->op == ARX_OP_WRITE) {
			h->va = swqe->wqe.rdma.remote_addr;
			h->rkey = swqe->wqe.rdma.rkey;
			h->dma_len = swqe->length;
		}
	}
	if (last) {
		h->flags |= swqe->flags | ARX_LAST;
		h->ex = swqe->wqe.ex;
	}
}

/* SEND and WRITE of a connected QP: the next run of the message. */
static enum arx_turn arx_requester_message(struct arx_qp *qp,
					   struct arx_swqe *swqe,
					   struct arx_av *av,
					   struct arx_share *share)
{
	struct arx_cc *cc = arx_congestion_of(qp);
	struct arx_req *req = &qp->req;
	u32 left = swqe->length - req->offset;
	u32 window = arx_requester_window(qp);
	struct arx_run run __uninitialized;
	enum arx_turn turn;

	if (!window)
		return ARX_TURN_WAIT;
	if (unlikely(cc)) {
		if (arx_congestion_waits(qp, cc))
			return ARX_TURN_PACED;
		window = min(window, arx_cc_burst(cc));
	}
	if (unlikely(req->filling))
		window = min_t(u32, window,
			       arx_psn_diff(req->fill_end, req->psn));

	arx_requester_headers(qp, swqe, &run);
	arx_run_size(&run, arx_requester_run_len(qp, av, left, window,
						 share->bytes));
	arx_requester_message_headers(swqe, !req->offset, run.len == left,
				      &run.h);
	if (!arx_requester_payload(qp, swqe, &run, &turn))
		return turn;

	req->unacked += run.npkts;
	if (arx_qp_is_acked(qp) &&
	    (run.len == left || req->unacked >= ARX_ACK_EVERY ||
	     run.npkts == window)) {
		run.h.flags |= ARX_ACK_REQ | ARX_REPORTS;
		req->unacked = 0;
	}
	turn = arx_requester_hand_over(qp, av, &run, run.npkts, run.len);
	/* Without a peer, the packets are in the batch or have left. */
	share->bytes -= min(share->bytes,
			    arx_send_cost(qp, req->out.batch.peer, run.len,
					  run.npkts));
	if (unlikely(cc) && turn == ARX_TURN_GO)
		arx_congestion_charge(qp, cc, &run, &req->out);
	return turn;
}

/*
 * True if pages at @to are absent that a READ or atomic should find. Not all of
 * a long READ's memory may fit this machine at a time: if pages of the last job
 * have gone again, those for the next run are enough.
 */
static bool arx_requester_lacks(struct arx_qp *qp, struct arx_iter *to,
				u32 left, struct arx_pages *want)
{
	struct arx_paging *paging = &qp->req.paging;

	if (!arx_iter_absent(to, min(left, ARX_READ_PAGES), left, want))
		return false;
	return paging->request != qp->req.sent || want->addr > paging->addr ||
	       arx_iter_absent(to, min(left, ARX_LOOPBACK_RUN_MAX), left, want);
}

/*
 * True if the result of a READ or atomic may be written to the SGEs. Checked
 * before the request is sent, because the peer's atomic cannot be undone. If
 * false, the WQE has failed or waits for pages, and @turn says which.
 */
static bool arx_requester_may_place(struct arx_qp *qp, struct arx_swqe *swqe,
				    enum arx_turn *turn)
{
	u32 offset = qp->req.offset;
	u32 left = swqe->length - offset;
	struct arx_iter to __uninitialized;
	struct arx_pages want __uninitialized;
	bool lacks = false;
	bool may;

	arx_iter_sge(&to, arx_qp_dev(qp), qp->ib.pd, swqe->sge,
		     swqe->wqe.num_sge, IB_ACCESS_LOCAL_WRITE);
	may = !arx_iter_skip(&to, offset) && arx_iter_check(&to, left);
	if (may && arx_odp_in_use())
		lacks = arx_requester_lacks(qp, &to, left, &want);
	arx_iter_end(&to);
	if (unlikely(lacks)) {
		*turn = arx_requester_pages(qp, &want);
		return false;
	}
	if (!may) {
		arx_requester_fail(qp, IB_WC_LOC_PROT_ERR);
		*turn = ARX_TURN_GO;
	}
	return may;
}

/*
 * The flight size tells a peer which of its responses have arrived: responses
 * are not acknowledged. 0 for a peer that does not report, and for one on this
 * machine, whose responses are no packets.
 */
static u8 arx_requester_flight(const struct arx_qp *qp)
{
	u32 una = arx_published(&qp->comp.una);

	if (!READ_ONCE(qp->comp.reports) || READ_ONCE(qp->req.local))
		return 0;
	return arx_flight((qp->req.psn - una) & ARX_PSN_MASK);
}

/*
 * Set what the request of a READ, an atomic or the like says; a READ asks for
 * @left bytes from @qp's offset on.
 */
static void arx_requester_rd_headers(const struct arx_qp *qp,
				     const struct arx_swqe *swqe, u32 left,
				     struct arx_headers *h)
{
	const struct arx_send_wqe *wqe = &swqe->wqe;

	h->flags = ARX_FIRST | ARX_LAST | ARX_ACK_REQ | ARX_REPORTS;
	h->flight = arx_requester_flight(qp);
	/* at the same place for all of them */
	h->va = wqe->rdma.remote_addr + qp->req.offset;
	h->rkey = wqe->rdma.rkey;
	switch (swqe->op) {
	case ARX_OP_COMPARE_SWAP:
		h->compare = wqe->atomic.compare_add;
		h->swap_add = wqe->atomic.swap;
		break;
	case ARX_OP_FETCH_ADD:
		h->swap_add = wqe->atomic.compare_add;
		break;
	case ARX_OP_FLUSH:
		h->placement = wqe->flush.placement;
		h->selectivity = wqe->flush.selectivity;
		h->dma_len = wqe->flush.length;
		break;
	default:
		h->dma_len = left;
	}
}

/*
 * Set the payload of an ATOMIC WRITE; no other request with a response of its
 * own has one. False and @turn as arx_requester_payload(), and also if the
 * response must not be written.
 */
static bool arx_requester_rd_payload(struct arx_qp *qp, struct arx_swqe *swqe,
				     struct arx_run *run, enum arx_turn *turn)
{
	if (swqe->op != ARX_OP_ATOMIC_WRITE)
		return arx_requester_may_place(qp, swqe, turn);
	arx_run_size(run, swqe->length);
	return arx_requester_payload(qp, swqe, run, turn);
}

/* READ and atomics: one request packet, one or many response packets. */
static enum arx_turn arx_requester_rdatomic(struct arx_qp *qp,
					    struct arx_swqe *swqe,
					    struct arx_av *av)
{
	struct arx_req *req = &qp->req;
	u32 npkts = swqe->npkts - req->offset / qp->mtu;
	u32 left = swqe->length - req->offset;
	struct arx_run run __uninitialized;
	enum arx_turn turn;

	if (unlikely(req->filling) &&
	    npkts > (u32)arx_psn_diff(req->fill_end, req->psn)) {
		npkts = arx_psn_diff(req->fill_end, req->psn);
		left = npkts * qp->mtu;
	}

	if (!req->part && !arx_requester_rd_fits(qp, npkts))
		return ARX_TURN_WAIT;
	arx_requester_headers(qp, swqe, &run);
	arx_requester_rd_headers(qp, swqe, left, &run.h);
	if (!arx_requester_rd_payload(qp, swqe, &run, &turn))
		return turn;

	req->rd_sent++;
	req->rd_psns += npkts;
	turn = arx_requester_hand_over(qp, av, &run, npkts, 0);
	if (turn == ARX_TURN_BLOCKED) {
		req->rd_sent--;
		req->rd_psns -= npkts;
	}
	return turn;
}

/* UD: one packet to the WQE's own destination. */
static enum arx_turn arx_requester_datagram(struct arx_qp *qp,
					    struct arx_swqe *swqe,
					    struct arx_share *share)
{
	struct arx_run run __uninitialized;
	struct arx_av *av = swqe->av;
	struct arx_cc *cc = NULL;
	enum arx_turn turn;

	/*
	 * A message that cannot be sent must not look sent: see protocol.rst,
	 * Deviations
	 */
	if (swqe->length > qp->mtu) {
		arx_requester_fail(qp, IB_WC_LOC_LEN_ERR);
		return ARX_TURN_GO;
	}
	if (unlikely(av->mbps))
		cc = arx_congestion_of_datagram(qp, av->mbps);
	if (unlikely(cc) && arx_congestion_waits(qp, cc))
		return ARX_TURN_PACED;
	arx_requester_headers(qp, swqe, &run);
	run.h.flags = swqe->flags | ARX_FIRST | ARX_LAST;
	run.h.ex = swqe->wqe.ex;
	run.h.qpn = swqe->wqe.ud.qpn;
	/* A Q_Key with the top bit set means the QP's own: 10.2.5 */
	run.h.qkey = (s32)swqe->wqe.ud.qkey < 0 ? qp->attr.qkey :
						  swqe->wqe.ud.qkey;
	run.h.src_qpn = qp->ib.qp_type == IB_QPT_GSI ? 1 : qp->id.nr;
	arx_run_size(&run, swqe->length);
	if (!arx_requester_payload(qp, swqe, &run, &turn))
		return turn;
	share->bytes -= min(share->bytes, run.len);
	turn = arx_requester_hand_over(qp, av, &run, 1, run.len);
	if (unlikely(cc) && turn == ARX_TURN_GO)
		arx_congestion_charge(qp, cc, &run, &qp->req.out);
	return turn;
}

static enum arx_turn arx_requester_packets(struct arx_qp *qp,
					   struct arx_swqe *swqe,
					   struct arx_share *share)
{
	struct arx_av *av;

	if (!arx_qp_is_connected(qp))
		return arx_requester_datagram(qp, swqe, share);

	av = rcu_dereference(qp->av);
	if (READ_ONCE(qp->comp.rnr_wait))
		return ARX_TURN_WAIT;
	if (swqe->op == ARX_OP_SEND || swqe->op == ARX_OP_WRITE)
		return arx_requester_message(qp, swqe, av, share);
	return arx_requester_rdatomic(qp, swqe, av);
}

/*
 * Work without packets. A region that a request uses at this time cannot be
 * invalidated yet: the turn ends, and the next one tries again.
 */
static enum arx_turn arx_requester_local(struct arx_qp *qp,
					 struct arx_swqe *swqe,
					 struct arx_share *share)
{
	int status = swqe->status;

	if (!swqe->executed)
		status = arx_sendwr_execute(qp, swqe);
	if (status == -EBUSY)
		return ARX_TURN_SPENT;
	share->unsent++;
	swqe->status = status;
	/* Pairs with the acquire in arx_completer_retirable(). */
	smp_store_release(&swqe->executed, true);
	if (status != IB_WC_SUCCESS)
		qp->req.failed = true;
	arx_requester_next(qp);
	arx_completer_retire(qp);
	return ARX_TURN_GO;
}

/* One step with the current WQE. */
static enum arx_turn arx_requester_step(struct arx_qp *qp,
					struct arx_share *share)
{
	struct arx_swqe *swqe = arx_qp_swqe(qp, qp->req.sent);
	struct arx_req *req = &qp->req;

	if (arx_qp_may(qp, ARX_QP_FLUSH) || req->flushes) {
		swqe->status = IB_WC_WR_FLUSH_ERR;
		share->unsent++;
		arx_requester_next(qp);
		req->flushes = req->flushes && req->sent != req->flush_end;
		return ARX_TURN_GO;
	}
	if (swqe->status != IB_WC_SUCCESS) {
		arx_requester_fail(qp, swqe->status);
		return ARX_TURN_GO;
	}
	if (req->failed)
		return ARX_TURN_WAIT;
	if (swqe->wqe.flags & IB_SEND_FENCE && !req->offset &&
	    req->rd_sent != arx_published(&qp->comp.rd_done))
		return ARX_TURN_WAIT;

	if (swqe->local)
		return arx_requester_local(qp, swqe, share);
	return arx_requester_packets(qp, swqe, share);
}

/* 10.3.1 SQD: finish the current message, begin no other, report once idle. */
static bool arx_requester_drained(struct arx_qp *qp)
{
	struct arx_req *req = &qp->req;

	if (arx_qp_state(qp) != IB_QPS_SQD || req->offset)
		return false;
	/* PSNs before nxt were sent before: after a loss, send them again. */
	if (arx_qp_is_acked(qp) && req->psn != req->nxt)
		return false;
	if (!req->drained && qp->attr.en_sqd_async_notify &&
	    arx_published(&qp->comp.done) == req->sent) {
		req->drained = true;
		arx_qp_event(qp, IB_EVENT_SQ_DRAINED);
	}
	return true;
}

static enum arx_turn arx_requester_steps(struct arx_qp *qp,
					 struct arx_share *share)
{
	enum arx_turn turn = ARX_TURN_GO;

	while (turn == ARX_TURN_GO) {
		if (!share->bytes || !share->wqes)
			return ARX_TURN_SPENT;
		share->wqes--;
		if (arx_qp_is_acked(qp) && !arx_qp_may(qp, ARX_QP_FLUSH) &&
		    arx_requester_must_seek(qp)) {
			if (!arx_requester_may_seek(qp))
				return ARX_TURN_BLOCKED;
			arx_requester_seek(qp);
			/*
			 * @una may have moved meanwhile, up to the end of what
			 * is missing: then nothing is to be sent from there.
			 */
			continue;
		}
		if (arx_requester_drained(qp))
			return ARX_TURN_WAIT;
		if (qp->req.sent == qp->req.fetched)
			turn = arx_requester_fetch(qp);
		if (turn == ARX_TURN_GO)
			turn = arx_requester_step(qp, share);
	}
	return turn;
}

/*
 * This machine dropped packets of this turn, which were made since its last
 * seek: go back to send them again when the QP is woken. UC and UD lose them,
 * but do not send more into the same full queue. Requests of a failed QP only
 * wait to be flushed.
 */
static __cold enum arx_turn arx_requester_take_back(struct arx_qp *qp,
						    enum arx_turn turn)
{
	struct arx_tx_out *out = &qp->req.out;

	out->dropped = false;
	arx_trial_void(&out->trial);
	if (arx_qp_may(qp, ARX_QP_FLUSH))
		return turn == ARX_TURN_BLOCKED ? ARX_TURN_SPENT : turn;
	if (arx_qp_is_acked(qp)) {
		arx_requester_go_to(qp, out->lost);
		qp->req.unacked = ARX_ACK_EVERY;
	}
	return ARX_TURN_DROPPED;
}

/*
 * Packets leave. A peer on this machine responds once for all requests of a
 * turn, as it does for requests that arrive together. Returns true if the peer
 * has more READ responses than @bytes.
 */
static bool arx_requester_flush(struct arx_qp *qp, u32 *bytes)
{
	struct arx_tx_out *out = &qp->req.out;
	struct arx_qp *peer = out->batch.peer;

	if (out->batch.av)
		WRITE_ONCE(qp->req.local, peer);
	arx_tx_flush(qp, out);
	return arx_loopback_respond(qp, peer, bytes);
}

/*
 * The runs of the steps, of several WQEs together, leave now. A peer on this
 * machine may have more READ responses than the share allows.
 */
static enum arx_turn arx_requester_turn(struct arx_qp *qp,
					struct arx_share *share)
{
	enum arx_turn turn = ARX_TURN_IDLE;

	if (qp->req.out.trial.state)
		arx_requester_end_trial(qp, arx_published(&qp->comp.una));
	/* A turn checks for states without sending only at its beginning. */
	if (arx_qp_may(qp, ARX_QP_SEND | ARX_QP_FLUSH))
		turn = arx_requester_steps(qp, share);
	if (arx_requester_flush(qp, &share->bytes))
		turn = ARX_TURN_SPENT;
	if (unlikely(qp->req.out.dropped))
		turn = arx_requester_take_back(qp, turn);
	if (!arx_qp_is_acked(qp))
		arx_completer_retire(qp);
	return turn;
}

/* Fields that the completer changes when a waiting requester may go on. */
struct arx_progress {
	u32 una;
	u32 there;
	u32 done;
	u32 rewinds;
	bool rnr_wait;
};

static struct arx_progress arx_requester_progress(const struct arx_qp *qp)
{
	return (struct arx_progress) {
		.una = arx_published(&qp->comp.una),
		.there = READ_ONCE(qp->comp.there),
		.done = arx_published(&qp->comp.done),
		.rewinds = arx_published(&qp->comp.rewinds),
		.rnr_wait = READ_ONCE(qp->comp.rnr_wait),
	};
}

/* True if the completer has changed one of the fields since @seen. */
static bool arx_requester_progressed(const struct arx_qp *qp,
				     const struct arx_progress *seen)
{
	struct arx_progress now = arx_requester_progress(qp);

	return now.una != seen->una || now.there != seen->there ||
	       now.done != seen->done || now.rewinds != seen->rewinds ||
	       now.rnr_wait != seen->rnr_wait;
}

static void arx_requester_count_optional(const struct arx_qp *qp,
					 enum arx_counter counter)
{
	if (test_bit(counter - ARX_CNT_OPTIONAL, &arx_qp_dev(qp)->optional))
		this_cpu_inc(qp->stats->c[counter]);
}

/* The optional counters, which cost nothing while all are off. */
static __cold void arx_requester_count_turn(const struct arx_qp *qp,
					    enum arx_turn turn)
{
	arx_requester_count_optional(qp, ARX_CNT_REQ_TURNS);
	if (turn == ARX_TURN_WAIT)
		arx_requester_count_optional(qp, ARX_CNT_REQ_WAITS);
	else if (turn == ARX_TURN_SPENT)
		arx_requester_count_optional(qp, ARX_CNT_REQ_SPENT);
}

/*
 * Runs turns, with @req.waiting telling the completer whether to start the next
 * one. The completer changes its state, then reads waiting; the requester sets
 * waiting, then reads the completer's state again: one of the two sees the
 * other. True if the requester stopped only because its share was used up.
 */
static bool arx_requester_locked(struct arx_qp *qp, struct arx_share *share)
{
	struct arx_req *req = &qp->req;
	struct arx_progress seen;
	enum arx_turn turn;

	WRITE_ONCE(req->waiting, false);
	do {
		seen = arx_requester_progress(qp);
		turn = arx_requester_turn(qp, share);
		if (turn != ARX_TURN_WAIT)
			break;
		WRITE_ONCE(req->waiting, true);
		smp_mb();	/* pairs with arx_completer_rx() */
	} while (arx_requester_progressed(qp, &seen));
	WRITE_ONCE(req->blocked, turn == ARX_TURN_BLOCKED);
	WRITE_ONCE(req->dropped, turn == ARX_TURN_DROPPED);
	trace_arx_stop(qp, arx_turn_names[turn]);
	if (static_branch_unlikely(&arx_stats_optional))
		arx_requester_count_turn(qp, turn);

	if (arx_qp_may(qp, ARX_QP_FLUSH))
		arx_completer_retire(qp);
	return turn == ARX_TURN_SPENT;
}

/*
 * The share of a caller that may do this much. Nobody is charged for what a
 * softirq copies on this machine. So softirqs copy short payloads for a QP, and
 * of longer ones no more than the process of the QP has copied before. A
 * message that began within this limit is copied whole; the bytes beyond the
 * limit are a debt, and softirqs copy no more until the process has paid it.
 * Softirqs also process fewer WQEs at a time, because the kernel may run ten
 * works in one softirq. A failed QP needs no credit, because its flush must
 * end; only responses to its READs are copied.
 */
static struct arx_share arx_requester_share(const struct arx_qp *qp, u32 bytes)
{
	struct arx_share share = {
		.bytes = bytes,
		.wqes = ARX_SHARE_WQES,
		.charged = !in_softirq(),
	};

	if (!share.charged)
		share.wqes = arx_qp_may(qp, ARX_QP_FLUSH) ? ARX_FLUSH_WQES :
							    ARX_SOFTIRQ_WQES;
	share.given = share.wqes;
	if (share.charged || !READ_ONCE(qp->req.local))
		return share;
	share.bytes = min(bytes, ARX_POLL_BYTES);
	if (!arx_qp_may(qp, ARX_QP_FLUSH)) {
		s32 most = READ_ONCE(qp->req.credit) +
			   ARX_SHARE_WQES * ARX_WQE_BYTES;

		/* Only whole packets are sent. */
		if (most < (s32)qp->mtu)
			most = 0;
		share.bytes = min_t(u32, share.bytes, most);
	}
	return share;
}

/*
 * Charge the used part of @share, which began with @before. Requester's lock
 * held.
 */
static void arx_requester_charge(struct arx_req *req,
				 const struct arx_share *before,
				 const struct arx_share *share)
{
	s32 bytes = before->bytes - share->bytes;
	s32 free = (before->wqes - share->wqes) * ARX_WQE_BYTES;
	s32 credit = req->credit;

	if (share->charged)
		credit = min_t(s32, credit + bytes, ARX_SHARE_BYTES);
	else
		credit -= max(bytes - free, 0);
	WRITE_ONCE(req->credit, credit);
	if (share->charged || share->wqes)
		WRITE_ONCE(req->softirqs, 0);
	else
		WRITE_ONCE(req->softirqs,
			   min(req->softirqs + 1, ARX_SOFTIRQ_SHARES));
}

/*
 * Send as much as the QP can, up to @share. Only one caller works at a time. A
 * caller that finds the lock taken sets a bit in @req.pending and returns. The
 * worker checks the bits after it has released the lock, so either the worker
 * sees the bit, or the caller finds the lock free. Bits of other callers (an
 * application may ring as often as it likes) add nothing to the worker's share.
 *
 * Every caller continues with arx_completer_arm(), so the one that worked does
 * so after all it has sent. Returns true if more could be done: the caller must
 * see to that.
 */
static bool arx_requester_send(struct arx_qp *qp, struct arx_share *share)
{
	struct arx_req *req = &qp->req;
	struct arx_share before;
	u32 holds = ARX_HOLDS;
	bool more;

	set_bit(ARX_REQ_RUN, &req->pending);
	do {
		if (!holds--)
			return true;
		smp_mb__after_atomic();	/* the bit before the lock */
		if (!spin_trylock(&req->lock))
			return false;
		clear_bit(ARX_REQ_RUN, &req->pending);
		/* the bit before the state that it announces */
		smp_mb__after_atomic();
		arx_section_enter();
		before = *share;
		more = arx_requester_locked(qp, share);
		arx_requester_charge(req, &before, share);
		if (!arx_watch_update(qp))
			set_bit(ARX_REQ_RUN, &req->pending);
		arx_section_leave();
		spin_unlock(&req->lock);
		smp_mb();		/* the lock before the bit */
	} while (!more && test_bit(ARX_REQ_RUN, &req->pending));
	return more;
}

/*
 * True if WQEs that need no packet have used up at least three quarters of the
 * share. No window and no socket bounds such work. If there are more messages
 * between such WQEs, the messages bound it.
 */
static bool arx_requester_sent_little(const struct arx_share *share)
{
	return !share->wqes && share->unsent >= share->given / 4 * 3;
}

/*
 * Continue a softirq's work, of which a share is done. If many short WQEs used
 * up the share, a softirq continues, but not for long: the kernel runs a work
 * that queues itself ten times in one softirq.
 */
static void arx_requester_continue(struct arx_qp *qp,
				   const struct arx_share *share)
{
	if (arx_requester_sent_little(share) && arx_qp_go_on_charged(qp))
		return;
	if (share->bytes && READ_ONCE(qp->req.softirqs) < ARX_SOFTIRQ_SHARES)
		arx_qp_schedule(qp);
	else
		arx_qp_go_on(qp);
}

/*
 * On behalf of a softirq. Copies for which a QP has no credit are left to its
 * worker.
 */
static void arx_requester_run_for(struct arx_qp *qp, u32 bytes)
{
	struct arx_share share = arx_requester_share(qp, bytes);

	if (arx_requester_send(qp, &share))
		arx_requester_continue(qp, &share);
	arx_completer_arm(qp);
}

/**
 * arx_requester_run - send as much as a QP can
 * @qp: any QP
 *
 * Work that another caller is about to do is left to that caller. Work beyond a
 * share is left to a later softirq, or to the QP's worker if it stays on this
 * machine.
 *
 * Context: softirq, or process context with bottom halves off; none of the QP
 * locks held, or req.lock of this very QP (a run to itself).
 */
void arx_requester_run(struct arx_qp *qp)
{
	arx_requester_run_for(qp, ARX_SHARE_BYTES);
}

/**
 * arx_requester_poll - send as much as a received packet allows a QP to
 * @qp: any QP
 *
 * Limited to ARX_POLL_BYTES, because NAPI counts packets, whatever work they
 * cause.
 *
 * Context: as arx_requester_run().
 */
void arx_requester_poll(struct arx_qp *qp)
{
	arx_requester_run_for(qp, ARX_POLL_BYTES);
}

/**
 * arx_requester_kick - send requests that a consumer has posted
 * @qp: any QP
 *
 * Requests to this machine are acknowledged before bottom halves are on again.
 * Most often no request is in flight after that, and the timer need not be
 * started.
 *
 * Context: any with interrupts on; none of the QP locks held; @qp stays.
 * Return: true if there is more to copy on this machine, or to do without
 * packets. The caller continues, or calls arx_qp_go_on().
 */
bool arx_requester_kick(struct arx_qp *qp)
{
	struct arx_share share = arx_requester_share(qp, ARX_SHARE_BYTES);
	bool more;

	local_bh_disable();
	more = arx_requester_send(qp, &share);
	if (more && !READ_ONCE(qp->req.local) &&
	    !arx_requester_sent_little(&share)) {
		arx_qp_schedule(qp);
		more = false;
	}
	local_bh_enable();
	arx_completer_arm(qp);
	return more;
}

/* Copy WQEs of the ring until the ring is empty or there is no more room. */
static void arx_requester_fetch_all(struct arx_qp *qp)
{
	spin_lock_bh(&qp->req.lock);
	while (arx_qp_may(qp, ARX_QP_SEND) &&
	       arx_requester_fetch(qp) == ARX_TURN_GO)
		;
	spin_unlock_bh(&qp->req.lock);
}

/**
 * arx_requester_take - copy all WQEs that an application has posted
 * @qp: any QP of an application
 *
 * The copies hold what the WQEs name. They are sent when their turn comes. WQEs
 * stay behind if there may be no more copies (ARX_SWQES_MAX), without memory,
 * and in states without sending, where they will be flushed.
 *
 * Context: may sleep; none of the QP locks held; @qp stays.
 */
void arx_requester_take(struct arx_qp *qp)
{
	do {
		arx_requester_fetch_all(qp);
	} while (arx_ring_pending(&qp->sq, arx_published(&qp->req.fetched)) &&
		 arx_swqes_grow(qp));

	/* Callers that found the lock taken have set a bit. */
	local_bh_disable();
	arx_requester_run(qp);
	local_bh_enable();
}

/*
 * The kernel runs all timers that have expired, one after the other, before
 * bottom halves are on again. So their handlers leave the requester to a work:
 * of works the kernel runs ten at a time.
 */

static void arx_requester_retransmit(struct timer_list *t)
{
	struct arx_qp *qp = timer_container_of(qp, t, comp.retransmit);

	if (arx_completer_expired(qp))
		arx_qp_schedule(qp);
}

static enum hrtimer_restart arx_requester_rnr_ended(struct hrtimer *t)
{
	struct arx_qp *qp = container_of(t, struct arx_qp, comp.rnr);

	arx_completer_rnr_ended(qp);
	arx_qp_schedule(qp);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart arx_requester_probe(struct hrtimer *t)
{
	struct arx_qp *qp = container_of(t, struct arx_qp, comp.probe);

	if (arx_completer_probe(qp))
		arx_qp_schedule(qp);
	return HRTIMER_NORESTART;
}

static enum hrtimer_restart arx_requester_sq_poll(struct hrtimer *t)
{
	struct arx_qp *qp = container_of(t, struct arx_qp, watch.timer);

	arx_count(qp, SQ_TIMER_POLLS);
	set_bit(ARX_REQ_POLL, &qp->req.pending);
	arx_qp_schedule(qp);
	return HRTIMER_NORESTART;
}

/**
 * arx_requester_init - initialise the lock, and the timers that start the
 *	requester
 * @qp: new QP
 *
 * The completer and the watch start and end these timers.
 */
void arx_requester_init(struct arx_qp *qp)
{
	spin_lock_init(&qp->req.lock);
	timer_setup(&qp->comp.retransmit, arx_requester_retransmit, 0);
	hrtimer_setup(&qp->comp.rnr, arx_requester_rnr_ended, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	hrtimer_setup(&qp->comp.probe, arx_requester_probe, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	hrtimer_setup(&qp->watch.timer, arx_requester_sq_poll, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
}
