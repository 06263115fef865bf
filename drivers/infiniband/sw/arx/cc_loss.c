// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Congestion control by losses and marks. The window grows and shrinks about as
 * CUBIC's (RFC 9438), so that flows of TCP and of arx share a queue. There is
 * no rate: acknowledgments clock the packets.
 *
 * A router marks packets while it has a queue, and the receiver then sends a
 * CNP. The window shrinks for a CNP as for a loss, so such queues stay short.
 *
 * Some links lose packets without congestion. A queue loses packets only while
 * it is full, and then a round trip takes longest. Losses in shorter round
 * trips are evidence that the link loses packets: then the window returns to
 * what it was, and losses shrink it only if they come in long round trips,
 * twice in a row. If a large part of a window is lost, the path has no room for
 * it, whatever the evidence says.
 *
 * On a long path the window of a QP without control may be too small to fill
 * the link. It grows beyond that as long as round trips stay as short as they
 * were with little in flight.
 */

#include <linux/math64.h>
#include <linux/minmax.h>

#include "cc.h"

/*
 * A loss takes 3/10 of the window (RFC 9438, 4.6), and 1/8 if the link is
 * lossy, where a long queue may be there by chance.
 */
#define ARX_LOSSES_KEEP		7
#define ARX_LOSSES_OF		10
#define ARX_LOSSES_LOSSY_KEEP	7
#define ARX_LOSSES_LOSSY_OF	8

/*
 * CUBIC grows by half a packet in a round trip on short paths. On long ones its
 * growth depends on time: here the window grows by a packet in this time.
 */
#define ARX_LOSSES_GROW_NS	(48 * NSEC_PER_MSEC)

/*
 * Evidence that the link loses packets: one loss in a short queue adds 2, one
 * loss in a full queue subtracts 1. With this much the link counts as lossy.
 */
#define ARX_LOSSES_LOSSY	4
#define ARX_LOSSES_LOSSY_MAX	12

/* A loss of more than 1/8 of the window plus 2 packets is congestion. */
#define ARX_LOSSES_PART		8
#define ARX_LOSSES_LEAST	2

/*
 * A window of this many packets is too small to tell that by the lost part. A
 * QP on a link that loses every other packet needs more than one in flight, or
 * its retries are used up.
 */
#define ARX_LOSSES_FEW		8U

/*
 * Round trips from a change of the window until losses count again: the first
 * one began before the change, and of the other two the shorter one counts.
 */
#define ARX_LOSSES_ROUNDS	3

/*
 * How long a round trip takes while none was measured: the packets that measure
 * it may all be lost.
 */
#define ARX_LOSSES_UNKNOWN	(50 * NSEC_PER_MSEC)

/* The first window if there was a rate, which says that the path is slow. */
#define ARX_LOSSES_FIRST	64

/*
 * The bound of the window grows by a quarter, if round trips are at most a
 * quarter longer than the shortest. If they are longer, the bound does not grow
 * for this time.
 */
#define ARX_LOSSES_WIDEN	4
#define ARX_LOSSES_LONGER	4
#define ARX_LOSSES_QUEUED	(10ULL * NSEC_PER_SEC)

#define ARX_LOSSES_SHIFT	8
#define ARX_LOSSES_ONE		BIT(ARX_LOSSES_SHIFT)

static void arx_losses_set(struct arx_cc *cc, u32 cwnd)
{
	struct arx_cc_loss *l = &cc->loss;

	l->cwnd = clamp(cwnd, ARX_LOSSES_ONE, l->bound << ARX_LOSSES_SHIFT);
	WRITE_ONCE(cc->window, l->cwnd >> ARX_LOSSES_SHIFT);
}

static void arx_losses_init(struct arx_cc *cc, u64 now)
{
	u32 window = cc->rate ? ARX_LOSSES_FIRST : cc->most;

	cc->loss.bound = cc->most;
	arx_losses_set(cc, window << ARX_LOSSES_SHIFT);
	WRITE_ONCE(cc->rate, 0);
}

static void arx_losses_shrink(struct arx_cc *cc, u32 num, u32 den)
{
	struct arx_cc_loss *l = &cc->loss;

	l->rounds = 0;
	l->quick = 0;
	arx_losses_set(cc, l->cwnd / den * num);
}

/*
 * The new bound of the window: larger if round trips are still short, smaller
 * if they are long, because then the last growth only made a queue.
 */
static u32 arx_losses_bound(struct arx_cc *cc, u64 now)
{
	u64 longest = cc->shortest + cc->shortest / ARX_LOSSES_LONGER;
	struct arx_cc_loss *l = &cc->loss;

	if (min(l->last, l->before) > longest) {
		l->queued = now;
		return max(l->bound - l->bound / (ARX_LOSSES_WIDEN + 1),
			   cc->most);
	}
	if (l->queued && now - l->queued < ARX_LOSSES_QUEUED)
		return l->bound;
	return min(l->bound + l->bound / ARX_LOSSES_WIDEN, cc->widest);
}

/*
 * The window has been as large as it may be for some round trips, and the
 * sender has used it.
 */
static void arx_losses_widen(struct arx_cc *cc, u64 now)
{
	struct arx_cc_loss *l = &cc->loss;
	u32 bound;

	if (cc->shortest <= ARX_CC_FAR)
		return;
	bound = arx_losses_bound(cc, now);
	if (bound == l->bound)
		return;
	l->bound = bound;
	l->rounds = 0;
	arx_losses_set(cc, bound << ARX_LOSSES_SHIFT);
}

/* A sender that does not use its window gets no larger one. */
static void arx_losses_ack(struct arx_cc *cc, u32 n, u64 rtt, u64 now)
{
	struct arx_cc_loss *l = &cc->loss;
	u64 more;

	if (!rtt)
		return;
	l->before = l->last;
	l->last = rtt;
	l->rounds++;
	l->shortest = min_not_zero(l->shortest, rtt);
	more = max_t(u64, ARX_LOSSES_ONE / 2,
		     div_u64(rtt * ARX_LOSSES_ONE, ARX_LOSSES_GROW_NS));
	if (l->cwnd < l->quick)
		more = max(more, l->cwnd / 2);
	more = min(more, cc->most << ARX_LOSSES_SHIFT);
	if (READ_ONCE(cc->limited)) {
		arx_losses_set(cc, l->cwnd + more);
		if (l->rounds >= ARX_LOSSES_ROUNDS && cc->window == l->bound)
			arx_losses_widen(cc, now);
	}
	WRITE_ONCE(cc->limited, false);
}

/* The shortest round trip in which losses tell of a full queue. */
static u64 arx_losses_full(const struct arx_cc_loss *l)
{
	return l->full - (l->full - min(l->shortest, l->full)) / 8;
}

/*
 * The CNPs of one round trip count once: the packets that they are for were
 * sent before the window shrank.
 */
static void arx_losses_cnp(struct arx_cc *cc, u64 now)
{
	struct arx_cc_loss *l = &cc->loss;

	if (l->marked && now - l->marked < (l->last ?: ARX_LOSSES_UNKNOWN))
		return;
	l->marked = now;
	l->held = 0;
	arx_losses_shrink(cc, ARX_LOSSES_KEEP, ARX_LOSSES_OF);
	/* Packets that were only late give back nothing of that. */
	l->had = cc->window;
	l->lost = 0;
}

/* Evidence that the link loses packets. */
static void arx_losses_blame(struct arx_cc *cc)
{
	struct arx_cc_loss *l = &cc->loss;

	l->fulls = 0;
	l->lossy = min(l->lossy + 2, ARX_LOSSES_LOSSY_MAX);
	if (l->lossy < ARX_LOSSES_LOSSY || !l->held)
		return;
	arx_losses_set(cc, max(l->cwnd, l->held));
	l->held = 0;
	l->rounds = 0;
}

/*
 * The first loss in a round trip, which takes @rtt ns. If the link has lost
 * packets in shorter queues, one long round trip may be chance.
 */
static void arx_losses_judge(struct arx_cc *cc, u64 rtt)
{
	struct arx_cc_loss *l = &cc->loss;

	if (l->full && (rtt == l->shortest || rtt < arx_losses_full(l))) {
		arx_losses_blame(cc);
	} else if (!l->lossy) {
		l->held = l->full ? l->cwnd : max(l->held, l->cwnd);
		l->full = max(rtt, arx_losses_full(l));
		arx_losses_shrink(cc, ARX_LOSSES_KEEP, ARX_LOSSES_OF);
	} else if (l->fulls++) {
		l->fulls = 0;
		l->lossy--;
		l->full = max(rtt, l->full);
		arx_losses_shrink(cc, ARX_LOSSES_LOSSY_KEEP,
				  ARX_LOSSES_LOSSY_OF);
	}
}

/*
 * A large part of the window that the QP had was lost, because the path has no
 * room for it. What was not lost tells how much room there is.
 */
static void arx_losses_fit(struct arx_cc *cc)
{
	struct arx_cc_loss *l = &cc->loss;
	u32 least = max(l->had / ARX_LOSSES_PART, ARX_LOSSES_FEW);
	u32 room = l->had - min(l->lost, l->had - least);

	l->held = 0;
	l->lossy = 0;
	l->full = 0;
	/* The path may have become longer. */
	l->shortest = l->last;
	l->rounds = 0;
	l->quick = 0;
	arx_losses_set(cc, min(l->cwnd, room << ARX_LOSSES_SHIFT));
}

static void arx_losses_loss(struct arx_cc *cc, u32 n, u64 now)
{
	struct arx_cc_loss *l = &cc->loss;
	bool first = !l->counted;

	if (first || now - l->counted > (l->last ?: ARX_LOSSES_UNKNOWN)) {
		l->had = cc->window;
		l->counted = now;
		l->lost = 0;
		if (l->rounds >= ARX_LOSSES_ROUNDS)
			arx_losses_judge(cc, min(l->last, l->before));
		else if (!first && !l->last)
			arx_losses_shrink(cc, ARX_LOSSES_KEEP, ARX_LOSSES_OF);
	}
	l->lost += n;
	if (l->had > ARX_LOSSES_FEW &&
	    l->lost > l->had / ARX_LOSSES_PART + ARX_LOSSES_LEAST)
		arx_losses_fit(cc);
}

/* If nothing is left of what was lost, the window is what it was. */
static void arx_losses_late(struct arx_cc *cc, u32 n, u64 now)
{
	struct arx_cc_loss *l = &cc->loss;

	if (!l->lost)
		return;
	l->lost -= min(n, l->lost);
	if (!l->lost)
		arx_losses_set(cc, max(l->cwnd, l->had << ARX_LOSSES_SHIFT));
}

/*
 * The path that comes back may be another one. The window quickly grows to half
 * of what it was.
 */
static void arx_losses_timeout(struct arx_cc *cc, u64 now)
{
	struct arx_cc_loss *l = &cc->loss;
	u32 quick = max(l->quick, l->cwnd / 2);

	l->held = 0;
	l->shortest = 0;
	if (cc->window > ARX_LOSSES_FEW)
		arx_losses_shrink(cc, 1, 2);
	l->quick = quick;
}

const struct arx_cc_ops arx_cc_loss_ops = {
	.init = arx_losses_init,
	.ack = arx_losses_ack,
	.cnp = arx_losses_cnp,
	.loss = arx_losses_loss,
	.late = arx_losses_late,
	.timeout = arx_losses_timeout,
};
