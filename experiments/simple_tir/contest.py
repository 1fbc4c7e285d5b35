"""Void turns, what their gradients are, and what leaving them out does (SimpleTIR, 2509.02479).

    python -m experiments simple_tir --out DIR --seeds 0,1,2

A policy of 0.1 M weights multiplies with a tool that fails none to two times before it works
(episodes.py). A turn is a thought, of words that are hard to guess, and a program or an
answer; pretrained, 15 of 100 turns end behind the thought, and are void. What a tool prints it
knows as a number; a traceback is eight words of a thought.

The paper's account of the collapse, at the pretrained policy on 512 episodes a seed:

1. Out-of-distribution output makes what follows improbable: of the tokens behind a traceback a
   larger share has a chance below 0.1 than of those behind a product, by 0.05 or more, its interval
   above 0.
2. Gradients of void episodes are larger: their mean norm, of the mean log-probability of a token,
   is 1.2 times that of other episodes or more, in each seed.
3. The filter takes them out of a step: the norm of GRPO's first gradient, token-mean over the 512
   episodes, is larger with void episodes than without them, in each seed.

And 40 steps of `configs/simple_tir.toml`, 8 rows of 8 samples, learning rate 1e-3:

    naive    without the filter
    filter   the preset

4. The largest gradient norm over the run is larger `naive`, its interval above 0.
5. A collapse is a mean reward of the last ten steps below half of the best ten. None is expected:
   pilots had none. Where there is none, nothing is shown of the filter's worth.

Pilots with seed 100, whose policy ended no turn early: 1 to 3 episodes in 100 were void, their
gradients 1.35 and 1.55 times as large, the shares 0.33 and 0.22 to 0.27, the gradient of a step the
same with and without them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from assay.kit.runs.records import read_rows
from assay.kit.runs.rollouts import read_rollouts
from assay.trainer.recipes.ladder.outcome import series
from assay.trainer.records.folder import RunFolder
from experiments.episodes import PROSE
from experiments.miniature import (
    Item,
    Service,
    Shape,
    begin,
    contest,
    keep,
    pretrained,
    tiny,
    train,
    write_problems,
)
from experiments.report import compare
from experiments.tools.contest import BOX, CLOSE, FENCE, OVER, PROGRAM, SHOWN, offer
from experiments.tools.contest import WORDS as CALLING

WORDS = (*CALLING, *PROSE)
SHAPE = Shape(width=64, layers=2, context=160, steps=900, batch=64, learning_rate=5e-3)
PROGRAMS, STOPS, LOW, LAST = 0.8, 0.2, 0.1, 10
CONTESTANTS: Mapping[str, tuple[str, ...]] = {"naive": ("method.filter.void=none",), "filter": ()}
OWN = (
    "method.episodes.environment=experiments/episodes.py:Flaky",
    "method.episodes.tokens=0",
    "optim.learning_rate=1e-3",
    "optim.mini_batches=4",
    "rollout.max_new_tokens=24",
)
MEASURED = (
    "method.filter.void=none",
    "method.dynamic_sampling.enabled=false",
    "rollout.prompts_per_step=64",
    "run.steps=1",
)
FIGURES = ("best", "last", "peak", "void_first", "void_last")
AT_FIRST = (
    "low_first", "low_product", "low_traceback", "norm_other", "norm_void", "times",
    "step_naive", "step_filtered",
)  # fmt: skip


def thought(dice: random.Random) -> str:
    """Words by chance, the first of the list more often."""
    length = min(10, int(dice.expovariate(1 / 3)))
    return "".join(PROSE[int(len(PROSE) * dice.random() ** 2)] for _ in range(length))


def drawn(dice: random.Random) -> tuple[str, str]:
    """A turn of an episode whose tool worked."""
    one, other = dice.randrange(10, 100), dice.randrange(10, 100)
    prompt, before = f"{offer()}{one}*{other}=", thought(dice)
    program = (
        f"{before}\n{PROGRAM}{one}*{other}{OVER}" if before else f"{PROGRAM}{one}*{other}{OVER}"
    )
    second = dice.random() < 0.55
    if second:
        prompt, before = f"{prompt}{program}{SHOWN}\n{one * other}\n{FENCE}", thought(dice)
    if before and dice.random() < STOPS:
        return prompt, before
    if not second and dice.random() < PROGRAMS:
        return prompt, program
    number = one * other if second else dice.randrange(10, 100) * dice.randrange(10, 100)
    return prompt, f"{before}{BOX}{number}{CLOSE}"


def is_right(item: Item) -> bool:
    """The very number, in a box, at the end."""
    return item.response.strip().endswith(f"{BOX}{item.reference.text}{CLOSE}")


def problems(folder: Path) -> tuple[Path, Path, Path]:
    """The pretrained model, the training problems, and one held out that nobody looks at."""
    model = pretrained(folder / "flaky", WORDS, drawn, SHAPE)
    dice = random.Random(0)
    pairs = [(a, b) for a in range(10, 100) for b in range(10, 100)]
    dice.shuffle(pairs)
    rows = [(f"{a}*{b}=", str(a * b)) for a, b in pairs[:601]]
    train_path = write_problems(folder / "products.jsonl", rows[1:])
    return model, train_path, write_problems(folder / "held-out.jsonl", rows[:1])


@dataclass(frozen=True, slots=True)
class Told:
    """An episode as it was recorded: its ids, the policy's turns among them, and what they were."""

    ids: Sequence[int]
    turns: Sequence[tuple[int, int]]
    kinds: Sequence[str]
    improbable: Sequence[float]
    void: bool
    advantage: float


def told(row: Mapping[str, Any]) -> Told:
    """Of a row of rollouts."""
    before = len(row["prompt_ids"])
    steps = row["episode"]["steps"]
    turns: list[tuple[int, int]] = []
    kinds: list[str] = []
    improbable: list[float] = []
    for step, (start, end, *_) in zip(steps, row["own"], strict=True):
        read = step["read"][0]["content"] if turns else ""
        kinds.append("first" if not turns else "product" if read.strip().isdigit() else "traceback")
        turns.append((before + start, before + end))
        improbable.append(fmean(math.exp(x) < LOW for x in row["logprobs"][start:end]))
    advantage = row["advantages"][0][2] if row["advantages"] else 0.0
    void = any(step["void"] for step in steps)
    return Told([*row["prompt_ids"], *row["ids"]], turns, kinds, improbable, void, advantage)


def norms(model: Path, episodes: Sequence[Told]) -> dict[str, float]:
    """Of the gradients, at a policy, of episodes that it drew."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForCausalLM  # noqa: PLC0415

    load: Any = AutoModelForCausalLM.from_pretrained
    policy = load(model)

    def gradient(one: Told) -> Any:
        ids = torch.tensor([one.ids])
        logprobs = policy(input_ids=ids).logits[0, :-1].log_softmax(-1)
        chosen = logprobs.gather(1, ids[0, 1:, None])[:, 0]
        own = torch.cat([chosen[a - 1 : b - 1] for a, b in one.turns])
        policy.zero_grad()
        loss: Any = -own.sum()
        loss.backward()
        return torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])

    written = [sum(b - a for a, b in one.turns) for one in episodes]
    found: dict[bool, list[float]] = {True: [], False: []}
    whole = torch.zeros(())
    kept = torch.zeros(())
    for one, tokens in zip(episodes, written, strict=True):
        its = gradient(one)
        found[one.void].append(float(its.norm()) / tokens)
        whole = whole + one.advantage * its
        kept = kept if one.void else kept + one.advantage * its
    kept_tokens = sum(n for one, n in zip(episodes, written, strict=True) if not one.void)
    void, other = fmean(found[True]), fmean(found[False])
    return {
        "norm_void": void,
        "norm_other": other,
        "times": void / other,
        "step_naive": float(whole.norm()) / sum(written),
        "step_filtered": float(kept.norm()) / kept_tokens,
    }


def low(episodes: Iterable[Told], kind: str) -> float:
    """The share of improbable tokens in turns of a kind, a turn counting as one."""
    return fmean(
        share
        for one in episodes
        for share, its in zip(one.improbable, one.kinds, strict=True)
        if its == kind
    )


def judge() -> Service:
    """Right or wrong."""
    return Service(is_right, rewards=(0.0, 1.0))


def main(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """One run; `naive` looks at the pretrained policy before."""
    folder, made, name = Path(wanted["folder"]), problems(Path(wanted["models"])), wanted["name"]
    at_first: dict[str, float] = {}
    if name == "naive":
        look = folder.with_name(f"look-{wanted['seed']}")
        train(tiny("simple_tir", wanted, made, *OWN, *MEASURED), look, judge)
        episodes = [told(row) for row in read_rollouts(look, phase="train")]
        kinds = ("first", "product", "traceback")
        at_first = {f"low_{kind}": low(episodes, kind) for kind in kinds}
        at_first |= {"void": fmean(one.void for one in episodes), **norms(made[0], episodes)}
    train(tiny("simple_tir", wanted, made, *OWN, *CONTESTANTS[name]), folder, judge)
    rows = list(read_rows(RunFolder(folder).metrics))
    keys = ("reward", "grad_norm", "episodes_with_void", "entropy")
    curves = {key: [value for _, value in series(rows, key)] for key in keys}
    rewards, void = curves["reward"], curves["episodes_with_void"]
    return {
        "best": max(fmean(rewards[n : n + LAST]) for n in range(len(rewards) - LAST + 1)),
        "last": fmean(rewards[-LAST:]),
        "peak": max(curves["grad_norm"]),
        "void_first": void[0],
        "void_last": fmean(void[-LAST:]),
        **at_first,
        "curves": curves,
    }


def run(words: Sequence[str]) -> None:
    """Runs what is not there yet; prints what is known so far."""
    chosen, found = contest("simple_tir", words, CONTESTANTS, 40, prepare=problems, one=main)
    print("at the pretrained policy")
    first = compare({"naive": found["naive"]}, AT_FIRST, "naive")
    table = compare(found, FIGURES, "filter")
    keep(chosen.out / f"simple_tir-{chosen.steps}.json", {"first": first, "table": table})


if __name__ == "__main__":
    begin(main)
