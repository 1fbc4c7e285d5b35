# its copy has its parent's memory, and the parent waits
# copies: refused
import ctypes
_call = ctypes.PyDLL(None).syscall
_CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
CALLS.clone_sibling = lambda flags=0: _call(_CLONE, 0x100 | 0x4000 | 0x8000 | 17, 0, 0, 0, 0)
