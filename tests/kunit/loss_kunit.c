// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * keep.c, loss.c, and what the stages do with packets behind a gap. Side 1 gets
 * single packets or runs in an order that the test chooses, and side 0 gets
 * reports.
 */

#include <linux/prandom.h>

#include "congestion.h"
#include "qp_fixture.h"

#include "keep.c"
#include "loss.c"

static struct pair *by_wire(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	memset(p->side[0].buf, 0x5a, BUF);
	return p;
}

#define WHOLE	(ARX_FIRST | ARX_LAST | ARX_ACK_REQ)

/* A request to side 1, by packets that it may keep. */
static void packets(struct pair *p, enum arx_op op, int flags, u32 psn, u32 at,
		    u32 len)
{
	u8 *data = p->side[0].buf + at;
	struct arx_run run = pair_run(p, 1, op, flags, psn, data, len);

	run.h.va += at;
	run.h.dma_len = len;
	if (op == ARX_OP_FETCH_ADD)
		run.h.swap_add = 1;
	if (op != ARX_OP_SEND && op != ARX_OP_WRITE)
		arx_run_size(&run, 0);
	pair_rx_packets(p, 1, &run, data);
	pair_settle(p);
}

static u32 kept_bytes(struct pair *p)
{
	return p->side[1].qp->resp.kept.bytes;
}

static u32 epsn(struct pair *p)
{
	return p->side[1].qp->resp.epsn;
}

/* keep.c alone. */

static struct arx_keep keep_of(struct pair *p)
{
	struct arx_keep keep = {};

	arx_keep_init(&keep, &p->dev, p->side[0].qp->tx_sk);
	return keep;
}

static bool keep_one(struct arx_keep *keep, u32 psn, u32 npkts)
{
	struct arx_run run = {
		.h = {
			.op = ARX_OP_WRITE,
			.flags = ARX_FIRST | ARX_LAST,
			.psn = psn & ARX_PSN_MASK,
		},
		.npkts = npkts,
		.packets = alloc_skb(MTU, GFP_KERNEL),
	};
	bool kept = arx_keep_add(keep, &run);

	kfree_skb(run.packets);
	return kept;
}

/* Takes the run that is due at @psn; returns its first PSN, or 1 if none is. */
static u32 take_one(struct arx_keep *keep, u32 psn)
{
	struct arx_kept *kept = arx_keep_take(keep, psn & ARX_PSN_MASK);
	u32 first = 1;

	if (kept) {
		first = kept->run.h.psn;
		arx_keep_free(kept);
	}
	return first;
}

/* In the order of PSNs across their wrap, whatever the order of arrival. */
static void keep__order(struct kunit *test)
{
	static const u8 order[] = { 4, 0, 2, 5, 1, 3 };
	struct pair *p = by_wire(test);
	struct arx_keep keep = keep_of(p);
	int i;

	for (i = 0; i < ARRAY_SIZE(order); i++)
		KUNIT_EXPECT_TRUE(test, keep_one(&keep,
						 0xfffffc + 2 * order[i], 2));
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		KUNIT_EXPECT_EQ(test, 1, take_one(&keep,
						  0xfffffb + 2 * i));
		KUNIT_EXPECT_EQ(test, (0xfffffc + 2 * i) & ARX_PSN_MASK,
				take_one(&keep, 0xfffffc + 2 * i));
	}
	KUNIT_EXPECT_EQ(test, keep.bytes, 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
}

/* A run twice, one that overlaps, and some that are no longer needed. */
static void keep__overlap(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_keep keep = keep_of(p);
	u32 bytes;

	keep_one(&keep, 10, 4);
	bytes = keep.bytes;
	KUNIT_EXPECT_TRUE(test, keep_one(&keep, 10, 4));
	KUNIT_EXPECT_EQ(test, keep.bytes, bytes);
	keep_one(&keep, 12, 4);
	keep_one(&keep, 20, 4);
	KUNIT_EXPECT_TRUE(test, arx_keep_is_due(&keep, 12));
	KUNIT_EXPECT_EQ(test, take_one(&keep, 14), 12);
	KUNIT_EXPECT_FALSE(test, arx_keep_is_due(&keep, 19));
	KUNIT_EXPECT_EQ(test, take_one(&keep, 24), 1);
	KUNIT_EXPECT_EQ(test, keep.bytes, 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
}

/* Keep @n packets of a message from @psn on, without the first @cut. */
static void keep_part(struct kunit *test, struct arx_keep *keep, u32 psn, u32 n,
		      u32 cut)
{
	struct arx_run run = {
		.h = { .op = ARX_OP_WRITE, .psn = psn },
		.npkts = n,
		.len = n * MTU,
		.mtu = MTU,
	};
	struct sk_buff **end = &run.packets;

	for (; n; n--, end = &(*end)->next) {
		*end = alloc_skb(MTU, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, *end);
		skb_put(*end, MTU);
	}
	arx_iter_skb(&run.payload, run.packets, MTU);
	if (cut)
		KUNIT_EXPECT_TRUE(test, arx_run_trim_first(&run, cut, MTU));
	KUNIT_EXPECT_TRUE(test, arx_keep_add(keep, &run));
	KUNIT_EXPECT_NULL(test, run.packets);
}

/*
 * Parts of a message are kept as one run, unless packets of the second part
 * were cut off: these are still linked.
 */
static void keep__cut(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_keep keep = keep_of(p);

	keep_part(test, &keep, 10, 4, 0);
	keep_part(test, &keep, 14, 2, 0);
	keep_part(test, &keep, 15, 3, 1);
	KUNIT_EXPECT_EQ(test, take_one(&keep, 10), 10);
	KUNIT_EXPECT_EQ(test, take_one(&keep, 14), 1);
	KUNIT_EXPECT_EQ(test, take_one(&keep, 16), 16);
	KUNIT_EXPECT_EQ(test, keep.bytes, 0);
}

/* A payload that is valid during the call only cannot be kept. */
static void keep__needs_packets(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_keep keep = keep_of(p);
	struct arx_run run = { .npkts = 1 };

	KUNIT_EXPECT_FALSE(test, arx_keep_add(&keep, &run));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
}

/* Packets from the reserves of the memory management are not kept. */
static void keep__no_reserves(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_keep keep = keep_of(p);
	int i;

	for (i = 0; i < 3; i++) {
		struct sk_buff *first = alloc_skb(MTU, GFP_KERNEL);
		struct sk_buff *last = alloc_skb(MTU, GFP_KERNEL);
		struct arx_run run = { .npkts = 2, .packets = first };

		first->next = last;
		first->pfmemalloc = i == 0;
		last->pfmemalloc = i == 1;
		KUNIT_EXPECT_EQ(test, arx_keep_add(&keep, &run), i == 2);
		KUNIT_EXPECT_EQ(test, !run.packets, i == 2);
		KUNIT_EXPECT_EQ(test, !keep.bytes, i != 2);
		kfree_skb_list(run.packets);
	}
	arx_keep_purge(&keep);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
}

static void keep__bounds(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_keep keep = keep_of(p), other = keep_of(p);
	u32 n;

	for (n = 0; keep_one(&keep, n, 1); n++)
		;
	KUNIT_EXPECT_LE(test, keep.bytes, ARX_KEEP_QP);
	KUNIT_EXPECT_GT(test, keep.bytes, ARX_KEEP_QP - 8 * MTU);
	KUNIT_EXPECT_TRUE(test, keep_one(&other, 1, 1));

	atomic_long_add(ARX_KEEP_DEV, &p->dev.kept);
	KUNIT_EXPECT_FALSE(test, keep_one(&other, 2, 1));
	atomic_long_sub(ARX_KEEP_DEV, &p->dev.kept);
	KUNIT_EXPECT_TRUE(test, keep_one(&other, 2, 1));
	arx_keep_purge(&keep);
	arx_keep_purge(&other);
	KUNIT_EXPECT_EQ(test, keep.bytes, 0);
	KUNIT_EXPECT_EQ(test, other.bytes, 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
}

static u32 count_kept(const struct arx_keep *keep)
{
	struct rb_node *node;
	u32 n = 0;

	for (node = rb_first(&keep->runs); node; node = rb_next(node))
		n++;
	return n;
}

/* Many runs are not freed at once, because bottom halves are off. */
static void keep__frees_few(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_keep keep = keep_of(p);
	u32 n = 2 * ARX_KEEP_FREED + 9, i;

	for (i = 0; i < n; i++)
		KUNIT_EXPECT_TRUE(test, keep_one(&keep, i, 1));
	KUNIT_EXPECT_EQ(test, take_one(&keep, n), 1);
	KUNIT_EXPECT_EQ(test, count_kept(&keep), n - ARX_KEEP_FREED);
	KUNIT_EXPECT_TRUE(test, arx_keep_is_due(&keep, n));
	KUNIT_EXPECT_EQ(test, take_one(&keep, n), 1);
	KUNIT_EXPECT_EQ(test, take_one(&keep, n), 1);
	KUNIT_EXPECT_FALSE(test, arx_keep_is_due(&keep, n));
	KUNIT_EXPECT_EQ(test, keep.bytes, 0);

	for (i = 0; i < n; i++)
		keep_one(&keep, i, 1);
	KUNIT_EXPECT_TRUE(test, arx_keep_shrink(&keep));
	KUNIT_EXPECT_EQ(test, count_kept(&keep), n - ARX_KEEP_FREED);
	KUNIT_EXPECT_TRUE(test, arx_keep_shrink(&keep));
	KUNIT_EXPECT_FALSE(test, arx_keep_shrink(&keep));
	KUNIT_EXPECT_EQ(test, keep.bytes, 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
}

/* Kept packets count as those in the receive queue of a socket do. */
static void keep__charges(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct sock *sk = p->side[0].qp->tx_sk;
	struct arx_keep keep = keep_of(p), other = keep_of(p);
	long limits[3], *now = sk->sk_prot->sysctl_mem;
	int i;

	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_TRUE(test, keep_one(&keep, i, 1));
		KUNIT_EXPECT_TRUE(test, keep_one(&other, i, 1));
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&sk->sk_rmem_alloc),
			keep.bytes + other.bytes);

	/* No more than the 1 MiB that each CPU has in advance. */
	memcpy(limits, now, sizeof(limits));
	memset(now, -1, sizeof(limits));
	while (keep_one(&keep, i++, 1))
		;
	memcpy(now, limits, sizeof(limits));
	KUNIT_EXPECT_LT(test, keep.bytes, 2 * SZ_1M);
	KUNIT_EXPECT_EQ(test, atomic_read(&sk->sk_rmem_alloc),
			keep.bytes + other.bytes);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept),
			keep.bytes + other.bytes);
	arx_keep_purge(&keep);
	arx_keep_purge(&other);
	KUNIT_EXPECT_EQ(test, atomic_read(&sk->sk_rmem_alloc), 0);
	KUNIT_EXPECT_LT(test, sk->sk_forward_alloc, PAGE_SIZE);
}

/* The responder. */

/* Requests of all kinds behind a gap: one NAK, then all of them in order. */
static void responder__gap(struct kunit *test)
{
	struct pair *p = by_wire(test);
	u64 *word = (u64 *)(p->side[1].buf + BUF - 8);

	pair_recv(p, 1, 1, 8 * MTU, 4 * MTU);
	pair_recv(p, 1, 2, 12 * MTU, 4 * MTU);
	packets(p, ARX_OP_FETCH_ADD, WHOLE, PSN + 9, BUF - 8, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	packets(p, ARX_OP_SEND, WHOLE, PSN + 2, 0, 3 * MTU);
	packets(p, ARX_OP_READ, WHOLE, PSN + 6, 0, 3 * MTU);
	packets(p, ARX_OP_SEND, WHOLE, PSN + 5, 0, 9);
	/* Again, as the network may do it. */
	packets(p, ARX_OP_FETCH_ADD, WHOLE, PSN + 9, BUF - 8, 8);
	EXPECT_SILENT(test, p, 1);
	EXPECT_NO_WC(test, &p->side[1].rcq);
	KUNIT_EXPECT_EQ(test, *word, 0);
	KUNIT_EXPECT_GT(test, kept_bytes(p), 0);

	packets(p, ARX_OP_WRITE, WHOLE, PSN, 4 * MTU, 2 * MTU);
	EXPECT_WC(test, &p->side[1].rcq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &p->side[1].rcq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, *word, 1);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf + 4 * MTU, p->side[0].buf,
			   2 * MTU);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf + 8 * MTU, p->side[0].buf,
			   3 * MTU);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 6);
	EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + 9);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 9);
	EXPECT_SILENT(test, p, 1);

	/* Duplicates of what was kept are duplicates. */
	packets(p, ARX_OP_FETCH_ADD, WHOLE, PSN + 9, BUF - 8, 8);
	EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + 9);
	KUNIT_EXPECT_EQ(test, *word, 1);
}

/* The packets of one message in every order. */
static void responder__any_order(struct kunit *test)
{
	struct pair *p = by_wire(test);
	u32 psn = PSN, i, turn;

	for (turn = 0; turn < 24; turn++) {
		u8 left[] = { 0, 1, 2, 3 };
		u32 code = turn, at = turn * 4 * MTU;

		for (i = 4; i; i--) {
			u32 pick = code % i, n = left[pick];
			int flags = n == 3 ? ARX_LAST | ARX_ACK_REQ : 0;
			struct arx_run run =
				pair_run(p, 1, ARX_OP_WRITE,
					 flags | (n ? 0 : ARX_FIRST), psn + n,
					 NULL, MTU);

			run.h.va += at;
			run.h.dma_len = 4 * MTU;
			pair_rx_packets(p, 1, &run,
					p->side[0].buf + at + n * MTU);
			code /= i;
			left[pick] = left[i - 1];
		}
		psn += 4;
		KUNIT_EXPECT_EQ(test, epsn(p), psn & ARX_PSN_MASK);
		KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
		KUNIT_EXPECT_MEMEQ(test, p->side[1].buf + at,
				   p->side[0].buf + at, 4 * MTU);
	}
	KUNIT_EXPECT_EQ(test, p->side[1].qp->resp.msn, 24);
}

/* Packets of one message that follow each other are kept as one run. */
static void responder__keeps_together(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_keep *keep = &p->side[1].qp->resp.kept;
	u32 i;

	for (i = 1; i < 9; i++) {
		bool last = i == 8;
		struct arx_run run = pair_run(p, 1, ARX_OP_WRITE,
					      last ? ARX_LAST : 0, PSN + i,
					      NULL, last ? 9 : MTU);

		pair_rx_packets(p, 1, &run, p->side[0].buf + i * MTU);
	}
	KUNIT_EXPECT_PTR_EQ(test, rb_first(&keep->runs), rb_last(&keep->runs));
	/* The next message is another run. */
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 9, 9 * MTU, 8);
	KUNIT_EXPECT_PTR_NE(test, rb_first(&keep->runs), rb_last(&keep->runs));
	{
		struct arx_run run = pair_run(p, 1, ARX_OP_WRITE, ARX_FIRST,
					      PSN, NULL, MTU);

		run.h.dma_len = 8 * MTU + 9;
		pair_rx_packets(p, 1, &run, p->side[0].buf);
	}
	KUNIT_EXPECT_EQ(test, epsn(p), (PSN + 10) & ARX_PSN_MASK);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->resp.msn, 2);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 8 * MTU + 9);
}

/* Two gaps: a NAK each, the second when the first has closed. */
static void responder__two_gaps(struct kunit *test)
{
	struct pair *p = by_wire(test);

	packets(p, ARX_OP_WRITE, WHOLE, PSN + 1, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 4, 0, 8);
	EXPECT_SILENT(test, p, 1);
	packets(p, ARX_OP_WRITE, WHOLE, PSN, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN + 2);
	EXPECT_SILENT(test, p, 1);
	/* A peer that goes back sends them again. */
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 1, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 1);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 2, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 2);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 3, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 4);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
}

/* The peer sends again in other runs: overlaps are cut off. */
static void responder__other_runs(struct kunit *test)
{
	struct pair *p = by_wire(test);

	packets(p, ARX_OP_WRITE, WHOLE, PSN + 4, 4 * MTU, 4 * MTU);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 12, 12 * MTU, 2 * MTU);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 2, 2 * MTU, 6 * MTU);
	KUNIT_EXPECT_GT(test, kept_bytes(p), 0);
	packets(p, ARX_OP_WRITE, WHOLE, PSN, 0, 10 * MTU);
	KUNIT_EXPECT_EQ(test, epsn(p), (PSN + 10) & ARX_PSN_MASK);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 10, 10 * MTU, 2 * MTU);
	KUNIT_EXPECT_EQ(test, epsn(p), (PSN + 14) & ARX_PSN_MASK);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 14 * MTU);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_RTS);
}

/* A kept request is wrong: that shows when its turn comes, and ends the QP. */
static void responder__kept_and_wrong(struct kunit *test)
{
	struct pair *p = by_wire(test);
	u64 *word = (u64 *)(p->side[1].buf + BUF - 8);

	packets(p, ARX_OP_WRITE, WHOLE, PSN + 1, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 2, BUF - 7, 8);
	packets(p, ARX_OP_FETCH_ADD, WHOLE, PSN + 3, BUF - 8, 8);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_RTS);
	packets(p, ARX_OP_WRITE, WHOLE, PSN, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_REM_ACCESS), PSN + 2);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, *word, 0);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
}

/* No receive for a kept request: RNR NAK; those behind it stay kept. */
static void responder__kept_and_rnr(struct kunit *test)
{
	struct pair *p = by_wire(test);

	packets(p, ARX_OP_SEND, WHOLE, PSN + 1, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 2, 0, 8);
	packets(p, ARX_OP_WRITE, WHOLE, PSN, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN + 1);
	EXPECT_SILENT(test, p, 1);
	pair_recv(p, 1, 1, 0, 8);
	packets(p, ARX_OP_SEND, WHOLE, PSN + 1, 0, 8);
	EXPECT_WC(test, &p->side[1].rcq, 1, IB_WC_SUCCESS);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 2);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
}

/*
 * A message without a receive is kept, and those behind it. Nothing happens
 * until the peer sends its first packet again, or all of it (@again bytes).
 */
static void refuse(struct kunit *test, u32 again)
{
	int flags = ARX_FIRST | ARX_ACK_REQ;
	struct pair *p = by_wire(test);
	struct side *s = &p->side[1];

	if (again == 4 * MTU)
		flags |= ARX_LAST;
	packets(p, ARX_OP_SEND, WHOLE, PSN, 0, 4 * MTU);
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN);
	KUNIT_EXPECT_GT(test, kept_bytes(p), 0);
	packets(p, ARX_OP_SEND, WHOLE, PSN + 4, 4 * MTU, 2 * MTU);
	pair_recv(p, 1, 1, 0, 4 * MTU);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 6, 6 * MTU, 8);
	EXPECT_SILENT(test, p, 1);
	EXPECT_NO_WC(test, &s->rcq);

	packets(p, ARX_OP_SEND, flags, PSN, 0, again);
	EXPECT_WC(test, &s->rcq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, s->buf, p->side[0].buf, 4 * MTU);
	/* The second message, which was kept, has no receive. It stays kept. */
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN + 4);
	EXPECT_SILENT(test, p, 1);
	pair_recv(p, 1, 2, 0, 2 * MTU);
	packets(p, ARX_OP_SEND, ARX_FIRST | ARX_ACK_REQ, PSN + 4, 4 * MTU, MTU);
	EXPECT_WC(test, &s->rcq, 2, IB_WC_SUCCESS);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 6);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_SENT_RNR_NAK), 2);
}

static void responder__refused_first(struct kunit *test)
{
	refuse(test, MTU);
}

static void responder__refused_whole(struct kunit *test)
{
	refuse(test, 4 * MTU);
}

/* A peer that only sends behind a gap: bounded, and the QP still works. */
static void responder__hostile_gap(struct kunit *test)
{
	struct pair *p = by_wire(test);
	u32 n, psn = PSN + ARX_KEEP_AHEAD;

	for (n = 1; n <= 10000; n++)
		packets(p, ARX_OP_WRITE, WHOLE, psn + n, 0, MTU);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);	/* too far ahead */
	for (n = 0; n < ARX_KEEP_AHEAD; n++)
		packets(p, ARX_OP_WRITE, WHOLE, psn - n, 0, MTU);
	KUNIT_EXPECT_GT(test, kept_bytes(p), 0);
	KUNIT_EXPECT_LE(test, kept_bytes(p), ARX_KEEP_QP);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), kept_bytes(p));
	KUNIT_EXPECT_GT(test, count_of(p, ARX_CNT_SEQUENCE_DROPPED), 0);
	KUNIT_EXPECT_EQ(test, 10000 + ARX_KEEP_AHEAD,
			count_of(p, ARX_CNT_SEQUENCE_DROPPED) +
			count_of(p, ARX_CNT_SEQUENCE_KEPT));
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	EXPECT_SILENT(test, p, 1);

	/* The other direction of this QP, and its own requests, work. */
	pair_send(p, 1, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	pair_pump(p);
	EXPECT_WC(test, &p->side[1].scq, 1, IB_WC_SUCCESS);
	for (n = 0; n < 10; n++)
		packets(p, ARX_OP_WRITE, WHOLE, PSN + n, 0, MTU);
	KUNIT_EXPECT_EQ(test, epsn(p), (PSN + 10) & ARX_PSN_MASK);
}

/* READs of a hostile peer may overlap; a report still says what is kept. */
static void keep__reports_overlap(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_keep keep = keep_of(p);
	__be32 words[4];
	u32 i;

	for (i = 1; i < 9; i++) {
		struct arx_run run = {
			.h = {
				.op = ARX_OP_READ,
				.psn = 100 + 2 * i,
				.dma_len = 64 * MTU,
			},
			.npkts = 1,
			.packets = alloc_skb(MTU, GFP_KERNEL),
		};

		KUNIT_EXPECT_TRUE(test, arx_keep_add(&keep, &run));
	}
	keep_one(&keep, 100 + 90, 2);
	KUNIT_EXPECT_EQ(test, 3, arx_keep_report(&keep, 100, MTU, words, 4));
	KUNIT_EXPECT_EQ(test, be32_to_cpu(words[0]), 0xfffffffc);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(words[1]), 0xffffffff);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(words[2]), 0x0c00ffff);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(words[3]), 0);
	KUNIT_EXPECT_EQ(test, 1, arx_keep_report(&keep, 100, MTU, words, 1));
	KUNIT_EXPECT_EQ(test, be32_to_cpu(words[0]), 0xfffffffc);
	arx_keep_purge(&keep);
}

/* Many kept requests are served in several shares, and acknowledged once. */
static void responder__long_gap(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[1].qp;
	u32 n = 3 * ARX_POLL_BYTES / MTU, i;
	struct arx_run run;

	for (i = 1; i < n; i++)
		packets(p, ARX_OP_WRITE, WHOLE, PSN + i, i * MTU, MTU);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	run = pair_run(p, 1, ARX_OP_WRITE, WHOLE, PSN, NULL, MTU);
	run.h.dma_len = MTU;
	local_bh_disable();	/* the rest is a later softirq's */
	pair_rx_packets(p, 1, &run, p->side[0].buf);
	KUNIT_EXPECT_EQ(test, qp->resp.epsn,
			(PSN + 1 + ARX_POLL_BYTES / MTU) & ARX_PSN_MASK);
	/* No gap is reported meanwhile. */
	run = pair_run(p, 1, ARX_OP_WRITE, WHOLE, PSN + n, NULL, MTU);
	run.h.dma_len = MTU;
	pair_rx_packets(p, 1, &run, p->side[0].buf);
	local_bh_enable();
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, epsn(p), (PSN + n + 1) & ARX_PSN_MASK);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_RCVD_SEQ_NAK), 0);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_SENT_NAK), 1);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, n * MTU);
}

/*
 * After an RNR NAK the peer sends again what an ACK does not name: there is one
 * ACK for all shares.
 */
static void responder__refused_long(struct kunit *test)
{
	struct pair *p = by_wire(test);
	u32 n = 3 * ARX_POLL_BYTES / MTU, i;

	packets(p, ARX_OP_SEND, WHOLE, PSN, 0, MTU);
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN);
	for (i = 1; i < n; i++)
		packets(p, ARX_OP_WRITE, WHOLE, PSN + i, i * MTU, MTU);
	pair_recv(p, 1, 1, 0, MTU);
	packets(p, ARX_OP_SEND, WHOLE, PSN, 0, MTU);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + n - 1);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, n * MTU);
}

/* The consumer ends the QP meanwhile: what was received is acknowledged. */
static void responder__refused_ends(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[1].qp;
	u32 share = ARX_POLL_BYTES / MTU, i;
	struct arx_run run;

	packets(p, ARX_OP_SEND, WHOLE, PSN, 0, MTU);
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN);
	for (i = 1; i < 3 * share; i++)
		packets(p, ARX_OP_WRITE, WHOLE, PSN + i, i * MTU, MTU);
	pair_recv(p, 1, 1, 0, MTU);
	run = pair_run(p, 1, ARX_OP_SEND, WHOLE, PSN, NULL, MTU);
	local_bh_disable();	/* the rest is a later softirq's */
	pair_rx_packets(p, 1, &run, p->side[0].buf);
	EXPECT_SILENT(test, p, 1);
	arx_responder_end_hold(qp);
	local_bh_enable();
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 2 * share);
	pair_settle(p);
}

static void keep_many(struct pair *p, u32 n)
{
	u32 i;

	for (i = 1; i <= n; i++)
		packets(p, ARX_OP_WRITE, WHOLE, PSN + i, 0, 8);
}

/* A READ that covers many kept requests: they are freed in several softirqs. */
static void responder__many_covered(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_keep *keep = &p->side[1].qp->resp.kept;
	u32 n = ARX_KEEP_FREED + 100;
	struct arx_run run;

	keep_many(p, n);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	run = pair_run(p, 1, ARX_OP_READ, WHOLE, PSN, NULL, BUF);
	run.h.dma_len = BUF;
	arx_run_size(&run, 0);
	local_bh_disable();	/* the rest is a later softirq's */
	pair_rx_packets(p, 1, &run, p->side[0].buf);
	KUNIT_EXPECT_EQ(test, count_kept(keep), n - ARX_KEEP_FREED);
	local_bh_enable();
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, keep->bytes, 0);
	KUNIT_EXPECT_EQ(test, epsn(p), (PSN + BUF / MTU) & ARX_PSN_MASK);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_SENT_NAK), 1);
}

/* Meanwhile a request is refused: nothing takes the RNR NAK for its own. */
static void responder__refused_while_closing(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[1].qp;
	struct arx_run run;

	keep_many(p, ARX_KEEP_FREED + 100);
	run = pair_run(p, 1, ARX_OP_READ, WHOLE, PSN, NULL, BUF);
	run.h.dma_len = BUF;
	arx_run_size(&run, 0);
	local_bh_disable();
	pair_rx_packets(p, 1, &run, p->side[0].buf);
	KUNIT_EXPECT_TRUE(test, qp->resp.closing);
	run = pair_run(p, 1, ARX_OP_SEND, WHOLE, PSN + BUF / MTU, NULL, 8);
	pair_rx_packets(p, 1, &run, p->side[0].buf);
	local_bh_enable();
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_SENT_RNR_NAK), 1);
	KUNIT_EXPECT_TRUE(test, qp->resp.nak_sent);
	pair_recv(p, 1, 1, 0, 8);
	packets(p, ARX_OP_SEND, WHOLE, PSN + BUF / MTU, 0, 8);
	EXPECT_WC(test, &p->side[1].rcq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
}

/* An error with many kept requests: they are freed in several softirqs. */
static void responder__error_with_many(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[1].qp;
	u32 n = 2 * ARX_KEEP_FREED + 100;

	keep_many(p, n);
	local_bh_disable();
	arx_qp_error(qp, ARX_NO_EVENT);
	arx_responder_go_on(qp);
	KUNIT_EXPECT_EQ(test, count_kept(&qp->resp.kept), n - ARX_KEEP_FREED);
	local_bh_enable();
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, qp->resp.kept.bytes, 0);
}

static const enum ib_qp_state ends[] = { IB_QPS_RESET, IB_QPS_ERR };

/* Reset and error free what is kept; pair_free() checks destruction. */
static void responder__ends_with_kept(struct kunit *test)
{
	struct pair *p = by_wire(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		pair_join(test, p);
		p->dev.port_active = false;
		packets(p, ARX_OP_WRITE, WHOLE, PSN + 1, 0, 8);
		KUNIT_EXPECT_GT(test, kept_bytes(p), 0);
		KUNIT_ASSERT_EQ(test, pair_modify(p, 1, ends[i], 0), 0);
		pair_settle(p);
		KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
	}
	pair_join(test, p);
	p->dev.port_active = false;
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 1, 0, 8);
}

/* XRC: the SRQ of a kept request is found when its turn comes. */
static void responder__xrc_gap(struct kunit *test)
{
	struct pair *p = test->priv;

	pair_connect_xrc(test, p);
	p->dev.port_active = false;
	pair_recv(p, 1, 1, 0, 100);
	packets(p, ARX_OP_SEND, WHOLE, PSN + 1, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	packets(p, ARX_OP_WRITE, WHOLE, PSN, 0, 8);
	EXPECT_WC(test, &p->side[1].rcq, 1, IB_WC_SUCCESS);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 1);
	packets(p, ARX_OP_SEND, WHOLE, PSN + 3, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN + 2);
	arx_destroy_srq(&p->xrc.ib, NULL);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 2, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_INV_RD_REQ), PSN + 2);
}

/* Reports. */

#define ASKS	(WHOLE | ARX_REPORTS)

static u32 word_of(const struct wire_run *w)
{
	return w && w->run.len == sizeof(__be32) ?
	       be32_to_cpu(*(const __be32 *)w->data) : 0;
}

/* The next run of side 1 is a NAK for a gap that reports these packets. */
#define EXPECT_REPORT(test, p, number, bits) do {			\
	struct wire_run *r__ = EXPECT_SENT(test, p, 1, ARX_OP_ACK,	\
					   number);			\
									\
	KUNIT_EXPECT_EQ(test, word_of(r__), bits);			\
	if (r__)							\
		KUNIT_EXPECT_EQ(test, r__->run.h.syndrome,		\
				ARX_NAK(ARX_NAK_SEQ_ERR));		\
} while (0)

static void responder__reports(struct kunit *test)
{
	struct pair *p = by_wire(test);

	packets(p, ARX_OP_WRITE, ASKS, PSN + 1, 0, 2 * MTU);
	EXPECT_REPORT(test, p, PSN, 0x6);
	/* A READ has the PSNs of its responses, too. */
	packets(p, ARX_OP_READ, ASKS, PSN + 5, 0, 3 * MTU);
	EXPECT_REPORT(test, p, PSN, 0xe6);
	/* Packets that do not ask for an acknowledgment get none. */
	packets(p, ARX_OP_WRITE, ARX_FIRST | ARX_LAST, PSN + 10, 0, 8);
	EXPECT_SILENT(test, p, 1);
	packets(p, ARX_OP_WRITE, ASKS, PSN, 0, 8);
	EXPECT_REPORT(test, p, PSN + 3, 0x9c);
	packets(p, ARX_OP_WRITE, ASKS, PSN + 3, 0, 2 * MTU);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 5);
	EXPECT_REPORT(test, p, PSN + 8, 0x4);
	packets(p, ARX_OP_WRITE, ASKS, PSN + 8, 0, 2 * MTU);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 10);
}

/* A report covers no more than the window, whatever is kept. */
static void responder__report_ends(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct wire_run *w;

	packets(p, ARX_OP_WRITE, ASKS, PSN + ARX_REPORT_SPAN - 1, 0, 8);
	w = EXPECT_SENT(test, p, 1, ARX_OP_ACK, PSN);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.len, ARX_REPORT_SPAN / 8);
	KUNIT_EXPECT_EQ(test, BIT(31),
			be32_to_cpu(((__be32 *)w->data)[ARX_REPORT_WORDS - 1]));
	packets(p, ARX_OP_READ, ASKS, PSN + ARX_REPORT_SPAN + 88, 0, 8 * MTU);
	w = EXPECT_SENT(test, p, 1, ARX_OP_ACK, PSN);
	if (w)
		KUNIT_EXPECT_EQ(test, w->run.len, ARX_REPORT_SPAN / 8);
}

/*
 * Many requests behind a gap ask for an acknowledgment, but there is nothing to
 * report: they are far behind a long READ, or the device keeps no more. One NAK
 * asks for what is missing: each costs the peer a retry.
 */
static void nothing_to_report(struct kunit *test, struct pair *p, u32 psn)
{
	struct wire_run *w;
	u32 i;

	for (i = 0; i < 10; i++)
		packets(p, ARX_OP_WRITE, ASKS, psn + i, 0, 8);
	w = EXPECT_SENT(test, p, 1, ARX_OP_ACK, PSN);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.len, 0);
	EXPECT_SILENT(test, p, 1);
}

static void responder__far_behind(struct kunit *test)
{
	nothing_to_report(test, by_wire(test), PSN + ARX_REPORT_SPAN + 88);
}

static void responder__keeps_nothing(struct kunit *test)
{
	struct pair *p = by_wire(test);

	atomic_long_add(ARX_KEEP_DEV, &p->dev.kept);
	nothing_to_report(test, p, PSN + 1);
	atomic_long_sub(ARX_KEEP_DEV, &p->dev.kept);
	/* A report is news. */
	packets(p, ARX_OP_WRITE, ASKS, PSN + 3, 0, 8);
	EXPECT_REPORT(test, p, PSN, 0x8);
}

/*
 * Requests of a hostile peer overlap, and a share of the kept ones ends before
 * requests that are past by then. The gap behind these is asked for.
 */
static void responder__share_ends_with_past(struct kunit *test)
{
	u32 n = ARX_POLL_BYTES / max(MTU, ARX_KEEP_LEAST), i;
	struct pair *p = by_wire(test);

	for (i = 1; i < n; i++)
		packets(p, ARX_OP_WRITE, WHOLE, PSN + i, 0, MTU);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + n, 0, 8 * MTU);
	for (i = 1; i < 8; i++)
		packets(p, ARX_OP_WRITE, WHOLE, PSN + n + i, 0, MTU);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + n + 20, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	packets(p, ARX_OP_WRITE, WHOLE, PSN, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN + n + 8);
	EXPECT_SILENT(test, p, 1);
}

/*
 * One ACK for several shares of kept requests, but not for more than the window
 * of any requester, nor if the consumer is about to end the QP.
 */
static void responder__closes_with_one_ack(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_run run;
	u32 i;

	for (i = 1; i <= 100; i++)
		packets(p, ARX_OP_WRITE, WHOLE, PSN + i, 0, MTU);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	packets(p, ARX_OP_WRITE, WHOLE, PSN, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 100);
	EXPECT_SILENT(test, p, 1);

	for (i = 102; i <= 300; i++)
		packets(p, ARX_OP_WRITE, WHOLE, PSN + i, 0, MTU);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN + 101);
	packets(p, ARX_OP_WRITE, WHOLE, PSN + 101, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 229);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 300);
	EXPECT_SILENT(test, p, 1);

	for (i = 302; i <= 400; i++)
		packets(p, ARX_OP_WRITE, WHOLE, PSN + i, 0, MTU);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN + 301);
	run = pair_run(p, 1, ARX_OP_WRITE, WHOLE, PSN + 301, p->side[0].buf, 8);
	run.h.dma_len = 8;
	local_bh_disable();	/* the rest is a later softirq's */
	pair_rx(p, 1, &run);
	EXPECT_SILENT(test, p, 1);
	arx_responder_end_hold(p->side[1].qp);
	EXPECT_SENT(test, p, 1, ARX_OP_ACK, PSN + 400);
	local_bh_enable();
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, epsn(p), (PSN + 401) & ARX_PSN_MASK);
}

/* Side 0 notes its losses, and its timer does not expire by itself. */
static struct arx_loss *note(struct kunit *test, struct pair *p)
{
	struct arx_comp *comp = &p->side[0].qp->comp;
	struct arx_loss *loss = kzalloc(sizeof(*loss), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, loss);
	arx_loss_init(loss, comp->una, comp->una);
	loss->srtt = ARX_LOSS_MOST;
	loss->rtt_min = ARX_LOSS_MOST;
	loss->ask_rtt = ARX_LOSS_MOST;
	comp->loss = loss;
	return loss;
}

/* Side 1 reports. */
static void report(struct pair *p, u32 psn, void *words, u32 len)
{
	struct arx_run run = pair_run(p, 0, ARX_OP_ACK,
				      ARX_FIRST | ARX_LAST | ARX_REPORTS, psn,
				      words, len);

	run.h.syndrome = ARX_NAK(ARX_NAK_SEQ_ERR);
	pair_rx(p, 0, &run);
	pair_settle(p);
}

static void report_word(struct pair *p, u32 psn, u32 word)
{
	__be32 words[1] = { cpu_to_be32(word) };

	report(p, psn, words, sizeof(words));
}

static void ack(struct pair *p, u32 psn)
{
	struct arx_run run = pair_run(p, 0, ARX_OP_ACK,
				      ARX_FIRST | ARX_LAST | ARX_REPORTS, psn,
				      NULL, 0);

	pair_rx(p, 0, &run);
	pair_settle(p);
}

static void drop_wire(struct pair *p)
{
	while (pair_take(p, -1))
		;
}

/* The next run of side 0 is @count packets of a WRITE, which ask for an ACK. */
#define EXPECT_AGAIN(test, p, number, count) do {			\
	struct wire_run *s__ = EXPECT_SENT(test, p, 0, ARX_OP_WRITE,	\
					   number);			\
									\
	if (s__) {							\
		KUNIT_EXPECT_EQ(test, s__->run.npkts, count);		\
		KUNIT_EXPECT_TRUE(test,					\
				  s__->run.h.flags & ARX_ACK_REQ);	\
	}								\
} while (0)

/* What is missing is sent again, once, and again when it is lost again. */
static void requester__fills(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 9 * MTU);
	drop_wire(p);
	report_word(p, PSN, 0x9c);		/* 2, 3, 4, 7 are there */
	EXPECT_AGAIN(test, p, PSN, 2);
	EXPECT_AGAIN(test, p, PSN + 5, 2);
	EXPECT_SILENT(test, p, 0);
	report_word(p, PSN, 0x9c);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, qp->req.psn, qp->req.nxt);

	/* Then it goes on. */
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 9);
	/* A later packet has arrived: 0, 1, 5 and 6 are lost again. */
	report_word(p, PSN, 0x29c);
	EXPECT_AGAIN(test, p, PSN, 2);
	EXPECT_AGAIN(test, p, PSN + 5, 2);
	EXPECT_AGAIN(test, p, PSN + 8, 1);
	EXPECT_SILENT(test, p, 0);
	report_word(p, PSN + 5, 0x14);
	EXPECT_SILENT(test, p, 0);
	ack(p, PSN + 9);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, qp->comp.retries_left, 3);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_RESENT_PKTS), 9);
}

/*
 * On another CPU, a report that only packet 1 is there, or a NAK, while the
 * requester sends.
 */
static void hear_meanwhile(struct pair *p, struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	__be32 word = cpu_to_be32(0x2);

	p->on_send = NULL;
	spin_lock(&comp->lock);
	if (comp->loss) {
		arx_loss_report(comp->loss, &word, 1, qp->req.nxt, 0);
		comp->fills++;
	}
	arx_publish(&comp->rewinds, comp->rewinds + 1);
	spin_unlock(&comp->lock);
}

/*
 * Five packets were overtaken, and one acknowledgment says that all of them
 * have arrived: they give back what they took from the window.
 */
static void requester__fills_late(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_comp *comp = &p->side[0].qp->comp;

	note(test, p);
	comp->loss->srtt = NSEC_PER_SEC;
	comp->loss->rtt_min = 100 * NSEC_PER_SEC;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 9 * MTU);
	/* The round trip of this test is not the shortest. */
	comp->loss->timing = false;
	drop_wire(p);
	report_word(p, PSN, 0x20);		/* 0 to 4 are missing */
	EXPECT_AGAIN(test, p, PSN, 5);
	KUNIT_ASSERT_NOT_NULL(test, comp->cc);
	KUNIT_EXPECT_EQ(test, comp->cc->loss.lost, 5);
	comp->cc->loss.cwnd /= 2;
	WRITE_ONCE(comp->cc->window, ARX_WINDOW / 2);
	ack(p, PSN + 8);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, comp->cc->loss.lost, 0);
	KUNIT_EXPECT_EQ(test, comp->cc->window, ARX_WINDOW);
}

/* Side 0 drops the packets of a turn after which it goes back. */
static void drop_and_go_back(struct pair *p)
{
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 9 * MTU);
	drop_wire(p);
	p->drops = true;
	p->room = 0;
	p->on_send = hear_meanwhile;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 9 * MTU,
		  3 * MTU);
	p->drops = false;
	pair_requester(p, 0);
}

/* Neither what is missing nor what this machine dropped is skipped. */
static void requester__drops_and_fills(struct kunit *test)
{
	struct pair *p = by_wire(test);

	note(test, p);
	drop_and_go_back(p);
	EXPECT_AGAIN(test, p, PSN, 1);
	EXPECT_AGAIN(test, p, PSN + 9, 3);
	EXPECT_SILENT(test, p, 0);
	ack(p, PSN + 11);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);
}

/* The same with a NAK: everything from the oldest packet on is sent again. */
static void requester__drops_and_goes_back(struct kunit *test)
{
	struct pair *p = by_wire(test);

	drop_and_go_back(p);
	EXPECT_AGAIN(test, p, PSN, 9);
	EXPECT_AGAIN(test, p, PSN + 9, 3);
	EXPECT_SILENT(test, p, 0);
	ack(p, PSN + 11);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);
}

/* Side 1, which reports, is not ready to receive; later it may be. */
static void not_ready(struct pair *p, u32 psn)
{
	struct arx_run run = pair_run(p, 0, ARX_OP_ACK,
				      ARX_FIRST | ARX_LAST | ARX_REPORTS, psn,
				      NULL, 0);

	run.h.syndrome = ARX_RNR_NAK(0);
	pair_rx(p, 0, &run);
	pair_settle(p);
	pair_rnr_ended(p, 0);
}

/* A peer that reports keeps what it refused: one packet is sent again. */
static void requester__refused(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct wire_run *w;

	pair_send(p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED, 0, 20 * MTU);
	drop_wire(p);
	not_ready(p, PSN);
	w = EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.npkts, 1);
	KUNIT_EXPECT_TRUE(test, w->run.h.flags & ARX_ACK_REQ);
	EXPECT_SILENT(test, p, 0);
	ack(p, PSN + 19);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	EXPECT_SILENT(test, p, 0);
}

/* That packet is lost: after one interval it is sent once more. */
static void requester__refused_is_lost(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_comp *comp = &p->side[0].qp->comp;

	note(test, p);
	pair_send(p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED, 0, 20 * MTU);
	drop_wire(p);
	not_ready(p, PSN);
	EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&comp->probe));
	pair_probe(p, 0);
	EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN);
	EXPECT_SILENT(test, p, 0);
	/* An RNR NAK costs a retry, whichever copy it is for. */
	comp->rnr_left = 1;
	not_ready(p, PSN);
	KUNIT_EXPECT_EQ(test, comp->rnr_left, 0);
}

/*
 * A receiver that is late for long: the intervals do not double as long as the
 * peer answers, but they are not short again before it takes something.
 */
static void requester__refused_for_long(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_loss *loss = note(test, p);
	int i;

	pair_send(p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED, 0, 20 * MTU);
	drop_wire(p);
	loss->srtt = 4 * NSEC_PER_MSEC;
	loss->rttvar = NSEC_PER_MSEC;
	loss->rtt_min = 3 * NSEC_PER_MSEC;
	p->side[0].qp->comp.rnr_left = 7;	/* without limit */
	not_ready(p, PSN);
	EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN);
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, true), 6 * NSEC_PER_MSEC);
	for (i = 0; i < 3; i++) {
		pair_probe(p, 0);
		EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN);
		KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, true),
				24 * NSEC_PER_MSEC);
		not_ready(p, PSN);
		EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN);
		KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, true),
				12 * NSEC_PER_MSEC);
	}
	ack(p, PSN + 19);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
}

/*
 * Then the peer has a receive, and reports what it kept. That is not sent
 * again, although packets may be late on this network: they were sent before
 * the one that was refused.
 */
static void requester__refused_and_kept(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct wire_run *w;
	int i;

	note(test, p)->late = 1;
	for (i = 0; i < 3; i++)
		pair_send(p, 0, IB_WR_SEND, i, IB_SEND_SIGNALED, 0, 20 * MTU);
	drop_wire(p);
	not_ready(p, PSN);
	EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN);
	report_word(p, PSN + 20, 0xffffe);
	w = EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN + 20);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.npkts, 1);
	w = EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN + 40);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.npkts, 20);
	EXPECT_SILENT(test, p, 0);
}

/* Having gone back, the requester skips what the peer reports. */
static void requester__goes_back_and_skips(struct kunit *test)
{
	struct pair *p = by_wire(test);

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 9 * MTU);
	drop_wire(p);
	not_ready(p, PSN);
	EXPECT_AGAIN(test, p, PSN, 1);
	EXPECT_SILENT(test, p, 0);
	report_word(p, PSN + 1, 0x7e);		/* 2 to 7 are there */
	EXPECT_AGAIN(test, p, PSN + 1, 1);
	EXPECT_AGAIN(test, p, PSN + 8, 1);
	EXPECT_SILENT(test, p, 0);
	ack(p, PSN + 8);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
}

/*
 * A report ends inside a READ, whose last PSN is too far away: the READ is sent
 * whole, so that all of its PSNs count as handed over.
 */
static void requester__skips_to_read(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	u8 words[ARX_REPORT_SPAN / 8];
	int i;

	memset(words, 0xff, sizeof(words));
	words[3] = 0xfe;
	note(test, p);
	for (i = 0; i < 2; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, IB_SEND_SIGNALED, 0, 8);
	pair_send(p, 0, IB_WR_RDMA_READ, 2, IB_SEND_SIGNALED, 0,
		  ARX_REPORT_SPAN * MTU);
	drop_wire(p);
	not_ready(p, PSN);
	EXPECT_AGAIN(test, p, PSN, 1);
	report(p, PSN + 1, words, sizeof(words));
	EXPECT_AGAIN(test, p, PSN + 1, 1);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + 2);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, qp->req.rd_sent, 1);
	KUNIT_EXPECT_EQ(test, qp->req.rd_psns, ARX_REPORT_SPAN);
}

/* A packet that is to be sent again does not leave this machine: once more. */
static void requester__drops_a_fill(struct kunit *test)
{
	struct pair *p = by_wire(test);

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 9 * MTU);
	drop_wire(p);
	p->drops = true;
	p->room = 0;
	report_word(p, PSN, 0x1e);		/* 1 to 4 are there */
	EXPECT_SILENT(test, p, 0);
	p->drops = false;
	report_word(p, PSN, 0x5e);		/* 6, too */
	EXPECT_AGAIN(test, p, PSN, 1);
	EXPECT_AGAIN(test, p, PSN + 5, 1);
	EXPECT_SILENT(test, p, 0);
	ack(p, PSN + 8);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
}

/* The retransmission timer forgets reports: go-back-N. */
static void requester__fills_in_vain(struct kunit *test)
{
	struct pair *p = by_wire(test);
	int i;

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 9 * MTU);
	drop_wire(p);
	for (i = 0; i < 3; i++) {
		report_word(p, PSN, 0x2);
		EXPECT_AGAIN(test, p, PSN, 1);
		EXPECT_SILENT(test, p, 0);
		/* There was news. */
		pair_timeout(p, 0);
		EXPECT_SILENT(test, p, 0);
		report_word(p, PSN, 0x2);
		pair_timeout(p, 0);
		EXPECT_AGAIN(test, p, PSN, 9);
		EXPECT_SILENT(test, p, 0);
	}
	/* A report that says nothing new does not put off the end. */
	report_word(p, PSN, 0x2);
	pair_timeout(p, 0);
	report_word(p, PSN, 0x2);
	pair_timeout(p, 0);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_RETRY_EXC_ERR);
}

/* News put off the end, too, but only seven times. */
static void requester__news_for_ever(struct kunit *test)
{
	struct pair *p = by_wire(test);
	int i;

	note(test, p);
	p->side[0].qp->comp.retries_left = 0;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 31 * MTU);
	for (i = 0; i < 7; i++) {
		report_word(p, PSN, 2 << i);
		pair_timeout(p, 0);
		EXPECT_NO_WC(test, &p->side[0].scq);
	}
	report_word(p, PSN, 2 << i);
	pair_timeout(p, 0);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_RETRY_EXC_ERR);
}

/* Reports of packets that were never sent, and payload that is no report. */
static void requester__bad_reports(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_loss *loss = note(test, p);
	u8 words[ARX_REPORT_SPAN / 8 + 4];

	memset(words, 0xff, sizeof(words));
	words[3] = 0xfe;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 3 * MTU);
	drop_wire(p);
	report(p, PSN, words, ARX_REPORT_SPAN / 8);
	KUNIT_EXPECT_EQ(test, loss->end, (PSN + 3) & ARX_PSN_MASK);
	EXPECT_AGAIN(test, p, PSN, 1);
	EXPECT_SILENT(test, p, 0);
	report(p, PSN + 1, words, ARX_REPORT_SPAN / 8 + 4);
	EXPECT_AGAIN(test, p, PSN + 1, 2);
	EXPECT_SILENT(test, p, 0);
	report(p, PSN + 1, words, 2);
	EXPECT_AGAIN(test, p, PSN + 1, 2);
	EXPECT_SILENT(test, p, 0);
	ack(p, PSN + 2);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
}

/*
 * On another CPU, a forged report that the second of three packets is there,
 * while they wait for room.
 */
static void report_unsent(struct pair *p, struct arx_qp *qp)
{
	struct arx_comp *comp = &qp->comp;
	__be32 word = cpu_to_be32(0x4);

	p->on_send = NULL;
	spin_lock(&comp->lock);
	arx_loss_report(comp->loss, &word, 1, qp->req.nxt, 0);
	comp->fills++;
	arx_publish(&comp->rewinds, comp->rewinds + 1);
	spin_unlock(&comp->lock);
}

/* Such a report does no harm but to its own packets. */
static void requester__report_of_unsent(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, MTU);
	drop_wire(p);
	p->blocked = true;
	p->on_send = report_unsent;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, MTU, 3 * MTU);
	KUNIT_EXPECT_NULL(test, p->on_send);
	p->blocked = false;
	pair_requester(p, 0);
	drop_wire(p);
	KUNIT_EXPECT_EQ(test, qp->req.psn, (PSN + 4) & ARX_PSN_MASK);
	KUNIT_EXPECT_EQ(test, qp->req.nxt, (PSN + 4) & ARX_PSN_MASK);
	ack(p, PSN + 3);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, IB_SEND_SIGNALED, 0, MTU);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 4);
}

/* Reports that cannot be noted: back to the gap, once, and without a retry. */
static void requester__report_without_memory(struct kunit *test)
{
	struct pair *p = by_wire(test);
	int i;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 5 * MTU);
	drop_wire(p);
	pair_no_memory = true;
	for (i = 0; i < 9; i++)
		report_word(p, PSN, 0x1c);
	pair_no_memory = false;
	EXPECT_AGAIN(test, p, PSN, 5);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->comp.retries_left, 3);
	ack(p, PSN + 4);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
}

/* PSNs that side 0 sends from @psn on, beside the first one, which is lost. */
static u32 new_psns(struct kunit *test, struct pair *p, u32 psn)
{
	struct wire_run *w;
	u32 n = 0;

	while ((w = pair_take(p, 0))) {
		if (w->run.h.psn == PSN && psn != PSN)
			continue;
		KUNIT_EXPECT_EQ(test, w->run.h.psn, (psn + n) & ARX_PSN_MASK);
		n += w->run.npkts;
	}
	return n;
}

/*
 * What the peer keeps is not in flight: the window has room for as many others,
 * once there is room for a run, up to what a report reaches. The first report
 * after an RNR NAK makes no room.
 */
static void requester__reported_make_room(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_comp *comp = &p->side[0].qp->comp;
	u8 words[ARX_REPORT_SPAN / 8];
	u32 nxt = PSN + ARX_WINDOW;
	int i;

	note(test, p);
	for (i = 0; i < 5; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, IB_SEND_SIGNALED, 0,
			  600 * MTU);
	KUNIT_EXPECT_EQ(test, new_psns(test, p, PSN), ARX_WINDOW);
	report_word(p, PSN, 0xffe);
	EXPECT_AGAIN(test, p, PSN, 1);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, comp->there, 11);
	report_word(p, PSN, 0xfffffffe);
	KUNIT_EXPECT_EQ(test, new_psns(test, p, nxt), 31);
	nxt += 31;
	memset(words, 0xff, sizeof(words));
	words[3] = 0xfe;
	report(p, PSN, words, sizeof(words));
	KUNIT_EXPECT_EQ(test, new_psns(test, p, nxt), ARX_WINDOW - 1);
	nxt += ARX_WINDOW - 1;
	for (i = 0; i < 4; i++) {
		report(p, PSN, words, sizeof(words));
		nxt += new_psns(test, p, nxt);
	}
	KUNIT_EXPECT_EQ(test, nxt, PSN + ARX_REPORT_SPAN);
	KUNIT_EXPECT_EQ(test, comp->there, ARX_REPORT_SPAN - 1);

	ack(p, PSN + 99);
	KUNIT_EXPECT_EQ(test, comp->there, ARX_REPORT_SPAN - 100);
	not_ready(p, PSN + 100);
	KUNIT_EXPECT_EQ(test, comp->there, 0);
}

/*
 * What is missing is longer than the window, and its first packet is lost
 * again: no later packet can show that. Silence does.
 */
static void requester__fill_is_lost(struct kunit *test)
{
	struct pair *p = by_wire(test);
	int i;

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 9 * MTU);
	drop_wire(p);
	p->side[0].qp->comp.rnr_row = 1;
	report_word(p, PSN, 0x100);
	EXPECT_AGAIN(test, p, PSN, 1);
	EXPECT_SILENT(test, p, 0);
	pair_probe(p, 0);	/* the report was news */
	EXPECT_SILENT(test, p, 0);
	for (i = 0; i < 2; i++) {
		pair_probe(p, 0);
		EXPECT_AGAIN(test, p, PSN, 1);
		EXPECT_SILENT(test, p, 0);
	}
	ack(p, PSN);
	EXPECT_AGAIN(test, p, PSN + 1, 7);
	ack(p, PSN + 8);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
}

/* Silence: the last packet is sent again, or what is known to be missing. */
static void requester__probes(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_loss *loss = note(test, p);
	int i;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 5 * MTU + 8);
	drop_wire(p);
	for (i = 0; i < 2; i++) {
		pair_probe(p, 0);
		/* The oldest one, then the last. */
		EXPECT_AGAIN(test, p, PSN, 1);
		EXPECT_AGAIN(test, p, PSN + 5, 1);
		EXPECT_SILENT(test, p, 0);
	}
	report_word(p, PSN, 0x20);
	EXPECT_AGAIN(test, p, PSN + 1, 4);	/* the oldest is on its way */
	pair_probe(p, 0);
	EXPECT_SILENT(test, p, 0);	/* the report was news */
	loss->silent = ARX_LOSS_SILENT_MAX;
	pair_probe(p, 0);
	EXPECT_AGAIN(test, p, PSN, 5);
	ack(p, PSN + 5);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	pair_probe(p, 0);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&p->side[0].qp->comp.probe));
}

/*
 * With a small window only the oldest packet makes the peer respond, and its
 * acknowledgment makes room for new ones.
 */
static void requester__probes_small_window(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	int i;

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 40 * MTU);
	drop_wire(p);
	arx_congestion_timeout(qp);
	qp->comp.cc->window = 8;
	for (i = 0; i < 2; i++) {
		pair_probe(p, 0);
		EXPECT_AGAIN(test, p, PSN, 1);
		EXPECT_SILENT(test, p, 0);
		KUNIT_EXPECT_FALSE(test, qp->req.filling);
	}
	KUNIT_EXPECT_EQ(test, qp->req.psn, arx_psn_add(PSN, 40));
}

/*
 * The loss of the oldest packet makes the window smaller. The last packet
 * follows all the same, and the oldest is neither sent nor counted twice.
 */
static void requester__probes_shrink(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	struct arx_cc *cc;

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 5 * MTU + 8);
	drop_wire(p);
	arx_congestion_timeout(qp);
	cc = qp->comp.cc;
	cc->loss.cwnd = 12 << 8;	/* ARX_LOSSES_SHIFT */
	cc->loss.rounds = 3;		/* ARX_LOSSES_ROUNDS */
	cc->window = 12;
	pair_probe(p, 0);
	EXPECT_AGAIN(test, p, PSN, 1);
	EXPECT_AGAIN(test, p, PSN + 5, 1);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, cc->loss.lost, 1);
	KUNIT_EXPECT_LT(test, cc->window / 2, 5);
}

/*
 * A controller that keeps one packet in flight learns of its loss by the
 * silence, once for each silence. A QP without a controller gets none.
 */
static void requester__probe_is_loss(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	struct arx_cc *cc;
	int i;

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 8);
	drop_wire(p);
	pair_probe(p, 0);
	drop_wire(p);
	KUNIT_EXPECT_NULL(test, qp->comp.cc);
	ack(p, PSN);

	arx_congestion_timeout(qp);
	cc = qp->comp.cc;
	for (i = 0; i < 2; i++) {
		pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 8);
		drop_wire(p);
		cc->loss.lost = 0;
		pair_probe(p, 0);
		/* The ACK was news, so only the next expiry is silence. */
		KUNIT_EXPECT_EQ(test, cc->loss.lost, 0);
		pair_probe(p, 0);
		KUNIT_EXPECT_EQ(test, cc->loss.lost, 1);
		pair_probe(p, 0);
		KUNIT_EXPECT_EQ(test, cc->loss.lost, 1);
		drop_wire(p);
		ack(p, arx_psn_add(PSN, i + 1));
	}
}

static s64 probe_in(const struct pair *p)
{
	return ktime_to_ns(hrtimer_get_remaining(&p->side[0].qp->comp.probe));
}

/* News of a peer that was silent: the next interval is short at once. */
static void requester__hastens(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_loss *loss = note(test, p);
	int i, n;

	for (n = 0; n < 2; n++) {
		pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 5 * MTU);
		loss->srtt = 0;
		loss->timing = false;
		for (i = 0; i < 3; i++) {
			pair_probe(p, 0);
			drop_wire(p);
		}
		KUNIT_EXPECT_GT(test, probe_in(p), 3 * ARX_LOSS_UNKNOWN);
		if (!n)
			ack(p, PSN + 1);
		else
			report_word(p, PSN + 5, 0x8);
		drop_wire(p);
		KUNIT_EXPECT_EQ(test, loss->silent, 0);
		KUNIT_EXPECT_LE(test, probe_in(p), ARX_LOSS_UNKNOWN);
		ack(p, PSN + 5 * n + 4);
	}
}

/* Silence while a READ is outstanding: the rest of it is asked for again. */
static void requester__probes_read(struct kunit *test)
{
	struct pair *p = by_wire(test);

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_READ, 1, IB_SEND_SIGNALED, 0, 5 * MTU);
	drop_wire(p);
	pair_probe(p, 0);
	pair_probe(p, 0);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN);
	pair_deliver(p, p->taken);
	pair_pump(p);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
}

/*
 * An acknowledgment comes between the decision what to send again, which the
 * requester takes from loss.c, and the step to the first of these packets: all
 * of them are acknowledged then. The end of the gap lies within a message.
 */
static void requester__gap_closes(struct kunit *test)
{
	static const enum ib_wr_opcode ops[] = {
		IB_WR_RDMA_WRITE, IB_WR_RDMA_READ
	};
	struct pair *p = by_wire(test);
	struct arx_comp *comp = &p->side[0].qp->comp;
	__be32 word = cpu_to_be32(BIT(4));
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		struct arx_loss *loss;

		pair_join(test, p);
		p->dev.port_active = false;
		loss = note(test, p);
		pair_send(p, 0, ops[i], 1, 0, 0, 8 * MTU);
		drop_wire(p);
		KUNIT_EXPECT_TRUE(test, arx_loss_report(loss, &word, 1, PSN + 8,
							0));
		comp->una = PSN + 4;
		comp->fills++;
		comp->rewinds++;
		arx_qp_schedule(p->side[0].qp);
		pair_settle(p);
		EXPECT_SILENT(test, p, 0);
		KUNIT_EXPECT_FALSE(test, p->side[0].qp->req.filling);
		KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, 0), 0);
	}
}

/* A reset forgets; so does the end of the QP, by pair_free(). */
static void requester__forgets(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 5 * MTU);
	drop_wire(p);
	p->blocked = true;
	report_word(p, PSN, 0x2);
	p->blocked = false;
	KUNIT_EXPECT_TRUE(test, qp->req.filling);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, 0), 0);
	KUNIT_EXPECT_NULL(test, qp->comp.loss);
	KUNIT_EXPECT_FALSE(test, qp->req.filling);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&qp->comp.probe));
	pair_join(test, p);
	p->dev.port_active = false;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 5 * MTU);
	pair_pump(p);
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);
	note(test, p);
}

/* READ responses. */

/* Packets @i to @i + @n of a response to side 0; they carry @at * MTU on. */
static void read_responses(struct pair *p, int flags, u32 i, u32 at, u32 n)
{
	u8 *data = p->side[1].buf + at * MTU;
	struct arx_run run = pair_run(p, 0, ARX_OP_READ_RESPONSE, flags,
				      PSN + i, data, n * MTU);

	pair_rx_packets(p, 0, &run, data);
	pair_settle(p);
}

/* The same of a READ at offset 0 that was posted first. */
static void responses(struct pair *p, int flags, u32 i, u32 n)
{
	read_responses(p, flags, i, i, n);
}

/* The next run of side 0 asks for packets @i to @i + @n, from @at * MTU on. */
#define EXPECT_ASKS_AT(test, p, i, at, n) do {				\
	struct wire_run *q__ = EXPECT_SENT(test, p, 0, ARX_OP_READ,	\
					   PSN + (i));			\
									\
	if (q__) {							\
		KUNIT_EXPECT_EQ(test, q__->run.h.va, IOVA + (at) * MTU); \
		KUNIT_EXPECT_EQ(test, q__->run.h.dma_len, (n) * MTU);	\
	}								\
} while (0)

#define EXPECT_ASKS(test, p, i, n)	EXPECT_ASKS_AT(test, p, i, i, n)

#define ENDS	(ARX_LAST | ARX_REPORTS)

/* Side 0 has sent a READ of @n packets and notes its losses. */
static struct arx_loss *post_read(struct kunit *test, struct pair *p, u32 n)
{
	struct arx_loss *loss = note(test, p);

	p->side[0].qp->comp.reports = true;
	pair_send(p, 0, IB_WR_RDMA_READ, 1, IB_SEND_SIGNALED, 0, n * MTU);
	drop_wire(p);
	return loss;
}

/* The missing part is asked for, once; a WRITE behind it is not sent again. */
static void completer__read_gap(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];
	int i;

	for (i = 0; i < 12; i++)
		memset(p->side[1].buf + i * MTU, i + 1, MTU);
	post_read(test, p, 12);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	drop_wire(p);
	responses(p, ARX_FIRST, 0, 2);
	responses(p, 0, 4, 1);
	EXPECT_ASKS(test, p, 2, 2);
	responses(p, 0, 5, 2);
	EXPECT_SILENT(test, p, 0);
	responses(p, ENDS, 8, 4);
	EXPECT_ASKS(test, p, 7, 1);
	ack(p, PSN + 12);
	EXPECT_SILENT(test, p, 0);
	EXPECT_NO_WC(test, &s->scq);
	KUNIT_EXPECT_GT(test, s->qp->comp.kept.bytes, 0);

	/* It comes in two parts, and the next gap is open still. */
	responses(p, ARX_FIRST, 2, 1);
	responses(p, ENDS, 3, 1);
	EXPECT_SILENT(test, p, 0);
	/* The first transmission was late, and not lost. */
	responses(p, 0, 7, 1);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, s->buf, p->side[1].buf, 12 * MTU);
	KUNIT_EXPECT_EQ(test, s->qp->comp.kept.bytes, 0);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, s->qp->comp.retries_left, 3);
	responses(p, ENDS | ARX_FIRST, 7, 1);
	EXPECT_SILENT(test, p, 0);
}

/*
 * Parts of three READs are asked for at a time, and come in any order. A WRITE
 * between them is not sent again, and the requester goes on where it was.
 */
static void completer__many_gaps(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];
	int i;

	for (i = 0; i < 12; i++)
		memset(p->side[1].buf + i * MTU, i + 1, MTU);
	s->qp->attr.max_rd_atomic = 4;
	post_read(test, p, 4);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, 0, 0, 8);
	pair_send(p, 0, IB_WR_RDMA_READ, 3, 0, 4 * MTU, 4 * MTU);
	pair_send(p, 0, IB_WR_RDMA_READ, 4, IB_SEND_SIGNALED, 8 * MTU, 4 * MTU);
	drop_wire(p);
	p->blocked = true;	/* as while the parts wait for room */
	responses(p, ARX_FIRST, 0, 1);
	responses(p, 0, 2, 1);
	read_responses(p, ARX_FIRST, 5, 4, 1);
	read_responses(p, ENDS, 11, 10, 2);
	p->blocked = false;
	arx_qp_schedule(s->qp);
	pair_settle(p);
	EXPECT_ASKS(test, p, 1, 1);
	EXPECT_ASKS(test, p, 3, 1);
	EXPECT_ASKS_AT(test, p, 6, 5, 3);
	EXPECT_ASKS_AT(test, p, 9, 8, 2);
	EXPECT_SILENT(test, p, 0);
	/* What is posted now begins after all that. */
	pair_send(p, 0, IB_WR_RDMA_WRITE, 5, IB_SEND_SIGNALED, 0, 8);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 13);

	read_responses(p, ARX_FIRST | ENDS, 9, 8, 2);
	responses(p, ARX_FIRST | ENDS, 3, 1);
	EXPECT_NO_WC(test, &s->scq);
	/* One of four is lost: only that one is asked for again. */
	responses(p, ARX_FIRST | ENDS, 1, 1);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	EXPECT_SILENT(test, p, 0);
	pair_probe(p, 0);
	EXPECT_ASKS_AT(test, p, 6, 5, 3);
	EXPECT_SILENT(test, p, 0);
	read_responses(p, ARX_FIRST | ENDS, 6, 5, 3);
	EXPECT_WC(test, &s->scq, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, s->buf, p->side[1].buf, 12 * MTU);
	KUNIT_EXPECT_EQ(test, s->qp->comp.loss->asks, 0);
	KUNIT_EXPECT_EQ(test, s->qp->req.rd_psns, s->qp->comp.rd_psns);
	KUNIT_EXPECT_EQ(test, s->qp->comp.retries_left, 3);
	ack(p, PSN + 13);
	EXPECT_WC(test, &s->scq, 5, IB_WC_SUCCESS);
}

/*
 * An ACK without a response behind it may have overtaken responses: only the
 * oldest READ is asked for.
 */
static void completer__ack_overtakes(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];

	post_read(test, p, 4);
	pair_send(p, 0, IB_WR_RDMA_READ, 2, IB_SEND_SIGNALED, 4 * MTU, 4 * MTU);
	drop_wire(p);
	responses(p, ARX_FIRST, 0, 1);
	ack(p, PSN + 7);
	EXPECT_ASKS(test, p, 1, 3);
	EXPECT_SILENT(test, p, 0);
	responses(p, 0, 1, 2);
	responses(p, ENDS, 3, 1);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	/* The ACK was behind the next READ, too, and no response has come. */
	EXPECT_ASKS(test, p, 4, 4);
	responses(p, ARX_FIRST, 4, 3);
	responses(p, ENDS, 7, 1);
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	EXPECT_SILENT(test, p, 0);
}

/* A lost request is one lost packet, however long its responses are. */
static void completer__lost_request(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;

	note(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 2 * MTU);
	pair_send(p, 0, IB_WR_RDMA_READ, 2, IB_SEND_SIGNALED, 0, 12 * MTU);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, IB_SEND_SIGNALED, 0, 8);
	drop_wire(p);
	report_word(p, PSN, 1 << 14);
	EXPECT_AGAIN(test, p, PSN, 2);
	EXPECT_ASKS_AT(test, p, 2, 0, 12);
	KUNIT_ASSERT_NOT_NULL(test, qp->comp.cc);
	KUNIT_EXPECT_EQ(test, qp->comp.cc->loss.lost, 3);
}

/* A round trip ends when the response is there, whatever is missing before. */
static void completer__rtt_behind_gap(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	struct arx_loss *loss;

	p->clock = NSEC_PER_SEC;
	spin_lock_bh(&qp->comp.lock);
	arx_congestion_lost(qp, PSN, 1, 1);	/* so control begins */
	spin_unlock_bh(&qp->comp.lock);
	KUNIT_ASSERT_NOT_NULL(test, qp->comp.cc);
	loss = post_read(test, p, 12);
	KUNIT_EXPECT_TRUE(test, loss->timing);
	p->clock += 5 * NSEC_PER_MSEC;
	responses(p, ENDS, 10, 2);
	KUNIT_EXPECT_EQ(test, qp->comp.cc->rtt, 5 * NSEC_PER_MSEC);
	KUNIT_EXPECT_FALSE(test, loss->timing);
	KUNIT_EXPECT_EQ(test, qp->comp.una, PSN);
}

/* So many parts and no more are asked for at a time, and later the others. */
static void completer__most_gaps(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];
	u32 n = 2 * ARX_LOSS_ASKED + 6, i;

	s->qp->attr.max_rd_atomic = 128;
	post_read(test, p, n);
	for (i = 1; i < n; i += 2)
		responses(p, i == n - 1 ? ENDS : 0, i, 1);
	for (i = 0; i < 2 * ARX_LOSS_ASKED; i += 2)
		EXPECT_ASKS(test, p, i, 1);
	EXPECT_SILENT(test, p, 0);
	for (i = 0; i < 6; i += 2) {
		responses(p, ENDS | (i ? 0 : ARX_FIRST), i, 1);
		EXPECT_ASKS(test, p, 2 * ARX_LOSS_ASKED + i, 1);
	}
	for (; i < n; i += 2)
		responses(p, ENDS, i, 1);
	EXPECT_SILENT(test, p, 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, s->buf, p->side[1].buf, n * MTU);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
}

/* The peer has room for this number only. The part at una is never left out. */
static void completer__few_gaps(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];

	post_read(test, p, 12);
	s->qp->attr.max_rd_atomic = 1;
	responses(p, 0, 3, 1);
	responses(p, 0, 5, 1);
	responses(p, 0, 7, 1);
	EXPECT_ASKS(test, p, 0, 3);
	EXPECT_SILENT(test, p, 0);
	responses(p, 0, 1, 1);
	EXPECT_SILENT(test, p, 0);
	pair_probe(p, 0);
	EXPECT_ASKS(test, p, 0, 1);
	EXPECT_ASKS(test, p, 2, 1);	/* the end of what was asked for */
	EXPECT_SILENT(test, p, 0);
	responses(p, ARX_FIRST | ENDS, 0, 1);
	EXPECT_SILENT(test, p, 0);
	responses(p, ENDS, 2, 1);
	EXPECT_ASKS(test, p, 4, 1);
}

/*
 * A response that cannot be kept: everything is asked for, and gaps that follow
 * are asked for at once, too.
 */
static void completer__gap_after_rewind(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_run run;

	post_read(test, p, 12);
	responses(p, 0, 4, 1);
	EXPECT_ASKS(test, p, 0, 4);
	run = pair_run(p, 0, ARX_OP_READ_RESPONSE, 0, PSN + 6,
		       p->side[1].buf + 6 * MTU, MTU);
	pair_rx(p, 0, &run);
	pair_settle(p);
	EXPECT_ASKS(test, p, 0, 12);
	responses(p, ARX_FIRST, 0, 2);
	EXPECT_ASKS(test, p, 2, 2);
	EXPECT_SILENT(test, p, 0);
}

/* A longer response than the kept one: what it alone has is still missing. */
static void completer__kept_before(struct kunit *test)
{
	struct pair *p = by_wire(test);

	post_read(test, p, 12);
	responses(p, 0, 4, 1);
	EXPECT_ASKS(test, p, 0, 4);
	responses(p, 0, 4, 3);
	responses(p, 0, 9, 1);
	EXPECT_ASKS(test, p, 5, 4);
	EXPECT_SILENT(test, p, 0);
}

/* The end of a part that was not asked for is a bad response. */
static void completer__wrong_end(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];

	post_read(test, p, 12);
	responses(p, 0, 4, 1);
	EXPECT_ASKS(test, p, 0, 4);
	responses(p, ARX_FIRST | ENDS, 0, 3);
	EXPECT_WC(test, &s->scq, 1, IB_WC_BAD_RESP_ERR);
	KUNIT_EXPECT_EQ(test, s->qp->comp.kept.bytes, 0);
}

/*
 * A part arrives after the retransmission timer: the whole rest has been asked
 * for meanwhile, but the part was asked for, too.
 */
static void completer__late_part(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];

	post_read(test, p, 12);
	responses(p, 0, 4, 1);
	EXPECT_ASKS(test, p, 0, 4);
	pair_timeout(p, 0);
	EXPECT_ASKS(test, p, 0, 12);
	responses(p, ARX_FIRST | ENDS, 0, 4);
	EXPECT_NO_WC(test, &s->scq);
	responses(p, 0, 5, 6);
	responses(p, ENDS, 11, 1);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, s->buf, p->side[1].buf, 12 * MTU);
}

/*
 * Many kept responses are placed in several shares. Another gap is asked for
 * when all of them have been.
 */
static void completer__long_gap(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];
	u32 n = 3 * ARX_POLL_BYTES / MTU, i;
	struct arx_run run;

	post_read(test, p, n + 4);
	for (i = 1; i < n; i++)
		responses(p, 0, i, 1);
	EXPECT_ASKS(test, p, 0, 1);
	run = pair_run(p, 0, ARX_OP_READ_RESPONSE, ARX_FIRST | ENDS, PSN,
		       NULL, MTU);
	local_bh_disable();	/* the rest is a later softirq's */
	pair_rx_packets(p, 0, &run, p->side[1].buf);
	KUNIT_EXPECT_EQ(test, s->qp->comp.una,
			(PSN + 1 + ARX_POLL_BYTES / MTU) & ARX_PSN_MASK);
	run = pair_run(p, 0, ARX_OP_READ_RESPONSE, 0, PSN + n + 2, NULL, MTU);
	pair_rx_packets(p, 0, &run, p->side[1].buf + (n + 2) * MTU);
	local_bh_enable();
	pair_settle(p);
	EXPECT_ASKS(test, p, n, 2);
	EXPECT_SILENT(test, p, 0);
	responses(p, ENDS, n, 2);
	responses(p, ENDS, n + 3, 1);
	EXPECT_SILENT(test, p, 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, s->qp->comp.kept.bytes, 0);
	KUNIT_EXPECT_MEMEQ(test, s->buf, p->side[1].buf, (n + 4) * MTU);
}

/* A READ fails: what was acknowledged behind it is flushed, as all is. */
static void completer__fails_before_later(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];

	post_read(test, p, 12);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	drop_wire(p);
	ack(p, PSN + 12);
	EXPECT_ASKS(test, p, 0, 12);
	responses(p, ARX_FIRST | ENDS, 0, 3);
	EXPECT_WC(test, &s->scq, 1, IB_WC_BAD_RESP_ERR);
	EXPECT_WC(test, &s->scq, 2, IB_WC_WR_FLUSH_ERR);
	EXPECT_NO_WC(test, &s->scq);
}

/* So is what lies between the READ and responses that were kept. */
static void completer__fails_before_kept(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];

	post_read(test, p, 12);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	pair_send(p, 0, IB_WR_RDMA_READ, 3, IB_SEND_SIGNALED, 0, 2 * MTU);
	drop_wire(p);
	responses(p, ARX_FIRST | ENDS, 13, 2);
	EXPECT_ASKS(test, p, 0, 12);
	responses(p, ARX_FIRST | ENDS, 0, 3);
	EXPECT_WC(test, &s->scq, 1, IB_WC_BAD_RESP_ERR);
	EXPECT_WC(test, &s->scq, 2, IB_WC_WR_FLUSH_ERR);
	EXPECT_WC(test, &s->scq, 3, IB_WC_WR_FLUSH_ERR);
	EXPECT_NO_WC(test, &s->scq);
	KUNIT_EXPECT_EQ(test, s->qp->comp.kept.bytes, 0);
}

/*
 * The QP is destroyed while kept responses are due: the work that processes
 * them may still run, and must not start a timer.
 */
static void completer__destroyed_with_kept(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	u32 n = 3 * ARX_POLL_BYTES / MTU, i;
	struct arx_run run;

	post_read(test, p, n + 4);
	for (i = 1; i < n; i++)
		responses(p, 0, i, 1);
	responses(p, 0, n + 2, 1);
	run = pair_run(p, 0, ARX_OP_READ_RESPONSE, ARX_FIRST | ENDS, PSN,
		       NULL, MTU);
	local_bh_disable();	/* the rest is a later softirq's */
	pair_rx_packets(p, 0, &run, p->side[1].buf);
	KUNIT_EXPECT_TRUE(test, qp->comp.has_later);
	arx_qp_set_state(qp, IB_QPS_RESET);
	hrtimer_cancel(&qp->comp.probe);
	arx_completer_continue(qp);
	KUNIT_EXPECT_FALSE(test, qp->comp.has_later);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&qp->comp.probe));
	local_bh_enable();
	pair_settle(p);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&qp->comp.probe));
}

/* Once asked, and then PSNs went on for half of their space: asked again. */
static void loss__asked_long_ago(struct kunit *test)
{
	struct arx_loss *loss = kunit_kzalloc(test, sizeof(*loss), GFP_KERNEL);
	u32 una;

	KUNIT_ASSERT_NOT_NULL(test, loss);
	arx_loss_init(loss, 100, 200);
	KUNIT_EXPECT_FALSE(test, arx_loss_asks(loss));
	KUNIT_EXPECT_TRUE(test, arx_loss_ask(loss, 100, 110, 0));
	KUNIT_EXPECT_FALSE(test, arx_loss_ask(loss, 100, 110, 0));
	for (una = 100; una < (1 << 23) + 200; una += 1 << 20) {
		KUNIT_EXPECT_EQ(test, arx_loss_asked(loss, 110), una == 100);
		KUNIT_EXPECT_EQ(test, arx_loss_asks(loss), una == 100);
		arx_loss_advance(loss, una + (1 << 20), 0);
	}
}

/* What was asked for is lost, too: silence, and it is asked for again. */
static void completer__asks_twice(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[0];

	post_read(test, p, 12);
	responses(p, ARX_FIRST, 0, 2);
	responses(p, ENDS, 4, 8);
	EXPECT_ASKS(test, p, 2, 2);
	/* Nothing came since, whatever came before. */
	pair_probe(p, 0);
	EXPECT_ASKS(test, p, 2, 2);
	EXPECT_SILENT(test, p, 0);
	/* The retransmission timer asks for the whole rest. */
	pair_timeout(p, 0);
	EXPECT_ASKS(test, p, 2, 10);
	responses(p, ENDS | ARX_FIRST, 2, 10);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, s->qp->comp.kept.bytes, 0);
}

/*
 * As before, of a READ whose request the peer had reported behind a gap: no
 * packet is missing, and still the part is asked for again.
 */
static void completer__asks_twice_after_report(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_loss *loss = note(test, p);

	p->side[0].qp->comp.reports = true;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 8);
	pair_send(p, 0, IB_WR_RDMA_READ, 2, IB_SEND_SIGNALED, 0, 12 * MTU);
	drop_wire(p);
	report_word(p, PSN, 0x1ffe);
	EXPECT_AGAIN(test, p, PSN, 1);
	ack(p, PSN);
	KUNIT_EXPECT_TRUE(test, arx_loss_has(loss, loss->una));
	responses(p, 0, 2, 10);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + 1);
	pair_probe(p, 0);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + 1);
	EXPECT_SILENT(test, p, 0);
}

/* Reset and error free responses; pair_free() checks destruction. */
static void completer__ends_with_kept(struct kunit *test)
{
	static const enum ib_qp_state ends[] = { IB_QPS_RESET, IB_QPS_ERR };
	struct pair *p = by_wire(test);
	struct arx_comp *comp = &p->side[0].qp->comp;
	int i;

	for (i = 0; i < 3; i++) {
		pair_join(test, p);
		p->dev.port_active = false;
		post_read(test, p, 12);
		responses(p, ENDS, 4, 8);
		KUNIT_EXPECT_GT(test, comp->kept.bytes, 0);
		if (i == 2)
			break;
		KUNIT_ASSERT_EQ(test, pair_modify(p, 0, ends[i], 0), 0);
		pair_settle(p);
		KUNIT_EXPECT_EQ(test, comp->kept.bytes, 0);
		while (pair_poll(&p->side[0].scq).wr_id != NO_WC)
			;
	}
}

/* A part of a READ is replayed while the rest is still being sent. */
static void responder__replays_part(struct kunit *test)
{
	struct pair *p = by_wire(test);
	u32 first = ARX_TX_RUN_MAX / MTU;
	struct wire_run *w;

	p->on_send = pair_block_second;
	packets(p, ARX_OP_READ, ASKS, PSN, 0, 3 * first * MTU);
	p->on_send = NULL;
	p->blocked = true;
	packets(p, ARX_OP_READ, ASKS, PSN + 2, 2 * MTU, 3 * MTU);
	/* This part is due anyway. */
	packets(p, ARX_OP_READ, ASKS, PSN + first - 1, (first - 1) * MTU,
		3 * MTU);
	p->blocked = false;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	w = EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 2);
	if (w)
		KUNIT_EXPECT_EQ(test, w->run.npkts, 3);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + first);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 2 * first);
	EXPECT_SILENT(test, p, 1);
	/* Later, and the tail as ever. */
	packets(p, ARX_OP_READ, ASKS, PSN + first, first * MTU, MTU);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + first);
	packets(p, ARX_OP_READ, ASKS, PSN + 2 * first, 2 * first * MTU,
		first * MTU);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 2 * first);
	EXPECT_SILENT(test, p, 1);
}

/*
 * After the response to a READ of 12 packets, side 1 is asked for @first and
 * then for @second packets of it from @i on, before it can send. It replays
 * @second packets first.
 */
static void ask_twice(struct kunit *test, struct pair *p, u32 i, u32 first,
		      u32 second)
{
	struct wire_run *w;

	packets(p, ARX_OP_READ, ASKS, PSN, 0, 12 * MTU);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	p->blocked = true;
	packets(p, ARX_OP_READ, ASKS, PSN + i, i * MTU, first * MTU);
	packets(p, ARX_OP_READ, ASKS, PSN + i, i * MTU, second * MTU);
	p->blocked = false;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
	w = EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + i);
	if (w)
		KUNIT_EXPECT_EQ(test, w->run.npkts, second);
}

/* A part waits to be replayed when the whole is asked for: the whole is due. */
static void responder__replays_whole(struct kunit *test)
{
	struct pair *p = by_wire(test);

	ask_twice(test, p, 0, 4, 12);
	EXPECT_SILENT(test, p, 1);
}

/* A part that is due does not stand for a longer one from the same PSN on. */
static void responder__replays_longer_part(struct kunit *test)
{
	struct pair *p = by_wire(test);

	ask_twice(test, p, 2, 2, 4);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 2);
	EXPECT_SILENT(test, p, 1);
}

/* A new READ takes the place of a replay, and the QP goes on. */
static void responder__replays_make_room(struct kunit *test)
{
	struct pair *p = by_wire(test);
	u32 i;

	packets(p, ARX_OP_READ, ASKS, PSN, 0, 12 * MTU);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	p->blocked = true;
	for (i = 0; i < 2 * p->side[1].qp->resp.rd_size; i++)
		packets(p, ARX_OP_READ, ASKS, PSN + 2 * i, 2 * i * MTU, MTU);
	packets(p, ARX_OP_READ, ASKS, PSN + 12, 0, MTU);
	p->blocked = false;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
	for (i = 1; i < 2 * p->side[1].qp->resp.rd_size; i++)
		EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 2 * i);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 12);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_RTS);
}

/* loss.c alone. */

static const u32 bases[] = { 100, 0xffff80, 0xfffe };

static void loss__holes(struct kunit *test)
{
	struct arx_loss *loss = kunit_kzalloc(test, sizeof(*loss), GFP_KERNEL);
	u32 psn, n, i, una, nxt;
	__be32 words[16] = {};

	KUNIT_ASSERT_NOT_NULL(test, loss);
	for (i = 0; i < ARRAY_SIZE(bases); i++) {
		una = bases[i];
		nxt = arx_psn_add(una, 512);
		arx_loss_forget(loss, una, una);
		words[0] = cpu_to_be32(0xfffffffe);
		words[15] = cpu_to_be32(0x80000000);
		KUNIT_EXPECT_TRUE(test, arx_loss_report(loss, words, 16, nxt,
							0));
		KUNIT_EXPECT_EQ(test, loss->end, nxt);
		KUNIT_EXPECT_TRUE(test, arx_loss_next(loss, nxt, 0, &psn, &n));
		KUNIT_EXPECT_EQ(test, psn, una);
		KUNIT_EXPECT_EQ(test, n, 1);
		KUNIT_EXPECT_TRUE(test, arx_loss_next(loss, nxt, 0, &psn, &n));
		KUNIT_EXPECT_EQ(test, psn, arx_psn_add(una, 32));
		KUNIT_EXPECT_EQ(test, n, 512 - 33);
		KUNIT_EXPECT_FALSE(test, arx_loss_next(loss, nxt, 0, &psn, &n));
		KUNIT_EXPECT_FALSE(test, arx_loss_report(loss, words, 16, nxt,
							 0));

		/* One more packet was sent later, and is there. */
		una = arx_psn_add(una, 32);
		nxt = arx_psn_add(nxt, 1);
		arx_loss_advance(loss, una, 0);
		memset(words, 0, sizeof(words));
		words[15] = cpu_to_be32(1);
		KUNIT_EXPECT_TRUE(test, arx_loss_report(loss, words, 16, nxt,
							0));
		KUNIT_EXPECT_TRUE(test, arx_loss_next(loss, nxt, 0, &psn, &n));
		KUNIT_EXPECT_EQ(test, psn, una);
		KUNIT_EXPECT_EQ(test, n, 512 - 33);
		KUNIT_EXPECT_FALSE(test, arx_loss_next(loss, nxt, 0, &psn, &n));
		memset(words, 0, sizeof(words));

		arx_loss_advance(loss, nxt, 0);
		KUNIT_EXPECT_TRUE(test, bitmap_empty(loss->there, 512));
		KUNIT_EXPECT_TRUE(test, bitmap_empty(loss->again, 512));
		KUNIT_EXPECT_EQ(test, loss->end, nxt);
		KUNIT_EXPECT_EQ(test, loss->due, nxt);
	}
}

/* PSNs of long READs follow: what was sent again is not lost again at once. */
static void loss__far_ahead(struct kunit *test)
{
	struct arx_loss *loss = kunit_kzalloc(test, sizeof(*loss), GFP_KERNEL);
	static const u32 far[] = { 1000, 32767, 32800, 40000, 65535, 1 << 22 };
	__be32 words[16] = { cpu_to_be32(2) };
	u32 psn, n, i;

	KUNIT_ASSERT_NOT_NULL(test, loss);
	for (i = 0; i < ARRAY_SIZE(far); i++) {
		arx_loss_forget(loss, 100, 100);
		KUNIT_EXPECT_TRUE(test, arx_loss_report(loss, words, 1,
							100 + far[i], 0));
		KUNIT_EXPECT_TRUE(test, arx_loss_next(loss, 100 + far[i], 0,
						      &psn, &n));
		KUNIT_EXPECT_EQ(test, psn, 100);
		KUNIT_EXPECT_EQ(test, n, 1);
		KUNIT_EXPECT_FALSE(test, arx_loss_report(loss, words, 1,
							 100 + far[i], 0));
		KUNIT_EXPECT_FALSE(test, arx_loss_next(loss, 100 + far[i], 0,
						       &psn, &n));
	}
}

/* A network that changes the order: packets that are late are waited for. */
static void loss__late(struct kunit *test)
{
	struct arx_loss *loss = kunit_kzalloc(test, sizeof(*loss), GFP_KERNEL);
	__be32 word = cpu_to_be32(0x2);
	u32 psn, n, i;
	u64 now = 0;

	KUNIT_ASSERT_NOT_NULL(test, loss);
	arx_loss_init(loss, 0, 0);
	arx_loss_time(loss, 0, now);
	arx_loss_advance(loss, 1, now += 1000000);
	KUNIT_EXPECT_EQ(test, loss->srtt, 1000000);
	/* It comes a moment after it was sent again. */
	KUNIT_EXPECT_TRUE(test, arx_loss_report(loss, &word, 1, 9, now));
	KUNIT_EXPECT_FALSE(test, arx_loss_hold(loss));
	KUNIT_EXPECT_TRUE(test, arx_loss_next(loss, 9, now, &psn, &n));
	arx_loss_advance(loss, 3, now += 100000);
	KUNIT_EXPECT_EQ(test, loss->late, 1);
	/* So the next one is waited for, a quarter of the round trip. */
	KUNIT_EXPECT_FALSE(test, arx_loss_report(loss, &word, 1, 9, now));
	KUNIT_EXPECT_FALSE(test, arx_loss_next(loss, 9, now, &psn, &n));
	KUNIT_EXPECT_TRUE(test, arx_loss_hold(loss));
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, false), 250000);
	KUNIT_EXPECT_TRUE(test, arx_loss_expired(loss, 9));
	KUNIT_EXPECT_TRUE(test, arx_loss_next(loss, 9, now, &psn, &n));
	KUNIT_EXPECT_EQ(test, psn, 3);
	KUNIT_EXPECT_EQ(test, n, 1);

	/* Where packets are only lost, that is unlearnt. */
	for (i = 0; i < ARX_LOSS_ON_TIME && loss->late; i++) {
		arx_loss_advance(loss, arx_psn_add(loss->una, 2),
				 now += 1000000);
		loss->late += !i;	/* after the late one above */
		arx_loss_report(loss, &word, 1, arx_psn_add(loss->una, 9),
				now);
		loss->due = loss->end;
		arx_loss_next(loss, arx_psn_add(loss->una, 9), now, &psn, &n);
	}
	KUNIT_EXPECT_LE(test, loss->late, 1);
}

/* The round trip of a packet that was sent twice is not known. */
static void loss__rtt(struct kunit *test)
{
	struct arx_loss *loss = kunit_kzalloc(test, sizeof(*loss), GFP_KERNEL);
	__be32 word = cpu_to_be32(0x2);
	u32 psn, n;

	KUNIT_ASSERT_NOT_NULL(test, loss);
	arx_loss_init(loss, 0, 0);
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, false), ARX_LOSS_UNKNOWN);
	arx_loss_time(loss, 1, 1000);
	arx_loss_time(loss, 2, 2000);	/* one at a time */
	arx_loss_report(loss, &word, 1, 3, 5000);
	KUNIT_EXPECT_EQ(test, loss->srtt, 4000);
	KUNIT_EXPECT_EQ(test, loss->rtt_min, 4000);
	KUNIT_EXPECT_FALSE(test, loss->timing);
	arx_loss_time(loss, 3, 10000);
	KUNIT_EXPECT_TRUE(test, loss->timing);
	loss->due = 4;
	loss->end = 4;
	while (arx_loss_next(loss, 4, 11000, &psn, &n))
		;
	arx_loss_advance(loss, 4, 12000);
	KUNIT_EXPECT_FALSE(test, loss->timing);
	KUNIT_EXPECT_EQ(test, loss->srtt, 4000);
}

/*
 * A round trip in which the timer expired is only a little longer than the
 * others. One in which the receiver was not ready does not count.
 */
static void loss__rtt_with_pause(struct kunit *test)
{
	struct arx_loss *loss = kunit_kzalloc(test, sizeof(*loss), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, loss);
	arx_loss_init(loss, 0, 0);
	arx_loss_time(loss, 0, 1000);
	arx_loss_advance(loss, 1, 9000);
	KUNIT_EXPECT_EQ(test, loss->srtt, 8000);

	arx_loss_time(loss, 1, 10000);
	loss->seen_una = 1;
	KUNIT_EXPECT_TRUE(test, arx_loss_expired(loss, 2));
	arx_loss_advance(loss, 2, 10000 + 200000);
	KUNIT_EXPECT_EQ(test, loss->srtt, 9000);
	arx_loss_time(loss, 2, 300000);
	arx_loss_advance(loss, 3, 300000 + 49000);
	KUNIT_EXPECT_EQ(test, loss->srtt, 14000);

	arx_loss_time(loss, 3, 400000);
	arx_loss_answered(loss);
	arx_loss_advance(loss, 4, 900000);
	KUNIT_EXPECT_EQ(test, loss->srtt, 14000);
}

/* Packets that make the peer respond are not needed once it has. */
static void loss__probes_end(struct kunit *test)
{
	struct arx_loss *loss = kunit_kzalloc(test, sizeof(*loss), GFP_KERNEL);
	__be32 word = cpu_to_be32(0x4);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, loss);
	arx_loss_init(loss, 0, 5);
	for (i = 0; i < 2; i++) {
		loss->seen_una = loss->una;
		KUNIT_EXPECT_TRUE(test, arx_loss_expired(loss, 5));
		KUNIT_EXPECT_EQ(test, loss->probes, ARX_LOSS_PROBES);
		if (!i)
			arx_loss_advance(loss, 1, 1000);
		else
			arx_loss_report(loss, &word, 1, 5, 2000);
		KUNIT_EXPECT_EQ(test, loss->probes, 0);
	}
}

/* The timer waits since the last news, or the last new packet. */
static void loss__left(struct kunit *test)
{
	struct arx_loss *loss = kunit_kzalloc(test, sizeof(*loss), GFP_KERNEL);
	u64 ms = NSEC_PER_MSEC;

	KUNIT_ASSERT_NOT_NULL(test, loss);
	arx_loss_init(loss, 0, 0);
	loss->srtt = 8 * ms;
	loss->rttvar = 4 * ms;
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, false), 32 * ms);
	arx_loss_time(loss, 1, 50 * ms);
	KUNIT_EXPECT_EQ(test, arx_loss_left(loss, false, 60 * ms), 22 * ms);
	arx_loss_time(loss, 1, 60 * ms);	/* no new packet */
	KUNIT_EXPECT_EQ(test, arx_loss_left(loss, false, 60 * ms), 22 * ms);
	loss->timing = false;
	arx_loss_advance(loss, 1, 100 * ms);
	KUNIT_EXPECT_EQ(test, arx_loss_left(loss, false, 120 * ms), 12 * ms);
	KUNIT_EXPECT_EQ(test, arx_loss_left(loss, false, 132 * ms), 1 * ms);
	KUNIT_EXPECT_EQ(test, arx_loss_left(loss, false, 500 * ms), 1 * ms);
	loss->holding = true;
	loss->late = 2;
	KUNIT_EXPECT_EQ(test, arx_loss_left(loss, false, 500 * ms), 4 * ms);
}

/*
 * The timer measures what is asked for again by the time that this takes, not
 * by the longer round trip of a whole READ.
 */
static void loss__ask_rtt(struct kunit *test)
{
	struct arx_loss *loss = kunit_kzalloc(test, sizeof(*loss), GFP_KERNEL);
	u64 now = 0, first;

	KUNIT_ASSERT_NOT_NULL(test, loss);
	arx_loss_init(loss, 0, 0);
	arx_loss_time(loss, 99, now);
	arx_loss_advance(loss, 100, now += 20 * NSEC_PER_MSEC);
	first = arx_loss_interval(loss, false);
	KUNIT_EXPECT_GT(test, first, 40 * NSEC_PER_MSEC);

	/* Alone: a short interval, but only until the first expiry. */
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, true),
			40 * NSEC_PER_MSEC);
	loss->silent = 1;
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, true), 2 * first);
	arx_loss_forget(loss, 100, 100);
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, true),
			40 * NSEC_PER_MSEC);
	loss->silent = 1;
	arx_loss_forget(loss, 100, 100);
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, true), 2 * first);
	loss->silent = 0;

	/* No such part was measured yet. */
	arx_loss_ask(loss, 100, 110, now);
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, false), first);
	arx_loss_advance(loss, 105, now += NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, loss->ask_rtt, 0);
	arx_loss_advance(loss, 110, now += NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, loss->ask_rtt, 2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, false), first);

	/* A part behind another one is not measured. */
	arx_loss_ask(loss, 112, 113, now);
	arx_loss_advance(loss, 113, now + NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, loss->ask_rtt, 2 * NSEC_PER_MSEC);

	/* The first expiry without it asks again; each next one takes longer */
	loss->seen_una = 113;
	arx_loss_ask(loss, 113, 120, now);
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, false),
			6 * NSEC_PER_MSEC);
	KUNIT_EXPECT_TRUE(test, arx_loss_expired(loss, 200));
	KUNIT_EXPECT_EQ(test, loss->probes, ARX_LOSS_PROBES);
	KUNIT_EXPECT_TRUE(test, loss->ask);
	KUNIT_EXPECT_FALSE(test, arx_loss_ask(loss, 113, 120, now));
	KUNIT_EXPECT_EQ(test, arx_loss_interval(loss, false),
			12 * NSEC_PER_MSEC);
	/* and which of the two has arrived is not known. */
	arx_loss_advance(loss, 120, now += NSEC_PER_MSEC / 10);
	KUNIT_EXPECT_EQ(test, loss->ask_rtt, 2 * NSEC_PER_MSEC);
	KUNIT_EXPECT_FALSE(test, arx_loss_asks(loss));
}

/* The RNR NAK itself was lost: the peer refuses the oldest packet again. */
static void both__lost_refusal(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	int i;

	p->attr.rnr_retry = 2;
	note(test, p);
	for (i = 0; i < 3; i++)
		pair_send(p, 0, IB_WR_SEND, i, IB_SEND_SIGNALED, 0, 8);
	for (i = 0; i < 3; i++)
		pair_deliver(p, pair_take(p, 0));
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN);
	pair_probe(p, 0);	/* begins to wait */
	for (i = 0; i < 4 && !qp->comp.rnr_wait; i++) {
		pair_probe(p, 0);
		pair_pump(p);
	}
	KUNIT_EXPECT_TRUE(test, qp->comp.rnr_wait);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_TIMEOUTS), 0);
}

/* Both ends. */

#define LOSSY_OPS	64

/* Deliver what is on the wire, each packet of a request with luck. */
static void lossy_pump(struct pair *p, struct rnd_state *rnd, u32 permille,
		       u32 *lost)
{
	struct wire_run *w;

	for (pair_settle(p); (w = pair_take(p, -1)); pair_settle(p)) {
		u32 i;

		if (w->run.h.op != ARX_OP_WRITE &&
		    w->run.h.op != ARX_OP_READ_RESPONSE) {
			pair_deliver(p, w);
			continue;
		}
		for (i = 0; i < w->run.npkts; i++) {
			struct arx_run run = w->run;

			arx_headers_part(&w->run.h, i, i + 1 == w->run.npkts,
					 &run.h);
			run.npkts = 1;
			run.len = min(MTU, w->run.len - i * MTU);
			if (prandom_u32_state(rnd) % 1000 < permille)
				++*lost;
			else
				pair_rx_packets(p, w->from == p->side[0].qp,
						&run, w->data + i * MTU);
		}
	}
}

/*
 * 5 % of the packets are lost: no more than @most percent of those are sent
 * again, and the retransmission timer is not needed.
 */
static void five_percent(struct kunit *test, enum ib_wr_opcode op, u32 most)
{
	struct pair *p = by_wire(test);
	struct rnd_state rnd;
	u32 posted = 0, done = 0, lost = 0, turns = 0;
	struct ib_wc wc;

	prandom_seed_state(&rnd, 5);
	prandom_bytes_state(&rnd, p->side[0].buf, BUF);
	prandom_bytes_state(&rnd, p->side[1].buf, BUF);
	while (done < LOSSY_OPS && turns++ < 10000) {
		for (; posted < LOSSY_OPS && posted - done < 4; posted++)
			pair_send(p, 0, op, posted,
				  IB_SEND_SIGNALED, posted % 8 * 65536, 65536);
		lossy_pump(p, &rnd, 50, &lost);
		while ((wc = pair_poll(&p->side[0].scq)).wr_id != NO_WC) {
			KUNIT_ASSERT_EQ(test, wc.status, IB_WC_SUCCESS);
			KUNIT_ASSERT_EQ(test, wc.wr_id, done++);
		}
		if (!p->side[0].qp->comp.loss)
			pair_timeout(p, 0);
		else
			pair_probe(p, 0);
	}
	KUNIT_EXPECT_EQ(test, done, LOSSY_OPS);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, BUF);
	KUNIT_EXPECT_GT(test, lost, LOSSY_OPS * 64 / 30);
	KUNIT_EXPECT_LE(test, count_of(p, ARX_CNT_RESENT_PKTS),
			lost * most / 100);
	KUNIT_EXPECT_LE(test, count_of(p, ARX_CNT_TIMEOUTS), 1);
	KUNIT_EXPECT_EQ(test, kept_bytes(p), 0);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->comp.kept.bytes, 0);
}

static void both__five_percent(struct kunit *test)
{
	five_percent(test, IB_WR_RDMA_WRITE, 125);
}

static void both__five_percent_of_reads(struct kunit *test)
{
	five_percent(test, IB_WR_RDMA_READ, 200);
}

static struct kunit_case loss_cases[] = {
	KUNIT_CASE(keep__order),
	KUNIT_CASE(keep__overlap),
	KUNIT_CASE(keep__cut),
	KUNIT_CASE(keep__needs_packets),
	KUNIT_CASE(keep__no_reserves),
	KUNIT_CASE(keep__bounds),
	KUNIT_CASE(keep__frees_few),
	KUNIT_CASE(keep__charges),
	KUNIT_CASE(keep__reports_overlap),
	KUNIT_CASE(responder__gap),
	KUNIT_CASE(responder__any_order),
	KUNIT_CASE(responder__keeps_together),
	KUNIT_CASE(responder__two_gaps),
	KUNIT_CASE(responder__other_runs),
	KUNIT_CASE(responder__kept_and_wrong),
	KUNIT_CASE(responder__kept_and_rnr),
	KUNIT_CASE(responder__refused_first),
	KUNIT_CASE(responder__refused_whole),
	KUNIT_CASE(responder__refused_long),
	KUNIT_CASE(responder__refused_ends),
	KUNIT_CASE(responder__hostile_gap),
	KUNIT_CASE(responder__long_gap),
	KUNIT_CASE(responder__many_covered),
	KUNIT_CASE(responder__refused_while_closing),
	KUNIT_CASE(responder__error_with_many),
	KUNIT_CASE(responder__ends_with_kept),
	KUNIT_CASE(responder__xrc_gap),
	KUNIT_CASE(responder__reports),
	KUNIT_CASE(responder__report_ends),
	KUNIT_CASE(responder__far_behind),
	KUNIT_CASE(responder__keeps_nothing),
	KUNIT_CASE(responder__share_ends_with_past),
	KUNIT_CASE(responder__closes_with_one_ack),
	KUNIT_CASE(requester__fills),
	KUNIT_CASE(requester__fills_late),
	KUNIT_CASE(requester__drops_and_fills),
	KUNIT_CASE(requester__drops_and_goes_back),
	KUNIT_CASE(requester__refused),
	KUNIT_CASE(requester__refused_is_lost),
	KUNIT_CASE(requester__refused_for_long),
	KUNIT_CASE(requester__refused_and_kept),
	KUNIT_CASE(requester__goes_back_and_skips),
	KUNIT_CASE(requester__skips_to_read),
	KUNIT_CASE(requester__drops_a_fill),
	KUNIT_CASE(requester__fills_in_vain),
	KUNIT_CASE(requester__news_for_ever),
	KUNIT_CASE(requester__bad_reports),
	KUNIT_CASE(requester__report_of_unsent),
	KUNIT_CASE(requester__report_without_memory),
	KUNIT_CASE(requester__reported_make_room),
	KUNIT_CASE(requester__fill_is_lost),
	KUNIT_CASE(requester__probes),
	KUNIT_CASE(requester__probes_small_window),
	KUNIT_CASE(requester__probes_shrink),
	KUNIT_CASE(requester__probe_is_loss),
	KUNIT_CASE(requester__hastens),
	KUNIT_CASE(requester__probes_read),
	KUNIT_CASE(requester__gap_closes),
	KUNIT_CASE(requester__forgets),
	KUNIT_CASE(responder__replays_part),
	KUNIT_CASE(responder__replays_whole),
	KUNIT_CASE(responder__replays_longer_part),
	KUNIT_CASE(responder__replays_make_room),
	KUNIT_CASE(completer__read_gap),
	KUNIT_CASE(completer__many_gaps),
	KUNIT_CASE(completer__ack_overtakes),
	KUNIT_CASE(completer__lost_request),
	KUNIT_CASE(completer__rtt_behind_gap),
	KUNIT_CASE(completer__most_gaps),
	KUNIT_CASE(completer__few_gaps),
	KUNIT_CASE(completer__gap_after_rewind),
	KUNIT_CASE(completer__kept_before),
	KUNIT_CASE(completer__wrong_end),
	KUNIT_CASE(completer__late_part),
	KUNIT_CASE(completer__long_gap),
	KUNIT_CASE(completer__asks_twice),
	KUNIT_CASE(completer__asks_twice_after_report),
	KUNIT_CASE(completer__ends_with_kept),
	KUNIT_CASE(completer__fails_before_later),
	KUNIT_CASE(completer__fails_before_kept),
	KUNIT_CASE(completer__destroyed_with_kept),
	KUNIT_CASE(loss__holes),
	KUNIT_CASE(loss__far_ahead),
	KUNIT_CASE(loss__asked_long_ago),
	KUNIT_CASE(loss__late),
	KUNIT_CASE(loss__rtt),
	KUNIT_CASE(loss__rtt_with_pause),
	KUNIT_CASE(loss__probes_end),
	KUNIT_CASE(loss__left),
	KUNIT_CASE(loss__ask_rtt),
	KUNIT_CASE(both__lost_refusal),
	KUNIT_CASE(both__five_percent),
	KUNIT_CASE(both__five_percent_of_reads),
	{}
};

static struct kunit_suite loss_suite = {
	.name = "arx_loss",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = loss_cases,
};

kunit_test_suite(loss_suite);
