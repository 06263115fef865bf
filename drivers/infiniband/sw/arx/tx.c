// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Turns runs into packets.
 *
 * Payload whose memory is stable is not copied: the packets hold its pages. (If
 * an application changes the memory before the completion, the peer may see the
 * change; retransmissions of acknowledged packets are ignored by the peer.)
 * Memory of a dma-buf is copied: see arx_iter_may_hold().
 */

#include <linux/pkt_sched.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/sock.h>

#include "compat.h"
#include "super.h"
#include "gso.h"
#include "ip.h"
#include "net.h"
#include "order.h"
#include "schedule.h"
#include "sock.h"
#include "tx.h"
#include "uso.h"

/* Payload up to this size is cheaper to copy than to refer to. */
#define ARX_TX_LINEAR		256

/**
 * struct arx_tx - a run while packets are made of it
 * @run: the run; its payload iterator advances
 * @headroom: bytes in front of the BTH
 * @linear: packets with up to this much payload have it copied
 * @hold: refer to the payload's pages, if they can be held; cleared when it is
 *	found that they may not
 * @page: the last page that was found fit to be held
 */
struct arx_tx {
	struct arx_run *run;
	unsigned int headroom;
	u32 linear;
	bool hold;
	struct page *page;
};

/*
 * This machine dropped @n packets of a stage, from @psn on, and will drop the
 * following ones. The stage sends no more in this turn and goes back at its
 * end. It is started again when fewer bytes are queued than now, or after a
 * time. A packet that leaves meanwhile is missed; the time bounds the delay.
 */
static void arx_tx_drop(struct arx_qp *qp, struct arx_tx_out *out, u32 psn,
			u32 n)
{
	out->dropped = true;
	out->lost = psn;
	arx_count_add(qp, TX_DROPPED, n);
	arx_sock_wake_on_less(qp);
	/* Perhaps no packet of the QP is queued whose end could wake it. */
	arx_qp_schedule_later(qp);
}

/*
 * True if the stage should try again soon. Packets without a route or
 * neighbour, or behind a firewall, count as lost on the way.
 */
static bool arx_tx_is_short(int err)
{
	return err == NET_XMIT_DROP || err == -ENOBUFS || err == -ENOMEM;
}

static u32 arx_tx_priority(const struct arx_av *av)
{
	return av->sl ? av->sl & 7 : rt_tos2priority(av->tos);
}

/*
 * Packets with data are ECN capable (RFC 3168) if the QP reacts to the CNPs
 * that its peer sends for marked packets. An ACK has the traffic class of the
 * responses with which it leaves.
 */
static u8 arx_tx_tos(const struct arx_qp *qp, const struct arx_av *av,
		     const struct arx_run *run)
{
	const struct arx_dev *dev = arx_qp_dev(qp);

	if (unlikely(run->h.op == ARX_OP_CNP))
		return READ_ONCE(dev->cnp_dscp) << 2;
	if (qp->cc == ARX_CC_FIXED || run->h.op == ARX_OP_ACK ||
	    !READ_ONCE(dev->ecn))
		return av->tos;
	return av->tos | INET_ECN_ECT_0;
}

static int arx_tx_copy(struct arx_tx *tx, void *to, u32 len)
{
	struct arx_iter it __uninitialized;

	arx_iter_buf(&it, to);
	return arx_iter_copy(&it, &tx->run->payload, len) == ARX_COPY_OK ?
	       0 : -EFAULT;
}

/*
 * Append fresh memory for the packet's data after the BTH. Its pages are shared
 * only with other such memory. At most a page: for more the allocator fails
 * where large pages are scarce.
 */
static void *arx_tx_add_piece(struct sk_buff *skb, u32 len)
{
	void *p = napi_alloc_frag(len);
	struct page *page;

	if (!p)
		return NULL;
	page = virt_to_head_page(p);
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page,
			p - page_address(page), len, SKB_DATA_ALIGN(len));
	return p;
}

/*
 * Append the bytes at @p, all in one page; false if that is not allowed. The
 * page belongs to a memory region, and may be page cache of a file that the
 * application may only read. SKBFL_SHARED_FRAG keeps the stack from writing to
 * it: without that flag, IPsec for example decrypts in place.
 */
static bool arx_tx_add_page(struct arx_tx *tx, struct sk_buff *skb, void *p,
			    u32 len)
{
	struct page *page = virt_to_page(p);
	int i = skb_shinfo(skb)->nr_frags;

	if (page != tx->page && (!virt_addr_valid(p) || !sendpage_ok(page)))
		return false;
	tx->page = page;
	if (skb_can_coalesce(skb, i, page, offset_in_page(p))) {
		skb_coalesce_rx_frag(skb, i - 1, len, len);
		return true;
	}
	if (i == MAX_SKB_FRAGS - 1)	/* one slot is for the trailer */
		return false;
	get_page(page);
	/* A user page must not set pfmemalloc of the packet. */
	skb_fill_page_desc_noacc(skb, i, page, offset_in_page(p), len);
	skb_len_add(skb, len);
	skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
	return true;
}

/*
 * Refer to the payload's pages. Each page is held by itself, because contiguous
 * pages need not be one folio. -E2BIG: there are too many, or some cannot be
 * held (slab, dma-buf); the packet is unchanged, the iterator is not. For
 * memory of a dma-buf @tx->hold is cleared, too: one copy of all is better than
 * single packets, each of which meets the buffer.
 */
static int arx_tx_add_pages(struct arx_tx *tx, struct sk_buff *skb, u32 len)
{
	u32 headers = skb->len;

	while (len) {
		u32 n;
		void *p = arx_iter_next(&tx->run->payload, len, &n);

		if (!p)
			return -EFAULT;
		tx->hold = arx_iter_may_hold(&tx->run->payload);
		if (!tx->hold)
			return __pskb_trim(skb, headers) ?: -E2BIG;
		len -= n;
		while (n) {
			u32 m = min_t(u32, n, PAGE_SIZE - offset_in_page(p));

			if (!arx_tx_add_page(tx, skb, p, m))
				return __pskb_trim(skb, headers) ?: -E2BIG;
			p += m;
			n -= m;
		}
	}
	return 0;
}

/* Copy the payload into fresh memory. */
static int arx_tx_add_copy(struct arx_tx *tx, struct sk_buff *skb, u32 len)
{
	while (len) {
		u32 n = min_t(u32, len, PAGE_SIZE);
		void *p = arx_tx_add_piece(skb, n);

		if (!p)
			return -ENOMEM;
		if (arx_tx_copy(tx, p, n))
			return -EFAULT;
		len -= n;
	}
	return 0;
}

/*
 * Write pad bytes and the place of the ICRC, at the end of a packet of @len
 * bytes.
 */
static void arx_tx_write_trailer(u8 *p, u32 pad, u32 len)
{
	while (pad--)
		*p++ = 0;
	arx_gso_write_len(p, len);
}

/* Append the payload of a packet that is not linear. */
static int arx_tx_add_payload(struct arx_tx *tx, struct sk_buff *skb, u32 len)
{
	struct arx_iter start = tx->run->payload;
	int err = tx->hold ? arx_tx_add_pages(tx, skb, len) : -E2BIG;

	if (err != -E2BIG || (tx->hold && len > tx->run->mtu))
		return err;
	arx_iter_rewind(&tx->run->payload, &start);
	return arx_tx_add_copy(tx, skb, len);
}

/*
 * Make a packet of @len bytes from the BTH on, with room for the ICRC at its
 * end. It is a super-packet if @len is more than the path MTU allows.
 */
static struct sk_buff *arx_tx_make_packet(struct arx_tx *tx,
					  const struct arx_headers *h, u32 len)
{
	u32 trailer = h->pad + ARX_ICRC_LEN;
	u32 headers = arx_headers_len(h);
	bool linear = len <= tx->linear && len <= tx->run->mtu;
	u32 size = headers + (linear ? len + trailer : 0);
	struct sk_buff *skb;
	void *p;
	int err;

	skb = arx_packet_alloc(tx->headroom + size);
	if (!skb)
		return ERR_PTR(-ENOMEM);
	skb_reserve(skb, tx->headroom);
	p = skb_put(skb, size);
	p += arx_headers_write(h, p);

	if (linear) {
		err = arx_tx_copy(tx, p, len);
		p += len;
	} else {
		err = arx_tx_add_payload(tx, skb, len);
		p = err ? NULL : arx_tx_add_piece(skb, trailer);
	}
	if (!err && !p)
		err = -ENOMEM;
	if (err) {
		kfree_skb(skb);
		return ERR_PTR(err);
	}
	arx_tx_write_trailer(p, h->pad, skb->len);
	return skb;
}

/* Append one packet, which may be a super-packet of @n, to @batch. */
static int arx_tx_add(struct arx_tx *tx, struct arx_tx_batch *batch,
		      const struct arx_headers *h, u32 len, u32 n)
{
	struct sk_buff *skb = arx_tx_make_packet(tx, h, len);

	if (IS_ERR(skb))
		return PTR_ERR(skb);
	*batch->end = skb;
	batch->end = &skb->next;
	batch->n += n;
	batch->len += skb->len;
	if (n > 1)
		batch->len += arx_headers_more(h, n);
	batch->largest = max(batch->largest, n == 1 ? skb->len :
			     arx_super_largest(h, tx->run->mtu));
	return 0;
}

/* Make each packet of the run; none if one fails. */
static int arx_tx_add_each(struct arx_tx *tx, struct arx_tx_batch *batch)
{
	struct arx_tx_batch before = *batch;
	struct arx_run *run = tx->run;
	int err = 0;
	u32 i;

	for (i = 0; i < run->npkts && !err; i++) {
		struct arx_headers h;

		arx_headers_part(&run->h, i, i + 1 == run->npkts, &h);
		err = arx_tx_add(tx, batch, &h,
				 min(run->mtu, run->len - i * run->mtu), 1);
	}
	if (err) {
		kfree_skb_list(*before.end);
		*before.end = NULL;
		*batch = before;
	}
	return err;
}

/* Make a super-packet of the run, unless the payload is in too many places. */
static int arx_tx_add_super(struct arx_tx *tx, struct arx_tx_batch *batch)
{
	struct arx_run *run = tx->run;
	struct arx_iter start = run->payload;
	int err = arx_tx_add(tx, batch, &run->h, run->len, run->npkts);

	if (err == -E2BIG)
		arx_iter_rewind(&run->payload, &start);
	return err;
}

/* Append the run to @batch; nothing of it if that fails. */
static int arx_tx_append(struct arx_tx *tx, struct arx_tx_batch *batch)
{
	struct arx_run *run = tx->run;
	int err = -E2BIG;

	if (run->npkts == 1)
		return arx_tx_add(tx, batch, &run->h, run->len, 1);
	if (arx_super_fits(run->len, run->mtu) && !arx_has_xrceth(&run->h))
		err = arx_tx_add_super(tx, batch);
	return err == -E2BIG ? arx_tx_add_each(tx, batch) : err;
}

static void arx_tx_push_udp(const struct arx_tx_batch *batch,
			    struct sk_buff *skb)
{
	struct udphdr *udp = skb_push(skb, sizeof(*udp));

	skb_reset_transport_header(skb);
	udp->source = htons(batch->sport);
	udp->dest = htons(ARX_UDP_PORT);
	udp->len = htons(skb->len);
	udp->check = 0;		/* A17.3.1.2: the ICRC covers the packet */
}

/*
 * The identification follows the PSN, so that it increments with the packets of
 * a run, as it does when the stack segments a larger packet: the ICRC covers
 * it.
 */
static void arx_tx_push_ipv4(const struct arx_tx_batch *batch,
			     struct sk_buff *skb, u16 id)
{
	struct iphdr *ip = skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	skb->protocol = htons(ETH_P_IP);
	arx_ipv4_write(batch->av, batch->tos, ip, skb->len - sizeof(*ip), id);
}

static void arx_tx_push_ipv6(const struct arx_tx_batch *batch,
			     struct sk_buff *skb)
{
	struct ipv6hdr *ip = skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	skb->protocol = htons(ETH_P_IPV6);
	arx_ipv6_write(batch->av, batch->tos, ip, skb->len - sizeof(*ip));
}

static void arx_tx_put_icrc(struct sk_buff *skb)
{
	__le32 icrc = arx_icrc(skb);

	skb_store_bits(skb, skb->len - sizeof(icrc), &icrc, sizeof(icrc));
}

static int arx_tx_local_out(struct net *net, struct sock *sk,
			    struct sk_buff *skb)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (skb->protocol == htons(ETH_P_IPV6))
		return ip6_local_out(net, sk, skb);
#endif
	return ip_local_out(net, sk, skb);
}

/*
 * Pass a packet, or joined ones, to the stack, which consumes it in any case.
 * Returns 0, NET_XMIT_DROP or an error.
 */
static int arx_tx_send_packet(struct arx_qp *qp,
			      const struct arx_tx_batch *batch,
			      struct sk_buff *skb, u32 psn)
{
	struct net *net = dev_net(dst_dev_rcu(batch->dst));
	struct sock *sk = qp->tx_sk;
	int err;

	arx_tx_push_udp(batch, skb);
	if (batch->av->ipv4)
		arx_tx_push_ipv4(batch, skb, psn);
	else
		arx_tx_push_ipv6(batch, skb);
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		arx_uso_finish(skb);
	else if (skb_is_gso(skb))
		arx_gso_mark(skb);
	else
		arx_tx_put_icrc(skb);

	skb->priority = batch->priority;
	skb_dst_set_noref(skb, batch->dst);
	skb_set_owner_w(skb, sk);
	skb_set_dst_pending_confirm(skb, READ_ONCE(sk->sk_dst_pending_confirm));
	/*
	 * The first packet in flight must not choose another queue than the
	 * next.
	 */
	skb->ooo_okay = 0;
	err = arx_tx_local_out(net, sk, skb);
	return net_xmit_eval(err);
}

static void arx_tx_send_packets(struct arx_qp *qp, struct arx_tx_out *out,
				struct sk_buff *skb)
{
	const struct arx_tx_batch *batch = &out->batch;
	u32 i = 0;

	while (skb) {
		struct sk_buff *next = skb->next;
		u32 psn = arx_psn_add(batch->psn, i);
		u32 n = arx_uso_packets(skb);
		int err;

		skb_mark_not_on_list(skb);
		err = arx_tx_send_packet(qp, batch, skb, psn);
		if (err) {
			/* The peer would drop packets that follow a loss. */
			kfree_skb_list(next);
			if (arx_tx_is_short(err))
				arx_tx_drop(qp, out, psn, batch->n - i);
			return;
		}
		skb = next;
		i += n;
	}
}

/*
 * True if the packets should be joined. Even a single packet is, if its ICRC
 * can then be avoided. Not if the stack will transform the payload (IPsec,
 * encapsulation by the route), or would transmit joined packets as they are. A
 * short packet is not worth the split in front of a netdev that does not accept
 * it.
 */
static bool arx_tx_joins(const struct arx_qp *qp,
			 const struct arx_tx_batch *batch)
{
	struct net_device *netdev = dst_dev_rcu(batch->dst);

	return arx_gso_usable() && !arx_tx_goes_alone(qp) &&
	       (batch->n > 1 || skb_is_nonlinear(batch->first) ||
		netdev->features & NETIF_F_GSO_FRAGLIST) &&
	       !dst_xfrm(batch->dst) && !batch->dst->lwtstate &&
	       arx_gso_may_leave(netdev);
}

/* Watch the first of @trains, between which there may be packets. */
static void arx_tx_watch(struct arx_tx_out *out, const struct sk_buff *trains)
{
	u32 from = out->batch.psn;
	u32 psn = from;

	for (; trains && !skb_is_gso(trains); trains = trains->next)
		psn = arx_psn_add(psn, 1);
	if (trains)
		arx_trial_begin(&out->trial, from, psn);
}

/* True if a stage sends packets again that a card's splits have lost. */
static bool arx_tx_recovers(const struct arx_qp *qp,
			    const struct arx_tx_out *out)
{
	if (out != &qp->req.out)
		return arx_qp_is_acked(qp);
	return arx_qp_is_acked(qp) && qp->attr.timeout && qp->attr.retry_cnt;
}

/*
 * True if the packets may leave as trains of up to @most. Packets that are sent
 * again leave by themselves, because the card may be the cause of their loss.
 */
static bool arx_tx_may_train(const struct arx_qp *qp,
			     const struct arx_tx_out *out,
			     struct arx_uso_limits *most)
{
	const struct arx_tx_batch *batch = &out->batch;

	return batch->n > 1 && arx_tx_recovers(qp, out) && !batch->again &&
	       arx_trial_may(&out->trial) &&
	       arx_uso_usable(dst_dev_rcu(batch->dst), batch->av->ipv4, most);
}

/*
 * Make trains for the card, if it splits UDP packets. Returns NULL if not, or
 * without memory.
 */
static struct sk_buff *arx_tx_trains(struct arx_qp *qp, struct arx_tx_out *out)
{
	const struct arx_tx_batch *batch = &out->batch;
	struct sk_buff *trains = NULL;
	struct arx_uso_limits most;

	if (arx_tx_may_train(qp, out, &most))
		trains = arx_uso_make(batch->first, batch->largest, &most);
	if (trains) {
		arx_tx_watch(out, trains);
		arx_count_add(qp, ICRC_COMPUTED, batch->n);
		arx_count_add(qp, SENT_USO, batch->n);
	}
	return trains;
}

/*
 * Bring the packets of a batch into the form in which they leave. Returns NULL
 * without memory: then they are gone.
 */
static struct sk_buff *arx_tx_form(struct arx_qp *qp, struct arx_tx_out *out)
{
	const struct arx_tx_batch *batch = &out->batch;
	struct sk_buff *first = batch->first;
	struct sk_buff *trains;

	if (arx_tx_joins(qp, batch)) {
		trains = arx_tx_trains(qp, out);
		if (trains)
			return trains;
		arx_gso_join(first, batch->n, batch->largest);
		arx_count_add(qp, ICRC_AVOIDED, batch->n);
		return first;
	}
	if (arx_super_segment(&first, batch->largest,
			      dst_dev_rcu(batch->dst)->features)) {
		kfree_skb_list(first);
		return NULL;
	}
	arx_count_add(qp, ICRC_COMPUTED, batch->n);
	return first;
}

static void arx_tx_send(struct arx_qp *qp, struct arx_tx_out *out)
{
	const struct arx_tx_batch *batch = &out->batch;
	struct sk_buff *first;

	arx_count(qp, SENT_RUNS);
	arx_count_add(qp, SENT_PKTS, batch->n);
	arx_count_add(qp, SENT_BYTES, batch->len);
	first = arx_tx_form(qp, out);
	if (!first) {
		arx_tx_drop(qp, out, batch->psn, batch->n);
		return;
	}
	arx_keep_tx_queue(qp->tx_sk,
			  arx_order_queue(qp, dst_dev_rcu(batch->dst),
					  arx_tx_priority(batch->av)));
	arx_tx_send_packets(qp, out, first);
}

/**
 * arx_tx_flush - pass the packets of a batch to the stack
 * @qp: sender
 * @out: of the stage; its batch is empty afterwards
 *
 * The packets leave inside this function, so receivers on this machine run
 * after it. Packets lost on the way are lost, as any packet may be. For packets
 * that this machine drops for lack of room or memory the stage goes back: see
 * @dropped of struct arx_tx_out.
 *
 * Context: as arx_tx_run(), and in the same RCU read section.
 */
void arx_tx_flush(struct arx_qp *qp, struct arx_tx_out *out)
{
	struct arx_tx_batch *batch = &out->batch;

	if (!batch->av)
		return;
	if (batch->n)
		arx_tx_send(qp, out);
	dst_release(batch->dst);
	*batch = (struct arx_tx_batch) {};
}

/* The stack would copy fragments for a netdev without scatter/gather. */
static u32 arx_tx_linear(const struct dst_entry *dst)
{
	if (dst_dev_rcu(dst)->features & NETIF_F_SG)
		return ARX_TX_LINEAR;
	return U32_MAX;
}

static unsigned int arx_tx_headroom(const struct arx_av *av,
				    struct dst_entry *dst)
{
	return LL_RESERVED_SPACE(dst_dev_rcu(dst)) + dst->header_len +
	       (av->ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)) +
	       sizeof(struct udphdr);
}

/*
 * True if a run can leave with the packets of @batch. Datagrams cannot: each is
 * delivered with its own IP header.
 */
static bool arx_tx_follows(const struct arx_tx_batch *batch,
			   const struct arx_av *av, const struct arx_run *run)
{
	return batch->av == av && !batch->full &&
	       run->h.service != ARX_SERVICE_UD &&
	       run->h.psn == arx_psn_add(batch->psn, batch->n) &&
	       batch->len + arx_tx_size(run->len, run->npkts) <=
		       ARX_TX_BATCH_MAX;
}

/*
 * The UDP source port alone distinguishes flows for RSS and ECMP. An AH does
 * not know the QPs of its datagrams, so their port depends on both QPNs, unless
 * the AH has a flow label.
 */
static u16 arx_tx_sport(const struct arx_qp *qp, const struct arx_av *av,
			const struct arx_run *run)
{
	return !arx_qp_is_connected(qp) && !av->flow_label ?
	       rdma_get_udp_sport(0, qp->id.nr, run->h.qpn) : av->sport;
}

static int arx_tx_begin(struct arx_qp *qp, struct arx_tx_batch *batch,
			struct arx_av *av, const struct arx_run *run)
{
	struct dst_entry *dst = arx_net_route(arx_qp_dev(qp), av);

	if (IS_ERR(dst))
		return PTR_ERR(dst);
	batch->dst = dst;
	batch->av = av;
	batch->end = &batch->first;
	batch->psn = run->h.psn;
	batch->sport = arx_tx_sport(qp, av, run);
	batch->tos = arx_tx_tos(qp, av, run);
	/*
	 * A CNP must not wait behind the packets that cause congestion.
	 * ConnectX gives CNPs this priority, too.
	 */
	batch->priority = run->h.op == ARX_OP_CNP ? TC_PRIO_INTERACTIVE :
						    arx_tx_priority(av);
	return 0;
}

/**
 * arx_tx_run - send a run over the wire
 * @qp: sender
 * @av: destination
 * @run: at most ARX_TX_RUN_MAX bytes; its payload iterator is used up
 * @out: of the stage; its batch owns the packets until arx_tx_flush()
 *
 * Packet i has PSN @run->h.psn + i. @run->h.flags describe the whole: FIRST
 * applies to the first packet, all others to the last. If the run's packets
 * cannot join those of the batch, the latter leave first.
 *
 * Context: bottom halves off, within the RCU read section of the payload.
 * Return: 0; -EAGAIN: nothing was sent and the QP is scheduled when there is
 * room; -EFAULT: the payload cannot be read, nothing was sent; another error:
 * the run is lost.
 */
int arx_tx_run(struct arx_qp *qp, struct arx_av *av, struct arx_run *run,
	       struct arx_tx_out *out)
{
	struct arx_tx_batch *batch = &out->batch;
	struct arx_tx tx = {
		.run = run,
		.hold = run->payload_stable,
	};
	int err;

	if (out->dropped || !arx_order_may_send(qp, &out->order, run) ||
	    !arx_sock_has_room(qp))
		return -EAGAIN;
	if (!arx_tx_follows(batch, av, run)) {
		arx_tx_flush(qp, out);
		if (out->dropped)
			return -EAGAIN;
		err = arx_tx_begin(qp, batch, av, run);
		/* Two errors have another meaning for the caller. */
		if (err)
			return err == -EAGAIN || err == -EFAULT ?
			       -ENETUNREACH : err;
	}

	batch->again |= run->again;
	tx.headroom = arx_tx_headroom(av, batch->dst);
	tx.linear = arx_tx_linear(batch->dst);
	err = arx_tx_append(&tx, batch);
	if (err == -ENOMEM) {
		arx_tx_drop(qp, out, run->h.psn, run->npkts);
		return -EAGAIN;
	}
	/* No run worth waiting for would fit. */
	if (batch->len + arx_tx_size(run->mtu, 1) > ARX_TX_BATCH_MAX)
		arx_tx_flush(qp, out);
	return err;
}
