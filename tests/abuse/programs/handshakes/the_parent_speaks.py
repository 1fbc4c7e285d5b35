# the parent speaks on its copy's line
# copies: refused
SERVE._split = lambda self, user, given: socket(fileno=os.dup(given[0])).send(b"C")
