// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Limits of users. Any user may open the devices, and the objects of a user
 * must not be more than the machine can bear.
 *
 * Rings are memory that cannot be swapped out. Each user has an allowance, so
 * that small programs work with the smallest RLIMIT_MEMLOCK. Memory beyond the
 * allowance counts as pinned memory of the process, like the regions that it
 * registers, and is subject to its RLIMIT_MEMLOCK unless it has CAP_IPC_LOCK.
 * (perf counts its buffers in the same way.)
 *
 * Received packets that a QP keeps count as those in the receive queue of a UDP
 * socket do: in the memory cgroup of the process that created the QP, and in
 * net.ipv4.udp_mem.
 *
 * The allowances are not those of struct user_struct for perf and io_uring,
 * because arx would then take from their users.
 */

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "account.h"

static LIST_HEAD(arx_users);
static DEFINE_MUTEX(arx_users_mutex);

static struct arx_user *arx_user_find(kuid_t uid)
{
	struct arx_user *user;

	lockdep_assert_held(&arx_users_mutex);
	list_for_each_entry(user, &arx_users, link)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

static struct arx_user *arx_user_create(kuid_t uid)
{
	struct arx_user *user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);

	if (!user)
		return NULL;
	user->uid = uid;
	refcount_set(&user->ref, 1);
	list_add(&user->link, &arx_users);
	return user;
}

/**
 * arx_user_current - the user of the current process
 *
 * Context: may sleep.
 * Return: the user with a reference, or NULL if there is no memory.
 */
struct arx_user *arx_user_current(void)
{
	struct arx_user *user;

	mutex_lock(&arx_users_mutex);
	user = arx_user_find(current_uid());
	if (user)
		refcount_inc(&user->ref);
	else
		user = arx_user_create(current_uid());
	mutex_unlock(&arx_users_mutex);
	return user;
}

/**
 * arx_user_put - drop a reference
 * @user: user
 *
 * Context: may sleep.
 */
void arx_user_put(struct arx_user *user)
{
	if (!refcount_dec_and_mutex_lock(&user->ref, &arx_users_mutex))
		return;
	list_del(&user->link);
	mutex_unlock(&arx_users_mutex);
	kfree(user);
}

/**
 * arx_user_begin_job - count a job that finds pages
 * @user: user; stays until arx_user_end_job()
 *
 * A program can make a job wait as long as the program likes: it may serve the
 * page faults itself. All users share the workers that run jobs. A person with
 * many UIDs can take all of them (protocol.rst, "On-demand paging").
 *
 * Context: any.
 * Return: false if the user has reached the limit.
 */
bool arx_user_begin_job(struct arx_user *user)
{
	return atomic_add_unless(&user->jobs, 1, ARX_USER_JOBS);
}

/**
 * arx_user_end_job - undo arx_user_begin_job()
 * @user: user
 *
 * Context: any.
 */
void arx_user_end_job(struct arx_user *user)
{
	atomic_dec(&user->jobs);
}

/**
 * arx_user_attach - count a QP that is about to be attached to a multicast
 *	group
 * @user: user
 *
 * A group makes the machine join it, and netdevs have few groups. Sockets have
 * a limit, too.
 *
 * Context: process.
 * Return: 0, or -ENOBUFS, as for a socket, if the user has reached the limit.
 */
int arx_user_attach(struct arx_user *user)
{
	if (atomic_long_inc_return(&user->attachments) <=
		    ARX_USER_ATTACHMENTS ||
	    capable(CAP_NET_ADMIN)) {
		refcount_inc(&user->ref);
		return 0;
	}
	atomic_long_dec(&user->attachments);
	return -ENOBUFS;
}

/**
 * arx_user_detach - undo arx_user_attach()
 * @user: the user given to arx_user_attach()
 *
 * Context: may sleep.
 */
void arx_user_detach(struct arx_user *user)
{
	atomic_long_dec(&user->attachments);
	arx_user_put(user);
}

/* Take up to @pages from the user's allowance; returns the number taken. */
static unsigned long arx_user_allow(struct arx_user *user, unsigned long pages)
{
	long have = atomic_long_read(&user->ring_pages);
	unsigned long allowed;

	do {
		allowed = min_t(unsigned long, pages,
				ARX_USER_RING_PAGES - have);
	} while (!atomic_long_try_cmpxchg(&user->ring_pages, &have,
					  have + allowed));
	return allowed;
}

static int arx_charge_pinned(struct arx_charge *charge, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	struct mm_struct *mm = current->mm;

	if (atomic64_add_return(pages, &mm->pinned_vm) > limit &&
	    !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		return -ENOMEM;
	}
	mmgrab(mm);
	charge->mm = mm;
	charge->pinned = pages;
	return 0;
}

/**
 * arx_charge_pages - charge the memory of a ring
 * @charge: receives the account
 * @user: owner of the ring, the user of the current process
 * @pages: number of pages
 *
 * Context: process.
 * Return: 0, or -ENOMEM beyond the limit, as for a region.
 */
int arx_charge_pages(struct arx_charge *charge, struct arx_user *user,
		     unsigned long pages)
{
	int err = 0;

	*charge = (struct arx_charge) {
		.user = user,
		.allowed = arx_user_allow(user, pages),
	};
	refcount_inc(&user->ref);
	if (charge->allowed < pages)
		err = arx_charge_pinned(charge, pages - charge->allowed);
	if (err)
		arx_uncharge_pages(charge);
	return err;
}

/**
 * arx_uncharge_pages - undo arx_charge_pages()
 * @charge: account from arx_charge_pages(), or all zero
 *
 * Context: may sleep, in any process.
 */
void arx_uncharge_pages(struct arx_charge *charge)
{
	if (charge->mm) {
		atomic64_sub(charge->pinned, &charge->mm->pinned_vm);
		mmdrop(charge->mm);
	}
	if (charge->user) {
		atomic_long_sub(charge->allowed, &charge->user->ring_pages);
		arx_user_put(charge->user);
	}
	*charge = (struct arx_charge) {};
}

/**
 * arx_charged_zalloc - zeroed memory for a QP that exists already
 * @memcg: memory cgroup of the QP's application; NULL: nobody is charged, not
 *	even the current process
 * @size: bytes
 * @gfp: how to allocate. Beyond the cgroup's limit an allocation that cannot
 *	sleep fails, unless @gfp has __GFP_HIGH
 *
 * A stage may run in any process, and in softirqs.
 *
 * Context: as @gfp says, but no NMI.
 * Return: the memory, for kfree() or, if @gfp allows sleeping, for kvfree();
 * NULL if there is none.
 */
void *arx_charged_zalloc(struct mem_cgroup *memcg, size_t size, gfp_t gfp)
{
	struct mem_cgroup *old;
	void *new;

	gfp |= __GFP_NOWARN;
	if (memcg)
		gfp |= __GFP_ACCOUNT;
	old = set_active_memcg(memcg);
	if (gfpflags_allow_blocking(gfp))
		new = kvzalloc(size, gfp);
	else
		new = kzalloc(size, gfp);
	set_active_memcg(old);
	return new;
}

/**
 * arx_charge_packets - count received packets that are kept
 * @sk: UDP socket
 * @bytes: their truesize
 *
 * The lock of the receive queue protects the socket's account, as for packets
 * that are in that queue: two stages of a QP share the account.
 *
 * Context: any but hard interrupts.
 * Return: false if all UDP sockets together would have more than they may. The
 * memory cgroup is charged even beyond its limit, as for any packet that a
 * softirq receives; the stage's own bound holds.
 */
bool arx_charge_packets(struct sock *sk, u32 bytes)
{
	bool charged;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	charged = __sk_rmem_schedule(sk, bytes, false);
	if (charged) {
		atomic_add(bytes, &sk->sk_rmem_alloc);
		sk_mem_charge(sk, bytes);
	}
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	return charged;
}

/**
 * arx_uncharge_packets - undo arx_charge_packets()
 * @sk: the same socket
 * @bytes: part of the bytes that were charged
 *
 * Context: any but hard interrupts.
 */
void arx_uncharge_packets(struct sock *sk, u32 bytes)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	atomic_sub(bytes, &sk->sk_rmem_alloc);
	sk_mem_uncharge(sk, bytes);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
}
