# settings of the kernel that lie in /proc
# ends: completed
VALUES = {"/proc/sys/kernel/ns_last_pid": b"300", "/proc/sys/kernel/core_pattern": b"|/tmp/x", "/proc/sys/kernel/hostname": b"x",
          "/proc/sys/user/max_user_namespaces": b"0", "/proc/sys/kernel/shmmax": b"1", "/proc/sys/net/core/somaxconn": b"1",
          "/proc/sys/net/ipv4/ip_unprivileged_port_start": b"0", "/proc/sys/net/ipv4/ping_group_range": b"0 9999", "/proc/sys/fs/mqueue/msg_max": b"1",
          "/proc/sys/vm/overcommit_memory": b"1", "/proc/sys/vm/drop_caches": b"3", "/proc/sysrq-trigger": b"h",
          "/proc/self/coredump_filter": None, "/proc/self/attr/current": b"x",
          "/proc/self/sched_autogroup_nice": None, "/proc/self/timens_offsets": b"1 1 1", "/proc/irq/default_smp_affinity": b"1",
          "/proc/self/timerslack_ns": None, "/proc/bus/pci/00": b"x"}
for path, value in VALUES.items():
    if value is not None and attempt(path, lambda: os.write(os.open(path, os.O_WRONLY), value)):
        escaped("wrote", path)
for where, _, names in os.walk("/proc/sys"):
    for name in names:
        if attempt("open", lambda: os.close(os.open(f"{where}/{name}", os.O_WRONLY)) is None):
            print("writable", f"{where}/{name}", flush=True)
            if name == "ns_last_pid":
                before = os.fork() or os._exit(0)
                os.waitpid(before, 0)
                attempt("pid", lambda: os.write(os.open(f"{where}/{name}", os.O_WRONLY), b"%d" % (before + 4000)))
                after = os.fork() or os._exit(0)
                os.waitpid(after, 0)
                if after > before + 3000:
                    escaped("chose a process id", before, after)
for where, folders, _ in os.walk("/sys"):
    escaped("saw /sys", where, folders[:3])
    break
print("TRIED")
