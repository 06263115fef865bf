/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* ioctls of /dev/arx-exporter, with a plain number as argument */
#ifndef EXPORTER_H
#define EXPORTER_H

#include <linux/ioctl.h>

#define EXPORTER_MAKE	_IO('x', 1)	/* bytes; returns a buffer's fd */
#define EXPORTER_MOVE	_IO('x', 2)	/* fd; EBUSY: the buffer must stay */
#define EXPORTER_REVOKE	_IO('x', 3)	/* fd; likewise */
#define EXPORTER_MAKE_PINNED _IO('x', 4)	/* as EXPORTER_MAKE */

#endif /* EXPORTER_H */
