# never answers its keeper
# copies: refused
# slow: yes
SERVE._copy = lambda self: time.sleep(100)
