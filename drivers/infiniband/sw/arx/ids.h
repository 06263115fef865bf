/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Unguessable numbers. */
#ifndef ARX_IDS_H
#define ARX_IDS_H

#include <linux/jhash.h>
#include <linux/rhashtable.h>

#include "section.h"

/*
 * Size of the quarantine: the number freed this many frees ago may be drawn
 * again.
 */
#define ARX_IDS_QUARANTINE	1024

/*
 * A number is not drawn while a quarantined number has the same remainder. At
 * most half of the draws fail, which takes less time than to search the
 * quarantine.
 */
#define ARX_IDS_REMAINDERS	(2 * ARX_IDS_QUARANTINE)

/**
 * struct arx_id - the number of an object, embedded in the object
 * @node: in arx_ids.taken
 * @nr: the number
 */
struct arx_id {
	struct rhash_head node;
	u32 nr;
};

/**
 * struct arx_ids - unguessable numbers for QPs, memory regions, AHs and SRQs
 * @taken: struct arx_id by number
 * @bits: width of a number
 * @lock: protects taking and freeing of numbers
 * @quarantined: ring of quarantined numbers; 0: unused
 * @remainders: number of quarantined numbers with each remainder
 * @next: index in @quarantined for the next freed number
 *
 * Numbers come from the kernel's CSPRNG. Look-ups take no lock: an object is
 * freed only after a grace period or, if all its look-ups are in sections,
 * after arx_ids_remove() and arx_section_wait(). A message needs up to four
 * look-ups, which is why this is a hash table: an xarray takes
 * more instructions to find one of 2^24 scattered numbers.
 */
struct arx_ids {
	struct rhashtable taken;
	unsigned int bits;
	spinlock_t lock;	/* protects all but look-ups */
	u32 quarantined[ARX_IDS_QUARANTINE];
	u16 remainders[ARX_IDS_REMAINDERS];
	u32 next;
};

/*
 * The numbers are random, but a process can create many objects and keep those
 * with suitable numbers. Without the seed, which rhashtable draws for each
 * table, the process could fill one bucket and slow down every look-up there.
 */
static inline u32 arx_ids_hash(const void *nr, u32 len, u32 seed)
{
	return jhash_1word(*(const u32 *)nr, seed);
}

static inline int arx_ids_differ(struct rhashtable_compare_arg *arg,
				 const void *entry)
{
	return *(const u32 *)arg->key != ((const struct arx_id *)entry)->nr;
}

static const struct rhashtable_params arx_ids_params = {
	.key_len = sizeof(u32),
	.key_offset = offsetof(struct arx_id, nr),
	.head_offset = offsetof(struct arx_id, node),
	.hashfn = arx_ids_hash,
	.obj_cmpfn = arx_ids_differ,
	.automatic_shrinking = true,
};

void arx_ids_init(struct arx_ids *ids, unsigned int bits);
void arx_ids_destroy(struct arx_ids *ids);
int arx_ids_add(struct arx_ids *ids, struct arx_id *id);
void arx_ids_remove(struct arx_ids *ids, struct arx_id *id);

/**
 * arx_ids_find - the embedded number of an object, or NULL
 * @ids: the numbers
 * @nr: any value, from the wire or from a user
 *
 * Context: RCU read side or in a section; the object is valid to the end of it.
 */
static inline struct arx_id *arx_ids_find(struct arx_ids *ids, u32 nr)
{
	return rhashtable_lookup(&ids->taken, &nr, arx_ids_params);
}

#endif /* ARX_IDS_H */
