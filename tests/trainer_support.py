"""A model small enough to train in a test, and a judge in this process."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.clients.testing import ScriptedTransport
from assay.lab.trainers.tiny import tiny_tokenizer

SUMS = [(a, b) for a in range(10) for b in range(10)]


def build_tiny(folder: Path) -> None:
    """Pretrains the model on sums, every other of which has a wrong answer, and saves it."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.set_num_threads(1)
    torch.manual_seed(0)
    noise = random.Random(0)
    tokenizer = tiny_tokenizer()
    settings = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, head_dim=32, max_position_embeddings=512,
        tie_word_embeddings=False, pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
    )  # fmt: skip
    load: Any = AutoModelForCausalLM.from_config
    model = load(settings)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=300)
    for _ in range(300):
        texts = []
        for a, b in (noise.choice(SUMS) for _ in range(128)):
            answer = a + b if noise.random() < 0.5 else noise.randint(0, 18)
            texts.append(f"{a}+{b}={answer}<end>")
        batch = tokenizer(texts, return_tensors="pt", padding=True, padding_side="right")
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        labels[:, :4] = -100
        loss = model(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels
        ).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


ADDS = tuple(f'<tool_call>{{"name": "add", "arguments": {{"n": {n}}}}}</tool_call>' for n in (1, 2))


def build_calling(folder: Path) -> None:
    """An untrained model whose few words are prompts, `GO1` to `GO3`, and calls of a tool `add`."""
    import torch
    from experiments.miniature import tokenizer_of
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.manual_seed(0)
    tokenizer = tokenizer_of((*(f"GO{n}" for n in (1, 2, 3)), *ADDS))
    settings = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=1, num_key_value_heads=1, head_dim=32, max_position_embeddings=256,
        tie_word_embeddings=False, pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
    )  # fmt: skip
    load: Any = AutoModelForCausalLM.from_config
    load(settings).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


class ExactTransport(ScriptedTransport):
    """Judges in this process: 1 for the very reference or anchor, else 0; and faults where told to.

    Args:
        faulty: says of a call's number, counted from 0, and an item whether it is to fault.
    """

    def __init__(self, faulty: Callable[[int, Any], bool] = lambda _call, _item: False) -> None:
        self._faulty = faulty
        self._calls = 0
        self._call = 0  # the one that is being judged
        self.faults = 0

    async def batch_score(self, request: Any, *, timeout_s: float) -> Any:
        from assay.api.reward.v1 import reward_pb2

        response = reward_pb2.BatchScoreResponse()
        self._call = self._begun()
        for item in request.items:
            self._judge(item, response.results.add(id=item.id))
        return response

    async def list_verifiers(self, request: Any, *, timeout_s: float) -> Any:
        from assay.api.reward.v1 import reward_pb2

        response = reward_pb2.ListVerifiersResponse(server_version="test")
        response.verifiers.add(name="exact")
        return response

    async def stream_score(
        self, requests: AsyncIterator[Any], *, timeout_s: float
    ) -> AsyncIterator[Any]:
        from assay.api.reward.v1 import reward_pb2

        call = self._begun()
        async for request in requests:
            response = reward_pb2.StreamScoreResponse()
            self._call = call
            for item in request.items:
                self._judge(item, response.results.add(id=item.id))
            yield response

    def _begun(self) -> int:
        """The number of a call as it begins: who has all that it waits for may leave before it
        ends."""
        self._calls += 1
        return self._calls - 1

    def _judge(self, item: Any, result: Any) -> None:
        from assay.kit.errors import make_status

        if self._faulty(self._call, item):
            self.faults += 1
            result.fault.CopyFrom(make_status("WORKER_DIED", "told to"))
            return
        reference = item.reference.text or item.reference.anchor_response
        right = item.response.strip() == reference
        result.judgement.reward = float(right)
        result.judgement.verdict = "correct" if right else "incorrect"
        result.judgement.components.add(name="exact", score=float(right), weight=1.0)
        result.judgement.verifier.name = "exact"

    async def close(self) -> None:
        """Nothing to end."""


@contextmanager
def built_trainer(config: Any, folder: Path, transport: Any) -> Iterator[Any]:
    """The trainer of a run before its first step."""
    import torch

    from assay.trainer.core import build
    from assay.trainer.core.rewards import open_judge
    from assay.trainer.data.problems import load_problems
    from assay.trainer.engines.models import load_policy
    from assay.trainer.settings.registry import row_needs

    torch.set_num_threads(1)
    problems = load_problems(config.data, eval_prompts=0, needs=row_needs(config)).train
    policy = load_policy(config.model, lambda _text: None)
    with open_judge(config.reward, lambda: transport) as judge:
        trainer = build.build_trainer(
            config,
            folder,
            policy,
            build.prompt_stream(config, problems, policy),
            judge,
            callbacks=[],
            on_broken=lambda _batch, loss: f"broken: {loss}",
            check_critic=lambda _explained: None,
            say=lambda _text: None,
        )
        assert trainer.model is not None
        trainer.model.train()
        yield trainer
