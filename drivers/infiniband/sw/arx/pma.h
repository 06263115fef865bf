/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The performance management agent. */
#ifndef ARX_PMA_H
#define ARX_PMA_H

#include <rdma/ib_verbs.h>

int arx_process_mad(struct ib_device *ib, int flags, u32 port,
		    const struct ib_wc *wc, const struct ib_grh *grh,
		    const struct ib_mad *in, struct ib_mad *out, size_t *size,
		    u16 *pkey_index);

#endif /* ARX_PMA_H */
