# a filter of its own, which answers the handshake's calls with trap
# ends: completed
# then: copies
import array
def program(answers):
    code = [(0x20, 0, 0, 0)]
    for number, answer in answers:
        code += [(0x15, 0, 1, number), (0x06, 0, 0, answer)]
    return b"".join(struct.pack("HBBI", *one) for one in [*code, (0x06, 0, 0, 0x7FFF0000)])
DONE = 0x00030000
text = ctypes.create_string_buffer(program([(NR[n], DONE) for n in ("setresuid", "unshare", "setresgid")]))
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))
p = Program(len(text.raw) // 8, ctypes.addressof(text))
print("installed", libc.prctl(22, 2, ctypes.byref(p), 0, 0), ctypes.get_errno(), flush=True)
print("TRIED")
