// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The module, links ("rdma link add NAME type arx netdev DEV"), and the device
 * that a link creates: its attributes and its end.
 *
 * A device lives from newlink to arx_dealloc_driver(). It ends by "rdma link
 * del", or when its netdev ends. Each device holds the module, so that rmmod
 * reports the module as in use while there is a link, instead of waiting.
 */

#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_netlink.h>

#include "arx.h"
#include "attrs.h"
#include "av.h"
#include "bpf.h"
#include "compat.h"
#include "crc.h"
#include "counter.h"
#include "cq.h"
#include "details.h"
#include "dm.h"
#include "doorbell.h"
#include "gids.h"
#include "gro.h"
#include "gso.h"
#include "l3.h"
#include "mcast.h"
#include "mr.h"
#include "mw.h"
#include "net.h"
#include "paging.h"
#include "pma.h"
#include "port.h"
#include "qp.h"
#include "recvq.h"
#include "ring.h"
#include "rx.h"
#include "uctx.h"
#include "verbs.h"
#include "worker.h"

/* As in Kconfig, which is not read when the module is built out of tree. */
#if !IS_ENABLED(CONFIG_64BIT) || !IS_ENABLED(CONFIG_INFINIBAND_VIRT_DMA)
#error "arx needs a 64-bit kernel with CONFIG_INFINIBAND_VIRT_DMA"
#endif

MODULE_AUTHOR("The arx developers");
MODULE_DESCRIPTION("RDMA over any Ethernet device (RoCEv2)");
MODULE_LICENSE("Dual BSD/GPL");
ARX_IMPORT_DMA_BUF;

/* Bits of a number: rkeys have eight more, QPNs have 24 bits (9.2.3). */
#define ARX_ID_BITS	24

/* IB_MTU_256 and the headers that iboe_get_mtu() subtracts. */
#define ARX_MIN_NETDEV_MTU	(256 + 96)

/*
 * The driver has no vendor, so its OUI is a locally administered one. It must
 * not be that of rdma_rxe (0xffffff): SPDK and others work around faults of
 * that driver.
 */
#define ARX_VENDOR_ID		0x024152
#define ARX_VENDOR_PART_ID	1

/*
 * libibverbs reads 32, 16 and 16 bits. arx has no other version than that of
 * the ABI.
 */
#define ARX_FW_VERSION		((u64)ARX_ABI_VERSION << 32)

/* One link is created at a time, so that a netdev gets one device. */
static DEFINE_MUTEX(arx_link_mutex);

/* Numbers of objects are drawn at random until a free one is found. */
static_assert(BIT(ARX_ID_BITS - 2) >= ARX_MAX_OBJECTS);

/* IB_ODP_SUPPORT_FLUSH and IB_ODP_SUPPORT_ATOMIC_WRITE, which 6.12 lacks. */
#define ARX_ODP_FLUSH		BIT(6)
#define ARX_ODP_ATOMIC_WRITE	BIT(7)

#define ARX_ODP_CONNECTED	(IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_WRITE | \
				 IB_ODP_SUPPORT_READ | IB_ODP_SUPPORT_ATOMIC | \
				 IB_ODP_SUPPORT_SRQ_RECV | ARX_ODP_FLUSH | \
				 ARX_ODP_ATOMIC_WRITE)

/*
 * UC and UD work with memory paged on demand at the receiver, too, but lose the
 * messages that find their pages absent.
 */
static const struct ib_odp_caps arx_odp_caps = {
	.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT,
	.per_transport_caps = {
		.rc_odp_caps = ARX_ODP_CONNECTED | IB_ODP_SUPPORT_RECV,
		.xrc_odp_caps = ARX_ODP_CONNECTED,
		.uc_odp_caps = IB_ODP_SUPPORT_SEND,
		.ud_odp_caps = IB_ODP_SUPPORT_SEND,
	},
};

/* What all devices have in common. */
static const struct ib_device_attr arx_device_attr = {
	.max_mr_size = U64_MAX,
	.page_size_cap = PAGE_MASK,
	.fw_ver = ARX_FW_VERSION,
	.vendor_id = ARX_VENDOR_ID,
	.vendor_part_id = ARX_VENDOR_PART_ID,
	.max_qp = ARX_MAX_OBJECTS,
	.max_qp_wr = ARX_MAX_QP_WR,
	.device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD |
			    IB_DEVICE_PORT_ACTIVE_EVENT |
			    IB_DEVICE_SYS_IMAGE_GUID |
			    IB_DEVICE_RC_RNR_NAK_GEN |
			    IB_DEVICE_SRQ_RESIZE |
			    IB_DEVICE_XRC |
			    IB_DEVICE_MEM_MGT_EXTENSIONS |
			    IB_DEVICE_MEM_WINDOW |
			    IB_DEVICE_MEM_WINDOW_TYPE_2B |
			    IB_DEVICE_FLUSH_GLOBAL |
			    IB_DEVICE_ATOMIC_WRITE,
	.kernel_cap_flags = IBK_ALLOW_USER_UNREG |
			    IBK_BLOCK_MULTICAST_LOOPBACK |
			    IBK_SG_GAPS_REG,
	.max_send_sge = ARX_MAX_SGE,
	.max_recv_sge = ARX_MAX_SGE,
	.max_sge_rd = ARX_MAX_SGE,
	.max_cq = ARX_MAX_OBJECTS,
	.max_cqe = ARX_MAX_CQE,
	.max_mr = ARX_MAX_OBJECTS,
	.max_mw = ARX_MAX_OBJECTS,
	.max_dm_size = ARX_MAX_DM,
	.max_pd = ARX_MAX_OBJECTS,
	.max_qp_rd_atom = ARX_MAX_RD_ATOMIC,
	.max_res_rd_atom = ARX_MAX_RD_ATOMIC * ARX_MAX_OBJECTS,
	.max_qp_init_rd_atom = ARX_MAX_RD_ATOMIC,
	.atomic_cap = IB_ATOMIC_GLOB,
	.max_mcast_grp = ARX_MAX_MCAST_GROUPS,
	.max_mcast_qp_attach = ARX_MAX_MCAST_MEMBERS,
	.max_total_mcast_qp_attach = ARX_MAX_MCAST_GROUPS *
				     ARX_MAX_MCAST_MEMBERS,
	.max_ah = ARX_MAX_OBJECTS,
	.max_srq = ARX_MAX_OBJECTS,
	.max_srq_wr = ARX_MAX_QP_WR,
	.max_srq_sge = ARX_MAX_SGE,
	.max_fast_reg_page_list_len = ARX_MAX_FAST_REG_PAGES,
	.max_pkeys = 1,
	/* 4.096 us << 15: the peer's softirq may be delayed. */
	.local_ca_ack_delay = 15,
	.cq_caps.max_cq_moderation_count = U16_MAX,
	.cq_caps.max_cq_moderation_period = U16_MAX,
	/* Completions have nanoseconds. */
	.timestamp_mask = U64_MAX,
	.hca_core_clock = NSEC_PER_MSEC,
};

static int arx_query_device(struct ib_device *ib, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;

	*attr = arx_device_attr;
	attr->sys_image_guid = ib->node_guid;
	if (arx_mr_has_pmem())
		attr->device_cap_flags |= IB_DEVICE_FLUSH_PERSISTENT;
	if (IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING)) {
		attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
		attr->odp_caps = arx_odp_caps;
	}
	return 0;
}

/* The core stores the node description; rdma-ndd writes the host name to it. */
static int arx_modify_device(struct ib_device *ib, int mask,
			     struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ib->node_desc, modify->node_desc, sizeof(ib->node_desc));
	return 0;
}

static void arx_get_dev_fw_str(struct ib_device *ib, char *str)
{
	scnprintf(str, IB_FW_VERSION_NAME_MAX, "%u.0.0", ARX_ABI_VERSION);
}

static int arx_alloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	struct arx_pd *pd = to_arx_pd(ib);

	mutex_init(&pd->lock);
	INIT_LIST_HEAD(&pd->datagram_qps);
	return arx_object_begin(ib->device, ARX_KIND_PD);
}

static int arx_dealloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	mutex_destroy(&to_arx_pd(ib)->lock);
	arx_object_end(ib->device, ARX_KIND_PD);
	return 0;
}

static int arx_alloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata)
{
	return arx_object_begin(xrcd->device, ARX_KIND_XRCD);
}

static int arx_dealloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata)
{
	arx_object_end(xrcd->device, ARX_KIND_XRCD);
	return 0;
}

/*
 * The end of a device, also of one that was never registered. It has no objects
 * any more and no verb runs. The module may be unloaded from here on, but not
 * before this function has returned: ib_unregister_driver() waits for that.
 */
static void arx_dealloc_driver(struct ib_device *ib)
{
	struct arx_dev *dev = to_arx_dev(ib);

	arx_worker_wait_ended();
	arx_gids_exit_dev(dev);
	arx_net_detach(dev);
	arx_mcast_exit(dev);
	arx_ids_destroy(&dev->keys);
	arx_ids_destroy(&dev->ahs);
	arx_ids_destroy(&dev->srqs);
	arx_counters_exit(dev);
	arx_stats_exit(dev);
	free_percpu(dev->stats);
	netdev_put(dev->netdev, &dev->netdev_tracker);
	module_put(THIS_MODULE);
}

ARX_ADAPT_REG_USER_MR(arx_reg_user_mr)
ARX_ADAPT_REG_USER_MR_DMABUF(arx_reg_user_mr_dmabuf)
ARX_ADAPT_RESIZE_CQ(arx_resize_cq)
ARX_ADAPT_BIND_QP(arx_counter_bind_qp)
ARX_ADAPT_UNBIND_QP(arx_counter_unbind_qp)

/* Commands of arx beyond the common ones. */
static const struct uapi_definition arx_defs[] = {
	UAPI_DEF_CHAIN(arx_doorbell_defs),
	UAPI_DEF_CHAIN(arx_dm_defs),
	{}
};

static const struct ib_device_ops arx_dev_ops = {
	.owner = THIS_MODULE,
	.driver_id = (enum rdma_driver_id)ARX_DRIVER_ID,
	.uverbs_abi_ver = ARX_ABI_VERSION,
	.device_group = &arx_attrs_group,

	.post_send = arx_post_send,
	.post_recv = arx_post_recv,
	.poll_cq = arx_poll_cq,
	.req_notify_cq = arx_req_notify_cq,
	.post_srq_recv = arx_post_srq_recv,

	.query_device = arx_query_device,
	.query_port = arx_query_port,
	.query_pkey = arx_query_pkey,
	.modify_device = arx_modify_device,
	.process_mad = arx_process_mad,
	.get_port_immutable = arx_get_port_immutable,
	.get_link_layer = arx_get_link_layer,
	.add_gid = arx_add_gid,
	.del_gid = arx_del_gid,
	.get_dev_fw_str = arx_get_dev_fw_str,
	.dealloc_driver = arx_dealloc_driver,
	.alloc_hw_port_stats = arx_alloc_hw_port_stats,
	.get_hw_stats = arx_get_hw_stats,
	.modify_hw_stat = arx_modify_hw_stat,
	.counter_bind_qp = arx_counter_bind_qp_op,
	.counter_unbind_qp = arx_counter_unbind_qp_op,
	.counter_dealloc = arx_counter_dealloc,
	.counter_alloc_stats = arx_counter_alloc_stats,
	.counter_update_stats = arx_counter_update_stats,
	ARX_COUNTER_INIT
	.fill_res_qp_entry = arx_fill_res_qp_entry,
	.fill_res_cq_entry = arx_fill_res_cq_entry,
	.fill_res_srq_entry = arx_fill_res_srq_entry,
	.fill_res_mr_entry = arx_fill_res_mr_entry,
	.fill_stat_mr_entry = arx_fill_stat_mr_entry,

	.alloc_ucontext = arx_alloc_ucontext,
	.query_ucontext = arx_query_ucontext,
	.dealloc_ucontext = arx_dealloc_ucontext,
	.disassociate_ucontext = arx_disassociate_ucontext,
	.mmap = arx_mmap,
	.mmap_free = arx_mmap_free,
	.alloc_pd = arx_alloc_pd,
	.dealloc_pd = arx_dealloc_pd,
	.alloc_xrcd = arx_alloc_xrcd,
	.dealloc_xrcd = arx_dealloc_xrcd,
	.create_ah = arx_create_ah,
	.create_user_ah = arx_create_user_ah,
	.query_ah = arx_query_ah,
	.destroy_ah = arx_destroy_ah,
	.create_srq = arx_create_srq,
	.modify_srq = arx_modify_srq,
	.query_srq = arx_query_srq,
	.destroy_srq = arx_destroy_srq,
	.create_qp = arx_create_qp,
	.modify_qp = arx_modify_qp,
	.query_qp = arx_query_qp,
	.destroy_qp = arx_destroy_qp,
	.create_cq = arx_create_cq,
	.modify_cq = arx_modify_cq,
	.destroy_cq = arx_destroy_cq,
	.ARX_RESIZE_CQ = arx_resize_cq_op,
	.get_dma_mr = arx_get_dma_mr,
	.reg_user_mr = arx_reg_user_mr_op,
	.reg_user_mr_dmabuf = arx_reg_user_mr_dmabuf_op,
	.rereg_user_mr = arx_rereg_user_mr,
	.dereg_mr = arx_dereg_mr,
	.advise_mr = arx_advise_mr,
	.alloc_mw = arx_alloc_mw,
	.dealloc_mw = arx_dealloc_mw,
	.alloc_dm = arx_alloc_dm,
	.dealloc_dm = arx_dealloc_dm,
	.reg_dm_mr = arx_reg_dm_mr,
	.alloc_mr = arx_alloc_mr,
	.map_mr_sg = arx_map_mr_sg,
	.attach_mcast = arx_attach_mcast,
	.detach_mcast = arx_detach_mcast,

	INIT_RDMA_OBJ_SIZE(ib_ah, arx_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, arx_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_mw, arx_mw, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, arx_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, arx_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, arx_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, arx_ucontext, ib),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, arx_xrcd, ib),
};

/* A netdev without a MAC address (lo, a tunnel) gets one for this purpose. */
static void arx_dev_guid(struct arx_dev *dev)
{
	u8 mac[ETH_ALEN] = {};

	if (dev->netdev->addr_len == ETH_ALEN)
		ether_addr_copy(mac, dev->netdev->dev_addr);
	if (is_zero_ether_addr(mac))
		eth_random_addr(mac);
	addrconf_addr_eui48((u8 *)&dev->ib.node_guid, mac);
}

static void arx_dev_init(struct arx_dev *dev, struct net_device *netdev)
{
	struct ib_device *ib = &dev->ib;

	/* First, so that ib_dealloc_device() undoes the rest. */
	ib_set_device_ops(ib, &arx_dev_ops);
	dev->netdev = netdev;
	netdev_hold(netdev, &dev->netdev_tracker, GFP_KERNEL);
	arx_gids_init_dev(dev);

	ib->node_type = RDMA_NODE_IB_CA;
	ib->phys_port_cnt = 1;
	ib->num_comp_vectors = num_online_cpus();
	ib->driver_def = arx_defs;
	strscpy(ib->node_desc, "arx", IB_DEVICE_NODE_DESC_MAX);
	arx_dev_guid(dev);

	INIT_LIST_HEAD(&dev->link);
	arx_ids_init(&dev->keys, ARX_ID_BITS);
	arx_ids_init(&dev->ahs, ARX_ID_BITS);
	arx_ids_init(&dev->srqs, ARX_ID_BITS);
	arx_mcast_init(dev);
	arx_counters_init(dev);
	arx_attrs_init(dev);
}

/*
 * Get the netdev's sockets and state; fails if the netdev is being
 * unregistered.
 */
static int arx_dev_attach(struct arx_dev *dev)
{
	int err = -ENODEV;

	rtnl_lock();
	if (dev->netdev->reg_state == NETREG_REGISTERED)
		err = arx_net_attach(dev);
	if (!err)
		arx_port_follow(dev);
	rtnl_unlock();
	return err;
}

static struct arx_dev *arx_dev_create(struct net_device *netdev)
{
	struct arx_dev *dev;
	int err;

	if (!try_module_get(THIS_MODULE))
		return ERR_PTR(-ENODEV);
	dev = arx_alloc_dev(dev_net(netdev));
	if (!dev) {
		module_put(THIS_MODULE);
		return ERR_PTR(-ENOMEM);
	}
	arx_dev_init(dev, netdev);

	dev->stats = alloc_percpu(struct arx_stats);
	err = dev->stats ? arx_dev_attach(dev) : -ENOMEM;
	if (!err)
		err = ib_device_set_netdev(&dev->ib, netdev, ARX_PORT);
	if (err) {
		ib_dealloc_device(&dev->ib);
		return ERR_PTR(err);
	}
	return dev;
}

/*
 * The netdev may have been unregistered, or have moved to another network
 * namespace, after arx_dev_attach() but before arx_netdev_event() could find
 * the device. Then the device must be removed.
 */
static int arx_link_confirm(struct net_device *netdev, struct net *net)
{
	struct ib_device *ib;
	bool gone;

	ib = ib_device_get_by_netdev(netdev, ARX_DRIVER_ID);
	if (!ib)
		return -ENODEV;

	rtnl_lock();
	gone = netdev->reg_state != NETREG_REGISTERED ||
	       !net_eq(dev_net(netdev), net);
	rtnl_unlock();
	if (gone) {
		ib_unregister_device_and_put(ib);
		return -ENODEV;
	}
	arx_gids_registered(to_arx_dev(ib));
	ib_device_put(ib);
	return 0;
}

static int arx_link_create(const char *name, struct net_device *netdev)
{
	struct ib_device *ib;
	struct arx_dev *dev;
	struct net *net;
	int err;

	ib = ib_device_get_by_netdev(netdev, ARX_DRIVER_ID);
	if (ib) {
		netdev_err(netdev, "arx: there is a device already, %s\n",
			   dev_name(&ib->dev));
		ib_device_put(ib);
		return -EEXIST;
	}

	dev = arx_dev_create(netdev);
	if (IS_ERR(dev))
		return PTR_ERR(dev);

	net = dev->l3->net;
	err = ib_register_device(&dev->ib, name, NULL);
	if (err) {
		ib_dealloc_device(&dev->ib);
		return err;
	}
	/* @dev may be freed already. */
	return arx_link_confirm(netdev, net);
}

/*
 * True if IP packets go through a netdev as they are, or in Ethernet frames.
 * tun and WireGuard have the type ARPHRD_NONE.
 */
static bool arx_link_takes_ip(const struct net_device *netdev)
{
	switch (netdev->type) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
	case ARPHRD_NONE:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		return true;
	default:
		return false;
	}
}

/*
 * The core does not pass the extack of "rdma link add" on, so the reason of a
 * refusal goes to the log. Only CAP_NET_ADMIN of the machine can cause one.
 */
static int arx_link_check(const struct net_device *netdev)
{
	u32 mtu = READ_ONCE(netdev->mtu);

	if (!arx_link_takes_ip(netdev)) {
		netdev_err(netdev, "arx: neither Ethernet nor an IP tunnel\n");
		return -EOPNOTSUPP;
	}
	/* A netdev that shrinks later keeps its device, see arx_port_mtu(). */
	if (mtu < ARX_MIN_NETDEV_MTU) {
		netdev_err(netdev, "arx: MTU %u is too small, RoCE takes %d\n",
			   mtu, ARX_MIN_NETDEV_MTU);
		return -EINVAL;
	}
	return 0;
}

static int arx_newlink(const char *name, struct net_device *netdev)
{
	int err;

	err = arx_link_check(netdev);
	if (err)
		return err;

	mutex_lock(&arx_link_mutex);
	err = arx_link_create(name, netdev);
	mutex_unlock(&arx_link_mutex);
	return err;
}

static struct rdma_link_ops arx_link_ops = {
	.type = "arx",
	.newlink = arx_newlink,
};

/*
 * The netdev leaves its network namespace, for another or for good. In the
 * latter case its unregistration waits for the device, without RTNL.
 */
static void arx_netdev_leaves(struct arx_dev *dev)
{
	arx_net_detach(dev);
	if (dev->netdev->reg_state != NETREG_REGISTERED)
		ib_unregister_device_queued(&dev->ib);
}

/* The netdev has moved to another network namespace. */
static void arx_netdev_arrives(struct arx_dev *dev)
{
	int err;

	if (dev->l3)
		return;
	err = arx_net_attach(dev);
	if (err)
		ibdev_err_ratelimited(&dev->ib,
				      "no sockets in the new namespace: %d\n",
				      err);
}

static int arx_netdev_event(struct notifier_block *nb, unsigned long event,
			    void *info)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(info);
	struct ib_device *ib;
	struct arx_dev *dev;
	bool changed;

	/* Any netdev may be a VLAN that has joined a group for a device. */
	if (event == NETDEV_UNREGISTER)
		arx_mcast_leave(netdev);
	/* Or a macvlan whose addresses a device has. */
	if (event == NETDEV_UNREGISTER || event == NETDEV_REGISTER ||
	    event == NETDEV_CHANGEUPPER)
		arx_gids_follow(netdev, event == NETDEV_UNREGISTER);
	ib = ib_device_get_by_netdev(netdev, ARX_DRIVER_ID);
	if (!ib)
		return NOTIFY_DONE;
	dev = to_arx_dev(ib);

	switch (event) {
	case NETDEV_UNREGISTER:
		arx_netdev_leaves(dev);
		break;
	case NETDEV_REGISTER:
		arx_netdev_arrives(dev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		changed = arx_port_follow(dev);
		arx_port_event(ib, netdev, changed, dev->port_active);
		break;
	case NETDEV_CHANGEADDR:
	case NETDEV_BONDING_FAILOVER:
		arx_gids_netdev_event(dev, event);
		break;
	}

	ib_device_put(ib);
	return NOTIFY_DONE;
}

static struct notifier_block arx_netdev_notifier = {
	.notifier_call = arx_netdev_event,
};

static const struct arx_l3_rx arx_l3_rx = {
	.encap = arx_rx_encap,
	.gro_receive = arx_gro_receive,
	.gro_complete = arx_gro_complete,
};

static int __init arx_init(void)
{
	int err;

	arx_ids_init(&arx_qps, ARX_ID_BITS);
	arx_crc_init();
	err = arx_worker_init();
	if (err)
		goto destroy_ids;
	err = arx_paging_init();
	if (err)
		goto exit_worker;
	err = arx_l3_init(&arx_l3_rx);
	if (err)
		goto exit_paging;
	err = arx_net_init();
	if (err)
		goto exit_l3;
	arx_gso_init();
	err = register_netdevice_notifier(&arx_netdev_notifier);
	if (err)
		goto exit_gso;
	arx_gids_init();
	arx_bpf_init();
	rdma_link_register(&arx_link_ops);
	return 0;

exit_gso:
	arx_gso_exit();
	arx_net_exit();
exit_l3:
	arx_l3_exit();
exit_paging:
	arx_paging_exit();
exit_worker:
	arx_worker_exit();
destroy_ids:
	arx_ids_destroy(&arx_qps);
	return err;
}

/*
 * No device is left. One may still be returning from its last function, and a
 * task that freed a packet may have read arx_sock_write_space() from its socket
 * and been preempted before it called that function.
 */
static void __exit arx_exit(void)
{
	rdma_link_unregister(&arx_link_ops);
	arx_gids_exit();
	unregister_netdevice_notifier(&arx_netdev_notifier);
	ib_unregister_driver(ARX_DRIVER_ID);
	arx_gso_exit();
	arx_net_exit();
	arx_l3_exit();
	arx_paging_exit();
	arx_worker_exit();
	arx_ids_destroy(&arx_qps);
	synchronize_rcu_tasks();
	rcu_barrier();
}

module_init(arx_init);
module_exit(arx_exit);

MODULE_ALIAS_RDMA_LINK("arx");
