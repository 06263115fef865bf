/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The device, and the objects that only are: PD, XRC domain, user context. */
#ifndef ARX_H
#define ARX_H

#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "cc.h"
#include "ids.h"
#include "stats.h"

struct arx_l3;
struct arx_qp;
struct arx_user;
struct arx_worker;

/*
 * Limits that query_device reports and that the creation of objects enforces.
 */
enum {
	ARX_MAX_QP_WR		= 1 << 15,
	ARX_MAX_SGE		= 32,
	ARX_MAX_INLINE		= 1024,
	ARX_MAX_CQE		= 1 << 22,
	ARX_MAX_RD_ATOMIC	= 128,
	ARX_MAX_MSG		= 1U << 31,	/* bytes; IBA C9-15 */
	ARX_PORT		= 1,
	ARX_MAX_FAST_REG_PAGES	= 1 << 16,
	ARX_MAX_MCAST_GROUPS	= 1 << 10,
	ARX_MAX_MCAST_MEMBERS	= 1 << 10,	/* of a group */
	ARX_MAX_OBJECTS		= 1 << 20, /* of each kind, for each device */
	ARX_NUM_DSCPS		= 64,
};

/* Kinds of objects; a device has at most ARX_MAX_OBJECTS of each kind. */
enum arx_kind {
	ARX_KIND_PD,
	ARX_KIND_AH,
	ARX_KIND_MR,
	ARX_KIND_MW,
	ARX_KIND_DM,
	ARX_KIND_CQ,
	ARX_KIND_QP,
	ARX_KIND_SRQ,
	ARX_KIND_XRCD,
	ARX_NUM_KINDS,
};

/**
 * struct arx_dev - one RDMA device on one netdev
 * @ib: the core's part
 * @netdev: the Ethernet device; held from newlink to the end of the device
 * @netdev_tracker: of that reference
 * @l3: sockets of @netdev's network namespace (under the mutex of net.c)
 * @link: in the list of all devices (net.c, under its mutex, read under RCU)
 * @keys: lkeys and rkeys by their upper 24 bits
 * @ahs: address vectors of user AHs, by struct arx_create_ah_resp.ah
 * @srqs: shared receive queues by number; messages of XRC look them up
 * @objects: number of objects of each kind, including those of the core and of
 *	kernel consumers
 * @gsi: QP1, or NULL
 * @port_active: the port carries traffic; written by netdev events only
 * @port_mbps: the netdev's speed when last asked, 0 if unknown; written under
 *	RTNL
 * @port_asked: time of that, in jiffies
 * @doorbell_usecs: device attribute, see watch.c: maximum delay of a request;
 *	0: off
 * @cc: device attribute: enum arx_cc_kind, for QPs whose DSCP has no entry in
 *	@cc_dscp; QPs take it when they enter RTR
 * @cc_dscp: device attribute: by DSCP, enum arx_cc_kind + 1, or 0: @cc
 * @cc_params: device attributes: parameters of all controllers
 * @ecn: device attribute: packets of QPs that react to CNPs are ECN capable
 * @cnp_dscp: device attribute: upper six bits of the traffic class of CNPs
 * @np_min_time_between_cnps_usecs: device attribute: time in which a QP sends
 *	at most one CNP
 * @capture: device attribute: all traffic is packets that a capture shows, each
 *	alone with its ICRC
 * @stats: per-CPU counters, without those of QPs that are bound to a counter
 * @kept: truesize of received packets that stages keep, see keep.c
 * @optional: a bit for each optional counter that is on
 * @counters: to which QPs can be bound, see counter.c: mutex of writers, struct
 *	arx_counter_mem, the last id
 * @gids: the work that makes the core scan the netdev's addresses: whether to
 *	drop all GIDs and scan again, how often to look for the default GID, and
 *	the task that scans for that one; the GIDs; see gids.c
 * @mcast: multicast groups and the number of the next member; datagrams that
 *	wait for the work, and their number; see mcast.c
 */
struct arx_dev {
	struct ib_device ib;
	struct net_device *netdev;
	netdevice_tracker netdev_tracker;
	struct arx_l3 *l3;
	struct list_head link;
	struct arx_ids keys;
	struct arx_ids ahs;
	struct arx_ids srqs;
	atomic_t objects[ARX_NUM_KINDS];
	struct arx_qp __rcu *gsi;
	bool port_active;
	u32 port_mbps;
	unsigned long port_asked;
	u32 doorbell_usecs;
	u32 cc;
	u32 cc_dscp[ARX_NUM_DSCPS];
	struct arx_cc_params cc_params;
	u32 ecn;
	u32 cnp_dscp;
	u32 np_min_time_between_cnps_usecs;
	u32 capture;
	struct arx_stats __percpu *stats;
	atomic_long_t kept;
	unsigned long optional;
	struct {
		struct mutex lock;	/* writers */
		struct list_head list;
		u32 last_id;
	} counters;
	struct {
		struct delayed_work work;
		struct task_struct *scanner;
		u32 looks;
		bool rescan;
		bool stale;
		struct list_head list;
	} gids;
	struct {
		struct mutex lock;	/* writers */
		struct list_head groups;
		u32 size;
		u64 next_nr;
		spinlock_t waiting_lock;	/* datagrams */
		struct list_head waiting;
		u32 count;
		struct work_struct work;
	} mcast;
};

/**
 * struct arx_pd - protection domain; identity is its address
 * @ib: the core's part
 * @lock: protects @datagram_qps; held while AHs of the domain end
 * @datagram_qps: UD QPs of applications, whose WQEs name AHs of the domain;
 *	arx_qp.pd_link
 */
struct arx_pd {
	struct ib_pd ib;
	struct mutex lock;	/* QPs come and go */
	struct list_head datagram_qps;
};

static inline struct arx_pd *to_arx_pd(struct ib_pd *ib)
{
	return container_of(ib, struct arx_pd, ib);
}

/**
 * struct arx_xrcd - XRC domain; identity is its address
 * @ib: the core's part, which finds the domain by a file
 */
struct arx_xrcd {
	struct ib_xrcd ib;
};

/**
 * struct arx_ucontext - a process's context on a device
 * @ib: the core's part, with the mmap entries
 * @user: who opened the device, and is charged for its objects
 * @worker: copies for the context's QPs
 */
struct arx_ucontext {
	struct ib_ucontext ib;
	struct arx_user *user;
	struct arx_worker *worker;
};

static inline struct arx_ucontext *to_arx_ucontext(struct ib_ucontext *ib)
{
	return container_of(ib, struct arx_ucontext, ib);
}

/* The context of a command; NULL for a kernel consumer. */
static inline struct ib_ucontext *arx_udata_to_ucontext(struct ib_udata *udata)
{
	struct arx_ucontext *uctx;

	if (!udata)
		return NULL;
	uctx = rdma_udata_to_drv_context(udata, struct arx_ucontext, ib);
	return uctx ? &uctx->ib : NULL;
}

static inline struct arx_dev *to_arx_dev(struct ib_device *ib)
{
	return container_of(ib, struct arx_dev, ib);
}

/**
 * arx_object_begin - count an object that is about to be created
 * @ib: device
 * @kind: its kind
 *
 * Return: 0, or -ENOMEM if the device has as many as query_device reports.
 */
static inline int arx_object_begin(struct ib_device *ib, enum arx_kind kind)
{
	return atomic_add_unless(&to_arx_dev(ib)->objects[kind], 1,
				 ARX_MAX_OBJECTS) ? 0 : -ENOMEM;
}

/**
 * arx_object_end - count an object that was destroyed or could not be created
 * @ib: device
 * @kind: its kind
 */
static inline void arx_object_end(struct ib_device *ib, enum arx_kind kind)
{
	atomic_dec(&to_arx_dev(ib)->objects[kind]);
}

#endif /* ARX_H */
