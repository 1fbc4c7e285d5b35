"""A file of profiles as frozen values. `reading` makes them, `binding` checks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from assay.reward_server.domain import ParameterValue, VerifierExample, VerifierItem

CARRIES: Mapping[str, Callable[[VerifierItem], bool]] = {
    "tests": lambda item: item.tests is not None,
    "answers": lambda item: bool(item.references),
    "data": lambda item: item.data is not None,
    "anchor": lambda item: item.anchor is not None,
    "prompt": lambda item: bool(item.prompt),
    "group": lambda item: bool(item.group_id),
    "turns": lambda item: bool(item.candidate.turns),
    "token-count": lambda item: item.response_token_count is not None,
    "truncated": lambda item: item.truncated,
}
"""What an item may carry, by the condition's word for it."""

REFERENCES = frozenset({"tests", "answers", "data", "anchor"})
"""The words that stand for kinds of reference."""

TASK_PREFIX = "task:"
NOT_PREFIX = "not "


@dataclass(frozen=True, slots=True)
class Condition:
    """What an item must carry: all of these words.

    Attributes:
        words: of `CARRIES`, or "task:NAME"; each may begin with "not ". None: always holds.
    """

    words: tuple[str, ...] = ()

    def holds(self, item: VerifierItem) -> bool:
        """Whether the item carries all of it."""
        return all(_carries(item, word) for word in self.words)

    def asks_for_reference(self) -> bool:
        """Whether only an item with a reference can fulfil it."""
        return any(word in REFERENCES for word in self.words)

    def __str__(self) -> str:
        return " and ".join(self.words) or "any item"


def _carries(item: VerifierItem, word: str) -> bool:
    name = word.removeprefix(NOT_PREFIX)
    if name.startswith(TASK_PREFIX):
        holds = item.task == name.removeprefix(TASK_PREFIX)
    else:
        holds = CARRIES[name](item)
    return holds != word.startswith(NOT_PREFIX)


@dataclass(frozen=True, slots=True)
class When:
    """Which verdict another part must have got, or how much reward.

    Attributes:
        component: the other part, a component or a gate with a verifier.
        verdicts: the verdicts that are meant.
        negated: any verdict but these.
        at_least: the least reward of the other part's verifier; None for any.
    """

    component: str
    verdicts: frozenset[str] = frozenset()
    negated: bool = False
    at_least: float | None = None

    def holds(self, verdict: str, reward: float) -> bool:
        """Whether that verdict is one of those meant, or that reward is enough."""
        if self.at_least is not None:
            return reward >= self.at_least
        return (verdict in self.verdicts) != self.negated


@dataclass(frozen=True, slots=True)
class Clip:
    """Bounds of a number, each of which may be infinite."""

    low: float
    high: float

    def __call__(self, value: float) -> float:
        """The value within the bounds."""
        return min(max(value, self.low), self.high)


@dataclass(frozen=True, slots=True)
class Member:
    """A verifier with the parameters that a profile gives it."""

    verifier: str
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProfileGate:
    """What has to hold before anything else is judged.

    It asks a verifier or looks for suspicions. When it does not pass, it either ends the judging
    with `reward`, or takes `penalty` off and lets the rest be judged.

    Attributes:
        name: kebab-case, unique among the parts of the profile.
        member: the verifier that is asked; None where suspicions are looked for.
        passing: verdicts that pass.
        at_least: the least reward of the verifier that passes.
        flags: suspicions that do not pass; "any" stands for all.
        reward: of the whole when it does not pass.
        penalty: taken off when it does not pass.
        verdict: of the whole when it ends the judging.
    """

    name: str
    member: Member | None
    passing: frozenset[str] = frozenset()
    at_least: float | None = None
    flags: frozenset[str] = frozenset()
    reward: float | None = None
    penalty: float | None = None
    verdict: str = "gated"


@dataclass(frozen=True, slots=True)
class AppealRule:
    """When a second verifier is asked about a component's verdict; what it says counts.

    Attributes:
        member: the second verifier.
        on: verdicts of the first that are always appealed.
        share: the chance that an item with another verdict is drawn, 0 to 1.
        accepts_at: rewards of at least this accept, before shaping. For estimates alone.
    """

    member: Member
    on: frozenset[str]
    share: float = 0.0
    accepts_at: float = 0.5

    @property
    def draws(self) -> bool:
        """Whether chance decides on some items."""
        return 0.0 < self.share < 1.0

    def probability(self, verdict: str) -> float:
        """The chance that an item with this first verdict is asked about."""
        return 1.0 if verdict in self.on else self.share


@dataclass(frozen=True, slots=True)
class ProfilePart:
    """One component: it adds weight * clip(scale * reward + offset) of its verifier's reward.

    Where it has factors, that is multiplied by their own shaped rewards, without their weights.

    Attributes:
        name: kebab-case, unique among the parts of the profile.
        member: the verifier.
        weight: finite; 0 for a part that is only reported.
        scale: finite.
        offset: finite.
        clip: bounds, before the weight.
        when: which verdict another part must have got.
        only_if: what the item must carry.
        optional: its fault leaves it out, and the whole is still judged; only with weight 0.
        appeal: when a second verifier is asked; None for never.
        times: components that it is multiplied by; left out where one of them is.
    """

    name: str
    member: Member
    weight: float = 1.0
    scale: float = 1.0
    offset: float = 0.0
    clip: Clip | None = None
    when: When | None = None
    only_if: Condition = Condition()
    optional: bool = False
    appeal: AppealRule | None = None
    times: tuple[str, ...] = ()

    @property
    def second(self) -> str:
        """The name of its second verifier among the parts."""
        return f"{self.name}.appeal"

    @property
    def asked(self) -> tuple[str, ...]:
        """The names of those who may be asked about it."""
        return (self.name, self.second) if self.appeal else (self.name,)

    @property
    def is_shaped(self) -> bool:
        """Whether its score differs from the verifier's reward."""
        is_moved = self.scale != 1.0 or self.offset != 0.0 or self.clip is not None
        return is_moved or bool(self.times)

    def shaped(self, reward: float) -> float:
        """The score that is weighted, before its factors."""
        value = self.scale * reward + self.offset
        return self.clip(value) if self.clip else value


@dataclass(frozen=True, slots=True)
class Route:
    """Which component judges an item that carries this."""

    condition: Condition
    component: str


@dataclass(frozen=True, slots=True)
class Knob:
    """A parameter of the profile.

    Attributes:
        name: snake_case.
        targets: part and parameter that it sets, at least one.
        default: None for that of the first target.
        description: None for that of the first target.
    """

    name: str
    targets: tuple[tuple[str, str], ...]
    default: ParameterValue | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class CanaryRow:
    """A row with a known verdict.

    Attributes:
        example: the item, and the verdict that is right.
        before: what the judge said of it at reference, look by look.
    """

    example: VerifierExample
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileCanary:
    """Rows with known verdicts that are judged beside live items.

    Attributes:
        file: the rows' file, from the profiles' folder.
        share: of live items that bring one along, above 0.
        rows: of the file; empty until it is read.
    """

    file: str
    share: float
    rows: tuple[CanaryRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Definition:
    """One profile of a file.

    Attributes:
        source: the file.
        name: kebab-case.
        description: one sentence.
        tasks: tasks that are routed to it.
        gates: in the order in which they are asked.
        parts: in the order in which they are reported; at least one.
        routes: the first that applies chooses one of the parts that routes name.
        main: the part that gives the verdict where there are no routes.
        clip: bounds of the sum.
        knobs: parameters.
        samples: for the self-test.
        digest: of all content that bears on judging.
        spans: the part whose spans the judgement has; empty for the one that gives the verdict.
        canary: rows with known verdicts, and how often one is judged; None for none.
    """

    source: str
    name: str
    description: str
    tasks: tuple[str, ...]
    gates: tuple[ProfileGate, ...]
    parts: tuple[ProfilePart, ...]
    routes: tuple[Route, ...]
    main: str
    clip: Clip | None
    knobs: tuple[Knob, ...]
    samples: tuple[VerifierExample, ...]
    digest: str
    spans: str = ""
    canary: ProfileCanary | None = None
