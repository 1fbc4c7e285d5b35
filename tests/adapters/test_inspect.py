"""The scorer in real evals of Inspect, with its mock model as the policy and a real server."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients import EmbeddedServices
from assay.kit.errors import ConfigError

pytest.importorskip("inspect_ai", reason="see `make test-adapters`")

from inspect_ai import Task, score
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.solver import generate

from assay.clients.trainers.inspect_ai import assay

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


def said(answer: str) -> ModelOutput:
    """An answer with its use of tokens, for which the mock would fetch a tokenizer."""
    output = ModelOutput.from_content("mockllm/model", answer)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def evaluate(
    folder: Path,
    answers: list[str],
    scorer: Any,
    metadata: list[dict[str, Any]] | None = None,
    **more: Any,
) -> EvalLog:
    """Real evals of Inspect: one sample for each answer that the policy gives."""
    facts = metadata or [{} for _ in answers]
    samples = [Sample(input="2 + 2?", target="4", metadata=fact) for fact in facts]
    (log,) = run_eval(
        Task(dataset=samples, scorer=scorer),
        model=get_model("mockllm/model", custom_outputs=[said(answer) for answer in answers]),
        max_samples=1,
        log_dir=str(folder),
        display="none",
        **more,
    )
    return log


def test_an_eval_has_the_servers_rewards(tmp_path: Path, server: EmbeddedServices) -> None:
    log = evaluate(tmp_path, [RIGHT, WRONG, RIGHT, RIGHT], assay(server.address, task="math"))
    assert log.status == "success"
    assert log.results is not None
    assert log.samples is not None
    assert log.results.scores[0].metrics["mean"].value == 0.75
    wrong = log.samples[1].scores["assay"]
    assert (wrong.value, wrong.answer) == (0.0, "5")
    assert wrong.metadata["verdict"] == "incorrect"
    assert wrong.explanation


def test_tool_calls_are_what_was_called(tmp_path: Path, server: EmbeddedServices) -> None:
    wanted = {"calls": [{"name": "add", "arguments": {"a": 2, "b": 2}}]}
    outputs = [ModelOutput.for_tool_call("mockllm/model", "add", {"a": 2, "b": b}) for b in (2, 3)]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    (log,) = run_eval(
        Task(
            dataset=[Sample(input="2 + 2?", metadata={"reference": wanted}) for _ in outputs],
            solver=generate(tool_calls="none"),
            scorer=assay(server.address, verifier="tool-call"),
        ),
        model=get_model("mockllm/model", custom_outputs=outputs),
        max_samples=1,
        log_dir=str(tmp_path),
        display="none",
    )
    assert log.samples is not None
    assert [sample.scores["assay"].value for sample in log.samples] == [1.0, 0.0]


def test_a_fault_is_unscored_and_in_no_mean(tmp_path: Path, server: EmbeddedServices) -> None:
    facts = [{}, {"verifier": "no-such-verifier"}]
    scorer = assay(server.address, task="math")
    log = evaluate(tmp_path, [RIGHT, RIGHT], scorer, metadata=facts)
    assert log.status == "success"
    assert log.results is not None
    assert log.samples is not None
    (scores,) = log.results.scores
    assert (scores.scored_samples, scores.unscored_samples) == (1, 1)
    assert scores.metrics["mean"].value == 1.0
    fault = log.samples[1].scores["assay"]
    assert math.isnan(fault.as_float())
    assert (fault.reason, fault.metadata["fault"]) == ("scoring_failed", "UNKNOWN_VERIFIER")


def test_no_trouble_is_a_score(tmp_path: Path, trouble: Trouble) -> None:
    scorer = assay(trouble.target, task="math", timeout_s=1.5)
    log = evaluate(tmp_path, [WRONG], scorer, metadata=[{"reference": trouble.reference}])
    assert log.results is not None
    assert log.samples is not None
    (scores,) = log.results.scores
    assert (scores.scored_samples, scores.unscored_samples) == (0, 1)
    assert log.samples[0].scores["assay"].metadata["fault"] == trouble.reason


def test_a_log_with_faults_is_scored_again(
    tmp_path: Path, dead_target: str, server: EmbeddedServices
) -> None:
    log = evaluate(tmp_path, [RIGHT], assay(dead_target, task="math", timeout_s=0.5))
    again = score(log, assay(server.address, task="math"), action="overwrite")
    assert again.results is not None
    assert again.results.scores[0].metrics["mean"].value == 1.0
    assert again.results.scores[0].unscored_samples == 0


def test_raise_is_an_error_of_the_sample(tmp_path: Path, trouble: Trouble) -> None:
    scorer = assay(trouble.target, task="math", timeout_s=1.5, on_fault="raise")
    facts = [{"reference": trouble.reference}]
    log = evaluate(tmp_path, [RIGHT], scorer, metadata=facts, fail_on_error=False)
    assert log.samples is not None
    assert trouble.reason in log.samples[0].error.message
    assert not log.samples[0].scores


def test_raise_ends_an_eval_that_does_not_bear_errors(tmp_path: Path, dead_target: str) -> None:
    scorer = assay(dead_target, task="math", timeout_s=0.5, on_fault="raise")
    assert evaluate(tmp_path, [RIGHT], scorer).status == "error"


def test_inspect_cannot_mask() -> None:
    with pytest.raises(ConfigError, match="with Inspect choose one of: drop, raise"):
        assay("127.0.0.1:1", on_fault="mask")
