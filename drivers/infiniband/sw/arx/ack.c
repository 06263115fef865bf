// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ACK or NAK that a responder has to send. At most one is due at a time:
 * while it waits, the next one replaces it.
 */

#include "ack.h"
#include "state.h"
#include "trace.h"

/*
 * Packets for which an ACK may wait. A requester's window must not be smaller:
 * that of rdma_rxe has this size.
 */
#define ARX_ACK_WITHIN	128

/* The event that reports that a NAK has ended the QP. */
static int arx_ack_event(enum arx_nak_end end)
{
	switch (end) {
	case ARX_END_FATAL:
		return IB_EVENT_QP_FATAL;
	case ARX_END_INVALID:
		return IB_EVENT_QP_REQ_ERR;
	case ARX_END_ACCESS:
		return IB_EVENT_QP_ACCESS_ERR;
	default:
		return ARX_NO_EVENT;
	}
}

/**
 * arx_ack_nak - send a NAK, after all responses that are due
 * @qp: RC QP
 * @syndrome: of the AETH; the PSN is the expected one
 * @end: what the NAK ends. If it ends the QP, no further request is served, and
 *	the QP fails once the NAK has been sent
 *
 * Context: responder's lock held.
 */
void arx_ack_nak(struct arx_qp *qp, u8 syndrome, enum arx_nak_end end)
{
	struct arx_resp *resp = &qp->resp;

	arx_count(qp, SENT_NAK);
	if (syndrome == ARX_NAK(ARX_NAK_INV_REQ))
		arx_count(qp, RESP_INVALID);
	else if (syndrome == ARX_NAK(ARX_NAK_REM_ACCESS))
		arx_count(qp, RESP_ACCESS);
	resp->ack_due = true;
	resp->ack_syndrome = syndrome;
	resp->ack_psn = resp->epsn;
	resp->ack_end = end;
	trace_arx_nak(qp, syndrome, resp->epsn);
	if (end != ARX_END_NOTHING)
		resp->dead = true;
}

/**
 * arx_ack_rnr - ask the requester to send again from the expected PSN
 * @qp: RC QP
 * @timer: the wait, encoded as for ARX_RNR_NAK()
 *
 * Context: responder's lock held.
 */
void arx_ack_rnr(struct arx_qp *qp, u8 timer)
{
	arx_count(qp, SENT_RNR_NAK);
	arx_ack_nak(qp, ARX_RNR_NAK(timer), ARX_END_NOTHING);
	/*
	 * Packets in flight after this are out of sequence; one NAK is enough.
	 */
	qp->resp.nak_sent = true;
	qp->resp.closing = false;
	qp->resp.gap = false;
	qp->resp.refused = false;
}

/**
 * arx_ack_refuse - refuse a request, which ends the QP unless the request may
 *	come again
 * @qp: RC QP
 * @why: not ARX_GRANTED
 *
 * Context: responder's lock held.
 */
void arx_ack_refuse(struct arx_qp *qp, enum arx_verdict why)
{
	switch (why) {
	case ARX_NO_ACCESS:
		arx_ack_nak(qp, ARX_NAK(ARX_NAK_REM_ACCESS), ARX_END_ACCESS);
		break;
	case ARX_NO_PAGES:
		arx_ack_rnr(qp, ARX_ACK_SHORT_TIMER);
		qp->resp.refused = true;
		break;
	case ARX_NO_TARGET:
		arx_ack_nak(qp, ARX_NAK(ARX_NAK_INV_RD_REQ), ARX_END_ACCESS);
		break;
	default:
		arx_ack_nak(qp, ARX_NAK(ARX_NAK_INV_REQ), ARX_END_INVALID);
	}
}

/**
 * arx_ack_nak_is_due - true if a NAK waits for responses before it, or for the
 *	socket
 * @resp: responder
 *
 * Context: responder's lock held.
 */
bool arx_ack_nak_is_due(const struct arx_resp *resp)
{
	return resp->ack_due && resp->ack_syndrome != ARX_ACK_UNLIMITED;
}

/**
 * arx_ack_due - acknowledge all requests so far
 * @qp: RC QP
 *
 * Context: responder's lock held.
 */
void arx_ack_due(struct arx_qp *qp)
{
	struct arx_resp *resp = &qp->resp;

	if (resp->dead)
		return;
	/* A NAK that is still due says more. */
	if (arx_ack_nak_is_due(resp))
		return;
	resp->ack_due = true;
	resp->ack_syndrome = ARX_ACK_UNLIMITED;
	resp->ack_psn = arx_psn_add(resp->epsn, -1);
	resp->ack_end = ARX_END_NOTHING;
}

/**
 * arx_ack_sent - an ACK or NAK has been sent
 * @qp: RC QP; fails if the NAK ends it
 *
 * Context: responder's lock held.
 */
void arx_ack_sent(struct arx_qp *qp)
{
	struct arx_resp *resp = &qp->resp;

	trace_arx_ack_sent(qp, resp->ack_syndrome, resp->ack_psn);
	arx_count(qp, ACKS_SENT);
	resp->ack_due = false;
	resp->unacked = 0;
	if (resp->dead)
		arx_qp_error(qp, arx_ack_event(resp->ack_end));
}

/**
 * arx_ack_is_next - true if an ACK is due and no response before it
 * @resp: responder
 *
 * Context: responder's lock held.
 */
bool arx_ack_is_next(const struct arx_resp *resp)
{
	return resp->ack_due && resp->ack_syndrome == ARX_ACK_UNLIMITED &&
	       list_empty(&resp->due);
}

/**
 * arx_ack_may_cover - true if an ACK is due next, and may wait for a while
 * @resp: responder
 *
 * To make an ACK and to carry it through both network stacks costs as much as
 * several packets with payload, and one ACK may acknowledge many messages
 * (9.7.5.1.2).
 *
 * Context: responder's lock held.
 * Return: false after as many packets as the smallest window of a requester.
 */
bool arx_ack_may_cover(const struct arx_resp *resp)
{
	return resp->unacked < ARX_ACK_WITHIN && arx_ack_is_next(resp);
}

/**
 * arx_ack_hurry - keep the ACK that is due from waiting
 * @resp: responder
 *
 * Context: responder's lock held.
 */
void arx_ack_hurry(struct arx_resp *resp)
{
	resp->unacked = ARX_ACK_WITHIN;
}

/**
 * arx_ack_may_wait - true if one ACK may acknowledge later messages, too
 * @resp: responder
 *
 * While a NIC delivers packets together, the ACK of a message waits until the
 * received packets have been processed: they may contain other messages.
 *
 * Context: responder's lock held.
 */
bool arx_ack_may_wait(const struct arx_resp *resp)
{
	return resp->polled && arx_ack_may_cover(resp);
}
