"""The adapter for OpenRLHF, loaded and called by its rollout executor; what it makes of a fault."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import assay.clients.trainers.openrlhf as adapter
from adapters.conftest import RIGHT, WRONG, Trouble
from assay.clients.trainers.common.faults import FaultError
from assay.clients.trainers.common.queries import response_of
from assay.kit.errors import ConfigError
from trainer_support import tiny_tokenizer

pytest.importorskip("openrlhf", reason="see `make test-adapters`")

from openrlhf.utils.agent import SingleTurnAgentExecutor

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

PROMPT = "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n"


class Engine:
    """What the executor uses of vLLM: one answer, as token ids."""

    def __init__(self, text: str) -> None:
        self.ids = [*tiny_tokenizer().encode(text, add_special_tokens=False), 1]  # 1 is <end>

    async def generate(self, prompt_ids: list[int], *_: Any, **__: Any) -> Any:
        answer = SimpleNamespace(token_ids=self.ids, finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[answer])


def rolled_out(response: str, label: str) -> dict[str, Any]:
    executor = SingleTurnAgentExecutor(adapter.__file__)
    sampling = SimpleNamespace(max_tokens=64, logprobs=None)
    told: dict[str, Any] = asyncio.run(
        executor.execute("2+2?", label, sampling, 512, tiny_tokenizer(), Engine(response))
    )
    return told


def test_openrlhf_loads_the_file_and_takes_the_reward(environment: pytest.MonkeyPatch) -> None:
    told = rolled_out(RIGHT, "4")
    assert torch.tensor([told["reward"]]).flatten().tolist() == [1.0]  # as it builds an Experience
    assert torch.tensor([told["scores"]]).flatten().tolist() == [1.0]
    assert told["extra_logs"]["component_correctness"].flatten()[0].item() == 1.0
    assert rolled_out(WRONG, "4")["reward"].tolist() == [0.0]


def test_a_fault_is_swallowed_and_leaves_no_reward(troubled: Trouble) -> None:
    """Never 0: OpenRLHF logs the exception and keeps None, on which its next step fails."""
    told = rolled_out(RIGHT, troubled.reference)
    assert told["reward"] is None
    assert told["scores"] is None


def test_raise_and_drop(troubled: Trouble, environment: pytest.MonkeyPatch) -> None:
    query, labels = [PROMPT + RIGHT], [troubled.reference]
    with pytest.raises(FaultError, match=troubled.reason):
        adapter.reward_func(query, [PROMPT], labels)
    environment.setenv("ASSAY_ON_FAULT", "drop")
    told = adapter.reward_func(query, [PROMPT], labels)
    assert math.isnan(told["rewards"].item())
    assert told["extra_logs"]["fault"].tolist() == [1.0]
    average = told["scores"].mean().item()
    assert not 0.0 < average < 1.0  # the condition under which dynamic filtering drops the group
    environment.setenv("ASSAY_ON_FAULT", "mask")
    with pytest.raises(ConfigError, match="with OpenRLHF choose one of: raise, drop"):
        adapter.reward_func(query, [PROMPT], labels)


def test_responses_that_cannot_be_told_from_prompts_are_refused(
    environment: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigError, match="ASSAY_RESPONSE_AFTER"):
        adapter.reward_func(["cut off" + RIGHT], [PROMPT], ["4"])
    environment.setenv("ASSAY_RESPONSE_AFTER", "assistant\n")
    told = adapter.reward_func(["cut off assistant\n" + RIGHT + "<|im_end|>\n"], [PROMPT], ["4"])
    assert told["rewards"].tolist() == [1.0]
    assert response_of(PROMPT + "a</s><|im_end|>\n", PROMPT) == "a"
