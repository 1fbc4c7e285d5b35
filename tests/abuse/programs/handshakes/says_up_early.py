# says that it is up before it is
# copies: refused
SERVE._become = lambda self, user, given, *rest: (
    [socket(fileno=os.dup(given[0])).send(word) for word in (b"C", b"U", b"D")], time.sleep(1), REAL["become"](self, user, given, *rest))[2]
