/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* User contexts, and the memory that they map. */
#ifndef ARX_UCTX_H
#define ARX_UCTX_H

#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "worker.h"

struct arx_user;

/**
 * struct arx_ucontext - a process's use of a device
 * @ib: the core's part; its mmap entries are all that belongs to a context
 * @user: who opened the device, and pays for what is made of it
 * @worker: copies for its QPs
 */
struct arx_ucontext {
	struct ib_ucontext ib;
	struct arx_user *user;
	struct arx_worker *worker;
};

static inline struct arx_ucontext *to_arx_ucontext(struct ib_ucontext *ib)
{
	return container_of(ib, struct arx_ucontext, ib);
}

/* The context a command came through; NULL for a kernel consumer. */
static inline struct ib_ucontext *arx_udata_to_ucontext(struct ib_udata *udata)
{
	struct arx_ucontext *uctx;

	if (!udata)
		return NULL;
	uctx = rdma_udata_to_drv_context(udata, struct arx_ucontext, ib);
	return uctx ? &uctx->ib : NULL;
}

/* verbs */
int arx_alloc_ucontext(struct ib_ucontext *ib, struct ib_udata *udata);
void arx_dealloc_ucontext(struct ib_ucontext *ib);
void arx_disassociate_ucontext(struct ib_ucontext *ib);
int arx_mmap(struct ib_ucontext *ib, struct vm_area_struct *vma);
void arx_mmap_free(struct rdma_user_mmap_entry *entry);

#endif /* ARX_UCTX_H */
