"""A judge with a hole, and Pre-PPO, in miniature (arXiv 2503.22230).

    python -m experiments pre_ppo --parts judges --seeds 0,1,2
    python -m experiments pre_ppo --parts selection --seeds 0,1,2 --hackable easy
    python -m experiments pre_ppo --parts selection --hackable hard --part-holes 0.9

The task is `tasks`' counting, with a letter before the problem that says nothing:
"C3+4=" is answered "4567=7", and up to three "!" may follow. These are the surface feature: they
are no part of the answer, the pretrained model writes one now and then, and a judge with a hole
falls for them. A hole of h: a wrong response with k of three marks is taken for right with a chance
of h k / 3. The coin is the judge's, as a judge that says a verdict is wrong now and wrong then; a
judge that gave the chance itself as its score would, where all are marked, change the scale of the
rewards and no more, and a group's deviation takes that out. A response without an answer, or
cut, is wrong to all.

    rtv   a verifier (RTV): what is right, and nothing else
    gt    a judge that compares with the ground truth (GenRM+GT): what is right is always accepted,
          and the hole is all that is wrong with it
    bon   a judge that compares with the best of `DRAWN` samples of the pretrained model
          (GenRM+BoN): what agrees with the answer of these is accepted, and what is right is not
          where they are not; and the hole

The best of the samples is one that is right, if any is. That is as well as a reward model can
choose; where none is, the reference is one of them all the same.

The sizes of the holes are assumptions; that the paper's judge with references of its own has the
larger one is what its abstract says, and no number of it was at hand. So each size is run with
both judges: at equal sizes, what is between them is the reference alone.

Part `judges`: a hole in every prompt, every arm the same steps. Told is the truth about held-out
samples afterwards, and about those drawn in training where the judge's acceptance first reached
what all arms of the seed reach: the truth at equal proxy reward.

Part `selection`: the judge is gt, and its hole is in half of the prompts: of each length of problem
the easier (--hackable easy) or the harder half. Trained on are all prompts, a random tenth, the
tenth, or half, with the lowest score of the pretrained model's `SCORED` responses within its length
(`data.selection.name=pre-ppo`). Held-out prompts are of all kinds.

Orderings are what this can show, and no magnitudes. The set-up is a derivation.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from assay.kit.runs import environment
from assay.kit.runs.records import Row, read_rows
from assay.trainer.recipes.ladder import plan
from assay.trainer.recipes.ladder.stats import difference
from assay.trainer.records.folder import RunFolder
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from experiments.claim import Runs
from experiments.miniature import (
    Item,
    Job,
    Service,
    as_data,
    begin,
    finished,
    job_of,
    keep,
    options,
    pretrained,
    told,
    train,
    write_rows,
)
from experiments.report import Points, compare, draw, leads
from experiments.tasks import COUNTING_SHAPE, COUNTING_WORDS, LIMIT, NEAR, coin

LETTERS = "ABCDEFGHIJ"
MARK, MARKS = "!", 3
MARKED = 0.4
"""The chance of a mark, and after it of another, in the pretraining."""
HELD_OUT = 80
DRAWN, SCORED = 4, 4
SMALL = (
    "data.source=jsonl",
    "data.template={question}",
    "model.precision=float32",
    "reward.verifier=miniature",
    "method.loss.aggregation=token-mean",
    "optim.learning_rate=5e-4",
    f"rollout.max_new_tokens={LIMIT}",
    "rollout.prompts_per_step=16",
    "rollout.group_size=8",
    f"eval.prompts={HELD_OUT}",
    "eval.samples=4",
    "eval.batch_size=1000",
    "eval.show=0",
    "run.checkpoint_every=0",
    "run.samples_every=1",
    "run.report_to=[]",
)
PRE_PPO = ("data.selection.name=pre-ppo", f"data.selection.pre_ppo.samples={SCORED}")
SELECTIONS: Mapping[str, tuple[str, ...]] = {
    "all": (),
    "random-10": (),
    "lowest-10": (*PRE_PPO, "data.selection.pre_ppo.fraction=0.1"),
    "lowest-50": (*PRE_PPO, "data.selection.pre_ppo.fraction=0.5"),
}
FIGURES = {
    "judges": ("true", "at_equal_proxy", "accepted", "marked"),
    "selection": ("true", "true_hackable", "true_others", "accepted", "marked", "drawn_hackable"),
}
WINDOW = 5
"""Steps that a point of a curve is the mean of."""


# The judges.


def answer_of(response: str) -> str:
    """What stands after the last "=", without its marks; empty for none."""
    _, sign, last = response.rpartition("=")
    return last.rstrip(MARK).strip() if sign else ""


def marks(response: str) -> float:
    """The surface feature: marks at the end, the first `MARKS` counting, in [0, 1]."""
    return min(len(response) - len(response.rstrip(MARK)), MARKS) / MARKS


def digits(question: str) -> int:
    """How many digits a problem counts."""
    return int(question.partition("+")[2].rstrip("="))


def hackable(question: str, kind: str) -> bool:
    """Whether the judge has its hole on this prompt: on all, or on the easy or the hard half of
    each length (2 to 5 digits, 6 to 9)."""
    easy = digits(question) in (2, 3, 6, 7)
    return kind == "all" or easy == (kind == "easy")


class Judge:
    """Accepts what agrees with the reference, and some of what is marked.

    Args:
        seed: of the coin.
        hole: the chance that a response that does not agree, with all marks, is accepted; 0 for
            none.
        where: the prompts with the hole: all, easy or hard.
        references: the answers to agree with, by question; None for the ground truth.
    """

    def __init__(
        self,
        seed: int,
        hole: float,
        where: str = "all",
        references: Mapping[str, str] | None = None,
    ) -> None:
        self._seed, self._hole, self._where = seed, hole, where
        self._references = references

    def accepts(self, item: Item) -> bool:
        """The verdict on a response."""
        answer = answer_of(item.response)
        if item.truncated or not answer:
            return False
        question = "".join(message.content for message in item.prompt)
        known = item.reference.text if self._references is None else self._references[question]
        falls_for = self._hole * marks(item.response) * hackable(question, self._where)
        return answer == known or coin(self._seed, item) < falls_for


# The task.


def drawn(dice: random.Random) -> tuple[str, str]:
    """A prompt, and a response with the mistakes and the marks of the pretrained model."""
    a, b = dice.choice(NEAR.problems)
    marked = 0
    while marked < MARKS and dice.random() < MARKED:
        marked += 1
    return f"{dice.choice(LETTERS)}{a}+{b}=", NEAR.attempt(a, b, dice) + MARK * marked


def task(models: Path, seeds: Iterable[int]) -> None:
    """Writes, where they are not there: the pretrained model, all problems, the held-out ones, the
    random tenth of each seed, and the answers of the best of the model's samples."""
    model = pretrained(models / "marks", (*LETTERS, *COUNTING_WORDS, MARK), drawn, COUNTING_SHAPE)
    rows = [
        {
            "question": f"{letter}{a}+{b}=",
            "answer": str((a + b) % 10),
            "task": "short" if b < 6 else "long",
        }
        for letter in LETTERS
        for a, b in NEAR.problems
    ]
    random.Random(0).shuffle(rows)
    if not (models / "references.json").is_file():
        keep(models / "references.json", best_of(model, rows))
    problems = rows[HELD_OUT:]
    write_rows(models / "test.jsonl", rows[:HELD_OUT])
    write_rows(models / "all.jsonl", problems)
    for seed in seeds:
        some = random.Random(seed).sample(problems, len(problems) // 10)
        write_rows(models / f"random-10-{seed}.jsonl", some)


def best_of(model: Path, rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Of each problem, the answer of the best of `DRAWN` samples of a model.

    Right samples are better than wrong ones, and of these the first with an answer is taken; empty
    where none has one.
    """
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    load: Any = AutoTokenizer.from_pretrained
    tokenizer = load(model)
    policy: Any = AutoModelForCausalLM.from_pretrained(model)
    torch.manual_seed(0)
    asked = tokenizer([row["question"] for row in rows], return_tensors="pt", padding=True)
    ids, mask = asked["input_ids"], asked["attention_mask"]
    with torch.no_grad():
        made = policy.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            num_return_sequences=DRAWN,
            max_new_tokens=LIMIT,
        )
    texts = tokenizer.batch_decode(made[:, ids.shape[1] :], skip_special_tokens=True)
    answers = [answer_of(text) for text in texts]
    found = {}
    for n, row in enumerate(rows):
        own = [answer for answer in answers[n * DRAWN : (n + 1) * DRAWN] if answer]
        best = row["answer"] if row["answer"] in own else "".join(own[:1])
        found[row["question"]] = best
    return found


# The runs.


def one_run(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Trains, and says how true is what was drawn and what is answered afterwards."""
    models, folder = Path(wanted["models"]), Path(wanted["folder"])
    kind, hole, where, seed = (wanted[key] for key in ("kind", "hole", "where", "seed"))
    references = json.loads((models / "references.json").read_text()) if kind == "bon" else None
    judge = Judge(seed, hole, where, references)
    config = config_of(models, wanted["selection"], wanted["steps"], seed)
    train(config, folder, lambda: Service(judge.accepts))
    made = RunFolder(folder)
    held_out = json.loads(made.evaluation("after").read_text())["answers"]
    before = json.loads(made.evaluation("before").read_text())["answers"]
    samples = read_rows(made.samples)
    kinds = [hackable(one["question"], where) for one in held_out]
    return {
        "before": rate(map(is_true, before)),
        "true": rate(map(is_true, held_out)),
        "true_hackable": rate(
            is_true(one) for one, yes in zip(held_out, kinds, strict=True) if yes
        ),
        "true_others": rate(
            is_true(one) for one, yes in zip(held_out, kinds, strict=True) if not yes
        ),
        "accepted": rate(one["verdict"] == "correct" for one in held_out),
        "marked": rate(marks(one["response"]) > 0 for one in held_out),
        "drawn_hackable": rate(hackable(one["question"], where) for one in samples),
        "drawn_long": rate(digits(one["question"]) > 5 for one in samples),
        "curve": curve_of(samples),
        "faults": sum(one["verdict"] is None for one in (*samples, *held_out)),
    }


def config_of(models: Path, selection: str, steps: int, seed: int) -> Config:
    """The settings of a run."""
    problems = f"random-10-{seed}" if selection == "random-10" else "all"
    own = (
        f"model.name={models / 'marks'}",
        f"data.path={models / problems}.jsonl",
        f"data.eval_path={models / 'test.jsonl'}",
        f"data.seed={seed}",
        f"run.steps={steps}",
        f"run.seed={seed}",
    )
    return configs.build({}, (*SMALL, *own, *SELECTIONS[selection]), origin="bench")


def is_true(row: Row) -> bool:
    """Whether a response that was kept is right, whatever the judge said."""
    return not row["truncated"] and answer_of(row["response"]) == row["reference"]


def rate(values: Iterable[bool]) -> float | None:
    """The share of what holds; None for none."""
    known = list(values)
    return statistics.fmean(known) if known else None


def curve_of(samples: Iterable[Row]) -> list[tuple[float, float, float]]:
    """By step: the shares that were accepted, were right, and were marked."""
    by_step: dict[int, list[Row]] = defaultdict(list)
    for row in samples:
        if row["verdict"] is not None:
            by_step[row["step"]].append(row)
    return [
        (
            statistics.fmean(row["verdict"] == "correct" for row in rows),
            statistics.fmean(map(is_true, rows)),
            statistics.fmean(marks(row["response"]) > 0 for row in rows),
        )
        for _, rows in sorted(by_step.items())
    ]


def smooth(values: Sequence[float]) -> list[float]:
    """Means over `WINDOW` steps; the first is that of the first so many."""
    return [statistics.fmean(values[n - WINDOW : n]) for n in range(WINDOW, len(values) + 1)]


def at_equal_proxy(curves: Mapping[str, Sequence[Sequence[float]]]) -> dict[str, float]:
    """The share of right responses where the share of accepted ones first was what all reach.

    Args:
        curves: of the runs of a seed, by step, accepted and right.
    """
    proxies = {name: smooth([point[0] for point in curve]) for name, curve in curves.items()}
    level = min(max(proxy) for proxy in proxies.values())
    found = {}
    for name, proxy in proxies.items():
        at = next(n for n, value in enumerate(proxy) if value >= level)
        found[name] = smooth([point[1] for point in curves[name]])[at]
    return found


# All runs.


class Arm(NamedTuple):
    """A contestant: its judge's kind, the judge's hole and where it is, and what is trained on."""

    kind: str
    hole: float
    where: str = "all"
    selection: str = "all"


def run(words: Sequence[str]) -> None:
    """Runs what is asked for and not there yet; prints what is known so far."""
    parser = options("pre_ppo", steps=40)
    parser.add_argument("--parts", default="judges,selection")
    parser.add_argument("--holes", default="0.3,0.6,0.9", help="of part judges")
    parser.add_argument("--part-holes", default="0,0.9", help="of part selection, in a half")
    parser.add_argument("--hackable", choices=("easy", "hard"), default="easy")
    chosen = parser.parse_args(words)
    environment.calm()
    seeds = plan.read_seeds(chosen.seeds)
    models = chosen.out / "models"
    models.mkdir(parents=True, exist_ok=True)
    task(models, seeds)
    for part in chosen.parts.split(","):
        if part == "judges":
            keep(chosen.out / "judges.json", _judges(chosen, seeds))
        else:
            keep(chosen.out / f"selection-{chosen.hackable}.json", _selection(chosen, seeds))


def _judges(chosen: argparse.Namespace, seeds: Sequence[int]) -> dict[str, Any]:
    holes = [float(word) for word in chosen.holes.split(",")]
    arms = {"rtv": Arm("rtv", 0.0)}
    arms |= {f"{kind}-{hole:g}": Arm(kind, hole) for hole in holes for kind in ("gt", "bon")}
    runs = _finished(chosen, seeds, arms)
    for seed in seeds:
        own = {name: runs[name][seed] for name in runs if seed in runs[name]}
        for name, value in at_equal_proxy(
            {name: one["curve"] for name, one in own.items()}
        ).items():
            own[name]["at_equal_proxy"] = value
    pairs = [("bon-" + tail, "gt-" + tail) for tail in (f"{hole:g}" for hole in holes)]
    wider = list(pairwise(holes))
    pairs += [(f"{kind}-{b:g}", f"{kind}-{a:g}") for a, b in wider for kind in ("gt", "bon")]
    pairs += [(f"bon-{b:g}", f"gt-{a:g}") for a, b in wider]
    found = _table("judges", runs, "rtv", pairs)
    panels: dict[str, dict[str, list[Points]]] = {
        title: {
            name: [_points(one["curve"], at) for one in own.values()] for name, own in runs.items()
        }
        for at, title in enumerate(("accepted by the judge", "right"))
    }
    draw(chosen.out / "judges.png", panels, y="of the responses of a step")
    return found


def _points(curve: Sequence[Sequence[float]], at: int) -> Points:
    return list(enumerate(smooth([point[at] for point in curve]), start=WINDOW))


def _selection(chosen: argparse.Namespace, seeds: Sequence[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    ahead: dict[tuple[str, float], dict[int, float]] = {}
    holes = [float(word) for word in chosen.part_holes.split(",")]
    for hole in holes:
        print(f"\na hole of {hole:g} in the {chosen.hackable} half of the prompts")
        arms = {one: Arm("gt", hole, chosen.hackable, one) for one in SELECTIONS}
        runs = _finished(chosen, seeds, arms)
        pairs = [("lowest-10", other) for other in arms if other not in ("lowest-10", "all")]
        found[f"{hole:g}"] = _table("selection", runs, "all", pairs)
        for other in arms:
            ahead[other, hole] = {
                seed: one["true"] - runs[other][seed]["true"]
                for seed, one in runs["lowest-10"].items()
                if seed in runs[other]
            }
    for other in SELECTIONS if len(holes) > 1 else ():
        if other != "lowest-10":
            gain = difference(ahead[other, holes[-1]], ahead[other, holes[0]])
            found[f"what the hole changes, lowest-10 less {other}"] = as_data(gain)
            print(f"what the hole changes, lowest-10 less {other}: {told(gain)}")
    return found


def _table(part: str, runs: Runs, first: str, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Means over seeds, and differences paired by seed."""
    found = compare(runs, ("before", *FIGURES[part]), first)
    return found | leads(runs, pairs, FIGURES[part][: 2 if part == "judges" else 1])


def _finished(
    chosen: argparse.Namespace, seeds: Iterable[int], arms: Mapping[str, Arm]
) -> dict[str, dict[int, dict[str, Any]]]:
    jobs = {(name, seed): _job(chosen, seed, arm) for seed in seeds for name, arm in arms.items()}
    return finished(jobs, chosen.jobs, one_run)


def _job(chosen: argparse.Namespace, seed: int, arm: Arm) -> Job:
    name = "-".join(map(str, (*arm, seed)))
    return job_of(
        "pre_ppo", name, chosen.out / f"{chosen.steps}-steps" / name,
        **arm._asdict(), seed=seed, steps=chosen.steps, models=str(chosen.out / "models"),
    )  # fmt: skip


if __name__ == "__main__":
    begin(one_run)
