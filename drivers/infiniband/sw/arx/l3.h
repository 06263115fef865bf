/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Layer-3 domains and their UDP sockets. */
#ifndef ARX_L3_H
#define ARX_L3_H

#include <net/udp_tunnel.h>

/**
 * struct arx_l3_key - name of a layer-3 domain
 * @cookie: of the network namespace
 * @ifindex: of the VRF's netdev; 0: the rest of the namespace, without its VRFs
 */
struct arx_l3_key {
	u64 cookie;
	int ifindex;
};

/**
 * struct arx_l3 - a namespace, or a VRF in one, with addresses of devices
 * @key: its name
 * @net: the namespace
 * @users: devices and GIDs; the sockets live while there are some
 * @sk4: UDP socket on port 4791 for IPv4; receives
 * @sk6: the same for IPv6, or NULL without IPv6
 * @link: in the list of all domains (l3.c, under its mutex, read under RCU)
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
 * struct arx_l3_rx - receive functions for the UDP port
 * @encap: called for a packet, or for joined packets
 * @gro_receive: called for a packet from a NIC, before the stack sees it
 * @gro_complete: called for packets that were joined there
 */
struct arx_l3_rx {
	udp_tunnel_encap_rcv_t encap;
	udp_tunnel_gro_receive_t gro_receive;
	udp_tunnel_gro_complete_t gro_complete;
};

static inline bool arx_l3_same(const struct arx_l3_key *a,
			       const struct arx_l3_key *b)
{
	return a->cookie == b->cookie && a->ifindex == b->ifindex;
}

extern unsigned int arx_l3_vrfs;

/* True if a domain is a VRF: then a namespace alone does not name a domain. */
static inline bool arx_l3_has_vrfs(void)
{
	return READ_ONCE(arx_l3_vrfs);
}

int arx_l3_init(const struct arx_l3_rx *rx);
void arx_l3_exit(void);
struct arx_l3 *arx_l3_get(struct net *net, int vrf);
void arx_l3_put(struct arx_l3 *l3);
struct net *arx_l3_net(u64 cookie);
void arx_l3_explain(const struct net_device *netdev, int err);

#endif /* ARX_L3_H */
