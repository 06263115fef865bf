/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The verbs of a QP, and one that concerns UD QPs: qp.c */
#ifndef ARX_VERBS_H
#define ARX_VERBS_H

#include <rdma/ib_verbs.h>

int arx_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *init,
		  struct ib_udata *udata);
int arx_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata);
int arx_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);
int arx_destroy_qp(struct ib_qp *ib, struct ib_udata *udata);
int arx_destroy_ah(struct ib_ah *ib, u32 flags);
int arx_post_send(struct ib_qp *ib, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad);
int arx_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad);

#endif /* ARX_VERBS_H */
