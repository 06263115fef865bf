/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The GIDs of devices that the core does not serve by itself. */
#ifndef ARX_GIDS_H
#define ARX_GIDS_H

struct arx_dev;

void arx_gids_init_dev(struct arx_dev *dev);
void arx_gids_exit_dev(struct arx_dev *dev);
void arx_gids_registered(struct arx_dev *dev);
void arx_gids_netdev_event(struct arx_dev *dev, unsigned long event);
void arx_gids_init(void);
void arx_gids_exit(void);

#endif /* ARX_GIDS_H */
