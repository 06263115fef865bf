/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory windows. */
#ifndef ARX_MW_H
#define ARX_MW_H

#include <rdma/ib_verbs.h>

#include <rdma/arx-abi.h>

#include "key.h"

/**
 * struct arx_mw - memory window
 * @ib: the core's part
 * @key: rkey; while it is bound, of a range of a region
 */
struct arx_mw {
	struct ib_mw ib;
	struct arx_key key;
};

int arx_mw_bind(const struct arx_key_use *by, const struct arx_send_wqe *wqe);

/* verbs */
int arx_alloc_mw(struct ib_mw *ib, struct ib_udata *udata);
int arx_dealloc_mw(struct ib_mw *ib);

#endif /* ARX_MW_H */
