/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The kernel's end of a ring that is shared with the application
 * (rdma/arx-abi.h) or private to a kernel consumer: both have the same layout.
 * Comments A to D name pairs of barriers in the table of Documentation/abi.rst;
 * the other end is in libarx, or here for a kernel consumer.
 *
 * The kernel keeps its own index in private memory and only publishes it: no
 * side reads back from the header what it wrote.
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
void arx_ring_offer(struct arx_ring *next,
		    struct arx_ring *ring, spinlock_t *lock);
int arx_ring_replace(struct arx_ring *ring,
		     struct arx_ring *next, spinlock_t *lock,
		     int (*move)(struct arx_ring *from, struct arx_ring *to));

struct arx_ring_mem *arx_ring_mem_create(size_t size, struct ib_ucontext *uctx,
					 struct arx_ring_info *info);
void arx_ring_mem_destroy(struct arx_ring_mem *mem);
void *arx_ring_mem_page(const struct arx_ring_mem *mem, size_t n);

static inline u32 arx_ring_entries(const struct arx_ring *ring)
{
	return ring->mask + 1;
}

static inline void *arx_ring_entry(const struct arx_ring *ring, u32 index)
{
	return ring->entries + (size_t)(index & ring->mask) * ring->stride;
}

/*
 * Consumer: number of entries after @cons; larger than the ring if prod is
 * wrong.
 */
static inline u32 arx_ring_pending(const struct arx_ring *ring, u32 cons)
{
	return smp_load_acquire(&ring->hdr->prod) - cons;	/* A */
}

/* Consumer: entries before @cons may be reused. */
static inline void arx_ring_consume(struct arx_ring *ring, u32 cons)
{
	smp_store_release(&ring->hdr->cons, cons);		/* C */
}

/*
 * Producer: true if there is no free slot at @prod. A wrong cons reads as full.
 */
static inline bool arx_ring_full(const struct arx_ring *ring, u32 prod)
{
	return prod - smp_load_acquire(&ring->hdr->cons) > ring->mask;	/* D */
}

/* Producer: publish the entries before @prod. */
static inline void arx_ring_produce(struct arx_ring *ring, u32 prod)
{
	smp_store_release(&ring->hdr->prod, prod);		/* B */
}

/* verbs */
int arx_mmap(struct ib_ucontext *ib, struct vm_area_struct *vma);
void arx_mmap_free(struct rdma_user_mmap_entry *entry);

#endif /* ARX_RING_H */
