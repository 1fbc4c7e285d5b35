"""Declarations of plug-ins: light values, so that a mistake is found before torch is imported.

A package declares one such value under an entry point of the group that its class names (see
registry). Code is named as `package.module:name` and imported when a run needs it.
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
    """What `assay train --explain` prints of an active method under one heading.

    Attributes:
        section: the heading.
        rank: order under the heading, smaller first.
        write: makes the lines.
    """

    section: Section
    rank: int
    write: Callable[[Config], list[str]]


@dataclass(frozen=True, slots=True)
class Earned:
    """What a judged response earns, in words; active methods change it in their order.

    Attributes:
        terms: their sum is R.
        judged: introduces the verifier's name, the source of the first term.
    """

    terms: tuple[str, ...] = ("J",)
    judged: str = "J: what is given by"


@dataclass(frozen=True, slots=True)
class RowNeeds:
    """What rows of the data must have.

    Attributes:
        columns: that are in each row, and not empty; "a|b" for one of two. `prompt` and `reference`
            go by what data.columns says.
        who: needs them, for messages.
        keep: a problem keeps its row's other columns.
    """

    columns: tuple[str, ...] = ("prompt", "reference")
    who: str = "every problem"
    keep: bool = False


PLAIN_ROWS = RowNeeds()


def nothing_wrong(_config: Config) -> str:
    """A check that passes everything."""
    return ""


@dataclass(frozen=True, slots=True)
class TrainingMethod:
    """A mechanism of training: its table under [method], its parts, words and code.

    Attributes:
        name: of its table, `[method.<name>]`.
        settings: a frozen dataclass whose defaults switch the method off.
        rank: order of its hooks and parts among methods, smaller first.
        hooks: class of its hooks, `package.module:Name` (see core/hooks.py); empty for none.
        lines: its words in `--explain`.
        metrics: numbers that it adds to a step's.
        metric_groups: headings for them, with what they are about.
        columns: those of them in the line on the screen.
        earns: changes R; None where `lines` describe the reward.
        check: what is wrong with its settings, in a line; empty for nothing.
        compares: its key, if it compares samples of a prompt and so needs two.
        rows: what its rows must have, in place of a prompt and a reference; None: it changes
            nothing. May raise ConfigError.
        asks: names of verifiers that it asks beside the run's own.
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
    rows: Callable[[Config], RowNeeds | None] = lambda _config: None
    asks: Callable[[Config], tuple[str, ...]] = lambda _config: ()


class _Tabled:
    __slots__ = ()

    name: str
    settings: type[Any] | None

    @property
    def table(self) -> str:
        return self.name.replace("-", "_")

    def own(self, tables: Any) -> Any:
        return getattr(tables, self.table) if self.settings else None


@dataclass(frozen=True, slots=True)
class Selection(_Tabled):
    """A way to choose the next problem, `data.selection.name`.

    Attributes:
        name: kebab-case.
        settings: of its table, `[data.selection.<name>]` with "_" for "-"; None without any.
        make: `package.module:name`, a function of the table, the problems and the data's seed that
            makes the selector (see selection/types.py).
        check: what is wrong with its settings, in a line; empty for nothing.
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
        formula: what is maximised for a token, as `--explain` prints it: r is the ratio of its
            probabilities, A its advantage, w its weight.
        function: `package.module:name`, from core.objective.Surrogate to
            algos.policy_losses.TokenLosses.
        settings: a frozen dataclass of defaults for its own table, `[method.<name>]` with "_" for
            "-"; None where method.loss suffices.
        part: what `ablate` may switch off; None for the plainest.
        check: what is wrong with its settings, in a line; empty for nothing.
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
        credit: its input. group: rewards of a prompt's samples. critic: values of tokens. tokens:
            what the rollout measured for them.
        lines: its formula, as `--explain` prints it.
        function: `package.module:name`. group: rewards (P, G), `scale` and `tasks_P` to advantages
            (P, G) (see algos/advantages.py). tokens: the batch to advantages (B, T). critic: none.
        part: its entry in the table of parts.
        alone: values of `method.advantage.scale` with which one sample of a prompt is enough.
    """

    group: ClassVar[str] = "assay.estimators"

    name: str
    credit: Literal["group", "critic", "tokens"]
    lines: Callable[[Config], list[str]]
    part: Part
    function: str = ""
    alone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Backend:
    """An engine of generation, `rollout.backend`.

    Attributes:
        name: kebab-case.
        make: `package.module:name`, a function from (engines.engine.EngineHost, Config) to an
            engines.engine.Engine.
        takes: capabilities that a run lacks with it, each with the reason (see capabilities.py).
        logprobs: of drawn tokens: processed, by the distribution that was sampled; raw, before
            temperature and filters; none.
        correction: default of `method.loss.importance_correction`.
        check: what is wrong with its settings, in a line; empty for nothing.
    """

    group: ClassVar[str] = "assay.engines"

    name: str
    make: str
    takes: Mapping[str, str] = field(default_factory=dict)
    logprobs: Literal["processed", "raw", "none"] = "processed"
    correction: str = "none"
    check: Callable[[Config], str] = nothing_wrong
