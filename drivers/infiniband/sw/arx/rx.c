// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Turns packets into runs. The stack hands over packets of the UDP port, in
 * softirq context. A packet is accepted only if everything about it is right:
 * lengths, ICRC, partition, QP, service, state and both addresses. Any other
 * packet changes a counter. Consecutive packets of one message become one run.
 */

#include <linux/if_vlan.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "cnp.h"
#include "completer.h"
#include "gids.h"
#include "super.h"
#include "gso.h"
#include "ip.h"
#include "mcast.h"
#include "net.h"
#include "requester.h"
#include "responder.h"
#include "rx.h"
#include "state.h"

/**
 * struct arx_rx - packets from the stack, on their way to QPs
 * @l3: the socket's layer-3 domain
 * @netdev: the receiving netdev
 * @dev: from arx_rx_dev(), or NULL
 * @joined: they came joined: GRO has checked the ICRCs, or there are none
 * @avoided: there are no ICRCs
 * @marked: a router has marked the packets, which then share an IP header
 * @size: gso_size of joined packets
 * @saddr: source address, v4-mapped
 * @daddr: destination address, v4-mapped
 * @first: packets of the present run, linked by ->next; NULL: none
 * @last: the last of these packets
 * @open: the next packet may be added to the run, because @last is full
 * @first_len: bytes of the payload of @first, and of all packets but the last
 * @qp: destination of the run
 * @run: the run; headers of @first
 * @wake: the completer of @qp asks for its requester to run
 */
struct arx_rx {
	struct arx_l3 *l3;
	struct net_device *netdev;
	struct arx_dev *dev;
	bool joined;
	bool avoided;
	bool marked;
	u32 size;
	struct in6_addr saddr;
	struct in6_addr daddr;
	struct sk_buff *first;
	struct sk_buff *last;
	bool open;
	u32 first_len;
	struct arx_qp *qp;
	struct arx_run run;
	bool wake;
};

/* Where a packet arrived. The stack hands a VRF's over as from its netdev. */
static struct net_device *arx_rx_netdev(const struct sk_buff *skb)
{
	struct net_device *netdev = skb->dev;
	int ifindex;

	if (!netif_is_l3_master(netdev))
		return netdev;
	ifindex = ip_hdr(skb)->version == 4 ? inet_sdif(skb) : inet6_sdif(skb);
	return dev_get_by_index_rcu(dev_net(netdev), ifindex) ?: netdev;
}

/*
 * The device that counts packets of no QP, or NULL. The search may walk all
 * devices, so it is not done for packets that reach a QP.
 */
static struct arx_dev *arx_rx_dev(struct arx_rx *rx)
{
	if (!rx->dev)
		rx->dev = arx_net_dev_on(rx->l3, rx->netdev);
	return rx->dev;
}

/* Count a packet that belongs to no QP. */
static void arx_rx_count(struct arx_rx *rx, enum arx_counter counter)
{
	struct arx_dev *dev = arx_rx_dev(rx);

	if (dev)
		this_cpu_inc(dev->stats->c[counter]);
}

/* Read addresses and lengths of the outer headers, but not the BTH. */
static int arx_rx_read_envelope(struct arx_rx *rx, const struct sk_buff *skb)
{
	unsigned int ip_len = arx_ip_read(ip_hdr(skb), &rx->saddr, &rx->daddr);

	rx->marked = arx_ip_is_marked(ip_hdr(skb));
	/* A17.3.1: no options */
	if (skb_network_header_len(skb) != ip_len ||
	    ntohs(udp_hdr(skb)->len) != skb->len)
		return -EINVAL;
	return 0;
}

/* @qp: destination of the packets; NULL: a group. */
static void arx_rx_count_icrcs(struct arx_rx *rx, const struct arx_qp *qp,
			       u32 n)
{
	enum arx_counter counter = rx->avoided ? ARX_CNT_ICRC_AVOIDED :
						 ARX_CNT_ICRC_COMPUTED;

	if (qp)
		this_cpu_add(qp->stats->c[counter], n);
	else if (arx_rx_dev(rx))
		this_cpu_add(rx->dev->stats->c[counter], n);
}

static bool arx_rx_icrc_fits(struct arx_rx *rx, const struct arx_qp *qp,
			     struct sk_buff *skb)
{
	__le32 icrc;

	arx_rx_count_icrcs(rx, qp, 1);
	if (rx->joined)
		return true;
	return !skb_copy_bits(skb, skb->len - sizeof(icrc), &icrc,
			      sizeof(icrc)) && icrc == arx_icrc(skb);
}

/* Read the BTH, make all headers linear. Returns their bytes, or -EINVAL. */
static int arx_rx_read_bth(struct sk_buff *skb, struct arx_headers *h)
{
	int len;

	/*
	 * 9.2: packets are padded to whole words; all headers are whole words.
	 */
	if (skb->len < ARX_BTH_LEN + ARX_ICRC_LEN || skb->len % 4 ||
	    !pskb_may_pull(skb, ARX_BTH_LEN))
		return -EINVAL;
	len = arx_bth_read(h, skb->data);
	if (len < 0 || skb->len < len + h->pad + ARX_ICRC_LEN ||
	    !pskb_may_pull(skb, len))
		return -EINVAL;
	return len;
}

/*
 * Check what the BTH alone can show. Returns the bytes of all headers, or
 * -EINVAL. No datagram is joined to another packet: only the first of joined
 * packets has an IP header and a netdev. A firewall may have changed an opcode
 * on the way.
 */
static int arx_rx_parse(struct arx_rx *rx, struct sk_buff *skb,
			struct arx_headers *h)
{
	int len = arx_rx_read_bth(skb, h);

	if (len < 0 || (h->service == ARX_SERVICE_UD && !skb->dev)) {
		arx_rx_count(rx, ARX_CNT_RX_MALFORMED);
		return -EINVAL;
	}
	/* The default partition, as a full or as a limited member: 10.9.3 */
	if ((h->pkey | BIT(15)) != ARX_PKEY) {
		arx_rx_count(rx, ARX_CNT_RX_BAD_PKEY);
		return -EINVAL;
	}
	return len;
}

/*
 * Remove headers from a packet that begins with its BTH; returns the length of
 * the payload. The ICRC needs all bytes of the packet, so it is computed only
 * for packets with a destination QP. Headers after the BTH are not read before
 * the ICRC is known to be right.
 */
static int arx_rx_strip(struct arx_rx *rx, const struct arx_qp *qp,
			struct sk_buff *skb, struct arx_headers *h, int headers)
{
	if (!arx_rx_icrc_fits(rx, qp, skb)) {
		arx_rx_count(rx, ARX_CNT_RX_ICRC_ERR);
		return -EINVAL;
	}
	arx_extensions_read(h, skb->data);
	__skb_pull(skb, headers);
	return skb->len - h->pad - ARX_ICRC_LEN;
}

static bool arx_rx_is_multicast(const struct in6_addr *addr)
{
	if (ipv6_addr_v4mapped(addr))
		return ipv4_is_multicast(addr->s6_addr32[3]);
	return ipv6_addr_is_multicast(addr);
}

/* A connected QP is in the layer-3 domain of its address. */
static bool arx_rx_l3_fits(const struct arx_rx *rx, const struct arx_qp *qp)
{
	const struct arx_av *av = rcu_dereference(qp->av);
	struct arx_l3_key l3;

	if (!av)
		return true;
	l3 = arx_av_l3(arx_qp_dev(qp), av);
	return arx_l3_same(&l3, &rx->l3->key);
}

static struct arx_qp *arx_rx_find_qp(struct arx_rx *rx, u32 qpn)
{
	struct arx_dev *dev;
	struct arx_qp *qp;

	if (qpn == 1) {
		dev = arx_net_find_dev(rx->l3, &rx->daddr);
		return dev ? rcu_dereference(dev->gsi) : NULL;
	}
	qp = arx_qp_find(qpn);
	return qp && arx_rx_l3_fits(rx, qp) ? qp : NULL;
}

/* True if a packet with these addresses is for this QP. */
static bool arx_rx_addresses_fit(struct arx_rx *rx, struct arx_qp *qp)
{
	if (qp->id.nr == 1)
		return true;	/* the look-up was by the address */
	if (!arx_qp_is_connected(qp))
		return arx_gids_has(arx_qp_dev(qp), &rx->l3->key,
				    &rx->daddr);
	return arx_av_is_peer(rcu_dereference(qp->av), &rx->saddr, &rx->daddr);
}

/*
 * True if the service of the QP, its state and the half that the packet is for
 * allow it.
 */
static bool arx_rx_is_accepted(const struct arx_qp *qp,
			       const struct arx_headers *h)
{
	if (unlikely(h->service == ARX_SERVICE_CNP))
		return arx_qp_is_acked(qp) &&
		       arx_qp_may(qp, ARX_QP_ACKED | ARX_QP_RECEIVE);
	return qp->service == h->service &&
	       arx_qp_may(qp, arx_is_response(h->op) ? ARX_QP_ACKED :
						       ARX_QP_RECEIVE);
}

/* The QP that may get a packet, or NULL. */
static struct arx_qp *arx_rx_admit(struct arx_rx *rx,
				   const struct arx_headers *h)
{
	struct arx_qp *qp = rx->qp;

	if (!qp || qp->id.nr != h->qpn)
		qp = arx_rx_find_qp(rx, h->qpn);
	if (!qp || !arx_rx_is_accepted(qp, h)) {
		arx_rx_count(rx, ARX_CNT_RX_NO_QP);
		return NULL;
	}
	if (!arx_rx_addresses_fit(rx, qp)) {
		arx_count(qp, RX_WRONG_ADDR);
		return NULL;
	}
	return qp;
}

/* Read what a UD completion reports of the packet's outer headers: 11.4.2.1 */
static void arx_rx_read_grh(struct arx_run *run, const struct sk_buff *skb,
			    u8 *grh)
{
	const struct net_device *netdev = arx_rx_netdev(skb);

	if (ip_hdr(skb)->version == 4) {
		run->network = RDMA_NETWORK_IPV4;
		memset(grh, 0, ARX_GRH_LEN - sizeof(struct iphdr));
		memcpy(grh + ARX_GRH_LEN - sizeof(struct iphdr), ip_hdr(skb),
		       sizeof(struct iphdr));
	} else {
		run->network = RDMA_NETWORK_IPV6;
		memcpy(grh, ipv6_hdr(skb), ARX_GRH_LEN);
	}
	run->grh = grh;

	run->smac = NULL;
	if (netdev->type == ARPHRD_ETHER && skb_mac_header_was_set(skb))
		run->smac = eth_hdr(skb)->h_source;
	run->vlan = is_vlan_dev(netdev) ? vlan_dev_vlan_id(netdev) : 0xffff;
}

static void arx_rx_consume(struct sk_buff *skb)
{
	while (skb) {
		struct sk_buff *next = skb->next;

		skb_mark_not_on_list(skb);
		napi_consume_skb(skb, 1);
		skb = next;
	}
}

/* Bytes of all packets of a run, from BTH to ICRC. */
static u32 arx_rx_bytes(const struct arx_run *run)
{
	return run->len + run->h.pad + arx_headers_len(&run->h) +
	       ARX_ICRC_LEN + arx_headers_more(&run->h, run->npkts);
}

/*
 * Hand over the present run, if there is one. Packets that it makes a QP send
 * wait for the next run, which @next begins, if that is for the same QP.
 */
static void arx_rx_flush(struct arx_rx *rx, const struct arx_qp *qp,
			 const struct arx_headers *next)
{
	bool more = next && qp == rx->qp;
	struct arx_run *run = &rx->run;
	u8 grh[ARX_GRH_LEN];

	if (!rx->first)
		return;

	arx_count(rx->qp, RCVD_RUNS);
	arx_count_add(rx->qp, RCVD_PKTS, run->npkts);
	arx_count_add(rx->qp, RCVD_BYTES, arx_rx_bytes(run));
	if (!more)
		arx_count(rx->qp, RCVD_BATCHES);
	if (unlikely(rx->marked))
		arx_cnp_marked(rx->qp, run);

	run->packets = rx->first;
	arx_iter_skb(&run->payload, rx->first, rx->first_len);
	if (run->h.service == ARX_SERVICE_UD)
		arx_rx_read_grh(run, rx->first, grh);
	if (arx_is_response(run->h.op)) {
		rx->wake |= arx_completer_rx(rx->qp, run);
	} else {
		run->more = more && !arx_is_response(next->op);
		run->polled = rx->joined && !rx->avoided;
		arx_responder_rx(rx->qp, run);
	}
	if (rx->wake && !more) {
		rx->wake = false;
		arx_requester_poll(rx->qp);
	}
	arx_rx_consume(run->packets);
	rx->first = NULL;
}

/* The PSN after the run. */
static u32 arx_rx_next_psn(const struct arx_rx *rx)
{
	return arx_psn_add(rx->run.h.psn, rx->run.npkts);
}

/* True if a packet may follow the last one in the same run. */
static bool arx_rx_continues(const struct arx_rx *rx,
			     const struct arx_headers *h)
{
	const struct arx_headers *run = &rx->run.h;

	return rx->first && rx->open && h->qpn == run->qpn &&
	       h->op == run->op && h->service == run->service &&
	       h->psn == arx_rx_next_psn(rx) &&
	       !(run->flags & ARX_LAST) && !(h->flags & ARX_FIRST);
}

static void arx_rx_begin(struct arx_rx *rx, struct sk_buff *skb, u32 len,
			 const struct arx_headers *h)
{
	struct arx_run *run = &rx->run;

	rx->first = skb;
	rx->first_len = len;
	rx->last = skb;
	run->h = *h;
	run->npkts = 1;
	run->len = len;
	run->mtu = READ_ONCE(rx->qp->mtu);
	rx->open = len == run->mtu;
}

/*
 * One packet that is a run already. If the sender's path MTU is different, its
 * payload does not fit this number of packets of the QP's path MTU.
 */
static void arx_rx_begin_super(struct arx_rx *rx)
{
	struct arx_run *run = &rx->run;

	rx->open = false;
	run->npkts = arx_run_npkts(run->len, arx_super_mtu(rx->size));
	arx_rx_count_icrcs(rx, rx->qp, run->npkts - 1);
}

/*
 * The flags of a run are those of its end: 9.7.5.1.2 lets one response cover
 * many requests.
 */
static void arx_rx_append(struct arx_rx *rx, struct sk_buff *skb, u32 len,
			  const struct arx_headers *h)
{
	struct arx_run *run = &rx->run;

	rx->last->next = skb;
	rx->last = skb;
	rx->open = len == run->mtu;
	run->npkts++;
	run->len += len;
	run->h.flags |= h->flags;
	run->h.pad = h->pad;
	run->h.ex = h->ex;
	if (h->flags & ARX_LAST && h->op == ARX_OP_READ_RESPONSE) {
		run->h.syndrome = h->syndrome;
		run->h.msn = h->msn;
	}
}

/*
 * The groups of a device are joined on its netdev and on VLANs in the same
 * network namespace, see mcast.c. A VLAN elsewhere is a container's, and its
 * multicasts do not concern the node.
 */
static bool arx_rx_multicasts_for(const struct arx_dev *dev,
				  const struct net_device *netdev)
{
	return dev->netdev == netdev ||
	       (is_vlan_dev(netdev) &&
		vlan_dev_real_dev(netdev) == dev->netdev &&
		net_eq(dev_net(netdev), dev_net(dev->netdev)));
}

/* To all QPs of the group, whichever device of this netdev they use. */
static void arx_rx_receive_multicast(struct arx_rx *rx, struct sk_buff *skb,
				     u32 len, const struct arx_headers *h)
{
	struct arx_run run = {
		.h = *h,
		.npkts = 1,
		.len = len,
		.mtu = len,
	};
	u8 grh[ARX_GRH_LEN];
	struct arx_dev *dev;

	arx_iter_skb(&run.payload, skb, len);
	arx_rx_read_grh(&run, skb, grh);
	list_for_each_entry_rcu(dev, &arx_net_devs, link) {
		if (!arx_rx_multicasts_for(dev, rx->netdev))
			continue;
		arx_count(dev, RCVD_BATCHES);
		arx_count(dev, RCVD_RUNS);
		arx_count(dev, RCVD_PKTS);
		arx_count_add(dev, RCVD_BYTES, arx_rx_bytes(&run));
		arx_mcast_deliver(dev, &rx->l3->key, &rx->saddr, &rx->daddr,
				  skb, &run);
	}
}

/*
 * Fast path: most joined packets are in the middle of the message of the packet
 * before, so their BTH needs no further check. True if @skb was added to the
 * run.
 */
static bool arx_rx_append_middle(struct arx_rx *rx, struct sk_buff *skb)
{
	struct arx_run *run = &rx->run;

	if (!rx->joined || !rx->first || !rx->open ||
	    skb->len != ARX_BTH_LEN + run->mtu + ARX_ICRC_LEN ||
	    !pskb_may_pull(skb, ARX_BTH_LEN) ||
	    !arx_bth_is_middle(&run->h, arx_rx_next_psn(rx), skb->data))
		return false;

	arx_rx_count_icrcs(rx, rx->qp, 1);
	__skb_pull(skb, ARX_BTH_LEN);
	rx->last->next = skb;
	rx->last = skb;
	run->npkts++;
	run->len += run->mtu;
	return true;
}

/* A CNP counts as a run without payload. It need not wait for other packets. */
static void arx_rx_receive_cnp(struct arx_qp *qp, const struct arx_headers *h)
{
	arx_count(qp, RCVD_BATCHES);
	arx_count(qp, RCVD_RUNS);
	arx_count(qp, RCVD_PKTS);
	arx_count_add(qp, RCVD_BYTES, arx_headers_len(h) + ARX_ICRC_LEN);
	arx_cnp_rx(qp, h);
}

static bool arx_rx_is_for_group(const struct arx_rx *rx,
				const struct arx_headers *h)
{
	return h->qpn == ARX_MULTICAST_QPN && h->service == ARX_SERVICE_UD &&
	       arx_rx_is_multicast(&rx->daddr);
}

/* A packet for a group, with @headers bytes of headers; consumed. */
static void arx_rx_receive_for_group(struct arx_rx *rx, struct sk_buff *skb,
				     struct arx_headers *h, int headers)
{
	int len = arx_rx_strip(rx, NULL, skb, h, headers);

	if (len < 0) {
		kfree_skb(skb);
		return;
	}
	arx_rx_receive_multicast(rx, skb, len, h);
	consume_skb(skb);
}

/*
 * A packet for a QP, with @headers bytes of headers. It joins the present run
 * or begins one, unless it is refused.
 */
static void arx_rx_receive_for_qp(struct arx_rx *rx, struct sk_buff *skb,
				  struct arx_headers *h, int headers)
{
	bool super = rx->avoided && arx_is_super(skb->len, rx->size);
	bool continues = !super && arx_rx_continues(rx, h);
	struct arx_qp *qp = continues ? rx->qp : arx_rx_admit(rx, h);
	int len = qp ? arx_rx_strip(rx, qp, skb, h, headers) : -EINVAL;

	if (len < 0) {
		kfree_skb(skb);
		return;
	}
	if (unlikely(h->op == ARX_OP_CNP)) {
		arx_rx_receive_cnp(qp, h);
		consume_skb(skb);
		return;
	}
	if (continues) {
		arx_rx_append(rx, skb, len, h);
		return;
	}
	arx_rx_flush(rx, qp, h);
	rx->qp = qp;
	arx_rx_begin(rx, skb, len, h);
	if (super)
		arx_rx_begin_super(rx);
}

/* Process one packet, which begins with its BTH. */
static void arx_rx_receive(struct arx_rx *rx, struct sk_buff *skb)
{
	struct arx_headers h __uninitialized;
	int headers;

	skb_mark_not_on_list(skb);
	if (arx_rx_append_middle(rx, skb))
		return;
	headers = arx_rx_parse(rx, skb, &h);
	if (headers < 0)
		kfree_skb(skb);
	else if (arx_rx_is_for_group(rx, &h))
		arx_rx_receive_for_group(rx, skb, &h, headers);
	else
		arx_rx_receive_for_qp(rx, skb, &h, headers);
}

/* Returns the joined packets from the second one on. */
static struct sk_buff *arx_rx_split(struct arx_rx *rx, struct sk_buff *skb)
{
	if (arx_gso_is_ours(skb)) {
		rx->joined = true;
		rx->avoided = !arx_gso_is_checked(skb);
		rx->size = skb_shinfo(skb)->gso_size;
		return arx_gso_split(skb, false);
	}
	/*
	 * Other GSO types mean something else; a list belongs to one IP packet.
	 */
	if (skb_is_gso(skb) || (skb_has_frag_list(skb) && skb_linearize(skb)))
		return ERR_PTR(-EINVAL);
	return NULL;
}

/**
 * arx_rx_encap - receive packets from the UDP port
 * @sk: the namespace's socket
 * @skb: from the UDP header on; consumed
 *
 * Context: softirq, RCU read side.
 * Return: 0: UDP never gets a packet back.
 */
int arx_rx_encap(struct sock *sk, struct sk_buff *skb)
{
	struct arx_rx rx = {
		.l3 = rcu_dereference_sk_user_data(sk),
		.netdev = arx_rx_netdev(skb),
	};
	struct sk_buff *rest;

	if (!rx.l3)	/* the socket is being closed */
		goto drop;
	if (!pskb_may_pull(skb, sizeof(struct udphdr)) ||
	    arx_rx_read_envelope(&rx, skb))
		goto malformed;
	__skb_pull(skb, sizeof(struct udphdr));

	rest = arx_rx_split(&rx, skb);
	if (IS_ERR(rest))
		goto malformed;
	arx_section_enter();
	arx_rx_receive(&rx, skb);
	while (rest) {
		skb = rest;
		rest = rest->next;
		arx_rx_receive(&rx, skb);
	}
	arx_rx_flush(&rx, NULL, NULL);
	arx_section_leave();
	return 0;

malformed:
	arx_rx_count(&rx, ARX_CNT_RX_MALFORMED);
drop:
	kfree_skb(skb);
	return 0;
}
