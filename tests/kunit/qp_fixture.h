/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two connected QPs of one device, without a network. With the port up they
 * reach each other through loopback.c. With the port down they use a simulated
 * wire, which keeps each run until the test takes it.
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
#define PSN		0xfffffdU	/* so that all PSNs wrap soon */
#define ABSENT_QPN	0x123456

/**
 * struct wire_run - a run on the wire
 * @link: runs are in the order of sending
 * @from: index of the sender
 * @out: transmit side of the stage of @from
 * @av: destination when it left; NULL: it has not left
 * @run: the run; its payload is @data
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
 * struct side - a QP and its objects
 * @qp: QP
 * @scq: its send CQ
 * @rcq: its receive CQ
 * @mr: region of @buf, by IOVA, for the peer
 * @buf: BUF bytes
 * @events: number of each event
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
 * @pd: PD of all objects
 * @dma: region of all memory, for local access
 * @side: the QPs
 * @srq: SRQ for new QPs, or NULL
 * @xrcd: XRC domain of an XRC QP
 * @xrc: its SRQ, which completes to the receive CQ of the second side
 * @depth: send queue entries of new QPs; 0: DEPTH
 * @attr: attributes for modify_qp
 * @lock: protects the wire
 * @wire: struct wire_run
 * @taken: the last run taken from @wire
 * @blocked: the wire accepts nothing
 * @lost: the wire loses all runs
 * @drops: the machine drops runs that leave, after the next @room runs
 * @room: see @drops
 * @waits: bytes of accepted runs that have not left the machine
 * @sent: number of accepted runs
 * @on_send: called for each run, before anything else
 * @unreadable: the memory of the next run cannot be read
 * @clock: time that congestion.c reads, in ns; 0: that of the machine
 * @on_clock: called when congestion.c has read the clock
 */
struct pair {
	struct arx_dev dev;
	struct arx_pd pd;
	struct ib_mr *dma;
	struct side side[2];
	struct ib_srq *srq;
	struct arx_xrcd xrcd;
	struct arx_srq xrc;
	u32 depth;
	struct ib_qp_attr attr;
	spinlock_t lock;	/* protects the wire */
	struct list_head wire;
	struct wire_run *taken;
	bool blocked;
	bool lost;
	bool drops;
	u32 room;
	u32 waits;
	u32 sent;
	void (*on_send)(struct pair *p, struct arx_qp *qp);
	bool unreadable;
	u64 clock;
	void (*on_clock)(struct pair *p);
};

/* Create and destroy. */
struct pair *pair_new(struct kunit *test);
void pair_free(struct pair *p);
int pair_init(struct kunit *test);
void pair_exit(struct kunit *test);
void pair_make_qp(struct kunit *test, struct pair *p, int side,
		  enum ib_qp_type type);
void pair_make_half(struct kunit *test, struct pair *p, int side, u8 half);
int pair_modify(struct pair *p, int side, enum ib_qp_state to, int mask);
int pair_required(enum ib_qp_type type, enum ib_qp_state from,
		  enum ib_qp_state to);
void pair_bring(struct kunit *test, struct pair *p, int side,
		enum ib_qp_state to);
void pair_connect(struct kunit *test, struct pair *p, enum ib_qp_type type);
extern bool pair_no_memory;

struct pair *pair_by_wire(struct kunit *test);
u32 pair_seed(struct kunit *test);
u64 count_of(struct pair *p, enum arx_counter counter);
void pair_connect_halves(struct kunit *test, struct pair *p);
void pair_make_xrc_srq(struct kunit *test, struct pair *p, struct arx_srq *srq,
		       struct arx_pd *pd, struct arx_cq *cq,
		       struct arx_xrcd *xrcd);
void pair_connect_xrc(struct kunit *test, struct pair *p);
void pair_make_worker(struct kunit *test, struct arx_qp *qp);
void pair_join(struct kunit *test, struct pair *p);

/* Events from outside. */
struct wire_run *pair_take(struct pair *p, int from);
int pair_rx(struct pair *p, int side, struct arx_run *run);
int pair_rx_packets(struct pair *p, int side, struct arx_run *run, void *data);
int pair_deliver(struct pair *p, struct wire_run *w);
void pair_pump(struct pair *p);
void pair_settle(struct pair *p);
void pair_expire(struct pair *p, int side);
void pair_page(struct pair *p, int side);
void pair_paged(struct pair *p, int side, bool own);
void pair_paging(struct pair *p);
void pair_timeout(struct pair *p, int side);
void pair_rnr_ended(struct pair *p, int side);
void pair_probe(struct pair *p, int side);
void pair_requester(struct pair *p, int side);
void pair_look(struct pair *p, int side);
void pair_steps(struct pair *p, int side, enum ib_qp_state state, int n);
bool pair_progresses(struct arx_qp *qp, void (*change)(struct arx_qp *qp));
void pair_block_second(struct pair *p, struct arx_qp *qp);
struct arx_run pair_run(struct pair *p, int to, enum arx_op op, int flags,
			u32 psn, void *data, u32 len);

/* Verbs. */
int pair_send(struct pair *p, int side, enum ib_wr_opcode op, u64 id,
	      int flags, u32 at, u32 len);
int pair_atomic(struct pair *p, int side, enum ib_wr_opcode op, u64 id, u32 at,
		u32 there, u64 compare_add, u64 swap);
int pair_recv(struct pair *p, int side, u64 id, u32 at, u32 len);
void pair_srq_recv(struct kunit *test, struct pair *p, struct arx_srq *srq,
		   u64 id, u32 lkey, u32 len);

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

/* The next run of @side has @operation and @number. */
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

/* The next run of @side is an acknowledgment of this kind. */
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
