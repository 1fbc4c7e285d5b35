"""Judges as users have them: genrm with tiny models, a sandbox and a reward server, one address.

The models have random weights, so their opinions mean nothing; what is tested is that each opinion
arrives, unchanged, as a reward, and that what cannot be judged arrives as a fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import run
from assay.clients import Anchor, Data, EmbeddedServices, Item, Result, RewardClient, Turn
from assay.clients.execution import CallTest, Limits, TestSuite, suite_to_proto
from assay.clients.judging import (
    GroupItem,
    JudgeClient,
    JudgeItem,
    JudgeSettings,
    ModelJudgement,
    PairItem,
    PairJudgement,
    RubricItem,
    RubricJudgement,
    StepItem,
    StepScores,
    StepSettings,
    read_rubric,
)
from assay.clients.testing import Case, check_verifier
from assay.kit import tracing
from genrm_service import UNTESTED
from genrm_support import make_model
from sandbox_service import ANY_FLOOR
from tracing_support import Collector, collecting

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NAMES = ("judge", "judge-pairwise", "judge-group", "rubric", "reward-model", "prm")
TESTS = suite_to_proto(
    TestSuite([CallTest("double", (n,), 2 * n) for n in (1, 2)], Limits(wall_time_s=5.0))
)
PROGRAM = "So:\n```python\ndef double(x):\n    return x + x\n```"
PROMPT = [{"role": "user", "content": "What is 6 * 7?"}]
SEEDED = JudgeSettings(seed=5)
"""Equal letters for equal questions."""
STEPS = "Six times seven.\n\nThat is 42."


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """What takes the spans of the services, and of this process."""
    with pytest.MonkeyPatch.context() as patch, collecting() as (collector, environment):
        for name, value in environment.items():
            patch.setenv(name, value)
        assert tracing.set_up("tests")
        try:
            yield collector
        finally:
            tracing.close()


@pytest.fixture(scope="module")
def services(
    collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServices]:
    del collector  # it is there before them
    folder = tmp_path_factory.mktemp("models")
    tiny = make_model(folder / "tiny")
    scalar = make_model(folder / "scalar", "scalar")
    steps = make_model(folder / "steps", "step")
    (folder / "models.toml").write_text(f'[model.tiny]\npath = "{tiny}"\nstructured = "never"\n')
    arguments = {
        "genrm": [
            *("--models", str(folder / "models.toml")),
            *("--model", f"scalar={scalar}"),
            *("--model", f"steps={steps}"),
            *UNTESTED,
        ],
        "sandbox": [*ANY_FLOOR, "--languages", "python", "--slots", "1"],
        "reward": ["--cache-entries", "0"],
    }
    names = ("reward", "sandbox", "genrm")
    with EmbeddedServices(names, arguments=arguments, start_timeout_s=280.0) as services:
        yield services


@pytest.fixture(scope="module")
def client(services: EmbeddedServices) -> Iterator[RewardClient]:
    with RewardClient(services.address, timeout_s=60.0) as client:
        yield client


@pytest.fixture(scope="module")
def genrm(services: EmbeddedServices) -> Iterator[JudgeClient]:
    with JudgeClient(services.addresses["genrm"], timeout_s=60.0) as client:
        yield client


def reward(result: Result) -> float:
    assert result.judgement is not None, result
    assert result.reward is not None
    return result.reward


def reason(result: Result) -> str:
    assert result.fault is not None, result
    return result.fault.reason


def test_systems_that_ask_a_model(client: RewardClient) -> None:
    """Clinical-R1's weights, WebGen-R1's cascade and BMGQ's product, of what genrm says."""
    asked: dict[str, Any] = {"prompt": PROMPT, "parameters": {"seed": 5, "model": "tiny"}}
    made = '{"question": "Which city is it?", "answer": "Paris"}'
    told = {"answers": ["Paris", "Paris", "Paris"]}
    right, wrong = PROGRAM, PROGRAM.replace("x + x", "x * x * x - 7 * x")
    results = client.score(
        [
            Item("It is 42.", reference="42", verifier="clinical-composite", **asked),
            Item(right, reference=TESTS, verifier="webgen-cascade", **asked),
            Item(wrong, reference=TESTS, verifier="webgen-cascade", **asked),
            Item("No code.", reference=TESTS, verifier="webgen-cascade", **asked),
            Item(made, reference=told, verifier="bmgq", **asked),
            Item(made, reference={"answers": ["Lyon", "Rome"]}, verifier="bmgq", **asked),
        ]
    )
    parts = []
    for result in results:
        assert result.judgement is not None, result.fault
        parts.append({part.name: part.score for part in result.judgement.components})
    clinical, built, broken, malformed, good, bad = parts
    weights = {"accuracy": 0.5, "faithfulness": 0.3, "completeness": 0.2}
    assert reward(results[0]) == pytest.approx(sum(w * clinical[n] for n, w in weights.items()))
    assert len({clinical[name] for name in weights}) == 3  # each has its own question
    assert built["functional-raw"] == 1.0
    assert reward(results[1]) == pytest.approx(0.7 + 0.3 * built["aesthetic"])
    assert (reward(results[2]), reward(results[3])) == (0.1, 0.0)
    assert "aesthetic" not in broken | malformed
    assert reward(results[4]) == pytest.approx(good["clear-raw"]) != 0.0
    assert (reward(results[5]), bad["clear"]) == (0.0, 0.0)


def test_rewards_are_what_genrm_says(client: RewardClient, genrm: JudgeClient) -> None:
    judges: dict[str, Any] = {"prompt": PROMPT, "parameters": {"seed": 5}}
    [judged, against, beaten, rated, stepped] = client.score(
        [
            Item("It is 42.", reference="42", verifier="judge", **judges),
            Item("It is 42.", reference=Anchor("It is 41."), verifier="judge", **judges),
            Item("It is 42.", reference=Anchor("It is 41."), task="judge-pairwise", **judges),
            Item(
                "It is 42.",
                verifier="reward-model",
                prompt=PROMPT,
                parameters={"model": "scalar", "squash": "none"},
            ),
            Item(STEPS, verifier="prm", prompt=PROMPT, parameters={"model": "steps"}),
        ]
    )
    [one, other] = genrm.judge_responses(
        [
            JudgeItem(PROMPT, "It is 42.", ground_truth="42"),
            JudgeItem(PROMPT, "It is 42.", anchor="It is 41."),
        ],
        SEEDED,
    )
    assert isinstance(one, ModelJudgement)
    assert isinstance(other, ModelJudgement)
    assert reward(judged) == pytest.approx(one.score, abs=1e-5)
    assert reward(against) == pytest.approx(other.score, abs=1e-5)
    [pair] = genrm.judge_pairs([PairItem(PROMPT, "It is 42.", "It is 41.")], SEEDED)
    assert isinstance(pair, PairJudgement)
    assert reward(beaten) == pytest.approx(pair.win_probability, abs=1e-5)
    [logit] = genrm.judge_responses(
        [JudgeItem(PROMPT, "It is 42.")], JudgeSettings(model="scalar", scoring="scalar-head")
    )
    assert isinstance(logit, ModelJudgement)
    assert reward(rated) == pytest.approx(logit.score, abs=1e-4)
    [steps] = genrm.score_steps([StepItem(PROMPT, STEPS)], StepSettings(model="steps"))
    assert isinstance(steps, StepScores)
    assert reward(stepped) == pytest.approx(steps.aggregate, abs=1e-5)
    assert stepped.judgement is not None
    spans = [(span.start, span.end) for span in stepped.judgement.spans]
    assert spans == [(step.start, step.end) for step in steps.steps]
    assert judged.judgement is not None
    assert "tokens read" in judged.judgement.explanation
    assert judged.execution_s > 0


def test_a_group_is_ranked_in_one_call(client: RewardClient, genrm: JudgeClient) -> None:
    texts = ["It is 42.", "It is 41.", "", "I do not know."]
    results = client.score(
        [
            Item(text, verifier="judge-group", prompt=PROMPT, group_id="g", parameters={"seed": 5})
            for text in texts
        ]
    )
    asked = [text for text in texts if text]
    [ranking] = genrm.judge_groups([GroupItem(PROMPT, asked)], SEEDED)
    scores = iter(getattr(ranking, "scores", ()))
    # Each of the others beats the blank one too: two comparisons of three were asked for.
    wanted = [(2 * next(scores) + 1) / 3 if text else 0.0 for text in texts]
    assert [reward(result) for result in results] == pytest.approx(wanted, abs=1e-5)
    assert results[2].judgement is not None
    assert results[2].judgement.verdict == "unparsed"


CRITERIA = [
    {"id": "number", "text": "Gives a number.", "weight": 3},
    {"id": "rude", "text": "Insults somebody.", "weight": -1},
]


def test_a_rubric_is_judged_by_its_criteria(client: RewardClient, genrm: JudgeClient) -> None:
    truth = {"verifier": "rubric", "prompt": PROMPT}
    results = client.score(
        [
            Item("It is 42.", reference=Data(CRITERIA), **truth),  # type: ignore[arg-type]
            Item("It is 41.", reference=json.dumps(CRITERIA), **truth),  # type: ignore[arg-type]
            Item("It is 42.", parameters={"rubric": json.dumps(CRITERIA)}, **truth),  # type: ignore[arg-type]
            Item("It is 42.", **truth),  # type: ignore[arg-type]
            Item("It is 42.", reference=Data([{"text": "x", "wieght": 2}]), **truth),  # type: ignore[arg-type]
        ]
    )
    rubric = read_rubric(CRITERIA)
    found = genrm.judge_rubrics(
        [RubricItem(PROMPT, text, rubric) for text in ("It is 42.", "It is 41.")]
    )
    scores = [one.score for one in found if isinstance(one, RubricJudgement)]
    assert len(scores) == 2
    wanted = [*scores, scores[0]]
    assert [reward(result) for result in results[:3]] == pytest.approx(wanted, abs=1e-5)
    assert [reason(result) for result in results[3:]] == ["MISSING_REFERENCE", "UNUSABLE_REFERENCE"]
    judgement = results[0].judgement
    assert judgement is not None
    weights = {part.name: part.weight for part in judgement.components}
    assert weights["criterion-number"] == 1.0
    assert weights["criterion-rude"] == pytest.approx(-1 / 3)


def test_rows_bring_their_rubrics(services: EmbeddedServices, tmp_path: Path) -> None:
    """HealthBench's criteria under their own key, by the command line."""
    health = [
        {"criterion": "Gives a number.", "points": 7, "tags": ["axis:accuracy"]},
        {"criterion": "Insults somebody.", "points": -3, "tags": []},
    ]
    both = {"criterion": "Gives a number and explains the steps.", "points": 2}
    rows = tmp_path / "rows.jsonl"
    row = {"prompt": PROMPT, "response": "It is 42.", "rubrics": health}
    rows.write_text(json.dumps(row) + "\n" + json.dumps({**row, "rubrics": [both]}) + "\n")
    scored = tmp_path / "scored.jsonl"
    run(
        [
            *("score", str(rows), "--verifier", "rubric", "--reference-key", "rubrics"),
            *("--target", services.address, "--output", str(scored)),
        ]
    )
    good, bad = (json.loads(line) for line in scored.read_text().splitlines())
    assert 0 <= good["reward"] <= 1
    assert "Gives a number. | Explains the steps." in json.dumps(bad)


def test_the_router_of_the_data_scaling_paper(client: RewardClient, genrm: JudgeClient) -> None:
    truth: dict[str, Any] = {"verifier": "rtv-genrm", "prompt": PROMPT}
    results = client.score(
        [
            Item(PROGRAM, reference=TESTS, **truth),
            Item(r"So \boxed{42}", reference="42", task="math", **truth),
            Item("An essay.", reference="Another essay.", parameters={"seed": 5}, **truth),
            Item("An essay.", reference=Anchor("A worse essay."), parameters={"seed": 5}, **truth),
            Item("An essay.", **truth),
            Item(
                "An essay.",
                reference="Another essay.",
                parameters={"model": "no-such"},
                **truth,
            ),
        ]
    )
    [against_truth, against_anchor] = genrm.judge_responses(
        [
            JudgeItem(PROMPT, "An essay.", ground_truth="Another essay."),
            JudgeItem(PROMPT, "An essay.", anchor="A worse essay."),
        ],
        SEEDED,
    )
    assert isinstance(against_truth, ModelJudgement)
    assert isinstance(against_anchor, ModelJudgement)
    assert [reward(result) for result in results[:4]] == pytest.approx(
        [1.0, 1.0, against_truth.score, against_anchor.score], abs=1e-5
    )
    routed = [
        result.judgement.components[0].name
        for result in results[:4]
        if result.judgement is not None
    ]
    assert routed == ["rtv-tests", "rtv-math", "genrm-ground-truth", "genrm-anchor"]
    assert [reason(result) for result in results[4:]] == ["MISSING_REFERENCE", "UNKNOWN_MODEL"]
    fault = results[5].fault
    assert fault is not None
    assert fault.metadata["component"] == "genrm-ground-truth"


def test_what_genrm_cannot_judge_is_a_fault_with_its_reason(client: RewardClient) -> None:
    long = "word " * 20_000
    results = client.score(
        [
            Item(
                long,
                reference="42",
                verifier="judge",
                prompt=PROMPT,
                parameters={"overflow": "refuse"},
            ),
            Item("42", reference="42", verifier="judge", parameters={"template": "no-such"}),
            Item("42", reference="42", verifier="judge-pairwise"),
            Item("42", verifier="reward-model", parameters={"model": "tiny"}),
            Item(
                "42",
                reference="42",
                verifier="judge",
                parameters={"scoring": "votes", "votes": 2, "max_tokens": 8, "temperature": 0.0},
            ),
        ]
    )
    reasons = [reason(result) for result in results]
    assert reasons == [
        "CONTEXT_TOO_LONG", "UNKNOWN_TEMPLATE", "MISSING_REFERENCE", "INVALID_PARAMETER",
        "JUDGE_UNPARSED",
    ]  # fmt: skip
    fault = results[4].fault
    assert fault is not None
    assert "raw_text" in fault.metadata
    kept, overlong = client.score(
        [
            Item(long, reference="42", verifier="judge", prompt=PROMPT),
            Item(
                long,
                reference="42",
                verifier="judge",
                prompt=PROMPT,
                parameters={"overflow": "overlong"},
            ),
        ]
    )
    assert kept.judgement is not None
    assert "cut to fit" in kept.judgement.explanation
    assert overlong.judgement is not None
    assert (overlong.judgement.verdict, overlong.judgement.reward) == ("overlong", 0.0)


def test_a_policy_that_verifies_itself_needs_no_genrm(client: RewardClient) -> None:
    said = [r"\boxed{41}", "It is odd. The answer is wrong.", r"\boxed{42}"]
    turns = [Turn("assistant", text, from_policy=True) for text in said]
    [result] = client.score([Item(turns=turns, reference="42", verifier="self-verify")])
    assert result.judgement is not None
    assert [span.reward for span in result.judgement.spans] == [0.0, 1.0, 2.0]


def test_attempts_may_be_judged_by_another_service(client: RewardClient) -> None:
    said = [PROGRAM, "The loop is right. The answer is correct."]
    turns = [Turn("assistant", text, from_policy=True) for text in said]
    by_tests, by_model = client.score(
        [
            Item(
                turns=turns,
                reference=TESTS,
                verifier="self-verify",
                parameters={"answer_verifier": "code", "total": "sum"},
            ),
            Item(
                turns=turns,
                reference="A loop.",
                verifier="self-verify",
                parameters={"answer_verifier": "judge"},
            ),
        ]
    )
    assert reward(by_tests) == 2.0
    assert reward(by_model) in (0.0, 1.0)


def test_a_class_comes_from_what_the_model_writes(client: RewardClient) -> None:
    """A random model writes no letter: that is a fault with its text, and no class."""
    [attempt, refusal, blank, other] = client.score(
        [
            Item("It is 42.", reference="42", verifier="judge-attempt", prompt=PROMPT),
            Item("Sorry, no.", reference="safe", verifier="judge-refusal", prompt=PROMPT),
            Item(" ", reference="harmful", verifier="judge-refusal", prompt=PROMPT),
            Item("Sorry, no.", reference="maybe", verifier="judge-refusal", prompt=PROMPT),
        ]
    )
    assert [reason(one) for one in (attempt, refusal)] == ["JUDGE_UNPARSED"] * 2
    assert attempt.fault is not None
    assert re.search("expected one of: [A-Z] or [A-Z] or [A-Z]", attempt.fault.message)
    assert blank.judgement is not None
    assert blank.judgement.verdict == "unparsed"
    assert reason(other) == "UNUSABLE_REFERENCE"


@pytest.mark.parametrize("name", NAMES)
def test_they_keep_what_verifiers_promise(name: str, services: EmbeddedServices) -> None:
    known = {"judge": "42", "judge-pairwise": Anchor("41"), "rubric": Data(["Gives a number."])}
    reference = known.get(name)
    model = {"reward-model": "scalar", "prm": "steps"}.get(name, "tiny")
    cases = [
        Case("", reference, "unparsed", parameters={"model": model}),
        Case("It is 42.", reference, parameters={"model": model}),
    ]
    check_verifier(
        name, cases, target=services.address, hostile_chars=2**11, item_timeout_s=20.0
    ).raise_for_failures()


def test_genrm_that_is_not_there_makes_faults() -> None:
    with (
        EmbeddedServices(
            ("reward",), arguments={"reward": ["--genrm-target", "127.0.0.1:1"]}
        ) as alone,
        RewardClient(alone.address, timeout_s=5.0) as client,
    ):
        [judged, exact] = client.score(
            [
                Item("42", reference="42", verifier="judge"),
                Item("4", reference="4", verifier="exact"),
            ]
        )
    assert reason(judged) == "UNREACHABLE"
    assert reward(exact) == 1.0


def test_a_reward_model_rates_by_itself(
    services: EmbeddedServices,
    client: RewardClient,
    genrm: JudgeClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Asked as a judge is, and measured on pairs by `assay eval-judge`."""
    assert client.list_verifiers().find("judge") is not None
    items = [JudgeItem(PROMPT, text) for text in ("5", "6", "seven")]
    found = genrm.judge_responses(items, JudgeSettings("scalar"))
    logits = [judged for judged in found if isinstance(judged, ModelJudgement)]
    assert len({judged.score for judged in logits}) == 3
    assert {judged.judge.template for judged in logits} == {""}
    file, report = tmp_path / "pairs.jsonl", tmp_path / "report.json"
    pairs = [
        {"id": f"p{n}", "prompt": "What is 2 + 3?", "chosen": f"{n} is 5", "rejected": f"{n} is 6"}
        for n in range(6)
    ]
    file.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    told = ("--target", services.addresses["genrm"], "--judge", "scalar", "--json", str(report))
    assert run(["eval-judge", str(file), *told]) == 0
    assert "rated by itself" in capsys.readouterr().err
    numbers = json.loads(report.read_text(encoding="utf-8"))
    assert (numbers["kind"], numbers["all"]["judged"]) == ("points", 6)
    assert "order_consistency" not in numbers["all"]


def test_a_trace_shows_what_the_judge_was_asked(client: RewardClient, collector: Collector) -> None:
    with tracing.span("step") as step:
        trace = step.trace_id()
        [result] = client.score([Item("6 * 7 = 42", "42", verifier="judge", prompt="6 * 7?")])
    assert result.fault is None
    tree = collector.until(
        trace, lambda spans: {"engine", "ask judge", "step"} <= {span.name for span in spans}
    )
    judge = "assay.api.judge.v1.JudgeService/JudgeResponses"
    score = "assay.api.reward.v1.RewardService/BatchScore"
    for engine in tree.named("engine", "genrm"):
        above = tree.above(engine)
        assert above[:2] == [("genrm", "execution"), ("genrm", "item tiny")]
        assert above[2:5] == [
            ("genrm", judge),
            ("reward_server", judge),
            ("reward_server", "ask judge"),
        ]
        assert above[5:] == [
            ("reward_server", score),
            ("tests", score),
            ("tests", "score"),
            ("tests", "step"),
        ]
        assert engine.facts["assay.tokens.prompt"] > 0
