// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Every verb of queues against every other, in threads of one context, for the
 * thread sanitizer: resize of CQ and SRQ, arming, polling in both ways, posting
 * in both ways, QPs and CQs that are created and destroyed. This program plays
 * the kernel. That part is hidden from the sanitizer; otherwise its lock would
 * order accesses that libarx does not order. Rings are really unmapped, so that
 * a stale pointer crashes, and one mmap() in eight fails.
 */
#define _GNU_SOURCE		/* for memfd_create() */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"
#include "arx.h"
#include "compat.h"

#define KERNEL	__attribute__((no_sanitize("thread"), noinline))

#define CHECK(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__,	\
				__LINE__, __func__, #cond);		\
			exit(1);					\
		}							\
	} while (0)

enum {
	FD	= 77,
	OBJECTS	= 64,
	DEPTH	= 32,		/* of send queues */
	STRIDE	= 64 + 16,	/* of a receive: four SGEs */
};

/* ------------------------------------------------------------------------ */
/* The kernel */

struct kcq {
	struct arx_ring ring, next;
	uint32_t prod;
};

struct kqp {
	bool used;
	struct arx_ring sq, rq;
	struct kcq *scq;
	uint32_t cons;
};

static struct kcq kcqs[OBJECTS];
static struct kqp kqps[OBJECTS];
static struct {
	struct arx_ring ring, next;
	uint32_t cons;
	uint64_t expect;
} ksrq;
static int klock;
static unsigned int kseed = 1;
static bool over;
static unsigned int resized, refused, flushed;	/* by the resizing threads */

void *__real_mmap(void *addr, size_t size, int prot, int flags, int fd,
		  off_t offset);

KERNEL static void lock(void)
{
	while (__atomic_exchange_n(&klock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

KERNEL static void unlock(void)
{
	__atomic_store_n(&klock, 0, __ATOMIC_RELEASE);
}

KERNEL static bool one_in(unsigned int n)
{
	kseed = kseed * 1103515245 + 12345;
	return (kseed >> 16) % n == 0;
}

KERNEL static void *entry(const struct arx_ring *ring, uint32_t i)
{
	return (char *)ring->entries + (size_t)(i & ring->mask) * ring->stride;
}

/* Mapped twice, so that the kernel's own mapping stays. */
KERNEL static void make_ring(struct arx_ring *ring, uint32_t count,
			     uint32_t stride, struct arx_ring_info *info)
{
	int fd = memfd_create("ring", 0);
	uint32_t entries = 1;

	while (entries < count)
		entries *= 2;
	info->size = (ARX_RING_ENTRIES_OFFSET + (uint64_t)entries * stride +
		      4095) & ~4095ull;
	CHECK(!ftruncate(fd, info->size));
	info->offset = (uintptr_t)__real_mmap(NULL, info->size,
					      PROT_READ | PROT_WRITE,
					      MAP_SHARED, fd, 0);
	ring->hdr = __real_mmap(NULL, info->size, PROT_READ | PROT_WRITE,
				MAP_SHARED, fd, 0);
	close(fd);
	ring->entries = (char *)ring->hdr + ARX_RING_ENTRIES_OFFSET;
	ring->mask = entries - 1;
	ring->stride = stride;
	ring->size = info->size;
	info->entries = entries;
	info->stride = stride;
}

KERNEL static void free_ring(struct arx_ring *ring)
{
	if (ring->hdr)
		munmap(ring->hdr, ring->size);
	ring->hdr = NULL;
}

/* Replace a ring by the prepared one, unless preparing it failed. */
KERNEL static int commit(struct arx_ring *ring, struct arx_ring *next, int err)
{
	if (err) {
		free_ring(next);
		return err;
	}
	free_ring(ring);
	*ring = *next;
	next->hdr = NULL;
	return 0;
}

KERNEL static void take_sends(struct kqp *qp)
{
	struct arx_ring *to = &qp->scq->ring;
	uint32_t prod = __atomic_load_n(&qp->sq.hdr->prod, __ATOMIC_ACQUIRE);
	struct arx_send_wqe *wqe;
	struct arx_cqe *cqe;

	while (qp->cons != prod) {
		if (qp->scq->prod - __atomic_load_n(&to->hdr->cons,
						    __ATOMIC_ACQUIRE) >
		    to->mask)
			return;
		wqe = entry(&qp->sq, qp->cons++);
		cqe = entry(to, qp->scq->prod);
		cqe->wr_id = wqe->wr_id;
		cqe->qpn = qp - kqps;
		cqe->status = IBV_WC_SUCCESS;
		cqe->is_send = 1;
		cqe->sq_index = qp->cons;
		__atomic_store_n(&to->hdr->prod, ++qp->scq->prod,
				 __ATOMIC_RELEASE);
	}
}

KERNEL static void take_receives(void)
{
	struct arx_ring *ring = &ksrq.ring;
	struct arx_recv_wqe *wqe;

	while (ring->hdr && ksrq.cons != __atomic_load_n(&ring->hdr->prod,
					    __ATOMIC_ACQUIRE) && !one_in(16)) {
		wqe = entry(ring, ksrq.cons);
		CHECK(wqe->wr_id == ksrq.expect++);
		__atomic_store_n(&ring->hdr->cons, ++ksrq.cons,
				 __ATOMIC_RELEASE);
	}
}

int __wrap_ioctl(int fd, unsigned long request, ...);
KERNEL int __wrap_ioctl(int fd, unsigned long request, ...)
{
	unsigned long qpn;
	va_list ap;

	va_start(ap, request);
	qpn = va_arg(ap, unsigned long);
	va_end(ap);
	CHECK(fd == FD && request == ARX_IOCTL_KICK && qpn < OBJECTS);
	lock();
	if (kqps[qpn].used)
		take_sends(&kqps[qpn]);
	unlock();
	return 0;
}

void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd,
		  off_t offset);
KERNEL void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd,
			 off_t offset)
{
	bool fails;

	if (fd != FD)
		return __real_mmap(addr, size, prot, flags, fd, offset);
	lock();
	fails = one_in(8);
	unlock();
	if (!fails)
		return (void *)(uintptr_t)offset;
	munmap((void *)(uintptr_t)offset, size);
	errno = ENOMEM;
	return MAP_FAILED;
}

/* Polls all rings, and sets or clears ARX_RING_NO_KICK. */
KERNEL static void *kernel_thread(void *arg)
{
	unsigned int i;

	while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
		lock();
		for (i = 1; i < OBJECTS; i++) {
			if (!kqps[i].used || !one_in(4))
				continue;
			take_sends(&kqps[i]);
			__atomic_store_n(&kqps[i].sq.hdr->flags,
					 one_in(2) ? ARX_RING_NO_KICK : 0,
					 __ATOMIC_SEQ_CST);
		}
		take_receives();
		unlock();
		sched_yield();
	}
	return NULL;
}

KERNEL int ibv_cmd_create_cq_ex(struct ibv_context *context,
				const struct ibv_cq_init_attr_ex *attr,
#if IBVERBS_PABI_VERSION >= 59
				struct ibv_buf *buf,
#endif
				struct verbs_cq *cq,
				struct ibv_create_cq_ex *cmd, size_t cmd_size,
				struct ib_uverbs_ex_create_cq_resp *resp,
				size_t resp_size, uint32_t flags)
{
	struct uarx_create_cq_ex_resp *r = (void *)resp;
	unsigned int i;

	lock();
	for (i = 0; kcqs[i].ring.hdr; i++)
		;
	CHECK(i < OBJECTS);
	memset(&kcqs[i], 0, sizeof(kcqs[i]));
	make_ring(&kcqs[i].ring, attr->cqe, sizeof(struct arx_cqe),
		  &r->drv_payload.ring);
	unlock();
	cq->cq.context = context;
	cq->cq.handle = i;
	return 0;
}

KERNEL int ibv_cmd_resize_cq(struct ibv_cq *cq, int cqe,
			     struct ibv_resize_cq *cmd, size_t cmd_size,
			     struct ib_uverbs_resize_cq_resp *resp,
			     size_t resp_size)
{
	struct uarx_resize_cq_resp *r = (void *)resp;
	struct uarx_resize_cq *c = (void *)cmd;
	struct kcq *kcq = &kcqs[cq->handle];
	struct arx_ring *to = &kcq->next;
	int err = 0;

	lock();
	if (c->drv_payload.step == ARX_RESIZE_PREPARE) {
		free_ring(to);
		make_ring(to, cqe, sizeof(struct arx_cqe),
			  &r->drv_payload.ring);
	} else {
		if (kcq->prod - to->hdr->cons > to->mask + 1)
			err = EINVAL;
		to->hdr->arm = kcq->ring.hdr->arm;
		to->hdr->prod = kcq->prod;
		err = commit(&kcq->ring, to, err);
	}
	unlock();
	return err;
}

KERNEL int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	lock();
	free_ring(&kcqs[cq->handle].next);
	free_ring(&kcqs[cq->handle].ring);
	unlock();
	return 0;
}

KERNEL int ibv_cmd_create_srq(struct ibv_pd *pd, struct ibv_srq *srq,
			      struct ibv_srq_init_attr *attr,
			      struct ibv_create_srq *cmd, size_t cmd_size,
			      struct ib_uverbs_create_srq_resp *resp,
			      size_t resp_size)
{
	struct uarx_create_srq_resp *r = (void *)resp;

	lock();
	make_ring(&ksrq.ring, attr->attr.max_wr, STRIDE, &r->drv_payload.ring);
	unlock();
	srq->context = pd->context;
	return 0;
}

KERNEL int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
			      int mask, struct ibv_modify_srq *cmd,
			      size_t cmd_size)
{
	struct uarx_modify_srq *c = (void *)cmd;
	struct arx_ring *to = &ksrq.next;
	int err = 0;

	if (!(mask & IBV_SRQ_MAX_WR))
		return 0;
	lock();
	if (c->drv_payload.step == ARX_RESIZE_PREPARE) {
		free_ring(to);
		make_ring(to, attr->max_wr, STRIDE,
			  (void *)(uintptr_t)c->drv_payload.resp_addr);
	} else {
		if (to->hdr->prod - ksrq.cons > to->mask + 1)
			err = EINVAL;
		to->hdr->cons = ksrq.cons;
		err = commit(&ksrq.ring, to, err);
	}
	unlock();
	return err;
}

KERNEL int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	lock();
	free_ring(&ksrq.ring);
	unlock();
	return 0;
}

KERNEL int ibv_cmd_create_qp_ex2(struct ibv_context *context,
				 struct verbs_qp *qp,
				 struct ibv_qp_init_attr_ex *attr,
				 struct ibv_create_qp_ex *cmd, size_t cmd_size,
				 struct ib_uverbs_ex_create_qp_resp *resp,
				 size_t resp_size)
{
	struct uarx_create_qp_resp *r = (void *)resp;
	unsigned int i;

	lock();
	for (i = 1; kqps[i].used; i++)
		;
	CHECK(i < OBJECTS);
	kqps[i].cons = 0;
	kqps[i].scq = &kcqs[attr->send_cq->handle];
	make_ring(&kqps[i].sq, attr->cap.max_send_wr, 128,
		  &r->drv_payload.sq);
	make_ring(&kqps[i].rq, 1, STRIDE, &r->drv_payload.rq);
	kqps[i].used = true;
	unlock();
	qp->qp.context = context;
	qp->qp.qp_num = i;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.state = IBV_QPS_RTS;	/* libibverbs does the rest */
	return 0;
}

KERNEL int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			     int mask, struct ibv_modify_qp *cmd,
			     size_t cmd_size)
{
	struct kqp *k = &kqps[qp->qp_num];

	lock();
	k->cons = __atomic_load_n(&k->sq.hdr->prod, __ATOMIC_ACQUIRE);
	k->sq.hdr->cons = k->cons;
	unlock();
	return 0;
}

/*
 * From here on the kernel no longer refuses to destroy the CQs and the PD of
 * the QP, and another thread may destroy them before libarx continues: this CQ
 * and this PD, if any.
 */
static struct ibv_cq *cq_of_qp;
static struct arx_pd *pd_of_qp;

KERNEL int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	lock();
	kqps[qp->qp_num].used = false;
	free_ring(&kqps[qp->qp_num].sq);
	free_ring(&kqps[qp->qp_num].rq);
	unlock();
	if (cq_of_qp)
		CHECK(!arx_destroy_cq(cq_of_qp));
	free(pd_of_qp);
	return 0;
}

/* Functions of libibverbs that verbs.c uses and this program never calls. */
#define UNUSED(name)	__asm__(".globl " #name "\n" #name ":\n\t.byte 0")

UNUSED(execute_ioctl);
UNUSED(ibv_cmd_alloc_dm);
UNUSED(ibv_cmd_alloc_mw);
UNUSED(ibv_cmd_alloc_pd);
UNUSED(ibv_cmd_close_xrcd);
UNUSED(ibv_cmd_create_ah);
UNUSED(ibv_cmd_create_srq_ex);
UNUSED(ibv_cmd_dealloc_mw);
UNUSED(ibv_cmd_dealloc_pd);
UNUSED(ibv_cmd_dereg_mr);
UNUSED(ibv_cmd_destroy_ah);
UNUSED(ibv_cmd_free_dm);
UNUSED(ibv_cmd_modify_cq);
UNUSED(ibv_cmd_open_qp);
UNUSED(ibv_cmd_open_xrcd);
UNUSED(ibv_cmd_query_device_any);
UNUSED(ibv_cmd_query_mr);
UNUSED(ibv_cmd_query_port);
UNUSED(ibv_cmd_query_qp);
UNUSED(ibv_cmd_query_srq);
UNUSED(ibv_cmd_reg_dmabuf_mr);
UNUSED(ibv_cmd_reg_dm_mr);
UNUSED(ibv_cmd_reg_mr);
UNUSED(ibv_cmd_rereg_mr);

/* ------------------------------------------------------------------------ */
/* The application */

static struct arx_context ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_cq *rcq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static uint32_t qpn;		/* of qp */
static atomic_uint posted;
static atomic_uint polled;

static bool goes_on(void)
{
	return !__atomic_load_n(&over, __ATOMIC_RELAXED);
}

/* mmap() sometimes fails, and so does the creation of an object. */
static struct ibv_cq *make_cq(int cqe)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe, .wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct ibv_cq_ex *made;

	while (!(made = arx_create_cq_ex(&ctx.vctx.context, &attr)))
		CHECK(errno == ENOMEM);
	return ibv_cq_ex_to_cq(made);
}

static struct ibv_qp *make_qp(struct ibv_cq *send_cq, struct ibv_cq *recv_cq)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC, .send_cq = send_cq, .recv_cq = recv_cq,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
		.sq_sig_all = 1, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *made;

	while (!(made = arx_create_qp_ex(&ctx.vctx.context, &attr)))
		CHECK(errno == ENOMEM);
	return made;
}

static int post(struct ibv_qp *to)
{
	struct ibv_sge sge = { .addr = 1, .length = 8 };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
	}, *bad;

	return arx_post_send(to, &wr, &bad);
}

static void *post_thread(void *arg)
{
	while (goes_on())
		if (!post(qp))
			posted++;
		else
			sched_yield();
	return NULL;
}

static void *wr_thread(void *arg)
{
	struct ibv_qp_ex *x = &to_arx_qp(qp)->vqp.qp_ex;

	while (goes_on()) {
		ibv_wr_start(x);
		ibv_wr_rdma_write(x, 1, 2);
		ibv_wr_set_sge(x, 1, 2, 3);
		ibv_wr_rdma_write(x, 1, 2);
		ibv_wr_set_sge(x, 1, 2, 3);
		if (!ibv_wr_complete(x))
			posted += 2;
		else
			sched_yield();
	}
	return NULL;
}

static void *poll_thread(void *arg)
{
	struct ibv_wc wc[3];
	int i, n;

	while (goes_on()) {
		n = arx_poll_cq(cq, 3, wc);
		CHECK(n >= 0);
		for (i = 0; i < n; i++)
			if (wc[i].qp_num == qpn)
				polled++;
		if (!n)
			sched_yield();
	}
	return NULL;
}

/* Between ibv_start_poll() and ibv_end_poll() other objects may change. */
static void *poll_ex_thread(void *arg)
{
	struct ibv_cq_ex *x = &to_arx_cq(cq)->vcq.cq_ex;
	struct ibv_cq *aside = make_cq(4);
	struct ibv_poll_cq_attr attr = {};
	int err, n;

	while (goes_on()) {
		err = ibv_start_poll(x, &attr);
		CHECK(!err || err == ENOENT);
		if (err) {
			sched_yield();
			continue;
		}
		for (n = 0; !err && n < 5; n++) {
			if (ibv_wc_read_qp_num(x) == qpn)
				polled++;
			if (n < 4)
				err = ibv_next_poll(x);
		}
		CHECK(!arx_destroy_qp(make_qp(aside, aside)));
		err = arx_resize_cq(aside, 8);
		CHECK(!err || err == ENOMEM);
		ibv_end_poll(x);
	}
	CHECK(!arx_destroy_cq(aside));
	return NULL;
}

static void *poll_recv_thread(void *arg)
{
	while (goes_on()) {
		CHECK(arx_poll_cq(rcq, 1, &(struct ibv_wc){}) >= 0);
		sched_yield();
	}
	return NULL;
}

static void *arm_thread(void *arg)
{
	unsigned int n;

	for (n = 0; goes_on(); n++) {
		CHECK(!arx_req_notify_cq(n % 3 ? cq : rcq, n & 1));
		arx_cq_event(n % 3 ? cq : rcq);
		sched_yield();
	}
	return NULL;
}

static void *resize_cq_thread(void *arg)
{
	unsigned int n;
	int err;

	for (n = 0; goes_on(); n++) {
		err = arx_resize_cq(n % 5 ? cq : rcq, 128 << n % 4);
		CHECK(!err || err == ENOMEM || err == EINVAL);
		if (err)
			refused++;
		else
			resized++;
		sched_yield();
	}
	return NULL;
}

static void *resize_srq_thread(void *arg)
{
	struct ibv_srq_attr attr = {};
	unsigned int n;
	int err;

	for (n = 0; goes_on(); n++) {
		attr.max_wr = 8 << n % 4;
		err = arx_modify_srq(srq, &attr, IBV_SRQ_MAX_WR |
						 (n & 1 ? IBV_SRQ_LIMIT : 0));
		CHECK(!err || err == ENOMEM || err == EINVAL);
		CHECK(!arx_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
		sched_yield();
	}
	return NULL;
}

static void *post_srq_thread(void *arg)
{
	struct ibv_sge sge = { .addr = 1 };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	int err;

	while (goes_on()) {
		err = arx_post_srq_recv(srq, &wr, &bad);
		CHECK(!err || err == ENOMEM);
		if (!err)
			wr.wr_id++;
		else
			sched_yield();
	}
	return NULL;
}

/* QPs of the shared CQ, destroyed with CQEs of theirs in it. */
static void *qp_thread(void *arg)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *mine;
	unsigned int n;

	for (n = 0; goes_on(); n++) {
		mine = make_qp(n & 2 ? cq : rcq, cq);
		CHECK(!post(mine) && !post(mine));
		if (n & 1)
			CHECK(!arx_modify_qp(mine, &attr, IBV_QP_STATE) &&
			      !post(mine));
		CHECK(!arx_destroy_qp(mine));
	}
	return NULL;
}

static void *cq_thread(void *arg)
{
	struct ibv_cq *mine;
	struct ibv_wc wc[2];
	struct ibv_qp *of;

	while (goes_on()) {
		mine = make_cq(4);
		of = make_qp(mine, cq);
		CHECK(!post(of) && !post(of));
		arx_resize_cq(mine, 100);
		while (!arx_poll_cq(mine, 1, wc))
			sched_yield();
		CHECK(wc->qp_num == of->qp_num);
		CHECK(!arx_destroy_qp(of));
		CHECK(!arx_destroy_cq(mine));
		flushed++;
	}
	return NULL;
}

int main(void)
{
	static void *(*const all[])(void *) = {
		kernel_thread, post_thread, wr_thread, poll_thread,
		poll_ex_thread, poll_recv_thread, arm_thread, resize_cq_thread,
		resize_srq_thread, post_srq_thread, qp_thread, cq_thread,
	};
	enum { ALL = sizeof(all) / sizeof(all[0]) };
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = 8, .max_sge = 2 },
	};
	struct timespec time = { .tv_sec = 2 };
	struct arx_pd domain = {}, *plain;
	pthread_t threads[ALL];
	int i;

	ctx.vctx.context.cmd_fd = FD;
	ctx.doorbell = FD;
	pthread_mutex_init(&ctx.qp_mutex, NULL);
	pd = &domain.ibpd;
	pd->context = &ctx.vctx.context;
	cq = make_cq(256);
	rcq = make_cq(256);
	qp = make_qp(cq, rcq);
	qpn = qp->qp_num;
	while (!(srq = arx_create_srq(pd, &attr)))
		CHECK(errno == ENOMEM);

	alarm(120);		/* a deadlock */
	for (i = 0; i < ALL; i++)
		CHECK(!pthread_create(&threads[i], NULL, all[i], NULL));
	nanosleep(&time, NULL);
	__atomic_store_n(&over, true, __ATOMIC_RELAXED);
	for (i = 0; i < ALL; i++)
		CHECK(!pthread_join(threads[i], NULL));
	alarm(0);

	/* Each posted request completes once, whatever happened to the CQ. */
	__wrap_ioctl(FD, ARX_IOCTL_KICK, (unsigned long)qpn);
	for (i = 0; i < 1000; i++) {
		struct ibv_wc wc;

		if (arx_poll_cq(cq, 1, &wc) == 1 && wc.qp_num == qpn)
			polled++;
	}
	printf("%u posted, %u polled, %u times resized, %u refused\n", posted,
	       polled, resized, refused);
	CHECK(posted == polled && posted > 1000);
	CHECK(resized > 10 && refused && flushed && ksrq.expect > 100);

	rcq = make_cq(4);
	plain = calloc(1, sizeof(*plain));
	CHECK(plain);
	pd = &plain->ibpd;
	pd->context = &ctx.vctx.context;
	qp = make_qp(rcq, rcq);
	qp->pd = pd;
	cq_of_qp = rcq;
	pd_of_qp = plain;
	CHECK(!arx_destroy_qp(qp));
	puts("libarx threads: all good");
	return 0;
}
