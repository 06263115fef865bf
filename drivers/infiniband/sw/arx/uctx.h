/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The verbs of a user context. */
#ifndef ARX_UCTX_H
#define ARX_UCTX_H

#include <rdma/ib_verbs.h>

int arx_alloc_ucontext(struct ib_ucontext *ib, struct ib_udata *udata);
int arx_query_ucontext(struct ib_ucontext *ib,
		       struct uverbs_attr_bundle *attrs);
void arx_dealloc_ucontext(struct ib_ucontext *ib);
void arx_disassociate_ucontext(struct ib_ucontext *ib);

#endif /* ARX_UCTX_H */
