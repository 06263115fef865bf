/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The congestion of a QP's path, and the control of it. */
#ifndef ARX_CONGESTION_H
#define ARX_CONGESTION_H

#include <linux/jiffies.h>

#include "cc.h"
#include "qp.h"

void arx_congestion_sent(struct arx_qp *qp);
void arx_congestion_acked(struct arx_qp *qp, u32 una);
void arx_congestion_reported(struct arx_qp *qp);
void arx_congestion_arrived(struct arx_qp *qp, u32 psn, u32 n);
void arx_congestion_lost(struct arx_qp *qp, u32 psn, u32 n, u32 packets);
void arx_congestion_late(struct arx_qp *qp, u32 n);
void arx_congestion_timeout(struct arx_qp *qp);
bool arx_congestion_cnp(struct arx_qp *qp);
bool arx_congestion_waits(struct arx_qp *qp, struct arx_cc *cc);
void arx_congestion_charge(struct arx_qp *qp, struct arx_cc *cc,
			   const struct arx_run *run, struct arx_tx_out *out);
void arx_congestion_limit(struct arx_qp *qp, u32 mbps, struct arx_cc **spare);
struct arx_cc *arx_congestion_of_datagram(struct arx_qp *qp, u32 mbps);
void arx_congestion_forget(struct arx_qp *qp);

/**
 * arx_congestion_of - the congestion control of a QP
 * @qp: any QP
 *
 * Context: any of the QP's locks held, so that it stays.
 * Return: its state, or NULL: there was no congestion, or nothing controls it,
 * and the QP has no static rate.
 */
static inline struct arx_cc *arx_congestion_of(const struct arx_qp *qp)
{
	/* An address dependency; pairs with arx_congestion_sign(). */
	return READ_ONCE(qp->comp.cc);
}

/* At most one round trip is measured in a tick. */
static inline unsigned long arx_congestion_tick(void)
{
	return jiffies;
}

/**
 * arx_congestion_measures - true if packets that were sent may begin the
 *	measurement of a round trip
 * @qp: any QP
 *
 * That is never so for a peer on this machine, nor without a chosen controller.
 * With ARX_CC_AUTO, and before a sign of congestion, nothing is measured any
 * more once the path is known to be short.
 */
static inline bool arx_congestion_measures(const struct arx_qp *qp)
{
	const struct arx_comp *comp = &qp->comp;

	if (qp->cc == ARX_CC_FIXED || READ_ONCE(qp->req.local))
		return false;
	if (likely(!READ_ONCE(comp->cc)) &&
	    (READ_ONCE(comp->trip.near) ||
	     READ_ONCE(comp->trip.tick) == arx_congestion_tick()))
		return false;
	return READ_ONCE(comp->una) != READ_ONCE(qp->req.nxt);
}

/**
 * arx_congestion_follows - true if acknowledgments matter: the QP is
 *	controlled, or a round trip is being measured
 * @qp: its completer's lock is held
 */
static inline bool arx_congestion_follows(const struct arx_qp *qp)
{
	return qp->cc && (qp->comp.cc || qp->comp.trip.began);
}

/**
 * arx_congestion_rewound - a measurement ends without a result, because packets
 *	are sent again
 * @qp: its completer's lock is held
 */
static inline void arx_congestion_rewound(struct arx_qp *qp)
{
	qp->comp.trip.began = 0;
}

#endif /* ARX_CONGESTION_H */
