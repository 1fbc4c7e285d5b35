"""Replays cells in a Jupyter kernel and in a session of ours, and says where the two differ.

    python -m session_shims.replay FILE... [--limit N] [--seconds S] [--json FILE]

Runs in an interpreter with jupyter_client and ipykernel. FILE is a notebook (.ipynb), whose code
cells are one sequence, or rows (.jsonl.gz): the Python blocks of a "response", or the statements of
a solution and its tests ("prompt" and "canonical_solution", or "code" and "test_list").

Each cell's outcome is compared: how it ended (with the exception's class and text), stdout, stderr
and the value's plain text. A sequence ends at the first cell that runs out of time on either side.
"""

from __future__ import annotations

import argparse
import ast
import collections
import gzip
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

from assay.clients.sessions import CellEnd
from assay.kit.errors import CallError
from session_shims.line import Line, plain_text

CELL_S = 10.0
ROWS_TOGETHER = 20
_SAME = {"PYTHONHASHSEED": "0", "MPLBACKEND": "Agg"}
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_PLAIN = """
get_ipython().display_formatter.formatters["text/plain"].pprint = False
get_ipython().automagic = False
"""
_LAYOUT = "layout of a value alone"
_SEED = "import random; random.seed(0); del random"
_FAMILIES = (  # of what only IPython reads or has
    ("magic", re.compile(r"^\s*(%|!)|\?\s*$|=\s*(%|!)", re.MULTILINE)),
    ("IPython's `exit`, which does not stop the cell", re.compile(r"\b(exit|quit)\(")),
    ("IPython's own names", re.compile(r"\b(get_ipython|IPython|In|Out|_\d+|_i+|__)\b")),
    ("IPython's `_` before any value", re.compile(r"\b_\b")),
)


class Seen(NamedTuple):
    """What a cell did, in one side's eyes.

    Attributes:
        ended: "ok", the exception's class and text, or "time".
    """

    ended: str
    stdout: str
    stderr: str
    value: str


def main() -> int:
    """Returns 1 where a difference is of no known family."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=10**9, help="sequences of a file of rows")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no sequence after it")
    parser.add_argument("--json", type=Path, help="where the differences are written")
    given = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    differences: list[dict[str, Any]] = []
    began = time.monotonic()
    for name, cells in sequences(given.files, given.limit):
        if time.monotonic() - began > given.seconds:
            counts["sequences left out"] += 1
            continue
        counts["sequences"] += 1
        parted = False
        for number, cell, theirs, ours in _both(cells):
            counts["cells"] += 1
            family = _family(cell, theirs, ours)
            if parted and family.startswith("differs"):
                family = "follows from an earlier difference"
            parted = parted or family not in {"equal", _LAYOUT}
            counts[family] += 1
            if family != "equal":
                differences.append(
                    {"where": f"{name}:{number}", "family": family, "cell": cell,
                     "jupyter": theirs._asdict(), "session": ours._asdict()}
                )  # fmt: skip
    if given.json:
        given.json.write_text(json.dumps(differences, indent=1))
    for family, count in counts.most_common():
        print(f"{count:7} {family}")
    return int(any(count and family.startswith("differs") for family, count in counts.items()))


def sequences(files: Iterable[Path], limit: int) -> Iterator[tuple[str, list[str]]]:
    """Each sequence's name and cells."""
    for file in files:
        if file.suffix == ".ipynb":
            cells = json.loads(file.read_text())["cells"]
            codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
            yield file.name, [code for code in codes if code.strip()]
        else:
            with gzip.open(file, "rt") as lines:
                rows = [_cells(json.loads(line)) for line in lines]
            for start in range(0, min(len(rows), limit * ROWS_TOGETHER), ROWS_TOGETHER):
                together = rows[start : start + ROWS_TOGETHER]
                yield f"{file.name}[{start}]", [cell for row in together for cell in row]


def _cells(row: dict[str, Any]) -> list[str]:
    if "response" in row:
        return _BLOCK.findall(str(row["response"]))
    code = row.get("prompt", "") + row.get("canonical_solution", "")
    tests = row.get("tests", [])
    if row.get("test_kind") == "python_check_fn":
        tests = [row["test"], f"check({row['entry_point']})"]
    elif row.get("test_kind") == "python_asserts":
        code = f"{row.get('canonical_solution', '')}\n{row.get('test_setup', '')}"
        tests = [test.removeprefix("assert ").split("==")[0] for test in tests] + tests
    return [*_statements(code), *(test for test in tests if isinstance(test, str))]


def _statements(code: str) -> list[str]:
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return [code]
    return [ast.get_source_segment(code, node) or "" for node in tree.body]


def _both(cells: list[str]) -> Iterator[tuple[int, str, Seen, Seen]]:
    folder = tempfile.mkdtemp()  # as empty as the session's
    manager, client = start_new_kernel(kernel_name="python3", cwd=folder, env=os.environ | _SAME)
    try:
        line = Line("python")
        client.execute(_PLAIN, silent=True)
        _in_jupyter(client, _SEED)
        _in_session(line, _SEED)
        for number, cell in enumerate(cells, 1):
            theirs, ours = _in_jupyter(client, cell), _in_session(line, cell)
            yield number, cell, theirs, ours
            if "time" in (theirs.ended, ours.ended) or ours.ended.startswith("over"):
                break
        line.close()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        shutil.rmtree(folder)


def _in_jupyter(client: BlockingKernelClient, cell: str) -> Seen:
    told: dict[str, str] = collections.defaultdict(str)

    def hear(message: dict[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] == "stream":
            told[content["name"]] += content["text"]
        elif message["msg_type"] == "execute_result":
            told["value"] = content["data"]["text/plain"]

    try:
        reply = client.execute_interactive(
            cell, timeout=CELL_S, output_hook=hear, allow_stdin=False
        )["content"]
    except (TimeoutError, Empty):
        return Seen("time", "", "", "")
    ended = "ok" if reply["status"] == "ok" else f"{reply['ename']}: {reply['evalue']}"
    return Seen(ended, told["stdout"], told["stderr"], told["value"])


def _in_session(line: Line, cell: str) -> Seen:
    try:
        result = line.run(cell, wall_s=CELL_S)
    except CallError as error:
        return Seen(f"over: {error}", "", "", "")
    if result.end is CellEnd.COMPLETED:
        ended = "ok"
    elif result.end is CellEnd.WALL_TIME_LIMIT:
        ended = "time"
    elif result.error:
        ended = f"{result.error.name}: {result.error.message}"
    else:
        ended = str(result.end)
    if result.session_over:
        ended = f"over: {ended}"
    return Seen(ended, result.stdout.text, result.stderr.text, plain_text(result))


def _family(cell: str, theirs: Seen, ours: Seen) -> str:
    left, right = _plain(theirs), _plain(ours)
    if left == right:
        return "equal"
    if left[:3] == right[:3] and _loose(theirs.value) == _loose(ours.value):
        return _LAYOUT
    if "time" in (theirs.ended, ours.ended):
        return "out of time"
    if ours.ended.startswith("ModuleNotFoundError"):
        return "a package that is not served"
    for name, sign in _FAMILIES:
        if sign.search(cell):
            return name
    fields = [
        name for name, one, other in zip(Seen._fields, left, right, strict=True) if one != other
    ]
    return f"differs: {', '.join(fields)}"


def _plain(seen: Seen) -> tuple[str, ...]:
    return tuple(_ADDRESS.sub("0x", text).strip() for text in seen)


def _loose(text: str) -> str:
    return "".join(sorted(re.sub(r"\s+", "", _ADDRESS.sub("0x", text))))


if __name__ == "__main__":
    sys.exit(main())
