// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * gso.c and super.c: packets of all lengths joined, and split again. uso.c:
 * packets that the kernel splits.
 */

#include <kunit/test.h>
#include <linux/if_ether.h>
#include <linux/prandom.h>
#include <net/gso.h>

#include "super.c"
#include "gso.c"
#include "uso.c"

#define PACKETS		6
#define OUTER		(ETH_HLEN + 40 + 8)	/* MAC, the longer IP, UDP */
#define SPAN		8192

static u32 computed;	/* newly computed ICRCs */

/* sock.c */
void arx_sock_icrc_computed(const struct sk_buff *skb, u32 n)
{
	computed += n;
}

/**
 * struct packets - packets to join
 * @len: bytes of each from BTH to ICRC
 * @data: bytes of all packets, one after the other, without ICRCs
 * @skb: joined packets
 */
struct packets {
	u32 len[PACKETS];
	u8 data[SPAN];
	struct sk_buff *skb;
};

/*
 * Lengths of packets that are posted together: all kinds, equal ones, those of
 * a long message.
 */
static const u32 shapes[][PACKETS] = {
	{ 36, 1052, 16, 44, 2000, 20 },
	{ 40, 40, 40, 40, 40, 40 },
	{ 1056, 1040, 1040, 1040, 1040, 20 },
	{ 16, 16, 16, 16, 16, 4096 },
};

static void shape_name(const u32 (*shape)[PACKETS], char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "%u, %u ... %u", (*shape)[0],
		 (*shape)[1], (*shape)[PACKETS - 1]);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_name);

/*
 * A packet of arx, of which all but @linear bytes are in pages, like those of a
 * memory region.
 */
static struct sk_buff *make_packet(struct kunit *test, const u8 *data, u32 len,
				   u32 linear)
{
	struct sk_buff *skb;

	linear = min(linear, len);
	skb = alloc_skb(OUTER + linear, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, OUTER);
	skb_put_data(skb, data, linear);
	while (skb->len < len) {
		u32 n = min(len - skb->len, 3000);
		struct page *page = alloc_page(GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, page);
		memcpy(page_address(page) + 96, data + skb->len, n);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 96, n,
				PAGE_SIZE);
		skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
	}
	return skb;
}

/* Joined like tx.c; packets have @linear linear bytes, the rest is in pages. */
static struct packets *join(struct kunit *test, const u32 *len, u32 linear)
{
	struct packets *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct sk_buff *first = NULL;
	struct sk_buff **end = &first;
	struct rnd_state rnd;
	u32 largest = 0;
	bool paged = false;
	u8 *at;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, p);
	arx_gso_proto = 253;
	memcpy(p->len, len, sizeof(p->len));
	prandom_seed_state(&rnd, 1);
	prandom_bytes_state(&rnd, p->data, SPAN);
	for (i = 0, at = p->data; i < PACKETS; at += len[i++]) {
		u8 *icrc = at + len[i] - ARX_ICRC_LEN;

		largest = max(largest, len[i]);
		arx_gso_write_len(icrc, len[i]);
		*end = make_packet(test, at, len[i], linear);
		paged |= skb_is_nonlinear(*end);
		end = &(*end)->next;
		memset(icrc, 0, ARX_ICRC_LEN);
	}
	arx_gso_join(first, PACKETS, largest);
	/*
	 * Pages that the stack must not write to may belong to the last packet
	 * only.
	 */
	KUNIT_EXPECT_EQ(test, skb_has_shared_frag(first), paged);
	p->skb = first;
	return p;
}

/* @skb must be packet @i, except for its ICRC. */
static void expect_packet(struct kunit *test, const struct packets *p, int i,
			  const struct sk_buff *skb)
{
	u8 *bytes = kunit_kzalloc(test, SPAN, GFP_KERNEL);
	u32 off = 0;
	int j;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	for (j = 0; j < i; j++)
		off += p->len[j];
	KUNIT_ASSERT_EQ(test, skb->len, p->len[i]);
	KUNIT_ASSERT_EQ(test, skb_copy_bits(skb, 0, bytes, skb->len), 0);
	KUNIT_EXPECT_MEMEQ(test, bytes, p->data + off,
			   skb->len - ARX_ICRC_LEN);
}

/* Each packet alone, in order, and no other; frees them. */
static void expect_packets(struct kunit *test, const struct packets *p,
			   struct sk_buff *first, struct sk_buff *rest)
{
	int i = 0;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, rest);
	expect_packet(test, p, i++, first);
	KUNIT_EXPECT_FALSE(test, skb_is_gso(first));
	for (; rest && i < PACKETS; i++) {
		struct sk_buff *one = rest;

		rest = one->next;
		skb_mark_not_on_list(one);
		expect_packet(test, p, i, one);
		kfree_skb(one);
	}
	KUNIT_EXPECT_EQ(test, i, PACKETS);
	KUNIT_EXPECT_NULL(test, rest);
	kfree_skb(first);
}

static void gso__split(struct kunit *test)
{
	struct packets *p = join(test, test->param_value, 100);

	expect_packets(test, p, p->skb, arx_gso_split(p->skb, true));
}

/* A clone that a tap holds stays whole. */
static void gso__split_of_a_clone(struct kunit *test)
{
	struct packets *p = join(test, test->param_value, 100);
	struct sk_buff *clone = skb_clone(p->skb, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, clone);
	expect_packets(test, p, clone, arx_gso_split(clone, true));
	expect_packets(test, p, p->skb, arx_gso_split(p->skb, true));
}

static void gso__split_of_linear(struct kunit *test)
{
	struct packets *p = join(test, test->param_value, 100);

	KUNIT_ASSERT_EQ(test, skb_linearize(p->skb), 0);
	KUNIT_ASSERT_FALSE(test, skb_has_frag_list(p->skb));
	expect_packets(test, p, p->skb, arx_gso_split(p->skb, true));
}

/*
 * A firewall had the stack move bytes to the first packet: up to the middle of
 * the second one, all of that, or more. Afterwards the packets are the same.
 */
static void gso__split_of_pulled(struct kunit *test)
{
	static const int more[] = { 1, 8, 12, 15 };
	const u32 *len = test->param_value;
	struct packets *p;
	int i;

	for (i = 0; i < ARRAY_SIZE(more); i++) {
		p = join(test, len, 4096);
		KUNIT_ASSERT_TRUE(test, pskb_may_pull(p->skb,
						      len[0] + more[i]));
		KUNIT_ASSERT_TRUE(test, skb_has_frag_list(p->skb));
		expect_packets(test, p, p->skb, arx_gso_split(p->skb, true));

		p = join(test, len, 4096);
		KUNIT_ASSERT_TRUE(test, pskb_may_pull(p->skb, len[0] + len[1] +
							      i * more[i]));
		KUNIT_ASSERT_TRUE(test, skb_has_frag_list(p->skb));
		expect_packets(test, p, p->skb, arx_gso_split(p->skb, true));
	}
}

/*
 * Bytes of the second packet look like the trailer of a first packet that has
 * become longer by them: the trailer of what is left of the second one does not
 * fit.
 */
static void gso__split_of_forged(struct kunit *test)
{
	static const u32 len[] = { 40, 40, 40, 40, 40, 40 };
	struct packets *p = join(test, len, 4096);
	u8 forged[ARX_ICRC_LEN];

	arx_gso_write_len(forged, len[0] + 8);
	memcpy(p->data + len[0] + 4, forged, sizeof(forged));
	skb_store_bits(p->skb, len[0] + 4, forged, sizeof(forged));
	KUNIT_ASSERT_TRUE(test, pskb_may_pull(p->skb, len[0] + 8));
	expect_packets(test, p, p->skb, arx_gso_split(p->skb, true));
}

/*
 * From GRO: real ICRCs, and lengths by the rule. The stack has moved the first
 * @pulled bytes to the first packet.
 */
static void split_of_checked(struct kunit *test, u8 opcode, const u32 *len,
			     u32 pulled)
{
	struct packets *p = join(test, len, 4096);
	u8 icrc[] = { 0xff, 0xff, 0xff, 0xff };
	int end = 0;
	int i;

	KUNIT_ASSERT_TRUE(test, pskb_may_pull(p->skb, pulled));
	p->data[0] = opcode;
	p->skb->data[0] = opcode;
	for (i = 0; i < PACKETS; i++) {
		end += len[i];
		skb_store_bits(p->skb, end - ARX_ICRC_LEN, icrc, sizeof(icrc));
	}
	skb_shinfo(p->skb)->gso_size = len[1];
	skb_shinfo(p->skb)->gso_type = ARX_GSO_TYPE;
	expect_packets(test, p, p->skb, arx_gso_split(p->skb, true));
}

static void gso__split_of_checked(struct kunit *test)
{
	static const u32 message[] = { 1056, 1040, 1040, 1040, 1040, 20 };
	static const u32 rest_of_one[] = { 1040, 1040, 1040, 1040, 1040, 20 };
	static const u32 whole[] = { 40, 40, 40, 40, 40, 40 };
	static const u32 more[] = { 0, 20, 40, 60, 200 };
	int i;

	for (i = 0; i < ARRAY_SIZE(more); i++) {
		/* WRITE first, middle, only */
		split_of_checked(test, 0x06, message, 1056 + more[i]);
		split_of_checked(test, 0x06, message, 1056 + 20 * more[i]);
		split_of_checked(test, 0x07, rest_of_one, 1040 + 20 * more[i]);
		split_of_checked(test, 0x0a, whole, 40 + more[i]);
	}
}

/*
 * A train as a card delivers it, in pages of its own: packets behind the linear
 * part refer to the pages, unless they are to be copied.
 */
static void split_of_train(struct kunit *test, u32 linear, bool copy)
{
	static const u32 len[] = { 1056, 1040, 1040, 1040, 1040, 20 };
	struct packets *p = join(test, len, 4096);
	struct sk_buff *rest, *skb;
	u32 total = 0;
	int i;

	kfree_skb(p->skb);
	p->data[0] = 0x06;	/* WRITE first */
	for (i = 0; i < PACKETS; i++)
		total += len[i];
	skb = make_packet(test, p->data, total, linear);
	skb_shinfo(skb)->gso_size = len[1];
	skb_shinfo(skb)->gso_segs = PACKETS;
	skb_shinfo(skb)->gso_type = ARX_GSO_TYPE;
	skb->pfmemalloc = true;
	rest = arx_gso_split(skb, copy);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, rest);
	/* Memory from the reserves shows in the packets that refer to it. */
	KUNIT_EXPECT_EQ(test, skb_pfmemalloc(rest->next),
			skb_is_nonlinear(rest->next));
	KUNIT_EXPECT_EQ(test, skb_is_nonlinear(rest->next),
			!copy && linear <= len[0] + len[1]);
	expect_packets(test, p, skb, rest);
}

static void gso__split_of_train(struct kunit *test)
{
	static const u32 linear[] = { ARX_BTH_LEN, 1056, 1500, 2096, 3000 };
	int i;

	for (i = 0; i < ARRAY_SIZE(linear); i++) {
		split_of_train(test, linear[i], false);
		split_of_train(test, linear[i], true);
	}
}

/* Impossible lengths are no packets, whoever wrote them. */
static void gso__lengths_that_cannot_be(struct kunit *test)
{
	static const u32 wrong[] = { 0, 15, 1u << 31, ~0u, SPAN };
	int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct packets *p = join(test, shapes[0], 4096);
		struct sk_buff *skb = p->skb;

		KUNIT_ASSERT_EQ(test, skb_linearize(skb), 0);
		arx_gso_write_len(skb->data + p->len[0] + p->len[1] +
				  p->len[2] - ARX_ICRC_LEN, wrong[i]);
		KUNIT_EXPECT_TRUE(test, IS_ERR(arx_gso_split(skb, true)));
		kfree_skb(skb);
	}
}

/* Outer headers like those of tx.c and the stack; then from the BTH on. */
static void dress(struct sk_buff *skb, bool ipv4, u16 id)
{
	struct udphdr *udp = skb_push(skb, sizeof(*udp));

	skb_reset_transport_header(skb);
	memset(udp, 0, sizeof(*udp));
	udp->dest = htons(ARX_UDP_PORT);
	if (ipv4) {
		struct iphdr *ip = skb_push(skb, sizeof(*ip));

		memset(ip, 0, sizeof(*ip));
		ip->version = 4;
		ip->ihl = 5;
		ip->id = htons(id);
		ip->saddr = htonl(0xc0000201);
		skb->protocol = htons(ETH_P_IP);
	} else {
		struct ipv6hdr *ip6 = skb_push(skb, sizeof(*ip6));

		memset(ip6, 0, sizeof(*ip6));
		ip6->version = 6;
		ip6->nexthdr = IPPROTO_UDP;
		skb->protocol = htons(ETH_P_IPV6);
	}
	skb_reset_network_header(skb);
	arx_gso_mark(skb);
	memset(skb_push(skb, ETH_HLEN), 0x11, ETH_HLEN);
	/* From here on the test plays the stack. */
	SKB_GSO_CB(skb)->mac_offset = skb_headroom(skb);
	skb_pull(skb, skb_inner_mac_header(skb) - skb->data);
	skb_reset_mac_header(skb);
}

/*
 * The outer headers are this packet's, the ICRC is right, and the flag keeps
 * others from writing to its pages.
 */
static void expect_finished(struct kunit *test, struct sk_buff *skb,
			    bool ipv4, u16 id)
{
	const struct udphdr *udp = (void *)skb->data - sizeof(*udp);
	const struct iphdr *ip = (void *)udp - sizeof(*ip);
	__le32 icrc;

	KUNIT_EXPECT_EQ(test, ntohs(udp->len), sizeof(*udp) + skb->len);
	KUNIT_EXPECT_EQ(test, ntohs(udp->dest), ARX_UDP_PORT);
	if (ipv4) {
		KUNIT_EXPECT_EQ(test, ntohs(ip->id), id);
		KUNIT_EXPECT_EQ(test, ntohs(ip->tot_len),
				sizeof(*ip) + sizeof(*udp) + skb->len);
	}
	KUNIT_ASSERT_EQ(test, 0, skb_copy_bits(skb, skb->len - ARX_ICRC_LEN,
					       &icrc, sizeof(icrc)));
	KUNIT_EXPECT_EQ(test, (__force u32)icrc, (__force u32)arx_icrc(skb));
	KUNIT_EXPECT_EQ(test, skb_has_shared_frag(skb), skb_is_nonlinear(skb));
}

/* Forms in which the stack may hand packets to arx_gso_segment(). */
#define IPV4		BIT(0)
#define COPIED		BIT(1)
#define CLONED		BIT(2)
#define GATHERED	BIT(3)
#define WAYS		BIT(4)

/* Split @skb, which is consumed; @clone receives a clone, if there is one. */
static struct sk_buff *segment_as(struct kunit *test, struct sk_buff *skb,
				  u32 how, u16 id, struct sk_buff **clone)
{
	bool ipv4 = how & IPV4;
	u32 size = skb_shinfo(skb)->gso_size;
	bool super = arx_is_super(skb_pagelen(skb), size);
	struct sk_buff *segs;

	dress(skb, ipv4, id);
	if (how & COPIED)
		KUNIT_ASSERT_EQ(test, skb_linearize(skb), 0);
	*clone = how & CLONED ? skb_clone(skb, GFP_KERNEL) : NULL;
	KUNIT_ASSERT_EQ(test, !*clone, !(how & CLONED));
	computed = 0;
	skb->ip_summed = CHECKSUM_NONE;	/* as UDP leaves it */
	segs = arx_gso_segment(skb, how & GATHERED ? NETIF_F_SG : 0,
			       ipv4 ? sizeof(struct iphdr) :
				      sizeof(struct ipv6hdr));
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, segs);
	/*
	 * Otherwise __skb_gso_segment() warns, because the packet that it
	 * passed is gone.
	 */
	KUNIT_EXPECT_EQ(test, segs != skb, super);
	if (super)
		KUNIT_EXPECT_TRUE(test, skb->ip_summed == CHECKSUM_UNNECESSARY);
	consume_skb(skb); /* as the stack frees the packet that it passed */
	return segs;
}

static void segment(struct kunit *test, const u32 *len, u32 how)
{
	struct packets *p = join(test, len, 100);
	u16 id = 0xfffe;	/* wraps, like the PSN */
	struct sk_buff *segs, *seg, *clone;

	segs = segment_as(test, p->skb, how, id, &clone);
	KUNIT_EXPECT_EQ(test, computed, PACKETS);
	for (seg = segs; seg; seg = seg->next)
		expect_finished(test, seg, how & IPV4, id++);

	seg = segs->next;
	skb_mark_not_on_list(segs);
	expect_packets(test, p, segs, seg);
	if (clone)	/* none of its bytes has changed */
		expect_packets(test, p, clone, arx_gso_split(clone, true));
}

static void gso__segment(struct kunit *test)
{
	u32 how;

	for (how = 0; how < WAYS; how++)
		segment(test, test->param_value, how);
}

/*
 * Packets that GRO joined had ICRCs, which were counted when they were
 * computed.
 */
static void gso__segment_of_checked(struct kunit *test)
{
	struct packets *p = join(test, shapes[1], 100);
	struct sk_buff *segs;

	dress(p->skb, true, 0);
	skb_shinfo(p->skb)->gso_type = ARX_GSO_TYPE;
	computed = 0;
	segs = arx_gso_segment(p->skb, NETIF_F_SG, sizeof(struct iphdr));
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, segs);
	KUNIT_EXPECT_EQ(test, computed, 0);
	consume_skb(p->skb);
	kfree_skb_list(segs);
}

/**
 * struct super - a run that is a super-packet
 * @h: its headers; the PSN wraps in it
 * @len: bytes of payload
 * @mtu: path MTU
 */
struct super {
	struct arx_headers h;
	u32 len;
	u32 mtu;
};

#define FOLDED_PSN	0xfffffe

static const struct super super[] = {
	{ { .op = ARX_OP_WRITE, .va = 0x1122334455667788, .rkey = 0x99aabbcc,
	    .dma_len = 5123, .ex = 0xdeadbeef, .pad = 1,
	    .flags = ARX_FIRST | ARX_LAST | ARX_IMM | ARX_SOLICITED |
		     ARX_ACK_REQ },
	  5123, 1024 },
	{ { .op = ARX_OP_SEND, .flags = ARX_FIRST, .service = ARX_SERVICE_UC },
	  8192, 4096 },
	{ { .op = ARX_OP_SEND, .flags = ARX_LAST | ARX_INV, .ex = 0x12345678 },
	  512, 256 },
	{ { .op = ARX_OP_WRITE, }, 6144, 2048 },
	{ { .op = ARX_OP_READ_RESPONSE, .flags = ARX_FIRST | ARX_LAST,
	    .syndrome = 0x1f, .msn = 0xfedcba, .pad = 2 }, 8190, 512 },
	{ { .op = ARX_OP_READ_RESPONSE, }, 7680, 256 },
	{ { .op = ARX_OP_READ_RESPONSE, .flags = ARX_FIRST | ARX_LAST,
	    .pad = 2 }, 8190, 4096 },
};

static void super_name(const struct super *f, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "op %u, flags %02x, %u of %u",
		 f->h.op, f->h.flags, f->len, f->mtu);
}

KUNIT_ARRAY_PARAM(super, super, super_name);

static struct sk_buff *make_super(struct kunit *test, const struct super *f,
				  u32 psn, const u8 *payload, u32 linear)
{
	struct arx_headers h = f->h;
	u8 *bytes = kunit_kzalloc(test, 2 * SPAN, GFP_KERNEL);
	u32 n;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	h.psn = psn;
	h.pkey = ARX_PKEY;
	n = arx_headers_write(&h, bytes);
	memcpy(bytes + n, payload, f->len);
	n += f->len + h.pad + ARX_ICRC_LEN;
	arx_gso_write_len(bytes + n - ARX_ICRC_LEN, n);
	return make_packet(test, bytes, n, linear);
}

/* @skb must be packet @i of @n of the run, except for its ICRC. */
static void expect_part(struct kunit *test, const struct super *f, u32 i,
			u32 n, u32 psn, const u8 *payload,
			const struct sk_buff *skb)
{
	u8 *bytes = kunit_kzalloc(test, SPAN, GFP_KERNEL);
	u32 len = i + 1 < n ? f->mtu : f->len - i * f->mtu;
	u8 flags = f->h.flags & (i ? ~ARX_FIRST : ~0) &
		   (i + 1 < n ? ARX_FIRST : ~0);
	struct arx_headers h;
	int headers;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	KUNIT_ASSERT_EQ(test, 0, skb_copy_bits(skb, 0, bytes, skb->len));
	headers = arx_headers_read(&h, bytes, skb->len);
	KUNIT_ASSERT_GT(test, headers, 0);
	KUNIT_ASSERT_EQ(test, skb->len, headers + len + h.pad + ARX_ICRC_LEN);
	KUNIT_EXPECT_MEMEQ(test, bytes + headers, payload + i * f->mtu, len);
	KUNIT_EXPECT_EQ(test, h.op, f->h.op);
	KUNIT_EXPECT_EQ(test, h.service, f->h.service);
	KUNIT_EXPECT_EQ(test, h.flags, flags);
	KUNIT_EXPECT_EQ(test, h.psn, arx_psn_add(psn, i));
	KUNIT_EXPECT_EQ(test, h.pad, i + 1 < n ? 0 : f->h.pad);
	if (flags & ARX_FIRST && f->h.op == ARX_OP_WRITE)
		KUNIT_EXPECT_EQ(test, h.va, f->h.va);
	if (flags & (ARX_IMM | ARX_INV))
		KUNIT_EXPECT_EQ(test, h.ex, f->h.ex);
	if (flags & (ARX_FIRST | ARX_LAST))
		KUNIT_EXPECT_EQ(test, h.msn, f->h.msn);
}

/* Two runs and a short packet between them, which leave for a wire. */
static void segment_super(struct kunit *test, const struct super *f, u32 linear,
			  u32 how)
{
	static const u8 between[ARX_BTH_LEN + 8 + ARX_ICRC_LEN] = {
		0x04, 0x40, 0xff, 0xff, [ARX_BTH_LEN + 8] = 24,
	};
	u32 n = DIV_ROUND_UP(f->len, f->mtu);
	u8 *payload = kunit_kzalloc(test, SPAN, GFP_KERNEL);
	struct sk_buff *skb, *segs, *clone;
	struct rnd_state rnd;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, payload);
	prandom_seed_state(&rnd, 1);
	prandom_bytes_state(&rnd, payload, SPAN);
	arx_gso_proto = 253;
	KUNIT_ASSERT_TRUE(test, arx_super_fits(f->len, f->mtu));
	skb = make_super(test, f, FOLDED_PSN, payload, linear);
	skb->next = make_packet(test, between, sizeof(between), ~0);
	skb->next->next = make_super(test, f, 7, payload, linear);
	arx_gso_join(skb, 2 * n + 1, arx_super_largest(&f->h, f->mtu));

	segs = segment_as(test, skb, how, 0xfffe, &clone);
	KUNIT_EXPECT_EQ(test, computed, 2 * n + 1);
	for (i = 0, skb = segs; skb; i++, skb = skb->next) {
		expect_finished(test, skb, how & IPV4, 0xfffe + i);
		KUNIT_EXPECT_LE(test, skb->len,
				arx_super_largest(&f->h, f->mtu));
		if (!skb->next)
			KUNIT_EXPECT_PTR_EQ(test, segs->prev, skb);
		if (i < n)
			expect_part(test, f, i, n, FOLDED_PSN, payload, skb);
		else if (i > n)
			expect_part(test, f, i - n - 1, n, 7, payload, skb);
		else
			KUNIT_EXPECT_EQ(test, skb->len, sizeof(between));
	}
	KUNIT_EXPECT_EQ(test, i, 2 * n + 1);
	kfree_skb_list(segs);
	if (!clone)
		return;

	/* A clone that a tap holds is unchanged. */
	segs = arx_gso_split(clone, true);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, segs);
	KUNIT_EXPECT_EQ(test, clone->len, arx_headers_len(&f->h) + f->len +
					  f->h.pad + ARX_ICRC_LEN);
	kfree_skb_list(segs);
	kfree_skb(clone);
}

static void gso__segment_super(struct kunit *test)
{
	const struct super *f = test->param_value;
	u32 how;

	/* Only headers linear, as they are made; or a packet and a bit. */
	for (how = 0; how < WAYS; how++) {
		segment_super(test, f, arx_headers_len(&f->h), how);
		segment_super(test, f, f->mtu + 100, how);
	}
}

/*
 * First bytes of BTHs that no super-packet has. A firewall may have written
 * them: none for RC and XRC, operations of one packet, XRC requests, UD, CNP,
 * and a service that does not exist.
 */
static const u8 foreign[] = {
	0x15, 0x18, 0x1b, 0x1e, 0x1f, 0xb5, 0xbf,
	0x0c, 0x11, 0x12, 0x13, 0x14, 0x1c, 0x1d, 0xac,
	0xa0, 0xa1, 0xa4, 0xa6, 0xa7, 0xaa,
	0x64, 0x65, 0x81, 0xe0,
};

static void gso__segment_foreign(struct kunit *test)
{
	static const struct super f = {
		{ .op = ARX_OP_WRITE, }, 6144, 2048
	};
	u8 *payload = kunit_kzalloc(test, SPAN, GFP_KERNEL);
	struct sk_buff *skb, *segs;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, payload);
	arx_gso_proto = 253;
	for (i = 0; i < ARRAY_SIZE(foreign); i++) {
		skb = make_super(test, &f, FOLDED_PSN, payload, f.mtu);
		arx_gso_join(skb, f.len / f.mtu,
			     arx_super_largest(&f.h, f.mtu));
		skb->data[0] = foreign[i];
		dress(skb, true, 0);
		segs = arx_gso_segment(skb, NETIF_F_SG, sizeof(struct iphdr));
		KUNIT_EXPECT_TRUE_MSG(test, IS_ERR(segs), "opcode %#x",
				      foreign[i]);
		if (!IS_ERR(segs))
			kfree_skb_list(segs);
		consume_skb(skb); /* as the stack frees it */
	}
}

/* No limit of the netdev matters. */
static const struct arx_uso_limits any = { SZ_64K, 64 };

/*
 * Lengths that are posted together, packets in each train of them, and limits
 * of the netdev, if any, without headers.
 */
static const struct {
	u32 len[PACKETS];
	u32 trains[PACKETS];
	struct arx_uso_limits most;
} lengths[] = {
	{ { 36, 1052, 16, 44, 2000, 20 }, { 1, 2, 1, 2 } },
	{ { 40, 40, 40, 40, 40, 40 }, { 6 } },
	{ { 1056, 1040, 1040, 1040, 1040, 20 }, { 1, 5 } },
	{ { 1056, 1040, 1040, 1040, 1040, 1044 }, { 1, 4, 1 } },
	{ { 1056, 1040, 1056, 1040, 1056, 1040 }, { 2, 2, 2 } },
	{ { 16, 16, 16, 16, 16, 4096 }, { 5, 1 } },
	{ { 40, 40, 40, 40, 40, 20 }, { 3, 3 }, { 139, 64 } },
	{ { 40, 40, 40, 40, 40, 20 }, { 4, 2 }, { 179, 64 } },
	{ { 40, 40, 40, 40, 40, 20 }, { 4, 2 }, { SZ_32K, 4 } },
	/* no trains */
	{ { 40, 40, 40, 40, 40, 40 }, { }, { 79, 64 } },
	{ { 40, 40, 40, 40, 40, 40 }, { }, { SZ_32K, 1 } },
};

static void uso__lengths(struct kunit *test)
{
	int i, j;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct packets *p = join(test, lengths[i].len, 100);
		struct arx_uso_limits most = lengths[i].most;
		struct sk_buff *rest = arx_gso_split(p->skb, true);
		struct sk_buff *trains, *skb;
		u32 largest = 0;

		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, rest);
		p->skb->next = rest;
		for (j = 0; j < PACKETS; j++)
			largest = max(largest, lengths[i].len[j]);
		if (most.packets)
			most.bytes += skb_headroom(p->skb);
		else
			most = any;
		trains = arx_uso_make(p->skb, largest, &most);
		if (!lengths[i].trains[0]) {
			KUNIT_EXPECT_NULL(test, trains);
			kfree_skb_list(p->skb);
			continue;
		}
		KUNIT_ASSERT_NOT_NULL(test, trains);
		for (j = 0, skb = trains; skb; j++, skb = skb->next)
			KUNIT_EXPECT_EQ(test, arx_uso_packets(skb),
					lengths[i].trains[j]);
		if (j < PACKETS)
			KUNIT_EXPECT_EQ(test, lengths[i].trains[j], 0);
		kfree_skb_list(trains);
	}
}

/* The headers of a train, as tx.c writes them; then the kernel splits it. */
static struct sk_buff *split_train(struct kunit *test, struct sk_buff *skb,
				   bool ipv4, u16 id)
{
	int len = skb->len + sizeof(struct udphdr);
	struct sk_buff *segs;

	dress(skb, ipv4, id);
	skb->encapsulation = 0;
	skb_push(skb, -skb_network_offset(skb));
	udp_hdr(skb)->len = htons(len);
	if (ipv4) {
		ip_hdr(skb)->protocol = IPPROTO_UDP;
		ip_hdr(skb)->tot_len = htons(sizeof(struct iphdr) + len);
	} else {
		ipv6_hdr(skb)->payload_len = htons(len);
	}
	arx_uso_finish(skb);
	skb_push(skb, ETH_HLEN);
	skb_reset_mac_header(skb);
	eth_hdr(skb)->h_proto = skb->protocol;
	if (!skb_is_gso(skb))
		return skb;
	segs = __skb_gso_segment(skb, NETIF_F_SG | NETIF_F_HW_CSUM, true);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, segs);
	consume_skb(skb);
	return segs;
}

/* A packet as the wire has it; then from its BTH on. */
static void expect_whole(struct kunit *test, struct sk_buff *skb, bool ipv4,
			 u16 id)
{
	int ip_len = ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);

	KUNIT_ASSERT_FALSE(test, skb_is_gso(skb));
	KUNIT_EXPECT_TRUE(test, skb->ip_summed == CHECKSUM_PARTIAL);
	skb_pull(skb, ETH_HLEN + ip_len + sizeof(struct udphdr));
	skb_set_transport_header(skb, -(int)sizeof(struct udphdr));
	skb_set_network_header(skb, -(int)sizeof(struct udphdr) - ip_len);
	expect_finished(test, skb, ipv4, id);
}

static void split_super(struct kunit *test, const struct super *f, bool ipv4)
{
	u32 n = DIV_ROUND_UP(f->len, f->mtu);
	u8 *payload = kunit_kzalloc(test, SPAN, GFP_KERNEL);
	struct sk_buff *skb, *next, *seg;
	struct rnd_state rnd;
	u16 id = 0xfffe;
	u32 i = 0;

	KUNIT_ASSERT_NOT_NULL(test, payload);
	prandom_seed_state(&rnd, 1);
	prandom_bytes_state(&rnd, payload, SPAN);
	skb = make_super(test, f, FOLDED_PSN, payload,
			 arx_headers_len(&f->h));
	skb->next = make_super(test, f, 7, payload, f->mtu + 100);
	skb = arx_uso_make(skb, arx_super_largest(&f->h, f->mtu), &any);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	for (; skb; skb = next) {
		next = skb->next;
		skb_mark_not_on_list(skb);
		skb = split_train(test, skb, ipv4, id + i);
		for (seg = skb; seg; seg = seg->next, i++) {
			expect_whole(test, seg, ipv4, id + i);
			expect_part(test, f, i % n, n,
				    i < n ? FOLDED_PSN : 7, payload, seg);
		}
		kfree_skb_list(skb);
	}
	KUNIT_EXPECT_EQ(test, i, 2 * n);
}

static void uso__split(struct kunit *test)
{
	split_super(test, test->param_value, true);
	split_super(test, test->param_value, false);
}

/* A netdev that splits UDP packets, with other offloads. */
static const struct {
	const char *name;
	netdev_features_t more;
	u32 flags;
	bool usable;
} cards[] = {
	{ "none", 0, 0, true },
	{ "tunnels, too", NETIF_F_GSO_UDP_TUNNEL | NETIF_F_GSO_IPXIP4, 0, true },
	{ "joined packets", NETIF_F_GSO_FRAGLIST, 0, false },
	{ "VLAN", NETIF_F_GSO_FRAGLIST, IFF_802_1Q_VLAN, true },
};

static void uso__cards(struct kunit *test)
{
	struct net_device *netdev = kunit_kzalloc(test, sizeof(*netdev),
						  GFP_KERNEL);
	struct device *parent = kunit_kzalloc(test, sizeof(*parent),
					      GFP_KERNEL);
	struct arx_uso_limits most;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, netdev);
	KUNIT_ASSERT_NOT_NULL(test, parent);
	INIT_LIST_HEAD(&netdev->adj_list.lower);
	netdev->dev.parent = parent;
	netdev->gso_max_size = 3000;
	netdev->gso_ipv4_max_size = 4000;
	netdev->gso_max_segs = 5;
	for (i = 0; i < ARRAY_SIZE(cards); i++) {
		netdev->features = NETIF_F_GSO_UDP_L4 | NETIF_F_HW_CSUM |
				   cards[i].more;
		netdev->priv_flags = cards[i].flags;
		rcu_read_lock();
		KUNIT_EXPECT_EQ_MSG(test, arx_uso_usable(netdev, false, &most),
				    cards[i].usable, "%s", cards[i].name);
		if (cards[i].usable) {
			KUNIT_EXPECT_EQ(test, most.bytes, 3000);
			KUNIT_EXPECT_EQ(test, most.packets, 5);
		}
		KUNIT_EXPECT_EQ_MSG(test, arx_uso_usable(netdev, true, &most),
				    cards[i].usable, "%s", cards[i].name);
		if (cards[i].usable)
			KUNIT_EXPECT_EQ(test, most.bytes, 4000);
		rcu_read_unlock();
	}
}

/* A super-packet is longer than any packet, and shows its path MTU. */
static void gso__super_stands_out(struct kunit *test)
{
	struct arx_headers h = {
		.op = ARX_OP_WRITE,
		.flags = ARX_FIRST | ARX_LAST | ARX_IMM,
	};
	u32 mtu, len;

	for (mtu = 256; mtu <= 4096; mtu *= 2) {
		u32 most = arx_headers_len(&h) + mtu + ARX_ICRC_LEN;

		KUNIT_EXPECT_FALSE(test, arx_is_super(most, most));
		KUNIT_EXPECT_EQ(test, arx_super_mtu(most), mtu);
		KUNIT_EXPECT_FALSE(test, arx_super_fits(mtu, mtu));
		for (len = mtu; !arx_super_fits(len, mtu); len++)
			;
		KUNIT_EXPECT_LT(test, len, 2 * mtu);
		KUNIT_EXPECT_TRUE(test, arx_is_super(ARX_BTH_LEN + len +
							  ARX_ICRC_LEN, most));
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(gso__split, shape_gen_params),
	KUNIT_CASE_PARAM(gso__split_of_a_clone, shape_gen_params),
	KUNIT_CASE_PARAM(gso__split_of_linear, shape_gen_params),
	KUNIT_CASE_PARAM(gso__split_of_pulled, shape_gen_params),
	KUNIT_CASE(gso__split_of_forged),
	KUNIT_CASE(gso__split_of_checked),
	KUNIT_CASE(gso__split_of_train),
	KUNIT_CASE(gso__lengths_that_cannot_be),
	KUNIT_CASE_PARAM(gso__segment, shape_gen_params),
	KUNIT_CASE(gso__segment_of_checked),
	KUNIT_CASE_PARAM(gso__segment_super, super_gen_params),
	KUNIT_CASE(gso__segment_foreign),
	KUNIT_CASE(gso__super_stands_out),
	KUNIT_CASE(uso__lengths),
	KUNIT_CASE_PARAM(uso__split, super_gen_params),
	KUNIT_CASE(uso__cards),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_gso",
	.test_cases = cases,
};

kunit_test_suite(suite);
