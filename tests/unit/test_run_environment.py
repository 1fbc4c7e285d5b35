"""The process that trains: its allocator, and how quiet the libraries are."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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


CALM = """
import sys
from assay.kit.runs.environment import calm
{}
import datasets
from huggingface_hub.utils import are_progress_bars_disabled
from transformers.utils import logging
{}
assert datasets.are_progress_bars_disabled() and are_progress_bars_disabled()
assert not logging.is_progress_bar_enabled()
"""
FIRST = "calm(); assert not {'datasets', 'torch', 'transformers'} & set(sys.modules)"


@pytest.mark.parametrize(("before", "after"), [(FIRST, ""), ("", "calm()")])
def test_libraries_show_no_progress_and_are_not_read_for_it(before: str, after: str) -> None:
    run = [sys.executable, "-c", CALM.format(before, after)]
    settings = {name: value for name, value in os.environ.items() if "PROGRESS" not in name}
    ended = subprocess.run(run, env=settings, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_who_compares_runs_reads_no_library_of_models() -> None:
    code = """
import sys, assay.trainer.records.comparing
print({"torch", "transformers"} & {*sys.modules})
"""
    run = [sys.executable, "-c", code]
    told = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert told == "set()\n"
