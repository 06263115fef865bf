// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Doorbell moderation. While an application has many requests outstanding, it
 * need not ring the doorbell (ARX_RING_NO_KICK). libarx rings the doorbell when
 * the application finds no completions, because the application then waits for
 * requests that it has posted. Meanwhile, a CPU without other work polls the
 * send ring: the scheduler gives the QP's worker that CPU, if there is one. A
 * timer limits the delay of a request that neither a doorbell nor the worker
 * has sent.
 */

#include <linux/hrtimer.h>
#include <linux/sched/clock.h>
#include <linux/sched/stat.h>

#include "compat.h"
#include "cq.h"
#include "schedule.h"
#include "state.h"
#include "watch.h"

/*
 * This many outstanding requests mean that the application is streaming. The
 * condition is checked after as many new requests.
 */
#define ARX_WATCH_DEPTH		8

/*
 * Polling ends when this many intervals of the timer in a row had no request. A
 * program with many QPs returns to a ring only after all others.
 */
#define ARX_WATCH_IDLE		20

/*
 * The worker stops after this time without a request. A program that has found
 * completions needs less time to post again.
 */
#define ARX_WATCH_SPIN_NS	(50 * NSEC_PER_USEC)

/**
 * arx_watch_init - called before any other use of a QP's send ring
 * @qp: being created
 */
void arx_watch_init(struct arx_qp *qp)
{
	qp->watch.recheck = ARX_WATCH_DEPTH;
}

/*
 * Requests that the application has posted so far. A turn may have fetched
 * fewer: softirqs copy for a QP only what its process has paid for.
 */
static u32 arx_watch_posted(const struct arx_qp *qp)
{
	return arx_ring_pending(&qp->sq, 0);
}

/*
 * True if the peer has sent a message to this QP since the last call. A program
 * that answers messages, or waits for answers in memory, signals few of its
 * requests. Many of these then seem to be outstanding although the program
 * posts the next one only after a message has arrived.
 */
static bool arx_watch_heard(struct arx_qp *qp)
{
	u32 msn = READ_ONCE(qp->resp.msn);
	bool heard = msn != qp->watch.heard;

	qp->watch.heard = msn;
	return heard;
}

/*
 * Deferred doorbells are of use for a stream of requests only. A request that
 * the application waits for needs its kick. A stream has ARX_WATCH_DEPTH
 * requests outstanding, and no message arrives between them. Requests are
 * outstanding until a completion covers them and the application has polled
 * that completion.
 *
 * The number of completions not polled takes the CQ's lock. The condition is
 * therefore checked once in watch.recheck requests: for each request after a
 * useful watch, since streams come in bursts.
 *
 * A QP without a responder does not hear its peer, and libarx does not know the
 * CQ in which messages from the peer arrive: every request needs its kick.
 */
static bool arx_watch_begins(struct arx_qp *qp, u32 posted)
{
	const struct arx_req *req = &qp->req;

	if (arx_watch_heard(qp))
		qp->watch.last_posted = posted;
	if (posted - qp->watch.last_posted < qp->watch.recheck ||
	    !qp->ib.uobject || !arx_qp_has_responder(qp))
		return false;
	qp->watch.last_posted = posted;
	qp->watch.recheck = ARX_WATCH_DEPTH;
	return arx_qp_state(qp) == IB_QPS_RTS &&
	       READ_ONCE(arx_qp_dev(qp)->doorbell_usecs) &&
	       req->fetched - arx_published(&qp->comp.reported) +
	       arx_cq_waiting(qp->scq) >= ARX_WATCH_DEPTH;
}

static u64 arx_watch_nsecs(const struct arx_qp *qp)
{
	return READ_ONCE(arx_qp_dev(qp)->doorbell_usecs) * NSEC_PER_USEC;
}

/*
 * The next interval begins. The timer is pinned, because the kernel otherwise
 * moves timers of idle CPUs to a busy CPU, often the application's.
 */
static void arx_watch_interval(struct arx_qp *qp)
{
	hrtimer_start(&qp->watch.timer, ns_to_ktime(arx_watch_nsecs(qp)),
		      HRTIMER_MODE_REL_PINNED_SOFT);
	arx_qp_wake_worker(qp);
}

static void arx_watch_start(struct arx_qp *qp)
{
	WRITE_ONCE(qp->watch.on, true);
	WRITE_ONCE(qp->watch.found, local_clock());
	qp->watch.idle = 0;
	WRITE_ONCE(qp->sq.hdr->flags, ARX_RING_NO_KICK);
	arx_watch_interval(qp);
}

/*
 * An interval ends with @new requests. True if polling continues. A single
 * request in an interval is no stream. The requests of a failed QP are flushed
 * in the time of its process, so no timer polls for them.
 */
static bool arx_watch_goes_on(struct arx_qp *qp, u32 new)
{
	if (new > 1)
		qp->watch.recheck = 1;
	qp->watch.idle = new ? 0 : qp->watch.idle + 1;
	return new != 1 && qp->watch.idle < ARX_WATCH_IDLE &&
	       !arx_qp_may(qp, ARX_QP_FLUSH) && arx_watch_nsecs(qp);
}

/**
 * arx_watch_stop - from now on a QP's application must kick
 * @qp: any QP
 *
 * A poll in progress does not start another one: with @qp in the reset state,
 * polling has ended after this function.
 *
 * Context: req.lock held.
 */
void arx_watch_stop(struct arx_qp *qp)
{
	if (!qp->watch.on)
		return;
	WRITE_ONCE(qp->watch.on, false);
	qp->watch.last_posted = arx_watch_posted(qp);
	WRITE_ONCE(qp->sq.hdr->flags, 0);
}

/**
 * arx_watch_forget - reset the polling state of a QP
 * @qp: with an empty send ring
 *
 * Context: req.lock held, after arx_watch_stop().
 */
void arx_watch_forget(struct arx_qp *qp)
{
	qp->watch.last_posted = arx_watch_posted(qp);
	qp->watch.recheck = ARX_WATCH_DEPTH;
}

/**
 * arx_watch_update - decide after a turn whether polling begins or ends
 * @qp: any QP
 *
 * A request that is posted while polling ends was either posted before the flag
 * was cleared, and is found here; or the application sees the cleared flag, and
 * kicks: the application stores prod, then reads the flag; the kernel clears
 * the flag, then reads prod (pair E).
 *
 * Context: req.lock held.
 * Return: false if the ring has requests for which no kick will come.
 */
bool arx_watch_update(struct arx_qp *qp)
{
	u32 posted = arx_watch_posted(qp);
	bool over = test_bit(ARX_REQ_POLL, &qp->req.pending);

	if (over)
		clear_bit(ARX_REQ_POLL, &qp->req.pending);
	if (!qp->watch.on) {
		if (arx_watch_begins(qp, posted))
			arx_watch_start(qp);
		return true;
	}
	if (posted != qp->watch.polled) {
		qp->watch.polled = posted;
		WRITE_ONCE(qp->watch.found, local_clock());
	}
	if (!over)
		return true;
	if (arx_watch_goes_on(qp, posted - qp->watch.last_posted)) {
		qp->watch.last_posted = posted;
		arx_watch_interval(qp);
		return true;
	}
	arx_watch_stop(qp);
	smp_mb();	/* flags before prod; pairs with the post in libarx */
	return !arx_ring_pending(&qp->sq, qp->req.fetched);
}

/**
 * arx_watch_again - whether a QP's worker should poll its send ring at once
 * @qp: any QP that the worker has just run
 * @before: watch.found before that run
 *
 * A worker that shares its CPU with another task leaves the CPU to that task. A
 * poll that found requests is followed by another one, however long the first
 * one took: the bottom halves after it may have received its packets. The
 * clocks of two CPUs may differ a little, so the time since the last request
 * may be negative.
 *
 * Context: the worker.
 * Return: true if it should.
 */
bool arx_watch_again(struct arx_qp *qp, u64 before)
{
	u64 found = READ_ONCE(qp->watch.found);

	if (!READ_ONCE(qp->watch.on) || !single_task_running() ||
	    (found == before &&
	     (s64)(local_clock() - found) >= ARX_WATCH_SPIN_NS))
		return false;
	arx_count(qp, SQ_WORKER_POLLS);
	return true;
}

/**
 * arx_watch_cancel - end the timer of a QP
 * @qp: about to be destroyed: arx_watch_stop() was called in the reset state
 *
 * Context: may sleep.
 */
void arx_watch_cancel(struct arx_qp *qp)
{
	hrtimer_cancel(&qp->watch.timer);
}
