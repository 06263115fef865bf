// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The control socket between the two sides: small messages, in order. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "verify.h"

int ctl_fd = -1;

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Without the other side the test ends. */
static void lost(const char *why)
{
	printf("not ok verify: side %d lost the other side: %s\n", side, why);
	exit(1);
}

static void write_all(const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = write(ctl_fd, p, len);
		if (n <= 0)
			lost(strerror(errno));
	}
}

static void read_all(void *data, size_t len)
{
	char *p = data;
	ssize_t n;

	for (; len; p += n, len -= n) {
		n = read(ctl_fd, p, len);
		if (n <= 0)
			lost(n ? strerror(errno) : "it ended");
	}
}

void ctl_send(enum ctl_type type, uint32_t flow, uint64_t value)
{
	struct ctl_msg msg = { .type = type, .flow = flow, .value = value };

	write_all(&msg, sizeof(msg));
}

/* A blob is left for ctl_swap(): the other side is already at its barrier. */
bool ctl_take(struct ctl_msg *msg)
{
	ssize_t n = recv(ctl_fd, msg, sizeof(*msg), MSG_PEEK | MSG_DONTWAIT);

	if (!n)
		lost("it ended");
	if (n < (ssize_t)sizeof(*msg) || msg->type == CTL_BLOB)
		return false;
	read_all(msg, sizeof(*msg));
	return true;
}

void ctl_swap(const void *mine, void *theirs, size_t len)
{
	struct pollfd fd = { .fd = ctl_fd, .events = POLLIN };
	struct ctl_msg msg;

	ctl_send(CTL_BLOB, 0, len);
	write_all(mine, len);
	do {
		if (poll(&fd, 1, 120000 * time_factor) <= 0)
			lost("it does not answer");
		read_all(&msg, sizeof(msg));
	} while (msg.type != CTL_BLOB);
	if (msg.value != len)
		lost("it is at another step");
	read_all(theirs, len);
}

void ctl_barrier(void)
{
	char mine = 0, theirs;

	ctl_swap(&mine, &theirs, 1);
}
