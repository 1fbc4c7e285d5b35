# refuses, and says nothing
# copies: refused
SERVE._copy = lambda self: self._line.send(b"N" + self._line.recvmsg(9999, 9999)[0][1:5])
