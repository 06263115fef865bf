/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Requests to a QP on this host. */
#ifndef ARX_LOOPBACK_H
#define ARX_LOOPBACK_H

#include "qp.h"

int arx_loopback_rx(struct arx_qp *peer, const struct arx_av *av,
		    struct arx_run *run);
bool arx_loopback_respond(struct arx_qp *qp, struct arx_qp *peer, u32 *bytes);

#endif /* ARX_LOOPBACK_H */
