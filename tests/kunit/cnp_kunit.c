// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* cnp.c: which marks cause a CNP, and how many CNPs. */

#include "qp_fixture.h"

/* The clock that cnp.c reads. */
static u64 clock;
#define ktime_get_ns()	clock

#include "cnp.c"

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
						now + ARX_CNP_INTERVAL));
		KUNIT_EXPECT_EQ(test, *sent, last);
		KUNIT_EXPECT_TRUE(test, is_due(p, last, now +
					       ARX_CNP_INTERVAL + 2));
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

static struct kunit_case cnp_cases[] = {
	KUNIT_CASE(cnp__sent),
	KUNIT_CASE(cnp__rate),
	KUNIT_CASE(cnp__interval),
	KUNIT_CASE(cnp__two_cpus),
	KUNIT_CASE(cnp__no_room),
	KUNIT_CASE(cnp__dropped),
	KUNIT_CASE(cnp__acks),
	KUNIT_CASE(cnp__uc),
	{}
};

static struct kunit_suite cnp_suite = {
	.name = "arx_cnp",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = cnp_cases,
};

kunit_test_suite(cnp_suite);
