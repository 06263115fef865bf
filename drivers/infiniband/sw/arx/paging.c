// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Stages that wait for pages. A stage runs with bottom halves off and cannot
 * fault memory in. Before it uses memory paged on demand for a run, it asks
 * whether all pages of the run are there; if they are, they stay until the end
 * of the section. Otherwise it leaves them to a job, stops, and is started
 * again:
 *
 *	requester	stops at the WQE
 *	responder	asks an RC peer to send the request again (RNR NAK;
 *			on one machine the end of the job ends the peer's wait),
 *			holds a READ response, drops a UC or UD message; if
 *			there are no pages for a receive, the receive fails
 *	completer	drops the response; the requester asks for it again, and
 *			has the pages found before it does
 *
 * A job may take any time: swap, a file on the network, a program that serves
 * page faults of its own or of another process. So no stage, QP or region waits
 * for a job. A job has the number of its QP instead of a pointer, and a
 * reference to the page table: QP and region may end before the job does.
 */

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "account.h"
#include "paging.h"
#include "schedule.h"

/*
 * Bytes that one job finds, at most. A stage uses the first pages of a message
 * while the next job finds the pages behind them.
 */
#define ARX_PAGING_MOST	(4U * 1024 * 1024)

/**
 * struct arx_paging_job - pages being found
 * @work: the job, in process context
 * @pages: with a reference to their memory
 * @qpn: the QP that waits
 * @request: the requester waits; else the responder
 * @dropped: a UC WRITE lacked the pages and was dropped: a failure of the job
 *	is reported to nobody
 */
struct arx_paging_job {
	struct work_struct work;
	struct arx_pages pages;
	u32 qpn;
	bool request;
	bool dropped;
};

static struct workqueue_struct *arx_paging_wq;

/*
 * Start the stage again, unless its QP is gone or has been reset. Another QP
 * may have the number by now: it does not wait for this job.
 */
static void arx_paging_done(const struct arx_paging_job *job, int err)
{
	/* -EAGAIN: the process keeps changing its memory, so look again. */
	const void *result = err && err != -EAGAIN && !job->dropped ?
			     ARX_PAGING_FAILED : NULL;
	struct arx_paging *paging;
	struct arx_qp *qp;

	local_bh_disable();
	arx_section_enter();
	qp = arx_qp_find(job->qpn);
	if (qp) {
		paging = job->request ? &qp->req.paging : &qp->resp.paging;
		/*
		 * A softirq follows at once on this CPU and copies what the QP
		 * has credit for. To wake the QP's worker takes longer.
		 */
		if (cmpxchg(&paging->job, (const void *)job, result) == job)
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
	arx_user_end_job(job->pages.odp->user);
	arx_odp_put(job->pages.odp);
	kfree(job);
	/* arx_paging_exit() waits for this function. */
	module_put(THIS_MODULE);
}

static struct arx_paging_job *arx_paging_alloc(const struct arx_pages *want)
{
	struct arx_paging_job *job;

	if (!arx_user_begin_job(want->odp->user))
		return NULL;
	job = kmalloc(sizeof(*job), GFP_ATOMIC | __GFP_NOWARN);
	if (!job)
		arx_user_end_job(want->odp->user);
	return job;
}

/*
 * Without memory for a job, or with too many jobs of the user, the stage tries
 * again a little later.
 */
static void arx_paging_start(struct arx_qp *qp, struct arx_paging *paging,
			     u32 request, const struct arx_pages *want)
{
	struct arx_paging_job *job = arx_paging_alloc(want);

	if (!job) {
		arx_qp_schedule_later(qp);
		return;
	}
	INIT_WORK(&job->work, arx_paging_run);
	job->pages = *want;
	job->pages.len = min(want->len, ARX_PAGING_MOST);
	job->qpn = qp->id.nr;
	job->request = paging == &qp->req.paging;
	job->dropped = !job->request && !arx_qp_is_acked(qp) &&
		       qp->resp.op == ARX_OP_WRITE;
	arx_odp_hold(want->odp);
	paging->request = request;
	paging->write = want->write;
	paging->addr = want->addr;
	WRITE_ONCE(paging->job, job);
	__module_get(THIS_MODULE);
	queue_work(arx_paging_wq, &job->work);
}

/*
 * The request that a stage works on. A UC or UD message that is dropped does
 * not come again, but its receive WQE stays.
 */
static u32 arx_paging_request(const struct arx_qp *qp,
			      const struct arx_paging *paging)
{
	if (paging == &qp->req.paging)
		return qp->req.sent;
	return arx_qp_is_acked(qp) ? qp->resp.epsn : qp->resp.rwqe.nr;
}

/**
 * arx_paging_wait - have pages found for a stage
 * @qp: any QP but QP1
 * @paging: of its requester or responder
 * @want: the pages
 *
 * A stage waits for one job at a time. If the job found other pages than the
 * stage needs now, another job begins. A job that found nothing counts for its
 * own request only: the process may have mapped the memory since then.
 *
 * Context: in a section, bottom halves off; lock of the stage held.
 * Return: true if the stage must wait, and is started again; false if the
 * memory cannot be accessed so.
 */
bool arx_paging_wait(struct arx_qp *qp, struct arx_paging *paging,
		     const struct arx_pages *want)
{
	u32 request = arx_paging_request(qp, paging);

	if (arx_paging_is_busy(paging))
		return true;
	if (paging->job == ARX_PAGING_FAILED && paging->request == request &&
	    paging->addr == want->addr && paging->write == want->write) {
		WRITE_ONCE(paging->job, NULL);
		return false;
	}
	arx_paging_start(qp, paging, request, want);
	return true;
}

/**
 * arx_paging_init - make the workqueue of the jobs, before any QP is created
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int arx_paging_init(void)
{
	arx_paging_wq = alloc_workqueue("arx-pages", WQ_UNBOUND,
					WQ_UNBOUND_MAX_ACTIVE);
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
