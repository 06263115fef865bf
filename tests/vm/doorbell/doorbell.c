// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The moderation of doorbells and events as an application sees it. Two
 * connected QPs in one process; the first writes to memory of the second.
 *
 *	doorbell stream DEVICE COUNT
 *		COUNT writes of 8 bytes, 16 outstanding
 *	doorbell single DEVICE COUNT
 *		COUNT writes, each waited for by its completion
 *	doorbell events DEVICE COUNT
 *		like stream, but sleeps between completions
 *	doorbell steady DEVICE SECONDS
 *		a write every 20 us, at most 32 in flight; only the first few
 *		kick
 *	doorbell vector DEVICE N
 *		on CPU 0, 50 writes, each waited for by its event, on completion
 *		vector N
 *	doorbell moderated DEVICE MS
 *		one event is delayed for MS, that of four completions is not
 *	doorbell races DEVICE SECONDS
 *		writes without a kick, at any moment
 *
 * And two programs that answer each other, joined by their standard input and
 * output:
 *
 *	doorbell ping DEVICE COUNT
 *		asks, and compares how long answers take
 *	doorbell pong DEVICE COUNT
 *		answers
 */
#define _GNU_SOURCE		/* for CPU sets */
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH	128
#define WINDOW	16

static struct ibv_context *context;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static struct ibv_pd *domain;
static union ibv_gid gid;
static int gid_index;
static _Atomic(uint64_t) words[DEPTH + 1];	/* [0] is written to */

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

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_gid_entry entries[32];
	ssize_t n;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	check(context != NULL, name);
	n = ibv_query_gid_table(context, entries, 32, 0);
	check(n > 0, "GIDs");
	gid = entries[n - 1].gid;
	gid_index = entries[n - 1].gid_index;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *recv_cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = DEPTH, .max_send_sge = 1,
			.max_recv_wr = DEPTH, .max_recv_sge = 1,
		},
	};
	struct ibv_qp *made = ibv_create_qp(pd, &attr);

	check(made != NULL, "ibv_create_qp");
	return made;
}

static void connect_qp(struct ibv_qp *from, uint32_t to,
		       const union ibv_gid *there)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {
			.port_num = 1, .is_global = 1,
			.grh = {
				.dgid = *there, .sgid_index = gid_index,
				.hop_limit = 64,
			},
		},
	};

	check(!ibv_modify_qp(from, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS),
	      "INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(from, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER),
	      "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(from, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
}

static void make_objects(const char *name, bool alone, int vector)
{
	struct ibv_qp *peer;
	struct ibv_pd *pd;

	open_device(name);
	pd = ibv_alloc_pd(context);
	check(pd != NULL, "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, words, sizeof(words),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(mr != NULL, "ibv_reg_mr");
	channel = ibv_create_comp_channel(context);
	check(channel != NULL, "ibv_create_comp_channel");
	cq = ibv_create_cq(context, 2 * DEPTH, NULL, channel, vector);
	check(cq != NULL, "ibv_create_cq");
	if (alone) {
		qp = make_qp(pd, cq);
		peer = make_qp(pd, cq);
		connect_qp(qp, peer->qp_num, &gid);
		connect_qp(peer, qp->qp_num, &gid);
	}
	domain = pd;
}

/* Write @value to words[0]. */
static void post(uint64_t value, unsigned int flags)
{
	_Atomic(uint64_t) *from = &words[1 + value % DEPTH];
	struct ibv_sge sge = {
		.addr = (uintptr_t)from, .length = 8, .lkey = mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = value, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = flags,
		.wr.rdma = {
			.remote_addr = (uintptr_t)words, .rkey = mr->rkey,
		},
	}, *bad;

	*from = value;
	check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static int take(uint64_t expected)
{
	struct ibv_wc wc[WINDOW];
	int i, n = ibv_poll_cq(cq, WINDOW, wc);

	for (i = 0; i < n; i++)
		check(wc[i].status == IBV_WC_SUCCESS &&
		      wc[i].wr_id == expected + i,
		      "completion");
	return n;
}

/* @asleep: wait for an event when there is nothing to poll. */
static void stream(uint64_t count, int window, bool asleep)
{
	uint64_t posted = 0, done = 0;
	void *cq_context;
	struct ibv_cq *of;
	int n;

	while (done < count) {
		for (; posted < count && posted - done < (uint64_t)window;
		     posted++)
			post(posted + 1, IBV_SEND_SIGNALED);
		n = take(done + 1);
		done += n;
		if (n || !asleep)
			continue;
		check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		done += take(done + 1);
		if (posted == done)
			continue;
		check(!ibv_get_cq_event(channel, &of, &cq_context),
		      "ibv_get_cq_event");
		ibv_ack_cq_events(of, 1);
	}
	check(words[0] == count, "the last write");
}

/*
 * A write each STEADY_GAP, with at most STEADY in flight, and without kicks. A
 * poll of the CQ that finds no completion would kick, so the CQ is polled only
 * when a completion is there: one write in STEADY is signalled, and its
 * completion is polled after STEADY later writes have changed memory.
 */
#define STEADY		32
#define STEADY_GAP	20e-6

static bool take_steady(uint64_t expected)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(cq, 1, &wc) != 1)
		return false;
	check(wc.status == IBV_WC_SUCCESS && wc.wr_id == expected,
	      "completion");
	return true;
}

static void steady(double seconds)
{
	double t = now(), end = t + seconds, next = t;
	uint64_t posted = 0, done = 0, sent;

	for (; t < end; t = now()) {
		sent = words[0];
		if (sent - done >= 2 * STEADY && take_steady(done + STEADY))
			done += STEADY;
		if (t < next || posted - sent == STEADY)
			continue;
		posted++;
		post(posted, posted % STEADY ? 0 : IBV_SEND_SIGNALED);
		next = t + STEADY_GAP;
	}
	printf("%llu writes\n", (unsigned long long)posted);
}

/* Seconds until the event of @count writes comes. */
static double event(int count)
{
	double start = now();
	void *cq_context;
	struct ibv_cq *of;
	int i, done = 0;

	check(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	for (i = 0; i < count; i++)
		post(i + 1, IBV_SEND_SIGNALED);
	check(!ibv_get_cq_event(channel, &of, &cq_context), "ibv_get_cq_event");
	ibv_ack_cq_events(of, 1);
	while (done < count)
		done += take(done + 1);
	return now() - start;
}

static void moderated(double ms)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 4, .cq_period = ms * 1000 },
	};
	double one, four;
	int i;

	check(!ibv_modify_cq(cq, &attr), "ibv_modify_cq");
	one = event(1);
	/* The period is at most 65 ms, but a busy host may pause for longer. */
	four = event(4);
	for (i = 0; i < 5 && four >= ms / 1e3; i++)
		four = event(4);
	printf("of one completion after %.1f ms, of four after %.1f ms\n",
	       one * 1e3, four * 1e3);
	check(one >= ms / 1e3 && four < ms / 1e3, "times");
}

/*
 * One thread, on one CPU, makes the kernel poll the ring: its kicks are where
 * the timer is started. Another thread posts single writes on another CPU, at
 * any moment until polling has ended, and waits for each in memory: it never
 * polls the CQ, so only the post itself can kick.
 */
static _Atomic(uint64_t) turn;		/* odd: the poster's */
static _Atomic bool over;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	/* set already if there is only one CPU */
	sched_setaffinity(0, sizeof(set), &set);
}

/* Not to the other thread's CPU, if it has one of its own: that takes long. */
static void let_other(void)
{
	static int cpus;

	if (!cpus)
		cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (cpus == 1)
		sched_yield();
}

static void await(uint64_t value)
{
	double end = now() + 5;

	while (words[0] != value) {
		if (now() > end) {
			printf("write %llu was posted, and nobody looked\n",
			       (unsigned long long)value);
			exit(1);
		}
	}
}

static uint64_t written;	/* by the thread whose turn it is */

static void events_of_vector(int count)
{
	pin(0);
	while (count--)
		event(1);
}

static void *streamer(void *arg)
{
	int i;

	(void)arg;
	pin(0);
	while (!over) {
		while (atomic_load(&turn) % 2 && !over)
			let_other();
		for (i = 0; i < 3 * WINDOW; i++)
			post(written + i + 1,
			     i % WINDOW ? 0 : IBV_SEND_SIGNALED);
		written += i;
		await(written);
		atomic_fetch_add(&turn, 1);
	}
	return NULL;
}

static void races(double seconds)
{
	double end = now() + seconds, until;
	unsigned long count = 0;
	struct ibv_wc wc[WINDOW];
	unsigned int seed = 1;
	pthread_t thread;

	pin(1);
	check(!pthread_create(&thread, NULL, streamer, NULL), "pthread_create");
	for (; now() < end; count++) {
		while (atomic_load(&turn) % 2 == 0)
			let_other();
		until = now() + rand_r(&seed) % 300 / 1e6;
		while (now() < until)
			;
		post(++written, IBV_SEND_SIGNALED);
		await(written);
		while (ibv_poll_cq(cq, WINDOW, wc) > 0)
			;
		atomic_fetch_add(&turn, 1);
	}
	over = true;
	pthread_join(thread, NULL);
	printf("# %lu writes\n", count);
}

/* ------------------------------------------------------------------------ */
/*
 * One side asks, the other answers, by a write that is polled in memory or by a
 * message. Each side has one send in flight, whatever its completions say: no
 * send may be deferred because few are signalled.
 */
struct pattern {
	const char *name;
	bool message;		/* or a write */
	bool separate;		/* CQs */
};

static const struct pattern patterns[] = {
	{ "writes, one CQ", false, false },
	{ "writes, separate CQs", false, true },
	{ "messages, separate CQs", true, true },
};

#define SELDOM		64	/* one in this many is signalled */
#define ROUNDS		5	/* of each kind, at least */
#define MOST_ROUNDS	1000	/* of each kind */
#define PATIENCE	90	/* seconds until rounds are not repeated */

static struct ibv_cq *recv_cq;
static bool yields;
static uint64_t peer_addr;
static uint32_t peer_rkey;
static int unpolled;

static void exchange(void)
{
	struct {
		union ibv_gid gid;
		uint64_t addr;
		uint32_t qpn, rkey;
	} mine = { gid, (uintptr_t)words, qp->qp_num, mr->rkey }, theirs;

	check(write(1, &mine, sizeof(mine)) == sizeof(mine), "write");
	check(read(0, &theirs, sizeof(theirs)) == sizeof(theirs), "read");
	peer_addr = theirs.addr;
	peer_rkey = theirs.rkey;
	connect_qp(qp, theirs.qpn, &theirs.gid);
	check(write(1, "", 1) == 1 && read(0, &mine, 1) == 1, "ready");
}

static void post_receive(void)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)words, .length = 8, .lkey = mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	check(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void tell(const struct pattern *p, uint64_t value, int every)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&words[1 + value % DEPTH], .length = 8,
		.lkey = mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = value, .sg_list = &sge, .num_sge = 1,
		.opcode = p->message ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.send_flags = value % every ? 0 : IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = peer_addr, .rkey = peer_rkey },
	}, *bad;

	words[1 + value % DEPTH] = value;
	check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	unpolled += value % every == 0;
}

static void hear(const struct pattern *p, uint64_t value)
{
	struct ibv_wc wc;
	int n = 0;

	while (p->message ? !n : words[0] != value) {
		if (p->message)
			n = ibv_poll_cq(recv_cq, 1, &wc);
		if (yields)
			sched_yield();
	}
	if (p->message)
		post_receive();
}

/* Signalled requests have completed, or will: poll for these only. */
static void reap(void)
{
	struct ibv_wc wc;

	while (unpolled) {
		unpolled -= ibv_poll_cq(cq, 1, &wc);
		if (yields && unpolled)
			sched_yield();
	}
}

static int by_value(const void *a, const void *b)
{
	return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b);
}

/* Microseconds: the 90th and the 99th of 100, of @count after some more. */
static void ping(const struct pattern *p, uint64_t count, int every, bool asks,
		 double *p90, double *p99)
{
	static double *took;
	uint64_t i, before = 2 * SELDOM;
	double start;

	took = realloc(took, count * sizeof(*took));
	for (i = 1; i <= before + count; i++) {
		start = now();
		if (!asks)
			hear(p, i);
		tell(p, i, every);
		if (asks)
			hear(p, i);
		if (i > before)
			took[i - before - 1] = (now() - start) * 1e6;
		reap();
	}
	words[0] = 0;
	qsort(took, count, sizeof(*took), by_value);
	*p90 = took[count * 90 / 100];
	*p99 = took[count * 99 / 100];
}

/* Microseconds: what rounds of one kind took. */
struct rounds {
	int n;
	double p90[MOST_ROUNDS], p99[MOST_ROUNDS];
	double median_p90, median_p99;
};

static double median(const double *values, int n)
{
	double sorted[MOST_ROUNDS];

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[n / 2];
}

static void add_round(struct rounds *r, double p90, double p99)
{
	r->p90[r->n] = p90;
	r->p99[r->n] = p99;
	r->n++;
	r->median_p90 = median(r->p90, r->n);
	r->median_p99 = median(r->p99, r->n);
}

static bool alike(const struct rounds *all, const struct rounds *few)
{
	return few->median_p90 <= 1.2 * all->median_p90 &&
	       few->median_p99 <= 1.2 * all->median_p99;
}

/* A round is over. Both sides return what the side that asks says. */
static bool go_on(bool asks, bool more)
{
	char mine = more, theirs;

	check(write(1, &mine, 1) == 1 && read(0, &theirs, 1) == 1, "done");
	return asks ? mine : theirs;
}

/*
 * Rounds of both kinds take turns, so other programs of the host disturb both.
 * Medians are compared: the best rounds of a busy host are best by chance. More
 * rounds follow until @end while the medians differ.
 */
static bool compare(const struct pattern *p, uint64_t count, bool asks,
		    double end)
{
	static struct rounds all, few;
	struct rounds *kind;
	double p90, p99;
	bool more = true;
	int i;

	recv_cq = p->separate ?
			  ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0) :
			  cq;
	check(recv_cq != NULL, "ibv_create_cq");
	all.n = 0;
	few.n = 0;
	while (more) {
		kind = all.n > few.n ? &few : &all;
		qp = make_qp(domain, recv_cq);
		exchange();
		for (i = 0; i < 4 && p->message; i++)
			post_receive();
		check(write(1, "", 1) == 1 && read(0, &i, 1) == 1, "ready");
		ping(p, count, kind == &few ? SELDOM : 1, asks, &p90, &p99);
		add_round(kind, p90, p99);
		more = go_on(asks, kind == &all || few.n < ROUNDS ||
					   (!alike(&all, &few) && now() < end &&
					    few.n < MOST_ROUNDS));
		check(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	}
	if (!asks)
		return true;
	/* One line of all patterns: a failed case shows its last line. */
	fprintf(stderr,
		"%s: p90 %.1f and p99 %.1f us, with one in %d signalled %.1f and %.1f, in %d rounds; ",
		p->name, all.median_p90, all.median_p99, SELDOM,
		few.median_p90, few.median_p99, all.n);
	return alike(&all, &few);
}

static int ping_pong(const char *device, uint64_t count, bool asks)
{
	double end = now() + PATIENCE;
	cpu_set_t set;
	bool good = true;
	size_t i;

	sched_getaffinity(0, sizeof(set), &set);
	yields = CPU_COUNT(&set) == 1;
	make_objects(device, false, 0);
	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		good &= compare(&patterns[i], count, asks, end);
	if (asks)
		fprintf(stderr, "%s\n", good ? "alike" : "differ");
	return !good;
}

int main(int argc, char **argv)
{
	int vector;

	check(argc == 4, "doorbell MODE DEVICE COUNT");
	if (argv[1][0] == 'p')
		return ping_pong(argv[2], strtoull(argv[3], NULL, 0),
				 !strcmp(argv[1], "ping"));
	vector = !strcmp(argv[1], "vector") ? atoi(argv[3]) : 0;
	make_objects(argv[2], true, vector);
	if (vector)
		events_of_vector(50);
	else if (!strcmp(argv[1], "stream"))
		stream(strtoull(argv[3], NULL, 0), WINDOW, false);
	else if (!strcmp(argv[1], "single"))
		stream(strtoull(argv[3], NULL, 0), 1, false);
	else if (!strcmp(argv[1], "events"))
		stream(strtoull(argv[3], NULL, 0), WINDOW, true);
	else if (!strcmp(argv[1], "steady"))
		steady(strtod(argv[3], NULL));
	else if (!strcmp(argv[1], "moderated"))
		moderated(strtod(argv[3], NULL));
	else
		races(strtod(argv[3], NULL));
	return 0;
}
