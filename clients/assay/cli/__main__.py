"""`assay`, and `python -m assay.cli`: names the packages to install where the extra is absent."""

from __future__ import annotations

import sys
from importlib.util import find_spec

_NEEDED = ("click", "rich")


def main() -> None:
    """The console script."""
    absent = [name for name in _NEEDED if find_spec(name) is None]
    if absent:
        print(
            f"assay: error: the command needs {' and '.join(absent)}; in a checkout of Assay, run: "
            "pip install './clients[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    from assay.cli.main import run  # noqa: PLC0415  # imports click

    sys.exit(run())


if __name__ == "__main__":
    main()
