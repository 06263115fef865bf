/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Runs that arrived behind a gap and are kept until the gap closes. This file
 * knows no QPs.
 */
#ifndef ARX_KEEP_H
#define ARX_KEEP_H

#include <linux/rbtree.h>

#include "run.h"

/* Memory of kept packets, in bytes of truesize. */
#define ARX_KEEP_QP		(8U * 1024 * 1024)	/* of one stage */
#define ARX_KEEP_DEV		(64L * 1024 * 1024)	/* of a device */

/*
 * A request is kept only if it is at most this many PSNs ahead: each PSN at
 * which a request may be kept is one more that a sender of forged packets can
 * hit.
 */
#define ARX_KEEP_AHEAD		4096

/* A kept run counts as at least this many bytes of a stage's share. */
#define ARX_KEEP_LEAST		1024U

/* Runs freed at a time: bottom halves are off meanwhile. */
#define ARX_KEEP_FREED		256

/**
 * struct arx_keep - the runs that one stage of a QP keeps
 * @runs: struct arx_kept, in the order of their first PSNs
 * @bytes: truesize of all of them; 0: there are none
 * @dev: device that is charged
 * @sk: socket of the QP, which is charged, too
 *
 * Protected by the lock of the stage.
 */
struct arx_keep {
	struct rb_root runs;
	u32 bytes;
	struct arx_dev *dev;
	struct sock *sk;
};

/**
 * struct arx_kept - a kept run
 * @node: in arx_keep.runs
 * @bytes: truesize of its packets, and of this
 * @tail: the last of its packets
 * @run: the run, which owns its packets
 */
struct arx_kept {
	struct rb_node node;
	u32 bytes;
	struct sk_buff *tail;
	struct arx_run run;
};

void __cold arx_packets_detach(struct sk_buff *skb);
void arx_keep_init(struct arx_keep *keep, struct arx_dev *dev, struct sock *sk);
bool __cold arx_keep_add(struct arx_keep *keep, struct arx_run *run);
bool __cold arx_keep_first(const struct arx_keep *keep, u32 *psn);
bool __cold arx_keep_is_due(const struct arx_keep *keep, u32 psn);
bool __cold arx_keep_last(const struct arx_keep *keep, u32 *psn);
bool __cold arx_keep_gap(const struct arx_keep *keep, u32 from, u32 to,
			 u32 *psn, u32 *end);
struct arx_kept * __cold arx_keep_take(struct arx_keep *keep, u32 psn);
u32 __cold arx_keep_report(const struct arx_keep *keep, u32 psn, u32 mtu,
			   __be32 *words, u32 n);
bool __cold arx_keep_reports(const struct arx_keep *keep, u32 psn, u32 span);
void __cold arx_keep_free(struct arx_kept *kept);
bool __cold arx_keep_shrink(struct arx_keep *keep);
struct rb_root arx_keep_withdraw(struct arx_keep *keep);
void arx_keep_free_all(struct rb_root *runs);
void arx_keep_purge(struct arx_keep *keep);

#endif /* ARX_KEEP_H */
