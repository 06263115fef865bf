/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The queue pair. Each stage owns its part and is the only writer of it; what
 * another stage may read is marked "published" and read with acquire order.
 *
 * Locks nest: req.lock, then resp.lock (the peer's, on one host), then
 * comp.lock, then the receive queue's, then the CQ's. All are taken with
 * bottom halves off, and nearly all work is done inside an RCU read section:
 * a QP found by its number stays valid to the end of it. See
 * Documentation/locking.rst.
 */
#ifndef ARX_QP_H
#define ARX_QP_H

#include <linux/hrtimer.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "arx.h"
#include "recvq.h"
#include "run.h"

struct arx_cq;
struct arx_worker;
struct sk_buff;

/**
 * struct arx_swqe - kernel copy of a send WQE, from fetch to completion
 * @wqe: what the application wrote, read once
 * @op: enum arx_op of what goes on the wire; meaningless for local work
 * @wc_opcode: enum ib_wc_opcode of the completion
 * @local: no packet: fast registration, invalidation, window binding
 * @executed: local work has been done; going back must not do it again
 * @status: enum ib_wc_status to complete with; set before req.sent passes it
 * @flags: enum arx_pkt_flags of the message's last packet
 * @first_psn: PSN of the first packet
 * @npkts: PSNs consumed: requests, or for READ the responses
 * @length: bytes of payload
 * @av: UD: where to
 * @sge: wqe.num_sge entries
 */
struct arx_swqe {
	struct arx_send_wqe wqe;
	u8 op;
	u8 wc_opcode;
	bool local;
	bool executed;
	u8 status;
	u8 flags;
	u32 first_psn;
	u32 npkts;
	u32 length;
	struct arx_av *av;
	struct arx_sge sge[];
};

static inline bool arx_swqe_is_rd(const struct arx_swqe *swqe)
{
	return swqe->op == ARX_OP_READ || swqe->op == ARX_OP_COMPARE_SWAP ||
	       swqe->op == ARX_OP_FETCH_ADD;
}

/**
 * struct arx_tx_batch - what leaves together
 * @av: where to; NULL: nothing was sent
 * @peer: it is a QP on this host, which has the runs already, but owes answers
 * @dst: route of the packets, held; NULL: none, and there are no packets
 * @first: the first of them, from its BTH on; the others follow by ->next
 * @end: where the next one goes
 * @psn: of the first; they are consecutive
 * @sport: UDP source port
 * @n: how many
 * @len: bytes from BTH to ICRC, of all
 * @largest: of the largest
 */
struct arx_tx_batch {
	const struct arx_av *av;
	struct arx_qp *peer;
	struct dst_entry *dst;
	struct sk_buff *first;
	struct sk_buff **end;
	u32 psn;
	u16 sport;
	u32 n;
	u32 len;
	u32 largest;
};

/**
 * struct arx_tx_order - what has left and orders what follows
 * @cpu: whose queues hold what the stage has sent, -1: nobody's
 * @next: the CPU that waits until @cpu has delivered it, -1: none
 * @data: answers with data may be among it
 */
struct arx_tx_order {
	int cpu;
	int next;
	bool data;
};

/**
 * struct arx_tx_out - the way out of a stage
 * @batch: what leaves next
 * @order: what has left
 * @dropped: this host dropped a part of the last batch, and takes nothing more
 *	until the stage has taken that back and cleared this
 * @lost: if @dropped: PSN of the first packet that was dropped
 */
struct arx_tx_out {
	struct arx_tx_batch batch;
	struct arx_tx_order order;
	bool dropped;
	u32 lost;
};

/* Bits of arx_req.pending. */
enum arx_req_pending {
	ARX_REQ_RUN,		/* run the requester */
	ARX_REQ_LOOK,		/* the watch's timer has fired */
	ARX_REQ_PULL,		/* the peer on this machine has more to reply */
};

/**
 * struct arx_req - the requester: SQ to runs
 * @lock: whoever holds it runs the requester for everybody
 * @pending: what others want; looked at again after the lock is dropped
 * @fetched: SQ index behind the last WQE copied; published
 * @sent: SQ index of the WQE to send next; published: all before it have been
 *	handed over, executed or given a status
 * @offset: payload bytes of WQE @sent already handed over
 * @psn: next PSN to send; goes back on a retransmission
 * @nxt: PSN behind the last ever sent; published
 * @end_psn: PSN behind the last fetched WQE
 * @rewinds: comp.rewinds answered so far
 * @rd_sent: READs and atomics handed over, counted like comp.rd_done
 * @rd_psns: the PSNs that they take, counted like comp.rd_psns
 * @unacked: packets sent since the last acknowledge request
 * @flush_end: if @flushes, SQ index behind the last WQE that left SQE unsent
 * @out: the way out; its batch is empty between turns
 * @waiting: stopped for the completer; published, see arx_requester_run()
 * @blocked: stopped for the socket, which starts it again; published
 * @dropped: stopped because this host dropped its packets; tx.c starts it again;
 *	published
 * @failed: a WQE got an error status: no further one is executed
 * @flushes: WQEs before @flush_end are flushed in any state
 * @drained: SQD: the drained event has been sent
 * @local: what was sent last went to a QP on this machine; published
 * @credit: bytes that softirqs may copy to that QP, negative if they copied more
 *	than was charged for; published
 */
struct arx_req {
	spinlock_t lock;	/* of all but pending; who sends only tries */
	unsigned long pending;
	u32 fetched;
	u32 sent;
	u32 offset;
	u32 psn;
	u32 nxt;
	u32 end_psn;
	u32 rewinds;
	u32 rd_sent;
	u32 rd_psns;
	u32 unacked;
	u32 flush_end;
	struct arx_tx_out out;
	bool waiting;
	bool blocked;
	bool dropped;
	bool failed;
	bool flushes;
	bool drained;
	bool local;
	s32 credit;
};

/**
 * struct arx_watch - looking at the send ring unasked; all under req.lock
 * @on: ARX_RING_NO_KICK is set
 * @cpu: the CPU that looks, -1 for none; published
 * @origin: the CPU of the application when @cpu was chosen
 * @until: jiffies from which on it is to be chosen anew
 * @vain: looks in a row that found nothing
 * @again: so many requests after it ended it is asked whether to begin
 * @hurry: log2 of how much sooner than doorbell_usecs the next look is due
 * @seen: req.fetched at the last look, or when it was asked whether to begin
 * @heard: resp.msn when it was asked whether to begin
 * @timer: the next look
 */
struct arx_watch {
	bool on;
	u8 vain;
	u8 again;
	u8 hurry;
	int cpu;
	int origin;
	u32 seen;
	u32 heard;
	unsigned long until;
	struct hrtimer timer;
};

/**
 * struct arx_rd - a READ or atomic at the responder
 * @atomic: else a READ
 * @psn: of the request, and of the first response packet
 * @npkts: response packets
 * @va: address the request named
 * @rkey: key the request named
 * @length: READ: bytes
 * @orig: atomic: the value before
 * @msn: to put in the response
 * @again: a duplicate asked for it
 */
struct arx_rd {
	bool atomic;
	bool again;
	u32 psn;
	u32 npkts;
	u64 va;
	u32 rkey;
	u32 length;
	u64 orig;
	u32 msn;
};

/**
 * struct arx_reply - a response that is due, in order
 * @rd: what is answered: a first request, or the part a duplicate asks for
 * @sent: response packets sent so far
 */
struct arx_reply {
	struct arx_rd rd;
	u32 sent;
};

/* What a NAK ends, and what reports that to the consumer. */
enum arx_nak_end {
	ARX_END_NOTHING,	/* the requester sends again */
	ARX_END_COMPLETED,	/* the QP; a completion reports why */
	ARX_END_FATAL,		/* the QP: IB_EVENT_QP_FATAL */
	ARX_END_INVALID,	/* the QP: IB_EVENT_QP_REQ_ERR */
	ARX_END_ACCESS,		/* the QP: IB_EVENT_QP_ACCESS_ERR */
};

/**
 * struct arx_resp - the responder: runs to memory
 * @lock: serialises all of it
 * @epsn: expected PSN
 * @msn: messages completed, 24 bits
 * @nak_sent: a sequence NAK was sent for @epsn; no other until it arrives
 * @dead: a NAK ended this QP's service; all further requests are dropped
 * @established: IB_EVENT_COMM_EST has been sent
 * @op: enum arx_op of the message in progress
 * @in_message: between its first and last packet
 * @have_rwqe: @rwqe holds the receive WQE of this message
 * @received: bytes of the message placed so far
 * @va: WRITE: where the next byte goes
 * @left: WRITE: bytes still to come by the RETH
 * @rkey: WRITE
 * @rd: READ and atomic requests, a ring of @rd_size
 * @rd_size: entries of @rd: max_dest_rd_atomic, rounded up to a power of two
 *	since what counts them comes around, or 0
 * @rd_next: count of requests ever stored in @rd
 * @replies: responses due, a ring of twice @rd_size
 * @reply_head: count of replies ever queued
 * @reply_tail: count of replies ever finished
 * @ack_due: an ACK or NAK follows behind the replies
 * @unacked: packets with payload since the last one
 * @told: @msn of the last one
 * @vain: how many in a row were about one message, at most ARX_ACK_VAIN
 * @polled: as of struct arx_run, of any part of the message
 * @ack_syndrome: its AETH syndrome
 * @ack_psn: its PSN
 * @ack_end: what it ends
 * @flushed: in the error state: IB_EVENT_QP_LAST_WQE_REACHED has been sent
 * @out: the way out; its batch is empty while @lock is free
 * @rwqe: receive WQE in use
 */
struct arx_resp {
	spinlock_t lock;	/* of all */
	u32 epsn;
	u32 msn;
	bool nak_sent;
	bool dead;
	bool established;
	u8 op;
	bool in_message;
	bool have_rwqe;
	u32 received;
	u64 va;
	u32 left;
	u32 rkey;
	struct arx_rd *rd;
	u32 rd_size;
	u32 rd_next;
	struct arx_reply *replies;
	u32 reply_head;
	u32 reply_tail;
	bool ack_due;
	u32 unacked;
	u32 told;
	u8 vain;
	bool polled;
	u8 ack_syndrome;
	u32 ack_psn;
	enum arx_nak_end ack_end;
	bool flushed;
	struct arx_tx_out out;
	struct arx_rwqe rwqe;
} ____cacheline_aligned;

/**
 * struct arx_comp - the completer: ACKs and read data to completions
 * @lock: serialises all of it
 * @una: oldest PSN not acknowledged; published
 * @done: SQ index of the oldest WQE not completed; published
 * @told: SQ index behind the last WQE that a completion told of; published
 * @rd_done: READs and atomics completed; published
 * @rd_psns: PSNs of READs and atomics before @una; published, before @una is
 * @rewinds: times the requester must go back to @una; published
 * @rnr_wait: the requester must wait for @rnr; published
 * @retries_left: of attr.retry_cnt
 * @rnr_left: of attr.rnr_retry
 * @rnr_row: RNR NAKs in a row, without progress between them; published
 * @held: expiries of @retransmit, since @una moved, that were no try because
 *	packets had not left this host, though none did meanwhile
 * @waited: if there were some, the least of what was still there
 * @timer_una: @una when @retransmit was armed
 * @gap_una: @una for which a lost response has already caused a rewind
 * @gap: @gap_una is valid
 * @retransmit: fires when nothing was acknowledged for attr.timeout
 * @rnr: ends @rnr_wait
 */
struct arx_comp {
	spinlock_t lock;	/* of all */
	u32 una;
	u32 done;
	u32 told;
	u32 rd_done;
	u32 rd_psns;
	u32 rewinds;
	bool rnr_wait;
	u8 retries_left;
	u8 rnr_left;
	u8 rnr_row;
	u8 held;
	u32 waited;
	u32 timer_una;
	u32 gap_una;
	bool gap;
	struct timer_list retransmit;
	struct hrtimer rnr;
} ____cacheline_aligned;

/**
 * struct arx_qp - queue pair
 * @ib: the core's part
 * @attr: what modify_qp set; written in process context only, under all locks
 * @av: connected: where to; set on the way to RTR; RCU
 * @id: its number, in arx_qps unless it is QP1
 * @state: enum ib_qp_state; written under @state_lock
 * @mtu: path MTU in bytes
 * @service: enum arx_service
 * @sq_sig_all: every send is signalled
 * @tx_blocked: @tx_sk was full; whoever clears it schedules the QP
 * @tx_behind: the same, packets must not overtake those of another CPU
 * @tx_level: bytes that waited below when this host dropped packets, 0: it did
 *	not, or none waited; whoever clears it schedules the QP
 * @tx_sk: owns the packets on their way down, see tx.c
 * @scq: send CQ
 * @sq: send ring
 * @swqes: kernel copies of the WQEs between comp.done and req.fetched
 * @swqe_mask: number of copies there is room for - 1; at most that of @sq.
 *	Both change under req.lock and comp.lock, so either lock will do to read
 * @swqe_size: bytes of one, whole cache lines
 * @max_send_sge: as granted
 * @max_inline: as granted
 * @req: requester
 * @watch: of @sq
 * @comp: completer
 * @resp: responder
 * @rcq: receive CQ
 * @srq: or NULL
 * @rq: own receive queue, unless @srq
 * @sq_prod: kernel consumers: next slot to fill, under @post_lock
 * @post_lock: kernel consumers' posting of sends
 * @state_lock: innermost but for the event handler
 * @work: runs requester and responder from softirq context
 * @move: the same, on a certain CPU
 * @tx_round: packets of UC or UD have been delivered, see tx.c
 * @memcg: memory cgroup of the application that made it, or NULL
 * @grow: makes room for more copies than can be had in atomic context
 * @full: there was no memory for that; not tried again until the QP is reset
 * @tx_retry: this host dropped packets: schedules the QP a little later
 * @worker: of its application, or NULL; see worker.c
 * @late: goes on with what stays on this machine, without a @worker
 * @late_link: in the list of @worker; under its lock
 * @retired: it is to be destroyed: @worker takes it no more; under its lock
 *
 * In such an order that what a message comes by is in few cache lines: with
 * thousands of QPs in turn, to fetch these is what one more of them costs. The
 * sender's are from the end of @attr on, the receiver's there and in @resp.
 */
struct arx_qp {
	struct ib_qp ib;
	struct ib_qp_attr attr;
	struct arx_av __rcu *av;
	struct arx_id id;
	enum ib_qp_state state;
	u32 mtu;
	u8 service;
	bool sq_sig_all;
	bool tx_blocked;
	bool tx_behind;
	u32 tx_level;
	struct sock *tx_sk;
	struct arx_cq *scq;
	struct arx_ring sq;
	void *swqes;
	u32 swqe_mask;
	u32 swqe_size;
	u32 max_send_sge;
	u32 max_inline;
	struct arx_req req;
	struct arx_watch watch;
	struct arx_comp comp;
	struct arx_resp resp;
	struct arx_cq *rcq;
	struct arx_srq *srq;
	struct arx_recvq rq;
	u32 sq_prod;
	spinlock_t post_lock;	/* of sq_prod */
	spinlock_t state_lock;	/* of writing state */
	struct work_struct work;
	struct work_struct move;
	struct work_struct tx_round;
	struct mem_cgroup *memcg;
	struct work_struct grow;
	bool full;
	struct hrtimer tx_retry;
	struct arx_worker *worker;
	struct work_struct late;
	struct list_head late_link;
	bool retired;
};

extern struct arx_ids arx_qps;

static inline struct arx_qp *to_arx_qp(struct ib_qp *ib)
{
	return container_of(ib, struct arx_qp, ib);
}

/**
 * arx_qp_find - a QP by its number, or NULL
 * @qpn: any value, from the wire or from a user
 *
 * Context: in a section; the QP is valid to its end.
 */
static inline struct arx_qp *arx_qp_find(u32 qpn)
{
	struct arx_id *id = arx_ids_find(&arx_qps, qpn);

	return id ? container_of(id, struct arx_qp, id) : NULL;
}

static inline struct arx_dev *arx_qp_dev(const struct arx_qp *qp)
{
	return to_arx_dev(qp->ib.device);
}

static inline struct arx_recvq *arx_qp_recvq(struct arx_qp *qp)
{
	return qp->srq ? &qp->srq->q : &qp->rq;
}

static inline struct arx_swqe *arx_qp_swqe(const struct arx_qp *qp, u32 index)
{
	return qp->swqes + (size_t)(index & qp->swqe_mask) * qp->swqe_size;
}

/*
 * For counts of one stage that others read: whoever sees the new one sees what
 * was written before it, too.
 */
static inline void arx_publish(u32 *count, u32 value)
{
	smp_store_release(count, value);	/* pairs with arx_published() */
}

static inline u32 arx_published(const u32 *count)
{
	return smp_load_acquire(count);		/* pairs with arx_publish() */
}

static inline enum ib_qp_state arx_qp_state(const struct arx_qp *qp)
{
	return READ_ONCE(qp->state);
}

#endif /* ARX_QP_H */
