/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * hostile: what a program or a peer with bad intentions does. None of it may do
 * more than fail; whether others notice is for the script to watch.
 *
 *	hostile.c	the choice, and objects to be abused
 *	verbs.c		verbs with arguments out of range
 *	errors.c	the errno of refused verbs, and what queries say
 *	raw.c		uverbs commands of random bytes, past libibverbs
 *	rings.c		the process's own rings overwritten
 *	threads.c	threads that call random verbs on the same objects
 *	faults.c	verbs in which an allocation fails
 *	exhaust.c	as many objects as there may be
 *	packets.c	UDP packets for port 4791, random and malformed
 *	pages.c		a read-only file, sent to a receiver that writes
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define NUM_QPS		8
#define MEM		65536
#define QKEY		0x11223344

/* Enough objects that a random handle often hits one of them. */
struct objects {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_mr *paged;	/* the same memory, paged on demand */
	struct ibv_mw *mw[2];	/* of both types */
	struct ibv_qp *qp[NUM_QPS];
	struct ibv_xrcd *xrcd;
	struct ibv_srq *xrc_srq;
	uint32_t xrc_srqn;
	struct ibv_qp *xrc[2];	/* initiator and target */
	union ibv_gid gid;
	int gid_index;
	enum ibv_mtu mtu;	/* of paths */
	uint8_t timeout;	/* of QPs, as in struct ibv_qp_attr */
	uint8_t *mem;
};

uint64_t random64(void);
void random_seed(uint64_t seed);
static inline uint32_t below(uint32_t n) { return random64() % n; }
void random_bytes(void *to, size_t len);
double now(void);

void die(const char *what);
/* A dma-buf of the system heap, or -1. */
int make_dmabuf(size_t size);
/* v6: the GID, and so the address family, of the QPs */
void make_objects(struct objects *o, const char *device, bool v6);
struct ibv_mr *some_region(const struct objects *o);
/* Take a page from the paged region, at times. */
void lose_page(const struct objects *o);
void make_xrc_objects(struct objects *o);
void connect_qp(struct objects *o, struct ibv_qp *qp, uint32_t dest,
		const union ibv_gid *gid);
void print_result(const char *name);
int verdict(void);	/* for exit() */
void expect(bool good, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void abuse_verbs(struct objects *o);
void expect_errors(struct objects *o);
void kernel_verbs(struct objects *o);
void abuse_commands(struct objects *o, int seconds);
void random_command(struct objects *o);
void abuse_by_threads(struct objects *o, int seconds, bool rudely);
void inject_faults(struct objects *o);
void inject_faults_into_links(const char *netdev, int every);
void exhaust(struct objects *o, const char *kind, unsigned int most);
void abuse_rings(struct objects *o, int seconds);
void break_srq(struct objects *o);
void be_a_victim(struct objects *o, const char *attacker);
void send_file(struct objects *o, const char *to, const char *file,
	       uint32_t len);
void be_a_member(struct objects *o, const char *group);
int send_packets(const char *from, const char *to, uint32_t count);

#endif
