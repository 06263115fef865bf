// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A program that may sleep: the driver must refuse. */

#include "arx.h"

SEC("struct_ops.s") void sleeps_timeout(u64 *args)
{
	struct arx_cc *cc = (struct arx_cc *)args[0];

	cc->bpf.window = 1;
}

SEC(".struct_ops.link") struct arx_cc_ops sleeps = {
	.timeout = (void *)sleeps_timeout,
};
