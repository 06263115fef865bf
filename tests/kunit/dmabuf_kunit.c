// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* dmabuf.c: which buffers are taken, and that each use ends. */

#include <kunit/device.h>
#include <kunit/test.h>
#include <linux/dma-buf.h>
#include <linux/fcntl.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/vmalloc.h>

/* The page that stands for memory without a struct page. */
static unsigned long no_page;

#undef pfn_valid
#define pfn_valid(pfn)	((pfn) != no_page)

#include "dmabuf.c"

/**
 * struct exporter - what an exporter of one buffer does and has seen
 * @mem: the memory
 * @iomem: the memory claims to be that of a card
 * @attach_err: result of attach
 * @begin_err: result of begin_cpu_access
 * @attached: devices that are attached
 * @pins: pins of their attachments
 * @maps: mappings that have not ended
 * @uses: uses that have begun and not ended
 */
struct exporter {
	void *mem;
	bool iomem;
	int attach_err;
	int begin_err;
	int attached;
	int pins;
	int maps;
	int uses;
};

static struct sg_table *no_map(struct dma_buf_attachment *attach,
			       enum dma_data_direction dir)
{
	return ERR_PTR(-EIO);
}

static void no_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		     enum dma_data_direction dir)
{
}

static void no_release(struct dma_buf *buf)
{
}

static int do_attach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct exporter *e = buf->priv;

	if (!e->attach_err)
		e->attached++;
	return e->attach_err;
}

static void do_detach(struct dma_buf *buf, struct dma_buf_attachment *attach)
{
	struct exporter *e = buf->priv;

	e->attached--;
}

static int do_pin(struct dma_buf_attachment *attach)
{
	struct exporter *e = attach->dmabuf->priv;

	e->pins++;
	return 0;
}

static void do_unpin(struct dma_buf_attachment *attach)
{
	struct exporter *e = attach->dmabuf->priv;

	e->pins--;
}

static int do_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *e = buf->priv;

	e->maps++;
	if (e->iomem)
		iosys_map_set_vaddr_iomem(map, (void __iomem *)e->mem);
	else
		iosys_map_set_vaddr(map, e->mem);
	return 0;
}

static void do_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct exporter *e = buf->priv;

	e->maps--;
}

static int do_begin(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct exporter *e = buf->priv;

	if (!e->begin_err)
		e->uses++;
	return e->begin_err;
}

static int do_end(struct dma_buf *buf, enum dma_data_direction dir)
{
	struct exporter *e = buf->priv;

	e->uses--;
	return 0;
}

#define OPS \
	.attach = do_attach, \
	.detach = do_detach, \
	.map_dma_buf = no_map, \
	.unmap_dma_buf = no_unmap, \
	.release = no_release, \
	.vmap = do_vmap, \
	.vunmap = do_vunmap, \
	.begin_cpu_access = do_begin, \
	.end_cpu_access = do_end

static const struct dma_buf_ops ops = {
	OPS,
};

static const struct dma_buf_ops ops_with_pin = {
	OPS,
	.pin = do_pin,
	.unpin = do_unpin,
};

static const struct dma_buf_ops ops_without_vmap = {
	.map_dma_buf = no_map,
	.unmap_dma_buf = no_unmap,
	.release = no_release,
};

#define PAGES	3

static struct dma_buf *export(struct kunit *test, struct exporter *e,
			      const struct dma_buf_ops *by)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *buf;

	info.ops = by;
	info.size = PAGES * PAGE_SIZE;
	info.flags = O_RDWR;
	info.priv = e;
	buf = dma_buf_export(&info);
	KUNIT_ASSERT_FALSE(test, IS_ERR(buf));
	return buf;
}

/* A device to attach, and memory to export. */
static struct device *prepare(struct kunit *test, struct exporter *e)
{
	struct device *dev = kunit_device_register(test, "arx");

	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	e->mem = vmalloc(PAGES * PAGE_SIZE);
	KUNIT_ASSERT_NOT_NULL(test, e->mem);
	return dev;
}

/* Nothing is in use any more. */
static void expect_ended(struct kunit *test, const struct exporter *e)
{
	KUNIT_EXPECT_EQ(test, e->attached, 0);
	KUNIT_EXPECT_EQ(test, e->pins, 0);
	KUNIT_EXPECT_EQ(test, e->maps, 0);
	KUNIT_EXPECT_EQ(test, e->uses, 0);
}

static void pages_of(struct kunit *test, const struct dma_buf_ops *by)
{
	struct exporter e = {};
	struct device *dev = prepare(test, &e);
	struct arx_dmabuf buf = {};
	u8 *page;

	memset(e.mem, 7, PAGES * PAGE_SIZE);
	buf.buf = export(test, &e, by);
	KUNIT_ASSERT_EQ(test, arx_dmabuf_begin(&buf, dev), 0);
	KUNIT_EXPECT_EQ(test, e.attached, 1);
	KUNIT_EXPECT_EQ(test, e.pins, !!by->pin);
	KUNIT_EXPECT_EQ(test, e.maps, 1);
	KUNIT_EXPECT_EQ(test, e.uses, 1);
	page = arx_dmabuf_page(&buf, 2);
	KUNIT_EXPECT_TRUE(test, virt_addr_valid(page));
	KUNIT_EXPECT_EQ(test, page[5], 7);
	page[5] = 9;
	KUNIT_EXPECT_EQ(test, ((u8 *)e.mem)[2 * PAGE_SIZE + 5], 9);
	arx_dmabuf_end(&buf);
	expect_ended(test, &e);
	dma_buf_put(buf.buf);
	vfree(e.mem);
}

static void dmabuf__pages(struct kunit *test)
{
	pages_of(test, &ops);
}

static void dmabuf__pages_pinned(struct kunit *test)
{
	pages_of(test, &ops_with_pin);
}

/* Each refusal undoes what was done. */
static void dmabuf__refused(struct kunit *test)
{
	struct exporter e = {};
	struct device *dev = prepare(test, &e);
	struct arx_dmabuf buf = {};

	buf.buf = export(test, &e, &ops_with_pin);
	e.attach_err = -ENOTSUPP;
	KUNIT_EXPECT_EQ(test, arx_dmabuf_begin(&buf, dev), -ENOTSUPP);
	e.attach_err = 0;
	e.iomem = true;
	KUNIT_EXPECT_EQ(test, arx_dmabuf_begin(&buf, dev), -EOPNOTSUPP);
	e.iomem = false;
	e.begin_err = -ERESTARTSYS;
	KUNIT_EXPECT_EQ(test, arx_dmabuf_begin(&buf, dev), -ERESTARTSYS);
	expect_ended(test, &e);
	dma_buf_put(buf.buf);

	buf.buf = export(test, &e, &ops_without_vmap);
	KUNIT_EXPECT_EQ(test, arx_dmabuf_begin(&buf, dev), -EOPNOTSUPP);
	dma_buf_put(buf.buf);
	vfree(e.mem);
}

/* An exporter maps memory of a card as if it were the kernel's. */
static void dmabuf__no_struct_page(struct kunit *test)
{
	struct exporter e = {};
	struct device *dev = prepare(test, &e);
	struct arx_dmabuf buf = {};
	int err;

	buf.buf = export(test, &e, &ops);
	no_page = vmalloc_to_pfn(e.mem + PAGE_SIZE);
	err = arx_dmabuf_begin(&buf, dev);
	KUNIT_EXPECT_EQ(test, err, -EOPNOTSUPP);
	if (!err)
		arx_dmabuf_end(&buf);
	no_page = 0;
	expect_ended(test, &e);
	dma_buf_put(buf.buf);
	vfree(e.mem);
}

/* Numbers that name no buffer. */
static void dmabuf__no_buffer(struct kunit *test)
{
	KUNIT_EXPECT_PTR_EQ(test, arx_dmabuf_get(NULL, -1, 0, 0, false),
			    ERR_PTR(-EOPNOTSUPP));
	KUNIT_EXPECT_PTR_EQ(test, arx_dmabuf_get(NULL, 1 << 20, 0,
						 PAGE_SIZE, false),
			    ERR_PTR(-EBADF));
}

static struct kunit_case dmabuf_cases[] = {
	KUNIT_CASE(dmabuf__pages),
	KUNIT_CASE(dmabuf__pages_pinned),
	KUNIT_CASE(dmabuf__refused),
	KUNIT_CASE(dmabuf__no_struct_page),
	KUNIT_CASE(dmabuf__no_buffer),
	{}
};

static struct kunit_suite dmabuf_suite = {
	.name = "arx_dmabuf",
	.test_cases = dmabuf_cases,
};

kunit_test_suite(dmabuf_suite);
