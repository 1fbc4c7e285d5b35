"""The pages of claims, and their pictures, from the claims and the figures on disk.

Every number of a page is computed here from `results.json`; a page is never edited.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from experiments.claim import POWER, VERDICTS, Claim, Runs, Verdict, column
from experiments.records import method, methods, recorded, results_of

DOCS = Path(__file__).parents[1] / "docs"
PAGES = DOCS / "understand" / "claims"
PICTURES = DOCS / "assets" / "claims"
COLOURS: Mapping[Verdict, str] = {
    "shown": "#009e73",
    "absent": "#d55e00",
    "reversed": "#cc79a7",
    "undecided": "#8a949e",
    "unfinished": "#8a949e",
}
"""Of Okabe and Ito, which colour-blind readers can distinguish."""


@dataclass(frozen=True, slots=True)
class Row:
    """A claim and what its runs say."""

    claim: Claim
    runs: Runs

    @property
    def verdict(self) -> Verdict:
        """By the interval alone."""
        return self.claim.verdict(self.runs)


def files() -> dict[Path, str]:
    """Every page and picture, with its text."""
    by_method = {name: _rows(name) for name in methods()}
    found = {PAGES / "index.md": _index(by_method)}
    found[PICTURES / "all.svg"] = picture([row for rows in by_method.values() for row in rows])
    for name, rows in by_method.items():
        found[PAGES / f"{name}.md"] = _page(name, rows)
        found[PICTURES / f"{name}.svg"] = picture(rows)
    return found


def _rows(name: str) -> list[Row]:
    runs = recorded(name)
    return [Row(claim, runs) for claim in method(name).CLAIMS]


def said(row: Row) -> str:
    """The difference with its interval, or that there is none."""
    found = row.claim.measured(row.runs)
    if found is None:
        return "not run"
    if found.low is None or found.high is None:
        return f"{found.mean:+.3g} (one seed)"
    return f"{found.mean:+.3g} [{found.low:+.3g}, {found.high:+.3g}]"


_HEAD = f"""# Claims of papers, and what their runs say

For whoever chooses a method, and asks whether it does what its paper says. Each row is one sentence
of a paper, held against a run that could have shown it: the difference between two arms that differ
in what the sentence is about, paired by seed, with a 95 % interval. The effect that would count was
written down before the runs, and with it the number of seeds: as many as find that effect in
{POWER:.0%} of all such experiments, by a deviation from pilots with other seeds. The interval alone
decides:

{chr(10).join(f"- **{verdict}**: {meaning}." for verdict, meaning in VERDICTS.items())}

These are models of 0.1 M weights unless a row says otherwise, on tasks that a small program writes.
They show signs and orderings of a mechanism, and no magnitudes of a large model. Of twenty claims
that are not so, one interval is expected beside zero by chance.

    python -m experiments claim NAME            # repeats one; what is done is not run again
    python -m experiments claim                 # what there is, and what is recorded

![Each claim's difference in units of the effect that would count](../../assets/claims/all.svg)

| claim | method | source | difference | effect that counts | seeds | verdict |
|---|---|---|---|---|---|---|
"""
_FOOT = """
Miniatures whose claims are not in this form yet stand with their figures in
[the results of methods](../results/methods.md), [of data](../results/data.md) and
[of the trainer](../results/trainer.md); `python -m experiments METHOD` repeats them.
"""


def _index(by_method: Mapping[str, Sequence[Row]]) -> str:
    lines = [
        f"| [{row.claim.name}]({name}.md#{row.claim.name}) | {name} | {row.claim.source} |"
        f" {said(row)} | {row.claim.effect:+g} | {_seeds(row)} | {row.verdict} |"
        for name, rows in by_method.items()
        for row in rows
    ]
    return _HEAD + "\n".join(lines) + "\n" + _FOOT


def _seeds(row: Row) -> str:
    found = row.claim.measured(row.runs)
    done = found.n if found else 0
    return str(done) if done >= row.claim.seeds else f"{done} of {row.claim.seeds}"


_OPENING = """For whoever doubts what a paper says of this method: what was run, and what came out.
[How to read it](index.md). Written by `scripts/claims_doc.py` from `experiments/{name}/claims.py`
and `experiments/{name}/results.json`.
"""


def _page(name: str, rows: Sequence[Row]) -> str:
    parts = [
        f"# Claims: {name}\n",
        _OPENING.format(name=name),
        f"![The differences by seed, in units of the effect](../../assets/claims/{name}.svg)\n",
        *(_section(row) for row in rows),
        _machines(name),
    ]
    return "\n".join(part for part in parts if part)


def _section(row: Row) -> str:
    claim = row.claim
    against = f"`{claim.ours}` less `{claim.theirs}`" if claim.theirs else f"`{claim.ours}`"
    means = "; ".join(
        f"`{arm}` {sum(values) / len(values):.3g}"
        for arm in claim.arms
        if (values := column(row.runs, arm, claim.figure).values())
    )
    return f"""## {claim.name}

> {claim.says}

| | |
|---|---|
| source | {claim.source} |
| set-up | {claim.setup} |
| why it could show it | {claim.why} |
| figure | {claim.figure}: {against} |
| means | {means or "-"} |
| {"loss" if claim.keeps else "effect"} that counts | {claim.effect:+g} |
| seeds | {claim.seeds}, by a deviation of {claim.deviation:g}{_deviation(row)} |
| difference | {said(row)}, {_seeds(row)} seeds |
| verdict | **{row.verdict}**: {VERDICTS[row.verdict]} |
| repeat | `python -m experiments claim {claim.name}` |
"""


def _deviation(row: Row) -> str:
    values = list(row.claim.differences(row.runs).values())
    origin = ", a guess" if row.claim.guessed else " in pilots"
    return origin + (f"; it is {statistics.stdev(values):.2g}" if len(values) > 1 else "")


def _machines(name: str) -> str:
    path = results_of(name)
    if not path.is_file():
        return ""
    arms = json.loads(path.read_text(encoding="utf-8"))
    by_machine: dict[str, list[str]] = {}
    for arm, one in arms.items():
        by_machine.setdefault(one["where"], []).append(f"`{arm}`")
    return "Run on:\n\n" + "".join(
        f"- {where}: {', '.join(a)}\n" for where, a in by_machine.items()
    )


# The picture: a line a claim, drawn as text, so that the same figures give the same file.

_LEFT, _WIDE, _LINE, _REACH = 250, 420, 30, 3.0
_STYLE = "font-family='system-ui,sans-serif' font-size='13'"


def picture(rows: Sequence[Row]) -> str:
    """Differences in units of the effect: points are seeds, bars intervals; 1 is the effect."""
    height = _LINE * len(rows) + 60
    parts = [
        (
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_LEFT + _WIDE + 120} {height}'"
            f" {_STYLE} fill='#1f2933'>"
        ),
        f"<rect width='100%' height='{height}' fill='#ffffff'/>",
    ]
    foot = height - 34
    for mark in range(-int(_REACH), int(_REACH) + 1):
        strong, dashes = mark in {0, 1}, " stroke-dasharray='4 3'"
        parts.append(
            f"<line x1='{_x(mark):.1f}' x2='{_x(mark):.1f}' y1='8' y2='{foot}'"
            f" stroke='{'#66727f' if strong else '#e3e6e9'}'"
            f"{dashes if mark == 1 else ''}/>"
            f"<text x='{_x(mark):.1f}' y='{foot + 16}' text-anchor='middle'>{mark}</text>"
        )
    parts.append(
        f"<text x='{_x(0):.1f}' y='{foot + 31}' text-anchor='middle' fill='#66727f'>"
        "what decides at 0, what the claim expects at 1</text>"
    )
    parts += [_drawn(row, 8 + _LINE * n + _LINE / 2) for n, row in enumerate(rows)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _drawn(row: Row, y: float) -> str:
    claim, colour = row.claim, COLOURS[row.verdict]
    parts = [
        f"<text x='{_LEFT - 12}' y='{y + 4:.1f}' text-anchor='end'>{escape(claim.name)}</text>",
        f"<text x='{_LEFT + _WIDE + 12}' y='{y + 4:.1f}' fill='{colour}'>{row.verdict}</text>",
    ]
    for value in claim.differences(row.runs).values():
        x = _x(claim.in_effects(value))
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{colour}' opacity='0.3'/>")
    found = claim.measured(row.runs)
    if found is not None and found.low is not None and found.high is not None:
        ends = sorted((_x(claim.in_effects(found.low)), _x(claim.in_effects(found.high))))
        parts.append(
            f"<line x1='{ends[0]:.1f}' x2='{ends[1]:.1f}' y1='{y:.1f}' y2='{y:.1f}'"
            f" stroke='{colour}' stroke-width='3'/>"
        )
        x = _x(claim.in_effects(found.mean))
        parts.append(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='5' fill='{colour}'/>")
    return "\n".join(parts)


def _x(units: float) -> float:
    """Where so many effects lie; what is beyond the picture lies on its edge."""
    reach = _REACH + 0.2
    return _LEFT + (max(-reach, min(reach, units)) + reach) / (2 * reach) * _WIDE
