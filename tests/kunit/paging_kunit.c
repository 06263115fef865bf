// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* paging.c: stages that wait for pages which the process may not have. */

#include <linux/mm.h>
#include <linux/mman.h>

#include "paging.h"
#include "qp_fixture.h"

#if IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)

#define PAGES	4U
#define BYTES	(PAGES * (u32)PAGE_SIZE)

/**
 * struct paging_test - the second side's region is paged on demand
 * @p: the QPs
 * @at: address of PAGES pages in the tests' process, not mapped at first
 * @next: PSN of the next message
 */
struct paging_test {
	struct pair *p;
	unsigned long at;
	u32 next;
};

static void map_pages(struct kunit *test, u32 first, u32 n)
{
	struct paging_test *t = test->priv;
	unsigned long at = t->at + first * PAGE_SIZE;

	KUNIT_ASSERT_EQ(test, at,
			kunit_vm_mmap(test, NULL, at, n * PAGE_SIZE,
				      PROT_READ | PROT_WRITE, MAP_ANONYMOUS |
				      MAP_PRIVATE | MAP_FIXED, 0));
}

static void unmap_pages(struct kunit *test, u32 first, u32 n)
{
	struct paging_test *t = test->priv;

	KUNIT_ASSERT_EQ(test, 0, vm_munmap(t->at + first * PAGE_SIZE,
					   n * PAGE_SIZE));
}

static int paging_init(struct kunit *test)
{
	struct paging_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct arx_mr *mr;

	KUNIT_ASSERT_NOT_NULL(test, t);
	KUNIT_ASSERT_EQ(test, arx_paging_init(), 0);
	t->p = pair_new(test);
	t->next = PSN;
	test->priv = t;
	t->at = kunit_vm_mmap(test, NULL, 0, BYTES, PROT_READ | PROT_WRITE,
			      MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(t->at));
	unmap_pages(test, 0, PAGES);
	mr = &t->p->side[1].mr;
	mr->odp = arx_odp_make(t->at, BYTES);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr->odp));
	mr->key.length = BYTES;
	return 0;
}

static void paging_exit(struct kunit *test)
{
	struct paging_test *t = test->priv;
	struct arx_mr *mr = &t->p->side[1].mr;

	arx_odp_end(mr->odp);
	mr->odp = NULL;
	pair_free(t->p);
	arx_paging_exit();
}

/* Post a receive into the first pages. */
static void post(struct kunit *test, u64 id)
{
	struct paging_test *t = test->priv;
	struct ib_sge sge = {
		.addr = IOVA,
		.length = BYTES,
		.lkey = t->p->side[1].mr.key.value,
	};
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;

	KUNIT_ASSERT_EQ(test, 0, arx_post_recv(&t->p->side[1].qp->ib, &wr,
					       &bad));
}

/* The second side receives a message; its job, if it needs one, goes on. */
static void receive(struct paging_test *t, enum arx_op op, u32 at, u32 len)
{
	struct pair *p = t->p;
	struct arx_run run = pair_run(p, 1, op, ARX_FIRST | ARX_LAST, t->next,
				      p->side[0].buf, len);

	run.h.va += at;
	run.h.dma_len = len;
	run.h.qkey = 0x1234;
	run.grh = p->side[0].buf;
	t->next += run.npkts;
	pair_rx(p, 1, &run);
}

static const enum ib_qp_type types[] = { IB_QPT_UC, IB_QPT_UD };

static void type_name(const enum ib_qp_type *type, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, *type == IB_QPT_UC ? "UC" : "UD");
}

KUNIT_ARRAY_PARAM(type, types, type_name);

/*
 * The process has no memory for a message: its receive fails when that is
 * known. Another message may come only after the process has mapped the memory.
 */
static void paging__no_memory_for_a_receive(struct kunit *test)
{
	struct paging_test *t = test->priv;
	struct side *s = &t->p->side[1];

	pair_connect(test, t->p, *(enum ib_qp_type *)test->param_value);
	post(test, 1);
	post(test, 2);
	receive(t, ARX_OP_SEND, 0, 8);
	EXPECT_NO_WC(test, &s->rcq);
	pair_paging(t->p);
	EXPECT_WC(test, &s->rcq, 1, IB_WC_LOC_PROT_ERR);
	EXPECT_WC(test, &s->rcq, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_ERR);
}

/* A shorter message uses the receive up, while no page is found for it. */
static void paging__receive_used_meanwhile(struct kunit *test)
{
	struct paging_test *t = test->priv;
	struct side *s = &t->p->side[1];

	pair_connect(test, t->p, *(enum ib_qp_type *)test->param_value);
	map_pages(test, 0, 1);
	post(test, 1);
	post(test, 2);
	receive(t, ARX_OP_SEND, 0, 8);
	pair_paging(t->p);
	mmap_write_lock(current->mm);	/* the job waits */
	receive(t, ARX_OP_SEND, 0, PAGE_SIZE + 8);
	receive(t, ARX_OP_SEND, 0, 8);
	EXPECT_WC(test, &s->rcq, 1, IB_WC_SUCCESS);
	receive(t, ARX_OP_SEND, 0, PAGE_SIZE + 8);
	mmap_write_unlock(current->mm);
	pair_paging(t->p);
	map_pages(test, 1, 1);
	receive(t, ARX_OP_SEND, 0, PAGE_SIZE + 8);
	EXPECT_NO_WC(test, &s->rcq);
	pair_paging(t->p);
	receive(t, ARX_OP_SEND, 0, PAGE_SIZE + 8);
	EXPECT_WC(test, &s->rcq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
}

/* UC: a WRITE without memory is dropped; the next one has its pages found. */
static void paging__no_memory_for_a_write(struct kunit *test)
{
	struct paging_test *t = test->priv;
	struct side *s = &t->p->side[1];
	u64 dropped;

	pair_connect(test, t->p, IB_QPT_UC);
	post(test, 1);
	receive(t, ARX_OP_WRITE, 0, 8);
	pair_paging(t->p);
	map_pages(test, 0, 1);
	receive(t, ARX_OP_WRITE, 0, 8);
	pair_paging(t->p);
	dropped = count_of(t->p, ARX_CNT_RX_DROPPED);
	KUNIT_EXPECT_EQ(test, dropped, 2);
	receive(t, ARX_OP_WRITE, 0, 8);
	KUNIT_EXPECT_EQ(test, count_of(t->p, ARX_CNT_RX_DROPPED), dropped);
	/* Those that were dropped have not begun. */
	KUNIT_EXPECT_EQ(test, count_of(t->p, ARX_CNT_RX_WRITES), 1);
	EXPECT_NO_WC(test, &s->rcq);
	KUNIT_EXPECT_EQ(test, s->qp->state, IB_QPS_RTS);
}

/* On one machine a peer that waits goes on when the pages are there. */
static void paging__peer_goes_on(struct kunit *test)
{
	struct paging_test *t = test->priv;
	struct side *s = &t->p->side[0];
	int i;

	/* The timer of 80 us may expire before the test stops it. */
	t->p->attr.rnr_retry = 7;
	pair_connect(test, t->p, IB_QPT_RC);
	map_pages(test, 0, 1);
	mmap_write_lock(current->mm);	/* the job waits */
	KUNIT_EXPECT_EQ(test, 0, pair_send(t->p, 0, IB_WR_RDMA_WRITE, 1,
					   IB_SEND_SIGNALED, 0, 8));
	for (i = 0; i < 1000 && !READ_ONCE(s->qp->comp.rnr_wait); i++)
		pair_settle(t->p);
	KUNIT_EXPECT_LT(test, i, 1000);
	hrtimer_start(&s->qp->comp.rnr, ktime_set(1000, 0),
		      HRTIMER_MODE_REL_SOFT);
	mmap_write_unlock(current->mm);
	pair_paging(t->p);
	EXPECT_WC(test, &s->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, s->qp->comp.rnr_wait);
	/* It was sent more than once, and began once. */
	KUNIT_EXPECT_EQ(test, count_of(t->p, ARX_CNT_RX_WRITES), 1);
}

/* A wait for a receive does not end with a job. */
static void paging__peer_waits_for_a_receive(struct kunit *test)
{
	struct paging_test *t = test->priv;
	struct side *s = &t->p->side[0];

	pair_connect(test, t->p, IB_QPT_RC);
	pair_send(t->p, 0, IB_WR_SEND, 1, IB_SEND_SIGNALED, 0, 8);
	KUNIT_EXPECT_TRUE(test, s->qp->comp.rnr_wait);
	arx_qp_schedule(t->p->side[1].qp);
	pair_settle(t->p);
	KUNIT_EXPECT_TRUE(test, s->qp->comp.rnr_wait);
	EXPECT_NO_WC(test, &s->scq);
}

static struct kunit_case paging_cases[] = {
	KUNIT_CASE_PARAM(paging__no_memory_for_a_receive, type_gen_params),
	KUNIT_CASE_PARAM(paging__receive_used_meanwhile, type_gen_params),
	KUNIT_CASE(paging__no_memory_for_a_write),
	KUNIT_CASE(paging__peer_goes_on),
	KUNIT_CASE(paging__peer_waits_for_a_receive),
	{}
};

static struct kunit_suite paging_suite = {
	.name = "arx_paging",
	.init = paging_init,
	.exit = paging_exit,
	.test_cases = paging_cases,
};

kunit_test_suite(paging_suite);

#endif /* CONFIG_INFINIBAND_ON_DEMAND_PAGING */
