/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a requester knows about the packets that its peer misses: protocol.rst,
 * "Reports". This file knows no QPs.
 */
#ifndef ARX_LOSS_H
#define ARX_LOSS_H

#include <linux/bitmap.h>

#include "wire.h"

/* PSNs that a report covers; a multiple of 32, at least the window. */
#define ARX_REPORT_SPAN		2048
#define ARX_REPORT_WORDS	(ARX_REPORT_SPAN / 32)

/* Parts of READs that may be asked for at a time, and ends that are noted. */
#define ARX_LOSS_ASKED		16
#define ARX_LOSS_ENDS		32

/* Packets that make a silent peer respond: the oldest, then the last. */
#define ARX_LOSS_PROBES		2

/**
 * struct arx_loss - what the peer has and what it misses, and times
 * @una: oldest PSN that is not acknowledged
 * @end: PSN after the last one that the peer reported, @una if there is none
 * @due: missing PSNs before it are lost. From there to @end they may only be
 *	late: that is decided when the timer expires
 * @back: missing PSNs before it are not late: they were in flight before the
 *	requester went back to @una, and have not been sent again
 * @held: @end when the timer was started
 * @holding: the timer waits for packets that may be late
 * @probes: number of packets that are to be sent again to make the peer respond
 * @ask: READ responses from @ask_next on are to be asked for again
 * @ask_next: what is missing of READs before this PSN has been asked for again;
 *	@una if nothing was
 * @ask_time: when the part at @una was asked for again, in ns; 0: nothing tells
 *	which request the responses belong to
 * @ask_end: PSN after that part
 * @ask_rtt: smoothed time from then to the last response in ns, 0: unknown
 * @ask_var: its mean deviation in ns
 * @asks: number of @asked
 * @asked: PSNs after parts that were asked for and end after @una: such a part
 *	may still arrive after everything has been asked for again
 * @has: number of PSNs in @there
 * @there: PSNs that the peer has, by their low bits
 * @again: PSNs that have been sent again
 * @next: of each PSN in @again: low bits of the PSN that was to be sent next,
 *	when it was sent again
 * @sent: of each PSN in @again: when it was sent again, in units of 1024 ns
 * @restart: what is missing is to be sent from its first packet on, wherever
 *	the requester is
 * @seen_una: @una when the timer was started
 * @news: a report said something new since then
 * @heard: a report said something new since the retransmission timer expired
 * @active: when the peer was last heard, or a packet was sent for the first
 *	time, in ns
 * @silent: expiries of the timer in a row without news
 * @answered: the peer has answered after such an expiry, but not taken what was
 *	sent
 * @srtt: smoothed round trip time in ns, 0: unknown
 * @rttvar: its mean deviation in ns
 * @rtt_min: the shortest one in ns
 * @newest: the last PSN that arx_loss_time() saw
 * @timing: a round trip is being measured
 * @doubtful: if @timing: the timer has expired meanwhile
 * @timed_psn: PSN whose acknowledgment ends it
 * @timed: when it began, in ns
 * @late: quarters of @srtt by which packets may be late
 * @mistaken: packets that were sent again and were only late; the caller clears
 *	this
 * @on_time: times that missing packets were lost and not late, in a row
 */
struct arx_loss {
	u32 una;
	u32 end;
	u32 due;
	u32 back;
	u32 held;
	bool holding;
	u8 probes;
	bool ask;
	u32 ask_next;
	u64 ask_time;
	u32 ask_end;
	u64 ask_rtt;
	u64 ask_var;
	u32 asks;
	u32 asked[ARX_LOSS_ENDS];
	u32 has;
	DECLARE_BITMAP(there, ARX_REPORT_SPAN);
	DECLARE_BITMAP(again, ARX_REPORT_SPAN);
	u16 next[ARX_REPORT_SPAN];
	u32 sent[ARX_REPORT_SPAN];
	bool restart;
	u32 seen_una;
	bool news;
	bool heard;
	u64 active;
	u8 silent;
	bool answered;
	u64 srtt;
	u64 rttvar;
	u64 rtt_min;
	u32 newest;
	bool timing;
	bool doubtful;
	u32 timed_psn;
	u64 timed;
	u32 mistaken;
	u8 late;
	u8 on_time;
};

void arx_loss_init(struct arx_loss *loss, u32 una, u32 nxt);
void arx_loss_forget(struct arx_loss *loss, u32 una, u32 back);
void arx_loss_advance(struct arx_loss *loss, u32 una, u64 now);
bool arx_loss_report(struct arx_loss *loss, const __be32 *words, u32 n,
		     u32 nxt, u64 now);
bool arx_loss_next(struct arx_loss *loss, u32 nxt, u64 now, u32 *psn, u32 *n);
bool arx_loss_expired(struct arx_loss *loss, u32 nxt);
bool arx_loss_probes(struct arx_loss *loss, u32 nxt, u64 now);
void arx_loss_answered(struct arx_loss *loss);
bool arx_loss_hasten(struct arx_loss *loss);
bool arx_loss_hold(struct arx_loss *loss);
void arx_loss_arrived(struct arx_loss *loss, u32 psn, u32 n, u64 now);
bool arx_loss_may_ask(const struct arx_loss *loss, u32 psn, u32 end, u32 most);
bool arx_loss_ask(struct arx_loss *loss, u32 psn, u32 end, u64 now);
bool arx_loss_asked(const struct arx_loss *loss, u32 end);
bool arx_loss_watch(struct arx_loss *loss);
u64 arx_loss_interval(const struct arx_loss *loss, bool alone);
u64 arx_loss_left(const struct arx_loss *loss, bool alone, u64 now);
u32 arx_loss_there(const struct arx_loss *loss, u32 psn);
bool arx_loss_has(const struct arx_loss *loss, u32 psn);
void arx_loss_time(struct arx_loss *loss, u32 psn, u64 now);

#endif /* ARX_LOSS_H */
