// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Latency of TCP: a message there and back, blocking, without Nagle.
 *   bench-tcp server PORT SIZE
 *   bench-tcp client PORT SIZE ADDRESS SECONDS LEAST
 * The client runs for SECONDS and for at least LEAST messages. It prints half
 * of the round trip in microseconds, like perftest for WRITE and SEND: the
 * median, the 99 % and the 99.9 %.
 *   bench-tcp turn NETNS NETNS ADDRESS COUNT SECONDS
 * makes COUNT connections from the first network namespace to ADDRESS in the
 * second one, and sends 8 bytes at a time, always waiting for their arrival:
 * over the first connection alone, then over all in turn. It prints
 * microseconds for each message.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST	1000000

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Returns false if the other end has closed the connection. */
static int take(int fd, char *buffer, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = recv(fd, buffer + done, size - done, 0);

		if (n < 0)
			err(1, "recv");
		if (!n)
			return 0;
		done += n;
	}
	return 1;
}

static void give(int fd, const char *buffer, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = send(fd, buffer + done, size - done, 0);

		if (n < 0)
			err(1, "send");
		done += n;
	}
}

static void no_delay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		err(1, "TCP_NODELAY");
}

static void serve(int fd, struct sockaddr_in *address, char *buffer,
		  size_t size)
{
	int client;

	if (bind(fd, (void *)address, sizeof(*address)) || listen(fd, 1))
		err(1, "listen");
	client = accept(fd, NULL, NULL);
	if (client < 0)
		err(1, "accept");
	no_delay(client);
	while (take(client, buffer, size))
		give(client, buffer, size);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void ask(int fd, struct sockaddr_in *address, char *buffer, size_t size,
		double seconds, size_t least)
{
	double *times = calloc(MOST, sizeof(*times)), start, before, after;
	size_t n = 0, i;

	if (!times)
		err(1, "memory");
	if (connect(fd, (void *)address, sizeof(*address)))
		err(1, "connect");
	no_delay(fd);
	for (i = 0; i < 100 && i < least; i++) {
		give(fd, buffer, size);
		take(fd, buffer, size);
	}
	start = before = now();
	while (n < MOST && (n < least || before - start < seconds)) {
		give(fd, buffer, size);
		if (!take(fd, buffer, size))
			errx(1, "the server has closed");
		after = now();
		times[n++] = (after - before) * 1e6 / 2;
		before = after;
	}
	qsort(times, n, sizeof(*times), compare);
	printf("{\"median\": %.3f, \"p99\": %.3f, \"p999\": %.3f}\n",
	       times[n / 2], times[n * 99 / 100], times[n * 999 / 1000]);
}

static void enter(const char *netns)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	fd = open(path, O_RDONLY);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		err(1, "%s", path);
	close(fd);
}

struct connection {
	int from;
	int to;
};

static void make_connections(struct connection *made, size_t count,
			     char **netns, struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);
	int listener;
	size_t i;

	enter(netns[1]);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (void *)address, sizeof(*address)) ||
	    listen(listener, 1) ||
	    getsockname(listener, (void *)address, &length))
		err(1, "listen");
	enter(netns[0]);
	for (i = 0; i < count; i++) {
		made[i].from = socket(AF_INET, SOCK_STREAM, 0);
		if (made[i].from < 0 ||
		    connect(made[i].from, (void *)address, sizeof(*address)))
			err(1, "connect");
		made[i].to = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		if (made[i].to < 0)
			err(1, "accept");
		no_delay(made[i].from);
	}
	close(listener);
}

static void pass_one(const struct connection *on)
{
	char buffer[8] = "";
	ssize_t n;

	give(on->from, buffer, sizeof(buffer));
	while ((n = recv(on->to, buffer, sizeof(buffer), 0)) < 0 &&
	       errno == EAGAIN)
		;
	if (n != sizeof(buffer))
		err(1, "recv");
}

/* Microseconds for a message, of @count connections in turn. */
static double turns(const struct connection *made, size_t count, double seconds)
{
	double start, end;
	size_t i, n = 0;

	for (i = 0; i < count; i++)
		pass_one(&made[i]);
	start = now();
	do {
		pass_one(&made[n++ % count]);
		end = now();
	} while (end - start < seconds || n < count);
	return (end - start) / n * 1e6;
}

static int take_turns(char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct connection *made;
	size_t count = strtoul(argv[3], NULL, 0);
	double seconds = atof(argv[4]), one;

	made = calloc(count, sizeof(*made));
	if (!made)
		err(1, "memory");
	if (inet_pton(AF_INET, argv[2], &address.sin_addr) != 1)
		errx(2, "not an address: %s", argv[2]);
	make_connections(made, count, argv, &address);
	one = turns(made, 1, seconds);
	printf("{\"one\": %.3f, \"turn\": %.3f}\n", one,
	       turns(made, count, seconds));
	return 0;
}

int main(int argc, char **argv)
{
	int server = argc == 4 && !strcmp(argv[1], "server");
	struct sockaddr_in address = { .sin_family = AF_INET };
	size_t size;
	char *buffer;
	int fd;

	if (argc == 7 && !strcmp(argv[1], "turn"))
		return take_turns(argv + 2);
	if (!server && (argc != 7 || strcmp(argv[1], "client")))
		errx(2,
		     "usage: bench-tcp server PORT SIZE | client PORT SIZE ADDRESS SECONDS LEAST | "
		     "turn NETNS NETNS ADDRESS COUNT SECONDS");
	address.sin_port = htons(atoi(argv[2]));
	size = strtoul(argv[3], NULL, 0);
	buffer = calloc(1, size);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || !buffer)
		err(1, "socket");
	if (!server && inet_pton(AF_INET, argv[4], &address.sin_addr) != 1)
		errx(2, "not an address: %s", argv[4]);
	if (server)
		serve(fd, &address, buffer, size);
	else
		ask(fd, &address, buffer, size, atof(argv[5]),
		    strtoul(argv[6], NULL, 0));
	return 0;
}
