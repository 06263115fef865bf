// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Attributes of a device in sysfs, /sys/class/infiniband/NAME. Each is a u32 of
 * struct arx_dev, or a table of u32. Struct arx_dev says what the attribute
 * does. Readers use READ_ONCE(). An enumeration is shown and written by names.
 */

#include <linux/device.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/stddef.h>
#include <linux/string.h>

#include "arx.h"
#include "attrs.h"
#include "cc_bpf.h"

/* A device at address 0: an address in it is an offset, and has a type. */
#define ARX_ATTR_DEV	(*(struct arx_dev *)NULL)

/**
 * struct arx_attr - an attribute
 * @attr: the core's part
 * @field: the value, or the first one of a table, in ARX_ATTR_DEV
 * @entries: number of values of a table; 0: there is one value
 * @initial: value, or each value of the table, of a new device
 * @min: minimum value; 0 if there are names
 * @max: maximum value; 1: the attribute is a switch, see kstrtobool()
 * @names: of the values up to @max; NULL: they are numbers
 *
 * A table shows the index and the name of each value that is not @initial, one
 * in a line. One write sets one value.
 */
struct arx_attr {
	struct device_attribute attr;
	u32 *field;
	u32 entries;
	u32 initial;
	u32 min;
	u32 max;
	const char *const *names;
};

/* The name of a value that not every module has. */
static const char arx_attr_bpf[] = "bpf";

static const struct arx_attr *arx_attr_of(struct attribute *attr)
{
	return container_of_const(attr, struct arx_attr, attr.attr);
}

static u32 *arx_attr_values(struct arx_dev *dev, const struct arx_attr *attr)
{
	return (void *)dev + (uintptr_t)attr->field;
}

/*
 * Returns 0, -EINVAL, -ERANGE for a number out of range, or -EOPNOTSUPP
 * for a value that this module does not have.
 */
static int arx_attr_parse(const struct arx_attr *attr, const char *buf,
			  u32 *value)
{
	bool on = false;
	int err;

	if (attr->names) {
		err = __sysfs_match_string(attr->names, attr->max + 1, buf);
		if (err < 0)
			return err;
		if (attr->names[err] == arx_attr_bpf && !arx_cc_bpf_able)
			return -EOPNOTSUPP;
		*value = err;
		return 0;
	}
	if (attr->max == 1) {
		err = kstrtobool(buf, &on);
		*value = on;
		return err;
	}
	err = kstrtou32(buf, 0, value);
	if (!err && (*value < attr->min || *value > attr->max))
		err = -ERANGE;
	return err;
}

/*
 * Read the index of a table's value from *@buf, and let *@buf point to what
 * follows. Returns 0, -EINVAL, or -ERANGE for an index beyond the table.
 */
static int arx_attr_parse_index(const struct arx_attr *attr, const char **buf,
				u32 *index)
{
	size_t len = strcspn(*buf, " ");
	char digits[16];
	int err;

	if (len >= sizeof(digits))
		return -EINVAL;
	memcpy(digits, *buf, len);
	digits[len] = '\0';
	err = kstrtou32(digits, 0, index);
	if (!err && *index >= attr->entries)
		err = -ERANGE;
	*buf = skip_spaces(*buf + len);
	return err;
}

static ssize_t arx_attr_show_table(const struct arx_attr *attr,
				   const u32 *values, char *buf)
{
	ssize_t len = 0;
	u32 i;

	for (i = 0; i < attr->entries; i++) {
		u32 value = READ_ONCE(values[i]);

		if (value != attr->initial)
			len += sysfs_emit_at(buf, len, "%u %s\n", i,
					     attr->names[value]);
	}
	return len;
}

static ssize_t arx_attr_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	struct arx_dev *dev = rdma_device_to_drv_device(device, struct arx_dev,
							ib);
	const struct arx_attr *a = arx_attr_of(&attr->attr);
	const u32 *values = arx_attr_values(dev, a);
	u32 value = READ_ONCE(values[0]);

	if (a->entries)
		return arx_attr_show_table(a, values, buf);
	if (a->names)
		return sysfs_emit(buf, "%s\n", a->names[value]);
	return sysfs_emit(buf, "%u\n", value);
}

static ssize_t arx_attr_store(struct device *device,
			      struct device_attribute *attr, const char *buf,
			      size_t len)
{
	struct arx_dev *dev = rdma_device_to_drv_device(device, struct arx_dev,
							ib);
	const struct arx_attr *a = arx_attr_of(&attr->attr);
	u32 index = 0;
	u32 value;
	int err = 0;

	if (a->entries)
		err = arx_attr_parse_index(a, &buf, &index);
	if (!err)
		err = arx_attr_parse(a, buf, &value);
	if (err)
		return err;
	WRITE_ONCE(arx_attr_values(dev, a)[index], value);
	return len;
}

/* The rest are initialisers of struct arx_attr. */
#define ARX_ATTR(_name, _field, ...)					\
	static struct arx_attr arx_attr_##_name = {			\
		.attr = {						\
			.attr = { .name = #_name, .mode = 0644 },	\
			.show = arx_attr_show,				\
			.store = arx_attr_store,			\
		},							\
		.field = &ARX_ATTR_DEV._field,				\
		__VA_ARGS__						\
	}

/* Values of the table cc_dscp. Those of cc begin after the first one. */
static const char *const arx_attr_cc_names[] = {
	"default",
	[ARX_CC_FIXED + 1] = "fixed",
	[ARX_CC_DELAY + 1] = "delay",
	[ARX_CC_DCQCN + 1] = "dcqcn",
	[ARX_CC_BPF + 1] = arx_attr_bpf,
	[ARX_CC_AUTO + 1] = "auto",
};

ARX_ATTR(capture, capture, .max = 1);
ARX_ATTR(cc, cc, .initial = ARX_CC_AUTO, .max = ARX_CC_AUTO,
	 .names = arx_attr_cc_names + 1);
ARX_ATTR(cc_dscp, cc_dscp[0], .entries = ARX_NUM_DSCPS,
	 .max = ARX_CC_AUTO + 1, .names = arx_attr_cc_names);
/* CS6, network control: what ConnectX sends by default. */
ARX_ATTR(cnp_dscp, cnp_dscp, .initial = 48, .max = ARX_NUM_DSCPS - 1);
ARX_ATTR(doorbell_usecs, doorbell_usecs, .initial = 400, .max = USEC_PER_SEC);
ARX_ATTR(ecn, ecn, .initial = 1, .max = 1);
ARX_ATTR(np_min_time_between_cnps_usecs, np_min_time_between_cnps_usecs,
	 .initial = 50, .max = USEC_PER_SEC);

/* Parameters of congestion control, see struct arx_cc_params */
#define ARX_CC_ATTR(_cc, _name, ...)					\
	ARX_ATTR(cc_##_cc##_##_name, cc_params._cc._name, __VA_ARGS__)

ARX_CC_ATTR(delay, compete, .initial = 1, .max = 1);
ARX_CC_ATTR(delay, target_min_usecs, .initial = 200, .min = 10,
	    .max = USEC_PER_SEC);
ARX_CC_ATTR(delay, target_usecs, .initial = 8000, .min = 10,
	    .max = USEC_PER_SEC);
ARX_CC_ATTR(dcqcn, first_rate_mbps, .initial = 10000, .min = 1,
	    .max = ARX_DCQCN_MOST_MBPS);
ARX_CC_ATTR(dcqcn, rp_ai_rate_mbps, .initial = 10, .min = 1,
	    .max = ARX_DCQCN_MOST_MBPS);
ARX_CC_ATTR(dcqcn, rp_byte_reset_bytes, .initial = SZ_1M, .min = 1,
	    .max = SZ_1G);
ARX_CC_ATTR(dcqcn, rp_gd, .initial = 11, .min = 10, .max = 20);
ARX_CC_ATTR(dcqcn, rp_hai_rate_mbps, .initial = 50, .min = 1,
	    .max = ARX_DCQCN_MOST_MBPS);
ARX_CC_ATTR(dcqcn, rp_initial_alpha_value, .initial = ARX_DCQCN_ALPHA_ONE,
	    .min = 1, .max = ARX_DCQCN_ALPHA_ONE);
ARX_CC_ATTR(dcqcn, rp_min_rate_mbps, .initial = 1, .min = 1,
	    .max = ARX_DCQCN_MOST_MBPS);
ARX_CC_ATTR(dcqcn, rp_rate_reduce_monitor_period_usecs, .initial = 50,
	    .min = 1, .max = USEC_PER_SEC);
ARX_CC_ATTR(dcqcn, rp_threshold, .initial = 5, .min = 1, .max = 31);
ARX_CC_ATTR(dcqcn, rp_time_reset_usecs, .initial = 300, .min = 1,
	    .max = USEC_PER_SEC);

static struct attribute *arx_attrs[] = {
	&arx_attr_capture.attr.attr,
	&arx_attr_cc.attr.attr,
	&arx_attr_cc_delay_compete.attr.attr,
	&arx_attr_cc_delay_target_min_usecs.attr.attr,
	&arx_attr_cc_delay_target_usecs.attr.attr,
	&arx_attr_cc_dcqcn_first_rate_mbps.attr.attr,
	&arx_attr_cc_dcqcn_rp_ai_rate_mbps.attr.attr,
	&arx_attr_cc_dcqcn_rp_byte_reset_bytes.attr.attr,
	&arx_attr_cc_dcqcn_rp_gd.attr.attr,
	&arx_attr_cc_dcqcn_rp_hai_rate_mbps.attr.attr,
	&arx_attr_cc_dcqcn_rp_initial_alpha_value.attr.attr,
	&arx_attr_cc_dcqcn_rp_min_rate_mbps.attr.attr,
	&arx_attr_cc_dcqcn_rp_rate_reduce_monitor_period_usecs.attr.attr,
	&arx_attr_cc_dcqcn_rp_threshold.attr.attr,
	&arx_attr_cc_dcqcn_rp_time_reset_usecs.attr.attr,
	&arx_attr_cc_dscp.attr.attr,
	&arx_attr_cnp_dscp.attr.attr,
	&arx_attr_doorbell_usecs.attr.attr,
	&arx_attr_ecn.attr.attr,
	&arx_attr_np_min_time_between_cnps_usecs.attr.attr,
	NULL
};

const struct attribute_group arx_attrs_group = {
	.attrs = arx_attrs,
};

/**
 * arx_attrs_init - set the attributes of a new device
 * @dev: being created
 */
void arx_attrs_init(struct arx_dev *dev)
{
	struct attribute **attr;

	for (attr = arx_attrs; *attr; attr++) {
		const struct arx_attr *a = arx_attr_of(*attr);

		memset32(arx_attr_values(dev, a), a->initial,
			 max(a->entries, 1));
	}
}
