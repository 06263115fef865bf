// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The provider's interface to libibverbs: matching and opening devices. */
#include <stdlib.h>
#include <unistd.h>

#include "abi.h"
#include "arx.h"
#include "compat.h"

static void arx_free_context(struct ibv_context *ibctx)
{
	struct arx_context *ctx = to_arx_context(ibctx);

	close(ctx->doorbell);
	pthread_mutex_destroy(&ctx->qp_mutex);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static const struct verbs_context_ops arx_ctx_ops = {
	.advise_mr = ibv_cmd_advise_mr,
	.alloc_dm = arx_alloc_dm,
	.alloc_mw = arx_alloc_mw,
	.alloc_parent_domain = arx_alloc_parent_domain,
	.alloc_pd = arx_alloc_pd,
	.alloc_td = arx_alloc_td,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = arx_bind_mw,
	.close_xrcd = arx_close_xrcd,
	.create_ah = arx_create_ah,
	.create_cq = arx_create_cq,
	.create_cq_ex = arx_create_cq_ex,
	.create_qp = arx_create_qp,
	.create_qp_ex = arx_create_qp_ex,
	.create_srq = arx_create_srq,
	.create_srq_ex = arx_create_srq_ex,
	.dealloc_mw = arx_dealloc_mw,
	.dealloc_pd = arx_dealloc_pd,
	.dealloc_td = arx_dealloc_td,
	.dereg_mr = arx_dereg_mr,
	.destroy_ah = arx_destroy_ah,
	.destroy_cq = arx_destroy_cq,
	.destroy_qp = arx_destroy_qp,
	.destroy_srq = arx_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = arx_free_context,
	.free_dm = arx_free_dm,
	.get_srq_num = arx_get_srq_num,
	.import_dm = arx_import_dm,
	.import_mr = arx_import_mr,
	.import_pd = arx_import_pd,
	.modify_qp = arx_modify_qp,
	.modify_srq = arx_modify_srq,
	.open_qp = arx_open_qp,
	.open_xrcd = arx_open_xrcd,
	.poll_cq = arx_poll_cq,
	.post_recv = arx_post_recv,
	.post_send = arx_post_send,
	.post_srq_recv = arx_post_srq_recv,
	.query_device_ex = arx_query_device_ex,
	.query_port = arx_query_port,
	.query_qp = arx_query_qp,
	.query_rt_values = arx_query_rt_values,
	.query_srq = arx_query_srq,
	.reg_dm_mr = arx_reg_dm_mr,
	.reg_dmabuf_mr = arx_reg_dmabuf_mr,
	.reg_mr = arx_reg_mr,
	.req_notify_cq = arx_req_notify_cq,
	.cq_event = arx_cq_event,
	.rereg_mr = arx_rereg_mr,
	.modify_cq = arx_modify_cq,
	.resize_cq = arx_resize_cq,
	.unimport_dm = arx_unimport_dm,
	.unimport_mr = arx_unimport_mr,
	.unimport_pd = arx_unimport_pd,
};

static int arx_alloc_doorbell(struct arx_context *ctx)
{
	DECLARE_COMMAND_BUFFER(cmd, ARX_OBJECT_DOORBELL,
			       ARX_METHOD_DOORBELL_ALLOC, 1);
	struct ib_uverbs_attr *handle;
	int err;

	handle = fill_attr_out_fd(cmd, ARX_ATTR_DOORBELL_ALLOC_FD, 0);
	err = execute_ioctl(&ctx->vctx.context, cmd);
	if (err)
		return err;

	ctx->doorbell = read_attr_fd(ARX_ATTR_DOORBELL_ALLOC_FD, handle);
	return 0;
}

/* The context of @cmd_fd, without its commands: the kernel has it or not. */
static struct arx_context *arx_init_context(struct ibv_device *ibdev,
					    int cmd_fd)
{
	struct arx_context *ctx;

	return verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, vctx,
					    ARX_DRIVER_ID);
}

/* The kernel has the context. On failure @ctx is freed. */
static struct verbs_context *arx_use_context(struct arx_context *ctx, int err)
{
	if (err)
		goto err_free;

	err = arx_alloc_doorbell(ctx);
	if (err) {
		verbs_err(&ctx->vctx, "no doorbell: %d\n", err);
		goto err_free;
	}

	pthread_mutex_init(&ctx->qp_mutex, NULL);
	verbs_set_ops(&ctx->vctx, &arx_ctx_ops);
	return &ctx->vctx;

err_free:
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	errno = err;
	return NULL;
}

static struct verbs_context *arx_alloc_context(struct ibv_device *ibdev,
					       int cmd_fd, void *private_data)
{
	struct uarx_get_context_resp resp = {};
	struct uarx_get_context cmd = {};
	struct arx_context *ctx = arx_init_context(ibdev, cmd_fd);
	int err;

	if (!ctx)
		return NULL;
	err = arx_cmd_get_context(&ctx->vctx, &cmd.ibv_cmd, sizeof(cmd),
				  &resp.ibv_resp, sizeof(resp));
	return arx_use_context(ctx, err);
}

/*
 * Another process, or another user of libibverbs in this one, has opened the
 * device and passed its command file on. Both have all objects of the context
 * in common, but each has a doorbell of its own.
 */
static struct verbs_context *arx_import_context(struct ibv_device *ibdev,
						int cmd_fd)
{
	struct arx_context *ctx = arx_init_context(ibdev, cmd_fd);

	if (!ctx)
		return NULL;
	return arx_use_context(ctx, ibv_cmd_query_context(&ctx->vctx.context,
							  NULL));
}

static struct verbs_device *arx_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void arx_uninit_device(struct verbs_device *vdev)
{
	free(vdev);
}

/* By driver id only, because a link may have any name. */
static const struct verbs_match_ent arx_match_table[] = {
	VERBS_DRIVER_ID(ARX_DRIVER_ID),
	{}
};

static const struct verbs_device_ops arx_dev_ops = {
	.name = "arx",
	.match_min_abi_version = ARX_ABI_VERSION,
	.match_max_abi_version = ARX_ABI_VERSION,
	.match_table = arx_match_table,
	.alloc_device = arx_alloc_device,
	.uninit_device = arx_uninit_device,
	.alloc_context = arx_alloc_context,
	.import_context = arx_import_context,
};
PROVIDER_DRIVER(arx, arx_dev_ops);
