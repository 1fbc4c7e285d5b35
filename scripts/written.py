"""The verbs of the scripts that write a file, or a part of one, from the code: write and check.

Found beside the scripts: by Python where one is run, by `pythonpath` of pytest and `mypy_path` of
mypy (pyproject.toml) elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(
    usage: str | None,
    source: str,
    wanted: Callable[[], Mapping[Path, str]],
    arguments: list[str],
) -> int:
    """Dispatches one of the two verbs.

    Args:
        usage: what to print where it is neither.
        source: what the files are made from, for people.
        wanted: every file below the root, and the text that it should have.
        arguments: of the command line.

    Returns:
        The exit status: of `check` 1 where a file differs, 2 where there is no such verb.
    """
    if arguments not in (["write"], ["check"]):
        print(usage, file=sys.stderr)
        return 2
    stale = {
        path: text
        for path, text in wanted().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        if arguments == ["write"]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        else:
            print(f"{path.relative_to(ROOT)} differs from {source}: run `{sys.argv[0]} write`")
    return int(arguments == ["check"] and bool(stale))


def between(document: str, marks: tuple[str, str], text: str, name: str) -> str:
    """The document with what is between its marks replaced.

    Args:
        document: its text.
        marks: the lines, with their ends, that stand before and behind the part.
        text: the part, which ends with a line's end.
        name: of the document, for people.

    Raises:
        ValueError: it does not hold both marks, once and in order.
    """
    first, last = marks
    before, begin, rest = document.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end or first in rest or last in before + after:
        raise ValueError(f"{name} must hold each of the two marks once: {first}{last}")
    return f"{before}{first}\n{text}\n{last}{after}"
