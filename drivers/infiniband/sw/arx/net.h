/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Layer-3 domains, their UDP sockets, routes. */
#ifndef ARX_NET_H
#define ARX_NET_H

#include <net/udp_tunnel.h>

#include "arx.h"

/**
 * struct arx_l3_key - what tells layer-3 domains from each other
 * @cookie: of the network namespace
 * @ifindex: of the VRF's netdev; 0: what belongs to no VRF
 */
struct arx_l3_key {
	u64 cookie;
	int ifindex;
};

/**
 * struct arx_l3 - a namespace, or a VRF in one, with addresses of devices
 * @key: which it is
 * @net: the namespace
 * @users: devices and GIDs; the sockets live while there are some
 * @sk4: UDP socket on port 4791 for IPv4; receives
 * @sk6: the same for IPv6, or NULL without IPv6
 * @link: in the list of all domains (net.c, under its mutex, read under RCU)
 * @rcu: frees it
 */
struct arx_l3 {
	struct arx_l3_key key;
	struct net *net;
	unsigned int users;
	struct socket *sk4;
	struct socket *sk6;
	struct list_head link;
	struct rcu_head rcu;
};

/**
 * struct arx_net_rx - receive functions for the UDP port
 * @encap: called for a packet, or for joined packets
 * @gro_receive: called for a packet from a NIC, before the stack sees it
 * @gro_complete: called for packets that were joined there
 */
struct arx_net_rx {
	udp_tunnel_encap_rcv_t encap;
	udp_tunnel_gro_receive_t gro_receive;
	udp_tunnel_gro_complete_t gro_complete;
};

static inline bool arx_l3_same(const struct arx_l3_key *a,
			       const struct arx_l3_key *b)
{
	return a->cookie == b->cookie && a->ifindex == b->ifindex;
}

/* The cookie of the network namespace that the source address of @av is in. */
static inline u64 arx_av_cookie(const struct arx_dev *dev,
				const struct arx_av *av)
{
	return av->foreign ? av->cookie : dev_net(dev->netdev)->net_cookie;
}

extern struct list_head arx_net_devs;

int arx_net_init(const struct arx_net_rx *rx);
void arx_net_exit(void);
int arx_net_attach(struct arx_dev *dev);
void arx_net_detach(struct arx_dev *dev);
void arx_net_explain(const struct net_device *netdev, int err);
struct arx_l3 *arx_l3_get(struct net *net, int vrf);
void arx_l3_put(struct arx_l3 *l3);
struct arx_l3_key arx_av_l3(const struct arx_dev *dev, const struct arx_av *av);
struct arx_dev *arx_net_find_dev(const struct arx_l3 *l3,
				 const struct in6_addr *addr);
struct arx_dev *arx_net_dev_on(const struct arx_l3 *l3,
			       const struct net_device *netdev);
struct dst_entry *arx_net_route(struct arx_dev *dev, struct arx_av *av);

#endif /* ARX_NET_H */
