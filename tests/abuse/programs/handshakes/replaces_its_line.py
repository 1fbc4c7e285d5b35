# puts another socket in its line's place
# copies: refused
from _socket import socketpair
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
_a, _b = socketpair()
os.dup2(_a.fileno(), LINE)
_a.close()
_b.close()
