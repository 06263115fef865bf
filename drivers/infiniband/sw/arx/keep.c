// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Runs behind a gap. A run that is kept owns its packets, beyond the call that
 * delivered it. All first PSNs are less than half of the PSN space ahead of the
 * PSN that the stage expects, so their order is that of arx_psn_diff(). Runs
 * may overlap: the stage that takes a run cuts off the packets that it has
 * received meanwhile.
 */

#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/dst.h>

#include "account.h"
#include "arx.h"
#include "keep.h"

/* Runs that follow each other are one, up to this many bytes. */
#define ARX_KEEP_RUN		SZ_64K

/**
 * arx_keep_init - a stage keeps nothing yet
 * @keep: zeroed
 * @dev: device of the QP
 * @sk: socket of the QP; stays until arx_keep_purge()
 */
void arx_keep_init(struct arx_keep *keep, struct arx_dev *dev, struct sock *sk)
{
	keep->dev = dev;
	keep->sk = sk;
}

static struct arx_kept *arx_keep_of(struct rb_node *node)
{
	return rb_entry(node, struct arx_kept, node);
}

static int arx_keep_compare(struct rb_node *node, const struct rb_node *other)
{
	const struct arx_kept *a = rb_entry(node, struct arx_kept, node);
	const struct arx_kept *b = rb_entry(other, struct arx_kept, node);

	return arx_psn_diff(a->run.h.psn, b->run.h.psn);
}

static u32 arx_keep_truesize(const struct sk_buff *skb)
{
	u32 bytes = sizeof(struct arx_kept);

	for (; skb; skb = skb->next)
		bytes += skb->truesize;
	return bytes;
}

/* True if one of the packets is from the reserves of the memory management. */
static bool arx_keep_uses_reserves(const struct sk_buff *skb)
{
	for (; skb; skb = skb->next)
		if (skb_pfmemalloc(skb))
			return true;
	return false;
}

/*
 * Charge @bytes to the stage, the device and the socket; false if that is too
 * much for one of them.
 */
static bool arx_keep_charge(struct arx_keep *keep, u32 bytes)
{
	atomic_long_t *kept = &keep->dev->kept;

	if (bytes > ARX_KEEP_QP - keep->bytes)
		return false;
	if (atomic_long_add_return(bytes, kept) > ARX_KEEP_DEV ||
	    !arx_charge_packets(keep->sk, bytes)) {
		atomic_long_sub(bytes, kept);
		return false;
	}
	keep->bytes += bytes;
	return true;
}

static void arx_keep_uncharge(struct arx_keep *keep, u32 bytes)
{
	keep->bytes -= bytes;
	atomic_long_sub(bytes, &keep->dev->kept);
	arx_uncharge_packets(keep->sk, bytes);
}

/**
 * arx_packets_detach - make packets refer to no socket, route or netdev
 * @skb: packets that outlive the call that delivered them, linked by ->next
 *
 * Context: any.
 */
void arx_packets_detach(struct sk_buff *skb)
{
	for (; skb; skb = skb->next) {
		skb_orphan(skb);
		skb_dst_drop(skb);
		skb_ext_reset(skb);
		nf_reset_ct(skb);
		skb->dev = NULL;
	}
}

static struct sk_buff *arx_keep_tail(struct sk_buff *skb)
{
	while (skb->next)
		skb = skb->next;
	return skb;
}

/* True if @run has all of its packets: those that are cut off stay linked. */
static bool arx_keep_is_uncut(const struct arx_run *run)
{
	return run->payload.skb.cur == run->packets && !run->payload.skb.off &&
	       !run->payload.room;
}

/*
 * True if @run continues the message of @kept, and the packets of both are one
 * run: all are full, except perhaps the last one.
 */
static bool arx_keep_continues(const struct arx_kept *kept,
			       const struct arx_run *run)
{
	const struct arx_run *first = &kept->run;

	return first->h.op == run->h.op && first->h.srqn == run->h.srqn &&
	       !(first->h.flags & ARX_LAST) && !(run->h.flags & ARX_FIRST) &&
	       run->h.psn == arx_psn_add(first->h.psn, first->npkts) &&
	       first->payload.skb.size == first->mtu &&
	       first->len == first->npkts * first->mtu &&
	       (run->npkts == 1 || run->payload.skb.size == run->mtu) &&
	       run->mtu == first->mtu && arx_keep_is_uncut(run) &&
	       first->len + run->len <= ARX_KEEP_RUN;
}

/* Append @run to the last kept run; false if it is not the next part of it. */
static bool arx_keep_append(struct arx_keep *keep, struct arx_run *run,
			    u32 bytes)
{
	struct rb_node *node = rb_last(&keep->runs);
	struct arx_kept *kept = node ? arx_keep_of(node) : NULL;

	if (!kept || !arx_keep_continues(kept, run))
		return false;
	kept->tail->next = run->packets;
	kept->tail = arx_keep_tail(run->packets);
	kept->bytes += bytes;
	kept->run.npkts += run->npkts;
	kept->run.len += run->len;
	kept->run.polled |= run->polled;
	kept->run.h.flags |= run->h.flags;
	kept->run.h.pad = run->h.pad;
	kept->run.h.ex = run->h.ex;
	kept->run.h.syndrome = run->h.syndrome;
	kept->run.h.msn = run->h.msn;
	return true;
}

/*
 * Insert @run; false without memory. True also if a run with the same first PSN
 * is kept; @run then keeps its packets.
 */
static bool arx_keep_insert(struct arx_keep *keep, struct arx_run *run,
			    u32 bytes)
{
	struct arx_kept *kept;

	kept = kmalloc(sizeof(*kept), GFP_ATOMIC | __GFP_NOWARN);
	if (!kept) {
		arx_keep_uncharge(keep, bytes);
		return false;
	}
	kept->bytes = bytes;
	kept->tail = arx_keep_tail(run->packets);
	kept->run = *run;
	if (rb_find_add(&kept->node, &keep->runs, arx_keep_compare)) {
		kfree(kept);
		arx_keep_uncharge(keep, bytes);
		return true;
	}
	run->packets = NULL;
	return true;
}

/**
 * arx_keep_add - keep a run, if there is room
 * @keep: runs of a stage
 * @run: less than half of the PSN space ahead; without packets of its own it is
 *	not kept. If it is kept, it has lost them
 *
 * The reserves of the memory management are needed elsewhere: a run with a
 * packet from there is not kept.
 *
 * Context: lock of the stage held.
 * Return: true if the run is kept, or one with the same first PSN already was.
 */
bool arx_keep_add(struct arx_keep *keep, struct arx_run *run)
{
	struct sk_buff *packets = run->packets;
	bool kept = true;
	u32 bytes;

	if (!packets || arx_keep_uses_reserves(packets))
		return false;
	bytes = arx_keep_truesize(packets);
	if (!arx_keep_charge(keep, bytes))
		return false;
	if (arx_keep_append(keep, run, bytes))
		run->packets = NULL;
	else
		kept = arx_keep_insert(keep, run, bytes);
	if (!run->packets)
		arx_packets_detach(packets);
	return kept;
}

static void arx_keep_remove(struct arx_keep *keep, struct arx_kept *kept)
{
	rb_erase(&kept->node, &keep->runs);
	arx_keep_uncharge(keep, kept->bytes);
}

/* True if the run has nothing from @psn on, or cannot be cut there. */
static bool arx_keep_is_past(const struct arx_run *run, u32 psn)
{
	s32 behind = arx_psn_diff(psn, run->h.psn);

	return behind >= (s32)run->npkts ||
	       (behind > 0 && run->h.op != ARX_OP_SEND &&
		run->h.op != ARX_OP_WRITE &&
		run->h.op != ARX_OP_READ_RESPONSE);
}

/**
 * arx_keep_first - first PSN that is kept
 * @keep: runs of a stage
 * @psn: receives the PSN
 *
 * Context: lock of the stage held.
 * Return: false if nothing is kept.
 */
bool arx_keep_first(const struct arx_keep *keep, u32 *psn)
{
	struct rb_node *node = rb_first(&keep->runs);

	if (node)
		*psn = arx_keep_of(node)->run.h.psn;
	return node;
}

/**
 * arx_keep_last - first PSN of the last run that is kept
 * @keep: runs of a stage
 * @psn: receives the PSN
 *
 * Context: lock of the stage held.
 * Return: false if nothing is kept.
 */
bool arx_keep_last(const struct arx_keep *keep, u32 *psn)
{
	struct rb_node *node = rb_last(&keep->runs);

	if (node)
		*psn = arx_keep_of(node)->run.h.psn;
	return node;
}

/* The last run that begins at @psn or before, or else the first of all. */
static struct rb_node *arx_keep_floor(const struct arx_keep *keep, u32 psn)
{
	struct rb_node *node = keep->runs.rb_node;
	struct rb_node *floor = NULL;

	while (node) {
		if (arx_psn_diff(arx_keep_of(node)->run.h.psn, psn) > 0) {
			node = node->rb_left;
		} else {
			floor = node;
			node = node->rb_right;
		}
	}
	return floor ?: rb_first(&keep->runs);
}

/**
 * arx_keep_gap - find PSNs that are not kept
 * @keep: responses of a stage
 * @from: find the first gap from here on
 * @to: up to here
 * @psn: receives the first PSN of the gap
 * @end: receives the PSN after the gap
 *
 * Context: lock of the stage held.
 * Return: false if all of these PSNs are kept.
 */
bool arx_keep_gap(const struct arx_keep *keep, u32 from, u32 to, u32 *psn,
		  u32 *end)
{
	struct rb_node *node = arx_keep_floor(keep, from);

	*psn = from;
	*end = to;
	for (; node && arx_psn_diff(*psn, to) < 0; node = rb_next(node)) {
		const struct arx_run *run = &arx_keep_of(node)->run;
		u32 after = arx_psn_add(run->h.psn, run->npkts);

		if (arx_psn_diff(run->h.psn, *psn) > 0) {
			if (arx_psn_diff(run->h.psn, to) < 0)
				*end = run->h.psn;
			return true;
		}
		if (arx_psn_diff(after, *psn) > 0)
			*psn = after;
	}
	return arx_psn_diff(*psn, to) < 0;
}

/**
 * arx_keep_is_due - true if arx_keep_take() would find a run
 * @keep: runs of a stage
 * @psn: PSN that the stage expects
 *
 * Context: lock of the stage held.
 * Return: true if a run begins at @psn or before.
 */
bool arx_keep_is_due(const struct arx_keep *keep, u32 psn)
{
	u32 first;

	return arx_keep_first(keep, &first) && arx_psn_diff(first, psn) <= 0;
}

/**
 * arx_keep_take - the run that is due
 * @keep: runs of a stage
 * @psn: PSN that the stage expects
 *
 * Runs that were received again meanwhile are freed, ARX_KEEP_FREED of them at
 * most: if more are left, arx_keep_is_due() says so.
 *
 * Context: lock of the stage held.
 * Return: a run that begins at @psn or before and ends after it, to be freed by
 * arx_keep_free(); NULL if there is none, or none is found yet.
 */
struct arx_kept *arx_keep_take(struct arx_keep *keep, u32 psn)
{
	u32 most;

	for (most = ARX_KEEP_FREED; most; most--) {
		struct rb_node *node = rb_first(&keep->runs);
		struct arx_kept *kept = node ? arx_keep_of(node) : NULL;

		if (!kept || arx_psn_diff(kept->run.h.psn, psn) > 0)
			return NULL;
		arx_keep_remove(keep, kept);
		if (!arx_keep_is_past(&kept->run, psn))
			return kept;
		arx_keep_free(kept);
	}
	return NULL;
}

/* PSNs of a run: a READ takes those of its responses, too. */
static u32 arx_keep_psns(const struct arx_run *run, u32 mtu)
{
	if (run->h.op == ARX_OP_READ)
		return arx_run_npkts(run->h.dma_len, mtu);
	return run->npkts;
}

/* Set bits [from, to) of a report. */
static void arx_keep_set(__be32 *words, u32 from, u32 to)
{
	while (from < to) {
		u32 bit = from % 32;
		u32 n = min(32 - bit, to - from);

		words[from / 32] |= cpu_to_be32(GENMASK(bit + n - 1, bit));
		from += n;
	}
}

/**
 * arx_keep_report - write down which requests are kept
 * @keep: runs of a stage
 * @psn: PSN that the stage expects
 * @mtu: path MTU of the QP
 * @words: receives bit i of word w for PSN @psn + 32 * w + i
 * @n: words that fit
 *
 * Context: lock of the stage held.
 * Return: number of words used.
 */
u32 arx_keep_report(const struct arx_keep *keep, u32 psn, u32 mtu,
		    __be32 *words, u32 n)
{
	struct rb_node *node;
	u32 covered = 0;

	memset(words, 0, n * sizeof(*words));
	for (node = rb_first(&keep->runs); node; node = rb_next(node)) {
		const struct arx_run *run = &arx_keep_of(node)->run;
		u32 first = (run->h.psn - psn) & ARX_PSN_MASK;
		u32 end = min(first + arx_keep_psns(run, mtu), 32 * n);

		if (first >= 32 * n)
			break;
		arx_keep_set(words, max(covered, first), end);
		covered = max(covered, end);
	}
	return DIV_ROUND_UP(covered, 32);
}

/**
 * arx_keep_reports - true if arx_keep_report() would report a request
 * @keep: runs of a stage
 * @psn: PSN that the stage expects
 * @span: PSNs that a report covers
 *
 * Context: lock of the stage held.
 * Return: false if nothing is kept, or only what is too far away.
 */
bool arx_keep_reports(const struct arx_keep *keep, u32 psn, u32 span)
{
	u32 first;

	return arx_keep_first(keep, &first) &&
	       ((first - psn) & ARX_PSN_MASK) < span;
}

/**
 * arx_keep_free - free a run that was kept
 * @kept: from arx_keep_take()
 *
 * Context: any.
 */
void arx_keep_free(struct arx_kept *kept)
{
	kfree_skb_list_reason(kept->run.packets, SKB_CONSUMED);
	kfree(kept);
}

/**
 * arx_keep_shrink - free kept runs, ARX_KEEP_FREED of them at most
 * @keep: runs of a stage that has no more use for them
 *
 * Context: lock of the stage held.
 * Return: true if runs are left: the caller must see to them later.
 */
bool arx_keep_shrink(struct arx_keep *keep)
{
	struct rb_node *node;
	u32 most;

	for (most = ARX_KEEP_FREED; most; most--) {
		node = rb_first(&keep->runs);
		if (!node)
			return false;
		arx_keep_remove(keep, arx_keep_of(node));
		arx_keep_free(arx_keep_of(node));
	}
	return keep->bytes;
}

/**
 * arx_keep_withdraw - take all kept runs, however many, in constant time
 * @keep: runs of a stage; has none afterwards
 *
 * Context: lock of the stage held.
 * Return: the runs, for arx_keep_free_all() once the lock is released. They are
 * no longer charged.
 */
struct rb_root arx_keep_withdraw(struct arx_keep *keep)
{
	struct rb_root runs = keep->runs;

	keep->runs = RB_ROOT;
	if (keep->bytes)
		arx_keep_uncharge(keep, keep->bytes);
	return runs;
}

/**
 * arx_keep_free_all - free runs that were withdrawn
 * @runs: from arx_keep_withdraw()
 *
 * Context: may sleep.
 */
void arx_keep_free_all(struct rb_root *runs)
{
	struct arx_kept *kept, *next;

	rbtree_postorder_for_each_entry_safe(kept, next, runs, node) {
		arx_keep_free(kept);
		cond_resched();
	}
}

/**
 * arx_keep_purge - free all kept runs
 * @keep: runs of a stage; no other user
 *
 * Context: may sleep.
 */
void arx_keep_purge(struct arx_keep *keep)
{
	struct rb_root runs = arx_keep_withdraw(keep);

	arx_keep_free_all(&runs);
}
