/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The doorbell file: an application rings it when the kernel does not poll. */
#ifndef ARX_DOORBELL_H
#define ARX_DOORBELL_H

#include <rdma/uverbs_ioctl.h>

extern const struct uapi_definition arx_doorbell_defs[];

#endif /* ARX_DOORBELL_H */
