// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Kernel copies of send WQEs, from fetch to completion. Their number grows with
 * the number of outstanding requests, up to the entries of the send ring or to
 * ARX_SWQES_MAX.
 */

#include <linux/overflow.h>

#include "account.h"
#include "swqes.h"

/*
 * Initial number of copies. Most QPs never have more requests outstanding; the
 * array of the others grows soon.
 */
#define ARX_SWQES	8U

/**
 * arx_swqes_init - allocate the first copies
 * @qp: being created; swqe_size is set
 * @entries: number of entries of its send ring
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int arx_swqes_init(struct arx_qp *qp, u32 entries)
{
	qp->swqe_mask = min(entries, ARX_SWQES) - 1;
	qp->swqes = kcalloc(qp->swqe_mask + 1, qp->swqe_size,
			    GFP_KERNEL_ACCOUNT);
	return qp->swqes ? 0 : -ENOMEM;
}

/* Allocate @room copies, charged to the QP's application. */
static void *arx_swqes_alloc(struct arx_qp *qp, u32 room, bool atomic)
{
	return arx_charged_zalloc(qp->memcg, array_size(room, qp->swqe_size),
				  atomic ? GFP_NOWAIT : GFP_KERNEL);
}

/*
 * Move the copies to @new, which has room for @room. Returns the former array.
 */
static void *arx_swqes_move(struct arx_qp *qp, void *new, u32 room)
{
	void *old = qp->swqes;
	u32 i;

	lockdep_assert_held(&qp->req.lock);
	spin_lock(&qp->comp.lock);
	for (i = qp->comp.done; i != qp->req.fetched; i++)
		memcpy(new + (size_t)(i & (room - 1)) * qp->swqe_size,
		       arx_qp_swqe(qp, i), qp->swqe_size);
	qp->swqes = new;
	qp->swqe_mask = room - 1;
	spin_unlock(&qp->comp.lock);
	return old;
}

/* Twice the present number of copies, or 0: there are as many as may be. */
static u32 arx_swqes_more(const struct arx_qp *qp)
{
	u32 room = 2 * (READ_ONCE(qp->swqe_mask) + 1);

	return room > min(arx_ring_entries(&qp->sq), ARX_SWQES_MAX) ? 0 : room;
}

/**
 * arx_swqes_grow - the part of arx_swqes_add() that may wait for memory
 * @qp: any QP
 *
 * Only this function and arx_swqes_add() change the size of the array. It may
 * have been asked for again while it ran.
 *
 * Context: may sleep.
 * Return: true if there is more room now: the requester must run.
 */
bool arx_swqes_grow(struct arx_qp *qp)
{
	u32 room = arx_swqes_more(qp);
	void *new;

	if (!room)
		return false;
	new = arx_swqes_alloc(qp, room, false);
	if (!new) {
		WRITE_ONCE(qp->full, true);
		return false;
	}
	spin_lock_bh(&qp->req.lock);
	if (room > qp->swqe_mask + 1)
		new = arx_swqes_move(qp, new, room);
	spin_unlock_bh(&qp->req.lock);
	kvfree(new);
	return true;
}

/**
 * arx_swqes_add - double the room for copies of send WQEs
 * @qp: any QP
 *
 * Context: bottom halves off; req.lock held, by a caller without a pointer to a
 * copy, because the copies move. Copies are used only under that lock or
 * comp.lock.
 * Return: false if there is no more room yet, there is one copy for each slot
 * of the ring, there are ARX_SWQES_MAX, or no memory.
 */
bool arx_swqes_add(struct arx_qp *qp)
{
	u32 room = arx_swqes_more(qp);
	void *new;

	if (!room)
		return false;
	if (array_size(room, qp->swqe_size) > ARX_SWQES_ATOMIC) {
		if (!READ_ONCE(qp->full))
			queue_work(system_unbound_wq, &qp->grow);
		return false;
	}
	new = arx_swqes_alloc(qp, room, true);
	if (!new)
		return false;
	/* arx_swqes_grow() may have made the old one */
	kvfree(arx_swqes_move(qp, new, room));
	return true;
}
