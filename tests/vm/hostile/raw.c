// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * uverbs commands past libibverbs, by write() and by ioctl(): right in form, so
 * that the kernel parses them, and random in content.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "hostile.h"

#define ARX_DRIVER_ID	0x00617278

static uint8_t answer[65536];

/* Numbers that often have a meaning. */
static uint32_t random_word(struct objects *o)
{
	switch (below(8)) {
	case 0:
		return 0;
	case 1: case 2:
		return below(12);	/* a handle, a count, a state */
	case 3:
		return some_region(o)->lkey;
	case 4:
		return o->qp[below(NUM_QPS)]->qp_num;
	case 5:
		return 1u << below(32);
	case 6:
		return -below(3);
	default:
		return random64();
	}
}

static uint64_t random_address(struct objects *o)
{
	switch (below(6)) {
	case 0:
		return (uintptr_t)o->mem + below(MEM);
	case 1:
		return random64();
	case 2:
		return 0xffff888000000000 + below(1 << 30);
	default:
		return (uintptr_t)answer;
	}
}

static void random_write(struct objects *o)
{
	struct { struct ib_uverbs_cmd_hdr hdr; uint32_t words[64]; } cmd;
	uint64_t address;
	size_t i, words = 2 + below(40);

	cmd.hdr.command = below(10) ? below(45) : random64();
	if (below(3) == 0)
		cmd.hdr.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
	cmd.hdr.in_words = below(10) ? words + 2 : below(100);
	cmd.hdr.out_words = below(64);
	for (i = 0; i < words; i++)
		cmd.words[i] = random_word(o);
	address = random_address(o);
	memcpy(cmd.words, &address, sizeof(address));
	if (write(o->context->cmd_fd, &cmd, sizeof(cmd.hdr) + words * 4) < 0)
		return;
}

static void random_attr(struct objects *o, struct ib_uverbs_attr *attr,
			uint8_t *data)
{
	attr->attr_id = below(8) ? below(24) : 0x1000 + below(8);
	attr->len = below(3) ? 1u << below(7) : below(300);
	attr->flags = below(10) ? UVERBS_ATTR_F_MANDATORY * below(2) :
				  random64();
	attr->attr_data.reserved = below(10) ? 0 : random64();
	if (below(2))
		attr->data = below(3) ? random_word(o) : random_address(o);
	else
		attr->data = (uintptr_t)data + below(1000) * 4;
}

static void random_ioctl(struct objects *o)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[16];
	} cmd = {};
	static uint32_t data[2048];
	size_t i;

	for (i = 0; i < 64; i++)
		data[below(ARRAY_SIZE(data))] = random_word(o);
	cmd.hdr.object_id = below(6) ? below(20) : 0x1000 + below(3);
	cmd.hdr.method_id = below(6) ? below(12) : 0x1000 + below(3);
	cmd.hdr.num_attrs = below(12);
	cmd.hdr.length =
		sizeof(cmd.hdr) + cmd.hdr.num_attrs * sizeof(cmd.attrs[0]);
	cmd.hdr.driver_id = ARX_DRIVER_ID;
	for (i = 0; i < cmd.hdr.num_attrs; i++)
		random_attr(o, &cmd.attrs[i], (uint8_t *)data);
	/*
	 * A second context of one file is refused, but the kernel
	 * (uverbs_std_types_device.c of 7.2) does not drop its reference to our
	 * task, whichever the driver. kmemleak would report that.
	 */
	if (cmd.hdr.object_id == UVERBS_OBJECT_DEVICE &&
	    cmd.hdr.method_id == UVERBS_METHOD_GET_CONTEXT)
		cmd.hdr.method_id = UVERBS_METHOD_QUERY_CONTEXT;
	/* Half of them are old commands under a new head. */
	if (below(2)) {
		cmd.hdr.object_id = UVERBS_OBJECT_DEVICE;
		cmd.hdr.method_id = UVERBS_METHOD_INVOKE_WRITE;
		cmd.attrs[0] = (struct ib_uverbs_attr){
			.attr_id = UVERBS_ATTR_WRITE_CMD, .len = 8, .flags = 1,
			.data = below(45),
		};
	}
	ioctl(o->context->cmd_fd, RDMA_VERBS_IOCTL, &cmd);
}

/*
 * Verbs of kernel consumers that once had a write command: none may touch a
 * queue of an application.
 */
void kernel_verbs(struct objects *o)
{
	const uint32_t qpn = o->qp[0]->handle, cq = o->cq->handle,
		       srq = o->srq->handle;
	struct {
		const char *name;
		uint32_t command, out;
		/* after the response's address, if there is one */
		uint32_t words[6];
		bool response;
	} verbs[] = {
		{ "POLL_CQ", IB_USER_VERBS_CMD_POLL_CQ, 256, { cq, 1 }, true },
		{ "REQ_NOTIFY_CQ",
		  IB_USER_VERBS_CMD_REQ_NOTIFY_CQ,
		  0,
		  { cq, 0 },
		  false },
		{ "POST_SEND",
		  IB_USER_VERBS_CMD_POST_SEND,
		  4,
		  { qpn, 0, 0, sizeof(struct ib_uverbs_send_wr) },
		  true },
		{ "POST_RECV",
		  IB_USER_VERBS_CMD_POST_RECV,
		  4,
		  { qpn, 0, 0, sizeof(struct ib_uverbs_recv_wr) },
		  true },
		{ "POST_SRQ_RECV",
		  IB_USER_VERBS_CMD_POST_SRQ_RECV,
		  4,
		  { srq, 0, 0, sizeof(struct ib_uverbs_recv_wr) },
		  true },
	};
	struct { struct ib_uverbs_cmd_hdr hdr; uint32_t words[8]; } cmd;
	uint64_t response = (uintptr_t)answer;
	size_t i, size;
	ssize_t ret;

	for (i = 0; i < ARRAY_SIZE(verbs); i++) {
		memset(&cmd, 0, sizeof(cmd));
		size = verbs[i].response ? sizeof(response) : 0;
		memcpy(cmd.words, &response, size);
		memcpy((char *)cmd.words + size, verbs[i].words, 16);
		size += verbs[i].command == IB_USER_VERBS_CMD_REQ_NOTIFY_CQ ?
			8 : 16;
		cmd.hdr.command = verbs[i].command;
		cmd.hdr.in_words = (sizeof(cmd.hdr) + size) / 4;
		cmd.hdr.out_words = verbs[i].out / 4;
		errno = 0;
		ret = write(o->context->cmd_fd, &cmd, sizeof(cmd.hdr) + size);
		expect(ret < 0, "command %s is obeyed", verbs[i].name);
		expect(errno == EOPNOTSUPP, "command %s: %s", verbs[i].name,
		       strerror(errno));
	}
}

void random_command(struct objects *o)
{
	if (below(2))
		random_write(o);
	else
		random_ioctl(o);
}

void abuse_commands(struct objects *o, int seconds)
{
	double end = now() + seconds;
	unsigned long count = 0;
	int i;

	/* A command may destroy objects that we use: never check them. */
	while (now() < end)
		for (i = 0; i < 100; i++, count++)
			random_command(o);
	printf("# %lu commands\n", count);
	print_result("commands");
	_exit(0);
}
