"""`math-verify`: the verdicts are the library's own, configuration by configuration."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.clients.services import who_brings
from assay.reward_server.domain import (
    UNSUPPORTED_INPUT,
    UNUSABLE_REFERENCE,
    Candidate,
    Unjudgeable,
    VerifierItem,
)
from assay.verifiers_extra.mathematics.math_verify import math_verify, setups


def said(response: str, *references: str, **parameters: bool | float | str) -> str:
    """The verdict, or the reason of the fault."""
    given = math_verify.spec.complete(parameters)
    item = VerifierItem(Candidate(response), references, parameters=given)
    try:
        return math_verify.judge(item).verdict
    except Unjudgeable as fault:
        return fault.reason


@given(st.integers(-999, 999), st.integers(-999, 999), st.sampled_from(sorted(setups())))
def test_whole_numbers_in_boxes_are_compared_whatever_the_configuration(
    one: int, other: int, setup: str
) -> None:
    verdict = said(f"It is $\\boxed{{{one}}}$.", f"${other}$", setup=setup)
    assert verdict == ("correct" if one == other else "incorrect")


def test_one_of_several_references_will_do() -> None:
    assert said("$\\boxed{7}$", "$8$", "$7$") == "correct"
    assert said("$\\boxed{6}$", "$8$", "$7$") == "incorrect"


def test_the_knobs_of_verify_are_passed_on() -> None:
    assert said("$\\boxed{0.3333}$", "$\\frac{1}{3}$") == "incorrect"
    assert said("$\\boxed{0.3333}$", "$\\frac{1}{3}$", float_rounding=3) == "correct"
    assert said("$\\boxed{y}$", "$x$") == "incorrect"
    assert said("$\\boxed{y}$", "$x$", strict=False) == "correct"
    interval, inequality = "$x \\in [-2,7]$", "$-2 \\le x \\le 7$"
    assert said(inequality, interval) == "incorrect"
    assert said(inequality, interval, allow_set_relation_comp=True) == "correct"


def test_its_own_mistakes_are_kept() -> None:
    assert said("$\\boxed{12}$", "12\\pi") == "correct"
    assert said("$\\boxed{\\frac{1}{2006!}}$", "$\\frac{1}{2004!}$") == "correct"


def test_no_alarm_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signal.alarm", lambda _: pytest.fail("an alarm was set"))
    for setup in setups():
        assert said("$\\boxed{\\sqrt{8}}$", "$2\\sqrt{2}$", setup=setup) == "correct"


def test_a_reference_in_which_it_finds_nothing_is_a_fault() -> None:
    assert said("$\\boxed{7}$", "no mathematics") == UNUSABLE_REFERENCE


def test_without_the_library_the_fault_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    setups.cache_clear()
    monkeypatch.setitem(sys.modules, "math_verify", None)
    item = VerifierItem(Candidate("7"), ("7",), parameters=math_verify.spec.complete({}))
    with pytest.raises(Unjudgeable) as fault:
        math_verify.judge(item)
    assert fault.value.reason == UNSUPPORTED_INPUT
    assert "pip install './plugins/verifiers_extra[math-verify]'" in fault.value.message
    with pytest.raises(Unjudgeable):
        math_verify.prepare()
    assert "verifiers_extra[math-verify]'" in who_brings("math-verify")
    assert "verifiers_extra[puzzles]'" in who_brings("reasoning-gym")


def test_it_never_judges_in_the_servers_process() -> None:
    assert math_verify.spec.isolation == "process"
    item = VerifierItem(Candidate("7"), ("7",), parameters=math_verify.spec.complete({}))
    assert math_verify.glance(item) is None
