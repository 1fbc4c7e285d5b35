# its copy dies at once
# copies: refused
SERVE._become = lambda *given: os._exit(7)
