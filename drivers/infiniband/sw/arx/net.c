// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The list of devices, where their addresses are, and routes. */

#include <linux/rculist.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/route.h>

#include "gids.h"
#include "net.h"
#include "wire.h"

/* Attached devices: written under the mutex, read under RCU. */
LIST_HEAD(arx_net_devs);
static DEFINE_MUTEX(arx_net_mutex);

/* Caches of routes are neither read nor written. */
static bool arx_net_forgets;
static DEFINE_MUTEX(arx_net_forget_mutex);

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
		arx_l3_explain(dev->netdev, PTR_ERR(l3));
		return PTR_ERR(l3);
	}
	mutex_lock(&arx_net_mutex);
	dev->l3 = l3;
	list_add_tail_rcu(&dev->link, &arx_net_devs);
	mutex_unlock(&arx_net_mutex);
	return 0;
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
	return av->foreign ? arx_l3_net(av->cookie) : dev_net(dev->netdev);
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
 * Return: the name of the domain.
 */
struct arx_l3_key arx_av_l3(const struct arx_dev *dev, const struct arx_av *av)
{
	struct arx_l3_key key = { .cookie = arx_av_cookie(dev, av) };
	struct net *net;

	if (unlikely(arx_l3_has_vrfs())) {
		net = arx_av_net(dev, av);
		if (net)
			key.ifindex = arx_net_vrf_of(net, av->ifindex);
	}
	return key;
}

static struct dst_entry *arx_net_route_ipv4(struct net *net, struct arx_av *av,
					    bool cache)
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
	if (cache)
		dst_cache_set_ip4(&av->dst, &rt->dst, av->saddr.s6_addr32[3]);
	return &rt->dst;
}

#if IS_ENABLED(CONFIG_IPV6)
static struct dst_entry *arx_net_route_ipv6(struct net *net, struct arx_av *av,
					    bool cache)
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
	if (!IS_ERR(dst) && cache)
		dst_cache_set_ip6(&av->dst, dst, &av->saddr);
	return dst;
}
#else
static struct dst_entry *arx_net_route_ipv6(struct net *net, struct arx_av *av,
					    bool cache)
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
	/* Pairs with the release in arx_net_forget_routes(). */
	bool cache = likely(!smp_load_acquire(&arx_net_forgets));
	struct dst_entry *dst = NULL;
	struct net *net;

	if (cache)
		dst = dst_cache_get(&av->dst);
	if (likely(dst))
		return dst;
	net = arx_av_net(dev, av);
	if (!net)
		return ERR_PTR(-ENETUNREACH);
	return av->ipv4 ? arx_net_route_ipv4(net, av, cache) :
			  arx_net_route_ipv6(net, av, cache);
}

/*
 * Network namespaces end. A route of IPv6 or IPsec uses memory of its namespace
 * up to its release, which address vectors outlive: those with the address of a
 * macvlan of the namespace, and those of a device whose netdev goes back to the
 * first namespace.
 *
 * The netdevs are gone or have moved, and with them all users of arx_l3_net()
 * and dev_net(): a look-up that begins now finds no route in these namespaces.
 * Whoever began one before had bottom halves off, and so did whoever uses a
 * cache and has not seen the flag: synchronize_rcu() waits for them. Then the
 * caches are this function's alone, and what is put there after it is a route
 * in a namespace that lives.
 */
static void __net_exit arx_net_forget_routes(struct list_head *namespaces)
{
	mutex_lock(&arx_net_forget_mutex);
	WRITE_ONCE(arx_net_forgets, true);
	synchronize_rcu();
	arx_av_forget_routes();
	/*
	 * Address vectors that were on their way to arx_av_free() release their
	 * routes there, and a route of IPsec releases others at its own end.
	 */
	rcu_barrier();
	rcu_barrier();
	/* Pairs with the acquire in arx_net_route(): the caches are empty. */
	smp_store_release(&arx_net_forgets, false);
	mutex_unlock(&arx_net_forget_mutex);
}

static struct pernet_operations arx_net_ops = {
	.exit_batch = arx_net_forget_routes,
};

/**
 * arx_net_init - at module load, after IPv6 was loaded
 *
 * Return: 0 or -ENOMEM.
 */
int arx_net_init(void)
{
	return register_pernet_subsys(&arx_net_ops);
}

/** arx_net_exit - at module unload, when no device is left */
void arx_net_exit(void)
{
	unregister_pernet_subsys(&arx_net_ops);
}
