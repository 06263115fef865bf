// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Waiting for sections; see section.h. */

#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/processor.h>

#include "section.h"

/* Polls of another CPU's word before the wait sleeps: some microseconds. */
#define ARX_SECTION_POLLS	1000

DEFINE_PER_CPU(u32, arx_sections);

static bool arx_section_left(const u32 *word, u32 seen)
{
	/* pairs with arx_section_end() */
	u32 now = smp_load_acquire(word);

	return (now ^ seen) & ~ARX_SECTION_DEPTH;
}

/* Wait until a CPU has left its present section, if it is in one. */
static void arx_section_wait_for(const u32 *word)
{
	/* pairs with arx_section_end() */
	u32 seen = smp_load_acquire(word);
	int polls;

	if (!(seen & ARX_SECTION_DEPTH))
		return;
	for (polls = 0; polls < ARX_SECTION_POLLS; polls++) {
		if (arx_section_left(word, seen))
			return;
		cpu_relax();
	}
	while (!arx_section_left(word, seen))
		usleep_range(20, 50);
}

/**
 * arx_section_wait - wait for all sections that were entered before
 *
 * A section that the function does not wait for sees the change that the caller
 * made to a table or object before: both sides write, then cross a full
 * barrier, then read the other's word.
 *
 * Context: may sleep.
 */
void arx_section_wait(void)
{
	int cpu;

	might_sleep();
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		synchronize_rcu_expedited();
		return;
	}
	/* orders the table before the words; pairs with arx_section_begin() */
	smp_mb();
	for_each_possible_cpu(cpu)
		arx_section_wait_for(per_cpu_ptr(&arx_sections, cpu));
}

/**
 * arx_section_idle - whether no CPU is in a section now
 *
 * As arx_section_wait(), for a caller that cannot sleep.
 *
 * Context: any.
 * Return: true if none is; always false with PREEMPT_RT.
 */
bool arx_section_idle(void)
{
	int cpu;

	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return false;
	/* orders the table before the words; pairs with arx_section_begin() */
	smp_mb();
	for_each_possible_cpu(cpu)
		/* pairs with arx_section_end() */
		if (smp_load_acquire(per_cpu_ptr(&arx_sections, cpu)) &
		    ARX_SECTION_DEPTH)
			return false;
	return true;
}
