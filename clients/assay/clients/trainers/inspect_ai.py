"""A scorer for Inspect (inspect_ai 0.3), documented in docs/trainers/inspect.md.

    Task(dataset=..., solver=generate(), scorer=assay("127.0.0.1:50051", task="math"))

The sample's target is the reference; several targets are several right answers. A sample's metadata
may hold "reference", "verifier", "task" and "parameters". With "drop" (the default) a fault makes
an unscored score, which Inspect leaves out of every metric. With "raise" the sample has an error.
"""

from __future__ import annotations

from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from assay.clients.trainers.common.faults import FaultError, FaultPolicy, read_policy
from assay.clients.trainers.common.scoring import score_awaited
from assay.clients.trainers.common.settings import read_settings
from assay.clients.trainers.common.single import read_item
from assay.clients.types import Fault, Judgement


@scorer(metrics=[mean(), stderr()])
def assay(target: str = "", **options: Any) -> Scorer:
    """A scorer that asks a reward server. It needs Inspect's asyncio backend, its default.

    Args:
        target: the server's address, "host:port". Empty: ASSAY_TARGET.
        options: as for `read_settings`: verifier, task, token, timeout_s, on_fault, ...

    Raises:
        ConfigError: no target is given, or the policy is neither "drop" nor "raise".
    """
    settings = read_settings({"target": target or None, **options})
    allowed = [FaultPolicy.DROP, FaultPolicy.RAISE]
    policy = read_policy(settings.on_fault or "drop", allowed, "Inspect")

    async def score(state: TaskState, target: Target) -> Score:
        answers = list(target)
        row = {"reference": answers[0] if len(answers) == 1 else answers, **(state.metadata or {})}
        item = read_item(
            settings,
            state.input_text,
            [
                {
                    "role": "assistant",
                    "content": state.output.completion,
                    "tool_calls": state.output.message.tool_calls if state.output.choices else None,
                }
            ],
            row,
            truncated=state.output.stop_reason == "max_tokens",
            trainer="inspect",
            model=state.model,
        )
        [result] = await score_awaited(settings, [item])
        if isinstance(result.outcome, Fault):
            if policy is FaultPolicy.RAISE:
                raise FaultError(str(state.sample_id), result.outcome)
            return _unscored(result.outcome)
        return _score(result.outcome)

    return score


def _score(judgement: Judgement) -> Score:
    return Score(
        value=judgement.reward,
        answer=judgement.extracted_answer,
        explanation=judgement.explanation,
        metadata={
            "verdict": judgement.verdict,
            "verifier": judgement.verifier,
            "version": judgement.version,
            "components": {part.name: part.score for part in judgement.components},
            "suspicions": list(judgement.suspicions),
        },
    )


def _unscored(fault: Fault) -> Score:
    return Score.unscored(
        reason="scoring_failed",
        explanation=f"{fault.reason}: {fault.message}",
        metadata={"fault": fault.reason, "code": fault.code},
    )
