"""Memory that a training run's allocator keeps goes back to the kernel when it is asked to."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import re
from pathlib import Path
from assay.kit.runs.environment import keep_freed_memory, return_freed_memory

def resident_mb():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

keep_freed_memory()
blocks = [bytearray(b"x" * 2**20) for _ in range(400)]
del blocks
kept = resident_mb()
return_freed_memory()
print(kept, resident_mb())
"""


def test_what_is_kept_is_returned() -> None:
    run = [sys.executable, "-c", CODE]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    kept, left = map(float, told.split())
    assert kept > 350
    assert left < kept - 300
