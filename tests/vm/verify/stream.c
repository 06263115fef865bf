// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Content of a message: a pseudo-random stream that differs for every key, flow
 * and message number. So a byte in the wrong place, of the wrong message or of
 * an earlier case is detected.
 */
#include <string.h>
#include "verify.h"

uint64_t mix64(uint64_t x)	/* splitmix64 */
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

void stream_start(struct stream *s, uint64_t key, uint64_t flow, uint64_t n)
{
	s->state = mix64(mix64(mix64(key) ^ flow) ^ n);
	s->left = 0;
}

/* One multiplication for eight bytes, because software CPUs run this, too. */
static uint64_t next(struct stream *s)
{
	s->state = s->state * 6364136223846793005 + 1442695040888963407;
	return s->state ^ (s->state >> 31);
}

static uint8_t next_byte(struct stream *s)
{
	uint8_t byte;

	if (!s->left) {
		s->word = next(s);
		s->left = 8;
	}
	byte = s->word;
	s->word >>= 8;
	s->left--;
	return byte;
}

void stream_fill(struct stream *s, void *to, size_t len)
{
	uint8_t *p = to, *end = p + len;
	uint64_t word;

	while (s->left && p < end)
		*p++ = next_byte(s);
	for (; end - p >= 8; p += 8) {
		word = next(s);
		memcpy(p, &word, 8);
	}
	while (p < end)
		*p++ = next_byte(s);
}

ssize_t stream_check(struct stream *s, const void *from, size_t len)
{
	const uint8_t *start = from, *p = start, *end = p + len;
	uint64_t word, want;

	for (; s->left && p < end; p++)
		if (*p != next_byte(s))
			return p - start;
	for (; end - p >= 8; p += 8) {
		want = next(s);
		memcpy(&word, p, 8);
		if (word != want)
			return p - start + __builtin_ctzll(word ^ want) / 8;
	}
	for (; p < end; p++)
		if (*p != next_byte(s))
			return p - start;
	return -1;
}

ssize_t poison_check(const void *from, size_t len)
{
	const uint8_t *p = from;
	size_t i;

	if (!len || (p[0] == POISON && !memcmp(p, p + 1, len - 1)))
		return -1;
	for (i = 0; p[i] == POISON; i++)
		;
	return i;
}
