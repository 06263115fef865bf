// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* section.c: the waiter waits for sections that were entered before. */

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/workqueue.h>

#include "section.c"

/*
 * A CPU that is in a section, as other CPUs see it. Nothing is disabled on it,
 * so that the waiter can run on it, too.
 */
static u32 *far_cpu(void)
{
	return per_cpu_ptr(&arx_sections, 0);
}

struct waiter {
	struct work_struct work;
	struct completion done;
};

static void wait_work(struct work_struct *work)
{
	struct waiter *w = container_of(work, struct waiter, work);

	arx_section_wait();
	complete(&w->done);
}

static void start(struct waiter *w)
{
	INIT_WORK_ONSTACK(&w->work, wait_work);
	init_completion(&w->done);
	queue_work(system_unbound_wq, &w->work);
}

static bool done_in(struct waiter *w, unsigned int ms)
{
	return wait_for_completion_timeout(&w->done, msecs_to_jiffies(ms));
}

static void finish(struct waiter *w)
{
	flush_work(&w->work);
	destroy_work_on_stack(&w->work);
}

static void section__depth(struct kunit *test)
{
	u32 word = 0;

	arx_section_begin(&word);
	KUNIT_EXPECT_EQ(test, word & ARX_SECTION_DEPTH, 1);
	arx_section_begin(&word);
	KUNIT_EXPECT_EQ(test, word & ARX_SECTION_DEPTH, 2);
	arx_section_end(&word);
	/* Still in the section, which was never left. */
	KUNIT_EXPECT_EQ(test, word, 1);
	arx_section_end(&word);
	KUNIT_EXPECT_EQ(test, word, ARX_SECTION_LEFT);
}

/* The count of left sections does not overflow into the depth. */
static void section__wraps(struct kunit *test)
{
	u32 word = -ARX_SECTION_LEFT;

	arx_section_begin(&word);
	KUNIT_EXPECT_EQ(test, word & ARX_SECTION_DEPTH, 1);
	KUNIT_EXPECT_FALSE(test, arx_section_left(&word, word));
	arx_section_end(&word);
	KUNIT_EXPECT_EQ(test, word, 0);
	KUNIT_EXPECT_TRUE(test, arx_section_left(&word, -ARX_SECTION_LEFT + 1));
}

static void section__waits(struct kunit *test)
{
	struct waiter w;

	arx_section_begin(far_cpu());
	start(&w);
	KUNIT_EXPECT_FALSE(test, done_in(&w, 50));
	arx_section_end(far_cpu());
	KUNIT_EXPECT_TRUE(test, done_in(&w, 5000));
	finish(&w);
}

/* Only the outermost section counts; leaving an inner one does not end it. */
static void section__waits_for_outermost(struct kunit *test)
{
	struct waiter w;

	arx_section_begin(far_cpu());
	start(&w);
	arx_section_begin(far_cpu());
	arx_section_end(far_cpu());
	KUNIT_EXPECT_FALSE(test, done_in(&w, 50));
	arx_section_end(far_cpu());
	KUNIT_EXPECT_TRUE(test, done_in(&w, 5000));
	finish(&w);
}

/* The wait ignores sections that were entered later, so it ends. */
static void section__waits_not_for_later(struct kunit *test)
{
	struct waiter w;

	arx_section_begin(far_cpu());
	start(&w);
	KUNIT_EXPECT_FALSE(test, done_in(&w, 50));
	arx_section_end(far_cpu());
	arx_section_begin(far_cpu());
	KUNIT_EXPECT_TRUE(test, done_in(&w, 5000));
	arx_section_end(far_cpu());
	finish(&w);
}

static void section__nothing_to_wait_for(struct kunit *test)
{
	arx_section_enter();
	arx_section_leave();
	arx_section_wait();
	KUNIT_SUCCEED(test);
}

/* No other CPU of the test's machine is in a section for long. */
static void section__idle(struct kunit *test)
{
	int tries = 1000;

	arx_section_enter();
	KUNIT_EXPECT_FALSE(test, arx_section_idle());
	arx_section_leave();
	while (!arx_section_idle() && tries--)
		fsleep(USEC_PER_MSEC);
	KUNIT_EXPECT_GE(test, tries, 0);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(section__depth),
	KUNIT_CASE(section__wraps),
	KUNIT_CASE(section__waits),
	KUNIT_CASE(section__waits_for_outermost),
	KUNIT_CASE(section__waits_not_for_later),
	KUNIT_CASE(section__nothing_to_wait_for),
	KUNIT_CASE(section__idle),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_section",
	.test_cases = cases,
};

kunit_test_suite(suite);
