// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Doorbell moderation. Who has many requests outstanding need not ring for
 * each: a timer looks at the send ring then (ARX_RING_NO_KICK), and libarx
 * rings when the application finds nothing to poll, which is when it waits for
 * what it has posted. What gathers meanwhile is sent together.
 *
 * Rings are looked at by several CPUs, as far as these have nothing better to
 * do: so it is not the application's that does it all. One that has nothing else
 * to do at all does not wait for the timer, until it has looked in vain for a
 * while.
 */

#include <linux/hrtimer.h>
#include <linux/sched/stat.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "cq.h"
#include "schedule.h"
#include "watch.h"

/*
 * So many requests outstanding, and posted since that was last asked, show that
 * an application does not wait for each.
 */
#define ARX_WATCH_DEPTH		8

/*
 * Looks that find nothing, one after the other, until looking ends. A program
 * with many QPs comes by a ring again after it has served all others; to begin
 * anew is more work than these looks are.
 */
#define ARX_WATCH_VAIN		20

/*
 * Of these, the first so many come at once where nobody runs: a program that has
 * just been told of completions is posting the next requests, and to wait for
 * the timer then leaves that CPU idle and the work to the application's kicks.
 */
#define ARX_WATCH_AT_ONCE	12

/*
 * CPUs get other things to do, and applications move: so many milliseconds after
 * a CPU was chosen, the next kick chooses anew.
 */
#define ARX_WATCH_MSECS		100

/*
 * A look has a price of its own. The first is due an eighth of doorbell_usecs
 * after the watch began; while looks find fewer requests than these, the time to
 * the next one doubles, and while they find twice as many it halves.
 */
#define ARX_WATCH_FEW		48
#define ARX_WATCH_HURRY		3

/*
 * A system call is nothing beside the work for a longer message, which is done
 * best at once, while what it is about is in the cache.
 */
#define ARX_WATCH_LENGTH	8192

/* Device attribute doorbell_usecs: how long a request may lie unseen; 0: off. */
#define ARX_WATCH_USECS		400
#define ARX_WATCH_USECS_MAX	1000000

/* How many send rings a CPU looks at. */
static DEFINE_PER_CPU(atomic_t, arx_watch_load);

/*
 * Have @cpu go on, if that is another one. A CPU that is online now does not go
 * while bottom halves are off here, and leaves its works to others when it does.
 */
static bool arx_watch_hand_over(struct arx_qp *qp, int cpu)
{
	if (cpu < 0 || cpu == smp_processor_id() || !cpu_online(cpu))
		return false;
	arx_qp_schedule_on(qp, cpu);
	return true;
}

/**
 * arx_watch_look - a QP's watch.timer has fired
 * @qp: any QP
 *
 * The first look is due where the watch began: what was kicked for there before
 * has gone its way by now, and is not overtaken.
 *
 * Context: softirq.
 * Return: true if the requester should run here.
 */
bool arx_watch_look(struct arx_qp *qp)
{
	arx_count(arx_qp_dev(qp), LOOKS);
	set_bit(ARX_REQ_LOOK, &qp->req.pending);
	return !arx_watch_hand_over(qp, READ_ONCE(qp->watch.cpu));
}

/**
 * arx_watch_init - before anything else is done with a QP's send ring
 * @qp: being made
 */
void arx_watch_init(struct arx_qp *qp)
{
	qp->watch.cpu = -1;
	qp->watch.again = ARX_WATCH_DEPTH;
}

/* Of the last WQE: its copy, or 0 if copies have moved since it was done. */
static bool arx_watch_short(const struct arx_qp *qp)
{
	return arx_qp_swqe(qp, qp->req.fetched - 1)->length < ARX_WATCH_LENGTH;
}

/*
 * Worth it only for a stream: a request that is waited for is kicked for. What
 * is outstanding is what no completion has told of, and completions that were
 * not polled. That takes the CQ's lock, so it is asked once in so many requests;
 * but at the next one if the last watch was of use, for streams come in bursts.
 */
static bool arx_watch_begins(struct arx_qp *qp)
{
	const struct arx_req *req = &qp->req;

	if (req->fetched - qp->watch.seen < qp->watch.again || !qp->ib.uobject)
		return false;
	qp->watch.seen = req->fetched;
	qp->watch.again = ARX_WATCH_DEPTH;
	return arx_qp_state(qp) == IB_QPS_RTS && arx_watch_short(qp) &&
	       READ_ONCE(arx_qp_dev(qp)->doorbell_usecs) &&
	       req->fetched - arx_published(&qp->comp.told) +
	       arx_cq_waiting(qp->scq) >= ARX_WATCH_DEPTH;
}

/* From now on @cpu looks; -1: none does. */
static void arx_watch_settle(struct arx_qp *qp, int cpu)
{
	if (qp->watch.cpu >= 0)
		atomic_dec(per_cpu_ptr(&arx_watch_load, qp->watch.cpu));
	if (cpu >= 0)
		atomic_inc(per_cpu_ptr(&arx_watch_load, cpu));
	WRITE_ONCE(qp->watch.cpu, cpu);
	qp->watch.until = jiffies + msecs_to_jiffies(ARX_WATCH_MSECS);
}

static int arx_watch_load_of(int cpu)
{
	return atomic_read(per_cpu_ptr(&arx_watch_load, cpu));
}

/*
 * Of the CPUs near by that the application may use itself, the one that looks at
 * the fewest rings; the application counts as one. Which these are is not known
 * in a softirq. Other CPUs' counts are not asked for once one has none; the next
 * CPU comes first, or all streams would ask, and choose, the same one.
 */
static int arx_watch_place(void)
{
	int here = smp_processor_id();
	int best = here;
	int least = arx_watch_load_of(here) + 1;
	int cpu;

	if (in_serving_softirq())
		return best;
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

/* The application is here. Its ring is no load while its place is looked for. */
static void arx_watch_seat(struct arx_qp *qp)
{
	qp->watch.origin = smp_processor_id();
	arx_watch_settle(qp, -1);
	arx_watch_settle(qp, arx_watch_place());
}

static bool arx_watch_is_long_seated(const struct arx_qp *qp)
{
	return !in_serving_softirq() && time_after(jiffies, qp->watch.until);
}

/* A CPU that has somebody's program to run is none to spare. */
static bool arx_watch_disturbs(const struct arx_qp *qp)
{
	return smp_processor_id() == qp->watch.cpu &&
	       qp->watch.cpu != qp->watch.origin &&
	       !(current->flags & PF_KTHREAD);
}

/*
 * One that runs none is, also where the application was once: it moves, and
 * nobody is told.
 */
static bool arx_watch_is_idle_here(const struct arx_qp *qp)
{
	return smp_processor_id() == qp->watch.cpu &&
	       (is_idle_task(current) ||
		(current->flags & PF_KTHREAD && single_task_running()));
}

/* The next look comes by the timer. */
static void arx_watch_wait(struct arx_qp *qp)
{
	u64 nsecs = READ_ONCE(arx_qp_dev(qp)->doorbell_usecs) * NSEC_PER_USEC;

	hrtimer_start(&qp->watch.timer, ns_to_ktime(nsecs >> qp->watch.hurry),
		      HRTIMER_MODE_REL_SOFT);
}

static void arx_watch_next(struct arx_qp *qp)
{
	qp->watch.seen = qp->req.fetched;
	if (qp->watch.vain > ARX_WATCH_AT_ONCE || !arx_watch_is_idle_here(qp)) {
		arx_watch_wait(qp);
		return;
	}
	arx_count(arx_qp_dev(qp), LOOKS);
	set_bit(ARX_REQ_LOOK, &qp->req.pending);
	arx_qp_schedule_on(qp, qp->watch.cpu);
}

static void arx_watch_pace(struct arx_qp *qp, u32 new)
{
	if (new < ARX_WATCH_FEW && qp->watch.hurry > 0)
		qp->watch.hurry--;
	else if (new >= 2 * ARX_WATCH_FEW && qp->watch.hurry < ARX_WATCH_HURRY)
		qp->watch.hurry++;
}

/*
 * A look may come at once after a long turn, and its packets' way up on this
 * host, in which the application could not run: one in vain says nothing. @new:
 * requests since the last look.
 */
static bool arx_watch_goes_on(struct arx_qp *qp, u32 new)
{
	if (new)
		qp->watch.vain = 0;
	else
		qp->watch.vain++;
	if (new > 1)
		qp->watch.again = 1;
	return new != 1 && qp->watch.vain < ARX_WATCH_VAIN &&
	       READ_ONCE(arx_qp_dev(qp)->doorbell_usecs) && arx_watch_short(qp);
}

/**
 * arx_watch_stop - from now on a QP's application must kick
 * @qp: any QP
 *
 * A look that is under way does not have it looked at again: with @qp in the
 * reset state, nothing has from here on.
 *
 * Context: req.lock held.
 */
void arx_watch_stop(struct arx_qp *qp)
{
	if (!qp->watch.on)
		return;
	qp->watch.on = false;
	arx_watch_settle(qp, -1);
	qp->watch.seen = qp->req.fetched;
	WRITE_ONCE(qp->sq.hdr->flags, 0);
}

/**
 * arx_watch_forget - a QP begins anew
 * @qp: with a send ring in which nothing waits
 *
 * Context: req.lock held, behind arx_watch_stop().
 */
void arx_watch_forget(struct arx_qp *qp)
{
	qp->watch.seen = qp->req.fetched;
	qp->watch.again = ARX_WATCH_DEPTH;
}

/**
 * arx_watch_update - behind a turn: shall the ring be looked at again unasked?
 * @qp: any QP
 *
 * It is as long as looks find several short requests, by the timer or, on an idle
 * CPU, at once: the work goes to the end of that CPU's queue each time. What is
 * posted while that ends was either posted before the flag was cleared, and found
 * here; or the application sees the flag clear, and kicks: it publishes, then
 * reads the flag; here the flag is cleared, then what it published is read.
 *
 * Context: req.lock held.
 * Return: false if the ring holds something that nobody will tell of.
 */
bool arx_watch_update(struct arx_qp *qp)
{
	bool look = test_bit(ARX_REQ_LOOK, &qp->req.pending);
	u32 new = qp->req.fetched - qp->watch.seen;

	if (look)
		clear_bit(ARX_REQ_LOOK, &qp->req.pending);
	if (!qp->watch.on) {
		if (!arx_watch_begins(qp))
			return true;
		qp->watch.on = true;
		qp->watch.vain = 0;
		qp->watch.hurry = ARX_WATCH_HURRY;
		arx_watch_seat(qp);
		WRITE_ONCE(qp->sq.hdr->flags, ARX_RING_NO_KICK);
		arx_watch_wait(qp);
		return true;
	}
	if (!look) {
		if (arx_watch_is_long_seated(qp))
			arx_watch_seat(qp);
		return true;
	}
	if (arx_watch_goes_on(qp, new)) {
		if (smp_processor_id() != qp->watch.origin)
			arx_count(arx_qp_dev(qp), LOOKS_AWAY);
		if (arx_watch_disturbs(qp))
			arx_watch_settle(qp, qp->watch.origin);
		arx_watch_pace(qp, new);
		arx_watch_next(qp);
		return true;
	}
	arx_watch_stop(qp);
	smp_mb();	/* flags before prod; pairs with the post in libarx */
	return !arx_ring_pending(&qp->sq, qp->req.fetched);
}

/**
 * arx_watch_cancel - no timer of a QP will fire
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

static DEVICE_ATTR_RW(doorbell_usecs);

static struct attribute *arx_watch_attrs[] = {
	&dev_attr_doorbell_usecs.attr,
	NULL
};

const struct attribute_group arx_watch_group = {
	.attrs = arx_watch_attrs,
};

/**
 * arx_watch_init_dev - give the attribute its default
 * @dev: being made
 */
void arx_watch_init_dev(struct arx_dev *dev)
{
	dev->doorbell_usecs = ARX_WATCH_USECS;
}
