// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Congestion notification packets (CNPs), A17.9. A router that is congested
 * marks packets (ECN, RFC 3168). The end that receives marked packets sends a
 * CNP to the end that sent them, and that end sends more slowly.
 */

#include <linux/timekeeping.h>

#include "cnp.h"
#include "congestion.h"
#include "tx.h"

/*
 * True if the caller is to send a CNP at time @now, in units of 1024 ns. @last
 * was read from cnp_sent. Packets of one QP may arrive on several CPUs: the CPU
 * that stores its time sends. More than N units take longer than N us.
 */
static bool arx_cnp_is_due(struct arx_qp *qp, u32 last, u32 now)
{
	const struct arx_dev *dev = arx_qp_dev(qp);

	now |= 1;	/* 0: never */
	if (last &&
	    now - last <= READ_ONCE(dev->np_min_time_between_cnps_usecs))
		return false;
	return cmpxchg(&qp->cnp_sent, last, now) == last;
}

static void arx_cnp_send(struct arx_qp *qp)
{
	struct arx_tx_out out = { .order.cpu = smp_processor_id() };
	struct arx_run run = {
		.h = {
			.op = ARX_OP_CNP,
			.service = ARX_SERVICE_CNP,
			.flags = ARX_FIRST | ARX_LAST | ARX_BECN,
			.pkey = ARX_PKEY,
			.qpn = qp->attr.dest_qp_num,
		},
		.mtu = qp->mtu,
	};
	int err;

	arx_iter_none(&run.payload);
	arx_run_size(&run, 0);
	err = arx_tx_run(qp, rcu_dereference(qp->av), &run, &out);
	arx_tx_flush(qp, &out);
	if (!err && !out.dropped)
		arx_count(qp, CNP_SENT);
}

/*
 * Send a CNP and return true, unless the last one was sent a moment ago. The
 * clock is read after cnp_sent: a CPU that sees when another CPU has sent a CNP
 * then reads no earlier time. An earlier time would look like one long after
 * that CNP.
 */
static bool arx_cnp_ask(struct arx_qp *qp)
{
	u32 last = smp_load_acquire(&qp->cnp_sent); /* see arx_cnp_is_due() */
	u32 now = ktime_get_ns() >> 10;

	if (!arx_cnp_is_due(qp, last, now))
		return false;
	arx_cnp_send(qp);
	return true;
}

/**
 * arx_cnp_marked - packets were marked on their way here
 * @qp: any QP; only RC and XRC send CNPs
 * @run: the packets. A slower sender sends as many ACKs, so ACKs cause no CNP
 *
 * Context: softirq, in a section.
 */
void arx_cnp_marked(struct arx_qp *qp, const struct arx_run *run)
{
	arx_count_add(qp, ECN_MARKED, run->npkts);
	if (!arx_qp_is_acked(qp) || run->h.op == ARX_OP_ACK ||
	    !arx_cnp_ask(qp))
		return;
	/* Fewer READs are requested, too, if the peer ignores the CNP. */
	if (run->h.op == ARX_OP_READ_RESPONSE)
		arx_congestion_cnp(qp);
}

/**
 * arx_cnp_rx - process a received CNP
 * @qp: RC or XRC QP
 * @h: headers of the CNP. One without BECN asks for nothing
 *
 * Context: softirq, in a section.
 */
void arx_cnp_rx(struct arx_qp *qp, const struct arx_headers *h)
{
	if (h->flags & ARX_BECN && arx_congestion_cnp(qp))
		arx_count(qp, CNP_HANDLED);
	else
		arx_count(qp, CNP_IGNORED);
}
