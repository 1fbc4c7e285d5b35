# holds much, in long words that are no letters
# copies: refused
SERVER._interpreter.holds = lambda: ["\U0001F600\u0e01" * 100] * 40
type(SERVER._interpreter).holds = lambda self: ["\U0001F600\u0e01" * 100] * 40
