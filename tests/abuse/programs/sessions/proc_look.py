# looks at whatever /proc says of others
# control: saw
FILES = ("environ", "cmdline", "maps", "smaps", "status", "stat", "io", "auxv", "syscall", "stack",
         "wchan", "mountinfo", "pagemap", "personality", "limits", "cgroup", "oom_score_adj", "sched",
         "fdinfo/0", "ns/net", "cwd", "root", "exe", "fd/0", "fd/3", "task", "map_files", "comm",
         "timers", "uid_map", "attr/current", "net/tcp", "sessionid", "clear_refs")
listed = {int(p) for p in os.listdir("/proc") if p.isdigit()} - own()
if listed:
    escaped("saw", sorted(listed))
for pid in others():
    for name in FILES:
        path = f"/proc/{pid}/{name}"
        if attempt("stat", lambda: os.stat(path) and True):
            escaped("saw", path)
        if attempt("link", lambda: os.readlink(path)):
            escaped("saw", path)
        data = attempt("read", lambda: os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 65536))
        if data:
            escaped("saw", path, data[:80])
        if name in ("cwd", "root") and attempt("list", lambda: os.listdir(path)):
            escaped("listed", path)
print("TRIED")
