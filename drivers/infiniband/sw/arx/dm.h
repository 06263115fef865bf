/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Device memory. */
#ifndef ARX_DM_H
#define ARX_DM_H

#include <linux/sizes.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/* Bytes of one allocation. The limits of account.c bound their sum. */
#define ARX_MAX_DM	SZ_16M

extern const struct uapi_definition arx_dm_defs[];

/* verbs */
struct ib_dm *arx_alloc_dm(struct ib_device *ib, struct ib_ucontext *uctx,
			   struct ib_dm_alloc_attr *attr,
			   struct uverbs_attr_bundle *attrs);
int arx_dealloc_dm(struct ib_dm *ib, struct uverbs_attr_bundle *attrs);
struct ib_mr *arx_reg_dm_mr(struct ib_pd *pd, struct ib_dm *ib,
			    struct ib_dm_mr_attr *attr,
			    struct uverbs_attr_bundle *attrs);

#endif /* ARX_DM_H */
