# fills its line with refusals, ahead of every order
# copies: refused made
_line = socket(fileno=os.dup(LINE))
_line.setblocking(False)
try:
    while True:
        _line.sendmsg([b"N" + "\n".join(["\U0001F600" * 200] * 20).encode()[:20000]], [(SOL_SOCKET, SCM_RIGHTS, struct.pack("9i", *[0] * 9))])
except BlockingIOError:
    pass
