// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ring.c: creation of rings, right and wrong indices. Mapping of rings is
 * tested in a machine.
 */

#include <kunit/test.h>

#include "ring.c"

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

struct shape {
	u32 entries;
	u32 stride;
	u32 want;	/* entries; 0 for an error */
};

static const struct shape shapes[] = {
	{ .entries = 0, .stride = 64, .want = 0 },
	{ .entries = 1, .stride = 16, .want = 1 },
	{ .entries = 2, .stride = 64, .want = 2 },
	{ .entries = 3, .stride = 64, .want = 4 },
	{ .entries = 32, .stride = 512, .want = 32 },
	{ .entries = 64, .stride = 512, .want = 64 },
	{ .entries = 1000, .stride = 528, .want = 1024 },
	{ .entries = 1 << 16, .stride = 64, .want = 1 << 16 },
	/* Larger than a ring may be, and larger than 32 bits can express. */
	{ .entries = 1 << 30, .stride = 64, .want = 0 },
	{ .entries = BIT(31), .stride = 1 << 16, .want = 0 },
	{ .entries = U32_MAX, .stride = U32_MAX, .want = 0 },
};

static void shape_name(const struct shape *shape, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "%u of %u", shape->entries,
		 shape->stride);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_name);

static void ring__create(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct arx_ring ring = {};
	int err;

	err = arx_ring_create(&ring, shape->entries, shape->stride, NULL, NULL);
	if (!shape->want) {
		KUNIT_EXPECT_EQ(test, err, -EINVAL);
		return;
	}
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, arx_ring_entries(&ring), shape->want);
	KUNIT_EXPECT_EQ(test, ring.stride, shape->stride);
	KUNIT_EXPECT_EQ(test, ring.hdr->prod | ring.hdr->cons |
			ring.hdr->flags | ring.hdr->arm, 0);
	/*
	 * The last byte is memory. After contiguous pages KASAN may see no
	 * unused ones, so the size is checked, too.
	 */
	KUNIT_EXPECT_LE(test, ARX_RING_ENTRIES_OFFSET +
			(u64)shape->want * shape->stride, ring.mem->size);
	memset(arx_ring_entry(&ring, shape->want - 1), 0xff, shape->stride);
	arx_ring_destroy(&ring);
	KUNIT_EXPECT_NULL(test, ring.mem);
	arx_ring_destroy(&ring);
}

/* A process maps the pages that the kernel writes, of both kinds. */
static void ring__pages(struct kunit *test)
{
	const struct shape *shape = test->param_value;
	struct arx_ring ring = {};
	size_t at;

	if (!shape->want)
		kunit_skip(test, "no ring");
	KUNIT_ASSERT_EQ(test, arx_ring_create(&ring, shape->entries,
					      shape->stride, NULL, NULL), 0);
	if (ring.mem->size > ARX_RING_CONTIGUOUS)
		KUNIT_EXPECT_TRUE(test, is_vmalloc_addr(ring.mem->addr));
	for (at = 0; at < ring.mem->size; at += PAGE_SIZE) {
		u8 *mine = ring.mem->addr + at;
		u8 *mapped = page_address(arx_ring_page(ring.mem, at));

		KUNIT_EXPECT_EQ(test, mapped[PAGE_SIZE - 1], 0);
		mine[PAGE_SIZE - 1] = at / PAGE_SIZE + 1;
		KUNIT_EXPECT_EQ(test, mapped[PAGE_SIZE - 1],
				(u8)(at / PAGE_SIZE + 1));
	}
	arx_ring_destroy(&ring);
}

/* The offsets in libarx. */
static void ring__layout(struct kunit *test)
{
	struct arx_ring ring = {};
	void *base;

	KUNIT_ASSERT_EQ(test, arx_ring_create(&ring, 4, 16, NULL, NULL), 0);
	base = ring.hdr;
	KUNIT_EXPECT_PTR_EQ(test, (void *)&ring.hdr->prod, base);
	KUNIT_EXPECT_PTR_EQ(test, (void *)&ring.hdr->cons, base + 64);
	KUNIT_EXPECT_PTR_EQ(test, (void *)&ring.hdr->flags, base + 128);
	KUNIT_EXPECT_PTR_EQ(test, (void *)&ring.hdr->arm, base + 192);
	KUNIT_EXPECT_PTR_EQ(test, ring.entries, base + 256);
	arx_ring_destroy(&ring);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(ring__entry_stays_inside),
	KUNIT_CASE(ring__full_and_pending),
	KUNIT_CASE(ring__lies),
	KUNIT_CASE_PARAM(ring__create, shape_gen_params),
	KUNIT_CASE_PARAM(ring__pages, shape_gen_params),
	KUNIT_CASE(ring__layout),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_ring",
	.test_cases = cases,
};

kunit_test_suite(suite);
