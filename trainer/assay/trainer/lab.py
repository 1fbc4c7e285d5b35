"""Our trainer as a contestant of the lab: `PolicyTrainer` on responses that are given."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from assay.lab.steps import Groups, LabRow
from assay.lab.trainers.tiny import (
    first_of_pairs,
    gradient_of,
    in_pairs,
    joined,
    tiny_policy,
    tiny_tokenizer,
)
from assay.trainer.core import build
from assay.trainer.core.rewards import Judge, open_judge
from assay.trainer.data.problems import load_problems
from assay.trainer.engines.models import load_policy
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.rollouts.types import Collected, Rollout
from assay.trainer.settings import config as settings


@dataclass
class Assay:
    """One step with the settings that `assay train` has by default."""

    title: str = "assay train"
    default: bool = True
    compared = "gradient"
    read = ""

    def version(self) -> str:
        """See Contestant."""
        return f"assay-rl-trainer {version('assay-rl-trainer')}"

    def step(self, groups: Groups, target: str) -> list[float]:
        """See Contestant; groups of one size are collected in one call."""
        parts: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory() as folder:
            model = tiny_policy(tiny_tokenizer())
            model.save_pretrained(Path(folder, "model"))
            tiny_tokenizer().save_pretrained(Path(folder, "model"))
            trainer: Any = None
            for size in sorted({len(group) for group in groups}):
                same = [group for group in groups if len(group) == size]
                trainer, batch = _collected(in_pairs(same), max(size, 2), target, Path(folder))
                parts.append(batch if size > 1 else first_of_pairs(batch))
            whole = joined(parts, {"completion_ids": 0}, [])
            loss = trainer._compute_loss(trainer.model, trainer._counted(whole))  # noqa: SLF001  # as TRL does
            return gradient_of(trainer.model, loss)


def _collected(groups: Groups, size: int, target: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """A trainer and its batch, whose responses were judged as they are in a run."""
    rows = folder / "rows.jsonl"
    asked = [{"question": group[0].prompt, "answer": group[0].name} for group in groups]
    rows.write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
    tree = {
        "model": {"name": str(folder / "model"), "device": "cpu", "precision": "float32"},
        "data": {"source": "jsonl", "path": str(rows)},
        "reward": {
            "verifier": "exact", "target": target, "timeout_s": 3.0, "max_outage_s": 3.0,
        },
        "rollout": {
            "prompts_per_step": len(groups), "group_size": size, "max_new_tokens": 64,
        },
        "run": {"steps": 1, "report_to": []},
    }  # fmt: skip
    config = settings.build(tree, origin="the lab")
    problems = load_problems(config.data, eval_prompts=0).train
    policy = load_policy(config.model, lambda _text: None)
    with open_judge(config.reward) as judge:
        stream = build.prompt_stream(config, problems, policy)

        def collect(step: int) -> Collected:
            del step
            return _judged(groups, stream.take(len(groups)), judge, policy.tokenizer)

        given: Any = SimpleNamespace(collect=collect)
        trainer: Any = build.build_trainer(
            config, folder, policy, stream, judge,
            callbacks=[], on_broken=lambda _batch, loss: f"the loss is {loss}",
            check_critic=lambda _explained: None, say=lambda _text: None,
            source_of=lambda _trainer: given,
        )  # fmt: skip
        trainer.current_gradient_accumulation_steps = 1
        trainer.model.train()
        return trainer, trainer._generate_and_score_completions([])  # noqa: SLF001  # as TRL does


def _judged(groups: Groups, draws: Sequence[Draw], judge: Judge, tokenizer: Any) -> Collected:
    by_prompt = {group[0].prompt: group for group in groups}
    made: list[list[tuple[Request, Response]]] = []
    for draw in draws:
        rows: Sequence[LabRow] = by_prompt[draw.problem.question]
        made.append([])
        for index, row in enumerate(rows):
            ids = (*tokenizer.encode(row.response), tokenizer.eos_token_id)
            response = Response(ids, row.response, (-1.0,) * len(ids), truncated=False)
            made[-1].append((Request(draw, index), response))
    with judge.open_round(len(groups[0])) as judging:
        for group in made:
            for request, response in group:
                judging.submit(request, response)
        results = iter(judging.results())
    rolled = [tuple(Rollout(*one, next(results), policy_step=0) for one in group) for group in made]
    return Collected(rolled, [rollout for group in rolled for rollout in group])


ASSAY = Assay()
