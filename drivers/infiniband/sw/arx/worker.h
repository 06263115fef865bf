/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Continues copies on this machine and flushes, and polls send queues. */
#ifndef ARX_WORKER_H
#define ARX_WORKER_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct arx_qp;
struct vhost_task;

/**
 * struct arx_worker - a thread of an application's process that works for its
 *	QPs
 * @task: the thread; NULL: none of its QPs could fail or send yet, or the
 *	kernel has no such threads. Set before the first QP leaves RESET, and
 *	again if a process that imported the context goes on after the end of
 *	the first one
 * @start: serialises starts of threads
 * @lock: protects the fields below, and each QP's late_link and retired
 * @qps: QPs that have more to copy or to flush or are polled, each once, the
 *	next one first
 * @killed: the thread ends with its process; published
 * @ended: the context has ended; published
 * @leaving: the thread has queued @stop
 * @stop: waits for the thread and frees the worker
 */
struct arx_worker {
	struct vhost_task *task;
	struct mutex start;	/* serialises starts of threads */
	spinlock_t lock;	/* protects qps */
	struct list_head qps;
	bool killed;
	bool ended;
	bool leaving;
	struct work_struct stop;
};

int arx_worker_init(void);
void arx_worker_exit(void);
void arx_worker_wait_ended(void);
struct arx_worker *arx_worker_make(void);
int arx_worker_start(struct arx_worker *worker);
void arx_worker_end(struct arx_worker *worker);
void arx_worker_add(struct arx_qp *qp, struct arx_worker *worker);
void arx_worker_queue(struct arx_qp *qp);
bool arx_worker_continue(struct arx_qp *qp);
bool arx_worker_is_gone(const struct arx_qp *qp);
void arx_worker_forget(struct arx_qp *qp);

#endif /* ARX_WORKER_H */
