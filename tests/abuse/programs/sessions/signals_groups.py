# signals to process groups, sessions and everybody
# control-by: victim
print("group", os.getpgrp() == os.getpid(), flush=True)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
for group in (0, *range(2, 200)):
    attempt("killpg", lambda: os.killpg(group, signal.SIGUSR1))
    if group and group not in (os.getpid(), os.getpgrp()) and attempt("join", lambda: os.setpgid(0, group) is None):
        escaped("joined group", group)
for pid in others()[:100]:
    if attempt("moved", lambda: os.setpgid(pid, os.getpgrp()) is None):
        escaped("moved", pid)
attempt("all", lambda: os.kill(-1, signal.SIGUSR1))
print("TRIED", flush=True)
