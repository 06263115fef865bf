/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* One packet for a run, until it is let apart. */
#ifndef ARX_FOLD_H
#define ARX_FOLD_H

#include <linux/log2.h>
#include <linux/skbuff.h>

#include "wire.h"

/**
 * arx_folds - may a run be one packet until it is let apart?
 * @len: bytes of payload
 * @mtu: path MTU
 *
 * Return: true if that packet is longer than any on the wire: it is known by
 * that.
 */
static inline bool arx_folds(u32 len, u32 mtu)
{
	return len > mtu + ARX_MAX_HEADERS;
}

/**
 * arx_is_folded - does a packet stand for several?
 * @len: bytes from its BTH to its ICRC
 * @size: gso_size of the packets it was joined with, none from a wire
 *
 * Return: true if so.
 */
static inline bool arx_is_folded(u32 len, u32 size)
{
	return len > size;
}

/**
 * arx_folded_mtu - path MTU of folded packets
 * @size: gso_size of what they were joined with
 *
 * All path MTUs are powers of two, and no packet's headers are as long.
 *
 * Return: bytes.
 */
static inline u32 arx_folded_mtu(u32 size)
{
	return rounddown_pow_of_two(size);
}

struct sk_buff *arx_packet_alloc(u32 len);
u32 arx_folded_largest(const struct arx_headers *h, u32 mtu);
int arx_unfold(struct sk_buff **list, u32 size, netdev_features_t features);

#endif /* ARX_FOLD_H */
