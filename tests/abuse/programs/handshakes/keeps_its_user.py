# does not take its user
# copies: refused
os.setresuid = lambda *a: None
