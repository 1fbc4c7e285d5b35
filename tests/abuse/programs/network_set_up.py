import fcntl
import os
import socket
import struct

try:
    names = [name for name in os.listdir("/sys/class/net") if name not in ("lo", "bonding_masters")]
    if names:
        print("ESCAPED sees interfaces", names)
except OSError as error:
    print(error)
try:
    for _, name in socket.if_nameindex():
        if name not in ("lo", "tunl0", "sit0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6gre0"):
            print("ESCAPED sees interface", name)
except OSError as error:
    print(error)
try:
    control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", 1))
    print("ESCAPED brought an interface up")
except OSError as error:
    print(error)
for address in (("127.0.0.1", 22), ("127.0.0.1", 50052), ("10.0.0.1", 80), ("172.17.0.1", 80), ("::1", 50052)):
    try:
        socket.create_connection(address, 0.2).close()
        print("ESCAPED connected", address)
    except OSError as error:
        print(address, error)
