"""Keeps the table of reasons in docs/errors.md equal to the lexicon in assay/rpc/reasons.py.

python scripts/errors_doc.py write    rewrites the table
python scripts/errors_doc.py check    exits with 1 when the table differs from the lexicon
"""

from __future__ import annotations

import sys
from pathlib import Path

from assay.rpc.reasons import LEXICON

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "errors.md"
BEGIN = "<!-- reasons: written by scripts/errors_doc.py from assay/rpc/reasons.py -->\n"
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
    if document.count(BEGIN) != 1 or document.count(END) != 1:
        raise ValueError(f"{DOCUMENT.name} must hold each of the two marks once: {BEGIN}{END}")
    before, _, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{DOCUMENT.name} holds the end mark before the begin mark")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    if arguments not in (["write"], ["check"]):
        print(__doc__, file=sys.stderr)
        return 2
    now = DOCUMENT.read_text(encoding="utf-8")
    wanted = with_table(now, render_table())
    if arguments == ["write"]:
        DOCUMENT.write_text(wanted, encoding="utf-8")
        return 0
    if now != wanted:
        print(f"docs/{DOCUMENT.name} differs from the lexicon: run `{sys.argv[0]} write`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
