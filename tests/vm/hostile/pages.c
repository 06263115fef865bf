// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sends a file that this process may only read from the page cache, to a peer
 * that does not exist. Receivers of the packets must not write to their pages.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hostile.h"

static union ibv_gid mapped_gid(const char *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff } };

	if (inet_pton(AF_INET, address, gid.raw + 12) != 1)
		die(address);
	return gid;
}

void send_file(struct objects *o, const char *to, const char *file,
	       uint32_t len)
{
	union ibv_gid gid = mapped_gid(to);
	struct ibv_send_wr wr = {
		.num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_sge sge = { .length = len };
	int fd = open(file, O_RDONLY);
	struct ibv_wc wc = {};
	struct ibv_mr *mr;
	double end;
	void *p;

	p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || p == MAP_FAILED)
		die(file);
	mr = ibv_reg_mr(o->pd, p, len, 0);
	if (!mr)
		die("ibv_reg_mr");
	o->mtu = IBV_MTU_4096;
	connect_qp(o, o->qp[0], 0x123456, &gid);
	sge.addr = (uintptr_t)p;
	sge.lkey = mr->lkey;
	wr.sg_list = &sge;
	if (ibv_post_send(o->qp[0], &wr, &bad))
		die("ibv_post_send");
	for (end = now() + 10; !ibv_poll_cq(o->cq, 1, &wc) && now() < end;
	     usleep(1000))
		;
	expect(wc.status == IBV_WC_RETRY_EXC_ERR, "status %d", wc.status);
	print_result("pages");
}
