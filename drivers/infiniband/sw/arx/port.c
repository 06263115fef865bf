// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The port of a device: its state, speed and path MTU are its netdev's. */

#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "arx.h"
#include "port.h"
#include "wire.h"

#define ARX_GID_TABLE_LEN	1024

/**
 * arx_port_mtu - largest path MTU of a device
 * @dev: device
 *
 * Return: bytes of payload in a packet.
 */
u32 arx_port_mtu(const struct arx_dev *dev)
{
	enum ib_mtu mtu = iboe_get_mtu(READ_ONCE(dev->netdev->mtu));

	return ib_mtu_enum_to_int(max(mtu, IB_MTU_256));
}

/*
 * The netdev's speed in Mbit/s, which may be read under RTNL only. A query
 * reads the speed if the stored value is a second old, or if the port has
 * changed since, and if RTNL is free. So programs that query often neither wait
 * for RTNL nor keep it busy. Netdev events do not read the speed: some run with
 * the netdev's own lock held, which reading takes.
 *
 * ib_get_eth_speed() takes RTNL each time, logs a warning for each netdev with
 * unknown speed, and rounds 2.5 Gbit/s up to 10.
 */
static u32 arx_port_speed(struct arx_dev *dev)
{
	struct ethtool_link_ksettings link = {};

	if (time_before(jiffies, READ_ONCE(dev->port_asked) + HZ) ||
	    !rtnl_trylock())
		return READ_ONCE(dev->port_mbps);

	if (dev->netdev->reg_state != NETREG_REGISTERED ||
	    __ethtool_get_link_ksettings(dev->netdev, &link) ||
	    link.base.speed == (u32)SPEED_UNKNOWN)
		link.base.speed = 0;
	WRITE_ONCE(dev->port_mbps, link.base.speed);
	WRITE_ONCE(dev->port_asked, jiffies);
	rtnl_unlock();
	return link.base.speed;
}

/*
 * The rate that "rdma link" and applications see: the highest one that the
 * netdev's speed reaches. The lowest rate, 2.5 Gbit/s, also stands for less.
 */
static void arx_port_rate(struct arx_dev *dev, struct ib_port_attr *attr)
{
	static const struct {
		u32 mbps;
		u16 speed;
		u8 width;
	} rates[] = {
		{ 1600000, IB_SPEED_XDR,   IB_WIDTH_8X },
		{  800000, IB_SPEED_XDR,   IB_WIDTH_4X },
		{  400000, IB_SPEED_NDR,   IB_WIDTH_4X },
		{  200000, IB_SPEED_HDR,   IB_WIDTH_4X },
		{  100000, IB_SPEED_EDR,   IB_WIDTH_4X },
		{   56000, IB_SPEED_FDR,   IB_WIDTH_4X },
		{   50000, IB_SPEED_HDR,   IB_WIDTH_1X },
		{   40000, IB_SPEED_FDR10, IB_WIDTH_4X },
		{   25000, IB_SPEED_EDR,   IB_WIDTH_1X },
		{   20000, IB_SPEED_DDR,   IB_WIDTH_4X },
		{   10000, IB_SPEED_FDR10, IB_WIDTH_1X },
		{    5000, IB_SPEED_DDR,   IB_WIDTH_1X },
		{       0, IB_SPEED_SDR,   IB_WIDTH_1X },
	};
	u32 mbps = arx_port_speed(dev);
	int i = 0;

	while (mbps < rates[i].mbps)
		i++;
	attr->active_speed = rates[i].speed;
	attr->active_width = rates[i].width;
}

static u8 arx_port_phys_state(const struct arx_dev *dev)
{
	if (READ_ONCE(dev->port_active))
		return IB_PORT_PHYS_STATE_LINK_UP;
	return netif_running(dev->netdev) ? IB_PORT_PHYS_STATE_POLLING :
					    IB_PORT_PHYS_STATE_DISABLED;
}

/**
 * arx_query_port - verb: attributes of the port
 * @ib: device
 * @port: its port
 * @attr: receives the attributes; the core has zeroed it
 *
 * Context: may sleep.
 * Return: 0.
 */
int arx_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct arx_dev *dev = to_arx_dev(ib);
	u32 mtu = arx_port_mtu(dev);

	attr->state = READ_ONCE(dev->port_active) ? IB_PORT_ACTIVE :
						    IB_PORT_DOWN;
	attr->phys_state = arx_port_phys_state(dev);
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(mtu);
	attr->phys_mtu = mtu;
	attr->gid_tbl_len = ARX_GID_TABLE_LEN;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = ARX_MAX_MSG;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	arx_port_rate(dev, attr);
	return 0;
}

/**
 * arx_query_pkey - verb: an entry of the P_Key table
 * @ib: device
 * @port: its port
 * @index: in the table, which has one entry
 * @pkey: receives the P_Key
 *
 * Return: 0 or -EINVAL.
 */
int arx_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = ARX_PKEY;
	return 0;
}

/**
 * arx_get_port_immutable - verb: attributes that never change
 * @ib: device
 * @port: its port
 * @immutable: receives the attributes
 *
 * Return: 0.
 */
int arx_get_port_immutable(struct ib_device *ib, u32 port,
			   struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = ARX_GID_TABLE_LEN;
	immutable->pkey_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

/**
 * arx_get_link_layer - verb: the link layer of the port
 * @ib: device
 * @port: its port
 *
 * Return: Ethernet.
 */
enum rdma_link_layer arx_get_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

/**
 * arx_port_follow - update the port from the netdev
 * @dev: device
 *
 * Context: RTNL is held.
 * Return: true if the port has come up or gone down.
 */
bool arx_port_follow(struct arx_dev *dev)
{
	bool active = netif_running(dev->netdev) &&
		      netif_carrier_ok(dev->netdev);
	bool changed = active != dev->port_active;

	ASSERT_RTNL();
	if (changed && !active)
		arx_count(dev, LINK_DOWNED);
	WRITE_ONCE(dev->port_active, active);
	WRITE_ONCE(dev->port_asked, jiffies - HZ);	/* read it again */
	return changed;
}
