"""`assay score --compare`, `assay validate` and `assay check-verifier` as a person calls them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.api.common.v1 import common_pb2
from assay.api.reward.v1 import reward_pb2
from assay.cli.commands.compare import OUTPUT_KEYS
from assay.cli.main import run
from assay.clients.testing import FakeRewardServer, exact_info
from assay.clients.types import Component, Fault, Judgement

Rows = list[dict[str, Any]]


def judge(item: reward_pb2.Item) -> Judgement | Fault:
    """`exact` compares; `lenient` ignores case, with `strict` it does not; "?" is its fault."""
    gold, text = item.reference.text, item.response
    if item.verifier == "lenient":
        if text == "?":
            return Fault("UNUSABLE_REFERENCE", "a question", code="INVALID_ARGUMENT")
        if not item.parameters["strict"].bool_value:
            gold, text = gold.lower(), text.lower()
    right = gold == text
    return Judgement(
        float(right),
        "correct" if right else "incorrect",
        components=(Component("correctness", float(right), 1.0),),
        extracted_answer=text,
        explanation=f"[bold] {'equal' if right else 'not equal'}",
        verifier=item.verifier,
        version="1",
        suspicions=("shouting",) if item.response.isupper() else (),
    )


def lenient_info() -> reward_pb2.VerifierInfo:
    strict = common_pb2.ParameterSpec(
        name="strict",
        type=common_pb2.PARAMETER_TYPE_BOOL,
        default_value=common_pb2.ParameterValue(bool_value=False),
        description="Do not ignore case.",
    )
    info = exact_info()
    info.name, info.description = "lenient", "Equal text, whatever its case."
    del info.tasks[:]
    info.parameters.append(strict)
    return info


@pytest.fixture(scope="module")
def server() -> Iterator[FakeRewardServer]:
    with FakeRewardServer(judge=judge, verifiers=[exact_info(), lenient_info()]) as fake:
        yield fake


def write(path: Path, rows: Rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text().splitlines()]


RESPONSES = ["a", "A", "b", "?", "A", "a"]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write(
        tmp_path / "in.jsonl",
        [
            {"id": f"r{n}", "response": text, "reference": "a", "agree": "mine", "verifier": "gone"}
            for n, text in enumerate(RESPONSES)
        ],
    )


def compare(rows: Path, out: Path, *arguments: str, target: str) -> int:
    return run(["score", str(rows), "-o", str(out), "--target", target, "--compare", *arguments])


def test_rows_on_which_two_verifiers_disagree(
    server: FakeRewardServer, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert compare(rows, out, "exact", "lenient", target=server.address) == 0
    found = read(out)
    assert [row["id"] for row in found] == ["r1", "r4"]
    assert found[0]["input_agree"] == "mine"
    assert found[0]["agree"] is False
    a, b = found[0]["judgement_a"], found[0]["judgement_b"]
    assert (a["verifier"], a["verdict"], a["accepts"]) == ("exact", "incorrect", False)
    assert (b["verifier"], b["verdict"], b["reward"]) == ("lenient", "correct", 1.0)
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    for part in (
        "both accept │ 2 (40.00 %)",
        "both reject │ 1 (20.00 %)",
        "only A accepts │ 0 (0.00 %)",
        "only B accepts │ 2 (40.00 %)",
        "agreement │ 60.00 % (95 % interval 23.07 to 88.24)",
        "rows with a fault │ 1",
        "fault UNUSABLE_REFERENCE of B │ 1",
        "mean reward A │ 0.4000",
        "suspicion shouting of A │ 2",
        "first 2 of 2 rows on which they disagree",
        "[bold] not equal",
    ):
        assert part in said, said


def test_a_verifier_is_compared_with_itself_under_other_parameters(
    server: FakeRewardServer, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    pair = ("lenient", "lenient:strict=true")
    assert compare(rows, out, *pair, "--all", "--show", "1", target=server.address) == 0
    found = read(out)
    assert [row["id"] for row in found] == [f"r{n}" for n in range(6)]
    assert [row["agree"] for row in found] == [True, False, True, None, False, True]
    assert found[3]["judgement_a"]["fault"]["reason"] == "UNUSABLE_REFERENCE"
    assert found[3]["judgement_a"]["reward"] is None
    assert "first 1 of 2 rows" in re.sub(r"\s+", " ", capsys.readouterr().err)


def test_wrong_rows_are_faults_of_both_with_keep_going(
    server: FakeRewardServer, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, numbers = tmp_path / "out.jsonl", tmp_path / "numbers.json"
    with rows.open("a") as file:
        file.write('{"id": "r9", "reference": "a"}\n{\n')
    pair = ("exact", "lenient", "--all", "--json", str(numbers))
    assert compare(rows, out, *pair, target=server.address) == 1
    assert compare(rows, out, *pair, "--keep-going", target=server.address) == 0
    reasons = [
        [row[side]["fault"] and row[side]["fault"]["reason"] for side in OUTPUT_KEYS[:2]]
        for row in read(out)[6:]
    ]
    assert reasons == [["MISSING_RESPONSE"] * 2, ["MALFORMED_ROW"] * 2]
    said = json.loads(numbers.read_text())
    assert (said["rows"], said["judged"], said["faulted"]) == (8, 5, 3)
    assert (said["agreement"], said["only_b"], said["a"]["mean_reward"]) == (0.6, 2, 0.4)
    assert said["kept_columns"] == [{"column": "agree", "kept_as": "input_agree"}]
    assert "kept as input_agree" in capsys.readouterr().err


def test_a_fault_may_fail_a_comparison_and_stdout_takes_the_rows(
    server: FakeRewardServer, rows: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["score", str(rows), "-o", "-", "--target", server.address, "--fail-on-fault"]
    assert run([*arguments, "--compare", "exact", "lenient"]) == 1
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["r1", "r4"]
    assert run([*arguments, "--compare", "exact", "exact"]) == 0
    assert capsys.readouterr().out == ""


def test_an_interrupted_comparison_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = [{"response": "aA"[n % 2], "reference": "a"} for n in range(200)]
    rows, out = write(tmp_path / "in.jsonl", many), tmp_path / "out.jsonl"
    answered = 0

    def judge_some(item: reward_pb2.Item) -> Judgement | Fault:
        nonlocal answered
        answered += 1
        return judge(item)

    infos = [exact_info(), lenient_info()]
    with FakeRewardServer(judge=judge_some, verifiers=infos) as fake:
        arguments = ("exact", "lenient")
        partial = tmp_path / "out.jsonl.partial"
        assert compare(rows, out, *arguments, "--all", target=fake.address) == 0
        whole = out.read_bytes()
        first = b"".join(whole.splitlines(keepends=True)[:64])
        out.unlink()
        # What an interrupted run leaves: whole lines, a torn one, and what they were made from.
        origin = tmp_path / "out.jsonl.partial.json"
        partial.write_bytes(first + b'{"id": 65, "judge')
        origin.write_text(_origin_of(rows, arguments, fake.address, tmp_path))
        capsys.readouterr()
        answered = 0
        assert compare(rows, out, *arguments, target=fake.address) == 0
    said = capsys.readouterr().err
    assert "going on: 64 of 200 rows" in said
    assert answered == 2 * (200 - 64)
    assert [row["id"] for row in read(out)] == list(range(2, 201, 2))
    assert not partial.exists()
    assert not origin.exists()


def _origin_of(rows: Path, pair: tuple[str, str], target: str, tmp_path: Path) -> str:
    """What a run writes down as its origin: taken from one that is broken off."""
    probe = tmp_path / "probe.jsonl"
    origin = tmp_path / "probe.jsonl.partial.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assay.cli.scoring.partial.PartialFile.finish", lambda *_: None)
        assert compare(rows, probe, *pair, target=target) == 0
    return origin.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--compare", "exact", "nobody"], "no verifier has the name 'nobody'"),
        (["--compare", "exact", "lenient:strict=perhaps"], "write true or false"),
        (["--compare", "exact:x=1", "exact"], "'exact' has no parameter 'x'; it has: none"),
        (["--compare", "exact", "lenient", "--verifier", "exact"], "leave --verifier"),
        (["--compare", "exact", "lenient", "--params", "strict=true"], "behind a name"),
        (["--all", "--verifier", "exact"], "belong to --compare"),
        (["--params", "strict=true"], "--params are those of --verifier"),
        (["--verifier", "exact", "--params", "strict=true"], "'exact' has no parameter 'strict'"),
    ],
)
def test_options_that_contradict_one_another(
    arguments: list[str],
    says: str,
    server: FakeRewardServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = write(tmp_path / "in.jsonl", [{"response": "a", "reference": "a"}])
    out = tmp_path / "out.jsonl"
    before = len(server.requests)
    known = ["score", str(rows), "-o", str(out), "--target", server.address]
    assert run([*known, *arguments]) == 1
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert len(server.requests) == before
    assert not out.exists()


def test_parameters_of_the_command_line_reach_the_verifier(
    server: FakeRewardServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"response": "A", "reference": "a"}
    rows = write(tmp_path / "in.jsonl", [row, {**row, "params": {"strict": False}}])
    arguments = ["score", str(rows), "-o", "-", "--target", server.address]
    assert run([*arguments, "--verifier", "lenient", "--params", "strict=true"]) == 0
    said = capsys.readouterr()
    assert [json.loads(line)["reward"] for line in said.out.splitlines()] == [0.0, 1.0]
    summary = re.sub(r"\s+", " ", said.err)
    assert "rows with a suspicion │ 2 (100.0 %)" in summary
    assert "suspicion shouting │ 2 (100.0 %)" in summary


def test_references_of_every_kind_reach_the_server(tmp_path: Path) -> None:
    rows = [
        {"response": "a", "reference": {"boxes": [[1, 2, 3, 4]]}},
        {"response": "a", "tests": [{"stdin": "1", "stdout": "2"}]},
        {"response": "a", "anchor": "b"},
        {"response": "a", "reference": ["a", "b"]},
    ]
    path = write(tmp_path / "in.jsonl", rows)
    with FakeRewardServer(judge=judge, verifiers=[exact_info()]) as fake:
        out = str(tmp_path / "out.jsonl")
        arguments = ["score", str(path), "-o", out, "--verifier", "exact"]
        assert run([*arguments, "--target", fake.address]) == 0
        (items,) = fake.requests
    assert [item.reference.WhichOneof("kind") for item in items] == [
        "data",
        "tests",
        "anchor_response",
        "texts",
    ]


def test_validate_lists_what_cannot_be_trained_on(
    server: FakeRewardServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: Rows = [{"id": f"r{n}", "answer": "4"} for n in range(70)]
    rows += [{"id": "odd", "answer": "?"}, {"id": "data", "answer": {"a": 1}}]
    path = write(tmp_path / "in.jsonl", rows)
    arguments = ["validate", str(path), "--reference-key", "answer", "--target", server.address]
    assert run([*arguments, "--verifier", "lenient"]) == 1
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    for part in (
        "odd │ UNUSABLE_REFERENCE: a question",
        "gold answer is right │ 70",
        "reference is usable │ 1",
        "fault UNUSABLE_REFERENCE │ 1",
        "98.61 %",
    ):
        assert part in said, said
    assert run([*arguments, "--verifier", "lenient", "--bound", "0.98"]) == 0
    assert run([*arguments, "--verifier", "exact"]) == 0
    assert run([*arguments, "--verifier", "exact", "--as", "boxed"]) == 1
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert "first 20 of 71 failures" in said
    assert run([*arguments, "--verifier", "nobody"]) == 1
    assert "no verifier has the name 'nobody'" in capsys.readouterr().err


def test_validate_takes_the_rows_own_solutions(
    server: FakeRewardServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"answer": "4", "solution": "4"}, {"answer": "4", "solution": "2+2"}]
    path = write(tmp_path / "in.jsonl", rows)
    arguments = ["validate", str(path), "--reference-key", "answer", "--verifier", "exact"]
    arguments += ["--response-key", "solution", "--target", server.address]
    assert run(arguments) == 1
    said = re.sub(r"\s+", " ", capsys.readouterr().err)
    assert "gold answer is right │ 1" in said
    assert "2 │ incorrect: [bold] not equal" in said


def test_check_verifier_prints_a_report(
    server: FakeRewardServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = write(
        tmp_path / "cases.jsonl",
        [
            {"response": "4", "reference": "4", "verdict": "correct"},
            {"response": "5", "reference": "4", "verdict": "correct"},
        ],
    )
    arguments = ["check-verifier", "lenient", "--cases", str(cases), "--hostile-chars", "100"]
    assert run([*arguments, "--target", server.address]) == 1
    said = capsys.readouterr().out
    assert re.match(r"lenient 1: \d+ checks passed, \d+ failed", said)
    assert "ok    cases: case 1, '1', is correct" in said
    assert "FAIL  cases: case 2, '2', is correct: the verdict 'incorrect'" in said
    assert "FAIL  references: a missing reference is a fault" in said
    bad = write(tmp_path / "bad.jsonl", [{"response": "4", "verdict": 4}])
    assert run(["check-verifier", "lenient", "--cases", str(bad), "--target", server.address]) == 1
    assert "bad.jsonl:1: 'verdict' is not a text" in capsys.readouterr().err
