# sends hundreds of descriptors with a word
# copies: refused made
def many(self, user, given, *rest):
    line = socket(fileno=os.dup(given[0]))
    line.sendmsg([b"C"], [(SOL_SOCKET, SCM_RIGHTS, struct.pack("200i", *[0] * 200))])
    line.sendmsg([b"U"], [(SOL_SOCKET, SCM_RIGHTS, struct.pack("200i", *[0] * 200))])
    os._exit(0)
SERVE._become = many
