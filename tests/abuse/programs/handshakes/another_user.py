# takes another user than its own
# copies: refused
os.setresuid = lambda a, b, c: REAL["setresuid"](a + 1, b + 1, c + 1)
