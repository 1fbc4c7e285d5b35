"""The program that `/run_jupyter` runs in the sandbox: a notebook's cells, in one namespace.

Its source travels (`jupyter`). It is Python, not IPython: a cell's last expression is shown as
`text/plain`, Matplotlib's figures as `image/png` at the end of their cell; magics and shell lines
are not served.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import signal
import sys
import traceback
import types
import warnings
from pathlib import Path

CELLS = "assay_cells.json"
RESULTS = "assay_results.json"


def run_cell(cell: str, name: str, space: dict[str, object]) -> dict[str, object]:
    """Runs a cell in the shared namespace; what it raises is part of its result.

    `name` stands in tracebacks.
    """
    shown: list[dict[str, str]] = []
    errors: list[dict[str, object]] = []
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            value = _evaluate(cell, name, space)
            shown += _figures()
            if value is not None:
                space["_"] = value
                shown.append({"text/plain": repr(value)})
        except BaseException as error:  # noqa: BLE001 - also SystemExit: the next cell runs
            lines = traceback.format_exception(error)
            errors.append({"ename": type(error).__name__, "evalue": str(error), "traceback": lines})
    return {
        "stdout": stdout.getvalue(),
        "stderr": stderr.getvalue(),
        "display": shown,
        "error": errors,
    }


def _evaluate(cell: str, name: str, space: dict[str, object]) -> object:
    """Runs a cell; the value of its last expression, if that is what it ends with."""
    tree = ast.parse(cell, name)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr) or cell.rstrip().endswith(";"):
        exec(compile(tree, name, "exec"), space)  # noqa: S102 - this is its purpose
        return None
    tree.body.pop()
    exec(compile(tree, name, "exec"), space)  # noqa: S102
    return eval(compile(ast.Expression(last.value), name, "eval"), space)  # noqa: S307


def _figures() -> list[dict[str, str]]:
    """Matplotlib's open figures as pictures, if it was imported; closes them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    shown: list[dict[str, str]] = []
    if pyplot is None:
        return shown
    for number in pyplot.get_fignums():
        figure, picture = pyplot.figure(number), io.BytesIO()
        figure.savefig(picture, format="png", bbox_inches="tight")
        encoded = base64.b64encode(picture.getvalue()).decode()
        shown.append({"image/png": encoded, "text/plain": repr(figure)})
        pyplot.close(figure)
    return shown


def main() -> None:
    """Reads the cells, runs them in order, and writes what came of each."""
    os.environ.setdefault("MPLBACKEND", "Agg")  # there is no display; show() does nothing
    warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
    given = json.loads(Path(CELLS).read_text(encoding="utf-8"))
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    results = []
    for number, cell in enumerate(given["cells"], start=1):
        signal.signal(signal.SIGALRM, _late)
        signal.setitimer(signal.ITIMER_REAL, given["cell_timeout_s"])
        results.append(run_cell(cell, f"<cell {number}>", module.__dict__))
        signal.setitimer(signal.ITIMER_REAL, 0)
    Path(RESULTS).write_text(json.dumps(results), encoding="utf-8")


def _late(_number: int, _frame: object) -> None:
    raise TimeoutError("the cell ran into its time-out")


if __name__ == "__main__":
    main()
