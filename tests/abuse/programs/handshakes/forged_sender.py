# says that another process speaks
# copies: refused
def forge(self, user, given, *rest):
    line = socket(fileno=os.dup(given[0]))
    for pid in (1, 2, os.getppid(), os.getpid() + 1):
        try:
            line.sendmsg([b"C"], [(SOL_SOCKET, 2, struct.pack("3i", pid, os.getuid(), os.getgid()))])
            print("ESCAPED forged", pid)
        except OSError:
            pass
    return None
SERVE._become = forge
