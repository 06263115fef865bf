// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The life of keys. key.h has the look-up. */

#include <linux/random.h>

#include "key.h"
#include "trace.h"

/**
 * arx_key_init - prepare a key
 * @key: zeroed memory
 * @kind: what it names
 * @pd: protection domain
 */
void arx_key_init(struct arx_key *key, enum arx_key_kind kind,
		  struct ib_pd *pd)
{
	key->kind = kind;
	key->pd = pd;
	spin_lock_init(&key->lock);
}

/**
 * arx_key_add - give a key its number
 * @dev: device
 * @key: from arx_key_init(); it allows no access before arx_key_grant()
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
 * When the function returns, nobody uses the former rights any more. A section
 * may see the former PD and then the present rights. So there are only rights
 * that both PDs have until no section is left that may have seen the former PD.
 *
 * Context: may sleep.
 */
void arx_key_change(struct arx_key *key, struct ib_pd *pd, int access)
{
	WRITE_ONCE(key->access, key->access & access);
	/* Pairs with arx_key_allows(): no right of the former PD alone. */
	smp_store_release(&key->pd, pd);
	arx_section_wait();
	WRITE_ONCE(key->access, access);
}

static void arx_key_unbind(struct arx_key *key)
{
	if (key->region)
		atomic_dec(&key->region->windows);
	key->region = NULL;
}

/*
 * End all access through a revocable key, whose lock is held. When this returns
 * 0, nobody reads or writes the memory through the key any more. -EBUSY: a
 * request does so now on another CPU. This does not wait for the request,
 * because bottom halves are off; the caller tries again later, and the key gets
 * no new users until then.
 */
static int arx_key_take_back(struct arx_key *key)
{
	WRITE_ONCE(key->state, ARX_KEY_FREE);
	smp_mb();	/* pairs with arx_key_get() */
	if (atomic_read_acquire(&key->users))
		return -EBUSY;
	trace_arx_key_revoked(key);
	arx_key_unbind(key);
	return 0;
}

/**
 * arx_key_rebind - end a window's access and count it for another region
 * @key: of a window
 * @region: key of the region, or NULL for none
 *
 * arx_key_grant() follows. The region does not end before the window does.
 *
 * Context: @key's lock held, @region found in the same section.
 * Return: 0, -EBUSY if the memory of the present region is in use, or -EINVAL
 * if @region is about to end.
 */
int arx_key_rebind(struct arx_key *key, struct arx_key *region)
{
	int err;

	if (region && !atomic_inc_unless_negative(&region->windows))
		return -EINVAL;
	err = arx_key_take_back(key);
	if (!err)
		key->region = region;
	else if (region)
		atomic_dec(&region->windows);
	return err;
}

/**
 * arx_key_invalidate - take a key back for a request
 * @use: device, key, and PD and QP of the request. Only keys of fast
 *	registration and of windows of type 2 can be invalidated
 *
 * A key that is invalid already is no error.
 *
 * Context: in a section, bottom halves off.
 * Return: 0 if nobody reads or writes the memory through the key any more;
 * -EBUSY if a request does so now: try again later; -EINVAL if there is no such
 * key.
 */
int arx_key_invalidate(const struct arx_key_use *use)
{
	struct arx_key *key = arx_key_of(use->dev, use->value);
	int err = -EINVAL;

	if (!key ||
	    (key->kind != ARX_KEY_FAST && key->kind != ARX_KEY_WINDOW_2))
		return -EINVAL;
	spin_lock(&key->lock);
	if (READ_ONCE(key->value) == use->value && key->pd == use->pd &&
	    (!key->qpn || key->qpn == use->qpn))
		err = arx_key_take_back(key);
	spin_unlock(&key->lock);
	return err;
}

/**
 * arx_key_close - let no window be bound to a region any more
 * @key: of a region
 *
 * Context: any.
 * Return: true, or false if a window is bound to it.
 */
bool arx_key_close(struct arx_key *key)
{
	return atomic_cmpxchg(&key->windows, 0, ARX_KEY_CLOSED) <= 0;
}

/**
 * arx_key_open - undo arx_key_close()
 * @key: of a region
 *
 * Context: any.
 */
void arx_key_open(struct arx_key *key)
{
	atomic_set(&key->windows, 0);
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
	trace_arx_key_revoked(key);
	arx_key_unbind(key);
}
