// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A dma-buf exporter that moves its buffers to other memory, and revokes them,
 * when a program says so. As with the drivers of some GPUs, a buffer that is
 * mapped for the kernel stays in place only while a device is attached to the
 * buffer, or only while the attachment is pinned. It poisons memory that a
 * buffer has left, so that an importer that goes on to use that memory is
 * noticed, and warns if anybody holds the memory's pages.
 */

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/highmem.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "exporter.h"

#define MOST	SZ_1M
#define POISON	0x6b

/**
 * struct movable - a buffer; changes under its reservation
 * @n: pages
 * @keeps: attachments, or pins, that keep it in place
 * @vaddr: mapped for the kernel, or NULL
 * @revoked: nobody gets at it any more
 * @pages: its memory
 */
struct movable {
	unsigned int n;
	unsigned int keeps;
	void *vaddr;
	bool revoked;
	struct page *pages[];
};

static void leave_page(struct page *page)
{
	WARN_ON_ONCE(page_count(page) != 1);
	memset(page_address(page), POISON, PAGE_SIZE);
	__free_page(page);
}

static void movable_free(struct movable *m)
{
	while (m->n)
		leave_page(m->pages[--m->n]);
	kfree(m);
}

static struct movable *movable_alloc(unsigned int n)
{
	struct movable *m = kzalloc(struct_size(m, pages, n), GFP_KERNEL);

	if (!m)
		return NULL;
	for (; m->n < n; m->n++) {
		m->pages[m->n] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!m->pages[m->n]) {
			movable_free(m);
			return NULL;
		}
	}
	return m;
}

static int movable_move(struct movable *m)
{
	struct movable *to = movable_alloc(m->n);
	unsigned int i;

	if (!to)
		return -ENOMEM;
	for (i = 0; i < m->n; i++) {
		copy_highpage(to->pages[i], m->pages[i]);
		swap(to->pages[i], m->pages[i]);
	}
	movable_free(to);
	return 0;
}

static int movable_attach(struct dma_buf *buf,
			  struct dma_buf_attachment *attach)
{
	struct movable *m = buf->priv;

	dma_resv_lock(buf->resv, NULL);
	m->keeps++;
	dma_resv_unlock(buf->resv);
	return 0;
}

static void movable_detach(struct dma_buf *buf,
			   struct dma_buf_attachment *attach)
{
	struct movable *m = buf->priv;

	dma_resv_lock(buf->resv, NULL);
	m->keeps--;
	dma_resv_unlock(buf->resv);
}

/* Under the reservation. As GPUs do, it may move the buffer to pin it. */
static int movable_pin(struct dma_buf_attachment *attach)
{
	struct movable *m = attach->dmabuf->priv;
	int err = 0;

	if (!m->keeps) {
		dma_buf_invalidate_mappings(attach->dmabuf);
		err = movable_move(m);
	}
	if (!err)
		m->keeps++;
	return err;
}

static void movable_unpin(struct dma_buf_attachment *attach)
{
	struct movable *m = attach->dmabuf->priv;

	m->keeps--;
}

static struct sg_table *movable_map(struct dma_buf_attachment *attach,
				    enum dma_data_direction dir)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void movable_unmap(struct dma_buf_attachment *attach,
			  struct sg_table *sgt, enum dma_data_direction dir)
{
}

static void movable_release(struct dma_buf *buf)
{
	movable_free(buf->priv);
}

static int movable_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct movable *m = buf->priv;

	m->vaddr = vmap(m->pages, m->n, VM_MAP, PAGE_KERNEL);
	if (!m->vaddr)
		return -ENOMEM;
	iosys_map_set_vaddr(map, m->vaddr);
	return 0;
}

static void movable_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct movable *m = buf->priv;

	vunmap(m->vaddr);
	m->vaddr = NULL;
}

/* A failure of vmap would make the kernel warn. */
static int movable_begin(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct movable *m = buf->priv;

	return READ_ONCE(m->revoked) ? -ENODEV : 0;
}

static const struct dma_buf_ops attached_ops = {
	.attach = movable_attach,
	.detach = movable_detach,
	.map_dma_buf = movable_map,
	.unmap_dma_buf = movable_unmap,
	.release = movable_release,
	.vmap = movable_vmap,
	.vunmap = movable_vunmap,
	.begin_cpu_access = movable_begin,
};

static const struct dma_buf_ops pinned_ops = {
	.pin = movable_pin,
	.unpin = movable_unpin,
	.map_dma_buf = movable_map,
	.unmap_dma_buf = movable_unmap,
	.release = movable_release,
	.vmap = movable_vmap,
	.vunmap = movable_vunmap,
	.begin_cpu_access = movable_begin,
};

static long exporter_make(unsigned long size, const struct dma_buf_ops *ops)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;
	struct movable *m;
	int fd;

	if (!size || size > MOST)
		return -EINVAL;
	m = movable_alloc(DIV_ROUND_UP(size, PAGE_SIZE));
	if (!m)
		return -ENOMEM;
	info.ops = ops;
	info.size = m->n * PAGE_SIZE;
	info.flags = O_RDWR;
	info.priv = m;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		movable_free(m);
		return PTR_ERR(buf);
	}
	fd = dma_buf_fd(buf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(buf);
	return fd;
}

static long exporter_change(int fd, bool revoke)
{
	struct dma_buf *buf = dma_buf_get(fd);
	struct movable *m;
	int err = 0;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	if (buf->ops != &attached_ops && buf->ops != &pinned_ops) {
		dma_buf_put(buf);
		return -EINVAL;
	}
	m = buf->priv;
	dma_resv_lock(buf->resv, NULL);
	if (m->keeps) {
		err = -EBUSY;
	} else {
		dma_buf_invalidate_mappings(buf);
		if (revoke)
			WRITE_ONCE(m->revoked, true);
		else
			err = movable_move(m);
	}
	dma_resv_unlock(buf->resv);
	dma_buf_put(buf);
	return err;
}

static long exporter_ioctl(struct file *file, unsigned int cmd,
			   unsigned long arg)
{
	switch (cmd) {
	case EXPORTER_MAKE:
		return exporter_make(arg, &attached_ops);
	case EXPORTER_MAKE_PINNED:
		return exporter_make(arg, &pinned_ops);
	case EXPORTER_MOVE:
	case EXPORTER_REVOKE:
		return exporter_change(arg, cmd == EXPORTER_REVOKE);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations exporter_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = exporter_ioctl,
};

static struct miscdevice exporter = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "arx-exporter",
	.fops = &exporter_fops,
};

module_misc_device(exporter);

ARX_IMPORT_DMA_BUF;
MODULE_DESCRIPTION("dma-bufs that move and are revoked");
MODULE_LICENSE("Dual BSD/GPL");
