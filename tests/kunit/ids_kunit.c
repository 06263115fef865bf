// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ids.c: unique numbers, their look-up, and how long they are quarantined. */

#include <kunit/test.h>

#include "ids.c"

static struct arx_id objects[ARX_IDS_QUARANTINE + 256];

static void destroy(void *ids)
{
	arx_ids_destroy(ids);
}

static struct arx_ids *make_ids(struct kunit *test, unsigned int bits)
{
	struct arx_ids *ids = kunit_kzalloc(test, sizeof(*ids), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ids);
	arx_ids_init(ids, bits);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, destroy, ids),
			0);
	return ids;
}

static struct arx_id *find(struct arx_ids *ids, u32 nr)
{
	guard(rcu)();
	return arx_ids_find(ids, nr);
}

static void ids__found_until_removed(struct kunit *test)
{
	struct arx_ids *ids = make_ids(test, 24);
	int i;

	for (i = 0; i < 64; i++) {
		KUNIT_ASSERT_EQ(test, arx_ids_add(ids, &objects[i]), 0);
		KUNIT_EXPECT_GE(test, objects[i].nr, 2);
		KUNIT_EXPECT_LT(test, objects[i].nr, 1 << 24);
	}
	for (i = 0; i < 64; i++)
		KUNIT_EXPECT_PTR_EQ(test, find(ids, objects[i].nr),
				    &objects[i]);
	for (i = 0; i < 64; i++) {
		arx_ids_remove(ids, &objects[i]);
		KUNIT_EXPECT_NULL(test, find(ids, objects[i].nr));
	}
}

/* One number fits into two bits beside 0, 1 and the multicast QPN. */
static void ids__full(struct kunit *test)
{
	struct arx_ids *ids = make_ids(test, 2);

	KUNIT_EXPECT_EQ(test, arx_ids_add(ids, &objects[0]), 0);
	KUNIT_EXPECT_EQ(test, objects[0].nr, 2);
	KUNIT_EXPECT_EQ(test, arx_ids_add(ids, &objects[1]), -ENOSPC);
	/* A freed number is not available to the next object. */
	arx_ids_remove(ids, &objects[0]);
	KUNIT_EXPECT_EQ(test, arx_ids_add(ids, &objects[1]), -ENOSPC);
}

/* Half of all numbers are quarantined: drawn numbers are of the other half. */
static void ids__quarantine(struct kunit *test)
{
	struct arx_ids *ids = make_ids(test, 11);
	int i, j;

	for (i = 0; i < ARX_IDS_QUARANTINE; i++)
		KUNIT_ASSERT_EQ(test, arx_ids_add(ids, &objects[i]), 0);
	for (i = 0; i < ARX_IDS_QUARANTINE; i++)
		arx_ids_remove(ids, &objects[i]);
	for (; i < ARRAY_SIZE(objects); i++) {
		KUNIT_ASSERT_EQ(test, arx_ids_add(ids, &objects[i]), 0);
		for (j = 0; j < ARX_IDS_QUARANTINE; j++)
			KUNIT_EXPECT_NE(test, objects[i].nr, objects[j].nr);
	}
}

/*
 * A number is quarantined while ARX_IDS_QUARANTINE - 1 others are freed. No two
 * of these numbers have the same remainder.
 */
static void ids__quarantine_ends(struct kunit *test)
{
	struct arx_ids *ids = make_ids(test, ilog2(ARX_IDS_REMAINDERS));
	int i;

	for (i = 0; i <= ARX_IDS_QUARANTINE; i++) {
		KUNIT_ASSERT_EQ(test, arx_ids_add(ids, &objects[i]), 0);
		arx_ids_remove(ids, &objects[i]);
		KUNIT_EXPECT_EQ(test, *arx_ids_same_remainder(ids,
							      objects[0].nr),
				i < ARX_IDS_QUARANTINE);
	}
}

/* The quarantine of as many numbers again leaves nothing of the first ones. */
static void ids__quarantine_counts(struct kunit *test)
{
	struct arx_ids *ids = make_ids(test, 24);
	u32 i, sum = 0;

	for (i = 0; i < 3 * ARX_IDS_QUARANTINE; i++) {
		KUNIT_ASSERT_EQ(test, arx_ids_add(ids, &objects[0]), 0);
		arx_ids_remove(ids, &objects[0]);
	}
	for (i = 0; i < ARX_IDS_REMAINDERS; i++)
		sum += ids->remainders[i];
	KUNIT_EXPECT_EQ(test, sum, ARX_IDS_QUARANTINE);
}

/*
 * A process cannot choose numbers that share a bucket: numbers that share one
 * under one seed are spread under another.
 */
static void ids__hash_keyed(struct kunit *test)
{
	const u32 buckets = 64;
	u32 nr, n = 0, still = 0;

	for (nr = 2; n < 256; nr++) {
		if (arx_ids_hash(&nr, sizeof(nr), 1) % buckets)
			continue;
		n++;
		if (!(arx_ids_hash(&nr, sizeof(nr), 2) % buckets))
			still++;
	}
	KUNIT_EXPECT_LT(test, still, 32);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(ids__found_until_removed),
	KUNIT_CASE(ids__full),
	KUNIT_CASE(ids__quarantine),
	KUNIT_CASE(ids__quarantine_ends),
	KUNIT_CASE(ids__quarantine_counts),
	KUNIT_CASE(ids__hash_keyed),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_ids",
	.test_cases = cases,
};

kunit_test_suite(suite);
