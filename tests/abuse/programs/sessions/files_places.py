# files of others, at every place that is shared by name
# control: found
# relations: stranger sibling parent child
PLACES = ("/tmp", "/dev/shm", "/var/tmp", "/sandbox", "/box", "/mnt", "/run", "/home", "/root", "..",
          "../..", "/proc/self/cwd/..", "/proc/self/root", "/proc/self/root/sandbox", "/dev", "/etc")
for top in PLACES:
    for where, folders, files in os.walk(top, followlinks=False):
        if where.startswith(("/proc/self/root/proc", "/proc/self/root/usr")) or where.count("/") > 7:
            folders.clear()
            continue
        folders[:] = [f for f in folders if f not in ("proc", "usr", "lib", "sys", "alternatives", "ssl")]
        for name in files:
            path = os.path.join(where, name)
            text = attempt("read", lambda: os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 4096)) or b""
            if b"victim-file" in text:
                escaped("found", path)
for name in ("/tmp/victim.txt", "/dev/shm/victim.txt", "victim.txt"):
    attempt("write", lambda: open(name, "w").write("forged"))
print("TRIED")
