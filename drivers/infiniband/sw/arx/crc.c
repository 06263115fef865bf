// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ethernet's CRC32, fast enough for senders.
 *
 * The kernel's crc32_le() is fast if it uses the CPU's carry-less
 * multiplication. Otherwise it is a slower table walk (before 6.14, and on
 * virtual CPUs without that instruction). Sam Russell, "Chorba: A novel CRC32
 * implementation" (2024) describes a method without tables or special
 * instructions. The generator divides a polynomial of few terms,
 *
 * x^300 + x^155 + x^117 + x^89 + 1,
 *
 * so the CRC stays the same if a bit of the message is removed and added to the
 * bits 145, 183, 211 and 300 places later. Applied to each word in turn, this
 * moves the whole message into its last 40 bytes. The generator also divides a
 * shorter polynomial of more terms,
 *
 * x^120 + x^56 + x^40 + x^33 + x^15 + x^9 + x^8 + x + 1,
 *
 * which moves the 40 bytes into the last 16. Only these 16 bytes need a table.
 */

#include <linux/crc32.h>
#include <linux/jump_label.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/unaligned.h>

#include "crc.h"

#define ARX_CRC_WORD		sizeof(u64)

/* Words that remain after the first polynomial, and after the second one. */
#define ARX_CRC_TAIL		(5 * ARX_CRC_WORD)
#define ARX_CRC_REST		(2 * ARX_CRC_WORD)

static DEFINE_STATIC_KEY_FALSE(arx_crc_is_sparse);

/*
 * Remove the word at @p, to which @now is to be added. Its bits go to the terms
 * of the words two to five places later; the last of these takes the place of
 * @now.
 */
static __always_inline void arx_crc_step(const u8 *p, u64 *now, u64 *in2,
					 u64 *in3, u64 *in4)
{
	u64 word = *now ^ get_unaligned_le64(p);

	*in2 ^= word << 17 ^ word << 55;
	*in3 ^= word >> 47 ^ word >> 9 ^ word << 19;
	*in4 ^= word >> 45 ^ word << 44;
	*now = word >> 20;
}

/* Remove @word by the second polynomial; its bits go to the next two words. */
static __always_inline void arx_crc_short_step(u64 word, u64 *in1, u64 *in2)
{
	*in1 ^= word ^ word << 16 ^ word << 23 ^ word << 41 ^ word << 47 ^
		word << 48 ^ word << 55 ^ word << 56;
	*in2 ^= word >> 48 ^ word >> 41 ^ word >> 23 ^ word >> 17 ^
		word >> 16 ^ word >> 9 ^ word >> 8;
}

/* CRC of the tail, whose words are @a to @e. */
static u32 arx_crc_tail(u64 a, u64 b, u64 c, u64 d, u64 e)
{
	__le64 rest[ARX_CRC_REST / ARX_CRC_WORD];

	arx_crc_short_step(a, &b, &c);
	arx_crc_short_step(b, &c, &d);
	arx_crc_short_step(c, &d, &e);
	rest[0] = cpu_to_le64(d);
	rest[1] = cpu_to_le64(e);
	return crc32_le(0, (u8 *)rest, sizeof(rest));
}

/**
 * arx_crc32_sparse - compute a CRC32 almost without tables
 * @crc: CRC of the bytes before
 * @p: bytes, any alignment
 * @len: number of bytes
 *
 * Return: the result of crc32_le().
 */
u32 arx_crc32_sparse(u32 crc, const void *p, size_t len)
{
	u64 a = crc, b = 0, c = 0, d = 0, e = 0;
	const u8 *at = p;

	if (len < ARX_CRC_TAIL)
		return crc32_le(crc, p, len);

	for (; len >= 2 * ARX_CRC_TAIL;
	     at += ARX_CRC_TAIL, len -= ARX_CRC_TAIL) {
		arx_crc_step(at, &a, &c, &d, &e);
		arx_crc_step(at + 8, &b, &d, &e, &a);
		arx_crc_step(at + 16, &c, &e, &a, &b);
		arx_crc_step(at + 24, &d, &a, &b, &c);
		arx_crc_step(at + 32, &e, &b, &c, &d);
	}
	for (; len >= ARX_CRC_TAIL + ARX_CRC_WORD;
	     at += ARX_CRC_WORD, len -= ARX_CRC_WORD) {
		u64 last;

		arx_crc_step(at, &a, &c, &d, &e);
		last = a;
		a = b;
		b = c;
		c = d;
		d = e;
		e = last;
	}

	crc = arx_crc_tail(a ^ get_unaligned_le64(at),
			   b ^ get_unaligned_le64(at + 8),
			   c ^ get_unaligned_le64(at + 16),
			   d ^ get_unaligned_le64(at + 24),
			   e ^ get_unaligned_le64(at + 32));
	return crc32_le(crc, at + ARX_CRC_TAIL, len - ARX_CRC_TAIL);
}

/**
 * arx_crc32 - compute a CRC32 by the fastest method on this machine
 * @crc: CRC of the bytes before
 * @p: bytes, any alignment
 * @len: number of bytes
 *
 * Return: the result of crc32_le().
 */
u32 arx_crc32(u32 crc, const void *p, size_t len)
{
	if (static_branch_likely(&arx_crc_is_sparse))
		return arx_crc32_sparse(crc, p, len);
	return crc32_le(crc, p, len);
}

/*
 * Nanoseconds that a method takes for a page: the least of several
 * measurements, because an interrupt may disturb some.
 */
static u64 arx_crc_time(u32 (*method)(u32 crc, const void *p, size_t len),
			const void *page)
{
	u64 best = U64_MAX;
	int i;

	for (i = 0; i < 8; i++) {
		u64 start = ktime_get_ns();

		method(~0, page, PAGE_SIZE);
		best = min(best, ktime_get_ns() - start);
	}
	return best;
}

static u32 arx_crc32_kernel(u32 crc, const void *p, size_t len)
{
	return crc32_le(crc, p, len);
}

/**
 * arx_crc_init - choose the faster method
 *
 * If no page can be allocated, arx_crc32() uses the kernel's method.
 *
 * Context: may sleep; at module load.
 */
void arx_crc_init(void)
{
	void *page = (void *)get_zeroed_page(GFP_KERNEL);

	if (!page)
		return;
	if (arx_crc_time(arx_crc32_sparse, page) <
	    arx_crc_time(arx_crc32_kernel, page))
		static_branch_enable(&arx_crc_is_sparse);
	free_page((unsigned long)page);
}
