// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Congestion control: what all controllers have in common. Packets leave at the
 * lower one of the controller's rate and the address's, a burst at a time.
 */

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "cc.h"

/* A burst has at most this many bytes, and occupies the path this long. */
#define ARX_CC_BURST_NS		(200ULL * NSEC_PER_USEC)
#define ARX_CC_BURST_MAX	(60U * 1024)

/* A timer may be this late if the CPU is busy. */
#define ARX_CC_LATE_NS		(2ULL * NSEC_PER_MSEC)

/*
 * If a qdisc delays packets, a QP has packets for this time queued there, as
 * TCP has (tcp_pacing_shift).
 */
#define ARX_CC_AHEAD_NS		((u64)NSEC_PER_MSEC)

/**
 * arx_cc_init - initialise the state, without a controller
 * @cc: receives the state
 * @mtu: bytes of a full packet, with headers
 * @most: the window without a controller, in packets
 * @widest: the largest window, on long paths, in packets
 * @now: in ns
 *
 * Context: any; @cc is not published yet.
 */
void arx_cc_init(struct arx_cc *cc, u32 mtu, u32 most, u32 widest, u64 now)
{
	memset(cc, 0, sizeof(*cc));
	cc->mtu = mtu;
	cc->most = most;
	cc->widest = widest;
	cc->window = most;
	cc->next = now;
	spin_lock_init(&cc->pace_lock);
}

/**
 * arx_cc_control - begin to control congestion
 * @cc: without a controller, or with another one, whose state is lost
 * @ops: the controller
 * @params: of the controllers; they stay as long as @cc
 * @epoch: time of day minus @now, in ns
 * @now: in ns
 *
 * Context: completer's lock held.
 */
void arx_cc_control(struct arx_cc *cc, const struct arx_cc_ops *ops,
		    const struct arx_cc_params *params, u64 epoch, u64 now)
{
	cc->ops = ops;
	cc->params = params;
	cc->epoch = epoch;
	memset_startat(cc, 0, delay);
	ops->init(cc, now);
}

/**
 * arx_cc_burst - how much may be sent at a time
 * @cc: of a QP
 *
 * At most a quarter of the window: the peer acknowledges a burst at its end, so
 * a burst of the whole window would leave the path idle meanwhile.
 *
 * Context: any.
 * Return: packets, at least 1.
 */
u32 arx_cc_burst(const struct arx_cc *cc)
{
	u32 window = READ_ONCE(cc->window);
	unsigned long rate = arx_cc_rate(cc);
	u64 bytes = ARX_CC_BURST_MAX;

	if (rate)
		bytes = min(bytes, div_u64(rate * ARX_CC_BURST_NS,
					   NSEC_PER_SEC));
	return max(min(window / 4, (u32)bytes / cc->mtu), 1);
}

/**
 * arx_cc_wait - how long the next packet has to wait
 * @cc: of a QP
 * @now: in ns
 * @ahead: a qdisc keeps the rate, and has room. So packets may be sent before
 *	their time, and a wait ends when half of what was sent early has left
 *
 * Context: any.
 * Return: ns from @now on; 0: at once.
 */
u64 arx_cc_wait(const struct arx_cc *cc, u64 now, bool ahead)
{
	u64 early = ahead ? ARX_CC_AHEAD_NS : 0;
	u64 next = READ_ONCE(cc->next);

	if (!arx_cc_rate(cc) || next <= now + early)
		return 0;
	return next - now - early / 2;
}

/**
 * arx_cc_charge - packets were sent: the next one waits until the rate allows
 * @cc: of a QP
 * @bytes: of the packets, with headers
 * @now: in ns
 *
 * A sender that is late by at most ARX_CC_LATE_NS catches up.
 *
 * Context: bottom halves off.
 */
void arx_cc_charge(struct arx_cc *cc, u32 bytes, u64 now)
{
	unsigned long rate = arx_cc_rate(cc);

	if (!rate)
		return;
	spin_lock(&cc->pace_lock);
	WRITE_ONCE(cc->next, max(cc->next, now - ARX_CC_LATE_NS) +
			     div64_ul((u64)bytes * NSEC_PER_SEC, rate));
	spin_unlock(&cc->pace_lock);
}
