"""Responses of a baseline's checkpoint, drawn as in training and written at once.

transformers' `generate` draws them, whatever the run's engine. Seed, checkpoint and first problem
fix a batch's random numbers, so that a stopped stage continues with the same responses.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from assay.kit.runs.records import JsonLines, mend, read_rows
from assay.trainer.data.problems import Problem, render
from assay.trainer.engines.models import LoadedPolicy, load_policy
from assay.trainer.recipes.code_prm.rows import sample_row
from assay.trainer.settings.config import Config


def draw(
    config: Config,
    problems: Sequence[Problem],
    checkpoint: Path,
    out: Path,
    *,
    number: int,
    per_prompt: int,
    temperature: float,
    batch: int,
    advance: Callable[[int], None] = lambda _done: None,
) -> int:
    """Draws the responses that a file lacks; how many it has then.

    `number` is the checkpoint's, in optimizer steps.

    Raises:
        ConfigError: the checkpoint cannot be loaded.
    """
    mend(out)
    done = len(read_rows(out)) // per_prompt
    _cut(out, done * per_prompt)
    if done == len(problems):
        return done * per_prompt
    policy = load_policy(replace(config.model, name=str(checkpoint)), lambda _text: None)
    policy.model.eval()
    file = JsonLines(out)
    try:
        size = max(1, batch // per_prompt)
        for start in range(done, len(problems), size):
            some = problems[start : start + size]
            seed = hashlib.sha256(f"{config.run.seed}/{number}/{some[0].id}".encode()).digest()
            torch.manual_seed(int.from_bytes(seed[:6], "big"))
            texts = _answers(policy, some, config, per_prompt, temperature)
            for place, problem in enumerate(some):
                for index in range(per_prompt):
                    text = texts[place * per_prompt + index]
                    tests = json.loads(problem.tests)
                    file.write(sample_row(problem, tests, text, checkpoint=number, number=index))
            done += len(some)
            advance(done * per_prompt)
    finally:
        file.close()
    return done * per_prompt


def _cut(path: Path, rows: int) -> None:
    """Keeps the first rows; a problem left incomplete by a kill is drawn anew."""
    if path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[:rows]), encoding="utf-8")


@torch.inference_mode()
def _answers(
    policy: LoadedPolicy,
    problems: Sequence[Problem],
    config: Config,
    count: int,
    temperature: float,
) -> list[str]:
    tokenizer, rollout = policy.tokenizer, config.rollout
    asked = tokenizer(
        [render(problem, tokenizer) for problem in problems], return_tensors="pt", padding=True
    )
    ids, mask = (asked[key].to(policy.model.device) for key in ("input_ids", "attention_mask"))
    settings: dict[str, Any] = {
        "do_sample": True,
        "temperature": temperature,
        "top_p": rollout.top_p,
        "top_k": rollout.top_k,
        "max_new_tokens": rollout.max_new_tokens,
        "num_return_sequences": count,
        "pad_token_id": tokenizer.pad_token_id,
    }
    with policy.autocast():
        made = policy.model.generate(input_ids=ids, attention_mask=mask, **settings)
    texts: list[str] = tokenizer.batch_decode(made[:, ids.shape[1] :], skip_special_tokens=True)
    return texts
