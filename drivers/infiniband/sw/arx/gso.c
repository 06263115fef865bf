// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The packets of a run travel as one: the first carries the others on its
 * frag_list, and the stack takes its decisions once for all. Their ICRCs are
 * not there yet, as a TCP checksum is not while a packet has not left: to the
 * stack they are packets of a protocol inside a UDP tunnel, a protocol that
 * does not exist on any wire and whose segmentation offload is ours. Wherever
 * the stack would let them apart, in front of a netdev that does not take them
 * whole, or a socket that is not ours, it calls arx_gso_segment() to do so, and
 * that fills in the ICRCs. What arrives at our own socket still joined has not
 * left this machine, and nobody but this file could have made it.
 *
 * The packets of one message are folded: one packet with the headers of the run
 * and all its payload stands for them, and is unfolded only if it must leave.
 *
 * On the way the stack may clone the whole or make it linear. To find the
 * packets in a linear buffer, too, each has its length where its ICRC will be,
 * and they are taken off the end one by one. Packets that came from a wire have
 * an ICRC there, so GRO joins only those whose lengths follow from a rule: all
 * are of gso_size, but if the first begins a longer message, it is longer by as
 * much as its opcode says, and the last may be shorter.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/skbuff_ref.h>
#include <linux/udp.h>
#include <net/gso.h>
#include <net/protocol.h>
#include <net/sock.h>

#include "fold.h"
#include "gso.h"
#include "sock.h"
#include "wire.h"

/*
 * The kinds of offload this looks like; no netdev but a virtual one has all.
 * What has not been on a wire has one more, which only makes it stand apart.
 * None of them can be told by a virtio_net_hdr, so that no guest and no packet
 * socket gets packets joined whose ICRCs are missing.
 */
#define ARX_GSO_TYPE	(SKB_GSO_UDP_TUNNEL | SKB_GSO_FRAGLIST)
#define ARX_GSO_FRESH	SKB_GSO_IPXIP4

/* The inner protocol: for experiments, says RFC 3692. 0: none was free. */
static u8 arx_gso_proto __read_mostly;

/**
 * arx_gso_usable - can packets be joined?
 *
 * Return: false if the stack does not know our protocol.
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
 * arx_gso_may_leave - may joined packets be given to a netdev?
 * @netdev: where the route leads
 *
 * XDP in generic mode sends without asking the stack to let packets apart. At
 * the other end of a veth it can be seen from here, and below other netdevs.
 *
 * Context: RCU read side.
 * Return: true if so.
 */
bool arx_gso_may_leave(struct net_device *netdev)
{
	struct netdev_nested_priv priv = {};

	return !arx_gso_meets_xdp(netdev, &priv) &&
	       !netdev_walk_all_lower_dev_rcu(netdev, arx_gso_meets_xdp, &priv);
}

/**
 * arx_gso_join - make packets travel as one
 * @first: first packet, from the BTH on; the others follow by ->next; each ends
 *	with what arx_gso_write_len() writes, and may be folded
 * @n: number of packets, unfolded
 * @size: bytes from BTH to ICRC of the largest, unfolded
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
	/* There is nothing to compute but what we compute. */
	first->ip_summed = CHECKSUM_UNNECESSARY;
}

/**
 * arx_gso_mark - show the stack what is inside
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
 * arx_gso_mark_checked - the same for packets that came from a wire
 * @skb: packets joined by GRO, their ICRCs checked; gso_size is as
 *	arx_gso_join() has it
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

/* Not what a guest or a tunnel hands in. */
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
 * arx_gso_is_checked - has GRO checked the ICRCs of these packets?
 * @skb: joined packets
 *
 * Context: any.
 * Return: true if so; false: they have none, and never left this machine.
 */
bool arx_gso_is_checked(const struct sk_buff *skb)
{
	return !(skb_shinfo(skb)->gso_type & ARX_GSO_FRESH);
}

/**
 * arx_gso_is_ours - did this file or GRO join these packets?
 * @skb: any packet
 *
 * Context: any.
 * Return: true if so: their ICRCs are of no interest any more.
 */
bool arx_gso_is_ours(const struct sk_buff *skb)
{
	return skb->encapsulation && arx_gso_fits(skb);
}

/* A copy of the bytes [@off, @off + @len) as a packet of its own. */
static struct sk_buff *arx_gso_copy(const struct sk_buff *skb, int off,
				    int len)
{
	unsigned int headroom = skb_headroom(skb);
	struct sk_buff *copy;

	copy = alloc_skb(headroom + len, GFP_ATOMIC | __GFP_NOWARN);
	if (!copy)
		return NULL;
	skb_reserve(copy, headroom);
	if (skb_copy_bits(skb, off, skb_put(copy, len), len)) {
		kfree_skb(copy);
		return NULL;
	}
	return copy;
}

/*
 * Packets from a wire: bytes of the first one, whose headers may be longer than
 * others'.
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

/* Bytes of the last of the @n packets that end at @end. */
static int arx_gso_last_len(struct sk_buff *skb, int end, int n)
{
	__le32 len;
	int first;

	if (arx_gso_is_checked(skb)) {
		if (n == 1)
			return end;
		first = arx_gso_first_len(skb);
		return first < 0 ? first :
		       end - first - (n - 2) * skb_shinfo(skb)->gso_size;
	}
	if (skb_copy_bits(skb, end - (int)sizeof(len), &len, sizeof(len)))
		return -EINVAL;
	return min_t(u32, le32_to_cpu(len), INT_MAX);
}

/* Somebody made the whole linear: copy all packets but the first out of it. */
static struct sk_buff *arx_gso_split_linear(struct sk_buff *skb)
{
	struct sk_buff *rest = NULL;
	int end = skb->len;
	int n;

	for (n = skb_shinfo(skb)->gso_segs; ; n--) {
		int len = arx_gso_last_len(skb, end, n);
		struct sk_buff *one;

		if (len == end)
			break;
		if (len < ARX_BTH_LEN + ARX_ICRC_LEN || len > end)
			goto fail;
		end -= len;
		one = arx_gso_copy(skb, end, len);
		if (!one)
			goto fail;
		one->next = rest;
		rest = one;
	}
	if (pskb_trim(skb, end))
		goto fail;
	return rest;

fail:
	kfree_skb_list(rest);
	return ERR_PTR(-ENOMEM);
}

/*
 * Take the packets off the frag_list; those that others hold are cloned. What
 * they add to the socket's account goes with them.
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

/**
 * arx_gso_split - let joined packets apart
 * @skb: from the first packet's BTH on; becomes the first packet
 *
 * What is folded stays so.
 *
 * Context: any.
 * Return: the other packets, linked by ->next; NULL if there are none; an
 * error, after which @skb is good for nothing but to be freed.
 */
struct sk_buff *arx_gso_split(struct sk_buff *skb)
{
	struct sk_buff *rest;

	if (skb_unclone(skb, GFP_ATOMIC))
		return ERR_PTR(-ENOMEM);
	if (skb_has_frag_list(skb))
		rest = arx_gso_split_list(skb);
	else
		rest = arx_gso_split_linear(skb);
	skb_gso_reset(skb);
	return rest;
}

/* Others may hold the memory of its ICRC, too, and write another there. */
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

/* Packet @i on its own: IP and UDP for it alone, and its ICRC. */
static void arx_gso_finish(struct sk_buff *skb, int ip_len, int i)
{
	int udp_len = sizeof(struct udphdr) + skb->len;
	struct udphdr *udp = (void *)skb->data - sizeof(*udp);
	struct iphdr *ip = (void *)udp - ip_len;
	__le32 icrc;

	udp->len = htons(udp_len);
	if (ip->version == 4) {
		/* What inet_gso_segment() is about to write there. */
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

/* Make a packet writable, with @outer bytes of headers and state of @head. */
static int arx_gso_dress(struct sk_buff *skb, struct sk_buff *head, int outer,
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

/* The same for @head, which nobody else holds yet. A pskb_copy() shows nothing. */
static int arx_gso_redress(struct sk_buff *head, netdev_features_t features)
{
	int err = arx_gso_own_trailer(head);

	if (!err && skb_needs_linearize(head, features))
		err = __skb_linearize(head);
	return err;
}

/* Is the outer IP header as we made it? */
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
 * The stack lets packets apart, on the way out or in front of a socket. Outer
 * headers are @head's only: what the stack did to them it did to all. It sets
 * them up once more afterwards, to the same lengths and identifications.
 */
static struct sk_buff *arx_gso_segment(struct sk_buff *head,
				       netdev_features_t features, int ip_len)
{
	int outer = skb_tnl_header_len(head);
	u32 size = skb_shinfo(head)->gso_size;
	bool checked = arx_gso_is_checked(head);
	struct sk_buff *last = NULL;
	struct sk_buff *list = head;
	struct sk_buff *rest;
	struct sk_buff *skb;
	bool folded;
	int n = 0;

	if (!arx_gso_fits(head) || !arx_gso_ip_fits(head, outer, ip_len))
		return ERR_PTR(-EINVAL);

	rest = arx_gso_split(head);
	if (IS_ERR(rest))
		return rest;
	folded = !checked && arx_is_folded(head->len, size);
	if (!folded && arx_gso_redress(head, features)) {
		kfree_skb_list(rest);
		return ERR_PTR(-ENOMEM);
	}
	skb_get(head);		/* the caller frees what it handed in */
	head->next = rest;
	if (!checked && arx_unfold(&list, size, features))
		goto fail;

	for (skb = list; skb; skb = skb->next) {
		if (skb != head && arx_gso_dress(skb, head, outer, features))
			goto fail;
		arx_gso_finish(skb, ip_len, n++);
		last = skb;
	}
	/* From a veth GRO's packets may have an owner, who counted already. */
	if (!checked)
		arx_sock_icrc_computed(head, n);

	/* What UDP has received asks for nothing, or the stack complains. */
	if (folded)
		head->ip_summed = CHECKSUM_UNNECESSARY;
	list->prev = last;	/* as validate_xmit_skb_list() expects it */
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
 * arx_gso_init - introduce our protocol to the stack
 *
 * If the numbers for experiments are taken, packets travel one by one.
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
 * arx_gso_exit - undo arx_gso_init(); packets still joined are dropped
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
