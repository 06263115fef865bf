/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* From a run to packets on their way down. */
#ifndef ARX_TX_H
#define ARX_TX_H

#include "qp.h"

/* The most payload bytes one call of arx_tx_run() takes. */
#define ARX_TX_RUN_MAX		(15 * 4096)

/*
 * The most bytes from BTH to ICRC that leave together: with what stands in
 * front of them they stay below GSO's 64 KiB. A run of any path MTU fits.
 */
#define ARX_TX_BATCH_MAX	65400

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
void arx_tx_cleanup(struct arx_qp *qp);
int arx_tx_run(struct arx_qp *qp, struct arx_av *av, struct arx_run *run,
	       struct arx_tx_batch *batch);
void arx_tx_flush(struct arx_qp *qp, struct arx_tx_batch *batch);

#endif /* ARX_TX_H */
