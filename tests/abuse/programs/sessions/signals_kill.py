# every way to send a signal by a process id
# control: signalled
SENT = (0, signal.SIGUSR1, signal.SIGTERM)
for pid in others():
    for number in SENT:
        if attempt("kill", lambda: os.kill(pid, number) is None):
            escaped("signalled", pid, number)
        for name, arguments in (("tkill", (pid, number)), ("tgkill", (pid, pid, number)),
                                ("rt_sigqueueinfo", (pid, number, bytes(128))),
                                ("rt_tgsigqueueinfo", (pid, pid, number, bytes(128)))):
            if call(name, *arguments)[0] == 0:
                escaped("signalled", name, pid, number)
print("TRIED")
