/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef ARX_TX_H
#define ARX_TX_H

#include "run.h"

struct arx_qp;
struct sk_buff;

/* The most payload bytes one call of arx_tx_run() takes. */
#define ARX_TX_RUN_MAX		(15 * 4096)

/*
 * The most bytes from BTH to ICRC that leave together: with what stands in
 * front of them they stay below GSO's 64 KiB. A run of any path MTU fits.
 */
#define ARX_TX_BATCH_MAX	65400

/**
 * struct arx_tx_batch - what a stage has sent that has not left yet
 * @av: where to; NULL: nothing was sent
 * @peer: it is a QP on this host, which has the runs already, but owes answers
 * @dst: route of the packets, held; NULL: none, and there are no packets
 * @first: the first of them, from its BTH on; the others follow by ->next
 * @end: where the next one goes
 * @psn: of the first; they are consecutive
 * @sport: UDP source port
 * @n: how many
 * @len: bytes from BTH to ICRC, of all
 * @largest: of the largest
 * @cpu: whose queues hold what the stage has sent, -1: nobody's; stays when a
 *	batch ends, as do the next two
 * @next: the CPU that waits until @cpu has delivered it, -1: none
 * @data: answers with data may be among it
 * @dropped: this host dropped a part of it, the last one sent, and takes nothing
 *	more until the stage has taken that back and cleared this
 * @lost: if @dropped: PSN of the first packet that was dropped
 */
struct arx_tx_batch {
	const struct arx_av *av;
	struct arx_qp *peer;
	struct dst_entry *dst;
	struct sk_buff *first;
	struct sk_buff **end;
	u32 psn;
	u16 sport;
	u32 n;
	u32 len;
	u32 largest;
	int cpu;
	int next;
	bool data;
	bool dropped;
	u32 lost;
};

/* What a run takes of a batch at most. */
static inline u32 arx_tx_size(u32 len, u32 npkts)
{
	return len + npkts * (ARX_BTH_LEN + ARX_ICRC_LEN) + ARX_MAX_HEADERS;
}

/**
 * arx_tx_max - the most payload one run should carry
 * @batch: that it may join
 * @mtu: path MTU
 *
 * Return: bytes, whole packets: what fits, or, if nothing does, a full run.
 */
static inline u32 arx_tx_max(const struct arx_tx_batch *batch, u32 mtu)
{
	u32 left = ARX_TX_BATCH_MAX - batch->len;
	u32 max = ARX_TX_RUN_MAX / mtu;
	u32 fit = max;

	if (left >= arx_tx_size(mtu, 1))
		fit = (left - ARX_MAX_HEADERS) /
		      (mtu + ARX_BTH_LEN + ARX_ICRC_LEN);
	return min(fit, max) * mtu;
}

int arx_tx_init(struct arx_qp *qp);
void arx_tx_forget(struct arx_qp *qp);
void arx_tx_cleanup(struct arx_qp *qp);
u32 arx_tx_waits(const struct arx_qp *qp);
int arx_tx_run(struct arx_qp *qp, struct arx_av *av, struct arx_run *run,
	       struct arx_tx_batch *batch);
void arx_tx_flush(struct arx_qp *qp, struct arx_tx_batch *batch);
void arx_tx_icrc_computed(const struct sk_buff *skb, u32 n);

#endif /* ARX_TX_H */
