/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The state of a QP, and how a QP fails. */
#ifndef ARX_STATE_H
#define ARX_STATE_H

#include "qp.h"

/* Instead of an enum ib_event_type: there is nothing to report. */
#define ARX_NO_EVENT	(-1)

void __cold arx_qp_event(struct arx_qp *qp, enum ib_event_type event);
void arx_qp_set_state(struct arx_qp *qp, enum ib_qp_state state);
void __cold arx_qp_error(struct arx_qp *qp, int event);
void arx_qp_send_error(struct arx_qp *qp);

/* What a QP may do in a state. */
enum arx_qp_may {
	ARX_QP_RECEIVE		= BIT(0),	/* accept requests */
	ARX_QP_SEND		= BIT(1),	/* send posted requests */
	ARX_QP_ACKED		= BIT(2),	/* accept acknowledgments */
	ARX_QP_FLUSH		= BIT(3),	/* flush posted sends */
	ARX_QP_FLUSH_RECV	= BIT(4),	/* flush posted receives */
};

extern const u8 arx_qp_states[IB_QPS_ERR + 1];

/**
 * arx_qp_may - true if the state of a QP allows at least one of some actions
 * @qp: any QP
 * @what: enum arx_qp_may
 */
static inline bool arx_qp_may(const struct arx_qp *qp, u8 what)
{
	return arx_qp_states[arx_qp_state(qp)] & what;
}

#endif /* ARX_STATE_H */
