// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* attrs.c: what is accepted, and what is shown. */

#include <kunit/test.h>

#include "attrs.c"

static int attrs_kunit_init(struct kunit *test)
{
	struct arx_dev *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->ib.coredev.owner = &dev->ib;
	arx_attrs_init(dev);
	test->priv = dev;
	return 0;
}

static ssize_t store(struct kunit *test, struct arx_attr *attr,
		     const char *text)
{
	struct arx_dev *dev = test->priv;

	return attr->attr.store(&dev->ib.coredev.dev, &attr->attr, text,
				strlen(text));
}

/* The attribute shows @text. */
static void shows(struct kunit *test, struct arx_attr *attr, const char *text)
{
	char *buf = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	struct arx_dev *dev = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	attr->attr.show(&dev->ib.coredev.dev, &attr->attr, buf);
	KUNIT_EXPECT_STREQ(test, buf, text);
}

static void attrs__switches(struct kunit *test)
{
	struct arx_dev *dev = test->priv;

	shows(test, &arx_attr_capture, "0\n");
	shows(test, &arx_attr_ecn, "0\n");
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_ecn, "on\n"), 3);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_capture, "1"), 1);
	KUNIT_EXPECT_EQ(test, dev->ecn, 1);
	KUNIT_EXPECT_EQ(test, dev->capture, 1);
	shows(test, &arx_attr_ecn, "1\n");
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_ecn, "7\n"), -EINVAL);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_ecn, ""), -EINVAL);
	KUNIT_EXPECT_EQ(test, dev->ecn, 1);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_ecn, "n\n"), 2);
	KUNIT_EXPECT_EQ(test, dev->ecn, 0);
	KUNIT_EXPECT_EQ(test, dev->capture, 1);
}

static void attrs__numbers(struct kunit *test)
{
	struct arx_dev *dev = test->priv;

	shows(test, &arx_attr_cnp_dscp, "48\n");
	shows(test, &arx_attr_doorbell_usecs, "400\n");
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cnp_dscp, "0x3f\n"), 5);
	shows(test, &arx_attr_cnp_dscp, "63\n");
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cnp_dscp, "64"), -ERANGE);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cnp_dscp, "-1"), -EINVAL);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cnp_dscp, "y"), -EINVAL);
	KUNIT_EXPECT_EQ(test, dev->cnp_dscp, 63);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_doorbell_usecs, "1000000"),
			7);
	KUNIT_EXPECT_EQ(test, dev->doorbell_usecs, 1000000);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_doorbell_usecs, "1000001"),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_doorbell_usecs,
				    "4294967296"), -ERANGE);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_doorbell_usecs, "0"), 1);
	shows(test, &arx_attr_doorbell_usecs, "0\n");
	KUNIT_EXPECT_EQ(test, dev->cnp_dscp, 63);
}

static void attrs__names(struct kunit *test)
{
	struct arx_dev *dev = test->priv;

	shows(test, &arx_attr_cc, "fixed\n");
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "delay\n"), 6);
	KUNIT_EXPECT_EQ(test, dev->cc, ARX_CC_DELAY);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "dcqcn"), 5);
	shows(test, &arx_attr_cc, "dcqcn\n");
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "cubic"), -EINVAL);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "1"), -EINVAL);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, ""), -EINVAL);
	KUNIT_EXPECT_EQ(test, dev->cc, ARX_CC_DCQCN);
}

static struct kunit_case attrs_cases[] = {
	KUNIT_CASE(attrs__switches),
	KUNIT_CASE(attrs__numbers),
	KUNIT_CASE(attrs__names),
	{}
};

static struct kunit_suite attrs_suite = {
	.name = "arx_attrs",
	.init = attrs_kunit_init,
	.test_cases = attrs_cases,
};

kunit_test_suite(attrs_suite);
