// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Unguessable numbers: drawn at random, at rest for a while once freed. */

#include <linux/bits.h>
#include <linux/random.h>

#include "ids.h"

/**
 * arx_ids_init - make an empty set of numbers
 * @ids: to initialise
 * @bits: width of the numbers; never drawn are 0 and 1 (QP0, QP1) and the
 *	highest (the multicast QPN)
 */
void arx_ids_init(struct arx_ids *ids, unsigned int bits)
{
	xa_init_flags(&ids->xa, XA_FLAGS_LOCK_BH);
	ids->bits = bits;
	spin_lock_init(&ids->lock);
	memset(ids->resting, 0, sizeof(ids->resting));
	ids->next = 0;
}

/**
 * arx_ids_destroy - free the set; all objects must have been removed
 * @ids: to free
 */
void arx_ids_destroy(struct arx_ids *ids)
{
	xa_destroy(&ids->xa);
}

/**
 * arx_ids_add - give an object a number nobody can guess
 * @ids: the set
 * @object: to be found under the number at once
 * @id: receives the number
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, or -ENOSPC when the space is nearly full.
 */
int arx_ids_add(struct arx_ids *ids, void *object, u32 *id)
{
	int tries;
	int err;

	for (tries = 0; tries < 64; tries++) {
		u32 n = get_random_u32() >> (32 - ids->bits);

		if (n < 2 || n == GENMASK(ids->bits - 1, 0))
			continue;
		err = xa_insert_bh(&ids->xa, n, object, GFP_KERNEL_ACCOUNT);
		if (!err)
			*id = n;
		if (err != -EBUSY)
			return err;
	}
	return -ENOSPC;
}

/**
 * arx_ids_remove - take an object out and let its number rest
 * @ids: the set
 * @id: the object's number
 *
 * Readers that found the object earlier may use it until a grace period ends.
 */
void arx_ids_remove(struct arx_ids *ids, u32 id)
{
	u32 woken;

	/* A store over an entry that is there needs no memory. */
	xa_store_bh(&ids->xa, id, XA_ZERO_ENTRY, GFP_ATOMIC);

	spin_lock_bh(&ids->lock);
	woken = ids->resting[ids->next];
	ids->resting[ids->next] = id;
	ids->next = (ids->next + 1) % ARX_IDS_QUARANTINE;
	spin_unlock_bh(&ids->lock);

	if (woken)
		xa_erase_bh(&ids->xa, woken);
}
