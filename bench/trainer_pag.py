"""A policy that verifies itself (PAG, arXiv 2506.10406), in miniature: what the verifier learns.

    python -m bench trainer-pag --out DIR --seeds 0,1,2

The task is "a+b=" or "a+b+c+d=", answered with the last digit of the sum. The pretrained model of
0.1 M weights is right on most of the short ones, and on the long ones, which it cannot add up at a
glance, seldom. Asked to verify ("?"), it adds up step by step, mostly rightly, and then says "The
answer is correct." nearly always, whatever it found; asked again ("!"), it mostly repeats what it
found when it verified. Asked to compare ("%", which no run ever asks), it says what is true: so it
can tell a wrong answer from a right one, and when it verifies it does not. Its recall of wrong
answers is below a tenth.

    pag                         configs/pag.toml
    without-turn-independence   later turns' rewards reach the verification: does it learn to call
                                everything wrong, for the sake of what a revision earns?
    final-reward-only           the last attempt's correctness is all that counts
    always-revise               a revision whatever the verification says
    direct_multi_turn           configs/direct_multi_turn.toml: a second attempt, no verification

All share the sizes of `SMALL`. Recalls and accuracies are those of the evaluations before and
after a run: a hundred problems, held out of it, in sampled dialogues. Each run is in
a process of its own; those that are done are not repeated. Signs and orderings are what this can
show, and no magnitudes.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.clients.runs import environment
from assay.clients.runs.records import read_rows
from assay.trainer import config as configs
from assay.trainer.config import Config
from assay.trainer.folder import RunFolder
from assay.trainer.ladder import plan
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
VERIFY, REVISE, COMPARE = "?", "!", "%"
SAYS = {True: "The answer is correct.", False: "The answer is wrong."}
MODULUS, DIGITS = 8, 4
WORDS = (*map(str, range(MODULUS)), "=", VERIFY, REVISE, COMPARE, *SAYS.values())
SHAPE = Shape(width=64, layers=2, context=32, steps=1500, batch=128, learning_rate=5e-3)
LONG_SHARE = 0.6
NOTICES, KEEPS, REPAIRS = 0.06, 0.35, 0.15
HELD_OUT = 100
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
    "optim.learning_rate=1e-3",
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
ARMS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "pag": ("pag", ()),
    "without-turn-independence": ("pag", ("ablate=turn-independence",)),
    "final-reward-only": ("pag", ("ablate=turn-rewards,turn-independence",)),
    "always-revise": ("pag", ("ablate=selective-revision",)),
    "without-role-normalisation": ("pag", ("ablate=role-normalisation",)),
    "direct_multi_turn": ("direct_multi_turn", ()),
}
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
)


def drawn_sum(dice: random.Random) -> list[int]:
    """The digits to add; those of a short problem are two, and zeros."""
    some = DIGITS if dice.random() < LONG_SHARE else 2
    return [dice.randrange(MODULUS) if n < some else 0 for n in range(DIGITS)]


def asked(digits: Sequence[int]) -> tuple[str, str]:
    """The prompt and its answer."""
    return "".join(map(str, digits)) + "=", str(sum(digits) % MODULUS)


def drawn_turns(dice: random.Random) -> tuple[str, str]:
    """What was said before, and what the policy says, with the weaknesses of the pretrained model.

    Two thirds are an attempt with its verification, many of them honest ones that are asked for
    in other words; what stands between the turns is learnt with them and never generated. The
    others are revisions, and second attempts.
    """
    digits = drawn_sum(dice)
    prompt, right = asked(digits)
    guess = str(dice.randrange(MODULUS))
    long = any(digits[2:])
    first = guess if dice.random() < (0.5 if long else 0.15) else right
    steps = "".join(str(sum(digits[: n + 1]) % MODULUS) for n in range(DIGITS))
    kind, luck = dice.random(), dice.random()
    if kind < 0.35:
        notices = dice.random() < NOTICES
        return prompt, f"{first}{END}{VERIFY}{steps}{SAYS[not notices]}"
    if kind < 0.65:
        return prompt, f"{first}{END}{COMPARE}{steps}{SAYS[right == first]}"
    another = str(dice.randrange(MODULUS))
    second = first if luck < KEEPS else right if luck < KEEPS + REPAIRS else another
    if kind < 0.75:
        return f"{prompt}{first}{END}{REVISE}", first if luck < 0.5 else another
    said = SAYS[kind < 0.85]
    return f"{prompt}{first}{END}{VERIFY}{steps}{said}{END}{REVISE}", second


def is_right(item: Item) -> bool:
    """The very digit."""
    return item.response.strip() == item.reference.text


def problems(folder: Path, shape: Shape = SHAPE) -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems and the held-out ones."""
    model = pretrained(folder / "verifier", WORDS, drawn_turns, shape)
    dice = random.Random(0)
    sums = sorted({asked(drawn_sum(dice)) for _ in range(1000)})
    dice.shuffle(sums)
    train = write_problems(folder / "sums-train.jsonl", sums[HELD_OUT:])
    return model, train, write_problems(folder / "sums-test.jsonl", sums[:HELD_OUT])


def arm(name: str, models: Path, *, steps: int, seed: int) -> Config:
    """The settings of a contestant."""
    preset, overrides = ARMS[name]
    model, rows, held_out = problems(models)
    return configs.load(
        CONFIGS / f"{preset}.toml",
        (
            *SMALL,
            f"model.name={model}",
            f"data.path={rows}",
            f"data.eval_path={held_out}",
            f"run.steps={steps}",
            f"run.seed={seed}",
            *overrides,
        ),
    )


def one_run(config: Config, folder: Path) -> dict[str, Any]:
    """Trains, and says how the dialogues go before and afterwards."""
    report = train(config, folder, lambda: Service(is_right, rewards=(0.0, 1.0)))
    rows = read_rows(RunFolder(folder).metrics)

    def mean(key: str, some: Sequence[Mapping[str, Any]]) -> float | None:
        values = [row[key] for row in some if row[key] is not None]
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
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=80, help="of each run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, a core each")
    chosen = parser.parse_args(options)
    environment.calm()
    seeds, names = plan.read_seeds(chosen.seeds), chosen.arms.split(",")
    problems(chosen.out / "models")
    jobs = {
        (name, seed): _job(name, seed, chosen.steps, chosen.out) for seed in seeds for name in names
    }
    work_off(jobs.values(), chosen.jobs)
    found: dict[str, Any] = {}
    for name in names:
        results = {
            seed: read(jobs[name, seed].result)
            for seed in seeds
            if jobs[name, seed].result.is_file()
        }
        found[name] = _table(name, results)
    keep(chosen.out / f"trainer-pag-{chosen.steps}.json", found)


def _table(name: str, results: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
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
    return table


def _job(name: str, seed: int, steps: int, out: Path) -> Job:
    kept = out / f"{steps}-steps" / f"{name}-{seed}"
    wanted = {"name": name, "seed": seed, "steps": steps, "out": str(out), "folder": str(kept)}
    result = kept.with_suffix(".json")
    arguments = ("-m", "bench.trainer_pag", json.dumps(wanted), str(result))
    return Job(f"{name}, seed {seed}", arguments, result)


def main(wanted: Mapping[str, Any], result: Path) -> None:
    """One run: what a job starts."""
    environment.keep_freed_memory()
    environment.calm()
    models = Path(wanted["out"]) / "models"
    config = arm(wanted["name"], models, steps=wanted["steps"], seed=wanted["seed"])
    keep(result, one_run(config, Path(wanted["folder"])))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
