// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Writes just behind its own words: the verifier must refuse. */

#include "arx.h"

SEC("struct_ops") void elsewhere_loss(u64 *args)
{
	struct arx_cc *cc = (struct arx_cc *)args[0];

	cc->bpf.generation = 1;
}

SEC(".struct_ops.link") struct arx_cc_ops elsewhere = {
	.loss = (void *)elsewhere_loss,
};
