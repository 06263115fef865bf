// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * bench-flows OP SIZE DEPTH WARM SECONDS CHECK ADDRESS TO FROM...
 *
 * Flows from some nodes to one, all at the same time. TO is NETNS:DEVICE, the
 * node that the flows go to, and ADDRESS its IPv4 address. Each FROM is
 * NETNS:DEVICE:COUNT, or NETNS:tcp:COUNT for connections of TCP (CUBIC), or
 * NETNS:dcqcn:COUNT for the traffic of bench-dcqcn.c. OP is write, read, atomic
 * (SIZE 8) or send.
 *
 * An RC QP has DEPTH messages of SIZE bytes outstanding. A connection of TCP is
 * a stream; with DEPTH 1 its sender waits for an answer to each message.
 * Nothing polls without sleeping: the nodes share the CPUs with the network.
 *
 * WARM seconds after the start "begin" is printed, and "end" after SECONDS
 * more; what completes between the two is counted. Then follows, as JSON: the
 * rate of each flow in Mbit/s and the longest time in which it completed
 * nothing; median, 99th percentile and number of the messages; times in ms.
 *
 * With CHECK 1, all data is checked, and whether each message has had its
 * effect exactly once: "wrong" is the number of messages of which that is not
 * true. "rtt" is then the median of some 8-byte WRITEs before all others. The
 * receives of SENDs come late, so that SENDs meet RNR NAKs. CHECK 2 is the same
 * for WRITEs and SENDs that never change their payload.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include "bench-dcqcn.h"
#include "bench-verbs.h"

#define SIDES		16
#define FLOWS		64
#define DEPTHS		128
#define MOST		200000		/* messages of a flow with a time */
#define LATE		1e-3		/* s, a queue of receives is empty */
#define DRAIN		30		/* seconds */
#define RECEIVE		(1ull << 32)	/* in a wr_id */

enum op { WRITE, READ, ATOMIC, SEND, OPS };

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
} ops[OPS] = {
	[WRITE] = { "write", IBV_WR_RDMA_WRITE },
	[READ] = { "read", IBV_WR_RDMA_READ },
	[ATOMIC] = { "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD },
	[SEND] = { "send", IBV_WR_SEND },
};

/* A device of a node. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	union ibv_gid gid;
	int gid_index;
};

/* Memory of DEPTH messages. */
struct slots {
	char *at;
	struct ibv_mr *mr;
};

struct flow {
	struct side *from;
	struct ibv_qp *qp, *peer;	/* NULL: sockets */
	struct slots near, far;
	uint64_t posted, done, received, receives;
	double started[DEPTHS];
	double due;			/* when receives are posted, or 0 */
	int out, in;			/* sockets of TCP and UDP */
	int datagrams;			/* UDP */
	_Atomic uint64_t bytes;
	double *took;			/* seconds of each message */
	size_t n;
	double last, stall;
};

static enum op op;
static size_t size, depth;
static int checks;
static struct side sides[SIDES];	/* the first one is TO */
static int num_sides;
static struct flow flows[FLOWS];
static int num_flows;
static atomic_bool counting;
static int stopping;
static uint64_t wrong;

/* ---- contents ---- */

static uint64_t word(uint64_t n, size_t i)
{
	return (n + 1) * 0x9e3779b97f4a7c15 + i;
}

static void fill(char *slot, uint64_t n)
{
	uint64_t *words = (uint64_t *)slot;

	for (size_t i = 0; i < size / 8; i++)
		words[i] = word(n, i);
}

static int holds(const char *slot, uint64_t n)
{
	const uint64_t *words = (const uint64_t *)slot;

	for (size_t i = 0; i < size / 8; i++)
		if (words[i] != word(n, i))
			return 0;
	return 1;
}

static char *slot(const struct slots *of, uint64_t n)
{
	return of->at + n % depth * size;
}

/* Which contents message @n of a WRITE or SEND has. */
static uint64_t content(uint64_t n)
{
	return checks == 2 ? n % depth : n;
}

/* What message @n needs before it is posted. */
static void prepare(struct flow *f, uint64_t n)
{
	if ((op == WRITE || op == SEND) && (checks == 1 || n < depth))
		fill(slot(&f->near, n), n);
	else if (op == READ || op == ATOMIC)
		memset(slot(&f->near, n), 0xff, size);
}

static void check_message(struct flow *f, uint64_t n)
{
	const char *near = slot(&f->near, n);

	switch (op) {
	case WRITE:
		wrong += !holds(slot(&f->far, n), content(n));
		break;
	case READ:
		wrong += !holds(near, n % depth);
		break;
	case ATOMIC:
		wrong += *(uint64_t *)near != n;
		break;
	default:
		break;
	}
}

/* Nothing is in flight any more. */
static void check_end(struct flow *f)
{
	uint64_t n;

	if (op == ATOMIC)
		wrong += *(uint64_t *)f->far.at != f->posted;
	for (n = f->posted > depth ? f->posted - depth : 0;
	     op == WRITE && n < f->posted; n++)
		wrong += !holds(slot(&f->far, n), content(n));
}

static void prepare_all(struct flow *f)
{
	memset(f->far.at, 0, depth * size);
	for (uint64_t n = 0; op == READ && n < depth; n++)
		fill(slot(&f->far, n), n);
}

/* ---- counting ---- */

static void count(struct flow *f, size_t bytes)
{
	double end = now();

	f->bytes += bytes;
	if (end - f->last > f->stall)
		f->stall = end - f->last;
	f->last = end;
}

static void note_time(struct flow *f, double seconds)
{
	if (f->n < MOST)
		f->took[f->n++] = seconds;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ---- RC ---- */

static void open_side(struct side *s, const char *netns, const char *device)
{
	s->context = open_device(netns, device);
	s->gid_index = find_gid(s->context, &s->gid);
	s->pd = ibv_alloc_pd(s->context);
	check(s->pd != NULL, "ibv_alloc_pd");
	s->channel = ibv_create_comp_channel(s->context);
	check(s->channel != NULL, "ibv_create_comp_channel");
	s->cq = ibv_create_cq(s->context, 4096, NULL, s->channel, 0);
	check(s->cq != NULL, "ibv_create_cq");
}

static void make_slots(struct slots *of, struct side *s)
{
	size_t bytes = (depth * size + 4095) / 4096 * 4096;

	of->at = aligned_alloc(4096, bytes);
	check(of->at != NULL, "aligned_alloc");
	memset(of->at, 0, bytes);
	of->mr = ibv_reg_mr(s->pd, of->at, bytes,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	check(of->mr != NULL, "ibv_reg_mr");
}

static struct ibv_qp *make_qp(struct side *s)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = depth, .max_recv_wr = depth,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &attr);

	check(qp != NULL, "ibv_create_qp");
	return qp;
}

static void connect_qp(struct ibv_qp *qp, struct side *s, struct ibv_qp *peer,
		       struct side *to)
{
	struct ibv_qp_attr attr = {
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer->qp_num,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.ah_attr.grh = {
			.dgid = to->gid, .sgid_index = s->gid_index,
			.hop_limit = 64,
		},
	};

	connect_rc(qp, attr);
}

/* Half of the receives that the sender could use. */
static void post_receives(struct flow *f)
{
	struct ibv_sge sge = { .length = size, .lkey = f->far.mr->lkey };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = (f - flows) | RECEIVE, .sg_list = &sge, .num_sge = 1,
	};

	for (size_t i = 0; i < (depth + 1) / 2; i++, f->receives++) {
		sge.addr = (uintptr_t)slot(&f->far, f->receives);
		check(!ibv_post_recv(f->peer, &wr, &bad), "ibv_post_recv");
	}
	f->due = 0;
}

static void make_rc(struct flow *f, struct side *from)
{
	f->from = from;
	f->qp = make_qp(from);
	f->peer = make_qp(&sides[0]);
	connect_qp(f->qp, from, f->peer, &sides[0]);
	connect_qp(f->peer, &sides[0], f->qp, from);
	make_slots(&f->near, from);
	make_slots(&f->far, &sides[0]);
}

static void post(struct flow *f, enum ibv_wr_opcode opcode, uint64_t n,
		 size_t bytes)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)slot(&f->near, n), .length = bytes,
		.lkey = f->near.mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = f - flows,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = (uintptr_t)slot(&f->far, n),
			.rkey = f->far.mr->rkey,
		},
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)f->far.at;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = f->far.mr->rkey;
	}
	check(!ibv_post_send(f->qp, &wr, &bad), "ibv_post_send");
}

static void post_next(struct flow *f)
{
	if (checks)
		prepare(f, f->posted);
	f->started[f->posted % depth] = now();
	post(f, ops[op].opcode, f->posted, size);
	f->posted++;
}

static void sent(struct flow *f)
{
	if (counting) {
		count(f, size);
		note_time(f, now() - f->started[f->done % depth]);
	}
	if (checks)
		check_message(f, f->done);
	f->done++;
	if (!stopping)
		post_next(f);
}

static void received(struct flow *f)
{
	if (checks)
		wrong += !holds(slot(&f->far, f->received),
				content(f->received));
	f->received++;
	if (f->received == f->receives)
		f->due = now() + (checks ? LATE : 0);
}

/* True if there was a completion. */
static int serve(struct side *s)
{
	struct ibv_wc wc[16];
	int i, n = ibv_poll_cq(s->cq, 16, wc);

	check(n >= 0, "ibv_poll_cq");
	for (i = 0; i < n; i++) {
		struct flow *f = &flows[wc[i].wr_id & ~RECEIVE];

		if (wc[i].status != IBV_WC_SUCCESS)
			errx(1, "message %lu of flow %ld: %s",
			     (unsigned long)f->done, (long)(f - flows),
			     ibv_wc_status_str(wc[i].status));
		if (wc[i].wr_id & RECEIVE)
			received(f);
		else
			sent(f);
	}
	return n;
}

static int serve_all(void)
{
	int i, n = 0;

	for (i = 0; i < num_sides; i++)
		if (sides[i].cq)
			n += serve(&sides[i]);
	for (i = 0; i < num_flows; i++)
		if (flows[i].due && flows[i].due <= now()) {
			post_receives(&flows[i]);
			n++;
		}
	return n;
}

static void take_event(struct side *s)
{
	struct ibv_cq *cq;
	void *unused;

	check(!ibv_get_cq_event(s->channel, &cq, &unused), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

/* Sleep until something completes, for @seconds at most. */
static void doze(double seconds)
{
	struct pollfd fds[SIDES];
	int i, n;

	for (i = 0; i < num_sides; i++) {
		fds[i].fd = sides[i].cq ? sides[i].channel->fd : -1;
		fds[i].events = POLLIN;
		check(!sides[i].cq || !ibv_req_notify_cq(sides[i].cq, 0),
		      "ibv_req_notify_cq");
	}
	if (serve_all())
		return;
	if (op == SEND && seconds > LATE)
		seconds = LATE;
	n = poll(fds, num_sides, seconds < 0 ? 0 : (int)(seconds * 1e3) + 1);
	check(n >= 0, "poll");
	for (i = 0; i < num_sides; i++)
		if (fds[i].revents)
			take_event(&sides[i]);
}

static void serve_until(double end)
{
	while (now() < end)
		if (!serve_all())
			doze(end - now());
}

static int unfinished(const struct flow *f)
{
	return f->done < f->posted || (op == SEND && f->received < f->posted);
}

static void drain(void)
{
	double end = now() + DRAIN;
	struct flow *f;

	stopping = 1;
	for (f = flows; f < flows + num_flows; f++)
		while (unfinished(f)) {
			if (now() > end)
				errx(1, "of %lu messages %lu are complete, %lu received after %d s",
				     (unsigned long)f->posted,
				     (unsigned long)f->done,
				     (unsigned long)f->received, DRAIN);
			if (!serve_all())
				doze(end - now());
		}
}

/* Seconds of an 8-byte WRITE and its completion, while nothing else is sent. */
static double round_trip(struct flow *f)
{
	double took[21];
	struct ibv_wc wc;
	int i, n;

	for (i = 0; i < 21; i++) {
		took[i] = now();
		post(f, IBV_WR_RDMA_WRITE, 0, 8);
		while (!(n = ibv_poll_cq(f->from->cq, 1, &wc)))
			;
		if (n != 1 || wc.status != IBV_WC_SUCCESS)
			errx(1, "a first WRITE: %s",
			     ibv_wc_status_str(wc.status));
		took[i] = now() - took[i];
	}
	qsort(took, 21, sizeof(took[0]), by_size);
	return took[10];
}

/* ---- TCP, and datagrams ---- */

static void set_up_tcp(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		err(1, "a socket");
}

/* A socket in the network namespace, bound to @end, which receives the port. */
static int listen_at(const char *netns, int type, struct sockaddr_in *end)
{
	socklen_t length = sizeof(*end);
	int fd;

	enter(netns);
	fd = socket(AF_INET, type, 0);
	if (fd < 0 || bind(fd, (void *)end, length) ||
	    (type == SOCK_STREAM && listen(fd, 1)) ||
	    getsockname(fd, (void *)end, &length))
		err(1, "listen");
	return fd;
}

static int connect_to(const char *netns, int type,
		      const struct sockaddr_in *end)
{
	int fd;

	enter(netns);
	fd = socket(AF_INET, type, 0);
	if (fd < 0 || connect(fd, (const void *)end, sizeof(*end)))
		err(1, "connect");
	return fd;
}

static void make_sockets(struct flow *f, const char *to, const char *from,
			 const char *address)
{
	struct sockaddr_in end = { .sin_family = AF_INET };
	int type = f->datagrams ? SOCK_DGRAM : SOCK_STREAM;

	if (inet_pton(AF_INET, address, &end.sin_addr) != 1)
		errx(2, "not an address: %s", address);
	f->in = listen_at(to, type, &end);
	f->out = connect_to(from, type, &end);
	if (f->datagrams) {
		dcqcn_set_up(f->in, f->out);
		return;
	}
	f->in = accept(f->in, NULL, NULL);
	check(f->in >= 0, "accept");
	set_up_tcp(f->in);
	set_up_tcp(f->out);
}

/* Both threads of a flow end with the process. */
static void *tcp_sender(void *flow)
{
	char *message = calloc(1, size), answer;
	struct flow *f = flow;

	check(message != NULL, "calloc");
	for (;;) {
		double start = now();
		size_t done;
		ssize_t n;

		for (done = 0; done < size; done += n) {
			n = send(f->out, message + done, size - done, 0);
			if (n <= 0)
				err(1, "send");
		}
		if (depth > 1)
			continue;
		if (recv(f->out, &answer, 1, 0) != 1)
			err(1, "recv");
		if (counting)
			note_time(f, now() - start);
	}
	return NULL;
}

static void *tcp_receiver(void *flow)
{
	char *message = malloc(size);
	struct flow *f = flow;
	size_t done = 0;

	check(message != NULL, "malloc");
	for (;;) {
		ssize_t n = recv(f->in, message, size - done, 0);

		if (n <= 0)
			err(1, "recv");
		if (counting)
			count(f, n);
		done += n;
		if (done < size)
			continue;
		done = 0;
		if (depth == 1 && send(f->in, message, 1, 0) != 1)
			err(1, "send");
	}
	return NULL;
}

static void *datagram_sender(void *flow)
{
	dcqcn_send(((struct flow *)flow)->out);
	return NULL;
}

static void count_datagram(void *flow, size_t bytes)
{
	if (counting)
		count(flow, bytes);
}

static void *datagram_receiver(void *flow)
{
	dcqcn_receive(((struct flow *)flow)->in, count_datagram, flow);
	return NULL;
}

static void start_sockets(struct flow *f)
{
	pthread_t thread;

	check(!pthread_create(&thread, NULL, f->datagrams ?
			      datagram_receiver : tcp_receiver, f),
	      "pthread_create");
	check(!pthread_create(&thread, NULL, f->datagrams ?
			      datagram_sender : tcp_sender, f),
	      "pthread_create");
}

/* ---- */

static void start(struct flow *f)
{
	if (!f->qp) {
		start_sockets(f);
		return;
	}
	prepare_all(f);
	if (op == SEND)
		post_receives(f);
	for (size_t i = 0; i < depth; i++)
		post_next(f);
}

/* @from: NETNS:DEVICE:COUNT */
static void make_flows(char *from, const char *to, const char *address)
{
	char *netns = strtok(from, ":");
	char *device = strtok(NULL, ":");
	char *number = strtok(NULL, ":");
	struct side *s = NULL;
	int i;

	if (!number || num_flows + atoi(number) > FLOWS || num_sides == SIDES)
		errx(2, "not NETNS:DEVICE:COUNT, or too many: %s", from);
	if (strcmp(device, "tcp") && strcmp(device, "dcqcn")) {
		s = &sides[num_sides++];
		open_side(s, netns, device);
	}
	for (i = 0; i < atoi(number); i++) {
		struct flow *f = &flows[num_flows++];

		f->datagrams = !strcmp(device, "dcqcn");
		f->took = calloc(MOST, sizeof(*f->took));
		check(f->took != NULL, "calloc");
		if (s)
			make_rc(f, s);
		else
			make_sockets(f, to, netns, address);
	}
}

static double measure(double warm, double seconds)
{
	double begin;
	int i;

	for (i = 0; i < num_flows; i++)
		start(&flows[i]);
	serve_until(now() + warm);
	puts("begin");
	fflush(stdout);
	begin = now();
	for (i = 0; i < num_flows; i++)
		flows[i].last = begin;
	counting = 1;
	serve_until(begin + seconds);
	counting = 0;
	seconds = now() - begin;
	puts("end");
	fflush(stdout);
	for (i = 0; i < num_flows; i++)
		if (begin + seconds - flows[i].last > flows[i].stall)
			flows[i].stall = begin + seconds - flows[i].last;
	return seconds;
}

static void report(double seconds, double rtt)
{
	double *all = NULL;
	size_t n = 0;
	int i;

	printf("{\"flows\": [");
	for (i = 0; i < num_flows; i++)
		printf("%s{\"mbit\": %.4f, \"stall\": %.4f}", i ? ", " : "",
		       flows[i].bytes * 8 / seconds / 1e6,
		       flows[i].stall * 1e3);
	for (i = 0; i < num_flows; i++) {
		all = realloc(all, (n + flows[i].n + 1) * sizeof(*all));
		check(all != NULL, "realloc");
		memcpy(all + n, flows[i].took, flows[i].n * sizeof(*all));
		n += flows[i].n;
	}
	qsort(all, n, sizeof(*all), by_size);
	printf("], \"median\": %.4f, \"p99\": %.4f, ", n ? all[n / 2] * 1e3 : 0,
	       n ? all[n * 99 / 100] * 1e3 : 0);
	printf("\"messages\": %zu, \"rtt\": %.4f, \"wrong\": %lu}\n", n,
	       rtt * 1e3, (unsigned long)wrong);
}

int main(int argc, char **argv)
{
	char *netns, *device;
	double seconds, rtt = 0;
	int i;

	if (argc < 10)
		errx(2, "usage: bench-flows OP SIZE DEPTH WARM SECONDS CHECK ADDRESS NETNS:DEVICE NETNS:DEVICE:COUNT...");
	for (op = 0; op < OPS && strcmp(ops[op].name, argv[1]); op++)
		;
	size = strtoul(argv[2], NULL, 0);
	depth = strtoul(argv[3], NULL, 0);
	checks = atoi(argv[6]);
	if (op == OPS || !size || size % 8 || !depth || depth > DEPTHS)
		errx(2, "no such operation, or a wrong SIZE or DEPTH");
	netns = strtok(argv[8], ":");
	device = strtok(NULL, ":");
	num_sides = 1;
	if (device && strcmp(device, "tcp"))
		open_side(&sides[0], netns, device);
	for (i = 9; i < argc; i++)
		make_flows(argv[i], netns, argv[7]);
	if (checks)
		rtt = round_trip(&flows[0]);
	seconds = measure(atof(argv[4]), atof(argv[5]));
	if (checks) {
		drain();
		for (i = 0; i < num_flows; i++)
			check_end(&flows[i]);
	}
	report(seconds, rtt);
	return 0;
}
