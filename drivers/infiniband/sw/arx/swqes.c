// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Kernel copies of send WQEs, from fetch to completion. Their number grows with
 * the number of outstanding requests, up to the entries of the send ring.
 */

#include <linux/memcontrol.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>

#include "swqes.h"

/*
 * Copies of send WQEs that a QP has room for in the beginning. Most QPs of many
 * have little outstanding, ever; those that have more soon have room for it.
 */
#define ARX_SWQES	8U

/**
 * arx_swqes_init - make room for the first copies
 * @qp: being made; swqe_size is set
 * @entries: of its send ring
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

/* Memory for @room copies, on the account of the QP's application. */
static void *arx_swqes_alloc(struct arx_qp *qp, u32 room, bool atomic)
{
	struct mem_cgroup *old = set_active_memcg(qp->memcg);
	gfp_t gfp = __GFP_ACCOUNT | __GFP_NOWARN;
	void *new;

	if (atomic)
		new = kcalloc(room, qp->swqe_size, gfp | GFP_NOWAIT);
	else
		new = kvcalloc(room, qp->swqe_size, gfp | GFP_KERNEL);
	set_active_memcg(old);
	return new;
}

/* Have the copies in @new, with @room for them. Returns what they were in. */
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

/**
 * arx_swqes_grow - what arx_swqes_add() left to a work that may wait for memory
 * @qp: any QP
 *
 * Nobody but this function and arx_swqes_add() changes how many copies there
 * are room for.
 *
 * Context: may sleep.
 * Return: true if there is more room now: the requester is to run.
 */
bool arx_swqes_grow(struct arx_qp *qp)
{
	u32 room = 2 * (READ_ONCE(qp->swqe_mask) + 1);
	void *new = arx_swqes_alloc(qp, room, false);

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
 * arx_swqes_add - have room for twice as many copies of send WQEs
 * @qp: any QP
 *
 * Context: bottom halves off; req.lock held, by somebody who has no pointer to
 * a copy: they move. Copies are only looked at under that lock or comp.lock.
 * Return: false if there is none yet, there is one for each slot of the ring, or
 * no memory.
 */
bool arx_swqes_add(struct arx_qp *qp)
{
	u32 room = 2 * (qp->swqe_mask + 1);
	void *new;

	if (room > arx_ring_entries(&qp->sq))
		return false;
	if (array_size(room, qp->swqe_size) > ARX_SWQES_ATOMIC) {
		if (!READ_ONCE(qp->full))
			queue_work(system_unbound_wq, &qp->grow);
		return false;
	}
	new = arx_swqes_alloc(qp, room, true);
	if (!new)
		return false;
	kfree(arx_swqes_move(qp, new, room));
	return true;
}
