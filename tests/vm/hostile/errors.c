// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The errno of each refused verb: EOPNOTSUPP for a verb or a type that the
 * device does not have, EINVAL for a wrong argument. Also the answers of
 * queries, which programs rely on before they use anything.
 */
#define _GNU_SOURCE	/* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "hostile.h"

/* A verb that returns an object, and has failed with @error. */
#define NO_OBJECT(error, call) do {					\
	void *object_;							\
									\
	errno = 0;							\
	object_ = (call);						\
	expect(!object_ && errno == (error), "%s: %s, %s", #call,	\
	       object_ ? "an object" : "none", strerror(errno));	\
} while (0)

/* A verb that returns errno, or -1 and sets it. */
#define FAILS(error, call) do {						\
	int err_;							\
									\
	errno = 0;							\
	err_ = (call);							\
	if (err_ == -1)							\
		err_ = errno;						\
	expect(err_ == (error), "%s: %s", #call, strerror(err_));	\
} while (0)

/* Verbs that only other devices have. */
static void absent_verbs(struct objects *o)
{
	struct ibv_counters_init_attr counters = {};
	struct ibv_sge sge = { (uintptr_t)o->mem, 4096, o->mr->lkey };
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1000 };
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = o->pd,
		.cq = o->cq,
	};
	struct ibv_flow_attr flow = {
		.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(flow), .port = 1,
	};
	struct ibv_ece ece = {};

	NO_OBJECT(EOPNOTSUPP, ibv_create_counters(o->context, &counters));
	NO_OBJECT(EOPNOTSUPP, ibv_alloc_null_mr(o->pd));
	NO_OBJECT(EOPNOTSUPP, ibv_create_wq(o->context, &wq));
	NO_OBJECT(EOPNOTSUPP, ibv_create_flow(o->qp[0], &flow));
	FAILS(ENOENT,
	      ibv_advise_mr(o->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
	FAILS(EOPNOTSUPP, ibv_advise_mr(o->pd, 77, 0, &sge, 1));
	FAILS(EOPNOTSUPP, ibv_modify_qp_rate_limit(o->qp[0], &rate));
	FAILS(EOPNOTSUPP, ibv_query_ece(o->qp[0], &ece));
	FAILS(EOPNOTSUPP, ibv_set_ece(o->qp[0], &ece));
}

/* Types and flags that only other devices have. */
static void absent_kinds(struct objects *o)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER,
	};
	struct ibv_qp_init_attr qp = {
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_qp_init_attr_ex ex = {
		.qp_type = IBV_QPT_RC,
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = o->pd,
	};
	struct ibv_qp_attr path = {
		.path_mig_state = IBV_MIG_REARM,
		.alt_port_num = 1,
		.alt_ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = { .dgid = o->gid, .sgid_index = o->gid_index },
		},
	};
	struct ibv_device_attr dev;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		qp.qp_type = types[i];
		NO_OBJECT(EOPNOTSUPP, ibv_create_qp(o->pd, &qp));
	}
	NO_OBJECT(EFAULT, ibv_reg_mr(o->pd, (void *)(1ul << 63), 4096,
				     IBV_ACCESS_ON_DEMAND));
	FAILS(EOPNOTSUPP,
	      ibv_modify_qp(o->qp[0], &path, IBV_QP_PATH_MIG_STATE));
	/* The core bans alternate paths with RoCE by itself, */
	FAILS(EINVAL, ibv_modify_qp(o->qp[0], &path, IBV_QP_ALT_PATH));
	FAILS(0, ibv_query_device(o->context, &dev));
	expect(!(dev.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG),
	       "path migration is reported");
	ex.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	NO_OBJECT(EOPNOTSUPP, ibv_create_qp_ex(o->context, &ex));
	/* and flags of connected QPs. */
	ex.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	NO_OBJECT(EINVAL, ibv_create_qp_ex(o->context, &ex));
}

static void wrong_arguments(struct objects *o)
{
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_RC, .send_cq = o->cq, .recv_cq = o->cq,
		.cap = { .max_send_wr = 32769, .max_send_sge = 1 },
	};
	struct ibv_srq_init_attr srq = {
		.attr = { .max_wr = 32769, .max_sge = 1 },
	};
	struct ibv_srq_attr limit = { .srq_limit = 1000000 };
	struct ibv_ah_attr ah = {
		.is_global = 1, .port_num = 77, .grh = { .dgid = o->gid },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 7 } };
	struct ibv_port_attr port;

	NO_OBJECT(EINVAL, ibv_create_qp(o->pd, &qp));
	qp.cap = (struct ibv_qp_cap){ .max_send_wr = 1, .max_send_sge = 33 };
	NO_OBJECT(EINVAL, ibv_create_qp(o->pd, &qp));
	NO_OBJECT(EINVAL, ibv_create_srq(o->pd, &srq));
	NO_OBJECT(EINVAL, ibv_create_cq(o->context, 0, NULL, NULL, 0));
	NO_OBJECT(EINVAL, ibv_create_cq(o->context, 1 << 29, NULL, NULL, 0));
	NO_OBJECT(EINVAL, ibv_create_cq(o->context, 10, NULL, NULL, 10000));
	NO_OBJECT(EINVAL, ibv_create_ah(o->pd, &ah));
	NO_OBJECT(EINVAL,
		  ibv_reg_mr(o->pd, o->mem, 4096, IBV_ACCESS_REMOTE_WRITE));
	NO_OBJECT(EFAULT,
		  ibv_reg_mr(o->pd, NULL, 4096, IBV_ACCESS_LOCAL_WRITE));
	FAILS(EINVAL, ibv_modify_srq(o->srq, &limit, IBV_SRQ_LIMIT));
	FAILS(EINVAL, ibv_modify_qp(o->qp[0], &attr, IBV_QP_STATE));
	FAILS(EINVAL, ibv_attach_mcast(o->qp[0], &group, 0));
	FAILS(EINVAL, ibv_detach_mcast(o->qp[NUM_QPS - 1], &group, 0));
	FAILS(EINVAL, ibv_query_port(o->context, 2, &port));
	FAILS(EBUSY, ibv_destroy_cq(o->cq));
	FAILS(EBUSY, ibv_dealloc_pd(o->pd));
	FAILS(EBUSY, ibv_destroy_srq(o->srq));
}

/* While @object lives, its parent domain cannot end. */
#define HOLDS(parent, object, make, end) do {				\
	(object) = (make);						\
	expect((object), "%s: %s", #make, strerror(errno));		\
	FAILS(EBUSY, ibv_dealloc_pd(parent));				\
	if (object)							\
		FAILS(0, end);						\
} while (0)

/* Nothing ends while something else is made of it. */
static void parent_domains(struct objects *o)
{
	struct ibv_td_init_attr none = {};
	struct ibv_parent_domain_init_attr attr = {
		.pd = ibv_alloc_pd(o->context),
		.td = ibv_alloc_td(o->context, &none),
	};
	struct ibv_pd *parent = ibv_alloc_parent_domain(o->context, &attr);
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 4,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};
	struct ibv_srq_init_attr srq_attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
	};
	struct ibv_ah_attr ah_attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = o->gid, .sgid_index = o->gid_index },
	};
	struct ibv_qp_init_attr qp_attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_qp *qp;

	if (!parent)
		die("ibv_alloc_parent_domain");
	FAILS(EBUSY, ibv_dealloc_td(attr.td));
	FAILS(EBUSY, ibv_dealloc_pd(attr.pd));

	HOLDS(parent, cq, ibv_create_cq_ex(o->context, &cq_attr),
	      ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	HOLDS(parent, srq, ibv_create_srq(parent, &srq_attr),
	      ibv_destroy_srq(srq));
	HOLDS(parent, qp, ibv_create_qp(parent, &qp_attr), ibv_destroy_qp(qp));
	HOLDS(parent, mr,
	      ibv_reg_mr(parent, o->mem, 4096, IBV_ACCESS_LOCAL_WRITE),
	      ibv_dereg_mr(mr));
	HOLDS(parent, mw, ibv_alloc_mw(parent, IBV_MW_TYPE_1),
	      ibv_dealloc_mw(mw));
	HOLDS(parent, ah, ibv_create_ah(parent, &ah_attr), ibv_destroy_ah(ah));

	/* A region that moves out no longer holds it. */
	mr = ibv_reg_mr(parent, o->mem, 4096, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		die("ibv_reg_mr in a parent domain");
	FAILS(0, ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, attr.pd, NULL, 0, 0));
	FAILS(0, ibv_dealloc_pd(parent));
	FAILS(0, ibv_dereg_mr(mr));
	FAILS(0, ibv_dealloc_td(attr.td));
	FAILS(0, ibv_dealloc_pd(attr.pd));
}

/* Calls of pthread_spin_lock() by libarx, whose locks are of this kind. */
static unsigned long spins;

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	static int (*real)(pthread_spinlock_t *lock);

	if (!real)
		real = (int (*)(pthread_spinlock_t *))dlsym(
			RTLD_NEXT, "pthread_spin_lock");
	__atomic_fetch_add(&spins, 1, __ATOMIC_RELAXED);
	return real(lock);
}

/*
 * Locks taken for a message from a QP and CQ of @pd to the same QP; @flags are
 * the CQ's.
 */
static unsigned long locks_in(struct objects *o, struct ibv_pd *pd,
			      uint32_t flags)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 4,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS |
			     (pd == o->pd ? 0 : IBV_CQ_INIT_ATTR_MASK_PD),
		.parent_domain = pd,
		.flags = flags,
	};
	struct ibv_cq *cq =
		ibv_cq_ex_to_cq(ibv_create_cq_ex(o->context, &cq_attr));
	struct ibv_qp_init_attr qp_attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &qp_attr) : NULL;
	struct ibv_sge sge = { (uintptr_t)o->mem, 8, o->mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad, send = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	double end = now() + 10;
	struct ibv_wc wc;
	unsigned long n;
	int good = 0;

	if (!qp)
		die("a QP in a thread domain");
	connect_qp(o, qp, qp->qp_num, &o->gid);
	n = spins;
	expect(!ibv_req_notify_cq(cq, 0) &&
	       !ibv_post_recv(qp, &recv, &bad_recv) &&
	       !ibv_post_send(qp, &send, &bad),
	       "posts");
	while (good < 2 && now() < end)
		good += ibv_poll_cq(cq, 1, &wc) == 1 &&
			wc.status == IBV_WC_SUCCESS;
	n = spins - n;
	expect(good == 2, "%d of 2 completions", good);
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
	return n;
}

static bool allocated;
static void *allocate(struct ibv_pd *pd, void *context, size_t size,
		      size_t alignment, uint64_t type)
{
	allocated = true;
	return NULL;
}

static void release(struct ibv_pd *pd, void *context, void *memory,
		    uint64_t type)
{
	allocated = true;
}

/* arx(7): no locks in a thread domain; allocators have nothing to allocate. */
static void thread_domains(struct objects *o)
{
	struct ibv_td_init_attr td = {};
	struct ibv_parent_domain_init_attr attr = {
		.pd = o->pd,
		.td = ibv_alloc_td(o->context, &td),
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = allocate,
		.free = release,
		.pd_context = o,
	};
	struct ibv_pd *alone = ibv_alloc_parent_domain(o->context, &attr);
	unsigned long n;

	if (!alone)
		die("ibv_alloc_parent_domain with allocators");
	n = locks_in(o, o->pd, 0);
	expect(n >= 4, "%lu locks outside of thread domains", n);
	n = locks_in(o, o->pd, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	expect(n == 2,
	       "%lu locks with a CQ of one thread, not those of two posts", n);
	n = locks_in(o, alone, 0);
	expect(!n, "%lu locks in a thread domain", n);
	expect(!allocated, "an allocator was called");

	attr.comp_mask = 1 << 2;
	NO_OBJECT(EOPNOTSUPP, ibv_alloc_parent_domain(o->context, &attr));
	attr.comp_mask = 0;
	attr.pd = alone;
	NO_OBJECT(EINVAL, ibv_alloc_parent_domain(o->context, &attr));
	attr.pd = NULL;
	NO_OBJECT(EINVAL, ibv_alloc_parent_domain(o->context, &attr));
	td.comp_mask = 1;
	NO_OBJECT(EOPNOTSUPP, ibv_alloc_td(o->context, &td));
	FAILS(0, ibv_dealloc_pd(alone));
	FAILS(0, ibv_dealloc_td(attr.td));
}

/* Promises of the documents, protocol.rst first. */
static void device_answers(struct objects *o)
{
	struct ibv_port_attr port = {};
	struct ibv_device_attr dev;
	struct ibv_gid_entry gid;

	expect(!ibv_query_device(o->context, &dev), "ibv_query_device");
	expect(dev.phys_port_cnt == 1 && dev.max_pkeys == 1,
	       "%u ports, %u P_Keys", dev.phys_port_cnt, dev.max_pkeys);
	expect(dev.max_qp_wr == 32768 && dev.max_srq_wr == 32768, "WRs: %d, %d",
	       dev.max_qp_wr, dev.max_srq_wr);
	expect(dev.max_sge == 32 && dev.max_srq_sge == 32, "SGEs: %d, %d",
	       dev.max_sge, dev.max_srq_sge);
	expect(dev.max_qp_rd_atom == 128 && dev.max_qp_init_rd_atom == 128,
	       "READs: %d, %d", dev.max_qp_rd_atom, dev.max_qp_init_rd_atom);
	expect(dev.atomic_cap == IBV_ATOMIC_GLOB, "atomics: %d",
	       dev.atomic_cap);
	expect(dev.max_mcast_grp == 1024 && dev.max_mcast_qp_attach == 1024,
	       "groups: %d, %d", dev.max_mcast_grp, dev.max_mcast_qp_attach);
	expect(dev.max_mw == 1 << 20 && dev.max_mr == dev.max_mw,
	       "windows and regions: %d, %d", dev.max_mw, dev.max_mr);
	expect(dev.device_cap_flags & IBV_DEVICE_MEM_WINDOW &&
	       dev.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B &&
	       !(dev.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A),
	       "types of windows: %#x", dev.device_cap_flags);
	expect(dev.max_raw_ipv6_qp == 0 && dev.max_ee == 0,
	       "what is not there: %d %d", dev.max_raw_ipv6_qp, dev.max_ee);
	expect(dev.node_guid == dev.sys_image_guid,
	       "the image's GUID is not the node's");

	expect(!ibv_query_port(o->context, 1, &port), "ibv_query_port");
	expect(port.state == IBV_PORT_ACTIVE && port.phys_state == 5,
	       "state %d, %d", port.state, port.phys_state);
	expect(port.link_layer == IBV_LINK_LAYER_ETHERNET, "link layer %d",
	       port.link_layer);
	expect(port.max_mtu == IBV_MTU_4096 && port.active_mtu >= IBV_MTU_1024,
	       "MTU %d of %d", port.active_mtu, port.max_mtu);
	expect(port.gid_tbl_len == 1024 && port.pkey_tbl_len == 1,
	       "tables: %d, %d", port.gid_tbl_len, port.pkey_tbl_len);
	expect(port.max_msg_sz == 1u << 31, "messages of %u", port.max_msg_sz);
	/* veth says 10 Gbit/s */
	expect(port.active_speed == 8 && port.active_width == 1,
	       "speed %d, width %d", port.active_speed, port.active_width);
	expect(!ibv_query_gid_ex(o->context, 1, o->gid_index, &gid, 0),
	       "ibv_query_gid_ex");
	expect(gid.gid_type == IBV_GID_TYPE_ROCE_V2, "GID type %d",
	       gid.gid_type);
	expect(!memcmp(&gid.gid, &o->gid, sizeof(gid.gid)),
	       "another GID at index %d", o->gid_index);
	FAILS(ENODATA, ibv_query_gid_ex(o->context, 1, 1000, &gid, 0));
}

/* A query returns the granted sizes, which are at least the requested ones. */
static void queue_sizes(struct objects *o)
{
	static const uint32_t asked[] = { 1, 2, 3, 17, 100, 32768 };
	struct ibv_qp_init_attr qp, told;
	struct ibv_qp_attr attr;
	struct ibv_cq *cq;
	struct ibv_qp *made;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		qp = (struct ibv_qp_init_attr){
			.qp_type = IBV_QPT_RC,
			.send_cq = o->cq,
			.recv_cq = o->cq,
			.cap = {
				.max_send_wr = asked[i],
				.max_recv_wr = asked[i], .max_send_sge = 2,
				.max_recv_sge = 2,
			},
		};
		made = ibv_create_qp(o->pd, &qp);
		if (!made) {
			expect(false, "a QP of %u: %s", asked[i],
			       strerror(errno));
			continue;
		}
		expect(qp.cap.max_send_wr >= asked[i] &&
		       qp.cap.max_recv_wr >= asked[i],
		       "a QP of %u has %u and %u", asked[i], qp.cap.max_send_wr,
		       qp.cap.max_recv_wr);
		expect(!ibv_query_qp(made, &attr, IBV_QP_CAP, &told),
		       "ibv_query_qp");
		expect(!memcmp(&told.cap, &qp.cap, sizeof(qp.cap)),
		       "a QP of %u: %u %u %u %u %u granted, %u %u %u %u %u told",
		       asked[i], qp.cap.max_send_wr, qp.cap.max_recv_wr,
		       qp.cap.max_send_sge, qp.cap.max_recv_sge,
		       qp.cap.max_inline_data, told.cap.max_send_wr,
		       told.cap.max_recv_wr, told.cap.max_send_sge,
		       told.cap.max_recv_sge, told.cap.max_inline_data);
		ibv_destroy_qp(made);
		cq = ibv_create_cq(o->context, asked[i], NULL, NULL, 0);
		expect(cq && (uint32_t)cq->cqe >= asked[i], "a CQ of %u: %d",
		       asked[i], cq ? cq->cqe : -1);
		if (cq)
			ibv_destroy_cq(cq);
	}
}

/* ibv_create_srq(3): the limit is irrelevant, so programs may not set it. */
static void srq_limit_at_creation(struct objects *o)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 4, .max_sge = 1, .srq_limit = 77777 }
	};
	struct ibv_srq *srq = ibv_create_srq(o->pd, &init);
	struct ibv_srq_attr told = { .srq_limit = 1 };

	expect(srq, "an SRQ with an undefined limit: %s", strerror(errno));
	if (!srq)
		return;
	expect(!ibv_query_srq(srq, &told), "ibv_query_srq");
	expect(!told.srq_limit && told.max_wr >= 4, "limit %u of %u",
	       told.srq_limit, told.max_wr);
	FAILS(0, ibv_destroy_srq(srq));
}

static void expect_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};

	expect(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	expect(attr.qp_state == state && attr.cur_qp_state == state &&
	       qp->state == state,
	       "state %d, current %d, known as %d, not %d", attr.qp_state,
	       attr.cur_qp_state, qp->state, state);
	expect(init.qp_type == qp->qp_type && init.send_cq == qp->send_cq &&
	       init.recv_cq == qp->recv_cq && init.srq == qp->srq,
	       "state %d: it was made with something else", state);
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	FAILS(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	expect_state(qp, state);
}

/* A datagram from memory without a region fails. */
static void fail_a_send(struct objects *o, struct ibv_qp *qp)
{
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = o->gid, .sgid_index = o->gid_index },
	};
	struct ibv_sge sge = { (uintptr_t)o->mem, 8, 0x12345678 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {
			.ah = ibv_create_ah(o->pd, &to),
			.remote_qpn = qp->qp_num, .remote_qkey = QKEY,
		},
	};
	struct ibv_wc wc = {};
	double end = now() + 10;

	if (!wr.wr.ud.ah)
		die("ibv_create_ah");
	expect(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	while (!ibv_poll_cq(qp->send_cq, 1, &wc) && now() < end)
		;
	expect(wc.status == IBV_WC_LOC_PROT_ERR, "a datagram from nowhere: %s",
	       ibv_wc_status_str(wc.status));
	ibv_destroy_ah(wr.wr.ud.ah);
}

static void states(struct objects *o)
{
	struct ibv_qp *rc = o->qp[0], *ud = o->qp[NUM_QPS - 1];
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	expect_state(rc, IBV_QPS_RESET);
	connect_qp(o, rc, rc->qp_num, &o->gid);
	expect_state(rc, IBV_QPS_RTS);
	to_state(rc, IBV_QPS_SQD);
	to_state(rc, IBV_QPS_RTS);
	to_state(rc, IBV_QPS_ERR);
	to_state(rc, IBV_QPS_RESET);

	connect_qp(o, ud, 0, &o->gid);
	fail_a_send(o, ud);
	/* libibverbs notices SQE by this query. */
	expect(!ibv_query_qp(ud, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	expect_state(ud, IBV_QPS_SQE);
	to_state(ud, IBV_QPS_RTS);
	to_state(ud, IBV_QPS_RESET);
}

/*
 * The attributes that a step sets are there in the same and in later states.
 * The core takes the hop limit from the route.
 */
struct step {
	enum ibv_qp_state state;
	int mask;
};

static const struct step steps[] = {
	{ IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
	{ IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		       IBV_QP_MIN_RNR_TIMER },
	{ IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC },
};

#define SAME(field) \
	expect(is.field == set->field, "state %d: " #field " is %lld, not %lld", is.qp_state, (long long)is.field, \
	       (long long)set->field)

static void expect_attributes(struct ibv_qp *qp, const struct ibv_qp_attr *set,
			      int mask)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr is = {};

	expect(!ibv_query_qp(qp, &is, mask, &init), "ibv_query_qp");
	SAME(qp_state);
	SAME(port_num);
	SAME(pkey_index);
	SAME(qp_access_flags);
	if (mask & IBV_QP_AV) {
		SAME(path_mtu);
		SAME(dest_qp_num);
		SAME(rq_psn);
		SAME(max_dest_rd_atomic);
		SAME(min_rnr_timer);
		SAME(ah_attr.is_global);
		SAME(ah_attr.port_num);
		SAME(ah_attr.sl);
		SAME(ah_attr.grh.sgid_index);
		SAME(ah_attr.grh.traffic_class);
		SAME(ah_attr.grh.flow_label);
		expect(!memcmp(&is.ah_attr.grh.dgid, &set->ah_attr.grh.dgid,
			       sizeof(union ibv_gid)),
		       "another GID");
	}
	if (mask & IBV_QP_SQ_PSN) {
		SAME(sq_psn);
		SAME(timeout);
		SAME(retry_cnt);
		SAME(rnr_retry);
		SAME(max_rd_atomic);
	}
}

static void attributes(struct objects *o, struct ibv_qp *qp)
{
	struct ibv_qp_attr set = {
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
		.path_mtu = IBV_MTU_512,
		.dest_qp_num = 0x123456,
		.rq_psn = 0xfedcba,
		.max_dest_rd_atomic = 3,
		.min_rnr_timer = 17,
		.sq_psn = 0x654321,
		.timeout = 9,
		.retry_cnt = 5,
		.rnr_retry = 6,
		.max_rd_atomic = 2,
		.ah_attr = {
			.is_global = 1, .port_num = 1, .sl = 3,
			.grh = {
				.dgid = o->gid, .sgid_index = o->gid_index,
				.hop_limit = 64, .traffic_class = 104,
				.flow_label = 0x54321,
			},
		},
	};
	int mask = IBV_QP_STATE;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		set.qp_state = steps[i].state;
		mask |= steps[i].mask;
		FAILS(0, ibv_modify_qp(qp, &set, IBV_QP_STATE | steps[i].mask));
		expect_attributes(qp, &set, mask);
	}
	to_state(qp, IBV_QPS_RESET);
}

void expect_errors(struct objects *o)
{
	o->timeout = 17;	/* 0.5 s: a busy host may delay packets */
	attributes(o, o->qp[0]);
	device_answers(o);
	queue_sizes(o);
	srq_limit_at_creation(o);
	states(o);
	absent_verbs(o);
	absent_kinds(o);
	wrong_arguments(o);
	parent_domains(o);
	thread_domains(o);
	print_result("errors");
}
