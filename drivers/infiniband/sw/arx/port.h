/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The port of a device. */
#ifndef ARX_PORT_H
#define ARX_PORT_H

#include <rdma/ib_verbs.h>

struct arx_dev;

u32 arx_port_mtu(const struct arx_dev *dev);
bool arx_port_follow(struct arx_dev *dev);

/* verbs */
int arx_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr);
int arx_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey);
int arx_get_port_immutable(struct ib_device *ib, u32 port,
			   struct ib_port_immutable *immutable);
enum rdma_link_layer arx_get_link_layer(struct ib_device *ib, u32 port);

#endif /* ARX_PORT_H */
