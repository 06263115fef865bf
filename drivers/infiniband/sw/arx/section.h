/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Sections: where the data path uses QPs and memory regions without a
 * reference.
 *
 * They are RCU read sections that can be waited for on their own. A grace period
 * of RCU waits for every CPU of the machine, whatever it does: that is
 * milliseconds, or an interrupt for each CPU if it is expedited. Programs
 * deregister memory and destroy QPs at any rate, and must pay for neither.
 *
 * Each CPU has one word: how many sections it is in, and how often it left the
 * outermost. Who ends an object takes it out of its table, then waits for each
 * CPU that is in a section to leave it. Sections run with preemption disabled
 * and are short, so most often there is nothing to wait for.
 *
 * With PREEMPT_RT the data path can be preempted, and sections are plain RCU
 * read sections.
 */
#ifndef ARX_SECTION_H
#define ARX_SECTION_H

#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>

/* The low bits: sections that the CPU is in. Above: how often it left all. */
#define ARX_SECTION_DEPTH	0xffU
#define ARX_SECTION_LEFT	(ARX_SECTION_DEPTH + 1)

DECLARE_PER_CPU(u32, arx_sections);

/*
 * An interrupt may come between any two steps and enter sections of its own. It
 * leaves them, and the word is as before: @word already counts this one, or not
 * yet.
 */
static inline void arx_section_begin(u32 *word)
{
	WRITE_ONCE(*word, READ_ONCE(*word) + 1);
	/* The word before any table; pairs with arx_section_wait(). */
	smp_mb();
}

static inline void arx_section_end(u32 *word)
{
	u32 now = READ_ONCE(*word) - 1;

	if (!(now & ARX_SECTION_DEPTH))
		now += ARX_SECTION_LEFT;
	/* All that was done before the word. */
	smp_store_release(word, now);
}

/**
 * arx_section_enter - begin to use what tables lead to
 *
 * May be nested. It is an RCU read section, too.
 *
 * Context: any but NMI.
 */
static inline void arx_section_enter(void)
{
	rcu_read_lock();
	if (!IS_ENABLED(CONFIG_PREEMPT_RT)) {
		preempt_disable();
		arx_section_begin(this_cpu_ptr(&arx_sections));
	}
}

/**
 * arx_section_leave - what was found since arx_section_enter() may go
 */
static inline void arx_section_leave(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPT_RT)) {
		arx_section_end(this_cpu_ptr(&arx_sections));
		preempt_enable();
	}
	rcu_read_unlock();
}

void arx_section_wait(void);

#endif /* ARX_SECTION_H */
