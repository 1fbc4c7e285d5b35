# dies as it is asked for a copy
# copies: refused
SERVE._copy = lambda self: os._exit(7)
