// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DCQCN (SIGCOMM '15): CNPs reduce the rate. The events of a timer and of a
 * counter of bytes raise the rate again: each event goes half of the way to the
 * target, which is the rate before the reduction. After five events of either
 * kind (rp_threshold) each event adds a step to the target; after five events
 * of both kinds, a large step. No timer runs: its events are processed when the
 * next packet is acknowledged.
 */

#include <linux/math64.h>
#include <linux/minmax.h>

#include "cc.h"

/* Rates in bytes per second. */
#define ARX_DCQCN_MBIT		125000ULL
#define ARX_DCQCN_MOST		(ARX_DCQCN_MOST_MBPS * ARX_DCQCN_MBIT)

/*
 * The default steps are made for links of 40 Gbit/s. A step is at most this
 * part of the rate, a large step five times that: otherwise a single step fills
 * the queue of a slow link.
 */
#define ARX_DCQCN_STEP_SHIFT	6	/* 1/64 */

#define ARX_DCQCN_DECAY_NS	(55ULL * NSEC_PER_USEC)

/* Events come at most once in a round trip; a longer one counts as this. */
#define ARX_DCQCN_RTT_MAX	(4ULL * NSEC_PER_MSEC)

/* At most this many missed raises are processed after a pause. */
#define ARX_DCQCN_EVENTS	64

/* Fixed point, fine enough for 1/256 of a small estimate. */
#define ARX_DCQCN_ONE		BIT(20)
#define ARX_DCQCN_GAIN_SHIFT	8	/* 1/256 */

/* Decays after which the estimate is half as large: (255/256)^177 */
#define ARX_DCQCN_HALVED	177

/* Parameters of the device: a number, a rate, a time in ns */
#define ARX_DCQCN(_cc, _name)	READ_ONCE((_cc)->params->dcqcn._name)
#define ARX_DCQCN_RATE(_cc, _name) (ARX_DCQCN(_cc, _name) * ARX_DCQCN_MBIT)
#define ARX_DCQCN_NS(_cc, _name)					\
	((u64)ARX_DCQCN(_cc, _name) * NSEC_PER_USEC)

static void arx_dcqcn_set(struct arx_cc *cc, u64 rate)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;

	d->rate = clamp(rate, ARX_DCQCN_RATE(cc, rp_min_rate_mbps),
			ARX_DCQCN_MOST);
	WRITE_ONCE(cc->rate, min_t(u64, d->rate, ULONG_MAX));
}

/* The timer and the counter begin anew. */
static void arx_dcqcn_restart(struct arx_cc_dcqcn *d, u64 now)
{
	d->raised = now;
	d->by_time = 0;
	d->by_bytes = 0;
	d->bytes = 0;
}

/* Nothing is known of the path but the highest rate that it may have. */
static void arx_dcqcn_begin(struct arx_cc *cc, u64 rate, u64 now)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;

	d->alpha = ARX_DCQCN(cc, rp_initial_alpha_value) *
		   (ARX_DCQCN_ONE / ARX_DCQCN_ALPHA_ONE);
	d->decayed = now;
	arx_dcqcn_restart(d, now);
	arx_dcqcn_set(cc, rate);
	d->target = d->rate;
}

/* The rate that the window of the controller before has had, if it had one */
static u64 arx_dcqcn_first(const struct arx_cc *cc)
{
	u64 most = ARX_DCQCN_RATE(cc, first_rate_mbps);

	if (cc->window >= cc->most || !cc->rtt)
		return most;
	return min(most, div64_u64((u64)cc->window * cc->mtu * NSEC_PER_SEC,
				   cc->rtt));
}

static void arx_dcqcn_init(struct arx_cc *cc, u64 now)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;

	arx_dcqcn_begin(cc, arx_dcqcn_first(cc), now);
	d->rtt = min(cc->rtt, ARX_DCQCN_RTT_MAX);
	d->began = now;
	d->drains = cc->early && (cc->window >= cc->most || !cc->rtt);
	WRITE_ONCE(cc->window, d->drains ? 1 : cc->most);
}

/*
 * The rate that the path had for the first window, of which half is sent at
 * first. The wait for the packet after it counts no longer than the window took
 * to drain: the program may have had nothing to send.
 */
static void arx_dcqcn_measure(struct arx_cc *cc, u64 now)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;
	u64 took = min(now - d->began, 2 * (d->empty - d->began));
	u64 rate = div64_u64((u64)d->drained * cc->mtu * NSEC_PER_SEC,
			     max_t(u64, took, 1));

	arx_dcqcn_begin(cc, min(rate, d->rate), now);
	arx_dcqcn_set(cc, d->rate / 2);
}

/*
 * Before the first sign of congestion a QP sends a full window unpaced, which
 * may fill a queue for hundreds of round trips. All of it may be marked, which
 * says nothing about the rate. So the window drains, and a packet is sent after
 * it: the round trip of that packet ends when what other QPs have sent
 * meanwhile has drained, too. READ responses have no window, and are not
 * acknowledged.
 */
static void arx_dcqcn_drain(struct arx_cc *cc, u32 n, u64 now)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;

	if (!cc->responds && !d->empty) {
		d->drained += n;
		if (!cc->early)
			d->empty = now;
		return;
	}
	d->drains = false;
	WRITE_ONCE(cc->window, cc->most);
	if (!cc->responds)
		arx_dcqcn_measure(cc, now);
}

static void arx_dcqcn_raise(struct arx_cc *cc)
{
	u32 threshold = ARX_DCQCN(cc, rp_threshold);
	struct arx_cc_dcqcn *d = &cc->dcqcn;
	u64 part = d->rate >> ARX_DCQCN_STEP_SHIFT;

	if (min(d->by_time, d->by_bytes) > threshold)
		d->target += min(ARX_DCQCN_RATE(cc, rp_hai_rate_mbps),
				 5 * part);
	else if (max(d->by_time, d->by_bytes) > threshold)
		d->target += min(ARX_DCQCN_RATE(cc, rp_ai_rate_mbps), part);
	d->target = min(d->target, ARX_DCQCN_MOST);
	arx_dcqcn_set(cc, (d->rate + d->target) / 2);
}

/* The estimate decays for each @interval without a CNP. */
static void arx_dcqcn_decay(struct arx_cc_dcqcn *d, u64 interval, u64 now)
{
	u64 n = div64_u64(now - d->decayed, interval);
	u32 rest;

	d->decayed += n * interval;
	d->alpha >>= min_t(u64, div_u64_rem(n, ARX_DCQCN_HALVED, &rest), 31);
	while (rest--)
		d->alpha -= d->alpha >> ARX_DCQCN_GAIN_SHIFT;
}

/* Process the events of both timers up to @now. */
static void arx_dcqcn_elapse(struct arx_cc *cc, u64 now)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;
	u64 raise = max(ARX_DCQCN_NS(cc, rp_time_reset_usecs), d->rtt);
	int i;

	arx_dcqcn_decay(d, max(ARX_DCQCN_DECAY_NS, d->rtt), now);
	for (i = 0; i < ARX_DCQCN_EVENTS && now - d->raised >= raise; i++) {
		d->raised += raise;
		d->by_time++;
		arx_dcqcn_raise(cc);
	}
	if (i == ARX_DCQCN_EVENTS)
		d->raised = now;
}

static void arx_dcqcn_ack(struct arx_cc *cc, u32 n, u64 rtt, u64 now)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;

	if (rtt)
		d->rtt = min(rtt, ARX_DCQCN_RTT_MAX);
	if (d->drains) {
		arx_dcqcn_drain(cc, n, now);
		return;
	}
	arx_dcqcn_elapse(cc, now);
	d->bytes += n * cc->mtu;
	if (d->bytes >= ARX_DCQCN(cc, rp_byte_reset_bytes)) {
		d->bytes = 0;
		d->by_bytes++;
		arx_dcqcn_raise(cc);
	}
}

/* The part of the rate that a CNP takes; all of it at most */
static u64 arx_dcqcn_cut(const struct arx_cc *cc)
{
	const struct arx_cc_dcqcn *d = &cc->dcqcn;

	return d->rate * d->alpha / (ARX_DCQCN_ONE / ARX_DCQCN_ALPHA_ONE) >>
	       ARX_DCQCN(cc, rp_gd);
}

static void arx_dcqcn_cnp(struct arx_cc *cc, u64 now)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;
	u64 period;

	if (d->drains)
		return;
	arx_dcqcn_elapse(cc, now);
	arx_dcqcn_restart(d, now);
	/* CNPs of the next round trip are for packets of the earlier rate. */
	period = ARX_DCQCN_NS(cc, rp_rate_reduce_monitor_period_usecs);
	if (now - d->cut < max(period, d->rtt))
		return;
	d->cut = now;
	d->decayed = now;
	d->target = d->rate;
	arx_dcqcn_set(cc, d->rate - arx_dcqcn_cut(cc));
	d->alpha += (ARX_DCQCN_ONE - d->alpha) >> ARX_DCQCN_GAIN_SHIFT;
}

/* All links mark packets before they drop any, so a loss counts as a CNP. */
static void arx_dcqcn_loss(struct arx_cc *cc, u32 n, u64 now)
{
	arx_dcqcn_cnp(cc, now);
}

static void arx_dcqcn_timeout(struct arx_cc *cc, u64 now)
{
	arx_dcqcn_cnp(cc, now);
}

const struct arx_cc_ops arx_cc_dcqcn_ops = {
	.init = arx_dcqcn_init,
	.ack = arx_dcqcn_ack,
	.cnp = arx_dcqcn_cnp,
	.loss = arx_dcqcn_loss,
	.timeout = arx_dcqcn_timeout,
};
