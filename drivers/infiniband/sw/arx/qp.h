/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The queue pair. Each stage owns its part and is its only writer. A field that
 * another stage may read is marked "published" and is read with acquire order.
 *
 * Locks nest: req.lock, then resp.lock (the peer's, on one machine), then
 * comp.lock, then the receive queue's, then the CQ's. All are taken with bottom
 * halves off, and nearly all work is done inside a section: a QP found by its
 * number stays valid to the end of the section. See Documentation/locking.rst.
 */
#ifndef ARX_QP_H
#define ARX_QP_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "av.h"
#include "keep.h"
#include "recvq.h"
#include "run.h"
#include "trial.h"

struct arx_cc;
struct arx_cq;
struct arx_loss;
struct arx_worker;
struct sk_buff;

/**
 * struct arx_swqe - kernel copy of a send WQE, from fetch to completion
 * @wqe: the application's WQE, read once
 * @op: enum arx_op on the wire; unused for local work
 * @wc_opcode: enum ib_wc_opcode of the completion
 * @local: sends no packet: fast registration, invalidation, window binding
 * @executed: local work was executed; a retransmission must not repeat it
 * @status: enum ib_wc_status to complete with; set before req.sent passes it
 * @flags: enum arx_pkt_flags of the message's last packet
 * @first_psn: PSN of the first packet
 * @npkts: PSNs used: request packets, or for READ response packets
 * @length: bytes of payload
 * @av: UD: destination
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
	return arx_is_rd(swqe->op);
}

/**
 * struct arx_tx_batch - packets of a stage that leave together
 * @av: destination; NULL: no packets
 * @peer: a QP of this machine that has received the runs already, and whose
 *	responses are due
 * @dst: route of the packets, held; NULL: there are no packets
 * @first: the first packet, from its BTH on; the others follow by ->next
 * @end: place for the next packet
 * @psn: PSN of the first packet; PSNs are consecutive
 * @sport: UDP source port
 * @tos: traffic class with ECN bits
 * @priority: of the packets in queues of this machine
 * @again: some packets were sent before
 * @n: number of packets
 * @len: bytes from BTH to ICRC, of all
 * @largest: bytes of the largest packet
 * @full: no other run may join
 */
struct arx_tx_batch {
	const struct arx_av *av;
	struct arx_qp *peer;
	struct dst_entry *dst;
	struct sk_buff *first;
	struct sk_buff **end;
	u32 psn;
	u16 sport;
	u8 tos;
	u32 priority;
	bool again;
	u32 n;
	u32 len;
	u32 largest;
	bool full;
};

/* Values of arx_order.cpu that are no CPU */
#define ARX_ORDER_FREE		(-1)	/* no packet has to be followed */
#define ARX_ORDER_DRAINS	(-2)	/* until the stage's @drain has run */

/**
 * struct arx_order - packets of a stage that later ones must not overtake
 * @cpu: CPU that sent the packets, or one of the values above
 * @next: if ARX_ORDER_DRAINS: CPU that sends next
 * @tries: how often the CPU may still be drained once more
 */
struct arx_order {
	int cpu;
	int next;
	u32 tries;
};

/**
 * struct arx_tx_out - the transmit side of a stage
 * @batch: packets that have not left yet
 * @order: packets that have left
 * @trial: whether the peer gets packets that a card splits
 * @dropped: this machine dropped a part of the last batch. Nothing more is
 *	accepted until the stage has gone back and cleared this
 * @lost: if @dropped: PSN of the first packet that was dropped
 */
struct arx_tx_out {
	struct arx_tx_batch batch;
	struct arx_order order;
	struct arx_trial trial;
	bool dropped;
	u32 lost;
};

/**
 * struct arx_paging - pages for which a stage waits
 * @job: the job that finds pages, and then starts the QP; NULL if there is
 *	none, ARX_PAGING_FAILED if the last one found none. Only compared: a job
 *	may outlive its QP, and its QP's reset
 * @request: WQE index or PSN of the request for which the last job began; UC
 *	and UD: number of the receive WQE
 * @addr: first address of that job
 * @write: the pages of that job were to be written
 *
 * The stage begins a job under its lock. The job ends by replacing @job, unless
 * a reset has cleared it meanwhile. A page that is needed is looked up again
 * when it is used; so nothing here says that it is there.
 */
struct arx_paging {
	const void *job;
	u32 request;
	u64 addr;
	bool write;
};

#define ARX_PAGING_FAILED	((const void *)1)

/* True while a job finds pages. */
static inline bool arx_paging_is_busy(const struct arx_paging *paging)
{
	/* Pairs with arx_paging_done(). */
	const void *job = smp_load_acquire(&paging->job);

	return job && job != ARX_PAGING_FAILED;
}

/*
 * Packets of SENDs and WRITEs in flight, as long as nothing controls
 * congestion: this bounds a burst into a receiver's backlog; 512 packets of
 * 4 KiB cover 2 MiB. A READ or atomic counts as no packet here: its responses,
 * which take PSNs, too, come the other way.
 */
#define ARX_WINDOW		512

/* The most to which a controller may let it grow, on long paths. */
#define ARX_WINDOW_MOST		2048

/* Bits of arx_req.pending. */
enum arx_req_pending {
	ARX_REQ_RUN,		/* run the requester */
	ARX_REQ_POLL,		/* an interval of the watch has ended */
	ARX_REQ_PULL,		/* the peer here has more READ responses */
};

/**
 * struct arx_req - the requester: SQ to runs
 * @lock: the holder runs the requester for all callers
 * @pending: requests of callers that found @lock taken; checked again after
 *	@lock is released
 * @fetched: SQ index after the last WQE copied; published
 * @sent: SQ index of the WQE to send next; published: all WQEs before it have
 *	been handed over, executed or given a status
 * @offset: payload bytes of WQE @sent already handed over
 * @psn: next PSN to send; goes back on a retransmission
 * @nxt: PSN after the last one ever sent; published
 * @end_psn: PSN after the last fetched WQE
 * @rewinds: the last value of comp.rewinds that was served
 * @fills: the value of comp.fills then
 * @fill_there: if @filling: packets from @comp.una to there that the peer had
 *	reported when that began
 * @fill_end: if @filling, PSN after the packets that are to be sent again
 * @resume: if @filling, PSN to go to after that
 * @rd_sent: READs and atomics handed over, counted like comp.rd_done
 * @rd_psns: their PSNs, counted like comp.rd_psns
 * @unacked: packets sent since the last acknowledge request; ARX_ACK_EVERY if
 *	the packets that asked may not have left, so that the next run asks
 * @flush_end: if @flushes, SQ index after the last WQE that SQE left unsent
 * @out: its transmit side; the batch is empty between turns
 * @waiting: waits for the completer; published, see arx_requester_run()
 * @blocked: waits for the socket or for another CPU, which start it again;
 *	published
 * @dropped: waits because this machine dropped its packets; tx.c starts it
 *	again; published
 * @failed: a WQE got an error status: no later one is executed
 * @filling: sends again what the peer misses, up to @fill_end
 * @part: if @filling, this is a part of a READ that the peer has executed
 * @flushes: WQEs before @flush_end are flushed in any state
 * @drained: SQD: the drained event has been sent
 * @local: the last run went to a QP of this machine; published
 * @paging: pages of its memory that are not there
 * @credit: bytes that softirqs may copy to that QP, negative after they copied
 *	more than was charged; published
 * @softirqs: shares of WQEs that softirqs have used up in a row; published
 * @drain: runs on the CPU that sent before, when its packets are delivered; see
 *	order.c
 */
struct arx_req {
	spinlock_t lock; /* protects all but pending; senders use trylock */
	unsigned long pending;
	u32 fetched;
	u32 sent;
	u32 offset;
	u32 psn;
	u32 nxt;
	u32 end_psn;
	u32 rewinds;
	u32 fills;
	u32 fill_there;
	u32 fill_end;
	u32 resume;
	u32 rd_sent;
	u32 rd_psns;
	u32 unacked;
	u32 flush_end;
	struct arx_tx_out out;
	bool waiting;
	bool blocked;
	bool dropped;
	bool failed;
	bool filling;
	bool part;
	bool flushes;
	bool drained;
	bool local;
	struct arx_paging paging;
	s32 credit;
	u8 softirqs;
	struct work_struct drain;
};

/**
 * struct arx_watch - polling of the send ring without a doorbell; all under
 *	req.lock
 * @on: ARX_RING_NO_KICK is set; published
 * @idle: intervals without a request, in a row
 * @recheck: number of requests after the end of polling after which the
 *	conditions are checked again
 * @last_posted: requests posted when the interval began, or at the last check
 *	of the conditions
 * @polled: requests posted at the last turn
 * @found: local_clock() when a turn last found requests; published
 * @heard: resp.msn at the last check of the conditions
 * @timer: the end of the interval
 */
struct arx_watch {
	bool on;
	u8 idle;
	u8 recheck;
	u32 last_posted;
	u32 polled;
	u32 heard;
	u64 found;
	struct hrtimer timer;
};

/**
 * struct arx_rd - a READ, an atomic or the like at the responder
 * @op: enum arx_op of the request, see arx_is_rd()
 * @psn: PSN of the request, and of the first response packet
 * @npkts: response packets
 * @va: address in the request
 * @rkey: key in the request
 * @length: READ: bytes; else 0
 * @orig: compare and swap, fetch and add: the value before
 * @msn: MSN of the response
 * @srqn: XRC: SRQ number in the request
 * @replay: replay for a duplicate request
 */
struct arx_rd {
	u8 op;
	bool replay;
	u32 psn;
	u32 npkts;
	u64 va;
	u32 rkey;
	u32 length;
	u64 orig;
	u32 msn;
	u32 srqn;
};

/**
 * struct arx_reply - a response that is due
 * @link: in arx_resp.due, in the order of PSNs, or in arx_resp.idle
 * @rd: the request that is answered: a first request, or the part that a
 *	duplicate asks for
 * @sent: response packets sent so far
 * @again: some of its packets may have been sent before
 */
struct arx_reply {
	struct list_head link;
	struct arx_rd rd;
	u32 sent;
	bool again;
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
 * struct arx_target - where a message is received
 * @q: receive queue
 * @srq: the SRQ that has @q; NULL: @q is the QP's own
 * @cq: receive CQ
 * @pd: PD of the lkeys of receive WQEs; 10.2.9.2: an SRQ has a PD of its own
 * @rkey_pd: PD of the rkeys of requests
 *
 * The responder takes no reference: a QP that was created with these objects
 * holds them by the core's counts as long as it exists. A QP of XRC has none of
 * its own. The SRQ number of each request gives it these objects for the
 * section in which the request is served; otherwise all are NULL.
 */
struct arx_target {
	struct arx_recvq *q;
	struct arx_srq *srq;
	struct arx_cq *cq;
	struct ib_pd *pd;
	struct ib_pd *rkey_pd;
};

/**
 * struct arx_resp - the responder: runs to memory
 * @lock: serialises all of it
 * @epsn: expected PSN
 * @msn: messages completed, 24 bits
 * @nak_sent: a sequence NAK was sent for @epsn; no other is sent until that PSN
 *	arrives
 * @dead: a NAK ended this QP's service; all later requests are dropped
 * @established: IB_EVENT_COMM_EST has been sent
 * @op: enum arx_op of the message in progress
 * @in_message: between its first and last packet
 * @have_rwqe: @rwqe holds the receive WQE of this message
 * @received: bytes of the message placed so far
 * @va: WRITE: address of the next byte
 * @left: WRITE: bytes that the RETH announced and that have not come
 * @rkey: WRITE: key of the RETH
 * @rd: READ and atomic requests, a ring of @rd_size
 * @rd_size: entries of @rd: max_dest_rd_atomic, rounded up to a power of two
 *	because the counts wrap around, or 0
 * @rd_next: count of requests ever stored in @rd
 * @replies: memory for responses, twice @rd_size
 * @due: responses that are due, in the order of their PSNs
 * @idle: those of @replies that are not in use
 * @ack_due: an ACK or NAK follows the responses
 * @unacked: packets with payload since the last ACK
 * @polled: as in struct arx_run, of any part of the message
 * @target: where the message in progress is received
 * @srqn: XRC: SRQ of the message
 * @ack_syndrome: AETH syndrome of the due ACK or NAK
 * @ack_psn: PSN of the due ACK or NAK
 * @ack_end: what the NAK ends
 * @kept: requests that arrived behind @epsn
 * @gap: the last NAK was for a gap that is still open
 * @closing: kept requests are due, which a later share serves; @nak_sent keeps
 *	stages from asking for them, and no NAK was sent
 * @hold: if @closing: responses are held back until all kept requests that are
 *	due have been served. Set if the last NAK was an RNR NAK: the peer then
 *	sends again all requests that the next response does not acknowledge
 * @reports: the peer understands reports
 * @read_at: about when the last READ response with payload was sent, in
 *	jiffies, 0: never; congestion.c looks at it as a hint
 * @flushed: in the error state: IB_EVENT_QP_LAST_WQE_REACHED has been sent
 * @out: its transmit side; the batch is empty while @lock is free
 * @paging: pages that requests write or read, and that are not there
 * @refused: the last RNR NAK was for such pages, and they are being found
 * @rwqe: receive WQE of the message
 * @drain: as in struct arx_req
 */
struct arx_resp {
	spinlock_t lock;	/* protects all below */
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
	struct list_head due;
	struct list_head idle;
	bool ack_due;
	u32 unacked;
	bool polled;
	struct arx_target target;
	u32 srqn;
	u8 ack_syndrome;
	u32 ack_psn;
	enum arx_nak_end ack_end;
	struct arx_keep kept;
	bool gap;
	bool closing;
	bool hold;
	bool reports;
	unsigned long read_at;
	bool flushed;
	struct arx_tx_out out;
	struct arx_paging paging;
	bool refused;
	struct arx_rwqe rwqe;
	struct work_struct drain;
} ____cacheline_aligned;

/**
 * struct arx_rtt - measures round trips, one at a time; see congestion.c
 * @psn: its acknowledgment ends the round trip
 * @newest: req.nxt when packets were last sent
 * @began: when the round trip began, in ns, 0: none is measured
 * @tick: time of the last measurement in jiffies; published
 * @shortest: the shortest round trip in ns, 0: none was measured
 * @taken: round trips measured before there was a controller, up to the number
 *	that shows a long path
 * @near: with ARX_CC_AUTO: the path is not long; published
 * @early: while arx_cc.early is set, PSN after the last packet that was sent
 *	before there was a controller
 */
struct arx_rtt {
	u32 psn;
	u32 newest;
	u64 began;
	unsigned long tick;
	u64 shortest;
	u8 taken;
	bool near;
	u32 early;
};

/**
 * struct arx_comp - the completer: ACKs and read data to completions
 * @lock: serialises all of it
 * @una: oldest PSN not acknowledged; published
 * @there: packets after @una that the peer has reported; published, before @una
 *	is
 * @done: SQ index of the oldest WQE not completed; published
 * @reported: SQ index after the last WQE that a completion reported; published
 * @rd_done: READs and atomics completed; published
 * @rd_psns: PSNs of READs and atomics before @una; published, before @una is
 * @rewinds: times the requester must go back to @una; published
 * @rnr_wait: the requester must wait for @rnr; published
 * @retries_left: remaining retries of attr.retry_cnt
 * @rnr_left: remaining RNR retries of attr.rnr_retry
 * @rnr_row: RNR NAKs in a row, without progress between them; published
 * @held: expiries of @retransmit since @una moved that cost no retry, because
 *	packets were still on this machine, although none had left since the
 *	expiry before
 * @waited: if packets were on this machine: their smallest number of bytes so
 *	far
 * @timer_una: @una when @retransmit was armed
 * @gap: a lost response has caused a rewind since @una moved
 * @reports: the peer understands reports, and sends them
 * @kept: responses that arrived behind a gap
 * @later: if @has_later: PSN after the last one that was acknowledged while
 *	responses before it were missing
 * @has_later: @later is valid; read without the lock by arx_qp.work
 * @fills: of @rewinds: times the requester need only look for packets that are
 *	to be sent again, see arx_completer_fill()
 * @loss: what the peer has and misses; NULL until packets were lost. It stays
 *	until the QP is reset or destroyed, because it knows the round trip time
 *	and how late packets may be: a network that lost one packet will lose
 *	more. It takes 14 KiB of memory
 * @rtt: round trip time that @loss has measured, in ns, for details; 0: unknown
 * @cc: congestion control; NULL until there was congestion, unless the address
 *	has a static rate; published
 * @trip: round trips, for @cc
 * @probe: timer of @loss
 * @retransmit: expires when nothing was acknowledged for attr.timeout
 * @rnr: ends @rnr_wait
 */
struct arx_comp {
	spinlock_t lock;	/* protects all below */
	u32 una;
	u32 there;
	u32 done;
	u32 reported;
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
	bool gap;
	bool reports;
	bool has_later;
	u32 later;
	struct arx_keep kept;
	u32 fills;
	struct arx_loss *loss;
	u64 rtt;
	struct arx_cc *cc;
	struct arx_rtt trip;
	struct hrtimer probe;
	struct timer_list retransmit;
	struct hrtimer rnr;
} ____cacheline_aligned;

/**
 * struct arx_qp - queue pair
 * @ib: the core's part
 * @attr: attributes set by modify_qp; written in process context only, under
 *	all locks
 * @av: connected: destination; set at the transition to RTR; RCU
 * @id: its number, in arx_qps unless it is QP1
 * @state: enum ib_qp_state; written under @state_lock
 * @mtu: path MTU in bytes
 * @service: enum arx_service
 * @halves: ARX_QP_REQUESTER, ARX_QP_RESPONDER or both. A QP that lacks a half
 *	has none of that half's queues
 * @may: enum arx_qp_may: what @state allows, without the half that is missing;
 *	written with @state
 * @acked: the service acknowledges: lost packets are sent again, in order
 * @cc: enum arx_cc_kind; what the device's attributes said for the DSCP of @av
 *	when the QP entered RTR. ARX_CC_FIXED if the service does not
 *	acknowledge
 * @sq_sig_all: every send is signalled
 * @tx_state: sock.c: enum arx_sock_state; written by a stage that finds @tx_sk
 *	full, otherwise by cmpxchg(). The context that takes it away from FULL
 *	schedules the QP
 * @tx_behind: sock.c: a stage waits until @tx_sk is empty; the context that
 *	clears it schedules the QP
 * @tx_level: sock.c: bytes in flight on this machine when it dropped packets,
 *	0: it dropped none, or none were in flight; the context that clears it
 *	schedules the QP
 * @tx_sk: owns the packets on their way through the stack, see tx.c
 * @stats: where it counts: its device's, or those of the counter to which it is
 *	bound
 * @scq: send CQ
 * @sq: send ring
 * @swqes: kernel copies of the WQEs between comp.done and req.fetched
 * @swqe_mask: number of copies that fit - 1; at most that of @sq. Both change
 *	under req.lock and comp.lock, so either lock is enough to read them
 * @swqe_size: bytes of one copy, whole cache lines
 * @max_send_sge: as granted
 * @max_inline: as granted
 * @req: requester
 * @watch: polling of @sq
 * @comp: completer
 * @resp: responder
 * @rq: own receive queue, if @resp.target has no SRQ
 * @sq_prod: kernel consumers: next slot to fill, under @post_lock
 * @post_lock: serialises posting of sends by kernel consumers
 * @state_lock: innermost, except for the event handler
 * @work: runs requester and responder from softirq context
 * @move: the same work, on a certain CPU
 * @memcg: memory cgroup of the application that created it, or NULL
 * @grow: makes room for more copies than atomic context can allocate
 * @full: @grow failed for lack of memory; not tried again until the QP is reset
 * @retry: schedules the QP a little later; see arx_qp_schedule_later()
 * @worker: thread of its application, or NULL; see worker.c
 * @late: continues copies on this machine, without a @worker
 * @late_link: in the list of @worker; under its lock
 * @pd_link: UD QP of an application: in arx_pd.datagram_qps
 * @modify_lock: held by a change of attributes until it has ended the timers,
 *	so that it does not end those of the next change; the outermost lock
 * @tx_full_at: when a stage last found @tx_sk full, in ns
 * @cnp_sent: when the last CNP was sent, in units of 1024 ns, 0: never; see
 *	cnp.c
 * @block_self_mcast: the QP gets no multicast datagram that it sent itself
 * @retired: the QP is being destroyed: @worker does not take it any more; under
 *	its lock
 *
 * The order of fields keeps those of a message's path in few cache lines: with
 * thousands of QPs in turn, fetching these lines is the cost of one more QP.
 * The sender's are from the end of @attr on, the receiver's there and in @resp.
 */
struct arx_qp {
	struct ib_qp ib;
	struct ib_qp_attr attr;
	struct arx_av __rcu *av;
	struct arx_id id;
	enum ib_qp_state state;
	u32 mtu;
	u8 service;
	u8 halves;
	u8 may;
	bool acked;
	u8 cc;
	bool sq_sig_all;
	u8 tx_state;
	bool tx_behind;
	u32 tx_level;
	struct sock *tx_sk;
	struct arx_stats __percpu *stats;
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
	struct arx_recvq rq;
	u32 sq_prod;
	spinlock_t post_lock;	/* protects sq_prod */
	spinlock_t state_lock;	/* protects writes of state */
	struct work_struct work;
	struct work_struct move;
	struct mem_cgroup *memcg;
	struct work_struct grow;
	bool full;
	struct hrtimer retry;
	struct arx_worker *worker;
	struct work_struct late;
	struct list_head late_link;
	struct list_head pd_link;
	struct mutex modify_lock;	/* one change of state at a time */
	u64 tx_full_at;
	u32 cnp_sent;
	bool block_self_mcast;
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

/**
 * arx_qp_key_use - the use of a key by a peer of the QP or by its work request
 * @qp: any QP
 * @pd: protection domain of the request
 * @value: rkey
 * @access: enum ib_access_flags; 0 if the key is only to be invalidated
 * @iova: first byte
 * @length: bytes
 *
 * Return: the use, for arx_key_get() and others.
 */
static inline struct arx_key_use arx_qp_key_use(const struct arx_qp *qp,
						struct ib_pd *pd, u32 value,
						int access, u64 iova,
						u64 length)
{
	return (struct arx_key_use) {
		.dev = arx_qp_dev(qp),
		.pd = pd,
		.qpn = qp->id.nr,
		.value = value,
		.access = access,
		.iova = iova,
		.length = length,
	};
}

static inline struct arx_swqe *arx_qp_swqe(const struct arx_qp *qp, u32 index)
{
	return qp->swqes + (size_t)(index & qp->swqe_mask) * qp->swqe_size;
}

/*
 * For counts of one stage that another stage reads: a reader that sees the new
 * count sees all earlier stores of the stage, too.
 */
static inline void arx_publish(u32 *count, u32 value)
{
	smp_store_release(count, value);	/* pairs with arx_published() */
}

static inline u32 arx_published(const u32 *count)
{
	return smp_load_acquire(count);		/* pairs with arx_publish() */
}

static inline bool arx_qp_is_acked(const struct arx_qp *qp)
{
	return qp->acked;
}

/* The service has one peer, which the QP knows. */
static inline bool arx_qp_is_connected(const struct arx_qp *qp)
{
	return qp->service != ARX_SERVICE_UD;
}

/* What a QP may do in a state. */
enum arx_qp_may {
	ARX_QP_RECEIVE		= BIT(0),	/* accept requests */
	ARX_QP_SEND		= BIT(1),	/* send posted requests */
	ARX_QP_ACKED		= BIT(2),	/* accept acknowledgments */
	ARX_QP_FLUSH		= BIT(3),	/* flush posted sends */
	ARX_QP_FLUSH_RECV	= BIT(4),	/* flush posted receives */
};

/* The halves of a QP, by what they do: requester with completer; responder. */
#define ARX_QP_REQUESTER	(ARX_QP_SEND | ARX_QP_ACKED | ARX_QP_FLUSH)
#define ARX_QP_RESPONDER	(ARX_QP_RECEIVE | ARX_QP_FLUSH_RECV)

static inline bool arx_qp_has_requester(const struct arx_qp *qp)
{
	return qp->halves & ARX_QP_SEND;
}

static inline bool arx_qp_has_responder(const struct arx_qp *qp)
{
	return qp->halves & ARX_QP_RECEIVE;
}

/* True if the QP has a receive queue of its own. */
static inline bool arx_qp_has_rq(const struct arx_qp *qp)
{
	return qp->resp.target.q == &qp->rq;
}

static inline enum ib_qp_state arx_qp_state(const struct arx_qp *qp)
{
	return READ_ONCE(qp->state);
}

#endif /* ARX_QP_H */
