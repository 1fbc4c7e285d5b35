# has capset answered as done, by a filter of its own
# copies: refused
import ctypes
_N = {"x86_64": (117, 272, 126), "aarch64": (147, 97, 91)}[os.uname().machine]
_code = [(0x20, 0, 0, 0)] + [x for n in _N[2:2+1] for x in ((0x15, 0, 1, n), (6, 0, 0, 0x50000))] + [(6, 0, 0, 0x7FFF0000)]
_text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in _code))
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))
_program = Program(len(_code), ctypes.addressof(_text))
assert ctypes.CDLL(None).prctl(22, 2, ctypes.byref(_program), 0, 0) == 0
