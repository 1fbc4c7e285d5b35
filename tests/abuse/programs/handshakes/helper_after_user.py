# clones a helper with the new user
# copies: refused
before("dumpable", helper)
