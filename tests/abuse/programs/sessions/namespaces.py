# namespaces, by every call that makes one
# ends: completed died security_violation
FLAGS = {"time": 0x80, "mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000,
         "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}
def in_child(what, action):
    pid = os.fork()
    if pid == 0:
        try:
            if action():
                escaped(what)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
for name, flag in FLAGS.items():
    in_child(f"unshare {name}", lambda: call("unshare", flag)[0] == 0)
    in_child(f"unshare user and {name}", lambda: call("unshare", flag | FLAGS["user"])[0] == 0)
    def clone():
        pid, _ = call("clone", flag | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            os._exit(0)
        return pid > 0
    if name != "time":  # there the flag is a signal
        in_child(f"clone {name}", clone)
    def clone3():
        arguments = struct.pack("8Q", flag, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
        pid, _ = call("clone3", arguments, len(arguments))
        if pid == 0:
            os._exit(0)
        return pid > 0
    in_child(f"clone3 {name}", clone3)
in_child("unshare all", lambda: call("unshare", 0x7E020000)[0] == 0)
before = {n: os.readlink(f"/proc/self/ns/{n}") for n in os.listdir("/proc/self/ns")}
for flag in FLAGS.values():
    call("unshare", flag)
for flag in (0x200, 0x400, 0x40000):  # files, fs, sysvsem: harmless
    call("unshare", flag)
after = {n: os.readlink(f"/proc/self/ns/{n}") for n in os.listdir("/proc/self/ns")}
if before != after:
    escaped("namespaces changed", {n for n in before if before[n] != after[n]})
print("TRIED", flush=True)
