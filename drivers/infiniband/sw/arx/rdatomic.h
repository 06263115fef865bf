/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* READs, atomics, FLUSH at the responder, and the order of all responses. */
#ifndef ARX_RDATOMIC_H
#define ARX_RDATOMIC_H

#include "qp.h"

void arx_rdatomic_reset(struct arx_resp *resp);
int arx_rdatomic_request(struct arx_qp *qp, struct arx_run *run);
void arx_rdatomic_replay(struct arx_qp *qp, const struct arx_run *run);
bool arx_rdatomic_reply(struct arx_qp *qp, u32 *bytes);

#endif /* ARX_RDATOMIC_H */
