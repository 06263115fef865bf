// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* cnp.c: which marks cause a CNP, and how many CNPs. */

#include "qp_fixture.h"

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

/* As if the last CNP had been sent this long ago, in units of 1024 ns. */
static void age(struct pair *p, int side, u32 ago)
{
	p->side[side].qp->cnp_sent = ((u32)(ktime_get_ns() >> 10) - ago) | 1;
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

	age(p, 1, 10);
	mark(p, 1, ARX_OP_WRITE, 1);
	EXPECT_SILENT(test, p, 1);
	mark(p, 0, ARX_OP_READ_RESPONSE, 1);
	EXPECT_SENT(test, p, 0, ARX_OP_CNP, 0);
	age(p, 1, ARX_CNP_INTERVAL + 2);
	mark(p, 1, ARX_OP_SEND, 1);
	EXPECT_SENT(test, p, 1, ARX_OP_CNP, 0);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_ECN_MARKED), 3);
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
	KUNIT_CASE(cnp__no_room),
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
