"""Rubrics and ensembles over the real wire, with models of two layers; and as rewards of rows."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.clients import Fault
from assay.clients.judging import (
    Criterion,
    Ensemble,
    JudgeClient,
    JudgeItem,
    JudgeSettings,
    ModelJudgement,
    Rubric,
    RubricItem,
    RubricJudgement,
    RubricSettings,
)
from genrm_service import running, workers
from genrm_support import make_model
from metrics_support import scrape, total
from process_tree import named

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # the servers' start is the first test's

SKY = "What colour is the sky, and why?"
RUBRIC = Rubric(
    (
        Criterion("colour", "Names a colour.", 3.0),
        Criterion("why", "Says why.", 2.0, kind="graded"),
        Criterion("rude", "Insults somebody.", -1.0),
    )
)
ANSWERS = ["Blue.", "Blue, because air scatters blue light most.", "You fool.", "No idea."]
NAMES = ("one", "two", "three")
JUDGE = JudgeSettings(model="one")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three judges of different opinions, and a reward head."""
    folder = tmp_path_factory.mktemp("models")
    text = 'default = "one"\n'
    for seed, name in enumerate(NAMES):
        make_model(folder / name, seed=seed)
        text += f'[model.{name}]\npath = "./{name}"\n'
    make_model(folder / "head", "scalar")
    text += '[model.head]\npath = "./head"\n'
    (folder / "models.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[tuple[JudgeClient, str]]:
    """A client of a server with all of them, and where its metrics are."""
    flags = ("--models", folder / "models.toml", "--metrics-port", "0")
    with running(*flags) as (address, process), JudgeClient(address, timeout_s=60) as client:
        assert process.stdout is not None
        yield client, process.stdout.readline().split()[-1]


@pytest.fixture
def client(service: tuple[JudgeClient, str]) -> JudgeClient:
    return service[0]


def items(rubric: Rubric = RUBRIC) -> list[RubricItem]:
    return [RubricItem(SKY, answer, rubric) for answer in ANSWERS]


def judged(found: list[Any]) -> list[RubricJudgement]:
    assert all(isinstance(one, RubricJudgement) for one in found), found
    return found


def test_each_criterion_is_a_question_of_its_own(client: JudgeClient) -> None:
    found = judged(client.judge_rubrics(items(), JUDGE))
    for one in found:
        scores = {criterion.id: criterion.score for criterion in one.criteria}
        assert None not in scores.values()
        raw = math.fsum(c.weight * (c.score or 0.0) for c in one.criteria) / 5
        assert one.score == pytest.approx(min(1.0, max(0.0, raw)), abs=1e-12)
        assert one.least == one.greatest == one.score
        assert [c.judge.template for c in one.criteria] == [
            "criterion@1",
            "criterion-graded@1",
            "criterion@1",
        ]
        assert one.judge.model == "one"
        assert one.judge.revision
        assert one.order == "response-first"
    assert len({one.score for one in found}) == len(ANSWERS)


def test_a_criterion_is_judged_as_it_is_alone(client: JudgeClient) -> None:
    """Neither the company of other criteria nor that of other responses changes a verdict."""
    together = judged(client.judge_rubrics(items(), JUDGE))
    for answer, found in zip(ANSWERS, together, strict=True):
        for criterion, read in zip(RUBRIC.criteria, found.criteria, strict=True):
            single = Rubric((replace(criterion, weight=1.0),))
            [alone] = judged(client.judge_rubrics([RubricItem(SKY, answer, single)], JUDGE))
            assert alone.score == pytest.approx(read.score, abs=1e-5)


def test_what_prompts_have_in_common_is_read_once(client: JudgeClient) -> None:
    many = Rubric(tuple(Criterion(f"c{n}", f"Has property {n}.") for n in range(8)))
    asked = [RubricItem(f"{SKY} {'So. ' * 60}", f"{'Blue. ' * 40}{n}", many) for n in range(8)]
    found = judged(client.judge_rubrics(asked, JUDGE))
    prompt = sum(one.usage.prompt for one in found)
    cached = sum(one.usage.cached for one in found)
    assert cached / prompt > 0.75


def test_the_order_may_be_chosen_and_is_said(client: JudgeClient) -> None:
    rules = RubricSettings(order="criterion-first")
    found = judged(client.judge_rubrics(items(), JUDGE, rules))
    assert {one.order for one in found} == {"criterion-first"}
    assert {c.judge.template for one in found for c in one.criteria} == {
        "criterion-shared@1",
        "criterion-graded-shared@1",
    }


def test_early_exit_asks_less_and_says_the_same(client: JudgeClient) -> None:
    sums = [one.score for one in judged(client.judge_rubrics(items(), JUDGE))]
    for gate in (0.05, 0.3, 0.45, 0.6, 0.95):
        found = judged(client.judge_rubrics(items(), JUDGE, RubricSettings(gate=gate)))
        assert [one.score for one in found] == [float(value >= gate) for value in sums]
        for one, value in zip(found, sums, strict=True):
            assert one.least - 1e-4 <= value <= one.greatest + 1e-4
    easy = judged(client.judge_rubrics(items(), JUDGE, RubricSettings(gate=0.95)))
    assert any(c.score is None and c.fault is None for one in easy for c in one.criteria)


def test_compound_criteria_are_refused_with_a_proposal(client: JudgeClient) -> None:
    both = Rubric((Criterion("both", "Names a colour and explains the reason."),))
    found = client.judge_rubrics([RubricItem(SKY, "Blue.", both)], JUDGE)[0]
    assert isinstance(found, Fault)
    assert found.reason == "INVALID_PARAMETER"
    assert found.metadata["both"] == "Names a colour. | Explains the reason."
    rules = RubricSettings(compound="split")
    [split] = judged(client.judge_rubrics([RubricItem(SKY, "Blue.", both)], JUDGE, rules))
    assert [(c.id, c.weight) for c in split.criteria] == [("both-1", 0.5), ("both-2", 0.5)]


def test_the_second_model_has_the_last_word(client: JudgeClient) -> None:
    first = judged(client.judge_rubrics(items(), JUDGE))
    other = judged(client.judge_rubrics(items(), JudgeSettings(model="two")))
    rules = RubricSettings(second_model="two", margin=0.5)
    found = judged(client.judge_rubrics(items(), JUDGE, rules))
    for one, small, large in zip(found, first, other, strict=True):
        for c, s, b in zip(one.criteria, small.criteria, large.criteria, strict=True):
            thin = abs((s.score or 0.0) - 0.5) < 0.5
            assert c.score == pytest.approx(b.score if thin else s.score, abs=1e-5)
            assert c.judge.model == ("two" if thin else "one")


def test_ensembles_of_rubrics_and_of_responses(service: tuple[JudgeClient, str]) -> None:
    client, metrics = service
    before = total(scrape(metrics), "assay_genrm_disagreement_count")
    alone = [judged(client.judge_rubrics(items(), JudgeSettings(model=name))) for name in NAMES]
    found = judged(client.judge_rubrics(items(), ensemble=Ensemble(NAMES, "median")))
    for n, one in enumerate(found):
        for place, criterion in enumerate(one.criteria):
            scores = [of[n].criteria[place].score or 0.0 for of in alone]
            assert criterion.score == pytest.approx(sorted(scores)[1], abs=1e-5)
            assert [o.score for o in criterion.opinions] == pytest.approx(scores, abs=1e-5)
        assert one.judge.model == "one+two+three"
        assert one.disagreement is not None
        assert 0 < one.disagreement <= 1
    asked = [JudgeItem(SKY, answer, ground_truth="blue") for answer in ANSWERS]
    judgements = client.judge_responses(asked, ensemble=Ensemble(NAMES[:2]))
    for one in judgements:
        assert isinstance(one, ModelJudgement)
        scores = [o.score or 0.0 for o in one.opinions]
        assert one.score == pytest.approx(sum(scores) / 2)
        assert one.disagreement == pytest.approx(abs(scores[0] - scores[1]))
    assert total(scrape(metrics), "assay_genrm_disagreement_count") == before + 8


@pytest.mark.parametrize(
    ("settings", "ensemble", "message"),
    [
        (JUDGE, Ensemble(NAMES), "beside an ensemble"),
        (JudgeSettings(), Ensemble(("one", "one")), "different models"),
        (JudgeSettings(), Ensemble(NAMES, quorum=4), "quorum"),
        (JudgeSettings(), Ensemble(("one", "nobody")), "nobody"),
    ],
)
def test_wrong_ensembles_are_refused(
    client: JudgeClient, settings: JudgeSettings, ensemble: Ensemble, message: str
) -> None:
    for found in (
        client.judge_rubrics(items()[:1], settings, ensemble=ensemble)[0],
        client.judge_responses([JudgeItem(SKY, "Blue.")], settings, ensemble=ensemble)[0],
    ):
        assert isinstance(found, Fault)
        assert found.reason in {"INVALID_PARAMETER", "UNKNOWN_MODEL"}
        assert message in found.message


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (RubricSettings(gate=0.0), "gate is 0"),
        (RubricSettings(gate=1.5), "gate"),
        (RubricSettings(margin=0.1), "second_model"),
        (RubricSettings(margin=0.6, second_model="two"), "margin"),
        (RubricSettings(least_read=-1.0), "least_read"),
    ],
)
def test_wrong_rules_are_refused(client: JudgeClient, rules: RubricSettings, message: str) -> None:
    [found] = client.judge_rubrics(items()[:1], JUDGE, rules)
    assert isinstance(found, Fault)
    assert (found.reason, message in found.message) == ("INVALID_PARAMETER", True)


def test_the_counts_are_conserved(service: tuple[JudgeClient, str]) -> None:
    client, metrics = service

    def counts() -> list[float]:
        page = scrape(metrics)
        return [
            total(page, "assay_genrm_criteria_total", outcome=outcome)
            for outcome in ("read", "unread", "unasked")
        ]

    before = counts()
    judged(client.judge_rubrics(items(), JUDGE))
    judged(client.judge_rubrics(items(), JUDGE, RubricSettings(gate=0.95)))
    read, unread, unasked = (after - then for after, then in zip(counts(), before, strict=True))
    assert unread == 0
    assert unasked > 0
    assert read + unasked == 2 * len(ANSWERS) * len(RUBRIC.criteria)


def test_a_judge_that_dies_is_said_and_the_quorum_decides(folder: Path) -> None:
    """The worker of one model of three is killed while they judge: its fault, not the item's."""
    asked = [RubricItem(SKY, f"Blue. {n}", RUBRIC) for n in range(12)]
    with running("--models", folder / "models.toml") as (address, process):
        before = set(workers(process.pid))
        with JudgeClient(address, timeout_s=120) as client:
            judged(client.judge_rubrics(items(), ensemble=Ensemble(NAMES)))
            [victim] = named(before, "/two")
            # Stopped, it holds what it was asked until it is killed.
            os.kill(victim, signal.SIGSTOP)
            found = _while_judging(
                lambda: client.judge_rubrics(asked, ensemble=Ensemble(NAMES, quorum=2)),
                lambda: os.kill(victim, signal.SIGKILL),
            )
    assert len(found) == len(asked)
    faults = [
        opinion.fault.reason
        for one in judged(found)
        for criterion in one.criteria
        for opinion in criterion.opinions
        if opinion.fault is not None
    ]
    assert faults
    assert set(faults) == {"ENGINE_DIED"}
    assert all(criterion.score is not None for one in judged(found) for criterion in one.criteria)


def _while_judging(judge: Callable[[], list[Any]], strike: Callable[[], None]) -> list[Any]:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(judge()))
    thread.start()
    time.sleep(5.0)
    strike()
    thread.join()
    return found
