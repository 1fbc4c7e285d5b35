"""Runs the notebooks of docs/notebooks, each in a fresh interpreter, without Jupyter.

python scripts/notebooks.py write    runs them, and writes into them what they print
python scripts/notebooks.py check    exits with 1 where one fails, or prints something else

A cell with the tag `varies` may print something else each time, one with the tag `installs` is
not run. Pictures are shown by whoever opens a notebook, and not kept in it.
"""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import written

FOLDER = written.ROOT / "docs" / "notebooks"
_LIMIT_S = 600.0
Cell = dict[str, Any]


def read(path: Path) -> list[Cell]:
    """The cells of a notebook, as its file has them."""
    cells: list[Cell] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def tags(cell: Cell) -> list[str]:
    """What a cell is marked with."""
    return list(cell["metadata"].get("tags", ()))


def source(cell: Cell) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def printed(cell: Cell) -> str:
    """What the file says that a cell prints."""
    return "".join(text for output in cell.get("outputs", ()) for text in output["text"])


def as_page(path: Path) -> str:
    """A notebook as Markdown: what is to be installed for a shell, what is printed beneath."""
    parts = []
    for cell in read(path):
        text = source(cell)
        if cell["cell_type"] == "markdown":
            parts.append(text)
        elif "installs" in tags(cell):
            parts.append(f"```sh\n{text.removeprefix('%')}\n```")
        else:
            parts.append(f"```python\n{text}\n```")
            parts += [f"```text\n{printed(cell)}```"] if printed(cell) else []
    return "\n\n".join(parts) + "\n"


def run(path: Path) -> list[str]:
    """Runs a notebook's cells, one after another, in an interpreter of its own.

    Returns:
        What each of its cells prints; "" for one that is not run.

    Raises:
        RuntimeError: a cell fails; the message has its traceback.
    """
    done = subprocess.run(
        [sys.executable, __file__, "cells", str(path)],
        cwd=path.parent,
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    if done.returncode or not done.stdout.endswith("]\n"):
        raise RuntimeError(f"{path.name}: {done.stderr or 'its interpreter said nothing'}")
    outputs: list[str] = json.loads(done.stdout.splitlines()[-1])
    return outputs


def _run_here(path: Path) -> list[str]:
    """What the cells print, run in this process: its working folder and modules are theirs."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for number, cell in enumerate(read(path)):
        out = io.StringIO()
        if cell["cell_type"] == "code" and "installs" not in tags(cell):
            name = f"{path.name}, cell {number}"
            try:
                with redirect_stdout(out):
                    _execute(source(cell), name, scope)
            except SystemExit as ended:
                raise RuntimeError(f"{name}: SystemExit {ended.code}") from ended
        outputs.append(out.getvalue())
    return outputs


def _execute(text: str, name: str, scope: dict[str, Any]) -> None:
    """Runs a cell. The value of its last line is shown, as Jupyter does: a picture, or its text."""
    tree = ast.parse(text, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), scope)  # noqa: S102
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), name, "eval"), scope)  # noqa: S307
        picture = getattr(value, "_repr_png_", None)
        if picture is not None:
            if not picture().startswith(b"\x89PNG"):
                raise ValueError(f"{name}: no picture")
        elif value is not None:
            print(repr(value))


def with_outputs(path: Path, outputs: list[str]) -> str:
    """The notebook's file with what its cells print."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell, text in zip(notebook["cells"], outputs, strict=True):
        if cell["cell_type"] == "code" and not ("varies" in tags(cell) and printed(cell)):
            lines = text.splitlines(keepends=True)
            stream = {"name": "stdout", "output_type": "stream", "text": lines}
            cell["outputs"] = [stream] if text else []
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def main(arguments: list[str]) -> int:
    """Dispatches one of the verbs; `cells` is for the interpreter that runs one notebook."""
    if arguments[:1] == ["cells"]:
        outputs = _run_here(Path(arguments[1]))
        print(json.dumps(outputs), flush=True)
        return 0
    paths = sorted(FOLDER.glob("*.ipynb"))
    return written.run(
        __doc__,
        "what it prints",
        lambda: {path: with_outputs(path, run(path)) for path in paths},
        arguments,
    )


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    sys.exit(main(sys.argv[1:]))
