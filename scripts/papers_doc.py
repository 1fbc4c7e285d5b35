"""Keeps the table of parts in docs/understand/papers.md equal to the registry of parts.

python scripts/papers_doc.py write    rewrites the table
python scripts/papers_doc.py check    exits with 1 when it differs

Golden names and differences are read from the page's own tables, by the function.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import written
from assay.trainer.settings.registry import parts

DOCUMENT = written.ROOT / "docs" / "understand" / "papers.md"
BEGIN = "<!-- parts: written by scripts/papers_doc.py from the registry of parts -->\n"
END = "<!-- end of parts -->\n"
_MOST_CELLS = 6
_PLACES = {"clients": "clients", "environments": "clients", "genrm": "genrm", "trainer": "trainer"}


@dataclass(frozen=True, slots=True)
class Row:
    """What a row of the page's tables says of a function."""

    section: str
    paper: str
    golden: tuple[str, ...]
    differences: str


def rows_of(document: str) -> dict[str, list[Row]]:
    """The rows of the page's tables by function, as `module.function`."""
    found: dict[str, list[Row]] = {}
    for section in re.split(r"^## ", document, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        for line in re.findall(r"^\|.*\|$", body, re.MULTILINE):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if len(cells) < _MOST_CELLS - 1:
                continue
            _, _, paper, functions, golden, *rest = cells
            row = Row(title, paper, tuple(re.findall(r"`(\w+)`", golden)), "".join(rest))
            for name in re.findall(r"`(\w+\.\w+)`", functions):
                found.setdefault(name, []).append(row)
    return found


def rows_for(rows: list[Row], reference: str) -> list[Row]:
    """Those of a function's rows that name the part's paper; all where none does."""
    words = [re.findall(r"\d{4}\.\d{5}", row.paper) or row.paper.split()[:1] for row in rows]
    named = [row for row, own in zip(rows, words, strict=True) if any(w in reference for w in own)]
    return named or rows


def exists(path: str) -> bool:
    """Whether the module of the function defines it."""
    *modules, name = path.split(".")
    file = written.ROOT / _PLACES[modules[1]] / Path(*modules).with_suffix(".py")
    defined = rf"^(?:def|class) {name}\b"
    return file.is_file() and bool(re.search(defined, file.read_text(), re.MULTILINE))


def render_table(document: str) -> str:
    """The table, in the order in which `assay train --explain` lists parts.

    Raises:
        ValueError: a part names no function, or one that is not there.
    """
    rows = rows_of(document)
    lines = ["| part | paper | function | golden | formula, differences |", "|---|---|---|---|---|"]
    for part in parts():
        whole = [p if p.startswith("assay.") else f"assay.trainer.{p}" for p in part.code]
        missing = [path for path in whole if not exists(path)] or ["code of its own"] * (not whole)
        if missing:
            raise ValueError(f"part {part.name}: there is no {missing[0]}")
        keys = [".".join(path.split(".")[-2:]) for path in whole]
        told = [row for key in keys for row in rows_for(rows.get(key, []), part.reference)]
        golden = dict.fromkeys(f"`{name}`" for row in told for name in row.golden)
        notes = dict.fromkeys(
            f"[{row.section}](#{row.section.lower().replace(' ', '-')})"
            + (f" {row.differences}" if row.differences else "")
            for row in told
        )
        functions = ", ".join(f"`{path}`" for path in whole)
        cells = (part.name, part.reference, functions, ", ".join(golden), "; ".join(notes))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_table(document: str) -> str:
    """The document with its table replaced.

    Raises:
        ValueError: the document does not hold both marks, once and in order.
    """
    before, _, rest = document.partition(BEGIN)
    table = render_table(before + rest.partition(END)[2])
    return written.between(document, (BEGIN, END), table, DOCUMENT.name)


def wanted() -> dict[Path, str]:
    """The document as it should be."""
    return {DOCUMENT: with_table(DOCUMENT.read_text(encoding="utf-8"))}


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    return written.run(__doc__, "the parts", wanted, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
