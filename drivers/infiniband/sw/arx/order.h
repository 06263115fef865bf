/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The packets of a QP arrive in the order in which they were sent. */
#ifndef ARX_ORDER_H
#define ARX_ORDER_H

#include "qp.h"

void arx_order_init(struct arx_qp *qp);
u32 arx_order_queue(const struct arx_qp *qp, struct net_device *netdev,
		    u32 priority);
bool arx_order_move(struct arx_qp *qp, struct arx_order *order,
		    const struct arx_run *run);
void arx_order_settle(struct arx_qp *qp);

/**
 * arx_order_may_send - true if a stage may send a run on this CPU now
 * @qp: sender
 * @order: of the stage
 * @run: what is to be sent
 *
 * Context: bottom halves off, the stage's lock held.
 * Return: true if it may. If not, the QP is scheduled when it may.
 */
static inline bool arx_order_may_send(struct arx_qp *qp,
				      struct arx_order *order,
				      const struct arx_run *run)
{
	return likely(order->cpu == smp_processor_id()) ||
	       arx_order_move(qp, order, run);
}

#endif /* ARX_ORDER_H */
