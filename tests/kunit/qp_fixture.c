// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The sources of the QP, and replacements of tx.c, sock.c, av.c, net.c and
 * port.c for the tests. See qp_fixture.h.
 */

#include <linux/etherdevice.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <net/sock.h>

#include "attrs.h"
#include "qp_fixture.h"

/* The pair that tx.c would find by the QP. */
static struct pair *current_pair;

/* The clock of congestion.c. */
static u64 pair_clock(void)
{
	struct pair *p = current_pair;
	u64 now = p->clock ?: ktime_get_ns();

	if (p->on_clock)
		p->on_clock(p);
	return now;
}

#define ktime_get_ns()	pair_clock()
#include "congestion.c"
#undef ktime_get_ns

#include "state.c"
#include "paging.c"
#include "schedule.c"
#include "swqes.c"
#include "sendwr.c"
#include "watch.c"
#include "worker.c"
#include "requester.c"
#include "ack.c"
#include "responder.c"
#include "rdatomic.c"

bool pair_no_memory;

static void *pair_charged_zalloc(struct mem_cgroup *memcg, size_t size,
				 gfp_t gfp)
{
	return pair_no_memory ? NULL : arx_charged_zalloc(memcg, size, gfp);
}

#define arx_charged_zalloc pair_charged_zalloc
#include "completer.c"
#undef arx_charged_zalloc

#include "ip.c"
#include "loopback.c"
#include "send.c"
#include "qp.c"

static unsigned int seed;
module_param(seed, uint, 0644);
MODULE_PARM_DESC(seed, "of random cases; 0: another one in each run");

/* port.c */

u32 arx_port_mtu(const struct arx_dev *dev)
{
	return 4096;
}

/* av.c: each QP has the GID that it uses as its destination. */

struct arx_av *arx_av_create(struct arx_dev *dev, struct ib_pd *pd,
			     const struct rdma_ah_attr *attr, u32 qpn,
			     u32 dest_qpn, gfp_t gfp)
{
	struct arx_av *av = kzalloc(sizeof(*av), gfp);

	if (!av)
		return ERR_PTR(-ENOMEM);
	refcount_set(&av->ref, 1);
	av->pd = pd;
	memcpy(&av->daddr, &attr->grh.dgid, sizeof(av->daddr));
	av->saddr = av->daddr;
	av->tos = attr->grh.traffic_class;
	av->ttl = 64;
	if (attr->static_rate)
		av->mbps = ib_rate_to_mbps(attr->static_rate);
	av->ipv4 = ipv6_addr_v4mapped(&av->daddr);
	return av;
}

void arx_av_put(struct arx_av *av)
{
	if (refcount_dec_and_test(&av->ref))
		kfree_rcu(av, rcu);
}

/* net.c, gids.c: one layer-3 domain, and the device has one address. */

struct arx_l3_key arx_av_l3(const struct arx_dev *dev, const struct arx_av *av)
{
	return (struct arx_l3_key){};
}

bool arx_gids_has(const struct arx_dev *dev, const struct arx_l3_key *l3,
		  const struct in6_addr *addr)
{
	return !memcmp(addr, &current_pair->attr.ah_attr.grh.dgid,
		       sizeof(*addr));
}

/* sock.c: a socket without packets */

int arx_sock_init(struct arx_qp *qp)
{
	struct socket *sock;
	int err = sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, IPPROTO_UDP,
				   &sock);

	if (!err)
		qp->tx_sk = sock->sk;
	return err;
}

void arx_sock_forget(struct arx_qp *qp)
{
}

void arx_sock_cleanup(struct arx_qp *qp)
{
	sock_release(qp->tx_sk->sk_socket);
}

u32 arx_sock_waits(const struct arx_qp *qp)
{
	return current_pair->waits;
}

bool arx_sock_is_empty(struct arx_qp *qp)
{
	return !arx_sock_waits(qp);
}

/* tx.c: the wire */

void arx_tx_flush(struct arx_qp *qp, struct arx_tx_out *out)
{
	struct pair *p = current_pair;
	struct wire_run *w, *next;

	spin_lock(&p->lock);
	list_for_each_entry_safe(w, next, &p->wire, link) {
		if (w->from != qp || w->av || w->out != out)
			continue;
		w->av = out->batch.av;
		if (!p->drops || p->room) {
			p->room -= p->drops;
			continue;
		}
		if (!out->dropped)
			out->lost = w->run.h.psn;
		out->dropped = true;
		list_del(&w->link);
		kfree(w);
	}
	spin_unlock(&p->lock);
	out->batch = (struct arx_tx_batch) {};
}

int arx_tx_run(struct arx_qp *qp, struct arx_av *av, struct arx_run *run,
	       struct arx_tx_out *out)
{
	struct pair *p = current_pair;
	struct wire_run *w;
	struct arx_iter to;

	if (p->on_send)
		p->on_send(p, qp);
	if (p->blocked || out->dropped)
		return -EAGAIN;
	WARN_ON(run->len > ARX_TX_RUN_MAX);
	if (out->batch.av != av ||
	    run->h.psn != arx_psn_add(out->batch.psn, out->batch.n))
		arx_tx_flush(qp, out);
	if (out->dropped)
		return -EAGAIN;

	w = kmalloc(struct_size(w, data, run->len), GFP_ATOMIC);
	if (!w)
		return -ENOMEM;
	arx_iter_buf(&to, w->data);
	if (p->unreadable ||
	    arx_iter_copy(&to, &run->payload, run->len) != ARX_COPY_OK) {
		p->unreadable = false;
		kfree(w);
		return -EFAULT;
	}
	p->sent++;
	if (p->lost) {
		kfree(w);
		return -ENOBUFS;
	}
	if (!out->batch.n)
		out->batch.psn = run->h.psn;
	out->batch.av = av;
	out->batch.n += run->npkts;
	w->out = out;
	w->from = qp;
	w->av = NULL;
	w->run = *run;
	w->run.more = false;	/* rx.c knows, the wire does not */
	spin_lock(&p->lock);
	list_add_tail(&w->link, &p->wire);
	spin_unlock(&p->lock);
	return 0;
}

/* Create and destroy. */

static void pair_event(struct ib_event *event, void *context)
{
	struct side *side = context;

	if (event->event < ARRAY_SIZE(side->events))
		side->events[event->event]++;
}

static void pair_make_memory(struct kunit *test, struct pair *p,
			     struct side *side)
{
	struct arx_mr *mr = &side->mr;

	side->buf = kunit_kzalloc(test, BUF, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, side->buf);
	mr->blocks = kunit_kzalloc(test, sizeof(void *), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mr->blocks);
	mr->blocks[0] = side->buf;
	mr->nblocks = 1;
	mr->block_shift = ilog2(BUF);
	mr->key.iova = IOVA;
	mr->key.length = BUF;
	mr->key.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
		     IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |
		     IB_ACCESS_FLUSH_GLOBAL | ARX_KEY_LOCAL;
	mr->ib.device = &p->dev.ib;
	mr->key.pd = &p->pd.ib;
	mr->key.kind = ARX_KEY_USER;
	mr->key.mr = mr;
	KUNIT_ASSERT_EQ(test, arx_ids_add(&p->dev.keys, &mr->key.id), 0);
	mr->key.value = mr->key.id.nr << 8 | 0x5a;
	mr->key.state = ARX_KEY_VALID;
}

static void pair_make_side(struct kunit *test, struct pair *p,
			   struct side *side)
{
	struct ib_cq_init_attr attr = { .cqe = 256 };

	pair_make_memory(test, p, side);
	side->scq.ib.device = &p->dev.ib;
	side->rcq.ib.device = &p->dev.ib;
	KUNIT_ASSERT_EQ(test, arx_create_cq(&side->scq.ib, &attr, NULL), 0);
	KUNIT_ASSERT_EQ(test, arx_create_cq(&side->rcq.ib, &attr, NULL), 0);
}

/* Attributes for all transitions together; a mask selects some of them. */
static void pair_fill_attr(struct ib_qp_attr *attr)
{
	attr->qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
				IB_ACCESS_REMOTE_ATOMIC |
				IB_ACCESS_FLUSH_GLOBAL |
				IB_ACCESS_FLUSH_PERSISTENT;
	attr->port_num = ARX_PORT;
	attr->qkey = 0x1234;
	attr->path_mtu = IB_MTU_1024;
	attr->rq_psn = PSN;
	attr->sq_psn = PSN;
	attr->max_rd_atomic = 2;
	attr->max_dest_rd_atomic = 2;
	/* The tests expire the timers. */
	attr->timeout = 31;
	attr->min_rnr_timer = 0;
	attr->retry_cnt = 3;
	attr->rnr_retry = 2;
	attr->ah_attr.grh.dgid.raw[15] = 1;
}

/**
 * pair_new - create a device without QPs
 * @test: the test; pair_free() is its exit function
 */
struct pair *pair_new(struct kunit *test)
{
	struct pair *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_ASSERT_EQ(test, arx_worker_init(), 0);
	arx_attrs_init(&p->dev);
	p->dev.doorbell_usecs = 0;	/* only watch_kunit.c polls */
	arx_ids_init(&arx_qps, 24);
	arx_ids_init(&p->dev.keys, 24);
	arx_ids_init(&p->dev.srqs, 24);
	spin_lock_init(&p->lock);
	INIT_LIST_HEAD(&p->wire);
	p->pd.ib.device = &p->dev.ib;
	p->dev.stats = alloc_percpu(struct arx_stats);
	p->dev.netdev = alloc_etherdev(0);
	KUNIT_ASSERT_NOT_NULL(test, p->dev.stats);
	KUNIT_ASSERT_NOT_NULL(test, p->dev.netdev);
	p->dma = arx_get_dma_mr(&p->pd.ib, IB_ACCESS_LOCAL_WRITE);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, p->dma);
	for (i = 0; i < 2; i++)
		pair_make_side(test, p, &p->side[i]);
	pair_fill_attr(&p->attr);
	current_pair = p;
	return p;
}

/**
 * pair_free - undo pair_new() and pair_make_qp()
 * @p: pair
 */
void pair_free(struct pair *p)
{
	struct side *side;

	for (side = p->side; side < p->side + 2; side++) {
		if (side->qp)
			arx_destroy_qp(&side->qp->ib, NULL);
		arx_destroy_cq(&side->scq.ib, NULL);
		arx_destroy_cq(&side->rcq.ib, NULL);
		arx_ids_remove(&p->dev.keys, &side->mr.key.id);
	}
	while (pair_take(p, -1))
		;
	WARN_ON(atomic_long_read(&p->dev.kept));
	arx_dereg_mr(p->dma, NULL);
	free_netdev(p->dev.netdev);
	free_percpu(p->dev.stats);
	arx_ids_destroy(&p->dev.keys);
	arx_ids_destroy(&p->dev.srqs);
	arx_ids_destroy(&arx_qps);
	arx_worker_exit();
}

/**
 * pair_init - a suite's init function: the test's priv is a pair
 * @test: the test
 */
int pair_init(struct kunit *test)
{
	test->priv = pair_new(test);
	return 0;
}

/**
 * pair_exit - a suite's exit function, beside pair_init()
 * @test: the test
 */
void pair_exit(struct kunit *test)
{
	if (test->priv)
		pair_free(test->priv);
}

static void pair_make_kind(struct kunit *test, struct pair *p, int side,
			   enum ib_qp_type type, const struct arx_qp_kind *kind)
{
	struct side *s = &p->side[side];
	struct ib_qp_init_attr init = {
		.qp_type = type,
		.send_cq = &s->scq.ib,
		.recv_cq = &s->rcq.ib,
		.srq = p->srq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = p->depth ?: DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = SGES,
			.max_recv_sge = SGES,
			.max_inline_data = INLINE,
		},
	};
	struct arx_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->ib.device = &p->dev.ib;
	qp->ib.pd = &p->pd.ib;
	qp->ib.qp_type = type;
	qp->ib.send_cq = init.send_cq;
	qp->ib.recv_cq = init.recv_cq;
	qp->ib.event_handler = pair_event;
	qp->ib.qp_context = s;
	if (kind)
		KUNIT_ASSERT_EQ(test, 0, arx_qp_create(qp, kind, &init, NULL));
	else
		KUNIT_ASSERT_EQ(test, 0, arx_create_qp(&qp->ib, &init, NULL));
	s->qp = qp;
}

/**
 * pair_make_qp - create a QP in RESET
 * @test: the test
 * @p: pair
 * @side: index of the side
 * @type: of the QP
 */
void pair_make_qp(struct kunit *test, struct pair *p, int side,
		  enum ib_qp_type type)
{
	pair_make_kind(test, p, side, type, NULL);
}

/**
 * pair_make_half - create an RC QP that lacks a half, in RESET
 * @test: the test
 * @p: pair
 * @side: index of the side
 * @half: the half that it has: ARX_QP_REQUESTER or ARX_QP_RESPONDER
 */
void pair_make_half(struct kunit *test, struct pair *p, int side, u8 half)
{
	const struct arx_qp_kind kind = {
		.service = ARX_SERVICE_RC,
		.halves = half,
		.acked = true,
	};

	pair_make_kind(test, p, side, IB_QPT_RC, &kind);
}

/* 11.2.5.2, table 91: required attributes */
int pair_required(enum ib_qp_type type, enum ib_qp_state from,
		  enum ib_qp_state to)
{
	bool rc = type == IB_QPT_RC;
	bool ini = type == IB_QPT_XRC_INI;
	bool tgt = type == IB_QPT_XRC_TGT;
	bool connected = rc || ini || tgt || type == IB_QPT_UC;

	if (from == IB_QPS_RESET && to == IB_QPS_INIT)
		return IB_QP_PKEY_INDEX |
		       (type == IB_QPT_GSI ? 0 : IB_QP_PORT) |
		       (connected ? IB_QP_ACCESS_FLAGS : IB_QP_QKEY);
	if (from == IB_QPS_INIT && to == IB_QPS_RTR)
		return (connected ? IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
				    IB_QP_RQ_PSN : 0) |
		       (rc || tgt ? IB_QP_MAX_DEST_RD_ATOMIC |
				    IB_QP_MIN_RNR_TIMER : 0);
	if (from == IB_QPS_RTR && to == IB_QPS_RTS)
		return IB_QP_SQ_PSN |
		       (rc || ini ? IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
				    IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC :
				    0) |
		       (tgt ? IB_QP_TIMEOUT : 0);
	return 0;
}

/**
 * pair_modify - modify_qp with p->attr
 * @p: pair
 * @side: index of the QP
 * @to: state
 * @mask: attributes besides the state
 */
int pair_modify(struct pair *p, int side, enum ib_qp_state to, int mask)
{
	p->attr.qp_state = to;
	return arx_modify_qp(&p->side[side].qp->ib, &p->attr,
			     mask | IB_QP_STATE, NULL);
}

/**
 * pair_bring - bring a QP from RESET to a state
 * @test: fails if that is impossible
 * @p: pair
 * @side: index of the QP
 * @to: RESET, INIT, RTR, RTS, SQD, ERR, or SQE, which modify_qp cannot reach
 */
void pair_bring(struct kunit *test, struct pair *p, int side,
		enum ib_qp_state to)
{
	static const enum ib_qp_state way[] = {
		IB_QPS_RESET, IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS, IB_QPS_SQD,
	};
	struct arx_qp *qp = p->side[side].qp;
	enum ib_qp_state last = to;
	int i;

	if (to == IB_QPS_SQE || to == IB_QPS_ERR)
		last = IB_QPS_RTS;
	KUNIT_ASSERT_EQ(test, pair_modify(p, side, IB_QPS_RESET, 0), 0);
	for (i = 0; way[i] != last; i++)
		KUNIT_ASSERT_EQ(test, 0,
				pair_modify(p, side, way[i + 1],
					    pair_required(qp->ib.qp_type,
							  way[i], way[i + 1])));
	if (to == IB_QPS_ERR)
		KUNIT_ASSERT_EQ(test, pair_modify(p, side, to, 0), 0);
	if (to == IB_QPS_SQE) {
		local_bh_disable();
		arx_qp_set_state(qp, to);
		local_bh_enable();
	}
	KUNIT_ASSERT_EQ(test, qp->state, to);
}

/**
 * pair_join - connect two QPs and bring them to RTS, on one machine
 * @test: the test
 * @p: pair
 */
void pair_join(struct kunit *test, struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		p->attr.dest_qp_num = p->side[!i].qp->id.nr;
		pair_bring(test, p, i, IB_QPS_RTS);
	}
	p->dev.port_active = true;
}

/**
 * pair_connect - create two connected QPs in RTS, on one machine
 * @test: the test
 * @p: pair
 * @type: type of both
 */
void pair_connect(struct kunit *test, struct pair *p, enum ib_qp_type type)
{
	int i;

	for (i = 0; i < 2; i++)
		pair_make_qp(test, p, i, type);
	pair_join(test, p);
}

/* Give a QP a worker without a thread, like an application's. */
void pair_make_worker(struct kunit *test, struct arx_qp *qp)
{
	qp->worker = kunit_kzalloc(test, sizeof(*qp->worker), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, qp->worker);
	spin_lock_init(&qp->worker->lock);
	INIT_LIST_HEAD(&qp->worker->qps);
}

/**
 * pair_by_wire - connect the test's RC QPs, whose runs stay on the wire
 * @test: its priv is the pair
 */
struct pair *pair_by_wire(struct kunit *test)
{
	struct pair *p = test->priv;

	pair_connect(test, p, IB_QPT_RC);
	p->dev.port_active = false;
	return p;
}

/**
 * pair_seed - seed of the random numbers of a case
 * @test: the case; its log gets the seed
 */
u32 pair_seed(struct kunit *test)
{
	u32 chosen = READ_ONCE(seed) ?: get_random_u32();

	kunit_info(test, "seed=%u\n", chosen);
	return chosen;
}

/* A counter of the device. */
u64 count_of(struct pair *p, enum arx_counter counter)
{
	return arx_stats_sum(p->dev.stats, counter);
}

/**
 * pair_connect_halves - the same with QPs of one half each
 * @test: the test
 * @p: pair; side 0 is the requester, side 1 the responder
 */
void pair_connect_halves(struct kunit *test, struct pair *p)
{
	pair_make_half(test, p, 0, ARX_QP_REQUESTER);
	pair_make_half(test, p, 1, ARX_QP_RESPONDER);
	pair_join(test, p);
}

/**
 * pair_make_xrc_srq - create an XRC SRQ, as the core does
 * @test: the test
 * @p: pair
 * @srq: receives the SRQ
 * @pd: its PD
 * @cq: its CQ
 * @xrcd: its XRC domain
 */
void pair_make_xrc_srq(struct kunit *test, struct pair *p, struct arx_srq *srq,
		       struct arx_pd *pd, struct arx_cq *cq,
		       struct arx_xrcd *xrcd)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_XRC,
		.attr = { .max_wr = DEPTH, .max_sge = SGES },
	};

	srq->ib.device = &p->dev.ib;
	srq->ib.pd = &pd->ib;
	srq->ib.srq_type = IB_SRQT_XRC;
	srq->ib.ext.cq = &cq->ib;
	srq->ib.ext.xrc.xrcd = &xrcd->ib;
	srq->ib.event_handler = pair_event;
	srq->ib.srq_context = &p->side[1];
	KUNIT_ASSERT_EQ(test, arx_create_srq(&srq->ib, &init, NULL), 0);
	KUNIT_ASSERT_EQ(test, srq->ib.ext.xrc.srq_num, srq->id.nr);
}

static void pair_make_xrc_qp(struct kunit *test, struct pair *p, int side,
			     enum ib_qp_type type)
{
	struct side *s = &p->side[side];
	struct ib_qp_init_attr init = {
		.qp_type = type,
		.send_cq = side ? NULL : &s->scq.ib,
		.xrcd = &p->xrcd.ib,
		.cap = {
			.max_send_wr = DEPTH,
			.max_send_sge = SGES,
			.max_inline_data = INLINE,
		},
	};
	struct arx_qp *qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	qp->ib.device = &p->dev.ib;
	qp->ib.pd = side ? NULL : &p->pd.ib;
	qp->ib.xrcd = side ? &p->xrcd.ib : NULL;
	qp->ib.qp_type = type;
	qp->ib.event_handler = pair_event;
	qp->ib.qp_context = s;
	/* arx_create_qp() wants an application. */
	KUNIT_ASSERT_EQ(test, 0, arx_qp_create(qp, arx_qp_kind(type), &init,
					       NULL));
	s->qp = qp;
}

/**
 * pair_connect_xrc - the same with QPs of XRC
 * @test: the test, which destroys p->xrc
 * @p: pair; side 0 is the initiator, side 1 the target
 */
void pair_connect_xrc(struct kunit *test, struct pair *p)
{
	pair_make_xrc_srq(test, p, &p->xrc, &p->pd, &p->side[1].rcq, &p->xrcd);
	pair_make_xrc_qp(test, p, 0, IB_QPT_XRC_INI);
	pair_make_xrc_qp(test, p, 1, IB_QPT_XRC_TGT);
	pair_join(test, p);
}

/* Events from outside. */

/* The oldest run from @from (-1: either) on the wire, until the next call. */
struct wire_run *pair_take(struct pair *p, int from)
{
	struct wire_run *w;

	kfree(p->taken);
	p->taken = NULL;
	spin_lock_bh(&p->lock);
	list_for_each_entry(w, &p->wire, link) {
		if (from < 0 || w->from == p->side[from].qp) {
			list_del(&w->link);
			p->taken = w;
			break;
		}
	}
	spin_unlock_bh(&p->lock);
	return p->taken;
}

/* Like rx.c. */
int pair_rx(struct pair *p, int side, struct arx_run *run)
{
	struct arx_qp *qp = p->side[side].qp;
	int err = 0;

	local_bh_disable();
	rcu_read_lock();
	switch (run->h.op) {
	case ARX_OP_READ_RESPONSE:
	case ARX_OP_ACK:
	case ARX_OP_ATOMIC_ACK:
		if (arx_completer_rx(qp, run))
			arx_requester_poll(qp);
		break;
	default:
		err = arx_responder_rx(qp, run);
	}
	rcu_read_unlock();
	local_bh_enable();
	return err;
}

/* The packets of a run with this payload, as rx.c gathers them, or NULL. */
static struct sk_buff *pair_packets(const struct arx_run *run, const u8 *data)
{
	u32 left = run->len, i;
	struct sk_buff *first = NULL, **end = &first;

	for (i = 0; i < run->npkts; i++) {
		u32 len = min(left, run->mtu);
		struct sk_buff *skb = alloc_skb(run->mtu, GFP_ATOMIC);

		if (!skb) {
			kfree_skb_list(first);
			return NULL;
		}
		skb_put_data(skb, data, len);
		data += len;
		left -= len;
		*end = skb;
		end = &skb->next;
	}
	return first;
}

/* Like rx.c, by packets with this payload, which the stage may keep. */
int pair_rx_packets(struct pair *p, int side, struct arx_run *run, void *data)
{
	int err;

	run->packets = pair_packets(run, data);
	if (run->packets)
		arx_iter_skb(&run->payload, run->packets,
			     min(run->len, run->mtu));
	else
		arx_iter_buf(&run->payload, data);
	err = pair_rx(p, side, run);
	kfree_skb_list(run->packets);
	return err;
}

/* To its destination; may be repeated. */
int pair_deliver(struct pair *p, struct wire_run *w)
{
	struct arx_run run = w->run;

	return pair_rx_packets(p, w->from == p->side[0].qp, &run, w->data);
}

/* One work may queue the other. */
static void settle_qp(struct arx_qp *qp)
{
	do {
		flush_work(&qp->work);
	} while (flush_work(&qp->late));
}

/* Do all scheduled work. */
void pair_settle(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++)
		if (p->side[i].qp)
			settle_qp(p->side[i].qp);
}

/* Deliver all runs on the wire, and those that follow. */
void pair_pump(struct pair *p)
{
	struct wire_run *w;

	for (pair_settle(p); (w = pair_take(p, -1)); pair_settle(p))
		pair_deliver(p, w);
}

/* The job that finds pages for a requester; and a job that began before. */
static struct arx_paging_job jobs[2];

/* The requester waits for pages. */
void pair_page(struct pair *p, int side)
{
	p->side[side].qp->req.paging.job = &jobs[1];
}

/* A job of the requester has found no pages: its own job, or another one. */
void pair_paged(struct pair *p, int side, bool own)
{
	jobs[own].qpn = p->side[side].qp->id.nr;
	jobs[own].request = true;
	arx_paging_done(&jobs[own], -EFAULT);
	pair_settle(p);
}

/* Jobs that find pages end, and what they start. */
void pair_paging(struct pair *p)
{
	flush_workqueue(arx_paging_wq);
	pair_settle(p);
}

/* The retransmission timer expires. */
void pair_expire(struct pair *p, int side)
{
	local_bh_disable();
	arx_requester_retransmit(&p->side[side].qp->comp.retransmit);
	local_bh_enable();
	pair_settle(p);
}

/* For on_send: the wire accepts one run, but no second. */
void pair_block_second(struct pair *p, struct arx_qp *qp)
{
	p->blocked = p->sent == 1;
}

/* The timer expires, and nothing was acknowledged since it was started. */
void pair_timeout(struct pair *p, int side)
{
	struct arx_comp *comp = &p->side[side].qp->comp;

	spin_lock_bh(&comp->lock);
	comp->timer_una = comp->una;
	spin_unlock_bh(&comp->lock);
	pair_expire(p, side);
}

/* The RNR timer expires. */
void pair_rnr_ended(struct pair *p, int side)
{
	struct arx_comp *comp = &p->side[side].qp->comp;

	hrtimer_cancel(&comp->rnr);
	local_bh_disable();
	arx_requester_rnr_ended(&comp->rnr);
	local_bh_enable();
	pair_settle(p);
}

/* The timer of losses expires. */
void pair_probe(struct pair *p, int side)
{
	struct arx_comp *comp = &p->side[side].qp->comp;

	hrtimer_cancel(&comp->probe);
	local_bh_disable();
	arx_requester_probe(&comp->probe);
	local_bh_enable();
	pair_settle(p);
}

/* Like tx.c when there is room again. */
void pair_requester(struct pair *p, int side)
{
	local_bh_disable();
	arx_requester_run(p->side[side].qp);
	local_bh_enable();
	pair_settle(p);
}

void pair_look(struct pair *p, int side)
{
	local_bh_disable();
	arx_requester_sq_poll(&p->side[side].qp->watch.timer);
	local_bh_enable();
}

/* In @state the requester processes @n WQEs; bottom halves are off. */
void pair_steps(struct pair *p, int side, enum ib_qp_state state, int n)
{
	struct arx_qp *qp = p->side[side].qp;
	struct arx_share share = { .bytes = BUF, .wqes = n };

	arx_qp_set_state(qp, state);
	rcu_read_lock();
	spin_lock(&qp->req.lock);
	while (n--) {
		arx_requester_fetch(qp);
		arx_requester_step(qp, &share);
	}
	spin_unlock(&qp->req.lock);
	rcu_read_unlock();
}

/* True if a waiting requester notices @change. */
bool pair_progresses(struct arx_qp *qp, void (*change)(struct arx_qp *qp))
{
	struct arx_progress seen = arx_requester_progress(qp);

	change(qp);
	return arx_requester_progressed(qp, &seen);
}

/* A run as it might come from the wire, of the QPs' service. */
struct arx_run pair_run(struct pair *p, int to, enum arx_op op, int flags,
			u32 psn, void *data, u32 len)
{
	struct arx_qp *qp = p->side[to].qp;
	struct arx_run run = {
		.h = {
			.op = op,
			.service = qp->service,
			.flags = flags,
			.pkey = ARX_PKEY,
			.qpn = qp->id.nr,
			.psn = psn & ARX_PSN_MASK,
			.va = IOVA,
			.rkey = p->side[to].mr.key.value,
			.syndrome = ARX_ACK_UNLIMITED,
		},
		.mtu = MTU,
	};

	arx_run_size(&run, len);
	if (arx_has_xrceth(&run.h))
		run.h.srqn = p->xrc.id.nr;
	arx_iter_buf(&run.payload, data);
	return run;
}

/* Verbs. */

static struct ib_sge pair_sge(struct pair *p, int side, u32 at, u32 len)
{
	return (struct ib_sge) {
		.addr = (uintptr_t)p->side[side].buf + at,
		.length = len,
		.lkey = p->dma->lkey,
	};
}

/* A kernel consumer's request cannot name an XRC SRQ: the test does. */
static int pair_post_xrc(struct pair *p, int side, const struct ib_send_wr *wr)
{
	struct arx_qp *qp = p->side[side].qp;
	struct arx_send_wqe *wqe = arx_ring_entry(&qp->sq, qp->sq_prod);
	int err = arx_sendwr_write(qp, wr, wqe);

	if (err)
		return err;
	wqe->srqn = p->xrc.id.nr | ~ARX_SRQN_MASK;	/* not sent */
	arx_ring_produce(&qp->sq, ++qp->sq_prod);
	if (arx_requester_kick(qp))
		arx_qp_go_on(qp);
	return 0;
}

static int pair_post(struct pair *p, int side, const struct ib_send_wr *wr)
{
	const struct ib_send_wr *bad = NULL;
	int err;

	if (p->side[side].qp->ib.qp_type == IB_QPT_XRC_INI)
		err = pair_post_xrc(p, side, wr);
	else
		err = arx_post_send(&p->side[side].qp->ib, wr, &bad);
	pair_settle(p);
	return err;
}

/*
 * Post one request; the peer's memory is addressed at the same offset. Then do
 * all scheduled work.
 */
int pair_send(struct pair *p, int side, enum ib_wr_opcode op, u64 id,
	      int flags, u32 at, u32 len)
{
	struct ib_sge sge = pair_sge(p, side, at, len);
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = op,
			.send_flags = flags,
			.ex.imm_data = cpu_to_be32(0xabcd0000 + id),
		},
		.remote_addr = IOVA + at,
		.rkey = p->side[!side].mr.key.value,
	};

	return pair_post(p, side, &wr.wr);
}

int pair_atomic(struct pair *p, int side, enum ib_wr_opcode op, u64 id, u32 at,
		u32 there, u64 compare_add, u64 swap)
{
	struct ib_sge sge = pair_sge(p, side, at, sizeof(u64));
	struct ib_atomic_wr wr = {
		.wr = {
			.wr_id = id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = op,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = IOVA + there,
		.rkey = p->side[!side].mr.key.value,
		.compare_add = compare_add,
		.swap = swap,
	};

	return pair_post(p, side, &wr.wr);
}

int pair_recv(struct pair *p, int side, u64 id, u32 at, u32 len)
{
	struct ib_sge sge = pair_sge(p, side, at, len);
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int err;

	if (p->side[side].qp->ib.qp_type == IB_QPT_XRC_TGT)
		err = arx_post_srq_recv(&p->xrc.ib, &wr, &bad);
	else
		err = arx_post_recv(&p->side[side].qp->ib, &wr, &bad);
	pair_settle(p);
	return err;
}

/* A receive of an SRQ, into the second side's memory. */
void pair_srq_recv(struct kunit *test, struct pair *p, struct arx_srq *srq,
		   u64 id, u32 lkey, u32 len)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)p->side[1].buf,
		.length = len,
		.lkey = lkey,
	};
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;

	KUNIT_ASSERT_EQ(test, 0, arx_post_srq_recv(&srq->ib, &wr, &bad));
}

struct ib_wc pair_poll(struct arx_cq *cq)
{
	struct ib_wc wc = { .wr_id = NO_WC };

	arx_poll_cq(&cq->ib, 1, &wc);
	return wc;
}
