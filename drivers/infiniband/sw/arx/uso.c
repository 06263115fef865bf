// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * UDP segmentation offload. A netdev that splits UDP packets gets many packets
 * as one large packet, a train. Each packet has its headers from the BTH on and
 * its ICRC already. The card writes Ethernet, IP and UDP headers for each; the
 * kernel does so in front of a driver or a socket that cannot.
 *
 * All packets of a train have the same length, but the last may be shorter. The
 * first packet of a WRITE has one header more than the following packets, so
 * the first packet leaves alone.
 *
 * The ICRC covers the IPv4 identification, and no card says how it numbers the
 * packets of a train. Here they count up by one from the number of the first,
 * as Linux counts them. trial.c notices if a card does otherwise.
 *
 * Trains are copies, in one piece of memory. By reference a packet takes two or
 * three fragments, of which an skb has 17.
 */

#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/sizes.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/udp.h>

#include "super.h"
#include "uso.h"
#include "wire.h"

/* Bytes of memory of a train, which is no longer than an IP packet. */
#define ARX_USO_MEMORY		SZ_64K

/*
 * The same where memory is fragmented: with pages of 4 KiB the page allocator
 * has pieces of up to this size at hand on each CPU.
 */
#define ARX_USO_LESS		SZ_32K

/* The maximum number of packets that all kernels take at once. */
#define ARX_USO_PACKETS		64U

/*
 * True if a netdev is a card. One that offers NETIF_F_GSO_FRAGLIST takes joined
 * packets, and is none.
 */
static bool arx_uso_is_card(const struct net_device *netdev)
{
	return netdev->dev.parent &&
	       !(netdev->features & NETIF_F_GSO_FRAGLIST);
}

/*
 * What arx_uso_usable() asks of a netdev and of those below it. @tagged: these
 * get packets of a VLAN.
 */
struct arx_uso_ask {
	bool ipv4;
	bool tagged;
	struct arx_uso_limits *most;
};

/* The kernel splits packets with two VLAN tags in front of every card. */
static bool arx_uso_fits(const struct net_device *netdev,
			 const struct arx_uso_ask *ask)
{
	netdev_features_t csum = NETIF_F_HW_CSUM |
				 (ask->ipv4 ? NETIF_F_IP_CSUM :
					      NETIF_F_IPV6_CSUM);
	netdev_features_t features = netdev->features;

	if (ask->tagged)
		features &= netdev->vlan_features;
	return features & NETIF_F_GSO_UDP_L4 && features & csum &&
	       (arx_uso_is_card(netdev) ||
		(is_vlan_dev(netdev) && !ask->tagged));
}

/* True if @netdev takes no trains; else its limits hold, too. */
static int arx_uso_refuses(struct net_device *netdev,
			   struct netdev_nested_priv *priv)
{
	const struct arx_uso_ask *ask = priv->data;
	struct arx_uso_limits *most = ask->most;
	u32 bytes = ask->ipv4 ? READ_ONCE(netdev->gso_ipv4_max_size) :
				READ_ONCE(netdev->gso_max_size);

	if (!arx_uso_fits(netdev, ask))
		return true;
	most->bytes = min(most->bytes, bytes);
	most->packets = min_t(u32, most->packets,
			      READ_ONCE(netdev->gso_max_segs));
	return false;
}

/**
 * arx_uso_usable - true if a netdev should get trains
 * @netdev: netdev of the route
 * @ipv4: the packets are IPv4
 * @most: if true, receives how large a train may be: the kernel splits larger
 *	ones in front of the card
 *
 * A netdev without a card below it takes joined packets, which cost less, or
 * would split trains at once. A VLAN takes joined packets, too, but its card
 * does not: trains go through the VLAN whole, if the card splits packets that
 * have a VLAN tag.
 *
 * Context: RCU read side.
 * Return: true if @netdev is a card that splits trains, or a VLAN on one.
 */
bool arx_uso_usable(struct net_device *netdev, bool ipv4,
		    struct arx_uso_limits *most)
{
	struct arx_uso_ask ask = { .ipv4 = ipv4, .most = most };
	struct netdev_nested_priv priv = { .data = &ask };

	most->bytes = U32_MAX;
	most->packets = ARX_USO_PACKETS;
	if (arx_uso_refuses(netdev, &priv))
		return false;
	ask.tagged = is_vlan_dev(netdev);
	return !netdev_walk_all_lower_dev_rcu(netdev, arx_uso_refuses, &priv);
}

/**
 * struct arx_uso_at - a position in packets and super-packets
 * @skb: the packet or super-packet; NULL at the end
 * @super: @skb as a super-packet; a packet has @super.n == 1
 * @i: position in it
 * @size: bytes of the largest packet
 * @most: limits of a train
 */
struct arx_uso_at {
	struct sk_buff *skb;
	struct arx_super super;
	u32 i;
	u32 size;
	struct arx_uso_limits most;
};

static int arx_uso_open(struct arx_uso_at *at, struct sk_buff *skb)
{
	at->skb = skb;
	at->i = 0;
	at->super.n = 1;
	if (skb && arx_is_super(skb->len, at->size))
		return arx_super_read(&at->super, skb, at->size);
	return 0;
}

/* Bytes of the packet at the position. */
static u32 arx_uso_len(const struct arx_uso_at *at)
{
	return at->super.n > 1 ? arx_super_len(&at->super, at->i) :
				 at->skb->len;
}

/* Go on to the next packet; false if it cannot leave with this one. */
static bool arx_uso_follow(struct arx_uso_at *at)
{
	if (at->super.n > 1)
		return ++at->i < at->super.n;
	at->skb = at->skb->next;
	return at->skb && !arx_is_super(at->skb->len, at->size);
}

/* Write the packet to @to, and go on to the next one. */
static int arx_uso_take(struct arx_uso_at *at, void *to)
{
	int err;

	if (at->super.n > 1)
		err = arx_super_copy(&at->super, at->i, to);
	else
		err = skb_copy_bits(at->skb, 0, to, at->skb->len);
	if (err || ++at->i < at->super.n)
		return err;
	return arx_uso_open(at, at->skb->next);
}

/*
 * Returns the number of packets from the position on that make a train of up to
 * @room bytes, and their bytes. A shorter packet ends a train. If the first
 * packet is the only one of its length, it stays out of the train that follows.
 */
static u32 arx_uso_count(const struct arx_uso_at *from, u32 room, u32 *bytes)
{
	struct arx_uso_at at = *from;
	u32 len = arx_uso_len(&at);
	u32 n = 0;
	u32 next;

	*bytes = 0;
	do {
		*bytes += len;
		next = arx_uso_follow(&at) ? arx_uso_len(&at) : 0;
		n++;
	} while (next == len && *bytes + next <= room && n < at.most.packets);
	if (!next || next >= len || *bytes + next > room ||
	    n >= at.most.packets ||
	    (n == 1 && arx_uso_follow(&at) && arx_uso_len(&at) == next))
		return n;
	*bytes += next;
	return n + 1;
}

/* Allocate a train of @n packets, for as many as @memory has room for. */
static struct sk_buff *arx_uso_alloc(const struct arx_uso_at *at, u32 headroom,
				     u32 memory, gfp_t gfp, u32 *n)
{
	u32 room = min_t(u32, SKB_WITH_OVERHEAD(memory), at->most.bytes);
	u32 bytes;

	*n = arx_uso_count(at, room - headroom, &bytes);
	return alloc_skb(headroom + bytes, gfp | __GFP_NOWARN);
}

/* Make a train, or a packet if no train is possible. NULL: no memory. */
static struct sk_buff *arx_uso_train(struct arx_uso_at *at, u32 headroom)
{
	u32 size = arx_uso_len(at);
	struct sk_buff *skb;
	u32 n, i;

	/* No reclaim: a large piece of memory is not worth compaction. */
	skb = arx_uso_alloc(at, headroom, ARX_USO_MEMORY, 0, &n);
	if (!skb)
		skb = arx_uso_alloc(at, headroom, ARX_USO_LESS, GFP_ATOMIC, &n);
	if (!skb)
		return NULL;
	skb_reserve(skb, headroom);
	for (i = 0; i < n; i++) {
		if (!arx_uso_take(at, skb_put(skb, arx_uso_len(at))))
			continue;
		kfree_skb(skb);
		return NULL;
	}
	if (n > 1) {
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
		skb_shinfo(skb)->gso_size = size;
		skb_shinfo(skb)->gso_segs = n;
	}
	skb->ip_summed = CHECKSUM_PARTIAL;
	return skb;
}

/**
 * arx_uso_make - make trains of packets
 * @list: packets and super-packets, linked by ->next; each begins with its BTH
 * @size: bytes of the largest packet
 * @most: from arx_uso_usable()
 *
 * A card writes UDP checksums into the packets of a train, and packets with and
 * without a checksum are not joined by the receiver's GRO. So packets between
 * trains get checksums, too.
 *
 * Context: any.
 * Return: trains and packets, in order, with the headroom of @list, for
 * arx_uso_finish(); @list is consumed. NULL without memory, or if @most has no
 * room for two packets; @list is unchanged.
 */
struct sk_buff *arx_uso_make(struct sk_buff *list, u32 size,
			     const struct arx_uso_limits *most)
{
	struct arx_uso_at at = { .size = size, .most = *most };
	u32 headroom = skb_headroom(list);
	struct sk_buff *first = NULL;
	struct sk_buff **end = &first;

	if (most->packets < 2 || most->bytes < headroom + 2 * size ||
	    arx_uso_open(&at, list))
		return NULL;
	while (at.skb) {
		*end = arx_uso_train(&at, headroom);
		if (!*end) {
			kfree_skb_list(first);
			return NULL;
		}
		end = &(*end)->next;
	}
	while (list) {
		struct sk_buff *skb = list;

		list = list->next;
		skb_mark_not_on_list(skb);
		consume_skb(skb);
	}
	return first;
}

/* What a card, or the kernel, needs for the UDP checksums. */
static void arx_uso_request_checksum(struct sk_buff *skb)
{
	struct udphdr *udp = udp_hdr(skb);
	u32 len = ntohs(udp->len);

	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
	if (ip_hdr(skb)->version == 4)
		udp->check = ~udp_v4_check(len, ip_hdr(skb)->saddr,
					   ip_hdr(skb)->daddr, 0);
	else
		udp->check = ~udp_v6_check(len, &ipv6_hdr(skb)->saddr,
					   &ipv6_hdr(skb)->daddr, 0);
}

/**
 * arx_uso_finish - compute the ICRCs of a train, and ask for UDP checksums
 * @skb: from arx_uso_make(), from its IP header on
 *
 * Context: any.
 */
void arx_uso_finish(struct sk_buff *skb)
{
	int off = skb_transport_offset(skb) + sizeof(struct udphdr);
	int size = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : skb->len;
	u32 i;

	for (i = 0; off < (int)skb->len; i++) {
		int len = min(size, (int)skb->len - off);
		__le32 icrc = arx_icrc_segment(skb, i, off, len);

		off += len;
		memcpy(skb->data + off - sizeof(icrc), &icrc, sizeof(icrc));
	}
	arx_uso_request_checksum(skb);
}
