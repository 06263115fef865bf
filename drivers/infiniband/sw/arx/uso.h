/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* UDP segmentation offload: packets that a card makes from a larger one. */
#ifndef ARX_USO_H
#define ARX_USO_H

#include <linux/skbuff.h>

/**
 * struct arx_uso_limits - of a train
 * @bytes: with all its headers
 * @packets: that it becomes
 */
struct arx_uso_limits {
	u32 bytes;
	u32 packets;
};

bool arx_uso_usable(struct net_device *netdev, bool ipv4,
		    struct arx_uso_limits *most);
struct sk_buff *arx_uso_make(struct sk_buff *list, u32 size,
			     const struct arx_uso_limits *most);
void arx_uso_finish(struct sk_buff *skb);

/* Packets that a card will make of @skb. */
static inline u32 arx_uso_packets(const struct sk_buff *skb)
{
	return skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
}

#endif /* ARX_USO_H */
