#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""sockets.py eid NAME: tell SMC a common name of this machine and its peers
sockets.py smc|rds server ADDRESS: print "ready", and send back what arrives,
until the end
sockets.py smc|rds client ADDRESS OWN: send data to a server, and compare

Sockets whose data the kernel moves by RDMA. (Debian has neither smc-tools nor
rds-tools.)"""

import random
import socket
import struct
import sys
import threading

AF_RDS = 21
IPPROTO_SMC = 256
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
SMC_NETLINK_ADD_UEID, SMC_NLA_EID_TABLE_ENTRY = 10, 1
PORT = 18900
BYTES = 2000000
MESSAGES = 60


def attribute(kind, value):
    return (struct.pack("HH", 4 + len(value), kind) + value + b"\0"
            * (-len(value) % 4))


def request(netlink, family, command, attributes):
    """The payload of the response behind the generic header; errors raise."""
    body = struct.pack("BBH", command, 1, 0) + attributes
    netlink.send(struct.pack("IHHII", 16 + len(body), family, 1 | 4, 1, 0)
                 + body)
    reply = netlink.recv(65536)
    if struct.unpack_from("H", reply, 4)[0] == 2:
        error = -struct.unpack_from("i", reply, 16)[0]
        if error:
            raise OSError(error, "netlink")
        return b""
    return reply[20:]


def add_eid(name):
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
    netlink.bind((0, 0))
    found = request(netlink, GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
                    attribute(CTRL_ATTR_FAMILY_NAME, b"SMC_GEN_NETLINK\0"))
    netlink.recv(65536)
    while found:
        length, kind = struct.unpack_from("HH", found)
        if kind == CTRL_ATTR_FAMILY_ID:
            family = struct.unpack_from("H", found, 4)[0]
        found = found[(length + 3) & ~3:]
    request(netlink, family, SMC_NETLINK_ADD_UEID,
            attribute(SMC_NLA_EID_TABLE_ENTRY, name.ljust(32).encode() + b"\0"))


def smc_server(address):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SMC)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, PORT))
    listener.listen()
    print("ready", flush=True)
    while True:
        try:
            stream = listener.accept()[0]
        except ConnectionAbortedError as error:     # by its client, before this
            print(error, flush=True)
            continue
        try:
            while data := stream.recv(65536):
                stream.sendall(data)
        except OSError as error:    # its device has gone; the next will come
            print(error, flush=True)
        stream.close()


def smc_client(address, _):
    stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SMC)
    stream.settimeout(20)
    stream.connect((address, PORT))
    data = random.randbytes(BYTES)
    sender = threading.Thread(target=stream.sendall, args=(data,))
    sender.start()
    got = bytearray()
    while len(got) < len(data):
        part = stream.recv(65536)
        assert part, f"the end after {len(got)} bytes"
        got += part
    sender.join()
    assert got == data
    stream.close()


def rds_socket(address, port):
    datagrams = socket.socket(AF_RDS, socket.SOCK_SEQPACKET)
    datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    datagrams.bind((address, port))
    return datagrams


def rds_server(address):
    datagrams = rds_socket(address, PORT)
    print("ready", flush=True)
    while True:
        data, peer = datagrams.recvfrom(1 << 20)
        datagrams.sendto(data, peer)


def rds_client(address, own):
    datagrams = rds_socket(own, PORT + 1)
    datagrams.settimeout(30)
    for n in range(MESSAGES):
        data = random.randbytes(random.choice((
            1, 4095, 4096, 4097, 60000, 200000)))
        datagrams.sendto(data, (address, PORT))
        assert datagrams.recvfrom(1 << 20)[0] == data, f"message {n} differs"


def main(kind, *words):
    if kind == "eid":
        add_eid(*words)
    else:
        globals()[f"{kind}_{words[0]}"](*words[1:])


main(*sys.argv[1:])
