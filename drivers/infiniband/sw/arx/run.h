/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A run: a fragment of one message, k >= 1 packets with consecutive PSNs, and
 * an iterator over its payload. The requester (and the responder, for READ
 * responses) makes runs. tx.c turns runs into packets, rx.c turns received
 * packets into runs, loopback.c hands runs to a QP of this machine. This file
 * knows no QPs.
 */
#ifndef ARX_RUN_H
#define ARX_RUN_H

#include "mr.h"
#include "wire.h"

#include <rdma/arx-abi.h>

enum arx_iter_kind {
	ARX_ITER_NONE,		/* no payload */
	ARX_ITER_BUF,		/* kernel memory */
	ARX_ITER_SGE,		/* scatter/gather list by lkey */
	ARX_ITER_KEY,		/* memory of one key */
	ARX_ITER_SKB,		/* payloads of received packets */
};

/**
 * struct arx_iter - a position in memory from which bytes are read or to which
 *	bytes are written
 * @kind: member of the union
 * @room: bytes at @at that were found and are not used yet
 * @at: the next byte, if @room
 * @key: ARX_ITER_SGE: current entry's key, looked up once and held, or NULL;
 *	ARX_ITER_KEY: the key, whose bounds have been checked, or NULL
 * @sge: ARX_ITER_SGE: list, offset in the current entry, entries left, access
 *	needed of each lkey, bytes of the current entry for which @key was
 *	checked (a receive may end behind its region, in bytes that no message
 *	reaches)
 * @va: ARX_ITER_KEY: address
 * @skb: ARX_ITER_SKB: current packet (the next by skb->next), offset in it,
 *	bytes of payload in each packet, the last of which may have fewer
 *
 * The members of the union describe the bytes after @room.
 *
 * Valid within one RCU read section. The iterator holds @key until
 * arx_iter_end(). A copy of the struct is a position for arx_iter_rewind(), and
 * holds nothing.
 *
 * Local iterators and runs on a message's path are __uninitialized: some
 * kernels zero all locals (CONFIG_INIT_STACK_ALL_ZERO), which costs a store for
 * each word of them and each message.
 */
struct arx_iter {
	enum arx_iter_kind kind;
	u32 room;
	void *at;
	struct arx_key *key;
	union {
		struct {
			struct arx_dev *dev;
			struct ib_pd *pd;
			const struct arx_sge *list;
			u32 left;
			u32 off;
			int access;
			u32 granted;
		} sge;
		u64 va;
		struct {
			const struct sk_buff *cur;
			u32 off;
			u32 size;
		} skb;
	};
};

/**
 * arx_iter_none - no payload
 * @it: iterator
 */
static inline void arx_iter_none(struct arx_iter *it)
{
	it->kind = ARX_ITER_NONE;
	it->room = 0;
}

/**
 * arx_iter_sge - start at the first byte of a scatter/gather list
 * @it: iterator
 * @dev: device of the keys
 * @pd: protection domain to which the keys must belong
 * @list: entries; must stay unchanged while the iterator is used
 * @n: number of entries
 * @access: 0 to read the memory, IB_ACCESS_LOCAL_WRITE to write it
 */
static inline void arx_iter_sge(struct arx_iter *it, struct arx_dev *dev,
				struct ib_pd *pd, const struct arx_sge *list,
				u32 n, int access)
{
	it->kind = ARX_ITER_SGE;
	it->room = 0;
	it->key = NULL;
	it->sge.dev = dev;
	it->sge.pd = pd;
	it->sge.list = list;
	it->sge.left = n;
	it->sge.off = 0;
	it->sge.access = access;
}

/**
 * arx_iter_buf - start at a kernel address
 * @it: iterator
 * @buf: the address; the caller knows its length
 */
static inline void arx_iter_buf(struct arx_iter *it, void *buf)
{
	it->kind = ARX_ITER_BUF;
	it->room = U32_MAX;
	it->at = buf;
}

/**
 * arx_iter_key - start in the memory of a key
 * @it: iterator; holds the key if the answer is ARX_KEY_GRANTED
 * @use: the bytes, at least one
 * @want: receives the pages if the answer is ARX_KEY_ABSENT
 *
 * Context: in a section, bottom halves off until arx_iter_end().
 * Return: the answer of the look-up.
 */
static inline enum arx_key_answer arx_iter_key(struct arx_iter *it,
					       const struct arx_key_use *use,
					       struct arx_pages *want)
{
	enum arx_key_answer answer = arx_key_get(use, &it->key);

	if (answer != ARX_KEY_GRANTED)
		return answer;
	if (arx_mr_absent(it->key, use->iova, use->length,
			  use->access & ARX_KEY_WRITE, want)) {
		arx_key_put(it->key);
		return ARX_KEY_ABSENT;
	}
	it->kind = ARX_ITER_KEY;
	it->room = use->length;
	it->at = arx_mr_at(it->key, use->iova, &it->room);
	if (!it->at)
		it->room = 0;
	it->va = use->iova + it->room;
	return answer;
}

void arx_iter_put_key(struct arx_iter *it);

/**
 * arx_iter_end - end the use of an iterator's memory
 * @it: iterator, not used any more but for arx_iter_rewind()
 *
 * Context: as it was begun.
 */
static inline void arx_iter_end(struct arx_iter *it)
{
	if (it->kind != ARX_ITER_SGE && it->kind != ARX_ITER_KEY)
		return;
	if (it->key && arx_key_is_revocable(it->key))
		arx_iter_put_key(it);
}

/**
 * arx_iter_skb - start at the first byte of received packets
 * @it: iterator
 * @first: the first packet, without headers; the others follow by ->next
 * @size: bytes of payload in each packet but the last, which may have fewer;
 *	the caller knows the total. Padding and ICRC are still in the packets
 */
static inline void arx_iter_skb(struct arx_iter *it,
				const struct sk_buff *first, u32 size)
{
	it->kind = ARX_ITER_SKB;
	it->room = 0;
	it->skb.cur = first;
	it->skb.off = 0;
	it->skb.size = size;
}

bool arx_iter_fetch(struct arx_iter *it, u32 want);
int arx_iter_skip_bytes(struct arx_iter *it, u32 len);
bool arx_iter_check_sge(struct arx_iter *it, u32 len);
bool arx_iter_lacks(struct arx_iter *it, u32 len, u32 ahead,
		    struct arx_pages *want);
void arx_iter_rewind(struct arx_iter *it, const struct arx_iter *to);

/**
 * arx_iter_check - true if every key of the next bytes allows the access
 * @it: iterator; does not move, holds the first key that was looked up
 * @len: bytes
 *
 * Only the keys of scatter/gather lists remain to be checked.
 *
 * Context: within the RCU read section in which the iterator was made.
 */
static inline bool arx_iter_check(struct arx_iter *it, u32 len)
{
	if (it->kind != ARX_ITER_SGE || len <= it->room)
		return true;
	return arx_iter_check_sge(it, len - it->room);
}

/**
 * arx_iter_absent - whether pages of the next bytes must be found first
 * @it: iterator without room; does not move, may hold the first key
 * @len: bytes that are about to be used
 * @ahead: bytes that the message will use, at least @len
 * @want: receives what is not there
 *
 * The pages behind an rkey are checked by arx_iter_key(). An entry whose key
 * does not allow the access lacks nothing: the caller's use of it fails.
 *
 * Context: within the section in which the iterator was made.
 * Return: true if at least one page is not there.
 */
static inline bool arx_iter_absent(struct arx_iter *it, u32 len, u32 ahead,
				   struct arx_pages *want)
{
	return arx_odp_in_use() && it->kind == ARX_ITER_SGE &&
	       arx_iter_lacks(it, len, ahead, want);
}

/**
 * arx_iter_skip - advance without touching the bytes
 * @it: iterator
 * @len: bytes
 *
 * Context: within the RCU read section in which the iterator was made.
 * Return: 0, or -EFAULT if there are fewer bytes.
 */
static inline int arx_iter_skip(struct arx_iter *it, u32 len)
{
	return len ? arx_iter_skip_bytes(it, len) : 0;
}

/**
 * arx_iter_next - the next contiguous bytes
 * @it: iterator; advances past the bytes
 * @max: maximum, not 0
 * @len: receives the number of bytes
 *
 * Context: within the RCU read section in which the iterator was made.
 * Return: their address, or NULL at the end or if a key is not valid.
 */
static inline void *arx_iter_next(struct arx_iter *it, u32 max, u32 *len)
{
	void *at;

	if (!it->room && !arx_iter_fetch(it, max))
		return NULL;
	*len = min(max, it->room);
	at = it->at;
	it->at += *len;
	it->room -= *len;
	return at;
}

/**
 * arx_iter_may_hold - whether packets may hold pages of the payload
 * @it: iterator over the memory of keys, after arx_iter_next()
 *
 * An exporter frees or reuses the pages of a dma-buf when nobody uses the
 * buffer any more, whatever the pages' own counts are. The region, which uses
 * the buffer, may end while packets are queued.
 *
 * Context: within the RCU read section in which the iterator was made.
 * Return: true if a page that is held gets no other use: a page of the bytes
 * that arx_iter_next() returned last.
 */
static inline bool arx_iter_may_hold(const struct arx_iter *it)
{
	return it->key->kind != ARX_KEY_DMABUF;
}

/* Errors of a copy. */
enum arx_copy_error {
	ARX_COPY_OK,
	ARX_COPY_BAD_SOURCE,
	ARX_COPY_BAD_DEST,
	ARX_COPY_NO_PAGES,	/* not of arx_iter_copy(), which expects them */
};

enum arx_copy_error arx_iter_copy(struct arx_iter *to, struct arx_iter *from,
				  u32 len);
enum arx_copy_error arx_iter_copy_to_end(struct arx_iter *to,
					 struct arx_iter *from, u32 len);

/**
 * struct arx_run - k packets of one message
 * @h: headers of the first packet; @h.flags says whether the run begins a
 *	message, and whether its last packet ends the message (with its
 *	immediate data, rkey to invalidate, solicited event and acknowledge
 *	request)
 * @npkts: number of PSNs; all packets but the last carry @mtu bytes
 * @len: payload bytes
 * @mtu: path MTU of the QP that made the run. The receiver measures by its own
 * @payload: @len bytes
 * @payload_stable: the payload is memory of keys and stable until the peer has
 *	it, so packets may refer to what arx_iter_may_hold() allows
 * @again: packets of the run were sent before
 * @more: another request for the same QP follows at once, so responses may wait
 * @polled: a NIC delivered packets together and may have more
 * @packets: received packets that hold @payload, linked by ->next. A stage that
 *	keeps the run beyond the call takes them and stores NULL. NULL: the
 *	payload is valid during the call only
 * @grh: UD receive: 40 bytes that precede the payload
 * @smac: UD receive: the sender's MAC, or NULL
 * @vlan: UD receive: VLAN id, or 0xffff
 * @network: UD receive: enum rdma_network_type
 */
struct arx_run {
	struct arx_headers h;
	u32 npkts;
	u32 len;
	u32 mtu;
	struct arx_iter payload;
	bool payload_stable;
	bool again;
	bool more;
	bool polled;
	struct sk_buff *packets;
	const u8 *grh;
	const u8 *smac;
	u16 vlan;
	u8 network;
};

/*
 * Number of packets for @len bytes; 0 bytes take one packet, too. Most payloads
 * are short.
 */
static inline u32 arx_run_npkts(u32 len, u32 mtu)
{
	return len <= mtu ? 1 : DIV_ROUND_UP(len, mtu);
}

/**
 * arx_run_size - set the length of a run that is being made
 * @run: its mtu is set
 * @len: bytes of payload
 */
static inline void arx_run_size(struct arx_run *run, u32 len)
{
	run->len = len;
	run->npkts = arx_run_npkts(len, run->mtu);
	run->h.pad = -len & 3;
}

/**
 * arx_run_well_formed - true if the payload fits the packets
 * @run: a run; all packets are full, except one that ends a message, and a
 *	message of several packets does not end with an empty one (9.4.1)
 * @mtu: path MTU of the receiver
 *
 * Return: true if the rule holds.
 */
static inline bool arx_run_well_formed(const struct arx_run *run, u32 mtu)
{
	u64 full = (u64)run->npkts * mtu;

	if (!(run->h.flags & ARX_LAST))
		return run->len == full;
	if (run->npkts == 1 && run->h.flags & ARX_FIRST)
		return run->len <= mtu;
	return run->len <= full && run->len > full - mtu;
}

bool arx_run_trim_first(struct arx_run *run, u32 n, u32 mtu);
bool arx_run_trim_last(struct arx_run *run, u32 mtu);

#endif /* ARX_RUN_H */
