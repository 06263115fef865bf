// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC at the target: each message is received where its XRCETH says, and what
 * happens when there is no such SRQ, or no longer. Whole exchanges are in
 * stages_kunit.c.
 */

#include <linux/delay.h>
#include <linux/workqueue.h>

#include "qp_fixture.h"

#define WHOLE	(ARX_FIRST | ARX_LAST | ARX_ACK_REQ)

/* A connected pair whose runs stay on the wire. */
static struct pair *by_wire(struct kunit *test)
{
	struct pair *p = test->priv;

	pair_connect_xrc(test, p);
	p->dev.port_active = false;
	return p;
}

static struct arx_run send_run(struct pair *p, int flags, u32 psn, u32 srqn,
			       u32 len)
{
	struct arx_run run = pair_run(p, 1, ARX_OP_SEND, flags, psn,
				      p->side[0].buf, len);

	run.h.srqn = srqn;
	return run;
}

/* The target has refused a request for good, and says why. */
static void expect_refused(struct kunit *test, struct pair *p,
			   enum arx_nak_code code, enum ib_event_type event,
			   u32 psn)
{
	struct side *s = &p->side[1];

	EXPECT_ANSWER(test, p, 1, ARX_NAK(code), psn);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, s->events[event], 1);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
	EXPECT_NO_WC(test, &s->rcq);
}

/* What an initiator must not name. */
enum wrong {
	WRONG_NUMBER,
	WRONG_TYPE,
	WRONG_DOMAIN,
};

static const enum wrong wrongs[] = { WRONG_NUMBER, WRONG_TYPE, WRONG_DOMAIN };

static void wrong_name(const enum wrong *wrong, char *name)
{
	static const char *const names[] = {
		"no such SRQ", "no XRC SRQ", "another domain"
	};

	strscpy(name, names[*wrong], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wrong, wrongs, wrong_name);

static struct arx_srq *make_wrong(struct kunit *test, struct pair *p,
				  enum wrong wrong)
{
	struct arx_srq *srq = kunit_kzalloc(test, sizeof(*srq), GFP_KERNEL);
	struct arx_xrcd *other = kunit_kzalloc(test, sizeof(*other),
					       GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, srq);
	KUNIT_ASSERT_NOT_NULL(test, other);
	pair_make_xrc_srq(test, p, srq, &p->pd, &p->side[1].rcq,
			  wrong == WRONG_DOMAIN ? other : &p->xrcd);
	pair_srq_recv(test, p, srq, 9, p->dma->lkey, 4096);
	if (wrong == WRONG_TYPE)
		srq->ib.srq_type = IB_SRQT_BASIC;
	if (wrong == WRONG_NUMBER)
		arx_destroy_srq(&srq->ib, NULL);
	return srq;
}

static void xrc__wrong_srq(struct kunit *test)
{
	enum wrong wrong = *(const enum wrong *)test->param_value;
	struct pair *p = by_wire(test);
	struct arx_srq *srq = make_wrong(test, p, wrong);
	struct arx_run run;

	/* Each kind of request, by its first packet. */
	run = send_run(p, WHOLE, PSN, srq->id.nr, 8);
	pair_rx(p, 1, &run);
	expect_refused(test, p, ARX_NAK_INV_RD_REQ, IB_EVENT_QP_ACCESS_ERR,
		       PSN);
	pair_bring(test, p, 1, IB_QPS_RTS);
	run = pair_run(p, 1, ARX_OP_WRITE, WHOLE, PSN, p->side[0].buf, 0);
	run.h.srqn = srq->id.nr;
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_INV_RD_REQ), PSN);
	pair_bring(test, p, 1, IB_QPS_RTS);
	run = pair_run(p, 1, ARX_OP_READ, WHOLE, PSN, NULL, 0);
	run.h.srqn = srq->id.nr;
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_INV_RD_REQ), PSN);
	if (wrong != WRONG_NUMBER)
		arx_destroy_srq(&srq->ib, NULL);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

/* The initiator's work request says what was wrong. */
static void xrc__status(struct kunit *test)
{
	struct pair *p = by_wire(test);

	arx_destroy_srq(&p->xrc.ib, NULL);
	pair_send(p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED, 0, 8);
	pair_pump(p);
	EXPECT_WC(test, &p->side[0].scq, 1, IB_WC_REM_INV_RD_REQ_ERR);
	KUNIT_EXPECT_EQ(test, p->side[0].qp->state, IB_QPS_ERR);
}

/* Packets of a message name one SRQ. */
static void xrc__other_srq_in_message(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_srq *other = make_wrong(test, p, WRONG_TYPE);
	struct arx_run run;

	other->ib.srq_type = IB_SRQT_XRC;
	pair_srq_recv(test, p, &p->xrc, 5, p->dma->lkey, 4096);
	run = send_run(p, ARX_FIRST, PSN, p->xrc.id.nr, MTU);
	pair_rx(p, 1, &run);
	run = send_run(p, ARX_LAST, PSN + 1, other->id.nr, 8);
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_INV_RD_REQ), PSN + 1);
	pair_settle(p);
	/* The WQE in use is flushed to the CQ of its own SRQ. */
	EXPECT_WC(test, &p->side[1].rcq, 5, IB_WC_WR_FLUSH_ERR);
	EXPECT_NO_WC(test, &p->side[1].rcq);
	arx_destroy_srq(&other->ib, NULL);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

/*
 * A sender on this machine cannot read its payload. The WQE stays, and is not
 * given to a message for another SRQ.
 */
static void xrc__wqe_of_other_srq(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_srq *other = make_wrong(test, p, WRONG_TYPE);
	struct arx_sge none = { .addr = 1, .length = 8, .lkey = 0x12345 };
	struct arx_run run;

	other->ib.srq_type = IB_SRQT_XRC;
	pair_srq_recv(test, p, &p->xrc, 5, p->dma->lkey, 4096);
	run = send_run(p, WHOLE, PSN, p->xrc.id.nr, 8);
	arx_iter_sge(&run.payload, &p->dev, &p->pd.ib, &none, 1, 0);
	KUNIT_EXPECT_EQ(test, pair_rx(p, 1, &run), -EFAULT);
	EXPECT_SILENT(test, p, 1);
	run = send_run(p, WHOLE, PSN, other->id.nr, 8);
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_INV_RD_REQ), PSN);
	pair_settle(p);
	EXPECT_WC(test, &p->side[1].rcq, 5, IB_WC_WR_FLUSH_ERR);
	EXPECT_NO_WC(test, &p->side[1].rcq);
	arx_destroy_srq(&other->ib, NULL);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

/* An SRQ ends in the middle of a message: so does the message. */
static void xrc__srq_ends_in_message(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_run run;

	pair_srq_recv(test, p, &p->xrc, 5, p->dma->lkey, 4096);
	run = send_run(p, ARX_FIRST, PSN, p->xrc.id.nr, MTU);
	pair_rx(p, 1, &run);
	arx_destroy_srq(&p->xrc.ib, NULL);
	run = send_run(p, ARX_LAST, PSN + 1, p->xrc.id.nr, 8);
	pair_rx(p, 1, &run);
	expect_refused(test, p, ARX_NAK_INV_RD_REQ, IB_EVENT_QP_ACCESS_ERR,
		       PSN + 1);
}

/* The QP ends in the middle of a message: the WQE in use is flushed. */
static void xrc__flush_in_message(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[1];
	struct arx_run run;
	int gone;

	for (gone = 0; gone < 2; gone++) {
		pair_srq_recv(test, p, &p->xrc, 5, p->dma->lkey, 4096);
		pair_srq_recv(test, p, &p->xrc, 6, p->dma->lkey, 4096);
		run = send_run(p, ARX_FIRST, PSN, p->xrc.id.nr, MTU);
		pair_rx(p, 1, &run);
		if (gone)
			arx_destroy_srq(&p->xrc.ib, NULL);
		KUNIT_ASSERT_EQ(test, pair_modify(p, 1, IB_QPS_ERR, 0), 0);
		pair_settle(p);
		if (!gone)
			EXPECT_WC(test, &s->rcq, 5, IB_WC_WR_FLUSH_ERR);
		/* Its other WQEs belong to all QPs. */
		EXPECT_NO_WC(test, &s->rcq);
		KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_QP_LAST_WQE_REACHED],
				0);
		pair_bring(test, p, 1, IB_QPS_RTS);
	}
}

/* Messages go to the SRQ that each names, with that SRQ's CQ and PD. */
static void xrc__two_srqs(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_pd other_pd = { .ib.device = &p->dev.ib };
	struct side *s = &p->side[1];
	struct arx_srq *srq[2];
	struct arx_run run;
	int i;

	srq[0] = &p->xrc;
	srq[1] = kunit_kzalloc(test, sizeof(*srq[1]), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, srq[1]);
	pair_make_xrc_srq(test, p, srq[1], &other_pd, &s->scq, &p->xrcd);
	for (i = 0; i < 6; i++) {
		struct arx_cq *cq = i % 2 ? &s->scq : &s->rcq;
		struct ib_wc wc;

		pair_srq_recv(test, p, srq[i % 2], i, p->dma->lkey, 4096);
		run = send_run(p, WHOLE, PSN + i, srq[i % 2]->id.nr, 0);
		pair_rx(p, 1, &run);
		EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN + i);
		wc = pair_poll(cq);
		KUNIT_EXPECT_EQ(test, wc.wr_id, i);
		KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	}

	/* A receive WQE with an lkey of another PD than its SRQ's. */
	pair_srq_recv(test, p, srq[1], 7, p->dma->lkey, 4096);
	run = send_run(p, WHOLE, PSN + 6, srq[1]->id.nr, 8);
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_REM_OP), PSN + 6);
	EXPECT_WC(test, &s->scq, 7, IB_WC_LOC_PROT_ERR);
	arx_destroy_srq(&srq[1]->ib, NULL);
	arx_destroy_srq(&srq[0]->ib, NULL);
}

/* The rkey of a request belongs to the PD of the SRQ that the request names. */
static void xrc__rkey_of_other_pd(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_pd other_pd = { .ib.device = &p->dev.ib };
	static const enum arx_op ops[] = {
		ARX_OP_WRITE, ARX_OP_READ, ARX_OP_FETCH_ADD
	};
	struct arx_srq *srq = kunit_kzalloc(test, sizeof(*srq), GFP_KERNEL);
	struct arx_run run;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, srq);
	pair_make_xrc_srq(test, p, srq, &other_pd, &p->side[1].rcq, &p->xrcd);
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		u32 len = ops[i] == ARX_OP_WRITE ? 8 : 0;

		run = pair_run(p, 1, ops[i], WHOLE, PSN, p->side[0].buf, len);
		run.h.dma_len = 8;
		run.h.srqn = srq->id.nr;
		pair_rx(p, 1, &run);
		EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_REM_ACCESS), PSN);
		pair_settle(p);
		KUNIT_EXPECT_EQ(test, i + 1,
				p->side[1].events[IB_EVENT_QP_ACCESS_ERR]);
		pair_bring(test, p, 1, IB_QPS_RTS);
	}
	arx_destroy_srq(&srq->ib, NULL);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

/* The SRQ ends before a READ is answered: its PD can be found no more. */
static void xrc__srq_ends_before_response(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_run run;

	p->blocked = true;
	run = pair_run(p, 1, ARX_OP_READ, WHOLE, PSN, NULL, 0);
	run.h.dma_len = 8;
	pair_rx(p, 1, &run);
	arx_destroy_srq(&p->xrc.ib, NULL);
	p->blocked = false;
	arx_qp_schedule(p->side[1].qp);
	pair_settle(p);
	expect_refused(test, p, ARX_NAK_REM_ACCESS, IB_EVENT_QP_ACCESS_ERR,
		       PSN);
}

/* A duplicate READ must equal the first request, its SRQ too. */
static void xrc__duplicate(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_run run;

	run = pair_run(p, 1, ARX_OP_READ, WHOLE, PSN, NULL, 0);
	run.h.dma_len = 8;
	pair_rx(p, 1, &run);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	pair_rx(p, 1, &run);
	EXPECT_SENT(test, p, 1, ARX_OP_READ_RESPONSE, PSN);
	run.h.srqn ^= 1;
	pair_rx(p, 1, &run);
	EXPECT_SILENT(test, p, 1);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_RTS);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

/* A gap and a duplicate come before the SRQ: the QP continues. */
static void xrc__order_first(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_run run;

	run = send_run(p, WHOLE, PSN + 1, p->xrc.id.nr ^ 1, 8);
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_NAK(ARX_NAK_SEQ_ERR), PSN);
	run = send_run(p, WHOLE, PSN - 1, p->xrc.id.nr ^ 1, 8);
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN - 1);
	run = send_run(p, WHOLE, PSN, p->xrc.id.nr, 8);
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_RNR_NAK(0), PSN);
	KUNIT_EXPECT_EQ(test, p->side[1].qp->state, IB_QPS_RTS);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

static void xrc__reserved_opcode(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct arx_run run;

	run = pair_run(p, 1, ARX_OP_RESERVED, WHOLE, PSN, NULL, 0);
	pair_rx(p, 1, &run);
	expect_refused(test, p, ARX_NAK_INV_REQ, IB_EVENT_QP_REQ_ERR, PSN);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

/* The events of an SRQ reach its owner, whichever QP takes the WQE. */
static void xrc__srq_events(struct kunit *test)
{
	struct ib_srq_attr attr = { .srq_limit = 1 };
	struct pair *p = by_wire(test);
	struct side *s = &p->side[1];
	struct arx_run run;

	pair_srq_recv(test, p, &p->xrc, 5, p->dma->lkey, 4096);
	KUNIT_ASSERT_EQ(test, 0, arx_modify_srq(&p->xrc.ib, &attr, IB_SRQ_LIMIT,
						NULL));
	run = send_run(p, WHOLE, PSN, p->xrc.id.nr, 8);
	pair_rx(p, 1, &run);
	EXPECT_ANSWER(test, p, 1, ARX_ACK_UNLIMITED, PSN);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SRQ_LIMIT_REACHED], 1);
	EXPECT_WC(test, &s->rcq, 5, IB_WC_SUCCESS);

	/* An application writes an impossible index. */
	p->xrc.q.ring.hdr->prod += 1000;
	run = send_run(p, WHOLE, PSN + 1, p->xrc.id.nr, 8);
	pair_rx(p, 1, &run);
	expect_refused(test, p, ARX_NAK_REM_OP, IB_EVENT_QP_FATAL, PSN + 1);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_SRQ_ERR], 1);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

/* A full CQ of an SRQ fails the QP that completes to it. */
static void xrc__cq_overrun(struct kunit *test)
{
	struct pair *p = by_wire(test);
	struct side *s = &p->side[1];
	struct arx_run run;

	s->rcq.overflown = true;
	pair_srq_recv(test, p, &p->xrc, 5, p->dma->lkey, 4096);
	run = send_run(p, WHOLE, PSN, p->xrc.id.nr, 8);
	pair_rx(p, 1, &run);
	pair_settle(p);
	KUNIT_EXPECT_EQ(test, s->events[IB_EVENT_QP_FATAL], 1);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

struct destroyer {
	struct work_struct work;
	struct arx_srq *srq;
	bool done;
};

static void destroy_work(struct work_struct *work)
{
	struct destroyer *d = container_of(work, struct destroyer, work);

	arx_destroy_srq(&d->srq->ib, NULL);
	WRITE_ONCE(d->done, true);
}

static bool is_found(struct pair *p, u32 srqn)
{
	guard(rcu)();
	return arx_ids_find(&p->dev.srqs, srqn);
}

/*
 * A section on another CPU looks an SRQ up, and passes an SRQ of another type
 * on its way. That SRQ must not end before.
 */
static void xrc__passed_srq(struct kunit *test)
{
	u32 *far_cpu = per_cpu_ptr(&arx_sections, 0);
	struct pair *p = by_wire(test);
	struct destroyer d = { .srq = make_wrong(test, p, WRONG_TYPE) };
	u32 srqn = d.srq->id.nr;
	int i;

	INIT_WORK_ONSTACK(&d.work, destroy_work);
	arx_section_begin(far_cpu);
	queue_work(system_unbound_wq, &d.work);
	for (i = 0; i < 500 && is_found(p, srqn); i++)
		msleep(20);
	msleep(50);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(d.done));
	arx_section_end(far_cpu);
	flush_work(&d.work);
	destroy_work_on_stack(&d.work);
	KUNIT_EXPECT_TRUE(test, d.done);
	arx_destroy_srq(&p->xrc.ib, NULL);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(xrc__wrong_srq, wrong_gen_params),
	KUNIT_CASE(xrc__status),
	KUNIT_CASE(xrc__other_srq_in_message),
	KUNIT_CASE(xrc__wqe_of_other_srq),
	KUNIT_CASE(xrc__srq_ends_in_message),
	KUNIT_CASE(xrc__flush_in_message),
	KUNIT_CASE(xrc__two_srqs),
	KUNIT_CASE(xrc__rkey_of_other_pd),
	KUNIT_CASE(xrc__srq_ends_before_response),
	KUNIT_CASE(xrc__duplicate),
	KUNIT_CASE(xrc__order_first),
	KUNIT_CASE(xrc__reserved_opcode),
	KUNIT_CASE(xrc__srq_events),
	KUNIT_CASE(xrc__cq_overrun),
	KUNIT_CASE(xrc__passed_srq),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_xrc",
	.init = pair_init,
	.exit = pair_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
