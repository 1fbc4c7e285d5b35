"""An environment of ours in TRL's own GRPOTrainer: two steps, tools called, faults among them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.clients.trainers.common.faults import FaultError
from assay.environments.faces.trl import environment_factory, environment_reward
from faces_support import Echo, Sums

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

END = "<|im_end|>"


def tokenizer() -> Any:
    """A token for each printable character and each mark of Qwen's template."""
    from tokenizers import AddedToken
    from trl.chat_template_utils import qwen3_chat_template

    from trainer_support import tiny_tokenizer

    made = tiny_tokenizer()
    marks = ["<|im_start|>", END, "<tool_call>", "</tool_call>", "<think>", "</think>"]
    made.add_tokens([AddedToken(mark, special=mark.startswith("<|")) for mark in marks])
    made.eos_token = END
    made.chat_template = qwen3_chat_template
    return made


def policy(said: Sequence[str], words: Any) -> Any:
    """A real model that is trained, and says what it is told to: the first turn, then the next."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    class Scripted(LlamaForCausalLM):
        def generate(self, input_ids: Any = None, **_: Any) -> Any:
            """The first text where no tool has answered, the second after that, ..."""
            rows = []
            for row in input_ids:
                text = words.decode(row)
                turn = min(text.count("<tool_response>"), len(said) - 1)
                ids = words(said[turn] + END)["input_ids"]
                rows.append(torch.cat([row, torch.tensor(ids)]))
            return torch.nn.utils.rnn.pad_sequence(
                rows, batch_first=True, padding_value=words.pad_token_id
            )

    torch.manual_seed(0)
    return Scripted(
        LlamaConfig(
            vocab_size=len(words), hidden_size=16, intermediate_size=16, num_hidden_layers=1,
            num_attention_heads=1, num_key_value_heads=1, head_dim=16,
            max_position_embeddings=2048, pad_token_id=words.pad_token_id,
            eos_token_id=words.eos_token_id, bos_token_id=None,
        )
    )  # fmt: skip


def call(**arguments: Any) -> str:
    body = json.dumps({"name": "add", "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


def trained(rows: list[dict[str, Any]], said: Sequence[str], folder: Path, **given: Any) -> Any:
    """TRL's log of two steps of four rows, and each completion with its reward."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    words = tokenizer()
    seen: list[Any] = []
    kind = given.pop("environment", Sums)
    own = given.pop("own_reward", False)
    function = environment_reward(**given)

    class Watched(type(function)):  # type: ignore[misc]
        async def __call__(self, *given: Any, **columns: Any) -> Any:
            found = await super().__call__(*given, **columns)
            seen.extend(zip(columns["completions"], found, strict=True))
            return found

    function.__class__ = Watched
    trainer = GRPOTrainer(
        model=policy(said, words),
        processing_class=words,
        reward_funcs=[] if own else function,
        environment_factory=environment_factory(kind, services=Echo(), own_reward=own),
        train_dataset=Dataset.from_list(rows),
        args=GRPOConfig(
            output_dir=str(folder), per_device_train_batch_size=4, num_generations=2, max_steps=2,
            max_completion_length=300, use_cpu=True, bf16=False, gradient_checkpointing=False,
            save_strategy="no", report_to="none", disable_tqdm=True, logging_steps=1, seed=3,
        ),
    )  # fmt: skip
    trainer.train()
    return trainer.state.log_history, seen


class Flaky(Sums):
    """Breaks in every other episode, so that each group has a fault beside a judgement."""

    seen = 0

    def reset(self, row: Any) -> str:
        Flaky.seen += 1
        self.breaks = Flaky.seen % 2 == 0
        return super().reset(row)

    def _break(self, where: str) -> None:
        if self.breaks:
            super()._break(where)


def row(**more: Any) -> dict[str, Any]:
    prompt = [{"role": "user", "content": "Hello."}]
    return {"prompt": prompt, "terms": [2, 3], "break": "", "done": False, "judged": False, **more}


def test_grpo_trains_two_steps_and_its_tools_are_the_environments(tmp_path: Path) -> None:
    before = len(Sums.closed)
    rows = [row(name="good"), row(name="judged", judged=True)] * 4
    log, seen = trained(rows, [call(a=2, b=3), "5"], tmp_path)
    assert len(seen) == 8
    for completion, reward in seen:
        assert [message["role"] for message in completion] == ["assistant", "tool", "assistant"]
        assert completion[1]["content"] == "5"
        assert reward == 1.25  # the turn's own is added: TRL has one number
    steps = [entry for entry in log if "reward" in entry]
    assert [entry["reward"] for entry in steps] == [1.25, 1.25]
    assert [entry["assay/verdict/correct"] for entry in steps] == [4.0, 4.0]
    assert all(entry["tools/call_frequency"] == 1.0 for entry in steps)
    assert len(Sums.closed) - before == 8  # each episode is closed


@pytest.mark.parametrize("where", ["reset", "add", "reward"])
def test_a_fault_is_none_and_never_zero(tmp_path: Path, where: str) -> None:
    rows = [row(**{"break": where})] * 4
    log, seen = trained(rows, [call(a=2, b=3), "5"], tmp_path, environment=Flaky)
    rewards = [reward for _, reward in seen]
    assert rewards.count(None) == rewards.count(1.25) == 4
    steps = [entry for entry in log if "reward" in entry]
    assert [entry["assay/fault/ENVIRONMENT_FAILED"] for entry in steps] == [2.0, 2.0]
    for entry in steps:
        assert entry["rewards/assay/mean"] == 1.25  # the mean of the good ones: no zero is in it
        assert math.isfinite(entry["grad_norm"])


def test_an_environment_may_own_its_reward_and_then_hears_no_answer(tmp_path: Path) -> None:
    rows = [row(**{"break": "reward"})] * 4
    log, seen = trained(rows, [call(a=2, b=3), "5"], tmp_path, environment=Flaky, own_reward=True)
    assert seen == []
    for entry in [entry for entry in log if "reward" in entry]:
        assert entry["rewards/Flaky/mean"] == 0.25  # of the turn; the answer never came
        assert entry["reward"] == 0.25  # the faults are not in it


def test_on_fault_raise_ends_the_training(tmp_path: Path) -> None:
    with pytest.raises(FaultError, match="reward is broken"):
        trained([row(**{"break": "reward"})] * 4, ["5"], tmp_path, on_fault="raise")
