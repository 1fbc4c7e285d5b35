# rights of its own namespace: raised, kept over an exec, used
# ends: completed
import subprocess
def held():
    return {name: int(status("self", name), 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
before = held()
print(before, flush=True)
allowed = (1 << 7) | (1 << 21)  # SETUID and SYS_ADMIN, whose use is asked for each time
if (before["CapEff"] | before["CapPrm"]) & ~allowed or before["CapInh"] or before["CapAmb"]:
    escaped("holds", before)
header = struct.pack("Ii", 0x20080522, 0)
for low in (0xFFFFFFFF, before["CapPrm"] & 0xFFFFFFFF):
    for inheritable in (low, 0):
        call("capset", header, struct.pack("6I", low, low, inheritable, 0xFF, 0xFF, 0xFF))
        call("capset", header, struct.pack("6I", low, low, inheritable, 0, 0, 0))
for capability in range(41):
    if libc.prctl(47, 2, capability, 0, 0) == 0:  # PR_CAP_AMBIENT_RAISE
        escaped("ambient", capability)
after = held()
if any(after[n] & ~before[n] for n in ("CapPrm", "CapEff", "CapInh", "CapAmb")) or after["CapInh"]:
    escaped("raised", after)
for line in subprocess.run(["grep", "Cap", "/proc/self/status"], capture_output=True, text=True).stdout.splitlines():
    name, _, value = line.partition(":")
    if name != "CapBnd" and int(value, 16):
        escaped("kept over exec", line)
for path in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/newuidmap", "/bin/su", "/usr/bin/sudo"):
    if attempt("suid", lambda: "Uid:\t0" in subprocess.run([path, "--help"], capture_output=True, text=True, timeout=5).stdout):
        escaped("suid")
if status("self", "NoNewPrivs") != "1":
    escaped("new privileges")
for name in ("trusted.x", "security.capability", "security.ima", "system.posix_acl_access"):
    open("x", "w").close()
    if attempt("xattr", lambda: os.setxattr("x", name, b"\1\0\0\2" + bytes(16)) is None) and name[0] in "ts" and "acl" not in name:
        escaped("xattr", name)
if attempt("chown", lambda: os.chown("x", 0, 0) is None) or attempt("node", lambda: os.mknod("n", 0o20666, os.makedev(1, 1)) is None):
    escaped("chown or mknod")
print("TRIED")
