# a call that no program needs: process_vm_writev, with all the rights that a session's own namespace gives
# ends: security_violation
print("TRIED", flush=True)
here = os.getcwd().encode()
ARGUMENTS = {"mount": (b"x", here, b"tmpfs", 0, None), "umount2": (b"/proc", 2), "pivot_root": (here, here),
             "chroot": (here,), "open_tree": (-100, here, 1), "fsopen": (b"tmpfs", 0), "sethostname": (b"x", 1),
             "setdomainname": (b"x", 1), "mount_setattr": (-100, here, 0, bytes(32), 32)}
if call("process_vm_writev", *ARGUMENTS.get("process_vm_writev", (0, 0, 0, 0, 0)))[0] >= 0:
    escaped("process_vm_writev")
