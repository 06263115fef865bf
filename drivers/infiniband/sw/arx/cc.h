/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Congestion control: how much a QP may have in flight, and how fast it may
 * send. A QP has a struct arx_cc from the first sign of congestion on: a loss,
 * a CNP or a long round trip. Before that it sends a full window, unpaced. This
 * file, and the files of the controllers, know no QPs. A QP whose address has a
 * static rate has a struct arx_cc, too, at first without a controller.
 */
#ifndef ARX_CC_H
#define ARX_CC_H

#include <linux/minmax.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/types.h>

struct arx_cc;

/**
 * enum arx_cc_kind - values of the device attribute cc
 * @ARX_CC_FIXED: nothing controls congestion
 * @ARX_CC_DELAY: cc_delay.c
 * @ARX_CC_DCQCN: cc_dcqcn.c
 * @ARX_CC_BPF: cc_bpf.c
 * @ARX_CC_AUTO: cc_loss.c from the first loss or CNP on. If the QP sends READ
 *	responses, cc_dcqcn.c while CNPs come
 */
enum arx_cc_kind {
	ARX_CC_FIXED,
	ARX_CC_DELAY,
	ARX_CC_DCQCN,
	ARX_CC_BPF,
	ARX_CC_AUTO,
};

/**
 * struct arx_cc_params - parameters of the controllers of a device; attrs.c has
 *	their ranges and initial values, protocol.rst says what they do
 * @delay: of cc_delay.c, the attributes cc_delay_...
 * @dcqcn: of cc_dcqcn.c, the attributes cc_dcqcn_...; names with rp_ are those
 *	of mlx5, with units
 *
 * The parameters are part of the device, which outlives its QPs. Parameters may
 * change at any time: controllers read each with READ_ONCE(), and accept any
 * combination of values in their ranges.
 */
struct arx_cc_params {
	struct {
		u32 compete;
		u32 target_min_usecs;
		u32 target_usecs;
	} delay;
	struct {
		u32 first_rate_mbps;
		u32 rp_ai_rate_mbps;
		u32 rp_byte_reset_bytes;
		u32 rp_gd;
		u32 rp_hai_rate_mbps;
		u32 rp_initial_alpha_value;
		u32 rp_min_rate_mbps;
		u32 rp_rate_reduce_monitor_period_usecs;
		u32 rp_threshold;
		u32 rp_time_reset_usecs;
	} dcqcn;
};

/**
 * struct arx_cc_ops - a controller. No function sleeps. The caller serialises
 *	all of them, and reads the clock (@now, in ns) inside, so that time
 *	never goes back
 * @init: the first sign of congestion; the sign itself is reported after that.
 *	The window and the rate are those of another controller, if it was the
 *	one before
 * @ack: @n packets are acknowledged. @rtt is the round trip of one of them in
 *	ns, of about one packet in each round trip, else 0
 * @cnp: the peer has sent a CNP
 * @loss: @n packets are lost, and are about to be sent again
 * @late: @n packets that were reported as lost were only late; NULL: that does
 *	not matter
 * @timeout: nothing was acknowledged for the time of the retransmission timer,
 *	or the peer asks for everything again
 *
 * The result is in @window and @rate of struct arx_cc.
 *
 * BPF programs know this struct by the names of its members, bpf.c.
 */
struct arx_cc_ops {
	void (*init)(struct arx_cc *cc, u64 now);
	void (*ack)(struct arx_cc *cc, u32 n, u64 rtt, u64 now);
	void (*cnp)(struct arx_cc *cc, u64 now);
	void (*loss)(struct arx_cc *cc, u32 n, u64 now);
	void (*late)(struct arx_cc *cc, u32 n, u64 now);
	void (*timeout)(struct arx_cc *cc, u64 now);
};

/**
 * enum arx_cc_delay_phase - what the controller by delay does
 * @ARX_CC_DRAIN: measures the empty path, with almost nothing in flight
 * @ARX_CC_START: doubles the window in each round trip, up to the first queue
 * @ARX_CC_STEADY: grows and shrinks the window by the time in queues
 */
enum arx_cc_delay_phase {
	ARX_CC_DRAIN,
	ARX_CC_START,
	ARX_CC_STEADY,
};

/**
 * struct arx_cc_delay - state of the controller by delay, cc_delay.c
 * @phase: enum arx_cc_delay_phase
 * @lossy: score of a link that loses packets without congestion, cc_delay.c
 * @competes: a sender that slows down for losses only shares the path, so the
 *	window follows losses
 * @cwnd: window in 1/256 packets
 * @held: @cwnd when the first of @rounds was measured
 * @rounds: number of round trips measured for @floor
 * @samples: number of round trips measured in ARX_CC_DRAIN
 * @resume: window after ARX_CC_DRAIN, 0: begin with ARX_CC_START
 * @lost: packets lost since @counted
 * @base: round trip time of an empty path in ns, as measured when it drained;
 *	0: unknown
 * @shortest: shortest round trip time in ns. Each time the path has drained, an
 *	eighth longer, because the path may have changed
 * @previous: in ARX_CC_DRAIN, the last round trip time in ns
 * @last: the last round trip time in ns
 * @floor: shortest time that packets spent in queues in the last @rounds, in ns
 * @before: the round trip time before @last in ns
 * @target: time that packets may spend in queues, in ns
 * @full: the most that a round trip took beyond @shortest when packets were
 *	lost for lack of room, in ns; an eighth less with each such loss
 * @drained: when ARX_CC_DRAIN began, in ns
 * @cut: when the window was last reduced, in ns
 * @counted: when the present round of losses began, in ns
 */
struct arx_cc_delay {
	u8 phase;
	u8 lossy;
	bool competes;
	u32 cwnd;
	u32 held;
	u32 rounds;
	u32 samples;
	u32 resume;
	u32 lost;
	u64 base;
	u64 shortest;
	u64 previous;
	u64 last;
	u64 floor;
	u64 before;
	u64 target;
	u64 full;
	u64 drained;
	u64 cut;
	u64 counted;
};

/* Of DCQCN's parameters: the highest rate, and 1 in units of alpha */
#define ARX_DCQCN_MOST_MBPS	400000
#define ARX_DCQCN_ALPHA_ONE	1024

/**
 * struct arx_cc_dcqcn - state of DCQCN, cc_dcqcn.c; rates in bytes per second
 * @rate: current rate
 * @target: rate to which it recovers
 * @alpha: estimate of congestion, in 1/2^20
 * @bytes: acknowledged since the last event of the byte counter
 * @by_time: events of the timer since the rate was last reduced
 * @by_bytes: events of the byte counter since then
 * @rtt: the last round trip time in ns
 * @cut: when the rate was last reduced, in ns
 * @decayed: when @alpha last decayed, in ns
 * @raised: when the timer last raised the rate, in ns
 * @drains: the window that was sent before there was a controller has not
 *	drained yet, or the packet after it is in flight
 * @drained: if @drains: packets acknowledged
 * @began: when the controller began, in ns
 * @empty: if @drains: when that window had drained, in ns, 0: it has not
 */
struct arx_cc_dcqcn {
	u64 rate;
	u64 target;
	u32 alpha;
	u32 bytes;
	u32 by_time;
	u32 by_bytes;
	u64 rtt;
	u64 cut;
	u64 decayed;
	u64 raised;
	bool drains;
	u32 drained;
	u64 began;
	u64 empty;
};

/**
 * struct arx_cc_loss - state of the control by losses, cc_loss.c; times in ns
 * @lossy: evidence that the link loses packets without congestion
 * @fulls: on such a link, losses in a row in a queue that seems to be full
 * @cwnd: window in 1/256 packets
 * @held: @cwnd before it shrank without knowledge of the link; it returns to
 *	that if the link proves to be lossy. 0: there is nothing to return to
 * @bound: the largest window in packets; larger than without a controller if
 *	the path has proved to have room for it
 * @quick: after timeouts, below this @cwnd grows by half in a round trip
 * @had: window in packets when @counted was set
 * @lost: packets lost since @counted
 * @rounds: round trips measured since the window shrank or returned
 * @shortest: shortest round trip since the path may have changed, 0: unknown
 * @last: the last round trip, 0: none was measured
 * @before: the round trip before @last
 * @full: about the longest round trip in which packets were lost, 0: unknown
 * @counted: when the present round of losses began, 0: there was none
 * @marked: when the window last shrank for a CNP, 0: never
 * @queued: when a window of @bound last made a queue, 0: never
 */
struct arx_cc_loss {
	u8 lossy;
	u8 fulls;
	u32 cwnd;
	u32 held;
	u32 bound;
	u32 quick;
	u32 had;
	u32 lost;
	u32 rounds;
	u64 shortest;
	u64 last;
	u64 before;
	u64 full;
	u64 counted;
	u64 marked;
	u64 queued;
};

/*
 * If no round trip of a path is shorter than this, in ns, the path is long: the
 * window of a QP without control is too small for fast links.
 */
#define ARX_CC_FAR		(5 * NSEC_PER_MSEC)

/* Words for a BPF program's own use. */
#define ARX_CC_BPF_WORDS	16

/**
 * struct arx_cc_bpf - state of the controller by a BPF program, cc_bpf.c
 * @window: window that the program asks for, in packets. Between two calls it
 *	is the window that the QP has
 * @rate: rate that the program asks for in bytes per second, 0: as fast as
 *	possible. Between two calls it is the rate that the QP has
 * @words: the program's own
 * @generation: of the program whose state this is, 0: none. Programs cannot
 *	write @generation, nor anything else outside of @window to @words
 */
struct arx_cc_bpf {
	u32 window;
	u64 rate;
	u64 words[ARX_CC_BPF_WORDS];
	u64 generation;
};

/**
 * struct arx_cc - congestion control of a QP
 * @ops: its controller, NULL: none
 * @params: of the controllers of its device; valid if @ops is not NULL
 * @mtu: bytes of a full packet, with headers
 * @most: the window without a controller, in packets
 * @widest: the largest window, on long paths, in packets
 * @shortest: the shortest round trip in ns, 0: unknown
 * @epoch: time of day minus the machine's time since boot, in ns
 * @window: packets that may be in flight, at least 1; published
 * @limited: the sender waited for the window or the rate since the last round
 *	trip was measured: a hint; a sender sets it, the controller clears it
 * @early: packets are in flight that were sent before there was a controller;
 *	set before arx_cc_control(). Under the completer's lock
 * @responds: the QP sends READ responses, which nothing acknowledges. Under the
 *	completer's lock
 * @marked: time of the last CNP in ns. Under the completer's lock
 * @rtt: the last round trip in ns, 0: none was measured. Under the completer's
 *	lock
 * @acked: packets acknowledged since arx_congestion_overflows() last judged.
 *	Under the completer's lock
 * @lost: packets lost since then. Under the completer's lock
 * @rate: bytes per second that the controller allows, 0: as fast as possible;
 *	published
 * @static_rate: bytes per second that the address allows, 0: as fast as
 *	possible; published
 * @pace_lock: serialises changes of @next; innermost
 * @next: when the next packet may be sent, in ns; published
 * @delay: state of cc_delay.c
 * @dcqcn: state of cc_dcqcn.c
 * @loss: state of cc_loss.c
 * @bpf: state of cc_bpf.c
 */
struct arx_cc {
	const struct arx_cc_ops *ops;
	const struct arx_cc_params *params;
	u32 mtu;
	u32 most;
	u32 widest;
	u64 shortest;
	u64 epoch;
	u32 window;
	bool limited;
	bool early;
	bool responds;
	u64 marked;
	u64 rtt;
	u32 acked;
	u32 lost;
	unsigned long rate;
	unsigned long static_rate;
	spinlock_t pace_lock;	/* serialises changes of next */
	u64 next;
	union {
		struct arx_cc_delay delay;
		struct arx_cc_dcqcn dcqcn;
		struct arx_cc_loss loss;
		struct arx_cc_bpf bpf;
	};
};

extern const struct arx_cc_ops arx_cc_delay_ops;
extern const struct arx_cc_ops arx_cc_dcqcn_ops;
extern const struct arx_cc_ops arx_cc_loss_ops;

void arx_cc_init(struct arx_cc *cc, u32 mtu, u32 most, u32 widest, u64 now);
void arx_cc_control(struct arx_cc *cc, const struct arx_cc_ops *ops,
		    const struct arx_cc_params *params, u64 epoch, u64 now);
u64 arx_cc_wait(const struct arx_cc *cc, u64 now, bool ahead);
void arx_cc_charge(struct arx_cc *cc, u32 bytes, u64 now);
u32 arx_cc_burst(const struct arx_cc *cc);

/**
 * arx_cc_rate - the rate at which packets may leave
 * @cc: of a QP
 *
 * Context: any.
 * Return: bytes per second, 0: as fast as possible.
 */
static inline unsigned long arx_cc_rate(const struct arx_cc *cc)
{
	return min_not_zero(READ_ONCE(cc->rate), READ_ONCE(cc->static_rate));
}

#endif /* ARX_CC_H */
