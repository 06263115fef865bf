// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Unguessable numbers: drawn at random, quarantined for a while once freed. */

#include <linux/bits.h>
#include <linux/delay.h>
#include <linux/random.h>

#include "ids.h"

/**
 * arx_ids_init - create an empty set of numbers
 * @ids: to initialise
 * @bits: width of the numbers; 0 and 1 (QP0, QP1) and the highest number (the
 *	multicast QPN) are never drawn
 *
 * Context: may sleep.
 */
void arx_ids_init(struct arx_ids *ids, unsigned int bits)
{
	/* Fails only for invalid parameters; the allocation does not fail. */
	WARN_ON(rhashtable_init(&ids->taken, &arx_ids_params));
	ids->bits = bits;
	spin_lock_init(&ids->lock);
	memset(ids->quarantined, 0, sizeof(ids->quarantined));
	memset(ids->remainders, 0, sizeof(ids->remainders));
	ids->next = 0;
}

/**
 * arx_ids_destroy - free the set; all objects must have been removed
 * @ids: to free
 *
 * Context: may sleep.
 */
void arx_ids_destroy(struct arx_ids *ids)
{
	rhashtable_destroy(&ids->taken);
}

static u16 *arx_ids_same_remainder(struct arx_ids *ids, u32 nr)
{
	return &ids->remainders[nr % ARX_IDS_REMAINDERS];
}

/* Replace the oldest quarantined number. */
static void arx_ids_quarantine(struct arx_ids *ids, u32 nr)
{
	u32 *slot = &ids->quarantined[ids->next];

	if (*slot)
		--*arx_ids_same_remainder(ids, *slot);
	*slot = nr;
	++*arx_ids_same_remainder(ids, nr);
	ids->next = (ids->next + 1) % ARX_IDS_QUARANTINE;
}

/*
 * One lock for drawing and for quarantine, so that no number is between the
 * two.
 */
static int arx_ids_take(struct arx_ids *ids, struct arx_id *id)
{
	int err = -EEXIST;

	spin_lock_bh(&ids->lock);
	if (!*arx_ids_same_remainder(ids, id->nr))
		err = rhashtable_lookup_insert_fast(&ids->taken, &id->node,
						    arx_ids_params);
	spin_unlock_bh(&ids->lock);
	return err;
}

/**
 * arx_ids_add - give an object an unguessable number
 * @ids: the set
 * @id: embedded in the object, which can be found by the number at once
 *
 * Context: may sleep.
 * Return: 0, -ENOSPC when the space is nearly full, or an error of rhashtable,
 * such as -ENOMEM.
 */
int arx_ids_add(struct arx_ids *ids, struct arx_id *id)
{
	int err = -EEXIST;
	int tries;

	for (tries = 0; tries < 64; tries++) {
		id->nr = get_random_u32() >> (32 - ids->bits);
		if (id->nr < 2 || id->nr == GENMASK(ids->bits - 1, 0))
			continue;
		err = arx_ids_take(ids, id);
		if (!err)
			return 0;
		/* Out of memory, or the table is being resized. */
		if (err != -EEXIST)
			fsleep(USEC_PER_MSEC);
	}
	return err == -EEXIST ? -ENOSPC : err;
}

/**
 * arx_ids_remove - remove an object and quarantine its number
 * @ids: the set
 * @id: embedded in the object, as added
 *
 * Readers that found the object earlier may use it until a grace period ends
 * or, if all of them are in sections, until arx_section_wait() returns. The
 * object must not be freed or added again before that.
 */
void arx_ids_remove(struct arx_ids *ids, struct arx_id *id)
{
	spin_lock_bh(&ids->lock);
	rhashtable_remove_fast(&ids->taken, &id->node, arx_ids_params);
	arx_ids_quarantine(ids, id->nr);
	spin_unlock_bh(&ids->lock);
}
