// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Doorbell moderation. While an application has many requests outstanding, a
 * timer polls the send ring and the application need not ring the doorbell
 * (ARX_RING_NO_KICK). libarx rings the doorbell when the application finds no
 * completions, because the application then waits for requests that it has
 * posted. Requests that gather between two polls are sent together.
 *
 * Several CPUs share the polling, as far as they are idle, so that the
 * application's CPU does not do all of it. A CPU that is completely idle does
 * not wait for the timer, until polls have been fruitless for as long as the
 * timer's shortest interval.
 */

#include <linux/hrtimer.h>
#include <linux/sched/clock.h>
#include <linux/sched/stat.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "cq.h"
#include "schedule.h"
#include "watch.h"

/*
 * This many outstanding requests mean that the application is streaming. The
 * condition is checked after as many new requests.
 */
#define ARX_WATCH_DEPTH		8

/*
 * Polling ends after this many fruitless polls by the timer in a row. A program
 * with many QPs returns to a ring only after all others, and to start polling
 * again is more work than these polls.
 */
#define ARX_WATCH_IDLE_POLLS	20

/*
 * Pick the polling CPU again after this many milliseconds, at the next kick:
 * CPUs get other work, and applications move.
 */
#define ARX_WATCH_MSECS		100

/*
 * Each poll has a cost. The first poll is due an eighth of doorbell_usecs after
 * polling begins. The interval doubles while polls find fewer requests than
 * this, and halves while they find twice as many.
 */
#define ARX_WATCH_FEW		48
#define ARX_WATCH_SHIFT		3

/*
 * Requests of this length and longer are not deferred: a system call costs
 * little beside the work for a long message, which is best done while its data
 * is in the cache.
 */
#define ARX_WATCH_LENGTH	8192

/* Device attribute doorbell_usecs: maximum delay of a request; 0: off. */
#define ARX_WATCH_USECS		400
#define ARX_WATCH_USECS_MAX	1000000

/* Number of send rings that a CPU polls. */
static DEFINE_PER_CPU(atomic_t, arx_watch_load);

/**
 * arx_watch_poll - a QP's watch.timer has expired
 * @qp: any QP
 *
 * The first poll runs on the CPU where polling began: packets of earlier kicks
 * have been delivered by then, and are not overtaken.
 *
 * Context: softirq.
 * Return: true if the requester should run on this CPU.
 */
bool arx_watch_poll(struct arx_qp *qp)
{
	int cpu = READ_ONCE(qp->watch.cpu);

	arx_count(qp, LOOKS);
	set_bit(ARX_REQ_POLL, &qp->req.pending);
	if (cpu < 0 || cpu == smp_processor_id())
		return true;
	arx_qp_schedule_on(qp, cpu);
	return false;
}

/**
 * arx_watch_init - called before any other use of a QP's send ring
 * @qp: being created
 */
void arx_watch_init(struct arx_qp *qp)
{
	qp->watch.cpu = -1;
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
 * True if the last WQE was short, judged by its copy. If copies have moved
 * since it was completed, the copy is zero and counts as short.
 */
static bool arx_watch_short(const struct arx_qp *qp)
{
	return arx_qp_swqe(qp, qp->req.fetched - 1)->length < ARX_WATCH_LENGTH;
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
	return arx_qp_state(qp) == IB_QPS_RTS && arx_watch_short(qp) &&
	       READ_ONCE(arx_qp_dev(qp)->doorbell_usecs) &&
	       req->fetched - arx_published(&qp->comp.reported) +
	       arx_cq_waiting(qp->scq) >= ARX_WATCH_DEPTH;
}

/* From now on @cpu polls; -1: no CPU. */
static void arx_watch_set_cpu(struct arx_qp *qp, int cpu)
{
	if (qp->watch.cpu >= 0)
		atomic_dec(per_cpu_ptr(&arx_watch_load, qp->watch.cpu));
	if (cpu >= 0)
		atomic_inc(per_cpu_ptr(&arx_watch_load, cpu));
	WRITE_ONCE(qp->watch.cpu, cpu);
	qp->watch.repick = jiffies + msecs_to_jiffies(ARX_WATCH_MSECS);
}

static int arx_watch_load_of(int cpu)
{
	return atomic_read(per_cpu_ptr(&arx_watch_load, cpu));
}

/* True if the caller is the application, whose CPU and affinity count. */
static bool arx_watch_is_application(const struct arx_qp *qp)
{
	return !in_serving_softirq() && !arx_qp_runs_on_worker(qp);
}

/*
 * Pick the polling CPU: of the nearby CPUs that the application may use, the
 * one that polls the fewest rings; the application counts as one ring. The
 * search begins at the next CPU and ends at the first CPU that polls no ring;
 * otherwise all streams would look at, and pick, the same CPU.
 */
static int arx_watch_pick_cpu(void)
{
	int here = smp_processor_id();
	int best = here;
	int least = arx_watch_load_of(here) + 1;
	int cpu;

	for_each_cpu_wrap(cpu, cpumask_of_node(numa_node_id()), here + 1) {
		if (!cpumask_test_cpu(cpu, current->cpus_ptr) ||
		    !cpu_online(cpu) || arx_watch_load_of(cpu) >= least)
			continue;
		best = cpu;
		least = arx_watch_load_of(cpu);
		if (!least)
			break;
	}
	return best;
}

/*
 * The application runs here. Its own ring does not count while a CPU is picked.
 * Other callers do not know the application's CPUs: this CPU polls until the
 * application kicks again.
 */
static void arx_watch_assign(struct arx_qp *qp)
{
	qp->watch.app_cpu = smp_processor_id();
	arx_watch_set_cpu(qp, -1);
	if (arx_watch_is_application(qp)) {
		arx_watch_set_cpu(qp, arx_watch_pick_cpu());
	} else {
		arx_watch_set_cpu(qp, qp->watch.app_cpu);
		qp->watch.repick = jiffies - 1;
	}
}

static bool arx_watch_is_long_assigned(const struct arx_qp *qp)
{
	return time_after(jiffies, qp->watch.repick) &&
	       arx_watch_is_application(qp);
}

/* True if this CPU runs work of the kernel, or of the QP's worker. */
static bool arx_watch_interrupts_kernel(const struct arx_qp *qp)
{
	return current->flags & PF_KTHREAD || arx_qp_runs_on_worker(qp);
}

/* True if this CPU has a program to run and should not poll. */
static bool arx_watch_disturbs(const struct arx_qp *qp)
{
	return smp_processor_id() == qp->watch.cpu &&
	       qp->watch.cpu != qp->watch.app_cpu &&
	       !arx_watch_interrupts_kernel(qp);
}

/*
 * True if this CPU runs no program. The application may have been here once: it
 * moves without notice. The worker runs where the scheduler puts it.
 */
static bool arx_watch_is_idle_here(const struct arx_qp *qp)
{
	if (in_serving_softirq() ? smp_processor_id() != qp->watch.cpu :
				   smp_processor_id() == qp->watch.app_cpu)
		return false;
	return is_idle_task(current) ||
	       (arx_watch_interrupts_kernel(qp) && single_task_running());
}

static u64 arx_watch_nsecs(const struct arx_qp *qp)
{
	return READ_ONCE(arx_qp_dev(qp)->doorbell_usecs) * NSEC_PER_USEC;
}

/* The next poll comes by the timer, unless one comes earlier. */
static void arx_watch_wait(struct arx_qp *qp)
{
	if (!hrtimer_is_queued(&qp->watch.timer))
		hrtimer_start(&qp->watch.timer,
			      ns_to_ktime(arx_watch_nsecs(qp) >>
					  qp->watch.poll_shift),
			      HRTIMER_MODE_REL_SOFT);
}

/*
 * True if the next poll should not wait for the timer. A program that has just
 * been notified of completions is posting the next requests; if this idle CPU
 * waited, the work would be left to the application's kicks.
 */
static bool arx_watch_is_at_once(const struct arx_qp *qp)
{
	return arx_watch_is_idle_here(qp) && local_clock() - qp->watch.found <
	       arx_watch_nsecs(qp) >> ARX_WATCH_SHIFT;
}

/*
 * Polls that follow at once copy much, so for a QP of this machine the worker
 * makes them: the process is charged, and the scheduler may stop them. The
 * thread may end with its process, so the timer goes on.
 */
static void arx_watch_next(struct arx_qp *qp)
{
	bool local = READ_ONCE(qp->req.local);

	qp->watch.at_once = arx_watch_is_at_once(qp);
	if (!qp->watch.at_once || local)
		arx_watch_wait(qp);
	if (!qp->watch.at_once)
		return;
	arx_count(qp, LOOKS);
	set_bit(ARX_REQ_POLL, &qp->req.pending);
	if (local)
		arx_qp_go_on(qp);
	else
		arx_qp_schedule_on(qp, qp->watch.cpu);
}

static void arx_watch_pace(struct arx_qp *qp, u32 new)
{
	if (new < ARX_WATCH_FEW && qp->watch.poll_shift > 0)
		qp->watch.poll_shift--;
	else if (new >= 2 * ARX_WATCH_FEW &&
		 qp->watch.poll_shift < ARX_WATCH_SHIFT)
		qp->watch.poll_shift++;
}

/*
 * True if polling continues. @new: requests since the last poll. A single one
 * in an interval of the timer is no stream. A poll may come at once after a
 * long turn, including the delivery of its packets on this machine, in which
 * the application could not run: such a poll says nothing if it is fruitless.
 */
static bool arx_watch_goes_on(struct arx_qp *qp, u32 new)
{
	if (new) {
		qp->watch.idle_polls = 0;
		qp->watch.found = local_clock();
	} else if (!qp->watch.at_once) {
		qp->watch.idle_polls++;
	}
	if (new > 1)
		qp->watch.recheck = 1;
	return (new != 1 || qp->watch.at_once) &&
	       qp->watch.idle_polls < ARX_WATCH_IDLE_POLLS &&
	       READ_ONCE(arx_qp_dev(qp)->doorbell_usecs) && arx_watch_short(qp);
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
	qp->watch.on = false;
	arx_watch_set_cpu(qp, -1);
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
 * arx_watch_update - decide after a turn whether polling continues
 * @qp: any QP
 *
 * Polling continues as long as polls find several short requests, by the timer
 * or, on an idle CPU, at once: the work goes to the end of that CPU's queue
 * each time. A request that is posted while polling ends was either posted
 * before the flag was cleared, and is found here; or the application sees the
 * cleared flag, and kicks: the application stores prod, then reads the flag;
 * the kernel clears the flag, then reads prod (pair E).
 *
 * Context: req.lock held.
 * Return: false if the ring has requests for which no kick will come.
 */
bool arx_watch_update(struct arx_qp *qp)
{
	bool look = test_bit(ARX_REQ_POLL, &qp->req.pending);
	u32 posted = arx_watch_posted(qp);
	u32 new = posted - qp->watch.last_posted;

	if (look)
		clear_bit(ARX_REQ_POLL, &qp->req.pending);
	if (!qp->watch.on) {
		if (!arx_watch_begins(qp, posted))
			return true;
		qp->watch.on = true;
		qp->watch.idle_polls = 0;
		qp->watch.at_once = false;
		qp->watch.found = local_clock();
		qp->watch.poll_shift = ARX_WATCH_SHIFT;
		arx_watch_assign(qp);
		WRITE_ONCE(qp->sq.hdr->flags, ARX_RING_NO_KICK);
		arx_watch_wait(qp);
		return true;
	}
	if (!look) {
		if (arx_watch_is_long_assigned(qp))
			arx_watch_assign(qp);
		return true;
	}
	if (arx_watch_goes_on(qp, new)) {
		if (smp_processor_id() != qp->watch.app_cpu)
			arx_count(qp, LOOKS_AWAY);
		if (arx_watch_disturbs(qp))
			arx_watch_set_cpu(qp, qp->watch.app_cpu);
		arx_watch_pace(qp, new);
		qp->watch.last_posted = posted;
		arx_watch_next(qp);
		return true;
	}
	arx_watch_stop(qp);
	smp_mb();	/* flags before prod; pairs with the post in libarx */
	return !arx_ring_pending(&qp->sq, qp->req.fetched);
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

static ssize_t doorbell_usecs_show(struct device *device,
				   struct device_attribute *attr, char *buf)
{
	struct arx_dev *dev = rdma_device_to_drv_device(device, struct arx_dev,
							ib);

	return sysfs_emit(buf, "%u\n", READ_ONCE(dev->doorbell_usecs));
}

static ssize_t doorbell_usecs_store(struct device *device,
				    struct device_attribute *attr,
				    const char *buf, size_t len)
{
	struct arx_dev *dev = rdma_device_to_drv_device(device, struct arx_dev,
							ib);
	unsigned int usecs;
	int err = kstrtouint(buf, 0, &usecs);

	if (err)
		return err;
	if (usecs > ARX_WATCH_USECS_MAX)
		return -ERANGE;
	WRITE_ONCE(dev->doorbell_usecs, usecs);
	return len;
}

DEVICE_ATTR_RW(doorbell_usecs);

/**
 * arx_watch_init_dev - set the attribute's default
 * @dev: being created
 */
void arx_watch_init_dev(struct arx_dev *dev)
{
	dev->doorbell_usecs = ARX_WATCH_USECS;
}
