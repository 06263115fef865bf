/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef ARX_MR_H
#define ARX_MR_H

#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "arx.h"

/* Access that a remote or local user of a key can request: ib_access_flags. */

/**
 * enum arx_mr_state - state of a key
 * @ARX_MR_FREE: fast registration: no REG_MR yet, or invalidated
 * @ARX_MR_VALID: may be used
 */
enum arx_mr_state {
	ARX_MR_FREE,
	ARX_MR_VALID,
};

/**
 * struct arx_mr - memory region
 * @ib: the core's part; lkey and rkey are the same number
 * @id: in arx_dev.mrs: key >> 8
 * @key: the valid key; a kernel consumer may write the next key into @ib before
 *	it registers with it
 * @state: checked after the key, so that an invalidation takes effect at once
 * @access: enum ib_access_flags
 * @iova: address of the first byte in work requests
 * @length: bytes
 * @offset: of the first byte in the first block
 * @block_shift: log2 of the block size
 * @nblocks: entries of @blocks filled
 * @max_blocks: entries of @blocks allocated
 * @blocks: kernel address of each block; a DMA MR has none, its addresses are
 *	kernel addresses
 * @umem: pinned user memory, or NULL
 * @users: fast registration: peers' requests that read or write the region now;
 *	an invalidation is complete when there are none
 *
 * Found in a section and used only within it. Deregistration removes the region
 * from the table and waits until all sections have been left. The data path
 * holds no references: packets in flight hold their pages instead.
 */
struct arx_mr {
	struct ib_mr ib;
	struct arx_id id;
	u32 key;
	enum arx_mr_state state;
	int access;
	u64 iova;
	u64 length;
	u32 offset;
	u8 block_shift;
	u32 nblocks;
	u32 max_blocks;
	void **blocks;
	struct ib_umem *umem;
	atomic_t users;
};

static inline struct arx_mr *to_arx_mr(struct ib_mr *ib)
{
	return container_of(ib, struct arx_mr, ib);
}

/* True for fast registration, the only kind that a request can invalidate. */
static inline bool arx_mr_is_fast(const struct arx_mr *mr)
{
	return mr->ib.type == IB_MR_TYPE_MEM_REG;
}

/* In a section. The caller must check that the region has exactly this key. */
static inline struct arx_mr *arx_mr_of(struct arx_dev *dev, u32 key)
{
	struct arx_id *id = arx_ids_find(&dev->mrs, key >> 8);

	return id ? container_of(id, struct arx_mr, id) : NULL;
}

static inline bool arx_mr_allows(const struct arx_mr *mr,
				 const struct ib_pd *pd, u32 key, int access,
				 u64 iova, u64 length)
{
	/* Pairs with the release in arx_mr_fast_reg(). */
	if (smp_load_acquire(&mr->state) != ARX_MR_VALID)
		return false;
	if (READ_ONCE(mr->key) != key || READ_ONCE(mr->ib.pd) != pd)
		return false;
	if (access & ~READ_ONCE(mr->access))
		return false;
	return !length || (iova >= mr->iova && length <= mr->length &&
			   iova - mr->iova <= mr->length - length);
}

/**
 * arx_mr_find - the region of a key, if it allows the access
 * @dev: device of the key
 * @pd: protection domain of the QP
 * @key: lkey or rkey, any value
 * @access: enum ib_access_flags, all of which are needed
 * @iova: first byte
 * @length: bytes; if 0, @iova may be anything (9.3.3.3.1)
 *
 * Context: in a section; the region is valid to its end.
 * Return: the region, or NULL.
 */
static inline struct arx_mr *
arx_mr_find(struct arx_dev *dev, struct ib_pd *pd, u32 key, int access,
	    u64 iova, u64 length)
{
	struct arx_mr *mr = arx_mr_of(dev, key);

	if (!mr || !arx_mr_allows(mr, pd, key, access, iova, length))
		return NULL;
	return mr;
}

/**
 * arx_mr_put - end a request's use of a region
 * @mr: from arx_mr_get()
 */
static inline void arx_mr_put(struct arx_mr *mr)
{
	if (arx_mr_is_fast(mr))
		atomic_dec_return_release(&mr->users);
}

/**
 * arx_mr_get - arx_mr_find() for a peer's request that reads or writes the
 *	region
 * @dev: device of the key
 * @pd: protection domain of the QP
 * @key: rkey, any value
 * @access: enum ib_access_flags, all of which are needed
 * @iova: first byte
 * @length: bytes
 *
 * Once an invalidation is complete, its consumer uses the memory for other
 * data, perhaps through the same region under another key. A request that found
 * the region just before must neither write nor read the memory then. So the
 * request counts itself and then checks all conditions; the invalidation
 * changes the state and then reads the count: one of the two sees the other.
 * Other regions end by deregistration only, which waits for sections to be
 * left.
 *
 * Context: in a section, bottom halves off until arx_mr_put().
 * Return: the region, or NULL.
 */
static inline struct arx_mr *
arx_mr_get(struct arx_dev *dev, struct ib_pd *pd, u32 key, int access,
	   u64 iova, u64 length)
{
	struct arx_mr *mr = arx_mr_of(dev, key);

	if (!mr)
		return NULL;
	if (arx_mr_is_fast(mr)) {
		atomic_inc(&mr->users);
		smp_mb__after_atomic();	/* pairs with arx_mr_invalidate() */
	}
	if (arx_mr_allows(mr, pd, key, access, iova, length))
		return mr;
	arx_mr_put(mr);
	return NULL;
}

void *arx_mr_at_blocks(const struct arx_mr *mr, u64 iova, u32 *len);
int arx_mr_invalidate(struct arx_dev *dev, struct ib_pd *pd, u32 key);
int arx_mr_fast_reg(struct arx_mr *mr, struct ib_pd *pd, u32 key, int access);
int arx_mr_atomic(void *at, bool compare, u64 compare_add, u64 swap, u64 *orig);

/**
 * arx_mr_at - address of a byte of a region
 * @mr: from arx_mr_find()
 * @iova: the byte, in bounds
 * @len: bytes wanted, not 0 and in bounds; receives the number of contiguous
 *	bytes
 *
 * Context: in the section of arx_mr_find().
 * Return: address, or NULL if there is no memory.
 */
static inline void *arx_mr_at(const struct arx_mr *mr, u64 iova, u32 *len)
{
	u64 offset = iova - mr->iova + mr->offset;
	u64 n = offset >> mr->block_shift;

	/* Most regions are short. A DMA MR has no block. */
	if (likely(n < mr->nblocks)) {
		u64 block_size = BIT_ULL(mr->block_shift);

		offset &= block_size - 1;
		if (likely(*len <= block_size - offset))
			return mr->blocks[n] + offset;
	}
	return arx_mr_at_blocks(mr, iova, len);
}

/* verbs */
struct ib_mr *arx_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *arx_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova,
			      int access, struct ib_udata *udata);
struct ib_mr *arx_rereg_user_mr(struct ib_mr *ib, int flags, u64 start,
				u64 length, u64 iova, int access,
				struct ib_pd *pd, struct ib_udata *udata);
int arx_dereg_mr(struct ib_mr *ib, struct ib_udata *udata);
struct ib_mr *arx_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_sg);
int arx_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int nents,
		  unsigned int *offset);

#endif /* ARX_MR_H */
