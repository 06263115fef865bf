// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* key.c: look-up, bounds, rights, counted use, invalidation. */

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/workqueue.h>

#include "key.c"

#define IOVA	0x7fff12345678ULL
#define LENGTH	10000

/**
 * struct key_test - a device with a key, two PDs
 * @dev: device
 * @pd: the key's PD
 * @other: another
 * @key: of LENGTH bytes at IOVA
 */
struct key_test {
	struct arx_dev dev;
	struct ib_pd pd;
	struct ib_pd other;
	struct arx_key key;
};

static int keys_init(struct kunit *test)
{
	struct key_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	arx_ids_init(&t->dev.keys, 24);
	arx_key_init(&t->key, ARX_KEY_USER, &t->pd);
	t->key.iova = IOVA;
	t->key.length = LENGTH;
	test->priv = t;
	return 0;
}

static void keys_exit(struct kunit *test)
{
	struct key_test *t = test->priv;

	arx_ids_destroy(&t->dev.keys);
}

static u32 publish(struct kunit *test, enum arx_key_kind kind, int access)
{
	struct key_test *t = test->priv;

	t->key.kind = kind;
	t->key.access = access;
	KUNIT_ASSERT_EQ(test, arx_key_add(&t->dev, &t->key), 0);
	arx_key_grant(&t->key, t->key.value);
	return t->key.value;
}

/* Begin to use bytes; true if that is granted. A check must agree. */
static bool use(struct kunit *test, struct ib_pd *pd, u32 value, int access,
		u64 iova, u64 length)
{
	struct key_test *t = test->priv;
	struct arx_key_use use = {
		.dev = &t->dev,
		.pd = pd,
		.value = value,
		.access = access,
		.iova = iova,
		.length = length,
	};
	struct arx_key *key = NULL;
	enum arx_key_answer answer;

	guard(rcu)();
	answer = arx_key_get(&use, &key);
	KUNIT_EXPECT_EQ(test, answer, arx_key_check(&use));
	KUNIT_EXPECT_PTR_EQ(test, key,
			    answer == ARX_KEY_GRANTED ? &t->key : NULL);
	return answer == ARX_KEY_GRANTED;
}

static bool found(struct kunit *test, struct ib_pd *pd, u32 value, int access)
{
	struct key_test *t = test->priv;
	bool granted = use(test, pd, value, access, IOVA, 1);

	if (granted)
		arx_key_put(&t->key);
	return granted;
}

static int invalidate(struct key_test *t, struct ib_pd *pd, u32 value)
{
	struct arx_key_use use = { .dev = &t->dev, .pd = pd, .value = value };
	int err;

	rcu_read_lock_bh();
	err = arx_key_invalidate(&use);
	rcu_read_unlock_bh();
	return err;
}

struct extent {
	const char *name;
	u64 iova;
	u64 length;
	bool fits;
};

static const struct extent extents[] = {
	{ "whole", IOVA, LENGTH, true },
	{ "first byte", IOVA, 1, true },
	{ "last byte", IOVA + LENGTH - 1, 1, true },
	{ "before", IOVA - 1, 1, false },
	{ "from before", IOVA - 1, 2, false },
	{ "behind", IOVA + LENGTH, 1, false },
	{ "beyond the end", IOVA + 1, LENGTH, false },
	{ "one too long", IOVA, LENGTH + 1, false },
	{ "wraps", IOVA + 10, U64_MAX - 5, false },
	{ "wraps to zero", U64_MAX, 2, false },
	{ "longest", 0, U64_MAX, false },
	{ "nothing, inside", IOVA + 5, 0, true },
	{ "nothing, at the end", IOVA + LENGTH, 0, true },
	{ "nothing, anywhere", 3, 0, true },
};

static void extent_name(const struct extent *e, char *name)
{
	strscpy(name, e->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(extent, extents, extent_name);

static void key__range(struct kunit *test)
{
	const struct extent *e = test->param_value;
	struct key_test *t = test->priv;
	u32 value = publish(test, ARX_KEY_USER, IB_ACCESS_REMOTE_READ);

	KUNIT_EXPECT_EQ(test, e->fits, use(test, &t->pd, value,
					   IB_ACCESS_REMOTE_READ, e->iova,
					   e->length));
}

static void key__value(struct kunit *test)
{
	struct key_test *t = test->priv;
	u32 value = publish(test, ARX_KEY_USER, 0);
	int bit;

	KUNIT_EXPECT_TRUE(test, found(test, &t->pd, value, 0));
	for (bit = 0; bit < 32; bit++)
		KUNIT_EXPECT_FALSE(test, found(test, &t->pd, value ^ BIT(bit),
					       0));
	KUNIT_EXPECT_FALSE(test, found(test, &t->pd, 0, 0));
	KUNIT_EXPECT_FALSE(test, found(test, &t->pd, U32_MAX, 0));
}

static void key__pd(struct kunit *test)
{
	struct key_test *t = test->priv;
	u32 value = publish(test, ARX_KEY_USER, 0);

	KUNIT_EXPECT_FALSE(test, found(test, &t->other, value, 0));
}

/* A key allows nothing before it is granted and after it is removed. */
static void key__state(struct kunit *test)
{
	struct key_test *t = test->priv;
	u32 value;

	KUNIT_ASSERT_EQ(test, arx_key_add(&t->dev, &t->key), 0);
	value = t->key.value;
	KUNIT_EXPECT_FALSE(test, found(test, &t->pd, value, 0));
	arx_key_grant(&t->key, value);
	KUNIT_EXPECT_TRUE(test, found(test, &t->pd, value, 0));
	arx_key_remove(&t->dev, &t->key);
	KUNIT_EXPECT_FALSE(test, found(test, &t->pd, value, 0));
}

static void key__access(struct kunit *test)
{
	static const int rights[] = {
		IB_ACCESS_LOCAL_WRITE, IB_ACCESS_REMOTE_WRITE,
		IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_ATOMIC,
	};
	struct key_test *t = test->priv;
	u32 value = publish(test, ARX_KEY_USER, 0);
	int i, j;

	for (i = 0; i < ARRAY_SIZE(rights); i++) {
		t->key.access = rights[i];
		for (j = 0; j < ARRAY_SIZE(rights); j++)
			KUNIT_EXPECT_EQ(test, i == j,
					found(test, &t->pd, value, rights[j]));
		KUNIT_EXPECT_TRUE(test, found(test, &t->pd, value, 0));
	}
	t->key.access = IB_ACCESS_REMOTE_READ;
	KUNIT_EXPECT_FALSE(test, found(test, &t->pd, value,
				       IB_ACCESS_REMOTE_READ |
				       IB_ACCESS_REMOTE_WRITE));
}

static void key__change(struct kunit *test)
{
	struct key_test *t = test->priv;
	u32 value = publish(test, ARX_KEY_USER, IB_ACCESS_REMOTE_READ);

	arx_key_change(&t->key, &t->other, IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_FALSE(test, found(test, &t->pd, value,
				       IB_ACCESS_REMOTE_READ));
	KUNIT_EXPECT_FALSE(test, found(test, &t->other, value,
				       IB_ACCESS_REMOTE_READ));
	KUNIT_EXPECT_TRUE(test, found(test, &t->other, value,
				      IB_ACCESS_REMOTE_WRITE));
}

struct key_changer {
	struct work_struct work;
	struct key_test *t;
	int access;
};

static void change_work(struct work_struct *work)
{
	struct key_changer *c = container_of(work, struct key_changer, work);

	arx_key_change(&c->t->key, &c->t->other, c->access);
}

/*
 * A section on another CPU may have seen the former PD. So until it has been
 * left there are only rights that were there before and will be.
 */
static void key__change_waits(struct kunit *test)
{
	u32 *far_cpu = per_cpu_ptr(&arx_sections, 0);
	struct key_test *t = test->priv;
	struct key_changer c = {
		.t = t,
		.access = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC,
	};
	u32 value = publish(test, ARX_KEY_USER, IB_ACCESS_REMOTE_READ |
						IB_ACCESS_REMOTE_WRITE);
	int i;

	INIT_WORK_ONSTACK(&c.work, change_work);
	arx_section_begin(far_cpu);
	queue_work(system_unbound_wq, &c.work);
	for (i = 0; i < 500 && READ_ONCE(t->key.pd) != &t->other; i++)
		msleep(20);
	msleep(50);
	KUNIT_EXPECT_PTR_EQ(test, READ_ONCE(t->key.pd), &t->other);
	KUNIT_EXPECT_EQ(test, READ_ONCE(t->key.access), IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_TRUE(test, found(test, &t->other, value,
				      IB_ACCESS_REMOTE_WRITE));
	arx_section_end(far_cpu);
	flush_work(&c.work);
	destroy_work_on_stack(&c.work);
	KUNIT_EXPECT_TRUE(test, found(test, &t->other, value,
				      IB_ACCESS_REMOTE_ATOMIC));
	KUNIT_EXPECT_FALSE(test, found(test, &t->other, value,
				       IB_ACCESS_REMOTE_READ));
}

/* An invalidation is complete only when no request uses the memory. */
static void key__users(struct kunit *test)
{
	struct key_test *t = test->priv;
	u32 value = publish(test, ARX_KEY_FAST, 0);

	KUNIT_EXPECT_FALSE(test, use(test, &t->pd, value ^ 1, 0, IOVA, 1));
	KUNIT_EXPECT_FALSE(test, use(test, &t->other, value, 0, IOVA, 1));
	KUNIT_EXPECT_FALSE(test, use(test, &t->pd, value, 0, IOVA,
				     LENGTH + 1));
	KUNIT_EXPECT_FALSE(test, use(test, &t->pd, value,
				     IB_ACCESS_REMOTE_READ, IOVA, 1));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->key.users), 0);
	KUNIT_EXPECT_TRUE(test, use(test, &t->pd, value, 0, IOVA, LENGTH));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->key.users), 1);
	KUNIT_EXPECT_EQ(test, invalidate(t, &t->pd, value), -EBUSY);
	/* It gets no new users meanwhile. */
	KUNIT_EXPECT_FALSE(test, use(test, &t->pd, value, 0, IOVA, 1));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->key.users), 1);
	arx_key_put(&t->key);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->key.users), 0);
	KUNIT_EXPECT_EQ(test, invalidate(t, &t->pd, value), 0);
}

/* Only the section holds a key that no request can take back. */
static void key__not_counted(struct kunit *test)
{
	struct key_test *t = test->priv;
	u32 value = publish(test, ARX_KEY_USER, 0);

	KUNIT_EXPECT_TRUE(test, use(test, &t->pd, value, 0, IOVA, 1));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->key.users), 0);
}

static void key__invalidate(struct kunit *test)
{
	struct key_test *t = test->priv;
	u32 value = publish(test, ARX_KEY_FAST, 0);

	KUNIT_EXPECT_EQ(test, invalidate(t, &t->other, value), -EINVAL);
	KUNIT_EXPECT_EQ(test, invalidate(t, &t->pd, value ^ 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, invalidate(t, &t->pd, value ^ 0x100), -EINVAL);
	KUNIT_EXPECT_TRUE(test, found(test, &t->pd, value, 0));
	KUNIT_EXPECT_EQ(test, invalidate(t, &t->pd, value), 0);
	KUNIT_EXPECT_FALSE(test, found(test, &t->pd, value, 0));
	KUNIT_EXPECT_EQ(test, invalidate(t, &t->pd, value), 0);
}

/* A peer must not be able to invalidate an application's region. */
static void key__invalidate_others(struct kunit *test)
{
	static const enum arx_key_kind kinds[] = {
		ARX_KEY_USER, ARX_KEY_DMA, ARX_KEY_WINDOW_1,
	};
	struct key_test *t = test->priv;
	u32 value;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		value = publish(test, kinds[i], 0);
		KUNIT_EXPECT_EQ(test, invalidate(t, &t->pd, value), -EINVAL);
		KUNIT_EXPECT_TRUE(test, found(test, &t->pd, value, 0));
		arx_key_remove(&t->dev, &t->key);
	}
}

static struct kunit_case key_cases[] = {
	KUNIT_CASE_PARAM(key__range, extent_gen_params),
	KUNIT_CASE(key__value),
	KUNIT_CASE(key__pd),
	KUNIT_CASE(key__state),
	KUNIT_CASE(key__access),
	KUNIT_CASE(key__change),
	KUNIT_CASE(key__change_waits),
	KUNIT_CASE(key__users),
	KUNIT_CASE(key__not_counted),
	KUNIT_CASE(key__invalidate),
	KUNIT_CASE(key__invalidate_others),
	{}
};

static struct kunit_suite key_suite = {
	.name = "arx_key",
	.init = keys_init,
	.exit = keys_exit,
	.test_cases = key_cases,
};

kunit_test_suite(key_suite);
