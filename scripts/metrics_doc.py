"""Keeps the tables in docs/train/metrics.md equal to assay/trainer/records/metric_table.py.

python scripts/metrics_doc.py write    rewrites the tables
python scripts/metrics_doc.py check    exits with 1 when they differ
"""

from __future__ import annotations

import sys
from pathlib import Path

import written
from assay.trainer.records.metric_table import COUNTS, GROUPS, METRICS
from assay.trainer.settings.metric import Metric

DOCUMENT = written.ROOT / "docs" / "train" / "metrics.md"
BEGIN = "<!-- metrics: written by scripts/metrics_doc.py from records/metric_table.py -->\n"
END = "<!-- end of metrics -->\n"


def render_tables() -> str:
    """One table for each group, in the order in which they are listed."""
    parts = []
    for group, title in GROUPS.items():
        rows = [_row(metric) for metric in METRICS.values() if metric.group == group]
        head = ["| `metrics.jsonl` | reported as | unit | what it is |", "|---|---|---|---|"]
        parts.append(f"### {title}\n\n" + "\n".join([*head, *rows]) + "\n")
    return "\n".join(parts)


def _row(metric: Metric) -> str:
    shown = f"{metric.shown}/..." if metric.key in COUNTS else f"{metric.group}/{metric.shown}"
    meaning = metric.meaning.replace("|", "\\|")
    return f"| `{metric.key}` | `{shown}` | {metric.unit} | {meaning} |"


def with_tables(document: str, tables: str) -> str:
    """The document with its tables replaced.

    Raises:
        ValueError: the document does not hold both marks, once and in order.
    """
    return written.between(document, (BEGIN, END), tables, DOCUMENT.name)


def wanted() -> dict[Path, str]:
    """The document as it should be."""
    return {DOCUMENT: with_tables(DOCUMENT.read_text(encoding="utf-8"), render_tables())}


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    return written.run(__doc__, "the table", wanted, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
