// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
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
 * lo: the core sees its addresses when the device is registered, and follows
 * only netdevs of type Ethernet. The work scans again when an address changes.
 */

#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include <rdma/arx-abi.h>
#include <rdma/ib_cache.h>

#include "arx.h"
#include "gids.h"

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

static int arx_vlan_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct net_device *netdev = to_arx_dev(attr->device)->netdev;
	struct net_device *owner;
	bool fits;

	rcu_read_lock();
	owner = rcu_dereference(attr->ndev);
	fits = owner == netdev || netdev_has_upper_dev_all_rcu(netdev, owner);
	rcu_read_unlock();
	return fits ? 0 : -EADDRNOTAVAIL;
}

static int arx_vlan_del_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static const struct ib_device_ops arx_vlan_ops = {
	.get_netdev = arx_vlan_get_netdev,
	.add_gid = arx_vlan_add_gid,
	.del_gid = arx_vlan_del_gid,
};

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

	if (!(netdev->flags & IFF_LOOPBACK))
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
