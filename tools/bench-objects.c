// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * bench-objects DEVICE mr|among|qp|cq|odp BYTES THREADS SECONDS
 *
 * Create and destroy an object repeatedly in each of THREADS threads: a region
 * of BYTES (among: while there are 100,000 others), or a queue pair or
 * completion queue of usual size; or memory of BYTES that nobody has touched,
 * with a region paged on demand and a WRITE into all of it. Prints, as JSON,
 * microseconds for one object, from the number of all threads. Regions of more
 * than 64 MiB are made of 64 MiB of memory, mapped again and again.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>

#include "bench-verbs.h"

#define OTHERS	100000
#define WINDOW	(64ul << 20)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static char kind;
static size_t bytes;
static pthread_barrier_t ready;
static volatile double end =
	INFINITY; /* set when all threads have their memory */

static void one_region(void *mem)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, bytes, IBV_ACCESS_LOCAL_WRITE);

	check(mr && !ibv_dereg_mr(mr), "a region");
}

static void one_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 128, .max_recv_wr = 128,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	check(qp && !ibv_destroy_qp(qp), "a QP");
}

static void one_cq(void)
{
	struct ibv_cq *new = ibv_create_cq(context, 256, NULL, NULL, 0);

	check(new && !ibv_destroy_cq(new), "a CQ");
}

/* A QP of this thread that is connected to itself. */
static struct ibv_qp *loop(struct ibv_cq *own)
{
	struct ibv_qp_init_attr init = {
		.send_cq = own,
		.recv_cq = own,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = {
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr.grh = { .hop_limit = 1, .sgid_index = 1 },
	};

	check(qp && !ibv_query_gid(context, 1, 1, &attr.ah_attr.grh.dgid),
	      "a QP and its GID");
	attr.dest_qp_num = qp->qp_num;
	connect_rc(qp, attr);
	return qp;
}

static void one_touch(void *mem)
{
	static __thread struct ibv_cq *own;
	static __thread struct ibv_qp *qp;
	static __thread struct ibv_mr *from;
	void *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr =
		ibv_reg_mr(pd, fresh, bytes,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = { .addr = (uintptr_t)mem, .length = bytes };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc;
	int n;

	if (!qp) {
		own = ibv_create_cq(context, 16, NULL, NULL, 0);
		check(own != NULL, "a CQ");
		qp = loop(own);
		from = ibv_reg_mr(pd, mem, bytes, 0);
	}
	check(fresh != MAP_FAILED && mr && from, "regions");
	sge.lkey = from->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)fresh;
	wr.wr.rdma.rkey = mr->rkey;
	check(!ibv_post_send(qp, &wr, &bad), "a WRITE");
	do
		n = ibv_poll_cq(own, 1, &wc);
	while (!n);
	check(n == 1 && wc.status == IBV_WC_SUCCESS, "its completion");
	check(!ibv_dereg_mr(mr) && !munmap(fresh, bytes), "the end of memory");
}

static void one(void *mem)
{
	if (kind == 'm' || kind == 'a')
		one_region(mem);
	else if (kind == 'o')
		one_touch(mem);
	else if (kind == 'q')
		one_qp();
	else
		one_cq();
}

/* Memory of @bytes, which is there. */
static void *make_memory(void)
{
	int fd = memfd_create("bench", 0);
	char *mem = mmap(NULL, bytes, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t at, len = bytes < WINDOW ? bytes : WINDOW;

	check(fd >= 0 && mem != MAP_FAILED && !ftruncate(fd, len), "memory");
	for (at = 0; at < bytes; at += len) {
		check(mmap(mem + at, len, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED,
		      "memory");
		memset(mem + at, 1, at ? 1 : len);
	}
	close(fd);
	return mem;
}

static void make_others(void)
{
	void *page = aligned_alloc(4096, 4096);
	int i;

	for (i = 0; i < OTHERS; i++)
		check(ibv_reg_mr(pd, page, 4096, IBV_ACCESS_LOCAL_WRITE) !=
			      NULL,
		      "a region");
}

static void *work(void *arg)
{
	void *mem = make_memory();
	long *n = arg;

	pthread_barrier_wait(&ready);
	do {
		one(mem);
		++*n;
	} while (now() < end);
	return NULL;
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	pthread_t threads[64];
	long made[64] = {}, all = 0;
	int i, n = argc == 6 ? atoi(argv[4]) : 0;
	double start;

	if (n < 1 || n > 64 || !strchr("maqco", argv[2][0])) {
		fprintf(stderr,
			"usage: bench-objects DEVICE mr|among|qp|cq|odp BYTES THREADS SECONDS\n");
		return 2;
	}
	kind = argv[2][0];
	bytes = strtoul(argv[3], NULL, 0);
	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), argv[1]))
			context = ibv_open_device(list[i]);
	check(context != NULL, argv[1]);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 256, NULL, NULL, 0);
	check(pd && cq, "objects");
	if (kind == 'a')
		make_others();

	pthread_barrier_init(&ready, NULL, n + 1);
	for (i = 0; i < n; i++)
		check(!pthread_create(&threads[i], NULL, work, &made[i]),
		      "a thread");
	pthread_barrier_wait(&ready);
	start = now();
	end = start + atof(argv[5]);
	for (i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		all += made[i];
	}
	printf("{\"us\": %.3f}\n", (now() - start) * 1e6 / all);
	return 0;
}
