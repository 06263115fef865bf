/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Joined packets: packets that pass the stack as one, and get their ICRCs when
 * they are split.
 */
#ifndef ARX_GSO_H
#define ARX_GSO_H

#include <linux/skbuff.h>
#include <linux/unaligned.h>

/* Until its ICRC is computed, a packet has its length in that place. */
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
struct sk_buff *arx_gso_split(struct sk_buff *skb, bool copy);
void arx_gso_init(void);
void arx_gso_exit(void);

#endif /* ARX_GSO_H */
