/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Attributes of a device in sysfs. */
#ifndef ARX_ATTRS_H
#define ARX_ATTRS_H

#include <linux/sysfs.h>

struct arx_dev;

extern const struct attribute_group arx_attrs_group;

void arx_attrs_init(struct arx_dev *dev);

#endif /* ARX_ATTRS_H */
