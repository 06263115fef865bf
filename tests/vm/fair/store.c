// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A program that keeps storing producer indices: its queues are always full of
 * WQEs that cost the program nothing, and that the kernel works through.
 */
#include <fcntl.h>
#include <rdma/arx-abi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fair.h"

#define QUEUES	8

/* What the kernel does with the WQEs. */
enum store { RECEIVES, SENDS, LOCAL, ORPHANS, STORES };

static const char *const store_names[] = {
	"receives", "sends", "local", "orphans",
};

/* Receives that are flushed; those of orphans by the thread of a child. */
static bool receives(enum store store)
{
	return store == RECEIVES || store == ORPHANS;
}

struct queue {
	struct ibv_qp *qp;
	volatile struct arx_ring_hdr *ring;
	volatile struct arx_ring_hdr *cq;
	uint32_t seen;
};

/* The largest mapping of the device since the last call. */
static volatile struct arx_ring_hdr *new_ring(size_t *size)
{
	static unsigned long known[8 * QUEUES];
	static int count;
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to, found = 0;
	char line[512];

	check(maps != NULL, "/proc/self/maps");
	for (*size = 0; fgets(line, sizeof(line), maps);) {
		int i;

		if (!strstr(line, "uverbs") ||
		    sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		for (i = 0; i < count && known[i] != from; i++)
			;
		if (i < count)
			continue;
		check(count < 8 * QUEUES, "mappings");
		known[count++] = from;
		if (to - from > *size) {
			*size = to - from;
			found = from;
		}
	}
	fclose(maps);
	check(found, "a ring");
	return (void *)found;
}

/* On every descriptor; only the doorbell accepts it. */
static void kick(struct queue *q)
{
	int fd;

	for (fd = 3; fd < 32; fd++)
		ioctl(fd, ARX_IOCTL_KICK, (unsigned long)q->qp->qp_num);
}

static void *entries_of(volatile struct arx_ring_hdr *ring)
{
	return (char *)ring + ARX_RING_ENTRIES_OFFSET;
}

/* Invalidations of a window, which succeed as often as they are tried. */
static void fill_local(volatile struct arx_ring_hdr *ring, size_t size)
{
	struct arx_send_wqe wqe = {
		.opcode = IB_UVERBS_WR_LOCAL_INV,
		.flags = IBV_SEND_SIGNALED,
		.ex = ends[0].mw->rkey,
	};
	size_t at = ARX_RING_ENTRIES_OFFSET;

	for (; at + ARX_WQE_ALIGN <= size; at += ARX_WQE_ALIGN)
		memcpy((char *)ring + at, &wqe, sizeof(wqe));
}

/* Failed before it could send anything. */
static void fail_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS),
	      "INIT");
	attr.qp_state = IBV_QPS_ERR;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ERR");
}

static void make_queue(struct queue *q, enum store store)
{
	static const struct kind kind = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_4096, .rd = 1,
	};
	struct ibv_cq *cq = ibv_create_cq(ends[0].context, 2 * DEPTH, NULL,
					  NULL, 0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = receives(store) ? 1 : DEPTH,
			.max_recv_wr = receives(store) ? DEPTH : 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	size_t size;

	check(cq != NULL, "ibv_create_cq");
	q->cq = new_ring(&size);
	q->qp = ibv_create_qp(ends[0].pd, &attr);
	check(q->qp != NULL, "ibv_create_qp");
	q->ring = new_ring(&size);
	if (store == LOCAL) {
		fill_local(q->ring, size);
		connect_qp(q->qp, &ends[0], q->qp, &ends[0], &kind);
	}
}

/*
 * Take all completions and post as many WQEs, all by stores. True if there were
 * any. The CQ's last entry says how far the kernel is in the send ring.
 */
static int refill(struct queue *q, enum store store)
{
	uint32_t prod = __atomic_load_n(&q->cq->prod, __ATOMIC_ACQUIRE);
	struct arx_cqe *cqes = entries_of(q->cq);
	int some = prod != q->seen;
	uint32_t done = 0;

	if (receives(store))
		done = __atomic_load_n(&q->ring->cons, __ATOMIC_ACQUIRE);
	else if (prod)
		done = cqes[(prod - 1) % (2 * DEPTH)].sq_index;
	q->seen = prod;
	__atomic_store_n(&q->cq->cons, prod, __ATOMIC_RELEASE);
	__atomic_store_n(&q->ring->prod, done + DEPTH, __ATOMIC_RELEASE);
	return some;
}

/*
 * By a child, which ends, if they are @orphans: it had the thread. Their queues
 * are full before, so this process never has to kick, which gives it a thread.
 */
static void fail_qps(struct queue *queues, bool orphans)
{
	pid_t child;
	int i;

	for (i = 0; orphans && i < QUEUES; i++)
		refill(&queues[i], ORPHANS);
	child = orphans ? fork() : 0;
	check(child >= 0, "fork");
	if (child) {
		waitpid(child, NULL, 0);
		return;
	}
	for (i = 0; i < QUEUES; i++)
		fail_qp(queues[i].qp);
	if (orphans)
		_exit(0);
}

/* From now on a cgroup has this process; @procs is the file of its members. */
static void join_cgroup(const char *procs)
{
	FILE *file = fopen(procs, "w");

	check(file && fputs("0", file) >= 0 && !fclose(file), procs);
}

/*
 * A child, in the cgroup of @procs if that is not NULL, which has failed the
 * QP and is stopped.
 */
static pid_t stopped_child(struct queue *q, const char *procs)
{
	pid_t child = fork();

	check(child >= 0, "fork");
	if (!child) {
		if (procs)
			join_cgroup(procs);
		fail_qp(q->qp);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	check(waitpid(child, NULL, WUNTRACED) == child, "a stopped child");
	return child;
}

/*
 * A child in a cgroup fails a QP, so its thread flushes the receives, as slowly
 * as its quota says. When the child has ended, this process gets the other
 * completions without a kick.
 */
void orphan(const char *procs)
{
	struct queue q = {};
	double end;
	pid_t child;

	make_queue(&q, RECEIVES);
	child = stopped_child(&q, procs);
	kill(child, SIGCONT);
	for (end = now() + 2; now() < end; usleep(1000))
		if (!refill(&q, RECEIVES))
			kick(&q);
	refill(&q, RECEIVES);
	kick(&q);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("%u of %u receives flushed at the end\n", q.ring->cons,
	       q.ring->prod);
	for (end = now() + 10; q.ring->cons != q.ring->prod; usleep(1000))
		check(now() < end, "completions of a process that has ended");
}

/*
 * A child fails a QP and is stopped, and so is its thread. One kick flushes all
 * receives.
 */
void stopped(void)
{
	struct queue q = {};
	double end;
	pid_t child;

	make_queue(&q, RECEIVES);
	child = stopped_child(&q, NULL);
	refill(&q, RECEIVES);
	kick(&q);
	for (end = now() + 10; q.ring->cons != q.ring->prod && now() < end;)
		usleep(1000);
	kill(child, SIGKILL);
	printf("%u of %u receives flushed\n", q.ring->cons, q.ring->prod);
	check(now() < end, "completions of a process that is stopped");
}

/* False if there is no store of that name. */
bool store(const char *name, double seconds, const char *procs)
{
	struct queue queues[QUEUES] = {};
	double end, next;
	unsigned long long done = 0;
	enum store store;
	int i;

	for (store = 0; store < STORES; store++)
		if (!strcmp(name, store_names[store]))
			break;
	if (store == STORES)
		return false;
	for (i = 0; i < QUEUES; i++)
		make_queue(&queues[i], store);
	if (store != LOCAL)
		fail_qps(queues, store == ORPHANS);
	join_cgroup(procs);
	next = now();
	end = next + seconds;
	while (now() < end) {
		for (i = 0; i < QUEUES; i++) {
			uint32_t before = queues[i].seen;

			if (!refill(&queues[i], store))
				kick(&queues[i]);
			check(queues[i].cq->prod, "completions");
			done += queues[i].seen - before;
		}
		if (now() >= next) {
			printf("%llu completions of %s\n", done, name);
			fflush(stdout);
			next++;
		}
		usleep(20000);
	}
	return true;
}
