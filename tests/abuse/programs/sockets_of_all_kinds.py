import socket

KINDS = {
    "packet": (17, socket.SOCK_RAW, 0x300), "raw icmp": (2, socket.SOCK_RAW, 1), "raw tcp": (2, socket.SOCK_RAW, 6),
    "vsock": (40, socket.SOCK_STREAM, 0), "alg": (38, socket.SOCK_SEQPACKET, 0), "bluetooth": (31, socket.SOCK_RAW, 1),
    "can": (29, socket.SOCK_RAW, 1), "key": (15, socket.SOCK_RAW, 2), "rds": (21, socket.SOCK_SEQPACKET, 0),
    "tipc": (30, socket.SOCK_RDM, 0), "xdp": (44, socket.SOCK_RAW, 0), "smc": (43, socket.SOCK_STREAM, 0),
}
for name, (family, kind, protocol) in KINDS.items():
    try:
        socket.socket(family, kind, protocol).close()
        print("ESCAPED a socket of kind", name)
    except OSError as error:
        print(name, error)
