/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Keys: what the lkeys and rkeys of work requests and packets name. A key
 * grants access to a range of addresses; mr.h has the memory at the addresses.
 * This file knows neither memory nor QPs.
 *
 * Whoever reads or writes memory through a key does so in a section, so a key
 * can be removed once all sections have been left: arx_key_remove() waits for
 * that, and may sleep. A revocable key can be taken back by a request, where
 * nothing can sleep. Users of such a key therefore hold it by a count.
 */
#ifndef ARX_KEY_H
#define ARX_KEY_H

#include <rdma/ib_verbs.h>

#include "arx.h"

struct arx_mr;

/**
 * enum arx_key_kind - what a key names
 * @ARX_KEY_USER: memory of an application
 * @ARX_KEY_DEVICE: device memory
 * @ARX_KEY_DMABUF: memory of a dma-buf
 * @ARX_KEY_DMA: all memory, for kernel consumers
 * @ARX_KEY_FAST: memory that a kernel consumer registers by work requests, and
 *	that a work request or a peer invalidates
 * @ARX_KEY_WINDOW_1: a window of type 1, which only a bind changes
 * @ARX_KEY_WINDOW_2: a window of type 2B, which a work request or a peer
 *	invalidates
 *
 * Those from ARX_KEY_FAST on are revocable.
 */
enum arx_key_kind {
	ARX_KEY_USER,
	ARX_KEY_DEVICE,
	ARX_KEY_DMABUF,
	ARX_KEY_DMA,
	ARX_KEY_FAST,
	ARX_KEY_WINDOW_1,
	ARX_KEY_WINDOW_2,
};

/* Access by an lkey, beside enum ib_access_flags. Windows do not allow it. */
#define ARX_KEY_LOCAL	BIT(30)

/* Access that writes memory. */
#define ARX_KEY_WRITE	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_ATOMIC)

/* arx_key.windows of a region that no window can be bound to any more. */
#define ARX_KEY_CLOSED	(-1)

/**
 * enum arx_key_state - state of a key
 * @ARX_KEY_FREE: no access: not registered or bound, or invalidated
 * @ARX_KEY_VALID: may be used
 */
enum arx_key_state {
	ARX_KEY_FREE,
	ARX_KEY_VALID,
};

/**
 * enum arx_key_answer - answer of a look-up
 * @ARX_KEY_GRANTED: the memory may be used
 * @ARX_KEY_REFUSED: no such key, or it does not allow the access
 * @ARX_KEY_ABSENT: the key allows the access, but pages must be found first.
 *	Only look-ups that begin to use memory answer this
 */
enum arx_key_answer {
	ARX_KEY_GRANTED,
	ARX_KEY_REFUSED,
	ARX_KEY_ABSENT,
};

/**
 * struct arx_key - a key, embedded in what it names
 * @id: in arx_dev.keys: the upper 24 bits of the key
 * @value: the valid lkey and rkey. The consumer chooses the lower 8 bits when
 *	it registers or binds
 * @kind: what the key names
 * @state: checked before all below, so that an invalidation takes effect at
 *	once
 * @access: enum ib_access_flags and ARX_KEY_LOCAL
 * @users: revocable keys: requests that read or write the memory now; an
 *	invalidation is complete when there are none
 * @qpn: the only QP that may use the key, or 0
 * @pd: protection domain
 * @iova: address of the first byte in work requests
 * @length: bytes
 * @mr: region that has the memory
 * @offset: of the first byte in the first block of @mr
 * @windows: of a region: windows bound to it, or ARX_KEY_CLOSED
 * @region: of a window: key of the region to which it is bound, or NULL
 * @lock: serialises bind and invalidation
 */
struct arx_key {
	struct arx_id id;
	u32 value;
	enum arx_key_kind kind;
	enum arx_key_state state;
	int access;
	atomic_t users;
	u32 qpn;
	struct ib_pd *pd;
	u64 iova;
	u64 length;
	struct arx_mr *mr;
	u64 offset;
	atomic_t windows;
	struct arx_key *region;
	spinlock_t lock;	/* bind and invalidation */
};

/**
 * struct arx_key_use - an access that a request needs
 * @dev: device of the key
 * @pd: protection domain of the request
 * @qpn: QP that a peer uses, or 0 for an lkey
 * @value: lkey or rkey, any value
 * @access: enum ib_access_flags and ARX_KEY_LOCAL, all of which are needed
 * @iova: first byte
 * @length: bytes; if 0, @iova may be anything (9.3.3.3.1)
 */
struct arx_key_use {
	struct arx_dev *dev;
	struct ib_pd *pd;
	u32 qpn;
	u32 value;
	int access;
	u64 iova;
	u64 length;
};

/* True if a request can take the key back while others use the memory. */
static inline bool arx_key_is_revocable(const struct arx_key *key)
{
	return key->kind >= ARX_KEY_FAST;
}

/* True if windows can be bound to what the key names. */
static inline bool arx_key_has_windows(const struct arx_key *key)
{
	return key->kind == ARX_KEY_USER || key->kind == ARX_KEY_DEVICE ||
	       key->kind == ARX_KEY_DMABUF;
}

/* In a section. The caller must check that the key has exactly this value. */
static inline struct arx_key *arx_key_of(struct arx_dev *dev, u32 value)
{
	struct arx_id *id = arx_ids_find(&dev->keys, value >> 8);

	return id ? container_of(id, struct arx_key, id) : NULL;
}

static inline bool arx_key_allows(const struct arx_key *key,
				  const struct arx_key_use *use)
{
	/* Pairs with the release in arx_key_grant(). */
	if (smp_load_acquire(&key->state) != ARX_KEY_VALID)
		return false;
	if (READ_ONCE(key->value) != use->value)
		return false;
	/* Pairs with the release in arx_key_change(). */
	if (smp_load_acquire(&key->pd) != use->pd)
		return false;
	if (use->access & ~READ_ONCE(key->access))
		return false;
	if (key->qpn && key->qpn != use->qpn)
		return false;
	return !use->length ||
	       (use->iova >= key->iova && use->length <= key->length &&
		use->iova - key->iova <= key->length - use->length);
}

/**
 * arx_key_check - whether a key allows an access now
 * @use: the access. It is not granted: the key may be invalidated meanwhile
 *
 * Context: in a section.
 * Return: the answer.
 */
static inline enum arx_key_answer arx_key_check(const struct arx_key_use *use)
{
	struct arx_key *key = arx_key_of(use->dev, use->value);

	return key && arx_key_allows(key, use) ? ARX_KEY_GRANTED :
						 ARX_KEY_REFUSED;
}

/**
 * arx_key_put - end a use of the memory
 * @key: from arx_key_get()
 *
 * Context: in the section of arx_key_get().
 */
static inline void arx_key_put(struct arx_key *key)
{
	if (arx_key_is_revocable(key))
		atomic_dec_return_release(&key->users);
}

/**
 * arx_key_get - look a key up and begin to use its memory
 * @use: the access
 * @to: receives the key if the access is granted
 *
 * Once an invalidation is complete, the consumer uses the memory for other
 * data, perhaps through the same region under another key. A request that found
 * the key just before must neither write nor read the memory then. So the
 * request counts itself and then checks all conditions; the invalidation
 * changes the state and then reads the count: one of the two sees the other.
 * Keys that are not revocable end by arx_key_remove() only, so the section is
 * enough and nothing is counted.
 *
 * Context: in a section, bottom halves off until arx_key_put().
 * Return: the answer.
 */
static inline enum arx_key_answer arx_key_get(const struct arx_key_use *use,
					      struct arx_key **to)
{
	struct arx_key *key = arx_key_of(use->dev, use->value);

	if (!key)
		return ARX_KEY_REFUSED;
	if (arx_key_is_revocable(key)) {
		atomic_inc(&key->users);
		smp_mb__after_atomic();	/* pairs with arx_key_take_back() */
	}
	if (arx_key_allows(key, use)) {
		*to = key;
		return ARX_KEY_GRANTED;
	}
	arx_key_put(key);
	return ARX_KEY_REFUSED;
}

void arx_key_init(struct arx_key *key, enum arx_key_kind kind,
		  struct ib_pd *pd);
int arx_key_add(struct arx_dev *dev, struct arx_key *key);
void arx_key_grant(struct arx_key *key, u32 value);
void arx_key_change(struct arx_key *key, struct ib_pd *pd, int access);
int arx_key_rebind(struct arx_key *key, struct arx_key *region);
int arx_key_invalidate(const struct arx_key_use *use);
bool arx_key_close(struct arx_key *key);
void arx_key_open(struct arx_key *key);
void arx_key_remove(struct arx_dev *dev, struct arx_key *key);

#endif /* ARX_KEY_H */
