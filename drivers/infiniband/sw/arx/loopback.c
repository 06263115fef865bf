// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests to a QP of this machine: its responder reads the payload in place
 * and copies it once, without headers, packets or an ICRC. The responder checks
 * such a run exactly as one from the wire, so that both behave alike.
 */

#include <linux/udp.h>

#include "ip.h"
#include "loopback.h"
#include "responder.h"
#include "send.h"

static int arx_loopback_datagram(struct arx_qp *peer, const struct arx_av *av,
				 struct arx_run *run)
{
	u8 grh[ARX_GRH_LEN] __aligned(4);

	arx_grh_write(av, grh, sizeof(struct udphdr) +
		      arx_headers_len(&run->h) + run->len + run->h.pad +
		      ARX_ICRC_LEN, run->h.psn);
	run->grh = grh;
	run->smac = NULL;
	run->vlan = 0xffff;
	run->network = av->ipv4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	return arx_responder_rx(peer, run);
}

/**
 * arx_loopback_rx - hand a request over to a QP of this machine
 * @peer: from arx_send_run()
 * @av: destination
 * @run: the request; its payload iterator is used up
 *
 * The peer responds in arx_loopback_respond(); datagrams have no response.
 *
 * Context: as arx_send_run(); the requester's lock is held.
 * Return: as arx_responder_rx().
 */
int arx_loopback_rx(struct arx_qp *peer, const struct arx_av *av,
		    struct arx_run *run)
{
	if (run->h.service == ARX_SERVICE_UD)
		return arx_loopback_datagram(peer, av, run);
	return arx_responder_rx(peer, run);
}

/**
 * arx_loopback_respond - make a peer on this machine respond to a turn's
 *	requests
 * @qp: whose requester has sent
 * @peer: destination of the turn's requests, or NULL
 * @bytes: of the requester's share; reduced by the peer's responses
 *
 * READ responses are copied on behalf of the reader: those beyond @bytes wait
 * for its next turns.
 *
 * Context: as arx_send_run(), and in the same RCU read section.
 * Return: true if the peer has more responses.
 */
bool arx_loopback_respond(struct arx_qp *qp, struct arx_qp *peer, u32 *bytes)
{
	unsigned long *pending = &qp->req.pending;

	if (unlikely(test_bit(ARX_REQ_PULL, pending))) {
		peer = arx_send_other(qp);
		if (peer)
			clear_bit(ARX_REQ_PULL, pending);
		else
			arx_send_give_back(qp);
	}
	if (!peer || !arx_qp_is_acked(qp) ||
	    !arx_responder_run(peer, bytes))
		return false;
	set_bit(ARX_REQ_PULL, pending);
	return true;
}
