// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Continues copies on this machine and flushes, and polls send queues.
 *
 * A send to a QP of the same machine is a copy, and the only bound on what one
 * call may post is the length of the ring: 64 TiB. The call itself makes the
 * first part of the copy (doorbell.c). The rest must not run in a softirq: a
 * softirq is charged to nobody and delays all programs on its CPU. So a thread
 * of the application's process continues: the scheduler, the CPU cgroup,
 * priority and affinity of the process apply to the copy, and the copy ends
 * with the process.
 *
 * The same holds for WQEs that need no packet: those of a failed QP, which are
 * flushed, binds and invalidations. A program posts such WQEs by one store, and
 * as fast as they are processed. If the thread has ended, softirqs process them
 * slowly: the flush of a QP must end even if its process has ended.
 *
 * QPs of kernel consumers continue in a workqueue. So do all QPs if the kernel
 * has no threads of this kind (CONFIG_VHOST_TASK): their copies yield to other
 * programs then, but are charged to nobody.
 */

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/wait.h>

#include "compat.h"
#include "requester.h"
#include "responder.h"
#include "schedule.h"
#include "state.h"
#include "watch.h"
#include "worker.h"

static struct workqueue_struct *arx_worker_wq;

/* Workers whose context has ended and whose thread has not. */
static atomic_t arx_workers_ended;
static DECLARE_WAIT_QUEUE_HEAD(arx_workers_wait);

/*
 * Do one share of a QP's work, in process context; other QPs of the list
 * follow.
 */
static void arx_worker_run(struct arx_qp *qp)
{
	u64 found = READ_ONCE(qp->watch.found);

	if (arx_qp_may(qp, ARX_QP_FLUSH_RECV))
		arx_responder_kick(qp);
	if (arx_requester_kick(qp) || arx_watch_again(qp, found))
		arx_worker_queue(qp);
}

static void arx_worker_late(struct work_struct *late)
{
	arx_worker_run(container_of(late, struct arx_qp, late));
}

/* Remove the first QP from @qps, which the worker's lock protects. */
static struct arx_qp *arx_worker_next(struct arx_worker *worker,
				      struct list_head *qps)
{
	struct arx_qp *qp;

	spin_lock_irq(&worker->lock);
	qp = list_first_entry_or_null(qps, struct arx_qp, late_link);
	if (qp)
		list_del_init(&qp->late_link);
	spin_unlock_irq(&worker->lock);
	return qp;
}

static void arx_worker_stop(struct work_struct *stop)
{
	struct arx_worker *worker = container_of(stop, struct arx_worker, stop);

	arx_task_stop(worker->task);
	/* arx_worker_end() woke the task, and may not have unlocked yet. */
	spin_lock_irq(&worker->lock);
	spin_unlock_irq(&worker->lock);
	kfree(worker);
	if (atomic_dec_and_test(&arx_workers_ended))
		wake_up_all(&arx_workers_wait);
	/* arx_worker_exit() waits for this function. */
	module_put(THIS_MODULE);
}

/* Called by the thread, which may call it again before it is stopped. */
static void arx_worker_leave(struct arx_worker *worker)
{
	if (worker->leaving)
		return;
	worker->leaving = true;
	queue_work(arx_worker_wq, &worker->stop);
}

/*
 * The CPU cgroup stops a thread that has used up its quota when the thread
 * returns to user space, by task work (6.18 and later). This thread never
 * returns there. A notification makes the loop around arx_worker_work() run
 * task work, as it does for signals.
 */
static void arx_worker_may_be_throttled(void)
{
	if (task_work_pending(current))
		set_thread_flag(TIF_NOTIFY_SIGNAL);
}

/*
 * The thread's loop body; false to sleep until it is woken. A QP of the list is
 * taken and processed in one section: arx_destroy_qp() removes it from the
 * list, then waits for all sections.
 */
static bool arx_worker_work(void *data)
{
	struct arx_worker *worker = data;
	struct arx_qp *qp;

	if (READ_ONCE(worker->ended)) {
		arx_worker_leave(worker);
		return false;
	}
	arx_section_enter();
	qp = arx_worker_next(worker, &worker->qps);
	if (qp) {
		__set_current_state(TASK_RUNNING);
		arx_worker_run(qp);
	}
	arx_section_leave();
	if (qp) {
		arx_worker_may_be_throttled();
		/* A thread that polls may not sleep for minutes. */
		cond_resched_tasks_rcu_qs();
	}
	return qp;
}

/*
 * Softirqs continue with the QPs of a thread that has ended, whose list was
 * @qps. They leave copies to arx_worker_queue() again, which adds to the
 * worker's list and not to @qps. arx_destroy_qp() removes a QP from @qps, then
 * waits for all sections.
 */
static void arx_worker_hand_over(struct arx_worker *worker,
				 struct list_head *qps)
{
	struct arx_qp *qp;

	arx_section_enter();
	while ((qp = arx_worker_next(worker, qps)))
		arx_qp_schedule(qp);
	arx_section_leave();
}

/*
 * The process ends, or executes another program. Once @killed is set, under the
 * lock, arx_worker_continue() adds no QP; those that it added before are handed
 * over. So no QP waits for a thread that has ended.
 */
static void arx_worker_killed(void *data)
{
	struct arx_worker *worker = data;
	LIST_HEAD(qps);
	bool ended;

	spin_lock_irq(&worker->lock);
	WRITE_ONCE(worker->killed, true);
	ended = worker->ended;
	list_splice_init(&worker->qps, &qps);
	spin_unlock_irq(&worker->lock);
	/* If the context ends only now, its end waits for this function. */
	arx_worker_hand_over(worker, &qps);
	if (ended)
		arx_worker_leave(worker);
}

/**
 * arx_worker_init - called before any QP is created
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int arx_worker_init(void)
{
	/* A kernel consumer may need it to write pages out. */
	arx_worker_wq = alloc_workqueue("arx", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return arx_worker_wq ? 0 : -ENOMEM;
}

/**
 * arx_worker_exit - undo arx_worker_init(); no QP is left
 */
void arx_worker_exit(void)
{
	destroy_workqueue(arx_worker_wq);
}

/**
 * arx_worker_wait_ended - wait until threads without a context have ended
 *
 * They end at once, and the module may be removed. But the threads of a process
 * that is stopped or frozen keep the module, and no code waits for them.
 *
 * Context: may sleep.
 */
void arx_worker_wait_ended(void)
{
	wait_event_timeout(arx_workers_wait,
			   !atomic_read(&arx_workers_ended), HZ);
}

/**
 * arx_worker_make - create a worker without a thread, for a new user context
 *
 * Context: may sleep.
 * Return: the worker, or NULL without memory.
 */
struct arx_worker *arx_worker_make(void)
{
	struct arx_worker *worker = kzalloc(sizeof(*worker),
					    GFP_KERNEL_ACCOUNT);

	if (!worker)
		return NULL;
	mutex_init(&worker->start);
	spin_lock_init(&worker->lock);
	INIT_LIST_HEAD(&worker->qps);
	INIT_WORK(&worker->stop, arx_worker_stop);
	return worker;
}

/*
 * The process of the thread has ended, and another process, which has imported
 * the context, goes on. The thread has ended, too, or is about to. The worker
 * is gone until there is another thread.
 */
static void arx_worker_drop_task(struct arx_worker *worker)
{
	arx_task_stop(worker->task);
	spin_lock_irq(&worker->lock);
	WRITE_ONCE(worker->task, NULL);
	spin_unlock_irq(&worker->lock);
	module_put(THIS_MODULE);
}

/**
 * arx_worker_start - start a thread of the current process, if there is none
 *	yet, or not any more
 * @worker: of a QP that can fail or send when this has succeeded, or NULL
 *
 * Context: process of the application.
 * Return: 0, or why there can be no thread: -EAGAIN, -ENOMEM, or a signal that
 * restarts the system call.
 */
int arx_worker_start(struct arx_worker *worker)
{
	struct vhost_task *task;
	int err = 0;

	if (!worker || !arx_has_tasks() ||
	    (READ_ONCE(worker->task) && !READ_ONCE(worker->killed)))
		return 0;
	mutex_lock(&worker->start);
	if (worker->killed && worker->task)
		arx_worker_drop_task(worker);
	if (!worker->task) {
		task = arx_task_create(arx_worker_work, arx_worker_killed,
				       worker, "arx");
		if (IS_ERR(task)) {
			err = PTR_ERR(task);
		} else {
			__module_get(THIS_MODULE);
			spin_lock_irq(&worker->lock);
			WRITE_ONCE(worker->task, task);
			WRITE_ONCE(worker->killed, false);
			spin_unlock_irq(&worker->lock);
			/* It finds what was queued before. */
			arx_task_start(task);
		}
	}
	mutex_unlock(&worker->start);
	return err;
}

/**
 * arx_worker_end - the context has ended
 * @worker: its worker, whose QPs have been destroyed; freed
 *
 * The thread stops itself, or is stopped when it is killed. It may be in a
 * process that is stopped or frozen, and the removal of a device waits for no
 * process.
 *
 * Context: may sleep.
 */
void arx_worker_end(struct arx_worker *worker)
{
	bool killed;

	if (!worker->task) {
		kfree(worker);
		return;
	}
	atomic_inc(&arx_workers_ended);
	spin_lock_irq(&worker->lock);
	WRITE_ONCE(worker->ended, true);
	killed = worker->killed;
	/* Once unlocked, the worker may be freed: see arx_worker_stop(). */
	if (killed)
		queue_work(arx_worker_wq, &worker->stop);
	else
		arx_task_wake(worker->task);
	spin_unlock_irq(&worker->lock);
}

/**
 * arx_worker_add - give a QP its worker
 * @qp: being created
 * @worker: of its application, or NULL for a kernel consumer
 */
void arx_worker_add(struct arx_qp *qp, struct arx_worker *worker)
{
	qp->worker = arx_has_tasks() ? worker : NULL;
	INIT_WORK(&qp->late, arx_worker_late);
	INIT_LIST_HEAD(&qp->late_link);
}

/* Add @qp to the list, unless it is there. Lock held. */
static void arx_worker_append(struct arx_worker *worker, struct arx_qp *qp)
{
	if (qp->retired || !list_empty(&qp->late_link))
		return;
	list_add_tail(&qp->late_link, &worker->qps);
	/* Under the lock, because the thread may be replaced. */
	if (!worker->killed && worker->task)
		arx_task_wake(worker->task);
}

/**
 * arx_worker_queue - make a QP's worker run requester and responder
 * @qp: any QP
 *
 * If the process has ended and left its QPs to another process, copies wait
 * until the other process kicks one of the QPs (arx_worker_start()). Work that
 * must not wait uses arx_worker_continue().
 *
 * Context: any with interrupts on or bottom halves off; @qp must stay valid.
 */
void arx_worker_queue(struct arx_qp *qp)
{
	struct arx_worker *worker = qp->worker;
	unsigned long flags;

	if (!worker) {
		queue_work(arx_worker_wq, &qp->late);
		return;
	}
	spin_lock_irqsave(&worker->lock, flags);
	arx_worker_append(worker, qp);
	spin_unlock_irqrestore(&worker->lock, flags);
}

/**
 * arx_worker_continue - make a thread run requester and responder, if there is
 *	one
 * @qp: any QP
 *
 * The worker removes the QP from its list before it works for it. So a QP that
 * is on the list already will be run after this call; a QP that the thread is
 * working for is run once more. If the thread ends, arx_worker_killed() hands
 * the QP over.
 *
 * Context: as arx_worker_queue(); locks of the QP may be held.
 * Return: false if there is no thread: the caller continues in another way.
 */
bool arx_worker_continue(struct arx_qp *qp)
{
	struct arx_worker *worker = qp->worker;
	unsigned long flags;
	bool lives;

	if (!worker)
		return false;
	spin_lock_irqsave(&worker->lock, flags);
	lives = worker->task && !worker->killed;
	if (lives)
		arx_worker_append(worker, qp);
	spin_unlock_irqrestore(&worker->lock, flags);
	return lives;
}

/**
 * arx_worker_is_gone - true if the thread was killed and the QPs live on
 * @qp: any QP
 *
 * Context: any.
 */
bool arx_worker_is_gone(const struct arx_qp *qp)
{
	return qp->worker && READ_ONCE(qp->worker->killed);
}

/**
 * arx_worker_forget - remove a QP; after arx_section_wait() no thread works for
 *	it
 * @qp: about to be destroyed
 *
 * Context: process context.
 */
void arx_worker_forget(struct arx_qp *qp)
{
	struct arx_worker *worker = qp->worker;

	if (!worker)
		return;
	spin_lock_irq(&worker->lock);
	list_del_init(&qp->late_link);
	qp->retired = true;
	spin_unlock_irq(&worker->lock);
}
