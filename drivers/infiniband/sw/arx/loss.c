// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which packets are lost, and how long to wait for the others. A missing PSN is
 * lost as soon as the peer reports a later one, unless the network is known to
 * change the order of packets: then it is lost a part of the round trip time
 * later. A PSN that was sent again is lost again when the peer reports a packet
 * that was sent for the first time after that, or when nothing is heard for two
 * round trips (RACK and TLP, RFC 8985, with PSNs instead of times).
 */

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/time64.h>

#include "loss.h"

/* The timer's interval while the round trip time is unknown, and limits. */
#define ARX_LOSS_UNKNOWN	(10 * NSEC_PER_MSEC)
#define ARX_LOSS_HOLD		(50ULL * NSEC_PER_USEC)
#define ARX_LOSS_LEAST		(1ULL * NSEC_PER_MSEC)
#define ARX_LOSS_MOST		(1ULL * NSEC_PER_SEC)
#define ARX_LOSS_SILENT_MAX	8

/* Unit of times of packets: 1024 ns, so that 32 bits last for an hour. */
#define ARX_LOSS_SHIFT		10

/* Packets are at most one round trip late. */
#define ARX_LOSS_LATE_MAX	4

/* After this many losses none of which was only late, order is kept again. */
#define ARX_LOSS_ON_TIME	64

static u32 arx_loss_bit(u32 psn)
{
	return psn % ARX_REPORT_SPAN;
}

/* Clear the bits of @n PSNs from @psn on. */
static void arx_loss_clear(unsigned long *map, u32 psn, u32 n)
{
	u32 at = arx_loss_bit(psn);
	u32 first = min(n, ARX_REPORT_SPAN - at);

	bitmap_clear(map, at, first);
	bitmap_clear(map, 0, n - first);
}

/* The peer has taken something: the next interval is short again. */
static void arx_loss_end_silence(struct arx_loss *loss)
{
	loss->silent = 0;
	loss->answered = false;
}

/**
 * arx_loss_forget - everything from @una on will be sent again
 * @loss: of a QP
 * @una: oldest PSN that is not acknowledged
 * @back: PSNs before it are not in flight any more; at least @una
 *
 * What is known about times stays. The caller starts the timer anew.
 *
 * Context: completer's lock held.
 */
void arx_loss_forget(struct arx_loss *loss, u32 una, u32 back)
{
	loss->has = 0;
	bitmap_zero(loss->there, ARX_REPORT_SPAN);
	bitmap_zero(loss->again, ARX_REPORT_SPAN);
	loss->una = una;
	loss->end = una;
	loss->due = una;
	loss->back = back;
	loss->holding = false;
	if (una != loss->seen_una)
		arx_loss_end_silence(loss);
	loss->seen_una = una;
	loss->news = false;
	loss->probes = 0;
	loss->restart = false;
	loss->ask = false;
	loss->ask_next = una;
	loss->ask_time = 0;
	loss->timing = false;
}

/**
 * arx_loss_init - begin to note what the peer misses
 * @loss: zeroed
 * @una: oldest PSN that is not acknowledged
 * @nxt: PSNs from here on have not been sent
 */
void arx_loss_init(struct arx_loss *loss, u32 una, u32 nxt)
{
	arx_loss_forget(loss, una, una);
	loss->newest = arx_psn_add(nxt, -1);
}

/* RFC 6298: smoothed time and its mean deviation after another one of @ns. */
static void arx_loss_smooth(u64 *smooth, u64 *var, u64 ns)
{
	u64 off = ns > *smooth ? ns - *smooth : *smooth - ns;

	if (!*smooth) {
		*smooth = ns;
		*var = ns / 2;
		return;
	}
	*var = (3 * *var + off) / 4;
	*smooth = (7 * *smooth + ns) / 8;
}

/* A round trip took @ns. */
static void arx_loss_take_rtt(struct arx_loss *loss, u64 ns)
{
	loss->rtt_min = loss->srtt ? min(loss->rtt_min, ns) : ns;
	arx_loss_smooth(&loss->srtt, &loss->rttvar, ns);
}

/*
 * The peer has the packet whose round trip is measured. If the timer expired
 * meanwhile, most likely a loss had to be noticed first: such times would make
 * the next interval as long as the last pause. But the path may have become
 * longer, so they count as up to twice a round trip, and are learnt by and by.
 */
static void arx_loss_end_timing(struct arx_loss *loss, u64 now)
{
	u64 ns = max(now - loss->timed, 1);

	loss->timing = false;
	if (test_bit(arx_loss_bit(loss->timed_psn), loss->again))
		return;
	if (loss->doubtful && loss->srtt)
		ns = min(ns, 2 * loss->srtt);
	arx_loss_take_rtt(loss, ns);
}

/*
 * A packet is there. If it was sent again less than a round trip ago, the first
 * transmission arrived, and was late.
 */
static bool arx_loss_is_late(const struct arx_loss *loss, u32 psn, u64 now)
{
	u32 bit = arx_loss_bit(psn);
	u32 ago = (u32)(now >> ARX_LOSS_SHIFT) - loss->sent[bit];

	return test_bit(bit, loss->again) &&
	       ago < (loss->rtt_min * 3 / 4) >> ARX_LOSS_SHIFT;
}

/* Learn from a packet that is there whether packets are late. */
static void arx_loss_judge(struct arx_loss *loss, u32 psn, u64 now)
{
	if (!test_bit(arx_loss_bit(psn), loss->again))
		return;
	if (arx_loss_is_late(loss, psn, now)) {
		loss->late = min(loss->late + 1, ARX_LOSS_LATE_MAX);
		loss->on_time = 0;
		loss->mistaken++;
	} else if (loss->late && ++loss->on_time >= ARX_LOSS_ON_TIME) {
		loss->late--;
		loss->on_time = 0;
	}
}

/*
 * The first of @n packets that are acknowledged was late. Count the others that
 * were, too: no report has named them.
 */
static void arx_loss_excuse(struct arx_loss *loss, u32 n, u64 now)
{
	u32 psn = loss->una;

	while (--n) {
		psn = arx_psn_add(psn, 1);
		if (!test_bit(arx_loss_bit(psn), loss->there) &&
		    arx_loss_is_late(loss, psn, now))
			loss->mistaken++;
	}
}

/* PSNs before @una are acknowledged: forget the parts that were asked for. */
static void arx_loss_end_asks(struct arx_loss *loss, u32 una, u64 now)
{
	u32 i, n = 0;

	if (arx_psn_diff(una, loss->ask_next) > 0)
		loss->ask_next = una;
	if (loss->ask_time && arx_psn_diff(una, loss->ask_end) >= 0) {
		arx_loss_smooth(&loss->ask_rtt, &loss->ask_var,
				max(now - loss->ask_time, 1));
		loss->ask_time = 0;
	}
	for (i = 0; i < loss->asks; i++)
		if (arx_psn_diff(loss->asked[i], una) > 0)
			loss->asked[n++] = loss->asked[i];
	loss->asks = n;
}

/**
 * arx_loss_advance - PSNs are acknowledged
 * @loss: of a QP
 * @una: oldest PSN that is not acknowledged
 * @now: in ns
 *
 * Context: completer's lock held.
 */
void arx_loss_advance(struct arx_loss *loss, u32 una, u64 now)
{
	s32 n = arx_psn_diff(una, loss->una);

	if (n <= 0)
		return;
	loss->active = now;
	loss->probes = 0;
	if (loss->timing && arx_psn_diff(una, loss->timed_psn) > 0)
		arx_loss_end_timing(loss, now);
	if (!test_bit(arx_loss_bit(loss->una), loss->there))
		arx_loss_judge(loss, loss->una, now);
	arx_loss_end_asks(loss, una, now);
	n = min(n, ARX_REPORT_SPAN);
	if (loss->mistaken)
		arx_loss_excuse(loss, n, now);
	arx_loss_clear(loss->there, loss->una, n);
	arx_loss_clear(loss->again, loss->una, n);
	if (loss->has)
		loss->has = bitmap_weight(loss->there, ARX_REPORT_SPAN);
	loss->una = una;
	if (arx_psn_diff(una, loss->end) > 0)
		loss->end = una;
	if (arx_psn_diff(una, loss->due) > 0)
		loss->due = una;
	if (arx_psn_diff(una, loss->back) > 0)
		loss->back = una;
}

/* The peer has @psn; true if that is news. */
static bool arx_loss_is_there(struct arx_loss *loss, u32 psn, u64 now)
{
	if (__test_and_set_bit(arx_loss_bit(psn), loss->there))
		return false;
	loss->has++;
	if (loss->timing && psn == loss->timed_psn)
		arx_loss_end_timing(loss, now);
	arx_loss_judge(loss, psn, now);
	if (arx_psn_diff(psn, loss->end) >= 0)
		loss->end = arx_psn_add(psn, 1);
	return true;
}

/**
 * arx_loss_has - true if the peer has reported a packet
 * @loss: of a QP
 * @psn: any PSN
 *
 * Context: completer's lock held.
 * Return: true if it has; false for PSNs that are acknowledged.
 */
bool arx_loss_has(const struct arx_loss *loss, u32 psn)
{
	return ((psn - loss->una) & ARX_PSN_MASK) < ARX_REPORT_SPAN &&
	       test_bit(arx_loss_bit(psn), loss->there);
}

/**
 * arx_loss_there - packets that the peer has reported, up to one
 * @loss: of a QP
 * @psn: that one
 *
 * Context: completer's lock held.
 * Return: number of the reported PSNs before @psn.
 */
u32 arx_loss_there(const struct arx_loss *loss, u32 psn)
{
	s32 left = min(arx_psn_diff(psn, loss->una), ARX_REPORT_SPAN);
	u32 at = arx_loss_bit(loss->una);
	u32 there = 0;

	while (left > 0) {
		u32 n = min3((u32)left, BITS_PER_LONG, ARX_REPORT_SPAN - at);

		there += hweight_long(bitmap_read(loss->there, at, n));
		at = (at + n) % ARX_REPORT_SPAN;
		left -= n;
	}
	return there;
}

/* True if a PSN before @due is to be sent again. */
static bool arx_loss_misses(const struct arx_loss *loss, u32 psn)
{
	u32 bit = arx_loss_bit(psn);

	if (test_bit(bit, loss->there))
		return false;
	return !test_bit(bit, loss->again) ||
	       (s16)(loss->end - loss->next[bit]) > 0;
}

/*
 * The first PSN from @psn on that the peer does not have, or @due. The bits are
 * searched by words: most packets behind a gap are there, and each report
 * searches all of them.
 */
static u32 arx_loss_hole(const struct arx_loss *loss, u32 psn)
{
	s32 left = arx_psn_diff(loss->due, psn);

	while (left > 0) {
		u32 at = arx_loss_bit(psn);
		u32 n = min_t(u32, left, ARX_REPORT_SPAN - at);
		u32 there = find_next_zero_bit(loss->there, at + n, at) - at;

		psn = arx_psn_add(psn, there);
		if (there < n)
			break;
		left -= n;
	}
	return psn;
}

/* The first PSN that is to be sent again, or @due */
static u32 arx_loss_first(const struct arx_loss *loss)
{
	u32 psn = arx_loss_hole(loss, loss->una);

	while (psn != loss->due && !arx_loss_misses(loss, psn))
		psn = arx_loss_hole(loss, arx_psn_add(psn, 1));
	return psn;
}

/*
 * The peer has the packets whose bits are set in @word; bit 0 is @psn. A report
 * repeats the ones before: only what is new costs time. True if there is news.
 */
static bool arx_loss_word(struct arx_loss *loss, u32 psn, unsigned long word,
			  u64 now)
{
	bool news = false;
	u32 bit;

	if (arx_loss_bit(psn) + 32 <= ARX_REPORT_SPAN)
		word &= ~bitmap_read(loss->there, arx_loss_bit(psn), 32);
	for_each_set_bit(bit, &word, 32)
		news |= arx_loss_is_there(loss, arx_psn_add(psn, bit), now);
	return news;
}

/* What is missing up to here is lost; what is missing behind may be late. */
static u32 arx_loss_lost(const struct arx_loss *loss)
{
	u32 lost = loss->end;

	if (loss->late && arx_psn_diff(lost, loss->back) > 0)
		lost = loss->back;
	return arx_psn_diff(lost, loss->due) > 0 ? lost : loss->due;
}

/**
 * arx_loss_report - the peer reports which packets it has
 * @loss: of a QP
 * @words: from the wire; bit i of word w stands for PSN una + 32 * w + i
 * @n: number of words, at most ARX_REPORT_WORDS
 * @nxt: PSNs from here on have not been sent
 * @now: in ns
 *
 * Context: completer's lock held.
 * Return: true if packets are to be sent again now.
 */
bool arx_loss_report(struct arx_loss *loss, const __be32 *words, u32 n,
		     u32 nxt, u64 now)
{
	u32 sent = min((nxt - loss->una) & ARX_PSN_MASK, 32 * n);
	bool news = false;
	u32 i;

	for (i = 0; i < sent; i += 32)
		news |= arx_loss_word(loss, arx_psn_add(loss->una, i),
				      be32_to_cpu(words[i / 32]) &
				      GENMASK(min(sent - i, 32) - 1, 0), now);
	if (news) {
		loss->active = now;
		loss->probes = 0;
	}
	loss->news |= news;
	loss->heard |= news;
	loss->due = arx_loss_lost(loss);
	return arx_loss_first(loss) != loss->due;
}

/*
 * PSNs of READ responses may be sent far ahead, but a report never names them:
 * a bound keeps the low bits comparable.
 */
static void arx_loss_mark(struct arx_loss *loss, u32 psn, u32 nxt, u64 now)
{
	u32 ahead = min((nxt - loss->una) & ARX_PSN_MASK, 2 * ARX_REPORT_SPAN);

	__set_bit(arx_loss_bit(psn), loss->again);
	loss->next[arx_loss_bit(psn)] = loss->una + ahead;
	loss->sent[arx_loss_bit(psn)] = now >> ARX_LOSS_SHIFT;
}

/**
 * arx_loss_next - the next packets that are to be sent again
 * @loss: of a QP
 * @nxt: PSNs from here on have not been sent
 * @now: in ns
 * @psn: receives the first of them
 * @n: receives their number
 *
 * Packets that this function returns count as sent again.
 *
 * Context: completer's lock held.
 * Return: false if there are none.
 */
bool arx_loss_next(struct arx_loss *loss, u32 nxt, u64 now, u32 *psn, u32 *n)
{
	u32 from = arx_loss_first(loss);

	*psn = from;
	for (*n = 0; arx_psn_diff(loss->due, from) > 0 &&
	     arx_loss_misses(loss, from); ++*n) {
		arx_loss_mark(loss, from, nxt, now);
		from = arx_psn_add(from, 1);
	}
	return *n;
}

/**
 * arx_loss_probes - the oldest packet is sent again because the peer is silent
 * @loss: of a QP
 * @nxt: PSNs from here on have not been sent
 * @now: in ns
 *
 * The packet counts as sent again: if the first transmission was only late, the
 * next acknowledgment shows that.
 *
 * Context: completer's lock held.
 * Return: true if the silence has just begun, and so the packet counts as lost.
 */
bool arx_loss_probes(struct arx_loss *loss, u32 nxt, u64 now)
{
	arx_loss_mark(loss, loss->una, nxt, now);
	return loss->silent == 1;
}

/**
 * arx_loss_arrived - a READ response arrived behind others that are missing
 * @loss: of a QP
 * @psn: the first PSN of the response
 * @n: its number of PSNs
 * @now: in ns
 *
 * What is missing before it does not make the round trip longer.
 *
 * Context: completer's lock held.
 */
void arx_loss_arrived(struct arx_loss *loss, u32 psn, u32 n, u64 now)
{
	if (loss->timing && ((loss->timed_psn - psn) & ARX_PSN_MASK) < n)
		arx_loss_end_timing(loss, now);
	if (loss->ask_next == psn)
		loss->ask_next = arx_psn_add(psn, n);
}

/* True if the part of a READ that is missing at @una was asked for again. */
static bool arx_loss_asks(const struct arx_loss *loss)
{
	return loss->ask_next != loss->una;
}

/**
 * arx_loss_watch - watch the part of a READ that is missing at @una
 * @loss: of a QP whose READ response @una is missing, and later ones are not
 *
 * Context: completer's lock held.
 * Return: true if the timer must be started anew, because that part has not
 * been watched before.
 */
bool arx_loss_watch(struct arx_loss *loss)
{
	if (arx_loss_asks(loss) && loss->seen_una == loss->una)
		return false;
	loss->seen_una = loss->una;
	loss->news = false;
	arx_loss_end_silence(loss);
	return true;
}

/**
 * arx_loss_asked - true if a part of a READ has been asked for again
 * @loss: of a QP
 * @end: PSN after the part, later than @una
 *
 * Context: completer's lock held.
 * Return: true if it has, however often.
 */
bool arx_loss_asked(const struct arx_loss *loss, u32 end)
{
	u32 i;

	for (i = 0; i < loss->asks; i++)
		if (loss->asked[i] == end)
			return true;
	return false;
}

/**
 * arx_loss_may_ask - true if a part of a READ may be asked for again
 * @loss: of a QP
 * @psn: first PSN of the part
 * @end: PSN after the part
 * @most: number of parts that the peer can serve at a time
 *
 * At @una there is room for a part that begins or ends elsewhere than the one
 * that was asked for before.
 *
 * Context: completer's lock held.
 * Return: false if too many others are outstanding.
 */
bool arx_loss_may_ask(const struct arx_loss *loss, u32 psn, u32 end, u32 most)
{
	most = psn == loss->una ? ARX_LOSS_ENDS : min(most, ARX_LOSS_ASKED);
	return loss->asks < most || arx_loss_asked(loss, end);
}

/**
 * arx_loss_ask - a part of a READ is asked for again
 * @loss: of a QP for which arx_loss_may_ask() is true
 * @psn: first PSN of the part
 * @end: PSN after the part
 * @now: in ns
 *
 * The time of the response is measured only at @una: a part that arrives before
 * is kept, and its time is not noted.
 *
 * Context: completer's lock held.
 * Return: true if the part has not been asked for before.
 */
bool arx_loss_ask(struct arx_loss *loss, u32 psn, u32 end, u64 now)
{
	bool first = !arx_loss_asked(loss, end);

	if (first)
		loss->asked[loss->asks++] = end;
	loss->ask_next = end;
	if (psn == loss->una) {
		loss->ask_time = first ? now : 0;
		loss->ask_end = end;
	}
	return first;
}

/**
 * arx_loss_hold - begin to wait for packets that may be late
 * @loss: of a QP
 *
 * Context: completer's lock held.
 * Return: true if the timer must be started anew.
 */
bool arx_loss_hold(struct arx_loss *loss)
{
	if (loss->holding || loss->due == loss->end)
		return false;
	loss->holding = true;
	loss->held = loss->end;
	return true;
}

/**
 * arx_loss_interval - how long the timer waits
 * @loss: of a QP
 * @alone: no packet of the QP but the oldest is in flight
 *
 * The first interval of such a packet is short. If the path has become longer
 * than the shortest round trip tells, that costs one RNR NAK too many: the next
 * intervals are long until the peer has made progress. They become longer each
 * time, unless the peer answers.
 *
 * The round trip of a READ lasts until all of its responses are there, and the
 * peer sends those of earlier READs first. The peer sends a part that is asked
 * for again at once: the time that such parts take is shorter and varies less.
 *
 * Context: completer's lock held.
 * Return: ns.
 */
u64 arx_loss_interval(const struct arx_loss *loss, bool alone)
{
	u64 ns = loss->srtt ? 2 * loss->srtt + 4 * loss->rttvar :
			      ARX_LOSS_UNKNOWN;

	if (loss->holding)
		return max(loss->srtt * loss->late / 4, ARX_LOSS_HOLD);
	if (alone && loss->srtt && !loss->silent && !loss->answered)
		ns = 2 * loss->rtt_min;
	else if (arx_loss_asks(loss) && loss->ask_rtt)
		ns = loss->ask_rtt + max(4 * loss->ask_var, loss->ask_rtt / 2);
	return clamp(ns << loss->silent, ARX_LOSS_LEAST, ARX_LOSS_MOST);
}

/**
 * arx_loss_left - how long the timer waits that has expired although the peer
 *	was heard
 * @loss: of a QP
 * @alone: as in arx_loss_interval()
 * @now: in ns
 *
 * News do not start the timer anew, because that costs more than most news are
 * worth. So the interval began with the last news, or with the last new packet.
 *
 * Context: completer's lock held.
 * Return: ns.
 */
u64 arx_loss_left(const struct arx_loss *loss, bool alone, u64 now)
{
	u64 ns = arx_loss_interval(loss, alone);

	if (loss->holding)
		return ns;
	return max(ns - min(ns, now - loss->active), ARX_LOSS_LEAST);
}

/**
 * arx_loss_hasten - the peer has taken something
 * @loss: of a QP
 *
 * Context: completer's lock held.
 * Return: true if the timer must be started anew, because silence has made its
 * interval longer.
 */
bool arx_loss_hasten(struct arx_loss *loss)
{
	if (!loss->silent)
		return false;
	arx_loss_end_silence(loss);
	return !loss->holding;
}

/**
 * arx_loss_answered - the peer is not ready to receive what was sent
 * @loss: of a QP
 *
 * The path works, so the next intervals need not become longer: a receiver that
 * is late may refuse a packet many times, and some of these exchanges be lost.
 * The round trip that is measured would have the receiver's time in it.
 *
 * Context: completer's lock held.
 */
void arx_loss_answered(struct arx_loss *loss)
{
	if (loss->silent)
		loss->answered = true;
	loss->silent = 0;
	loss->timing = false;
}

/**
 * arx_loss_expired - the timer has expired
 * @loss: of a QP with packets in flight
 * @nxt: PSNs from here on have not been sent
 *
 * Context: completer's lock held.
 * Return: true if packets are to be sent again now: see arx_loss_next(),
 * @probes and @restart.
 */
bool arx_loss_expired(struct arx_loss *loss, u32 nxt)
{
	bool heard = loss->news || loss->una != loss->seen_una;

	loss->news = false;
	loss->seen_una = loss->una;
	if (loss->holding) {
		loss->holding = false;
		if (arx_psn_diff(loss->held, loss->due) > 0)
			loss->due = loss->held;
		return arx_loss_first(loss) != loss->due;
	}
	if (heard) {
		arx_loss_end_silence(loss);
		return false;
	}
	if (loss->silent < ARX_LOSS_SILENT_MAX)
		loss->silent++;
	loss->doubtful = true;
	bitmap_zero(loss->again, ARX_REPORT_SPAN);
	loss->due = loss->end;
	loss->restart = true;
	/*
	 * The peer may have reported the request for a READ whose responses are
	 * lost: then no packet is missing, either.
	 */
	if (loss->due == loss->una || arx_loss_has(loss, loss->una))
		loss->probes = ARX_LOSS_PROBES;
	else
		loss->probes = 0;
	loss->ask |= arx_loss_asks(loss);
	loss->ask_next = loss->una;
	loss->ask_time = 0;
	return true;
}

/**
 * arx_loss_time - measure a round trip, unless one is being measured
 * @loss: of a QP
 * @psn: the last PSN that was sent; if it is new, it was sent just now
 * @now: in ns
 *
 * Context: completer's lock held.
 */
void arx_loss_time(struct arx_loss *loss, u32 psn, u64 now)
{
	if (psn == loss->newest)
		return;
	loss->newest = psn;
	loss->active = now;
	if (loss->timing &&
	    arx_psn_diff(psn, loss->timed_psn) < ARX_REPORT_SPAN)
		return;
	loss->timing = true;
	loss->doubtful = false;
	loss->timed_psn = psn;
	loss->timed = now;
}
