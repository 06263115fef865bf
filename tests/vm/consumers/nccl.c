// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * nccl DEVICE			a receiver: waits for a sender on TCP port 18600
 * nccl DEVICE ADDRESS		a sender, to the receiver at ADDRESS
 *
 * The verbs that NCCL's transport for RDMA networks (net_ib) calls, in its
 * order and with its arguments, without NCCL and without a GPU:
 *
 * - start: fork, every device and port, sysfs, what happens to a dma-buf;
 * - two QPs for each connection, whose GID is the first of IPv4 and RoCEv2;
 * - the receiver writes a request into the sender's FIFO, the sender writes the
 *   data, half of it by each QP, and ends each half by a WRITE with immediate;
 * - the receiver then reads one byte through a QP that is connected to itself,
 *   which orders its memory on a machine with a GPU.
 *
 * Each byte is checked. Prints what was done; any failure ends the program.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NUM_QPS		2
#define MAX_REQUESTS	256
#define MOST	(1 << 18)	/* bytes of a message */
#define MESSAGES	300
#define PORT		18600
#define FLUSH		1	/* wr_id of a READ by the QP to itself */

/* What the receiver writes into the sender's memory. */
struct fifo_entry {
	uint64_t addr;
	uint32_t rkey;
	uint32_t size;
	uint64_t index;		/* counts from 1; written last in a slot */
	uint8_t unused[40];	/* a slot is a cache line */
};

/* What peers tell each other by TCP. */
struct endpoint {
	union ibv_gid gid;
	uint32_t qpn[NUM_QPS];
	uint32_t mtu;
	uint32_t fifo_rkey;
	uint64_t fifo;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp[NUM_QPS], *flush_qp;
static struct ibv_port_attr port;
static union ibv_gid gid;
static int gid_index = -1;
static struct fifo_entry fifo[MAX_REQUESTS] __attribute__((aligned(4096)));
static struct ibv_mr *fifo_mr, *data_mr;
static uint8_t *data;

static void check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* A verb that returns errno. */
static void done(int err, const char *what)
{
	errno = err;
	check(!err, what);
}

/* ------------------------------------------------------------------------ */
/* Start */

static void *async_events(void *unused)
{
	struct ibv_async_event event;

	(void)unused;
	while (!ibv_get_async_event(context, &event)) {
		fprintf(stderr, "event: %s\n",
			ibv_event_type_str(event.event_type));
		if (event.event_type != IBV_EVENT_COMM_EST)
			exit(1);
		ibv_ack_async_event(&event);
	}
	return NULL;
}

/* Devices without a PCI function lack this file: NCCL orders them by name. */
static void pci_path(const char *device)
{
	char path[PATH_MAX], *real;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", device);
	real = realpath(path, NULL);
	printf("%s: %s\n", path, real ? real : "virtual");
	free(real);
}

/* Each verb of a dma-buf must say EOPNOTSUPP, or NCCL takes it for there. */
static void dma_buf(void)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_dmabuf_mr(pd, 0, 0, 0, -1, 0);
	check(!mr && (errno == EOPNOTSUPP || errno == EPROTONOSUPPORT),
	      "ibv_reg_dmabuf_mr of -1");
	printf("ibv_reg_dmabuf_mr of -1: %s\n", strerrorname_np(errno));
}

static void open_device(const char *name)
{
	struct ibv_device_attr attr;
	struct ibv_device **list;
	pthread_t thread;
	int i, count;

	done(ibv_fork_init(), "ibv_fork_init");
	list = ibv_get_device_list(&count);
	check(list && count > 0, "ibv_get_device_list");
	for (i = 0; i < count; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name))
			continue;
		context = ibv_open_device(list[i]);
	}
	check(context != NULL, name);
	memset(&attr, 0, sizeof(attr));
	done(ibv_query_device(context, &attr), "ibv_query_device");
	check(attr.phys_port_cnt == 1 && attr.max_qp > 0 && attr.sys_image_guid,
	      "attributes");
	done(ibv_query_port(context, 1, &port), "ibv_query_port");
	check(port.state == IBV_PORT_ACTIVE &&
	      port.link_layer == IBV_LINK_LAYER_ETHERNET, "port");
	pci_path(name);
	ibv_free_device_list(list);
	check(!pthread_create(&thread, NULL, async_events, NULL), "thread");
	pd = ibv_alloc_pd(context);
	check(pd != NULL, "ibv_alloc_pd");
	dma_buf();
}

/* The version of RoCE of an entry; sysfs refuses to read one that is empty. */
static bool is_roce_v2(const char *device, int index)
{
	char path[PATH_MAX], type[32] = "";
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d", device,
		 index);
	fd = open(path, O_RDONLY);
	check(fd >= 0, path);
	len = read(fd, type, sizeof(type) - 1);
	check(len > 0 || errno == EINVAL, path);
	close(fd);
	return !strncmp(type, "RoCE v2", 7);
}

static bool is_ipv4(const union ibv_gid *g)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(g->raw, mapped, sizeof(mapped));
}

/* All of the table, empty entries too. */
static void choose_gid(const char *device)
{
	union ibv_gid entry;
	int i;

	for (i = 0; i < port.gid_tbl_len; i++) {
		done(ibv_query_gid(context, 1, i, &entry), "ibv_query_gid");
		if (!is_ipv4(&entry) || !is_roce_v2(device, i) ||
		    gid_index >= 0)
			continue;
		gid_index = i;
		gid = entry;
	}
	check(gid_index >= 0, "no GID of IPv4");
}

/* Regions are whole pages, with relaxed ordering where it is to be had. */
static struct ibv_mr *reg_mr(void *addr, size_t len)
{
	struct ibv_mr *mr;

	mr = ibv_reg_mr_iova2(pd, addr, len, (uintptr_t)addr,
			      IBV_ACCESS_LOCAL_WRITE |
			      IBV_ACCESS_REMOTE_WRITE |
			      IBV_ACCESS_REMOTE_READ |
			      IBV_ACCESS_RELAXED_ORDERING);
	check(mr != NULL, "ibv_reg_mr_iova2");
	return mr;
}

/* ------------------------------------------------------------------------ */
/* Connections */

static struct ibv_qp *create_qp(int access)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 2 * MAX_REQUESTS,
			.max_recv_wr = MAX_REQUESTS,
			.max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = sizeof(struct fifo_entry),
		},
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = access,
	};
	struct ibv_ece ece = {};
	struct ibv_qp *made;
	int err;

	made = ibv_create_qp(pd, &init);
	check(made != NULL, "ibv_create_qp");
	check(init.cap.max_inline_data >= sizeof(struct fifo_entry), "inline");
	done(ibv_modify_qp(made, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			   IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
	err = ibv_query_ece(made, &ece);
	check(!err || err == EOPNOTSUPP, "ibv_query_ece");
	return made;
}

static void connect_qp(struct ibv_qp *made, const union ibv_gid *to,
		       uint32_t qpn, enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = qpn,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = *to, .sgid_index = gid_index,
				.hop_limit = 255,
			},
		},
	};

	done(ibv_modify_qp(made, &attr, IBV_QP_STATE | IBV_QP_AV |
			   IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	     "to RTR");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 7,
		.rnr_retry = 7, .max_rd_atomic = 1,
	};
	done(ibv_modify_qp(made, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			   IBV_QP_MAX_QP_RD_ATOMIC), "to RTS");
}

static int tcp(const char *address)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(PORT),
	};
	int one = 1, s = socket(AF_INET, SOCK_STREAM, 0), peer;

	if (address) {
		inet_pton(AF_INET, address, &to.sin_addr);
		check(!connect(s, (void *)&to, sizeof(to)), "connect");
		return s;
	}
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check(!bind(s, (void *)&to, sizeof(to)) && !listen(s, 1), "listen");
	peer = accept(s, NULL, NULL);
	check(peer >= 0, "accept");
	close(s);
	return peer;
}

static void swap(int s, const void *mine, void *others, size_t len)
{
	check(write(s, mine, len) == (ssize_t)len, "write");
	check(recv(s, others, len, MSG_WAITALL) == (ssize_t)len, "recv");
}

static struct endpoint connect_qps(int s)
{
	struct endpoint mine = {
		.gid = gid, .mtu = port.active_mtu,
		.fifo = (uintptr_t)fifo, .fifo_rkey = fifo_mr->rkey,
	}, other;
	int i;

	for (i = 0; i < NUM_QPS; i++) {
		qp[i] = create_qp(IBV_ACCESS_REMOTE_WRITE);
		mine.qpn[i] = qp[i]->qp_num;
	}
	swap(s, &mine, &other, sizeof(mine));
	if (other.mtu > mine.mtu)
		other.mtu = mine.mtu;
	for (i = 0; i < NUM_QPS; i++)
		connect_qp(qp[i], &other.gid, other.qpn[i], other.mtu);
	flush_qp = create_qp(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	connect_qp(flush_qp, &gid, flush_qp->qp_num, port.active_mtu);
	return other;
}

/* ------------------------------------------------------------------------ */
/* Data */

static void next_completion(struct ibv_wc *wc)
{
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		if (!n)
			sched_yield();
	} while (!n);
	check(n == 1, "ibv_poll_cq");
	if (wc->status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "completion of %#lx: %s\n", (long)wc->wr_id,
		ibv_wc_status_str(wc->status));
	exit(1);
}

static uint32_t size_of(int message)
{
	static const uint32_t sizes[] = { 1, 0, 127, 128, 4096, 65537, MOST };

	return sizes[message % (sizeof(sizes) / sizeof(sizes[0]))];
}

static uint8_t byte_of(int message, uint32_t i)
{
	return message * 31 + i + (i >> 8);
}

static void post(struct ibv_qp *to, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	done(ibv_post_send(to, wr, &bad), "ibv_post_send");
}

/* Half of a message, a multiple of 128 bytes, then an empty immediate. */
static void send_half(int i, int message, const struct fifo_entry *to)
{
	uint32_t size = size_of(message), half = (size / 2 + 127) / 128 * 128;
	uint32_t from = i ? (half < size ? half : size) : 0;
	uint32_t len = i ? size - from : (half < size ? half : size);
	struct ibv_sge sge = { (uintptr_t)data + from, len, data_mr->lkey };
	struct ibv_send_wr last = {
		.wr_id = message, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = htonl(size),
	};
	struct ibv_send_wr wr = {
		.wr_id = message, .opcode = IBV_WR_RDMA_WRITE, .next = &last,
		.sg_list = &sge, .num_sge = len ? 1 : 0,
		.wr.rdma = { .remote_addr = to->addr + from, .rkey = to->rkey },
	};

	post(qp[i], &wr);
}

static void send_message(int message)
{
	volatile struct fifo_entry *slot = &fifo[message % MAX_REQUESTS];
	struct fifo_entry to;
	struct ibv_wc wc;
	uint32_t i;

	while (slot->index != (uint64_t)message + 1)
		sched_yield();
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	to = *(struct fifo_entry *)slot;
	check(to.size == size_of(message), "size in the FIFO");
	for (i = 0; i < to.size; i++)
		data[i] = byte_of(message, i);
	for (i = 0; i < NUM_QPS; i++)
		send_half(i, message, &to);
	for (i = 0; i < NUM_QPS; i++)
		next_completion(&wc);
}

/* A receive without memory on each QP, then the request into the FIFO. */
static void request(int message, const struct endpoint *other)
{
	static struct fifo_entry entry;
	struct ibv_recv_wr recv = { .wr_id = message }, *bad;
	struct ibv_sge sge = { (uintptr_t)&entry, sizeof(entry), 0 };
	struct ibv_send_wr wr = {
		.wr_id = message, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_INLINE, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = {
			.remote_addr = other->fifo + message % MAX_REQUESTS *
				       sizeof(entry),
			.rkey = other->fifo_rkey,
		},
	};
	int i;

	for (i = 0; i < NUM_QPS; i++)
		done(ibv_post_recv(qp[i], &recv, &bad), "ibv_post_recv");
	entry = (struct fifo_entry) {
		.addr = (uintptr_t)data, .rkey = data_mr->rkey,
		.size = size_of(message), .index = message + 1,
	};
	/* One in a round of the FIFO completes, so that the queue has room. */
	if (message % MAX_REQUESTS == 0)
		wr.send_flags |= IBV_SEND_SIGNALED;
	post(qp[0], &wr);
}

/* The READ of a byte by the QP that is its own peer. */
static void flush(void)
{
	static uint8_t byte;
	static struct ibv_mr *mr;
	struct ibv_sge sge = { (uintptr_t)&byte, 1, 0 };
	struct ibv_send_wr wr = {
		.wr_id = FLUSH << 16, .opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { (uintptr_t)data, data_mr->rkey },
	};
	struct ibv_wc wc;

	if (!mr)
		mr = ibv_reg_mr(pd, &byte, 1, IBV_ACCESS_LOCAL_WRITE);
	check(mr != NULL, "ibv_reg_mr");
	sge.lkey = mr->lkey;
	byte = ~data[0];
	post(flush_qp, &wr);
	next_completion(&wc);
	check(wc.wr_id == FLUSH << 16 && wc.qp_num == flush_qp->qp_num &&
	      byte == data[0], "flush");
}

static void receive_message(int message, const struct endpoint *other)
{
	int waiting = NUM_QPS + (message % MAX_REQUESTS == 0);
	struct ibv_wc wc;
	uint32_t i;

	memset(data, 0xee, size_of(message));
	request(message, other);
	while (waiting--) {
		next_completion(&wc);
		check(wc.wr_id == (uint64_t)message, "wr_id");
		if (wc.opcode == IBV_WC_RDMA_WRITE)
			continue;
		check(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
		      wc.wc_flags & IBV_WC_WITH_IMM &&
		      ntohl(wc.imm_data) == size_of(message), "immediate");
	}
	flush();
	for (i = 0; i < size_of(message); i++)
		check(data[i] == byte_of(message, i), "data");
}

int main(int argc, char **argv)
{
	struct endpoint other;
	int s, i;

	check(argc == 2 || argc == 3, "nccl DEVICE [ADDRESS]");
	open_device(argv[1]);
	choose_gid(argv[1]);
	cq = ibv_create_cq(context, 2 * MAX_REQUESTS * NUM_QPS, NULL, NULL, 0);
	check(cq != NULL, "ibv_create_cq");
	data = aligned_alloc(4096, MOST);
	data_mr = reg_mr(data, MOST);
	fifo_mr = reg_mr(fifo, sizeof(fifo));
	s = tcp(argv[2]);
	other = connect_qps(s);
	for (i = 0; i < MESSAGES; i++) {
		if (argc == 3)
			send_message(i);
		else
			receive_message(i, &other);
	}
	/* Neither ends while the other waits for its acknowledgement. */
	swap(s, "x", &(char){ 0 }, 1);
	printf("%d messages %s\n", MESSAGES, argc == 3 ? "sent" : "received");
	return 0;
}
