// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* cq.c: CQEs, arming, notification; for kernel consumers and applications. */

#include <kunit/test.h>
#include <linux/completion.h>

#include "cq.c"

#define CQES	4

/**
 * struct cq_test - a device, its CQ, and the notifications of the CQ's owner
 * @dev: device with only a GSI QP
 * @cq: its CQ
 * @qp: the QP of the completions
 * @notified: number of notifications
 * @errors: number of asynchronous events
 * @done: completes with the last notification
 */
struct cq_test {
	struct arx_dev dev;
	struct arx_cq cq;
	struct arx_qp qp;
	int notified;
	int errors;
	struct completion done;
};

static void on_completion(struct ib_cq *cq, void *context)
{
	struct cq_test *t = context;

	t->notified++;
	complete(&t->done);
}

static void on_event(struct ib_event *event, void *context)
{
	struct cq_test *t = context;

	if (event->event == IB_EVENT_CQ_ERR && event->element.cq == &t->cq.ib)
		t->errors++;
}

static int cq_init(struct kunit *test)
{
	struct ib_cq_init_attr attr = { .cqe = CQES };
	struct cq_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->dev.stats = alloc_percpu(struct arx_stats);
	KUNIT_ASSERT_NOT_NULL(test, t->dev.stats);
	init_completion(&t->done);
	t->cq.ib.device = &t->dev.ib;
	t->cq.ib.comp_handler = on_completion;
	t->cq.ib.event_handler = on_event;
	t->cq.ib.cq_context = t;
	t->qp.id.nr = 1;
	RCU_INIT_POINTER(t->dev.gsi, &t->qp);
	KUNIT_ASSERT_EQ(test, arx_create_cq(&t->cq.ib, &attr, NULL), 0);
	KUNIT_EXPECT_EQ(test, t->cq.ib.cqe, CQES);
	test->priv = t;
	return 0;
}

static void cq_exit(struct kunit *test)
{
	struct cq_test *t = test->priv;

	if (!t)
		return;
	arx_destroy_cq(&t->cq.ib, NULL);
	free_percpu(t->dev.stats);
}

/* From here on notifications come at once, as for an application's CQ. */
static void as_application(struct cq_test *t)
{
	t->cq.ib.uobject = (void *)t;
}

/* The kernel's verbs do not serve an application's CQ. */
static void as_kernel(struct cq_test *t)
{
	t->cq.ib.uobject = NULL;
}

static bool add(struct cq_test *t, u64 wr_id, u8 status, bool solicited)
{
	struct arx_cqe cqe = {
		.wr_id = wr_id,
		.qpn = 1,
		.opcode = IB_WC_RECV,
		.status = status,
		.vlan_id = 0xffff,
	};

	bool taken;

	local_bh_disable();
	taken = arx_cq_add(&t->cq, &cqe, solicited);
	local_bh_enable();
	return taken;
}

static void cq__in_order(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct ib_wc wc[CQES];
	u64 id = 0;
	int i;

	for (i = 0; i < 5 * CQES; i++) {
		add(t, id, IB_WC_SUCCESS, false);
		add(t, id + 1, IB_WC_WR_FLUSH_ERR, false);
		add(t, id + 2, IB_WC_SUCCESS, false);
		KUNIT_ASSERT_EQ(test, arx_poll_cq(&t->cq.ib, 2, wc), 2);
		KUNIT_EXPECT_EQ(test, wc[0].wr_id, id);
		KUNIT_EXPECT_PTR_EQ(test, wc[0].qp, &t->qp.ib);
		KUNIT_EXPECT_EQ(test, wc[1].wr_id, id + 1);
		KUNIT_EXPECT_EQ(test, wc[1].status, IB_WC_WR_FLUSH_ERR);
		KUNIT_ASSERT_EQ(test, arx_poll_cq(&t->cq.ib, CQES, wc), 1);
		KUNIT_EXPECT_EQ(test, wc[0].wr_id, id + 2);
		KUNIT_ASSERT_EQ(test, arx_poll_cq(&t->cq.ib, CQES, wc), 0);
		id += 3;
	}
	KUNIT_EXPECT_EQ(test, t->errors, 0);
}

/* Completions of a destroyed QP are dropped, as hardware does. */
static void cq__of_a_dead_qp(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct ib_wc wc;

	add(t, 1, IB_WC_SUCCESS, false);
	RCU_INIT_POINTER(t->dev.gsi, NULL);
	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, 1, &wc), 0);
	RCU_INIT_POINTER(t->dev.gsi, &t->qp);
	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, 1, &wc), 0);
}

static void cq__time_stamps(struct kunit *test)
{
	struct cq_test *t = test->priv;
	u64 before = ktime_get_ns();
	struct arx_cqe *cqe = t->cq.ring.entries;

	add(t, 1, IB_WC_SUCCESS, false);
	add(t, 2, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_GE(test, cqe[0].timestamp, before);
	KUNIT_EXPECT_GE(test, cqe[1].timestamp, cqe[0].timestamp);
	KUNIT_EXPECT_LE(test, cqe[1].timestamp, ktime_get_ns());
}

/* One completion too many: one event, and no CQE is written any more. */
static void cq__overflow(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct ib_wc wc[CQES];
	int i;

	for (i = 0; i < CQES; i++)
		KUNIT_EXPECT_TRUE(test, add(t, i, IB_WC_SUCCESS, false));
	KUNIT_EXPECT_EQ(test, t->errors, 0);
	KUNIT_EXPECT_FALSE(test, add(t, i, IB_WC_SUCCESS, false));
	KUNIT_EXPECT_FALSE(test, add(t, i, IB_WC_SUCCESS, false));
	KUNIT_EXPECT_EQ(test, t->errors, 1);

	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, CQES, wc), CQES);
	KUNIT_EXPECT_EQ(test, wc[0].wr_id, 0);
	add(t, i, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, CQES, wc), 0);
	KUNIT_EXPECT_EQ(test, t->errors, 1);
}

/* A consumer that allowed it loses completions and nothing else. */
static void cq__overrun_ignored(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct ib_wc wc[CQES];
	int i;

	t->cq.ignore_overrun = true;
	for (i = 0; i < CQES + 2; i++)
		KUNIT_EXPECT_TRUE(test, add(t, i, IB_WC_SUCCESS, false));
	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, CQES, wc), CQES);
	KUNIT_EXPECT_EQ(test, wc[CQES - 1].wr_id, CQES - 1);
	KUNIT_EXPECT_TRUE(test, add(t, 100, IB_WC_SUCCESS, false));
	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, CQES, wc), 1);
	KUNIT_EXPECT_EQ(test, wc[0].wr_id, 100);
	KUNIT_EXPECT_EQ(test, t->errors, 0);
}

/*
 * A vector names an online CPU; an application's vector 0, and a vector without
 * a CPU, name none.
 */
static void cq__vectors(struct kunit *test)
{
	struct ib_cq_init_attr attr = {};

	KUNIT_EXPECT_EQ(test, arx_cq_vector(&attr, false),
			cpumask_first(cpu_online_mask));
	KUNIT_EXPECT_EQ(test, arx_cq_vector(&attr, true), ARX_CQ_ANY_CPU);
	attr.comp_vector = num_online_cpus() - 1;
	KUNIT_EXPECT_EQ(test, arx_cq_vector(&attr, false),
			cpumask_last(cpu_online_mask));
	attr.comp_vector = num_online_cpus();
	KUNIT_EXPECT_EQ(test, arx_cq_vector(&attr, true), ARX_CQ_ANY_CPU);
	attr.comp_vector = U32_MAX;
	KUNIT_EXPECT_EQ(test, arx_cq_vector(&attr, false), ARX_CQ_ANY_CPU);
}

/* An application's wrong index does no harm. */
static void cq__lying_consumer(struct kunit *test)
{
	struct cq_test *t = test->priv;

	as_application(t);
	t->cq.ring.hdr->cons = 1;
	add(t, 1, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, t->errors, 1);
	KUNIT_EXPECT_EQ(test, t->cq.prod, 0);
}

/* Add completions at one time; returns how many were not lost. */
static int add_at_once(struct cq_test *t, int n, bool solicited)
{
	int taken = 0;

	local_bh_disable();
	arx_cq_begin(&t->cq);
	while (n--) {
		struct arx_cqe cqe = { .wr_id = taken, .qpn = 1 };

		taken += arx_cq_put(&t->cq, &cqe);
	}
	arx_cq_end(&t->cq, solicited, false);
	local_bh_enable();
	return taken;
}

static void cq__at_once(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct arx_cqe *slots = t->cq.ring.entries;
	struct ib_wc wc[CQES];
	int i;

	as_application(t);
	KUNIT_EXPECT_EQ(test, add_at_once(t, 0, false), 0);
	t->cq.ring.hdr->arm += ARX_CQ_ARM_SEQ;
	KUNIT_EXPECT_EQ(test, add_at_once(t, 0, false), 0);
	KUNIT_EXPECT_EQ(test, t->notified, 0);

	KUNIT_EXPECT_EQ(test, add_at_once(t, 3, false), 3);
	KUNIT_EXPECT_EQ(test, t->notified, 1);
	KUNIT_EXPECT_EQ(test, t->cq.ring.hdr->prod, 3);
	KUNIT_EXPECT_EQ(test, slots[0].timestamp, slots[2].timestamp);
	as_kernel(t);
	KUNIT_ASSERT_EQ(test, arx_poll_cq(&t->cq.ib, CQES, wc), 3);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, wc[i].wr_id, i);
}

/*
 * Completions that fit are in the CQ, and the event about the others comes
 * once.
 */
static void cq__too_many_at_once(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct ib_wc wc[CQES];

	KUNIT_EXPECT_EQ(test, add_at_once(t, CQES + 2, false), CQES);
	KUNIT_EXPECT_EQ(test, t->errors, 1);
	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, CQES, wc), CQES);
	KUNIT_EXPECT_EQ(test, add_at_once(t, 1, false), 0);
	KUNIT_EXPECT_EQ(test, t->errors, 1);
	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, CQES, wc), 0);
}

/* Like an application that has mapped the ring and polled up to @cons. */
static int resize(struct kunit *test, u32 cqes, u32 cons)
{
	struct cq_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, arx_ring_create(&t->cq.next, cqes,
					      sizeof(struct arx_cqe), NULL,
					      NULL), 0);
	t->cq.next.hdr->cons = cons;
	return arx_cq_commit(&t->cq);
}

/* The cost does not depend on the number of CQEs, nor on a wrong index. */
static void cq__resized(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct arx_cqe *slots;
	int i;

	as_application(t);
	t->cq.ring.hdr->arm = 7 * ARX_CQ_ARM_SEQ;
	for (i = 0; i < 3; i++)
		add(t, i, IB_WC_SUCCESS, false);
	KUNIT_ASSERT_EQ(test, resize(test, 2 * CQES, 1), 0);
	KUNIT_EXPECT_EQ(test, t->cq.ib.cqe, 2 * CQES);
	KUNIT_EXPECT_EQ(test, t->cq.ring.hdr->prod, 3);
	KUNIT_EXPECT_EQ(test, t->cq.ring.hdr->arm, 7 * ARX_CQ_ARM_SEQ);
	KUNIT_EXPECT_NULL(test, t->cq.next.mem);

	slots = t->cq.ring.entries;
	for (i = 0; i < 2 * CQES; i++)
		KUNIT_EXPECT_EQ(test, slots[i].qpn, 0);
	for (i = 3; i < 2 * CQES + 1; i++)
		KUNIT_EXPECT_TRUE(test, add(t, i, IB_WC_SUCCESS, false));
	KUNIT_EXPECT_EQ(test, slots[3].wr_id, 3);
	KUNIT_EXPECT_FALSE(test, add(t, i, IB_WC_SUCCESS, false));
}

static void cq__not_resized(struct kunit *test)
{
	static const struct {
		u32 cqes, cons;
	} bad[] = {
		{ 2, 0 }, { 16, 4 }, { 16, 3 - 5 }, { 16, 3 - 16 },
		{ 16, 3 - 17 }, { 16, 0x80000000 },
	};
	struct cq_test *t = test->priv;
	struct ib_wc wc[CQES];
	int i;

	for (i = 0; i < 3; i++)
		add(t, i, IB_WC_SUCCESS, false);
	as_application(t);
	KUNIT_EXPECT_EQ(test, arx_cq_commit(&t->cq), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, resize(test, bad[i].cqes, bad[i].cons),
				-EINVAL);
	KUNIT_EXPECT_NULL(test, t->cq.next.mem);
	KUNIT_EXPECT_EQ(test, t->cq.ib.cqe, CQES);
	KUNIT_EXPECT_TRUE(test, add(t, 3, IB_WC_SUCCESS, false));
	t->cq.ib.uobject = NULL;	/* so that kernel verbs can poll it */
	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, CQES, wc), CQES);
	KUNIT_EXPECT_EQ(test, wc[3].wr_id, 3);
}

struct arming {
	const char *name;
	bool arm_solicited;
	bool solicited;
	u8 status;
	int notified;
};

static const struct arming armings[] = {
	{ "any, any", false, false, IB_WC_SUCCESS, 1 },
	{ "any, solicited", false, true, IB_WC_SUCCESS, 1 },
	{ "any, error", false, false, IB_WC_GENERAL_ERR, 1 },
	{ "solicited, any", true, false, IB_WC_SUCCESS, 0 },
	{ "solicited, solicited", true, true, IB_WC_SUCCESS, 1 },
	{ "solicited, error", true, false, IB_WC_GENERAL_ERR, 1 },
};

static void arming_name(const struct arming *a, char *name)
{
	strscpy(name, a->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(arming, armings, arming_name);

/* An application arms by a write to the header. */
static void cq__armed_by_application(struct kunit *test)
{
	const struct arming *a = test->param_value;
	struct cq_test *t = test->priv;

	as_application(t);
	add(t, 1, IB_WC_GENERAL_ERR, true);
	KUNIT_EXPECT_EQ(test, t->notified, 0);	/* not armed yet */

	t->cq.ring.hdr->arm = ARX_CQ_ARM_SEQ |
			      (a->arm_solicited ? ARX_CQ_ARM_SOLICITED : 0);
	add(t, 2, a->status, a->solicited);
	KUNIT_EXPECT_EQ(test, t->notified, a->notified);
	add(t, 3, a->status, a->solicited);
	KUNIT_EXPECT_EQ(test, t->notified, a->notified);	/* once */
}

#define ARM(t)	((t)->cq.ring.hdr->arm += ARX_CQ_ARM_SEQ)

/* In microseconds; shorter than the longest period. */
static void moderate(struct kunit *test, u16 count, u16 period)
{
	struct cq_test *t = test->priv;

	as_application(t);
	KUNIT_EXPECT_EQ(test, arx_modify_cq(&t->cq.ib, count, period), 0);
	ARM(t);
}

static void add_good(struct cq_test *t, int n)
{
	while (n--)
		add(t, 1, IB_WC_SUCCESS, false);
}

static void take_all(struct cq_test *t)
{
	arx_ring_consume(&t->cq.ring, t->cq.prod);
}

static u64 events_counted(struct cq_test *t)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu_ptr(t->dev.stats, cpu)->c[ARX_CNT_CQ_EVENTS];
	return sum;
}

static void cq__moderated_by_count(struct kunit *test)
{
	struct cq_test *t = test->priv;

	moderate(test, 3, U16_MAX);
	add_good(t, 2);
	KUNIT_EXPECT_EQ(test, t->notified, 0);
	add_good(t, 1);
	KUNIT_EXPECT_EQ(test, t->notified, 1);
	take_all(t);
	add_good(t, 3);
	KUNIT_EXPECT_EQ(test, t->notified, 1);	/* not armed */

	take_all(t);
	ARM(t);
	add_good(t, 2);
	KUNIT_EXPECT_EQ(test, t->notified, 1);
	add_good(t, 1);
	KUNIT_EXPECT_EQ(test, t->notified, 2);
	KUNIT_EXPECT_EQ(test, events_counted(t), 2);
}

/* Completions at one time all count. */
static void cq__moderated_at_once(struct kunit *test)
{
	struct cq_test *t = test->priv;

	moderate(test, 3, U16_MAX);
	add_at_once(t, 2, false);
	KUNIT_EXPECT_EQ(test, t->notified, 0);
	add_at_once(t, 2, false);
	KUNIT_EXPECT_EQ(test, t->notified, 1);

	take_all(t);
	ARM(t);
	add_at_once(t, 3, false);
	KUNIT_EXPECT_EQ(test, t->notified, 2);
}

static void cq__moderated_by_period(struct kunit *test)
{
	struct cq_test *t = test->priv;

	moderate(test, 100, 1000);
	add_good(t, 2);
	wait_for_completion_timeout(&t->done, HZ);
	KUNIT_EXPECT_EQ(test, t->notified, 1);
	KUNIT_EXPECT_EQ(test, t->cq.armed, t->cq.ring.hdr->arm);
}

static void cq__moderated_but_polled(struct kunit *test)
{
	struct cq_test *t = test->priv;

	moderate(test, 100, 1000);
	add_good(t, 2);
	take_all(t);
	msleep(20);
	KUNIT_EXPECT_EQ(test, t->notified, 0);

	/* The request stays open. */
	add_good(t, 1);
	wait_for_completion_timeout(&t->done, HZ);
	KUNIT_EXPECT_EQ(test, t->notified, 1);
}

static void cq__errors_are_not_moderated(struct kunit *test)
{
	struct cq_test *t = test->priv;

	moderate(test, 3, U16_MAX);
	add_good(t, 1);
	add(t, 2, IB_WC_WR_FLUSH_ERR, false);
	KUNIT_EXPECT_EQ(test, t->notified, 1);
}

static void cq__moderation_turned_off(struct kunit *test)
{
	static const u16 off[][2] = { { 1, 100 }, { 0, 100 }, { 10, 0 } };
	struct cq_test *t = test->priv;
	int i;

	for (i = 0; i < ARRAY_SIZE(off); i++) {
		moderate(test, off[i][0], off[i][1]);
		add_good(t, 1);
		KUNIT_EXPECT_EQ(test, t->notified, i + 1);
	}
}

/* A kernel consumer's handler runs later. */
static void cq__armed_by_kernel(struct kunit *test)
{
	const struct arming *a = test->param_value;
	struct cq_test *t = test->priv;

	arx_req_notify_cq(&t->cq.ib, a->arm_solicited ? IB_CQ_SOLICITED :
							IB_CQ_NEXT_COMP);
	local_bh_disable();
	add(t, 1, a->status, a->solicited);
	add(t, 2, a->status, a->solicited);
	KUNIT_EXPECT_EQ(test, t->notified, 0);	/* not inside the call */
	local_bh_enable();
	if (a->notified)
		wait_for_completion_timeout(&t->done, HZ);
	KUNIT_EXPECT_EQ(test, t->notified, a->notified);
}

static void cq__request_is_not_weakened(struct kunit *test)
{
	struct cq_test *t = test->priv;

	arx_req_notify_cq(&t->cq.ib, IB_CQ_NEXT_COMP);
	arx_req_notify_cq(&t->cq.ib, IB_CQ_SOLICITED);
	as_application(t);
	add(t, 1, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, t->notified, 1);

	as_kernel(t);
	arx_req_notify_cq(&t->cq.ib, IB_CQ_SOLICITED);
	arx_req_notify_cq(&t->cq.ib, IB_CQ_NEXT_COMP);
	as_application(t);
	add(t, 2, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, t->notified, 2);
}

static void cq__missed_events(struct kunit *test)
{
	const int report = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
	struct cq_test *t = test->priv;
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, arx_req_notify_cq(&t->cq.ib, report), 0);
	add(t, 1, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, arx_req_notify_cq(&t->cq.ib, report), 1);
	KUNIT_EXPECT_EQ(test, arx_req_notify_cq(&t->cq.ib, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, arx_req_notify_cq(&t->cq.ib, report), 0);
}

/* Kernel consumers and applications have different flags of a completion. */
static void cq__flags(struct kunit *test)
{
	struct arx_cqe cqe = {
		.qpn = 1,
		.ex = 0x12345678,
		.wc_flags = IB_WC_GRH | IB_WC_WITH_INVALIDATE |
			    IB_WC_WITH_SMAC,
	};
	struct cq_test *t = test->priv;
	struct arx_cqe *slots = t->cq.ring.entries;
	struct ib_wc wc;

	local_bh_disable();
	arx_cq_add(&t->cq, &cqe, false);
	as_application(t);
	arx_cq_add(&t->cq, &cqe, false);
	local_bh_enable();

	as_kernel(t);
	KUNIT_ASSERT_EQ(test, arx_poll_cq(&t->cq.ib, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, IB_WC_GRH | IB_WC_WITH_INVALIDATE |
			IB_WC_WITH_SMAC);
	KUNIT_EXPECT_EQ(test, wc.ex.invalidate_rkey, 0x12345678);
	/* IBV_WC_GRH | IBV_WC_WITH_INV */
	KUNIT_EXPECT_EQ(test, slots[1].wc_flags, 1 | 8);
}

/* Kernel verbs leave an application's mapped ring alone. */
static void cq__not_by_kernel_verbs(struct kunit *test)
{
	struct cq_test *t = test->priv;
	u32 arm = t->cq.ring.hdr->arm;
	struct ib_wc wc;

	as_application(t);
	add(t, 1, IB_WC_SUCCESS, false);
	KUNIT_EXPECT_EQ(test, arx_poll_cq(&t->cq.ib, 1, &wc), -EINVAL);
	KUNIT_EXPECT_EQ(test, t->cq.ring.hdr->cons, 0);
	KUNIT_EXPECT_EQ(test, arx_req_notify_cq(&t->cq.ib, IB_CQ_NEXT_COMP),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, t->cq.ring.hdr->arm, arm);
}

static void cq__create_out_of_range(struct kunit *test)
{
	struct cq_test *t = test->priv;
	struct ib_cq_init_attr attr = {};
	struct arx_cq *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	cq->ib.device = &t->dev.ib;
	KUNIT_EXPECT_EQ(test, arx_create_cq(&cq->ib, &attr, NULL), -EINVAL);
	attr.cqe = ARX_MAX_CQE + 1;
	KUNIT_EXPECT_EQ(test, arx_create_cq(&cq->ib, &attr, NULL), -EINVAL);
	attr.cqe = 1;
	attr.flags = ~0;
	KUNIT_EXPECT_EQ(test, arx_create_cq(&cq->ib, &attr, NULL), -EOPNOTSUPP);
}

static struct kunit_case cq_cases[] = {
	KUNIT_CASE(cq__in_order),
	KUNIT_CASE(cq__of_a_dead_qp),
	KUNIT_CASE(cq__time_stamps),
	KUNIT_CASE(cq__overflow),
	KUNIT_CASE(cq__overrun_ignored),
	KUNIT_CASE(cq__vectors),
	KUNIT_CASE(cq__at_once),
	KUNIT_CASE(cq__too_many_at_once),
	KUNIT_CASE(cq__resized),
	KUNIT_CASE(cq__not_resized),
	KUNIT_CASE(cq__lying_consumer),
	KUNIT_CASE_PARAM(cq__armed_by_application, arming_gen_params),
	KUNIT_CASE(cq__moderated_by_count),
	KUNIT_CASE(cq__moderated_at_once),
	KUNIT_CASE(cq__moderated_by_period),
	KUNIT_CASE(cq__moderated_but_polled),
	KUNIT_CASE(cq__errors_are_not_moderated),
	KUNIT_CASE(cq__moderation_turned_off),
	KUNIT_CASE_PARAM(cq__armed_by_kernel, arming_gen_params),
	KUNIT_CASE(cq__request_is_not_weakened),
	KUNIT_CASE(cq__missed_events),
	KUNIT_CASE(cq__flags),
	KUNIT_CASE(cq__not_by_kernel_verbs),
	KUNIT_CASE(cq__create_out_of_range),
	{}
};

static struct kunit_suite cq_suite = {
	.name = "arx_cq",
	.init = cq_init,
	.exit = cq_exit,
	.test_cases = cq_cases,
};

kunit_test_suite(cq_suite);
