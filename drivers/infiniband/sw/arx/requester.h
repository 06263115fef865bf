/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester: from the send ring to runs. */
#ifndef ARX_REQUESTER_H
#define ARX_REQUESTER_H

#include "qp.h"

void arx_requester_init(struct arx_qp *qp);
void arx_requester_run(struct arx_qp *qp);
void arx_requester_poll(struct arx_qp *qp);
bool arx_requester_kick(struct arx_qp *qp);
void arx_requester_take(struct arx_qp *qp);

#endif /* ARX_REQUESTER_H */
