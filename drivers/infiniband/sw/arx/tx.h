/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Turns runs into packets. */
#ifndef ARX_TX_H
#define ARX_TX_H

#include "qp.h"

/* Maximum payload of one call of arx_tx_run(). */
#define ARX_TX_RUN_MAX		(15 * 4096)

/*
 * Maximum number of bytes from BTH to ICRC that leave together: with the
 * headers before them they stay below GSO's 64 KiB. A run of any path MTU fits.
 */
#define ARX_TX_BATCH_MAX	65400

/*
 * A packet that goes down the stack alone takes about as long as this many
 * bytes of packets that go together.
 */
#define ARX_TX_ALONE		(24 * 1024U)

/* Packets of a run that go alone. */
#define ARX_TX_ALONE_MAX	12U

/**
 * arx_tx_goes_alone - true if each packet goes down the stack alone
 * @qp: sender of requests, or of responses
 *
 * Packets of XRC requests have an XRCETH each, which a packet in the middle of
 * a super-packet cannot have. Captures must show each packet.
 *
 * Return: true if no packets are joined.
 */
static inline bool arx_tx_goes_alone(const struct arx_qp *qp)
{
	return (qp->service == ARX_SERVICE_XRC && arx_qp_has_requester(qp)) ||
	       READ_ONCE(arx_qp_dev(qp)->capture);
}

/* Maximum size of a run in a batch. */
static inline u32 arx_tx_size(u32 len, u32 npkts)
{
	return len + npkts * (ARX_BTH_LEN + ARX_ICRC_LEN) + ARX_MAX_HEADERS;
}

/**
 * arx_tx_max - maximum payload of one run
 * @batch: the batch that the run may join
 * @mtu: path MTU
 * @alone: each packet goes down the stack alone
 *
 * Context: the lock of @batch's stage held.
 * Return: bytes, in whole packets: as many as fit, or a full run if none fits.
 */
static inline u32 arx_tx_max(const struct arx_tx_batch *batch, u32 mtu,
			     bool alone)
{
	u32 left = ARX_TX_BATCH_MAX - batch->len;
	u32 max = alone ? ARX_TX_ALONE_MAX : ARX_TX_RUN_MAX / mtu;
	u32 fit = max;

	if (left >= arx_tx_size(mtu, 1))
		fit = (left - ARX_MAX_HEADERS) /
		      (mtu + ARX_BTH_LEN + ARX_ICRC_LEN);
	return min(fit, max) * mtu;
}

int arx_tx_run(struct arx_qp *qp, struct arx_av *av, struct arx_run *run,
	       struct arx_tx_out *out);
void arx_tx_flush(struct arx_qp *qp, struct arx_tx_out *out);

#endif /* ARX_TX_H */
