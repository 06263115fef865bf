// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Creates objects of one kind until there are enough or the kernel refuses one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "hostile.h"

#define REGION	(1 << 20)

static uint8_t *region;

static void *make_context(struct objects *o)
{
	return ibv_open_device(o->context->device);
}

static void *make_pd(struct objects *o)
{
	return ibv_alloc_pd(o->context);
}

static void *make_cq(struct objects *o)
{
	return ibv_create_cq(o->context, 1000, NULL, NULL, 0);
}

static void *make_srq(struct objects *o)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = 1000, .max_sge = 2 },
	};

	return ibv_create_srq(o->pd, &attr);
}

static void *make_qp(struct objects *o)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 500, .max_recv_wr = 500,
			.max_send_sge = 2, .max_recv_sge = 2,
		},
	};

	return ibv_create_qp(o->pd, &attr);
}

static void *make_ah(struct objects *o)
{
	struct ibv_ah_attr to = {
		.is_global = 1,
		.port_num = 1,
		.grh = {
			.dgid = o->gid, .sgid_index = o->gid_index,
			.hop_limit = 64,
		},
	};

	return ibv_create_ah(o->pd, &to);
}

static void *make_region(struct objects *o)
{
	return ibv_reg_mr(o->pd, region, REGION, IBV_ACCESS_LOCAL_WRITE);
}

static void *make_small_region(struct objects *o)
{
	return ibv_reg_mr(o->pd, region, 4096, IBV_ACCESS_LOCAL_WRITE);
}

static const struct {
	const char *name;
	void *(*make)(struct objects *o);
} kinds[] = {
	{ "contexts", make_context }, { "pds", make_pd },
	{ "cqs", make_cq },	      { "srqs", make_srq },
	{ "qps", make_qp },	      { "ahs", make_ah },
	{ "regions", make_region },   { "small-regions", make_small_region },
};

/*
 * Prints the number of objects and the errno of the refusal. Everything else
 * must continue.
 */
void exhaust(struct objects *o, const char *kind, unsigned int most)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int n = 0;
	size_t i;

	region = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].name, kind))
			continue;
		errno = 0;
		while (n < most && kinds[i].make(o))
			n++;
		printf("%u %s: %s\n", n, kind,
		       n < most ? strerror(errno) : "enough");
	}
	expect(!ibv_query_qp(o->qp[0], &attr, IBV_QP_STATE, &init),
	       "ibv_query_qp after the last %s: %s", kind, strerror(errno));
}
