// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process that writes random data to the rings that it shares with the
 * kernel, and kicks. The rings are found in /proc/self/maps, so they are the
 * real mappings.
 */
#include <fcntl.h>
#include <poll.h>
#include <rdma/arx-abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "hostile.h"

struct ring {
	uint8_t *mem;
	size_t len;
};

static struct ring rings[64];
static size_t num_rings;

static void find_rings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "uverbs") ||
		    sscanf(line, "%lx-%lx", &from, &to) != 2 ||
		    num_rings == ARRAY_SIZE(rings))
			continue;
		rings[num_rings++] = (struct ring){ (void *)from, to - from };
	}
	if (maps)
		fclose(maps);
}

/* On every descriptor; only the doorbell accepts it, others return ENOTTY. */
static void kick(uint32_t qpn)
{
	int fd;

	for (fd = 3; fd < 16; fd++)
		ioctl(fd, ARX_IOCTL_KICK, (unsigned long)qpn);
}

static void write_noise(struct ring *ring)
{
	size_t len = 1 + below(below(4) ? 64 : ring->len),
	       at = below(ring->len);

	random_bytes(ring->mem + at,
		     len < ring->len - at ? len : ring->len - at);
}

/* A send request that is almost right. */
static void write_request(struct objects *o, struct ring *ring)
{
	size_t entries = (ring->len - ARX_RING_ENTRIES_OFFSET) / ARX_WQE_ALIGN;
	uint8_t *at = ring->mem + ARX_RING_ENTRIES_OFFSET +
		      below(entries) * ARX_WQE_ALIGN;
	struct arx_send_wqe wqe = {
		.wr_id = random64(),
		.opcode = below(17),
		.num_sge = below(6) ? below(5) : random64(),
		.flags = random64(),
		.ex = below(2) ? some_region(o)->rkey : random64(),
		.inline_len = below(4) ? below(100) : random64(),
		.srqn = below(4) ? o->xrc_srqn : random64(),
		.rdma = {
			.remote_addr = (uintptr_t)o->mem + below(MEM),
			.rkey = below(3) ? some_region(o)->rkey : random64(),
		},
	};
	if (wqe.opcode == IB_UVERBS_WR_FLUSH && below(8)) {
		wqe.flush.length = below(4) ? below(MEM) : random64();
		wqe.flush.placement = below(4) ? below(4) : random64();
		wqe.flush.selectivity = below(4) ? below(2) : random64();
		wqe.num_sge = wqe.inline_len = 0;
	} else if (wqe.opcode == IB_UVERBS_WR_ATOMIC_WRITE && below(8)) {
		wqe.flags |= IBV_SEND_INLINE;
		wqe.inline_len = 8;
		wqe.rdma.remote_addr &= ~7ull;
	}
	if (wqe.opcode == IB_UVERBS_WR_BIND_MW && below(8)) {
		wqe.bind.addr = (uintptr_t)o->mem + below(MEM);
		wqe.bind.length = below(8) ? below(MEM) : random64();
		wqe.bind.mr_lkey = below(8) ? some_region(o)->lkey : random64();
		wqe.bind.mw_rkey = below(8) ? o->mw[below(2)]->rkey :
					      random64();
		wqe.bind.new_rkey = wqe.bind.mw_rkey ^ below(3);
		wqe.bind.access = IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ;
		if (!below(8))
			wqe.bind.access = random64();
	} else if (below(4) == 0) {
		wqe.ex = o->mw[below(2)]->rkey ^ below(3);
		wqe.rdma.rkey = o->mw[below(2)]->rkey ^ below(3);
	}
	struct arx_sge sge = {
		.addr = below(4) ? (uintptr_t)o->mem + below(MEM) : random64(),
		.length = below(3) ? below(9000) : random64(),
		.lkey = below(4) ? some_region(o)->lkey : random64(),
	};
	size_t room = ring->mem + ring->len - at;

	memcpy(at, &wqe, sizeof(wqe) < room ? sizeof(wqe) : room);
	if (room >= sizeof(wqe) + sizeof(sge))
		memcpy(at + sizeof(wqe), &sge, sizeof(sge));
}

static void write_index(struct ring *ring)
{
	volatile struct arx_ring_hdr *hdr = (void *)ring->mem;

	switch (below(6)) {
	case 0:
		hdr->prod = random64();
		break;
	case 1:
		hdr->cons = random64();
		break;
	case 2:
		hdr->arm = random64();
		break;
	case 3:
		hdr->prod = hdr->cons + below(1000);
		break;
	default:
		hdr->prod = hdr->prod + below(8);
	}
}

static void scribble(struct objects *o)
{
	struct ring *ring = &rings[below(num_rings)];

	switch (below(4)) {
	case 0:
		write_noise(ring);
		break;
	case 1:
		write_index(ring);
		break;
	default:
		write_request(o, ring);
		write_index(ring);
	}
}

/* The ring that is not among the first @known of the mappings. */
static struct ring *new_ring(size_t known)
{
	size_t i, j;

	find_rings();
	for (i = known; i < num_rings; i++) {
		for (j = 0; j < known && rings[j].mem != rings[i].mem; j++)
			;
		if (j == known)
			return &rings[i];
	}
	die("no ring of the SRQ");
	return NULL;
}

static void expect_event(struct objects *o, enum ibv_event_type type,
			 const void *object)
{
	struct pollfd async = { .fd = o->context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&async, 1, 10000) != 1 ||
	    ibv_get_async_event(o->context, &event)) {
		expect(false, "no event, but %s", ibv_event_type_str(type));
		return;
	}
	expect(event.event_type == type && event.element.srq == object,
	       "%s, not %s", ibv_event_type_str(event.event_type),
	       ibv_event_type_str(type));
	ibv_ack_async_event(&event);
}

static struct ibv_qp *qp_of_srq(struct objects *o, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = o->cq,
		.recv_cq = o->cq,
		.srq = srq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(o->pd, &attr);

	if (!qp)
		die("ibv_create_qp");
	return qp;
}

/*
 * The process breaks the ring of its SRQ. The first message finds it: the SRQ's
 * owner and the QP's get an event each, the sender a status. A second QP of the
 * SRQ fails, too, and the SRQ reports nothing again.
 */
void break_srq(struct objects *o)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = 32, .max_sge = 1 },
	};
	volatile struct arx_ring_hdr *hdr;
	struct ibv_srq *srq;
	size_t known;
	int i;

	o->timeout = 17;	/* 0.5 s: a busy host may delay packets */
	find_rings();
	known = num_rings;
	srq = ibv_create_srq(o->pd, &attr);
	if (!srq)
		die("ibv_create_srq");
	hdr = (void *)new_ring(known)->mem;
	hdr->prod = hdr->cons + 1000;
	for (i = 0; i < 2; i++) {
		struct ibv_qp *qp = qp_of_srq(o, srq), *peer = o->qp[i ? 2 : 0];
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		}, *bad;
		double end = now() + 10;
		struct ibv_wc wc = {};

		connect_qp(o, qp, peer->qp_num, &o->gid);
		connect_qp(o, peer, qp->qp_num, &o->gid);
		expect(!ibv_post_send(peer, &wr, &bad), "ibv_post_send");
		while (!ibv_poll_cq(o->cq, 1, &wc) && now() < end)
			;
		expect(wc.qp_num == peer->qp_num &&
		       wc.status == IBV_WC_REM_OP_ERR,
		       "a SEND to a broken SRQ: %s",
		       ibv_wc_status_str(wc.status));
		if (!i)
			expect_event(o, IBV_EVENT_SRQ_ERR, srq);
		expect_event(o, IBV_EVENT_QP_FATAL, qp);
		expect(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	}
	expect(!ibv_destroy_srq(srq), "ibv_destroy_srq");
	print_result("srq");
}

/* The target of XRC has no ring, and a kick for it is refused. */
static struct ibv_qp *some_qp(struct objects *o)
{
	uint32_t i = below(NUM_QPS + 2);

	return i < NUM_QPS ? o->qp[i] : o->xrc[i - NUM_QPS];
}

void abuse_rings(struct objects *o, int seconds)
{
	double end = now() + seconds;
	unsigned long count = 0;
	int i;

	make_xrc_objects(o);
	find_rings();
	expect(num_rings >= 2 * NUM_QPS,
	       "only %zu mappings of the device were found", num_rings);
	while (now() < end && num_rings) {
		for (i = 0; i < NUM_QPS; i++)
			connect_qp(o, o->qp[i], o->qp[i ^ 1]->qp_num, &o->gid);
		for (i = 0; i < 2; i++)
			connect_qp(o, o->xrc[i], o->xrc[i ^ 1]->qp_num,
				   &o->gid);
		for (i = 0; i < 200; i++, count++) {
			scribble(o);
			lose_page(o);
			kick(below(20) ? some_qp(o)->qp_num : random64());
			if (below(50) == 0)
				ibv_req_notify_cq(o->cq, below(2));
		}
	}
	printf("# %lu times, %zu rings\n", count, num_rings);
	print_result("rings");
	fflush(stdout);
	_exit(num_rings < 2 * NUM_QPS);
}
