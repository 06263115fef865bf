/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Limits of users and devices: see account.c. */
#ifndef ARX_ACCOUNT_H
#define ARX_ACCOUNT_H

#include <linux/mm_types.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/uidgid.h>

/*
 * Memory of rings that a user may have without counting against RLIMIT_MEMLOCK.
 */
#define ARX_USER_RING_PAGES	(SZ_16M >> PAGE_SHIFT)

/* Multicast attachments of a user without CAP_NET_ADMIN. */
#define ARX_USER_ATTACHMENTS	64

/* Jobs of a user that find pages, running or queued. */
#define ARX_USER_JOBS		64

struct mem_cgroup;
struct sock;

/**
 * struct arx_user - resources of a user on all devices
 * @link: in the list of all users
 * @uid: the user
 * @ref: one for each open device, ring, attachment and region that is paged on
 *	demand; drops to 0 under the list's mutex
 * @ring_pages: pages of rings, at most ARX_USER_RING_PAGES
 * @attachments: of QPs to multicast groups
 * @jobs: that find pages, at most ARX_USER_JOBS
 */
struct arx_user {
	struct list_head link;
	kuid_t uid;
	refcount_t ref;
	atomic_long_t ring_pages;
	atomic_long_t attachments;
	atomic_t jobs;
};

/**
 * struct arx_charge - account of a ring's memory
 * @user: owner of the allowance, or NULL if none is counted
 * @allowed: pages counted against the allowance
 * @mm: mm whose pinned memory counts the rest, or NULL
 * @pinned: pages counted there
 */
struct arx_charge {
	struct arx_user *user;
	unsigned long allowed;
	struct mm_struct *mm;
	unsigned long pinned;
};

struct arx_user *arx_user_current(void);
void arx_user_put(struct arx_user *user);
bool arx_user_begin_job(struct arx_user *user);
void arx_user_end_job(struct arx_user *user);
int arx_user_attach(struct arx_user *user);
void arx_user_detach(struct arx_user *user);
int arx_charge_pages(struct arx_charge *charge, struct arx_user *user,
		     unsigned long pages);
void arx_uncharge_pages(struct arx_charge *charge);
void *arx_charged_zalloc(struct mem_cgroup *memcg, size_t size, gfp_t gfp);
bool arx_charge_packets(struct sock *sk, u32 bytes);
void arx_uncharge_packets(struct sock *sk, u32 bytes);

#endif /* ARX_ACCOUNT_H */
