/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef ARX_IDS_H
#define ARX_IDS_H

#include <linux/xarray.h>

/* How many freed ids rest before they may be drawn again. */
#define ARX_IDS_QUARANTINE	1024

/**
 * struct arx_ids - unguessable numbers for QPs, memory regions, AHs and SRQs
 * @xa: number to object; a resting number holds XA_ZERO_ENTRY
 * @bits: width of a number
 * @lock: of @resting and @next
 * @resting: ring of freed numbers
 * @next: place of the next freed number in @resting
 *
 * Numbers come from the kernel's CSPRNG. Look-ups are lock free: an object is
 * freed only after a grace period behind arx_ids_remove().
 */
struct arx_ids {
	struct xarray xa;
	unsigned int bits;
	spinlock_t lock;	/* of resting and next */
	u32 resting[ARX_IDS_QUARANTINE];
	u32 next;
};

void arx_ids_init(struct arx_ids *ids, unsigned int bits);
void arx_ids_destroy(struct arx_ids *ids);
int arx_ids_add(struct arx_ids *ids, void *object, u32 *id);
void arx_ids_remove(struct arx_ids *ids, u32 id);

/**
 * arx_ids_find - the object of a number, or NULL
 * @ids: the numbers
 * @id: any value, from the wire or from a user
 *
 * Context: RCU read side; the object is valid to its end.
 */
static inline void *arx_ids_find(struct arx_ids *ids, u32 id)
{
	return xa_load(&ids->xa, id);
}

#endif /* ARX_IDS_H */
