// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The calls that lead up again, to the stages that a QP has to run. */

#include "schedule.h"
#include "worker.h"

/**
 * arx_qp_schedule - run requester and responder soon, from softirq context
 * @qp: any QP that is not being destroyed
 *
 * Context: any.
 */
void arx_qp_schedule(struct arx_qp *qp)
{
	queue_work(system_bh_wq, &qp->work);
}

/**
 * arx_qp_schedule_on - run requester and responder soon, on a certain CPU
 * @qp: any QP that is not being destroyed
 * @cpu: where; online
 *
 * By a work of its own, for one that is running here now would begin here again.
 *
 * Context: bottom halves off.
 */
void arx_qp_schedule_on(struct arx_qp *qp, int cpu)
{
	queue_work_on(cpu, system_bh_wq, &qp->move);
}

/**
 * arx_qp_go_on - have a requester go on that has used up its share
 * @qp: any QP that is not being destroyed
 *
 * What goes to the wire is sent by a softirq: the window and the socket bound
 * it. What is copied on this machine has no bound but what was posted.
 *
 * Context: any with interrupts on or bottom halves off; RCU read side.
 */
void arx_qp_go_on(struct arx_qp *qp)
{
	if (READ_ONCE(qp->req.local))
		arx_worker_queue(qp);
	else
		arx_qp_schedule(qp);
}
