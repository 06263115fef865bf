/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Address vectors, and the consumers' address handles for them. */
#ifndef ARX_AV_H
#define ARX_AV_H

#include <net/dst_cache.h>
#include <net/ipv6.h>

#include "arx.h"

/**
 * struct arx_av - destination of packets; immutable once published
 * @rcu: frees it
 * @link: of those with a cache, see arx_av_forget_routes()
 * @id: in arx_dev.ahs, if it belongs to an application's AH
 * @ref: one for the AH or QP, one for each kernel work request that uses it
 * @pd: of an AH: a user may use only the AVs of its own PD; else NULL
 * @sgid_attr: held as long as @ref is not 0
 * @ifindex: netdev that has the source address
 * @cookie: of its network namespace, if @foreign
 * @saddr: source address, v4-mapped if @ipv4
 * @daddr: destination address, v4-mapped if @ipv4
 * @ipv4: RoCEv2 over IPv4
 * @tos: traffic class without the ECN bits
 * @ttl: hop limit
 * @sl: service level
 * @flow_label: IPv6 flow label, 20 bits
 * @sport: UDP source port, 0xC000 and up; of UD without a flow label, see tx.c
 * @foreign: the source address is in another network namespace than the
 *	device's netdev: on a macvlan, perhaps
 * @static_rate: enum ib_rate, as the consumer gave it
 * @mbps: the rate of packets in Mbit/s that follows, 0: as fast as possible
 * @dst: cached routes, or empty; used with bottom halves off
 *
 * All fields for packets, from @saddr on, are in one cache line.
 */
struct arx_av {
	struct rcu_head rcu;
	struct list_head link;
	struct arx_id id;
	refcount_t ref;
	struct ib_pd *pd;
	const struct ib_gid_attr *sgid_attr;
	int ifindex;
	u64 cookie;
	struct in6_addr saddr ____cacheline_aligned;
	struct in6_addr daddr;
	bool ipv4;
	u8 tos;
	u8 ttl;
	u8 sl;
	u32 flow_label;
	u16 sport;
	bool foreign;
	u8 static_rate;
	u32 mbps;
	struct dst_cache dst;
};

/**
 * struct arx_ah - address handle
 * @ib: the core's part
 * @av: its address vector
 */
struct arx_ah {
	struct ib_ah ib;
	struct arx_av *av;
};

static inline struct arx_ah *to_arx_ah(struct ib_ah *ib)
{
	return container_of(ib, struct arx_ah, ib);
}

/**
 * arx_av_is_peer - true if a packet with these addresses is from the peer
 * @av: of a QP, or NULL
 * @saddr: source address of the packet, v4-mapped
 * @daddr: destination address of the packet, v4-mapped
 */
static inline bool arx_av_is_peer(const struct arx_av *av,
				  const struct in6_addr *saddr,
				  const struct in6_addr *daddr)
{
	return av && ipv6_addr_equal(&av->daddr, saddr) &&
	       ipv6_addr_equal(&av->saddr, daddr);
}

/* The cookie of the network namespace that the source address of @av is in. */
static inline u64 arx_av_cookie(const struct arx_dev *dev,
				const struct arx_av *av)
{
	return av->foreign ? av->cookie : dev_net(dev->netdev)->net_cookie;
}

struct arx_av *arx_av_create(struct arx_dev *dev, struct ib_pd *pd,
			     const struct rdma_ah_attr *attr, u32 qpn,
			     u32 dest_qpn, gfp_t gfp);
void arx_av_forget_routes(void);
void arx_av_put(struct arx_av *av);
int arx_create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *init,
		  struct ib_udata *udata);
int arx_create_user_ah(struct ib_ah *ib, struct rdma_ah_init_attr *init,
		       struct ib_udata *udata);
int arx_query_ah(struct ib_ah *ib, struct rdma_ah_attr *attr);
void arx_ah_destroy(struct ib_ah *ib);

#endif /* ARX_AV_H */
