// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* order.c: which runs may be sent on another CPU. */

#include <net/sch_generic.h>

#include "qp_fixture.h"

#include "order.c"

#define OTHER	12345	/* number of no CPU of this machine */

/* Two QPs, and a netdev without a qdisc. One packet is in flight. */
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
	struct arx_run run = { .h.op = op, .h.psn = psn };
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

	order->cpu = OTHER;
	p->waits = 0;
	KUNIT_EXPECT_TRUE(test, may_send(test, order, ARX_OP_WRITE, una + 1));
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

/* Packets of UC that have left the socket may not be delivered yet. */
static void order__drain(struct kunit *test)
{
	struct pair *p = busy_pair(test, IB_QPT_UC);
	struct arx_qp *qp = p->side[0].qp;
	struct arx_order *order = &qp->req.out.order;
	u32 psn = qp->comp.una;

	/* This CPU stands for the other one, which must be online. */
	order->cpu = raw_smp_processor_id();
	KUNIT_EXPECT_FALSE(test, may_send(test, order, ARX_OP_WRITE, psn));
	EXPECT_CPU(order, raw_smp_processor_id());

	p->waits = 0;
	local_bh_disable();
	KUNIT_EXPECT_FALSE(test, may_send(test, order, ARX_OP_WRITE, psn));
	EXPECT_CPU(order, ARX_ORDER_DRAINS);
	KUNIT_EXPECT_FALSE(test, may_send(test, order, ARX_OP_WRITE, psn));
	local_bh_enable();
	flush_work(&qp->tx_drain);
	EXPECT_CPU(order, ARX_ORDER_FREE);
	KUNIT_EXPECT_TRUE(test, may_send(test, order, ARX_OP_WRITE, psn));
}

static struct kunit_case order_cases[] = {
	KUNIT_CASE(order__requests),
	KUNIT_CASE(order__responses),
	KUNIT_CASE(order__qdisc),
	KUNIT_CASE(order__drain),
	{}
};

static struct kunit_suite order_suite = {
	.name = "arx_order",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = order_cases,
};

kunit_test_suite(order_suite);
