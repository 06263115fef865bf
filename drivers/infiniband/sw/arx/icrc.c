// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The invariant CRC: Ethernet's CRC32 over all fields that routers do not
 * change, 7.8.1 and A17.3.3. Fields that routers may change count as ones.
 */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "crc.h"
#include "wire.h"

/* CRC of the eight bytes of ones that replace an LRH: A17.3.3 */
#define ARX_ICRC_SEED		0xdebb20e3U

/* Offset of the byte of the BTH that routers may change (FECN and BECN). */
#define ARX_BTH_VARIANT		4

/* Bytes of the longest copy of the headers. */
#define ARX_PSEUDO_MAX	\
	(sizeof(struct ipv6hdr) + sizeof(struct udphdr) + ARX_BTH_LEN)

static int arx_icrc_mask_ipv4(struct iphdr *to, const struct iphdr *from)
{
	*to = *from;
	to->tos = 0xff;
	to->ttl = 0xff;
	to->check = (__force __sum16)0xffff;
	return sizeof(*to);
}

static int arx_icrc_mask_ipv6(struct ipv6hdr *to, const struct ipv6hdr *from)
{
	*to = *from;
	/*
	 * Traffic class and flow label: all of the first word except the
	 * version.
	 */
	to->priority = 0xf;
	memset(to->flow_lbl, 0xff, sizeof(to->flow_lbl));
	to->hop_limit = 0xff;
	return sizeof(*to);
}

/*
 * Copy IP, UDP and BTH headers, with ones in place of variant fields. Returns
 * bytes of the IP header.
 */
static int arx_icrc_mask_headers(void *to, const struct sk_buff *skb,
				 const void *from_bth)
{
	struct udphdr *udp;
	u8 *bth;
	int len;

	if (ip_hdr(skb)->version == 4)
		len = arx_icrc_mask_ipv4(to, ip_hdr(skb));
	else
		len = arx_icrc_mask_ipv6(to, ipv6_hdr(skb));

	udp = to + len;
	*udp = *udp_hdr(skb);
	udp->check = (__force __sum16)0xffff;
	bth = (u8 *)(udp + 1);
	memcpy(bth, from_bth, ARX_BTH_LEN);
	bth[ARX_BTH_VARIANT] = 0xff;
	return len;
}

/* Continue @crc over the bytes [off, end) from skb->data. */
static u32 arx_icrc_range(u32 crc, const struct sk_buff *skb, int off, int end)
{
	int start = skb_headlen(skb);
	int i;

	if (off < start) {
		int n = min(end, start) - off;

		crc = arx_crc32(crc, skb->data + off, n);
		off += n;
	}

	for (i = 0; off < end && i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];
		int size = skb_frag_size(frag);

		if (off < start + size) {
			int n = min(end, start + size) - off;

			crc = arx_crc32(crc, skb_frag_address(frag) +
					    (off - start), n);
			off += n;
		}
		start += size;
	}
	return crc;
}

/**
 * arx_icrc - compute the ICRC of a packet
 * @skb: one packet that ends with the ICRC or room for it, without frag_list;
 *	network and transport header are set, IP has no options; IP, UDP and BTH
 *	are linear
 *
 * Return: the ICRC in wire order.
 */
__le32 arx_icrc(const struct sk_buff *skb)
{
	int bth = skb_transport_offset(skb) + sizeof(struct udphdr);
	u8 pseudo[ARX_PSEUDO_MAX] __aligned(8);
	int len = arx_icrc_mask_headers(pseudo, skb,
					skb_transport_header(skb) +
					sizeof(struct udphdr));
	u32 crc;

	len += sizeof(struct udphdr) + ARX_BTH_LEN;
	crc = arx_crc32(ARX_ICRC_SEED, pseudo, len);
	crc = arx_icrc_range(crc, skb, bth + ARX_BTH_LEN,
			     skb->len - ARX_ICRC_LEN);
	return cpu_to_le32(~crc);
}

/**
 * arx_icrc_segment - compute the ICRC of a packet that is part of a larger one
 * @skb: packets that UDP segmentation splits, or has joined; network and
 *	transport header are set, IP has no options and, like UDP, is linear
 * @i: number of the packet
 * @off: offset of the packet's BTH from skb->data
 * @len: bytes from its BTH to its ICRC
 *
 * Alone the packet has its own lengths and IPv4 identification, which the ICRC
 * covers.
 *
 * Return: the ICRC in wire order.
 */
__le32 arx_icrc_segment(const struct sk_buff *skb, u32 i, int off, int len)
{
	u8 pseudo[ARX_PSEUDO_MAX] __aligned(8);
	int ip_len, crc_len;
	struct udphdr *udp;
	struct iphdr *ip;
	u8 bth[ARX_BTH_LEN] = {};
	u32 crc;

	skb_copy_bits(skb, off, bth, sizeof(bth));
	ip_len = arx_icrc_mask_headers(pseudo, skb, bth);
	ip = (void *)pseudo;
	udp = (void *)pseudo + ip_len;
	udp->len = htons(sizeof(*udp) + len);
	if (ip->version == 4) {
		ip->id = htons(ntohs(ip->id) + i);
		ip->tot_len = htons(sizeof(*ip) + sizeof(*udp) + len);
	} else {
		((struct ipv6hdr *)ip)->payload_len = udp->len;
	}
	crc_len = ip_len + sizeof(*udp) + ARX_BTH_LEN;
	crc = arx_crc32(ARX_ICRC_SEED, pseudo, crc_len);
	crc = arx_icrc_range(crc, skb, off + ARX_BTH_LEN,
			     off + len - ARX_ICRC_LEN);
	return cpu_to_le32(~crc);
}
