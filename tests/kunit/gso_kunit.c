// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* gso.c: packets of all lengths together, and each of them again. */

#include <kunit/test.h>
#include <linux/if_ether.h>
#include <linux/prandom.h>

#include "gso.c"

#define PACKETS		6
#define OUTER		(ETH_HLEN + 40 + 8)	/* MAC, the longer IP, UDP */
#define SPAN		8192

static u32 computed;	/* ICRCs that were not there before */

/* tx.c */
void arx_tx_icrc_computed(const struct sk_buff *skb, u32 n)
{
	computed += n;
}

/**
 * struct packets - what is joined
 * @len: bytes from BTH to ICRC of each
 * @data: of all, each behind the other, without ICRCs
 * @skb: joined
 */
struct packets {
	u32 len[PACKETS];
	u8 data[SPAN];
	struct sk_buff *skb;
};

/* Lengths of what is posted together: all kinds, alike, as a long message's. */
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

/* A packet of our own, of which all but @linear bytes are in a page. */
static struct sk_buff *make_packet(struct kunit *test, const u8 *data, u32 len,
				   u32 linear)
{
	struct sk_buff *skb = alloc_skb(OUTER + len, GFP_KERNEL);
	struct page *page;
	u32 paged;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, OUTER);
	linear = min(linear, len);
	skb_put_data(skb, data, linear);
	paged = len - linear;
	if (paged) {
		page = alloc_pages(GFP_KERNEL | __GFP_COMP, 1);
		KUNIT_ASSERT_NOT_NULL(test, page);
		memcpy(page_address(page), data + linear, paged);
		skb_add_rx_frag(skb, 0, page, 0, paged, 2 * PAGE_SIZE);
	}
	return skb;
}

/* Joined as tx.c does it; packets are @linear bytes long, the rest is paged. */
static struct packets *join(struct kunit *test, const u32 *len, u32 linear)
{
	struct packets *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct sk_buff *first = NULL;
	struct sk_buff **end = &first;
	struct rnd_state rnd;
	u32 largest = 0;
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
		end = &(*end)->next;
		memset(icrc, 0, ARX_ICRC_LEN);
	}
	arx_gso_join(first, PACKETS, largest);
	p->skb = first;
	return p;
}

/* Is @skb packet @i, but for its ICRC? */
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

/* Each packet alone, in order, and nothing else; frees them. */
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

	expect_packets(test, p, p->skb, arx_gso_split(p->skb));
}

/* What a tap holds stays whole. */
static void gso__split_of_a_clone(struct kunit *test)
{
	struct packets *p = join(test, test->param_value, 100);
	struct sk_buff *clone = skb_clone(p->skb, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, clone);
	expect_packets(test, p, clone, arx_gso_split(clone));
	expect_packets(test, p, p->skb, arx_gso_split(p->skb));
}

static void gso__split_of_linear(struct kunit *test)
{
	struct packets *p = join(test, test->param_value, 100);

	KUNIT_ASSERT_EQ(test, skb_linearize(p->skb), 0);
	KUNIT_ASSERT_FALSE(test, skb_has_frag_list(p->skb));
	expect_packets(test, p, p->skb, arx_gso_split(p->skb));
}

/* From GRO: real ICRCs, and lengths by the rule. */
static void split_of_checked(struct kunit *test, u8 opcode, const u32 *len)
{
	struct packets *p = join(test, len, 4096);
	u8 icrc[] = { 0xff, 0xff, 0xff, 0xff };
	int end = 0;
	int i;

	KUNIT_ASSERT_EQ(test, skb_linearize(p->skb), 0);
	p->data[0] = opcode;
	p->skb->data[0] = opcode;
	for (i = 0; i < PACKETS; i++) {
		end += len[i];
		memcpy(p->skb->data + end - ARX_ICRC_LEN, icrc, sizeof(icrc));
	}
	skb_shinfo(p->skb)->gso_size = len[1];
	skb_shinfo(p->skb)->gso_type = ARX_GSO_TYPE;
	expect_packets(test, p, p->skb, arx_gso_split(p->skb));
}

static void gso__split_of_checked(struct kunit *test)
{
	static const u32 message[] = { 1056, 1040, 1040, 1040, 1040, 20 };
	static const u32 rest_of_one[] = { 1040, 1040, 1040, 1040, 1040, 20 };
	static const u32 whole[] = { 40, 40, 40, 40, 40, 40 };

	split_of_checked(test, 0x06, message);		/* WRITE first */
	split_of_checked(test, 0x07, rest_of_one);	/* WRITE middle */
	split_of_checked(test, 0x0a, whole);		/* WRITE only */
}

/* Lengths that cannot be are no packets, whoever wrote them. */
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
		KUNIT_EXPECT_TRUE(test, IS_ERR(arx_gso_split(skb)));
		kfree_skb(skb);
	}
}

/* Outer headers as tx.c and the stack make them; then from the BTH on. */
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
	/* From here on it is the stack. */
	SKB_GSO_CB(skb)->mac_offset = skb_headroom(skb);
	skb_pull(skb, skb_inner_mac_header(skb) - skb->data);
	skb_reset_mac_header(skb);
}

/* The outer headers are this packet's, and the ICRC is right. */
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
}

static void segment(struct kunit *test, const u32 *len, bool ipv4,
		    bool copied, bool cloned)
{
	struct packets *p = join(test, len, 100);
	struct sk_buff *skb = p->skb;
	struct sk_buff *clone = NULL;
	struct sk_buff *segs, *seg;
	u16 id = 0xfffe;	/* it wraps, as the PSN does */

	dress(skb, ipv4, id);
	if (copied)
		KUNIT_ASSERT_EQ(test, skb_linearize(skb), 0);
	if (cloned) {
		clone = skb_clone(skb, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, clone);
	}
	computed = 0;
	segs = arx_gso_segment(skb, NETIF_F_SG, ipv4 ? sizeof(struct iphdr) :
						       sizeof(struct ipv6hdr));
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, segs);
	KUNIT_EXPECT_EQ(test, computed, PACKETS);
	consume_skb(skb);	/* as the stack does with what it handed in */
	for (seg = segs; seg; seg = seg->next)
		expect_finished(test, seg, ipv4, id++);

	seg = segs->next;
	skb_mark_not_on_list(segs);
	expect_packets(test, p, segs, seg);
	if (clone)	/* not a byte of it has changed */
		expect_packets(test, p, clone, arx_gso_split(clone));
}

static void gso__segment(struct kunit *test)
{
	int i;

	for (i = 0; i < 8; i++)
		segment(test, test->param_value, i & 1, i & 2, i & 4);
}

/* What GRO has joined had its ICRCs, which were counted when they were made. */
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

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(gso__split, shape_gen_params),
	KUNIT_CASE_PARAM(gso__split_of_a_clone, shape_gen_params),
	KUNIT_CASE_PARAM(gso__split_of_linear, shape_gen_params),
	KUNIT_CASE(gso__split_of_checked),
	KUNIT_CASE(gso__lengths_that_cannot_be),
	KUNIT_CASE_PARAM(gso__segment, shape_gen_params),
	KUNIT_CASE(gso__segment_of_checked),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_gso",
	.test_cases = cases,
};

kunit_test_suite(suite);
