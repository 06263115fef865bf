#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# networkd-dispatcher sets IFACE. The device follows its netdev by itself: it
# goes when the netdev goes.
[ "$IFACE" = eth0 ] || exit 0
[ -e /run/arx/eth0 ] && [ -e "/sys/class/infiniband/$(cat /run/arx/eth0)" ] && exit 0
exec /usr/sbin/arx-link add eth0
