/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * All differences between kernels: the rest of the driver is written for the
 * newest kernel, and this file supplies what older ones lack. Macros of the
 * kernel are tested by name; for functions, Kbuild searches the headers and
 * defines ARX_HAS_*.
 */
#ifndef ARX_COMPAT_H
#define ARX_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/sched/vhost_task.h>
#include <linux/timer.h>
#include <net/sock.h>
#include <net/udp_tunnel.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "arx.h"

#ifndef timer_container_of
#define timer_container_of(var, timer, field) from_timer(var, timer, field)
#endif

#ifndef ARX_HAS_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

/* Newer kernels forget a sock's queue that is older than a sysctl says. */
static inline void arx_keep_tx_queue(struct sock *sk, int queue)
{
	sk_tx_queue_set(sk, queue);
#ifdef ARX_HAS_TXQ_RESELECTION
	/* The run leaves within a second. */
	WRITE_ONCE(sk->sk_tx_queue_mapping_jiffies, jiffies + HZ);
#endif
}

/* A driver's request: at least @least bytes, zero beyond the known ones. */
#ifndef ib_copy_validate_udata_in
static inline int arx_udata_in(struct ib_udata *udata, void *req, size_t size,
			       size_t least)
{
	if (udata->inlen < least)
		return -EINVAL;
	if (udata->inlen > size &&
	    !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EOPNOTSUPP;
	memset(req, 0, size);
	return ib_copy_from_udata(req, udata, min(size, udata->inlen));
}

#define ib_copy_validate_udata_in(udata, req, last)		\
	arx_udata_in(udata, &(req), sizeof(req),		\
		     offsetofend(typeof(req), last))
#endif

/* A driver's response: cut to the room that the application has. */
#ifndef ib_respond_udata
static inline int arx_udata_out(struct ib_udata *udata, const void *rsp,
				size_t size)
{
	return ib_copy_to_udata(udata, (void *)rsp, min(size, udata->outlen));
}

#define ib_respond_udata(udata, rsp)	\
	arx_udata_out(udata, &(rsp), sizeof(rsp))
#endif

#ifndef ARX_HAS_UMEM_GET_VA
static inline struct ib_umem *ib_umem_get_va(struct ib_device *ib,
					     unsigned long addr, size_t size,
					     int access)
{
	return ib_umem_get(ib, addr, size, access);
}
#endif

/*
 * Allocate a device in a network namespace. Older kernels create it in the
 * first one, from where it can be moved while it is not registered. If devices
 * are shared between namespaces, newer kernels leave it in the first one, and
 * so does this function: the core grants another namespace access to a device
 * of the first one only in that mode.
 */
static inline struct arx_dev *arx_alloc_dev(struct net *net)
{
#ifdef ib_alloc_device_with_net
	return ib_alloc_device_with_net(arx_dev, ib, net);
#else
	struct arx_dev *dev = ib_alloc_device(arx_dev, ib);

	if (dev && !rdma_dev_access_netns(&dev->ib, net))
		write_pnet(&dev->ib.coredev.rdma_net, net);
	return dev;
#endif
}

/*
 * Report that the port came up or went down. Newer kernels do so themselves,
 * except for bonds, and drop repeated reports; but not for a device on a VLAN,
 * which reports another netdev as its port's.
 */
static inline void arx_port_event(struct ib_device *ib,
				  struct net_device *netdev, bool changed,
				  bool active)
{
	struct ib_event event = {
		.device = ib,
		.element.port_num = 1,
		.event = active ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

#ifdef ARX_HAS_PORT_STATE_EVENT
	if (!ib->ops.get_netdev) {
		ib_dispatch_port_state_event(ib, netdev);
		return;
	}
#endif
	if (changed)
		ib_dispatch_event(&event);
}

/* UDP tunnels take a struct sock, in older kernels a struct socket. */
static inline void arx_udp_tunnel_setup(struct net *net, struct socket *sock,
					struct udp_tunnel_sock_cfg *cfg)
{
#ifdef ARX_HAS_UDP_TUNNEL_SOCK
	setup_udp_tunnel_sock(net, sock->sk, cfg);
#else
	setup_udp_tunnel_sock(net, sock, cfg);
#endif
}

static inline void arx_udp_tunnel_release(struct socket *sock)
{
#ifdef ARX_HAS_UDP_TUNNEL_SOCK
	udp_tunnel_sock_release(sock->sk);
#else
	udp_tunnel_sock_release(sock);
#endif
}

/*
 * A thread of the current process that runs in the kernel only. On a kernel
 * without such threads arx_has_tasks() returns false, and the other functions
 * are not called.
 */
static inline bool arx_has_tasks(void)
{
	return IS_ENABLED(CONFIG_VHOST_TASK);
}

static inline struct vhost_task *arx_task_create(bool (*fn)(void *),
						 void (*killed)(void *),
						 void *data, const char *name)
{
#if IS_ENABLED(CONFIG_VHOST_TASK)
	struct vhost_task *task = vhost_task_create(fn, killed, data, name);

	/* Older kernels do not return the reason. */
	return task ?: ERR_PTR(-EAGAIN);
#else
	return ERR_PTR(-EOPNOTSUPP);
#endif
}

static inline void arx_task_start(struct vhost_task *task)
{
#if IS_ENABLED(CONFIG_VHOST_TASK)
	vhost_task_start(task);
#endif
}

static inline void arx_task_wake(struct vhost_task *task)
{
#if IS_ENABLED(CONFIG_VHOST_TASK)
	vhost_task_wake(task);
#endif
}

static inline void arx_task_stop(struct vhost_task *task)
{
#if IS_ENABLED(CONFIG_VHOST_TASK)
	vhost_task_stop(task);
#endif
}

/* A namespace of symbols became a string. */
#ifdef ARX_HAS_NS_STRING
#define ARX_IMPORT_DMA_BUF	MODULE_IMPORT_NS("DMA_BUF")
#else
#define ARX_IMPORT_DMA_BUF	MODULE_IMPORT_NS(DMA_BUF)
#endif

/*
 * An importer had to have a notification of moves; now one that has it promises
 * to give buffers back. The function is for the tests.
 */
#ifdef ARX_HAS_INVALIDATE_MAPPINGS
#define ARX_NO_MOVE_NOTIFY
#else
static inline void arx_no_move_notify(struct dma_buf_attachment *attach)
{
}

#define ARX_NO_MOVE_NOTIFY	.move_notify = arx_no_move_notify,
#define dma_buf_invalidate_mappings dma_buf_move_notify
#endif

/*
 * Verbs whose signature changed. A function of the driver has the newer
 * signature without the parameters that arx does not use. ARX_ADAPT_*(fn)
 * defines fn_op(), with the signature of the kernel's table.
 */
#ifdef ARX_HAS_DMAH
#define ARX_ADAPT_REG_USER_MR(fn)					\
static struct ib_mr *fn##_op(struct ib_pd *pd, u64 start, u64 length,	\
			     u64 iova, int access,			\
			     struct ib_dmah *dmah,			\
			     struct ib_udata *udata)			\
{									\
	if (dmah)							\
		return ERR_PTR(-EOPNOTSUPP);				\
	return fn(pd, start, length, iova, access, udata);		\
}

#define ARX_ADAPT_REG_USER_MR_DMABUF(fn)				\
static struct ib_mr *fn##_op(struct ib_pd *pd, u64 offset, u64 length,	\
			     u64 iova, int fd, int access,		\
			     struct ib_dmah *dmah,			\
			     struct uverbs_attr_bundle *attrs)		\
{									\
	if (dmah)							\
		return ERR_PTR(-EOPNOTSUPP);				\
	return fn(pd, offset, length, iova, fd, access);		\
}
#else
#define ARX_ADAPT_REG_USER_MR_DMABUF(fn)				\
static struct ib_mr *fn##_op(struct ib_pd *pd, u64 offset, u64 length,	\
			     u64 iova, int fd, int access,		\
			     struct uverbs_attr_bundle *attrs)		\
{									\
	return fn(pd, offset, length, iova, fd, access);		\
}

#define ARX_ADAPT_REG_USER_MR(fn)					\
static struct ib_mr *fn##_op(struct ib_pd *pd, u64 start, u64 length,	\
			     u64 iova, int access,			\
			     struct ib_udata *udata)			\
{									\
	return fn(pd, start, length, iova, access, udata);		\
}
#endif

#ifdef ARX_HAS_RESIZE_USER_CQ
#define ARX_RESIZE_CQ	resize_user_cq

#define ARX_ADAPT_RESIZE_CQ(fn)						\
static int fn##_op(struct ib_cq *ib, unsigned int cqe,			\
		   struct ib_udata *udata)				\
{									\
	return fn(ib, cqe, udata);					\
}
#else
#define ARX_RESIZE_CQ	resize_cq

#define ARX_ADAPT_RESIZE_CQ(fn)						\
static int fn##_op(struct ib_cq *ib, int cqe, struct ib_udata *udata)	\
{									\
	return cqe > 0 ? fn(ib, cqe, udata) : -EINVAL;			\
}
#endif

/* Newer kernels allocate a counter as the driver says. */
#ifdef ARX_HAS_COUNTER_INIT
static inline void arx_counter_init(struct rdma_counter *counter)
{
}

struct arx_rdma_counter {
	struct rdma_counter ib;
};

#define ARX_COUNTER_INIT					\
	.counter_init = arx_counter_init,			\
	INIT_RDMA_OBJ_SIZE(rdma_counter, arx_rdma_counter, ib),

#define ARX_ADAPT_BIND_QP(fn)						\
static int fn##_op(struct rdma_counter *counter, struct ib_qp *ib,	\
		   u32 port)						\
{									\
	return fn(counter, ib);						\
}

#define ARX_ADAPT_UNBIND_QP(fn)						\
static int fn##_op(struct ib_qp *ib, u32 port)				\
{									\
	return fn(ib);							\
}
#else
#define ARX_COUNTER_INIT

#define ARX_ADAPT_BIND_QP(fn)						\
static int fn##_op(struct rdma_counter *counter, struct ib_qp *ib)	\
{									\
	return fn(counter, ib);						\
}

#define ARX_ADAPT_UNBIND_QP(fn)						\
static int fn##_op(struct ib_qp *ib)					\
{									\
	return fn(ib);							\
}
#endif

#endif /* ARX_COMPAT_H */
