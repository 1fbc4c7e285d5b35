"""Rubrics of verifiers 0.1 to 0.3, hosted: the version is one that still has them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("verifiers.legacy", reason="see `make test-adapters`")

import verifiers as vf
from datasets import Dataset

from assay.audit.hosted import hosted_of
from assay.environments.hosting import host_rubric
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

PROMPT = [{"role": "user", "content": "2 + 2?"}]


def right(completion: Any, answer: Any) -> float:
    return float(completion[-1]["content"] == answer)


async def brief(completion: Any, **everything: Any) -> float:
    return float(len(completion[-1]["content"]) < 9)


def broken(completion: Any, info: Any) -> float:
    raise RuntimeError("the judge is away") if info.get("away") else KeyError("x")


def group(completions: Any) -> list[float]:
    return [1.0] * len(completions)


def rewarded(hosted: Any, text: str, **columns: Any) -> float:
    said = [{"role": "assistant", "content": text}]
    [reward] = hosted([PROMPT], [said], **{name: [value] for name, value in columns.items()})
    return float(reward)


def test_a_rubrics_rewards_are_its_own() -> None:
    rubric = vf.Rubric(funcs=[right, brief], weights=[1.0, 0.5])
    hosted = host_rubric(rubric)
    assert rewarded(hosted, "4", answer="4") == 1.5
    assert rewarded(hosted, "5", reference="4") == 0.5
    assert rewarded(host_rubric(vf.RubricGroup([rubric, rubric])), "4", answer="4") == 3.0


def test_an_environment_is_hosted_by_its_rubric() -> None:
    rows = Dataset.from_list([{"question": "2 + 2?", "answer": "4"}])
    environment = vf.SingleTurnEnv(dataset=rows, rubric=vf.Rubric(funcs=[right]))
    assert rewarded(host_rubric(environment), "4", answer="4") == 1.0


def test_an_audit_hosts_whatever_has_a_rubric() -> None:
    rubric = vf.Rubric(funcs=[right])
    rows = Dataset.from_list([{"question": "2 + 2?", "answer": "4"}])
    for found in (rubric, vf.SingleTurnEnv(dataset=rows, rubric=rubric)):
        hosted = hosted_of(found)
        assert rewarded(hosted, "4", answer="4") == 1.0
        assert rewarded(hosted, "5", answer="4") == 0.0


@pytest.mark.parametrize("info", [{"away": True}, {}])
def test_what_a_function_raises_is_a_fault_where_the_rubric_makes_it_0(info: Any) -> None:
    rubric = vf.Rubric(funcs=[right, broken], weights=[1.0, 1.0])
    with pytest.raises(Unjudgeable, match=r"raised (RuntimeError|KeyError)"):
        rewarded(host_rubric(rubric), "4", answer="4", info=info)
    grouped = vf.RubricGroup([vf.Rubric(funcs=[right]), rubric])
    with pytest.raises(Unjudgeable, match="raised"):
        rewarded(host_rubric(grouped), "4", answer="4", info=info)
    state = vf.State(input={"prompt": PROMPT, "answer": "4", "info": info, "example_id": 0})
    state.update(prompt=PROMPT, completion=[{"role": "assistant", "content": "4"}], timing={})
    state.update(trajectory=[], metrics={}, answer="4", info=info, task="t")
    state["timing"] = {"scoring_ms": 0.0, "total_ms": 0.0, "generation_ms": 0.0}
    asyncio.run(rubric.score_rollout(state))
    assert state["reward"] == 1.0  # the peer's own: what it raised has become 0


def test_a_group_is_refused() -> None:
    with pytest.raises(ConfigError, match="rewards a group as a whole"):
        host_rubric(vf.Rubric(funcs=[group]))
