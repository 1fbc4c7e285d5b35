# makes itself the last that the kernel ends, so that its own checkpoints go first
# control: score
# ends: completed
before = int(open("/proc/self/oom_score_adj").read())
for value in (b"-1000", b"-500", b"0", b"1", b"%d" % (before - 1)):
    attempt("score", lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), value))
    now = int(open("/proc/self/oom_score_adj").read())
    if now < before:
        escaped("score", before, now)
    attempt("old", lambda: os.write(os.open("/proc/self/oom_adj", os.O_WRONLY), b"-17"))
for pid in others():
    if attempt("other", lambda: os.write(os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY), b"1000")):
        escaped("score of", pid)
def child():
    try:
        os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"0")
    except OSError:
        pass
    os._exit(0 if int(open("/proc/self/oom_score_adj").read()) >= before else 1)
pid = os.fork()
if pid == 0:
    child()
if os.waitpid(pid, 0)[1]:
    escaped("score of a child")
print("TRIED")
