/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Congestion notification packets (CNPs). */
#ifndef ARX_CNP_H
#define ARX_CNP_H

#include "qp.h"

void arx_cnp_marked(struct arx_qp *qp, const struct arx_run *run);
void arx_cnp_rx(struct arx_qp *qp, const struct arx_headers *h);

#endif /* ARX_CNP_H */
