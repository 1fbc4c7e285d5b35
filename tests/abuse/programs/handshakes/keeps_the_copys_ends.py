# the parent keeps what it was handed for its copy: its line, channel and streams
# copies: refused
os.close = lambda number: None if 2 < number < 1000 else REAL["close"](number)
