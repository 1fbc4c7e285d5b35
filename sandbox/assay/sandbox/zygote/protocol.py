"""What the warden and the zygote agree on.

Descriptors, sizes and the form of messages. See `assay.sandbox.zygote.main`.
"""

from __future__ import annotations

import struct

CONTROL = 3  # the zygote keeps its control socket here
KILL_LINE = 4  # and its end of the kill line here
CHANNEL = 3  # a child with a channel has it in the control socket's place
MAX_INLINE_BYTES = 16 * 1024  # a larger job travels in a file
DONE = struct.Struct(
    "!cIidq"
)  # b"D", run, wait status, CPU seconds, peak resident bytes of the largest process
RUN_NUMBER = struct.Struct("!I")
FETCHED = 1 << 31  # added to a run's number on the kill line: its folder may be emptied
