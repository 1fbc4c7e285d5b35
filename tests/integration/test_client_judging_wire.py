"""The judging clients and `assay eval-judge` on a real service with tiny models."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cli.commands.up import choose_services
from assay.cli.evaluation.tallies import EvaluationTally
from assay.cli.main import run
from assay.clients.judging import (
    AsyncJudgeClient,
    Fault,
    GroupItem,
    GroupRanking,
    JudgeClient,
    JudgeItem,
    JudgeSettings,
    ModelJudgement,
    PairItem,
    PairJudgement,
    SelfVerificationItem,
    SelfVerificationSettings,
    StepItem,
    StepScores,
    StepSettings,
)
from assay.kit.errors import ConfigError
from genrm_service import running
from genrm_support import make_model

pytestmark = pytest.mark.slow

SUM = "What is 2 + 3?"
SEEDED = JudgeSettings(seed=5)
"""Equal letters for equal questions."""
PAIRS = [
    {
        "id": f"p{n}",
        "prompt": SUM,
        "chosen": f"{n} is 5",
        "rejected": f"{n} is 6",
        "subset": "ab"[n % 2],
    }
    for n in range(6)
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny judge and a tiny step model."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "judge": make_model(folder / "judge"),
        "prm": make_model(folder / "prm", "step"),
    }


@pytest.fixture(scope="module")
def service(models: dict[str, Path]) -> Iterator[str]:
    """The address of a service with a judge, which is the default, and a step head."""
    flags = [f"--model={name}={models[name]}" for name in ("judge", "prm")]
    with running(*flags) as (address, _):
        yield address


def test_every_call_of_the_synchronous_client(service: str) -> None:
    with JudgeClient(service) as client:
        info = client.wait_ready()
        [response] = client.judge_responses([JudgeItem(SUM, "5", ground_truth="5")])
        forward, backward, same = client.judge_pairs(
            [PairItem(SUM, "5", "6"), PairItem(SUM, "6", "5"), PairItem(SUM, "5", "5")]
        )
        [group] = client.judge_groups([GroupItem(SUM, ["5", "6", "5"], id="g")])
        [steps] = client.score_steps(
            [StepItem(SUM, "2\n3\n5", steps=("2\n", "3\n", "5"))], StepSettings("prm")
        )
        report = client.score_self_verification(
            [
                SelfVerificationItem(
                    SUM, ["6", "The answer is wrong.", "5"], attempts_correct=(0, 1)
                )
            ],
            SelfVerificationSettings(model="judge"),
        )
    assert info.default_model is not None
    assert "prm" in {model.name for model in info.process_models}
    assert isinstance(response, ModelJudgement)
    assert 0 <= response.score <= 1
    assert response.judge.model == info.default_model.name == "judge"
    assert response.judge.revision == info.default_model.revision
    assert response.usage.prompt > 0
    assert isinstance(forward, PairJudgement)
    assert isinstance(backward, PairJudgement)
    assert isinstance(same, PairJudgement)
    assert forward.win_probability == 1 - backward.win_probability
    assert same.win_probability == 0.5
    assert isinstance(group, GroupRanking)
    assert group.scores[0] == group.scores[2]
    assert isinstance(steps, StepScores)
    assert [(step.start, step.end) for step in steps.steps] == [(0, 2), (2, 4), (4, 5)]
    [scores] = report.results
    assert not isinstance(scores, Fault), scores
    assert [turn.attempt_correct for turn in scores.turns] == [False, None, True]
    assert scores.turns[1].strict_verdict == "wrong"
    assert scores.turns[1].correct_probability is not None
    assert [turn.reward for turn in scores.turns] == [0.0, 1.0, 2.0]
    assert report.metrics.incorrect_to_correct_ratio == 1.0


def test_the_services_faults_come_as_they_are(service: str) -> None:
    with JudgeClient(service) as client:
        item = JudgeItem(SUM, "5")
        assert [
            fault.reason
            for settings in (JudgeSettings("nobody"), JudgeSettings(template="none@9"))
            for fault in client.judge_responses([item], settings)
            if isinstance(fault, Fault)
        ] == ["UNKNOWN_MODEL", "UNKNOWN_TEMPLATE"]
        long, empty = client.judge_responses([JudgeItem(SUM, "word " * 9000), JudgeItem(SUM, "  ")])
        [cut] = client.judge_responses(
            [JudgeItem(SUM, "word " * 9000)], JudgeSettings(overflow="keep-ends")
        )
    assert isinstance(long, Fault)
    assert (long.reason, long.code) == ("CONTEXT_TOO_LONG", "INVALID_ARGUMENT")
    assert isinstance(empty, Fault)
    assert empty.reason == "MISSING_RESPONSE"
    assert isinstance(cut, ModelJudgement)
    assert cut.truncated


async def test_concurrent_callers_share_an_asynchronous_client(service: str) -> None:
    async with AsyncJudgeClient(service) as client:
        items = [JudgeItem(SUM, f"{n}", ground_truth="5") for n in range(8)]
        together = await client.judge_responses(items, SEEDED)
        apart = await asyncio.gather(*(client.judge_responses([item], SEEDED) for item in items))
    for one, [other] in zip(together, apart, strict=True):
        assert isinstance(one, ModelJudgement)
        assert isinstance(other, ModelJudgement)
        assert one.score == pytest.approx(other.score, abs=1e-5)


def test_a_client_survives_a_fork_and_is_shared_by_threads(service: str) -> None:
    item = JudgeItem(SUM, "5", ground_truth="5")
    with JudgeClient(service) as client:
        [expected] = client.judge_responses([item], SEEDED)
        assert isinstance(expected, ModelJudgement)
        child = os.fork()
        if child == 0:
            [found] = client.judge_responses([item], SEEDED)
            same = isinstance(found, ModelJudgement) and found.score == pytest.approx(
                expected.score
            )
            os._exit(0 if same else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        found: list[Any] = []
        threads = [
            threading.Thread(target=lambda: found.extend(client.judge_responses([item], SEEDED)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [result.score for result in found] == pytest.approx([expected.score] * 4)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def evaluate(*arguments: object) -> int:
    return run(["eval-judge", *map(str, arguments)])


def test_pairs_are_evaluated_by_subset(
    service: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = write(tmp_path / "pairs.jsonl", PAIRS), tmp_path / "out.jsonl"
    told = ("--target", service, "-o", out, "--json", tmp_path / "report.json")
    assert evaluate(file, *told, "--max-order-gap", "0") == 0
    printed = capsys.readouterr().out
    assert "model judge" in printed
    assert "tokens read per item" in printed
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [line["id"] for line in lines] == [row["id"] for row in PAIRS]
    assert all(line["fault"] is None for line in lines)
    assert {name: part["items"] for name, part in report["subsets"].items()} == {"a": 3, "b": 3}
    assert report["all"]["abstained"] == sum(line["order_gap"] > 0 for line in lines)
    assert report["all"]["mean_order_gap"] == pytest.approx(
        sum(line["order_gap"] for line in lines) / 6
    )
    [judge] = report["judges"]
    assert (judge["model"], judge["items"]) == ("judge", 6)


def test_an_interrupted_evaluation_goes_on_where_it_stopped(
    service: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, whole, out = (tmp_path / name for name in ("pairs.jsonl", "whole.jsonl", "out.jsonl"))
    write(file, PAIRS)
    assert evaluate(file, "--target", service, "-o", whole) == 0

    def interrupt(self: EvaluationTally, line: dict[str, Any]) -> None:
        if line["id"] == "p4":
            raise KeyboardInterrupt
        count(self, line)

    count = EvaluationTally.add
    with monkeypatch.context() as patched:
        patched.setattr(EvaluationTally, "add", interrupt)
        assert evaluate(file, "--target", service, "-o", out, "--batch", 2) == 130
    assert "4 of 6 rows are kept" in capsys.readouterr().err
    assert not out.exists()
    report = tmp_path / "report.json"
    asked = (file, "--target", service, "-o", out, "--json", report)
    assert evaluate(*asked) == 0
    assert "going on: 4 of 6 rows" in capsys.readouterr().err
    assert json.loads(report.read_text())["all"]["judged"] == 6
    first, second = (
        [json.loads(line) for line in path.read_text().splitlines()] for path in (whole, out)
    )
    assert [line["win_probability"] for line in second] == pytest.approx(
        [line["win_probability"] for line in first], abs=1e-5
    )


def test_steps_and_points(service: str, tmp_path: Path) -> None:
    steps = [{"problem": SUM, "steps": ["2", "3", "5"], "labels": [1, 0, 1]}] * 3
    points = [{"prompt": SUM, "response": f"{n}", "label": n == 5, "gold": 5} for n in range(4, 7)]
    report = tmp_path / "report.json"
    told = ("--target", service, "--json", report)
    assert evaluate(write(tmp_path / "s.jsonl", steps), *told, "--judge", "prm") == 0
    found = json.loads(report.read_text())
    assert (found["kind"], found["all"]["steps"], found["all"]["judged"]) == ("steps", 9, 3)
    assert evaluate(write(tmp_path / "p.jsonl", points), *told, "--votes", "2") == 0
    found = json.loads(report.read_text())
    assert (found["kind"], found["settings"]["votes"]) == ("points", 2)
    assert found["all"]["auc"] in (0, 0.5, 1)


def test_a_benchmark_as_published_is_scored_as_there(
    service: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {"id": f"{n}", "prompt": SUM, "chosen": ["5"], "rejected": ["6", "7", f"{n}"],
         "num_correct": 1, "subset": "Math"}
        for n in range(10, 13)
    ] + [
        {"id": f"{kind}:0", "prompt": SUM, "chosen": ["5", "five"][:count], "rejected": ["6", "x"],
         "num_correct": count, "subset": "Ties"}
        for kind, count in (("ref", 1), ("tied", 2))
    ]  # fmt: skip
    file, out = write(tmp_path / "rb2.jsonl", rows), tmp_path / "out.jsonl"
    report = tmp_path / "report.json"
    assert evaluate(file, "--target", service, "-o", out, "--json", report) == 0
    assert "RewardBench 2" in capsys.readouterr().out
    found = json.loads(report.read_text())
    assert (found["kind"], found["reading"]["form"]) == ("best", "rewardbench-2")
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    by_hand = sum(max(one["scores"]) == one["scores"][0] for one in lines[:3]) / 3
    assert found["benchmark"]["parts"]["Math"]["score"] == pytest.approx(by_hand)
    assert set(found["benchmark"]["parts"]) == {"Math", "Ties"}
    again = ("--target", service, "--best-by", "ranking", "--against", out, "--json", report)
    assert evaluate(file, *again) == 0
    assert "agreement of judges" in capsys.readouterr().out
    ranked = json.loads(report.read_text())
    assert ranked["reading"]["best_by"] == "ranking"
    [pair] = ranked["agreement"]["pairs"]
    assert pair["judges"] == ["this judge", "out.jsonl"]
    assert pair["both"] == 5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--target", "SERVICE", "--against", "FILE"), "holds no lines of `assay eval-judge -o`"),
        (("--target", "SERVICE", "--format", "judgebench", "--as", "best"), "pairs.jsonl:1"),
        ((), "name one judge: --model PATH"),
        (("--target", "SERVICE", "--model", "x"), "name one judge"),
        (("--target", "SERVICE", "--judge", "nobody"), "it has: judge"),
        (("--target", "SERVICE", "--template", "none"), "no template is named 'none'"),
        (("--target", "SERVICE", "--as", "steps"), "pairs.jsonl:1: 'steps'"),
        (("--target", "SERVICE", "-o", "no/such/folder"), "no/such"),
        (("--target", "127.0.0.1:1"), "no judge service answers at 127.0.0.1:1"),
        (("--model", "/no/such/model"), "/no/such/model"),
    ],
)
def test_what_cannot_be_evaluated_is_one_line(
    *,
    service: str,
    tmp_path: Path,
    arguments: tuple[str, ...],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay.cli.commands.eval_judge._READY_S", 0.5)
    file = write(tmp_path / "pairs.jsonl", PAIRS)
    known = {"SERVICE": service, "FILE": file}
    assert evaluate(file, *(known.get(word, word) for word in arguments)) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


def test_doctor_tells_which_service_answers(
    service: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["doctor", "--target", service]) == 0
    assert "models: judge, prm" in " ".join(capsys.readouterr().out.split())


def test_genrm_is_left_out_where_it_has_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASSAY_GENRM_MODEL", "ASSAY_GENRM_MODELS"):
        monkeypatch.delenv(name, raising=False)
    names = ["genrm", "reward"]
    chosen, remark = choose_services(names, [])
    assert chosen == ["reward"]
    assert "--model NAME=PATH" in remark
    assert choose_services(names, ["--model", "a=b"]) == (names, "")
    assert choose_services(["reward"], []) == (["reward"], "")
    monkeypatch.setenv("ASSAY_GENRM_MODEL", "a=b")
    assert choose_services(names, []) == (names, "")
    monkeypatch.setattr("assay.clients.services.installed_services", dict)
    with pytest.raises(ConfigError, match="genrm"):
        choose_services(["reward"], ["--model", "a=b"])
