// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* run.c: the same bytes from every kind of memory, in any steps; the ends. */

#include <kunit/test.h>
#include <linux/skbuff.h>

#include "run.h"

/* Checks the destination when the barrier before the last store runs. */
static void see_barrier(void);
#undef smp_wmb
#define smp_wmb() see_barrier()	/* instead of the one that run.c has */

#include "run.c"

#define BYTES	200	/* of payload */
#define BLOCK	16
#define BLOCKS	16
#define PACKET	64	/* bytes of payload in each packet */
#define TAIL	7	/* pad and ICRC after it */

/**
 * struct run_test - BYTES bytes of payload in all kinds of memory
 * @dev: device of the keys
 * @pd: the keys' PD
 * @other: another
 * @dma: region of kernel memory
 * @want: the payload
 * @got: bytes read, with room for one too many
 * @mem: memory of the layouts, most of it unused
 * @mr: a region of @blocks
 * @fast: regions of one block each, whose keys are revocable
 * @fast_block: their memory, in @want
 * @blocks: in @mem in reverse order
 * @sge: entries, some of them empty
 * @nsge: number of entries
 * @skb: packets
 */
struct run_test {
	struct arx_dev dev;
	struct ib_pd pd;
	struct ib_pd other;
	struct ib_mr *dma;
	u8 want[BYTES];
	u8 got[BYTES + 1];
	u8 mem[4 * BYTES];
	struct arx_mr mr;
	struct arx_mr fast[2];
	void *fast_block[2];
	void *blocks[BLOCKS];
	struct arx_sge sge[8];
	u32 nsge;
	struct sk_buff *skb;
};

#define IOVA	0x10005ULL

static void run_exit(struct kunit *test)
{
	struct run_test *t = test->priv;

	if (!t)
		return;
	kfree_skb_list(t->skb);
	if (!IS_ERR_OR_NULL(t->dma))
		arx_dereg_mr(t->dma, NULL);
	if (t->mr.key.state == ARX_KEY_VALID)
		arx_key_remove(&t->dev, &t->mr.key);
	arx_ids_destroy(&t->dev.keys);
}

static int run_init(struct kunit *test)
{
	struct run_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	arx_ids_init(&t->dev.keys, 24);
	t->pd.device = &t->dev.ib;
	t->other.device = &t->dev.ib;
	test->priv = t;
	t->dma = arx_get_dma_mr(&t->pd, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(t->dma));
	for (i = 0; i < BYTES; i++)
		t->want[i] = i ^ 0xa5;
	return 0;
}

/* Blocks in reverse order, so that none is contiguous with the one before. */
static void lay_mr(struct kunit *test)
{
	struct run_test *t = test->priv;
	int i;

	arx_key_init(&t->mr.key, ARX_KEY_USER, &t->pd);
	t->mr.key.mr = &t->mr;
	t->mr.key.iova = IOVA;
	t->mr.key.length = BYTES;
	KUNIT_ASSERT_EQ(test, arx_key_add(&t->dev, &t->mr.key), 0);
	arx_key_grant(&t->mr.key, t->mr.key.value);
	t->mr.key.offset = IOVA % BLOCK;
	t->mr.block_shift = ilog2(BLOCK);
	t->mr.nblocks = BLOCKS;
	t->mr.blocks = t->blocks;
	for (i = 0; i < BLOCKS; i++)
		t->blocks[i] = t->mem + (BLOCKS - 1 - i) * BLOCK;
	for (i = 0; i < BYTES; i++) {
		u32 at = i + t->mr.key.offset;

		((u8 *)t->blocks[at / BLOCK])[at % BLOCK] = t->want[i];
	}
}

/* Entries of all lengths, with a gap of 3 bytes between them. */
static void lay_sge(struct kunit *test)
{
	static const u32 lens[] = { 0, 1, 0, 0, 130, 7, BYTES - 138, 0 };
	struct run_test *t = test->priv;
	u32 from = 0, at = 1;

	static_assert(ARRAY_SIZE(lens) == ARRAY_SIZE(t->sge));
	for (t->nsge = 0; t->nsge < ARRAY_SIZE(lens); t->nsge++) {
		struct arx_sge *sge = &t->sge[t->nsge];

		sge->addr = (uintptr_t)t->mem + at;
		sge->length = lens[t->nsge];
		sge->lkey = t->dma->lkey;
		memcpy(t->mem + at, t->want + from, sge->length);
		from += sge->length;
		at += sge->length + 3;
	}
	KUNIT_ASSERT_EQ(test, from, BYTES);
}

/* A packet whose first @head bytes are linear and whose others are in pages. */
static struct sk_buff *packet(struct kunit *test, const u8 *data, u32 len,
			      u32 head)
{
	struct sk_buff *skb = alloc_skb(PACKET + TAIL, GFP_KERNEL);
	u32 at;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	head = min(head, len);
	skb_put_data(skb, data, head);
	for (at = head; at < len; at += 20) {
		u32 n = min(20u, len - at);
		struct page *page = alloc_page(GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, page);
		memcpy(page_address(page) + 100, data + at, n);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 100, n,
				PAGE_SIZE);
	}
	if (head == len)
		memset(skb_put(skb, TAIL), 0xee, TAIL);
	return skb;
}

/* Packets that are linear, partly linear, and not linear. */
static void lay_skb(struct kunit *test)
{
	static const u32 heads[] = { PACKET, 9, 0, PACKET };
	struct run_test *t = test->priv;
	struct sk_buff **last = &t->skb;
	u32 at;

	for (at = 0; at < BYTES; at += PACKET) {
		*last = packet(test, t->want + at, min(PACKET, BYTES - at),
			       heads[at / PACKET]);
		last = &(*last)->next;
	}
}

/* An iterator at the first byte of the layout. */
static struct arx_iter begin(struct run_test *t, enum arx_iter_kind kind)
{
	struct arx_key_use whole = {
		.dev = &t->dev,
		.pd = &t->pd,
		.value = t->mr.key.value,
		.iova = IOVA,
		.length = BYTES,
	};
	struct arx_pages want;
	struct arx_iter it;

	switch (kind) {
	case ARX_ITER_NONE:
		arx_iter_none(&it);
		break;
	case ARX_ITER_BUF:
		arx_iter_buf(&it, t->want);
		break;
	case ARX_ITER_SGE:
		arx_iter_sge(&it, &t->dev, &t->pd, t->sge, t->nsge, 0);
		break;
	case ARX_ITER_KEY:
		rcu_read_lock();
		arx_iter_key(&it, &whole, &want);
		rcu_read_unlock();
		break;
	case ARX_ITER_SKB:
		arx_iter_skb(&it, t->skb, PACKET);
		break;
	}
	return it;
}

/* Read @len bytes at @it in steps of @step. */
static enum arx_copy_error take(struct run_test *t, struct arx_iter *it,
				u32 len, u32 step)
{
	enum arx_copy_error err = ARX_COPY_OK;
	struct arx_iter to;

	memset(t->got, 0, sizeof(t->got));
	arx_iter_buf(&to, t->got);
	rcu_read_lock();
	while (len && !err) {
		u32 n = min(len, step);

		err = arx_iter_copy(&to, it, n);
		len -= n;
	}
	rcu_read_unlock();
	return err;
}

static const enum arx_iter_kind kinds[] = {
	ARX_ITER_BUF, ARX_ITER_SGE, ARX_ITER_KEY, ARX_ITER_SKB,
};

static void kind_name(const enum arx_iter_kind *kind, char *name)
{
	static const char * const names[] = {
		[ARX_ITER_BUF] = "buf", [ARX_ITER_SGE] = "sge",
		[ARX_ITER_KEY] = "key", [ARX_ITER_SKB] = "skb",
	};

	strscpy(name, names[*kind], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(kind, kinds, kind_name);

/* Make the layout of the parameter; the layouts share memory. */
static struct arx_iter laid(struct kunit *test)
{
	enum arx_iter_kind kind = *(enum arx_iter_kind *)test->param_value;

	if (kind == ARX_ITER_SGE)
		lay_sge(test);
	else if (kind == ARX_ITER_KEY)
		lay_mr(test);
	else if (kind == ARX_ITER_SKB)
		lay_skb(test);
	return begin(test->priv, kind);
}

static void run__any_step(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter first = laid(test);
	u32 step;

	for (step = 1; step <= BYTES; step++) {
		struct arx_iter it = first;

		KUNIT_ASSERT_EQ(test, take(t, &it, BYTES, step), ARX_COPY_OK);
		KUNIT_ASSERT_MEMEQ(test, t->got, t->want, BYTES);
	}
}

/* From any position to the end; a copy of the iterator is a saved position. */
static void run__skip(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter first = laid(test);
	u32 at, more;

	for (at = 0; at < BYTES; at++) {
		for (more = 0; more < 20 && at + more < BYTES; more++) {
			u32 rest = BYTES - at - more;
			struct arx_iter it = first;
			int err;

			rcu_read_lock();
			err = arx_iter_skip(&it, at);
			err = err ?: arx_iter_skip(&it, more);
			rcu_read_unlock();
			KUNIT_ASSERT_EQ(test, err, 0);
			KUNIT_ASSERT_EQ(test, take(t, &it, rest, 33),
					ARX_COPY_OK);
			KUNIT_ASSERT_MEMEQ(test, t->got, t->want + at + more,
					   rest);
		}
	}
}

/* There is no byte after the last, also if the last was skipped. */
static void run__list_ends(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter it;
	int err;

	lay_sge(test);
	it = begin(t, ARX_ITER_SGE);
	KUNIT_EXPECT_EQ(test, take(t, &it, BYTES, BYTES), ARX_COPY_OK);
	KUNIT_EXPECT_EQ(test, take(t, &it, 1, 1), ARX_COPY_BAD_SOURCE);
	it = begin(t, ARX_ITER_SGE);
	rcu_read_lock();
	err = arx_iter_skip(&it, BYTES + 1);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, err, -EFAULT);
}

static void run__none(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter it = begin(t, ARX_ITER_NONE);

	KUNIT_EXPECT_EQ(test, take(t, &it, 0, 1), ARX_COPY_OK);
	KUNIT_EXPECT_EQ(test, take(t, &it, 1, 1), ARX_COPY_BAD_SOURCE);
}

/* Bytes that a packet lacks are not taken from the next one. */
static void run__packet_too_short(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter it;

	t->skb = packet(test, t->want, 9, 8);
	t->skb->next = packet(test, t->want + PACKET, PACKET, PACKET);
	it = begin(t, ARX_ITER_SKB);
	KUNIT_EXPECT_EQ(test, take(t, &it, 9, 9), ARX_COPY_OK);
	KUNIT_EXPECT_MEMEQ(test, t->got, t->want, 9);
	KUNIT_EXPECT_EQ(test, take(t, &it, PACKET - 9, PACKET - 9),
			ARX_COPY_BAD_SOURCE);
	KUNIT_EXPECT_EQ(test, take(t, &it, 1, 1), ARX_COPY_BAD_SOURCE);
}

/* The last packet ends the payload, without its pad and ICRC. */
static void run__packets_end(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter it;

	lay_skb(test);
	arx_iter_skb(&it, t->skb, PACKET);
	KUNIT_EXPECT_EQ(test, take(t, &it, BYTES, BYTES), ARX_COPY_OK);
	KUNIT_EXPECT_EQ(test, take(t, &it, PACKET, PACKET),
			ARX_COPY_BAD_SOURCE);
}

/*
 * To every kind of writable memory, from a buffer; the bytes around do not
 * change.
 */
static void run__scatter(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter to, from;
	enum arx_copy_error err;
	u32 i, at = 0;

	lay_sge(test);
	memset(t->mem, 0x11, sizeof(t->mem));
	arx_iter_sge(&to, &t->dev, &t->pd, t->sge, t->nsge,
		     IB_ACCESS_LOCAL_WRITE);
	arx_iter_buf(&from, t->want);
	rcu_read_lock();
	err = arx_iter_copy(&to, &from, BYTES);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, err, ARX_COPY_OK);
	for (i = 0; i < t->nsge; i++) {
		u8 *mem = (u8 *)(uintptr_t)t->sge[i].addr;

		KUNIT_EXPECT_MEMEQ(test, mem, t->want + at, t->sge[i].length);
		KUNIT_EXPECT_EQ(test, mem[t->sge[i].length], 0x11);
		at += t->sge[i].length;
	}

	arx_iter_buf(&from, t->want);
	rcu_read_lock();
	err = arx_iter_copy(&to, &from, 1);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, err, ARX_COPY_BAD_DEST);
}

/* An invalid key ends the copy; bytes copied before stay. */
static void run__bad_key(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter it;

	lay_sge(test);
	t->sge[5].lkey ^= 0x100;
	it = begin(t, ARX_ITER_SGE);
	KUNIT_EXPECT_EQ(test, take(t, &it, BYTES, BYTES), ARX_COPY_BAD_SOURCE);
	KUNIT_EXPECT_MEMEQ(test, t->got, t->want, 131);
	KUNIT_EXPECT_EQ(test, t->got[131], 0);

	lay_sge(test);
	arx_iter_sge(&it, &t->dev, &t->other, t->sge, t->nsge, 0);
	KUNIT_EXPECT_EQ(test, take(t, &it, 1, 1), ARX_COPY_BAD_SOURCE);
	arx_iter_sge(&it, &t->dev, &t->pd, t->sge, t->nsge,
		     IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, take(t, &it, 1, 1), ARX_COPY_BAD_SOURCE);
}

struct shape {
	const char *name;
	u32 npkts;
	u32 len;
	u32 flags;
	bool good;
};

static const struct shape shapes[] = {
	{ "only, empty", 1, 0, ARX_FIRST | ARX_LAST, true },
	{ "only, full", 1, 1024, ARX_FIRST | ARX_LAST, true },
	{ "only, too long", 1, 1025, ARX_FIRST | ARX_LAST, false },
	{ "first, full", 1, 1024, ARX_FIRST, true },
	{ "first, short", 1, 1023, ARX_FIRST, false },
	{ "first, too long", 1, 1025, ARX_FIRST, false },
	{ "middle, empty", 1, 0, 0, false },
	{ "middles, full", 3, 3072, 0, true },
	{ "middles, short", 3, 3071, 0, false },
	{ "last, empty", 1, 0, ARX_LAST, false },
	{ "last, a byte", 1, 1, ARX_LAST, true },
	{ "last, full", 1, 1024, ARX_LAST, true },
	{ "last, too long", 1, 1025, ARX_LAST, false },
	{ "all, the last empty", 3, 2048, ARX_FIRST | ARX_LAST, false },
	{ "all, the last a byte", 3, 2049, ARX_FIRST | ARX_LAST, true },
	{ "all, full", 3, 3072, ARX_FIRST | ARX_LAST, true },
	{ "all, too long", 3, 3073, ARX_FIRST | ARX_LAST, false },
	{ "more than 32 bits", U32_MAX, 1024, 0, false },
};

static void shape_name(const struct shape *s, char *name)
{
	strscpy(name, s->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_name);

static void run__well_formed(struct kunit *test)
{
	const struct shape *s = test->param_value;
	struct arx_run run = {
		.npkts = s->npkts, .len = s->len,
		.h.flags = s->flags,
	};

	KUNIT_EXPECT_EQ(test, arx_run_well_formed(&run, 1024), s->good);
}

static const u8 *seen_from;	/* checked by see_barrier() */
static u8 seen[3 * BYTES];
static int barriers;

static void see_barrier(void)
{
	memcpy(seen, seen_from, sizeof(seen));
	barriers++;
}

/* One store writes the last word of a message, after all the rest. */
static void run__last_word(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter from, to;
	u8 *buf = PTR_ALIGN(t->mem + 8, 8);
	u32 at, len, word;

	seen_from = buf;
	for (at = 0; at < 8; at++)
		for (len = 1; len <= BYTES; len++) {
			for (word = 8; word > len || (at + len) % word;)
				word /= 2;
			memset(t->mem, 0, sizeof(t->mem));
			barriers = 0;
			arx_iter_buf(&from, t->want);
			arx_iter_buf(&to, buf + at);
			KUNIT_ASSERT_EQ(test, ARX_COPY_OK,
					arx_iter_copy_to_end(&to, &from, len));
			KUNIT_ASSERT_EQ(test, barriers, 1);
			KUNIT_ASSERT_MEMEQ(test, seen + at, t->want,
					   len - word);
			KUNIT_ASSERT_NULL(test,
					  memchr_inv(seen + at + len - word, 0,
						     word));
			KUNIT_ASSERT_MEMEQ(test, buf + at, t->want, len);
			KUNIT_ASSERT_EQ(test, buf[at + len], 0);
		}
}

/* The same between scattered pieces; a word is in one piece of memory. */
static void run__last_word_in_pieces(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter from, to;
	u32 len, i;

	lay_skb(test);
	lay_mr(test);
	seen_from = t->mem;
	rcu_read_lock();
	for (len = 1; len <= BYTES; len++) {
		memset(t->mem, 0, sizeof(t->mem));
		barriers = 0;
		from = begin(t, ARX_ITER_SKB);
		to = begin(t, ARX_ITER_KEY);
		if (arx_iter_copy_to_end(&to, &from, len) != ARX_COPY_OK ||
		    barriers != 1)
			break;
		for (i = 0; i < len; i++) {
			u32 in = i + t->mr.key.offset;
			u8 *block = t->blocks[in / BLOCK];
			u32 off = block + in % BLOCK - t->mem;

			if (t->mem[off] != t->want[i])
				break;
			if (i == len - 1 ? seen[off] :
			    i + 8 < len && seen[off] != t->want[i])
				break;
		}
		if (i < len)
			break;
	}
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, len, BYTES + 1);
}

/* The end of a message that cannot be read or written. */
static void run__last_word_bad(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter it, buf;

	arx_iter_none(&it);
	arx_iter_buf(&buf, t->got);
	KUNIT_EXPECT_EQ(test, ARX_COPY_BAD_SOURCE,
			arx_iter_copy_to_end(&buf, &it, 9));
	arx_iter_buf(&buf, t->want);
	KUNIT_EXPECT_EQ(test, ARX_COPY_BAD_DEST,
			arx_iter_copy_to_end(&it, &buf, 9));
	arx_iter_buf(&buf, t->want);
	KUNIT_EXPECT_EQ(test, ARX_COPY_BAD_DEST,
			arx_iter_copy_to_end(&it, &buf, 1));
}

/* Check the keys of the next bytes, without touching them or moving. */
static void run__check(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter it;
	u32 skip;
	bool ok;

	lay_sge(test);
	t->sge[5].lkey ^= 0x100;	/* bytes 131 to 137 */
	t->sge[2].lkey ^= 0x100;	/* none */
	for (skip = 0; skip <= BYTES; skip++) {
		it = begin(t, ARX_ITER_SGE);
		rcu_read_lock();
		arx_iter_skip(&it, skip);
		ok = arx_iter_check(&it, BYTES - skip);
		rcu_read_unlock();
		KUNIT_EXPECT_EQ(test, ok, skip >= 138);
	}
	it = begin(t, ARX_ITER_SGE);
	rcu_read_lock();
	ok = arx_iter_check(&it, 131);
	rcu_read_unlock();
	KUNIT_EXPECT_TRUE(test, ok);
	KUNIT_EXPECT_EQ(test, take(t, &it, 131, 50), ARX_COPY_OK);
	KUNIT_EXPECT_MEMEQ(test, t->got, t->want, 131);
	rcu_read_lock();
	ok = arx_iter_check(&it, 1);
	t->sge[5].lkey ^= 0x100;
	ok |= arx_iter_check(&it, BYTES - 131 + 1);	/* beyond the end */
	rcu_read_unlock();
	KUNIT_EXPECT_FALSE(test, ok);
	KUNIT_EXPECT_EQ(test, take(t, &it, BYTES - 131, 50), ARX_COPY_OK);
	KUNIT_EXPECT_MEMEQ(test, t->got, t->want + 131, BYTES - 131);
	arx_iter_none(&it);
	KUNIT_EXPECT_TRUE(test, arx_iter_check(&it, 0));
}

/* Three entries: 8 bytes of fast region 0, 8 bytes of 1, 8 more bytes of 0. */
static void lay_fast(struct kunit *test)
{
	struct run_test *t = test->priv;
	int i;

	for (i = 0; i < 2; i++) {
		struct arx_mr *mr = &t->fast[i];

		t->fast_block[i] = t->want + i * BLOCK;
		arx_key_init(&mr->key, ARX_KEY_FAST, &t->pd);
		mr->key.mr = mr;
		mr->key.access = ARX_KEY_LOCAL;
		mr->key.length = BLOCK;
		mr->block_shift = ilog2(BLOCK);
		mr->nblocks = 1;
		mr->blocks = &t->fast_block[i];
		KUNIT_ASSERT_EQ(test, arx_key_add(&t->dev, &mr->key), 0);
		arx_key_grant(&mr->key, mr->key.value);
	}
	for (i = 0; i < 3; i++)
		t->sge[i] = (struct arx_sge) {
			.addr = i == 2 ? 8 : 0,
			.length = 8,
			.lkey = t->fast[i % 2].key.value,
		};
	t->nsge = 3;
}

static void free_fast(struct run_test *t)
{
	arx_key_remove(&t->dev, &t->fast[0].key);
	arx_key_remove(&t->dev, &t->fast[1].key);
}

#define EXPECT_USERS(test, a, b)					\
	do {								\
		struct run_test *of = (test)->priv;			\
									\
		KUNIT_EXPECT_EQ(test, (a),				\
				atomic_read(&of->fast[0].key.users));	\
		KUNIT_EXPECT_EQ(test, (b),				\
				atomic_read(&of->fast[1].key.users));	\
	} while (0)

/* True if the first @len bytes lack pages, of @ahead in the message. */
static bool lacks(struct arx_iter *it, u32 len, u32 ahead,
		  struct arx_pages *want)
{
	bool absent;

	rcu_read_lock();
	absent = arx_iter_lacks(it, len, ahead, want);
	rcu_read_unlock();
	return absent;
}

/* An iterator holds the key in whose memory it is, and no other. */
static void run__holds_key(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_pages want;
	struct arx_iter it;

	lay_fast(test);
	it = begin(t, ARX_ITER_SGE);
	EXPECT_USERS(test, 0, 0);
	KUNIT_EXPECT_EQ(test, take(t, &it, 4, 4), ARX_COPY_OK);
	EXPECT_USERS(test, 1, 0);
	KUNIT_EXPECT_EQ(test, take(t, &it, 4, 4), ARX_COPY_OK);
	EXPECT_USERS(test, 1, 0);
	KUNIT_EXPECT_EQ(test, take(t, &it, 2, 2), ARX_COPY_OK);
	EXPECT_USERS(test, 0, 1);
	KUNIT_EXPECT_EQ(test, take(t, &it, 14, 14), ARX_COPY_OK);
	EXPECT_USERS(test, 1, 0);
	/* Nothing is left: no key is held. */
	KUNIT_EXPECT_EQ(test, take(t, &it, 1, 1), ARX_COPY_BAD_SOURCE);
	EXPECT_USERS(test, 0, 0);

	/* A check holds the first key, of the others it only asks. */
	it = begin(t, ARX_ITER_SGE);
	rcu_read_lock();
	KUNIT_EXPECT_TRUE(test, arx_iter_check(&it, 24));
	rcu_read_unlock();
	EXPECT_USERS(test, 1, 0);
	arx_iter_end(&it);
	EXPECT_USERS(test, 0, 0);
	arx_iter_end(&it);
	EXPECT_USERS(test, 0, 0);

	/* So does a search for pages, and the copy after that finds the key. */
	it = begin(t, ARX_ITER_SGE);
	KUNIT_EXPECT_FALSE(test, lacks(&it, 24, 24, &want));
	EXPECT_USERS(test, 1, 0);
	KUNIT_EXPECT_EQ(test, take(t, &it, 4, 4), ARX_COPY_OK);
	EXPECT_USERS(test, 1, 0);
	arx_iter_end(&it);
	EXPECT_USERS(test, 0, 0);
	free_fast(t);
}

/*
 * A check of bytes beyond the room at the end of an entry does not put the key
 * of that room.
 */
static void run__check_holds_key(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter it;
	u32 n;

	lay_fast(test);
	it = begin(t, ARX_ITER_SGE);
	rcu_read_lock();
	/* All of the entry is found, one byte of it is used. */
	KUNIT_EXPECT_TRUE(test, arx_iter_fetch(&it, 8));
	KUNIT_EXPECT_NOT_NULL(test, arx_iter_next(&it, 1, &n));
	KUNIT_EXPECT_EQ(test, it.room, 7);
	KUNIT_EXPECT_TRUE(test, arx_iter_check(&it, 23));
	rcu_read_unlock();
	EXPECT_USERS(test, 1, 0);
	KUNIT_EXPECT_EQ(test, take(t, &it, 23, 23), ARX_COPY_OK);
	KUNIT_EXPECT_MEMEQ(test, t->got, t->want + 1, 7);
	arx_iter_end(&it);
	EXPECT_USERS(test, 0, 0);
	free_fast(t);
}

/* True if the keys allow access to the first @len bytes; may hold the first. */
static bool allowed(struct arx_iter *it, u32 len)
{
	bool ok;

	rcu_read_lock();
	ok = arx_iter_check(it, len);
	rcu_read_unlock();
	return ok;
}

/* An entry may end behind its region; only bytes that are used count. */
static void run__ends_behind_region(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter it;

	lay_fast(test);
	t->sge[0].addr = BLOCK - 8;
	t->sge[0].length = 100;
	it = begin(t, ARX_ITER_SGE);
	KUNIT_EXPECT_FALSE(test, allowed(&it, 9));
	KUNIT_EXPECT_TRUE(test, allowed(&it, 4));
	KUNIT_EXPECT_FALSE(test, allowed(&it, 9));
	KUNIT_EXPECT_FALSE(test, allowed(&it, 101));
	KUNIT_EXPECT_EQ(test, take(t, &it, 4, 4), ARX_COPY_OK);
	EXPECT_USERS(test, 1, 0);
	/* The second packet of a message needs more than the first. */
	KUNIT_EXPECT_EQ(test, take(t, &it, 4, 4), ARX_COPY_OK);
	KUNIT_EXPECT_MEMEQ(test, t->got, t->want + BLOCK - 4, 4);
	KUNIT_EXPECT_EQ(test, take(t, &it, 1, 1), ARX_COPY_BAD_SOURCE);
	arx_iter_end(&it);
	EXPECT_USERS(test, 0, 0);

	/* The last entry of a list likewise, the others as a whole. */
	t->sge[0].length = 8;
	t->sge[1].addr = BLOCK - 8;
	t->sge[1].length = 100;
	it = begin(t, ARX_ITER_SGE);
	KUNIT_EXPECT_TRUE(test, allowed(&it, 16));
	KUNIT_EXPECT_FALSE(test, allowed(&it, 17));
	KUNIT_EXPECT_FALSE(test, allowed(&it, 109));
	KUNIT_EXPECT_EQ(test, take(t, &it, 16, 16), ARX_COPY_OK);
	arx_iter_end(&it);
	free_fast(t);
}

/* Pages are wanted up to the end of the region, and for what it grants. */
static void run__lacks_nothing_behind(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_odp odp = { .base = SZ_1M };
	struct arx_pages want = {};
	struct arx_iter it;

	xa_init(&odp.leaves);
	lay_mr(test);
	t->mr.key.access |= ARX_KEY_LOCAL;
	t->mr.odp = &odp;
	t->sge[0] = (struct arx_sge) {
		.addr = IOVA + BYTES - 100,
		.length = 1000,
		.lkey = t->mr.key.value,
	};
	t->nsge = 1;
	it = begin(t, ARX_ITER_SGE);
	KUNIT_EXPECT_TRUE(test, lacks(&it, 50, 1000, &want));
	KUNIT_EXPECT_EQ(test, want.len, 100);
	KUNIT_EXPECT_TRUE(test, allowed(&it, 50));
	KUNIT_EXPECT_TRUE(test, lacks(&it, 50, 50, &want));
	KUNIT_EXPECT_EQ(test, want.len, 50);
	KUNIT_EXPECT_TRUE(test, lacks(&it, 100, 100, &want));
	/* The iterator holds the key, but not for these bytes. */
	KUNIT_EXPECT_FALSE(test, lacks(&it, 101, 101, &want));
	arx_iter_end(&it);
	t->mr.odp = NULL;
}

/* A key that was put may be invalidated: going back looks it up again. */
static void run__rewind(struct kunit *test)
{
	struct run_test *t = test->priv;
	struct arx_iter it, start;
	int err;

	lay_fast(test);
	it = begin(t, ARX_ITER_SGE);
	KUNIT_EXPECT_EQ(test, take(t, &it, 3, 3), ARX_COPY_OK);
	start = it;
	KUNIT_EXPECT_EQ(test, take(t, &it, 8, 8), ARX_COPY_OK);
	EXPECT_USERS(test, 0, 1);
	arx_iter_rewind(&it, &start);
	EXPECT_USERS(test, 0, 0);
	KUNIT_EXPECT_EQ(test, take(t, &it, 21, 21), ARX_COPY_OK);
	KUNIT_EXPECT_MEMEQ(test, t->got, t->want + 3, 5);
	KUNIT_EXPECT_MEMEQ(test, t->got + 5, t->want + BLOCK, 8);

	arx_iter_rewind(&it, &start);
	rcu_read_lock_bh();
	err = arx_key_invalidate(&(struct arx_key_use) {
		.dev = &t->dev,
		.pd = &t->pd,
		.value = t->fast[0].key.value,
	});
	rcu_read_unlock_bh();
	KUNIT_EXPECT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, take(t, &it, 1, 1), ARX_COPY_BAD_SOURCE);
	EXPECT_USERS(test, 0, 0);
	free_fast(t);
}

static struct kunit_case run_cases[] = {
	KUNIT_CASE_PARAM(run__any_step, kind_gen_params),
	KUNIT_CASE_PARAM(run__skip, kind_gen_params),
	KUNIT_CASE(run__list_ends),
	KUNIT_CASE(run__none),
	KUNIT_CASE(run__packet_too_short),
	KUNIT_CASE(run__packets_end),
	KUNIT_CASE(run__scatter),
	KUNIT_CASE(run__bad_key),
	KUNIT_CASE(run__last_word),
	KUNIT_CASE(run__last_word_in_pieces),
	KUNIT_CASE(run__last_word_bad),
	KUNIT_CASE(run__check),
	KUNIT_CASE(run__holds_key),
	KUNIT_CASE(run__check_holds_key),
	KUNIT_CASE(run__ends_behind_region),
	KUNIT_CASE(run__lacks_nothing_behind),
	KUNIT_CASE(run__rewind),
	KUNIT_CASE_PARAM(run__well_formed, shape_gen_params),
	{}
};

static struct kunit_suite run_suite = {
	.name = "arx_run",
	.init = run_init,
	.exit = run_exit,
	.test_cases = run_cases,
};

kunit_test_suite(run_suite);
