// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* watch.c: when the kernel polls a send ring without a doorbell. */

#include <linux/delay.h>
#include <linux/sched/clock.h>
#include <linux/sched/stat.h>

#include "qp_fixture.h"
#include "watch.h"
#include "worker.h"

/* microseconds; no timer expires */
#define FOREVER	1000000000
#define IDLE	20		/* intervals without requests until the end */

static struct arx_qp *watched_qp(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_qp *qp;

	p->dev.doorbell_usecs = FOREVER;
	pair_connect(test, p, IB_QPT_RC);
	qp = p->side[0].qp;
	qp->ib.uobject = (void *)p;	/* only its existence matters */
	pair_make_worker(test, qp);
	return qp;
}

/* Like an application, without a kick. */
static void post_from(struct kunit *test, int from, u32 n, int flags,
		      u32 len)
{
	struct pair *p = test->priv;
	struct arx_qp *qp = p->side[from].qp;
	u32 prod = READ_ONCE(qp->sq.hdr->prod);
	u32 end = prod + n;

	for (; prod != end; prod++) {
		struct arx_send_wqe *wqe = arx_ring_entry(&qp->sq, prod);
		struct arx_sge *sge = (struct arx_sge *)(wqe + 1);

		memset(wqe, 0, sizeof(*wqe));
		wqe->num_sge = 1;
		wqe->opcode = IB_WR_RDMA_WRITE;
		wqe->flags = flags;
		wqe->rdma.remote_addr = IOVA;
		wqe->rdma.rkey = p->side[!from].mr.key.value;
		sge->addr = (uintptr_t)p->side[from].buf;
		sge->length = len;
		sge->lkey = p->dma->lkey;
	}
	arx_ring_produce(&qp->sq, end);
}

static void post(struct kunit *test, u32 n, int flags, u32 len)
{
	post_from(test, 0, n, flags, len);
}

static void post_and_kick(struct kunit *test, u32 n, int flags, u32 len)
{
	while (n--) {
		post(test, 1, flags, len);
		pair_requester(test->priv, 0);
	}
}

static void poll_all(struct pair *p)
{
	struct arx_cq *cq = &p->side[0].scq;

	arx_ring_consume(&cq->ring, cq->prod);
}

#define EXPECT_FLAGS(test, qp, f) \
	KUNIT_EXPECT_EQ(test, READ_ONCE((qp)->sq.hdr->flags), f)

static void watch__begins(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);

	post_and_kick(test, 7, 0, 8);
	EXPECT_FLAGS(test, qp, 0);
	post_and_kick(test, 1, 0, 8);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
}

/* Completions that were not polled count like requests without a completion. */
static void watch__begins_with_completions(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);

	post_and_kick(test, 8, IB_SEND_SIGNALED, 8);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
}

static void watch__not_for_one_at_a_time(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	int i;

	for (i = 0; i < 50; i++) {
		post_and_kick(test, 1, IB_SEND_SIGNALED, 8);
		poll_all(test->priv);
		EXPECT_FLAGS(test, qp, 0);
	}
}

/* A program that answers each message has only the answer outstanding. */
static void watch__not_for_answers(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	struct arx_qp *peer = ((struct pair *)test->priv)->side[1].qp;
	int i;

	for (i = 0; i < 50; i++) {
		post_from(test, 1, 1, 0, 8);
		pair_requester(test->priv, 1);
		KUNIT_ASSERT_EQ(test, qp->resp.msn, i + 1);
		post_and_kick(test, 1, 0, 8);
		EXPECT_FLAGS(test, qp, 0);
	}
	post_and_kick(test, 8, 0, 8);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
	/* The end of the peer counts by sq_prod, which post_from() leaves. */
	peer->sq_prod = peer->req.fetched;
}

static void watch__not_for_kernel_consumers(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	struct ib_uqp_object *uobject = qp->ib.uobject;

	qp->ib.uobject = NULL;
	post_and_kick(test, 12, 0, 8);
	EXPECT_FLAGS(test, qp, 0);
	/*
	 * The end of polling must not count by sq_prod, which is for kernel
	 * consumers.
	 */
	qp->ib.uobject = uobject;
}

/* A requester alone cannot tell a stream from answers. */
static void watch__not_for_a_requester_alone(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_qp *qp;

	p->dev.doorbell_usecs = FOREVER;
	pair_connect_halves(test, p);
	qp = p->side[0].qp;
	qp->ib.uobject = (void *)p;
	post_and_kick(test, 14, 0, 8);
	EXPECT_FLAGS(test, qp, 0);
}

static void watch__turned_off(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);

	((struct pair *)test->priv)->dev.doorbell_usecs = 0;
	post_and_kick(test, 12, 0, 8);
	EXPECT_FLAGS(test, qp, 0);
}

/* While it polls: a time of 0 must not make it poll without end. */
static void watch__turned_off_meanwhile(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);

	post_and_kick(test, 8, 0, 8);
	((struct pair *)test->priv)->dev.doorbell_usecs = 0;
	post(test, 3, 0, 8);
	pair_look(test->priv, 0);
	KUNIT_EXPECT_EQ(test, qp->req.fetched, 11);
	EXPECT_FLAGS(test, qp, 0);
}

/* A poll after the reset state, as in a QP that is destroyed. */
static void watch__look_after_reset(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	struct pair *p = test->priv;

	post_and_kick(test, 8, 0, 8);
	KUNIT_EXPECT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, IB_QP_STATE), 0);
	hrtimer_cancel(&qp->watch.timer);
	pair_look(p, 0);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&qp->watch.timer));
}

static void watch__looks(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);

	post_and_kick(test, 8, 0, 8);
	post(test, 3, 0, 8);
	KUNIT_EXPECT_EQ(test, qp->req.fetched, 8);
	pair_look(test->priv, 0);
	KUNIT_EXPECT_EQ(test, qp->req.fetched, 11);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);

	pair_look(test->priv, 0);
	pair_look(test->priv, 0);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
	post(test, 2, 0, 8);
	pair_look(test->priv, 0);
	KUNIT_EXPECT_EQ(test, qp->req.fetched, 13);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
}

/*
 * What was posted counts, not the part of it that a softirq may copy: the
 * credit is enough for one message, and one message is no stream.
 */
static void watch__counts_what_was_posted(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);

	post_and_kick(test, 8, 0, 8);
	WRITE_ONCE(qp->req.local, true);
	qp->req.credit = qp->mtu - 64 * 256;
	post(test, 4, 0, qp->mtu);
	pair_look(test->priv, 0);
	KUNIT_EXPECT_EQ(test, qp->req.fetched, 9);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
}

static void watch__ends_in_vain(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	int i;

	post_and_kick(test, 8, 0, 8);
	for (i = 0; i < IDLE; i++) {
		EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
		pair_look(test->priv, 0);
		if (!i)
			KUNIT_EXPECT_EQ(test, qp->watch.idle, 1);
	}
	EXPECT_FLAGS(test, qp, 0);

	/* Only a new stream starts it again. */
	post_and_kick(test, 7, 0, 8);
	EXPECT_FLAGS(test, qp, 0);
	post_and_kick(test, 1, 0, 8);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
}

/* The timer of a stream that is over does not end an interval of the next. */
static void watch__old_interval(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);

	pair_look(test->priv, 0);
	post_and_kick(test, 8, 0, 8);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
	post_and_kick(test, 1, 0, 8);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
}

/* The worker has been woken to poll. */
static void watch__wakes_the_worker(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);

	post_and_kick(test, 7, 0, 8);
	KUNIT_EXPECT_TRUE(test, list_empty(&qp->late_link));
	post_and_kick(test, 1, 0, 8);
	KUNIT_EXPECT_FALSE(test, list_empty(&qp->late_link));
	/* Each interval wakes the worker again. */
	list_del_init(&qp->late_link);
	post(test, 2, 0, 8);
	pair_look(test->priv, 0);
	KUNIT_EXPECT_FALSE(test, list_empty(&qp->late_link));
}

/*
 * The worker polls on while requests come, although a poll took long, and for a
 * while after that, if no other task wants the CPU.
 */
static void watch__polls_again(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	bool alone, again, late, slow, found;
	int tries = 1000;

	post_and_kick(test, 8, 0, 8);
	while (!single_task_running() && tries--)
		fsleep(USEC_PER_MSEC);
	qp->watch.found = local_clock();
	again = arx_watch_again(qp, qp->watch.found);
	qp->watch.found -= NSEC_PER_MSEC;
	late = arx_watch_again(qp, qp->watch.found);
	slow = arx_watch_again(qp, qp->watch.found - 1);
	post(test, 1, 0, 8);
	pair_requester(test->priv, 0);
	found = arx_watch_again(qp, qp->watch.found);
	alone = single_task_running();
	if (!alone)
		kunit_skip(test, "another task is waiting for this CPU");
	KUNIT_EXPECT_TRUE(test, again);
	KUNIT_EXPECT_FALSE(test, late);
	KUNIT_EXPECT_TRUE(test, slow);
	KUNIT_EXPECT_TRUE(test, found);
	KUNIT_EXPECT_EQ(test, pair_modify(test->priv, 0, IB_QPS_RESET,
					  IB_QP_STATE), 0);
	KUNIT_EXPECT_FALSE(test, arx_watch_again(qp, qp->watch.found));
}

/*
 * Streams come in bursts: after one burst, the next need not prove itself
 * again.
 */
static void watch__begins_again(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	int i;

	post_and_kick(test, 8, 0, 8);
	post(test, 2, 0, 8);
	for (i = 0; i < IDLE + 1; i++)
		pair_look(test->priv, 0);
	EXPECT_FLAGS(test, qp, 0);
	/* A response alone is no reason. */
	pair_requester(test->priv, 0);
	EXPECT_FLAGS(test, qp, 0);
	post_and_kick(test, 1, 0, 8);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);

	/* This polling was fruitless. */
	for (i = 0; i < IDLE; i++)
		pair_look(test->priv, 0);
	post_and_kick(test, 7, 0, 8);
	EXPECT_FLAGS(test, qp, 0);
}

static void watch__forgets(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	struct pair *p = test->priv;

	post_and_kick(test, 8, 0, 8);
	post(test, 2, 0, 8);
	pair_look(p, 0);
	KUNIT_EXPECT_EQ(test, qp->watch.recheck, 1);
	KUNIT_EXPECT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, IB_QP_STATE), 0);
	KUNIT_EXPECT_GT(test, qp->watch.recheck, 1);
}

/*
 * A single request in all that time is no stream, and waited for the timer
 * needlessly.
 */
static void watch__ends_with_one(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);

	post_and_kick(test, 8, 0, 8);
	pair_look(test->priv, 0);
	post(test, 1, 0, 8);
	pair_look(test->priv, 0);
	KUNIT_EXPECT_EQ(test, qp->req.fetched, 9);
	EXPECT_FLAGS(test, qp, 0);
}

/* Posted after the last poll, before the flag was clear: no kick comes. */
static void watch__posted_while_it_ends(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	int i;

	post_and_kick(test, 8, 0, 8);
	for (i = 0; i < IDLE - 1; i++)
		pair_look(test->priv, 0);

	local_bh_disable();
	spin_lock(&qp->req.lock);
	post(test, 1, 0, 8);
	set_bit(ARX_REQ_POLL, &qp->req.pending);
	KUNIT_EXPECT_FALSE(test, arx_watch_update(qp));
	spin_unlock(&qp->req.lock);
	local_bh_enable();
	EXPECT_FLAGS(test, qp, 0);
}

static void watch__ends_with_the_connection(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	struct pair *p = test->priv;

	post_and_kick(test, 8, 0, 8);
	EXPECT_FLAGS(test, qp, ARX_RING_NO_KICK);
	KUNIT_EXPECT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, IB_QP_STATE), 0);
	EXPECT_FLAGS(test, qp, 0);
	pair_look(p, 0);
	EXPECT_FLAGS(test, qp, 0);
}

/*
 * In the error state requests that are posted without a kick are flushed, too.
 */
static void watch__flushes(struct kunit *test)
{
	struct arx_qp *qp = watched_qp(test);
	struct pair *p = test->priv;

	post_and_kick(test, 8, 0, 8);
	KUNIT_EXPECT_EQ(test, pair_modify(p, 0, IB_QPS_ERR, IB_QP_STATE), 0);
	pair_settle(p);
	post(test, 2, 0, 8);
	pair_look(p, 0);
	KUNIT_EXPECT_EQ(test, qp->comp.done, 10);
}

static struct kunit_case watch_cases[] = {
	KUNIT_CASE(watch__begins),
	KUNIT_CASE(watch__begins_with_completions),
	KUNIT_CASE(watch__not_for_one_at_a_time),
	KUNIT_CASE(watch__not_for_answers),
	KUNIT_CASE(watch__not_for_kernel_consumers),
	KUNIT_CASE(watch__not_for_a_requester_alone),
	KUNIT_CASE(watch__turned_off),
	KUNIT_CASE(watch__turned_off_meanwhile),
	KUNIT_CASE(watch__look_after_reset),
	KUNIT_CASE(watch__looks),
	KUNIT_CASE(watch__counts_what_was_posted),
	KUNIT_CASE(watch__ends_in_vain),
	KUNIT_CASE(watch__old_interval),
	KUNIT_CASE(watch__wakes_the_worker),
	KUNIT_CASE(watch__polls_again),
	KUNIT_CASE(watch__begins_again),
	KUNIT_CASE(watch__forgets),
	KUNIT_CASE(watch__ends_with_one),
	KUNIT_CASE(watch__posted_while_it_ends),
	KUNIT_CASE(watch__ends_with_the_connection),
	KUNIT_CASE(watch__flushes),
	{}
};

static struct kunit_suite watch_suite = {
	.name = "arx_watch",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = watch_cases,
};

kunit_test_suite(watch_suite);
