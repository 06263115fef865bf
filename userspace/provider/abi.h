/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The commands of uverbs with arx's part behind them. In its tree, rdma-core
 * generates the _STRUCT_ macros (the driver's fields without a tag) from the
 * kernel's header. libarx only uses .drv_payload. The macros are therefore
 * empty here, and rdma-core's build need not know the header.
 */
#ifndef ARX_KERN_ABI_H
#define ARX_KERN_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/arx-abi.h>

#define _STRUCT_arx_alloc_ucontext_resp	struct {}
#define _STRUCT_arx_create_cq_resp	struct {}
#define _STRUCT_arx_resize_cq_req	struct {}
#define _STRUCT_arx_resize_cq_resp	struct {}
#define _STRUCT_arx_create_qp_resp	struct {}
#define _STRUCT_arx_create_srq_resp	struct {}
#define _STRUCT_arx_modify_srq_req	struct {}
#define _STRUCT_arx_create_ah_resp	struct {}

DECLARE_DRV_CMD(uarx_get_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		empty, arx_alloc_ucontext_resp);
DECLARE_DRV_CMD(uarx_create_cq_ex, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		empty, arx_create_cq_resp);
DECLARE_DRV_CMD(uarx_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		arx_resize_cq_req, arx_resize_cq_resp);
DECLARE_DRV_CMD(uarx_create_qp, IB_USER_VERBS_EX_CMD_CREATE_QP,
		empty, arx_create_qp_resp);
DECLARE_DRV_CMD(uarx_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ,
		empty, arx_create_srq_resp);
DECLARE_DRV_CMD(uarx_create_srq_ex, IB_USER_VERBS_CMD_CREATE_XSRQ,
		empty, arx_create_srq_resp);
DECLARE_DRV_CMD(uarx_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		arx_modify_srq_req, empty);
DECLARE_DRV_CMD(uarx_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, arx_create_ah_resp);

#endif /* ARX_KERN_ABI_H */
