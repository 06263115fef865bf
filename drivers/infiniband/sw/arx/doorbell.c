// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The doorbell: a file of its own, so that a kick avoids uverbs' locks,
 * attribute parsing and object look-up. The caller does the work.
 */

#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <rdma/uverbs_std_types.h>

#include "doorbell.h"
#include "requester.h"
#include "responder.h"
#include "schedule.h"
#include "state.h"
#include "worker.h"

#define UVERBS_MODULE_NAME arx
#include <rdma/uverbs_named_ioctl.h>

/* Shares that a kick works through itself, before the worker takes over. */
#define ARX_KICK_SHARES		8

/**
 * struct arx_doorbell - the object behind the file
 * @uobj: the core's part; the file holds it until it is released
 * @uctx: context whose QPs it kicks; NULL once the object has been destroyed,
 *	which for a removed device is before the file is closed. A kick only
 *	compares it
 * @lock: serialises setting @uctx to NULL with code that follows it: a context
 *	lives longer than its objects
 */
struct arx_doorbell {
	struct ib_uobject uobj;
	struct ib_ucontext *uctx;
	struct mutex lock;	/* uctx is followed */
};

/*
 * The context that owns a QP that can be kicked. A QP found by its number stays
 * valid to the end of the section, its PD outlives it, and the core frees
 * uobjects after a grace period. QPs of kernel consumers have a PD without
 * uobject. A target QP of XRC, which several processes may use, has no PD, and
 * nothing to kick for.
 */
static struct ib_ucontext *arx_doorbell_owner(const struct arx_qp *qp)
{
	const struct ib_uobject *uobj;

	if (!arx_qp_has_requester(qp))
		return NULL;
	uobj = READ_ONCE(qp->ib.pd->uobject);
	return uobj ? READ_ONCE(uobj->context) : NULL;
}

/* What follows a share of a kick's work, beside 0 and errors. */
enum {
	ARX_KICK_AGAIN = 1,	/* another share */
	ARX_KICK_ADOPT,		/* this process gets the worker, then another */
};

/*
 * True if the kick goes on after share @nth. The thread takes over what is left
 * after some shares, or when a signal waits. Nobody takes over from a process
 * that could not start a thread: only its death ends the kick then. The thread
 * may be another process's, which is stopped: a kick flushes all that it finds.
 */
static bool arx_doorbell_goes_on(const struct arx_qp *qp, int nth)
{
	if (arx_worker_is_gone(qp))
		return !fatal_signal_pending(current);
	return !signal_pending(current) &&
	       (nth + 1 < ARX_KICK_SHARES ||
		arx_qp_may(qp, ARX_QP_FLUSH | ARX_QP_FLUSH_RECV));
}

/*
 * Do share @nth of the kick's work. Returns what follows, or an error. A QP
 * that is destroyed meanwhile has nothing more to send.
 */
static int arx_doorbell_kick(const struct ib_ucontext *uctx, u32 qpn, int nth)
{
	struct arx_qp *qp = arx_qp_find(qpn);
	bool more;

	if (!qp || arx_doorbell_owner(qp) != uctx)
		return nth ? 0 : -EINVAL;

	if (!nth)
		arx_count(qp, KICKS);
	more = arx_requester_kick(qp);
	if (arx_qp_may(qp, ARX_QP_FLUSH_RECV))
		more |= arx_responder_kick(qp);
	if (arx_worker_is_gone(qp) && !nth)
		return ARX_KICK_ADOPT;
	if (more && arx_doorbell_goes_on(qp, nth))
		return ARX_KICK_AGAIN;
	if (more && !arx_qp_go_on_charged(qp))
		arx_qp_go_on(qp);
	return 0;
}

/*
 * The process whose thread copied has ended, and this one has imported its
 * context (or inherited it). If there can be no thread, kicks do all copies.
 */
static void arx_doorbell_adopt(struct arx_doorbell *doorbell)
{
	mutex_lock(&doorbell->lock);
	if (doorbell->uctx)
		arx_worker_start(to_arx_ucontext(doorbell->uctx)->worker);
	mutex_unlock(&doorbell->lock);
}

/*
 * Copies on this machine are the caller's work, and begin in its time: for
 * short ones that is cheaper than starting the worker. No other task waits
 * meanwhile: between two shares the caller may be interrupted or preempted.
 */
static int arx_doorbell_kicks(struct arx_doorbell *doorbell, u32 qpn)
{
	int nth = 0;
	int more;

	do {
		const struct ib_ucontext *uctx;

		arx_section_enter();
		uctx = READ_ONCE(doorbell->uctx);
		more = uctx ? arx_doorbell_kick(uctx, qpn, nth) : -EIO;
		arx_section_leave();
		if (unlikely(more == ARX_KICK_ADOPT))
			arx_doorbell_adopt(doorbell);
		cond_resched();
		nth++;
	} while (more > 0);
	return more;
}

static long arx_doorbell_ioctl(struct file *file, unsigned int cmd,
			       unsigned long arg)
{
	struct arx_doorbell *doorbell =
		container_of((struct ib_uobject *)file->private_data,
			     struct arx_doorbell, uobj);

	if (cmd != ARX_IOCTL_KICK)
		return -ENOTTY;
	if (arg > ARX_QPN_MASK)
		return -EINVAL;

	return arx_doorbell_kicks(doorbell, arg);
}

/*
 * A kick that is still running uses a QP that it has found; the QP's
 * destruction waits for the kick. The kick compares the context's address only.
 */
static void arx_doorbell_destroy(struct ib_uobject *uobj,
				 enum rdma_remove_reason why)
{
	struct arx_doorbell *doorbell =
		container_of(uobj, struct arx_doorbell, uobj);

	mutex_lock(&doorbell->lock);
	WRITE_ONCE(doorbell->uctx, NULL);
	mutex_unlock(&doorbell->lock);
}

static const struct file_operations arx_doorbell_fops = {
	.owner = THIS_MODULE,
	.release = uverbs_uobject_fd_release,
	.unlocked_ioctl = arx_doorbell_ioctl,
	.compat_ioctl = arx_doorbell_ioctl,	/* the argument is a number */
};

static int
UVERBS_HANDLER(ARX_METHOD_DOORBELL_ALLOC)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj =
		uverbs_attr_get_uobject(attrs, ARX_ATTR_DOORBELL_ALLOC_FD);
	struct arx_doorbell *doorbell =
		container_of(uobj, struct arx_doorbell, uobj);

	mutex_init(&doorbell->lock);
	WRITE_ONCE(doorbell->uctx, uobj->context);
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(ARX_METHOD_DOORBELL_ALLOC,
			    UVERBS_ATTR_FD(ARX_ATTR_DOORBELL_ALLOC_FD,
					   ARX_OBJECT_DOORBELL,
					   UVERBS_ACCESS_NEW,
					   UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(ARX_OBJECT_DOORBELL,
			    UVERBS_TYPE_ALLOC_FD(sizeof(struct arx_doorbell),
						 arx_doorbell_destroy,
						 &arx_doorbell_fops,
						 "[arx-doorbell]", O_RDWR),
			    &UVERBS_METHOD(ARX_METHOD_DOORBELL_ALLOC));

/* Objects of arx that uverbs offers beyond the common ones. */
const struct uapi_definition arx_doorbell_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(ARX_OBJECT_DOORBELL),
	{}
};
