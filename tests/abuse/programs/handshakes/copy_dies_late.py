# its copy dies in its own folder
# copies: refused
BRANCH["_plumb"] = lambda *given: os._exit(7)
