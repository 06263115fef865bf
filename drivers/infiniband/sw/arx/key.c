// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The life of keys. key.h has the look-up. */

#include <linux/random.h>

#include "key.h"

/**
 * arx_key_add - give a key its number
 * @dev: device
 * @key: kind and PD are set; it allows no access before arx_key_grant()
 *
 * Only the upper part of a key must be unguessable.
 *
 * Context: may sleep.
 * Return: 0, or the error of arx_ids_add().
 */
int arx_key_add(struct arx_dev *dev, struct arx_key *key)
{
	int err = arx_ids_add(&dev->keys, &key->id);

	if (!err)
		key->value = key->id.nr << 8 | get_random_u8();
	return err;
}

/**
 * arx_key_grant - make a key valid
 * @key: complete; nobody else changes it
 * @value: lkey and rkey; its upper 24 bits are the key's own
 *
 * Context: any.
 */
void arx_key_grant(struct arx_key *key, u32 value)
{
	WRITE_ONCE(key->value, value);
	/* Pairs with arx_key_allows(): a valid key is complete. */
	smp_store_release(&key->state, ARX_KEY_VALID);
}

/**
 * arx_key_change - change the rights of a key
 * @key: valid
 * @pd: its PD from now on
 * @access: enum ib_access_flags
 *
 * When the function returns, nobody uses the former rights any more.
 *
 * Context: may sleep.
 */
void arx_key_change(struct arx_key *key, struct ib_pd *pd, int access)
{
	WRITE_ONCE(key->access, access);
	WRITE_ONCE(key->pd, pd);
	arx_section_wait();
}

/**
 * arx_key_invalidate - take a key back for a request
 * @dev: device of the key
 * @pd: protection domain of the QP
 * @value: of a revocable key; no other can be invalidated
 *
 * A key that is invalid already is no error. When the function returns 0,
 * nobody reads or writes the memory through the key any more. It does not wait
 * for a request that does so now on another CPU, because bottom halves are off.
 * The caller tries again later; the key gets no new users until then.
 *
 * Context: in a section.
 * Return: 0, -EBUSY if the memory is in use, or -EINVAL if there is no such key.
 */
int arx_key_invalidate(struct arx_dev *dev, struct ib_pd *pd, u32 value)
{
	struct arx_key *key = arx_key_of(dev, value);

	if (!key || !arx_key_is_revocable(key) ||
	    READ_ONCE(key->value) != value || READ_ONCE(key->pd) != pd)
		return -EINVAL;
	WRITE_ONCE(key->state, ARX_KEY_FREE);
	smp_mb();	/* pairs with arx_key_get() */
	return atomic_read_acquire(&key->users) ? -EBUSY : 0;
}

/**
 * arx_key_remove - end a key
 * @dev: device
 * @key: from arx_key_add(); nobody finds or uses it afterwards
 *
 * Context: may sleep, until all sections have been left.
 */
void arx_key_remove(struct arx_dev *dev, struct arx_key *key)
{
	arx_ids_remove(&dev->keys, &key->id);
	arx_section_wait();
}
