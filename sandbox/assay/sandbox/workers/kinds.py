"""What a supervisor may be asked to do; the kinds of frames of `assay.kit.pool.frames`.

X  run a program; body: bytes of an ExecutionJob; answer: bytes of an ExecutionResult without
   timings
T  hold one against tests; the same with TestJob and TestJobResult
P  prove that a language works; body: its name; answer: what is wrong with it, empty for nothing
"""

EXECUTE = b"X"
TESTS = b"T"
PROBE = b"P"
