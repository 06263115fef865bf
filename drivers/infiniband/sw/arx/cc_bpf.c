// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Congestion control by a BPF program. bpf.c registers programs. This file runs
 * the registered program, which is one for the whole module, and knows nothing
 * about BPF. Without a program QPs send as with the fixed window.
 *
 * QPs hold no reference to a program. Each program has a number, its
 * generation, and the state of a QP has the generation of the program that the
 * state belongs to. A QP that finds another program forgets its state and
 * begins anew.
 *
 * A program writes to struct arx_cc_bpf only, under the QP's lock. Senders do
 * not hold that lock, and read window and rate of struct arx_cc. These get
 * their values when the program has returned, and within bounds, so a sender
 * never sees what a broken program writes.
 */

#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "cc_bpf.h"

/* Bounds of a rate in bytes per second: 1 Mbit/s and 400 Gbit/s. */
#define ARX_CC_BPF_LEAST	125000ULL
#define ARX_CC_BPF_MOST		50000000000ULL

/**
 * struct arx_cc_bpf_program - a registered program
 * @ops: its functions; each may be NULL
 * @generation: its number, never 0, different from those of all others
 */
struct arx_cc_bpf_program {
	const struct arx_cc_ops *ops;
	u64 generation;
};

static const struct arx_cc_ops arx_cc_bpf_no_ops;
static const struct arx_cc_bpf_program arx_cc_bpf_none = {
	.ops = &arx_cc_bpf_no_ops,
};

/* Serialises registrations. */
static DEFINE_MUTEX(arx_cc_bpf_lock);
static struct arx_cc_bpf_program __rcu *arx_cc_bpf_program;
/* Of the last program that was registered. */
static u64 arx_cc_bpf_generation;

/* Programs can be registered. Written while the module is loaded only. */
bool arx_cc_bpf_able;

/* Context: RCU read lock held. */
static const struct arx_cc_bpf_program *arx_cc_bpf_get(void)
{
	return rcu_dereference(arx_cc_bpf_program) ?: &arx_cc_bpf_none;
}

/* The program has returned: what it asks for becomes valid, within bounds. */
static void arx_cc_bpf_publish(struct arx_cc *cc)
{
	struct arx_cc_bpf *b = &cc->bpf;

	b->window = clamp(b->window, 1, cc->most);
	if (b->rate)
		b->rate = clamp(b->rate, ARX_CC_BPF_LEAST, ARX_CC_BPF_MOST);
	WRITE_ONCE(cc->window, b->window);
	WRITE_ONCE(cc->rate, b->rate);
}

static void arx_cc_bpf_begin(struct arx_cc *cc,
			     const struct arx_cc_bpf_program *program, u64 now)
{
	memset(&cc->bpf, 0, sizeof(cc->bpf));
	cc->bpf.window = cc->most;
	cc->bpf.generation = program->generation;
	if (program->ops->init)
		program->ops->init(cc, now);
	arx_cc_bpf_publish(cc);
}

/*
 * Returns the functions of the program, whose state @cc has then.
 * Context: RCU read lock held.
 */
static const struct arx_cc_ops *arx_cc_bpf_enter(struct arx_cc *cc, u64 now)
{
	const struct arx_cc_bpf_program *program = arx_cc_bpf_get();

	if (cc->bpf.generation != program->generation)
		arx_cc_bpf_begin(cc, program, now);
	return program->ops;
}

static void arx_cc_bpf_init(struct arx_cc *cc, u64 now)
{
	rcu_read_lock();
	arx_cc_bpf_begin(cc, arx_cc_bpf_get(), now);
	rcu_read_unlock();
}

static void arx_cc_bpf_ack(struct arx_cc *cc, u32 n, u64 rtt, u64 now)
{
	const struct arx_cc_ops *ops;

	rcu_read_lock();
	ops = arx_cc_bpf_enter(cc, now);
	if (ops->ack)
		ops->ack(cc, n, rtt, now);
	if (rtt)
		WRITE_ONCE(cc->limited, false);
	arx_cc_bpf_publish(cc);
	rcu_read_unlock();
}

static void arx_cc_bpf_cnp(struct arx_cc *cc, u64 now)
{
	const struct arx_cc_ops *ops;

	rcu_read_lock();
	ops = arx_cc_bpf_enter(cc, now);
	if (ops->cnp)
		ops->cnp(cc, now);
	arx_cc_bpf_publish(cc);
	rcu_read_unlock();
}

static void arx_cc_bpf_loss(struct arx_cc *cc, u32 n, u64 now)
{
	const struct arx_cc_ops *ops;

	rcu_read_lock();
	ops = arx_cc_bpf_enter(cc, now);
	if (ops->loss)
		ops->loss(cc, n, now);
	arx_cc_bpf_publish(cc);
	rcu_read_unlock();
}

static void arx_cc_bpf_late(struct arx_cc *cc, u32 n, u64 now)
{
	const struct arx_cc_ops *ops;

	rcu_read_lock();
	ops = arx_cc_bpf_enter(cc, now);
	if (ops->late)
		ops->late(cc, n, now);
	arx_cc_bpf_publish(cc);
	rcu_read_unlock();
}

static void arx_cc_bpf_timeout(struct arx_cc *cc, u64 now)
{
	const struct arx_cc_ops *ops;

	rcu_read_lock();
	ops = arx_cc_bpf_enter(cc, now);
	if (ops->timeout)
		ops->timeout(cc, now);
	arx_cc_bpf_publish(cc);
	rcu_read_unlock();
}

const struct arx_cc_ops arx_cc_bpf_ops = {
	.init = arx_cc_bpf_init,
	.ack = arx_cc_bpf_ack,
	.cnp = arx_cc_bpf_cnp,
	.loss = arx_cc_bpf_loss,
	.late = arx_cc_bpf_late,
	.timeout = arx_cc_bpf_timeout,
};

/**
 * arx_cc_bpf_replace - register a program, replace it or remove it
 * @old: functions of the registered program, NULL: there is none
 * @new: functions of the next program, NULL: none
 *
 * A QP that reads the pointer before it changes runs the old program under RCU
 * until synchronize_rcu() has returned; a QP that reads it later runs the new
 * one. So no QP runs @old, or uses the memory of its struct, when this function
 * has returned. Both the functions and the generation of a program are in one
 * struct, so a QP never has the functions of one program and the state of
 * another.
 *
 * Context: process; may sleep.
 * Return: 0, -EBUSY: another program than @old is registered, or -ENOMEM. 0
 * always if @old is registered and @new is NULL.
 */
int arx_cc_bpf_replace(const struct arx_cc_ops *old,
		       const struct arx_cc_ops *new)
{
	struct arx_cc_bpf_program *before, *after = NULL;
	int err = 0;

	if (new) {
		after = kzalloc(sizeof(*after), GFP_KERNEL);
		if (!after)
			return -ENOMEM;
		after->ops = new;
	}
	mutex_lock(&arx_cc_bpf_lock);
	before = rcu_dereference_protected(arx_cc_bpf_program,
					   lockdep_is_held(&arx_cc_bpf_lock));
	if ((before ? before->ops : NULL) == old) {
		if (after)
			after->generation = ++arx_cc_bpf_generation;
		rcu_assign_pointer(arx_cc_bpf_program, after);
		synchronize_rcu();
	} else {
		err = -EBUSY;
		before = after;
	}
	mutex_unlock(&arx_cc_bpf_lock);
	kfree(before);
	return err;
}
