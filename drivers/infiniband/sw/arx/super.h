/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Super-packets: one packet for a whole run. */
#ifndef ARX_SUPER_H
#define ARX_SUPER_H

#include <linux/log2.h>
#include <linux/skbuff.h>

#include "wire.h"

/**
 * arx_super_fits - true if a run may travel as a super-packet
 * @len: bytes of payload
 * @mtu: path MTU
 *
 * Return: true if the super-packet is longer than any packet of its path MTU;
 * that is how receivers recognise it.
 */
static inline bool arx_super_fits(u32 len, u32 mtu)
{
	return len > mtu + ARX_MAX_HEADERS;
}

/**
 * arx_is_super - true if a packet is a super-packet
 * @len: bytes from its BTH to its ICRC
 * @size: gso_size of the packets with which it was joined; none from a wire
 *
 * Return: true if it is longer than a packet of the path MTU.
 */
static inline bool arx_is_super(u32 len, u32 size)
{
	return len > size;
}

/**
 * arx_super_mtu - path MTU of super-packets
 * @size: gso_size of the packets with which they were joined
 *
 * All path MTUs are powers of two, and the headers of a packet are shorter than
 * any.
 *
 * Return: bytes.
 */
static inline u32 arx_super_mtu(u32 size)
{
	return rounddown_pow_of_two(size);
}

/**
 * struct arx_super - a super-packet, while its packets are made
 * @skb: the super-packet, from its BTH on
 * @h: its headers
 * @headers: bytes of them
 * @len: bytes of payload
 * @mtu: path MTU
 * @n: number of its packets
 * @copy: true if its packets may not refer to its pages, however long they are
 * @trailer: memory of the packets' trailers; this reference is dropped when all
 *	packets have their trailers
 */
struct arx_super {
	struct sk_buff *skb;
	struct arx_headers h;
	u32 headers;
	u32 len;
	u32 mtu;
	u32 n;
	bool copy;
	void *trailer;
};

struct sk_buff *arx_packet_alloc(u32 len);
bool arx_packet_refer(struct sk_buff *to, struct sk_buff *from, int off,
		      int len);
int arx_super_read(struct arx_super *super, struct sk_buff *skb, u32 size);
u32 arx_super_len(const struct arx_super *super, u32 i);
int arx_super_copy(const struct arx_super *super, u32 i, void *to);
u32 arx_super_largest(const struct arx_headers *h, u32 mtu);
int arx_super_segment(struct sk_buff **list, u32 size,
		      netdev_features_t features);

#endif /* ARX_SUPER_H */
