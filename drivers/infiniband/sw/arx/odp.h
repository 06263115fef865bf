/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * On-demand paging: memory of a process whose pages are not pinned. odp.c knows
 * pages and addresses, but neither keys nor QPs.
 */
#ifndef ARX_ODP_H
#define ARX_ODP_H

#include <linux/jump_label.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct mem_cgroup;
struct mm_struct;

/**
 * struct arx_odp - memory of a process, paged on demand
 * @ref: one of the region, and one of each job that waits for pages
 * @mm: the process's memory, by mmgrab()
 * @memcg: pays for the page tables; NULL: nobody
 * @user: the process's; its jobs are counted
 * @base: address of the first page; offsets count from here
 * @leaves: struct arx_leaf by address; changed under @lock, read in a section
 * @lock: serialises changes of @leaves
 * @count: number of @leaves
 * @scan_at: value of @count at which unused leaves are removed
 * @ended: the region is gone: no leaf is added
 * @faults: pages found because a request needed them
 * @prefetched: pages found because the application advised so
 * @invalidations: pages that the process's memory management took back
 */
struct arx_odp {
	refcount_t ref;
	struct mm_struct *mm;
	struct mem_cgroup *memcg;
	struct arx_user *user;
	u64 base;
	struct xarray leaves;
	struct mutex lock;	/* serialises changes of leaves */
	u32 count;
	u32 scan_at;
	bool ended;
	atomic64_t faults;
	atomic64_t prefetched;
	atomic64_t invalidations;
};

/**
 * struct arx_pages - pages that an access lacks
 * @odp: their memory
 * @addr: address in the process of the first byte that is not there
 * @len: bytes from @addr on that the message needs, now or later
 * @write: the bytes will be written
 *
 * Locals are __uninitialized for the reason that struct arx_iter gives: most
 * messages lack no pages.
 */
struct arx_pages {
	struct arx_odp *odp;
	u64 addr;
	u64 len;
	bool write;
};

/* How arx_odp_find() gets pages. */
enum arx_odp_how {
	ARX_ODP_FAULT,		/* for a request: bring them in */
	ARX_ODP_PREFETCH,	/* on advice: bring them in */
	ARX_ODP_PREFETCH_MAPPED, /* on advice: those that are mapped */
};

DECLARE_STATIC_KEY_FALSE(arx_odp_used);

/**
 * arx_odp_in_use - true if this machine has had a region paged on demand
 *
 * A patched jump, so that machines without such regions pay nothing.
 *
 * Context: any.
 */
static inline bool arx_odp_in_use(void)
{
	return static_branch_unlikely(&arx_odp_used);
}

struct arx_odp *arx_odp_make(u64 start, u64 length);
void arx_odp_end(struct arx_odp *odp);
void arx_odp_put(struct arx_odp *odp);

/**
 * arx_odp_hold - get a reference
 * @odp: memory
 *
 * Context: any.
 */
static inline void arx_odp_hold(struct arx_odp *odp)
{
	refcount_inc(&odp->ref);
}

bool arx_odp_absent(struct arx_odp *odp, u64 offset, u32 len, bool write,
		    struct arx_pages *want);
void *arx_odp_at(struct arx_odp *odp, u64 offset, u32 *len);
int arx_odp_find(const struct arx_pages *want, enum arx_odp_how how);

#endif /* ARX_ODP_H */
