// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ids.c */

#include <kunit/test.h>

#include "ids.c"

static int objects[2 * ARX_IDS_QUARANTINE];

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

static void *find(struct arx_ids *ids, u32 id)
{
	guard(rcu)();
	return arx_ids_find(ids, id);
}

static bool is_taken(struct arx_ids *ids, u32 id)
{
	return rhashtable_lookup_fast(&ids->taken, &id, arx_ids_params);
}

static void ids__found_until_removed(struct kunit *test)
{
	struct arx_ids *ids = make_ids(test, 24);
	u32 id[64];
	int i;

	for (i = 0; i < ARRAY_SIZE(id); i++) {
		KUNIT_ASSERT_EQ(test, arx_ids_add(ids, &objects[i], &id[i]),
				0);
		KUNIT_EXPECT_GE(test, id[i], 2);
		KUNIT_EXPECT_LT(test, id[i], 1 << 24);
	}
	for (i = 0; i < ARRAY_SIZE(id); i++)
		KUNIT_EXPECT_PTR_EQ(test, find(ids, id[i]),
				    (void *)&objects[i]);
	for (i = 0; i < ARRAY_SIZE(id); i++) {
		arx_ids_remove(ids, id[i]);
		KUNIT_EXPECT_NULL(test, find(ids, id[i]));
	}
}

/* One number fits into two bits beside 0, 1 and the multicast QPN. */
static void ids__full(struct kunit *test)
{
	struct arx_ids *ids = make_ids(test, 2);
	u32 id[2];

	KUNIT_EXPECT_EQ(test, arx_ids_add(ids, &objects[0], &id[0]), 0);
	KUNIT_EXPECT_EQ(test, id[0], 2);
	KUNIT_EXPECT_EQ(test, arx_ids_add(ids, &objects[1], &id[1]), -ENOSPC);
	/* A freed number is not there for the next one. */
	arx_ids_remove(ids, id[0]);
	KUNIT_EXPECT_EQ(test, arx_ids_add(ids, &objects[1], &id[1]), -ENOSPC);
}

/* A number rests while ARX_IDS_QUARANTINE others are freed, and no longer. */
static void ids__quarantine(struct kunit *test)
{
	struct arx_ids *ids = make_ids(test, 24);
	u32 first, id;
	int i;

	KUNIT_ASSERT_EQ(test, arx_ids_add(ids, &objects[0], &first), 0);
	arx_ids_remove(ids, first);
	for (i = 0; i < ARX_IDS_QUARANTINE; i++) {
		KUNIT_EXPECT_TRUE(test, is_taken(ids, first));
		KUNIT_ASSERT_EQ(test, arx_ids_add(ids, &objects[i], &id), 0);
		KUNIT_EXPECT_NE(test, id, first);
		arx_ids_remove(ids, id);
	}
	KUNIT_EXPECT_FALSE(test, is_taken(ids, first));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(ids__found_until_removed),
	KUNIT_CASE(ids__full),
	KUNIT_CASE(ids__quarantine),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_ids",
	.test_cases = cases,
};

kunit_test_suite(suite);
