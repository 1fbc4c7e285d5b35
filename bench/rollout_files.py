"""What keeping rollouts costs: bytes and microseconds a token, with and without what is optional.

64 responses of 1,000 tokens, all trained on. Token ids are log-uniform over 150,000; the entropies
and log-probabilities are drawn from gamma distributions under seed 0, so that no digits repeat by
design. With a critic each token has an advantage of its own.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import numpy as np

from assay.clients.types import Judgement, Result
from assay.kit.runs.rollouts import path_for, write_rollouts
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.records.rollouts import TokenCredit, rollout_rows, with_entropies
from assay.trainer.rollouts.types import Rollout, place
from bench.common import interleaved, spread

RESPONSES, TOKENS, ROUNDS = 64, 1_000, 7


def rollouts() -> list[Rollout]:
    """Responses of as many tokens, with the sampler's log-probabilities."""
    randomly = random.Random(0)
    made = []
    for number in range(RESPONSES):
        ids = tuple(int(150_000 ** randomly.random()) for _ in range(TOKENS))
        text = "".join(f" word{token % 5_000}" for token in ids)
        logprobs = tuple(-randomly.gammavariate(0.3, 1.0) for _ in ids)
        problem = Problem(str(number // 8), "What is it?", (("user", "What is it?"),), "it")
        request = Request(Draw(number // 8, problem, (1, 2, 3)), number % 8)
        result = Result("1", Judgement(reward=float(number % 2), verdict="correct"))
        made.append(Rollout(request, Response(ids, text, logprobs, truncated=False), result, 0))
    return made


def credit_rows(rows: list[Rollout], *, critic: bool, entropies: bool) -> list[TokenCredit]:
    """What a batch says of each row."""
    randomly = np.random.default_rng(0)
    found = []
    for number in range(len(rows)):
        own = randomly.normal(size=TOKENS if critic else 1).astype(np.float32)
        credit = TokenCredit(np.ones(TOKENS, bool), np.resize(own, TOKENS), None, number % 2)
        if entropies:
            values = randomly.gamma(0.5, 0.8, TOKENS).astype(np.float32)
            credit = with_entropies(credit, values)
        found.append(credit)
    return found


def run() -> None:
    """Prints a row for each kind."""
    rows = rollouts()
    sizes: dict[str, int] = {}
    contestants = {}
    with tempfile.TemporaryDirectory() as name:
        for critic in (False, True):
            for entropies in (False, True):
                kind = ("critic" if critic else "group") + (", entropies" if entropies else "")
                known = credit_rows(rows, critic=critic, entropies=entropies)
                credit = {place(row): one for row, one in zip(rows, known, strict=True)}

                def write(kind: str = kind, credit: dict = credit) -> None:  # type: ignore[type-arg]
                    path = path_for(Path(name), 1)
                    sizes[kind] = write_rollouts(path, rollout_rows(1, rows, credit=credit))

                contestants[kind] = write
        seconds = interleaved(contestants, ROUNDS)
    print("| advantages | bytes a token | us a token |")
    print("|---|---|---|")
    tokens = RESPONSES * TOKENS
    for kind, times in seconds.items():
        cost = spread([1e6 * one / tokens for one in times])
        print(f"| {kind} | {sizes[kind] / tokens:.1f} | {cost} |")
