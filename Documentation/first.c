// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A first verbs program: two connected queue pairs in one process. The first
 * writes a message into memory of the second, which takes no part in that.
 *
 *	cc -Wall -o first first.c -libverbs
 *	./first arx0
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE	64

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	check(list != NULL, "ibv_get_device_list");
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	check(ctx != NULL, name);
	return ctx;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	check(qp != NULL, "ibv_create_qp");
	return qp;
}

/* A peer on another host sends its GID, QPN and first PSN by other means. */
static void connect_qp(struct ibv_qp *qp, const struct ibv_qp *peer,
		       union ibv_gid gid)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.rq_psn = 0,
		.ah_attr = {
			.port_num = 1,
			.is_global = 1,
			.grh.dgid = gid,
			.grh.sgid_index = 0,
			.grh.hop_limit = 64,
		},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 0,
		.timeout = 14,		/* 4.096 us << 14 = 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	check(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			     IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
	check(!ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV |
			     IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER), "RTR");
	check(!ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN |
			     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
}

static void write_to(struct ibv_qp *qp, const struct ibv_mr *from,
		     const struct ibv_mr *to)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)from->addr,
		.length = SIZE,
		.lkey = from->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = (uintptr_t)to->addr,
			.rkey = to->rkey,
		},
	};
	struct ibv_send_wr *bad;

	check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

int main(int argc, char **argv)
{
	static char source[SIZE] = "hello, remote memory", target[SIZE];
	struct ibv_mr *from, *to;
	struct ibv_qp *a, *b;
	struct ibv_context *ctx;
	union ibv_gid gid;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	struct ibv_wc wc;
	int n;

	ctx = open_device(argc > 1 ? argv[1] : "arx0");
	/* On an arx device each GID is one of RoCEv2: any index will do. */
	check(!ibv_query_gid(ctx, 1, 0, &gid), "ibv_query_gid");
	pd = ibv_alloc_pd(ctx);
	check(pd != NULL, "ibv_alloc_pd");
	cq = ibv_create_cq(ctx, 2, NULL, NULL, 0);
	check(cq != NULL, "ibv_create_cq");
	from = ibv_reg_mr(pd, source, SIZE, 0);
	to = ibv_reg_mr(pd, target, SIZE,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(from && to, "ibv_reg_mr");
	a = create_qp(pd, cq);
	b = create_qp(pd, cq);
	connect_qp(a, b, gid);
	connect_qp(b, a, gid);

	write_to(a, from, to);
	do {
		n = ibv_poll_cq(cq, 1, &wc);
	} while (!n);
	check(n == 1, "ibv_poll_cq");
	printf("%s: \"%s\"\n", ibv_wc_status_str(wc.status), target);

	ibv_destroy_qp(b);
	ibv_destroy_qp(a);
	ibv_dereg_mr(to);
	ibv_dereg_mr(from);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	return wc.status != IBV_WC_SUCCESS;
}
