// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* order.c: which runs may be sent on another CPU. */

#include <net/sch_generic.h>

#include "qp_fixture.h"

/* NAPIs that the drain finds */
static LIST_HEAD(polls);

#undef this_cpu_ptr
#define this_cpu_ptr(list)	((void)(list), &polls)

#include "order.c"

#define OTHER	12345	/* number of no CPU of this machine */

/* Two QPs, and a netdev without a qdisc. One packet is queued. */
static struct pair *busy_pair(struct kunit *test, enum ib_qp_type type)
{
	struct pair *p = test->priv;
	typeof(noop_qdisc) *none;

	none = kunit_kzalloc(test, sizeof(*none), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, none);
	pair_connect(test, p, type);
	rcu_assign_pointer(netdev_get_tx_queue(p->dev.netdev, 0)->qdisc, none);
	p->waits = 1000;
	return p;
}

/* True if the run may be sent; a run that may not is counted. */
static bool may_send(struct kunit *test, struct arx_order *order,
		     enum arx_op op, u32 psn)
{
	struct pair *p = test->priv;
	struct arx_qp *qp = p->side[0].qp;
	struct arx_run run = {
		.h.op = op,
		.h.psn = psn,
		.again = arx_psn_diff(qp->req.nxt, psn) > 0,
	};
	u64 waited = count_of(p, ARX_CNT_TX_BEHIND);
	bool may;

	local_bh_disable();
	rcu_read_lock();
	may = arx_order_move(qp, order, &run);
	rcu_read_unlock();
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_TX_BEHIND), waited + !may);
	return may;
}

#define EXPECT_CPU(order, number) \
	KUNIT_EXPECT_EQ(test, (order)->cpu, number)

/*
 * Packets that have left the socket may not be delivered yet. Nothing is sent
 * before @drain has run on the CPU that delivers them.
 */
static void expect_drain(struct kunit *test, struct arx_order *order,
			 struct work_struct *drain, enum arx_op op, u32 psn)
{
	struct pair *p = test->priv;

	p->waits = 0;
	local_bh_disable();
	KUNIT_EXPECT_FALSE(test, may_send(test, order, op, psn));
	EXPECT_CPU(order, ARX_ORDER_DRAINS);
	KUNIT_EXPECT_FALSE(test, may_send(test, order, op, psn));
	local_bh_enable();
	flush_work(drain);
	EXPECT_CPU(order, ARX_ORDER_FREE);
	KUNIT_EXPECT_TRUE(test, may_send(test, order, op, psn));
}

static void order__requests(struct kunit *test)
{
	struct pair *p = busy_pair(test, IB_QPT_RC);
	struct arx_order *order = &p->side[0].qp->req.out.order;
	u32 una = p->side[0].qp->comp.una;

	EXPECT_CPU(order, ARX_ORDER_FREE);
	KUNIT_EXPECT_TRUE(test, may_send(test, order, ARX_OP_WRITE, una + 1));
	EXPECT_CPU(order, raw_smp_processor_id());

	order->cpu = OTHER;
	KUNIT_EXPECT_FALSE(test, may_send(test, order, ARX_OP_WRITE, una + 1));
	EXPECT_CPU(order, OTHER);
	/* All earlier ones have arrived. */
	KUNIT_EXPECT_TRUE(test, may_send(test, order, ARX_OP_WRITE, una));
	EXPECT_CPU(order, raw_smp_processor_id());

	/* A CPU that is offline has nothing left to deliver. */
	order->cpu = OTHER;
	p->waits = 0;
	KUNIT_EXPECT_TRUE(test, may_send(test, order, ARX_OP_WRITE, una + 1));
}

/*
 * The oldest request is sent again: later ones may be in flight, but packets
 * that are queued for ever do not keep it.
 */
static void order__again(struct kunit *test)
{
	struct pair *p = busy_pair(test, IB_QPT_RC);
	struct arx_qp *qp = p->side[0].qp;
	struct arx_order *order = &qp->req.out.order;
	u32 una = qp->comp.una;

	qp->req.nxt = arx_psn_add(una, 2);
	order->cpu = OTHER;
	KUNIT_EXPECT_FALSE(test, may_send(test, order, ARX_OP_WRITE, una + 1));
	KUNIT_EXPECT_TRUE(test, may_send(test, order, ARX_OP_WRITE, una));
	EXPECT_CPU(order, raw_smp_processor_id());

	expect_drain(test, order, &qp->req.drain, ARX_OP_WRITE, una);
}

static void order__responses(struct kunit *test)
{
	struct pair *p = busy_pair(test, IB_QPT_RC);
	struct arx_order *order = &p->side[0].qp->resp.out.order;
	enum arx_op rd = ARX_OP_READ_RESPONSE;

	/* Nothing has to follow an ACK. */
	KUNIT_EXPECT_TRUE(test, may_send(test, order, ARX_OP_ACK, 1));
	EXPECT_CPU(order, ARX_ORDER_FREE);
	KUNIT_EXPECT_TRUE(test, may_send(test, order, rd, 2));
	EXPECT_CPU(order, raw_smp_processor_id());

	order->cpu = OTHER;
	KUNIT_EXPECT_FALSE(test, may_send(test, order, rd, 3));
	KUNIT_EXPECT_FALSE(test, may_send(test, order, ARX_OP_ATOMIC_ACK, 3));
	KUNIT_EXPECT_FALSE(test, may_send(test, order, ARX_OP_ACK, 3));
	EXPECT_CPU(order, OTHER);
	p->waits = 0;
	order->cpu = raw_smp_processor_id();
	KUNIT_EXPECT_TRUE(test, may_send(test, order, ARX_OP_ACK, 3));
	EXPECT_CPU(order, ARX_ORDER_FREE);
}

static void order__qdisc(struct kunit *test)
{
	struct pair *p = busy_pair(test, IB_QPT_UC);
	struct arx_order *order = &p->side[0].qp->req.out.order;

	rcu_assign_pointer(netdev_get_tx_queue(p->dev.netdev, 0)->qdisc,
			   &noop_qdisc);
	order->cpu = OTHER;
	KUNIT_EXPECT_TRUE(test, may_send(test, order, ARX_OP_WRITE, 1));
	EXPECT_CPU(order, raw_smp_processor_id());
}

/* A packet waits while others are queued, and then for the drain. */
static void expect_drained(struct kunit *test, struct arx_order *order,
			   struct work_struct *drain, enum arx_op op)
{
	struct pair *p = test->priv;
	u32 psn = arx_psn_add(p->side[0].qp->comp.una, 1);

	/* This CPU stands for the other one, which must be online. */
	order->cpu = raw_smp_processor_id();
	KUNIT_EXPECT_FALSE(test, may_send(test, order, op, psn));
	EXPECT_CPU(order, raw_smp_processor_id());

	expect_drain(test, order, drain, op, psn);
	p->waits = 1000;
}

static void order__drain_uc(struct kunit *test)
{
	struct arx_qp *qp = busy_pair(test, IB_QPT_UC)->side[0].qp;

	expect_drained(test, &qp->req.out.order, &qp->req.drain, ARX_OP_WRITE);
}

/* Both stages, each by itself */
static void order__drain_rc(struct kunit *test)
{
	struct arx_qp *qp = busy_pair(test, IB_QPT_RC)->side[0].qp;
	struct arx_order *requests = &qp->req.out.order;
	struct arx_order *responses = &qp->resp.out.order;

	expect_drained(test, requests, &qp->req.drain, ARX_OP_WRITE);
	responses->cpu = ARX_ORDER_DRAINS;
	expect_drained(test, requests, &qp->req.drain, ARX_OP_WRITE);
	EXPECT_CPU(responses, ARX_ORDER_DRAINS);
	requests->cpu = ARX_ORDER_DRAINS;
	expect_drained(test, responses, &qp->resp.drain, ARX_OP_READ_RESPONSE);
	EXPECT_CPU(requests, ARX_ORDER_DRAINS);
}

/* A CPU that has more packets to deliver is drained again, but not for ever. */
static void order__drain_again(struct kunit *test)
{
	struct arx_qp *qp = busy_pair(test, IB_QPT_RC)->side[0].qp;
	struct arx_order *order = &qp->req.out.order;
	int here = raw_smp_processor_id();
	LIST_HEAD(napi);
	u32 i;

	list_add(&napi, &polls);
	for (i = 0; i <= ARX_ORDER_TRIES; i++) {
		order->cpu = ARX_ORDER_DRAINS;
		order->next = here;
		local_bh_disable();
		arx_order_requests_drained(&qp->req.drain);
		local_bh_enable();
		EXPECT_CPU(order, i < ARX_ORDER_TRIES ? here : ARX_ORDER_FREE);
	}
	order->cpu = ARX_ORDER_DRAINS;
	local_bh_disable();
	arx_order_requests_drained(&qp->req.drain);
	EXPECT_CPU(order, here);
	list_del(&napi);
	order->cpu = ARX_ORDER_DRAINS;
	arx_order_requests_drained(&qp->req.drain);
	local_bh_enable();
	EXPECT_CPU(order, ARX_ORDER_FREE);
	KUNIT_EXPECT_EQ(test, order->tries, ARX_ORDER_TRIES);
}

/* A consumer ends a QP whose responses wait for another CPU. */
static void order__settles(struct kunit *test)
{
	struct arx_qp *qp = busy_pair(test, IB_QPT_RC)->side[0].qp;
	struct arx_order *order = &qp->resp.out.order;

	order->cpu = ARX_ORDER_DRAINS;
	order->next = raw_smp_processor_id();
	/* Out of interrupts, another thread runs it. */
	queue_work(system_bh_wq, &qp->resp.drain);
	arx_order_settle(qp);
	EXPECT_CPU(order, ARX_ORDER_FREE);
}

static struct kunit_case order_cases[] = {
	KUNIT_CASE(order__requests),
	KUNIT_CASE(order__again),
	KUNIT_CASE(order__responses),
	KUNIT_CASE(order__qdisc),
	KUNIT_CASE(order__drain_uc),
	KUNIT_CASE(order__drain_rc),
	KUNIT_CASE(order__drain_again),
	KUNIT_CASE(order__settles),
	{}
};

static struct kunit_suite order_suite = {
	.name = "arx_order",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = order_cases,
};

kunit_test_suite(order_suite);
