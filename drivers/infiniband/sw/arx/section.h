/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Sections: code of the data path that uses QPs and memory regions without a
 * reference.
 *
 * Sections are RCU read sections that can be waited for on their own. A grace
 * period of RCU waits for every CPU of the machine, whatever the CPU does: that
 * takes milliseconds, or an interrupt for each CPU if it is expedited. Programs
 * deregister memory and destroy QPs at any rate, and must pay for neither.
 *
 * Each CPU has one word: the number of sections that it is in, and how often it
 * left the outermost one. The code that ends an object removes it from its
 * table, then waits for each CPU that is in a section to leave it. Sections run
 * with preemption disabled and are short, so most often there is no CPU to wait
 * for.
 *
 * With PREEMPT_RT the data path can be preempted, and sections are plain RCU
 * read sections.
 */
#ifndef ARX_SECTION_H
#define ARX_SECTION_H

#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>

/*
 * The low bits: sections that the CPU is in. The bits above: how often it left
 * all.
 */
#define ARX_SECTION_DEPTH	0xffU
#define ARX_SECTION_LEFT	(ARX_SECTION_DEPTH + 1)

DECLARE_PER_CPU(u32, arx_sections);

/*
 * An interrupt may come between any two steps and enter sections of its own. It
 * leaves them before it returns, so their number in @word is then as before. An
 * interrupt within the statement below adds ARX_SECTION_LEFT, and the statement
 * takes that back: arx_section_wait() may then wait for one section more.
 */
static inline void arx_section_begin(u32 *word)
{
	WRITE_ONCE(*word, READ_ONCE(*word) + 1);
	/* Orders the word before any table; pairs with arx_section_wait(). */
	smp_mb();
}

static inline void arx_section_end(u32 *word)
{
	u32 now = READ_ONCE(*word) - 1;

	if (!(now & ARX_SECTION_DEPTH))
		now += ARX_SECTION_LEFT;
	/* Orders all accesses of the section before the word. */
	smp_store_release(word, now);
}

/**
 * arx_section_enter - begin to use objects without a reference
 *
 * Sections nest. A section is an RCU read section, too.
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
 * arx_section_leave - end the use of objects found since arx_section_enter()
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
bool arx_section_idle(void);

#endif /* ARX_SECTION_H */
