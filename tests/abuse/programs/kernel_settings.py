import glob
import os

PATHS = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger",
    "/proc/sys/fs/binfmt_misc/register", "/sys/kernel/uevent_helper", "/sys/power/state", "/proc/sys/kernel/modprobe",
    "/sys/kernel/debug/tracing/trace", "/sys/fs/cgroup/release_agent", "/proc/1/oom_score_adj", "/proc/1/coredump_filter",
)
for path in (*PATHS, *glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True), *glob.glob("/sys/fs/cgroup/**/*max*", recursive=True)):
    try:
        os.close(os.open(path, os.O_WRONLY))
        print("ESCAPED may write", path)
    except OSError:
        pass
for folder in glob.glob("/sys/fs/cgroup/*/") or ["/sys/fs/cgroup/"]:
    try:
        os.mkdir(folder + "assay_mark")
        print("ESCAPED made a cgroup in", folder)
    except OSError:
        pass
