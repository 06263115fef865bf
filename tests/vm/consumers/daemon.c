// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * daemon DEVICE: a server that lives on while its device, netdev and address go
 * and come back. It listens by rdma_cm on the wildcard address and sends each
 * message of its clients back. It prints every asynchronous event of DEVICE;
 * when the device is gone it waits for the next one of that name.
 *
 * daemon DEVICE ADDRESS COUNT [forks]: its client. It succeeds when COUNT
 * messages came back with all their bytes right. With "forks" it has a child
 * after each tenth one, while the answer is under way: the child exits, closes
 * all files, or executes another program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT	"7471"
#define SIZE	20000

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- events ---- */

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return context;
}

/*
 * Prints events until the last one, that of the removal: the kernel neither
 * reports an error after it nor closes the file.
 */
static void print_events(struct ibv_context *context)
{
	struct pollfd fd = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event = {};

	printf("event: opened\n");
	while (event.event_type != IBV_EVENT_DEVICE_FATAL) {
		if (ibv_get_async_event(context, &event))
			die("event");
		printf("event: %s\n", ibv_event_type_str(event.event_type));
		ibv_ack_async_event(&event);
	}
	printf("event: %s\n", poll(&fd, 1, 200) ? "one more" : "end");
}

static void *watch(void *name)
{
	for (;;) {
		struct ibv_context *context = open_device(name);

		if (context) {
			print_events(context);
			ibv_close_device(context);
		}
		usleep(20000);	/* the next device may not be there yet */
	}
	return NULL;
}

/* ---- one connection ---- */

struct connection {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *buf;		/* two halves: to send, to receive */
	pthread_t thread;
	bool started;
};

static bool prepare(struct connection *c)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 2, .max_recv_wr = 2,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.sq_sig_all = 1,
	};

	c->buf = calloc(2, SIZE);
	if (!c->buf || rdma_create_qp(c->id, NULL, &attr))
		return false;
	c->mr = rdma_reg_msgs(c->id, c->buf, 2 * SIZE);
	return c->mr &&
	       !rdma_post_recv(c->id, NULL, c->buf + SIZE, SIZE, c->mr);
}

static void release(struct connection *c)
{
	if (c->mr)
		rdma_dereg_mr(c->mr);
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	rdma_destroy_id(c->id);
	free(c->buf);
	free(c);
}

static bool send_one(struct connection *c)
{
	struct ibv_wc wc;

	return !rdma_post_send(c->id, NULL, c->buf, SIZE, c->mr, 0) &&
	       rdma_get_send_comp(c->id, &wc) == 1 && !wc.status;
}

static bool receive_one(struct connection *c)
{
	struct ibv_wc wc;

	return rdma_get_recv_comp(c->id, &wc) == 1 && !wc.status &&
	       wc.byte_len == SIZE;
}

/* ---- the server ---- */

/* Ends when the connection does, whatever ends it. */
static void *serve(void *arg)
{
	struct connection *c = arg;

	while (receive_one(c)) {
		memcpy(c->buf, c->buf + SIZE, SIZE);
		if (rdma_post_recv(c->id, NULL, c->buf + SIZE, SIZE, c->mr) ||
		    !send_one(c))
			break;
	}
	return NULL;
}

static void request(struct rdma_cm_id *id)
{
	struct connection *c = calloc(1, sizeof(*c));
	struct rdma_conn_param param = { .rnr_retry_count = 7 };

	if (!c)
		die("calloc");
	c->id = id;
	id->context = c;
	/* The device may be gone already: its client finds that out itself. */
	if (!prepare(c) || rdma_accept(id, &param)) {
		printf("not accepted: %s\n", strerror(errno));
		rdma_reject(id, NULL, 0);
	}
}

static void established(struct connection *c)
{
	if (!pthread_create(&c->thread, NULL, serve, c))
		c->started = true;
}

/* The event of the ID has been acknowledged. */
static void ended(struct connection *c)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (c->id->qp)
		ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE);
	if (c->started)
		pthread_join(c->thread, NULL);
	release(c);
}

static void handle(struct rdma_cm_event *event, struct rdma_cm_id *listener)
{
	enum rdma_cm_event_type type = event->event;
	struct rdma_cm_id *id = event->id;

	printf("cm: %s%s\n", rdma_event_str(type),
	       id == listener ? " of the listener" : "");
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		request(id);
	else if (type == RDMA_CM_EVENT_ESTABLISHED)
		established(id->context);
	rdma_ack_cm_event(event);
	if (id == listener)
		return;
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		ended(id->context);
	}
}

static void run_server(char *device)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in any = {
		.sin_family = AF_INET, .sin_port = htons(atoi(PORT)),
	};
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;
	pthread_t thread;

	if (!channel || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&any) ||
	    rdma_listen(listener, 16))
		die("listen");
	if (pthread_create(&thread, NULL, watch, device))
		die("thread");
	while (!rdma_get_cm_event(channel, &event))
		handle(event, listener);
	die("cm events");
}

/* ---- the client ---- */

static void fill(char *buf, unsigned int seed)
{
	int i;

	for (i = 0; i < SIZE; i++)
		buf[i] = (seed = seed * 1103515245 + 12345) >> 16;
}

static void forget(int i)
{
	static char true_[] = "/bin/true";
	char *args[] = { true_, NULL };

	if (i % 3 == 1)
		close_range(0, ~0U, 0);
	if (i % 3 == 2)
		execv(true_, args);
	_exit(0);
}

static void fork_one(int i)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		die("fork");
	if (!pid)
		forget(i);
	if (waitpid(pid, &status, 0) != pid || status)
		die("child");
}

static void run_client(const char *address, int count, bool forks)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *found;
	struct rdma_conn_param param = {
		.retry_count = 2, .rnr_retry_count = 7,
	};
	struct connection c = {};
	int i;

	if (rdma_getaddrinfo(address, PORT, &hints, &found) ||
	    rdma_create_ep(&c.id, found, NULL, NULL))
		die("address");
	if (!prepare(&c) || rdma_connect(c.id, &param))
		die("connect");
	for (i = 0; i < count; i++) {
		fill(c.buf, i);
		if (!send_one(&c))
			die("send");
		if (forks && i % 10 == 0)
			fork_one(i / 10);
		if (!receive_one(&c))
			die("receive");
		if (memcmp(c.buf, c.buf + SIZE, SIZE))
			die("other bytes");
		if (rdma_post_recv(c.id, NULL, c.buf + SIZE, SIZE, c.mr))
			die("post");
	}
	rdma_disconnect(c.id);
}

int main(int argc, char **argv)
{
	setlinebuf(stdout);
	alarm(argc >= 4 ? 60 : 0);
	if (argc == 5 && ibv_fork_init())
		die("ibv_fork_init");
	if (argc == 2)
		run_server(argv[1]);
	else if (argc == 4 || argc == 5)
		run_client(argv[2], atoi(argv[3]), argc == 5);
	else
		return 2;
	return 0;
}
