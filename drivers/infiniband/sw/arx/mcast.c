// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast: which UD QPs get what is sent to a group, and membership of the
 * netdev in it. The latter is for every group, as though rdma_cm, which joins
 * IPv4 groups itself, were not there: memberships are counted.
 *
 * A QP is attached to a group and to no address, so the VLANs on the netdev
 * whose addresses the device has become members, too: those there are when the
 * group gets its first QP.
 */

#include <linux/if_vlan.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>

#include "mcast.h"
#include "qp.h"

/**
 * struct arx_group - a multicast group with members
 * @dev: device it is of
 * @link: in arx_dev.mcast.groups
 * @rcu: frees it
 * @addr: its GID
 * @members: struct arx_member
 * @size: how many
 * @vlans: struct arx_vlan_join; under RTNL
 *
 * Lists but @vlans are changed under arx_dev.mcast.lock and read under RCU.
 */
struct arx_group {
	struct arx_dev *dev;
	struct list_head link;
	struct rcu_head rcu;
	struct in6_addr addr;
	struct list_head members;
	u32 size;
	struct list_head vlans;
};

/**
 * struct arx_vlan_join - a VLAN that is a member of a group
 * @link: in the group
 * @ifindex: of the VLAN, which may have gone, and its membership with it
 */
struct arx_vlan_join {
	struct list_head link;
	int ifindex;
};

/**
 * struct arx_member - a QP in a group
 * @link: in the group
 * @rcu: frees it
 * @qp: detached before it is destroyed
 */
struct arx_member {
	struct list_head link;
	struct rcu_head rcu;
	struct arx_qp *qp;
};

/**
 * arx_mcast_init - no groups yet
 * @dev: device
 */
void arx_mcast_init(struct arx_dev *dev)
{
	mutex_init(&dev->mcast.lock);
	INIT_LIST_HEAD(&dev->mcast.groups);
	dev->mcast.size = 0;
}

static int arx_mcast_join_ip(struct net_device *netdev, __be32 addr, bool join)
{
	struct in_device *in_dev = __in_dev_get_rtnl(netdev);

	if (!in_dev)
		return -ENODEV;
	if (join)
		ip_mc_inc_group(in_dev, addr);
	else
		ip_mc_dec_group(in_dev, addr);
	return 0;
}

#if IS_ENABLED(CONFIG_IPV6)
static int arx_mcast_join_ipv6(struct net_device *netdev,
			       const struct in6_addr *addr, bool join)
{
	return join ? ipv6_dev_mc_inc(netdev, addr) :
		      ipv6_dev_mc_dec(netdev, addr);
}
#else
static int arx_mcast_join_ipv6(struct net_device *netdev,
			       const struct in6_addr *addr, bool join)
{
	return -EAFNOSUPPORT;
}
#endif

/* Have a netdev and its network send the group here, or no longer. */
static int arx_mcast_join(struct net_device *netdev,
			  const struct in6_addr *addr, bool join)
{
	if (ipv6_addr_v4mapped(addr))
		return arx_mcast_join_ip(netdev, addr->s6_addr32[3], join);
	return arx_mcast_join_ipv6(netdev, addr, join);
}

/* A VLAN that cannot join has no addresses: nobody misses it. */
static int arx_mcast_join_vlan(struct net_device *upper,
			       struct netdev_nested_priv *priv)
{
	struct arx_group *group = priv->data;
	struct arx_vlan_join *join;

	if (!is_vlan_dev(upper) ||
	    !net_eq(dev_net(upper), dev_net(group->dev->netdev)))
		return 0;
	join = kzalloc(sizeof(*join), GFP_KERNEL_ACCOUNT);
	if (!join)
		return -ENOMEM;
	if (arx_mcast_join(upper, &group->addr, true)) {
		kfree(join);
		return 0;
	}
	join->ifindex = upper->ifindex;
	list_add(&join->link, &group->vlans);
	return 0;
}

/*
 * IP does all of it, the netdev's filter included. A netdev that loses its
 * addresses meanwhile leaves by itself, so an error on leaving means nothing.
 */
static void arx_group_leave(struct arx_group *group)
{
	struct net_device *netdev = group->dev->netdev;
	struct arx_vlan_join *join, *next;
	struct net_device *vlan;

	ASSERT_RTNL();
	arx_mcast_join(netdev, &group->addr, false);
	list_for_each_entry_safe(join, next, &group->vlans, link) {
		vlan = __dev_get_by_index(dev_net(netdev), join->ifindex);
		if (vlan)
			arx_mcast_join(vlan, &group->addr, false);
		kfree(join);
	}
}

static int arx_group_join(struct arx_group *group)
{
	struct netdev_nested_priv priv = { .data = group };
	struct net_device *netdev = group->dev->netdev;
	int err;

	ASSERT_RTNL();
	err = arx_mcast_join(netdev, &group->addr, true);
	if (err)
		return err;
	err = netdev_walk_all_upper_dev_rcu(netdev, arx_mcast_join_vlan, &priv);
	if (err)
		arx_group_leave(group);
	return err;
}

/* The group, under RCU or arx_dev.mcast.lock. */
static struct arx_group *arx_group_find(struct arx_dev *dev,
					const struct in6_addr *addr)
{
	struct arx_group *group;

	list_for_each_entry_rcu(group, &dev->mcast.groups, link,
				lockdep_is_held(&dev->mcast.lock))
		if (ipv6_addr_equal(&group->addr, addr))
			return group;
	return NULL;
}

static struct arx_group *arx_group_create(struct arx_dev *dev,
					  const struct in6_addr *addr)
{
	struct arx_group *group;
	int err;

	if (dev->mcast.size >= ARX_MAX_MCAST_GROUPS)
		return ERR_PTR(-ENOSPC);

	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group)
		return ERR_PTR(-ENOMEM);
	group->dev = dev;
	group->addr = *addr;
	INIT_LIST_HEAD(&group->members);
	INIT_LIST_HEAD(&group->vlans);

	rtnl_lock();
	err = arx_group_join(group);
	rtnl_unlock();
	if (err) {
		kfree(group);
		return ERR_PTR(err);
	}
	list_add_rcu(&group->link, &dev->mcast.groups);
	dev->mcast.size++;
	return group;
}

static void arx_group_drop_empty(struct arx_dev *dev, struct arx_group *group)
{
	if (group->size)
		return;
	list_del_rcu(&group->link);
	dev->mcast.size--;
	rtnl_lock();
	arx_group_leave(group);
	rtnl_unlock();
	kfree_rcu(group, rcu);
}

static struct arx_member *arx_member_find(struct arx_group *group,
					  const struct arx_qp *qp)
{
	struct arx_member *member;

	list_for_each_entry(member, &group->members, link)
		if (member->qp == qp)
			return member;
	return NULL;
}

static int arx_member_add(struct arx_group *group, struct arx_qp *qp)
{
	struct arx_member *member;

	if (arx_member_find(group, qp))
		return -EEXIST;
	if (group->size >= ARX_MAX_MCAST_MEMBERS)
		return -ENOSPC;

	member = kzalloc(sizeof(*member), GFP_KERNEL_ACCOUNT);
	if (!member)
		return -ENOMEM;
	member->qp = qp;
	list_add_rcu(&member->link, &group->members);
	group->size++;
	return 0;
}

/**
 * arx_attach_mcast - verb: a UD QP is to get what is sent to a group
 * @ib: QP
 * @gid: group; of IPv4 if it is v4-mapped. The core checked that it is one.
 * @lid: unused
 *
 * Context: may sleep, takes RTNL.
 * Return: 0, -EEXIST if it does already, -ENOSPC, -ENOMEM, -ENODEV or -EINVAL
 * if the netdev has no addresses of the family.
 */
int arx_attach_mcast(struct ib_qp *ib, union ib_gid *gid, u16 lid)
{
	const struct in6_addr *addr = (struct in6_addr *)gid->raw;
	struct arx_dev *dev = to_arx_dev(ib->device);
	struct arx_group *group;
	int err;

	mutex_lock(&dev->mcast.lock);
	group = arx_group_find(dev, addr);
	if (!group)
		group = arx_group_create(dev, addr);
	err = PTR_ERR_OR_ZERO(group);
	if (!err) {
		err = arx_member_add(group, to_arx_qp(ib));
		arx_group_drop_empty(dev, group);
	}
	mutex_unlock(&dev->mcast.lock);
	return err;
}

/**
 * arx_detach_mcast - verb: a QP is no longer to get what is sent to a group
 * @ib: QP
 * @gid: group
 * @lid: unused
 *
 * A packet may still be on its way to the QP when this returns.
 *
 * Context: may sleep, takes RTNL.
 * Return: 0, or -EINVAL if the QP is not attached.
 */
int arx_detach_mcast(struct ib_qp *ib, union ib_gid *gid, u16 lid)
{
	const struct in6_addr *addr = (struct in6_addr *)gid->raw;
	struct arx_dev *dev = to_arx_dev(ib->device);
	struct arx_member *member = NULL;
	struct arx_group *group;

	mutex_lock(&dev->mcast.lock);
	group = arx_group_find(dev, addr);
	if (group)
		member = arx_member_find(group, to_arx_qp(ib));
	if (member) {
		list_del_rcu(&member->link);
		kfree_rcu(member, rcu);
		group->size--;
		arx_group_drop_empty(dev, group);
	}
	mutex_unlock(&dev->mcast.lock);
	return member ? 0 : -EINVAL;
}

/**
 * arx_mcast_deliver - a run has come for a group
 * @dev: device it came to
 * @group: its destination address, v4-mapped for IPv4
 * @run: of a UD message; left as it is
 *
 * Context: softirq, RCU read side.
 */
void arx_mcast_deliver(struct arx_dev *dev, const struct in6_addr *group,
		       const struct arx_run *run)
{
	struct arx_group *found = arx_group_find(dev, group);
	struct arx_member *member;

	if (!found)
		return;

	list_for_each_entry_rcu(member, &found->members, link) {
		struct arx_run copy = *run;

		arx_responder_rx(member->qp, &copy);
	}
}
