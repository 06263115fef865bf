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

/**
 * arx_qp_may - true if the state of a QP allows at least one of some actions,
 *	by a half that the QP has
 * @qp: any QP
 * @what: enum arx_qp_may
 *
 * Context: any.
 */
static inline bool arx_qp_may(const struct arx_qp *qp, u8 what)
{
	return READ_ONCE(qp->may) & what;
}

#endif /* ARX_STATE_H */
