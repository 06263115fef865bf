// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Runs and the iterator over their payload. An iterator yields contiguous
 * kernel addresses: every page here is in the direct map (the driver is
 * 64-bit only), so moving payload is memcpy() from chunk to chunk.
 */

#include "run.h"

/**
 * arx_iter_none - no payload
 * @it: iterator
 */
void arx_iter_none(struct arx_iter *it)
{
	it->kind = ARX_ITER_NONE;
	it->room = 0;
}

/**
 * arx_iter_sge - start at the first byte of a scatter/gather list
 * @it: iterator
 * @dev: device of the keys
 * @pd: protection domain the keys must belong to
 * @list: entries; must stay unchanged while the iterator is used
 * @n: number of entries
 * @access: 0 to read from it, IB_ACCESS_LOCAL_WRITE to write to it
 */
void arx_iter_sge(struct arx_iter *it, struct arx_dev *dev, struct ib_pd *pd,
		  const struct arx_sge *list, u32 n, int access)
{
	it->kind = ARX_ITER_SGE;
	it->room = 0;
	it->sge.dev = dev;
	it->sge.pd = pd;
	it->sge.list = list;
	it->sge.mr = NULL;
	it->sge.left = n;
	it->sge.off = 0;
	it->sge.access = access;
}

/**
 * arx_iter_buf - start at a kernel address
 * @it: iterator
 * @buf: the address; the caller knows how long it is
 */
void arx_iter_buf(struct arx_iter *it, void *buf)
{
	it->kind = ARX_ITER_BUF;
	it->room = 0;
	it->buf = buf;
}

/**
 * arx_iter_mr - start inside a memory region
 * @it: iterator
 * @mr: from arx_mr_find(), which checked the bounds of all that is iterated
 * @va: address of the first byte
 */
void arx_iter_mr(struct arx_iter *it, struct arx_mr *mr, u64 va)
{
	it->kind = ARX_ITER_MR;
	it->room = 0;
	it->mr.mr = mr;
	it->mr.va = va;
}

/**
 * arx_iter_skb - start at the first byte of received packets
 * @it: iterator
 * @first: the first packet, without headers; the others follow by ->next
 * @size: bytes of payload in each packet but the last, which may have fewer;
 *	the caller knows how many there are in all. Pad and ICRC are still there
 */
void arx_iter_skb(struct arx_iter *it, const struct sk_buff *first, u32 size)
{
	it->kind = ARX_ITER_SKB;
	it->room = 0;
	it->skb.cur = first;
	it->skb.off = 0;
	it->skb.size = size;
}

/* Step over exhausted and empty entries; false at the end of the list. */
static bool arx_iter_sge_settle(struct arx_iter *it)
{
	while (it->sge.left && it->sge.off == it->sge.list->length) {
		it->sge.list++;
		it->sge.left--;
		it->sge.off = 0;
		it->sge.mr = NULL;
	}
	return it->sge.left;
}

static void *arx_iter_next_sge(struct arx_iter *it, size_t *len)
{
	const struct arx_sge *sge;
	void *at;

	if (!arx_iter_sge_settle(it))
		return NULL;

	sge = it->sge.list;
	if (!it->sge.mr)
		it->sge.mr = arx_mr_find(it->sge.dev, it->sge.pd, sge->lkey,
					 it->sge.access, sge->addr,
					 sge->length);
	if (!it->sge.mr)
		return NULL;

	*len = min_t(size_t, *len, sge->length - it->sge.off);
	at = arx_mr_at(it->sge.mr, sge->addr + it->sge.off, len);
	it->sge.off += *len;
	return at;
}

/* The contiguous bytes at @off of a packet that is not linear. */
static void *arx_skb_at(const struct sk_buff *skb, u32 off, size_t *len)
{
	u32 headlen = skb_headlen(skb);
	int i;

	if (off < headlen) {
		*len = min_t(size_t, *len, headlen - off);
		return skb->data + off;
	}
	off -= headlen;

	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];
		u32 size = skb_frag_size(frag);

		if (off < size) {
			*len = min_t(size_t, *len, size - off);
			return skb_frag_address(frag) + off;
		}
		off -= size;
	}
	return NULL;
}

static void *arx_iter_next_skb(struct arx_iter *it, size_t *len)
{
	void *at;

	if (it->skb.cur && it->skb.off == it->skb.size) {
		it->skb.cur = it->skb.cur->next;
		it->skb.off = 0;
	}
	if (!it->skb.cur)
		return NULL;

	*len = min_t(size_t, *len, it->skb.size - it->skb.off);
	at = arx_skb_at(it->skb.cur, it->skb.off, len);
	if (at)
		it->skb.off += *len;
	return at;
}

/* Packets follow each other in a page: what is found once is good for some. */
#define ARX_ITER_FETCH	PAGE_SIZE

/**
 * arx_iter_fetch - find the next contiguous bytes
 * @it: iterator without room
 * @want: at least so many, if they are contiguous; not 0
 *
 * Context: within the RCU read section the iterator was made in.
 * Return: true if there is room now; false at the end or where a key does not
 * hold.
 */
bool arx_iter_fetch(struct arx_iter *it, u32 want)
{
	size_t n = max_t(size_t, want, ARX_ITER_FETCH);

	switch (it->kind) {
	case ARX_ITER_NONE:
		return false;
	case ARX_ITER_BUF:
		n = want;
		it->at = it->buf;
		it->buf += n;
		break;
	case ARX_ITER_SGE:
		it->at = arx_iter_next_sge(it, &n);
		break;
	case ARX_ITER_MR:
		it->at = arx_mr_at(it->mr.mr, it->mr.va, &n);
		it->mr.va += n;
		break;
	case ARX_ITER_SKB:
		it->at = arx_iter_next_skb(it, &n);
		break;
	}
	if (!it->at)
		return false;
	it->room = n;
	return true;
}

/* Needs no key: a list of 32 entries is walked, not its memory. */
static int arx_iter_skip_sge(struct arx_iter *it, u32 len)
{
	u32 n = min(len, it->room);

	it->at += n;
	it->room -= n;
	len -= n;
	while (len) {
		if (!arx_iter_sge_settle(it))
			return -EFAULT;
		n = min(len, it->sge.list->length - it->sge.off);
		it->sge.off += n;
		len -= n;
	}
	return 0;
}

/**
 * arx_iter_skip - move forward without touching the bytes
 * @it: iterator
 * @len: bytes
 *
 * Return: 0, or -EFAULT when there are not so many.
 */
int arx_iter_skip(struct arx_iter *it, u32 len)
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
 * arx_iter_copy - move payload
 * @to: where to; moves behind what was written
 * @from: where from; moves behind what was read
 * @len: bytes
 *
 * Context: within the RCU read section both iterators were made in.
 * Return: which end failed, if one did; what was copied before stays written.
 */
enum arx_copy_error arx_iter_copy(struct arx_iter *to, struct arx_iter *from,
				  u32 len)
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

/**
 * arx_run_well_formed - does the payload fit the packets?
 * @run: a run; all packets but one that ends a message are full, and a message
 *	of several packets does not end with an empty one (9.4.1)
 *
 * Return: true if so.
 */
bool arx_run_well_formed(const struct arx_run *run)
{
	u64 full = (u64)run->npkts * run->mtu;

	if (!(run->h.flags & ARX_LAST))
		return run->len == full;
	if (run->npkts == 1 && run->h.flags & ARX_FIRST)
		return run->len <= run->mtu;
	return run->len <= full && run->len > full - run->mtu;
}
