// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The memory of rings.
 *
 * A ring is plain memory. So a mapping of it holds the pages and nothing of the
 * driver: no structure, no code, no reference to the module. When the ring is
 * freed, because the application destroys its object or the device is removed,
 * the kernel drops its references, and its own mapping if it made one. The
 * memory that the process still maps then belongs to the process alone and is
 * freed when the process unmaps it. The driver need not find, zap or wait for
 * mappings, and the process cannot fault.
 *
 * The process then sees the ring unchanged, except that the flags say that it
 * is gone: the application rings the doorbell, which returns an error, and does
 * not poll for ever.
 */

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "account.h"
#include "arx.h"
#include "ring.h"

/**
 * struct arx_ring_mem - zeroed memory that a process may map
 * @entry: mapping offset for its process; unused for a kernel consumer
 * @addr: contiguous pages for a small ring if possible, else vmalloc() memory
 * @size: bytes, whole pages
 * @charge: account of the memory
 */
struct arx_ring_mem {
	struct rdma_user_mmap_entry entry;
	void *addr;
	size_t size;
	struct arx_charge charge;
};

static struct arx_ring_mem *to_arx_ring_mem(struct rdma_user_mmap_entry *entry)
{
	return container_of(entry, struct arx_ring_mem, entry);
}

/*
 * Contiguous pages need no area of vmalloc() and no flush of TLBs, so the rings
 * of most QPs use them. As with kvmalloc(), whose memory cannot be mapped by
 * processes, the allocation does not try hard.
 */
#define ARX_RING_CONTIGUOUS	(PAGE_SIZE << PAGE_ALLOC_COSTLY_ORDER)

static void *arx_ring_pages_alloc(size_t size)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	void *addr = NULL;

	if (size <= ARX_RING_CONTIGUOUS)
		addr = alloc_pages_exact(size, gfp | __GFP_NORETRY);
	return addr ?: __vmalloc(size, gfp);
}

static void arx_ring_pages_free(void *addr, size_t size)
{
	if (is_vmalloc_addr(addr))
		vfree(addr);
	else
		free_pages_exact(addr, size);
}

static void arx_ring_mem_free(struct arx_ring_mem *mem)
{
	arx_ring_pages_free(mem->addr, mem->size);
	arx_uncharge_pages(&mem->charge);
	kfree(mem);
}

static struct arx_ring_mem *arx_ring_mem_alloc(size_t size,
					       struct ib_ucontext *uctx)
{
	struct arx_ring_mem *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);

	if (!mem)
		return NULL;

	mem->size = PAGE_ALIGN(size);
	/*
	 * Charged first: an allocation beyond the limit must not reclaim
	 * memory.
	 */
	if (uctx && arx_charge_pages(&mem->charge, to_arx_ucontext(uctx)->user,
				     mem->size >> PAGE_SHIFT))
		goto free;
	mem->addr = arx_ring_pages_alloc(mem->size);
	if (!mem->addr)
		goto uncharge;
	return mem;

uncharge:
	arx_uncharge_pages(&mem->charge);
free:
	kfree(mem);
	return NULL;
}

/* Let the process of @uctx map @mem, and return the offset. */
static int arx_ring_mem_publish(struct arx_ring_mem *mem,
				struct ib_ucontext *uctx,
				struct arx_ring_info *info)
{
	int err;

	err = rdma_user_mmap_entry_insert(uctx, &mem->entry, mem->size);
	if (err)
		return err;

	info->offset = rdma_user_mmap_get_offset(&mem->entry);
	info->size = mem->size;
	return 0;
}

/**
 * arx_ring_mem_create - allocate memory that is no ring
 * @size: bytes
 * @uctx: context whose process may map it, and is charged
 * @info: receives the mapping
 *
 * Context: process.
 * Return: zeroed memory, or -ENOMEM, also beyond the user's limit.
 */
struct arx_ring_mem *arx_ring_mem_create(size_t size, struct ib_ucontext *uctx,
					 struct arx_ring_info *info)
{
	struct arx_ring_mem *mem = arx_ring_mem_alloc(size, uctx);
	int err;

	if (!mem)
		return ERR_PTR(-ENOMEM);
	err = arx_ring_mem_publish(mem, uctx, info);
	if (err) {
		arx_ring_mem_free(mem);
		return ERR_PTR(err);
	}
	return mem;
}

/**
 * arx_ring_mem_destroy - free the kernel's references to memory
 * @mem: from arx_ring_mem_create(); mappings stay, as those of rings do
 *
 * Context: may sleep.
 */
void arx_ring_mem_destroy(struct arx_ring_mem *mem)
{
	rdma_user_mmap_entry_remove(&mem->entry);
}

/**
 * arx_ring_create - create an empty ring
 * @ring: receives the ring
 * @entries: minimum number of entries, not 0; rounded up to a power of two
 * @stride: bytes from entry to entry
 * @uctx: context whose process may map it, or NULL for a kernel consumer
 * @info: receives the data for the process, with @uctx
 *
 * Context: may sleep.
 * Return: 0, -EINVAL for an impossible size, or -ENOMEM, also beyond the user's
 * limit.
 */
int arx_ring_create(struct arx_ring *ring, u32 entries, u32 stride,
		    struct ib_ucontext *uctx, struct arx_ring_info *info)
{
	size_t size;
	int err;

	if (!entries || entries > BIT(31))
		return -EINVAL;
	entries = roundup_pow_of_two(entries);
	size = size_add(ARX_RING_ENTRIES_OFFSET, size_mul(entries, stride));
	if (size > INT_MAX)
		return -EINVAL;

	ring->mem = arx_ring_mem_alloc(size, uctx);
	if (!ring->mem)
		return -ENOMEM;

	BUILD_BUG_ON(sizeof(struct arx_ring_hdr) > ARX_RING_ENTRIES_OFFSET);
	ring->hdr = ring->mem->addr;
	ring->entries = ring->mem->addr + ARX_RING_ENTRIES_OFFSET;
	ring->mask = entries - 1;
	ring->stride = stride;
	if (!uctx)
		return 0;

	err = arx_ring_mem_publish(ring->mem, uctx, info);
	if (err) {
		arx_ring_mem_free(ring->mem);
		ring->mem = NULL;
		return err;
	}
	info->entries = entries;
	info->stride = stride;
	return 0;
}

/**
 * arx_ring_destroy - free the kernel's references to a ring
 * @ring: from arx_ring_create(), or all zero
 *
 * The caller has made sure that the kernel does not use it any more. Mappings
 * stay, see the head of this file.
 *
 * Context: may sleep.
 */
void arx_ring_destroy(struct arx_ring *ring)
{
	struct arx_ring_mem *mem = ring->mem;

	if (!mem)
		return;

	WRITE_ONCE(ring->hdr->flags, ARX_RING_GONE);
	ring->mem = NULL;
	ring->hdr = NULL;
	if (mem->entry.ucontext)
		rdma_user_mmap_entry_remove(&mem->entry);
	else
		arx_ring_mem_free(mem);
}

/**
 * arx_ring_offer - keep a ring that is to replace another one
 * @next: receives it; a ring that was offered before and not used is freed
 * @ring: the new ring; empty afterwards
 * @lock: protects @next
 *
 * Context: may sleep.
 */
void arx_ring_offer(struct arx_ring *next,
		    struct arx_ring *ring, spinlock_t *lock)
{
	spin_lock_bh(lock);
	swap(*next, *ring);
	spin_unlock_bh(lock);
	arx_ring_destroy(ring);
}

/**
 * arx_ring_replace - continue in the ring that arx_ring_offer() kept
 * @ring: in use; freed if it is replaced
 * @next: the kept ring; freed if it does not replace @ring
 * @lock: protects both
 * @move: called with @lock held: carries the shared words over, or returns an
 *	error if the new ring is too small
 *
 * Context: may sleep.
 * Return: 0, -EINVAL if there is no new ring, or the error of @move.
 */
int arx_ring_replace(struct arx_ring *ring,
		     struct arx_ring *next, spinlock_t *lock,
		     int (*move)(struct arx_ring *from, struct arx_ring *to))
{
	struct arx_ring other = {};
	int err = -EINVAL;

	spin_lock_bh(lock);
	swap(*next, other);
	if (other.mem)
		err = move(ring, &other);
	if (!err)
		swap(*ring, other);
	spin_unlock_bh(lock);
	arx_ring_destroy(&other);
	return err;
}

/**
 * arx_mmap_free - verb: the entry cannot be mapped any more
 * @entry: of a ring or device memory
 */
void arx_mmap_free(struct rdma_user_mmap_entry *entry)
{
	arx_ring_mem_free(to_arx_ring_mem(entry));
}

static struct page *arx_ring_page(const struct arx_ring_mem *mem, size_t at)
{
	void *p = mem->addr + at;

	return is_vmalloc_addr(p) ? vmalloc_to_page(p) : virt_to_page(p);
}

/**
 * arx_ring_mem_page - a page of memory
 * @mem: from arx_ring_mem_create()
 * @n: number of the page
 *
 * Return: its address in the direct map.
 */
void *arx_ring_mem_page(const struct arx_ring_mem *mem, size_t n)
{
	return page_address(arx_ring_page(mem, n * PAGE_SIZE));
}

static int arx_mmap_pages(struct vm_area_struct *vma,
			  const struct arx_ring_mem *mem)
{
	size_t done;
	int err;

	for (done = 0; done < mem->size; done += PAGE_SIZE) {
		err = vm_insert_page(vma, vma->vm_start + done,
				     arx_ring_page(mem, done));
		if (err)
			return err;
	}
	return 0;
}

/**
 * arx_mmap - verb: map a ring or device memory, whole and shared
 * @ib: context of the ring or memory
 * @vma: with the offset and the size in struct arx_ring_info
 *
 * All pages are mapped at once, because the driver may be gone when they are
 * touched. A child does not inherit the mapping, because an index has one
 * writer.
 *
 * Return: 0, -EINVAL for anything but those of this context, -ENOMEM.
 */
int arx_mmap(struct ib_ucontext *ib, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	int err;

	/* Checks VM_SHARED, the offset and the size. */
	entry = rdma_user_mmap_entry_get(ib, vma);
	if (!entry)
		return -EINVAL;

	vm_flags_set(vma, VM_MIXEDMAP | VM_DONTCOPY | VM_DONTEXPAND);
	err = arx_mmap_pages(vma, to_arx_ring_mem(entry));
	rdma_user_mmap_entry_put(entry);
	return err;
}
