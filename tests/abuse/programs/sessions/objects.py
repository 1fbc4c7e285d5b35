# objects of the kernel that have names: System V, message queues, keys
# control: shared
for name, arguments in (("shmget", (0x5EC, 4096, 0o1666)), ("semget", (0x5EC, 1, 0o1666)), ("msgget", (0x5EC, 0o1666)),
                        ("mq_open", (b"victim", 0o102, 0o666, None)), ("memfd_secret", (0,)), ("io_uring_setup", (8, bytes(120))),
                        ("io_setup", (8, ctypes.byref(ctypes.c_long()))), ("fanotify_init", (0, 0)), ("name_to_handle_at", (-100, b"/", bytes(128), bytes(8), 0)),
                        ("seccomp", (1, 8, 0)), ("landlock_create_ruleset", (bytes(24), 24, 0)) if False else ("shmget", (0, 4096, 0o1666))):
    if call(name, *arguments)[0] >= 0:
        escaped("shared", name)
print("TRIED")
