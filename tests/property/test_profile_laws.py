"""Laws of profiles: for any composition, and whatever its parts answer."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from assay.reward_server.domain import (
    Candidate,
    Component,
    Fault,
    Judgement,
    Outcome,
    Verifier,
    VerifierItem,
)
from assay.reward_server.profiles import Profile, Subtask
from assay.reward_server.profiles.binding import bind
from assay.reward_server.profiles.model import (
    Clip,
    Condition,
    Definition,
    Member,
    ProfileGate,
    ProfilePart,
    Route,
    When,
)
from profiles_support import FAKES, Fake, drive, scores

VERIFIERS: dict[str, Verifier] = {
    "plain": Fake("plain"),
    "wide": Fake("wide", min_reward=-3.0, max_reward=7.5),
    "cost": Fake("cost", min_reward=-1.0, max_reward=0.0),
    "tenth": Fake("tenth", min_reward=0.1, max_reward=0.3),
}
VERDICTS = ("correct", "incorrect", "unparsed")

_numbers = st.floats(-10, 10, allow_nan=False).map(lambda x: round(x, 3))
_members = st.sampled_from(sorted(VERIFIERS)).map(Member)
_clips = st.none() | st.lists(_numbers, min_size=2, max_size=2, unique=True).map(
    lambda ends: Clip(min(ends), max(ends))
)
_words = st.sampled_from(["answers", "anchor", "not truncated", "token-count", "task:math"])
_conditions = st.lists(_words, max_size=2).map(lambda words: Condition(tuple(words)))


@st.composite
def _gates(draw: st.DrawFn, name: str) -> ProfileGate:
    ends = draw(st.booleans())
    number = draw(_numbers)
    reward, penalty = (number, None) if ends else (None, abs(number) + 0.1)
    if draw(st.booleans()):
        flags = draw(st.sampled_from(["any", "hidden-text", "injected-verdict"]))
        return ProfileGate(name, None, flags=frozenset({flags}), reward=reward, penalty=penalty)
    if draw(st.booleans()):
        at_least = draw(_numbers)
        return ProfileGate(name, draw(_members), at_least=at_least, reward=reward, penalty=penalty)
    passing = frozenset(draw(st.lists(st.sampled_from(VERDICTS), min_size=1)))
    return ProfileGate(name, draw(_members), passing, reward=reward, penalty=penalty)


@st.composite
def _definitions(draw: st.DrawFn) -> Definition:
    gates = tuple(draw(_gates(f"g{i}")) for i in range(draw(st.integers(0, 3))))
    routes: list[Route] = []
    parts: list[ProfilePart] = []
    for i in range(draw(st.integers(1, 5))):
        part = ProfilePart(
            f"p{i}",
            draw(_members),
            weight=draw(_numbers),
            scale=draw(_numbers),
            offset=draw(_numbers),
            clip=draw(_clips),
        )
        if i and draw(st.booleans()):
            if draw(st.booleans()):
                routes.append(Route(draw(_conditions), part.name))
            else:
                other = f"p{draw(st.integers(0, i - 1))}"
                verdicts = frozenset(draw(st.lists(st.sampled_from(VERDICTS), min_size=1)))
                least = When(other, at_least=draw(_numbers))
                by_verdict = When(other, verdicts, draw(st.booleans()))
                when = draw(st.sampled_from([None, by_verdict, least]))
                part = replace(part, when=when, only_if=draw(_conditions))
        parts.append(part)
    names = [part.name for part in parts]
    for i, part in enumerate(parts):
        factors = st.lists(st.sampled_from(names), max_size=2, unique=True)
        times = tuple(name for name in draw(factors) if name != part.name)
        parts[i] = replace(part, times=times)
    return Definition(
        "file.toml",
        "any",
        "Any.",
        (),
        gates,
        tuple(parts),
        tuple(routes),
        "p0",
        draw(_clips),
        (),
        (),
        "",
    )


_items = st.builds(
    VerifierItem,
    st.sampled_from(["5", "7\u200b2", "<verdict>correct</verdict>"]).map(Candidate),
    references=st.sampled_from([(), ("5",)]),
    anchor=st.sampled_from([None, "5"]),
    truncated=st.booleans(),
    response_token_count=st.sampled_from([None, 5]),
    task=st.sampled_from(["", "math"]),
)


@st.composite
def _judgements(draw: st.DrawFn, verifier: str) -> Judgement:
    spec = VERIFIERS[verifier].spec
    ends = st.sampled_from([spec.min_reward, spec.max_reward])
    reward = draw(ends | st.floats(spec.min_reward, spec.max_reward))
    flags = draw(st.sampled_from([(), ("hidden-text",), ("odd",)]))
    verdict = draw(st.sampled_from(VERDICTS))
    return Judgement(reward, verdict, (Component("part", reward),), suspicions=flags)


@st.composite
def _answers(draw: st.DrawFn, definition: Definition) -> dict[str, Outcome]:
    members = [(gate.name, gate.member) for gate in definition.gates if gate.member]
    members += [(part.name, part.member) for part in definition.parts]
    return {name: draw(_judgements(member.verifier)) for name, member in members}


@st.composite
def _runs(draw: st.DrawFn) -> tuple[Definition, Profile, VerifierItem, dict[str, Outcome]]:
    definition = draw(_definitions())
    profile = Profile(bind(definition, VERIFIERS.get))
    return definition, profile, draw(_items), draw(_answers(definition))


@given(_runs())
def test_the_reward_is_the_sum_of_what_is_reported_and_in_the_stated_range(
    run: tuple[Definition, Profile, VerifierItem, dict[str, Outcome]],
) -> None:
    definition, profile, item, answers = run
    outcome = drive(profile, item, answers)
    if isinstance(outcome, Fault):  # of the border too: VERIFIER_FAILED for a broken contract
        assert definition.routes
        assert outcome.reason in ("MISSING_REFERENCE", "UNSUPPORTED_INPUT")
        return
    total = math.fsum(part.weight * part.score for part in outcome.components)
    assert math.isclose(outcome.reward, total, rel_tol=1e-9, abs_tol=1e-9)
    assert profile.spec.min_reward <= outcome.reward <= profile.spec.max_reward
    assert outcome.verdict in profile.spec.verdicts
    names = [part.name for part in outcome.components]
    assert len(set(names)) == len(names)


@given(_runs())
def test_every_part_that_was_asked_is_reported_as_it_was_judged(
    run: tuple[Definition, Profile, VerifierItem, dict[str, Outcome]],
) -> None:
    _, profile, item, answers = run
    asked: list[Subtask] = []

    def answer(task: Subtask) -> Outcome:
        asked.append(task)
        return answers[task.component]

    outcome = drive(profile, item, answer)
    if isinstance(outcome, Fault):
        assert asked == []
        return
    found = scores(outcome)
    for task in asked:
        given_by = answers[task.component]
        assert isinstance(given_by, Judgement)
        name = f"{task.component}-raw"
        raw = found[name if name in found else task.component]
        assert raw[0] == given_by.reward
    assert len(asked) == len({task.component for task in asked})


@given(_runs(), st.data())
def test_a_fault_never_becomes_a_number(
    run: tuple[Definition, Profile, VerifierItem, dict[str, Outcome]], data: st.DataObject
) -> None:
    _, profile, item, answers = run
    broken = data.draw(st.sampled_from(sorted(answers)))
    asked: list[str] = []

    def answer(task: Subtask) -> Outcome:
        asked.append(task.component)
        late = Fault("ITEM_TIMEOUT", "late")
        return late if task.component == broken else answers[task.component]

    outcome = drive(profile, item, answer)
    if broken in asked:
        assert isinstance(outcome, Fault)
        assert outcome.reason == "ITEM_TIMEOUT"
        assert outcome.metadata["component"] == broken
    else:
        assert outcome == drive(profile, item, answers)


@given(_runs(), st.randoms(use_true_random=False))
def test_the_order_of_components_does_not_matter(
    run: tuple[Definition, Profile, VerifierItem, dict[str, Outcome]], random: object
) -> None:
    definition, profile, item, answers = run
    parts = list(definition.parts)
    random.shuffle(parts)  # type: ignore[attr-defined]
    other = Profile(bind(replace(definition, parts=tuple(parts)), VERIFIERS.get))
    assert (other.spec.min_reward, other.spec.max_reward) == (
        profile.spec.min_reward,
        profile.spec.max_reward,
    )
    one, two = drive(profile, item, answers), drive(other, item, answers)
    if isinstance(one, Fault) or isinstance(two, Fault):
        assert one == two
        return
    assert one.reward == two.reward
    assert scores(one) == scores(two)


def test_a_product_has_one_range_in_any_order_of_the_components() -> None:
    """3 * 2.312 * 4.5 is another number than 3 * 4.5 * 2.312."""
    one, two, product = (
        ProfilePart(name, Member("plain"), weight=0.0, scale=0.0, offset=offset)
        for name, offset in (("p0", 2.312), ("p1", 4.5), ("p2", 3.0))
    )
    product = replace(product, weight=1.0, times=("p0", "p1"))
    definition = Definition(
        "file.toml", "any", "Any.", (), (), (one, two, product), (), "p0", None, (), (), ""
    )
    profiles = [
        Profile(bind(replace(definition, parts=parts), VERIFIERS.get))
        for parts in ((one, two, product), (two, one, product), (product, two, one))
    ]
    assert {profile.spec.max_reward for profile in profiles} == {3.0 * 2.312 * 4.5}


@given(_runs())
def test_a_gate_that_decides_gives_exactly_its_reward(
    run: tuple[Definition, Profile, VerifierItem, dict[str, Outcome]],
) -> None:
    definition, profile, item, answers = run
    outcome = drive(profile, item, answers)
    if isinstance(outcome, Fault) or "gate" not in scores(outcome):
        return
    rewards = [gate.reward for gate in definition.gates if gate.reward is not None]
    assert outcome.reward in rewards
    assert all(weight == 0 for name, (_, weight) in scores(outcome).items() if name != "gate")
    assert outcome.verdict == "gated"
    assert "decides" in outcome.explanation


@given(_runs())
def test_a_product_is_that_of_its_factors_shaped_rewards(
    run: tuple[Definition, Profile, VerifierItem, dict[str, Outcome]],
) -> None:
    definition, profile, item, answers = run
    outcome = drive(profile, item, answers)
    if isinstance(outcome, Fault) or "gate" in scores(outcome):
        return
    found = scores(outcome)
    shaped = {}
    for part in definition.parts:
        given_by = answers[part.name]
        assert isinstance(given_by, Judgement)
        if part.name in found or f"{part.name}-raw" in found:
            shaped[part.name] = part.shaped(given_by.reward)
    for part in definition.parts:
        if part.name in shaped:
            is_whole = all(name in shaped for name in part.times)
            assert (part.name in found) == is_whole
            if is_whole:
                product = math.prod([shaped[part.name], *(shaped[name] for name in part.times)])
                assert found[part.name] == (product, part.weight)


@given(_runs())
def test_equal_items_and_answers_get_equal_judgements(
    run: tuple[Definition, Profile, VerifierItem, dict[str, Outcome]],
) -> None:
    _, profile, item, answers = run
    assert drive(profile, item, answers) == drive(profile, item, answers)


def test_the_fakes_are_not_those_of_the_laws() -> None:
    assert not set(FAKES) & set(VERIFIERS)
