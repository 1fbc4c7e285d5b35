import os

ALLOWED = ("/box", "/tmp", "/dev/shm", "/var/tmp", os.path.realpath(os.getcwd()))
for top in ("/", "/usr", "/usr/bin", "/usr/lib", "/usr/local/lib", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt",
            "/root", "/home", "/var", "/var/lib", "/srv", "/dev", "/proc", "/sys", "/run", os.path.dirname(os.__file__)):
    if os.path.realpath(top).startswith(ALLOWED):
        continue
    for act in (
        lambda: os.close(os.open(top + "/assay_mark", os.O_CREAT | os.O_WRONLY)),
        lambda: os.mkdir(top + "/assay_mark_d"),
        lambda: os.symlink("/", top + "/assay_mark_l"),
        lambda: os.rename(top, top + "_moved"),
        lambda: os.chmod(top, 0o777),
        lambda: os.utime(top),
    ):
        try:
            act()
            print("ESCAPED changed", top)
        except OSError:
            pass
