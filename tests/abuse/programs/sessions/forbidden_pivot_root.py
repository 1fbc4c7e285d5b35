# a call that no program needs: pivot_root, with all the rights that a session's own namespace gives
# ends: security_violation
print("TRIED", flush=True)
here = os.getcwd().encode()
ARGUMENTS = {"mount": (b"x", here, b"tmpfs", 0, None), "umount2": (b"/proc", 2), "pivot_root": (here, here),
             "chroot": (here,), "open_tree": (-100, here, 1), "fsopen": (b"tmpfs", 0), "sethostname": (b"x", 1),
             "setdomainname": (b"x", 1), "mount_setattr": (-100, here, 0, bytes(32), 32)}
if call("pivot_root", *ARGUMENTS.get("pivot_root", (0, 0, 0, 0, 0)))[0] >= 0:
    escaped("pivot_root")
