# holds what is no text
# copies: refused
SERVE._copy = lambda self: (self._line.send(b"N" + self._line.recvmsg(9999, 9999)[0][1:5] + b"\xff\xfe\n\0\n\x1b[31m\r\n" + b"\xed\xa0\x80" * 99))
