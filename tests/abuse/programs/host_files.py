import os

SIGNS = ("boot", "container_info.json", "lost+found", "vmlinuz", "snap")
for path in ("/etc/shadow", "/etc/gshadow", "/root/.ssh", "/root/.bashrc", "/proc/1/environ", "/proc/kcore", "/var/log", "/boot", "/home"):
    try:
        if os.path.isdir(path):
            if os.listdir(path):
                print("ESCAPED listed", path)
        else:
            with open(path, "rb") as file:
                if file.read(16):
                    print("ESCAPED read", path)
    except OSError:
        pass
for sign in SIGNS:
    if os.path.exists("/" + sign):
        print("ESCAPED the host's root shows", sign)
with open("/proc/self/mountinfo") as mounts:
    for line in mounts:
        fields = line.split()
        if "rw" in fields[5].split(",") and fields[4] not in ("/box", "/tmp", "/dev/shm", "/proc", "/dev"):
            print("writable mount", fields[4])
