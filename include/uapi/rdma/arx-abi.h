/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * The contract between arx.ko and libarx. Documentation/abi.rst explains it and
 * has the table of memory barriers.
 *
 * Every queue is a ring in kernel memory that the application maps: a header
 * (struct arx_ring_hdr) and, ARX_RING_ENTRIES_OFFSET bytes in, entries of a
 * fixed stride, whose number is a power of two. Indices run freely over 32 bits
 * and are masked on use; prod == cons means empty. Each index has one writer:
 *
 *	ring	prod		cons
 *	SQ	application	kernel, at a reset only: completions retire
 * slots
 *	RQ/SRQ	application	kernel
 *	CQ	kernel		application
 *
 * A producer writes the entry, then prod with release order; a consumer reads
 * prod with acquire order, then the entry. The kernel does not trust the ring:
 * it copies an entry once and checks the copy.
 *
 * When a QP is reset, the kernel stops reading its SQ and RQ and publishes in
 * cons of each the index where it will continue; once the command has returned,
 * the application sets prod to the same index. CQEs that were not polled stay:
 * the application drops them, as it does when the QP is destroyed.
 *
 * A CQ or SRQ is resized in two steps (enum arx_resize_step). The first makes a
 * new ring, which the application maps. From then to the end of the second step
 * the application does not poll, arm or post. It writes its part to the new
 * ring: cons of a CQ; the entries in [cons, prod) and prod of an SRQ. The
 * second step makes the kernel continue in the new ring with its own index
 * unchanged, and with arm of the old ring. After the second step the
 * application copies the CQEs in [cons, prod) of the old ring to the new one.
 * If a step fails, the queue is unchanged.
 *
 * When the device is removed, mapped rings stay with the application unchanged,
 * except that flags are ARX_RING_GONE and nothing else.
 */
#ifndef ARX_ABI_H
#define ARX_ABI_H

#include <linux/types.h>
#include <linux/ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#define ARX_ABI_VERSION		1

/* Private driver id: enum rdma_driver_id has none for arx yet. ASCII "arx". */
#define ARX_DRIVER_ID		0x00617278

#define ARX_RING_ENTRIES_OFFSET	256
#define ARX_WQE_ALIGN		64

/* struct arx_ring_hdr.flags, written by the kernel. */
enum arx_ring_flags {
	/*
	 * SQ: the kernel polls prod without a kick. If the flag is clear, as it
	 * is when the device has been removed: kick.
	 */
	ARX_RING_NO_KICK	= 1 << 0,
	/* RQ: kick after posting (the QP is flushing). */
	ARX_RING_KICK_RECV	= 1 << 1,
	/* Any ring: the kernel does not use it any more; no entry will come. */
	ARX_RING_GONE		= 1 << 2,
};

/* CQ: struct arx_ring_hdr.arm, written by the application. */
#define ARX_CQ_ARM_SOLICITED	1u	/* solicited completions, errors */
/* added by each request; a new value arms again */
#define ARX_CQ_ARM_SEQ		2u

/**
 * struct arx_ring_hdr - head of a mapped ring; one cache line a writer
 * @prod: index of the next entry to be written
 * @reserved_20: 0
 * @cons: index of the next entry to be taken
 * @reserved_220: 0
 * @flags: enum arx_ring_flags, written by the kernel
 * @reserved_420: 0
 * @arm: CQ only: sequence and kind of the last notification request
 * @reserved_620: 0
 */
struct arx_ring_hdr {
	__u32 prod;
	__u32 reserved_20[15];
	__u32 cons;
	__u32 reserved_220[15];
	__u32 flags;
	__u32 reserved_420[15];
	__u32 arm;
	__u32 reserved_620[15];
};

struct arx_sge {
	__u64 addr;
	__u32 length;
	__u32 lkey;
};

/**
 * struct arx_send_wqe - a send work request
 * @wr_id: returned in the completion
 * @opcode: enum ib_uverbs_wr_opcode
 * @num_sge: entries of struct arx_sge after this head; 0 with inline data
 * @flags: enum ib_uverbs_send_flags
 * @ex: immediate data (network order), or the rkey to invalidate
 * @inline_len: bytes of inline data after this head, with IB_UVERBS_SEND_INLINE
 * @srqn: XRC: number of the peer's SRQ; else ignored
 * @rdma: WRITE, READ and ATOMIC WRITE, whose payload is 8 bytes
 * @atomic: compare-and-swap (compare_add is the compare), fetch-and-add
 * @flush: FLUSH: enum ib_placement_type, enum ib_selectivity_level; no payload
 * @ud: UD; ah is struct arx_create_ah_resp.ah; pkey_index is not read; av is
 *	for the kernel
 * @bind: memory window; mw_rkey gives its index (>> 8): after a bind of type 2
 *	libibverbs does not keep track of its low byte
 * @reg: kernel consumers only
 * @raw: size of the union
 *
 * The SGEs, or the inline bytes, follow directly.
 */
struct arx_send_wqe {
	__aligned_u64 wr_id;
	__u8 opcode;
	__u8 num_sge;
	__u16 flags;
	__u32 ex;
	__u32 inline_len;
	__u32 srqn;
	union {
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 reserved_60;
		} rdma;
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 reserved_60;
			__aligned_u64 compare_add;
			__aligned_u64 swap;
		} atomic;
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 length;
			__u32 placement;
			__u32 selectivity;
		} flush;
		struct {
			__u32 qpn;
			__u32 qkey;
			__u32 ah;
			__u32 pkey_index;
			__aligned_u64 av;
		} ud;
		struct {
			__aligned_u64 addr;
			__aligned_u64 length;
			__u32 mr_lkey;
			__u32 mw_rkey;
			__u32 new_rkey;
			__u32 access;
		} bind;
		struct {
			__aligned_u64 mr;
			__u32 key;
			__u32 access;
		} reg;
		__u8 raw[40];
	};
};

/**
 * struct arx_recv_wqe - a receive work request; the SGEs follow directly
 * @wr_id: returned in the completion
 * @num_sge: number of SGEs
 * @reserved_60: 0
 */
struct arx_recv_wqe {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved_60;
};

/**
 * struct arx_cqe - a completion
 * @wr_id: of the work request
 * @timestamp: CLOCK_MONOTONIC nanoseconds when the completion was written
 * @byte_len: bytes received, read or fetched
 * @qpn: QP of the work request; never 0
 * @ex: immediate data (network order), or the rkey that was invalidated
 * @src_qp: UD: the sender's QPN
 * @sq_index: send completions: the SQ index after the retired work request;
 *	receives of an XRC SRQ: its number
 * @wc_flags: enum ibv_wc_flags bits: 1 GRH, 2 immediate, 8 invalidate (as in
 *	enum ib_wc_flags)
 * @opcode: enum ib_uverbs_wc_opcode; receives: 128 RECV, 129 RECV_RDMA_WITH_IMM
 *	(as in enum ib_wc_opcode and enum ibv_wc_opcode)
 * @status: enum ib_wc_status (the values of enum ibv_wc_status)
 * @vendor_err: the NAK syndrome or errno that caused @status
 * @sl: service level
 * @is_send: a send completion: @sq_index is valid
 * @pkey_index: 0: RoCE has one P_Key
 * @smac: UD: source MAC (kernel consumers)
 * @vlan_id: UD: 0xffff for none
 * @network_hdr_type: UD: enum rdma_network_type
 * @reserved_1c8: 0
 */
struct arx_cqe {
	__aligned_u64 wr_id;
	__aligned_u64 timestamp;
	__u32 byte_len;
	__u32 qpn;
	__u32 ex;
	__u32 src_qp;
	__u32 sq_index;
	__u16 wc_flags;
	__u8 opcode;
	__u8 status;
	__u32 vendor_err;
	__u8 sl;
	__u8 is_send;
	__u16 pkey_index;
	__u8 smac[6];
	__u16 vlan_id;
	__u8 network_hdr_type;
	__u8 reserved_1c8[7];
};

/* Position and shape of a ring, for mapping it. */
struct arx_ring_info {
	__aligned_u64 offset;	/* for mmap() on the context's command fd */
	__aligned_u64 size;	/* bytes, whole pages */
	__u32 entries;		/* power of two; 0: no such ring */
	__u32 stride;		/* bytes */
};

struct arx_alloc_ucontext_resp {
	__u32 comp_mask;
	__u32 reserved_20;
};

struct arx_create_cq_resp {
	struct arx_ring_info ring;
};

/* The steps of a resize. */
enum arx_resize_step {
	ARX_RESIZE_PREPARE,	/* make a ring, which replaces a prepared one */
	ARX_RESIZE_COMMIT,	/* continue in it, or free it if that fails */
};

struct arx_resize_cq_req {
	__u32 step;		/* enum arx_resize_step */
	__u32 reserved_20;	/* 0 */
};

/* For ARX_RESIZE_PREPARE; all 0 for ARX_RESIZE_COMMIT. */
struct arx_resize_cq_resp {
	struct arx_ring_info ring;
};

struct arx_create_qp_resp {
	struct arx_ring_info sq;
	struct arx_ring_info rq;
};

struct arx_create_srq_resp {
	struct arx_ring_info ring;
	__u32 srqn;
	__u32 reserved_e0;
};

/*
 * Request to change the size of an SRQ. The command has no response: for
 * ARX_RESIZE_PREPARE the kernel writes to resp_addr.
 */
struct arx_modify_srq_req {
	__aligned_u64 resp_addr;	/* address of a struct arx_ring_info */
	__u32 step;			/* enum arx_resize_step */
	__u32 reserved_60;		/* 0 */
};

struct arx_create_ah_resp {
	__u32 ah;
	__u32 reserved_20;
};

/* The doorbell: a file descriptor object of the context. */
enum arx_ib_objects {
	ARX_OBJECT_DOORBELL = (1U << UVERBS_ID_NS_SHIFT),
};

enum arx_doorbell_methods {
	ARX_METHOD_DOORBELL_ALLOC = (1U << UVERBS_ID_NS_SHIFT),
};

enum arx_doorbell_alloc_attrs {
	ARX_ATTR_DOORBELL_ALLOC_FD = (1U << UVERBS_ID_NS_SHIFT),
};

/* Device memory: mapped like a ring, but without entries. */
enum arx_dm_alloc_attrs {
	ARX_ATTR_DM_ALLOC_MAPPING = (1U << UVERBS_ID_NS_SHIFT),
};

enum arx_dm_methods {
	ARX_METHOD_DM_QUERY = (1U << UVERBS_ID_NS_SHIFT),
};

enum arx_dm_query_attrs {
	ARX_ATTR_DM_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	ARX_ATTR_DM_QUERY_MAPPING,
	ARX_ATTR_DM_QUERY_LENGTH,
};

/*
 * ioctl on the doorbell: the argument, by value, is the QPN whose rings have
 * new entries (an SRQ needs no kick, because it never flushes). Errors: EIO,
 * the device is gone; EINVAL, no such QP of this context (on removal, QPs are
 * destroyed before the doorbell).
 */
#define ARX_IOCTL_KICK		_IO('x', 1)

#endif /* ARX_ABI_H */
