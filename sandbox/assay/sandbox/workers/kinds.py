"""A supervisor's kinds of jobs; frame kinds of `assay.kit.pool.frames`.

X  run a program; body: bytes of an ExecutionJob; answer: bytes of an ExecutionResult without
   timings
T  test one; the same with TestJob and TestJobResult
P  prove that a language works; body: its name; answer: what is wrong with it, empty for nothing
"""

EXECUTE = b"X"
TESTS = b"T"
PROBE = b"P"
