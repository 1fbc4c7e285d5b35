# what an inherited descriptor, cwd or root leads to
import fcntl
limit = os.sysconf("SC_OPEN_MAX")
for number in range(limit):
    try:
        kind = os.fstat(number)
    except OSError:
        continue
    link = attempt("link", lambda: os.readlink(f"/proc/self/fd/{number}")) or "?"
    print("descriptor", number, link, flush=True)
    if "seccomp" in link or "pidfd" in link or "userns" in link or "mnt:" in link:
        escaped("holds", link)
    if stat.S_ISDIR(kind.st_mode):
        escaped("holds folder", link, attempt("list", lambda: os.listdir(number)))
    for path in ("..", "../..", ".", "../../proc/1/root", "victim.txt", "../victim.txt"):
        found = attempt("openat", lambda: os.open(path, os.O_PATH, dir_fd=number))
        if found is not None:
            escaped("opened", path, "from", number)
sockets = [n for n in range(limit) if attempt("s", lambda: stat.S_ISSOCK(os.fstat(n).st_mode))]
if len(sockets) > 1:
    escaped("sockets", sockets)
for n in sockets:  # what waits there must be ours
    data = attempt("peek", lambda: socket.socket(fileno=os.dup(n)).recv(4096, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    if data:
        escaped("waiting on the line", data[:60])
print("TRIED")
