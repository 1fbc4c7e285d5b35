# takes what is given to a fork only: another user, a mount namespace, outside of a handshake
# ends: completed died security_violation
me, here = os.getuid(), os.readlink("/proc/self/ns/mnt")
for user in range(995, 1100):
    if user != me and call("setresuid", user, user, user)[0] == 0:
        escaped("user", user)
if call("unshare", 0x20000)[0] == 0 or os.readlink("/proc/self/ns/mnt") != here:
    escaped("mount namespace")
for flags in (0x20000 | 0x200, 0x20000 | 0x400, 0x20000 | (1 << 32), 0x20000 | 0x10000000):
    if call("unshare", flags)[0] == 0:
        escaped("unshare", hex(flags))
print("TRIED", flush=True)
