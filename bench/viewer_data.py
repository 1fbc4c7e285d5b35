"""A large run and a large journal for `bench viewer`, by the writers that real ones have.

The run is written as the trainer writes its rollouts, the journal as the reward server keeps its
entries. All of it follows from the seed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import operator
import random
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np

from assay.clients.types import Fault, Judgement, Result
from assay.kit.runs.records import JsonLines
from assay.kit.runs.rollouts import path_for, write_rollouts
from assay.reward_server.journal.entries import Entry
from assay.reward_server.journal.store import BATCH_ROWS, Store
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.records.rollouts import TokenCredit, rollout_rows
from assay.trainer.rollouts.types import Rollout, place

STEP_ROLLOUTS, SAMPLES, TOKENS, STEPS = 100, 4, 120, 200
BEGAN_S = 1_790_000_000.0
SPAN_S = 2 * 86_400.0
_TEXT = (
    "so the next step follows from what we have and then four times six gives the sum of both "
    "which is less than before hence the answer must be even but we check it again"
)
WORDS = _TEXT.split()
JUDGES = (("math", "1"), ("exact", "1"), ("math", "2"), ("judge", "1"))
"""Who judges each item of the journal, in this order."""
_FAULTS = ("ITEM_TIMEOUT", "SANDBOX_UNAVAILABLE", "JUDGE_UNREADABLE")
_SUSPICIONS = ("PROMPT_INJECTION", "FORGED_EQUALITY", "EARLY_EXIT")
_SEED = 0


def make_run(folder: Path, rollouts: int) -> Path:
    """A run with so many rollouts, and its metrics."""
    randomly = random.Random(_SEED)
    run = folder / "run"
    steps = max(1, rollouts // STEP_ROLLOUTS)
    credit = TokenCredit(np.ones(TOKENS, bool), np.ones(TOKENS, np.float32), None, 1.0)
    run.mkdir(parents=True)
    with contextlib.closing(JsonLines(run / "metrics.jsonl")) as metrics:
        for step in range(1, steps + 1):
            rows = [_rollout(randomly, step, number) for number in range(STEP_ROLLOUTS)]
            known = {place(row): credit for row in rows}
            write_rollouts(path_for(run / "rollouts", step), rollout_rows(step, rows, credit=known))
            reward = 1 - math.exp(-step / 60) + randomly.gauss(0, 0.02)
            names = ("reward", "correct", "entropy", "kl", "grad_norm", "response_length")
            metrics.write({"step": step, **{name: reward + n for n, name in enumerate(names)}})
    return run


def _rollout(randomly: random.Random, step: int, number: int) -> Rollout:
    draw = step * STEP_ROLLOUTS // SAMPLES + number // SAMPLES
    ids = tuple(randomly.randrange(50_000) for _ in range(TOKENS))
    text = " ".join(randomly.choices(WORDS, k=TOKENS))
    question = f"What is {draw} times {randomly.randrange(100)}?"
    problem = Problem(str(draw % 2_000), question, (("user", question),), str(draw))
    result = Result("1", _outcome(randomly))
    logprobs = tuple(-randomly.expovariate(2.0) for _ in ids)
    response = Response(ids, text, logprobs, truncated=randomly.random() < 0.1)
    return Rollout(Request(Draw(draw, problem, ids[:12]), number % SAMPLES), response, result, step)


def _outcome(randomly: random.Random) -> Judgement | Fault:
    if randomly.random() < 0.02:
        return Fault(randomly.choice(_FAULTS), "no verdict came")
    good = randomly.random() < 0.5
    caught = (randomly.choice(_SUSPICIONS),) if randomly.random() < 0.01 else ()
    return Judgement(
        reward=float(good), verdict="correct" if good else "incorrect", verifier="math",
        version="1", suspicions=caught, extracted_answer="12",
    )  # fmt: skip


def make_journal(path: Path, judgements: int) -> Path:
    """A journal with so many entries: each item is judged by every one of `JUDGES`."""
    store = Store(path, 2**36)
    columns = operator.attrgetter(*(field.name for field in fields(Entry)))
    batch = []
    for entry in entries(judgements):
        batch.append(columns(entry))
        if len(batch) == BATCH_ROWS:
            _append(store, batch)
            batch = []
    _append(store, batch)
    store.close()
    return path


def _append(store: Store, batch: list[tuple[object, ...]]) -> None:
    while batch and not store.append(batch):
        continue


def entries(count: int) -> Iterator[Entry]:
    """Entries in the order of their times."""
    randomly = random.Random(_SEED)
    judges = len(JUDGES)
    text = " ".join(randomly.choices(WORDS, k=20_000))
    for number in range(count):
        item, judge = divmod(number, judges)
        if judge == 0:
            at, length = randomly.randrange(80_000), randomly.randrange(100, 900)
            good, question = randomly.random() < 0.5, f"What is {item % 20_000} times 7?"
            response = f"{text[at : at + length]} The answer is {item}."
        verifier, version = JUDGES[judge]
        agrees = good if randomly.random() < 0.93 else not good
        faulted = randomly.random() < 0.02
        caught = randomly.random() < 0.005
        reward = float(agrees) if verifier != "judge" else round(randomly.random(), 2)
        yield Entry(
            time_s=BEGAN_S + SPAN_S * number / count,
            request_id=f"r-{number // 64}",
            item_id=str(item),
            group_id=str(item % 20_000),
            task="",
            verifier=verifier,
            version=version,
            verdict=None if faulted else "correct" if agrees else "incorrect",
            reward=None if faulted else reward,
            fault=randomly.choice(_FAULTS) if faulted else None,
            explanation="no verdict came" if faulted else "",
            answer=None if faulted else str(item),
            components="[]",
            spans="[]",
            suspicions=json.dumps([randomly.choice(_SUSPICIONS)] if caught and not faulted else []),
            queue_s=0.001,
            execution_s=round(randomly.expovariate(100), 5),
            from_cache=False,
            prompt=json.dumps([["user", question]]),
            response=response,
            is_dialogue=False,
            response_chars=len(response),
            reference=str(item),
            item_key=hashlib.blake2b(b"%d" % item, digest_size=16).digest(),
            labels=f'{{"run":"bench","phase":"train","step":"{1 + number * STEPS // count}"}}',
            parameters="{}",
            reference_kind="text",
            cut="[]",
        )
