/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The socket of a QP: the QP's packets that are queued on this machine. */
#ifndef ARX_SOCK_H
#define ARX_SOCK_H

#include "qp.h"

int arx_sock_init(struct arx_qp *qp);
void arx_sock_forget(struct arx_qp *qp);
void arx_sock_cleanup(struct arx_qp *qp);
u32 arx_sock_waits(const struct arx_qp *qp);
bool arx_sock_is_empty(struct arx_qp *qp);
bool arx_sock_has_room(struct arx_qp *qp);
bool arx_sock_pace(const struct arx_qp *qp, unsigned long rate);
void arx_sock_wake_on_less(struct arx_qp *qp);
void arx_sock_icrc_computed(const struct sk_buff *skb, u32 n);

#endif /* ARX_SOCK_H */
