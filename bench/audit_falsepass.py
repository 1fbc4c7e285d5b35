"""What falsepass (https://github.com/Super-Eric/falsepass) says of a grader, planted or public.

It is used as its page says for a reward function: `falsepass init FILE --dataset ROWS --func NAME`,
then its runner (what `falsepass audit` starts in an environment of its own), on all rows, with its
mutation search (120 calls, "a good value"). It finds a hole where its false-pass ceiling is above
0.499: half of the reward, as with us. `python -m bench audit-detection --falsepass` asks it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

_CALLED = """

def falsepass_asks(completions, reference, **kwargs):
    return [float({name}(one, right)) for one, right in zip(completions, reference)]
"""
OPTIONS = ("-n", "80", "--search", "120", "--fail-on", "ceiling>0.499")
_LIMIT_S = 300.0


def version_at(python: Path) -> str:
    """The version of falsepass that an interpreter has; empty for none."""
    asked = "import importlib.metadata as m; print(m.version('falsepass'))"
    try:
        said = subprocess.run(
            [python, "-c", asked], capture_output=True, text=True, check=False, timeout=60
        )
    except OSError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""


def probed(python: Path, file: Path, function: str, rows: Path) -> tuple[str, float]:
    """What it says: "hole", "none", or why it says nothing; and the seconds."""
    with tempfile.TemporaryDirectory(prefix="assay-falsepass-") as name:
        folder = Path(name)
        text = file.read_text(encoding="utf-8") + _CALLED.format(name=function)
        (folder / "rewards.py").write_text(text, encoding="utf-8")
        shutil.copy(rows, folder / "rows.jsonl")
        began = time.perf_counter()
        subprocess.run(
            [
                python.with_name("falsepass"), "init", "rewards.py", "--dataset", "rows.jsonl",
                "--func", "falsepass_asks", "--answer-column", "reference",
                "--prompt-column", "prompt", "--name", "one",
            ],
            cwd=folder, capture_output=True, check=True,
        )  # fmt: skip
        try:
            ended = subprocess.run(
                [python, "-m", "falsepass.runner", "audits/one", *OPTIONS],
                cwd=folder, capture_output=True, text=True, check=False, timeout=_LIMIT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return "late", _LIMIT_S
        seconds = time.perf_counter() - began
    if "# Probe summary" not in ended.stdout:
        return "not run", seconds
    if ended.returncode:
        return "hole", seconds
    return "inconclusive" if "inconclusive" in ended.stdout.casefold() else "none", seconds
