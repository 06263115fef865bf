// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two connected QPs of one process, and the part of a CPU that they may take.
 *
 *	fair longest DEVICE PEER US THREADS GROUP [all]
 *		no section with bottom halves off is longer than US, by
 *		arx_probe.ko; longest.c has the groups
 *	fair hog DEVICE SECONDS
 *		65536 writes of 1 MiB, as many as the kernel sends in the time
 *	fair store DEVICE SECONDS receives|sends|local|orphans PROCS
 *		WQEs without end, by stores to the rings of 8 QPs: receives or
 *		sends of failed QPs, invalidations, or receives of failed QPs
 *		whose thread has ended. It joins the cgroup with the file PROCS
 *		when the QPs are there
 *	fair orphan DEVICE PROCS
 *		a process of the cgroup with the file PROCS fails a QP and ends;
 *		another one gets the flushed receives
 *	fair stopped DEVICE
 *		a process fails a QP and is stopped; another one gets the
 *		flushed receives
 *	fair share SECONDS
 *		a program on each CPU that only counts: the part of the CPUs
 *		that other programs took
 */
#define _GNU_SOURCE		/* for CPU sets */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fair.h"

static void hog(double seconds)
{
	struct kind kind = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_4096, .rd = 1, .recvs = RECVS
	};
	double end = now() + seconds;
	struct ibv_wc wc;
	struct pair p[2];
	int i;

	for (i = 0; i < 2; i++)
		make_pair(&p[i], &kind);
	for (i = 0; i < 2; i++)
		post(&p[i], IBV_WR_RDMA_WRITE, 0, LONG, DEPTH);
	while (now() < end) {
		ibv_poll_cq(p[0].cq, 1, &wc);
		usleep(20000);
	}
}

static void count(double seconds)
{
	double end = now() + seconds;

	while (now() < end)
		;
}

/* Seconds for which CPUs were idle, from /proc/stat. */
static double idle(void)
{
	unsigned long user, nice, system, idle, iowait;
	FILE *file = fopen("/proc/stat", "r");

	check(file && fscanf(file, "cpu %lu %lu %lu %lu %lu", &user, &nice,
			     &system, &idle, &iowait) == 5,
	      "/proc/stat");
	fclose(file);
	return (double)(idle + iowait) / sysconf(_SC_CLK_TCK);
}

/* Prints the part of a CPU that other programs took. */
static void share(double seconds)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN), i;
	double start = now(), before = idle(), took;
	struct rusage usage;

	for (i = 0; i < cpus; i++) {
		cpu_set_t set;

		if (fork())
			continue;
		CPU_ZERO(&set);
		CPU_SET(i, &set);
		check(!sched_setaffinity(0, sizeof(set), &set),
		      "sched_setaffinity");
		count(seconds);
		exit(0);
	}
	while (wait(NULL) > 0)
		;
	getrusage(RUSAGE_CHILDREN, &usage);
	took = (now() - start) * cpus - (idle() - before);
	took -= usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6;
	took -= usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6;
	printf("%.0f\n", 100 * took / seconds);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "share")) {
		share(atof(argv[2]));
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "hog")) {
		open_ends(argv[2], argv[2]);
		hog(atof(argv[3]));
		return 0;
	}
	if (argc == 6 && !strcmp(argv[1], "store")) {
		open_ends(argv[2], argv[2]);
		return store(argv[4], atof(argv[3]), argv[5]) ? 0 : 2;
	}
	if (argc == 4 && !strcmp(argv[1], "orphan")) {
		open_ends(argv[2], argv[2]);
		orphan(argv[3]);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "stopped")) {
		open_ends(argv[2], argv[2]);
		stopped();
		return 0;
	}
	if (argc < 7 || strcmp(argv[1], "longest"))
		return 2;
	open_ends(argv[2], argv[3]);
	return longest(strtoul(argv[4], NULL, 0), atoi(argv[5]) > 1, argc > 7,
		       argv[6]) != 0;
}
