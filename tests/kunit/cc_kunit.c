// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * cc.c and the controllers: flows that share one simulated bottleneck, a queue
 * of packets in front of a link of a certain rate. The simulation has a clock
 * of its own and no randomness, so each run of a case gives the same result.
 * Then cc_bpf.c with functions instead of programs.
 */

#include <kunit/test.h>
#include <linux/bottom_half.h>
#include <linux/math64.h>
#include <linux/time64.h>

#include "cc.c"
#include "cc_bpf.c"
#include "cc_dcqcn.c"
#include "cc_delay.c"
#include "cc_loss.c"

#include "arx.h"
#include "attrs.h"

#define FLOWS_MAX	8
#define WINDOW		512
#define WIDEST		2048
#define PACKET		4158	/* 4096 bytes of payload with headers */
#define CNP_NS		(50 * NSEC_PER_USEC)
#define LONG_NS		(20 * NSEC_PER_MSEC)
#define MBIT		125000ULL

/**
 * struct flow - a sender
 * @cc: its congestion control, if @engaged
 * @engaged: there was a loss or a mark
 * @early: @psn at that time
 * @psn: PSN to send next
 * @timed: when the packet left that measures the round trip, 0: none does
 * @timed_psn: its PSN
 * @shortest: the shortest round trip, 0: none was measured
 * @in_flight: packets sent, neither acknowledged nor known to be lost
 * @notified: when its receiver sent the last CNP
 * @bytes: delivered in the measured time
 * @ops: its controller
 */
struct flow {
	struct arx_cc cc;
	bool engaged;
	u32 early;
	u32 psn;
	u64 timed;
	u32 timed_psn;
	u64 shortest;
	u32 in_flight;
	u64 notified;
	u64 bytes;
	const struct arx_cc_ops *ops;
};

/* What a sender is notified of, and when. */
struct news {
	u64 time;
	u32 psn;
	u8 flow;
	bool lost;
	bool marked;
};

/**
 * struct link - the bottleneck, and all else
 * @mbits: its rate
 * @limit: packets in its queue, beyond which it drops
 * @mark: packets in its queue, beyond which it marks; 0: never
 * @rtt: round trip time without a queue, in ns
 * @loss: one in this many packets is lost, however long the queue is; 0: none
 * @stall: every 40 ms the hosts do nothing for this time, in ns
 * @n: number of flows
 * @params: of the flows' controllers
 * @now: time in ns
 * @busy: when the last packet of the queue will have left
 * @count: packets that arrived
 * @marking: parts of a mark that are left over
 * @news: ring of news in the order of time
 * @head: count of news read
 * @tail: count of news written
 * @measure: the measured time has begun
 * @dropped: packets dropped in it
 * @sent: packets that arrived in it
 * @longest: longest queue in it, in ns
 * @flow: the flows
 */
struct link {
	u32 mbits;
	u32 limit;
	u32 mark;
	u64 rtt;
	u32 loss;
	u64 stall;
	u32 n;
	struct arx_cc_params params;
	u64 now;
	u64 busy;
	u32 count;
	u32 marking;
	struct news news[FLOWS_MAX * WINDOW];
	u32 head;
	u32 tail;
	bool measure;
	u32 dropped;
	u32 sent;
	u64 longest;
	struct flow flow[FLOWS_MAX];
};

static u64 link_packet_ns(const struct link *l)
{
	return div_u64(PACKET * NSEC_PER_SEC, l->mbits * MBIT);
}

/*
 * Random early detection, without randomness: of a queue that is longer than
 * @mark by a quarter, each fourth packet is marked, and so on.
 */
static bool link_marks(struct link *l, u32 packets)
{
	if (!l->mark || packets < l->mark)
		return false;
	l->marking += min(packets - l->mark, l->mark);
	if (l->marking < l->mark)
		return false;
	l->marking -= l->mark;
	return true;
}

/* A packet arrives at the queue. */
static void link_send(struct link *l, u32 i)
{
	struct flow *f = &l->flow[i];
	u64 queue = l->busy > l->now ? l->busy - l->now : 0;
	u32 packets = div64_u64(queue, link_packet_ns(l));
	struct news *news = &l->news[l->tail++ % ARRAY_SIZE(l->news)];

	news->flow = i;
	news->psn = f->psn;
	news->marked = link_marks(l, packets);
	news->lost = packets >= l->limit ||
		     (l->loss && !(++l->count % l->loss));
	if (!news->lost)
		l->busy = max(l->busy, l->now) + link_packet_ns(l);
	news->time = max(l->busy, l->now) + l->rtt;
	if (f->engaged)
		arx_cc_charge(&f->cc, PACKET, l->now);
	if (!f->timed) {
		f->timed = l->now;
		f->timed_psn = f->psn;
	}
	f->psn++;
	f->in_flight++;
	if (l->measure) {
		l->sent++;
		l->dropped += packets >= l->limit;
		l->longest = max(l->longest, queue);
	}
}

static void link_engage(struct link *l, struct flow *f)
{
	if (f->engaged)
		return;
	arx_cc_init(&f->cc, PACKET, WINDOW, WIDEST, l->now);
	f->early = f->psn;
	f->cc.early = f->in_flight;
	arx_cc_control(&f->cc, f->ops, &l->params, 0, l->now);
	f->engaged = true;
}

static void link_notify(struct link *l, const struct news *news)
{
	struct flow *f = &l->flow[news->flow];
	u64 rtt = 0;

	f->in_flight--;
	if (news->psn + 1 == f->early)
		f->cc.early = false;
	if (news->lost) {
		link_engage(l, f);
		if (f->timed && f->timed_psn == news->psn)
			f->timed = 0;
		f->cc.ops->loss(&f->cc, 1, l->now);
		return;
	}
	if (l->measure)
		f->bytes += PACKET;
	if (f->timed && news->psn == f->timed_psn) {
		rtt = l->now - f->timed;
		f->timed = 0;
		f->shortest = min_not_zero(f->shortest, rtt);
	}
	f->cc.shortest = f->shortest;
	if (f->engaged)
		f->cc.ops->ack(&f->cc, 1, rtt, l->now);
	if (f->ops == &arx_cc_loss_ops ? f->shortest > ARX_CC_FAR :
					 rtt > LONG_NS)
		link_engage(l, f);
	if (news->marked && l->now - f->notified >= CNP_NS) {
		f->notified = l->now;
		link_engage(l, f);
		f->cc.ops->cnp(&f->cc, l->now);
	}
}

/* Send what the flow may send now; returns when it may send more, or @until. */
static u64 link_pump(struct link *l, u32 i, u64 until)
{
	struct flow *f = &l->flow[i];
	u64 wait = 0;

	local_bh_disable();
	while (f->ops && f->in_flight < (f->engaged ? f->cc.window : WINDOW)) {
		wait = f->engaged ? arx_cc_wait(&f->cc, l->now, false) : 0;
		if (wait)
			break;
		link_send(l, i);
	}
	local_bh_enable();
	f->cc.limited = true;
	return wait ? min(until, l->now + wait) : until;
}

static void link_run(struct link *l, u64 ns)
{
	u64 end = l->now + ns;

	while (l->now < end) {
		u64 next = end;
		u64 in;
		u32 i;

		div64_u64_rem(l->now, 40 * NSEC_PER_MSEC, &in);
		if (in < l->stall) {
			l->now += l->stall - in;
			continue;
		}
		while (l->head != l->tail) {
			struct news *news = &l->news[l->head %
						     ARRAY_SIZE(l->news)];

			if (news->time > l->now)
				break;
			link_notify(l, news);
			l->head++;
		}
		for (i = 0; i < l->n; i++)
			next = link_pump(l, (i + l->head) % l->n, next);
		if (l->head != l->tail)
			next = min(next, l->news[l->head %
						 ARRAY_SIZE(l->news)].time);
		l->now = max(next, l->now + 1);
	}
}

/* Sum of what was delivered, in per mille of the rate. */
static u32 link_goodput(const struct link *l, u64 ns)
{
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < l->n; i++)
		bytes += l->flow[i].bytes;
	return div64_u64(bytes * 1000,
			 div_u64(l->mbits * MBIT * ns, NSEC_PER_SEC));
}

/* Jain's index in per mille: (sum x)^2 / (n * sum x^2). */
static u32 link_fairness(const struct link *l)
{
	u64 sum = 0, squares = 0;
	u32 i;

	for (i = 0; i < l->n; i++) {
		u64 packets = div_u64(l->flow[i].bytes, PACKET);

		sum += packets;
		squares += packets * packets;
	}
	return squares ? div64_u64(1000 * sum * sum, l->n * squares) : 0;
}

/**
 * struct bottleneck - parameters of a case
 * @name: of the case
 * @ops: controller
 * @mbits: as in struct link, and so on
 * @limit: as there
 * @mark: as there
 * @flows: number of flows
 * @loss: as there
 * @rtt_us: as there
 * @stall_us: as there
 * @goodput: at least this many per mille of the rate
 * @longest_us: the queue is never longer than this
 */
struct bottleneck {
	const char *name;
	const struct arx_cc_ops *ops;
	u32 mbits;
	u32 limit;
	u32 mark;
	u32 flows;
	u32 loss;
	u32 rtt_us;
	u32 stall_us;
	u32 goodput;
	u32 longest_us;
};

#define DELAY	(&arx_cc_delay_ops)
#define DCQCN	(&arx_cc_dcqcn_ops)
#define LOSS	(&arx_cc_loss_ops)

static const struct bottleneck bottlenecks[] = {
	{ "delay 200M queue 50", DELAY, 200, 50, 0, 1, 0, 200, 0, 950, 8500 },
	{ "delay 200M queue 200", DELAY, 200, 200, 0, 1, 0, 200, 0, 950, 12000 },
	{ "delay 200M queue 1000", DELAY, 200, 1000, 0, 8, 0, 200, 0, 950,
	  15000 },
	{ "delay 200M stalls", DELAY, 200, 200, 0, 1, 0, 200, 5000, 950,
	  15000 },
	{ "delay 1G queue 50", DELAY, 1000, 50, 0, 1, 0, 200, 0, 950, 1700 },
	{ "delay 1G queue 200", DELAY, 1000, 200, 0, 1, 0, 200, 0, 950, 7000 },
	{ "delay 1G 8 flows", DELAY, 1000, 200, 0, 8, 0, 200, 0, 950, 7000 },
	{ "delay 1G 8 flows 50", DELAY, 1000, 50, 0, 8, 0, 200, 0, 950, 1700 },
	{ "delay 1G 10 ms", DELAY, 1000, 200, 0, 1, 0, 10000, 0, 950, 7000 },
	{ "delay 10G", DELAY, 10000, 200, 0, 4, 0, 100, 0, 950, 700 },
	{ "delay 1G loss 1%", DELAY, 1000, 200, 0, 1, 100, 200, 0, 930, 7000 },
	{ "delay 1G loss 5%", DELAY, 1000, 1000, 0, 1, 20, 200, 0, 900, 12000 },
	{ "delay 1G 2 ms loss 1%", DELAY, 1000, 200, 0, 1, 100, 2000, 0, 900,
	  5000 },
	{ "delay 1G 2 ms loss 5%", DELAY, 1000, 1000, 0, 1, 20, 2000, 0, 950,
	  5000 },
	{ "delay 1G loss stalls", DELAY, 1000, 1000, 0, 1, 100, 200, 3000, 900,
	  15000 },
	{ "delay 1G marks", DELAY, 1000, 1000, 15, 8, 0, 200, 0, 950, 2000 },
	{ "delay 200M marks", DELAY, 200, 1000, 10, 1, 0, 200, 0, 950, 5000 },
	{ "dcqcn 1G marks", DCQCN, 1000, 1000, 15, 1, 0, 200, 0, 950, 3000 },
	{ "dcqcn 1G marks 8", DCQCN, 1000, 1000, 15, 8, 0, 200, 0, 950, 3000 },
	{ "dcqcn 200M marks", DCQCN, 200, 1000, 15, 2, 0, 200, 0, 950, 20000 },
	{ "dcqcn 10G marks", DCQCN, 10000, 1000, 60, 4, 0, 100, 0, 950, 3000 },
	{ "loss 200M queue 50", LOSS, 200, 50, 0, 1, 0, 200, 0, 950, 8500 },
	{ "loss 200M queue 200", LOSS, 200, 200, 0, 1, 0, 200, 0, 950, 34000 },
	{ "loss 200M stalls", LOSS, 200, 200, 0, 1, 0, 200, 5000, 950, 34000 },
	{ "loss 1G queue 50", LOSS, 1000, 50, 0, 1, 0, 200, 0, 950, 1700 },
	{ "loss 1G 10 ms", LOSS, 1000, 200, 0, 1, 0, 10000, 0, 950, 7000 },
	{ "loss 10G", LOSS, 10000, 200, 0, 4, 0, 100, 0, 950, 700 },
	{ "loss 1G loss 1%", LOSS, 1000, 1000, 0, 1, 100, 200, 0, 950, 17000 },
	{ "loss 1G loss 5%", LOSS, 1000, 1000, 0, 1, 20, 200, 0, 940, 17000 },
	{ "loss 1G 2 ms 1%", LOSS, 1000, 200, 0, 1, 100, 2000, 0, 950, 7000 },
	{ "loss 1G 2 ms 5%", LOSS, 1000, 1000, 0, 1, 20, 2000, 0, 940, 17000 },
	{ "loss 400M 20 ms 1%", LOSS, 400, 1000, 0, 1, 100, 20000, 0, 950,
	  35000 },
	{ "loss 1G 30 ms", LOSS, 1000, 1000, 0, 1, 0, 30000, 0, 950, 5000 },
	{ "loss 200M 20 ms", LOSS, 200, 1000, 0, 1, 0, 20000, 0, 950, 66000 },
	{ "loss 200M marks", LOSS, 200, 1000, 15, 1, 0, 200, 0, 950, 3500 },
	{ "loss 1G marks 8", LOSS, 1000, 1000, 15, 8, 0, 200, 0, 950, 1000 },
	{ "loss 1G marks 10 ms", LOSS, 1000, 1000, 60, 1, 0, 10000, 0, 930,
	  2500 },
	{ "loss 1G marks 1%", LOSS, 1000, 1000, 15, 1, 100, 200, 0, 950, 1000 },
	{ "loss 1G loss stalls", LOSS, 1000, 1000, 0, 1, 100, 200, 3000, 900,
	  17000 },
};

static void bottleneck_name(const struct bottleneck *b, char *name)
{
	strscpy(name, b->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cc_bottlenecks, bottlenecks, bottleneck_name);

/* The parameters of a new device */
static struct arx_cc_params *default_params(struct kunit *test)
{
	struct arx_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	arx_attrs_init(dev);
	return &dev->cc_params;
}

static struct link *link_make(struct kunit *test, const struct bottleneck *b)
{
	struct link *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->params = *default_params(test);
	for (i = 0; i < b->flows; i++)
		l->flow[i].ops = b->ops;
	l->mbits = b->mbits;
	l->limit = b->limit;
	l->mark = b->mark;
	l->n = b->flows;
	l->loss = b->loss;
	l->rtt = b->rtt_us * NSEC_PER_USEC;
	l->stall = b->stall_us * NSEC_PER_USEC;
	l->now = NSEC_PER_SEC;
	return l;
}

static void cc__bottleneck(struct kunit *test)
{
	const struct bottleneck *b = test->param_value;
	struct link *l = link_make(test, b);

	link_run(l, 2ULL * NSEC_PER_SEC);
	l->measure = true;
	link_run(l, NSEC_PER_SEC);
	kunit_info(test, "goodput %u, fairness %u, longest %llu us, dropped %u of %u, window %u\n",
		   link_goodput(l, NSEC_PER_SEC), link_fairness(l),
		   div_u64(l->longest, NSEC_PER_USEC), l->dropped, l->sent,
		   l->flow[0].cc.window);
	KUNIT_EXPECT_GE(test, link_goodput(l, NSEC_PER_SEC), b->goodput);
	KUNIT_EXPECT_GE(test, link_fairness(l), 950);
	KUNIT_EXPECT_LE(test, l->longest, b->longest_us * NSEC_PER_USEC);
	KUNIT_EXPECT_LE(test, l->dropped, l->sent / 1000);
}

/* What the first window has put into the queue does not slow a flow down. */
static const struct bottleneck starts[] = {
	{ "200M", DCQCN, 200, 1000, 15, 1, 0, 200, 0, 850, 5500 },
	{ "200M short queue", DCQCN, 200, 1000, 3, 1, 0, 200, 0, 850, 2000 },
	{ "200M 1 ms", DCQCN, 200, 1000, 15, 1, 0, 1000, 0, 800, 5500 },
	{ "200M 4 flows", DCQCN, 200, 1000, 15, 4, 0, 200, 0, 850, 6000 },
	{ "1G", DCQCN, 1000, 1000, 15, 1, 0, 200, 0, 900, 2000 },
	{ "1G 8 flows", DCQCN, 1000, 1000, 15, 8, 0, 200, 0, 900, 2000 },
};

KUNIT_ARRAY_PARAM(cc_starts, starts, bottleneck_name);

/* Each 50 ms of the first half second; the queue from 150 ms on. */
static void cc__start(struct kunit *test)
{
	const struct bottleneck *b = test->param_value;
	struct link *l = link_make(test, b);
	u32 i, j;

	l->measure = true;
	link_run(l, 50 * NSEC_PER_MSEC);
	for (i = 1; i < 10; i++) {
		for (j = 0; j < l->n; j++)
			l->flow[j].bytes = 0;
		if (i == 4)
			l->longest = 0;
		link_run(l, 50 * NSEC_PER_MSEC);
		KUNIT_EXPECT_GE(test, link_goodput(l, 50 * NSEC_PER_MSEC),
				b->goodput);
	}
	kunit_info(test, "longest %llu us\n",
		   div_u64(l->longest, NSEC_PER_USEC));
	KUNIT_EXPECT_LE(test, l->longest, b->longest_us * NSEC_PER_USEC);
}

/*
 * A sender as TCP: RFC 9438 in its region for short round trips. The window is
 * in arx_cc_delay.cwnd, and zero in @cut says that nothing was lost yet.
 */
static void tcp_init(struct arx_cc *cc, u64 now)
{
	arx_delay_set(cc, 10 << ARX_DELAY_SHIFT);
}

static void tcp_ack(struct arx_cc *cc, u32 n, u64 rtt, u64 now)
{
	u32 more = n << ARX_DELAY_SHIFT;

	if (rtt)
		cc->delay.last = rtt;
	if (cc->delay.cut)
		more = more * 53 / 100 / cc->window;
	arx_delay_set(cc, cc->delay.cwnd + more);
}

static void tcp_loss(struct arx_cc *cc, u32 n, u64 now)
{
	if (now - cc->delay.cut < cc->delay.last)
		return;
	cc->delay.cut = now;
	arx_delay_set(cc, cc->delay.cwnd * 7 / 10);
}

static const struct arx_cc_ops tcp_ops = {
	.init = tcp_init,
	.ack = tcp_ack,
	.loss = tcp_loss,
};

static const struct bottleneck shared[] = {
	{ "200M queue 50", DELAY, 200, 50, 0, 2, 0, 200 },
	{ "200M queue 200", DELAY, 200, 200, 0, 2, 0, 200 },
	{ "200M queue 400", DELAY, 200, 400, 0, 2, 0, 200 },
	{ "200M loss", DELAY, 200, 200, 0, 2, 1000, 200 },
	{ "1G queue 50", DELAY, 1000, 50, 0, 2, 0, 200 },
	{ "1G queue 400", DELAY, 1000, 400, 0, 2, 0, 200 },
	{ "1G 10 ms", DELAY, 1000, 200, 0, 2, 0, 10000 },
	{ "1G stalls", DELAY, 1000, 400, 0, 2, 0, 200, 3000 },
	{ "1G 3 flows", DELAY, 1000, 400, 0, 4, 0, 200 },
	{ "loss 200M queue 50", LOSS, 200, 50, 0, 2, 0, 200 },
	{ "loss 200M queue 200", LOSS, 200, 200, 0, 2, 0, 200 },
	{ "loss 1G queue 50", LOSS, 1000, 50, 0, 2, 0, 200 },
	{ "loss 1G queue 400", LOSS, 1000, 400, 0, 2, 0, 200 },
	{ "loss 1G 10 ms", LOSS, 1000, 200, 0, 2, 0, 10000 },
	{ "loss 1G 3 flows", LOSS, 1000, 400, 0, 4, 0, 200 },
};

KUNIT_ARRAY_PARAM(cc_shared, shared, bottleneck_name);

#define BESIDE_S	10

/* Flows beside one of TCP: none has less than a third of its fair share. */
static void cc__beside_tcp(struct kunit *test)
{
	const struct bottleneck *b = test->param_value;
	struct link *l = link_make(test, b);
	u32 i, share;

	l->flow[0].ops = &tcp_ops;
	link_engage(l, &l->flow[0]);
	link_run(l, 2ULL * NSEC_PER_SEC);
	l->measure = true;
	link_run(l, (u64)BESIDE_S * NSEC_PER_SEC);
	for (i = 0; i < l->n; i++) {
		share = div_u64(l->flow[i].bytes * l->n * 100,
				l->mbits * MBIT * BESIDE_S);
		kunit_info(test, "flow %u: %u %% of the fair share\n", i, share);
		KUNIT_EXPECT_GE(test, share, 33);
	}
	KUNIT_EXPECT_GE(test, link_goodput(l, (u64)BESIDE_S * NSEC_PER_SEC),
			950);
}

/* TCP and a flow by delay, which competes. */
static struct link *link_of_competitors(struct kunit *test)
{
	const struct bottleneck b = {
		.ops = DELAY,
		.mbits = 200,
		.limit = 400,
		.flows = 2,
		.rtt_us = 200,
	};
	struct link *l = link_make(test, &b);

	l->flow[0].ops = &tcp_ops;
	link_engage(l, &l->flow[0]);
	link_run(l, 8ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_TRUE(test, l->flow[1].cc.delay.competes);
	return l;
}

/*
 * When TCP has left, the flow finds that the path drains, and the queue is
 * short again.
 */
static void cc__tcp_leaves(struct kunit *test)
{
	struct link *l = link_of_competitors(test);

	l->flow[0].ops = NULL;
	link_run(l, 9ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_FALSE(test, l->flow[1].cc.delay.competes);
	l->measure = true;
	link_run(l, NSEC_PER_SEC);
	KUNIT_EXPECT_LE(test, l->longest, 15 * NSEC_PER_MSEC);
	KUNIT_EXPECT_GE(test, link_goodput(l, NSEC_PER_SEC), 950);
}

#define FLOOD_MS	500

/* Someone who knows the QPN and both addresses sends CNPs without end. */
static void link_flood(struct link *l)
{
	int i;

	for (i = 0; i < FLOOD_MS * NSEC_PER_MSEC / CNP_NS; i++) {
		link_run(l, CNP_NS);
		link_engage(l, &l->flow[0]);
		l->flow[0].cc.ops->cnp(&l->flow[0].cc, l->now);
	}
}

/*
 * A link that loses packets without congestion: the window stays as large as
 * the sender's own queues need, also after a second without a loss.
 */
static void cc__lossy(struct kunit *test)
{
	const struct bottleneck b = {
		.ops = LOSS,
		.mbits = 1000,
		.limit = 1000,
		.flows = 1,
		.rtt_us = 200,
		.loss = 100,
	};
	struct link *l = link_make(test, &b);
	u32 i;

	for (i = 0; i < 4; i++) {
		l->loss = i % 2 ? 0 : 100;
		link_run(l, NSEC_PER_SEC);
		KUNIT_EXPECT_GE(test, l->flow[0].cc.window, WINDOW / 2);
	}
}

/* The first window is much too large: how much of it is lost tells the room. */
static void cc__fits(struct kunit *test)
{
	const struct bottleneck b = {
		.ops = LOSS,
		.mbits = 200,
		.limit = 50,
		.flows = 1,
		.rtt_us = 200,
	};
	struct link *l = link_make(test, &b);

	link_run(l, 50 * NSEC_PER_MSEC);
	l->measure = true;
	link_run(l, 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_LE(test, l->flow[0].cc.window, 60);
	KUNIT_EXPECT_LE(test, l->dropped, l->sent / 50);
	KUNIT_EXPECT_GE(test, link_goodput(l, 100 * NSEC_PER_MSEC), 950);
}

/* Control by losses begins, @n round trips are measured. Returns the time. */
static u64 loss_begin(struct kunit *test, struct arx_cc *cc, u32 n)
{
	u64 now = NSEC_PER_SEC;

	arx_cc_init(cc, PACKET, WINDOW, WIDEST, now);
	arx_cc_control(cc, LOSS, default_params(test), 0, now);
	while (n--)
		cc->ops->ack(cc, 1, NSEC_PER_MSEC, now += NSEC_PER_MSEC);
	return now;
}

/* Packets that were only late return what they took, and no more. */
static void cc__late(struct kunit *test)
{
	struct arx_cc cc;
	u64 now;

	now = loss_begin(test, &cc, 3);
	cc.ops->loss(&cc, 1, now += NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW * 7 / 10);
	cc.ops->late(&cc, 1, now);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW);
	cc.ops->late(&cc, 1, now);
	cc.ops->loss(&cc, WINDOW / 2, now += 2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW / 2);
	cc.ops->loss(&cc, WINDOW / 4, now += 2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW / 4);
	/* One that was late says nothing of the others. */
	cc.ops->late(&cc, 1, now);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW / 4);
	cc.ops->late(&cc, WINDOW / 4 - 1, now);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW / 2);
	/* What a mark took stays taken. */
	cc.ops->loss(&cc, 1, now += 2 * NSEC_PER_MSEC);
	cc.ops->cnp(&cc, now);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW / 2 * 7 / 10);
	cc.ops->late(&cc, 1, now);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW / 2 * 7 / 10);
}

/*
 * The packets that would measure a round trip are all lost: the window shrinks
 * nevertheless, but not for a loss in a while.
 */
static void cc__unmeasured(struct kunit *test)
{
	struct arx_cc cc;
	u64 now;
	int i;

	now = loss_begin(test, &cc, 0);
	for (i = 0; i < 20; i++)
		cc.ops->loss(&cc, 1, now += 3 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW * 7 / 10);
	for (i = 0; i < 300; i++)
		cc.ops->loss(&cc, 1, now += 3 * NSEC_PER_MSEC);
	KUNIT_EXPECT_LE(test, cc.window, 16);
}

/*
 * After an outage nothing returns at once, whatever is lost meanwhile. Then the
 * window quickly grows to half of what it was.
 */
static void cc__outage(struct kunit *test)
{
	struct arx_cc cc;
	u64 now;
	int i;

	now = loss_begin(test, &cc, 3);
	cc.ops->loss(&cc, 1, now);
	for (i = 0; i < 9; i++)
		cc.ops->timeout(&cc, now += NSEC_PER_SEC);
	KUNIT_EXPECT_LE(test, cc.window, 8);
	KUNIT_EXPECT_GE(test, cc.window, 4);
	for (i = 0; i < 20; i++) {
		cc.ops->ack(&cc, 1, NSEC_PER_MSEC, now += 2 * NSEC_PER_MSEC);
		cc.ops->loss(&cc, 1, now);
		KUNIT_EXPECT_LE(test, cc.window, 8);
	}
	KUNIT_EXPECT_GE(test, cc.loss.lossy, ARX_LOSSES_LOSSY);
	for (i = 0; i < 12; i++) {
		cc.limited = true;
		cc.ops->ack(&cc, 1, NSEC_PER_MSEC, now += NSEC_PER_MSEC);
	}
	KUNIT_EXPECT_GE(test, cc.window, WINDOW / 3);
}

/**
 * struct flood - parameters of a case
 * @name: of the case
 * @ops: controller
 * @least: packets that are delivered in FLOOD_MS in spite of the flood
 * @recovery_ms: after that time the flow is as fast as before
 */
struct flood {
	const char *name;
	const struct arx_cc_ops *ops;
	u32 least;
	u32 recovery_ms;
};

static const struct flood floods[] = {
	/* a packet in each round trip of 200 us and the time that it takes */
	{ "delay", DELAY, FLOOD_MS * 1000 / 250, 10 },
	/* 1 Mbit/s */
	{ "dcqcn", DCQCN, FLOOD_MS * 125 / PACKET, 500 },
	{ "loss", LOSS, FLOOD_MS * 1000 / 250, 10 },
};

static void flood_name(const struct flood *f, char *name)
{
	strscpy(name, f->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cc_floods, floods, flood_name);

static void cc__flood(struct kunit *test)
{
	const struct flood *f = test->param_value;
	const struct bottleneck b = {
		.ops = f->ops,
		.mbits = 1000,
		.limit = 1000,
		.flows = 1,
		.rtt_us = 200,
	};
	struct link *l = link_make(test, &b);
	u32 packets;

	l->measure = true;
	link_flood(l);
	packets = div_u64(l->flow[0].bytes, PACKET);
	kunit_info(test, "%u packets, then window %u, %lu bytes per second\n",
		   packets, l->flow[0].cc.window, l->flow[0].cc.rate);
	KUNIT_EXPECT_GE(test, packets, f->least);
	link_run(l, f->recovery_ms * NSEC_PER_MSEC);
	l->flow[0].bytes = 0;
	link_run(l, 100 * NSEC_PER_MSEC);
	KUNIT_EXPECT_GE(test, link_goodput(l, 100 * NSEC_PER_MSEC), 900);
}

#define DECAY_NS	(55 * NSEC_PER_USEC)

/* Control begins, and the first window drains faster than the first rate. */
static void dcqcn_begin(struct arx_cc *cc, const struct arx_cc_params *params,
			u64 now)
{
	arx_cc_init(cc, PACKET, WINDOW, WIDEST, now);
	cc->early = true;
	arx_cc_control(cc, DCQCN, params, 0, now);
	cc->early = false;
	cc->ops->ack(cc, BIT(20), 1, now);
	cc->ops->ack(cc, 1, 1, now);
}

/*
 * A program that sends nothing for a while after the first window, or before
 * its first packet that is controlled, does not continue slowly.
 */
static void cc__dcqcn_idle(struct kunit *test)
{
	const struct arx_cc_params *params = default_params(test);
	u64 now = NSEC_PER_SEC;
	struct arx_cc cc;

	arx_cc_init(&cc, PACKET, WINDOW, WIDEST, now);
	cc.early = true;
	arx_cc_control(&cc, DCQCN, params, 0, now);
	KUNIT_EXPECT_EQ(test, cc.window, 1);
	cc.early = false;
	now += 10 * NSEC_PER_MSEC;
	cc.ops->ack(&cc, WINDOW, 0, now);
	now += NSEC_PER_SEC;
	cc.ops->ack(&cc, 1, 0, now);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW);
	/* 512 packets in 10 ms are 1,703 Mbit/s. */
	KUNIT_EXPECT_GE(test, cc.rate, 400 * MBIT);
	KUNIT_EXPECT_LE(test, cc.rate, 500 * MBIT);

	arx_cc_init(&cc, PACKET, WINDOW, WIDEST, now);
	arx_cc_control(&cc, DCQCN, params, 0, now);
	KUNIT_EXPECT_EQ(test, cc.window, WINDOW);
	now += NSEC_PER_SEC;
	cc.ops->ack(&cc, 1, 0, now);
	cc.ops->ack(&cc, 1, 0, now);
	KUNIT_EXPECT_GE(test, cc.rate, ARX_DCQCN_RATE(&cc, first_rate_mbps));
}

/* While the first window drains, no timer raises the first rate. */
static void cc__dcqcn_first_rate(struct kunit *test)
{
	u64 now = NSEC_PER_SEC;
	struct arx_cc cc;

	arx_cc_init(&cc, PACKET, WINDOW, WIDEST, now);
	cc.early = true;
	arx_cc_control(&cc, DCQCN, default_params(test), 0, now);
	now += 100 * NSEC_PER_MSEC;
	cc.early = false;
	cc.ops->ack(&cc, BIT(20), 0, now);
	cc.ops->cnp(&cc, now);
	cc.ops->ack(&cc, 1, 0, now);
	KUNIT_EXPECT_EQ(test, cc.rate,
			ARX_DCQCN_RATE(&cc, first_rate_mbps) / 2);
}

static struct arx_cc *dcqcn_make(struct kunit *test, u64 now)
{
	struct arx_cc *cc = kunit_kzalloc(test, sizeof(*cc), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cc);
	dcqcn_begin(cc, default_params(test), now);
	cc->ops->cnp(cc, now);
	return cc;
}

/* A CNP must take less than a percent of the rate. */
static void expect_small_cut(struct kunit *test, struct arx_cc *cc, u64 now)
{
	unsigned long rate;

	cc->ops->ack(cc, 1, 0, now);
	rate = cc->rate;
	cc->ops->cnp(cc, now);
	KUNIT_EXPECT_GE(test, cc->rate, rate / 100 * 99);
}

/*
 * A single CNP means little after a second without one, whether packets were
 * acknowledged meanwhile or not.
 */
static void cc__dcqcn_forgets(struct kunit *test)
{
	struct arx_cc *cc = dcqcn_make(test, NSEC_PER_SEC);
	u64 now;

	for (now = NSEC_PER_SEC; now < 2 * NSEC_PER_SEC; now += DECAY_NS)
		cc->ops->ack(cc, 1, 0, now);
	expect_small_cut(test, cc, now);
	expect_small_cut(test, cc, now + NSEC_PER_SEC);
}

/* Constant CNPs mean that half of the rate is too much. */
static void cc__dcqcn_learns(struct kunit *test)
{
	u64 now = NSEC_PER_SEC;
	struct arx_cc *cc = dcqcn_make(test, now);
	unsigned long rate;
	int i;

	for (i = 0; i < 1000; i++)
		cc->ops->ack(cc, 1, 0, now += DECAY_NS);
	for (i = 0; i < 2000; i++)
		cc->ops->cnp(cc, now += CNP_NS);
	rate = ARX_DCQCN_RATE(cc, first_rate_mbps);
	arx_dcqcn_set(cc, rate);
	cc->ops->cnp(cc, now + CNP_NS);
	KUNIT_EXPECT_LE(test, cc->rate, rate / 100 * 51);
}

/**
 * struct setting - a parameter of DCQCN, changed
 * @name: of the parameter
 * @offset: of the parameter in struct arx_cc_params
 * @value: to which it is set
 * @least: the rate is at least this many times that with all defaults, or
 * @most: at most this part of it; in per mille
 */
struct setting {
	const char *name;
	size_t offset;
	u32 value;
	u32 least;
	u32 most;
};

#define SET(_name, _value, _least, _most) {				\
	#_name, offsetof(struct arx_cc_params, dcqcn._name),		\
	_value, _least, _most						\
}

static const struct setting settings[] = {
	SET(first_rate_mbps, 1000, 0, 900),
	SET(rp_ai_rate_mbps, 1, 0, 900),
	SET(rp_byte_reset_bytes, 64 * 1024, 1200, 0),
	SET(rp_gd, 12, 1200, 0),
	SET(rp_hai_rate_mbps, 5, 0, 900),
	SET(rp_initial_alpha_value, 512, 1200, 0),
	SET(rp_min_rate_mbps, 5000, 1200, 0),
	SET(rp_rate_reduce_monitor_period_usecs, 1000, 1200, 0),
	SET(rp_threshold, 31, 0, 900),
	SET(rp_time_reset_usecs, 1000, 0, 900),
};

static void setting_name(const struct setting *s, char *name)
{
	strscpy(name, s->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cc_settings, settings, setting_name);

/* The rate in Mbit/s, 20 ms and 8 MB after the last one of five CNPs. */
static u32 rate_after(const struct arx_cc_params *params)
{
	u64 now = NSEC_PER_SEC;
	struct arx_cc cc;
	int i;

	dcqcn_begin(&cc, params, now);
	for (i = 0; i < 5; i++) {
		now += 60 * NSEC_PER_USEC;
		cc.ops->cnp(&cc, now);
	}
	for (i = 0; i < 2000; i++) {
		now += 10 * NSEC_PER_USEC;
		cc.ops->ack(&cc, 1, 0, now);
	}
	return div_u64(cc.rate, MBIT);
}

static void cc__setting(struct kunit *test)
{
	struct arx_cc_params *params = default_params(test);
	const struct setting *s = test->param_value;
	u32 before = rate_after(params), after;

	*(u32 *)((void *)params + s->offset) = s->value;
	after = rate_after(params);
	kunit_info(test, "%u Mbit/s, default %u Mbit/s\n", after, before);
	KUNIT_EXPECT_GE(test, after * 1000, before * s->least);
	if (s->most)
		KUNIT_EXPECT_LE(test, after * 1000, before * s->most);
}

/* A least rate holds for a flow that is already controlled. */
static void cc__least_rate(struct kunit *test)
{
	const struct bottleneck b = {
		.ops = DCQCN,
		.mbits = 1000,
		.limit = 1000,
		.flows = 1,
		.rtt_us = 200,
	};
	struct link *l = link_make(test, &b);

	link_flood(l);
	KUNIT_EXPECT_EQ(test, l->flow[0].cc.rate, 1 * MBIT);
	l->params.dcqcn.rp_min_rate_mbps = 100;
	link_flood(l);
	l->measure = true;
	link_flood(l);
	KUNIT_EXPECT_EQ(test, l->flow[0].cc.rate, 100 * MBIT);
	KUNIT_EXPECT_GE(test, link_goodput(l, FLOOD_MS * NSEC_PER_MSEC), 95);
}

/* The extremes of the ranges together: the rate stays in its range. */
static void cc__extremes(struct kunit *test)
{
	static const struct arx_cc_params extremes[] = {
		{ .dcqcn = { 1, 1, 1, 10, 1, 1, 1, 1, 1, 1 } },
		{ .dcqcn = { ARX_DCQCN_MOST_MBPS, ARX_DCQCN_MOST_MBPS, 1, 10,
			     ARX_DCQCN_MOST_MBPS, ARX_DCQCN_ALPHA_ONE, 1, 1, 1,
			     1 } },
		{ .dcqcn = { 1, 1, SZ_1G, 20, 1, ARX_DCQCN_ALPHA_ONE,
			     ARX_DCQCN_MOST_MBPS, USEC_PER_SEC, 31,
			     USEC_PER_SEC } },
	};
	u32 rate;
	int i;

	for (i = 0; i < ARRAY_SIZE(extremes); i++) {
		rate = rate_after(&extremes[i]);
		KUNIT_EXPECT_GE(test, rate,
				extremes[i].dcqcn.rp_min_rate_mbps);
		KUNIT_EXPECT_LE(test, rate, ARX_DCQCN_MOST_MBPS);
	}
}

/* One flow by delay, without marks, in the third and fourth second. */
static struct link *link_by_delay(struct kunit *test, u32 limit,
				  const struct arx_cc_params *params)
{
	const struct bottleneck b = {
		.ops = DELAY,
		.mbits = 200,
		.limit = limit,
		.flows = 1,
		.rtt_us = 200,
	};
	struct link *l = link_make(test, &b);

	l->params = *params;
	link_run(l, 2ULL * NSEC_PER_SEC);
	l->measure = true;
	link_run(l, 2ULL * NSEC_PER_SEC);
	return l;
}

/* The queue is about as long as asked, also if that changes meanwhile. */
static void cc__target(struct kunit *test)
{
	struct arx_cc_params *params = default_params(test);
	struct link *l;

	params->delay.target_usecs = 30000;
	l = link_by_delay(test, 1000, params);
	KUNIT_EXPECT_GE(test, l->longest, 20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_LE(test, l->longest, 40 * NSEC_PER_MSEC);
	l->params.delay.target_usecs = 2000;
	link_run(l, 2ULL * NSEC_PER_SEC);
	l->longest = 0;
	link_run(l, 2ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_GE(test, l->longest, NSEC_PER_MSEC);
	KUNIT_EXPECT_LE(test, l->longest, 4 * NSEC_PER_MSEC);
}

/*
 * A queue of 50 packets takes 8.3 ms, so losses halve the target to 4 ms; a
 * larger minimum keeps the queue full.
 */
static void cc__least_target(struct kunit *test)
{
	struct arx_cc_params *params = default_params(test);
	u32 dropped;

	params->delay.target_usecs = 20000;
	dropped = link_by_delay(test, 50, params)->dropped;
	params->delay.target_min_usecs = 20000;
	KUNIT_EXPECT_GT(test, link_by_delay(test, 50, params)->dropped,
			2 * dropped);
}

/* A flow that must not compete leaves the link to TCP, also if it competed. */
static void cc__competes_not(struct kunit *test)
{
	struct link *l = link_of_competitors(test);

	l->params.delay.compete = 0;
	link_run(l, 9ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_FALSE(test, l->flow[1].cc.delay.competes);
	l->measure = true;
	link_run(l, 9ULL * NSEC_PER_SEC);
	KUNIT_EXPECT_FALSE(test, l->flow[1].cc.delay.competes);
	KUNIT_EXPECT_LT(test, l->flow[1].bytes, l->flow[0].bytes / 2);
}

/* Programs for cc_bpf.c: what each of them asks for. */
static u32 asked_window;
static u64 asked_rate;

static void ask(struct arx_cc *cc)
{
	cc->bpf.window = asked_window;
	cc->bpf.rate = asked_rate;
}

static void first_ack(struct arx_cc *cc, u32 n, u64 rtt, u64 now)
{
	cc->bpf.words[0] += n;
	ask(cc);
}

static void first_loss(struct arx_cc *cc, u32 n, u64 now)
{
	cc->bpf.window = 0;
}

static const struct arx_cc_ops first_program = {
	.ack = first_ack,
	.loss = first_loss,
};

static void second_init(struct arx_cc *cc, u64 now)
{
	cc->bpf.words[15] = now;
	cc->bpf.window /= 2;
}

static void second_event(struct arx_cc *cc, u64 now)
{
	cc->bpf.rate = 1000000;
}

static const struct arx_cc_ops second_program = {
	.init = second_init,
	.cnp = second_event,
	.timeout = second_event,
};

static void bpf_begin(struct arx_cc *cc)
{
	arx_cc_init(cc, PACKET, WINDOW, WIDEST, 0);
	arx_cc_control(cc, &arx_cc_bpf_ops, NULL, 0, 0);
}

static void bpf_expect(struct kunit *test, const struct arx_cc *cc, u32 window,
		       u64 rate)
{
	KUNIT_EXPECT_EQ(test, cc->window, window);
	KUNIT_EXPECT_EQ(test, cc->rate, rate);
	KUNIT_EXPECT_EQ(test, cc->bpf.window, window);
	KUNIT_EXPECT_EQ(test, cc->bpf.rate, rate);
}

/* Without a program, all events leave the fixed window as it is. */
static void cc__bpf_none(struct kunit *test)
{
	struct arx_cc cc;

	bpf_begin(&cc);
	bpf_expect(test, &cc, WINDOW, 0);
	arx_cc_bpf_ops.loss(&cc, 1, 1);
	arx_cc_bpf_ops.timeout(&cc, 2);
	arx_cc_bpf_ops.cnp(&cc, 3);
	arx_cc_bpf_ops.ack(&cc, 1, 1, 4);
	bpf_expect(test, &cc, WINDOW, 0);
}

/* What a program asks for is valid within bounds. */
static void cc__bpf_bounds(struct kunit *test)
{
	struct arx_cc cc;

	KUNIT_ASSERT_EQ(test, arx_cc_bpf_replace(NULL, &first_program), 0);
	bpf_begin(&cc);
	cc.limited = true;
	asked_window = 7;
	asked_rate = 2000000;
	arx_cc_bpf_ops.ack(&cc, 3, 0, 1);
	bpf_expect(test, &cc, 7, 2000000);
	KUNIT_EXPECT_TRUE(test, cc.limited);
	arx_cc_bpf_ops.ack(&cc, 4, 1, 1);
	KUNIT_EXPECT_FALSE(test, cc.limited);
	KUNIT_EXPECT_EQ(test, cc.bpf.words[0], 7);
	/* A missing function changes nothing. */
	arx_cc_bpf_ops.timeout(&cc, 2);
	bpf_expect(test, &cc, 7, 2000000);
	asked_window = U32_MAX;
	asked_rate = U64_MAX;
	arx_cc_bpf_ops.ack(&cc, 1, 0, 3);
	bpf_expect(test, &cc, WINDOW, ARX_CC_BPF_MOST);
	asked_rate = 1;
	arx_cc_bpf_ops.ack(&cc, 1, 0, 4);
	bpf_expect(test, &cc, WINDOW, ARX_CC_BPF_LEAST);
	arx_cc_bpf_ops.loss(&cc, 1, 5);
	bpf_expect(test, &cc, 1, ARX_CC_BPF_LEAST);
	KUNIT_EXPECT_EQ(test, arx_cc_bpf_replace(&first_program, NULL), 0);
}

/* A QP whose program was replaced or removed begins anew at its next event. */
static void cc__bpf_replaced(struct kunit *test)
{
	struct arx_cc cc;

	KUNIT_ASSERT_EQ(test, arx_cc_bpf_replace(NULL, &first_program), 0);
	bpf_begin(&cc);
	asked_window = 7;
	asked_rate = 2000000;
	arx_cc_bpf_ops.ack(&cc, 3, 0, 1);
	KUNIT_EXPECT_EQ(test, arx_cc_bpf_replace(NULL, &second_program),
			-EBUSY);
	KUNIT_EXPECT_EQ(test, arx_cc_bpf_replace(&second_program, NULL),
			-EBUSY);
	KUNIT_EXPECT_EQ(test, arx_cc_bpf_replace(&first_program,
						 &second_program), 0);
	bpf_expect(test, &cc, 7, 2000000);
	arx_cc_bpf_ops.cnp(&cc, 9);
	bpf_expect(test, &cc, WINDOW / 2, 1000000);
	KUNIT_EXPECT_EQ(test, cc.bpf.words[0], 0);
	KUNIT_EXPECT_EQ(test, cc.bpf.words[15], 9);
	KUNIT_EXPECT_EQ(test, arx_cc_bpf_replace(&second_program, NULL), 0);
	arx_cc_bpf_ops.ack(&cc, 1, 0, 10);
	bpf_expect(test, &cc, WINDOW, 0);
	/* The same program is another one when it comes back. */
	KUNIT_EXPECT_EQ(test, arx_cc_bpf_replace(NULL, &second_program), 0);
	arx_cc_bpf_ops.timeout(&cc, 11);
	bpf_expect(test, &cc, WINDOW / 2, 1000000);
	KUNIT_EXPECT_EQ(test, cc.bpf.words[15], 11);
	KUNIT_EXPECT_EQ(test, arx_cc_bpf_replace(&second_program, NULL), 0);
	KUNIT_EXPECT_EQ(test, arx_cc_bpf_replace(NULL, &second_program), 0);
	arx_cc_bpf_ops.timeout(&cc, 12);
	KUNIT_EXPECT_EQ(test, cc.bpf.words[15], 12);
	KUNIT_EXPECT_EQ(test, arx_cc_bpf_replace(&second_program, NULL), 0);
}

static struct kunit_case cc_cases[] = {
	KUNIT_CASE_PARAM(cc__bottleneck, cc_bottlenecks_gen_params),
	KUNIT_CASE_PARAM(cc__start, cc_starts_gen_params),
	KUNIT_CASE_PARAM(cc__beside_tcp, cc_shared_gen_params),
	KUNIT_CASE(cc__tcp_leaves),
	KUNIT_CASE(cc__lossy),
	KUNIT_CASE(cc__fits),
	KUNIT_CASE(cc__late),
	KUNIT_CASE(cc__unmeasured),
	KUNIT_CASE(cc__outage),
	KUNIT_CASE_PARAM(cc__flood, cc_floods_gen_params),
	KUNIT_CASE(cc__dcqcn_idle),
	KUNIT_CASE(cc__dcqcn_first_rate),
	KUNIT_CASE(cc__dcqcn_forgets),
	KUNIT_CASE(cc__dcqcn_learns),
	KUNIT_CASE_PARAM(cc__setting, cc_settings_gen_params),
	KUNIT_CASE(cc__least_rate),
	KUNIT_CASE(cc__extremes),
	KUNIT_CASE(cc__target),
	KUNIT_CASE(cc__least_target),
	KUNIT_CASE(cc__competes_not),
	KUNIT_CASE(cc__bpf_none),
	KUNIT_CASE(cc__bpf_bounds),
	KUNIT_CASE(cc__bpf_replaced),
	{}
};

static struct kunit_suite cc_suite = {
	.name = "arx_cc",
	.test_cases = cc_cases,
};

kunit_test_suite(cc_suite);
