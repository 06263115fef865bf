/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The responder: from runs to memory. */
#ifndef ARX_RESPONDER_H
#define ARX_RESPONDER_H

#include "qp.h"

int arx_responder_rx(struct arx_qp *qp, struct arx_run *run);
bool arx_responder_run(struct arx_qp *qp, u32 *bytes);
void arx_responder_go_on(struct arx_qp *qp);
bool arx_responder_kick(struct arx_qp *qp);
void arx_responder_end_hold(struct arx_qp *qp);

#endif /* ARX_RESPONDER_H */
