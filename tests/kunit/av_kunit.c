// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* av.c: address vectors, without the GID cache of the core. */

/* qp_fixture.c has these for the other suites. */
#define arx_av_create	av_under_test_create
#define arx_av_put	av_under_test_put

#include <kunit/test.h>
#include <rdma/ib_cache.h>

#define rdma_read_gid_attr_ndev_rcu(attr)	rcu_dereference((attr)->ndev)
#define rdma_hold_gid_attr(attr)		((void)(attr))
#define rdma_put_gid_attr(attr)			((void)(attr))

#include "av.c"

/**
 * struct av_test - what an address vector is made of
 * @dev: device on lo
 * @gid: source address, 127.0.0.1
 * @attr: destination, the same address
 */
struct av_test {
	struct arx_dev dev;
	struct ib_gid_attr gid;
	struct rdma_ah_attr attr;
};

static int av_init(struct kunit *test)
{
	struct av_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->dev.netdev = init_net.loopback_dev;
	t->gid.gid_type = IB_GID_TYPE_ROCE_UDP_ENCAP;
	RCU_INIT_POINTER(t->gid.ndev, t->dev.netdev);
	ipv6_addr_set_v4mapped(htonl(INADDR_LOOPBACK),
			       (struct in6_addr *)&t->gid.gid);
	t->attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	t->attr.ah_flags = IB_AH_GRH;
	t->attr.grh.sgid_attr = &t->gid;
	t->attr.grh.dgid = t->gid.gid;
	test->priv = t;
	return 0;
}

static void av_exit(struct kunit *test)
{
	rcu_barrier();	/* arx_av_free() */
}

static bool has_cache(struct kunit *test, gfp_t gfp)
{
	struct av_test *t = test->priv;
	struct arx_av *av = arx_av_create(&t->dev, NULL, &t->attr, 2, 3, gfp);
	bool has;

	KUNIT_ASSERT_FALSE(test, IS_ERR(av));
	KUNIT_EXPECT_EQ(test, av->ifindex, t->dev.netdev->ifindex);
	KUNIT_EXPECT_TRUE(test, av->ipv4);
	has = av->dst.cache;
	arx_av_put(av);
	return has;
}

/* Per-CPU memory is not for atomic contexts: the CM would use all of it. */
static void av__cache(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, has_cache(test, GFP_KERNEL));
	KUNIT_EXPECT_TRUE(test, has_cache(test, GFP_KERNEL_ACCOUNT));
	KUNIT_EXPECT_FALSE(test, has_cache(test, GFP_ATOMIC));
}

/*
 * A rate in Mbit/s, by the speed of the port (0: unknown). A rate of at least
 * the port's speed is no bound.
 */
static const struct {
	u8 rate;
	u32 port;
	u32 mbps;
} rates[] = {
	{ IB_RATE_2_5_GBPS, 0, 2500 },
	{ IB_RATE_40_GBPS, 0, 40000 },
	{ IB_RATE_40_GBPS, 100000, 40000 },
	{ IB_RATE_40_GBPS, 40000, 0 },
	{ IB_RATE_40_GBPS, 10000, 0 },
	{ IB_RATE_400_GBPS, 0, 425000 },
	{ IB_RATE_PORT_CURRENT, 0, 0 },
};

/* With rdma_cm a peer names the rate, whatever it is. */
static void av__rates(struct kunit *test)
{
	struct av_test *t = test->priv;
	struct arx_av *av;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		t->dev.port_mbps = rates[i].port;
		t->attr.static_rate = rates[i].rate;
		av = arx_av_create(&t->dev, NULL, &t->attr, 2, 3, GFP_KERNEL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(av));
		KUNIT_EXPECT_EQ(test, av->mbps, rates[i].mbps);
		arx_av_put(av);
	}
}

static void av__rates_that_do_not_exist(struct kunit *test)
{
	struct av_test *t = test->priv;
	u32 rate, refused = 0;

	for (rate = 1; rate <= U8_MAX; rate++) {
		if (ib_rate_to_mbps(rate) > 0)
			continue;
		t->attr.static_rate = rate;
		KUNIT_EXPECT_PTR_EQ(test, arx_av_create(&t->dev, NULL, &t->attr,
							2, 3, GFP_KERNEL),
				    ERR_PTR(-EINVAL));
		refused++;
	}
	KUNIT_EXPECT_GT(test, refused, 200);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(av__cache),
	KUNIT_CASE(av__rates),
	KUNIT_CASE(av__rates_that_do_not_exist),
	{}
};

static struct kunit_suite suite = {
	.name = "arx_av",
	.init = av_init,
	.exit = av_exit,
	.test_cases = cases,
};

kunit_test_suite(suite);
