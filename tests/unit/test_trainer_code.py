"""Code in the trainer: tests as references, and rewards of lines as the paper has them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.execution.v1 import execution_pb2
from assay.clients import Judgement, Result, Span
from assay.kit.errors import ConfigError
from assay.trainer.core.batch import Scored
from assay.trainer.core.rewards import Judge, sample_of
from assay.trainer.data.problems import load_problems
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.methods.dense.method import with_spans
from assay.trainer.methods.dense.settings import DenseConfig
from assay.trainer.rollouts.types import Rollout
from assay.trainer.settings.sections import ColumnsConfig, DataConfig, RewardConfig
from golden import reference
from tokenizers_support import characters

ROWS = [
    {"question": f"Write add {n}.", "tests": {"asserts": [f"assert add(1, {n}) == {n + 1}"]}}
    for n in range(4)
]


def data(path: Path, rows: list[dict[str, Any]]) -> DataConfig:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return DataConfig(source="jsonl", path=str(path), columns=ColumnsConfig(tests="tests"))


def test_tests_reach_the_service_in_place_of_a_reference(tmp_path: Path) -> None:
    problems = load_problems(data(tmp_path / "rows.jsonl", ROWS), eval_prompts=1)
    assert len(problems.train) == 3
    problem = problems.train[0]
    assert problem.reference == ""
    request = Request(Draw(0, problem, (3,)), 0)
    response = Response((3,), "def add(a, b): return a + b", None, truncated=False)
    client: Any = None
    item = Judge(client, RewardConfig(verifier="code")).item(sample_of(request, response))
    assert isinstance(item.reference, execution_pb2.TestSuite)
    assert "assert add(1," in str(item.reference)


def test_tests_that_cannot_be_read_name_their_row(tmp_path: Path) -> None:
    rows = [*ROWS, {"question": "Write sub.", "tests": {"asserts": []}}]
    with pytest.raises(ConfigError, match=r"row 5: column 'tests': 'asserts' is empty"):
        load_problems(data(tmp_path / "rows.jsonl", rows), eval_prompts=0)


def rollout(text: str, scores: list[float], ids: list[int], *, passed: bool) -> Rollout:
    starts = [0, *(n + 1 for n, sign in enumerate(text) if sign == "\n")]
    ends = [*starts[1:], len(text)]
    spans = tuple(
        Span(start, end, score, "line")
        for start, end, score in zip(starts, ends, scores, strict=True)
    )
    judgement = Judgement(float(passed), "correct" if passed else "incorrect", spans=spans)
    request: Any = SimpleNamespace()
    response = Response(tuple(ids), text, None, truncated=False)
    return Rollout(request, response, Result("", judgement), 0)


@given(
    st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=6), st.booleans()
)
def test_rewards_of_lines_are_those_of_the_paper(scores: list[float], passed: bool) -> None:
    """lam * score / lines with 0.25 for what fails and 0.025 for what passes, and 1 for passing."""
    tokenizer = characters()
    text = "\n".join("ab" for _ in scores)
    ids = tokenizer(text)["input_ids"]
    config = DenseConfig(weight=0.25, correct_share=0.1)
    item = Scored(rollout(text, scores, ids, passed=passed), float(passed))
    placed = with_spans(item, tokenizer, config)
    assert placed.token_rewards is not None
    assert placed.ends is not None
    found = [
        config.weight * reward
        for reward, ends in zip(placed.token_rewards, placed.ends, strict=True)
        if ends
    ]
    found[-1] += float(passed)
    expected = reference.prm_dense_line_rewards(scores, passed, lam_fail=0.25, lam_pass=0.025)
    assert found == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 8))
def test_more_lines_earn_no_more_unless_the_guard_is_off(lines: int) -> None:
    tokenizer = characters()
    text = "\n".join("ab" for _ in range(lines))
    ids = tokenizer(text)["input_ids"]
    item = Scored(rollout(text, [1.0] * lines, ids, passed=False), 0.0)

    def total(config: DenseConfig) -> float:
        return sum(with_spans(item, tokenizer, config).token_rewards or ())

    assert total(DenseConfig(weight=0.25)) == pytest.approx(1.0)
    assert total(DenseConfig(weight=0.25, normalise=False)) == pytest.approx(lines)
