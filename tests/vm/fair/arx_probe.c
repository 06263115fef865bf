// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Measures for how long bottom halves are off at a time. Reading the parameter
 * "longest" returns the longest time on any CPU since the last read, in
 * microseconds.
 *
 * A timer ticks on each CPU in hard interrupt context. A tick that finds bottom
 * halves off raises a softirq. The section has ended when the softirq runs, or
 * when a later tick finds bottom halves on. The length is counted in ticks,
 * because an emulated CPU may be kept from running for milliseconds by its
 * host, and then misses ticks. A section with interrupts off is therefore not
 * measured in full.
 */

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/percpu.h>

#include "compat.h"

#define PERIOD		(50 * NSEC_PER_USEC)

/**
 * struct probe - state of one CPU
 * @timer: ticks
 * @ended: runs as soon as bottom halves are on
 * @last: time of the last tick
 * @length: nanoseconds of the section so far
 * @longest: of all sections
 * @inside: a section has begun and its end was not seen
 */
struct probe {
	struct hrtimer timer;
	struct tasklet_struct ended;
	ktime_t last;
	u64 length;
	u64 longest;
	bool inside;
};

static DEFINE_PER_CPU(struct probe, probes);

static void probe_end(struct probe *probe)
{
	if (probe->inside && probe->length > READ_ONCE(probe->longest))
		WRITE_ONCE(probe->longest, probe->length);
	probe->inside = false;
}

static void probe_ended(struct tasklet_struct *ended)
{
	struct probe *probe = container_of(ended, struct probe, ended);

	local_irq_disable();
	probe_end(probe);
	local_irq_enable();
}

static enum hrtimer_restart probe_tick(struct hrtimer *timer)
{
	struct probe *probe = container_of(timer, struct probe, timer);
	ktime_t now = ktime_get();
	u64 since = min_t(u64, ktime_sub(now, probe->last), 2 * PERIOD);

	probe->last = now;
	if (!softirq_count()) {
		probe_end(probe);
	} else if (probe->inside) {
		probe->length += since;
	} else {
		probe->inside = true;
		probe->length = 0;
		tasklet_hi_schedule(&probe->ended);
	}
	hrtimer_forward_now(timer, PERIOD);
	return HRTIMER_RESTART;
}

static void probe_start(void *unused)
{
	struct probe *probe = this_cpu_ptr(&probes);

	probe->last = ktime_get();
	hrtimer_start(&probe->timer, PERIOD, HRTIMER_MODE_REL_PINNED_HARD);
}

static int longest_get(char *buffer, const struct kernel_param *kp)
{
	u64 longest = 0;
	int cpu;

	for_each_online_cpu(cpu)
		longest = max(longest,
			      xchg(&per_cpu_ptr(&probes, cpu)->longest, 0));
	return sysfs_emit(buffer, "%llu\n", longest / NSEC_PER_USEC);
}

static const struct kernel_param_ops longest_ops = { .get = longest_get };

module_param_cb(longest, &longest_ops, NULL, 0444);
MODULE_PARM_DESC(longest, "microseconds with bottom halves off, since read");

static int __init probe_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct probe *probe = per_cpu_ptr(&probes, cpu);

		tasklet_setup(&probe->ended, probe_ended);
		hrtimer_setup(&probe->timer, probe_tick, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_PINNED_HARD);
	}
	on_each_cpu(probe_start, NULL, true);
	return 0;
}

static void __exit probe_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		hrtimer_cancel(&per_cpu_ptr(&probes, cpu)->timer);
		tasklet_kill(&per_cpu_ptr(&probes, cpu)->ended);
	}
}

module_init(probe_init);
module_exit(probe_exit);

MODULE_DESCRIPTION("How long bottom halves are off");
MODULE_LICENSE("Dual BSD/GPL");
