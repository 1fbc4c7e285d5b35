"""Rows, probes, and what an engine is. Pure."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from assay.audit.answers.truth import Truth, mentions
from assay.audit.dress import Dress

_FEW_ROWS = 30
Wants = Literal["accept", "refuse"]
Severity = Literal["hole", "warning", "recall"]


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the data.

    Attributes:
        id: its own, or its number.
        right: responses that are known to be right, such as a worked solution or a program.
        wrong: responses that are known to be wrong.
        tests: those of a program, in a shape of `assay.clients.rows.tests`; None for no program.
        data: the row as it stands.
    """

    id: str
    prompt: str
    truth: Truth
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    tests: Any = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProbeClass:
    """A class of probes.

    Attributes:
        name: kebab-case.
        wants: what must come of each.
        severity: what an unwanted verdict is.
        says: what they are, in a sentence.
        cure: what to do about an unwanted verdict.
        check: the id in the report; empty for one made of the name.
        likely: a probe may be right by a rare chance, so that what is accepted counts where one
            rule's (their note) are, in several rows.
    """

    name: str
    wants: Wants
    severity: Severity
    says: str
    cure: str
    check: str = ""
    likely: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """A response to a row, and what must come of it.

    Attributes:
        row: its place among the rows.
        kind: the class's name.
        note: how it was made, which is why it must be so.
        dress: the name of the answer's form; empty for none.
        occasion: which time it is asked.
    """

    row: int
    kind: str
    response: str
    wants: Wants
    note: str = ""
    dress: str = ""
    occasion: int = 0

    @property
    def key(self) -> str:
        """The same for the same question, in every run."""
        text = f"{self.row}\0{self.kind}\0{self.wants}\0{self.occasion}\0{self.response}"
        return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a grader said of a probe: a reward, or why there is none.

    Attributes:
        reward: None for a fault.
        fault: the reason; empty for none.
        message: of the fault.
    """

    reward: float | None
    fault: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """Which rewards accept: those of at least `share` of the way from `low` to `high`."""

    low: float = 0.0
    high: float = 1.0
    share: float = 0.5

    @property
    def bound(self) -> float:
        """The least reward that accepts."""
        return self.low + self.share * (self.high - self.low)

    def accepts(self, said: Ruling) -> bool:
        """Whether a reward accepts; a fault does not."""
        return said.reward is not None and said.reward >= self.bound - 1e-9


Execute = Callable[[Sequence[str]], Sequence[str | None]]
"""Runs programs and gives what each printed; None where it did not end well."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What an engine makes probes of.

    Attributes:
        rows: of the data.
        dresses: forms of an answer that the grader reads, the best first.
        reads: the names of all forms in which it accepted a right answer.
        scale: which rewards accept.
        words: texts that stand in the grader's own source, for those who search.
        lengths: numbers that stand there.
        tolerance: how far a number may be off and be right, relative.
        calls: how many probes this engine may ask.
        execute: runs programs of Python in a sandbox. None: there is none.
        seed: of what is drawn.
    """

    rows: Sequence[AuditRow]
    dresses: Sequence[Dress]
    reads: frozenset[str] = frozenset()
    scale: Scale = field(default_factory=Scale)
    words: Sequence[str] = ()
    lengths: Sequence[int] = ()
    tolerance: float = 0.0
    calls: int = 10_000
    execute: Execute | None = None
    seed: int = 0

    def draws(self, *names: object) -> random.Random:
        """Random numbers of one purpose."""
        return random.Random(f"{self.seed}/{'/'.join(map(str, names))}")  # noqa: S311 - no secrets

    @property
    def needs_mark(self) -> bool:
        """Whether the grader reads what stands in a mark, and nothing else."""
        return bool(self.reads) and self.reads.isdisjoint(("plain", "prose", "line", "bold"))

    def some(self, texts: Sequence[str], count: int, draws: random.Random) -> list[str]:
        """So many of some texts for one row, or all where there are few rows to share them."""
        few = len(self.rows) < _FEW_ROWS
        return draws.sample(texts, len(texts) if few else min(count, len(texts)))

    def unmentioned(self, row: int, text: str) -> bool:
        """Whether a text is wrong for a row because it holds no right answer."""
        return not mentions(text, self.rows[row].truth)


Asking = Generator[list[Probe], list[Ruling], None]
"""Yields probes and is sent what was said of them, in their order; it may be closed early."""


class Prober(Protocol):
    """An engine: an entry point of the group `assay.audits` is a function that makes one."""

    @property
    def name(self) -> str:
        """Kebab-case."""

    @property
    def classes(self) -> Sequence[ProbeClass]:
        """The classes of its probes."""

    def ask(self, subject: Subject) -> Asking:
        """Asks about the rows."""
