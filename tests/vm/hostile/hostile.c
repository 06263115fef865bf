// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * hostile verbs DEVICE
 * hostile errors DEVICE
 * hostile srq DEVICE
 * hostile commands DEVICE SECONDS
 * hostile rings DEVICE SECONDS
 * hostile threads DEVICE SECONDS [rude]
 * hostile faults DEVICE
 * hostile links NETDEV STRIDE
 * hostile exhaust DEVICE KIND MOST
 * hostile victim DEVICE ATTACKER
 *	QPs as targets of packets; prints them, ends with its input
 * hostile member DEVICE GROUP
 *	a QP in a multicast group, until its input ends
 * hostile packets FROM TO COUNT
 *	reads a victim's lines
 * hostile pages DEVICE TO FILE LEN
 *	sends the file's first LEN bytes from the page cache
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "hostile.h"

static int bad;
static char first_bad[200];

int make_dmabuf(size_t size)
{
	struct dma_heap_allocation_data data = {
		.len = size, .fd_flags = O_RDWR | O_CLOEXEC
	};
	int dev = open("/dev/dma_heap/system", O_RDWR);
	bool made = dev >= 0 && !ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &data);

	close(dev);
	return made ? (int)data.fd : -1;
}

void die(const char *what)
{
	printf("not ok %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Each thread has its own random numbers. */
static _Thread_local uint64_t state;

void random_seed(uint64_t seed)
{
	state = seed;
}

/* A different seed in each run, unless ARX_SEED is set. */
static void choose_seed(void)
{
	const char *wanted = getenv("ARX_SEED");
	uint64_t seed = 0;

	if (wanted)
		seed = strtoull(wanted, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		die("getrandom");
	fprintf(stderr, "# ARX_SEED=%#llx\n", (unsigned long long)seed);
	random_seed(seed);
}

uint64_t random64(void)
{
	uint64_t x;

	x = state += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

void random_bytes(void *to, size_t len)
{
	uint8_t *p = to;

	while (len--)
		*p++ = random64() >> 17;
}

double now(void)
{
	struct timespec t;

	/* Without a vDSO, an injected fault may hit this. */
	while (clock_gettime(CLOCK_MONOTONIC, &t))
		;
	return t.tv_sec + t.tv_nsec / 1e9;
}

void expect(bool good, const char *format, ...)
{
	char what[200];
	va_list args;

	if (good)
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	printf("#   %s\n", what);
	if (!bad++)
		memcpy(first_bad, what, sizeof(first_bad));
}

void print_result(const char *name)
{
	if (bad)
		printf("not ok %s: %d things went wrong: %s\n", name, bad,
		       first_bad);
	else
		printf("ok %s\n", name);
}

int verdict(void)
{
	return !!bad;
}

static void find_gid(struct objects *o, bool v6)
{
	struct ibv_gid_entry entries[32];
	ssize_t i, n = ibv_query_gid_table(o->context, entries,
					   ARRAY_SIZE(entries), 0);
	const uint8_t *raw;

	for (i = 0; i < n; i++) {
		raw = entries[i].gid.raw;
		if ((raw[10] == 0xff && raw[11] == 0xff) == !v6 &&
		    raw[0] != 0xfe) {
			o->gid = entries[i].gid;
			o->gid_index = entries[i].gid_index;
			return;
		}
	}
	die("no GID");
}

static enum ibv_qp_type type_of(int i)
{
	return i < NUM_QPS - 4 ? IBV_QPT_RC :
	       i < NUM_QPS - 2 ? IBV_QPT_UC :
				 IBV_QPT_UD;
}

static void make_qp(struct objects *o, int i)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.qp_type = type_of(i),
		.srq = i == 1 ? o->srq : NULL,
		.cap = {
			.max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 4,
			.max_recv_sge = 4, .max_inline_data = 64,
		},
	};

	o->qp[i] = ibv_create_qp(o->pd, &attr);
	if (!o->qp[i])
		die("ibv_create_qp");
}

void make_objects(struct objects *o, const char *device, bool v6)
{
	struct ibv_srq_init_attr srq = {
		.attr = { .max_wr = 32, .max_sge = 4 },
	};
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	memset(o, 0, sizeof(*o));
	o->mtu = IBV_MTU_1024;
	o->timeout = 12;	/* 17 ms */
	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			o->context = ibv_open_device(list[i]);
	if (!o->context)
		die("ibv_open_device");
	find_gid(o, v6);
	o->mem = mmap(NULL, MEM, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	o->pd = ibv_alloc_pd(o->context);
	o->channel = ibv_create_comp_channel(o->context);
	o->cq = ibv_create_cq(o->context, 600, NULL, o->channel, 0);
	o->srq = ibv_create_srq(o->pd, &srq);
	o->mr = ibv_reg_mr(
		o->pd, o->mem, MEM,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
		IBV_ACCESS_MW_BIND | IBV_ACCESS_FLUSH_GLOBAL);
	o->paged = ibv_reg_mr(
		o->pd, o->mem, MEM,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
		IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_ON_DEMAND);
	o->mw[0] = ibv_alloc_mw(o->pd, IBV_MW_TYPE_1);
	o->mw[1] = ibv_alloc_mw(o->pd, IBV_MW_TYPE_2);
	if (!o->pd || !o->cq || !o->srq || !o->mr || !o->paged || !o->mw[0] ||
	    !o->mw[1])
		die("objects");
	for (i = 0; i < NUM_QPS; i++)
		make_qp(o, i);
}

struct ibv_mr *some_region(const struct objects *o)
{
	return below(2) ? o->mr : o->paged;
}

void lose_page(const struct objects *o)
{
	if (below(4) == 0 &&
	    madvise(o->mem + below(MEM / 4096) * 4096, 4096, MADV_DONTNEED))
		die("madvise");
}

/* Objects for the tests that abuse XRC, too. */
void make_xrc_objects(struct objects *o)
{
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 32, .max_sge = 4 },
		.srq_type = IBV_SRQT_XRC,
		.pd = o->pd,
		.cq = o->cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_qp_init_attr_ex qp = {
		.send_cq = o->cq,
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = o->pd,
		.cap = {
			.max_send_wr = 32, .max_send_sge = 4,
			.max_inline_data = 64,
		},
	};

	o->xrcd = ibv_open_xrcd(o->context, &xrcd);
	srq.xrcd = o->xrcd;
	o->xrc_srq = o->xrcd ? ibv_create_srq_ex(o->context, &srq) : NULL;
	o->xrc[0] = ibv_create_qp_ex(o->context, &qp);
	qp.qp_type = IBV_QPT_XRC_RECV;
	qp.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	qp.xrcd = o->xrcd;
	o->xrc[1] = o->xrcd ? ibv_create_qp_ex(o->context, &qp) : NULL;
	if (!o->xrc_srq || ibv_get_srq_num(o->xrc_srq, &o->xrc_srqn) ||
	    !o->xrc[0] || !o->xrc[1])
		die("objects of XRC");
}

/* From any state to RTS. A refusal shows in later steps. */
void connect_qp(struct objects *o, struct ibv_qp *qp, uint32_t dest,
		const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qkey = QKEY,
		.path_mtu = o->mtu,
		.dest_qp_num = dest,
		.rq_psn = 0x1000,
		.sq_psn = 0x1000,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = o->timeout,
		.retry_cnt = 2,
		.rnr_retry = 2,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL |
			IBV_ACCESS_FLUSH_PERSISTENT,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = *gid, .sgid_index = o->gid_index,
				.hop_limit = 64,
			},
		},
	};
	int ud = qp->qp_type == IBV_QPT_UD, rc = qp->qp_type == IBV_QPT_RC;
	int ini = rc || qp->qp_type == IBV_QPT_XRC_SEND,
	    tgt = rc || qp->qp_type == IBV_QPT_XRC_RECV;
	int mask;

	attr.qp_state = IBV_QPS_RESET;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_INIT;
	ibv_modify_qp(qp, &attr,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		      (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	mask = IBV_QP_STATE;
	if (!ud)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	if (tgt)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	ibv_modify_qp(qp, &attr, mask);
	attr.qp_state = IBV_QPS_RTS;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (ini || tgt)
		mask |= IBV_QP_TIMEOUT;
	if (ini)
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	ibv_modify_qp(qp, &attr, mask);
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";
	struct objects o;

	setvbuf(stdout, NULL, _IOLBF, 0);
	choose_seed();
	if (!strcmp(verb, "packets") && argc == 5)
		return send_packets(argv[2], argv[3], atoi(argv[4]));
	if (!strcmp(verb, "links") && argc == 4 && atoi(argv[3]) > 0) {
		inject_faults_into_links(argv[2], atoi(argv[3]));
		return verdict();
	}
	if (!*verb)
		return 2;
	make_objects(&o, argv[2], argc > 3 && strchr(argv[3], ':'));
	if (!strcmp(verb, "verbs"))
		abuse_verbs(&o);
	else if (!strcmp(verb, "errors"))
		expect_errors(&o);
	else if (!strcmp(verb, "srq"))
		break_srq(&o);
	else if (!strcmp(verb, "commands") && argc == 4)
		abuse_commands(&o, atoi(argv[3]));
	else if (!strcmp(verb, "rings") && argc == 4)
		abuse_rings(&o, atoi(argv[3]));
	else if (!strcmp(verb, "threads") && argc >= 4)
		abuse_by_threads(&o, atoi(argv[3]), argc > 4);
	else if (!strcmp(verb, "exhaust") && argc == 5)
		exhaust(&o, argv[3], atoi(argv[4]));
	else if (!strcmp(verb, "faults"))
		inject_faults(&o);
	else if (!strcmp(verb, "victim") && argc == 4)
		be_a_victim(&o, argv[3]);
	else if (!strcmp(verb, "pages") && argc == 6)
		send_file(&o, argv[3], argv[4], atoi(argv[5]));
	else if (!strcmp(verb, "member") && argc == 4)
		be_a_member(&o, argv[3]);
	else
		return 2;
	/* The kernel cleans up the rest. */
	return verdict();
}
