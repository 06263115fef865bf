/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * verify: two processes that move data by verbs and check every byte of it.
 *
 * Both sides run the same list of cases in step. A control socket between them
 * (not RDMA) carries connection data, credits and verdicts.
 *
 *	verify.c	options, the two processes, the list of cases
 *	stream.c	what a message contains
 *	ctl.c		the control socket
 *	verbs.c		device, memory regions, queue pairs
 *	upset.c		memory whose pages come and go
 *	flow.c		cases that succeed: messages of every kind, exactly once
 *	fail.c		cases with an expected status, and events
 */
#ifndef VERIFY_H
#define VERIFY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MAX_QPS		64
#define MAX_SGE		32
#define MAX_LIST	32

static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- stream.c ---- */

#define POISON	0xa5	/* content of memory that was not written */

struct stream {
	uint64_t state;
	uint64_t word;
	unsigned int left;	/* bytes of word not yet used */
};

void stream_start(struct stream *s, uint64_t key, uint64_t flow, uint64_t n);
void stream_fill(struct stream *s, void *to, size_t len);
/* -1, or the offset of the first wrong byte. */
ssize_t stream_check(struct stream *s, const void *from, size_t len);
uint64_t mix64(uint64_t x);
/* -1, or the offset of the first byte that is not POISON. */
ssize_t poison_check(const void *from, size_t len);

/* ---- ctl.c ---- */

enum ctl_type {
	CTL_BLOB,	/* value bytes follow */
	CTL_CREDIT,	/* the flow may send up to message value */
	/* the flow's messages before value are complete at the sender */
	CTL_PLACED,
	CTL_DONE,	/* the flow's sender sends no more; value were sent */
	CTL_FAIL,	/* the other side gave up */
};

struct ctl_msg {
	uint32_t type;
	uint32_t flow;
	uint64_t value;
};

extern int ctl_fd;
void ctl_send(enum ctl_type type, uint32_t flow, uint64_t value);
bool ctl_take(struct ctl_msg *msg);
/* Exchange blobs; also a barrier. Messages in flight are dropped. */
void ctl_swap(const void *mine, void *theirs, size_t len);
void ctl_barrier(void);
double now(void);

/* ---- verdicts (verify.c) ---- */

extern int side; /* 0 or 1: the process of the first or second node */
/* how much slower than real hardware the machine may be */
extern int time_factor;

/* Keeps the first reason only. Returns false. */
bool failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool has_failed(void);
/* A case that this device cannot run: printed as skip. Returns false. */
bool skipped(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- one case ---- */

/* Faults on purpose, which must be found: the test of the test. */
enum spoil {
	SPOIL_NOTHING,
	SPOIL_BIT,	/* one wrong bit */
	SPOIL_ORDER,	/* a message instead of the one after it */
	SPOIL_GUARD,	/* a byte written just before a region */
	SPOIL_EXTRA,	/* a message too many */
};

enum op {
	OP_SEND,
	OP_SEND_IMM,
	OP_SEND_INV,
	OP_WRITE,
	OP_WRITE_IMM,
	OP_READ,
	OP_CAS,
	OP_FAA,
	/* any of the operations above, changing from message to message */
	OP_MIX,
};

enum gid_choice { GID_V4 = 4, GID_V6 = 6, GID_LL = 1 };

struct config {
	enum ibv_qp_type qp;
	int op;
	enum gid_choice gid;
	uint64_t size;		/* bytes of a message */
	bool vary;		/* the size varies from 0 to size */
	uint64_t count;		/* messages of each flow */
	uint32_t qps;
	uint32_t window;	/* outstanding messages */
	uint32_t list;		/* work requests in one ibv_post_send() */
	uint32_t sge;
	uint32_t rsge;		/* of receives */
	uint32_t inl;		/* inline if the message is not longer */
	uint32_t signal;	/* one in this many is signalled */
	bool srq;
	bool events; /* sleep on the completion channel, do not poll */
	bool both;		/* both sides send */
	bool rnr;   /* send without credit: the receiver is not ready */
	bool lossy; /* UC and UD over a bad link: any part may arrive */
	uint32_t mtu;		/* 0: the port's */
	uint32_t psn;		/* of the first packet; 0: random */
	uint8_t timeout;
	uint8_t retry;
	uint8_t rnr_retry;
	uint8_t rnr_timer;
	uint8_t rd_atomic;
	/* the receiver waits this many us before each new receive */
	uint32_t slow;
	uint32_t limit; /* seconds without progress until a case has failed */
	enum spoil spoil;
	uint8_t static_rate;	/* enum ibv_rate, of addresses */
	uint8_t tclass;		/* traffic class, of addresses */
	uint32_t odp; /* regions are paged on demand: 1, or all memory is: 2 */
	bool upset;		/* their pages are taken back all the time */
};

/* ---- verbs.c ---- */

extern struct ibv_context *context;
extern struct ibv_device_attr device;
extern struct ibv_port_attr port;

struct region {
	uint8_t *map;		/* all of the memory */
	size_t map_len;
	uint8_t *base;		/* memory of the MR */
	size_t len;
	struct ibv_mr *mr;
};

/* The other side's data of a QP and of the regions. */
struct peer {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	uint32_t rkey[4];
	uint64_t addr[4];
	uint32_t rd_atomic;
	uint32_t mtu;
};

bool device_open(const char *name);
int gid_index(enum gid_choice choice);
bool region_make(struct region *r, struct ibv_pd *pd, size_t len, int access);
void region_free(struct region *r);
/* The region, and the memory before and after it, must be poison. */
bool region_clean(const struct region *r, const char *name);

bool qp_init(struct ibv_qp *qp, const struct config *c, unsigned int access);
bool qp_to_rtr(struct ibv_qp *qp, const struct config *c,
	       const struct peer *peer);
bool qp_connect(struct ibv_qp *qp, const struct config *c, uint32_t my_psn,
		const struct peer *peer);
void peer_describe(struct peer *p, struct ibv_qp *qp, const struct config *c);
struct ibv_ah *ah_make(struct ibv_pd *pd, const struct config *c,
		       const union ibv_gid *gid);
bool grh_check(const struct ibv_grh *grh, const union ibv_gid *sgid,
	       const union ibv_gid *dgid);
union ibv_gid gid_of(enum gid_choice choice);

#define QKEY	0x11223344

/* ---- upset.c ---- */

extern int region_paging;	/* config.odp, for region_make() */
void upset_add(struct region *r);
void upset_remove(struct region *r);
bool upset_start(void);
void upset_stop(void);

/* ---- flow.c, fail.c ---- */

bool flow_case(const struct config *c);

struct fail_case {
	const char *name;
	bool (*run)(const struct config *c);
};

void outcome(const char *name);
extern const struct fail_case fail_cases[];
extern const size_t num_fail_cases;

#endif
