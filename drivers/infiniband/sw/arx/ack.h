/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* ACKs and NAKs of a responder. */
#ifndef ARX_ACK_H
#define ARX_ACK_H

#include "qp.h"

void __cold arx_ack_nak(struct arx_qp *qp, u8 syndrome, int event);
void arx_ack_due(struct arx_qp *qp);
void arx_ack_sent(struct arx_qp *qp);
bool arx_ack_owes_nak(const struct arx_resp *resp);
bool arx_ack_owes_ack(const struct arx_resp *resp);
bool arx_ack_may_wait(const struct arx_resp *resp);

#endif /* ARX_ACK_H */
