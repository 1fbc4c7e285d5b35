# names that confuse who reads /proc
# ends: completed
libc.prctl(15, b"a) R 1 1\nUid:\t", 0, 0, 0)
attempt("comm", lambda: open("/proc/self/comm", "w").write("x) S 1\nUid:\t0"))
open("Uid:\t0\t0\nThreads:\t1", "w").write("x")
os.makedirs("a b/c\nd", exist_ok=True)
os.chdir("a b/c\nd")
names = [open(b"(deleted)", "w"), open(b"x (deleted)", "w"), open("pos:\t0\nflags:\t02", "w"), open("socket:[1]", "w"), open("anon_inode:[eventfd]", "w")]
print("TRIED")
