"""Self-tests of a model and a template: what fits, what does not, what is asked again."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.genrm import self_test
from assay.genrm.engines.base import (
    Answer,
    Choose,
    Chosen,
    EngineError,
    Request,
    TokenCounts,
    Write,
    Written,
)
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.options import verdict_mass
from assay.genrm.judges.numbers import joined
from assay.genrm.models import ServedModel
from assay.genrm.self_test import SelfTests
from assay.genrm.templates import Template, load_templates, read_cases, shipped_cases
from assay.genrm.templates.letters import LETTERS
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable
from genrm_judging_support import text_of
from genrm_memory import MemoryEngine

TEMPLATES = load_templates()
CASES = shipped_cases()
ALL = [*CASES, *(case for template in TEMPLATES.all() for case in template.cases)]
RIGHT = {case.right for case in ALL}
NEAR, FAR = -0.05, -4.0


def shown_right(request: Choose | Write) -> bool:
    """Whether the (first) response shown is a right one."""
    text = text_of(request.prompt)
    places = {case.right: text.find(f"\n{case.right}\n") for case in ALL}
    wrong = {case.wrong: text.find(f"\n{case.wrong}\n") for case in ALL}
    found = min((at, said) for said, at in {**places, **wrong}.items() if at >= 0)
    return found[1] in RIGHT


def opinion(
    says_right: Callable[[Choose], bool], mass: float = 0.95
) -> Callable[[Request], Answer]:
    """A judge whose first option wins where it thinks the response right."""

    def answer(request: Request) -> Answer:
        assert isinstance(request, Choose)
        count = len(request.options)
        likely, rest = (0, count - 1) if says_right(request) else (count // 2, 0)
        if "1" in request.options[0]:  # grades, from the worst to the best
            likely, rest = (4, 0) if says_right(request) else (0, 4)
        if count == 4:  # verdicts, then their other spellings
            likely, rest = (0, 1) if says_right(request) else (1, 0)
        chances = [0.0] * count
        chances[likely], chances[rest] = 0.9 * mass, 0.1 * mass
        return Chosen(tuple(math.log(p) if p else -math.inf for p in chances), TokenCounts(5))

    return answer


def judged_by(
    answer: Callable[[Request], Answer], least_mass: float | None = None
) -> tuple[SelfTests, MemoryEngine]:
    engine = MemoryEngine(answer=answer)
    engine.loaded.set()
    engine.go.set()
    served = ServedModel("m", EngineConfig(path="x"), engine)
    return SelfTests(served, TEMPLATES, least_mass), engine


def asking(name: str) -> Choose:
    """An item's request by a template: the newest of this name, or "name@version"."""
    template = next(one for one in TEMPLATES.all()[::-1] if name in (one.name, one.ref))
    if template.letters:
        template = template.drawn(LETTERS)
    return Choose(rendered(template), template.spellings)


def rendered(template: Template) -> object:
    slots = {"question": "What?", "response": "That.", "ground_truth": "That.", "rubric": "Good."}
    slots |= {"response_a": "One.", "response_b": "Two.", "criterion": "Good."}
    return template.render(**{name: slots[name] for name in template.places})


async def refusal(tests: SelfTests, request: Request) -> str:
    with pytest.raises(Unjudgeable) as caught:
        await tests.require(request)
    assert caught.value.reason == "JUDGE_UNFIT"
    return caught.value.message


@pytest.mark.asyncio
async def test_a_judge_that_knows_is_fit_by_every_template_with_probabilities() -> None:
    tests, engine = judged_by(opinion(shown_right))
    tests.begin()
    short = ("attempt", "consistency", "correctness", "preference", "quality", "refusal", "rubric")
    for name in (*short, "self-verification"):
        await tests.require(asking(name))
    found = [one.template.partition("@")[0] for one in tests.found]
    assert found == [*short, "self-verification"]
    assert all(one.fit and one.auc == 1.0 and not one.problem for one in tests.found)
    assert all(one.mass == pytest.approx(0.95) for one in tests.found)
    drawing = sum(TEMPLATES.get(name, "pointwise", "", "pairwise").letters for name in short)
    assert len(engine.asked) == (8 + drawing) * 2 * len(CASES)


@pytest.mark.asyncio
async def test_an_earlier_version_is_tested_when_it_is_asked_for() -> None:
    tests, engine = judged_by(opinion(shown_right))
    tests.begin()
    await tests.require(asking("correctness"))
    assert "correctness@2" not in [one.template for one in tests.found]
    before = len(engine.asked)
    await tests.require(asking("correctness@2"))
    assert "correctness@2" in [one.template for one in tests.found]
    assert before < len(engine.asked)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "name", ["criterion", "criterion-graded", "criterion-shared", "criterion-graded-shared"]
)
async def test_templates_of_criteria_are_tested_before_their_first_use(name: str) -> None:
    tests, engine = judged_by(opinion(shown_right))
    await tests.require(asking(name))
    assert [(one.template, one.fit, one.auc) for one in tests.found] == [(f"{name}@1", True, 1.0)]
    assert len(engine.asked) == 2 * len(CASES)
    guessing, _ = judged_by(opinion(lambda request: True))
    assert "0.50" in await refusal(guessing, asking(name))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "says_right",
    [lambda _: True, lambda _: False, lambda request: not shown_right(request)],
    ids=["yes to all", "no to all", "the wrong way round"],
)
async def test_a_judge_that_does_not_tell_is_unfit(says_right: Callable[[Choose], bool]) -> None:
    tests, engine = judged_by(opinion(says_right))
    for name in ("correctness", "preference"):  # by place alone, for the pair
        message = await refusal(tests, asking(name))
        assert message.startswith(f"model m: by {name}@")
        assert "0.8 is needed" in message
    asked = len(engine.asked)
    await refusal(tests, asking("correctness"))
    assert len(engine.asked) == asked, "a test is run once"


@pytest.mark.asyncio
async def test_a_judge_that_would_say_something_else_is_unfit_and_the_share_is_told() -> None:
    tests, _ = judged_by(opinion(shown_right, mass=0.005))
    assert "judged 0 of 24 known answers (LOW_VERDICT_MASS" in await refusal(
        tests, asking("correctness")
    )
    (found,) = tests.found
    assert (found.fit, found.auc, found.mass) == (False, None, pytest.approx(0.005))


@pytest.mark.asyncio
async def test_the_servers_floor_counts() -> None:
    tests, _ = judged_by(opinion(shown_right, mass=0.005), least_mass=0.0)
    await tests.require(asking("correctness"))
    tests, _ = judged_by(opinion(shown_right, mass=0.9), least_mass=0.99)
    await refusal(tests, asking("correctness"))


@pytest.mark.asyncio
async def test_what_asks_by_no_template_needs_no_test() -> None:
    tests, engine = judged_by(opinion(shown_right))
    await tests.require(Choose(asking("quality").prompt.__class__(()), ("yes", "no")))
    assert not engine.asked


@pytest.mark.asyncio
async def test_written_verdicts_are_tested_before_their_first_use() -> None:
    def answer(request: Request) -> Answer:
        assert isinstance(request, Write)
        assert request.max_tokens <= self_test.WRITTEN_TOKENS
        word = "correct" if shown_right(request) else "wrong"
        return Written(f"So.</think><answer>{word}</answer>", "stop", TokenCounts(5))

    tests, engine = judged_by(answer)
    template = next(one for one in TEMPLATES.all() if one.name == "correctness-reasoned")
    request = Write(rendered(template), 100)  # type: ignore[arg-type]
    assert not engine.asked
    await asyncio.gather(*(tests.require(request) for _ in range(3)))
    assert len(engine.asked) == 2 * len(CASES)
    assert [(one.scoring, one.fit) for one in tests.found] == [("votes", True)]


@pytest.mark.asyncio
async def test_an_engine_that_failed_is_asked_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = [True]

    def answer(request: Request) -> Answer:
        if broken[0]:
            raise EngineError("ENGINE_DIED", "it died")
        return opinion(shown_right)(request)

    tests, engine = judged_by(answer)
    assert "ENGINE_DIED: it died" in await refusal(tests, asking("correctness"))
    broken[0] = False
    asked = len(engine.asked)
    await refusal(tests, asking("correctness"))
    assert len(engine.asked) == asked, "not at once"
    monkeypatch.setattr(self_test, "RETRY_S", 0.0)
    await tests.require(asking("correctness"))
    assert [one.fit for one in tests.found] == [True]


@pytest.mark.asyncio
async def test_a_caller_that_leaves_does_not_end_the_test() -> None:
    tests, engine = judged_by(opinion(shown_right))
    engine.go.clear()
    leaving = asyncio.create_task(tests.require(asking("quality")))
    staying = asyncio.create_task(tests.require(asking("quality")))
    await asyncio.sleep(0)
    leaving.cancel()
    engine.go.set()
    await staying
    assert [one.fit for one in tests.found] == [True]


@pytest.mark.asyncio
async def test_closing_ends_a_test_that_runs() -> None:
    tests, engine = judged_by(opinion(shown_right))
    engine.go.clear()
    waiting = asyncio.create_task(tests.require(asking("quality")))
    await asyncio.sleep(0)
    await tests.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert tests.found == []


@pytest.mark.asyncio
async def test_what_is_found_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="assay.genrm.self_test"):
        tests, _ = judged_by(opinion(shown_right))
        await tests.require(asking("quality"))
        tests, _ = judged_by(opinion(lambda _: True))
        await refusal(tests, asking("quality"))
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]


def test_known_cases_fit_every_kind_of_template() -> None:
    assert len(CASES) >= 12, "with fewer an unfit judge passes by chance more than once in 100"
    for case in CASES:
        assert case.right != case.wrong
        assert case.ground_truth
    assert len({case.question for case in CASES}) == len(CASES)


def test_guessing_passes_seldom() -> None:
    """A judge that draws its scores at random: under 2 % of judges are found fit."""
    draw = random.Random(0)
    passed = 0
    for _ in range(4_000):
        scores = [self_test._Score(right, draw.random()) for right in (True, False) for _ in CASES]
        passed += self_test._fitness("t@1", "token-probability", scores).fit
    assert passed / 4_000 < 0.02


@given(
    st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=6).map(
        lambda some: [one / sum(some) for one in some]
    )
)
def test_the_mass_of_all_words_is_one_and_joining_adds(chances: list[float]) -> None:
    words = [f"{chr(97 + index)}" for index in range(len(chances))]
    logs = [math.log(one) for one in chances]
    assert verdict_mass(words, logs) == pytest.approx(1.0)
    assert math.exp(joined(logs)) == pytest.approx(1.0)
    assert 0.0 <= verdict_mass([*words[:-1], "none"], [*logs[:-1], -math.inf]) <= 1.0


def test_a_word_within_another_is_counted_once() -> None:
    assert verdict_mass([" 1", " 10"], [math.log(0.6), math.log(0.2)]) == pytest.approx(0.6)
    assert joined([-math.inf, -math.inf]) == -math.inf


CASES_OF_A_FIELD = """
[[cases]]
question = "Is 9 odd?"
ground_truth = "yes"
right = "Yes, 9 is odd."
wrong = "No, 9 is even."
"""


@pytest.mark.asyncio
async def test_a_model_of_a_field_brings_its_own_cases(tmp_path: Path) -> None:
    file = tmp_path / "cases.toml"
    file.write_text(CASES_OF_A_FIELD, encoding="utf-8")
    engine = MemoryEngine(answer=opinion(lambda request: "Yes, 9" in text_of(request.prompt)))
    engine.loaded.set()
    engine.go.set()
    served = ServedModel("m", EngineConfig(path="x", known=str(file)), engine)
    tests = SelfTests(served, TEMPLATES)
    await tests.require(asking("quality"))
    assert len(engine.asked) == 4  # both responses, by both readings of the letters
    assert [one.auc for one in tests.found] == [1.0]


def test_wrong_cases_are_named(tmp_path: Path) -> None:
    file = tmp_path / "cases.toml"
    file.write_text(CASES_OF_A_FIELD.replace("wrong", "false"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"cases\.toml"):
        read_cases(file)
