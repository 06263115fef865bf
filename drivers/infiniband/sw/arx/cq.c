// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: CQEs, arming, notification. */

#include <linux/cpumask.h>
#include <linux/etherdevice.h>
#include <linux/overflow.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "cq.h"
#include "qp.h"
#include "trace.h"

/* Values of enum ibv_wc_flags that differ from enum ib_wc_flags. */
#define ARX_CQE_WITH_INV	8

/* A completion was lost: the CQ cannot be used any more. */
static void arx_cq_overflow(struct arx_cq *cq)
{
	struct ib_event event = {
		.device = cq->ib.device,
		.element.cq = &cq->ib,
		.event = IB_EVENT_CQ_ERR,
	};

	trace_arx_event(cq->ib.device, cq->ib.res.id, IB_EVENT_CQ_ERR);
	if (cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
}

/* Index of the consumer. A user may write any value: the caller bounds it. */
static u32 arx_cq_consumed(const struct arx_cq *cq)
{
	return smp_load_acquire(&cq->ring.hdr->cons);	/* D */
}

/* Moderation: true if the event that is due may wait for a later completion. */
static bool arx_cq_holds(struct arx_cq *cq)
{
	bool first = !cq->held;

	cq->held += cq->added;
	if (cq->held >= cq->count)
		return false;
	if (first)
		hrtimer_start(&cq->timer,
			      ns_to_ktime((u64)cq->period * NSEC_PER_USEC),
			      HRTIMER_MODE_REL_SOFT);
	return true;
}

/* The consumer's request @arm gets its event. */
static void arx_cq_take_request(struct arx_cq *cq, u32 arm)
{
	cq->armed = arm;
	cq->held = 0;
}

/*
 * True if the consumer must get an event for the added completions now. An
 * error does not wait for other completions.
 */
static bool arx_cq_must_notify(struct arx_cq *cq, bool solicited, bool error)
{
	u32 arm;

	/*
	 * Between the stores of completions and the load of the request. Pairs
	 * with the consumer's barrier between the store of the request and its
	 * last poll: either this side sees the request, or the consumer sees
	 * the completion (pair F). (A kernel consumer does both under
	 * cq->lock.)
	 */
	smp_mb();
	arm = READ_ONCE(cq->ring.hdr->arm);
	if (arm == cq->armed ||
	    (arm & ARX_CQ_ARM_SOLICITED && !solicited && !error))
		return false;
	if (!error && arx_cq_holds(cq))
		return false;
	arx_cq_take_request(cq, arm);
	return true;
}

/*
 * The CPU on which the consumer's handler is due. Bottom halves are off, so
 * that a CPU that is online stays so while the caller queues a work there; with
 * PREEMPT_RT it may go offline, and its works move to other CPUs.
 */
static int arx_cq_cpu(const struct arx_cq *cq)
{
	if (cq->cpu != ARX_CQ_ANY_CPU && likely(cpu_online(cq->cpu)))
		return cq->cpu;
	return smp_processor_id();
}

static void arx_cq_call(struct arx_cq *cq)
{
	trace_arx_cq_event(cq);
	cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

/*
 * Call an application's handler here unless its vector names another CPU.
 */
static void arx_cq_notify(struct arx_cq *cq)
{
	int cpu = arx_cq_cpu(cq);

	arx_count(to_arx_dev(cq->ib.device), CQ_EVENTS);
	if (cq->ib.uobject && cpu == smp_processor_id())
		arx_cq_call(cq);
	else
		queue_work_on(cpu, system_bh_wq, &cq->notify);
}

/*
 * No more completions came in time. If the consumer has polled all, it needs no
 * event, and its request stays open.
 */
static enum hrtimer_restart arx_cq_period_ended(struct hrtimer *timer)
{
	struct arx_cq *cq = container_of(timer, struct arx_cq, timer);
	bool notify;
	u32 arm;

	spin_lock(&cq->lock);
	arm = READ_ONCE(cq->ring.hdr->arm);
	notify = cq->held && arm != cq->armed &&
		 cq->prod != arx_cq_consumed(cq);
	if (notify)
		arx_cq_take_request(cq, arm);
	cq->held = 0;
	spin_unlock(&cq->lock);

	if (notify)
		arx_cq_notify(cq);
	return HRTIMER_NORESTART;
}

static void arx_cq_notify_work(struct work_struct *work)
{
	arx_cq_call(container_of(work, struct arx_cq, notify));
}

/* The driver uses enum ib_wc_flags, applications use enum ibv_wc_flags. */
static u16 arx_cq_user_flags(u16 flags)
{
	return (flags & (IB_WC_GRH | IB_WC_WITH_IMM)) |
	       (flags & IB_WC_WITH_INVALIDATE ? ARX_CQE_WITH_INV : 0);
}

/**
 * arx_cq_waiting - completions that an application has not polled yet
 * @cq: any
 *
 * Context: bottom halves off; the caller's QP keeps @cq.
 * Return: their number, or any number if the application wrote a wrong index.
 */
u32 arx_cq_waiting(struct arx_cq *cq)
{
	u32 waiting;

	spin_lock(&cq->lock);
	waiting = cq->prod - arx_cq_consumed(cq);
	spin_unlock(&cq->lock);
	return waiting;
}

/**
 * arx_cq_begin - begin to add completions
 * @cq: the CQ; its lock is held until arx_cq_end()
 *
 * All completions until arx_cq_end() get one time stamp and one check of the
 * consumer's request.
 *
 * Context: bottom halves off; the caller's QP keeps @cq.
 */
void arx_cq_begin(struct arx_cq *cq)
	__acquires(&cq->lock)
{
	spin_lock(&cq->lock);
	cq->added = 0;
	cq->now = ktime_get_ns();
}

/**
 * arx_cq_put - complete a work request
 * @cq: between arx_cq_begin() and arx_cq_end()
 * @cqe: all but the time stamp; @wc_flags are enum ib_wc_flags
 *
 * An application that polls sees the completion at once.
 *
 * Context: @cq's lock held, by arx_cq_begin().
 * Return: false if this completion, or an earlier one, is lost and the consumer
 * did not allow this: the QP must then fail.
 */
bool arx_cq_put(struct arx_cq *cq, const struct arx_cqe *cqe)
{
	struct arx_cqe *slot;

	if (unlikely(arx_ring_full(&cq->ring, cq->prod))) {
		if (cq->ignore_overrun)
			return true;
		cq->overflown = true;
	}
	if (cq->overflown)
		return false;

	trace_arx_complete(cq, cqe);
	slot = arx_ring_entry(&cq->ring, cq->prod);
	*slot = *cqe;
	if (cq->ib.uobject)
		slot->wc_flags = arx_cq_user_flags(cqe->wc_flags);
	slot->timestamp = cq->now;
	arx_ring_produce(&cq->ring, ++cq->prod);
	cq->added++;
	return true;
}

/**
 * arx_cq_end - send the event for the added completions, if requested
 * @cq: after arx_cq_begin()
 * @solicited: a message asked for a solicited event
 * @error: a completion is an error, which always counts as solicited
 *
 * Context: @cq's lock held, by arx_cq_begin(); released here.
 */
void arx_cq_end(struct arx_cq *cq, bool solicited, bool error)
	__releases(&cq->lock)
{
	bool notify = cq->added && arx_cq_must_notify(cq, solicited, error);
	bool first = cq->overflown && !cq->overflow_reported;

	cq->overflow_reported = cq->overflown;
	spin_unlock(&cq->lock);

	if (notify)
		arx_cq_notify(cq);
	if (first)
		arx_cq_overflow(cq);
}

/**
 * arx_cq_add - complete one work request
 * @cq: the CQ
 * @cqe: as for arx_cq_put()
 * @solicited: the message asked for a solicited event; errors always count as
 *	solicited
 *
 * Context: bottom halves off; the caller's QP keeps @cq.
 * Return: as arx_cq_put().
 */
bool arx_cq_add(struct arx_cq *cq, const struct arx_cqe *cqe, bool solicited)
{
	bool taken;

	arx_cq_begin(cq);
	taken = arx_cq_put(cq, cqe);
	arx_cq_end(cq, solicited, cqe->status != IB_WC_SUCCESS);
	return taken;
}

/*
 * Vector n is the n-th online CPU. Vector 0 of an application, which most
 * programs name without a choice, is any CPU: the events of all programs would
 * otherwise come from one CPU.
 */
static int arx_cq_vector(const struct ib_cq_init_attr *attr, bool user)
{
	unsigned int cpu;

	if (user && !attr->comp_vector)
		return ARX_CQ_ANY_CPU;
	cpu = cpumask_nth(attr->comp_vector, cpu_online_mask);
	return cpu < nr_cpu_ids ? cpu : ARX_CQ_ANY_CPU;
}

/**
 * arx_create_cq - verb
 * @ib: the CQ, allocated by the core
 * @attr: requested attributes
 * @attrs: of an application, else NULL
 *
 * Completions always carry a time stamp, so the flag for them has no effect.
 *
 * Return: 0, -EINVAL for values out of range, -EOPNOTSUPP for unknown flags,
 * -ENOMEM.
 */
int arx_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct arx_create_cq_resp resp = {};
	struct arx_cq *cq = to_arx_cq(ib);
	int err;

	if (attr->flags & ~(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION |
			    IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN))
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > ARX_MAX_CQE)
		return -EINVAL;

	err = arx_object_begin(ib->device, ARX_KIND_CQ);
	if (err)
		return err;
	spin_lock_init(&cq->lock);
	cq->cpu = arx_cq_vector(attr, udata);
	cq->ignore_overrun = attr->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
	INIT_WORK(&cq->notify, arx_cq_notify_work);
	hrtimer_setup(&cq->timer, arx_cq_period_ended, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
	err = arx_ring_create(&cq->ring, attr->cqe, sizeof(struct arx_cqe),
			      arx_udata_to_ucontext(udata), &resp.ring);
	if (err)
		goto end;
	ib->cqe = arx_ring_entries(&cq->ring);

	if (udata) {
		err = ib_respond_udata(udata, resp);
		if (err)
			goto destroy;
	}
	return 0;

destroy:
	arx_ring_destroy(&cq->ring);
end:
	arx_object_end(ib->device, ARX_KIND_CQ);
	return err;
}

/**
 * arx_cq_settle - wait until the events so far have been sent
 * @ib: CQ of a QP that adds no more completions, or NULL
 *
 * ib_free_cq() first ends a kernel consumer's polling, then destroys the CQ. A
 * handler that is called between the two starts the polling again. Once this
 * has been done for all QPs of the CQ, no handler is called any more.
 *
 * No flush_work(): the consumer may be a work that frees memory, which must not
 * wait for other works.
 *
 * Context: may sleep.
 */
void arx_cq_settle(struct ib_cq *ib)
{
	struct arx_cq *cq;

	if (!ib || ib->uobject)
		return;
	cq = to_arx_cq(ib);
	if (hrtimer_cancel(&cq->timer)) {
		/* completions of another QP may wait for it, too */
		local_bh_disable();
		arx_cq_period_ended(&cq->timer);
		local_bh_enable();
	}
	while (work_busy(&cq->notify))
		usleep_range(20, 50);
}

/**
 * arx_destroy_cq - verb
 * @ib: no QP uses it
 * @udata: unused
 *
 * Context: may sleep, until the consumer's handler has returned.
 * Return: 0.
 */
int arx_destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct arx_cq *cq = to_arx_cq(ib);

	hrtimer_cancel(&cq->timer);
	cancel_work_sync(&cq->notify);
	arx_ring_destroy(&cq->next);
	arx_ring_destroy(&cq->ring);
	arx_object_end(ib->device, ARX_KIND_CQ);
	return 0;
}

/*
 * Make a ring for the next size, and report it to the application. It replaces
 * a prepared ring that was never used.
 */
static int arx_cq_prepare(struct arx_cq *cq, unsigned int cqe,
			  struct ib_udata *udata)
{
	struct arx_resize_cq_resp resp = {};
	struct arx_ring ring;
	int err;

	err = arx_ring_create(&ring, cqe, sizeof(struct arx_cqe),
			      arx_udata_to_ucontext(udata), &resp.ring);
	if (err)
		return err;

	err = ib_respond_udata(udata, resp);
	if (err)
		arx_ring_destroy(&ring);
	else
		arx_ring_offer(&cq->next, &ring, &cq->lock);
	return err;
}

/*
 * Continue in another ring with the same index. The application has written its
 * own index there, and copies the CQEs that it has not polled. So the time for
 * which the lock is held does not depend on the number of CQEs.
 */
static int arx_cq_move(struct arx_ring *from, struct arx_ring *to)
{
	struct arx_cq *cq = container_of(from, struct arx_cq, ring);
	u32 pending = cq->prod - smp_load_acquire(&to->hdr->cons);	/* D */

	lockdep_assert_held(&cq->lock);
	if (pending > arx_ring_entries(from) || pending > arx_ring_entries(to))
		return -EINVAL;

	to->hdr->arm = READ_ONCE(from->hdr->arm);
	arx_ring_produce(to, cq->prod);
	cq->ib.cqe = arx_ring_entries(to);
	return 0;
}

static int arx_cq_commit(struct arx_cq *cq)
{
	return arx_ring_replace(&cq->ring, &cq->next, &cq->lock, arx_cq_move);
}

/**
 * arx_resize_cq - verb
 * @ib: of an application, which does not poll or arm it during the second step
 * @cqe: requested size
 * @udata: of the application: the step; receives the new ring in the first step
 *
 * Context: may sleep.
 * Return: 0, -EINVAL for a size that is out of range or too small for the CQEs,
 * or for a kernel consumer's CQ, -ENOMEM, -EFAULT. On failure the CQ is
 * unchanged.
 */
int arx_resize_cq(struct ib_cq *ib, unsigned int cqe, struct ib_udata *udata)
{
	struct arx_cq *cq = to_arx_cq(ib);
	struct arx_resize_cq_req req;
	int err;

	if (!udata || !cqe || cqe > ARX_MAX_CQE)
		return -EINVAL;
	err = ib_copy_validate_udata_in(udata, req, reserved_20);
	if (err)
		return err;

	switch (req.step) {
	case ARX_RESIZE_PREPARE:
		return arx_cq_prepare(cq, cqe, udata);
	case ARX_RESIZE_COMMIT:
		return arx_cq_commit(cq);
	default:
		return -EINVAL;
	}
}

/**
 * arx_modify_cq - verb: moderate events
 * @ib: CQ
 * @count: number of completions that delay an event; less than 2: none
 * @period: maximum delay in microseconds; 0: none
 *
 * Context: process or softirq, with interrupts on.
 * Return: 0.
 */
int arx_modify_cq(struct ib_cq *ib, u16 count, u16 period)
{
	struct arx_cq *cq = to_arx_cq(ib);

	spin_lock_bh(&cq->lock);
	cq->count = period ? count : 0;
	cq->period = period;
	spin_unlock_bh(&cq->lock);
	return 0;
}

/* The QP of a completion; NULL if it was destroyed. */
static struct ib_qp *arx_cq_qp(struct arx_cq *cq, const struct arx_cqe *cqe)
{
	struct arx_qp *qp;

	arx_section_enter();
	if (cqe->qpn == 1)
		qp = rcu_dereference(to_arx_dev(cq->ib.device)->gsi);
	else
		qp = arx_qp_find(cqe->qpn);
	arx_section_leave();

	return qp ? &qp->ib : NULL;
}

static void arx_cq_wc(struct ib_wc *wc, const struct arx_cqe *cqe,
		      struct ib_qp *qp)
{
	*wc = (struct ib_wc) {
		.wr_id = cqe->wr_id,
		.status = cqe->status,
		.opcode = cqe->opcode,
		.vendor_err = cqe->vendor_err,
		.byte_len = cqe->byte_len,
		.qp = qp,
		.src_qp = cqe->src_qp,
		.wc_flags = cqe->wc_flags,
		.pkey_index = cqe->pkey_index,
		.sl = cqe->sl,
		.port_num = ARX_PORT,
		.vlan_id = cqe->vlan_id,
		.network_hdr_type = cqe->network_hdr_type,
	};
	ether_addr_copy(wc->smac, cqe->smac);
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		wc->ex.invalidate_rkey = cqe->ex;
	else
		wc->ex.imm_data = (__force __be32)cqe->ex;
}

/**
 * arx_poll_cq - verb of kernel consumers
 * @ib: CQ
 * @n: size of @wc
 * @wc: receives completions
 *
 * Completions of a destroyed QP are dropped, as hardware does.
 *
 * Context: any but hard interrupts.
 * Return: number of completions; -EINVAL for an application's CQ, see
 * arx_post_send().
 */
int arx_poll_cq(struct ib_cq *ib, int n, struct ib_wc *wc)
{
	struct arx_cq *cq = to_arx_cq(ib);
	unsigned long flags;
	int got = 0;

	if (ib->uobject)
		return -EINVAL;
	spin_lock_irqsave(&cq->lock, flags);
	while (got < n && cq->cons != cq->prod) {
		const struct arx_cqe *cqe = arx_ring_entry(&cq->ring, cq->cons);
		struct ib_qp *qp = arx_cq_qp(cq, cqe);

		if (qp)
			arx_cq_wc(&wc[got++], cqe, qp);
		cq->cons++;
	}
	arx_ring_consume(&cq->ring, cq->cons);
	spin_unlock_irqrestore(&cq->lock, flags);
	return got;
}

/**
 * arx_req_notify_cq - verb of kernel consumers
 * @ib: CQ
 * @flags: events wanted; and whether to report queued completions
 *
 * A request for solicited completions does not weaken a request for any.
 *
 * Context: any but hard interrupts.
 * Return: 1 if completions are queued and @flags asks for them, else 0; -EINVAL
 * for an application's CQ, see arx_post_send().
 */
int arx_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
	struct arx_cq *cq = to_arx_cq(ib);
	struct arx_ring_hdr *hdr = cq->ring.hdr;
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	unsigned long irqs;
	bool missed;
	u32 arm;

	if (ib->uobject)
		return -EINVAL;
	spin_lock_irqsave(&cq->lock, irqs);
	arm = hdr->arm;
	if (!solicited || arm == cq->armed || arm & ARX_CQ_ARM_SOLICITED)
		hdr->arm = ((arm & ~ARX_CQ_ARM_SOLICITED) + ARX_CQ_ARM_SEQ) |
			   (solicited ? ARX_CQ_ARM_SOLICITED : 0);
	missed = cq->cons != cq->prod;
	spin_unlock_irqrestore(&cq->lock, irqs);

	return flags & IB_CQ_REPORT_MISSED_EVENTS && missed;
}
