/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory of a dma-buf, for a region. */
#ifndef ARX_DMABUF_H
#define ARX_DMABUF_H

#include <linux/types.h>

struct arx_dmabuf;
struct device;

struct arx_dmabuf *arx_dmabuf_get(struct device *dev, int fd, u64 offset,
				  u64 length, bool write);
void arx_dmabuf_put(struct arx_dmabuf *buf);
void *arx_dmabuf_page(void *of, size_t n);

#endif /* ARX_DMABUF_H */
