"""Keeps the pages and pictures of docs/understand/claims equal to the claims and their figures.

python scripts/claims_doc.py write    rewrites them
python scripts/claims_doc.py check    exits with 1 when one differs
"""

from __future__ import annotations

import sys
from pathlib import Path

import written


def wanted() -> dict[Path, str]:
    """Every page and picture, with its text."""
    sys.path.insert(0, str(written.ROOT))  # `experiments` is not installed
    from experiments.pages import files  # noqa: PLC0415

    return files()


if __name__ == "__main__":
    sys.exit(written.run(__doc__, "experiments/*/claims.py", wanted, sys.argv[1:]))
