/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Formats on the wire: IBA vol. 1 chapter 9 and annex A17 (RoCEv2). This file
 * knows no QPs.
 */
#ifndef ARX_WIRE_H
#define ARX_WIRE_H

#include <linux/bitfield.h>
#include <linux/math.h>
#include <linux/skbuff.h>
#include <linux/types.h>

struct in6_addr;

#define ARX_UDP_PORT		4791	/* A17.3.1.1 */
#define ARX_PSN_MASK		0xffffffU
#define ARX_QPN_MASK		0xffffffU
#define ARX_SRQN_MASK		0xffffffU
#define ARX_MULTICAST_QPN	0xffffffU
#define ARX_PKEY		0xffffU	/* the only P_Key of RoCE */
#define ARX_BTH_LEN		12
#define ARX_ICRC_LEN		4
/* precedes the payload of each delivered datagram */
#define ARX_GRH_LEN		40
#define ARX_GSI_QKEY		0x80010000U

/* Operation of a packet: the BTH opcode without service and flags. */
enum arx_op {
	ARX_OP_SEND,
	ARX_OP_WRITE,
	ARX_OP_READ,
	ARX_OP_READ_RESPONSE,
	ARX_OP_ACK,
	ARX_OP_ATOMIC_ACK,
	ARX_OP_COMPARE_SWAP,
	ARX_OP_FETCH_ADD,
	ARX_OP_FLUSH,
	ARX_OP_ATOMIC_WRITE,
	ARX_OP_CNP,
	ARX_OP_RESERVED,	/* RC, XRC: undefined opcode, gets a NAK */
};

/*
 * True if a request has a response of its own, which a plain ACK cannot
 * replace. The limit of READs and atomics outstanding is for all of these.
 */
static inline bool arx_is_rd(enum arx_op op)
{
	return op == ARX_OP_READ || (op >= ARX_OP_COMPARE_SWAP &&
				     op <= ARX_OP_ATOMIC_WRITE);
}

/* True if a responder sends @op, to a completer; false if @op is a request. */
static inline bool arx_is_response(enum arx_op op)
{
	return op == ARX_OP_READ_RESPONSE || op == ARX_OP_ACK ||
	       op == ARX_OP_ATOMIC_ACK;
}

/* Service: the upper three bits of a BTH opcode, 9.2.1. */
enum arx_service {
	ARX_SERVICE_RC	= 0x00,
	ARX_SERVICE_UC	= 0x20,
	ARX_SERVICE_UD	= 0x60,
	ARX_SERVICE_CNP	= 0x80,
	ARX_SERVICE_XRC	= 0xa0,
};

/* Flags of a packet and of a run. */
enum arx_pkt_flags {
	ARX_FIRST	= BIT(0),	/* begins a message */
	ARX_LAST	= BIT(1),	/* ends a message */
	ARX_IMM		= BIT(2),	/* carries immediate data */
	ARX_INV		= BIT(3),	/* carries an rkey to invalidate */
	ARX_SOLICITED	= BIT(4),
	ARX_ACK_REQ	= BIT(5),
	ARX_BECN	= BIT(6),
	ARX_FECN	= BIT(7),
	ARX_REPORTS	= BIT(8),	/* the sender understands reports */
};

/* Flags that only the last packet of a run may have. */
#define ARX_LAST_FLAGS	\
	(ARX_LAST | ARX_IMM | ARX_INV | ARX_SOLICITED | ARX_ACK_REQ | \
	 ARX_REPORTS)

/**
 * struct arx_headers - a packet's headers in host order
 * @op: operation
 * @service: enum arx_service
 * @flags: enum arx_pkt_flags
 * @pad: pad bytes after the payload
 * @placement: FETH: enum ib_placement_type, four bits
 * @pkey: partition key
 * @qpn: destination QPN
 * @psn: packet sequence number
 * @va: RETH and AtomicETH: remote address
 * @rkey: RETH and AtomicETH
 * @dma_len: RETH: bytes
 * @swap_add: AtomicETH
 * @compare: AtomicETH
 * @orig: AtomicAckETH
 * @syndrome: AETH
 * @selectivity: FETH: enum ib_selectivity_level, two bits
 * @flight: requests: the flight size (arx_flight()) when this one was sent; 0:
 *	the sender does not tell
 * @msn: AETH
 * @qkey: DETH
 * @src_qpn: DETH
 * @srqn: XRCETH
 * @ex: ImmDt in wire order, or the IETH's rkey in host order
 */
struct arx_headers {
	u8 op;
	u8 service;
	u16 flags;
	u8 pad;
	u8 placement;
	u16 pkey;
	u32 qpn;
	u32 psn;
	u64 va;
	u32 rkey;
	u32 dma_len;
	u64 swap_add;
	u64 compare;
	u64 orig;
	u8 syndrome;
	u8 selectivity;
	u8 flight;
	u32 msn;
	union {
		u32 qkey;
		u32 srqn;
	};
	u32 src_qpn;
	u32 ex;
};

/* The longest chain of headers: BTH, XRCETH, AtomicETH. */
#define ARX_MAX_HEADERS		(12 + 4 + 28)

/**
 * arx_has_xrceth - true if a packet has an XRCETH
 * @h: headers; only @op and @service matter
 *
 * Every packet of an XRC request has one, also in the middle of a message:
 * A14.3.
 *
 * Return: true if it has.
 */
static inline bool arx_has_xrceth(const struct arx_headers *h)
{
	return h->service == ARX_SERVICE_XRC && !arx_is_response(h->op) &&
	       h->op != ARX_OP_RESERVED;
}

int arx_headers_len(const struct arx_headers *h);
int arx_headers_more(const struct arx_headers *h, u32 n);
int arx_bth_read(struct arx_headers *h, const void *from);
void arx_bth_next(const void *last, void *to);
void arx_extensions_read(struct arx_headers *h, const void *bth);
bool arx_bth_is_middle(const struct arx_headers *run, u32 psn,
		       const void *from);
int arx_headers_write(const struct arx_headers *h, void *to);
int arx_headers_read(struct arx_headers *h, const void *from, unsigned int len);
void arx_headers_part(const struct arx_headers *run, u32 i, bool ends,
		      struct arx_headers *h);

/* AETH syndrome, 9.7.5.1.1 */
#define ARX_AETH_TYPE		GENMASK(6, 5)
#define ARX_AETH_VALUE		GENMASK(4, 0)
enum arx_aeth_type {
	ARX_AETH_ACK	= 0,
	ARX_AETH_RNR	= 1,
	ARX_AETH_NAK	= 3,
};

#define ARX_ACK_UNLIMITED	(FIELD_PREP(ARX_AETH_TYPE, ARX_AETH_ACK) | 0x1f)
#define ARX_NAK(code) \
	(FIELD_PREP(ARX_AETH_TYPE, ARX_AETH_NAK) | (code))
#define ARX_RNR_NAK(timer) \
	(FIELD_PREP(ARX_AETH_TYPE, ARX_AETH_RNR) | (timer))
enum arx_nak_code {
	ARX_NAK_SEQ_ERR		= 0,
	ARX_NAK_INV_REQ		= 1,
	ARX_NAK_REM_ACCESS	= 2,
	ARX_NAK_REM_OP		= 3,
	ARX_NAK_INV_RD_REQ	= 4,	/* XRC: no such SRQ in the XRC domain */
};

/*
 * Difference in 24-bit circular arithmetic, 9.7.2: negative if @a comes before
 * @b.
 */
static inline s32 arx_psn_diff(u32 a, u32 b)
{
	return (s32)((a - b) << 8) >> 8;
}

static inline u32 arx_psn_add(u32 psn, u32 n)
{
	return (psn + n) & ARX_PSN_MASK;
}

/* PSNs in a unit of the flight size. */
#define ARX_FLIGHT_UNIT		64

/**
 * arx_flight - flight size, as a BTH has it
 * @psns: PSNs before a request that are not acknowledged when it is sent
 *
 * Return: @psns in units of ARX_FLIGHT_UNIT, rounded up, plus one; 0 if that
 * does not fit into six bits.
 */
static inline u8 arx_flight(u32 psns)
{
	u32 flight = DIV_ROUND_UP(psns, ARX_FLIGHT_UNIT) + 1;

	return flight < BIT(6) ? flight : 0;
}

/**
 * arx_flight_una - the PSN that a request's flight size begins with
 * @h: the request; @h->flight is not 0
 *
 * Return: a PSN. Everything before it is acknowledged.
 */
static inline u32 arx_flight_una(const struct arx_headers *h)
{
	return arx_psn_add(h->psn, -(h->flight - 1) * ARX_FLIGHT_UNIT);
}

u32 arx_rnr_timer_us(u8 timer);

/* ICRC, 7.8.1 and A17.3.3: icrc.c */
__le32 arx_icrc(const struct sk_buff *skb);
__le32 arx_icrc_segment(const struct sk_buff *skb, u32 i, int off, int len);

void arx_wire_group(struct in6_addr *addr);

#endif /* ARX_WIRE_H */
