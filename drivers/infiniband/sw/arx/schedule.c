// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The calls that lead up the call graph, to stages and worker of a QP. */

#include "compat.h"
#include "schedule.h"
#include "worker.h"

/* A stage that this machine has stopped tries again after this time. */
#define ARX_RETRY_NS	NSEC_PER_MSEC

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

static enum hrtimer_restart arx_qp_retry(struct hrtimer *t)
{
	arx_qp_schedule(container_of(t, struct arx_qp, retry));
	return HRTIMER_NORESTART;
}

/**
 * arx_qp_schedule_init - initialise the timer of arx_qp_schedule_later()
 * @qp: being created
 */
void arx_qp_schedule_init(struct arx_qp *qp)
{
	hrtimer_setup(&qp->retry, arx_qp_retry, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
}

/**
 * arx_qp_schedule_later - run requester and responder a little later
 * @qp: any QP that is not being destroyed
 *
 * For a stage that lacks memory, or room in a queue of this machine: at once it
 * would fail again. Also for work that no process is charged for.
 *
 * Context: any but hard interrupts.
 */
void arx_qp_schedule_later(struct arx_qp *qp)
{
	hrtimer_start(&qp->retry, ns_to_ktime(ARX_RETRY_NS),
		      HRTIMER_MODE_REL_SOFT);
}

/**
 * arx_qp_schedule_in - run requester and responder after a time
 * @qp: any QP that is not being destroyed
 * @ns: the time
 *
 * For a stage that sends at a certain rate. An earlier time stays: the QP then
 * asks again. If both stages ask at once, one of them may run as late as the
 * other asked for.
 *
 * Context: any but hard interrupts.
 */
void arx_qp_schedule_in(struct arx_qp *qp, u64 ns)
{
	if (hrtimer_is_queued(&qp->retry) &&
	    ktime_to_ns(hrtimer_get_remaining(&qp->retry)) <= (s64)ns)
		return;
	hrtimer_start(&qp->retry, ns_to_ktime(ns), HRTIMER_MODE_REL_SOFT);
}

/**
 * arx_qp_schedule_cancel - end the timer of arx_qp_schedule_later()
 * @qp: about to be destroyed; no stage runs any more
 *
 * Context: may sleep.
 */
void arx_qp_schedule_cancel(struct arx_qp *qp)
{
	hrtimer_cancel(&qp->retry);
}

/**
 * arx_qp_wake_worker - have a QP's worker run requester and responder
 * @qp: any QP that is not being destroyed
 *
 * Without a thread the QP waits, see arx_worker_queue().
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
 * them. Copies on this machine are bounded only by what was posted. A failed QP
 * sends no more, but the peer may still copy the responses to its READs. The
 * flush must end without a thread, too.
 *
 * Context: any with interrupts on or bottom halves off; RCU read side.
 */
void arx_qp_go_on(struct arx_qp *qp)
{
	if (!READ_ONCE(qp->req.local))
		arx_qp_schedule(qp);
	else if (!(READ_ONCE(qp->may) & ARX_QP_FLUSH))
		arx_qp_wake_worker(qp);
	else if (!arx_qp_go_on_charged(qp))
		arx_qp_schedule(qp);
}

/**
 * arx_qp_go_on_charged - continue work that only what was posted bounds
 * @qp: any QP that is not being destroyed
 *
 * For a stage that has used up its share by WQEs that need no packet. A softirq
 * would be charged to nobody, so the thread of the process continues. If that
 * thread has ended, a softirq does one share each millisecond: a program must
 * not evade its quota by a child that owned the thread.
 *
 * Context: any with interrupts on or bottom halves off; RCU read side; locks of
 * @qp may be held.
 * Return: false if @qp never has a thread: it is a kernel consumer's, or the
 * kernel has no such threads. The caller continues in a softirq.
 */
bool arx_qp_go_on_charged(struct arx_qp *qp)
{
	if (!qp->worker)
		return false;
	if (!arx_worker_continue(qp))
		arx_qp_schedule_later(qp);
	return true;
}
