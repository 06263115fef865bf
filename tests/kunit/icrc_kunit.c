// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* icrc.c. The packets come from vectors.py; scapy computed their ICRCs. */

#include <kunit/test.h>

#include "icrc.c"
#include "vectors.h"

struct vector {
	const char *name;
	const u8 *data;
	unsigned int len;
};

#define V(n) { #n, vector_##n, sizeof(vector_##n) }

static const struct vector vectors[] = {
	V(send_first), V(send_middle_fecn), V(send_last_imm_solicited),
	V(send_only_inv), V(send_only_empty), V(send_only_pad1_v6),
	V(send_only_pad2_v6), V(write_first), V(write_only_imm), V(read),
	V(read_response_first), V(read_response_middle),
	V(read_response_only_v6), V(ack), V(ack_v6), V(atomic_ack),
	V(compare_swap), V(fetch_add_v6), V(uc_send_last), V(ud_send_only),
	V(ud_send_only_imm_v6), V(cnp),
};

static void vector_name(const struct vector *v, char *name)
{
	strscpy(name, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vector, vectors, vector_name);

static void free_skb(void *skb)
{
	kfree_skb(skb);
}

/*
 * A packet whose first @linear bytes are linear, the others in pages of @step
 * bytes.
 */
static struct sk_buff *make_skb(struct kunit *test, const struct vector *v,
				unsigned int linear, unsigned int step)
{
	struct sk_buff *skb = alloc_skb(linear, GFP_KERNEL);
	unsigned int off;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, free_skb, skb),
			0);
	skb_put_data(skb, v->data, linear);
	for (off = linear; off < v->len; off += step) {
		struct page *page = alloc_page(GFP_KERNEL);
		unsigned int n = min(step, v->len - off);

		KUNIT_ASSERT_NOT_NULL(test, page);
		memcpy(page_address(page) + 100, v->data + off, n);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 100, n,
				PAGE_SIZE);
	}
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, ip_hdr(skb)->version == 4 ? 20 : 40);
	return skb;
}

static unsigned int headers_len(const struct vector *v)
{
	return (v->data[0] >> 4 == 4 ? 20 : 40) + 8 + ARX_BTH_LEN;
}

static void expect_right(struct kunit *test, const struct vector *v,
			 const struct sk_buff *skb)
{
	__le32 icrc = arx_icrc(skb);

	KUNIT_EXPECT_MEMEQ(test, &icrc, v->data + v->len - sizeof(icrc),
			   sizeof(icrc));
}

static void icrc__linear(struct kunit *test)
{
	const struct vector *v = test->param_value;

	expect_right(test, v, make_skb(test, v, v->len, 1));
}

static void icrc__fragments(struct kunit *test)
{
	const struct vector *v = test->param_value;
	unsigned int headers = headers_len(v);
	unsigned int step;

	/* Also with the trailer, or a part of it, in a fragment of its own. */
	expect_right(test, v, make_skb(test, v, headers, v->len - headers - 3));
	for (step = 16; step < 40; step++)
		expect_right(test, v, make_skb(test, v, headers, step));
}

/* The receiver has the packet from its BTH on. */
static void icrc__pulled(struct kunit *test)
{
	const struct vector *v = test->param_value;
	struct sk_buff *skb = make_skb(test, v, v->len, 1);

	skb_pull(skb, headers_len(v) - ARX_BTH_LEN);
	expect_right(test, v, skb);
}

/*
 * Fields that routers change have no part in the ICRC; all other fields have.
 */
static void icrc__variant(struct kunit *test)
{
	static const u8 v4[] = { 1, 8, 10, 11, 26, 27, 32 };
	static const u8 v6[] = { 1, 2, 3, 7, 46, 47, 52 };
	const struct vector *v = test->param_value;
	const u8 *variant = v->data[0] >> 4 == 4 ? v4 : v6;
	struct sk_buff *skb = make_skb(test, v, v->len, 1);
	__le32 right = arx_icrc(skb);
	unsigned int i;

	for (i = 1; i < v->len - sizeof(right); i++) {
		bool may_differ = !memchr(variant, i, sizeof(v4));
		bool differs;

		skb->data[i] ^= 0x81;
		differs = arx_icrc(skb) != right;
		skb->data[i] ^= 0x81;
		KUNIT_EXPECT_EQ_MSG(test, differs, may_differ, "byte %u", i);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(icrc__linear, vector_gen_params),
	KUNIT_CASE_PARAM(icrc__fragments, vector_gen_params),
	KUNIT_CASE_PARAM(icrc__pulled, vector_gen_params),
	KUNIT_CASE_PARAM(icrc__variant, vector_gen_params),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_icrc",
	.test_cases = cases,
};

kunit_test_suite(suite);
