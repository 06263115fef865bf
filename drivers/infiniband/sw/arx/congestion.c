// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Congestion of a QP's path: measures round trips, begins to control the QP
 * when there is a sign of congestion, and passes losses, CNPs and
 * acknowledgments to the controller (cc.h). A QP without congestion has no
 * controller, and sends at full speed or at the static rate of its address.
 */

#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/units.h>

#include "account.h"
#include "cc_bpf.h"
#include "congestion.h"
#include "loss.h"
#include "schedule.h"
#include "sock.h"
#include "state.h"

/*
 * A round trip this long is a sign of congestion. A flow that was first in a
 * long queue loses nothing, while later flows give way to it. A full window
 * takes less time on a link of 1 Gbit/s.
 */
#define ARX_CONGESTION_LONG	(20 * NSEC_PER_MSEC)

/* To show that a path is long (ARX_CC_FAR) takes this many round trips. */
#define ARX_CONGESTION_TAKEN	3

/*
 * With "auto" and DCQCN, CNPs tell more than losses do: for this long after a
 * CNP, losses are no sign of congestion. After that, the path may be another
 * one.
 */
#define ARX_CONGESTION_MARKS	NSEC_PER_SEC

/* For this long after a READ response CNPs may be for such responses. */
#define ARX_CONGESTION_RESPONDS	HZ

/* Packets of which arx_congestion_overflows() counts the lost ones. */
#define ARX_CONGESTION_SAMPLE	64

/* Bytes of headers of a full packet: Ethernet, IPv6, UDP, BTH, ICRC. */
#define ARX_CONGESTION_HEADERS	(14 + 40 + 8 + 12 + 4)

static const struct arx_cc_ops *const arx_congestion_ops[] = {
	[ARX_CC_FIXED] = NULL,
	[ARX_CC_DELAY] = &arx_cc_delay_ops,
	[ARX_CC_DCQCN] = &arx_cc_dcqcn_ops,
	[ARX_CC_BPF] = &arx_cc_bpf_ops,
};

/* Beyond the limit of its memory cgroup, too, a QP is controlled. */
static struct arx_cc *arx_congestion_alloc(struct arx_qp *qp)
{
	return arx_charged_zalloc(qp->memcg, sizeof(struct arx_cc), GFP_ATOMIC);
}

/* @cc is the state of a QP, without a controller. Not published yet. */
static void arx_congestion_init(const struct arx_qp *qp, struct arx_cc *cc,
				u64 now)
{
	/* Without reports, a loss sends the whole window again. */
	arx_cc_init(cc, qp->mtu + ARX_CONGESTION_HEADERS, ARX_WINDOW,
		    qp->comp.reports ? ARX_WINDOW_MOST : ARX_WINDOW, now);
}

/*
 * What a QP with ARX_CC_AUTO reacts with to a sign; NULL: it does not. Nothing
 * acknowledges READ responses, so that only a rate can slow them down.
 */
static const struct arx_cc_ops *arx_congestion_auto(const struct arx_cc *cc,
						    bool marked, bool responds,
						    u64 now)
{
	if (marked && responds)
		return &arx_cc_dcqcn_ops;
	if (!marked && cc && cc->ops == &arx_cc_dcqcn_ops &&
	    now - cc->marked < ARX_CONGESTION_MARKS)
		return NULL;
	return &arx_cc_loss_ops;
}

/* True if the QP has sent READ responses lately. */
static bool arx_congestion_responds(const struct arx_qp *qp)
{
	unsigned long at = READ_ONCE(qp->resp.read_at);

	return at && time_before(jiffies, at + ARX_CONGESTION_RESPONDS);
}

/*
 * There is a sign of congestion: a CNP (@marked), a loss or a long round trip.
 * Begin to control the QP if no controller does yet, or the wrong one. Returns
 * the state of the controller that reacts to this sign. Returns NULL if no
 * controller does, if the peer is on this machine, or without memory.
 */
static __cold struct arx_cc *arx_congestion_sign(struct arx_qp *qp, bool marked,
						 u64 now)
{
	bool responds = arx_congestion_responds(qp);
	struct arx_comp *comp = &qp->comp;
	const struct arx_cc_ops *ops;
	struct arx_cc *cc = comp->cc;

	ops = qp->cc == ARX_CC_AUTO ?
	      arx_congestion_auto(cc, marked, responds, now) :
	      arx_congestion_ops[qp->cc];
	if (!ops || READ_ONCE(qp->req.local))
		return NULL;
	if (!cc) {
		cc = arx_congestion_alloc(qp);
		if (!cc)
			return NULL;
		arx_congestion_init(qp, cc, now);
	}
	if (marked)
		cc->marked = now;
	if (cc->ops == ops)
		return cc;
	comp->trip.early = arx_published(&qp->req.nxt);
	cc->early = comp->una != comp->trip.early;
	cc->responds = responds;
	arx_cc_control(cc, ops, &arx_qp_dev(qp)->cc_params,
		       ktime_get_real_ns() - now, now);
	/* Pairs with arx_congestion_of(). */
	smp_store_release(&comp->cc, cc);
	return cc;
}

/**
 * arx_congestion_sent - packets were sent: measure a round trip, unless one is
 *	being measured
 * @qp: RC QP
 *
 * Context: any but hard interrupts; completer's lock not held.
 */
void arx_congestion_sent(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	struct arx_rtt *rtt = &comp->trip;
	u32 nxt;

	spin_lock_bh(&comp->lock);
	nxt = arx_published(&qp->req.nxt);
	WRITE_ONCE(rtt->tick, arx_congestion_tick());
	/* The last packet is an old one if none was sent for the first time. */
	if (comp->una != nxt && rtt->newest != nxt && !rtt->began) {
		rtt->psn = arx_psn_add(nxt, -1);
		rtt->began = ktime_get_ns();
	}
	rtt->newest = nxt;
	spin_unlock_bh(&comp->lock);
}

/* True if a round trip of @ns makes a QP controlled that is not. */
static bool arx_congestion_is_long(struct arx_qp *qp, u64 ns)
{
	struct arx_rtt *rtt = &qp->comp.trip;

	if (qp->cc != ARX_CC_AUTO)
		return ns > ARX_CONGESTION_LONG;
	if (ns <= ARX_CC_FAR)
		WRITE_ONCE(rtt->near, true);
	else if (rtt->taken < ARX_CONGESTION_TAKEN)
		rtt->taken++;
	return !rtt->near && rtt->taken == ARX_CONGESTION_TAKEN;
}

/* @n packets are acknowledged, and @ns is a round trip or 0. */
static void arx_congestion_ack(struct arx_qp *qp, u32 n, u64 ns, u64 now)
{
	struct arx_comp *comp = &qp->comp;
	struct arx_cc *cc = comp->cc;

	if (ns)
		comp->trip.shortest = min_not_zero(comp->trip.shortest, ns);

	if (cc && cc->ops) {
		cc->acked += n;
		cc->rtt = ns ?: cc->rtt;
		cc->shortest = comp->trip.shortest;
		cc->ops->ack(cc, n, ns, now);
	} else if (ns && arx_congestion_is_long(qp, ns)) {
		arx_congestion_sign(qp, false, now);
	}
}

static u64 arx_congestion_end_rtt(struct arx_rtt *rtt, u64 now)
{
	u64 ns = max(now - rtt->began, 1);

	rtt->began = 0;
	return ns;
}

/**
 * arx_congestion_acked - packets are acknowledged
 * @qp: RC QP
 * @una: oldest PSN that is not acknowledged; comp.una is still the one before
 *
 * Context: completer's lock held.
 */
void arx_congestion_acked(struct arx_qp *qp, u32 una)
{
	struct arx_comp *comp = &qp->comp;
	struct arx_rtt *rtt = &comp->trip;
	struct arx_cc *cc = comp->cc;
	u64 now = ktime_get_ns();
	u64 ns = 0;

	if (cc && cc->early)
		cc->early = arx_psn_diff(una, rtt->early) < 0;
	if (rtt->began && arx_psn_diff(una, rtt->psn) > 0)
		ns = arx_congestion_end_rtt(rtt, now);
	arx_congestion_ack(qp, arx_psn_diff(una, comp->una), ns, now);
}

/* The round trip that is measured ends, and acknowledges no packet. */
static void arx_congestion_took(struct arx_qp *qp)
{
	u64 now = ktime_get_ns();

	arx_congestion_ack(qp, 0, arx_congestion_end_rtt(&qp->comp.trip, now),
			   now);
}

/**
 * arx_congestion_reported - the peer has reported which packets it has
 * @qp: RC QP that notes its losses
 *
 * Context: completer's lock held.
 */
void arx_congestion_reported(struct arx_qp *qp)
{
	const struct arx_rtt *rtt = &qp->comp.trip;

	if (rtt->began && arx_loss_has(qp->comp.loss, rtt->psn))
		arx_congestion_took(qp);
}

/**
 * arx_congestion_arrived - a READ response arrived behind others that are
 *	missing
 * @qp: RC QP
 * @psn: the first PSN of the response
 * @n: its number of PSNs
 *
 * What is missing before it does not make the round trip longer.
 *
 * Context: completer's lock held.
 */
void arx_congestion_arrived(struct arx_qp *qp, u32 psn, u32 n)
{
	const struct arx_rtt *rtt = &qp->comp.trip;

	if (rtt->began && ((rtt->psn - psn) & ARX_PSN_MASK) < n)
		arx_congestion_took(qp);
}

/*
 * Losses beside CNPs are no sign of congestion, unless more than an eighth of
 * the packets is lost: another router of the path does not mark any. True if @n
 * more packets make that so.
 */
static bool arx_congestion_overflows(struct arx_qp *qp, u32 n)
{
	struct arx_cc *cc = qp->comp.cc;
	bool overflows;

	if (!cc || cc->ops != &arx_cc_dcqcn_ops)
		return false;
	cc->lost += n;
	if (cc->lost + cc->acked < ARX_CONGESTION_SAMPLE)
		return false;
	overflows = cc->lost > (cc->lost + cc->acked) / 8;
	cc->lost = 0;
	cc->acked = 0;
	return overflows;
}

/**
 * arx_congestion_lost - packets are lost, and are about to be sent again
 * @qp: RC QP
 * @psn: the first of them
 * @n: number of their PSNs
 * @packets: number of packets, fewer if requests of READs are lost
 *
 * Context: completer's lock held.
 */
void arx_congestion_lost(struct arx_qp *qp, u32 psn, u32 n, u32 packets)
{
	struct arx_rtt *rtt = &qp->comp.trip;
	u64 now = ktime_get_ns();
	struct arx_cc *cc;

	if (((rtt->psn - psn) & ARX_PSN_MASK) < n)
		rtt->began = 0;
	/* A receiver that is not ready drops what arrives. */
	if (qp->comp.rnr_row)
		return;
	cc = arx_congestion_sign(qp, false, now);
	if (!cc && arx_congestion_overflows(qp, packets))
		cc = qp->comp.cc;
	if (cc)
		cc->ops->loss(cc, packets, now);
}

/**
 * arx_congestion_late - packets that were reported as lost were only late
 * @qp: RC QP
 * @n: their number
 *
 * Context: completer's lock held.
 */
void arx_congestion_late(struct arx_qp *qp, u32 n)
{
	struct arx_cc *cc = qp->comp.cc;

	if (cc && cc->ops && cc->ops->late)
		cc->ops->late(cc, n, ktime_get_ns());
}

/**
 * arx_congestion_timeout - the retransmission timer has expired
 * @qp: RC QP
 *
 * Context: completer's lock held.
 */
void arx_congestion_timeout(struct arx_qp *qp)
{
	u64 now = ktime_get_ns();
	struct arx_cc *cc = qp->comp.cc;

	/* CNPs may be lost, too: a timeout does not end a controller's work. */
	if (!cc || !cc->ops)
		cc = arx_congestion_sign(qp, false, now);
	if (cc)
		cc->ops->timeout(cc, now);
}

/**
 * arx_congestion_cnp - the peer has sent a CNP, or what the peer sends arrives
 *	marked
 * @qp: RC QP
 *
 * A reset may be complete since the state was checked for the packet, and must
 * not be followed by a controller: so the state is checked again under the
 * lock, which a reset holds, too.
 *
 * Context: bottom halves off; no QP lock held.
 * Return: true if that makes the QP send more slowly.
 */
bool arx_congestion_cnp(struct arx_qp *qp)
{
	struct arx_cc *cc = NULL;
	u64 now;

	spin_lock(&qp->comp.lock);
	now = ktime_get_ns();
	if (arx_qp_may(qp, ARX_QP_ACKED | ARX_QP_RECEIVE))
		cc = arx_congestion_sign(qp, true, now);
	if (cc)
		cc->ops->cnp(cc, now);
	spin_unlock(&qp->comp.lock);
	return cc;
}

/**
 * arx_congestion_waits - true if a stage must not send yet
 * @qp: RC QP
 * @cc: its congestion control
 *
 * If it must not, the QP is scheduled when it may.
 *
 * Context: bottom halves off; lock of the stage held.
 */
bool arx_congestion_waits(struct arx_qp *qp, struct arx_cc *cc)
{
	bool ahead = arx_sock_pace(qp, arx_cc_rate(cc));
	u64 wait = arx_cc_wait(cc, ktime_get_ns(), ahead);

	if (!wait)
		return false;
	WRITE_ONCE(cc->limited, true);
	arx_qp_schedule_in(qp, wait);
	return true;
}

/**
 * arx_congestion_charge - a stage has sent a run
 * @qp: RC QP
 * @cc: its congestion control
 * @run: the run. READ responses are not acknowledged, so they count as if they
 *	were
 * @out: of the stage. If there is a rate, each burst leaves by itself: two
 *	would be a longer one
 *
 * Context: bottom halves off; lock of the stage held.
 */
void arx_congestion_charge(struct arx_qp *qp, struct arx_cc *cc,
			   const struct arx_run *run, struct arx_tx_out *out)
{
	u64 now = ktime_get_ns();

	if (arx_cc_rate(cc))
		out->batch.full = true;
	arx_cc_charge(cc, run->len + run->npkts * ARX_CONGESTION_HEADERS, now);
	if (run->h.op != ARX_OP_READ_RESPONSE)
		return;
	spin_lock(&qp->comp.lock);
	cc->responds = true;
	/* @now may be earlier than the time of a CNP on another CPU. */
	if (cc->ops)
		cc->ops->ack(cc, run->npkts, 0, ktime_get_ns());
	spin_unlock(&qp->comp.lock);
}

/**
 * arx_congestion_limit - the QP sends at a static rate from now on
 * @qp: all of its locks are held, or it is UD and its requester's is
 * @mbps: static rate of the address in Mbit/s, 0: none
 * @spare: memory for the state, needed if @mbps is not 0; NULL if it was used
 */
void arx_congestion_limit(struct arx_qp *qp, u32 mbps, struct arx_cc **spare)
{
	struct arx_cc *cc = arx_congestion_of(qp);

	if (!cc && *spare) {
		cc = *spare;
		*spare = NULL;
		arx_congestion_init(qp, cc, ktime_get_ns());
		/* Pairs with arx_congestion_of(). */
		smp_store_release(&qp->comp.cc, cc);
	}
	if (cc)
		WRITE_ONCE(cc->static_rate, mbps * (MEGA / 8));
}

/**
 * arx_congestion_of_datagram - the state of a UD QP for a datagram with a
 *	static rate
 * @qp: UD QP
 * @mbps: static rate of the datagram's address in Mbit/s
 *
 * Context: requester's lock held.
 * Return: the state, or NULL: there is no memory, and the datagram leaves at
 * once.
 */
struct arx_cc *arx_congestion_of_datagram(struct arx_qp *qp, u32 mbps)
{
	struct arx_cc *spare = NULL;

	if (!arx_congestion_of(qp))
		spare = arx_congestion_alloc(qp);
	arx_congestion_limit(qp, mbps, &spare);
	return arx_congestion_of(qp);
}

/**
 * arx_congestion_forget - end the control of a QP
 * @qp: all of its locks are held, or nothing uses it any more
 */
void arx_congestion_forget(struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;

	kfree(comp->cc);
	WRITE_ONCE(comp->cc, NULL);
	comp->trip.began = 0;
	comp->trip.shortest = 0;
	comp->trip.taken = 0;
	comp->trip.near = false;
}
