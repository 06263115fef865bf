// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ring.h: right and wrong indices. */

#include <kunit/test.h>

#include "ring.h"

#define ENTRIES	8
#define STRIDE	64

static struct arx_ring *make_ring(struct kunit *test)
{
	struct arx_ring *ring = kunit_kzalloc(test, sizeof(*ring), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ring);
	ring->hdr = kunit_kzalloc(test, sizeof(*ring->hdr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ring->hdr);
	ring->entries = kunit_kzalloc(test, ENTRIES * STRIDE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ring->entries);
	ring->mask = ENTRIES - 1;
	ring->stride = STRIDE;
	return ring;
}

static void ring__entry_stays_inside(struct kunit *test)
{
	static const u32 indices[] = { 0, 7, 8, 0x7fffffff, 0x80000000, ~0u };
	struct arx_ring *ring = make_ring(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(indices); i++)
		KUNIT_EXPECT_PTR_EQ(test, arx_ring_entry(ring, indices[i]),
				    ring->entries +
				    indices[i] % ENTRIES * STRIDE);
}

/* Around the wrap of 32 bits: full with the last slot, never before. */
static void ring__full_and_pending(struct kunit *test)
{
	struct arx_ring *ring = make_ring(test);
	u32 start = -3;
	u32 i;

	arx_ring_consume(ring, start);
	arx_ring_produce(ring, start);
	for (i = 0; i < ENTRIES; i++) {
		KUNIT_EXPECT_EQ(test, arx_ring_pending(ring, start), i);
		KUNIT_EXPECT_FALSE(test, arx_ring_full(ring, start + i));
		arx_ring_produce(ring, start + i + 1);
	}
	KUNIT_EXPECT_EQ(test, arx_ring_pending(ring, start), ENTRIES);
	KUNIT_EXPECT_TRUE(test, arx_ring_full(ring, start + ENTRIES));
	arx_ring_consume(ring, start + 1);
	KUNIT_EXPECT_FALSE(test, arx_ring_full(ring, start + ENTRIES));
}

/* A wrong prod shows as more entries than fit; a wrong cons reads as full. */
static void ring__lies(struct kunit *test)
{
	struct arx_ring *ring = make_ring(test);

	ring->hdr->prod = -1;
	KUNIT_EXPECT_GT(test, arx_ring_pending(ring, 0),
			arx_ring_entries(ring));
	ring->hdr->cons = 1;
	KUNIT_EXPECT_TRUE(test, arx_ring_full(ring, 0));
	ring->hdr->cons = 0x80000000;
	KUNIT_EXPECT_TRUE(test, arx_ring_full(ring, 0));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(ring__entry_stays_inside),
	KUNIT_CASE(ring__full_and_pending),
	KUNIT_CASE(ring__lies),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_ring",
	.test_cases = cases,
};

kunit_test_suite(suite);
