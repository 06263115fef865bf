// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The state of a QP. A stage that finds an error changes the state here. Each
 * stage sees the new state at its next check, and the QP is scheduled so that
 * posted requests are flushed.
 */

#include "schedule.h"
#include "state.h"
#include "trace.h"

/* All QPs of all devices except QP1, by QPN. */
struct arx_ids arx_qps;

/* What each state allows: 10.3.1 */
static const u8 arx_qp_states[] = {
	[IB_QPS_RESET]	= 0,
	[IB_QPS_INIT]	= 0,
	[IB_QPS_RTR]	= ARX_QP_RECEIVE,
	[IB_QPS_RTS]	= ARX_QP_RECEIVE | ARX_QP_SEND | ARX_QP_ACKED,
	[IB_QPS_SQD]	= ARX_QP_RECEIVE | ARX_QP_SEND | ARX_QP_ACKED,
	[IB_QPS_SQE]	= ARX_QP_RECEIVE | ARX_QP_FLUSH,
	[IB_QPS_ERR]	= ARX_QP_FLUSH | ARX_QP_FLUSH_RECV,
};

/**
 * arx_qp_event - report an affiliated asynchronous event to the consumer
 * @qp: any QP
 * @event: the event
 *
 * Context: any; locks may be held.
 */
void arx_qp_event(struct arx_qp *qp, enum ib_event_type event)
{
	struct ib_event ev = {
		.device = qp->ib.device,
		.element.qp = &qp->ib,
		.event = event,
	};

	arx_count(qp, QP_EVENTS);
	trace_arx_event(qp->ib.device, qp->id.nr, event);
	if (qp->ib.event_handler)
		qp->ib.event_handler(&ev, qp->ib.qp_context);
}

/* State lock held. */
static void arx_qp_write_state(struct arx_qp *qp, enum ib_qp_state state)
{
	trace_arx_state(qp, qp->state, state);
	WRITE_ONCE(qp->state, state);
	WRITE_ONCE(qp->may, arx_qp_states[state] & qp->halves);
}

/* Leave a working state for @to; true if this call did it. */
static bool arx_qp_leave(struct arx_qp *qp, enum ib_qp_state to)
{
	bool left;

	spin_lock(&qp->state_lock);
	left = qp->state != IB_QPS_RESET && qp->state != IB_QPS_ERR &&
	       qp->state != to;
	if (left)
		arx_qp_write_state(qp, to);
	spin_unlock(&qp->state_lock);
	return left;
}

/**
 * arx_qp_error - enter the error state, in which all posted requests are
 *	flushed
 * @qp: any QP
 * @event: enum ib_event_type to report, or ARX_NO_EVENT if a completion does
 *
 * Context: bottom halves off; locks may be held.
 */
void arx_qp_error(struct arx_qp *qp, int event)
{
	if (!arx_qp_leave(qp, IB_QPS_ERR))
		return;
	if (event != ARX_NO_EVENT)
		arx_qp_event(qp, event);
	arx_qp_schedule(qp);
}

/**
 * arx_qp_send_error - handle a send that failed and whose completion says so
 * @qp: any QP with a requester. With an acknowledged service it enters the
 *	error state, else the send queue error state
 *
 * Context: bottom halves off; locks may be held.
 */
void arx_qp_send_error(struct arx_qp *qp)
{
	arx_count(qp, SEND_ERR);
	if (arx_qp_leave(qp, arx_qp_is_acked(qp) ? IB_QPS_ERR : IB_QPS_SQE))
		arx_qp_schedule(qp);
}

/**
 * arx_qp_set_state - enter a state
 * @qp: any QP
 * @state: the new state
 *
 * Context: bottom halves off.
 */
void arx_qp_set_state(struct arx_qp *qp, enum ib_qp_state state)
{
	spin_lock(&qp->state_lock);
	arx_qp_write_state(qp, state);
	spin_unlock(&qp->state_lock);
}
