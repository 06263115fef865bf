// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Cases that do not end with "it arrived": completion statuses, flush order, QP
 * states, events, refused posts; and cases that need several threads.
 *
 * Side A (0) sends, side B (1) receives. Both take the same steps, and a step
 * that fails does not keep its side from the later barriers.
 */
#define _GNU_SOURCE		/* for CPU sets */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../exporter/exporter.h"
#include "verify.h"

#define REMOTE_ALL	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC)
#define ACCESS_ALL	(IBV_ACCESS_LOCAL_WRITE | REMOTE_ALL)
#define MEM		65536	/* bytes of a side's region */
#define DEPTH		64
#define ADOPTIONS	16
#define SENT		0x11
#define OTHER		0x22

static const bool A = true, B;	/* for is() */

static bool is(bool which)
{
	return (side == 0) == which;
}

/* ---- a QP with all that belongs to it, connected to the other side's ---- */

struct end {
	const struct config *c;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct region mem;
	struct peer me, peer;
};

struct shape { /* differences from case to case; zeros are the default */
	struct ibv_pd *pd;	/* exists already */
	int mr_lacks;		/* access that the region lacks */
	int qp_lacks;		/* access that the QP lacks */
	bool srq;
	int sge;
	int unguarded;		/* entries of an unguarded CQ */
};

/* A CQ that the device need not guard against more completions than it holds */
static struct ibv_cq *unguarded_cq(struct ibv_comp_channel *channel, int cqe)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

/* What the present case adds on both sides. */
static struct {
	uint64_t ops;		/* for ibv_wr_*() */
	int mr_access, qp_access;
} more;

static struct ibv_qp *end_qp(struct end *e, const struct shape *shape)
{
	int sge = shape->sge ? shape->sge : 2;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = e->cq, .recv_cq = e->cq, .srq = e->srq,
		.qp_type = e->c->qp,
		.cap = {
			.max_send_wr = DEPTH, .max_send_sge = sge,
			.max_inline_data = more.ops ? 0 : 32,
			.max_recv_wr = e->srq ? 0 : DEPTH,
			.max_recv_sge = e->srq ? 0 : sge,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd, .send_ops_flags = more.ops,
	};

	return more.ops ?
		       ibv_create_qp_ex(e->pd->context, &attr) :
		       ibv_create_qp(e->pd, (struct ibv_qp_init_attr *)&attr);
}

static bool end_objects(struct end *e, const struct shape *shape)
{
	struct ibv_srq_init_attr srq = {
		.attr = { .max_wr = DEPTH, .max_sge = 2 },
	};

	e->pd = shape->pd ? shape->pd : ibv_alloc_pd(context);
	e->channel = ibv_create_comp_channel(context);
	if (!e->pd || !e->channel)
		return failed("no PD or channel: %s", strerror(errno));
	if (shape->unguarded)
		e->cq = unguarded_cq(e->channel, shape->unguarded);
	else
		e->cq = ibv_create_cq(context, 4 * DEPTH, NULL, e->channel, 0);
	if (!e->cq)
		return failed("ibv_create_cq: %s", strerror(errno));
	if (shape->srq) {
		e->srq = ibv_create_srq(e->pd, &srq);
		if (!e->srq)
			return failed("ibv_create_srq: %s", strerror(errno));
	}
	if (!region_make(&e->mem, e->pd, MEM,
			 (ACCESS_ALL & ~shape->mr_lacks) | more.mr_access))
		return false;
	/* Data of A is not poison, so that B sees where it was written. */
	if (is(A))
		memset(e->mem.base, SENT, MEM);
	e->qp = end_qp(e, shape);
	if (!e->qp)
		return failed("ibv_create_qp: %s", strerror(errno));
	peer_describe(&e->me, e->qp, e->c);
	e->me.rkey[0] = e->mem.mr->rkey;
	e->me.addr[0] = (uintptr_t)e->mem.base;
	return qp_init(e->qp, e->c,
		       (REMOTE_ALL & ~shape->qp_lacks) | more.qp_access);
}

/*
 * Shapes are B's; A has the default one. False on both sides if either fails.
 */
static bool end_open(struct end *e, const struct config *c,
		     const struct shape *shape)
{
	static const struct shape usual;
	bool ok, theirs;

	memset(e, 0, sizeof(*e));
	e->c = c;
	ok = end_objects(e, is(B) && shape ? shape : &usual);
	ctl_swap(&e->me, &e->peer, sizeof(e->me));
	if (ok && c->qp == IBV_QPT_UD) {
		e->ah = ah_make(e->pd, c, &e->peer.gid);
		ok = e->ah;
	}
	ok = ok && qp_connect(e->qp, c, e->me.psn, &e->peer);
	ctl_swap(&ok, &theirs, sizeof(ok));
	return ok && theirs;
}

static void check_zero(int err, const char *what)
{
	if (err)
		failed("%s: %s", what, strerror(err));
}

/* Wait for the other side. The region must be poison again. */
static void end_close(struct end *e)
{
	ctl_barrier();
	if (e->qp)
		check_zero(ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	if (e->srq)
		check_zero(ibv_destroy_srq(e->srq), "ibv_destroy_srq");
	if (e->cq)
		check_zero(ibv_destroy_cq(e->cq), "ibv_destroy_cq");
	if (e->channel)
		check_zero(ibv_destroy_comp_channel(e->channel),
			   "ibv_destroy_comp_channel");
	if (e->ah)
		check_zero(ibv_destroy_ah(e->ah), "ibv_destroy_ah");
	if (is(A) && e->mem.mr)
		memset(e->mem.base, POISON, MEM);
	region_clean(&e->mem, "memory");
	region_free(&e->mem);
	if (e->pd)
		check_zero(ibv_dealloc_pd(e->pd), "ibv_dealloc_pd");
}

/* ---- posting ---- */

static struct ibv_sge piece(struct end *e, size_t offset, uint32_t len)
{
	return (struct ibv_sge){ (uintptr_t)e->mem.base + offset, len,
				 e->mem.mr->lkey };
}

static struct ibv_send_wr request(struct end *e, uint64_t id,
				  enum ibv_wr_opcode opcode,
				  struct ibv_sge *sge)
{
	struct ibv_send_wr wr = {
		.wr_id = id,
		.opcode = opcode,
		.sg_list = sge,
		.num_sge = sge ? 1 : 0,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = e->peer.addr[0];
		wr.wr.atomic.rkey = e->peer.rkey[0];
	} else if (e->c->qp == IBV_QPT_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->peer.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.wr.rdma.remote_addr = e->peer.addr[0];
		wr.wr.rdma.rkey = e->peer.rkey[0];
	}
	return wr;
}

static void post(struct end *e, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;

	check_zero(ibv_post_send(e->qp, &wr, &bad), "ibv_post_send");
}

static void post_send(struct end *e, uint64_t id, size_t offset, uint32_t len)
{
	struct ibv_sge sge = piece(e, offset, len);

	post(e, request(e, id, IBV_WR_SEND, len ? &sge : NULL));
}

static void post_recv_sge(struct end *e, uint64_t id, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	check_zero(e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad) :
			    ibv_post_recv(e->qp, &wr, &bad),
		   "ibv_post_recv");
}

static void post_recv(struct end *e, uint64_t id, size_t offset, uint32_t len)
{
	post_recv_sge(e, id, piece(e, offset, len));
}

/* ---- expected completions and events ---- */

static double deadline(struct end *e)
{
	return now() + (double)e->c->limit * time_factor;
}

/* The completions of a case so far, for outcome(). */
static char wcs[8192];

/*
 * Print the completions of this side since the last call: two paths to the peer
 * must not differ in them.
 */
void outcome(const char *name)
{
	printf("# outcome %s %c:%s\n", name, 'A' + side, wcs);
	wcs[0] = 0;
}

static void note_wc(const struct ibv_wc *wc)
{
	size_t len = strlen(wcs);

	snprintf(wcs + len, sizeof(wcs) - len, " %lld:%d", (long long)wc->wr_id,
		 wc->status);
}

static bool next_wc(struct end *e, struct ibv_wc *wc)
{
	double end = deadline(e);
	int n;

	do {
		n = ibv_poll_cq(e->cq, 1, wc);
		if (!n)
			sched_yield();
	} while (!n && now() < end);
	if (n > 0)
		note_wc(wc);
	return n > 0;
}

#define ANY_ID	(~0ull)

static struct ibv_wc expect_either(struct end *e, uint64_t id,
				   enum ibv_wc_status status,
				   enum ibv_wc_status other)
{
	struct ibv_wc wc = {};

	if (has_failed())
		return wc;	/* not another wait */
	if (!next_wc(e, &wc))
		failed("no completion of %llu (%s)", (unsigned long long)id,
		       ibv_wc_status_str(status));
	else if (id != ANY_ID && wc.wr_id != id)
		failed("completion of %llu (%s), not of %llu (%s)",
		       (unsigned long long)wc.wr_id,
		       ibv_wc_status_str(wc.status), (unsigned long long)id,
		       ibv_wc_status_str(status));
	else if (wc.status != status && wc.status != other)
		failed("%llu: %s, not %s", (unsigned long long)wc.wr_id,
		       ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	else if (wc.qp_num != e->qp->qp_num)
		failed("completion with QPN %#x", wc.qp_num);
	return wc;
}

static struct ibv_wc expect(struct end *e, uint64_t id,
			    enum ibv_wc_status status)
{
	return expect_either(e, id, status, status);
}

static void expect_flushed(struct end *e, uint64_t from, uint64_t to)
{
	for (; from <= to; from++)
		expect(e, from, IBV_WC_WR_FLUSH_ERR);
}

static void pause_ms(int ms)
{
	usleep(ms * 1000 * time_factor);
}

static void expect_nothing(struct end *e, int ms)
{
	struct ibv_wc wc;

	pause_ms(ms);
	if (ibv_poll_cq(e->cq, 1, &wc))
		failed("unexpected completion of %llu: %s",
		       (unsigned long long)wc.wr_id,
		       ibv_wc_status_str(wc.status));
}

static enum ibv_qp_state state_of(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};

	check_zero(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init),
		   "ibv_query_qp");
	return attr.qp_state;
}

static void expect_state(struct end *e, enum ibv_qp_state state)
{
	enum ibv_qp_state is_state = state_of(e);

	if (is_state != state)
		failed("the QP is in state %d, not %d", is_state, state);
}

static void to_state(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	check_zero(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
}

/* The next asynchronous event is this one. */
static void expect_event(struct end *e, enum ibv_event_type type)
{
	struct pollfd fd = { .fd = context->async_fd, .events = POLLIN };
	int ms = e->c->limit * 1000 * time_factor;
	struct ibv_async_event event;

	if (has_failed() || poll(&fd, 1, ms) != 1 ||
	    ibv_get_async_event(context, &event)) {
		failed("no event %s", ibv_event_type_str(type));
		return;
	}
	if (event.event_type != type)
		failed("event %s before %s",
		       ibv_event_type_str(event.event_type),
		       ibv_event_type_str(type));
	ibv_ack_async_event(&event);
}

/* Returns the number of events. */
static int drop_events(void)
{
	struct pollfd fd = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	int count = 0;

	for (; poll(&fd, 1, 0) == 1 && !ibv_get_async_event(context, &event);
	     count++)
		ibv_ack_async_event(&event);
	return count;
}

/* There are no events but those that were expected: each comes once. */
static void expect_no_event(void)
{
	pause_ms(20);
	if (drop_events())
		failed("an event too many");
}

static void repoison(struct end *e, size_t offset, size_t len)
{
	memset(e->mem.base + offset, POISON, len);
}

/* ---- requests that the responder refuses ---- */

enum twist {
	RKEY,		/* another rkey */
	BEYOND,		/* the last bytes are beyond the region */
	FAR_BEYOND, /* a message of many packets of which only the first fits */
	BEFORE,		/* the first byte is before the region */
	WRAP,		/* the address wraps at 2^64 */
	MR_ACCESS,	/* the region does not allow it */
	QP_ACCESS,	/* the QP does not allow it */
	OTHER_PD,	/* the region has another PD */
	FREED,		/* the region is deregistered */
	UNALIGNED,	/* of an atomic */
};

struct refusal {
	enum ibv_wr_opcode opcode;
	enum twist twist;
	enum ibv_wc_status status, other;
};

static int access_for(enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_RDMA_READ)
		return IBV_ACCESS_REMOTE_READ;
	return opcode == IBV_WR_RDMA_WRITE ||
			       opcode == IBV_WR_RDMA_WRITE_WITH_IMM ?
		       IBV_ACCESS_REMOTE_WRITE :
		       IBV_ACCESS_REMOTE_ATOMIC;
}

static struct ibv_send_wr refused_request(struct end *e,
					  const struct refusal *r,
					  struct ibv_sge *sge,
					  const struct peer *strange)
{
	bool atomic = access_for(r->opcode) == IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_send_wr wr;
	uint64_t addr = e->peer.addr[0];
	uint32_t rkey = e->peer.rkey[0];

	*sge = piece(e, 0, atomic ? 8 : r->twist == FAR_BEYOND ? MEM : 64);
	wr = request(e, 2, r->opcode, sge);
	switch (r->twist) {
	case RKEY:
		rkey ^= 0x5a00;
		break;
	case BEYOND:
		addr += MEM - (atomic ? 0 : 63);
		break;
	case FAR_BEYOND:
		addr += 4096;
		break;
	case BEFORE:
		addr -= atomic ? 8 : 1;
		break;
	case WRAP:
		addr = -32ull;
		break;
	case OTHER_PD:
	case FREED:
		addr = strange->addr[0];
		rkey = strange->rkey[0];
		break;
	case UNALIGNED:
		addr += 4;
		break;
	default:
		break;
	}
	if (atomic) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return wr;
}

/* B's region of another PD, or a deregistered one. */
static void strange_region(enum twist twist, struct ibv_pd **pd,
			   struct region *mem, struct peer *strange)
{
	struct peer unused;

	memset(strange, 0, sizeof(*strange));
	if (is(B)) {
		*pd = ibv_alloc_pd(context);
		region_make(mem, *pd, MEM, ACCESS_ALL);
		strange->rkey[0] = mem->mr->rkey;
		strange->addr[0] = (uintptr_t)mem->base;
		if (twist == FREED) {
			check_zero(ibv_dereg_mr(mem->mr), "ibv_dereg_mr");
			mem->mr = NULL;
		}
	}
	ctl_swap(strange, &unused, sizeof(unused));
	if (is(A))
		*strange = unused;
}

static void refusal_at_a(struct end *e, const struct refusal *r,
			 const struct peer *strange)
{
	struct ibv_sge sge;

	post_send(e, 1, 0, 16);
	post(e, refused_request(e, r, &sge, strange));
	post_send(e, 3, 0, 16);
	post_send(e, 4, 0, 16);
	expect(e, 1, IBV_WC_SUCCESS);
	expect_either(e, 2, r->status, r->other);
	expect_flushed(e, 3, 4);
	expect_state(e, IBV_QPS_ERR);
}

static void refusal_at_b(struct end *e, const struct refusal *r)
{
	uint64_t flushed = 102;

	expect(e, 101, IBV_WC_SUCCESS);
	repoison(e, 0, 16);
	/*
	 * The receive that the refused packet would have used reports the
	 * refusal.
	 */
	if (r->opcode == IBV_WR_RDMA_WRITE_WITH_IMM && r->twist != FAR_BEYOND &&
	    r->twist != QP_ACCESS)
		expect(e, flushed++, IBV_WC_LOC_ACCESS_ERR);
	expect_flushed(e, flushed, 103);
	expect_state(e, IBV_QPS_ERR);
}

static void refuse(const struct config *c, const struct refusal *r)
{
	struct shape shape = {
		.mr_lacks = r->twist == MR_ACCESS ? access_for(r->opcode) : 0,
		.qp_lacks = r->twist == QP_ACCESS ? access_for(r->opcode) : 0,
	};
	struct ibv_pd *pd = NULL;
	struct region mem = {};
	struct peer strange;
	struct end e;
	int i;

	if (end_open(&e, c, &shape)) {
		strange_region(r->twist, &pd, &mem, &strange);
		for (i = 0; is(B) && i < 3; i++)
			post_recv(&e, 101 + i, i * 64, 64);
		ctl_barrier();
		if (is(A))
			refusal_at_a(&e, r, &strange);
		else
			refusal_at_b(&e, r);
	}
	end_close(&e);
	region_clean(&mem, "a region that is not for this QP");
	region_free(&mem);
	if (pd)
		check_zero(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	drop_events();
}

static bool refuse_all(const struct config *c, enum ibv_wr_opcode opcode)
{
	static const struct refusal access = {
		.status = IBV_WC_REM_ACCESS_ERR, .other = IBV_WC_REM_ACCESS_ERR,
	};
	static const char *const names[] = {
		[RKEY] = "another rkey",     [BEYOND] = "beyond",
		[FAR_BEYOND] = "far beyond", [BEFORE] = "before",
		[WRAP] = "address wraps",    [MR_ACCESS] = "MR access",
		[QP_ACCESS] = "QP access",   [OTHER_PD] = "other PD",
		[FREED] = "freed MR",	     [UNALIGNED] = "unaligned",
	};
	bool atomic = access_for(opcode) == IBV_ACCESS_REMOTE_ATOMIC;
	bool ok = true, theirs;
	struct refusal r;
	int twist;

	for (twist = RKEY; twist <= UNALIGNED && ok; twist++) {
		if (atomic ? twist == FAR_BEYOND || twist == WRAP :
			     twist == UNALIGNED)
			continue;
		r = access;
		r.opcode = opcode;
		r.twist = twist;
		/*
		 * An operation that the QP's attributes do not allow is an
		 * invalid request.
		 */
		if (twist == QP_ACCESS || twist == UNALIGNED)
			r.status = r.other = IBV_WC_REM_INV_REQ_ERR;
		refuse(c, &r);
		ok = !has_failed();
		if (!ok)
			fprintf(stderr, "# side %c: %s\n", 'A' + side,
				names[twist]);
		ctl_swap(&ok, &theirs, sizeof(ok));
		ok = ok && theirs;
	}
	return ok;
}

static bool refuse_write(const struct config *c)
{
	return refuse_all(c, IBV_WR_RDMA_WRITE);
}

static bool refuse_write_imm(const struct config *c)
{
	return refuse_all(c, IBV_WR_RDMA_WRITE_WITH_IMM);
}

static bool refuse_read(const struct config *c)
{
	return refuse_all(c, IBV_WR_RDMA_READ);
}

static bool refuse_cas(const struct config *c)
{
	return refuse_all(c, IBV_WR_ATOMIC_CMP_AND_SWP);
}

static bool refuse_faa(const struct config *c)
{
	return refuse_all(c, IBV_WR_ATOMIC_FETCH_AND_ADD);
}

/* ---- receives that do not fit ---- */

/*
 * A sends two messages to B's receives; the first receive cannot hold its
 * message.
 */
static bool bad_receive(const struct config *c,
			struct ibv_sge (*make)(struct end *e), uint32_t len,
			enum ibv_wc_status at_a, enum ibv_wc_status at_b)
{
	struct end e;

	if (end_open(&e, c, NULL)) {
		if (is(B)) {
			post_recv_sge(&e, 101, make(&e));
			post_recv(&e, 102, 1024, 64);
		}
		ctl_barrier();
		if (is(A)) {
			post_send(&e, 1, 0, len);
			post_send(&e, 2, 0, 16);
			expect(&e, 1, at_a);
			expect_flushed(&e, 2, 2);
			expect_state(&e, IBV_QPS_ERR);
		} else {
			expect(&e, 101, at_b);
			expect_flushed(&e, 102, 102);
			expect_state(&e, IBV_QPS_ERR);
			/* The part that fits may have been placed. */
			repoison(&e, 0, 17);
		}
	}
	end_close(&e);
	drop_events();
	return !has_failed();
}

static struct ibv_sge short_sge(struct end *e)
{
	return piece(e, 0, 16);
}

static struct ibv_sge bad_lkey_sge(struct end *e)
{
	struct ibv_sge sge = piece(e, 0, 64);

	sge.lkey ^= 0x5a00;
	return sge;
}

static struct ibv_sge beyond_sge(struct end *e)
{
	return piece(e, MEM - 8, 64);
}

static bool send_too_long(const struct config *c)
{
	return bad_receive(c, short_sge, 17, IBV_WC_REM_INV_REQ_ERR,
			   IBV_WC_LOC_LEN_ERR);
}

static bool recv_bad_lkey(const struct config *c)
{
	return bad_receive(c, bad_lkey_sge, 16, IBV_WC_REM_OP_ERR,
			   IBV_WC_LOC_PROT_ERR);
}

static bool recv_beyond(const struct config *c)
{
	return bad_receive(c, beyond_sge, 16, IBV_WC_REM_OP_ERR,
			   IBV_WC_LOC_PROT_ERR);
}

/*
 * A message of several packets between QPs with different path MTUs: no packet
 * has the right length. 9.7.4.1.6
 */
static void path_mtu(const struct config *c, uint32_t theirs,
		     enum ibv_qp_type qp, enum ibv_wr_opcode opcode,
		     enum ibv_wc_status status)
{
	struct config mine = *c;
	struct ibv_sge sge;
	struct end e;

	mine.qp = qp;
	mine.mtu = is(A) ? 1024 : theirs;
	if (end_open(&e, &mine, NULL)) {
		if (is(B))
			post_recv(&e, 101, 0, MEM);
		ctl_barrier();
		if (is(A)) {
			sge = piece(&e, 0, 20000);
			post(&e, request(&e, 1, opcode, &sge));
			expect(&e, 1, status);
		}
		ctl_barrier();
		if (is(B) && qp == IBV_QPT_UC)
			expect_nothing(&e, 20);
	}
	end_close(&e);
	drop_events();
}

static bool path_mtus(const struct config *c)
{
	static const uint32_t others[] = { 256, 512, 2048, 4096 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		path_mtu(c, others[i], IBV_QPT_RC, IBV_WR_SEND,
			 IBV_WC_REM_INV_REQ_ERR);
		path_mtu(c, others[i], IBV_QPT_RC, IBV_WR_RDMA_WRITE,
			 IBV_WC_REM_INV_REQ_ERR);
		path_mtu(c, others[i], IBV_QPT_RC, IBV_WR_RDMA_READ,
			 IBV_WC_BAD_RESP_ERR);
		path_mtu(c, others[i], IBV_QPT_UC, IBV_WR_SEND, IBV_WC_SUCCESS);
		path_mtu(c, others[i], IBV_QPT_UC, IBV_WR_RDMA_WRITE,
			 IBV_WC_SUCCESS);
	}
	return !has_failed();
}

/* ---- requests that the requester refuses ---- */

static bool local_error(const struct config *c, enum ibv_wr_opcode opcode,
			struct ibv_sge (*make)(struct end *e))
{
	struct ibv_sge sge;
	struct end e;

	if (end_open(&e, c, NULL)) {
		if (is(B))
			post_recv(&e, 101, 0, 64);
		ctl_barrier();
		if (is(A)) {
			sge = make(&e);
			post(&e, request(&e, 1, opcode, &sge));
			post_send(&e, 2, 0, 16);
			expect(&e, 1, IBV_WC_LOC_PROT_ERR);
			expect_flushed(&e, 2, 2);
			expect_state(&e, IBV_QPS_ERR);
		}
		ctl_barrier();
		if (is(B)) {
			expect_nothing(&e, 20);
			expect_state(&e, IBV_QPS_RTS);
		}
	}
	end_close(&e);
	drop_events();
	return !has_failed();
}

static bool send_bad_lkey(const struct config *c)
{
	return local_error(c, IBV_WR_SEND, bad_lkey_sge);
}

static bool write_local_beyond(const struct config *c)
{
	return local_error(c, IBV_WR_RDMA_WRITE, beyond_sge);
}

/* A reads into memory that it may not write. */
static bool read_no_local_write(const struct config *c)
{
	struct region mem = {};
	struct ibv_sge sge;
	struct end e;

	if (end_open(&e, c, NULL) && is(A) &&
	    region_make(&mem, e.pd, MEM, IBV_ACCESS_REMOTE_READ)) {
		sge = (struct ibv_sge){ (uintptr_t)mem.base, 64, mem.mr->lkey };
		post(&e, request(&e, 1, IBV_WR_RDMA_READ, &sge));
		post_send(&e, 2, 0, 16);
		expect(&e, 1, IBV_WC_LOC_PROT_ERR);
		expect_flushed(&e, 2, 2);
		region_clean(&mem, "where nothing may be written");
		region_free(&mem);
	}
	end_close(&e);
	drop_events();
	return !has_failed();
}

/*
 * A request whose own memory is wrong, and the reason for which B would have
 * refused it.
 */
struct own_fault {
	enum ibv_qp_type qp;
	enum ibv_wr_opcode opcode;
	enum { LKEY, SECOND_LKEY, LOCAL_BEYOND, LOCAL_PD } fault;
	enum {
		NOTHING,
		NO_RECEIVE,
		SHORT_RECEIVE,
		BAD_RKEY,
		BAD_QKEY,
		IN_ERROR
	} theirs;
	bool unsignalled;
};

static void own_fault_post(struct end *e, const struct own_fault *f,
			   struct region *strange)
{
	bool atomic = f->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		      f->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	uint32_t half = atomic || f->opcode == IBV_WR_ATOMIC_WRITE ? 4 :
			f->theirs == SHORT_RECEIVE ? 5000 : 40;
	struct ibv_sge sge[2] = { piece(e, 0, half), piece(e, 8192, half) };
	struct ibv_send_wr wr = request(e, 1, f->opcode, sge);

	wr.num_sge = 2;
	if (f->unsignalled)
		wr.send_flags = 0;
	if (f->theirs == BAD_QKEY)
		wr.wr.ud.remote_qkey++;
	if (f->theirs == BAD_RKEY && atomic)
		wr.wr.atomic.rkey ^= 0x5a00;
	else if (f->theirs == BAD_RKEY)
		wr.wr.rdma.rkey ^= 0x5a00;
	switch (f->fault) {
	case LKEY:
		sge[0].lkey ^= 0x5a00;
		break;
	case SECOND_LKEY:
		sge[1].lkey ^= 0x5a00;
		break;
	case LOCAL_BEYOND:
		sge[1].addr = (uintptr_t)e->mem.base + MEM - half + 1;
		break;
	case LOCAL_PD:
		sge[1].addr = (uintptr_t)strange->base;
		sge[1].lkey = strange->mr->lkey;
		break;
	}
	post(e, wr);
}

static void own_fault(const struct config *c, const struct own_fault *f)
{
	bool ud = f->qp == IBV_QPT_UD;
	struct config config = *c;
	struct region mem = {};
	struct ibv_pd *pd = NULL;
	struct end e;

	config.qp = f->qp;
	config.rnr_retry = 7;	/* unlimited */
	if (!end_open(&e, &config, NULL))
		goto close;
	if (is(B) && f->theirs != NO_RECEIVE)
		post_recv(&e, 101, 0, f->theirs == SHORT_RECEIVE ? 60 : MEM);
	if (is(B) && f->theirs == IN_ERROR) {
		to_state(&e, IBV_QPS_ERR);
		expect_flushed(&e, 101, 101);
	}
	ctl_barrier();
	if (is(A)) {
		pd = ibv_alloc_pd(context);
		region_make(&mem, pd, MEM, ACCESS_ALL);
		own_fault_post(&e, f, &mem);
		post_send(&e, 2, 0, 16);
		expect(&e, 1, IBV_WC_LOC_PROT_ERR);
		expect_flushed(&e, 2, 2);
		expect_state(&e,
			     f->qp == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
	}
	ctl_barrier();
	if (is(B)) {
		/*
		 * A datagram may still be in flight when its send is complete.
		 */
		expect_nothing(&e, ud ? 2 : 0);
		expect_state(&e,
			     f->theirs == IN_ERROR ? IBV_QPS_ERR : IBV_QPS_RTS);
	}
close:
	end_close(&e);
	region_clean(&mem, "a region that is not for this QP");
	region_free(&mem);
	if (pd)
		check_zero(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	drop_events();
}

static const struct own_fault own_faults[] = {
	{ IBV_QPT_RC, IBV_WR_SEND, LKEY, NO_RECEIVE, false },
	{ IBV_QPT_RC, IBV_WR_SEND, LKEY, SHORT_RECEIVE, false },
	{ IBV_QPT_RC, IBV_WR_SEND, LKEY, IN_ERROR, true },
	{ IBV_QPT_RC, IBV_WR_SEND, SECOND_LKEY, NOTHING, false },
	{ IBV_QPT_RC, IBV_WR_SEND_WITH_IMM, LOCAL_PD, NOTHING, true },
	{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, LKEY, BAD_RKEY, false },
	{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, SECOND_LKEY, NOTHING, true },
	{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, LOCAL_BEYOND, IN_ERROR, false },
	{ IBV_QPT_RC, IBV_WR_RDMA_WRITE, LOCAL_PD, NOTHING, false },
	{ IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM, LKEY, NO_RECEIVE, false },
	{ IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM, LOCAL_BEYOND, NOTHING, true },
	{ IBV_QPT_RC, IBV_WR_RDMA_READ, LKEY, BAD_RKEY, false },
	{ IBV_QPT_RC, IBV_WR_RDMA_READ, SECOND_LKEY, IN_ERROR, true },
	{ IBV_QPT_RC, IBV_WR_RDMA_READ, LOCAL_PD, NOTHING, false },
	{ IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, SECOND_LKEY, NOTHING,
	  false },
	{ IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, LOCAL_BEYOND, BAD_RKEY,
	  true },
	{ IBV_QPT_RC, IBV_WR_ATOMIC_CMP_AND_SWP, LOCAL_PD, IN_ERROR, false },
	{ IBV_QPT_RC, IBV_WR_ATOMIC_WRITE, SECOND_LKEY, NOTHING, false },
	{ IBV_QPT_RC, IBV_WR_ATOMIC_WRITE, LOCAL_BEYOND, BAD_RKEY, true },
	{ IBV_QPT_UC, IBV_WR_SEND, SECOND_LKEY, NO_RECEIVE, false },
	{ IBV_QPT_UC, IBV_WR_RDMA_WRITE, LOCAL_PD, NOTHING, true },
	{ IBV_QPT_UC, IBV_WR_RDMA_WRITE, LKEY, BAD_RKEY, false },
	{ IBV_QPT_UD, IBV_WR_SEND, LKEY, NO_RECEIVE, false },
	{ IBV_QPT_UD, IBV_WR_SEND, LKEY, BAD_QKEY, false },
	{ IBV_QPT_UD, IBV_WR_SEND, SECOND_LKEY, NOTHING, true },
	{ IBV_QPT_UD, IBV_WR_SEND_WITH_IMM, LOCAL_BEYOND, IN_ERROR, false },
};

/*
 * A fault of A's memory is found before the request reaches B: whatever B would
 * have answered, A's completion has A's own error, and B's memory, receives and
 * QP are unchanged.
 */
static bool own_faults_first(const struct config *c)
{
	bool ok = true, theirs;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(own_faults) && ok; i++) {
		own_fault(c, &own_faults[i]);
		ok = !has_failed();
		if (!ok)
			fprintf(stderr,
				"# side %c: fault %zu of own_faults[]\n",
				'A' + side, i);
		ctl_swap(&ok, &theirs, sizeof(ok));
		ok = ok && theirs;
	}
	return ok;
}

/* ---- retries ---- */

/* B has no receive: A fails after its retries, B's QP continues. */
static bool rnr_exceeded(const struct config *c)
{
	struct config less = *c;
	struct end e;

	less.rnr_retry = 2;
	if (end_open(&e, &less, NULL)) {
		if (is(A)) {
			post_send(&e, 1, 0, 16);
			post_send(&e, 2, 0, 16);
			expect(&e, 1, IBV_WC_RNR_RETRY_EXC_ERR);
			expect_flushed(&e, 2, 2);
			expect_state(&e, IBV_QPS_ERR);
		}
		ctl_barrier();
		if (is(B))
			expect_state(&e, IBV_QPS_RTS);
	}
	end_close(&e);
	return !has_failed();
}

/* The receive comes late: A waits for it. */
static bool rnr_wait(const struct config *c)
{
	struct config more = *c;
	struct end e;

	more.rnr_retry = 7;	/* unlimited */
	more.rnr_timer = 14;	/* 1 ms */
	if (end_open(&e, &more, NULL)) {
		if (is(A)) {
			post_send(&e, 1, 0, 16);
			expect_nothing(&e, 50);
		}
		ctl_barrier();
		if (is(B)) {
			post_recv(&e, 101, 0, 64);
			expect(&e, 101, IBV_WC_SUCCESS);
			repoison(&e, 0, 16);
		} else {
			expect(&e, 1, IBV_WC_SUCCESS);
		}
	}
	end_close(&e);
	return !has_failed();
}

/* B's QP is in RESET, then destroyed: no response comes. */
static bool retry_exceeded(const struct config *c)
{
	struct config less = *c;
	struct end e;

	less.timeout = 12;	/* 17 ms */
	less.retry = 2;
	if (end_open(&e, &less, NULL)) {
		if (is(B))
			to_state(&e, IBV_QPS_RESET);
		ctl_barrier();
		if (is(A)) {
			post_send(&e, 1, 0, 16);
			post_send(&e, 2, 0, 16);
			expect(&e, 1, IBV_WC_RETRY_EXC_ERR);
			expect_flushed(&e, 2, 2);
			expect_state(&e, IBV_QPS_ERR);
		}
	}
	end_close(&e);
	return !has_failed();
}

/* ---- flushing ---- */

/*
 * Into the error state with a full queue: its requests are flushed in order,
 * and so are later ones. First A's sends, which wait for receives that B does
 * not have; B posts its receives only when A sends no more.
 */
static bool flush(const struct config *c)
{
	struct config wait = *c;
	struct end e;
	int i;

	wait.rnr_retry = 7;
	if (!end_open(&e, &wait, NULL))
		goto close;
	if (is(A)) {
		for (i = 0; i < DEPTH; i++)
			post_send(&e, 1 + i, 0, 16);
		to_state(&e, IBV_QPS_ERR);
		expect_flushed(&e, 1, DEPTH);
	}
	ctl_barrier();
	if (is(B)) {
		for (i = 0; i < DEPTH; i++)
			post_recv(&e, 1 + i, 0, 16);
		to_state(&e, IBV_QPS_ERR);
		expect_flushed(&e, 1, DEPTH);
	}
	post_recv(&e, 201, 0, 16);
	expect_flushed(&e, 201, 201);
	post_send(&e, 202, 0, 16);
	expect_flushed(&e, 202, 202);
close:
	end_close(&e);
	return !has_failed();
}

/*
 * After an error: RESET, and the QP works again; no completion of before comes.
 */
static bool reset_and_reuse(const struct config *c)
{
	struct config wait = *c;
	struct end e;
	int i, round;

	wait.rnr_retry = 7;
	if (!end_open(&e, &wait, NULL))
		goto close;
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 8; i++)
			if (is(A))
				post_send(&e, 1 + i, 0,
					  16); /* waits for a receive */
		ctl_barrier();
		to_state(&e, IBV_QPS_RESET);
		expect_nothing(&e, 5);
		ctl_barrier();
		e.me.psn = (e.me.psn + 0x1000) & 0xffffff;
		ctl_swap(&e.me, &e.peer, sizeof(e.me));
		if (!qp_init(e.qp, &wait, REMOTE_ALL) ||
		    !qp_connect(e.qp, &wait, e.me.psn, &e.peer))
			failed("round %d", round);
		ctl_barrier();
	}
	if (is(B))
		post_recv(&e, 101, 0, 16);
	else
		post_send(&e, 9, 0, 16);
	expect(&e, is(A) ? 9 : 101, IBV_WC_SUCCESS);
	repoison(&e, 0, 16);
close:
	end_close(&e);
	return !has_failed();
}

/* ---- operations that must succeed ---- */

/* A message of 0 bytes needs neither a valid key nor an address. */
static bool zero_length(const struct config *c)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND,	   IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
	};
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end e;
	size_t i;

	if (!end_open(&e, c, NULL))
		goto close;
	for (i = 0; is(B) && i < 3; i++)
		post_recv(&e, 101 + i, i * 64, 64);
	ctl_barrier();
	for (i = 0; is(A) && i < ARRAY_SIZE(opcodes); i++) {
		sge = piece(&e, 0, 0);
		wr = request(&e, i, opcodes[i], i % 2 ? &sge : NULL);
		if (i >= 2) {
			wr.wr.rdma.rkey = 0xbadbad;
			wr.wr.rdma.remote_addr = 1;
		}
		post(&e, wr);
		expect(&e, i, IBV_WC_SUCCESS);
	}
	for (i = 0; is(B) && i < 3; i++)
		if (expect(&e, 101 + i, IBV_WC_SUCCESS).byte_len)
			failed("byte_len of an empty message");
close:
	end_close(&e);
	return !has_failed();
}

/* A fenced SEND sends the data of the READ before it. */
static bool fence(const struct config *c)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct stream s;
	struct end e;
	int i;

	if (!end_open(&e, c, NULL))
		goto close;
	for (i = 0; is(B) && i < 8; i++) {
		stream_start(&s, 1, 0, i);
		stream_fill(&s, e.mem.base + 8192 + i * 4096, 4096);
		post_recv(&e, 101 + i, 0, 4096);
	}
	ctl_barrier();
	for (i = 0; is(A) && i < 8; i++) {
		sge = piece(&e, 0, 4096);
		wr = request(&e, 2 * i, IBV_WR_RDMA_READ, &sge);
		wr.wr.rdma.remote_addr += 8192 + i * 4096;
		post(&e, wr);
		wr = request(&e, 2 * i + 1, IBV_WR_SEND, &sge);
		wr.send_flags |= IBV_SEND_FENCE;
		post(&e, wr);
		expect(&e, 2 * i, IBV_WC_SUCCESS);
		expect(&e, 2 * i + 1, IBV_WC_SUCCESS);
		ctl_barrier();
	}
	for (i = 0; is(B) && i < 8; i++) {
		expect(&e, 101 + i, IBV_WC_SUCCESS);
		stream_start(&s, 1, 0, i);
		if (stream_check(&s, e.mem.base, 4096) >= 0)
			failed("message %d is not what was read", i);
		ctl_barrier();
	}
	repoison(&e, 0, MEM);
close:
	end_close(&e);
	return !has_failed();
}

/* ---- events ---- */

static bool has_cq_event(struct end *e, int ms)
{
	struct pollfd fd = { .fd = e->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *unused;

	if (poll(&fd, 1, ms) != 1 || ibv_get_cq_event(e->channel, &cq, &unused))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

/*
 * A request for solicited completions ignores others; a request gives one
 * event.
 */
static bool solicited(const struct config *c)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end e;
	int i;

	if (!end_open(&e, c, NULL))
		goto close;
	if (is(B)) {
		for (i = 0; i < 3; i++)
			post_recv(&e, 101 + i, 0, 64);
		check_zero(ibv_req_notify_cq(e.cq, 1), "ibv_req_notify_cq");
	}
	ctl_barrier();
	for (i = 0; is(A) && i < 3; i++) {
		sge = piece(&e, 0, 16);
		wr = request(&e, 1 + i, IBV_WR_SEND, &sge);
		wr.send_flags |= i ? IBV_SEND_SOLICITED : 0;
		post(&e, wr);
		expect(&e, 1 + i, IBV_WC_SUCCESS);
		ctl_barrier();
		ctl_barrier();
	}
	for (i = 0; is(B) && i < 3; i++) {
		ctl_barrier();
		if (has_cq_event(&e, i == 1 ? 1000 * time_factor :
					      50 * time_factor) != (i == 1))
			failed("message %d: %s event", i, i == 1 ? "no" : "an");
		ctl_barrier();
	}
	for (i = 0; is(B) && i < 3; i++)
		expect(&e, 101 + i, IBV_WC_SUCCESS);
	if (is(B))
		repoison(&e, 0, 16);
close:
	end_close(&e);
	return !has_failed();
}

/* The limit event comes once when fewer receives are left than the limit. */
static bool srq_limit(const struct config *c)
{
	struct shape shape = { .srq = true };
	struct ibv_srq_attr attr = { .srq_limit = 6 };
	struct end e;
	int i;

	drop_events();
	if (!end_open(&e, c, &shape))
		goto close;
	if (is(B)) {
		for (i = 0; i < 10; i++)
			post_recv(&e, 101 + i, 0, 64);
		check_zero(ibv_modify_srq(e.srq, &attr, IBV_SRQ_LIMIT),
			   "ibv_modify_srq");
	}
	ctl_barrier();
	for (i = 0; is(A) && i < 6; i++) {
		post_send(&e, 1 + i, 0, 16);
		expect(&e, 1 + i, IBV_WC_SUCCESS);
	}
	if (is(B)) {
		for (i = 0; i < 6; i++)
			expect(&e, ANY_ID, IBV_WC_SUCCESS);
		expect_event(&e, IBV_EVENT_SRQ_LIMIT_REACHED);
		expect_no_event();
		memset(&attr, 0, sizeof(attr));
		check_zero(ibv_query_srq(e.srq, &attr), "ibv_query_srq");
		if (attr.srq_limit)
			failed("the limit is still armed (%u)", attr.srq_limit);
		repoison(&e, 0, 16);
	}
close:
	end_close(&e);
	return !has_failed();
}

/* A QP in error reports when it takes no more from its SRQ. */
static bool last_wqe(const struct config *c)
{
	struct shape shape = { .srq = true };
	struct end e;

	drop_events();
	if (end_open(&e, c, &shape) && is(B)) {
		post_recv(&e, 101, 0, 64);
		to_state(&e, IBV_QPS_ERR);
		expect_event(&e, IBV_EVENT_QP_LAST_WQE_REACHED);
		expect_no_event();
	}
	end_close(&e);
	return !has_failed();
}

/* Events of the responder for refused requests. */
static bool error_events(const struct config *c)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end e;

	drop_events();
	if (end_open(&e, c, NULL)) {
		if (is(A)) {
			sge = piece(&e, 0, 16);
			wr = request(&e, 1, IBV_WR_RDMA_WRITE, &sge);
			wr.wr.rdma.rkey ^= 0x5a00;
			post(&e, wr);
			expect(&e, 1, IBV_WC_REM_ACCESS_ERR);
		} else {
			expect_event(&e, IBV_EVENT_QP_ACCESS_ERR);
		}
		expect_no_event();
	}
	end_close(&e);
	return !has_failed();
}

/* SQD: posted requests wait; SQ_DRAINED says that earlier ones have ended. */
static bool sq_drain(const struct config *c)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1,
	};
	struct end e;
	int i;

	drop_events();
	if (!end_open(&e, c, NULL))
		goto close;
	for (i = 0; is(B) && i < 2; i++)
		post_recv(&e, 101 + i, 0, 64);
	ctl_barrier();
	if (is(A)) {
		post_send(&e, 1, 0, 16);
		check_zero(ibv_modify_qp(e.qp, &attr,
					 IBV_QP_STATE |
					 IBV_QP_EN_SQD_ASYNC_NOTIFY),
			   "modify to SQD");
		expect_event(&e, IBV_EVENT_SQ_DRAINED);
		expect(&e, 1, IBV_WC_SUCCESS);
		post_send(&e, 2, 0, 16);
		expect_nothing(&e, 20);
		to_state(&e, IBV_QPS_RTS);
		expect(&e, 2, IBV_WC_SUCCESS);
	} else {
		expect(&e, 101, IBV_WC_SUCCESS);
		expect(&e, 102, IBV_WC_SUCCESS);
		repoison(&e, 0, 16);
	}
	expect_no_event();
close:
	end_close(&e);
	return !has_failed();
}

/* ---- posts that are refused ---- */

static void refuse_send(struct end *e, struct ibv_send_wr wr, const char *what)
{
	struct ibv_send_wr *bad = NULL;

	if (!ibv_post_send(e->qp, &wr, &bad))
		failed("ibv_post_send took %s", what);
	else if (bad != &wr)
		failed("ibv_post_send of %s: bad_wr is %p", what, (void *)bad);
}

/* All requests before the bad one are posted; bad_wr points to the bad one. */
static void refuse_second(struct end *e)
{
	struct ibv_sge sge = piece(e, 0, 16);
	struct ibv_send_wr wr[3], *bad = NULL;
	int i;

	for (i = 0; i < 3; i++) {
		wr[i] = request(e, 1 + i, IBV_WR_SEND, &sge);
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	wr[1].num_sge = 1000;
	if (!ibv_post_send(e->qp, wr, &bad) || bad != &wr[1])
		failed("a list with a bad request in the middle");
	expect(e, 1, IBV_WC_SUCCESS);
	expect_nothing(e, 5);
}

static void fill_queue(struct end *e)
{
	struct ibv_sge sge = piece(e, 0, 16);
	struct ibv_send_wr wr = request(e, 1, IBV_WR_SEND, &sge), *bad;
	int i, err = 0;

	for (i = 0; !err && i < 100000; i++)
		err = ibv_post_send(e->qp, &wr, &bad);
	if (err != ENOMEM || i < DEPTH)
		failed("a full send queue: %s after %d", strerror(err), i);
}

static void fill_recv_queue(struct end *e)
{
	struct ibv_sge sge = piece(e, 0, 16);
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int i, err = 0;

	for (i = 0; !err && i < 100000; i++)
		err = ibv_post_recv(e->qp, &wr, &bad);
	if (err != ENOMEM || i < DEPTH)
		failed("a full receive queue: %s after %d", strerror(err), i);
}

static void wrong_states(struct end *e, const struct config *c)
{
	static const struct shape usual;
	struct ibv_qp *connected = e->qp;
	struct ibv_sge sge = piece(e, 0, 16);
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad;

	e->qp = end_qp(e, &usual);
	if (!ibv_post_recv(e->qp, &recv, &bad))
		failed("ibv_post_recv in RESET");
	refuse_send(e, request(e, 1, IBV_WR_SEND, &sge), "a SEND in RESET");
	qp_init(e->qp, c, 0);
	refuse_send(e, request(e, 1, IBV_WR_SEND, &sge), "a SEND in INIT");
	check_zero(ibv_post_recv(e->qp, &recv, &bad), "ibv_post_recv in INIT");
	check_zero(ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	e->qp = connected;
}

static bool refused_posts(const struct config *c)
{
	struct config wait = *c;
	struct ibv_send_wr wr;
	struct ibv_sge sge[2];
	struct end e;

	wait.rnr_retry = 7;
	if (!end_open(&e, &wait, NULL))
		goto close;
	if (is(B))
		post_recv(&e, 101, 0, 64);
	ctl_barrier();
	if (is(A)) {
		sge[0] = piece(&e, 0, 16);
		wr = request(&e, 1, IBV_WR_SEND, sge);
		wr.num_sge = 1000;
		refuse_send(&e, wr, "1000 SGEs");
		sge[0] = piece(&e, 0, 60000);
		wr = request(&e, 1, IBV_WR_SEND, sge);
		wr.send_flags |= IBV_SEND_INLINE;
		refuse_send(&e, wr, "60000 bytes inline");
		sge[0] = piece(&e, 0, 16);
		wr = request(&e, 1, 77, sge);
		refuse_send(&e, wr, "opcode 77");
		refuse_second(&e);
		wrong_states(&e, c);
		fill_queue(&e);
	} else {
		expect(&e, 101, IBV_WC_SUCCESS);
		repoison(&e, 0, 16);
	}
	ctl_barrier();
	to_state(&e, IBV_QPS_ERR);
	ctl_barrier();
close:
	end_close(&e);
	return !has_failed();
}

static bool full_recv_queue(const struct config *c)
{
	struct end e;

	if (end_open(&e, c, NULL) && is(B))
		fill_recv_queue(&e);
	end_close(&e);
	return !has_failed();
}

/* ---- UD ---- */

/*
 * A datagram with the wrong Q_Key does not arrive; the next with the right one
 * does.
 */
static bool ud_qkey(const struct config *c)
{
	struct config ud = *c;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end e;

	ud.qp = IBV_QPT_UD;
	if (!end_open(&e, &ud, NULL))
		goto close;
	if (is(B))
		post_recv(&e, 101, 0, 128);
	ctl_barrier();
	if (is(A)) {
		sge = piece(&e, 0, 16);
		wr = request(&e, 1, IBV_WR_SEND, &sge);
		wr.wr.ud.remote_qkey++;
		post(&e, wr);
		expect(&e, 1, IBV_WC_SUCCESS);
		sge = piece(&e, 0, 24);
		post(&e, request(&e, 2, IBV_WR_SEND, &sge));
		expect(&e, 2, IBV_WC_SUCCESS);
	} else {
		if (expect(&e, 101, IBV_WC_SUCCESS).byte_len != 40 + 24)
			failed("the datagram with a wrong Q_Key arrived");
		repoison(&e, 0, 128);
	}
close:
	end_close(&e);
	return !has_failed();
}

/*
 * Longer than the port's MTU: not sent, and reported. The QP continues from
 * SQE.
 */
static bool ud_too_long(const struct config *c)
{
	struct config ud = *c;
	struct ibv_sge sge;
	struct end e;

	ud.qp = IBV_QPT_UD;
	if (!end_open(&e, &ud, NULL))
		goto close;
	if (is(B))
		post_recv(&e, 101, 0, 16384);
	ctl_barrier();
	if (is(A)) {
		sge = piece(&e, 0, (128u << port.active_mtu) + 1);
		post(&e, request(&e, 1, IBV_WR_SEND, &sge));
		expect(&e, 1, IBV_WC_LOC_LEN_ERR);
	}
	ctl_barrier();
	if (is(B))
		expect_nothing(&e, 20);
close:
	end_close(&e);
	drop_events();
	return !has_failed();
}

/*
 * A receive that is too short for the datagram reports it, no byte after it is
 * written, and the next receive serves the next datagram.
 */
static bool ud_short_recv(const struct config *c)
{
	struct config ud = *c;
	struct end e;

	ud.qp = IBV_QPT_UD;
	if (!end_open(&e, &ud, NULL))
		goto close;
	if (is(B)) {
		post_recv(&e, 101, 0, 100);
		post_recv(&e, 102, 1024, 100);
	}
	ctl_barrier();
	if (is(A)) {
		post_send(&e, 1, 0, 61);
		expect(&e, 1, IBV_WC_SUCCESS);
		post_send(&e, 2, 0, 60);
		expect(&e, 2, IBV_WC_SUCCESS);
	} else {
		expect(&e, 101, IBV_WC_LOC_LEN_ERR);
		repoison(&e, 0, 100);
		if (expect(&e, 102, IBV_WC_SUCCESS).byte_len != 100)
			failed("another datagram arrived");
		repoison(&e, 1024, 100);
		expect_state(&e, IBV_QPS_RTS);
	}
close:
	end_close(&e);
	drop_events();
	return !has_failed();
}

/* ---- programs that poll memory ---- */

/*
 * B polls the last byte of a WRITE, as many programs do, with a thread of its
 * own: when the byte changes, the whole message is there. Lengths are odd and
 * even, of one run and of several; the last byte counts up.
 */
static bool write_last(const struct config *c)
{
	static const uint32_t lengths[] = { 2,	3,   7,	   8,	 15,
					    64, 100, 4096, 4097, 60000 };
	volatile uint8_t *last;
	struct ibv_sge sge;
	struct end e;
	uint32_t len;
	double end;
	int i, j;

	if (!end_open(&e, c, NULL))
		goto close;
	for (i = 1; i <= 200 && !has_failed(); i++) {
		len = lengths[i % ARRAY_SIZE(lengths)];
		ctl_barrier();
		if (is(A)) {
			memset(e.mem.base, i, len);
			sge = piece(&e, 0, len);
			post(&e, request(&e, i, IBV_WR_RDMA_WRITE, &sge));
			expect(&e, i, IBV_WC_SUCCESS);
			continue;
		}
		last = e.mem.base + len - 1;
		for (end = deadline(&e); *last != (uint8_t)i && now() < end;)
			;
		atomic_thread_fence(memory_order_acquire);
		for (j = 0; j < (int)len && e.mem.base[j] == (uint8_t)i; j++)
			;
		if (j < (int)len)
			failed("round %d: byte %d of %u is %#x when the last is there",
			       i, j, len, e.mem.base[j]);
		repoison(&e, 0, len);
	}
	for (; i <= 200; i++)
		ctl_barrier();
close:
	end_close(&e);
	return !has_failed();
}

/* The AH of another PD cannot be used. */
static bool ud_foreign_ah(const struct config *c)
{
	struct ibv_ah *own = NULL;
	struct config ud = *c;
	struct ibv_pd *pd;
	struct end e;

	ud.qp = IBV_QPT_UD;
	if (!end_open(&e, &ud, NULL))
		goto close;
	if (is(B))
		post_recv(&e, 101, 0, 128);
	ctl_barrier();
	if (is(A)) {
		pd = ibv_alloc_pd(context);
		own = e.ah;
		e.ah = pd ? ah_make(pd, &ud, &e.peer.gid) : NULL;
		if (e.ah) {
			post_send(&e, 1, 0, 16);
			expect(&e, 1, IBV_WC_LOC_QP_OP_ERR);
			check_zero(ibv_destroy_ah(e.ah), "ibv_destroy_ah");
		}
		e.ah = own;
		check_zero(pd ? ibv_dealloc_pd(pd) : ENOMEM, "another PD");
	}
	ctl_barrier();
	if (is(B))
		expect_nothing(&e, 20);
close:
	end_close(&e);
	drop_events();
	return !has_failed();
}

/* What was posted with an AH is sent, though the AH ends before its turn. */
static bool ud_ended_ah(const struct config *c)
{
	struct config ud = *c;
	struct end e;
	int i;

	ud.qp = IBV_QPT_UD;
	if (!end_open(&e, &ud, NULL))
		goto close;
	for (i = 0; is(B) && i < DEPTH; i++)
		post_recv(&e, 101 + i, 0, 128);
	ctl_barrier();
	if (is(A)) {
		to_state(&e, IBV_QPS_SQD);
		for (i = 0; i < DEPTH; i++)
			post_send(&e, 1 + i, 0, 16);
		check_zero(ibv_destroy_ah(e.ah), "ibv_destroy_ah");
		e.ah = NULL;
		expect_nothing(&e, 20);
		to_state(&e, IBV_QPS_RTS);
		for (i = 0; i < DEPTH; i++)
			expect(&e, 1 + i, IBV_WC_SUCCESS);
	} else {
		for (i = 0; i < DEPTH; i++)
			expect(&e, 101 + i, IBV_WC_SUCCESS);
		repoison(&e, 0, 128);
	}
close:
	end_close(&e);
	return !has_failed();
}

/* ---- invalidation ---- */

/*
 * SEND_WITH_INV invalidates a type 2 window; with another rkey it is an error.
 */
static bool send_inv(const struct config *c)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_mw *mw = NULL;
	struct ibv_sge sge;
	struct ibv_wc wc;
	bool can = true, theirs;
	struct end e;
	struct shape shape = {};

	if (!end_open(&e, c, &shape))
		goto close;
	if (is(B)) {
		mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
		can = mw;
		if (mw) {
			/*
			 * The region of end_open() has no MW_BIND, so use one
			 * that has.
			 */
			check_zero(ibv_dereg_mr(e.mem.mr), "ibv_dereg_mr");
			e.mem.mr = ibv_reg_mr(e.pd, e.mem.base, MEM,
					      ACCESS_ALL | IBV_ACCESS_MW_BIND);
			wr = (struct ibv_send_wr){
				.wr_id = 1, .opcode = IBV_WR_BIND_MW,
				.send_flags = IBV_SEND_SIGNALED,
			};
			wr.bind_mw.mw = mw;
			wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
			wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
				.mr = e.mem.mr,
				.addr = (uintptr_t)e.mem.base,
				.length = 4096,
				.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
			};
			check_zero(ibv_post_send(e.qp, &wr, &bad), "bind");
			expect(&e, 1, IBV_WC_SUCCESS);
			e.me.rkey[0] = wr.bind_mw.rkey;
			post_recv(&e, 101, 8192, 64);
		} else {
			skipped("no memory windows");
		}
	}
	ctl_swap(&can, &theirs, sizeof(can));
	ctl_swap(&e.me, &e.peer, sizeof(e.me));
	if (is(A) && theirs) {
		sge = piece(&e, 0, 16);
		post(&e, request(&e, 1, IBV_WR_RDMA_WRITE, &sge));
		wr = request(&e, 2, IBV_WR_SEND_WITH_INV, &sge);
		wr.invalidate_rkey = e.peer.rkey[0];
		post(&e, wr);
		post(&e, request(&e, 3, IBV_WR_RDMA_WRITE, &sge));
		expect(&e, 1, IBV_WC_SUCCESS);
		expect(&e, 2, IBV_WC_SUCCESS);
		expect(&e, 3, IBV_WC_REM_ACCESS_ERR);
	} else if (is(B) && can) {
		wc = expect(&e, 101, IBV_WC_SUCCESS);
		if (!(wc.wc_flags & IBV_WC_WITH_INV) ||
		    wc.invalidated_rkey != e.me.rkey[0])
			failed("flags %#x, invalidated rkey %#x", wc.wc_flags,
			       wc.invalidated_rkey);
		repoison(&e, 0, 16);
		repoison(&e, 8192, 16);
	}
	ctl_barrier();
	if (mw)
		check_zero(ibv_dealloc_mw(mw), "ibv_dealloc_mw");
close:
	end_close(&e);
	drop_events();
	return !has_failed();
}

static bool send_inv_bad(const struct config *c)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	struct end e;

	if (!end_open(&e, c, NULL))
		goto close;
	if (is(B))
		post_recv(&e, 101, 0, 64);
	ctl_barrier();
	if (is(A)) {
		sge = piece(&e, 0, 16);
		wr = request(&e, 1, IBV_WR_SEND_WITH_INV, &sge);
		wr.invalidate_rkey = e.peer.rkey[0] ^ 0x5a00;
		post(&e, wr);
		if (!next_wc(&e, &wc) || (wc.status != IBV_WC_REM_ACCESS_ERR &&
					  wc.status != IBV_WC_REM_OP_ERR &&
					  wc.status != IBV_WC_REM_INV_REQ_ERR))
			failed("invalidation of a key that is none: %s",
			       ibv_wc_status_str(wc.status));
	}
	ctl_barrier();
	if (is(B)) {
		if (next_wc(&e, &wc) && wc.status == IBV_WC_SUCCESS)
			failed("the message arrived as if nothing were wrong");
		repoison(&e, 0, 16);
	}
close:
	end_close(&e);
	drop_events();
	return !has_failed();
}

/* ---- queries and CQs ---- */

static bool query(const struct config *c)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a = {};
	struct end e;

	if (!end_open(&e, c, NULL))
		goto close;
	check_zero(ibv_query_qp(e.qp, &a,
				IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_AV |
				IBV_QP_TIMEOUT,
				&init),
		   "ibv_query_qp");
	if (a.qp_state != IBV_QPS_RTS || a.dest_qp_num != e.peer.qpn ||
	    a.timeout != c->timeout || a.retry_cnt != c->retry ||
	    a.rnr_retry != c->rnr_retry || a.min_rnr_timer != c->rnr_timer ||
	    memcmp(&a.ah_attr.grh.dgid, &e.peer.gid, 16) ||
	    a.qp_access_flags != REMOTE_ALL || a.sq_psn != e.me.psn ||
	    a.rq_psn != e.peer.psn)
		failed("an attribute is not what was set: state %d dest %#x timeout %u retry %u rnr %u timer %u access %#x sq_psn %#x rq_psn %#x",
		       a.qp_state, a.dest_qp_num, a.timeout, a.retry_cnt,
		       a.rnr_retry, a.min_rnr_timer, a.qp_access_flags,
		       a.sq_psn, a.rq_psn);
	if (init.cap.max_send_wr < DEPTH || init.cap.max_recv_wr < DEPTH ||
	    init.cap.max_inline_data < 32)
		failed("capabilities: %u %u %u", init.cap.max_send_wr,
		       init.cap.max_recv_wr, init.cap.max_inline_data);
close:
	end_close(&e);
	return !has_failed();
}

/* Take all addresses for mappings from the process, or give them back. */
static void allow_mappings(bool allow)
{
	static struct rlimit was;
	struct rlimit none;

	if (!allow)
		check_zero(getrlimit(RLIMIT_AS, &was), "getrlimit");
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = was.rlim_max };
	check_zero(setrlimit(RLIMIT_AS, allow ? &was : &none), "setrlimit");
}

/*
 * Completions survive a resize in order, and a resize that fails; a size that
 * cannot hold them is refused.
 */
static bool resize_cq(const struct config *c)
{
	struct end e;
	int i, err;

	if (!end_open(&e, c, NULL))
		goto close;
	for (i = 0; is(B) && i < 20; i++)
		post_recv(&e, 101 + i, 0, 16);
	ctl_barrier();
	for (i = 0; is(A) && i < 20; i++)
		post_send(&e, 1 + i, 0, 16);
	for (i = 0; i < 5; i++)
		expect(&e, (is(A) ? 1 : 101) + i, IBV_WC_SUCCESS);
	ctl_barrier();
	pause_ms(20);
	allow_mappings(false);
	err = ibv_resize_cq(e.cq, 500);
	allow_mappings(true);
	if (err != ENOMEM)
		failed("ibv_resize_cq without memory: %d", err);
	err = ibv_resize_cq(e.cq, 3);
	if (err != EINVAL)
		failed("ibv_resize_cq to 3: %d", err);
	expect(&e, (is(A) ? 1 : 101) + i++, IBV_WC_SUCCESS);
	check_zero(ibv_resize_cq(e.cq, 1000), "ibv_resize_cq to 1000");
	if (e.cq->cqe < 1000)
		failed("cqe is %d after resizing to 1000", e.cq->cqe);
	for (; i < 20; i++)
		expect(&e, (is(A) ? 1 : 101) + i, IBV_WC_SUCCESS);
	repoison(&e, 0, 16);
close:
	end_close(&e);
	return !has_failed();
}

/* Receives survive a resize of their SRQ, in order. */
static bool resize_srq(const struct config *c)
{
	struct shape shape = { .srq = true };
	struct ibv_srq_attr attr = { .max_wr = 10000 };
	struct end e;
	int i, err;

	if (!end_open(&e, c, &shape))
		goto close;
	for (i = 0; is(B) && i < 8; i++)
		post_recv(&e, 101 + i, 0, 16);
	ctl_barrier();
	for (i = 0; i < 3; i++) {
		if (is(A))
			post_send(&e, 1 + i, 0, 16);
		expect(&e, (is(A) ? 1 : 101) + i, IBV_WC_SUCCESS);
	}
	if (is(B)) {
		allow_mappings(false);
		err = ibv_modify_srq(e.srq, &attr, IBV_SRQ_MAX_WR);
		allow_mappings(true);
		if (err != ENOMEM)
			failed("ibv_modify_srq without memory: %d", err);
		attr.max_wr = 4;
		err = ibv_modify_srq(e.srq, &attr, IBV_SRQ_MAX_WR);
		if (err != EINVAL)
			failed("ibv_modify_srq to 4: %d", err);
		post_recv(&e, 101 + 8, 0, 16);
		attr = (struct ibv_srq_attr){ .max_wr = 300, .srq_limit = 1 };
		check_zero(ibv_modify_srq(e.srq, &attr,
					  IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT),
			   "ibv_modify_srq to 300");
		check_zero(ibv_query_srq(e.srq, &attr), "ibv_query_srq");
		if (attr.max_wr < 300 || attr.srq_limit != 1)
			failed("max_wr %u, limit %u", attr.max_wr,
			       attr.srq_limit);
		for (i = 9; i < 20; i++)
			post_recv(&e, 101 + i, 0, 16);
	}
	ctl_barrier();
	for (i = 3; i < 20; i++) {
		if (is(A))
			post_send(&e, 1 + i, 0, 16);
		expect(&e, (is(A) ? 1 : 101) + i, IBV_WC_SUCCESS);
	}
	repoison(&e, 0, 16);
close:
	end_close(&e);
	return !has_failed();
}

/*
 * A QP with requests in flight can be destroyed at once, and so can its region.
 */
static bool destroy_busy(const struct config *c)
{
	struct config wait = *c;
	struct end e;
	int i, round;

	wait.rnr_retry = 7;
	for (round = 0; round < 5; round++) {
		if (end_open(&e, &wait, NULL)) {
			for (i = 0; i < DEPTH; i++)
				post_send(&e, i, 0, MEM / 2);
			check_zero(ibv_destroy_qp(e.qp), "ibv_destroy_qp");
			e.qp = NULL;
		}
		end_close(&e);
	}
	return !has_failed();
}

/* ---- events that an application requests or causes ---- */

/* A QP in RTR reports when its peer has sent. */
static bool comm_est(const struct config *c)
{
	struct end e;

	drop_events();
	if (!end_open(&e, c, NULL))
		goto close;
	if (is(B)) {
		to_state(&e, IBV_QPS_RESET);
		if (qp_init(e.qp, c, REMOTE_ALL))
			qp_to_rtr(e.qp, c, &e.peer);
		post_recv(&e, 101, 0, 64);
		drop_events();
	}
	ctl_barrier();
	if (is(A)) {
		post_send(&e, 1, 0, 16);
		expect(&e, 1, IBV_WC_SUCCESS);
	} else {
		expect_event(&e, IBV_EVENT_COMM_EST);
		expect(&e, 101, IBV_WC_SUCCESS);
		repoison(&e, 0, 16);
	}
	expect_no_event();
close:
	end_close(&e);
	return !has_failed();
}

/* An invalid request, an atomic to an odd address: both sides report it. */
static bool request_event(const struct config *c)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end e;

	drop_events();
	if (end_open(&e, c, NULL)) {
		if (is(A)) {
			sge = piece(&e, 0, 8);
			wr = request(&e, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
			wr.wr.atomic.remote_addr++;
			post(&e, wr);
			expect(&e, 1, IBV_WC_REM_INV_REQ_ERR);
			expect_state(&e, IBV_QPS_ERR);
		} else {
			expect_event(&e, IBV_EVENT_QP_REQ_ERR);
			expect_state(&e, IBV_QPS_ERR);
		}
		expect_no_event();
	}
	end_close(&e);
	return !has_failed();
}

/*
 * @e's CQ has room for @cqe completions, and gets more: the CQ and the QP fail,
 * their owner gets both events, and polls the completions before.
 */
static void expect_overrun(struct end *e, int cqe, uint64_t first)
{
	struct ibv_wc wc;
	int i;

	expect_event(e, IBV_EVENT_CQ_ERR);
	expect_event(e, IBV_EVENT_QP_FATAL);
	expect_state(e, IBV_QPS_ERR);
	for (i = 0; i < cqe; i++)
		expect(e, first + i, IBV_WC_SUCCESS);
	if (ibv_poll_cq(e->cq, 1, &wc) > 0)
		failed("a completion of %llu after the overrun",
		       (unsigned long long)wc.wr_id);
	expect_no_event();
}

/*
 * A polls nothing and has more completions than its CQ holds. B's QP continues.
 */
static bool cq_overrun(const struct config *c)
{
	struct end e;
	int i;

	drop_events();
	if (!end_open(&e, c, NULL))
		goto close;
	if (is(A)) {
		check_zero(ibv_resize_cq(e.cq, 8), "ibv_resize_cq to 8");
		if (e.cq->cqe + 1 > DEPTH)
			failed("%d completions cannot be too many", DEPTH);
		for (i = 0; !has_failed() && i <= e.cq->cqe; i++)
			post(&e, request(&e, 1 + i, IBV_WR_RDMA_WRITE, NULL));
		expect_overrun(&e, e.cq->cqe, 1);
	}
	ctl_barrier();
	if (is(B))
		expect_state(&e, IBV_QPS_RTS);
close:
	end_close(&e);
	return !has_failed();
}

/*
 * B polls nothing, and A sends more than B's CQ holds: A gets an error as well.
 */
static bool cq_overrun_recv(const struct config *c)
{
	struct ibv_wc wc = {};
	struct end e;
	int i, cqe;

	drop_events();
	if (!end_open(&e, c, NULL))
		goto close;
	if (is(B)) {
		check_zero(ibv_resize_cq(e.cq, 8), "ibv_resize_cq to 8");
		for (i = 0; i < DEPTH; i++)
			post_recv(&e, 101 + i, 0, 16);
	}
	ctl_swap(&e.cq->cqe, &cqe, sizeof(cqe));
	if (is(A)) {
		for (i = 0; i <= cqe + 1 && i < DEPTH; i++)
			post_send(&e, 1 + i, 0, 16);
		do {
			if (!next_wc(&e, &wc))
				failed("no completion of a SEND that B could not complete");
		} while (!has_failed() && wc.status == IBV_WC_SUCCESS);
		if (wc.wr_id < (uint64_t)cqe)
			failed("SEND %llu of %d failed",
			       (unsigned long long)wc.wr_id, cqe);
		expect_state(&e, IBV_QPS_ERR);
	} else {
		expect_overrun(&e, e.cq->cqe, 101);
		repoison(&e, 0, 16);
	}
close:
	end_close(&e);
	return !has_failed();
}

/*
 * B receives more than its CQ holds and allowed it: what did not fit is lost,
 * nobody learns of it, and the QP continues.
 */
static bool cq_overrun_ignored(const struct config *c)
{
	struct shape shape = { .unguarded = 4 };
	struct end e;
	int i, cqe;

	drop_events();
	if (!end_open(&e, c, &shape))
		goto close;
	ctl_swap(&e.cq->cqe, &cqe, sizeof(cqe));
	cqe = is(B) ? e.cq->cqe : cqe;
	if (cqe + 3 > DEPTH)
		failed("%d receives cannot be too many", DEPTH);
	if (is(B))
		for (i = 0; i < cqe + 3; i++)
			post_recv(&e, 101 + i, 0, 16);
	ctl_barrier();
	if (is(A)) {
		for (i = 0; !has_failed() && i < cqe + 2; i++) {
			post_send(&e, 1 + i, 0, 16);
			expect(&e, 1 + i, IBV_WC_SUCCESS);
		}
	}
	ctl_barrier();
	if (is(B))
		for (i = 0; i < cqe; i++)
			expect(&e, 101 + i, IBV_WC_SUCCESS);
	ctl_barrier();
	if (is(A)) {
		post_send(&e, 100, 0, 16);
		expect(&e, 100, IBV_WC_SUCCESS);
	} else {
		expect(&e, 101 + cqe + 2, IBV_WC_SUCCESS);
		repoison(&e, 0, 16);
	}
	expect_state(&e, IBV_QPS_RTS);
	if (drop_events())
		failed("an event of completions that may be lost");
close:
	end_close(&e);
	return !has_failed();
}

/* ---- static rates ---- */

/* How long so many requests take, in seconds, two at a time */
static double duration(struct end *e, enum ibv_wr_opcode opcode, uint32_t len,
		       int count)
{
	struct ibv_sge sge = piece(e, 0, len);
	double start = now();
	int i;

	for (i = 0; i < count; i++) {
		post(e, request(e, 1 + i, opcode, &sge));
		if (i)
			expect(e, i, IBV_WC_SUCCESS);
	}
	expect(e, count, IBV_WC_SUCCESS);
	return now() - start;
}

/*
 * Addresses of both sides allow 2.5 Gbit/s. A machine that is late may catch up
 * 2 ms; what such a time is worth is not judged.
 */
static void at_rate(const struct config *c, enum ibv_qp_type qp,
		    enum ibv_wr_opcode opcode)
{
	const double least = 200 * 65536 * 8 / 2.5e9 - 0.003;
	struct config slow = *c;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};
	double took;
	struct end e;

	slow.qp = qp;
	slow.static_rate = IBV_RATE_2_5_GBPS;
	if (end_open(&e, &slow, NULL) && is(A)) {
		check_zero(ibv_query_qp(e.qp, &attr, IBV_QP_AV, &init),
			   "ibv_query_qp");
		if (attr.ah_attr.static_rate != IBV_RATE_2_5_GBPS)
			failed("the QP says rate %d", attr.ah_attr.static_rate);
		took = duration(&e, opcode, 65536, 200);
		if (took < least)
			failed("%.1f ms, less than the rate's %.1f ms",
			       took * 1e3, least * 1e3);
	}
	ctl_barrier();
	if (is(B) && opcode == IBV_WR_RDMA_WRITE)
		repoison(&e, 0, 65536);
	end_close(&e);
}

static bool static_rate(const struct config *c)
{
	struct ibv_ah_attr none = {
		.is_global = 1,
		.port_num = 1,
		.static_rate = 1,
		.grh = { .sgid_index = gid_index(c->gid), .hop_limit = 64 },
	};
	struct end e;

	at_rate(c, IBV_QPT_RC, IBV_WR_RDMA_WRITE);
	at_rate(c, IBV_QPT_RC, IBV_WR_RDMA_READ);
	at_rate(c, IBV_QPT_UC, IBV_WR_RDMA_WRITE);
	if (end_open(&e, c, NULL)) {
		none.grh.dgid = e.peer.gid;
		if (ibv_create_ah(e.pd, &none) || errno != EINVAL)
			failed("an AH of a rate that does not exist: %s",
			       strerror(errno));
	}
	end_close(&e);
	return !has_failed();
}

/* ---- multicast on one side ---- */

struct member {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static bool member_open(struct member *m, struct end *e,
			const union ibv_gid *group, uint32_t flags)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
	};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_UD,
		.cap = {
			.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = e->pd,
		.create_flags = flags,
	};

	m->cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	init.send_cq = init.recv_cq = m->cq;
	m->qp = m->cq ? ibv_create_qp_ex(context, &init) : NULL;
	if (!m->qp)
		return failed("a QP with flags %#x: %s", flags,
			      strerror(errno));
	check_zero(ibv_modify_qp(m->qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				 IBV_QP_PORT | IBV_QP_QKEY),
		   "to INIT");
	attr.qp_state = IBV_QPS_RTR;
	check_zero(ibv_modify_qp(m->qp, &attr, IBV_QP_STATE), "to RTR");
	attr.qp_state = IBV_QPS_RTS;
	check_zero(ibv_modify_qp(m->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN),
		   "to RTS");
	check_zero(ibv_attach_mcast(m->qp, group, 0), "ibv_attach_mcast");
	return !has_failed();
}

static void member_close(struct member *m, const union ibv_gid *group)
{
	if (m->qp) {
		check_zero(ibv_detach_mcast(m->qp, group, 0),
			   "ibv_detach_mcast");
		check_zero(ibv_destroy_qp(m->qp), "ibv_destroy_qp");
	}
	if (m->cq)
		check_zero(ibv_destroy_cq(m->cq), "ibv_destroy_cq");
}

static void member_send(struct member *m, struct end *e, struct ibv_ah *ah,
			uint32_t imm)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->mem.base, .length = 8,
		.lkey = e->mem.mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(imm),
		.wr.ud = {
			.ah = ah, .remote_qpn = 0xffffff, .remote_qkey = QKEY,
		},
	}, *bad;

	check_zero(ibv_post_send(m->qp, &wr, &bad), "ibv_post_send to a group");
}

static void member_post_recv(struct member *m, struct end *e)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->mem.base, .length = 128,
		.lkey = e->mem.mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	check_zero(ibv_post_recv(m->qp, &wr, &bad), "ibv_post_recv");
}

/* The next datagram has @imm. */
static void member_expect(struct member *m, const struct config *c,
			  uint32_t imm)
{
	double end = now() + c->limit * time_factor;
	struct ibv_wc wc;

	while (!has_failed()) {
		if (now() > end) {
			failed("datagram %u of the group did not come", imm);
		} else if (ibv_poll_cq(m->cq, 1, &wc) == 1 &&
			   wc.opcode & IBV_WC_RECV) {
			if (wc.status || ntohl(wc.imm_data) != imm)
				failed("datagram %u, status %s, not %u",
				       ntohl(wc.imm_data),
				       ibv_wc_status_str(wc.status), imm);
			return;
		}
	}
}

/*
 * Two QPs of A in a group. The one that blocks its own datagrams gets only
 * those of the other, which gets all.
 */
static bool own_multicast(const struct config *c)
{
	union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 77 } };
	struct member blocks = {}, all = {};
	struct ibv_ah *ah = NULL;
	struct end e;
	int i;

	if (c->gid != GID_V4)
		group = (union ibv_gid) { .raw = { 0xff, 0x0e, [15] = 77 } };
	if (!end_open(&e, c, NULL) || !is(A))
		goto close;
	ah = ah_make(e.pd, c, &group);
	if (!ah ||
	    !member_open(&blocks, &e, &group,
			 IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) ||
	    !member_open(&all, &e, &group, 0))
		goto close;
	for (i = 0; i < 4; i++) {
		member_post_recv(&blocks, &e);
		member_post_recv(&all, &e);
	}
	member_send(&blocks, &e, ah, 1);
	member_expect(&all, c, 1);
	member_send(&all, &e, ah, 2);
	member_expect(&all, c, 2);
	member_expect(&blocks, c, 2);
	member_send(&blocks, &e, ah, 3);
	member_expect(&all, c, 3);
	member_send(&all, &e, ah, 4);
	member_expect(&blocks, c, 4);
close:
	member_close(&blocks, &group);
	member_close(&all, &group);
	if (ah)
		check_zero(ibv_destroy_ah(ah), "ibv_destroy_ah");
	end_close(&e);
	return !has_failed();
}

/* ---- objects that are destroyed or changed in use ---- */

#define BUSY_ROUNDS	8

static void post_writes(struct end *e, int count)
{
	struct ibv_sge sge = piece(e, 0, MEM / 4);
	int i;

	for (i = 0; i < count; i++)
		post(e, request(e, 1 + i, IBV_WR_RDMA_WRITE, &sge));
}

/* Completions: successes, then @status, then flushed; or successes alone. */
static void expect_until(struct end *e, int count, enum ibv_wc_status status)
{
	enum ibv_wc_status want = status;
	struct ibv_wc wc;
	int i;

	for (i = 0; !has_failed() && i < count; i++) {
		if (!next_wc(e, &wc))
			failed("%d completions of %d", i, count);
		else if (wc.wr_id != 1ull + i)
			failed("completion of %llu, not of %d",
			       (unsigned long long)wc.wr_id, 1 + i);
		else if (wc.status == want && wc.status)
			want = IBV_WC_WR_FLUSH_ERR;
		else if (wc.status && wc.status != want)
			failed("%d: %s", 1 + i, ibv_wc_status_str(wc.status));
		else if (!wc.status && want != status)
			failed("%d succeeded behind one that failed", 1 + i);
	}
}

static void reconnect(struct end *e)
{
	ctl_barrier();
	to_state(e, IBV_QPS_RESET);
	e->me.psn = (e->me.psn + 0x1000) & 0xffffff;
	e->me.rkey[0] = e->mem.mr->rkey;
	ctl_swap(&e->me, &e->peer, sizeof(e->me));
	if (!has_failed() && qp_init(e->qp, e->c, REMOTE_ALL | more.qp_access))
		qp_connect(e->qp, e->c, e->me.psn, &e->peer);
	ctl_barrier();
}

/* A's region, then B's, is deregistered while A's WRITEs are in flight. */
static bool dereg_busy(const struct config *c)
{
	struct end e;
	int round;

	if (!end_open(&e, c, NULL))
		goto close;
	for (round = 0; round < BUSY_ROUNDS; round++) {
		if (is(A))
			post_writes(&e, DEPTH);
		if (is(A) == (round % 2 == 0)) {
			usleep(round * 200);
			check_zero(ibv_dereg_mr(e.mem.mr), "ibv_dereg_mr");
			e.mem.mr = NULL;
		}
		if (is(A))
			expect_until(&e, DEPTH,
				     round % 2 ? IBV_WC_REM_ACCESS_ERR :
						 IBV_WC_LOC_PROT_ERR);
		if (!e.mem.mr)
			e.mem.mr =
				ibv_reg_mr(e.pd, e.mem.base, MEM, ACCESS_ALL);
		if (!e.mem.mr)
			failed("ibv_reg_mr: %s", strerror(errno));
		reconnect(&e);
	}
	if (is(B))
		repoison(&e, 0, MEM);
close:
	end_close(&e);
	return !has_failed();
}

/*
 * B changes its region while A writes to it. With the same rights A does not
 * notice; with another address and thus another key, WRITEs are refused.
 */
static bool rereg_busy(const struct config *c)
{
	int round, i, flags;
	struct end e;

	if (!end_open(&e, c, NULL))
		goto close;
	for (round = 0; round < BUSY_ROUNDS; round++) {
		flags = round % 2 ? IBV_REREG_MR_CHANGE_TRANSLATION :
				    IBV_REREG_MR_CHANGE_ACCESS;
		if (is(A)) {
			post_writes(&e, DEPTH);
			expect_until(&e, DEPTH,
				     round % 2 ? IBV_WC_REM_ACCESS_ERR :
						 IBV_WC_SUCCESS);
		}
		for (i = 0; is(B) && i < 4; i++)
			if (ibv_rereg_mr(e.mem.mr, flags, NULL, e.mem.base, MEM,
					 round % 2 ? 0 : ACCESS_ALL))
				failed("ibv_rereg_mr: %s", strerror(errno));
		reconnect(&e);
	}
	if (is(B))
		repoison(&e, 0, MEM);
close:
	end_close(&e);
	return !has_failed();
}

/* B gives A this rkey and its first address. */
static void give(struct end *e, uint32_t rkey, uint64_t addr)
{
	if (is(B)) {
		e->me.rkey[0] = rkey;
		e->me.addr[0] = addr;
	}
	ctl_swap(&e->me, &e->peer, sizeof(e->me));
}

/* A request of A at byte @at of what B gave; connect anew if it is refused. */
static void try_remote(struct end *e, enum ibv_wr_opcode opcode, int at,
		       uint32_t len, bool ok)
{
	struct ibv_sge sge = piece(e, 0, len);
	struct ibv_send_wr wr = request(e, 1, opcode, &sge);
	struct peer given = e->me;

	if (is(A)) {
		if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			wr.wr.atomic.remote_addr += at;
		else
			wr.wr.rdma.remote_addr += at;
		if (opcode == IBV_WR_SEND_WITH_INV)
			wr.invalidate_rkey = e->peer.rkey[0];
		post(e, wr);
		expect(e, 1, ok ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		memset(e->mem.base, SENT, len);
	}
	if (ok) {
		ctl_barrier();
		return;
	}
	if (is(B) && opcode == IBV_WR_SEND_WITH_INV)
		expect(e, 101, IBV_WC_WR_FLUSH_ERR);
	reconnect(e);
	give(e, given.rkey[0], given.addr[0]);
}

struct window {
	struct ibv_mw *mw;
	uint32_t rkey;
};

/* B's own request that binds (or, with 0 bytes, ends) a window. */
static void bind_window(struct end *e, struct window *w, size_t from,
			size_t len, int access, enum ibv_wc_status status)
{
	struct ibv_mw_bind_info info = {
		.mr = e->mem.mr,
		.addr = (uintptr_t)e->mem.base + from,
		.length = len,
		.mw_access_flags = access,
	};
	struct ibv_mw_bind bind = {
		.wr_id = 50, .send_flags = IBV_SEND_SIGNALED, .bind_info = info,
	};
	struct ibv_send_wr wr = {
		.wr_id = 50, .opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	if (w->mw->type == IBV_MW_TYPE_1) {
		check_zero(ibv_bind_mw(e->qp, w->mw, &bind), "ibv_bind_mw");
		w->rkey = w->mw->rkey;
	} else if (!len) {
		wr.opcode = IBV_WR_LOCAL_INV;
		wr.invalidate_rkey = w->rkey;
		post(e, wr);
	} else {
		w->rkey = ibv_inc_rkey(w->rkey);
		wr.bind_mw.mw = w->mw;
		wr.bind_mw.rkey = w->rkey;
		wr.bind_mw.bind_info = info;
		post(e, wr);
	}
	wc = expect(e, 50, status);
	if (!wc.status && wc.opcode != IBV_WC_BIND_MW &&
	    wc.opcode != IBV_WC_LOCAL_INV)
		failed("a bind completes with opcode %d", wc.opcode);
}

/* What A may do with a window, and how its access ends. */
static void use_window(struct end *e, enum ibv_mw_type type)
{
	const int rights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	uint64_t base = (uintptr_t)e->mem.base;
	struct window w = {};
	int err;

	if (is(B)) {
		w.mw = ibv_alloc_mw(e->pd, type);
		if (!w.mw) {
			failed("ibv_alloc_mw: %s", strerror(errno));
			return;
		}
		w.rkey = w.mw->rkey;
		bind_window(e, &w, 4096, 4096, rights, IBV_WC_SUCCESS);
	}
	give(e, w.rkey, base + 4096);
	try_remote(e, IBV_WR_RDMA_WRITE, 0, 4096, true);
	try_remote(e, IBV_WR_RDMA_READ, 4032, 64, true);
	try_remote(e, IBV_WR_RDMA_WRITE, 4033, 64, false);
	try_remote(e, IBV_WR_RDMA_READ, -1, 2, false);
	try_remote(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, false);
	if (type == IBV_MW_TYPE_1) {
		if (is(B))
			post_recv(e, 101, 0, 4096);
		ctl_barrier();
		try_remote(e, IBV_WR_SEND_WITH_INV, 0, 8, false);
	}
	try_remote(e, IBV_WR_RDMA_WRITE, 1, 64, true);

	/* The region cannot go before the window's access ends. */
	if (is(B)) {
		repoison(e, 0, 8192);
		err = ibv_dereg_mr(e->mem.mr);
		if (err != EBUSY)
			failed("ibv_dereg_mr of a region with a window: %s",
			       strerror(err));
		err = ibv_rereg_mr(e->mem.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				   NULL, 0, ACCESS_ALL);
		if (!err || errno != EBUSY)
			failed("ibv_rereg_mr of a region with a window: %d, %s",
			       err, strerror(errno));
		bind_window(e, &w, 0, 0, 0, IBV_WC_SUCCESS);
	}
	ctl_barrier();
	try_remote(e, IBV_WR_RDMA_WRITE, 0, 64, false);
	if (is(B))
		bind_window(e, &w, 4096, 4096,
			    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED,
			    IBV_WC_SUCCESS);
	give(e, w.rkey, 0);
	try_remote(e, IBV_WR_RDMA_READ, 0, 4096, true);
	try_remote(e, IBV_WR_RDMA_WRITE, 0, 64, false);
	if (is(B)) {
		bind_window(e, &w, 0, 0, 0, IBV_WC_SUCCESS);
		bind_window(e, &w, MEM - 4096, 4097, rights,
			    IBV_WC_MW_BIND_ERR);
	}
	reconnect(e);
	if (is(B)) {
		bind_window(e, &w, 4096, 4096, rights, IBV_WC_SUCCESS);
		check_zero(ibv_dealloc_mw(w.mw), "ibv_dealloc_mw");
	}
	give(e, w.rkey, base + 4096);
	try_remote(e, IBV_WR_RDMA_WRITE, 0, 64, false);
}

/* A context that is closed with a bound window leaves nothing behind. */
static void leave_window(const struct config *c)
{
	static const struct shape usual;
	struct ibv_context *other = ibv_open_device(context->device);
	struct end x = { .c = c };
	struct window w = {};

	x.pd = other ? ibv_alloc_pd(other) : NULL;
	x.cq = x.pd ? ibv_create_cq(other, DEPTH, NULL, NULL, 0) : NULL;
	x.qp = x.cq ? end_qp(&x, &usual) : NULL;
	w.mw = x.qp ? ibv_alloc_mw(x.pd, IBV_MW_TYPE_2) : NULL;
	if (!w.mw ||
	    !region_make(&x.mem, x.pd, MEM, ACCESS_ALL | IBV_ACCESS_MW_BIND)) {
		failed("no objects in another context: %s", strerror(errno));
		return;
	}
	peer_describe(&x.me, x.qp, c);
	w.rkey = w.mw->rkey;
	if (qp_init(x.qp, c, REMOTE_ALL) &&
	    qp_connect(x.qp, c, x.me.psn, &x.me))
		bind_window(&x, &w, 0, 4096, IBV_ACCESS_REMOTE_READ,
			    IBV_WC_SUCCESS);
	check_zero(ibv_close_device(other), "ibv_close_device");
	munmap(x.mem.map, x.mem.map_len);
}

static bool windows(const struct config *c)
{
	struct end e;

	if (!end_open(&e, c, NULL))
		goto close;
	if (is(B)) {
		check_zero(ibv_dereg_mr(e.mem.mr), "ibv_dereg_mr");
		e.mem.mr = ibv_reg_mr(e.pd, e.mem.base, MEM,
				      ACCESS_ALL | IBV_ACCESS_MW_BIND);
		if (!e.mem.mr)
			failed("ibv_reg_mr: %s", strerror(errno));
	}
	use_window(&e, IBV_MW_TYPE_1);
	use_window(&e, IBV_MW_TYPE_2);
	if (is(B))
		leave_window(c);
close:
	end_close(&e);
	drop_events();
	return !has_failed();
}

/* ---- ATOMIC WRITE and FLUSH ---- */

static void wr_flush(struct end *e, uint64_t id, uint64_t at, size_t len,
		     int type, int level)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp);

	qp->wr_id = id;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, e->peer.rkey[0], e->peer.addr[0] + at, len, type,
		     level);
}

static void wr_word(struct end *e, uint64_t id, uint64_t at, const void *word)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp);

	qp->wr_id = id;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qp, e->peer.rkey[0], e->peer.addr[0] + at, word);
}

static void wr_write(struct end *e, uint64_t id, uint64_t at, size_t len)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp);

	qp->wr_id = id;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(qp, e->peer.rkey[0], e->peer.addr[0] + at);
	ibv_wr_set_sge(qp, e->mem.mr->lkey, (uintptr_t)e->mem.base, len);
}

/* B's memory is a log: A's data, then the word that says it is there. */
static void place_log(struct end *e, bool flush)
{
	static const enum ibv_wc_opcode opcodes[] = {
		IBV_WC_RDMA_WRITE,
		IBV_WC_FLUSH,
		IBV_WC_ATOMIC_WRITE,
		IBV_WC_FLUSH,
	};
	const volatile uint64_t *word = (void *)(e->mem.base + 8);
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp);
	uint64_t value = ~0x0123456789abcdefull;
	struct ibv_wc wc;
	double end;
	size_t i;

	ctl_barrier();
	if (is(A)) {
		ibv_wr_start(qp);
		wr_write(e, 0, 4096, 9000);
		if (flush)
			wr_flush(e, 1, 4096, 9000, IBV_FLUSH_GLOBAL,
				 IBV_FLUSH_RANGE);
		wr_word(e, 2, 8, &value);
		if (flush)
			wr_flush(e, 3, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
		value = 0;	/* its bytes have been taken */
		check_zero(ibv_wr_complete(qp), "ibv_wr_complete");
		for (i = 0; i < ARRAY_SIZE(opcodes); i += flush ? 1 : 2) {
			wc = expect(e, i, IBV_WC_SUCCESS);
			if (wc.opcode != opcodes[i])
				failed("request %zu completes with opcode %d",
				       i, wc.opcode);
		}
	} else {
		end = deadline(e);
		while (*word != value && now() < end)
			sched_yield();
		if (*word != value)
			failed("the word is %#llx", (unsigned long long)*word);
		for (i = 0; i < 9000 && e->mem.base[4096 + i] == SENT; i++)
			;
		if (i < 9000)
			failed("byte %zu is not there when the word is", i);
		repoison(e, 0, 16);
		repoison(e, 4096, 9000);
	}
	ctl_barrier();
}

/* More than the QP may have outstanding. */
static void place_many(struct end *e, bool flush)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp);
	uint64_t i, last;

	if (is(A)) {
		for (i = 0; i < 20 * DEPTH && !has_failed(); i++) {
			ibv_wr_start(qp);
			if (flush && i % 3 == 2)
				wr_flush(e, i, i, i, IBV_FLUSH_GLOBAL,
					 i % 2 ? IBV_FLUSH_RANGE :
						 IBV_FLUSH_MR);
			else
				wr_word(e, i, i % 8 * 8, &i);
			check_zero(ibv_wr_complete(qp), "ibv_wr_complete");
			if (i >= DEPTH / 2)
				expect(e, i - DEPTH / 2, IBV_WC_SUCCESS);
		}
		for (last = i, i -= DEPTH / 2; i < last; i++)
			expect(e, i, IBV_WC_SUCCESS);
	}
	ctl_barrier();
	if (is(B)) {
		for (i = 20 * DEPTH - 8; i < 20 * DEPTH; i++) {
			memcpy(&last, e->mem.base + i % 8 * 8, sizeof(last));
			if (last != i - (flush && i % 3 == 2 ? 8 : 0))
				failed("word %llu is %llu",
				       (unsigned long long)i % 8,
				       (unsigned long long)last);
		}
		repoison(e, 0, 64);
	}
}

static void place_refused(struct end *e, bool flush)
{
	static const struct {
		int at;
		size_t len;		/* 0: ATOMIC WRITE */
		int type, level;
		uint32_t rkey;
		enum ibv_wc_status status;
	} cases[] = {
		{ .at = 4, .status = IBV_WC_REM_INV_REQ_ERR },
		{ .at = MEM, .status = IBV_WC_REM_ACCESS_ERR },
		{ .at = -8, .status = IBV_WC_REM_ACCESS_ERR },
		{ .rkey = 0x5a00, .status = IBV_WC_REM_ACCESS_ERR },
		{ 1, MEM, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, 0,
		  IBV_WC_REM_ACCESS_ERR },
		{ -1, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, 0,
		  IBV_WC_REM_ACCESS_ERR },
		{ 0, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, 0x5a00,
		  IBV_WC_REM_ACCESS_ERR },
		{ 0, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, 0x5a00,
		  IBV_WC_REM_ACCESS_ERR },
		{ 0, 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE, 0,
		  IBV_WC_REM_ACCESS_ERR },
		{ 0, 8, IBV_FLUSH_PERSISTENT | IBV_FLUSH_GLOBAL, IBV_FLUSH_MR,
		  0, IBV_WC_REM_ACCESS_ERR },
	};
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp);
	uint64_t word = 0;
	struct peer given = e->me;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases) && (flush || !cases[i].len); i++) {
		if (is(A)) {
			e->peer.rkey[0] ^= cases[i].rkey;
			ibv_wr_start(qp);
			if (cases[i].len)
				wr_flush(e, i, cases[i].at, cases[i].len,
					 cases[i].type, cases[i].level);
			else
				wr_word(e, i, cases[i].at, &word);
			check_zero(ibv_wr_complete(qp), "ibv_wr_complete");
			expect(e, i, cases[i].status);
		}
		reconnect(e);
		give(e, given.rkey[0], given.addr[0]);
	}
}

/* ATOMIC WRITE, and FLUSH if it is wanted: order, visibility, rights. */
static bool place(const struct config *c, bool flush)
{
	struct end e;
	struct ibv_mr *mr;

	more.ops = (flush ? IBV_QP_EX_WITH_FLUSH : 0) |
		   IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_RDMA_WRITE;
	more.mr_access = IBV_ACCESS_FLUSH_GLOBAL;
	more.qp_access = IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	if (!end_open(&e, c, NULL))
		goto close;
	place_log(&e, flush);
	place_many(&e, flush);
	place_refused(&e, flush);
	mr = ibv_reg_mr(e.pd, e.mem.base, MEM,
			ACCESS_ALL | IBV_ACCESS_FLUSH_PERSISTENT);
	if (mr) {
		failed("ordinary memory is persistent");
		ibv_dereg_mr(mr);
	} else if (errno != EINVAL && errno != EOPNOTSUPP) {
		failed("ibv_reg_mr of persistent memory: %s", strerror(errno));
	}
close:
	end_close(&e);
	memset(&more, 0, sizeof(more));
	drop_events();
	return !has_failed();
}

static bool atomic_write(const struct config *c)
{
	return place(c, false);
}

static bool placement(const struct config *c)
{
	return place(c, true);
}

#define PMEM_LEN	(2 << 20)	/* as the device wants it */

/* A writes to B's persistent memory, and has it made persistent. */
static void use_pmem(struct end *e, uint8_t *map)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp);
	unsigned int access = ACCESS_ALL | more.qp_access;
	uint64_t word = ~0x0123456789abcdefull;
	struct ibv_mr *mr = NULL;
	size_t i;

	if (is(B)) {
		memset(map, POISON, PMEM_LEN);
		mr = ibv_reg_mr(e->pd, map + 100, PMEM_LEN - 200, access);
		if (!mr)
			failed("ibv_reg_mr of persistent memory: %s",
			       strerror(errno));
		if (ibv_reg_mr(e->pd, map, PMEM_LEN,
			       access | IBV_ACCESS_ON_DEMAND))
			failed("persistent memory is paged on demand");
	}
	give(e, mr ? mr->rkey : 0, (uintptr_t)map + 100);
	if (is(A)) {
		ibv_wr_start(qp);
		wr_write(e, 0, 10, 60000);
		wr_flush(e, 1, 10, 60000, IBV_FLUSH_PERSISTENT,
			 IBV_FLUSH_RANGE);
		wr_word(e, 2, 70004, &word);
		wr_flush(e, 3, 0, 0, IBV_FLUSH_PERSISTENT | IBV_FLUSH_GLOBAL,
			 IBV_FLUSH_MR);
		check_zero(ibv_wr_complete(qp), "ibv_wr_complete");
		for (i = 0; i < 4; i++)
			expect(e, i, IBV_WC_SUCCESS);
	}
	ctl_barrier();
	if (is(B)) {
		for (i = 0; i < 60000 && map[110 + i] == SENT; i++)
			;
		if (i < 60000 || map[109] != POISON || map[60110] != POISON ||
		    memcmp(map + 70104, &word, 8))
			failed("the persistent memory has other bytes");
	}
	if (mr)
		check_zero(ibv_dereg_mr(mr), "ibv_dereg_mr");
}

/* Device DAX, which 13-no-ipv6.sh makes of a part of the memory. */
static bool persistence(const struct config *c)
{
	int fd = 0, other;
	uint8_t *map = NULL;
	struct end e;

	if (is(B))
		fd = open("/dev/dax0.0", O_RDWR | O_CLOEXEC);
	ctl_swap(&fd, &other, sizeof(fd));
	if (fd < 0 || other < 0)
		return skipped("no persistent memory here");
	more.ops = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE |
		   IBV_QP_EX_WITH_RDMA_WRITE;
	more.qp_access = IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	if (is(B)) {
		map = mmap(NULL, PMEM_LEN, PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, 0);
		close(fd);
		if (map == MAP_FAILED)
			failed("mmap of persistent memory: %s",
			       strerror(errno));
	}
	if (end_open(&e, c, NULL) && map != MAP_FAILED)
		use_pmem(&e, map);
	end_close(&e);
	if (is(B) && map != MAP_FAILED)
		munmap(map, PMEM_LEN);
	memset(&more, 0, sizeof(more));
	return !has_failed();
}

/* ---- a page that the kernel has found broken ---- */

static void ignore_signal(int signal)
{
	(void)signal;
}

/*
 * The kernel takes a page from B as if its memory had failed. The region still
 * has the page: A's requests succeed, and the region can be deregistered.
 */
/* Have the kernel find the page at @at broken; 0 or an errno. */
static int break_page(void *at)
{
	struct sigaction ignore = { .sa_handler = ignore_signal }, before;
	int err;

	sigaction(SIGBUS, &ignore, &before);
	err = madvise(at, 4096, MADV_HWPOISON) ? errno : 0;
	sigaction(SIGBUS, &before, NULL);
	return err;
}

static bool broken_page(const struct config *c)
{
	struct region mem = { .len = 8192, .map_len = 8192 };
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	bool ok = true, theirs;
	struct end e;
	int err;

	if (!end_open(&e, c, NULL))
		goto close;
	if (is(B)) {
		mem.map = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(mem.map, POISON, 8192);
		mem.mr = ibv_reg_mr(e.pd, mem.map, 8192, ACCESS_ALL);
		if (!mem.mr)
			failed("ibv_reg_mr: %s", strerror(errno));
		err = break_page(mem.map + 4096);
		/* EBUSY: it is poisoned, but pinned */
		ok = !err || err == EBUSY;
	}
	ctl_swap(&ok, &theirs, sizeof(ok));
	if (!ok || !theirs) {
		skipped("no page can be poisoned here");
	} else {
		give(&e, is(B) ? mem.mr->rkey : 0, (uintptr_t)mem.map);
		if (is(A)) {
			sge = piece(&e, 0, 8192);
			post(&e, request(&e, 1, IBV_WR_RDMA_WRITE, &sge));
			expect(&e, 1, IBV_WC_SUCCESS);
			memset(e.mem.base, OTHER, 8192);
			wr = request(&e, 2, IBV_WR_RDMA_READ, &sge);
			post(&e, wr);
			expect(&e, 2, IBV_WC_SUCCESS);
			if (e.mem.base[0] != SENT || e.mem.base[8191] != SENT)
				failed("the READ got other bytes");
		}
		ctl_barrier();
	}
	if (is(B)) {
		if (mem.mr)
			check_zero(ibv_dereg_mr(mem.mr), "ibv_dereg_mr");
		munmap(mem.map, 8192);
	}
close:
	end_close(&e);
	drop_events();
	return !has_failed();
}

/* B's region begins at @addr from now on. */
static void moved_to(struct end *e, uint64_t addr)
{
	give(e, e->mem.mr->rkey, addr);
}

/* A writes, reads and sends to B's region, which may begin at 0. */
static void use_zero_based(struct end *e, bool zero)
{
	struct ibv_sge out = piece(e, 0, 64), in = piece(e, 4096, 32);
	struct ibv_send_wr read;

	moved_to(e, zero ? 0 : (uintptr_t)e->mem.base);
	if (is(B))
		post_recv_sge(e, 101,
			      (struct ibv_sge){ e->me.addr[0] + 8192, 64,
						e->mem.mr->lkey });
	ctl_barrier();
	if (is(A)) {
		post(e, request(e, 1, IBV_WR_RDMA_WRITE, &out));
		read = request(e, 2, IBV_WR_RDMA_READ, &in);
		read.wr.rdma.remote_addr += 48;
		post(e, read);
		post_send(e, 3, 0, 64);
		expect(e, 1, IBV_WC_SUCCESS);
		expect(e, 2, IBV_WC_SUCCESS);
		expect(e, 3, IBV_WC_SUCCESS);
		if (e->mem.base[4096] != SENT ||
		    e->mem.base[4096 + 15] != SENT ||
		    e->mem.base[4096 + 16] != POISON)
			failed("the READ got bytes of another place");
		memset(e->mem.base + 4096, SENT, 32);
	} else {
		expect(e, 101, IBV_WC_SUCCESS);
		if (e->mem.base[0] != SENT || e->mem.base[63] != SENT)
			failed("the WRITE went to another place");
		if (e->mem.base[8192] != SENT || e->mem.base[8192 + 63] != SENT)
			failed("the message went to another place");
		repoison(e, 0, 64);
		repoison(e, 8192, 64);
	}
	ctl_barrier();
}

/*
 * A region that is registered with IBV_ACCESS_ZERO_BASED begins at address 0,
 * for its lkey and its rkey, and ends as ever. A change of access takes it
 * there and back.
 */
static bool zero_based(const struct config *c)
{
	static const int access[] = { ACCESS_ALL,
				      ACCESS_ALL | IBV_ACCESS_ZERO_BASED };
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end e;
	int i;

	if (!end_open(&e, c, NULL))
		goto close;
	if (is(B)) {
		check_zero(ibv_dereg_mr(e.mem.mr), "ibv_dereg_mr");
		e.mem.mr = ibv_reg_mr(e.pd, e.mem.base, MEM, access[1]);
		if (!e.mem.mr) {
			failed("ibv_reg_mr: %s", strerror(errno));
			e.mem.mr = ibv_reg_mr(e.pd, e.mem.base, MEM, access[0]);
		}
	}
	use_zero_based(&e, true);
	for (i = 0; i < 2; i++) {
		if (is(B) && ibv_rereg_mr(e.mem.mr, IBV_REREG_MR_CHANGE_ACCESS,
					  NULL, NULL, 0, access[i]))
			failed("ibv_rereg_mr: %s", strerror(errno));
		use_zero_based(&e, i);
	}
	if (is(A)) {
		sge = piece(&e, 0, 64);
		wr = request(&e, 4, IBV_WR_RDMA_WRITE, &sge);
		wr.wr.rdma.remote_addr = MEM - 63;
		post(&e, wr);
		expect(&e, 4, IBV_WC_REM_ACCESS_ERR);
	}
close:
	end_close(&e);
	drop_events();
	return !has_failed();
}

/*
 * B changes what @flags say of its region, there or back, while A writes to its
 * first half. The other translation is the second half.
 */
static void rereg_while_written(struct end *e, int flags, struct ibv_pd *pd,
				bool there)
{
	bool translation = flags & IBV_REREG_MR_CHANGE_TRANSLATION, same = true;
	bool access = flags & IBV_REREG_MR_CHANGE_ACCESS;
	uint8_t *base = e->mem.base + (there && translation ? MEM / 2 : 0);
	struct peer to = e->me;

	if (is(A)) {
		post_writes(e, DEPTH);
		expect_until(e, DEPTH, IBV_WC_REM_ACCESS_ERR);
	} else {
		usleep(flags * 100);
		if (ibv_rereg_mr(e->mem.mr, flags,
				 flags & IBV_REREG_MR_CHANGE_PD ? pd : NULL,
				 translation ? base : NULL,
				 translation ? MEM / 2 : 0,
				 !access ? 0 :
				 there ? IBV_ACCESS_LOCAL_WRITE : ACCESS_ALL))
			failed("ibv_rereg_mr, flags %d: %s", flags,
			       strerror(errno));
		to.rkey[0] = e->mem.mr->rkey;
		to.addr[0] = (uintptr_t)base;
		same = !translation || e->mem.mr->addr == base;
	}
	if (!same)
		failed("ibv_rereg_mr, flags %d: the region is at %p", flags,
		       e->mem.mr->addr);
	reconnect(e);
	if (is(B))
		repoison(e, 0, MEM);
	give(e, to.rkey[0], to.addr[0]);
}

/* Each combination of translation, PD and access, under traffic, and back. */
static bool rereg_all(const struct config *c)
{
	static const int all = IBV_REREG_MR_CHANGE_TRANSLATION |
			       IBV_REREG_MR_CHANGE_PD |
			       IBV_REREG_MR_CHANGE_ACCESS;
	struct ibv_pd *other = ibv_alloc_pd(context);
	struct end e;
	int flags;

	if (!other)
		failed("ibv_alloc_pd: %s", strerror(errno));
	if (!end_open(&e, c, NULL))
		goto close;
	for (flags = 1; flags <= all; flags++) {
		bool moved = flags & IBV_REREG_MR_CHANGE_TRANSLATION,
		     ok = flags == IBV_REREG_MR_CHANGE_TRANSLATION;

		rereg_while_written(&e, flags, other, true);
		try_remote(&e, IBV_WR_RDMA_WRITE, 8, 64, ok);
		if (is(B) && ok && e.mem.base[MEM / 2 + 8 + 63] != SENT)
			failed("the WRITE went to another place");
		if (is(B))
			repoison(&e, 0, MEM);
		rereg_while_written(&e, flags, e.pd, false);
		try_remote(&e, IBV_WR_RDMA_WRITE, 8, 64, true);
		if (is(B) && e.mem.base[8 + 63] != SENT)
			failed("after flags %d%s the WRITE is not where it was before",
			       flags, moved ? " (moved)" : "");
		if (is(B))
			repoison(&e, 0, MEM);
		ctl_barrier();
	}
close:
	end_close(&e);
	if (other)
		check_zero(ibv_dealloc_pd(other), "ibv_dealloc_pd");
	return !has_failed();
}

/* ---- device memory ---- */

/* Bytes @at to @at + @len of the memory are @byte. */
static bool dm_has(struct ibv_dm *dm, size_t at, size_t len, uint8_t byte)
{
	static uint8_t seen[MEM];
	size_t i;
	int err = ibv_memcpy_from_dm(seen, dm, at, len);

	if (err)
		return failed("ibv_memcpy_from_dm: %s", strerror(err));
	for (i = 0; i < len; i++)
		if (seen[i] != byte)
			return failed(
				"byte %zu of the device memory is %#x, not %#x",
				at + i, seen[i], byte);
	return true;
}

/*
 * A writes to B's device memory, reads from it, and has atomics and messages
 * there. The region begins 64 bytes into the memory.
 */
static void use_dm(struct end *e, struct ibv_dm *dm, struct ibv_mr *mr)
{
	struct ibv_sge out = piece(e, 0, MEM / 2),
		       in = piece(e, MEM / 2, MEM / 2), old = piece(e, 0, 8);
	struct ibv_send_wr wr;
	uint64_t sum = 5;

	if (is(B)) {
		check_zero(ibv_memcpy_to_dm(dm, 64 + MEM / 2, &sum,
					    sizeof(sum)),
			   "ibv_memcpy_to_dm");
		post_recv_sge(e, 101,
			      (struct ibv_sge){ MEM / 2 + 4096, 100,
						mr->lkey });
	}
	give(e, is(B) ? mr->rkey : 0, 0);
	if (is(A)) {
		memset(e->mem.base + MEM / 2, POISON, MEM / 2);
		post(e, request(e, 1, IBV_WR_RDMA_WRITE, &out));
		post(e, request(e, 2, IBV_WR_RDMA_READ, &in));
		post_send(e, 3, 0, 100);
		wr = request(e, 4, IBV_WR_ATOMIC_FETCH_AND_ADD, &old);
		wr.wr.atomic.remote_addr = MEM / 2;
		wr.wr.atomic.compare_add = 7;
		expect(e, 1, IBV_WC_SUCCESS);
		expect(e, 2, IBV_WC_SUCCESS);
		expect(e, 3, IBV_WC_SUCCESS);
		post(e, wr);
		expect(e, 4, IBV_WC_SUCCESS);
		memcpy(&sum, e->mem.base, 8);
		if (sum != 5)
			failed("fetch and add found %llu",
			       (unsigned long long)sum);
		memset(e->mem.base, SENT, 8);
		if (e->mem.base[MEM / 2] != SENT ||
		    e->mem.base[MEM - 1] != SENT)
			failed("the READ got other bytes");
	} else {
		expect(e, 101, IBV_WC_SUCCESS);
	}
	ctl_barrier();
	if (is(B)) {
		dm_has(dm, 0, 64, 0);
		dm_has(dm, 64, MEM / 2, SENT);
		dm_has(dm, 64 + MEM / 2 + 4096, 100, SENT);
		check_zero(ibv_memcpy_from_dm(&sum, dm, 64 + MEM / 2,
					      sizeof(sum)),
			   "ibv_memcpy_from_dm");
		if (sum != 12)
			failed("after fetch and add there is %llu",
			       (unsigned long long)sum);
	}
	try_remote(e, IBV_WR_RDMA_WRITE, MEM - 64, 64, true);
	try_remote(e, IBV_WR_RDMA_WRITE, MEM - 63, 64, false);
}

static bool device_memory(const struct config *c)
{
	struct ibv_alloc_dm_attr attr = {
		.length = MEM + 128, .log_align_req = 3,
	};
	struct ibv_dm *dm = NULL;
	struct ibv_mr *mr = NULL;
	struct end e;

	if (!end_open(&e, c, NULL))
		goto close;
	if (is(B)) {
		dm = ibv_alloc_dm(context, &attr);
		if (!dm)
			failed("ibv_alloc_dm: %s", strerror(errno));
		mr = dm ? ibv_reg_dm_mr(e.pd, dm, 64, MEM,
					ACCESS_ALL | IBV_ACCESS_ZERO_BASED) :
			  NULL;
		if (!mr)
			failed("ibv_reg_dm_mr: %s", strerror(errno));
	}
	if (is(A) || mr)
		use_dm(&e, dm, mr);
	if (is(B) && dm && ibv_free_dm(dm) != EBUSY)
		failed("ibv_free_dm under a region is not refused");
	if (mr)
		check_zero(ibv_dereg_mr(mr), "ibv_dereg_mr");
	if (dm)
		check_zero(ibv_free_dm(dm), "ibv_free_dm");
close:
	end_close(&e);
	drop_events();
	return !has_failed();
}

/* ---- memory of a dma-buf ---- */

/* A buffer of pages of a memfd. -1 if the kernel cannot make one. */
static int make_udmabuf(size_t size)
{
	int mem = memfd_create("verify", MFD_ALLOW_SEALING),
	    dev = open("/dev/udmabuf", O_RDWR), fd = -1;
	struct udmabuf_create create = { .memfd = mem, .size = size };

	if (dev >= 0 && mem >= 0 && !ftruncate(mem, size) &&
	    !fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = ioctl(dev, UDMABUF_CREATE, &create);
	close(dev);
	close(mem);
	return fd;
}

/* A buffer of the system heap. */
static int make_heap_file(size_t size, int flags)
{
	struct dma_heap_allocation_data data = {
		.len = size, .fd_flags = flags | O_CLOEXEC
	};
	int dev = open("/dev/dma_heap/system", O_RDWR);
	bool made = dev >= 0 && !ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &data);

	close(dev);
	return made ? (int)data.fd : -1;
}

static int make_heap_buffer(size_t size)
{
	return make_heap_file(size, O_RDWR);
}

/* A buffer that its holder may only read. */
static void try_read_only(struct end *e)
{
	int fd = make_heap_file(MEM, O_RDONLY);
	struct ibv_mr *mr;

	if (fd < 0)
		return;
	mr = ibv_reg_dmabuf_mr(e->pd, 0, MEM, 0, fd, IBV_ACCESS_LOCAL_WRITE);
	if (mr || errno != EACCES)
		failed("a region to write to a buffer that may only be read, or %s",
		       strerror(errno));
	mr = ibv_reg_dmabuf_mr(e->pd, 0, MEM, 0, fd, IBV_ACCESS_REMOTE_READ);
	if (!mr || ibv_dereg_mr(mr))
		failed("a region to read such a buffer: %s", strerror(errno));
	close(fd);
}

static void sync_buffer(int fd, int flags)
{
	struct dma_buf_sync sync = { .flags = flags | DMA_BUF_SYNC_RW };

	if (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync))
		failed("DMA_BUF_IOCTL_SYNC: %s", strerror(errno));
}

#define DMABUF_IOVA	0x7000

/* A's requests to B's region, which begins in page 1 of the buffer. */
static void use_dmabuf(struct end *e, uint8_t *map, struct ibv_mr *mr, int fd)
{
	struct ibv_sge out = piece(e, 0, MEM), in = piece(e, MEM / 2, MEM / 2);
	struct ibv_send_wr wr;
	size_t i;

	if (is(B))
		post_recv_sge(e, 101,
			      (struct ibv_sge){ DMABUF_IOVA + 8192, 4096,
						mr->lkey });
	give(e, is(B) ? mr->rkey : 0, DMABUF_IOVA);
	if (is(A)) {
		post(e, request(e, 1, IBV_WR_RDMA_WRITE, &out));
		expect(e, 1, IBV_WC_SUCCESS);
		memset(e->mem.base, OTHER, MEM);
		post_send(e, 2, 0, 4096);
		wr = request(e, 3, IBV_WR_RDMA_READ, &in);
		wr.wr.rdma.remote_addr += MEM / 2;
		post(e, wr);
		expect(e, 2, IBV_WC_SUCCESS);
		expect(e, 3, IBV_WC_SUCCESS);
		if (e->mem.base[MEM / 2] != SENT ||
		    e->mem.base[MEM - 1] != SENT)
			failed("the READ got other bytes");
		memset(e->mem.base, SENT, MEM);
	} else {
		expect(e, 101, IBV_WC_SUCCESS);
		sync_buffer(fd, DMA_BUF_SYNC_START);
		for (i = 0; !has_failed() && i < MEM; i++)
			if (map[4096 + i] !=
			    (i >= 8192 && i < 8192 + 4096 ? OTHER : SENT))
				failed("byte %zu of the buffer is %#x", i,
				       map[4096 + i]);
		if (map[4095] || map[4096 + MEM])
			failed("bytes beside the region were written");
		sync_buffer(fd, DMA_BUF_SYNC_END);
	}
	try_remote(e, IBV_WR_RDMA_WRITE, MEM - 64, 64, true);
	try_remote(e, IBV_WR_RDMA_WRITE, MEM - 63, 64, false);
}

static bool dmabuf_case(const struct config *c, int (*make)(size_t size))
{
	int fd = is(B) ? make(MEM + 8192) : 0, other;
	struct ibv_mr *mr = NULL;
	uint8_t *map = NULL;
	struct end e;

	ctl_swap(&fd, &other, sizeof(fd));
	if (fd < 0 || other < 0)
		return skipped("no such buffer here");
	if (!end_open(&e, c, NULL))
		goto close;
	if (is(B)) {
		map = mmap(NULL, MEM + 8192, PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, 0);
		if (ibv_reg_dmabuf_mr(e.pd, 4096, MEM + 8192, DMABUF_IOVA, fd,
				      ACCESS_ALL) ||
		    errno != EINVAL)
			failed("a region beyond the buffer, or %s",
			       strerror(errno));
		try_read_only(&e);
		mr = ibv_reg_dmabuf_mr(e.pd, 4096, MEM, DMABUF_IOVA, fd,
				       ACCESS_ALL);
		if (!mr)
			failed("ibv_reg_dmabuf_mr: %s", strerror(errno));
	}
	ctl_barrier();
	if (!has_failed())
		use_dmabuf(&e, map, mr, fd);
	if (mr) {
		/* The region keeps the buffer. */
		close(fd);
		munmap(map, MEM + 8192);
		fd = -1;
	}
	if (!has_failed())
		try_remote(&e, IBV_WR_RDMA_WRITE, 0, 64, true);
	if (mr)
		check_zero(ibv_dereg_mr(mr), "ibv_dereg_mr");
close:
	if (is(B) && fd >= 0)
		close(fd);
	end_close(&e);
	drop_events();
	return !has_failed();
}

static bool dmabuf_of_memfd(const struct config *c)
{
	return dmabuf_case(c, make_udmabuf);
}

static bool dmabuf_of_heap(const struct config *c)
{
	return dmabuf_case(c, make_heap_buffer);
}

/* A buffer of arx_exporter.ko. */
static int exporter;

static int make_movable(unsigned long make, size_t size)
{
	return exporter < 0 ? -1 : ioctl(exporter, make, size);
}

static void change_buffer(unsigned long change, int fd, int err)
{
	int got = ioctl(exporter, change, fd) ? errno : 0;

	if (got != err)
		failed("moving or revoking a buffer: %s, not %s", strerror(got),
		       strerror(err));
}

/* While B has a region in the buffer, it stays, and A's requests succeed. */
static void use_movable(struct end *e, int fd, int round)
{
	struct ibv_mr *mr = NULL;
	struct ibv_sge sge = piece(e, 0, MEM), back = piece(e, 0, 4096);
	int i;

	if (is(B)) {
		mr = ibv_reg_dmabuf_mr(e->pd, 0, MEM, DMABUF_IOVA, fd,
				       ACCESS_ALL);
		if (!mr)
			failed("ibv_reg_dmabuf_mr: %s", strerror(errno));
	}
	give(e, mr ? mr->rkey : 0, DMABUF_IOVA);
	if (is(A)) {
		/*
		 * The data that the earlier region has written, now in other
		 * memory.
		 */
		post(e, request(e, 1, IBV_WR_RDMA_READ, &back));
		expect(e, 1, IBV_WC_SUCCESS);
		if (e->mem.base[0] != round || e->mem.base[4095] != round)
			failed("the buffer lost its content: %#x, not %#x",
			       e->mem.base[0], round);
		memset(e->mem.base, round + 1, MEM);
		for (i = 2; i < 30; i++) {
			post(e, request(e, i,
					i % 2 ? IBV_WR_RDMA_READ :
						IBV_WR_RDMA_WRITE,
					&sge));
			expect(e, i, IBV_WC_SUCCESS);
		}
		if (e->mem.base[0] != round + 1 ||
		    e->mem.base[MEM - 1] != round + 1)
			failed("the READ got other bytes");
	} else {
		for (i = 0; i < 30; i++) {
			change_buffer(i % 2 ? EXPORTER_MOVE : EXPORTER_REVOKE,
				      fd, EBUSY);
			pause_ms(1);
		}
	}
	ctl_barrier();
	if (mr)
		check_zero(ibv_dereg_mr(mr), "ibv_dereg_mr");
}

/* An exporter that moves its buffer whenever it may, and revokes it at last. */
static bool moved_case(const struct config *c, unsigned long make)
{
	int fd = 0, other, round;
	struct end e;

	exporter = open("/dev/arx-exporter", O_RDWR | O_CLOEXEC);
	if (is(B))
		fd = make_movable(make, MEM);
	ctl_swap(&fd, &other, sizeof(fd));
	if (fd < 0 || other < 0)
		return skipped("no such buffer here");
	if (end_open(&e, c, NULL)) {
		for (round = 0; round < 3; round++) {
			use_movable(&e, fd, round);
			if (is(B))
				change_buffer(EXPORTER_MOVE, fd, 0);
		}
		if (is(B)) {
			change_buffer(EXPORTER_REVOKE, fd, 0);
			if (ibv_reg_dmabuf_mr(e.pd, 0, MEM, 0, fd,
					      ACCESS_ALL) ||
			    errno != ENODEV)
				failed("a region in a buffer that was revoked, or %s",
				       strerror(errno));
		}
	}
	end_close(&e);
	if (is(B))
		close(fd);
	close(exporter);
	return !has_failed();
}

/* Attachments keep the buffer in place. */
static bool dmabuf_moved(const struct config *c)
{
	return moved_case(c, EXPORTER_MAKE);
}

/* Pins of attachments do. */
static bool dmabuf_pinned(const struct config *c)
{
	return moved_case(c, EXPORTER_MAKE_PINNED);
}

/* ---- objects of another process ---- */

struct shared { /* in memory of both processes */
	uint32_t pd;
	uint32_t mr;
	uint32_t rkey;
	uint32_t dm;
	bool ready;
	uint8_t mem[MEM];
};

/* Pass a file to the other end of a socket, or take it. */
static int pass_fd(int sock, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	if (fd < 0) {
		if (recvmsg(sock, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
			return -1;
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
		return fd;
	}
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -1;
}

/*
 * A process of its own: it opens the device again, and has a QP that sends to
 * itself.
 */
static bool open_alone(struct end *e, const struct config *c)
{
	static const struct shape usual;
	char name[64];

	e->c = c;
	snprintf(name, sizeof(name), "%s",
		 ibv_get_device_name(context->device));
	context = NULL;
	if (!device_open(name) || !end_objects(e, &usual))
		return false;
	e->peer = e->me;
	return qp_connect(e->qp, c, e->me.psn, &e->peer);
}

/*
 * The first process: it opens the device, registers @shared and has a QP that
 * can send, so that it is the one whose thread copies. It waits to be killed.
 */
static void be_first(const struct config *c, struct shared *shared, int sock)
{
	struct ibv_alloc_dm_attr attr = { .length = 100 };
	struct end e = {};
	struct ibv_mr *mr;
	struct ibv_dm *dm;

	if (!open_alone(&e, c))
		_exit(1);
	mr = ibv_reg_mr(e.pd, shared->mem, MEM, ACCESS_ALL);
	dm = ibv_alloc_dm(context, &attr);
	if (!mr || !dm)
		_exit(1);
	ibv_memcpy_to_dm(dm, 96, "dm", 4);
	shared->dm = dm->handle;
	shared->pd = e.pd->handle;
	shared->mr = mr->handle;
	shared->rkey = mr->rkey;
	shared->ready = true;
	if (pass_fd(sock, context->cmd_fd))
		_exit(1);
	for (;;)
		pause();
}

struct import {
	struct shared *shared;
	pid_t first;
	struct ibv_context *own;	/* of this process before */
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_dm *dm;
};

static bool import(struct import *i, const struct config *c)
{
	int socks[2], fd;

	i->own = context;
	i->shared = mmap(NULL, sizeof(*i->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (i->shared == MAP_FAILED ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, socks))
		return failed("no memory or sockets: %s", strerror(errno));
	i->first = fork();
	if (!i->first) {
		close(socks[0]);
		be_first(c, i->shared, socks[1]);
	}
	close(socks[1]);
	fd = pass_fd(socks[0], -1);
	close(socks[0]);
	if (fd < 0 || !i->shared->ready)
		return failed("the first process failed");
	context = ibv_import_device(fd);
	if (!context) {
		context = i->own;
		return failed("ibv_import_device: %s", strerror(errno));
	}
	if (ibv_import_pd(context, i->shared->pd + 1000) || errno != ENOENT)
		failed("a PD that does not exist was imported, or %s",
		       strerror(errno));
	i->pd = ibv_import_pd(context, i->shared->pd);
	if (!i->pd)
		return failed("ibv_import_pd: %s", strerror(errno));
	if (ibv_import_mr(i->pd, i->shared->mr + 1000) || errno != ENOENT)
		failed("a region that does not exist was imported, or %s",
		       strerror(errno));
	i->mr = ibv_import_mr(i->pd, i->shared->mr);
	if (!i->mr)
		return failed("ibv_import_mr: %s", strerror(errno));
	if (i->mr->rkey != i->shared->rkey || i->mr->length != MEM)
		return failed("the imported region has rkey %#x, %zu bytes",
			      i->mr->rkey, i->mr->length);
	i->dm = ibv_import_dm(context, i->shared->dm);
	if (!i->dm)
		return failed("ibv_import_dm: %s", strerror(errno));
	return true;
}

static void kill_first(struct import *i)
{
	if (i->first > 0) {
		kill(i->first, SIGKILL);
		waitpid(i->first, NULL, 0);
	}
	i->first = 0;
}

/* A and B send to each other through the imported region. */
static void use_imported(struct end *e, struct import *i)
{
	struct ibv_sge sge = piece(e, 0, MEM), mine = { .length = MEM };

	if (is(B)) {
		mine.addr = (uintptr_t)i->shared->mem;
		mine.lkey = i->mr->lkey;
		memset(i->shared->mem, POISON, MEM);
		post_recv_sge(e, 101, mine);
	}
	give(e, is(B) ? i->mr->rkey : 0, mine.addr);
	if (is(A)) {
		post(e, request(e, 1, IBV_WR_RDMA_WRITE, &sge));
		post(e, request(e, 2, IBV_WR_SEND, &sge));
		expect(e, 1, IBV_WC_SUCCESS);
		expect(e, 2, IBV_WC_SUCCESS);
	} else {
		expect(e, 101, IBV_WC_SUCCESS);
		if (i->shared->mem[0] != SENT ||
		    i->shared->mem[MEM - 1] != SENT)
			failed("the message is not in the imported region");
		memset(i->shared->mem, OTHER, MEM);
		post(e, request(e, 3, IBV_WR_SEND, &mine));
		/* The first process ends while a message of B waits. */
		kill_first(i);
		post(e, request(e, 4, IBV_WR_SEND, &mine));
	}
	ctl_barrier();
	if (is(A)) {
		memset(e->mem.base, POISON, MEM);
		post_recv_sge(e, 103, sge);
		post_recv_sge(e, 104, sge);
		expect(e, 103, IBV_WC_SUCCESS);
		expect(e, 104, IBV_WC_SUCCESS);
		if (e->mem.base[0] != OTHER || e->mem.base[MEM - 1] != OTHER)
			failed("the message from the imported region is wrong");
		memset(e->mem.base, SENT, MEM);
	} else {
		expect(e, 3, IBV_WC_SUCCESS);
		expect(e, 4, IBV_WC_SUCCESS);
	}
	ctl_barrier();
}

/* The end of a case in which B may have imported the PD of @e. */
static void close_imported(struct end *e, struct import *i)
{
	if (i->dm)
		ibv_unimport_dm(i->dm);
	if (i->mr)
		ibv_unimport_mr(i->mr);
	/* The first process has left another QP and region in the PD. */
	if (i->pd)
		e->pd = NULL;
	end_close(e);
	if (i->pd)
		ibv_unimport_pd(i->pd);
	if (is(B) && i->own && context != i->own) {
		check_zero(ibv_close_device(context), "ibv_close_device");
		context = i->own;
	}
	kill_first(i);
	if (i->shared && i->shared != MAP_FAILED)
		munmap(i->shared, sizeof(*i->shared));
}

/*
 * B works with the device, PD, region and device memory of another process,
 * also when that process has ended.
 */
static bool imported(const struct config *c)
{
	struct import i = {};
	struct shape shape = {};
	char word[4] = "";
	struct end e;

	if (is(B) && import(&i, c))
		shape.pd = i.pd;
	if (end_open(&e, c, &shape)) {
		use_imported(&e, &i);
		use_imported(&e, &i);
		if (is(B) && (ibv_memcpy_from_dm(word, i.dm, 96, 4) ||
			      strcmp(word, "dm")))
			failed("the imported device memory has other bytes");
	}
	close_imported(&e, &i);
	return !has_failed();
}

static void on_signal(int number)
{
}

struct disturbance {
	pthread_t target;
	atomic_bool over;
};

/* A signal waits for the other thread nearly all the time. */
static void *disturb(void *arg)
{
	struct disturbance *d = arg;

	while (!d->over)
		pthread_kill(d->target, SIGUSR1);
	return NULL;
}

/* More than one kick copies if a thread goes on after it. */
static void post_at_once(struct end *e, struct import *i)
{
	struct ibv_sge sge = {
		(uintptr_t)i->shared->mem, MEM, i->mr->lkey
	};
	struct ibv_send_wr wr[DEPTH], *bad;
	int n;

	for (n = 0; n < DEPTH; n++) {
		wr[n] = request(e, 1 + n, IBV_WR_RDMA_WRITE, &sge);
		wr[n].next = n + 1 < DEPTH ? &wr[n + 1] : NULL;
	}
	check_zero(ibv_post_send(e->qp, wr, &bad), "ibv_post_send");
}

/*
 * The process whose thread copied has ended, and the kernel starts no thread of
 * B while a signal waits for B: B itself copies everything.
 */
static bool adopt(const struct config *c)
{
	struct sigaction action = {
		.sa_handler = on_signal, .sa_flags = SA_RESTART,
	};
	struct disturbance d = { .target = pthread_self() };
	struct import i = {};
	struct shape shape = {};
	pthread_t thread;
	struct end e;

	if (is(B) && import(&i, c))
		shape.pd = i.pd;
	if (end_open(&e, c, &shape) && is(B)) {
		kill_first(&i);
		sigaction(SIGUSR1, &action, NULL);
		check_zero(pthread_create(&thread, NULL, disturb, &d),
			   "pthread_create");
		post_at_once(&e, &i);
		d.over = true;
		pthread_join(thread, NULL);
		expect_until(&e, DEPTH, IBV_WC_SUCCESS);
	}
	ctl_barrier();
	close_imported(&e, &i);
	return !has_failed();
}

/* Not in each round does a signal wait at the moment that matters. */
static bool adopted(const struct config *c)
{
	int round;

	for (round = 0; round < ADOPTIONS; round++)
		adopt(c);
	return !has_failed();
}

/* A's QP, then B's, is reset while WRITEs are in flight, and used again. */
static bool reset_busy(const struct config *c)
{
	struct end e;
	int round;

	if (!end_open(&e, c, NULL))
		goto close;
	for (round = 0; round < BUSY_ROUNDS; round++) {
		if (is(A))
			post_writes(&e, DEPTH);
		if (is(A) == (round % 2 == 0)) {
			usleep(round * 200);
			to_state(&e, IBV_QPS_RESET);
			expect_nothing(&e, 1);
		}
		reconnect(&e);
	}
	if (is(A)) {
		post_writes(&e, DEPTH);
		expect_until(&e, DEPTH, IBV_WC_SUCCESS);
	}
	ctl_barrier();
	if (is(B))
		repoison(&e, 0, MEM);
close:
	end_close(&e);
	return !has_failed();
}

/*
 * The queues shrink and grow during traffic; each message arrives once and in
 * order.
 */
static bool resize_busy(const struct config *c)
{
	static const struct shape shape = { .srq = true };
	struct ibv_srq_attr attr;
	const int total = 400, window = 16;
	int posted = 0, done = 0;
	struct end e;

	if (!end_open(&e, c, &shape))
		goto close;
	for (; is(B) && posted < window; posted++)
		post_recv(&e, 1 + posted, posted % window * 64, 64);
	ctl_barrier();
	while (!has_failed() && done < total) {
		for (; is(A) && posted < total && posted - done < window;
		     posted++)
			post_send(&e, 1 + posted, 0, 16);
		expect(&e, 1 + done++, IBV_WC_SUCCESS);
		if (is(B) && posted < total) {
			post_recv(&e, 1 + posted, posted % window * 64, 64);
			posted++;
		}
		if (done % 7 == 0)
			check_zero(ibv_resize_cq(e.cq, done % 14 ? window + 1 :
								   4 * DEPTH),
				   "ibv_resize_cq");
		attr.max_wr = done % 10 ? window + 1 : DEPTH;
		if (e.srq && done % 5 == 0)
			check_zero(ibv_modify_srq(e.srq, &attr, IBV_SRQ_MAX_WR),
				   "ibv_modify_srq");
	}
	ctl_barrier();
	if (is(B))
		repoison(&e, 0, MEM);
close:
	end_close(&e);
	return !has_failed();
}

/*
 * Until the script cuts the link (when the first message has arrived): A
 * streams, B receives and checks; A's QP must end with the right status and
 * flush in order. Not in "all", because it needs the script.
 */
static bool cut_off(const struct config *c)
{
	struct config forever = *c;
	uint64_t id = 1, done = 1, got = 0, acked;
	struct ibv_wc wc = {};
	struct stream s;
	struct end e;
	int i;

	forever.rnr_retry = 7;
	if (!end_open(&e, &forever, NULL))
		goto close;
	for (i = 0; is(B) && i < DEPTH; i++)
		post_recv(&e, i, i * 1024, 1024);
	ctl_barrier();
	if (is(A)) {
		printf("# cut now\n");
		do {
			for (; id - done < 8; id++) {
				stream_start(&s, 2, 0, id);
				stream_fill(&s, e.mem.base + id % 8 * 1024,
					    1024);
				post_send(&e, id, id % 8 * 1024, 1024);
			}
			if (!next_wc(&e, &wc)) {
				failed("nothing after message %llu",
				       (unsigned long long)done);
				break;
			}
			done = wc.wr_id + 1;
		} while (wc.status == IBV_WC_SUCCESS);
		if (!has_failed() && wc.status != IBV_WC_RETRY_EXC_ERR)
			failed("%s, not %s", ibv_wc_status_str(wc.status),
			       ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR));
		expect_flushed(&e, done, id - 1);
		acked = done - 2;
		repoison(&e, 0, MEM);
		ctl_send(CTL_DONE, 0, 0);
	} else {
		struct ctl_msg msg;

		while (!ctl_take(&msg)) {
			if (!ibv_poll_cq(e.cq, 1, &wc)) {
				sched_yield();
				continue;
			}
			stream_start(&s, 2, 0, ++got);
			if (wc.status ||
			    stream_check(&s, e.mem.base + wc.wr_id * 1024,
					 1024) >= 0)
				failed("message %llu is wrong",
				       (unsigned long long)got);
			post_recv(&e, wc.wr_id, wc.wr_id * 1024, 1024);
		}
		repoison(&e, 0, MEM);
		acked = 0;
	}
	id = is(A) ? acked : got;
	ctl_swap(&id, &done, sizeof(id));
	/* Messages that are complete at A have arrived. */
	if (is(A) ? done < id : id < done)
		failed("%llu messages arrived, %llu completed",
		       (unsigned long long)(is(A) ? done : id),
		       (unsigned long long)(is(A) ? id : done));
close:
	end_close(&e);
	return !has_failed();
}

/* ---- the device is removed ---- */

static bool fatal_event(void)
{
	struct pollfd fd = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&fd, 1, 0) != 1 || ibv_get_async_event(context, &event))
		return false;
	ibv_ack_async_event(&event);
	return event.event_type == IBV_EVENT_DEVICE_FATAL;
}

/* Keep the queues busy, whatever happens. */
static void keep_busy(struct end *e, uint64_t *posted)
{
	struct ibv_sge sge = piece(e, 0, 4096);
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = request(e, 1, IBV_WR_SEND, &sge), *bad;
	struct ibv_wc wc;

	if (*posted < 8)
		*posted += !(is(A) ? ibv_post_send(e->qp, &send, &bad) :
				     ibv_post_recv(e->qp, &recv, &bad_recv));
	if (ibv_poll_cq(e->cq, 1, &wc) > 0)
		*posted -= *posted > 0;
}

/* Verbs that a removed device must refuse without a crash. */
static void use_after_end(struct end *e)
{
	struct ibv_sge sge = piece(e, 0, 4096);
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_port_attr attr;
	uint64_t posted = 0;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 1000; i++) {
		keep_busy(e, &posted);
		if (i % 100 == 0)
			posted = 0;
	}
	ibv_req_notify_cq(e->cq, 0);
	while ((i = ibv_poll_cq(e->cq, 1, &wc)) > 0)
		;
	if (i != -EIO)
		failed("the device is gone, and ibv_poll_cq returns %d", i);
	i = ibv_post_recv(e->qp, &recv, &bad);
	if (i != EIO)
		failed("the device is gone, and ibv_post_recv returns %d", i);
	if (!ibv_query_port(context, 1, &attr) || ibv_alloc_pd(context) ||
	    ibv_reg_mr(e->pd, e->mem.base, MEM, 0))
		failed("the device is gone, but verbs succeed");
}

/*
 * The script removes the device of one side or both under traffic: the owners
 * get IBV_EVENT_DEVICE_FATAL, and can clean up and end. Not in "all".
 */
static bool device_gone(const struct config *c)
{
	struct config forever = *c;
	uint64_t posted = 0;
	bool fatal = false, theirs = false;
	struct ctl_msg msg;
	struct end e;
	double end;

	forever.rnr_retry = 7;
	if (end_open(&e, &forever, NULL)) {
		printf("# side %c is ready\n", 'A' + side);
		for (end = deadline(&e); now() < end && !fatal && !theirs;) {
			keep_busy(&e, &posted);
			fatal = fatal_event();
			theirs = ctl_take(&msg);
		}
		/* If both sides lose their device, both must get the event. */
		for (end = now() + time_factor;
		     theirs && !fatal && now() < end;)
			fatal = fatal_event();
		if (fatal) {
			printf("# side %c: IBV_EVENT_DEVICE_FATAL\n",
			       'A' + side);
			ctl_send(CTL_DONE, 0, 0);
			use_after_end(&e);
		} else if (!theirs) {
			failed("no IBV_EVENT_DEVICE_FATAL");
		}
		repoison(&e, 0, MEM);
	}
	end_close(&e);
	return !has_failed();
}

/* A may use its memory again: it writes to it, or frees it for other use. */
static void change_memory(struct end *e)
{
	size_t len = 16 * MEM;
	void *other;

	if (e->c->qp != IBV_QPT_RC) {
		expect(e, 2, IBV_WC_SUCCESS);
		memset(e->mem.base, OTHER, MEM);
		return;
	}
	check_zero(ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	e->qp = NULL;
	region_free(&e->mem);
	other = mmap(NULL, len, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (other == MAP_FAILED) {
		failed("no memory");
		return;
	}
	memset(other, OTHER, len);
	munmap(other, len);
}

static void expect_sent(struct end *e, size_t offset, size_t len)
{
	size_t i;

	expect(e, 1, IBV_WC_SUCCESS);
	for (i = offset; i < offset + len; i++)
		if (e->mem.base[i] != SENT) {
			failed("byte %zu is %#x, not %#x", i - offset,
			       e->mem.base[i], SENT);
			break;
		}
}

/*
 * Packets wait on their way (the script delays them) when A may use its memory
 * again: after a completion of UC or UD, or because QP and region are
 * destroyed. B gets the posted data. Not in "all".
 */
static bool memory_back(const struct config *c)
{
	size_t grh = c->qp == IBV_QPT_UD ? 40 : 0, len = grh ? 1000 : 30000;
	struct end e;

	if (end_open(&e, c, NULL)) {
		if (is(B))
			post_recv(&e, 1, 0, grh + len);
		ctl_barrier();
		if (is(A)) {
			post_send(&e, 2, 0, len);
			change_memory(&e);
		} else {
			expect_sent(&e, grh, len);
			repoison(&e, 0, grh + len);
		}
	}
	end_close(&e);
	return !has_failed();
}

/* A region of A in all of @fd's buffer, with data that A has read from B. */
static struct ibv_mr *fill_buffer(struct end *e, int fd)
{
	struct ibv_mr *mr = NULL;

	if (is(A)) {
		mr = ibv_reg_dmabuf_mr(e->pd, 0, MEM, DMABUF_IOVA, fd,
				       ACCESS_ALL);
		if (!mr)
			failed("ibv_reg_dmabuf_mr: %s", strerror(errno));
	} else {
		memset(e->mem.base, SENT, MEM);
	}
	ctl_barrier();
	if (mr) {
		struct ibv_sge to = { DMABUF_IOVA, MEM, mr->lkey };

		post(e, request(e, 1, IBV_WR_RDMA_READ, &to));
		expect(e, 1, IBV_WC_SUCCESS);
	}
	ctl_barrier();
	if (is(B))
		repoison(e, 0, MEM);
	return mr;
}

/* The region and the buffer end while packets with A's data are queued. */
static void leave_buffer(struct end *e, struct ibv_mr *mr, int fd)
{
	to_state(e, IBV_QPS_ERR);
	check_zero(ibv_dereg_mr(mr), "ibv_dereg_mr");
	close(fd);
}

/* A sends @n pieces of @len bytes, the last ones from the buffer. */
static void send_buffer(struct end *e, struct ibv_mr *mr, int fd, int n,
			uint32_t len)
{
	struct ibv_sge sge[2] = { piece(e, 0, len) };
	struct ibv_send_wr wr = request(e, 2, IBV_WR_SEND, sge);

	if (is(B)) {
		post_recv(e, 1, 0, n * len);
		ctl_barrier();
		expect_sent(e, 0, n * len);
		repoison(e, 0, n * len);
		return;
	}
	ctl_barrier();
	if (!mr)
		return;
	sge[n - 1] = (struct ibv_sge){ DMABUF_IOVA, len, mr->lkey };
	wr.num_sge = n;
	post(e, wr);
	leave_buffer(e, mr, fd);
}

/*
 * B reads the buffer. The SEND behind the READ tells A that the READ was
 * executed; the last responses leave soon after that.
 */
static void read_buffer(struct end *e, struct ibv_mr *mr, int fd)
{
	struct ibv_sge to = piece(e, 0, MEM);

	if (is(A))
		post_recv(e, 3, 0, 64);
	ctl_swap(&e->me, &e->peer, sizeof(e->me));
	if (is(B)) {
		post(e, request(e, 1, IBV_WR_RDMA_READ, &to));
		post_send(e, 2, 0, 64);
		expect_sent(e, 0, MEM);
		repoison(e, 0, MEM);
	} else if (mr) {
		expect(e, 3, IBV_WC_SUCCESS);
		usleep(20000);
		leave_buffer(e, mr, fd);
	}
}

enum buffer_use { BUFFER_SENT, BUFFER_SENT_LAST, BUFFER_READ };

/*
 * Packets wait on their way (the script delays them) when A's region in a
 * dma-buf ends, and then the buffer: its exporter, which warns if anybody holds
 * the pages, writes to them and frees them. B gets the data. Not in "all".
 */
static bool buffer_back(const struct config *c, enum buffer_use use)
{
	int fd = 0, other;
	struct ibv_mr *mr;
	struct end e;

	exporter = open("/dev/arx-exporter", O_RDWR | O_CLOEXEC);
	if (is(A))
		fd = make_movable(EXPORTER_MAKE, MEM);
	ctl_swap(&fd, &other, sizeof(fd));
	if (fd < 0 || other < 0)
		return skipped("no such buffer here");
	if (end_open(&e, c, NULL)) {
		mr = fill_buffer(&e, fd);
		e.me.rkey[0] = mr ? mr->rkey : 0;
		e.me.addr[0] = DMABUF_IOVA;
		if (use == BUFFER_READ)
			read_buffer(&e, mr, fd);
		else
			send_buffer(&e, mr, fd, use == BUFFER_SENT ? 1 : 2,
				    MEM / 2);
	}
	end_close(&e);
	close(exporter);
	return !has_failed();
}

static bool buffer_sent_back(const struct config *c)
{
	return buffer_back(c, BUFFER_SENT);
}

/* The first half of the packets hold memory that can be held. */
static bool buffer_sent_last_back(const struct config *c)
{
	return buffer_back(c, BUFFER_SENT_LAST);
}

static bool buffer_read_back(const struct config *c)
{
	return buffer_back(c, BUFFER_READ);
}

/* ---- order of packets from two CPUs ---- */

/*
 * Two threads, each on a CPU of its own, post in turn, each when it has seen
 * the completion of the other's request. Unless packets are lost, UC and UD
 * deliver in that order. The poster need not be back from the kernel by then: a
 * packet may still be in the network stack of the other node, on the poster's
 * CPU, and that stack may be slow.
 */
struct poster {
	struct end *end;
	unsigned int cpu;
	pthread_t thread;
};

static _Atomic(unsigned int) turn;

static void *post_in_turn(void *arg)
{
	const struct poster *poster = arg;
	unsigned int i;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(poster->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		failed("no CPU %u: %s", poster->cpu, strerror(errno));
	for (i = poster->cpu; i < DEPTH; i += 2) {
		while (atomic_load(&turn) != i)
			;
		if (i)
			expect(poster->end, i - 1, IBV_WC_SUCCESS);
		atomic_store(&turn, i + 1);
		post_send(poster->end, i, i * 64, 4);
	}
	return NULL;
}

static void post_from_two_cpus(struct end *e)
{
	struct poster posters[2] = { { .end = e, .cpu = 0 },
				     { .end = e, .cpu = 1 } };
	int i;

	for (i = 0; i < DEPTH; i++)
		memcpy(e->mem.base + i * 64, &i, 4);
	atomic_store(&turn, 0);
	for (i = 0; i < 2; i++)
		check_zero(pthread_create(&posters[i].thread, NULL,
					  post_in_turn, &posters[i]),
			   "pthread_create");
	for (i = 0; i < 2; i++)
		pthread_join(posters[i].thread, NULL);
	expect(e, DEPTH - 1, IBV_WC_SUCCESS);
}

static void receive_in_order(struct end *e)
{
	size_t at = e->c->qp == IBV_QPT_UD ? sizeof(struct ibv_grh) : 0;
	int i, n;

	for (i = 0; i < DEPTH; i++) {
		expect(e, i, IBV_WC_SUCCESS);
		memcpy(&n, e->mem.base + i * 64 + at, 4);
		if (n != i)
			failed("message %d in the place of %d", n, i);
	}
	repoison(e, 0, MEM);
}

static bool two_cpus(const struct config *c)
{
	struct end e;
	int i, round;

	if (!end_open(&e, c, NULL))
		goto close;
	for (round = 0; round < 50; round++) {
		for (i = 0; is(B) && i < DEPTH; i++)
			post_recv(&e, i, i * 64, 64);
		ctl_barrier();
		if (is(A))
			post_from_two_cpus(&e);
		else
			receive_in_order(&e);
	}
close:
	end_close(&e);
	return !has_failed();
}

/* ---- memory paged on demand that changes below its region ---- */

/* Pages of a side's region, which begins within its second page. */
static uint8_t *odp_page(struct end *e, size_t n)
{
	return e->mem.map + (n + 2) * 4096;
}

/* Memory of its own again, with the content of a region that nobody used. */
static void odp_restore(struct end *e)
{
	if (mmap(e->mem.map, e->mem.map_len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		failed("mmap: %s", strerror(errno));
	memset(e->mem.map, POISON, e->mem.map_len);
}

static void odp_unmap(struct end *e)
{
	check_zero(munmap(odp_page(e, 0), 4096) ? errno : 0, "munmap");
}

static void odp_protect(struct end *e)
{
	check_zero(mprotect(odp_page(e, 0), 4096, PROT_READ) ? errno : 0,
		   "mprotect");
}

/* A file takes the page's place; then it loses the page. */
static void odp_truncate(struct end *e)
{
	int fd = memfd_create("odp", 0);

	if (fd < 0 || ftruncate(fd, 4096) ||
	    mmap(odp_page(e, 0), 4096, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    (memset(odp_page(e, 0), OTHER, 4096), ftruncate(fd, 0)))
		failed("a file that is truncated: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* One in which nothing but its process can write, not even by the kernel. */
static void odp_secret(struct end *e)
{
	int fd = syscall(SYS_memfd_secret, 0);

	if (fd < 0)	/* this kernel has none: as good as no memory */
		odp_unmap(e);
	else if (ftruncate(fd, 4096) ||
		 mmap(odp_page(e, 0), 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		failed("secret memory: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void odp_break(struct end *e)
{
	if (break_page(odp_page(e, 0)))
		odp_unmap(e);	/* this kernel breaks none: as good as that */
}

/* A's request to the page after @change at B, or from it after @change at A. */
static bool odp_refused(const struct config *c, bool at,
			void (*change)(struct end *), enum ibv_wr_opcode opcode,
			enum ibv_wc_status status)
{
	struct config paged = *c;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end e;

	region_paging = paged.odp = c->odp ? c->odp : 1;
	if (end_open(&e, &paged, NULL)) {
		if (is(B))
			post_recv_sge(
				&e, 101,
				(struct ibv_sge){ (uintptr_t)odp_page(&e, 0),
						  64, e.mem.mr->lkey });
		sge = (struct ibv_sge){ (uintptr_t)odp_page(&e, 0), 64,
					e.mem.mr->lkey };
		wr = request(&e, 1, IBV_WR_RDMA_WRITE, &sge);
		wr.wr.rdma.remote_addr += odp_page(&e, 0) - e.mem.base;
		ctl_barrier();
		if (is(A)) {
			/* The page is present first, then it goes. */
			post(&e, wr);
			expect(&e, 1, IBV_WC_SUCCESS);
		}
		ctl_barrier();
		if (is(at))
			change(&e);
		ctl_barrier();
		if (is(A)) {
			wr.wr_id = 2;
			wr.opcode = opcode;
			post(&e, wr);
			expect(&e, 2, status);
			expect_state(&e, IBV_QPS_ERR);
		} else if (opcode == IBV_WR_SEND) {
			expect(&e, 101, IBV_WC_LOC_PROT_ERR);
		}
		ctl_barrier();
		odp_restore(&e);
	}
	end_close(&e);
	drop_events();
	region_paging = c->odp;
	return !has_failed();
}

static bool odp_unmapped(const struct config *c)
{
	return odp_refused(c, B, odp_unmap, IBV_WR_RDMA_WRITE,
			   IBV_WC_REM_ACCESS_ERR) &&
	       odp_refused(c, B, odp_unmap, IBV_WR_RDMA_READ,
			   IBV_WC_REM_ACCESS_ERR) &&
	       odp_refused(c, B, odp_unmap, IBV_WR_SEND, IBV_WC_REM_OP_ERR);
}

static bool odp_own_unmapped(const struct config *c)
{
	return odp_refused(c, A, odp_unmap, IBV_WR_RDMA_WRITE,
			   IBV_WC_LOC_PROT_ERR) &&
	       odp_refused(c, A, odp_unmap, IBV_WR_RDMA_READ,
			   IBV_WC_LOC_PROT_ERR);
}

static bool odp_protected(const struct config *c)
{
	return odp_refused(c, B, odp_protect, IBV_WR_RDMA_WRITE,
			   IBV_WC_REM_ACCESS_ERR) &&
	       odp_refused(c, A, odp_protect, IBV_WR_RDMA_READ,
			   IBV_WC_LOC_PROT_ERR);
}

static bool odp_truncated(const struct config *c)
{
	return odp_refused(c, B, odp_truncate, IBV_WR_RDMA_WRITE,
			   IBV_WC_REM_ACCESS_ERR) &&
	       odp_refused(c, A, odp_truncate, IBV_WR_RDMA_WRITE,
			   IBV_WC_LOC_PROT_ERR);
}

static bool odp_broken(const struct config *c)
{
	return odp_refused(c, B, odp_break, IBV_WR_RDMA_WRITE,
			   IBV_WC_REM_ACCESS_ERR) &&
	       odp_refused(c, B, odp_break, IBV_WR_RDMA_READ,
			   IBV_WC_REM_ACCESS_ERR) &&
	       odp_refused(c, A, odp_break, IBV_WR_RDMA_WRITE,
			   IBV_WC_LOC_PROT_ERR);
}

static bool odp_kept_secret(const struct config *c)
{
	return odp_refused(c, B, odp_secret, IBV_WR_RDMA_READ,
			   IBV_WC_REM_ACCESS_ERR);
}

/* ---- page faults that nobody answers ---- */

/*
 * From now on a page fault at @at waits until a reader of the returned file
 * answers it.
 */
static int leave_faults(void *at)
{
	struct uffdio_register reg = {
		.range = { (uintptr_t)at, 4096 },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &reg) ||
	    madvise(at, 4096, MADV_DONTNEED))
		failed("userfaultfd: %s", strerror(errno));
	return fd;
}

static bool has_userfaultfd(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	return fd >= 0 ? !close(fd) :
			 skipped("no userfaultfd: %s", strerror(errno));
}

static void expect_fault(int fd)
{
	struct pollfd fault = { .fd = fd, .events = POLLIN };

	if (poll(&fault, 1, 10000 * time_factor) != 1 ||
	    fault.revents != POLLIN)
		failed("no page fault waits");
}

/* A request of A to B, from and to the same page of their regions. */
static struct ibv_send_wr odp_request(struct end *e, uint64_t id,
				      enum ibv_wr_opcode opcode,
				      struct ibv_sge *sge)
{
	struct ibv_send_wr wr;

	*sge = (struct ibv_sge){ (uintptr_t)odp_page(e, 0), 64,
				 e->mem.mr->lkey };
	wr = request(e, id, opcode, sge);
	wr.wr.rdma.remote_addr += odp_page(e, 0) - e->mem.base;
	return wr;
}

/* While A's request waits at A or at B, other QPs go on; and all can end. */
static void leave_unanswered(struct end *e, struct end *other, bool at,
			     enum ibv_wr_opcode opcode)
{
	int fd = is(at) ? leave_faults(odp_page(e, 0)) : -1;
	struct ibv_sge sge;
	double begin;

	ctl_barrier();
	if (is(A))
		post(e, odp_request(e, 1, opcode, &sge));
	if (is(at))
		expect_fault(fd);
	ctl_barrier();
	if (is(A)) {
		post(other, odp_request(other, 2, IBV_WR_RDMA_WRITE, &sge));
		expect(other, 2, IBV_WC_SUCCESS);
		expect_nothing(e, 1);
	}
	ctl_barrier();
	/* The fault goes on waiting when its memory is unmapped. */
	odp_restore(e);
	odp_restore(other);
	begin = now();
	end_close(e);
	end_close(other);
	if (now() - begin > 5.0 * time_factor)
		failed("the end took %.1f s", now() - begin);
	if (is(at))
		close(fd);
}

static bool odp_unanswered(const struct config *c)
{
	const struct {
		bool at;
		enum ibv_wr_opcode opcode;
	} waits[] = {
		{ A, IBV_WR_RDMA_WRITE },
		{ A, IBV_WR_RDMA_READ },
		{ B, IBV_WR_RDMA_WRITE },
		{ B, IBV_WR_RDMA_READ },
	};
	struct config paged = *c;
	struct end e, other;
	size_t i;

	if (!has_userfaultfd())
		return false;
	region_paging = paged.odp = 1;
	for (i = 0; i < ARRAY_SIZE(waits) && !has_failed(); i++) {
		if (end_open(&e, &paged, NULL) &&
		    end_open(&other, &paged, NULL))
			leave_unanswered(&e, &other, waits[i].at,
					 waits[i].opcode);
	}
	region_paging = c->odp;
	return !has_failed();
}

/* A process whose request waits for a page of its own or of its peer. */
static void be_unanswered(const struct config *c, bool own, int sock)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct end e = {};
	int fd;

	if (!open_alone(&e, c))
		_exit(1);
	fd = leave_faults(odp_page(&e, 0));
	wr = odp_request(&e, 1, IBV_WR_RDMA_WRITE, &sge);
	if (own)
		wr.wr.rdma.remote_addr += 4096;
	else
		sge.addr += 4096;
	post(&e, wr);
	expect_fault(fd);
	if (has_failed() || pass_fd(sock, fd))
		_exit(1);
	for (;;)
		pause();
}

/* True if the process ends soon. */
static bool ends(pid_t pid)
{
	int i;

	for (i = 0; i < 1000 * time_factor; i++) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		usleep(10000);
	}
	return false;
}

/* Kill the process. If @held, another process could still answer the fault. */
static void kill_unanswered(const struct config *c, bool own, bool held)
{
	int socks[2], fd;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, socks)) {
		failed("socketpair: %s", strerror(errno));
		return;
	}
	pid = fork();
	if (!pid) {
		close(socks[0]);
		be_unanswered(c, own, socks[1]);
	}
	close(socks[1]);
	fd = pass_fd(socks[0], -1);
	close(socks[0]);
	if (fd < 0)
		failed("no request waits in the other process");
	else if (!held)
		close(fd);
	kill(pid, SIGKILL);
	if (!ends(pid))
		failed("the process does not end");
	if (fd >= 0 && held)
		close(fd);
}

static bool odp_unanswered_killed(const struct config *c)
{
	struct config paged = *c;
	int i;

	if (!has_userfaultfd())
		return false;
	region_paging = paged.odp = 1;
	for (i = 0; is(A) && i < 4 && !has_failed(); i++)
		kill_unanswered(&paged, i & 1, i & 2);
	ctl_barrier();
	region_paging = c->odp;
	return !has_failed();
}

/* ---- advice ---- */

static void advise(struct ibv_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		   uint32_t flags, struct ibv_sge sge, int err)
{
	int got = ibv_advise_mr(pd, advice, flags, &sge, 1);

	if (got != err)
		failed("advice %d: %s, not %s", advice, strerror(got),
		       strerror(err));
}

/* Regions of more memory than the machine has, of which little is used. */
static bool odp_advice(const struct config *c)
{
	size_t len = 8ull << 30;
	struct ibv_pd *pd = ibv_alloc_pd(context);
	uint8_t *map = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mr *mr, *reader, *pinned;
	struct ibv_sge sge;

	if (map == MAP_FAILED)
		return failed("mmap: %s", strerror(errno));
	mr = ibv_reg_mr(pd, map, len,
			IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	reader = ibv_reg_mr(pd, map, len, IBV_ACCESS_ON_DEMAND);
	pinned = ibv_reg_mr(pd, map, 4096, IBV_ACCESS_LOCAL_WRITE);
	if (!mr || !reader || !pinned)
		return failed("ibv_reg_mr: %s", strerror(errno));
	sge = (struct ibv_sge){ (uintptr_t)map + len - (4 << 20), 4 << 20,
				mr->lkey };
	advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, sge,
	       0);
	advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, sge, 0);
	advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
	       IBV_ADVISE_MR_FLAG_FLUSH, sge, 0);
	sge.lkey = reader->lkey;
	advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, 0);
	advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, sge, EPERM);
	sge.addr += 1;
	advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, EPERM);
	sge = (struct ibv_sge){ (uintptr_t)map, 4096, pinned->lkey };
	advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, ENOENT);
	sge.lkey = mr->lkey ^ 0x5a00;
	advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, ENOENT);
	munmap(map + len / 2, 4096);
	sge = (struct ibv_sge){ (uintptr_t)map + len / 2, 4096, mr->lkey };
	advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, EFAULT);
	check_zero(ibv_dereg_mr(mr), "ibv_dereg_mr");
	check_zero(ibv_dereg_mr(reader), "ibv_dereg_mr");
	check_zero(ibv_dereg_mr(pinned), "ibv_dereg_mr");
	check_zero(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	munmap(map, len);
	return !has_failed();
}

const struct fail_case fail_cases[] = {
	{ "refuse_write", refuse_write },
	{ "refuse_write_imm", refuse_write_imm },
	{ "refuse_read", refuse_read },
	{ "refuse_cas", refuse_cas },
	{ "refuse_faa", refuse_faa },
	{ "send_too_long", send_too_long },
	{ "path_mtus", path_mtus },
	{ "recv_bad_lkey", recv_bad_lkey },
	{ "recv_beyond", recv_beyond },
	{ "send_bad_lkey", send_bad_lkey },
	{ "write_local_beyond", write_local_beyond },
	{ "read_no_local_write", read_no_local_write },
	{ "own_faults_first", own_faults_first },
	{ "rnr_exceeded", rnr_exceeded },
	{ "rnr_wait", rnr_wait },
	{ "retry_exceeded", retry_exceeded },
	{ "flush", flush },
	{ "reset_and_reuse", reset_and_reuse },
	{ "zero_length", zero_length },
	{ "fence", fence },
	{ "solicited", solicited },
	{ "srq_limit", srq_limit },
	{ "last_wqe", last_wqe },
	{ "error_events", error_events },
	{ "sq_drain", sq_drain },
	{ "refused_posts", refused_posts },
	{ "full_recv_queue", full_recv_queue },
	{ "ud_qkey", ud_qkey },
	{ "ud_too_long", ud_too_long },
	{ "ud_short_recv", ud_short_recv },
	{ "ud_foreign_ah", ud_foreign_ah },
	{ "ud_ended_ah", ud_ended_ah },
	{ "write_last", write_last },
	{ "send_inv", send_inv },
	{ "send_inv_bad", send_inv_bad },
	{ "query", query },
	{ "resize_cq", resize_cq },
	{ "resize_srq", resize_srq },
	{ "destroy_busy", destroy_busy },
	{ "comm_est", comm_est },
	{ "request_event", request_event },
	{ "cq_overrun", cq_overrun },
	{ "cq_overrun_recv", cq_overrun_recv },
	{ "cq_overrun_ignored", cq_overrun_ignored },
	{ "static_rate", static_rate },
	{ "own_multicast", own_multicast },
	{ "dereg_busy", dereg_busy },
	{ "rereg_busy", rereg_busy },
	{ "rereg_all", rereg_all },
	{ "imported", imported },
	{ "adopted", adopted },
	{ "device_memory", device_memory },
	{ "dmabuf_of_memfd", dmabuf_of_memfd },
	{ "dmabuf_of_heap", dmabuf_of_heap },
	{ "dmabuf_moved", dmabuf_moved },
	{ "dmabuf_pinned", dmabuf_pinned },
	{ "atomic_write", atomic_write },
	{ "placement", placement },
	{ "persistence", persistence },
	{ "broken_page", broken_page },
	{ "zero_based", zero_based },
	{ "windows", windows },
	{ "odp_unmapped", odp_unmapped },
	{ "odp_own_unmapped", odp_own_unmapped },
	{ "odp_protected", odp_protected },
	{ "odp_truncated", odp_truncated },
	{ "odp_broken", odp_broken },
	{ "odp_kept_secret", odp_kept_secret },
	{ "odp_unanswered", odp_unanswered },
	{ "odp_unanswered_killed", odp_unanswered_killed },
	{ "odp_advice", odp_advice },
	{ "reset_busy", reset_busy },
	{ "resize_busy", resize_busy },
	{ "cut_off", cut_off },
	{ "memory_back", memory_back },
	{ "buffer_sent_back", buffer_sent_back },
	{ "buffer_sent_last_back", buffer_sent_last_back },
	{ "buffer_read_back", buffer_read_back },
	{ "device_gone", device_gone },
	{ "two_cpus", two_cpus },
};
const size_t num_fail_cases = ARRAY_SIZE(fail_cases);
