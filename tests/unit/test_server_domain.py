"""Parameters, the registry, the isolation border and the worker frames of the reward server."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, cast

import pytest

from assay.clients.services import EXTRA_VERIFIERS
from assay.kit.pool.frames import FrameError, read_object
from assay.kit.reasons import LEXICON, Reason
from assay.reward_server import border, domain
from assay.reward_server.domain import (
    Candidate,
    Component,
    Fault,
    Judgement,
    Message,
    ParameterSpec,
    ParameterValue,
    Span,
    Unjudgeable,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.registry import (
    FAMILIES,
    Registry,
    RegistryError,
    load_registry,
    plug_ins,
)
from assay.reward_server.workers import wire

SPEC = VerifierSpec(
    name="probe",
    version="1",
    description="For tests.",
    tasks=("probing",),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=("correct",),
    parameters=(
        ParameterSpec("flag", "bool", True, "."),
        ParameterSpec("count", "int", 3, ".", minimum=1, maximum=5),
        ParameterSpec("ratio", "float", 0.5, ".", minimum=0.0, maximum=1.0),
        ParameterSpec("mode", "string", "a", ".", allowed_values=("a", "b")),
        ParameterSpec("words", "string-list", ("x",), "."),
    ),
    isolation="inline",
)


class Probe(Verifier):
    """Answers what it was told to answer."""

    examples = (VerifierExample(VerifierItem(Candidate("x")), "correct"),)

    def __init__(
        self, spec: VerifierSpec = SPEC, answer: Judgement | Exception | None = None
    ) -> None:
        self._spec = spec
        self._answer = answer

    @property
    def spec(self) -> VerifierSpec:
        return self._spec

    def judge(self, item: VerifierItem) -> Judgement:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer or Judgement.composed("correct", (Component("c", 1.0),))


def module_of(verifier: Verifier) -> str:
    return getattr(verifier, "function", type(verifier)).__module__


def test_parameters_are_completed_with_defaults() -> None:
    given: dict[str, ParameterValue] = {"count": 5, "ratio": 1}
    assert SPEC.complete(given) == {
        "flag": True,
        "count": 5,
        "ratio": 1.0,
        "mode": "a",
        "words": ("x",),
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("colour", 1),
        ("flag", 1),
        ("flag", "true"),
        ("count", True),
        ("count", 2.0),
        ("count", 0),
        ("count", 6),
        ("ratio", True),
        ("ratio", "0.5"),
        ("ratio", float("nan")),
        ("ratio", float("inf")),
        ("ratio", -0.1),
        ("ratio", 10**400),
        ("mode", "c"),
        ("mode", ("a",)),
        ("words", "x"),
    ],
)
def test_a_wrong_parameter_is_named(name: str, value: ParameterValue) -> None:
    with pytest.raises(Unjudgeable, match=name) as caught:
        SPEC.complete({name: value})
    assert caught.value.reason == Reason.INVALID_PARAMETER


def test_a_required_parameter_must_be_given() -> None:
    spec = dataclasses.replace(SPEC, parameters=(ParameterSpec("must", "int", None, "."),))
    with pytest.raises(Unjudgeable, match="must"):
        spec.complete({})


def test_reasons_of_verifiers_are_in_the_lexicon() -> None:
    names = ["MISSING_REFERENCE", "UNUSABLE_REFERENCE", "UNSUPPORTED_INPUT"]
    for name in [*names, "INVALID_PARAMETER", "VERIFIER_FAILED"]:
        assert getattr(domain, name) == name
        assert Reason(name) in LEXICON


def test_the_registry_routes_by_name_before_task() -> None:
    other = Probe(dataclasses.replace(SPEC, name="other", tasks=()))
    probe = Probe()
    registry = Registry([probe, other])
    assert registry.resolve("other", "probing") is other
    assert registry.resolve("", "probing") is probe
    assert [v.spec.name for v in registry] == ["other", "probe"]


@pytest.mark.parametrize(
    ("name", "task", "reason", "lists"),
    [
        ("prob", "probing", "UNKNOWN_VERIFIER", "probe"),
        ("", "prob", "UNKNOWN_TASK", "probing"),
        ("", "", "UNKNOWN_TASK", "probing"),
    ],
)
def test_an_unknown_route_lists_the_known(name: str, task: str, reason: str, lists: str) -> None:
    with pytest.raises(Unjudgeable, match=lists) as caught:
        Registry([Probe()]).resolve(name, task)
    assert caught.value.reason == reason


@pytest.mark.parametrize("name", EXTRA_VERIFIERS)
def test_a_verifier_of_the_plug_in_says_what_to_install(name: str) -> None:
    served = load_registry().get(name)
    assert served is not None
    assert {name, *EXTRA_VERIFIERS[name]} == set(served.spec.tasks) | {name}
    bare = Registry([Probe()])
    how = (
        r"it comes with assay-rl-verifiers-extra(\[[a-z-]+\])?, beside the server; in a checkout "
        "of Assay, run:"
    )
    for asked in ((name, ""), *(("", task) for task in served.spec.tasks)):
        with pytest.raises(Unjudgeable, match=how) as caught:
            bare.resolve(*asked)
        assert caught.value.reason == ("UNKNOWN_VERIFIER" if asked[0] else "UNKNOWN_TASK")


def test_every_verifier_of_the_plug_in_is_known_by_name() -> None:
    plugged = {one.spec.name for one in plug_ins() if "verifiers_extra" in module_of(one)}
    assert plugged == set(EXTRA_VERIFIERS)


@pytest.mark.parametrize(
    ("name", "task", "said"),
    [
        ("prob", "", "did you mean 'probe'"),
        ("", "probin", "did you mean 'probing'"),
        ("probing", "", "there is a task of that name"),
        ("", "probe", "there is a verifier of that name"),
    ],
)
def test_an_unknown_route_says_what_may_have_been_meant(name: str, task: str, said: str) -> None:
    with pytest.raises(Unjudgeable, match=said):
        Registry([Probe()]).resolve(name, task)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"data": 4}, r"is data; .* list of texts; write numbers as texts$"),
        ({"data": [4, 0.5]}, r"; write numbers as texts$"),
        ({"data": {"a": 1}}, r"is data; .* list of texts$"),
        ({"data": True}, r"list of texts$"),
        ({"anchor": "x"}, "is an anchor; "),
    ],
)
def test_a_reference_of_another_kind_is_named(item: dict[str, Any], said: str) -> None:
    with pytest.raises(Unjudgeable, match=said):
        VerifierItem(Candidate("4"), **item).answers()


def test_a_name_or_task_claimed_twice_is_an_error() -> None:
    with pytest.raises(RegistryError, match="probe"):
        Registry([Probe(), Probe()])
    with pytest.raises(RegistryError, match="probing"):
        Registry([Probe(), Probe(dataclasses.replace(SPEC, name="other"))])


def test_the_built_in_verifiers_are_consistent() -> None:
    for verifier in (verifier for family in FAMILIES.values() for verifier in family):
        assert verifier.spec.complete({}) is not None
        assert {example.verdict for example in verifier.examples} <= set(verifier.spec.verdicts)
    assert load_registry().get("math") is not None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Unjudgeable("UNSUPPORTED_INPUT", "no"), "UNSUPPORTED_INPUT"),
        (ValueError("text of the candidate"), "VERIFIER_FAILED"),
        (MemoryError(), "VERIFIER_FAILED"),
        (Judgement(1.5, "correct", (Component("c", 1.5),)), "VERIFIER_FAILED"),
        (Judgement(1.0, "right", (Component("c", 1.0),)), "VERIFIER_FAILED"),
        (Judgement(1.0, "correct", ()), "VERIFIER_FAILED"),
        (Unjudgeable("not a reason", "no"), "VERIFIER_FAILED"),
        (Judgement(1.0, "correct", (Component("\ud800", 1.0),)), "VERIFIER_FAILED"),
        (
            Judgement(1.0, "correct", (Component("c", 1.0),), extracted_answer="x" * 20_000),
            "VERIFIER_FAILED",
        ),
        (
            Judgement(1.0, "correct", (Component("c", 1.0),), spans=(Span(5, 2**40, 1.0, "s"),)),
            "VERIFIER_FAILED",
        ),
        (
            Judgement(
                1.0,
                "correct",
                (Component("c", 1.0),),
                spans=(Span(0, 3, 1.0, "s"), Span(2, 4, 1.0, "s")),
            ),
            "VERIFIER_FAILED",
        ),
    ],
)
def test_the_border_lets_nothing_unsound_through(
    answer: Judgement | Exception, reason: str
) -> None:
    outcome = border.judge(Probe(answer=answer), VerifierItem(Candidate("x")))
    assert isinstance(outcome, Fault)
    assert outcome.reason == reason
    assert "candidate" not in outcome.message


def test_a_verifier_that_raises_is_told_where_but_not_what() -> None:
    outcome = border.judge(
        Probe(answer=ValueError("text of the candidate")), VerifierItem(Candidate("x"))
    )
    assert isinstance(outcome, Fault)
    said = (
        r"verifier 'probe' raised ValueError at test_server_domain\.py:(\d+); the server's log .*"
    )
    found = re.fullmatch(said, outcome.message)
    assert found
    line = Path(__file__).read_text().splitlines()[int(found[1]) - 1]
    assert line.strip().startswith("raise ")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_makes_no_judgement(number: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        Judgement(number, "correct", (Component("c", 1.0),))
    with pytest.raises(ValueError, match="not finite"):
        Judgement.composed("correct", (Component("c", 1.0, number),))
    sound = Judgement.composed("correct", (Component("c", 1.0),))
    body = wire.outcome_to_json(sound)
    body["judgement"]["components"][0][1] = number
    with pytest.raises(FrameError):
        wire.outcome_from_json(body)


def test_what_is_no_judgement_is_named() -> None:
    outcome = border.judge(Probe(answer=cast("Any", 1.0)), VerifierItem(Candidate("x")))
    assert isinstance(outcome, Fault)
    assert outcome.message == "verifier 'probe' returned a float, not a Judgement"


def test_the_border_tidies_texts() -> None:
    messy = Judgement(
        1.0, "correct", (Component("c", 1.0),), extracted_answer="\ud800", explanation="a\n b" * 999
    )
    outcome = border.judge(Probe(answer=messy), VerifierItem(Candidate("x")))
    assert isinstance(outcome, Judgement)
    assert outcome.extracted_answer == "?"
    assert "\n" not in outcome.explanation
    assert len(outcome.explanation) == domain.MAX_EXPLANATION_CHARS


def test_items_and_outcomes_survive_the_wire_to_a_worker() -> None:
    item = VerifierItem(
        Candidate(turns=(Message("user", "é\u2028"), Message("assistant", "x", from_policy=True))),
        references=("a", ""),
        anchor="b",
        prompt=(Message("system", "s"),),
        parameters=SPEC.complete({}),
        group_id="g",
        response_token_count=7,
        truncated=True,
    )
    packed = wire.pack({"item": wire.pack_item(item, SPEC)}, 10_000)
    assert wire.read_item(read_object(packed)["item"], SPEC) == item
    judgement = Judgement(
        0.1,
        "correct",
        (Component("c", 0.1),),
        (Span(0, 1, 0.5, "step", 2),),
        "answer",
        "why",
        suspicions=("odd",),
    )
    for outcome in (judgement, Fault("R", "m", {"k": "v"})):
        assert wire.outcome_from_json(wire.outcome_to_json(outcome)) == outcome


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b"{}", b'{"judgement":{}}', b'{"fault":[1,2,3]}', b"[" * 100_000],
)
def test_a_worker_that_talks_nonsense_is_caught(data: bytes) -> None:
    with pytest.raises(FrameError):
        wire.outcome_from_json(read_object(data))


def test_a_frame_beyond_the_limit_is_not_made() -> None:
    with pytest.raises(FrameError):
        wire.pack({"x": "y" * 100}, 50)
