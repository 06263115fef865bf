// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qp.c: the states of a QP, their transitions, and which requests they flush.
 */

#include "qp_fixture.h"

static const char *state_name(enum ib_qp_state state)
{
	static const char *const names[] = {
		"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"
	};

	return names[state];
}

static const char *type_name(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return "RC";
	case IB_QPT_UC:
		return "UC";
	case IB_QPT_UD:
		return "UD";
	default:
		return "GSI";
	}
}

static const enum ib_qp_type types[] = {
	IB_QPT_RC, IB_QPT_UC, IB_QPT_UD, IB_QPT_GSI
};

static void describe_type(const enum ib_qp_type *type, char *name)
{
	strscpy(name, type_name(*type), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(type, types, describe_type);

/*
 * 10.3.1, figure 124. "Any state" may be left for RESET and, except for RESET
 * itself (it has nothing to flush, and the core does not allow it), for ERR.
 */
static bool may_go(enum ib_qp_type type, enum ib_qp_state from,
		   enum ib_qp_state to)
{
	if (to == IB_QPS_RESET)
		return true;
	if (to == IB_QPS_ERR)
		return from != IB_QPS_RESET;
	switch (from) {
	case IB_QPS_RESET:
		return to == IB_QPS_INIT;
	case IB_QPS_INIT:
		return to == IB_QPS_INIT || to == IB_QPS_RTR;
	case IB_QPS_RTR:
		return to == IB_QPS_RTS;
	case IB_QPS_RTS:
		return to == IB_QPS_RTS || to == IB_QPS_SQD;
	case IB_QPS_SQD:
		return to == IB_QPS_RTS || to == IB_QPS_SQD;
	case IB_QPS_SQE:
		return to == IB_QPS_RTS && type != IB_QPT_RC;
	default:
		return false;
	}
}

static void try_transition(struct kunit *test, enum ib_qp_state from,
			   enum ib_qp_state to)
{
	enum ib_qp_type type = *(const enum ib_qp_type *)test->param_value;
	int err = may_go(type, from, to) ? 0 : -EINVAL;
	struct pair *p = test->priv;

	pair_bring(test, p, 0, from);
	KUNIT_EXPECT_EQ_MSG(test, err, pair_modify(p, 0, to,
						   pair_required(type, from,
								 to)),
			    "%s to %s", state_name(from), state_name(to));
	KUNIT_EXPECT_EQ_MSG(test, p->side[0].qp->state, err ? from : to,
			    "%s to %s", state_name(from), state_name(to));
}

/* Each required attribute is really required. */
static void try_without(struct kunit *test, enum ib_qp_state from,
			enum ib_qp_state to)
{
	enum ib_qp_type type = *(const enum ib_qp_type *)test->param_value;
	int mask = pair_required(type, from, to);
	struct pair *p = test->priv;
	unsigned long bits = mask;
	int bit;

	pair_bring(test, p, 0, from);
	for_each_set_bit(bit, &bits, 32) {
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    pair_modify(p, 0, to, mask & ~BIT(bit)),
				    "%s to %s without bit %d", state_name(from),
				    state_name(to), bit);
		KUNIT_EXPECT_EQ(test, p->side[0].qp->state, from);
	}
}

static void qp__transitions(struct kunit *test)
{
	enum ib_qp_type type = *(const enum ib_qp_type *)test->param_value;
	enum ib_qp_state from, to;

	pair_make_qp(test, test->priv, 0, type);
	for (from = IB_QPS_RESET; from <= IB_QPS_ERR; from++) {
		if (type == IB_QPT_RC && from == IB_QPS_SQE)
			continue;	/* never given */
		for (to = IB_QPS_RESET; to <= IB_QPS_ERR; to++) {
			try_transition(test, from, to);
			try_without(test, from, to);
		}
	}
}

struct bad_attr {
	const char *name;
	enum ib_qp_state from;
	enum ib_qp_state to;
	int mask;
	void (*set)(struct ib_qp_attr *attr);
	int err;
};

#define SETTER(name, field, value)			\
static void set_##name(struct ib_qp_attr *attr)		\
{							\
	attr->field = value;				\
}

SETTER(port, port_num, 2)
SETTER(pkey, pkey_index, 1)
SETTER(mtu, path_mtu, 0)
SETTER(mtu_big, path_mtu, 6)
SETTER(rd, max_rd_atomic, ARX_MAX_RD_ATOMIC + 1)
SETTER(dest_rd, max_dest_rd_atomic, ARX_MAX_RD_ATOMIC + 1)
SETTER(timeout, timeout, 32)
SETTER(retries, retry_cnt, 8)
SETTER(rnr_retries, rnr_retry, 8)
SETTER(rnr_timer, min_rnr_timer, 32)
SETTER(cur, cur_qp_state, IB_QPS_RTR)
SETTER(nothing, alt_port_num, 0)

static const struct bad_attr bad_attrs[] = {
	{ "no such port", IB_QPS_RESET, IB_QPS_INIT, 0, set_port, -EINVAL },
	{ "no such P_Key", IB_QPS_RESET, IB_QPS_INIT, 0, set_pkey, -EINVAL },
	{ "no path MTU", IB_QPS_INIT, IB_QPS_RTR, 0, set_mtu, -EINVAL },
	{ "path MTU too large", IB_QPS_INIT, IB_QPS_RTR, 0, set_mtu_big,
	  -EINVAL },
	{ "too many READs", IB_QPS_RTR, IB_QPS_RTS, 0, set_rd, -EINVAL },
	{ "too many READs answered", IB_QPS_INIT, IB_QPS_RTR, 0, set_dest_rd,
	  -EINVAL },
	{ "timeout", IB_QPS_RTR, IB_QPS_RTS, 0, set_timeout, -EINVAL },
	{ "retries", IB_QPS_RTR, IB_QPS_RTS, 0, set_retries, -EINVAL },
	{ "RNR retries", IB_QPS_RTR, IB_QPS_RTS, 0, set_rnr_retries, -EINVAL },
	{ "RNR timer", IB_QPS_INIT, IB_QPS_RTR, 0, set_rnr_timer, -EINVAL },
	{ "not the state that was said", IB_QPS_INIT, IB_QPS_RTS,
	  IB_QP_CUR_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
	  IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC, set_cur, -EINVAL },
	{ "alternate path", IB_QPS_INIT, IB_QPS_RTR, IB_QP_ALT_PATH,
	  set_nothing, -EOPNOTSUPP },
	{ "migration", IB_QPS_INIT, IB_QPS_RTR, IB_QP_PATH_MIG_STATE,
	  set_nothing, -EOPNOTSUPP },
	{ "rate limit", IB_QPS_RTR, IB_QPS_RTS, IB_QP_RATE_LIMIT, set_nothing,
	  -EOPNOTSUPP },
	{ "Q_Key of RC", IB_QPS_RESET, IB_QPS_INIT, IB_QP_QKEY, set_nothing,
	  -EINVAL },
};

static void bad_attr_name(const struct bad_attr *b, char *name)
{
	strscpy(name, b->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad_attr, bad_attrs, bad_attr_name);

/* A refused modify changes nothing. */
static void qp__attributes_refused(struct kunit *test)
{
	const struct bad_attr *b = test->param_value;
	struct pair *p = test->priv;
	struct ib_qp_attr before;
	struct arx_qp *qp;
	int mask;

	pair_make_qp(test, p, 0, IB_QPT_RC);
	pair_bring(test, p, 0, b->from);
	qp = p->side[0].qp;
	mask = pair_required(IB_QPT_RC, b->from, b->to) | b->mask;
	before = qp->attr;

	b->set(&p->attr);
	KUNIT_EXPECT_EQ(test, pair_modify(p, 0, b->to, mask), b->err);
	KUNIT_EXPECT_EQ(test, qp->state, b->from);
	KUNIT_EXPECT_MEMEQ(test, &qp->attr, &before, sizeof(before));
}

static void qp__query(struct kunit *test)
{
	struct pair *p = test->priv;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	pair_make_qp(test, p, 0, IB_QPT_RC);
	p->attr.dest_qp_num = ABSENT_QPN;
	pair_bring(test, p, 0, IB_QPS_RTS);
	KUNIT_ASSERT_EQ(test, arx_query_qp(&p->side[0].qp->ib, &attr, 0, &init),
			0);
	KUNIT_EXPECT_EQ(test, attr.qp_state, IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, attr.path_mtu, IB_MTU_1024);
	KUNIT_EXPECT_EQ(test, attr.dest_qp_num, ABSENT_QPN);
	KUNIT_EXPECT_EQ(test, attr.rq_psn, PSN);
	KUNIT_EXPECT_EQ(test, attr.sq_psn, PSN);
	KUNIT_EXPECT_EQ(test, attr.max_rd_atomic, 2);
	KUNIT_EXPECT_EQ(test, attr.max_dest_rd_atomic, 2);
	KUNIT_EXPECT_EQ(test, attr.timeout, 31);
	KUNIT_EXPECT_EQ(test, attr.retry_cnt, 3);
	KUNIT_EXPECT_EQ(test, attr.rnr_retry, 2);
	KUNIT_EXPECT_EQ(test, attr.cap.max_send_wr, DEPTH);
	KUNIT_EXPECT_EQ(test, attr.cap.max_recv_wr, DEPTH);
	KUNIT_EXPECT_GE(test, attr.cap.max_inline_data, INLINE);
	KUNIT_EXPECT_PTR_EQ(test, init.send_cq, &p->side[0].scq.ib);
	KUNIT_EXPECT_EQ(test, init.qp_type, IB_QPT_RC);
}

static void qp__posting_by_state(struct kunit *test)
{
	static const struct {
		enum ib_qp_state state;
		bool send;
		bool recv;
	} may[] = {
		{ IB_QPS_RESET, false, false },
		{ IB_QPS_INIT, false, true },
		{ IB_QPS_RTR, false, true },
		{ IB_QPS_RTS, true, true },
		{ IB_QPS_SQD, true, true },
		{ IB_QPS_SQE, true, true },
		{ IB_QPS_ERR, true, true },
	};
	struct pair *p = test->priv;
	int i;

	pair_make_qp(test, p, 0, IB_QPT_UC);
	p->attr.dest_qp_num = ABSENT_QPN;
	for (i = 0; i < ARRAY_SIZE(may); i++) {
		pair_bring(test, p, 0, may[i].state);
		KUNIT_EXPECT_EQ_MSG(test, pair_send(p, 0, IB_WR_SEND, 1, 0, 0,
						    8),
				    may[i].send ? 0 : -EINVAL, "%s",
				    state_name(may[i].state));
		KUNIT_EXPECT_EQ_MSG(test, pair_recv(p, 0, 1, 0, 8),
				    may[i].recv ? 0 : -EINVAL, "%s",
				    state_name(may[i].state));
	}
}

static void qp__post_until_full(struct kunit *test)
{
	struct pair *p = test->priv;
	int i;

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	for (i = 0; i < DEPTH; i++)
		KUNIT_ASSERT_EQ(test, pair_send(p, 0, IB_WR_SEND, i, 0, 0, 8),
				0);
	KUNIT_EXPECT_EQ(test, pair_send(p, 0, IB_WR_SEND, i, 0, 0, 8), -ENOMEM);

	/* Only the slots of completed requests can be filled again. */
	for (i = 0; i < DEPTH - 1; i++)
		KUNIT_ASSERT_EQ(test, pair_recv(p, 1, i, 0, 8), 0);
	p->dev.port_active = true;
	pair_requester(p, 0);
	pair_pump(p);
	for (i = 0; i < DEPTH - 1; i++)
		KUNIT_ASSERT_EQ(test, pair_send(p, 0, IB_WR_SEND, i, 0, 0, 8),
				0);
	KUNIT_EXPECT_EQ(test, pair_send(p, 0, IB_WR_SEND, i, 0, 0, 8), -ENOMEM);
}

/* 10.3.1.7 ERR: all requests are flushed in order, posted before or after. */
static void qp__error_flushes(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	int i;

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, pair_send(p, 0, IB_WR_SEND, i, 0, 0, 8),
				0);
		KUNIT_ASSERT_EQ(test, pair_recv(p, 0, 10 + i, 0, 8), 0);
	}
	EXPECT_NO_WC(test, &s->scq);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_ERR, 0), 0);
	pair_settle(p);
	for (i = 0; i < 3; i++) {
		EXPECT_WC(test, &s->scq, i, IB_WC_WR_FLUSH_ERR);
		EXPECT_WC(test, &s->rcq, 10 + i, IB_WC_WR_FLUSH_ERR);
	}
	EXPECT_NO_WC(test, &s->scq);
	EXPECT_NO_WC(test, &s->rcq);

	/* Many times around both rings. */
	for (i = 0; i < 5 * DEPTH; i++) {
		KUNIT_ASSERT_EQ(test, pair_send(p, 0, IB_WR_SEND, i, 0, 0, 8),
				0);
		KUNIT_ASSERT_EQ(test, pair_recv(p, 0, i, 0, 8), 0);
		EXPECT_WC(test, &s->scq, i, IB_WC_WR_FLUSH_ERR);
		EXPECT_WC(test, &s->rcq, i, IB_WC_WR_FLUSH_ERR);
	}
}

/* Requests that the peer acknowledged before are not flushed. */
static void qp__error_in_order(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	int i;

	pair_connect(test, p, IB_QPT_RC);
	pair_recv(p, 1, 0, 0, 100);
	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_EQ(test, pair_send(p, 0, IB_WR_SEND, i, i % 2 ?
						IB_SEND_SIGNALED : 0, 0, 8),
				0);
	/* The first had a receive; the second waits for its RNR timer. */
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_ERR, 0), 0);
	pair_settle(p);
	for (i = 1; i < 4; i++)
		EXPECT_WC(test, &s->scq, i, IB_WC_WR_FLUSH_ERR);
	EXPECT_NO_WC(test, &s->scq);
}

/* Malformed WQEs of an application are flushed, too, and so are later ones. */
static void qp__error_flushes_malformed(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	struct arx_recv_wqe *wqe;
	int i;

	pair_connect(test, p, IB_QPT_RC);
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, pair_recv(p, 0, i, 0, 8), 0);
	wqe = arx_ring_entry(&s->qp->rq.ring, 1);
	wqe->num_sge = 1000;
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_ERR, 0), 0);
	pair_settle(p);
	EXPECT_WC(test, &s->rcq, 0, IB_WC_WR_FLUSH_ERR);
	EXPECT_WC(test, &s->rcq, 1, IB_WC_LOC_QP_OP_ERR);
	EXPECT_WC(test, &s->rcq, 2, IB_WC_WR_FLUSH_ERR);
	EXPECT_NO_WC(test, &s->rcq);

	/* A ring with an impossible index has no end: no WQE is flushed. */
	s->qp->rq.ring.hdr->prod += 2 * DEPTH;
	arx_qp_schedule(s->qp);
	pair_settle(p);
	EXPECT_NO_WC(test, &s->rcq);
	KUNIT_EXPECT_FALSE(test, work_pending(&s->qp->work));
}

/* A WQE that a message finds malformed completes with that status. */
static void qp__malformed_receive(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct arx_recv_wqe *wqe;

	pair_connect(test, p, IB_QPT_RC);
	pair_recv(p, 1, 1, 0, 8);
	pair_recv(p, 1, 2, 0, 8);
	wqe = arx_ring_entry(&s->qp->rq.ring, 0);
	wqe->num_sge = 1000;
	pair_send(p, 0, IB_WR_SEND, 3, IB_SEND_SIGNALED, 0, 8);
	EXPECT_WC(test, &p->side[0].scq, 3, IB_WC_REM_OP_ERR);
	EXPECT_WC(test, &s->rcq, 1, IB_WC_LOC_QP_OP_ERR);
	EXPECT_WC(test, &s->rcq, 2, IB_WC_WR_FLUSH_ERR);
}

/*
 * A QP that fails in the middle of a message completes the message's WQE first.
 */
static void qp__error_in_message(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_run run;

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	pair_recv(p, 1, 5, 0, 4096);
	pair_recv(p, 1, 6, 0, 4096);
	run = pair_run(p, 1, ARX_OP_SEND, ARX_FIRST, PSN, p->side[0].buf, MTU);
	KUNIT_EXPECT_EQ(test, pair_rx(p, 1, &run), 0);
	EXPECT_NO_WC(test, &p->side[1].rcq);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 1, IB_QPS_ERR, 0), 0);
	pair_settle(p);
	EXPECT_WC(test, &p->side[1].rcq, 5, IB_WC_WR_FLUSH_ERR);
	EXPECT_WC(test, &p->side[1].rcq, 6, IB_WC_WR_FLUSH_ERR);
	EXPECT_NO_WC(test, &p->side[1].rcq);
}

/* Malformed WQEs are flushed as well; no peer gets a NAK. */
static void qp__error_with_malformed(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct arx_recv_wqe *wqe;

	pair_connect(test, p, IB_QPT_RC);
	KUNIT_ASSERT_EQ(test, pair_recv(p, 1, 5, 0, 8), 0);
	KUNIT_ASSERT_EQ(test, pair_recv(p, 1, 6, 0, 8), 0);
	wqe = arx_ring_entry(&s->qp->rq.ring, 0);
	wqe->num_sge = SGES + 1;
	KUNIT_ASSERT_EQ(test, pair_modify(p, 1, IB_QPS_ERR, 0), 0);
	pair_settle(p);
	EXPECT_WC(test, &s->rcq, 5, IB_WC_LOC_QP_OP_ERR);
	EXPECT_WC(test, &s->rcq, 6, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_FALSE(test, s->qp->resp.ack_due);
	KUNIT_EXPECT_FALSE(test, s->qp->resp.dead);
}

/* An SRQ, which new QPs of @p use from now on. */
static struct arx_srq *make_srq(struct kunit *test, struct pair *p,
				struct arx_pd *pd)
{
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
	};
	struct arx_srq *srq = kunit_kzalloc(test, sizeof(*srq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, srq);
	srq->ib.device = &p->dev.ib;
	srq->ib.pd = &pd->ib;
	KUNIT_ASSERT_EQ(test, arx_create_srq(&srq->ib, &init, NULL), 0);
	p->srq = &srq->ib;
	return srq;
}

/* Kernel verbs leave an application's mapped ring alone. */
static void qp__not_by_kernel_verbs(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_srq *srq = make_srq(test, p, &p->pd);
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr wr = {};
	struct arx_qp *qp;

	srq->ib.uobject = (void *)p;	/* only its existence matters */
	KUNIT_EXPECT_EQ(test, arx_post_srq_recv(&srq->ib, &wr, &bad), -EINVAL);
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr);
	KUNIT_EXPECT_EQ(test, srq->q.ring.hdr->prod, 0);
	srq->ib.uobject = NULL;
	p->srq = NULL;
	arx_destroy_srq(&srq->ib, NULL);

	pair_connect(test, p, IB_QPT_RC);
	qp = p->side[0].qp;
	qp->ib.uobject = (void *)p;
	KUNIT_EXPECT_EQ(test, pair_send(p, 0, IB_WR_SEND, 1, 0, 0, 8), -EINVAL);
	KUNIT_EXPECT_EQ(test, qp->sq.hdr->prod, 0);
	KUNIT_EXPECT_EQ(test, pair_recv(p, 0, 1, 0, 8), -EINVAL);
	KUNIT_EXPECT_EQ(test, qp->rq.ring.hdr->prod, 0);
	qp->ib.uobject = NULL;
}

/* Of an SRQ only the QP's WQE is flushed; the QP then reports so, once. */
static void qp__error_with_srq(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_srq *srq = make_srq(test, p, &p->pd);
	struct side *s = &p->side[1];
	struct arx_run run;

	pair_srq_recv(test, p, srq, 5, p->dma->lkey, 4096);
	pair_srq_recv(test, p, srq, 6, p->dma->lkey, 4096);
	pair_make_qp(test, p, 1, IB_QPT_RC);
	p->attr.dest_qp_num = ABSENT_QPN;
	pair_bring(test, p, 1, IB_QPS_RTR);
	KUNIT_EXPECT_EQ(test, pair_recv(p, 1, 1, 0, 8), -EINVAL);

	run = pair_run(p, 1, ARX_OP_SEND, ARX_FIRST, PSN, p->side[0].buf, MTU);
	pair_rx(p, 1, &run);
	KUNIT_EXPECT_EQ(test, srq->q.cons, 1);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 1, IB_QPS_ERR, 0), 0);
	pair_settle(p);
	EXPECT_WC(test, &s->rcq, 5, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_QP_LAST_WQE_REACHED], 1);
	arx_qp_schedule(s->qp);
	pair_settle(p);
	EXPECT_NO_WC(test, &s->rcq);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_QP_LAST_WQE_REACHED], 1);
	KUNIT_EXPECT_EQ(test, srq->q.cons, 1);
	arx_destroy_qp(&s->qp->ib, NULL);
	s->qp = NULL;
	arx_destroy_srq(&srq->ib, NULL);
}

/* UC: a SEND that is too long uses up its WQE of an SRQ, a WRITE does not. */
static void qp__uc_with_srq(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_srq *srq = make_srq(test, p, &p->pd);
	struct side *s = &p->side[1];
	struct arx_run run;

	pair_srq_recv(test, p, srq, 5, p->dma->lkey, 100);
	pair_srq_recv(test, p, srq, 6, p->dma->lkey, 100);
	pair_connect(test, p, IB_QPT_UC);

	run = pair_run(p, 1, ARX_OP_WRITE, ARX_FIRST | ARX_LAST | ARX_IMM, PSN,
		       p->side[0].buf, 8);
	run.h.dma_len = 4;
	pair_rx(p, 1, &run);
	EXPECT_NO_WC(test, &s->rcq);
	run = pair_run(p, 1, ARX_OP_SEND, ARX_FIRST | ARX_LAST, PSN + 1,
		       p->side[0].buf, 101);
	pair_rx(p, 1, &run);
	EXPECT_WC(test, &s->rcq, 5, IB_WC_LOC_LEN_ERR);
	run = pair_run(p, 1, ARX_OP_SEND, ARX_FIRST | ARX_LAST, PSN + 2,
		       p->side[0].buf, 100);
	pair_rx(p, 1, &run);
	EXPECT_WC(test, &s->rcq, 6, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);

	arx_destroy_qp(&p->side[0].qp->ib, NULL);
	arx_destroy_qp(&s->qp->ib, NULL);
	p->side[0].qp = NULL;
	s->qp = NULL;
	arx_destroy_srq(&srq->ib, NULL);
}

/* 10.2.9.2: an SRQ has a PD of its own, which its receives must belong to. */
static void qp__srq_of_another_pd(struct kunit *test)
{
	struct arx_pd *pd = kunit_kzalloc(test, sizeof(*pd), GFP_KERNEL);
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct arx_srq *srq;
	struct ib_mr *dma;

	KUNIT_ASSERT_NOT_NULL(test, pd);
	pd->ib.device = &p->dev.ib;
	dma = arx_get_dma_mr(&pd->ib, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dma);
	srq = make_srq(test, p, pd);
	pair_connect(test, p, IB_QPT_RC);

	pair_srq_recv(test, p, srq, 1, dma->lkey, 100);
	pair_send(p, 0, IB_WR_SEND, 2, IB_SEND_SIGNALED, 0, 8);
	EXPECT_WC(test, &s->rcq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_SUCCESS);

	/* The QP's PD does not matter. */
	pair_srq_recv(test, p, srq, 1, p->dma->lkey, 100);
	pair_send(p, 0, IB_WR_SEND, 3, IB_SEND_SIGNALED, 0, 8);
	EXPECT_WC(test, &s->rcq, 1, IB_WC_LOC_PROT_ERR);
	EXPECT_WC(test, &p->side[0].scq, 3, IB_WC_REM_OP_ERR);

	arx_destroy_qp(&p->side[0].qp->ib, NULL);
	arx_destroy_qp(&s->qp->ib, NULL);
	p->side[0].qp = NULL;
	s->qp = NULL;
	arx_destroy_srq(&srq->ib, NULL);
	arx_dereg_mr(dma, NULL);
}

static atomic_t told;

static void tell_late(struct work_struct *work)
{
	msleep(100);
	atomic_inc(&told);
}

/* When ib_free_cq() follows, no handler is called any more. */
static void qp__destroyed_after_events(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];

	pair_connect(test, p, IB_QPT_RC);
	atomic_set(&told, 0);
	INIT_WORK(&s->scq.notify, tell_late);
	INIT_WORK(&s->rcq.notify, tell_late);
	queue_work(system_unbound_wq, &s->scq.notify);
	queue_work(system_unbound_wq, &s->rcq.notify);
	arx_destroy_qp(&s->qp->ib, NULL);
	s->qp = NULL;
	KUNIT_EXPECT_EQ(test, atomic_read(&told), 2);
}

/* A user who is still inside when a QP is destroyed cannot start it again. */
static void qp__destroyed(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	struct arx_qp *qp;

	pair_connect(test, p, IB_QPT_RC);
	qp = s->qp;
	arx_destroy_qp(&qp->ib, NULL);
	s->qp = NULL;
	KUNIT_EXPECT_FALSE(test, queue_work(system_bh_wq, &qp->work));
	KUNIT_EXPECT_FALSE(test, queue_work(system_bh_wq, &qp->move));
	cancel_work_sync(&qp->work);
	cancel_work_sync(&qp->move);
}

static void qp__reset_forgets(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	pair_send(p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED, 0, 8);
	pair_recv(p, 0, 2, 0, 8);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, 0), 0);
	pair_settle(p);
	EXPECT_NO_WC(test, &s->scq);
	EXPECT_NO_WC(test, &s->rcq);
	KUNIT_EXPECT_EQ(test, s->qp->sq.hdr->cons, s->qp->sq.hdr->prod);

	/* And it starts again, on both sides. */
	while (pair_take(p, -1))
		;
	p->dev.port_active = true;
	p->attr.dest_qp_num = p->side[1].qp->id.nr;
	pair_bring(test, p, 0, IB_QPS_RTS);
	p->attr.dest_qp_num = p->side[0].qp->id.nr;
	pair_bring(test, p, 1, IB_QPS_RTS);
	pair_recv(p, 1, 3, 0, 100);
	pair_send(p, 0, IB_WR_SEND, 4, IB_SEND_SIGNALED, 0, 8);
	EXPECT_WC(test, &s->scq, 4, IB_WC_SUCCESS);
	EXPECT_WC(test, &p->side[1].rcq, 3, IB_WC_SUCCESS);
}

/* 10.3.1.5 SQD: no further message begins, and RTS continues. */
static void qp__sqd_drains(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	p->attr.en_sqd_async_notify = 1;
	KUNIT_ASSERT_EQ(test, 0, pair_modify(p, 0, IB_QPS_SQD,
					     IB_QP_EN_SQD_ASYNC_NOTIFY));
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 0);
	KUNIT_EXPECT_EQ(test, p->sent, 1);

	pair_pump(p);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 1);
	EXPECT_NO_WC(test, &s->scq);

	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	pair_pump(p);
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 1);
}

/* Packets lost in SQD are sent again, and the queue is not drained before. */
static void qp__sqd_retransmits(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	p->lost = true;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 3 * MTU);
	p->lost = false;
	p->attr.en_sqd_async_notify = 1;
	KUNIT_ASSERT_EQ(test, 0, pair_modify(p, 0, IB_QPS_SQD,
					     IB_QP_EN_SQD_ASYNC_NOTIFY));
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, IB_SEND_SIGNALED, 0, 8);

	p->sent = 0;
	pair_timeout(p, 0);
	KUNIT_EXPECT_EQ(test, p->sent, 2);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 0);
	arx_query_qp(&s->qp->ib, &attr, 0, &init);
	KUNIT_EXPECT_EQ(test, attr.sq_draining, 1);
	pair_pump(p);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &s->scq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 1);
	arx_query_qp(&s->qp->ib, &attr, 0, &init);
	KUNIT_EXPECT_EQ(test, attr.sq_draining, 0);
	EXPECT_NO_WC(test, &s->scq);
}

/* Nothing in flight: drained at once, and reported once. */
static void qp__sqd_idle(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];

	pair_connect(test, p, IB_QPT_RC);
	p->attr.en_sqd_async_notify = 1;
	KUNIT_ASSERT_EQ(test, 0, pair_modify(p, 0, IB_QPS_SQD,
					     IB_QP_EN_SQD_ASYNC_NOTIFY));
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 1);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, 0, 0, 8);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 1);
}

/* A failed message took PSNs that were never sent: UC does not wait for it. */
static void qp__sqd_after_sqe(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];

	pair_connect(test, p, IB_QPT_UC);
	p->dev.port_active = false;
	p->dma->lkey ^= 0x100;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 3 * MTU);
	p->dma->lkey ^= 0x100;
	EXPECT_WC(test, &s->scq, 1, IB_WC_LOC_PROT_ERR);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	p->attr.en_sqd_async_notify = 1;
	KUNIT_ASSERT_EQ(test, 0, pair_modify(p, 0, IB_QPS_SQD,
					     IB_QP_EN_SQD_ASYNC_NOTIFY));
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 1);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, 0, 0, 8);
	KUNIT_EXPECT_EQ(test, p->sent, 0);
}

/* Each SQD has its own request for the event. */
static void qp__sqd_event_asked_for(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];

	pair_connect(test, p, IB_QPT_RC);
	p->attr.en_sqd_async_notify = 1;
	KUNIT_ASSERT_EQ(test, 0, pair_modify(p, 0, IB_QPS_SQD,
					     IB_QP_EN_SQD_ASYNC_NOTIFY));
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 1);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_SQD, 0), 0);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 1);
}

/*
 * 10.3.1: requests that were posted before SQE was left are flushed, however
 * many of them one turn can flush. Requests posted afterwards are sent.
 */
static void qp__sqe_flushes_all(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	int i;

	pair_connect(test, p, IB_QPT_UC);
	p->dev.port_active = false;
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_SQD, 0), 0);
	p->dma->lkey ^= 0x100;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 0, 0, 0, 8);
	p->dma->lkey ^= 0x100;
	for (i = 1; i < 8; i++)
		pair_send(p, 0, IB_WR_RDMA_WRITE, i, 0, 0, 8);
	/* no other context flushes the rest meanwhile */
	disable_work_sync(&s->qp->work);
	local_bh_disable();
	pair_steps(p, 0, IB_QPS_RTS, 4);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_SQE);
	KUNIT_EXPECT_EQ(test, s->qp->req.sent, 4);
	KUNIT_EXPECT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	enable_work(&s->qp->work);

	pair_send(p, 0, IB_WR_RDMA_WRITE, 8, IB_SEND_SIGNALED, 0, 8);
	EXPECT_WC(test, &s->scq, 0, IB_WC_LOC_PROT_ERR);
	for (i = 1; i < 8; i++)
		EXPECT_WC(test, &s->scq, i, IB_WC_WR_FLUSH_ERR);
	EXPECT_WC(test, &s->scq, 8, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
}

/* A message that stopped before its first packet does not begin in SQD. */
static void qp__sqd_held_up(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	p->blocked = true;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	p->blocked = false;
	p->attr.en_sqd_async_notify = 1;
	KUNIT_ASSERT_EQ(test, 0, pair_modify(p, 0, IB_QPS_SQD,
					     IB_QP_EN_SQD_ASYNC_NOTIFY));
	pair_requester(p, 0);
	KUNIT_EXPECT_EQ(test, p->sent, 0);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SQ_DRAINED], 1);

	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	pair_pump(p);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
}

/* A partly sent message is not drained. */
static void qp__sqd_half_sent(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	p->on_send = pair_block_second;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 300 * MTU);
	KUNIT_ASSERT_EQ(test, p->sent, 1);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_SQD, 0), 0);
	arx_query_qp(&s->qp->ib, &attr, 0, &init);
	KUNIT_EXPECT_EQ(test, attr.sq_draining, 1);
}

/* Requests after a send that failed are not sent, whatever changes. */
static void qp__failed_stays_so(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	p->dma->lkey ^= 0x100;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, IB_SEND_SIGNALED, 0, 8);
	p->dma->lkey ^= 0x100;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, IB_SEND_SIGNALED, 0, 8);
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	KUNIT_ASSERT_EQ(test, 0, pair_modify(p, 0, IB_QPS_RTS,
					     IB_QP_MIN_RNR_TIMER));
	KUNIT_EXPECT_EQ(test, p->sent, 1);
	pair_pump(p);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	EXPECT_WC(test, &s->scq, 2, IB_WC_LOC_PROT_ERR);
	EXPECT_WC(test, &s->scq, 3, IB_WC_WR_FLUSH_ERR);
}

/* After a lost completion, on either side, the QP cannot be used. */
static void qp__cq_overrun(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *a = &p->side[0], *b = &p->side[1];

	pair_connect(test, p, IB_QPT_RC);
	pair_recv(p, 1, 1, 0, 8);
	b->rcq.overflown = true;
	pair_send(p, 0, IB_WR_SEND, 2, IB_SEND_SIGNALED, 0, 8);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, b->qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, b->events[IB_EVENT_QP_FATAL], 1);

	a->scq.overflown = true;
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RESET, 0), 0);
	p->attr.dest_qp_num = a->qp->id.nr;
	pair_bring(test, p, 0, IB_QPS_RTS);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, IB_SEND_SIGNALED, 0, 0);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, a->qp->state, IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, a->events[IB_EVENT_QP_FATAL], 1);
}

/* 10.3.1.6 SQE: UC flushes its sends, still receives, and recovers. */
static void qp__sqe_recovers(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	struct arx_run run;

	pair_connect(test, p, IB_QPT_UC);
	KUNIT_ASSERT_EQ(test, pair_recv(p, 0, 20, 0, 100), 0);
	p->dma->lkey ^= 1;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, 0, 0, 8);
	p->dma->lkey ^= 1;
	pair_send(p, 0, IB_WR_RDMA_WRITE, 2, 0, 0, 8);
	EXPECT_WC(test, &s->scq, 1, IB_WC_LOC_PROT_ERR);
	EXPECT_WC(test, &s->scq, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_SQE);

	run = pair_run(p, 0, ARX_OP_SEND, ARX_FIRST | ARX_LAST, PSN,
		       p->side[1].buf, 8);
	pair_rx(p, 0, &run);
	EXPECT_WC(test, &s->rcq, 20, IB_WC_SUCCESS);

	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_RTS, 0), 0);
	memset(s->buf, 0x77, 8);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 3, IB_SEND_SIGNALED, 0, 8);
	EXPECT_WC(test, &s->scq, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, p->side[1].buf[7], 0x77);
}

/* COMM_EST: 11.6.3.1, once */
static void qp__communication_established(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_run run;
	int i;

	pair_make_qp(test, p, 0, IB_QPT_RC);
	p->attr.dest_qp_num = ABSENT_QPN;
	pair_bring(test, p, 0, IB_QPS_RTR);
	for (i = 0; i < 2; i++) {
		run = pair_run(p, 0, ARX_OP_WRITE, ARX_FIRST | ARX_LAST,
			       PSN + i, p->side[1].buf, 0);
		pair_rx(p, 0, &run);
		KUNIT_EXPECT_EQ(test, p->side[0].events[IB_EVENT_COMM_EST], 1);
	}
}

static void qp__silent_before_rtr(struct kunit *test)
{
	struct pair *p = test->priv;
	struct arx_run run;

	pair_make_qp(test, p, 0, IB_QPT_RC);
	p->attr.dest_qp_num = ABSENT_QPN;
	pair_bring(test, p, 0, IB_QPS_INIT);
	run = pair_run(p, 0, ARX_OP_WRITE, ARX_FIRST | ARX_LAST | ARX_ACK_REQ,
		       PSN, p->side[1].buf, 0);
	pair_rx(p, 0, &run);
	EXPECT_SILENT(test, p, 0);
	pair_bring(test, p, 0, IB_QPS_RTR);
	pair_rx(p, 0, &run);
	EXPECT_ANSWER(test, p, 0, ARX_ACK_UNLIMITED, PSN);
}

/*
 * A QP without a responder drops requests, from the wire and on one machine,
 * and has no receive queue.
 */
static void qp__without_responder(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[0];
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	struct arx_run run;
	int i;

	pair_connect_halves(test, p);
	KUNIT_ASSERT_EQ(test, arx_query_qp(&s->qp->ib, &attr, 0, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.cap.max_send_wr, DEPTH);
	KUNIT_EXPECT_EQ(test, attr.cap.max_recv_wr, 0);
	KUNIT_EXPECT_EQ(test, attr.cap.max_recv_sge, 0);
	KUNIT_EXPECT_EQ(test, pair_recv(p, 0, 1, 0, 8), -EINVAL);

	run = pair_run(p, 0, ARX_OP_WRITE, ARX_FIRST | ARX_LAST | ARX_ACK_REQ,
		       PSN, p->side[1].buf, 0);
	pair_rx(p, 0, &run);
	run = pair_run(p, 0, ARX_OP_READ, ARX_FIRST | ARX_LAST, PSN, NULL, 0);
	pair_rx(p, 0, &run);
	pair_settle(p);
	EXPECT_SILENT(test, p, 0);
	KUNIT_EXPECT_EQ(test, s->qp->resp.epsn, PSN);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_COMM_EST], 0);

	/* Its own requests are flushed, and it can be used again. */
	p->dev.port_active = false;
	for (i = 0; i < 3; i++)
		pair_send(p, 0, IB_WR_SEND, i, 0, 0, 8);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 0, IB_QPS_ERR, 0), 0);
	pair_settle(p);
	for (i = 0; i < 3; i++)
		EXPECT_WC(test, &s->scq, i, IB_WC_WR_FLUSH_ERR);
	EXPECT_NO_WC(test, &s->rcq);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_QP_LAST_WQE_REACHED], 0);
	while (pair_take(p, 0))
		;
	pair_bring(test, p, 0, IB_QPS_RTS);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 9, 0, 0, 8);
	EXPECT_SENT(test, p, 0, ARX_OP_WRITE, PSN);
}

/*
 * Two requesters that name each other: on one machine, too, neither answers.
 */
static void qp__two_requesters(struct kunit *test)
{
	struct pair *p = test->priv;
	int i;

	for (i = 0; i < 2; i++)
		pair_make_half(test, p, i, ARX_QP_REQUESTER);
	pair_join(test, p);
	pair_send(p, 0, IB_WR_RDMA_WRITE, 1, IB_SEND_SIGNALED, 0, 8);
	pair_send(p, 0, IB_WR_RDMA_READ, 2, IB_SEND_SIGNALED, 0, 8);
	EXPECT_NO_WC(test, &p->side[0].scq);
	for (i = 0; i < 5; i++)
		pair_timeout(p, 0);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_RETRY_EXC_ERR);
	EXPECT_WC(test, &p->side[0].scq, 2, IB_WC_WR_FLUSH_ERR);
}

/*
 * A QP without a requester ignores acknowledgments, and has no send queue: the
 * works, a reset and the timers' end find none.
 */
static void qp__without_requester(struct kunit *test)
{
	struct pair *p = test->priv;
	struct side *s = &p->side[1];
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	struct arx_run run;
	int i;

	pair_connect_halves(test, p);
	p->dev.port_active = false;
	KUNIT_ASSERT_EQ(test, arx_query_qp(&s->qp->ib, &attr, 0, &init), 0);
	KUNIT_EXPECT_EQ(test, attr.cap.max_send_wr, 0);
	KUNIT_EXPECT_EQ(test, attr.cap.max_send_sge, 0);
	KUNIT_EXPECT_EQ(test, attr.cap.max_inline_data, 0);
	KUNIT_EXPECT_EQ(test, attr.cap.max_recv_wr, DEPTH);
	KUNIT_EXPECT_EQ(test, pair_send(p, 1, IB_WR_SEND, 1, 0, 0, 8), -EINVAL);

	run = pair_run(p, 1, ARX_OP_ACK, ARX_FIRST | ARX_LAST, PSN, NULL, 0);
	pair_rx(p, 1, &run);
	run.h.syndrome = ARX_NAK(ARX_NAK_REM_OP);
	pair_rx(p, 1, &run);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
	EXPECT_NO_WC(test, &s->scq);

	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, pair_recv(p, 1, i, 0, 8), 0);
	KUNIT_ASSERT_EQ(test, pair_modify(p, 1, IB_QPS_ERR, 0), 0);
	pair_settle(p);
	for (i = 0; i < 3; i++)
		EXPECT_WC(test, &s->rcq, i, IB_WC_WR_FLUSH_ERR);
	pair_bring(test, p, 1, IB_QPS_RTS);
	arx_qp_schedule(s->qp);
	pair_settle(p);
	run = pair_run(p, 1, ARX_OP_WRITE, ARX_FIRST | ARX_LAST | ARX_ACK_REQ,
		       PSN, p->side[0].buf, 0);
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN);
}

static void qp__create_refused(struct kunit *test)
{
	static const struct ib_qp_cap good = {
		.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
		.max_recv_sge = 1,
	};
	struct pair *p = test->priv;
	struct ib_qp_init_attr init = {
		.send_cq = &p->side[0].scq.ib,
		.recv_cq = &p->side[0].rcq.ib,
		.qp_type = IB_QPT_RC,
		.cap = good,
	};
	struct arx_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->ib.device = &p->dev.ib;
	qp->ib.pd = &p->pd.ib;

#define REFUSED(field, value, error) do {				\
	struct ib_qp_init_attr bad = init;				\
									\
	bad.field = value;						\
	KUNIT_EXPECT_EQ(test, arx_create_qp(&qp->ib, &bad, NULL), error);\
} while (0)

	REFUSED(qp_type, IB_QPT_XRC_INI, -EOPNOTSUPP);
	REFUSED(qp_type, IB_QPT_XRC_TGT, -EINVAL);
	REFUSED(qp_type, IB_QPT_RAW_PACKET, -EOPNOTSUPP);
	REFUSED(create_flags, IB_QP_CREATE_NETIF_QP, -EOPNOTSUPP);
	REFUSED(send_cq, NULL, -EINVAL);
	REFUSED(recv_cq, NULL, -EINVAL);
	REFUSED(cap.max_send_wr, ARX_MAX_QP_WR + 1, -EINVAL);
	REFUSED(cap.max_recv_wr, ARX_MAX_QP_WR + 1, -EINVAL);
	REFUSED(cap.max_send_sge, ARX_MAX_SGE + 1, -EINVAL);
	REFUSED(cap.max_recv_sge, ARX_MAX_SGE + 1, -EINVAL);
	REFUSED(cap.max_inline_data, ARX_MAX_INLINE + 1, -EINVAL);
}

/* A query returns the granted sizes. */
static void qp__caps_granted(struct kunit *test)
{
	static const struct ib_qp_cap caps[] = {
		{ .max_send_wr = 0, .max_recv_wr = 0 },
		{ .max_send_wr = 5, .max_recv_wr = 5, .max_send_sge = 2,
		  .max_recv_sge = 3, .max_inline_data = 7 },
	};
	struct pair *p = test->priv;
	struct ib_qp_init_attr init, query;
	struct ib_qp_attr attr;
	struct arx_qp *qp;
	int i;

	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, qp);
		init = (struct ib_qp_init_attr) {
			.send_cq = &p->side[0].scq.ib,
			.recv_cq = &p->side[0].rcq.ib,
			.qp_type = IB_QPT_RC,
			.cap = caps[i],
		};
		qp->ib.device = &p->dev.ib;
		qp->ib.pd = &p->pd.ib;
		qp->ib.qp_type = IB_QPT_RC;
		qp->ib.send_cq = init.send_cq;
		qp->ib.recv_cq = init.recv_cq;
		KUNIT_ASSERT_EQ(test, arx_create_qp(&qp->ib, &init, NULL), 0);
		KUNIT_EXPECT_EQ(test, arx_query_qp(&qp->ib, &attr, 0, &query),
				0);
		KUNIT_EXPECT_GE(test, init.cap.max_recv_wr,
				caps[i].max_recv_wr);
		KUNIT_EXPECT_MEMEQ(test, &init.cap, &attr.cap,
				   sizeof(attr.cap));
		arx_destroy_qp(&qp->ib, NULL);
	}
}

static void qp__one_gsi(struct kunit *test)
{
	struct pair *p = test->priv;
	struct ib_qp_init_attr init = {
		.send_cq = &p->side[0].scq.ib,
		.recv_cq = &p->side[0].rcq.ib,
		.qp_type = IB_QPT_GSI,
	};
	struct arx_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	pair_make_qp(test, p, 0, IB_QPT_GSI);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->ib.qp_num, 1);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->ib.device = &p->dev.ib;
	qp->ib.pd = &p->pd.ib;
	qp->ib.qp_type = IB_QPT_GSI;
	KUNIT_EXPECT_EQ(test, arx_create_qp(&qp->ib, &init, NULL), -EBUSY);
}

static struct kunit_case qp_cases[] = {
	KUNIT_CASE_PARAM(qp__transitions, type_gen_params),
	KUNIT_CASE_PARAM(qp__attributes_refused, bad_attr_gen_params),
	KUNIT_CASE(qp__query),
	KUNIT_CASE(qp__posting_by_state),
	KUNIT_CASE(qp__post_until_full),
	KUNIT_CASE(qp__without_responder),
	KUNIT_CASE(qp__two_requesters),
	KUNIT_CASE(qp__without_requester),
	KUNIT_CASE(qp__error_flushes),
	KUNIT_CASE(qp__error_in_order),
	KUNIT_CASE(qp__error_in_message),
	KUNIT_CASE(qp__error_flushes_malformed),
	KUNIT_CASE(qp__malformed_receive),
	KUNIT_CASE(qp__error_with_malformed),
	KUNIT_CASE(qp__not_by_kernel_verbs),
	KUNIT_CASE(qp__error_with_srq),
	KUNIT_CASE(qp__uc_with_srq),
	KUNIT_CASE(qp__srq_of_another_pd),
	KUNIT_CASE(qp__destroyed),
	KUNIT_CASE(qp__destroyed_after_events),
	KUNIT_CASE(qp__reset_forgets),
	KUNIT_CASE(qp__sqd_drains),
	KUNIT_CASE(qp__sqd_retransmits),
	KUNIT_CASE(qp__sqd_idle),
	KUNIT_CASE(qp__sqd_after_sqe),
	KUNIT_CASE(qp__sqd_event_asked_for),
	KUNIT_CASE(qp__sqd_half_sent),
	KUNIT_CASE(qp__sqd_held_up),
	KUNIT_CASE(qp__sqe_flushes_all),
	KUNIT_CASE(qp__failed_stays_so),
	KUNIT_CASE(qp__cq_overrun),
	KUNIT_CASE(qp__sqe_recovers),
	KUNIT_CASE(qp__communication_established),
	KUNIT_CASE(qp__silent_before_rtr),
	KUNIT_CASE(qp__create_refused),
	KUNIT_CASE(qp__caps_granted),
	KUNIT_CASE(qp__one_gsi),
	{}
};

static struct kunit_suite qp_suite = {
	.name = "arx_qp",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = qp_cases,
};

kunit_test_suite(qp_suite);
