// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* IP headers of packets to an address vector. */

#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "av.h"
#include "ip.h"
#include "wire.h"

/**
 * arx_ip_read - the addresses of an IPv4 or IPv6 header
 * @ip: the header
 * @saddr: receives the source address, v4-mapped
 * @daddr: receives the destination address, v4-mapped
 *
 * Return: bytes of the header without options.
 */
unsigned int arx_ip_read(const struct iphdr *ip, struct in6_addr *saddr,
			 struct in6_addr *daddr)
{
	const struct ipv6hdr *ip6 = (const void *)ip;

	if (ip->version == 4) {
		ipv6_addr_set_v4mapped(ip->saddr, saddr);
		ipv6_addr_set_v4mapped(ip->daddr, daddr);
		return sizeof(*ip);
	}
	*saddr = ip6->saddr;
	*daddr = ip6->daddr;
	return sizeof(*ip6);
}

/**
 * arx_ip_is_marked - true if a router has marked a packet: RFC 3168
 * @ip: its IPv4 or IPv6 header
 *
 * Return: true if the ECN bits say "congestion experienced".
 */
bool arx_ip_is_marked(const struct iphdr *ip)
{
	return INET_ECN_is_ce(ip->version == 4 ? ip->tos :
			      ipv6_get_dsfield((const void *)ip));
}

/**
 * arx_ipv4_write - write an IPv4 header
 * @av: destination, an IPv4 one
 * @tos: traffic class with ECN bits
 * @ip: receives the header, its checksum left 0
 * @len: bytes after the header
 * @id: identification
 */
void arx_ipv4_write(const struct arx_av *av, u8 tos, struct iphdr *ip, u16 len,
		    u16 id)
{
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = tos;
	ip->tot_len = htons(sizeof(*ip) + len);
	ip->id = htons(id);
	ip->frag_off = htons(IP_DF);
	ip->ttl = av->ttl;
	ip->protocol = IPPROTO_UDP;
	ip->check = 0;
	ip->saddr = av->saddr.s6_addr32[3];
	ip->daddr = av->daddr.s6_addr32[3];
}

/**
 * arx_ipv6_write - write an IPv6 header
 * @av: destination, an IPv6 one
 * @tos: traffic class with ECN bits
 * @ip: receives the header
 * @len: bytes after the header
 */
void arx_ipv6_write(const struct arx_av *av, u8 tos, struct ipv6hdr *ip,
		    u16 len)
{
	ip6_flow_hdr(ip, tos, htonl(av->flow_label));
	ip->payload_len = htons(len);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = av->ttl;
	ip->saddr = av->saddr;
	ip->daddr = av->daddr;
}

/**
 * arx_grh_write - write the GRH that a datagram's receiver gets
 * @av: destination
 * @grh: receives ARX_GRH_LEN bytes; aligned for words
 * @len: bytes after the IP header
 * @id: identification
 *
 * An IPv4 header takes the last bytes, the bytes before are 0. The receiver
 * recognises an IPv4 header by its checksum.
 */
void arx_grh_write(const struct arx_av *av, void *grh, u16 len, u16 id)
{
	struct iphdr *ip = grh + ARX_GRH_LEN - sizeof(*ip);

	if (!av->ipv4) {
		arx_ipv6_write(av, av->tos, grh, len);
		return;
	}
	memset(grh, 0, ARX_GRH_LEN - sizeof(*ip));
	arx_ipv4_write(av, av->tos, ip, len, id);
	ip_send_check(ip);
}
