// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A fixed rate. Counts its calls, and what it finds wrong. */

#include "arx.h"

#ifndef NAME
#define NAME rate
#define RATE 250000
#endif

u64 inits, acks, losses, timeouts, wrong;

/* Each QP begins with init, and with words of value 0. */
SEC("struct_ops") void rate_init(u64 *args)
{
	struct arx_cc *cc = (struct arx_cc *)args[0];

	__sync_fetch_and_add(&inits, 1);
	if (cc->bpf.words[0] || cc->bpf.words[15] ||
	    cc->bpf.window != cc->most || cc->bpf.rate)
		__sync_fetch_and_add(&wrong, 1);
	cc->bpf.words[0] = RATE;
	cc->bpf.words[15] = args[1];
	cc->bpf.rate = RATE;
}

static void check(struct arx_cc *cc, u64 now)
{
	if (cc->bpf.words[0] != RATE || cc->bpf.words[15] > now ||
	    cc->bpf.rate != RATE || cc->rate != RATE ||
	    cc->window != cc->bpf.window)
		__sync_fetch_and_add(&wrong, 1);
}

SEC("struct_ops") void rate_ack(u64 *args)
{
	__sync_fetch_and_add(&acks, args[1]);
	check((struct arx_cc *)args[0], args[3]);
}

SEC("struct_ops") void rate_loss(u64 *args)
{
	__sync_fetch_and_add(&losses, args[1]);
}

SEC("struct_ops") void rate_timeout(u64 *args)
{
	__sync_fetch_and_add(&timeouts, 1);
	check((struct arx_cc *)args[0], args[1]);
}

SEC(".struct_ops.link") struct arx_cc_ops NAME = {
	.init = (void *)rate_init,
	.ack = (void *)rate_ack,
	.loss = (void *)rate_loss,
	.timeout = (void *)rate_timeout,
};
