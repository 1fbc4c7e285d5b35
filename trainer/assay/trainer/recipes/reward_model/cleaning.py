"""Which rows a judge does not learn from, and why: each rule counts what it leaves out. Pure.

Two rules are Skywork-Reward's (arXiv 2410.18451, and its data card):

    contaminated    prompts that overlap with a benchmark's; they removed 4,957 pairs for "a
                    significant n-gram overlap" with RewardBench. Ours: what is significant, half of
                    a prompt's words in common runs of 8
    judged          pairs whose better response another judge does not score higher, as they did
                    with WildGuard's. Ours: a least margin above 0

Their third, the best by ArmoRM's scores, is not here. Ours: `short` responses; a `tie` of the row's
own scores; a `duplicate`; `contradicting` labels of the same texts, which all go. Rules apply in
this order, and a row counts for one. Texts are compared without regard to space and case.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from assay.clients.rows.points import CritiqueRow, PointRow
from assay.clients.rows.preferences import PairRow, Said, StepRow
from assay.trainer.recipes.reward_model.config import CleanConfig

RUN_WORDS = 8
OVERLAP = 0.5
_WORD = re.compile(r"\w+")

R = TypeVar("R", PairRow, PointRow, CritiqueRow, StepRow)
Run = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadRow(Generic[R]):
    """A row, where it stood, its own scores, and another judge's margin, if any."""

    row: R
    where: str = ""
    scores: tuple[float, float] | None = None
    margin: float | None = None


def cleaned(
    rows: Sequence[ReadRow[R]], rules: CleanConfig, benchmarks: Iterable[Sequence[Said]] = ()
) -> tuple[list[R], Counter[str]]:
    """The rows that stay, in order, and how many each rule leaves out."""
    runs = OverlapIndex(benchmarks)
    checks: list[tuple[str, Callable[[ReadRow[R]], bool]]] = []
    if rules.against:
        checks.append(("contaminated", lambda one: runs.holds(one.row.prompt)))
    if rules.judged:
        least = rules.least_margin
        checks.append(("judged", lambda one: one.margin is not None and one.margin <= least))
    if rules.least_chars:
        checks.append(("short", lambda one: _shortest(one.row) < rules.least_chars))
    if rules.ties:
        checks.append(
            ("tie", lambda one: one.scores is not None and one.scores[0] == one.scores[1])
        )
    left_out: Counter[str] = Counter()
    kept: list[R] = []
    for one in rows:
        why = next((name for name, holds in checks if holds(one)), None)
        if why is None:
            kept.append(one.row)
        else:
            left_out[why] += 1
    if rules.duplicates:
        unique = list({(_texts(row), _label(row)): row for row in reversed(kept)}.values())[::-1]
        left_out["duplicate"] += len(kept) - len(unique)
        kept = unique
    if rules.contradictions:
        agreeing = _agreeing(kept)
        left_out["contradicting"] += len(kept) - len(agreeing)
        kept = agreeing
    return kept, +left_out


class OverlapIndex:
    """Prompts of benchmarks, by their runs of `RUN_WORDS` words."""

    def __init__(self, prompts: Iterable[Sequence[Said]]) -> None:
        self._runs: set[Run] = set()
        self._whole: set[Run] = set()
        for prompt in prompts:
            words = _words(prompt)
            self._whole.add(words)
            self._runs.update(_runs(words))

    def holds(self, prompt: Sequence[Said]) -> bool:
        """Whether so many of a prompt's words stand in common runs, or all its words are equal."""
        words = _words(prompt)
        if words in self._whole:
            return bool(words)
        common = {
            place
            for start, run in enumerate(_runs(words))
            if run in self._runs
            for place in range(start, start + RUN_WORDS)
        }
        return bool(words) and len(common) >= OVERLAP * len(words)


def _words(prompt: Sequence[Said]) -> Run:
    asked = " ".join(said.content for said in prompt if said.role == "user")
    return tuple(_WORD.findall(asked.casefold()))


def _runs(words: Run) -> list[Run]:
    return [words[n : n + RUN_WORDS] for n in range(len(words) - RUN_WORDS + 1)]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _shortest(row: Any) -> int:
    texts = (row.chosen, row.rejected) if isinstance(row, PairRow) else (row.response,)
    return min(len(text.strip()) for text in texts)


def _texts(row: Any) -> Run:
    """The prompt and the responses, those of a pair in an order of their own."""
    asked = _plain(" ".join(said.content for said in row.prompt))
    if isinstance(row, PairRow):
        return (asked, *sorted((_plain(row.chosen), _plain(row.rejected))))
    return (asked, _plain(row.response))


def _label(row: Any) -> Any:
    """What the row says of its texts."""
    match row:
        case PairRow():
            return _plain(row.chosen)
        case PointRow():
            return (row.right, row.ground_truth)
        case CritiqueRow():
            return row.critique
        case _:
            return row.labels


def _agreeing(rows: Sequence[R]) -> list[R]:
    """Rows whose texts have one label; several critiques of one response are no contradiction."""
    labels: defaultdict[Run, set[Any]] = defaultdict(set)
    for row in rows:
        if not isinstance(row, CritiqueRow):
            labels[_texts(row)].add(_label(row))
    return [row for row in rows if len(labels.get(_texts(row), ())) < 2]
