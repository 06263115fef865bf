/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What users and devices may have: see account.c. */
#ifndef ARX_ACCOUNT_H
#define ARX_ACCOUNT_H

#include <linux/mm_types.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/uidgid.h>

/* Memory of rings that a user may have whatever RLIMIT_MEMLOCK says. */
#define ARX_USER_RING_PAGES	(SZ_16M >> PAGE_SHIFT)

/* Multicast attachments of a user without CAP_NET_ADMIN. */
#define ARX_USER_ATTACHMENTS	64

/**
 * struct arx_user - what a user has of all devices
 * @link: in the list of all users
 * @uid: who
 * @ref: one for each open device, ring and attachment; under the list's mutex
 *	when it becomes 0
 * @ring_pages: pages of rings, at most ARX_USER_RING_PAGES
 * @attachments: of QPs to multicast groups
 */
struct arx_user {
	struct list_head link;
	kuid_t uid;
	refcount_t ref;
	atomic_long_t ring_pages;
	atomic_long_t attachments;
};

/**
 * struct arx_charge - where memory of a ring is counted
 * @user: whose allowance, or NULL if it is not counted
 * @allowed: pages of it
 * @mm: whose pinned memory, for what is beyond the allowance, or NULL
 * @pinned: pages of that
 */
struct arx_charge {
	struct arx_user *user;
	unsigned long allowed;
	struct mm_struct *mm;
	unsigned long pinned;
};

struct arx_user *arx_user_current(void);
void arx_user_put(struct arx_user *user);
int arx_user_attach(struct arx_user *user);
void arx_user_detach(struct arx_user *user);
int arx_charge_pages(struct arx_charge *charge, struct arx_user *user,
		     unsigned long pages);
void arx_uncharge_pages(struct arx_charge *charge);

#endif /* ARX_ACCOUNT_H */
