// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Congestion control by delay, after Swift (SIGCOMM '20). The controller
 * measures the round trip time of an empty path. What a round trip takes beyond
 * that is time in queues. The window grows by a packet each round trip while
 * the time in queues is less than a target, and shrinks in proportion to the
 * excess. A CNP shrinks the window, too.
 *
 * There is no rate: acknowledgments clock the packets, four times in a window
 * (arx_cc_burst()). A timer would add its own delay on a busy CPU.
 *
 * A loss alone is no sign of congestion: some links lose packets. Losses shrink
 * the window if they come when the queue is long, or if a large part of a
 * window is lost.
 *
 * A sender that fills each queue until packets are lost, as TCP does, leaves
 * nothing to one that keeps queues short. If a queue stays although this flow
 * shrinks, and is longer than any flow like this one keeps it, the flow
 * competes until the path is found to drain again: the window grows and shrinks
 * about as CUBIC's (RFC 9438).
 */

#include <linux/math64.h>
#include <linux/minmax.h>

#include "cc.h"

/* The limit of a short queue, see arx_delay_is_lossy(). */
#define ARX_DELAY_SHORT		(200ULL * NSEC_PER_USEC)

/* Round trips after which a queue counts as one that stays. */
#define ARX_DELAY_ROUNDS	8

/*
 * A queue in which packets were lost before was full. If packets are lost in a
 * queue less than half as long, the link loses them: that adds 2 to a score,
 * and each time the path has drained subtracts 1. A link with this score is
 * lossy.
 */
#define ARX_DELAY_LOSSY		4
#define ARX_DELAY_LOSSY_MAX	12

/* Window while the path drains, and after that, in packets. */
#define ARX_DELAY_DRAINED	1
#define ARX_DELAY_FIRST		4

/*
 * All flows drain the path at the same times, about once a second (2^30 ns of
 * the time of day). A flow that drained alone would mistake the packets of the
 * other flows for a longer path, and would get a larger share.
 */
#define ARX_DELAY_TICK		30

/* A longer path takes longer to drain, and drains an eighth as often. */
#define ARX_DELAY_FAR		(4 * NSEC_PER_MSEC)

/* The path drains for at least this number of round trips. */
#define ARX_DELAY_SAMPLES	3

/*
 * A flow that competes keeps 7/10 of the window at a loss, and grows by half a
 * packet in a round trip, as CUBIC does on short paths (RFC 9438, 4.3). On long
 * paths CUBIC's growth depends on time: the window grows by a packet in this
 * time.
 */
#define ARX_DELAY_COMPETE_NS	(48 * NSEC_PER_MSEC)

/* The window shrinks by 1/4 for CNPs, and at most by half at a time. */
#define ARX_DELAY_CNP_SHIFT	2

/* A loss of more than 1/8 of the window plus 2 packets is congestion. */
#define ARX_DELAY_LOSS_PART	8
#define ARX_DELAY_LOSS_LEAST	2

#define ARX_DELAY_SHIFT		8
#define ARX_DELAY_ONE		BIT(ARX_DELAY_SHIFT)

/*
 * Time that packets may spend in queues, in ns, if no router marks packets. A
 * queue of 8 ms, the default, keeps a link busy while a sender's CPU does
 * something else. If packets are lost in a shorter queue, the flow's target is
 * half of that queue. Each time the path has drained, that target grows by an
 * eighth.
 */
static u64 arx_delay_target(const struct arx_cc *cc)
{
	return (u64)READ_ONCE(cc->params->delay.target_usecs) * NSEC_PER_USEC;
}

/* A loss does not make the target shorter than this, in ns. */
static u64 arx_delay_target_min(const struct arx_cc *cc)
{
	return (u64)READ_ONCE(cc->params->delay.target_min_usecs) *
	       NSEC_PER_USEC;
}

static bool arx_delay_may_compete(const struct arx_cc *cc)
{
	return READ_ONCE(cc->params->delay.compete);
}

static void arx_delay_set(struct arx_cc *cc, u32 cwnd)
{
	struct arx_cc_delay *d = &cc->delay;

	d->cwnd = clamp(cwnd, ARX_DELAY_ONE, cc->most << ARX_DELAY_SHIFT);
	WRITE_ONCE(cc->window, d->cwnd >> ARX_DELAY_SHIFT);
}

static void arx_delay_drain(struct arx_cc *cc, u32 resume, u64 now)
{
	struct arx_cc_delay *d = &cc->delay;

	d->phase = ARX_CC_DRAIN;
	d->resume = resume;
	d->drained = now;
	d->samples = 0;
	d->previous = 0;
	arx_delay_set(cc, ARX_DELAY_DRAINED << ARX_DELAY_SHIFT);
}

static void arx_delay_init(struct arx_cc *cc, u64 now)
{
	cc->delay.target = arx_delay_target(cc);
	arx_delay_drain(cc, 0, now);
}

/* Shrink to @num / @den of the window, once in a round trip. */
static void arx_delay_shrink(struct arx_cc *cc, u64 num, u64 den, u64 now)
{
	struct arx_cc_delay *d = &cc->delay;

	if (d->phase == ARX_CC_DRAIN || now - d->cut < d->last)
		return;
	d->phase = ARX_CC_STEADY;
	d->cut = now;
	arx_delay_set(cc, max(div64_u64(d->cwnd * num, den), d->cwnd / 2));
}

/*
 * Packets sent since the path began to drain meet ever fewer others, until the
 * round trip time does not fall any more.
 */
static void arx_delay_drained(struct arx_cc *cc, u64 rtt, u64 now)
{
	struct arx_cc_delay *d = &cc->delay;

	if (now - rtt < d->drained)
		return;
	if (!d->samples || rtt < d->base)
		d->base = rtt;
	if (++d->samples < ARX_DELAY_SAMPLES ||
	    rtt < d->previous - d->previous / 8) {
		d->previous = rtt;
		return;
	}
	d->phase = d->resume ? ARX_CC_STEADY : ARX_CC_START;
	d->rounds = 0;
	d->target = min(d->target + d->target / 8, arx_delay_target(cc));
	if (d->lossy)
		d->lossy--;
	/* The path drains again once such senders have left. */
	if (d->base <= d->shortest + arx_delay_target(cc) ||
	    !arx_delay_may_compete(cc))
		d->competes = false;
	if (d->competes)
		d->base = d->shortest;
	d->shortest += d->shortest / 8;
	arx_delay_set(cc, max(d->resume, ARX_DELAY_FIRST << ARX_DELAY_SHIFT));
}

/* A sender that does not use its window gets no larger one. */
static void arx_delay_add(struct arx_cc *cc, u32 more)
{
	if (READ_ONCE(cc->limited))
		arx_delay_set(cc, cc->delay.cwnd + more);
	WRITE_ONCE(cc->limited, false);
}

static void arx_delay_grow(struct arx_cc *cc, u64 queued)
{
	struct arx_cc_delay *d = &cc->delay;
	u32 more = ARX_DELAY_ONE;

	if (d->phase == ARX_CC_START)
		more = d->cwnd;
	else if (queued < d->target / 4)
		more += d->cwnd / 8;
	arx_delay_add(cc, more);
}

/* CUBIC, but the window grows linearly. */
static void arx_delay_compete(struct arx_cc *cc, u64 rtt)
{
	arx_delay_add(cc, max_t(u64, ARX_DELAY_ONE / 2,
				div_u64(rtt * ARX_DELAY_ONE,
					ARX_DELAY_COMPETE_NS)));
}

/*
 * A queue that stays longer than the target although this flow shrinks belongs
 * to flows with a higher target, or with a wrong idea of the path's length: the
 * target may grow to that time, up to arx_delay_target(). A longer queue
 * belongs to a sender that slows down for losses only. This flow then competes,
 * with the window that it had before it shrank.
 */
static void arx_delay_follow(struct arx_cc *cc, u64 queued)
{
	struct arx_cc_delay *d = &cc->delay;
	u64 target = arx_delay_target(cc);

	if (!d->rounds) {
		d->floor = queued;
		d->held = d->cwnd;
	}
	d->floor = min(d->floor, queued);
	if (++d->rounds < ARX_DELAY_ROUNDS)
		return;
	d->rounds = 0;
	d->target = max(d->target, min(d->floor, target));
	if (d->floor <= target || d->cwnd >= d->held ||
	    !arx_delay_may_compete(cc))
		return;
	d->competes = true;
	d->base = d->shortest;
	arx_delay_set(cc, d->held);
}

static u64 arx_delay_tick(const struct arx_cc *cc, u64 now)
{
	bool far = cc->delay.base > ARX_DELAY_FAR;

	return (now + cc->epoch) >> (ARX_DELAY_TICK + (far ? 3 : 0));
}

/* A round trip was measured while the path is not draining. */
static void arx_delay_steer(struct arx_cc *cc, u64 rtt, u64 least, u64 now)
{
	struct arx_cc_delay *d = &cc->delay;
	u64 queued = least > d->base ? least - d->base : 0;

	arx_delay_follow(cc, queued);
	if (d->phase == ARX_CC_START && rtt > d->base + d->target / 8)
		d->phase = ARX_CC_STEADY;
	/*
	 * One long round trip may be the delay of a CPU: the window stays. If a
	 * queue was long, the next round trip is long, too, and shrinks the
	 * window.
	 */
	if (rtt <= d->base + d->target)
		arx_delay_grow(cc, queued);
	else if (queued > d->target && !d->competes)
		arx_delay_shrink(cc, least - (queued - d->target) * 4 / 5,
				 least, now);
}

static void arx_delay_ack(struct arx_cc *cc, u32 n, u64 rtt, u64 now)
{
	struct arx_cc_delay *d = &cc->delay;
	u64 least;

	if (!rtt)
		return;
	least = d->last ? min(d->last, rtt) : rtt;
	d->before = d->last;
	d->last = rtt;
	d->shortest = min_not_zero(d->shortest, rtt);
	if (d->phase == ARX_CC_DRAIN) {
		arx_delay_drained(cc, rtt, now);
		return;
	}
	d->base = min(d->base, rtt);
	if (READ_ONCE(cc->limited) &&
	    arx_delay_tick(cc, now) != arx_delay_tick(cc, d->drained))
		arx_delay_drain(cc, d->cwnd, now);
	else if (d->competes)
		arx_delay_compete(cc, rtt);
	else
		arx_delay_steer(cc, rtt, least, now);
}

static void arx_delay_cnp(struct arx_cc *cc, u64 now)
{
	arx_delay_shrink(cc, BIT(ARX_DELAY_CNP_SHIFT) - 1,
			 BIT(ARX_DELAY_CNP_SHIFT), now);
}

/*
 * True if packets are lost although the queue is short: less than half as long
 * as one that was full, or shorter than half of an empty round trip and than
 * ARX_DELAY_SHORT. On a link that has proved to be lossy, also if the queue is
 * not nearly full.
 */
static bool arx_delay_is_lossy(struct arx_cc *cc, u64 queued)
{
	struct arx_cc_delay *d = &cc->delay;

	if (queued >= min(d->shortest / 2, ARX_DELAY_SHORT) &&
	    queued >= d->full / 2)
		return d->lossy >= ARX_DELAY_LOSSY &&
		       queued < d->full - d->full / 8;
	d->lossy = min(d->lossy + 2, ARX_DELAY_LOSSY_MAX);
	if (d->lossy < ARX_DELAY_LOSSY)
		return false;
	d->target = arx_delay_target(cc);
	return true;
}

/*
 * The first loss in a round trip: a sign of a full queue, unless the link has
 * proved to be lossy.
 */
static void arx_delay_judge(struct arx_cc *cc, u64 now)
{
	struct arx_cc_delay *d = &cc->delay;
	u64 rtt = max(d->last, d->before);
	u64 queued = rtt > d->base ? rtt - d->base : 0;
	u64 full = rtt > d->shortest ? rtt - d->shortest : 0;

	if (arx_delay_is_lossy(cc, full))
		return;
	d->full = max(full, d->full - d->full / 8);
	if (d->competes) {
		arx_delay_shrink(cc, 7, 10, now);
		return;
	}
	d->rounds = 0;
	d->target = min(d->target, max(queued / 2, arx_delay_target_min(cc)));
	arx_delay_shrink(cc, 3, 4, now);
}

static void arx_delay_loss(struct arx_cc *cc, u32 n, u64 now)
{
	struct arx_cc_delay *d = &cc->delay;

	if (d->phase == ARX_CC_DRAIN)
		return;
	if (now - d->counted > d->last) {
		arx_delay_judge(cc, now);
		d->counted = now;
		d->lost = 0;
	}
	d->lost += n;
	if (d->lost > cc->window / ARX_DELAY_LOSS_PART + ARX_DELAY_LOSS_LEAST)
		arx_delay_shrink(cc, 1, 2, now);
}

static void arx_delay_timeout(struct arx_cc *cc, u64 now)
{
	arx_delay_shrink(cc, 1, 2, now);
}

const struct arx_cc_ops arx_cc_delay_ops = {
	.init = arx_delay_init,
	.ack = arx_delay_ack,
	.cnp = arx_delay_cnp,
	.loss = arx_delay_loss,
	.timeout = arx_delay_timeout,
};
