// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * bench-qps NETNS DEVICE NETNS DEVICE COUNT|busy SECONDS
 *
 * Connect COUNT RC queue pairs of the first device to as many of the second,
 * each device opened in its network namespace, and write 8 bytes at a time,
 * always waiting for the completion: first over the first pair alone while the
 * others are idle, then over all in turn. Prints, as JSON, microseconds for
 * each message and the kernel's memory for an idle QP without its rings, whose
 * size the application chooses. Between the messages a loop of fixed work runs
 * repeatedly: on a busy machine both take longer, so the number of loops for a
 * message shows better how its cost grows with COUNT.
 *
 * With "busy", there are two pairs, and the other pair always has 1 GiB posted:
 * prints the median, the 99th and 99.9th percentile and the maximum of a
 * message beside it. Also prints the longest time, measured just before, for
 * which the machine stops two threads that only read the clock.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include "bench-verbs.h"

#define DEPTH	16
#define BULK	(64UL << 20)	/* DEPTH of these are posted */

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_cq *bulk_cq;
	struct ibv_mr *mr;
	struct ibv_mr *bulk;
	struct ibv_qp **qp;
	union ibv_gid gid;
	int gid_index;
	char buf[64];
};

static void open_side(struct side *s, const char *netns, const char *device,
		      int count)
{
	s->context = open_device(netns, device);
	s->pd = ibv_alloc_pd(s->context);
	check(s->pd != NULL, "ibv_alloc_pd");
	s->cq = ibv_create_cq(s->context, 2 * DEPTH, NULL, NULL, 0);
	check(s->cq != NULL, "ibv_create_cq");
	s->mr = ibv_reg_mr(s->pd, s->buf, sizeof(s->buf),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(s->mr != NULL, "ibv_reg_mr");
	s->qp = calloc(count, sizeof(*s->qp));
	check(s->qp != NULL, "calloc");
	s->gid_index = find_gid(s->context, &s->gid);
}

static void make_qp(struct side *s, int i, struct ibv_cq *send_cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = send_cq,
		.recv_cq = s->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	s->qp[i] = ibv_create_qp(s->pd, &attr);
	check(s->qp[i] != NULL, "ibv_create_qp");
}

static void connect_qp(struct side *s, struct side *peer, int i)
{
	struct ibv_qp_attr attr = {
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp[i]->qp_num,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 12,
		.ah_attr.grh = {
			.dgid = peer->gid, .sgid_index = s->gid_index,
			.hop_limit = 64,
		},
	};

	connect_rc(s->qp[i], attr);
}

static void write_one(struct side *from, struct side *to, int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)from->buf, .length = 8,
		.lkey = from->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = (uintptr_t)to->buf, .rkey = to->mr->rkey,
		},
	};
	struct ibv_wc wc;
	int n;

	check(!ibv_post_send(from->qp[i], &wr, &bad), "ibv_post_send");
	while (!(n = ibv_poll_cq(from->cq, 1, &wc)))
		;
	check(n == 1 && wc.status == IBV_WC_SUCCESS, "completion");
}

/* Fixed work of some hundred microseconds. Returns seconds. */
static double loop(void)
{
	static volatile unsigned int words[1024];
	double start = now();
	unsigned int i;

	for (i = 0; i < 100000; i++)
		words[i % 1024] += words[i * 7 % 1024] ^ i;
	return now() - start;
}

struct cost {
	double us;	/* for a message */
	double loops;	/* for a message */
};

#define SLICE	(5e-3)	/* seconds of messages between two loops */

/* Cost of a message over @count QPs in turn. */
static struct cost measure(struct side *from, struct side *to, int count,
			   double seconds)
{
	double end, start, messages = 0, loops = 0;
	long n = 0, slices = 0;
	int i;

	/* Without the first message of a QP, which looks up its route. */
	for (i = 0; i < count; i++)
		write_one(from, to, i);
	end = now() + seconds;
	for (i = 0; now() < end || n < count; slices++) {
		loops += loop();
		start = now();
		do {
			write_one(from, to, i);
			if (++i == count)
				i = 0;
			n++;
		} while (now() < start + SLICE);
		messages += now() - start;
	}
	return (struct cost){ messages / n * 1e6,
			      messages / n / (loops / slices) };
}

static void add_bulk(struct side *s)
{
	void *memory = aligned_alloc(4096, BULK);

	check(memory != NULL, "aligned_alloc");
	memset(memory, 1, BULK);
	s->bulk = ibv_reg_mr(s->pd, memory, BULK,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(s->bulk != NULL, "ibv_reg_mr");
	s->bulk_cq = ibv_create_cq(s->context, DEPTH, NULL, NULL, 0);
	check(s->bulk_cq != NULL, "ibv_create_cq");
}

static void write_bulk(struct side *from, struct side *to)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)from->bulk->addr, .length = BULK,
		.lkey = from->bulk->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = (uintptr_t)to->bulk->addr,
			.rkey = to->bulk->rkey,
		},
	};

	check(!ibv_post_send(from->qp[1], &wr, &bad), "ibv_post_send");
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double stall_end;

static void stay_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	check(!sched_setaffinity(0, sizeof(cpus), &cpus), "sched_setaffinity");
}

/* Longest time for which this thread was stopped, in microseconds. */
static double stall(int cpu)
{
	double last, read, most = 0;

	stay_on(cpu);
	for (read = now(); read < stall_end;) {
		last = read;
		read = now();
		if (read - last > most)
			most = read - last;
	}
	return most * 1e6;
}

static void *stall_there(void *most)
{
	*(double *)most = stall(1);
	return NULL;
}

/* Both CPUs, or the only one, are as busy as with the messages. */
static double longest_stall(double seconds)
{
	double here, there = 0;
	pthread_t thread;
	cpu_set_t cpus;
	int other;

	check(!sched_getaffinity(0, sizeof(cpus), &cpus), "sched_getaffinity");
	other = CPU_ISSET(1, &cpus);
	stall_end = now() + seconds;
	check(!other || !pthread_create(&thread, NULL, stall_there, &there),
	      "pthread_create");
	here = stall(0);
	if (other)
		pthread_join(thread, NULL);
	check(!sched_setaffinity(0, sizeof(cpus), &cpus), "sched_setaffinity");
	return here > there ? here : there;
}

/* One pair writes 8 bytes at a time while the other has 1 GiB to write. */
static void measure_beside_bulk(struct side *from, struct side *to,
				double seconds)
{
	static double took[1000000];
	double stalled, end;
	struct ibv_wc wc;
	int i, n, bulks = 0;

	stalled = longest_stall(seconds);
	for (i = 0; i < DEPTH; i++)
		write_bulk(from, to);
	end = now() + seconds;
	for (n = 0; n < 1000000 && (now() < end || !bulks); n++) {
		double start = now();

		write_one(from, to, 0);
		took[n] = (now() - start) * 1e6;
		while (ibv_poll_cq(from->bulk_cq, 1, &wc)) {
			check(wc.status == IBV_WC_SUCCESS, "completion");
			write_bulk(from, to);
			bulks++;
		}
	}
	check(bulks > 0, "not one bulk has arrived");
	qsort(took, n, sizeof(took[0]), by_size);
	printf("{\"median\": %.3f, \"p99\": %.3f, ", took[n / 2],
	       took[n * 99L / 100]);
	printf("\"p999\": %.3f, \"most\": %.3f, \"stall\": %.3f}\n",
	       took[n * 999L / 1000], took[n - 1], stalled);
}

/* In KiB; free memory, and memory that can be reclaimed at once. */
static long available(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "MemAvailable: %ld", &kib);
	check(kib >= 0, "/proc/meminfo");
	fclose(file);
	return kib;
}

/* Mapped memory of this process, of which the rings are a part. */
static long mapped(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = -1;

	check(file && fscanf(file, "%ld", &pages) == 1, "/proc/self/statm");
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE) / 1024;
}

static void make_pair(struct side *a, struct side *b, int i,
		      struct ibv_cq *send_cq)
{
	make_qp(a, i, send_cq);
	make_qp(b, i, b->cq);
	connect_qp(a, b, i);
	connect_qp(b, a, i);
}

static void measure_counts(struct side *a, struct side *b, int count,
			   double seconds)
{
	long free_before, mapped_before, taken;
	struct cost one, turn;
	int i;

	free_before = available();
	mapped_before = mapped();
	for (i = 0; i < count; i++)
		make_pair(a, b, i, a->cq);
	taken = (free_before - available()) - (mapped() - mapped_before);
	one = measure(a, b, 1, seconds);
	turn = measure(a, b, count, seconds);
	printf("{\"one\": %.3f, \"one_loops\": %.5f, ", one.us, one.loops);
	printf("\"turn\": %.3f, \"turn_loops\": %.5f, ", turn.us, turn.loops);
	printf("\"kib\": %.3f}\n", taken / (2.0 * count));
}

int main(int argc, char **argv)
{
	static struct side a, b;
	double seconds;
	int busy, count;

	check(argc == 7,
	      "bench-qps NETNS DEVICE NETNS DEVICE COUNT|busy SECONDS");
	busy = !strcmp(argv[5], "busy");
	count = busy ? 2 : atoi(argv[5]);
	seconds = atof(argv[6]);
	open_side(&a, argv[1], argv[2], count);
	open_side(&b, argv[3], argv[4], count);
	if (!busy) {
		measure_counts(&a, &b, count, seconds);
		return 0;
	}
	add_bulk(&a);
	add_bulk(&b);
	make_pair(&a, &b, 0, a.cq);
	make_pair(&a, &b, 1, a.bulk_cq);
	measure_beside_bulk(&a, &b, seconds);
	return 0;
}
