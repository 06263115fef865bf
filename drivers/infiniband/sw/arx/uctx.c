// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* User contexts: one for each open device of a process. */

#include <rdma/arx-abi.h>

#include "account.h"
#include "compat.h"
#include "uctx.h"
#include "worker.h"

/**
 * arx_alloc_ucontext - verb: a process opens the device
 * @ib: the context, allocated by the core
 * @udata: of the application
 *
 * Return: 0, -ENOMEM or -EFAULT.
 */
int arx_alloc_ucontext(struct ib_ucontext *ib, struct ib_udata *udata)
{
	struct arx_ucontext *uctx = to_arx_ucontext(ib);
	struct arx_alloc_ucontext_resp resp = {};
	int err;

	uctx->user = arx_user_current();
	if (!uctx->user)
		return -ENOMEM;
	uctx->worker = arx_worker_make();
	if (!uctx->worker) {
		arx_user_put(uctx->user);
		return -ENOMEM;
	}
	err = ib_respond_udata(udata, resp);
	if (err)
		arx_dealloc_ucontext(ib);
	return err;
}

/**
 * arx_query_ucontext - verb: another process imports an open device
 * @ib: the context
 * @attrs: of the command, to which the core has responded
 *
 * Return: 0.
 */
int arx_query_ucontext(struct ib_ucontext *ib, struct uverbs_attr_bundle *attrs)
{
	return 0;
}

/**
 * arx_dealloc_ucontext - verb: a process closes the device
 * @ib: context without objects
 */
void arx_dealloc_ucontext(struct ib_ucontext *ib)
{
	struct arx_ucontext *uctx = to_arx_ucontext(ib);

	arx_worker_end(uctx->worker);
	arx_user_put(uctx->user);
}

/**
 * arx_disassociate_ucontext - verb: the device is removed under a process
 * @ib: context without objects
 *
 * The existence of this function tells the core not to wait for the process.
 * The destruction of the objects has done all the work.
 */
void arx_disassociate_ucontext(struct ib_ucontext *ib)
{
}
