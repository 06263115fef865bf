// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Threads that call random verbs on the objects of one context.
 *
 * polite: an object is destroyed by its only user; all other verbs may run at
 * the same time. Verbs fail only as the manual pages say.
 *
 * rude: objects are destroyed in the kernel while other threads use them, and
 * two more threads send random commands. libarx keeps its part of the objects,
 * so it continues to use rings whose objects are gone. Any verb may fail.
 *
 * In both modes each thread must make progress: a thread that makes no step for
 * a while hangs in a verb, which is printed.
 */
#define _GNU_SOURCE		/* for pthread_tryjoin_np() */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hostile.h"

#define THREADS		6
#define BUFFER		(256 << 10)
#define ACCESS_REMOTE	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_ATOMIC)
#define GROUPS		4
/* seconds; all threads share the one CPU of the debug kernel */
#define HANG		120
/* seconds for what did not happen in time */
#define LONGER		60

enum kind { PD, CQ, SRQ, XRC_SRQ, MR, MW, AH, QP, KINDS };

static const int count_of[KINDS] = {
	[PD] = 2, [CQ] = 3, [SRQ] = 2, [XRC_SRQ] = 2,
	[MR] = 4, [MW] = 3, [AH] = 2,  [QP] = 8
};

/*
 * An object, or NULL. Users hold the lock for reading, creation and destruction
 * hold it for writing.
 */
struct slot {
	pthread_rwlock_t lock;
	void *_Atomic object;
};

struct worker {
	pthread_t thread;
	uint64_t seed;
	void (*step)(void);
	const char *_Atomic verb;	/* being executed */
	_Atomic uint64_t steps;
};

static struct slot slots[KINDS][8];
static struct worker workers[THREADS + 4];
static _Thread_local struct worker *self;
static struct objects *shared;
static uint8_t *buffer;
static struct ibv_dm *dm;
static bool rude;
static _Atomic bool stop;
static _Atomic uint64_t completions, events, refusals, unexpected;

/* ---- verdicts ---- */

/*
 * errno values that a verb may return when other threads use the same objects.
 */
static bool is_refusal(int err)
{
	return err == EINVAL || err == ENOMEM || err == EBUSY;
}

static int note(const char *verb, int err)
{
	if (!err)
		return 0;
	if (is_refusal(err))
		refusals++;
	else if (!rude && unexpected++ < 20)
		printf("#   %s: %s\n", verb, strerror(err));
	return err;
}

/* The report of a hang prints them. */
static void enter(const char *verb)
{
	self->verb = verb;
}

/* The value of @call, which returns 0 or an errno value. */
#define DO(name, call)		(enter(name), note((name), (call)))

/* The same for a verb that creates an object. */
static void *made(const char *verb, void *object)
{
	if (!object)
		note(verb, errno);
	return object;
}

#define MAKE(name, call)	(enter(name), made((name), (call)))

/* ---- objects ---- */

static struct slot *any_slot(enum kind kind)
{
	return &slots[kind][below(count_of[kind])];
}

static void *use_slot(struct slot *slot)
{
	if (!rude)
		pthread_rwlock_rdlock(&slot->lock);
	return slot->object;
}

static void leave_slot(struct slot *slot)
{
	if (!rude)
		pthread_rwlock_unlock(&slot->lock);
}

static struct ibv_sge random_sge(struct ibv_mr *mr)
{
	return (struct ibv_sge){
		(mr && !mr->addr ? 0 : (uintptr_t)buffer) +
		below(BUFFER - 20000),
		below(4) ? below(200) : below(20000),
		mr && below(64) ? mr->lkey : 0,
	};
}

/*
 * Sometimes in device memory, where addresses begin at 0, or paged on demand.
 */
static struct ibv_mr *make_mr(struct ibv_pd *pd)
{
	if (!below(4))
		return ibv_reg_dm_mr(pd, dm, 0, 1 + below(BUFFER),
				     IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE |
				     IBV_ACCESS_ZERO_BASED |
				     IBV_ACCESS_MW_BIND);
	return ibv_reg_mr(pd, buffer, below(16) ? BUFFER : 1 + below(BUFFER),
			  IBV_ACCESS_LOCAL_WRITE | ACCESS_REMOTE |
			  IBV_ACCESS_MW_BIND |
			  (below(4) ? 0 : IBV_ACCESS_ON_DEMAND));
}

/* Two QPs are a pair of XRC. */
static enum ibv_qp_type type_of(int i)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
		IBV_QPT_UC, IBV_QPT_UC, IBV_QPT_UD,	  IBV_QPT_UD,
	};

	return types[i];
}

static struct ibv_srq *make_xrc_srq(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1 + below(100), .max_sge = 2 },
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.cq = cq,
		.xrcd = shared->xrcd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};

	return ibv_create_srq_ex(shared->context, &attr);
}

static struct ibv_srq *make_xrc_srq_of_slots(struct ibv_pd *pd)
{
	struct slot *slot = any_slot(CQ);
	struct ibv_cq *cq = use_slot(slot);
	void *object = cq ? MAKE("ibv_create_srq_ex", make_xrc_srq(pd, cq)) :
			    NULL;

	leave_slot(slot);
	return object;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq,
			      struct ibv_cq *other, struct ibv_srq *srq, int i)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = other,
		.srq = srq,
		.pd = pd,
		.xrcd = shared->xrcd,
		.comp_mask = type_of(i) == IBV_QPT_XRC_RECV ?
				     IBV_QP_INIT_ATTR_XRCD :
				     IBV_QP_INIT_ATTR_PD,
		.qp_type = type_of(i),
		.sq_sig_all = below(2),
		.cap = {
			.max_send_wr = 1 + below(64),
			.max_recv_wr = 1 + below(64), .max_send_sge = 4,
			.max_recv_sge = 2, .max_inline_data = 64,
		},
	};

	return ibv_create_qp_ex(shared->context, &attr);
}

/* Its parts are in use until it is created. */
static struct ibv_qp *make_qp_of_slots(int i, struct ibv_pd *pd)
{
	struct slot *srq = any_slot(SRQ), *cq = any_slot(CQ),
		    *other = any_slot(CQ);
	void *s = use_slot(srq), *c = use_slot(cq),
	     *d = other == cq ? c : use_slot(other);
	void *object = NULL;

	if (s && c && d)
		object = MAKE("ibv_create_qp",
			      make_qp(pd, c, d, below(3) ? NULL : s, i));
	if (other != cq)
		leave_slot(other);
	leave_slot(cq);
	leave_slot(srq);
	return object;
}

static void *make_in_pd(enum kind kind, int i, struct ibv_pd *pd)
{
	struct ibv_ah_attr to = {
		.is_global = 1,
		.port_num = 1,
		.grh = {
			.dgid = shared->gid, .sgid_index = shared->gid_index,
			.hop_limit = 64,
		},
	};
	struct ibv_srq_init_attr srq = {
		.attr = { .max_wr = 1 + below(100), .max_sge = 2 },
	};

	switch (kind) {
	case SRQ:
		return MAKE("ibv_create_srq", ibv_create_srq(pd, &srq));
	case XRC_SRQ:
		return make_xrc_srq_of_slots(pd);
	case MR:
		return MAKE("ibv_reg_mr", make_mr(pd));
	case MW:
		return MAKE("ibv_alloc_mw",
			    ibv_alloc_mw(pd, below(2) ? IBV_MW_TYPE_1 :
							IBV_MW_TYPE_2));
	case AH:
		return MAKE("ibv_create_ah", ibv_create_ah(pd, &to));
	default:
		return make_qp_of_slots(i, pd);
	}
}

static struct ibv_cq *make_cq(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1 + below(300),
		.channel = below(4) ? shared->channel : NULL,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(shared->context, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static void *make(enum kind kind, int i)
{
	struct slot *slot;
	void *pd, *object = NULL;

	if (kind == PD)
		return MAKE("ibv_alloc_pd", ibv_alloc_pd(shared->context));
	if (kind == CQ)
		return MAKE("ibv_create_cq_ex", make_cq());
	slot = any_slot(PD);
	pd = use_slot(slot);
	if (pd)
		object = make_in_pd(kind, i, pd);
	leave_slot(slot);
	return object;
}

static union ibv_gid group_gid(int n)
{
	return (union ibv_gid){ .raw = { 0xff, 0x0e, [15] = 1 + n } };
}

/* A QP in a group cannot be destroyed. */
static void leave_groups(struct ibv_qp *qp)
{
	union ibv_gid group;
	int n;

	for (n = 0; n < GROUPS; n++) {
		group = group_gid(n);
		while (!ibv_detach_mcast(qp, &group, 0))
			;
	}
}

static int destroy(enum kind kind, void *object)
{
	switch (kind) {
	case PD:
		return DO("ibv_dealloc_pd", ibv_dealloc_pd(object));
	case CQ:
		return DO("ibv_destroy_cq", ibv_destroy_cq(object));
	case SRQ: case XRC_SRQ:
		return DO("ibv_destroy_srq", ibv_destroy_srq(object));
	case MR:
		return DO("ibv_dereg_mr", ibv_dereg_mr(object));
	case MW:
		return DO("ibv_dealloc_mw", ibv_dealloc_mw(object));
	case AH:
		return DO("ibv_destroy_ah", ibv_destroy_ah(object));
	default:
		if (((struct ibv_qp *)object)->qp_type == IBV_QPT_UD)
			leave_groups(object);
		return DO("ibv_destroy_qp", ibv_destroy_qp(object));
	}
}

/* The same in the kernel alone, without libarx. */
static void take_away(enum kind kind, void *object)
{
	static const struct {
		uint32_t command, in_words, out_words;
	} commands[KINDS] = {
		[PD] = { IB_USER_VERBS_CMD_DEALLOC_PD, 3, 0 },
		[CQ] = { IB_USER_VERBS_CMD_DESTROY_CQ, 6, 2 },
		[SRQ] = { IB_USER_VERBS_CMD_DESTROY_SRQ, 6, 1 },
		[XRC_SRQ] = { IB_USER_VERBS_CMD_DESTROY_SRQ, 6, 1 },
		[MR] = { IB_USER_VERBS_CMD_DEREG_MR, 3, 0 },
		[MW] = { IB_USER_VERBS_CMD_DEALLOC_MW, 3, 0 },
		[AH] = { IB_USER_VERBS_CMD_DESTROY_AH, 3, 0 },
		[QP] = { IB_USER_VERBS_CMD_DESTROY_QP, 6, 1 },
	};
	uint32_t handle = kind == PD ? ((struct ibv_pd *)object)->handle :
			  kind == CQ ? ((struct ibv_cq *)object)->handle :
			  kind == SRQ || kind == XRC_SRQ ?
				       ((struct ibv_srq *)object)->handle :
			  kind == MR ? ((struct ibv_mr *)object)->handle :
			  kind == MW ? ((struct ibv_mw *)object)->handle :
			  kind == AH ? ((struct ibv_ah *)object)->handle :
				       ((struct ibv_qp *)object)->handle;
	static uint8_t response[16];
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint32_t words[4];
	} cmd = { .hdr = { commands[kind].command, commands[kind].in_words,
			   commands[kind].out_words } };
	uint64_t to = (uintptr_t)response;

	if (commands[kind].out_words) {
		memcpy(cmd.words, &to, sizeof(to));
		cmd.words[2] = handle;
	} else {
		cmd.words[0] = handle;
	}
	enter("a command that destroys");
	if (write(shared->context->cmd_fd, &cmd, cmd.hdr.in_words * 4) < 0)
		refusals++;
}

static void remake(void)
{
	static const enum kind often[] = { QP, QP, QP,	QP,	 MR, MR, MW,
					   CQ, CQ, SRQ, XRC_SRQ, AH, PD };
	enum kind kind = often[below(ARRAY_SIZE(often))];
	int i = below(count_of[kind]);
	struct slot *slot = &slots[kind][i];
	void *object;

	if (rude) {
		/* The old rings stay mapped, so not too often. */
		object = slot->object;
		if (object && below(8) == 0)
			take_away(kind, object);
		if (!object || below(8) == 0)
			slot->object = make(kind, i);
		return;
	}
	if (pthread_rwlock_trywrlock(&slot->lock))
		return;
	if (!slot->object || !destroy(kind, slot->object))
		slot->object = make(kind, i);
	pthread_rwlock_unlock(&slot->lock);
}

/* ---- verbs on objects ---- */

static void on_recv(struct ibv_qp *qp, struct ibv_srq *srq)
{
	struct slot *slot = any_slot(MR);
	struct ibv_mr *mr = use_slot(slot);
	struct ibv_sge sge = random_sge(mr);
	struct ibv_recv_wr wr = {
		.wr_id = random64(), .sg_list = &sge, .num_sge = 1,
	}, *bad;
	int k;

	for (k = 0; k < 4; k++) {
		if (qp)
			DO("ibv_post_recv", ibv_post_recv(qp, &wr, &bad));
		else
			DO("ibv_post_srq_recv",
			   ibv_post_srq_recv(srq, &wr, &bad));
	}
	leave_slot(slot);
}

static void connect_pair(struct ibv_qp *qp, struct ibv_qp *other)
{
	enter("ibv_modify_qp");
	connect_qp(shared, qp, other->qp_num, &shared->gid);
	connect_qp(shared, other, qp->qp_num, &shared->gid);
	if (!qp->srq)
		on_recv(qp, NULL);
	if (!other->srq)
		on_recv(other, NULL);
}

static void on_qp_state(struct ibv_qp *qp, int i)
{
	struct slot *peer = &slots[QP][i ^ 1];
	struct ibv_qp_attr attr = {
		.qp_state = below(7), .cur_qp_state = below(7),
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp *other;

	switch (below(4)) {
	case 0:
		DO("ibv_query_qp", ibv_query_qp(qp, &attr, 0x1fffff, &init));
		break;
	case 1:
		DO("ibv_modify_qp",
		   ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE |
				 (below(4) ? 0 : IBV_QP_CUR_STATE)));
		break;
	default:
		other = below(8) ? use_slot(peer) : qp;
		if (other)
			connect_pair(qp, other);
		if (other != qp)
			leave_slot(peer);
	}
}

static void on_qp_group(struct ibv_qp *qp)
{
	union ibv_gid group = group_gid(below(GROUPS));

	if (qp->qp_type != IBV_QPT_UD)
		return;
	if (below(2))
		DO("ibv_attach_mcast", ibv_attach_mcast(qp, &group, 0));
	else
		DO("ibv_detach_mcast", ibv_detach_mcast(qp, &group, 0));
}

/* Bind a window, or invalidate it here or there. */
static void fill_window(struct ibv_send_wr *wr, struct ibv_mr *mr,
			struct ibv_mw *mw)
{
	wr->invalidate_rkey = mw->rkey + below(3);
	if (below(3)) {
		wr->opcode = IBV_WR_BIND_MW;
		wr->bind_mw.mw = mw;
		wr->bind_mw.rkey = mw->rkey + below(3);
		wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
			.mr = mr,
			.addr = (uintptr_t)buffer + below(BUFFER / 2),
			.length = below(8) ? below(BUFFER / 2) : 0,
			.mw_access_flags =
				ACCESS_REMOTE |
				(below(8) ? 0 : IBV_ACCESS_ZERO_BASED),
		};
	} else {
		wr->opcode = below(2) ? IBV_WR_LOCAL_INV : IBV_WR_SEND_WITH_INV;
	}
}

static void fill_send(struct ibv_send_wr *wr, struct ibv_qp *qp,
		      struct ibv_sge *sge, struct ibv_mr *mr, struct ibv_ah *ah)
{
	*wr = (struct ibv_send_wr){
		.wr_id = random64(),
		.sg_list = sge,
		.num_sge = 1 + below(2),
		.opcode = below(IBV_WR_ATOMIC_FETCH_AND_ADD + 1),
		.send_flags = below(4) ? IBV_SEND_SIGNALED : below(8),
	};
	if (qp->qp_type == IBV_QPT_UD) {
		wr->opcode = below(2) ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
		wr->wr.ud.ah = ah;
		wr->wr.ud.remote_qpn = qp->qp_num;
		wr->wr.ud.remote_qkey = QKEY;
		sge->length %= 1000;
	} else if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->num_sge = 1;
		sge->length = 8;
		wr->wr.atomic.remote_addr =
			(uintptr_t)buffer + below(BUFFER / 8) * 8;
		wr->wr.atomic.rkey = mr->rkey;
	} else {
		wr->wr.rdma.remote_addr = (uintptr_t)buffer + below(BUFFER / 2);
		wr->wr.rdma.rkey = mr->rkey;
	}
}

/* The SRQ may be gone when a message arrives. */
static uint32_t random_srqn(void)
{
	struct slot *slot = any_slot(XRC_SRQ);
	struct ibv_srq *srq = use_slot(slot);
	uint32_t srqn = random64();

	if (srq && below(32))
		ibv_get_srq_num(srq, &srqn);
	leave_slot(slot);
	return srqn;
}

static void on_qp_send(struct ibv_qp *qp)
{
	struct slot *mr_slot = any_slot(MR), *ah_slot = any_slot(AH),
		    *mw_slot = any_slot(MW);
	struct ibv_mr *mr = use_slot(mr_slot);
	struct ibv_ah *ah = use_slot(ah_slot);
	struct ibv_mw *mw = use_slot(mw_slot);
	struct ibv_send_wr wr[4], *bad;
	struct ibv_sge sge[4][2];
	uint32_t srqn = random_srqn();
	int k, n = 1 + below(4);

	for (k = 0; mr && ah && k < n; k++) {
		sge[k][0] = random_sge(mr);
		sge[k][1] = random_sge(mr);
		sge[k][1].length %= 100;
		fill_send(&wr[k], qp, sge[k], mr, ah);
		if (qp->qp_type == IBV_QPT_XRC_SEND)
			wr[k].qp_type.xrc.remote_srqn = srqn;
		if (mw && qp->qp_type != IBV_QPT_UD) {
			if (below(6) == 0)
				fill_window(&wr[k], mr, mw);
			else if (below(4) == 0 &&
				 wr[k].opcode <= IBV_WR_RDMA_READ)
				wr[k].wr.rdma.rkey = mw->rkey + below(3);
		}
		wr[k].next = k + 1 < n ? &wr[k + 1] : NULL;
	}
	if (mr && ah)
		DO("ibv_post_send", ibv_post_send(qp, wr, &bad));
	leave_slot(mw_slot);
	leave_slot(ah_slot);
	leave_slot(mr_slot);
}

static void on_qp(void)
{
	int i = below(count_of[QP]);
	struct ibv_qp *qp = use_slot(&slots[QP][i]);

	if (qp) {
		switch (below(12)) {
		case 0:
			on_qp_state(qp, i);
			break;
		case 1:
			on_qp_group(qp);
			break;
		case 2: case 3: case 4:
			if (!qp->srq)
				on_recv(qp, NULL);
			break;
		default:
			on_qp_send(qp);
		}
	}
	leave_slot(&slots[QP][i]);
}

static void count_completions(int n, const struct ibv_wc *wc)
{
	if (n < 0)
		note("ibv_poll_cq", EIO);
	while (n-- > 0)
		completions += !wc[n].status;
}

static void poll_extended(struct ibv_cq *cq)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq;
	int n = below(8), err = ibv_start_poll(ex, &attr);

	if (err && err != ENOENT)
		note("ibv_start_poll", err);
	if (err)
		return;
	do
		completions += !ex->status;
	while (n-- && !ibv_next_poll(ex));
	ibv_end_poll(ex);
}

static void on_cq(void)
{
	struct ibv_modify_cq_attr moderation = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { below(4), below(100) }
	};
	struct slot *slot = any_slot(CQ);
	struct ibv_cq *cq = use_slot(slot);
	struct ibv_wc wc[8];

	if (cq) {
		switch (below(16)) {
		case 0:
			DO("ibv_resize_cq", ibv_resize_cq(cq, 1 + below(400)));
			break;
		case 2:
			DO("ibv_modify_cq", ibv_modify_cq(cq, &moderation));
			break;
		case 1: case 3: case 4:
			if (cq->channel)
				DO("ibv_req_notify_cq",
				   ibv_req_notify_cq(cq, below(4) == 0));
			break;
		case 6: case 7: case 8:
			enter("ibv_start_poll");
			poll_extended(cq);
			break;
		default:
			enter("ibv_poll_cq");
			count_completions(ibv_poll_cq(cq, 1 + below(8), wc),
					  wc);
		}
	}
	leave_slot(slot);
}

static void on_srq(void)
{
	struct ibv_srq_attr attr = {
		.max_wr = 1 + below(200), .srq_limit = below(20),
	};
	struct slot *slot = any_slot(below(2) ? SRQ : XRC_SRQ);
	struct ibv_srq *srq = use_slot(slot);

	if (srq) {
		switch (below(8)) {
		case 0:
			DO("ibv_modify_srq",
			   ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
			break;
		case 1:
			DO("ibv_modify_srq",
			   ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
			break;
		case 2:
			DO("ibv_query_srq", ibv_query_srq(srq, &attr));
			break;
		default:
			on_recv(NULL, srq);
		}
	}
	leave_slot(slot);
}

/* ibv_rereg_mr() changes the struct, so it needs the region alone. */
static void on_mr(void)
{
	int flags = 1 + below(7), access = 0,
	    length = below(16) ? BUFFER : 1 + below(BUFFER);
	struct slot *slot = any_slot(MR), *pd_slot = any_slot(PD);
	struct ibv_pd *pd;

	if (!rude && pthread_rwlock_trywrlock(&slot->lock))
		return;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		access = IBV_ACCESS_LOCAL_WRITE |
			 (below(8) ? ACCESS_REMOTE : 0) |
			 (below(8) ? 0 : IBV_ACCESS_ZERO_BASED);
	pd = use_slot(pd_slot);
	enter("ibv_rereg_mr");
	/* Other access alone does not pin memory that is paged on demand. */
	if (slot->object && pd &&
	    ibv_rereg_mr(slot->object, flags, pd, buffer, length, access) &&
	    errno != EOPNOTSUPP)
		note("ibv_rereg_mr", errno);
	leave_slot(pd_slot);
	leave_slot(slot);
}

static void on_device(void)
{
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;

	if (below(2))
		DO("ibv_query_port", ibv_query_port(shared->context, 1, &port));
	else
		DO("ibv_query_device_ex",
		   ibv_query_device_ex(shared->context, NULL, &device));
}

/* ---- threads ---- */

static void random_step(void)
{
	switch (below(64)) {
	case 0 ... 3:
		remake();
		break;
	case 4 ... 5:
		on_mr();
		break;
	case 6:
		on_device();
		break;
	case 7 ... 15:
		on_srq();
		break;
	case 16 ... 35:
		on_cq();
		break;
	default:
		on_qp();
	}
}

static void command_step(void)
{
	enter("a random command");
	random_command(shared);
}

/* Rude: the object of an event may be gone, so the event is not examined. */
static void take_event(int fd, bool (*take)(void))
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	uint8_t descriptor[64];

	enter("poll");
	if (poll(&pollfd, 1, 100) != 1)
		return;
	enter("reading an event");
	if (rude ? read(fd, descriptor, sizeof(descriptor)) > 0 : take())
		events++;
}

static bool take_completion_event(void)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(shared->channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

static bool take_async_event(void)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(shared->context, &event))
		return false;
	ibv_ack_async_event(&event);
	return true;
}

static void channel_step(void)
{
	take_event(shared->channel->fd, take_completion_event);
}

static void async_step(void)
{
	take_event(shared->context->async_fd, take_async_event);
}

static void *work(void *arg)
{
	self = arg;
	random_seed(self->seed);
	while (!stop) {
		self->step();
		self->steps++;
	}
	return NULL;
}

static void print_lines(const char *task, const char *name)
{
	char path[300], line[200];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task, name);
	file = fopen(path, "r");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		printf("#   task %s %s", task, line);
	fclose(file);
}

/* Where each thread is, in the kernel and at which of its system calls. */
static void print_stacks(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;

	while (tasks && (task = readdir(tasks))) {
		if (!isdigit(task->d_name[0]))
			continue;
		print_lines(task->d_name, "syscall");
		print_lines(task->d_name, "stack");
	}
	if (tasks)
		closedir(tasks);
}

/*
 * True if the threads may stop. Few requests of rude threads succeed, so that
 * in a short time none may have.
 */
static bool time_is_over(double end)
{
	return now() > end &&
	       ((completions && events) || now() > end + LONGER);
}

/*
 * Wait until the time is over and all threads have ended. False: a thread
 * hangs.
 */
static bool watch(int count, int seconds)
{
	uint64_t last[ARRAY_SIZE(workers)] = {};
	double since[ARRAY_SIZE(workers)], end = now() + seconds;
	int i, ended = 0;

	for (i = 0; i < count; i++)
		since[i] = now();
	while (ended < count) {
		usleep(100000);
		stop = time_is_over(end);
		for (i = 0, ended = 0; i < count; i++) {
			if (workers[i].thread && stop &&
			    !pthread_tryjoin_np(workers[i].thread, NULL))
				workers[i].thread = 0;
			if (!workers[i].thread) {
				ended++;
			} else if (workers[i].steps != last[i]) {
				last[i] = workers[i].steps;
				since[i] = now();
			} else if (now() - since[i] > HANG) {
				expect(false, "a thread hangs in %s",
				       workers[i].verb);
				print_stacks();
				return false;
			}
		}
	}
	return true;
}

static void start(int n, void (*step)(void))
{
	workers[n].seed = random64();
	workers[n].step = step;
	workers[n].verb = "nothing";
	if (pthread_create(&workers[n].thread, NULL, work, &workers[n]))
		die("pthread_create");
}

static void make_all(void)
{
	int kind, i;

	for (kind = 0; kind < KINDS; kind++)
		for (i = 0; i < count_of[kind]; i++) {
			pthread_rwlock_init(&slots[kind][i].lock, NULL);
			slots[kind][i].object = make(kind, i);
			if (!slots[kind][i].object)
				die("an object");
		}
}

/* No thread uses anything any more, so everything can be destroyed. */
static void destroy_all(void)
{
	static const enum kind order[] = {
		QP, AH, MW, MR, SRQ, XRC_SRQ, CQ, PD
	};
	size_t k;
	int i;

	for (k = 0; k < ARRAY_SIZE(order); k++)
		for (i = 0; i < count_of[order[k]]; i++)
			if (slots[order[k]][i].object)
				expect(!destroy(order[k],
						slots[order[k]][i].object),
				       "%s at the end: %s", self->verb,
				       strerror(errno));
}

void abuse_by_threads(struct objects *o, int seconds, bool rudely)
{
	struct ibv_alloc_dm_attr attr = { .length = BUFFER };
	static struct worker main_thread;
	uint64_t steps = 0;
	int i, count = 0;

	self = &main_thread;
	shared = o;
	rude = rudely;
	buffer = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fcntl(o->channel->fd, F_SETFL, O_NONBLOCK);
	fcntl(o->context->async_fd, F_SETFL, O_NONBLOCK);
	dm = ibv_alloc_dm(o->context, &attr);
	if (!dm)
		die("ibv_alloc_dm");
	make_xrc_objects(o);
	make_all();
	for (i = 0; i < THREADS; i++)
		start(count++, random_step);
	start(count++, channel_step);
	start(count++, async_step);
	for (i = 0; rude && i < 2; i++)
		start(count++, command_step);
	if (!watch(count, seconds)) {
		print_result(rude ? "threads-rude" : "threads");
		fflush(stdout);
		_exit(1);
	}
	for (i = 0; i < count; i++)
		steps += workers[i].steps;
	printf("# %llu steps, %llu refusals, %llu completions, %llu events\n",
	       (unsigned long long)steps, (unsigned long long)refusals,
	       (unsigned long long)completions, (unsigned long long)events);
	expect(completions && events,
	       "nothing was completed, or no event came");
	if (!rude) {
		stop = false;
		/* the destruction waits until its events are read */
		start(0, async_step);
		start(1, channel_step);
		destroy_all();
		expect(!ibv_free_dm(dm), "ibv_free_dm");
		stop = true;
		expect(!unexpected, "%llu errors of other kinds",
		       (unsigned long long)unexpected);
	}
	print_result(rude ? "threads-rude" : "threads");
	fflush(stdout);
	_exit(verdict());
}
