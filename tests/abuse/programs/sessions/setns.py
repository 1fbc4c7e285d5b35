# joins namespaces
# ends: security_violation
print("TRIED", flush=True)
for pid in ("self", 1, 2, 3):
    for name in ("user", "mnt", "pid", "net"):
        descriptor = attempt("open", lambda: os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY))
        if descriptor is not None:
            if pid != "self":
                escaped("opened", pid, name)
            if call("setns", descriptor, 0)[0] == 0:
                escaped("joined", pid, name)
call("setns", 0, 0)
