// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Runs and the iterator over their payload. An iterator yields contiguous
 * kernel addresses: every page is in the direct map (the driver is 64-bit
 * only), so payload moves by memcpy() from chunk to chunk.
 */

#include <linux/unaligned.h>

#include "run.h"

/**
 * arx_iter_put_key - put the key that an iterator holds
 * @it: iterator
 *
 * Context: as arx_iter_end().
 */
void arx_iter_put_key(struct arx_iter *it)
{
	if (it->key)
		arx_key_put(it->key);
	it->key = NULL;
}

/* Skip exhausted and empty entries; false at the end of the list. */
static bool arx_iter_sge_skip_empty(struct arx_iter *it)
{
	while (it->sge.left && it->sge.off == it->sge.list->length) {
		it->sge.list++;
		it->sge.left--;
		it->sge.off = 0;
		arx_iter_put_key(it);
	}
	return it->sge.left;
}

/* Access to the first @len bytes of @sge. */
static __always_inline struct arx_key_use
arx_iter_sge_use(const struct arx_iter *it, const struct arx_sge *sge, u32 len)
{
	return (struct arx_key_use) {
		.dev = it->sge.dev,
		.pd = it->sge.pd,
		.value = sge->lkey,
		.access = it->sge.access | ARX_KEY_LOCAL,
		.iova = sge->addr,
		.length = len,
	};
}

/*
 * Hold the key of the current entry for its first @end bytes only: the entry
 * ends behind its region.
 */
static noinline bool arx_iter_sge_hold_part(struct arx_iter *it, u32 end)
{
	struct arx_key_use use = arx_iter_sge_use(it, it->sge.list, end);
	enum arx_key_answer answer;

	answer = it->key ? arx_key_check(&use) : arx_key_get(&use, &it->key);
	it->sge.granted = answer == ARX_KEY_GRANTED ? end : 0;
	return answer == ARX_KEY_GRANTED;
}

/*
 * Hold the key of the current entry for its next @len bytes, if it has that
 * many. Most often all of the entry is in its region, and the key is looked up
 * once for all packets.
 */
static __always_inline bool arx_iter_sge_hold(struct arx_iter *it, u32 len)
{
	u32 all = it->sge.list->length;
	u32 end = it->sge.off + min(len, all - it->sge.off);
	struct arx_key_use use = arx_iter_sge_use(it, it->sge.list, all);

	if (it->key && end <= it->sge.granted)
		return true;
	if (!it->key && arx_key_get(&use, &it->key) == ARX_KEY_GRANTED) {
		it->sge.granted = all;
		return true;
	}
	return arx_iter_sge_hold_part(it, end);
}

/**
 * arx_iter_check_sge - arx_iter_check() of the bytes after it->room
 * @it: iterator over a scatter/gather list
 * @len: bytes after @it->room; not 0
 *
 * Context: as arx_iter_check().
 * Return: as arx_iter_check(); false also if the list is shorter.
 */
bool arx_iter_check_sge(struct arx_iter *it, u32 len)
{
	const struct arx_sge *sge;
	u32 have, left;

	/* The bytes at it->at are of the current entry, whose key is held. */
	if (!it->room && !arx_iter_sge_skip_empty(it))
		return false;
	if (!arx_iter_sge_hold(it, len))
		return false;

	sge = it->sge.list;
	have = sge->length - it->sge.off;
	for (left = it->sge.left; have < len; have = sge->length) {
		struct arx_key_use use;

		len -= have;
		if (!--left)
			return false;
		sge++;
		use = arx_iter_sge_use(it, sge, min(len, sge->length));
		/* An empty entry needs no key. */
		if (use.length && arx_key_check(&use) != ARX_KEY_GRANTED)
			return false;
	}
	return true;
}

/*
 * arx_iter_lacks() of bytes in one entry; @it holds the key of the first.
 * Nothing behind the region is wanted: its pages would not be taken back.
 */
static bool arx_iter_sge_lacks(const struct arx_iter *it,
			       const struct arx_sge *sge, u32 off, u32 len,
			       u32 ahead, struct arx_pages *want)
{
	struct arx_key_use use = arx_iter_sge_use(it, sge, off + len);
	bool held = sge == it->sge.list;
	struct arx_key *key = it->key;
	u64 va = sge->addr + off;
	bool lacks;

	if (!len ||
	    (!held && arx_key_get(&use, &key) != ARX_KEY_GRANTED))
		return false;
	lacks = arx_mr_lacks(key, va, len, use.access & ARX_KEY_WRITE, want);
	if (lacks) {
		u64 left = key->length - (va - key->iova);

		want->len += min3((u64)ahead, left, sge->length - off) - len;
	}
	if (!held)
		arx_key_put(key);
	return lacks;
}

/**
 * arx_iter_lacks - arx_iter_absent(), if a region may lack pages
 * @it: iterator over a scatter/gather list, without room
 * @len: as for arx_iter_absent()
 * @ahead: as for arx_iter_absent()
 * @want: as for arx_iter_absent()
 *
 * Context: as arx_iter_absent().
 * Return: as arx_iter_absent().
 */
bool arx_iter_lacks(struct arx_iter *it, u32 len, u32 ahead,
		    struct arx_pages *want)
{
	const struct arx_sge *sge;
	u32 off, left;

	/* The use of the bytes, which follows, finds the first key held. */
	if (!len || !arx_iter_sge_skip_empty(it) || !arx_iter_sge_hold(it, len))
		return false;
	sge = it->sge.list;
	off = it->sge.off;
	for (left = it->sge.left; left && len; left--) {
		u32 n = min(len, sge->length - off);

		if (arx_iter_sge_lacks(it, sge, off, n, ahead, want))
			return true;
		len -= n;
		ahead -= n;
		off = 0;
		sge++;
	}
	return false;
}

static __always_inline void *arx_iter_next_sge(struct arx_iter *it, u32 *len)
{
	const struct arx_sge *sge;
	void *at;

	if (!arx_iter_sge_skip_empty(it) ||
	    !arx_iter_sge_hold(it, *len))
		return NULL;

	sge = it->sge.list;
	*len = min(*len, sge->length - it->sge.off);
	at = arx_mr_at(it->key, sge->addr + it->sge.off, len);
	it->sge.off += *len;
	return at;
}

/* The contiguous bytes at @off of a packet's fragments. */
static void *arx_skb_frag_at(const struct sk_buff *skb, u32 off, u32 *len)
{
	int i;

	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];
		u32 size = skb_frag_size(frag);

		if (off < size) {
			*len = min(*len, size - off);
			return skb_frag_address(frag) + off;
		}
		off -= size;
	}
	return NULL;
}

static noinline void *arx_iter_next_skb(struct arx_iter *it, u32 *len)
{
	u32 headlen;
	void *at;

	if (it->skb.cur && it->skb.off == it->skb.size) {
		it->skb.cur = it->skb.cur->next;
		it->skb.off = 0;
	}
	if (!it->skb.cur)
		return NULL;

	*len = min(*len, it->skb.size - it->skb.off);
	headlen = skb_headlen(it->skb.cur);
	if (it->skb.off < headlen) {
		*len = min(*len, headlen - it->skb.off);
		at = it->skb.cur->data + it->skb.off;
	} else {
		at = arx_skb_frag_at(it->skb.cur, it->skb.off - headlen, len);
		if (!at)
			return NULL;
	}
	it->skb.off += *len;
	return at;
}

/* arx_iter_fetch() for hot callers, inline. */
static __always_inline bool arx_iter_find(struct arx_iter *it, u32 want)
{
	it->room = want;
	switch (it->kind) {
	case ARX_ITER_NONE:
	case ARX_ITER_BUF:
		it->at = NULL;
		break;
	case ARX_ITER_SGE:
		it->at = arx_iter_next_sge(it, &it->room);
		break;
	case ARX_ITER_KEY:
		it->at = arx_mr_at(it->key, it->va, &it->room);
		it->va += it->room;
		break;
	case ARX_ITER_SKB:
		it->at = arx_iter_next_skb(it, &it->room);
		break;
	}
	if (!it->at)
		it->room = 0;
	return it->at;
}

/**
 * arx_iter_fetch - find the next contiguous bytes
 * @it: iterator without room
 * @want: minimum number of bytes, if that many are contiguous; not 0
 *
 * Context: within the RCU read section in which the iterator was made.
 * Return: true if @it has room now; false at the end or if a key is not valid.
 */
bool arx_iter_fetch(struct arx_iter *it, u32 want)
{
	return arx_iter_find(it, want);
}

/* Needs no key: this walks a list of 32 entries, not its memory. */
static int arx_iter_skip_sge(struct arx_iter *it, u32 len)
{
	u32 n = min(len, it->room);

	it->at += n;
	it->room -= n;
	len -= n;
	while (len) {
		if (!arx_iter_sge_skip_empty(it))
			return -EFAULT;
		n = min(len, it->sge.list->length - it->sge.off);
		it->sge.off += n;
		len -= n;
	}
	return 0;
}

/**
 * arx_iter_skip_bytes - arx_iter_skip() of at least one byte
 * @it: iterator
 * @len: bytes
 *
 * Context: as arx_iter_skip().
 * Return: as arx_iter_skip().
 */
int arx_iter_skip_bytes(struct arx_iter *it, u32 len)
{
	if (it->kind == ARX_ITER_SGE)
		return arx_iter_skip_sge(it, len);

	while (len) {
		u32 n;

		if (!arx_iter_next(it, len, &n))
			return -EFAULT;
		len -= n;
	}
	return 0;
}

/**
 * arx_iter_rewind - go back to a position
 * @it: iterator that has advanced
 * @to: copy of @it at that position
 *
 * A list's iterator may have put the key that it held then. That key may have
 * been invalidated since, so it is looked up again.
 *
 * Context: within the RCU read section in which the iterator was made.
 */
void arx_iter_rewind(struct arx_iter *it, const struct arx_iter *to)
{
	if (it->kind != ARX_ITER_SGE) {
		*it = *to;
		return;
	}
	arx_iter_end(it);
	*it = *to;
	it->sge.off -= it->room;
	it->room = 0;
	it->key = NULL;
}

static enum arx_copy_error arx_iter_copy_pieces(struct arx_iter *to,
						struct arx_iter *from, u32 len)
{
	while (len) {
		u32 got;
		void *src = arx_iter_next(from, len, &got);

		if (!src)
			return ARX_COPY_BAD_SOURCE;
		len -= got;
		while (got) {
			u32 put;
			void *dst = arx_iter_next(to, got, &put);

			if (!dst)
				return ARX_COPY_BAD_DEST;
			memcpy(dst, src, put);
			src += put;
			got -= put;
		}
	}
	return ARX_COPY_OK;
}

/* True if the next @len bytes are contiguous; @it then has room for them. */
static bool arx_iter_has(struct arx_iter *it, u32 len)
{
	if (it->room)
		return it->room >= len;
	return arx_iter_find(it, len) && it->room >= len;
}

/**
 * arx_iter_copy - move payload
 * @to: destination; advances past the written bytes
 * @from: source; advances past the bytes read
 * @len: bytes
 *
 * Context: within the RCU read section in which both iterators were made.
 * Return: the end that failed, if any; bytes copied before stay written.
 */
enum arx_copy_error arx_iter_copy(struct arx_iter *to, struct arx_iter *from,
				  u32 len)
{
	/* Most short payloads are contiguous at both ends. */
	if (len && arx_iter_has(from, len) && arx_iter_has(to, len)) {
		memcpy(to->at, from->at, len);
		to->at += len;
		to->room -= len;
		from->at += len;
		from->room -= len;
		return ARX_COPY_OK;
	}
	return arx_iter_copy_pieces(to, from, len);
}

/* Size of the largest aligned word that ends where @len bytes at @at end. */
static u32 arx_last_word(const void *at, u32 len)
{
	u32 size = sizeof(u64);

	while (size > len || !IS_ALIGNED((uintptr_t)at + len, size))
		size /= 2;
	return size;
}

/* Copy @len bytes, not 0; one store writes the last word, after all others. */
static void arx_copy_last(void *to, const void *from, u32 len)
{
	u32 size = arx_last_word(to, len);

	len -= size;
	memcpy(to, from, len);
	to += len;
	from += len;
	smp_wmb();	/* pairs with the barrier of a program that polls @to */
	switch (size) {
	case sizeof(u64):
		WRITE_ONCE(*(u64 *)to, get_unaligned((u64 *)from));
		break;
	case sizeof(u32):
		WRITE_ONCE(*(u32 *)to, get_unaligned((u32 *)from));
		break;
	case sizeof(u16):
		WRITE_ONCE(*(u16 *)to, get_unaligned((u16 *)from));
		break;
	default:
		WRITE_ONCE(*(u8 *)to, *(const u8 *)from);
	}
}

/*
 * Write the last few bytes of a message to memory that may not be contiguous.
 */
static enum arx_copy_error arx_iter_put_last(struct arx_iter *to,
					     const u8 *from, u32 len)
{
	while (len) {
		u32 put;
		void *at = arx_iter_next(to, len, &put);

		if (!at)
			return ARX_COPY_BAD_DEST;
		if (put == len)
			arx_copy_last(at, from, put);
		else
			memcpy(at, from, put);
		from += put;
		len -= put;
	}
	return ARX_COPY_OK;
}

/**
 * arx_iter_copy_to_end - copy the end of a message that a program may poll
 * @to: as for arx_iter_copy()
 * @from: as for arx_iter_copy()
 * @len: bytes, not 0
 *
 * The last aligned word (of 8, 4, 2 bytes or 1) becomes visible in one piece,
 * after all bytes that were written before.
 *
 * Context: as arx_iter_copy().
 * Return: as arx_iter_copy().
 */
enum arx_copy_error arx_iter_copy_to_end(struct arx_iter *to,
					 struct arx_iter *from, u32 len)
{
	u8 last[sizeof(u64)];
	u32 n = min_t(u32, len, sizeof(last));
	struct arx_iter buf __uninitialized;
	enum arx_copy_error err;

	if (arx_iter_has(from, len) && arx_iter_has(to, len)) {
		arx_copy_last(to->at, from->at, len);
		to->at += len;
		to->room -= len;
		from->at += len;
		from->room -= len;
		return ARX_COPY_OK;
	}
	err = arx_iter_copy_pieces(to, from, len - n);
	if (err != ARX_COPY_OK)
		return err;
	arx_iter_buf(&buf, last);
	err = arx_iter_copy_pieces(&buf, from, n);
	if (err != ARX_COPY_OK)
		return err;
	return arx_iter_put_last(to, last, n);
}

/**
 * arx_run_trim_first - cut off packets that were received before
 * @run: a run
 * @n: how many packets from the first one on
 * @mtu: path MTU of the receiver
 *
 * Context: within the RCU read section of the payload.
 * Return: false if nothing is left, or the payload does not fit the packets.
 */
bool arx_run_trim_first(struct arx_run *run, u32 n, u32 mtu)
{
	if (n >= run->npkts || !arx_run_well_formed(run, mtu) ||
	    arx_iter_skip(&run->payload, n * mtu))
		return false;
	run->h.psn = arx_psn_add(run->h.psn, n);
	run->h.flags &= ~ARX_FIRST;
	run->npkts -= n;
	run->len -= n * mtu;
	return true;
}

/**
 * arx_run_trim_last - cut off the last packet
 * @run: a run that is well formed
 * @mtu: path MTU of the receiver
 *
 * Return: false if nothing is left.
 */
bool arx_run_trim_last(struct arx_run *run, u32 mtu)
{
	if (run->npkts == 1)
		return false;
	run->npkts--;
	run->len = run->npkts * mtu;
	run->h.pad = 0;
	run->h.flags &= ~ARX_LAST_FLAGS;
	return true;
}
