# unix sockets: abstract, with a path, and what was passed on
# control: connected
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    for address in ("\0victim", "\0sbx_canary_abstract", "/tmp/victim.sock", "/tmp/sbx_canary.sock",
                    "victim.sock", "../victim.sock"):
        with socket.socket(socket.AF_UNIX, kind) as s:
            if attempt("connect", lambda: s.connect(address) is None):
                escaped("connected", repr(address), kind)
for line in open("/proc/net/unix").read().splitlines()[1:]:
    name = line.split()[7:]
    if name and not re.fullmatch("@[0-9a-f]{5}", name[0]):  # such a name is the kernel's, of a line of ours
        escaped("saw", name)
with socket.socket(socket.AF_UNIX) as s:
    try:
        s.bind("\0victim")
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            escaped("abstract name taken by another")
print("TRIED")
