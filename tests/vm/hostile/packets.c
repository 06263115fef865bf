// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets for UDP port 4791 from the address of an honest peer: noise, and
 * packets with a right ICRC and some other fault. They are aimed at the QPs of
 * a victim, which accepts what it can; other QPs must not notice.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "hostile.h"

/* ---- the victim ---- */

static union ibv_gid gid_of(const char *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, address, gid.raw + 12) != 1 &&
	    inet_pton(AF_INET6, address, gid.raw) != 1)
		die(address);
	return gid;
}

#define WINDOW_QP	1	/* RC; its peer knows the rkey of a window */

static void post_receives(struct objects *o)
{
	struct ibv_sge sge = { (uintptr_t)o->mem, 4096, some_region(o)->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	int i, k, err = 0;

	/* Bounded: in the error state a receive is flushed when posted. */
	for (i = 0; i < NUM_QPS; i++)
		for (k = 0, err = 0; k < 32 && !err; k++)
			err = o->qp[i]->srq ?
				      ibv_post_srq_recv(o->srq, &wr, &bad) :
				      ibv_post_recv(o->qp[i], &wr, &bad);
	for (k = 0, err = 0; k < 32 && !err; k++)
		err = ibv_post_srq_recv(o->xrc_srq, &wr, &bad);
}

static void post_something(struct objects *o, struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)o->mem, 3000, some_region(o)->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = below(2) ? IBV_WR_SEND : IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = (uintptr_t)o->mem,
			.rkey = some_region(o)->rkey,
		},
	}, *bad;

	if (qp->qp_type == IBV_QPT_XRC_SEND)
		wr.qp_type.xrc.remote_srqn = o->xrc_srqn;
	ibv_post_send(qp, &wr, &bad);
}

/* Bind the QP's window of type 2 anew: a packet may have ended it. */
static void bind_again(struct objects *o, struct ibv_qp *qp)
{
	struct ibv_mw *mw = o->mw[1];
	struct ibv_send_wr wr[2] = {
		{
			.next = &wr[1], .opcode = IBV_WR_LOCAL_INV,
			.invalidate_rkey = mw->rkey,
		},
		{
			.opcode = IBV_WR_BIND_MW,
			.bind_mw = {
				mw, mw->rkey,
				{
					o->mr, (uintptr_t)o->mem, MEM / 2,
					IBV_ACCESS_REMOTE_WRITE |
					IBV_ACCESS_REMOTE_READ,
				},
			},
		},
	}, *bad;

	ibv_post_send(qp, wr, &bad);
}

/* As for the other QPs. An SRQ of a target ends at times, and others follow. */
static void revive_xrc(struct objects *o, const union ibv_gid *attacker)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 32, .max_sge = 4 },
		.srq_type = IBV_SRQT_XRC,
		.pd = o->pd,
		.cq = o->cq,
		.xrcd = o->xrcd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(o->context, &init);
	struct ibv_qp_init_attr query;
	struct ibv_qp_attr attr;
	int i;

	/* Numbers of SRQs that are gone may be in packets. */
	if (!srq || ibv_destroy_srq(srq))
		die("an XRC SRQ");
	for (i = 0; i < 2; i++)
		if (!ibv_query_qp(o->xrc[i], &attr, IBV_QP_STATE, &query) &&
		    attr.qp_state != IBV_QPS_RTS)
			connect_qp(o, o->xrc[i], 0x200 + i, attacker);
	post_something(o, o->xrc[0]);
}

/* Make the QPs ready for the next packet, whatever the last one did. */
static void revive(struct objects *o, const union ibv_gid *attacker)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc[16];
	int i;

	while (ibv_poll_cq(o->cq, 16, wc) > 0)
		;
	for (i = 0; i < NUM_QPS; i++) {
		if (!ibv_query_qp(o->qp[i], &attr, IBV_QP_STATE, &init) &&
		    attr.qp_state != IBV_QPS_RTS)
			connect_qp(o, o->qp[i], 0x100 + i, attacker);
		if (o->qp[i]->qp_type == IBV_QPT_RC)
			/* responses may come, too */
			post_something(o, o->qp[i]);
		if (i == WINDOW_QP)
			bind_again(o, o->qp[i]);
	}
	revive_xrc(o, attacker);
	lose_page(o);
	post_receives(o);
}

void be_a_victim(struct objects *o, const char *attacker)
{
	union ibv_gid gid = gid_of(attacker);
	struct pollfd input = { .fd = 0, .events = POLLIN };
	int i;

	make_xrc_objects(o);
	for (i = 0; i < NUM_QPS; i++)
		printf("%u %u %u %llu 0\n", o->qp[i]->qp_type, o->qp[i]->qp_num,
		       i == WINDOW_QP ? o->mw[1]->rkey : some_region(o)->rkey,
		       (unsigned long long)(uintptr_t)o->mem);
	for (i = 0; i < 2; i++)
		printf("%u %u %u %llu %u\n", o->xrc[i]->qp_type,
		       o->xrc[i]->qp_num, some_region(o)->rkey,
		       (unsigned long long)(uintptr_t)o->mem, o->xrc_srqn);
	printf("end\n");
	fflush(stdout);
	do
		revive(o, &gid);
	while (!poll(&input, 1, 1));
}

/* Not hostile itself: a datagram QP in a group. */
void be_a_member(struct objects *o, const char *group)
{
	union ibv_gid gid = gid_of(group);
	char end;

	if (ibv_attach_mcast(o->qp[NUM_QPS - 1], &gid, 0))
		die("ibv_attach_mcast");
	printf("attached\n");
	while (read(0, &end, 1) > 0)
		;
}

/* ---- the attacker ---- */

static struct victim {
	uint32_t type, qpn, rkey, srqn;
	uint64_t addr;
} victims[64];
static size_t num_victims;

static void read_victims(void)
{
	unsigned long long addr;
	struct victim *v = victims;
	char line[200];

	while (num_victims < ARRAY_SIZE(victims) &&
	       fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%u %u %u %llu %u", &v->type, &v->qpn,
			   &v->rkey, &addr, &v->srqn) != 5)
			break;
		v++->addr = addr;
		num_victims++;
	}
	if (!num_victims) {
		errno = EINVAL;
		die("no victim");
	}
}

static uint32_t crc(uint32_t crc, const uint8_t *p, size_t len)
{
	int bit;

	for (; len--; p++)
		for (crc ^= *p, bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	return crc;
}

struct packet {
	uint8_t bytes[1600];	/* from the BTH on */
	size_t len;		/* without the ICRC */
};

static void put(struct packet *p, uint64_t value, int bytes)
{
	while (bytes--)
		p->bytes[p->len++] = value >> (8 * bytes);
}

/*
 * The ICRC covers addresses, ports and all fields that routers do not change.
 * @id: identification of the IPv4 packet
 */
static void put_icrc(struct packet *p, const struct sockaddr_storage *from,
		     const struct sockaddr_storage *to, uint16_t id)
{
	const struct sockaddr_in *from4 = (const void *)from,
				 *to4 = (const void *)to;
	const struct sockaddr_in6 *from6 = (const void *)from,
				  *to6 = (const void *)to;
	uint16_t udp[4] = { from4->sin_port, htons(4791), htons(8 + p->len + 4),
			    0xffff };
	uint16_t ip4[6] = { htons(0x45ff), htons(28 + p->len + 4),
			    htons(id),	   htons(0x4000),
			    htons(0xff11), 0xffff };
	uint8_t ip6[8] = {
		0x6f,		0xff, 0xff, 0xff, (8 + p->len + 4) >> 8,
		8 + p->len + 4, 17,   0xff
	};
	uint8_t ones[8], bth4 = p->bytes[4];
	uint32_t c;

	memset(ones, 0xff, sizeof(ones));
	c = crc(~0u, ones, 8);
	if (from->ss_family == AF_INET) {
		c = crc(c, (void *)ip4, 12);
		c = crc(c, (void *)&from4->sin_addr, 4);
		c = crc(c, (void *)&to4->sin_addr, 4);
	} else {
		c = crc(c, ip6, 8);
		c = crc(c, (void *)&from6->sin6_addr, 16);
		c = crc(c, (void *)&to6->sin6_addr, 16);
	}
	c = crc(c, (void *)udp, 8);
	p->bytes[4] = 0xff;
	c = ~crc(c, p->bytes, p->len);
	p->bytes[4] = bth4;
	memcpy(p->bytes + p->len, &c, 4);
	p->len += 4;
}

static uint64_t near_address(const struct victim *v)
{
	switch (below(5)) {
	case 0:
		return random64();
	case 1:
		return v->addr + MEM - below(2000);
	case 2:
		return v->addr - below(10);
	default:
		return v->addr + below(MEM);
	}
}

static uint32_t some_length(void)
{
	switch (below(5)) {
	case 0:
		return random64();
	case 1:
		return 0x80000000 - below(3);
	default:
		return below(4000);
	}
}

static void put_reth(struct packet *p, const struct victim *v)
{
	/* aligned at times, and a word, for an ATOMIC WRITE */
	bool word = below(4) == 0;

	put(p, near_address(v) & (word ? ~7ull : ~0ull), 8);
	put(p, below(10) ? v->rkey : random64(), 4);
	put(p, word ? 8 : some_length(), 4);
}

static void put_atomic(struct packet *p, const struct victim *v)
{
	put(p, near_address(v) & (below(4) ? ~7ull : ~0ull), 8);
	put(p, below(10) ? v->rkey : random64(), 4);
	put(p, random64(), 8);
	put(p, random64(), 8);
}

static void put_feth(struct packet *p)
{
	put(p, below(4) ? below(2) << 4 | below(4) : random64(), 4);
}

static void put_aeth(struct packet *p)
{
	put(p, below(2) ? 0x1f : random64(), 1);
	put(p, below(20), 3);
}

/* All requests of XRC have an XRCETH. */
static bool has_xrceth(uint8_t opcode)
{
	return opcode >> 5 == 5 &&
	       ((opcode & 0x1f) < 0x0d || (opcode & 0x1f) > 0x12);
}

/* The headers of the opcode. */
static void put_headers(struct packet *p, const struct victim *v,
			uint8_t opcode)
{
	if (opcode >> 5 == 3) {
		put(p, below(10) ? QKEY : random64(), 4);
		put(p, random64() & 0xffffff, 4);
	}
	if (has_xrceth(opcode))
		put(p, below(10) ? v->srqn : random64(), 4);
	switch (opcode & 0x1f) {
	case 0x1c:
		put_feth(p);
		/* fall through */
	case 0x06: case 0x0a: case 0x0b: case 0x0c: case 0x1d:
		put_reth(p, v);
		break;
	case 0x0d: case 0x0f: case 0x10: case 0x11: case 0x12:
		put_aeth(p);
		break;
	case 0x13: case 0x14:
		put_atomic(p, v);
		break;
	}
	switch (opcode & 0x1f) {
	case 0x03: case 0x05: case 0x09: case 0x0b: case 0x16: case 0x17:
		put(p, random64(), 4);
		break;
	case 0x12:
		put(p, random64(), 8);
		break;
	}
}

/* Bytes after the headers; in the middle of a message a whole MTU. */
static size_t payload_of(uint8_t opcode)
{
	static const uint32_t whole = 1 << 0 | 1 << 1 | 1 << 6 | 1 << 7 |
				      1 << 0xd | 1 << 0xe;
	static const uint32_t none = 1 << 0xc | 0xf << 0x11 | 1 << 0x1c;

	if (below(6) == 0)
		return below(1200);
	if ((opcode & 0x1f) == 0x1d)
		return 8;
	if (whole >> (opcode & 0x1f) & 1)
		return 1024;
	return none >> (opcode & 0x1f) & 1 ? 0 : below(1025);
}

static uint8_t opcode_for(const struct victim *v)
{
	if (v->type == IBV_QPT_UD)
		return 0x64 + below(2);
	if (v->type == IBV_QPT_UC)
		return 0x20 + below(12);
	return (v->type == IBV_QPT_RC ? 0 : 0xa0) + below(0x1e);
}

/* The next opcode of a message of several packets, often the last. */
static uint8_t next_opcode(uint8_t opcode)
{
	uint8_t step = below(4) ? 1 : 2;	/* middle, last */

	switch (opcode & 0x1f) {
	case 0x00: case 0x01:	/* SEND */
		return (opcode & 0xe0) + step;
	case 0x06: case 0x07:	/* WRITE */
		return (opcode & 0xe0) + 6 + step;
	default:
		return opcode;
	}
}

/*
 * A packet that seems to follow the last one, so that GRO may join it to that
 * one.
 */
static void follow_packet(struct packet *p)
{
	uint32_t psn =
		(p->bytes[9] << 16 | p->bytes[10] << 8 | p->bytes[11]) + 1;
	uint8_t opcode = p->bytes[0];
	/* Only a message's first packet has one. */
	size_t reth = (opcode & 0x1f) == 6 ? 16 : 0;
	size_t at = has_xrceth(opcode) ? 16 : 12;

	p->len -= 4;	/* the ICRC */
	if (p->len >= at + reth) {
		memmove(p->bytes + at, p->bytes + at + reth,
			p->len - at - reth);
		p->len -= reth;
	}
	p->bytes[0] = next_opcode(opcode);
	p->bytes[9] = psn >> 16;
	p->bytes[10] = psn >> 8;
	p->bytes[11] = psn;
	if (below(8) == 0)
		p->len -= below(p->len / 2);
}

/* A packet with right values in most fields, and wrong ones in some. */
static void make_packet(struct packet *p)
{
	const struct victim *v = &victims[below(num_victims)];
	uint8_t opcode = below(20) ? opcode_for(v) : random64();
	size_t payload = payload_of(opcode),
	       pad = below(10) ? -payload & 3 : below(4);
	int i;

	p->len = 0;
	put(p, opcode, 1);
	put(p, below(20) ? pad << 4 | 0x40 | below(2) << 7 : random64(), 1);
	put(p, below(20) ? 0xffff : random64(), 2);
	put(p, below(20) ? 0 : random64(), 1);
	put(p, below(20) ? v->qpn : random64() % 3, 3);
	put(p, below(2) << 7, 1);
	put(p, below(10) ? 0x1000 + below(4) : random64(), 3);
	put_headers(p, v, below(20) ? opcode : random64());
	for (i = 0; payload && i < 20; i++)
		p->bytes[p->len + below(payload)] = random64();
	memset(p->bytes + p->len + payload, 0, pad);
	p->len += payload + pad;
}

static void open_socket(const char *from, const char *to, int *fd,
			struct sockaddr_storage *here,
			struct sockaddr_storage *there)
{
	struct sockaddr_in *here4 = (void *)here, *there4 = (void *)there;
	struct sockaddr_in6 *here6 = (void *)here, *there6 = (void *)there;
	int family = strchr(from, ':') ? AF_INET6 : AF_INET,
	    on = IP_PMTUDISC_DO;
	socklen_t len = sizeof(*here);

	memset(here, 0, sizeof(*here));
	memset(there, 0, sizeof(*there));
	here->ss_family = there->ss_family = family;
	if (family == AF_INET) {
		inet_pton(AF_INET, from, &here4->sin_addr);
		inet_pton(AF_INET, to, &there4->sin_addr);
	} else {
		inet_pton(AF_INET6, from, &here6->sin6_addr);
		inet_pton(AF_INET6, to, &there6->sin6_addr);
	}
	there4->sin_port = htons(4791);
	*fd = socket(family, SOCK_DGRAM, 0);
	/*
	 * Not to be fragmented: then the IP ID of an unconnected socket is 0.
	 */
	if (family == AF_INET)
		setsockopt(*fd, IPPROTO_IP, IP_MTU_DISCOVER, &on, sizeof(on));
	if (*fd < 0 || bind(*fd, (void *)here, len) ||
	    getsockname(*fd, (void *)here, &len))
		die("socket");
}

static bool send_bytes(int fd, const void *bytes, size_t len,
		       const struct sockaddr_storage *to)
{
	return sendto(fd, bytes, len, 0, (void *)to,
		      to->ss_family == AF_INET ?
			      sizeof(struct sockaddr_in) :
			      sizeof(struct sockaddr_in6)) > 0;
}

#define TRAIN	6

/*
 * Packets of one length for any QPs, of any services, as one packet that the
 * kernel or a card splits, or hands over as it is.
 */
static bool send_train(int fd, const struct sockaddr_storage *here,
		       const struct sockaddr_storage *there)
{
	static uint8_t bytes[TRAIN * sizeof(struct packet)];
	uint32_t n = 2 + below(TRAIN - 1), i;
	size_t len = 0, size = 0;
	struct packet p;
	int segment;
	bool sent;

	for (i = 0; i < n; i++) {
		memset(&p, 0, sizeof(p));
		make_packet(&p);
		if (!i)
			size = p.len;
		p.len = size;
		put_icrc(&p, here, there, i);
		memcpy(bytes + len, p.bytes, p.len);
		len += p.len;
	}
	segment = size + 4;
	if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)))
		die("UDP_SEGMENT");
	sent = send_bytes(fd, bytes, len - (below(4) ? 0 : below(size)), there);
	segment = 0;
	if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)))
		die("UDP_SEGMENT");
	return sent;
}

int send_packets(const char *from, const char *to, uint32_t count)
{
	struct sockaddr_storage here, there;
	uint32_t i, sent = 0;
	struct packet p = {};
	int fd;

	read_victims();
	open_socket(from, to, &fd, &here, &there);
	for (i = 0; i < count; i++) {
		if (below(16) == 0) {
			sent += send_train(fd, &here, &there);
			continue;
		}
		if (p.len > 20 && below(3))
			follow_packet(&p);
		else
			make_packet(&p);
		if (below(8))
			put_icrc(&p, &here, &there, 0);
		else
			p.len += 4;
		if (below(8) == 0)
			random_bytes(p.bytes + below(p.len),
				     1); /* after the ICRC: a broken packet */
		if (below(50) == 0)
			p.len = below(p.len);
		if (below(100) == 0)
			random_bytes(p.bytes, p.len);
		sent += send_bytes(fd, p.bytes, p.len, &there);
	}
	printf("# %u packets\n", sent);
	expect(sent > count / 2, "only %u of %u packets could be sent", sent,
	       count);
	print_result("packets");
	return sent <= count / 2;
}
