/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The list of devices, where their addresses are, and routes. */
#ifndef ARX_NET_H
#define ARX_NET_H

#include "av.h"
#include "l3.h"

extern struct list_head arx_net_devs;

int arx_net_init(void);
void arx_net_exit(void);
int arx_net_attach(struct arx_dev *dev);
void arx_net_detach(struct arx_dev *dev);
struct arx_l3_key arx_av_l3(const struct arx_dev *dev, const struct arx_av *av);
struct arx_dev *arx_net_find_dev(const struct arx_l3 *l3,
				 const struct in6_addr *addr);
struct arx_dev *arx_net_dev_on(const struct arx_l3 *l3,
			       const struct net_device *netdev);
struct dst_entry *arx_net_route(struct arx_dev *dev, struct arx_av *av);

#endif /* ARX_NET_H */
