# uses its rights while it has them: the next process id, extended attributes, names
# copies: refused made
def use():
    for path, text in (("/proc/sys/kernel/ns_last_pid", b"5000"), ("/proc/sys/kernel/hostname", b"x"), ("/proc/self/uid_map", b"0 0 1"),
                       ("/proc/sys/net/core/somaxconn", b"9"), ("/proc/self/oom_score_adj", b"-1000")):
        try:
            os.write(os.open(path, os.O_WRONLY), text)
            print("wrote", path)
        except OSError:
            pass
before("setresuid", use)
