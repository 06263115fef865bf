/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The state of a QP, and how a QP fails. */
#ifndef ARX_STATE_H
#define ARX_STATE_H

#include "qp.h"

void __cold arx_qp_event(struct arx_qp *qp, enum ib_event_type event);
void arx_qp_set_state(struct arx_qp *qp, enum ib_qp_state state);
void __cold arx_qp_error(struct arx_qp *qp, int event);
void arx_qp_send_error(struct arx_qp *qp);
bool arx_qp_may_send(const struct arx_qp *qp);

#endif /* ARX_STATE_H */
