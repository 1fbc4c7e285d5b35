"""Keeps the reasons in docs/reference/errors.md equal to the lexicon in assay/kit/reasons.py.

python scripts/errors_doc.py write    rewrites the table
python scripts/errors_doc.py check    exits with 1 when the table differs from the lexicon
"""

from __future__ import annotations

import sys
from pathlib import Path

import written
from assay.kit.reasons import LEXICON

DOCUMENT = written.ROOT / "docs" / "reference" / "errors.md"
BEGIN = "<!-- reasons: written by scripts/errors_doc.py from assay/kit/reasons.py -->\n"
END = "<!-- end of reasons -->\n"


def render_table() -> str:
    """The lexicon as a Markdown table, in the lexicon's order."""
    rows = ["| Reason | gRPC code | What it means | What to do |", "|---|---|---|---|"]
    rows += [
        f"| `{reason}` | `{info.code.name}` | {info.meaning} | {info.remedy} |"
        for reason, info in LEXICON.items()
    ]
    return "\n".join(rows) + "\n"


def with_table(document: str, table: str) -> str:
    """The document with its table replaced.

    Raises:
        ValueError: the document does not hold both marks, once and in order.
    """
    return written.between(document, (BEGIN, END), table, DOCUMENT.name)


def wanted() -> dict[Path, str]:
    """The document as it should be."""
    return {DOCUMENT: with_table(DOCUMENT.read_text(encoding="utf-8"), render_table())}


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    return written.run(__doc__, "the lexicon", wanted, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
