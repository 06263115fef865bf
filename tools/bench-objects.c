// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * bench-objects DEVICE mr|qp|cq BYTES THREADS SECONDS
 *
 * Create and destroy an object repeatedly in each of THREADS threads: a region
 * of BYTES, or a queue pair or completion queue of usual size. Prints, as JSON,
 * microseconds for one object, from the number of all threads.
 */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static char kind;
static size_t bytes;
static double end;

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

static void one_region(void *mem)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, bytes, IBV_ACCESS_LOCAL_WRITE);

	check(mr && !ibv_dereg_mr(mr), "a region");
}

static void one_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 128, .max_recv_wr = 128, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	check(qp && !ibv_destroy_qp(qp), "a QP");
}

static void one_cq(void)
{
	struct ibv_cq *new = ibv_create_cq(context, 256, NULL, NULL, 0);

	check(new && !ibv_destroy_cq(new), "a CQ");
}

static void one(void *mem)
{
	if (kind == 'm')
		one_region(mem);
	else if (kind == 'q')
		one_qp();
	else
		one_cq();
}

static void *work(void *arg)
{
	void *mem = aligned_alloc(4096, bytes);
	long *n = arg;

	check(mem != NULL, "memory");
	memset(mem, 1, bytes);
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

	if (n < 1 || n > 64 || !strchr("mqc", argv[2][0])) {
		fprintf(stderr, "usage: bench-objects DEVICE mr|qp|cq BYTES THREADS SECONDS\n");
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

	start = now();
	end = start + atof(argv[5]);
	for (i = 0; i < n; i++)
		check(!pthread_create(&threads[i], NULL, work, &made[i]), "a thread");
	for (i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		all += made[i];
	}
	printf("{\"us\": %.3f}\n", (now() - start) * 1e6 / all);
	return 0;
}
