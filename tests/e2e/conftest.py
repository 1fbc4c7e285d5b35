"""A model small enough to train in a test: 0.1 M parameters that add two digits, half of the time
rightly."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SUMS = [(a, b) for a in range(10) for b in range(10)]


def tiny_tokenizer() -> Any:
    """One token per printable ASCII character, with a chat template that sets the messages one
    after another."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = ["<pad>", "<end>", "<unk>", "\n", *map(chr, range(32, 127))]
    core = Tokenizer(
        models.WordLevel({token: n for n, token in enumerate(vocabulary)}, unk_token="<unk>")
    )
    core.pre_tokenizer = pre_tokenizers.Split(Regex("[\\s\\S]"), "isolated")
    core.decoder = decoders.Fuse()
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(
        tokenizer_object=core,
        pad_token="<pad>",
        eos_token="<end>",
        unk_token="<unk>",
        padding_side="left",
    )
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return tokenizer


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


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny model, built once a session, also where several processes test at
    once."""
    shared = tmp_path_factory.getbasetemp()
    if shared.name.startswith("popen-"):
        shared = shared.parent
    target = shared / "tiny-model"
    if not target.is_dir():
        beside = tmp_path_factory.mktemp("building") / "tiny"
        build_tiny(beside)
        try:
            beside.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    return target


@pytest.fixture(scope="session")
def sums_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sums of two digits as a data set."""
    path = tmp_path_factory.mktemp("data") / "sums.jsonl"
    rows = ({"question": f"{a}+{b}=", "answer": str(a + b)} for a, b in SUMS)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def tiny_config(tiny_model: Path, sums_file: Path) -> Callable[..., Any]:
    """Makes a Config for the tiny model; keyword arguments are sections with what differs."""
    from assay.trainer import config

    def make(**sections: dict[str, Any]) -> config.Config:
        tree: dict[str, dict[str, Any]] = {
            "model": {"name": str(tiny_model), "device": "cpu", "precision": "float32"},
            "data": {"source": "jsonl", "path": str(sums_file)},
            "reward": {"verifier": "exact", "timeout_s": 30},
            "optim": {"learning_rate": 4e-4},
            "rollout": {"prompts_per_step": 8, "group_size": 8, "max_new_tokens": 4},
            "eval": {"prompts": 20, "batch_size": 20, "show": 3},
            "run": {"steps": 4, "checkpoint_every": 0, "tensorboard": False},
        }
        for name, values in sections.items():
            tree.setdefault(name, {}).update(values)
        return config.build(tree, origin="test")

    return make


class ExactTransport:
    """Judges in this process: 1 for the very reference, else 0; and faults where it is told to.

    Args:
        faulty: says of a call's number, counted from 0, and an item whether it is to fault.
    """

    def __init__(self, faulty: Callable[[int, Any], bool] = lambda _call, _item: False) -> None:
        self._faulty = faulty
        self.calls = 0
        self.faults = 0

    async def batch_score(self, request: Any, *, timeout_s: float) -> Any:
        from assay.api.reward.v1 import reward_pb2
        from assay.rpc.errors import make_status

        response = reward_pb2.BatchScoreResponse()
        for item in request.items:
            result = response.results.add(id=item.id)
            if self._faulty(self.calls, item):
                self.faults += 1
                result.fault.CopyFrom(make_status("WORKER_DIED", "told to"))
                continue
            right = item.response.strip() == item.reference.text
            result.judgement.reward = float(right)
            result.judgement.verdict = "correct" if right else "incorrect"
            result.judgement.components.add(name="exact", score=float(right), weight=1.0)
            result.judgement.verifier.name = "exact"
        self.calls += 1
        return response

    async def list_verifiers(self, request: Any, *, timeout_s: float) -> Any:
        from assay.api.reward.v1 import reward_pb2

        response = reward_pb2.ListVerifiersResponse(server_version="test")
        response.verifiers.add(name="exact")
        return response

    def stream_score(self, requests: Any, *, timeout_s: float) -> Any:
        raise AssertionError("the trainer scores in batches")

    async def close(self) -> None:
        """Nothing to end."""


@pytest.fixture
def exact_transport() -> type[ExactTransport]:
    """The class of the judge in this process."""
    return ExactTransport


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """Trains in a folder (a new one, or one to continue), without a word; gives the rows of
    metrics.jsonl."""
    import io

    import torch
    from rich.console import Console

    from assay.clients.runs.environment import calm
    from assay.clients.runs.records import read_rows
    from assay.trainer import folder
    from assay.trainer.run import run

    calm()
    torch.set_num_threads(1)

    def go(config: Any, name: str = "run", transport: Any = ExactTransport) -> list[dict[str, Any]]:
        path = tmp_path / name
        where = folder.RunFolder(path) if path.is_dir() else folder.create(config, name, path)
        run(config, where, Console(file=io.StringIO()), transport=transport)
        return read_rows(where.metrics)

    return go


@pytest.fixture
def curve() -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Rows without what the clock says."""
    return lambda rows: [
        {key: value for key, value in row.items() if not key.endswith("_s")} for row in rows
    ]
