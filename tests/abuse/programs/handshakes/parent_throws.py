# throws as it is asked for a copy
# copies: refused
SERVE._split = lambda *given: 1 / 0
