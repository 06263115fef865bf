/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libarx: the rdma-core provider of arx.ko. The contract with the kernel is
 * rdma/arx-abi.h. Documentation/abi.rst has the order of memory accesses on the
 * mapped rings; comments A to F name the pairs of that table.
 *
 * When the device is removed, the rings stay mapped and unchanged, with
 * ARX_RING_GONE in their flags: polls and posts then fail with EIO. libarx also
 * survives zeros in their place: it must not crash, spin or report a completion
 * then. So libarx keeps the indices that it advances in private memory,
 * compares every distance with the ring's size, and accepts a CQE only if its
 * QPN, read last, is not zero.
 */
#ifndef ARX_H
#define ARX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <rdma/arx-abi.h>
#include <util/compiler.h>

#define ARX_CACHE_LINE	64

/* Payload of an ATOMIC WRITE. */
#define ARX_ATOMIC_WRITE_LEN	8

struct arx_cq;
struct arx_qp;

/**
 * struct arx_lock - a spinlock that can be disabled
 * @spin: the lock
 * @needed: false in a thread domain: the application serialises
 */
struct arx_lock {
	pthread_spinlock_t spin;
	bool needed;
};

static inline void arx_lock_init(struct arx_lock *lock, bool needed)
{
	pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
	lock->needed = needed;
}

static inline void arx_lock_destroy(struct arx_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void arx_lock(struct arx_lock *lock)
{
	if (lock->needed)
		pthread_spin_lock(&lock->spin);
}

static inline void arx_unlock(struct arx_lock *lock)
{
	if (lock->needed)
		pthread_spin_unlock(&lock->spin);
}

/**
 * struct arx_ring - a mapped ring
 * @hdr: shared head, NULL if there is no ring
 * @entries: first entry
 * @count: entries, a power of two; 0 if there is no ring, which then is full
 * @mask: @count - 1
 * @stride: bytes from entry to entry
 * @size: bytes mapped
 */
struct arx_ring {
	struct arx_ring_hdr *hdr;
	void *entries;
	uint32_t count;
	uint32_t mask;
	uint32_t stride;
	size_t size;
};

static inline void *arx_ring_entry(const struct arx_ring *ring, uint32_t index)
{
	return ring->entries + (size_t)(index & ring->mask) * ring->stride;
}

static inline uint32_t arx_load_acquire(const uint32_t *word)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)word,
				    memory_order_acquire);
}

static inline uint32_t arx_load_relaxed(const uint32_t *word)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)word,
				    memory_order_relaxed);
}

static inline void arx_store_release(uint32_t *word, uint32_t value)
{
	atomic_store_explicit((_Atomic(uint32_t) *)word, value,
			      memory_order_release);
}

static inline void arx_full_barrier(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

/**
 * struct arx_context - an open device
 * @vctx: the core's part
 * @doorbell: file descriptor that takes ARX_IOCTL_KICK
 * @qp_mutex: creation and destruction of QPs: writers of arx_cq.qps; taken
 *	after arx_cq.lock
 */
struct arx_context {
	struct verbs_context vctx;
	int doorbell;
	pthread_mutex_t qp_mutex;
};

/**
 * struct arx_td - thread domain: the application uses its objects in one thread
 *	at a time
 * @ibtd: the core's part
 * @refs: parent domains that use it
 */
struct arx_td {
	struct ibv_td ibtd;
	atomic_int refs;
};

/**
 * struct arx_pd - protection domain, or a parent domain around one
 * @ibpd: the core's part
 * @refs: parent domains around this one; of a parent domain: its objects
 * @inner: parent domain: the protection domain inside; else NULL
 * @td: parent domain: its thread domain, or NULL
 */
struct arx_pd {
	struct ibv_pd ibpd;
	atomic_int refs;
	struct arx_pd *inner;
	struct arx_td *td;
};

/**
 * struct arx_ah - address handle
 * @ibah: the core's part
 * @id: its number in a WQE
 */
struct arx_ah {
	struct ibv_ah ibah;
	uint32_t id;
};

/**
 * struct arx_qp_slot - a slot of a QP table
 * @qpn: key; 0 is free, ARX_QPN_GONE was removed
 * @qp: valid for a reader that has read its key
 */
struct arx_qp_slot {
	uint32_t qpn;
	struct arx_qp *qp;
};

/**
 * struct arx_qp_table - QPs that send through a CQ, by QPN: open addressing
 * @mask: slots - 1
 * @live: QPs in the table
 * @used: slots that are not free: @live and removed QPs
 * @older: the table that this one replaced. A poller may be reading it, so it
 *	is freed under the CQ's lock, when a QP is removed. (A CQ without a lock
 *	is not polled meanwhile.)
 * @slot: at most half of them used
 */
struct arx_qp_table {
	uint32_t mask;
	uint32_t live;
	uint32_t used;
	struct arx_qp_table *older;
	struct arx_qp_slot slot[];
};

/* places of a CQ for QPs with a deferred doorbell */
#define ARX_DEFERRED	64

/**
 * struct arx_deferred - QPs that have posted sends without a kick
 * @places: which of @qpn are in use, a bit each. A bit is set after its number,
 *	so that no number is forgotten.
 * @last: the place that was kicked for last. Threads that kick at the same time
 *	may overwrite each other's value, which only changes the order.
 * @qpn: their numbers, or 0
 */
struct arx_deferred {
	_Atomic(uint64_t) places;
	_Atomic(unsigned int) last;
	_Atomic(uint32_t) qpn[ARX_DEFERRED];
};

/**
 * struct arx_asked - requests for an event whose events may still be read
 * @requests: number of requests, and 2 for more
 * @any: how many events must be read until a request for an event at any
 *	completion has had its event
 */
struct arx_asked {
	uint16_t requests;
	uint16_t any;
};

/**
 * struct arx_cq - completion queue
 * @vcq: the core's part
 * @ring: CQEs
 * @resize_mutex: serialises the steps of a resize; taken before @lock
 * @lock: protects polling and all fields below
 * @cons: index of the next CQE to take; the ring's cons is its copy
 * @doorbell: arx_context.doorbell
 * @refs: the application, each QP for its send and for its receive CQ, and each
 *	XRC SRQ, until libarx has removed their CQEs; not protected by @lock
 * @qps: QPs whose send queues are retired by CQEs of this CQ; written under
 *	arx_context.qp_mutex
 * @cur: extended polling: copy of the CQE that the application reads
 * @wallclock: extended polling: CLOCK_REALTIME - CLOCK_MONOTONIC in ns, read
 *	once a batch; 0: not yet
 * @place: in @deferred for the next QP; written under arx_context.qp_mutex
 * @deferred: written by threads that post; apart from fields that pollers write
 * @arm_lock: protects arming, which an application may do while it polls; taken
 *	inside @lock when the ring changes
 * @asked: changed by compare and exchange: the thread that reads events is
 *	often another than the one that arms, also if the CQ needs no locks
 * @parent: parent domain in which it was created, or NULL
 */
struct arx_cq {
	struct verbs_cq vcq;
	struct arx_ring ring;
	pthread_mutex_t resize_mutex;
	struct arx_lock lock;
	uint32_t cons;
	int doorbell;
	atomic_int refs;
	_Atomic(struct arx_qp_table *) qps;
	struct arx_cqe cur;
	uint64_t wallclock;
	uint32_t place;
	struct arx_deferred deferred;
	struct arx_lock arm_lock;
	_Atomic(struct arx_asked) asked;
	struct ibv_pd *parent;
};

/**
 * struct arx_rq - receive queue of a QP or SRQ
 * @ring: struct arx_recv_wqe entries
 * @max_sge: SGEs of a WQE
 * @lock: protects the fields below
 * @head: index of the next WQE to write; the ring's prod is its copy
 * @cons: the ring's cons when last read
 */
struct arx_rq {
	struct arx_ring ring;
	uint32_t max_sge;
	struct arx_lock lock;
	uint32_t head;
	uint32_t cons;
};

/**
 * struct arx_srq - shared receive queue
 * @vsrq: the core's part
 * @rq: the queue
 * @resize_mutex: serialises the steps of a resize; taken before rq.lock
 * @srqn: its number
 * @cq: CQ of an XRC SRQ; else NULL
 * @pd: the PD or parent domain in which it was created
 */
struct arx_srq {
	struct verbs_srq vsrq;
	struct arx_rq rq;
	pthread_mutex_t resize_mutex;
	uint32_t srqn;
	struct arx_cq *cq;
	struct ibv_pd *pd;
};

/**
 * struct arx_sq - send queue of a QP
 * @ring: struct arx_send_wqe entries
 * @max_sge: SGEs of a WQE
 * @max_inline: bytes of inline data of a WQE
 * @ops: bit n is set if opcode n can be posted on this type of QP
 * @signal: send flags added to every WQE
 * @lock: protects the fields below; held from wr_start to wr_complete or
 *	wr_abort
 * @head: index of the next WQE to write; the ring's prod is its copy
 * @seen_tail: @tail when last read
 * @wr_head: ibv_wr_*: @head, counting WQEs not published yet
 * @wr_err: ibv_wr_*: first error since wr_start
 * @wqe: ibv_wr_*: the WQE being built; @scratch after an error
 * @scratch: a WQE that is never sent, so that setters need not check @wr_err
 * @tail: oldest WQE not retired; written by pollers of the send CQ
 */
struct arx_sq {
	struct arx_ring ring;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t ops;
	uint16_t signal;
	struct arx_lock lock;
	uint32_t head;
	uint32_t seen_tail;
	uint32_t wr_head;
	int wr_err;
	struct arx_send_wqe *wqe;
	void *scratch;
	_Alignas(ARX_CACHE_LINE) uint32_t tail;
};

/**
 * struct arx_qp - queue pair
 * @vqp: the core's part
 * @doorbell: arx_context.doorbell
 * @place: in arx_cq.deferred of its send CQ
 * @recv_place: in arx_cq.deferred of its receive CQ, if that is another one
 * @sq: send queue; without a ring for a QP that receives by XRC
 * @rq: receive queue; without a ring if the QP uses an SRQ or is of XRC
 */
struct arx_qp {
	struct verbs_qp vqp;
	int doorbell;
	uint32_t place;
	uint32_t recv_place;
	struct arx_sq sq;
	_Alignas(ARX_CACHE_LINE) struct arx_rq rq;
};

/**
 * struct arx_dm - device memory, mapped
 * @vdm: the core's part
 * @map: the memory
 * @size: bytes mapped
 * @length: bytes of the memory
 */
struct arx_dm {
	struct verbs_dm vdm;
	void *map;
	size_t size;
	size_t length;
};

static inline struct arx_context *to_arx_context(struct ibv_context *ibctx)
{
	return container_of(ibctx, struct arx_context, vctx.context);
}

static inline struct arx_td *to_arx_td(struct ibv_td *ibtd)
{
	return container_of(ibtd, struct arx_td, ibtd);
}

static inline struct arx_pd *to_arx_pd(struct ibv_pd *ibpd)
{
	return container_of(ibpd, struct arx_pd, ibpd);
}

static inline struct arx_dm *to_arx_dm(struct ibv_dm *ibdm)
{
	return container_of(ibdm, struct arx_dm, vdm.dm);
}

static inline struct arx_ah *to_arx_ah(struct ibv_ah *ibah)
{
	return container_of(ibah, struct arx_ah, ibah);
}

static inline struct arx_cq *to_arx_cq(struct ibv_cq *ibcq)
{
	return container_of(ibcq, struct arx_cq, vcq.cq);
}

static inline struct arx_cq *to_arx_cq_ex(struct ibv_cq_ex *ibcqx)
{
	return container_of(ibcqx, struct arx_cq, vcq.cq_ex);
}

static inline struct arx_srq *to_arx_srq(struct ibv_srq *ibsrq)
{
	return container_of(ibsrq, struct arx_srq, vsrq.srq);
}

static inline struct arx_qp *to_arx_qp(struct ibv_qp *ibqp)
{
	return container_of(ibqp, struct arx_qp, vqp.qp);
}

static inline struct arx_qp *to_arx_qp_ex(struct ibv_qp_ex *ibqpx)
{
	return container_of(ibqpx, struct arx_qp, vqp.qp_ex);
}

/* verbs.c: control verbs, all of them system calls */
int arx_query_device_ex(struct ibv_context *ibctx,
			const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t attr_size);
int arx_query_port(struct ibv_context *ibctx, uint8_t port,
		   struct ibv_port_attr *attr);
int arx_query_rt_values(struct ibv_context *ibctx,
			struct ibv_values_ex *values);
struct ibv_pd *arx_alloc_pd(struct ibv_context *ibctx);
int arx_dealloc_pd(struct ibv_pd *ibpd);
struct ibv_pd *arx_import_pd(struct ibv_context *ibctx, uint32_t handle);
void arx_unimport_pd(struct ibv_pd *ibpd);
struct ibv_xrcd *arx_open_xrcd(struct ibv_context *ibctx,
			       struct ibv_xrcd_init_attr *attr);
int arx_close_xrcd(struct ibv_xrcd *ibxrcd);
struct ibv_td *arx_alloc_td(struct ibv_context *ibctx,
			    struct ibv_td_init_attr *attr);
int arx_dealloc_td(struct ibv_td *ibtd);
struct ibv_pd *
arx_alloc_parent_domain(struct ibv_context *ibctx,
			struct ibv_parent_domain_init_attr *attr);
struct ibv_mr *arx_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length,
			  uint64_t iova, int access);
struct ibv_mr *arx_reg_dmabuf_mr(struct ibv_pd *ibpd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access);
int arx_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd,
		 void *addr, size_t length, int access);
int arx_dereg_mr(struct verbs_mr *vmr);
struct ibv_mr *arx_import_mr(struct ibv_pd *ibpd, uint32_t handle);
void arx_unimport_mr(struct ibv_mr *ibmr);
struct ibv_mw *arx_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type);
int arx_dealloc_mw(struct ibv_mw *ibmw);
struct ibv_dm *arx_alloc_dm(struct ibv_context *ibctx,
			    struct ibv_alloc_dm_attr *attr);
int arx_free_dm(struct ibv_dm *ibdm);
struct ibv_dm *arx_import_dm(struct ibv_context *ibctx, uint32_t handle);
void arx_unimport_dm(struct ibv_dm *ibdm);
struct ibv_mr *arx_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm,
			     uint64_t offset, size_t length,
			     unsigned int access);
struct ibv_ah *arx_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr);
int arx_destroy_ah(struct ibv_ah *ibah);
struct ibv_cq *arx_create_cq(struct ibv_context *ibctx, int cqe,
			     struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *arx_create_cq_ex(struct ibv_context *ibctx,
				   struct ibv_cq_init_attr_ex *attr);
int arx_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
int arx_resize_cq(struct ibv_cq *ibcq, int cqe);
int arx_destroy_cq(struct ibv_cq *ibcq);
struct ibv_srq *arx_create_srq(struct ibv_pd *ibpd,
			       struct ibv_srq_init_attr *attr);
struct ibv_srq *arx_create_srq_ex(struct ibv_context *ibctx,
				  struct ibv_srq_init_attr_ex *attr);
int arx_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask);
int arx_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int arx_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srqn);
int arx_destroy_srq(struct ibv_srq *ibsrq);
struct ibv_qp *arx_create_qp(struct ibv_pd *ibpd,
			     struct ibv_qp_init_attr *attr);
struct ibv_qp *arx_create_qp_ex(struct ibv_context *ibctx,
				struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *arx_open_qp(struct ibv_context *ibctx,
			   struct ibv_qp_open_attr *attr);
int arx_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr);
int arx_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask);
int arx_destroy_qp(struct ibv_qp *ibqp);

/* post.c: work requests; the only system call is the kick */
uint32_t arx_send_ops(enum ibv_qp_type type);
int arx_kick(int doorbell, uint32_t qpn);
int arx_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		  struct ibv_send_wr **bad);
int arx_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *ibmw,
		struct ibv_mw_bind *bind);
int arx_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad);
int arx_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad);
int arx_set_wr_ops(struct arx_qp *qp, uint64_t send_ops);

/* poll.c: completions; the only system call is a deferred kick */
int arx_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc);
int arx_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
void arx_cq_event(struct ibv_cq *ibcq);
int arx_set_poll_ops(struct arx_cq *cq, uint64_t wc_flags);
int arx_cq_add_qp(struct arx_cq *cq, struct arx_qp *qp);
uint32_t arx_cq_place(struct arx_cq *cq);
void arx_cq_remove_qp(struct arx_cq *cq, struct arx_qp *qp);
void arx_cq_clean(struct arx_cq *cq, uint32_t qpn);
void arx_cq_clean_srq(struct arx_cq *cq, uint32_t srqn);
void arx_cq_free_qps(struct arx_cq *cq);

#endif /* ARX_H */
