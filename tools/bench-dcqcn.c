// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Traffic that behaves as a RoCE card with DCQCN does (SIGCOMM '15), in UDP
 * datagrams of a full packet's size: the sender's packets are ECN capable, the
 * receiver answers marked ones with a notification, and the sender's rate
 * follows those. The constants are the defaults of ConnectX cards. A thread's
 * sleep is coarse, so packets leave in small bursts.
 */
#define _GNU_SOURCE
#include <err.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include "bench-dcqcn.h"

/* Payload of a datagram: 4096 bytes, BTH, ICRC, and what Ethernet counts. */
#define PACKET		4124
#define MBIT		125e3	/* bytes per second */
#define LINE		(1000 * MBIT)
#define LEAST		(1 * MBIT)
#define STEP		(5 * MBIT)
#define LARGE_STEP	(50 * MBIT)
#define RAISE		300e-6	/* seconds */
#define DECAY		55e-6
#define CUT		50e-6
#define BYTES		(32767 * 64)
#define FAST		5
#define GAIN		(1 / 256.0)
#define LATE		2e-3	/* what a late sender catches up */
#define SLEEP		200e-6

struct dcqcn {
	double rate, target, alpha;
	double raised, decayed, cut;
	unsigned int by_time, by_bytes;
	size_t bytes;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void raise_rate(struct dcqcn *d)
{
	if (d->by_time > FAST && d->by_bytes > FAST)
		d->target += LARGE_STEP;
	else if (d->by_time > FAST || d->by_bytes > FAST)
		d->target += STEP;
	if (d->target > LINE)
		d->target = LINE;
	d->rate = (d->rate + d->target) / 2;
}

static void elapse(struct dcqcn *d, double now)
{
	for (; now - d->decayed >= DECAY; d->decayed += DECAY)
		d->alpha *= 1 - GAIN;
	for (; now - d->raised >= RAISE; d->raised += RAISE) {
		d->by_time++;
		raise_rate(d);
	}
	if (d->bytes >= BYTES) {
		d->bytes = 0;
		d->by_bytes++;
		raise_rate(d);
	}
}

static void notified(struct dcqcn *d, double now)
{
	if (now - d->cut < CUT)
		return;
	d->target = d->rate;
	d->rate *= 1 - d->alpha / 2;
	if (d->rate < LEAST)
		d->rate = LEAST;
	d->alpha = d->alpha * (1 - GAIN) + GAIN;
	d->cut = d->raised = d->decayed = now;
	d->by_time = d->by_bytes = d->bytes = 0;
}

/* Send at the rate forever. */
void dcqcn_send(int fd)
{
	static const struct timespec pause = { .tv_nsec = SLEEP * 1e9 };
	struct dcqcn d = { .rate = LINE, .target = LINE, .alpha = 1 };
	char packet[PACKET] = "";
	double now, next;

	next = d.raised = d.decayed = seconds();
	for (;;) {
		now = seconds();
		elapse(&d, now);
		while (recv(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0)
			notified(&d, now);
		if (next > now) {
			nanosleep(&pause, NULL);
			continue;
		}
		if (next < now - LATE)
			next = now - LATE;
		next += PACKET / d.rate;
		d.bytes += PACKET;
		send(fd, packet, sizeof(packet), 0);
	}
}

/* Returns the bytes of a datagram; sets *@marked if a router has marked it. */
static ssize_t receive(int fd, struct sockaddr_in *from, int *marked)
{
	char packet[PACKET], control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { packet, sizeof(packet) };
	struct msghdr msg = {
		.msg_name = from, .msg_namelen = sizeof(*from),
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &msg, 0);
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	*marked = n > 0 && cmsg && cmsg->cmsg_level == IPPROTO_IP &&
		  cmsg->cmsg_type == IP_TOS &&
		  (*(unsigned char *)CMSG_DATA(cmsg) & IPTOS_ECN_MASK) ==
			  IPTOS_ECN_CE;
	return n;
}

/* Answer marked datagrams, and count all, forever. */
void dcqcn_receive(int fd, void (*count)(void *arg, size_t bytes), void *arg)
{
	char notification[16] = "";
	struct sockaddr_in from;
	double last = 0;
	int marked;

	for (;;) {
		ssize_t n = receive(fd, &from, &marked);

		if (n < 0)
			err(1, "recvmsg");
		count(arg, n);
		if (!marked || seconds() - last < CUT)
			continue;
		last = seconds();
		sendto(fd, notification, sizeof(notification), 0, (void *)&from,
		       sizeof(from));
	}
}

/* @in: socket of the receiver, @out: of the sender. */
void dcqcn_set_up(int in, int out)
{
	int one = 1, ect = IPTOS_ECN_ECT0;

	if (setsockopt(in, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one)) ||
	    setsockopt(out, IPPROTO_IP, IP_TOS, &ect, sizeof(ect)))
		err(1, "ECN");
}
