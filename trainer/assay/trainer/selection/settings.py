"""Settings of what to train on: `data.selection`, `algorithm.filter`, `algorithm.replay`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from assay.clients.toml_config import STRICT

Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
BelowHalf = Annotated[float, Field(ge=0, lt=0.5)]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]

Name = Literal[
    "uniform", "mopps", "vade", "dump", "dads", "curriculum", "hard-focus", "vas", "pre-ppo", "limr"
]


@dataclass(frozen=True, slots=True)
class MoppsConfig:
    """MoPPS (arXiv 2507.04632): problems whose success is expected near a target."""

    __pydantic_config__ = STRICT

    rule: Literal["nearest", "threshold"] = "nearest"
    """nearest: those nearest to `target` first. threshold: those from `low` to `high` first, in
    random order, then the nearest to that range."""
    target: Share = 0.5
    low: Share = 0.3
    high: Share = 0.7
    pool: Count = 0
    """Candidates drawn at random that are looked at first; 0 for all problems."""
    decay: PositiveShare = 1.0
    """What is kept of the evidence at a visit; 1 forgets nothing, the code's default."""


@dataclass(frozen=True, slots=True)
class VadeConfig:
    """VADE: problems with the largest variance of success, and evidence that ages."""

    __pydantic_config__ = STRICT

    fast: PositiveShare = 0.5
    """Kept of a problem's evidence when it is visited again."""
    slow: PositiveShare = 0.99
    """Kept of that of all others, at each step."""


@dataclass(frozen=True, slots=True)
class DumpConfig:
    """DUMP (arXiv 2504.09710): tasks by an upper confidence bound of the advantage's size."""

    __pydantic_config__ = STRICT

    window: AtLeastOne = 300
    """Responses of a task that its mean is over (300 in the code)."""
    tau: Above0 = 0.1
    """Temperature of the softmax (0.1 in the code)."""


@dataclass(frozen=True, slots=True)
class DadsConfig:
    """RuleReasoner's sampling (arXiv 2506.08672): tasks that are below their target."""

    __pydantic_config__ = STRICT

    target: Finite = 1.0
    """The reward to reach."""
    tau: Above0 = 0.5
    decay: PositiveShare = 0.9
    """What a step's rewards weigh of those of the step after it."""


@dataclass(frozen=True, slots=True)
class CurriculumConfig:
    """Some tasks first, then all as the data has them (arXiv 2503.22230)."""

    __pydantic_config__ = STRICT

    tasks: tuple[str, ...] = ("math", "code")
    """Those that come first, by the rows' `task`."""
    first_share: Share = 1.0
    """Of the draws, at the first step."""
    until_step: AtLeastOne = 1000
    """From here on their share is that of the data; until then it goes there in a straight line."""


@dataclass(frozen=True, slots=True)
class HardFocusConfig:
    """DRIVE's two stages: all problems evenly, then the hardest."""

    __pydantic_config__ = STRICT

    after_steps: AtLeastOne = 100
    """Steps of the first stage."""
    every: AtLeastOne = 100
    """Steps of the second stage between two looks."""
    keep: PositiveShare = 0.5
    """Of the problems that are left, the hardest that a look keeps."""
    least: AtLeastOne = 64
    """No look leaves fewer."""


@dataclass(frozen=True, slots=True)
class VasConfig:
    """MMR1's variance-aware sampling (arXiv 2509.21268)."""

    __pydantic_config__ = STRICT

    share: Share = 0.5
    """Of the draws, that go by the score; the others are uniform."""
    outcome: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.8
    """Weight of the variance of success."""
    diversity: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.2
    """Weight of how much the responses differ."""


@dataclass(frozen=True, slots=True)
class PrePpoConfig:
    """Pre-PPO (arXiv 2503.22230): what the policy finds hardest before it learns."""

    __pydantic_config__ = STRICT

    fraction: PositiveShare = 0.1
    """Of the problems; 0.1 was best of 0.1, 0.2 and 0.5."""
    samples: AtLeastOne = 1
    """Responses to each problem that are judged once, before the training."""
    keep_tasks: tuple[str, ...] = ()
    """Tasks that stay whole and are not scored: the data of before."""


@dataclass(frozen=True, slots=True)
class LimrConfig:
    """LIMR: problems that an earlier run learnt as it did the average."""

    __pydantic_config__ = STRICT

    records: str = ""
    """samples.jsonl of an earlier run with run.samples_every = 1, or its folder."""
    threshold: Annotated[float, Field(lt=1, allow_inf_nan=False)] = 0.6
    """Problems above it stay."""


@dataclass(frozen=True, slots=True)
class HintsConfig:
    """GHPO (arXiv 2507.10628): the beginning of the solution where nothing was right."""

    __pydantic_config__ = STRICT

    enabled: bool = False
    """Needs data.columns.solution. Goes with every `name`."""
    shares: Annotated[tuple[PositiveShare, ...], Field(min_length=1)] = (0.25, 0.5, 0.75)
    """Of the solution's words, that a problem shows the first time it comes again, the second..."""


@dataclass(frozen=True, slots=True)
class SelectionConfig:
    """Which problem comes next."""

    __pydantic_config__ = STRICT

    name: Name = "uniform"
    """uniform: pass after pass over all. Each of the others has a section of its name."""
    mopps: MoppsConfig = field(default_factory=MoppsConfig)
    vade: VadeConfig = field(default_factory=VadeConfig)
    dump: DumpConfig = field(default_factory=DumpConfig)
    dads: DadsConfig = field(default_factory=DadsConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    hard_focus: HardFocusConfig = field(default_factory=HardFocusConfig)
    vas: VasConfig = field(default_factory=VasConfig)
    pre_ppo: PrePpoConfig = field(default_factory=PrePpoConfig)
    limr: LimrConfig = field(default_factory=LimrConfig)
    hints: HintsConfig = field(default_factory=HintsConfig)


@dataclass(frozen=True, slots=True)
class FilterConfig:
    """Which judged responses train; those left out are as if they had not been drawn."""

    __pydantic_config__ = STRICT

    prof: Literal["none", "both", "correct"] = "none"
    """PROF (arXiv 2509.03403) on groups of correct and incorrect responses: the correct with the
    worst steps go and the incorrect with the best (both), or the correct by their steps and the
    incorrect by the order of their drawing (correct). Needs spans: steps that were judged."""
    prof_keep: Count = 0
    """Responses of a group that stay; 0 for half of rollout.group_size."""
    min_group_std: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Groups whose rewards deviate by less are left out (0.05 in ReST-RL's code); 0 for none."""
    void: Literal["none", "text", "verifier"] = "none"
    """SimpleTIR's filter: a response, or a dialogue with an attempt, that has neither a block of
    code nor an answer is in no loss; its reward counts for its group. An answer is what
    `void_answer` finds (text), or what the verifier extracted (verifier)."""
    void_answer: str = r"\\boxed\{"
    """A regular expression that finds an answer in a text."""
    void_code: str = r"(?s)```[^\n`]*\n.*?```"
    """A regular expression that finds a block of code."""


@dataclass(frozen=True, slots=True)
class ReplayConfig:
    """VL-Rethinker's selective sample replay."""

    __pydantic_config__ = STRICT

    groups: Count = 0
    """The latest groups with rewards that differ, kept to take the place of groups whose rewards do
    not; 0 for no replay."""
    alpha: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """A group comes with a chance in proportion to its mean |advantage| ^ alpha."""


@dataclass(frozen=True, slots=True)
class RecompositionConfig:
    """RoRecomp (arXiv 2509.25958): short correct and long incorrect responses first.

    No number of the paper's was at hand; all are ours.
    """

    __pydantic_config__ = STRICT

    groups: Count = 0
    """The latest groups whose remainders wait; 0 for no recomposition."""
    share: PositiveShare = 0.5
    """Of a group's correct and of its other responses, that train at once."""
    first: BelowHalf = 0.25
    """What part of the first batch is remainders of earlier steps, in groups, rounded."""
    last: BelowHalf = 0.25
    """The same from step `steps` on; between them it follows half a cosine."""
    steps: AtLeastOne = 100
