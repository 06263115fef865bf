// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions paged on demand, and a thread that has their pages taken back all the
 * time, in each way that keeps what is in them: reclaim, protection, fork,
 * huge pages made and split, merging of equal pages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "verify.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

int region_paging;

static struct region *regions[16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;
static atomic_bool over;

void upset_add(struct region *r)
{
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(regions) && regions[i]; i++)
		;
	if (i < ARRAY_SIZE(regions))
		regions[i] = r;
	pthread_mutex_unlock(&lock);
}

void upset_remove(struct region *r)
{
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(regions); i++)
		if (regions[i] == r)
			regions[i] = NULL;
	pthread_mutex_unlock(&lock);
}

/* The child has the pages, too, until it ends. */
static void upset_fork(void)
{
	pid_t pid = fork();

	if (!pid) {
		usleep(1000);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* Errors (no swap, no huge pages, no KSM) are no fault of the device. */
static void upset(struct region *r, uint64_t random)
{
	size_t pages = r->map_len / 4096, first = (random >> 8) % pages;
	size_t len = (1 + (random >> 32) % (pages - first)) * 4096;
	uint8_t *at = r->map + first * 4096;

	switch (random % 8) {
	case 0:
		madvise(at, len, MADV_HUGEPAGE);
		madvise(at, len, MADV_COLLAPSE);
		break;
	case 1:
		madvise(at, len, MADV_NOHUGEPAGE);
		break;
	case 2:
		madvise(at, len, MADV_MERGEABLE);
		break;
	case 3:
		madvise(at, len, MADV_UNMERGEABLE);
		break;
	case 4:
		mprotect(at, len, PROT_READ | PROT_WRITE | PROT_EXEC);
		mprotect(at, len, PROT_READ | PROT_WRITE);
		break;
	case 5:
		upset_fork();
		break;
	default:
		madvise(at, len, MADV_PAGEOUT);
	}
}

static void *upset_all(void *unused)
{
	uint64_t n, i;

	for (n = 0; !over; n++) {
		for (i = 0; i < ARRAY_SIZE(regions); i++) {
			pthread_mutex_lock(&lock);
			if (regions[i])
				upset(regions[i],
				      mix64(n * ARRAY_SIZE(regions) + i));
			pthread_mutex_unlock(&lock);
		}
		usleep(500);
	}
	return unused;
}

bool upset_start(void)
{
	over = false;
	return !pthread_create(&thread, NULL, upset_all, NULL) ||
	       failed("pthread_create: %s", strerror(errno));
}

void upset_stop(void)
{
	over = true;
	pthread_join(thread, NULL);
}
