/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Congestion control by a BPF program: the program that QPs use. */
#ifndef ARX_CC_BPF_H
#define ARX_CC_BPF_H

#include "cc.h"

extern const struct arx_cc_ops arx_cc_bpf_ops;
extern bool arx_cc_bpf_able;

int arx_cc_bpf_replace(const struct arx_cc_ops *old,
		       const struct arx_cc_ops *new);

#endif /* ARX_CC_BPF_H */
