# makes two copies for one order
# copies: refused
CALLS.clone_sibling = lambda *a: REAL["clone"]() and REAL["clone"]()
