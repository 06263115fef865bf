// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device, memory regions with guards, and bringing a QP to RTS. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "verify.h"

struct ibv_context *context;
struct ibv_device_attr device;
struct ibv_port_attr port;

/* NULL: the first device that can be opened in this network namespace. */
bool device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i] && !context; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!context)
		return failed("no device %s", name ? name : "here");
	if (ibv_query_device(context, &device) ||
	    ibv_query_port(context, 1, &port))
		return failed("cannot query %s",
			      ibv_get_device_name(context->device));
	return true;
}

static bool gid_is(const union ibv_gid *gid, enum gid_choice choice)
{
	static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool v4 = !memcmp(gid->raw, v4_mapped, sizeof(v4_mapped));
	bool ll = gid->raw[0] == 0xfe && gid->raw[1] == 0x80;

	switch (choice) {
	case GID_V4:
		return v4;
	case GID_LL:
		return ll;
	default:
		return !v4 && !ll;
	}
}

/* -1 if there is none */
int gid_index(enum gid_choice choice)
{
	struct ibv_gid_entry entries[64];
	ssize_t i, n = ibv_query_gid_table(context, entries,
					   ARRAY_SIZE(entries), 0);

	for (i = 0; i < n; i++)
		if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    gid_is(&entries[i].gid, choice))
			return entries[i].gid_index;
	return -1;
}

union ibv_gid gid_of(enum gid_choice choice)
{
	union ibv_gid gid = {};

	if (ibv_query_gid(context, 1, gid_index(choice), &gid))
		failed("ibv_query_gid: %s", strerror(errno));
	return gid;
}

/*
 * The MR begins and ends in the middle of pages; the rest of those pages, and
 * one more page on each side, are guards.
 */
#define REGION_SHIFT	(4096 + 1088)

bool region_make(struct region *r, struct ibv_pd *pd, size_t len, int access)
{
	r->len = len;
	r->map_len = (REGION_SHIFT + len + 2 * 4096 - 1) & ~4095ull;
	r->map = mmap(NULL, r->map_len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->map == MAP_FAILED)
		return failed("no memory for %zu bytes", len);
	memset(r->map, POISON, r->map_len);
	r->base = r->map + REGION_SHIFT;
	if (region_paging == 2)
		r->mr = ibv_reg_mr(pd, NULL, SIZE_MAX,
				   access | IBV_ACCESS_ON_DEMAND);
	else
		r->mr = ibv_reg_mr(
			pd, r->base, len,
			access | (region_paging ? IBV_ACCESS_ON_DEMAND : 0));
	if (!r->mr)
		return failed("ibv_reg_mr of %zu bytes, access %#x: %s", len,
			      access, strerror(errno));
	return true;
}

void region_free(struct region *r)
{
	if (r->mr && ibv_dereg_mr(r->mr))
		failed("ibv_dereg_mr: %s", strerror(errno));
	if (r->map && r->map != MAP_FAILED)
		munmap(r->map, r->map_len);
	memset(r, 0, sizeof(*r));
}

bool region_clean(const struct region *r, const char *name)
{
	ssize_t at = r->map ? poison_check(r->map, r->map_len) : -1;

	if (at < 0)
		return true;
	return failed("%s: byte %zd of a region of %zu was written to", name,
		      at - REGION_SHIFT, r->len);
}

static enum ibv_mtu mtu_enum(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && (128u << mtu) < bytes)
		mtu++;
	return mtu;
}

bool qp_init(struct ibv_qp *qp, const struct config *c, unsigned int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access,
		.qkey = QKEY,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= c->qp == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	if (ibv_modify_qp(qp, &attr, mask))
		return failed("modify to INIT: %s", strerror(errno));
	return true;
}

static struct ibv_ah_attr ah_attr(const struct config *c,
				  const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.static_rate = c->static_rate,
		.grh = {
			.dgid = *gid, .sgid_index = gid_index(c->gid),
			.hop_limit = 64, .traffic_class = c->tclass,
		},
	};

	return attr;
}

struct ibv_ah *ah_make(struct ibv_pd *pd, const struct config *c,
		       const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = ah_attr(c, gid);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	/*
	 * libibverbs gives a neighbour three seconds to answer; an emulated
	 * machine may need longer.
	 */
	if (!ah && errno == ETIMEDOUT)
		ah = ibv_create_ah(pd, &attr);
	if (!ah)
		failed("ibv_create_ah: %s", strerror(errno));
	return ah;
}

void peer_describe(struct peer *p, struct ibv_qp *qp, const struct config *c)
{
	p->gid = gid_of(c->gid);
	p->qpn = qp->qp_num;
	p->psn = (c->psn ? c->psn : mix64(now() * 1e6)) & 0xffffff;
	p->rd_atomic = min_u64(c->rd_atomic, device.max_qp_rd_atom);
	p->mtu = c->mtu ? c->mtu : 128u << port.active_mtu;
}

bool qp_to_rtr(struct ibv_qp *qp, const struct config *c,
	       const struct peer *peer)
{
	uint32_t mtu = c->mtu ? c->mtu :
				min_u64(peer->mtu, 128u << port.active_mtu);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_enum(mtu),
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic =
			min_u64(peer->rd_atomic, device.max_qp_rd_atom),
		.min_rnr_timer = c->rnr_timer,
		.ah_attr = ah_attr(c, &peer->gid),
	};
	int mask = IBV_QP_STATE;

	if (c->qp != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		IBV_QP_RQ_PSN;
	if (c->qp == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (ibv_modify_qp(qp, &attr, mask))
		return failed("modify to RTR: %s", strerror(errno));
	return true;
}

static bool qp_to_rts(struct ibv_qp *qp, const struct config *c,
		      uint32_t my_psn, const struct peer *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = my_psn,
		.timeout = c->timeout,
		.retry_cnt = c->retry,
		.rnr_retry = c->rnr_retry,
		/* The responder's resources. */
		.max_rd_atomic = min_u64(min_u64(c->rd_atomic,
						 device.max_qp_init_rd_atom),
					 peer->rd_atomic),
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (c->qp == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_MAX_QP_RD_ATOMIC;
	if (ibv_modify_qp(qp, &attr, mask))
		return failed("modify to RTS: %s", strerror(errno));
	return true;
}

bool qp_connect(struct ibv_qp *qp, const struct config *c, uint32_t my_psn,
		const struct peer *peer)
{
	return qp_to_rtr(qp, c, peer) && qp_to_rts(qp, c, my_psn, peer);
}

/*
 * The 40 bytes before a UD message: an IPv6 header, or an IPv4 header in the
 * last 20 of them.
 */
bool grh_check(const struct ibv_grh *grh, const union ibv_gid *sgid,
	       const union ibv_gid *dgid)
{
	const uint8_t *raw = (const uint8_t *)grh;

	if (raw[20] >> 4 == 4 && gid_is(sgid, GID_V4)) {
		if (!memcmp(raw + 32, sgid->raw + 12, 4) &&
		    !memcmp(raw + 36, dgid->raw + 12, 4))
			return true;
		return failed("UD: wrong addresses in the IPv4 header");
	}
	if (raw[0] >> 4 == 6) {
		if (!memcmp(&grh->sgid, sgid, 16) &&
		    !memcmp(&grh->dgid, dgid, 16))
			return true;
		return failed("UD: wrong addresses in the GRH");
	}
	return failed("UD: no IP header before the message");
}
