/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Counters to which QPs are bound. */
#ifndef ARX_COUNTER_H
#define ARX_COUNTER_H

#include <rdma/ib_verbs.h>

struct arx_dev;

void arx_counters_init(struct arx_dev *dev);
void arx_counters_exit(struct arx_dev *dev);

/* verbs */
int arx_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ib);
int arx_counter_unbind_qp(struct ib_qp *ib);
int arx_counter_dealloc(struct rdma_counter *counter);
struct rdma_hw_stats *arx_counter_alloc_stats(struct rdma_counter *counter);
int arx_counter_update_stats(struct rdma_counter *counter);

#endif /* ARX_COUNTER_H */
