"""A policy that verifies itself (PAG, arXiv 2506.10406), in miniature: what the verifier learns.

    python -m bench trainer-pag --out DIR --seeds 0,1,2

Two miniatures. `--parts tables` has no model: see turns_table.py. `--parts runs` trains a model of
0.1 M weights with the rungs of configs/ladders/pag.toml, and with configs/direct_multi_turn.toml.

The task is to add five digits modulo 8, "25000=" to "36174=". A first attempt is one digit, at a
glance: sums of two digits are mostly right, sums of three seldom, and those of five by chance.
Asked to verify ("?"), the policy adds up three digits step by step, rightly, and then says "The
answer is correct." 94 times in a hundred, whatever it found; asked to compare ("%", which no run
ever asks), it mostly says what is true where it can know. So it can tell a wrong answer from a
right one, and when it verifies it does not. Sums of five are beyond it; that its answer to one of
these is probably wrong it can learn. Asked again ("!"), it mostly repeats its answer, and now and
then says what it found. So a revision repairs sums of two and of three digits, and no others.

All runs share the sizes of `SMALL`. Recalls and accuracies are those of the evaluations before and
after a run: `HELD_OUT` problems, eight sampled dialogues of each. The runs of a seed are in a
process of their own; those that are done are not repeated. Signs and orderings are what this can
show, and no magnitudes.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from assay.clients.runs import environment
from assay.clients.runs.records import read_rows
from assay.trainer import config as configs
from assay.trainer.config import Config
from assay.trainer.folder import RunFolder
from assay.trainer.ladder import plan
from assay.trainer.ladder.outcome import series
from assay.trainer.ladder.stats import difference
from bench import turns_table
from bench.miniature import (
    END,
    Item,
    Job,
    Service,
    Shape,
    as_data,
    keep,
    over_seeds,
    pretrained,
    read,
    told,
    train,
    work_off,
    write_problems,
)

CONFIGS = Path(__file__).parents[1] / "configs"
LADDER = CONFIGS / "ladders" / "pag.toml"
BASELINE = "direct_multi_turn"
POORLY = ("pag", "final-reward-only")
"""Rungs that are also run with the model that revises poorly."""
VERIFY, REVISE, COMPARE = "?", "!", "%"
SAYS = {True: "The answer is correct.", False: "The answer is wrong."}
MODULUS = 8
SHORT, MIDDLE, LONG = 2, 3, 5
"""Digits of a problem that may be other than zero: it is right at a glance; step by step; never."""
SHARES = {SHORT: 0.45, MIDDLE: 0.2, LONG: 0.35}
WORDS = (*map(str, range(MODULUS)), "=", VERIFY, REVISE, COMPARE, *SAYS.values())
SHAPE = Shape(width=64, layers=2, context=32, steps=1300, batch=128, learning_rate=5e-3)
NOTICES = 0.06
"""Verifications that say "wrong", of right and of wrong attempts alike."""
REVISIONS = {"": (0.45, 0.3), "-poor-reviser": (0.5, 0.15)}
"""Of two pretrained models: revisions that keep the answer, and that say what was found."""
PROBLEMS, HELD_OUT = 600, 80
SMALL = (
    "data.template={question}",
    "reward.verifier=miniature",
    "model.gradient_checkpointing=false",
    "model.precision=float32",
    f"algorithm.turns.verify_prompt={VERIFY}",
    f"algorithm.turns.revise_prompt={REVISE}",
    f"algorithm.turns.reconsider_prompt={REVISE}",
    "algorithm.critic.warmup_steps=0",
    "algorithm.critic.learning_rate=2e-3",
    "optim.learning_rate=3e-4",
    "optim.warmup_steps=0",
    "optim.mini_batches=2",
    "optim.micro_batch=0",
    "rollout.prompts_per_step=32",
    "rollout.group_size=4",
    "rollout.max_new_tokens=6",
    f"eval.prompts={HELD_OUT}",
    "eval.samples=8",
    "eval.batch_size=1000",
    "eval.temperature=1.0",
    "eval.top_p=1.0",
    "eval.show=0",
    "run.checkpoint_every=0",
    "run.samples_every=0",
    "run.report_to=[]",
)
FIGURES = (
    "first_correct",
    "final_correct",
    "wrong_recall",
    "correct_recall",
    "verifier_accuracy",
    "revised",
    "answer_changed",
    "incorrect_to_correct",
    "correct_to_incorrect",
    "unparsed",
    "best_of_n",
    "first_majority",
)


TABLE_FIGURES = (
    "first_correct",
    "final_correct",
    "wrong_recall",
    "correct_recall",
    "revised",
    "answer_changed",
)
GAPS = (
    ("final less first", "final_correct", "first_correct"),
    ("best of n less majority", "best_of_n", "first_majority"),
)
PANELS = (
    ("turns_wrong_recall", "recall of wrong attempts"),
    ("turns_correct_recall", "recall of correct attempts"),
    ("turns_first_correct", "first attempts correct"),
    ("turns_final_correct", "last attempts correct"),
    ("turns_answer_changed", "revisions that change the answer"),
)
DRAWN = {
    "pag": "#0072B2",
    "without-turn-independence": "#D55E00",
    "final-reward-only": "#009E73",
    "without-first-attempt-reward": "#E69F00",
    "always-revise": "#CC79A7",
    BASELINE: "#000000",
}
"""Contestants in the picture, in Okabe and Ito's colours."""


def drawn_sum(dice: random.Random) -> list[int]:
    """The digits to add."""
    some = dice.choices(list(SHARES), list(SHARES.values()))[0]
    return [dice.randrange(MODULUS) if n < some else 0 for n in range(LONG)]


def asked(digits: Sequence[int]) -> tuple[str, str]:
    """The prompt and its answer."""
    return "".join(map(str, digits)) + "=", str(sum(digits) % MODULUS)


def drawn_turns(dice: random.Random, reviser: str = "") -> tuple[str, str]:
    """What was said before, and what the policy says, with the weaknesses of the pretrained model.

    Two thirds are an attempt with its verification, many of them honest ones that are asked for
    in other words; what stands between the turns is learnt with them and never generated. The
    others are revisions, and second attempts.
    """
    digits = drawn_sum(dice)
    prompt, right = asked(digits)
    wrongly = 0.15 if not any(digits[SHORT:]) else 0.5
    first = str(dice.randrange(MODULUS)) if dice.random() < wrongly else right
    steps = "".join(str(sum(digits[: n + 1]) % MODULUS) for n in range(MIDDLE))
    another = str(dice.randrange(MODULUS))
    keeps, repairs = REVISIONS[reviser]
    kind, luck = dice.random(), dice.random()
    if kind < 0.35:
        notices = dice.random() < NOTICES
        return prompt, f"{first}{END}{VERIFY}{steps}{SAYS[not notices]}"
    if kind < 0.65:
        return prompt, f"{first}{END}{COMPARE}{steps}{SAYS[right == first]}"
    if kind < 0.75:
        return f"{prompt}{first}{END}{REVISE}", first if luck < keeps else another
    said = SAYS[kind < 0.85]
    second = first if luck < keeps else steps[-1] if luck < keeps + repairs else another
    return f"{prompt}{first}{END}{VERIFY}{steps}{said}{END}{REVISE}", second


def is_right(item: Item) -> bool:
    """The very digit."""
    return item.response.strip() == item.reference.text


def problems(folder: Path, shape: Shape = SHAPE, reviser: str = "") -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems and the held-out ones."""
    draw = partial(drawn_turns, reviser=reviser)
    model = pretrained(folder / f"verifier{reviser}", WORDS, draw, shape)
    train, test = folder / "sums-train.jsonl", folder / "sums-test.jsonl"
    if test.is_file():  # written last; runs that go at the same time must not write it anew
        return model, train, test
    dice = random.Random(0)
    held_out: list[tuple[str, str]] = []
    rows: list[tuple[str, str]] = []
    for some, share in SHARES.items():
        zeros = [0] * (LONG - some)
        every = {
            asked([*(dice.randrange(MODULUS) for _ in range(some)), *zeros]) for _ in range(600)
        }
        kind = sorted(every)
        dice.shuffle(kind)
        half = round(share * HELD_OUT)
        held_out += kind[:half]
        rows += [kind[half + n % (len(kind) - half)] for n in range(round(share * PROBLEMS))]
    return model, write_problems(train, rows), write_problems(test, held_out)


def contestants(models: Path, seeds: tuple[int, ...], steps: int) -> dict[str, dict[int, Config]]:
    """The rungs of the ladder with the miniature's sizes, and a baseline; by name and seed.

    Of two rungs also those of a model that revises poorly.
    """
    found: dict[str, dict[int, Config]] = {}
    for reviser in REVISIONS:
        own = _own(models, steps, reviser)
        for rung in plan.load(LADDER, own, seeds=seeds).rungs:
            if not reviser or rung.name in POORLY:
                found[f"{rung.name}{reviser}"] = dict(rung.configs)
    own = _own(models, steps, "")
    found[BASELINE] = {
        seed: configs.load(CONFIGS / f"{BASELINE}.toml", (*own, f"run.seed={seed}"))
        for seed in seeds
    }
    return found


def _own(models: Path, steps: int, reviser: str) -> tuple[str, ...]:
    model, rows, held_out = problems(models, reviser=reviser)
    return (
        *SMALL,
        f"model.name={model}",
        f"data.path={rows}",
        f"data.eval_path={held_out}",
        f"run.steps={steps}",
    )


def one_run(config: Config, folder: Path) -> dict[str, Any]:
    """Trains, and says how the dialogues go before and afterwards."""
    report = train(config, folder, lambda: Service(is_right, rewards=(0.0, 1.0)))
    rows = read_rows(RunFolder(folder).metrics)

    def mean(key: str, some: Sequence[Mapping[str, Any]]) -> float | None:
        values = [row[key] for row in some if row.get(key) is not None]
        return statistics.fmean(values) if values else None

    tenth = rows[-max(1, len(rows) // 10) :]
    return {
        "before": {key: report["before"]["turns"].get(f"turns_{key}") for key in FIGURES},
        "after": {key: report["after"]["turns"].get(f"turns_{key}") for key in FIGURES},
        "training": {key: mean(f"turns_{key}", tenth) for key in FIGURES},
        "train_s": report["run"]["train_s"],
    }


# All runs.


def run(options: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints what is known so far."""
    parser = argparse.ArgumentParser(prog="bench trainer-pag")
    parser.add_argument("--out", type=Path, default=Path("runs/bench/trainer-pag"))
    parser.add_argument("--parts", default="tables,runs")
    parser.add_argument("--only", default="", help="rungs, with commas; all by default")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=40, help="of each run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, a core each")
    chosen = parser.parse_args(options)
    environment.calm()
    seeds, parts = plan.read_seeds(chosen.seeds), chosen.parts.split(",")
    chosen.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    if "tables" in parts:
        found["tables"] = _tables(seeds)
    if "runs" in parts:
        found["runs"] = _runs(chosen, seeds)
    keep(chosen.out / f"trainer-pag-{'-'.join(parts)}-{chosen.steps}.json", found)


def _tables(seeds: Sequence[int]) -> dict[str, Any]:
    """The policy in tables, before and after."""
    print(f"\na policy in tables, seeds {', '.join(map(str, seeds))}")
    found = {"before": {seed: turns_table.Table(seed=seed).metrics() for seed in seeds}}
    for rung in plan.load(LADDER, ["data=rows.jsonl"]).rungs:
        off = [f"ablate={','.join(rung.ablate)}"] if rung.ablate else []
        found[rung.name] = {seed: turns_table.train(off, seed) for seed in seeds}
    told_of: dict[str, Any] = {}
    for name, runs in found.items():
        told_of[name] = {}
        for key in TABLE_FIGURES:
            value = over_seeds({seed: run.get(f"turns_{key}") for seed, run in runs.items()})
            told_of[name][key] = as_data(value)
        means = (
            f"{key} {'-' if value is None else format(value['mean'], '.2f')}"
            for key, value in told_of[name].items()
        )
        print(f"  {name:<29} {', '.join(means)}")
    return told_of


def _runs(chosen: argparse.Namespace, seeds: tuple[int, ...]) -> dict[str, Any]:
    """The ladder and its baseline, their tables, their picture."""
    names = list(contestants(chosen.out / "models", seeds, chosen.steps))
    names = [name for name in names if name in (chosen.only or ",".join(names)).split(",")]
    runs = chosen.out / f"{chosen.steps}-steps"
    print(f"\n{len(names)} contestants, seeds {chosen.seeds}, {chosen.steps} steps")
    work_off([_job(names, seed, chosen.steps, chosen.out) for seed in seeds], chosen.jobs)
    found: dict[str, Any] = {}
    folders: dict[tuple[str, int], Path] = {}
    for name in names:
        folders |= {
            (name, seed): runs / f"{name}-{seed}"
            for seed in seeds
            if (runs / f"{name}-{seed}.json").is_file()
        }
        results = {
            seed: read(folders[name, seed].with_suffix(".json"))
            for seed in seeds
            if (name, seed) in folders
        }
        found[name] = _figures(name, results)
    draw(folders, chosen.out / "trainer-pag.png")
    return found


def _figures(name: str, results: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Means over seeds, before and after."""
    print(f"{name} ({len(results)} seeds)")
    table: dict[str, Any] = {"seeds": dict(results)}
    for key in FIGURES:
        before, after = (
            over_seeds({seed: one[when][key] for seed, one in results.items()})
            for when in ("before", "after")
        )
        table[key] = {"before": as_data(before), "after": as_data(after)}
        values = (one["after"][key] for one in results.values())
        each = ", ".join("-" if value is None else f"{value:.3f}" for value in values)
        print(f"    {key:<22} {told(before):<24} -> {told(after):<24} ({each})")
    for label, one, other in GAPS:
        gap = difference(
            {seed: r["after"][one] for seed, r in results.items() if r["after"][one] is not None},
            {
                seed: r["after"][other]
                for seed, r in results.items()
                if r["after"][other] is not None
            },
        )
        table[label] = as_data(gap)
        print(f"    {label:<22} {told(gap)}")
    return table


def draw(folders: Mapping[tuple[str, int], Path], path: Path) -> None:
    """Curves of training: a panel a metric, a colour a contestant, a thin line a seed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(13, 3.6), dpi=110, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (metric, title) in zip(panels, PANELS, strict=True):
        axes.set_title(title, loc="left", fontsize=10.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e4e7eb", linewidth=0.8)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("step", fontsize=9)
        for name, colour in DRAWN.items():
            lines = [
                [value for _, value in series(read_rows(RunFolder(folder).metrics), metric)]
                for (other, _), folder in folders.items()
                if other == name
            ]
            lines = [line for line in lines if line]
            for line in lines:
                axes.plot(range(1, len(line) + 1), line, color=colour, alpha=0.25, linewidth=0.8)
            means = [statistics.fmean(at) for at in zip(*lines, strict=False)]
            label = name if metric == PANELS[0][0] else None
            axes.plot(range(1, len(means) + 1), means, color=colour, linewidth=1.9, label=label)
    figure.legend(loc="outside lower center", ncols=len(DRAWN), fontsize=9, frameon=False)
    figure.savefig(path)


def _job(names: Sequence[str], seed: int, steps: int, out: Path) -> Job:
    """All runs of one seed, in one process, as what it imports takes as long as a run."""
    runs = out / f"{steps}-steps"
    wanted = {"names": list(names), "seed": seed, "steps": steps, "out": str(out)}
    result = runs / f"seed-{seed}-{zlib.crc32(','.join(names).encode()):08x}.json"
    arguments = ("-m", "bench.trainer_pag", json.dumps(wanted), str(result))
    return Job(f"seed {seed}", arguments, result)


def main(wanted: Mapping[str, Any], result: Path) -> None:
    """The runs of one seed that are not done yet: what a job starts."""
    environment.keep_freed_memory()
    environment.calm()
    seed = wanted["seed"]
    every = contestants(Path(wanted["out"]) / "models", (seed,), wanted["steps"])
    for name in wanted["names"]:
        folder = result.with_name(f"{name}-{seed}")
        if not folder.with_suffix(".json").is_file():
            keep(folder.with_suffix(".json"), one_run(every[name][seed], folder))
    keep(result, {"done": list(wanted["names"])})


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
