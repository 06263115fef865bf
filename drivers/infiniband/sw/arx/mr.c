// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions: registration, the memory behind a key, atomics. This file
 * knows no QPs.
 *
 * The device has no DMA: a "DMA address" of the core is a kernel address, and
 * every page is in the direct map. A region is an array of blocks of one size,
 * as large as its memory allows, and an access is arithmetic on the array. A
 * region that is paged on demand has a page table instead (odp.c).
 */

#include <linux/ioport.h>
#include <linux/libnvdimm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <rdma/iter.h>

#include "compat.h"
#include "dmabuf.h"
#include "mr.h"

/* Access that a consumer may request. Hints are accepted and ignored. */
#define ARX_MR_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
			 IB_ACCESS_MW_BIND | IB_ACCESS_HUGETLB |	   \
			 IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_OPTIONAL)

/* An application may also have its region begin at address 0. */
#define ARX_MR_USER_ACCESS	(ARX_MR_ACCESS | IB_ZERO_BASED)

/* Its pages need not be pinned. */
#define ARX_MR_ODP_ACCESS \
	(IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING) ? \
	 IB_ACCESS_ON_DEMAND : 0)

/* The process's own memory may be persistent. */
#define ARX_MR_OWN_ACCESS	(ARX_MR_USER_ACCESS | \
				 IB_ACCESS_FLUSH_PERSISTENT)

/* Larger blocks are not used even if memory allows. */
#define ARX_MR_BLOCK_SIZES	GENMASK(30, PAGE_SHIFT)

/* Blocks that registration notes before other programs get the CPU. */
#define ARX_MR_BLOCKS_AT_ONCE	65536U

#define ARX_MR_REMOTE	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC)

/*
 * The address of a DMA MR is a kernel address. A peer may send any address to a
 * region with remote access, so it must be checked to be memory.
 */
static void *arx_mr_at_dma(const struct arx_mr *mr, u64 addr, u32 *len)
{
	void *at = ib_virt_dma_to_ptr(addr);

	if (!(mr->key.access & ARX_MR_REMOTE))
		return at;
	*len = min_t(u32, *len, PAGE_SIZE - offset_in_page(at));
	return virt_addr_valid(at) ? at : NULL;
}

/* As arx_mr_at_blocks(), for the byte at @offset of a region of pieces. */
static void *arx_mr_at_piece(const struct arx_mr *mr, u64 offset, u32 *len)
{
	u32 low = 0, high = mr->npieces;
	u64 have;

	/* the first piece that ends after @offset */
	while (low < high) {
		u32 mid = (low + high) / 2;

		if (mr->pieces[mid].end <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == mr->npieces)
		return NULL;
	have = mr->pieces[low].end - offset;
	*len = min_t(u64, *len, have);
	return mr->pieces[low].to - have;
}

/**
 * arx_mr_at_blocks - arx_mr_at() of bytes that are not in one block
 * @key: as for arx_mr_at()
 * @iova: as for arx_mr_at()
 * @len: as for arx_mr_at()
 *
 * Context: as arx_mr_at().
 * Return: as arx_mr_at().
 */
void *arx_mr_at_blocks(const struct arx_key *key, u64 iova, u32 *len)
{
	const struct arx_mr *mr = key->mr;
	u64 offset = iova - key->iova + key->offset;
	size_t block_size = BIT(mr->block_shift);
	size_t n, have;

	if (key->kind == ARX_KEY_DMA)
		return arx_mr_at_dma(mr, iova, len);
	if (mr->odp)
		return arx_odp_at(mr->odp, offset, len);
	if (mr->npieces)
		return arx_mr_at_piece(mr, offset, len);

	n = offset >> mr->block_shift;
	if (n >= mr->nblocks)
		return NULL;

	/* Contiguous blocks count as one. */
	offset &= block_size - 1;
	have = block_size - offset;
	while (have < *len && n + 1 < mr->nblocks &&
	       mr->blocks[n + 1] == mr->blocks[n] + block_size) {
		have += block_size;
		n++;
	}
	*len = min_t(size_t, *len, have);
	/* The first of the contiguous blocks, counted back from the last. */
	return mr->blocks[n] + block_size - have;
}

/**
 * arx_mr_lacks - arx_mr_absent(), if a region may lack pages
 * @key: as for arx_mr_absent()
 * @iova: as for arx_mr_absent()
 * @len: as for arx_mr_absent()
 * @write: as for arx_mr_absent()
 * @want: as for arx_mr_absent()
 *
 * Context: as arx_mr_absent().
 * Return: as arx_mr_absent().
 */
bool arx_mr_lacks(const struct arx_key *key, u64 iova, u32 len, bool write,
		  struct arx_pages *want)
{
	struct arx_odp *odp = key->mr->odp;

	return odp && arx_odp_absent(odp, iova - key->iova + key->offset, len,
				     write, want);
}

/**
 * arx_mr_fast_reg - register the memory that was mapped to a region
 * @mr: from arx_alloc_mr(), after arx_map_mr_sg()
 * @pd: protection domain of the QP
 * @key: valid from now on; its upper bits are the region's own
 * @access: enum ib_access_flags
 *
 * Context: RCU read side; the consumer does not use @mr meanwhile.
 * Return: 0, or -EINVAL if the region has another PD, is in use or has no such
 * key.
 */
int arx_mr_fast_reg(struct arx_mr *mr, struct ib_pd *pd, u32 key, int access)
{
	if (mr->key.kind != ARX_KEY_FAST || mr->key.pd != pd ||
	    key >> 8 != mr->key.id.nr ||
	    READ_ONCE(mr->key.state) != ARX_KEY_FREE || access & ~ARX_MR_ACCESS)
		return -EINVAL;

	/*
	 * The consumer may have changed the address of the first byte after
	 * mapping.
	 */
	mr->key.iova = mr->ib.iova;
	mr->key.length = mr->ib.length;
	mr->key.access = access | ARX_KEY_LOCAL;
	arx_key_grant(&mr->key, key);
	return 0;
}

/**
 * arx_mr_atomic - compare and swap, or fetch and add, of eight bytes
 * @at: address
 * @compare: true for compare and swap
 * @compare_add: value to compare with, or to add
 * @swap: value to store if the comparison holds
 * @orig: receives the value before
 *
 * The CPU's atomic instructions work on the word itself, so the operation is
 * atomic against this machine's CPUs, too.
 *
 * Context: in a section, the key of @at held.
 * Return: 0, or -EINVAL if @at is not aligned.
 */
int arx_mr_atomic(void *at, bool compare, u64 compare_add, u64 swap, u64 *orig)
{
	if (!IS_ALIGNED((uintptr_t)at, sizeof(u64)))
		return -EINVAL;

	if (compare)
		*orig = cmpxchg64((u64 *)at, compare_add, swap);
	else
		*orig = atomic64_fetch_add(compare_add, (atomic64_t *)at);
	return 0;
}

/**
 * arx_mr_write_word - store eight bytes for a peer
 * @key: from arx_key_get()
 * @iova: the first byte, in bounds
 * @value: as it is to be in memory
 *
 * The bytes become visible together, after all that was written before.
 *
 * Context: in the section of arx_key_get().
 * Return: 0, or -EINVAL if the memory is not an aligned word.
 */
int arx_mr_write_word(const struct arx_key *key, u64 iova, u64 value)
{
	u32 len = sizeof(value);
	u64 *at = arx_mr_at(key, iova, &len);

	/* An MR's iova and its memory may differ in their low bits. */
	if (!at || len != sizeof(value) ||
	    !IS_ALIGNED((uintptr_t)at, sizeof(value)))
		return -EINVAL;
	/* pairs with the barrier of a program that polls the word */
	smp_store_release(at, value);
	arx_mr_persist(key, iova, sizeof(value));
	return 0;
}

/**
 * arx_mr_write_back - arx_mr_persist() of persistent memory
 * @key: as for arx_mr_persist()
 * @iova: as for arx_mr_persist()
 * @len: as for arx_mr_persist()
 *
 * The barrier is for this CPU, which wrote the lines back. A later FLUSH may be
 * served by another CPU, so the barrier cannot wait until then.
 *
 * Context: as arx_mr_persist().
 */
void __cold arx_mr_write_back(const struct arx_key *key, u64 iova, u32 len)
{
	while (len) {
		u32 n = len;
		void *at = arx_mr_at(key, iova, &n);

		arch_wb_cache_pmem(at, n);
		iova += n;
		len -= n;
	}
	pmem_wmb();
}

/*
 * Persistent memory that the firmware describes by ACPI or UEFI; and that of
 * older firmware, or of the kernel's option "memmap".
 */
static const unsigned long arx_mr_pmem[] = {
	IORES_DESC_PERSISTENT_MEMORY,
	IORES_DESC_PERSISTENT_MEMORY_LEGACY,
};

/**
 * arx_mr_has_pmem - whether this machine has memory that can be made persistent
 *
 * Return: true if it has.
 */
bool arx_mr_has_pmem(void)
{
	unsigned int i;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_PMEM_API))
		return false;
	for (i = 0; i < ARRAY_SIZE(arx_mr_pmem); i++)
		if (region_intersects(0, SIZE_MAX, IORESOURCE_MEM,
				      arx_mr_pmem[i]) != REGION_DISJOINT)
			return true;
	return false;
}

/* True if all bytes of a range are in persistent memory of one kind. */
static bool arx_mr_is_pmem_at(phys_addr_t at, size_t len)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(arx_mr_pmem); i++)
		if (region_intersects(at, len, IORESOURCE_MEM,
				      arx_mr_pmem[i]) == REGION_INTERSECTS)
			return true;
	return false;
}

/* True if all of the memory is persistent. */
static bool arx_mr_is_pmem(struct ib_umem *umem)
{
	struct scatterlist *sg;
	int i;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_PMEM_API))
		return false;
	for_each_sgtable_sg(&umem->sgt_append.sgt, sg, i) {
		if (!arx_mr_is_pmem_at(sg_phys(sg), sg->length))
			return false;
		cond_resched();
	}
	return true;
}

static struct arx_mr *arx_mr_alloc(struct ib_pd *pd, enum arx_key_kind kind,
				   u32 max_blocks)
{
	struct arx_mr *mr;

	if (arx_object_begin(pd->device, ARX_KIND_MR))
		return ERR_PTR(-ENOMEM);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		goto end;
	if (max_blocks) {
		mr->blocks = kvmalloc_array(max_blocks, sizeof(*mr->blocks),
					    GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (!mr->blocks)
			goto free;
	}
	mr->max_blocks = max_blocks;
	arx_key_init(&mr->key, kind, pd);
	mr->key.mr = mr;
	mr->ib.device = pd->device;
	return mr;

free:
	kfree(mr);
end:
	arx_object_end(pd->device, ARX_KIND_MR);
	return ERR_PTR(-ENOMEM);
}

static void arx_mr_free(struct arx_mr *mr)
{
	arx_object_end(mr->ib.device, ARX_KIND_MR);
	ib_umem_release(mr->umem);
	if (mr->dmabuf)
		arx_dmabuf_put(mr->dmabuf);
	if (mr->odp)
		arx_odp_end(mr->odp);
	kvfree(mr->pieces);
	kvfree(mr->blocks);
	kfree(mr);
}

/* The region can be found from here on. */
static struct ib_mr *arx_mr_publish(struct arx_mr *mr)
{
	int err = arx_key_add(to_arx_dev(mr->ib.device), &mr->key);

	if (err) {
		arx_mr_free(mr);
		return ERR_PTR(err);
	}
	mr->ib.lkey = mr->key.value;
	mr->ib.rkey = mr->key.value;
	if (mr->key.kind != ARX_KEY_FAST)
		arx_key_grant(&mr->key, mr->key.value);
	return &mr->ib;
}

/**
 * arx_get_dma_mr - verb of kernel consumers: all memory
 * @pd: of a kernel consumer
 * @access: enum ib_access_flags
 *
 * Return: the region, or -EPERM for an application, -ENOMEM.
 */
struct ib_mr *arx_get_dma_mr(struct ib_pd *pd, int access)
{
	struct arx_mr *mr;

	if (pd->uobject)
		return ERR_PTR(-EPERM);

	mr = arx_mr_alloc(pd, ARX_KEY_DMA, 0);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->key.access = access | ARX_KEY_LOCAL;
	mr->key.length = U64_MAX;
	return arx_mr_publish(mr);
}

/*
 * Blocks follow the memory's addresses in the process, not @iova: any block
 * size then fits any iova.
 */
static struct arx_mr *arx_mr_of_umem(struct ib_pd *pd, struct ib_umem *umem)
{
	unsigned long size;
	struct ib_block_iter block;
	struct arx_mr *mr;
	size_t n;

	size = ib_umem_find_best_pgsz(umem, ARX_MR_BLOCK_SIZES, umem->address);
	if (!size)
		return ERR_PTR(-EINVAL);
	n = ib_umem_num_dma_blocks(umem, size);
	if (n > U32_MAX)
		return ERR_PTR(-ENOMEM);

	mr = arx_mr_alloc(pd, ARX_KEY_USER, n);
	if (IS_ERR(mr))
		return mr;

	mr->block_shift = ilog2(size);
	mr->key.offset = umem->address & (size - 1);
	rdma_umem_for_each_dma_block(umem, &block, size) {
		dma_addr_t addr = rdma_block_iter_dma_address(&block);

		if (mr->nblocks < mr->max_blocks)
			mr->blocks[mr->nblocks++] = ib_virt_dma_to_ptr(addr);
		/* A region of terabytes has hundreds of millions. */
		if (!(mr->nblocks % ARX_MR_BLOCKS_AT_ONCE))
			cond_resched();
	}
	return mr;
}

static struct arx_mr *arx_mr_of_odp(struct ib_pd *pd, u64 start, u64 length)
{
	struct arx_odp *odp = arx_odp_make(start, length);
	struct arx_mr *mr;

	if (IS_ERR(odp))
		return ERR_CAST(odp);
	mr = arx_mr_alloc(pd, ARX_KEY_USER, 0);
	if (IS_ERR(mr)) {
		arx_odp_end(odp);
		return mr;
	}
	mr->odp = odp;
	mr->key.offset = offset_in_page(start);
	return mr;
}

/* A region of 0 bytes pins nothing, and its key allows no access. */
static struct arx_mr *arx_mr_of_user(struct ib_pd *pd, u64 start, u64 length,
				     int access)
{
	struct ib_umem *umem;
	struct arx_mr *mr;

	if (!length)
		return arx_mr_alloc(pd, ARX_KEY_USER, 0);
	if (access & IB_ACCESS_ON_DEMAND)
		return arx_mr_of_odp(pd, start, length);

	umem = ib_umem_get_va(pd->device, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);

	if (access & IB_ACCESS_FLUSH_PERSISTENT && !arx_mr_is_pmem(umem))
		mr = ERR_PTR(-EINVAL);
	else
		mr = arx_mr_of_umem(pd, umem);
	if (IS_ERR(mr)) {
		ib_umem_release(umem);
		return mr;
	}
	mr->umem = umem;
	mr->persistent = access & IB_ACCESS_FLUSH_PERSISTENT;
	return mr;
}

/* Persistent memory is pinned: its pages are neither moved nor taken back. */
static bool arx_mr_contradicts(int access)
{
	return access & IB_ACCESS_ON_DEMAND &&
	       access & IB_ACCESS_FLUSH_PERSISTENT;
}

/**
 * arx_reg_user_mr - verb: an application's memory, pinned or paged on demand
 * @pd: protection domain
 * @start: address in the process
 * @length: bytes, any number; paged on demand, U64_MAX from address 0 on is all
 *	of the process's memory, also what it will map later
 * @iova: address of the first byte in work requests; 0 if @access says so
 * @access: enum ib_access_flags
 * @udata: of the application
 *
 * Context: may sleep.
 * Return: the region, -EINVAL if the addresses wrap around or memory is to be
 * persistent that is not, -EOPNOTSUPP for unsupported access, or the error of
 * pinning.
 */
struct ib_mr *arx_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova,
			      int access, struct ib_udata *udata)
{
	struct arx_mr *mr;
	u64 last;

	if (access & ~(ARX_MR_OWN_ACCESS | ARX_MR_ODP_ACCESS) ||
	    arx_mr_contradicts(access))
		return ERR_PTR(-EOPNOTSUPP);
	if (access & IB_ZERO_BASED)
		iova = 0;
	/* The last byte may be the last one of the address space. */
	if ((length && check_add_overflow(iova, length - 1, &last)) ||
	    overflows_type(start, unsigned long) ||
	    overflows_type(length, size_t))
		return ERR_PTR(-EINVAL);

	mr = arx_mr_of_user(pd, start, length, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->key.access = access | ARX_KEY_LOCAL;
	mr->key.iova = iova;
	mr->key.length = length;
	mr->ib.iova = iova;
	mr->ib.length = length;
	return arx_mr_publish(mr);
}

/* A region of pages, not published yet, that begins @offset bytes into them. */
static struct arx_mr *arx_mr_map_pages(struct ib_pd *pd, enum arx_key_kind kind,
				       u64 offset, u64 length,
				       void *(*page)(void *of, size_t n),
				       void *of)
{
	size_t first = offset >> PAGE_SHIFT;
	size_t n = DIV_ROUND_UP(offset + length, PAGE_SIZE) - first;
	struct arx_mr *mr;

	if (n > U32_MAX)
		return ERR_PTR(-ENOMEM);
	mr = arx_mr_alloc(pd, kind, n);
	if (IS_ERR(mr))
		return mr;
	mr->block_shift = PAGE_SHIFT;
	for (; mr->nblocks < n; mr->nblocks++)
		mr->blocks[mr->nblocks] = page(of, first + mr->nblocks);
	mr->key.offset = offset_in_page(offset);
	mr->key.length = length;
	mr->ib.length = length;
	return mr;
}

/**
 * arx_mr_of_pages - a region that begins at address 0, in memory of the device
 * @pd: protection domain
 * @offset: of the first byte in the memory
 * @length: bytes
 * @access: enum ib_access_flags
 * @page: returns the kernel address of a page of the memory
 * @of: the memory, which outlives the region
 *
 * Return: the region, -EOPNOTSUPP for unsupported access, -ENOMEM.
 */
struct ib_mr *arx_mr_of_pages(struct ib_pd *pd, u64 offset, u64 length,
			      int access, void *(*page)(void *of, size_t n),
			      void *of)
{
	struct arx_mr *mr;

	if (access & ~ARX_MR_USER_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	mr = arx_mr_map_pages(pd, ARX_KEY_DEVICE, offset, length, page, of);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->key.access = access | ARX_KEY_LOCAL;
	return arx_mr_publish(mr);
}

/**
 * arx_reg_user_mr_dmabuf - verb: memory of a dma-buf
 * @pd: protection domain
 * @offset: of the first byte in the buffer
 * @length: bytes
 * @iova: address of the first byte in work requests; 0 if @access says so
 * @fd: of the buffer
 * @access: enum ib_access_flags
 *
 * Context: process of the application.
 * Return: the region, -EINVAL if the addresses wrap around, -EOPNOTSUPP for
 * unsupported access, -ENOMEM, or as arx_dmabuf_get().
 */
struct ib_mr *arx_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length,
				     u64 iova, int fd, int access)
{
	struct arx_dmabuf *buf;
	struct arx_mr *mr;
	u64 last;

	if (access & ~ARX_MR_USER_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	buf = arx_dmabuf_get(&pd->device->dev, fd, offset, length,
			     ib_access_writable(access));
	if (IS_ERR(buf))
		return ERR_CAST(buf);
	if (access & IB_ZERO_BASED)
		iova = 0;
	if (check_add_overflow(iova, length - 1, &last))
		mr = ERR_PTR(-EINVAL);
	else
		mr = arx_mr_map_pages(pd, ARX_KEY_DMABUF, offset, length,
				      arx_dmabuf_page, buf);
	if (IS_ERR(mr)) {
		arx_dmabuf_put(buf);
		return ERR_CAST(mr);
	}
	mr->dmabuf = buf;
	mr->key.access = access | ARX_KEY_LOCAL;
	mr->key.iova = iova;
	mr->ib.iova = iova;
	return arx_mr_publish(mr);
}

/*
 * True if @mr can get @access as it is: its memory need not be pinned again,
 * and its addresses stay. Each page that is found on demand is checked for
 * itself.
 */
static bool arx_mr_can_get(const struct arx_mr *mr, int access)
{
	if (!mr->umem)
		return true;
	return !((access ^ mr->key.access) &
		 (IB_ZERO_BASED | IB_ACCESS_FLUSH_PERSISTENT)) &&
	       (mr->umem->writable || !ib_access_writable(access));
}

/* Access of @mr that only another translation changes. */
static int arx_mr_fixed(const struct arx_mr *mr)
{
	return mr->odp ? IB_ACCESS_ON_DEMAND | IB_ZERO_BASED |
			 IB_ACCESS_FLUSH_PERSISTENT : IB_ACCESS_ON_DEMAND;
}

/*
 * Register the memory of @mr with other access. A region that began at 0 gets
 * the addresses of the process.
 */
static struct ib_mr *arx_mr_replace(struct arx_mr *mr, struct ib_pd *pd,
				    int access, struct ib_udata *udata)
{
	u64 iova = mr->key.access & IB_ZERO_BASED ? mr->umem->address :
						    mr->key.iova;

	return arx_reg_user_mr(pd, mr->umem->address, mr->key.length, iova,
			       access, udata);
}

/**
 * arx_rereg_user_mr - verb: change an application's region
 * @ib: region
 * @flags: enum ib_mr_rereg_flags: attributes to change
 * @start: new address in the process
 * @length: new length
 * @iova: new address in work requests
 * @access: new access
 * @pd: the PD it gets, new or old
 * @udata: of the application
 *
 * Context: may sleep. While it works, no window can be bound to the region.
 * Return: NULL if @ib has been changed, a new region with a new key that
 * replaces it, -EBUSY if a window is bound to it, -EOPNOTSUPP if its memory is
 * not the process's own, or should be pinned and was not, or the reverse; or as
 * arx_reg_user_mr().
 */
struct ib_mr *arx_rereg_user_mr(struct ib_mr *ib, int flags, u64 start,
				u64 length, u64 iova, int access,
				struct ib_pd *pd, struct ib_udata *udata)
{
	struct arx_mr *mr = to_arx_mr(ib);
	struct ib_mr *new = NULL;

	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->key.access & ~ARX_KEY_LOCAL;
	if (access & ~(ARX_MR_OWN_ACCESS | ARX_MR_ODP_ACCESS) ||
	    mr->key.kind != ARX_KEY_USER)
		return ERR_PTR(-EOPNOTSUPP);
	if (!(flags & IB_MR_REREG_TRANS) &&
	    (access ^ mr->key.access) & arx_mr_fixed(mr))
		return ERR_PTR(-EOPNOTSUPP);
	if (!arx_key_close(&mr->key))
		return ERR_PTR(-EBUSY);

	if (flags & IB_MR_REREG_TRANS)
		new = arx_reg_user_mr(pd, start, length, iova, access, udata);
	else if (!arx_mr_can_get(mr, access))
		new = arx_mr_replace(mr, pd, access, udata);
	else
		arx_key_change(&mr->key, pd, access | ARX_KEY_LOCAL);
	/* The core deregisters a region that has been replaced. */
	if (IS_ERR_OR_NULL(new))
		arx_key_open(&mr->key);
	return new;
}

/* The pages of @sge, with a reference to their memory; length 0: none. */
static int arx_mr_advised(struct ib_pd *pd, const struct ib_sge *sge,
			  bool write, struct arx_pages *pages)
{
	struct arx_key_use use = {
		.dev = to_arx_dev(pd->device),
		.pd = pd,
		.value = sge->lkey,
		.access = ARX_KEY_LOCAL | (write ? IB_ACCESS_LOCAL_WRITE : 0),
		.iova = sge->addr,
		.length = sge->length,
	};
	struct arx_key *key = arx_key_of(use.dev, use.value);

	if (!key || key->kind != ARX_KEY_USER || key->value != use.value ||
	    !key->mr->odp)
		return -ENOENT;
	if (!arx_key_allows(key, &use))
		return -EPERM;
	*pages = (struct arx_pages) {
		.odp = key->mr->odp,
		.addr = key->mr->odp->base + sge->addr - key->iova +
			key->offset,
		.len = sge->length,
		.write = write,
	};
	arx_odp_hold(pages->odp);
	return 0;
}

/**
 * arx_advise_mr - verb: find pages before they are needed
 * @pd: protection domain
 * @advice: read, write, or only pages that are mapped anyhow
 * @flags: IB_UVERBS_ADVISE_MR_FLAG_FLUSH: when they are there
 * @list: memory, by lkey
 * @n: entries of @list
 * @attrs: unused
 *
 * All advice is taken at once, with and without the flag.
 *
 * Context: process of the application; may sleep.
 * Return: 0, -ENOENT for a key that is not of a region paged on demand, -EPERM
 * if the region does not allow the access, -EOPNOTSUPP for other advice, or as
 * arx_odp_find().
 */
int arx_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		  u32 flags, struct ib_sge *list, u32 n,
		  struct uverbs_attr_bundle *attrs)
{
	bool write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	enum arx_odp_how how = ARX_ODP_PREFETCH;
	struct arx_pages pages;
	int err = 0;

	if (advice > IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	if (advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		how = ARX_ODP_PREFETCH_MAPPED;
	for (; n && !err; n--, list++) {
		arx_section_enter();
		err = arx_mr_advised(pd, list, write, &pages);
		arx_section_leave();
		if (err)
			break;
		if (pages.len)
			err = arx_odp_find(&pages, how);
		arx_odp_put(pages.odp);
	}
	return err;
}

/**
 * arx_dereg_mr - verb
 * @ib: region
 * @udata: unused
 *
 * Context: may sleep, until no section uses the region.
 * Return: 0, or -EBUSY if a window is bound to the region.
 */
int arx_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct arx_mr *mr = to_arx_mr(ib);

	if (!arx_key_close(&mr->key))
		return -EBUSY;
	arx_key_remove(to_arx_dev(ib->device), &mr->key);
	arx_mr_free(mr);
	return 0;
}

/**
 * arx_alloc_mr - verb of kernel consumers: a region for fast registration
 * @pd: protection domain
 * @type: IB_MR_TYPE_MEM_REG: the memory is in pages; IB_MR_TYPE_SG_GAPS: it may
 *	also be in pieces of any length
 * @max_sg: maximum number of pages or pieces
 *
 * Return: the region, -EINVAL for other types and sizes, -ENOMEM.
 */
struct ib_mr *arx_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_sg)
{
	struct arx_mr *mr;

	if ((type != IB_MR_TYPE_MEM_REG && type != IB_MR_TYPE_SG_GAPS) ||
	    !max_sg || max_sg > ARX_MAX_FAST_REG_PAGES)
		return ERR_PTR(-EINVAL);

	mr = arx_mr_alloc(pd, ARX_KEY_FAST, max_sg);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	if (type == IB_MR_TYPE_SG_GAPS) {
		mr->pieces = kvmalloc_array(max_sg, sizeof(*mr->pieces),
					    GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (!mr->pieces) {
			arx_mr_free(mr);
			return ERR_PTR(-ENOMEM);
		}
	}
	return arx_mr_publish(mr);
}

static int arx_mr_set_page(struct ib_mr *ib, u64 addr)
{
	struct arx_mr *mr = to_arx_mr(ib);

	if (mr->nblocks == mr->max_blocks)
		return -ENOMEM;
	mr->blocks[mr->nblocks++] = ib_virt_dma_to_ptr(addr);
	return 0;
}

static int arx_map_pages(struct arx_mr *mr, struct scatterlist *sg, int nents,
			 unsigned int *offset)
{
	struct ib_mr *ib = &mr->ib;
	int mapped;

	mr->npieces = 0;
	mr->nblocks = 0;
	mr->block_shift = ilog2(ib->page_size);
	mapped = ib_sg_to_pages(ib, sg, nents, offset, arx_mr_set_page);
	mr->key.offset = ib->iova & (ib->page_size - 1);
	return mapped;
}

/* Entries that follow each other in memory are one piece. */
static bool arx_mr_add_piece(struct arx_mr *mr, void *at, u32 len)
{
	struct arx_piece *last = mr->pieces + mr->npieces - 1;

	if (!mr->npieces || last->to != at) {
		if (mr->npieces == mr->max_blocks)
			return false;
		mr->npieces++;
		last++;
	}
	mr->ib.length += len;
	last->end = mr->ib.length;
	last->to = at + len;
	return true;
}

static int arx_map_pieces(struct arx_mr *mr, struct scatterlist *list,
			  int nents, unsigned int offset)
{
	struct scatterlist *sg;
	int i;

	mr->nblocks = 0;
	mr->npieces = 0;
	mr->key.offset = 0;
	mr->ib.iova = sg_dma_address(list) + offset;
	mr->ib.length = 0;
	for_each_sg(list, sg, nents, i) {
		dma_addr_t at = sg_dma_address(sg) + offset;

		if (!arx_mr_add_piece(mr, ib_virt_dma_to_ptr(at),
				      sg_dma_len(sg) - offset))
			break;
		offset = 0;
	}
	return i;
}

/**
 * arx_map_mr_sg - verb of kernel consumers: map memory to a region
 * @ib: region that is not registered
 * @sg: memory
 * @nents: entries of @sg
 * @offset: start in the first entry; receives the offset where mapping ended
 *
 * Most lists are of pages, for which the look-up of an address is arithmetic,
 * whatever the type of the region.
 *
 * Return: entries mapped, or a negative error.
 */
int arx_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int nents,
		  unsigned int *offset)
{
	unsigned int start = offset ? *offset : 0;
	struct arx_mr *mr = to_arx_mr(ib);
	int mapped;

	if (!is_power_of_2(ib->page_size))
		return -EINVAL;

	mapped = arx_map_pages(mr, sg, nents, offset);
	if (mapped == -EINVAL || mapped == nents || !mr->pieces)
		return mapped;
	if (offset)
		*offset = 0;
	return arx_map_pieces(mr, sg, nents, start);
}
