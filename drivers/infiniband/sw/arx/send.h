/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The router of requester and responder. */
#ifndef ARX_SEND_H
#define ARX_SEND_H

#include "tx.h"

/* One copy on one machine: long runs, but short enough not to delay others. */
#define ARX_LOOPBACK_RUN_MAX	(128 * 1024)

/*
 * The share of requester or responder before other QPs get their turn: large
 * enough to be worth the start, small enough that a small message behind it
 * waits for microseconds only. On the wire it is a number of whole runs.
 */
#define ARX_SHARE_BYTES		(5U * ARX_TX_RUN_MAX)

/*
 * The share for one received packet while NAPI polls: a run, and the rest of a
 * message of 64 KiB.
 */
#define ARX_POLL_BYTES		(64U * 1024)

u32 arx_send_max(const struct arx_qp *qp, const struct arx_av *av, u32 qpn,
		 const struct arx_tx_batch *batch);
u32 arx_send_cost(const struct arx_qp *qp, const struct arx_qp *peer, u32 len,
		  u32 npkts);
int arx_send_run(struct arx_qp *qp, struct arx_av *av, struct arx_run *run,
		 struct arx_tx_out *out, struct arx_qp **peer);
struct arx_qp *arx_send_other(const struct arx_qp *qp);
struct arx_qp *arx_send_reader(const struct arx_qp *qp);
void arx_send_later(struct arx_qp *qp);
void arx_send_give_back(struct arx_qp *qp);

#endif /* ARX_SEND_H */
