/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Ethernet's CRC32, by the fastest method that the machine has. */
#ifndef ARX_CRC_H
#define ARX_CRC_H

#include <linux/types.h>

void arx_crc_init(void);
u32 arx_crc32(u32 crc, const void *p, size_t len);
u32 arx_crc32_sparse(u32 crc, const void *p, size_t len);

#endif /* ARX_CRC_H */
