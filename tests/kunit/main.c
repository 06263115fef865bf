// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The suites register themselves; a module needs no more than a licence. */

#include <linux/module.h>

#include "compat.h"

MODULE_DESCRIPTION("Unit tests of arx");
MODULE_LICENSE("Dual BSD/GPL");
ARX_IMPORT_DMA_BUF;
