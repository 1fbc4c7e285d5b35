# speaks without end about orders before this one
# copies: refused
# slow: yes
SERVE._copy = lambda self: (self._line.recvmsg(9999, 9999), [self._line.send(b"K\0\0\0\0") for _ in iter(int, 1)])
