// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast: the UD QPs of a group, and the netdev's membership in the group.
 * arx joins every group, although rdma_cm joins IPv4 groups, too: IP counts the
 * memberships.
 *
 * A QP is attached to a group and not to an address. So the VLANs above the
 * netdev become members, too, because the device has their addresses. These are
 * the VLANs that exist when a QP is attached.
 *
 * A membership belongs to the netdev's in_device or inet6_dev and ends with it:
 * when the netdev is removed, moves to another network namespace, or gets an
 * MTU too small for IP. The netdev then gets another in_device, whose
 * memberships are those of other programs. So a membership holds the in_device
 * that joined, and leaves only that one.
 */

#include <linux/if_vlan.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/rculist.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>

#include "account.h"
#include "gids.h"
#include "keep.h"
#include "l3.h"
#include "mcast.h"
#include "responder.h"
#include "section.h"
#include "wire.h"

/**
 * struct arx_group - a multicast group with members
 * @dev: its device
 * @link: in arx_dev.mcast.groups
 * @rcu: frees it
 * @addr: its GID
 * @members: struct arx_member
 * @size: number of members
 * @joins: struct arx_join; under RTNL
 *
 * Lists except @joins are changed under arx_dev.mcast.lock and read under RCU.
 */
struct arx_group {
	struct arx_dev *dev;
	struct list_head link;
	struct rcu_head rcu;
	struct in6_addr addr;
	struct list_head members;
	u32 size;
	struct list_head joins;
};

/**
 * struct arx_join - membership of a netdev in a group
 * @link: in arx_joins
 * @group_link: in arx_group.joins
 * @addr: the group's GID
 * @in_dev: IPv4: the in_device that joined, held; else NULL
 * @idev: IPv6: the inet6_dev that joined, held; else NULL
 *
 * Both hold the netdev, so the end of the netdev waits for arx_mcast_leave().
 */
struct arx_join {
	struct list_head link;
	struct list_head group_link;
	struct in6_addr addr;
	struct in_device *in_dev;
	struct inet6_dev *idev;
};

/* All memberships; under RTNL. */
static LIST_HEAD(arx_joins);

/**
 * struct arx_member - a QP in a group
 * @link: in the group, in the order of @nr
 * @rcu: frees it
 * @nr: greater than that of any earlier member of the device's groups
 * @qp: detached before it is destroyed
 * @user: owner of the QP, or NULL for a kernel consumer's
 */
struct arx_member {
	struct list_head link;
	struct rcu_head rcu;
	u64 nr;
	struct arx_qp *qp;
	struct arx_user *user;
};

/*
 * A datagram for at most this many QPs is delivered at once. The stack may
 * deliver hundreds of datagrams before bottom halves are on again.
 */
#define ARX_MCAST_AT_ONCE	8U

/* Copies that the work makes before bottom halves are on again. */
#define ARX_MCAST_COPIES	64U

/* Datagrams of a device that may wait for the work. */
#define ARX_MCAST_WAITING	1024U

/**
 * struct arx_datagram - a datagram for a group, which waits to be delivered
 * @link: in arx_dev.mcast.waiting
 * @skb: held
 * @run: of @skb, with its GRH in @grh
 * @grh: copy of the GRH, which was on a stack
 * @l3: layer-3 domain in which it arrived
 * @from: its source address, v4-mapped for IPv4
 * @group: its destination address, v4-mapped for IPv4
 * @next: number of the next member that gets the datagram
 */
struct arx_datagram {
	struct list_head link;
	struct sk_buff *skb;
	struct arx_run run;
	u8 grh[ARX_GRH_LEN];
	struct arx_l3_key l3;
	struct in6_addr from;
	struct in6_addr group;
	u64 next;
};

static int arx_join_ipv4(struct arx_join *join, struct net_device *netdev)
{
	join->in_dev = in_dev_get(netdev);
	if (!join->in_dev)
		return -ENODEV;
	ip_mc_inc_group(join->in_dev, join->addr.s6_addr32[3]);
	return 0;
}

#if IS_ENABLED(CONFIG_IPV6)
static int arx_join_ipv6(struct arx_join *join, struct net_device *netdev)
{
	int err;

	join->idev = in6_dev_get(netdev);
	if (!join->idev)
		return -ENODEV;
	err = ipv6_dev_mc_inc(netdev, &join->addr);
	if (err)
		in6_dev_put(join->idev);
	return err;
}

static void arx_leave_ipv6(struct arx_join *join)
{
	struct net_device *netdev = join->idev->dev;

	if (__in6_dev_get(netdev) == join->idev)
		ipv6_dev_mc_dec(netdev, &join->addr);
	in6_dev_put(join->idev);
}

static struct net_device *arx_join_netdev(const struct arx_join *join)
{
	return join->in_dev ? join->in_dev->dev : join->idev->dev;
}

static bool arx_join_lives(const struct arx_join *join)
{
	struct net_device *netdev = arx_join_netdev(join);

	return join->in_dev ? __in_dev_get_rtnl(netdev) == join->in_dev :
			      __in6_dev_get(netdev) == join->idev;
}
#else
static int arx_join_ipv6(struct arx_join *join, struct net_device *netdev)
{
	return -EAFNOSUPPORT;
}

static void arx_leave_ipv6(struct arx_join *join)
{
}

static struct net_device *arx_join_netdev(const struct arx_join *join)
{
	return join->in_dev->dev;
}

static bool arx_join_lives(const struct arx_join *join)
{
	return __in_dev_get_rtnl(join->in_dev->dev) == join->in_dev;
}
#endif

/* An in_device that has ended has no members: leaving it does nothing. */
static void arx_leave(struct arx_join *join)
{
	if (join->in_dev) {
		ip_mc_dec_group(join->in_dev, join->addr.s6_addr32[3]);
		in_dev_put(join->in_dev);
	} else {
		arx_leave_ipv6(join);
	}
	list_del(&join->link);
	list_del(&join->group_link);
	kfree(join);
}

/* True if a netdev is a member. Frees a membership that has ended. */
static bool arx_has_joined(const struct arx_group *group,
			   struct net_device *netdev)
{
	struct arx_join *join, *next;

	list_for_each_entry_safe(join, next, &group->joins, group_link) {
		if (arx_join_netdev(join) != netdev)
			continue;
		if (arx_join_lives(join))
			return true;
		arx_leave(join);
	}
	return false;
}

/*
 * Make a netdev a member, unless it is one. IP does the whole join, with the
 * netdev's filter.
 */
static int arx_join(struct arx_group *group, struct net_device *netdev)
{
	struct arx_join *join;
	int err;

	if (arx_has_joined(group, netdev))
		return 0;
	join = kzalloc(sizeof(*join), GFP_KERNEL_ACCOUNT);
	if (!join)
		return -ENOMEM;
	join->addr = group->addr;
	if (ipv6_addr_v4mapped(&join->addr))
		err = arx_join_ipv4(join, netdev);
	else
		err = arx_join_ipv6(join, netdev);
	if (err) {
		kfree(join);
		return err;
	}
	list_add(&join->link, &arx_joins);
	list_add(&join->group_link, &group->joins);
	return 0;
}

/**
 * arx_mcast_leave - end the memberships of a netdev
 * @netdev: any netdev, which leaves its network namespace or is removed
 *
 * QPs stay attached to their groups.
 *
 * Context: RTNL is held.
 */
void arx_mcast_leave(const struct net_device *netdev)
{
	struct arx_join *join, *next;

	ASSERT_RTNL();
	list_for_each_entry_safe(join, next, &arx_joins, link)
		if (arx_join_netdev(join) == netdev)
			arx_leave(join);
}

/*
 * Make a VLAN in the namespace of the device a member. A VLAN that cannot join
 * has no addresses, so no QP uses it.
 */
static int arx_group_join_vlan(struct net_device *upper,
			       struct netdev_nested_priv *priv)
{
	struct arx_group *group = priv->data;
	int err = 0;

	if (is_vlan_dev(upper) &&
	    net_eq(dev_net(upper), dev_net(group->dev->netdev)))
		err = arx_join(group, upper);
	return err == -ENOMEM ? err : 0;
}

static void arx_group_leave(struct arx_group *group)
{
	struct arx_join *join, *next;

	ASSERT_RTNL();
	list_for_each_entry_safe(join, next, &group->joins, group_link)
		arx_leave(join);
}

/*
 * Make the netdev and its VLANs members. Called for each QP that is attached: a
 * membership may have ended since the last call, and there may be new VLANs.
 */
static int arx_group_join(struct arx_group *group)
{
	struct netdev_nested_priv priv = { .data = group };
	struct net_device *netdev = group->dev->netdev;
	int err;

	ASSERT_RTNL();
	err = arx_join(group, netdev);
	if (err)
		return err;
	return netdev_walk_all_upper_dev_rcu(netdev, arx_group_join_vlan,
					     &priv);
}

/* Find a group. Under RCU or arx_dev.mcast.lock. */
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

	if (dev->mcast.size >= ARX_MAX_MCAST_GROUPS)
		return ERR_PTR(-ENOSPC);

	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group)
		return ERR_PTR(-ENOMEM);
	group->dev = dev;
	group->addr = *addr;
	INIT_LIST_HEAD(&group->members);
	INIT_LIST_HEAD(&group->joins);

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

/* The user who opened the device on which the QP was created. */
static struct arx_user *arx_member_user(const struct arx_qp *qp)
{
	const struct ib_uobject *uobj = qp->ib.pd->uobject;

	return uobj ? to_arx_ucontext(uobj->context)->user : NULL;
}

static int arx_member_add(struct arx_group *group, struct arx_qp *qp)
{
	struct arx_user *user = arx_member_user(qp);
	struct arx_member *member;
	int err;

	if (arx_member_find(group, qp))
		return -EEXIST;
	if (group->size >= ARX_MAX_MCAST_MEMBERS)
		return -ENOSPC;

	member = kzalloc(sizeof(*member), GFP_KERNEL_ACCOUNT);
	if (!member)
		return -ENOMEM;
	err = user ? arx_user_attach(user) : 0;
	if (err) {
		kfree(member);
		return err;
	}
	member->qp = qp;
	member->user = user;
	member->nr = group->dev->mcast.next_nr++;
	list_add_tail_rcu(&member->link, &group->members);
	WRITE_ONCE(group->size, group->size + 1);
	return 0;
}

/**
 * arx_attach_mcast - verb: attach a UD QP to a group
 * @ib: QP
 * @gid: group; an IPv4 one if it is v4-mapped. The core checked that it is a
 *	multicast GID.
 * @lid: unused
 *
 * Context: may sleep, takes RTNL.
 * Return: 0, -EEXIST if the QP is attached already, -ENOBUFS if the user has
 * reached the limit, -ENOSPC if the device or the group has, -ENOMEM, -ENODEV
 * or -EINVAL if the netdev has no addresses of the family.
 */
int arx_attach_mcast(struct ib_qp *ib, union ib_gid *gid, u16 lid)
{
	struct in6_addr addr = *(struct in6_addr *)gid->raw;
	struct arx_dev *dev = to_arx_dev(ib->device);
	struct arx_group *group;
	int err;

	arx_wire_group(&addr);
	mutex_lock(&dev->mcast.lock);
	group = arx_group_find(dev, &addr);
	if (!group)
		group = arx_group_create(dev, &addr);
	err = PTR_ERR_OR_ZERO(group);
	if (!err) {
		rtnl_lock();
		err = arx_group_join(group);
		rtnl_unlock();
		if (!err)
			err = arx_member_add(group, to_arx_qp(ib));
		arx_group_drop_empty(dev, group);
	}
	mutex_unlock(&dev->mcast.lock);
	return err;
}

/**
 * arx_detach_mcast - verb: detach a UD QP from a group
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
	struct in6_addr addr = *(struct in6_addr *)gid->raw;
	struct arx_dev *dev = to_arx_dev(ib->device);
	struct arx_member *member = NULL;
	struct arx_group *group;

	arx_wire_group(&addr);
	mutex_lock(&dev->mcast.lock);
	group = arx_group_find(dev, &addr);
	if (group)
		member = arx_member_find(group, to_arx_qp(ib));
	if (member) {
		list_del_rcu(&member->link);
		if (member->user)
			arx_user_detach(member->user);
		kfree_rcu(member, rcu);
		WRITE_ONCE(group->size, group->size - 1);
		arx_group_drop_empty(dev, group);
	}
	mutex_unlock(&dev->mcast.lock);
	return member ? 0 : -EINVAL;
}

/*
 * True if a QP sent a datagram itself: its number is the QP's, and its source
 * address is the device's. A QP of another machine may have the same number.
 */
static bool arx_mcast_is_own(const struct arx_qp *qp,
			     const struct arx_l3_key *l3,
			     const struct in6_addr *from,
			     const struct arx_run *run)
{
	return run->h.src_qpn == qp->id.nr &&
	       arx_gids_has(arx_qp_dev(qp), l3, from);
}

/*
 * Deliver @run to at most @most members of a group, from number @next on.
 * Returns the number from which to continue; 0 if none is left. Under RCU, in a
 * section.
 */
static u64 arx_mcast_copy(const struct arx_group *group,
			  const struct arx_l3_key *l3,
			  const struct in6_addr *from,
			  const struct arx_run *run, u64 next, u32 most)
{
	struct arx_member *member;

	list_for_each_entry_rcu(member, &group->members, link) {
		struct arx_run copy;

		if (member->nr < next)
			continue;
		if (!most--)
			return member->nr;
		if (unlikely(member->qp->block_self_mcast) &&
		    arx_mcast_is_own(member->qp, l3, from, run))
			continue;
		copy = *run;
		arx_responder_rx(member->qp, &copy);
	}
	return 0;
}

static void arx_datagram_free(struct arx_datagram *datagram)
{
	consume_skb(datagram->skb);
	kfree(datagram);
}

/* The first datagram that waits, or NULL. It stays in the list. */
static struct arx_datagram *arx_mcast_first(struct arx_dev *dev)
{
	struct arx_datagram *first;

	spin_lock_bh(&dev->mcast.waiting_lock);
	first = list_first_entry_or_null(&dev->mcast.waiting,
					 struct arx_datagram, link);
	spin_unlock_bh(&dev->mcast.waiting_lock);
	return first;
}

static void arx_mcast_remove(struct arx_dev *dev, struct arx_datagram *datagram)
{
	spin_lock_bh(&dev->mcast.waiting_lock);
	list_del(&datagram->link);
	WRITE_ONCE(dev->mcast.count, dev->mcast.count - 1);
	spin_unlock_bh(&dev->mcast.waiting_lock);
	arx_datagram_free(datagram);
}

/* Deliver some more copies of a datagram; false if none are left. */
static bool arx_mcast_continue(struct arx_dev *dev,
			       struct arx_datagram *datagram)
{
	struct arx_group *group;
	u64 next = 0;

	local_bh_disable();
	arx_section_enter();
	group = arx_group_find(dev, &datagram->group);
	if (group)
		next = arx_mcast_copy(group, &datagram->l3, &datagram->from,
				      &datagram->run, datagram->next,
				      ARX_MCAST_COPIES);
	datagram->next = next;
	arx_section_leave();
	local_bh_enable();
	return next;
}

/*
 * Make some copies of the first datagram that waits. Only this work removes
 * datagrams while the device receives.
 */
static void arx_mcast_work(struct work_struct *work)
{
	struct arx_dev *dev = container_of(work, struct arx_dev, mcast.work);
	struct arx_datagram *datagram = arx_mcast_first(dev);

	if (!datagram)
		return;
	if (!arx_mcast_continue(dev, datagram))
		arx_mcast_remove(dev, datagram);
	queue_work(system_unbound_wq, work);
}

/**
 * arx_mcast_init - start without groups
 * @dev: new device
 */
void arx_mcast_init(struct arx_dev *dev)
{
	mutex_init(&dev->mcast.lock);
	INIT_LIST_HEAD(&dev->mcast.groups);
	dev->mcast.size = 0;
	dev->mcast.next_nr = 1;
	spin_lock_init(&dev->mcast.waiting_lock);
	INIT_LIST_HEAD(&dev->mcast.waiting);
	dev->mcast.count = 0;
	INIT_WORK(&dev->mcast.work, arx_mcast_work);
}

/**
 * arx_mcast_exit - drop datagrams that wait
 * @dev: receives no more
 *
 * Context: may sleep.
 */
void arx_mcast_exit(struct arx_dev *dev)
{
	struct arx_datagram *datagram;

	disable_work_sync(&dev->mcast.work);
	while ((datagram = arx_mcast_first(dev)))
		arx_mcast_remove(dev, datagram);
}

/*
 * Leave a datagram to the work. False if too many wait, or if there is no
 * memory. A packet in the memory management's reserves is not kept: the
 * reserves are needed to free memory.
 */
static bool arx_mcast_defer(struct arx_dev *dev, const struct arx_l3_key *l3,
			    const struct in6_addr *from,
			    const struct in6_addr *group, struct sk_buff *skb,
			    const struct arx_run *run)
{
	struct arx_datagram *datagram;
	bool room;

	if (skb_pfmemalloc(skb))
		return false;
	datagram = kmalloc(sizeof(*datagram), GFP_ATOMIC | __GFP_NOWARN);
	if (!datagram)
		return false;
	datagram->skb = skb_get(skb);
	datagram->run = *run;
	memcpy(datagram->grh, run->grh, ARX_GRH_LEN);
	datagram->run.grh = datagram->grh;
	datagram->l3 = *l3;
	datagram->from = *from;
	datagram->group = *group;
	datagram->next = 0;
	arx_packets_detach(skb);

	spin_lock(&dev->mcast.waiting_lock);
	room = dev->mcast.count < ARX_MCAST_WAITING;
	if (room) {
		list_add_tail(&datagram->link, &dev->mcast.waiting);
		WRITE_ONCE(dev->mcast.count, dev->mcast.count + 1);
	}
	spin_unlock(&dev->mcast.waiting_lock);
	if (!room)
		arx_datagram_free(datagram);
	else
		queue_work(system_unbound_wq, &dev->mcast.work);
	return room;
}

/**
 * arx_mcast_deliver - deliver a datagram to the QPs of a group
 * @dev: device that received it
 * @l3: layer-3 domain in which it arrived
 * @from: its source address, v4-mapped for IPv4
 * @group: its destination address, v4-mapped for IPv4
 * @skb: the datagram; may have lost socket, route and netdev afterwards
 * @run: of @skb; unchanged
 *
 * Copies for many QPs are left to a work, which yields to other programs. While
 * datagrams wait for the work, later ones wait behind them.
 *
 * Context: softirq, in a section.
 */
void arx_mcast_deliver(struct arx_dev *dev, const struct arx_l3_key *l3,
		       const struct in6_addr *from,
		       const struct in6_addr *group, struct sk_buff *skb,
		       const struct arx_run *run)
{
	struct arx_group *found = arx_group_find(dev, group);

	if (!found)
		return;
	if (READ_ONCE(found->size) <= ARX_MCAST_AT_ONCE &&
	    !READ_ONCE(dev->mcast.count))
		arx_mcast_copy(found, l3, from, run, 0, ARX_MCAST_AT_ONCE);
	else if (!arx_mcast_defer(dev, l3, from, group, skb, run))
		arx_count(dev, RX_DROPPED);
}
