// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * limits rings DEVICE MOST
 *	creates CQs of half a MiB until one is refused or there are MOST; prints
 *	the number and the error, waits for input, destroys them, and does that
 *	once more
 * limits dm DEVICE
 *	allocates device memory, a MiB at a time, until it is refused; prints
 *	the number and the error, frees one, allocates one
 * limits groups DEVICE
 *	attaches a UD QP to multicast groups; prints the number and the error
 * limits exit DEVICE REGIONS QPS
 *	makes regions without memory and QPs, prints "ready", waits
 * limits most DEVICE pd|ah|mr|cq
 *	creates objects until one is refused; prints the number, the promised
 *	number, and the error; destroys one, creates one
 * limits longest DEVICE
 *	creates one CQ, one SRQ and one QP with as many entries as the device
 *	reports, resizes the CQ and the SRQ, and destroys them
 */
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of 64 bytes each, a power of two of them, and a header: 516 KiB. */
#define CQES	8000

static struct ibv_context *context;
static struct ibv_pd *pd;

static void check(int good, const char *what)
{
	if (good)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	check(context != NULL, name);
	pd = ibv_alloc_pd(context);
	check(pd != NULL, "ibv_alloc_pd");
}

static const char *error(int number)
{
	return number ? strerrorname_np(number) : "none";
}

static void wait_for_input(void)
{
	char c;

	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) == 1)
		if (c == '\n')
			return;
}

static void rings(int most)
{
	struct ibv_cq **cq = calloc(most, sizeof(*cq));
	int round, n;

	for (round = 0; round < 2; round++) {
		for (n = 0, errno = 0; n < most; n++) {
			cq[n] = ibv_create_cq(context, CQES, NULL, NULL, 0);
			if (!cq[n])
				break;
		}
		printf("%d rings, error %s\n", n, error(n < most ? errno : 0));
		wait_for_input();
		while (n--)
			check(!ibv_destroy_cq(cq[n]), "ibv_destroy_cq");
	}
}

static void device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 1 << 20 };
	struct ibv_dm *dm[100];
	int n;

	for (n = 0; n < 100; n++) {
		dm[n] = ibv_alloc_dm(context, &attr);
		if (!dm[n])
			break;
	}
	printf("%d MiB of device memory, error %s\n", n,
	       error(n < 100 ? errno : 0));
	check(n && !ibv_free_dm(dm[n - 1]), "ibv_free_dm");
	check(ibv_alloc_dm(context, &attr) != NULL, "one more");
}

static void groups(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &attr) : NULL;
	union ibv_gid gid = {
		.raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 7 }
	};
	int n, err = 0;

	check(qp != NULL, "a QP");
	for (n = 0; n < 100; n++) {
		gid.raw[15] = n;
		err = ibv_attach_mcast(qp, &gid, 0);
		if (err)
			break;
	}
	printf("%d groups, error %s\n", n, error(err));
	while (n--) {
		gid.raw[15] = n;
		check(!ibv_detach_mcast(qp, &gid, 0), "ibv_detach_mcast");
	}
}

static void make_for_exit(int regions, int qps)
{
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	char *mem = aligned_alloc(4096, 4096);

	*mem = 1;
	/*
	 * A page for the first regions, as many as the limit of pinned memory
	 * allows.
	 */
	while (regions--)
		check(ibv_reg_mr(pd, mem, regions < 10000 ? 4096 : 0, 0) !=
			      NULL,
		      "ibv_reg_mr");
	while (qps--)
		check(ibv_create_qp(pd, &attr) != NULL, "ibv_create_qp");
	printf("ready\n");
	wait_for_input();
	_exit(0);
}

/* Kinds of objects that need little memory */
static struct ibv_ah_attr to = { .is_global = 1, .port_num = 1 };

static void *make_pd(void)
{
	return ibv_alloc_pd(context);
}

static void *make_ah(void)
{
	return ibv_create_ah(pd, &to);
}

static void *make_mr(void)
{
	static char mem[1];

	return ibv_reg_mr(pd, mem, 0, 0);
}

static void *make_cq(void)
{
	return ibv_create_cq(context, 1, NULL, NULL, 0);
}

static int end_pd(void *object)
{
	return ibv_dealloc_pd(object);
}

static int end_ah(void *object)
{
	return ibv_destroy_ah(object);
}

static int end_mr(void *object)
{
	return ibv_dereg_mr(object);
}

static int end_cq(void *object)
{
	return ibv_destroy_cq(object);
}

static const struct kind {
	const char *name;
	size_t limit;	/* offset in struct ibv_device_attr */
	void *(*make)(void);
	int (*end)(void *object);
} kinds[] = {
	{ "pd", offsetof(struct ibv_device_attr, max_pd), make_pd, end_pd },
	{ "ah", offsetof(struct ibv_device_attr, max_ah), make_ah, end_ah },
	{ "mr", offsetof(struct ibv_device_attr, max_mr), make_mr, end_mr },
	{ "cq", offsetof(struct ibv_device_attr, max_cq), make_cq, end_cq },
	{}
};

static const struct kind *kind_of(const char *name)
{
	const struct kind *kind;

	for (kind = kinds; kind->name; kind++)
		if (!strcmp(kind->name, name))
			return kind;
	exit(2);
}

/* Keeps the last object only: the process's end destroys the others. */
static void most(const char *name)
{
	const struct kind *kind = kind_of(name);
	struct ibv_device_attr attr;
	void *last = NULL, *new;
	int n, promised;

	check(!ibv_query_device(context, &attr), "ibv_query_device");
	promised = *(int *)((char *)&attr + kind->limit);
	check(!ibv_query_gid(context, 1, 0, &to.grh.dgid), "ibv_query_gid");
	for (n = 0, errno = 0; n <= promised; n++) {
		new = kind->make();
		if (!new)
			break;
		last = new;
	}
	printf("%d of %d, error %s\n", n, promised, error(new ? 0 : errno));
	check(last && !kind->end(last), "the end of one");
	check(kind->make() != NULL, "one more");
	check(!kind->make(), "one too many");
	fflush(stdout);
	_exit(0);
}

static void longest(void)
{
	struct ibv_srq_init_attr srq_attr = { .attr.max_sge = 1 };
	struct ibv_qp_init_attr qp_attr = { .qp_type = IBV_QPT_RC };
	struct ibv_srq_attr fewer = { 0 };
	struct ibv_device_attr attr;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	check(!ibv_query_device(context, &attr), "ibv_query_device");
	cq = ibv_create_cq(context, attr.max_cqe, NULL, NULL, 0);
	check(cq != NULL, "ibv_create_cq");
	srq_attr.attr.max_wr = attr.max_srq_wr;
	srq = ibv_create_srq(pd, &srq_attr);
	check(srq != NULL, "ibv_create_srq");
	qp_attr.send_cq = cq;
	qp_attr.recv_cq = cq;
	qp_attr.cap.max_send_wr = attr.max_qp_wr;
	qp_attr.cap.max_recv_wr = attr.max_qp_wr;
	qp_attr.cap.max_send_sge = 1;
	qp_attr.cap.max_recv_sge = 1;
	qp = ibv_create_qp(pd, &qp_attr);
	check(qp != NULL, "ibv_create_qp");
	fewer.max_wr = attr.max_srq_wr / 2;
	check(!ibv_modify_srq(srq, &fewer, IBV_SRQ_MAX_WR), "ibv_modify_srq");
	check(!ibv_resize_cq(cq, attr.max_cqe / 2), "ibv_resize_cq");
	check(!ibv_resize_cq(cq, attr.max_cqe), "ibv_resize_cq");
	printf("%d CQEs, %d receives of an SRQ, %d requests of each queue\n",
	       attr.max_cqe, attr.max_srq_wr, attr.max_qp_wr);
	check(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	check(!ibv_destroy_srq(srq), "ibv_destroy_srq");
	check(!ibv_destroy_cq(cq), "ibv_destroy_cq");
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	open_device(argv[2]);
	if (!strcmp(argv[1], "rings") && argc == 4)
		rings(atoi(argv[3]));
	else if (!strcmp(argv[1], "longest"))
		longest();
	else if (!strcmp(argv[1], "dm"))
		device_memory();
	else if (!strcmp(argv[1], "groups"))
		groups();
	else if (!strcmp(argv[1], "exit") && argc == 5)
		make_for_exit(atoi(argv[3]), atoi(argv[4]));
	else if (!strcmp(argv[1], "most") && argc == 4)
		most(argv[3]);
	else
		return 2;
	return 0;
}
