# process descriptors: signals, and descriptors of others
# control: signalled
for pid in others():
    descriptor = attempt("open", lambda: os.pidfd_open(pid))
    if descriptor is None:
        continue
    if attempt("send", lambda: signal.pidfd_send_signal(descriptor, signal.SIGUSR1) is None):
        escaped("signalled", pid)
    for number in range(8):
        if call("pidfd_getfd", descriptor, number, 0)[0] >= 0:
            escaped("took descriptor", number, "of", pid)
print("TRIED")
