// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Cost of a request and its response in the network stack alone: 8 bytes by UDP
 * from 192.0.2.2 to 192.0.2.1. The receive function responds, as arx responds
 * to a READ, but without a queue pair and without a system call.
 *
 * Writing 1 or 2 to the parameter "host" gives the writer's network namespace
 * this last byte of the address, once. Then reading "echo" returns nanoseconds:
 * the median, the 99 % and the 99.9 %, and the same for two requests in a row,
 * because longer work is interrupted more often. The module stays until the
 * machine ends.
 */

#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <net/ip.h>
#include <net/route.h>
#include <net/udp_tunnel.h>

#define PORT	4792
#define TIMES	40000

/**
 * struct host - one end
 * @sock: receives, and owns sent packets
 * @rt: route to the other end
 * @addr: its address
 */
struct host {
	struct socket *sock;
	struct rtable *rt;
	__be32 addr;
};

static struct host client = { .addr = cpu_to_be32(0xc0000202) };
static struct host server = { .addr = cpu_to_be32(0xc0000201) };
static bool responded;

static void push_udp(struct sk_buff *skb)
{
	struct udphdr *udp = skb_push(skb, sizeof(*udp));

	skb_reset_transport_header(skb);
	udp->source = htons(PORT);
	udp->dest = htons(PORT);
	udp->len = htons(skb->len);
	udp->check = 0;
}

static void push_ip(struct sk_buff *skb, __be32 from, __be32 to)
{
	struct iphdr *ip = skb_push(skb, sizeof(*ip));

	skb_reset_network_header(skb);
	*ip = (struct iphdr) {
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
		.frag_off = htons(IP_DF), .saddr = from, .daddr = to,
	};
	skb->protocol = htons(ETH_P_IP);
}

static void send_to(struct host *from, struct host *to)
{
	struct sock *sk = from->sock->sk;
	struct sk_buff *skb;

	skb = alloc_skb(LL_MAX_HEADER + 64, GFP_ATOMIC);
	if (!skb)
		return;
	skb_reserve(skb, LL_MAX_HEADER + 56);
	memset(skb_put(skb, 8), 0, 8);
	push_udp(skb);
	push_ip(skb, from->addr, to->addr);
	skb_dst_set_noref(skb, &from->rt->dst);
	skb_set_owner_w(skb, sk);
	ip_local_out(sock_net(sk), sk, skb);
}

static int heard(struct sock *sk, struct sk_buff *skb)
{
	consume_skb(skb);
	if (sk == server.sock->sk)
		send_to(&server, &client);
	else
		WRITE_ONCE(responded, true);
	return 0;
}

/* Nanoseconds, or -ETIMEDOUT. */
static int ask(void)
{
	u64 ns, start = ktime_get_ns();

	WRITE_ONCE(responded, false);
	rcu_read_lock();
	local_bh_disable();
	send_to(&client, &server);
	local_bh_enable();
	rcu_read_unlock();
	while (!READ_ONCE(responded)) {
		cpu_relax();
		if (ktime_get_ns() - start > NSEC_PER_SEC)
			return -ETIMEDOUT;
	}
	ns = ktime_get_ns() - start;
	return ns;
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Sorts the values. Returns the length of the text. */
static int emit(char *buffer, int at, int *ns, int n)
{
	sort(ns, n, sizeof(*ns), compare, NULL);
	return sysfs_emit_at(buffer, at, "%d %d %d%c", ns[n / 2],
			     ns[n / 100 * 99], ns[n / 1000 * 999],
			     at ? '\n' : ' ');
}

static int echo(char *buffer, const struct kernel_param *kp)
{
	int *ns, *two, i, ret = 0;

	if (!client.rt || !server.rt)
		return -ENOTCONN;
	ns = kvcalloc(TIMES + TIMES / 2, sizeof(*ns), GFP_KERNEL);
	if (!ns)
		return -ENOMEM;
	two = ns + TIMES;
	for (i = 0; i < TIMES && ret >= 0; i++) {
		ret = ask();
		ns[i] = ret;
		two[i / 2] += ret;
		if (i % 2)
			cond_resched();
	}
	if (ret >= 0) {
		ret = emit(buffer, 0, ns, TIMES);
		ret += emit(buffer, ret, two, TIMES / 2);
	}
	kvfree(ns);
	return ret;
}

static int host(const char *value, const struct kernel_param *kp)
{
	struct udp_port_cfg port = {
		.family = AF_INET, .local_udp_port = htons(PORT),
	};
	struct net *net = current->nsproxy->net_ns;
	struct flowi4 route = {};
	struct host *here, *there;
	struct rtable *rt;
	int n, err;

	err = kstrtoint(value, 0, &n);
	if (err)
		return err;
	if (n != 1 && n != 2)
		return -EINVAL;
	here = n == 1 ? &server : &client;
	there = n == 1 ? &client : &server;
	if (here->sock)
		return -EBUSY;

	err = udp_sock_create(net, &port, &here->sock);
	if (err)
		return err;
	udp_sk(here->sock->sk)->encap_type = 1;
	udp_sk(here->sock->sk)->encap_rcv = heard;
	udp_tunnel_encap_enable(here->sock->sk);

	route.saddr = here->addr;
	route.daddr = there->addr;
	rt = ip_route_output_key(net, &route);
	if (IS_ERR(rt))
		return PTR_ERR(rt);
	here->rt = rt;
	return 0;
}

static const struct kernel_param_ops echo_ops = { .get = echo };
static const struct kernel_param_ops host_ops = { .set = host };

module_param_cb(echo, &echo_ops, NULL, 0400);
MODULE_PARM_DESC(
	echo, "nanoseconds there and back, once and twice: 50 %, 99 %, 99.9 %");
module_param_cb(host, &host_ops, NULL, 0200);
MODULE_PARM_DESC(host, "1 or 2: this network namespace is that host");

static int __init bench_echo_init(void)
{
	return 0;
}
module_init(bench_echo_init);

MODULE_DESCRIPTION("Round trip through the network stack");
MODULE_LICENSE("Dual BSD/GPL");
