"""DAPO's ladder (arXiv 2503.14476, table 1) in miniature: one technique more on each rung.

    python -m experiments dapo --out DIR --seeds 0,1,2,3 --jobs 2
    python -m experiments dapo --out DIR --parts multiplier

The rungs are those of configs/ladders/dapo.toml, with the sizes of `SMALL`; the task is counting
(tasks.py). Each run is what `assay train` does, in a process of its own; those that are
done are not repeated, so that the command can be given again, with more seeds. What it says:

    ladder      held-out accuracy, reward, entropy and lengths of each rung, and the change from the
                rung below, paired by seed, with 95 % t intervals over seeds
    clipped     the mean probability, before the update, of tokens whose ratio was clipped from
                above (the paper's argument for clip-higher: they are improbable ones, < 0.2)
    table       entropy with and without clip-higher where every prompt has many right answers
                (table.py): no model, ten seeds
    multiplier  groups drawn for each group used, by a policy that stands still, beside 1 / P(keep)
                with P = 1 - p^G - (1 - p)^G averaged over prompts (derivation), estimated from
                other responses to each prompt

Orderings and intervals are what this can show, and no magnitudes: the published ones are of a model
of 32 B parameters on competition problems.

On a CUDA device the same commands run there; no figure of one is reported.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import comb
from pathlib import Path
from typing import Any

from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.recipes.ladder import outcome, plan, table
from assay.trainer.recipes.ladder.stats import difference, estimate
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings.config import Config
from experiments.claim import Runs, column
from experiments.dapo import table as clip_higher_table
from experiments.miniature import (
    IsRight,
    Job,
    Service,
    as_data,
    begin,
    finished,
    job_of,
    keep,
    options,
    over_seeds,
    told,
    train,
)
from experiments.tasks import LIMIT, NEAR, Counting, counting, counts_right

LADDER = Path(__file__).parents[2] / "configs" / "ladders" / "dapo.toml"
SMALL = (
    "model.gradient_checkpointing=false",
    "model.precision=float32",
    "reward.verifier=miniature",
    "reward.parameters={}",
    "data.template={question}",
    "method.shaping.overlong_cache=6",
    "method.dynamic_sampling.max_rounds=20",
    "optim.learning_rate=2e-4",
    "optim.warmup_steps=0",
    "optim.weight_decay=0.0",
    "optim.mini_batches=4",
    "optim.epochs=4",
    "optim.micro_batch=0",
    "rollout.prompts_per_step=32",
    "rollout.group_size=8",
    f"rollout.max_new_tokens={LIMIT}",
    "eval.prompts=16",
    "eval.samples=64",
    "eval.top_p=1.0",
    "run.checkpoint_every=0",
    "run.samples_every=0",
    "run.report_to=[]",
)
GROUP_SIZES = (4, 8, 16)


def ladder(
    models: Path, seeds: tuple[int, ...], steps: int, kind: Counting = NEAR, *more: str
) -> plan.LadderPlan:
    """The ladder with the miniature's sizes; `more` are settings of every rung."""
    model, problems, held_out = counting(models, kind)
    own = (
        f"model.name={model}",
        f"data.path={problems}",
        f"data.eval_path={held_out}",
        f"run.steps={steps}",
    )
    return plan.load(LADDER, (*SMALL, *own, *more), seeds=seeds)


# One run, in its own process.


@contextmanager
def watched() -> Iterator[dict[str, list[float]]]:
    """Notes of every update the tokens that were clipped from above: how many, and the sum of their
    probabilities before the update. It looks on and changes nothing."""
    import torch  # noqa: PLC0415

    from assay.trainer.core import objective  # noqa: PLC0415

    seen: dict[str, list[float]] = {"count": [], "probability": [], "tokens": [], "low_p": []}
    inner = objective.policy_loss

    def policy_loss(
        new: Any, entropies: Any, batch: Any, config: Any, counts: Any, **more: Any
    ) -> Any:
        logps = new.detach()
        old = torch.where(batch["old_logps"].isnan(), logps, batch["old_logps"])
        inside = batch["loss_mask"].bool()
        high = ((logps - old).exp() > 1 + config.clip_high) & (batch["advantages"] > 0) & inside
        seen["count"].append(float(high.sum()))
        seen["probability"].append(float(old.exp()[high].sum()))
        seen["low_p"].append(float((old.exp()[high] < 0.2).sum()))
        seen["tokens"].append(float(inside.sum()))
        return inner(new, entropies, batch, config, counts, **more)

    objective.policy_loss = policy_loss
    try:
        yield seen
    finally:
        objective.policy_loss = inner


def one_run(config: Config, folder: Path, judge: IsRight | None = counts_right) -> dict[str, Any]:
    """Trains, and says what the clipped tokens were; without a judge by a service of its own."""
    service = None if judge is None else partial(Service, judge)
    with watched() as seen:
        report = train(config, folder, service)
    count = sum(seen["count"])
    return {
        "before": report["before"]["accuracy"],
        "after": report["after"]["accuracy"],
        "train_s": report["run"]["train_s"],
        "clipped_up": count / sum(seen["tokens"]),
        "clipped_probability": sum(seen["probability"]) / count if count else None,
        "clipped_below_0.2": sum(seen["low_p"]) / count if count else None,
    }


def multiplier(config: Config, folder: Path) -> dict[str, Any]:
    """Draws with a policy that stands still.

    What is expected comes from the responses of every other step, what is measured from the steps
    in between.
    """
    train(config, folder, lambda: Service(counts_right))
    verdicts: dict[str, list[bool]] = {}
    for row in read_rows(RunFolder(folder).samples):
        if row["step"] % 2:
            verdicts.setdefault(row["question"], []).append(row["verdict"] == "correct")
    rows = [row for row in read_rows(RunFolder(folder).metrics) if row["step"] % 2 == 0]
    size = config.rollout.group_size
    kept = [mixed(sum(found), len(found), size) for found in verdicts.values() if len(found) > size]
    return {
        "group_size": size,
        "prompts": len(kept),
        "pass_rate": statistics.fmean(statistics.fmean(found) for found in verdicts.values()),
        "expected_keep_rate": statistics.fmean(kept),
        "keep_rate": [row["keep_rate"] for row in rows],
        "draws": [row["draws"] for row in rows],
        "used": config.rollout.prompts_per_step,
    }


def mixed(right: int, of: int, size: int) -> float:
    """P(neither all right nor all wrong) of `size` responses to a prompt, from `of` others.

    Unbiased, where putting the share `right / of` into 1 - p^G - (1 - p)^G is not.
    """
    return 1 - (comb(right, size) + comb(of - right, size)) / comb(of, size)


# All runs.


def run(words: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints what is known so far."""
    parser = options("dapo", steps=32, seeds="0,1,2,3")
    parser.add_argument("--parts", default="ladder,table,multiplier")
    chosen = parser.parse_args(words)
    environment.calm()
    seeds = plan.read_seeds(chosen.seeds)
    parts = chosen.parts.split(",")
    found: dict[str, Any] = {}
    if "ladder" in parts:
        found |= _ladder(ladder(chosen.out / "models", seeds, chosen.steps), chosen)
    if "table" in parts:
        found["table"] = _many_answers()
    if "multiplier" in parts:
        counting(chosen.out / "models")
        found["multiplier"] = _multiplier(chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    keep(chosen.out / f"trainer-{'-'.join(parts)}.json", found)


def _ladder(rungs: plan.LadderPlan, chosen: argparse.Namespace) -> dict[str, Any]:
    """The runs, their table, their picture."""
    runs = chosen.out / "runs"
    jobs = {
        (rung.name, seed): _job(chosen, "ladder", rung.name, seed, runs / f"{rung.name}-{seed}")
        for seed in rungs.seeds
        for rung in rungs.rungs
    }
    print(f"\ndapo: {len(rungs.rungs)} rungs, seeds {chosen.seeds}, {chosen.steps} steps")
    notes = finished(jobs, chosen.jobs, main)
    outcomes: dict[str, dict[int, outcome.RunOutcome]] = {name: {} for name in notes}
    for name, by_seed in notes.items():
        for seed in by_seed:
            if done := outcome.read(jobs[name, seed].result.with_suffix("")):
                outcomes[name][seed] = done
    if not any(outcomes.values()):
        return {}
    from assay.trainer.recipes.ladder import plot  # noqa: PLC0415 - matplotlib takes a second

    summaries = table.summarise(rungs, outcomes)
    print(table.markdown(rungs, summaries))
    plot.draw(rungs, outcomes, chosen.out / "dapo.png")
    return {
        **table.to_json(rungs, summaries),
        "entropy_change": _entropy(outcomes),
        "clipped": _clipped(notes),
        "runs": notes,
    }


def _entropy(outcomes: Mapping[str, Mapping[int, outcome.RunOutcome]]) -> dict[str, Any]:
    """The change of the last steps' entropy by clip-higher alone."""
    last = {
        name: {seed: value for seed, done in runs.items() if (value := done.final("entropy"))}
        for name, runs in outcomes.items()
    }
    changed = difference(last["clip-higher"], last["overlong-filter"])
    print(f"entropy of the last tenth, clip-higher less the rung below: {told(changed)}")
    return {"clip-higher": as_data(changed)}


def _clipped(notes: Runs) -> dict[str, Any]:
    """Of each rung, how many tokens were clipped from above and how probable they were."""
    said: dict[str, Any] = {}
    print("tokens clipped from above: share of all; their mean probability; share of them < 0.2")
    for name in notes:
        figures = {
            key: over_seeds(column(notes, name, key))
            for key in ("clipped_up", "clipped_probability", "clipped_below_0.2")
        }
        share, probability, below = figures.values()
        print(f"  {name:<18} {told(share, 4)}   {told(probability)}   {told(below)}")
        said[name] = {key: as_data(value) for key, value in figures.items()}
    return said


def _many_answers() -> dict[str, Any]:
    """The table of answers, with both bounds; changes are paired by seed."""
    runs = {
        bound: {seed: clip_higher_table.train(seed, bound) for seed in range(10)}
        for bound in (0.2, 0.28)
    }
    said: dict[str, Any] = {}
    print("\nmany right answers, no model, 10 seeds: eps 0.2; eps_high 0.28; change")
    for key in runs[0.2][0]:
        low, high = ({s: one[key] for s, one in runs[bound].items()} for bound in runs)
        changed = difference(high, low)
        print(
            f"  {key:<12} {told(over_seeds(low))}   {told(over_seeds(high))}   {told(changed, 4)}"
        )
        said[key] = as_data(changed)
    return said


def _multiplier(chosen: argparse.Namespace) -> dict[str, Any]:
    """The measured and the expected number of groups drawn for each one used."""
    name = "dynamic-sampling"
    jobs = {
        (name, size): _job(chosen, "multiplier", name, size, chosen.out / "runs" / f"still-{size}")
        for size in GROUP_SIZES
    }
    print("\ngroups drawn for each kept, and for each used (what a batch did not need is dropped)")
    said: dict[str, Any] = {}
    for known in finished(jobs, chosen.jobs, main)[name].values():
        drawn = [draws / known["used"] for draws in known["draws"]]
        kept = sum(r * d for r, d in zip(known["keep_rate"], known["draws"], strict=True))
        per_kept = sum(known["draws"]) / kept
        expected = 1 / known["expected_keep_rate"]
        print(
            f"  G = {known['group_size']:2d}, pass rate {known['pass_rate']:.3f}: expected "
            f"{expected:.3f}; for each kept {per_kept:.3f}; for each used {told(estimate(drawn))}"
        )
        said[str(known["group_size"])] = {
            "expected": expected,
            "per_kept": per_kept,
            "per_used": as_data(estimate(drawn)),
        }
    return said


def _job(chosen: argparse.Namespace, part: str, rung: str, number: int, folder: Path) -> Job:
    label = f"{rung}, {'seed' if part == 'ladder' else 'G ='} {number}"
    return job_of(
        "dapo", label, folder,
        part=part, rung=rung, number=number, models=str(chosen.out / "models"),
        steps=chosen.steps if part == "ladder" else 24,
    )  # fmt: skip


def main(wanted: dict[str, Any]) -> dict[str, Any]:
    """One run."""
    models, number = Path(wanted["models"]), wanted["number"]
    if wanted["part"] == "ladder":
        rungs = ladder(models, (number,), wanted["steps"]).rungs
        config = next(rung for rung in rungs if rung.name == wanted["rung"]).configs[number]
        return one_run(config, Path(wanted["folder"]))
    model, problems, _ = counting(models)
    still = (
        f"model.name={model}",
        f"data.path={problems}",
        f"run.steps={wanted['steps']}",
        "run.samples_every=1",
        "optim.learning_rate=1e-12",
        "optim.mini_batches=1",
        "optim.epochs=1",
        f"rollout.group_size={number}",
        f"rollout.prompts_per_step={512 // number}",
        "eval.prompts=0",
    )
    rungs = plan.load(LADDER, (*SMALL, *still), seeds=(0,)).rungs
    return multiplier(rungs[-1].configs[0], Path(wanted["folder"]))


if __name__ == "__main__":
    begin(main)
