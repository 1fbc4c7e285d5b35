# clones a helper before it takes its user
# copies: refused
before("setresuid", helper)
