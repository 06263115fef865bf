// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* User contexts: what a process that opens the device has. */

#include <rdma/arx-abi.h>

#include "account.h"
#include "compat.h"
#include "uctx.h"
#include "worker.h"

/**
 * arx_alloc_ucontext - verb: a process opens the device
 * @ib: to be made; the core allocated it
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
 * arx_dealloc_ucontext - verb: a process closes the device
 * @ib: all its objects are gone
 */
void arx_dealloc_ucontext(struct ib_ucontext *ib)
{
	struct arx_ucontext *uctx = to_arx_ucontext(ib);

	arx_worker_end(uctx->worker);
	arx_user_put(uctx->user);
}

/**
 * arx_disassociate_ucontext - verb: the device is removed under a process
 * @ib: all its objects are gone
 *
 * That there is such a function tells the core that it need not wait for the
 * process. What there is to do was done when the objects were destroyed.
 */
void arx_disassociate_ucontext(struct ib_ucontext *ib)
{
}
