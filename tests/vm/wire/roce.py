# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""RoCEv2 packets by scapy, whose BTH, AETH and ICRC are the independent
judge's; the headers that it lacks are made here, from
the InfiniBand Architecture Specification, volume 1, chapter 9."""

from scapy.contrib.roce import AETH, BTH, _bth_opcodes, _ops, _transports
from scapy.fields import XIntField, XLongField, XBitField, IntField, BitField
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

_ops['SEND_LAST_WITH_INVALIDATE'] = 0x16
_ops['SEND_ONLY_WITH_INVALIDATE'] = 0x17
_ops['FLUSH'] = 0x1c    # annex A19
_ops['ATOMIC_WRITE'] = 0x1d
_transports['XRC'] = 0xa0    # annex A14


class Header(Packet):
    def extract_padding(self, s):
        return b'', s


class RETH(Header):
    fields_desc = [XLongField('va', 0), XIntField('rkey', 0),
                   IntField('dmalen', 0)]


class FETH(Header):
    fields_desc = [BitField('resv', 0, 26), BitField('sel', 0, 2),
                   BitField('plt', 0, 4)]


class AtomicETH(Header):
    fields_desc = [XLongField('va', 0), XIntField('rkey', 0),
                   XLongField('swap_add', 0), XLongField('compare', 0)]


class AtomicAckETH(Header):
    fields_desc = [XLongField('orig', 0)]


class ImmDt(Header):
    fields_desc = [XIntField('imm', 0)]


class IETH(Header):
    fields_desc = [XIntField('rkey', 0)]


class DETH(Header):
    fields_desc = [XIntField('qkey', 0), BitField('resv', 0, 8),
                   XBitField('sqpn', 0, 24)]


class XRCETH(Header):
    fields_desc = [BitField('resv', 0, 8), XBitField('srqn', 0, 24)]


class Aeth(Header):
    fields_desc = AETH.fields_desc


# 9.2.2: what follows the BTH
EXTENSIONS = {
    'SEND_LAST_WITH_IMMEDIATE': [ImmDt], 'SEND_ONLY_WITH_IMMEDIATE': [ImmDt],
    'SEND_LAST_WITH_INVALIDATE': [IETH], 'SEND_ONLY_WITH_INVALIDATE': [IETH],
    'RDMA_WRITE_FIRST': [RETH], 'RDMA_WRITE_ONLY': [RETH],
    'RDMA_WRITE_LAST_WITH_IMMEDIATE': [ImmDt],
    'RDMA_WRITE_ONLY_WITH_IMMEDIATE': [RETH, ImmDt],
    'RDMA_READ_REQUEST': [RETH],
    'RDMA_READ_RESPONSE_FIRST': [Aeth], 'RDMA_READ_RESPONSE_LAST': [Aeth],
    'RDMA_READ_RESPONSE_ONLY': [Aeth],
    'ACKNOWLEDGE': [Aeth], 'ATOMIC_ACKNOWLEDGE': [Aeth, AtomicAckETH],
    'COMPARE_SWAP': [AtomicETH],
    'FETCH_ADD': [AtomicETH], 'FLUSH': [FETH, RETH], 'ATOMIC_WRITE': [RETH],
}


def service_headers(transport, op):
    """The header that every request of a transport has."""
    if transport == 'UD':
        return [DETH]
    return ([XRCETH]
            if transport == 'XRC' and 'RESPONSE' not in op
            and 'ACKNOWLEDGE' not in op else [])


def opcode(transport, op):
    return _transports[transport] + _ops[op]


class Seen:
    """A captured frame, parsed and judged: a fault raises AssertionError."""

    def __init__(self, frame):
        self.ether = Ether(frame)
        self.ip = self.ether.payload
        self.udp = self.ip.payload
        assert isinstance(self.udp, UDP), f'no UDP: {self.ether.summary()}'
        self.bth = self.udp.payload
        assert isinstance(self.bth, BTH), f'no BTH: {self.ether.summary()}'
        names = {value: name for name, value in _ops.items()}
        transports = {value: name for name, value in _transports.items()}
        self.transport = transports.get(self.bth.opcode & 0xe0)
        self.op = names.get(self.bth.opcode & 0x1f)
        body = bytes(self.udp)[8 + 12:-4]
        for header in service_headers(
                self.transport, self.op) + EXTENSIONS.get(self.op, []):
            part = header(body)
            setattr(self, header.__name__.lower(), part)
            body = body[len(header()):]
        self.body = body
        self.payload = body[:len(body) - self.bth.padcount]
        self.judge(frame)

    def judge(self, frame):
        ip, udp, bth = self.ip, self.udp, self.bth
        if ip.version == 4:
            assert (ip.ihl == 5 and ip.len == len(frame) - 14 and ip.frag == 0
                    and 'MF' not in str(ip.flags)), 'IPv4 header'
            fresh = ip.copy()
            del fresh.chksum
            assert IP(bytes(fresh)).chksum == ip.chksum, 'IPv4 header checksum'
        else:
            assert ip.plen == len(frame) - 14 - 40 and ip.nh == 17, \
                'IPv6 header'
        assert udp.dport == 4791 and udp.sport >= 0xc000, \
            f'UDP ports {udp.sport} {udp.dport}'
        assert udp.len == len(bytes(udp)), 'UDP length'
        if udp.chksum:
            fresh = ip.copy()
            del fresh[UDP].chksum
            assert ip.__class__(bytes(fresh))[UDP].chksum == udp.chksum, \
                'UDP checksum'
        assert bth.version == 0 and bth.resv6 == 0, \
            f'BTH {bth.version} {bth.resv6}'
        # protocol.rst, "Reports": a bit in requests that ask for an
        # acknowledgment, and in responses to such an end; a flight size in
        # requests that have a response of their own
        acked, response = bth.opcode >> 5 in (0, 5), 13 <= bth.opcode & 31 <= 18
        reports, flight = bth.resv7 & 1, bth.resv7 >> 1
        assert reports == bth.ackreq or response, f'BTH {bth.resv7}'
        assert (not flight or
                bth.opcode & 31 in (0x0c, 0x13, 0x14, 0x1c, 0x1d)), \
            f'flight size {flight} in opcode {bth.opcode:#x}'
        assert acked or not bth.resv7, f'BTH {bth.resv7} of this service'
        assert bth.pkey == 0xffff, f'P_Key {bth.pkey:#x}'
        assert self.op in EXTENSIONS or self.op in _ops, \
            f'opcode {bth.opcode:#x}'
        assert len(self.body) % 4 == 0, \
            f'{len(self.body)} bytes of payload and pad'
        assert self.body[len(self.payload):] == bytes(bth.padcount), \
            'pad is not zero'
        assert bth.icrc == int.from_bytes(icrc(ip), 'big'), \
            f'ICRC {bth.icrc:#x}, not {icrc(ip).hex()}'


def icrc(ip):
    """By scapy, of a whole IP packet."""
    fresh = ip.copy()
    return fresh[BTH].compute_icrc(None)
