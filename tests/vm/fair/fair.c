// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two connected QPs of one process, and the part of a CPU that they may take.
 *
 *	fair longest DEVICE US THREADS
 *		no section with bottom halves off is longer than US, by
 *		arx_probe.ko
 *	fair hog DEVICE SECONDS
 *		65536 writes of 1 MiB, as many as the kernel sends in the time
 *	fair share SECONDS
 *		a program on each CPU that only counts: the part of the CPUs
 *		that other programs took
 */
#define _GNU_SOURCE		/* for CPU sets */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEPTH	32768
#define LONG	(1 << 20)
#define RECVS	256

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_mw *mw;
static union ibv_gid gid;
static int gid_index;
static char *buffer;

struct pair {
	struct ibv_cq *cq;	/* of sends */
	struct ibv_cq *rcq;
	struct ibv_qp *qp;
	struct ibv_qp *peer;
};

static void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_gid_entry entries[32];
	ssize_t n;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	check(context != NULL, name);
	n = ibv_query_gid_table(context, entries, 32, 0);
	check(n > 0, "GIDs");
	gid = entries[n - 1].gid;
	gid_index = entries[n - 1].gid_index;
	pd = ibv_alloc_pd(context);
	check(pd != NULL, "ibv_alloc_pd");
	buffer = aligned_alloc(4096, 2 * LONG);
	memset(buffer, 1, 2 * LONG);
	mr = ibv_reg_mr(pd, buffer, 2 * LONG, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	check(mr != NULL, "ibv_reg_mr");
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	check(mw != NULL, "ibv_alloc_mw");
}

static void connect_qp(struct ibv_qp *from, struct ibv_qp *to, enum ibv_mtu mtu, int rd)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = mtu, .dest_qp_num = to->qp_num, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1,
		.max_rd_atomic = rd, .max_dest_rd_atomic = rd,
		.ah_attr = { .port_num = 1, .is_global = 1, .grh = { .dgid = gid, .sgid_index = gid_index, .hop_limit = 64 } },
	};

	check(!ibv_modify_qp(from, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(from, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(from, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

static void make_pair(struct pair *p, enum ibv_mtu mtu, int rd)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = RECVS, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	p->cq = attr.send_cq = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
	p->rcq = attr.recv_cq = ibv_create_cq(context, 2 * RECVS, NULL, NULL, 0);
	check(p->cq && p->rcq, "ibv_create_cq");
	p->qp = ibv_create_qp(pd, &attr);
	p->peer = ibv_create_qp(pd, &attr);
	check(p->qp && p->peer, "ibv_create_qp");
	connect_qp(p->qp, p->peer, mtu, rd);
	connect_qp(p->peer, p->qp, mtu, rd);
}

static void free_pair(struct pair *p)
{
	ibv_destroy_qp(p->qp);
	ibv_destroy_qp(p->peer);
	ibv_destroy_cq(p->cq);
	ibv_destroy_cq(p->rcq);
}

/* Requests of a second thread have this wr_id. */
#define ANOTHER	1

/* Post @n requests by one call; the last one is signalled. */
static void post(struct ibv_qp *qp, struct ibv_cq *cq, enum ibv_wr_opcode op, int flags, uint32_t length, int n)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffer, .length = length, .lkey = mr->lkey };
	struct ibv_send_wr *wrs = calloc(n, sizeof(*wrs)), *bad;
	int i;

	for (i = 0; i < n; i++) {
		wrs[i] = (struct ibv_send_wr) {
			.next = i + 1 < n ? &wrs[i + 1] : NULL, .sg_list = &sge, .num_sge = 1, .opcode = op,
			.send_flags = flags | (i + 1 == n ? IBV_SEND_SIGNALED : 0),
			.wr.rdma = { .remote_addr = (uintptr_t)buffer + LONG, .rkey = mr->rkey },
		};
		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wrs[i].wr.atomic.remote_addr = (uintptr_t)buffer + LONG;
			wrs[i].wr.atomic.compare_add = 1;
			wrs[i].wr.atomic.rkey = mr->rkey;
		}
		if (op == IBV_WR_LOCAL_INV) {
			wrs[i].num_sge = 0;
			wrs[i].invalidate_rkey = mw->rkey;
		}
	}
	/*
	 * Another thread may have filled the queue: its completions free slots.
	 */
	for (bad = wrs; bad && ibv_post_send(qp, bad, &bad) == ENOMEM;) {
		struct ibv_wc wc;

		ibv_poll_cq(cq, 1, &wc);
	}
	free(wrs);
}

static void post_recvs(struct ibv_qp *qp, int n)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffer + LONG, .length = LONG, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	while (n--)
		check(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

/*
 * Post local work behind a message for which there is no receive. When the
 * receive comes, all of the work is complete at once.
 */
static void post_behind(struct pair *p, enum ibv_wr_opcode op, int n)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffer, .length = 8, .lkey = mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	check(!ibv_post_send(p->qp, &wr, &bad), "ibv_post_send");
	post(p->qp, p->cq, op, 0, 0, n);
	usleep(300000);
	post_recvs(p->peer, 1);
}

/* Wait until a list of @op is complete. */
static void wait_for(struct pair *p, enum ibv_wr_opcode op)
{
	struct ibv_wc wc[RECVS];
	int n;

	while (!(n = ibv_poll_cq(p->cq, 1, wc)) || (n == 1 && wc[0].wr_id == ANOTHER)) {
		if (op != IBV_WR_SEND)
			continue;
		n = ibv_poll_cq(p->rcq, RECVS, wc);
		check(n >= 0, "ibv_poll_cq");
		post_recvs(p->peer, n);
	}
	if (n < 0 || wc[0].status != IBV_WC_SUCCESS) {
		printf("completion: %s\n", n < 0 ? "none" : ibv_wc_status_str(wc[0].status));
		exit(1);
	}
}

static unsigned long probe(void)
{
	FILE *file = fopen("/sys/module/arx_probe/parameters/longest", "r");
	unsigned long us;

	check(file && fscanf(file, "%lu", &us) == 1, "arx_probe");
	fclose(file);
	return us;
}

/*
 * A second thread that posts short writes to the same QP, one after the other.
 */
static atomic_bool another_ends;

static void *another(void *qp)
{
	unsigned int n;

	for (n = 0; !another_ends; n++) {
		struct ibv_sge sge = { .addr = (uintptr_t)buffer, .length = 8, .lkey = mr->lkey };
		struct ibv_send_wr wr = {
			.wr_id = ANOTHER, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = n % 64 ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = (uintptr_t)buffer + LONG, .rkey = mr->rkey },
		}, *bad;

		while (ibv_post_send(qp, &wr, &bad) && !another_ends)
			;	/* the queue may be full */
	}
	return NULL;
}

struct way {
	const char *name;
	enum ibv_wr_opcode op;
	uint32_t length;
	int n;
};

static const struct way ways[] = {
	{ "write", IBV_WR_RDMA_WRITE, LONG, 64 },
	{ "write 8", IBV_WR_RDMA_WRITE, 8, 2048 },
	{ "send", IBV_WR_SEND, LONG, 64 },
	{ "read", IBV_WR_RDMA_READ, LONG, 64 },
	{ "read 4096", IBV_WR_RDMA_READ, 4096, 1024 },
	{ "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1024 },
	{ "atomic write", IBV_WR_ATOMIC_WRITE, 8, 1024 },
	{ "invalidate", IBV_WR_LOCAL_INV, 0, 8192 },
};

/* True for requests that max_rd_atomic and fences concern. */
static bool fetches(enum ibv_wr_opcode op)
{
	return op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_WRITE;
}

static unsigned long measure(const struct way *way, enum ibv_mtu mtu, int rd, int flags, bool two)
{
	unsigned long longest;
	pthread_t thread;
	struct pair p;

	make_pair(&p, mtu, rd);
	if (way->op == IBV_WR_SEND)
		post_recvs(p.peer, RECVS);
	another_ends = false;
	probe();
	if (two)
		check(!pthread_create(&thread, NULL, another, p.qp), "pthread_create");
	if (way->op == IBV_WR_LOCAL_INV)
		post_behind(&p, way->op, way->n);
	else
		post(p.qp, p.cq, way->op, flags, way->length, way->n);
	wait_for(&p, way->op);
	longest = probe();
	another_ends = true;
	if (two)
		pthread_join(thread, NULL);
	free_pair(&p);
	return longest;
}

/*
 * The host of an emulated machine may stop one of its CPUs while it holds a
 * lock. Another CPU then waits for the lock, with bottom halves off, for as
 * long as the host likes. Only a length that every measurement reaches is the
 * kernel's.
 */
#define TRIES	40

static int longest(unsigned long most, bool two)
{
	int bad = 0, i;
	size_t w;

	for (w = 0; w < sizeof(ways) / sizeof(*ways); w++) {
		for (i = 0; i < 8; i++) {
			enum ibv_mtu mtu = i & 1 ? IBV_MTU_4096 : IBV_MTU_256;
			int rd = i & 2 ? 16 : 1, tries = TRIES;
			bool fence = i & 4;
			unsigned long us, least = -1UL;
			double start = now();

			if ((rd == 1 || fence) && !fetches(ways[w].op))
				continue;	/* the same */
			do {
				us = measure(&ways[w], mtu, rd, fence ? IBV_SEND_FENCE : 0, two);
				least = us < least ? us : least;
			} while (least > most && --tries);
			printf("%s x %d, MTU %d, max_rd_atomic %d%s%s: %lu us (%d tries, %.2f s)\n", ways[w].name, ways[w].n,
			       i & 1 ? 4096 : 256, rd, fence ? ", fence" : "", two ? ", two threads" : "", least,
			       TRIES - tries + !!tries, now() - start);
			bad += least > most;
		}
	}
	return bad;
}

static void hog(double seconds)
{
	double end = now() + seconds;
	struct ibv_wc wc;
	struct pair p[2];
	int i;

	for (i = 0; i < 2; i++)
		make_pair(&p[i], IBV_MTU_4096, 1);
	for (i = 0; i < 2; i++)
		post(p[i].qp, p[i].cq, IBV_WR_RDMA_WRITE, 0, LONG, DEPTH);
	while (now() < end) {
		ibv_poll_cq(p[0].cq, 1, &wc);
		usleep(20000);
	}
}

static void count(double seconds)
{
	double end = now() + seconds;

	while (now() < end)
		;
}

/* Seconds for which CPUs were idle, from /proc/stat. */
static double idle(void)
{
	unsigned long user, nice, system, idle, iowait;
	FILE *file = fopen("/proc/stat", "r");

	check(file && fscanf(file, "cpu %lu %lu %lu %lu %lu", &user, &nice, &system, &idle, &iowait) == 5, "/proc/stat");
	fclose(file);
	return (double)(idle + iowait) / sysconf(_SC_CLK_TCK);
}

/* Prints the part of a CPU that other programs took. */
static void share(double seconds)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), i;
	double start = now(), before = idle(), took;
	struct rusage usage;

	for (i = 0; i < cpus; i++) {
		cpu_set_t set;

		if (fork())
			continue;
		CPU_ZERO(&set);
		CPU_SET(i, &set);
		check(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
		count(seconds);
		exit(0);
	}
	while (wait(NULL) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &usage);
	took = (now() - start) * cpus - (idle() - before);
	took -= usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6;
	took -= usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6;
	printf("%.0f\n", 100 * took / seconds);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "share")) {
		share(atof(argv[2]));
		return 0;
	}
	if (argc < 4)
		return 2;
	open_device(argv[2]);
	if (!strcmp(argv[1], "longest"))
		return longest(strtoul(argv[3], NULL, 0), argc > 4 && atoi(argv[4]) > 1) != 0;
	if (!strcmp(argv[1], "hog"))
		hog(atof(argv[3]));
	return 0;
}
