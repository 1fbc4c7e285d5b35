import os

for user in (0, 1, 33, 65534, *range(1000, 1010), *range(60000, 70000, 997), *range(100000, 110000, 991)):
    if user == os.getuid():
        continue
    for change in (os.setuid, os.seteuid, os.setgid, os.setegid):
        try:
            change(user)
            print("ESCAPED became", change.__name__, user)
        except OSError:
            pass
try:
    os.setgroups([0])
    print("ESCAPED joined group 0")
except OSError:
    pass
if 0 in os.getgroups() and os.getuid() != 0:
    print("groups", os.getgroups())
