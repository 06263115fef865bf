// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The list of devices, the layer-3 domains that have addresses of theirs, and
 * routes.
 *
 * A layer-3 domain is a network namespace, or a VRF in one. It has a pair of
 * UDP sockets as long as it has users: the devices whose netdevs are in the
 * namespace, and the GIDs whose netdevs are in the domain. Such a netdev may be
 * a macvlan that a container has in a namespace of its own.
 *
 * The sockets do not hold their namespace: a user goes when its netdev leaves
 * the namespace, and the last user closes them.
 */

#include <linux/cred.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/route.h>
#include <net/udp_tunnel.h>

#include "compat.h"
#include "gids.h"
#include "gso.h"
#include "net.h"
#include "wire.h"

/* Attached devices and domains: written under the mutex, read under RCU. */
LIST_HEAD(arx_net_devs);
static LIST_HEAD(arx_l3s);
static DEFINE_MUTEX(arx_net_mutex);
static const struct arx_net_rx *arx_net_rx;

/* How many of the domains are VRFs. */
static unsigned int arx_net_vrfs;

static int arx_l3_bind(struct socket *sock, int family)
{
	struct sockaddr_in6 addr6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(ARX_UDP_PORT),
	};
	struct sockaddr_in addr4 = {
		.sin_family = AF_INET,
		.sin_port = htons(ARX_UDP_PORT),
	};

	if (family == AF_INET)
		return kernel_bind(sock, (void *)&addr4, sizeof(addr4));
	return kernel_bind(sock, (void *)&addr6, sizeof(addr6));
}

static void arx_l3_share_port(const struct net *net, bool share)
{
	struct arx_l3 *l3;

	list_for_each_entry(l3, &arx_l3s, link) {
		if (!net_eq(l3->net, net))
			continue;
		l3->sk4->sk->sk_reuseport = share;
		if (l3->sk6)
			l3->sk6->sk->sk_reuseport = share;
	}
}

/*
 * The socket of a namespace receives packets of no VRF, but bind() regards its
 * port as taken in all VRFs. Sockets of one user can share a port if all of
 * them have sk_reuseport set. The sockets of arx belong to root, and have it
 * set during this function only, so no other program can share the port later.
 */
static int arx_l3_bind_beside(const struct arx_l3 *l3, struct socket *sock,
			      int family)
{
	int err;

	arx_l3_share_port(l3->net, true);
	sock->sk->sk_reuseport = true;
	err = arx_l3_bind(sock, family);
	sock->sk->sk_reuseport = false;
	arx_l3_share_port(l3->net, false);
	return err;
}

static int arx_l3_setup_socket(struct arx_l3 *l3, struct socket *sock,
			       int family)
{
	int err = 0;

	if (family == AF_INET6) {
		udp_set_no_check6_rx(sock->sk, true);
		err = ip6_sock_set_v6only(sock->sk);
	}
	if (!err && l3->key.ifindex)
		err = sock_bindtoindex(sock->sk, l3->key.ifindex, true);
	return err ?: arx_l3_bind_beside(l3, sock, family);
}

static struct socket *arx_l3_open_socket(struct arx_l3 *l3, int family)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.sk_user_data = l3,
		.encap_type = 1,
		.encap_rcv = arx_net_rx->encap,
		.gro_receive = arx_net_rx->gro_receive,
		.gro_complete = arx_net_rx->gro_complete,
	};
	struct socket *sock;
	int err;

	err = sock_create_kern(l3->net, family, SOCK_DGRAM, 0, &sock);
	if (err)
		return ERR_PTR(err);
	err = arx_l3_setup_socket(l3, sock, family);
	if (err) {
		sock_release(sock);
		return ERR_PTR(err);
	}
	arx_udp_tunnel_setup(l3->net, sock, &tunnel);
	udp_allow_gso(sock->sk);	/* the receiver handles GSO packets */
	return sock;
}

static void arx_l3_close_sockets(struct arx_l3 *l3)
{
	if (l3->sk6)
		arx_udp_tunnel_release(l3->sk6);
	if (l3->sk4)
		arx_udp_tunnel_release(l3->sk4);
}

static int arx_l3_open_sockets(struct arx_l3 *l3)
{
	struct socket *sock;

	sock = arx_l3_open_socket(l3, AF_INET);
	if (IS_ERR(sock))
		return PTR_ERR(sock);
	l3->sk4 = sock;

	sock = arx_l3_open_socket(l3, AF_INET6);
	if (!IS_ERR(sock)) {
		l3->sk6 = sock;
	} else if (PTR_ERR(sock) != -EAFNOSUPPORT &&
		   PTR_ERR(sock) != -EPFNOSUPPORT) {
		arx_l3_close_sockets(l3);
		return PTR_ERR(sock);
	}
	return 0;
}

/* Sockets belong to whoever makes them: to root, whoever the caller is. */
static int arx_l3_open(struct arx_l3 *l3)
{
	struct cred *root = prepare_kernel_cred(&init_task);
	const struct cred *caller;
	int err;

	if (!root)
		return -ENOMEM;
	caller = override_creds(root);
	err = arx_l3_open_sockets(l3);
	revert_creds(caller);
	put_cred(root);
	return err;
}

static struct arx_l3 *arx_l3_find(const struct arx_l3_key *key)
{
	struct arx_l3 *l3;

	list_for_each_entry(l3, &arx_l3s, link)
		if (arx_l3_same(&l3->key, key))
			return l3;
	return NULL;
}

static struct arx_l3 *arx_l3_create(struct net *net,
				    const struct arx_l3_key *key)
{
	struct arx_l3 *l3 = kzalloc(sizeof(*l3), GFP_KERNEL);
	int err;

	if (!l3)
		return ERR_PTR(-ENOMEM);
	l3->key = *key;
	l3->net = net;
	err = arx_l3_open(l3);
	if (err) {
		kfree(l3);
		return ERR_PTR(err);
	}
	list_add_rcu(&l3->link, &arx_l3s);
	if (key->ifindex)
		WRITE_ONCE(arx_net_vrfs, arx_net_vrfs + 1);
	return l3;
}

/**
 * arx_l3_get - use a layer-3 domain
 * @net: network namespace; its end is preceded by that of all users
 * @vrf: ifindex of a VRF's netdev in it, or 0
 *
 * Context: may sleep; RTNL may be held.
 * Return: the domain, -EADDRINUSE when its UDP port belongs to another driver,
 * or another error of making a socket.
 */
struct arx_l3 *arx_l3_get(struct net *net, int vrf)
{
	struct arx_l3_key key = { .cookie = net->net_cookie, .ifindex = vrf };
	struct arx_l3 *l3;

	mutex_lock(&arx_net_mutex);
	l3 = arx_l3_find(&key) ?: arx_l3_create(net, &key);
	if (!IS_ERR(l3))
		l3->users++;
	mutex_unlock(&arx_net_mutex);
	return l3;
}

/**
 * arx_l3_put - use a layer-3 domain no more
 * @l3: from arx_l3_get()
 *
 * Context: may sleep; RTNL may be held.
 */
void arx_l3_put(struct arx_l3 *l3)
{
	mutex_lock(&arx_net_mutex);
	if (!--l3->users) {
		list_del_rcu(&l3->link);
		if (l3->key.ifindex)
			WRITE_ONCE(arx_net_vrfs, arx_net_vrfs - 1);
		arx_l3_close_sockets(l3);
		kfree_rcu(l3, rcu);
	}
	mutex_unlock(&arx_net_mutex);
}

/**
 * arx_net_attach - start to receive from the namespace of a device's netdev
 * @dev: not attached; its netdev is set
 *
 * Context: may sleep; RTNL is held.
 * Return: 0 or the error of arx_l3_get().
 */
int arx_net_attach(struct arx_dev *dev)
{
	struct arx_l3 *l3 = arx_l3_get(dev_net(dev->netdev), 0);

	if (IS_ERR(l3)) {
		arx_net_explain(dev->netdev, PTR_ERR(l3));
		return PTR_ERR(l3);
	}
	mutex_lock(&arx_net_mutex);
	dev->l3 = l3;
	list_add_tail_rcu(&dev->link, &arx_net_devs);
	mutex_unlock(&arx_net_mutex);
	return 0;
}

/**
 * arx_net_explain - say in the log why nothing can be received
 * @netdev: for which
 * @err: error of arx_l3_get()
 *
 * The administrator of a container can cause the error as often as it likes, by
 * a socket on the port and addresses of a macvlan. The lines are limited.
 */
void arx_net_explain(const struct net_device *netdev, int err)
{
	if (err == -EADDRINUSE && net_ratelimit())
		netdev_err(netdev,
			   "arx: UDP port %u is in use in this network namespace, by rdma_rxe perhaps\n",
			   ARX_UDP_PORT);
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
	struct arx_l3 *l3;

	mutex_lock(&arx_net_mutex);
	l3 = dev->l3;
	if (l3) {
		dev->l3 = NULL;
		list_del_rcu(&dev->link);
	}
	mutex_unlock(&arx_net_mutex);
	if (!l3)
		return;

	arx_l3_put(l3);
	/* No reader that found it in the list uses it any more. */
	synchronize_net();
}

/**
 * arx_net_dev_on - a device that counts a packet of no QP
 * @l3: domain in which it arrived
 * @netdev: netdev on which it arrived
 *
 * Context: RCU read side.
 * Return: the device on @netdev, else one with a GID in the domain, else NULL.
 */
struct arx_dev *arx_net_dev_on(const struct arx_l3 *l3,
			       const struct net_device *netdev)
{
	struct arx_dev *other = NULL;
	struct arx_dev *dev;

	list_for_each_entry_rcu(dev, &arx_net_devs, link) {
		if (dev->netdev == netdev)
			return dev;
		if (l3 && (READ_ONCE(dev->l3) == l3 ||
			   arx_gids_any_in(dev, l3)))
			other = dev;
	}
	return other;
}

/**
 * arx_net_find_dev - the device to which an address belongs
 * @l3: domain to search
 * @addr: address, IPv4 mapped
 *
 * Context: RCU read side, which keeps the device.
 * Return: the device, or NULL.
 */
struct arx_dev *arx_net_find_dev(const struct arx_l3 *l3,
				 const struct in6_addr *addr)
{
	struct arx_dev *dev;

	list_for_each_entry_rcu(dev, &arx_net_devs, link)
		if (arx_gids_has(dev, &l3->key, addr))
			return dev;
	return NULL;
}

/* The namespace that the source address is in; NULL if it is used no more. */
static struct net *arx_av_net(const struct arx_dev *dev,
			      const struct arx_av *av)
{
	struct arx_l3 *l3;

	if (!av->foreign)
		return dev_net(dev->netdev);
	list_for_each_entry_rcu(l3, &arx_l3s, link)
		if (l3->key.cookie == av->cookie)
			return l3->net;
	return NULL;
}

/* The VRF that a netdev is in, or 0. */
static int arx_net_vrf_of(struct net *net, int ifindex)
{
	struct net_device *netdev = dev_get_by_index_rcu(net, ifindex);

	return netdev ? l3mdev_master_ifindex_rcu(netdev) : 0;
}

/**
 * arx_av_l3 - the layer-3 domain of an address vector
 * @dev: device it is of
 * @av: address vector
 *
 * Looked up each time: a netdev may be moved to a VRF.
 *
 * Context: RCU read side.
 * Return: what the domain is known by.
 */
struct arx_l3_key arx_av_l3(const struct arx_dev *dev, const struct arx_av *av)
{
	struct arx_l3_key key = { .cookie = arx_av_cookie(dev, av) };
	struct net *net;

	if (unlikely(READ_ONCE(arx_net_vrfs))) {
		net = arx_av_net(dev, av);
		if (net)
			key.ifindex = arx_net_vrf_of(net, av->ifindex);
	}
	return key;
}

static struct dst_entry *arx_net_route_ipv4(struct net *net, struct arx_av *av)
{
	__be32 daddr = av->daddr.s6_addr32[3];
	struct flowi4 flow = {};
	struct net_device *netdev;
	struct rtable *rt;
	int oif = av->ifindex;

	/*
	 * The route to an address of this machine is lo or the VRF's netdev,
	 * whichever netdev has the address.
	 */
	netdev = dev_get_by_index_rcu(net, oif);
	if (netdev && inet_addr_type_dev_table(net, netdev, daddr) == RTN_LOCAL)
		oif = l3mdev_master_ifindex_rcu(netdev);
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
	struct dst_entry *dst;
	struct net *net;

	dst = dst_cache_get(&av->dst);
	if (likely(dst))
		return dst;
	net = arx_av_net(dev, av);
	if (!net)
		return ERR_PTR(-ENETUNREACH);
	return av->ipv4 ? arx_net_route_ipv4(net, av) :
			  arx_net_route_ipv6(net, av);
}

static void __net_exit arx_net_ns_exit(struct net *net)
{
	struct arx_l3 *l3;

	mutex_lock(&arx_net_mutex);
	list_for_each_entry(l3, &arx_l3s, link)
		WARN_ON(net_eq(l3->net, net));
	mutex_unlock(&arx_net_mutex);
}

static struct pernet_operations arx_net_ops = {
	.exit = arx_net_ns_exit,
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
