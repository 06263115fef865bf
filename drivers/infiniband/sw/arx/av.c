// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address vectors, and the consumers' address handles for them. */

#include <linux/ipv6.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <rdma/arx-abi.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "av.h"
#include "compat.h"
#include "wire.h"

/* Address vectors with a cache of routes, and their number. */
static LIST_HEAD(arx_avs);
static unsigned int arx_num_avs;
static DEFINE_SPINLOCK(arx_avs_lock);	/* protects both */

/* So many address vectors are processed before bottom halves are on again. */
#define ARX_AV_FORGET	64

static int arx_av_add_cache(struct arx_av *av, gfp_t gfp)
{
	int err = dst_cache_init(&av->dst, gfp);

	if (err)
		return err;
	spin_lock_bh(&arx_avs_lock);
	list_add_tail(&av->link, &arx_avs);
	arx_num_avs++;
	spin_unlock_bh(&arx_avs_lock);
	return 0;
}

static void arx_av_remove_cache(struct arx_av *av)
{
	if (!av->dst.cache)
		return;
	spin_lock_bh(&arx_avs_lock);
	list_del(&av->link);
	arx_num_avs--;
	spin_unlock_bh(&arx_avs_lock);
	dst_cache_destroy(&av->dst);
}

/**
 * arx_av_forget_routes - release all routes in caches
 *
 * The first address vector of the list loses its routes and goes to the end, as
 * many times as there were address vectors at first. New ones are added at the
 * end, so each one that was there at first gets its turn.
 *
 * Context: may sleep; nobody uses the caches, see arx_net_forget_routes().
 */
void arx_av_forget_routes(void)
{
	unsigned int left = READ_ONCE(arx_num_avs);
	struct arx_av *av;
	int i;

	while (left) {
		spin_lock_bh(&arx_avs_lock);
		for (i = 0; left && i < ARX_AV_FORGET; i++, left--) {
			av = list_first_entry_or_null(&arx_avs, struct arx_av,
						      link);
			if (!av)
				break;
			dst_cache_reset_now(&av->dst);
			list_move_tail(&av->link, &arx_avs);
		}
		left = min(left, arx_num_avs);
		spin_unlock_bh(&arx_avs_lock);
		cond_resched();
	}
}

/*
 * Netdev that has the source address, and its network namespace; it may be a
 * VLAN on the device's netdev, or a container's macvlan.
 */
static int arx_av_place(struct arx_av *av, const struct arx_dev *dev,
			const struct ib_gid_attr *attr)
{
	struct net_device *netdev;
	int err = 0;

	rcu_read_lock();
	netdev = rdma_read_gid_attr_ndev_rcu(attr);
	if (IS_ERR(netdev)) {
		err = PTR_ERR(netdev);
	} else {
		av->ifindex = netdev->ifindex;
		av->cookie = dev_net(netdev)->net_cookie;
		av->foreign = !net_eq(dev_net(netdev), dev_net(dev->netdev));
	}
	rcu_read_unlock();
	return err;
}

static int arx_av_check(const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	const struct in6_addr *dgid = (const struct in6_addr *)&grh->dgid;
	enum rdma_network_type type;
	bool ipv4;

	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) || !grh->sgid_attr)
		return -EINVAL;
	type = rdma_gid_attr_network_type(grh->sgid_attr);
	ipv4 = type == RDMA_NETWORK_IPV4;
	if (!ipv4 && type != RDMA_NETWORK_IPV6)
		return -EINVAL;
	/*
	 * With ipv6.disable=1 there are IPv6 GIDs made from MAC addresses, but
	 * no routing tables: a look-up would crash up to Linux 6.12.
	 */
	if (!ipv4 && !ipv6_mod_enabled())
		return -EAFNOSUPPORT;
	/*
	 * Both ends use the same protocol, and the destination is an address.
	 */
	if (ipv6_addr_v4mapped(dgid) != ipv4 || ipv6_addr_any(dgid))
		return -EINVAL;
	if (attr->static_rate && ib_rate_to_mbps(attr->static_rate) < 0)
		return -EINVAL;
	return 0;
}

/*
 * Mbit/s of a static rate, 0: as fast as possible. A consumer that asks for the
 * speed of the port, or for more, wants no limit. A netdev may be faster than
 * it says: veth is.
 */
static u32 arx_av_mbps(const struct arx_dev *dev, u8 static_rate)
{
	u32 port = READ_ONCE(dev->port_mbps);
	u32 mbps;

	if (!static_rate)
		return 0;
	mbps = ib_rate_to_mbps(static_rate);
	return port && mbps >= port ? 0 : mbps;
}

static void arx_av_fill(struct arx_av *av, const struct arx_dev *dev,
			const struct rdma_ah_attr *attr, u32 qpn, u32 dest_qpn)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	memcpy(&av->saddr, &grh->sgid_attr->gid, sizeof(av->saddr));
	memcpy(&av->daddr, &grh->dgid, sizeof(av->daddr));
	arx_wire_group(&av->daddr);
	av->ipv4 = ipv6_addr_v4mapped(&av->saddr);
	av->tos = grh->traffic_class & ~INET_ECN_MASK;
	av->ttl = grh->hop_limit ? grh->hop_limit : IPDEFTTL;
	av->sl = rdma_ah_get_sl(attr);
	av->static_rate = rdma_ah_get_static_rate(attr);
	av->mbps = arx_av_mbps(dev, av->static_rate);
	av->flow_label = grh->flow_label & IB_GRH_FLOWLABEL_MASK;
	av->sport = rdma_get_udp_sport(av->flow_label, qpn, dest_qpn);
}

/**
 * arx_av_create - create an address vector
 * @dev: device
 * @pd: protection domain of its AH; NULL for a QP
 * @attr: destination; its source GID is resolved
 * @qpn: connected: own QPN, else 0
 * @dest_qpn: connected: the peer's, else 0
 * @gfp: how to allocate
 *
 * An address vector that is created in atomic context has no cache of routes:
 * the cache is per-CPU memory, of which the allocator has little for atomic
 * contexts. The CM creates an AH in that way for each of its messages, and
 * sends one MAD with it.
 *
 * Context: may sleep if @gfp says so.
 * Return: the address vector with one reference, or -EINVAL, -EAFNOSUPPORT (no
 * IPv6), -ENODEV (its netdev is gone), -ENOMEM.
 */
struct arx_av *arx_av_create(struct arx_dev *dev, struct ib_pd *pd,
			     const struct rdma_ah_attr *attr, u32 qpn,
			     u32 dest_qpn, gfp_t gfp)
{
	struct arx_av *av;
	int err;

	err = arx_av_check(attr);
	if (err)
		return ERR_PTR(err);

	av = kzalloc(sizeof(*av), gfp);
	if (!av)
		return ERR_PTR(-ENOMEM);
	err = arx_av_place(av, dev, attr->grh.sgid_attr);
	if (!err && gfpflags_allow_blocking(gfp))
		err = arx_av_add_cache(av, gfp);
	if (err) {
		kfree(av);
		return ERR_PTR(err);
	}

	refcount_set(&av->ref, 1);
	av->pd = pd;
	arx_av_fill(av, dev, attr, qpn, dest_qpn);
	rdma_hold_gid_attr(attr->grh.sgid_attr);
	av->sgid_attr = attr->grh.sgid_attr;
	return av;
}

static void arx_av_free(struct rcu_head *rcu)
{
	struct arx_av *av = container_of(rcu, struct arx_av, rcu);

	arx_av_remove_cache(av);
	kfree(av);
}

/**
 * arx_av_put - drop a reference
 * @av: address vector; RCU readers may still use it, but not its GID
 *
 * The GID is released at once: the device's GID table must not outlive its
 * users, and does not wait for a grace period.
 *
 * Context: any.
 */
void arx_av_put(struct arx_av *av)
{
	if (!refcount_dec_and_test(&av->ref))
		return;
	rdma_put_gid_attr(av->sgid_attr);
	call_rcu(&av->rcu, arx_av_free);
}

/* Count an AH and make its address vector. */
static int arx_ah_begin(struct ib_ah *ib, struct rdma_ah_init_attr *init,
			gfp_t gfp)
{
	struct arx_ah *ah = to_arx_ah(ib);
	int err;

	err = arx_object_begin(ib->device, ARX_KIND_AH);
	if (err)
		return err;
	ah->av = arx_av_create(to_arx_dev(ib->device), ib->pd, init->ah_attr, 0,
			       0, gfp);
	err = PTR_ERR_OR_ZERO(ah->av);
	if (err)
		arx_object_end(ib->device, ARX_KIND_AH);
	return err;
}

static void arx_ah_end(struct ib_ah *ib)
{
	arx_av_put(to_arx_ah(ib)->av);
	arx_object_end(ib->device, ARX_KIND_AH);
}

/**
 * arx_create_ah - verb, kernel consumers
 * @ib: the AH, allocated by the core
 * @init: destination
 * @udata: NULL
 *
 * Context: may sleep if @init says so.
 * Return: 0 or the error of arx_av_create().
 */
int arx_create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *init,
		  struct ib_udata *udata)
{
	return arx_ah_begin(ib, init, init->flags & RDMA_CREATE_AH_SLEEPABLE ?
				      GFP_KERNEL : GFP_ATOMIC);
}

/**
 * arx_create_user_ah - verb, applications
 * @ib: the AH, allocated by the core
 * @init: destination
 * @udata: receives the AH's number for WQEs
 *
 * Context: may sleep.
 * Return: 0, the error of arx_av_create(), -ENOMEM also beyond the limit of
 * AHs, or -EFAULT.
 */
int arx_create_user_ah(struct ib_ah *ib, struct rdma_ah_init_attr *init,
		       struct ib_udata *udata)
{
	struct arx_dev *dev = to_arx_dev(ib->device);
	struct arx_create_ah_resp resp = {};
	struct arx_ah *ah = to_arx_ah(ib);
	int err;

	err = arx_ah_begin(ib, init, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	err = arx_ids_add(&dev->ahs, &ah->av->id);
	if (err)
		goto end;
	resp.ah = ah->av->id.nr;
	err = ib_respond_udata(udata, resp);
	if (err)
		goto remove;
	return 0;

remove:
	arx_ids_remove(&dev->ahs, &ah->av->id);
end:
	arx_ah_end(ib);
	return err;
}

/**
 * arx_query_ah - verb
 * @ib: AH
 * @attr: receives the destination
 *
 * Return: 0.
 */
int arx_query_ah(struct ib_ah *ib, struct rdma_ah_attr *attr)
{
	const struct arx_av *av = to_arx_ah(ib)->av;

	memset(attr, 0, sizeof(*attr));
	attr->type = ib->type;
	rdma_ah_set_port_num(attr, ARX_PORT);
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_static_rate(attr, av->static_rate);
	rdma_ah_set_grh(attr, (union ib_gid *)&av->daddr, av->flow_label,
			av->sgid_attr->index, av->ttl, av->tos);
	return 0;
}

/**
 * arx_ah_destroy - the end of an AH
 * @ib: AH; the core frees it afterwards
 *
 * Context: any.
 */
void arx_ah_destroy(struct ib_ah *ib)
{
	struct arx_dev *dev = to_arx_dev(ib->device);
	struct arx_ah *ah = to_arx_ah(ib);

	if (ib->uobject)
		arx_ids_remove(&dev->ahs, &ah->av->id);
	arx_ah_end(ib);
}
