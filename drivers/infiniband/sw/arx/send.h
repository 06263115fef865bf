/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The router of requester and responder. */
#ifndef ARX_SEND_H
#define ARX_SEND_H

#include "tx.h"

/* One copy on one host: long runs, short enough not to hold up others. */
#define ARX_LOOPBACK_RUN_MAX	(128 * 1024)

/*
 * What requester or responder may hand over before others get their turn: enough
 * to be worth being started for, and little enough that a small message behind
 * it waits for microseconds. Whole runs, on the wire.
 */
#define ARX_SHARE_BYTES		(5U * ARX_TX_RUN_MAX)

/*
 * And what one received packet may cause while NAPI polls: a run, and what a
 * message of 64 KiB has more than that.
 */
#define ARX_POLL_BYTES		(64U * 1024)

u32 arx_send_max(const struct arx_qp *qp, const struct arx_av *av, u32 qpn,
		 const struct arx_tx_batch *batch);
int arx_send_run(struct arx_qp *qp, struct arx_av *av, struct arx_run *run,
		 struct arx_tx_batch *batch, struct arx_qp **peer);
struct arx_qp *arx_send_other(const struct arx_qp *qp);
struct arx_qp *arx_send_reader(const struct arx_qp *qp);
void arx_send_later(struct arx_qp *qp);
void arx_send_give_back(struct arx_qp *qp);

#endif /* ARX_SEND_H */
