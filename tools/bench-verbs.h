/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the programs of the benches share. A failure ends the program.
 * _GNU_SOURCE is defined.
 */
#ifndef BENCH_VERBS_H
#define BENCH_VERBS_H

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Make this thread a part of the network namespace. */
static inline void enter(const char *netns)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	fd = open(path, O_RDONLY);
	check(fd >= 0 && !setns(fd, CLONE_NEWNET), path);
	close(fd);
}

/* Open the device in the network namespace, and stay there. */
static inline struct ibv_context *open_device(const char *netns,
					      const char *device)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	int i;

	enter(netns);
	list = ibv_get_device_list(NULL);
	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			context = ibv_open_device(list[i]);
	check(context != NULL, device);
	return context;
}

/* The GID for IPv4; returns its index. */
static inline int find_gid(struct ibv_context *context, union ibv_gid *gid)
{
	struct ibv_gid_entry entries[64];
	ssize_t i, n = ibv_query_gid_table(context, entries, 64, 0);

	for (i = 0; i < n; i++) {
		if (entries[i].gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    entries[i].gid.raw[10] != 0xff || entries[i].gid.raw[0])
			continue;
		*gid = entries[i].gid;
		return entries[i].gid_index;
	}
	check(0, "no GID for IPv4");
	return -1;
}

/*
 * Connect an RC QP from RESET to RTS. @attr has the path and what both ends
 * allow; states and the number of the port are set here.
 */
static inline void connect_rc(struct ibv_qp *qp, struct ibv_qp_attr attr)
{
	attr.port_num = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.is_global = 1;
	attr.qp_state = IBV_QPS_INIT;
	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS),
	      "INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER),
	      "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
}

#endif /* BENCH_VERBS_H */
