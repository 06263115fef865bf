// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* counter.c: a QP that is bound to a counter counts there and nowhere else. */

#include "counter.c"
#include "qp_fixture.h"

static int counter_init(struct kunit *test)
{
	struct pair *p = pair_new(test);

	test->priv = p;
	arx_counters_init(&p->dev);
	pair_connect(test, p, IB_QPT_RC);
	return 0;
}

static void counter_exit(struct kunit *test)
{
	struct pair *p = test->priv;

	if (!p)
		return;
	arx_counters_exit(&p->dev);
	pair_free(p);
}

/* One message from side 0 to side 1 */
static void message(struct kunit *test)
{
	struct pair *p = test->priv;

	KUNIT_ASSERT_EQ(test, pair_recv(p, 1, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, pair_send(p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED,
					0, 100), 0);
}

static u64 value_of(struct kunit *test, struct rdma_counter *counter,
		    enum arx_counter i)
{
	KUNIT_EXPECT_EQ(test, arx_counter_update_stats(counter), 0);
	return counter->stats->value[i];
}

static void open_counter(struct kunit *test, struct rdma_counter *counter)
{
	struct pair *p = test->priv;

	counter->device = &p->dev.ib;
	counter->port = 1;
	counter->stats = arx_counter_alloc_stats(counter);
	KUNIT_ASSERT_NOT_NULL(test, counter->stats);
}

static void counter__binds(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_stats __percpu *port = p->dev.stats;
	struct ib_qp *qp = &p->side[0].qp->ib;
	struct rdma_counter counter = {};

	open_counter(test, &counter);
	message(test);
	KUNIT_EXPECT_EQ(test, arx_stats_sum(port, ARX_CNT_RDMA_SENDS), 1);

	KUNIT_ASSERT_EQ(test, arx_counter_bind_qp(&counter, qp), 0);
	KUNIT_EXPECT_NE(test, counter.id, 0);
	KUNIT_EXPECT_PTR_EQ(test, qp->counter, &counter);
	KUNIT_EXPECT_EQ(test, value_of(test, &counter, ARX_CNT_RDMA_SENDS), 0);
	message(test);
	KUNIT_EXPECT_EQ(test, value_of(test, &counter, ARX_CNT_RDMA_SENDS), 1);
	KUNIT_EXPECT_EQ(test, arx_stats_sum(port, ARX_CNT_RDMA_SENDS), 1);
	/* its peer is not bound */
	KUNIT_EXPECT_EQ(test, value_of(test, &counter, ARX_CNT_RDMA_RECVS), 0);
	KUNIT_EXPECT_EQ(test, arx_stats_sum(port, ARX_CNT_RDMA_RECVS), 2);
	KUNIT_EXPECT_EQ(test, arx_stats_total(&p->dev, ARX_CNT_RDMA_SENDS), 2);

	KUNIT_EXPECT_EQ(test, arx_counter_unbind_qp(qp), 0);
	KUNIT_EXPECT_NULL(test, qp->counter);
	message(test);
	KUNIT_EXPECT_EQ(test, value_of(test, &counter, ARX_CNT_RDMA_SENDS), 1);
	KUNIT_EXPECT_EQ(test, arx_stats_sum(port, ARX_CNT_RDMA_SENDS), 2);
	KUNIT_EXPECT_EQ(test, arx_counter_dealloc(&counter), 0);
	rdma_free_hw_stats_struct(counter.stats);
}

/* A counter takes over the memory of one that ended, not its values. */
static void counter__reuses(struct kunit *test)
{
	struct pair *p = test->priv;
	struct ib_qp *qp = &p->side[0].qp->ib;
	struct rdma_counter first = {}, second = {}, third = {};

	open_counter(test, &first);
	open_counter(test, &second);
	open_counter(test, &third);
	KUNIT_ASSERT_EQ(test, arx_counter_bind_qp(&first, qp), 0);
	message(test);
	arx_counter_unbind_qp(qp);
	KUNIT_ASSERT_EQ(test, arx_counter_bind_qp(&second, qp), 0);
	KUNIT_EXPECT_NE(test, second.id, first.id);
	arx_counter_unbind_qp(qp);

	arx_counter_dealloc(&first);
	KUNIT_ASSERT_EQ(test, arx_counter_bind_qp(&third, qp), 0);
	KUNIT_EXPECT_EQ(test, third.id, first.id);
	KUNIT_EXPECT_EQ(test, value_of(test, &third, ARX_CNT_RDMA_SENDS), 0);
	message(test);
	KUNIT_EXPECT_EQ(test, value_of(test, &third, ARX_CNT_RDMA_SENDS), 1);
	KUNIT_EXPECT_EQ(test, value_of(test, &second, ARX_CNT_RDMA_SENDS), 0);
	KUNIT_EXPECT_EQ(test, arx_stats_total(&p->dev, ARX_CNT_RDMA_SENDS), 2);
	arx_counter_unbind_qp(qp);
	rdma_free_hw_stats_struct(first.stats);
	rdma_free_hw_stats_struct(second.stats);
	rdma_free_hw_stats_struct(third.stats);
}

static struct kunit_case counter_cases[] = {
	KUNIT_CASE(counter__binds),
	KUNIT_CASE(counter__reuses),
	{}
};

static struct kunit_suite counter_suite = {
	.name = "arx_counter",
	.init = counter_init,
	.exit = counter_exit,
	.test_cases = counter_cases,
};

kunit_test_suite(counter_suite);
