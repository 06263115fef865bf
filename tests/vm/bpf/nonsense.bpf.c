// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Asks for windows and rates that no QP can have. Counts what it gets. */

#include "arx.h"

u64 acks, outside;

SEC("struct_ops") void nonsense_ack(u64 *args)
{
	struct arx_cc *cc = (struct arx_cc *)args[0];
	u64 n = __sync_fetch_and_add(&acks, 1);

	if (!cc->window || cc->window > cc->most || (n && !cc->rate))
		__sync_fetch_and_add(&outside, 1);
	cc->bpf.window = n & 1 ? 0 : 0xffffffff;
	cc->bpf.rate = n & 2 ? 1 : ~0ULL;
}

SEC("struct_ops") void nonsense_loss(u64 *args)
{
	struct arx_cc *cc = (struct arx_cc *)args[0];

	cc->bpf.window = 0;
	cc->bpf.rate = 1;
}

SEC(".struct_ops.link") struct arx_cc_ops nonsense = {
	.ack = (void *)nonsense_ack,
	.loss = (void *)nonsense_loss,
};
