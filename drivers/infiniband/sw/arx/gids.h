/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The GIDs of devices, and where their netdevs are. */
#ifndef ARX_GIDS_H
#define ARX_GIDS_H

#include <rdma/ib_verbs.h>

struct arx_dev;
struct arx_l3;
struct arx_l3_key;

void arx_gids_init_dev(struct arx_dev *dev);
void arx_gids_exit_dev(struct arx_dev *dev);
void arx_gids_registered(struct arx_dev *dev);
void arx_gids_netdev_event(struct arx_dev *dev, unsigned long event);
int arx_add_gid(const struct ib_gid_attr *attr, void **context);
int arx_del_gid(const struct ib_gid_attr *attr, void **context);
void arx_gids_follow(const struct net_device *netdev, bool leaves);
bool arx_gids_has(const struct arx_dev *dev, const struct arx_l3_key *l3,
		  const struct in6_addr *addr);
bool arx_gids_any_in(const struct arx_dev *dev, const struct arx_l3 *l3);
void arx_gids_init(void);
void arx_gids_exit(void);

#endif /* ARX_GIDS_H */
