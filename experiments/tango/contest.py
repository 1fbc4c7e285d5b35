"""A generator and its verifier that learn in turns (RL Tango, arXiv 2505.15034), in miniature.

    python -m experiments tango --out DIR --seeds 0,1,2

The task is "3+2=": to count on from 3 by twos, four times, in the last digit alone: "5;7;9;1". The
pretrained model of 0.1 M weights goes wrong mostly after a few digits, and goes on from there.
Asked to verify ("?"), it gives a verdict on each step and on the whole; it has seen verifications
that notice a mistake in `NOTICES` of the cases, and otherwise say that all is correct. Asked to
compare ("%", which no run ever asks), it has seen the truth: so it can tell a wrong step from a
right one, and when it verifies it mostly does not. Both roles begin as this model.

    tango                   configs/tango.toml
    without-class-weights   the verifier's classes weigh the same
    alpha-0.5               step advantages begin at a weight of 0.5, the paper's for REINFORCE++
    outcome-only            no verifier: GRPO on the outcome, at the same sizes

Compared are the generator's held-out accuracy, the steps until its rollouts are right in
`THRESHOLD` of the cases (mean over five steps; a run that never gets there counts as its last step
and is told), and what each verifier says of the same `PROBES` solutions, which no run has seen: the
recalls of right and of wrong ones, their harmonic mean, and the share of steps with a true verdict;
the same mean also on the fresh solutions of its first and last `WINDOW` steps, and of those that
end its warm-up.
Each run is in a process of its own; those that are done are not repeated. Signs and orderings are
what this can show, and no magnitudes.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.kit.runs import environment
from assay.kit.runs.records import read_rows
from assay.trainer.methods.cotraining.measures import Verified, verifier_metrics
from assay.trainer.methods.cotraining.protocol import read as read_verdicts
from assay.trainer.recipes.ladder import plan
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.miniature import (
    CONFIGS,
    Item,
    Service,
    Shape,
    as_data,
    begin,
    finished,
    keep,
    options,
    over_seeds,
    pretrained,
    seeded_job,
    told,
    train,
    write_problems,
)

STRIDES, STEPS = 3, 4
VERIFY, COMPARE = "?", "%"
STEP_SAYS = {
    (k, right): f"Step {k}: {'correct' if right else 'wrong'}\n"
    for k in range(1, STEPS + 1)
    for right in (True, False)
}
SAYS = {True: "The answer is correct.", False: "The answer is wrong."}
WORDS = (*"0123456789", "+", "=", ";", VERIFY, COMPARE, *STEP_SAYS.values(), *SAYS.values())
SHAPE = Shape(width=64, layers=2, context=32, steps=900, batch=128, learning_rate=3e-3)
HARD, SLIPS_HARD, SLIPS = (3, 7), 0.8, 0.08
"""After these digits the pretrained model goes wrong so often, and after the others."""
NOTICES, INVENTS = 0.2, 0.02
"""How often the pretrained verifier calls a wrong step wrong, and a right one."""
HELD_OUT, PROBES = 6, 400
THRESHOLD, OVER, WINDOW = 0.8, 5, 5
SMALL = (
    "data.template={question}",
    "reward.verifier=miniature",
    "model.gradient_checkpointing=false",
    "model.precision=float32",
    f"method.cotraining.prompt={{question}}{{steps}}{VERIFY}",
    "method.cotraining.step_heading=",
    "method.cotraining.step_separator=;",
    "method.cotraining.prompts_per_step=32",
    "method.cotraining.max_new_tokens=7",
    "method.cotraining.micro_batch=0",
    "method.cotraining.learning_rate=3e-4",
    "method.cotraining.warmup_steps=20",
    "optim.learning_rate=5e-4",
    "optim.micro_batch=0",
    "rollout.prompts_per_step=16",
    "rollout.max_new_tokens=9",
    f"eval.prompts={HELD_OUT}",
    "eval.samples=32",
    "eval.batch_size=1000",
    "eval.show=0",
    "run.checkpoint_every=0",
    "run.samples_every=0",
    "run.report_to=[]",
)
ARMS: Mapping[str, tuple[str, ...]] = {
    "tango": (),
    "without-class-weights": ("ablate=class-weights",),
    "alpha-0.5": ("method.dense.weight=0.5",),
    "outcome-only": ("ablate=cotrained-verifier",),
}
OF_VERIFIER = (
    "verifier_f1",
    "verifier_correct_recall",
    "verifier_wrong_recall",
    "verifier_says_correct",
    "verifier_form",
    "steps_true",
)


def asked(start: int, stride: int) -> tuple[str, str]:
    """The prompt and its answer."""
    return f"{start}+{stride}=", str((start + STEPS * stride) % 10)


def drawn_problem(dice: random.Random) -> tuple[int, int]:
    """Where to begin, and by how much to count on."""
    return dice.randrange(10), dice.randint(1, STRIDES)


def drawn_solution(
    start: int, stride: int, dice: random.Random, *, slips_at: Mapping[bool, float] | None = None
) -> tuple[str, list[bool]]:
    """A solution with the mistakes of the pretrained model, and whether each step is where it
    should be."""
    chances = slips_at or {True: SLIPS_HARD, False: SLIPS}
    at, said = start, []
    for _ in range(STEPS):
        slips = dice.random() < chances[at in HARD]
        at = (at + stride + (dice.randrange(1, 10) if slips else 0)) % 10
        said.append(at)
    right = [said[k] == (start + (k + 1) * stride) % 10 for k in range(STEPS)]
    return ";".join(map(str, said)), right


def drawn_verification(right: Sequence[bool], dice: random.Random) -> str:
    """A verification that seldom notices, and mostly sticks to what it noticed."""
    text, fine = "", True
    for k, truth in enumerate(right, start=1):
        calls_wrong = dice.random() < (INVENTS if truth else NOTICES)
        if not fine:
            calls_wrong = dice.random() < 0.9
        fine = not calls_wrong
        text += STEP_SAYS[k, fine]
    return text + SAYS[fine if dice.random() < 0.97 else not fine]


def drawn_text(dice: random.Random) -> tuple[str, str]:
    """A prompt and a response of one of the roles."""
    start, stride = drawn_problem(dice)
    question, _ = asked(start, stride)
    solution, right = drawn_solution(start, stride, dice)
    kind = dice.random()
    if kind < 0.3:
        return question, solution
    if kind < 0.65:
        honest = "".join(STEP_SAYS[k, truth] for k, truth in enumerate(right, start=1))
        return f"{question}{solution}{COMPARE}", honest + SAYS[right[-1]]
    return f"{question}{solution}{VERIFY}", drawn_verification(right, dice)


def is_right(item: Item) -> bool:
    """The last step is, and there are as many as there should be."""
    said = item.response.strip().split(";")
    return len(said) == STEPS and said[-1] == item.reference.text


def problems(folder: Path, shape: Shape = SHAPE) -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems and the held-out ones."""
    model = pretrained(folder / "tango", WORDS, drawn_text, shape)
    counts = [asked(start, stride) for start in range(10) for stride in range(1, STRIDES + 1)]
    random.Random(0).shuffle(counts)
    train_rows = write_problems(folder / "tango-train.jsonl", counts[HELD_OUT:])
    return model, train_rows, write_problems(folder / "tango-test.jsonl", counts[:HELD_OUT])


def configured(models: Path, *own: str, steps: int, seed: int, shape: Shape = SHAPE) -> Config:
    """The preset made small, on this task; `own` last."""
    model, rows, held_out = problems(models, shape)
    return configs.load(
        CONFIGS / "tango.toml",
        (
            *SMALL,
            f"model.name={model}",
            "data.source=jsonl",
            f"data.path={rows}",
            f"data.eval_path={held_out}",
            f"run.steps={steps}",
            f"run.seed={seed}",
            *own,
        ),
    )


def probes(ask: str = VERIFY) -> list[tuple[str, list[bool]]]:
    """Solutions of the pretrained kind to verify: prompts, and whether each step is right."""
    dice = random.Random(1)
    found = []
    for _ in range(PROBES):
        start, stride = drawn_problem(dice)
        solution, right = drawn_solution(start, stride, dice)
        found.append((f"{asked(start, stride)[0]}{solution}{ask}", right))
    return found


def probed(folder: Path, ask: str = VERIFY) -> dict[str, float]:
    """What a verifier says of the probes, one sample each."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    torch.manual_seed(0)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    rows = probes(ask)
    ids = tokenizer([prompt for prompt, _ in rows], return_tensors="pt")["input_ids"]
    with torch.no_grad():
        said = model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=True, top_k=0, max_new_tokens=7
        )
    texts = tokenizer.batch_decode(said[:, ids.shape[1] :], skip_special_tokens=True)
    verified = [
        Verified(right[-1], read_verdicts(text, STEPS, "strict"))
        for text, (_, right) in zip(texts, rows, strict=True)
    ]
    steps = [
        verdict == truth
        for one, (_, right) in zip(verified, rows, strict=True)
        for verdict, truth in zip(one.verification.steps or (), right, strict=False)
    ]
    found = verifier_metrics(verified)
    return {**found, "steps_true": statistics.fmean(steps) if steps else float("nan")}


def steps_to(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """The first step at which the mean of the last `OVER` steps' accuracy is at the threshold."""
    values = [row["correct"] for row in rows]
    for end in range(OVER, len(values) + 1):
        if statistics.fmean(values[end - OVER : end]) >= THRESHOLD:
            return end
    return None


def _f1(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The mean over the steps that had right and wrong solutions."""
    values = [row["verifier_f1"] for row in rows if row["verifier_f1"] is not None]
    return statistics.fmean(values) if values else None


def one_run(config: Config, folder: Path, models: Path) -> dict[str, Any]:
    """Trains, and says how both roles do."""
    report = train(config, folder, lambda: Service(is_right, rewards=(0.0, 1.0)))
    rows = read_rows(RunFolder(folder).metrics)
    reached = steps_to(rows)
    found: dict[str, Any] = {
        "training": [row["correct"] for row in rows],
        "train_s": report["run"]["train_s"],
    }
    if config.eval.prompts:
        found |= {
            "steps": config.run.steps if reached is None else reached,
            "reached": reached is not None,
            "before": report["before"]["accuracy"],
            "after": report["after"]["accuracy"],
        }
    if config.method.cotraining.enabled:
        beside = read_rows(folder / "verifier" / "metrics.jsonl")
        found["verifier"] = {
            "before": probed(models / "tango"),
            "after": probed(folder / "verifier" / "model"),
            "f1": [row["verifier_f1"] for row in beside],
            "f1_first": _f1(beside[:WINDOW]),
            "f1_warm": _f1(beside[: config.method.cotraining.warmup_steps][-WINDOW:]),
            "f1_last": _f1(beside[-WINDOW:]),
            "says_correct": [row["verifier_says_correct"] for row in beside],
            "wrong_recall": [row["verifier_wrong_recall"] for row in beside],
        }
    return found


# All runs.


def run(words: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints what is known so far."""
    parser = options("tango", steps=48)
    parser.add_argument("--arms", default=",".join(ARMS))
    chosen = parser.parse_args(words)
    environment.calm()
    seeds, names = plan.read_seeds(chosen.seeds), chosen.arms.split(",")
    problems(chosen.out / "models")
    jobs = {
        (name, seed): seeded_job("tango", name, seed, chosen.steps, chosen.out)
        for seed in seeds
        for name in names
    }
    results = finished(jobs, chosen.jobs, main)
    found = {name: _table(name, results[name], results.get("outcome-only", {})) for name in names}
    keep(chosen.out / f"tango-{chosen.steps}.json", found)


def _table(
    name: str, results: Mapping[int, Mapping[str, Any]], plain: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    """Means over seeds."""
    print(f"{name} ({len(results)} seeds)")
    table: dict[str, Any] = {"seeds": dict(results)}
    _tell_generator(name, results, plain, table)
    if name != "outcome-only":
        for key in ("f1_first", "f1_warm", "f1_last"):
            found = over_seeds({s: one["verifier"][key] for s, one in results.items()})
            table[key] = as_data(found)
            print(f"    {key + ', fresh solutions':<24} {told(found)}")
        for key in OF_VERIFIER:
            before, after = (
                over_seeds({s: one["verifier"][when][key] for s, one in results.items()})
                for when in ("before", "after")
            )
            table[key] = {"before": as_data(before), "after": as_data(after)}
            first = next((one["verifier"]["before"][key] for one in results.values()), None)
            began = "-" if first is None else f"{first:.3f}"
            print(f"    {key:<24} {began} -> {told(after)}")
    return table


def _tell_generator(
    name: str,
    results: Mapping[int, Mapping[str, Any]],
    plain: Mapping[int, Mapping[str, Any]],
    table: dict[str, Any],
) -> None:
    """How the generator did, beside the one without a verifier."""
    for key in ("before", "after", "steps"):
        values = {seed: one[key] for seed, one in results.items()}
        table[key] = as_data(over_seeds(values))
        each = ", ".join(f"{value:.3g}" for value in values.values())
        print(f"    {key:<24} {told(over_seeds(values))}  ({each})")
    missed = sum(not one["reached"] for one in results.values())
    if missed:
        print(f"    {missed} never reached {THRESHOLD:.0%}")
    for key in ("after", "steps") if name != "outcome-only" else ():
        gain = {s: one[key] - plain[s][key] for s, one in results.items() if s in plain}
        table[f"{key}_less_outcome_only"] = as_data(over_seeds(gain))
        print(f"    {key + ', less outcome-only':<24} {told(over_seeds(gain))}")


def main(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """One run."""
    models = Path(wanted["models"])
    own = ARMS[wanted["name"]]
    config = configured(models, *own, steps=wanted["steps"], seed=wanted["seed"])
    return one_run(config, Path(wanted["folder"]), models)


if __name__ == "__main__":
    begin(main)
