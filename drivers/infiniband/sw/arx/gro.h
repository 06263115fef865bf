/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* GRO: joins packets that a NIC delivers together. */
#ifndef ARX_GRO_H
#define ARX_GRO_H

#include <linux/skbuff.h>

struct sock;

struct sk_buff *arx_gro_receive(struct sock *sk, struct list_head *head,
				struct sk_buff *skb);
int arx_gro_complete(struct sock *sk, struct sk_buff *skb, int nhoff);

#endif /* ARX_GRO_H */
