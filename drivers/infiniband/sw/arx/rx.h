/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef ARX_RX_H
#define ARX_RX_H

#include <linux/skbuff.h>

struct sock;

int arx_rx_encap(struct sock *sk, struct sk_buff *skb);

/* gro.c */
struct sk_buff *arx_gro_receive(struct sock *sk, struct list_head *head,
				struct sk_buff *skb);
int arx_gro_complete(struct sock *sk, struct sk_buff *skb, int nhoff);

#endif /* ARX_RX_H */
