// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * rma PROVIDER DOMAIN ADDRESS		a server on ADDRESS, TCP port 18650
 * rma PROVIDER DOMAIN ADDRESS SERVER	its client
 *
 * libfabric's one-sided operations between two endpoints of kind RDM. Each side
 * writes into the region of the other side and reads what it wrote: fi_write,
 * fi_writedata, whose immediate the other side gets, and fi_read. Each byte is
 * checked, also those that no operation may change.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT	18650
#define MOST	(1 << 20)	/* bytes of an operation */
#define MARGIN	4096		/* bytes that must not change, at both ends */
#define ROUNDS	4
#define NAME_LEN 128

/* What the two sides tell each other by TCP. */
struct side {
	uint8_t name[NAME_LEN];
	uint64_t region, key;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;
static struct fid_mr *mr;
/* The region that the peer writes; what is written; what was read */
static uint8_t memory[3][MOST + 2 * MARGIN] __attribute__((aligned(4096)));
static fi_addr_t peer;
static struct side other;
static int sock;
/* Completions of own operations, and immediates of the peer */
static unsigned int completed, immediates;
static uint64_t immediate;

static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* A call of libfabric: 0 or a negative errno */
static void done(ssize_t ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

/* Connections of the provider move on only while somebody polls. */
static void poll_cq(void)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = {};
	ssize_t ret = fi_cq_read(cq, &entry, 1);

	if (ret == -FI_EAGAIN)
		return;
	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &err, 0) == 1)
		done(-err.err, "a completion");
	if (ret < 0)
		done(ret, "fi_cq_read");
	if (entry.flags & FI_REMOTE_CQ_DATA) {
		immediate = entry.data;
		immediates++;
	} else {
		completed++;
	}
}

static void exchange(const void *mine, void *theirs, size_t len)
{
	size_t got = 0;
	ssize_t ret;

	need(send(sock, mine, len, MSG_NOSIGNAL) == (ssize_t)len, "send");
	while (got < len) {
		ret = recv(sock, (char *)theirs + got, len - got, MSG_DONTWAIT);
		need(ret > 0 || (ret < 0 && errno == EAGAIN), "recv");
		if (ret > 0)
			got += ret;
		else if (cq)
			poll_cq();
	}
}

/* Both sides are here. */
static void meet(uint32_t round)
{
	uint32_t theirs;

	exchange(&round, &theirs, sizeof(round));
	need(theirs == round, "the other side is elsewhere");
}

static void connect_tcp(const char *mine, const char *server)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(PORT),
	};
	int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);

	need(s >= 0, "socket");
	need(inet_pton(AF_INET, server ?: mine, &to.sin_addr) == 1, "address");
	if (server) {
		need(!connect(s, (struct sockaddr *)&to, sizeof(to)),
		     "connect");
		sock = s;
		return;
	}
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	need(!bind(s, (struct sockaddr *)&to, sizeof(to)) && !listen(s, 1),
	     "listen");
	sock = accept(s, NULL, NULL);
	need(sock >= 0, "accept");
	close(s);
}

static void open_domain(char **argv)
{
	struct fi_info *hints = fi_allocinfo();

	need(hints != NULL, "fi_allocinfo");
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup(argv[1]);
	hints->domain_attr->name = strdup(argv[2]);
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	done(fi_getinfo(FI_VERSION(1, 21), argv[3], NULL, FI_SOURCE, hints,
			&info), "fi_getinfo");
	fi_freeinfo(hints);
	printf("%s, %s\n", info->fabric_attr->prov_name,
	       info->domain_attr->name);
	done(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	done(fi_domain(fabric, info, &domain, NULL), "fi_domain");
}

static void open_endpoint(void)
{
	struct fi_cq_attr cq_attr = {
		.size = 64, .format = FI_CQ_FORMAT_DATA,
		.wait_obj = FI_WAIT_NONE,
	};
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE, .count = 1 };

	done(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	done(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	done(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	done(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind of the addresses");
	done(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV),
	     "fi_ep_bind of the CQ");
	done(fi_enable(ep), "fi_enable");
}

static void introduce(void)
{
	struct side mine = {};
	size_t len = sizeof(mine.name);

	done(fi_mr_reg(domain, memory, sizeof(memory),
		       FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE,
		       0, 1, 0, &mr, NULL), "fi_mr_reg");
	done(fi_getname(&ep->fid, mine.name, &len), "fi_getname");
	mine.key = fi_mr_key(mr);
	if (info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		mine.region = (uintptr_t)memory;
	exchange(&mine, &other, sizeof(mine));
	need(fi_av_insert(av, other.name, 1, &peer, 0, NULL) == 1,
	     "fi_av_insert");
}

/* An operation is repeated while the provider connects or has no room. */
#define post(call, what) do {						\
	ssize_t ret_;							\
									\
	while ((ret_ = (call)) == -FI_EAGAIN)				\
		poll_cq();						\
	done(ret_, what);						\
} while (0)

static void complete(unsigned int count)
{
	while (completed < count)
		poll_cq();
}

/* The byte at @at that side @side, 0 or 1, writes in a round */
static uint8_t byte(unsigned int side, uint32_t round, size_t at)
{
	return (uint8_t)(1 + (at * 7 + round * 31 + side * 101) % 255);
}

static void check(const uint8_t *bytes, unsigned int side, uint32_t round,
		  size_t from, size_t len)
{
	uint8_t want;
	size_t i;

	for (i = 0; i < sizeof(memory[0]); i++) {
		want = i < from || i >= from + len ? 0 : byte(side, round, i);
		if (bytes[i] == want)
			continue;
		fprintf(stderr, "%zu bytes from %zu: byte %zu is %u, not %u\n",
			len, from, i, bytes[i], want);
		exit(1);
	}
}

/*
 * One round: @len bytes are written into the peer's region from @from on, and
 * read back. Odd rounds end with an immediate.
 */
static void round_of(unsigned int me, uint32_t round, size_t from, size_t len)
{
	uint64_t to = other.region + from, was = completed, seen = immediates;
	void *desc = fi_mr_desc(mr);
	size_t i;

	memset(memory, 0, sizeof(memory));
	for (i = from; i < from + len; i++)
		memory[1][i] = byte(me, round, i);
	meet(round);
	if (round & 1)
		post(fi_writedata(ep, memory[1] + from, len, desc, round, peer,
				  to, other.key, NULL), "fi_writedata");
	else
		post(fi_write(ep, memory[1] + from, len, desc, peer, to,
			      other.key, NULL), "fi_write");
	complete(was + 1);
	post(fi_read(ep, memory[2] + from, len, desc, peer, to, other.key,
		     NULL), "fi_read");
	complete(was + 2);
	while ((round & 1) && immediates == seen)
		poll_cq();
	need(!(round & 1) || immediate == round, "a wrong immediate");
	check(memory[2], me, round, from, len);
	meet(round);
	check(memory[0], !me, round, from, len);
}

int main(int argc, char **argv)
{
	static const size_t lens[] = { 1, 100, 1024, 4097, 65536, MOST };
	uint32_t round = 0;
	size_t i;
	int n;

	need(argc == 4 || argc == 5, "rma PROVIDER DOMAIN ADDRESS [SERVER]");
	open_domain(argv);
	connect_tcp(argv[3], argv[4]);
	open_endpoint();
	introduce();
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (n = 0; n < ROUNDS; n++, round++)
			round_of(argc == 5, round, MARGIN - round * 13,
				 lens[i]);
	/* The peer may still need answers. */
	meet(round);
	done(fi_close(&ep->fid), "fi_close of the endpoint");
	done(fi_close(&mr->fid), "fi_close of the region");
	done(fi_close(&av->fid), "fi_close of the addresses");
	done(fi_close(&cq->fid), "fi_close of the CQ");
	done(fi_close(&domain->fid), "fi_close of the domain");
	done(fi_close(&fabric->fid), "fi_close of the fabric");
	fi_freeinfo(info);
	printf("%u rounds\n", round);
	return 0;
}
