/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Multicast groups and the UD QPs attached to them. */
#ifndef ARX_MCAST_H
#define ARX_MCAST_H

#include "run.h"

struct arx_l3_key;

void arx_mcast_init(struct arx_dev *dev);
void arx_mcast_exit(struct arx_dev *dev);
void arx_mcast_leave(const struct net_device *netdev);
void arx_mcast_deliver(struct arx_dev *dev, const struct arx_l3_key *l3,
		       const struct in6_addr *from,
		       const struct in6_addr *group, struct sk_buff *skb,
		       const struct arx_run *run);

/* verbs */
int arx_attach_mcast(struct ib_qp *ib, union ib_gid *gid, u16 lid);
int arx_detach_mcast(struct ib_qp *ib, union ib_gid *gid, u16 lid);

#endif /* ARX_MCAST_H */
