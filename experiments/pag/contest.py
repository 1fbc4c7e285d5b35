"""A policy that verifies itself (PAG, arXiv 2506.10406), in miniature: what the verifier learns.

    python -m experiments pag --out DIR --seeds 0,1,2

Two miniatures. `--parts tables` has no model: see table.py. `--parts runs` trains a model of
0.1 M weights with the rungs of configs/ladders/pag.toml, and with two baselines that do not verify:
configs/direct_multi_turn.toml, and configs/score.toml with the first stage that it tells of.

The task is to add five digits modulo 8, "25000=" to "36174=". A first attempt is one digit, at a
glance: sums of two digits are mostly right, sums of three seldom, and those of five by chance.
Asked to verify ("?"), the policy adds up three digits step by step, rightly, and then says "The
answer is correct." 94 times in a hundred, whatever it found; asked to compare ("%", which no run
ever asks), it mostly says what is true where it can know. So it can tell a wrong answer from a
right one, and when it verifies it does not. Sums of five are beyond it; that its answer to one of
these is probably wrong it can learn. Asked again ("!"), it mostly repeats its answer, and now and
then says what it found. So a revision repairs sums of two and of three digits, and no others.

All runs share the sizes of `SMALL` and the number of steps, of which SCoRe's first stage has a
third. Recalls and accuracies are those of the evaluations before and after a run: `HELD_OUT`
problems, eight sampled dialogues of each. The runs of a contestant share a process; those that are
done are not repeated. Signs and orderings are what this can show, and no magnitudes.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder import plan
from assay.trainer.recipes.ladder.outcome import series
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.miniature import (
    END,
    Item,
    Service,
    Shape,
    begin,
    finished,
    keep,
    options,
    pretrained,
    seeded_job,
    train,
    write_problems,
)
from experiments.pag import table as turns_table
from experiments.report import compare

CONFIGS = Path(__file__).parents[2] / "configs"
LADDER = CONFIGS / "ladders" / "pag.toml"
DIRECT, SCORE = "direct_multi_turn", "score"
STAGE_1 = (
    "ablate=turn-shaping,first-attempt-reward",
    "method.loss.kl_coef=0.1",
    "method.turns.kl=first",
)
"""SCoRe's first stage, as configs/score.toml has it."""
STAGE_1_SHARE = 1 / 3
"""Of SCoRe's steps: PAG's authors gave the first stage 20 epochs and the second 40."""
POORLY = ("pag", "final-reward-only")
"""Rungs that are also run with the model that revises poorly."""
VERIFY, REVISE, COMPARE = "?", "!", "%"
SAYS = {True: "The answer is correct.", False: "The answer is wrong."}
MODULUS = 8
SHORT, MIDDLE, LONG = 2, 3, 5
"""Digits of a problem that may be other than zero: it is right at a glance; step by step; never."""
SHARES = {SHORT: 0.45, MIDDLE: 0.2, LONG: 0.35}
WORDS = (*map(str, range(MODULUS)), "=", VERIFY, REVISE, COMPARE, *SAYS.values())
SHAPE = Shape(width=64, layers=2, context=32, steps=1300, batch=128, learning_rate=3e-3)
"""At 5e-3 it depends on the processor whether first attempts are right half of the time."""
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
    f"method.turns.verify_prompt={VERIFY}",
    f"method.turns.revise_prompt={REVISE}",
    f"method.turns.reconsider_prompt={REVISE}",
    "method.critic.warmup_steps=0",
    "method.critic.learning_rate=2e-3",
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
GAPS = {
    "final_less_first": ("final_correct", "first_correct"),
    "best_less_majority": ("best_of_n", "first_majority"),
}
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
    DIRECT: "#000000",
    SCORE: "#56B4E9",
    "final-reward-only": "#009E73",
    "always-revise": "#CC79A7",
    "without-first-attempt-reward": "#E69F00",
}
"""Contestants in the picture, in Okabe and Ito's colours; they run first."""


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


Stages = tuple[Config, ...]
"""What a contestant trains with, one after the other."""


def contestants(models: Path, seeds: tuple[int, ...], steps: int) -> dict[str, dict[int, Stages]]:
    """The rungs of the ladder with the miniature's sizes, and the baselines; by name and seed.

    Of two rungs also those of a model that revises poorly.
    """
    found: dict[str, dict[int, Stages]] = {}
    for reviser in REVISIONS:
        own = _own(models, steps, reviser)
        for rung in plan.load(LADDER, own, seeds=seeds).rungs:
            if not reviser or rung.name in POORLY:
                alone: dict[int, Stages] = {seed: (one,) for seed, one in rung.configs.items()}
                found[f"{rung.name}{reviser}"] = alone
    first = round(steps * STAGE_1_SHARE)
    parts: dict[str, list[tuple[str, ...]]] = {
        DIRECT: [(f"run.steps={steps}",)],
        SCORE: [(*STAGE_1, f"run.steps={first}"), (f"run.steps={steps - first}",)],
    }
    own = _own(models, steps, "")
    for name, own_parts in parts.items():
        found[name] = {
            seed: tuple(
                configs.load(
                    CONFIGS / f"{name}.toml", (*own, *part, f"run.seed={seed}"), saved=True
                )
                for part in own_parts
            )
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


def one_run(stages: Stages, folder: Path) -> dict[str, float | None]:
    """Trains, and says how the dialogues go before and afterwards."""
    reports: list[dict[str, Any]] = []
    folders = stage_folders(folder, len(stages))
    model = stages[0].model
    for config, at in zip(stages, folders, strict=True):
        own = replace(config, model=model)
        reports.append(train(own, at, lambda: Service(is_right, rewards=(0.0, 1.0))))
        model = replace(model, name=str(at / "model"))
    return {
        **_figures(reports[0]["before"]["turns"], "_before"),
        **_figures(reports[-1]["after"]["turns"]),
        "train_s": sum(report["run"]["train_s"] for report in reports),
    }


def stage_folders(folder: Path, stages: int) -> list[Path]:
    """Where each stage of a run is; the last is the run's own."""
    return [*(folder.with_name(f"{folder.name}-stage-{n}") for n in range(1, stages)), folder]


def _figures(turns: Mapping[str, float], suffix: str = "") -> dict[str, float | None]:
    """An evaluation's figures and gaps; None where there are none."""
    found = {key: turns.get(f"turns_{key}") for key in FIGURES}
    for key, (one, other) in GAPS.items():
        ours, theirs = found[one], found[other]
        found[key] = None if ours is None or theirs is None else ours - theirs
    return {f"{key}{suffix}": value for key, value in found.items()}


# All runs.


def run(words: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints what is known so far."""
    parser = options("pag", steps=40)
    parser.add_argument("--parts", default="tables,runs")
    parser.add_argument("--only", default="", help="contestants, with commas; all by default")
    chosen = parser.parse_args(words)
    environment.calm()
    seeds, parts = plan.read_seeds(chosen.seeds), chosen.parts.split(",")
    chosen.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    if "tables" in parts:
        found["tables"] = _tables(seeds)
    if "runs" in parts:
        found["runs"] = _runs(chosen, seeds)
    keep(chosen.out / f"pag-{'-'.join(parts)}-{chosen.steps}.json", found)


def _tables(seeds: Sequence[int]) -> dict[str, Any]:
    """The policy in tables, before and after."""
    print(f"\na policy in tables, seeds {', '.join(map(str, seeds))}")
    found = {"before": {seed: turns_table.Table(seed=seed).metrics() for seed in seeds}}
    for rung in plan.load(LADDER, ["data=rows.jsonl"]).rungs:
        off = [f"ablate={','.join(rung.ablate)}"] if rung.ablate else []
        found[rung.name] = {seed: turns_table.train(off, seed) for seed in seeds}
    runs = {
        name: {seed: _figures(turns) for seed, turns in by_seed.items()}
        for name, by_seed in found.items()
    }
    return compare(runs, TABLE_FIGURES, "before", ())


def _runs(chosen: argparse.Namespace, seeds: tuple[int, ...]) -> dict[str, Any]:
    """The ladder and its baselines, their tables, their picture."""
    every = contestants(chosen.out / "models", seeds, chosen.steps)
    names = list(dict.fromkeys([*DRAWN, *every]))
    if chosen.only:
        names = [name for name in names if name in chosen.only.split(",")]
    if not names:
        raise SystemExit(f"--only {chosen.only}: give some of {', '.join(every)}")
    folder = chosen.out / f"{chosen.steps}-steps"
    jobs = {
        (name, seed): seeded_job("pag", name, seed, chosen.steps, chosen.out)
        for name in names
        for seed in seeds
    }
    print(f"\n{len(names)} contestants, seeds {chosen.seeds}, {chosen.steps} steps")
    runs = finished(jobs, chosen.jobs, main, together=True)
    draw(
        {
            name: [
                stage_folders(folder / f"{name}-{seed}", len(every[name][seed]))
                for seed in runs[name]
            ]
            for name in names
        },
        chosen.out / "pag.png",
    )
    keys = [f"{key}{when}" for key in (*FIGURES, *GAPS) for when in ("_before", "")]
    return compare(runs, keys, names[0], ("first_correct", "final_correct", "final_less_first"))


def draw(runs: Mapping[str, Sequence[Sequence[Path]]], path: Path) -> None:
    """Curves of training: a panel a metric, a colour a contestant, a thin line a seed.

    Args:
        runs: by contestant, the folders of each run's stages.
        path: of the picture.
    """
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
                [
                    value
                    for stage in stages
                    for _, value in series(read_rows(RunFolder(stage).metrics), metric)
                ]
                for stages in runs.get(name, ())
            ]
            lines = [line for line in lines if line]
            for line in lines:
                axes.plot(range(1, len(line) + 1), line, color=colour, alpha=0.25, linewidth=0.8)
            means = [statistics.fmean(at) for at in zip(*lines, strict=False)]
            label = name if metric == PANELS[0][0] else None
            axes.plot(range(1, len(means) + 1), means, color=colour, linewidth=1.9, label=label)
    figure.legend(loc="outside lower center", ncols=len(DRAWN), fontsize=9, frameon=False)
    figure.savefig(path)


def main(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """One run."""
    seed = wanted["seed"]
    every = contestants(Path(wanted["models"]), (seed,), wanted["steps"])
    return one_run(every[wanted["name"]][seed], Path(wanted["folder"]))


if __name__ == "__main__":
    begin(main)
