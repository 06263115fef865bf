// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* stats.c: every counter has a name of its own, and is read. */

#include <kunit/test.h>

#include "stats.c"

static void stats__names(struct kunit *test)
{
	int i, j;

	for (i = 0; i < ARX_NUM_COUNTERS; i++) {
		KUNIT_ASSERT_NOT_NULL(test, arx_stat_descs[i].name);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, arx_stat_descs[i].name,
					    arx_stat_descs[j].name);
	}
}

static void stats__sums(struct kunit *test)
{
	struct arx_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct rdma_hw_stats *stats;
	int cpu, i;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->stats = alloc_percpu(struct arx_stats);
	KUNIT_ASSERT_NOT_NULL(test, dev->stats);
	stats = arx_alloc_hw_port_stats(&dev->ib, 1);
	KUNIT_ASSERT_NOT_NULL(test, stats);

	for_each_possible_cpu(cpu)
		for (i = 0; i < ARX_NUM_COUNTERS; i++)
			per_cpu_ptr(dev->stats, cpu)->c[i] = 100 + i;
	KUNIT_EXPECT_EQ(test, arx_get_hw_stats(&dev->ib, stats, 1, 0),
			ARX_NUM_COUNTERS);
	for (i = 0; i < ARX_NUM_COUNTERS; i++)
		KUNIT_EXPECT_EQ(test, stats->value[i],
				num_possible_cpus() * (100 + i));
	KUNIT_EXPECT_EQ(test, arx_get_hw_stats(&dev->ib, stats, 0, 0), -EINVAL);

	rdma_free_hw_stats_struct(stats);
	free_percpu(dev->stats);
}

/* Optional counters are off at first, and count only while they are on. */
static void stats__optional(struct kunit *test)
{
	struct arx_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct rdma_hw_stats *stats;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	stats = arx_alloc_hw_port_stats(&dev->ib, 1);
	KUNIT_ASSERT_NOT_NULL(test, stats);
	KUNIT_EXPECT_GE(test, ARX_NUM_COUNTERS, 60);
	for (i = 0; i < ARX_NUM_COUNTERS; i++) {
		bool optional = i >= ARX_CNT_OPTIONAL;

		KUNIT_EXPECT_EQ(test, optional,
				test_bit(i, stats->is_disabled));
		KUNIT_EXPECT_EQ(test, optional,
				!!(stats->descs[i].flags &
				   IB_STAT_FLAG_OPTIONAL));
	}
	rdma_free_hw_stats_struct(stats);

	KUNIT_EXPECT_FALSE(test, static_key_enabled(&arx_stats_optional));
	arx_modify_hw_stat(&dev->ib, 1, ARX_CNT_REQ_WAITS, true);
	arx_modify_hw_stat(&dev->ib, 1, ARX_CNT_REQ_TURNS, true);
	KUNIT_EXPECT_TRUE(test, static_key_enabled(&arx_stats_optional));
	KUNIT_EXPECT_EQ(test, hweight_long(dev->optional), 2);
	arx_modify_hw_stat(&dev->ib, 1, ARX_CNT_REQ_TURNS, false);
	KUNIT_EXPECT_TRUE(test, static_key_enabled(&arx_stats_optional));
	arx_stats_exit(dev);
	KUNIT_EXPECT_FALSE(test, static_key_enabled(&arx_stats_optional));
}

static struct kunit_case stats_cases[] = {
	KUNIT_CASE(stats__names),
	KUNIT_CASE(stats__sums),
	KUNIT_CASE(stats__optional),
	{}
};

static struct kunit_suite stats_suite = {
	.name = "arx_stats",
	.test_cases = stats_cases,
};

kunit_test_suite(stats_suite);
