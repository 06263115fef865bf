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
	shows(test, &arx_attr_ecn, "1\n");
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_ecn, "off\n"), 4);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_capture, "1"), 1);
	KUNIT_EXPECT_EQ(test, dev->ecn, 0);
	KUNIT_EXPECT_EQ(test, dev->capture, 1);
	shows(test, &arx_attr_ecn, "0\n");
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_ecn, "7\n"), -EINVAL);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_ecn, ""), -EINVAL);
	KUNIT_EXPECT_EQ(test, dev->ecn, 0);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_ecn, "y\n"), 2);
	KUNIT_EXPECT_EQ(test, dev->ecn, 1);
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

	shows(test, &arx_attr_cc, "auto\n");
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "fixed\n"), 6);
	KUNIT_EXPECT_EQ(test, dev->cc, ARX_CC_FIXED);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "delay\n"), 6);
	KUNIT_EXPECT_EQ(test, dev->cc, ARX_CC_DELAY);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "dcqcn"), 5);
	shows(test, &arx_attr_cc, "dcqcn\n");
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "cubic"), -EINVAL);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "1"), -EINVAL);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, ""), -EINVAL);
	KUNIT_EXPECT_EQ(test, dev->cc, ARX_CC_DCQCN);
}

/* A parameter of congestion control: what its range is, and its default. */
static void attrs__params(struct kunit *test)
{
	struct arx_attr *least = &arx_attr_cc_dcqcn_rp_min_rate_mbps;
	struct arx_dev *dev = test->priv;

	shows(test, least, "1\n");
	KUNIT_EXPECT_EQ(test, store(test, least, "25\n"), 3);
	KUNIT_EXPECT_EQ(test, dev->cc_params.dcqcn.rp_min_rate_mbps, 25);
	KUNIT_EXPECT_EQ(test, store(test, least, "0\n"), -ERANGE);
	KUNIT_EXPECT_EQ(test, store(test, least, "400001\n"), -ERANGE);
	KUNIT_EXPECT_EQ(test, store(test, least, "-1\n"), -EINVAL);
	shows(test, least, "25\n");
	KUNIT_EXPECT_EQ(test, store(test, least, "400000\n"), 7);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc_dcqcn_rp_gd, "9"),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc_dcqcn_rp_gd, "10"), 2);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc_delay_compete, "off"),
			3);
	KUNIT_EXPECT_EQ(test, dev->cc_params.delay.compete, 0);
	KUNIT_EXPECT_EQ(test, dev->cc_params.delay.target_usecs, 8000);
}

/*
 * No two attributes share a name or a value, and each default is in its range.
 */
static void attrs__all(struct kunit *test)
{
	struct attribute **one, **two;

	for (one = arx_attrs; *one; one++) {
		const struct arx_attr *a = arx_attr_of(*one);

		KUNIT_EXPECT_GE(test, a->initial, a->min);
		KUNIT_EXPECT_LE(test, a->initial, a->max);
		for (two = arx_attrs; two != one; two++) {
			KUNIT_EXPECT_STRNEQ(test, (*one)->name, (*two)->name);
			KUNIT_EXPECT_PTR_NE(test, a->field,
					    arx_attr_of(*two)->field);
		}
	}
}

static void attrs__table(struct kunit *test)
{
	static const struct {
		const char *text;
		int result;
	} bad[] = {
		{ "64 delay\n", -ERANGE },
		{ "4294967296 delay\n", -ERANGE },
		{ "-1 delay\n", -EINVAL },
		{ "26\n", -EINVAL },
		{ "26 ", -EINVAL },
		{ "26 cubic\n", -EINVAL },
		{ "26 delay 27 delay\n", -EINVAL },
		{ "26 delay\n27 delay\n", -EINVAL },
		{ " 26 delay\n", -EINVAL },
		{ "delay\n", -EINVAL },
		{ "delay 26\n", -EINVAL },
		{ "26delay\n", -EINVAL },
		{ "0000000000000026 delay\n", -EINVAL },
		{ "", -EINVAL },
		{ "\n", -EINVAL },
	};
	struct arx_attr *map = &arx_attr_cc_dscp;
	struct arx_dev *dev = test->priv;
	int i;

	shows(test, map, "");
	KUNIT_EXPECT_EQ(test, store(test, map, "26 dcqcn\n"), 9);
	KUNIT_EXPECT_EQ(test, store(test, map, "0x3f  fixed"), 11);
	KUNIT_EXPECT_EQ(test, store(test, map, "0 delay\n"), 8);
	KUNIT_EXPECT_EQ(test, dev->cc_dscp[26], ARX_CC_DCQCN + 1);
	shows(test, map, "0 delay\n26 dcqcn\n63 fixed\n");
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ_MSG(test, store(test, map, bad[i].text),
				    bad[i].result, "%s", bad[i].text);
	shows(test, map, "0 delay\n26 dcqcn\n63 fixed\n");
	KUNIT_EXPECT_EQ(test, store(test, map, "26 delay\n"), 9);
	KUNIT_EXPECT_EQ(test, store(test, map, "63 default\n"), 11);
	KUNIT_EXPECT_EQ(test, store(test, map, "1 default\n"), 10);
	KUNIT_EXPECT_EQ(test, store(test, map, "8 auto\n"), 7);
	shows(test, map, "0 delay\n8 auto\n26 delay\n");
	KUNIT_EXPECT_EQ(test, dev->cc, ARX_CC_AUTO);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "default"), -EINVAL);
}

/* All entries of the table together are less than a page. */
static void attrs__full_table(struct kunit *test)
{
	char *text = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	char line[16];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, text);
	for (i = 0; i < ARX_NUM_DSCPS; i++) {
		snprintf(line, sizeof(line), "%d dcqcn\n", i);
		KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc_dscp, line),
				strlen(line));
		strlcat(text, line, PAGE_SIZE);
	}
	shows(test, &arx_attr_cc_dscp, text);
}

/* Programs of BPF control congestion only if the module has BTF. */
static void attrs__bpf(struct kunit *test)
{
	struct arx_dev *dev = test->priv;

	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "bpf"), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, dev->cc, ARX_CC_AUTO);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc_dscp, "26 bpf"),
			-EOPNOTSUPP);
	shows(test, &arx_attr_cc_dscp, "");
	arx_cc_bpf_able = true;
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc, "bpf\n"), 4);
	KUNIT_EXPECT_EQ(test, store(test, &arx_attr_cc_dscp, "26 bpf"), 6);
	arx_cc_bpf_able = false;
	KUNIT_EXPECT_EQ(test, dev->cc, ARX_CC_BPF);
	shows(test, &arx_attr_cc, "bpf\n");
	shows(test, &arx_attr_cc_dscp, "26 bpf\n");
}

static struct kunit_case attrs_cases[] = {
	KUNIT_CASE(attrs__switches),
	KUNIT_CASE(attrs__numbers),
	KUNIT_CASE(attrs__names),
	KUNIT_CASE(attrs__params),
	KUNIT_CASE(attrs__all),
	KUNIT_CASE(attrs__table),
	KUNIT_CASE(attrs__full_table),
	KUNIT_CASE(attrs__bpf),
	{}
};

static struct kunit_suite attrs_suite = {
	.name = "arx_attrs",
	.init = attrs_kunit_init,
	.test_cases = attrs_cases,
};

kunit_test_suite(attrs_suite);
