// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * sock.c: how many bytes a QP may have queued, and when it goes on. The
 * packets' owner is a real socket; ending a packet is kfree_skb().
 */

#include "qp_fixture.h"

/* The clock that sock.c reads, and the number of times it schedules the QP. */
static u64 clock;
static int scheduled;

static void count_schedule(struct arx_qp *qp)
{
	scheduled++;
}

/* The fixture has a wire of its own with the names of sock.c. */
#define ktime_get_ns()			clock
#define arx_qp_schedule			count_schedule
#define arx_sock_init			tested_init
#define arx_sock_forget			tested_forget
#define arx_sock_cleanup		tested_cleanup
#define arx_sock_waits			tested_waits
#define arx_sock_is_empty		tested_is_empty
#define arx_sock_has_room		tested_has_room
#define arx_sock_wake_on_less		tested_wake_on_less
#define arx_sock_icrc_computed		tested_icrc_computed

#include "sock.c"

/* One byte remains charged to the socket while a packet ends. */
#define PACKET	(ARX_SOCK_LEAST / 16)

struct queue {
	struct arx_qp qp;
	struct sk_buff_head packets;
};

static struct queue *queue_of(struct kunit *test)
{
	return test->priv;
}

static int sock_init(struct kunit *test)
{
	struct queue *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);

	if (!q)
		return -ENOMEM;
	q->qp.stats = alloc_percpu(struct arx_stats);
	if (!q->qp.stats)
		return -ENOMEM;
	skb_queue_head_init(&q->packets);
	clock = NSEC_PER_SEC;
	scheduled = 0;
	test->priv = q;
	return tested_init(&q->qp);
}

static void sock_exit(struct kunit *test)
{
	struct queue *q = queue_of(test);

	if (!q)
		return;
	skb_queue_purge(&q->packets);
	if (q->qp.tx_sk) {
		tested_forget(&q->qp);
		tested_cleanup(&q->qp);
	}
	free_percpu(q->qp.stats);
}

/* Queue packets as long as there is room; their number. */
static int fill(struct kunit *test)
{
	struct queue *q = queue_of(test);
	int n;

	for (n = 0; n < 1000 && tested_has_room(&q->qp); n++) {
		struct sk_buff *skb = alloc_skb(64, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, skb);
		skb->truesize = PACKET;
		skb_set_owner_w(skb, q->qp.tx_sk);
		__skb_queue_tail(&q->packets, skb);
	}
	return n;
}

/* @n packets leave, @ns after the one before; how often the QP was scheduled */
static int leave(struct kunit *test, int n, u64 ns)
{
	scheduled = 0;
	while (n--) {
		clock += ns;
		kfree_skb(__skb_dequeue(&queue_of(test)->packets));
	}
	return scheduled;
}

static u64 blocked(struct kunit *test)
{
	return arx_stats_sum(queue_of(test)->qp.stats, ARX_CNT_TX_BLOCKED);
}

/* The QP goes on once, when half has left. */
static void sock__half(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, fill(test), 16);
	KUNIT_EXPECT_EQ(test, blocked(test), 1);
	KUNIT_EXPECT_EQ(test, leave(test, 7, 1), 0);
	KUNIT_EXPECT_EQ(test, leave(test, 2, 1), 1);
	KUNIT_EXPECT_EQ(test, leave(test, 6, 1), 0);
	KUNIT_EXPECT_EQ(test, fill(test), 15);
}

/* A queue that runs empty may become longer, up to a limit. */
static void sock__empty(struct kunit *test)
{
	int n = 16;

	while (n <= 128) {
		KUNIT_EXPECT_EQ(test, fill(test), n);
		KUNIT_EXPECT_EQ(test, leave(test, n, 1), 1);
		n *= 2;
	}
	KUNIT_EXPECT_EQ(test, fill(test), 128);
}

/* A virtual card whose consumer takes all at long intervals is not slow. */
static void sock__bursts(struct kunit *test)
{
	fill(test);
	clock += 10 * NSEC_PER_MSEC;
	KUNIT_EXPECT_EQ(test, leave(test, 16, 1), 1);
	KUNIT_EXPECT_EQ(test, fill(test), 32);
}

static void grow(struct kunit *test)
{
	leave(test, fill(test), 1);
	KUNIT_ASSERT_EQ(test, leave(test, fill(test), 1), 1);
	KUNIT_ASSERT_EQ(test, fill(test), 64);
}

/* A queue whose half takes long to leave becomes shorter, down to a limit. */
static void sock__slow(struct kunit *test)
{
	grow(test);
	KUNIT_EXPECT_EQ(test, leave(test, 33, 100 * NSEC_PER_USEC), 1);
	/* 31 are left of 32 */
	KUNIT_EXPECT_EQ(test, fill(test), 1);
	KUNIT_EXPECT_EQ(test, leave(test, 17, 200 * NSEC_PER_USEC), 1);
	KUNIT_EXPECT_EQ(test, fill(test), 1);
	KUNIT_EXPECT_EQ(test, leave(test, 9, NSEC_PER_MSEC), 1);
	KUNIT_EXPECT_EQ(test, fill(test), 9);
}

/* What leaves in time keeps its length. */
static void sock__fast(struct kunit *test)
{
	int i;

	grow(test);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, leave(test, 33, 50 * NSEC_PER_USEC), 1);
		KUNIT_EXPECT_EQ(test, fill(test), 33);
	}
}

/* Half of the packets leave while the stage finds the socket full. */
static void sock__recheck(struct kunit *test)
{
	struct queue *q = queue_of(test);

	fill(test);
	leave(test, 9, 1);
	/* as if both had happened before the stage set the state */
	q->qp.tx_state = ARX_SOCK_ROOM;
	scheduled = 0;
	KUNIT_EXPECT_FALSE(test, arx_sock_block(&q->qp));
	KUNIT_EXPECT_EQ(test, scheduled, 1);
	KUNIT_EXPECT_EQ(test, q->qp.tx_state, ARX_SOCK_ROOM);
}

/* Packets that must not be overtaken: the next one that ends starts the QP. */
static void sock__behind(struct kunit *test)
{
	struct queue *q = queue_of(test);

	KUNIT_EXPECT_TRUE(test, tested_is_empty(&q->qp));
	fill(test);
	leave(test, 16, 1);
	fill(test);
	KUNIT_EXPECT_FALSE(test, tested_is_empty(&q->qp));
	KUNIT_EXPECT_EQ(test, leave(test, 1, 1), 1);
	KUNIT_EXPECT_EQ(test, leave(test, 1, 1), 0);
}

/* Packets in flight do not lead to a QP that is gone. */
static void sock__forgotten(struct kunit *test)
{
	struct queue *q = queue_of(test);

	fill(test);
	tested_forget(&q->qp);
	KUNIT_EXPECT_EQ(test, leave(test, 16, 1), 0);
}

static struct kunit_case sock_cases[] = {
	KUNIT_CASE(sock__half),
	KUNIT_CASE(sock__empty),
	KUNIT_CASE(sock__bursts),
	KUNIT_CASE(sock__slow),
	KUNIT_CASE(sock__fast),
	KUNIT_CASE(sock__recheck),
	KUNIT_CASE(sock__behind),
	KUNIT_CASE(sock__forgotten),
	{}
};

static struct kunit_suite sock_suite = {
	.name = "arx_sock",
	.init = sock_init,
	.exit = sock_exit,
	.test_cases = sock_cases,
};

kunit_test_suite(sock_suite);
