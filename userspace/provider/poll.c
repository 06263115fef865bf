// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completions. Polling makes no system call, except to kick for sends that were
 * posted without a kick, when the application has run out of completions.
 *
 * A CQE of a send retires the WQEs up to it. Its slot in the CQ is freed before
 * the slots in the SQ are: otherwise another thread's next request could
 * complete into a CQ that still looks full.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <ccan/minmax.h>

#include "arx.h"

static_assert(sizeof(struct arx_cqe) == 64, "a CQE is one cache line");
static_assert((int)IBV_WC_ATOMIC_WRITE == IB_UVERBS_WC_ATOMIC_WRITE &&
	      (int)IBV_WC_LOCAL_INV == IB_UVERBS_WC_LOCAL_INV,
	      "opcodes are passed as they are");

enum {
	ARX_QPN_GONE	= UINT32_MAX,	/* a QPN has 24 bits */
	ARX_MIN_QPS	= 8,
	ARX_WC_FLAGS	= IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV,
};

/* ------------------------------------------------------------------------ */
/* QPs by number */

static inline struct arx_qp *arx_find_qp(const struct arx_cq *cq, uint32_t qpn)
{
	struct arx_qp_table *table;
	uint32_t i, key;

	table = atomic_load_explicit(&cq->qps, memory_order_acquire);
	if (unlikely(!table))
		return NULL;

	/* QPNs are random and need no hash. Half of the slots are free. */
	for (i = qpn;; i++) {
		key = arx_load_acquire(&table->slot[i & table->mask].qpn);
		if (likely(key == qpn))
			return table->slot[i & table->mask].qp;
		if (!key)
			return NULL;
	}
}

static void arx_table_put(struct arx_qp_table *table, struct arx_qp *qp)
{
	struct arx_qp_slot *slot;
	uint32_t i;

	for (i = qp->vqp.qp.qp_num;; i++) {
		slot = &table->slot[i & table->mask];
		if (!slot->qpn || slot->qpn == ARX_QPN_GONE)
			break;
	}

	table->live++;
	table->used += !slot->qpn;
	slot->qp = qp;
	arx_store_release(&slot->qpn, qp->vqp.qp.qp_num);
}

/* Make a table with room for one more QP, without the slots of removed QPs. */
static struct arx_qp_table *arx_table_renew(struct arx_qp_table *old)
{
	uint32_t live = old ? old->live : 0;
	uint32_t slots = ARX_MIN_QPS;
	struct arx_qp_table *table;
	uint32_t i;

	while (slots < 4 * (live + 1))
		slots *= 2;
	table = calloc(1, sizeof(*table) + slots * sizeof(table->slot[0]));
	if (!table)
		return NULL;

	table->mask = slots - 1;
	table->older = old;
	for (i = 0; old && i <= old->mask; i++)
		if (old->slot[i].qpn && old->slot[i].qpn != ARX_QPN_GONE)
			arx_table_put(table, old->slot[i].qp);
	return table;
}

static void arx_table_free_older(struct arx_qp_table *table)
{
	struct arx_qp_table *older;

	while ((older = table->older)) {
		table->older = older->older;
		free(older);
	}
}

/**
 * arx_cq_add_qp - add a QP whose WQEs the CQEs of this CQ retire, and whose
 *	deferred kicks the CQ remembers
 * @cq: the QP's send CQ
 * @qp: the QP
 *
 * Context: under arx_context.qp_mutex; polling may go on at the same time.
 * Return: 0 or ENOMEM.
 */
int arx_cq_add_qp(struct arx_cq *cq, struct arx_qp *qp)
{
	struct arx_qp_table *table;

	table = atomic_load_explicit(&cq->qps, memory_order_relaxed);
	if (!table || 2 * (table->used + 1) > table->mask + 1) {
		table = arx_table_renew(table);
		if (!table)
			return ENOMEM;
		arx_table_put(table, qp);
		atomic_store_explicit(&cq->qps, table, memory_order_release);
	} else {
		arx_table_put(table, qp);
	}
	qp->place = arx_cq_place(cq);
	return 0;
}

/**
 * arx_cq_place - assign a place in arx_cq.deferred to a QP
 * @cq: its send or receive CQ
 *
 * Context: under arx_context.qp_mutex.
 * Return: the place; QPs share places when there are many.
 */
uint32_t arx_cq_place(struct arx_cq *cq)
{
	return cq->place++ % ARX_DEFERRED;
}

/**
 * arx_cq_remove_qp - undo arx_cq_add_qp()
 * @cq: the QP's send CQ
 * @qp: the QP
 *
 * Context: under arx_cq.lock and, taken after it, arx_context.qp_mutex.
 */
void arx_cq_remove_qp(struct arx_cq *cq, struct arx_qp *qp)
{
	uint32_t qpn = qp->vqp.qp.qp_num;
	struct arx_qp_table *table;
	uint32_t i;

	table = atomic_load_explicit(&cq->qps, memory_order_relaxed);
	for (i = qpn; table->slot[i & table->mask].qpn != qpn; i++)
		if (!table->slot[i & table->mask].qpn)
			return;

	/* A CQ without a lock is not polled meanwhile: arx(7). */
	arx_table_free_older(table);
	table->live--;
	arx_store_release(&table->slot[i & table->mask].qpn, ARX_QPN_GONE);
	table->slot[i & table->mask].qp = NULL;

	/* The last slot of a chain can be freed at once. */
	if (table->slot[(i + 1) & table->mask].qpn)
		return;
	for (; table->slot[i & table->mask].qpn == ARX_QPN_GONE; i--) {
		arx_store_release(&table->slot[i & table->mask].qpn, 0);
		table->used--;
	}
}

/**
 * arx_cq_free_qps - free what arx_cq_add_qp() allocated
 * @cq: a CQ that is being destroyed: no QP uses it
 */
void arx_cq_free_qps(struct arx_cq *cq)
{
	struct arx_qp_table *table;

	table = atomic_load_explicit(&cq->qps, memory_order_relaxed);
	if (table)
		arx_table_free_older(table);
	free(table);
}

/* ------------------------------------------------------------------------ */
/* The ring */

/* More CQEs than fit: the ring has turned to zeros, the device is gone. */
static inline uint32_t arx_cq_pending(const struct arx_cq *cq)
{
	uint32_t n = arx_load_acquire(&cq->ring.hdr->prod) - cq->cons;	/* B */

	return likely(n <= cq->ring.count) ? n : 0;
}

/*
 * True if no CQE is queued and none will come: a removed device leaves its
 * rings behind. The kernel sets the flag after the last CQE, so a CQE that came
 * since the caller looked counts as queued.
 */
static inline bool arx_cq_gone(const struct arx_cq *cq)
{
	return unlikely(arx_load_acquire(&cq->ring.hdr->flags) &
			ARX_RING_GONE) &&
	       !arx_cq_pending(cq);
}

/*
 * True if the CQE existed to the end of the caller's copy. A ring that has
 * turned to zeros stays so: one more check is enough.
 */
static inline bool arx_cqe_real(const struct arx_cqe *cqe)
{
	atomic_thread_fence(memory_order_acquire);
	return arx_load_relaxed(&cqe->qpn);
}

static inline void arx_cq_consume(struct arx_cq *cq, uint32_t cons)
{
	cq->cons = cons;
	arx_store_release(&cq->ring.hdr->cons, cons);			/* D */
}

static inline void arx_retire(struct arx_qp *qp, uint32_t sq_index)
{
	arx_store_release(&qp->sq.tail, sq_index);
}

/* True if no CQE has come. The lock keeps the ring from being replaced. */
static bool arx_cq_empty(struct arx_cq *cq)
{
	bool empty;

	arx_lock(&cq->lock);
	empty = !arx_cq_pending(cq);
	arx_unlock(&cq->lock);
	return empty;
}

/* The place to kick for next: the one after the last, so that none starves. */
static unsigned int arx_deferred_next(struct arx_deferred *deferred,
				      uint64_t places)
{
	unsigned int last = atomic_load_explicit(&deferred->last,
						 memory_order_relaxed);
	uint64_t after = places & (UINT64_MAX << 1 << last);
	unsigned int next = __builtin_ctzll(after ? after : places);

	atomic_store_explicit(&deferred->last, next, memory_order_relaxed);
	return next;
}

static bool arx_cq_kick_place(struct arx_cq *cq, unsigned int place)
{
	uint32_t qpn;

	atomic_fetch_and(&cq->deferred.places, ~(UINT64_C(1) << place));
	qpn = atomic_exchange(&cq->deferred.qpn[place], 0);
	return qpn && !arx_kick(cq->doorbell, qpn);
}

/*
 * Kick for sends that were posted without a kick: for all of them (@all), or
 * until there are completions. The kernel polls the other rings, perhaps on
 * another CPU, while the application polls those completions. Return: true if
 * the CQ may have completions now.
 */
static bool arx_cq_kick_deferred(struct arx_cq *cq, bool all)
{
	uint64_t places = atomic_load_explicit(&cq->deferred.places,
					       memory_order_relaxed);
	bool kicked = false;

	while (places && (all || arx_cq_empty(cq))) {
		unsigned int place = arx_deferred_next(&cq->deferred, places);

		places &= ~(UINT64_C(1) << place);
		kicked |= arx_cq_kick_place(cq, place);
	}
	return kicked || places;
}

/* Called when the CQ is empty or, with @all, armed. */
static inline bool arx_cq_flush_doorbells(struct arx_cq *cq, bool all)
{
	return unlikely(atomic_load_explicit(&cq->deferred.places,
					     memory_order_relaxed)) &&
	       arx_cq_kick_deferred(cq, all);
}

static bool arx_is_of_qp(const struct arx_cqe *cqe, uint32_t qpn)
{
	return cqe->qpn == qpn;
}

/* Receives of queues that are no XRC SRQ have 0, which is no SRQ's number. */
static bool arx_is_of_srq(const struct arx_cqe *cqe, uint32_t srqn)
{
	return !cqe->is_send && cqe->sq_index == srqn;
}

/* Remove CQEs; the others move up, towards prod, in their order. */
static void arx_cq_clean_if(struct arx_cq *cq,
			    bool (*removed)(const struct arx_cqe *cqe,
					    uint32_t nr), uint32_t nr)
{
	uint32_t n = arx_cq_pending(cq);
	uint32_t end = cq->cons + n;
	uint32_t from, to = end;
	struct arx_cqe *cqe;

	for (from = end; n; n--) {
		cqe = arx_ring_entry(&cq->ring, --from);
		if (removed(cqe, nr))
			continue;
		if (--to != from)
			*(struct arx_cqe *)arx_ring_entry(&cq->ring, to) = *cqe;
	}
	if (to != cq->cons)
		arx_cq_consume(cq, to);
}

/**
 * arx_cq_clean - remove the CQEs of a QP
 * @cq: the CQ
 * @qpn: the QP's number; the kernel writes no more CQEs of it
 *
 * Context: under arx_cq.lock.
 */
void arx_cq_clean(struct arx_cq *cq, uint32_t qpn)
{
	arx_cq_clean_if(cq, arx_is_of_qp, qpn);
}

/**
 * arx_cq_clean_srq - remove the CQEs of an XRC SRQ
 * @cq: its CQ
 * @srqn: its number; the kernel writes no more CQEs of it
 *
 * Context: under arx_cq.lock.
 */
void arx_cq_clean_srq(struct arx_cq *cq, uint32_t srqn)
{
	arx_cq_clean_if(cq, arx_is_of_srq, srqn);
}

/* Count a request for an event; return the counts with it. */
static struct arx_asked arx_cq_ask(struct arx_cq *cq, bool any)
{
	struct arx_asked old = atomic_load(&cq->asked), new;

	do {
		new = old;
		if (new.requests < 2)
			new.requests++;
		if (any)
			new.any = new.requests;
	} while (!atomic_compare_exchange_weak(&cq->asked, &old, new));
	return new;
}

/**
 * arx_req_notify_cq - ask for an event at the next completion
 * @ibcq: the CQ
 * @solicited_only: only for a solicited completion or an error
 *
 * A later request for solicited completions does not weaken a request for any
 * completion (11.4.2.2): that request holds until its event has been read. An
 * event does not tell which request it is for: earlier requests may have events
 * that were not read yet, so these are counted first.
 *
 * Context: any thread, also one that polls the CQ.
 * Return: 0.
 */
int arx_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct arx_cq *cq = to_arx_cq(ibcq);
	struct arx_asked asked;
	uint32_t arm;

	arx_lock(&cq->arm_lock);
	asked = arx_cq_ask(cq, !solicited_only);
	arm = arx_load_relaxed(&cq->ring.hdr->arm) & ~ARX_CQ_ARM_SOLICITED;
	arm += ARX_CQ_ARM_SEQ;
	if (!asked.any)
		arm |= ARX_CQ_ARM_SOLICITED;
	arx_store_release(&cq->ring.hdr->arm, arm);
	arx_full_barrier();					/* F */
	arx_unlock(&cq->arm_lock);
	arx_cq_flush_doorbells(cq, true);
	return 0;
}

/**
 * arx_cq_event - the application has read an event of a CQ
 * @ibcq: the CQ
 *
 * Context: any thread, also while another one arms a CQ without locks.
 */
void arx_cq_event(struct ibv_cq *ibcq)
{
	struct arx_cq *cq = to_arx_cq(ibcq);
	struct arx_asked old = atomic_load(&cq->asked), new;

	do {
		new = old;
		if (new.requests)
			new.requests--;
		if (new.any)
			new.any--;
	} while (!atomic_compare_exchange_weak(&cq->asked, &old, new));
}

/* ------------------------------------------------------------------------ */
/* ibv_poll_cq() */

static inline bool arx_cqe_to_wc(const struct arx_cqe *cqe, struct ibv_wc *wc)
{
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->opcode = cqe->opcode;
	wc->vendor_err = cqe->vendor_err;
	wc->byte_len = cqe->byte_len;
	wc->invalidated_rkey = cqe->ex;		/* or imm_data: a union */
	wc->qp_num = cqe->qpn;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = cqe->wc_flags & ARX_WC_FLAGS;
	wc->pkey_index = cqe->pkey_index;
	wc->slid = 0;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = 0;
	return arx_cqe_real(cqe);
}

static int arx_take_some(struct arx_cq *cq, int n, struct ibv_wc *wc)
{
	const struct arx_cqe *cqe;
	struct arx_qp *qp = NULL;
	uint32_t sq_index = 0;
	uint32_t qpn = 0;
	uint32_t cons;
	int i = 0;

	arx_lock(&cq->lock);
	n = min_t(int64_t, n, arx_cq_pending(cq));
	for (cons = cq->cons; i < n; i++, cons++) {
		cqe = arx_ring_entry(&cq->ring, cons);
		if (unlikely(!arx_cqe_to_wc(cqe, &wc[i])))
			break;
		if (!cqe->is_send)
			continue;

		/* Consecutive CQEs of one QP, the common case, retire once. */
		if (wc[i].qp_num != qpn) {
			if (qp) {
				arx_cq_consume(cq, cons);
				arx_retire(qp, sq_index);
			}
			qpn = wc[i].qp_num;
			qp = arx_find_qp(cq, qpn);
		}
		sq_index = cqe->sq_index;
	}
	if (i) {
		arx_cq_consume(cq, cons);
		if (qp)
			arx_retire(qp, sq_index);
	} else if (arx_cq_gone(cq)) {
		i = -EIO;
	}
	arx_unlock(&cq->lock);
	return i;
}

/**
 * arx_poll_cq - poll completions
 * @ibcq: the CQ
 * @n: maximum
 * @wc: room for @n
 *
 * Return: number of completions; -EIO if none is left and the device is gone.
 */
int arx_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct arx_cq *cq = to_arx_cq(ibcq);
	int taken = arx_take_some(cq, n, wc);

	if (!taken && arx_cq_flush_doorbells(cq, false))
		taken = arx_take_some(cq, n, wc);
	return taken;
}

/* ------------------------------------------------------------------------ */
/* Extended polling: ibv_start_poll() and so on */

/*
 * Take the next CQE. The application reads a copy, so that it can at once post
 * into the slots that this CQE retires.
 */
static inline int arx_take(struct arx_cq *cq)
{
	const struct arx_cqe *cqe;
	struct arx_qp *qp;

	if (!arx_cq_pending(cq))
		return arx_cq_gone(cq) ? EIO : ENOENT;

	cqe = arx_ring_entry(&cq->ring, cq->cons);
	cq->cur = *cqe;
	if (unlikely(!arx_cqe_real(cqe)))
		return ENOENT;

	arx_cq_consume(cq, cq->cons + 1);
	if (cq->cur.is_send) {
		qp = arx_find_qp(cq, cq->cur.qpn);
		if (likely(qp))
			arx_retire(qp, cq->cur.sq_index);
	}
	cq->vcq.cq_ex.wr_id = cq->cur.wr_id;
	cq->vcq.cq_ex.status = cq->cur.status;
	return 0;
}

static inline int arx_start(struct arx_cq *cq, struct ibv_poll_cq_attr *attr)
{
	if (unlikely(attr->comp_mask))
		return EINVAL;

	cq->wallclock = 0;
	return arx_take(cq);
}

static int arx_start_locked(struct arx_cq *cq, struct ibv_poll_cq_attr *attr)
{
	int err;

	pthread_spin_lock(&cq->lock.spin);
	err = arx_start(cq, attr);
	if (err)
		pthread_spin_unlock(&cq->lock.spin);
	return err;
}

static int arx_start_poll(struct ibv_cq_ex *ibcqx,
			  struct ibv_poll_cq_attr *attr)
{
	struct arx_cq *cq = to_arx_cq_ex(ibcqx);
	int err = arx_start_locked(cq, attr);

	if (err == ENOENT && arx_cq_flush_doorbells(cq, false))
		err = arx_start_locked(cq, attr);
	return err;
}

static void arx_end_poll(struct ibv_cq_ex *ibcqx)
{
	pthread_spin_unlock(&to_arx_cq_ex(ibcqx)->lock.spin);
}

static int arx_start_poll_single(struct ibv_cq_ex *ibcqx,
				 struct ibv_poll_cq_attr *attr)
{
	struct arx_cq *cq = to_arx_cq_ex(ibcqx);
	int err = arx_start(cq, attr);

	if (err == ENOENT && arx_cq_flush_doorbells(cq, false))
		err = arx_start(cq, attr);
	return err;
}

static void arx_end_poll_single(struct ibv_cq_ex *ibcqx)
{
}

static int arx_next_poll(struct ibv_cq_ex *ibcqx)
{
	return arx_take(to_arx_cq_ex(ibcqx));
}

static enum ibv_wc_opcode arx_read_opcode(struct ibv_cq_ex *ibcqx)
{
	return to_arx_cq_ex(ibcqx)->cur.opcode;
}

static uint32_t arx_read_vendor_err(struct ibv_cq_ex *ibcqx)
{
	return to_arx_cq_ex(ibcqx)->cur.vendor_err;
}

static unsigned int arx_read_wc_flags(struct ibv_cq_ex *ibcqx)
{
	return to_arx_cq_ex(ibcqx)->cur.wc_flags & ARX_WC_FLAGS;
}

static uint32_t arx_read_byte_len(struct ibv_cq_ex *ibcqx)
{
	return to_arx_cq_ex(ibcqx)->cur.byte_len;
}

static __be32 arx_read_imm_data(struct ibv_cq_ex *ibcqx)
{
	return (__force __be32)to_arx_cq_ex(ibcqx)->cur.ex;
}

static uint32_t arx_read_qp_num(struct ibv_cq_ex *ibcqx)
{
	return to_arx_cq_ex(ibcqx)->cur.qpn;
}

static uint32_t arx_read_src_qp(struct ibv_cq_ex *ibcqx)
{
	return to_arx_cq_ex(ibcqx)->cur.src_qp;
}

static uint32_t arx_read_slid(struct ibv_cq_ex *ibcqx)
{
	return 0;
}

static uint8_t arx_read_sl(struct ibv_cq_ex *ibcqx)
{
	return to_arx_cq_ex(ibcqx)->cur.sl;
}

static uint8_t arx_read_dlid_path_bits(struct ibv_cq_ex *ibcqx)
{
	return 0;
}

static uint64_t arx_read_completion_ts(struct ibv_cq_ex *ibcqx)
{
	return to_arx_cq_ex(ibcqx)->cur.timestamp;
}

static uint64_t arx_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uint64_t arx_read_completion_wallclock_ns(struct ibv_cq_ex *ibcqx)
{
	struct arx_cq *cq = to_arx_cq_ex(ibcqx);

	if (!cq->wallclock)
		cq->wallclock = arx_clock_ns(CLOCK_REALTIME) -
				arx_clock_ns(CLOCK_MONOTONIC);
	return cq->cur.timestamp + cq->wallclock;
}

/**
 * arx_set_poll_ops - prepare a CQ for extended polling
 * @cq: the CQ
 * @wc_flags: enum ibv_create_cq_wc_flags: fields that will be read
 *
 * Return: 0, or EOPNOTSUPP if a CQE lacks one of the fields.
 */
int arx_set_poll_ops(struct arx_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ibcqx = &cq->vcq.cq_ex;

	if (!check_comp_mask(wc_flags,
			     IBV_WC_STANDARD_FLAGS |
			     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))
		return EOPNOTSUPP;

	ibcqx->start_poll = cq->lock.needed ? arx_start_poll :
					      arx_start_poll_single;
	ibcqx->next_poll = arx_next_poll;
	ibcqx->end_poll = cq->lock.needed ? arx_end_poll : arx_end_poll_single;

	ibcqx->read_opcode = arx_read_opcode;
	ibcqx->read_vendor_err = arx_read_vendor_err;
	ibcqx->read_wc_flags = arx_read_wc_flags;

	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ibcqx->read_byte_len = arx_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ibcqx->read_imm_data = arx_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ibcqx->read_qp_num = arx_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ibcqx->read_src_qp = arx_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ibcqx->read_slid = arx_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ibcqx->read_sl = arx_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ibcqx->read_dlid_path_bits = arx_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ibcqx->read_completion_ts = arx_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ibcqx->read_completion_wallclock_ns =
			arx_read_completion_wallclock_ns;
	return 0;
}
