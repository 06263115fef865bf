// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Layer-3 domains and their sockets.
 *
 * A layer-3 domain is a network namespace, or a VRF in one. It has a pair of
 * UDP sockets as long as it has users: the devices whose netdevs are in the
 * namespace, and the GIDs whose netdevs are in the domain. Such a netdev may be
 * a macvlan that a container has in a namespace of its own.
 *
 * The sockets do not hold their namespace: a user goes when its netdev leaves
 * the namespace, and the last user closes them.
 */

#include <linux/cred.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "compat.h"
#include "l3.h"
#include "wire.h"

/* All domains: written under the mutex, read under RCU. */
static LIST_HEAD(arx_l3s);
static DEFINE_MUTEX(arx_l3_mutex);
static const struct arx_l3_rx *arx_l3_rx;

/* How many of the domains are VRFs. */
unsigned int arx_l3_vrfs;

static int arx_l3_bind(struct socket *sock, int family)
{
	struct sockaddr_in6 addr6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(ARX_UDP_PORT),
	};
	struct sockaddr_in addr4 = {
		.sin_family = AF_INET,
		.sin_port = htons(ARX_UDP_PORT),
	};

	if (family == AF_INET)
		return kernel_bind(sock, (void *)&addr4, sizeof(addr4));
	return kernel_bind(sock, (void *)&addr6, sizeof(addr6));
}

static void arx_l3_share_port(const struct net *net, bool share)
{
	struct arx_l3 *l3;

	list_for_each_entry(l3, &arx_l3s, link) {
		if (!net_eq(l3->net, net))
			continue;
		l3->sk4->sk->sk_reuseport = share;
		if (l3->sk6)
			l3->sk6->sk->sk_reuseport = share;
	}
}

/*
 * The socket of a namespace receives packets of no VRF, but bind() regards its
 * port as taken in all VRFs. Sockets of one user can share a port if all of
 * them have sk_reuseport set. The sockets of arx belong to root, and have it
 * set during this function only, so no other program can share the port later.
 */
static int arx_l3_bind_beside(const struct arx_l3 *l3, struct socket *sock,
			      int family)
{
	int err;

	arx_l3_share_port(l3->net, true);
	sock->sk->sk_reuseport = true;
	err = arx_l3_bind(sock, family);
	sock->sk->sk_reuseport = false;
	arx_l3_share_port(l3->net, false);
	return err;
}

static int arx_l3_setup_socket(struct arx_l3 *l3, struct socket *sock,
			       int family)
{
	int err = 0;

	if (family == AF_INET6) {
		udp_set_no_check6_rx(sock->sk, true);
		err = ip6_sock_set_v6only(sock->sk);
	}
	if (!err && l3->key.ifindex)
		err = sock_bindtoindex(sock->sk, l3->key.ifindex, true);
	return err ?: arx_l3_bind_beside(l3, sock, family);
}

static struct socket *arx_l3_open_socket(struct arx_l3 *l3, int family)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.sk_user_data = l3,
		.encap_type = 1,
		.encap_rcv = arx_l3_rx->encap,
		.gro_receive = arx_l3_rx->gro_receive,
		.gro_complete = arx_l3_rx->gro_complete,
	};
	struct socket *sock;
	int err;

	err = sock_create_kern(l3->net, family, SOCK_DGRAM, 0, &sock);
	if (err)
		return ERR_PTR(err);
	err = arx_l3_setup_socket(l3, sock, family);
	if (err) {
		sock_release(sock);
		return ERR_PTR(err);
	}
	arx_udp_tunnel_setup(l3->net, sock, &tunnel);
	udp_allow_gso(sock->sk);	/* the receiver handles GSO packets */
	return sock;
}

static void arx_l3_close_sockets(struct arx_l3 *l3)
{
	if (l3->sk6)
		arx_udp_tunnel_release(l3->sk6);
	if (l3->sk4)
		arx_udp_tunnel_release(l3->sk4);
}

static int arx_l3_open_sockets(struct arx_l3 *l3)
{
	struct socket *sock;

	sock = arx_l3_open_socket(l3, AF_INET);
	if (IS_ERR(sock))
		return PTR_ERR(sock);
	l3->sk4 = sock;

	sock = arx_l3_open_socket(l3, AF_INET6);
	if (!IS_ERR(sock)) {
		l3->sk6 = sock;
	} else if (PTR_ERR(sock) != -EAFNOSUPPORT &&
		   PTR_ERR(sock) != -EPFNOSUPPORT) {
		arx_l3_close_sockets(l3);
		return PTR_ERR(sock);
	}
	return 0;
}

/* Sockets belong to whoever makes them: to root, whoever the caller is. */
static int arx_l3_open(struct arx_l3 *l3)
{
	struct cred *root = prepare_kernel_cred(&init_task);
	const struct cred *caller;
	int err;

	if (!root)
		return -ENOMEM;
	caller = override_creds(root);
	err = arx_l3_open_sockets(l3);
	revert_creds(caller);
	put_cred(root);
	return err;
}

static struct arx_l3 *arx_l3_find(const struct arx_l3_key *key)
{
	struct arx_l3 *l3;

	list_for_each_entry(l3, &arx_l3s, link)
		if (arx_l3_same(&l3->key, key))
			return l3;
	return NULL;
}

static struct arx_l3 *arx_l3_create(struct net *net,
				    const struct arx_l3_key *key)
{
	struct arx_l3 *l3 = kzalloc(sizeof(*l3), GFP_KERNEL);
	int err;

	if (!l3)
		return ERR_PTR(-ENOMEM);
	l3->key = *key;
	l3->net = net;
	err = arx_l3_open(l3);
	if (err) {
		kfree(l3);
		return ERR_PTR(err);
	}
	list_add_rcu(&l3->link, &arx_l3s);
	if (key->ifindex)
		WRITE_ONCE(arx_l3_vrfs, arx_l3_vrfs + 1);
	return l3;
}

/**
 * arx_l3_get - use a layer-3 domain
 * @net: network namespace; its end is preceded by that of all users
 * @vrf: ifindex of a VRF's netdev in it, or 0
 *
 * Context: may sleep; RTNL may be held.
 * Return: the domain, -EADDRINUSE when its UDP port belongs to another driver,
 * or another error of making a socket.
 */
struct arx_l3 *arx_l3_get(struct net *net, int vrf)
{
	struct arx_l3_key key = { .cookie = net->net_cookie, .ifindex = vrf };
	struct arx_l3 *l3;

	mutex_lock(&arx_l3_mutex);
	l3 = arx_l3_find(&key) ?: arx_l3_create(net, &key);
	if (!IS_ERR(l3))
		l3->users++;
	mutex_unlock(&arx_l3_mutex);
	return l3;
}

/**
 * arx_l3_put - end a use of a layer-3 domain
 * @l3: from arx_l3_get()
 *
 * Context: may sleep; RTNL may be held.
 */
void arx_l3_put(struct arx_l3 *l3)
{
	mutex_lock(&arx_l3_mutex);
	if (!--l3->users) {
		list_del_rcu(&l3->link);
		if (l3->key.ifindex)
			WRITE_ONCE(arx_l3_vrfs, arx_l3_vrfs - 1);
		arx_l3_close_sockets(l3);
		kfree_rcu(l3, rcu);
	}
	mutex_unlock(&arx_l3_mutex);
}

/**
 * arx_l3_explain - say in the log why nothing can be received
 * @netdev: for which
 * @err: error of arx_l3_get()
 *
 * The administrator of a container can cause the error as often as it likes, by
 * a socket on the port and addresses of a macvlan. The lines are limited.
 */
void arx_l3_explain(const struct net_device *netdev, int err)
{
	if (err == -EADDRINUSE && net_ratelimit())
		netdev_err(netdev,
			   "arx: UDP port %u is in use in this network namespace, by rdma_rxe perhaps\n",
			   ARX_UDP_PORT);
}

/**
 * arx_l3_net - a network namespace by its cookie
 * @cookie: any
 *
 * Context: RCU read side.
 * Return: the namespace, or NULL if no domain is in it.
 */
struct net *arx_l3_net(u64 cookie)
{
	struct arx_l3 *l3;

	list_for_each_entry_rcu(l3, &arx_l3s, link)
		if (l3->key.cookie == cookie)
			return l3->net;
	return NULL;
}

static void __net_exit arx_l3_ns_exit(struct net *net)
{
	struct arx_l3 *l3;

	mutex_lock(&arx_l3_mutex);
	list_for_each_entry(l3, &arx_l3s, link)
		WARN_ON(net_eq(l3->net, net));
	mutex_unlock(&arx_l3_mutex);
}

static struct pernet_operations arx_l3_net_ops = {
	.exit = arx_l3_ns_exit,
};

/**
 * arx_l3_init - at module load
 * @rx: receive functions; must stay
 *
 * Return: 0 or -ENOMEM.
 */
int arx_l3_init(const struct arx_l3_rx *rx)
{
	arx_l3_rx = rx;
	return register_pernet_subsys(&arx_l3_net_ops);
}

/**
 * arx_l3_exit - at module unload, when no device is left
 *
 * Waits for RCU callbacks into this module: of closed sockets and of address
 * vectors.
 */
void arx_l3_exit(void)
{
	unregister_pernet_subsys(&arx_l3_net_ops);
	synchronize_net();
	rcu_barrier();
}
