/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Tracepoints, one on each arrow of Documentation/architecture.rst. A
 * tracepoint that is off is a branch that is never taken, patched into the code
 * when it is turned on. troubleshooting.rst has an example.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM arx

#if !defined(ARX_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ARX_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>

#include "wire.h"

struct arx_cq;
struct arx_cqe;
struct arx_key;
struct arx_qp;
struct arx_run;
struct arx_swqe;

TRACE_DEFINE_ENUM(ARX_OP_SEND);
TRACE_DEFINE_ENUM(ARX_OP_WRITE);
TRACE_DEFINE_ENUM(ARX_OP_READ);
TRACE_DEFINE_ENUM(ARX_OP_READ_RESPONSE);
TRACE_DEFINE_ENUM(ARX_OP_ACK);
TRACE_DEFINE_ENUM(ARX_OP_ATOMIC_ACK);
TRACE_DEFINE_ENUM(ARX_OP_COMPARE_SWAP);
TRACE_DEFINE_ENUM(ARX_OP_FETCH_ADD);
TRACE_DEFINE_ENUM(ARX_OP_FLUSH);
TRACE_DEFINE_ENUM(ARX_OP_ATOMIC_WRITE);
TRACE_DEFINE_ENUM(ARX_OP_RESERVED);
TRACE_DEFINE_ENUM(ARX_FIRST);
TRACE_DEFINE_ENUM(ARX_LAST);
TRACE_DEFINE_ENUM(ARX_IMM);
TRACE_DEFINE_ENUM(ARX_INV);
TRACE_DEFINE_ENUM(ARX_SOLICITED);
TRACE_DEFINE_ENUM(ARX_ACK_REQ);
TRACE_DEFINE_ENUM(ARX_BECN);
TRACE_DEFINE_ENUM(ARX_FECN);
TRACE_DEFINE_ENUM(ARX_REPORTS);
TRACE_DEFINE_ENUM(IB_QPS_RESET);
TRACE_DEFINE_ENUM(IB_QPS_INIT);
TRACE_DEFINE_ENUM(IB_QPS_RTR);
TRACE_DEFINE_ENUM(IB_QPS_RTS);
TRACE_DEFINE_ENUM(IB_QPS_SQD);
TRACE_DEFINE_ENUM(IB_QPS_SQE);
TRACE_DEFINE_ENUM(IB_QPS_ERR);

#define arx_show_op(op)					\
	__print_symbolic(op,				\
		{ ARX_OP_SEND, "send" },		\
		{ ARX_OP_WRITE, "write" },		\
		{ ARX_OP_READ, "read" },		\
		{ ARX_OP_READ_RESPONSE, "response" },	\
		{ ARX_OP_ACK, "ack" },			\
		{ ARX_OP_ATOMIC_ACK, "atomic-ack" },	\
		{ ARX_OP_COMPARE_SWAP, "swap" },	\
		{ ARX_OP_FETCH_ADD, "add" },		\
		{ ARX_OP_FLUSH, "flush" },		\
		{ ARX_OP_ATOMIC_WRITE, "atomic-write" }, \
		{ ARX_OP_RESERVED, "undefined" })

#define arx_show_flags(flags)				\
	__print_flags(flags, "|",			\
		{ ARX_FIRST, "first" },			\
		{ ARX_LAST, "last" },			\
		{ ARX_IMM, "imm" },			\
		{ ARX_INV, "inv" },			\
		{ ARX_SOLICITED, "solicited" },		\
		{ ARX_ACK_REQ, "ack-req" },		\
		{ ARX_BECN, "becn" },			\
		{ ARX_FECN, "fecn" },			\
		{ ARX_REPORTS, "reports" })

#define arx_show_state(state)				\
	__print_symbolic(state,				\
		{ IB_QPS_RESET, "RESET" },		\
		{ IB_QPS_INIT, "INIT" },		\
		{ IB_QPS_RTR, "RTR" },			\
		{ IB_QPS_RTS, "RTS" },			\
		{ IB_QPS_SQD, "SQD" },			\
		{ IB_QPS_SQE, "SQE" },			\
		{ IB_QPS_ERR, "ERR" })

/* ARX_AETH_TYPE of a syndrome, without a macro that tools cannot parse. */
#define arx_show_aeth(syndrome)				\
	__print_symbolic(((syndrome) >> 5) & 3,	\
		{ 0, "ack" },				\
		{ 1, "rnr" },				\
		{ 3, "nak" })

/* The requester takes a work request from the send queue. */
TRACE_EVENT(arx_post,

	TP_PROTO(const struct arx_qp *qp, const struct arx_swqe *swqe),

	TP_ARGS(qp, swqe),

	TP_STRUCT__entry(
		__string(dev, qp->ib.device->name)
		__field(u32, qpn)
		__field(u64, wr_id)
		__field(u8, op)
		__field(u32, len)
		__field(u32, psn)
		__field(u32, npkts)
		__field(u32, status)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qp->id.nr;
		__entry->wr_id = swqe->wqe.wr_id;
		__entry->op = swqe->op;
		__entry->len = swqe->length;
		__entry->psn = swqe->first_psn;
		__entry->npkts = swqe->npkts;
		__entry->status = swqe->status;
	),

	TP_printk("dev=%s qpn=%u wr_id=0x%llx op=%s len=%u psn=%u npkts=%u status=%s",
		  __get_str(dev), __entry->qpn, __entry->wr_id,
		  arx_show_op(__entry->op), __entry->len, __entry->psn,
		  __entry->npkts, rdma_show_wc_status(__entry->status))
);

/* A stage sends a run, to @peer on this machine or (NULL) to the wire. */
TRACE_EVENT(arx_run_out,

	TP_PROTO(const struct arx_qp *qp, const struct arx_run *run,
		 const struct arx_qp *peer),

	TP_ARGS(qp, run, peer),

	TP_STRUCT__entry(
		__string(dev, qp->ib.device->name)
		__field(u32, qpn)
		__field(u32, dest)
		__field(u8, op)
		__field(u16, flags)
		__field(u32, psn)
		__field(u32, npkts)
		__field(u32, len)
		__field(bool, wire)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qp->id.nr;
		__entry->dest = run->h.qpn;
		__entry->op = run->h.op;
		__entry->flags = run->h.flags;
		__entry->psn = run->h.psn;
		__entry->npkts = run->npkts;
		__entry->len = run->len;
		__entry->wire = !peer;
	),

	TP_printk("dev=%s qpn=%u dest=%u op=%s psn=%u npkts=%u len=%u flags=%s to=%s",
		  __get_str(dev), __entry->qpn, __entry->dest,
		  arx_show_op(__entry->op), __entry->psn, __entry->npkts,
		  __entry->len, arx_show_flags(__entry->flags),
		  __entry->wire ? "wire" : "peer")
);

/* A run arrives. @expected: PSN that the stage waits for */
TRACE_EVENT(arx_run_in,

	TP_PROTO(const struct arx_qp *qp, const struct arx_run *run,
		 u32 expected),

	TP_ARGS(qp, run, expected),

	TP_STRUCT__entry(
		__string(dev, qp->ib.device->name)
		__field(u32, qpn)
		__field(u8, op)
		__field(u16, flags)
		__field(u32, psn)
		__field(u32, expected)
		__field(u32, npkts)
		__field(u32, len)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qp->id.nr;
		__entry->op = run->h.op;
		__entry->flags = run->h.flags;
		__entry->psn = run->h.psn;
		__entry->expected = expected;
		__entry->npkts = run->npkts;
		__entry->len = run->len;
	),

	TP_printk("dev=%s qpn=%u op=%s psn=%u expected=%u npkts=%u len=%u flags=%s",
		  __get_str(dev), __entry->qpn, arx_show_op(__entry->op),
		  __entry->psn, __entry->expected, __entry->npkts,
		  __entry->len, arx_show_flags(__entry->flags))
);

DECLARE_EVENT_CLASS(arx_aeth,

	TP_PROTO(const struct arx_qp *qp, u8 syndrome, u32 psn),

	TP_ARGS(qp, syndrome, psn),

	TP_STRUCT__entry(
		__string(dev, qp->ib.device->name)
		__field(u32, qpn)
		__field(u8, syndrome)
		__field(u32, psn)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qp->id.nr;
		__entry->syndrome = syndrome;
		__entry->psn = psn;
	),

	TP_printk("dev=%s qpn=%u kind=%s value=%u psn=%u", __get_str(dev),
		  __entry->qpn, arx_show_aeth(__entry->syndrome),
		  __entry->syndrome & 0x1f, __entry->psn)
);

#define DEFINE_ARX_AETH_EVENT(name)				\
	DEFINE_EVENT(arx_aeth, name,				\
		TP_PROTO(const struct arx_qp *qp, u8 syndrome, u32 psn), \
		TP_ARGS(qp, syndrome, psn))

/* In turn: a NAK is due; an ACK or NAK has been sent; a NAK has arrived. */
DEFINE_ARX_AETH_EVENT(arx_nak);
DEFINE_ARX_AETH_EVENT(arx_ack_sent);
DEFINE_ARX_AETH_EVENT(arx_nak_rcvd);

DECLARE_EVENT_CLASS(arx_move,

	TP_PROTO(const struct arx_qp *qp, u32 from, u32 to),

	TP_ARGS(qp, from, to),

	TP_STRUCT__entry(
		__string(dev, qp->ib.device->name)
		__field(u32, qpn)
		__field(u32, from)
		__field(u32, to)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qp->id.nr;
		__entry->from = from;
		__entry->to = to;
	),

	TP_printk("dev=%s qpn=%u from=%u to=%u", __get_str(dev), __entry->qpn,
		  __entry->from, __entry->to)
);

/*
 * The oldest PSN that is not acknowledged moves; the next PSN to send moves
 * back, or forward over packets that were acknowledged meanwhile.
 */
DEFINE_EVENT(arx_move, arx_acked,
	TP_PROTO(const struct arx_qp *qp, u32 from, u32 to),
	TP_ARGS(qp, from, to));
DEFINE_EVENT(arx_move, arx_rewind,
	TP_PROTO(const struct arx_qp *qp, u32 from, u32 to),
	TP_ARGS(qp, from, to));

/* The requester ends a turn, for @reason. */
TRACE_EVENT(arx_stop,

	TP_PROTO(const struct arx_qp *qp, const char *reason),

	TP_ARGS(qp, reason),

	TP_STRUCT__entry(
		__string(dev, qp->ib.device->name)
		__field(u32, qpn)
		__string(reason, reason)
		__field(u32, una)
		__field(u32, psn)
		__field(u32, wqes)
		__field(bool, rnr)
	),

	TP_fast_assign(
		__assign_str(dev);
		__assign_str(reason);
		__entry->qpn = qp->id.nr;
		__entry->una = READ_ONCE(qp->comp.una);
		__entry->psn = qp->req.psn;
		__entry->wqes = qp->req.fetched - READ_ONCE(qp->comp.done);
		__entry->rnr = READ_ONCE(qp->comp.rnr_wait);
	),

	TP_printk("dev=%s qpn=%u reason=%s una=%u psn=%u wqes=%u rnr=%d",
		  __get_str(dev), __entry->qpn, __get_str(reason),
		  __entry->una, __entry->psn, __entry->wqes, __entry->rnr)
);

/* Nothing was acknowledged in time, or the time of an RNR NAK is over. */
TRACE_EVENT(arx_timer,

	TP_PROTO(const struct arx_qp *qp, bool rnr, u8 left),

	TP_ARGS(qp, rnr, left),

	TP_STRUCT__entry(
		__string(dev, qp->ib.device->name)
		__field(u32, qpn)
		__field(bool, rnr)
		__field(u32, una)
		__field(u8, left)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qp->id.nr;
		__entry->rnr = rnr;
		__entry->una = qp->comp.una;
		__entry->left = left;
	),

	TP_printk("dev=%s qpn=%u timer=%s una=%u retries_left=%u",
		  __get_str(dev), __entry->qpn,
		  __entry->rnr ? "rnr" : "retransmit", __entry->una,
		  __entry->left)
);

/* The state of a QP changes. */
TRACE_EVENT(arx_state,

	TP_PROTO(const struct arx_qp *qp, enum ib_qp_state from,
		 enum ib_qp_state to),

	TP_ARGS(qp, from, to),

	TP_STRUCT__entry(
		__string(dev, qp->ib.device->name)
		__field(u32, qpn)
		__field(u32, from)
		__field(u32, to)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qp->id.nr;
		__entry->from = from;
		__entry->to = to;
	),

	TP_printk("dev=%s qpn=%u from=%s to=%s", __get_str(dev), __entry->qpn,
		  arx_show_state(__entry->from), arx_show_state(__entry->to))
);

/*
 * A consumer gets an asynchronous event. @number: of the QP or SRQ, or the CQ's
 * in "rdma resource show cq"
 */
TRACE_EVENT(arx_event,

	TP_PROTO(const struct ib_device *ib, u32 number,
		 enum ib_event_type event),

	TP_ARGS(ib, number, event),

	TP_STRUCT__entry(
		__string(dev, ib->name)
		__field(u32, number)
		__field(u32, event)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->number = number;
		__entry->event = event;
	),

	TP_printk("dev=%s number=%u event=%s", __get_str(dev), __entry->number,
		  rdma_show_ib_event(__entry->event))
);

/* A CQE is written. */
TRACE_EVENT(arx_complete,

	TP_PROTO(const struct arx_cq *cq, const struct arx_cqe *cqe),

	TP_ARGS(cq, cqe),

	TP_STRUCT__entry(
		__string(dev, cq->ib.device->name)
		__field(u32, cqn)
		__field(u32, qpn)
		__field(u64, wr_id)
		__field(u32, status)
		__field(u32, len)
		__field(bool, send)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->cqn = cq->ib.res.id;
		__entry->qpn = cqe->qpn;
		__entry->wr_id = cqe->wr_id;
		__entry->status = cqe->status;
		__entry->len = cqe->byte_len;
		__entry->send = cqe->is_send;
	),

	TP_printk("dev=%s cqn=%u qpn=%u queue=%s wr_id=0x%llx len=%u status=%s",
		  __get_str(dev), __entry->cqn, __entry->qpn,
		  __entry->send ? "send" : "receive", __entry->wr_id,
		  __entry->len, rdma_show_wc_status(__entry->status))
);

/* The consumer of a CQ is notified. */
TRACE_EVENT(arx_cq_event,

	TP_PROTO(const struct arx_cq *cq),

	TP_ARGS(cq),

	TP_STRUCT__entry(
		__string(dev, cq->ib.device->name)
		__field(u32, cqn)
		__field(u32, prod)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->cqn = cq->ib.res.id;
		__entry->prod = READ_ONCE(cq->prod);
	),

	TP_printk("dev=%s cqn=%u prod=%u", __get_str(dev), __entry->cqn,
		  __entry->prod)
);

/* A key becomes invalid: nobody reaches its memory by it any more. */
TRACE_EVENT(arx_key_revoked,

	TP_PROTO(const struct arx_key *key),

	TP_ARGS(key),

	TP_STRUCT__entry(
		__string(dev, key->pd->device->name)
		__field(u32, key)
		__field(u64, iova)
		__field(u64, length)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->key = key->value;
		__entry->iova = key->iova;
		__entry->length = key->length;
	),

	TP_printk("dev=%s key=0x%x iova=0x%llx length=%llu", __get_str(dev),
		  __entry->key, __entry->iova, __entry->length)
);

/* A request failed at this QP, as its requester or as its responder. */
TRACE_EVENT(arx_fault,

	TP_PROTO(const struct arx_qp *qp, bool requester,
		 enum ib_wc_status status),

	TP_ARGS(qp, requester, status),

	TP_STRUCT__entry(
		__string(dev, qp->ib.device->name)
		__field(u32, qpn)
		__field(bool, requester)
		__field(u32, status)
	),

	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qp->id.nr;
		__entry->requester = requester;
		__entry->status = status;
	),

	TP_printk("dev=%s qpn=%u by=%s status=%s", __get_str(dev), __entry->qpn,
		  __entry->requester ? "requester" : "responder",
		  rdma_show_wc_status(__entry->status))
);

#endif /* ARX_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace

#include <trace/define_trace.h>
