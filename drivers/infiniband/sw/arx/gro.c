// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * GRO: joins packets of one message that a NIC delivers together, before the
 * stack handles each of them, and also messages of one packet each, if they
 * have the same length. They are joined like the packets of arx_gso_join() and,
 * if this machine only forwards them, split like those. The ICRC is checked
 * here, while the packet's own headers still exist, and only of packets that
 * are joined: the ICRCs of others are checked when they are received.
 *
 * A card may join packets, too: a virtio card hands over a train (uso.c) as the
 * train that left the other machine.
 */

#include <net/gro.h>
#include <net/udp_tunnel.h>

#include "gro.h"
#include "gso.h"
#include "ip.h"
#include "net.h"
#include "qp.h"

/*
 * Length of the IP header: the BTH has the same place in all packets of a flow.
 */
static int arx_gro_ip_len(const struct sk_buff *skb, int bth)
{
	return bth - (int)sizeof(struct udphdr) -
	       NAPI_GRO_CB(skb)->network_offset;
}

static const struct iphdr *arx_gro_ip(const struct sk_buff *skb)
{
	return (void *)skb->data + NAPI_GRO_CB(skb)->network_offset;
}

/* Only packets that a QP of arx waits for are joined. */
static bool arx_gro_wanted(const struct sk_buff *skb, struct net *net,
			   const struct arx_headers *h)
{
	struct in6_addr saddr, daddr;
	const struct arx_av *av;
	struct arx_qp *qp;

	qp = arx_qp_find(h->qpn);
	if (!qp || qp->service != h->service ||
	    READ_ONCE(arx_qp_dev(qp)->capture))
		return false;
	av = rcu_dereference(qp->av);
	if (!av || arx_av_cookie(arx_qp_dev(qp), av) != net->net_cookie)
		return false;
	arx_ip_read(arx_gro_ip(skb), &saddr, &daddr);
	return arx_av_is_peer(av, &saddr, &daddr);
}

/* True if the packet is a whole message. */
static bool arx_gro_whole(const struct arx_headers *h)
{
	return h->flags & ARX_FIRST && h->flags & ARX_LAST;
}

/*
 * Read the headers of a packet, and make them linear. True if the packet may be
 * joined with others.
 */
static bool arx_gro_read(struct sk_buff *skb, int bth, struct arx_headers *h)
{
	const struct udphdr *udp;
	int len;

	if (!pskb_may_pull(skb, bth + ARX_BTH_LEN))
		return false;
	len = arx_bth_read(h, skb->data + bth);
	if (len < 0 || h->service == ARX_SERVICE_UD || h->op == ARX_OP_ACK ||
	    h->op == ARX_OP_RESERVED || arx_has_xrceth(h) ||
	    (h->pad && !(h->flags & ARX_LAST)) ||
	    skb_gro_len(skb) < len + h->pad + ARX_ICRC_LEN ||
	    !pskb_may_pull(skb, bth + len))
		return false;
	udp = (void *)skb->data + bth - sizeof(*udp);
	return ntohs(udp->len) == sizeof(*udp) + skb_gro_len(skb);
}

/* True if other packets may follow this one, with lengths that agree. */
static bool arx_gro_parse(struct sk_buff *skb, int bth, struct arx_headers *h)
{
	return !NAPI_GRO_CB(skb)->flush && arx_gro_read(skb, bth, h);
}

/* True if no packet can follow it. */
static bool arx_gro_ends(const struct arx_headers *h)
{
	return h->flags & ARX_LAST && !(h->flags & ARX_FIRST);
}

/* Payload of a packet that has @len bytes from BTH to ICRC. */
static int arx_gro_payload(const struct arx_headers *h, int len)
{
	return len - arx_headers_len(h) - h->pad - ARX_ICRC_LEN;
}

/* Headers of the last packet of @p. */
static bool arx_gro_last(const struct sk_buff *p, int bth,
			 struct arx_headers *h)
{
	const struct sk_buff *last = NAPI_GRO_CB(p)->last;

	return arx_bth_read(h, last->data + (last == p ? bth : 0)) > 0;
}

/*
 * True if @skb may follow @last in @p, by its place in a message and its
 * length. The rule must let arx_gso_split() find the packets in a linear
 * buffer.
 */
static bool arx_gro_continues(const struct sk_buff *p,
			      const struct arx_headers *last,
			      const struct sk_buff *skb,
			      const struct arx_headers *h)
{
	int payload = arx_gro_payload(h, skb_gro_len(skb));
	int full = skb_shinfo(p)->gso_size - ARX_BTH_LEN - ARX_ICRC_LEN;

	if (arx_gro_whole(last))
		return arx_gro_whole(h) &&
		       skb_gro_len(skb) == skb_shinfo(p)->gso_size;

	if (NAPI_GRO_CB(p)->count == 1)
		full = arx_gro_payload(last, skb_shinfo(p)->gso_size);
	return !(last->flags & ARX_LAST) && !(h->flags & ARX_FIRST) &&
	       (h->flags & ARX_LAST ? payload <= full : payload == full);
}

static bool arx_gro_follows(const struct sk_buff *p,
			    const struct arx_headers *last,
			    const struct sk_buff *skb,
			    const struct arx_headers *h)
{
	return h->service == last->service && h->op == last->op &&
	       h->qpn == last->qpn && h->pkey == last->pkey &&
	       h->psn == arx_psn_add(last->psn, 1) &&
	       arx_gro_continues(p, last, skb, h) &&
	       p->len + skb_gro_len(skb) < 65536 &&
	       arx_gro_ip(p)->version == arx_gro_ip(skb)->version &&
	       *(__be16 *)arx_gro_ip(p) == *(__be16 *)arx_gro_ip(skb);
}

/* True if two packets have the same ports and the same QPN. */
static bool arx_gro_one_qp(const struct sk_buff *p, const struct sk_buff *skb,
			   int bth)
{
	int off = bth - (int)sizeof(struct udphdr);
	struct arx_headers held, h;
	__be32 room[2], *ports[2];
	u8 bytes[2][ARX_BTH_LEN];

	ports[0] = skb_header_pointer(p, off, sizeof(__be32), &room[0]);
	ports[1] = skb_header_pointer(skb, off, sizeof(__be32), &room[1]);
	return ports[0] && ports[1] && *ports[0] == *ports[1] &&
	       !skb_copy_bits(p, bth, bytes[0], ARX_BTH_LEN) &&
	       !skb_copy_bits(skb, bth, bytes[1], ARX_BTH_LEN) &&
	       arx_bth_read(&held, bytes[0]) > 0 &&
	       arx_bth_read(&h, bytes[1]) > 0 && held.qpn == h.qpn;
}

/*
 * True if @skb must not overtake @p. A train has UDP checksums, and a packet
 * that leaves by itself may have none. The stack takes UDP packets with and
 * without a checksum for different flows, so the ports and the QPN are compared
 * here. A packet of another protocol may look the same by chance: then @p is
 * delivered a little earlier, which does no harm.
 */
static bool arx_gro_is_behind(const struct sk_buff *p,
			      const struct sk_buff *skb, int bth)
{
	return NAPI_GRO_CB(p)->same_flow || arx_gro_one_qp(p, skb, bth);
}

/* Tell the ICRC where the outer headers are; false if IP has options. */
static bool arx_gro_set_headers(struct sk_buff *skb, int bth)
{
	if (arx_gro_ip_len(skb, bth) != (arx_gro_ip(skb)->version == 4 ?
					 sizeof(struct iphdr) :
					 sizeof(struct ipv6hdr)))
		return false;
	skb_set_network_header(skb, NAPI_GRO_CB(skb)->network_offset);
	skb_set_transport_header(skb, bth - (int)sizeof(struct udphdr));
	return true;
}

static bool arx_gro_icrc_fits(struct sk_buff *skb, int bth)
{
	__le32 icrc;

	return arx_gro_set_headers(skb, bth) &&
	       !skb_copy_bits(skb, skb->len - sizeof(icrc), &icrc,
			      sizeof(icrc)) && icrc == arx_icrc(skb);
}

static void arx_gro_chain(struct sk_buff *p, struct sk_buff *skb, int bth)
{
	struct sk_buff *last = NAPI_GRO_CB(p)->last;

	/*
	 * Packets from a socket of this machine (veth keeps their owner, and
	 * GRO compares owners): @p takes over the charge of both.
	 */
	skb->destructor = NULL;
	skb->sk = NULL;

	skb_pull(skb, bth);
	if (last == p)
		skb_shinfo(p)->frag_list = skb;
	else
		last->next = skb;
	NAPI_GRO_CB(p)->last = skb;
	NAPI_GRO_CB(p)->count++;
	p->len += skb->len;
	p->data_len += skb->len;
	p->truesize += skb->truesize;
	skb_shinfo(p)->flags |= skb_shinfo(skb)->flags & SKBFL_SHARED_FRAG;
	NAPI_GRO_CB(skb)->same_flow = 1;
}

/* Add @skb to @p; false if one of them is malformed. */
static bool arx_gro_merge(struct sk_buff *p, const struct arx_headers *last,
			  struct sk_buff *skb, int bth)
{
	struct skb_shared_info *info = skb_shinfo(p);
	bool pair = NAPI_GRO_CB(p)->count == 1;

	if ((pair && !arx_gro_icrc_fits(p, bth)) ||
	    !arx_gro_icrc_fits(skb, bth))
		return false;
	if (pair && !arx_gro_whole(last))
		info->gso_size = arx_gro_payload(last, info->gso_size) +
				 ARX_BTH_LEN + ARX_ICRC_LEN;
	arx_gro_chain(p, skb, bth);
	return true;
}

/* Add @skb to @p; false if it is not the packet that follows. */
static bool arx_gro_join(struct sk_buff *p, struct sk_buff *skb, int bth,
			 const struct arx_headers *h)
{
	struct arx_headers last;

	return NAPI_GRO_CB(p)->same_flow && arx_gro_last(p, bth, &last) &&
	       arx_gro_follows(p, &last, skb, h) &&
	       arx_gro_merge(p, &last, skb, bth);
}

/*
 * True if a packet at @off may be joined with the first one of its train. A
 * datagram may not: a receiver wants its IP header, which a train does not have
 * for each packet. One QP at a time, so that its limits bound what a train can
 * start.
 */
static bool arx_gro_joins(const struct sk_buff *skb, int off,
			  const struct arx_headers *first)
{
	u8 bytes[ARX_BTH_LEN];
	struct arx_headers h;

	return !skb_copy_bits(skb, off, bytes, sizeof(bytes)) &&
	       arx_bth_read(&h, bytes) > 0 && h.service == first->service &&
	       h.qpn == first->qpn;
}

/*
 * True if all packets of a train may be joined with the first one, and have
 * right ICRCs.
 */
static bool arx_gro_train_fits(struct sk_buff *skb, int bth, int size,
			       const struct arx_headers *first)
{
	int end, off, i;
	__le32 icrc;

	if (!arx_gro_set_headers(skb, bth))
		return false;
	for (off = bth, i = 0; off < (int)skb->len; off = end, i++) {
		end = min(off + size, (int)skb->len);
		if (end - off < ARX_BTH_LEN + ARX_ICRC_LEN ||
		    !arx_gro_joins(skb, off, first) ||
		    skb_copy_bits(skb, end - (int)sizeof(icrc), &icrc,
				  sizeof(icrc)) ||
		    icrc != arx_icrc_segment(skb, i, off, end - off))
			return false;
	}
	return true;
}

/*
 * A card delivers a train. If all its ICRCs are right, and the rule lets
 * arx_gso_split() find the packets, mark the train as joined packets. The stack
 * splits all other trains.
 */
static void arx_gro_train(struct sock *sk, struct sk_buff *skb, int bth)
{
	int size = skb_shinfo(skb)->gso_size;
	int n = DIV_ROUND_UP(skb_gro_len(skb), size);
	struct arx_headers h;
	int more;

	if (skb_has_frag_list(skb) || n < 2 || n > UDP_MAX_SEGMENTS ||
	    !arx_gro_read(skb, bth, &h) ||
	    !arx_gro_wanted(skb, sock_net(sk), &h))
		return;
	more = arx_gro_whole(&h) ? 0 : arx_headers_len(&h) - ARX_BTH_LEN;
	if ((more && n > 2) || size <= more ||
	    !arx_gro_train_fits(skb, bth, size, &h))
		return;
	skb_shinfo(skb)->gso_size = size - more;
	udp_hdr(skb)->check = 0;
	arx_gso_mark_checked(skb, n);
}

static bool arx_gro_is_train(const struct sk_buff *skb)
{
	return skb_is_gso(skb) &&
	       (skb_shinfo(skb)->gso_type & ~SKB_GSO_DODGY) ==
	       SKB_GSO_UDP_L4 && arx_gso_usable();
}

/**
 * arx_gro_receive - a NIC delivers a packet for the UDP port
 * @sk: the namespace's socket
 * @head: held packets
 * @skb: the packet; its BTH is at its GRO offset
 *
 * Context: softirq, RCU read side.
 * Return: a held packet to deliver before @skb, or NULL.
 */
struct sk_buff *arx_gro_receive(struct sock *sk, struct list_head *head,
				struct sk_buff *skb)
{
	int bth = skb_gro_offset(skb);
	struct arx_headers h;
	struct sk_buff *p;
	struct sk_buff *pp = NULL;
	bool part;

	part = arx_gso_usable() && arx_gro_parse(skb, bth, &h);
	list_for_each_entry(p, head, list) {
		if (!arx_gro_is_behind(p, skb, bth))
			continue;
		if (part && arx_gro_join(p, skb, bth, &h))
			return arx_gro_ends(&h) ? p : NULL;
		/* A packet that does not continue @p must not overtake it. */
		pp = p;
		if (NAPI_GRO_CB(p)->same_flow)
			break;
	}

	/* Hold packets that others may follow. */
	arx_section_enter();
	if (arx_gro_is_train(skb))
		arx_gro_train(sk, skb, bth);
	if (!part || arx_gro_ends(&h) ||
	    !arx_gro_wanted(skb, sock_net(sk), &h))
		NAPI_GRO_CB(skb)->flush = 1;
	arx_section_leave();
	return pp;
}

/**
 * arx_gro_complete - packets that were held together are delivered
 * @sk: the namespace's socket
 * @skb: the first of several
 * @nhoff: offset of its BTH
 *
 * If joined packets are split again, nothing computes a UDP checksum, so they
 * have none from here on. (RoCE needs none: A17.3.1.)
 *
 * Context: softirq, RCU read side.
 * Return: 0.
 */
int arx_gro_complete(struct sock *sk, struct sk_buff *skb, int nhoff)
{
	struct udphdr *udp = (void *)skb->data + nhoff - sizeof(*udp);

	udp->check = 0;
	arx_gso_mark_checked(skb, NAPI_GRO_CB(skb)->count);
	return 0;
}
