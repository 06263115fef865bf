/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef BENCH_DCQCN_H
#define BENCH_DCQCN_H

#include <stddef.h>

void dcqcn_set_up(int in, int out);
void dcqcn_send(int fd);
void dcqcn_receive(int fd, void (*count)(void *arg, size_t bytes), void *arg);

#endif /* BENCH_DCQCN_H */
