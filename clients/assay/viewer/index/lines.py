"""A file of rollouts line by line, whatever it holds."""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay.viewer.index.schema import MOST_LINES


def lines_of(
    path: Path, say: Callable[[str], None] = lambda _text: None
) -> Iterator[tuple[int, Any]]:
    """The rows of a file of rollouts with their lines, from 0; None for a line that is no JSON."""
    line = -1
    try:
        with gzip.open(path, "rb") as file:
            for line, data in enumerate(file):
                if line >= MOST_LINES:
                    say(f"{path.name} has more than {MOST_LINES} rows")
                    return
                row: Any = None
                with contextlib.suppress(ValueError, RecursionError):
                    row = json.loads(data)
                if row is None and not data.endswith(b"\n"):
                    say(f"{path.name} is cut short behind row {line}")
                    return
                yield line, row
    except FileNotFoundError:
        return
    except (EOFError, OSError, zlib.error) as error:
        say(f"{path.name} is cut short behind row {line + 1} ({type(error).__name__})")
