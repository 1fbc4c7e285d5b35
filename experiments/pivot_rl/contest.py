"""PivotRL's pivots against uniform turns (arXiv 2603.21383), in miniature.

    python -m experiments pivot_rl --out DIR --seeds 0,1,2

A model of 0.1 M weights was taught to call `add(a, b)` for "a+b=": always right where a is 3 or
more, half the time where it is 1 or 2, never where it is 0. Of the 100 turns that call, `assay
pivots` finds those at which its samples differ. The same number of steps of single-turn GRPO on the
pivots, and on all turns; then all turns are sampled again: those where a is 1 or 2 (`half`), and
the others (`rest`), which only one of the two trains on. A step on a turn that is always right or
always wrong teaches nothing, so the pivots should leave more of `half` right at the same cost.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

from assay.kit.runs.progress import Display
from assay.trainer.recipes.pivots.running import PivotPlan, find_pivots
from assay.trainer.recipes.train import run as trained
from assay.trainer.records.folder import create
from assay.trainer.settings import config as configs
from experiments.miniature import write_rows

BEGIN, MIDDLE, END = '<tool_call>{"name": "add", "arguments": {"a": ', ', "b": ', "}}</tool_call>"
KNOWN = 3  # from which `a` on the model is always right


def build_caller(folder: Path, *, steps: int = 250, seed: int = 0) -> None:
    """Pretrains the model, and saves it with its tokenizer."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    noise = random.Random(seed)
    words = ["<pad>", "<end>", *"0123456789+=\n", BEGIN, MIDDLE, END]
    core = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="="))
    escaped = (
        "".join(c if c.isalnum() or c == " " else f"\\{c}" for c in one) for one in words[-3:]
    )
    core.pre_tokenizer = pre_tokenizers.Split(Regex("|".join([*escaped, r"[\s\S]"])), "isolated")
    core.decoder = decoders.Fuse()
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(tokenizer_object=core, pad_token="<pad>", eos_token="<end>")
    settings = LlamaConfig(
        vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=2, head_dim=32, max_position_embeddings=64,
        tie_word_embeddings=False, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    load: Any = AutoModelForCausalLM.from_config
    model = load(settings)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        texts = []
        for _ in range(64):
            a, b = noise.randint(0, 9), noise.randint(0, 9)
            right = a >= KNOWN or noise.random() < 0.5
            said = b if right else (b + 1) % 10
            texts.append(f"{a}+{b}=\n{BEGIN}{a or 1}{MIDDLE}{said}{END}<end>")
        ids = tokenizer(texts, return_tensors="pt")["input_ids"]
        labels = ids.clone()
        labels[:, :5] = -100
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def conversation(a: int, b: int) -> dict[str, Any]:
    """One right turn."""
    function = {"name": "add", "arguments": json.dumps({"a": a, "b": b})}
    return {
        "id": f"{a}+{b}",
        "messages": [
            {"role": "user", "content": f"{a}+{b}="},
            {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]},
        ],
    }


def settings_of(model: Path, data: Path, *, seed: int, steps: int) -> configs.Config:
    """Of a run of single-turn GRPO on rows of pivots."""
    tree: dict[str, Any] = {
        "model": {"name": str(model), "device": "cpu", "precision": "float32"},
        "data": {"source": "jsonl", "path": str(data)},
        "reward": {"verifier": "tool-call", "timeout_s": 120},
        "optim": {"learning_rate": 5e-4},
        "rollout": {"prompts_per_step": 8, "group_size": 8, "max_new_tokens": 8},
        "eval": {"prompts": 0},
        "run": {"steps": steps, "checkpoint_every": 0, "report_to": [], "seed": seed},
    }
    return configs.build(tree, origin="pivot_rl")


def run(words: Sequence[str]) -> None:
    """Prints the share of right samples before and after, by seed."""
    parser = argparse.ArgumentParser(prog="python -m experiments pivot_rl")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=8)
    asked = parser.parse_args(words)
    quiet = Console(file=io.StringIO())
    asked.out.mkdir(parents=True, exist_ok=True)
    turns = [conversation(a, b) for a in range(10) for b in range(10)]
    source = write_rows(asked.out / "turns.jsonl", turns)
    results = []
    for seed in map(int, asked.seeds.split(",")):
        here = asked.out / str(seed)
        model = here / "caller"
        if not model.is_dir():
            build_caller(model, seed=seed)

        def profiled(
            name: str, model: Path, tau: float, *, every: bool, seed: int = seed, here: Path = here
        ) -> list[dict[str, Any]]:
            plan = PivotPlan(source, here / f"{name}.jsonl", tau, 1.0, "tagged", every=every)
            config = settings_of(model, source, seed=seed, steps=1)
            rollout = replace(config.rollout, prompts_per_step=50)
            find_pivots(replace(config, rollout=rollout), plan, Display(quiet))
            return [json.loads(line) for line in plan.out.read_text().splitlines()]

        before = profiled("all", model, 0.99, every=True)
        pivots = profiled("pivots", model, 0.99, every=False)
        row: dict[str, Any] = {"seed": seed, "found": len(pivots), "before": _right(before)}
        for name in ("pivots", "all"):
            config = settings_of(model, here / f"{name}.jsonl", seed=seed, steps=asked.steps)
            folder = create(config, name, here / f"run-{name}")
            trained(config, folder, quiet)
            row[name] = _right(profiled(f"after-{name}", folder.model, 0.99, every=True))
        results.append(row)
        print(json.dumps(row), flush=True)
    for name in ("before", "all", "pivots"):
        for part in ("half", "rest"):
            print(f"{name:>8} {part}: {statistics.fmean(one[name][part] for one in results):.3f}")


def _right(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The share of right samples, at the turns that the model has half right and at the rest."""
    shares: dict[str, list[float]] = {"half": [], "rest": []}
    for row in rows:
        part = "half" if 0 < int(row["id"][0]) < KNOWN else "rest"
        shares[part].append(row["profile"]["mean"])
    return {part: round(statistics.fmean(values), 4) for part, values in shares.items()}
