// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * wire.c. The packets come from vectors.py: made by scapy, checked by tshark.
 * arx must read from their headers what scapy put in, and write the same.
 */

#include <kunit/test.h>
#include <rdma/ib_verbs.h>

#include "wire.c"
#include "vectors.h"

#define OUTER_V4	28
#define OUTER_V6	48

/* Fields of all vectors. */
#define COMMON	.pkey = 0xffff, .qpn = 0x123456, .psn = 0xfffffe
#define RETH	.va = 0x1122334455667788, .rkey = 0x99aabbcc,	\
		.dma_len = 0xddeeff01
#define ATOMIC	.va = 0x1122334455667788, .rkey = 0x99aabbcc,	\
		.swap_add = 0x0102030405060708,			\
		.compare = 0x1112131415161718
#define FETH	.placement = IB_FLUSH_PERSISTENT,		\
		.selectivity = IB_FLUSH_MR
#define DETH	.qkey = 0x80010000, .src_qpn = 0xabcdef
#define XRC_	.service = ARX_SERVICE_XRC, .srqn = 0x789abc
#define SYN	.syndrome = 0x65, .msn = 0xfedcba
#define IMM	.ex = (__force u32)cpu_to_be32(0xdeadbeef)

struct vector {
	const char *name;
	const u8 *bth;
	int len;
	struct arx_headers h;
};

#define V4(n, l, ...) {					\
	.name = #n, .bth = vector_##n + OUTER_V4,	\
	.len = l, .h = { __VA_ARGS__ } }
#define V6(n, l, ...) {					\
	.name = #n, .bth = vector_##n + OUTER_V6,	\
	.len = l, .h = { __VA_ARGS__ } }

static const struct vector vectors[] = {
	V4(send_first, 12, COMMON, .op = ARX_OP_SEND, .flags = ARX_FIRST),
	V4(send_middle_fecn, 12, COMMON, .op = ARX_OP_SEND, .flags = ARX_FECN),
	V4(send_last_imm_solicited, 16, COMMON, IMM, .op = ARX_OP_SEND,
	   .flags = ARX_LAST | ARX_IMM | ARX_SOLICITED | ARX_ACK_REQ,
	   .pad = 3),
	V4(send_only_inv, 16, COMMON, .op = ARX_OP_SEND, .ex = 0x12345678,
	   .flags = ONLY | ARX_INV | ARX_ACK_REQ, .pad = 2),
	V4(send_only_empty, 12, COMMON, .op = ARX_OP_SEND,
	   .flags = ONLY | ARX_ACK_REQ),
	V6(send_only_pad1_v6, 12, COMMON, .op = ARX_OP_SEND, .flags = ONLY,
	   .pad = 1),
	V6(send_only_pad2_v6, 12, COMMON, .op = ARX_OP_SEND,
	   .flags = ONLY | ARX_BECN, .pad = 2),
	V4(write_first, 28, COMMON, RETH, .op = ARX_OP_WRITE,
	   .flags = ARX_FIRST),
	V4(write_only_imm, 32, COMMON, RETH, IMM, .op = ARX_OP_WRITE,
	   .flags = ONLY | ARX_IMM | ARX_ACK_REQ, .pad = 3),
	V4(read, 28, COMMON, RETH, .op = ARX_OP_READ,
	   .flags = ONLY | ARX_ACK_REQ),
	V4(read_response_first, 16, COMMON, SYN, .op = ARX_OP_READ_RESPONSE,
	   .flags = ARX_FIRST),
	V4(read_response_middle, 12, COMMON, .op = ARX_OP_READ_RESPONSE),
	V6(read_response_only_v6, 16, COMMON, SYN, .flags = ONLY, .pad = 1,
	   .op = ARX_OP_READ_RESPONSE),
	V4(ack, 16, COMMON, SYN, .op = ARX_OP_ACK, .flags = ONLY),
	V6(ack_v6, 16, COMMON, SYN, .op = ARX_OP_ACK, .flags = ONLY),
	V4(atomic_ack, 24, COMMON, SYN, .op = ARX_OP_ATOMIC_ACK, .flags = ONLY,
	   .orig = 0x2122232425262728),
	V4(compare_swap, 40, COMMON, ATOMIC, .op = ARX_OP_COMPARE_SWAP,
	   .flags = ONLY | ARX_ACK_REQ),
	V6(fetch_add_v6, 40, COMMON, ATOMIC, .op = ARX_OP_FETCH_ADD,
	   .flags = ONLY | ARX_ACK_REQ),
	V4(uc_send_last, 12, COMMON, .op = ARX_OP_SEND, .flags = ARX_LAST,
	   .service = ARX_SERVICE_UC),
	V4(ud_send_only, 20, COMMON, DETH, .op = ARX_OP_SEND, .flags = ONLY,
	   .service = ARX_SERVICE_UD),
	V6(ud_send_only_imm_v6, 24, COMMON, DETH, IMM, .op = ARX_OP_SEND,
	   .flags = ONLY | ARX_IMM, .service = ARX_SERVICE_UD, .pad = 1),
	V4(flush, 32, COMMON, FETH, RETH, .op = ARX_OP_FLUSH,
	   .flags = ONLY | ARX_ACK_REQ),
	V6(atomic_write_v6, 28, COMMON, RETH, .op = ARX_OP_ATOMIC_WRITE,
	   .flags = ONLY | ARX_ACK_REQ),
	V4(xrc_flush, 36, COMMON, XRC_, FETH, RETH, .op = ARX_OP_FLUSH,
	   .flags = ONLY | ARX_ACK_REQ),
	V4(xrc_atomic_write, 32, COMMON, XRC_, RETH, .op = ARX_OP_ATOMIC_WRITE,
	   .flags = ONLY | ARX_ACK_REQ),
	V4(xrc_send_middle, 16, COMMON, XRC_, .op = ARX_OP_SEND),
	V4(xrc_send_last_inv, 20, COMMON, XRC_, .op = ARX_OP_SEND,
	   .flags = ARX_LAST | ARX_INV | ARX_ACK_REQ, .ex = 0x12345678,
	   .pad = 1),
	V6(xrc_write_only_imm_v6, 36, COMMON, XRC_, RETH, IMM,
	   .op = ARX_OP_WRITE, .flags = ONLY | ARX_IMM | ARX_SOLICITED,
	   .pad = 3),
	V4(xrc_read, 32, COMMON, XRC_, RETH, .op = ARX_OP_READ,
	   .flags = ONLY | ARX_ACK_REQ),
	V4(xrc_read_response_middle, 12, COMMON, .op = ARX_OP_READ_RESPONSE,
	   .service = ARX_SERVICE_XRC),
	V4(xrc_ack, 16, COMMON, SYN, .op = ARX_OP_ACK, .flags = ONLY,
	   .service = ARX_SERVICE_XRC),
	V4(xrc_atomic_ack, 24, COMMON, SYN, .op = ARX_OP_ATOMIC_ACK,
	   .flags = ONLY, .orig = 0x2122232425262728,
	   .service = ARX_SERVICE_XRC),
	V4(xrc_compare_swap, 44, COMMON, XRC_, ATOMIC,
	   .op = ARX_OP_COMPARE_SWAP, .flags = ONLY | ARX_ACK_REQ),
	V4(cnp, 28, .pkey = 0xffff, .qpn = 0x123456, .op = ARX_OP_CNP,
	   .flags = ONLY | ARX_BECN, .service = ARX_SERVICE_CNP),
};

static void vector_name(const struct vector *v, char *name)
{
	strscpy(name, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vector, vectors, vector_name);

static void read__vector(struct kunit *test)
{
	const struct vector *v = test->param_value;
	struct arx_headers h;

	KUNIT_EXPECT_EQ(test, arx_bth_read(&h, v->bth), v->len);
	KUNIT_ASSERT_EQ(test, arx_headers_read(&h, v->bth, v->len), v->len);
	KUNIT_EXPECT_EQ(test, h.op, v->h.op);
	KUNIT_EXPECT_EQ(test, h.service, v->h.service);
	KUNIT_EXPECT_EQ(test, h.flags, v->h.flags);
	KUNIT_EXPECT_EQ(test, h.pad, v->h.pad);
	KUNIT_EXPECT_EQ(test, h.pkey, v->h.pkey);
	KUNIT_EXPECT_EQ(test, h.placement, v->h.placement);
	KUNIT_EXPECT_EQ(test, h.selectivity, v->h.selectivity);
	KUNIT_EXPECT_EQ(test, h.qpn, v->h.qpn);
	KUNIT_EXPECT_EQ(test, h.psn, v->h.psn);
	KUNIT_EXPECT_EQ(test, h.va, v->h.va);
	KUNIT_EXPECT_EQ(test, h.rkey, v->h.rkey);
	KUNIT_EXPECT_EQ(test, h.dma_len, v->h.dma_len);
	KUNIT_EXPECT_EQ(test, h.swap_add, v->h.swap_add);
	KUNIT_EXPECT_EQ(test, h.compare, v->h.compare);
	KUNIT_EXPECT_EQ(test, h.orig, v->h.orig);
	KUNIT_EXPECT_EQ(test, h.syndrome, v->h.syndrome);
	KUNIT_EXPECT_EQ(test, h.msn, v->h.msn);
	KUNIT_EXPECT_EQ(test, h.qkey, v->h.qkey);
	KUNIT_EXPECT_EQ(test, h.src_qpn, v->h.src_qpn);
	KUNIT_EXPECT_EQ(test, h.flight, v->h.flight);
	KUNIT_EXPECT_EQ(test, h.ex, v->h.ex);
}

static void read__too_short(struct kunit *test)
{
	const struct vector *v = test->param_value;
	struct arx_headers h;
	int len;

	for (len = 0; len < v->len; len++)
		KUNIT_EXPECT_EQ(test, arx_headers_read(&h, v->bth, len),
				-EINVAL);
}

static void write__vector(struct kunit *test)
{
	const struct vector *v = test->param_value;
	u8 out[ARX_MAX_HEADERS + 1];
	u8 want[ARX_MAX_HEADERS];

	memcpy(want, v->bth, v->len);
	/* scapy's cnp() does not set this bit; no receiver checks it. */
	want[1] |= ARX_BTH_MIGRATED;

	memset(out, 0x5a, sizeof(out));
	KUNIT_EXPECT_EQ(test, arx_headers_len(&v->h), v->len);
	KUNIT_ASSERT_EQ(test, arx_headers_write(&v->h, out), v->len);
	KUNIT_EXPECT_MEMEQ(test, out, want, v->len);
	KUNIT_EXPECT_EQ(test, out[v->len], 0x5a);
}

/* Every existing opcode is written as it was read; no other is read. */
static void opcodes__round_trip(struct kunit *test)
{
	u8 in[ARX_MAX_HEADERS] = {};
	u8 out[ARX_MAX_HEADERS];
	int reserved = 0;
	int known = 0;
	int opcode;

	for (opcode = 0; opcode < 256; opcode++) {
		struct arx_headers h;
		int len;

		in[0] = opcode;
		len = arx_headers_read(&h, in, sizeof(in));
		KUNIT_EXPECT_EQ(test, arx_bth_read(&h, in), len);
		if (len < 0)
			continue;
		if (h.op == ARX_OP_RESERVED) {
			reserved++;
			continue;
		}
		known++;
		KUNIT_EXPECT_EQ(test, arx_headers_write(&h, out), len);
		KUNIT_EXPECT_EQ(test, out[0], opcode);
	}
	/* Table 38: RC and XRC 25, UC 12, UD 2; CNP */
	KUNIT_EXPECT_EQ(test, known, 2 * 25 + 12 + 2 + 1);
	/* The other codes of RC and XRC are parsed only to be refused. */
	KUNIT_EXPECT_EQ(test, reserved, 2 * (32 - 25));
}

static void plain_bth(struct arx_bth *bth, u8 opcode, u32 psn)
{
	*bth = (struct arx_bth) {
		.opcode = opcode,
		.flags = ARX_BTH_MIGRATED,
		.pkey = cpu_to_be16(ARX_PKEY),
		.qpn = cpu_to_be32(0x123456),
		.psn = cpu_to_be32(psn),
	};
}

/* A BTH with one changed field, selected by @what. */
static void vary(struct arx_bth *bth, int what)
{
	switch (what) {
	case 1:
		bth->flags |= ARX_BTH_SOLICITED;
		break;
	case 2:
		bth->flags |= FIELD_PREP(ARX_BTH_PAD, 1);
		break;
	case 3:
		bth->flags |= FIELD_PREP(ARX_BTH_VERSION, 1);
		break;
	case 4:
		bth->pkey = cpu_to_be16(ARX_PKEY ^ BIT(3));
		break;
	case 5:
		bth->qpn ^= cpu_to_be32(1);
		break;
	case 6:
		bth->qpn |= cpu_to_be32(ARX_BTH_BECN);
		break;
	case 7:
		bth->psn ^= cpu_to_be32(1);
		break;
	case 8:
		bth->psn |= cpu_to_be32(ARX_BTH_ACK_REQ);
		break;
	case 9:
		bth->psn |= cpu_to_be32(FIELD_PREP(ARX_BTH_FLIGHT, 1));
		break;
	}
}

/*
 * After each packet, each packet with the next PSN: it continues the message
 * exactly if it is a middle packet of the same kind of message, and has nothing
 * else that is new.
 */
static void is_middle__all_opcodes(struct kunit *test)
{
	u8 in[ARX_MAX_HEADERS] = {};
	struct arx_bth *bth = (void *)in;
	struct arx_headers last, h;
	int opcode, what;
	int found = 0;

	for (opcode = 0; opcode < 256 * 256; opcode++) {
		plain_bth(bth, opcode >> 8, ARX_PSN_MASK);
		if (arx_headers_read(&last, in, sizeof(in)) < 0 ||
		    arx_has_xrceth(&last))
			continue;
		plain_bth(bth, opcode, 0);
		if (arx_headers_read(&h, in, sizeof(in)) < 0)
			continue;
		KUNIT_ASSERT_EQ(test, arx_bth_is_middle(&last, 0, in),
				h.op == last.op && h.service == last.service &&
				!(last.flags & ARX_LAST) && !h.flags);
		found += arx_bth_is_middle(&last, 0, in);
	}
	/*
	 * After first and middle: SEND and WRITE of RC and UC, READ response of
	 * RC and XRC
	 */
	KUNIT_EXPECT_EQ(test, found, 2 * (2 * 2 + 2));

	plain_bth(bth, 0x07, ARX_PSN_MASK);	/* RC WRITE middle */
	KUNIT_ASSERT_GT(test, arx_headers_read(&last, in, sizeof(in)), 0);
	for (what = 0; what <= 9; what++) {
		plain_bth(bth, 0x07, 0);
		vary(bth, what);
		KUNIT_EXPECT_EQ(test, arx_bth_is_middle(&last, 0, in), !what);
	}
}

/* A flight size says that enough PSNs are outstanding, and not 64 too many. */
static void flight__sizes(struct kunit *test)
{
	struct arx_headers h = {
		.op = ARX_OP_READ,
		.flags = ONLY | ARX_ACK_REQ | ARX_REPORTS,
		.psn = 1000,
	};
	u8 out[ARX_MAX_HEADERS];
	struct arx_headers in;
	int told;
	u32 n;

	for (n = 0; n < 5000; n++) {
		h.flight = arx_flight(n);
		arx_headers_write(&h, out);
		arx_headers_read(&in, out, sizeof(out));
		KUNIT_ASSERT_EQ(test, in.flight, h.flight);
		KUNIT_ASSERT_EQ(test, in.psn, 1000);
		KUNIT_ASSERT_EQ(test, in.flags, h.flags);
		KUNIT_ASSERT_EQ(test, !in.flight,
				n > 62 * ARX_FLIGHT_UNIT);
		if (!in.flight)
			continue;
		told = arx_psn_diff(in.psn, arx_flight_una(&in));
		KUNIT_ASSERT_GE(test, told, n);
		KUNIT_ASSERT_LT(test, told, n + ARX_FLIGHT_UNIT);
	}
	KUNIT_EXPECT_EQ(test, arx_flight(ARX_PSN_MASK), 0);
}

/* The next middle packet equals one that was written as a whole. */
static void next__as_written(struct kunit *test)
{
	static const u8 middles[] = { 0x01, 0x07, 0x0e, 0x21, 0x27, 0xae };
	u8 last[ARX_MAX_HEADERS] = {}, next[ARX_BTH_LEN], whole[ARX_BTH_LEN];
	struct arx_headers h;
	int i;

	for (i = 0; i < ARRAY_SIZE(middles); i++) {
		plain_bth((void *)last, middles[i], ARX_PSN_MASK);
		KUNIT_ASSERT_EQ(test, arx_headers_read(&h, last, sizeof(last)),
				ARX_BTH_LEN);
		h.psn = 0;
		KUNIT_ASSERT_EQ(test, arx_headers_write(&h, whole),
				ARX_BTH_LEN);
		arx_bth_next(last, next);
		KUNIT_EXPECT_MEMEQ(test, next, whole, ARX_BTH_LEN);
	}
}

static void read__other_version(struct kunit *test)
{
	u8 in[ARX_MAX_HEADERS];
	struct arx_headers h;
	int version;

	memcpy(in, vector_send_first + OUTER_V4, 12);
	for (version = 1; version < 16; version++) {
		in[1] = version;
		KUNIT_EXPECT_EQ(test, arx_headers_read(&h, in, 12), -EINVAL);
	}
}

static void read__pad_without_payload(struct kunit *test)
{
	u8 in[ARX_MAX_HEADERS];
	struct arx_headers h;

	memcpy(in, vector_ack + OUTER_V4, 16);
	in[1] |= 0x10;
	KUNIT_EXPECT_EQ(test, arx_headers_read(&h, in, 16), -EINVAL);
}

/* Table 45 doubles every two values, except at its beginning. */
static void rnr_timer__table(struct kunit *test)
{
	int i;

	KUNIT_EXPECT_EQ(test, arx_rnr_timer_us(0), 655360);
	KUNIT_EXPECT_EQ(test, arx_rnr_timer_us(1), 10);
	KUNIT_EXPECT_EQ(test, arx_rnr_timer_us(2), 20);
	KUNIT_EXPECT_EQ(test, arx_rnr_timer_us(3), 30);
	for (i = 4; i < 32; i++)
		KUNIT_EXPECT_EQ(test, arx_rnr_timer_us(i),
				2 * arx_rnr_timer_us(i - 2));
	KUNIT_EXPECT_EQ(test, arx_rnr_timer_us(31), 491520);
	KUNIT_EXPECT_EQ(test, arx_rnr_timer_us(0x21), 10);
}

static void psn__wraps(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, arx_psn_add(0xffffff, 1), 0);
	KUNIT_EXPECT_EQ(test, arx_psn_diff(0, 0xffffff), 1);
	KUNIT_EXPECT_EQ(test, arx_psn_diff(0xffffff, 0), -1);
	KUNIT_EXPECT_EQ(test, arx_psn_diff(0x7fffff, 0), 0x7fffff);
	KUNIT_EXPECT_EQ(test, arx_psn_diff(0x800000, 0), -0x800000);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(read__vector, vector_gen_params),
	KUNIT_CASE_PARAM(read__too_short, vector_gen_params),
	KUNIT_CASE_PARAM(write__vector, vector_gen_params),
	KUNIT_CASE(opcodes__round_trip),
	KUNIT_CASE(is_middle__all_opcodes),
	KUNIT_CASE(flight__sizes),
	KUNIT_CASE(next__as_written),
	KUNIT_CASE(read__other_version),
	KUNIT_CASE(read__pad_without_payload),
	KUNIT_CASE(rnr_timer__table),
	KUNIT_CASE(psn__wraps),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_wire",
	.test_cases = cases,
};

kunit_test_suite(suite);
