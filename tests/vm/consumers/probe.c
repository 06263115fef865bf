// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * probe DEVICE: what the middlewares and applications of
 * Documentation/applications.rst ask of a provider when they start, each
 * question with the answer that they need: GIDs by every way, sizes of queues,
 * the limit of inline data, access flags of regions, file descriptors that do
 * not block, the event of a QP that has no more receives of its SRQ.
 *
 * 80-hostile has the errno of every verb that arx does not have; here are those
 * that decide what a program does next.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_port_attr port;
static union ibv_gid gid;
static int gid_index = -1;
static int failures;

static void __attribute__((format(printf, 2, 3)))
expect(bool good, const char *format, ...)
{
	va_list args;

	if (good)
		return;
	failures++;
	va_start(args, format);
	printf("wrong: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

static const char *name_of(int err)
{
	return err ? strerrorname_np(err) : "none";
}

static void need(bool good, const char *what)
{
	if (good)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static void open_device(const char *name)
{
	struct ibv_device **list;
	int i, count = 0;

	need(!ibv_fork_init(), "ibv_fork_init");
	list = ibv_get_device_list(&count);
	for (i = 0; i < count; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	need(context != NULL, name);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 100, NULL, NULL, 0);
	need(pd && cq, "a PD and a CQ");
	need(!ibv_query_port(context, 1, &port), "ibv_query_port");
}

/* brpc and others take these by name. */
static void symbols(void)
{
	static const char *const names[] = {
		"ibv_reg_mr_iova2", "ibv_reg_dmabuf_mr", "ibv_query_ece",
		"ibv_set_ece", "ibv_query_qp_data_in_order", "ibv_fork_init",
	};
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		expect(lib && dlsym(lib, names[i]), "no %s", names[i]);
}

static void device(void)
{
	struct ibv_device_attr_ex ex = {};
	struct ibv_device_attr attr;
	struct ibv_port_attr none;

	expect(!ibv_query_device(context, &attr), "ibv_query_device");
	expect(!ibv_query_device_ex(context, NULL, &ex),
	       "ibv_query_device_ex");
	expect(attr.max_qp >= 1024 && attr.max_srq_wr >= 4096 &&
	       attr.max_srq_sge >= 16 && attr.max_sge >= 16 &&
	       attr.max_cqe >= 30000 && attr.max_mr_size == UINT64_MAX,
	       "limits too small");
	/* SPDK takes 0 for a device that has no SEND with invalidate. */
	expect(attr.vendor_id, "no vendor");
	expect(attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS,
	       "no MEM_MGT_EXTENSIONS");
	expect(attr.device_cap_flags & IBV_DEVICE_XRC, "no XRC");
	expect(ex.odp_caps.general_caps ==
	       (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT),
	       "on-demand paging");
	/* bits 6 and 7: FLUSH and ATOMIC WRITE */
	expect((ex.odp_caps.per_transport_caps.rc_odp_caps & 0xc0) == 0xc0,
	       "FLUSH and ATOMIC WRITE paged on demand");
	expect(!ibv_query_port(context, 1, &port) &&
	       port.state == IBV_PORT_ACTIVE &&
	       port.link_layer == IBV_LINK_LAYER_ETHERNET &&
	       port.gid_tbl_len > 0 && port.active_speed && port.active_width,
	       "the port");
	expect(ibv_query_port(context, 0, &none) == EINVAL, "port 0");
	expect(ibv_query_port(context, 2, &none) == EINVAL, "port 2");
	expect(context->num_comp_vectors >= 1, "no completion vectors");
}

/* As UCX, Mooncake and NCCL read sysfs: "" where there is no entry. */
static const char *read_attr(const char *kind, int index)
{
	static char text[64];
	char path[PATH_MAX];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "%s/ports/1/%s/%d",
		 context->device->ibdev_path, kind, index);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return "no file";
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static void gid_text(const union ibv_gid *g, char *text)
{
	int i;

	for (i = 0; i < 16; i += 2)
		text += sprintf(text, i ? ":%02x%02x" : "%02x%02x", g->raw[i],
				g->raw[i + 1]);
}

/* An entry is the same by each verb and by sysfs. */
static void one_gid(int index, const struct ibv_gid_entry *entry)
{
	char text[64], netdev[IF_NAMESIZE] = "";
	union ibv_gid plain;

	expect(!ibv_query_gid(context, 1, index, &plain) &&
	       !memcmp(&plain, &entry->gid, sizeof(plain)),
	       "GID %d by ibv_query_gid", index);
	expect(entry->gid_type == IBV_GID_TYPE_ROCE_V2 && entry->port_num == 1,
	       "type of GID %d", index);
	gid_text(&plain, text);
	expect(!strcmp(read_attr("gids", index), text), "GID %d in sysfs",
	       index);
	expect(!strcmp(read_attr("gid_attrs/types", index), "RoCE v2"),
	       "type of GID %d in sysfs: %s", index,
	       read_attr("gid_attrs/types", index));
	if_indextoname(entry->ndev_ifindex, netdev);
	expect(netdev[0] && !strcmp(read_attr("gid_attrs/ndevs", index),
				    netdev), "netdev of GID %d", index);
}

/*
 * Mooncake and libfabric end at the first entry that there is not, so there
 * must be no hole; NCCL reads all of the table and takes an empty entry's type
 * to be unreadable with EINVAL.
 */
static void gids(void)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entry, table[16];
	ssize_t count = ibv_query_gid_table(context, table, 16, 0);
	int i, err;

	expect(count > 0, "ibv_query_gid_table: %zd", count);
	for (i = 0; i < 16; i++) {
		err = ibv_query_gid_ex(context, 1, i, &entry, 0);
		if (i >= count) {
			expect(err == ENODATA, "GID %d: %s", i, name_of(err));
			expect(!*read_attr("gid_attrs/types", i),
			       "type of GID %d: %s", i,
			       read_attr("gid_attrs/types", i));
			continue;
		}
		expect(!err && entry.gid_index == (uint32_t)i &&
		       !memcmp(&entry, &table[i], sizeof(entry)),
		       "GID %d: %s, in the table %u", i, name_of(err),
		       table[i].gid_index);
		one_gid(i, &entry);
		if (!memcmp(entry.gid.raw, v4, sizeof(v4))) {
			gid = entry.gid;
			gid_index = i;
		}
	}
	need(gid_index >= 0, "a GID of IPv4");
	expect(!ibv_query_gid(context, 1, port.gid_tbl_len - 1, &entry.gid),
	       "the last GID");
}

static void cqs(void)
{
	static const struct { int cqe, err; } cases[] = {
		{ 1, 0 }, { 30000, 0 }, { 4194304, 0 }, { 4194305, EINVAL },
		{ 0, EINVAL },
	};
	struct ibv_cq *made;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		errno = 0;
		made = ibv_create_cq(context, cases[i].cqe, NULL, NULL,
				     i % context->num_comp_vectors);
		expect(made ? !cases[i].err && made->cqe >= cases[i].cqe :
		       errno == cases[i].err, "a CQ of %d: %s", cases[i].cqe,
		       name_of(errno));
		if (made)
			ibv_destroy_cq(made);
	}
}

static struct ibv_qp *create_qp(struct ibv_qp_init_attr *init)
{
	init->send_cq = cq;
	init->recv_cq = cq;
	errno = 0;
	return ibv_create_qp(pd, init);
}

/* Programs that search for the limit try smaller values until one works. */
static void inline_data(enum ibv_qp_type type)
{
	static const struct { uint32_t len; int err; } cases[] = {
		{ 0, 0 }, { 64, 0 }, { 220, 0 }, { 1024, 0 },
		{ 1025, EINVAL }, { 1 << 20, EINVAL },
	};
	struct ibv_qp *qp;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = type, .cap = {
				.max_send_wr = 16, .max_recv_wr = 16,
				.max_send_sge = 1, .max_recv_sge = 1,
				.max_inline_data = cases[i].len,
			},
		};

		qp = create_qp(&init);
		expect(qp ? !cases[i].err &&
		       init.cap.max_inline_data >= cases[i].len :
		       errno == cases[i].err, "a QP with %u inline: %s",
		       cases[i].len, name_of(errno));
		if (qp)
			ibv_destroy_qp(qp);
	}
}

static void sges(void)
{
	static const struct { uint32_t sge; int err; } cases[] = {
		{ 1, 0 }, { 16, 0 }, { 32, 0 }, { 33, EINVAL },
	};
	struct ibv_qp *qp;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC, .cap = {
				.max_send_wr = 16, .max_recv_wr = 16,
				.max_send_sge = cases[i].sge,
				.max_recv_sge = cases[i].sge,
			},
		};

		qp = create_qp(&init);
		expect(qp ? !cases[i].err &&
		       init.cap.max_send_sge >= cases[i].sge &&
		       init.cap.max_recv_sge >= cases[i].sge :
		       errno == cases[i].err, "a QP with %u SGEs: %s",
		       cases[i].sge, name_of(errno));
		if (qp)
			ibv_destroy_qp(qp);
	}
}

static void regions(void)
{
	static const struct { unsigned int access; int err; } cases[] = {
		{ 0, 0 },
		{ IBV_ACCESS_LOCAL_WRITE, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, 0 },
		{ IBV_ACCESS_REMOTE_READ, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, 0 },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB, 0 },
		{ IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ IBV_ACCESS_ON_DEMAND, 0 },
	};
	size_t len = 64 << 10, i;
	char *mem = aligned_alloc(4096, len);
	struct ibv_mr *mr;

	memset(mem, 0, len);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int access = cases[i].access;

		errno = 0;
		mr = (ibv_reg_mr)(pd, mem, len, access);
		expect(mr ? !cases[i].err : errno == cases[i].err,
		       "a region with access %#x: %s", access, name_of(errno));
		if (mr)
			ibv_dereg_mr(mr);
		errno = 0;
		mr = ibv_reg_mr_iova2(pd, mem, len, 0x10000, access);
		expect(mr ? !cases[i].err : errno == cases[i].err,
		       "a region at 0x10000 with access %#x: %s", access,
		       name_of(errno));
		if (mr)
			ibv_dereg_mr(mr);
	}
	errno = 0;
	mr = ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND);
	expect(mr, "an implicit region: %s", name_of(errno));
	if (mr)
		ibv_dereg_mr(mr);
	errno = 0;
	mr = ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE);
	expect(!mr && errno == EOPNOTSUPP, "a dma-buf: %s", name_of(errno));
	free(mem);
}

static void device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);

	expect(dm, "device memory: %s", name_of(errno));
	expect(!dm || !ibv_free_dm(dm), "its end");
}

static void absent(void)
{
	struct ibv_td_init_attr td = {};
	struct ibv_td *made;

	made = ibv_alloc_td(context, &td);
	expect(made || errno == EOPNOTSUPP, "a thread domain: %s",
	       name_of(errno));
	if (made)
		ibv_dealloc_td(made);
}

/* Open MPI and UCX open an XRC domain without a file. */
static void xrc_domain(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &attr);

	expect(xrcd, "an XRC domain: %s", name_of(errno));
	expect(!xrcd || !ibv_close_xrcd(xrcd), "its end");
}

/* UCX makes an address handle to itself to see whether a GID is of use. */
static void own_address(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .dlid = 0xc000,
		.grh = {
			.dgid = gid, .sgid_index = gid_index, .flow_label = 1,
			.hop_limit = 255,
		},
	};
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	expect(ah != NULL, "an AH to the own GID: %s", name_of(errno));
	if (ah)
		ibv_destroy_ah(ah);
}

static void set_nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void descriptors(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	struct ibv_async_event event;
	struct ibv_cq *of;
	void *with;

	need(channel != NULL, "ibv_create_comp_channel");
	set_nonblocking(context->async_fd);
	expect(ibv_get_async_event(context, &event) == -1 && errno == EAGAIN,
	       "an event of nothing: %s", name_of(errno));
	set_nonblocking(channel->fd);
	expect(ibv_get_cq_event(channel, &of, &with) == -1 && errno == EAGAIN,
	       "a completion of nothing: %s", name_of(errno));
	expect(!ibv_destroy_comp_channel(channel), "the channel's end");
}

/* The device's event within 5 s */
static bool event_comes(enum ibv_event_type type, struct ibv_qp *qp)
{
	struct pollfd fd = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	bool right;

	if (poll(&fd, 1, 5000) != 1 || ibv_get_async_event(context, &event))
		return false;
	right = event.event_type == type && event.element.qp == qp;
	ibv_ack_async_event(&event);
	return right;
}

static void to_rtr(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
	};

	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num, .max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = gid, .sgid_index = gid_index,
				.hop_limit = 64,
			},
		},
	};
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			    IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	     "to RTR");
}

/*
 * The order in which the bytes of a message are written is not defined: a
 * program that polls memory must not think that it is.
 */
static void data_in_order(struct ibv_qp *qp)
{
	uint32_t caps = IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS;
	int op, got;

	for (op = IBV_WR_RDMA_WRITE; op <= IBV_WR_ATOMIC_WRITE; op++) {
		got = ibv_query_qp_data_in_order(qp, op, 0);
		expect(!got, "data of %d in order: %d", op, got);
		got = ibv_query_qp_data_in_order(qp, op, caps);
		expect(!got, "data of %d in order: %#x", op, got);
	}
}

/*
 * UCX, SPDK and Ceph end a QP on an SRQ by ERR and wait for LAST_WQE_REACHED.
 * Sizes of receives that an SRQ makes meaningless are not looked at.
 */
static void last_wqe(void)
{
	struct ibv_srq_init_attr srq_init = {
		.attr = { .max_wr = 4096, .max_sge = 16 },
	};
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_init);
	struct ibv_qp_init_attr told, init = {
		.qp_type = IBV_QPT_RC, .srq = srq,
		.cap = { .max_send_wr = 16, .max_send_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp;

	need(srq != NULL, "an SRQ of 4096");
	expect(srq_init.attr.max_wr >= 4096 && srq_init.attr.max_sge >= 16,
	       "an SRQ of %u with %u SGEs", srq_init.attr.max_wr,
	       srq_init.attr.max_sge);
	qp = create_qp(&init);
	need(qp != NULL, "a QP on an SRQ");
	to_rtr(qp);
	data_in_order(qp);
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "to ERR");
	expect(event_comes(IBV_EVENT_QP_LAST_WQE_REACHED, qp),
	       "no LAST_WQE_REACHED");
	/* Ceph's mask is -1, which libibverbs itself refuses. */
	expect(ibv_query_qp(qp, &attr, -1, &told) == EOPNOTSUPP,
	       "a query with mask -1");
	memset(&attr, 0, sizeof(attr));
	expect(!ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT - 1, &told) &&
	       attr.qp_state == IBV_QPS_ERR && attr.cur_qp_state == IBV_QPS_ERR,
	       "the state in ERR is %d", attr.qp_state);
	expect(!ibv_destroy_qp(qp), "the QP's end");
	expect(!ibv_destroy_srq(srq), "the SRQ's end");
}

int main(int argc, char **argv)
{
	need(argc == 2, "probe DEVICE");
	open_device(argv[1]);
	symbols();
	device();
	gids();
	cqs();
	inline_data(IBV_QPT_RC);
	inline_data(IBV_QPT_UD);
	sges();
	regions();
	absent();
	device_memory();
	xrc_domain();
	own_address();
	descriptors();
	last_wqe();
	expect(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) &&
	       !ibv_close_device(context), "the end");
	printf("%d wrong\n", failures);
	return failures != 0;
}
