/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The calls that lead up again: a stage below has those above run. They only
 * queue work, so no lock of the caller is in the way.
 */
#ifndef ARX_SCHEDULE_H
#define ARX_SCHEDULE_H

#include "qp.h"

void arx_qp_schedule(struct arx_qp *qp);
void arx_qp_schedule_on(struct arx_qp *qp, int cpu);
void arx_qp_go_on(struct arx_qp *qp);

#endif /* ARX_SCHEDULE_H */
