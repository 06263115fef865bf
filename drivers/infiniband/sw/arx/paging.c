// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Stages that wait for pages. A stage runs with bottom halves off and cannot
 * fault memory in. Before it uses memory paged on demand for a run, it asks
 * whether all pages of the run are there; if they are, they stay until the end
 * of the section. Otherwise it leaves them to a job, stops, and is started
 * again:
 *
 *	requester	stops at the WQE
 *	responder	asks an RC peer to send the request again (RNR NAK),
 *			holds a READ response, drops a UC or UD message
 *	completer	drops the response; the requester asks for it again, and
 *			has the pages found before it does
 *
 * A job may take any time: swap, a file on the network, a program that serves
 * page faults of its own or of another process. So no code waits for jobs. A
 * job has the number of its QP instead of a pointer, and a reference to the
 * region's memory; both may end before the job does.
 */

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "paging.h"
#include "schedule.h"

/* Bytes that one job finds: a stage goes on while the next ones are found. */
#define ARX_PAGING_MOST	(4U * 1024 * 1024)

/**
 * struct arx_paging_job - pages being found
 * @work: the job, in process context
 * @pages: with a reference to their memory
 * @qpn: the QP that waits
 * @request: its requester waits; else its responder
 */
struct arx_paging_job {
	struct work_struct work;
	struct arx_pages pages;
	u32 qpn;
	bool request;
};

static struct workqueue_struct *arx_paging_wq;

/* Start the stage again, unless its QP is gone. */
static void arx_paging_done(const struct arx_paging_job *job, int err)
{
	struct arx_paging *paging;
	struct arx_qp *qp;

	local_bh_disable();
	arx_section_enter();
	qp = arx_qp_find(job->qpn);
	if (qp) {
		paging = job->request ? &qp->req.paging : &qp->resp.paging;
		/* The process keeps changing its memory: look again. */
		paging->failed = err && err != -EAGAIN;
		/* Pairs with arx_paging_wait(). */
		smp_store_release(&paging->busy, false);
		if (job->request)
			arx_qp_go_on(qp);
		else
			arx_qp_schedule(qp);
	}
	arx_section_leave();
	local_bh_enable();
}

static void arx_paging_run(struct work_struct *work)
{
	struct arx_paging_job *job = container_of(work, struct arx_paging_job,
						  work);

	arx_paging_done(job, arx_odp_find(&job->pages, ARX_ODP_FAULT));
	arx_odp_put(job->pages.odp);
	kfree(job);
	/* arx_paging_exit() waits for this function. */
	module_put(THIS_MODULE);
}

/* Without memory for a job, the stage tries again at once. */
static void arx_paging_start(struct arx_qp *qp, struct arx_paging *paging,
			     const struct arx_pages *want)
{
	struct arx_paging_job *job = kmalloc(sizeof(*job),
					     GFP_ATOMIC | __GFP_NOWARN);

	if (!job) {
		arx_qp_schedule(qp);
		return;
	}
	INIT_WORK(&job->work, arx_paging_run);
	job->pages = *want;
	job->pages.len = min(want->len, ARX_PAGING_MOST);
	job->qpn = qp->id.nr;
	job->request = paging == &qp->req.paging;
	arx_odp_hold(want->odp);
	paging->failed = false;
	paging->write = want->write;
	paging->addr = want->addr;
	WRITE_ONCE(paging->busy, true);
	__module_get(THIS_MODULE);
	queue_work(arx_paging_wq, &job->work);
}

/**
 * arx_paging_wait - have pages found for a stage
 * @qp: any QP but QP1
 * @paging: of its requester or responder
 * @want: the pages
 *
 * A stage waits for one job at a time. If the pages that were found are not
 * those that it needs now, it asks again.
 *
 * Context: in a section, bottom halves off; lock of the stage held.
 * Return: true if the stage must wait, and is started again; false if the
 * memory cannot be accessed so.
 */
bool arx_paging_wait(struct arx_qp *qp, struct arx_paging *paging,
		     const struct arx_pages *want)
{
	/* Pairs with arx_paging_done(). */
	if (smp_load_acquire(&paging->busy))
		return true;
	if (paging->failed && paging->addr == want->addr &&
	    paging->write == want->write) {
		paging->failed = false;
		return false;
	}
	arx_paging_start(qp, paging, want);
	return true;
}

/**
 * arx_paging_init - called before any QP is created
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int arx_paging_init(void)
{
	arx_paging_wq = alloc_workqueue("arx-pages", WQ_UNBOUND, 0);
	return arx_paging_wq ? 0 : -ENOMEM;
}

/**
 * arx_paging_exit - undo arx_paging_init(); no QP is left
 *
 * Context: may sleep, until the last jobs have ended.
 */
void arx_paging_exit(void)
{
	destroy_workqueue(arx_paging_wq);
}
