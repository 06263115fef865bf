// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Congestion control of arx by a BPF program, an example: additive increase,
 * multiplicative decrease. The window grows by a packet in each round trip, and
 * halves when packets are lost or a CNP arrives, once in a round trip.
 *
 *   clang -O2 -g --target=bpf -c Documentation/bpf/aimd.bpf.c -o aimd.bpf.o
 *   Documentation/bpf/register aimd.bpf.o
 *   echo bpf > /sys/class/infiniband/arx0/cc
 *
 * "rm /sys/fs/bpf/arx_cc" removes the program. Documentation/protocol.rst,
 * "Programs of BPF", says what a program may do.
 */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

/*
 * The members of the driver's structs that this program uses. The loader finds
 * out where the loaded arx.ko has them.
 */
struct arx_cc_bpf {
	u32 window;	/* packets that may be in flight */
	u64 rate;	/* bytes per second, 0: as fast as possible */
	u64 words[16];	/* this program's own; 0 when control begins */
} __attribute__((preserve_access_index));

struct arx_cc {
	u32 mtu;	/* bytes of a full packet, with headers */
	u32 most;	/* largest window */
	struct arx_cc_bpf bpf;
} __attribute__((preserve_access_index));

/* Functions that are missing do nothing. All times are in ns. */
struct arx_cc_ops {
	void (*init)(struct arx_cc *cc, u64 now);
	void (*ack)(struct arx_cc *cc, u32 n, u64 rtt, u64 now);
	void (*cnp)(struct arx_cc *cc, u64 now);
	void (*loss)(struct arx_cc *cc, u32 n, u64 now);
	void (*timeout)(struct arx_cc *cc, u64 now);
};

#define SEC(name) __attribute__((section(name), used))

/* What @words hold. */
enum {
	RTT,	/* the last round trip */
	CUT,	/* when the window was last reduced */
	ACKED,	/* packets since the window last grew */
};

static void cut(struct arx_cc *cc, u64 now)
{
	if (now - cc->bpf.words[CUT] < cc->bpf.words[RTT])
		return;
	cc->bpf.words[CUT] = now;
	cc->bpf.window /= 2;
}

/* The arguments of a function are in an array of u64. */
SEC("struct_ops") void aimd_ack(u64 *args)
{
	struct arx_cc *cc = (struct arx_cc *)args[0];
	u32 n = args[1];
	u64 rtt = args[2];

	if (rtt)
		cc->bpf.words[RTT] = rtt;
	cc->bpf.words[ACKED] += n;
	if (cc->bpf.words[ACKED] < cc->bpf.window)
		return;
	cc->bpf.words[ACKED] = 0;
	cc->bpf.window++;
}

SEC("struct_ops") void aimd_cnp(u64 *args)
{
	cut((struct arx_cc *)args[0], args[1]);
}

SEC("struct_ops") void aimd_loss(u64 *args)
{
	cut((struct arx_cc *)args[0], args[2]);
}

SEC("struct_ops") void aimd_timeout(u64 *args)
{
	struct arx_cc *cc = (struct arx_cc *)args[0];

	cc->bpf.window = 1;
}

SEC(".struct_ops.link") struct arx_cc_ops aimd = {
	.ack = (void *)aimd_ack,
	.cnp = (void *)aimd_cnp,
	.loss = (void *)aimd_loss,
	.timeout = (void *)aimd_timeout,
};

/* The verifier lets programs read the kernel's structs under this licence. */
SEC("license") char _license[] = "GPL";
