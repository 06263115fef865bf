// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The router of both sending stages: to the wire, or to a QP of this machine
 * and layer-3 domain. Requests go to the responder of that QP, responses to its
 * completer. The sending stage hands them over itself, so the order of
 * calls is requester, responder, completer, whichever QPs these belong to.
 */

#include <net/ipv6.h>

#include "gids.h"
#include "net.h"
#include "schedule.h"
#include "send.h"
#include "state.h"
#include "trace.h"
#include "tx.h"

/* True if both source addresses are in one layer-3 domain. */
static bool arx_send_is_near(const struct arx_qp *qp, const struct arx_av *av,
			     const struct arx_qp *peer,
			     const struct arx_av *back)
{
	struct arx_l3_key here = arx_av_l3(arx_qp_dev(qp), av);
	struct arx_l3_key there = arx_av_l3(arx_qp_dev(peer), back);

	return arx_l3_same(&here, &there);
}

static bool arx_send_is_connected(const struct arx_qp *qp,
				  const struct arx_av *av,
				  const struct arx_qp *peer)
{
	const struct arx_av *back = rcu_dereference(peer->av);

	return READ_ONCE(peer->attr.dest_qp_num) == qp->id.nr &&
	       arx_av_is_peer(back, &av->saddr, &av->daddr) &&
	       arx_send_is_near(qp, av, peer, back);
}

/*
 * On this link, the link-local address of another device may belong to another
 * node.
 */
static bool arx_send_is_addressed(const struct arx_dev *dev,
				  const struct arx_av *av,
				  struct arx_dev *peer_dev)
{
	struct arx_l3_key l3 = arx_av_l3(dev, av);

	if (peer_dev != dev &&
	    ipv6_addr_type(&av->daddr) & IPV6_ADDR_LINKLOCAL)
		return false;
	return arx_gids_has(peer_dev, &l3, &av->daddr);
}

static bool arx_send_may_be_near(const struct arx_dev *dev)
{
	return READ_ONCE(dev->port_active) && !READ_ONCE(dev->capture);
}

/* The QP that a packet to @qpn would reach, if it needs no wire. */
static struct arx_qp *arx_send_find(const struct arx_qp *qp,
				    const struct arx_av *av, u32 qpn)
{
	struct arx_dev *dev = arx_qp_dev(qp);
	struct arx_dev *peer_dev;
	struct arx_qp *peer;

	peer = arx_qp_find(qpn);
	if (!peer || peer->service != qp->service)
		return NULL;

	peer_dev = arx_qp_dev(peer);
	if (!arx_send_may_be_near(dev) || !arx_send_may_be_near(peer_dev))
		return NULL;

	if (!arx_qp_is_connected(qp))
		return arx_send_is_addressed(dev, av, peer_dev) ? peer : NULL;
	return arx_send_is_connected(qp, av, peer) ? peer : NULL;
}

/*
 * A connected QP has one address vector for one peer; any other sender is
 * ignored.
 */
static bool arx_send_knows_peer(const struct arx_qp *qp,
				const struct arx_av *av, u32 qpn,
				const struct arx_tx_batch *batch)
{
	return batch->av == av &&
	       (arx_qp_is_connected(qp) ||
		(batch->peer && batch->peer->id.nr == qpn));
}

/* Cached for each run of a batch. */
static struct arx_qp *arx_send_peer(const struct arx_qp *qp,
				    const struct arx_av *av, u32 qpn,
				    const struct arx_tx_batch *batch)
{
	return arx_send_knows_peer(qp, av, qpn, batch) ?
	       batch->peer : arx_send_find(qp, av, qpn);
}

/**
 * arx_send_run - send a run over the wire, or find its QP on this machine
 * @qp: the sender
 * @av: destination
 * @run: the run; the wire uses up its payload iterator
 * @out: of the sending stage, which flushes it by arx_tx_flush()
 * @peer: receives the QP of this machine that must get @run: the caller hands
 *	it over, to the responder or to the completer. NULL: the run went to the
 *	wire
 *
 * Context: bottom halves off; the lock of the sending stage is held.
 * Return: 0 for a QP of this machine; else 0; -EAGAIN: nothing was sent and the
 * QP will be scheduled when there is room; -EFAULT: the payload cannot be read;
 * another error: lost on the way, as any packet may be.
 */
int arx_send_run(struct arx_qp *qp, struct arx_av *av, struct arx_run *run,
		 struct arx_tx_out *out, struct arx_qp **peer)
{
	struct arx_tx_batch *batch = &out->batch;

	*peer = arx_send_peer(qp, av, run->h.qpn, batch);
	trace_arx_run_out(qp, run, *peer);
	if (!*peer) {
		/* Made for a peer that was destroyed since: the run is lost. */
		if (run->len > ARX_TX_RUN_MAX)
			return -EHOSTUNREACH;
		return arx_tx_run(qp, av, run, out);
	}

	/* Datagrams for another machine: their batch needs @batch. */
	if (unlikely(batch->n))
		arx_tx_flush(qp, out);
	batch->av = av;
	batch->peer = *peer;
	arx_count(qp, LOOPBACK_RUNS);
	arx_count_add(qp, LOOPBACK_BYTES, run->len);
	return 0;
}

/**
 * arx_send_other - the QP to which a connected QP is connected
 * @qp: any QP
 *
 * Context: RCU read side.
 * Return: that QP, or NULL if it is not on this machine.
 */
struct arx_qp *arx_send_other(const struct arx_qp *qp)
{
	const struct arx_av *av = rcu_dereference(qp->av);

	return av && arx_qp_is_connected(qp) ?
	       arx_send_find(qp, av, qp->attr.dest_qp_num) : NULL;
}

/**
 * arx_send_reader - the QP on whose behalf READ responses are copied
 * @qp: owner of the responder
 *
 * On one machine that is the peer, which reads, as long as it can send.
 *
 * Context: RCU read side.
 * Return: the peer, or NULL: @qp sends them by itself.
 */
struct arx_qp *arx_send_reader(const struct arx_qp *qp)
{
	struct arx_qp *peer = arx_send_other(qp);

	if (!peer || !arx_qp_may(peer, ARX_QP_SEND | ARX_QP_FLUSH))
		return NULL;
	return peer;
}

/**
 * arx_send_later - continue a responder beyond its share
 * @qp: owner of the responder
 *
 * Responses to the wire are sent by a softirq, which the socket bounds. On this
 * machine the requester that reads runs this responder again. If that requester
 * cannot send any more, @qp continues by itself, to send the NAK that may
 * follow.
 *
 * Context: bottom halves off; responder's lock of @qp may be held.
 */
void arx_send_later(struct arx_qp *qp)
{
	struct arx_qp *peer;

	arx_section_enter();
	peer = arx_send_reader(qp);
	if (peer) {
		set_bit(ARX_REQ_PULL, &peer->req.pending);
		arx_qp_go_on(peer);
	} else {
		arx_qp_schedule(qp);
	}
	arx_section_leave();
}

/**
 * arx_send_give_back - make a peer's responder continue by itself
 * @qp: a QP that is to be reset or destroyed, or whose peer now needs packets
 *
 * Context: bottom halves off, or process context.
 */
void arx_send_give_back(struct arx_qp *qp)
{
	struct arx_qp *peer;

	if (!test_and_clear_bit(ARX_REQ_PULL, &qp->req.pending))
		return;
	arx_section_enter();
	peer = arx_qp_find(qp->attr.dest_qp_num);
	if (peer)
		arx_qp_schedule(peer);
	arx_section_leave();
}

/**
 * arx_send_max - maximum payload of one run to a peer
 * @qp: the sender
 * @av: destination
 * @qpn: peer's QPN
 * @batch: the batch that the run may join
 *
 * Context: RCU read side.
 * Return: bytes; whole packets of the path MTU.
 */
u32 arx_send_max(const struct arx_qp *qp, const struct arx_av *av, u32 qpn,
		 const struct arx_tx_batch *batch)
{
	if (arx_send_peer(qp, av, qpn, batch))
		return round_down(ARX_LOOPBACK_RUN_MAX, qp->mtu);
	return arx_tx_max(batch, qp->mtu, arx_tx_goes_alone(qp));
}

/**
 * arx_send_cost - what a run takes of its sender's share
 * @qp: the sender
 * @peer: the QP of this machine that got the run, or NULL
 * @len: bytes of payload
 * @npkts: packets
 *
 * Return: bytes.
 */
u32 arx_send_cost(const struct arx_qp *qp, const struct arx_qp *peer, u32 len,
		  u32 npkts)
{
	if (!peer && unlikely(arx_tx_goes_alone(qp)))
		return max(len, npkts * ARX_TX_ALONE);
	return len;
}
