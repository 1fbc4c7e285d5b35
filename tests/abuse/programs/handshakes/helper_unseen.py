# has a child that does not let itself be looked at
# copies: refused
import ctypes
if REAL["fork"]() == 0:
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    time.sleep(20)
    os._exit(0)
time.sleep(0.2)
