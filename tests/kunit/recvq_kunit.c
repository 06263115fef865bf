// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* recvq.c: taking of receive WQEs. */

#include <kunit/test.h>

#include "recvq.c"

#define WQES	4
#define SGES	3

static int recvq_init(struct kunit *test)
{
	struct arx_recvq *q = kunit_kzalloc(test, sizeof(*q), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, q);
	KUNIT_ASSERT_EQ(test, arx_recvq_init(q, WQES, SGES, NULL, NULL), 0);
	test->priv = q;
	return 0;
}

static void recvq_exit(struct kunit *test)
{
	arx_recvq_cleanup(test->priv);
}

/* Like the driver. */
static int take_news(struct kunit *test, struct arx_rwqe *wqe,
		     enum arx_recvq_news *news)
{
	int err;

	local_bh_disable();
	err = arx_recvq_take(test->priv, wqe, news);
	local_bh_enable();
	return err;
}

static int take(struct kunit *test, struct arx_rwqe *wqe)
{
	enum arx_recvq_news news;
	int err = take_news(test, wqe, &news);

	KUNIT_EXPECT_EQ(test, news, ARX_RECVQ_NO_NEWS);
	return err;
}

static int post(struct kunit *test, u64 wr_id, int num_sge, u32 length)
{
	struct ib_sge sge[SGES + 1];
	struct ib_recv_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = num_sge,
	};
	const struct ib_recv_wr *bad = NULL;
	int i, err;

	for (i = 0; i < num_sge && i <= SGES; i++)
		sge[i] = (struct ib_sge) {
			.addr = 0x1000 * (i + 1),
			.length = length,
			.lkey = 0x100 + i,
		};
	err = arx_recvq_post(test->priv, &wr, &bad);
	KUNIT_EXPECT_PTR_EQ(test, bad, err ? &wr : NULL);
	return err;
}

static void recvq__empty(struct kunit *test)
{
	struct arx_rwqe wqe;

	KUNIT_EXPECT_EQ(test, take(test, &wqe), -ENOENT);
}

static void recvq__in_order(struct kunit *test)
{
	struct arx_recvq *q = test->priv;
	struct arx_rwqe wqe;
	u64 id = 0;
	int i;

	/* Many times around the ring. */
	for (i = 0; i < 10 * WQES; i++) {
		KUNIT_ASSERT_EQ(test, post(test, 2 * id, 1, 10), 0);
		KUNIT_ASSERT_EQ(test, post(test, 2 * id + 1, SGES, 100), 0);
		KUNIT_ASSERT_EQ(test, take(test, &wqe), 0);
		KUNIT_EXPECT_EQ(test, wqe.wr_id, 2 * id);
		KUNIT_EXPECT_EQ(test, wqe.length, 10);
		KUNIT_ASSERT_EQ(test, take(test, &wqe), 0);
		KUNIT_EXPECT_EQ(test, wqe.wr_id, 2 * id + 1);
		KUNIT_EXPECT_EQ(test, wqe.num_sge, SGES);
		KUNIT_EXPECT_EQ(test, wqe.length, SGES * 100);
		KUNIT_EXPECT_EQ(test, wqe.sge[2].addr, 0x3000);
		KUNIT_EXPECT_EQ(test, wqe.sge[2].lkey, 0x102);
		id++;
	}
	KUNIT_EXPECT_EQ(test, q->ring.hdr->cons, 20 * WQES);
}

static void recvq__post_until_full(struct kunit *test)
{
	struct arx_rwqe wqe;
	int i;

	for (i = 0; i < WQES; i++)
		KUNIT_ASSERT_EQ(test, post(test, i, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, post(test, i, 0, 0), -ENOMEM);
	KUNIT_ASSERT_EQ(test, take(test, &wqe), 0);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, 0);
	KUNIT_EXPECT_EQ(test, wqe.length, 0);
	KUNIT_EXPECT_EQ(test, post(test, i, 0, 0), 0);
}

static void recvq__post_bad(struct kunit *test)
{
	struct arx_rwqe wqe;

	KUNIT_EXPECT_EQ(test, post(test, 1, SGES + 1, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, post(test, 1, -1, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, take(test, &wqe), -ENOENT);
}

/* Entries that an application which writes its own ring can put there. */
struct hostile {
	const char *name;
	u32 num_sge;
	u32 length[SGES];
	u32 prod;
	int err;
	bool taken;
};

static const struct hostile hostiles[] = {
	{ .name = "good", .num_sge = 1, .length = { 1 }, .prod = 1,
	  .taken = true },
	{ .name = "too many SGEs", .num_sge = SGES + 1, .prod = 1,
	  .err = -EINVAL, .taken = true },
	{ .name = "SGEs overflow", .num_sge = U32_MAX, .prod = 1,
	  .err = -EINVAL, .taken = true },
	{ .name = "2 GiB", .num_sge = 2, .prod = 1, .taken = true,
	  .length = { 0x80000000 } },
	{ .name = "2 GiB and 1", .num_sge = 2, .prod = 1, .taken = true,
	  .length = { 0x80000000, 1 }, .err = -EINVAL },
	{ .name = "lengths overflow", .num_sge = 3, .prod = 1, .taken = true,
	  .length = { U32_MAX, U32_MAX, 3 }, .err = -EINVAL },
	{ .name = "prod too far", .prod = WQES + 1, .err = -EIO },
	{ .name = "prod behind", .prod = U32_MAX, .err = -EIO },
};

static void hostile_name(const struct hostile *h, char *name)
{
	strscpy(name, h->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(hostile, hostiles, hostile_name);

static void recvq__hostile(struct kunit *test)
{
	const struct hostile *h = test->param_value;
	struct arx_recvq *q = test->priv;
	struct arx_recv_wqe *wqe = arx_ring_entry(&q->ring, 0);
	struct arx_sge *sge = (struct arx_sge *)(wqe + 1);
	enum arx_recvq_news news;
	struct arx_rwqe got = {};
	int i;

	wqe->wr_id = 77;
	wqe->num_sge = h->num_sge;
	for (i = 0; i < SGES; i++)
		sge[i].length = h->length[i];
	q->ring.hdr->prod = h->prod;

	KUNIT_EXPECT_EQ(test, take_news(test, &got, &news), h->err);
	KUNIT_EXPECT_EQ(test, news, h->err == -EIO ? ARX_RECVQ_FAILED :
						     ARX_RECVQ_NO_NEWS);
	KUNIT_EXPECT_EQ(test, q->cons, h->taken);
	KUNIT_EXPECT_EQ(test, q->ring.hdr->cons, h->taken);
	if (h->taken)
		KUNIT_EXPECT_EQ(test, got.wr_id, 77);
}

/* A malformed ring is reported once, and not used again until reset. */
static void recvq__fails_once(struct kunit *test)
{
	struct arx_recvq *q = test->priv;
	enum arx_recvq_news news;
	struct arx_rwqe wqe;
	int i;

	arx_ring_produce(&q->ring, WQES + 1);
	KUNIT_EXPECT_EQ(test, take_news(test, &wqe, &news), -EIO);
	KUNIT_EXPECT_EQ(test, news, ARX_RECVQ_FAILED);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, take(test, &wqe), -EIO);
		KUNIT_EXPECT_EQ(test, wqe.length, 0);
	}
	arx_ring_produce(&q->ring, 1);
	KUNIT_EXPECT_EQ(test, take(test, &wqe), -EIO);
	arx_ring_produce(&q->ring, 0);
	KUNIT_EXPECT_EQ(test, take(test, &wqe), -EIO);
	arx_recvq_reset(q);
	KUNIT_EXPECT_EQ(test, take(test, &wqe), -ENOENT);
}

/* The kernel uses its own index, not the one in the header. */
static void recvq__cons_is_not_read_back(struct kunit *test)
{
	struct arx_recvq *q = test->priv;
	struct arx_rwqe wqe;

	KUNIT_ASSERT_EQ(test, post(test, 5, 0, 0), 0);
	q->ring.hdr->cons = 1;
	KUNIT_EXPECT_EQ(test, take(test, &wqe), 0);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, 5);
}

static void recvq__limit(struct kunit *test)
{
	struct arx_recvq *q = test->priv;
	struct arx_rwqe wqe;
	enum arx_recvq_news news;
	int i;

	for (i = 0; i < WQES; i++)
		KUNIT_ASSERT_EQ(test, post(test, i, 0, 0), 0);
	q->limit = 2;

	KUNIT_EXPECT_EQ(test, take_news(test, &wqe, &news), 0);
	KUNIT_EXPECT_EQ(test, news, ARX_RECVQ_NO_NEWS); /* 3 left */
	KUNIT_EXPECT_EQ(test, take_news(test, &wqe, &news), 0);
	KUNIT_EXPECT_EQ(test, news, ARX_RECVQ_NO_NEWS); /* 2 left */
	KUNIT_EXPECT_EQ(test, take_news(test, &wqe, &news), 0);
	KUNIT_EXPECT_EQ(test, news, ARX_RECVQ_LIMIT_REACHED); /* 1 left */
	KUNIT_EXPECT_EQ(test, q->limit, 0);
	KUNIT_EXPECT_EQ(test, take_news(test, &wqe, &news), 0);
	KUNIT_EXPECT_EQ(test, news, ARX_RECVQ_NO_NEWS); /* once */
}

static void recvq__reset(struct kunit *test)
{
	struct arx_rwqe wqe;
	int i;

	for (i = 0; i < WQES; i++)
		KUNIT_ASSERT_EQ(test, post(test, i, 0, 0), 0);
	arx_recvq_reset(test->priv);
	KUNIT_EXPECT_EQ(test, take(test, &wqe), -ENOENT);
	KUNIT_EXPECT_EQ(test, post(test, 9, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, take(test, &wqe), 0);
	KUNIT_EXPECT_EQ(test, wqe.wr_id, 9);
}

/* Like an application that has mapped the ring and written all posted WQEs. */
static void prepare(struct kunit *test, struct arx_ring *ring, u32 wqes,
		    u32 from, u32 prod)
{
	KUNIT_ASSERT_EQ(test, arx_recvq_ring(ring, wqes, SGES, NULL, NULL), 0);
	for (; from != prod; from++) {
		struct arx_recv_wqe *wqe = arx_ring_entry(ring, from);

		wqe->wr_id = 100 + from;
	}
	ring->hdr->prod = prod;
}

static int move(struct arx_recvq *q, struct arx_ring *to)
{
	return arx_ring_replace(&q->ring, to, &q->lock, arx_recvq_move);
}

/* The queue continues at its index, and reads nothing of the old ring. */
static void recvq__moved(struct kunit *test)
{
	struct arx_recvq *q = test->priv;
	struct arx_rwqe wqe;
	struct arx_ring to;
	int i;

	for (i = 0; i < WQES; i++)
		KUNIT_ASSERT_EQ(test, post(test, i, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, take(test, &wqe), 0);
	prepare(test, &to, 8 * WQES, 0, 3 * WQES);
	KUNIT_ASSERT_EQ(test, move(q, &to), 0);
	KUNIT_EXPECT_EQ(test, q->ring.hdr->cons, 1);
	for (i = 1; i < 3 * WQES; i++) {
		KUNIT_ASSERT_EQ(test, take(test, &wqe), 0);
		KUNIT_EXPECT_EQ(test, wqe.wr_id, 100 + i);
	}
	KUNIT_EXPECT_EQ(test, take(test, &wqe), -ENOENT);
}

static void recvq__not_moved(struct kunit *test)
{
	struct arx_recvq *q = test->priv;
	struct arx_ring none = {};
	struct arx_rwqe wqe;
	struct arx_ring to;
	int i;

	for (i = 0; i < WQES; i++)
		KUNIT_ASSERT_EQ(test, post(test, i, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, take(test, &wqe), 0);
	KUNIT_EXPECT_EQ(test, move(q, &none), -EINVAL);
	prepare(test, &to, 2, 0, WQES);
	KUNIT_EXPECT_EQ(test, move(q, &to), -EINVAL);
	prepare(test, &to, 4 * WQES, 0, 0);
	KUNIT_EXPECT_EQ(test, move(q, &to), -EINVAL);
	for (i = 1; i < WQES; i++) {
		KUNIT_ASSERT_EQ(test, take(test, &wqe), 0);
		KUNIT_EXPECT_EQ(test, wqe.wr_id, i);
	}
}

static struct kunit_case recvq_cases[] = {
	KUNIT_CASE(recvq__empty),
	KUNIT_CASE(recvq__in_order),
	KUNIT_CASE(recvq__post_until_full),
	KUNIT_CASE(recvq__post_bad),
	KUNIT_CASE_PARAM(recvq__hostile, hostile_gen_params),
	KUNIT_CASE(recvq__cons_is_not_read_back),
	KUNIT_CASE(recvq__limit),
	KUNIT_CASE(recvq__fails_once),
	KUNIT_CASE(recvq__reset),
	KUNIT_CASE(recvq__moved),
	KUNIT_CASE(recvq__not_moved),
	{}
};

static struct kunit_suite recvq_suite = {
	.name = "arx_recvq",
	.init = recvq_init,
	.exit = recvq_exit,
	.test_cases = recvq_cases,
};

kunit_test_suite(recvq_suite);
