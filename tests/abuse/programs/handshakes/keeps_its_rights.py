# does not drop what it raised
# copies: refused
CALLS.set_capabilities = lambda permitted, effective: REAL["capabilities"](permitted=permitted, effective=permitted)
