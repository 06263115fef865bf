// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* odp.c: pages of a process, found on demand and taken back. */

#include <kunit/test.h>
#include <linux/mman.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "odp.c"

#if IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)

/* Memory of the tests' process: three leaves, and it begins within a page. */
#define PAGES	(3 * ARX_LEAF_PAGES)
#define SKEW	100

/**
 * struct odp_test - memory paged on demand
 * @at: its address in the process, aligned to a leaf
 * @odp: the memory, from @at + SKEW on
 */
struct odp_test {
	unsigned long at;
	struct arx_odp *odp;
};

static int odp_init(struct kunit *test)
{
	struct odp_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	unsigned long at;

	KUNIT_ASSERT_NOT_NULL(test, t);
	test->priv = t;
	at = kunit_vm_mmap(test, NULL, 0, PAGES * PAGE_SIZE + ARX_LEAF_SIZE,
			   PROT_READ | PROT_WRITE,
			   MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(at));
	t->at = round_up(at, ARX_LEAF_SIZE);
	t->odp = arx_odp_make(t->at + SKEW, PAGES * PAGE_SIZE - SKEW);
	KUNIT_ASSERT_FALSE(test, IS_ERR(t->odp));
	return 0;
}

static void odp_exit(struct kunit *test)
{
	struct odp_test *t = test->priv;

	if (t->odp)
		arx_odp_end(t->odp);
}

/* True if bytes at @offset are not all there. */
static bool lacks(struct odp_test *t, u64 offset, u32 len, bool write)
{
	struct arx_pages want = {};
	bool absent;

	arx_section_enter();
	absent = arx_odp_absent(t->odp, offset, len, write, &want);
	arx_section_leave();
	return absent;
}

static int find(struct odp_test *t, u64 offset, u64 len, bool write)
{
	struct arx_pages want = {
		.odp = t->odp,
		.addr = t->odp->base + offset,
		.len = len,
		.write = write,
	};

	return arx_odp_find(&want, ARX_ODP_FAULT);
}

/* A page is there once it was found, for reading before it is for writing. */
static void odp__found(struct kunit *test)
{
	struct odp_test *t = test->priv;

	KUNIT_EXPECT_TRUE(test, lacks(t, SKEW, 1, false));
	KUNIT_EXPECT_EQ(test, find(t, SKEW, 1, false), 0);
	KUNIT_EXPECT_FALSE(test, lacks(t, SKEW, PAGE_SIZE - SKEW, false));
	KUNIT_EXPECT_TRUE(test, lacks(t, SKEW, 1, true));
	KUNIT_EXPECT_TRUE(test, lacks(t, SKEW, PAGE_SIZE, false));
	KUNIT_EXPECT_EQ(test, find(t, SKEW, 1, true), 0);
	KUNIT_EXPECT_FALSE(test, lacks(t, SKEW, 1, true));
	/* A look-up for reading takes no right to write away. */
	KUNIT_EXPECT_EQ(test, find(t, SKEW, 1, false), 0);
	KUNIT_EXPECT_FALSE(test, lacks(t, SKEW, 1, true));
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->odp->faults), 3);
}

/* What is missing is reported from the first page that is. */
static void odp__want(struct kunit *test)
{
	struct odp_test *t = test->priv;
	struct arx_pages want = {};

	KUNIT_EXPECT_EQ(test, find(t, 0, 2 * PAGE_SIZE, true), 0);
	arx_section_enter();
	KUNIT_EXPECT_TRUE(test, arx_odp_absent(t->odp, SKEW, 4 * PAGE_SIZE,
					       true, &want));
	arx_section_leave();
	KUNIT_EXPECT_EQ(test, want.addr, t->at + 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, want.len, 2 * PAGE_SIZE + SKEW);
	KUNIT_EXPECT_TRUE(test, want.write);
}

/* Both see the same bytes, also where two leaves meet. */
static void odp__bytes(struct kunit *test)
{
	struct odp_test *t = test->priv;
	u64 offset = ARX_LEAF_SIZE - 8;
	u8 mine[16], theirs[16];
	u32 done = 0, len;

	KUNIT_ASSERT_EQ(test, find(t, offset, 16, true), 0);
	KUNIT_ASSERT_FALSE(test, lacks(t, offset, 16, true));
	memset(mine, 0x5a, sizeof(mine));
	arx_section_enter();
	for (; done < 16; done += len) {
		void *at;

		len = 16 - done;
		at = arx_odp_at(t->odp, offset + done, &len);
		if (!at)
			break;
		memcpy(at, mine + done, len);
	}
	arx_section_leave();
	KUNIT_ASSERT_EQ(test, done, 16);
	KUNIT_ASSERT_EQ(test, copy_from_user(theirs, (void __user *)t->at +
					     offset, 16), 0);
	KUNIT_EXPECT_MEMEQ(test, theirs, mine, 16);
}

/* Memory that the process unmaps is taken back, and cannot be found again. */
static void odp__unmapped(struct kunit *test)
{
	struct odp_test *t = test->priv;
	u64 hole = 5 * PAGE_SIZE;

	KUNIT_ASSERT_EQ(test, find(t, 0, 10 * PAGE_SIZE, true), 0);
	KUNIT_ASSERT_EQ(test, vm_munmap(t->at + hole, PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&t->odp->invalidations), 1);
	KUNIT_EXPECT_FALSE(test, lacks(t, 0, hole, true));
	KUNIT_EXPECT_TRUE(test, lacks(t, hole, 1, false));
	KUNIT_EXPECT_FALSE(test, lacks(t, hole + PAGE_SIZE, PAGE_SIZE, true));
	KUNIT_EXPECT_EQ(test, find(t, hole, 1, false), -EFAULT);
	/* What comes before the hole is found. */
	KUNIT_EXPECT_EQ(test, find(t, 0, 10 * PAGE_SIZE, true), 0);
}

/* No table is larger than what is used. */
static void odp__leaves(struct kunit *test)
{
	struct odp_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, t->odp->count, 0);
	KUNIT_ASSERT_EQ(test, find(t, 2 * ARX_LEAF_SIZE, 1, false), 0);
	KUNIT_EXPECT_EQ(test, t->odp->count, 1);
	KUNIT_ASSERT_EQ(test, find(t, 0, 1, false), 0);
	KUNIT_EXPECT_EQ(test, t->odp->count, 2);
	KUNIT_ASSERT_EQ(test, vm_munmap(t->at, PAGE_SIZE), 0);
	t->odp->scan_at = 2;
	KUNIT_ASSERT_EQ(test, find(t, ARX_LEAF_SIZE, 1, false), 0);
	KUNIT_EXPECT_EQ(test, t->odp->count, 2);
	KUNIT_EXPECT_NULL(test, xa_load(&t->odp->leaves,
					t->at >> ARX_LEAF_SHIFT));
	KUNIT_EXPECT_FALSE(test, lacks(t, 2 * ARX_LEAF_SIZE, 1, false));
}

/* A job may outlive the region, and finds nothing then. */
static void odp__ended(struct kunit *test)
{
	struct odp_test *t = test->priv;
	struct arx_odp *odp = t->odp;

	KUNIT_ASSERT_EQ(test, find(t, 0, 1, false), 0);
	arx_odp_hold(odp);
	arx_odp_end(odp);
	KUNIT_EXPECT_EQ(test, find(t, 0, 1, false), -EFAULT);
	t->odp = NULL;
	arx_odp_put(odp);
}

/* True if pages of a region lack; @at is an address in the process. */
static bool absent(struct arx_odp *odp, u64 at, u32 len)
{
	struct arx_pages want;
	bool is;

	arx_section_enter();
	is = arx_odp_absent(odp, at - odp->base, len, true, &want);
	arx_section_leave();
	return is && want.addr == at && want.len == len;
}

/* The last bytes of the address space: the next address would be 0. */
static void odp__last_addresses(struct kunit *test)
{
	struct arx_odp *all = arx_odp_make(0, U64_MAX);

	KUNIT_ASSERT_FALSE(test, IS_ERR(all));
	KUNIT_EXPECT_TRUE(test, absent(all, -(u64)ARX_LEAF_SIZE, 8));
	KUNIT_EXPECT_TRUE(test, absent(all, U64_MAX - 8, 8));
	KUNIT_EXPECT_TRUE(test, absent(all, -2 * (u64)ARX_LEAF_SIZE,
				       ARX_LEAF_SIZE + 8));
	arx_odp_end(all);
}

/* Addresses that no process has. */
static void odp__addresses(struct kunit *test)
{
	struct odp_test *t = test->priv;
	struct arx_pages high = { .addr = U64_MAX - 5, .len = 3 };
	struct arx_odp *all = arx_odp_make(0, U64_MAX);

	KUNIT_ASSERT_FALSE(test, IS_ERR(all));
	high.odp = all;
	KUNIT_EXPECT_EQ(test, arx_odp_find(&high, ARX_ODP_FAULT), -EFAULT);
	high = (struct arx_pages){ .odp = all, .addr = t->at, .len = 1 };
	KUNIT_EXPECT_EQ(test, arx_odp_find(&high, ARX_ODP_PREFETCH), 0);
	KUNIT_EXPECT_EQ(test, atomic64_read(&all->prefetched), 1);
	arx_odp_end(all);
	KUNIT_EXPECT_EQ(test, PTR_ERR(arx_odp_make(U64_MAX - 5, 10)), -EFAULT);
	KUNIT_EXPECT_EQ(test, PTR_ERR(arx_odp_make(1UL << 63, 10)), -EFAULT);
}

static struct kunit_case odp_cases[] = {
	KUNIT_CASE(odp__found),
	KUNIT_CASE(odp__want),
	KUNIT_CASE(odp__bytes),
	KUNIT_CASE(odp__unmapped),
	KUNIT_CASE(odp__leaves),
	KUNIT_CASE(odp__ended),
	KUNIT_CASE(odp__last_addresses),
	KUNIT_CASE(odp__addresses),
	{}
};

static struct kunit_suite odp_suite = {
	.name = "arx_odp",
	.init = odp_init,
	.exit = odp_exit,
	.test_cases = odp_cases,
};

kunit_test_suite(odp_suite);

#endif /* CONFIG_INFINIBAND_ON_DEMAND_PAGING */
