// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* crc.c, compared with the kernel's crc32_le(). */

#include <kunit/test.h>
#include <linux/random.h>

#include "crc.c"

#define MAX_LEN		700
#define MAX_SHIFT	8

static void arx_crc32_sparse__is_crc32_le(struct kunit *test)
{
	u8 *buf = kunit_kmalloc(test, MAX_LEN + MAX_SHIFT, GFP_KERNEL);
	unsigned int len, shift;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	get_random_bytes(buf, MAX_LEN + MAX_SHIFT);
	for (len = 0; len <= MAX_LEN; len++) {
		for (shift = 0; shift < MAX_SHIFT; shift++) {
			u32 seed = get_random_u32();

			KUNIT_ASSERT_EQ_MSG(test,
					    arx_crc32_sparse(seed, buf + shift,
							     len),
					    crc32_le(seed, buf + shift, len),
					    "len %u, shift %u", len, shift);
		}
	}
}

static void arx_crc32__goes_on_where_it_ended(struct kunit *test)
{
	u8 *buf = kunit_kmalloc(test, MAX_LEN, GFP_KERNEL);
	unsigned int cut;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	get_random_bytes(buf, MAX_LEN);
	for (cut = 0; cut <= MAX_LEN; cut++) {
		u32 crc = arx_crc32_sparse(~0, buf, cut);

		crc = arx_crc32_sparse(crc, buf + cut, MAX_LEN - cut);
		KUNIT_ASSERT_EQ_MSG(test, crc, crc32_le(~0, buf, MAX_LEN),
				    "cut at %u", cut);
	}
}

static struct kunit_case arx_crc_cases[] = {
	KUNIT_CASE(arx_crc32_sparse__is_crc32_le),
	KUNIT_CASE(arx_crc32__goes_on_where_it_ended),
	{}
};

static struct kunit_suite arx_crc_suite = {
	.name = "arx_crc",
	.test_cases = arx_crc_cases,
};

kunit_test_suite(arx_crc_suite);
