// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How long bottom halves are off at a time, by arx_probe.ko: while requests of
 * each kind are processed, while QPs with full queues end, while many QPs wait
 * for their timers, and while datagrams reach the members of a large group.
 */
#define _GNU_SOURCE		/* for setlinebuf() */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fair.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static unsigned long probe(void)
{
	FILE *file = fopen("/sys/module/arx_probe/parameters/longest", "r");
	unsigned long us;

	check(file && fscanf(file, "%lu", &us) == 1, "arx_probe");
	fclose(file);
	return us;
}

/*
 * The host of an emulated machine may stop one of its CPUs while it holds a
 * lock. Another CPU then waits for the lock, with bottom halves off, for as
 * long as the host likes. Only a length that every measurement reaches is the
 * kernel's.
 */
#define TRIES	40

/* One measurement; returns microseconds. */
typedef unsigned long measure_fn(const void *what, const struct kind *kind,
				 int flags, bool two);

static int bounded(measure_fn *measure, const void *what,
		   const struct kind *kind, int flags, bool two,
		   unsigned long most, const char *name)
{
	unsigned long us, least = -1UL;
	double start = now();
	int tries = TRIES;

	do {
		us = measure(what, kind, flags, two);
		least = us < least ? us : least;
	} while (least > most && --tries);
	printf("%s: %lu us (%d tries, %.2f s)\n", name, least,
	       TRIES - tries + !!tries, now() - start);
	return least > most;
}

/* ---- requests ---- */

/*
 * A second thread that posts short writes to the same QP, one after the other.
 */
static atomic_bool another_ends;

static void *another(void *arg)
{
	struct pair *p = arg;
	unsigned int n;

	for (n = 0; !another_ends; n++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)ends[0].buffer, .length = 8,
			.lkey = ends[0].mr->lkey,
		};
		struct ibv_send_wr wr = {
			.wr_id = ANOTHER, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = n % 64 ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = {
				.remote_addr = (uintptr_t)ends[1].buffer + LONG,
				.rkey = ends[1].mr->rkey,
			},
		}, *bad;

		while (ibv_post_send(p->qp, &wr, &bad) && !another_ends)
			;	/* the queue may be full */
	}
	return NULL;
}

struct way {
	const char *group;
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode op;
	uint32_t length;
	int n;
	bool srq;
};

static const struct way ways[] = {
	{ "rc", "write", IBV_QPT_RC, IBV_WR_RDMA_WRITE, LONG, 64, false },
	{ "rc", "write 8", IBV_QPT_RC, IBV_WR_RDMA_WRITE, 8, 2048, false },
	{ "rc", "send", IBV_QPT_RC, IBV_WR_SEND, LONG, 64, false },
	{ "rc", "read", IBV_QPT_RC, IBV_WR_RDMA_READ, LONG, 64, false },
	{ "rc", "read 4096", IBV_QPT_RC, IBV_WR_RDMA_READ, 4096, 1024, false },
	{ "rc", "atomic", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1024,
	  false },
	{ "rc", "atomic write", IBV_QPT_RC, IBV_WR_ATOMIC_WRITE, 8, 1024,
	  false },
	{ "rc", "invalidate", IBV_QPT_RC, IBV_WR_LOCAL_INV, 0, 8192, false },
	{ "kinds", "write with immediate", IBV_QPT_RC,
	  IBV_WR_RDMA_WRITE_WITH_IMM, 8, 1024, false },
	{ "kinds", "flush", IBV_QPT_RC, IBV_WR_FLUSH, LONG, 1024, false },
	{ "kinds", "send 8 to SRQ", IBV_QPT_RC, IBV_WR_SEND, 8, 1024, true },
	{ "kinds", "XRC write", IBV_QPT_XRC_SEND, IBV_WR_RDMA_WRITE, LONG, 4,
	  false },
	{ "kinds", "XRC send", IBV_QPT_XRC_SEND, IBV_WR_SEND, 8, 1024, false },
	{ "kinds", "XRC read", IBV_QPT_XRC_SEND, IBV_WR_RDMA_READ, LONG, 64,
	  false },
	{ "kinds", "XRC atomic", IBV_QPT_XRC_SEND, IBV_WR_ATOMIC_FETCH_AND_ADD,
	  8, 1024, false },
	{ "kinds", "UC write", IBV_QPT_UC, IBV_WR_RDMA_WRITE, LONG, 64, false },
	{ "kinds", "UC send 8", IBV_QPT_UC, IBV_WR_SEND, 8, 2048, false },
	{ "kinds", "UD send", IBV_QPT_UD, IBV_WR_SEND, 4096, 1024, false },
	{ "kinds", "UD send 8 to SRQ", IBV_QPT_UD, IBV_WR_SEND, 8, 2048, true },
};

/* True for requests that max_rd_atomic and fences concern. */
static bool fetches(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	       op == IBV_WR_ATOMIC_WRITE || op == IBV_WR_FLUSH;
}

static bool receives(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Wait until a list of @op is complete. */
static void wait_for(struct pair *p, enum ibv_wr_opcode op)
{
	struct ibv_wc wc[RECVS];
	int n;

	while (!(n = ibv_poll_cq(p->cq, 1, wc)) ||
	       (n == 1 && wc[0].wr_id == ANOTHER)) {
		if (!receives(op))
			continue;
		n = ibv_poll_cq(p->rcq, RECVS, wc);
		check(n >= 0, "ibv_poll_cq");
		post_recvs(p, n);
	}
	if (n < 0 || wc[0].status != IBV_WC_SUCCESS) {
		printf("completion: %s\n",
		       n < 0 ? "none" : ibv_wc_status_str(wc[0].status));
		exit(1);
	}
}

/*
 * Post local work behind a message for which there is no receive. When the
 * receive comes, all of the work is complete at once. A second thread must not
 * fill the queue before the work is there.
 */
static void post_behind(struct pair *p, enum ibv_wr_opcode op, int n)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ends[0].buffer, .length = 8,
		.lkey = ends[0].mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
	}, *bad;

	check(!ibv_post_send(p->qp, &wr, &bad), "ibv_post_send");
	post(p, op, 0, 0, n);
	usleep(300000);
}

static unsigned long measure_way(const void *what, const struct kind *kind,
				 int flags, bool two)
{
	const struct way *way = what;
	uint32_t length = way->type == IBV_QPT_UD && way->length > ends[0].mtu ?
				  ends[0].mtu :
				  way->length;
	unsigned long us;
	pthread_t thread;
	struct pair p;

	make_pair(&p, kind);
	if (receives(way->op))
		post_recvs(&p, RECVS);
	another_ends = false;
	if (way->op == IBV_WR_LOCAL_INV)
		post_behind(&p, way->op, way->n);
	probe();
	if (two)
		check(!pthread_create(&thread, NULL, another, &p),
		      "pthread_create");
	if (way->op == IBV_WR_LOCAL_INV)
		post_recvs(&p, 1);
	else
		post(&p, way->op, flags, length, way->n);
	wait_for(&p, way->op);
	/* UC and UD are complete before the last packets arrive. */
	if (way->type == IBV_QPT_UC || way->type == IBV_QPT_UD)
		usleep(20000);
	us = probe();
	another_ends = true;
	if (two)
		pthread_join(thread, NULL);
	free_pair(&p);
	return us;
}

static int measure_ways(unsigned long most, bool two, bool all,
			const char *group)
{
	int bad = 0, i;
	size_t w;

	for (w = 0; w < ARRAY_SIZE(ways); w++) {
		const struct way *way = &ways[w];

		for (i = 0; i < 8; i++) {
			struct kind kind = {
				.type = way->type,
				.mtu = i & 1 ? IBV_MTU_4096 : IBV_MTU_256,
				.rd = i & 2 ? 16 : 1,
				.srq = way->srq,
				.recvs = RECVS,
			};
			bool fence = i & 4;
			char name[128];

			if (strcmp(group, "packets") &&
			    strcmp(group, way->group))
				continue;
			if (!strcmp(group, "packets") &&
			    way->op == IBV_WR_LOCAL_INV)
				continue;
			if ((kind.rd == 1 || fence) && !fetches(way->op))
				continue;	/* the same */
			if (way->type == IBV_QPT_UD && kind.mtu == IBV_MTU_256)
				continue;
			/* The sample has the cases with the most packets. */
			if (!all && strcmp(group, "rc") &&
			    i != (way->type == IBV_QPT_UD ? 3 : 2))
				continue;
			snprintf(name, sizeof(name),
				 "%s x %d, MTU %d, max_rd_atomic %d%s%s",
				 way->name, way->n, 128 << kind.mtu, kind.rd,
				 fence ? ", fence" : "",
				 two ? ", two threads" : "");
			bad += bounded(measure_way, way, &kind,
				       fence ? IBV_SEND_FENCE : 0, two, most,
				       name);
		}
	}
	return bad;
}

/* ---- ends ---- */

enum finish { ERROR, RESET, DESTROY, CLOSE, FINISHES };

static const char *const finish_names[] = { "error", "reset", "destroy",
					    "end of the receiver" };

/* Poll until @n requests were flushed. */
static void wait_flushed(struct pair *p, int n)
{
	struct ibv_wc wc[RECVS];
	double end = now() + 60;
	int got;

	while (n > 0) {
		check(now() < end, "flushed requests");
		got = ibv_poll_cq(p->cq, RECVS, wc);
		check(got >= 0, "ibv_poll_cq");
		n -= got;
		got = ibv_poll_cq(p->rcq, RECVS, wc);
		check(got >= 0, "ibv_poll_cq");
		n -= got;
	}
}

/* End a QP whose queues are full. */
static void finish_qp(struct pair *p, enum finish finish)
{
	struct ibv_qp_attr attr = {
		.qp_state = finish == RESET ? IBV_QPS_RESET : IBV_QPS_ERR,
	};

	switch (finish) {
	case ERROR:
	case RESET:
		check(!ibv_modify_qp(p->qp, &attr, IBV_QP_STATE),
		      "ibv_modify_qp");
		if (finish == ERROR)
			wait_flushed(p, 2 * DEPTH);
		break;
	case CLOSE:
		ibv_destroy_qp(p->peer);
		p->peer = NULL;
		usleep(50000);
		break;
	default:
		ibv_destroy_qp(p->qp);
		p->qp = NULL;
	}
}

/* The first request finds no receive, and all others wait behind it. */
static unsigned long measure_end(const void *what, const struct kind *kind,
				 int flags, bool two)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ends[0].buffer + LONG, .length = 8,
		.lkey = ends[0].mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	unsigned long us;
	struct pair p;
	int i;

	make_pair(&p, kind);
	for (i = 0; i < DEPTH; i++)
		check(!ibv_post_recv(p.qp, &wr, &bad), "ibv_post_recv");
	post(&p, IBV_WR_SEND, flags, 8, DEPTH);
	usleep(50000);
	probe();
	finish_qp(&p, *(const enum finish *)what);
	usleep(20000);
	us = probe();
	free_pair(&p);
	return us;
}

static int measure_ends(unsigned long most)
{
	struct kind kind = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_256, .rd = 16, .recvs = DEPTH
	};
	enum finish finish;
	int bad = 0;

	for (finish = ERROR; finish < FINISHES; finish++)
		bad += bounded(measure_end, &finish, &kind, 0, false, most,
			       finish_names[finish]);
	return bad;
}

/* ---- timers of many QPs ---- */

#define PAIRS	200

enum wait { RECEIVE, ANSWER };

static const char *const wait_names[] = { "200 QPs wait for receives",
					  "200 QPs get no answer" };

/*
 * All QPs have a request: one for which there is no receive, or a long one for
 * a QP that is gone. The timers of all QPs expire at about the same time.
 */
static unsigned long measure_wait(const void *what, const struct kind *kind,
				  int flags, bool two)
{
	static struct pair pairs[PAIRS];
	enum wait wait = *(const enum wait *)what;
	unsigned long us;
	int i;

	for (i = 0; i < PAIRS; i++) {
		make_pair(&pairs[i], kind);
		if (wait == ANSWER) {
			ibv_destroy_qp(pairs[i].peer);
			pairs[i].peer = NULL;
		}
	}
	for (i = 0; i < PAIRS; i++)
		post(&pairs[i],
		     wait == ANSWER ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, flags,
		     wait == ANSWER ? LONG / 8 : 8, 1);
	probe();
	usleep(200000);
	us = probe();
	for (i = 0; i < PAIRS; i++)
		free_pair(&pairs[i]);
	return us;
}

static int measure_waits(unsigned long most)
{
	struct kind kind = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_4096, .rd = 1, .depth = 4,
		.recvs = 4, .timeout = 14,
	};
	enum wait wait;
	int bad = 0;

	for (wait = RECEIVE; wait <= ANSWER; wait++)
		bad += bounded(measure_wait, &wait, &kind, 0, false, most,
			       wait_names[wait]);
	return bad;
}

/* ---- groups ---- */

#define MEMBERS		1024
#define DATAGRAMS	16

static struct ibv_qp *members[MEMBERS];

static void join(struct pair *p, union ibv_gid *group)
{
	int i;

	for (i = 0; i < MEMBERS; i++) {
		struct ibv_qp_init_attr attr = {
			.qp_type = IBV_QPT_UD,
			.send_cq = p->rcq,
			.recv_cq = p->rcq,
			.srq = p->srq,
			.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		};

		members[i] = ibv_create_qp(ends[1].pd, &attr);
		check(members[i] != NULL, "ibv_create_qp");
		ready_ud(members[i]);
		check(!ibv_attach_mcast(members[i], group, 0),
		      "ibv_attach_mcast");
	}
	ibv_destroy_ah(p->ah);
	p->ah = make_ah(&ends[0], group);
	p->qpn = 0xffffff;
}

static void leave(union ibv_gid *group)
{
	int i;

	for (i = 0; i < MEMBERS; i++) {
		check(!ibv_detach_mcast(members[i], group, 0),
		      "ibv_detach_mcast");
		ibv_destroy_qp(members[i]);
	}
}

/* Datagrams of the pair's mtu to a group; each member receives them all. */
static unsigned long measure_group(const void *what, const struct kind *kind,
				   int flags, bool two)
{
	struct pair *p = (struct pair *)what;
	double end = now() + 20;
	struct ibv_wc wc[RECVS];
	int left, n;

	while (ibv_poll_cq(p->cq, 1, wc) > 0)
		;
	probe();
	post(p, IBV_WR_SEND, flags, ends[0].mtu, DATAGRAMS);
	for (left = MEMBERS * DATAGRAMS; left > 0; left -= n) {
		check(now() < end, "datagrams of the group");
		n = ibv_poll_cq(p->rcq, RECVS, wc);
		check(n >= 0, "ibv_poll_cq");
		post_recvs(p, n);
	}
	return probe();
}

static int measure_groups(unsigned long most)
{
	struct kind kind = { .type = IBV_QPT_UD, .srq = true, .recvs = DEPTH };
	union ibv_gid group = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 78 } };
	struct pair p;
	int bad;

	make_pair(&p, &kind);
	join(&p, &group);
	post_recvs(&p, DEPTH);
	bad = bounded(measure_group, &p, &kind, 0, false, most,
		      "group of 1024");
	leave(&group);
	free_pair(&p);
	return bad;
}

int longest(unsigned long most, bool two, bool all, const char *group)
{
	setlinebuf(stdout);	/* for a case that does not end */
	if (!strcmp(group, "ends"))
		return measure_ends(most);
	if (!strcmp(group, "waits"))
		return measure_waits(most);
	if (!strcmp(group, "group"))
		return measure_groups(most);
	return measure_ways(most, two, all, group);
}
