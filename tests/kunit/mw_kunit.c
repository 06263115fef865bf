// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* mw.c: what may be bound, what a window allows, how access by it ends. */

#include <kunit/test.h>

#include "mr.h"
#include "mw.c"

#define IOVA	0x7fff12340000ULL
#define BLOCK	4096
#define QPN	0x11
#define RIGHTS	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

/**
 * struct mw_test - a device with a region of two blocks and a window
 * @dev: device
 * @pd: of all objects
 * @other: another PD
 * @mr: the region
 * @blocks: addresses that are not used
 * @mw: the window
 */
struct mw_test {
	struct arx_dev dev;
	struct ib_pd pd;
	struct ib_pd other;
	struct arx_mr mr;
	void *blocks[2];
	struct arx_mw mw;
};

static int mw_init(struct kunit *test)
{
	struct mw_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct arx_key *key;

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	arx_ids_init(&t->dev.keys, 24);
	key = &t->mr.key;
	arx_key_init(key, ARX_KEY_USER, &t->pd);
	key->mr = &t->mr;
	key->iova = IOVA;
	key->length = 2 * BLOCK;
	key->access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND | ARX_KEY_LOCAL;
	t->blocks[0] = (void *)0x10000;
	t->blocks[1] = (void *)0x50000;
	t->mr.blocks = t->blocks;
	t->mr.nblocks = 2;
	t->mr.block_shift = ilog2(BLOCK);
	KUNIT_ASSERT_EQ(test, arx_key_add(&t->dev, key), 0);
	arx_key_grant(key, key->value);
	t->mw.ib.device = &t->dev.ib;
	t->mw.ib.pd = &t->pd;
	return 0;
}

static void mw_exit(struct kunit *test)
{
	struct mw_test *t = test->priv;

	if (t->mw.key.id.nr)
		arx_dealloc_mw(&t->mw.ib);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->mr.key.windows), 0);
	arx_key_remove(&t->dev, &t->mr.key);
	arx_ids_destroy(&t->dev.keys);
}

static void alloc(struct kunit *test, enum ib_mw_type type)
{
	struct mw_test *t = test->priv;

	t->mw.ib.type = type;
	KUNIT_ASSERT_EQ(test, arx_alloc_mw(&t->mw.ib, NULL), 0);
	KUNIT_EXPECT_EQ(test, t->mw.ib.rkey >> 8, t->mw.key.id.nr);
}

/* A bind that is right; tests change it. */
static struct arx_send_wqe request(struct mw_test *t)
{
	return (struct arx_send_wqe) {
		.bind = {
			.addr = IOVA + 100,
			.length = BLOCK,
			.mr_lkey = t->mr.key.value,
			.mw_rkey = t->mw.ib.rkey,
			.new_rkey = (t->mw.key.value & ~0xff) |
				    (u8)(t->mw.key.value + 1),
			.access = RIGHTS,
		},
	};
}

static int bind(struct mw_test *t, struct ib_pd *pd,
		const struct arx_send_wqe *wqe)
{
	struct arx_key_use by = { .dev = &t->dev, .pd = pd, .qpn = QPN };
	int err;

	rcu_read_lock_bh();
	err = arx_mw_bind(&by, wqe);
	rcu_read_unlock_bh();
	return err;
}

static bool allows(struct mw_test *t, u32 qpn, u32 rkey, int access, u64 iova,
		   u64 length)
{
	struct arx_key_use use = {
		.dev = &t->dev,
		.pd = &t->pd,
		.qpn = qpn,
		.value = rkey,
		.access = access,
		.iova = iova,
		.length = length,
	};

	guard(rcu)();
	return arx_key_check(&use) == ARX_KEY_GRANTED;
}

static int invalidate(struct mw_test *t, u32 qpn, u32 rkey)
{
	struct arx_key_use use = {
		.dev = &t->dev,
		.pd = &t->pd,
		.qpn = qpn,
		.value = rkey,
	};
	int err;

	rcu_read_lock_bh();
	err = arx_key_invalidate(&use);
	rcu_read_unlock_bh();
	return err;
}

/* Bound, a window allows its rights in its range, to peers only. */
static void expect_bound(struct kunit *test, u32 qpn, u32 rkey, u64 from)
{
	struct mw_test *t = test->priv;
	int read = IB_ACCESS_REMOTE_READ;

	KUNIT_EXPECT_TRUE(test, allows(t, qpn, rkey, RIGHTS, from, BLOCK));
	KUNIT_EXPECT_FALSE(test, allows(t, qpn, rkey, read, from - 1, 2));
	KUNIT_EXPECT_FALSE(test, allows(t, qpn, rkey, read, from + 1, BLOCK));
	KUNIT_EXPECT_FALSE(test, allows(t, qpn, rkey, IB_ACCESS_REMOTE_ATOMIC,
					from, 8));
	KUNIT_EXPECT_FALSE(test, allows(t, 0, rkey, ARX_KEY_LOCAL, from, 8));
	KUNIT_EXPECT_FALSE(test, allows(t, 0, rkey, ARX_KEY_LOCAL |
					IB_ACCESS_LOCAL_WRITE, from, 8));
}

static void mw__type_1(struct kunit *test)
{
	struct mw_test *t = test->priv;
	struct arx_send_wqe wqe;
	u32 first, second;

	alloc(test, IB_MW_TYPE_1);
	KUNIT_EXPECT_FALSE(test, allows(t, QPN, t->mw.ib.rkey, 0, 0, 0));
	wqe = request(t);
	first = wqe.bind.new_rkey;
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	expect_bound(test, QPN, first, IOVA + 100);
	expect_bound(test, QPN + 1, first, IOVA + 100);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->mr.key.windows), 1);

	/* No request invalidates it, but it may be bound to another range. */
	KUNIT_EXPECT_EQ(test, invalidate(t, QPN, first), -EINVAL);
	wqe = request(t);
	second = wqe.bind.new_rkey;
	wqe.bind.addr = IOVA + BLOCK;
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	expect_bound(test, QPN, second, IOVA + BLOCK);
	KUNIT_EXPECT_FALSE(test, allows(t, QPN, first, RIGHTS, IOVA + BLOCK,
					1));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->mr.key.windows), 1);

	wqe = request(t);
	wqe.bind.length = 0;
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	KUNIT_EXPECT_FALSE(test, allows(t, QPN, second, 0, 0, 0));
	KUNIT_EXPECT_FALSE(test, allows(t, QPN, wqe.bind.new_rkey, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->mr.key.windows), 0);
}

/* Only a region of persistent memory gives the right to make it persistent. */
static void mw__flush(struct kunit *test)
{
	struct mw_test *t = test->priv;
	struct arx_send_wqe wqe;
	int both = IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT;

	alloc(test, IB_MW_TYPE_1);
	wqe = request(t);
	wqe.bind.access = RIGHTS | both;
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), -EINVAL);
	wqe.bind.access = RIGHTS | IB_ACCESS_FLUSH_GLOBAL;
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	KUNIT_EXPECT_TRUE(test, allows(t, QPN, wqe.bind.new_rkey,
				       IB_ACCESS_FLUSH_GLOBAL, 0, 0));
	KUNIT_EXPECT_FALSE(test, allows(t, QPN, wqe.bind.new_rkey, both, 0, 0));

	t->mr.key.access |= IB_ACCESS_FLUSH_PERSISTENT;
	wqe = request(t);
	wqe.bind.access = RIGHTS | both;
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	KUNIT_EXPECT_TRUE(test, allows(t, QPN, wqe.bind.new_rkey, both, 0, 0));
}

static void mw__type_2(struct kunit *test)
{
	struct mw_test *t = test->priv;
	struct arx_send_wqe wqe;
	u32 rkey;

	alloc(test, IB_MW_TYPE_2);
	wqe = request(t);
	rkey = wqe.bind.new_rkey;
	wqe.bind.length = 0;
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), -EINVAL);
	wqe.bind.length = BLOCK;
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	expect_bound(test, QPN, rkey, IOVA + 100);
	KUNIT_EXPECT_FALSE(test, allows(t, QPN + 1, rkey, RIGHTS, IOVA + 100,
					1));

	/* It must be invalidated first, by its QP. */
	wqe = request(t);
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), -EINVAL);
	KUNIT_EXPECT_EQ(test, invalidate(t, QPN + 1, rkey), -EINVAL);
	KUNIT_EXPECT_EQ(test, invalidate(t, QPN, rkey ^ 1), -EINVAL);
	expect_bound(test, QPN, rkey, IOVA + 100);
	KUNIT_EXPECT_EQ(test, invalidate(t, QPN, rkey), 0);
	KUNIT_EXPECT_FALSE(test, allows(t, QPN, rkey, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->mr.key.windows), 0);
	KUNIT_EXPECT_EQ(test, invalidate(t, QPN, rkey), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->mr.key.windows), 0);
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	expect_bound(test, QPN, wqe.bind.new_rkey, IOVA + 100);
}

struct refusal {
	const char *name;
	void (*spoil)(struct mw_test *t, struct arx_send_wqe *wqe);
};

#define REFUSAL(name, ...)						\
	static void spoil_##name(struct mw_test *t,			\
				 struct arx_send_wqe *wqe)		\
	{								\
		__VA_ARGS__;						\
	}

REFUSAL(right_to_bind, t->mr.key.access &= ~IB_ACCESS_MW_BIND)
REFUSAL(local_write, t->mr.key.access &= ~IB_ACCESS_LOCAL_WRITE)
REFUSAL(local_write_atomic, t->mr.key.access &= ~IB_ACCESS_LOCAL_WRITE;
	wqe->bind.access = IB_ACCESS_REMOTE_ATOMIC)
REFUSAL(access, wqe->bind.access |= IB_ACCESS_ON_DEMAND)
REFUSAL(access_local, wqe->bind.access |= ARX_KEY_LOCAL)
REFUSAL(before, wqe->bind.addr = IOVA - 1)
REFUSAL(beyond, wqe->bind.addr = IOVA + BLOCK + 1)
REFUSAL(wraps, wqe->bind.length = U64_MAX)
REFUSAL(lkey, wqe->bind.mr_lkey ^= 1)
REFUSAL(lkey_none, wqe->bind.mr_lkey ^= 0x100)
REFUSAL(lkey_of_window, wqe->bind.mr_lkey = t->mw.key.value)
REFUSAL(lkey_pd, t->mr.key.pd = &t->other)
REFUSAL(lkey_kind, t->mr.key.kind = ARX_KEY_DMA)
REFUSAL(lkey_free, t->mr.key.state = ARX_KEY_FREE)
REFUSAL(rkey_of_region, wqe->bind.mw_rkey = t->mr.key.value)
REFUSAL(rkey_none, wqe->bind.mw_rkey ^= 0x100)
REFUSAL(new_rkey, wqe->bind.new_rkey ^= 0x100)
REFUSAL(closed, arx_key_close(&t->mr.key))

static const struct refusal refusals[] = {
	{ "no right to bind", spoil_right_to_bind },
	{ "write, region may not", spoil_local_write },
	{ "atomic, region may not", spoil_local_write_atomic },
	{ "other access", spoil_access },
	{ "access by an lkey", spoil_access_local },
	{ "before", spoil_before },
	{ "beyond", spoil_beyond },
	{ "wraps", spoil_wraps },
	{ "another lkey", spoil_lkey },
	{ "no region", spoil_lkey_none },
	{ "a window of a window", spoil_lkey_of_window },
	{ "region of another PD", spoil_lkey_pd },
	{ "region of another kind", spoil_lkey_kind },
	{ "region not valid", spoil_lkey_free },
	{ "no window", spoil_rkey_of_region },
	{ "no such window", spoil_rkey_none },
	{ "another number", spoil_new_rkey },
	{ "region about to end", spoil_closed },
};

static void refusal_name(const struct refusal *r, char *name)
{
	strscpy(name, r->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(refusal, refusals, refusal_name);

static void mw__refused(struct kunit *test)
{
	const struct refusal *r = test->param_value;
	struct mw_test *t = test->priv;
	struct arx_key region = t->mr.key;
	enum ib_mw_type type;
	struct arx_send_wqe wqe;

	for (type = IB_MW_TYPE_1; type <= IB_MW_TYPE_2; type++) {
		alloc(test, type);
		wqe = request(t);
		KUNIT_EXPECT_EQ(test, bind(t, &t->other, &wqe), -EINVAL);
		r->spoil(t, &wqe);
		KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), -EINVAL);
		KUNIT_EXPECT_EQ(test, t->mw.key.state, ARX_KEY_FREE);
		KUNIT_EXPECT_LE(test, atomic_read(&t->mr.key.windows), 0);
		arx_dealloc_mw(&t->mw.ib);
		memset(&t->mw.key, 0, sizeof(t->mw.key));
		t->mr.key.access = region.access;
		t->mr.key.pd = region.pd;
		t->mr.key.kind = region.kind;
		t->mr.key.state = region.state;
		arx_key_open(&t->mr.key);
	}
}

/* A bind and an invalidation wait for requests that use the window. */
static void mw__in_use(struct kunit *test)
{
	struct mw_test *t = test->priv;
	struct arx_send_wqe wqe;
	u32 rkey;

	alloc(test, IB_MW_TYPE_1);
	wqe = request(t);
	rkey = wqe.bind.new_rkey;
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	atomic_inc(&t->mw.key.users);
	wqe = request(t);
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), -EBUSY);
	KUNIT_EXPECT_FALSE(test, allows(t, QPN, rkey, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->mr.key.windows), 1);
	atomic_dec(&t->mw.key.users);
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->mr.key.windows), 1);
	arx_dealloc_mw(&t->mw.ib);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->mr.key.windows), 0);

	memset(&t->mw.key, 0, sizeof(t->mw.key));
	alloc(test, IB_MW_TYPE_2);
	wqe = request(t);
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	rkey = wqe.bind.new_rkey;
	atomic_inc(&t->mw.key.users);
	KUNIT_EXPECT_EQ(test, invalidate(t, QPN, rkey), -EBUSY);
	/* It is not free before the request has ended. */
	KUNIT_EXPECT_FALSE(test, arx_key_close(&t->mr.key));
	wqe = request(t);
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), -EBUSY);
	atomic_dec(&t->mw.key.users);
	KUNIT_EXPECT_EQ(test, invalidate(t, QPN, rkey), 0);
	KUNIT_EXPECT_TRUE(test, arx_key_close(&t->mr.key));
	arx_key_open(&t->mr.key);
}

/* A region outlives its windows. */
static void mw__holds_region(struct kunit *test)
{
	struct mw_test *t = test->priv;
	struct arx_send_wqe wqe;

	alloc(test, IB_MW_TYPE_1);
	wqe = request(t);
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	KUNIT_ASSERT_FALSE(test, arx_key_close(&t->mr.key));
	KUNIT_EXPECT_EQ(test, arx_dereg_mr(&t->mr.ib, NULL), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EBUSY),
			    arx_rereg_user_mr(&t->mr.ib, IB_MR_REREG_ACCESS, 0,
					      0, 0, 0, &t->pd, NULL));
	expect_bound(test, QPN, wqe.bind.new_rkey, IOVA + 100);
}

/* Both kinds of addresses lead to the same memory. */
static void mw__addresses(struct kunit *test)
{
	struct mw_test *t = test->priv;
	struct arx_send_wqe wqe;
	u32 len = 16;

	alloc(test, IB_MW_TYPE_1);
	wqe = request(t);
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	KUNIT_EXPECT_PTR_EQ(test, arx_mr_at(&t->mw.key, IOVA + 110, &len),
			    t->blocks[0] + 110);
	KUNIT_EXPECT_PTR_EQ(test, arx_mr_at(&t->mw.key, IOVA + BLOCK, &len),
			    t->blocks[1]);
	wqe = request(t);
	wqe.bind.access |= IB_ZERO_BASED;
	KUNIT_EXPECT_EQ(test, bind(t, &t->pd, &wqe), 0);
	KUNIT_EXPECT_TRUE(test, allows(t, QPN, wqe.bind.new_rkey, RIGHTS, 0,
				       BLOCK));
	KUNIT_EXPECT_FALSE(test, allows(t, QPN, wqe.bind.new_rkey, RIGHTS, 1,
					BLOCK));
	KUNIT_EXPECT_PTR_EQ(test, arx_mr_at(&t->mw.key, 10, &len),
			    t->blocks[0] + 110);
	len = 200;
	KUNIT_EXPECT_PTR_EQ(test, arx_mr_at(&t->mw.key, BLOCK - 200, &len),
			    t->blocks[0] + BLOCK - 100);
	KUNIT_EXPECT_EQ(test, len, 100);
}

static void mw__alloc_refused(struct kunit *test)
{
	struct mw_test *t = test->priv;

	t->mw.ib.type = 77;
	KUNIT_EXPECT_EQ(test, arx_alloc_mw(&t->mw.ib, NULL), -EINVAL);
}

static struct kunit_case mw_cases[] = {
	KUNIT_CASE(mw__type_1),
	KUNIT_CASE(mw__flush),
	KUNIT_CASE(mw__type_2),
	KUNIT_CASE_PARAM(mw__refused, refusal_gen_params),
	KUNIT_CASE(mw__in_use),
	KUNIT_CASE(mw__holds_region),
	KUNIT_CASE(mw__addresses),
	KUNIT_CASE(mw__alloc_refused),
	{}
};

static struct kunit_suite mw_suite = {
	.name = "arx_mw",
	.init = mw_init,
	.exit = mw_exit,
	.test_cases = mw_cases,
};

kunit_test_suite(mw_suite);
