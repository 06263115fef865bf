#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Write vectors.h: packets that arx had no part in making.

BTH, AETH and ICRC are scapy's (scapy.contrib.roce); the other extension headers
are packed here as IBA vol. 1 chapter 9 draws them, and every packet is read
back by tshark: it must find the fields put in.

    tools/chroot --layer $(tools/cache tests) ... -- tests/kunit/vectors.py \\
        > tests/kunit/vectors.h
"""
import struct
import subprocess
import tempfile

from scapy.contrib.roce import AETH, BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

V4 = (IP(src='192.0.2.1', dst='192.0.2.2', id=0x1234, ttl=7, tos=0x2a,
         flags='DF') / UDP(sport=0xc123, dport=4791, chksum=0))
V6 = (IPv6(src='2001:db8::1', dst='2001:db8::2', hlim=9, tc=0x55, fl=0xabcde)
      / UDP(sport=0xfedc, dport=4791, chksum=0))
MAC = '02:00:00:00:00:01'
DATA = bytes(range(7, 250))

reth = struct.pack('>QII', 0x1122334455667788, 0x99aabbcc, 0xddeeff01)
atomic = struct.pack('>QIQQ', 0x1122334455667788, 0x99aabbcc,
                     0x0102030405060708, 0x1112131415161718)
deth = struct.pack('>II', 0x80010000, 0x00abcdef)
xrceth = struct.pack('>I', 0x00789abc)
feth = struct.pack('>I', 0x12)    # the whole region, persistent
orig = struct.pack('>Q', 0x2122232425262728)
imm = bytes([0xde, 0xad, 0xbe, 0xef])
aeth = bytes(AETH(syndrome=0x65, msn=0xfedcba))

RETH = {'reth.va': 0x1122334455667788, 'reth.r_key': 0x99aabbcc,
        'reth.dmalen': 0xddeeff01}
ATOMIC = {'reth.va': 0x1122334455667788, 'reth.r_key': 0x99aabbcc,
          'atomiceth.swapdt': 0x0102030405060708,
          'atomiceth.cmpdt': 0x1112131415161718}
DETH = {'deth.q_key': 0x80010000, 'deth.srcqp': 0xabcdef}
SYN = {'aeth.syndrome': 0x65, 'aeth.msn': 0xfedcba}


def packet(name, opcode, ext=b'', payload=b'', outer=V4, fields=None, **bth):
    pad = -len(payload) % 4
    head = BTH(opcode=opcode, migreq=1, padcount=pad, dqpn=0x123456,
               psn=0xfffffe, **bth)
    body = Raw(ext + payload + bytes(pad)) if ext or payload else Raw(b'')
    return (name, outer / head / body,
            dict(fields or {},
                 **{'bth.destqp': 0x123456, 'bth.psn': 0xfffffe,
                    'bth.opcode': opcode}))


PACKETS = [
    packet('send_first', 0x00, payload=DATA[:64]),
    packet('send_middle_fecn', 0x01, payload=DATA[:64], fecn=1),
    packet('send_last_imm_solicited', 0x03, imm, DATA[:5], solicited=1,
           ackreq=1, fields={'immdt': 0xdeadbeef}),
    packet('send_only_inv', 0x17, struct.pack('>I', 0x12345678), DATA[:2],
           ackreq=1, fields={'ieth': 0x12345678}),
    packet('send_only_empty', 0x04, ackreq=1),
    packet('send_only_pad1_v6', 0x04, payload=DATA[:3], outer=V6),
    packet('send_only_pad2_v6', 0x04, payload=DATA[:6], outer=V6, becn=1),
    packet('write_first', 0x06, reth, DATA[:64], fields=RETH),
    packet('write_only_imm', 0x0b, reth + imm, DATA[:1], ackreq=1,
           fields=dict(RETH, immdt=0xdeadbeef)),
    packet('read', 0x0c, reth, ackreq=1, fields=RETH),
    packet('read_response_first', 0x0d, aeth, DATA[:64], fields=SYN),
    packet('read_response_middle', 0x0e, payload=DATA[:64]),
    packet('read_response_only_v6', 0x10, aeth, DATA[:31], outer=V6,
           fields=SYN),
    packet('ack', 0x11, aeth, fields=SYN),
    packet('ack_v6', 0x11, aeth, outer=V6, fields=SYN),
    packet('atomic_ack', 0x12, aeth + orig,
           fields=dict(SYN, **{'atomicacketh.origremdt': 0x2122232425262728})),
    packet('compare_swap', 0x13, atomic, ackreq=1, fields=ATOMIC),
    packet('fetch_add_v6', 0x14, atomic, ackreq=1, outer=V6, fields=ATOMIC),
    packet('uc_send_last', 0x22, payload=DATA[:200]),
    packet('ud_send_only', 0x64, deth, DATA[:100], fields=DETH),
    packet('ud_send_only_imm_v6', 0x65, deth + imm, DATA[:99], outer=V6,
           fields=dict(DETH, immdt=0xdeadbeef)),
    # tshark does not know these opcodes, and reads their BTH only.
    packet('flush', 0x1c, feth + reth, ackreq=1),
    packet('atomic_write_v6', 0x1d, reth, DATA[:8], outer=V6, ackreq=1),
    packet('xrc_flush', 0xbc, xrceth + feth + reth, ackreq=1),
    packet('xrc_atomic_write', 0xbd, xrceth + reth, DATA[:8], ackreq=1),
    packet('xrc_send_middle', 0xa1, xrceth, DATA[:64]),
    packet('xrc_send_last_inv', 0xb6, xrceth + struct.pack('>I', 0x12345678),
           DATA[:3], ackreq=1),
    packet('xrc_write_only_imm_v6', 0xab, xrceth + reth + imm, DATA[:1],
           outer=V6, solicited=1),
    packet('xrc_read', 0xac, xrceth + reth, ackreq=1),
    packet('xrc_read_response_middle', 0xae, payload=DATA[:64]),
    packet('xrc_ack', 0xb1, aeth),
    packet('xrc_atomic_ack', 0xb2, aeth + orig),
    packet('xrc_compare_swap', 0xb3, xrceth + atomic, ackreq=1),
    ('cnp', V4 / cnp(0x123456), {'bth.destqp': 0x123456, 'bth.opcode': 0x81}),
]


def number(field, text):
    """What tshark prints, some of it twice: ImmDt and IETH are bare hexadecimal
    bytes.
    """
    return int(text.split(',')[0], 16 if field in ('immdt', 'ieth') else 0)


def check():
    with tempfile.NamedTemporaryFile(suffix='.pcap') as f:
        wrpcap(f.name, [Ether(src=MAC, dst=MAC) / p for _, p, _ in PACKETS])
        for i, (name, _, fields) in enumerate(PACKETS):
            names = ['infiniband.' + k for k in fields]
            args = [x for n in names for x in ('-e', n)]
            out = subprocess.run(['tshark', '-r', f.name, '-Y',
                                  f'frame.number=={i + 1}', '-T', 'fields']
                                  + args,
                                 check=True, capture_output=True,
                                 text=True).stdout
            got = [number(*x)
                   for x in zip(fields, out.rstrip('\n').split('\t'))]
            assert got == list(fields.values()), (name, fields, out)


def main():
    check()
    print('/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */')
    print('/* Written by vectors.py: whole packets from the IP header to the ICRC. */')
    for name, p, _ in PACKETS:
        data = bytes(p)
        print(f'\nstatic const u8 vector_{name}[] = {{')
        for i in range(0, len(data), 12):
            print('\t' + ' '.join(f'0x{b:02x},' for b in data[i:i + 12]))
        print('};')


main()
