// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows (10.6.7): a work request binds a window to a range of a region
 * and so gives peers access without a system call. Type 1 is bound again as
 * often as one likes, and a bind of 0 bytes ends its access. Type 2 is bound to
 * a QP, too (type 2B), and must be invalidated before it is bound again.
 */

#include "mw.h"

#define ARX_MW_REMOTE	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_FLUSH_GLOBAL | \
			 IB_ACCESS_FLUSH_PERSISTENT)

/* Access that a bind may ask for; IB_ACCESS_LOCAL_WRITE means nothing. */
#define ARX_MW_ACCESS	(ARX_MW_REMOTE | IB_ACCESS_LOCAL_WRITE |	\
			 IB_ZERO_BASED | IB_ACCESS_OPTIONAL)

static struct arx_mw *to_arx_mw(struct ib_mw *ib)
{
	return container_of(ib, struct arx_mw, ib);
}

/* The region to which a window may be bound, or NULL. */
static struct arx_key *arx_mw_region(const struct arx_key_use *by,
				     const struct arx_send_wqe *wqe)
{
	struct arx_key *region = arx_key_of(by->dev, wqe->bind.mr_lkey);
	struct arx_key_use range = {
		.dev = by->dev,
		.pd = by->pd,
		.value = wqe->bind.mr_lkey,
		.access = IB_ACCESS_MW_BIND,
		.iova = wqe->bind.addr,
		.length = wqe->bind.length,
	};

	if (wqe->bind.access & ~ARX_MW_ACCESS)
		return NULL;
	/* 10.6.7.2.1: a region that may not be written gives no such right. */
	if (wqe->bind.access & (IB_ACCESS_REMOTE_WRITE |
				IB_ACCESS_REMOTE_ATOMIC))
		range.access |= IB_ACCESS_LOCAL_WRITE;
	/* The region knows whether its memory is persistent. */
	range.access |= wqe->bind.access & IB_ACCESS_FLUSH_PERSISTENT;
	if (!region || !arx_key_has_windows(region) ||
	    !arx_key_allows(region, &range))
		return NULL;
	return region;
}

static int arx_mw_bind_locked(struct arx_key *key, const struct arx_key_use *by,
			      const struct arx_send_wqe *wqe)
{
	bool type_2 = key->kind == ARX_KEY_WINDOW_2;
	struct arx_key *region = NULL;
	int err;

	if (type_2 && (key->state != ARX_KEY_FREE || !wqe->bind.length))
		return -EINVAL;
	if (wqe->bind.length) {
		region = arx_mw_region(by, wqe);
		if (!region)
			return -EINVAL;
	}
	err = arx_key_rebind(key, region);
	if (err)
		return err;
	if (!region) {
		WRITE_ONCE(key->value, wqe->bind.new_rkey);
		return 0;
	}
	key->access = wqe->bind.access & ARX_MW_REMOTE;
	key->qpn = type_2 ? by->qpn : 0;
	key->iova = wqe->bind.access & IB_ZERO_BASED ? 0 : wqe->bind.addr;
	key->length = wqe->bind.length;
	key->mr = region->mr;
	key->offset = region->offset + wqe->bind.addr - region->iova;
	arx_key_grant(key, wqe->bind.new_rkey);
	return 0;
}

/**
 * arx_mw_bind - bind a window
 * @by: device, and PD and QP of the request
 * @wqe: a copy of the request, not checked
 *
 * A bind that fails changes nothing, unless it is tried again later.
 *
 * Context: in a section, bottom halves off.
 * Return: 0, -EBUSY if the memory to which the window is bound is in use, or
 * -EINVAL.
 */
int arx_mw_bind(const struct arx_key_use *by, const struct arx_send_wqe *wqe)
{
	struct arx_key *key = arx_key_of(by->dev, wqe->bind.mw_rkey);
	int err;

	if (!key || (key->kind != ARX_KEY_WINDOW_1 &&
		     key->kind != ARX_KEY_WINDOW_2))
		return -EINVAL;
	if (key->pd != by->pd || wqe->bind.new_rkey >> 8 != key->id.nr)
		return -EINVAL;
	spin_lock(&key->lock);
	err = arx_mw_bind_locked(key, by, wqe);
	spin_unlock(&key->lock);
	return err;
}

/**
 * arx_alloc_mw - verb
 * @ib: window; type, device and PD are set
 * @udata: unused
 *
 * Return: 0, -EINVAL for another type, -ENOMEM.
 */
int arx_alloc_mw(struct ib_mw *ib, struct ib_udata *udata)
{
	struct arx_mw *mw = to_arx_mw(ib);
	int err;

	if (ib->type != IB_MW_TYPE_1 && ib->type != IB_MW_TYPE_2)
		return -EINVAL;
	err = arx_object_begin(ib->device, ARX_KIND_MW);
	if (err)
		return err;
	arx_key_init(&mw->key, ib->type == IB_MW_TYPE_1 ? ARX_KEY_WINDOW_1 :
							  ARX_KEY_WINDOW_2,
		     ib->pd);
	err = arx_key_add(to_arx_dev(ib->device), &mw->key);
	if (err)
		arx_object_end(ib->device, ARX_KIND_MW);
	ib->rkey = mw->key.value;
	return err;
}

/**
 * arx_dealloc_mw - verb
 * @ib: window, bound or not
 *
 * Context: may sleep, until no section uses the window.
 * Return: 0.
 */
int arx_dealloc_mw(struct ib_mw *ib)
{
	arx_key_remove(to_arx_dev(ib->device), &to_arx_mw(ib)->key);
	arx_object_end(ib->device, ARX_KIND_MW);
	return 0;
}
