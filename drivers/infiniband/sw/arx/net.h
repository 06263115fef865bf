/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Network namespaces, their UDP sockets, routes. */
#ifndef ARX_NET_H
#define ARX_NET_H

#include <net/udp_tunnel.h>

#include "arx.h"

/**
 * struct arx_netns - arx in one network namespace
 * @users: number of devices; the sockets live as long as there are some
 * @users: devices; the sockets live while there are some
 * @sk4: UDP socket on port 4791 for IPv4; receives
 * @sk6: the same for IPv6, or NULL without IPv6
 */
struct arx_netns {
	struct net *net;
	unsigned int users;
	struct socket *sk4;
	struct socket *sk6;
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

extern struct list_head arx_net_devs;

int arx_net_init(const struct arx_net_rx *rx);
void arx_net_exit(void);
int arx_net_attach(struct arx_dev *dev);
void arx_net_detach(struct arx_dev *dev);
struct arx_dev *arx_net_find_dev(struct net *net, const struct in6_addr *addr,
				 const struct ib_gid_attr **attr);
bool arx_net_dev_has(struct arx_dev *dev, const struct in6_addr *addr);
struct arx_dev *arx_net_dev_on(const struct arx_netns *ns,
			       const struct net_device *netdev);
struct dst_entry *arx_net_route(struct arx_dev *dev, struct arx_av *av);

#endif /* ARX_NET_H */
