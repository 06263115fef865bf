// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Attributes of a device in sysfs, /sys/class/infiniband/NAME. Each is a u32 of
 * struct arx_dev, which says what the attribute does. Readers use READ_ONCE().
 * An enumeration is shown and written by names.
 */

#include <linux/build_bug.h>
#include <linux/device.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
#include <linux/stddef.h>
#include <linux/string.h>

#include "arx.h"
#include "attrs.h"
#include "cc.h"

/**
 * struct arx_attr - an attribute
 * @attr: the core's part
 * @offset: of the value in struct arx_dev
 * @initial: value of a new device
 * @max: maximum value; 1: the attribute is a switch, see kstrtobool()
 * @names: of the values up to @max; NULL: they are numbers
 */
struct arx_attr {
	struct device_attribute attr;
	size_t offset;
	u32 initial;
	u32 max;
	const char *const *names;
};

static const struct arx_attr *arx_attr_of(struct attribute *attr)
{
	return container_of_const(attr, struct arx_attr, attr.attr);
}

static u32 *arx_attr_value(struct arx_dev *dev, const struct arx_attr *attr)
{
	return (void *)dev + attr->offset;
}

/* Returns 0, -EINVAL, or -ERANGE for a number above the maximum. */
static int arx_attr_parse(const struct arx_attr *attr, const char *buf,
			  u32 *value)
{
	bool on = false;
	int err;

	if (attr->names) {
		err = __sysfs_match_string(attr->names, attr->max + 1, buf);
		*value = err;
		return min(err, 0);
	}
	if (attr->max == 1) {
		err = kstrtobool(buf, &on);
		*value = on;
		return err;
	}
	err = kstrtou32(buf, 0, value);
	if (!err && *value > attr->max)
		err = -ERANGE;
	return err;
}

static ssize_t arx_attr_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	struct arx_dev *dev = rdma_device_to_drv_device(device, struct arx_dev,
							ib);
	const struct arx_attr *a = arx_attr_of(&attr->attr);
	u32 value = READ_ONCE(*arx_attr_value(dev, a));

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
	u32 value;
	int err = arx_attr_parse(a, buf, &value);

	if (err)
		return err;
	WRITE_ONCE(*arx_attr_value(dev, a), value);
	return len;
}

#define ARX_ATTR(_name, _initial, _max, _names)				\
	static struct arx_attr arx_attr_##_name = {			\
		.attr = {						\
			.attr = { .name = #_name, .mode = 0644 },	\
			.show = arx_attr_show,				\
			.store = arx_attr_store,			\
		},							\
		.offset = offsetof(struct arx_dev, _name),		\
		.initial = _initial,					\
		.max = _max,						\
		.names = _names,					\
	}

static const char *const arx_attr_cc_names[] = {
	[ARX_CC_FIXED] = "fixed",
	[ARX_CC_DELAY] = "delay",
	[ARX_CC_DCQCN] = "dcqcn",
};

ARX_ATTR(capture, 0, 1, NULL);
ARX_ATTR(cc, ARX_CC_FIXED, ARX_CC_DCQCN, arx_attr_cc_names);
/* CS6, network control: what ConnectX sends by default. */
ARX_ATTR(cnp_dscp, 48, 63, NULL);
ARX_ATTR(doorbell_usecs, 400, USEC_PER_SEC, NULL);
ARX_ATTR(ecn, 0, 1, NULL);

/* The functions above know the fields by their offsets only. */
#define ARX_ATTR_IS_U32(_name)						\
	__same_type(typeof_member(struct arx_dev, _name), u32)
static_assert(ARX_ATTR_IS_U32(capture) && ARX_ATTR_IS_U32(cc) &&
	      ARX_ATTR_IS_U32(cnp_dscp) && ARX_ATTR_IS_U32(doorbell_usecs) &&
	      ARX_ATTR_IS_U32(ecn));

static struct attribute *arx_attrs[] = {
	&arx_attr_capture.attr.attr,
	&arx_attr_cc.attr.attr,
	&arx_attr_cnp_dscp.attr.attr,
	&arx_attr_doorbell_usecs.attr.attr,
	&arx_attr_ecn.attr.attr,
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

		*arx_attr_value(dev, a) = a->initial;
	}
}
