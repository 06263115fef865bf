/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Pairs of QPs of one process, on one device or on two. */
#ifndef FAIR_H
#define FAIR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define DEPTH	32768		/* of send queues */
#define LONG	(1 << 20)
#define RECVS	256
#define QKEY	0x11111111

/* Requests of a second thread have this wr_id. */
#define ANOTHER	1

/* A device, and memory: the first half is local, peers name the second. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_xrcd *xrcd;
	union ibv_gid gid;
	int gid_index;
	uint32_t mtu;
	char *buffer;
};

/* Where QPs begin, and where their peers are: the same device, or another. */
extern struct end ends[2];

/*
 * What a pair is made for: @type is that of the sender; @depth are entries of
 * send queues (0: DEPTH), @recvs those of receive queues; the receiver's is an
 * SRQ if @srq. @timeout 0: a long one.
 */
struct kind {
	enum ibv_qp_type type;
	enum ibv_mtu mtu;
	int rd;
	bool srq;
	int depth;
	int recvs;
	int timeout;
};

struct pair {
	struct kind kind;
	struct ibv_cq *cq;	/* of sends */
	struct ibv_cq *rcq;	/* of receives, at the peer */
	struct ibv_qp *qp;
	struct ibv_qp *peer;
	struct ibv_srq *srq;
	uint32_t srqn;
	struct ibv_ah *ah;
	uint32_t qpn;		/* to which datagrams go */
};

void check(int good, const char *what);
double now(void);
struct ibv_ah *make_ah(struct end *end, const union ibv_gid *gid);
void open_ends(const char *here, const char *there);
void ready_ud(struct ibv_qp *qp);
void connect_qp(struct ibv_qp *qp, struct end *end, struct ibv_qp *to,
		struct end *other, const struct kind *kind);
void make_pair(struct pair *p, const struct kind *kind);
void free_pair(struct pair *p);
void post(struct pair *p, enum ibv_wr_opcode op, int flags, uint32_t length,
	  int n);
void post_recvs(struct pair *p, int n);

int longest(unsigned long most, bool two, bool all, const char *group);
void orphan(const char *group);
void stopped(void);
bool store(const char *name, double seconds, const char *procs);

#endif /* FAIR_H */
