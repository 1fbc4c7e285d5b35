"""Stored responses: read, checked, and put together into groups of one prompt.

A response without a judgement is in no group: a fault is no negative. So are those of held-out
questions, and those that do not fit the model's context; how many there were of each is said.

Tokens are those that were drawn where this run's tokenizer makes the same prompt of the row, or,
of an episode, whose prompt offers tools, where that prompt's tokens hold the row's messages;
otherwise the texts are encoded anew, an end after what was not cut.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from assay.clients import Result
from assay.environments.record import result_from
from assay.kit.errors import ConfigError
from assay.kit.runs.records import read_rows
from assay.kit.runs.rollouts import TRAIN, is_rollouts, read_rollouts
from assay.trainer.data.problems import Problem
from assay.trainer.settings.config import Config

Row = Mapping[str, Any]
Encode = Callable[[Problem], Sequence[int]]


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A judged response.

    Attributes:
        own: [first token, one past the last] of each stretch that the policy wrote.
        logprobs: of its tokens under the model that drew them; None where they are not known.
        baseline: mean reward of the stored responses to its prompt.
    """

    problem: Problem
    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    text: str
    result: Result
    truncated: bool
    own: tuple[tuple[int, int], ...]
    logprobs: tuple[float, ...] | None
    baseline: float = 0.0

    @property
    def reward(self) -> float:
        """As judged."""
        return self.result.judgement.reward if self.result.judgement else float("nan")

    @property
    def verdict(self) -> str:
        """As judged."""
        return self.result.judgement.verdict if self.result.judgement else ""

    def component(self, name: str) -> float | None:
        """The score of a component of that name; None without one."""
        parts = self.result.judgement.components if self.result.judgement else ()
        return next((part.score for part in parts if part.name == name), None)


@dataclass(slots=True)
class Stored:
    """All stored responses of a run.

    Attributes:
        responses: those that may train, in the order of the rows.
        groups: places of responses to each prompt.
        left_out: how many rows are not there, by reason.
        reference: log-probabilities of each response that ratios start from, once known.
    """

    responses: list[StoredResponse]
    groups: list[list[int]]
    left_out: Counter[str]
    reference: dict[int, np.ndarray[Any, Any]]

    @property
    def digest(self) -> str:
        """The same for the same responses and rewards."""
        found = hashlib.sha256()
        for one in self.responses:
            found.update(repr((one.prompt_ids, one.ids, one.reward)).encode())
        return found.hexdigest()

    def summary(self, path: str) -> str:
        """What there is, in a line."""
        told = f"{len(self.responses):,} responses to {len(self.groups):,} prompts of {path}"
        gone = ", ".join(f"{count:,} {why}" for why, count in sorted(self.left_out.items()))
        return told + (f"; left out: {gone}" if gone else "")


def read_stored(
    config: Config,
    encode: Encode,
    tokenizer: Any,
    *,
    context: int = 0,
    held_out: Collection[object] = (),
    note: Callable[[str], None] = lambda _text: None,
) -> Stored:
    """Reads `method.offline.rows`.

    Args:
        config: of the run.
        encode: a problem's rendered prompt as tokens.
        tokenizer: of the model that learns.
        context: most tokens of prompt and response; 0 for any number.
        held_out: questions and messages of the evaluation.
        note: gets a sentence for each file of which something is missing.

    Raises:
        ConfigError: there are no rows, one is not as expected, or nothing is left.
    """
    offline = config.method.offline
    left_out: Counter[str] = Counter()
    by_prompt: dict[str, list[StoredResponse]] = defaultdict(list)
    ends = tuple(tokenizer(tokenizer.eos_token, add_special_tokens=False)["input_ids"])
    for number, row in enumerate(_rows(Path(offline.rows), note), start=1):
        try:
            reason, found = _response(row, encode, tokenizer, ends)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"method.offline.rows = {offline.rows!r}, row {number}: it has no prompt, response "
                f"and judgement that can be read ({type(error).__name__}: {error})"
            ) from error
        if found is not None and held_out and _is_held_out(found.problem, held_out):
            reason, found = "of held-out questions", None
        if found is not None and 0 < context < len(found.prompt_ids) + len(found.ids):
            reason, found = "too long for the model's context", None
        if found is None:
            left_out[reason] += 1
        else:
            by_prompt[json.dumps(found.problem.messages)].append(found)
    responses, groups = _numbered(by_prompt.values(), offline.keep, left_out)
    stored = Stored(responses, groups, left_out, {})
    if not responses:
        raise ConfigError(
            f"method.offline.rows leaves nothing to learn from: {stored.summary(offline.rows)}"
        )
    if offline.reference == "recorded":
        _recall(stored, offline.rows)
    return stored


def _rows(path: Path, note: Callable[[str], None]) -> Iterator[Row]:
    if path.exists() and is_rollouts(path):
        yield from read_rollouts(path, phase=TRAIN, note=note)
        return
    rows = read_rows(path)
    if not rows:
        raise ConfigError(
            f"method.offline.rows = {str(path)!r} is no run with rollouts and no file of rows; "
            "name a run's folder, or what `assay score` wrote"
        )
    yield from rows


def _response(
    row: Row, encode: Encode, tokenizer: Any, ends: tuple[int, ...]
) -> tuple[str, StoredResponse | None]:
    """A response; or why there is none."""
    if not row.get("finished", True):
        return "unfinished", None
    if len(row.get("contexts") or ()) > 1:
        return "of several conversations", None
    result = _result(row)
    if result is None:
        return "faults", None
    problem = _problem(row)
    prompt_ids = tuple(encode(problem))
    text, truncated = str(row["response"]), bool(row.get("truncated"))
    ids: tuple[int, ...] = tuple(row.get("ids") or ())
    logprobs: Any = row.get("logprobs")
    if ids and row.get("episode") and _holds(tokenizer, row["prompt_ids"], problem):
        prompt_ids = tuple(row["prompt_ids"])
    if not ids or tuple(row["prompt_ids"]) != prompt_ids:
        if len(row.get("own") or ()) > 1:
            return "of several turns in other tokens", None
        encoded = tokenizer(text, add_special_tokens=False)["input_ids"]
        ids, logprobs = (*encoded, *(() if truncated else ends)), None
    if not ids:
        return "empty", None
    known = logprobs is not None and len(logprobs) == len(ids) and None not in logprobs
    own = tuple((start, end) for start, end, *_ in row.get("own") or [[0, len(ids)]])
    if len(own) == 1:
        own = ((own[0][0], len(ids)),)
    told = tuple(logprobs) if known else None
    return "", StoredResponse(problem, prompt_ids, ids, text, result, truncated, own, told)


def _holds(tokenizer: Any, prompt_ids: Sequence[int], problem: Problem) -> bool:
    """Whether these tokens, in this tokenizer, have the messages in their order."""
    text, at = tokenizer.decode(list(prompt_ids)), 0
    for _, content in problem.messages:
        at = text.find(content.strip(), at)
        if at < 0:
            return False
        at += len(content.strip())
    return True


def _result(row: Row) -> Result | None:
    """The judgement of a rollout, or of a line of `assay score`; None for a fault."""
    if "judgement" in row:
        return None if row["judgement"] is None else result_from(row)
    if row.get("reward") is None:
        return None
    judgement = {
        "reward": float(row["reward"]),
        "verdict": str(row.get("verdict") or ""),
        "components": row.get("components") or (),
        "spans": (),
        "suspicions": row.get("suspicions") or (),
    }
    return result_from({"fault": None, "judgement": judgement})


def _problem(row: Row) -> Problem:
    """A text alone is what a user says."""
    asked = row["prompt"]
    said = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    messages = tuple((str(one["role"]), str(one["content"])) for one in said)
    reference = row.get("reference")
    return Problem(
        id=str(row.get("problem") or row.get("id") or ""),
        question=str(row.get("question") or "\n".join(text for _, text in messages)),
        messages=messages,
        reference=tuple(map(str, reference))
        if isinstance(reference, list | tuple)
        else str(reference or ""),
        task=str(row.get("task") or ""),
    )


def _is_held_out(problem: Problem, held_out: Collection[object]) -> bool:
    return problem.question in held_out or problem.messages in held_out


def _numbered(
    prompts: Iterable[Sequence[StoredResponse]], keep: str, left_out: Counter[str]
) -> tuple[list[StoredResponse], list[list[int]]]:
    responses: list[StoredResponse] = []
    groups = []
    for prompt in prompts:
        baseline = fmean(one.reward for one in prompt)
        own = [one for one in prompt if kept(one, baseline, keep)]
        if gone := len(prompt) - len(own):
            left_out[f"not {keep}"] += gone
        if own:
            groups.append(list(range(len(responses), len(responses) + len(own))))
            responses += [replace(one, baseline=baseline) for one in own]
    return responses, groups


def kept(one: StoredResponse, baseline: float, keep: str) -> bool:
    """Whether a response trains by `method.offline.keep`.

    positive is A-LoL's filter (arXiv 2305.14718): an advantage above 0.
    """
    if keep == "correct":
        return one.verdict == "correct"
    return keep == "all" or one.reward > baseline


def _recall(stored: Stored, path: str) -> None:
    unknown = sum(one.logprobs is None for one in stored.responses)
    if unknown:
        raise ConfigError(
            f'method.offline.reference = "recorded" needs log-probabilities, and {unknown:,} of '
            f"{len(stored.responses):,} responses of {path} have none in this model's tokens; use "
            '"start", and they are computed by the model as loaded'
        )
    for number, one in enumerate(stored.responses):
        stored.reference[number] = np.array(one.logprobs, np.float32)


Better = Callable[[StoredResponse, StoredResponse], float | None]


def better_by(name: str) -> Better:
    """How much better the first of two responses is; None where they are no pair.

    `reward` goes by rewards. A component tells responses of one verdict apart: those of Metis-SPECS
    (arXiv 2510.25801) differ in their format alone.
    """
    if name == "reward":
        return lambda one, other: one.reward - other.reward

    def by_component(one: StoredResponse, other: StoredResponse) -> float | None:
        mine, theirs = one.component(name), other.component(name)
        if mine is None or theirs is None or one.verdict != other.verdict:
            return None
        return mine - theirs

    return by_component


def pairs_of(
    stored: Stored, group: Sequence[int], better: Better, *, margin: float, ties: bool
) -> list[tuple[int, int]]:
    """All pairs of a prompt, the better response first."""
    found = []
    for one, other in combinations(group, 2):
        ahead = better(stored.responses[one], stored.responses[other])
        if ahead is None:
            continue
        if abs(ahead) > margin or (ties and ahead == 0):
            found.append((one, other) if ahead >= 0 else (other, one))
    return found


def groups_of(
    stored: Stored, config: Config, number: int, candidates: Sequence[Sequence[tuple[int, int]]]
) -> list[tuple[int, ...]]:
    """The groups of a pass over the rows, in their order, fixed by seed and `number`.

    `candidates` are each prompt's pairs, where groups are pairs.
    """
    offline, size = config.method.offline, config.rollout.group_size
    dice = random.Random(f"{config.data.seed}-{number}")  # noqa: S311  # a shuffle, no secret
    found: list[tuple[int, ...]] = []
    for place, group in enumerate(stored.groups):
        if offline.pairs:
            own: list[tuple[int, ...]] = dice.sample(candidates[place], len(candidates[place]))
        else:
            mixed = dice.sample(group, len(group))
            own = [tuple(mixed[at : at + size]) for at in range(0, len(mixed) - size + 1, size)]
        found += own[: offline.most or None]
    dice.shuffle(found)
    return found
