// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The performance management agent (16.1): counters of the port as MADs. The
 * core's "counters" directory in sysfs asks the same agent.
 */

#include <rdma/ib_pma.h>

#include "arx.h"
#include "pma.h"

/* The 32-bit counters of 16.1.3.5 stop at their largest value. */
static __be32 arx_pma_32(u64 value)
{
	return cpu_to_be32(min(value, U32_MAX));
}

static __be16 arx_pma_16(u64 value)
{
	return cpu_to_be16(min(value, U16_MAX));
}

static u64 arx_pma_rcv_errors(const struct arx_dev *dev)
{
	return arx_stats_total(dev, ARX_CNT_RX_ICRC_ERR) +
	       arx_stats_total(dev, ARX_CNT_RX_MALFORMED);
}

/* Data are counted in units of four bytes. */
static u64 arx_pma_xmit_data(const struct arx_dev *dev)
{
	return arx_stats_total(dev, ARX_CNT_SENT_BYTES) / 4;
}

static u64 arx_pma_rcv_data(const struct arx_dev *dev)
{
	return arx_stats_total(dev, ARX_CNT_RCVD_BYTES) / 4;
}

static void arx_pma_class_port_info(struct ib_pma_mad *out)
{
	struct ib_class_port_info *info = (void *)out->data;

	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = 1;
	info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF;
}

static void arx_pma_counters(const struct arx_dev *dev, struct ib_pma_mad *out)
{
	struct ib_pma_portcounters *to = (void *)out->data;

	to->port_select = 1;
	to->port_rcv_errors = arx_pma_16(arx_pma_rcv_errors(dev));
	to->port_xmit_data = arx_pma_32(arx_pma_xmit_data(dev));
	to->port_rcv_data = arx_pma_32(arx_pma_rcv_data(dev));
	to->port_xmit_packets =
		arx_pma_32(arx_stats_total(dev, ARX_CNT_SENT_PKTS));
	to->port_rcv_packets =
		arx_pma_32(arx_stats_total(dev, ARX_CNT_RCVD_PKTS));
}

static void arx_pma_counters_ext(const struct arx_dev *dev,
				 struct ib_pma_mad *out)
{
	struct ib_pma_portcounters_ext *to = (void *)out->data;

	to->port_select = 1;
	to->port_xmit_data = cpu_to_be64(arx_pma_xmit_data(dev));
	to->port_rcv_data = cpu_to_be64(arx_pma_rcv_data(dev));
	to->port_xmit_packets =
		cpu_to_be64(arx_stats_total(dev, ARX_CNT_SENT_PKTS));
	to->port_rcv_packets =
		cpu_to_be64(arx_stats_total(dev, ARX_CNT_RCVD_PKTS));
}

/* PortSelect is the second byte of both kinds of counters. */
static __be16 arx_pma_get(const struct arx_dev *dev,
			  const struct ib_pma_mad *in, struct ib_pma_mad *out)
{
	if (in->mad_hdr.attr_id == IB_PMA_CLASS_PORT_INFO) {
		arx_pma_class_port_info(out);
		return 0;
	}
	if (in->data[1] != 1)
		return cpu_to_be16(IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	switch (in->mad_hdr.attr_id) {
	case IB_PMA_PORT_COUNTERS:
		arx_pma_counters(dev, out);
		return 0;
	case IB_PMA_PORT_COUNTERS_EXT:
		arx_pma_counters_ext(dev, out);
		return 0;
	default:
		return cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	}
}

/**
 * arx_process_mad - verb: respond to a MAD for the device itself
 * @ib: device
 * @flags: unused: no key protects counters that can only be read
 * @port: its port
 * @wc: unused
 * @grh: unused
 * @in: any MAD that QP1 received, or a request of the core
 * @out: receives the response
 * @size: unused: of @out
 * @pkey_index: receives the P_Key index of the response
 *
 * Set() of PortCounters would reset the counters. It is refused, because any
 * node could reset counters that other nodes watch.
 *
 * Return: what the core must do with @in and @out.
 */
int arx_process_mad(struct ib_device *ib, int flags, u32 port,
		    const struct ib_wc *wc, const struct ib_grh *grh,
		    const struct ib_mad *in, struct ib_mad *out, size_t *size,
		    u16 *pkey_index)
{
	const struct ib_pma_mad *request = (const void *)in;
	struct ib_pma_mad *response = (void *)out;
	struct ib_mad_hdr *hdr = &response->mad_hdr;

	/* A response gets no response. */
	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    (in->mad_hdr.method != IB_MGMT_METHOD_GET &&
	     in->mad_hdr.method != IB_MGMT_METHOD_SET))
		return IB_MAD_RESULT_SUCCESS;

	memset(response, 0, sizeof(*response));
	*hdr = request->mad_hdr;
	hdr->method = IB_MGMT_METHOD_GET_RESP;
	*pkey_index = 0;
	if (request->mad_hdr.class_version != 1)
		hdr->status = cpu_to_be16(IB_MGMT_MAD_STATUS_BAD_VERSION);
	else if (request->mad_hdr.method != IB_MGMT_METHOD_GET)
		hdr->status = cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD);
	else
		hdr->status = arx_pma_get(to_arx_dev(ib), request, response);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
