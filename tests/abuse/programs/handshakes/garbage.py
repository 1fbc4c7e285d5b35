# sends what is no word, and far too much of it
# copies: refused
SERVE._become = lambda self, user, given, *rest: [socket(fileno=os.dup(given[0])).send(x) for x in (b"\xff" * 60000, b"", b"C" * 9)] and os._exit(3)
