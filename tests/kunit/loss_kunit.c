// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * keep.c, and what the stages do with packets behind a gap. Side 1 gets single
 * packets or runs in an order that the test chooses.
 */

#include "qp_fixture.h"

#include "keep.c"

static int loss_init(struct kunit *test)
{
	test->priv = pair_new(test);
	return 0;
}

static void loss_exit(struct kunit *test)
{
	if (test->priv)
		pair_free(test->priv);
}

static struct pair *by_wire(struct kunit *test)
{
	struct pair *p = test->priv;

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	memset(p->side[0].buf, 0x5a, BUF);
	return p;
}

static u64 count_of(struct pair *p, enum arx_counter counter)
{
	return arx_stats_sum(p->dev.stats, counter);
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

static bool keep_one(struct pair *p, struct arx_keep *keep, u32 psn, u32 npkts)
{
	struct arx_run run = {
		.h = { .op = ARX_OP_WRITE, .psn = psn & ARX_PSN_MASK },
		.npkts = npkts,
		.packets = alloc_skb(MTU, GFP_KERNEL),
	};
	bool kept = arx_keep_add(keep, &p->dev, &run);

	kfree_skb(run.packets);
	return kept;
}

/* Takes the run that is due at @psn; returns its first PSN, or 1 if none is. */
static u32 take_one(struct pair *p, struct arx_keep *keep, u32 psn)
{
	struct arx_kept *kept = arx_keep_take(keep, &p->dev,
					      psn & ARX_PSN_MASK);
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
	struct pair *p = test->priv;
	struct arx_keep keep = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(order); i++)
		KUNIT_EXPECT_TRUE(test, keep_one(p, &keep,
						 0xfffffc + 2 * order[i], 2));
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		KUNIT_EXPECT_EQ(test, 1, take_one(p, &keep,
						  0xfffffb + 2 * i));
		KUNIT_EXPECT_EQ(test, (0xfffffc + 2 * i) & ARX_PSN_MASK,
				take_one(p, &keep, 0xfffffc + 2 * i));
	}
	KUNIT_EXPECT_EQ(test, keep.bytes, 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
}

/* A run twice, one that overlaps, and some that are no longer needed. */
static void keep__overlap(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_keep keep = {};
	u32 bytes;

	keep_one(p, &keep, 10, 4);
	bytes = keep.bytes;
	KUNIT_EXPECT_TRUE(test, keep_one(p, &keep, 10, 4));
	KUNIT_EXPECT_EQ(test, keep.bytes, bytes);
	keep_one(p, &keep, 12, 4);
	keep_one(p, &keep, 20, 4);
	KUNIT_EXPECT_TRUE(test, arx_keep_is_due(&keep, 12));
	KUNIT_EXPECT_EQ(test, take_one(p, &keep, 14), 12);
	KUNIT_EXPECT_FALSE(test, arx_keep_is_due(&keep, 19));
	KUNIT_EXPECT_EQ(test, take_one(p, &keep, 24), 1);
	KUNIT_EXPECT_EQ(test, keep.bytes, 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
}

/* A payload that is valid during the call only cannot be kept. */
static void keep__needs_packets(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_keep keep = {};
	struct arx_run run = { .npkts = 1 };

	KUNIT_EXPECT_FALSE(test, arx_keep_add(&keep, &p->dev, &run));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
}

static void keep__bounds(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_keep keep = {}, other = {};
	u32 n;

	for (n = 0; keep_one(p, &keep, n, 1); n++)
		;
	KUNIT_EXPECT_LE(test, keep.bytes, ARX_KEEP_QP);
	KUNIT_EXPECT_GT(test, keep.bytes, ARX_KEEP_QP - 8 * MTU);
	KUNIT_EXPECT_TRUE(test, keep_one(p, &other, 1, 1));

	atomic_long_add(ARX_KEEP_DEV, &p->dev.kept);
	KUNIT_EXPECT_FALSE(test, keep_one(p, &other, 2, 1));
	atomic_long_sub(ARX_KEEP_DEV, &p->dev.kept);
	KUNIT_EXPECT_TRUE(test, keep_one(p, &other, 2, 1));
	arx_keep_purge(&keep, &p->dev);
	arx_keep_purge(&other, &p->dev);
	KUNIT_EXPECT_EQ(test, keep.bytes, 0);
	KUNIT_EXPECT_EQ(test, other.bytes, 0);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), 0);
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

/* A peer that only sends behind a gap: bounded, and the QP still works. */
static void responder__hostile_gap(struct kunit *test)
{
	struct pair *p = by_wire(test);
	u32 n, psn = PSN + 30000;

	for (n = 0; n < 10000; n++)
		packets(p, ARX_OP_WRITE, WHOLE, psn - 2 * n, 0, MTU);
	KUNIT_EXPECT_LE(test, kept_bytes(p), ARX_KEEP_QP);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&p->dev.kept), kept_bytes(p));
	KUNIT_EXPECT_GT(test, count_of(p, ARX_CNT_SEQUENCE_DROPPED), 0);
	KUNIT_EXPECT_EQ(test, 10000, count_of(p, ARX_CNT_SEQUENCE_DROPPED) +
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

static struct kunit_case loss_cases[] = {
	KUNIT_CASE(keep__order),
	KUNIT_CASE(keep__overlap),
	KUNIT_CASE(keep__needs_packets),
	KUNIT_CASE(keep__bounds),
	KUNIT_CASE(responder__gap),
	KUNIT_CASE(responder__any_order),
	KUNIT_CASE(responder__two_gaps),
	KUNIT_CASE(responder__other_runs),
	KUNIT_CASE(responder__kept_and_wrong),
	KUNIT_CASE(responder__kept_and_rnr),
	KUNIT_CASE(responder__hostile_gap),
	KUNIT_CASE(responder__long_gap),
	KUNIT_CASE(responder__ends_with_kept),
	KUNIT_CASE(responder__xrc_gap),
	{}
};

static struct kunit_suite loss_suite = {
	.name = "arx_loss",
	.init = loss_init,
	.exit = loss_exit,
	.test_cases = loss_cases,
};

kunit_test_suite(loss_suite);
