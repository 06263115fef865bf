/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Registration of BPF programs that control congestion. */
#ifndef ARX_BPF_H
#define ARX_BPF_H

void arx_bpf_init(void);

#endif /* ARX_BPF_H */
