"""A training step beside TRL's own GRPOTrainer: time, memory, and what a slow verifier costs.

    python -m bench trainer-step --out DIR                       both models, both verifiers
    python -m bench trainer-step --models counting --rounds 3    some of it
    python -m bench trainer-step --models qwen3-0.6b --judges instant --rounds 3     on a GPU

The same weights, prompts, batch, optimizer and judge on both sides. Contestants take turns, each
turn in a fresh process, with the same seed; a turn's figure is the median over its steps but the
first ones. Both sides run with the allocator settings of `assay train` (environment.py), which are
good for either.

    assay       the run of `assay train`, records and all; responses stream to the judge as they end
    assay-paged the same, on the engine `paged`
    trl         GRPOTrainer with a plain function in the process: no client, no service
    trl-sync    GRPOTrainer with the same judge behind RewardClient (assay.clients.trainers.trl)
    trl-async   the same behind AsyncRewardClient, which TRL awaits

With an instant judge: assay against trl (aim: at most 3 % slower). With a slow one, which takes
`item_s` seconds for an item and so many items at a time: assay against trl-sync and trl-async (aim:
faster by the whole scoring time). The judge waits and does not compute: it stands for a service on
other cores.

On a CUDA device the same commands run there, and memory is the device's. `qwen3-0.6b` is for one:
the shape of Qwen3-0.6B with random weights, made on the spot, whose responses all reach the limit.
"""

from __future__ import annotations

import argparse
import cProfile
import itertools
import json
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from experiments.miniature import (
    Item,
    Job,
    Service,
    as_data,
    keep,
    read,
    tokenizer_of,
    told,
    work_off,
    write_problems,
)
from experiments.tasks import LIMIT, counting, counts_right
from transformers import TrainerCallback

from assay.kit.runs import environment
from assay.trainer.recipes.ladder.stats import SeedMean, estimate
from bench.common import spread

INSTANT, SLOW = ("assay", "trl", "trl-sync"), ("assay", "trl-sync", "trl-async")


@dataclass(frozen=True, slots=True)
class Workload:
    """What both sides train.

    Attributes:
        task: which responses are right.
        model: a folder, or a name that `assay train` takes.
        data: problems as .jsonl.
        template: of the user's message.
        prompts: in a step.
        group: samples of each.
        limit: tokens of a response.
        learning_rate: of AdamW.
        item_s: what the slow judge takes for an item.
        workers: items that it judges at a time.
        steps: of a turn.
        warm: the first of them, which are not counted.
        micro_batch: samples in a pass of an update, 0 for all.
    """

    task: str
    model: str
    data: str
    template: str
    prompts: int
    group: int
    limit: int
    learning_rate: float
    item_s: float
    workers: int
    steps: int
    warm: int = 3
    micro_batch: int = 0

    @property
    def scoring_s(self) -> float:
        """What scoring a whole batch takes, all of it at hand."""
        return -(-self.prompts * self.group // self.workers) * self.item_s


def counting_load(folder: Path, steps: int) -> Workload:
    """A model of 0.1 M weights: what is left of a step is what trainers do around it."""
    model, train, _ = counting(folder)
    return Workload(
        task="counting",
        model=str(model),
        data=str(train),
        template="{question}",
        prompts=32,
        group=8,
        limit=LIMIT,
        learning_rate=1e-4,
        item_s=0.008,
        workers=16,
        steps=steps,
    )


def smollm2_load(folder: Path, steps: int) -> Workload:
    """SmolLM2-135M-Instruct: what a step is where the model is the most of it."""
    pairs = [(a, b) for a in range(10, 60, 7) for b in range(3, 30, 5)]
    problems = ((f"What is {a} + {b}?", str(a + b)) for a, b in pairs)
    return Workload(
        task="smollm2",
        model="smollm2-135m-instruct",
        data=str(write_problems(folder / "smollm2-train.jsonl", problems)),
        template="{question} Answer with the number, or with one short sentence.",
        prompts=4,
        group=4,
        limit=32,
        learning_rate=1e-6,
        item_s=0.25,
        workers=4,
        steps=steps,
    )


def qwen3_load(folder: Path, steps: int) -> Workload:
    """Qwen3-0.6B's shape with random weights: a GPU's load, without a hub. Small on a CPU."""
    import torch  # noqa: PLC0415

    full = torch.cuda.is_available()
    problems = ((f"<{n}><{n + 1}>", str(n)) for n in range(100, 200))
    return Workload(
        task="counting",
        model=str(_qwen3(folder / "qwen3-0.6b", full=full)),
        data=str(write_problems(folder / "qwen3-train.jsonl", problems)),
        template="{question}",
        prompts=16,
        group=8,
        limit=128 if full else 8,
        learning_rate=1e-6,
        item_s=0.008,
        workers=16,
        steps=steps,
        warm=1,
        micro_batch=16,
    )


def _qwen3(folder: Path, *, full: bool) -> Path:
    """The model, written once. Its tokens are `<0>`, `<1>`, ..."""
    import torch  # noqa: PLC0415
    from transformers import Qwen3Config, Qwen3ForCausalLM  # noqa: PLC0415

    if (folder / "config.json").is_file():
        return folder
    torch.manual_seed(0)
    vocabulary = 151_936 if full else 400
    tokenizer = tokenizer_of([f"<{n}>" for n in range(vocabulary - 3)], pattern="<[^>]+>")
    settings = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=1024 if full else 64,
        intermediate_size=3072 if full else 128,
        num_hidden_layers=28 if full else 2,
        num_attention_heads=16 if full else 2,
        num_key_value_heads=8 if full else 1,
        head_dim=128 if full else 32,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    Qwen3ForCausalLM(settings).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


LOADS: dict[str, tuple[Callable[[Path, int], Workload], int]] = {
    "counting": (counting_load, 33),
    "smollm2": (smollm2_load, 8),
    "qwen3-0.6b": (qwen3_load, 4),
}
DEFAULT = "counting,smollm2"


def names_the_number(item: Item) -> bool:
    """The last number of the response is the reference."""
    numbers = re.findall(r"\d+", item.response)
    return bool(numbers) and numbers[-1] == item.reference.text


RIGHT = {"counting": counts_right, "smollm2": names_the_number}


# One turn, in its own process.


class Clock(TrainerCallback):
    """Reads the clocks where a step begins, and memory where one ends; the same on both sides."""

    readings: ClassVar[list[tuple[float, float]]] = []
    at_start_mb = peak_mb = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Wall time and the process's CPU time."""
        if not Clock.readings:
            Clock.at_start_mb = peak_mb()
        Clock.readings.append((time.perf_counter(), time.process_time()))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The peak so far: what is loaded after the last step does not count."""
        Clock.peak_mb = peak_mb()


def peak_mb() -> float:
    """The most resident memory that the process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def turn(name: str, load: Workload, *, slow: bool, folder: Path) -> dict[str, Any]:
    """Trains `steps` steps and says what they took."""
    from transformers import trainer as transformers_trainer  # noqa: PLC0415

    transformers_trainer.DEFAULT_CALLBACKS.append(Clock)
    right = RIGHT[load.task]

    def service() -> Service:
        return Service(
            right, rewards=(0.0, 1.0), item_s=load.item_s if slow else 0.0, workers=load.workers
        )

    own = name in BACKENDS
    parts = ours(name, load, service, folder) if own else theirs(name, load, service, folder)
    wall, cpu = zip(*Clock.readings, strict=True)
    between = [b - a for a, b in itertools.pairwise(wall)][load.warm :]
    cpu_between = [b - a for a, b in itertools.pairwise(cpu)][load.warm :]
    return {
        "contestant": name,
        "slow": slow,
        "scoring_s": load.scoring_s,
        "step_s": statistics.median(between),
        "steps_s": between,
        "cpu_s": statistics.median(cpu_between),
        "at_start_mb": Clock.at_start_mb,
        "peak_mb": Clock.peak_mb,
        **parts,
    }


BACKENDS = {"assay": "hf", "assay-paged": "paged"}


def settings(load: Workload, backend: str = "hf") -> Any:
    """Ours, as a Config: GRPO with a token-level loss, which is TRL's default."""
    from assay.trainer.settings import config  # noqa: PLC0415

    tree = {
        "model": {"name": load.model},
        "data": {"source": "jsonl", "path": load.data, "template": load.template},
        "reward": {"verifier": "miniature"},
        "method": {"loss": {"aggregation": "token-mean"}},
        "optim": {"learning_rate": load.learning_rate, "micro_batch": load.micro_batch},
        "rollout": {
            "backend": backend,
            "prompts_per_step": load.prompts,
            "group_size": load.group,
            "max_new_tokens": load.limit,
        },
        "eval": {"prompts": 0},
        "run": {"steps": load.steps, "checkpoint_every": 0, "report_to": []},
    }
    import torch  # noqa: PLC0415

    if not torch.cuda.is_available():
        tree["model"]["precision"] = "float32"
    return config.build(tree, origin="bench")


def ours(name: str, load: Workload, service: Callable[[], Service], folder: Path) -> dict[str, Any]:
    """A run of `assay train`."""
    from experiments.miniature import train  # noqa: PLC0415

    from assay.kit.runs.records import read_rows  # noqa: PLC0415
    from assay.trainer.records.folder import RunFolder  # noqa: PLC0415

    train(settings(load, BACKENDS[name]), folder, service)
    rows = read_rows(RunFolder(folder).metrics)[load.warm :]
    names = ("generate_s", "score_wait_s", "train_s", "response_length", "reward")
    medians = {name: statistics.median(row[name] for row in rows) for name in names}
    peaks = [row["peak_memory_gib"] for row in rows if row["peak_memory_gib"] is not None]
    return {**medians, **({"peak_mb": 1024 * max(peaks), "at_start_mb": 0.0} if peaks else {})}


def theirs(
    name: str, load: Workload, service: Callable[[], Service], folder: Path
) -> dict[str, Any]:
    """TRL's trainer as it is, on the same weights and prompts."""
    import torch  # noqa: PLC0415
    from datasets import Dataset  # noqa: PLC0415
    from transformers import PrinterCallback, ProgressCallback  # noqa: PLC0415
    from trl import GRPOConfig, GRPOTrainer  # noqa: PLC0415

    from assay.trainer.data.problems import load_problems, render  # noqa: PLC0415
    from assay.trainer.engines.models import load_policy  # noqa: PLC0415

    config = settings(load)
    policy = load_policy(config.model, print)
    problems = load_problems(config.data, eval_prompts=0).train
    rows = {
        "prompt": [render(problem, policy.tokenizer) for problem in problems],
        "answer": [str(problem.reference) for problem in problems],
    }
    seen: dict[str, list[float]] = {"completions/mean_length": [], "reward": []}

    class Logs(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            for key, values in seen.items():
                if key in logs:
                    values.append(logs[key])

    on_cuda = policy.model.device.type == "cuda"
    passes = load.prompts * load.group // load.micro_batch if load.micro_batch else 1
    trainer = GRPOTrainer(
        model=policy.model,
        processing_class=policy.tokenizer,
        reward_funcs=_judge(name, load, service),
        train_dataset=Dataset.from_dict(rows),
        callbacks=[Logs()],
        args=GRPOConfig(
            output_dir=str(folder),
            per_device_train_batch_size=load.micro_batch or load.prompts * load.group,
            gradient_accumulation_steps=passes,
            num_generations=load.group,
            max_steps=load.steps,
            max_completion_length=load.limit,
            learning_rate=load.learning_rate,
            lr_scheduler_type="constant",
            optim="adamw_torch_fused",
            beta=0.0,
            use_cpu=not on_cuda,
            bf16=policy.mixed,
            gradient_checkpointing=False,
            dataloader_pin_memory=on_cuda,
            save_strategy="no",
            logging_steps=1,
            disable_tqdm=True,
            report_to="none",
        ),
    )
    for noisy in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(noisy)
    trainer.train()
    length, reward = (statistics.median(values[load.warm :]) for values in seen.values())
    peak = {"peak_mb": torch.cuda.max_memory_allocated() / 2**20, "at_start_mb": 0.0}
    return {"response_length": length, "reward": reward, **(peak if on_cuda else {})}


def _judge(name: str, load: Workload, service: Callable[[], Service]) -> Any:
    """TRL's reward function."""
    from assay.clients import AsyncRewardClient, RewardClient  # noqa: PLC0415
    from assay.clients.trainers.trl import reward_function, sync_reward_function  # noqa: PLC0415

    if name == "trl-sync":
        return sync_reward_function(RewardClient(transport=service), verifier="miniature")
    if name == "trl-async":
        client = AsyncRewardClient(transport=service())
        return reward_function(client, verifier="miniature")
    right = RIGHT[load.task]

    def plain(
        completions: Sequence[str], answer: Sequence[str], completion_ids: Any, **_: Any
    ) -> list[float]:
        items = [Item(response=text) for text in completions]
        for item, reference in zip(items, answer, strict=True):
            item.reference.text = reference
        return [float(right(item)) for item in items]

    return plain


# All turns.


def run(options: Sequence[str]) -> None:
    """Measures what is asked for, prints a table for each model and judge, and keeps all turns."""
    chosen = _options(options)
    environment.calm()
    found: dict[str, Any] = {}
    for model in chosen.models.split(","):
        make, steps = LOADS[model]
        load = make(chosen.out / "models", chosen.steps or steps)
        for judge in chosen.judges.split(","):
            title = f"{model}, {judge} judge"
            print(f"\n{title}: {load.prompts} prompts x {load.group} samples, {load.limit} tokens")
            turns = _turns(model, judge, load, chosen)
            if turns:
                found[title] = _table(judge, load, turns)
    keep(chosen.out / "trainer-step.json", found)
    print(f"\n{chosen.out / 'trainer-step.json'}")


def _options(options: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench trainer-step", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/bench/trainer-step"))
    parser.add_argument("--models", default=DEFAULT, help="which, with commas")
    parser.add_argument("--judges", default="instant,slow", help="which, with commas")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contestant")
    parser.add_argument("--steps", type=int, default=0, help="of a turn")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--contestants", default="", help="which, with commas")
    return parser.parse_args(options)


def _turns(
    model: str, judge: str, load: Workload, chosen: argparse.Namespace
) -> list[dict[str, Any]]:
    """The turns of a table; those that are there from before are not taken again."""
    names = chosen.contestants.split(",") if chosen.contestants else _contestants(judge)
    jobs = []
    for number in range(chosen.rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            result = chosen.out / f"{model}-{judge}" / f"{number}-{name}.json"
            told_to = {"name": name, "slow": judge == "slow", "load": asdict(load)}
            arguments = ("-m", "bench.trainer_step", json.dumps(told_to), str(result))
            jobs.append(Job(f"round {number}, {name}", arguments, result))
    return [
        {**read(job.result), "round": int(job.result.stem.split("-")[0])}
        for job in work_off(jobs, 1, threads=chosen.threads)
    ]


def _contestants(judge: str) -> list[str]:
    return list(SLOW if judge == "slow" else INSTANT)


def _table(judge: str, load: Workload, turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Prints a line for each contestant, and ours against each of the others, round by round."""
    by_name: dict[str, dict[int, dict[str, Any]]] = {}
    for one in turns:
        by_name.setdefault(one["contestant"], {})[one["round"]] = one
    print(
        f"{'':>10}{'seconds a step, median [min, max] of rounds':>46}{'CPU s':>8}{'peak MiB':>10}"
        f"{'+ in steps':>11}{'tokens':>8}"
    )
    for name, rounds in by_name.items():
        cpu, peak, start, length = (
            statistics.median(one[key] for one in rounds.values())
            for key in ("cpu_s", "peak_mb", "at_start_mb", "response_length")
        )
        print(
            f"{name:>10}{spread([one['step_s'] for one in rounds.values()]):>46}{cpu:>8.3f}"
            f"{peak:>10.0f}{peak - start:>11.0f}{length:>8.1f}"
        )
    ours_by_round = by_name.pop("assay", {})
    against = {name: _against(ours_by_round, rounds) for name, rounds in by_name.items()}
    for name, figures in against.items():
        print(f"  assay against {name}, means over rounds [95 %]:")
        print(f"    step time, ratio   {told(figures['step_ratio'])}")
        print(f"    CPU time, ratio    {told(figures['cpu_ratio'])}")
        print(f"    peak memory, ratio {told(figures['peak_ratio'])}")
        if judge == "slow":
            share = f"{told(figures['saved_share'], 2)} of the scoring time of {load.scoring_s:g} s"
            print(f"    seconds saved      {told(figures['saved_s'])}, {share}")
    if ours_by_round:
        parts = ("generate_s", "score_wait_s", "train_s")
        medians = (statistics.median(one[p] for one in ours_by_round.values()) for p in parts)
        print("  assay: " + ", ".join(f"{p} {m:.3f}" for p, m in zip(parts, medians, strict=True)))
    return {
        "load": asdict(load),
        "turns": turns,
        "against": {n: {k: as_data(v) for k, v in f.items()} for n, f in against.items()},
    }


def _against(
    ours_by_round: Mapping[int, Mapping[str, Any]], theirs_by_round: Mapping[int, Mapping[str, Any]]
) -> dict[str, SeedMean | None]:
    """Ours over theirs, and theirs less ours, in each round that both finished."""
    pairs = [
        (ours_by_round[number], other)
        for number, other in theirs_by_round.items()
        if number in ours_by_round
    ]
    saved = [other["step_s"] - own["step_s"] for own, other in pairs]
    scoring = [own["scoring_s"] for own, _ in pairs]
    return {
        "step_ratio": estimate([own["step_s"] / other["step_s"] for own, other in pairs]),
        "cpu_ratio": estimate([own["cpu_s"] / other["cpu_s"] for own, other in pairs]),
        "peak_ratio": estimate([own["peak_mb"] / other["peak_mb"] for own, other in pairs]),
        "saved_s": estimate(saved),
        "saved_share": estimate([s / all_ for s, all_ in zip(saved, scoring, strict=True)]),
    }


def main(told_to: str, result: str) -> None:
    """One turn: what `_turns` starts. BENCH_PROFILE names a file for cProfile's figures."""
    environment.keep_freed_memory()
    environment.calm()
    wanted = json.loads(told_to)
    profile = cProfile.Profile() if os.environ.get("BENCH_PROFILE") else None
    if profile:
        profile.enable()
    with tempfile.TemporaryDirectory() as folder:
        figures = turn(
            wanted["name"], Workload(**wanted["load"]), slow=wanted["slow"], folder=Path(folder)
        )
    if profile:
        profile.dump_stats(os.environ["BENCH_PROFILE"])
    keep(Path(result), figures)


if __name__ == "__main__":
    main(*sys.argv[1:])
