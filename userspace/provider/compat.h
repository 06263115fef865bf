/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Differences between releases of rdma-core. The private ABI is 34 up to
 * rdma-core 56, and from then on the number of the release that changed it
 * last.
 */
#ifndef ARX_COMPAT_H
#define ARX_COMPAT_H

#include <infiniband/driver.h>

#if IBVERBS_PABI_VERSION >= 57
#define arx_cmd_get_context(vctx, cmd, cmd_size, resp, resp_size)	\
	ibv_cmd_get_context(vctx, cmd, cmd_size, NULL, resp, resp_size)
#else
#define arx_cmd_get_context	ibv_cmd_get_context
#endif

#if IBVERBS_PABI_VERSION >= 59
#define arx_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_create_cq_ex(ctx, attr, NULL, cq, cmd, cmd_size, resp,	\
			     resp_size, 0)
#else
#define arx_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp, resp_size) \
	ibv_cmd_create_cq_ex(ctx, attr, cq, cmd, cmd_size, resp,	\
			     resp_size, 0)
#endif

#endif /* ARX_COMPAT_H */
