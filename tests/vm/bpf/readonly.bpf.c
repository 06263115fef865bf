// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Writes where no program may: the verifier must refuse. */

#include "arx.h"

SEC("struct_ops") void readonly_ack(u64 *args)
{
	struct arx_cc *cc = (struct arx_cc *)args[0];

	cc->most = 1000000;
}

SEC(".struct_ops.link") struct arx_cc_ops readonly = {
	.ack = (void *)readonly_ack,
};
