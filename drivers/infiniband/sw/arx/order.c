// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The packets of a QP arrive in the order in which they were sent.
 *
 * All packets of a QP use one transmit queue of the netdev. If the queue has a
 * qdisc, the qdisc keeps the order, whichever CPU sends. Without a qdisc (veth,
 * lo) each CPU has a queue of its own, and packets that one CPU sends may
 * overtake those that another CPU has sent. A stage then sends on another CPU
 * only when no packet of the QP is queued any more, or when overtaking does no
 * harm.
 */

#include <linux/if_vlan.h>
#include <net/sch_generic.h>
#include <net/sock.h>

#include "order.h"
#include "schedule.h"
#include "sock.h"

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

/*
 * True if @run must not overtake the packets of order->cpu, because that would
 * look like a loss. A request may overtake those that have arrived.
 */
static bool arx_order_matters(const struct arx_qp *qp,
			      const struct arx_run *run)
{
	return !arx_qp_is_acked(qp) || arx_is_response(run->h.op) ||
	       run->h.psn != arx_published(&qp->comp.una);
}

/* Have the CPU that sent before deliver first, then schedule the QP here. */
static void arx_order_drain(struct arx_qp *qp, struct arx_order *order)
{
	queue_work_on(order->cpu, system_bh_wq, &qp->tx_drain);
	order->cpu = ARX_ORDER_DRAINS;
	order->next = smp_processor_id();
}

/*
 * True if a stage may send @run on this CPU. If not, the socket or tx_drain
 * schedules the QP.
 *
 * sock_wfree() runs when the receiving namespace takes the packet from the
 * queue, which is before delivery. RC accepts that: overtaking there is rare,
 * and the packets are asked for again. For UC and UD the CPU that sent before
 * is drained first. An offline CPU has no packets left.
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
		return false;
	if (arx_qp_is_acked(qp) || !cpu_online(order->cpu))
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

/*
 * Runs on the CPU that sent packets of UC or UD before, after the softirq that
 * delivers them. The QP's next turn also serves callers that found the lock
 * taken.
 */
static void arx_order_drained(struct work_struct *work)
{
	struct arx_qp *qp = container_of(work, struct arx_qp, tx_drain);
	struct arx_order *order = &qp->req.out.order;
	int next;

	spin_lock(&qp->req.lock);
	order->cpu = ARX_ORDER_FREE;
	next = order->next;
	spin_unlock(&qp->req.lock);

	arx_qp_schedule_on(qp, next);
}

/**
 * arx_order_init - no packet of a QP has been sent
 * @qp: being created
 */
void arx_order_init(struct arx_qp *qp)
{
	qp->req.out.order.cpu = ARX_ORDER_FREE;
	qp->resp.out.order.cpu = ARX_ORDER_FREE;
	INIT_WORK(&qp->tx_drain, arx_order_drained);
}
