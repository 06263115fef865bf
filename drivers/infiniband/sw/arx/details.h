/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Details of objects in "rdma resource show -dd". */
#ifndef ARX_DETAILS_H
#define ARX_DETAILS_H

#include <rdma/ib_verbs.h>

/* verbs */
int arx_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ib);
int arx_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ib);
int arx_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ib);
int arx_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ib);
int arx_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ib);

#endif /* ARX_DETAILS_H */
