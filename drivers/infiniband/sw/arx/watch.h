/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Polling of a send ring without a doorbell. */
#ifndef ARX_WATCH_H
#define ARX_WATCH_H

#include <linux/types.h>

struct arx_qp;

void arx_watch_init(struct arx_qp *qp);
bool arx_watch_update(struct arx_qp *qp);
bool arx_watch_again(struct arx_qp *qp, u64 before);
void arx_watch_stop(struct arx_qp *qp);
void arx_watch_forget(struct arx_qp *qp);
void arx_watch_cancel(struct arx_qp *qp);

#endif /* ARX_WATCH_H */
