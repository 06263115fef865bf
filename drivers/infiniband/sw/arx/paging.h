/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Stages that wait for pages. */
#ifndef ARX_PAGING_H
#define ARX_PAGING_H

#include "qp.h"

int arx_paging_init(void);
void arx_paging_exit(void);
bool __cold arx_paging_wait(struct arx_qp *qp, struct arx_paging *paging,
			    const struct arx_pages *want);

#endif /* ARX_PAGING_H */
