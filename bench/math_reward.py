"""Mathematics as a reward: Assay's service against TRL's own `accuracy_reward` in the trainer.

Both rest on math-verify 0.9.0. The rows are labelled pairs of gold answer and response; both get
the same rows in the same run, by turns, as one batch, as a trainer would send it. Assay's cache is
off, its workers are as many as the cores.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from assay.clients import EmbeddedServices, Item, RewardClient
from bench.common import interleaved, spread

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "math_equiv_dev.jsonl.gz"
ROWS = 200
ROUNDS = 3
POISON = ("\\boxed{9^{9^{9^9}}}", "\\boxed{((9!)!)!}")


def load_rows() -> list[dict[str, object]]:
    """A sample of the labelled pairs, the same at every run."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return random.Random(0).sample(rows, ROWS)


def table_line(name: str, rewards: list[float | None], labels: list[int], wall: str) -> str:
    """One contestant: how often it agrees with the label, where it accepts what is wrong, and time.

    A row that it did not judge counts as neither right nor wrong.
    """
    judged = [(bool(r), bool(y)) for r, y in zip(rewards, labels, strict=True) if r is not None]
    agree = sum(said == true for said, true in judged)
    false_positives = sum(said and not true for said, true in judged)
    missed = sum(true and not said for said, true in judged)
    return (
        f"{name:28s} {len(judged):6d} {agree / max(1, len(judged)):8.1%} {false_positives:8d} "
        f"{missed:8d}   {wall}"
    )


def run() -> None:
    """Prints the table, and what each makes of two answers that never end."""
    if not DATA.is_file():
        print("\nmath: skipped, the benchmark files are absent (expected ../shared/data)")
        return
    from trl.rewards.accuracy_rewards import (  # noqa: PLC0415  # slow to import
        accuracy_reward,
    )

    warnings.simplefilter("ignore")
    rows = load_rows()
    labels = [int(str(row["label"])) for row in rows]
    golds = [str(row["gold"]) for row in rows]
    responses = [str(row["response"]) for row in rows]
    rewards: dict[str, list[float | None]] = {}

    def trl_scores(answers: list[str], references: list[str]) -> list[float | None]:
        messages = [[{"role": "assistant", "content": answer}] for answer in answers]
        return list(accuracy_reward(messages, references))

    with (
        EmbeddedServices(
            arguments={"reward": ("--cache-entries", "0", "--log-level", "ERROR")}
        ) as services,
        RewardClient(services.address, timeout_s=600) as client,
    ):

        def assay_scores(answers: list[str], references: list[str]) -> list[float | None]:
            items = [
                Item(answer, reference=reference, verifier="math", timeout_s=5.0)
                for answer, reference in zip(answers, references, strict=True)
            ]
            return [result.reward for result in client.score(items)]

        scorers: dict[str, Callable[[list[str], list[str]], list[float | None]]] = {
            "TRL accuracy_reward": trl_scores,
            "Assay math, over gRPC": assay_scores,
        }

        def turn(name: str) -> None:
            rewards[name] = scorers[name](responses, golds)

        print(f"\nmath: {ROWS} labelled pairs, {ROUNDS} rounds by turns, {os.cpu_count()} cores")
        print(
            f"{'':28s} {'judged':>6s} {'accuracy':>8s} {'false +':>8s} {'false -':>8s}   "
            "wall s a round (median [min, max])"
        )
        walls = interleaved({name: partial(turn, name) for name in scorers}, ROUNDS)
        for name in scorers:
            print(table_line(name, rewards[name], labels, spread(walls[name])))
        for answer in POISON:
            said = {
                name: scorer([answer, "\\boxed{4}"], ["4", "4"]) for name, scorer in scorers.items()
            }
            print(f"rewards of [{answer}, \\boxed{{4}}] against 4: {said}")
