// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* account.c, and the counts of objects in arx.h */

#include <kunit/test.h>

#include "account.c"
#include "arx.h"

/**
 * struct account_test - a user without capabilities, with an address space
 * @user: the user
 * @cred: credentials of the test
 * @old: its former credentials
 * @limit: pages that the process may pin
 */
struct account_test {
	struct arx_user *user;
	struct cred *cred;
	const struct cred *old;
	unsigned long limit;
};

static int account_init(struct kunit *test)
{
	struct account_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	KUNIT_ASSERT_EQ(test, kunit_attach_mm(), 0);
	t->cred = prepare_creds();
	KUNIT_ASSERT_NOT_NULL(test, t->cred);
	cap_clear(t->cred->cap_effective);
	t->old = override_creds(t->cred);
	t->user = arx_user_current();
	KUNIT_ASSERT_NOT_NULL(test, t->user);
	t->limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	test->priv = t;
	return 0;
}

static void account_exit(struct kunit *test)
{
	struct account_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->user->ring_pages), 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->user->attachments), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&t->user->ref), 1);
	arx_user_put(t->user);
	KUNIT_EXPECT_TRUE(test, list_empty(&arx_users));
	put_cred(override_creds(t->old));
}

static long pinned(void)
{
	return atomic64_read(&current->mm->pinned_vm);
}

static void account__one_per_user(struct kunit *test)
{
	struct account_test *t = test->priv;
	struct arx_user *other;

	KUNIT_EXPECT_PTR_EQ(test, arx_user_current(), t->user);
	arx_user_put(t->user);
	t->cred->uid = KUIDT_INIT(54321);
	other = arx_user_current();
	KUNIT_EXPECT_PTR_NE(test, other, t->user);
	KUNIT_EXPECT_TRUE(test, uid_eq(other->uid, KUIDT_INIT(54321)));
	arx_user_put(other);
}

static void account__allowance(struct kunit *test)
{
	struct account_test *t = test->priv;
	struct arx_charge a, b;

	KUNIT_EXPECT_EQ(test, 0, arx_charge_pages(&a, t->user, 10));
	KUNIT_EXPECT_EQ(test, 0, arx_charge_pages(&b, t->user,
						  ARX_USER_RING_PAGES - 10));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->user->ring_pages),
			ARX_USER_RING_PAGES);
	KUNIT_EXPECT_EQ(test, pinned(), 0);
	arx_uncharge_pages(&a);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->user->ring_pages),
			ARX_USER_RING_PAGES - 10);
	arx_uncharge_pages(&b);
	/* The second call does nothing. */
	arx_uncharge_pages(&b);
}

/* Memory beyond the allowance is pinned memory of the process. */
static void account__beyond_allowance(struct kunit *test)
{
	struct account_test *t = test->priv;
	struct arx_charge a, b, c;

	if (t->limit >= LONG_MAX >> PAGE_SHIFT || t->limit < 2)
		kunit_skip(test, "RLIMIT_MEMLOCK is %lu pages", t->limit);
	KUNIT_EXPECT_EQ(test, 0, arx_charge_pages(&a, t->user,
						  ARX_USER_RING_PAGES + 1));
	KUNIT_EXPECT_EQ(test, pinned(), 1);
	KUNIT_EXPECT_EQ(test, -ENOMEM, arx_charge_pages(&b, t->user, t->limit));
	KUNIT_EXPECT_EQ(test, pinned(), 1);
	KUNIT_EXPECT_EQ(test, 0, arx_charge_pages(&b, t->user, t->limit - 1));
	KUNIT_EXPECT_EQ(test, -ENOMEM, arx_charge_pages(&c, t->user, 1));
	KUNIT_EXPECT_EQ(test, pinned(), t->limit);
	arx_uncharge_pages(&a);
	/* The allowance is free again, the limit is not. */
	KUNIT_EXPECT_EQ(test, 0, arx_charge_pages(&a, t->user,
						  ARX_USER_RING_PAGES));
	KUNIT_EXPECT_EQ(test, pinned(), t->limit - 1);
	arx_uncharge_pages(&a);
	arx_uncharge_pages(&b);
	KUNIT_EXPECT_EQ(test, pinned(), 0);
}

/* Refused: nothing stays charged, even if the allowance had room for a part. */
static void account__refused(struct kunit *test)
{
	struct account_test *t = test->priv;
	struct arx_charge a;

	if (t->limit >= LONG_MAX >> PAGE_SHIFT)
		kunit_skip(test, "RLIMIT_MEMLOCK is unlimited");
	KUNIT_EXPECT_EQ(test, -ENOMEM,
			arx_charge_pages(&a, t->user, ARX_USER_RING_PAGES +
					 t->limit + 1));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&t->user->ring_pages), 0);
	KUNIT_EXPECT_EQ(test, pinned(), 0);
}

static void account__capable(struct kunit *test)
{
	struct account_test *t = test->priv;
	struct arx_charge a;

	cap_raise(t->cred->cap_effective, CAP_IPC_LOCK);
	KUNIT_EXPECT_EQ(test, 0, arx_charge_pages(&a, t->user, SZ_1G));
	KUNIT_EXPECT_EQ(test, pinned(), SZ_1G - ARX_USER_RING_PAGES);
	arx_uncharge_pages(&a);
	KUNIT_EXPECT_EQ(test, pinned(), 0);
}

static void account__attachments(struct kunit *test)
{
	struct account_test *t = test->priv;
	int i;

	for (i = 0; i < ARX_USER_ATTACHMENTS; i++)
		KUNIT_EXPECT_EQ(test, arx_user_attach(t->user), 0);
	KUNIT_EXPECT_EQ(test, arx_user_attach(t->user), -ENOBUFS);
	arx_user_detach(t->user);
	KUNIT_EXPECT_EQ(test, arx_user_attach(t->user), 0);
	cap_raise(t->cred->cap_effective, CAP_NET_ADMIN);
	KUNIT_EXPECT_EQ(test, arx_user_attach(t->user), 0);
	for (i = 0; i <= ARX_USER_ATTACHMENTS; i++)
		arx_user_detach(t->user);
}

/* Jobs that wait for pages. */
static void account__jobs(struct kunit *test)
{
	struct account_test *t = test->priv;
	int i;

	for (i = 0; i < ARX_USER_JOBS; i++)
		KUNIT_EXPECT_TRUE(test, arx_user_begin_job(t->user));
	KUNIT_EXPECT_FALSE(test, arx_user_begin_job(t->user));
	arx_user_end_job(t->user);
	KUNIT_EXPECT_TRUE(test, arx_user_begin_job(t->user));
	for (i = 0; i < ARX_USER_JOBS; i++)
		arx_user_end_job(t->user);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->user->jobs), 0);
}

/* As many as query_device reports, and not one more. */
static void account__objects(struct kunit *test)
{
	struct arx_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	enum arx_kind kind;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	for (kind = 0; kind < ARX_NUM_KINDS; kind++) {
		atomic_set(&dev->objects[kind], ARX_MAX_OBJECTS - 1);
		KUNIT_EXPECT_EQ(test, arx_object_begin(&dev->ib, kind), 0);
		KUNIT_EXPECT_EQ(test, arx_object_begin(&dev->ib, kind),
				-ENOMEM);
		arx_object_end(&dev->ib, kind);
		KUNIT_EXPECT_EQ(test, arx_object_begin(&dev->ib, kind), 0);
		KUNIT_EXPECT_EQ(test, atomic_read(&dev->objects[kind]),
				ARX_MAX_OBJECTS);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(account__one_per_user),
	KUNIT_CASE(account__allowance),
	KUNIT_CASE(account__beyond_allowance),
	KUNIT_CASE(account__refused),
	KUNIT_CASE(account__capable),
	KUNIT_CASE(account__attachments),
	KUNIT_CASE(account__jobs),
	KUNIT_CASE(account__objects),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_account",
	.init = account_init,
	.exit = account_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
