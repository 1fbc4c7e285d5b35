"""An update alone, beside TRL's own GRPOTrainer: what rows of unequal length cost.

    python -m bench trainer-update --out DIR
    python -m bench trainer-update --lengths tail --rounds 7 --contestants assay,trl
    python -m bench trainer-update --device cuda --rounds 5

Responses are given and not generated: random tokens in log-normal lengths, the longest five times
the mean (`tail`), or all of the mean's length (`equal`); the same lengths on both sides. A model of
0.5 M random weights, GRPO's loss by tokens, one update of all rows a step, one thread. Contestants
take turns of some steps in one process; a turn's figure is the median over its steps but the first,
ratios are of CPU time, within rounds. On CUDA the model has 126 M weights, responses are four times
as long, TRL takes 16 rows a pass, for memory, and ratios are of the step's time.

    assay         as its settings are by default: `optim.micro_batch_tokens` = 16384
    assay-2048    with 2,048
    assay-0       without a limit: all rows in one pass
    trl           GRPOTrainer, all rows in one pass, the fastest way of its on this load
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.miniature import Shape, keep, pretrained, told
from transformers import TrainerCallback

from assay.kit.runs import environment
from assay.trainer.recipes.ladder.stats import estimate
from bench.common import spread

GROUPS, GROUP, PROMPT = 8, 8, 16
ROWS = GROUPS * GROUP
SIGMA = 0.8
STEPS = 4
LIMITS = {"assay": None, "assay-2048": 2048, "assay-0": 0}
CONTESTANTS = (*LIMITS, "trl")


@dataclass(frozen=True, slots=True)
class Place:
    """What is measured where.

    Attributes:
        device: "cpu" or "cuda".
        mean: tokens of a response.
        shape: of the model.
        trl_rows: of a pass of TRL's.
        figure: of a turn, whose ratios are printed.
    """

    device: str
    mean: int
    shape: Shape
    trl_rows: int
    figure: str


PLACES = {
    "cpu": Place(
        "cpu", 100, Shape(width=128, layers=3, context=2048, steps=3, batch=2), ROWS, "cpu_s"
    ),
    "cuda": Place(
        "cuda", 400, Shape(width=1024, layers=12, context=4096, steps=3, batch=2), 16, "update_s"
    ),
}


def lengths_of(kind: str, step: int, mean: int) -> list[int]:
    """Tokens of the responses of a step: quantiles, in an order of the step's own."""
    normal = statistics.NormalDist()
    quantiles = (normal.inv_cdf((row + 0.5) / ROWS) for row in range(ROWS))
    found = [
        mean if kind == "equal" else max(1, round(mean * math.exp(SIGMA * z - SIGMA**2 / 2)))
        for z in quantiles
    ]
    random.Random(step).shuffle(found)
    return found


def rows_of(kind: str, step: int, mean: int) -> list[tuple[list[int], list[int], float]]:
    """Prompt, response and reward of each row; tokens from 3 on."""
    dice = random.Random(1000 + step)

    def ids(count: int) -> list[int]:
        return [dice.randrange(3, 90) for _ in range(count)]

    prompts = [ids(PROMPT) for _ in range(GROUPS)]
    return [
        (prompts[row // GROUP], ids(length), float(dice.random() < 0.5))
        for row, length in enumerate(lengths_of(kind, step, mean))
    ]


class Clock(TrainerCallback):
    """Reads the clocks where a step begins."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.padding = math.nan

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Wall time and the process's CPU time."""
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Positions by tokens, where they are told."""
        self.padding = logs.get("padding_ratio", self.padding)


def turn(trainer: Any, kind: str, mean: int) -> dict[str, float]:
    """Trains `STEPS` steps and says what one took, the first left out."""
    clock = Clock()
    trainer.add_callback(clock)
    trainer.train()
    trainer.remove_callback(clock)
    wall_s, cpu_s = (
        statistics.median([b - a for a, b in itertools.pairwise(times)][1:])
        for times in (clock.wall, clock.cpu)
    )
    padding = _full(kind, mean) if math.isnan(clock.padding) else clock.padding
    return {"update_s": wall_s, "cpu_s": cpu_s, "padding": padding}


def _full(kind: str, mean: int) -> float:
    """Positions by tokens where all rows are as wide as the longest."""
    lengths = lengths_of(kind, 0, mean)
    return ROWS * (PROMPT + max(lengths)) / (ROWS * PROMPT + sum(lengths))


def ours(name: str, kind: str, model: str, folder: Path, place: Place) -> Any:
    """Our trainer with given responses in place of a rollout."""
    from assay.clients import Judgement, Result  # noqa: PLC0415
    from assay.trainer.core.build import build_trainer  # noqa: PLC0415
    from assay.trainer.data.problems import Problem  # noqa: PLC0415
    from assay.trainer.engines.models import load_policy  # noqa: PLC0415
    from assay.trainer.engines.types import Draw, Request, Response  # noqa: PLC0415
    from assay.trainer.rollouts.types import Collected, Rollout  # noqa: PLC0415
    from assay.trainer.settings import config as configs  # noqa: PLC0415

    optim: dict[str, Any] = {"learning_rate": 1e-5}
    if LIMITS[name] is not None:
        optim["micro_batch_tokens"] = LIMITS[name]
    config = configs.build(
        {
            "model": {"name": model, "device": place.device, "precision": "float32"},
            "method": {"loss": {"aggregation": "token-mean"}},
            "optim": optim,
            "rollout": {
                "prompts_per_step": GROUPS, "group_size": GROUP,
                "max_new_tokens": 10 * place.mean,
            },
            "eval": {"prompts": 0},
            "run": {"steps": STEPS, "checkpoint_every": 0, "report_to": []},
        },
        origin="bench",
    )  # fmt: skip

    class Given:
        def collect(self, policy_step: int) -> Collected:
            rows = rows_of(kind, policy_step, place.mean)
            groups = []
            for number in range(GROUPS):
                prompt = rows[number * GROUP][0]
                problem = Problem(str(number), "", (), "")
                draw = Draw(number, problem, tuple(prompt))
                groups.append(
                    tuple(
                        Rollout(
                            Request(draw, index),
                            Response(tuple(ids), "", None, truncated=False),
                            Result("", Judgement(reward, "correct" if reward else "incorrect")),
                            policy_step,
                        )
                        for index, (_, ids, reward) in enumerate(rows[number * GROUP :][:GROUP])
                    )
                )
            return Collected(groups, [rollout for group in groups for rollout in group])

        def state_dict(self) -> dict[str, Any]:
            return {}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            del state

    unused: Any = None
    return build_trainer(
        config, folder, load_policy(config.model, print), unused, unused, callbacks=[],
        on_broken=lambda _batch, loss: f"the loss is {loss}", check_critic=lambda _: None,
        say=print, source_of=lambda _trainer: Given(),
    )  # fmt: skip


def theirs(kind: str, model: str, folder: Path, place: Place) -> Any:
    """TRL's trainer with the same responses in place of its generation; padded as it pads."""
    import torch  # noqa: PLC0415
    from datasets import Dataset  # noqa: PLC0415
    from transformers import (  # noqa: PLC0415
        AutoModelForCausalLM,
        AutoTokenizer,
        PrinterCallback,
        ProgressCallback,
    )
    from trl import GRPOConfig, GRPOTrainer  # noqa: PLC0415
    from trl.trainer.utils import pad  # noqa: PLC0415

    class Given(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> dict[str, Any]:
            rows = rows_of(kind, self.state.global_step, place.mean)
            sides: dict[str, Any] = {}
            for column, side, where in ((0, "prompt", "left"), (1, "completion", "right")):
                ids = [torch.tensor(row[column]) for row in rows]
                masks = [torch.ones_like(one) for one in ids]
                sides[f"{side}_ids"] = pad(ids, padding_value=0, padding_side=where)
                sides[f"{side}_mask"] = pad(masks, padding_value=0, padding_side=where)
            rewards_PG = torch.tensor([row[2] for row in rows]).view(GROUPS, GROUP)
            centred_PG = rewards_PG - rewards_PG.mean(1, keepdim=True)
            advantages_PG = centred_PG / (rewards_PG.std(1, keepdim=True) + 1e-4)
            whole = {
                **sides,
                "advantages": advantages_PG.view(-1),
                "num_items_in_batch": sides["completion_mask"].sum(),
            }
            return {key: value.to(self.accelerator.device) for key, value in whole.items()}

    def unused(prompts: Sequence[str], **_columns: Any) -> list[float]:
        return [0.0] * len(prompts)

    passes, on_cuda = ROWS // place.trl_rows, place.device == "cuda"
    trainer = Given(
        model=AutoModelForCausalLM.from_pretrained(model),
        processing_class=AutoTokenizer.from_pretrained(model),
        reward_funcs=unused,
        train_dataset=Dataset.from_dict({"prompt": ["x"] * ROWS}),
        args=GRPOConfig(
            output_dir=str(folder), per_device_train_batch_size=place.trl_rows,
            gradient_accumulation_steps=passes, num_generations=GROUP,
            max_steps=STEPS, max_completion_length=10 * place.mean, learning_rate=1e-5,
            lr_scheduler_type="constant", optim="adamw_torch_fused", beta=0.0, use_cpu=not on_cuda,
            bf16=False, gradient_checkpointing=False, dataloader_pin_memory=False,
            save_strategy="no", logging_steps=1, disable_tqdm=True, report_to="none",
        ),
    )  # fmt: skip
    for noisy in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(noisy)
    return trainer


def run(options: Sequence[str]) -> None:
    """Measures what is asked for, prints a table for each kind of lengths, and keeps all turns."""
    parser = argparse.ArgumentParser(
        prog="bench trainer-update", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--out", type=Path, default=Path("runs/bench/trainer-update"))
    parser.add_argument("--lengths", default="equal,tail", help="which, with commas")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each contestant")
    parser.add_argument("--contestants", default=",".join(CONTESTANTS), help="which, with commas")
    parser.add_argument("--device", choices=list(PLACES), default="cpu")
    chosen = parser.parse_args(options)
    place = PLACES[chosen.device]
    environment.keep_freed_memory()
    environment.calm()
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    words = [chr(sign) for sign in range(33, 126)]
    named = f"model-{place.device}"
    model = str(pretrained(chosen.out / named, words, lambda _dice: ("a", "b"), place.shape))
    names = chosen.contestants.split(",")
    found: dict[str, Any] = {}
    for kind in chosen.lengths.split(","):
        print(
            f"\n{kind} lengths: {ROWS} rows, {PROMPT} + {place.mean} tokens on average", flush=True
        )
        turns: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        with tempfile.TemporaryDirectory() as folder:
            trainers = {
                name: theirs(kind, model, Path(folder), place)
                if name == "trl"
                else ours(name, kind, model, Path(folder), place)
                for name in names
            }
            for number in range(-1, chosen.rounds):  # the first warms up
                first = number % len(names)
                for name in names[first:] + names[:first]:
                    took = turn(trainers[name], kind, place.mean)
                    turns[name] += [took] if number >= 0 else []
        _table(turns, place.figure)
        found[kind] = turns
    keep(chosen.out / "trainer-update.json", found)
    print(f"\n{chosen.out / 'trainer-update.json'}")


def _table(turns: Mapping[str, list[dict[str, float]]], figure: str) -> None:
    """Prints a line for each contestant, and its ratio to TRL's, round by round."""
    print(
        f"{'':>12}{'seconds an update, median [min, max]':>40}{'CPU s':>8}{'padding':>9}"
        f"   {figure} to TRL's, median and mean of rounds"
    )
    for name, rounds in turns.items():
        ratios = [a[figure] / b[figure] for a, b in zip(rounds, turns.get("trl", []), strict=False)]
        cpu_s, padding = (
            statistics.median(one[key] for one in rounds) for key in ("cpu_s", "padding")
        )
        against = f"{statistics.median(ratios):.2f}, {told(estimate(ratios))}" if ratios else ""
        times = spread([one["update_s"] for one in rounds])
        print(f"{name:>12}{times:>40}{cpu_s:>8.3f}{padding:>9.2f}   {against}", flush=True)
