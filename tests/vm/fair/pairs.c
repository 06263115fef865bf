// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Devices, QPs and requests. */
#define _GNU_SOURCE		/* for setns() */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "fair.h"

#define ACCESS_QP	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL)

struct end ends[2];

void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* ---- devices ---- */

/* NAME, or NODE:NAME for a device of another network namespace. */
static struct ibv_context *open_device(const char *name)
{
	const char *colon = strchr(name, ':');
	struct ibv_device **list;
	char path[64];
	int fd, i;

	if (colon) {
		snprintf(path, sizeof(path), "/run/netns/%.*s",
			 (int)(colon - name), name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		check(fd >= 0 && !setns(fd, CLONE_NEWNET), path);
		close(fd);
		name = colon + 1;
	}
	list = ibv_get_device_list(NULL);
	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return ibv_open_device(list[i]);
	return NULL;
}

/* The last GID with an IPv4 address. */
static void find_gid(struct end *end)
{
	struct ibv_gid_entry entries[32];
	ssize_t n = ibv_query_gid_table(end->context, entries, 32, 0);

	while (n-- > 0)
		if (entries[n].gid.raw[10] == 0xff &&
		    entries[n].gid.raw[11] == 0xff)
			break;
	check(n >= 0, "GIDs");
	end->gid = entries[n].gid;
	end->gid_index = entries[n].gid_index;
}

static void open_end(struct end *end, const char *name)
{
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_port_attr port;

	end->context = open_device(name);
	check(end->context != NULL, name);
	find_gid(end);
	check(!ibv_query_port(end->context, 1, &port), "ibv_query_port");
	end->mtu = 128u << port.active_mtu;
	end->pd = ibv_alloc_pd(end->context);
	check(end->pd != NULL, "ibv_alloc_pd");
	end->buffer = aligned_alloc(4096, 2 * LONG);
	memset(end->buffer, 1, 2 * LONG);
	end->mr = ibv_reg_mr(end->pd, end->buffer, 2 * LONG,
			     IBV_ACCESS_LOCAL_WRITE | ACCESS_QP);
	check(end->mr != NULL, "ibv_reg_mr");
	end->mw = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2);
	check(end->mw != NULL, "ibv_alloc_mw");
	end->xrcd = ibv_open_xrcd(end->context, &xrcd);
	check(end->xrcd != NULL, "ibv_open_xrcd");
}

void open_ends(const char *here, const char *there)
{
	open_end(&ends[0], here);
	if (strcmp(here, there))
		open_end(&ends[1], there);
	else
		ends[1] = ends[0];
}

/* ---- QPs ---- */

static struct ibv_ah_attr ah_attr(struct end *end, const union ibv_gid *gid)
{
	return (struct ibv_ah_attr){
		.port_num = 1,
		.is_global = 1,
		.grh = {
			.dgid = *gid, .sgid_index = end->gid_index,
			.hop_limit = 64,
		},
	};
}

struct ibv_ah *make_ah(struct end *end, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = ah_attr(end, gid);
	struct ibv_ah *ah = ibv_create_ah(end->pd, &attr);

	if (!ah && errno == ETIMEDOUT)	/* the neighbour may need longer */
		ah = ibv_create_ah(end->pd, &attr);
	check(ah != NULL, "ibv_create_ah");
	return ah;
}

void ready_ud(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
	};

	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_QKEY),
	      "INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

void connect_qp(struct ibv_qp *qp, struct end *end, struct ibv_qp *to,
		struct end *other, const struct kind *kind)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS_QP,
		.path_mtu = kind->mtu,
		.dest_qp_num = to->qp_num,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.timeout = kind->timeout ? kind->timeout : 18,
		.max_rd_atomic = kind->rd,
		.max_dest_rd_atomic = kind->rd,
		.ah_attr = ah_attr(end, &other->gid),
	};
	bool acked = kind->type != IBV_QPT_UC;
	int err;

	if (!acked)
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS),
	      "INIT");
	attr.qp_state = IBV_QPS_RTR;
	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    (acked && qp->qp_type != IBV_QPT_XRC_SEND ?
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER :
				     0));
	check(!err, "RTR");
	attr.qp_state = IBV_QPS_RTS;
	err = ibv_modify_qp(
		qp, &attr,
		IBV_QP_STATE | IBV_QP_SQ_PSN | (acked ? IBV_QP_TIMEOUT : 0) |
		(acked && qp->qp_type != IBV_QPT_XRC_RECV ?
			 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			 IBV_QP_MAX_QP_RD_ATOMIC :
			 0));
	check(!err, "RTS");
}

static struct ibv_srq *make_srq(struct pair *p)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = p->kind.recvs, .max_sge = 1 },
		.srq_type = IBV_SRQT_BASIC,
		.pd = ends[1].pd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
	};
	struct ibv_srq *srq;

	if (p->kind.type == IBV_QPT_XRC_SEND) {
		attr.srq_type = IBV_SRQT_XRC;
		attr.xrcd = ends[1].xrcd;
		attr.cq = p->rcq;
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	}
	srq = ibv_create_srq_ex(ends[1].context, &attr);
	check(srq != NULL, "ibv_create_srq_ex");
	if (p->kind.type == IBV_QPT_XRC_SEND)
		check(!ibv_get_srq_num(srq, &p->srqn), "ibv_get_srq_num");
	return srq;
}

static struct ibv_qp *make_qp(struct pair *p, struct end *end, bool peer)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = p->kind.type,
		.send_cq = p->cq,
		.recv_cq = p->rcq,
		.pd = end->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = {
			.max_send_wr = p->kind.depth,
			.max_recv_wr = p->kind.recvs, .max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp;

	/* A device has its own CQs. Nothing completes where none is polled. */
	if (ends[0].context != ends[1].context && peer)
		attr.send_cq = p->rcq;
	if (ends[0].context != ends[1].context && !peer)
		attr.recv_cq = p->cq;
	if (peer)
		attr.srq = p->srq;
	if (p->kind.type == IBV_QPT_RC) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_FLUSH;
	}
	if (p->kind.type == IBV_QPT_XRC_SEND)
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	if (p->kind.type == IBV_QPT_XRC_SEND && peer) {
		attr = (struct ibv_qp_init_attr_ex){
			.qp_type = IBV_QPT_XRC_RECV,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD,
			.xrcd = end->xrcd,
		};
	}
	qp = ibv_create_qp_ex(end->context, &attr);
	check(qp != NULL, "ibv_create_qp_ex");
	return qp;
}

void make_pair(struct pair *p, const struct kind *kind)
{
	int entries;

	*p = (struct pair) { .kind = *kind };
	if (!kind->depth)
		p->kind.depth = DEPTH;
	entries = p->kind.depth + kind->recvs;
	p->cq = ibv_create_cq(ends[0].context, entries, NULL, NULL, 0);
	p->rcq = ibv_create_cq(ends[1].context, entries, NULL, NULL, 0);
	check(p->cq && p->rcq, "ibv_create_cq");
	if (kind->srq || kind->type == IBV_QPT_XRC_SEND)
		p->srq = make_srq(p);
	p->qp = make_qp(p, &ends[0], false);
	p->peer = make_qp(p, &ends[1], true);
	if (kind->type == IBV_QPT_UD) {
		ready_ud(p->qp);
		ready_ud(p->peer);
		p->ah = make_ah(&ends[0], &ends[1].gid);
		p->qpn = p->peer->qp_num;
	} else {
		connect_qp(p->qp, &ends[0], p->peer, &ends[1], kind);
		connect_qp(p->peer, &ends[1], p->qp, &ends[0], kind);
	}
}

/* An object may have been destroyed before. */
void free_pair(struct pair *p)
{
	if (p->qp)
		ibv_destroy_qp(p->qp);
	if (p->peer)
		ibv_destroy_qp(p->peer);
	if (p->ah)
		ibv_destroy_ah(p->ah);
	if (p->srq)
		ibv_destroy_srq(p->srq);
	ibv_destroy_cq(p->cq);
	ibv_destroy_cq(p->rcq);
}

/* ---- requests ---- */

static void post_flushes(struct pair *p, int flags, uint32_t length, int n)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p->qp);
	int i;

	do {
		ibv_wr_start(qp);
		for (i = 0; i < n; i++) {
			qp->wr_id = 0;
			qp->wr_flags = flags |
				       (i + 1 == n ? IBV_SEND_SIGNALED : 0);
			ibv_wr_flush(qp, ends[1].mr->rkey,
				     (uintptr_t)ends[1].buffer + LONG, length,
				     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		}
	} while (ibv_wr_complete(qp));
}

static void set_request(struct pair *p, struct ibv_send_wr *wr)
{
	uint64_t there = (uintptr_t)ends[1].buffer + LONG;

	if (p->kind.type == IBV_QPT_XRC_SEND)
		wr->qp_type.xrc.remote_srqn = p->srqn;
	if (p->kind.type == IBV_QPT_UD) {
		wr->wr.ud.ah = p->ah;
		wr->wr.ud.remote_qpn = p->qpn;
		wr->wr.ud.remote_qkey = QKEY;
	} else if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = there;
		wr->wr.atomic.compare_add = 1;
		wr->wr.atomic.rkey = ends[1].mr->rkey;
	} else if (wr->opcode == IBV_WR_LOCAL_INV) {
		wr->num_sge = 0;
		wr->invalidate_rkey = ends[0].mw->rkey;
	} else {
		wr->wr.rdma.remote_addr = there;
		wr->wr.rdma.rkey = ends[1].mr->rkey;
	}
}

/* Post @n requests by one call; the last one is signalled. */
void post(struct pair *p, enum ibv_wr_opcode op, int flags, uint32_t length,
	  int n)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ends[0].buffer, .length = length,
		.lkey = ends[0].mr->lkey,
	};
	struct ibv_send_wr *wrs, *bad;
	int i;

	if (op == IBV_WR_FLUSH) {
		post_flushes(p, flags, length, n);
		return;
	}
	wrs = calloc(n, sizeof(*wrs));
	for (i = 0; i < n; i++) {
		wrs[i] = (struct ibv_send_wr){
			.next = i + 1 < n ? &wrs[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = op,
			.send_flags = flags |
				      (i + 1 == n ? IBV_SEND_SIGNALED : 0),
		};
		set_request(p, &wrs[i]);
	}
	/*
	 * Another thread may have filled the queue: its completions free slots.
	 */
	for (bad = wrs; bad && ibv_post_send(p->qp, bad, &bad) == ENOMEM;) {
		struct ibv_wc wc;

		ibv_poll_cq(p->cq, 1, &wc);
	}
	free(wrs);
}

void post_recvs(struct pair *p, int n)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ends[1].buffer + LONG, .length = LONG,
		.lkey = ends[1].mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	while (n--)
		check(!(p->srq ? ibv_post_srq_recv(p->srq, &wr, &bad) :
				 ibv_post_recv(p->peer, &wr, &bad)),
		      "ibv_post_recv");
}
