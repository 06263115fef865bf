/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Send work requests. */
#ifndef ARX_SENDWR_H
#define ARX_SENDWR_H

#include "qp.h"

void arx_sendwr_take(struct arx_qp *qp, u32 index, struct arx_swqe *swqe);
int arx_sendwr_execute(struct arx_qp *qp, struct arx_swqe *swqe);
int arx_sendwr_write(struct arx_qp *qp, const struct ib_send_wr *wr,
		     struct arx_send_wqe *wqe);
void arx_sendwr_unwrite(struct arx_qp *qp, const struct arx_send_wqe *wqe);

/**
 * arx_sendwr_release - drop the references of a WQE
 * @swqe: completed, or discarded by a reset
 *
 * Context: completer's lock held, or nothing uses the QP.
 */
static inline void arx_sendwr_release(struct arx_swqe *swqe)
{
	if (swqe->av)
		arx_av_put(swqe->av);
	swqe->av = NULL;
}

#endif /* ARX_SENDWR_H */
