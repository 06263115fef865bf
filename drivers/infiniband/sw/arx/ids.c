// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Unguessable numbers: drawn at random, at rest for a while once freed. */

#include <linux/bits.h>
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "ids.h"

/**
 * arx_ids_init - make an empty set of numbers
 * @ids: to initialise
 * @bits: width of the numbers; never drawn are 0 and 1 (QP0, QP1) and the
 *	highest (the multicast QPN)
 *
 * Context: may sleep.
 */
void arx_ids_init(struct arx_ids *ids, unsigned int bits)
{
	/* Fails for parameters that make no sense; its memory it insists on. */
	WARN_ON(rhashtable_init(&ids->taken, &arx_ids_params));
	ids->bits = bits;
	spin_lock_init(&ids->lock);
	memset(ids->resting, 0, sizeof(ids->resting));
	ids->next = 0;
}

static void arx_ids_free(void *ptr, void *arg)
{
	kfree(ptr);
}

/**
 * arx_ids_destroy - free the set; all objects must have been removed
 * @ids: to free
 *
 * Context: may sleep.
 */
void arx_ids_destroy(struct arx_ids *ids)
{
	rhashtable_free_and_destroy(&ids->taken, arx_ids_free, NULL);
}

/**
 * arx_ids_add - give an object a number nobody can guess
 * @ids: the set
 * @object: to be found under the number at once
 * @id: receives the number
 *
 * Context: may sleep.
 * Return: 0, -ENOSPC when the space is nearly full, or an error of
 * rhashtable's, such as -ENOMEM.
 */
int arx_ids_add(struct arx_ids *ids, void *object, u32 *id)
{
	struct arx_id *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	int err = -EEXIST;
	int tries;

	if (!new)
		return -ENOMEM;
	new->object = object;
	for (tries = 0; tries < 64; tries++) {
		new->id = get_random_u32() >> (32 - ids->bits);
		if (new->id < 2 || new->id == GENMASK(ids->bits - 1, 0))
			continue;
		*id = new->id;
		err = rhashtable_lookup_insert_fast(&ids->taken, &new->node,
						    arx_ids_params);
		if (!err)
			return 0;
		/* Short of memory, or busy growing. */
		if (err != -EEXIST)
			fsleep(USEC_PER_MSEC);
	}
	kfree(new);
	return err == -EEXIST ? -ENOSPC : err;
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
	struct arx_id *freed, *woken;

	rcu_read_lock();
	freed = rhashtable_lookup(&ids->taken, &id, arx_ids_params);
	rcu_read_unlock();
	WRITE_ONCE(freed->object, NULL);

	spin_lock_bh(&ids->lock);
	woken = ids->resting[ids->next];
	ids->resting[ids->next] = freed;
	ids->next = (ids->next + 1) % ARX_IDS_QUARANTINE;
	spin_unlock_bh(&ids->lock);

	if (!woken)
		return;
	rhashtable_remove_fast(&ids->taken, &woken->node, arx_ids_params);
	kfree_rcu(woken, rcu);
}
