# has the kernel send them: owners of descriptors (SIGIO, SIGURG)
# control-by: victim
import fcntl
pairs = []
for pid in [*others()[:120], *(-p for p in range(2, 120))]:
    a, b = socket.socketpair()
    pairs.append((a, b))
    def own_it():
        fcntl.fcntl(a, fcntl.F_SETOWN, pid)
        fcntl.fcntl(a, 10, signal.SIGUSR1)  # F_SETSIG
        fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        b.send(b"x")
    attempt("owner", own_it)
time.sleep(0.1)
for a, b in pairs:
    a.close()
    b.close()
print("TRIED")
