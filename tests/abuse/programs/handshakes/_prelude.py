import os, struct, sys, time
from _socket import SCM_RIGHTS, SOL_SOCKET, socket
_frames, _frame = [], sys._getframe()
while _frame:
    _frames.append(_frame)
    _frame = _frame.f_back
MODULES = {f.f_globals.get("__name__"): f.f_globals for f in _frames}
BRANCH = MODULES["assay.sandbox.zygote.branch"]
SERVER = next(f.f_locals["self"] for f in _frames if type(f.f_locals.get("self")).__name__ == "_Server")
SERVE, CALLS = type(SERVER), BRANCH["syscalls"]
REAL = {"become": SERVE._become, "split": SERVE._split, "copy": SERVE._copy, "unshare": CALLS.unshare,
        "capabilities": CALLS.set_capabilities, "dumpable": CALLS.set_dumpable, "setresuid": os.setresuid,
        "clone": CALLS.clone_sibling, "close": os.close, "chdir": os.chdir, "opened": BRANCH["_opened"],
        "plumb": BRANCH["_plumb"], "fork": CALLS.fork}
CHANNEL, LINE = 1000, 1001
KEPT = []
del _frame, _frames

def helper(seconds=20):
    """A process beside us, with all that we hold."""
    pid = REAL["fork"]()
    if pid == 0:
        time.sleep(seconds)
        os._exit(0)
    return pid

def before(name, action):
    """Does something in the copy before a step of its becoming."""
    if name == "become":
        SERVE._become = lambda self, *given: (action(), REAL["become"](self, *given))[1]
    elif name in ("unshare", "capabilities", "dumpable"):
        attribute = {"unshare": "unshare", "capabilities": "set_capabilities", "dumpable": "set_dumpable"}[name]
        setattr(CALLS, attribute, lambda *a, **k: (action(), REAL[name](*a, **k))[1])
    else:
        setattr(os, name, lambda *a, **k: (action(), REAL[name](*a, **k))[1])
