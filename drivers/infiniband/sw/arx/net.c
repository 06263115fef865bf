// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The list of devices, one pair of UDP sockets for each network namespace with
 * devices, and routes.
 *
 * The sockets do not hold their namespace: a device is removed when its netdev
 * leaves the namespace, and the last device closes them.
 */

#include <linux/rculist.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/netns/generic.h>
#include <net/route.h>
#include <net/udp_tunnel.h>
#include <rdma/ib_cache.h>

#include "compat.h"
#include "gso.h"
#include "net.h"
#include "wire.h"

/* All attached devices: written under the mutex, read under RCU. */
LIST_HEAD(arx_net_devs);
static DEFINE_MUTEX(arx_net_mutex);
static unsigned int arx_net_id;
static const struct arx_net_rx *arx_net_rx;

static struct socket *arx_net_open_socket(struct arx_netns *ns, int family)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.sk_user_data = ns,
		.encap_type = 1,
		.encap_rcv = arx_net_rx->encap,
		.gro_receive = arx_net_rx->gro_receive,
		.gro_complete = arx_net_rx->gro_complete,
	};
	struct udp_port_cfg port = {
		.family = family,
		.local_udp_port = htons(ARX_UDP_PORT),
		.ipv6_v6only = family == AF_INET6,
	};
	struct socket *sock;
	int err;

	err = udp_sock_create(ns->net, &port, &sock);
	if (err)
		return ERR_PTR(err);
	arx_udp_tunnel_setup(ns->net, sock, &tunnel);
	udp_allow_gso(sock->sk);	/* the receiver handles GSO packets */
	return sock;
}

static void arx_net_close_sockets(struct arx_netns *ns)
{
	if (ns->sk6)
		arx_udp_tunnel_release(ns->sk6);
	ns->sk6 = NULL;
	if (ns->sk4)
		arx_udp_tunnel_release(ns->sk4);
	ns->sk4 = NULL;
}

static int arx_net_open_sockets(struct arx_netns *ns)
{
	struct socket *sock;

	sock = arx_net_open_socket(ns, AF_INET);
	if (IS_ERR(sock))
		return PTR_ERR(sock);
	ns->sk4 = sock;

	sock = arx_net_open_socket(ns, AF_INET6);
	if (!IS_ERR(sock)) {
		ns->sk6 = sock;
	} else if (PTR_ERR(sock) != -EAFNOSUPPORT &&
		   PTR_ERR(sock) != -EPFNOSUPPORT) {
		arx_net_close_sockets(ns);
		return PTR_ERR(sock);
	}
	return 0;
}

/**
 * arx_net_attach - start to receive from the namespace of a device's netdev
 * @dev: not attached; its netdev is set
 *
 * Context: may sleep.
 * Return: 0, -EADDRINUSE if another driver has the UDP port in this namespace,
 * or the error of a socket's creation.
 */
int arx_net_attach(struct arx_dev *dev)
{
	struct arx_netns *ns = net_generic(dev_net(dev->netdev), arx_net_id);
	int err = 0;

	mutex_lock(&arx_net_mutex);
	if (!ns->users)
		err = arx_net_open_sockets(ns);
	if (!err) {
		ns->users++;
		dev->ns = ns;
		list_add_tail_rcu(&dev->link, &arx_net_devs);
	}
	mutex_unlock(&arx_net_mutex);

	if (err == -EADDRINUSE)
		netdev_err(dev->netdev,
			   "arx: UDP port %u is in use in this network namespace, by rdma_rxe perhaps\n",
			   ARX_UDP_PORT);
	return err;
}

/**
 * arx_net_detach - stop receiving for a device
 * @dev: device; it need not be attached
 *
 * Must return before the netdev leaves its namespace, because that may end the
 * namespace.
 *
 * Context: may sleep; RTNL may be held.
 */
void arx_net_detach(struct arx_dev *dev)
{
	struct arx_netns *ns;

	mutex_lock(&arx_net_mutex);
	ns = dev->ns;
	if (ns) {
		dev->ns = NULL;
		list_del_rcu(&dev->link);
		if (!--ns->users)
			arx_net_close_sockets(ns);
	}
	mutex_unlock(&arx_net_mutex);

	/* No reader that found it in the list uses it any more. */
	if (ns)
		synchronize_net();
}

/**
 * arx_net_dev_on - a device that counts a packet of no QP
 * @ns: namespace in which it arrived; NULL: only @netdev matters
 * @netdev: netdev on which it arrived
 *
 * Context: RCU read side.
 * Return: the device on @netdev, else one of the namespace, else NULL.
 */
struct arx_dev *arx_net_dev_on(const struct arx_netns *ns,
			       const struct net_device *netdev)
{
	struct arx_dev *other = NULL;
	struct arx_dev *dev;

	list_for_each_entry_rcu(dev, &arx_net_devs, link) {
		if (dev->netdev == netdev)
			return dev;
		if (ns && READ_ONCE(dev->ns) == ns)
			other = dev;
	}
	return other;
}

/* The GID @addr of a registered device, with a reference, or NULL. */
static const struct ib_gid_attr *arx_net_dev_gid(struct arx_dev *dev,
						 const struct in6_addr *addr)
{
	const struct ib_gid_attr *attr;

	attr = rdma_find_gid_by_port(&dev->ib, (const union ib_gid *)addr,
				     IB_GID_TYPE_ROCE_UDP_ENCAP, ARX_PORT,
				     NULL);
	return IS_ERR(attr) ? NULL : attr;
}

/**
 * arx_net_dev_has - true if an address belongs to a device
 * @dev: a device that is registered
 * @addr: address, IPv4 mapped
 *
 * Context: any.
 * Return: true if the device has a GID with this address.
 */
bool arx_net_dev_has(struct arx_dev *dev, const struct in6_addr *addr)
{
	const struct ib_gid_attr *gid = arx_net_dev_gid(dev, addr);

	if (gid)
		rdma_put_gid_attr(gid);
	return gid;
}

/**
 * arx_net_find_dev - the device to which an address belongs
 * @net: namespace to search
 * @addr: address, IPv4 mapped
 * @attr: receives the address's GID with a reference, unless NULL
 *
 * Context: RCU read side, which keeps the device.
 * Return: the device, or NULL.
 */
struct arx_dev *arx_net_find_dev(struct net *net, const struct in6_addr *addr,
				 const struct ib_gid_attr **attr)
{
	const struct ib_gid_attr *found = NULL;
	struct arx_dev *dev;

	list_for_each_entry_rcu(dev, &arx_net_devs, link) {
		if (!net_eq(dev_net(dev->netdev), net))
			continue;
		/* Without a registration there is no GID table. */
		if (!ib_device_try_get(&dev->ib))
			continue;
		found = arx_net_dev_gid(dev, addr);
		ib_device_put(&dev->ib);
		if (found)
			break;
	}
	if (!found)
		return NULL;
	if (attr)
		*attr = found;
	else
		rdma_put_gid_attr(found);
	return dev;
}

static struct dst_entry *arx_net_route_ipv4(struct net *net, struct arx_av *av)
{
	__be32 daddr = av->daddr.s6_addr32[3];
	struct flowi4 flow = {};
	struct rtable *rt;
	int oif = av->ifindex;

	/*
	 * The route to an address of this machine is lo, whichever netdev has
	 * the address.
	 */
	if (inet_addr_type(net, daddr) == RTN_LOCAL)
		oif = 0;
	flowi4_init_output(&flow, oif, 0, av->tos, RT_SCOPE_UNIVERSE,
			   IPPROTO_UDP, 0, daddr, av->saddr.s6_addr32[3],
			   htons(ARX_UDP_PORT), htons(av->sport),
			   sock_net_uid(net, NULL));
	rt = ip_route_output_flow(net, &flow, NULL);
	if (IS_ERR(rt))
		return ERR_CAST(rt);
	dst_cache_set_ip4(&av->dst, &rt->dst, av->saddr.s6_addr32[3]);
	return &rt->dst;
}

#if IS_ENABLED(CONFIG_IPV6)
static struct dst_entry *arx_net_route_ipv6(struct net *net, struct arx_av *av)
{
	struct flowi6 flow = {
		.flowi6_oif = av->ifindex,
		.flowi6_proto = IPPROTO_UDP,
		.flowi6_uid = sock_net_uid(net, NULL),
		.flowlabel = ip6_make_flowinfo(av->tos, htonl(av->flow_label)),
		.daddr = av->daddr,
		.saddr = av->saddr,
		.fl6_dport = htons(ARX_UDP_PORT),
		.fl6_sport = htons(av->sport),
	};
	struct dst_entry *dst;

	dst = ip6_dst_lookup_flow(net, NULL, &flow, NULL);
	if (!IS_ERR(dst))
		dst_cache_set_ip6(&av->dst, dst, &av->saddr);
	return dst;
}
#else
static struct dst_entry *arx_net_route_ipv6(struct net *net, struct arx_av *av)
{
	return ERR_PTR(-EAFNOSUPPORT);
}
#endif

/**
 * arx_net_route - the route to an address
 * @dev: sender
 * @av: destination
 *
 * Context: bottom halves off.
 * Return: the route with a reference, or the error of the look-up.
 */
struct dst_entry *arx_net_route(struct arx_dev *dev, struct arx_av *av)
{
	struct net *net = dev_net(dev->netdev);
	struct dst_entry *dst;

	dst = dst_cache_get(&av->dst);
	if (likely(dst))
		return dst;
	return av->ipv4 ? arx_net_route_ipv4(net, av) :
			  arx_net_route_ipv6(net, av);
}

static int __net_init arx_net_ns_init(struct net *net)
{
	struct arx_netns *ns = net_generic(net, arx_net_id);

	ns->net = net;
	return 0;
}

static void __net_exit arx_net_ns_exit(struct net *net)
{
	struct arx_netns *ns = net_generic(net, arx_net_id);

	WARN_ON(ns->users);
}

static struct pernet_operations arx_net_ops = {
	.init = arx_net_ns_init,
	.exit = arx_net_ns_exit,
	.id = &arx_net_id,
	.size = sizeof(struct arx_netns),
};

/**
 * arx_net_init - at module load
 * @rx: receive functions; must stay
 *
 * Return: 0 or -ENOMEM.
 */
int arx_net_init(const struct arx_net_rx *rx)
{
	int err = register_pernet_subsys(&arx_net_ops);

	arx_net_rx = rx;
	if (!err)
		arx_gso_init();
	return err;
}

/**
 * arx_net_exit - at module unload, when no device is left
 *
 * Waits for RCU callbacks into this module: of closed sockets and of address
 * vectors.
 */
void arx_net_exit(void)
{
	arx_gso_exit();
	unregister_pernet_subsys(&arx_net_ops);
	synchronize_net();
	rcu_barrier();
}
