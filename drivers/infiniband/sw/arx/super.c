// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Super-packets. A run travels through the stack as one packet: the headers of
 * the run, as struct arx_run has them (its first packet's, with the flags of
 * its last packet), and all its payload. A receiver on this machine takes the
 * super-packet for the run that it is. In front of a netdev that does not take
 * joined packets, and of a socket that is not arx's, the super-packet is
 * segmented into packets.
 */

#include <linux/skbuff_ref.h>
#include <net/sock.h>

#include "super.h"
#include "run.h"

/*
 * Payload of up to this size is cheaper to copy than to refer to: a NIC's
 * driver maps each fragment, of which a packet has up to three; the trailer is
 * one.
 */
#define ARX_SUPER_LINEAR	1024

/**
 * arx_packet_alloc - allocate an empty packet
 * @len: bytes of room
 *
 * Allocates like a NIC's driver, which takes less time than alloc_skb().
 *
 * Context: bottom halves off.
 * Return: the packet, or NULL.
 */
struct sk_buff *arx_packet_alloc(u32 len)
{
	u32 size = SKB_DATA_ALIGN(len) +
		   SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct sk_buff *skb;
	void *data;

	/* For a netdev that needs more headroom than a fragment has. */
	if (size > PAGE_SIZE)
		return alloc_skb(len, GFP_ATOMIC | __GFP_NOWARN);
	data = napi_alloc_frag(size);
	if (!data)
		return NULL;
	skb = napi_build_skb(data, size);
	if (!skb)
		skb_free_frag(data);
	return skb;
}

/**
 * arx_packet_refer - append bytes of one packet to another, by reference
 * @to: the other packet
 * @from: packet whose fragments have the bytes
 * @off: the first byte, from @from->data on; behind the linear part
 * @len: number of bytes
 *
 * Context: any.
 * Return: false if @to has no room for more fragments, or @from has fewer
 * bytes; @to then has some of the bytes.
 */
bool arx_packet_refer(struct sk_buff *to, struct sk_buff *from, int off,
		      int len)
{
	const struct skb_shared_info *info = skb_shinfo(from);
	int i;

	skb_shinfo(to)->flags |= info->flags & SKBFL_SHARED_FRAG;
	off -= skb_headlen(from);
	for (i = 0; len && i < info->nr_frags; i++) {
		const skb_frag_t *frag = &info->frags[i];
		int size = skb_frag_size(frag);
		int n = min(len, size - off);

		if (off >= size) {
			off -= size;
			continue;
		}
		if (skb_shinfo(to)->nr_frags == MAX_SKB_FRAGS)
			return false;
		skb_frag_ref(from, i);
		skb_fill_page_desc_noacc(to, skb_shinfo(to)->nr_frags,
					 skb_frag_page(frag),
					 skb_frag_off(frag) + off, n);
		skb_len_add(to, n);
		off = 0;
		len -= n;
	}
	return !len;
}

/* Append the pad bytes and room for the ICRC of packet @i, by reference. */
static void arx_super_trailer(struct arx_super *super, struct sk_buff *skb,
			      u32 i, u32 pad)
{
	/* only the last packet has padding */
	void *p = super->trailer + i * ARX_ICRC_LEN;
	struct page *page = virt_to_head_page(p);

	memset(p, 0, pad + ARX_ICRC_LEN);
	get_page(page);
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page,
			p - page_address(page), pad + ARX_ICRC_LEN,
			pad + ARX_ICRC_LEN);
}

/* Make packet @i, without headers. */
static struct sk_buff *arx_super_payload(struct arx_super *super, u32 i)
{
	unsigned int room = skb_headroom(super->skb) + ARX_MAX_HEADERS;
	u32 len = min(super->mtu, super->len - i * super->mtu);
	u32 pad = i + 1 < super->n ? 0 : super->h.pad;
	int off = super->headers + i * super->mtu;
	bool copy = super->copy || len <= ARX_SUPER_LINEAR ||
		    off < skb_headlen(super->skb);
	struct sk_buff *skb;

	skb = arx_packet_alloc(room + (copy ? len + pad + ARX_ICRC_LEN : 0));
	if (!skb)
		return NULL;
	skb_reserve(skb, room);
	if (copy) {
		skb_copy_bits(super->skb, off, skb_put(skb, len), len);
		skb_put_zero(skb, pad + ARX_ICRC_LEN);
	} else {
		if (!arx_packet_refer(skb, super->skb, off, len)) {
			kfree_skb(skb);
			return NULL;
		}
		arx_super_trailer(super, skb, i, pad);
	}
	if (super->skb->destructor == sock_wfree)
		skb_set_owner_w(skb, super->skb->sk);
	return skb;
}

/* Write the headers of packet @i; @last is the packet before. */
static void arx_super_headers(const struct arx_super *super,
			      struct sk_buff *skb, u32 i,
			      const struct sk_buff *last)
{
	struct arx_headers h;

	if (i > 1 && i + 1 < super->n) {
		arx_bth_next(last->data, skb_push(skb, ARX_BTH_LEN));
		return;
	}
	arx_headers_part(&super->h, i, i + 1 == super->n, &h);
	arx_headers_write(&h, skb_push(skb, arx_headers_len(&h)));
}

/*
 * True if a run with such headers may travel as a super-packet. A firewall may
 * have changed the opcode on the way: the parts of a run with any other
 * operation or service have no opcode, or headers that the parts lack.
 */
static bool arx_super_may_have(const struct arx_headers *h)
{
	if (h->service == ARX_SERVICE_UD || arx_has_xrceth(h))
		return false;
	return h->op == ARX_OP_SEND || h->op == ARX_OP_WRITE ||
	       h->op == ARX_OP_READ_RESPONSE;
}

/**
 * arx_super_read - read the headers of a super-packet
 * @super: receives all but @copy and @trailer
 * @skb: the super-packet, from its BTH on
 * @size: gso_size of the packets with which it was joined
 *
 * Return: 0; -EINVAL: the headers are not those of a super-packet.
 */
int arx_super_read(struct arx_super *super, struct sk_buff *skb, u32 size)
{
	u8 buf[ARX_MAX_HEADERS];
	u32 len = min(skb->len, ARX_MAX_HEADERS);
	const u8 *p = skb_header_pointer(skb, 0, len, buf);
	int headers = p ? arx_headers_read(&super->h, p, len) : -EINVAL;

	if (headers < 0 || !arx_super_may_have(&super->h) ||
	    skb->len <= headers + super->h.pad + ARX_ICRC_LEN)
		return -EINVAL;
	super->skb = skb;
	super->mtu = arx_super_mtu(size);
	super->headers = headers;
	super->len = skb->len - headers - super->h.pad - ARX_ICRC_LEN;
	super->n = arx_run_npkts(super->len, super->mtu);
	return 0;
}

/*
 * Make the packets of @super at @list. Returns the place for the packets that
 * follow.
 */
static struct sk_buff **arx_super_packets(struct arx_super *super,
					  struct sk_buff **list)
{
	struct sk_buff **end = list;
	struct sk_buff *last = NULL;
	u32 i;

	super->trailer = napi_alloc_frag((super->n + 1) * ARX_ICRC_LEN);
	if (!super->trailer)
		return NULL;
	for (i = 0; i < super->n; i++) {
		*end = arx_super_payload(super, i);
		if (!*end)
			break;
		arx_super_headers(super, *end, i, last);
		last = *end;
		end = &last->next;
	}
	skb_free_frag(super->trailer);
	if (i == super->n)
		return end;
	kfree_skb_list(*list);
	return NULL;
}

/**
 * arx_super_segment - replace super-packets by their packets
 * @list: packets, linked by ->next; each begins with its BTH. Super-packets are
 *	consumed; the packets have the same headroom
 * @size: gso_size of the packets with which they were joined
 * @features: of the netdev in front of which they are segmented
 *
 * Context: any with interrupts on.
 * Return: 0; -ENOMEM or -EINVAL after some super-packets have been replaced.
 */
int arx_super_segment(struct sk_buff **list, u32 size,
		      netdev_features_t features)
{
	struct arx_super super = {
		.copy = !(features & NETIF_F_SG),
	};
	int err = 0;

	local_bh_disable();
	while (*list) {
		struct sk_buff *skb = *list;
		struct sk_buff *next = skb->next;
		struct sk_buff *packets = NULL;
		struct sk_buff **end;

		if (!arx_is_super(skb->len, size)) {
			list = &skb->next;
			continue;
		}
		err = arx_super_read(&super, skb, size);
		if (err)
			break;
		end = arx_super_packets(&super, &packets);
		if (!end) {
			err = -ENOMEM;
			break;
		}
		*end = next;
		*list = packets;
		list = end;
		skb_mark_not_on_list(skb);
		consume_skb(skb);
	}
	local_bh_enable();
	return err;
}

/**
 * arx_super_len - bytes from BTH to ICRC of a packet of a super-packet
 * @super: from arx_super_read()
 * @i: the packet
 *
 * Return: bytes.
 */
u32 arx_super_len(const struct arx_super *super, u32 i)
{
	struct arx_headers h;

	arx_headers_part(&super->h, i, i + 1 == super->n, &h);
	return arx_headers_len(&h) +
	       min(super->mtu, super->len - i * super->mtu) + h.pad +
	       ARX_ICRC_LEN;
}

/**
 * arx_super_copy - write a packet of a super-packet
 * @super: from arx_super_read()
 * @i: the packet
 * @to: room for arx_super_len() bytes. What is written there begins with the
 *	BTH and ends with four bytes of zeros for the ICRC
 *
 * Return: 0, or -EFAULT if the super-packet is shorter than its headers say.
 */
int arx_super_copy(const struct arx_super *super, u32 i, void *to)
{
	u32 len = min(super->mtu, super->len - i * super->mtu);
	struct arx_headers h;

	arx_headers_part(&super->h, i, i + 1 == super->n, &h);
	to += arx_headers_write(&h, to);
	memset(to + len, 0, h.pad + ARX_ICRC_LEN);
	return skb_copy_bits(super->skb, super->headers + i * super->mtu, to,
			     len);
}

/**
 * arx_super_largest - bytes from BTH to ICRC of the largest packet of a run
 * @h: headers of the run, which is long enough for a super-packet
 * @mtu: path MTU
 *
 * Return: bytes.
 */
u32 arx_super_largest(const struct arx_headers *h, u32 mtu)
{
	struct arx_headers first = { .op = h->op, .service = h->service };
	struct arx_headers last = first;

	first.flags = h->flags & ARX_FIRST;
	last.flags = h->flags & ~ARX_FIRST;
	return max(arx_headers_len(&first), arx_headers_len(&last)) + mtu +
	       ARX_ICRC_LEN;
}
