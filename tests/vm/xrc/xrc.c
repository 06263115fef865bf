// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * xrc DEVICE FILE NAME [TEST]: XRC between QPs of one device. FILE names the
 * XRC domain, NAME the cases.
 *
 * Every operation, memory paged on demand, two processes that share a domain
 * and a target QP, errors, and the end of objects in any order.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MEM		(1 << 20)
#define HALF		(MEM / 2)	/* from here on: what the peer names */
#define DEPTH		64
#define REMOTE_ALL	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL)
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | REMOTE_ALL)

/*
 * What one process has. @forget: if not 0, the madvise() by which the pages for
 * an operation's result are gone before it. The memory is shared: its bytes are
 * still there after MADV_DONTNEED, but not after MADV_REMOVE.
 */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	uint32_t srqn;
	union ibv_gid gid;
	int gid_index;
	int forget;
	uint8_t *mem;
};

/* A connection: two QPs. */
struct link {
	struct ibv_qp *ini;
	struct ibv_qp *tgt;
};

static const char *device, *file, *group;
static int bad;

static void die(const char *what)
{
	printf("not ok %s: %s\n", what, strerror(errno));
	exit(1);
}

static void expect(bool good, const char *format, ...)
{
	va_list args;

	if (good)
		return;
	bad++;
	va_start(args, format);
	printf("#   %s: ", group);
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---- objects ---- */

static void find_gid(struct side *s)
{
	struct ibv_gid_entry entries[32];
	ssize_t i, n = ibv_query_gid_table(s->context, entries,
					   ARRAY_SIZE(entries), 0);

	for (i = 0; i < n; i++)
		if (entries[i].gid.raw[10] == 0xff &&
		    entries[i].gid.raw[11] == 0xff) {
			s->gid = entries[i].gid;
			s->gid_index = entries[i].gid_index;
			return;
		}
	die("no GID");
}

static struct ibv_xrcd *open_domain(struct ibv_context *context,
				    const char *name, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = oflags,
	};
	struct ibv_xrcd *xrcd;
	int err;

	if (name)
		attr.fd = open(name, O_RDONLY | O_CREAT, 0600);
	xrcd = ibv_open_xrcd(context, &attr);
	err = errno;
	if (name)
		close(attr.fd);
	errno = err;
	return xrcd;
}

static struct ibv_srq *make_srq(struct side *s, struct ibv_pd *pd,
				struct ibv_xrcd *xrcd, uint32_t *srqn)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = DEPTH, .max_sge = 2 },
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = s->cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(s->context, &attr);

	if (!srq || ibv_get_srq_num(srq, srqn))
		die("ibv_create_srq_ex");
	return srq;
}

static void make_side(struct side *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	memset(s, 0, sizeof(*s));
	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			s->context = ibv_open_device(list[i]);
	if (!s->context)
		die("ibv_open_device");
	find_gid(s);
	s->mem = mmap(NULL, MEM, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	s->pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 4 * DEPTH, NULL, NULL, 0);
	s->mr = ibv_reg_mr(s->pd, s->mem, MEM, ACCESS);
	s->xrcd = open_domain(s->context, file, O_CREAT);
	if (!s->pd || !s->cq || !s->mr || !s->xrcd)
		die("objects");
	s->srq = make_srq(s, s->pd, s->xrcd, &s->srqn);
}

static void free_side(struct side *s)
{
	expect(!ibv_destroy_srq(s->srq) && !ibv_close_xrcd(s->xrcd) &&
	       !ibv_dereg_mr(s->mr) && !ibv_destroy_cq(s->cq) &&
	       !ibv_dealloc_pd(s->pd) && !ibv_close_device(s->context),
	       "the end: %s", strerror(errno));
	munmap(s->mem, MEM);
}

static struct ibv_qp *make_tgt(struct side *s)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = s->xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(s->context, &attr);

	if (!qp)
		die("a target QP");
	return qp;
}

static struct ibv_qp *make_ini(struct side *s)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND,
		.pd = s->pd,
		.send_cq = s->cq,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				  IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_FLUSH |
				  IBV_QP_EX_WITH_ATOMIC_WRITE,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 2 },
	};
	struct ibv_qp *qp = ibv_create_qp_ex(s->context, &attr);

	if (!qp)
		die("an initiator QP");
	return qp;
}

static void to_rts(struct side *s, struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.rq_psn = 7,
		.sq_psn = 7,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.qp_access_flags = REMOTE_ALL,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = s->gid, .sgid_index = s->gid_index,
				.hop_limit = 64,
			},
		},
	};
	bool ini = qp->qp_type == IBV_QPT_XRC_SEND;
	int rtr = ini ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	int rts = ini ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC : 0;
	int err;

	attr.qp_state = IBV_QPS_RESET;
	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_INIT;
	err = err ?: ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				   IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	err = err ?: ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | rtr);
	attr.qp_state = IBV_QPS_RTS;
	err = err ?: ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_SQ_PSN |
				   IBV_QP_TIMEOUT | rts);
	expect(!err, "ibv_modify_qp: %s", strerror(err));
}

static void join(struct side *s, struct link *l)
{
	to_rts(s, l->ini, l->tgt->qp_num);
	to_rts(s, l->tgt, l->ini->qp_num);
}

static struct link make_link(struct side *s)
{
	struct link l = { make_ini(s), make_tgt(s) };

	join(s, &l);
	return l;
}

static void free_link(struct link *l)
{
	expect(!ibv_destroy_qp(l->tgt) && !ibv_destroy_qp(l->ini),
	       "ibv_destroy_qp");
}

/* ---- work requests ---- */

static void recv_at(struct side *s, struct ibv_srq *srq, uint64_t id,
		    uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)s->mem + HALF, len, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad_wr;

	expect(!ibv_post_srq_recv(srq, &wr, &bad_wr), "ibv_post_srq_recv");
}

static int post(struct side *s, struct ibv_qp *qp, enum ibv_wr_opcode op,
		uint32_t len, uint32_t srqn, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)s->mem, len, s->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = op,
		.qp_type.xrc.remote_srqn = srqn,
		.imm_data = htobe32(0x12345678),
	}, *bad_wr;

	if (op == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)s->mem + HALF;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.swap = 9;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)s->mem + HALF;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(qp, &wr, &bad_wr);
}

/* The same by the extended verbs. */
static int post_ex(struct side *s, struct ibv_qp *qp, enum ibv_wr_opcode op,
		   uint32_t len, uint32_t srqn, uint32_t rkey)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(qp);
	uint64_t there = (uintptr_t)s->mem + HALF;

	ibv_wr_start(x);
	x->wr_id = 1;
	x->wr_flags = 0;
	switch (op) {
	case IBV_WR_SEND:
		ibv_wr_send(x);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(x, htobe32(0x12345678));
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(x, rkey, there);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(x, rkey, there, htobe32(0x12345678));
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(x, rkey, there);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(x, rkey, there, 5, 9);
		break;
	default:
		ibv_wr_atomic_fetch_add(x, rkey, there, 5);
	}
	ibv_wr_set_xrc_srqn(x, srqn);
	ibv_wr_set_sge(x, s->mr->lkey, (uintptr_t)s->mem, len);
	return ibv_wr_complete(x);
}

static struct ibv_wc next_wc(struct side *s)
{
	struct ibv_wc wc = { .wr_id = ~0ull };
	double end = now() + 20;

	while (!ibv_poll_cq(s->cq, 1, &wc) && now() < end)
		;
	expect(wc.wr_id != ~0ull, "no completion");
	return wc;
}

/* A request to be refused: its status, and the target's event. */
static void refused(struct side *s, struct link *l, enum ibv_wc_status status,
		    enum ibv_event_type type, const char *what)
{
	struct pollfd async = { .fd = s->context->async_fd, .events = POLLIN };
	struct ibv_async_event event = {};
	struct ibv_wc wc = next_wc(s);

	expect(wc.status == status && wc.qp_num == l->ini->qp_num, "%s: %s",
	       what, ibv_wc_status_str(wc.status));
	do {
		if (poll(&async, 1, 10000) != 1 ||
		    ibv_get_async_event(s->context, &event)) {
			expect(false, "%s: no event", what);
			break;
		}
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	expect(event.event_type == type && event.element.qp == l->tgt, "%s: %s",
	       what, ibv_event_type_str(event.event_type));
	join(s, l);
}

/* ---- tests ---- */

static bool received(const struct ibv_wc *wc, const struct link *l, uint32_t n,
		     bool imm)
{
	if (wc->status != IBV_WC_SUCCESS || wc->byte_len != n ||
	    wc->qp_num != l->tgt->qp_num || wc->src_qp != l->ini->qp_num)
		return false;
	return imm ? wc->wc_flags & IBV_WC_WITH_IMM &&
		     wc->imm_data == htobe32(0x12345678) :
		     !(wc->wc_flags & IBV_WC_WITH_IMM);
}

/* The pages for a result are gone as @forget says, all others by DONTNEED. */
static void forget(struct side *s, uint8_t *result)
{
	if (s->forget)
		expect(!madvise(result, HALF, s->forget) &&
		       !madvise(s->mem, MEM, MADV_DONTNEED),
		       "madvise: %s", strerror(errno));
}

/* An operation with @n bytes, posted by @how. */
static void operate(struct side *s, const struct link *l, typeof(&post) how,
		    enum ibv_wr_opcode op, uint32_t n)
{
	bool read = op == IBV_WR_RDMA_READ;
	bool imm = op == IBV_WR_SEND_WITH_IMM ||
		   op == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool recvs = imm || op == IBV_WR_SEND;
	uint8_t *from = s->mem + (read ? HALF : 0);
	uint8_t *to = s->mem + (read ? 0 : HALF);
	struct ibv_wc wc, recv = {}, send = {};
	uint32_t i;

	for (i = 0; i < HALF; i++)
		from[i] = i * 7 + op + n;
	memset(to, 0, HALF);
	forget(s, to);
	if (recvs)
		recv_at(s, s->srq, 2, HALF);
	expect(!how(s, l->ini, op, n, s->srqn, s->mr->rkey), "a post");
	for (i = recvs ? 2 : 1; i; i--) {
		wc = next_wc(s);
		*(wc.wr_id == 2 ? &recv : &send) = wc;
	}
	expect(send.status == IBV_WC_SUCCESS && send.qp_num == l->ini->qp_num,
	       "operation %u of %u: %s", op, n, ibv_wc_status_str(send.status));
	if (recv.wr_id)
		expect(received(&recv, l, n, imm), "a receive of operation %u",
		       op);
	expect(!memcmp(from, to, n) && (n == HALF || !to[n]),
	       "the data of operation %u, %u", op, n);
}

/* Both atomics, posted by @how. */
static void swap_and_add(struct side *s, const struct link *l,
			 typeof(&post) how)
{
	volatile uint64_t *word = (void *)(s->mem + HALF),
			  *was = (void *)s->mem;

	*word = 5;
	forget(s, s->mem);
	how(s, l->ini, IBV_WR_ATOMIC_CMP_AND_SWP, 8, s->srqn, s->mr->rkey);
	expect(next_wc(s).status == IBV_WC_SUCCESS && *was == 5 && *word == 9,
	       "compare and swap");
	forget(s, s->mem);
	how(s, l->ini, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, s->srqn, s->mr->rkey);
	expect(next_wc(s).status == IBV_WC_SUCCESS && *was == 9 && *word == 14,
	       "fetch and add");
}

/* An ATOMIC WRITE, and a FLUSH of what it wrote. */
static void write_and_flush(struct side *s, const struct link *l)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(l->ini);
	uint8_t *to = s->mem + HALF, value[8] = "8 bytes";
	int i;

	memset(to, 0, sizeof(value));
	forget(s, to);
	ibv_wr_start(x);
	x->wr_id = 1;
	x->wr_flags = 0;
	ibv_wr_atomic_write(x, s->mr->rkey, (uintptr_t)to, value);
	ibv_wr_set_xrc_srqn(x, s->srqn);
	ibv_wr_flush(x, s->mr->rkey, (uintptr_t)to, sizeof(value),
		     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	ibv_wr_set_xrc_srqn(x, s->srqn);
	expect(!ibv_wr_complete(x), "ibv_wr_complete");
	for (i = 0; i < 2; i++)
		expect(next_wc(s).status == IBV_WC_SUCCESS,
		       "an ATOMIC WRITE and a FLUSH");
	expect(!memcmp(to, value, sizeof(value)), "the data of both");
}

static const enum ibv_wr_opcode ops[] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
	IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
};

static void test_operations(void)
{
	static const uint32_t lengths[] = { 0, 1, 1024, 1025, 100000, HALF };
	struct side s;
	struct link l;
	unsigned int i, k, ex;

	make_side(&s);
	l = make_link(&s);
	for (ex = 0; ex < 2; ex++)
		for (i = 0; i < ARRAY_SIZE(ops); i++)
			for (k = 0; k < ARRAY_SIZE(lengths); k++)
				operate(&s, &l, ex ? post_ex : post, ops[i],
					lengths[k]);
	for (ex = 0; ex < 2; ex++)
		swap_and_add(&s, &l, ex ? post_ex : post);
	write_and_flush(&s, &l);
	free_link(&l);
	free_side(&s);
}

/* The pages found for requests, of the only region paged on demand. */
static long page_faults(void)
{
	static const char name[] = "page_faults ";
	FILE *f = popen("rdma statistic show mr", "r");
	char line[500];
	long n = -1;

	while (f && fgets(line, sizeof(line), f)) {
		char *at = strstr(line, name);

		if (at)
			n = strtol(at + strlen(name), NULL, 10);
	}
	if (f)
		pclose(f);
	return n;
}

/*
 * Both ends use memory whose pages nobody has touched, or whose pages are not
 * mapped any more. Each message needs @pages at each end, each atomic one, an
 * ATOMIC WRITE one.
 */
static void test_paged(void)
{
	/* rdma-core has no names for FLUSH and ATOMIC WRITE, the last two. */
	static const uint32_t caps =
		IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE |
		IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |
		IBV_ODP_SUPPORT_SRQ_RECV | 1 << 6 | 1 << 7;
	static const int how[] = { MADV_REMOVE, MADV_DONTNEED };
	const long pages = 25, least = 2 * pages * (long)ARRAY_SIZE(ops) + 5;
	struct ibv_device_attr_ex attr;
	struct side s;
	struct link l;
	unsigned int i, k;
	long before, after;

	make_side(&s);
	expect(!ibv_query_device_ex(s.context, NULL, &attr) &&
	       attr.xrc_odp_caps == caps,
	       "xrc_odp_caps %#x", attr.xrc_odp_caps);
	ibv_dereg_mr(s.mr);
	s.mr = ibv_reg_mr(s.pd, s.mem, MEM, ACCESS | IBV_ACCESS_ON_DEMAND);
	if (!s.mr)
		die("a region paged on demand");
	l = make_link(&s);
	for (k = 0; k < ARRAY_SIZE(how); k++) {
		s.forget = how[k];
		before = page_faults();
		for (i = 0; i < ARRAY_SIZE(ops); i++)
			operate(&s, &l, post, ops[i], pages * 4096 - 100);
		swap_and_add(&s, &l, post_ex);
		write_and_flush(&s, &l);
		after = page_faults();
		printf("# page_faults %ld, then %ld\n", before, after);
		expect(before >= 0 && after >= before + least,
		       "few page faults");
	}
	free_link(&l);
	free_side(&s);
}

/* Many messages to two SRQs in turn: each arrives where it should. */
static void test_stream(void)
{
	struct ibv_srq *other;
	struct side s;
	struct link l;
	uint32_t srqn[2];
	int i, round, sent, got[2];

	make_side(&s);
	l = make_link(&s);
	srqn[0] = s.srqn;
	other = make_srq(&s, s.pd, s.xrcd, &srqn[1]);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < 16; i++) {
			recv_at(&s, s.srq, 100, 4096);
			recv_at(&s, other, 101, 4096);
		}
		for (i = 0; i < 32; i++)
			expect(!post(&s, l.ini, IBV_WR_SEND, 3000, srqn[i % 2],
				     0),
			       "a post");
		for (sent = got[0] = got[1] = 0, i = 0; i < 64; i++) {
			struct ibv_wc wc = next_wc(&s);

			if (wc.status != IBV_WC_SUCCESS)
				break;
			if (wc.wr_id < 100)
				sent++;
			else
				got[wc.wr_id - 100]++;
		}
		expect(sent == 32 && got[0] == 16 && got[1] == 16,
		       "%d sent, %d and %d received", sent, got[0], got[1]);
	}
	expect(!ibv_destroy_srq(other), "ibv_destroy_srq");
	free_link(&l);
	free_side(&s);
}

/* Another process: its SRQ gets messages by a target QP that it only opens. */
static void other_process(int in, int out)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr query;
	struct ibv_qp *qp;
	struct side s;
	struct ibv_wc wc;

	make_side(&s);
	recv_at(&s, s.srq, 2, HALF);
	recv_at(&s, s.srq, 3, HALF);
	if (write(out, &s.srqn, sizeof(s.srqn)) != sizeof(s.srqn) ||
	    read(in, &attr.qp_num, sizeof(attr.qp_num)) != sizeof(attr.qp_num))
		die("a pipe");
	attr.xrcd = s.xrcd;
	qp = ibv_open_qp(s.context, &attr);
	expect(qp && !ibv_query_qp(qp, &query, IBV_QP_STATE, &init) &&
	       query.qp_state == IBV_QPS_RTS,
	       "ibv_open_qp");
	if (write(out, "", 1) != 1)
		die("a pipe");
	wc = next_wc(&s);
	expect(wc.wr_id == 2 && wc.status == IBV_WC_SUCCESS &&
	       wc.byte_len == 100 && s.mem[HALF + 50] == 0x5a,
	       "a message");
	if (write(out, "", 1) != 1)
		die("a pipe");
	/* Now this process alone has the QP. */
	wc = next_wc(&s);
	expect(wc.wr_id == 3 && wc.status == IBV_WC_SUCCESS &&
	       wc.byte_len == 200,
	       "a message to the last user");
	if (qp)
		expect(!ibv_destroy_qp(qp), "ibv_destroy_qp of an opened QP");
	free_side(&s);
	_exit(!!bad);
}

static void test_shared(void)
{
	int to[2], from[2], status;
	uint32_t srqn;
	struct side s;
	struct link l;
	pid_t child;
	char done;

	if (pipe(to) || pipe(from))
		die("pipe");
	fflush(stdout);
	child = fork();
	if (!child)
		other_process(to[0], from[1]);
	close(from[1]);
	make_side(&s);
	l = make_link(&s);
	memset(s.mem, 0x5a, HALF);
	if (read(from[0], &srqn, sizeof(srqn)) != sizeof(srqn) ||
	    write(to[1], &l.tgt->qp_num, sizeof(l.tgt->qp_num)) !=
		    sizeof(l.tgt->qp_num) ||
	    read(from[0], &done, 1) != 1)
		die("the other process");
	post(&s, l.ini, IBV_WR_SEND, 100, srqn, 0);
	expect(next_wc(&s).status == IBV_WC_SUCCESS,
	       "a SEND to the other process");
	if (read(from[0], &done, 1) != 1)
		die("the other process");
	expect(!ibv_destroy_qp(l.tgt),
	       "ibv_destroy_qp of a QP that another process has");
	post(&s, l.ini, IBV_WR_SEND, 200, srqn, 0);
	expect(next_wc(&s).status == IBV_WC_SUCCESS, "a SEND after that");
	expect(waitpid(child, &status, 0) == child && !status,
	       "the other process: status %d", status);
	expect(!ibv_destroy_qp(l.ini), "ibv_destroy_qp");
	free_side(&s);
}

static void test_errors(void)
{
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
		.qp_num = 0x123456,
	};
	struct ibv_srq_init_attr basic = {
		.attr = { .max_wr = 8, .max_sge = 1 },
	};
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_device_attr dev;
	struct ibv_srq *srq, *other_srq, *plain;
	struct ibv_xrcd *other;
	struct ibv_pd *pd;
	struct side s;
	struct link l;
	uint32_t n;

	make_side(&s);
	l = make_link(&s);
	expect(!ibv_query_device(s.context, &dev) &&
	       dev.device_cap_flags & IBV_DEVICE_XRC,
	       "ibv_query_device");

	post(&s, l.ini, IBV_WR_SEND, 8, 0x7fffff ^ s.srqn, 0);
	refused(&s, &l, IBV_WC_REM_INV_RD_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
		"no such SRQ");
	other = open_domain(s.context, NULL, O_CREAT);
	if (!other)
		die("a domain without a file");
	other_srq = make_srq(&s, s.pd, other, &n);
	post(&s, l.ini, IBV_WR_RDMA_WRITE, 8, n, s.mr->rkey);
	refused(&s, &l, IBV_WC_REM_INV_RD_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
		"an SRQ of another domain");
	plain = ibv_create_srq(s.pd, &basic);
	if (!plain || ibv_get_srq_num(plain, &n))
		die("ibv_create_srq");
	post(&s, l.ini, IBV_WR_RDMA_READ, 8, n, s.mr->rkey);
	refused(&s, &l, IBV_WC_REM_INV_RD_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
		"an SRQ that is not of XRC");
	pd = ibv_alloc_pd(s.context);
	srq = make_srq(&s, pd, s.xrcd, &n);
	post(&s, l.ini, IBV_WR_RDMA_WRITE, 8, n, s.mr->rkey);
	refused(&s, &l, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR,
		"an rkey of another PD");
	recv_at(&s, s.srq, 2, 8);
	post(&s, l.ini, IBV_WR_SEND, 9, s.srqn, 0);
	expect(next_wc(&s).status == IBV_WC_LOC_LEN_ERR,
	       "a receive that is too short");
	expect(next_wc(&s).status == IBV_WC_REM_INV_REQ_ERR, "its SEND");
	join(&s, &l);

	/* Verbs. */
	expect(post(&s, l.tgt, IBV_WR_SEND, 8, s.srqn, 0),
	       "ibv_post_send to a target");
	expect(ibv_post_recv(l.ini, &recv, &bad_recv),
	       "ibv_post_recv to an initiator");
	expect(ibv_post_recv(l.tgt, &recv, &bad_recv),
	       "ibv_post_recv to a target");
	open.xrcd = s.xrcd;
	expect(!ibv_open_qp(s.context, &open) && errno == EINVAL,
	       "ibv_open_qp of no QP");
	open.qp_num = l.ini->qp_num;
	expect(!ibv_open_qp(s.context, &open) && errno == EINVAL,
	       "ibv_open_qp of an initiator");
	open.qp_num = l.tgt->qp_num;
	open.xrcd = other;
	expect(!ibv_open_qp(s.context, &open) && errno == EINVAL,
	       "ibv_open_qp in another domain");
	expect(!open_domain(s.context, file, O_CREAT | O_EXCL) &&
	       errno == EINVAL,
	       "an existing domain made anew");
	expect(!open_domain(s.context, "/dev/null", 0),
	       "a domain that nobody made");
	expect(ibv_close_xrcd(other) == EBUSY, "ibv_close_xrcd with an SRQ");
	expect(ibv_destroy_cq(s.cq) == EBUSY && ibv_dealloc_pd(pd) == EBUSY,
	       "the end of an SRQ's objects");

	expect(!ibv_destroy_srq(other_srq) && !ibv_close_xrcd(other) &&
	       !ibv_destroy_srq(plain) && !ibv_destroy_srq(srq) &&
	       !ibv_dealloc_pd(pd),
	       "the end");
	free_link(&l);
	free_side(&s);
}

/*
 * An SRQ ends under traffic: the sends end, too, by success or by the right
 * status, and its CQ has nothing of it.
 */
static void test_srq_ends(void)
{
	struct side s;
	struct link l;
	int round, i, left;

	make_side(&s);
	l = make_link(&s);
	for (round = 0; round < 20; round++) {
		uint32_t srqn;
		struct ibv_srq *srq = make_srq(&s, s.pd, s.xrcd, &srqn);

		for (i = 0; i < 32; i++)
			recv_at(&s, srq, 2, HALF);
		for (i = 0; i < 32; i++)
			expect(!post(&s, l.ini, IBV_WR_SEND, 20000, srqn, 0),
			       "a post");
		usleep(round * 20);
		expect(!ibv_destroy_srq(srq), "ibv_destroy_srq");
		for (left = 32; left; left--) {
			struct ibv_wc wc = next_wc(&s);

			if (wc.wr_id == ~0ull)
				break;
			expect(wc.wr_id == 1, "a completion of the SRQ");
			expect(wc.status == IBV_WC_SUCCESS ||
			       wc.status == IBV_WC_REM_INV_RD_REQ_ERR ||
			       wc.status == IBV_WC_WR_FLUSH_ERR,
			       "a SEND: %s", ibv_wc_status_str(wc.status));
		}
		join(&s, &l);
	}
	free_link(&l);
	free_side(&s);
}

/*
 * Destroy all objects again and again in a random order until none is left:
 * each verb succeeds or says that the object is in use.
 */
static void test_any_order(void)
{
	const char *wanted = getenv("ARX_SEED");
	unsigned int seed = time(NULL);
	int round, left, err, i;
	struct side s;
	struct link l;

	if (wanted)
		seed = strtoul(wanted, NULL, 0);
	printf("# ARX_SEED=%u\n", seed);
	srand(seed);
	for (round = 0; round < 40; round++) {
		bool gone[7] = {};

		make_side(&s);
		l = make_link(&s);
		for (i = 0; i < 8; i++) {
			recv_at(&s, s.srq, 2, HALF);
			post(&s, l.ini, IBV_WR_SEND, 5000, s.srqn, 0);
		}
		for (left = ARRAY_SIZE(gone); left;) {
			i = rand() % ARRAY_SIZE(gone);
			if (gone[i])
				continue;
			switch (i) {
			case 0:
				err = ibv_destroy_qp(l.ini);
				break;
			case 1:
				err = ibv_destroy_qp(l.tgt);
				break;
			case 2:
				err = ibv_destroy_srq(s.srq);
				break;
			case 3:
				err = ibv_close_xrcd(s.xrcd);
				break;
			case 4:
				err = ibv_destroy_cq(s.cq);
				break;
			case 5:
				err = ibv_dereg_mr(s.mr);
				break;
			default:
				err = ibv_dealloc_pd(s.pd);
			}
			expect(!err || err == EBUSY, "the end of object %d: %s",
			       i, strerror(err));
			gone[i] = !err;
			left -= !err;
		}
		ibv_close_device(s.context);
		munmap(s.mem, MEM);
	}
}

/* A process ends with everything: the kernel ends its objects. */
static void test_exit(void)
{
	int i, status;

	for (i = 0; i < 10; i++) {
		pid_t child;

		fflush(stdout);
		child = fork();
		if (!child) {
			struct side s;
			struct link l;
			int k;

			make_side(&s);
			l = make_link(&s);
			for (k = 0; k < 16; k++) {
				recv_at(&s, s.srq, 2, HALF);
				post(&s, l.ini, IBV_WR_RDMA_WRITE_WITH_IMM,
				     100000, s.srqn, s.mr->rkey);
			}
			_exit(0);
		}
		expect(waitpid(child, &status, 0) == child && !status,
		       "a process");
	}
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void);
	} tests[] = {
		{ "operations", test_operations },
		{ "paged", test_paged },
		{ "stream", test_stream },
		{ "shared", test_shared },
		{ "errors", test_errors },
		{ "srq-ends", test_srq_ends },
		{ "any-order", test_any_order },
		{ "exit", test_exit },
	};
	unsigned int i;
	int all = 0;

	if (argc < 4)
		return 2;
	device = argv[1];
	file = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		group = tests[i].name;
		bad = 0;
		if (argc > 4 && strcmp(group, argv[4]))
			continue;
		tests[i].run();
		printf("%sok %s-%s%s\n", bad ? "not " : "", argv[3], group,
		       bad ? ": see above" : "");
		all += bad;
	}
	return !!all;
}
