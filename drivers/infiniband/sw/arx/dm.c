// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory, for programs that were written for cards with memory of their
 * own. arx takes memory of the kernel, which is allocated, charged and mapped
 * like a ring.
 */

#include <linux/slab.h>
#include <rdma/arx-abi.h>
#include <rdma/uverbs_std_types.h>

#include "dm.h"
#include "mr.h"
#include "ring.h"

#define UVERBS_MODULE_NAME arx
#include <rdma/uverbs_named_ioctl.h>

#define ARX_DM_MAPPING	UVERBS_ATTR_TYPE(struct arx_ring_info)

/**
 * struct arx_dm - device memory
 * @ib: the core's part, which counts the regions of the memory
 * @mem: the memory
 * @info: how the process maps it
 */
struct arx_dm {
	struct ib_dm ib;
	struct arx_ring_mem *mem;
	struct arx_ring_info info;
};

static struct arx_dm *to_arx_dm(struct ib_dm *ib)
{
	return container_of(ib, struct arx_dm, ib);
}

/**
 * arx_dealloc_dm - verb: free device memory
 * @ib: memory without regions
 * @attrs: unused
 *
 * Return: 0.
 */
int arx_dealloc_dm(struct ib_dm *ib, struct uverbs_attr_bundle *attrs)
{
	struct arx_dm *dm = to_arx_dm(ib);

	arx_ring_mem_destroy(dm->mem);
	arx_object_end(ib->device, ARX_KIND_DM);
	kfree(dm);
	return 0;
}

/**
 * arx_alloc_dm - verb: zeroed device memory
 * @ib: device
 * @uctx: context whose process may map it, and is charged
 * @attr: length, and logarithm of the alignment
 * @attrs: of the command; receives the mapping
 *
 * Context: process.
 * Return: the memory, -EINVAL for a length of 0, a length above ARX_MAX_DM or
 * an alignment above that of pages, -ENOMEM, also beyond the user's limit.
 */
struct ib_dm *arx_alloc_dm(struct ib_device *ib, struct ib_ucontext *uctx,
			   struct ib_dm_alloc_attr *attr,
			   struct uverbs_attr_bundle *attrs)
{
	struct arx_dm *dm;
	int err;

	if (!attr->length || attr->length > ARX_MAX_DM ||
	    attr->alignment > PAGE_SHIFT)
		return ERR_PTR(-EINVAL);
	err = arx_object_begin(ib, ARX_KIND_DM);
	if (err)
		return ERR_PTR(err);
	err = -ENOMEM;
	dm = kzalloc(sizeof(*dm), GFP_KERNEL_ACCOUNT);
	if (!dm)
		goto end;
	dm->ib.device = ib;
	dm->mem = arx_ring_mem_create(attr->length, uctx, &dm->info);
	if (IS_ERR(dm->mem)) {
		err = PTR_ERR(dm->mem);
		goto free;
	}
	err = uverbs_copy_to(attrs, ARX_ATTR_DM_ALLOC_MAPPING, &dm->info,
			     sizeof(dm->info));
	if (!err)
		return &dm->ib;

	arx_ring_mem_destroy(dm->mem);
free:
	kfree(dm);
end:
	arx_object_end(ib, ARX_KIND_DM);
	return ERR_PTR(err);
}

static void *arx_dm_page(void *of, size_t n)
{
	const struct arx_dm *dm = of;

	return arx_ring_mem_page(dm->mem, n);
}

/**
 * arx_reg_dm_mr - verb: a region in device memory
 * @pd: protection domain
 * @ib: memory, which stays until the region ends
 * @attr: offset and length, within the memory; access, zero-based
 * @attrs: unused
 *
 * Return: the region, -EOPNOTSUPP for unsupported access, -ENOMEM.
 */
struct ib_mr *arx_reg_dm_mr(struct ib_pd *pd, struct ib_dm *ib,
			    struct ib_dm_mr_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	return arx_mr_of_pages(pd, attr->offset, attr->length,
			       attr->access_flags, arx_dm_page, to_arx_dm(ib));
}

/* Another process, which imports the memory, asks how to map it. */
static int
UVERBS_HANDLER(ARX_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ib = uverbs_attr_get_obj(attrs,
					       ARX_ATTR_DM_QUERY_HANDLE);
	u64 length = ib->length;
	int err;

	err = uverbs_copy_to(attrs, ARX_ATTR_DM_QUERY_MAPPING,
			     &to_arx_dm(ib)->info,
			     sizeof(struct arx_ring_info));
	if (err)
		return err;
	return uverbs_copy_to(attrs, ARX_ATTR_DM_QUERY_LENGTH, &length,
			      sizeof(length));
}

DECLARE_UVERBS_NAMED_METHOD(ARX_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(ARX_ATTR_DM_QUERY_HANDLE,
					    UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(ARX_ATTR_DM_QUERY_MAPPING,
						ARX_DM_MAPPING, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(ARX_ATTR_DM_QUERY_LENGTH,
						UVERBS_ATTR_TYPE(u64),
						UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_DM,
			      &UVERBS_METHOD(ARX_METHOD_DM_QUERY));

ADD_UVERBS_ATTRIBUTES_SIMPLE(arx_dm, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
			     UVERBS_ATTR_PTR_OUT(ARX_ATTR_DM_ALLOC_MAPPING,
						 ARX_DM_MAPPING, UA_MANDATORY));

/* What the commands of device memory have beyond the common ones. */
const struct uapi_definition arx_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &arx_dm),
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(UVERBS_OBJECT_DM),
	{}
};
