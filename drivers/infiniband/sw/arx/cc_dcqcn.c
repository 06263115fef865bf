// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DCQCN (SIGCOMM '15): CNPs reduce the rate. The events of a timer and of a
 * counter of bytes raise the rate again: each event goes half of the way to the
 * target, which is the rate before the reduction. After five events of either
 * kind each event adds a step to the target; after five events of both kinds, a
 * large step. No timer runs: its events are processed when the next packet is
 * acknowledged.
 */

#include <linux/math64.h>
#include <linux/minmax.h>

#include "cc.h"

/* Rates in bytes per second. */
#define ARX_DCQCN_MBIT		125000ULL
#define ARX_DCQCN_FIRST		(10000 * ARX_DCQCN_MBIT)
#define ARX_DCQCN_LEAST		(1 * ARX_DCQCN_MBIT)
#define ARX_DCQCN_MOST		(400000 * ARX_DCQCN_MBIT)
#define ARX_DCQCN_STEP		(10 * ARX_DCQCN_MBIT)
#define ARX_DCQCN_LARGE_STEP	(50 * ARX_DCQCN_MBIT)

/*
 * These steps are made for links of 40 Gbit/s. A step is at most this part of
 * the rate, a large step five times that: otherwise a single step fills the
 * queue of a slow link.
 */
#define ARX_DCQCN_STEP_SHIFT	6	/* 1/64 */

/* Events after which the target grows. */
#define ARX_DCQCN_FAST		5

#define ARX_DCQCN_BYTES		(1024 * 1024)
#define ARX_DCQCN_RAISE_NS	(300ULL * NSEC_PER_USEC)
#define ARX_DCQCN_DECAY_NS	(55ULL * NSEC_PER_USEC)
#define ARX_DCQCN_CUT_NS	(50ULL * NSEC_PER_USEC)

/* Events come at most once in a round trip; a longer one counts as this. */
#define ARX_DCQCN_RTT_MAX	(4ULL * NSEC_PER_MSEC)

/* At most this many missed raises are processed after a pause. */
#define ARX_DCQCN_EVENTS	64

/* Fixed point, fine enough for 1/256 of a small estimate. */
#define ARX_DCQCN_ONE		BIT(20)
#define ARX_DCQCN_GAIN_SHIFT	8	/* 1/256 */

/* Decays after which the estimate is half as large: (255/256)^177 */
#define ARX_DCQCN_HALVED	177

static void arx_dcqcn_set(struct arx_cc *cc, u64 rate)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;

	d->rate = clamp(rate, ARX_DCQCN_LEAST, ARX_DCQCN_MOST);
	WRITE_ONCE(cc->rate, min_t(u64, d->rate, ULONG_MAX));
}

static void arx_dcqcn_init(struct arx_cc *cc, u64 now)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;

	d->alpha = ARX_DCQCN_ONE;
	d->target = ARX_DCQCN_FIRST;
	d->decayed = now;
	d->raised = now;
	arx_dcqcn_set(cc, ARX_DCQCN_FIRST);
}

static void arx_dcqcn_raise(struct arx_cc *cc)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;
	u64 part = d->rate >> ARX_DCQCN_STEP_SHIFT;

	if (min(d->by_time, d->by_bytes) > ARX_DCQCN_FAST)
		d->target += min(ARX_DCQCN_LARGE_STEP, 5 * part);
	else if (max(d->by_time, d->by_bytes) > ARX_DCQCN_FAST)
		d->target += min(ARX_DCQCN_STEP, part);
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
	u64 raise = max(ARX_DCQCN_RAISE_NS, d->rtt);
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
	arx_dcqcn_elapse(cc, now);
	d->bytes += n * cc->mtu;
	if (d->bytes >= ARX_DCQCN_BYTES) {
		d->bytes = 0;
		d->by_bytes++;
		arx_dcqcn_raise(cc);
	}
}

static void arx_dcqcn_cnp(struct arx_cc *cc, u64 now)
{
	struct arx_cc_dcqcn *d = &cc->dcqcn;

	arx_dcqcn_elapse(cc, now);
	d->raised = now;
	d->by_time = 0;
	d->by_bytes = 0;
	d->bytes = 0;
	/* CNPs of the next round trip are for packets of the earlier rate. */
	if (now - d->cut < max(ARX_DCQCN_CUT_NS, d->rtt))
		return;
	d->cut = now;
	d->decayed = now;
	d->target = d->rate;
	arx_dcqcn_set(cc, d->rate - d->rate * d->alpha / 2 / ARX_DCQCN_ONE);
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
