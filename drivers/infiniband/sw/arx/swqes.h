/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Kernel copies of send WQEs, and the memory for them. */
#ifndef ARX_SWQES_H
#define ARX_SWQES_H

#include "qp.h"

/*
 * Bytes of copies that are allocated in atomic context, by the requester: a
 * size for which the allocators rarely fail. Larger arrays are left to a work,
 * which can wait for memory and use pages that are not contiguous.
 */
#define ARX_SWQES_ATOMIC	(PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)

/*
 * Maximum number of copies. The windows allow fewer requests with packets, but
 * any number of local operations may follow an unacknowledged request. One
 * acknowledgment may complete all of them, and they may all have to move, with
 * bottom halves off.
 */
#define ARX_SWQES_MAX		1024U

int arx_swqes_init(struct arx_qp *qp, u32 entries);
bool arx_swqes_add(struct arx_qp *qp);
bool arx_swqes_grow(struct arx_qp *qp);

#endif /* ARX_SWQES_H */
