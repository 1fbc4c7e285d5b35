# loopback: whom it reaches, and whether a port is taken by somebody else
# control: connected
import errno
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "127.9.9.9")):
    for port in [VICTIM_PORT, *range(1, 3000)]:
        with socket.socket(family) as s:
            s.settimeout(0.2)
            if attempt("connect", lambda: s.connect((host, port)) is None):
                escaped("connected", host, port, attempt("hello", lambda: s.recv(99)))
for port in (VICTIM_PORT,):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    escaped("port taken by another", port, kind)
        with socket.socket(socket.AF_INET, kind) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if attempt("bind", lambda: s.bind(("127.0.0.1", port)) is None) and kind == socket.SOCK_STREAM:
                attempt("listen", lambda: s.listen())
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    attempt("udp", lambda: s.sendto(b"UDP", ("127.0.0.1", VICTIM_PORT)))
    attempt("udp", lambda: s.sendto(b"UDP", ("255.255.255.255", VICTIM_PORT)))
for name in ("tcp", "udp", "unix", "tcp6", "raw", "packet", "netlink"):
    text = attempt("read", lambda: open(f"/proc/net/{name}").read()) or ""
    if f":{VICTIM_PORT:04X}" in text or "victim" in text:
        escaped("saw a socket in", name)
for family in (16, 17, 38, 40, 21, 31, 44):
    if attempt("family", lambda: socket.socket(family, socket.SOCK_RAW)):
        escaped("family", family)
if attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)):
    escaped("raw socket")
print("TRIED")
