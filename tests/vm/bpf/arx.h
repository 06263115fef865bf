/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What programs of BPF know about arx; see Documentation/bpf/aimd.bpf.c. */

typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

struct arx_cc_bpf {
	u32 window;
	u64 rate;
	u64 words[16];
	u64 generation;
} __attribute__((preserve_access_index));

struct arx_cc_ops;

struct arx_cc {
	const struct arx_cc_ops *ops;
	u32 most;
	u32 window;
	unsigned long rate;
	struct arx_cc_bpf bpf;
} __attribute__((preserve_access_index));

struct arx_cc_ops {
	void (*init)(struct arx_cc *cc, u64 now);
	void (*ack)(struct arx_cc *cc, u32 n, u64 rtt, u64 now);
	void (*cnp)(struct arx_cc *cc, u64 now);
	void (*loss)(struct arx_cc *cc, u32 n, u64 now);
	void (*timeout)(struct arx_cc *cc, u64 now);
};

SEC("license") char _license[] = "GPL";
