/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The kernel's end of a ring shared with the application (rdma/arx-abi.h), or
 * private to a kernel consumer: both look the same.
 *
 * The barrier pairs (the other end is in libarx, or in the same file for a
 * kernel consumer):
 *
 *	producer			consumer
 *	write entry			(A) load-acquire prod
 *	(A) store-release prod		read entry
 *	(B) load-acquire cons		(B) store-release cons
 *	reuse slot
 *
 * A: an entry seen through prod is whole. B: a slot seen free is no longer read.
 *
 * The kernel keeps its own index privately and only publishes it: what stands
 * in the header is never read back by the side that wrote it.
 */
#ifndef ARX_RING_H
#define ARX_RING_H

#include <rdma/ib_verbs.h>
#include <rdma/arx-abi.h>

struct arx_ring_mem;

/**
 * struct arx_ring - the kernel's handle of a ring
 * @hdr: shared words
 * @entries: first entry
 * @mask: number of entries - 1
 * @stride: bytes from entry to entry
 * @mem: memory of both
 */
struct arx_ring {
	struct arx_ring_hdr *hdr;
	void *entries;
	u32 mask;
	u32 stride;
	struct arx_ring_mem *mem;
};

int arx_ring_create(struct arx_ring *ring, u32 entries, u32 stride,
		    struct ib_ucontext *uctx, struct arx_ring_info *info);
void arx_ring_destroy(struct arx_ring *ring);

static inline u32 arx_ring_entries(const struct arx_ring *ring)
{
	return ring->mask + 1;
}

static inline void *arx_ring_entry(const struct arx_ring *ring, u32 index)
{
	return ring->entries + (size_t)(index & ring->mask) * ring->stride;
}

/* Consumer: how many entries wait behind @cons; more than fit is a lie. */
static inline u32 arx_ring_pending(const struct arx_ring *ring, u32 cons)
{
	return smp_load_acquire(&ring->hdr->prod) - cons;	/* A */
}

/* Consumer: entries before @cons may be reused. */
static inline void arx_ring_consume(struct arx_ring *ring, u32 cons)
{
	smp_store_release(&ring->hdr->cons, cons);		/* B */
}

/* Producer: is there no free slot at @prod? A lying cons reads as full. */
static inline bool arx_ring_full(const struct arx_ring *ring, u32 prod)
{
	return prod - smp_load_acquire(&ring->hdr->cons) > ring->mask;	/* B */
}

/* Producer: entries before @prod are whole. */
static inline void arx_ring_produce(struct arx_ring *ring, u32 prod)
{
	smp_store_release(&ring->hdr->prod, prod);		/* A */
}

/* verbs */
int arx_mmap(struct ib_ucontext *ib, struct vm_area_struct *vma);
void arx_mmap_free(struct rdma_user_mmap_entry *entry);

#endif /* ARX_RING_H */
