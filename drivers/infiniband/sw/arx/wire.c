// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Headers between wire and host order. One table of opcodes says which opcodes
 * exist and what they mean, and thereby which headers follow the BTH.
 */

#include <linux/errno.h>
#include <linux/unaligned.h>
#include <net/ipv6.h>

#include "wire.h"

/* Services for which an opcode is defined. */
#define RC	BIT(ARX_SERVICE_RC >> 5)
#define UC	BIT(ARX_SERVICE_UC >> 5)
#define UD	BIT(ARX_SERVICE_UD >> 5)
#define XRC	BIT(ARX_SERVICE_XRC >> 5)
#define ACKED	(RC | XRC)

#define MIDDLE	0
#define ONLY	(ARX_FIRST | ARX_LAST)

#define ARX_CNP_CODE		0x01 /* means SEND middle for other services */
#define ARX_CODE		GENMASK(4, 0)
#define ARX_SERVICE		GENMASK(7, 5)

/* Flags that choose an opcode; the others are bits of the BTH. */
#define ARX_SHAPE		(ARX_FIRST | ARX_LAST | ARX_IMM | ARX_INV)

/**
 * struct arx_opcode - meaning of an opcode
 * @op: enum arx_op
 * @shape: its flags
 * @services: services for which it is defined
 */
struct arx_opcode {
	u8 op;
	u8 shape;
	u8 services;
};

/* Indexed by the lower five bits of the opcode, 9.2.1 table 38 */
static const struct arx_opcode arx_opcodes[ARX_CODE + 1] = {
	[0x00] = { ARX_OP_SEND, ARX_FIRST, ACKED | UC },
	[0x01] = { ARX_OP_SEND, MIDDLE, ACKED | UC },
	[0x02] = { ARX_OP_SEND, ARX_LAST, ACKED | UC },
	[0x03] = { ARX_OP_SEND, ARX_LAST | ARX_IMM, ACKED | UC },
	[0x04] = { ARX_OP_SEND, ONLY, ACKED | UC | UD },
	[0x05] = { ARX_OP_SEND, ONLY | ARX_IMM, ACKED | UC | UD },
	[0x06] = { ARX_OP_WRITE, ARX_FIRST, ACKED | UC },
	[0x07] = { ARX_OP_WRITE, MIDDLE, ACKED | UC },
	[0x08] = { ARX_OP_WRITE, ARX_LAST, ACKED | UC },
	[0x09] = { ARX_OP_WRITE, ARX_LAST | ARX_IMM, ACKED | UC },
	[0x0a] = { ARX_OP_WRITE, ONLY, ACKED | UC },
	[0x0b] = { ARX_OP_WRITE, ONLY | ARX_IMM, ACKED | UC },
	[0x0c] = { ARX_OP_READ, ONLY, ACKED },
	[0x0d] = { ARX_OP_READ_RESPONSE, ARX_FIRST, ACKED },
	[0x0e] = { ARX_OP_READ_RESPONSE, MIDDLE, ACKED },
	[0x0f] = { ARX_OP_READ_RESPONSE, ARX_LAST, ACKED },
	[0x10] = { ARX_OP_READ_RESPONSE, ONLY, ACKED },
	[0x11] = { ARX_OP_ACK, ONLY, ACKED },
	[0x12] = { ARX_OP_ATOMIC_ACK, ONLY, ACKED },
	[0x13] = { ARX_OP_COMPARE_SWAP, ONLY, ACKED },
	[0x14] = { ARX_OP_FETCH_ADD, ONLY, ACKED },
	[0x16] = { ARX_OP_SEND, ARX_LAST | ARX_INV, ACKED },
	[0x17] = { ARX_OP_SEND, ONLY | ARX_INV, ACKED },
	[0x1c] = { ARX_OP_FLUSH, ONLY, ACKED },
	[0x1d] = { ARX_OP_ATOMIC_WRITE, ONLY, ACKED },
};

/* The inverse of arx_opcodes. */
static const u8 arx_codes[][ARX_SHAPE + 1] = {
	[ARX_OP_SEND] = {
		[ARX_FIRST] = 0x00,
		[MIDDLE] = 0x01,
		[ARX_LAST] = 0x02,
		[ARX_LAST | ARX_IMM] = 0x03,
		[ONLY] = 0x04,
		[ONLY | ARX_IMM] = 0x05,
		[ARX_LAST | ARX_INV] = 0x16,
		[ONLY | ARX_INV] = 0x17,
	},
	[ARX_OP_WRITE] = {
		[ARX_FIRST] = 0x06,
		[MIDDLE] = 0x07,
		[ARX_LAST] = 0x08,
		[ARX_LAST | ARX_IMM] = 0x09,
		[ONLY] = 0x0a,
		[ONLY | ARX_IMM] = 0x0b,
	},
	[ARX_OP_READ] = { [ONLY] = 0x0c },
	[ARX_OP_READ_RESPONSE] = {
		[ARX_FIRST] = 0x0d,
		[MIDDLE] = 0x0e,
		[ARX_LAST] = 0x0f,
		[ONLY] = 0x10,
	},
	[ARX_OP_ACK] = { [ONLY] = 0x11 },
	[ARX_OP_ATOMIC_ACK] = { [ONLY] = 0x12 },
	[ARX_OP_COMPARE_SWAP] = { [ONLY] = 0x13 },
	[ARX_OP_FETCH_ADD] = { [ONLY] = 0x14 },
	[ARX_OP_FLUSH] = { [ONLY] = 0x1c },
	[ARX_OP_ATOMIC_WRITE] = { [ONLY] = 0x1d },
};

/*
 * Chapters 9.2 to 9.3.5. All headers are multiples of four bytes, in this
 * order.
 */
struct arx_bth {
	u8 opcode;
	u8 flags;
	__be16 pkey;
	__be32 qpn;
	__be32 psn;
};

struct arx_deth {
	__be32 qkey;
	__be32 src_qpn;
};

struct arx_reth {
	__be64 va;
	__be32 rkey;
	__be32 dma_len;
} __packed;

struct arx_atomic_eth {
	__be64 va;
	__be32 rkey;
	__be64 swap_add;
	__be64 compare;
} __packed;

#define ARX_XRCETH_LEN		4
#define ARX_FETH_LEN		4
#define ARX_AETH_LEN		4
#define ARX_ATOMIC_ACK_LEN	8
#define ARX_IMM_LEN		4	/* also the IETH's */
#define ARX_CNP_RESERVED	16

#define ARX_BTH_SOLICITED	BIT(7)
#define ARX_BTH_MIGRATED	BIT(6)
#define ARX_BTH_PAD		GENMASK(5, 4)
#define ARX_BTH_VERSION		GENMASK(3, 0)
#define ARX_BTH_FECN		BIT(31)
#define ARX_BTH_BECN		BIT(30)
#define ARX_BTH_ACK_REQ		BIT(31)
#define ARX_BTH_FLIGHT		GENMASK(30, 25)	/* reserved bits, */
#define ARX_BTH_REPORTS		BIT(24)		/* and the last of them */
#define ARX_FETH_SELECTIVITY	GENMASK(5, 4)
#define ARX_FETH_PLACEMENT	GENMASK(3, 0)
#define ARX_AETH_SYNDROME	GENMASK(31, 24)
#define ARX_AETH_MSN		GENMASK(23, 0)

/* True if a DETH or an XRCETH follows the BTH. */
static bool arx_has_service_header(const struct arx_headers *h)
{
	return h->service > ARX_SERVICE_UC &&
	       (h->service == ARX_SERVICE_UD || arx_has_xrceth(h));
}

static bool arx_has_reth(const struct arx_headers *h)
{
	return h->op == ARX_OP_READ || h->op == ARX_OP_FLUSH ||
	       h->op == ARX_OP_ATOMIC_WRITE ||
	       (h->op == ARX_OP_WRITE && h->flags & ARX_FIRST);
}

static bool arx_has_atomic_eth(const struct arx_headers *h)
{
	return h->op == ARX_OP_COMPARE_SWAP || h->op == ARX_OP_FETCH_ADD;
}

static bool arx_has_aeth(const struct arx_headers *h)
{
	return h->op == ARX_OP_ACK || h->op == ARX_OP_ATOMIC_ACK ||
	       (h->op == ARX_OP_READ_RESPONSE &&
		h->flags & (ARX_FIRST | ARX_LAST));
}

static bool arx_has_payload(const struct arx_headers *h)
{
	return h->op == ARX_OP_SEND || h->op == ARX_OP_WRITE ||
	       h->op == ARX_OP_READ_RESPONSE || h->op == ARX_OP_RESERVED ||
	       h->op == ARX_OP_ATOMIC_WRITE;
}

/* Set the fields of @h that the opcode defines; -EINVAL: to be dropped. */
static int arx_opcode_read(struct arx_headers *h, u8 opcode)
{
	const struct arx_opcode *o = &arx_opcodes[opcode & ARX_CODE];
	u8 service = opcode & ARX_SERVICE;

	h->service = service;
	if (service == ARX_SERVICE_CNP) {
		h->op = ARX_OP_CNP;
		h->flags = ONLY;
		return (opcode & ARX_CODE) == ARX_CNP_CODE ? 0 : -EINVAL;
	}
	if (!(o->services & BIT(service >> 5))) {
		h->op = ARX_OP_RESERVED;
		h->flags = ONLY;
		return service == ARX_SERVICE_RC ||
		       service == ARX_SERVICE_XRC ? 0 : -EINVAL;
	}
	h->op = o->op;
	h->flags = o->shape;
	return 0;
}

static u8 arx_opcode_of(const struct arx_headers *h)
{
	if (h->op == ARX_OP_CNP)
		return ARX_SERVICE_CNP | ARX_CNP_CODE;
	return h->service | arx_codes[h->op][h->flags & ARX_SHAPE];
}

/**
 * arx_headers_len - bytes of a packet's headers
 * @h: headers; only @op, @service and @flags matter
 *
 * Return: bytes of the BTH and all extension headers.
 */
int arx_headers_len(const struct arx_headers *h)
{
	int len = sizeof(struct arx_bth);

	if (h->op == ARX_OP_CNP)
		return len + ARX_CNP_RESERVED;
	if (arx_has_service_header(h))
		len += h->service == ARX_SERVICE_UD ? sizeof(struct arx_deth) :
						      ARX_XRCETH_LEN;
	if (h->op == ARX_OP_FLUSH)
		len += ARX_FETH_LEN;
	if (arx_has_reth(h))
		len += sizeof(struct arx_reth);
	if (arx_has_atomic_eth(h))
		len += sizeof(struct arx_atomic_eth);
	if (arx_has_aeth(h))
		len += ARX_AETH_LEN;
	if (h->op == ARX_OP_ATOMIC_ACK)
		len += ARX_ATOMIC_ACK_LEN;
	if (h->flags & (ARX_IMM | ARX_INV))
		len += ARX_IMM_LEN;
	return len;
}

/**
 * arx_headers_more - bytes that a run has beside one set of headers, one ICRC
 *	and the payload
 * @h: headers of the first packet with the flags of the last
 * @n: number of packets
 *
 * The first and the last packet of a response have an AETH each.
 *
 * Return: bytes of headers and ICRCs.
 */
int arx_headers_more(const struct arx_headers *h, u32 n)
{
	int len = (n - 1) * (sizeof(struct arx_bth) + ARX_ICRC_LEN);

	if (arx_has_xrceth(h))
		len += (n - 1) * ARX_XRCETH_LEN;
	if (n > 1 && h->op == ARX_OP_READ_RESPONSE && h->flags & ARX_FIRST &&
	    h->flags & ARX_LAST)
		len += ARX_AETH_LEN;
	return len;
}

static void arx_write_bth(const struct arx_headers *h, struct arx_bth *bth)
{
	u32 qpn = h->qpn & ARX_QPN_MASK;
	u32 psn = FIELD_PREP(ARX_BTH_FLIGHT, h->flight) |
		  (h->psn & ARX_PSN_MASK);

	if (h->flags & ARX_FECN)
		qpn |= ARX_BTH_FECN;
	if (h->flags & ARX_BECN)
		qpn |= ARX_BTH_BECN;
	if (h->flags & ARX_ACK_REQ)
		psn |= ARX_BTH_ACK_REQ;
	if (h->flags & ARX_REPORTS)
		psn |= ARX_BTH_REPORTS;

	bth->opcode = arx_opcode_of(h);
	/* arx has no path migration: a QP is always "migrated". */
	bth->flags = ARX_BTH_MIGRATED | FIELD_PREP(ARX_BTH_PAD, h->pad) |
		     (h->flags & ARX_SOLICITED ? ARX_BTH_SOLICITED : 0);
	bth->pkey = cpu_to_be16(h->pkey);
	bth->qpn = cpu_to_be32(qpn);
	bth->psn = cpu_to_be32(psn);
}

static void *arx_write_service_header(const struct arx_headers *h, void *to)
{
	struct arx_deth *deth = to;

	if (h->service == ARX_SERVICE_XRC) {
		put_unaligned_be32(h->srqn & ARX_SRQN_MASK, to);
		return to + ARX_XRCETH_LEN;
	}
	deth->qkey = cpu_to_be32(h->qkey);
	deth->src_qpn = cpu_to_be32(h->src_qpn & ARX_QPN_MASK);
	return deth + 1;
}

static void *arx_write_feth(const struct arx_headers *h, void *to)
{
	put_unaligned_be32(FIELD_PREP(ARX_FETH_SELECTIVITY, h->selectivity) |
			   FIELD_PREP(ARX_FETH_PLACEMENT, h->placement), to);
	return to + ARX_FETH_LEN;
}

static void *arx_write_reth(const struct arx_headers *h, struct arx_reth *reth)
{
	reth->va = cpu_to_be64(h->va);
	reth->rkey = cpu_to_be32(h->rkey);
	reth->dma_len = cpu_to_be32(h->dma_len);
	return reth + 1;
}

static void *arx_write_atomic_eth(const struct arx_headers *h,
				  struct arx_atomic_eth *eth)
{
	eth->va = cpu_to_be64(h->va);
	eth->rkey = cpu_to_be32(h->rkey);
	eth->swap_add = cpu_to_be64(h->swap_add);
	eth->compare = cpu_to_be64(h->compare);
	return eth + 1;
}

static void *arx_write_aeth(const struct arx_headers *h, void *to)
{
	put_unaligned_be32(FIELD_PREP(ARX_AETH_SYNDROME, h->syndrome) |
			   FIELD_PREP(ARX_AETH_MSN, h->msn & ARX_PSN_MASK), to);
	return to + ARX_AETH_LEN;
}

/**
 * arx_headers_write - write a packet's headers
 * @h: headers; @op and @flags must be a combination that has an opcode
 * @to: room for arx_headers_len() bytes
 *
 * Return: bytes written.
 */
int arx_headers_write(const struct arx_headers *h, void *to)
{
	void *p = to;

	arx_write_bth(h, p);
	p += sizeof(struct arx_bth);
	if (h->op == ARX_OP_CNP) {
		memset(p, 0, ARX_CNP_RESERVED);
		return p + ARX_CNP_RESERVED - to;
	}

	if (arx_has_service_header(h))
		p = arx_write_service_header(h, p);
	if (h->op == ARX_OP_FLUSH)
		p = arx_write_feth(h, p);
	if (arx_has_reth(h))
		p = arx_write_reth(h, p);
	if (arx_has_atomic_eth(h))
		p = arx_write_atomic_eth(h, p);
	if (arx_has_aeth(h))
		p = arx_write_aeth(h, p);
	if (h->op == ARX_OP_ATOMIC_ACK) {
		put_unaligned_be64(h->orig, p);
		p += ARX_ATOMIC_ACK_LEN;
	}
	if (h->flags & ARX_IMM) {
		memcpy(p, &h->ex, ARX_IMM_LEN);
		p += ARX_IMM_LEN;
	} else if (h->flags & ARX_INV) {
		put_unaligned_be32(h->ex, p);
		p += ARX_IMM_LEN;
	}
	return p - to;
}

/**
 * arx_bth_next - write the headers of a packet in the middle of a message
 * @last: BTH of the packet before, which is in the middle, too, and has no
 *	XRCETH
 * @to: room for ARX_BTH_LEN bytes: the packet has no other header
 */
void arx_bth_next(const void *last, void *to)
{
	struct arx_bth *bth = to;

	memcpy(bth, last, sizeof(*bth));
	bth->psn = cpu_to_be32(arx_psn_add(be32_to_cpu(bth->psn), 1));
}

/* Read the BTH except the opcode, from which @h already has its fields. */
static int arx_read_bth(struct arx_headers *h, const struct arx_bth *bth)
{
	u32 qpn = be32_to_cpu(bth->qpn);
	u32 psn = be32_to_cpu(bth->psn);

	if (FIELD_GET(ARX_BTH_VERSION, bth->flags))
		return -EINVAL;
	h->pad = FIELD_GET(ARX_BTH_PAD, bth->flags);
	if (h->pad && !arx_has_payload(h))
		return -EINVAL;

	if (bth->flags & ARX_BTH_SOLICITED)
		h->flags |= ARX_SOLICITED;
	if (psn & ARX_BTH_ACK_REQ)
		h->flags |= ARX_ACK_REQ;
	if (psn & ARX_BTH_REPORTS)
		h->flags |= ARX_REPORTS;
	if (qpn & ARX_BTH_FECN)
		h->flags |= ARX_FECN;
	if (qpn & ARX_BTH_BECN)
		h->flags |= ARX_BECN;
	h->pkey = be16_to_cpu(bth->pkey);
	h->qpn = qpn & ARX_QPN_MASK;
	h->psn = psn & ARX_PSN_MASK;
	h->flight = FIELD_GET(ARX_BTH_FLIGHT, psn);
	return 0;
}

static const void *arx_read_service_header(struct arx_headers *h,
					   const void *from)
{
	const struct arx_deth *deth = from;

	if (h->service == ARX_SERVICE_XRC) {
		h->srqn = get_unaligned_be32(from) & ARX_SRQN_MASK;
		return from + ARX_XRCETH_LEN;
	}
	h->qkey = be32_to_cpu(deth->qkey);
	h->src_qpn = be32_to_cpu(deth->src_qpn) & ARX_QPN_MASK;
	return deth + 1;
}

static const void *arx_read_feth(struct arx_headers *h, const void *from)
{
	u32 feth = get_unaligned_be32(from);

	h->selectivity = FIELD_GET(ARX_FETH_SELECTIVITY, feth);
	h->placement = FIELD_GET(ARX_FETH_PLACEMENT, feth);
	return from + ARX_FETH_LEN;
}

static const void *arx_read_reth(struct arx_headers *h,
				 const struct arx_reth *reth)
{
	h->va = be64_to_cpu(reth->va);
	h->rkey = be32_to_cpu(reth->rkey);
	h->dma_len = be32_to_cpu(reth->dma_len);
	return reth + 1;
}

static const void *arx_read_atomic_eth(struct arx_headers *h,
				       const struct arx_atomic_eth *eth)
{
	h->va = be64_to_cpu(eth->va);
	h->rkey = be32_to_cpu(eth->rkey);
	h->swap_add = be64_to_cpu(eth->swap_add);
	h->compare = be64_to_cpu(eth->compare);
	return eth + 1;
}

static const void *arx_read_aeth(struct arx_headers *h, const void *from)
{
	u32 aeth = get_unaligned_be32(from);

	h->syndrome = FIELD_GET(ARX_AETH_SYNDROME, aeth);
	h->msn = FIELD_GET(ARX_AETH_MSN, aeth);
	return from + ARX_AETH_LEN;
}

/**
 * arx_extensions_read - parse the headers after a packet's BTH
 * @h: headers from arx_bth_read(); the function adds the rest
 * @bth: the BTH and the other headers, as long as arx_bth_read() returned
 */
void arx_extensions_read(struct arx_headers *h, const void *bth)
{
	const void *p = bth + ARX_BTH_LEN;

	if (h->op == ARX_OP_CNP)
		return;
	if (arx_has_service_header(h))
		p = arx_read_service_header(h, p);
	if (h->op == ARX_OP_FLUSH)
		p = arx_read_feth(h, p);
	if (arx_has_reth(h))
		p = arx_read_reth(h, p);
	if (arx_has_atomic_eth(h))
		p = arx_read_atomic_eth(h, p);
	if (arx_has_aeth(h))
		p = arx_read_aeth(h, p);
	if (h->op == ARX_OP_ATOMIC_ACK) {
		h->orig = get_unaligned_be64(p);
		p += ARX_ATOMIC_ACK_LEN;
	}
	if (h->flags & ARX_IMM)
		memcpy(&h->ex, p, ARX_IMM_LEN);
	else if (h->flags & ARX_INV)
		h->ex = get_unaligned_be32(p);
}

/**
 * arx_bth_read - parse a packet's BTH alone
 * @h: receives the result; fields of other headers are 0
 * @from: ARX_BTH_LEN bytes
 *
 * Return: bytes of all headers of the packet, or -EINVAL as arx_headers_read().
 */
int arx_bth_read(struct arx_headers *h, const void *from)
{
	int err;

	memset(h, 0, sizeof(*h));
	err = arx_opcode_read(h, *(const u8 *)from);
	if (!err)
		err = arx_read_bth(h, from);
	return err ? err : arx_headers_len(h);
}

/**
 * arx_bth_is_middle - true if a packet is in the middle of the message of the
 *	packet before
 * @run: headers of the run so far, as struct arx_run has them; no XRC request,
 *	whose packets have more than a BTH
 * @psn: of the packet
 * @from: ARX_BTH_LEN bytes
 *
 * Return: true if the packet is the next one of that message, does not end the
 * message, and has no flags of its own; false says nothing about the packet.
 */
bool arx_bth_is_middle(const struct arx_headers *run, u32 psn,
		       const void *from)
{
	const struct arx_bth *bth = from;

	return !(run->flags & ARX_LAST) &&
	       bth->opcode == (run->service | arx_codes[run->op][MIDDLE]) &&
	       bth->flags == ARX_BTH_MIGRATED &&
	       be16_to_cpu(bth->pkey) == ARX_PKEY &&
	       be32_to_cpu(bth->qpn) == run->qpn &&
	       be32_to_cpu(bth->psn) == psn;
}

/**
 * arx_headers_read - parse a packet's headers
 * @h: receives the result; fields of headers that the packet lacks are 0
 * @from: the BTH
 * @len: bytes readable at @from
 *
 * Return: bytes of headers, or -EINVAL: an unknown opcode, another transport
 * version, padding without payload, or too few bytes.
 */
int arx_headers_read(struct arx_headers *h, const void *from, unsigned int len)
{
	int need;

	if (len < ARX_BTH_LEN)
		return -EINVAL;
	need = arx_bth_read(h, from);
	if (need < 0 || len < need)
		return -EINVAL;
	arx_extensions_read(h, from);
	return need;
}

/**
 * arx_headers_part - headers of some packets of a run
 * @run: headers of the whole run, as in struct arx_run; @pad is the last
 *	packet's
 * @i: index of the first of the packets
 * @ends: true if the last packet of the run is one of them
 * @h: receives the headers
 */
void arx_headers_part(const struct arx_headers *run, u32 i, bool ends,
		      struct arx_headers *h)
{
	*h = *run;
	h->psn = arx_psn_add(run->psn, i);
	if (i)
		h->flags &= ~ARX_FIRST;
	if (ends)
		return;
	h->flags &= ~ARX_LAST_FLAGS;
	h->pad = 0;
}

/* 9.7.5.2.8 table 45, in units of 10 microseconds */
static const u32 arx_rnr_timers[ARX_AETH_VALUE + 1] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256,
	384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
	24576, 32768, 49152,
};

/**
 * arx_rnr_timer_us - wait time of an RNR NAK
 * @timer: AETH value, five bits
 *
 * Return: microseconds.
 */
u32 arx_rnr_timer_us(u8 timer)
{
	return arx_rnr_timers[timer & ARX_AETH_VALUE] * 10;
}

/**
 * arx_wire_group - replace interface-local scope of a group by link-local scope
 * @addr: any address, v4-mapped for IPv4
 *
 * IP neither sends nor receives packets to groups of interface-local scope
 * (RFC 4291, 2.7 and errata 3480), but programs name such groups: ib_send_bw
 * does by default. With a network card these programs work, because a card uses
 * only the MAC address that belongs to an MGID, which is the same for both
 * scopes.
 *
 * Context: any.
 */
void arx_wire_group(struct in6_addr *addr)
{
	if (ipv6_addr_is_multicast(addr) &&
	    IPV6_ADDR_MC_SCOPE(addr) == IPV6_ADDR_SCOPE_NODELOCAL)
		addr->s6_addr[1] ^= IPV6_ADDR_SCOPE_NODELOCAL ^
				    IPV6_ADDR_SCOPE_LINKLOCAL;
}
