// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Joined packets: the packets of a batch pass the stack as one. The first
 * packet carries the others on its frag_list, and the stack handles all of them
 * at once. They have no ICRCs yet, as a TCP packet has no checksum before it
 * leaves. To the stack they are packets of a protocol inside a UDP tunnel, a
 * protocol that no wire has and whose segmentation offload is implemented here.
 * In front of a netdev that does not take joined packets, and of a socket that
 * is not arx's, the stack calls arx_gso_segment(), which splits them and
 * computes the ICRCs. Joined packets that arrive at arx's own socket have not
 * left this machine, and only this file can have made them.
 *
 * The packets of one message are a super-packet (super.c): one packet with the
 * headers of the run and all its payload. A super-packet is segmented only if
 * it must leave.
 *
 * On the way the stack may clone joined packets or make them linear. To find
 * the packets in a linear buffer, each packet has its length in the place of
 * its ICRC; they are taken off the end one by one. Packets from a wire have an
 * ICRC there. So GRO joins only packets whose lengths follow from a rule: all
 * have gso_size, but if the first begins a longer message, it is longer as its
 * opcode says, and the last may be shorter.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/skbuff_ref.h>
#include <linux/udp.h>
#include <net/gso.h>
#include <net/protocol.h>
#include <net/sock.h>

#include "super.h"
#include "gso.h"
#include "sock.h"
#include "wire.h"

/*
 * The GSO types that joined packets claim; only virtual netdevs have all of
 * these features. Packets that have not been on a wire have one more type,
 * which only marks them. A virtio_net_hdr can express none of the types, so
 * that no guest and no packet socket gets joined packets without ICRCs.
 */
#define ARX_GSO_TYPE	(SKB_GSO_UDP_TUNNEL | SKB_GSO_FRAGLIST)
#define ARX_GSO_FRESH	SKB_GSO_IPXIP4

/*
 * The inner protocol: a number for experiments of RFC 3692. 0: none was free.
 */
static u8 arx_gso_proto __read_mostly;

/**
 * arx_gso_usable - true if packets can be joined
 *
 * Return: false if both protocol numbers were in use.
 */
bool arx_gso_usable(void)
{
	return arx_gso_proto;
}

static int arx_gso_meets_xdp(struct net_device *netdev,
			     struct netdev_nested_priv *priv)
{
	const struct net_device_ops *ops = netdev->netdev_ops;
	struct net_device *peer;

	peer = ops->ndo_get_peer_dev ? ops->ndo_get_peer_dev(netdev) : NULL;
	return peer && rcu_access_pointer(peer->xdp_prog);
}

/**
 * arx_gso_may_leave - true if a netdev may be given joined packets
 * @netdev: netdev of the route
 *
 * XDP in generic mode sends without asking the stack to split packets. This is
 * checked at the other end of a veth, and below other netdevs.
 *
 * Context: RCU read side.
 * Return: true if no such XDP program is there.
 */
bool arx_gso_may_leave(struct net_device *netdev)
{
	struct netdev_nested_priv priv = {};

	return !arx_gso_meets_xdp(netdev, &priv) &&
	       !netdev_walk_all_lower_dev_rcu(netdev, arx_gso_meets_xdp, &priv);
}

/**
 * arx_gso_join - join packets
 * @first: first packet, from the BTH on; the others follow by ->next; each ends
 *	with the length that arx_gso_write_len() writes, and may be a
 *	super-packet
 * @n: number of packets, segmented
 * @size: bytes from BTH to ICRC of the largest packet, segmented
 *
 * Context: any.
 */
void arx_gso_join(struct sk_buff *first, unsigned int n, unsigned int size)
{
	struct skb_shared_info *info = skb_shinfo(first);
	struct sk_buff *skb;

	for (skb = first->next; skb; skb = skb->next) {
		first->len += skb->len;
		first->data_len += skb->len;
		first->truesize += skb->truesize;
		info->flags |= skb_shinfo(skb)->flags & SKBFL_SHARED_FRAG;
	}
	info->frag_list = first->next;
	skb_mark_not_on_list(first);
	info->gso_size = size;
	info->gso_segs = n;
	info->gso_type = ARX_GSO_TYPE | ARX_GSO_FRESH;
	/* Only this file computes checksums of these packets. */
	first->ip_summed = CHECKSUM_UNNECESSARY;
}

/**
 * arx_gso_mark - describe the inner headers to the stack
 * @skb: joined packets, from the IP header on
 *
 * Context: any.
 */
void arx_gso_mark(struct sk_buff *skb)
{
	int bth = skb_transport_offset(skb) + sizeof(struct udphdr);

	skb->encapsulation = 1;
	skb_set_inner_ipproto(skb, arx_gso_proto);
	skb_set_inner_mac_header(skb, bth);
	skb_set_inner_network_header(skb, bth);
	skb_set_inner_transport_header(skb, bth);
}

/**
 * arx_gso_mark_checked - mark joined packets that came from a wire
 * @skb: packets joined by GRO, their ICRCs checked; gso_size is that of
 *	arx_gso_join()
 * @n: number of packets
 *
 * Context: any.
 */
void arx_gso_mark_checked(struct sk_buff *skb, unsigned int n)
{
	skb_shinfo(skb)->gso_segs = n;
	skb_shinfo(skb)->gso_type = ARX_GSO_TYPE;
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	arx_gso_mark(skb);
}

/* False for packets that a guest or a tunnel hands in. */
static bool arx_gso_fits(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);

	return info->gso_size &&
	       (info->gso_type & (ARX_GSO_TYPE | SKB_GSO_DODGY)) ==
	       ARX_GSO_TYPE &&
	       skb->inner_protocol_type == ENCAP_TYPE_IPPROTO &&
	       skb->inner_ipproto == arx_gso_proto && arx_gso_proto;
}

/**
 * arx_gso_is_checked - true if GRO has checked the ICRCs of joined packets
 * @skb: joined packets
 *
 * Context: any.
 * Return: true if so; false if they have no ICRCs and never left this machine.
 */
bool arx_gso_is_checked(const struct sk_buff *skb)
{
	return !(skb_shinfo(skb)->gso_type & ARX_GSO_FRESH);
}

/**
 * arx_gso_is_ours - true if this file or GRO joined these packets
 * @skb: any packet
 *
 * Context: any.
 * Return: true if so: their ICRCs need no check any more.
 */
bool arx_gso_is_ours(const struct sk_buff *skb)
{
	return skb->encapsulation && arx_gso_fits(skb);
}

/*
 * Make the bytes [@off, @off + @len) a packet of its own. With @copy, or if the
 * bytes begin in the linear part, all bytes are copied. If not, only the
 * headers are, and the packet refers to the rest.
 */
static struct sk_buff *arx_gso_take(struct sk_buff *skb, int off, int len,
				    bool copy)
{
	unsigned int headroom = skb_headroom(skb);
	int copied = copy || off < (int)skb_headlen(skb) ?
			     len : min(len, ARX_MAX_HEADERS);
	struct sk_buff *one;

	one = arx_packet_alloc(headroom + copied);
	if (!one)
		return NULL;
	skb_reserve(one, headroom);
	if (skb_copy_bits(skb, off, skb_put(one, copied), copied) ||
	    !arx_packet_refer(one, skb, off + copied, len - copied)) {
		kfree_skb(one);
		return NULL;
	}
	if (copied < len) {
		one->pfmemalloc |= skb->pfmemalloc;
		/*
		 * A packet that keep.c keeps holds a page for each fragment,
		 * or more if the card's driver uses larger pages.
		 */
		one->truesize += skb_shinfo(one)->nr_frags * PAGE_SIZE;
	}
	return one;
}

/*
 * Packets from a wire: bytes of the first packet, whose headers may be longer
 * than those of the others.
 */
static int arx_gso_first_len(struct sk_buff *skb)
{
	int size = skb_shinfo(skb)->gso_size;
	struct arx_headers h;
	int headers;

	if (!pskb_may_pull(skb, ARX_BTH_LEN))
		return -EINVAL;
	headers = arx_bth_read(&h, skb->data);
	if (headers < 0)
		return headers;
	if (h.flags & ARX_FIRST && h.flags & ARX_LAST)
		return size;
	return size + headers - ARX_BTH_LEN;
}

/* Without ICRCs: bytes of the packet that ends at @end, by its own trailer. */
static int arx_gso_trailer(const struct sk_buff *skb, int end)
{
	__le32 len;

	if (end < (int)sizeof(len) ||
	    skb_copy_bits(skb, end - (int)sizeof(len), &len, sizeof(len)))
		return -EINVAL;
	return min_t(u32, le32_to_cpu(len), INT_MAX);
}

/* Bytes of the last of the @n packets that end at @end. */
static int arx_gso_last_len(struct sk_buff *skb, int end, int n)
{
	int first;

	if (arx_gso_is_checked(skb)) {
		if (n == 1)
			return end;
		first = arx_gso_first_len(skb);
		return first < 0 ? first :
		       end - first - (n - 2) * skb_shinfo(skb)->gso_size;
	}
	return arx_gso_trailer(skb, end);
}

/*
 * The stack made joined packets linear, or a card delivered them as one: make
 * packets of all but the first.
 */
static struct sk_buff *arx_gso_split_linear(struct sk_buff *skb, bool copy)
{
	struct sk_buff *rest = NULL;
	int end = skb->len;
	int n;

	local_bh_disable();
	for (n = skb_shinfo(skb)->gso_segs; ; n--) {
		int len = arx_gso_last_len(skb, end, n);
		struct sk_buff *one;

		if (len == end)
			break;
		if (len < ARX_BTH_LEN + ARX_ICRC_LEN || len > end)
			goto fail;
		end -= len;
		one = arx_gso_take(skb, end, len, copy);
		if (!one)
			goto fail;
		one->next = rest;
		rest = one;
	}
	if (pskb_trim(skb, end))
		goto fail;
	local_bh_enable();
	return rest;

fail:
	local_bh_enable();
	kfree_skb_list(rest);
	return ERR_PTR(-ENOMEM);
}

/*
 * Take the packets off the frag_list; shared packets are cloned. Their part of
 * the socket's account goes with them.
 */
static struct sk_buff *arx_gso_split_list(struct sk_buff *skb)
{
	struct sk_buff *next = skb_shinfo(skb)->frag_list;
	struct sk_buff *rest = NULL;
	struct sk_buff **end = &rest;

	skb_shinfo(skb)->frag_list = NULL;
	while (next) {
		struct sk_buff *one = next;

		next = one->next;
		skb->len -= one->len;
		skb->data_len -= one->len;
		one = skb_share_check(one, GFP_ATOMIC);
		if (!one) {
			kfree_skb_list(next);
			kfree_skb_list(rest);
			return ERR_PTR(-ENOMEM);
		}
		skb->truesize -= one->truesize;
		if (skb->destructor == sock_wfree) {
			one->sk = skb->sk;
			one->destructor = sock_wfree;
		}
		skb_mark_not_on_list(one);
		*end = one;
		end = &one->next;
	}
	return rest;
}

/*
 * True if the list begins with the second packet. A firewall or a BPF program
 * that reads or writes behind the first packet has the stack move bytes from
 * the list there. Then either the bytes before the list end in the middle of a
 * packet and the list begins in the same one, or they are several packets.
 */
static bool arx_gso_list_is_whole(struct sk_buff *skb)
{
	const struct sk_buff *second = skb_shinfo(skb)->frag_list;
	int first = skb_pagelen(skb);

	if (arx_gso_is_checked(skb))
		return first == arx_gso_first_len(skb);
	return arx_gso_trailer(skb, first) == first &&
	       arx_gso_trailer(second, second->len) == (int)second->len;
}

/**
 * arx_gso_split - split joined packets
 * @skb: from the first packet's BTH on; becomes the first packet
 * @copy: packets that @skb has in its own memory are copied, because the caller
 *	writes to them; else they refer to that memory
 *
 * Super-packets are not segmented.
 *
 * Context: any with interrupts on.
 * Return: the other packets, linked by ->next; NULL if there are none; an
 * error, after which @skb can only be freed.
 */
struct sk_buff *arx_gso_split(struct sk_buff *skb, bool copy)
{
	struct sk_buff *rest;

	if (skb_unclone(skb, GFP_ATOMIC))
		return ERR_PTR(-ENOMEM);
	if (skb_has_frag_list(skb) && !arx_gso_list_is_whole(skb) &&
	    skb_linearize(skb))
		return ERR_PTR(-ENOMEM);
	if (skb_has_frag_list(skb))
		rest = arx_gso_split_list(skb);
	else
		rest = arx_gso_split_linear(skb, copy);
	skb_gso_reset(skb);
	return rest;
}

/* Make the memory of the ICRC private: a clone may write another ICRC there. */
static int arx_gso_own_trailer(struct sk_buff *skb)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	struct page *page;
	skb_frag_t *frag;
	void *p;

	if (!info->nr_frags)
		return 0;
	frag = &info->frags[info->nr_frags - 1];
	if (skb_frag_size(frag) > PAGE_SIZE)
		return __skb_linearize(skb);
	p = netdev_alloc_frag(skb_frag_size(frag));
	if (!p)
		return -ENOMEM;
	memcpy(p, skb_frag_address(frag), skb_frag_size(frag));
	skb_frag_unref(skb, info->nr_frags - 1);
	page = virt_to_head_page(p);
	skb_frag_fill_page_desc(frag, page, p - page_address(page),
				skb_frag_size(frag));
	return 0;
}

/* Give packet @i IP and UDP headers of its own, and its ICRC. */
static void arx_gso_finish(struct sk_buff *skb, int ip_len, int i)
{
	int udp_len = sizeof(struct udphdr) + skb->len;
	struct udphdr *udp = (void *)skb->data - sizeof(*udp);
	struct iphdr *ip = (void *)udp - ip_len;
	__le32 icrc;

	udp->len = htons(udp_len);
	if (ip->version == 4) {
		/* inet_gso_segment() will write this identification. */
		ip->id = htons(ntohs(ip->id) + i);
		ip->tot_len = htons(ip_len + udp_len);
	} else {
		((struct ipv6hdr *)ip)->payload_len = htons(udp_len);
	}

	skb_set_transport_header(skb, -(int)sizeof(*udp));
	skb_set_network_header(skb, -(int)sizeof(*udp) - ip_len);
	icrc = arx_icrc(skb);
	skb_store_bits(skb, skb->len - sizeof(icrc), &icrc, sizeof(icrc));
}

/*
 * Make a packet writable, with @outer bytes of headers and the state of @head.
 */
static int arx_gso_prepare(struct sk_buff *skb, struct sk_buff *head, int outer,
			   netdev_features_t features)
{
	bool shared = skb_cloned(skb);

	if (skb_cow_head(skb, outer) || (shared && arx_gso_own_trailer(skb)))
		return -ENOMEM;
	skb_copy_header(skb, head);
	memcpy(skb->data - outer, head->data - outer, outer);
	if (skb_needs_linearize(skb, features) && __skb_linearize(skb))
		return -ENOMEM;
	return 0;
}

/*
 * The same for @head, whose headers are its own. Its trailer may be shared,
 * which a packet from pskb_copy() does not show.
 */
static int arx_gso_prepare_head(struct sk_buff *head,
				netdev_features_t features)
{
	int err = arx_gso_own_trailer(head);

	if (!err && skb_needs_linearize(head, features))
		err = __skb_linearize(head);
	return err;
}

/* True if the outer IP header is as arx wrote it. */
static bool arx_gso_ip_fits(const struct sk_buff *skb, int outer, int ip_len)
{
	const struct iphdr *ip;

	if (outer < ip_len + (int)sizeof(struct udphdr))
		return false;
	ip = (void *)skb->data - sizeof(struct udphdr) - ip_len;
	return ip_len == sizeof(*ip) ? ip->version == 4 && ip->ihl == 5 :
				       ip->version == 6;
}

/*
 * Give all packets of @list headers of their own, @outer bytes of which are
 * those of @head, and their ICRCs. Returns their number, or -ENOMEM.
 */
static int arx_gso_finish_list(struct sk_buff *list, struct sk_buff *head,
			       int outer, int ip_len,
			       netdev_features_t features)
{
	struct sk_buff *skb;
	int n = 0;

	for (skb = list; skb; skb = skb->next) {
		if (skb != head && arx_gso_prepare(skb, head, outer, features))
			return -ENOMEM;
		arx_gso_finish(skb, ip_len, n++);
		/* as validate_xmit_skb_list() expects */
		list->prev = skb;
	}
	return n;
}

/*
 * The stack splits packets, on transmit or in front of a socket. Outer headers
 * are @head's only: the stack's changes to them apply to all packets. The stack
 * sets them up once more afterwards, with the same lengths and identifications.
 */
static struct sk_buff *arx_gso_segment(struct sk_buff *head,
				       netdev_features_t features, int ip_len)
{
	int outer = skb_tnl_header_len(head);
	u32 size = skb_shinfo(head)->gso_size;
	bool checked = arx_gso_is_checked(head);
	struct sk_buff *list = head;
	struct sk_buff *rest;
	bool super;
	int n;

	if (!arx_gso_fits(head) || !arx_gso_ip_fits(head, outer, ip_len))
		return ERR_PTR(-EINVAL);

	rest = arx_gso_split(head, true);
	if (IS_ERR(rest))
		return rest;
	super = !checked && arx_is_super(head->len, size);
	if (!super && arx_gso_prepare_head(head, features)) {
		kfree_skb_list(rest);
		return ERR_PTR(-ENOMEM);
	}
	skb_get(head); /* the caller frees the packet that it passed in */
	head->next = rest;
	if (!checked && arx_super_segment(&list, size, features))
		goto fail;

	n = arx_gso_finish_list(list, head, outer, ip_len, features);
	if (n < 0)
		goto fail;
	/*
	 * From a veth GRO's packets may have an owner, who was already charged.
	 */
	if (!checked)
		arx_sock_icrc_computed(head, n);

	/*
	 * Packets that UDP has received must not ask for a checksum; otherwise
	 * the stack warns.
	 */
	if (super)
		head->ip_summed = CHECKSUM_UNNECESSARY;
	return list;

fail:
	kfree_skb_list(list);
	skb_mark_not_on_list(head);
	return ERR_PTR(-ENOMEM);
}

/* One for each protocol, because skb->protocol may be that of a VLAN tag. */
static struct sk_buff *arx_gso_segment_ipv4(struct sk_buff *skb,
					    netdev_features_t features)
{
	return arx_gso_segment(skb, features, sizeof(struct iphdr));
}

static const struct net_offload arx_gso_offload4 = {
	.callbacks = {
		.gso_segment = arx_gso_segment_ipv4,
	},
};

#if IS_ENABLED(CONFIG_IPV6)
static struct sk_buff *arx_gso_segment_ipv6(struct sk_buff *skb,
					    netdev_features_t features)
{
	return arx_gso_segment(skb, features, sizeof(struct ipv6hdr));
}

static const struct net_offload arx_gso_offload6 = {
	.callbacks = {
		.gso_segment = arx_gso_segment_ipv6,
	},
};

static int arx_gso_add6(u8 proto)
{
	return inet6_add_offload(&arx_gso_offload6, proto);
}

static void arx_gso_del6(u8 proto)
{
	inet6_del_offload(&arx_gso_offload6, proto);
}
#else
static int arx_gso_add6(u8 proto)
{
	return 0;
}

static void arx_gso_del6(u8 proto)
{
}
#endif

/**
 * arx_gso_init - register the inner protocol with the stack
 *
 * If the numbers for experiments are in use, packets are not joined.
 */
void arx_gso_init(void)
{
	static const u8 protos[] = { 253, 254 };
	int i;

	for (i = 0; i < ARRAY_SIZE(protos); i++) {
		if (inet_add_offload(&arx_gso_offload4, protos[i]))
			continue;
		if (!arx_gso_add6(protos[i])) {
			arx_gso_proto = protos[i];
			return;
		}
		inet_del_offload(&arx_gso_offload4, protos[i]);
	}
}

/**
 * arx_gso_exit - undo arx_gso_init(); packets that are still joined are dropped
 *
 * Context: may sleep.
 */
void arx_gso_exit(void)
{
	if (!arx_gso_proto)
		return;
	arx_gso_del6(arx_gso_proto);
	inet_del_offload(&arx_gso_offload4, arx_gso_proto);
}
