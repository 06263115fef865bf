/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two QPs of one device, connected, without a machine around them. On one host
 * they reach each other through loopback.c; with the port down they use a wire
 * that keeps each run until the test says what becomes of it.
 */
#ifndef QP_FIXTURE_H
#define QP_FIXTURE_H

#include <kunit/test.h>

#include "completer.h"
#include "cq.h"
#include "requester.h"
#include "responder.h"
#include "schedule.h"
#include "send.h"
#include "state.h"
#include "swqes.h"
#include "tx.h"
#include "verbs.h"

#define BUF		(512 * 1024)	/* bytes of memory of each side */
#define IOVA		0x7f0012345000ULL
#define MTU		1024
#define DEPTH		16		/* entries of the queues */
#define SGES		4
#define INLINE		128
#define PSN		0xfffffdU	/* so that all wrap soon */
#define ABSENT_QPN	0x123456

/**
 * struct wire_run - a run on the wire
 * @link: in the order they were sent
 * @from: who sent it
 * @out: of what stage of @from
 * @av: where it went when it left; NULL: it has not left
 * @run: what; its payload is @data
 * @data: copy of the payload
 */
struct wire_run {
	struct list_head link;
	struct arx_qp *from;
	const struct arx_tx_out *out;
	const struct arx_av *av;
	struct arx_run run;
	u8 data[];
};

/**
 * struct side - a QP and what its owner has
 * @qp: QP
 * @scq: its send CQ
 * @rcq: its receive CQ
 * @mr: names @buf by IOVA, for the peer
 * @buf: BUF bytes
 * @events: how many of each event
 */
struct side {
	struct arx_qp *qp;
	struct arx_cq scq;
	struct arx_cq rcq;
	struct arx_mr mr;
	u8 *buf;
	int events[32];
};

/**
 * struct pair - a device with two QPs and a wire
 * @dev: device
 * @pd: of everything
 * @dma: all memory, for local access
 * @side: the QPs
 * @srq: that QPs are made with, or NULL
 * @depth: of the send queues that QPs are made with; 0: DEPTH
 * @attr: what modify_qp is given
 * @lock: of the wire
 * @wire: struct wire_run
 * @taken: the last one taken from it
 * @blocked: the wire takes nothing
 * @lost: the wire loses everything
 * @drops: the host drops what leaves, but for the next @room runs
 * @room: see @drops
 * @waits: bytes of what it took that have not left the host
 * @sent: runs it took
 * @on_send: called for each run before anything else
 */
struct pair {
	struct arx_dev dev;
	struct arx_pd pd;
	struct ib_mr *dma;
	struct side side[2];
	struct ib_srq *srq;
	u32 depth;
	struct ib_qp_attr attr;
	spinlock_t lock;	/* of the wire */
	struct list_head wire;
	struct wire_run *taken;
	bool blocked;
	bool lost;
	bool drops;
	u32 room;
	u32 waits;
	u32 sent;
	void (*on_send)(struct pair *p, struct arx_qp *qp);
};

/* Make and end. */
struct pair *pair_new(struct kunit *test);
void pair_free(struct pair *p);
void pair_make_qp(struct kunit *test, struct pair *p, int side,
		  enum ib_qp_type type);
int pair_modify(struct pair *p, int side, enum ib_qp_state to, int mask);
int pair_required(enum ib_qp_type type, enum ib_qp_state from,
		  enum ib_qp_state to);
void pair_bring(struct kunit *test, struct pair *p, int side,
		enum ib_qp_state to);
void pair_connect(struct kunit *test, struct pair *p, enum ib_qp_type type);

/* What happens outside. */
struct wire_run *pair_take(struct pair *p, int from);
int pair_rx(struct pair *p, int side, struct arx_run *run);
int pair_deliver(struct pair *p, struct wire_run *w);
void pair_pump(struct pair *p);
void pair_settle(struct pair *p);
void pair_expire(struct pair *p, int side);
void pair_timeout(struct pair *p, int side);
void pair_rnr_over(struct pair *p, int side);
void pair_requester(struct pair *p, int side);
void pair_look(struct pair *p, int side);
void pair_steps(struct pair *p, int side, enum ib_qp_state state, int n);
bool pair_progresses(struct arx_qp *qp, void (*change)(struct arx_qp *qp));
void pair_block_second(struct pair *p, struct arx_qp *qp);
int watch_load_of(int cpu);
void watch_unseat(struct arx_qp *qp);
struct arx_run pair_run(struct pair *p, int to, enum arx_op op, int flags,
			u32 psn, void *data, u32 len);

/* Verbs. */
int pair_send(struct pair *p, int side, enum ib_wr_opcode op, u64 id,
	      int flags, u32 at, u32 len);
int pair_atomic(struct pair *p, int side, enum ib_wr_opcode op, u64 id, u32 at,
		u32 there, u64 compare_add, u64 swap);
int pair_recv(struct pair *p, int side, u64 id, u32 at, u32 len);

/* The oldest completion, or id NO_WC. */
#define NO_WC	(~0ULL)
struct ib_wc pair_poll(struct arx_cq *cq);

#define EXPECT_WC(test, cq, id, st) do {				\
	struct ib_wc wc__ = pair_poll(cq);				\
									\
	KUNIT_EXPECT_EQ(test, wc__.wr_id, (u64)(id));			\
	if (wc__.wr_id != NO_WC)					\
		KUNIT_EXPECT_EQ(test, wc__.status, st);			\
} while (0)

#define EXPECT_NO_WC(test, cq) \
	KUNIT_EXPECT_EQ(test, pair_poll(cq).wr_id, NO_WC)

/* What @side sends next has @operation and @number. */
#define EXPECT_SENT(test, p, side, operation, number) ({		\
	struct wire_run *w__ = pair_take(p, side);			\
									\
	KUNIT_EXPECT_NOT_NULL(test, w__);				\
	if (w__) {							\
		KUNIT_EXPECT_EQ(test, w__->run.h.op, operation);	\
		KUNIT_EXPECT_EQ(test, w__->run.h.psn,			\
				(number) & ARX_PSN_MASK);		\
	}								\
	w__;								\
})

/* What @side sends next is an acknowledgment of this kind. */
#define EXPECT_ANSWER(test, p, side, kind, number) do {			\
	struct wire_run *a__ = EXPECT_SENT(test, p, side, ARX_OP_ACK,	\
					   number);			\
									\
	if (a__)							\
		KUNIT_EXPECT_EQ(test, a__->run.h.syndrome, kind);	\
} while (0)

#define EXPECT_SILENT(test, p, side) \
	KUNIT_EXPECT_NULL(test, pair_take(p, side))

#endif /* QP_FIXTURE_H */
