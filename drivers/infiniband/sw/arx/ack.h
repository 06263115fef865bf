/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* ACKs and NAKs of a responder. */
#ifndef ARX_ACK_H
#define ARX_ACK_H

#include "qp.h"

/*
 * The wait that an RNR NAK asks for while pages are found, or while another
 * request uses a key that is to be taken back, encoded: 0.08 ms. It takes about
 * as long to fault in some pages; a peer waits longer each time.
 */
#define ARX_ACK_SHORT_TIMER	6

/* What a check of a request found. */
enum arx_verdict {
	ARX_GRANTED,
	ARX_INVALID,		/* the QP does not serve such a request */
	ARX_NO_ACCESS,		/* the key gives no right to the memory */
	ARX_NO_TARGET,		/* XRC: no such SRQ in the QP's domain */
	ARX_NO_PAGES,		/* the memory is not there yet */
};

void __cold arx_ack_nak(struct arx_qp *qp, u8 syndrome, enum arx_nak_end end);
void __cold arx_ack_refuse(struct arx_qp *qp, enum arx_verdict why);
void __cold arx_ack_rnr(struct arx_qp *qp, u8 timer);
void arx_ack_due(struct arx_qp *qp);
void arx_ack_sent(struct arx_qp *qp);
bool arx_ack_nak_is_due(const struct arx_resp *resp);
bool arx_ack_is_next(const struct arx_resp *resp);
bool arx_ack_may_cover(const struct arx_resp *resp);
void arx_ack_hurry(struct arx_resp *resp);
bool arx_ack_may_wait(const struct arx_resp *resp);

#endif /* ARX_ACK_H */
