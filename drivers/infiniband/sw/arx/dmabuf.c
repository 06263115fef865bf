// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of a dma-buf. The device has no DMA, so the CPU accesses the buffer.
 * The exporter maps the buffer for the kernel. Some exporters keep a buffer in
 * place while it is mapped, others while a device is attached to it, others
 * while the attachment is pinned: all three are done. Access begins and ends
 * with the region. The data path uses the pages by their addresses in the
 * direct map, not by the exporter's mapping: if that is not cached, an atomic
 * through it is a fault on some CPUs (arm64). Buffers without such pages
 * (memory of a card) are refused.
 */

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "dmabuf.h"

/**
 * struct arx_dmabuf - a buffer in use by a region
 * @buf: the buffer, held
 * @attach: to the buffer, pinned if the exporter pins
 * @map: the exporter's mapping
 */
struct arx_dmabuf {
	struct dma_buf *buf;
	struct dma_buf_attachment *attach;
	struct iosys_map map;
};

#if IS_ENABLED(CONFIG_DMA_SHARED_BUFFER)
/*
 * Without a notification of moves: a pinned buffer has none, and arx could not
 * take back a buffer.
 */
static const struct dma_buf_attach_ops arx_dmabuf_attach_ops = {
	ARX_NO_MOVE_NOTIFY
};

/*
 * Keep @buf->buf in place. Only an exporter that pins takes an attachment with
 * operations: 6.12 maps the buffer of another one for DMA then.
 */
static int arx_dmabuf_attach(struct arx_dmabuf *buf, struct device *dev)
{
	int err;

	if (!buf->buf->ops->pin) {
		buf->attach = dma_buf_attach(buf->buf, dev);
		return PTR_ERR_OR_ZERO(buf->attach);
	}
	buf->attach = dma_buf_dynamic_attach(buf->buf, dev,
					     &arx_dmabuf_attach_ops, buf);
	if (IS_ERR(buf->attach))
		return PTR_ERR(buf->attach);
	dma_resv_lock(buf->buf->resv, NULL);
	err = dma_buf_pin(buf->attach);
	dma_resv_unlock(buf->buf->resv);
	if (err)
		dma_buf_detach(buf->buf, buf->attach);
	return err;
}

static void arx_dmabuf_detach(struct arx_dmabuf *buf)
{
	if (buf->buf->ops->pin) {
		dma_resv_lock(buf->buf->resv, NULL);
		dma_buf_unpin(buf->attach);
		dma_resv_unlock(buf->buf->resv);
	}
	dma_buf_detach(buf->buf, buf->attach);
}

/*
 * The page at @at of the mapping, or NULL. An exporter may map memory for which
 * the kernel has no struct page; vmalloc_to_page() does not check that.
 */
static struct page *arx_dmabuf_find(const struct arx_dmabuf *buf, size_t at)
{
	void *p = buf->map.vaddr + at;
	struct page *page;

	if (!is_vmalloc_addr(p))
		return virt_addr_valid(p) ? virt_to_page(p) : NULL;
	page = vmalloc_to_page(p);
	return page && pfn_valid(page_to_pfn(page)) ? page : NULL;
}

/*
 * True if all of the buffer is pages that the kernel counts. Packets do not
 * refer to the pages: their counts are the exporter's (arx_iter_may_hold()).
 */
static bool arx_dmabuf_is_pages(const struct arx_dmabuf *buf)
{
	size_t at;

	if (buf->map.is_iomem || !PAGE_ALIGNED(buf->map.vaddr))
		return false;
	for (at = 0; at < buf->buf->size; at += PAGE_SIZE) {
		struct page *page = arx_dmabuf_find(buf, at);

		if (!page || !sendpage_ok(page))
			return false;
		cond_resched();
	}
	return true;
}

/*
 * Map @buf->buf if all of it is pages. If the exporter has no memory for the
 * mapping, the kernel warns, once.
 */
static int arx_dmabuf_map(struct arx_dmabuf *buf)
{
	int err = dma_buf_vmap_unlocked(buf->buf, &buf->map);

	if (err)
		return err;
	if (arx_dmabuf_is_pages(buf))
		return 0;
	dma_buf_vunmap_unlocked(buf->buf, &buf->map);
	return -EOPNOTSUPP;
}

/*
 * Keep @buf->buf in place, map it and begin to use it. A mapping before that
 * shows memory of a card, which is refused: some exporters would move it to
 * pages of the kernel to keep it in place.
 */
static int arx_dmabuf_begin(struct arx_dmabuf *buf, struct device *dev)
{
	int err;

	/* dma_buf_vmap() would return -EINVAL, which programs misread. */
	if (!buf->buf->ops->vmap)
		return -EOPNOTSUPP;
	err = arx_dmabuf_map(buf);
	if (err)
		return err;
	dma_buf_vunmap_unlocked(buf->buf, &buf->map);

	err = arx_dmabuf_attach(buf, dev);
	if (err)
		return err;
	err = arx_dmabuf_map(buf);
	if (err)
		goto detach;
	err = dma_buf_begin_cpu_access(buf->buf, DMA_BIDIRECTIONAL);
	if (!err)
		return 0;

	dma_buf_vunmap_unlocked(buf->buf, &buf->map);
detach:
	arx_dmabuf_detach(buf);
	return err;
}

static void arx_dmabuf_end(struct arx_dmabuf *buf)
{
	dma_buf_end_cpu_access(buf->buf, DMA_BIDIRECTIONAL);
	dma_buf_vunmap_unlocked(buf->buf, &buf->map);
	arx_dmabuf_detach(buf);
}

/**
 * arx_dmabuf_get - begin to use a buffer
 * @dev: device that is attached to the buffer
 * @fd: of the buffer
 * @offset: of the first byte
 * @length: bytes
 * @write: the region allows writes to the buffer
 *
 * Context: process of the application.
 * Return: the buffer; -EACCES if it is to be written and @fd may only be read;
 * -EOPNOTSUPP if its memory is not pages of the kernel, or for a negative @fd,
 * by which NCCL asks whether GPUs may share their memory; -EINVAL for a range
 * beyond the buffer; -ENOMEM; or the error of the exporter.
 */
struct arx_dmabuf *arx_dmabuf_get(struct device *dev, int fd, u64 offset,
				  u64 length, bool write)
{
	struct arx_dmabuf *buf;
	u64 end;
	int err;

	if (fd < 0)
		return ERR_PTR(-EOPNOTSUPP);
	buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);
	if (!buf)
		return ERR_PTR(-ENOMEM);
	buf->buf = dma_buf_get(fd);
	if (IS_ERR(buf->buf)) {
		err = PTR_ERR(buf->buf);
		goto free;
	}
	err = -EACCES;
	if (write && !(buf->buf->file->f_mode & FMODE_WRITE))
		goto put;
	err = -EINVAL;
	if (!length || check_add_overflow(offset, length, &end) ||
	    end > buf->buf->size)
		goto put;
	err = arx_dmabuf_begin(buf, dev);
	if (!err)
		return buf;
put:
	dma_buf_put(buf->buf);
free:
	kfree(buf);
	return ERR_PTR(err);
}

/**
 * arx_dmabuf_put - end the use of a buffer
 * @buf: from arx_dmabuf_get()
 *
 * Context: may sleep.
 */
void arx_dmabuf_put(struct arx_dmabuf *buf)
{
	arx_dmabuf_end(buf);
	dma_buf_put(buf->buf);
	kfree(buf);
}

/**
 * arx_dmabuf_page - a page of a buffer
 * @of: from arx_dmabuf_get()
 * @n: number of the page, from the beginning of the buffer
 *
 * Return: its address in the direct map.
 */
void *arx_dmabuf_page(void *of, size_t n)
{
	return page_address(arx_dmabuf_find(of, n * PAGE_SIZE));
}
#else
struct arx_dmabuf *arx_dmabuf_get(struct device *dev, int fd, u64 offset,
				  u64 length, bool write)
{
	return ERR_PTR(-EOPNOTSUPP);
}

void arx_dmabuf_put(struct arx_dmabuf *buf)
{
}

void *arx_dmabuf_page(void *of, size_t n)
{
	return NULL;
}
#endif
