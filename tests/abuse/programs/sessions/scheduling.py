# priority, affinity and limits of others, and more for itself
# control: set priority
import resource
for pid in others():
    for which in (0, 1):
        if attempt("nice", lambda: os.setpriority(which, pid, 19) is None):
            escaped("set priority", pid)
    if attempt("affinity", lambda: os.sched_setaffinity(pid, {0}) is None):
        escaped("set affinity", pid)
    if attempt("limit", lambda: resource.prlimit(pid, resource.RLIMIT_CPU)):
        escaped("set limit of", pid)
    if attempt("policy", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)) is None):
        escaped("set policy", pid)
if attempt("nice", lambda: os.nice(-5)) is not None or attempt("rt", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5)) is None):
    escaped("set own priority")
for name in dir(resource):
    if name.startswith("RLIMIT"):
        kind = getattr(resource, name)
        soft, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY and attempt("raise", lambda: resource.setrlimit(kind, (hard, hard + 1)) is None):
            escaped("raised", name)
users = {os.getuid() + n for n in range(-3, 4)} - {os.getuid()}
for user in users:
    if attempt("users", lambda: os.setpriority(os.PRIO_USER, user, 10) is None):
        escaped("set priority of user", user)
print("TRIED")
