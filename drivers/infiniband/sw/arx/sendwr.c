// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Send work requests: the meaning of each opcode, the copy and check of a WQE
 * that an application wrote, the conversion of a kernel consumer's request to a
 * WQE, and the execution of work that needs no packet.
 */

#include "mw.h"
#include "sendwr.h"

enum {
	ON_RC	= BIT(0),
	ON_UC	= BIT(1),
	ON_UD	= BIT(2),
	ON_XRC	= BIT(3),
};

/**
 * struct arx_sendwr_kind - properties of an opcode
 * @on: services on which it may be posted; 0: none
 * @op: enum arx_op
 * @flags: flags of the message's last packet
 * @wc: enum ib_wc_opcode
 * @local: sends no packet
 * @kernel: not for applications
 * @incoming: the peer sends data: the SGEs are written, and inline data is an
 *	error
 */
struct arx_sendwr_kind {
	u8 on;
	u8 op;
	u8 flags;
	u8 wc;
	bool local;
	bool kernel;
	bool incoming;
};

static const struct arx_sendwr_kind arx_sendwr_kinds[] = {
	[IB_WR_SEND] = {
		.on = ON_RC | ON_XRC | ON_UC | ON_UD,
		.op = ARX_OP_SEND,
		.wc = IB_WC_SEND,
	},
	[IB_WR_SEND_WITH_IMM] = {
		.on = ON_RC | ON_XRC | ON_UC | ON_UD,
		.op = ARX_OP_SEND,
		.flags = ARX_IMM,
		.wc = IB_WC_SEND,
	},
	[IB_WR_SEND_WITH_INV] = {
		.on = ON_RC | ON_XRC,
		.op = ARX_OP_SEND,
		.flags = ARX_INV,
		.wc = IB_WC_SEND,
	},
	[IB_WR_RDMA_WRITE] = {
		.on = ON_RC | ON_XRC | ON_UC,
		.op = ARX_OP_WRITE,
		.wc = IB_WC_RDMA_WRITE,
	},
	[IB_WR_RDMA_WRITE_WITH_IMM] = {
		.on = ON_RC | ON_XRC | ON_UC,
		.op = ARX_OP_WRITE,
		.flags = ARX_IMM,
		.wc = IB_WC_RDMA_WRITE,
	},
	[IB_WR_RDMA_READ] = {
		.on = ON_RC | ON_XRC,
		.op = ARX_OP_READ,
		.wc = IB_WC_RDMA_READ,
		.incoming = true,
	},
	[IB_WR_ATOMIC_CMP_AND_SWP] = {
		.on = ON_RC | ON_XRC,
		.op = ARX_OP_COMPARE_SWAP,
		.wc = IB_WC_COMP_SWAP,
		.incoming = true,
	},
	[IB_WR_ATOMIC_FETCH_AND_ADD] = {
		.on = ON_RC | ON_XRC,
		.op = ARX_OP_FETCH_ADD,
		.wc = IB_WC_FETCH_ADD,
		.incoming = true,
	},
	[IB_WR_FLUSH] = {
		.on = ON_RC | ON_XRC,
		.op = ARX_OP_FLUSH,
		.wc = IB_WC_FLUSH,
	},
	[IB_WR_ATOMIC_WRITE] = {
		.on = ON_RC | ON_XRC,
		.op = ARX_OP_ATOMIC_WRITE,
		.wc = IB_WC_ATOMIC_WRITE,
	},
	[IB_WR_LOCAL_INV] = {
		.on = ON_RC | ON_XRC | ON_UC,
		.wc = IB_WC_LOCAL_INV,
		.local = true,
	},
	[IB_WR_BIND_MW] = {
		.on = ON_RC | ON_XRC | ON_UC,
		.wc = IB_WC_BIND_MW,
		.local = true,
	},
};

/* An application's opcode cannot express IB_WR_REG_MR. */
static const struct arx_sendwr_kind arx_sendwr_reg_mr = {
	.on = ON_RC | ON_UC,
	.wc = IB_WC_REG_MR,
	.local = true,
	.kernel = true,
};

/* IB_WR_REG_MR in the 8 bits of a kernel consumer's WQE. */
#define ARX_WQE_REG_MR	0xf0

static u8 arx_sendwr_service(const struct arx_qp *qp)
{
	switch (qp->service) {
	case ARX_SERVICE_RC:
		return ON_RC;
	case ARX_SERVICE_XRC:
		return ON_XRC;
	case ARX_SERVICE_UC:
		return ON_UC;
	default:
		return ON_UD;
	}
}

static const struct arx_sendwr_kind *
arx_sendwr_kind(const struct arx_qp *qp, u8 opcode)
{
	const struct arx_sendwr_kind *kind = NULL;

	if (opcode < ARRAY_SIZE(arx_sendwr_kinds))
		kind = &arx_sendwr_kinds[opcode];
	else if (opcode == ARX_WQE_REG_MR && !qp->ib.uobject)
		kind = &arx_sendwr_reg_mr;

	if (!kind || !(kind->on & arx_sendwr_service(qp)))
		return NULL;
	return kind;
}

/* Length of the payload, or a negative ib_wc_status. */
static s64 arx_sendwr_length(const struct arx_qp *qp,
			     const struct arx_sendwr_kind *kind,
			     const struct arx_swqe *swqe)
{
	u64 length = 0;
	u32 i;

	if (swqe->wqe.flags & IB_SEND_INLINE) {
		if (kind->incoming || swqe->wqe.inline_len > qp->max_inline)
			return -IB_WC_LOC_QP_OP_ERR;
		length = swqe->wqe.inline_len;
	} else {
		for (i = 0; i < swqe->wqe.num_sge; i++)
			length += swqe->sge[i].length;
	}
	if (length > ARX_MAX_MSG)
		return -IB_WC_LOC_LEN_ERR;
	return length;
}

/*
 * A user's WQE has the number of an AH; a kernel consumer's WQE has a reference
 * to an AV.
 */
static struct arx_av *arx_sendwr_av(struct arx_qp *qp,
				    const struct arx_send_wqe *wqe)
{
	struct arx_id *id;
	struct arx_av *av;

	if (!qp->ib.uobject)
		return (struct arx_av *)(uintptr_t)wqe->ud.av;

	id = arx_ids_find(&arx_qp_dev(qp)->ahs, wqe->ud.ah);
	if (!id)
		return NULL;
	av = container_of(id, struct arx_av, id);
	if (av->pd != qp->ib.pd || !refcount_inc_not_zero(&av->ref))
		return NULL;
	return av;
}

static enum ib_wc_status arx_sendwr_check_flush(const struct arx_swqe *swqe)
{
	const struct arx_send_wqe *wqe = &swqe->wqe;

	if (!wqe->flush.placement ||
	    wqe->flush.placement & ~(IB_FLUSH_GLOBAL | IB_FLUSH_PERSISTENT) ||
	    wqe->flush.selectivity > IB_FLUSH_MR)
		return IB_WC_LOC_QP_OP_ERR;
	if (swqe->length || wqe->flush.length > ARX_MAX_MSG)
		return IB_WC_LOC_LEN_ERR;
	return IB_WC_SUCCESS;
}

/* A request with a response of its own; a READ takes PSNs for all of it. */
static enum ib_wc_status arx_sendwr_check_rd(const struct arx_qp *qp,
					     struct arx_swqe *swqe)
{
	if (!qp->attr.max_rd_atomic)
		return IB_WC_LOC_QP_OP_ERR;
	if (swqe->op == ARX_OP_READ)
		return IB_WC_SUCCESS;

	swqe->npkts = 1;
	if (swqe->op == ARX_OP_FLUSH)
		return arx_sendwr_check_flush(swqe);
	return swqe->length == sizeof(u64) ? IB_WC_SUCCESS : IB_WC_LOC_LEN_ERR;
}

static enum ib_wc_status arx_sendwr_check(struct arx_qp *qp,
					  struct arx_swqe *swqe)
{
	const struct arx_sendwr_kind *kind;
	s64 length;

	kind = arx_sendwr_kind(qp, swqe->wqe.opcode);
	if (!kind)
		return IB_WC_LOC_QP_OP_ERR;

	swqe->op = kind->op;
	swqe->wc_opcode = kind->wc;
	swqe->local = kind->local;
	swqe->flags = kind->flags;
	/* 9.2.3: only if a receive WQE completes */
	if (swqe->wqe.flags & IB_SEND_SOLICITED &&
	    (kind->op == ARX_OP_SEND || kind->flags & ARX_IMM))
		swqe->flags |= ARX_SOLICITED;
	if (kind->local)
		return IB_WC_SUCCESS;

	/*
	 * First, so that @swqe has all references that arx_sendwr_release()
	 * drops.
	 */
	if (!arx_qp_is_connected(qp)) {
		swqe->av = arx_sendwr_av(qp, &swqe->wqe);
		if (!swqe->av)
			return IB_WC_LOC_QP_OP_ERR;
	}

	if (swqe->wqe.num_sge > qp->max_send_sge)
		return IB_WC_LOC_QP_OP_ERR;
	length = arx_sendwr_length(qp, kind, swqe);
	if (length < 0)
		return -length;
	swqe->length = length;
	swqe->npkts = 1;
	if (arx_qp_is_connected(qp))
		swqe->npkts = arx_run_npkts(swqe->length, qp->mtu);

	return arx_is_rd(kind->op) ? arx_sendwr_check_rd(qp, swqe) :
				     IB_WC_SUCCESS;
}

/**
 * arx_sendwr_take - copy a WQE out of the ring and check the copy
 * @qp: owner of the ring
 * @index: of the WQE
 * @swqe: receives the copy; status, npkts, length and all else are set
 *
 * The application may change the ring at any time: each byte is read once, and
 * only the copy is used.
 *
 * Context: requester's lock held, RCU read side.
 */
void arx_sendwr_take(struct arx_qp *qp, u32 index, struct arx_swqe *swqe)
{
	const void *slot = arx_ring_entry(&qp->sq, index);
	const struct arx_sge *sge;
	u32 n;

	memcpy(&swqe->wqe, slot, sizeof(swqe->wqe));
	barrier();	/* from here on only the copy is used */

	n = swqe->wqe.flags & IB_SEND_INLINE ? 0 : swqe->wqe.num_sge;
	n = min(n, qp->max_send_sge);
	sge = slot + sizeof(swqe->wqe);
	if (likely(n == 1))
		swqe->sge[0] = *sge;
	else
		memcpy(swqe->sge, sge, n * sizeof(*sge));
	barrier();

	swqe->op = ARX_OP_SEND;
	swqe->wc_opcode = IB_WC_SEND;
	swqe->local = false;
	swqe->executed = false;
	swqe->flags = 0;
	swqe->npkts = 0;
	swqe->length = 0;
	swqe->av = NULL;
	swqe->status = arx_sendwr_check(qp, swqe);
	if (swqe->status != IB_WC_SUCCESS)
		swqe->npkts = 0;
}

/**
 * arx_sendwr_unwrite - drop the references of a WQE in the ring
 * @qp: of a kernel consumer; owner of the ring
 * @wqe: from arx_sendwr_write(), never taken
 *
 * Context: nobody posts or takes WQEs of the ring.
 */
void arx_sendwr_unwrite(struct arx_qp *qp, const struct arx_send_wqe *wqe)
{
	const struct arx_sendwr_kind *kind = arx_sendwr_kind(qp, wqe->opcode);

	if (kind && !arx_qp_is_connected(qp))
		arx_av_put(arx_sendwr_av(qp, wqe));
}

/**
 * arx_sendwr_execute - execute work that needs no packet
 * @qp: of the WQE
 * @swqe: checked
 *
 * Context: requester's lock held, RCU read side.
 * Return: enum ib_wc_status to complete with, or -EBUSY: try again later.
 */
int arx_sendwr_execute(struct arx_qp *qp, struct arx_swqe *swqe)
{
	const struct arx_send_wqe *wqe = &swqe->wqe;
	struct arx_key_use by = arx_qp_key_use(qp, qp->ib.pd, wqe->ex, 0, 0, 0);
	struct arx_mr *mr;
	int err;

	switch (wqe->opcode) {
	case IB_WR_LOCAL_INV:
		err = arx_key_invalidate(&by);
		break;
	case IB_WR_BIND_MW:
		err = arx_mw_bind(&by, wqe);
		break;
	default:
		mr = (struct arx_mr *)(uintptr_t)wqe->reg.mr;
		err = arx_mr_fast_reg(mr, qp->ib.pd, wqe->reg.key,
				      wqe->reg.access);
	}
	if (err == -EBUSY)
		return err;
	return err ? IB_WC_MW_BIND_ERR : IB_WC_SUCCESS;
}

static int arx_sendwr_write_ud(const struct ib_send_wr *wr,
			       struct arx_send_wqe *wqe)
{
	const struct ib_ud_wr *ud = ud_wr(wr);
	struct arx_av *av;

	if (!ud->ah)
		return -EINVAL;
	av = to_arx_ah(ud->ah)->av;
	refcount_inc(&av->ref);	/* arx_sendwr_release() drops it */
	wqe->ud.av = (uintptr_t)av;
	wqe->ud.qpn = ud->remote_qpn;
	wqe->ud.qkey = ud->remote_qkey;
	return 0;
}

static int arx_sendwr_write_body(struct arx_qp *qp, const struct ib_send_wr *wr,
				 struct arx_send_wqe *wqe)
{
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
		wqe->ex = (__force u32)wr->ex.imm_data;
		fallthrough;
	case IB_WR_SEND:
		return !arx_qp_is_connected(qp) ?
		       arx_sendwr_write_ud(wr, wqe) : 0;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		wqe->ex = wr->ex.invalidate_rkey;
		return 0;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wqe->ex = (__force u32)wr->ex.imm_data;
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
	case IB_WR_ATOMIC_WRITE:
		wqe->rdma.remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rdma.rkey = rdma_wr(wr)->rkey;
		return 0;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->atomic.remote_addr = atomic_wr(wr)->remote_addr;
		wqe->atomic.rkey = atomic_wr(wr)->rkey;
		wqe->atomic.compare_add = atomic_wr(wr)->compare_add;
		wqe->atomic.swap = atomic_wr(wr)->swap;
		return 0;
	case IB_WR_REG_MR:
		wqe->opcode = ARX_WQE_REG_MR;
		wqe->reg.mr = (uintptr_t)to_arx_mr(reg_wr(wr)->mr);
		wqe->reg.key = reg_wr(wr)->key;
		wqe->reg.access = reg_wr(wr)->access;
		return 0;
	default:
		return -EINVAL;
	}
}

static int arx_sendwr_write_inline(struct arx_qp *qp,
				   const struct ib_send_wr *wr,
				   struct arx_send_wqe *wqe)
{
	void *to = wqe + 1;
	int i;

	wqe->num_sge = 0;
	for (i = 0; i < wr->num_sge; i++) {
		u32 length = wr->sg_list[i].length;

		if (length > qp->max_inline - wqe->inline_len)
			return -EINVAL;
		memcpy(to, (void *)(uintptr_t)wr->sg_list[i].addr, length);
		to += length;
		wqe->inline_len += length;
	}
	return 0;
}

/**
 * arx_sendwr_write - convert a kernel consumer's request to a WQE
 * @qp: owner of the ring
 * @wr: the request
 * @wqe: a free slot; all of it is written
 *
 * Context: post_lock held.
 * Return: 0, or -EINVAL for a request that this QP cannot execute.
 */
int arx_sendwr_write(struct arx_qp *qp, const struct ib_send_wr *wr,
		     struct arx_send_wqe *wqe)
{
	struct arx_sge *sge = (struct arx_sge *)(wqe + 1);
	int err;
	int i;

	if (wr->num_sge > qp->max_send_sge)
		return -EINVAL;

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags & (IB_SEND_FENCE | IB_SEND_SIGNALED |
				       IB_SEND_SOLICITED | IB_SEND_INLINE);

	if (wr->send_flags & IB_SEND_INLINE) {
		err = arx_sendwr_write_inline(qp, wr, wqe);
		if (err)
			return err;
	} else {
		wqe->num_sge = wr->num_sge;
		for (i = 0; i < wr->num_sge; i++) {
			sge[i].addr = wr->sg_list[i].addr;
			sge[i].length = wr->sg_list[i].length;
			sge[i].lkey = wr->sg_list[i].lkey;
		}
	}
	return arx_sendwr_write_body(qp, wr, wqe);
}
