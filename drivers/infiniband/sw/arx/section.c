// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The end of sections; see section.h. */

#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/processor.h>

#include "section.h"

/* Looks before the wait for another CPU goes to sleep: some microseconds. */
#define ARX_SECTION_LOOKS	1000

DEFINE_PER_CPU(u32, arx_sections);

static bool arx_section_left(const u32 *word, u32 seen)
{
	u32 now = smp_load_acquire(word);	/* pairs with arx_section_end() */

	return (now ^ seen) & ~ARX_SECTION_DEPTH;
}

/* Wait until a CPU has left the section that it is in, if it is in one. */
static void arx_section_wait_for(const u32 *word)
{
	u32 seen = smp_load_acquire(word);	/* pairs with arx_section_end() */
	int looks;

	if (!(seen & ARX_SECTION_DEPTH))
		return;
	for (looks = 0; looks < ARX_SECTION_LOOKS; looks++) {
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
 * What the caller has taken out of its table, or has changed, before this is
 * seen by each section that this does not wait for: both sides write, then cross
 * a full barrier, then read the other's word.
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
	smp_mb();	/* the table before the words; pairs with arx_section_begin() */
	for_each_possible_cpu(cpu)
		arx_section_wait_for(per_cpu_ptr(&arx_sections, cpu));
}
