/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* IP headers of packets to an address vector. */
#ifndef ARX_IP_H
#define ARX_IP_H

#include <linux/types.h>

struct arx_av;
struct in6_addr;
struct iphdr;
struct ipv6hdr;

unsigned int arx_ip_read(const struct iphdr *ip, struct in6_addr *saddr,
			 struct in6_addr *daddr);
bool arx_ip_is_marked(const struct iphdr *ip);
void arx_ipv4_write(const struct arx_av *av, u8 tos, struct iphdr *ip, u16 len,
		    u16 id);
void arx_ipv6_write(const struct arx_av *av, u8 tos, struct ipv6hdr *ip,
		    u16 len);
void arx_grh_write(const struct arx_av *av, void *grh, u16 len, u16 id);

#endif /* ARX_IP_H */
