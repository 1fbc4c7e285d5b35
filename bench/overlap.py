"""How long a step waits for its rewards: scored as responses end, or after the last one has ended.

    python -m bench overlap --out DIR --rounds 3

The stops miniature (experiments.tasks): responses of 32 to 288 milestones, a quarter of those
that reach a stop end there, so that a batch has lengths as reasoning has. The judge takes `ITEM_S`
for a response, `WORKERS` at a time: it waits and does not compute, as a service on other cores.

    assay, streamed   `assay train`: a response goes to the judge when its row has its last token
    assay, after      the same run, each response held back until generation has ended
    TRL, after        GRPOTrainer with `reward_function` of assay.clients.trainers.trl, which TRL
                      calls when the whole batch is generated; it has no hook before that
    TRL, streamed     the same with `assay.clients.trainers.trl_streaming.stream_rewards`

each with the batch generated at once, and for assay also in parts of `PART`. Arms take turns. A
step's wait is `score_wait_s` of `assay train`, and the time in `_calculate_rewards` of TRL.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from experiments.miniature import Service, as_data, keep, over_seeds, pretrained, told, train
from experiments.tasks import (
    ROAD_LIMIT,
    ROAD_PROMPTS,
    ROAD_SHAPE,
    ROAD_WORDS,
    drawn_stops,
    stops_right,
)

from assay.clients import Result, RewardClient
from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.core import rewards
from assay.trainer.engines.types import Request, Response
from assay.trainer.records.folder import RunFolder
from assay.trainer.rollouts.scoring import StreamingRound
from assay.trainer.settings import config as configs

CONFIG = Path(__file__).parent.parent / "configs" / "grpo.toml"
ITEM_S, WORKERS = 0.2, 4
PROMPTS, GROUP, PART = 4, 8, 8
WARM_STEPS = 2
Arm = Callable[[Path, Path, int], list[dict[str, float]]]


class AfterTheFact(StreamingRound):
    """A round whose responses go to the service when all of them are there."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._held: list[tuple[Request, Response]] = []

    def submit(self, request: Request, response: Response) -> None:
        """Keeps it."""
        self._held.append((request, response))

    def results(self) -> list[Result]:
        """Sends what is kept, and waits for all."""
        for request, response in self._held:
            super().submit(request, response)
        self._held.clear()
        return super().results()


def judge() -> Service:
    """Slow, and a service of its own for each run."""
    return Service(stops_right(0), item_s=ITEM_S, workers=WORKERS)


def assay(round_type: type[StreamingRound], part: int) -> Arm:
    """`assay train` with this way of scoring."""

    def one(model: Path, folder: Path, steps: int) -> list[dict[str, float]]:
        problems = folder.parent / "problems.jsonl"
        config = configs.load(
            CONFIG,
            (
                f"model.name={model}", f"data.path={problems}", "data.template={question}",
                "model.device=cpu", "model.precision=float32",
                "model.gradient_checkpointing=false", "reward.verifier=miniature",
                f"rollout.prompts_per_step={PROMPTS}", f"rollout.group_size={GROUP}",
                f"rollout.batch={part}", f"rollout.max_new_tokens={ROAD_LIMIT}",
                "optim.micro_batch=0", "optim.learning_rate=1e-6", "eval.prompts=0",
                "run.checkpoint_every=0", "run.samples_every=0", "run.report_to=[]",
                f"run.steps={steps}",
            ),
        )  # fmt: skip
        with mock.patch.object(rewards, "StreamingRound", round_type):
            train(config, folder, judge)
        rows = read_rows(RunFolder(folder).metrics)
        return [
            {
                "wait_s": row["score_wait_s"],
                "generate_s": row["generate_s"],
                "step_s": row["step_s"],
            }
            for row in rows
        ]

    return one


def trl(model: Path, folder: Path, steps: int, *, streamed: bool) -> list[dict[str, float]]:
    """TRL's own trainer on the same model and judge."""
    from datasets import Dataset  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415
    from trl import GRPOConfig, GRPOTrainer  # noqa: PLC0415

    from assay.clients.trainers.trl import reward_function  # noqa: PLC0415
    from assay.clients.trainers.trl_streaming import stream_rewards  # noqa: PLC0415

    found: list[dict[str, float]] = []

    class Timed(GRPOTrainer):  # type: ignore[misc]  # TRL is not typed
        """Notes how long a step takes, and how long of that its rewards."""

        wait_s = 0.0

        def _calculate_rewards(self, *arguments: Any) -> Any:
            began = time.perf_counter()
            calculated = super()._calculate_rewards(*arguments)
            self.wait_s += time.perf_counter() - began
            return calculated

        def _generate(self, *arguments: Any) -> Any:
            began = time.perf_counter()
            generated = super()._generate(*arguments)
            self.generate_s = time.perf_counter() - began
            return generated

        def training_step(self, *arguments: Any) -> Any:
            self.wait_s, began = 0.0, time.perf_counter()
            loss = super().training_step(*arguments)
            step_s = time.perf_counter() - began
            found.append({"wait_s": self.wait_s, "generate_s": self.generate_s, "step_s": step_s})
            return loss

    with RewardClient("bench", transport=judge) as client:
        reward = reward_function(client, verifier="miniature")
        trainer = Timed(
            model=AutoModelForCausalLM.from_pretrained(model),
            processing_class=AutoTokenizer.from_pretrained(model),
            reward_funcs=reward,
            train_dataset=Dataset.from_list([
                {"prompt": prompt, "reference": "-"} for prompt in ROAD_PROMPTS
            ]),
            args=GRPOConfig(
                output_dir=str(folder), per_device_train_batch_size=PROMPTS * GROUP,
                num_generations=GROUP, max_completion_length=ROAD_LIMIT, max_steps=steps,
                learning_rate=1e-6, use_cpu=True, bf16=False, gradient_checkpointing=False,
                save_strategy="no", report_to="none", disable_tqdm=True,
            ),
        )  # fmt: skip
        if streamed:
            stream_rewards(trainer, reward)
        with contextlib.redirect_stdout(io.StringIO()):
            trainer.train()
    return found


ARMS: dict[str, Arm] = {
    "assay, streamed": assay(StreamingRound, 0),
    "assay, after": assay(AfterTheFact, 0),
    f"assay, streamed, parts of {PART}": assay(StreamingRound, PART),
    f"assay, after, parts of {PART}": assay(AfterTheFact, PART),
    "TRL, streamed": functools.partial(trl, streamed=True),
    "TRL, after": functools.partial(trl, streamed=False),
}


def run(options: Sequence[str]) -> None:
    """Runs the arms by turns; prints medians over rounds of medians over steps."""
    parser = argparse.ArgumentParser(prog="bench overlap")
    parser.add_argument("--out", type=Path, default=Path("runs/bench/overlap"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    chosen = parser.parse_args(options)
    environment.keep_freed_memory()
    environment.calm()
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    model = pretrained(chosen.out / "stops", ROAD_WORDS, drawn_stops, ROAD_SHAPE)
    problems = "".join(f'{{"question": "{p}", "answer": "-"}}\n' for p in ROAD_PROMPTS)
    (chosen.out / "problems.jsonl").write_text(problems, encoding="utf-8")
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ARMS}
    names = list(ARMS)
    for turn in range(chosen.rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            folder = chosen.out / name.replace(",", "").replace(" ", "-")
            steps = ARMS[name](model, folder, chosen.steps)[WARM_STEPS:]
            medians = {key: statistics.median(step[key] for step in steps) for key in steps[0]}
            found[name].append(medians)
            print(f"  round {turn + 1}, {name}: waits {medians['wait_s']:.2f} s")
    keep(chosen.out / "overlap.json", {"rounds": found, **_table(found)})


def _table(found: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    judging_s = PROMPTS * GROUP * ITEM_S / WORKERS
    print(f"\n{PROMPTS * GROUP} responses, {judging_s:.1f} s of judging a step")
    print(f"{'':<30}{'generates':>10}{'waits':>8}{'a step':>8}   seconds; wait against `after`")
    told_of = {}
    for name, rounds in found.items():
        medians = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        base = found[name.replace("streamed", "after")]
        ratios = [one["wait_s"] / other["wait_s"] for one, other in zip(rounds, base, strict=True)]
        ratio = over_seeds(dict(enumerate(ratios)))
        told_of[name] = {**medians, "ratio": as_data(ratio)}
        print(
            f"{name:<30}{medians['generate_s']:>10.2f}{medians['wait_s']:>8.2f}"
            f"{medians['step_s']:>8.2f}   {told(ratio, 2) if 'streamed' in name else ''}"
        )
    return {"medians": told_of}
