# every call that changes the user or group
me, group = os.getuid(), os.getgid()
for user in [*range(0, 70), 1000, *range(995, 1080), 65534, 1 << 31, me + 1, me - 1]:
    if user == me:
        continue
    for name, arguments in (("setuid", (user,)), ("setreuid", (user, user)), ("setreuid", (-1, user)),
                            ("setresuid", (user, user, user)), ("setresuid", (-1, user, -1)),
                            ("setresuid", (-1, -1, user)), ("setresuid", (user, -1, -1)),
                            ("setgid", (user,)), ("setregid", (user, user)), ("setresgid", (user, user, user)),
                            ("setresgid", (-1, user, -1))):
        if user == group and "gid" in name:
            continue
        if call(name, *arguments)[0] == 0:
            escaped(name, arguments)
    for name in ("setfsuid", "setfsgid"):
        before = call(name, -1)[0]
        call(name, user)
        if call(name, -1)[0] != before:
            escaped(name, user)
for many in ([], [0], [1001], list(range(1000, 1020))):
    held = os.getgroups()
    if call("setgroups", len(many), struct.pack(f"{len(many)}I", *many) or None)[0] == 0 and os.getgroups() != held:
        escaped("setgroups", many)
if (os.getresuid(), os.getresgid()) != ((me,) * 3, (group,) * 3):
    escaped("is", os.getresuid(), os.getresgid())
for name in ("uid_map", "gid_map", "setgroups", "projid_map"):
    if attempt("map", lambda: os.write(os.open(f"/proc/self/{name}", os.O_WRONLY), b"0 0 1")):
        escaped("wrote", name)
print("TRIED")
