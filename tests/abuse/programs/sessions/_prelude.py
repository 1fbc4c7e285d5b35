import ctypes, errno, mmap, os, re, select, signal, socket, stat, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NR = {numbers}
MOST = 400  # process ids of a family and its box are small

def call(name, *arguments):
    """A bare system call: (result, errno)."""
    ctypes.set_errno(0)
    fixed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return libc.syscall(ctypes.c_long(NR[name]), *fixed), ctypes.get_errno()

def escaped(*words):
    print("ESCAPED", *words, flush=True)

def attempt(what, action):
    """The value, or None; an attempt that fails is what is wanted."""
    try:
        return action()
    except BaseException as error:
        if isinstance(error, (NameError, SyntaxError, AttributeError, KeyError)):
            print("BROKEN", what, repr(error), flush=True)
        return None

def own():
    """This process, its threads and its children."""
    mine = {os.getpid()} | {int(t) for t in os.listdir("/proc/self/task")}
    for task in os.listdir("/proc/self/task"):
        mine |= {int(p) for p in open(f"/proc/self/task/{task}/children").read().split()}
    return mine

def others():
    """Every process id that may be another's: named by /proc or not."""
    listed = {int(p) for p in os.listdir("/proc") if p.isdigit()}
    return sorted((listed | set(range(1, MOST))) - own())

def status(pid, field):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith(field + ":"):
            return line.split(":", 1)[1].strip()
