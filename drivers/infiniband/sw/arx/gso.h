/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Packets that travel together, and whose ICRC is computed when they part. */
#ifndef ARX_GSO_H
#define ARX_GSO_H

#include <linux/skbuff.h>
#include <linux/unaligned.h>

/* A packet's length, in the place of its ICRC until that is computed. */
static inline void arx_gso_write_len(void *icrc, u32 len)
{
	put_unaligned_le32(len, icrc);
}

bool arx_gso_usable(void);
bool arx_gso_may_leave(struct net_device *netdev);
void arx_gso_join(struct sk_buff *first, unsigned int n, unsigned int size);
void arx_gso_mark(struct sk_buff *skb);
void arx_gso_mark_checked(struct sk_buff *skb, unsigned int n);
bool arx_gso_is_checked(const struct sk_buff *skb);
bool arx_gso_is_ours(const struct sk_buff *skb);
struct sk_buff *arx_gso_split(struct sk_buff *skb);
void arx_gso_init(void);
void arx_gso_exit(void);

#endif /* ARX_GSO_H */
