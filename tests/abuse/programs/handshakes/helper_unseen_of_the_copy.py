# clones a helper for its copy, while nobody may look at it
# copies: refused
before("setresuid", lambda: (CALLS.set_dumpable(dumpable=False), helper()))
