"""Verifiers and a driver for tests of profiles: no server, no processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from assay.reward_server import border
from assay.reward_server.domain import (
    Candidate,
    Component,
    Fault,
    Judgement,
    Outcome,
    ParameterSpec,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.profiles import Profile, Subtask
from assay.reward_server.profiles.binding import bind
from assay.reward_server.profiles.reading import read_profiles


class Fake(Verifier):
    """Says what it is; its judgements come from the driver."""

    def __init__(self, name: str, **changes: object) -> None:
        spec = VerifierSpec(
            name=name,
            version="1",
            description="A fake.",
            tasks=(),
            min_reward=0.0,
            max_reward=1.0,
            verdicts=("correct", "incorrect", "unparsed"),
            needs_reference=False,
            isolation="inline",
        )
        self._spec = replace(spec, **changes)  # type: ignore[arg-type]

    @property
    def spec(self) -> VerifierSpec:
        return self._spec

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        return ()

    def judge(self, item: VerifierItem) -> Judgement:
        raise AssertionError("the driver answers")


PARAMETERS = (
    ParameterSpec("limit", "int", 100, "A limit.", minimum=1, maximum=1000),
    ParameterSpec("mode", "string", "soft", "A mode.", allowed_values=("soft", "hard")),
    ParameterSpec("depth", "int", 100, "A depth.", minimum=10, maximum=5000),
)
FAKES: Mapping[str, Verifier] = {
    one.spec.name: one
    for one in (
        Fake("answer", needs_reference=True),
        Fake("form", verdicts=("well-formed", "malformed")),
        Fake("length", min_reward=-1.0, max_reward=0.0, parameters=PARAMETERS),
        Fake("needy", parameters=(ParameterSpec("key", "string", None, "Required."),)),
        Fake("suite", takes_tests=True, needs_reference=True, isolation="remote"),
        Fake("group", needs_group=True),
        Fake("dice", deterministic=False, cacheable=False),
    )
}


def make(text: str, fakes: Mapping[str, Verifier] = FAKES) -> Profile:
    """The one profile of a text of TOML."""
    [definition] = read_profiles(text, "file.toml")
    return Profile(bind(definition, fakes.get, fakes))


def right(reward: float = 1.0, verdict: str = "correct", **more: object) -> Judgement:
    """A judgement."""
    judgement = Judgement(reward, verdict, (Component("part", reward),))
    return replace(judgement, **more)  # type: ignore[arg-type]


def wrong(reward: float = 0.0, verdict: str = "incorrect", **more: object) -> Judgement:
    """Another one."""
    return right(reward, verdict, **more)


def an_item(profile: Profile, response: str = "5", **more: object) -> VerifierItem:
    """An item with a reference and the profile's parameters."""
    given = more.pop("parameters", {})
    item = VerifierItem(Candidate(response), references=("5",))
    item = replace(item, **more)  # type: ignore[arg-type]
    return replace(item, parameters=profile.spec.complete(given))  # type: ignore[arg-type]


@dataclass
class Log:
    """What a run asked, stage by stage."""

    stages: list[tuple[str, ...]] = field(default_factory=list)
    tasks: dict[str, Subtask] = field(default_factory=dict)


def drive(
    profile: Profile,
    item: VerifierItem,
    answers: Mapping[str, Outcome] | Callable[[Subtask], Outcome],
    log: Log | None = None,
) -> Outcome:
    """Runs a profile as the server does; the border checks what comes out."""
    log = log or Log()
    steps = profile.run(item)
    outcomes: tuple[Outcome, ...] | None = None
    while True:
        stage, outcome = border.step(profile.spec, steps, outcomes)
        if stage is None:
            assert outcome is not None
            return outcome
        log.stages.append(tuple(task.component for task in stage))
        log.tasks.update({task.component: task for task in stage})
        asked = answers if callable(answers) else lambda task: answers[task.component]
        outcomes = tuple(asked(task) for task in stage)


def judged(
    profile: Profile, item: VerifierItem, answers: Mapping[str, Outcome], log: Log | None = None
) -> Judgement:
    """The judgement of a run that must have one."""
    outcome = drive(profile, item, answers, log)
    assert not isinstance(outcome, Fault), outcome
    return outcome


def scores(judgement: Judgement) -> dict[str, tuple[float, float]]:
    """Score and weight by component."""
    return {part.name: (part.score, part.weight) for part in judgement.components}
