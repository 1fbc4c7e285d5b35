# stays in its parent's folder
# copies: refused
os.chdir = lambda *a: None
BRANCH["os"].chdir = os.chdir
