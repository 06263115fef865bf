// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The calls that lead up the call graph, to stages and worker of a QP. */

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
 * @cpu: the CPU; this one if it is offline
 *
 * By a work of its own, because a work that runs now would run again on its own
 * CPU. An online CPU stays online while bottom halves are off here; when it
 * goes offline, its works move to other CPUs.
 *
 * Context: bottom halves off.
 */
void arx_qp_schedule_on(struct arx_qp *qp, int cpu)
{
	if (unlikely(!cpu_online(cpu)))
		cpu = smp_processor_id();
	queue_work_on(cpu, system_bh_wq, &qp->move);
}

/**
 * arx_qp_wake_worker - have a QP's worker run the requester
 * @qp: any QP that is not being destroyed
 *
 * Context: any with interrupts on or bottom halves off; RCU read side.
 */
void arx_qp_wake_worker(struct arx_qp *qp)
{
	arx_worker_queue(qp);
}

/**
 * arx_qp_go_on - continue a requester that has used up its share
 * @qp: any QP that is not being destroyed
 *
 * Packets for the wire are sent by a softirq: the window and the socket bound
 * them. Copies on this machine are bounded only by what was posted.
 *
 * Context: any with interrupts on or bottom halves off; RCU read side.
 */
void arx_qp_go_on(struct arx_qp *qp)
{
	if (READ_ONCE(qp->req.local))
		arx_qp_wake_worker(qp);
	else
		arx_qp_schedule(qp);
}
