# clones a helper before it leaves the mounts
# copies: refused
before("unshare", helper)
