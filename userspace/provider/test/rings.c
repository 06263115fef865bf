// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The data path of libarx without a kernel: this program plays the kernel, on
 * rings in its own memory. Run by test/run; the last part is for thread
 * sanitizers.
 */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "arx.h"

#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__,	\
				__LINE__, __func__, #cond);		\
			exit(1);					\
		}							\
	} while (0)

enum {
	STRIDE	= 64 + 64,	/* four SGEs or 64 bytes inline */
	QPN	= 0xabcde,
	WRAP	= 0xfffffffe,	/* start of indices, so that they wrap */
};

static int kicks;
static int kick_errno;
static unsigned long kick_qpn;
static struct arx_cq *kick_completes;

static void complete(struct arx_cq *cq, uint32_t qpn, uint64_t wr_id,
		     bool is_send, uint32_t sq_index);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;

	CHECK(fd == 77 && request == ARX_IOCTL_KICK);
	va_start(ap, request);
	kick_qpn = va_arg(ap, unsigned long);
	va_end(ap);
	kicks++;
	if (kick_completes)
		complete(kick_completes, kick_qpn, 0, true, WRAP + 1);
	errno = kick_errno;
	return kick_errno ? -1 : 0;
}

static void ring_init(struct arx_ring *ring, uint32_t count, uint32_t stride)
{
	ring->size = ARX_RING_ENTRIES_OFFSET + (size_t)count * stride;
	ring->hdr = aligned_alloc(64, (ring->size + 63) & ~63ul);
	memset(ring->hdr, 0, ring->size);
	ring->entries = (char *)ring->hdr + ARX_RING_ENTRIES_OFFSET;
	ring->count = count;
	ring->mask = count - 1;
	ring->stride = stride;
}

static void cq_init(struct arx_cq *cq, uint32_t count)
{
	memset(cq, 0, sizeof(*cq));
	ring_init(&cq->ring, count, sizeof(struct arx_cqe));
	arx_lock_init(&cq->lock, true);
	cq->doorbell = 77;
	cq->cons = WRAP;
	cq->ring.hdr->cons = WRAP;
	cq->ring.hdr->prod = WRAP;
	CHECK(!arx_set_poll_ops(cq, IBV_WC_STANDARD_FLAGS |
			IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK));
}

static struct arx_qp *qp_new(enum ibv_qp_type type, uint32_t qpn,
			     uint32_t count, struct arx_cq *cq)
{
	struct arx_qp *qp;
	struct arx_sq *sq;

	qp = aligned_alloc(ARX_CACHE_LINE, sizeof(*qp));
	memset(qp, 0, sizeof(*qp));
	qp->doorbell = 77;
	qp->vqp.qp.qp_type = type;
	qp->vqp.qp.qp_num = qpn;
	qp->vqp.qp.state = IBV_QPS_RTS;
	qp->vqp.qp.send_cq = &cq->vcq.cq;
	qp->vqp.qp.recv_cq = &cq->vcq.cq;

	sq = &qp->sq;
	ring_init(&sq->ring, count, STRIDE);
	sq->max_sge = 4;
	sq->max_inline = 60;
	sq->ops = arx_send_ops(type);
	sq->scratch = calloc(1, STRIDE);
	sq->wqe = sq->scratch;
	arx_lock_init(&sq->lock, true);
	sq->head = WRAP;
	sq->tail = WRAP;
	sq->seen_tail = WRAP;
	sq->ring.hdr->prod = WRAP;

	ring_init(&qp->rq.ring, count, 16 + 2 * 16);
	qp->rq.max_sge = 2;
	arx_lock_init(&qp->rq.lock, true);
	qp->rq.head = WRAP;
	qp->rq.cons = WRAP;
	qp->rq.ring.hdr->prod = WRAP;
	qp->rq.ring.hdr->cons = WRAP;
	CHECK(!arx_cq_add_qp(cq, qp));
	return qp;
}

static void qp_free(struct arx_qp *qp)
{
	free(qp->sq.ring.hdr);
	free(qp->sq.scratch);
	free(qp->rq.ring.hdr);
	free(qp);
}

static void cq_free(struct arx_cq *cq)
{
	arx_cq_free_qps(cq);
	free(cq->ring.hdr);
}

static struct arx_send_wqe *sent(struct arx_qp *qp, uint32_t n)
{
	return arx_ring_entry(&qp->sq.ring, WRAP + n);
}

/* Like the kernel: write a CQE, then prod. */
static void complete(struct arx_cq *cq, uint32_t qpn, uint64_t wr_id,
		     bool is_send, uint32_t sq_index)
{
	uint32_t prod = cq->ring.hdr->prod;
	struct arx_cqe *cqe = arx_ring_entry(&cq->ring, prod);

	CHECK(prod - arx_load_acquire(&cq->ring.hdr->cons) < cq->ring.count);
	*cqe = (struct arx_cqe){
		.wr_id = wr_id,
		.timestamp = 12345,
		.byte_len = 99,
		.qpn = qpn,
		.ex = 0x01020304,
		.src_qp = 5,
		.sq_index = sq_index,
		.wc_flags = 0xffff,
		.opcode = is_send ? IBV_WC_RDMA_READ : IBV_WC_RECV,
		.status = IBV_WC_SUCCESS,
		.vendor_err = 7,
		.sl = 3,
		.is_send = is_send,
		.pkey_index = 1,
	};
	arx_store_release(&cq->ring.hdr->prod, prod + 1);
}

/* ------------------------------------------------------------------------ */

static void post_send__list_is_one_kick(void)
{
	struct ibv_sge sge[4] = {
		{ .addr = 1, .length = 2, .lkey = 3 },
		{ .addr = 4, .length = 5, .lkey = 6 },
	};
	struct ibv_send_wr wr[3] = {
		{ .wr_id = 10, .next = &wr[1], .sg_list = sge, .num_sge = 2,
		  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = 0x11,
		  .send_flags = IBV_SEND_SIGNALED | 1u << 30,
		  .wr.rdma = { .remote_addr = 0x1000, .rkey = 0x22 } },
		{ .wr_id = 11, .next = &wr[2], .sg_list = sge, .num_sge = 1,
		  .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		  .send_flags = IBV_SEND_FENCE,
		  .wr.atomic = { .remote_addr = 0x2000, .compare_add = 7,
				 .swap = 8, .rkey = 0x33 } },
		{ .wr_id = 12, .num_sge = 1, .opcode = IBV_WR_LOCAL_INV,
		  .invalidate_rkey = 0x44 },
	};
	struct ibv_send_wr *bad;
	struct arx_qp *qp;
	struct arx_cq cq;
	struct arx_sge *s;

	cq_init(&cq, 4);
	qp = qp_new(IBV_QPT_RC, QPN, 4, &cq);
	kicks = 0;
	CHECK(!arx_post_send(&qp->vqp.qp, wr, &bad));
	CHECK(kicks == 1 && kick_qpn == QPN);
	CHECK(qp->sq.ring.hdr->prod == (uint32_t)WRAP + 3);

	s = (void *)(sent(qp, 0) + 1);
	CHECK(sent(qp, 0)->wr_id == 10 && sent(qp, 0)->opcode == 1 &&
	      sent(qp, 0)->num_sge == 2 && sent(qp, 0)->ex == 0x11 &&
	      sent(qp, 0)->flags == IBV_SEND_SIGNALED &&
	      sent(qp, 0)->rdma.remote_addr == 0x1000 &&
	      sent(qp, 0)->rdma.rkey == 0x22);
	CHECK(s[1].addr == 4 && s[1].length == 5 && s[1].lkey == 6);
	CHECK(sent(qp, 1)->atomic.compare_add == 7 &&
	      sent(qp, 1)->atomic.swap == 8 &&
	      sent(qp, 1)->atomic.rkey == 0x33 &&
	      sent(qp, 1)->flags == IBV_SEND_FENCE);
	CHECK(sent(qp, 2)->ex == 0x44 && !sent(qp, 2)->num_sge);

	/* the kernel polls: no kick */
	qp->sq.ring.hdr->flags = ARX_RING_NO_KICK;
	CHECK(!arx_post_send(&qp->vqp.qp, &wr[2], &bad) && kicks == 1);
	CHECK(qp->sq.ring.hdr->prod == (uint32_t)WRAP + 4);

	/* full, until a CQE retires all four */
	CHECK(arx_post_send(&qp->vqp.qp, &wr[2], &bad) == ENOMEM &&
	      bad == &wr[2] && kicks == 1);
	complete(&cq, QPN, 12, true, WRAP + 4);
	CHECK(arx_post_send(&qp->vqp.qp, &wr[2], &bad) == ENOMEM);
	CHECK(arx_poll_cq(&cq.vcq.cq, 1, &(struct ibv_wc){}) == 1);
	CHECK(!arx_post_send(&qp->vqp.qp, wr, &bad) && kicks == 1);

	/* nothing left to poll: now the deferred kick, once */
	CHECK(!arx_poll_cq(&cq.vcq.cq, 1, &(struct ibv_wc){}) && kicks == 2 &&
	      kick_qpn == QPN);
	CHECK(!arx_poll_cq(&cq.vcq.cq, 1, &(struct ibv_wc){}) && kicks == 2);

	/* a request that fails ends the list, the requests before are sent */
	qp->sq.ring.hdr->flags = 0;
	CHECK(arx_post_send(&qp->vqp.qp, wr, &bad) == ENOMEM && bad == &wr[1]);
	CHECK(kicks == 3 && qp->sq.ring.hdr->prod == (uint32_t)WRAP + 8);

	/* the device is gone */
	complete(&cq, QPN, 12, true, WRAP + 8);
	CHECK(arx_poll_cq(&cq.vcq.cq, 1, &(struct ibv_wc){}) == 1);
	kick_errno = EIO;
	CHECK(arx_post_send(&qp->vqp.qp, wr, &bad) == EIO && bad == wr);
	kick_errno = 0;

	qp_free(qp);
	cq_free(&cq);
}

/*
 * Each QP has a place for its deferred kick. With more QPs than places, one QP
 * is kicked for at once.
 */
static void poll__kicks_all_deferred(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct arx_qp *qp[ARX_DEFERRED + 1];
	struct ibv_send_wr *bad;
	struct arx_cq cq;
	int i;

	cq_init(&cq, 4);
	for (i = 0; i <= ARX_DEFERRED; i++) {
		qp[i] = qp_new(IBV_QPT_RC, QPN + i, 4, &cq);
		qp[i]->sq.ring.hdr->flags = ARX_RING_NO_KICK;
	}
	kicks = 0;
	for (i = 0; i < ARX_DEFERRED; i++)
		CHECK(!arx_post_send(&qp[i]->vqp.qp, &wr, &bad) &&
		      !arx_post_send(&qp[i]->vqp.qp, &wr, &bad));
	CHECK(!kicks);
	CHECK(!arx_post_send(&qp[ARX_DEFERRED]->vqp.qp, &wr, &bad));
	CHECK(kicks == 1 && kick_qpn == QPN);

	CHECK(!arx_poll_cq(&cq.vcq.cq, 1, &(struct ibv_wc){}));
	CHECK(kicks == 1 + ARX_DEFERRED);
	CHECK(!arx_poll_cq(&cq.vcq.cq, 1, &(struct ibv_wc){}));
	CHECK(kicks == 1 + ARX_DEFERRED);

	for (i = 0; i <= ARX_DEFERRED; i++)
		qp_free(qp[i]);
	cq_free(&cq);
}

static void poll__kicks_until_there_are_completions(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_send_wr *bad;
	struct arx_qp *qp[3];
	struct ibv_wc wc[4];
	struct arx_cq cq;
	int i;

	cq_init(&cq, 4);
	kicks = 0;
	for (i = 0; i < 3; i++) {
		qp[i] = qp_new(IBV_QPT_RC, QPN + i, 4, &cq);
		qp[i]->sq.ring.hdr->flags = ARX_RING_NO_KICK;
		CHECK(!arx_post_send(&qp[i]->vqp.qp, &wr, &bad));
	}

	/*
	 * one kick, and a completion of its QP; the next QP has waited longest
	 */
	kick_completes = &cq;
	CHECK(arx_poll_cq(&cq.vcq.cq, 4, wc) == 1 && kicks == 1);
	i = wc->qp_num - QPN;
	CHECK(!arx_post_send(&qp[i]->vqp.qp, &wr, &bad));
	CHECK(arx_poll_cq(&cq.vcq.cq, 4, wc) == 1 && kicks == 2);
	CHECK(wc->qp_num - QPN == (i + 1) % 3);
	CHECK(arx_poll_cq(&cq.vcq.cq, 4, wc) == 1 && kicks == 3);
	CHECK(wc->qp_num - QPN == (i + 2) % 3);
	CHECK(arx_poll_cq(&cq.vcq.cq, 4, wc) == 1 && kicks == 4);
	CHECK(wc->qp_num - QPN == i);
	CHECK(!arx_poll_cq(&cq.vcq.cq, 4, wc) && kicks == 4);

	/*
	 * a thread that waits for an event may not poll before the event comes
	 */
	for (i = 0; i < 3; i++)
		CHECK(!arx_post_send(&qp[i]->vqp.qp, &wr, &bad));
	CHECK(!arx_req_notify_cq(&cq.vcq.cq, 0) && kicks == 7);
	CHECK(arx_poll_cq(&cq.vcq.cq, 4, wc) == 3 && kicks == 7);

	kick_completes = NULL;
	for (i = 0; i < 3; i++)
		qp_free(qp[i]);
	cq_free(&cq);
}

/* The application may wait for the response only, at the other CQ. */
static void poll__kicks_at_the_receive_cq(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	struct arx_qp *qp[ARX_DEFERRED + 1];
	struct ibv_send_wr *bad;
	struct arx_cq cq, rcq;
	int i;

	cq_init(&cq, 4);
	cq_init(&rcq, 4);
	for (i = 0; i <= ARX_DEFERRED; i++) {
		qp[i] = qp_new(IBV_QPT_RC, QPN + i, 4, &cq);
		qp[i]->vqp.qp.recv_cq = &rcq.vcq.cq;
		qp[i]->recv_place = arx_cq_place(&rcq);
		qp[i]->sq.ring.hdr->flags = ARX_RING_NO_KICK;
	}
	kicks = 0;
	CHECK(!arx_post_send(&qp[0]->vqp.qp, &wr, &bad) && !kicks);
	CHECK(!arx_poll_cq(&rcq.vcq.cq, 1, &(struct ibv_wc){}) && kicks == 1);
	CHECK(!arx_poll_cq(&rcq.vcq.cq, 1, &(struct ibv_wc){}) && kicks == 1);
	CHECK(!arx_post_send(&qp[0]->vqp.qp, &wr, &bad) && kicks == 1);
	CHECK(!arx_req_notify_cq(&rcq.vcq.cq, 0) && kicks == 2);

	/* a place that two QPs share costs no kick of its own */
	CHECK(!arx_req_notify_cq(&cq.vcq.cq, 0) && kicks == 3);
	qp[ARX_DEFERRED]->place = 1;
	CHECK(!arx_post_send(&qp[0]->vqp.qp, &wr, &bad));
	CHECK(!arx_post_send(&qp[ARX_DEFERRED]->vqp.qp, &wr, &bad) &&
	      kicks == 3);

	for (i = 0; i <= ARX_DEFERRED; i++)
		qp_free(qp[i]);
	cq_free(&cq);
	cq_free(&rcq);
}

static void post_send__what_cannot_be(void)
{
	struct ibv_sge sge[5] = { { .addr = (uintptr_t)"x", .length = 1 } };
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 1 };
	struct ibv_qp_init_attr_ex attr = {};
	struct ibv_send_wr *bad;
	struct arx_qp *rc, *ud;
	struct arx_cq cq;
	uint32_t count;

	cq_init(&cq, 4);
	rc = qp_new(IBV_QPT_RC, QPN, 4, &cq);
	ud = qp_new(IBV_QPT_UD, QPN + 1, 4, &cq);

	wr.opcode = IBV_WR_RDMA_WRITE;
	CHECK(arx_post_send(&ud->vqp.qp, &wr, &bad) == EINVAL);
	wr.opcode = IBV_WR_SEND;
	CHECK(arx_post_send(&ud->vqp.qp, &wr, &bad) == EINVAL);	/* no AH */
	wr.opcode = IBV_WR_TSO;
	CHECK(arx_post_send(&rc->vqp.qp, &wr, &bad) == EINVAL);
	wr.opcode = 34;
	CHECK(arx_post_send(&rc->vqp.qp, &wr, &bad) == EINVAL);
	wr.opcode = -1;
	CHECK(arx_post_send(&rc->vqp.qp, &wr, &bad) == EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = 5;
	CHECK(arx_post_send(&rc->vqp.qp, &wr, &bad) == EINVAL);
	wr.num_sge = -1;
	CHECK(arx_post_send(&rc->vqp.qp, &wr, &bad) == EINVAL);
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_READ;
	wr.send_flags = IBV_SEND_INLINE;
	CHECK(arx_post_send(&rc->vqp.qp, &wr, &bad) == EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = -1;
	CHECK(arx_post_send(&rc->vqp.qp, &wr, &bad) == EINVAL);
	wr.num_sge = 1;
	rc->vqp.qp.state = IBV_QPS_RTR;
	CHECK(arx_post_send(&rc->vqp.qp, &wr, &bad) == EINVAL && bad == &wr);
	rc->vqp.qp.state = IBV_QPS_ERR;
	CHECK(!arx_post_send(&rc->vqp.qp, &wr, &bad));
	CHECK(rc->sq.ring.hdr->prod == (uint32_t)WRAP + 1);
	/* no queue: a QP that receives by XRC */
	rc->sq.ops = 0;
	count = rc->sq.ring.count;
	rc->sq.ring.count = 0;
	CHECK(arx_post_send(&rc->vqp.qp, &wr, &bad) == EINVAL && bad == &wr);
	rc->sq.ring.count = count;

	attr.qp_type = IBV_QPT_RAW_PACKET;
	CHECK(!arx_send_ops(attr.qp_type));
	CHECK(arx_set_wr_ops(ud, IBV_QP_EX_WITH_RDMA_READ) == EOPNOTSUPP);
	CHECK(arx_set_wr_ops(rc, IBV_QP_EX_WITH_TSO) == EOPNOTSUPP);
	CHECK(arx_set_wr_ops(ud, IBV_QP_EX_WITH_BIND_MW) == EOPNOTSUPP);
	CHECK(arx_set_wr_ops(ud, IBV_QP_EX_WITH_LOCAL_INV) == EOPNOTSUPP);

	qp_free(rc);
	qp_free(ud);
	cq_free(&cq);
}

static void post_send__inline_fits_or_fails(void)
{
	char data[61] = "0123456789";
	struct ibv_sge sge[3] = {
		{ .addr = (uintptr_t)data, .length = 4 },
		{ .addr = 0, .length = 0 },
		{ .addr = (uintptr_t)data + 4, .length = 56 },
	};
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 3,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE };
	struct ibv_send_wr *bad;
	struct arx_qp *qp;
	struct arx_cq cq;

	cq_init(&cq, 4);
	qp = qp_new(IBV_QPT_RC, QPN, 4, &cq);
	CHECK(!arx_post_send(&qp->vqp.qp, &wr, &bad));
	CHECK(sent(qp, 0)->inline_len == 60 && !sent(qp, 0)->num_sge &&
	      sent(qp, 0)->flags == IBV_SEND_INLINE &&
	      !memcmp(sent(qp, 0) + 1, data, 60));
	sge[2].length = 57;
	CHECK(arx_post_send(&qp->vqp.qp, &wr, &bad) == EINVAL);
	sge[2].length = UINT32_MAX;
	CHECK(arx_post_send(&qp->vqp.qp, &wr, &bad) == EINVAL);
	qp_free(qp);
	cq_free(&cq);
}

static void wr__all_or_nothing(void)
{
	struct ibv_sge sge[5] = { { .addr = 9, .length = 8, .lkey = 7 } };
	struct ibv_data_buf buf[2] = { { "abc", 3 }, { "de", 2 } };
	struct arx_ah ah = { .id = 0x55 };
	struct ibv_qp_ex *x, *y;
	struct arx_qp *rc, *ud;
	struct arx_cq cq;
	int i;

	cq_init(&cq, 4);
	rc = qp_new(IBV_QPT_RC, QPN, 4, &cq);
	ud = qp_new(IBV_QPT_UD, QPN + 1, 4, &cq);
	x = &rc->vqp.qp_ex;
	y = &ud->vqp.qp_ex;
	CHECK(!arx_set_wr_ops(rc, (IBV_QP_EX_WITH_SEND_WITH_INV << 1) - 1));
	CHECK(!arx_set_wr_ops(ud, IBV_QP_EX_WITH_SEND));
	kicks = 0;

	ibv_wr_start(x);
	x->wr_id = 1;
	x->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	ibv_wr_rdma_write_imm(x, 0x22, 0x1000, 0x11);
	ibv_wr_set_sge_list(x, 1, sge);
	x->wr_id = 2;
	ibv_wr_send_inv(x, 0x33);
	ibv_wr_set_inline_data_list(x, 2, buf);
	x->wr_id = 3;
	ibv_wr_rdma_read(x, 0x44, 0x2000);
	ibv_wr_set_sge(x, 1, 2, 3);
	CHECK(rc->sq.ring.hdr->prod == WRAP);
	CHECK(!ibv_wr_complete(x));
	CHECK(kicks == 1 && rc->sq.ring.hdr->prod == (uint32_t)WRAP + 3);
	CHECK(sent(rc, 0)->num_sge == 1 && sent(rc, 0)->ex == 0x11 &&
	      sent(rc, 0)->flags == IBV_SEND_SIGNALED);
	CHECK(sent(rc, 1)->inline_len == 5 && sent(rc, 1)->ex == 0x33 &&
	      sent(rc, 1)->flags == (IBV_SEND_SIGNALED | IBV_SEND_INLINE) &&
	      !memcmp(sent(rc, 1) + 1, "abcde", 5));
	CHECK(sent(rc, 2)->opcode == IBV_WR_RDMA_READ &&
	      sent(rc, 2)->wr_id == 3 && sent(rc, 2)->rdma.rkey == 0x44);

	/* any error cancels all requests since ibv_wr_start() */
	ibv_wr_start(x);
	ibv_wr_send(x);
	ibv_wr_set_sge_list(x, 5, sge);
	ibv_wr_set_sge(x, 1, 2, 3);
	CHECK(ibv_wr_complete(x) == EINVAL);
	ibv_wr_start(x);
	ibv_wr_rdma_read(x, 0x44, 0x2000);
	ibv_wr_set_inline_data(x, "a", 1);
	CHECK(ibv_wr_complete(x) == EINVAL);
	ibv_wr_start(x);
	ibv_wr_send(x);
	ibv_wr_set_inline_data(x, sge, 61);
	CHECK(ibv_wr_complete(x) == EINVAL);
	ibv_wr_start(x);
	for (i = 0; i < 9; i++) {
		ibv_wr_send(x);
		ibv_wr_set_sge(x, 1, 2, 3);
	}
	CHECK(ibv_wr_complete(x) == ENOMEM);
	ibv_wr_start(x);
	ibv_wr_send(x);
	ibv_wr_abort(x);
	ibv_wr_start(x);
	CHECK(!ibv_wr_complete(x));
	CHECK(kicks == 1 && rc->sq.ring.hdr->prod == (uint32_t)WRAP + 3);

	rc->vqp.qp.state = IBV_QPS_INIT;
	ibv_wr_start(x);
	ibv_wr_send(x);
	CHECK(ibv_wr_complete(x) == EINVAL);

	ibv_wr_start(y);
	ibv_wr_send(y);
	ibv_wr_set_ud_addr(y, &ah.ibah, 0x66, 0x77);
	ibv_wr_set_sge(y, 1, 2, 3);
	CHECK(!ibv_wr_complete(y));
	CHECK(sent(ud, 0)->ud.ah == 0x55 && sent(ud, 0)->ud.qpn == 0x66 &&
	      sent(ud, 0)->ud.qkey == 0x77);

	qp_free(rc);
	qp_free(ud);
	cq_free(&cq);
}

static void bind_mw__new_rkey(void)
{
	struct ibv_mr mr = { .lkey = 0x99 };
	struct ibv_mw mw = { .rkey = 0x1ff };
	struct ibv_mw_bind bind = {
		.wr_id = 4,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { &mr, 0x1000, 0x10, IBV_ACCESS_REMOTE_READ },
	};
	struct ibv_qp_ex *x;
	struct arx_qp *qp;
	struct arx_cq cq;

	cq_init(&cq, 4);
	qp = qp_new(IBV_QPT_RC, QPN, 1, &cq);
	CHECK(!arx_bind_mw(&qp->vqp.qp, &mw, &bind));
	CHECK(mw.rkey == 0x100);
	CHECK(sent(qp, 0)->bind.mw_rkey == 0x1ff &&
	      sent(qp, 0)->bind.new_rkey == 0x100 &&
	      sent(qp, 0)->bind.mr_lkey == 0x99 &&
	      sent(qp, 0)->bind.length == 0x10 && !sent(qp, 0)->num_sge);
	CHECK(arx_bind_mw(&qp->vqp.qp, &mw, &bind) == ENOMEM);
	CHECK(mw.rkey == 0x100);
	qp_free(qp);

	qp = qp_new(IBV_QPT_RC, QPN, 2, &cq);
	CHECK(!arx_set_wr_ops(qp, IBV_QP_EX_WITH_BIND_MW |
				  IBV_QP_EX_WITH_LOCAL_INV));
	x = &qp->vqp.qp_ex;
	ibv_wr_start(x);
	ibv_wr_bind_mw(x, &mw, 0x177, &bind.bind_info);
	ibv_wr_local_inv(x, 0x177);
	CHECK(!ibv_wr_complete(x));
	CHECK(sent(qp, 0)->opcode == IBV_WR_BIND_MW &&
	      sent(qp, 0)->bind.mw_rkey == 0x100 &&
	      sent(qp, 0)->bind.new_rkey == 0x177 &&
	      sent(qp, 0)->bind.addr == 0x1000 &&
	      sent(qp, 0)->bind.access == IBV_ACCESS_REMOTE_READ);
	CHECK(sent(qp, 1)->opcode == IBV_WR_LOCAL_INV &&
	      sent(qp, 1)->ex == 0x177);
	qp_free(qp);
	cq_free(&cq);
}

static void post_recv__no_kernel(void)
{
	struct ibv_sge sge[3] = { { .addr = 1, .length = 2, .lkey = 3 } };
	struct ibv_recv_wr wr[2] = {
		{ .wr_id = 1, .next = &wr[1], .sg_list = sge, .num_sge = 1 },
		{ .wr_id = 2, .sg_list = sge, .num_sge = 2 },
	};
	struct arx_recv_wqe *wqe;
	struct ibv_recv_wr *bad;
	struct arx_qp *qp;
	struct arx_cq cq;
	uint32_t count;

	cq_init(&cq, 4);
	qp = qp_new(IBV_QPT_RC, QPN, 4, &cq);
	kicks = 0;
	qp->vqp.qp.state = IBV_QPS_RESET;
	CHECK(arx_post_recv(&qp->vqp.qp, wr, &bad) == EINVAL && bad == wr);
	qp->vqp.qp.state = IBV_QPS_INIT;
	CHECK(!arx_post_recv(&qp->vqp.qp, wr, &bad));
	CHECK(!arx_post_recv(&qp->vqp.qp, wr, &bad));
	CHECK(arx_post_recv(&qp->vqp.qp, wr, &bad) == ENOMEM && bad == wr);
	CHECK(!kicks && qp->rq.ring.hdr->prod == (uint32_t)WRAP + 4);
	wqe = arx_ring_entry(&qp->rq.ring, WRAP + 1);
	CHECK(wqe->wr_id == 2 && wqe->num_sge == 2);

	arx_store_release(&qp->rq.ring.hdr->cons, WRAP + 1);
	qp->rq.ring.hdr->flags = ARX_RING_KICK_RECV;
	CHECK(arx_post_recv(&qp->vqp.qp, wr, &bad) == ENOMEM && bad == &wr[1]);
	CHECK(kicks == 1 && kick_qpn == QPN);

	arx_store_release(&qp->rq.ring.hdr->cons, WRAP + 5);
	wr[0].num_sge = 3;
	CHECK(arx_post_recv(&qp->vqp.qp, wr, &bad) == EINVAL && bad == wr);

	/* no queue: an SRQ, or XRC */
	count = qp->rq.ring.count;
	qp->rq.ring.count = 0;
	CHECK(arx_post_recv(&qp->vqp.qp, wr, &bad) == EINVAL && bad == wr);
	qp->rq.ring.count = count;

	/* gone, with room and without */
	wr[0].num_sge = 1;
	qp->rq.ring.hdr->flags = ARX_RING_GONE;
	CHECK(arx_post_recv(&qp->vqp.qp, wr, &bad) == EIO && bad == wr);
	CHECK(qp->rq.ring.hdr->prod == (uint32_t)WRAP + 5);

	/* zeros */
	memset(qp->rq.ring.hdr, 0, qp->rq.ring.size);
	arx_post_recv(&qp->vqp.qp, wr, &bad);
	qp_free(qp);
	cq_free(&cq);
}

static void post_srq_recv__device_gone(void)
{
	struct ibv_sge sge = { .addr = 1, .length = 2, .lkey = 3 };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct arx_srq srq = { .rq.max_sge = 1 };

	ring_init(&srq.rq.ring, 4, 32);
	arx_lock_init(&srq.rq.lock, true);
	CHECK(!arx_post_srq_recv(&srq.vsrq.srq, &wr, &bad));
	srq.rq.ring.hdr->flags = ARX_RING_GONE;
	CHECK(arx_post_srq_recv(&srq.vsrq.srq, &wr, &bad) == EIO && bad == &wr);
	CHECK(srq.rq.ring.hdr->prod == 1);
	free(srq.rq.ring.hdr);
}

static void poll_cq__fields(void)
{
	struct ibv_wc wc[4] = {};
	struct arx_qp *qp;
	struct arx_cq cq;

	cq_init(&cq, 4);
	qp = qp_new(IBV_QPT_RC, QPN, 4, &cq);
	CHECK(!arx_poll_cq(&cq.vcq.cq, 4, wc));
	complete(&cq, QPN, 1, false, 0);
	complete(&cq, QPN, 2, true, WRAP + 1);
	complete(&cq, QPN + 7, 3, true, WRAP + 77);	/* unknown: no harm */
	CHECK(!arx_poll_cq(&cq.vcq.cq, 0, wc));
	CHECK(!arx_poll_cq(&cq.vcq.cq, -1, wc));
	CHECK(arx_poll_cq(&cq.vcq.cq, 1, wc) == 1 && wc[0].wr_id == 1);
	CHECK(wc[0].opcode == IBV_WC_RECV && wc[0].byte_len == 99 &&
	      wc[0].wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM |
				 IBV_WC_WITH_INV) &&
	      wc[0].invalidated_rkey == 0x01020304 && wc[0].src_qp == 5 &&
	      wc[0].vendor_err == 7 && wc[0].sl == 3 && wc[0].qp_num == QPN &&
	      wc[0].pkey_index == 1);
	CHECK(qp->sq.tail == WRAP);
	CHECK(arx_poll_cq(&cq.vcq.cq, 4, wc) == 2 && wc[1].wr_id == 3);
	CHECK(qp->sq.tail == (uint32_t)WRAP + 1);
	CHECK(cq.ring.hdr->cons == (uint32_t)WRAP + 3);
	qp_free(qp);
	cq_free(&cq);
}

static void poll_cq__device_gone(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc[8];
	struct arx_cq cq;

	cq_init(&cq, 8);
	complete(&cq, QPN, 1, false, 0);
	complete(&cq, QPN, 2, false, 0);
	CHECK(arx_poll_cq(&cq.vcq.cq, 1, wc) == 1);

	/* zeros, with an index that looks valid and one that does not */
	memset(cq.ring.entries, 0, 8 * sizeof(struct arx_cqe));
	CHECK(!arx_poll_cq(&cq.vcq.cq, 8, wc));
	CHECK(ibv_start_poll(&cq.vcq.cq_ex, &attr) == ENOENT);
	memset(cq.ring.hdr, 0, cq.ring.size);
	cq.cons = 1000;
	CHECK(!arx_poll_cq(&cq.vcq.cq, 8, wc));
	CHECK(ibv_start_poll(&cq.vcq.cq_ex, &attr) == ENOENT);
	arx_cq_clean(&cq, QPN);
	CHECK(!arx_req_notify_cq(&cq.vcq.cq, 0));
	cq_free(&cq);
}

/* What was queued when the device went is polled, then there is an error. */
static void poll_cq__device_gone_later(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc[4];
	struct arx_cq cq;

	cq_init(&cq, 8);
	complete(&cq, QPN, 1, false, 0);
	complete(&cq, QPN, 2, false, 0);
	cq.ring.hdr->flags = ARX_RING_GONE;
	CHECK(!arx_poll_cq(&cq.vcq.cq, 0, wc));
	CHECK(arx_poll_cq(&cq.vcq.cq, 1, wc) == 1 && wc->wr_id == 1);
	CHECK(!arx_poll_cq(&cq.vcq.cq, 0, wc));
	CHECK(!ibv_start_poll(&cq.vcq.cq_ex, &attr));
	CHECK(ibv_next_poll(&cq.vcq.cq_ex) == EIO);
	ibv_end_poll(&cq.vcq.cq_ex);
	CHECK(arx_poll_cq(&cq.vcq.cq, 0, wc) == -EIO);
	CHECK(arx_poll_cq(&cq.vcq.cq, 4, wc) == -EIO);
	CHECK(ibv_start_poll(&cq.vcq.cq_ex, &attr) == EIO);
	cq_free(&cq);
}

static void cq_ex__post_while_polling(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *x;
	struct arx_qp *qp;
	struct arx_cq cq;
	struct timespec now;
	int64_t diff;

	cq_init(&cq, 4);
	x = &cq.vcq.cq_ex;
	qp = qp_new(IBV_QPT_RC, QPN, 1, &cq);
	CHECK(!arx_post_send(&qp->vqp.qp, &wr, &bad));
	complete(&cq, QPN, 6, true, WRAP + 1);
	CHECK(!ibv_start_poll(x, &attr));
	CHECK(x->wr_id == 6 && x->status == IBV_WC_SUCCESS);
	CHECK(!arx_post_send(&qp->vqp.qp, &wr, &bad));
	complete(&cq, QPN, 7, true, WRAP + 2);
	CHECK(x->wr_id == 6 && ibv_wc_read_qp_num(x) == QPN &&
	      ibv_wc_read_completion_ts(x) == 12345 &&
	      ibv_wc_read_byte_len(x) == 99 && ibv_wc_read_sl(x) == 3 &&
	      ibv_wc_read_opcode(x) == IBV_WC_RDMA_READ &&
	      ibv_wc_read_src_qp(x) == 5 && ibv_wc_read_vendor_err(x) == 7 &&
	      (uint32_t)ibv_wc_read_imm_data(x) == 0x01020304);
	clock_gettime(CLOCK_MONOTONIC, &now);
	cq.cur.timestamp = now.tv_sec * 1000000000ull + now.tv_nsec;
	clock_gettime(CLOCK_REALTIME, &now);
	diff = ibv_wc_read_completion_wallclock_ns(x) -
	       (now.tv_sec * 1000000000ull + now.tv_nsec);
	CHECK(diff < 1000000000 && diff > -1000000000);
	CHECK(!ibv_next_poll(x) && x->wr_id == 7);
	CHECK(ibv_next_poll(x) == ENOENT);
	ibv_end_poll(x);
	CHECK(ibv_start_poll(x, &attr) == ENOENT);
	attr.comp_mask = 1;
	CHECK(ibv_start_poll(x, &attr) == EINVAL);
	qp_free(qp);
	cq_free(&cq);
}

static void cq_clean__keeps_the_others(void)
{
	struct ibv_wc wc[8];
	struct arx_cq cq;
	int i, n, bits;

	for (bits = 0; bits < 256; bits++) {
		cq_init(&cq, 8);
		for (i = 0; i < 8; i++)
			complete(&cq, QPN + (bits >> i & 1), i, false, 0);
		arx_cq_clean(&cq, QPN);
		n = arx_poll_cq(&cq.vcq.cq, 8, wc);
		CHECK(n == __builtin_popcount(bits));
		for (i = 0, n = 0; i < 8; i++)
			if (bits >> i & 1)
				CHECK(wc[n].qp_num == QPN + 1 &&
				      wc[n++].wr_id == (uint64_t)i);
		CHECK(cq.ring.hdr->cons == cq.ring.hdr->prod);
		cq_free(&cq);
	}
}

/* Of an XRC SRQ, whichever QPs received; sends with such an index stay. */
static void cq_clean__of_an_srq(void)
{
	struct ibv_wc wc[4];
	struct arx_cq cq;

	cq_init(&cq, 8);
	complete(&cq, QPN, 1, false, 0x55);
	complete(&cq, QPN + 1, 2, false, 0x66);
	complete(&cq, QPN + 1, 3, false, 0x55);
	complete(&cq, QPN, 4, true, 0x55);
	complete(&cq, QPN, 5, false, 0);
	arx_cq_clean_srq(&cq, 0x55);
	CHECK(arx_poll_cq(&cq.vcq.cq, 4, wc) == 3);
	CHECK(wc[0].wr_id == 2 && wc[1].wr_id == 4 && wc[2].wr_id == 5);
	cq_free(&cq);
}

/* Each WQE of an initiator names an SRQ. The QP has no receive CQ. */
static void xrc__srqn(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)"x", .length = 1 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .qp_type.xrc.remote_srqn = 0x123 };
	struct ibv_qp_ex *x;
	struct ibv_send_wr *bad;
	struct arx_qp *qp, *rc;
	struct arx_cq cq;

	cq_init(&cq, 4);
	qp = qp_new(IBV_QPT_XRC_SEND, QPN, 4, &cq);
	qp->vqp.qp.recv_cq = NULL;
	qp->sq.ring.hdr->flags = ARX_RING_NO_KICK;
	CHECK(!arx_post_send(&qp->vqp.qp, &wr, &bad));
	CHECK(sent(qp, 0)->srqn == 0x123);
	x = &qp->vqp.qp_ex;
	CHECK(!arx_set_wr_ops(qp, IBV_QP_EX_WITH_RDMA_READ));
	ibv_wr_start(x);
	ibv_wr_rdma_read(x, 0x22, 0x1000);
	ibv_wr_set_xrc_srqn(x, 0x456);
	ibv_wr_set_sge(x, 7, 9, 8);
	CHECK(!ibv_wr_complete(x));
	CHECK(sent(qp, 1)->srqn == 0x456 &&
	      sent(qp, 1)->opcode == IBV_WR_RDMA_READ);
	rc = qp_new(IBV_QPT_RC, QPN + 1, 4, &cq);
	CHECK(!arx_set_wr_ops(rc, IBV_QP_EX_WITH_SEND));
	CHECK(!rc->vqp.qp_ex.wr_set_xrc_srqn);
	CHECK(!arx_send_ops(IBV_QPT_XRC_RECV));
	qp_free(qp);
	qp_free(rc);
	cq_free(&cq);
}

/*
 * Each request is new to the kernel, and a request for all completions stays
 * one until its event was read, which may come after that of an earlier
 * request.
 */
static void req_notify__always_new(void)
{
	static const struct {
		bool event;	/* was read before */
		bool solicited;	/* asked for */
		uint32_t bit;	/* expected */
	} steps[] = {
		{ false, true, ARX_CQ_ARM_SOLICITED }, { false, false, 0 },
		{ false, true, 0 }, { false, true, 0 },
		{ true, true, 0 }, { true, true, ARX_CQ_ARM_SOLICITED },
		{ false, false, 0 }, { false, false, 0 }, { true, true, 0 },
		{ true, true, ARX_CQ_ARM_SOLICITED },
		{ true, true, ARX_CQ_ARM_SOLICITED },
	};
	struct arx_cq cq;
	uint32_t arm, i;

	cq_init(&cq, 8);
	cq.ring.hdr->arm = WRAP;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (steps[i].event)
			arx_cq_event(&cq.vcq.cq);
		arx_req_notify_cq(&cq.vcq.cq, steps[i].solicited);
		arm = cq.ring.hdr->arm;
		CHECK((arm & ARX_CQ_ARM_SOLICITED) == steps[i].bit);
		CHECK(arm >> 1 == ((uint32_t)WRAP + 2 * i + 2) >> 1);
	}
	cq_free(&cq);
}

/* Random QPNs are added and removed, with a plain array as the model. */
static void qp_table__random(bool shared)
{
	enum { MANY = 300 };
	struct arx_qp *live[MANY] = {};
	struct ibv_wc wc;
	struct arx_qp_table *t;
	struct arx_cq cq;
	unsigned int seed = 1;
	int step, i, j;

	cq_init(&cq, 8);
	cq.lock.needed = shared;
	for (step = 0; step < 200000; step++) {
		i = rand_r(&seed) % (step < 100000 ? MANY : 20);
		if (live[i]) {
			/* the table finds this QP and no other */
			complete(&cq, live[i]->vqp.qp.qp_num, 0, true, step);
			CHECK(arx_poll_cq(&cq.vcq.cq, 1, &wc) == 1);
			CHECK(live[i]->sq.tail == (uint32_t)step);
			arx_cq_remove_qp(&cq, live[i]);
			complete(&cq, live[i]->vqp.qp.qp_num, 0, true, ~step);
			CHECK(arx_poll_cq(&cq.vcq.cq, 1, &wc) == 1);
			CHECK(live[i]->sq.tail == (uint32_t)step);
			free(live[i]);
			live[i] = NULL;
			continue;
		}
		live[i] = aligned_alloc(ARX_CACHE_LINE, sizeof(**live));
		memset(live[i], 0, sizeof(**live));
again:
		/* few different values in the low bits: long chains */
		live[i]->vqp.qp.qp_num = 1 + (rand_r(&seed) % 997) * 16;
		for (j = 0; j < MANY; j++)
			if (j != i && live[j] && live[j]->vqp.qp.qp_num ==
						 live[i]->vqp.qp.qp_num)
				goto again;
		CHECK(!arx_cq_add_qp(&cq, live[i]));
	}
	for (i = 0, t = cq.qps; t; t = t->older)
		i++;
	CHECK(i <= 2);
	for (i = 0; i < MANY; i++)
		free(live[i]);
	cq_free(&cq);
}

/* ------------------------------------------------------------------------ */
/* A kernel in another thread: takes WQEs, writes a CQE for one in four. */

enum { ROUNDS = 300000, DEPTH = 16 };

struct kernel {
	struct arx_qp *qp;
	struct arx_cq *cq;
};

static void *kernel_thread(void *arg)
{
	struct kernel *k = arg;
	struct arx_ring *sq = &k->qp->sq.ring;
	struct arx_send_wqe *wqe;
	uint32_t cons = WRAP;
	uint64_t n = 0;

	while (n < ROUNDS) {
		if (arx_load_acquire(&sq->hdr->prod) == cons) {
			sched_yield();
			continue;
		}
		wqe = arx_ring_entry(sq, cons);
		CHECK(wqe->wr_id == n);
		CHECK(((struct arx_sge *)(wqe + 1))->addr == n);
		cons++;
		n++;
		if (wqe->flags & IBV_SEND_SIGNALED)
			complete(k->cq, QPN, n - 1, true, cons);
	}
	return NULL;
}

static void *poll_thread(void *arg)
{
	struct kernel *k = arg;
	struct ibv_wc wc[5];
	uint64_t expect = 3;
	int i, n;

	while (expect < ROUNDS) {
		n = arx_poll_cq(&k->cq->vcq.cq, 5, wc);
		for (i = 0; i < n; i++, expect += 4)
			CHECK(wc[i].wr_id == expect);
		if (!n)
			sched_yield();
	}
	return NULL;
}

static void threads__in_order(void)
{
	struct ibv_sge sge = {};
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND }, *bad;
	pthread_t kernel, poller;
	struct kernel k;
	struct arx_cq cq;
	uint64_t n;
	int err;

	/* room for the possible CQEs and not one more */
	cq_init(&cq, DEPTH / 4);
	k.cq = &cq;
	k.qp = qp_new(IBV_QPT_RC, QPN, DEPTH, &cq);
	k.qp->sq.ring.hdr->flags = ARX_RING_NO_KICK;
	CHECK(!pthread_create(&kernel, NULL, kernel_thread, &k));
	CHECK(!pthread_create(&poller, NULL, poll_thread, &k));
	for (n = 0; n < ROUNDS;) {
		sge.addr = n;
		wr.wr_id = n;
		wr.send_flags = n % 4 == 3 ? IBV_SEND_SIGNALED : 0;
		err = arx_post_send(&k.qp->vqp.qp, &wr, &bad);
		CHECK(!err || err == ENOMEM);
		if (err)
			sched_yield();
		else
			n++;
	}
	pthread_join(kernel, NULL);
	pthread_join(poller, NULL);
	qp_free(k.qp);
	cq_free(&cq);
}

/* ------------------------------------------------------------------------ */
/* One thread arms a CQ without locks, another one reads its events. */

enum { ARMINGS = 1000000 };

struct reader {
	struct arx_cq *cq;
	atomic_bool end;
};

static void *reader_thread(void *arg)
{
	struct reader *r = arg;

	while (!atomic_load(&r->end))
		arx_cq_event(&r->cq->vcq.cq);
	return NULL;
}

/* An event that is read meanwhile does not weaken the request. */
static void req_notify__while_events_are_read(void)
{
	struct reader r = {};
	pthread_t reader;
	struct arx_cq cq;
	int n;

	cq_init(&cq, 8);
	arx_lock_init(&cq.arm_lock, false);
	r.cq = &cq;
	CHECK(!pthread_create(&reader, NULL, reader_thread, &r));
	for (n = 0; n < ARMINGS; n++) {
		arx_req_notify_cq(&cq.vcq.cq, 0);
		CHECK(!(cq.ring.hdr->arm & ARX_CQ_ARM_SOLICITED));
	}
	atomic_store(&r.end, true);
	pthread_join(reader, NULL);
	cq_free(&cq);
}

int main(void)
{
	post_send__list_is_one_kick();
	poll__kicks_all_deferred();
	poll__kicks_until_there_are_completions();
	poll__kicks_at_the_receive_cq();
	post_send__what_cannot_be();
	post_send__inline_fits_or_fails();
	wr__all_or_nothing();
	bind_mw__new_rkey();
	post_recv__no_kernel();
	post_srq_recv__device_gone();
	poll_cq__fields();
	poll_cq__device_gone();
	poll_cq__device_gone_later();
	cq_ex__post_while_polling();
	cq_clean__keeps_the_others();
	cq_clean__of_an_srq();
	xrc__srqn();
	req_notify__always_new();
	qp_table__random(true);
	qp_table__random(false);
	threads__in_order();
	req_notify__while_events_are_read();
	puts("libarx rings: all good");
	return 0;
}
