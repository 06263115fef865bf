// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The packets of a QP arrive in the order in which they were sent.
 *
 * All packets of a QP use one transmit queue of the netdev. If the queue has a
 * qdisc, the qdisc keeps the order, whichever CPU sends. Without a qdisc (veth,
 * lo) each CPU has a queue of its own, and packets that one CPU sends may
 * overtake those that another CPU has sent. A stage then sends on another CPU
 * only when all packets of the QP are delivered, as far as this machine does
 * that, or when overtaking does no harm.
 */

#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <net/sch_generic.h>
#include <net/sock.h>

#include "order.h"
#include "schedule.h"
#include "sock.h"

/*
 * How often in a row a CPU is drained that has more packets to deliver: others
 * may send to that CPU without end.
 */
#define ARX_ORDER_TRIES		8

/* How often arx_order_settle() looks whether a QP has settled. */
#define ARX_ORDER_LOOKS		200

/* True if a netdev passes all packets to netdevs below it, and to no other. */
static bool arx_order_passes_down(const struct net_device *netdev)
{
	return is_vlan_dev(netdev) || netif_is_bond_master(netdev);
}

/*
 * True if packets that leave by a netdev wait in queues of netdevs below it.
 * Packets from a macvlan to another one on the same netdev wait nowhere.
 */
static bool arx_order_queues_below(const struct net_device *netdev)
{
	return arx_order_passes_down(netdev) || netif_is_macvlan(netdev);
}

static int arx_order_is_lowest(struct net_device *netdev,
			       struct netdev_nested_priv *priv)
{
	priv->data = netdev;
	return !arx_order_queues_below(netdev);
}

/*
 * The netdev in whose queues packets wait that leave by @netdev. All netdevs of
 * a bond have the same number of queues, and the same traffic classes. The port
 * by which a packet leaves a bridge is not known here, see protocol.rst,
 * "Packets".
 */
static const struct net_device *arx_order_lowest(struct net_device *netdev)
{
	struct netdev_nested_priv priv = { .data = netdev };

	if (arx_order_queues_below(netdev))
		netdev_walk_all_lower_dev_rcu(netdev, arx_order_is_lowest,
					      &priv);
	return priv.data;
}

/**
 * arx_order_queue - the transmit queue of a QP's packets
 * @qp: any QP
 * @netdev: by which the packets leave
 * @priority: of the packets with data. The queue belongs to the socket, in
 *	which another CPU may be sending data, so a CNP takes the queue of the
 *	data
 *
 * QPs are spread over the queues of the traffic class of their priority. If arx
 * did not choose the queue, the stack would choose one by the CPU that sends,
 * and packets of a QP would overtake each other. This also holds for a netdev
 * with one queue above a netdev with several.
 *
 * Context: RCU read section.
 * Return: number of the queue.
 */
u32 arx_order_queue(const struct arx_qp *qp, struct net_device *netdev,
		    u32 priority)
{
	const struct net_device *lowest = arx_order_lowest(netdev);
	u32 hash = qp->tx_sk->sk_txhash;
	struct netdev_tc_txq class = {};

	if (READ_ONCE(lowest->num_tc))
		class = lowest->tc_to_txq[netdev_get_prio_tc_map(lowest,
								 priority)];
	if (!class.count)
		return reciprocal_scale(hash,
					READ_ONCE(lowest->real_num_tx_queues));
	return class.offset + reciprocal_scale(hash, class.count);
}

static bool arx_order_has_qdisc(struct net_device *netdev)
{
	return rcu_dereference(netdev_get_tx_queue(netdev, 0)->qdisc)->enqueue;
}

static int arx_order_is_lost_by(struct net_device *netdev,
				struct netdev_nested_priv *priv)
{
	return !arx_order_passes_down(netdev) && !arx_order_has_qdisc(netdev);
}

/* True if a qdisc keeps the order; it may belong to netdevs below. */
static bool arx_order_is_kept_by(struct net_device *netdev)
{
	struct netdev_nested_priv priv = {};

	return arx_order_has_qdisc(netdev) ||
	       (arx_order_passes_down(netdev) &&
		!netdev_walk_all_lower_dev_rcu(netdev, arx_order_is_lost_by,
					       &priv));
}

/* True if all requests before @run have arrived. */
static bool arx_order_is_oldest(const struct arx_qp *qp,
				const struct arx_run *run)
{
	return arx_qp_is_acked(qp) && !arx_is_response(run->h.op) &&
	       run->h.psn == arx_published(&qp->comp.una);
}

/*
 * True if @run must not overtake the packets of order->cpu, because that would
 * look like a loss. The oldest request follows none. But if it is sent again,
 * later ones may be in flight: a peer that keeps no packets refuses those that
 * arrive behind it, and asks for all of them once more.
 */
static bool arx_order_matters(const struct arx_qp *qp,
			      const struct arx_run *run)
{
	return !arx_order_is_oldest(qp, run) || run->again;
}

/* Have the CPU that sent before deliver first, then schedule the QP here. */
static void arx_order_drain(struct arx_qp *qp, struct arx_order *order)
{
	queue_work_on(order->cpu, system_bh_wq,
		      order == &qp->resp.out.order ? &qp->resp.drain :
						     &qp->req.drain);
	order->cpu = ARX_ORDER_DRAINS;
	order->next = smp_processor_id();
}

/*
 * True if a stage may send @run on this CPU. If not, the socket or the stage's
 * drain schedules the QP. Packets may be queued for ever: they must not keep
 * the oldest request, which is sent again when its time is over.
 *
 * sock_wfree() runs when the receiving namespace takes the packet from the
 * queue, which is before delivery: the namespace may be a router's, which has
 * the packet delivered by another queue of the same CPU. So the CPU that sent
 * before is drained first. An ACK does not wait for that, because a consumer
 * may end its QP meanwhile. An offline CPU has no packets left.
 */
static bool arx_order_may_move(struct arx_qp *qp, struct arx_order *order,
			       const struct arx_run *run)
{
	if (order->cpu == ARX_ORDER_DRAINS)
		return false;
	if (order->cpu == ARX_ORDER_FREE || !arx_order_matters(qp, run) ||
	    arx_order_is_kept_by(arx_qp_dev(qp)->netdev))
		return true;
	if (!arx_sock_is_empty(qp))
		return arx_order_is_oldest(qp, run);
	if (run->h.op == ARX_OP_ACK || !cpu_online(order->cpu))
		return true;
	arx_order_drain(qp, order);
	return false;
}

/**
 * arx_order_move - true if a stage may send on another CPU than order->cpu
 * @qp: sender
 * @order: of the stage
 * @run: what is to be sent
 *
 * Nothing has to follow an ACK: ACKs that were overtaken say nothing new.
 *
 * Context: bottom halves off, the stage's lock held.
 * Return: true if the stage may send the run now. If not, the QP is scheduled
 * when it may.
 */
bool arx_order_move(struct arx_qp *qp, struct arx_order *order,
		    const struct arx_run *run)
{
	if (!arx_order_may_move(qp, order, run)) {
		arx_count(qp, TX_BEHIND);
		return false;
	}
	order->cpu = run->h.op == ARX_OP_ACK ? ARX_ORDER_FREE :
					       smp_processor_id();
	return true;
}

/* True if packets are left that this CPU has to deliver. */
static bool arx_order_delivers(void)
{
	return !list_empty(this_cpu_ptr(&softnet_data.poll_list));
}

/*
 * Runs on the CPU that sent packets before, after the softirq that delivers
 * them. If that softirq had more packets than it may take, the stage has this
 * CPU drained again. The QP's next turn also serves callers that found @lock
 * taken, the stage's.
 */
static void arx_order_drained(struct arx_qp *qp, struct arx_order *order,
			      spinlock_t *lock)
{
	int next;

	spin_lock(lock);
	if (arx_order_delivers() && order->tries) {
		order->tries--;
		order->cpu = smp_processor_id();
	} else {
		order->tries = ARX_ORDER_TRIES;
		order->cpu = ARX_ORDER_FREE;
	}
	next = order->next;
	spin_unlock(lock);

	arx_qp_schedule_on(qp, next);
}

static void arx_order_requests_drained(struct work_struct *work)
{
	struct arx_qp *qp = container_of(work, struct arx_qp, req.drain);

	arx_order_drained(qp, &qp->req.out.order, &qp->req.lock);
}

static void arx_order_responses_drained(struct work_struct *work)
{
	struct arx_qp *qp = container_of(work, struct arx_qp, resp.drain);

	arx_order_drained(qp, &qp->resp.out.order, &qp->resp.lock);
}

/*
 * True if responses wait for another CPU. The drain is busy until it has
 * scheduled the QP, and @move until it has sent them.
 */
static bool arx_order_drains_responses(struct arx_qp *qp)
{
	bool drains;

	spin_lock_bh(&qp->resp.lock);
	drains = qp->resp.out.order.cpu == ARX_ORDER_DRAINS;
	spin_unlock_bh(&qp->resp.lock);
	return drains || work_busy(&qp->resp.drain) || work_busy(&qp->move);
}

/**
 * arx_order_settle - let responses be sent that wait for another CPU
 * @qp: any QP
 *
 * No flush_work(): the consumer may be a work that frees memory. A QP with much
 * traffic may never be found idle, so this takes a few milliseconds at most.
 *
 * Context: may sleep; none of the QP locks held.
 */
void arx_order_settle(struct arx_qp *qp)
{
	int i;

	for (i = 0; i < ARX_ORDER_LOOKS && arx_order_drains_responses(qp); i++)
		usleep_range(20, 50);
}

/**
 * arx_order_init - no packet of a QP has been sent
 * @qp: being created
 */
void arx_order_init(struct arx_qp *qp)
{
	const struct arx_order none = {
		.cpu = ARX_ORDER_FREE,
		.tries = ARX_ORDER_TRIES,
	};

	qp->req.out.order = none;
	qp->resp.out.order = none;
	INIT_WORK(&qp->req.drain, arx_order_requests_drained);
	INIT_WORK(&qp->resp.drain, arx_order_responses_drained);
}
