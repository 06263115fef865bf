// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters to which QPs are bound ("rdma statistic qp bind", "mode auto"). A
 * QP counts where its pointer qp->stats says, so a QP that is bound to no
 * counter costs nothing more. The core adds the values of all counters, also of
 * those that have ended, to those of the port.
 *
 * A stage that runs while its QP is unbound may still count in the old memory.
 * So the memory of a counter stays as long as the device, and the next counter
 * takes it over.
 */

#include <linux/rculist.h>
#include <linux/slab.h>

#include "counter.h"
#include "qp.h"

static struct arx_counter_mem *arx_counter_new(struct arx_dev *dev)
{
	struct arx_counter_mem *c = kzalloc(sizeof(*c), GFP_KERNEL);

	if (!c)
		return NULL;
	c->stats = alloc_percpu(struct arx_stats);
	if (!c->stats) {
		kfree(c);
		return NULL;
	}
	c->id = ++dev->counters.last_id;
	list_add_tail_rcu(&c->link, &dev->counters.list);
	return c;
}

/* Memory for a new counter, or NULL. */
static struct arx_counter_mem *arx_counter_take(struct arx_dev *dev)
{
	struct arx_counter_mem *c;
	enum arx_counter i;

	list_for_each_entry(c, &dev->counters.list, link)
		if (!c->used)
			goto found;
	c = arx_counter_new(dev);
	if (!c)
		return NULL;
found:
	c->used = true;
	for (i = 0; i < ARX_NUM_COUNTERS; i++)
		c->base[i] = arx_stats_sum(c->stats, i);
	return c;
}

static struct arx_counter_mem *arx_counter_find(struct arx_dev *dev, u32 id)
{
	struct arx_counter_mem *c;

	list_for_each_entry(c, &dev->counters.list, link)
		if (c->id == id)
			return c;
	return NULL;
}

/**
 * arx_counter_bind_qp - verb: a QP counts for a counter from now on
 * @counter: the counter; without an id it is new and gets one
 * @ib: QP that is not bound
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int arx_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ib)
{
	struct arx_dev *dev = to_arx_dev(ib->device);
	struct arx_counter_mem *c;

	mutex_lock(&dev->counters.lock);
	c = counter->id ? arx_counter_find(dev, counter->id) :
			  arx_counter_take(dev);
	mutex_unlock(&dev->counters.lock);
	if (!c)
		return -ENOMEM;
	counter->id = c->id;
	WRITE_ONCE(to_arx_qp(ib)->stats, c->stats);
	ib->counter = counter;
	return 0;
}

/**
 * arx_counter_unbind_qp - verb: a QP counts for the port alone again
 * @ib: QP that is bound
 *
 * Return: 0.
 */
int arx_counter_unbind_qp(struct ib_qp *ib)
{
	WRITE_ONCE(to_arx_qp(ib)->stats, to_arx_dev(ib->device)->stats);
	ib->counter = NULL;
	return 0;
}

/**
 * arx_counter_dealloc - verb: a counter ends
 * @counter: a counter without QPs
 *
 * Context: may sleep.
 * Return: 0.
 */
int arx_counter_dealloc(struct rdma_counter *counter)
{
	struct arx_dev *dev = to_arx_dev(counter->device);
	struct arx_counter_mem *c;

	mutex_lock(&dev->counters.lock);
	c = arx_counter_find(dev, counter->id);
	if (c)
		c->used = false;
	mutex_unlock(&dev->counters.lock);
	return 0;
}

/**
 * arx_counter_alloc_stats - verb: the table of a counter
 * @counter: new
 *
 * Return: table, or NULL without memory.
 */
struct rdma_hw_stats *arx_counter_alloc_stats(struct rdma_counter *counter)
{
	return arx_alloc_hw_port_stats(counter->device, counter->port);
}

/**
 * arx_counter_update_stats - verb: read a counter
 * @counter: a counter that has been bound to a QP
 *
 * Context: may sleep.
 * Return: 0 or -EINVAL.
 */
int arx_counter_update_stats(struct rdma_counter *counter)
{
	struct arx_dev *dev = to_arx_dev(counter->device);
	struct arx_counter_mem *c;
	enum arx_counter i;

	mutex_lock(&dev->counters.lock);
	c = arx_counter_find(dev, counter->id);
	for (i = 0; c && i < ARX_NUM_COUNTERS; i++)
		counter->stats->value[i] =
			arx_stats_sum(c->stats, i) - c->base[i];
	mutex_unlock(&dev->counters.lock);
	return c ? 0 : -EINVAL;
}

/**
 * arx_counters_init - prepare a device for counters
 * @dev: new device
 */
void arx_counters_init(struct arx_dev *dev)
{
	mutex_init(&dev->counters.lock);
	INIT_LIST_HEAD(&dev->counters.list);
}

/**
 * arx_counters_exit - free the memory of all counters
 * @dev: device without QPs
 */
void arx_counters_exit(struct arx_dev *dev)
{
	struct arx_counter_mem *c, *next;

	list_for_each_entry_safe(c, next, &dev->counters.list, link) {
		free_percpu(c->stats);
		kfree(c);
	}
}
