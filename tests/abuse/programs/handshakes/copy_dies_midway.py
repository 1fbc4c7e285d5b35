# its copy dies once it has its user
# copies: refused
before("dumpable", lambda: os._exit(7))
