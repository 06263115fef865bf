/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A run: a fragment of one message, k >= 1 packets with consecutive PSNs, and
 * an iterator over its payload. The requester (and the responder, for read
 * responses) makes runs; tx.c puts them on the wire, rx.c makes them again
 * from what arrives, loopback.c hands them over on one host. Knows no QP.
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
	ARX_ITER_MR,		/* one memory region */
	ARX_ITER_SKB,		/* payloads of received packets */
};

/**
 * struct arx_iter - a place in memory that bytes come from or go to
 * @kind: which of the union
 * @room: bytes at @at that have been found and not been handed out yet
 * @at: the next byte, if @room
 * @sge: ARX_ITER_SGE: list, current entry's region (looked up once), offset in
 *	the current entry, entries left, access wanted of each lkey
 * @mr: ARX_ITER_MR: region and address, already checked for bounds
 * @skb: ARX_ITER_SKB: current packet (the next by skb->next), offset in it, bytes
 *	of payload in each but perhaps the last
 *
 * The members of the union are about what follows behind @room.
 *
 * Valid within one RCU read section. A copy of the struct is a saved position.
 *
 * On a message's way locals of it, and of what has it, are __uninitialized: some
 * kernels have all locals zeroed (CONFIG_INIT_STACK_ALL_ZERO), which is a store
 * for each word of them and each message.
 */
struct arx_iter {
	enum arx_iter_kind kind;
	u32 room;
	void *at;
	union {
		struct {
			struct arx_dev *dev;
			struct ib_pd *pd;
			const struct arx_sge *list;
			struct arx_mr *mr;
			u32 left;
			u32 off;
			int access;
		} sge;
		struct {
			struct arx_mr *mr;
			u64 va;
		} mr;
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
 * @pd: protection domain the keys must belong to
 * @list: entries; must stay unchanged while the iterator is used
 * @n: number of entries
 * @access: 0 to read from it, IB_ACCESS_LOCAL_WRITE to write to it
 */
static inline void arx_iter_sge(struct arx_iter *it, struct arx_dev *dev,
				struct ib_pd *pd, const struct arx_sge *list,
				u32 n, int access)
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
static inline void arx_iter_buf(struct arx_iter *it, void *buf)
{
	it->kind = ARX_ITER_BUF;
	it->room = U32_MAX;
	it->at = buf;
}

/**
 * arx_iter_mr - start inside a memory region
 * @it: iterator
 * @mr: from arx_mr_find(), which checked the bounds of all that is iterated
 * @va: address of the first byte
 * @len: of all that is iterated; not 0
 */
static inline void arx_iter_mr(struct arx_iter *it, struct arx_mr *mr, u64 va,
			       u32 len)
{
	it->kind = ARX_ITER_MR;
	it->room = len;
	it->at = arx_mr_at(mr, va, &it->room);
	if (!it->at)
		it->room = 0;
	it->mr.mr = mr;
	it->mr.va = va + it->room;
}

/**
 * arx_iter_skb - start at the first byte of received packets
 * @it: iterator
 * @first: the first packet, without headers; the others follow by ->next
 * @size: bytes of payload in each packet but the last, which may have fewer;
 *	the caller knows how many there are in all. Pad and ICRC are still there
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

/**
 * arx_iter_check - true if every key of the next bytes allows the access
 * @it: iterator; does not move, keeps the first region that was looked up
 * @len: bytes
 *
 * Only scatter/gather lists have keys left to check.
 *
 * Context: within the RCU read section the iterator was made in.
 */
static inline bool arx_iter_check(struct arx_iter *it, u32 len)
{
	if (it->kind != ARX_ITER_SGE || len <= it->room)
		return true;
	return arx_iter_check_sge(it, len - it->room);
}

/**
 * arx_iter_skip - move forward without touching the bytes
 * @it: iterator
 * @len: bytes
 *
 * Return: 0, or -EFAULT when there are not so many.
 */
static inline int arx_iter_skip(struct arx_iter *it, u32 len)
{
	return len ? arx_iter_skip_bytes(it, len) : 0;
}

/**
 * arx_iter_next - the next contiguous bytes
 * @it: iterator; moves behind them
 * @max: at most so many, not 0
 * @len: receives how many
 *
 * Context: within the RCU read section the iterator was made in.
 * Return: their address, or NULL at the end or where a key does not hold.
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

/* What arx_iter_copy() could not do. */
enum arx_copy_error {
	ARX_COPY_OK,
	ARX_COPY_BAD_SOURCE,
	ARX_COPY_BAD_DEST,
};

enum arx_copy_error arx_iter_copy(struct arx_iter *to, struct arx_iter *from,
				  u32 len);
enum arx_copy_error arx_iter_copy_to_end(struct arx_iter *to,
					 struct arx_iter *from, u32 len);

/**
 * struct arx_run - k packets of one message
 * @h: headers of the first packet; @h.flags says whether it begins a message,
 *	and whether the last packet ends it (with its immediate data, rkey to
 *	invalidate, solicited event and acknowledge request)
 * @npkts: PSNs covered; all packets but the last carry @mtu bytes
 * @len: payload bytes
 * @mtu: path MTU
 * @payload: @len bytes
 * @lasts: the payload's memory stays as it is until the peer has it: packets may
 *	refer to it
 * @more: another request for the same QP follows at once: answers may wait
 * @polled: packets that a NIC delivered together: it may have more
 * @grh: UD receive: 40 bytes to put in front of the payload
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
	bool lasts;
	bool more;
	bool polled;
	const u8 *grh;
	const u8 *smac;
	u16 vlan;
	u8 network;
};

/* Packets that @len bytes take; none take one, too. Most are short. */
static inline u32 arx_run_npkts(u32 len, u32 mtu)
{
	return len <= mtu ? 1 : DIV_ROUND_UP(len, mtu);
}

/**
 * arx_run_well_formed - does the payload fit the packets?
 * @run: a run; all packets but one that ends a message are full, and a message
 *	of several packets does not end with an empty one (9.4.1)
 *
 * Return: true if so.
 */
static inline bool arx_run_well_formed(const struct arx_run *run)
{
	u64 full = (u64)run->npkts * run->mtu;

	if (!(run->h.flags & ARX_LAST))
		return run->len == full;
	if (run->npkts == 1 && run->h.flags & ARX_FIRST)
		return run->len <= run->mtu;
	return run->len <= full && run->len > full - run->mtu;
}

#endif /* ARX_RUN_H */
