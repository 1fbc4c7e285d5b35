"""What may be plugged in, as it is declared: light values, so that a mistake is told at once.

Whoever brings a method, a selector, a loss or an estimator brings one such value, under an entry
point of the group that its class names (see registry). The code behind it is named by a text,
`package.module:name`, and imported when a run needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from assay.trainer.settings.metric import Column, Metric
from assay.trainer.settings.part import Part

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config

Section = Literal[
    "Sampling", "Turns", "Reward", "Advantage", "Critic", "Verifier", "Objective", "Optimiser"
]
SECTIONS: tuple[Section, ...] = (
    "Sampling", "Turns", "Reward", "Advantage", "Critic", "Verifier", "Objective", "Optimiser",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lines:
    """What `assay train --explain` says of a method that is on, under one heading.

    Attributes:
        section: the heading.
        rank: their place among the lines of that heading, smaller first.
        write: the lines that settings make; none where there is nothing to say.
    """

    section: Section
    rank: int
    write: Callable[[Config], list[str]]


@dataclass(frozen=True, slots=True)
class Earned:
    """What a judged response earns, in words; methods that are on change it in their order.

    Attributes:
        terms: their sum is R.
        judged: where the first of them comes from; the verifier's name follows.
    """

    terms: tuple[str, ...] = ("J",)
    judged: str = "J: what is given by"


def nothing_wrong(_config: Config) -> str:
    """For what goes with everything."""
    return ""


@dataclass(frozen=True, slots=True)
class TrainingMethod:
    """A mechanism of training: its table under [method], its parts, its words and its code.

    Attributes:
        name: of its table, `[method.<name>]`.
        settings: a frozen dataclass of which every field has a default, and of which the defaults
            switch the method off.
        is_on: whether settings have it.
        rank: the place of its hooks and parts among those of others, smaller first.
        hooks: the class of its hooks, `package.module:Name` (see core/hooks.py); empty for a method
            that is all settings.
        parts: what `ablate` may switch off.
        lines: what is said of it where it is on.
        metrics: the numbers that it adds to those of a step.
        metric_groups: headings of its own for them, with what they are about.
        columns: those of them that the line on the screen shows.
        earns: what it makes of R; None where its own lines say what earns.
        check: what its settings break among themselves, in a line; empty where nothing.
        compares: its key, where it compares the samples of a prompt, of which there must be two.
    """

    group: ClassVar[str] = "assay.methods"

    name: str
    settings: type[Any]
    is_on: Callable[[Config], bool]
    rank: int
    hooks: str = ""
    parts: tuple[Part, ...] = ()
    lines: tuple[Lines, ...] = ()
    metrics: tuple[Metric, ...] = ()
    metric_groups: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    earns: Callable[[Config, Earned], Earned | None] = lambda _config, earned: earned
    check: Callable[[Config], str] = nothing_wrong
    compares: str = ""


class _Tabled:
    """What may have a table of settings of its own."""

    __slots__ = ()

    name: str
    settings: type[Any] | None

    @property
    def table(self) -> str:
        """The name of its table."""
        return self.name.replace("-", "_")

    def own(self, tables: Any) -> Any:
        """Its table among others; None where it has none."""
        return getattr(tables, self.table) if self.settings else None


@dataclass(frozen=True, slots=True)
class Selection(_Tabled):
    """A way to choose the next problem, `data.selection.name`.

    Attributes:
        name: kebab-case.
        settings: of its table, `[data.selection.<name>]` with "_" for "-"; None without any.
        make: the function that makes the selector, `package.module:name`: it takes the table, the
            problems and the seed of the data (see selection/types.py).
        part: what `ablate` may switch off.
        check: what its settings break, in a line; empty where nothing.
    """

    group: ClassVar[str] = "assay.selectors"

    name: str
    settings: type[Any] | None
    make: str
    part: Part
    check: Callable[[Config], str] = nothing_wrong


@dataclass(frozen=True, slots=True)
class Loss(_Tabled):
    """A surrogate whose mean over tokens is minimised, `method.loss.objective`.

    Attributes:
        name: kebab-case.
        formula: of what is maximised for a token, as `--explain` prints it: r is the ratio of its
            probabilities, A its advantage, w its weight.
        function: `package.module:name`: it takes a core.objective.Surrogate and
            gives algos.policy_losses.TokenLosses.
        settings: of its table, `[method.<name>]` with "_" for "-", where method.loss does not hold
            all that it needs; a frozen dataclass with a default for every field, else None.
        part: what `ablate` may switch off; None for the plainest.
        check: what its settings break, in a line; empty where nothing.
    """

    group: ClassVar[str] = "assay.losses"

    name: str
    formula: Callable[[Config], str]
    function: str
    settings: type[Any] | None = None
    part: Part | None = None
    check: Callable[[Config], str] = nothing_wrong


@dataclass(frozen=True, slots=True)
class Estimator:
    """How rewards become advantages, `method.advantage.estimator`.

    Attributes:
        name: kebab-case.
        credit: what it goes by. group: the rewards of a prompt's samples. critic: values of tokens.
            tokens: what the rollout found out about them.
        lines: its formula, as `--explain` prints it.
        function: `package.module:name`. group: rewards (P, G), `scale` and `tasks_P` to advantages
            (P, G) (see algos/advantages.py). tokens: the batch to advantages (B, T). critic: none.
        part: what `ablate` may switch off, or cannot.
    """

    group: ClassVar[str] = "assay.estimators"

    name: str
    credit: Literal["group", "critic", "tokens"]
    lines: Callable[[Config], list[str]]
    part: Part
    function: str = ""


@dataclass(frozen=True, slots=True)
class Backend:
    """Who generates, `rollout.backend`.

    Attributes:
        name: kebab-case.
        make: `package.module:name`, a function from (engines.engine.EngineHost, Config) to an
            engines.engine.Engine.
        takes: capabilities that a run with it has not, each with the reason (see capabilities.py).
        logprobs: which log-probabilities it tells of the tokens that it draws: processed, those of
            the distribution that they were drawn from; raw, before temperature and filters; none.
        correction: `method.loss.importance_correction` of a run with it that names none.
        check: what its settings break, in a line; empty where nothing.
    """

    group: ClassVar[str] = "assay.engines"

    name: str
    make: str
    takes: Mapping[str, str] = field(default_factory=dict)
    logprobs: Literal["processed", "raw", "none"] = "processed"
    correction: str = "none"
    check: Callable[[Config], str] = nothing_wrong
