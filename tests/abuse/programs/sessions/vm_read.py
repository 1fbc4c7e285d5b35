# process_vm_readv of others; their heap is where ours is, after a fork
# control: vm
# ends: security_violation
class Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))
mine = ctypes.create_string_buffer(1 << 16)
print("TRIED", flush=True)
for pid in others():
    for line in open("/proc/self/maps"):
        low = int(line.split("-")[0], 16)
        here, there = Vector(ctypes.addressof(mine), 1 << 12), Vector(low, 1 << 12)
        for name in ("process_vm_readv", "process_vm_writev"):
            if name == "process_vm_writev":
                here.length = there.length = 0
            if call(name, pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)[0] > 0:
                escaped("vm", pid)
                break
        break
