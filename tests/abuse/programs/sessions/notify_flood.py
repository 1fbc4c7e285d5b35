# asks for the keeper's consent all the time, from many threads and processes
# ends: completed died process_limit
ends = time.monotonic() + 1.5
def flood():
    while time.monotonic() < ends:
        call("setresuid", os.getuid(), os.getuid(), os.getuid())
        call("unshare", 0x20000)
        call("setresuid", 1001, 1001, 1001)
for _ in range(3):
    if attempt("fork", os.fork) == 0:
        flood()
        os._exit(0)
threads = [threading.Thread(target=flood) for _ in range(8)]
for t in threads:
    attempt("start", t.start)
for t in threads:
    attempt("join", t.join)
while attempt("wait", os.wait):
    pass
print("TRIED")
