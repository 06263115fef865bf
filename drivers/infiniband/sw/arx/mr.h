/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory regions. */
#ifndef ARX_MR_H
#define ARX_MR_H

#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "key.h"
#include "odp.h"

/**
 * struct arx_piece - contiguous memory of any length
 * @end: bytes of the region up to its end
 * @to: address of the byte after it
 */
struct arx_piece {
	u64 end;
	void *to;
};

/**
 * struct arx_mr - memory region
 * @key: lkey and rkey
 * @block_shift: log2 of the block size
 * @persistent: what peers write is persistent once it is acknowledged
 * @nblocks: entries of @blocks filled
 * @max_blocks: entries of @blocks allocated, and of @pieces if there are any
 * @blocks: kernel address of each block; a DMA MR has none, its addresses are
 *	kernel addresses
 * @pieces: IB_MR_TYPE_SG_GAPS: the memory if it does not fit blocks, or NULL
 * @npieces: entries of @pieces filled; if not 0, @nblocks is 0
 * @umem: pinned user memory, or NULL
 * @dmabuf: buffer that has the memory, or NULL
 * @odp: memory that is paged on demand, or NULL; such a region has no block
 * @ib: the core's part. A kernel consumer may write the next key into it before
 *	it registers with it
 *
 * Used only in a section, or through a key that is held. The data path holds no
 * references: packets in flight hold their pages instead, or a copy of memory
 * of a dma-buf.
 */
struct arx_mr {
	struct arx_key key;
	u8 block_shift;
	bool persistent;
	u32 nblocks;
	u32 max_blocks;
	void **blocks;
	struct arx_piece *pieces;
	u32 npieces;
	struct ib_umem *umem;
	struct arx_dmabuf *dmabuf;
	struct arx_odp *odp;
	struct ib_mr ib;
};

static inline struct arx_mr *to_arx_mr(struct ib_mr *ib)
{
	return container_of(ib, struct arx_mr, ib);
}

void *arx_mr_at_blocks(const struct arx_key *key, u64 iova, u32 *len);
int arx_mr_fast_reg(struct arx_mr *mr, struct ib_pd *pd, u32 key, int access);
int arx_mr_atomic(void *at, bool compare, u64 compare_add, u64 swap, u64 *orig);
int arx_mr_write_word(const struct arx_key *key, u64 iova, u64 value);

/**
 * arx_mr_at - address of a byte that a key names
 * @key: from arx_key_get()
 * @iova: the byte, in bounds
 * @len: bytes wanted, not 0 and in bounds; receives the number of contiguous
 *	bytes
 *
 * Context: in the section of arx_key_get(), after arx_mr_absent() has returned
 * false.
 * Return: address, or NULL if there is no memory.
 */
static inline void *arx_mr_at(const struct arx_key *key, u64 iova, u32 *len)
{
	const struct arx_mr *mr = key->mr;
	u64 offset = iova - key->iova + key->offset;
	u64 n = offset >> mr->block_shift;

	/* Most regions are short. A DMA MR has no block. */
	if (likely(n < mr->nblocks)) {
		u64 block_size = BIT_ULL(mr->block_shift);

		offset &= block_size - 1;
		if (likely(*len <= block_size - offset))
			return mr->blocks[n] + offset;
	}
	return arx_mr_at_blocks(key, iova, len);
}

bool arx_mr_lacks(const struct arx_key *key, u64 iova, u32 len, bool write,
		  struct arx_pages *want);

/**
 * arx_mr_absent - whether pages must be found before they can be accessed
 * @key: from arx_key_get()
 * @iova: first byte
 * @len: bytes, in bounds
 * @write: they will be written
 * @want: receives what is not there
 *
 * Only regions paged on demand lack pages.
 *
 * Context: in the section of arx_key_get(), and before arx_mr_at().
 * Return: true if at least one page is not there.
 */
static inline bool arx_mr_absent(const struct arx_key *key, u64 iova, u32 len,
				 bool write, struct arx_pages *want)
{
	return arx_odp_in_use() && arx_mr_lacks(key, iova, len, write, want);
}

void __cold arx_mr_write_back(const struct arx_key *key, u64 iova, u32 len);

/**
 * arx_mr_persist - make bytes that a peer has written persistent, if the region
 *	asks for that
 * @key: from arx_key_get()
 * @iova: the first byte, in bounds
 * @len: bytes, in bounds
 *
 * Context: in the section of arx_key_get().
 */
static inline void arx_mr_persist(const struct arx_key *key, u64 iova, u32 len)
{
	if (unlikely(key->mr->persistent))
		arx_mr_write_back(key, iova, len);
}

bool arx_mr_has_pmem(void);
struct ib_mr *arx_mr_of_pages(struct ib_pd *pd, u64 offset, u64 length,
			      int access, void *(*page)(void *of, size_t n),
			      void *of);

/* verbs */
struct ib_mr *arx_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *arx_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova,
			      int access, struct ib_udata *udata);
struct ib_mr *arx_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length,
				     u64 iova, int fd, int access);
struct ib_mr *arx_rereg_user_mr(struct ib_mr *ib, int flags, u64 start,
				u64 length, u64 iova, int access,
				struct ib_pd *pd, struct ib_udata *udata);
int arx_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		  u32 flags, struct ib_sge *list, u32 n,
		  struct uverbs_attr_bundle *attrs);
int arx_dereg_mr(struct ib_mr *ib, struct ib_udata *udata);
struct ib_mr *arx_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_sg);
int arx_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int nents,
		  unsigned int *offset);

#endif /* ARX_MR_H */
