// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* trial.c: trains that arrive, that are lost, and of which nothing is known. */

#include <kunit/test.h>

#include "trial.c"

/* A packet leaves alone, and after it a train: 0xfffffe, 0xffffff, 0 ... */
#define ALONE	0xfffffdU
#define FIRST	0xfffffeU

static void begin(struct arx_trial *trial)
{
	arx_trial_begin(trial, ALONE, FIRST);
}

/* The packets of the train are sent again from @psn on. */
static void send_again(struct arx_trial *trial, u32 psn)
{
	begin(trial);
	arx_trial_ends(trial, psn);
	arx_trial_again(trial, psn);
}

/* One train at a time until one has arrived, then any number. */
static void trial__arrives(struct kunit *test)
{
	struct arx_trial trial = {};

	KUNIT_EXPECT_TRUE(test, arx_trial_may(&trial));
	begin(&trial);
	KUNIT_EXPECT_FALSE(test, arx_trial_may(&trial));
	arx_trial_begin(&trial, 100, 100);	/* not watched */
	KUNIT_EXPECT_FALSE(test, arx_trial_ends(&trial, 0xffffff));
	KUNIT_EXPECT_FALSE(test, arx_trial_may(&trial));
	KUNIT_EXPECT_FALSE(test, arx_trial_ends(&trial, 0));
	KUNIT_EXPECT_TRUE(test, arx_trial_may(&trial));
	arx_trial_begin(&trial, 5, 5);
	KUNIT_EXPECT_TRUE(test, arx_trial_may(&trial));
}

/* No more trains after several were lost in a row. */
static void trial__lost(struct kunit *test)
{
	struct arx_trial trial = {};
	int i;

	for (i = 0; i < ARX_TRIAL_LOST; i++) {
		KUNIT_EXPECT_TRUE(test, arx_trial_may(&trial));
		send_again(&trial, ALONE + i % 3);
		KUNIT_EXPECT_FALSE(test, arx_trial_may(&trial));
		KUNIT_EXPECT_FALSE(test, arx_trial_ends(&trial, FIRST + 1));
		KUNIT_EXPECT_TRUE(test, arx_trial_ends(&trial, 30));
	}
	KUNIT_EXPECT_FALSE(test, arx_trial_may(&trial));
}

/* Losses that are not in a row are those of a network. */
static void trial__recovers(struct kunit *test)
{
	struct arx_trial trial = {};
	int i;

	for (i = 0; i < 3 * ARX_TRIAL_LOST; i++) {
		if (i % ARX_TRIAL_LOST)
			send_again(&trial, FIRST + 1);
		else
			begin(&trial);
		KUNIT_EXPECT_EQ(test, arx_trial_ends(&trial, 0),
				!!(i % ARX_TRIAL_LOST));
	}
	KUNIT_EXPECT_TRUE(test, arx_trial_may(&trial));
}

/* An earlier packet is missing: the train may be missing, too, or not. */
static void trial__earlier(struct kunit *test)
{
	struct arx_trial trial = {};

	send_again(&trial, ALONE - 1);
	KUNIT_EXPECT_FALSE(test, arx_trial_may(&trial));
	KUNIT_EXPECT_FALSE(test, arx_trial_ends(&trial, 30));
	KUNIT_EXPECT_FALSE(test, trial.arrived);
	KUNIT_EXPECT_EQ(test, trial.lost, 0);

	send_again(&trial, ALONE - 1);
	arx_trial_again(&trial, FIRST + 1);
	arx_trial_again(&trial, ALONE - 1);
	KUNIT_EXPECT_TRUE(test, arx_trial_ends(&trial, 30));
}

/* A later packet is missing, or the network has made a duplicate. */
static void trial__later(struct kunit *test)
{
	struct arx_trial trial = {};

	begin(&trial);
	arx_trial_again(&trial, 0);
	KUNIT_EXPECT_FALSE(test, arx_trial_ends(&trial, 0));
	KUNIT_EXPECT_TRUE(test, trial.arrived);
}

/* This machine dropped the train, or the peer was not ready. */
static void trial__void(struct kunit *test)
{
	struct arx_trial trial = {};

	arx_trial_void(&trial);
	KUNIT_EXPECT_TRUE(test, arx_trial_may(&trial));
	begin(&trial);
	arx_trial_void(&trial);
	arx_trial_again(&trial, FIRST);
	KUNIT_EXPECT_FALSE(test, arx_trial_may(&trial));
	KUNIT_EXPECT_FALSE(test, arx_trial_ends(&trial, 30));
	KUNIT_EXPECT_FALSE(test, trial.arrived);
	KUNIT_EXPECT_TRUE(test, arx_trial_may(&trial));
}

/* A peer that never answers says nothing. */
static void trial__silence(struct kunit *test)
{
	struct arx_trial trial = {};
	int i;

	send_again(&trial, ALONE);
	for (i = 0; i < 2 * ARX_TRIAL_LOST; i++)
		arx_trial_again(&trial, ALONE);
	KUNIT_EXPECT_EQ(test, trial.lost, 0);
	KUNIT_EXPECT_FALSE(test, arx_trial_may(&trial));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(trial__arrives),
	KUNIT_CASE(trial__lost),
	KUNIT_CASE(trial__recovers),
	KUNIT_CASE(trial__earlier),
	KUNIT_CASE(trial__later),
	KUNIT_CASE(trial__void),
	KUNIT_CASE(trial__silence),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_trial",
	.test_cases = cases,
};

kunit_test_suite(suite);
