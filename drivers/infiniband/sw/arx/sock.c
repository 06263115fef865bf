// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The socket of a QP. It only owns the QP's packets: the stack's own accounting
 * of queued packets then stops the QP, and lets it continue, without a pointer
 * to the QP or into this module in any packet. The socket belongs to the first
 * network namespace, which outlives every QP; routes decide where packets go.
 */

#include <linux/ipv6.h>
#include <net/ip.h>
#include <net/sock.h>
#include <net/tcp_states.h>

#include "schedule.h"
#include "sock.h"

/*
 * Bytes (with overhead) that a QP may have queued: sk_sndbuf, between these two
 * (see arx_sock_adapt()). The least is two super-packets.
 */
#define ARX_SOCK_LEAST		(128 * 1024)
#define ARX_SOCK_MOST		(1024 * 1024)

/*
 * A QP sends packets before their time only while less than this is queued, in
 * bytes with overhead. These are fewer than 100 packets, whatever their size:
 * fq drops packets of a flow that has 100 in the queue.
 */
#define ARX_SOCK_AHEAD		(64 * 1024)

/* Half of sk_sndbuf should leave, and the next turn begin, in this time. */
#define ARX_SOCK_DRAIN_NS	(2 * NSEC_PER_MSEC)

/*
 * FULL: a stage waits until half of the socket's bytes have left, and only the
 * socket starts it. DRAINED: they have left, and the QP is scheduled.
 */
enum arx_sock_state {
	ARX_SOCK_ROOM,
	ARX_SOCK_FULL,
	ARX_SOCK_DRAINED,
};

static bool arx_sock_is_drained(const struct sock *sk)
{
	return sk_wmem_alloc_get(sk) <= READ_ONCE(sk->sk_sndbuf) / 2;
}

/* True in one context only: the one that takes the socket to the next state. */
static bool arx_sock_becomes(struct arx_qp *qp, enum arx_sock_state from,
			     enum arx_sock_state to)
{
	return cmpxchg(&qp->tx_state, from, to) == from;
}

/* A packet has left. True if a stage waits for this. */
static bool arx_sock_wakes(struct arx_qp *qp)
{
	bool wakes = false;

	if (READ_ONCE(qp->tx_behind))
		wakes = xchg(&qp->tx_behind, false);
	if (READ_ONCE(qp->tx_state) == ARX_SOCK_FULL &&
	    arx_sock_is_drained(qp->tx_sk))
		wakes |= arx_sock_becomes(qp, ARX_SOCK_FULL, ARX_SOCK_DRAINED);
	/*
	 * The end of a dropped packet must not count: its bytes were added just
	 * before, so no fewer bytes are queued than tx_level.
	 */
	if (sk_wmem_alloc_get(qp->tx_sk) < READ_ONCE(qp->tx_level))
		wakes |= xchg(&qp->tx_level, 0);
	return wakes;
}

/* Called at the end of each packet of the socket, in any context. */
static void arx_sock_write_space(struct sock *sk)
{
	struct arx_qp *qp;

	/* the socket's bytes, then tx_behind and tx_state */
	smp_mb__after_atomic();
	arx_section_enter();
	qp = rcu_dereference_sk_user_data(sk);
	if (qp && arx_sock_wakes(qp))
		arx_qp_schedule(qp);
	arx_section_leave();
}

/* The initial wake-up function of a socket: static in the kernel. */
static void (*arx_sock_write_space_default)(struct sock *sk);

/*
 * The path MTU of a QP is negotiated and cannot become smaller. If a packet
 * does not fit, an ICMP message says so, from anybody who can guess addresses
 * and ports. The routes of the host then drop such packets for minutes, even if
 * they fit again soon. So only the MTU of the netdev counts.
 */
static void arx_sock_ignore_pmtu(struct sock *sk)
{
	ip_sock_set_mtu_discover(sk, IP_PMTUDISC_PROBE);
	if (sk->sk_family == AF_INET6)
		WRITE_ONCE(inet6_sk(sk)->pmtudisc, IPV6_PMTUDISC_PROBE);
}

/**
 * arx_sock_init - create a QP's socket
 * @qp: being created
 *
 * Context: may sleep.
 * Return: 0 or the error of the socket's creation.
 */
int arx_sock_init(struct arx_qp *qp)
{
	struct socket *sock;
	int err;

	/* A socket for both protocols, unless there is only one. */
	err = sock_create_kern(&init_net, AF_INET6, SOCK_DGRAM, IPPROTO_UDP,
			       &sock);
	if (err)
		err = sock_create_kern(&init_net, AF_INET, SOCK_DGRAM,
				       IPPROTO_UDP, &sock);
	if (err)
		return err;

	sk_set_txhash(sock->sk);
	/*
	 * fq keeps the rate only of sockets that have a peer, and knows a new
	 * one in old memory by its hash.
	 */
	sock->sk->sk_hash = sock->sk->sk_txhash;
	if (arx_qp_is_connected(qp))
		sock->sk->sk_state = TCP_ESTABLISHED;
	arx_sock_ignore_pmtu(sock->sk);
	sock->sk->sk_sndbuf = ARX_SOCK_LEAST;
	WRITE_ONCE(arx_sock_write_space_default, sock->sk->sk_write_space);
	sock->sk->sk_write_space = arx_sock_write_space;
	rcu_assign_sk_user_data(sock->sk, qp);
	qp->tx_sk = sock->sk;
	return 0;
}

/**
 * arx_sock_forget - keep packets in flight from waking a QP
 * @qp: about to be destroyed
 *
 * No packet leads to @qp once arx_section_wait() has returned after this. A
 * grace period later no packet leads into this module, except through a task
 * that was preempted on its way here: for that task arx_exit() waits.
 *
 * Context: any.
 */
void arx_sock_forget(struct arx_qp *qp)
{
	struct sock *sk = qp->tx_sk;

	WRITE_ONCE(sk->sk_write_space, READ_ONCE(arx_sock_write_space_default));
	rcu_assign_sk_user_data(sk, NULL);
}

/**
 * arx_sock_cleanup - undo arx_sock_init()
 * @qp: arx_sock_forget() was called and @qp sends no more
 *
 * Context: may sleep.
 */
void arx_sock_cleanup(struct arx_qp *qp)
{
	/* Packets keep the socket's memory. */
	sock_release(qp->tx_sk->sk_socket);
	qp->tx_sk = NULL;
}

/**
 * arx_sock_waits - bytes of a QP's packets that are still on this machine
 * @qp: any QP
 *
 * A packet whose end arx_sock_write_space() is handling still has one byte
 * charged. That byte does not count here: a caller that waited for it might get
 * no further wake-up.
 *
 * Context: any.
 * Return: bytes of memory, in a queue, a netdev's ring or waiting for a
 * neighbour's address.
 */
u32 arx_sock_waits(const struct arx_qp *qp)
{
	u32 fill = sk_wmem_alloc_get(qp->tx_sk);

	return fill < SKB_TRUESIZE(0) ? 0 : fill;
}

/**
 * arx_sock_is_empty - true if no packet of a QP is queued on this machine
 * @qp: any QP whose next packets must not overtake those that are queued
 *
 * If not, arx_sock_write_space() schedules the QP with the next packet that
 * ends, most often on the CPU that sent it, and the QP continues there at once.
 *
 * Context: bottom halves off.
 */
bool arx_sock_is_empty(struct arx_qp *qp)
{
	if (!arx_sock_waits(qp))
		return true;
	WRITE_ONCE(qp->tx_behind, true);
	smp_mb();	/* tx_behind, then the socket's bytes once more */
	/*
	 * If the last packet has just ended, the flag stays set: one wake-up
	 * too many, but none too few.
	 */
	return !arx_sock_waits(qp);
}

/*
 * A stage goes on after half of the socket's bytes have left. If all have left
 * by now, the netdev had nothing to send, or a virtual card's consumer takes
 * all at long intervals: more must be queued. If even half took long, the
 * netdev is slow. What is queued then only delays the traffic of everybody,
 * until a qdisc such as CoDel drops packets.
 */
static void arx_sock_adapt(struct arx_qp *qp)
{
	u64 took = ktime_get_ns() - READ_ONCE(qp->tx_full_at);
	struct sock *sk = qp->tx_sk;
	int size = sk->sk_sndbuf;

	if (!arx_sock_waits(qp))
		size = min(size * 2, ARX_SOCK_MOST);
	else if (took > ARX_SOCK_DRAIN_NS)
		size = max(size / 2, ARX_SOCK_LEAST);
	WRITE_ONCE(sk->sk_sndbuf, size);
}

/* A stage waits for room; false if there is room by now. */
static bool arx_sock_block(struct arx_qp *qp)
{
	WRITE_ONCE(qp->tx_full_at, ktime_get_ns());
	WRITE_ONCE(qp->tx_state, ARX_SOCK_FULL);
	smp_mb();	/* tx_state, then the socket's bytes once more */
	if (!arx_sock_is_drained(qp->tx_sk)) {
		arx_count(qp, TX_BLOCKED);
		return true;
	}
	/* The QP's other stage may wait for the same state: wake it. */
	if (arx_sock_becomes(qp, ARX_SOCK_FULL, ARX_SOCK_ROOM))
		arx_qp_schedule(qp);
	return false;
}

/**
 * arx_sock_has_room - true if a QP may have more packets queued
 * @qp: any QP
 *
 * If not, arx_sock_write_space() schedules the QP when there is room again.
 *
 * Context: bottom halves off.
 */
bool arx_sock_has_room(struct arx_qp *qp)
{
	const struct sock *sk = qp->tx_sk;

	if (unlikely(READ_ONCE(qp->tx_state) == ARX_SOCK_DRAINED) &&
	    arx_sock_becomes(qp, ARX_SOCK_DRAINED, ARX_SOCK_ROOM))
		arx_sock_adapt(qp);
	return likely(sk_wmem_alloc_get(sk) < READ_ONCE(sk->sk_sndbuf)) ||
	       !arx_sock_block(qp);
}

/**
 * arx_sock_pace - have the qdisc keep a rate, if that can
 * @qp: any QP
 * @rate: bytes per second, 0: as fast as possible
 *
 * fq keeps the rate of a socket, and packets in their order. fq says so at the
 * first packet, and for the life of the socket. If another qdisc takes the
 * place of fq, packets leave as soon as they are sent.
 *
 * Context: any.
 * Return: true if packets may be sent before their time: fq delays them, and
 * fewer wait than fq accepts of one flow.
 */
bool arx_sock_pace(const struct arx_qp *qp, unsigned long rate)
{
	struct sock *sk = qp->tx_sk;

	/* A rate of an AH is none of the datagrams to other AHs. */
	if (!arx_qp_is_connected(qp))
		return false;
	rate = rate ?: ~0UL;
	/* As SO_MAX_PACING_RATE: without a maximum fq may send at once. */
	if (READ_ONCE(sk->sk_pacing_rate) != rate) {
		WRITE_ONCE(sk->sk_max_pacing_rate, rate);
		WRITE_ONCE(sk->sk_pacing_rate, rate);
	}
	/* As TCP reads it; pairs with fq. */
	return smp_load_acquire(&sk->sk_pacing_status) == SK_PACING_FQ &&
	       sk_wmem_alloc_get(sk) < ARX_SOCK_AHEAD;
}

/**
 * arx_sock_wake_on_less - schedule a QP when fewer bytes are queued than now
 * @qp: any QP; this machine has just dropped packets of it
 *
 * A packet that leaves meanwhile is missed: the caller also sets a timer.
 *
 * Context: bottom halves off.
 */
void arx_sock_wake_on_less(struct arx_qp *qp)
{
	WRITE_ONCE(qp->tx_level, arx_sock_waits(qp));
}

/**
 * arx_sock_icrc_computed - count joined packets that got their ICRCs in the
 *	stack
 * @skb: the joined packets; their socket leads to the sending device, which
 *	counted their ICRCs as avoided. Packets without a socket were received
 *	meanwhile: their ICRCs are not counted here
 * @n: number of packets
 *
 * Context: bottom halves off.
 */
void arx_sock_icrc_computed(const struct sk_buff *skb, u32 n)
{
	struct arx_qp *qp;

	if (!skb->sk ||
	    READ_ONCE(skb->sk->sk_write_space) != arx_sock_write_space)
		return;
	arx_section_enter();
	qp = rcu_dereference_sk_user_data(skb->sk);
	if (qp) {
		arx_count_add(qp, ICRC_COMPUTED, n);
		arx_count_add(qp, ICRC_AVOIDED, -(u64)n);
	}
	arx_section_leave();
}
