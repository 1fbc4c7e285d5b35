# holds what is no text
# copies: refused
SERVE._copy = lambda self: (self._line.recvmsg(9999, 9999), self._line.send(b"N\xff\xfe\n\0\n\x1b[31m\r\n" + b"\xed\xa0\x80" * 99))
