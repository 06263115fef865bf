// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From QP to QP on one host and network namespace: the peer's responder (or
 * completer) reads the payload where it lies and copies it once, without
 * headers, packets or an ICRC. It checks a run here exactly as one from the
 * wire, so that both behave alike.
 */

#include <linux/udp.h>
#include <net/ipv6.h>

#include "ip.h"
#include "net.h"
#include "qp.h"
#include "tx.h"

static bool arx_loopback_connected(const struct arx_qp *qp,
				   const struct arx_av *av,
				   const struct arx_qp *peer)
{
	const struct arx_av *back = rcu_dereference(peer->av);

	return back && READ_ONCE(peer->attr.dest_qp_num) == qp->id.nr &&
	       ipv6_addr_equal(&back->daddr, &av->saddr) &&
	       ipv6_addr_equal(&back->saddr, &av->daddr);
}

/* A link-local address of another device may be somebody else's on this link. */
static bool arx_loopback_addressed(const struct arx_dev *dev,
				   const struct arx_av *av,
				   struct arx_dev *peer_dev)
{
	if (peer_dev != dev &&
	    ipv6_addr_type(&av->daddr) & IPV6_ADDR_LINKLOCAL)
		return false;
	return arx_net_dev_has(peer_dev, &av->daddr);
}

/* The QP that a packet to @qpn would reach, if it needs no wire. */
static struct arx_qp *arx_loopback_peer(const struct arx_qp *qp,
					const struct arx_av *av, u32 qpn)
{
	struct arx_dev *dev = arx_qp_dev(qp);
	struct arx_dev *peer_dev;
	struct arx_qp *peer;

	peer = arx_qp_find(qpn);
	if (!peer || peer->service != qp->service)
		return NULL;

	peer_dev = arx_qp_dev(peer);
	if (!READ_ONCE(dev->port_active) || !READ_ONCE(peer_dev->port_active) ||
	    !net_eq(dev_net(dev->netdev), dev_net(peer_dev->netdev)))
		return NULL;

	if (qp->service == ARX_SERVICE_UD)
		return arx_loopback_addressed(dev, av, peer_dev) ? peer : NULL;
	return arx_loopback_connected(qp, av, peer) ? peer : NULL;
}

static int arx_loopback_datagram(struct arx_qp *peer, const struct arx_av *av,
				 struct arx_run *run)
{
	u8 grh[ARX_GRH_LEN] __aligned(4);

	run->h.pad = -run->len & 3;
	arx_grh_write(av, grh, sizeof(struct udphdr) +
		      arx_headers_len(&run->h) + run->len + run->h.pad +
		      ARX_ICRC_LEN, run->h.psn);
	run->grh = grh;
	run->smac = NULL;
	run->vlan = 0xffff;
	run->network = av->ipv4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	return arx_responder_rx(peer, run);
}

/* The rest of @run's memory is there: a DMA region may name what is none. */
static bool arx_loopback_readable(const struct arx_run *run)
{
	struct arx_iter it __uninitialized;

	if (run->payload.room >= run->len)
		return true;
	it = run->payload;
	return !arx_iter_skip(&it, run->len);
}

static int arx_loopback_deliver(struct arx_qp *peer, const struct arx_av *av,
				struct arx_run *run)
{
	if (run->h.service == ARX_SERVICE_UD)
		return arx_loopback_datagram(peer, av, run);

	/* What is longer than the receiver's path MTU must not get through. */
	run->mtu = READ_ONCE(peer->mtu);
	switch (run->h.op) {
	case ARX_OP_READ_RESPONSE:
		/* The fault of this side, of which a NAK tells the reader. */
		if (!arx_loopback_readable(run))
			return -EFAULT;
		fallthrough;
	case ARX_OP_ACK:
	case ARX_OP_ATOMIC_ACK:
		/* Its requester may be the caller's caller: not here. */
		if (arx_completer_rx(peer, run))
			arx_qp_go_on(peer);
		return 0;
	default:
		run->more = true;	/* answered by arx_send_flush() */
		return arx_responder_rx(peer, run);
	}
}

/* A QP that is connected has one address vector for one peer, or none here. */
static bool arx_send_knows_peer(const struct arx_qp *qp,
				const struct arx_av *av, u32 qpn,
				const struct arx_tx_batch *batch)
{
	return batch->av == av &&
	       (qp->service != ARX_SERVICE_UD ||
		(batch->peer && batch->peer->id.nr == qpn));
}

/* The same for each run of a batch, so looked for once. */
static struct arx_qp *arx_send_peer(const struct arx_qp *qp,
				    const struct arx_av *av, u32 qpn,
				    const struct arx_tx_batch *batch)
{
	return arx_send_knows_peer(qp, av, qpn, batch) ?
	       batch->peer : arx_loopback_peer(qp, av, qpn);
}

/**
 * arx_send_run - hand a run over, to the wire or to a QP on this host
 * @qp: the sender
 * @av: where to
 * @run: what; its payload iterator is used up
 * @batch: of the stage that sends, which ends it: the requester by
 *	arx_send_flush(), the responder by arx_tx_flush()
 *
 * Context: bottom halves off; the lock of the stage that sends is held.
 * Return: 0; -EAGAIN, nothing was sent and the QP will be scheduled when there
 * is room; -EFAULT, the payload cannot be read; another error: lost on the way,
 * as any packet may be.
 */
int arx_send_run(struct arx_qp *qp, struct arx_av *av, struct arx_run *run,
		 struct arx_tx_batch *batch)
{
	struct arx_qp *peer = arx_send_peer(qp, av, run->h.qpn, batch);

	if (!peer) {
		/* Made for a peer that has gone since: lost with it. */
		if (run->len > ARX_TX_RUN_MAX)
			return -EHOSTUNREACH;
		return arx_tx_run(qp, av, run, batch);
	}

	/* Datagrams for another host: these need what @batch says. */
	if (unlikely(batch->n))
		arx_tx_flush(qp, batch);
	batch->av = av;
	batch->peer = peer;
	arx_count(arx_qp_dev(qp), LOOPBACK_RUNS);
	arx_count_add(arx_qp_dev(qp), LOOPBACK_BYTES, run->len);
	return arx_loopback_deliver(peer, av, run);
}

/* The QP that a connected QP is connected to, if it is on this host. */
static struct arx_qp *arx_loopback_other(const struct arx_qp *qp)
{
	const struct arx_av *av = rcu_dereference(qp->av);

	return av && qp->service != ARX_SERVICE_UD ?
	       arx_loopback_peer(qp, av, qp->attr.dest_qp_num) : NULL;
}

/**
 * arx_send_flush - let what the requester has sent take effect
 * @qp: the sender; its batch is empty afterwards
 * @bytes: of the requester's share; less what its peer replies with
 *
 * Packets leave. A peer on this host answers, once for all requests of a turn,
 * as it would those that arrive together. READ responses are copied on behalf
 * of who reads: what is more than @bytes waits for its next turns.
 *
 * Context: as arx_send_run(), and in the same RCU read section.
 * Return: true if the peer has more to reply.
 */
bool arx_send_flush(struct arx_qp *qp, u32 *bytes)
{
	struct arx_tx_batch *batch = &qp->req.batch;
	unsigned long *pending = &qp->req.pending;
	struct arx_qp *peer = batch->peer;

	if (batch->av)
		WRITE_ONCE(qp->req.local, peer);
	arx_tx_flush(qp, batch);
	if (unlikely(test_bit(ARX_REQ_PULL, pending))) {
		clear_bit(ARX_REQ_PULL, pending);
		peer = arx_loopback_other(qp);
	}
	if (!peer || qp->service != ARX_SERVICE_RC ||
	    !arx_responder_run(peer, bytes))
		return false;
	set_bit(ARX_REQ_PULL, pending);
	return true;
}

/**
 * arx_send_reader - who has a QP's READ responses copied
 * @qp: whose responder it is
 *
 * On one host it is the peer's requester, which reads, as long as it can send.
 *
 * Context: RCU read side.
 * Return: the peer, or NULL: @qp sends them by itself.
 */
struct arx_qp *arx_send_reader(const struct arx_qp *qp)
{
	struct arx_qp *peer = arx_loopback_other(qp);

	return peer && arx_requester_may_send(peer) ? peer : NULL;
}

/**
 * arx_send_later - have a responder go on with what is more than its share
 * @qp: whose responder it is
 *
 * What goes to the wire is sent by a softirq, which the socket holds back. On
 * this host the requester that reads runs this responder again. If it cannot
 * send any more, @qp goes on by itself, to send the NAK that may be behind.
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
 * arx_send_give_back - a peer's responder must go on by itself
 * @qp: a QP that is to be reset or destroyed
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
 * arx_send_max - the most payload one run to a peer should carry
 * @qp: the sender
 * @av: where to
 * @qpn: peer's QPN
 * @batch: that it may join
 *
 * Context: RCU read side.
 * Return: bytes; whole packets of the path MTU.
 */
u32 arx_send_max(const struct arx_qp *qp, const struct arx_av *av, u32 qpn,
		 const struct arx_tx_batch *batch)
{
	if (arx_send_peer(qp, av, qpn, batch))
		return round_down(ARX_LOOPBACK_RUN_MAX, qp->mtu);
	return arx_tx_max(batch, qp->mtu);
}
