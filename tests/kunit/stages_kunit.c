// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * requester.c, responder.c, rdatomic.c, completer.c, sendwr.c, loopback.c:
 * whole exchanges between two QPs, and each stage against a simulated wire.
 */

#include <linux/delay.h>
#include <linux/prandom.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>

#include "ack.h"
#include "cc.h"
#include "qp_fixture.h"
#include "worker.h"

/* For an AH. */
static struct arx_av *make_av(struct pair *p)
{
	return arx_av_create(&p->dev, &p->pd.ib, &p->attr.ah_attr, 0, 0,
			     GFP_KERNEL);
}

static void fill(u8 *buf, u32 len, u32 seed)
{
	struct rnd_state rnd;

	prandom_seed_state(&rnd, seed);
	prandom_bytes_state(&rnd, buf, len);
}

/* Whole exchanges. */

struct exchange {
	enum ib_wr_opcode op;
	bool wire;
};

static const struct exchange exchanges[] = {
	{ IB_WR_SEND, false },
	{ IB_WR_SEND, true },
	{ IB_WR_SEND_WITH_IMM, false },
	{ IB_WR_SEND_WITH_IMM, true },
	{ IB_WR_RDMA_WRITE, false },
	{ IB_WR_RDMA_WRITE, true },
	{ IB_WR_RDMA_WRITE_WITH_IMM, false },
	{ IB_WR_RDMA_WRITE_WITH_IMM, true },
	{ IB_WR_RDMA_READ, false },
	{ IB_WR_RDMA_READ, true },
};

static const u32 sizes[] = { 0, 1, MTU - 1, MTU, MTU + 1, 65536, 300001 };

static const char *op_name(enum ib_wr_opcode op)
{
	switch (op) {
	case IB_WR_SEND:
		return "SEND";
	case IB_WR_SEND_WITH_IMM:
		return "SEND with immediate";
	case IB_WR_RDMA_WRITE:
		return "WRITE";
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return "WRITE with immediate";
	default:
		return "READ";
	}
}

static void exchange_name(const struct exchange *x, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "%s, %s", op_name(x->op),
		 x->wire ? "wire" : "one host");
}

KUNIT_ARRAY_PARAM(exchange, exchanges, exchange_name);

static bool takes_receive(enum ib_wr_opcode op)
{
	return op == IB_WR_SEND || op == IB_WR_SEND_WITH_IMM ||
	       op == IB_WR_RDMA_WRITE_WITH_IMM;
}

static enum ib_wc_opcode wc_opcode(enum ib_wr_opcode op)
{
	switch (op) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	default:
		return IB_WC_SEND;
	}
}

static void exchange_one(struct kunit *test, u32 id, u32 len)
{
	const struct exchange *x = test->param_value;
	bool read = x->op == IB_WR_RDMA_READ;
	struct pair *p = test->priv;
	struct side *from = &p->side[read];
	struct side *to = &p->side[!read];
	struct ib_wc wc;

	fill(from->buf, BUF, id + 1);
	memset(to->buf, 0, BUF);
	if (takes_receive(x->op))
		KUNIT_ASSERT_EQ(test, pair_recv(p, 1, id, 32, BUF - 32), 0);
	KUNIT_ASSERT_EQ(test, 0, pair_send(p, 0, x->op, id, IB_SEND_SIGNALED,
					   32, len));
	pair_pump(p);

	wc = pair_poll(&p->side[0].scq);
	KUNIT_ASSERT_EQ(test, wc.wr_id, id);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, wc_opcode(x->op));
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, &p->side[0].qp->ib);
	KUNIT_EXPECT_MEMEQ(test, to->buf + 32, from->buf + 32, len);
	/* No byte before it is changed. */
	KUNIT_EXPECT_NULL(test, memchr_inv(to->buf, 0, 32));
	KUNIT_EXPECT_NULL(test, memchr_inv(to->buf + 32 + len, 0,
					   BUF - 32 - len));

	wc = pair_poll(&p->side[1].rcq);
	if (!takes_receive(x->op)) {
		KUNIT_EXPECT_EQ(test, wc.wr_id, NO_WC);
		return;
	}
	KUNIT_ASSERT_EQ(test, wc.wr_id, id);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.byte_len, len);
	KUNIT_EXPECT_EQ(test, wc.opcode, x->op == IB_WR_RDMA_WRITE_WITH_IMM ?
			IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, !!(wc.wc_flags & IB_WC_WITH_IMM),
			x->op != IB_WR_SEND);
	if (x->op != IB_WR_SEND)
		KUNIT_EXPECT_EQ(test, be32_to_cpu(wc.ex.imm_data),
				0xabcd0000 + id);
}

/*
 * One after the other: PSNs wrap, and no state of one message affects the next.
 */
static void exchange_all(struct kunit *test)
{
	const struct exchange *x = test->param_value;
	struct pair *p = test->priv;
	u32 id;

	p->dev.port_active = !x->wire;
	for (id = 0; id < 2 * ARRAY_SIZE(sizes); id++)
		exchange_one(test, id, sizes[id % ARRAY_SIZE(sizes)]);
	KUNIT_EXPECT_EQ(test, !p->sent, !x->wire);
}

static void stages__exchange(struct kunit *test)
{
	pair_connect(test, test->priv, IB_QPT_RC);
	exchange_all(test);
}

/* The same between a requester and a responder that lack the other half. */
static void stages__halves(struct kunit *test)
{
	pair_connect_halves(test, test->priv);
	exchange_all(test);
}

/* The same by XRC. */
static void stages__xrc(struct kunit *test)
{
	struct pair *p = test->priv;

	pair_connect_xrc(test, p);
	exchange_all(test);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

static void atomics(struct kunit *test)
{
	struct pair *p = test->priv;
	u64 *result, *word;
	int wire;

	result = (u64 *)p->side[0].buf;
	word = (u64 *)(p->side[1].buf + 64);
	for (wire = 0; wire < 2; wire++) {
		p->dev.port_active = !wire;
		*word = 10;
		pair_atomic(p, 0, IB_WR_ATOMIC_CMP_AND_SWP, 1, 0, 64, 10, 20);
		pair_pump(p);
		EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, *result, 10);
		KUNIT_EXPECT_EQ(test, *word, 20);
		pair_atomic(p, 0, IB_WR_ATOMIC_CMP_AND_SWP, 2, 0, 64, 10, 30);
		pair_pump(p);
		EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, *result, 20);
		KUNIT_EXPECT_EQ(test, *word, 20);
		pair_atomic(p, 0, IB_WR_ATOMIC_FETCH_AND_ADD, 3, 0, 64, 5, 99);
		pair_pump(p);
		EXPECT_WC(test, &p->side[0].scq, 3, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, *result, 20);
		KUNIT_EXPECT_EQ(test, *word, 25);
	}
}

/* A kernel consumer has no fields for a FLUSH. */
static void stages__atomic_write(struct kunit *test)
{
	struct pair *p = test->priv;
	u64 *word = (u64 *)(p->side[1].buf + 64);
	struct ib_wc wc;
	int wire;

	pair_connect(test, p, IB_QPT_RC);
	for (wire = 0; wire < 2; wire++) {
		p->dev.port_active = !wire;
		*word = 10;
		*(u64 *)(p->side[0].buf + 64) = 0x0102030405060708 + wire;
		pair_send(p, 0, IB_WR_ATOMIC_WRITE, 1, IB_SEND_SIGNALED, 64, 8);
		pair_pump(p);
		wc = pair_poll(&p->side[0].scq);
		KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_ATOMIC_WRITE);
		KUNIT_EXPECT_EQ(test, *word, 0x0102030405060708 + wire);
		KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_RX_ATOMICS),
				1 + wire);
	}
	KUNIT_EXPECT_EQ(test, pair_send(p, 0, IB_WR_FLUSH, 2, 0, 0, 0),
			-EINVAL);
	pair_send(p, 0, IB_WR_ATOMIC_WRITE, 3, 0, 64, 4);
	EXPECT_WC(test, &p->side[0].scq, 3, IB_WC_LOC_LEN_ERR);
}

static void stages__atomics(struct kunit *test)
{
	pair_connect(test, test->priv, IB_QPT_RC);
	atomics(test);
}

static void stages__atomics_of_halves(struct kunit *test)
{
	pair_connect_halves(test, test->priv);
	atomics(test);
}

static void stages__atomics_by_xrc(struct kunit *test)
{
	struct pair *p = test->priv;

	pair_connect_xrc(test, p);
	atomics(test);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

static void stages__uc(struct kunit *test)
{
	struct pair *p = test->priv;
	int wire;

	pair_connect(test, p, IB_QPT_UC);
	for (wire = 0; wire < 2; wire++) {
		p->dev.port_active = !wire;
		fill(p->side[0].buf, BUF, wire + 1);
		memset(p->side[1].buf, 0, BUF);
		pair_recv(p, 1, 7, 0, 100000);
		pair_send(p, 0, IB_WR_SEND_WITH_IMM, 1, IB_SEND_SIGNALED, 0,
			  99999);
		EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
		pair_pump(p);
		EXPECT_WC(test, &p->side[1].rcq, 7, IB_WC_SUCCESS);
		KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 99999);

		pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 100000,
			  200000);
		pair_pump(p);
		EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);
		KUNIT_EXPECT_MEMEQ(test, p->side[1].buf + 100000,
				   p->side[0].buf + 100000, 200000);
	}
}

/* UC: a gap drops its message, whose receive serves the next message. */
static void stages__uc_gap(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_run run;
	u8 *data;

	pair_connect(test, p, IB_QPT_UC);
	data = p->side[0].buf;
	fill(data, BUF, 1);
	pair_recv(p, 1, 7, 0, 4096);
	run = pair_run(p, 1, ARX_OP_SEND, ARX_FIRST, PSN, data, MTU);
	pair_rx(p, 1, &run);
	run = pair_run(p, 1, ARX_OP_SEND, ARX_LAST, PSN + 2, data, MTU);
	pair_rx(p, 1, &run);
	EXPECT_NO_WC(test, &p->side[1].rcq);
	run = pair_run(p, 1, ARX_OP_SEND, ARX_FIRST | ARX_LAST, PSN + 9,
		       data + 5000, 10);
	pair_rx(p, 1, &run);
	EXPECT_WC(test, &p->side[1].rcq, 7, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, data + 5000, 10);
	EXPECT_SILENT(test, p, 1);
}

/*
 * UC: a message too long for its receive is dropped, and the next message gets
 * the receive.
 */
static void stages__uc_too_long(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct arx_run run;
	u8 *data;

	pair_connect(test, p, IB_QPT_UC);
	data = p->side[0].buf;
	fill(data, BUF, 1);
	pair_recv(p, 1, 7, 0, 100);
	run = pair_run(p, 1, ARX_OP_SEND, ARX_FIRST | ARX_LAST, PSN, data, 101);
	pair_rx(p, 1, &run);
	EXPECT_NO_WC(test, &s->rcq);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
	run = pair_run(p, 1, ARX_OP_SEND, ARX_FIRST | ARX_LAST, PSN + 1,
		       data + 50, 100);
	pair_rx(p, 1, &run);
	EXPECT_WC(test, &s->rcq, 7, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, s->buf, data + 50, 100);
}

/* A scatter/gather list at each end, and inline data. */
static void stages__scatter_gather(struct kunit *test)
{
	struct pair *p = test->priv;
	struct ib_sge sge[SGES];
	const struct ib_recv_wr *bad_recv;
	const struct ib_send_wr *bad;
	struct ib_recv_wr recv = {
		.wr_id = 1, .sg_list = sge, .num_sge = SGES,
	};
	struct ib_send_wr wr = {
		.wr_id = 2,
		.sg_list = sge,
		.num_sge = SGES,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED | IB_SEND_INLINE,
	};
	static const u32 in[SGES] = { 100, 0, 1, 27 };
	static const u32 out[SGES] = { 0, 1, 120, 7 };
	u32 at = 0;
	int i;

	pair_connect(test, p, IB_QPT_RC);
	fill(p->side[0].buf, BUF, 1);
	for (i = 0; i < SGES; i++)
		sge[i] = (struct ib_sge) {
			.addr = (uintptr_t)p->side[1].buf + 1000 * i,
			.length = in[i],
			.lkey = p->dma->lkey,
		};
	KUNIT_ASSERT_EQ(test, 0, arx_post_recv(&p->side[1].qp->ib, &recv,
					       &bad_recv));
	for (i = 0; i < SGES; i++) {
		sge[i] = (struct ib_sge) {
			.addr = (uintptr_t)p->side[0].buf + at,
			.length = out[i],
			.lkey = 0,	/* inline data needs no key */
		};
		at += out[i];
	}
	KUNIT_ASSERT_EQ(test, 0, arx_post_send(&p->side[0].qp->ib, &wr, &bad));
	pair_settle(p);
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);
	EXPECT_WC(test, &p->side[1].rcq, 1, IB_WC_SUCCESS);
	for (i = 0, at = 0; i < SGES; at += in[i++])
		KUNIT_EXPECT_MEMEQ(test, p->side[1].buf + 1000 * i,
				   p->side[0].buf + at, in[i]);

	sge[0].length = INLINE;
	KUNIT_EXPECT_EQ(test, -EINVAL, arx_post_send(&p->side[0].qp->ib, &wr,
						     &bad));
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr);
}

#define CHAOS_OPS	400
#define SLOT		8192

/**
 * struct chaos - a wire with all faults
 * @rnd: random numbers
 * @p: pair
 * @len: of each message
 */
struct chaos {
	struct rnd_state rnd;
	struct pair *p;
	u32 len[CHAOS_OPS];
};

static bool chance(struct chaos *c, u32 percent)
{
	return prandom_u32_state(&c->rnd) % 100 < percent;
}

/* Packets @i to @n of a run, as rx.c might have gathered them. */
static void deliver_part(struct pair *p, struct wire_run *w, u32 i, u32 n)
{
	struct arx_run run = w->run;

	run.h.psn = arx_psn_add(run.h.psn, i);
	run.npkts = n;
	if (i)
		run.h.flags &= ~ARX_FIRST;
	if (i + n < w->run.npkts) {
		run.len = n * MTU;
		run.h.flags &= ~(ARX_LAST | ARX_IMM | ARX_INV | ARX_SOLICITED |
				 ARX_ACK_REQ);
	} else {
		run.len = w->run.len - i * MTU;
	}
	pair_rx_packets(p, w->from == p->side[0].qp, &run, w->data + i * MTU);
}

static bool is_request_of_one(const struct wire_run *w)
{
	return w->run.h.op != ARX_OP_SEND && w->run.h.op != ARX_OP_WRITE &&
	       w->run.h.op != ARX_OP_READ_RESPONSE;
}

/* Cut a run into pieces, some of which are lost or duplicated. */
static void deliver_pieces(struct chaos *c, struct wire_run *w)
{
	u32 n = is_request_of_one(w) ? 1 : w->run.npkts;
	u32 i, piece;

	for (i = 0; i < n; i += piece) {
		piece = 1 + prandom_u32_state(&c->rnd) % 8;
		piece = min(piece, n - i);
		if (chance(c, 10))
			continue;
		deliver_part(c->p, w, i, piece);
		if (chance(c, 5))
			deliver_part(c->p, w, i, piece);
	}
}

/* Deliver all runs on the wire, some of them late. */
static void chaos_pump(struct chaos *c)
{
	struct pair *p = c->p;
	struct wire_run *w;

	for (pair_settle(p); (w = pair_take(p, -1)); pair_settle(p)) {
		if (chance(c, 10)) {
			p->taken = NULL;
			spin_lock_bh(&p->lock);
			list_add_tail(&w->link, &p->wire);
			spin_unlock_bh(&p->lock);
			continue;
		}
		deliver_pieces(c, w);
	}
}

/* Offset of message @i: each kind has its own part of the memory. */
static u32 chaos_at(u32 i)
{
	return i % 4 * (BUF / 4) + (i % 4 == 3 ? 8 : SLOT) * (i / 4 % 8);
}

/* Messages of each kind in turn. */
static void chaos_post(struct chaos *c, u32 i)
{
	struct pair *p = c->p;
	u32 at = chaos_at(i);

	c->len[i] = prandom_u32_state(&c->rnd) % SLOT + 1;
	switch (i % 4) {
	case 0:
		pair_recv(p, 1, i, at, SLOT);
		pair_send(p, 0, IB_WR_SEND_WITH_IMM, i, IB_SEND_SIGNALED, at,
			  c->len[i]);
		break;
	case 1:
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, IB_SEND_SIGNALED, at,
			  c->len[i]);
		break;
	case 2:
		pair_send(p, 0, IB_WR_RDMA_READ, i, IB_SEND_SIGNALED, at,
			  c->len[i]);
		break;
	case 3:
		pair_atomic(p, 0, IB_WR_ATOMIC_FETCH_AND_ADD, i, at, BUF - 8, 1,
			    0);
		break;
	}
}

static void chaos_check(struct kunit *test, struct chaos *c, u32 i)
{
	struct side *s = c->p->side;
	u32 at = chaos_at(i);

	if (i % 4 == 3)
		KUNIT_EXPECT_EQ(test, *(u64 *)(s[0].buf + at), i / 4);
	else
		KUNIT_EXPECT_MEMEQ(test, s[0].buf + at, s[1].buf + at,
				   c->len[i]);
}

/*
 * Loss, duplicates, reordering, cuts: every message arrives once, in order and
 * whole. An atomic counts its executions.
 */
static void stages__chaos(struct kunit *test)
{
	u32 posted = 0, done = 0, received = 0, idle = 0;
	struct chaos *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct pair *p = test->priv;
	u64 *word = (u64 *)(p->side[1].buf + BUF - 8);
	struct ib_wc wc;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->p = p;
	p->attr.retry_cnt = 7;
	pair_by_wire(test);
	prandom_seed_state(&c->rnd, pair_seed(test));
	fill(p->side[0].buf, BUF, 1);
	fill(p->side[1].buf, BUF, 2);
	*word = 0;
	while (done < CHAOS_OPS && idle < 20) {
		u32 before = done;

		for (; posted < CHAOS_OPS && posted - done < 6; posted++)
			chaos_post(c, posted);
		chaos_pump(c);
		for (; (wc = pair_poll(&p->side[0].scq)).wr_id != NO_WC;
		     done++) {
			KUNIT_ASSERT_EQ(test, wc.status, IB_WC_SUCCESS);
			KUNIT_ASSERT_EQ(test, wc.wr_id, done);
			chaos_check(test, c, done);
		}
		while ((wc = pair_poll(&p->side[1].rcq)).wr_id != NO_WC) {
			KUNIT_ASSERT_EQ(test, wc.wr_id, received);
			KUNIT_EXPECT_EQ(test, wc.byte_len, c->len[received]);
			KUNIT_EXPECT_EQ(test, be32_to_cpu(wc.ex.imm_data),
					0xabcd0000 + received);
			received += 4;
		}
		idle = done == before ? idle + 1 : 0;
		if (done < posted)
			pair_timeout(p, 0);
	}
	KUNIT_EXPECT_EQ(test, done, CHAOS_OPS);
	KUNIT_EXPECT_EQ(test, received, CHAOS_OPS);
	KUNIT_EXPECT_EQ(test, *word, CHAOS_OPS / 4);
}

/* The test plays side 1. */

/* A run of a response to side 0. */
static struct arx_run response(struct pair *p, enum arx_op op, u8 syndrome,
			       u32 psn, u32 len)
{
	struct arx_run run = pair_run(p, 0, op, ARX_FIRST | ARX_LAST, psn,
				      p->side[1].buf, len);

	run.h.syndrome = syndrome;
	return run;
}

static void answer(struct pair *p, enum arx_op op, u8 syndrome, u32 psn,
		   u32 len)
{
	struct arx_run run = response(p, op, syndrome, psn, len);

	pair_rx(p, 0, &run);
	pair_settle(p);
}

static void ack(struct pair *p, u8 syndrome, u32 psn)
{
	answer(p, ARX_OP_ACK, syndrome, psn, 0);
}

static void drop_wire(struct pair *p)
{
	while (pair_take(p, -1))
		;
	p->sent = 0;
}

/* The requester. */

static void requester__window(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_run ack;
	struct wire_run *w;
	u32 psns = 0, unasked = 0;
	int i;

	for (i = 0; i < 3; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, 0, 0, 300 * MTU);
	while ((w = pair_take(p, 0))) {
		KUNIT_EXPECT_EQ(test, w->run.h.psn,
				(PSN + psns) & ARX_PSN_MASK);
		psns += w->run.npkts;
		unasked += w->run.npkts;
		if (w->run.h.flags & ARX_ACK_REQ)
			unasked = 0;
		/* The window moves before it is used up. */
		KUNIT_EXPECT_LT(test, unasked, 128);
	}
	KUNIT_EXPECT_EQ(test, psns, 512);
	KUNIT_EXPECT_EQ(test, unasked, 0);

	ack = pair_run(p, 0, ARX_OP_ACK, ARX_FIRST | ARX_LAST, PSN + 99, NULL,
		       0);
	pair_rx(p, 0, &ack);
	pair_settle(p);
	for (psns = 0; (w = pair_take(p, 0)); psns += w->run.npkts)
		;
	KUNIT_EXPECT_EQ(test, psns, 100);
}

/*
 * READs take no room of SENDs and WRITEs, nor of one another, however long
 * their responses are; the PSNs that they take are free again with the
 * responses.
 */
static void requester__window_beside_reads(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct wire_run *w;
	u32 psns = 0;
	int i;

	/* A timeout does not shrink the window. */
	p->side[0].qp->cc = ARX_CC_FIXED;
	for (i = 0; i < 2; i++)
		pair_send(p, 0, IB_WR_RDMA_READ, i, 0, 0, BUF);
	KUNIT_EXPECT_EQ(test, p->sent, 2);
	for (i = 2; i < 4; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, 0, 0, 300 * MTU);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + 512);
	for (; (w = pair_take(p, 0)); psns += w->run.npkts)
		KUNIT_EXPECT_EQ(test, w->run.h.psn,
				(PSN + 1024 + psns) & ARX_PSN_MASK);
	KUNIT_EXPECT_EQ(test, psns, 512);

	/* All packets are lost. Sent again they take the same room. */
	pair_timeout(p, 0);
	for (i = 0; i < 2; i++) {
		w = EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + i * 512);
		KUNIT_ASSERT_NOT_NULL(test, w);
		pair_deliver(p, w);
	}
	for (psns = 0; (w = pair_take(p, 0)); psns += w->run.npkts)
		pair_deliver(p, w);
	KUNIT_EXPECT_EQ(test, psns, 512);
	pair_pump(p);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->comp.una,
			(PSN + 1024 + 600) & ARX_PSN_MASK);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->req.rd_psns, 1024);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->comp.rd_psns, 1024);
}

/* A receiver on this machine keeps nothing: it gets several packets again. */
static void requester__refused_on_one_machine(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_comp *comp;
	u64 runs;

	pair_connect(test, p, IB_QPT_RC);
	comp = &p->side[0].qp->comp;
	pair_send(p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED, 0, 4 * MTU);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, comp->rnr_row, 1);
	KUNIT_EXPECT_TRUE(test, comp->reports);
	runs = count_of(p, ARX_CNT_LOOPBACK_RUNS);
	pair_recv(p, 1, 100, 0, 4 * MTU);
	pair_rnr_ended(p, 0);
	pair_settle(p);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &p->side[1].rcq, 100, IB_WC_SUCCESS);
	/* the message and its acknowledgment */
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_LOOPBACK_RUNS) - runs, 2);
}

/*
 * The array of copies grows while copies are in use, in the middle of the ring.
 */
static void requester__copies(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	struct ib_wc wc;
	void *swqes;
	u32 i;

	/* Where memory is short, even a small array is of vmalloc(). */
	swqes = vzalloc(array_size(qp->swqe_mask + 1, qp->swqe_size));
	KUNIT_ASSERT_NOT_NULL(test, swqes);
	kvfree(qp->swqes);
	qp->swqes = swqes;
	for (i = 0; i < 5; i++) {
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, 0, 0, 1);
		pair_pump(p);
	}
	KUNIT_ASSERT_LT(test, qp->swqe_mask + 1, DEPTH);
	for (i = 0; i < DEPTH; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, 100 + i, IB_SEND_SIGNALED, 0,
			  i);
	KUNIT_EXPECT_EQ(test, p->sent, 2 * 5 + DEPTH);
	KUNIT_EXPECT_EQ(test, qp->swqe_mask + 1, DEPTH);

	pair_pump(p);
	for (i = 0; i < DEPTH; i++) {
		wc = pair_poll(&p->side[0].scq);
		KUNIT_EXPECT_EQ(test, wc.wr_id, 100 + i);
		KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, wc.byte_len, i);
	}
}

/*
 * More copies than atomic context can allocate: a work makes room, and the
 * requester continues. Without memory it continues with the present room, and
 * does not try again in each turn.
 */
static void requester__many_copies(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_qp *qp;
	u32 i, room;

	p->depth = 1024;
	qp = pair_by_wire(test)->side[0].qp;
	qp->full = true;
	for (i = 0; i < 400; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, i,
			  i % 50 == 49 ? IB_SEND_SIGNALED : 0, 0, 1);
	room = qp->swqe_mask + 1;
	KUNIT_EXPECT_LE(test, room * qp->swqe_size, ARX_SWQES_ATOMIC);
	KUNIT_EXPECT_EQ(test, p->sent, room);
	flush_work(&qp->grow);
	KUNIT_EXPECT_EQ(test, qp->swqe_mask + 1, room);

	qp->full = false;
	pair_requester(p, 0);
	for (i = 0; i < 8; i++) {
		flush_work(&qp->grow);
		pair_settle(p);
	}
	KUNIT_EXPECT_EQ(test, qp->swqe_mask + 1, 512);
	KUNIT_EXPECT_EQ(test, p->sent, 400);
	pair_pump(p);
	for (i = 49; i < 400; i += 50)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_SUCCESS);
	EXPECT_NO_WC(test, &p->side[0].scq);
}

/* Runs of a long message end at packet boundaries. */
static void requester__headers(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	u32 left = 100 * MTU + 1;
	struct wire_run *w;

	pair_send(p, 0, IB_WR_RDMA_WRITE_WITH_IMM, 9, IB_SEND_SOLICITED, 64,
		  left);
	while ((w = pair_take(p, 0))) {
		bool first = left == 100 * MTU + 1;
		bool last = w->run.len == left;

		KUNIT_EXPECT_EQ(test, !!(w->run.h.flags & ARX_FIRST), first);
		KUNIT_EXPECT_EQ(test, !!(w->run.h.flags & ARX_LAST), last);
		KUNIT_EXPECT_EQ(test, !!(w->run.h.flags & ARX_IMM), last);
		KUNIT_EXPECT_EQ(test, !!(w->run.h.flags & ARX_SOLICITED), last);
		KUNIT_EXPECT_EQ(test, !(w->run.len % MTU), !last);
		KUNIT_EXPECT_EQ(test, w->run.npkts,
				DIV_ROUND_UP(w->run.len, MTU));
		if (first) {
			KUNIT_EXPECT_EQ(test, w->run.h.va, IOVA + 64);
			KUNIT_EXPECT_EQ(test, w->run.h.rkey,
					p->side[1].mr.key.value);
			KUNIT_EXPECT_EQ(test, w->run.h.dma_len, left);
		}
		left -= w->run.len;
	}
	KUNIT_EXPECT_EQ(test, left, 0);
}

/* 9.2.3: a packet that completes no receive requests no event. */
static void requester__solicited(struct kunit *test)
{
	static const struct {
		enum ib_wr_opcode wr;
		enum arx_op op;
		bool asks;
	} cases[] = {
		{ IB_WR_SEND, ARX_OP_SEND, true },
		{ IB_WR_SEND_WITH_IMM, ARX_OP_SEND, true },
		{ IB_WR_RDMA_WRITE_WITH_IMM, ARX_OP_WRITE, true },
		{ IB_WR_RDMA_WRITE, ARX_OP_WRITE, false },
		{ IB_WR_RDMA_READ, ARX_OP_READ, false },
	};
	struct pair *p = pair_by_wire(test);
	struct wire_run *w;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		pair_send(p, 0, cases[i].wr, i, IB_SEND_SOLICITED, 0, 8);
		w = EXPECT_SENT(test, p, 0, cases[i].op, PSN + i);
		if (w)
			KUNIT_EXPECT_EQ(test, cases[i].asks,
					!!(w->run.h.flags & ARX_SOLICITED));
	}
}

/* 10.8.3.3: a fence waits for earlier READs. */
static void requester__fence(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	pair_send(p, 0, IB_WR_RDMA_READ, 1, 0, 0, 3 * MTU);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, 0, 0, 8);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, IB_SEND_FENCE | IB_SEND_SIGNALED,
		  0, 8);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN);
	pair_deliver(p, p->taken);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 3);
	EXPECT_SILENT(test, p, 0);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	pair_deliver(p, p->taken);
	pair_settle(p);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 4);
}

static void requester__max_rd_atomic(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	int i;

	for (i = 0; i < 4; i++)
		pair_send(p, 0, IB_WR_RDMA_READ, i, IB_SEND_SIGNALED, 0, 8);
	KUNIT_EXPECT_EQ(test, p->sent, 2);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN);
	pair_deliver(p, p->taken);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	p->sent = 0;
	pair_deliver(p, p->taken);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	pair_pump(p);
	for (i = 0; i < 4; i++)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_SUCCESS);
}

/*
 * A request for a READ tells a peer that reports which responses have arrived,
 * and so whether those that a card split have.
 */
static void requester__flight(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_trial *trial = &p->side[1].qp->resp.out.trial;
	struct wire_run *w;
	int i;

	for (i = 0; i < 3; i++)
		pair_send(p, 0, IB_WR_RDMA_READ, i, 0, 0, 100 * MTU);
	for (i = 0; i < 2; i++) {
		w = EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + i * 100);
		KUNIT_ASSERT_NOT_NULL(test, w);
		KUNIT_EXPECT_EQ(test, w->run.h.flight, 0);
		pair_deliver(p, w);
	}
	while ((w = pair_take(p, -1)) && w->run.h.op != ARX_OP_READ) {
		pair_deliver(p, w);
		pair_settle(p);
	}
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.h.psn, (PSN + 200) & ARX_PSN_MASK);
	KUNIT_EXPECT_EQ(test, w->run.h.flight, arx_flight(100));
	pair_deliver(p, w);
	arx_trial_begin(trial, PSN + 250, PSN + 250);
	pair_pump(p);

	/* In the place of the second READ, which says nothing of the third. */
	KUNIT_EXPECT_FALSE(test, trial->arrived);
	pair_send(p, 0, IB_WR_RDMA_READ, 3, 0, 0, MTU);
	w = EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + 300);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.h.flight, arx_flight(0));
	pair_deliver(p, w);
	KUNIT_EXPECT_TRUE(test, trial->arrived);
	pair_pump(p);

	/* Reserved bits of a peer that does not report mean nothing. */
	*trial = (struct arx_trial) {};
	arx_trial_begin(trial, PSN + 299, PSN + 299);
	pair_send(p, 0, IB_WR_RDMA_READ, 4, 0, 0, MTU);
	w = EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + 301);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.h.flight, arx_flight(0));
	w->run.h.flags &= ~ARX_REPORTS;
	pair_deliver(p, w);
	KUNIT_EXPECT_FALSE(test, trial->arrived);
	pair_pump(p);
}

static u32 bytes_on_wire(struct pair *p)
{
	struct wire_run *w;
	u32 bytes = 0;

	list_for_each_entry(w, &p->wire, link)
		bytes += w->run.len;
	return bytes;
}

/* A long message is sent in several turns, so that other QPs get theirs. */
static void requester__turn_ends(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	p->blocked = true;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, BUF);
	p->blocked = false;
	local_bh_disable();	/* the next turn is a softirq's */
	arx_requester_run(p->side[0].qp);
	KUNIT_EXPECT_GE(test, bytes_on_wire(p), BUF / 2);
	KUNIT_EXPECT_LT(test, bytes_on_wire(p), BUF / 2 + ARX_TX_RUN_MAX);
	local_bh_enable();
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, bytes_on_wire(p), (u32)BUF);
}

static void requester__no_reads_allowed(struct kunit *test)
{
	struct pair *p = test->priv;

	p->attr.max_rd_atomic = 0;
	pair_by_wire(test);
	pair_send(p, 0, IB_WR_RDMA_READ, 1, 0, 0, 8);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->state, IB_QPS_ERR);
}

/* 9.7.2: PSNs in flight can be ordered as long as they are half of all. */
static void requester__longest_read(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	struct arx_run run;
	u32 nxt;

	qp->mtu = 256;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 8);
	pair_send(p, 0, IB_WR_RDMA_READ, 2, 0, 0, 1U << 31);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	ack(p, ARX_ACK_UNLIMITED, PSN);
	KUNIT_EXPECT_EQ(test, p->sent, 2);
	nxt = qp->req.nxt;
	KUNIT_EXPECT_EQ(test, nxt, (PSN + 1 + (1 << 23)) & ARX_PSN_MASK);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, 0, 0, 8);
	KUNIT_EXPECT_EQ(test, p->sent, 2);

	/* Its data is in the window, from the first byte on. */
	run = pair_run(p, 0, ARX_OP_READ_RESPONSE, ARX_FIRST, PSN + 1,
		       p->side[1].buf, 256);
	pair_rx(p, 0, &run);
	nxt = qp->comp.una;
	KUNIT_EXPECT_EQ(test, nxt, (PSN + 2) & ARX_PSN_MASK);
}

static void requester__selective_signalling(struct kunit *test)
{
	struct pair *p = test->priv;
	int i;

	pair_connect(test, p, IB_QPT_RC);
	for (i = 0; i < 3 * DEPTH; i++)
		KUNIT_ASSERT_EQ(test, 0,
				pair_send(p, 0, IB_WR_RDMA_WRITE, i,
					  i % 8 == 7 ? IB_SEND_SIGNALED : 0,
					  0, 8));
	for (i = 7; i < 3 * DEPTH; i += 8)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_SUCCESS);
	EXPECT_NO_WC(test, &p->side[0].scq);
}

/*
 * A bad lkey: requests posted before complete before, later ones are flushed.
 */
static void requester__local_error_in_order(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	p->dma->lkey ^= 0x100;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, 0, 0, 8);
	p->dma->lkey ^= 0x100;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, 0, 0, 8);
	EXPECT_NO_WC(test, &s->scq);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, p->sent, 1);

	pair_pump(p);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &s->scq, 2, IB_WC_LOC_PROT_ERR);
	EXPECT_WC(test, &s->scq, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
}

/* Also if requests before it must be sent again. */
static void requester__local_error_after_loss(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];

	p->lost = true;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	p->lost = false;
	p->dma->lkey ^= 0x100;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, 0, 0, 8);
	p->dma->lkey ^= 0x100;
	pair_timeout(p, 0);
	EXPECT_NO_WC(test, &s->scq);
	pair_pump(p);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &s->scq, 2, IB_WC_LOC_PROT_ERR);
}

/* On another CPU: the acknowledgment. Then the memory goes. */
static void acked_and_gone(struct pair *p, struct arx_qp *qp)
{
	struct arx_run run = pair_run(p, 0, ARX_OP_ACK, ARX_FIRST | ARX_LAST,
				      PSN, NULL, 0);

	p->on_send = NULL;
	p->unreadable = true;
	run.h.syndrome = ARX_ACK_UNLIMITED;
	arx_completer_rx(qp, &run);
}

/* A request completes while it is sent again: that it fails matters no more. */
static void requester__complete_before_failure(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	pair_deliver(p, EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN));
	while (pair_take(p, 1))
		;
	p->on_send = acked_and_gone;
	pair_timeout(p, 0);
	KUNIT_EXPECT_FALSE(test, p->unreadable);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, s->qp->req.failed);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 8, 8);
	pair_pump(p);
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
}

struct hostile {
	const char *name;
	void (*set)(struct arx_send_wqe *wqe, struct arx_sge *sge);
	enum ib_wc_status status;
};

#define HOSTILE(name, statement)					\
static void hostile_##name(struct arx_send_wqe *wqe, struct arx_sge *sge)\
{									\
	statement;							\
}

HOSTILE(opcode, wqe->opcode = 200)
HOSTILE(reg_mr, wqe->opcode = 0xf0)
HOSTILE(ud_only, wqe->opcode = IB_WR_LSO)
HOSTILE(sges, wqe->num_sge = 255)
HOSTILE(length, sge->length = 0x80000001)
HOSTILE(inlined, ({ wqe->flags |= IB_SEND_INLINE; wqe->inline_len = 4096; }))
HOSTILE(inline_read, ({ wqe->opcode = IB_WR_RDMA_READ;
			wqe->flags |= IB_SEND_INLINE;
			wqe->num_sge = 0; }))
HOSTILE(atomic, ({ wqe->opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
		   sge->length = 16; }))
HOSTILE(atomic_write, ({ wqe->opcode = IB_WR_ATOMIC_WRITE;
			 sge->length = 16; }))
HOSTILE(flush, ({ wqe->opcode = IB_WR_FLUSH;
		  wqe->flush.placement = IB_FLUSH_GLOBAL; }))
HOSTILE(flush_nothing, ({ wqe->opcode = IB_WR_FLUSH; wqe->num_sge = 0; }))
HOSTILE(flush_unknown, ({ wqe->opcode = IB_WR_FLUSH; wqe->num_sge = 0;
			  wqe->flush.placement = 4; }))
HOSTILE(flush_where, ({ wqe->opcode = IB_WR_FLUSH; wqe->num_sge = 0;
			wqe->flush.placement = IB_FLUSH_GLOBAL;
			wqe->flush.selectivity = 2; }))
HOSTILE(flush_2g, ({ wqe->opcode = IB_WR_FLUSH; wqe->num_sge = 0;
		     wqe->flush.placement = IB_FLUSH_GLOBAL;
		     wqe->flush.length = 0x80000001; }))
HOSTILE(lkey, sge->lkey = ~sge->lkey)
HOSTILE(invalidate, wqe->opcode = IB_WR_LOCAL_INV)

static const struct hostile hostiles[] = {
	{ "no such opcode", hostile_opcode, IB_WC_LOC_QP_OP_ERR },
	{ "REG_MR", hostile_reg_mr, IB_WC_LOC_QP_OP_ERR },
	{ "unknown opcode", hostile_ud_only, IB_WC_LOC_QP_OP_ERR },
	{ "too many SGEs", hostile_sges, IB_WC_LOC_QP_OP_ERR },
	{ "too long", hostile_length, IB_WC_LOC_LEN_ERR },
	{ "inline too long", hostile_inlined, IB_WC_LOC_QP_OP_ERR },
	{ "inline READ", hostile_inline_read, IB_WC_LOC_QP_OP_ERR },
	{ "atomic of 16 bytes", hostile_atomic, IB_WC_LOC_LEN_ERR },
	{ "ATOMIC WRITE of 16 bytes", hostile_atomic_write, IB_WC_LOC_LEN_ERR },
	{ "FLUSH with payload", hostile_flush, IB_WC_LOC_LEN_ERR },
	{ "FLUSH for nothing", hostile_flush_nothing, IB_WC_LOC_QP_OP_ERR },
	{ "FLUSH, no such type", hostile_flush_unknown, IB_WC_LOC_QP_OP_ERR },
	{ "FLUSH, no such level", hostile_flush_where, IB_WC_LOC_QP_OP_ERR },
	{ "FLUSH over 2 GiB", hostile_flush_2g, IB_WC_LOC_LEN_ERR },
	{ "no such lkey", hostile_lkey, IB_WC_LOC_PROT_ERR },
	{ "invalidation of no key", hostile_invalidate, IB_WC_MW_BIND_ERR },
};

static void hostile_name(const struct hostile *h, char *name)
{
	strscpy(name, h->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(hostile, hostiles, hostile_name);

/* WQEs that an application writes into its ring. */
static void requester__hostile_wqe(struct kunit *test)
{
	const struct hostile *h = test->param_value;
	struct pair *p = test->priv;
	struct arx_send_wqe *wqe;
	struct arx_sge *sge;
	struct arx_qp *qp;

	pair_connect(test, p, IB_QPT_RC);
	qp = p->side[0].qp;
	qp->ib.uobject = (void *)p;	/* only its existence matters */
	wqe = arx_ring_entry(&qp->sq, 0);
	sge = (struct arx_sge *)(wqe + 1);
	wqe->wr_id = 5;
	wqe->num_sge = 1;
	wqe->opcode = IB_WR_RDMA_WRITE;
	wqe->rdma.remote_addr = IOVA;
	wqe->rdma.rkey = p->side[1].mr.key.value;
	sge->addr = (uintptr_t)p->side[0].buf;
	sge->length = 8;
	sge->lkey = p->dma->lkey;
	h->set(wqe, sge);
	arx_ring_produce(&qp->sq, 1);
	pair_requester(p, 0);
	EXPECT_WC(test, &p->side[0].scq, 5, h->status);
	EXPECT_NO_WC(test, &p->side[0].scq);
	KUNIT_EXPECT_EQ(test, qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->resp.epsn, PSN);
}

static void requester__hostile_prod(struct kunit *test)
{
	static const u32 prods[] = { DEPTH + 1, U32_MAX, 0x80000000 };
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	int i;

	pair_make_qp(test, p, 0, IB_QPT_RC);
	s->qp->ib.uobject = (void *)p;	/* only its existence matters */
	p->attr.dest_qp_num = ABSENT_QPN;
	for (i = 0; i < ARRAY_SIZE(prods); i++) {
		pair_bring(test, p, 0, IB_QPS_RTS);
		arx_ring_produce(&s->qp->sq, s->qp->req.fetched + prods[i]);
		pair_requester(p, 0);
		KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
		KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_QP_FATAL], i + 1);
		EXPECT_NO_WC(test, &s->scq);
		KUNIT_EXPECT_EQ(test, p->sent, 0);
	}
}

static void requester__blocked(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	int i;

	p->blocked = true;
	for (i = 0; i < 3; i++)
		pair_send(p, 0, i == 1 ? IB_WR_RDMA_READ : IB_WR_RDMA_WRITE, i,
			  IB_SEND_SIGNALED, 0, 5 * MTU);
	KUNIT_EXPECT_EQ(test, p->sent, 0);
	p->blocked = false;
	pair_requester(p, 0);
	pair_pump(p);
	for (i = 0; i < 3; i++)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_SUCCESS);
}

/*
 * Runs that this machine drops are sent again from there on, without a timeout.
 */
static void requester__dropped(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_req *req = &p->side[0].qp->req;
	u32 first = ARX_TX_RUN_MAX / MTU;
	int i;

	p->drops = true;
	p->room = 2;
	fill(p->side[0].buf, BUF, 1);
	/* Three runs, the last of which is dropped. */
	pair_send(p, 0, IB_WR_RDMA_WRITE, 0, IB_SEND_SIGNALED, 0,
		  (2 * first + 7) * MTU);
	KUNIT_EXPECT_EQ(test, req->psn,
			(PSN + 2 * first) & ARX_PSN_MASK);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + first);
	EXPECT_SILENT(test, p, 0);
	/* A READ that is dropped, too, does not count as outstanding. */
	for (i = 1; i < 3; i++)
		pair_send(p, 0, IB_WR_RDMA_READ, i, IB_SEND_SIGNALED,
			  BUF / 2, 2 * MTU);
	KUNIT_EXPECT_EQ(test, req->rd_sent, 0);
	EXPECT_SILENT(test, p, 0);

	/* Then the last run leaves, then the first READ, then the second. */
	p->room = 2;
	pair_requester(p, 0);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 2 * first);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + 2 * first + 7);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, req->rd_sent, 1);
	p->drops = false;
	pair_requester(p, 0);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + 2 * first + 9);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, req->rd_sent, 2);
}

/* The same, and all messages arrive as sent, whatever the machine drops. */
static void requester__drops_all_arrive(struct kunit *test)
{
	static const enum ib_wr_opcode ops[] = {
		IB_WR_RDMA_WRITE, IB_WR_RDMA_READ, IB_WR_SEND, IB_WR_RDMA_READ,
	};
	struct pair *p = pair_by_wire(test);
	struct side *s = p->side;
	struct rnd_state rnd;
	int i, turns = 0;

	prandom_seed_state(&rnd, pair_seed(test));
	s[0].qp->attr.retry_cnt = 0;
	fill(s[0].buf, BUF / 2, 1);
	fill(s[1].buf + BUF / 2, BUF / 2, 2);
	pair_recv(p, 1, 100, BUF / 4, 100 * MTU);
	p->drops = true;
	p->room = 0;
	pair_send(p, 0, ops[0], 0, IB_SEND_SIGNALED, 0, 100 * MTU);
	pair_send(p, 0, ops[1], 1, IB_SEND_SIGNALED, BUF / 2, 90 * MTU);
	pair_send(p, 0, ops[2], 2, IB_SEND_SIGNALED, BUF / 4, 80 * MTU);
	pair_send(p, 0, ops[3], 3, IB_SEND_SIGNALED, BUF / 4 * 3, 70 * MTU);
	while (s[0].qp->comp.done != 4 && turns++ < 1000) {
		p->room = prandom_u32_state(&rnd) % 3;
		for (i = 0; i < 2; i++)
			arx_qp_schedule(s[i].qp);
		pair_pump(p);
	}
	for (i = 0; i < 4; i++)
		EXPECT_WC(test, &s[0].scq, i, IB_WC_SUCCESS);
	EXPECT_WC(test, &s[1].rcq, 100, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, memcmp(s[0].buf, s[1].buf, 100 * MTU));
	KUNIT_EXPECT_EQ(test, 0, memcmp(s[0].buf + BUF / 4, s[1].buf + BUF / 4,
					80 * MTU));
	KUNIT_EXPECT_EQ(test, 0, memcmp(s[0].buf + BUF / 2, s[1].buf + BUF / 2,
					90 * MTU));
	KUNIT_EXPECT_EQ(test, 0, memcmp(s[0].buf + BUF / 4 * 3,
					s[1].buf + BUF / 4 * 3, 70 * MTU));
	/* No peer missed a packet or asked for one. */
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_REWINDS), 0);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_DUPLICATE_REQUEST), 0);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_OUT_OF_SEQUENCE), 0);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_IMPLIED_NAK), 0);
}

static void fail_at_second(struct pair *p, struct arx_qp *qp)
{
	if (p->sent == 1)
		arx_qp_error(qp, IB_EVENT_QP_FATAL);
}

/* The QP fails in the turn whose packets are dropped: nothing is sent again. */
static void requester__dropped_and_failed(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	int i;

	p->drops = true;
	p->on_send = fail_at_second;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 0, IB_SEND_SIGNALED, 0, 100 * MTU);
	p->on_send = NULL;
	p->drops = false;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	for (i = 0; i < 2; i++)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_WR_FLUSH_ERR);
	EXPECT_NO_WC(test, &p->side[0].scq);
	EXPECT_SILENT(test, p, 0);
}

/*
 * UC loses dropped packets and completes its sends, but sends no more into the
 * full queue.
 */
static void requester__dropped_uc(struct kunit *test)
{
	struct pair *p = test->priv;
	int i;

	pair_connect(test, p, IB_QPT_UC);
	p->dev.port_active = false;
	p->drops = true;
	for (i = 0; i < 2; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, IB_SEND_SIGNALED, 0, 8);
	for (i = 0; i < 2; i++)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_SUCCESS);
	EXPECT_SILENT(test, p, 0);
	p->drops = false;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 2);
}

/* A run made for a peer on this machine that is then destroyed. */
static void requester__peer_goes_meanwhile(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	struct arx_run run = pair_run(p, 1, ARX_OP_WRITE, ARX_FIRST, PSN,
				      p->side[0].buf,
				      ARX_LOOPBACK_RUN_MAX);
	struct arx_qp *peer;
	int err;

	local_bh_disable();
	rcu_read_lock();
	err = arx_send_run(qp, rcu_dereference(qp->av), &run, &qp->req.out,
			   &peer);
	rcu_read_unlock();
	local_bh_enable();
	KUNIT_EXPECT_LT(test, err, 0);
	KUNIT_EXPECT_NE(test, err, -EAGAIN);
	KUNIT_EXPECT_NE(test, err, -EFAULT);
	KUNIT_EXPECT_EQ(test, p->sent, 0);
}

/* Like another CPU that posts and finds the lock taken. */
static void post_another(struct pair *p, struct arx_qp *qp)
{
	struct arx_send_wqe *wqe = arx_ring_entry(&qp->sq, qp->sq_prod);

	if (p->sent >= 5000)
		return;
	*wqe = (struct arx_send_wqe) { .opcode = IB_WR_SEND };
	arx_ring_produce(&qp->sq, ++qp->sq_prod);
	set_bit(0, &qp->req.pending);
}

/* The caller that works for all others is released. */
static void requester__turns_end(struct kunit *test)
{
	struct pair *p = test->priv;
	u32 sent;
	int i;

	pair_connect(test, p, IB_QPT_UC);
	p->dev.port_active = false;
	p->on_send = post_another;
	local_bh_disable();
	post_another(p, p->side[0].qp);
	arx_requester_run(p->side[0].qp);
	sent = p->sent;
	local_bh_enable();
	KUNIT_EXPECT_LT(test, sent, 2000);
	/* Later turns do the rest. */
	for (i = 0; i < 100 && p->sent < 5000; i++)
		pair_settle(p);
	KUNIT_EXPECT_GE(test, p->sent, 5000);
}

/*
 * Post on the wire, in advance, the requests that a call on one machine may
 * execute at once.
 */
static void post_for_one_machine(struct kunit *test, struct pair *p,
				 enum ib_wr_opcode op)
{
	int i;

	p->blocked = true;
	for (i = 0; i < DEPTH; i++)
		pair_send(p, 0, op, i, IB_SEND_SIGNALED, 0, BUF);
	p->blocked = false;
	p->dev.port_active = true;
}

/*
 * The peer on one machine acknowledges or responds at once. Bottom halves are
 * on again after a share of the work in any case.
 */
static void one_share(struct kunit *test, enum ib_wr_opcode op)
{
	struct pair *p = test->priv;
	struct arx_qp *qp;
	u32 una, bytes;
	int i;

	p->attr.max_rd_atomic = 1;
	pair_by_wire(test);
	qp = p->side[0].qp;
	post_for_one_machine(test, p, op);
	for (i = 0; i < 4; i++) {
		una = qp->comp.una;
		KUNIT_EXPECT_TRUE(test, arx_requester_kick(qp));
		bytes = ((qp->comp.una - una) & ARX_PSN_MASK) * MTU;
		KUNIT_EXPECT_GT(test, bytes, 0);
		KUNIT_EXPECT_LE(test, bytes,
				ARX_SHARE_BYTES + ARX_LOOPBACK_RUN_MAX);
	}
	arx_qp_go_on(qp);
	pair_settle(p);
	for (i = 0; i < DEPTH; i++)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_SUCCESS);
}

static void requester__one_share_of_writes(struct kunit *test)
{
	one_share(test, IB_WR_RDMA_WRITE);
}

static void requester__one_share_of_reads(struct kunit *test)
{
	one_share(test, IB_WR_RDMA_READ);
}

/* A softirq is charged to nobody: it copies as much as there is credit for. */
static void requester__softirq_copies_little(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	u32 psn, bytes, more;
	int i;

	post_for_one_machine(test, p, IB_WR_RDMA_WRITE);
	local_bh_disable();
	qp->req.local = true;
	qp->req.credit = 16 * 1024;
	psn = qp->req.psn;
	arx_requester_run(qp);
	bytes = ((qp->req.psn - psn) & ARX_PSN_MASK) * MTU;
	/* There is no credit left, however often softirqs run. */
	psn = qp->req.psn;
	for (i = 0; i < 16; i++)
		arx_requester_run(qp);
	more = (qp->req.psn - psn) & ARX_PSN_MASK;
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, bytes, 32 * 1024);
	KUNIT_EXPECT_EQ(test, more, 0);
	pair_settle(p);
	/* copied by the requester before */
	KUNIT_EXPECT_GT(test, qp->req.credit, 0);
	EXPECT_WC(test, &p->side[0].scq, 0, IB_WC_SUCCESS);
}

/*
 * Where a failed QP of one machine goes on: with the thread of its process, if
 * there is one, else after a time.
 */
static void requester__failed_is_charged(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;

	pair_make_worker(test, qp);
	local_bh_disable();
	arx_qp_error(qp, ARX_NO_EVENT);
	arx_requester_run(qp);
	cancel_work(&qp->work);
	qp->req.local = true;
	/* A QP that is on the list does not wake the thread. */
	list_add(&qp->late_link, &qp->worker->qps);
	qp->worker->task = (void *)p;
	arx_qp_go_on(qp);
	KUNIT_EXPECT_FALSE(test, work_pending(&qp->work));
	KUNIT_EXPECT_FALSE(test, hrtimer_is_queued(&qp->retry));

	list_del_init(&qp->late_link);
	qp->worker->killed = true;
	arx_qp_go_on(qp);
	KUNIT_EXPECT_FALSE(test, work_pending(&qp->work));
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&qp->retry));
	local_bh_enable();
}

/* A softirq copies no more for the READs of a QP that has failed meanwhile. */
static void requester__failed_reads_little(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	struct arx_resp *resp = &p->side[1].qp->resp;
	struct arx_reply *reply;
	u32 sent;

	post_for_one_machine(test, p, IB_WR_RDMA_READ);
	KUNIT_EXPECT_TRUE(test, arx_requester_kick(qp));
	local_bh_disable();
	reply = list_first_entry_or_null(&resp->due, struct arx_reply, link);
	KUNIT_EXPECT_NOT_NULL(test, reply);
	sent = reply ? reply->sent : 0;
	arx_qp_error(qp, ARX_NO_EVENT);
	arx_requester_run(qp);
	sent = (reply ? reply->sent : 0) - sent;
	local_bh_enable();
	KUNIT_EXPECT_GT(test, sent, 0);
	KUNIT_EXPECT_LE(test, sent * MTU, ARX_POLL_BYTES);
}

static struct arx_mr *fast_mr(struct kunit *test, struct pair *p, int side)
{
	struct ib_mr *ib = arx_alloc_mr(&p->pd.ib, IB_MR_TYPE_MEM_REG, 4);
	struct scatterlist sg;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ib);
	ib->page_size = SZ_4K;
	sg_init_one(&sg, p->side[side].buf, SZ_4K);
	sg_dma_address(&sg) = (uintptr_t)p->side[side].buf;
	sg_dma_len(&sg) = SZ_4K;
	KUNIT_ASSERT_EQ(test, arx_map_mr_sg(ib, &sg, 1, NULL), 1);
	return to_arx_mr(ib);
}

/* Post without a kick; of @every WQEs, one needs a packet. */
static void post_invalidations(struct pair *p, struct arx_qp *qp, u32 n,
			       u32 every, u32 rkey)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct arx_send_wqe *wqe = arx_ring_entry(&qp->sq,
							  qp->sq_prod + i);

		*wqe = (struct arx_send_wqe) {
			.opcode = i % every ? IB_WR_LOCAL_INV : IB_WR_SEND,
			.ex = i % every ? rkey : 0,
		};
	}
	qp->sq_prod += n;
	arx_ring_produce(&qp->sq, qp->sq_prod);
}

/*
 * If many messages are between them, WQEs that need no packet may be left to a
 * softirq. If not, the process goes on.
 */
static void requester__few_messages_are_charged(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_qp *qp;
	struct arx_mr *mr;

	p->depth = 128;
	pair_connect(test, p, IB_QPT_UC);
	p->dev.port_active = false;
	qp = p->side[0].qp;
	mr = fast_mr(test, p, 0);
	post_invalidations(p, qp, 128, 8, mr->ib.rkey);
	KUNIT_EXPECT_TRUE(test, arx_requester_kick(qp));
	arx_qp_go_on(qp);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, p->sent, 128 / 8);

	post_invalidations(p, qp, 128, 2, mr->ib.rkey);
	KUNIT_EXPECT_FALSE(test, arx_requester_kick(qp));
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, p->sent, 128 / 8 + 128 / 2);
	arx_dereg_mr(&mr->ib, NULL);
}

/* A received packet causes 64 KiB; the rest follows when NAPI is done. */
static void requester__little_for_an_ack(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_run ack = pair_run(p, 0, ARX_OP_ACK, ARX_FIRST | ARX_LAST,
				      PSN + 511, NULL, 0);

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, BUF);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, 0, 0, BUF);
	drop_wire(p);	/* a window of packets */
	local_bh_disable();
	pair_rx(p, 0, &ack);
	KUNIT_EXPECT_EQ(test, bytes_on_wire(p), 64U * 1024);
	local_bh_enable();
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, bytes_on_wire(p), (u32)BUF);
}

/* The same for the responses to a READ. */
static void responder__little_for_a_read(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_run read = pair_run(p, 1, ARX_OP_READ, ARX_FIRST | ARX_LAST,
				       PSN, NULL, 0);

	read.h.dma_len = BUF;
	local_bh_disable();
	pair_rx(p, 1, &read);
	KUNIT_EXPECT_EQ(test, bytes_on_wire(p), 64U * 1024);
	local_bh_enable();
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, bytes_on_wire(p), (u32)BUF);
}

static void end_rnr_wait(struct arx_qp *qp)
{
	qp->comp.rnr_wait = false;
	qp->comp.rewinds++;
}

/*
 * The end of an RNR wait is progress, although one count falls while another
 * rises.
 */
static void requester__rnr_ended_is_progress(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;

	qp->comp.rnr_wait = true;
	KUNIT_EXPECT_TRUE(test, pair_progresses(qp, end_rnr_wait));
}

/* Local work. */

static int reg_mr(struct pair *p, int side, u64 id, struct arx_mr *mr)
{
	const struct ib_send_wr *bad;
	struct ib_reg_wr wr = {
		.wr = {
			.wr_id = id,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = &mr->ib,
		.key = mr->ib.rkey,
		.access = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE,
	};

	return arx_post_send(&p->side[side].qp->ib, &wr.wr, &bad);
}

static int invalidate(struct pair *p, int side, u64 id, enum ib_wr_opcode op,
		      u32 key)
{
	const struct ib_send_wr *bad;
	struct ib_send_wr wr = {
		.wr_id = id,
		.opcode = op,
		.send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = key,
	};

	return arx_post_send(&p->side[side].qp->ib, &wr, &bad);
}

static void local__reg_and_invalidate(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct arx_mr *mr;

	pair_connect(test, p, IB_QPT_RC);
	mr = fast_mr(test, p, 1);
	KUNIT_EXPECT_EQ(test, reg_mr(p, 1, 1, mr), 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, mr->key.state, ARX_KEY_VALID);
	KUNIT_EXPECT_EQ(test, 0, invalidate(p, 1, 2, IB_WR_LOCAL_INV,
					    mr->ib.rkey));
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, mr->key.state, ARX_KEY_FREE);

	/* The peer may invalidate it as well, but only once. */
	KUNIT_EXPECT_EQ(test, reg_mr(p, 1, 3, mr), 0);
	EXPECT_WC(test, &s->scq, 3, IB_WC_SUCCESS);
	pair_recv(p, 1, 10, 0, 8);
	KUNIT_EXPECT_EQ(test, 0, invalidate(p, 0, 4, IB_WR_SEND_WITH_INV,
					    mr->ib.rkey));
	EXPECT_WC(test, &p->side[0].scq, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, mr->key.state, ARX_KEY_FREE);
	KUNIT_EXPECT_EQ(test, pair_poll(&s->rcq).ex.invalidate_rkey,
			mr->ib.rkey);

	/* A region that cannot be invalidated: 10.6.5.2 */
	pair_recv(p, 1, 11, 0, 8);
	KUNIT_EXPECT_EQ(test, 0, invalidate(p, 0, 5, IB_WR_SEND_WITH_INV,
					    s->mr.key.value));
	pair_settle(p);
	EXPECT_WC(test, &p->side[0].scq, 5, IB_WC_REM_ACCESS_ERR);
	EXPECT_WC(test, &s->rcq, 11, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, s->mr.key.state, ARX_KEY_VALID);
	arx_dereg_mr(&mr->ib, NULL);
}

/* A peer's request uses the region on another CPU: no CPU spins for that. */
static void local__invalidate_in_use(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct arx_mr *mr;

	pair_connect(test, p, IB_QPT_RC);
	mr = fast_mr(test, p, 1);
	KUNIT_EXPECT_EQ(test, reg_mr(p, 1, 1, mr), 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);

	atomic_inc(&mr->key.users);
	KUNIT_EXPECT_EQ(test, 0, invalidate(p, 1, 2, IB_WR_LOCAL_INV,
					    mr->ib.rkey));
	EXPECT_NO_WC(test, &s->scq);
	KUNIT_EXPECT_EQ(test, mr->key.state, ARX_KEY_FREE);
	atomic_dec(&mr->key.users);
	pair_settle(p);
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	arx_dereg_mr(&mr->ib, NULL);
}

/* The same by the peer: its message is accepted once the region is free. */
static void local__peer_invalidates_in_use(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct arx_mr *mr;

	pair_connect(test, p, IB_QPT_RC);
	mr = fast_mr(test, p, 1);
	KUNIT_EXPECT_EQ(test, reg_mr(p, 1, 1, mr), 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);

	pair_recv(p, 1, 10, 0, 8);
	atomic_inc(&mr->key.users);
	KUNIT_EXPECT_EQ(test, 0, invalidate(p, 0, 4, IB_WR_SEND_WITH_INV,
					    mr->ib.rkey));
	pair_settle(p);
	EXPECT_NO_WC(test, &p->side[0].scq);
	EXPECT_NO_WC(test, &s->rcq);
	KUNIT_EXPECT_TRUE(test, p->side[0].qp->comp.rnr_wait);
	atomic_dec(&mr->key.users);
	pair_rnr_ended(p, 0);
	EXPECT_WC(test, &p->side[0].scq, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, pair_poll(&s->rcq).ex.invalidate_rkey,
			mr->ib.rkey);
	arx_dereg_mr(&mr->ib, NULL);
}

static struct arx_mr *being_read;
static int readers;

static void count_readers(struct pair *p, struct arx_qp *qp)
{
	readers += atomic_read(&being_read->key.users);
}

/*
 * While a READ is answered, its region cannot be invalidated. It can be
 * afterwards, so packets must not refer to it.
 */
static void local__read_holds_region(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct wire_run *w;
	struct arx_run run;

	being_read = fast_mr(test, p, 1);
	KUNIT_EXPECT_EQ(test, reg_mr(p, 1, 1, being_read), 0);
	EXPECT_WC(test, &p->side[1].scq, 1, IB_WC_SUCCESS);
	being_read->key.access |= IB_ACCESS_REMOTE_READ;
	run = pair_run(p, 1, ARX_OP_READ, ARX_FIRST | ARX_LAST, PSN,
		       NULL, 0);
	run.h.rkey = being_read->key.value;
	run.h.va = being_read->key.iova;
	run.h.dma_len = 8;
	readers = 0;
	p->on_send = count_readers;
	pair_rx(p, 1, &run);
	p->on_send = NULL;
	w = EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	if (w)
		KUNIT_EXPECT_FALSE(test, w->run.payload_stable);
	KUNIT_EXPECT_EQ(test, readers, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&being_read->key.users), 0);
	arx_dereg_mr(&being_read->ib, NULL);
}

/* A request whose payload is in memory of @mr. */
static int send_from(struct pair *p, int side, u64 id, enum ib_wr_opcode op,
		     struct arx_mr *mr, u32 key)
{
	const struct ib_send_wr *bad;
	struct ib_sge sge = {
		.addr = mr->key.iova,
		.length = 8,
		.lkey = mr->key.value,
	};
	struct ib_send_wr wr = {
		.wr_id = id,
		.opcode = op,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.ex.invalidate_rkey = key,
	};

	return arx_post_send(&p->side[side].qp->ib, &wr, &bad);
}

/* A request of this machine holds the memory while it makes packets of it. */
static void local__send_holds_region(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	being_read = fast_mr(test, p, 0);
	KUNIT_EXPECT_EQ(test, reg_mr(p, 0, 1, being_read), 0);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	readers = 0;
	p->on_send = count_readers;
	KUNIT_EXPECT_EQ(test, 0, send_from(p, 0, 2, IB_WR_SEND, being_read, 0));
	p->on_send = NULL;
	EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN);
	KUNIT_EXPECT_EQ(test, readers, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&being_read->key.users), 0);
	arx_dereg_mr(&being_read->ib, NULL);
}

/*
 * A message that asks the peer to invalidate the memory that it came from: the
 * payload is placed by then and holds nothing.
 */
static void local__invalidates_its_source(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	struct arx_mr *mr;

	pair_connect(test, p, IB_QPT_RC);
	mr = fast_mr(test, p, 0);
	KUNIT_EXPECT_EQ(test, reg_mr(p, 0, 1, mr), 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	pair_recv(p, 1, 10, 64, 8);
	KUNIT_EXPECT_EQ(test, 0, send_from(p, 0, 2, IB_WR_SEND_WITH_INV, mr,
					   mr->key.value));
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	EXPECT_WC(test, &p->side[1].rcq, 10, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, mr->key.state, ARX_KEY_FREE);
	KUNIT_EXPECT_EQ(test, atomic_read(&mr->key.users), 0);
	arx_dereg_mr(&mr->ib, NULL);
}

static void local__reg_refused(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_mr *mr;

	pair_connect(test, p, IB_QPT_RC);
	mr = fast_mr(test, p, 1);
	reg_mr(p, 1, 1, mr);
	EXPECT_WC(test, &p->side[1].scq, 1, IB_WC_SUCCESS);
	reg_mr(p, 1, 2, mr);
	pair_settle(p);
	EXPECT_WC(test, &p->side[1].scq, 2, IB_WC_MW_BIND_ERR);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_ERR);
	arx_dereg_mr(&mr->ib, NULL);
}

/*
 * Local work goes on behind a request that the peer does not acknowledge, but
 * only so far that one acknowledgment does not complete too much at a time.
 */
static void local__bounded(struct kunit *test)
{
	struct pair *p = test->priv;
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV };
	const struct ib_send_wr *bad;
	struct arx_mr *mr;
	struct arx_qp *qp;
	u32 i;

	p->depth = 4096;
	qp = pair_by_wire(test)->side[0].qp;
	mr = fast_mr(test, p, 0);
	wr.ex.invalidate_rkey = mr->key.value;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	for (i = 0; i < 2 * ARX_SWQES_MAX; i++)
		KUNIT_ASSERT_EQ(test, 0, arx_post_send(&qp->ib, &wr, &bad));
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	for (i = 0; i < 16; i++) {
		flush_work(&qp->grow);
		pair_settle(p);
	}
	KUNIT_EXPECT_EQ(test, qp->req.fetched - qp->comp.done, ARX_SWQES_MAX);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	pair_pump(p);
	for (i = 1; i < 3; i++)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, qp->swqe_mask + 1, ARX_SWQES_MAX);
	/* The work may have been queued again while it ran. */
	KUNIT_EXPECT_FALSE(test, arx_swqes_grow(qp));
	KUNIT_EXPECT_EQ(test, qp->swqe_mask + 1, ARX_SWQES_MAX);
	arx_dereg_mr(&mr->ib, NULL);
}

/*
 * Local work is executed once, however often the requests around it are sent.
 */
static void local__once(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];
	struct arx_mr *mr = fast_mr(test, p, 0);
	int i;

	p->lost = true;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	reg_mr(p, 0, 2, mr);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, IB_SEND_SIGNALED, 0, 8);
	EXPECT_NO_WC(test, &s->scq);
	pair_timeout(p, 0);
	p->lost = false;
	pair_timeout(p, 0);
	pair_pump(p);
	for (i = 1; i < 4; i++)
		EXPECT_WC(test, &s->scq, i, IB_WC_SUCCESS);
	arx_dereg_mr(&mr->ib, NULL);
}

/*
 * An acknowledgment of the first transmission overtakes the second, which local
 * work delays: acknowledged requests are not sent again.
 */
static void local__overtaken(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];
	struct arx_mr *mr = fast_mr(test, p, 0);
	struct arx_run ack;
	int i;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	reg_mr(p, 0, 2, mr);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, IB_SEND_SIGNALED, 0, 8);
	p->blocked = true;
	pair_timeout(p, 0);

	ack = pair_run(p, 0, ARX_OP_ACK, ARX_FIRST | ARX_LAST, PSN + 1, NULL,
		       0);
	pair_rx(p, 0, &ack);
	p->blocked = false;
	p->sent = 0;
	pair_requester(p, 0);
	KUNIT_EXPECT_EQ(test, p->sent, 0);
	for (i = 1; i < 4; i++)
		EXPECT_WC(test, &s->scq, i, IB_WC_SUCCESS);

	/* The next request has the next PSN. */
	while (pair_take(p, -1))
		;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 4, IB_SEND_SIGNALED, 0, 8);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 2);
	arx_dereg_mr(&mr->ib, NULL);
}

/*
 * A NAK of the first transmission finds the second one stopped before local
 * work that was executed then: it refuses the WQE after the local work.
 */
static void local__refused_behind(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];
	struct arx_mr *mr = fast_mr(test, p, 0);

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	reg_mr(p, 0, 2, mr);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, IB_SEND_SIGNALED, 0, 8);
	p->blocked = true;
	pair_timeout(p, 0);

	ack(p, ARX_NAK(ARX_NAK_REM_ACCESS), PSN + 1);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	EXPECT_WC(test, &s->scq, 3, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
	arx_dereg_mr(&mr->ib, NULL);
}

/* The completer. */

/* One acknowledgment for many requests. */
static void completer__coalesced(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	int i;

	for (i = 0; i < 5; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, IB_SEND_SIGNALED, 0,
			  2 * MTU);
	/* the first packet of the fourth message */
	ack(p, ARX_ACK_UNLIMITED, PSN + 6);
	for (i = 0; i < 3; i++)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_SUCCESS);
	EXPECT_NO_WC(test, &p->side[0].scq);
	ack(p, ARX_ACK_UNLIMITED, PSN + 9);
	for (; i < 5; i++)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_SUCCESS);
}

/* 9.7.5.1.2: only PSNs in flight are accepted. */
static void completer__out_of_window(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	pair_send(p, 0, IB_WR_RDMA_WRITE, 0, IB_SEND_SIGNALED, 0, 8);
	ack(p, ARX_ACK_UNLIMITED, PSN);
	EXPECT_WC(test, &p->side[0].scq, 0, IB_WC_SUCCESS);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 2 * MTU);
	drop_wire(p);

	ack(p, ARX_ACK_UNLIMITED, PSN);
	ack(p, ARX_ACK_UNLIMITED, PSN + 3);
	ack(p, ARX_ACK_UNLIMITED, PSN + (1 << 23));
	ack(p, ARX_NAK(ARX_NAK_REM_ACCESS), PSN);
	ack(p, ARX_NAK(ARX_NAK_SEQ_ERR), PSN + 3);
	ack(p, ARX_RNR_NAK(1), PSN - 1);
	answer(p, ARX_OP_READ_RESPONSE, ARX_ACK_UNLIMITED, PSN, 8);
	answer(p, ARX_OP_ATOMIC_ACK, ARX_ACK_UNLIMITED, PSN, 0);
	EXPECT_NO_WC(test, &p->side[0].scq);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->state, IB_QPS_RTS);
	ack(p, ARX_ACK_UNLIMITED, PSN + 2);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
}

struct nak {
	u8 code;
	enum ib_wc_status status;
};

static const struct nak naks[] = {
	{ ARX_NAK_INV_REQ, IB_WC_REM_INV_REQ_ERR },
	{ ARX_NAK_REM_ACCESS, IB_WC_REM_ACCESS_ERR },
	{ ARX_NAK_REM_OP, IB_WC_REM_OP_ERR },
	{ ARX_NAK_INV_RD_REQ, IB_WC_REM_INV_RD_REQ_ERR },
	{ 17, IB_WC_BAD_RESP_ERR },
};

static void nak_name(const struct nak *nak, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "code %u", nak->code);
}

KUNIT_ARRAY_PARAM(nak, naks, nak_name);

/* A NAK acknowledges the requests before its own, and fails its own. */
static void completer__nak(struct kunit *test)
{
	const struct nak *nak = test->param_value;
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];
	int i;

	for (i = 0; i < 3; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, IB_SEND_SIGNALED, 0, 8);
	ack(p, ARX_NAK(nak->code), PSN + 1);
	EXPECT_WC(test, &s->scq, 0, IB_WC_SUCCESS);
	EXPECT_WC(test, &s->scq, 1, nak->status);
	EXPECT_WC(test, &s->scq, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
}

/* Go back to the missing packet, also inside a message. */
static void completer__sequence_nak(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct wire_run *w;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 4 * MTU);
	drop_wire(p);
	ack(p, ARX_NAK(ARX_NAK_SEQ_ERR), PSN + 2);
	w = EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 2);
	if (w) {
		KUNIT_EXPECT_EQ(test, w->run.npkts, 2);
		KUNIT_EXPECT_EQ(test, w->run.len, 2 * MTU);
		KUNIT_EXPECT_EQ(test, w->run.h.flags & (ARX_FIRST | ARX_LAST),
				ARX_LAST);
		KUNIT_EXPECT_MEMEQ(test, w->data, p->side[0].buf + 2 * MTU,
				   2 * MTU);
	}
}

static void completer__retries(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];
	int i;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 2 * MTU);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, 0, 0, 8);
	for (i = 0; i < 3; i++) {
		drop_wire(p);
		pair_timeout(p, 0);
		EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	}
	/* Any progress resets the count. */
	ack(p, ARX_ACK_UNLIMITED, PSN);
	for (i = 0; i < 3; i++) {
		drop_wire(p);
		pair_timeout(p, 0);
		EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 1);
	}
	EXPECT_NO_WC(test, &s->scq);
	pair_timeout(p, 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_RETRY_EXC_ERR);
	EXPECT_WC(test, &s->scq, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
}

/*
 * While nothing can be sent, nothing can be acknowledged: that costs no retry.
 */
static void completer__blocked(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];
	int i;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	p->blocked = true;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	for (i = 0; i < 10; i++)
		pair_timeout(p, 0);
	EXPECT_NO_WC(test, &s->scq);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);

	/* Packets in flight on this machine are not sent again. */
	drop_wire(p);
	p->blocked = false;
	pair_requester(p, 0);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 1);

	/* Then silence is the peer's. */
	for (i = 0; i < 3; i++) {
		drop_wire(p);
		pair_timeout(p, 0);
		EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	}
	pair_timeout(p, 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_RETRY_EXC_ERR);
}

/* Packets that this machine drops cost no retry either, but not for ever. */
static void completer__dropped(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];
	int i;

	p->drops = true;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	for (i = 0; i < 10; i++)
		pair_timeout(p, 0);
	EXPECT_NO_WC(test, &s->scq);
	KUNIT_EXPECT_EQ(test, s->qp->comp.retries_left, 0);
	pair_timeout(p, 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_RETRY_EXC_ERR);
}

/*
 * 11.2.4.2: a timeout of 0 disables the timer, also for requests sent with
 * another timeout.
 */
static void completer__timeout_turned_off(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	KUNIT_EXPECT_TRUE(test, timer_pending(&qp->comp.retransmit));
	timer_delete(&qp->comp.retransmit);	/* it expires */
	qp->attr.timeout = 0;
	p->sent = 0;
	pair_timeout(p, 0);
	KUNIT_EXPECT_EQ(test, p->sent, 0);
	KUNIT_EXPECT_FALSE(test, timer_pending(&qp->comp.retransmit));
}

/* Pages of the oldest request are being found, and then of a later one. */
static void completer__paging(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	u8 retries = qp->comp.retries_left;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 8);
	drop_wire(p);
	pair_page(p, 0);
	qp->req.psn = PSN;	/* the response was dropped, for example */
	pair_timeout(p, 0);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, qp->comp.retries_left, retries);
	qp->req.psn = PSN + 1;
	pair_timeout(p, 0);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	KUNIT_EXPECT_EQ(test, qp->comp.retries_left, retries - 1);
	qp->req.paging.job = NULL;
}

/* A stage waits for its own job only, and a reset ends the wait. */
static void requester__own_job(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_paging *paging = &p->side[0].qp->req.paging;

	pair_page(p, 0);
	pair_paged(p, 0, false);
	KUNIT_EXPECT_TRUE(test, arx_paging_is_busy(paging));
	pair_paged(p, 0, true);
	KUNIT_EXPECT_FALSE(test, arx_paging_is_busy(paging));
	KUNIT_EXPECT_TRUE(test, paging->job == ARX_PAGING_FAILED);
	pair_page(p, 0);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, 0), 0);
	KUNIT_EXPECT_FALSE(test, arx_paging_is_busy(paging));
	pair_paged(p, 0, true);
	KUNIT_EXPECT_NULL(test, paging->job);
}

/*
 * Packets in flight on this machine are not lost; but they may be held for
 * ever.
 */
static void completer__held(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];
	int i;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 2 * MTU);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	p->waits = 1000;
	for (i = 0; i < 7; i++)
		pair_timeout(p, 0);
	KUNIT_EXPECT_NULL(test, pair_take(p, 0));

	/* Part of it has arrived: the rest gets the full time again. */
	ack(p, ARX_ACK_UNLIMITED, PSN);
	for (i = 0; i < 7; i++)
		pair_timeout(p, 0);
	KUNIT_EXPECT_NULL(test, pair_take(p, 0));
	for (i = 0; i < 3; i++) {
		pair_timeout(p, 0);
		EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 1);
	}
	EXPECT_NO_WC(test, &s->scq);
	pair_timeout(p, 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_RETRY_EXC_ERR);

	/* And of another connection. */
	pair_bring(test, p, 0, IB_QPS_RTS);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	for (i = 0; i < 7; i++)
		pair_timeout(p, 0);
	KUNIT_EXPECT_NULL(test, pair_take(p, 0));
}

/* A slow link: as long as packets leave, nothing is lost. */
static void completer__held_less_and_less(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	int i;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	for (p->waits = 100; p->waits > 50; p->waits--)
		pair_timeout(p, 0);
	KUNIT_EXPECT_NULL(test, pair_take(p, 0));

	/*
	 * Alternately more and fewer bytes, as with other traffic of the QP,
	 * are no progress.
	 */
	for (i = 0; i < 7; i++) {
		p->waits = i & 1 ? 60 : 51;
		pair_timeout(p, 0);
	}
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
}

/* Neither sending nor acknowledging touches a timer that runs. */
static void completer__timer_left_alone(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;
	unsigned long expires;
	int i;

	qp->attr.timeout = 22;	/* 17 s */
	pair_send(p, 0, IB_WR_RDMA_WRITE, 0, 0, 0, 8);
	KUNIT_ASSERT_TRUE(test, timer_pending(&qp->comp.retransmit));
	expires = qp->comp.retransmit.expires;
	for (i = 1; i < 5; i++) {
		msleep(30);
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, 0, 0, 8);
		ack(p, ARX_ACK_UNLIMITED, PSN + i - 1);
	}
	KUNIT_EXPECT_EQ(test, qp->comp.una, (PSN + 4) & ARX_PSN_MASK);
	KUNIT_EXPECT_TRUE(test, timer_pending(&qp->comp.retransmit));
	KUNIT_EXPECT_EQ(test, qp->comp.retransmit.expires, expires);
}

static void answer_now(struct work_struct *work);
static DECLARE_WORK(answer_work, answer_now);
static struct pair *answered;

static void answer_now(struct work_struct *work)
{
	struct arx_run run = response(answered, ARX_OP_ACK, ARX_ACK_UNLIMITED,
				      PSN, 0);

	pair_rx(answered, 0, &run);
}

/* As on one machine: a softirq will respond. */
static void answer_soon(struct pair *p, struct arx_qp *qp)
{
	answered = p;
	queue_work(system_bh_wq, &answer_work);
}

/*
 * Requests that are acknowledged by the time that the post returns need no
 * timer.
 */
static void completer__timer_not_needed(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];

	p->on_send = answer_soon;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	flush_work(&answer_work);	/* ksoftirqd may do it */
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, timer_pending(&s->qp->comp.retransmit));

	p->on_send = NULL;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	KUNIT_EXPECT_TRUE(test, timer_pending(&s->qp->comp.retransmit));
}

/* A sender may check the timer when the QP has left its working state. */
static void completer__timer_too_late(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_qp *qp = p->side[0].qp;

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	timer_delete(&qp->comp.retransmit);	/* not started yet, that is */
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_ERR, IB_QP_STATE), 0);
	KUNIT_ASSERT_NE(test, qp->comp.una, qp->req.nxt);
	arx_completer_arm(qp);
	KUNIT_EXPECT_FALSE(test, timer_pending(&qp->comp.retransmit));
}

/* A request that has just been sent again gets the full time. */
static void completer__time_of_a_retry(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 8);
	ack(p, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	drop_wire(p);
	pair_expire(p, 0);
	EXPECT_SILENT(test, p, 0);
	pair_expire(p, 0);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
	drop_wire(p);
	pair_expire(p, 0);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
}

static void completer__rnr(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[0];
	int i, j;

	pair_send(p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED, 0, 8);
	for (i = 0; i < 2; i++) {
		drop_wire(p);
		ack(p, ARX_RNR_NAK(0), PSN);
		/* No response before the time is over, however long it is. */
		pair_send(p, 0, IB_WR_RDMA_WRITE, 2 + i, 0, 0, 8);
		for (j = 0; j < 10; j++)
			pair_timeout(p, 0);
		EXPECT_SILENT(test, p, 0);
		pair_rnr_ended(p, 0);
		EXPECT_SENT(test, p, 0, ARX_OP_SEND, PSN);
	}
	EXPECT_NO_WC(test, &s->scq);
	ack(p, ARX_RNR_NAK(0), PSN);
	EXPECT_WC(test, &s->scq, 1, IB_WC_RNR_RETRY_EXC_ERR);
	EXPECT_WC(test, &s->scq, 2, IB_WC_WR_FLUSH_ERR);
	EXPECT_WC(test, &s->scq, 3, IB_WC_WR_FLUSH_ERR);
}

/* 11.2.5.2: seven means unlimited. */
static void completer__rnr_for_ever(struct kunit *test)
{
	struct pair *p = test->priv;
	int i;

	p->attr.rnr_retry = 7;
	pair_by_wire(test);
	pair_send(p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED, 0, 8);
	for (i = 0; i < 20; i++) {
		ack(p, ARX_RNR_NAK(0), PSN);
		pair_rnr_ended(p, 0);
	}
	EXPECT_NO_WC(test, &p->side[0].scq);
	ack(p, ARX_ACK_UNLIMITED, PSN);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
}

/*
 * A receiver that was not ready gets a few packets at a time, not a full
 * window: on one CPU those would keep it from becoming ready.
 */
static void completer__rnr_small_steps(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	u32 tried = 0, then = 0;
	struct wire_run *w;
	bool asked = false;

	pair_send(p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED, 0, 100 * MTU);
	drop_wire(p);
	ack(p, ARX_RNR_NAK(0), PSN);
	pair_rnr_ended(p, 0);
	while ((w = pair_take(p, 0))) {
		tried += w->run.npkts;
		asked = w->run.h.flags & ARX_ACK_REQ;
	}
	KUNIT_EXPECT_GT(test, tried, 0);
	KUNIT_EXPECT_LE(test, tried, 8);
	KUNIT_EXPECT_TRUE(test, asked);

	/* Once a packet was accepted, all the rest. */
	ack(p, ARX_ACK_UNLIMITED, PSN + tried - 1);
	pair_settle(p);
	while ((w = pair_take(p, 0)))
		then += w->run.npkts;
	KUNIT_EXPECT_EQ(test, tried + then, 100);
}

/* 9.7.5.1.3: an acknowledgment after a READ says that its data is lost. */
static void completer__implied_nak(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct wire_run *w;

	pair_send(p, 0, IB_WR_RDMA_READ, 1, IB_SEND_SIGNALED, 0, 4 * MTU);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	drop_wire(p);
	fill(p->side[1].buf, BUF, 7);
	/* Two packets of four arrive, then the acknowledgment of the WRITE. */
	{
		struct arx_run run = response(p, ARX_OP_READ_RESPONSE,
					      ARX_ACK_UNLIMITED, PSN, 2 * MTU);

		run.h.flags = ARX_FIRST;
		pair_rx(p, 0, &run);
	}
	ack(p, ARX_ACK_UNLIMITED, PSN + 4);
	EXPECT_NO_WC(test, &p->side[0].scq);
	w = EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN + 2);
	if (w) {
		KUNIT_EXPECT_EQ(test, w->run.h.va, IOVA + 2 * MTU);
		KUNIT_EXPECT_EQ(test, w->run.h.dma_len, 2 * MTU);
	}
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN + 4);
	/* Once for each gap. */
	ack(p, ARX_ACK_UNLIMITED, PSN + 4);
	EXPECT_SILENT(test, p, 0);

	{
		struct arx_run run = response(p, ARX_OP_READ_RESPONSE,
					      ARX_ACK_UNLIMITED, PSN + 2,
					      2 * MTU);

		arx_iter_buf(&run.payload, p->side[1].buf + 2 * MTU);
		pair_rx(p, 0, &run);
	}
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, p->side[0].buf, p->side[1].buf, 4 * MTU);
	ack(p, ARX_ACK_UNLIMITED, PSN + 4);
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);
}

/* A request is answered twice; the overlap is cut off. */
static void completer__overlap(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_run run;

	pair_send(p, 0, IB_WR_RDMA_READ, 1, IB_SEND_SIGNALED, 0, 4 * MTU);
	fill(p->side[1].buf, BUF, 7);
	run = response(p, ARX_OP_READ_RESPONSE, ARX_ACK_UNLIMITED, PSN,
		       2 * MTU);
	run.h.flags = ARX_FIRST;
	pair_rx(p, 0, &run);
	/*
	 * The application may already use the received bytes; they must not
	 * change.
	 */
	memset(p->side[0].buf, 0xee, 2 * MTU);
	run = response(p, ARX_OP_READ_RESPONSE, ARX_ACK_UNLIMITED, PSN,
		       4 * MTU);
	pair_rx(p, 0, &run);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_NULL(test, memchr_inv(p->side[0].buf, 0xee, 2 * MTU));
	KUNIT_EXPECT_MEMEQ(test, p->side[0].buf + 2 * MTU,
			   p->side[1].buf + 2 * MTU, 2 * MTU);
}

struct bad_response {
	const char *name;
	enum ib_wr_opcode op;	/* of 3 * MTU, an ATOMIC WRITE of 8 bytes */
	enum arx_op answer;
	int flags;
	u32 len;
};

static const struct bad_response bad_responses[] = {
	{ "READ, too short", IB_WR_RDMA_READ, ARX_OP_READ_RESPONSE,
	  ARX_FIRST | ARX_LAST, 2 * MTU },
	{ "READ, one byte short", IB_WR_RDMA_READ, ARX_OP_READ_RESPONSE,
	  ARX_FIRST | ARX_LAST, 3 * MTU - 1 },
	{ "READ, no end", IB_WR_RDMA_READ, ARX_OP_READ_RESPONSE, ARX_FIRST,
	  3 * MTU },
	{ "READ, half a packet", IB_WR_RDMA_READ, ARX_OP_READ_RESPONSE,
	  ARX_FIRST, MTU / 2 },
	{ "READ, an atomic's", IB_WR_RDMA_READ, ARX_OP_ATOMIC_ACK,
	  ARX_FIRST | ARX_LAST, 0 },
	{ "ATOMIC WRITE, data", IB_WR_ATOMIC_WRITE, ARX_OP_READ_RESPONSE,
	  ARX_FIRST | ARX_LAST, 8 },
	{ "ATOMIC WRITE, no end", IB_WR_ATOMIC_WRITE, ARX_OP_READ_RESPONSE,
	  ARX_FIRST, 0 },
	{ "ATOMIC WRITE, an atomic's", IB_WR_ATOMIC_WRITE, ARX_OP_ATOMIC_ACK,
	  ARX_FIRST | ARX_LAST, 0 },
	{ "WRITE, data", IB_WR_RDMA_WRITE, ARX_OP_READ_RESPONSE,
	  ARX_FIRST | ARX_LAST, MTU },
};

static void bad_response_name(const struct bad_response *b, char *name)
{
	strscpy(name, b->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_response, bad_responses, bad_response_name);

static void completer__bad_response(struct kunit *test)
{
	const struct bad_response *b = test->param_value;
	struct pair *p = pair_by_wire(test);
	struct arx_run run;

	pair_send(p, 0, b->op, 1, 0, 0,
		  b->op == IB_WR_ATOMIC_WRITE ? 8 : 3 * MTU);
	memset(p->side[1].buf, 0x55, BUF);
	run = response(p, b->answer, ARX_ACK_UNLIMITED, PSN, b->len);
	run.h.flags = b->flags;
	pair_rx(p, 0, &run);
	pair_settle(p);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_BAD_RESP_ERR);
	KUNIT_EXPECT_NULL(test, memchr_inv(p->side[0].buf, 0, BUF));
}

/* A READ whose memory was deregistered meanwhile. */
static void completer__read_lkey(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_mr *mr = to_arx_mr(p->dma);

	pair_send(p, 0, IB_WR_RDMA_READ, 1, 0, 0, 8);
	EXPECT_SENT(test, p, 0, ARX_OP_READ, PSN);
	mr->key.value ^= 0x100;
	answer(p, ARX_OP_READ_RESPONSE, ARX_ACK_UNLIMITED, PSN, 8);
	mr->key.value ^= 0x100;
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->state, IB_QPS_ERR);
}

/* The responder. */

static void request(struct pair *p, enum arx_op op, int flags, u32 psn,
		    u32 at, u32 len)
{
	struct arx_run run = pair_run(p, 1, op, flags, psn,
				      p->side[0].buf + at, len);

	run.h.va += at;
	run.h.dma_len = len;
	pair_rx(p, 1, &run);
	pair_settle(p);
}

#define WHOLE	(ARX_FIRST | ARX_LAST | ARX_ACK_REQ)

/* 9.7.5.1.4: a duplicate is acknowledged, and changes nothing. */
static void responder__duplicate(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	pair_recv(p, 1, 1, 0, 100);
	pair_recv(p, 1, 2, 1000, 100);
	fill(p->side[0].buf, BUF, 1);
	request(p, ARX_OP_SEND, WHOLE, PSN, 0, 50);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN);
	EXPECT_WC(test, &p->side[1].rcq, 1, IB_WC_SUCCESS);
	memset(p->side[1].buf, 0, 100);

	request(p, ARX_OP_SEND, WHOLE, PSN, 0, 50);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN);
	EXPECT_NO_WC(test, &p->side[1].rcq);
	KUNIT_EXPECT_NULL(test, memchr_inv(p->side[1].buf, 0, 100));

	request(p, ARX_OP_WRITE, WHOLE, PSN, 0, 50);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN);
	KUNIT_EXPECT_NULL(test, memchr_inv(p->side[1].buf, 0, 100));
}

/* The new part of an overlapping run is accepted. */
static void responder__partial_duplicate(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	pair_recv(p, 1, 1, 0, 4 * MTU);
	fill(p->side[0].buf, BUF, 1);
	request(p, ARX_OP_SEND, ARX_FIRST, PSN, 0, 2 * MTU);
	EXPECT_SILENT(test, p, 1);
	memset(p->side[1].buf, 0, 2 * MTU);
	request(p, ARX_OP_SEND, WHOLE, PSN, 0, 3 * MTU + 5);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 3);
	EXPECT_WC(test, &p->side[1].rcq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_NULL(test, memchr_inv(p->side[1].buf, 0, 2 * MTU));
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf + 2 * MTU,
			   p->side[0].buf + 2 * MTU, MTU + 5);
}

/* Requests that arrive together get one response, except those with data. */
static void responder__together(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_run run;
	u32 i;

	fill(p->side[0].buf, BUF, 1);
	for (i = 0; i < 5; i++) {
		run = pair_run(p, 1, ARX_OP_WRITE, WHOLE, PSN + i,
			       p->side[0].buf + 8 * i, 8);
		run.h.va = IOVA + 8 * i;
		run.h.dma_len = 8;
		run.more = i < 4;
		pair_rx(p, 1, &run);
		if (run.more)
			EXPECT_SILENT(test, p, 1);
	}
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 4);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 5 * 8);

	/* A NAK answers the requests before it, too. */
	for (i = 5; i < 8; i++) {
		run = pair_run(p, 1, i == 6 ? ARX_OP_SEND : ARX_OP_WRITE, WHOLE,
			       PSN + i, p->side[0].buf, 8);
		run.h.dma_len = 8;
		run.more = i < 7;
		pair_rx(p, 1, &run);
	}
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN + 6);
	EXPECT_SILENT(test, p, 1);

	for (i = 6; i < 9; i++) {
		run = pair_run(p, 1, i == 7 ? ARX_OP_READ : ARX_OP_WRITE, WHOLE,
			       PSN + i, p->side[0].buf, i == 7 ? 0 : 8);
		run.h.dma_len = 8;
		run.more = i < 8;
		pair_rx(p, 1, &run);
	}
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 7);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 8);
	EXPECT_SILENT(test, p, 1);
}

/* A WRITE of @n packets, @at packets after the first of all, from a NIC. */
static void polled(struct pair *p, u32 at, u32 n)
{
	struct arx_run run = pair_run(p, 1, ARX_OP_WRITE, WHOLE, PSN + at,
				      p->side[0].buf, n * MTU);

	run.h.dma_len = n * MTU;
	run.polled = true;
	pair_rx(p, 1, &run);
}

/*
 * Packets that a NIC delivers together get one ACK, when all have been
 * processed.
 */
static void responder__waits(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_run run;

	fill(p->side[0].buf, BUF, 1);
	local_bh_disable();
	polled(p, 0, 2);
	polled(p, 2, 125);
	EXPECT_SILENT(test, p, 1);
	local_bh_enable();
	pair_settle(p);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 126);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 125 * MTU);

	/* No more than the smallest window of a requester. */
	local_bh_disable();
	polled(p, 127, 2);
	polled(p, 129, 126);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 254);
	polled(p, 255, 127);
	EXPECT_SILENT(test, p, 1);

	/*
	 * A packet that came alone is acknowledged at once, together with
	 * waiting ones.
	 */
	run = pair_run(p, 1, ARX_OP_WRITE, WHOLE, PSN + 382, p->side[0].buf, 8);
	run.h.dma_len = 8;
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 382);

	/* So is a refused packet. */
	polled(p, 383, 2);
	EXPECT_SILENT(test, p, 1);
	run = pair_run(p, 1, ARX_OP_SEND, WHOLE, PSN + 385, p->side[0].buf,
		       2 * MTU);
	run.polled = true;
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN + 385);
	local_bh_enable();
	pair_settle(p);
	EXPECT_SILENT(test, p, 1);

	/*
	 * A message's last packet may have come alone: see arx_gro_follows().
	 */
	local_bh_disable();
	run = pair_run(p, 1, ARX_OP_WRITE, ARX_FIRST, PSN + 385,
		       p->side[0].buf, 2 * MTU);
	run.h.dma_len = 3 * MTU;
	run.polled = true;
	pair_rx(p, 1, &run);
	run = pair_run(p, 1, ARX_OP_WRITE, ARX_LAST | ARX_ACK_REQ, PSN + 387,
		       p->side[0].buf, MTU);
	pair_rx(p, 1, &run);
	EXPECT_SILENT(test, p, 1);
	local_bh_enable();
	pair_settle(p);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 387);
}

/* ACKs also wait if no message came while the ones before waited. */
static void responder__waits_in_vain(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	u32 i;

	for (i = 0; i < 20; i++) {
		local_bh_disable();
		polled(p, 2 * i, 2);
		EXPECT_SILENT(test, p, 1);
		local_bh_enable();
		pair_settle(p);
		EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 2 * i + 1);
	}
}

/* An ACK waits, and the context that would send it is late. */
static struct pair *waiting(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	local_bh_disable();
	polled(p, 0, 2);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_TRUE(test, cancel_work(&p->side[1].qp->work));
	local_bh_enable();
	return p;
}

/*
 * An application that has seen the message may end the QP before its ACK has
 * been sent: the peer must not take the message for lost.
 */
static void responder__waits_until_error(struct kunit *test)
{
	struct pair *p = waiting(test);

	KUNIT_ASSERT_EQ(test, pair_modify(p, 1, IB_QPS_ERR, 0), 0);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 1);
	pair_settle(p);
	EXPECT_SILENT(test, p, 1);
}

/* The same if the QP fails by itself. */
static void responder__waits_until_failed(struct kunit *test)
{
	struct pair *p = waiting(test);

	local_bh_disable();
	arx_qp_send_error(p->side[1].qp);
	local_bh_enable();
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, arx_qp_state(p->side[1].qp), IB_QPS_ERR);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 1);
	EXPECT_SILENT(test, p, 1);
}

static void responder__waits_until_reset(struct kunit *test)
{
	struct pair *p = waiting(test);

	KUNIT_ASSERT_EQ(test, pair_modify(p, 1, IB_QPS_RESET, 0), 0);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 1);
	pair_settle(p);
	EXPECT_SILENT(test, p, 1);
}

static void responder__waits_until_destroyed(struct kunit *test)
{
	struct pair *p = waiting(test);
	struct arx_qp *qp = p->side[1].qp;

	arx_destroy_qp(&qp->ib, NULL);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 1);
	p->side[1].qp = NULL;
}

/*
 * A run of the maximum size fits after the waiting packets, or into a batch of
 * its own.
 */
static void tx__max(struct kunit *test)
{
	struct arx_tx_batch batch = {};
	u32 mtu;

	for (mtu = 256; mtu <= 4096; mtu *= 2) {
		u32 full = ARX_TX_RUN_MAX / mtu;
		u32 most = 0;

		KUNIT_EXPECT_LE(test, arx_tx_size(full * mtu, full),
				ARX_TX_BATCH_MAX);
		for (batch.len = 0; batch.len <= ARX_TX_BATCH_MAX;
		     batch.len += 4) {
			u32 len = arx_tx_max(&batch, mtu, false);
			u32 n = len / mtu;
			u32 end = batch.len + arx_tx_size(n * mtu, n);

			KUNIT_ASSERT_EQ(test, len % mtu, 0);
			KUNIT_ASSERT_GT(test, n, 0);
			KUNIT_ASSERT_LE(test, n, full);
			if (end > ARX_TX_BATCH_MAX)
				KUNIT_ASSERT_EQ(test, n, full);
			else
				most = max(most, end);
		}
		batch.len = 0;
		KUNIT_EXPECT_EQ(test, arx_tx_max(&batch, mtu, true), 12 * mtu);
		/* The maximum is used, not only respected. */
		KUNIT_EXPECT_GT(test, most + mtu, ARX_TX_BATCH_MAX);
	}
}

/* 9.7.5.2.4: one NAK until the missing packet has come. */
static void responder__out_of_sequence(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	request(p, ARX_OP_WRITE, WHOLE, PSN + 1, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	request(p, ARX_OP_WRITE, WHOLE, PSN + 2, 0, 8);
	request(p, ARX_OP_READ, WHOLE, PSN + 3, 0, 8);
	EXPECT_SILENT(test, p, 1);
	request(p, ARX_OP_WRITE, WHOLE, PSN, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN);
	request(p, ARX_OP_WRITE, WHOLE, PSN + 5, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN + 1);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_RTS);
}

static void responder__rnr(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	request(p, ARX_OP_SEND, WHOLE, PSN, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN);
	/* Packets in flight after it are out of sequence: no response. */
	request(p, ARX_OP_SEND, WHOLE, PSN + 1, 0, 8);
	EXPECT_SILENT(test, p, 1);
	pair_recv(p, 1, 1, 0, 8);
	request(p, ARX_OP_SEND, WHOLE, PSN, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN);
	EXPECT_WC(test, &p->side[1].rcq, 1, IB_WC_SUCCESS);
}

/* A WRITE with immediate needs a receive for its last packet only. */
static void responder__rnr_at_the_end(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	fill(p->side[0].buf, BUF, 1);
	request(p, ARX_OP_WRITE, WHOLE | ARX_IMM, PSN, 0, 3 * MTU);
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN + 2);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 2 * MTU);
	pair_recv(p, 1, 1, 0, 8);
	request(p, ARX_OP_WRITE, WHOLE | ARX_IMM, PSN, 0, 3 * MTU);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 2);
	EXPECT_WC(test, &p->side[1].rcq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 3 * MTU);
}

/* By packets: the message is refused whole, and received whole later. */
static void responder__invalidates_in_use(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[1];
	struct arx_run run;
	struct arx_mr *mr;

	mr = fast_mr(test, p, 1);
	KUNIT_EXPECT_EQ(test, reg_mr(p, 1, 1, mr), 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	pair_recv(p, 1, 10, 0, 3 * MTU);
	fill(p->side[0].buf, BUF, 1);
	run = pair_run(p, 1, ARX_OP_SEND,
		       WHOLE | ARX_INV | ARX_REPORTS, PSN, p->side[0].buf,
		       3 * MTU);
	run.h.ex = mr->ib.rkey;

	atomic_inc(&mr->key.users);
	pair_rx(p, 1, &run);
	pair_settle(p);
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(ARX_ACK_SHORT_TIMER), PSN);
	KUNIT_EXPECT_EQ(test, s->qp->resp.kept.bytes, 0);
	EXPECT_NO_WC(test, &s->rcq);

	atomic_dec(&mr->key.users);
	run = pair_run(p, 1, ARX_OP_SEND, WHOLE | ARX_INV, PSN,
		       p->side[0].buf, 3 * MTU);
	run.h.ex = mr->ib.rkey;
	pair_rx(p, 1, &run);
	pair_settle(p);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 2);
	KUNIT_EXPECT_EQ(test, pair_poll(&s->rcq).ex.invalidate_rkey,
			mr->ib.rkey);
	KUNIT_EXPECT_MEMEQ(test, s->buf, p->side[0].buf, 3 * MTU);
	arx_dereg_mr(&mr->ib, NULL);
}

/**
 * struct refusal - a request that is refused
 * @name: the fault
 * @op: of the request
 * @flags: of the request
 * @set: makes the fault; may be NULL
 * @len: of the payload
 * @first: a WRITE begins before it
 * @nak: expected response
 * @event: expected event of the responder
 * @recv: expected status of the receive WQE, if it is not flushed
 */
struct refusal {
	const char *name;
	enum arx_op op;
	int flags;
	void (*set)(struct pair *p, struct arx_run *run);
	u32 len;
	bool first;
	u8 nak;
	enum ib_event_type event;
	enum ib_wc_status recv;
};

#define FAULT(name, statement)						\
static void fault_##name(struct pair *p, struct arx_run *run)		\
{									\
	statement;							\
}

FAULT(rkey, run->h.rkey ^= 1)
FAULT(before, run->h.va--)
FAULT(beyond, run->h.va += BUF - 7)
FAULT(after, run->h.va += BUF)
FAULT(wraps, run->h.va = -8ULL)
FAULT(pd, p->side[1].mr.key.pd = NULL)
FAULT(mr_access, p->side[1].mr.key.access = IB_ACCESS_LOCAL_WRITE)
FAULT(qp_access, p->side[1].qp->attr.qp_access_flags = 0)
FAULT(freed, p->side[1].mr.key.state = ARX_KEY_FREE)
FAULT(unaligned, run->h.va += 4)
FAULT(dma_short, run->h.dma_len = 4)
FAULT(dma_long, run->h.dma_len = 100)
FAULT(dma_2g, run->h.dma_len = 0x80000001)
FAULT(write_2g, ({ p->side[1].mr.key.length = 1ULL << 40;
		   run->h.dma_len = 0x80000001; }))
FAULT(half, run->len--)
FAULT(lkey, ({ struct arx_recv_wqe *wqe =
			arx_ring_entry(&p->side[1].qp->rq.ring, 0);
	       ((struct arx_sge *)(wqe + 1))->lkey ^= 0x100; }))
FAULT(long_word, run->h.dma_len = 16)
FAULT(short_word, ({ run->len = 4; run->h.pad = 0; }))
FAULT(persistent, run->h.placement = IB_FLUSH_PERSISTENT)
FAULT(all_persistent, ({ run->h.placement = IB_FLUSH_PERSISTENT;
			 run->h.selectivity = IB_FLUSH_MR; }))
FAULT(all_rkey, ({ run->h.selectivity = IB_FLUSH_MR; run->h.rkey ^= 1; }))
FAULT(placement, run->h.placement = 5)
FAULT(nowhere, run->h.placement = 0)
FAULT(selectivity, run->h.selectivity = 2)
FAULT(qp_persistent, ({ p->side[1].qp->attr.qp_access_flags &=
				~IB_ACCESS_FLUSH_PERSISTENT;
			run->h.placement = IB_FLUSH_PERSISTENT; }))
FAULT(no_reads, p->side[1].qp->attr.max_dest_rd_atomic = 0)

#define ACCESS(n, o, s)							\
	{ .name = n, .op = o, .flags = WHOLE, .set = s,			\
	  .len = o == ARX_OP_WRITE || o == ARX_OP_ATOMIC_WRITE ? 8 : 0,	\
	  .nak = ARX_NAK_REM_ACCESS,					\
	  .event = IB_EVENT_QP_ACCESS_ERR }
#define INVALID(n, o, f, s, l, in)					\
	{ .name = n, .op = o, .flags = f, .set = s, .len = l,		\
	  .first = in, .nak = ARX_NAK_INV_REQ, .event = IB_EVENT_QP_REQ_ERR }

static const struct refusal refusals[] = {
	ACCESS("WRITE, bad rkey", ARX_OP_WRITE, fault_rkey),
	ACCESS("WRITE, before", ARX_OP_WRITE, fault_before),
	ACCESS("WRITE, beyond", ARX_OP_WRITE, fault_beyond),
	ACCESS("WRITE, address wraps", ARX_OP_WRITE, fault_wraps),
	ACCESS("WRITE, other PD", ARX_OP_WRITE, fault_pd),
	ACCESS("WRITE, region's access", ARX_OP_WRITE, fault_mr_access),
	INVALID("WRITE, QP's access", ARX_OP_WRITE, WHOLE, fault_qp_access, 8,
		false),
	ACCESS("WRITE, invalidated", ARX_OP_WRITE, fault_freed),
	ACCESS("READ, bad rkey", ARX_OP_READ, fault_rkey),
	ACCESS("READ, beyond", ARX_OP_READ, fault_beyond),
	ACCESS("READ, other PD", ARX_OP_READ, fault_pd),
	ACCESS("READ, region's access", ARX_OP_READ, fault_mr_access),
	INVALID("READ, QP's access", ARX_OP_READ, WHOLE, fault_qp_access, 0,
		false),
	ACCESS("atomic, bad rkey", ARX_OP_FETCH_ADD, fault_rkey),
	ACCESS("atomic, region's access", ARX_OP_FETCH_ADD, fault_mr_access),
	INVALID("atomic, QP's access", ARX_OP_COMPARE_SWAP, WHOLE,
		fault_qp_access, 0, false),
	INVALID("atomic, unaligned", ARX_OP_FETCH_ADD, WHOLE, fault_unaligned,
		0, false),
	ACCESS("ATOMIC WRITE, bad rkey", ARX_OP_ATOMIC_WRITE, fault_rkey),
	ACCESS("ATOMIC WRITE, beyond", ARX_OP_ATOMIC_WRITE, fault_after),
	ACCESS("ATOMIC WRITE, region's access", ARX_OP_ATOMIC_WRITE,
	       fault_mr_access),
	INVALID("ATOMIC WRITE, QP's access", ARX_OP_ATOMIC_WRITE, WHOLE,
		fault_qp_access, 8, false),
	INVALID("ATOMIC WRITE, unaligned", ARX_OP_ATOMIC_WRITE, WHOLE,
		fault_unaligned, 8, false),
	INVALID("ATOMIC WRITE, 16 bytes", ARX_OP_ATOMIC_WRITE, WHOLE,
		fault_long_word, 8, false),
	INVALID("ATOMIC WRITE, 4 bytes there", ARX_OP_ATOMIC_WRITE, WHOLE,
		fault_short_word, 8, false),
	INVALID("ATOMIC WRITE inside a WRITE", ARX_OP_ATOMIC_WRITE, WHOLE,
		NULL, 8, true),
	INVALID("ATOMIC WRITE, none allowed", ARX_OP_ATOMIC_WRITE, WHOLE,
		fault_no_reads, 8, false),
	ACCESS("FLUSH, bad rkey", ARX_OP_FLUSH, fault_rkey),
	ACCESS("FLUSH of all, bad rkey", ARX_OP_FLUSH, fault_all_rkey),
	ACCESS("FLUSH, beyond", ARX_OP_FLUSH, fault_after),
	ACCESS("FLUSH, region's access", ARX_OP_FLUSH, fault_mr_access),
	ACCESS("FLUSH, not persistent", ARX_OP_FLUSH, fault_persistent),
	ACCESS("FLUSH of all, not persistent", ARX_OP_FLUSH,
	       fault_all_persistent),
	INVALID("FLUSH, QP's access", ARX_OP_FLUSH, WHOLE, fault_qp_access, 0,
		false),
	INVALID("FLUSH, QP's persistence", ARX_OP_FLUSH, WHOLE,
		fault_qp_persistent, 0, false),
	INVALID("FLUSH, no such type", ARX_OP_FLUSH, WHOLE, fault_placement, 0,
		false),
	INVALID("FLUSH for nothing", ARX_OP_FLUSH, WHOLE, fault_nowhere, 0,
		false),
	INVALID("FLUSH, no such level", ARX_OP_FLUSH, WHOLE, fault_selectivity,
		0, false),
	INVALID("FLUSH, over 2 GiB", ARX_OP_FLUSH, WHOLE, fault_dma_2g, 0,
		false),
	INVALID("FLUSH inside a WRITE", ARX_OP_FLUSH, WHOLE, NULL, 0, true),
	INVALID("READ, over 2 GiB", ARX_OP_READ, WHOLE, fault_dma_2g, 0, false),
	INVALID("READ, none allowed", ARX_OP_READ, WHOLE, fault_no_reads, 0,
		false),
	INVALID("READ inside a WRITE", ARX_OP_READ, WHOLE, NULL, 0, true),
	INVALID("atomic inside a WRITE", ARX_OP_FETCH_ADD, WHOLE, NULL, 0,
		true),
	INVALID("reserved opcode", ARX_OP_RESERVED, WHOLE, NULL, 8, false),
	INVALID("SEND inside a WRITE", ARX_OP_SEND, ARX_LAST, NULL, 8, true),
	INVALID("first inside a WRITE", ARX_OP_WRITE, WHOLE, NULL, 8, true),
	INVALID("middle of nothing", ARX_OP_WRITE, 0, NULL, MTU, false),
	INVALID("last of nothing", ARX_OP_SEND, ARX_LAST, NULL, 8, false),
	INVALID("WRITE, more than the RETH", ARX_OP_WRITE, WHOLE,
		fault_dma_short, 8, false),
	INVALID("WRITE, less than the RETH", ARX_OP_WRITE, WHOLE,
		fault_dma_long, 8, false),
	INVALID("WRITE, over 2 GiB", ARX_OP_WRITE, ARX_FIRST, fault_write_2g,
		MTU, false),
	INVALID("middle not full", ARX_OP_WRITE, ARX_FIRST, fault_half, MTU,
		false),
	INVALID("last empty", ARX_OP_WRITE, ARX_LAST, NULL, 0, true),
	{ .name = "WRITE with immediate, bad rkey", .op = ARX_OP_WRITE,
	  .flags = WHOLE | ARX_IMM, .set = fault_rkey, .len = 8,
	  .nak = ARX_NAK_REM_ACCESS, .event = IB_EVENT_QP_ACCESS_ERR,
	  .recv = IB_WC_LOC_ACCESS_ERR },
	{ .name = "SEND, too long", .op = ARX_OP_SEND, .flags = WHOLE,
	  .len = 101, .nak = ARX_NAK_INV_REQ, .event = IB_EVENT_QP_REQ_ERR,
	  .recv = IB_WC_LOC_LEN_ERR },
	{ .name = "SEND, bad lkey", .op = ARX_OP_SEND, .flags = WHOLE,
	  .set = fault_lkey, .len = 8, .nak = ARX_NAK_REM_OP,
	  .event = IB_EVENT_QP_FATAL, .recv = IB_WC_LOC_PROT_ERR },
};

static void refusal_name(const struct refusal *r, char *name)
{
	strscpy(name, r->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(refusal, refusals, refusal_name);

/*
 * A refused request writes nothing, gets the right NAK, and ends the QP's
 * service.
 */
static void responder__refuses(struct kunit *test)
{
	const struct refusal *r = test->param_value;
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[1];
	struct arx_run run;
	u32 psn = PSN;

	pair_recv(p, 1, 1, 4096, 100);
	pair_recv(p, 1, 2, 4096, 100);
	memset(p->side[0].buf, 0x55, BUF);
	if (r->first) {
		run = pair_run(p, 1, ARX_OP_WRITE, ARX_FIRST, psn++,
			       s->buf, MTU);
		run.h.dma_len = 2 * MTU;
		pair_rx(p, 1, &run);
		EXPECT_SILENT(test, p, 1);
	}
	run = pair_run(p, 1, r->op, r->flags, psn, p->side[0].buf, r->len);
	run.h.dma_len = r->op == ARX_OP_READ || r->op == ARX_OP_FLUSH ? 8 :
			r->len;
	run.h.swap_add = 1;
	run.h.placement = IB_FLUSH_GLOBAL;
	if (r->set)
		r->set(p, &run);
	pair_rx(p, 1, &run);
	pair_settle(p);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(r->nak), psn);
	/* C9-222.1: if a completion reports the error, no event does. */
	KUNIT_EXPECT_EQ(test, s->events[r->event], !r->recv);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
	EXPECT_WC(test, &s->rcq, 1, r->recv ? : IB_WC_WR_FLUSH_ERR);
	EXPECT_WC(test, &s->rcq, 2, IB_WC_WR_FLUSH_ERR);
	if (r->nak == ARX_NAK_REM_ACCESS || !r->len)
		KUNIT_EXPECT_NULL(test, memchr_inv(s->buf, 0, BUF));
	request(p, ARX_OP_WRITE, WHOLE, psn, 0, 8);
	EXPECT_SILENT(test, p, 1);
}

/*
 * A QP that failed with a blocked NAK enters ERR only after the NAK was sent.
 */
static void responder__nak_first(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[1];
	struct arx_run run = pair_run(p, 1, ARX_OP_WRITE, WHOLE, PSN,
				      p->side[0].buf, 8);

	run.h.rkey ^= 1;
	run.h.dma_len = 8;
	p->blocked = true;
	pair_rx(p, 1, &run);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
	memset(p->side[0].buf, 0x55, 8);
	request(p, ARX_OP_WRITE, WHOLE, PSN, 0, 8);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->buf, 0, 8));
	p->blocked = false;
	arx_qp_schedule(s->qp);
	pair_settle(p);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_REM_ACCESS), PSN);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_QP_ACCESS_ERR], 1);
}

/*
 * A NAK that waits for a response is void once the refused request has been
 * accepted: the requester would give up a request that the responder completed.
 */
static void responder__nak_too_late(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[1];
	int rnr;

	for (rnr = 0; rnr < 2; rnr++) {
		u32 psn = PSN + 4 * rnr;

		p->blocked = true;
		request(p, ARX_OP_READ, WHOLE, psn, 0, 8);
		request(p, ARX_OP_SEND, WHOLE, psn + (rnr ? 1 : 2), 0, 8);
		KUNIT_EXPECT_TRUE(test, s->qp->resp.ack_due);
		KUNIT_EXPECT_NE(test, s->qp->resp.ack_syndrome,
				ARX_ACK_UNLIMITED);
		/* A duplicate does not void it. */
		request(p, ARX_OP_READ, WHOLE, psn, 0, 8);
		request(p, ARX_OP_SEND, WHOLE, psn - 1, 0, 8);
		pair_recv(p, 1, 1, 0, 2 * MTU);
		/* The request need not even ask for a response. */
		request(p, ARX_OP_SEND, ARX_FIRST, psn + 1, 0, MTU);
		request(p, ARX_OP_SEND, ARX_LAST, psn + 2, 0, 8);
		EXPECT_WC(test, &s->rcq, 1, IB_WC_SUCCESS);
		p->blocked = false;
		arx_qp_schedule(s->qp);
		pair_settle(p);
		EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, psn);
		EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, psn + 1);
		EXPECT_SILENT(test, p, 1);
		request(p, ARX_OP_WRITE, WHOLE, psn + 3, 0, 8);
		EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, psn + 3);
	}
}

/* 0 bytes need no right to an address: 9.7.4.1.3 */
static void responder__zero_length(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_run run = pair_run(p, 1, ARX_OP_WRITE, WHOLE, PSN, NULL, 0);

	run.h.rkey = 0;
	run.h.va = 0;
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN);
	run = pair_run(p, 1, ARX_OP_READ, WHOLE, PSN + 1, NULL, 0);
	run.h.rkey = 0;
	run.h.va = 0;
	pair_rx(p, 1, &run);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 1);
	KUNIT_EXPECT_EQ(test, p->taken->run.len, 0);
}

static void atomic_request(struct pair *p, enum arx_op op, u32 psn, u64 compare,
			   u64 swap_add)
{
	struct arx_run run = pair_run(p, 1, op, WHOLE, psn, NULL, 0);

	run.h.compare = compare;
	run.h.swap_add = swap_add;
	pair_rx(p, 1, &run);
}

/* 9.4.5: executed once, answered as often as asked, with the first result. */
static void rdatomic__atomic_replay(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	u64 *word = (u64 *)p->side[1].buf;
	struct wire_run *w;
	int i;

	*word = 100;
	for (i = 0; i < 3; i++) {
		atomic_request(p, ARX_OP_FETCH_ADD, PSN, 0, 1);
		w = EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN);
		if (w)
			KUNIT_EXPECT_EQ(test, w->run.h.orig, 100);
		KUNIT_EXPECT_EQ(test, *word, 101);
	}
	atomic_request(p, ARX_OP_COMPARE_SWAP, PSN + 1, 101, 7);
	w = EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + 1);
	KUNIT_EXPECT_EQ(test, *word, 7);
	/* With two resources the one before is still remembered. */
	atomic_request(p, ARX_OP_FETCH_ADD, PSN, 0, 1);
	w = EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN);
	if (w)
		KUNIT_EXPECT_EQ(test, w->run.h.orig, 100);
	KUNIT_EXPECT_EQ(test, *word, 7);
	/* Not any more. */
	atomic_request(p, ARX_OP_FETCH_ADD, PSN + 2, 0, 1);
	EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + 2);
	atomic_request(p, ARX_OP_FETCH_ADD, PSN, 0, 1);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, *word, 8);
}

/* Executed once: a late duplicate must not undo what came after it. */
static void rdatomic__atomic_write_replay(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	u64 *word = (u64 *)p->side[1].buf;
	int i;

	fill(p->side[0].buf, 64, 1);
	request(p, ARX_OP_ATOMIC_WRITE, WHOLE, PSN, 0, 8);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	KUNIT_EXPECT_EQ(test, p->taken->run.len, 0);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf, p->side[0].buf, 8);
	for (i = 0; i < 3; i++) {
		*word = i;
		request(p, ARX_OP_ATOMIC_WRITE, WHOLE, PSN, 0, 8);
		EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
		KUNIT_EXPECT_EQ(test, *word, i);
	}
	/* Another request with this PSN is no duplicate. */
	request(p, ARX_OP_ATOMIC_WRITE, WHOLE, PSN, 8, 8);
	EXPECT_SILENT(test, p, 1);
	request(p, ARX_OP_READ, WHOLE, PSN, 0, 8);
	EXPECT_SILENT(test, p, 1);
	request(p, ARX_OP_ATOMIC_WRITE, WHOLE, PSN + 1, 8, 8);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 1);
	KUNIT_EXPECT_MEMEQ(test, p->side[1].buf + 8, p->side[0].buf + 8, 8);
	KUNIT_EXPECT_NULL(test, memchr_inv(p->side[1].buf + 16, 0, 64));
}

static void flush_request(struct pair *p, u32 psn, u8 placement, u8 selectivity,
			  u32 at, u32 len)
{
	struct arx_run run = pair_run(p, 1, ARX_OP_FLUSH, WHOLE, psn, NULL, 0);

	run.h.placement = placement;
	run.h.selectivity = selectivity;
	run.h.va += at;
	run.h.dma_len = len;
	pair_rx(p, 1, &run);
	pair_settle(p);
}

/*
 * Answered like a READ of no bytes. A whole region needs no range, and a range
 * of no bytes no key.
 */
static void rdatomic__flush(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_key *key = &p->side[1].mr.key;
	int i;

	for (i = 0; i < 2; i++) {
		flush_request(p, PSN, IB_FLUSH_GLOBAL, IB_FLUSH_RANGE, 0, BUF);
		EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
		KUNIT_EXPECT_EQ(test, p->taken->run.len, 0);
		KUNIT_EXPECT_EQ(test, p->taken->run.h.msn, 1);
	}
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_RX_FLUSHES), 1);
	flush_request(p, PSN + 1, IB_FLUSH_GLOBAL, IB_FLUSH_MR, BUF, 12345);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 1);
	key->value ^= 0x100;
	flush_request(p, PSN + 2, IB_FLUSH_GLOBAL, IB_FLUSH_RANGE, 0, 0);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 2);
	flush_request(p, PSN + 3, IB_FLUSH_GLOBAL, IB_FLUSH_MR, 0, 0);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_REM_ACCESS), PSN + 3);
}

/* What is written to a persistent region is written back at once. */
static void rdatomic__persistent(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *to = &p->side[1];

	to->mr.persistent = true;
	to->mr.key.access |= IB_ACCESS_FLUSH_PERSISTENT;
	fill(p->side[0].buf, BUF, 1);
	request(p, ARX_OP_WRITE, WHOLE | ARX_ACK_REQ, PSN, 0, 5 * MTU);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 4);
	KUNIT_EXPECT_MEMEQ(test, to->buf, p->side[0].buf, 5 * MTU);
	atomic_request(p, ARX_OP_FETCH_ADD, PSN + 5, 0, 1);
	EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + 5);
	request(p, ARX_OP_ATOMIC_WRITE, WHOLE, PSN + 6, BUF - 8, 8);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 6);
	flush_request(p, PSN + 7, IB_FLUSH_GLOBAL | IB_FLUSH_PERSISTENT,
		      IB_FLUSH_RANGE, 0, BUF);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 7);
}

/* A request that differs is no duplicate. */
static void rdatomic__replay_of_another(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_run run;

	request(p, ARX_OP_READ, WHOLE, PSN, 0, 4 * MTU);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	atomic_request(p, ARX_OP_FETCH_ADD, PSN, 0, 1);
	EXPECT_SILENT(test, p, 1);
	/* other bytes */
	request(p, ARX_OP_READ, WHOLE, PSN + 1, 0, MTU);
	EXPECT_SILENT(test, p, 1);
	request(p, ARX_OP_READ, WHOLE, PSN + 1, MTU, 4 * MTU);	/* more */
	EXPECT_SILENT(test, p, 1);
	request(p, ARX_OP_READ, WHOLE, PSN - 1, 0, MTU);	/* older */
	EXPECT_SILENT(test, p, 1);
	run = pair_run(p, 1, ARX_OP_READ, WHOLE, PSN, NULL, 0);
	run.h.dma_len = MTU;
	run.h.rkey ^= 1;
	pair_rx(p, 1, &run);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_RTS);
}

/* 9.7.5.1.4: the lost part is requested again. */
static void rdatomic__read_tail(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct wire_run *w;

	fill(p->side[1].buf, BUF, 3);
	request(p, ARX_OP_READ, WHOLE, PSN, 0, 4 * MTU);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	request(p, ARX_OP_READ, WHOLE, PSN + 2, 2 * MTU, 2 * MTU);
	w = EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 2);
	if (w) {
		KUNIT_EXPECT_EQ(test, w->run.npkts, 2);
		KUNIT_EXPECT_EQ(test, w->run.h.flags & (ARX_FIRST | ARX_LAST),
				ARX_FIRST | ARX_LAST);
		KUNIT_EXPECT_MEMEQ(test, w->data, p->side[1].buf + 2 * MTU,
				   2 * MTU);
	}
	/* The sequence continues after the whole READ. */
	request(p, ARX_OP_WRITE, WHOLE, PSN + 4, 0, 8);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 4);
}

/* Responses leave in the order of the requests. */
static void rdatomic__answers_in_order(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	p->blocked = true;
	request(p, ARX_OP_READ, WHOLE, PSN, 0, 2 * MTU);
	request(p, ARX_OP_WRITE, WHOLE, PSN + 2, 0, 8);
	atomic_request(p, ARX_OP_FETCH_ADD, PSN + 3, 0, 1);
	request(p, ARX_OP_WRITE, WHOLE, PSN + 4, 0, 8);
	p->blocked = false;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + 3);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + 4);
	EXPECT_SILENT(test, p, 1);
}

/* Responses that this machine drops are due again, in order, with the ACK. */
static void rdatomic__dropped(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct arx_resp *resp = &p->side[1].qp->resp;
	u32 run = ARX_TX_RUN_MAX / MTU;

	p->blocked = true;
	request(p, ARX_OP_READ, WHOLE, PSN, 0, (run + 2) * MTU);
	atomic_request(p, ARX_OP_FETCH_ADD, PSN + run + 2, 0, 1);
	request(p, ARX_OP_WRITE, WHOLE, PSN + run + 3, BUF / 2, 8);
	p->blocked = false;
	p->drops = true;

	p->room = 1;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&resp->due), 2);

	p->room = 2;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + run);
	EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + run + 2);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&resp->due));
	KUNIT_EXPECT_TRUE(test, resp->ack_due);

	p->drops = false;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + run + 3);
	EXPECT_SILENT(test, p, 1);
}

/* 9.7.7.1: more requests at a time than negotiated. */
static void rdatomic__too_many(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	int i;

	p->blocked = true;
	for (i = 0; i < 3; i++)
		request(p, ARX_OP_READ, WHOLE, PSN + i, 0, 8);
	p->blocked = false;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 1);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_INV_REQ), PSN + 2);
}

/* Duplicates that are not answered yet do not count. */
static void rdatomic__duplicates_do_not_count(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	int i;

	request(p, ARX_OP_READ, WHOLE, PSN, 0, 8);
	request(p, ARX_OP_READ, WHOLE, PSN + 1, 0, 8);
	drop_wire(p);
	p->blocked = true;
	for (i = 0; i < 20; i++)
		request(p, ARX_OP_READ, WHOLE, PSN + i % 2, 0, 8);
	request(p, ARX_OP_READ, WHOLE, PSN + 2, 0, 8);
	request(p, ARX_OP_READ, WHOLE, PSN + 3, 0, 8);
	p->blocked = false;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_RTS);
	while (pair_take(p, 1) &&
	       p->taken->run.h.psn != ((PSN + 2) & ARX_PSN_MASK))
		;
	KUNIT_EXPECT_NOT_NULL(test, p->taken);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 3);
	EXPECT_SILENT(test, p, 1);
}

/* A READ of two runs, half answered, and another one after it. */
static void half_answered(struct pair *p)
{
	p->on_send = pair_block_second;
	request(p, ARX_OP_READ, WHOLE, PSN, 0, 100 * MTU);
	request(p, ARX_OP_READ, WHOLE, PSN + 100, 0, 8);
	p->on_send = NULL;
}

static void unblock_responder(struct pair *p)
{
	p->blocked = false;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
}

/* The first run of the response had left; all of it follows once more. */
static void expect_answered_anew(struct kunit *test, struct pair *p)
{
	const u32 run = ARX_TX_RUN_MAX / MTU;

	unblock_responder(p);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + run);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 100);
	EXPECT_SILENT(test, p, 1);
}

/*
 * The network duplicated a READ whose response is half sent: the requester will
 * not ask for the later responses, so these must stay.
 */
static void rdatomic__duplicate_on_the_way(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);

	half_answered(p);
	request(p, ARX_OP_READ, WHOLE, PSN, 0, 100 * MTU);
	expect_answered_anew(test, p);
}

/*
 * The same for a READ that was answered: the response in progress starts again
 * after it.
 */
static void rdatomic__duplicate_of_an_older(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	const u32 run = ARX_TX_RUN_MAX / MTU;

	request(p, ARX_OP_READ, WHOLE, PSN, 0, 8);
	drop_wire(p);
	p->on_send = pair_block_second;
	request(p, ARX_OP_READ, WHOLE, PSN + 1, 0, 100 * MTU);
	p->on_send = NULL;
	request(p, ARX_OP_READ, WHOLE, PSN, 0, 8);
	unblock_responder(p);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 1);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 1);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN + 1 + run);
	EXPECT_SILENT(test, p, 1);
}

/*
 * A requester that went back asks for all of it: each request is answered once
 * more.
 */
static void rdatomic__all_again(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	int i;

	half_answered(p);
	for (i = 0; i < 2; i++) {
		request(p, ARX_OP_READ, WHOLE, PSN, 0, 100 * MTU);
		request(p, ARX_OP_READ, WHOLE, PSN + 100, 0, 8);
	}
	expect_answered_anew(test, p);
}

/* All counts wrap around one day, whatever the rings' sizes. */
static void rdatomic__counts_wrap(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_resp *resp;
	int i;

	p->attr.max_dest_rd_atomic = 3;
	pair_by_wire(test);
	resp = &p->side[1].qp->resp;
	resp->rd_next = U32_MAX - 1;
	for (i = 0; i < 3; i++) {
		atomic_request(p, ARX_OP_FETCH_ADD, PSN + i, 0, 1);
		EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + i);
	}
	for (i = 0; i < 3; i++) {
		atomic_request(p, ARX_OP_FETCH_ADD, PSN + i, 0, 1);
		EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + i);
	}
	KUNIT_EXPECT_EQ(test, *(u64 *)p->side[1].buf, 3);

	/* Responses that wait. */
	p->blocked = true;
	for (i = 3; i < 6; i++)
		atomic_request(p, ARX_OP_FETCH_ADD, PSN + i, 0, 1);
	unblock_responder(p);
	for (i = 3; i < 6; i++)
		EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + i);
}

/* The region is deregistered before a READ of it was answered. */
static void rdatomic__read_of_a_lost_region(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[1];

	p->blocked = true;
	request(p, ARX_OP_READ, WHOLE, PSN, 0, 2 * MTU);
	s->mr.key.state = ARX_KEY_FREE;
	p->blocked = false;
	arx_qp_schedule(s->qp);
	pair_settle(p);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_REM_ACCESS), PSN);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
}

/*
 * The requester may have got its data before a duplicate of the request was
 * answered, and may have reported so: then the end of the region harms no QP.
 */
static void rdatomic__replay_of_a_lost_region(struct kunit *test)
{
	struct pair *p = pair_by_wire(test);
	struct side *s = &p->side[1];

	request(p, ARX_OP_READ, WHOLE, PSN, 0, 2 * MTU);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	p->blocked = true;
	request(p, ARX_OP_READ, WHOLE, PSN, 0, 2 * MTU);
	atomic_request(p, ARX_OP_FETCH_ADD, PSN + 2, 0, 1);
	s->mr.key.state = ARX_KEY_FREE;
	p->blocked = false;
	arx_qp_schedule(s->qp);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
	EXPECT_SENT(test, p, 1, ARX_OP_ATOMIC_ACK, PSN + 2);
	EXPECT_SILENT(test, p, 1);
}

/* UD. */

static void ud_run(struct pair *p, struct arx_run *run, u32 len)
{
	static const u8 grh[ARX_GRH_LEN] = { 0x60, [39] = 9 };

	*run = pair_run(p, 1, ARX_OP_SEND, ARX_FIRST | ARX_LAST, 77,
			p->side[0].buf, len);
	run->npkts = 1;
	run->h.qkey = 0x1234;
	run->h.src_qpn = 0x99;
	run->grh = grh;
	run->vlan = 0xffff;
}

static void responder__ud(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct arx_run run;
	struct ib_wc wc;

	pair_connect(test, p, IB_QPT_UD);
	fill(p->side[0].buf, BUF, 1);

	/* No receive; a wrong Q_Key: nothing happens. */
	ud_run(p, &run, 100);
	pair_rx(p, 1, &run);
	pair_recv(p, 1, 7, 0, 140);
	pair_recv(p, 1, 1, 0, 140);
	ud_run(p, &run, 100);
	run.h.qkey++;
	pair_rx(p, 1, &run);
	EXPECT_NO_WC(test, &s->rcq);
	/*
	 * Too long: the receive reports it, and the next one gets a datagram
	 * that fits.
	 */
	ud_run(p, &run, 101);
	pair_rx(p, 1, &run);
	EXPECT_WC(test, &s->rcq, 7, IB_WC_LOC_LEN_ERR);
	EXPECT_NO_WC(test, &s->rcq);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->buf, 0, BUF));

	ud_run(p, &run, 100);
	pair_rx(p, 1, &run);
	wc = pair_poll(&s->rcq);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 1);
	KUNIT_EXPECT_EQ(test, wc.byte_len, 140);
	KUNIT_EXPECT_EQ(test, wc.src_qp, 0x99);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_GRH);
	KUNIT_EXPECT_MEMEQ(test, s->buf, run.grh, ARX_GRH_LEN);
	KUNIT_EXPECT_MEMEQ(test, s->buf + 40, p->side[0].buf, 100);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
}

static int ud_send_to(struct pair *p, u64 id, struct arx_ah *ah, u32 qpn,
		      u32 len, u32 qkey)
{
	const struct ib_send_wr *bad;
	struct ib_sge sge = {
		.addr = (uintptr_t)p->side[0].buf,
		.length = len,
		.lkey = p->dma->lkey,
	};
	struct ib_ud_wr wr = {
		.wr = {
			.wr_id = id,
			.opcode = IB_WR_SEND,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = IB_SEND_SIGNALED,
		},
		.ah = &ah->ib,
		.remote_qpn = qpn,
		.remote_qkey = qkey,
	};

	return arx_post_send(&p->side[0].qp->ib, &wr.wr, &bad);
}

static int ud_send(struct pair *p, u64 id, struct arx_ah *ah, u32 len, u32 qkey)
{
	int err = ud_send_to(p, id, ah, 5, len, qkey);

	pair_settle(p);
	return err;
}

/* An address vector lives as long as requests that use it. */
static void requester__ud(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	struct arx_ah ah = {};
	struct wire_run *w;

	pair_connect(test, p, IB_QPT_UD);
	ah.av = make_av(p);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah.av);
	KUNIT_EXPECT_EQ(test, ud_send(p, 1, &ah, 8, 0x777), 0);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	w = pair_take(p, 0);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.h.qkey, 0x777);
	KUNIT_EXPECT_EQ(test, w->run.h.qpn, 5);
	KUNIT_EXPECT_EQ(test, w->run.h.src_qpn, s->qp->id.nr);
	KUNIT_EXPECT_EQ(test, refcount_read(&ah.av->ref), 1);

	/* 10.2.5: the top bit means the QP's own Q_Key */
	KUNIT_EXPECT_EQ(test, ud_send(p, 2, &ah, 8, 0x80010000), 0);
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	w = pair_take(p, 0);
	KUNIT_ASSERT_NOT_NULL(test, w);
	KUNIT_EXPECT_EQ(test, w->run.h.qkey, 0x1234);

	/* Longer than a packet, then longer than any message. */
	KUNIT_EXPECT_EQ(test, ud_send(p, 3, &ah, 4097, 1), 0);
	EXPECT_WC(test, &s->scq, 3, IB_WC_LOC_LEN_ERR);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_SQE);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&ah.av->ref), 1);
	KUNIT_EXPECT_EQ(test, ud_send(p, 4, &ah, 0x80000001, 1), 0);
	EXPECT_WC(test, &s->scq, 4, IB_WC_LOC_LEN_ERR);
	KUNIT_EXPECT_EQ(test, refcount_read(&ah.av->ref), 1);

	/*
	 * Requests that were posted and never fetched drop their references,
	 * too.
	 */
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_SQD, 0), 0);
	KUNIT_EXPECT_EQ(test, ud_send(p, 5, &ah, 8, 1), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&ah.av->ref), 2);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, 0), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&ah.av->ref), 1);
	arx_av_put(ah.av);
}

/* Only datagrams to an address with a static rate wait for their time. */
static void requester__ud_static_rate(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_qp *qp;
	struct arx_ah slow = {}, fast = {};

	pair_connect(test, p, IB_QPT_UD);
	qp = p->side[0].qp;
	fast.av = make_av(p);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, fast.av);
	p->attr.ah_attr.static_rate = IB_RATE_5_GBPS;
	slow.av = make_av(p);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, slow.av);

	KUNIT_EXPECT_EQ(test, ud_send(p, 1, &fast, 8, 0x777), 0);
	KUNIT_EXPECT_NOT_NULL(test, pair_take(p, 0));
	KUNIT_EXPECT_NULL(test, qp->comp.cc);
	KUNIT_EXPECT_EQ(test, ud_send(p, 2, &slow, 8, 0x777), 0);
	KUNIT_EXPECT_NOT_NULL(test, pair_take(p, 0));
	KUNIT_ASSERT_NOT_NULL(test, qp->comp.cc);

	qp->comp.cc->next = ktime_get_ns() + 100 * NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, ud_send(p, 3, &fast, 8, 0x777), 0);
	KUNIT_EXPECT_NOT_NULL(test, pair_take(p, 0));
	KUNIT_EXPECT_EQ(test, ud_send(p, 4, &slow, 8, 0x777), 0);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_TRUE(test, hrtimer_is_queued(&qp->retry));
	hrtimer_cancel(&qp->retry);
	/* fq would delay the datagrams of a socket with a rate, all of them. */
	KUNIT_EXPECT_EQ(test, qp->tx_sk->sk_pacing_rate, ~0UL);
	qp->comp.cc->next = 0;
	arx_qp_schedule(qp);
	pair_settle(p);
	KUNIT_EXPECT_NOT_NULL(test, pair_take(p, 0));
	arx_av_put(slow.av);
	arx_av_put(fast.av);
}

/* A request without an address vector has no reference to drop. */
static void requester__ud_without_av(struct kunit *test)
{
	struct pair *p = test->priv;

	pair_connect(test, p, IB_QPT_UD);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_SQD, 0), 0);
	/* Like ib_drain_sq() with any QP. */
	KUNIT_EXPECT_EQ(test, pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, 0), 0);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->req.fetched, 1);
}

/* Loopback. */

struct stranger {
	const char *name;
	void (*set)(struct pair *p);
};

#define STRANGER(name, statement)			\
static void stranger_##name(struct pair *p)		\
{							\
	statement;					\
}

STRANGER(port, p->dev.port_active = false)
STRANGER(qpn, p->side[1].qp->attr.dest_qp_num ^= 1)
STRANGER(saddr, p->side[1].qp->av->saddr.s6_addr[3] ^= 1)
STRANGER(daddr, p->side[1].qp->av->daddr.s6_addr[3] ^= 1)
STRANGER(service, p->side[1].qp->service = ARX_SERVICE_UC)
STRANGER(gone, arx_ids_remove(&arx_qps, &p->side[1].qp->id))

static const struct stranger strangers[] = {
	{ "port down", stranger_port },
	{ "another QP's peer", stranger_qpn },
	{ "another source", stranger_saddr },
	{ "another destination", stranger_daddr },
	{ "another service", stranger_service },
	{ "gone", stranger_gone },
};

static void stranger_name(const struct stranger *s, char *name)
{
	strscpy(name, s->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(stranger, strangers, stranger_name);

/* Only to QPs that the wire would reach as well. */
static void loopback__strangers(struct kunit *test)
{
	const struct stranger *s = test->param_value;
	struct pair *p = test->priv;

	pair_connect(test, p, IB_QPT_RC);
	s->set(p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 8);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->resp.epsn, PSN);
}

/* Requests that are posted together get one response. */
static void loopback__one_answer(struct kunit *test)
{
	struct pair *p = test->priv;
	int i;

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	p->blocked = true;
	for (i = 0; i < 3; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, IB_SEND_SIGNALED, 0, 8);
	p->blocked = false;
	p->dev.port_active = true;
	pair_requester(p, 0);
	for (i = 0; i < 3; i++)
		EXPECT_WC(test, &p->side[0].scq, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, count_of(p, ARX_CNT_LOOPBACK_RUNS), 3 + 1);
}

/* A packet longer than the receiver's path MTU is refused as on the wire. */
static void loopback__mtu(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];

	pair_connect(test, p, IB_QPT_RC);
	p->side[1].qp->mtu = 256;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 256);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 257);
	EXPECT_WC(test, &s->scq, 2, IB_WC_REM_INV_REQ_ERR);
}

/* So is a response. */
static void loopback__mtu_of_a_read(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];

	pair_connect(test, p, IB_QPT_RC);
	s->qp->mtu = 256;
	pair_send(p, 0, IB_WR_RDMA_READ, 1, IB_SEND_SIGNALED, 0, 256);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	pair_send(p, 0, IB_WR_RDMA_READ, 2, IB_SEND_SIGNALED, 0, 257);
	EXPECT_WC(test, &s->scq, 2, IB_WC_BAD_RESP_ERR);
}

/* A bad lkey of the sender concerns the sender only. */
static void loopback__source_error(struct kunit *test)
{
	struct pair *p = test->priv;

	pair_connect(test, p, IB_QPT_RC);
	p->dma->lkey ^= 0x100;
	pair_recv(p, 1, 1, 0, 100);
	pair_send(p, 0, IB_WR_SEND, 2, 0, 0, 8);
	p->dma->lkey ^= 0x100;
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_RTS);
	EXPECT_NO_WC(test, &p->side[1].rcq);
}

/*
 * Faults of the sender's own memory. Whatever the peer would have answered, the
 * request fails before it reaches the peer.
 */
struct own_fault {
	const char *name;
	void (*set)(struct pair *p, struct ib_sge *sge);
};

#define OWN_FAULT(name, statement)					\
static void own_##name(struct pair *p, struct ib_sge *sge)		\
{									\
	statement;							\
}

OWN_FAULT(key, sge[0].lkey ^= 0x100)
OWN_FAULT(second, sge[1].lkey ^= 0x100)
OWN_FAULT(beyond, ({ sge[1].lkey = p->side[0].mr.key.value;
		     sge[1].addr = IOVA + BUF - 7; }))
OWN_FAULT(before, ({ sge[0].lkey = p->side[0].mr.key.value;
		     sge[0].addr = IOVA - 1; }))
OWN_FAULT(pd, ({ p->side[0].mr.key.pd = NULL;
		 sge[1].lkey = p->side[0].mr.key.value;
		 sge[1].addr = IOVA; }))
OWN_FAULT(state, ({ p->side[0].mr.key.state = ARX_KEY_FREE;
		    sge[1].lkey = p->side[0].mr.key.value;
		    sge[1].addr = IOVA; }))

static const struct own_fault own_faults[] = {
	{ "key", own_key },
	{ "key of the second", own_second },
	{ "second beyond", own_beyond },
	{ "first before", own_before },
	{ "foreign PD", own_pd },
	{ "no region any more", own_state },
};

static void own_fault_name(const struct own_fault *f, char *name)
{
	strscpy(name, f->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(own_fault, own_faults, own_fault_name);

/* Faults for which the peer would refuse the request, too. */
enum own_peer {
	PEER_READY, PEER_NOT_READY, PEER_SHORT, PEER_RKEY, PEER_ERR, OWN_PEERS
};

static const enum ib_wr_opcode own_ops[] = {
	IB_WR_SEND, IB_WR_SEND_WITH_IMM, IB_WR_RDMA_WRITE,
	IB_WR_RDMA_WRITE_WITH_IMM, IB_WR_RDMA_READ, IB_WR_ATOMIC_FETCH_AND_ADD,
	IB_WR_ATOMIC_WRITE,
};

/* Two pieces of 4 bytes, or one of 200,000 and one of 4. */
static void own_post(struct kunit *test, const struct own_fault *f,
		     enum ib_wr_opcode op, enum own_peer peer, int flags)
{
	bool atomic = op == IB_WR_ATOMIC_FETCH_AND_ADD;
	bool word = atomic || op == IB_WR_ATOMIC_WRITE;
	struct pair *p = test->priv;
	const struct ib_send_wr *bad;
	u32 rkey = p->side[1].mr.key.value ^ (peer == PEER_RKEY ? 0x100 : 0);
	struct ib_sge sge[2] = {
		{ .addr = (uintptr_t)p->side[0].buf,
		  .length = word || peer == PEER_READY ? 4 : 200000,
		  .lkey = p->dma->lkey },
		{ .addr = (uintptr_t)p->side[0].buf + BUF - 8,
		  .length = 4, .lkey = p->dma->lkey },
	};
	struct ib_atomic_wr a = {
		.remote_addr = IOVA, .rkey = rkey, .compare_add = 1,
	};
	struct ib_rdma_wr r = { .remote_addr = IOVA, .rkey = rkey };
	struct ib_send_wr *wr = atomic ? &a.wr : &r.wr;

	f->set(p, sge);
	wr->wr_id = 5;
	wr->opcode = op;
	wr->sg_list = sge;
	wr->num_sge = 2;
	wr->send_flags = flags;
	if (f->set == own_beyond) {	/* which has an entry of 8 bytes */
		sge[0].length -= 4;
		sge[1].length += 4;
	}
	KUNIT_ASSERT_EQ(test, 0, arx_post_send(&p->side[0].qp->ib, wr, &bad));
	pair_settle(p);
}

static void own_case(struct kunit *test, enum ib_wr_opcode op,
		     enum own_peer peer, bool wire, int flags)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	int i;

	for (i = 0; i < 2; i++) {
		p->attr.dest_qp_num = p->side[!i].qp->id.nr;
		pair_bring(test, p, i, IB_QPS_RTS);
	}
	p->dev.port_active = !wire;
	p->sent = 0;
	p->side[0].mr.key.pd = &p->pd.ib;
	p->side[0].mr.key.state = ARX_KEY_VALID;
	if (peer != PEER_NOT_READY)
		pair_recv(p, 1, 1, 0, peer == PEER_SHORT ? 4 : BUF);
	if (peer == PEER_ERR) {
		pair_modify(p, 1, IB_QPS_ERR, 0);
		pair_settle(p);
		EXPECT_WC(test, &s->rcq, 1, IB_WC_WR_FLUSH_ERR);
	}
	own_post(test, test->param_value, op, peer, flags);
	EXPECT_WC(test, &p->side[0].scq, 5, IB_WC_LOC_PROT_ERR);
	EXPECT_NO_WC(test, &p->side[0].scq);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, p->sent, 0);
	KUNIT_EXPECT_EQ(test, s->qp->state,
			peer == PEER_ERR ? IB_QPS_ERR : IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, s->qp->resp.epsn, PSN);
	KUNIT_EXPECT_FALSE(test, s->qp->resp.in_message);
	EXPECT_NO_WC(test, &s->rcq);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->buf, 0, BUF));
}

static void loopback__own_fault(struct kunit *test)
{
	struct pair *p = test->priv;
	enum own_peer peer;
	int i;

	pair_connect(test, p, IB_QPT_RC);
	for (i = 0; i < ARRAY_SIZE(own_ops); i++)
		for (peer = 0; peer < OWN_PEERS; peer++) {
			own_case(test, own_ops[i], peer, false,
				 IB_SEND_SIGNALED);
			own_case(test, own_ops[i], peer, false, 0);
			own_case(test, own_ops[i], peer, true,
				 IB_SEND_SIGNALED);
		}
}

/*
 * A key that is invalidated in the middle of a message: the first part stays.
 */
static void loopback__own_fault_later(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	const struct ib_send_wr *bad;
	struct ib_sge sge[2] = {
		{ .addr = IOVA, .length = 200000, .lkey = s->mr.key.value },
		{ .addr = IOVA, .length = 100000, .lkey = s->mr.key.value },
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = 5, .opcode = IB_WR_RDMA_WRITE,
			.sg_list = sge, .num_sge = 2,
		},
		.remote_addr = IOVA,
		.rkey = p->side[1].mr.key.value,
	};

	pair_by_wire(test);
	p->on_send = pair_block_second;
	KUNIT_ASSERT_EQ(test, 0, arx_post_send(&s->qp->ib, &wr.wr, &bad));
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	s->mr.key.state = ARX_KEY_FREE;
	p->on_send = NULL;
	p->blocked = false;
	pair_requester(p, 0);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	EXPECT_WC(test, &s->scq, 5, IB_WC_LOC_PROT_ERR);
	s->mr.key.state = ARX_KEY_VALID;
}

/*
 * A READ of an address without memory, by a key of all memory, is a remote
 * error.
 */
static void loopback__read_no_memory(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_mr *all;
	int wire;

	pair_connect(test, p, IB_QPT_RC);
	all = to_arx_mr(arx_get_dma_mr(&p->pd.ib, IB_ACCESS_REMOTE_READ));
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, all);
	for (wire = 0; wire < 2; wire++) {
		struct ib_sge sge = {
			.addr = (uintptr_t)p->side[0].buf,
			.length = PAGE_SIZE,
			.lkey = p->dma->lkey,
		};
		struct ib_rdma_wr wr = {
			.wr = {
				.wr_id = wire, .opcode = IB_WR_RDMA_READ,
				.sg_list = &sge, .num_sge = 1,
			},
			.remote_addr = -2 * PAGE_SIZE,
			.rkey = all->key.value,
		};
		const struct ib_send_wr *bad;
		int i;

		for (i = 0; i < 2; i++) {
			p->attr.dest_qp_num = p->side[!i].qp->id.nr;
			pair_bring(test, p, i, IB_QPS_RTS);
		}
		p->dev.port_active = !wire;
		arx_post_send(&p->side[0].qp->ib, &wr.wr, &bad);
		pair_pump(p);
		EXPECT_WC(test, &p->side[0].scq, wire, IB_WC_REM_ACCESS_ERR);
	}
	arx_dereg_mr(&all->ib, NULL);
}

/* A QP may be its own peer. */
static void loopback__to_itself(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];

	pair_make_qp(test, p, 0, IB_QPT_RC);
	p->attr.dest_qp_num = s->qp->id.nr;
	pair_bring(test, p, 0, IB_QPS_RTS);
	p->dev.port_active = true;
	fill(s->buf, BUF, 1);
	pair_recv(p, 0, 1, 200000, 100000);
	pair_send(p, 0, IB_WR_SEND, 2, IB_SEND_SIGNALED, 0, 100000);
	EXPECT_WC(test, &s->rcq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, s->buf + 200000, s->buf, 100000);
	KUNIT_EXPECT_EQ(test, p->sent, 0);
}

/*
 * A datagram has arrived when its sender's turn is over. (Through lo it would
 * wait for that CPU's softirq, and datagrams of another CPU would overtake it.)
 */
static void loopback__datagram(struct kunit *test)
{
	static const u8 grh[ARX_GRH_LEN] = {
		0x62, 0x40, 0, 0, 0, 8 + 12 + 8 + 104 + 4, 17, 64,
		[23] = 1, [39] = 1,
	};
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct arx_ah ah = {};
	struct ib_wc wc;

	pair_connect(test, p, IB_QPT_UD);
	p->attr.ah_attr.grh.traffic_class = 0x24;
	ah.av = make_av(p);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah.av);
	fill(p->side[0].buf, BUF, 1);
	pair_recv(p, 1, 1, 0, 200);

	local_bh_disable();
	KUNIT_EXPECT_EQ(test, ud_send_to(p, 2, &ah, s->qp->id.nr, 101, 0x1234),
			0);
	wc = pair_poll(&s->rcq);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, wc.wr_id, 1);
	KUNIT_EXPECT_EQ(test, wc.byte_len, 141);
	KUNIT_EXPECT_EQ(test, wc.src_qp, p->side[0].qp->id.nr);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_GRH);
	KUNIT_EXPECT_EQ(test, wc.network_hdr_type, RDMA_NETWORK_IPV6);
	KUNIT_EXPECT_FALSE(test, wc.wc_flags & (IB_WC_WITH_SMAC |
						IB_WC_WITH_VLAN));
	KUNIT_EXPECT_MEMEQ(test, s->buf, grh, ARX_GRH_LEN);
	KUNIT_EXPECT_MEMEQ(test, s->buf + 40, p->side[0].buf, 101);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->buf + 141, 0, BUF - 141));
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, p->sent, 0);
	arx_av_put(ah.av);
}

/* An IPv4 header is recognised by its checksum and its place. */
static void loopback__datagram_ipv4(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	u8 *gid = p->attr.ah_attr.grh.dgid.raw;
	struct arx_ah ah = {};
	struct iphdr *ip;

	pair_connect(test, p, IB_QPT_UD);
	memset(gid + 10, 0xff, 2);
	gid[12] = 192;
	ah.av = make_av(p);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah.av);
	memset(s->buf, 0xa5, ARX_GRH_LEN);
	pair_recv(p, 1, 1, 0, 200);
	KUNIT_EXPECT_EQ(test, 0,
			ud_send_to(p, 2, &ah, s->qp->id.nr, 8, 0x1234));
	EXPECT_WC(test, &s->rcq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->buf, 0, 20));
	ip = (void *)s->buf + 20;
	KUNIT_EXPECT_EQ(test, *(u8 *)ip, 0x45);
	KUNIT_EXPECT_EQ(test, ntohs(ip->tot_len), 20 + 8 + 12 + 8 + 8 + 4);
	KUNIT_EXPECT_EQ(test, ntohl(ip->saddr), 192 << 24 | 1);
	KUNIT_EXPECT_EQ(test, ntohl(ip->daddr), 192 << 24 | 1);
	KUNIT_EXPECT_EQ(test, ip_fast_csum(ip, 5), 0);
	arx_av_put(ah.av);
}

STRANGER(address, p->attr.ah_attr.grh.dgid.raw[0] ^= 1)

static const struct stranger ud_strangers[] = {
	{ "port down", stranger_port },
	{ "another destination", stranger_address },
	{ "another service", stranger_service },
	{ "gone", stranger_gone },
};

KUNIT_ARRAY_PARAM(ud_stranger, ud_strangers, stranger_name);

static void loopback__ud_strangers(struct kunit *test)
{
	const struct stranger *s = test->param_value;
	struct pair *p = test->priv;
	struct arx_ah ah = {};
	u32 qpn;

	pair_connect(test, p, IB_QPT_UD);
	ah.av = make_av(p);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah.av);
	qpn = p->side[1].qp->id.nr;
	s->set(p);
	pair_recv(p, 1, 1, 0, 200);
	KUNIT_EXPECT_EQ(test, ud_send_to(p, 2, &ah, qpn, 8, 0x1234), 0);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	EXPECT_NO_WC(test, &p->side[1].rcq);
	arx_av_put(ah.av);
}

/* The peer's device has this address as well, on another link. */
static void loopback__link_local(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_qp *qp;
	struct arx_dev *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct arx_ah ah = {};

	KUNIT_ASSERT_NOT_NULL(test, other);
	pair_connect(test, p, IB_QPT_UD);
	memcpy(p->attr.ah_attr.grh.dgid.raw, "\xfe\x80", 2);
	ah.av = make_av(p);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah.av);
	pair_recv(p, 1, 1, 0, 200);
	qp = p->side[1].qp;
	KUNIT_EXPECT_EQ(test, ud_send_to(p, 2, &ah, qp->id.nr, 8, 0x1234), 0);
	EXPECT_WC(test, &p->side[1].rcq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, p->sent, 0);

	other->netdev = p->dev.netdev;
	other->stats = p->dev.stats;
	other->port_active = true;
	qp->ib.device = &other->ib;
	KUNIT_EXPECT_EQ(test, ud_send_to(p, 3, &ah, qp->id.nr, 8, 0x1234), 0);
	qp->ib.device = &p->dev.ib;
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	EXPECT_NO_WC(test, &p->side[1].rcq);
	arx_av_put(ah.av);
}

/*
 * Each datagram goes to its own address vector, whichever others are sent with
 * it.
 */
static void loopback__datagrams_in_turn(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_ah here = {}, there = {};
	struct wire_run *w;
	u32 qpn;
	int i;

	pair_connect(test, p, IB_QPT_UD);
	qpn = p->side[1].qp->id.nr;
	here.av = make_av(p);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, here.av);
	p->attr.ah_attr.grh.dgid.raw[0] ^= 1;
	there.av = make_av(p);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, there.av);
	p->attr.ah_attr.grh.dgid.raw[0] ^= 1;
	for (i = 0; i < 4; i++)
		pair_recv(p, 1, i, 0, 200);

	/* Nothing is sent before all are posted. */
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_SQD, 0), 0);
	for (i = 0; i < 4; i++) {
		ud_send_to(p, 10, &there, 5, 8, 1);
		ud_send_to(p, 11, &here, qpn, 8, 0x1234);
		ud_send_to(p, 12, &here, 6, 8, 1);
	}
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	pair_settle(p);
	for (i = 0; i < 4; i++) {
		w = pair_take(p, 0);
		KUNIT_ASSERT_NOT_NULL(test, w);
		KUNIT_EXPECT_EQ(test, w->run.h.qpn, 5);
		KUNIT_EXPECT_PTR_EQ(test, w->av, there.av);
		w = pair_take(p, 0);
		KUNIT_ASSERT_NOT_NULL(test, w);
		KUNIT_EXPECT_EQ(test, w->run.h.qpn, 6);
		KUNIT_EXPECT_PTR_EQ(test, w->av, here.av);
		EXPECT_WC(test, &p->side[1].rcq, i, IB_WC_SUCCESS);
	}
	EXPECT_SILENT(test, p, 0);
	arx_av_put(here.av);
	arx_av_put(there.av);
}

/* A bad lkey of a datagram's sender uses up no receive WQE. */
static void loopback__datagram_source_error(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct arx_ah ah = {};
	int i;

	pair_connect(test, p, IB_QPT_UD);
	ah.av = make_av(p);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ah.av);
	pair_recv(p, 1, 1, 0, 200);
	p->dma->lkey ^= 0x100;
	KUNIT_EXPECT_EQ(test, 0,
			ud_send_to(p, 2, &ah, s->qp->id.nr, 8, 0x1234));
	p->dma->lkey ^= 0x100;
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_LOC_PROT_ERR);
	EXPECT_NO_WC(test, &s->rcq);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
	KUNIT_EXPECT_NULL(test, memchr_inv(s->buf, 0, BUF));

	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	KUNIT_EXPECT_EQ(test, 0,
			ud_send_to(p, 3, &ah, s->qp->id.nr, 8, 0x1234));
	EXPECT_WC(test, &p->side[0].scq, 3, IB_WC_SUCCESS);
	EXPECT_WC(test, &s->rcq, 1, IB_WC_SUCCESS);

	/* Nor do the peer's reasons to drop it hide it: no receive, Q_Key. */
	for (i = 0; i < 2; i++) {
		p->dma->lkey ^= 0x100;
		KUNIT_EXPECT_EQ(test, 0, ud_send_to(p, 4, &ah, s->qp->id.nr, 8,
						    0x1234 + i));
		p->dma->lkey ^= 0x100;
		EXPECT_WC(test, &p->side[0].scq, 4, IB_WC_LOC_PROT_ERR);
		KUNIT_EXPECT_EQ(test, p->side[0].qp->state, IB_QPS_SQE);
		KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	}
	arx_av_put(ah.av);
}

static struct kunit_case stages_cases[] = {
	KUNIT_CASE_PARAM(stages__exchange, exchange_gen_params),
	KUNIT_CASE_PARAM(stages__halves, exchange_gen_params),
	KUNIT_CASE(stages__atomic_write),
	KUNIT_CASE(stages__atomics),
	KUNIT_CASE(stages__atomics_of_halves),
	KUNIT_CASE_PARAM(stages__xrc, exchange_gen_params),
	KUNIT_CASE(stages__atomics_by_xrc),
	KUNIT_CASE(stages__uc),
	KUNIT_CASE(stages__uc_gap),
	KUNIT_CASE(stages__uc_too_long),
	KUNIT_CASE(stages__scatter_gather),
	KUNIT_CASE(stages__chaos),
	KUNIT_CASE(requester__window),
	KUNIT_CASE(requester__window_beside_reads),
	KUNIT_CASE(requester__refused_on_one_machine),
	KUNIT_CASE(requester__copies),
	KUNIT_CASE(requester__many_copies),
	KUNIT_CASE(requester__headers),
	KUNIT_CASE(requester__solicited),
	KUNIT_CASE(requester__fence),
	KUNIT_CASE(requester__max_rd_atomic),
	KUNIT_CASE(requester__flight),
	KUNIT_CASE(requester__turn_ends),
	KUNIT_CASE(requester__one_share_of_writes),
	KUNIT_CASE(requester__one_share_of_reads),
	KUNIT_CASE(requester__softirq_copies_little),
	KUNIT_CASE(requester__failed_is_charged),
	KUNIT_CASE(requester__failed_reads_little),
	KUNIT_CASE(requester__few_messages_are_charged),
	KUNIT_CASE(requester__little_for_an_ack),
	KUNIT_CASE(responder__little_for_a_read),
	KUNIT_CASE(requester__rnr_ended_is_progress),
	KUNIT_CASE(requester__no_reads_allowed),
	KUNIT_CASE(requester__longest_read),
	KUNIT_CASE(requester__selective_signalling),
	KUNIT_CASE(requester__local_error_in_order),
	KUNIT_CASE(requester__local_error_after_loss),
	KUNIT_CASE(requester__complete_before_failure),
	KUNIT_CASE_PARAM(requester__hostile_wqe, hostile_gen_params),
	KUNIT_CASE(requester__hostile_prod),
	KUNIT_CASE(requester__blocked),
	KUNIT_CASE(requester__dropped),
	KUNIT_CASE(requester__drops_all_arrive),
	KUNIT_CASE(requester__dropped_and_failed),
	KUNIT_CASE(requester__dropped_uc),
	KUNIT_CASE(requester__peer_goes_meanwhile),
	KUNIT_CASE(requester__turns_end),
	KUNIT_CASE(requester__ud),
	KUNIT_CASE(requester__ud_static_rate),
	KUNIT_CASE(requester__ud_without_av),
	KUNIT_CASE(local__reg_and_invalidate),
	KUNIT_CASE(local__invalidate_in_use),
	KUNIT_CASE(local__peer_invalidates_in_use),
	KUNIT_CASE(local__read_holds_region),
	KUNIT_CASE(local__send_holds_region),
	KUNIT_CASE(local__invalidates_its_source),
	KUNIT_CASE(local__reg_refused),
	KUNIT_CASE(local__bounded),
	KUNIT_CASE(local__once),
	KUNIT_CASE(local__overtaken),
	KUNIT_CASE(local__refused_behind),
	KUNIT_CASE(completer__coalesced),
	KUNIT_CASE(completer__out_of_window),
	KUNIT_CASE_PARAM(completer__nak, nak_gen_params),
	KUNIT_CASE(completer__sequence_nak),
	KUNIT_CASE(completer__retries),
	KUNIT_CASE(completer__timer_left_alone),
	KUNIT_CASE(completer__timer_not_needed),
	KUNIT_CASE(completer__timer_too_late),
	KUNIT_CASE(completer__time_of_a_retry),
	KUNIT_CASE(completer__blocked),
	KUNIT_CASE(completer__dropped),
	KUNIT_CASE(completer__timeout_turned_off),
	KUNIT_CASE(completer__paging),
	KUNIT_CASE(requester__own_job),
	KUNIT_CASE(completer__held),
	KUNIT_CASE(completer__held_less_and_less),
	KUNIT_CASE(completer__rnr),
	KUNIT_CASE(completer__rnr_for_ever),
	KUNIT_CASE(completer__rnr_small_steps),
	KUNIT_CASE(completer__implied_nak),
	KUNIT_CASE(completer__overlap),
	KUNIT_CASE_PARAM(completer__bad_response, bad_response_gen_params),
	KUNIT_CASE(completer__read_lkey),
	KUNIT_CASE(responder__duplicate),
	KUNIT_CASE(responder__partial_duplicate),
	KUNIT_CASE(responder__together),
	KUNIT_CASE(responder__waits),
	KUNIT_CASE(responder__waits_in_vain),
	KUNIT_CASE(responder__waits_until_error),
	KUNIT_CASE(responder__waits_until_failed),
	KUNIT_CASE(responder__waits_until_reset),
	KUNIT_CASE(responder__waits_until_destroyed),
	KUNIT_CASE(tx__max),
	KUNIT_CASE(responder__out_of_sequence),
	KUNIT_CASE(responder__rnr),
	KUNIT_CASE(responder__rnr_at_the_end),
	KUNIT_CASE(responder__invalidates_in_use),
	KUNIT_CASE_PARAM(responder__refuses, refusal_gen_params),
	KUNIT_CASE(responder__nak_first),
	KUNIT_CASE(responder__nak_too_late),
	KUNIT_CASE(responder__zero_length),
	KUNIT_CASE(responder__ud),
	KUNIT_CASE(rdatomic__atomic_replay),
	KUNIT_CASE(rdatomic__atomic_write_replay),
	KUNIT_CASE(rdatomic__flush),
	KUNIT_CASE(rdatomic__persistent),
	KUNIT_CASE(rdatomic__replay_of_another),
	KUNIT_CASE(rdatomic__read_tail),
	KUNIT_CASE(rdatomic__answers_in_order),
	KUNIT_CASE(rdatomic__dropped),
	KUNIT_CASE(rdatomic__too_many),
	KUNIT_CASE(rdatomic__duplicates_do_not_count),
	KUNIT_CASE(rdatomic__duplicate_on_the_way),
	KUNIT_CASE(rdatomic__duplicate_of_an_older),
	KUNIT_CASE(rdatomic__all_again),
	KUNIT_CASE(rdatomic__counts_wrap),
	KUNIT_CASE(rdatomic__read_of_a_lost_region),
	KUNIT_CASE(rdatomic__replay_of_a_lost_region),
	KUNIT_CASE_PARAM(loopback__strangers, stranger_gen_params),
	KUNIT_CASE(loopback__one_answer),
	KUNIT_CASE(loopback__mtu),
	KUNIT_CASE(loopback__mtu_of_a_read),
	KUNIT_CASE(loopback__source_error),
	KUNIT_CASE_PARAM(loopback__own_fault, own_fault_gen_params),
	KUNIT_CASE(loopback__own_fault_later),
	KUNIT_CASE(loopback__read_no_memory),
	KUNIT_CASE(loopback__to_itself),
	KUNIT_CASE(loopback__datagram),
	KUNIT_CASE(loopback__datagram_ipv4),
	KUNIT_CASE_PARAM(loopback__ud_strangers, ud_stranger_gen_params),
	KUNIT_CASE(loopback__link_local),
	KUNIT_CASE(loopback__datagrams_in_turn),
	KUNIT_CASE(loopback__datagram_source_error),
	{}
};

static struct kunit_suite stages_suite = {
	.name = "arx_stages",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = stages_cases,
};

kunit_test_suite(stages_suite);
