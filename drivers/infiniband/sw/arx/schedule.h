/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The calls that lead up the call graph: a lower stage makes a higher stage
 * run. They only queue work, so the caller's locks do no harm.
 */
#ifndef ARX_SCHEDULE_H
#define ARX_SCHEDULE_H

#include "qp.h"

/*
 * WQEs of each queue of a failed QP that a softirq flushes in one turn. The
 * kernel may run ten works, one after the other, in one softirq, and a QP with
 * more to flush is at once the next work if no thread of its process flushes.
 */
#define ARX_FLUSH_WQES	16

void arx_qp_schedule(struct arx_qp *qp);
void arx_qp_schedule_init(struct arx_qp *qp);
void arx_qp_schedule_later(struct arx_qp *qp);
void arx_qp_schedule_in(struct arx_qp *qp, u64 ns);
void arx_qp_schedule_cancel(struct arx_qp *qp);
void arx_qp_schedule_on(struct arx_qp *qp, int cpu);
void arx_qp_wake_worker(struct arx_qp *qp);
void arx_qp_go_on(struct arx_qp *qp);
bool arx_qp_go_on_charged(struct arx_qp *qp);

#endif /* ARX_SCHEDULE_H */
