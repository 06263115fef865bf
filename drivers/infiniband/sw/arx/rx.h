/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Turns packets into runs. */
#ifndef ARX_RX_H
#define ARX_RX_H

#include <linux/skbuff.h>

struct sock;

int arx_rx_encap(struct sock *sk, struct sk_buff *skb);

#endif /* ARX_RX_H */
