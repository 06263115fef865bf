// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* mr.c: blocks, fast registration, addresses, atomics. */

#include <kunit/test.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "mr.c"

/* The region is used after the read section: no test deregisters it. */
static struct arx_mr *find(struct arx_dev *dev, struct ib_pd *pd, u32 key,
			   int access, u64 iova, u64 length)
{
	struct arx_key_use use = {
		.dev = dev,
		.pd = pd,
		.value = key,
		.access = access,
		.iova = iova,
		.length = length,
	};
	struct arx_key *found;

	guard(rcu)();
	if (arx_key_get(&use, &found) != ARX_KEY_GRANTED)
		return NULL;
	arx_key_put(found);
	return container_of(found, struct arx_mr, key);
}

static int invalidate(struct arx_dev *dev, struct ib_pd *pd, u32 key)
{
	struct arx_key_use use = { .dev = dev, .pd = pd, .value = key };
	int err;

	rcu_read_lock_bh();
	err = arx_key_invalidate(&use);
	rcu_read_unlock_bh();
	return err;
}

#define IOVA	0x7fff12345678ULL
#define LENGTH	10000

/**
 * struct mr_test - a device with regions, two PDs
 * @dev: device
 * @pd: the regions' PD
 * @other: another
 * @mr: region made by hand
 */
struct mr_test {
	struct arx_dev dev;
	struct ib_pd pd;
	struct ib_pd other;
	struct arx_mr mr;
};

static int mr_init(struct kunit *test)
{
	struct mr_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	arx_ids_init(&t->dev.keys, 24);
	t->pd.device = &t->dev.ib;
	t->other.device = &t->dev.ib;
	test->priv = t;
	return 0;
}

static void mr_exit(struct kunit *test)
{
	struct mr_test *t = test->priv;

	arx_ids_destroy(&t->dev.keys);
}

/* A region of LENGTH bytes at IOVA that a user registered. */
static u32 publish(struct kunit *test, int access)
{
	struct mr_test *t = test->priv;
	struct arx_mr *mr = &t->mr;

	mr->ib.device = &t->dev.ib;
	mr->key.pd = &t->pd;
	mr->key.kind = ARX_KEY_USER;
	mr->key.mr = mr;
	mr->key.access = access;
	mr->key.iova = IOVA;
	mr->key.length = LENGTH;
	KUNIT_ASSERT_EQ(test, arx_ids_add(&t->dev.keys, &mr->key.id), 0);
	mr->key.value = mr->key.id.nr << 8 | 0x5a;
	mr->key.state = ARX_KEY_VALID;
	return mr->key.value;
}

/* Blocks of 16 bytes: 0, 1 and 2 are contiguous, 3 is not, 4 follows 3. */
#define BLOCK	16
static u8 memory[8 * BLOCK];
static const int places[] = { 0, 1, 2, 6, 7 };

static void lay_blocks(struct kunit *test)
{
	struct mr_test *t = test->priv;
	int i;

	publish(test, 0);
	t->mr.block_shift = ilog2(BLOCK);
	t->mr.key.offset = 5;
	t->mr.key.length = ARRAY_SIZE(places) * BLOCK - 5;
	t->mr.max_blocks = ARRAY_SIZE(places);
	t->mr.nblocks = ARRAY_SIZE(places);
	t->mr.blocks = kunit_kcalloc(test, ARRAY_SIZE(places), sizeof(void *),
				     GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->mr.blocks);
	for (i = 0; i < ARRAY_SIZE(places); i++)
		t->mr.blocks[i] = memory + places[i] * BLOCK;
}

struct place {
	const char *name;
	u32 from;	/* byte of the region */
	size_t want;
	u32 at;		/* byte of @memory */
	size_t got;
};

static const struct place where[] = {
	{ "first byte", 0, 1, 5, 1 },
	{ "within a block", 2, 3, 7, 3 },
	{ "to the end of a block", 0, 11, 5, 11 },
	{ "across two", 0, 12, 5, 12 },
	{ "all that follow", 0, 43, 5, 43 },
	{ "not across a gap", 0, 44, 5, 43 },
	{ "middle, not across", 20, 1000, 25, 23 },
	{ "last byte before the gap", 42, 2, 47, 1 },
	{ "first byte behind it", 43, 1, 6 * BLOCK, 1 },
	{ "all behind it", 43, 32, 6 * BLOCK, 32 },
	{ "last byte", 74, 1, 8 * BLOCK - 1, 1 },
};

static void place_name(const struct place *p, char *name)
{
	strscpy(name, p->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(place, where, place_name);

static void mr__at(struct kunit *test)
{
	const struct place *p = test->param_value;
	struct mr_test *t = test->priv;
	u32 len = p->want;
	void *at;

	lay_blocks(test);
	at = arx_mr_at(&t->mr.key, IOVA + p->from, &len);
	KUNIT_EXPECT_PTR_EQ(test, at, (void *)memory + p->at);
	KUNIT_EXPECT_EQ(test, len, p->got);
}

/* Read in any steps, the region has the same bytes. */
static void mr__at_walk(struct kunit *test)
{
	struct mr_test *t = test->priv;
	u32 step, from;

	lay_blocks(test);
	for (step = 1; step <= t->mr.key.length; step++) {
		for (from = 0; from < t->mr.key.length;) {
			u32 len = min_t(u64, step, t->mr.key.length - from);
			u32 byte = from + t->mr.key.offset;
			u8 *at = arx_mr_at(&t->mr.key, IOVA + from, &len);

			KUNIT_ASSERT_PTR_EQ(test, at, memory +
					    places[byte / BLOCK] * BLOCK +
					    byte % BLOCK);
			KUNIT_ASSERT_GT(test, len, 0);
			from += len;
		}
		KUNIT_ASSERT_EQ(test, from, t->mr.key.length);
	}
}

/* If a bounds check is ever missing, there is no memory after the blocks. */
static void mr__at_beyond(struct kunit *test)
{
	struct mr_test *t = test->priv;
	u32 len = 1;

	lay_blocks(test);
	KUNIT_EXPECT_NULL(test, arx_mr_at(&t->mr.key, IOVA + 75, &len));
	KUNIT_EXPECT_NULL(test, arx_mr_at(&t->mr.key, IOVA - 6, &len));
}

static void mr__dma(struct kunit *test)
{
	struct mr_test *t = test->priv;
	void *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	u64 addr = (uintptr_t)page;
	u32 len = PAGE_SIZE;
	struct arx_mr *mr;
	struct ib_mr *ib;

	KUNIT_ASSERT_NOT_NULL(test, page);
	ib = arx_get_dma_mr(&t->pd, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ib);
	mr = find(&t->dev, &t->pd, ib->lkey, IB_ACCESS_LOCAL_WRITE,
		  addr, PAGE_SIZE);
	KUNIT_EXPECT_PTR_EQ(test, mr, to_arx_mr(ib));
	KUNIT_EXPECT_PTR_EQ(test, arx_mr_at(&mr->key, addr, &len), page);
	KUNIT_EXPECT_EQ(test, len, PAGE_SIZE);
	KUNIT_EXPECT_NULL(test, find(&t->dev, &t->pd, ib->rkey,
				     IB_ACCESS_REMOTE_READ, addr, 1));
	KUNIT_EXPECT_NULL(test, find(&t->dev, &t->other, ib->lkey, 0,
				     addr, 1));
	arx_dereg_mr(ib, NULL);
}

/* A kernel address from a peer is not used. */
static void mr__dma_remote(struct kunit *test)
{
	struct mr_test *t = test->priv;
	void *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	struct arx_key *key;
	struct ib_mr *ib;
	u32 len;

	KUNIT_ASSERT_NOT_NULL(test, page);
	ib = arx_get_dma_mr(&t->pd, IB_ACCESS_REMOTE_READ);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ib);
	len = 8;
	key = &to_arx_mr(ib)->key;
	KUNIT_EXPECT_PTR_EQ(test, arx_mr_at(key, (uintptr_t)page + 9, &len),
			    page + 9);
	KUNIT_EXPECT_EQ(test, len, 8);
	len = 8;
	KUNIT_EXPECT_NULL(test, arx_mr_at(key, 0x8000000000000000ULL, &len));
	arx_dereg_mr(ib, NULL);
}

static void mr__dma_not_for_applications(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct ib_uobject uobj = {};

	t->pd.uobject = &uobj;
	KUNIT_EXPECT_PTR_EQ(test, arx_get_dma_mr(&t->pd, 0), ERR_PTR(-EPERM));
}

/* A region of pages of 4096 bytes. */
static struct arx_mr *fast_mr(struct kunit *test, u32 pages)
{
	struct mr_test *t = test->priv;
	struct ib_mr *ib = arx_alloc_mr(&t->pd, IB_MR_TYPE_MEM_REG, pages);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ib);
	ib->page_size = SZ_4K;
	return to_arx_mr(ib);
}

static int map(struct arx_mr *mr, void *from, u32 length)
{
	struct scatterlist sg;

	sg_init_one(&sg, from, length);
	sg_dma_address(&sg) = (uintptr_t)from;
	sg_dma_len(&sg) = length;
	return arx_map_mr_sg(&mr->ib, &sg, 1, NULL);
}

static void mr__fast_reg(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct arx_mr *mr = fast_mr(test, 4);
	void *buf = kunit_kzalloc(test, 4 * SZ_4K, GFP_KERNEL);
	u32 len = 3 * SZ_4K - 100;
	u32 key = mr->ib.rkey;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_EQ(test, map(mr, buf + 100, len), 1);
	KUNIT_EXPECT_EQ(test, mr->nblocks, 3);
	/* changed after mapping */
	mr->ib.iova = (mr->ib.iova & ~PAGE_MASK) | 0x12000;

	/* Not before it is registered. */
	KUNIT_EXPECT_NULL(test, find(&t->dev, &t->pd, key, 0,
				     mr->ib.iova, 1));
	KUNIT_EXPECT_EQ(test, arx_mr_fast_reg(mr, &t->pd, key,
					      IB_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_PTR_EQ(test, find(&t->dev, &t->pd, key,
				       IB_ACCESS_REMOTE_READ,
					      mr->ib.iova, len), mr);
	KUNIT_EXPECT_PTR_EQ(test, arx_mr_at(&mr->key, mr->ib.iova, &len),
			    buf + 100);
	KUNIT_EXPECT_EQ(test, len, 3 * SZ_4K - 100);
	arx_dereg_mr(&mr->ib, NULL);
}

/* The list of entries { first byte of @buf, bytes }. */
static int map_list(struct arx_mr *mr, void *buf, const u32 (*entries)[2],
		    int n, unsigned int *offset)
{
	struct scatterlist sg[8];
	int i;

	sg_init_table(sg, n);
	for (i = 0; i < n; i++) {
		sg_dma_address(sg + i) = (uintptr_t)buf + entries[i][0];
		sg_dma_len(sg + i) = entries[i][1];
	}
	return arx_map_mr_sg(&mr->ib, sg, n, offset);
}

static const u32 gaps[][2] = {
	{ 100, 50 }, { 5000, 3 }, { 5003, 5 }, { 9000, 1 }, { 0, 4096 },
};

/* Each byte of the region is the byte of the list. */
static void mr__gaps(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct ib_mr *ib = arx_alloc_mr(&t->pd, IB_MR_TYPE_SG_GAPS, 4);
	void *buf = kunit_kzalloc(test, 4 * SZ_4K, GFP_KERNEL);
	unsigned int offset = 30;
	struct arx_mr *mr;
	u32 at = 0;
	int i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ib);
	mr = to_arx_mr(ib);
	ib->page_size = SZ_4K;
	KUNIT_ASSERT_EQ(test, map_list(mr, buf, gaps, 5, &offset), 5);
	KUNIT_EXPECT_EQ(test, offset, 0);
	KUNIT_EXPECT_EQ(test, mr->npieces, 4);
	KUNIT_EXPECT_EQ(test, ib->length, 20 + 3 + 5 + 1 + 4096);
	ib->iova = 0x7777777;	/* changed after mapping */
	KUNIT_ASSERT_EQ(test, arx_mr_fast_reg(mr, &t->pd, ib->rkey, 0), 0);
	for (i = 0; i < 5; i++) {
		u32 from = i ? 0 : 30, byte;

		for (byte = from; byte < gaps[i][1]; byte++, at++) {
			u32 left = gaps[i][1] - byte + (i == 1 ? 5 : 0);
			u32 len = 10000;

			KUNIT_ASSERT_PTR_EQ(test, buf + gaps[i][0] + byte,
					    arx_mr_at(&mr->key, ib->iova + at,
						      &len));
			KUNIT_ASSERT_EQ(test, len, left);
		}
	}
	arx_dereg_mr(ib, NULL);
}

/* Pages are blocks as ever, and a list that is too long is mapped in part. */
static void mr__gaps_or_pages(struct kunit *test)
{
	static const u32 pages[][2] = {
		{ SZ_4K + 8, SZ_4K - 8 }, { 3 * SZ_4K, SZ_4K }, { 0, 9 },
	};
	struct mr_test *t = test->priv;
	struct ib_mr *ib = arx_alloc_mr(&t->pd, IB_MR_TYPE_SG_GAPS, 3);
	void *buf = kunit_kzalloc(test, 4 * SZ_4K, GFP_KERNEL);
	unsigned int offset;
	struct arx_mr *mr;
	u32 len = 100;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ib);
	KUNIT_ASSERT_TRUE(test, IS_ALIGNED((uintptr_t)buf, SZ_4K));
	mr = to_arx_mr(ib);
	ib->page_size = SZ_4K;
	KUNIT_EXPECT_EQ(test, map_list(mr, buf, gaps, 5, NULL), 4);
	KUNIT_EXPECT_EQ(test, ib->length, 50 + 3 + 5 + 1);
	/* The start is beyond the first entry: the core refuses that. */
	offset = 10000;
	KUNIT_EXPECT_EQ(test, map_list(mr, buf, gaps, 5, &offset), -EINVAL);
	KUNIT_EXPECT_EQ(test, map_list(mr, buf, pages, 3, NULL), 3);
	KUNIT_EXPECT_EQ(test, mr->npieces, 0);
	KUNIT_EXPECT_EQ(test, mr->nblocks, 3);
	KUNIT_ASSERT_EQ(test, arx_mr_fast_reg(mr, &t->pd, ib->rkey, 0), 0);
	KUNIT_EXPECT_PTR_EQ(test, buf + 3,
			    arx_mr_at(&mr->key, ib->iova + 2 * SZ_4K - 5,
				      &len));
	arx_dereg_mr(ib, NULL);
}

static void mr__fast_reg_refused(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct arx_mr *mr = fast_mr(test, 1);
	u32 key = mr->ib.rkey;

	KUNIT_EXPECT_EQ(test, arx_mr_fast_reg(mr, &t->other, key, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, arx_mr_fast_reg(mr, &t->pd, key ^ 0x100, 0),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, arx_mr_fast_reg(mr, &t->pd, key,
					      IB_ACCESS_ON_DEMAND), -EINVAL);
	KUNIT_EXPECT_EQ(test, arx_mr_fast_reg(mr, &t->pd, key, 0), 0);
	KUNIT_EXPECT_EQ(test, arx_mr_fast_reg(mr, &t->pd, key, 0), -EINVAL);
	arx_dereg_mr(&mr->ib, NULL);
}

static void *every_other_page(void *of, size_t n)
{
	return of + 2 * n * PAGE_SIZE;
}

/* A region of device memory begins at 0, wherever it is in the memory. */
static void mr__device(struct kunit *test)
{
	void *mem = (void *)0xff11000000000000ULL;
	struct mr_test *t = test->priv;
	u32 len = 2 * PAGE_SIZE;
	struct arx_key *key;
	struct ib_mr *ib;

	ib = arx_mr_of_pages(&t->pd, 3 * PAGE_SIZE + 8, 2 * PAGE_SIZE,
			     IB_ZERO_BASED | IB_ACCESS_REMOTE_READ,
			     every_other_page, mem);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ib);
	key = &to_arx_mr(ib)->key;
	KUNIT_EXPECT_EQ(test, to_arx_mr(ib)->nblocks, 3);
	KUNIT_EXPECT_PTR_EQ(test, arx_mr_at(key, 0, &len),
			    mem + 6 * PAGE_SIZE + 8);
	KUNIT_EXPECT_EQ(test, len, PAGE_SIZE - 8);
	len = 100;
	KUNIT_EXPECT_PTR_EQ(test, arx_mr_at(key, 2 * PAGE_SIZE - 8, &len),
			    mem + 10 * PAGE_SIZE);
	KUNIT_EXPECT_NOT_NULL(test, find(&t->dev, &t->pd, ib->rkey,
					 IB_ACCESS_REMOTE_READ, 0,
					 2 * PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, find(&t->dev, &t->pd, ib->rkey,
				     IB_ACCESS_REMOTE_WRITE, 0, 8));
	KUNIT_EXPECT_NULL(test, find(&t->dev, &t->pd, ib->rkey, 0, 0,
				     2 * PAGE_SIZE + 1));
	arx_dereg_mr(ib, NULL);
	KUNIT_EXPECT_PTR_EQ(test, arx_mr_of_pages(&t->pd, 0, PAGE_SIZE,
						  IB_ACCESS_ON_DEMAND,
						  every_other_page, mem),
			    ERR_PTR(-EOPNOTSUPP));
}

/*
 * Addresses of blocks that are contiguous in their low 34 bits, in one piece
 * and across a multiple of 16 GiB. The test uses the addresses only, not the
 * memory.
 */
static void mr__large_blocks(struct kunit *test)
{
	const u64 at = 0xff110001c0000000ULL, iova = 0x1c0000000ULL;
	struct mr_test *t = test->priv;
	struct scatterlist sg;
	struct ib_umem umem = {
		.ibdev = &t->dev.ib,
		.address = iova,
		.iova = iova,
		.length = SZ_2G,
		.sgt_append.sgt = { .sgl = &sg, .nents = 1, .orig_nents = 1 },
	};
	struct arx_mr *mr;
	u64 off;

	sg_init_table(&sg, 1);
	sg.length = SZ_2G;
	sg_dma_address(&sg) = at;
	sg_dma_len(&sg) = SZ_2G;
	mr = arx_mr_of_umem(&t->pd, &umem);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	mr->key.iova = iova;
	for (off = 0; off < SZ_2G; off += SZ_256M) {
		u32 len = SZ_256M;

		KUNIT_EXPECT_EQ(test, at + off, (uintptr_t)
				arx_mr_at(&mr->key, iova + off, &len));
		KUNIT_EXPECT_EQ(test, len, SZ_256M);
	}
	arx_mr_free(mr);
}

/*
 * The next key is written in advance, but only a registration makes it valid.
 */
static void mr__next_key(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct arx_mr *mr = fast_mr(test, 1);
	void *buf = kunit_kzalloc(test, SZ_4K, GFP_KERNEL);
	u32 old = mr->ib.rkey, new;

	KUNIT_ASSERT_EQ(test, map(mr, buf, SZ_4K), 1);
	KUNIT_ASSERT_EQ(test, arx_mr_fast_reg(mr, &t->pd, old, 0), 0);
	ib_update_fast_reg_key(&mr->ib, old + 1);
	new = mr->ib.rkey;
	KUNIT_EXPECT_NE(test, old, new);
	KUNIT_EXPECT_PTR_EQ(test, find(&t->dev, &t->pd, old, 0, 0, 0),
			    mr);
	KUNIT_EXPECT_NULL(test, find(&t->dev, &t->pd, new, 0, 0, 0));

	KUNIT_EXPECT_EQ(test, invalidate(&t->dev, &t->pd, old), 0);
	KUNIT_ASSERT_EQ(test, arx_mr_fast_reg(mr, &t->pd, new, 0), 0);
	KUNIT_EXPECT_NULL(test, find(&t->dev, &t->pd, old, 0, 0, 0));
	KUNIT_EXPECT_PTR_EQ(test, find(&t->dev, &t->pd, new, 0, 0, 0),
			    mr);
	arx_dereg_mr(&mr->ib, NULL);
}

/*
 * A region that is to begin at 0 does so whatever address the application
 * names. A region for fast registration has the address that it was given.
 */
static void mr__zero_based(struct kunit *test)
{
	struct mr_test *t = test->priv;
	struct arx_mr *fast = fast_mr(test, 1);
	struct ib_mr *ib;

	ib = arx_reg_user_mr(&t->pd, 4096, 0, IOVA, IB_ZERO_BASED, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ib));
	KUNIT_EXPECT_EQ(test, to_arx_mr(ib)->key.iova, 0);
	KUNIT_EXPECT_EQ(test, ib->iova, 0);
	arx_dereg_mr(ib, NULL);
	KUNIT_EXPECT_EQ(test, arx_mr_fast_reg(fast, &t->pd, fast->ib.rkey,
					      IB_ZERO_BASED), -EINVAL);
	arx_dereg_mr(&fast->ib, NULL);
}

static void mr__map_too_much(struct kunit *test)
{
	struct arx_mr *mr = fast_mr(test, 2);
	void *buf = kunit_kzalloc(test, 4 * SZ_4K, GFP_KERNEL);

	KUNIT_EXPECT_LT(test, map(mr, buf, 3 * SZ_4K), 1);
	KUNIT_EXPECT_EQ(test, mr->nblocks, 2);
	mr->ib.page_size = 3000;
	KUNIT_EXPECT_EQ(test, map(mr, buf, 100), -EINVAL);
	arx_dereg_mr(&mr->ib, NULL);
}

static void mr__alloc_out_of_range(struct kunit *test)
{
	struct mr_test *t = test->priv;

	KUNIT_EXPECT_PTR_EQ(test, arx_alloc_mr(&t->pd, IB_MR_TYPE_MEM_REG, 0),
			    ERR_PTR(-EINVAL));
	KUNIT_EXPECT_PTR_EQ(test, arx_alloc_mr(&t->pd, IB_MR_TYPE_MEM_REG,
					       ARX_MAX_FAST_REG_PAGES + 1),
			    ERR_PTR(-EINVAL));
	KUNIT_EXPECT_PTR_EQ(test, arx_alloc_mr(&t->pd, IB_MR_TYPE_SG_GAPS,
					       ARX_MAX_FAST_REG_PAGES + 1),
			    ERR_PTR(-EINVAL));
	KUNIT_EXPECT_PTR_EQ(test, arx_alloc_mr(&t->pd, IB_MR_TYPE_INTEGRITY, 1),
			    ERR_PTR(-EINVAL));
}

static void mr__atomic(struct kunit *test)
{
	u64 word[2] = { 10, 7 };
	u64 orig = 0;

	/* Compare and swap: the same, then another. */
	KUNIT_EXPECT_EQ(test, arx_mr_atomic(word, true, 10, 20, &orig), 0);
	KUNIT_EXPECT_EQ(test, orig, 10);
	KUNIT_EXPECT_EQ(test, word[0], 20);
	KUNIT_EXPECT_EQ(test, arx_mr_atomic(word, true, 10, 30, &orig), 0);
	KUNIT_EXPECT_EQ(test, orig, 20);
	KUNIT_EXPECT_EQ(test, word[0], 20);

	/* Fetch and add, with carry out of all bits. */
	KUNIT_EXPECT_EQ(test, arx_mr_atomic(word, false, 5, 99, &orig), 0);
	KUNIT_EXPECT_EQ(test, orig, 20);
	KUNIT_EXPECT_EQ(test, word[0], 25);
	KUNIT_EXPECT_EQ(test, arx_mr_atomic(word, false, -26ULL, 0, &orig), 0);
	KUNIT_EXPECT_EQ(test, word[0], U64_MAX);
	KUNIT_EXPECT_EQ(test, arx_mr_atomic(word, false, 1, 0, &orig), 0);
	KUNIT_EXPECT_EQ(test, orig, U64_MAX);
	KUNIT_EXPECT_EQ(test, word[0], 0);
	KUNIT_EXPECT_EQ(test, word[1], 7);
}

/* The word must be aligned and contiguous where it lies. */
static void mr__write_word(struct kunit *test)
{
	u64 word[2] __aligned(BLOCK) = {};
	struct mr_test *t = test->priv;
	void *blocks[] = { word };
	int i;

	publish(test, 0);
	t->mr.blocks = blocks;
	t->mr.nblocks = 1;
	t->mr.block_shift = ilog2(BLOCK);
	for (i = 1; i < 8; i++)
		KUNIT_EXPECT_EQ(test, -EINVAL,
				arx_mr_write_word(&t->mr.key, IOVA + i, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			arx_mr_write_word(&t->mr.key, IOVA + 12, 1));
	KUNIT_EXPECT_EQ(test, word[0] | word[1], 0);
	KUNIT_EXPECT_EQ(test, 0, arx_mr_write_word(&t->mr.key, IOVA + 8, 77));
	KUNIT_EXPECT_EQ(test, word[0], 0);
	KUNIT_EXPECT_EQ(test, word[1], 77);
}

static void mr__atomic_unaligned(struct kunit *test)
{
	u64 word[2] = {};
	u64 orig;
	int i;

	for (i = 1; i < 8; i++)
		KUNIT_EXPECT_EQ(test, arx_mr_atomic((void *)word + i, false, 1,
						    0, &orig), -EINVAL);
	KUNIT_EXPECT_EQ(test, word[0] | word[1], 0);
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE_PARAM(mr__at, place_gen_params),
	KUNIT_CASE(mr__at_walk),
	KUNIT_CASE(mr__at_beyond),
	KUNIT_CASE(mr__dma),
	KUNIT_CASE(mr__dma_remote),
	KUNIT_CASE(mr__dma_not_for_applications),
	KUNIT_CASE(mr__fast_reg),
	KUNIT_CASE(mr__gaps),
	KUNIT_CASE(mr__gaps_or_pages),
	KUNIT_CASE(mr__fast_reg_refused),
	KUNIT_CASE(mr__device),
	KUNIT_CASE(mr__large_blocks),
	KUNIT_CASE(mr__next_key),
	KUNIT_CASE(mr__zero_based),
	KUNIT_CASE(mr__map_too_much),
	KUNIT_CASE(mr__alloc_out_of_range),
	KUNIT_CASE(mr__atomic),
	KUNIT_CASE(mr__atomic_unaligned),
	KUNIT_CASE(mr__write_word),
	{}
};

static struct kunit_suite mr_suite = {
	.name = "arx_mr",
	.init = mr_init,
	.exit = mr_exit,
	.test_cases = mr_cases,
};

kunit_test_suite(mr_suite);
