// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * cnp.c: which marks cause a CNP, and how many CNPs; congestion.c: what begins
 * the control of a QP, what the stages then do, and static rates.
 */

#include "congestion.h"
#include "qp_fixture.h"

/* The clock that cnp.c reads. */
static u64 clock;
#define ktime_get_ns()	clock

#include "cnp.c"

#undef ktime_get_ns

static void mark(struct pair *p, int side, enum arx_op op, u32 npkts)
{
	struct arx_run run = { .h.op = op, .npkts = npkts };

	local_bh_disable();
	arx_section_enter();
	arx_cnp_marked(p->side[side].qp, &run);
	arx_section_leave();
	local_bh_enable();
}

static void cnp__sent(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct wire_run *w;

	mark(p, 1, ARX_OP_WRITE, 3);
	w = EXPECT_SENT(test, p, 1, ARX_OP_CNP, 0);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.h.service, ARX_SERVICE_CNP);
	KUNIT_EXPECT_EQ(test, w->run.h.qpn, p->side[0].qp->id.nr);
	KUNIT_EXPECT_EQ(test, w->run.h.flags,
			ARX_FIRST | ARX_LAST | ARX_BECN);
	KUNIT_EXPECT_EQ(test, w->run.len + w->run.h.pad, 0);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_ECN_MARKED), 3);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_SENT), 1);
}

/* The time between two CNPs changes while the QP is in use. */
static void cnp__interval_changes(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	clock = 1ULL << 60;
	mark(p, 1, ARX_OP_WRITE, 1);
	EXPECT_SENT(test, p, 1, ARX_OP_CNP, 0);
	p->dev.np_min_time_between_cnps_usecs = 1000;
	clock += NSEC_PER_MSEC;
	mark(p, 1, ARX_OP_WRITE, 1);
	EXPECT_SILENT(test, p, 1);
	p->dev.np_min_time_between_cnps_usecs = 0;
	mark(p, 1, ARX_OP_WRITE, 1);
	EXPECT_SENT(test, p, 1, ARX_OP_CNP, 0);
	clock += 4 * NSEC_PER_USEC;
	mark(p, 1, ARX_OP_WRITE, 1);
	EXPECT_SENT(test, p, 1, ARX_OP_CNP, 0);
}

/* One for all marks of 50 us; each QP has its own. */
static void cnp__rate(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	clock = 1ULL << 60;
	mark(p, 1, ARX_OP_WRITE, 1);
	EXPECT_SENT(test, p, 1, ARX_OP_CNP, 0);
	clock += 10 * NSEC_PER_USEC;
	mark(p, 1, ARX_OP_WRITE, 1);
	EXPECT_SILENT(test, p, 1);
	mark(p, 0, ARX_OP_READ_RESPONSE, 1);
	EXPECT_SENT(test, p, 0, ARX_OP_CNP, 0);
	clock += 45 * NSEC_PER_USEC;
	mark(p, 1, ARX_OP_SEND, 1);
	EXPECT_SENT(test, p, 1, ARX_OP_CNP, 0);
	mark(p, 0, ARX_OP_READ_RESPONSE, 1);
	EXPECT_SILENT(test, p, -1);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_ECN_MARKED), 5);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_SENT), 3);
}

/* A CPU that has read @last reads the clock at @now. */
static bool is_due(struct pair *p, u32 last, u32 now)
{
	return arx_cnp_is_due(p->side[1].qp, last, now);
}

/* The interval, also when the time wraps. */
static void cnp__interval(struct kunit *test)
{
	static const u32 begins[] = { 0, 1, 1000, 1001, -2, -1, -20 };
	struct pair *p = pair_by_wire(test);
	u32 interval = p->dev.np_min_time_between_cnps_usecs;
	u32 *sent = &p->side[1].qp->cnp_sent;
	int i;

	for (i = 0; i < ARRAY_SIZE(begins); i++) {
		u32 now = begins[i], last;

		*sent = 0;
		KUNIT_EXPECT_TRUE(test, is_due(p, 0, now));
		last = *sent;
		KUNIT_EXPECT_NE(test, last, 0);
		KUNIT_EXPECT_FALSE(test, is_due(p, last, now));
		KUNIT_EXPECT_FALSE(test, is_due(p, last, now + 10));
		KUNIT_EXPECT_FALSE(test, is_due(p, last,
						now + interval));
		KUNIT_EXPECT_EQ(test, *sent, last);
		KUNIT_EXPECT_TRUE(test, is_due(p, last,
					       now + interval + 2));
		KUNIT_EXPECT_NE(test, *sent, last);
	}
}

/* Two CPUs find that a CNP is due: the first one sends it. */
static void cnp__two_cpus(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	KUNIT_EXPECT_TRUE(test, is_due(p, 0, 1000));
	KUNIT_EXPECT_FALSE(test, is_due(p, 0, 1000));
	KUNIT_EXPECT_FALSE(test, is_due(p, 0, 1100));
	KUNIT_EXPECT_TRUE(test, is_due(p, p->side[1].qp->cnp_sent, 1100));
}

/* A CNP for which there is no room is not sent later. */
static void cnp__no_room(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	p->blocked = true;
	mark(p, 1, ARX_OP_WRITE, 1);
	p->blocked = false;
	pair_settle(p);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_SENT), 0);
}

/* A CNP that this machine drops was not sent. */
static void cnp__dropped(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	p->drops = true;
	mark(p, 1, ARX_OP_WRITE, 1);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_SENT), 0);
}

static void cnp__acks(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	mark(p, 0, ARX_OP_ACK, 1);
	EXPECT_SILENT(test, p, 0);
}

static void cnp__uc(struct kunit *test)
{
	struct pair *p = test->priv;

	pair_connect(test, p, IB_QPT_UC);
	mark(p, 1, ARX_OP_SEND, 1);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_ECN_MARKED), 1);
}

static void notify_qp(struct arx_qp *qp, int flags)
{
	struct arx_headers h = { .op = ARX_OP_CNP, .flags = flags };

	local_bh_disable();
	arx_section_enter();
	arx_cnp_rx(qp, &h);
	arx_section_leave();
	local_bh_enable();
}

static void notify(struct pair *p, int flags)
{
	notify_qp(p->side[0].qp, flags);
}

static struct pair *controlled(struct kunit *test, enum arx_cc_kind kind)
{
	struct pair *p = test->priv;

	p->dev.cc = kind;
	return pair_by_wire(test);
}

static struct arx_cc *cc_of(struct pair *p)
{
	return p->side[0].qp->comp.cc;
}

/* The peer acknowledges up to @psn, or asks for what follows it. */
static void respond(struct pair *p, u8 syndrome, u32 psn)
{
	struct arx_run run = pair_run(p, 0, ARX_OP_ACK, ARX_FIRST | ARX_LAST,
				      psn, NULL, 0);

	run.h.syndrome = syndrome;
	pair_rx(p, 0, &run);
	pair_settle(p);
}

static void congestion__cnp(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_DELAY);

	notify(p, 0);
	KUNIT_EXPECT_NULL(test, cc_of(p));
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_IGNORED), 1);
	notify(p, ARX_BECN);
	KUNIT_EXPECT_NOT_NULL(test, cc_of(p));
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_HANDLED), 1);
	KUNIT_EXPECT_EQ(test, 0, pair_modify(p, 0, IB_QPS_RESET, IB_QP_STATE));
	KUNIT_EXPECT_NULL(test, cc_of(p));
	/* It was on its way during the reset. */
	notify(p, ARX_BECN);
	KUNIT_EXPECT_NULL(test, cc_of(p));
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_IGNORED), 2);
}

/* A QP keeps what it chose when it was connected. */
static void congestion__fixed(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_FIXED);

	p->dev.cc = ARX_CC_DELAY;
	notify(p, ARX_BECN);
	KUNIT_EXPECT_NULL(test, cc_of(p));
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_IGNORED), 1);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_HANDLED), 0);
}

/*
 * Before the first sign there is no control. A loss begins the control by
 * losses, which follows CNPs, too.
 */
static void congestion__auto_lost(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_AUTO);
	struct arx_qp *qp = p->side[0].qp;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 20 * MTU);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	KUNIT_EXPECT_NULL(test, cc_of(p));
	respond(p, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_loss_ops);
	arx_congestion_timeout(qp);
	KUNIT_EXPECT_EQ(test, cc_of(p)->window, ARX_WINDOW / 2);
	notify(p, ARX_BECN);
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_loss_ops);
	KUNIT_EXPECT_EQ(test, cc_of(p)->window, ARX_WINDOW / 2 * 7 / 10);
}

/* A CNP begins it, too. The CNPs of one round trip are one sign. */
static void congestion__auto_marked(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_AUTO);

	p->clock = 1ULL << 60;
	notify(p, ARX_BECN);
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_loss_ops);
	KUNIT_EXPECT_EQ(test, cc_of(p)->window, ARX_WINDOW * 7 / 10);
	cc_of(p)->loss.last = NSEC_PER_MSEC;
	p->clock += NSEC_PER_MSEC - 1;
	notify(p, ARX_BECN);
	KUNIT_EXPECT_EQ(test, cc_of(p)->window, ARX_WINDOW * 7 / 10);
	p->clock += 1;
	notify(p, ARX_BECN);
	KUNIT_EXPECT_EQ(test, cc_of(p)->window, ARX_WINDOW * 49 / 100);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_HANDLED), 3);
}

/* A WRITE is acknowledged after @ns. */
static void round_trip(struct kunit *test, struct pair *p, u32 n, u64 ns)
{
	/* Only one round trip is measured in a tick. */
	p->side[0].qp->comp.trip.tick = jiffies - 1;
	pair_send(p, 0, IB_WR_RDMA_WRITE, n, IB_SEND_SIGNALED, 0, 8);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + n);
	p->clock += ns;
	respond(p, ARX_ACK_UNLIMITED, PSN + n);
	EXPECT_WC(test, &p->side[0].scq, n, IB_WC_SUCCESS);
}

/*
 * A long path begins the control by losses, which may let the window grow. Two
 * long round trips are no long path. A short path is not measured any more.
 */
static void congestion__auto_far(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_AUTO);
	struct arx_rtt *rtt = &p->side[0].qp->comp.trip;
	u32 i;

	p->clock = 1ULL << 60;
	for (i = 0; i < 2; i++)
		round_trip(test, p, i, 20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_NULL(test, cc_of(p));
	round_trip(test, p, 2, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, rtt->shortest, NSEC_PER_MSEC);
	round_trip(test, p, 3, 20 * NSEC_PER_MSEC);
	KUNIT_EXPECT_NULL(test, cc_of(p));
	KUNIT_EXPECT_EQ(test, rtt->began, 0);

	rtt->shortest = 0;
	rtt->near = false;
	round_trip(test, p, 4, 20 * NSEC_PER_MSEC);
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_loss_ops);
	KUNIT_EXPECT_EQ(test, cc_of(p)->window, ARX_WINDOW);
	round_trip(test, p, 5, 30 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, cc_of(p)->shortest, 20 * NSEC_PER_MSEC);
}

static void lose(struct arx_qp *qp, u32 n)
{
	spin_lock_bh(&qp->comp.lock);
	arx_congestion_lost(qp, PSN, n, n);
	spin_unlock_bh(&qp->comp.lock);
}

/* Nothing was sent, because it is not yet time; then the timer sends. */
static void expect_paced(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_qp *qp = p->side[0].qp;

	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&qp->retry));
	hrtimer_cancel(&qp->retry);
	cc_of(p)->next = 0;
	arx_qp_schedule(qp);
	pair_settle(p);
}

/* A READ of the QP, which answers */
static void answer_read(struct kunit *test, u32 psn)
{
	struct pair *p = test->priv;
	struct arx_run run = pair_run(p, 0, ARX_OP_READ,
				      ARX_FIRST | ARX_LAST, psn, NULL, 0);

	run.h.dma_len = MTU;
	pair_rx(p, 0, &run);
	pair_settle(p);
}

/*
 * Nothing acknowledges READ responses, so that no window bounds them: a CNP
 * begins DCQCN, at the rate that the window has had, and halves it. Few losses
 * do not count then. Many do, and a timeout does. A second after the last CNP
 * losses count again.
 */
static void congestion__auto_responds(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_AUTO);
	struct arx_qp *qp = p->side[0].qp;

	notify(p, ARX_BECN);
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_loss_ops);
	answer_read(test, PSN);
	EXPECT_SENT(test, p, 0, ARX_OP_READ_RESPONSE, PSN);
	cc_of(p)->rtt = NSEC_PER_MSEC;
	notify(p, ARX_BECN);
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_dcqcn_ops);
	KUNIT_EXPECT_EQ(test, cc_of(p)->rate,
			ARX_WINDOW * 7 / 10 * cc_of(p)->mtu * MSEC_PER_SEC / 2);
	/* CNPs of this round trip are for packets that left before. */
	KUNIT_EXPECT_EQ(test, cc_of(p)->dcqcn.rtt, NSEC_PER_MSEC);
	cc_of(p)->next = ktime_get_ns() + 100 * NSEC_PER_SEC;
	answer_read(test, PSN + 1);
	expect_paced(test);
	EXPECT_SENT(test, p, 0, ARX_OP_READ_RESPONSE, PSN + 1);
	cc_of(p)->acked = 100;
	cc_of(p)->dcqcn.cut = 0;
	lose(qp, 10);
	KUNIT_EXPECT_EQ(test, cc_of(p)->dcqcn.cut, 0);
	lose(qp, 100);
	KUNIT_EXPECT_NE(test, cc_of(p)->dcqcn.cut, 0);
	cc_of(p)->marked -= 2 * NSEC_PER_SEC;
	cc_of(p)->dcqcn.cut = 0;
	arx_congestion_timeout(qp);
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_dcqcn_ops);
	KUNIT_EXPECT_NE(test, cc_of(p)->dcqcn.cut, 0);
	/* A receiver that is not ready loses packets, too. */
	qp->comp.rnr_row = 1;
	lose(qp, 1);
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_dcqcn_ops);
	qp->comp.rnr_row = 0;
	lose(qp, 1);
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_loss_ops);
	KUNIT_EXPECT_EQ(test, cc_of(p)->rate, 0);
	KUNIT_EXPECT_LE(test, cc_of(p)->window, ARX_WINDOW / 4);
}

/* Connect again, with this traffic class: what controls the QP. */
static enum arx_cc_kind cc_of_class(struct kunit *test, u8 class)
{
	struct pair *p = test->priv;

	p->attr.ah_attr.grh.traffic_class = class;
	pair_bring(test, p, 0, IB_QPS_RTS);
	return p->side[0].qp->cc;
}

/* The DSCP of the address chooses, or else the device; the QP keeps that. */
static void congestion__class(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_DELAY);

	p->dev.cc_dscp[26] = ARX_CC_DCQCN + 1;
	p->dev.cc_dscp[63] = ARX_CC_FIXED + 1;
	KUNIT_EXPECT_EQ(test, cc_of_class(test, 0), ARX_CC_DELAY);
	KUNIT_EXPECT_EQ(test, cc_of_class(test, 252), ARX_CC_FIXED);
	KUNIT_EXPECT_EQ(test, cc_of_class(test, 26 << 2), ARX_CC_DCQCN);
	p->dev.cc_dscp[26] = 0;
	notify(p, ARX_BECN);
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_dcqcn_ops);
	KUNIT_EXPECT_EQ(test, cc_of_class(test, 26 << 2), ARX_CC_DELAY);
}

/*
 * The window shrinks while packets are in flight that ask for no
 * acknowledgment: one more packet asks.
 */
static void congestion__shrinks(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_DELAY);
	struct wire_run *w;
	u32 first;

	p->on_send = pair_block_second;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 100 * MTU);
	p->on_send = NULL;
	w = EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_FALSE(test, w->run.h.flags & ARX_ACK_REQ);
	first = w->run.npkts;
	notify(p, ARX_BECN);
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	KUNIT_ASSERT_LT(test, cc_of(p)->window, first);
	p->blocked = false;
	pair_requester(p, 0);
	w = EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + first);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.npkts, 1);
	KUNIT_EXPECT_TRUE(test, w->run.h.flags & ARX_ACK_REQ);
	EXPECT_SILENT(test, p, 0);
}

/* Without congestion a QP sends as if nothing controlled it. */
static void congestion__none(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_DELAY);
	struct wire_run *w;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 20 * MTU);
	w = EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.npkts, 20);
	respond(p, ARX_ACK_UNLIMITED, PSN + 19);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_NULL(test, cc_of(p));
}

/* A loss begins the control, and the window holds for what is sent again. */
static void congestion__loss(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_DELAY);
	struct wire_run *w;
	u32 i;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 20 * MTU);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	respond(p, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	for (i = 0; i < 20; i++) {
		w = EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + i);
		KUNIT_ASSERT_NOT_NULL(test, w);
		KUNIT_EXPECT_EQ(test, w->run.npkts, 1);
		KUNIT_EXPECT_TRUE(test, w->run.h.flags & ARX_ACK_REQ);
		EXPECT_SILENT(test, p, 0);
		respond(p, ARX_ACK_UNLIMITED, PSN + i);
	}
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
}

/* What must wait for its time is sent by the timer. */
static void congestion__paced(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_DCQCN);

	notify(p, ARX_BECN);
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	KUNIT_ASSERT_NE(test, cc_of(p)->rate, 0);
	cc_of(p)->next = ktime_get_ns() + 100 * NSEC_PER_SEC;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, MTU);
	expect_paced(test);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	KUNIT_EXPECT_NE(test, cc_of(p)->next, 0);
}

/* So are READ responses, of the QP that is read. */
static void congestion__paced_read(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_DCQCN);

	notify(p, ARX_BECN);
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	cc_of(p)->next = ktime_get_ns() + 100 * NSEC_PER_SEC;
	answer_read(test, PSN);
	expect_paced(test);
	EXPECT_SENT(test, p, 0, ARX_OP_READ_RESPONSE, PSN);
}

static void notify_meanwhile(struct pair *p)
{
	p->on_clock = NULL;
	p->clock += NSEC_PER_USEC;
	notify(p, ARX_BECN);
}

/* A target of XRC has no requester, and still has READ responses to pace. */
static void congestion__xrc_target(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_qp *qp;

	p->dev.cc = ARX_CC_DCQCN;
	pair_connect_xrc(test, p);
	qp = p->side[1].qp;
	notify_qp(qp, ARX_BECN);
	KUNIT_EXPECT_NOT_NULL(test, qp->comp.cc);
	KUNIT_EXPECT_EQ(test, 0, pair_modify(p, 1, IB_QPS_RESET, IB_QP_STATE));
	KUNIT_EXPECT_NULL(test, qp->comp.cc);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

/*
 * A CNP arrives on another CPU after the responder has read the clock. To the
 * controller time does not go back: an earlier time would look like a long one
 * without CNPs, after which the rate is as high as before.
 */
static void congestion__cnp_meanwhile(struct kunit *test)
{
	struct pair *p = controlled(test, ARX_CC_DCQCN);
	struct arx_run run = {
		.h.op = ARX_OP_READ_RESPONSE, .npkts = 1, .len = MTU,
	};
	unsigned long rate;

	p->clock = 1ULL << 60;
	notify(p, ARX_BECN);
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	rate = cc_of(p)->rate;
	p->on_clock = notify_meanwhile;
	local_bh_disable();
	arx_congestion_charge(p->side[0].qp, cc_of(p), &run,
			      &p->side[0].qp->resp.out);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_HANDLED), 2);
	KUNIT_EXPECT_EQ(test, cc_of(p)->rate, rate);
}

static struct pair *at_rate(struct kunit *test, enum ib_qp_type type,
			    enum arx_cc_kind kind)
{
	struct pair *p = test->priv;

	p->dev.cc = kind;
	p->attr.ah_attr.static_rate = IB_RATE_5_GBPS;
	pair_connect(test, p, type);
	p->dev.port_active = false;
	KUNIT_ASSERT_NOT_NULL(test, cc_of(p));
	KUNIT_ASSERT_EQ(test, cc_of(p)->static_rate, 625000000);
	return p;
}

/*
 * The time of a packet with its headers, at the static rate, passes before the
 * next packet. A sender may be late by 2 ms.
 */
static void expect_spaced(struct kunit *test, enum ib_qp_type type)
{
	const u64 packet = (MTU + 78) * 8 / 5, late = 2 * NSEC_PER_MSEC;
	struct pair *p = at_rate(test, type, ARX_CC_FIXED);
	u64 start;

	cc_of(p)->next = 0;
	start = ktime_get_ns();
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, MTU);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	KUNIT_EXPECT_GE(test, cc_of(p)->next + late, start + packet);
	KUNIT_EXPECT_LE(test, cc_of(p)->next + late, ktime_get_ns() + packet);

	cc_of(p)->next = ktime_get_ns() + 100 * NSEC_PER_SEC;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, MTU);
	expect_paced(test);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 1);
}

static void static_rate__rc(struct kunit *test)
{
	expect_spaced(test, IB_QPT_RC);
}

static void static_rate__uc(struct kunit *test)
{
	expect_spaced(test, IB_QPT_UC);
}

/* A message leaves in bursts of up to 60 KiB, each of which asks for an ACK. */
static void static_rate__bursts(struct kunit *test)
{
	struct pair *p = at_rate(test, IB_QPT_RC, ARX_CC_FIXED);
	struct wire_run *w;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 100 * MTU);
	w = EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_LE(test, w->run.npkts * MTU, 60 * 1024);
	KUNIT_EXPECT_GT(test, w->run.npkts, 1);
	KUNIT_EXPECT_TRUE(test, w->run.h.flags & ARX_ACK_REQ);
}

/* READ responses leave at the rate of the responder's address. */
static void static_rate__read(struct kunit *test)
{
	struct pair *p = at_rate(test, IB_QPT_RC, ARX_CC_FIXED);
	struct arx_run run = pair_run(p, 0, ARX_OP_READ,
				      ARX_FIRST | ARX_LAST, PSN, NULL, 0);

	run.h.dma_len = MTU;
	cc_of(p)->next = ktime_get_ns() + 100 * NSEC_PER_SEC;
	pair_rx(p, 0, &run);
	pair_settle(p);
	expect_paced(test);
	EXPECT_SENT(test, p, 0, ARX_OP_READ_RESPONSE, PSN);
}

/* A rate is no controller of congestion. */
static void static_rate__fixed(struct kunit *test)
{
	struct pair *p = at_rate(test, IB_QPT_RC, ARX_CC_FIXED);

	notify(p, ARX_BECN);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_IGNORED), 1);
	KUNIT_EXPECT_NULL(test, cc_of(p)->ops);
}

/* A controller begins at a sign of congestion, and the lower rate holds. */
static void static_rate__controlled(struct kunit *test)
{
	struct pair *p = at_rate(test, IB_QPT_RC, ARX_CC_DCQCN);

	KUNIT_EXPECT_NULL(test, cc_of(p)->ops);
	notify(p, ARX_BECN);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_CNP_HANDLED), 1);
	KUNIT_EXPECT_PTR_EQ(test, cc_of(p)->ops, &arx_cc_dcqcn_ops);
	cc_of(p)->rate = 1000;
	KUNIT_EXPECT_EQ(test, arx_cc_rate(cc_of(p)), 1000);
	cc_of(p)->rate = 1000000000;
	KUNIT_EXPECT_EQ(test, arx_cc_rate(cc_of(p)), 625000000);
	cc_of(p)->rate = 0;
	KUNIT_EXPECT_EQ(test, arx_cc_rate(cc_of(p)), 625000000);
}

/* The rate changes in SQD, and ends with the connection. */
static void static_rate__changes(struct kunit *test)
{
	struct pair *p = at_rate(test, IB_QPT_RC, ARX_CC_FIXED);

	KUNIT_EXPECT_EQ(test, pair_modify(p, 0, IB_QPS_SQD, 0), 0);
	p->attr.ah_attr.static_rate = IB_RATE_10_GBPS;
	KUNIT_EXPECT_EQ(test, pair_modify(p, 0, IB_QPS_SQD, IB_QP_AV), 0);
	KUNIT_EXPECT_EQ(test, cc_of(p)->static_rate, 1250000000);
	p->attr.ah_attr.static_rate = IB_RATE_PORT_CURRENT;
	KUNIT_EXPECT_EQ(test, pair_modify(p, 0, IB_QPS_SQD, IB_QP_AV), 0);
	KUNIT_EXPECT_EQ(test, arx_cc_rate(cc_of(p)), 0);
	KUNIT_EXPECT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, IB_QP_STATE), 0);
	KUNIT_EXPECT_NULL(test, cc_of(p));
}

static struct kunit_case cnp_cases[] = {
	KUNIT_CASE(cnp__sent),
	KUNIT_CASE(cnp__rate),
	KUNIT_CASE(cnp__interval_changes),
	KUNIT_CASE(cnp__interval),
	KUNIT_CASE(cnp__two_cpus),
	KUNIT_CASE(cnp__no_room),
	KUNIT_CASE(cnp__dropped),
	KUNIT_CASE(cnp__acks),
	KUNIT_CASE(cnp__uc),
	KUNIT_CASE(congestion__cnp),
	KUNIT_CASE(congestion__fixed),
	KUNIT_CASE(congestion__auto_far),
	KUNIT_CASE(congestion__auto_lost),
	KUNIT_CASE(congestion__auto_marked),
	KUNIT_CASE(congestion__auto_responds),
	KUNIT_CASE(congestion__class),
	KUNIT_CASE(congestion__none),
	KUNIT_CASE(congestion__shrinks),
	KUNIT_CASE(congestion__loss),
	KUNIT_CASE(congestion__paced),
	KUNIT_CASE(congestion__paced_read),
	KUNIT_CASE(congestion__xrc_target),
	KUNIT_CASE(congestion__cnp_meanwhile),
	KUNIT_CASE(static_rate__rc),
	KUNIT_CASE(static_rate__uc),
	KUNIT_CASE(static_rate__bursts),
	KUNIT_CASE(static_rate__read),
	KUNIT_CASE(static_rate__fixed),
	KUNIT_CASE(static_rate__controlled),
	KUNIT_CASE(static_rate__changes),
	{}
};

static struct kunit_suite cnp_suite = {
	.name = "arx_cnp",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = cnp_cases,
};

kunit_test_suite(cnp_suite);
