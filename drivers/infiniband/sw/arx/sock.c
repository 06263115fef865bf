// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The socket of a QP. It exists for nothing but to own the QP's packets: the
 * stack's own accounting of what is queued below then holds the QP back, and
 * lets it go on, without a pointer to the QP or into this module in any packet.
 * The socket lives in the first network namespace, which outlives every QP;
 * where packets go is decided by their route.
 */

#include <net/sock.h>

#include "schedule.h"
#include "sock.h"

/*
 * Bytes (with overhead) a QP may have queued below; half wakes it again. Who
 * takes them from a virtual card may not run for milliseconds.
 */
#define ARX_SOCK_SNDBUF		(1024 * 1024)

/* A packet less below: does a stage wait for that, or for this being enough? */
static bool arx_sock_wakes(struct arx_qp *qp)
{
	bool wakes = false;

	if (READ_ONCE(qp->tx_behind))
		wakes = xchg(&qp->tx_behind, false);
	if (READ_ONCE(qp->tx_blocked) &&
	    sk_wmem_alloc_get(qp->tx_sk) <= ARX_SOCK_SNDBUF / 2)
		wakes |= xchg(&qp->tx_blocked, false);
	/* A packet that is dropped ends, too, but leaves the fill as it was. */
	if (sk_wmem_alloc_get(qp->tx_sk) < READ_ONCE(qp->tx_level))
		wakes |= xchg(&qp->tx_level, 0);
	return wakes;
}

/* Called at the end of each packet of the socket, in any context. */
static void arx_sock_write_space(struct sock *sk)
{
	struct arx_qp *qp;

	/* the socket's fill, then tx_behind and tx_blocked */
	smp_mb__after_atomic();
	arx_section_enter();
	qp = rcu_dereference_sk_user_data(sk);
	if (qp && arx_sock_wakes(qp))
		arx_qp_schedule(qp);
	arx_section_leave();
}

/* What a socket's wake-up is when it is made: static in the kernel. */
static void (*arx_sock_write_space_default)(struct sock *sk);

/**
 * arx_sock_init - make a QP's socket
 * @qp: being created
 *
 * Context: may sleep.
 * Return: 0 or the error of making a socket.
 */
int arx_sock_init(struct arx_qp *qp)
{
	struct socket *sock;
	int err;

	/* One that may send both protocols, unless there is only one. */
	err = sock_create_kern(&init_net, AF_INET6, SOCK_DGRAM, IPPROTO_UDP,
			       &sock);
	if (err)
		err = sock_create_kern(&init_net, AF_INET, SOCK_DGRAM,
				       IPPROTO_UDP, &sock);
	if (err)
		return err;

	sk_set_txhash(sock->sk);
	WRITE_ONCE(arx_sock_write_space_default, sock->sk->sk_write_space);
	sock->sk->sk_write_space = arx_sock_write_space;
	rcu_assign_sk_user_data(sock->sk, qp);
	qp->tx_sk = sock->sk;
	return 0;
}

/**
 * arx_sock_forget - packets on their way wake a QP no more
 * @qp: about to be destroyed, after arx_section_wait()
 *
 * From then on none of them leads to @qp, and a grace period later none leads
 * into this module, but for a task that was preempted on its way there, for
 * which arx_exit() waits.
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
	/* Packets keep what they need of it. */
	sock_release(qp->tx_sk->sk_socket);
	qp->tx_sk = NULL;
}

/**
 * arx_sock_waits - how much of a QP's packets is still on this host?
 * @qp: any QP
 *
 * A packet whose end arx_sock_write_space() is just being told of still counts
 * as a byte. It does not here: who waits for it might be told of nothing more.
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
 * arx_sock_must_drain - true if packets of a QP are still queued on this host
 * @qp: any QP, of which packets must not overtake those
 *
 * Then arx_sock_write_space() schedules the QP with the next packet that has
 * ended, and most often on the CPU that sent it, where the QP goes on at once.
 *
 * Context: bottom halves off.
 */
bool arx_sock_must_drain(struct arx_qp *qp)
{
	if (!arx_sock_waits(qp))
		return false;
	WRITE_ONCE(qp->tx_behind, true);
	smp_mb();	/* tx_behind, then the socket's fill once more */
	/* If not, it stays set: one wake-up too many, but none too few. */
	return arx_sock_waits(qp);
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
	struct sock *sk = qp->tx_sk;

	if (likely(sk_wmem_alloc_get(sk) < ARX_SOCK_SNDBUF))
		return true;

	WRITE_ONCE(qp->tx_blocked, true);
	smp_mb();	/* tx_blocked, then the socket's fill once more */
	if (sk_wmem_alloc_get(sk) > ARX_SOCK_SNDBUF / 2) {
		arx_count(arx_qp_dev(qp), TX_BLOCKED);
		return false;
	}
	/* The QP's other stage may wait on the same flag: wake it for that. */
	if (xchg(&qp->tx_blocked, false))
		arx_qp_schedule(qp);
	return true;
}

/**
 * arx_sock_tell_less - schedule a QP when fewer packets are queued than now
 * @qp: any QP; this host has just dropped packets of it
 *
 * A packet that leaves meanwhile is missed: the caller also sets a timer.
 *
 * Context: bottom halves off.
 */
void arx_sock_tell_less(struct arx_qp *qp)
{
	WRITE_ONCE(qp->tx_level, arx_sock_waits(qp));
}

/**
 * arx_sock_icrc_computed - joined packets got their ICRCs on the way down
 * @skb: of them all; its socket leads to the device that sent it, which counted
 *	ICRCs as avoided. Without one it was received by now: that is another's
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
		arx_count_add(arx_qp_dev(qp), ICRC_COMPUTED, n);
		arx_count_add(arx_qp_dev(qp), ICRC_AVOIDED, -(u64)n);
	}
	arx_section_leave();
}
