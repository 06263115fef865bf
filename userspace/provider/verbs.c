// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Control verbs. Each is a command to the kernel and, for queues, the mapping
 * of the ring that the kernel created.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <ccan/minmax.h>

#include "abi.h"
#include "arx.h"
#include "compat.h"

/* ------------------------------------------------------------------------ */
/* Rings */

static int arx_ring_map(struct arx_ring *ring, struct ibv_context *ibctx,
			const struct arx_ring_info *info, uint32_t min_stride)
{
	void *addr;

	memset(ring, 0, sizeof(*ring));
	if (!info->entries)
		return 0;

	if (info->entries & (info->entries - 1) ||
	    info->stride < min_stride || info->stride % sizeof(uint64_t) ||
	    info->size > SIZE_MAX || info->size < ARX_RING_ENTRIES_OFFSET ||
	    (info->size - ARX_RING_ENTRIES_OFFSET) / info->stride <
		    info->entries)
		return EPROTO;

	addr = mmap(NULL, info->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		    ibctx->cmd_fd, info->offset);
	if (addr == MAP_FAILED)
		return errno;

	ring->hdr = addr;
	ring->entries = addr + ARX_RING_ENTRIES_OFFSET;
	ring->count = info->entries;
	ring->mask = info->entries - 1;
	ring->stride = info->stride;
	ring->size = info->size;
	return 0;
}

static void arx_ring_unmap(struct arx_ring *ring)
{
	if (ring->hdr)
		munmap(ring->hdr, ring->size);
	memset(ring, 0, sizeof(*ring));
}

static void arx_ring_swap(struct arx_ring *a, struct arx_ring *b)
{
	struct arx_ring was = *a;

	*a = *b;
	*b = was;
}

/* ------------------------------------------------------------------------ */
/* Device */

/**
 * arx_query_device_ex - attributes of the device
 * @ibctx: the device
 * @input: requested extensions, or NULL
 * @attr: filled
 * @attr_size: bytes of @attr that the application knows
 *
 * Return: 0 or errno value.
 */
int arx_query_device_ex(struct ibv_context *ibctx,
			const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp = {};
	size_t resp_size = sizeof(resp);
	uint64_t ver;
	int err;

	err = ibv_cmd_query_device_any(ibctx, input, attr, attr_size, &resp,
				       &resp_size);
	if (err)
		return err;

	ver = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver),
		 "%u.%u.%u", (unsigned int)(ver >> 32),
		 (unsigned int)(ver >> 16 & 0xffff),
		 (unsigned int)(ver & 0xffff));
	return 0;
}

/**
 * arx_query_port - state of a port
 * @ibctx: the device
 * @port: number
 * @attr: filled
 *
 * Return: 0 or errno value.
 */
int arx_query_port(struct ibv_context *ibctx, uint8_t port,
		   struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ibctx, port, attr, &cmd, sizeof(cmd));
}

/**
 * arx_query_rt_values - the clock of completion timestamps
 * @ibctx: the device
 * @values: comp_mask has the requested values, then the returned ones
 *
 * The raw clock is CLOCK_MONOTONIC in ns. As with other providers it is one
 * count, in tv_nsec, which applications compare with completion timestamps.
 *
 * Return: 0 or errno value.
 */
int arx_query_rt_values(struct ibv_context *ibctx, struct ibv_values_ex *values)
{
	struct timespec now;

	if (!check_comp_mask(values->comp_mask, IBV_VALUES_MASK_RAW_CLOCK))
		return EINVAL;

	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = now.tv_sec * 1000000000L +
					    now.tv_nsec;
	}
	return 0;
}

/* ------------------------------------------------------------------------ */
/* Protection domains, thread domains */

/**
 * arx_alloc_pd - create a protection domain
 * @ibctx: the device
 *
 * Return: the PD, or NULL with errno set.
 */
struct ibv_pd *arx_alloc_pd(struct ibv_context *ibctx)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct arx_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	err = ibv_cmd_alloc_pd(ibctx, &pd->ibpd, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	return &pd->ibpd;
}

/*
 * The kernel knows the objects of a PD, but not in which parent domain around
 * the PD they were created. @ibpd is NULL for a QP that receives by XRC.
 */
static void arx_pd_hold(struct ibv_pd *ibpd)
{
	if (ibpd && to_arx_pd(ibpd)->inner)
		atomic_fetch_add(&to_arx_pd(ibpd)->refs, 1);
}

/*
 * The parent domain that counts an object of @ibpd, or NULL. To be asked before
 * the object is destroyed: after that, another thread may deallocate a PD that
 * counts nothing.
 */
static struct arx_pd *arx_pd_domain(struct ibv_pd *ibpd)
{
	return ibpd && to_arx_pd(ibpd)->inner ? to_arx_pd(ibpd) : NULL;
}

static void arx_pd_release(struct arx_pd *domain)
{
	if (domain)
		atomic_fetch_sub(&domain->refs, 1);
}

/**
 * arx_dealloc_pd - destroy a protection domain or parent domain
 * @ibpd: the PD
 *
 * Return: 0 or errno value: EBUSY while objects or parent domains use it.
 */
int arx_dealloc_pd(struct ibv_pd *ibpd)
{
	struct arx_pd *pd = to_arx_pd(ibpd);
	int err;

	if (atomic_load(&pd->refs))
		return EBUSY;

	if (pd->inner) {
		atomic_fetch_sub(&pd->inner->refs, 1);
		if (pd->td)
			atomic_fetch_sub(&pd->td->refs, 1);
		free(pd);
		return 0;
	}

	err = ibv_cmd_dealloc_pd(ibpd);
	if (err)
		return err;

	free(pd);
	return 0;
}

/* Handles that one command can list: the length of a list has 16 bits. */
#define ARX_LISTED	(UINT16_MAX / sizeof(uint32_t))

/*
 * True if the context has this protection domain, or more of them than can be
 * listed: there is no query for one.
 */
static bool arx_pd_exists(struct ibv_context *ibctx, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE,
			       UVERBS_METHOD_INFO_HANDLES, 3);
	uint32_t *list = calloc(ARX_LISTED, sizeof(*list));
	uint32_t total = 0, i = 0;

	if (!list)
		return false;
	fill_attr_const_in(cmd, UVERBS_ATTR_INFO_OBJECT_ID, UVERBS_OBJECT_PD);
	fill_attr_out_ptr(cmd, UVERBS_ATTR_INFO_TOTAL_HANDLES, &total);
	fill_attr_out(cmd, UVERBS_ATTR_INFO_HANDLES_LIST, list,
		      ARX_LISTED * sizeof(*list));
	if (!execute_ioctl(ibctx, cmd))
		while (i < total && list[i] != handle)
			i++;
	free(list);
	return i < total || total == ARX_LISTED;
}

/**
 * arx_import_pd - use a protection domain that another process created
 * @ibctx: imported device
 * @handle: ibv_pd.handle of the other process
 *
 * Return: the PD, or NULL with errno set: ENOENT if there is no such PD.
 */
struct ibv_pd *arx_import_pd(struct ibv_context *ibctx, uint32_t handle)
{
	struct arx_pd *pd;

	if (!arx_pd_exists(ibctx, handle)) {
		errno = ENOENT;
		return NULL;
	}

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	pd->ibpd.context = ibctx;
	pd->ibpd.handle = handle;
	return &pd->ibpd;
}

/**
 * arx_unimport_pd - forget an imported protection domain
 * @ibpd: from arx_import_pd(); no parent domain is around it
 */
void arx_unimport_pd(struct ibv_pd *ibpd)
{
	free(to_arx_pd(ibpd));
}

/**
 * arx_open_xrcd - open an XRC domain
 * @ibctx: the device
 * @attr: file that names the domain for all processes, or fd -1
 *
 * Return: the domain, or NULL with errno set.
 */
struct ibv_xrcd *arx_open_xrcd(struct ibv_context *ibctx,
			       struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp;
	struct ibv_open_xrcd cmd;
	struct verbs_xrcd *vxrcd;
	int err;

	vxrcd = calloc(1, sizeof(*vxrcd));
	if (!vxrcd)
		return NULL;

	err = ibv_cmd_open_xrcd(ibctx, vxrcd, sizeof(*vxrcd), attr, &cmd,
				sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(vxrcd);
		errno = err;
		return NULL;
	}
	return &vxrcd->xrcd;
}

/**
 * arx_close_xrcd - close an XRC domain
 * @ibxrcd: the domain; it ends when no process has it open
 *
 * Return: 0 or errno value.
 */
int arx_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct verbs_xrcd *vxrcd = container_of(ibxrcd, struct verbs_xrcd,
						xrcd);
	int err;

	err = ibv_cmd_close_xrcd(vxrcd);
	if (err)
		return err;

	free(vxrcd);
	return 0;
}

/**
 * arx_alloc_td - create a thread domain
 * @ibctx: the device
 * @attr: comp_mask must be 0
 *
 * Return: the TD, or NULL with errno set.
 */
struct ibv_td *arx_alloc_td(struct ibv_context *ibctx,
			    struct ibv_td_init_attr *attr)
{
	struct arx_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;

	td->ibtd.context = ibctx;
	return &td->ibtd;
}

/**
 * arx_dealloc_td - destroy a thread domain
 * @ibtd: the TD
 *
 * Return: 0, or EBUSY while a parent domain uses it.
 */
int arx_dealloc_td(struct ibv_td *ibtd)
{
	struct arx_td *td = to_arx_td(ibtd);

	if (atomic_load(&td->refs))
		return EBUSY;

	free(td);
	return 0;
}

/**
 * arx_alloc_parent_domain - combine a PD and a thread domain
 * @ibctx: the device
 * @attr: the two
 *
 * Queues that are created in a parent domain with a thread domain take no
 * locks. Allocators are accepted and not called: every queue is in kernel
 * memory.
 *
 * Return: the parent domain, or NULL with errno set.
 */
struct ibv_pd *arx_alloc_parent_domain(struct ibv_context *ibctx,
				       struct ibv_parent_domain_init_attr *attr)
{
	struct arx_pd *pd, *inner;

	if (ibv_check_alloc_parent_domain(attr))
		return NULL;

	inner = to_arx_pd(attr->pd);
	if (inner->inner) {
		errno = EINVAL;
		return NULL;
	}
	if (!check_comp_mask(attr->comp_mask,
			     IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	pd->inner = inner;
	atomic_fetch_add(&inner->refs, 1);
	if (attr->td) {
		pd->td = to_arx_td(attr->td);
		atomic_fetch_add(&pd->td->refs, 1);
	}
	ibv_initialize_parent_domain(&pd->ibpd, &inner->ibpd);
	return &pd->ibpd;
}

/*
 * True if several threads may use objects of @ibpd at once. A QP that receives
 * by XRC has no PD.
 */
static bool arx_pd_shared(struct ibv_pd *ibpd)
{
	return !ibpd || !to_arx_pd(ibpd)->td;
}

/* ------------------------------------------------------------------------ */
/* Memory regions and windows */

/**
 * arx_reg_mr - register memory
 * @ibpd: protection domain
 * @addr: first byte
 * @length: bytes
 * @iova: address of the first byte in work requests
 * @access: enum ibv_access_flags
 *
 * Return: the MR, or NULL with errno set.
 */
struct ibv_mr *arx_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length,
			  uint64_t iova, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_mr(ibpd, addr, length, iova, access, vmr, &cmd,
			     sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	arx_pd_hold(ibpd);
	return &vmr->ibv_mr;
}

/**
 * arx_reg_dmabuf_mr - register a dma-buf
 * @ibpd: protection domain
 * @offset: of the first byte in the buffer
 * @length: bytes
 * @iova: address of the first byte in work requests
 * @fd: of the buffer
 * @access: enum ibv_access_flags
 *
 * Return: the MR, or NULL with errno set.
 */
struct ibv_mr *arx_reg_dmabuf_mr(struct ibv_pd *ibpd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_dmabuf_mr(ibpd, offset, length, iova, fd, access,
				    vmr, NULL);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	arx_pd_hold(ibpd);
	return &vmr->ibv_mr;
}

/**
 * arx_rereg_mr - change a memory region
 * @vmr: the MR
 * @flags: enum ibv_rereg_mr_flags: what to change
 * @ibpd: new protection domain
 * @addr: new first byte
 * @length: new bytes
 * @access: new enum ibv_access_flags
 *
 * Return: 0 or errno value.
 */
int arx_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd,
		 void *addr, size_t length, int access)
{
	struct arx_pd *domain = arx_pd_domain(vmr->ibv_mr.pd);
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;
	int err;

	err = ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr,
			       access, ibpd, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (!err && flags & IBV_REREG_MR_CHANGE_PD) {
		arx_pd_release(domain);
		arx_pd_hold(ibpd);
	}
	return err;
}

/**
 * arx_dereg_mr - deregister a memory region
 * @vmr: the MR
 *
 * Return: 0 or errno value.
 */
int arx_dereg_mr(struct verbs_mr *vmr)
{
	struct arx_pd *domain = arx_pd_domain(vmr->ibv_mr.pd);
	int err;

	err = ibv_cmd_dereg_mr(vmr);
	if (err)
		return err;

	arx_pd_release(domain);
	free(vmr);
	return 0;
}

/**
 * arx_import_mr - use a memory region that another process registered
 * @ibpd: imported PD of the region
 * @handle: ibv_mr.handle of the other process
 *
 * Return: the MR, without an address, or NULL with errno set.
 */
struct ibv_mr *arx_import_mr(struct ibv_pd *ibpd, uint32_t handle)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;

	err = ibv_cmd_query_mr(ibpd, vmr, handle);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

/**
 * arx_unimport_mr - forget an imported memory region
 * @ibmr: from arx_import_mr()
 */
void arx_unimport_mr(struct ibv_mr *ibmr)
{
	free(verbs_get_mr(ibmr));
}

/**
 * arx_alloc_mw - allocate a memory window
 * @ibpd: protection domain
 * @type: 1 or 2
 *
 * Return: the MW, or NULL with errno set.
 */
struct ibv_mw *arx_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *ibmw;
	int err;

	ibmw = calloc(1, sizeof(*ibmw));
	if (!ibmw)
		return NULL;

	err = ibv_cmd_alloc_mw(ibpd, type, ibmw, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (err) {
		free(ibmw);
		errno = err;
		return NULL;
	}
	arx_pd_hold(ibpd);
	return ibmw;
}

/**
 * arx_dealloc_mw - deallocate a memory window
 * @ibmw: the MW
 *
 * Return: 0 or errno value.
 */
int arx_dealloc_mw(struct ibv_mw *ibmw)
{
	struct arx_pd *domain = arx_pd_domain(ibmw->pd);
	int err;

	err = ibv_cmd_dealloc_mw(ibmw);
	if (err)
		return err;

	arx_pd_release(domain);
	free(ibmw);
	return 0;
}

/* ------------------------------------------------------------------------ */
/* Device memory */

/* EINVAL beyond the memory, or if not in words of 4 bytes, as cards need it. */
static int arx_dm_check(struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	struct arx_dm *dm = to_arx_dm(ibdm);

	if ((offset | length) % sizeof(uint32_t) || offset > dm->length ||
	    length > dm->length - offset)
		return EINVAL;
	return 0;
}

static int arx_memcpy_to_dm(struct ibv_dm *ibdm, uint64_t offset,
			    const void *from, size_t length)
{
	int err = arx_dm_check(ibdm, offset, length);

	if (!err)
		memcpy(to_arx_dm(ibdm)->map + offset, from, length);
	return err;
}

static int arx_memcpy_from_dm(void *to, struct ibv_dm *ibdm, uint64_t offset,
			      size_t length)
{
	int err = arx_dm_check(ibdm, offset, length);

	if (!err)
		memcpy(to, to_arx_dm(ibdm)->map + offset, length);
	return err;
}

static int arx_dm_map(struct arx_dm *dm, struct ibv_context *ibctx,
		      const struct arx_ring_info *info)
{
	if (info->size > SIZE_MAX || info->size < dm->length)
		return EPROTO;
	dm->map = mmap(NULL, info->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		       ibctx->cmd_fd, info->offset);
	if (dm->map == MAP_FAILED)
		return errno;
	dm->size = info->size;
	dm->vdm.dm.memcpy_to_dm = arx_memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = arx_memcpy_from_dm;
	return 0;
}

/**
 * arx_alloc_dm - allocate device memory
 * @ibctx: the device
 * @attr: length and alignment
 *
 * Return: the memory, or NULL with errno set.
 */
struct ibv_dm *arx_alloc_dm(struct ibv_context *ibctx,
			    struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER_LINK(cmd, UVERBS_OBJECT_DM,
				    UVERBS_METHOD_DM_ALLOC, 1, NULL);
	struct arx_ring_info info = {};
	struct arx_dm *dm;
	int err;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;

	fill_attr_out_ptr(cmd, ARX_ATTR_DM_ALLOC_MAPPING, &info);
	err = ibv_cmd_alloc_dm(ibctx, attr, &dm->vdm, cmd);
	if (err)
		goto free;
	dm->length = attr->length;
	err = arx_dm_map(dm, ibctx, &info);
	if (!err)
		return &dm->vdm.dm;

	ibv_cmd_free_dm(&dm->vdm);
free:
	free(dm);
	errno = err;
	return NULL;
}

/**
 * arx_free_dm - free device memory
 * @ibdm: the memory
 *
 * Return: 0 or errno value, EBUSY while a region is in it.
 */
int arx_free_dm(struct ibv_dm *ibdm)
{
	int err = ibv_cmd_free_dm(&to_arx_dm(ibdm)->vdm);

	if (!err)
		arx_unimport_dm(ibdm);
	return err;
}

/**
 * arx_import_dm - use device memory that another process allocated
 * @ibctx: imported device
 * @handle: ibv_dm.handle of the other process
 *
 * Return: the memory, or NULL with errno set.
 */
struct ibv_dm *arx_import_dm(struct ibv_context *ibctx, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, ARX_METHOD_DM_QUERY, 3);
	struct arx_ring_info info = {};
	uint64_t length = 0;
	struct arx_dm *dm;
	int err;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;

	fill_attr_in_obj(cmd, ARX_ATTR_DM_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmd, ARX_ATTR_DM_QUERY_MAPPING, &info);
	fill_attr_out_ptr(cmd, ARX_ATTR_DM_QUERY_LENGTH, &length);
	err = execute_ioctl(ibctx, cmd);
	if (!err) {
		dm->length = length;
		err = arx_dm_map(dm, ibctx, &info);
	}
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	dm->vdm.dm.context = ibctx;
	return &dm->vdm.dm;
}

/**
 * arx_unimport_dm - forget imported device memory
 * @ibdm: the memory
 */
void arx_unimport_dm(struct ibv_dm *ibdm)
{
	struct arx_dm *dm = to_arx_dm(ibdm);

	munmap(dm->map, dm->size);
	free(dm);
}

/**
 * arx_reg_dm_mr - register device memory
 * @ibpd: protection domain
 * @ibdm: the memory
 * @offset: of the first byte in the memory
 * @length: bytes
 * @access: enum ibv_access_flags
 *
 * Return: the MR, or NULL with errno set.
 */
struct ibv_mr *arx_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm,
			     uint64_t offset, size_t length,
			     unsigned int access)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;

	err = ibv_cmd_reg_dm_mr(ibpd, &to_arx_dm(ibdm)->vdm, offset, length,
				access, vmr, NULL);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	arx_pd_hold(ibpd);
	return &vmr->ibv_mr;
}

/* ------------------------------------------------------------------------ */
/* Address handles */

/**
 * arx_create_ah - create an address handle
 * @ibpd: protection domain
 * @attr: destination
 *
 * Return: the AH, or NULL with errno set.
 */
struct ibv_ah *arx_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr)
{
	struct uarx_create_ah_resp resp = {};
	struct arx_ah *ah;
	int err;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	err = ibv_cmd_create_ah(ibpd, &ah->ibah, attr, &resp.ibv_resp,
				sizeof(resp));
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}

	ah->id = resp.drv_payload.ah;
	arx_pd_hold(ibpd);
	return &ah->ibah;
}

/**
 * arx_destroy_ah - destroy an address handle
 * @ibah: the AH
 *
 * Return: 0 or errno value.
 */
int arx_destroy_ah(struct ibv_ah *ibah)
{
	struct arx_pd *domain = arx_pd_domain(ibah->pd);
	int err;

	err = ibv_cmd_destroy_ah(ibah);
	if (err)
		return err;

	arx_pd_release(domain);
	free(to_arx_ah(ibah));
	return 0;
}

/* ------------------------------------------------------------------------ */
/* Completion queues */

static struct arx_cq *arx_new_cq(struct ibv_context *ibctx,
				 struct ibv_cq_init_attr_ex *attr, bool shared)
{
	struct ibv_cq_init_attr_ex cmd_attr = *attr;
	struct uarx_create_cq_ex_resp resp = {};
	struct uarx_create_cq_ex cmd = {};
	struct arx_cq *cq;
	int err;

	if (attr->cqe <= 0) {
		errno = EINVAL;
		return NULL;
	}

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	/* Every CQE has a timestamp, without a request to the kernel. */
	cmd_attr.wc_flags = 0;
	err = arx_cmd_create_cq_ex(ibctx, &cmd_attr, &cq->vcq, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err)
		goto err_free;

	err = arx_ring_map(&cq->ring, ibctx, &resp.drv_payload.ring,
			   sizeof(struct arx_cqe));
	if (!err && !cq->ring.count)
		err = EPROTO;
	if (err)
		goto err_destroy;

	pthread_mutex_init(&cq->resize_mutex, NULL);
	arx_lock_init(&cq->lock, shared);
	arx_lock_init(&cq->arm_lock, shared);
	cq->doorbell = to_arx_context(ibctx)->doorbell;
	atomic_init(&cq->refs, 1);
	return cq;

err_destroy:
	ibv_cmd_destroy_cq(&cq->vcq.cq);
err_free:
	free(cq);
	errno = err;
	return NULL;
}

/**
 * arx_create_cq - create a completion queue
 * @ibctx: the device
 * @cqe: minimum number of entries
 * @channel: channel for events, or NULL
 * @comp_vector: event vector
 *
 * Return: the CQ, or NULL with errno set.
 */
struct ibv_cq *arx_create_cq(struct ibv_context *ibctx, int cqe,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct arx_cq *cq;

	if (cqe <= 0) {
		errno = EINVAL;
		return NULL;
	}

	cq = arx_new_cq(ibctx, &attr, true);
	return cq ? &cq->vcq.cq : NULL;
}

/**
 * arx_create_cq_ex - create a completion queue for extended polling
 * @ibctx: the device
 * @attr: requested attributes
 *
 * Return: the CQ, or NULL with errno set.
 */
struct ibv_cq_ex *arx_create_cq_ex(struct ibv_context *ibctx,
				   struct ibv_cq_init_attr_ex *attr)
{
	bool shared = true;
	struct arx_cq *cq;

	if (!check_comp_mask(attr->comp_mask, IBV_CQ_INIT_ATTR_MASK_FLAGS |
					      IBV_CQ_INIT_ATTR_MASK_PD)) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		if (!check_comp_mask(attr->flags,
				     IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
				     IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)) {
			errno = EOPNOTSUPP;
			return NULL;
		}
		if (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
			shared = false;
	}

	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		if (!attr->parent_domain ||
		    !to_arx_pd(attr->parent_domain)->inner) {
			errno = EINVAL;
			return NULL;
		}
		if (!arx_pd_shared(attr->parent_domain))
			shared = false;
	}

	cq = arx_new_cq(ibctx, attr, shared);
	if (!cq)
		return NULL;

	if (arx_set_poll_ops(cq, attr->wc_flags)) {
		arx_destroy_cq(&cq->vcq.cq);
		errno = EOPNOTSUPP;
		return NULL;
	}

	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		cq->parent = attr->parent_domain;
		arx_pd_hold(cq->parent);
	}
	return &cq->vcq.cq_ex;	/* libibverbs calls verbs_init_cq() */
}

/**
 * arx_modify_cq - moderate the events of a completion queue
 * @ibcq: the CQ
 * @attr: number of completions, or microseconds, that may delay an event
 *
 * Return: 0 or errno value.
 */
int arx_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

static int arx_resize_cq_step(struct ibv_cq *ibcq, int cqe,
			      enum arx_resize_step step,
			      struct arx_ring_info *info)
{
	struct uarx_resize_cq_resp resp = {};
	struct uarx_resize_cq cmd = {};
	int err;

	cmd.drv_payload.step = step;
	err = ibv_cmd_resize_cq(ibcq, cqe, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	*info = resp.drv_payload.ring;
	return err;
}

/*
 * Make the kernel continue in @ring, and move the CQEs there that were not
 * polled. @ring is then the old ring. The caller keeps other threads from
 * polling and arming meanwhile. The kernel's part takes constant time, however
 * many CQEs there are.
 */
static int arx_cq_switch(struct arx_cq *cq, int cqe, struct arx_ring *ring)
{
	struct arx_ring_info none;
	uint32_t i, end;
	int err;

	arx_lock(&cq->lock);
	arx_lock(&cq->arm_lock);
	arx_store_release(&ring->hdr->cons, cq->cons);
	err = arx_resize_cq_step(&cq->vcq.cq, cqe, ARX_RESIZE_COMMIT, &none);
	if (!err) {
		end = arx_load_acquire(&cq->ring.hdr->prod);
		if (end - cq->cons > cq->ring.count)
			end = cq->cons;
		for (i = cq->cons; i != end; i++)
			*(struct arx_cqe *)arx_ring_entry(ring, i) =
				*(struct arx_cqe *)arx_ring_entry(&cq->ring, i);
		arx_ring_swap(&cq->ring, ring);
	}
	arx_unlock(&cq->arm_lock);
	arx_unlock(&cq->lock);
	return err;
}

/**
 * arx_resize_cq - change the size of a completion queue
 * @ibcq: the CQ
 * @cqe: minimum number of entries
 *
 * Return: 0 or errno value; on failure the CQ is unchanged.
 */
int arx_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct arx_cq *cq = to_arx_cq(ibcq);
	struct arx_ring_info info;
	struct arx_ring ring;
	int err;

	if (cqe <= 0)
		return EINVAL;

	pthread_mutex_lock(&cq->resize_mutex);
	err = arx_resize_cq_step(ibcq, cqe, ARX_RESIZE_PREPARE, &info);
	if (err)
		goto out;
	err = arx_ring_map(&ring, ibcq->context, &info, sizeof(struct arx_cqe));
	if (err)
		goto out;

	err = ring.count ? arx_cq_switch(cq, cqe, &ring) : EPROTO;
	arx_ring_unmap(&ring); /* the old one, or the new one on failure */
out:
	pthread_mutex_unlock(&cq->resize_mutex);
	return err;
}

/*
 * The kernel destroys a CQ as soon as its last QP is gone in the kernel. The
 * thread that destroys that QP may not have removed the QP's CQEs yet.
 */
static void arx_cq_put(struct arx_cq *cq)
{
	if (atomic_fetch_sub(&cq->refs, 1) != 1)
		return;

	arx_ring_unmap(&cq->ring);
	arx_cq_free_qps(cq);
	arx_lock_destroy(&cq->arm_lock);
	arx_lock_destroy(&cq->lock);
	pthread_mutex_destroy(&cq->resize_mutex);
	free(cq);
}

/**
 * arx_destroy_cq - destroy a completion queue
 * @ibcq: the CQ
 *
 * Return: 0 or errno value.
 */
int arx_destroy_cq(struct ibv_cq *ibcq)
{
	struct arx_cq *cq = to_arx_cq(ibcq);
	struct arx_pd *domain = arx_pd_domain(cq->parent);
	int err;

	err = ibv_cmd_destroy_cq(ibcq);
	if (err)
		return err;

	arx_pd_release(domain);
	arx_cq_put(cq);
	return 0;
}

/* ------------------------------------------------------------------------ */
/* Receive queues */

static int arx_rq_init(struct arx_rq *rq, struct ibv_context *ibctx,
		       const struct arx_ring_info *info, uint32_t max_sge,
		       bool shared)
{
	uint32_t room;
	int err;

	err = arx_ring_map(&rq->ring, ibctx, info,
			   sizeof(struct arx_recv_wqe));
	if (err)
		return err;

	if (rq->ring.count) {
		room = (rq->ring.stride - sizeof(struct arx_recv_wqe)) /
		       sizeof(struct arx_sge);
		rq->max_sge = min(max_sge, room);
	}
	arx_lock_init(&rq->lock, shared);
	return 0;
}

static void arx_rq_cleanup(struct arx_rq *rq)
{
	arx_ring_unmap(&rq->ring);
	arx_lock_destroy(&rq->lock);
}

/* Make an SRQ of libarx from what the kernel has created. */
static int arx_srq_init(struct arx_srq *srq, struct ibv_pd *ibpd,
			const struct arx_create_srq_resp *resp,
			uint32_t max_sge)
{
	int err;

	err = arx_rq_init(&srq->rq, ibpd->context, &resp->ring, max_sge,
			  arx_pd_shared(ibpd));
	if (err)
		return err;
	if (!srq->rq.ring.count) {
		arx_rq_cleanup(&srq->rq);
		return EPROTO;
	}

	pthread_mutex_init(&srq->resize_mutex, NULL);
	srq->srqn = resp->srqn;
	srq->pd = ibpd;
	arx_pd_hold(ibpd);
	return 0;
}

/**
 * arx_create_srq - create a shared receive queue
 * @ibpd: protection domain
 * @attr: requested sizes, then granted ones
 *
 * Return: the SRQ, or NULL with errno set.
 */
struct ibv_srq *arx_create_srq(struct ibv_pd *ibpd,
			       struct ibv_srq_init_attr *attr)
{
	struct uarx_create_srq_resp resp = {};
	struct uarx_create_srq cmd = {};
	struct arx_srq *srq;
	int err;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;

	err = ibv_cmd_create_srq(ibpd, &srq->vsrq.srq, attr, &cmd.ibv_cmd,
				 sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err)
		goto err_free;

	err = arx_srq_init(srq, ibpd, &resp.drv_payload, attr->attr.max_sge);
	if (err)
		goto err_destroy;
	return &srq->vsrq.srq;

err_destroy:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
err_free:
	free(srq);
	errno = err;
	return NULL;
}

static struct ibv_srq *arx_create_xrc_srq(struct ibv_context *ibctx,
					  struct ibv_srq_init_attr_ex *attr)
{
	struct uarx_create_srq_ex_resp resp = {};
	struct uarx_create_srq_ex cmd = {};
	struct arx_srq *srq;
	int err;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;

	err = ibv_cmd_create_srq_ex(ibctx, &srq->vsrq, attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err)
		goto err_free;

	err = arx_srq_init(srq, attr->pd, &resp.drv_payload,
			   attr->attr.max_sge);
	if (err)
		goto err_destroy;
	srq->cq = to_arx_cq(attr->cq);
	atomic_fetch_add(&srq->cq->refs, 1);
	return &srq->vsrq.srq;

err_destroy:
	ibv_cmd_destroy_srq(&srq->vsrq.srq);
err_free:
	free(srq);
	errno = err;
	return NULL;
}

/**
 * arx_create_srq_ex - create a shared receive queue
 * @ibctx: the device
 * @attr: type, its objects, and requested sizes, then granted ones
 *
 * Return: the SRQ, or NULL with errno set.
 */
struct ibv_srq *arx_create_srq_ex(struct ibv_context *ibctx,
				  struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ;
	struct ibv_srq_init_attr basic;
	struct ibv_srq *ibsrq;

	if (!check_comp_mask(attr->comp_mask, xrc | IBV_SRQ_INIT_ATTR_TYPE)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	    attr->srq_type == IBV_SRQT_XRC) {
		if ((attr->comp_mask & xrc) != xrc) {
			errno = EINVAL;
			return NULL;
		}
		return arx_create_xrc_srq(ibctx, attr);
	}
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE &&
	    attr->srq_type != IBV_SRQT_BASIC) {
		errno = EOPNOTSUPP;
		return NULL;
	}

	basic.srq_context = attr->srq_context;
	basic.attr = attr->attr;
	ibsrq = arx_create_srq(attr->pd, &basic);
	if (ibsrq)
		attr->attr = basic.attr;
	return ibsrq;
}

/*
 * Make the kernel continue in @ring, to which the posted WQEs are copied. @ring
 * is then the old ring. The kernel may take WQEs during the copy; its own index
 * says which.
 */
static int arx_srq_switch(struct arx_srq *srq, struct ibv_srq_attr *attr,
			  int mask, struct uarx_modify_srq *cmd,
			  struct arx_ring *ring)
{
	struct arx_rq *rq = &srq->rq;
	uint32_t i;
	int err;

	arx_lock(&rq->lock);
	i = arx_load_acquire(&rq->ring.hdr->cons);		/* C */
	if (rq->head - i > min(rq->ring.count, ring->count)) {
		err = EINVAL;
		goto unlock;
	}
	for (; i != rq->head; i++)
		memcpy(arx_ring_entry(ring, i), arx_ring_entry(&rq->ring, i),
		       sizeof(struct arx_recv_wqe) +
			       rq->max_sge * sizeof(struct arx_sge));
	arx_store_release(&ring->hdr->prod, rq->head);		/* A */

	cmd->drv_payload.step = ARX_RESIZE_COMMIT;
	err = ibv_cmd_modify_srq(&srq->vsrq.srq, attr, mask, &cmd->ibv_cmd,
				 sizeof(*cmd));
	if (!err) {
		rq->cons = arx_load_acquire(&ring->hdr->cons);
		arx_ring_swap(&rq->ring, ring);
	}
unlock:
	arx_unlock(&rq->lock);
	return err;
}

static int arx_srq_resize(struct arx_srq *srq, struct ibv_srq_attr *attr,
			  int mask)
{
	struct ibv_srq *ibsrq = &srq->vsrq.srq;
	struct arx_rq *rq = &srq->rq;
	struct uarx_modify_srq cmd = {};
	struct arx_ring_info info = {};
	struct arx_ring ring;
	int err;

	cmd.drv_payload.resp_addr = (uintptr_t)&info;
	cmd.drv_payload.step = ARX_RESIZE_PREPARE;
	err = ibv_cmd_modify_srq(ibsrq, attr, IBV_SRQ_MAX_WR, &cmd.ibv_cmd,
				 sizeof(cmd));
	if (err)
		return err;
	err = arx_ring_map(&ring, ibsrq->context, &info,
			   sizeof(struct arx_recv_wqe) +
				   rq->max_sge * sizeof(struct arx_sge));
	if (err)
		return err;

	err = ring.count ? arx_srq_switch(srq, attr, mask, &cmd, &ring) :
			   EPROTO;
	arx_ring_unmap(&ring); /* the old one, or the new one on failure */
	return err;
}

/**
 * arx_modify_srq - change the limit or the size of a shared receive queue
 * @ibsrq: the SRQ
 * @attr: new values
 * @mask: enum ibv_srq_attr_mask: what to change
 *
 * Return: 0 or errno value; on failure the SRQ is unchanged.
 */
int arx_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct arx_srq *srq = to_arx_srq(ibsrq);
	struct ibv_modify_srq cmd = {};
	int err;

	if (!(mask & IBV_SRQ_MAX_WR))
		return ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd, sizeof(cmd));

	pthread_mutex_lock(&srq->resize_mutex);
	err = arx_srq_resize(srq, attr, mask);
	pthread_mutex_unlock(&srq->resize_mutex);
	return err;
}

/**
 * arx_query_srq - attributes of a shared receive queue
 * @ibsrq: the SRQ
 * @attr: filled
 *
 * Return: 0 or errno value.
 */
int arx_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

/**
 * arx_get_srq_num - number of a shared receive queue
 * @ibsrq: the SRQ
 * @srqn: filled
 *
 * Return: 0.
 */
int arx_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srqn)
{
	*srqn = to_arx_srq(ibsrq)->srqn;
	return 0;
}

/**
 * arx_destroy_srq - destroy a shared receive queue
 * @ibsrq: the SRQ
 *
 * Return: 0 or errno value.
 */
int arx_destroy_srq(struct ibv_srq *ibsrq)
{
	struct arx_srq *srq = to_arx_srq(ibsrq);
	struct arx_pd *domain = arx_pd_domain(srq->pd);
	int err;

	/* From here on the kernel writes no CQE of an XRC SRQ. */
	err = ibv_cmd_destroy_srq(ibsrq);
	if (err)
		return err;

	if (srq->cq) {
		arx_lock(&srq->cq->lock);
		arx_cq_clean_srq(srq->cq, srq->srqn);
		arx_unlock(&srq->cq->lock);
		arx_cq_put(srq->cq);
	}
	arx_rq_cleanup(&srq->rq);
	pthread_mutex_destroy(&srq->resize_mutex);
	arx_pd_release(domain);
	free(srq);
	return 0;
}

/* ------------------------------------------------------------------------ */
/* Queue pairs */

static int arx_sq_init(struct arx_sq *sq, struct ibv_context *ibctx,
		       const struct arx_ring_info *info,
		       const struct ibv_qp_init_attr_ex *attr, bool shared)
{
	uint32_t room;
	int err;

	err = arx_ring_map(&sq->ring, ibctx, info,
			   sizeof(struct arx_send_wqe));
	if (err)
		return err;

	room = 0;
	if (sq->ring.count)
		room = sq->ring.stride - sizeof(struct arx_send_wqe);

	/* num_sge has eight bits in a WQE */
	sq->max_sge = min_t(uint32_t, attr->cap.max_send_sge, UINT8_MAX);
	sq->max_sge = min_t(uint32_t, sq->max_sge,
			    room / sizeof(struct arx_sge));
	sq->max_inline = min_t(uint32_t, attr->cap.max_inline_data, room);
	sq->ops = arx_send_ops(attr->qp_type);
	sq->signal = attr->sq_sig_all ? IBV_SEND_SIGNALED : 0;

	sq->scratch = calloc(1, sizeof(struct arx_send_wqe) + room);
	if (!sq->scratch) {
		arx_ring_unmap(&sq->ring);
		return ENOMEM;
	}
	sq->wqe = sq->scratch;
	arx_lock_init(&sq->lock, shared);
	return 0;
}

static void arx_sq_cleanup(struct arx_sq *sq)
{
	arx_ring_unmap(&sq->ring);
	free(sq->scratch);
	arx_lock_destroy(&sq->lock);
}

/* A CQ of a QP, or NULL: a QP that sends by XRC has no receive CQ. */
static struct arx_cq *arx_qp_cq(struct ibv_cq *ibcq)
{
	return ibcq ? to_arx_cq(ibcq) : NULL;
}

/*
 * Remove the QP's CQEs that were not polled. A QP that receives by XRC has no
 * CQ: its CQEs are those of SRQs.
 *
 * A thread between ibv_start_poll() and ibv_end_poll() has the lock of a CQ and
 * may create a QP, which takes qp_mutex. So the lock of the CQ comes first.
 */
static void arx_qp_forget(struct arx_qp *qp, bool gone)
{
	struct arx_context *ctx = to_arx_context(qp->vqp.qp.context);
	struct arx_cq *scq = arx_qp_cq(qp->vqp.qp.send_cq);
	struct arx_cq *rcq = arx_qp_cq(qp->vqp.qp.recv_cq);

	if (!scq)
		return;
	arx_lock(&scq->lock);
	arx_cq_clean(scq, qp->vqp.qp.qp_num);
	if (gone) {
		pthread_mutex_lock(&ctx->qp_mutex);
		arx_cq_remove_qp(scq, qp);
		pthread_mutex_unlock(&ctx->qp_mutex);
	}
	arx_unlock(&scq->lock);

	if (!rcq || rcq == scq)
		return;
	arx_lock(&rcq->lock);
	arx_cq_clean(rcq, qp->vqp.qp.qp_num);
	arx_unlock(&rcq->lock);
}

static int arx_check_qp_attr(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t mask = attr->comp_mask;

	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		if (!check_comp_mask(mask, IBV_QP_INIT_ATTR_XRCD |
					   IBV_QP_INIT_ATTR_PD))
			return EOPNOTSUPP;
		return mask & IBV_QP_INIT_ATTR_XRCD ? 0 : EINVAL;
	}
	if (!check_comp_mask(mask, IBV_QP_INIT_ATTR_PD |
				   IBV_QP_INIT_ATTR_CREATE_FLAGS |
				   IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	if (!(mask & IBV_QP_INIT_ATTR_PD))
		return EINVAL;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    !check_comp_mask(attr->create_flags,
			     IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))
		return EOPNOTSUPP;
	if (!arx_send_ops(attr->qp_type))
		return EOPNOTSUPP;
	if (!attr->send_cq ||
	    (!attr->recv_cq && attr->qp_type != IBV_QPT_XRC_SEND))
		return EINVAL;
	return 0;
}

/* The mask, objects and sizes that the kernel needs. */
static void arx_kernel_qp_attr(struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    attr->send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE)
		attr->cap.max_inline_data = max_t(uint32_t,
						  attr->cap.max_inline_data,
						  ARX_ATOMIC_WRITE_LEN);
	switch (attr->qp_type) {
	case IBV_QPT_XRC_RECV:
		attr->comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr->pd = NULL;
		attr->send_cq = NULL;
		attr->recv_cq = NULL;
		attr->srq = NULL;
		break;
	case IBV_QPT_XRC_SEND:
		attr->recv_cq = NULL;
		attr->srq = NULL;
		SWITCH_FALLTHROUGH;
	default:
		attr->comp_mask &= IBV_QP_INIT_ATTR_PD |
				   IBV_QP_INIT_ATTR_CREATE_FLAGS;
	}
}

/*
 * Make the CQs of a new QP know it: the send CQ finds the QP of a CQE, and both
 * remember deferred doorbells.
 */
static int arx_qp_join_cqs(struct arx_context *ctx, struct arx_qp *qp)
{
	struct arx_cq *scq = arx_qp_cq(qp->vqp.qp.send_cq);
	struct arx_cq *rcq = arx_qp_cq(qp->vqp.qp.recv_cq);
	int err;

	if (!scq)
		return 0;
	pthread_mutex_lock(&ctx->qp_mutex);
	err = arx_cq_add_qp(scq, qp);
	if (rcq && rcq != scq)
		qp->recv_place = arx_cq_place(rcq);
	pthread_mutex_unlock(&ctx->qp_mutex);
	if (err)
		return err;

	atomic_fetch_add(&scq->refs, 1);
	if (rcq)
		atomic_fetch_add(&rcq->refs, 1);
	return 0;
}

/*
 * Make a QP of libarx from what the kernel has created: map the queues, set the
 * functions that post, and make the CQs know the QP. @granted has the sizes.
 */
static int arx_qp_init(struct arx_context *ctx, struct arx_qp *qp,
		       const struct ibv_qp_init_attr_ex *asked,
		       const struct ibv_qp_init_attr_ex *granted,
		       const struct arx_create_qp_resp *resp)
{
	struct ibv_context *ibctx = &ctx->vctx.context;
	bool shared = arx_pd_shared(granted->pd);
	int err;

	qp->doorbell = ctx->doorbell;
	err = arx_sq_init(&qp->sq, ibctx, &resp->sq, granted, shared);
	if (err)
		return err;
	err = arx_rq_init(&qp->rq, ibctx, &resp->rq,
			  granted->cap.max_recv_sge, shared);
	if (err)
		goto err_sq;

	if (asked->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		err = arx_set_wr_ops(qp, asked->send_ops_flags);
		if (err)
			goto err_rq;
		qp->vqp.comp_mask |= VERBS_QP_EX;
	}
	err = arx_qp_join_cqs(ctx, qp);
	if (err)
		goto err_rq;
	return 0;

err_rq:
	arx_rq_cleanup(&qp->rq);
err_sq:
	arx_sq_cleanup(&qp->sq);
	return err;
}

/**
 * arx_create_qp_ex - create a queue pair
 * @ibctx: the device
 * @attr: requested attributes; sizes are then the granted ones
 *
 * Return: the QP, or NULL with errno set.
 */
struct ibv_qp *arx_create_qp_ex(struct ibv_context *ibctx,
				struct ibv_qp_init_attr_ex *attr)
{
	struct arx_context *ctx = to_arx_context(ibctx);
	struct ibv_qp_init_attr_ex cmd_attr = *attr;
	struct uarx_create_qp_resp resp = {};
	struct uarx_create_qp cmd = {};
	struct arx_qp *qp;
	void *mem;
	int err;

	err = arx_check_qp_attr(attr);
	if (err)
		goto err;

	err = posix_memalign(&mem, ARX_CACHE_LINE, sizeof(*qp));
	if (err)
		goto err;
	qp = memset(mem, 0, sizeof(*qp));
	arx_kernel_qp_attr(&cmd_attr);

	err = ibv_cmd_create_qp_ex2(ibctx, &qp->vqp, &cmd_attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err)
		goto err_free;

	err = arx_qp_init(ctx, qp, attr, &cmd_attr, &resp.drv_payload);
	if (err)
		goto err_destroy;

	arx_pd_hold(cmd_attr.pd);
	attr->cap = cmd_attr.cap;
	return &qp->vqp.qp;

err_destroy:
	ibv_cmd_destroy_qp(&qp->vqp.qp);
err_free:
	free(qp);
err:
	errno = err;
	return NULL;
}

/**
 * arx_create_qp - create a queue pair
 * @ibpd: protection domain
 * @attr: requested attributes; sizes are then the granted ones
 *
 * Return: the QP, or NULL with errno set.
 */
struct ibv_qp *arx_create_qp(struct ibv_pd *ibpd,
			     struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = ibpd,
	};
	struct ibv_qp *ibqp;

	ibqp = arx_create_qp_ex(ibpd->context, &attr_ex);
	if (ibqp)
		attr->cap = attr_ex.cap;
	return ibqp;
}

/**
 * arx_open_qp - open a QP that receives by XRC, also one of another process
 * @ibctx: the device
 * @attr: XRC domain and number of the QP
 *
 * Return: the QP, or NULL with errno set.
 */
struct ibv_qp *arx_open_qp(struct ibv_context *ibctx,
			   struct ibv_qp_open_attr *attr)
{
	const struct ibv_qp_init_attr_ex init = { .qp_type = attr->qp_type };
	const struct arx_ring_info none = {};
	struct ib_uverbs_create_qp_resp resp;
	struct ibv_open_qp cmd;
	struct arx_qp *qp;
	void *mem;
	int err;

	err = posix_memalign(&mem, ARX_CACHE_LINE, sizeof(*qp));
	if (err)
		goto err;
	qp = memset(mem, 0, sizeof(*qp));
	err = arx_sq_init(&qp->sq, ibctx, &none, &init, true);
	if (err)
		goto err_free;
	arx_rq_init(&qp->rq, ibctx, &none, 0, true);

	err = ibv_cmd_open_qp(ibctx, &qp->vqp, sizeof(qp->vqp), attr, &cmd,
			      sizeof(cmd), &resp, sizeof(resp));
	if (err)
		goto err_queues;
	qp->doorbell = to_arx_context(ibctx)->doorbell;
	return &qp->vqp.qp;

err_queues:
	arx_rq_cleanup(&qp->rq);
	arx_sq_cleanup(&qp->sq);
err_free:
	free(qp);
err:
	errno = err;
	return NULL;
}

/**
 * arx_query_qp - attributes of a queue pair
 * @ibqp: the QP
 * @attr: filled
 * @mask: enum ibv_qp_attr_mask: requested attributes
 * @init_attr: filled
 *
 * Return: 0 or errno value.
 */
int arx_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(ibqp, attr, mask, init_attr, &cmd,
				sizeof(cmd));
}

/* The kernel has emptied the queues and published its indices. */
static void arx_qp_reset(struct arx_qp *qp)
{
	struct arx_sq *sq = &qp->sq;
	struct arx_rq *rq = &qp->rq;

	arx_qp_forget(qp, false);

	if (sq->ring.count) {
		arx_lock(&sq->lock);
		sq->head = arx_load_acquire(&sq->ring.hdr->cons);
		sq->seen_tail = sq->head;
		arx_store_release(&sq->tail, sq->head);
		arx_store_release(&sq->ring.hdr->prod, sq->head);
		arx_unlock(&sq->lock);
	}

	if (rq->ring.count) {
		arx_lock(&rq->lock);
		rq->head = arx_load_acquire(&rq->ring.hdr->cons);
		rq->cons = rq->head;
		arx_store_release(&rq->ring.hdr->prod, rq->head);
		arx_unlock(&rq->lock);
	}
}

/**
 * arx_modify_qp - change the state or attributes of a queue pair
 * @ibqp: the QP
 * @attr: new values
 * @mask: enum ibv_qp_attr_mask: what to change
 *
 * A reset discards posted work requests and their completions.
 *
 * Return: 0 or errno value.
 */
int arx_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_modify_qp cmd = {};
	int err;

	err = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (err)
		return err;

	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		arx_qp_reset(to_arx_qp(ibqp));
	return 0;
}

/**
 * arx_destroy_qp - destroy a queue pair
 * @ibqp: the QP
 *
 * Return: 0 or errno value.
 */
int arx_destroy_qp(struct ibv_qp *ibqp)
{
	struct arx_pd *domain = arx_pd_domain(ibqp->pd);
	struct arx_qp *qp = to_arx_qp(ibqp);
	int err;

	/* From here on the kernel writes no CQE of this QP. */
	err = ibv_cmd_destroy_qp(ibqp);
	if (err)
		return err;

	arx_qp_forget(qp, true);
	if (ibqp->send_cq)
		arx_cq_put(to_arx_cq(ibqp->send_cq));
	if (ibqp->recv_cq)
		arx_cq_put(to_arx_cq(ibqp->recv_cq));

	arx_rq_cleanup(&qp->rq);
	arx_sq_cleanup(&qp->sq);
	arx_pd_release(domain);
	free(qp);
	return 0;
}
