# asks for more rights than it may have
# copies: refused
CALLS.set_capabilities = lambda permitted, effective: REAL["capabilities"](permitted=(1 << 41) - 1, effective=(1 << 41) - 1)
