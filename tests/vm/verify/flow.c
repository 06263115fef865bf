// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Flows: numbered messages from one side to the other, one flow for each QP and
 * direction. Everything about message n of a flow (operation, length, contents,
 * where it lies) follows from n, so each side knows what it must find.
 *
 *	region	holds
 *	out	sources of SEND and WRITE		window slots a flow
 *	recv	receive buffers				rslots a flow
 *	target	what the other side writes to		window slots a flow
 *	source	what the other side reads		window slots a flow
 *	land	results of READ and atomics		window slots a flow
 *	atom	what the other side's atomics change	one word a flow
 *
 * Whatever has been checked becomes poison again, so at the end everything must
 * be poison: a byte too many, a message too many and a write to the wrong place
 * are all found by that.
 *
 * A sender may not overwrite a target slot, nor send without a receive, before
 * the receiver says so: it has credit up to a message number.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "verify.h"

#define GAP		24 /* between the pieces of a message in memory */
#define GRH		40
#define RECV_BIT	(1ull << 63)		/* wr_id: a receive */
#define SOURCE_N	(1ull << 40)	/* stream numbers of source slots */

enum { TARGET, SOURCE, ATOM }; /* indices of struct peer's keys and addresses */

struct tx {
	uint64_t total;
	uint64_t posted;
	uint64_t done;
	uint64_t credit;	/* messages before this may be posted */
	/* the receiver knows that messages before this are complete */
	uint64_t placed;
	uint64_t atom; /* value of the remote word after all posted requests */
	/* of a slot's atomic: the value that it must return */
	uint64_t *expect;
};

struct rx {
	uint64_t total;
	uint64_t next;		/* next message to check */
	uint64_t placed; /* messages before this are complete at the sender */
	uint64_t granted;
	uint64_t recvs;		/* receive completions */
	bool done;		/* lossy: the sender has ended */
};

struct flow {
	uint32_t id;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct peer me, peer;
	struct tx tx;
	struct rx rx;
};

struct run {
	const struct config *c;
	uint64_t key;
	uint32_t rslots;
	size_t stride;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct region out, recv, target, source, land, atom;
	struct flow flows[MAX_QPS];
	uint8_t *seen; /* shared word: values that fetch-and-add has returned */
	double last;		/* time of the last progress */
	bool armed;
};

/* ---- definition of message n ---- */

static enum op op_of(const struct config *c, uint64_t n)
{
	static const enum op kinds[] = {
		OP_SEND,      OP_WRITE, OP_READ,  OP_FAA,
		OP_WRITE_IMM, OP_CAS,	OP_WRITE, OP_READ,
	};
	uint32_t half = max_u64(c->window / 2, 1);

	if (c->op == OP_MIX)
		return n % 4 == 3 ? OP_SEND_IMM :
				    kinds[mix64(n) % ARRAY_SIZE(kinds)];
	/* UC: only a completion tells the receiver that earlier WRITEs came. */
	if (c->op == OP_WRITE && c->qp == IBV_QPT_UC &&
	    (n % half == half - 1 || n == c->count - 1))
		return OP_WRITE_IMM;
	return c->op;
}

static bool takes_receive(enum op op)
{
	return op == OP_SEND || op == OP_SEND_IMM || op == OP_WRITE_IMM;
}

static bool has_imm(enum op op)
{
	return op == OP_SEND_IMM || op == OP_WRITE_IMM;
}

static bool is_atomic(enum op op)
{
	return op == OP_CAS || op == OP_FAA;
}

/* The receiver takes no part in these operations. */
static bool is_fetch(enum op op)
{
	return op == OP_READ || is_atomic(op);
}

static uint64_t size_of(const struct config *c, uint64_t n)
{
	uint64_t r = mix64(n + 77);

	if (is_atomic(op_of(c, n)))
		return 8;
	if (!c->vary)
		return c->size;
	return r % 8 ? (r >> 8) % (c->size + 1) : 0;
}

static uint32_t imm_of(uint64_t n)
{
	return htobe32((uint32_t)n ^ 0x5a000000);
}

static bool is_signalled(const struct flow *f, const struct config *c,
			 uint64_t n)
{
	return n % c->signal == c->signal - 1 || n == f->tx.total - 1;
}

/* All QPs change one word: only then do atomics of different QPs meet. */
static bool shares_word(const struct config *c)
{
	return c->op == OP_FAA && c->qps > 1;
}

/* ---- positions in memory ---- */

static uint8_t *slot(const struct run *r, const struct region *region,
		     uint64_t i)
{
	return region->base + i * r->stride + i * 13 % 64;
}

static uint64_t slot_of(const struct run *r, const struct flow *f, uint64_t n)
{
	return (uint64_t)f->id * r->c->window + n % r->c->window;
}

/*
 * len bytes at p in pieces with gaps; a UD receive's header is a piece of its
 * own.
 */
static int pieces(struct ibv_sge *sge, uint8_t *p, uint64_t len, uint32_t count,
		  uint32_t lkey, bool grh)
{
	uint64_t from, to;
	int used = 0;
	uint32_t i;

	if (grh && count == 1) {
		len += GRH;
	} else if (grh) {
		sge[used++] = (struct ibv_sge){ (uintptr_t)p, GRH, lkey };
		p += GRH + GAP;
		count--;
	}
	for (i = 0, from = 0; i < count; i++, from = to) {
		to = i == count - 1 ? len : len / count * (i + 1);
		if (to == from)
			continue;
		sge[used++] = (struct ibv_sge){ (uintptr_t)p, to - from, lkey };
		p += to - from + GAP;
	}
	return used;
}

static void fill_pieces(struct stream *s, const struct ibv_sge *sge, int count)
{
	for (; count--; sge++)
		stream_fill(s, (void *)(uintptr_t)sge->addr, sge->length);
}

/* Check len bytes, then make them poison again. *at: the first wrong one. */
static bool check_pieces(struct stream *s, const struct ibv_sge *sge,
			 uint64_t len, uint64_t *at)
{
	uint64_t done, part;
	ssize_t bad;
	void *p;

	for (done = 0; done < len; done += part, sge++) {
		p = (void *)(uintptr_t)sge->addr;
		part = min_u64(sge->length, len - done);
		bad = stream_check(s, p, part);
		if (bad >= 0) {
			*at = done + bad;
			return false;
		}
		memset(p, POISON, part);
	}
	return true;
}

static uint64_t key_of(const struct run *r, int sender)
{
	return r->key * 2 + sender;
}

/* ---- sending ---- */

static uint64_t after_atomic(uint64_t n, enum op op, uint64_t old,
			     const struct ibv_send_wr *wr)
{
	if (op == OP_FAA)
		return old + wr->wr.atomic.compare_add;
	return n % 3 == 2 ? old : wr->wr.atomic.swap;
}

static void build_atomic(struct run *r, struct flow *f, uint64_t n,
			 struct ibv_send_wr *wr)
{
	enum op op = op_of(r->c, n);
	bool shared = shares_word(r->c);

	wr->opcode = op == OP_FAA ? IBV_WR_ATOMIC_FETCH_AND_ADD :
				    IBV_WR_ATOMIC_CMP_AND_SWP;
	wr->wr.atomic.remote_addr =
		f->peer.addr[ATOM] + (shared ? 0 : f->id * 64);
	wr->wr.atomic.rkey = f->peer.rkey[ATOM];
	if (op == OP_FAA) {
		wr->wr.atomic.compare_add = shared ? 1 : mix64(n);
	} else {
		/*
		 * Every third compares with a value that the word does not
		 * have.
		 */
		wr->wr.atomic.compare_add = f->tx.atom ^ (n % 3 == 2);
		wr->wr.atomic.swap = mix64(n);
	}
	f->tx.expect[n % r->c->window] = f->tx.atom;
	f->tx.atom = after_atomic(n, op, f->tx.atom, wr);
}

static void build_send(struct run *r, struct flow *f, uint64_t n,
		       struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[OP_SEND] = IBV_WR_SEND,
		[OP_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[OP_WRITE] = IBV_WR_RDMA_WRITE,
		[OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[OP_READ] = IBV_WR_RDMA_READ,
	};
	const struct config *c = r->c;
	enum op op = op_of(c, n);
	uint64_t i = slot_of(r, f, n), size = size_of(c, n);
	struct region *local = is_fetch(op) ? &r->land : &r->out;
	struct stream s;

	*wr = (struct ibv_send_wr){ .wr_id = (uint64_t)f->id << 40 | n,
				    .sg_list = sge };
	wr->num_sge = pieces(sge, slot(r, local, i), size,
			     is_atomic(op) ? 1 : c->sge, local->mr->lkey,
			     false);
	if (is_signalled(f, c, n))
		wr->send_flags |= IBV_SEND_SIGNALED;
	if (is_atomic(op)) {
		build_atomic(r, f, n, wr);
		return;
	}
	wr->opcode = opcodes[op];
	wr->imm_data = imm_of(n);
	if (op == OP_READ) {
		wr->wr.rdma.remote_addr = f->peer.addr[SOURCE] + i * r->stride;
		wr->wr.rdma.rkey = f->peer.rkey[SOURCE];
		return;
	}
	stream_start(&s, key_of(r, side), f->id,
		     n - (c->spoil == SPOIL_ORDER && n == 5));
	fill_pieces(&s, sge, wr->num_sge);
	if (c->spoil == SPOIL_BIT && n == 5)
		*(uint8_t *)(uintptr_t)sge->addr ^= 0x10;
	if (size <= c->inl)
		wr->send_flags |= IBV_SEND_INLINE;
	if (op == OP_WRITE || op == OP_WRITE_IMM) {
		wr->wr.rdma.remote_addr =
			f->peer.addr[TARGET] + i * r->stride + i * 13 % 64;
		wr->wr.rdma.rkey = f->peer.rkey[TARGET];
	}
	if (c->qp == IBV_QPT_UD) {
		wr->wr.ud.ah = f->ah;
		wr->wr.ud.remote_qpn = f->peer.qpn;
		wr->wr.ud.remote_qkey = QKEY;
	}
}

/* The post copies inline data: later changes of the buffer must not matter. */
static void spoil_inline(const struct ibv_send_wr *wr)
{
	int i;

	if (!(wr->send_flags & IBV_SEND_INLINE))
		return;
	for (i = 0; i < wr->num_sge; i++)
		memset((void *)(uintptr_t)wr->sg_list[i].addr, 0xee,
		       wr->sg_list[i].length);
}

static bool may_post(const struct run *r, const struct flow *f, uint64_t n)
{
	return n < f->tx.total && n < f->tx.credit &&
	       n - f->tx.done < r->c->window;
}

static bool post_sends(struct run *r, struct flow *f)
{
	struct ibv_send_wr wr[MAX_LIST], *bad;
	struct ibv_sge sge[MAX_LIST][MAX_SGE];
	uint32_t i, k;
	int err;

	while (may_post(r, f, f->tx.posted)) {
		for (k = 0; k < r->c->list && may_post(r, f, f->tx.posted);
		     k++, f->tx.posted++) {
			build_send(r, f, f->tx.posted, &wr[k], sge[k]);
			if (k)
				wr[k - 1].next = &wr[k];
		}
		err = ibv_post_send(f->qp, wr, &bad);
		if (err)
			return failed("ibv_post_send of message %llu: %s",
				      (unsigned long long)bad->wr_id,
				      strerror(err));
		for (i = 0; i < k; i++)
			spoil_inline(&wr[i]);
		if (r->c->lossy)
			usleep(100);
	}
	return true;
}

/*
 * Messages that are complete at the sender: a receiver of plain WRITEs learns
 * of them by this message.
 */
static void tell_placed(struct run *r, struct flow *f)
{
	if (r->c->qp != IBV_QPT_RC || is_fetch(r->c->op))
		return;
	if (f->tx.done - f->tx.placed < max_u64(r->c->window / 2, 1) &&
	    f->tx.done < f->tx.total)
		return;
	f->tx.placed = f->tx.done;
	ctl_send(CTL_PLACED, f->id, f->tx.placed);
}

static bool check_atomic(struct run *r, struct flow *f, uint64_t n)
{
	uint64_t old, limit = r->c->count * r->c->qps;
	uint8_t *p = slot(r, &r->land, slot_of(r, f, n));

	memcpy(&old, p, 8);
	memset(p, POISON, 8);
	if (!shares_word(r->c)) {
		if (old == f->tx.expect[n % r->c->window])
			return true;
		return failed(
			"atomic %llu returned %#llx, not %#llx",
			(unsigned long long)n, (unsigned long long)old,
			(unsigned long long)f->tx.expect[n % r->c->window]);
	}
	memset(&limit, POISON, 8);	/* the word's first value */
	old -= limit;
	if (old >= r->c->count * r->c->qps || r->seen[old])
		return failed(
			"fetch-and-add %llu: value %llu was returned before, or never was",
			(unsigned long long)n, (unsigned long long)old);
	r->seen[old] = 1;
	return true;
}

static bool check_read(struct run *r, struct flow *f, uint64_t n)
{
	struct ibv_sge sge[MAX_SGE];
	uint64_t i = slot_of(r, f, n), at, size = size_of(r->c, n);
	struct stream s;

	pieces(sge, slot(r, &r->land, i), size, r->c->sge, 0, false);
	stream_start(&s, key_of(r, !side), f->id, SOURCE_N | n % r->c->window);
	if (check_pieces(&s, sge, size, &at))
		return true;
	return failed("READ %llu of %llu bytes: wrong from byte %llu",
		      (unsigned long long)n, (unsigned long long)size,
		      (unsigned long long)at);
}

static bool sent(struct run *r, struct flow *f, const struct ibv_wc *wc)
{
	static const enum ibv_wc_opcode opcodes[] = {
		[OP_SEND] = IBV_WC_SEND,
		[OP_SEND_IMM] = IBV_WC_SEND,
		[OP_WRITE] = IBV_WC_RDMA_WRITE,
		[OP_WRITE_IMM] = IBV_WC_RDMA_WRITE,
		[OP_READ] = IBV_WC_RDMA_READ,
		[OP_CAS] = IBV_WC_COMP_SWAP,
		[OP_FAA] = IBV_WC_FETCH_ADD,
	};
	uint64_t n = wc->wr_id & ((1ull << 40) - 1);
	enum op op = op_of(r->c, n);

	if (wc->opcode != opcodes[op])
		return failed("message %llu completed with opcode %d",
			      (unsigned long long)n, wc->opcode);
	for (; f->tx.done <= n; f->tx.done++) {
		if (f->tx.done == f->tx.posted ||
		    (f->tx.done != n && is_signalled(f, r->c, f->tx.done)))
			return failed(
				"message %llu completed, but not %llu before it",
				(unsigned long long)n,
				(unsigned long long)f->tx.done);
		op = op_of(r->c, f->tx.done);
		if (is_atomic(op) && !check_atomic(r, f, f->tx.done))
			return false;
		if (op == OP_READ && !check_read(r, f, f->tx.done))
			return false;
	}
	if (f->tx.done != n + 1)
		return failed("message %llu completed twice",
			      (unsigned long long)n);
	tell_placed(r, f);
	return true;
}

/* ---- receiving ---- */

static uint64_t recv_size(const struct config *c)
{
	return c->op == OP_WRITE || c->op == OP_WRITE_IMM ? 0 : c->size;
}

/* index: of all receive slots. With an SRQ any flow may use any of them. */
static int recv_pieces(struct run *r, struct ibv_sge *sge, uint64_t index)
{
	return pieces(sge, slot(r, &r->recv, index), recv_size(r->c),
		      r->c->rsge, r->recv.mr->lkey, r->c->qp == IBV_QPT_UD);
}

static bool post_recv(struct run *r, struct flow *f, uint64_t index)
{
	struct ibv_sge sge[MAX_SGE];
	struct ibv_recv_wr wr = { .wr_id = RECV_BIT | index, .sg_list = sge };
	struct ibv_recv_wr *bad;
	int err;

	wr.num_sge = recv_pieces(r, sge, index);
	err = r->srq ? ibv_post_srq_recv(r->srq, &wr, &bad) :
		       ibv_post_recv(f->qp, &wr, &bad);
	return err ? failed("ibv_post_recv: %s", strerror(err)) : true;
}

static bool check_write(struct run *r, struct flow *f, uint64_t n)
{
	uint64_t i = slot_of(r, f, n), at, size = size_of(r->c, n);
	struct ibv_sge sge = { (uintptr_t)slot(r, &r->target, i), size, 0 };
	struct stream s;

	stream_start(&s, key_of(r, !side), f->id, n);
	if (check_pieces(&s, &sge, size, &at))
		return true;
	return failed("WRITE %llu of %llu bytes: wrong from byte %llu",
		      (unsigned long long)n, (unsigned long long)size,
		      (unsigned long long)at);
}

/*
 * Check WRITEs and skip fetches, up to a message with a receive, or to limit.
 */
static bool advance(struct run *r, struct flow *f, uint64_t limit)
{
	enum op op;

	for (; f->rx.next < limit; f->rx.next++) {
		op = op_of(r->c, f->rx.next);
		if (takes_receive(op))
			break;
		if (op == OP_WRITE && !check_write(r, f, f->rx.next))
			return false;
	}
	return true;
}

static void grant(struct run *r, struct flow *f)
{
	if (f->rx.next - f->rx.granted < max_u64(r->c->window / 2, 1) ||
	    f->rx.next == f->rx.total)
		return;
	f->rx.granted = f->rx.next;
	ctl_send(CTL_CREDIT, f->id, f->rx.next + r->c->window);
}

/* ConnectX reports the kind of a datagram's packet there; rdma_rxe does not. */
static bool check_sl(const struct flow *f, const struct ibv_wc *wc)
{
	static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool v4 = !memcmp(f->peer.gid.raw, v4_mapped, sizeof(v4_mapped));

	if (strncmp(ibv_get_device_name(context->device), "arx", 3) ||
	    wc->sl == (v4 ? 10 : 9))
		return true;
	return failed("a datagram over IPv%d with SL %d", v4 ? 4 : 6, wc->sl);
}

static bool check_wc(struct run *r, struct flow *f, const struct ibv_wc *wc,
		     uint64_t n, uint64_t size)
{
	enum op op = op_of(r->c, n);
	bool ud = r->c->qp == IBV_QPT_UD;

	if (wc->opcode !=
	    (op == OP_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		return failed("message %llu received with opcode %d",
			      (unsigned long long)n, wc->opcode);
	if (wc->byte_len != size + (ud ? GRH : 0))
		return failed("message %llu: byte_len %u, not %llu",
			      (unsigned long long)n, wc->byte_len,
			      (unsigned long long)size + (ud ? GRH : 0));
	if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != has_imm(op) ||
	    (has_imm(op) && wc->imm_data != imm_of(n)))
		return failed("message %llu: flags %#x, immediate %#x",
			      (unsigned long long)n, wc->wc_flags,
			      be32toh(wc->imm_data));
	if (ud && (wc->src_qp != f->peer.qpn || !(wc->wc_flags & IBV_WC_GRH)))
		return failed("message %llu: from QP %#x, not %#x, flags %#x",
			      (unsigned long long)n, wc->src_qp, f->peer.qpn,
			      wc->wc_flags);
	return !ud || check_sl(f, wc);
}

static bool check_message(struct run *r, struct flow *f, uint64_t n,
			  uint64_t index)
{
	struct ibv_sge sge[MAX_SGE], *first = sge;
	uint64_t at, size = size_of(r->c, n);
	uint8_t *p = slot(r, &r->recv, index);
	struct stream s;

	recv_pieces(r, sge, index);
	if (r->c->qp == IBV_QPT_UD) {
		if (!grh_check((void *)p, &f->peer.gid, &f->me.gid))
			return false;
		memset(p, POISON, GRH);
		if (r->c->rsge == 1) {
			sge[0].addr += GRH;
			sge[0].length -= GRH;
		} else {
			first++;
		}
	}
	stream_start(&s, key_of(r, !side), f->id, n);
	if (check_pieces(&s, first, size, &at))
		return true;
	return failed("message %llu of %llu bytes: wrong from byte %llu",
		      (unsigned long long)n, (unsigned long long)size,
		      (unsigned long long)at);
}

/*
 * Number of this message: the next that uses a receive; over a bad link the
 * number that the message carries.
 */
static bool which_message(struct run *r, struct flow *f,
			  const struct ibv_wc *wc, uint64_t *n)
{
	if (!r->c->lossy) {
		if (!advance(r, f, f->rx.total))
			return false;
		*n = f->rx.next;
		return *n < f->rx.total ? true :
					  failed("a message after the last");
	}
	/*
	 * UC does not promise order: it accepts any packet that begins a
	 * message.
	 */
	*n = be32toh(wc->imm_data) ^ 0x5a000000;
	return *n < f->rx.total ||
	       failed("message %llu never was", (unsigned long long)*n);
}

static bool received(struct run *r, struct flow *f, const struct ibv_wc *wc)
{
	uint64_t index = wc->wr_id & ~RECV_BIT, n;

	if (!r->srq &&
	    index != (uint64_t)f->id * r->rslots + f->rx.recvs % r->rslots)
		return failed("receives complete out of order");
	if (!which_message(r, f, wc, &n) ||
	    !check_wc(r, f, wc, n, size_of(r->c, n)))
		return false;
	if (op_of(r->c, n) == OP_WRITE_IMM ? !check_write(r, f, n) :
					     !check_message(r, f, n, index))
		return false;
	f->rx.recvs++;
	f->rx.next = n + 1;
	if (r->c->slow)
		usleep(r->c->slow);
	return post_recv(r, f, index);
}

/* ---- the loop ---- */

static struct flow *flow_by_qpn(struct run *r, uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < r->c->qps; i++)
		if (r->flows[i].qp->qp_num == qpn)
			return &r->flows[i];
	return NULL;
}

static bool complete(struct run *r, const struct ibv_wc *wc)
{
	struct flow *f = flow_by_qpn(r, wc->qp_num);

	if (!f)
		return failed("a completion of unknown QP %#x", wc->qp_num);
	if (wc->status != IBV_WC_SUCCESS)
		return failed("%s %llu: %s (vendor %#x)",
			      wc->wr_id & RECV_BIT ? "receive" : "message",
			      (unsigned long long)(wc->wr_id &
						   ((1ull << 40) - 1)),
			      ibv_wc_status_str(wc->status), wc->vendor_err);
	return wc->wr_id & RECV_BIT ? received(r, f, wc) : sent(r, f, wc);
}

/* Number of completions; -1 after a failure. */
static int poll_cq(struct run *r)
{
	struct ibv_wc wc[16];
	int i, n = ibv_poll_cq(r->cq, ARRAY_SIZE(wc), wc);

	if (n < 0) {
		failed("ibv_poll_cq: %d", n);
		return -1;
	}
	for (i = 0; i < n; i++)
		if (!complete(r, &wc[i]))
			return -1;
	return n;
}

static int take_ctl(struct run *r)
{
	struct ctl_msg msg;
	struct flow *f;
	int n = 0;

	for (; ctl_take(&msg); n++) {
		f = &r->flows[msg.flow % r->c->qps];
		switch (msg.type) {
		case CTL_CREDIT:
			f->tx.credit = max_u64(f->tx.credit, msg.value);
			break;
		case CTL_PLACED:
			f->rx.placed = msg.value;
			break;
		case CTL_DONE:
			f->rx.done = true;
			break;
		default:
			return -1;	/* the other side reports why */
		}
	}
	return n;
}

/*
 * Sleep after the last completion before the event. Completions without an
 * event are an error.
 */
static bool wait_event(struct run *r)
{
	struct pollfd fds[] = {
		{ .fd = r->channel->fd, .events = POLLIN },
		{ .fd = ctl_fd, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *unused;
	int n;

	if (!r->armed) {
		r->armed = true;
		/* Completions before the request have no event: poll again. */
		return !ibv_req_notify_cq(r->cq, 0) ||
		       failed("ibv_req_notify_cq");
	}
	if (!poll(fds, 2, 1000 * time_factor)) {
		n = poll_cq(r);
		return n > 0 ? failed("%d completions came without an event",
				      n) :
			       !n;
	}
	if (!fds[0].revents)
		return true;
	if (ibv_get_cq_event(r->channel, &cq, &unused) || cq != r->cq)
		return failed("ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
	r->armed = false;
	return true;
}

static bool flow_finished(struct run *r, struct flow *f)
{
	if (f->tx.done != f->tx.total)
		return false;
	if (!r->c->lossy)
		return f->rx.next == f->rx.total;
	/* Over a bad link, messages in flight come soon or never. */
	return !f->rx.total ||
	       (f->rx.done && now() - r->last > 0.1 * time_factor);
}

static bool finished(struct run *r)
{
	uint32_t i;

	for (i = 0; i < r->c->qps; i++)
		if (!flow_finished(r, &r->flows[i]))
			return false;
	return true;
}

static bool step_flows(struct run *r)
{
	struct flow *f;

	for (f = r->flows; f < r->flows + r->c->qps; f++) {
		if (!post_sends(r, f))
			return false;
		if (!r->c->lossy && !advance(r, f, f->rx.placed))
			return false;
		grant(r, f);
	}
	return true;
}

static bool stuck(struct run *r)
{
	struct flow *f = r->flows;

	while (f < r->flows + r->c->qps - 1 && flow_finished(r, f))
		f++;
	return failed(
		"nothing moves: flow %u sent %llu/%llu, completed %llu, credit %llu; received %llu/%llu",
		f->id, (unsigned long long)f->tx.posted,
		(unsigned long long)f->tx.total, (unsigned long long)f->tx.done,
		(unsigned long long)f->tx.credit,
		(unsigned long long)f->rx.next,
		(unsigned long long)f->rx.total);
}

static void tell_done(struct run *r, bool *told)
{
	uint32_t i;

	for (i = 0; i < r->c->qps; i++)
		if (r->flows[i].tx.done != r->flows[i].tx.total)
			return;
	for (i = 0; i < r->c->qps && !*told; i++)
		ctl_send(CTL_DONE, i, 0);
	*told = true;
}

static bool run_flows(struct run *r)
{
	bool told = false;
	int n, m, idle = 0;

	r->last = now();
	while (!finished(r)) {
		if (!step_flows(r))
			return false;
		n = poll_cq(r);
		/* The control socket costs a system call. */
		m = n > 0 && ++idle % 16 ? 0 : take_ctl(r);
		if (n < 0 || m < 0)
			return false;
		if (r->c->lossy)
			tell_done(r, &told);
		if (n || m) {
			r->last = now();
			continue;
		}
		if (now() - r->last > (double)r->c->limit * time_factor)
			return stuck(r);
		if (r->c->events && !r->c->lossy) {
			if (!wait_event(r))
				return false;
		} else {
			sched_yield();
		}
	}
	return true;
}

/* ---- before and after ---- */

static bool uses(const struct config *c, enum op op)
{
	uint64_t n;

	for (n = 0; n < min_u64(c->count, 64); n++)
		if (op_of(c, n) == op)
			return true;
	return op == OP_WRITE_IMM && c->op == OP_WRITE && c->qp == IBV_QPT_UC;
}

static bool make_regions(struct run *r)
{
	const struct config *c = r->c;
	size_t slots = (size_t)c->qps * c->window * r->stride;
	bool writes = uses(c, OP_WRITE) || uses(c, OP_WRITE_IMM);
	bool sends = uses(c, OP_SEND) || uses(c, OP_SEND_IMM);
	bool reads = uses(c, OP_READ),
	     atomics = uses(c, OP_CAS) || uses(c, OP_FAA);

	if ((sends || writes) && !region_make(&r->out, r->pd, slots, 0))
		return false;
	if (!region_make(&r->recv, r->pd,
			 (size_t)c->qps * r->rslots * r->stride,
			 IBV_ACCESS_LOCAL_WRITE))
		return false;
	if (writes &&
	    !region_make(&r->target, r->pd, slots,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE))
		return false;
	if (reads &&
	    !region_make(&r->source, r->pd, slots, IBV_ACCESS_REMOTE_READ))
		return false;
	if ((reads || atomics) &&
	    !region_make(&r->land, r->pd, slots, IBV_ACCESS_LOCAL_WRITE))
		return false;
	if (atomics &&
	    !region_make(&r->atom, r->pd, c->qps * 64,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
		return false;
	return true;
}

/* All regions, whether they exist or not. */
static bool upset_regions(struct run *r)
{
	struct region *all[] = { &r->out,    &r->recv, &r->target,
				 &r->source, &r->land, &r->atom };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i]->map)
			upset_add(all[i]);
	if (upset_start())
		return true;
	for (i = 0; i < ARRAY_SIZE(all); i++)
		upset_remove(all[i]);
	return false;
}

static void calm_regions(struct run *r)
{
	struct region *all[] = { &r->out,    &r->recv, &r->target,
				 &r->source, &r->land, &r->atom };
	size_t i;

	upset_stop();
	for (i = 0; i < ARRAY_SIZE(all); i++)
		upset_remove(all[i]);
}

static void fill_source(struct run *r)
{
	uint64_t i, n = (uint64_t)r->c->qps * r->c->window;
	struct stream s;

	for (i = 0; r->source.map && i < n; i++) {
		stream_start(&s, key_of(r, side), i / r->c->window,
			     SOURCE_N | i % r->c->window);
		stream_fill(&s, r->source.base + i * r->stride, r->c->size);
		if (r->c->spoil == SPOIL_BIT && i == 5)
			r->source.base[i * r->stride + r->c->size - 1] ^= 0x10;
	}
}

static bool check_source(struct run *r)
{
	uint64_t i, n = (uint64_t)r->c->qps * r->c->window;
	struct stream s;

	for (i = 0; r->source.map && i < n; i++) {
		stream_start(&s, key_of(r, side), i / r->c->window,
			     SOURCE_N | i % r->c->window);
		if (stream_check(&s, r->source.base + i * r->stride,
				 r->c->size) >= 0)
			return failed("the source of READs changed");
		memset(r->source.base + i * r->stride, POISON, r->c->size);
	}
	return true;
}

static bool make_flow(struct run *r, struct flow *f)
{
	const struct config *c = r->c;
	bool sender = c->both || side == 0, receiver = c->both || side == 1;
	struct ibv_qp_init_attr attr = {
		.send_cq = r->cq, .recv_cq = r->cq, .srq = r->srq,
		.qp_type = c->qp,
		.cap = {
			.max_send_wr = c->window, .max_send_sge = c->sge,
			.max_inline_data = c->inl,
			.max_recv_wr = r->srq ? 0 : r->rslots,
			.max_recv_sge = r->srq ? 0 : c->rsge,
		},
	};

	f->qp = ibv_create_qp(r->pd, &attr);
	if (!f->qp)
		return failed("ibv_create_qp: %s", strerror(errno));
	f->tx.total = sender ? c->count : 0;
	f->rx.total = receiver ? c->count : 0;
	f->tx.credit = c->rnr || c->lossy || is_fetch(c->op) ? f->tx.total :
							       c->window;
	f->tx.expect = calloc(c->window, sizeof(*f->tx.expect));
	memset(&f->tx.atom, POISON, 8);
	if (!receiver || is_fetch(c->op))
		f->rx.next = f->rx.total;
	peer_describe(&f->me, f->qp, c);
	f->me.rkey[TARGET] = r->target.mr ? r->target.mr->rkey : 0;
	f->me.rkey[SOURCE] = r->source.mr ? r->source.mr->rkey : 0;
	f->me.rkey[ATOM] = r->atom.mr ? r->atom.mr->rkey : 0;
	f->me.addr[TARGET] = (uintptr_t)r->target.base;
	f->me.addr[SOURCE] = (uintptr_t)r->source.base;
	f->me.addr[ATOM] = (uintptr_t)r->atom.base;
	return qp_init(f->qp, c,
		       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC);
}

static bool make_objects(struct run *r)
{
	const struct config *c = r->c;
	struct ibv_srq_init_attr srq_attr = {
		.attr = { .max_wr = c->qps * r->rslots, .max_sge = c->rsge },
	};

	r->pd = ibv_alloc_pd(context);
	if (!r->pd)
		return failed("ibv_alloc_pd: %s", strerror(errno));
	if (c->events) {
		r->channel = ibv_create_comp_channel(context);
		if (!r->channel)
			return failed("ibv_create_comp_channel: %s",
				      strerror(errno));
	}
	r->cq = ibv_create_cq(context, c->qps * (c->window + r->rslots), NULL,
			      r->channel, 0);
	if (!r->cq)
		return failed("ibv_create_cq: %s", strerror(errno));
	if (c->srq) {
		r->srq = ibv_create_srq(r->pd, &srq_attr);
		if (!r->srq)
			return failed("ibv_create_srq: %s", strerror(errno));
	}
	return true;
}

static bool start_flow(struct run *r, struct flow *f)
{
	uint32_t i;

	for (i = 0; i < r->rslots; i++)
		if (!post_recv(r, f, (uint64_t)f->id * r->rslots + i))
			return false;
	if (r->c->qp == IBV_QPT_UD) {
		f->ah = ah_make(r->pd, r->c, &f->peer.gid);
		if (!f->ah)
			return false;
	}
	return qp_connect(f->qp, r->c, f->me.psn, &f->peer);
}

static bool set_up(struct run *r)
{
	uint32_t i;

	if (!make_objects(r) || !make_regions(r))
		return false;
	fill_source(r);
	if (shares_word(r->c))
		r->seen = calloc(r->c->qps, r->c->count);
	for (i = 0; i < r->c->qps; i++) {
		r->flows[i].id = i;
		if (!make_flow(r, &r->flows[i]))
			return false;
	}
	return true;
}

/*
 * The atomics' words must have the values that the sender knows; then poison.
 */
static bool check_words(struct run *r, const uint64_t *want)
{
	uint64_t sum = 0, word;
	uint32_t i;

	if (!r->atom.map || !r->flows[0].rx.total)
		return true;
	for (i = 0; i < r->c->qps; i++) {
		memcpy(&word, r->atom.base + i * 64, 8);
		if (shares_word(r->c)) {
			memset(&sum, POISON, 8);
			sum += i ? 0 : r->c->count * r->c->qps;
		} else {
			sum = want[i];
		}
		if (word != sum)
			return failed("atomic word %u is %#llx, not %#llx", i,
				      (unsigned long long)word,
				      (unsigned long long)sum);
		memset(r->atom.base + i * 64, POISON, 8);
	}
	return true;
}

static bool check_lossy(struct run *r)
{
	struct flow *f;

	for (f = r->flows; r->c->lossy && f < r->flows + r->c->qps; f++)
		if (f->rx.recvs < f->rx.total / 10)
			return failed("only %llu of %llu messages came",
				      (unsigned long long)f->rx.recvs,
				      (unsigned long long)f->rx.total);
	return true;
}

static bool check_end(struct run *r, const uint64_t *words)
{
	struct ibv_wc wc;

	/*
	 * Inline or sent sources may hold anything, because this side writes
	 * them.
	 */
	if (!r->c->lossy && ibv_poll_cq(r->cq, 1, &wc))
		return failed("a completion after the last one: %s",
			      ibv_wc_status_str(wc.status));
	return check_lossy(r) && check_words(r, words) && check_source(r) &&
	       region_clean(&r->recv, "receive buffers") &&
	       region_clean(&r->target, "target of WRITE") &&
	       region_clean(&r->source, "source of READ") &&
	       region_clean(&r->land, "results") &&
	       region_clean(&r->atom, "atomic words");
}

static void destroy(int err, const char *what)
{
	if (err)
		failed("%s: %s", what, strerror(err));
}

static void tear_down(struct run *r)
{
	uint32_t i;

	for (i = 0; i < r->c->qps; i++) {
		if (r->flows[i].qp)
			destroy(ibv_destroy_qp(r->flows[i].qp),
				"ibv_destroy_qp");
		if (r->flows[i].ah)
			destroy(ibv_destroy_ah(r->flows[i].ah),
				"ibv_destroy_ah");
		free(r->flows[i].tx.expect);
	}
	if (r->srq)
		destroy(ibv_destroy_srq(r->srq), "ibv_destroy_srq");
	if (r->cq)
		destroy(ibv_destroy_cq(r->cq), "ibv_destroy_cq");
	if (r->channel)
		destroy(ibv_destroy_comp_channel(r->channel),
			"ibv_destroy_comp_channel");
	region_free(&r->out);
	region_free(&r->recv);
	region_free(&r->target);
	region_free(&r->source);
	region_free(&r->land);
	region_free(&r->atom);
	if (r->pd)
		destroy(ibv_dealloc_pd(r->pd), "ibv_dealloc_pd");
	free(r->seen);
}

static bool agree(bool ok)
{
	bool theirs;

	ctl_swap(&ok, &theirs, sizeof(ok));
	return ok && theirs;
}

static bool connect_flows(struct run *r)
{
	struct peer mine[MAX_QPS], theirs[MAX_QPS];
	bool ok = true;
	uint32_t i;

	for (i = 0; i < r->c->qps; i++)
		mine[i] = r->flows[i].me;
	ctl_swap(mine, theirs, sizeof(mine));
	for (i = 0; i < r->c->qps && ok; i++) {
		r->flows[i].peer = theirs[i];
		ok = start_flow(r, &r->flows[i]);
	}
	return agree(ok);
}

static void spoil_end(struct run *r)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	if (r->c->spoil == SPOIL_GUARD)
		r->recv.base[-1] = 0;
	if (r->c->spoil == SPOIL_EXTRA && side == 0)
		ibv_post_send(r->flows[0].qp, &wr, &bad);
	ctl_barrier();
	usleep(50000 * time_factor);
}

static bool transfer(struct run *r)
{
	uint64_t mine[MAX_QPS], theirs[MAX_QPS];
	bool upset = r->c->upset && upset_regions(r);
	bool ok = run_flows(r);
	uint32_t i;

	if (upset)
		calm_regions(r);
	if (!ok)
		ctl_send(CTL_FAIL, 0, 0);
	for (i = 0; i < r->c->qps; i++)
		mine[i] = r->flows[i].tx.atom;
	ctl_swap(mine, theirs, sizeof(mine));
	if (r->c->spoil)
		spoil_end(r);
	/*
	 * Check memory only when nothing more can come: after both sides' last
	 * completion.
	 */
	return agree(ok) && agree(check_end(r, theirs));
}

bool flow_case(const struct config *c)
{
	static uint64_t key;
	struct run *r = calloc(1, sizeof(*r));
	bool ok;

	r->c = c;
	r->key = ++key;
	r->rslots = c->rnr ? max_u64(c->window / 4, 1) : c->window;
	r->stride = (c->size + GRH + (MAX_SGE + 1) * GAP + 64 + 8 + 63) &
		    ~63ull;
	ok = agree(set_up(r)) && connect_flows(r) && transfer(r);
	tear_down(r);
	free(r);
	return ok;
}
