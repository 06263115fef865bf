// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Every verb, with each of its allocations and each of its copies from or to
 * user space failing in turn: /proc/thread-self/fail-nth makes the kernel fail
 * the n-th of them. A verb succeeds in spite of that, or refuses with ENOMEM,
 * EFAULT or ENOBUFS (no memory for a route) and has changed nothing: the next
 * call succeeds. The script looks for leaks.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "hostile.h"

#define LONG_REGION	(8 << 20)
/* A link has 20000, most for sysfs; a verb has hundreds. */
#define MOST_FAULTS	50000

static struct objects *o;
static int fail_nth;
static int stride = 1;	/* of this many faults one, from a random one on */
static uint8_t *long_buffer;

/* The objects that verbs create and destroy. */
static struct ibv_pd *pd, *other_pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static struct ibv_mr *mr;
static struct ibv_dm *dm;
static struct ibv_ah *ah;
static struct ibv_qp *qp;

/* ---- the fault ---- */

static void arm(int nth)
{
	char number[16];
	int len = snprintf(number, sizeof(number), "%d", nth);

	if (pwrite(fail_nth, number, len, 0) != len)
		die("fail-nth");
}

/*
 * True if something failed. The fault may remain, for the call that reads this.
 */
static bool disarm(void)
{
	char number[16] = "";
	bool left = pread(fail_nth, number, sizeof(number) - 1, 0) <= 0;

	while (pwrite(fail_nth, "0", 1, 0) != 1)
		;
	return !left && !atoi(number);
}

static bool clear_error(int err)
{
	return err == ENOMEM || err == EFAULT || err == ENOBUFS;
}

/*
 * @before prepares for @verb, @undo reverts it; both may be NULL, and succeed.
 * Without @undo a verb that failed is called once more. For a destroyed object
 * this may return ENOENT: when uverbs cannot write the response of a
 * destruction, it returns EFAULT and has destroyed the object.
 */
static void fail_each(const char *name, int (*before)(void), int (*verb)(void),
		      int (*undo)(void))
{
	int nth, err, again, refused = 0;
	bool fired = true;

	for (nth = 1 + below(stride); fired && nth < MOST_FAULTS;
	     nth += stride) {
		if (before)
			expect(!before(),
			       "%s: nothing to call it on at fault %d", name,
			       nth);
		arm(nth);
		err = verb();
		fired = disarm();
		refused += !!err;
		if (err && !fired)
			expect(false, "%s: %s without a fault", name,
			       strerror(err));
		else if (err && !clear_error(err))
			expect(false, "%s: %s at fault %d", name, strerror(err),
			       nth);
		if (!err && undo) {
			again = undo();
			expect(!again, "%s: its undoing after fault %d: %s",
			       name, nth, strerror(again));
		}
		if (err && !undo) {
			again = verb();
			expect(!again || (again == ENOENT && err == EFAULT &&
					  before),
			       "%s: refused (%s) at fault %d, then %s", name,
			       strerror(err), nth, strerror(again));
		}
	}
	expect(!fired, "%s has no end of faults", name);
	printf("# %s: %d faults, %d times refused\n", name,
	       (nth - 1) / stride - 1, refused);
}

/* ---- verbs: 0 or an errno value ---- */

static int made(const void *object)
{
	return object ? 0 : errno ? errno : -1;
}

static int make_pd(void)
{
	pd = ibv_alloc_pd(o->context);
	return made(pd);
}

static int end_pd(void)
{
	return ibv_dealloc_pd(pd);
}

static int make_channel(void)
{
	channel = ibv_create_comp_channel(o->context);
	return made(channel);
}

static int end_channel(void)
{
	return ibv_destroy_comp_channel(channel);
}

static int make_cq(void)
{
	cq = ibv_create_cq(o->context, 100, NULL, o->channel, 0);
	return made(cq);
}

static int make_long_cq(void)
{
	cq = ibv_create_cq(o->context, 10000, NULL, NULL, 0);
	return made(cq);
}

static int end_cq(void)
{
	return ibv_destroy_cq(cq);
}

static int resize_cq(void)
{
	return ibv_resize_cq(o->cq, o->cq->cqe > 1000 ? 600 : 1200);
}

static int moderate_cq(void)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { 4, 10 },
	};

	return ibv_modify_cq(o->cq, &attr);
}

static int make_srq(void)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = 100, .max_sge = 4 },
	};

	srq = ibv_create_srq(o->pd, &attr);
	return made(srq);
}

static int end_srq(void)
{
	return ibv_destroy_srq(srq);
}

static int make_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	xrcd = ibv_open_xrcd(o->context, &attr);
	return made(xrcd);
}

static int end_xrcd(void)
{
	return ibv_close_xrcd(xrcd);
}

static int make_xrc_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 100, .max_sge = 4 },
		.srq_type = IBV_SRQT_XRC,
		.pd = o->pd,
		.cq = o->cq,
		.xrcd = o->xrcd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};

	srq = ibv_create_srq_ex(o->context, &attr);
	return made(srq);
}

static int resize_srq(void)
{
	static int larger;
	struct ibv_srq_attr attr = { .max_wr = larger ? 32 : 200 };
	int err = ibv_modify_srq(o->srq, &attr, IBV_SRQ_MAX_WR);

	larger ^= !err;
	return err;
}

static int limit_srq(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };

	return ibv_modify_srq(o->srq, &attr, IBV_SRQ_LIMIT);
}

static int query_srq(void)
{
	struct ibv_srq_attr attr;

	return ibv_query_srq(o->srq, &attr);
}

static int make_mr(void)
{
	mr = ibv_reg_mr(o->pd, o->mem, MEM, IBV_ACCESS_LOCAL_WRITE);
	return made(mr);
}

static int make_long_mr(void)
{
	mr = ibv_reg_mr(o->pd, long_buffer, LONG_REGION,
			IBV_ACCESS_LOCAL_WRITE);
	return made(mr);
}

/* With its pages, which also need a page table. */
static int make_paged_mr(void)
{
	struct ibv_sge sge = { (uintptr_t)o->mem, MEM, 0 };

	mr = ibv_reg_mr(o->pd, o->mem, MEM,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	if (!mr)
		return made(mr);
	sge.lkey = mr->lkey;
	errno = ibv_advise_mr(o->pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0,
			      &sge, 1);
	if (!errno)
		return 0;
	sge.addr = errno;
	ibv_dereg_mr(mr);
	return sge.addr;
}

static int end_mr(void)
{
	return ibv_dereg_mr(mr);
}

static int make_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 20000 };

	dm = ibv_alloc_dm(o->context, &attr);
	return made(dm);
}

static int end_dm(void)
{
	return ibv_free_dm(dm);
}

static int make_dm_mr(void)
{
	static struct ibv_dm *whole;
	struct ibv_alloc_dm_attr attr = { .length = 100000 };

	if (!whole)
		whole = ibv_alloc_dm(o->context, &attr);
	if (!whole)
		return errno;
	mr = ibv_reg_dm_mr(o->pd, whole, 0, attr.length, IBV_ACCESS_ZERO_BASED);
	return made(mr);
}

static int rereg(int flags, struct ibv_pd *to, size_t len, int access)
{
	return ibv_rereg_mr(mr, flags, to, o->mem, len, access) ? errno : 0;
}

static int rereg_pd(void)
{
	return rereg(IBV_REREG_MR_CHANGE_PD, other_pd, 0, 0);
}

static int rereg_access(void)
{
	return rereg(IBV_REREG_MR_CHANGE_ACCESS, NULL, 0, 0);
}

static int rereg_memory(void)
{
	return rereg(IBV_REREG_MR_CHANGE_TRANSLATION, NULL, MEM / 2, 0);
}

static int make_ah(void)
{
	struct ibv_ah_attr to = {
		.is_global = 1,
		.port_num = 1,
		.grh = {
			.dgid = o->gid, .sgid_index = o->gid_index,
			.hop_limit = 64,
		},
	};

	ah = ibv_create_ah(o->pd, &to);
	return made(ah);
}

static int end_ah(void)
{
	return ibv_destroy_ah(ah);
}

static int make_qp(enum ibv_qp_type type, struct ibv_srq *with)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.srq = with,
		.qp_type = type,
		.cap = {
			.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4,
			.max_recv_sge = 4,
		},
	};

	qp = ibv_create_qp(o->pd, &attr);
	return made(qp);
}

static int make_rc(void)
{
	return make_qp(IBV_QPT_RC, NULL);
}

static int make_rc_with_srq(void)
{
	return make_qp(IBV_QPT_RC, o->srq);
}

static int make_ud(void)
{
	return make_qp(IBV_QPT_UD, NULL);
}

/*
 * No target: when the core cannot create one, it still counts the target as a
 * user of the domain, which then never ends.
 */
static int make_ini(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = o->cq,
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = o->pd,
		.cap = { .max_send_wr = 64, .max_send_sge = 4 },
	};

	qp = ibv_create_qp_ex(o->context, &attr);
	return made(qp);
}

static int end_qp(void)
{
	return ibv_destroy_qp(qp);
}

static int query_qp(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(o->qp[0], &attr, IBV_QP_STATE, &init);
}

static int query_port(void)
{
	struct ibv_port_attr attr;

	return ibv_query_port(o->context, 1, &attr);
}

static int query_device(void)
{
	struct ibv_device_attr_ex attr;

	return ibv_query_device_ex(o->context, NULL, &attr);
}

static int query_gids(void)
{
	struct ibv_gid_entry entries[32];
	ssize_t n = ibv_query_gid_table(o->context, entries,
					ARRAY_SIZE(entries), 0);

	return n < 0 ? -n : 0;
}

static union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 9 } };

static int join(void)
{
	return ibv_attach_mcast(o->qp[NUM_QPS - 1], &group, 0);
}

static int leave(void)
{
	return ibv_detach_mcast(o->qp[NUM_QPS - 1], &group, 0);
}

/* ---- states ---- */

static int to_state(enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = state,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = o->qp[2]->qp_num,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 12,
		.retry_cnt = 2,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = o->gid, .sgid_index = o->gid_index,
				.hop_limit = 64,
			},
		},
	};

	return ibv_modify_qp(o->qp[0], &attr, IBV_QP_STATE | mask);
}

static int to_reset(void)
{
	return to_state(IBV_QPS_RESET, 0);
}

static int to_init(void)
{
	return to_state(IBV_QPS_INIT,
			IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(void)
{
	return to_state(IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(void)
{
	return to_state(IBV_QPS_RTS,
			IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static int to_error(void)
{
	return to_state(IBV_QPS_ERR, 0);
}

static int in_init(void)
{
	return to_reset() || to_init();
}

static int in_rtr(void)
{
	return in_init() || to_rtr();
}

static int in_rts(void)
{
	return in_rtr() || to_rts();
}

/* ---- data, between two QPs of this process ---- */

static enum ibv_wr_opcode opcode;

static int drain(void)
{
	struct ibv_wc wc[16];
	int n;

	do
		n = ibv_poll_cq(o->cq, ARRAY_SIZE(wc), wc);
	while (n > 0);
	return n;
}

static int connected(void)
{
	struct ibv_sge sge = { (uintptr_t)o->mem, MEM / 2, o->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad;

	connect_qp(o, o->qp[0], o->qp[2]->qp_num, &o->gid);
	connect_qp(o, o->qp[2], o->qp[0]->qp_num, &o->gid);
	return drain() || ibv_post_recv(o->qp[2], &recv, &bad);
}

/*
 * The request is posted, or refused. A posted request completes, successfully
 * or not.
 */
static int send_something(void)
{
	uint32_t len = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : MEM / 2;
	struct ibv_sge sge = { (uintptr_t)o->mem, len, o->mr->lkey };
	struct ibv_send_wr send = {
		.wr_id = 77, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)o->mem + MEM / 2, o->mr->rkey },
	}, *bad;
	double end = now() + 20;
	struct ibv_wc wc = {};
	int err;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		send.wr.atomic.remote_addr = (uintptr_t)o->mem + MEM / 2;
		send.wr.atomic.rkey = o->mr->rkey;
	}
	err = ibv_post_send(o->qp[0], &send, &bad);
	if (err)
		return err;
	while (wc.wr_id != 77 && now() < end)
		if (ibv_poll_cq(o->cq, 1, &wc) < 0)
			return EIO;
	return wc.wr_id == 77 ? 0 : ETIMEDOUT;
}

static int nothing(void)
{
	return 0;
}

static void fail_data(void)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		const char *name;
	} kinds[] = {
		{ IBV_WR_SEND, "SEND" },
		{ IBV_WR_RDMA_WRITE, "WRITE" },
		{ IBV_WR_RDMA_READ, "READ" },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, "fetch and add" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		opcode = kinds[i].opcode;
		fail_each(kinds[i].name, connected, send_something, nothing);
	}
}

static const struct {
	const char *name;
	int (*verb)(void);
	const char *end_name;
	int (*end)(void);
} pairs[] = {
	{ "ibv_alloc_pd", make_pd, "ibv_dealloc_pd", end_pd },
	{ "ibv_create_comp_channel", make_channel, "ibv_destroy_comp_channel",
	  end_channel },
	{ "ibv_create_cq", make_cq, "ibv_destroy_cq", end_cq },
	{ "ibv_create_cq (long)", make_long_cq, "ibv_destroy_cq (long)",
	  end_cq },
	{ "ibv_create_srq", make_srq, "ibv_destroy_srq", end_srq },
	{ "ibv_reg_mr", make_mr, "ibv_dereg_mr", end_mr },
	{ "ibv_reg_mr (on demand)", make_paged_mr, "ibv_dereg_mr (on demand)",
	  end_mr },
	{ "ibv_reg_mr (long)", make_long_mr, "ibv_dereg_mr (long)", end_mr },
	{ "ibv_create_ah", make_ah, "ibv_destroy_ah", end_ah },
	{ "ibv_create_qp (RC)", make_rc, "ibv_destroy_qp (RC)", end_qp },
	{ "ibv_create_qp (RC, SRQ)", make_rc_with_srq,
	  "ibv_destroy_qp (RC, SRQ)", end_qp },
	{ "ibv_alloc_dm", make_dm, "ibv_free_dm", end_dm },
	{ "ibv_reg_dm_mr", make_dm_mr, "ibv_dereg_mr (of device memory)",
	  end_mr },
	{ "ibv_create_qp (UD)", make_ud, "ibv_destroy_qp (UD)", end_qp },
	{ "ibv_open_xrcd", make_xrcd, "ibv_close_xrcd", end_xrcd },
	{ "ibv_create_srq_ex (XRC)", make_xrc_srq, "ibv_destroy_srq (XRC)",
	  end_srq },
	{ "ibv_create_qp_ex (initiator)", make_ini,
	  "ibv_destroy_qp (initiator)", end_qp },
	{ "ibv_attach_mcast", join, "ibv_detach_mcast", leave },
};

/* Verbs whose effect may stay, or that have none. */
static const struct {
	const char *name;
	int (*before)(void);
	int (*verb)(void);
} verbs[] = {
	{ "ibv_resize_cq", NULL, resize_cq },
	{ "ibv_modify_cq", NULL, moderate_cq },
	{ "ibv_modify_srq (size)", NULL, resize_srq },
	{ "ibv_modify_srq (limit)", NULL, limit_srq },
	{ "ibv_query_srq", NULL, query_srq },
	{ "ibv_query_qp", NULL, query_qp },
	{ "ibv_query_port", NULL, query_port },
	{ "ibv_query_device_ex", NULL, query_device },
	{ "ibv_query_gid_table", NULL, query_gids },
	{ "ibv_modify_qp to INIT", to_reset, to_init },
	{ "ibv_modify_qp to RTR", in_init, to_rtr },
	{ "ibv_modify_qp to RTS", in_rtr, to_rts },
	{ "ibv_modify_qp to ERR", in_rts, to_error },
	{ "ibv_modify_qp to RESET", in_rts, to_reset },
};

static void fail_rereg(void)
{
	static const struct { const char *name; int (*verb)(void);
	} kinds[] = {
		{ "ibv_rereg_mr (PD)", rereg_pd },
		{ "ibv_rereg_mr (access)", rereg_access },
		{ "ibv_rereg_mr (memory)", rereg_memory },
	};
	size_t i;

	other_pd = ibv_alloc_pd(o->context);
	if (make_mr() || !other_pd)
		die("a region");
	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		fail_each(kinds[i].name, NULL, kinds[i].verb, NULL);
	expect(!end_mr() && !ibv_dealloc_pd(other_pd),
	       "ibv_dereg_mr after ibv_rereg_mr");
}

/* ---- links ---- */

#define EXTRA_LINK	"arx-faults"

static int netlink;
static const char *link_netdev;

static void put(struct nlmsghdr *h, int type, const void *value, size_t len)
{
	struct nlattr *attr = (void *)((char *)h + h->nlmsg_len);

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memcpy(attr + 1, value, len);
	h->nlmsg_len += NLA_ALIGN(attr->nla_len);
}

/*
 * The kernel does what the message asks for before send() returns. Without
 * memory for the answer it returns ENOBUFS.
 */
static int ask(struct nlmsghdr *h, int command)
{
	struct { struct nlmsghdr h; struct nlmsgerr e; } answer;

	h->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	if (send(netlink, h, h->nlmsg_len, 0) < 0 ||
	    recv(netlink, &answer, sizeof(answer), MSG_TRUNC) < 0)
		return errno;
	return -answer.e.error;
}

static bool link_is_there(void)
{
	return !access("/sys/class/infiniband/" EXTRA_LINK "/ports", F_OK);
}

static int add_link(void)
{
	char room[256] = "";
	struct nlmsghdr *h = (void *)room;
	int err;

	h->nlmsg_len = NLMSG_HDRLEN;
	put(h, RDMA_NLDEV_ATTR_DEV_NAME, EXTRA_LINK, sizeof(EXTRA_LINK));
	put(h, RDMA_NLDEV_ATTR_LINK_TYPE, "arx", sizeof("arx"));
	put(h, RDMA_NLDEV_ATTR_NDEV_NAME, link_netdev, strlen(link_netdev) + 1);
	err = ask(h, RDMA_NLDEV_CMD_NEWLINK);
	return err == ENOBUFS && link_is_there() ? 0 : err;
}

static uint32_t link_index(void)
{
	uint32_t index;
	FILE *file;

	if (!link_is_there())
		return -1;
	file = popen("rdma dev show " EXTRA_LINK, "r");
	if (!file || fscanf(file, "%u:", &index) != 1)
		die("rdma dev show");
	pclose(file);
	return index;
}

static uint32_t added;

static int add_known_link(void)
{
	int err = add_link();

	added = err ? 0 : link_index();
	return err;
}

static int del_link(void)
{
	char room[256] = "";
	struct nlmsghdr *h = (void *)room;
	int err;

	h->nlmsg_len = NLMSG_HDRLEN;
	put(h, RDMA_NLDEV_ATTR_DEV_INDEX, &added, sizeof(added));
	err = ask(h, RDMA_NLDEV_CMD_DELLINK);
	return err == ENOBUFS && !link_is_there() ? 0 : err;
}

static int del_new_link(void)
{
	added = link_index();
	return del_link();
}

static void open_fail_nth(void)
{
	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (fail_nth < 0)
		die("/proc/thread-self/fail-nth");
}

void inject_faults_into_links(const char *netdev, int every)
{
	link_netdev = netdev;
	stride = every;
	netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
	if (netlink < 0)
		die("NETLINK_RDMA");
	open_fail_nth();
	fail_each("rdma link add", NULL, add_link, del_new_link);
	fail_each("rdma link del", add_known_link, del_link, NULL);
	print_result("links");
}

void inject_faults(struct objects *objects)
{
	size_t i;

	o = objects;
	make_xrc_objects(o);
	open_fail_nth();
	long_buffer = mmap(NULL, LONG_REGION, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (long_buffer == MAP_FAILED)
		die("mmap");
	memset(long_buffer, 1, LONG_REGION);
	for (i = 0; i < ARRAY_SIZE(pairs); i++) {
		fail_each(pairs[i].name, NULL, pairs[i].verb, pairs[i].end);
		fail_each(pairs[i].end_name, pairs[i].verb, pairs[i].end, NULL);
	}
	for (i = 0; i < ARRAY_SIZE(verbs); i++)
		fail_each(verbs[i].name, verbs[i].before, verbs[i].verb, NULL);
	fail_rereg();
	fail_data();
	print_result("faults");
}
