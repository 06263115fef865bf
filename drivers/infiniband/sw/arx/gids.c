// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A list of the GIDs of each device says which layer-3 domain each GID is in. A
 * GID keeps the sockets of its domain open. The netdev of a GID may be in
 * another network namespace than the device's: a macvlan or ipvlan of a
 * container. If it moves to another namespace or VRF, arx_gids_follow() moves
 * the GID.
 *
 * GIDs follow the addresses of a netdev. The core does that, with three
 * exceptions.
 *
 * A VLAN: the core offers a RoCE device the addresses of its port's netdev and
 * of the netdevs above, but goes down to the real device below a VLAN before it
 * compares. So a device on a VLAN reports the real netdev as its port's, and
 * accepts, of the offered addresses, only those of the VLAN or of netdevs
 * above. The default GID, at index 0, follows from the port's netdev itself:
 * for this GID the device reports the VLAN, and only to its own scan.
 *
 * A bond: after a failover the core removes the GIDs and adds all except the
 * default one. The work then scans again.
 *
 * lo and IP tunnels: the core sees their addresses when the device is
 * registered, and follows only netdevs of type Ethernet. The work scans again
 * when an address changes.
 */

#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <net/l3mdev.h>
#include <rdma/arx-abi.h>
#include <rdma/ib_cache.h>

#include "arx.h"
#include "gids.h"
#include "l3.h"

/*
 * A VLAN holds its real device until it is freed, and @ib holds the VLAN. Once
 * the VLAN is being removed, the real device must not be held any more.
 */
static struct net_device *arx_vlan_get_netdev(struct ib_device *ib, u32 port)
{
	struct arx_dev *dev = to_arx_dev(ib);
	struct net_device *netdev = dev->netdev;

	if (READ_ONCE(netdev->reg_state) != NETREG_REGISTERED)
		return NULL;
	if (READ_ONCE(dev->gids.scanner) != current)
		netdev = vlan_dev_real_dev(netdev);
	dev_hold(netdev);
	return netdev;
}

static const struct ib_device_ops arx_vlan_ops = {
	.get_netdev = arx_vlan_get_netdev,
};

/**
 * struct arx_gid - a GID, from add_gid to del_gid
 * @link: in arx_dev.gids.list
 * @all: in arx_all_gids
 * @rcu: frees it
 * @netdev: has the address; the core holds it
 * @l3: the domain it is in, of which this is a user; NULL: @netdev is leaving,
 *	or the domain's sockets could not be made
 * @addr: the address, v4-mapped
 *
 * Written under arx_gids_mutex, read under RCU.
 */
struct arx_gid {
	struct list_head link;
	struct list_head all;
	struct rcu_head rcu;
	struct net_device *netdev;
	struct arx_l3 __rcu *l3;
	struct in6_addr addr;
};

static LIST_HEAD(arx_all_gids);
static DEFINE_MUTEX(arx_gids_mutex);

/* A VLAN's device has the addresses of the VLAN and of those above it only. */
static bool arx_gid_fits(const struct arx_dev *dev, struct net_device *netdev)
{
	bool fits;

	if (!is_vlan_dev(dev->netdev) || dev->netdev == netdev)
		return true;
	rcu_read_lock();
	fits = netdev_has_upper_dev_all_rcu(dev->netdev, netdev);
	rcu_read_unlock();
	return fits;
}

/* Move a GID to the domain that its netdev is in now, or to none. */
static int arx_gid_move(struct arx_gid *gid, bool leaves)
{
	struct arx_l3 *old = rcu_dereference_protected(gid->l3,
					lockdep_is_held(&arx_gids_mutex));
	struct net_device *netdev = gid->netdev;
	struct arx_l3 *l3 = NULL;

	if (!leaves && READ_ONCE(netdev->reg_state) == NETREG_REGISTERED)
		l3 = arx_l3_get(dev_net(netdev), l3mdev_master_ifindex(netdev));
	rcu_assign_pointer(gid->l3, IS_ERR(l3) ? NULL : l3);
	if (old)
		arx_l3_put(old);
	if (!IS_ERR(l3))
		return 0;
	arx_l3_explain(netdev, PTR_ERR(l3));
	return PTR_ERR(l3);
}

/**
 * arx_add_gid - verb: the core offers the device an address
 * @attr: the address and its netdev
 * @context: receives our part of it
 *
 * A netdev that leaves its namespace before this has taken the mutex is seen
 * here as what it is by then; arx_gids_follow() sees to one that leaves later.
 *
 * Context: may sleep; RTNL may be held.
 * Return: 0, -EADDRNOTAVAIL if the device does not take it, -ENOMEM, or the
 * error of making the sockets.
 */
int arx_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct arx_dev *dev = to_arx_dev(attr->device);
	struct arx_gid *gid;
	int err;

	gid = kzalloc(sizeof(*gid), GFP_KERNEL);
	if (!gid)
		return -ENOMEM;
	gid->netdev = rcu_dereference_protected(attr->ndev, true);
	memcpy(&gid->addr, &attr->gid, sizeof(gid->addr));
	if (!arx_gid_fits(dev, gid->netdev)) {
		kfree(gid);
		return -EADDRNOTAVAIL;
	}

	mutex_lock(&arx_gids_mutex);
	err = arx_gid_move(gid, false);
	if (!err) {
		list_add(&gid->all, &arx_all_gids);
		list_add_rcu(&gid->link, &dev->gids.list);
		*context = gid;
	}
	mutex_unlock(&arx_gids_mutex);
	if (err)
		kfree(gid);
	return err;
}

/**
 * arx_del_gid - verb: take an address from the device
 * @attr: the address
 * @context: what arx_add_gid() left there
 *
 * Context: may sleep; RTNL may be held.
 * Return: 0.
 */
int arx_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct arx_gid *gid = *context;

	mutex_lock(&arx_gids_mutex);
	list_del_rcu(&gid->link);
	list_del(&gid->all);
	arx_gid_move(gid, true);
	mutex_unlock(&arx_gids_mutex);
	kfree_rcu(gid, rcu);
	return 0;
}

/**
 * arx_gids_follow - a netdev has come, leaves, or has another master
 * @netdev: any netdev
 * @leaves: its network namespace, for another or for good
 *
 * The namespace of a netdev that leaves may end as soon as this has returned.
 * The move to another one is under RTNL up to its NETDEV_REGISTER, so a GID
 * that was added in between with the old namespace is found by that.
 *
 * Context: RTNL is held.
 */
void arx_gids_follow(const struct net_device *netdev, bool leaves)
{
	struct arx_gid *gid;

	mutex_lock(&arx_gids_mutex);
	list_for_each_entry(gid, &arx_all_gids, all)
		if (gid->netdev == netdev)
			arx_gid_move(gid, leaves);
	mutex_unlock(&arx_gids_mutex);
}

/**
 * arx_gids_has - true if an address belongs to a device
 * @dev: device
 * @l3: in this layer-3 domain
 * @addr: address, IPv4 mapped
 *
 * Context: RCU read side.
 * Return: true if so.
 */
bool arx_gids_has(const struct arx_dev *dev, const struct arx_l3_key *l3,
		  const struct in6_addr *addr)
{
	struct arx_gid *gid;
	struct arx_l3 *in;

	list_for_each_entry_rcu(gid, &dev->gids.list, link) {
		if (!ipv6_addr_equal(&gid->addr, addr))
			continue;
		in = rcu_dereference(gid->l3);
		if (in && arx_l3_same(&in->key, l3))
			return true;
	}
	return false;
}

/**
 * arx_gids_any_in - true if a device has an address in a layer-3 domain
 * @dev: device
 * @l3: domain
 *
 * Context: RCU read side.
 * Return: true if so.
 */
bool arx_gids_any_in(const struct arx_dev *dev, const struct arx_l3 *l3)
{
	struct arx_gid *gid;

	list_for_each_entry_rcu(gid, &dev->gids.list, link)
		if (rcu_access_pointer(gid->l3) == l3)
			return true;
	return false;
}

/*
 * arx cannot wait for works of the core, neither for those that follow a bond's
 * failover nor for those that free the entry of a removed GID. So the work
 * looks for the default GID this many times, this many jiffies apart.
 */
#define ARX_GIDS_LOOKS	5
#define ARX_GIDS_PAUSE	(HZ / 5)

static bool arx_gids_default_is_missing(struct arx_dev *dev)
{
	union ib_gid gid;

	return rdma_query_gid(&dev->ib, ARX_PORT, 0, &gid);
}

/*
 * Only the work scans in this way; rdma_roce_rescan_port() calls the device in
 * the caller's task.
 */
static void arx_gids_add_default(struct arx_dev *dev)
{
	WRITE_ONCE(dev->gids.scanner, current);
	rdma_roce_rescan_port(&dev->ib, ARX_PORT);
	WRITE_ONCE(dev->gids.scanner, NULL);
}

/* The core cannot remove single addresses on request: add all again. */
static void arx_gids_rescan(struct arx_dev *dev)
{
	if (xchg(&dev->gids.stale, false))
		roce_del_all_netdev_gids(&dev->ib, ARX_PORT, dev->netdev);
	rdma_roce_rescan_port(&dev->ib, ARX_PORT);
}

static void arx_gids_work(struct work_struct *work)
{
	struct arx_dev *dev = container_of(work, struct arx_dev,
					   gids.work.work);

	if (!ib_device_try_get(&dev->ib))
		return;
	if (xchg(&dev->gids.rescan, false))
		arx_gids_rescan(dev);
	if (arx_gids_default_is_missing(dev))
		arx_gids_add_default(dev);
	if (READ_ONCE(dev->gids.looks)) {
		WRITE_ONCE(dev->gids.looks, dev->gids.looks - 1);
		queue_delayed_work(ib_wq, &dev->gids.work, ARX_GIDS_PAUSE);
	}
	ib_device_put(&dev->ib);
}

/**
 * arx_gids_registered - add the GIDs of a device that the core does not add
 * @dev: registered, and held
 */
void arx_gids_registered(struct arx_dev *dev)
{
	if (is_vlan_dev(dev->netdev))
		queue_delayed_work(ib_wq, &dev->gids.work, 0);
}

/**
 * arx_gids_netdev_event - follow a device's netdev where the core does not
 * @dev: registered, and held
 * @event: NETDEV_CHANGEADDR or NETDEV_BONDING_FAILOVER
 *
 * Context: RTNL is held.
 */
void arx_gids_netdev_event(struct arx_dev *dev, unsigned long event)
{
	if (event == NETDEV_CHANGEADDR) {
		if (!is_vlan_dev(dev->netdev))
			return;
		WRITE_ONCE(dev->gids.stale, true);
		WRITE_ONCE(dev->gids.rescan, true);
	}
	WRITE_ONCE(dev->gids.looks, ARX_GIDS_LOOKS);
	mod_delayed_work(ib_wq, &dev->gids.work, ARX_GIDS_PAUSE);
}

/* An address was added or removed. */
static void arx_gids_event(struct net_device *netdev, unsigned long event)
{
	struct ib_device *ib;
	struct arx_dev *dev;

	if (netdev->type == ARPHRD_ETHER)
		return;
	ib = ib_device_get_by_netdev(netdev, ARX_DRIVER_ID);
	if (!ib)
		return;
	dev = to_arx_dev(ib);
	if (event == NETDEV_DOWN)
		WRITE_ONCE(dev->gids.stale, true);
	WRITE_ONCE(dev->gids.rescan, true);
	/* A work that is already queued will see this address, too. */
	queue_delayed_work(ib_wq, &dev->gids.work, 0);
	ib_device_put(ib);
}

static int arx_gids_ipv4_event(struct notifier_block *nb, unsigned long event,
			       void *ifa)
{
	arx_gids_event(((struct in_ifaddr *)ifa)->ifa_dev->dev, event);
	return NOTIFY_DONE;
}

static struct notifier_block arx_gids_ipv4 = {
	.notifier_call = arx_gids_ipv4_event,
};

#if IS_ENABLED(CONFIG_IPV6)
static int arx_gids_ipv6_event(struct notifier_block *nb, unsigned long event,
			       void *ifa)
{
	arx_gids_event(((struct inet6_ifaddr *)ifa)->idev->dev, event);
	return NOTIFY_DONE;
}

static struct notifier_block arx_gids_ipv6 = {
	.notifier_call = arx_gids_ipv6_event,
};
#endif

/**
 * arx_gids_init_dev - prepare a device for the core
 * @dev: its netdev is set, and it is not registered yet
 */
void arx_gids_init_dev(struct arx_dev *dev)
{
	INIT_DELAYED_WORK(&dev->gids.work, arx_gids_work);
	INIT_LIST_HEAD(&dev->gids.list);
	if (is_vlan_dev(dev->netdev))
		ib_set_device_ops(&dev->ib, &arx_vlan_ops);
}

/**
 * arx_gids_exit_dev - wait until no event uses a device
 * @dev: unregistered
 *
 * Context: may sleep.
 */
void arx_gids_exit_dev(struct arx_dev *dev)
{
	cancel_delayed_work_sync(&dev->gids.work);
}

/** arx_gids_init - at module load */
void arx_gids_init(void)
{
	register_inetaddr_notifier(&arx_gids_ipv4);
#if IS_ENABLED(CONFIG_IPV6)
	register_inet6addr_notifier(&arx_gids_ipv6);
#endif
}

/** arx_gids_exit - at module unload */
void arx_gids_exit(void)
{
#if IS_ENABLED(CONFIG_IPV6)
	unregister_inet6addr_notifier(&arx_gids_ipv6);
#endif
	unregister_inetaddr_notifier(&arx_gids_ipv4);
}
