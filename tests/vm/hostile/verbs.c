// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Every verb with arguments that are out of range, belong to other objects, or
 * name destroyed objects: refused, or without effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hostile.h"

static void bad_regions(struct objects *o)
{
	static const struct {
		uint64_t addr, len;
		unsigned int access;
		const char *what;
	} cases[] = {
		{ 0, 4096, 1, "of address 0" },
		{ 0x10000, 4096, 1, "of unmapped memory" },
		{ 0xffff888000000000, 4096, 1, "of the kernel's memory" },
		{ 0xffffffff81000000, 4096, 0, "of the kernel's text" },
		{ -4096ull, 8192, 1, "that wraps" },
		{ 1, -1ull, 1, "of everything" },
		{ 0x7f0000000000, 1ull << 60, 1, "of 2^60 bytes" },
		{ 0x7f0000000000, 1ull << 45, 1, "of 2^45 bytes" },
		{ 0, 0, IBV_ACCESS_REMOTE_WRITE, "with REMOTE_WRITE alone" },
		{ 0, 0, IBV_ACCESS_REMOTE_ATOMIC, "with REMOTE_ATOMIC alone" },
		{ 0, 0, 1u << 31, "with access 2^31" },
		{ 0, 0, 0xfffff, "with all access" },
		{ 0, 0, IBV_ACCESS_FLUSH_PERSISTENT,
		  "that is to be persistent" },
	};
	void *readonly =
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *none =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *volatile addr;
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		addr = cases[i].len ? (void *)(uintptr_t)cases[i].addr : o->mem;
		len = cases[i].len ? cases[i].len : 4096;
		expect(!ibv_reg_mr(o->pd, addr, len, cases[i].access),
		       "ibv_reg_mr %s", cases[i].what);
	}
	expect(!ibv_reg_mr(o->pd, readonly, 4096, IBV_ACCESS_LOCAL_WRITE),
	       "ibv_reg_mr to write to read-only memory");
	expect(!ibv_reg_mr(o->pd, none, 4096, 0), "ibv_reg_mr of PROT_NONE");
}

/* A region may end where its address space ends. */
static void last_addresses(struct objects *o)
{
	struct ibv_mr *mr = ibv_reg_mr_iova(o->pd, o->mem, 4096, -4096ull, 0);

	expect(mr, "ibv_reg_mr_iova of the last page");
	expect(!mr || !ibv_dereg_mr(mr), "its end");
	expect(!ibv_reg_mr_iova(o->pd, o->mem, 4096, -4095ull, 0),
	       "ibv_reg_mr_iova beyond the last page");
	expect(!ibv_reg_mr_iova(o->pd, o->mem, 4096, -1ull, 0),
	       "ibv_reg_mr_iova from the last byte on");
}

/* Programs recognise rdma_rxe by its numbers, and work around its faults. */
static void own_name(struct objects *o)
{
	struct ibv_device_attr attr;

	if (ibv_query_device(o->context, &attr))
		die("ibv_query_device");
	expect(attr.vendor_id != 0xffffff && attr.vendor_id >> 16 == 2,
	       "vendor 0x%06x", attr.vendor_id);
	expect(attr.vendor_part_id, "part 0");
	expect(strcmp(attr.fw_ver, "0.0.0"), "no firmware version");
}

static void bad_cqs(struct objects *o)
{
	expect(!ibv_create_cq(o->context, -1, NULL, NULL, 0), "a CQ of -1");
	expect(!ibv_create_cq(o->context, INT_MAX, NULL, NULL, 0),
	       "a CQ of INT_MAX");
	expect(!ibv_create_cq(o->context, 1 << 29, NULL, NULL, 0),
	       "a CQ of 2^29");
	expect(!ibv_create_cq(o->context, 10, NULL, NULL, 10000),
	       "a CQ with vector 10000");
	expect(!ibv_create_cq(o->context, 10, NULL, NULL, -1),
	       "a CQ with vector -1");
	expect(ibv_resize_cq(o->cq, INT_MAX), "ibv_resize_cq to INT_MAX");
	expect(ibv_resize_cq(o->cq, -5), "ibv_resize_cq to -5");
	expect(ibv_destroy_cq(o->cq), "ibv_destroy_cq under its QPs");
	expect(ibv_dealloc_pd(o->pd), "ibv_dealloc_pd under its QPs");
}

static void bad_srqs(struct objects *o)
{
	static const struct ibv_srq_attr attrs[] = {
		{ .max_wr = UINT32_MAX, .max_sge = 1 },
		{ .max_wr = 1 << 30, .max_sge = 1 },
		{ .max_wr = 10, .max_sge = UINT32_MAX },
		{ .max_wr = 10, .max_sge = 1000 },
	};
	struct ibv_srq_attr attr = {
		.max_wr = UINT32_MAX, .srq_limit = 1000000,
	};
	struct ibv_srq_init_attr init = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		init.attr = attrs[i];
		expect(!ibv_create_srq(o->pd, &init), "an SRQ of %u x %u",
		       attrs[i].max_wr, attrs[i].max_sge);
	}
	expect(ibv_modify_srq(o->srq, &attr, IBV_SRQ_LIMIT),
	       "an SRQ limit above its size");
	expect(ibv_modify_srq(o->srq, &attr, IBV_SRQ_MAX_WR),
	       "an SRQ resized to 2^32 - 1");
	expect(ibv_modify_srq(o->srq, &attr, 1 << 20),
	       "ibv_modify_srq with mask 2^20");
	expect(ibv_destroy_srq(o->srq), "ibv_destroy_srq under its QP");
}

static void bad_qps(struct objects *o)
{
	static const struct ibv_qp_cap caps[] = {
		{ .max_send_wr = UINT32_MAX },
		{ .max_recv_wr = UINT32_MAX },
		{ .max_send_wr = 1 << 30 },
		{ .max_send_wr = 8, .max_send_sge = UINT32_MAX },
		{ .max_recv_wr = 8, .max_recv_sge = 10000 },
		{ .max_send_wr = 8, .max_inline_data = UINT32_MAX },
		{ .max_send_wr = 8, .max_inline_data = 1 << 20 },
	};
	struct ibv_qp_init_attr attr = { .send_cq = o->cq, .recv_cq = o->cq };
	int type;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		attr.qp_type = IBV_QPT_RC;
		attr.cap = caps[i];
		expect(!ibv_create_qp(o->pd, &attr),
		       "a QP of %u, %u, %u, %u, %u", caps[i].max_send_wr,
		       caps[i].max_recv_wr, caps[i].max_send_sge,
		       caps[i].max_recv_sge, caps[i].max_inline_data);
	}
	attr.cap = (struct ibv_qp_cap){ .max_send_wr = 1, .max_send_sge = 1 };
	for (type = 0; type < 300; type++) {
		if (type == IBV_QPT_RC || type == IBV_QPT_UC ||
		    type == IBV_QPT_UD || type == IBV_QPT_XRC_SEND)
			continue;
		attr.qp_type = type;
		expect(!ibv_create_qp(o->pd, &attr), "a QP of type %d", type);
	}
}

static void bad_addresses(struct objects *o)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1, .grh = { .dgid = o->gid },
	};
	union ibv_gid gid;
	struct ibv_port_attr port;
	int i;

	attr.grh.sgid_index = 255;
	expect(!ibv_create_ah(o->pd, &attr), "an AH of GID 255");
	attr.grh.sgid_index = o->gid_index;
	attr.port_num = 77;
	expect(!ibv_create_ah(o->pd, &attr), "an AH of port 77");
	attr.port_num = 1;
	attr.is_global = 0;
	expect(!ibv_create_ah(o->pd, &attr), "an AH without a GRH");
	for (i = 0; i < 256; i++)
		if (i != 1)
			expect(ibv_query_port(o->context, i, &port),
			       "ibv_query_port of %d", i);
	expect(ibv_query_gid(o->context, 1, 100000, &gid),
	       "ibv_query_gid of 100000");
	expect(ibv_query_gid(o->context, 2, 0, &gid),
	       "ibv_query_gid of port 2");
	expect(ibv_attach_mcast(o->qp[NUM_QPS - 1], &o->gid, 0),
	       "ibv_attach_mcast to a unicast GID");
	gid = (union ibv_gid){ .raw = { 0xff, 0x0e, [15] = 7 } };
	expect(ibv_attach_mcast(o->qp[0], &gid, 0),
	       "ibv_attach_mcast of an RC QP");
	expect(ibv_detach_mcast(o->qp[NUM_QPS - 1], &gid, 0),
	       "ibv_detach_mcast of what is not attached");
}

/*
 * Random attributes under random masks: any result is right, but the verb must
 * return.
 */
static void random_modify(struct objects *o)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	int i;

	for (i = 0; i < 5000; i++) {
		qp = o->qp[below(NUM_QPS)];
		random_bytes(&attr, sizeof(attr));
		/* the core logs values that it masks */
		attr.sq_psn &= 0xffffff;
		attr.rq_psn &= 0xffffff;
		if (below(2)) {
			attr.qp_state = below(9);
			attr.cur_qp_state = below(9);
			attr.port_num = below(3);
			attr.pkey_index = below(2);
			attr.path_mtu = below(7);
			attr.ah_attr.port_num = 1;
			attr.ah_attr.is_global = 1;
			attr.ah_attr.grh.dgid = o->gid;
			attr.ah_attr.grh.sgid_index = below(5);
		}
		ibv_modify_qp(qp, &attr,
			      below(3) ? random64() & 0x1fffff : IBV_QP_STATE);
		if (below(10) == 0)
			connect_qp(o, qp, o->qp[below(NUM_QPS)]->qp_num,
				   &o->gid);
		ibv_query_qp(qp, &attr, random64(), &init);
	}
}

/* Send and receive requests of random fields through the provider. */
static void random_posts(struct objects *o)
{
	struct ibv_send_wr send, *bad_send;
	struct ibv_recv_wr recv, *bad_recv;
	struct ibv_sge sge[40];
	struct ibv_qp *qp;
	struct ibv_wc wc;
	size_t k;
	int i;

	for (i = 0; i < 5000; i++) {
		qp = o->qp[below(NUM_QPS - 2)];	/* UD needs a real AH */
		for (k = 0; k < ARRAY_SIZE(sge); k++)
			sge[k] = (struct ibv_sge){
				below(4) ? (uintptr_t)o->mem + below(MEM) :
					   random64(),
				below(4) ? below(5000) : (uint32_t)random64(),
				below(4) ? some_region(o)->lkey :
					   (uint32_t)random64()
			};
		random_bytes(&send, sizeof(send));
		send.next = NULL;
		send.sg_list = sge;
		send.num_sge = below(8) ? (int)below(5) : (int)below(80) - 20;
		send.opcode = below(4) ? below(7) :
			      below(2) ? IBV_WR_FLUSH + below(2) :
					 random64();
		/*
		 * libibverbs or a provider may trust these lengths and read
		 * memory.
		 */
		if (send.num_sge > 4 || send.num_sge < 0)
			send.send_flags &= ~(unsigned int)IBV_SEND_INLINE;
		for (k = 0;
		     (send.send_flags & IBV_SEND_INLINE) && k < ARRAY_SIZE(sge);
		     k++)
			sge[k] = (struct ibv_sge){ (uintptr_t)o->mem,
						   below(200), 0 };
		if (below(2)) {
			send.wr.rdma.remote_addr =
				(uintptr_t)o->mem + below(MEM);
			send.wr.rdma.rkey = some_region(o)->rkey;
		}
		lose_page(o);
		ibv_post_send(qp, &send, &bad_send);
		recv = (struct ibv_recv_wr){
			.sg_list = sge,
			.num_sge = below(8) ? (int)below(5) :
					      (int)below(80) - 20,
		};
		if (qp->srq)
			ibv_post_srq_recv(o->srq, &recv, &bad_recv);
		else
			ibv_post_recv(qp, &recv, &bad_recv);
		while (ibv_poll_cq(o->cq, 1, &wc) > 0)
			;
		if (below(20) == 0)
			for (k = 0; k < NUM_QPS; k++)
				connect_qp(o, o->qp[k], o->qp[k ^ 1]->qp_num,
					   &o->gid);
	}
}

/* ibv_wr_flush() and ibv_wr_atomic_write() with all that they may be given. */
static void random_placement(struct objects *o)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC, .send_cq = o->cq, .recv_cq = o->cq,
		.pd = o->pd,
		.cap = {
			.max_send_wr = 8, .max_recv_wr = 8, .max_recv_sge = 1,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_FLUSH |
				  IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	uint64_t word = random64();
	struct ibv_qp *qp[2];
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;
	uint64_t addr;
	uint32_t rkey;
	int i, k;

	for (k = 0; k < 2; k++)
		qp[k] = ibv_create_qp_ex(o->context, &init);
	if (!qp[0] || !qp[1])
		die("ibv_create_qp_ex");
	ex = ibv_qp_to_qp_ex(qp[0]);
	for (i = 0; i < 2000; i++) {
		if (i % 16 == 0)
			for (k = 0; k < 2; k++)
				connect_qp(o, qp[k], qp[!k]->qp_num, &o->gid);
		addr = below(8) ? (uintptr_t)o->mem + below(MEM) : random64();
		rkey = below(8) ? some_region(o)->rkey : random64();
		ibv_wr_start(ex);
		ex->wr_id = i;
		ex->wr_flags = random64();
		if (below(2))
			ibv_wr_atomic_write(ex, rkey,
					    below(8) ? addr & ~7ull : addr,
					    &word);
		else
			ibv_wr_flush(ex, rkey, addr,
				     below(8) ? below(MEM) : random64(),
				     below(8) ? 1 : random64(),
				     below(8) ? below(2) : random64());
		ibv_wr_complete(ex);
		while (ibv_poll_cq(o->cq, 1, &wc) > 0)
			;
	}
	for (k = 0; k < 2; k++)
		expect(!ibv_destroy_qp(qp[k]), "ibv_destroy_qp");
	init.send_ops_flags = IBV_QP_EX_WITH_TSO;
	expect(!ibv_create_qp_ex(o->context, &init), "an RC QP for TSO");
	init.qp_type = IBV_QPT_UC;
	init.send_ops_flags = IBV_QP_EX_WITH_FLUSH;
	expect(!ibv_create_qp_ex(o->context, &init), "a UC QP for FLUSH");
}

/* Extended verbs with unknown flags, and verbs that arx does not have. */
static void bad_extensions(struct objects *o)
{
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_RC,
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.pd = o->pd,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_cq_init_attr_ex cq = { .cqe = 10 };
	uint16_t pkey;

	qp.comp_mask = IBV_QP_INIT_ATTR_PD | 1u << 30;
	expect(!ibv_create_qp_ex(o->context, &qp), "a QP with mask 2^30");
	qp.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	qp.create_flags = 1u << 30;
	expect(!ibv_create_qp_ex(o->context, &qp), "a QP with flags 2^30");
	qp.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	qp.send_ops_flags = 1ull << 60;
	expect(!ibv_create_qp_ex(o->context, &qp), "a QP for operation 60");
	cq.comp_mask = 1u << 30;
	expect(!ibv_create_cq_ex(o->context, &cq), "a CQ with mask 2^30");
	cq.comp_mask = 0;
	cq.wc_flags = 1ull << 60;
	expect(!ibv_create_cq_ex(o->context, &cq), "a CQ with flags 2^60");
	cq.wc_flags = 0;
	cq.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	cq.flags = 1u << 30;
	expect(!ibv_create_cq_ex(o->context, &cq),
	       "a CQ with creation flags 2^30");
	expect(ibv_query_pkey(o->context, 1, 1000, &pkey),
	       "ibv_query_pkey of 1000");
	expect(!ibv_reg_dmabuf_mr(o->pd, 0, 4096, 0, -1, 0),
	       "a region of DMA buffer -1");
	expect(!ibv_reg_dmabuf_mr(o->pd, 0, 4096, 0, STDIN_FILENO, 0),
	       "a region of a DMA buffer that is none");
	expect(!ibv_alloc_mw(o->pd, 77), "a window of type 77");
}

static void bad_dms(struct objects *o)
{
	static const struct ibv_alloc_dm_attr bad[] = {
		{ .length = 0 },
		{ .length = (16 << 20) + 1 },
		{ .length = SIZE_MAX },
		{ .length = 1ull << 40 },
		{ .length = 64, .log_align_req = 13 },
		{ .length = 64, .log_align_req = 1u << 31 },
		{ .length = 64, .comp_mask = 1 },
	};
	static const struct {
		uint64_t offset, len;
		unsigned int access;
	} regions[] = {
		{ 0, 101, IBV_ACCESS_ZERO_BASED },
		{ 101, 0, IBV_ACCESS_ZERO_BASED },
		{ 100, 1, IBV_ACCESS_ZERO_BASED },
		{ 50, -1ull, IBV_ACCESS_ZERO_BASED },
		{ -8ull, 8, IBV_ACCESS_ZERO_BASED },
		{ 0, 100, 0 },
		{ 0, 100, IBV_ACCESS_ZERO_BASED | 1u << 31 },
		{ 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND },
		{ 0, 100, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE },
	};
	struct ibv_alloc_dm_attr attr = { .length = 100 };
	struct ibv_dm *dm = ibv_alloc_dm(o->context, &attr);
	struct ibv_mr *mr;
	uint32_t word = 0;
	size_t i;

	if (!dm)
		die("ibv_alloc_dm");
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		attr = bad[i];
		expect(!ibv_alloc_dm(o->context, &attr),
		       "device memory, case %zu", i);
	}
	for (i = 0; i < ARRAY_SIZE(regions); i++)
		expect(!ibv_reg_dm_mr(o->pd, dm, regions[i].offset,
				      regions[i].len, regions[i].access),
		       "a region of device memory, case %zu", i);
	expect(ibv_memcpy_to_dm(dm, 100, &word, 4) == EINVAL,
	       "a copy behind device memory");
	expect(ibv_memcpy_to_dm(dm, -4ull, &word, 4) == EINVAL,
	       "a copy before device memory");
	expect(ibv_memcpy_from_dm(&word, dm, 98, 4) == EINVAL,
	       "a copy that is not aligned");
	mr = ibv_reg_dm_mr(o->pd, dm, 0, 100, IBV_ACCESS_ZERO_BASED);
	expect(mr, "a region of device memory");
	expect(ibv_free_dm(dm) == EBUSY, "the end of device memory in use");
	expect(!mr || ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
				   0, IBV_ACCESS_LOCAL_WRITE),
	       "ibv_rereg_mr of device memory");
	expect(!ibv_import_dm(o->context, o->pd->handle),
	       "a PD imported as device memory");
	expect(!ibv_import_dm(o->context, 100000),
	       "device memory that never was");
	expect(mr && !ibv_dereg_mr(mr) && !ibv_free_dm(dm),
	       "the end of device memory");
}

/* Ranges of a dma-buf: a region lies in the buffer, or is refused. */
static void random_dmabufs(struct objects *o)
{
	const uint64_t size = 5 * 4096;
	int fd = make_dmabuf(size), i;
	struct ibv_mr *mr;

	expect(!ibv_reg_dmabuf_mr(o->pd, 0, 0, 0, -1, 0) && errno == EOPNOTSUPP,
	       "DMA buffer -1: %s", strerror(errno));
	if (fd < 0)
		return;
	for (i = 0; i < 1000; i++) {
		uint64_t offset = below(4) ? below(size + 100) : random64(),
			 len = below(4) ? below(size) : random64();
		uint64_t iova = (random64() & ~4095ull) | (offset & 4095);
		bool fits = len && offset < size && len <= size - offset &&
			    iova + len - 1 >= iova;

		mr = ibv_reg_dmabuf_mr(o->pd, offset, len, iova, fd,
				       IBV_ACCESS_LOCAL_WRITE);
		expect(!!mr == fits,
		       "a region of %#llx bytes from byte %#llx of a DMA buffer",
		       (unsigned long long)len, (unsigned long long)offset);
		if (mr && !below(8))
			expect(ibv_rereg_mr(mr, 1 + below(7), o->pd, o->mem,
					    4096, 0),
			       "ibv_rereg_mr of a DMA buffer");
		if (mr)
			ibv_dereg_mr(mr);
		mr = ibv_reg_dmabuf_mr(o->pd, offset, len, iova, fd,
				       random64());
		if (mr)
			ibv_dereg_mr(mr);
	}
	close(fd);
}

/* Files that are no command files, and handles of what is not there. */
static void bad_imports(struct objects *o)
{
	int null = open("/dev/null", O_RDWR), dir = open("/", O_RDONLY),
	    fd = dup(o->context->cmd_fd), i;
	struct ibv_context *context;
	struct ibv_pd *pd, *none;
	struct ibv_mr *mr;

	expect(!ibv_import_device(null), "import of /dev/null");
	expect(!ibv_import_device(dir), "import of a directory");
	expect(!ibv_import_device(o->context->async_fd),
	       "import of an event file");
	expect(!ibv_import_device(-1), "import of -1");
	close(null);
	close(dir);
	context = ibv_import_device(fd);
	pd = context ? ibv_import_pd(context, o->pd->handle) : NULL;
	if (!pd)
		die("import");
	for (i = 0; i < 200; i++) {
		uint32_t handle = below(2) ? random64() : below(64);

		none = ibv_import_pd(context, handle);
		if (none)
			ibv_unimport_pd(none);
		mr = ibv_import_mr(pd, handle);
		if (mr)
			ibv_unimport_mr(mr);
	}
	expect(!ibv_import_pd(context, o->mr->handle),
	       "a region imported as a PD");
	expect(!ibv_import_mr(pd, o->cq->handle), "a CQ imported as a region");
	mr = ibv_import_mr(pd, o->mr->handle);
	expect(mr && mr->rkey == o->mr->rkey, "import of a region");
	if (mr)
		ibv_unimport_mr(mr);
	expect(ibv_dealloc_pd(pd), "ibv_dealloc_pd of an imported PD in use");
	ibv_unimport_pd(pd);
	expect(!ibv_close_device(context), "the end of an import");
}

/* Handles by which the kernel finds objects. */
struct names {
	uint32_t pd, mr, ah, cq, srq, qp;
};

/* @call must fail while @object has the handle @name. */
#define AS(object, name, call) do {					\
	uint32_t own_ = (object)->handle;				\
									\
	(object)->handle = (name);					\
	expect((call), #call " of %s", whose);				\
	(object)->handle = own_;					\
} while (0)

static void verbs_on(struct objects *o, struct ibv_ah *ah,
		     const struct names *n, const char *whose)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.cap = {
			.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = o->gid, .sgid_index = o->gid_index },
	};
	struct ibv_srq_init_attr srq_init = {
		.attr = { .max_wr = 1, .max_sge = 1 },
	};
	struct ibv_modify_cq_attr moderation = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { 4, 10 }
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *ud = o->qp[NUM_QPS - 1];
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 7 } };
	struct ibv_srq_attr srq_attr = { .srq_limit = 1 };

	AS(o->pd, n->pd, ibv_dealloc_pd(o->pd));
	AS(o->pd, n->pd, !ibv_reg_mr(o->pd, o->mem, 4096, 0));
	AS(o->pd, n->pd, !ibv_create_ah(o->pd, &to));
	AS(o->pd, n->pd, !ibv_create_srq(o->pd, &srq_init));
	AS(o->pd, n->pd, !ibv_create_qp(o->pd, &init));
	AS(o->mr, n->mr, ibv_dereg_mr(o->mr));
	AS(o->mr, n->mr,
	   ibv_rereg_mr(o->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			IBV_ACCESS_LOCAL_WRITE));
	AS(ah, n->ah, ibv_destroy_ah(ah));
	AS(o->cq, n->cq, ibv_destroy_cq(o->cq));
	AS(o->cq, n->cq, ibv_resize_cq(o->cq, 100));
	AS(o->cq, n->cq, ibv_modify_cq(o->cq, &moderation));
	AS(o->cq, n->cq, !ibv_create_qp(o->pd, &init));
	AS(o->srq, n->srq, ibv_destroy_srq(o->srq));
	AS(o->srq, n->srq, ibv_modify_srq(o->srq, &srq_attr, IBV_SRQ_LIMIT));
	AS(o->srq, n->srq, ibv_query_srq(o->srq, &srq_attr));
	init.srq = o->srq;
	AS(o->srq, n->srq, !ibv_create_qp(o->pd, &init));
	AS(ud, n->qp, ibv_destroy_qp(ud));
	AS(ud, n->qp, ibv_modify_qp(ud, &attr, IBV_QP_STATE));
	AS(ud, n->qp, ibv_query_qp(ud, &attr, IBV_QP_STATE, &init));
	AS(ud, n->qp, ibv_attach_mcast(ud, &group, 0));
	AS(ud, n->qp, ibv_detach_mcast(ud, &group, 0));
}

/*
 * The verbs on destroyed objects, on objects that never existed, and on objects
 * of another kind. (Handles count within one context, so there are none of
 * another context.)
 */
static void misnamed_objects(struct objects *o)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = o->gid, .sgid_index = o->gid_index },
	};
	struct ibv_srq_init_attr srq_init = {
		.attr = { .max_wr = 1, .max_sge = 1 },
	};
	struct ibv_ah *ah = ibv_create_ah(o->pd, &to),
		      *old_ah = ibv_create_ah(o->pd, &to);
	struct ibv_cq *cq = ibv_create_cq(o->context, 1, NULL, NULL, 0);
	struct ibv_mr *mr = ibv_reg_mr(o->pd, o->mem, 4096, 0);
	struct ibv_srq *srq = ibv_create_srq(o->pd, &srq_init);
	struct ibv_pd *pd = ibv_alloc_pd(o->context);
	struct ibv_qp *qp;
	struct names n;

	init.send_cq = init.recv_cq = cq;
	qp = cq ? ibv_create_qp(o->pd, &init) : NULL;
	if (!ah || !old_ah || !mr || !srq || !pd || !qp)
		die("objects");
	n = (struct names){ pd->handle, mr->handle,  old_ah->handle,
			    cq->handle, srq->handle, qp->handle };
	if (ibv_destroy_qp(qp) || ibv_dealloc_pd(pd) || ibv_destroy_srq(srq) ||
	    ibv_dereg_mr(mr) || ibv_destroy_cq(cq) || ibv_destroy_ah(old_ah))
		die("objects' end");
	verbs_on(o, ah, &n, "what is gone");
	n = (struct names){ 100000, 100001, 100002, 100003, 100004, 100005 };
	verbs_on(o, ah, &n, "what never was");
	n = (struct names){ o->cq->handle, o->cq->handle, o->cq->handle,
			    o->pd->handle, o->cq->handle, o->cq->handle };
	verbs_on(o, ah, &n, "another kind");
	expect(!ibv_destroy_ah(ah), "the object is still there");
}

void abuse_verbs(struct objects *o)
{
	bad_regions(o);
	last_addresses(o);
	own_name(o);
	bad_cqs(o);
	bad_srqs(o);
	bad_qps(o);
	bad_addresses(o);
	bad_extensions(o);
	bad_dms(o);
	random_dmabufs(o);
	bad_imports(o);
	misnamed_objects(o);
	kernel_verbs(o);
	random_modify(o);
	random_posts(o);
	random_placement(o);
	print_result("verbs");
}
