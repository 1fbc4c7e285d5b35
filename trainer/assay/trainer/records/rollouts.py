"""Every rollout of a run, as it was drawn, judged and trained on; see assay.kit.runs.rollouts."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from assay.environments.record import result_json
from assay.kit.pieces import pieces_of
from assay.kit.runs import rollouts as files
from assay.kit.runs.records import JsonLines, Row
from assay.trainer.core.evaluation import FIRST_DRAW
from assay.trainer.records.samples import turn_row
from assay.trainer.rollouts.types import Collected, Place, Rollout, Unfinished, place
from assay.trainer.settings.sections import RunConfig

Batch = Mapping[str, torch.Tensor]
_DIGITS = 5  # behind the point, of log-probabilities and advantages
_ENTROPY_DIGITS = 4


@dataclass(frozen=True, slots=True)
class TokenCredit:
    """What a batch says of one response's tokens.

    Attributes:
        trained: (T,) in the loss.
        advantages: (T,)
        old_logps: (T,) that ratios start from; NaN for those of the first pass. None: not kept.
        shaped_reward: NaN for a fault.
        entropies: (T,) in nats; NaN outside the loss. None: not kept.
    """

    trained: np.ndarray[Any, Any]
    advantages: np.ndarray[Any, Any]
    old_logps: np.ndarray[Any, Any] | None
    shaped_reward: float
    entropies: np.ndarray[Any, Any] | None = None


def credit_of(rows: Sequence[Rollout | Unfinished], batch: Batch) -> dict[Place, TokenCredit]:
    """What a batch says of its rows, which stand in the same order."""
    trained, advantages, rewards = (
        batch[name].detach().float().cpu().numpy()
        for name in ("loss_mask", "advantages", "rewards")
    )
    old = batch["old_logps"].detach().float().cpu().numpy() if "old_logps" in batch else None
    found = {}
    for number, row in enumerate(rows):
        length = min(len(row.response.ids), trained.shape[1])
        found[place(row)] = TokenCredit(
            trained[number, :length] > 0,
            advantages[number, :length],
            None if old is None else old[number, :length],
            float(rewards[number]),
        )
    return found


def with_entropies(credit: TokenCredit, values: np.ndarray[Any, Any]) -> TokenCredit:
    """The credit with entropies of a row of its micro-batch, which may be longer or shorter."""
    entropies = np.full(len(credit.trained), np.nan, np.float32)
    length = min(len(values), len(entropies))
    entropies[:length] = values[:length]
    entropies[~credit.trained] = np.nan
    return replace(credit, entropies=entropies)


def rollout_rows(
    step: int,
    rollouts: Iterable[Rollout | Unfinished],
    *,
    phase: str = files.TRAIN,
    process: int = 0,
    credit: Mapping[Place, TokenCredit] | None = None,
) -> Iterator[Row]:
    """Rows of a step's file; `credit` is unknown for what this process does not train on."""
    credit = credit or {}
    for rollout in rollouts:
        problem, response = rollout.request.draw.problem, rollout.response
        result = rollout.result if isinstance(rollout, Rollout) else None
        judged = result_json(result) if result else {"judgement": None, "fault": None}
        yield {
            "version": files.VERSION,
            "step": step,
            "phase": phase,
            "process": process,
            "policy_step": rollout.policy_step,
            # the draws of an evaluation have numbers of their own
            "draw": rollout.request.draw.number - (FIRST_DRAW if phase == files.EVAL else 0),
            "sample": rollout.request.index,
            "hint": rollout.request.draw.hint,
            "problem": problem.id,
            "task": problem.task,
            "question": problem.question,
            "reference": problem.reference,
            **({"tests": json.loads(problem.tests)} if problem.tests else {}),
            **({"anchor": problem.anchor} if problem.anchor else {}),
            "prompt": [{"role": role, "content": text} for role, text in problem.messages],
            "prompt_ids": list(rollout.request.draw.prompt_ids),
            "response": response.text,
            "ids": list(response.ids),
            "tokens": rollout.length,
            "truncated": response.truncated,
            "finished": result is not None,
            "own": _own(rollout),
            "logprobs": _numbers(response.logprobs),
            **_credited(credit.get(place(rollout))),
            "reward": result.reward if result else None,
            **judged,
            "judge_s": round(result.execution_s, 4) if result else None,
            "queue_s": round(result.queue_s, 4) if result else None,
            **({"turns": [turn_row(turn) for turn in rollout.turns]} if rollout.turns else {}),
            **_episode(rollout),
        }


def _own(rollout: Rollout | Unfinished) -> list[list[Any]]:
    """[first token, one past the last, turn, context, agent] of what the policy wrote."""
    acted = rollout.acted if isinstance(rollout, Rollout) else None
    if acted is not None:
        return [
            [one.start, one.end, number, one.context, one.agent]
            for number, one in enumerate(acted.turns)
        ]
    turns = rollout.turns
    if turns:
        return [[one.start, one.end, number, 0, "policy"] for number, one in enumerate(turns)]
    return [[0, len(rollout.response.ids), 0, 0, "policy"]]


def _episode(rollout: Rollout | Unfinished) -> Row:
    acted = rollout.acted if isinstance(rollout, Rollout) else None
    if acted is None:
        return {}
    tools_s = sum(turn.seconds for turn in acted.turns)
    return {
        "environment": acted.environment,
        "ending": acted.ending,
        "contexts": list(acted.contexts),
        "tools_s": round(tools_s, 4),
        "episode": acted.record,
    }


def _credited(credit: TokenCredit | None) -> Row:
    if credit is None:
        return dict.fromkeys(
            ("shaped_reward", "trained", "advantages", "old_logprobs", "entropies")
        )
    shaped = credit.shaped_reward
    old = credit.old_logps
    return {
        "shaped_reward": round(shaped, 6) if math.isfinite(shaped) else None,
        "trained": [[start, end] for start, end, value in runs(credit.trained) if value],
        "advantages": [
            [start, end, round(float(value), _DIGITS)]
            for start, end, value in runs(credit.advantages)
            if value and math.isfinite(value)
        ],
        "old_logprobs": None if old is None or np.isnan(old).all() else _numbers(old.tolist()),
        "entropies": _entropies(credit),
    }


def _entropies(credit: TokenCredit) -> list[float | None] | None:
    if credit.entropies is None:
        return None
    return _numbers(credit.entropies.tolist(), _ENTROPY_DIGITS)


def runs(values: np.ndarray[Any, Any]) -> list[tuple[int, int, Any]]:
    """(first, one past the last, value) of each stretch of equal values."""
    if not len(values):
        return []
    edges = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
    return [(start, end, values[start]) for start, end in itertools.pairwise(edges)]


def _numbers(values: Iterable[float] | None, digits: int = _DIGITS) -> list[float | None] | None:
    if values is None:
        return None
    return [round(value, digits) if math.isfinite(value) else None for value in values]


def parts_of(
    span: tuple[str, float, float], collected: Collected
) -> list[tuple[str, float, float]]:
    """Generation, and the wait for judgements behind it, within the span of collecting a step.

    None where responses are drawn beside the training: they were drawn in other steps.
    """
    name, start, end = span
    if name != "collect" or collected.blocked_s is not None:
        return []
    scored = max(start, end - collected.wait_s)
    generated = min(scored, start + collected.generate_s)
    return [("generate", start, generated), ("score", scored, end)]


class RolloutRecorder:
    """Writes this process's rollouts and its times.

    Args:
        run: its `rollouts` says which, its `rollouts_mb` how much.
        folder: RUN/rollouts.
        process: of the run, from 0; the first one thins old steps out.
        say: gets a line where a step could not be written; the run goes on.

    Attributes:
        seconds: that writing took so far.
    """

    def __init__(
        self,
        run: RunConfig,
        folder: Path,
        process: int,
        say: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.seconds = 0.0
        self._say = say
        self._run = run
        self._folder = folder
        self._process = process
        self._credit: dict[Place, TokenCredit] = {}
        self._rows: list[Place] = []
        self._entropies: dict[int, np.ndarray[Any, Any]] = {}
        self._written = 0
        self._timeline: JsonLines | None = None
        if self.on:
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def on(self) -> bool:
        """Whether anything is kept."""
        return self._run.rollouts != "none"

    def saw(self, rows: Sequence[Rollout | Unfinished], batch: Batch) -> None:
        """Remembers what a batch says of its rows, until the step is written."""
        if self.on:
            self._credit.update(credit_of(rows, batch))
            self._rows = [place(row) for row in rows]

    def spread(self, batch: Batch, entropies_BT: torch.Tensor) -> None:
        """Remembers the entropies of a micro-batch, whose `row` are places in the step's batch."""
        if self.on and self._run.entropies:
            numbers = batch["row"].tolist()
            values_BT = entropies_BT.detach().float().cpu().numpy()
            self._entropies.update(zip(numbers, values_BT, strict=True))

    def vocabulary(self, tokenizer: Any) -> None:
        """Writes what each token stands for, on the first process."""
        pieces = pieces_of(tokenizer) if self.on and self._process == 0 else None
        if pieces is not None:
            try:
                files.write_vocabulary(self._folder, pieces)
            except OSError as error:
                self._say(f"warning: the vocabulary is not kept: {error}")

    def step(self, step: int, rollouts: Sequence[Rollout | Unfinished], *, sampled: bool) -> None:
        """Writes a step of training; `sampled` is a step whose samples are shown."""
        credit, self._credit = self._credit, {}
        entropies, self._entropies = self._entropies, {}
        if self.on and (self._run.rollouts == "all" or sampled):
            for number, values in entropies.items():
                where = self._rows[number]
                credit[where] = with_entropies(credit[where], values)
            self._write(step, rollouts, files.TRAIN, credit)

    def evaluation(self, step: int, rollouts: Sequence[Rollout]) -> None:
        """Writes an evaluation after so many steps."""
        if self.on:
            self._write(step, rollouts, files.EVAL, {})

    def times(self, step: int, spans: Iterable[tuple[str, float, float]]) -> None:
        """Writes what this process did in a step: a name, and the seconds since 1970 around it."""
        if not self.on:
            return
        if self._timeline is None:
            self._timeline = JsonLines(files.timeline_for(self._folder, self._process))
        for name, start, end in spans:
            row = {"step": step, "process": self._process, "what": name}
            self._timeline.write({**row, "start": round(start, 4), "end": round(end, 4)})

    def close(self) -> None:
        """Ends the file of times."""
        if self._timeline is not None:
            self._timeline.close()
            self._timeline = None

    def _write(
        self,
        step: int,
        rollouts: Sequence[Rollout | Unfinished],
        phase: str,
        credit: Mapping[Place, TokenCredit],
    ) -> None:
        began = time.perf_counter()
        rows = rollout_rows(step, rollouts, phase=phase, process=self._process, credit=credit)
        path = files.path_for(self._folder, step, phase, self._process)
        most = self._run.rollouts_mb
        try:
            self._written += files.write_rollouts(path, rows)
            if self._process == 0 and most and self._written > most * 2**20 / 20:
                self._written = 0
                files.thin(self._folder, most)
        except OSError as error:
            self._say(f"warning: the rollouts of step {step} are not kept: {error}")
        self.seconds += time.perf_counter() - began
